// Package kubescheduler uses the internals of kube-scheduler.
package kubescheduler

import (
	"k8s.io/kubernetes/cmd/kube-scheduler/app" // want `only the command may`
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var _ = app.Name + framework.Name
