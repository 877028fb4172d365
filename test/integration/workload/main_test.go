// SPDX-License-Identifier: Apache-2.0

// Package workload tests the workload API as it is deployed: muster-controller and muster-scheduler as their service
// accounts under their rules, on a real API server, with kube-controller-manager for garbage collection and
// controlplane.Kubelets as the kubelets.
package workload

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/podlife"
)

var (
	// cp is the control plane that the tests of this package share. Every test has a namespace and nodes of its own.
	cp *controlplane.ControlPlane
	// controller and scheduler run all the time, unless a test kills them.
	controller, scheduler *controlplane.Process
)

func TestMain(m *testing.M) {
	// Stories that run in parallel mostly wait.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(controlplane.Main(m, controlplane.Options{
		WithControllerManager: true, WithKubelets: true, AuditPolicy: auditPolicy,
	}, &cp, (*controlplane.ControlPlane).InstallMuster, startMuster))
}

func startMuster(cp *controlplane.ControlPlane, ctx context.Context) (err error) {
	cp.Kubelets().SetProgram("", usual)
	if scheduler, err = cp.StartMusterScheduler(ctx, controlplane.SchedulerOptions{}); err != nil {
		return err
	}
	controller, err = cp.StartMusterController(ctx, controlplane.ControllerOptions{Args: controllerArgs})
	return err
}

// usual is what containers do unless a test says otherwise. They start in one write, as nothing here depends on the
// states before, and linger for as long as shows that they do.
var usual = podlife.Program{StopsAfter: 100 * time.Millisecond}

// controllerArgs are those of muster-controller. The stories of stalled updates would have to wait for ten minutes.
var controllerArgs = []string{"--stalled-update-after=5s"}

// auditPolicy logs writes, except of events and leases, to count the cost of a workload.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  resources:
  - group: ""
    resources: [events]
  - group: events.k8s.io
    resources: [events]
  - group: coordination.k8s.io
    resources: [leases]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`
