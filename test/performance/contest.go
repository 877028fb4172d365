// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/muster-project/muster/test/controlplane"
)

// gangAPI is how a contestant learns which pods belong together.
type gangAPI int

const (
	noGangs           gangAPI = iota // the pods go one by one
	musterGangs                      // PodGroups of scheduling.run.ai
	coschedulingGangs                // PodGroups of scheduling.x-k8s.io
)

// contest describes how one contestant takes part.
type contest struct {
	name string
	api  gangAPI
	// schedulerName is the scheduler that the pods name.
	schedulerName string
	// program returns the scheduler to start; nil: no scheduler, a plain client posts the bindings.
	program func(ctx context.Context, cp *controlplane.ControlPlane, o options) (controlplane.ProcessOptions, error)
}

const (
	muster       = "muster"
	musterBefore = "muster-before"
	coscheduling = "coscheduling"
	stock        = "stock"
	stockDefault = "stock-default"
	floor        = "floor"
)

// contestNames are all contestants, in the order of a table.
var contestNames = []string{muster, musterBefore, coscheduling, stock, stockDefault, floor}

var contests = map[string]contest{
	muster: {name: muster, api: musterGangs, schedulerName: "muster-scheduler",
		program: func(ctx context.Context, cp *controlplane.ControlPlane, o options) (controlplane.ProcessOptions, error) {
			return musterScheduler(ctx, cp, o.musterScheduler)
		}},
	musterBefore: {name: musterBefore, api: musterGangs, schedulerName: "muster-scheduler",
		program: func(ctx context.Context, cp *controlplane.ControlPlane, o options) (controlplane.ProcessOptions, error) {
			return musterScheduler(ctx, cp, o.musterBefore)
		}},
	coscheduling: {name: coscheduling, api: coschedulingGangs, schedulerName: "default-scheduler", program: coschedulingScheduler},
	stock:        {name: stock, schedulerName: "default-scheduler", program: stockScheduler},
	stockDefault: {name: stockDefault, schedulerName: "default-scheduler",
		program: func(ctx context.Context, cp *controlplane.ControlPlane, o options) (controlplane.ProcessOptions, error) {
			o.qps, o.burst = 50, 100
			return stockScheduler(ctx, cp, o)
		}},
	floor: {name: floor, schedulerName: "nobody"},
}

// musterScheduler is muster-scheduler with its built-in profile, as the service account of its manifests.
func musterScheduler(ctx context.Context, cp *controlplane.ControlPlane, path string) (controlplane.ProcessOptions, error) {
	if err := cp.CreateNamespace(ctx, controlplane.MusterNamespace); err != nil {
		return controlplane.ProcessOptions{}, err
	}
	if err := cp.ApplyManifests(ctx, "manifests/scheduler"); err != nil {
		return controlplane.ProcessOptions{}, err
	}
	kubeconfig, err := cp.ServiceAccountKubeconfig(ctx, controlplane.MusterNamespace, "muster-scheduler")
	if err != nil {
		return controlplane.ProcessOptions{}, err
	}
	return scheduler(path, kubeconfig, "--kubeconfig="+kubeconfig)
}

// stockScheduler is kube-scheduler with its default profile, as the user that every cluster has rules for.
func stockScheduler(_ context.Context, cp *controlplane.ControlPlane, o options) (controlplane.ProcessOptions, error) {
	kubeconfig, err := cp.Kubeconfig("system:kube-scheduler")
	if err != nil {
		return controlplane.ProcessOptions{}, err
	}
	return scheduler(filepath.Join(o.bin, "kube-scheduler"), kubeconfig, "--kubeconfig="+kubeconfig,
		fmt.Sprintf("--kube-api-qps=%d", o.qps), fmt.Sprintf("--kube-api-burst=%d", o.burst))
}

// coschedulingConfig is the configuration of the plugin's own manifests, with the client limits of the other contestants
// and the plugin's default of 60 seconds for a gang to be complete in Permit: with the 10 of its manifest a large gang
// is given up before its last pod is scheduled.
const coschedulingConfig = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: %d, burst: %d}
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{name: Coscheduling}]
    queueSort:
      enabled: [{name: Coscheduling}]
      disabled: [{name: "*"}]
  pluginConfig:
  - name: Coscheduling
    args: {permitWaitingTimeSeconds: 60}
`

// coschedulingRights are the rights that the project's manifests give to kube-scheduler in addition to its own.
const coschedulingRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:kube-scheduler:plugins"}
rules:
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups, podgroups/status]
  verbs: [get, list, watch, create, delete, update, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:kube-scheduler:plugins"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kube-scheduler:plugins"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:kube-scheduler"}
`

// coschedulingScheduler is kube-scheduler with the Coscheduling plugin. The plugin reads PodGroups and counts their pods
// itself; the project's controller only writes the status of PodGroups, and does not run.
func coschedulingScheduler(ctx context.Context, cp *controlplane.ControlPlane, o options) (controlplane.ProcessOptions, error) {
	if err := cp.ApplyYAML(ctx, coschedulingRights); err != nil {
		return controlplane.ProcessOptions{}, err
	}
	kubeconfig, err := cp.Kubeconfig("system:kube-scheduler")
	if err != nil {
		return controlplane.ProcessOptions{}, err
	}
	config := filepath.Join(cp.Dir(), "coscheduling.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, coschedulingConfig, kubeconfig, o.qps, o.burst), 0o644); err != nil {
		return controlplane.ProcessOptions{}, err
	}
	return scheduler(filepath.Join(o.bin, "coscheduling"), kubeconfig, "--config="+config)
}

// gangCRD makes the API server serve the PodGroups of the contestant.
func (c contest) gangCRD(ctx context.Context, cp *controlplane.ControlPlane, o options) error {
	if c.api != coschedulingGangs {
		return nil
	}
	content, err := os.ReadFile(filepath.Join(o.bin, "coscheduling-podgroups.yaml"))
	if err != nil {
		return err
	}
	return cp.ApplyYAML(ctx, string(content))
}

// scheduler is the common configuration of all schedulers: no leader election, the default log level.
func scheduler(path, kubeconfig string, args ...string) (controlplane.ProcessOptions, error) {
	port, err := controlplane.FreePort()
	if err != nil {
		return controlplane.ProcessOptions{}, err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return controlplane.ProcessOptions{}, err
	}
	if _, err := os.Stat(path); err != nil {
		return controlplane.ProcessOptions{}, fmt.Errorf("a contestant's program is missing: %w", err)
	}
	return controlplane.ProcessOptions{
		Name: "scheduler", Path: path,
		ReadyURL: fmt.Sprintf("https://127.0.0.1:%d/readyz", port),
		Args: append([]string{
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", port),
			"--leader-elect=false",
			"--v=0",
		}, args...),
	}, nil
}
