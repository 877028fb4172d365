// Package scheduler has one file that runs the command of kube-scheduler.
package scheduler

import (
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/scheduler/framework" // want `imports k8s.io/kubernetes/pkg/scheduler/framework: only pkg/scheduler/kubescheduler may`
)

// A line with https://example.com/a/word/that/cannot/be/wrapped/and/is/longer/than/all/lines/may/be/behind/some/words may not be so long. // want `the comment ends in column`
//
// https://example.com/a/word/that/cannot/be/wrapped/and/is/longer/than/all/lines/may/be/and/has/a/line/of/its/own/or/so
var _ = app.Name + framework.Name
