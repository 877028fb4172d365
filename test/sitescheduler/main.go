// SPDX-License-Identifier: Apache-2.0

// Command sitescheduler is muster-scheduler with a plugin of a site: an example for docs/configuration.md. A test runs
// it.
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
	os.Exit(cli.Run(scheduler.NewCommand(app.WithPlugin("Quarantine", newQuarantine))))
}

// quarantine keeps pods off nodes that have the label example.com/quarantine.
type quarantine struct{}

func newQuarantine(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return quarantine{}, nil
}

func (quarantine) Name() string { return "Quarantine" }

func (quarantine) Filter(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if _, labelled := node.Node().Labels["example.com/quarantine"]; labelled {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) are in quarantine")
	}
	return nil
}
