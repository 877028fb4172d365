// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/test/wrappers"
)

// counted is the stock profile's framework. It counts the nodes that are filtered and scored, and pods can be
// nominated by name.
type counted struct {
	framework.Framework
	filtered  atomic.Int64
	scored    atomic.Int64
	nominated map[string][]fwk.PodInfo
}

func (f *counted) RunFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if node.Node().Name != "" { // demandOf uses an artificial node
		f.filtered.Add(1)
	}
	return f.Framework.RunFilterPlugins(ctx, state, pod, node)
}

func (f *counted) RunScorePlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	f.scored.Add(int64(len(nodes)))
	return f.Framework.RunScorePlugins(ctx, state, pod, nodes)
}

// RunFilterPluginsWithNominatedPods treats nominated pods like the real framework if all of them are relevant.
func (f *counted) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if nominated := f.nominated[node.Node().Name]; len(nominated) > 0 {
		node = node.Snapshot()
		for _, p := range nominated {
			node.AddPodInfo(p)
		}
	}
	return f.RunFilterPlugins(ctx, state, pod, node)
}

func (f *counted) NominatedPodsForNode(node string) []fwk.PodInfo { return f.nominated[node] }

// newCounted returns the framework of a scheduler that has seen the objects; the nodes to plan on are passed
// separately.
func newCounted(t *testing.T, objects ...runtime.Object) *counted {
	t.Helper()
	return &counted{Framework: newCluster(t, objects...).f, nominated: map[string][]fwk.PodInfo{}}
}

// judged returns the result of a plan for the pod for each of the nodes, and how many of them were filtered for it.
func judged(t *testing.T, f *counted, memory *FilterCache, nodes []fwk.NodeInfo, pod *corev1.Pod, refuse map[string]bool) ([]string, int) {
	t.Helper()
	before := f.filtered.Load()
	w, err := NewSnapshot(context.Background(), f, nodes, []*corev1.Pod{pod}, Options{Cache: memory, Refusals: refusing(f, pod, refuse)})
	if err != nil {
		t.Fatal(err)
	}
	c := w.classes[0]
	w.findNodesOf(c)
	var reasons []string
	for i, why := range c.known.reasons {
		if why != 0 {
			reasons = append(reasons, w.cache.reasons[why].text)
		} else if c.plain && len(f.NominatedPodsForNode(nodes[i].Node().Name)) == 0 {
			reasons = append(reasons, w.whyBarred(c, i))
		} else {
			reasons = append(reasons, w.runFilters(c, i))
		}
	}
	return reasons, int(f.filtered.Load() - before)
}

// order returns the nodes in the order in which a plan tries them.
func order(t *testing.T, f *counted, memory *FilterCache, nodes []fwk.NodeInfo, pod *corev1.Pod) []string {
	t.Helper()
	w, err := NewSnapshot(context.Background(), f, nodes, []*corev1.Pod{pod}, Options{Cache: memory})
	if err != nil {
		t.Fatal(err)
	}
	w.findNodesOf(w.classes[0])
	var names []string
	for _, i := range w.classes[0].scan.order {
		names = append(names, nodes[i].Node().Name)
	}
	return names
}

func nodeInfo(node *corev1.Node) fwk.NodeInfo {
	n := framework.NewNodeInfo()
	n.SetNode(node)
	return n
}

func podInfo(t testing.TB, pod *corev1.Pod) *framework.PodInfo {
	t.Helper()
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestResultsAreKeptForUnchangedNodes(t *testing.T) {
	t.Parallel()
	f := newCounted(t)
	memory := NewFilterCache()
	var nodes []fwk.NodeInfo
	for i := range 10 {
		nodes = append(nodes, nodeInfo(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(8).Obj()))
	}
	worker := func(name string) *wrappers.PodWrapper {
		return wrappers.MakePod(name, "ns").UID(name).GPUs(8).Gang("g").Label("job", name)
	}
	step := func(what string, pod *corev1.Pod, refuse map[string]bool, wantFiltered, wantPass int) {
		t.Helper()
		reasons, filtered := judged(t, f, memory, nodes, pod, refuse)
		pass := 0
		for _, r := range reasons {
			if r == "" {
				pass++
			}
		}
		if filtered != wantFiltered || pass != wantPass {
			t.Errorf("%s: %d nodes filtered, want %d; %d pass, want %d", what, filtered, wantFiltered, pass, wantPass)
		}
	}
	step("nothing is known at first", worker("a").Obj(), nil, 10, 10)
	step("labels and names do not matter to the filters that take part", worker("b").Obj(), nil, 0, 10)

	nodes[3].AddPodInfo(podInfo(t, worker("bound").Node("n3").Obj()))
	step("one node got a pod", worker("c").Obj(), nil, 1, 9)
	step("nothing changed", worker("d").Obj(), nil, 0, 9)
	if err := nodes[3].RemovePod(klog.Background(), worker("bound").Obj()); err != nil {
		t.Fatal(err)
	}
	step("the pod is gone", worker("e").Obj(), nil, 1, 10)

	step("a node that refused the pod is not known to be bad", worker("f").Obj(), map[string]bool{"n1": true}, 0, 9)
	step("and good again afterwards", worker("g").Obj(), nil, 0, 10)

	f.nominated["n5"] = []fwk.PodInfo{podInfo(t, worker("nominated").Obj())}
	step("a nomination counts", worker("h").Obj(), nil, 1, 9)
	delete(f.nominated, "n5")
	step("and is not remembered", worker("i").Obj(), nil, 0, 10)

	step("smaller pods are another kind", wrappers.MakePod("small", "ns").UID("small").GPUs(1).Obj(), nil, 10, 10)
	step("the larger ones are still known", worker("j").Obj(), nil, 0, 10)

	tainted := nodes[7].Node().DeepCopy()
	tainted.Spec.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoSchedule}}
	nodes[7].SetNode(tainted)
	step("a taint", worker("k").Obj(), nil, 1, 9)
	step("tolerated", worker("l").Toleration("broken").Obj(), nil, 10, 10)

	nodes = append(nodes, nodeInfo(wrappers.MakeNode("n10").GPUs(8).Obj()))
	step("a node more", worker("m").Obj(), nil, 1, 10)

	apart := worker("n").Label("app", "x").ApartFrom(corev1.LabelHostname, "app", "x")
	step("what depends on other pods is asked of the nodes that pass", apart.Obj(), nil, 10, 10)
	step("every time", apart.Obj(), nil, 10, 10)
}

func TestScoresAreKeptWhereNodesAreJudgedOneByOne(t *testing.T) {
	t.Parallel()
	f := newCounted(t, wrappers.MakeNode("n0").Obj(), wrappers.MakePod("neighbour", "ns").UID("neighbour").Node("n0").Obj())
	memory := NewFilterCache()
	var nodes []fwk.NodeInfo
	for i := range 10 {
		nodes = append(nodes, nodeInfo(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(8).Obj()))
	}
	pod := wrappers.MakePod("p", "ns").UID("p").GPUs(1).CPU("4")
	step := func(what string, pod *corev1.Pod, wantScored int) {
		t.Helper()
		before := f.scored.Load()
		judged(t, f, memory, nodes, pod, nil)
		if scored := int(f.scored.Load() - before); scored != wantScored {
			t.Errorf("%s: %d nodes scored, want %d", what, scored, wantScored)
		}
	}
	step("nothing is known at first", pod.Obj(), 10)
	step("nothing changed", pod.Obj(), 0)
	nodes[3].AddPodInfo(podInfo(t, wrappers.MakePod("bound", "ns").UID("bound").Node("n3").CPU("8").Obj()))
	step("one node got a pod", pod.Obj(), 1)
	other := wrappers.MakePod("q", "ns").UID("q").GPUs(1).CPU("4").Spec(func(s *corev1.PodSpec) { s.Containers[0].Image = "other" })
	step("another image that no node has", other.Obj(), 0)
	pulled := nodes[5].Node().DeepCopy()
	pulled.Status.Images = []corev1.ContainerImage{{Names: []string{"other:latest"}, SizeBytes: 1 << 30}}
	nodes[5].SetNode(pulled)
	step("that one node has", other.Obj(), 10)
	step("does not matter to other pods but for that node", pod.Obj(), 1)
	preferred := wrappers.MakePod("r", "ns").UID("r").GPUs(1).CPU("4").Spec(func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{}},
		}}}}
	}).Obj()
	step("a preference for other pods' nodes", preferred, 10)
	step("is judged anew every time", preferred, 10)

	tainted := nodes[7].Node().DeepCopy()
	tainted.Spec.Taints = []corev1.Taint{{Key: "slow", Effect: corev1.TaintEffectPreferNoSchedule}}
	nodes[7].SetNode(tainted)
	step("a node better avoided makes scores relative", pod.Obj(), 10)
	step("every time", pod.Obj(), 10)
}

// TestFilterCacheAgreesWithTheFilters changes a cluster at random and compares plans with and without a cache.
func TestFilterCacheAgreesWithTheFilters(t *testing.T) {
	t.Parallel()
	f := newCounted(t)
	memory := NewFilterCache()
	random := rand.New(rand.NewPCG(1, 2))
	slow := corev1.Taint{Key: "slow", Effect: corev1.TaintEffectPreferNoSchedule}
	var nodes []fwk.NodeInfo
	for i := range 30 {
		nodes = append(nodes, nodeInfo(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(8).Label("rack", fmt.Sprint(i%3)).Obj()))
	}
	bound := make([][]*corev1.Pod, len(nodes))
	total, filtered := 0, 0
	for round := range 400 {
		// 1. A few changes.
		for range random.IntN(3) {
			i := random.IntN(len(nodes))
			name := nodes[i].Node().Name
			switch random.IntN(5) {
			case 0, 1:
				pod := wrappers.MakePod(fmt.Sprintf("b%d", round), "ns").Obj()
				pod.UID = types.UID(fmt.Sprintf("b%d-%d", round, random.Int()))
				pod.Spec.NodeName = name
				pod.Spec.Containers[0].Resources = wrappers.MakePod("x", "ns").GPUs(int64(1 + random.IntN(6))).Obj().Spec.Containers[0].Resources
				nodes[i].AddPodInfo(podInfo(t, pod))
				bound[i] = append(bound[i], pod)
			case 2:
				if len(bound[i]) > 0 {
					if err := nodes[i].RemovePod(klog.Background(), bound[i][0]); err != nil {
						t.Fatal(err)
					}
					bound[i] = bound[i][1:]
				}
			case 3:
				node := nodes[i].Node().DeepCopy()
				node.Spec.Unschedulable = !node.Spec.Unschedulable
				if node.Spec.Taints = nil; random.IntN(10) == 0 {
					node.Spec.Taints = []corev1.Taint{slow}
				}
				nodes[i].SetNode(node)
			case 4: // of a few nodes: results with nominated pods are never cached
				name = nodes[i%4].Node().Name
				if f.nominated[name] == nil {
					f.nominated[name] = []fwk.PodInfo{podInfo(t, wrappers.MakePod("nominated", "ns").UID("nominated").GPUs(3).Obj())}
				} else {
					delete(f.nominated, name)
				}
			}
		}
		if random.IntN(20) == 0 { // the snapshot lists the nodes in a different order
			i, j := random.IntN(len(nodes)), random.IntN(len(nodes))
			nodes[i], nodes[j] = nodes[j], nodes[i]
			bound[i], bound[j] = bound[j], bound[i]
		}
		// 2. A pod of some kind.
		w := wrappers.MakePod("p", "ns").UID("p").GPUs(int64(1 + 3*random.IntN(3)))
		switch random.IntN(4) {
		case 0:
			w.NodeSelector("rack", fmt.Sprint(random.IntN(3)))
		case 1:
			w.HostPort(int32(8000 + random.IntN(2)))
		}
		want, _ := judged(t, f, nil, nodes, w.Obj(), nil)
		got, n := judged(t, f, memory, nodes, w.Obj(), nil)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("round %d: results without cache (-) and with (+):\n%s", round, diff)
		}
		total, filtered = total+len(nodes), filtered+n
		wantOrder, gotOrder := order(t, f, nil, nodes, w.Obj()), order(t, f, memory, nodes, w.Obj())
		if diff := cmp.Diff(wantOrder, gotOrder); diff != "" {
			t.Fatalf("round %d: order of the nodes without memory (-) and with (+):\n%s", round, diff)
		}
	}
	if filtered > total/2 {
		t.Errorf("%d of %d nodes were filtered: hardly anything was remembered", filtered, total)
	}
	t.Logf("%d of %d nodes were filtered", filtered, total)
}

// TestImagesDoNotMakeKinds: gangs with different images, none of which is present on any node, are filtered and
// scored as one kind.
func TestImagesDoNotMakeKinds(t *testing.T) {
	t.Parallel()
	f := newCounted(t)
	memory := NewFilterCache()
	nodes := manyNodes(10)
	for i := range 2 * keptRequirements {
		pod := wrappers.MakePod("p", "ns").UID("p").GPUs(1).Spec(func(s *corev1.PodSpec) { s.Containers[0].Image = fmt.Sprintf("image-%d", i) }).Obj()
		judged(t, f, memory, nodes, pod, nil)
	}
	if filtered, scored := f.filtered.Load(), f.scored.Load(); filtered != 10 || scored != 10 {
		t.Errorf("%d times a node was filtered and %d times scored, want 10", filtered, scored)
	}
	if len(memory.kinds) != 1 {
		t.Errorf("%d kinds, want 1", len(memory.kinds))
	}
}

func TestTheLeastRecentlyUsedKindIsDropped(t *testing.T) {
	t.Parallel()
	f := newCounted(t)
	memory := NewFilterCache()
	nodes := []fwk.NodeInfo{nodeInfo(wrappers.MakeNode("n").GPUs(8).Obj())}
	kind := func(i int) *corev1.Pod {
		return wrappers.MakePod("p", "ns").UID("p").CPU(fmt.Sprintf("%dm", i+1)).Obj()
	}
	for i := range keptRequirements {
		judged(t, f, memory, nodes, kind(i), nil)
	}
	judged(t, f, memory, nodes, kind(0), nil)
	judged(t, f, memory, nodes, kind(keptRequirements), nil) // one too many
	if _, filtered := judged(t, f, memory, nodes, kind(0), nil); filtered != 0 {
		t.Error("a kind that was used a moment ago is forgotten")
	}
	if _, filtered := judged(t, f, memory, nodes, kind(1), nil); filtered != 1 {
		t.Error("the kind used longest ago is still remembered")
	}
	if len(memory.kinds) != keptRequirements {
		t.Errorf("%d kinds are remembered, want %d", len(memory.kinds), keptRequirements)
	}
}
