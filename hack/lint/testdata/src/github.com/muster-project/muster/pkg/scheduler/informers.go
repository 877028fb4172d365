package scheduler

import "k8s.io/kubernetes/cmd/kube-scheduler/app" // want `imports k8s.io/kubernetes/cmd/kube-scheduler/app: only the command may, pkg/scheduler/command.go`

var _ = app.Name
