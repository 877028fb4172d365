// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

// TestExplainLevels plans gangs of pods with 8 GPUs that require one rack.
func TestExplainLevels(t *testing.T) {
	t.Parallel()
	const level = "topology.example.com/rack"
	// rack returns nodes of 8 GPUs with names NAME-0, NAME-1, ..., and pods on the last ones.
	rack := func(name string, nodes, used int) []runtime.Object {
		var list []runtime.Object
		for i := range nodes {
			n := wrappers.MakeNode(fmt.Sprintf("%s-%d", strings.ToLower("n"+name), i)).GPUs(8).Label(level, name).Obj()
			list = append(list, n)
			if i >= nodes-used {
				list = append(list, classPod("run-"+n.Name).GPUs(8).Node(n.Name).Obj())
			}
		}
		return list
	}
	long := strings.Repeat("r", 50)
	for name, tc := range map[string]struct {
		objects []runtime.Object
		pods    int
		runsOn  []string
		pod     func(p *wrappers.PodWrapper)
		reason  v2alpha2.Reason
		message string // its beginning
	}{
		"enough is free, in several racks": {
			objects: append(append(append(rack(long, 4, 1), rack("", 4, 2)...), rack("r3", 4, 4)...), wrappers.MakeNode("outside").GPUs(8).Obj(), wrappers.MakeNode("cpus").Obj()),
			pods:    4, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack has room for the gang (4 pods of 8 nvidia.com/gpu): rack " + long + ` has room for 3, "" for 2, and 1 other for no more; ` +
				"1 node without label topology.example.com/rack is outside; the gang: 3 of 4 pods can be placed; 4 nodes: Insufficient nvidia.com/gpu",
		},
		"no node has the label": {
			objects: []runtime.Object{wrappers.MakeNode("a").GPUs(8).Obj(), wrappers.MakeNode("b").GPUs(8).Obj()}, pods: 2, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no node for the gang has label topology.example.com/rack: label the nodes (2 without), since it requires one rack",
		},
		"a node of the largest rack is cordoned": {
			objects: append(append(rack("r1", 3, 0), rack("r2", 3, 1)...), wrappers.MakeNode("c").GPUs(8).Label(level, "r1").Unschedulable().Obj()), pods: 4,
			reason: v2alpha2.ReasonNodesUnavailable,
			message: "1 node cordoned (c; 8 nvidia.com/gpu, 8 free): uncordon it; with the room there, the 4 pods that the gang needs fit; " +
				"no rack has room for the gang (4 pods of 8 nvidia.com/gpu): rack r1 has room for 3, r2 for 2",
		},
		"no rack would hold it": {
			objects: append(rack("r1", 3, 3), rack("r2", 2, 0)...), pods: 4, reason: v2alpha2.ReasonTooLarge,
			message: "the largest rack, r1, would hold only 3 of the 4 pods of 8 nvidia.com/gpu that the gang needs in one rack if it was empty",
		},
		"it runs in a full rack": {
			objects: append(rack("r1", 3, 3), rack("r2", 4, 0)...), pods: 2, runsOn: []string{"nr1-0", "nr1-1"}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the gang needs 16 more nvidia.com/gpu in rack r1, where it runs, for 2 more pods of 8 nvidia.com/gpu: there is room for 0; 3 nodes: Insufficient nvidia.com/gpu",
		},
		"it runs in a full rack, on a node that its pods could not use any more": {
			objects: append(rack("r1", 3, 3), rack("r2", 4, 0)...), pods: 2, runsOn: []string{"nr1-0"}, reason: v2alpha2.ReasonTopologyUnavailable,
			pod: func(p *wrappers.PodWrapper) {
				p.Spec(func(s *corev1.PodSpec) { s.Affinity = notOn("nr1-0") })
			},
			message: "the gang needs 16 more nvidia.com/gpu in rack r1, where it runs, for 2 more pods of 8 nvidia.com/gpu: there is room for 0",
		},
		"a node was relabeled": {
			objects: append(rack("r1", 3, 1), rack("r2", 4, 1)...), pods: 2, runsOn: []string{"nr1-2", "nr2-3"}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the pods of the gang do not run in one rack, which it requires: no pod is added until they are deleted and start together",
		},
		"racks have room, and filters refuse": {
			objects: append(rack("r1", 3, 0), rack("r2", 3, 0)...), pods: 3, reason: v2alpha2.ReasonFragmented,
			pod: func(p *wrappers.PodWrapper) { p.ApartFrom(level, "app", "y") },
			message: "no rack takes the gang (3 pods of 8 nvidia.com/gpu): by amounts alone, rack r1 has room for 3, r2 for 3; " +
				"3 nodes: node(s) didn't match pod anti-affinity rules",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := tc.objects
			if tc.reason == v2alpha2.ReasonFragmented {
				for i, node := range []string{"nr1-0", "nr2-0"} {
					objects = append(objects, classPod(fmt.Sprintf("y-%d", i)).Label("app", "y").Node(node).Obj())
				}
			}
			pod := classPod("a").GPUs(8)
			if tc.pod != nil {
				tc.pod(pod)
			}
			w := newCluster(t, objects...).world(pod.Obj())
			n := int32(tc.pods + len(tc.runsOn))
			p := placement.Problem{Required: map[string]string{"": level}, Have: gang.Counts{"": len(tc.runsOn)}, Bound: gang.Counts{"": len(tc.runsOn)},
				Nodes: map[string][]string{"": tc.runsOn}, Pods: map[string][]placement.Pod{"": make([]placement.Pod, tc.pods)}}
			var err error
			if p.Tree, err = gang.Build(gang.Node{MinMember: &n}, nil); err != nil {
				t.Fatal(err)
			}
			_, short := placement.Minimum(p, w, placement.Budget{})
			if short == nil {
				t.Fatal("the gang can start")
			}
			got := podgroup.Explain(p, w, short)
			if got.Reason != tc.reason || !strings.HasPrefix(got.Message, tc.message) {
				t.Errorf("%s: %s\nwant %s: %s", got.Reason, got.Message, tc.reason, tc.message)
			}
		})
	}
}

// notOn is required affinity to any other node.
func notOn(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{name}}}}}}}}
}

// singly is a Snapshot whose Inventory has each node by itself.
type singly struct{ *Snapshot }

func (w singly) Inventory(p placement.Problem) *podgroup.Inventory { return w.inventoryByNode(p) }

// TestNodesOfADomainAreExplainedAsOne: the reason and the message are the same whether the nodes of a domain are one in the Inventory.
func TestNodesOfADomainAreExplainedAsOne(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(97, 101))
	reasons := map[v2alpha2.Reason]int{}
	for round := range 60 {
		var objects []runtime.Object
		var names []string
		for i := range 2 + r.IntN(12) {
			n := wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(int64(4 + 4*r.IntN(2)))
			if r.IntN(6) > 0 {
				rack := r.IntN(5)
				n = n.Label("rack", fmt.Sprintf("r%d", rack)).Label("block", fmt.Sprintf("b%d", rack/2))
			}
			if r.IntN(8) == 0 {
				n = n.Unschedulable()
			}
			node := n.Obj()
			objects, names = append(objects, node), append(names, node.Name)
			if used := r.IntN(5); used > 0 {
				objects = append(objects, classPod(fmt.Sprintf("run-%d", i)).GPUs(int64(used)).Node(node.Name).Obj())
			}
		}
		c := newCluster(t, objects...)
		for range 20 {
			pod := classPod("a").GPUs(int64(1 + r.IntN(4)))
			if r.IntN(5) == 0 {
				pod = pod.HostPort(8080)
			}
			groups, pods := []gang.Node{}, map[string][]placement.Pod{}
			p := placement.Problem{Required: map[string]string{"": []string{"", "block"}[r.IntN(2)]}, Have: gang.Counts{}, Bound: gang.Counts{}, Nodes: map[string][]string{}}
			for i := range 1 + r.IntN(3) {
				name, n := fmt.Sprintf("l%d", i), 1+r.IntN(8)
				groups = append(groups, gang.Node{Name: name, MinMember: new(int32(n))})
				p.Required[name] = []string{"rack", "rack", "block", ""}[r.IntN(4)]
				if r.IntN(4) == 0 && n > 1 {
					p.Have[name], p.Bound[name], p.Nodes[name] = 1, 1, []string{names[r.IntN(len(names))]}
				}
				for k := range n - p.Have[name] {
					pods[name] = append(pods[name], placement.Pod{ID: fmt.Sprintf("%s-%d", name, k)})
				}
			}
			tree, err := gang.Build(gang.Node{MinSubGroup: new(int32(1 + r.IntN(len(groups))))}, groups)
			if err != nil {
				t.Fatal(err)
			}
			p.Tree, p.Pods = tree, pods
			w := c.world(pod.Obj())
			_, short := placement.Minimum(p, w, placement.Budget{})
			if short == nil {
				continue
			}
			want := podgroup.Explain(p, singly{w}, short)
			if diff := cmp.Diff(want, podgroup.Explain(p, w, short)); diff != "" {
				t.Fatalf("round %d (-each node by itself +the nodes of a domain as one):\n%s", round, diff)
			}
			reasons[want.Reason]++
		}
	}
	t.Log(reasons)
	for _, reason := range []v2alpha2.Reason{v2alpha2.ReasonTooLarge, v2alpha2.ReasonNodesUnavailable, v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonTopologyUnavailable} {
		if reasons[reason] < 10 {
			t.Errorf("reason %s: %d times, want at least 10", reason, reasons[reason])
		}
	}
}

// TestNumbersFollowTheNodes: what an explanation counts is kept for nodes that do not change, and counted again for those that do.
func TestNumbersFollowTheNodes(t *testing.T) {
	t.Parallel()
	c, rng := newCluster(t), rand.New(rand.NewPCG(5, 7))
	const nodes = 12
	objects := make([]*corev1.Node, nodes)
	random := func(i int) *corev1.Node {
		n := wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(rng.Int64N(9)).Label("rack", fmt.Sprintf("r%d", rng.IntN(3))).Label("pool", fmt.Sprintf("p%d", rng.IntN(2)))
		switch rng.IntN(6) {
		case 0:
			n.Unschedulable()
		case 1:
			n.Taint("key", "value")
		}
		return n.Obj()
	}
	for i := range objects {
		objects[i] = random(i)
		c.sched.Cache.AddNode(klog.Background(), objects[i])
	}
	pod := wrappers.MakePod("waits", "ml").GPUs(2).NodeSelector("pool", "p0").HostPort(80).Obj()
	p := placement.Problem{Required: map[string]string{"": "rack"}}
	kept, running := NewFilterCache(), []*corev1.Pod(nil)
	for round := range 200 {
		switch i := rng.IntN(nodes); {
		case rng.IntN(2) == 0:
			node := random(i)
			c.sched.Cache.UpdateNode(klog.Background(), objects[i], node)
			objects[i] = node
		case len(running) > 4:
			c.unbind(running[0])
			running = running[1:]
		default:
			w := wrappers.MakePod("", "ml").GPUs(rng.Int64N(3))
			if rng.IntN(2) == 0 {
				w.HostPort(80)
			}
			running = append(running, c.bind(w.Obj(), fmt.Sprintf("r%d", round), objects[i].Name))
		}
		c.refresh()
		numbers := func(cache *FilterCache) []any {
			w := c.worldWith([]*corev1.Pod{pod}, cache)
			inside, outside := w.LevelNodes(0, "rack")
			return []any{w.ResourceCapacity(0), w.Inventory(p), inside, outside}
		}
		if diff := cmp.Diff(numbers(NewFilterCache()), numbers(kept)); diff != "" {
			t.Fatalf("round %d (-counted again +kept):\n%s", round, diff)
		}
	}
}
