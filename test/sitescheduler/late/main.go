// SPDX-License-Identifier: Apache-2.0

// Command late is muster-scheduler with a plugin that no plan can foresee. A test runs it.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/cli"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/muster-project/muster/pkg/scheduler"
)

func main() {
	os.Exit(cli.Run(scheduler.NewCommand(app.WithPlugin("Late", newLate))))
}

// late keeps pods off nodes by their label example.com/refuses-at, with the value Reserve or PreBind. No filter sees
// it.
type late struct{ handle fwk.Handle }

func newLate(_ context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	return late{handle}, nil
}

func (late) Name() string { return "Late" }

func (l late) at(point, name string) *fwk.Status {
	node, err := l.handle.SharedInformerFactory().Core().V1().Nodes().Lister().Get(name)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if node.Labels["example.com/refuses-at"] == point {
		return fwk.NewStatus(fwk.Unschedulable, "node(s) refuse pods at "+point)
	}
	return nil
}

func (l late) Reserve(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node string) *fwk.Status {
	return l.at("Reserve", node)
}

func (late) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

func (late) PreBindPreFlight(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

func (l late) PreBind(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node string) *fwk.Status {
	return l.at("PreBind", node)
}
