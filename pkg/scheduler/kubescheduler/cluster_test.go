// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	kubeschedulerconfigv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/muster-project/muster/pkg/placement"
)

var _ placement.World = &Snapshot{}

// cluster is the real scheduler with the stock plugins and a fake API server: its snapshot and its framework, without
// its loop.
type cluster struct {
	t     testing.TB
	ctx   context.Context
	sched *scheduler.Scheduler
	f     framework.Framework
	nodes []fwk.NodeInfo
	keys  map[*corev1.Pod]string // podgroup.ClassKey, of benchmarks
}

func newCluster(t testing.TB, objects ...runtime.Object) *cluster {
	t.Helper()
	return newConfiguredCluster(t, func(*config.KubeSchedulerConfiguration) {}, objects...)
}

// newClusterWith returns a cluster whose scheduler has extenders.
func newClusterWith(t testing.TB, extenders []config.Extender, objects ...runtime.Object) *cluster {
	t.Helper()
	return newConfiguredCluster(t, func(cfg *config.KubeSchedulerConfiguration) { cfg.Extenders = extenders }, objects...)
}

// newConfiguredCluster returns a cluster whose scheduler has a configuration other than the default one.
func newConfiguredCluster(t testing.TB, configure func(*config.KubeSchedulerConfiguration), objects ...runtime.Object) *cluster {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	t.Cleanup(cancel)
	var versioned kubeschedulerconfigv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var cfg config.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &cfg, nil); err != nil {
		t.Fatal(err)
	}
	configure(&cfg)
	client := fake.NewClientset(objects...)
	informers := scheduler.NewInformerFactory(client, 0, nil)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	t.Cleanup(broadcaster.Shutdown)
	sched, err := scheduler.New(ctx, client, informers, nil, profile.NewRecorderFactory(broadcaster), scheduler.WithProfiles(cfg.Profiles...), scheduler.WithExtenders(cfg.Extenders...),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{GPUPackingName: NewGPUPacking}))
	if err != nil {
		t.Fatal(err)
	}
	f := sched.Profiles[corev1.DefaultSchedulerName]
	// Snapshot uses these listers; their informers must run.
	f.SharedInformerFactory().Core().V1().Namespaces().Lister()
	f.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister()
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, ctx: ctx, sched: sched, f: f, keys: map[*corev1.Pod]string{}}
	c.refresh()
	return c
}

// refresh takes a new snapshot, as every cycle does.
func (c *cluster) refresh() {
	c.t.Helper()
	if err := c.sched.Cache.UpdateSnapshot(klog.FromContext(c.ctx), c.f.SnapshotSharedLister().(*cache.Snapshot)); err != nil {
		c.t.Fatal(err)
	}
	nodes, err := c.f.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes = nodes
}

// world returns a Snapshot for these classes.
func (c *cluster) world(classes ...*corev1.Pod) *Snapshot {
	c.t.Helper()
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes, Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	return w
}

// bind adds a bound pod to the scheduler's cache directly, and takes a new snapshot.
func (c *cluster) bind(pod *corev1.Pod, name, node string) *corev1.Pod {
	c.t.Helper()
	p := pod.DeepCopy()
	p.Name, p.UID, p.Spec.NodeName = name, types.UID(name), node
	if err := c.sched.Cache.AddPod(klog.FromContext(c.ctx), p); err != nil {
		c.t.Fatal(err)
	}
	c.refresh()
	return p
}

// unbind reverses bind.
func (c *cluster) unbind(pod *corev1.Pod) {
	c.t.Helper()
	if err := c.sched.Cache.RemovePod(klog.FromContext(c.ctx), pod); err != nil {
		c.t.Fatal(err)
	}
	c.refresh()
}

// realCycles returns the result of a real cycle of the pod for every node: "" if the node would take it.
func (c *cluster) realCycles(pod *corev1.Pod) map[string]string {
	c.t.Helper()
	state := framework.NewCycleState()
	out := map[string]string{}
	result, status, _ := c.f.RunPreFilterPlugins(c.ctx, state, pod)
	for _, n := range c.nodes {
		name := n.Node().Name
		switch {
		case !status.IsSuccess():
			out[name] = firstReason(status)
		case !result.AllNodes() && !result.NodeNames.Has(name):
			out[name] = "node(s) didn't match the pod's node name selection"
		default:
			if s := c.f.RunFilterPluginsWithNominatedPods(c.ctx, state, pod, n); !s.IsSuccess() {
				out[name] = firstReason(s)
			} else {
				out[name] = ""
			}
		}
	}
	return out
}
