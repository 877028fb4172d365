// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	kubeschedulerconfigv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/test/wrappers"
)

// cluster is the stock scheduler without its loop: its plugins, its cache and its snapshot.
type cluster struct {
	ctx       context.Context //nolint:containedctx // of the run
	sched     *upstream.Scheduler
	framework framework.Framework
	gpus      int // of each node
	created   int // pods
}

// newCluster starts a scheduler whose NodeResourcesFit has the scoring strategy. It ends with the context.
func newCluster(ctx context.Context, strategy config.ScoringStrategyType, f *fabric) (*cluster, error) {
	var versioned kubeschedulerconfigv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var cfg config.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &cfg, nil); err != nil {
		return nil, fmt.Errorf("reading the default configuration: %w", err)
	}
	for _, plugin := range cfg.Profiles[0].PluginConfig {
		if args, ok := plugin.Args.(*config.NodeResourcesFitArgs); ok {
			args.ScoringStrategy.Type = strategy
		}
	}
	client := fake.NewClientset()
	informers := upstream.NewInformerFactory(client, 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	sched, err := upstream.New(ctx, client, informers, nil, profile.NewRecorderFactory(broadcaster), upstream.WithProfiles(cfg.Profiles...))
	if err != nil {
		return nil, fmt.Errorf("starting a scheduler: %w", err)
	}
	c := &cluster{ctx: ctx, sched: sched, gpus: f.gpus, framework: sched.Profiles[corev1.DefaultSchedulerName]}
	// The planner uses these listers; their informers must run.
	c.framework.SharedInformerFactory().Core().V1().Namespaces().Lister()
	c.framework.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister()
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		return nil, fmt.Errorf("starting a scheduler: %w", err)
	}
	for _, n := range f.objects() {
		sched.Cache.AddNode(klog.FromContext(ctx), n)
	}
	return c, nil
}

// nodes takes a new snapshot, as every cycle does.
func (c *cluster) nodes() ([]fwk.NodeInfo, error) {
	if err := c.sched.Cache.UpdateSnapshot(klog.FromContext(c.ctx), c.framework.SnapshotSharedLister().(*cache.Snapshot)); err != nil {
		return nil, err
	}
	return c.framework.SnapshotSharedLister().NodeInfos().List()
}

// bind adds a copy of the pod to a node.
func (c *cluster) bind(pod *corev1.Pod, node string) (*corev1.Pod, error) {
	c.created++
	p := pod.DeepCopy()
	p.Name = fmt.Sprintf("pod-%d", c.created)
	p.UID, p.Spec.NodeName = types.UID(p.Name), node
	return p, c.sched.Cache.AddPod(klog.FromContext(c.ctx), p)
}

// remove removes pods.
func (c *cluster) remove(pods []*corev1.Pod) error {
	for _, p := range pods {
		if err := c.sched.Cache.RemovePod(klog.FromContext(c.ctx), p); err != nil {
			return err
		}
	}
	return nil
}

// podOf returns a pod of a job. CPU and memory are in proportion to the GPUs, on which the default scores depend.
func podOf(j job, gpusPerNode int) *corev1.Pod {
	share := func(all int64) resource.Quantity {
		return *resource.NewQuantity(all*int64(j.gpus)/int64(gpusPerNode), resource.BinarySI)
	}
	return wrappers.MakePod("pod", "default").SchedulerName(corev1.DefaultSchedulerName).GPUs(int64(j.gpus)).
		Resource(corev1.ResourceCPU, share(128)).Resource(corev1.ResourceMemory, share(1<<40)).Obj()
}

// stock places each pod by a cycle of the stock scheduler.
type stock struct{ *cluster }

// place implements scheduler.
func (s stock) place(j job) ([]*corev1.Pod, error) {
	nodes, err := s.nodes()
	if err != nil {
		return nil, err
	}
	room := 0 // decides for equal pods, so that none has to be taken back
	for _, n := range nodes {
		room += int(n.GetAllocatable().GetScalarResources()[wrappers.GPUResource]-n.GetRequested().GetScalarResources()[wrappers.GPUResource]) / j.gpus
	}
	if room < j.pods {
		return nil, nil
	}
	pod := podOf(j, s.gpus)
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, err
	}
	var bound []*corev1.Pod
	for len(bound) < j.pods {
		if _, err := s.nodes(); err != nil {
			return nil, err
		}
		result, err := s.sched.SchedulePod(s.ctx, s.framework, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
		if err != nil {
			return nil, fmt.Errorf("scheduling a pod: %w", err)
		}
		p, err := s.bind(pod, result.SuggestedHost)
		if err != nil {
			return nil, err
		}
		bound = append(bound, p)
	}
	return bound, nil
}

// muster plans jobs as gangs.
type muster struct {
	*cluster
	filters  *kubescheduler.FilterCache
	requires func(job) bool // jobs that require a rack; others prefer one
}

// place implements scheduler.
func (m muster) place(j job) ([]*corev1.Pod, error) {
	nodes, err := m.nodes()
	if err != nil {
		return nil, err
	}
	size := int32(j.pods)
	tree, err := gang.Build(gang.Node{MinMember: &size}, nil)
	if err != nil {
		return nil, err
	}
	problem := placement.Problem{Tree: tree, Pods: map[string][]placement.Pod{}}
	for i := range j.pods {
		problem.Pods[""] = append(problem.Pods[""], placement.Pod{ID: strconv.Itoa(i), Index: i})
	}
	levels := map[string]string{"": rackLevel}
	if m.requires(j) {
		problem.Required = levels
	} else {
		problem.Preferred = levels
	}
	pod := podOf(j, m.gpus)
	world, err := kubescheduler.NewSnapshot(m.ctx, m.framework, nodes, []*corev1.Pod{pod}, kubescheduler.Options{Cache: m.filters, Pods: []int{j.pods}})
	if err != nil {
		return nil, err
	}
	plan, _ := placement.Minimum(problem, world, placement.Budget{PreferencesExpired: func() bool { return false }})
	var bound []*corev1.Pod
	for _, p := range plan {
		b, err := m.bind(pod, p.Node)
		if err != nil {
			return nil, err
		}
		bound = append(bound, b)
	}
	return bound, nil
}
