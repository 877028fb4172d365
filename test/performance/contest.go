// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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
	program func(ctx context.Context, cp *controlplane.ControlPlane, o options) controlplane.ProcessOptions
}

const (
	muster       = "muster"
	musterBefore = "muster-before"
	coscheduling = "coscheduling"
	stock        = "stock"
	stockDefault = "stock-default"
	floor        = "floor"
)

// contests are all contestants, in the order of a table.
var contests = []contest{
	{muster, musterGangs, "muster-scheduler", func(ctx context.Context, cp *controlplane.ControlPlane, o options) controlplane.ProcessOptions {
		return musterScheduler(ctx, cp, o.musterScheduler)
	}},
	{musterBefore, musterGangs, "muster-scheduler", func(ctx context.Context, cp *controlplane.ControlPlane, o options) controlplane.ProcessOptions {
		return musterScheduler(ctx, cp, o.musterBefore)
	}},
	{coscheduling, coschedulingGangs, "default-scheduler", coschedulingScheduler},
	{stock, noGangs, "default-scheduler", stockScheduler},
	{stockDefault, noGangs, "default-scheduler", func(ctx context.Context, cp *controlplane.ControlPlane, o options) controlplane.ProcessOptions {
		o.qps, o.burst = 50, 100
		return stockScheduler(ctx, cp, o)
	}},
	{floor, noGangs, "nobody", nil},
}

func contestNames() (names []string) {
	for _, c := range contests {
		names = append(names, c.name)
	}
	return names
}

func contestNamed(name string) contest { return contests[slices.Index(contestNames(), name)] }

// musterScheduler is muster-scheduler with its built-in profile, as the service account of its manifests.
func musterScheduler(ctx context.Context, cp *controlplane.ControlPlane, path string) controlplane.ProcessOptions {
	kubeconfig := got(cp.ServiceAccountKubeconfig(ctx, controlplane.MusterNamespace, "muster-scheduler"))
	return scheduler(path, kubeconfig, "--kubeconfig="+kubeconfig)
}

// stockScheduler is kube-scheduler with its default profile, as the user that every cluster has rules for.
func stockScheduler(_ context.Context, cp *controlplane.ControlPlane, o options) controlplane.ProcessOptions {
	kubeconfig := got(cp.Kubeconfig("system:kube-scheduler"))
	return scheduler(filepath.Join(bin, "kube-scheduler"), kubeconfig, "--kubeconfig="+kubeconfig,
		fmt.Sprintf("--kube-api-qps=%d", o.qps), fmt.Sprintf("--kube-api-burst=%d", o.burst))
}

// coschedulingConfig is the configuration of the plugin's own manifests, with the client limits of the other
// contestants and the plugin's default of 60 seconds for a gang to be complete in Permit: with the 10 of its manifest a
// large gang is given up before its last pod is scheduled.
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
- {apiGroups: [scheduling.x-k8s.io], resources: [podgroups, podgroups/status], verbs: [get, list, watch, create, delete, update, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:kube-scheduler:plugins"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kube-scheduler:plugins"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:kube-scheduler"}
`

// coschedulingScheduler is kube-scheduler with the Coscheduling plugin. The plugin reads PodGroups, which the API
// server begins to serve here, and counts their pods itself; the project's controller only writes the status of
// PodGroups, and does not run.
func coschedulingScheduler(ctx context.Context, cp *controlplane.ControlPlane, o options) controlplane.ProcessOptions {
	must(cp.ApplyYAML(ctx, string(got(os.ReadFile(filepath.Join(bin, "coscheduling.yaml"))))))
	must(cp.ApplyYAML(ctx, coschedulingRights))
	kubeconfig := got(cp.Kubeconfig("system:kube-scheduler"))
	config := filepath.Join(cp.Dir(), "coscheduling.yaml")
	must(os.WriteFile(config, fmt.Appendf(nil, coschedulingConfig, kubeconfig, o.qps, o.burst), 0o644))
	return scheduler(filepath.Join(bin, coscheduling), kubeconfig, "--config="+config)
}

// scheduler is the common configuration of all schedulers: no leader election, the default log level.
func scheduler(path, kubeconfig string, args ...string) controlplane.ProcessOptions {
	if _, err := os.Stat(path); err != nil {
		must(fmt.Errorf("a contestant's program is missing: %w", err))
	}
	return got(controlplane.SchedulerProcess("scheduler", path, kubeconfig, append(args, "--v=0", anyoneReads)...))
}

// anyoneReads lets a scheduler serve its metrics and profiles to everyone.
const anyoneReads = "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics,/debug/*"
