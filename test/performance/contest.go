package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/muster-project/muster/test/controlplane"
)

// contest is how one contestant takes part.
type contest struct {
	name string
	// gangs: the pods belong to PodGroups. Otherwise the same pods are free to go one by one.
	gangs bool
	// schedulerName is what the pods ask for.
	schedulerName string
	// program returns the scheduler to start; nil: no scheduler, a plain client posts the bindings.
	program func(ctx context.Context, cp *controlplane.ControlPlane, o options) (controlplane.ProcessOptions, error)
}

var contests = map[string]contest{
	"muster": {name: "muster", gangs: true, schedulerName: "muster-scheduler", program: musterScheduler},
	"stock":  {name: "stock", schedulerName: "default-scheduler", program: stockScheduler},
	"stock-default": {name: "stock-default", schedulerName: "default-scheduler",
		program: func(ctx context.Context, cp *controlplane.ControlPlane, o options) (controlplane.ProcessOptions, error) {
			o.qps, o.burst = 50, 100
			return stockScheduler(ctx, cp, o)
		}},
	"floor": {name: "floor", schedulerName: "nobody"},
}

// musterScheduler is muster-scheduler with its built-in profile, as the service account of its manifests.
func musterScheduler(ctx context.Context, cp *controlplane.ControlPlane, o options) (controlplane.ProcessOptions, error) {
	if err := cp.ApplyManifests(ctx, "manifests/scheduler"); err != nil {
		return controlplane.ProcessOptions{}, err
	}
	kubeconfig, err := cp.ServiceAccountKubeconfig(ctx, "muster-system", "muster-scheduler")
	if err != nil {
		return controlplane.ProcessOptions{}, err
	}
	return scheduler(o.musterScheduler, kubeconfig)
}

// stockScheduler is kube-scheduler with its default profile, as the user that every cluster has rules for.
func stockScheduler(_ context.Context, cp *controlplane.ControlPlane, o options) (controlplane.ProcessOptions, error) {
	kubeconfig, err := cp.Kubeconfig("system:kube-scheduler")
	if err != nil {
		return controlplane.ProcessOptions{}, err
	}
	return scheduler(filepath.Join(o.bin, "kube-scheduler"), kubeconfig,
		fmt.Sprintf("--kube-api-qps=%d", o.qps), fmt.Sprintf("--kube-api-burst=%d", o.burst))
}

// scheduler is what all schedulers have in common: no leader election, the default log level.
func scheduler(path, kubeconfig string, args ...string) (controlplane.ProcessOptions, error) {
	port, err := controlplane.FreePort()
	if err != nil {
		return controlplane.ProcessOptions{}, err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return controlplane.ProcessOptions{}, err
	}
	return controlplane.ProcessOptions{Name: "scheduler", Path: path, Args: append([]string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--leader-elect=false",
		"--v=0",
	}, args...)}, nil
}
