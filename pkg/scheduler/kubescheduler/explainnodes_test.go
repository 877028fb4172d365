// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

// TestNodesThatAreNotAvailable: which nodes a class could use if they were open to it, and why they are not.
func TestNodesThatAreNotAvailable(t *testing.T) {
	const gpu = corev1.ResourceName("nvidia.com/gpu")
	toleratesCordon := func(s *corev1.PodSpec) {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists})
	}
	pools := append(racks(2, 8),
		wrappers.MakeNode("cordoned-0").GPUs(8).Label("pool", "a").Unschedulable().Obj(),
		wrappers.MakeNode("cordoned-1").GPUs(4).Label("pool", "a").Unschedulable().Taint("team", "ml").Obj(),
		wrappers.MakeNode("tainted").GPUs(8).Label("pool", "b").Taint("team", "ml").Obj(),
		wrappers.MakeNode("down").GPUs(8).Label("pool", "b").Taint(corev1.TaintNodeNotReady, "").Obj())
	cordoned := podgroup.UnavailableNodes{Cause: "cordoned", Advice: "uncordon them", Nodes: 2, Names: []string{"cordoned-0", "cordoned-1"}, Total: 12, Free: 12, Largest: 8, Slots: 3, SlotsNow: 3}
	tainted := podgroup.UnavailableNodes{Cause: "with taint team=ml:NoSchedule", Advice: "tolerate or remove it", Nodes: 1, Names: []string{"tainted"}, Total: 8, Free: 8, Largest: 8, Slots: 2, SlotsNow: 2}
	down := podgroup.UnavailableNodes{Cause: "not ready", Advice: "bring it back", Nodes: 1, Names: []string{"down"}, Total: 8, Free: 8, Largest: 8, Slots: 2, SlotsNow: 2}
	for name, tc := range map[string]struct {
		pod  *wrappers.PodWrapper
		want podgroup.ResourceCapacity
		says map[string]int
	}{
		"a cordon comes before a taint, and every cause has its own number": {
			pod: classPod("a").GPUs(4),
			want: podgroup.ResourceCapacity{Resource: gpu, PerPod: 4, Free: 16, Total: 16, Largest: 8, LargestFree: 8, Nodes: 2, Offering: 2, Slots: 4, SlotsNow: 4,
				Unavailable: []podgroup.UnavailableNodes{cordoned, down, tainted}},
			says: map[string]int{"cordoned": 2, "not ready": 1, "with taint team=ml:NoSchedule": 1},
		},
		"nodes that selectors leave out would not help": {
			pod: classPod("a").GPUs(4).NodeSelector("pool", "a"),
			want: podgroup.ResourceCapacity{Resource: gpu, PerPod: 4, Selection: "nodeSelector pool=a",
				Unavailable: []podgroup.UnavailableNodes{cordoned}, Elsewhere: 4},
			says: map[string]int{"node(s) didn't match Pod's node affinity/selector": 2, "cordoned": 2, "not ready": 1, "with taint team=ml:NoSchedule": 1},
		},
		"what a pod tolerates is open to it": {
			pod:  classPod("a").GPUs(4).Toleration("team").Toleration(corev1.TaintNodeNotReady).Spec(toleratesCordon),
			want: podgroup.ResourceCapacity{Resource: gpu, PerPod: 4, Free: 44, Total: 44, Largest: 8, LargestFree: 8, Nodes: 6, Offering: 6, Slots: 11, SlotsNow: 11},
			says: map[string]int{},
		},
		"a pod that is to be on another node has no use for these": {
			pod:  classPod("a").GPUs(4).Spec(func(s *corev1.PodSpec) { s.NodeName = "tainted" }),
			want: podgroup.ResourceCapacity{Resource: gpu, PerPod: 4, Unavailable: []podgroup.UnavailableNodes{tainted}, Elsewhere: 5},
			says: map[string]int{"node(s) didn't match the pod's node name selection": 5, "with taint team=ml:NoSchedule": 1},
		},
		"pods that keep apart have one node each": {
			pod: classPod("a").GPUs(1).ApartFrom(corev1.LabelHostname, "app", "a").NodeSelector("rack", "r0"),
			want: podgroup.ResourceCapacity{Resource: gpu, PerPod: 1, Free: 16, Total: 16, Largest: 8, LargestFree: 8, Nodes: 2, Offering: 2,
				Slots: 2, SlotsNow: 2, Apart: corev1.LabelHostname, Selection: "nodeSelector rack=r0", Elsewhere: 4},
			says: map[string]int{"cordoned": 2, "not ready": 1, "with taint team=ml:NoSchedule": 1},
		},
		"a resource that no node offers": {
			pod:  classPod("a").Resource("nvidia.com/gpus", resource.MustParse("1")).NodeSelector("rack", "r0"),
			want: podgroup.ResourceCapacity{Resource: "nvidia.com/gpus", PerPod: 1, Nodes: 2, Selection: "nodeSelector rack=r0"},
			says: map[string]int{"Insufficient nvidia.com/gpus": 2, "cordoned": 2, "not ready": 1, "with taint team=ml:NoSchedule": 1},
		},
		"a claim that does not exist": {
			pod: classPod("a").GPUs(4).Claim("data"),
			want: podgroup.ResourceCapacity{Resource: gpu, PerPod: 4,
				Refused: `persistentvolumeclaim "data" not found`, RefusedByClaims: true},
			says: map[string]int{`persistentvolumeclaim "data" not found`: 6},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCluster(t, pools...).world(tc.pod.Obj())
			if diff := cmp.Diff(tc.want, w.ResourceCapacity(0)); diff != "" {
				t.Errorf("ResourceCapacity (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&placement.Refusal{Reasons: tc.says}, w.Explain(0, "")); diff != "" {
				t.Errorf("Explain (-want +got):\n%s", diff)
			}
		})
	}
}

// A port of the host excludes other pods with it while the container runs beside the others: a sidecar, but no other
// init container (upstream's util.GetHostPorts).
func TestPodsOnANodeWithPortsOfInitContainers(t *testing.T) {
	t.Parallel()
	for policy, want := range map[corev1.ContainerRestartPolicy]int{"": 8, corev1.ContainerRestartPolicyAlways: 1} {
		w := newCluster(t, wrappers.MakeNode("n0").GPUs(8).Obj()).world(classPod("a").GPUs(1).Spec(func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "init", Ports: []corev1.ContainerPort{{HostPort: 80}}}}
			if policy != "" {
				s.InitContainers[0].RestartPolicy = &policy
			}
		}).Obj())
		if got := w.Capacity(0).Pods; got != want {
			t.Errorf("restart policy %q: the node holds %d pods, want %d", policy, got, want)
		}
	}
}

// A node on which another pod uses the host port has room when that pod has ended, and none before.
func TestCapacityBesideAUsedHostPort(t *testing.T) {
	t.Parallel()
	w := newCluster(t, wrappers.MakeNode("n0").GPUs(8).Obj(), wrappers.MakeNode("n1").GPUs(8).Obj(),
		classPod("other").HostPort(8080).Node("n0").Obj()).world(classPod("a").GPUs(1).HostPort(8080).Obj())
	if r := w.ResourceCapacity(0); r.Nodes != 2 || r.Slots != 2 || r.SlotsNow != 1 {
		t.Errorf("%d nodes, %d slots, %d now; want 2, 2 and 1", r.Nodes, r.Slots, r.SlotsNow)
	}
	for empty, want := range map[bool]placement.Capacity{false: {Nodes: 1, Pods: 1}, true: {Nodes: 2, Pods: 2}} {
		if got := w.Imagine([]int{0}, empty, false).Capacity(0); got != want {
			t.Errorf("empty: %t: %+v, want %+v", empty, got, want)
		}
	}
}

// TestCapacityOfNodesInUse: what is free now, on the largest piece, and what pods of other priorities hold.
func TestCapacityOfNodesInUse(t *testing.T) {
	t.Parallel()
	const gpu = corev1.ResourceName("nvidia.com/gpu")
	running := func(name, node string, gpus int64, priority int32) *corev1.Pod {
		return classPod(name).GPUs(gpus).Node(node).Spec(func(s *corev1.PodSpec) { s.Priority = &priority }).Obj()
	}
	c := newCluster(t,
		wrappers.MakeNode("n0").GPUs(8).Obj(), wrappers.MakeNode("n1").GPUs(8).Obj(), wrappers.MakeNode("closed").GPUs(8).Unschedulable().Obj(),
		running("low", "n0", 5, 1), running("equal", "n1", 2, 5), running("high", "n1", 2, 6), running("lower", "n1", 1, 4), running("there", "closed", 2, 1))
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{classPod("a").GPUs(2).Obj()}, Options{Asker: reservations.Asker{Priority: 5}})
	if err != nil {
		t.Fatal(err)
	}
	want := podgroup.ResourceCapacity{Resource: gpu, PerPod: 2, Free: 6, Total: 16, Largest: 8, LargestFree: 3, Nodes: 2, Offering: 2, Slots: 8, SlotsNow: 2,
		Unavailable: []podgroup.UnavailableNodes{{Cause: "cordoned", Advice: "uncordon it", Nodes: 1, Names: []string{"closed"}, Total: 8, Free: 6, Largest: 8, Slots: 4, SlotsNow: 3}}}
	if diff := cmp.Diff(want, w.ResourceCapacity(0)); diff != "" {
		t.Errorf("ResourceCapacity (-want +got):\n%s", diff)
	}
	if got := w.HeldByOthers([]int{0}, gpu); got != (podgroup.Held{Lower: 6, Higher: 2}) {
		t.Errorf("pods of lower and higher priority hold %+v GPUs, want 6 (5 on n0, 1 on n1) and 2", got)
	}
}

// TestClosedNodesBetweenPlans: a plan sees which nodes are cordoned now, also those that were not when the FilterCache
// first saw them, and after nodes were added.
func TestClosedNodesBetweenPlans(t *testing.T) {
	t.Parallel()
	full := wrappers.MakeNode("b").GPUs(8)
	c, cache := newCluster(t, wrappers.MakeNode("a").GPUs(8).Obj(), full.Obj()), NewFilterCache()
	closed := func() (names []string) {
		t.Helper()
		w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{classPod("x").GPUs(8).Obj()}, Options{Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range w.ResourceCapacity(0).Unavailable {
			names = append(names, u.Names...)
		}
		return names
	}
	if got := closed(); len(got) > 0 {
		t.Errorf("closed: %v, want none", got)
	}
	old := full.Obj()
	for _, cordoned := range []bool{true, false, true} {
		node := old.DeepCopy()
		node.Spec.Unschedulable = cordoned
		c.sched.Cache.UpdateNode(klog.FromContext(c.ctx), old, node)
		c.refresh()
		old = node
		if got := closed(); cordoned != slices.Equal(got, []string{"b"}) || !cordoned && len(got) > 0 {
			t.Errorf("cordoned: %t, closed: %v", cordoned, got)
		}
	}
	c.sched.Cache.AddNode(klog.FromContext(c.ctx), wrappers.MakeNode("c").GPUs(8).Unschedulable().Obj())
	c.refresh()
	if got := closed(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("closed: %v, want b and c", got)
	}
}
