// Package scheduler has one file that runs the command of kube-scheduler.
package scheduler

import (
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/scheduler/framework" // want `imports k8s.io/kubernetes/pkg/scheduler/framework: only pkg/scheduler/kubescheduler may`
)

var _ = app.Name + framework.Name
