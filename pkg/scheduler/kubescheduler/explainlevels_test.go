// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

// rack is a rack with nodes of 8 GPUs: in all, without pods, and cordoned ones, which are without pods.
type rack struct{ nodes, free, cordoned int }

const rackLevel = "topology.example.com/rack"

// misspelled is a level of which no node has the label.
const misspelled = "topology.example.com/rak"

// addRacks adds racks r0, r1, ... with nodes n0, n1, ..., and as many nodes in none. All nodes are in one block for
// each two racks.
func (c *cluster) addRacks(unlabeled int, list []rack) (remove func()) {
	c.t.Helper()
	logger := klog.Background()
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	add := func(n *wrappers.NodeWrapper, full bool) {
		node := n.GPUs(8).Obj()
		nodes = append(nodes, node)
		c.sched.Cache.AddNode(logger, node)
		if full {
			pods = append(pods, classPod("run-"+node.Name).GPUs(8).Node(node.Name).Obj())
			if err := c.sched.Cache.AddPod(logger, pods[len(pods)-1]); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	next := func() *wrappers.NodeWrapper { return wrappers.MakeNode(fmt.Sprintf("n%d", len(nodes))) }
	for i, r := range list {
		for k := range r.nodes {
			n, closed := next().Label(rackLevel, fmt.Sprintf("r%d", i)).Label("block", fmt.Sprintf("b%d", i/2)), k >= r.nodes-r.cordoned
			if closed {
				n.Unschedulable()
			}
			add(n, k >= r.free && !closed)
		}
	}
	for range unlabeled {
		add(next(), false)
	}
	c.refresh()
	return func() {
		for _, pod := range pods {
			if err := c.sched.Cache.RemovePod(logger, pod); err != nil {
				c.t.Fatal(err)
			}
		}
		for _, node := range nodes {
			if err := c.sched.Cache.RemoveNode(logger, node); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// newRacks returns a Snapshot of racks for classes of pods that request GPUs.
func newRacks(t testing.TB, unlabeled int, list []rack, gpus ...int64) *Snapshot {
	t.Helper()
	c := newCluster(t)
	c.addRacks(unlabeled, list)
	var classes []*corev1.Pod
	for i, n := range gpus {
		classes = append(classes, classPod(fmt.Sprintf("class-%d", i)).GPUs(n).Obj())
	}
	return c.world(classes...)
}

func buildTree(t testing.TB, root gang.Node, groups ...gang.Node) *gang.Tree {
	t.Helper()
	tree, err := gang.Build(root, groups)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func leafNode(name, parent string, minMember int32) gang.Node {
	return gang.Node{Name: name, Parent: parent, MinMember: &minMember}
}

func waiting(n, class int) []placement.Pod {
	pods := make([]placement.Pod, n)
	for i := range pods {
		pods[i].Class = class
	}
	return pods
}

// explained plans a gang and returns why it cannot start.
func explained(t testing.TB, p placement.Problem, w *Snapshot) podgroup.Refusal {
	t.Helper()
	_, short := placement.Minimum(p, w, placement.Budget{})
	if short == nil {
		t.Fatal("the gang can start")
	}
	return podgroup.Explain(p, w, short)
}

// boundTo returns the problem after pods of a leaf were bound to nodes.
func boundTo(p placement.Problem, leaf string, nodes ...int) placement.Problem {
	p.Have, p.Bound, p.Nodes = gang.Counts{leaf: len(nodes)}, gang.Counts{leaf: len(nodes)}, map[string][]string{}
	for _, i := range nodes {
		p.Nodes[leaf] = append(p.Nodes[leaf], fmt.Sprintf("n%d", i))
	}
	p.Pods[leaf] = p.Pods[leaf][len(nodes):]
	return p
}

func TestExplainLevels(t *testing.T) {
	t.Parallel()
	// inRacks returns a gang that needs some of its leaves, with so many pods each, of one class each or of the given
	// ones. Each leaf requires a rack.
	inRacks := func(need int, pods ...int) placement.Problem {
		p := placement.Problem{Pods: map[string][]placement.Pod{}, Required: map[string]string{}}
		var groups []gang.Node
		for i, n := range pods {
			name := string(rune('a' + i))
			groups = append(groups, leafNode(name, "", int32(n)))
			p.Pods[name], p.Required[name] = waiting(n, 0), rackLevel
		}
		p.Tree = buildTree(t, gang.Node{MinSubGroup: new(int32(need))}, groups...)
		return p
	}
	whole := func(level string, pods int) placement.Problem {
		n := int32(pods)
		return placement.Problem{Tree: buildTree(t, gang.Node{MinMember: &n}), Pods: map[string][]placement.Pod{"": waiting(pods, 0)}, Required: map[string]string{"": level}}
	}
	mixed := func() placement.Problem {
		p := whole(rackLevel, 5)
		for i := range 3 {
			p.Pods[""][i].Class = 1
		}
		return p
	}
	misspelledIn := func(leaf string, p placement.Problem) placement.Problem {
		p.Required[leaf] = misspelled
		return p
	}
	nested := inRacks(2, 4, 4)
	nested.Required[""] = "block"
	for name, tc := range map[string]struct {
		problem   placement.Problem
		unlabeled int
		racks     []rack
		gpus      []int64
		reason    v2alpha2.Reason
		message   string // its beginning
	}{
		"enough is free, in several racks": {
			problem: whole(rackLevel, 8), racks: []rack{{8, 4, 0}, {8, 6, 0}, {8, 2, 0}, {8, 3, 0}, {8, 0, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack has room for the gang (8 pods of 8 nvidia.com/gpu): rack r1 has room for 6, r0 for 4, r3 for 3, and 2 others for no more; the gang: 6 of 8 pods can be placed",
		},
		"of a sub-group, and nodes without the label are outside": {
			problem: inRacks(2, 2, 3), unlabeled: 12, racks: []rack{{4, 2, 0}, {4, 2, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack has room for b (3 pods of 8 nvidia.com/gpu): rack r1 has room for 2, and 1 other for no more; 12 nodes without label topology.example.com/rack are outside; " +
				"the gang: 1 of the 2 sub-groups it needs can be placed; b: 2 of 3 pods can be placed",
		},
		"no node has the label": {
			problem: whole(rackLevel, 2), unlabeled: 12, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no node for the gang has label topology.example.com/rack: label the nodes (12 without), since it requires one rack",
		},
		"no node has all labels": {
			problem: whole("block,"+rackLevel, 2), unlabeled: 2, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no node for the gang has all of the labels block, topology.example.com/rack: label the nodes (2 without), since it requires one rack",
		},
		"no node has the label, and no pod would fit": { // the search ends before it asks for domains
			problem: whole(misspelled, 2), racks: []rack{{8, 0, 0}}, gpus: []int64{4}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no node for the gang has label topology.example.com/rak: label the nodes (8 without), since it requires one rak",
		},
		"no node has the label of a sub-group, and no pod would fit": {
			problem: misspelledIn("b", inRacks(2, 2, 3)), racks: []rack{{8, 0, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no node for b has label topology.example.com/rak: label the nodes (8 without), since it requires one rak; ",
		},
		"no node has the label of a sub-group that the gang can do without": {
			problem: misspelledIn("b", inRacks(1, 2, 3)), racks: []rack{{4, 0, 0}}, reason: v2alpha2.ReasonInsufficientGPUs,
			message: "the gang needs 16 nvidia.com/gpu for 2 pods, 0 are free; ",
		},
		"no node has the label of the only sub-group that is small enough": {
			problem: misspelledIn("b", inRacks(1, 9, 3)), racks: []rack{{4, 0, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no node for b has label topology.example.com/rak: label the nodes (4 without), since it requires one rak; ",
		},
		"no node has the label, and a pod is larger than any": {
			problem: whole(rackLevel, 2), unlabeled: 12, gpus: []int64{16}, reason: v2alpha2.ReasonTooLarge,
			message: "a pod of the gang needs 16 nvidia.com/gpu, the largest node it could use has 8; ",
		},
		"not even the largest rack would hold it": {
			problem: whole(rackLevel, 8), racks: []rack{{4, 4, 0}, {6, 0, 0}, {5, 5, 0}}, reason: v2alpha2.ReasonTooLarge,
			message: "the largest rack, r1, would hold only 6 of the 8 pods of 8 nvidia.com/gpu that the gang needs in one rack if it was empty; " +
				"no rack has room for the gang (8 pods of 8 nvidia.com/gpu): rack r2 has room for 5, r0 for 4, and 1 other for no more",
		},
		"a sub-group is too large, and another is sufficient": {
			problem: inRacks(1, 8, 3), racks: []rack{{4, 2, 0}, {4, 2, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack has room for a (8 pods of 8 nvidia.com/gpu): rack r0 has room for 2, r1 for 2; no rack has room for b (3 pods of 8 nvidia.com/gpu): rack r0 has room for 2, r1 for 2; ",
		},
		"each of two sub-groups would fit the only large rack": {
			problem: inRacks(2, 6, 6), racks: []rack{{6, 6, 0}, {4, 4, 0}, {4, 4, 0}}, reason: v2alpha2.ReasonTooLarge,
			message: "the 12 pods that the gang needs would not fit in the domains of the topology levels that it requires if the nodes were empty; no rack has room for b (6 pods of 8 nvidia.com/gpu): rack r1 has room for 4, r2 for 4",
		},
		"no block has two racks": {
			problem: nested, racks: []rack{{6, 6, 0}, {2, 2, 0}, {6, 6, 0}, {2, 2, 0}}, reason: v2alpha2.ReasonTooLarge,
			message: "the 8 pods that the gang needs would not fit in the domains of the topology levels that it requires if the nodes were empty; no ",
		},
		"no block has two racks now": {
			problem: nested, racks: []rack{{4, 4, 0}, {4, 3, 0}, {4, 4, 0}, {4, 2, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no block has room for the gang (8 pods of 8 nvidia.com/gpu): block b0 has room for 7, b1 for 6; no rack has room for b (4 pods of 8 nvidia.com/gpu): rack ",
		},
		"a cordoned node of a rack that would be large enough": {
			problem: whole(rackLevel, 4), racks: []rack{{4, 3, 1}, {4, 2, 0}}, reason: v2alpha2.ReasonNodesUnavailable,
			message: "1 node cordoned (n3; 8 nvidia.com/gpu, 8 free): uncordon it; with the room there, the 4 pods that the gang needs fit; " +
				"no rack has room for the gang (4 pods of 8 nvidia.com/gpu): rack r0 has room for 3, r1 for 2",
		},
		"a cordoned node of a rack where it does not help": {
			problem: whole(rackLevel, 4), racks: []rack{{4, 1, 1}, {4, 3, 0}, {4, 0, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack has room for the gang (4 pods of 8 nvidia.com/gpu): rack r1 has room for 3, r0 for 1, and 1 other for no more",
		},
		"not enough is free in all": {
			problem: whole(rackLevel, 8), racks: []rack{{8, 4, 0}, {8, 2, 0}}, reason: v2alpha2.ReasonInsufficientGPUs,
			message: "the gang needs 64 nvidia.com/gpu for 8 pods, 48 are free; the gang: 6 of 8 pods can be placed",
		},
		"nothing is free in any rack": {
			problem: whole(rackLevel, 2), unlabeled: 2, racks: []rack{{2, 0, 0}, {2, 0, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack has room for the gang (2 pods of 8 nvidia.com/gpu): none of 2 has room for one; 2 nodes without label topology.example.com/rack are outside",
		},
		"it runs in a rack that is full": {
			problem: boundTo(whole(rackLevel, 4), "", 0, 1), racks: []rack{{4, 0, 0}, {4, 4, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the gang needs 16 more nvidia.com/gpu in rack r0, where it runs, for 2 more pods of 8 nvidia.com/gpu: there is room for 0",
		},
		"it runs in a rack that would be too small if it was empty": { // restarted, it could run in the other one
			problem: boundTo(whole(rackLevel, 4), "", 0), racks: []rack{{2, 0, 0}, {8, 4, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the gang needs 24 more nvidia.com/gpu in rack r0, where it runs, for 3 more pods of 8 nvidia.com/gpu: there is room for 0",
		},
		"it runs in a rack with too few free GPUs": {
			problem: boundTo(whole(rackLevel, 5), "", 3, 4), racks: []rack{{3, 3, 0}, {4, 2, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the gang needs 8 more nvidia.com/gpu in rack r1, where it runs, for 3 more pods of 8 nvidia.com/gpu: there is room for 2",
		},
		"it runs in a rack with enough free GPUs for the larger ones of its pods": {
			problem: boundTo(mixed(), "", 0), racks: []rack{{4, 3, 0}, {4, 4, 0}}, gpus: []int64{5, 8}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the gang needs room for 4 more pods, 2 of them of 8 nvidia.com/gpu in rack r0, where it runs: by amounts alone, there is room for 3",
		},
		"it runs in two racks": {
			problem: boundTo(whole(rackLevel, 4), "", 0, 4), racks: []rack{{4, 3, 0}, {4, 3, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the pods of the gang do not run in one rack, which it requires: no pod is added until they are deleted and start together",
		},
		"it runs outside of any rack": {
			problem: boundTo(whole(rackLevel, 4), "", 4), unlabeled: 1, racks: []rack{{4, 4, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the pods of the gang do not run in one rack, which it requires: no pod is added until they are deleted and start together",
		},
		"it runs on a node that is gone": {
			problem: boundTo(whole(rackLevel, 4), "", 99), racks: []rack{{4, 4, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the pods of the gang that run are on nodes that are gone: until they are deleted, it is not known in which rack it may have more",
		},
		"pods of two sizes": {
			problem: mixed(), racks: []rack{{4, 2, 0}, {4, 3, 0}}, gpus: []int64{2, 8}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack takes the gang (5 pods, 3 of them of 8 nvidia.com/gpu): by amounts alone, rack r1 has room for 3, r0 for 2",
		},
		"a level whose domains are nodes": {
			problem: whole(corev1.LabelHostname, 2), unlabeled: 3, reason: v2alpha2.ReasonTooLarge,
			message: "the largest node, n0, would hold only 1 of the 2 pods of 8 nvidia.com/gpu that the gang needs in one node if it was empty; ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.gpus == nil {
				tc.gpus = []int64{8}
			}
			got := explained(t, tc.problem, newRacks(t, tc.unlabeled, tc.racks, tc.gpus...))
			if got.Reason != tc.reason || !strings.HasPrefix(got.Message, tc.message) {
				t.Errorf("%s: %s\nwant %s: %s", got.Reason, got.Message, tc.reason, tc.message)
			}
		})
	}
}

func TestReasonOfSeveralLeaves(t *testing.T) {
	t.Parallel()
	// manyChoices is a gang of which a node holds two pods of the first class, or one of the other.
	manyChoices, nodes := placement.Problem{Pods: map[string][]placement.Pod{}}, []gang.Node(nil)
	for i := range 32 {
		name := fmt.Sprintf("l%d", i)
		nodes, manyChoices.Pods[name] = append(nodes, leafNode(name, "", 1)), waiting(1, min(i%4, 1))
	}
	manyChoices.Tree = buildTree(t, gang.Node{MinSubGroup: new(int32(13))}, nodes...)
	both := func(pods int32) placement.Problem {
		return placement.Problem{Tree: buildTree(t, gang.Node{}, leafNode("a", "", pods), leafNode("b", "", pods)),
			Pods: map[string][]placement.Pod{"a": waiting(int(pods), 0), "b": waiting(int(pods), 1)}}
	}
	oneOfTwo := placement.Problem{Tree: buildTree(t, gang.Node{MinSubGroup: new(int32(1))}, leafNode("p", "", 20), leafNode("q", "", 2)),
		Pods: map[string][]placement.Pod{"p": waiting(20, 0), "q": waiting(2, 0)}}
	type requests struct {
		gpus int64
		cpus string
	}
	for name, tc := range map[string]struct {
		problem placement.Problem
		nodes   rack
		running int64 // GPUs of a pod on each free node
		classes [2]requests
		reason  v2alpha2.Reason
		message string // its beginning
	}{
		"as many nodes as pods would be needed, of two sizes": {both(11), rack{20, 20, 0}, 0, [2]requests{{5, "1"}, {5, "2"}}, v2alpha2.ReasonTooLarge,
			"the gang needs 22 pods, and the nodes that they may use would hold only 20 of them if they were empty; "},
		"a choice of very many children": { // which a search that did not end would try for years
			manyChoices, rack{16, 8, 0}, 0, [2]requests{{4, "64"}, {1, "66"}}, v2alpha2.ReasonFragmented, "the gang: "},
		"a leaf that is too large is one that the gang can do without": {oneOfTwo, rack{4, 4, 0}, 5, [2]requests{{4, "1"}, {4, "1"}}, v2alpha2.ReasonFragmented,
			"q needs 4 nvidia.com/gpu on one node for each of 2 pods; 12 are free, at most 3 on one node; "},
		"both classes together are short": {both(2), rack{8, 1, 0}, 0, [2]requests{{4, "1"}, {8, "1"}}, v2alpha2.ReasonInsufficientGPUs,
			"the gang needs 24 nvidia.com/gpu for 4 pods, 8 are free; "},
		"both classes together are short, in pieces too small for either": {both(2), rack{8, 3, 0}, 5, [2]requests{{4, "1"}, {8, "1"}}, v2alpha2.ReasonInsufficientGPUs,
			"the gang needs 24 nvidia.com/gpu for 4 pods, 9 are free, at most 3 on one node; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.addRacks(0, []rack{tc.nodes})
			for i := range tc.nodes.free {
				if tc.running > 0 {
					c.bind(classPod("r").GPUs(tc.running).Obj(), fmt.Sprintf("r-%d", i), fmt.Sprintf("n%d", i))
				}
			}
			var classes []*corev1.Pod
			for i, r := range tc.classes {
				classes = append(classes, classPod(fmt.Sprintf("class-%d", i)).GPUs(r.gpus).CPU(r.cpus).Obj())
			}
			if got := explained(t, tc.problem, c.world(classes...)); got.Reason != tc.reason || !strings.HasPrefix(got.Message, tc.message) {
				t.Errorf("%s: %s\nwant %s: %s", got.Reason, got.Message, tc.reason, tc.message)
			}
		})
	}
}

func TestExplainSurplusWithLevels(t *testing.T) {
	t.Parallel()
	one, two := int32(1), int32(2)
	tree := buildTree(t, gang.Node{MinSubGroup: new(int32(1))}, gang.Node{Name: "a", MinMember: &two}, gang.Node{Name: "b", MinMember: &two}, gang.Node{Name: "c"}, leafNode("c-0", "c", 1),
		gang.Node{Name: "m", MinMember: &two}, gang.Node{Name: "d"}, leafNode("d-0", "d", 1), leafNode("d-1", "d", 1),
		gang.Node{Name: "e", MinSubGroup: &one}, leafNode("e-0", "e", 1), leafNode("e-1", "e", 1))
	required := map[string]string{"a": rackLevel, "b": rackLevel, "c": "block", "m": misspelled, "d-1": misspelled, "e-1": misspelled}
	const torn = "the pods of %s do not run in one %s, which it requires: no pod is added until they are deleted and start together"
	for name, tc := range map[string]struct {
		runs  map[string][]int // by leaf: the nodes
		pods  map[string][]placement.Pod
		racks []rack
		want  podgroup.Refusal
	}{
		"a sub-group finds no rack": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"b": waiting(2, 0)}, []rack{{4, 1, 0}, {4, 1, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "b needs 2 pods, and the room there is does not fit them in one rack"}},
		"single pods join their sub-group": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"a": waiting(3, 0)}, []rack{{4, 0, 0}, {4, 3, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "a needs 8 nvidia.com/gpu for each of 3 pods, 0 are free in rack r0, where it runs"}},
		"a sub-group that lost pods": {map[string][]int{"c-0": {4}, "b": {0}}, map[string][]placement.Pod{"b": waiting(1, 0)}, []rack{{4, 0, 0}, {4, 3, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "b needs 8 nvidia.com/gpu for 1 pod, 0 are free in rack r0, where it runs"}},
		"a node of the rack is cordoned": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"a": waiting(1, 0)}, []rack{{4, 0, 1}, {4, 3, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonNodesUnavailable, Message: "a cannot be placed: 1 node cordoned (n3; 8 nvidia.com/gpu, 8 free): uncordon it; " +
				"a needs 8 nvidia.com/gpu for 1 pod, the other nodes that they may use have 0 free in rack r0, where it runs"}},
		"single pods would fit their rack": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"a": waiting(1, 0)}, []rack{{4, 2, 0}, {4, 3, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "a needs 1 pod, and the room there is does not fit them in rack r0, where it runs"}},
		"single pods join the sub-group above": {map[string][]int{"c-0": {0}}, map[string][]placement.Pod{"c-0": waiting(1, 0)}, []rack{{4, 0, 0}, {4, 0, 0}, {4, 4, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "c-0 needs 8 nvidia.com/gpu for 1 pod, 0 are free in block b0, where it runs"}},
		"pods of the sub-group above have ended": {map[string][]int{"c-0": nil}, map[string][]placement.Pod{"c-0": waiting(1, 0)}, []rack{{4, 4, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "c-0 needs 1 pod, and the room there is does not fit them in the block of c"}},
		"nothing is free at all": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"b": waiting(2, 0)}, []rack{{4, 0, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "b needs 16 nvidia.com/gpu for 2 pods, 0 are free"}},
		"single pods of a sub-group in two racks": {map[string][]int{"a": {0, 4}}, map[string][]placement.Pod{"a": waiting(3, 0)}, []rack{{4, 0, 0}, {4, 3, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: fmt.Sprintf(torn, "a", "rack")}},
		"a sub-group in two racks, and nothing is free": {map[string][]int{"a": {0, 4}}, map[string][]placement.Pod{"a": waiting(3, 0)}, []rack{{4, 0, 0}, {4, 0, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: fmt.Sprintf(torn, "a", "rack")}},
		"below a group in two blocks": {map[string][]int{"c-0": {0, 8}}, map[string][]placement.Pod{"c-0": waiting(1, 0)}, []rack{{4, 0, 0}, {4, 0, 0}, {4, 4, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: fmt.Sprintf(torn, "c", "block")}},
		"a sub-group in two racks, and another without room": {map[string][]int{"a": {0, 4}}, map[string][]placement.Pod{"a": waiting(1, 0), "b": waiting(2, 0)}, []rack{{4, 1, 0}, {4, 0, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: fmt.Sprintf(torn, "a", "rack") + "; b needs 16 nvidia.com/gpu for 2 pods, 8 are free"}},
		"a sub-group in two racks, with pods larger than any node": {map[string][]int{"a": {0, 4}}, map[string][]placement.Pod{"a": waiting(1, 1)}, []rack{{4, 4, 0}, {4, 4, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTooLarge, Message: "a cannot be placed: a pod of a needs 16 nvidia.com/gpu, the largest node it could use has 8"}},
		"a sub-group on nodes that are gone": {map[string][]int{"a": {98, 99}}, map[string][]placement.Pod{"a": waiting(1, 0)}, []rack{{4, 4, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable,
				Message: "the pods of a that run are on nodes that are gone: until they are deleted, it is not known in which rack it may have more"}},
		"no node has the label of a sub-group, and nothing is free": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"m": waiting(2, 0)}, []rack{{4, 0, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable,
				Message: "no node for m has label topology.example.com/rak: label the nodes (4 without), since it requires one rak"}},
		"no node has the label of a part, and nothing is free": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"d-0": waiting(1, 0), "d-1": waiting(1, 0)}, []rack{{4, 0, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonTopologyUnavailable,
				Message: "no node for d-1 has label topology.example.com/rak: label the nodes (4 without), since it requires one rak"}},
		"no node has the label of a part that it can do without": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"e-0": waiting(1, 0), "e-1": waiting(1, 0)}, []rack{{4, 0, 0}},
			podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "e needs 8 nvidia.com/gpu for 1 pod, 0 are free"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := placement.Problem{Tree: tree, Have: gang.Counts{}, Pods: tc.pods, Required: required, Nodes: map[string][]string{}}
			for leaf, nodes := range tc.runs {
				p.Have[leaf] = max(len(nodes), 1)
				for _, i := range nodes {
					p.Nodes[leaf] = append(p.Nodes[leaf], fmt.Sprintf("n%d", i))
				}
			}
			w := newRacks(t, 0, tc.racks, 8, 16)
			// The sub-groups that run need room in their rack, that which does not run may be started.
			tc.want.NoNodeHelps = !strings.Contains(tc.want.Message, "b needs 16 nvidia.com/gpu") && !strings.Contains(tc.want.Message, "e needs")
			if diff := cmp.Diff(tc.want, podgroup.ExplainSurplus(p, placement.Problem{}, w)); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTooLargeWithLevelsIsExact: gangs of like pods, in sub-groups each of which requires a rack, are too large if and
// only if no choice of sub-groups and racks holds them when all nodes are empty.
func TestTooLargeWithLevelsIsExact(t *testing.T) {
	t.Parallel()
	c, seen := newCluster(t), map[v2alpha2.Reason]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		list, open := make([]rack, 1+r.IntN(4)), []int{}
		for i := range list {
			n := 1 + r.IntN(5)
			list[i] = rack{nodes: n, cordoned: r.IntN(2) * r.IntN(n+1)}
			list[i].free = r.IntN(n - list[i].cordoned + 1)
			open = append(open, n)
		}
		p := placement.Problem{Pods: map[string][]placement.Pod{}, Required: map[string]string{}}
		var groups []gang.Node
		var sizes []int
		for i := range 1 + r.IntN(3) {
			n, name := 1+r.IntN(5), string(rune('a'+i))
			groups, sizes = append(groups, leafNode(name, "", int32(n))), append(sizes, n)
			p.Pods[name], p.Required[name] = waiting(n, 0), rackLevel
		}
		need := 1 + r.IntN(len(groups))
		p.Tree = buildTree(t, gang.Node{MinSubGroup: new(int32(need))}, groups...)
		remove := c.addRacks(r.IntN(2)*r.IntN(9), list)
		w := c.world(classPod("a").GPUs(8).Obj())
		remove()
		_, short := placement.Minimum(p, w, placement.Budget{})
		if short == nil {
			continue
		}
		got := podgroup.Explain(p, w, short)
		seen[got.Reason]++
		if tooLarge := !racksHold(open, sizes, need); tooLarge != (got.Reason == v2alpha2.ReasonTooLarge) {
			t.Errorf("seed %d: %s: %s; too large: %t, %d of %v in %v", seed, got.Reason, got.Message, tooLarge, need, sizes, open)
		}
	}
	for _, reason := range []v2alpha2.Reason{v2alpha2.ReasonTooLarge, v2alpha2.ReasonTopologyUnavailable, v2alpha2.ReasonNodesUnavailable, v2alpha2.ReasonInsufficientGPUs} {
		if seen[reason] < 20 {
			t.Errorf("%s occurred %d times", reason, seen[reason])
		}
	}
}

// racksHold reports whether need of the sub-groups fit in racks with so many slots.
func racksHold(slots, sizes []int, need int) bool {
	if need == 0 {
		return true
	}
	if need > len(sizes) {
		return false
	}
	for i := range slots {
		if slots[i] >= sizes[0] {
			slots[i] -= sizes[0]
			holds := racksHold(slots, sizes[1:], need-1)
			slots[i] += sizes[0]
			if holds {
				return true
			}
		}
	}
	return racksHold(slots, sizes[1:], need)
}

// TestExplainLevelsIsBounded: names as long as the API allows, and thousands of domains.
func TestExplainLevelsIsBounded(t *testing.T) {
	t.Parallel()
	long := func(i int) string { return strings.Repeat("n", 62) + fmt.Sprint(i) }
	var groups []gang.Node
	for depth := range 8 {
		n := gang.Node{Name: long(depth)}
		if depth > 0 {
			n.Parent = long(depth - 1)
		}
		if depth == 7 {
			three := int32(3)
			n.MinMember = &three
		}
		groups = append(groups, n)
	}
	level := strings.Repeat(strings.Repeat("d", 253)+"/"+strings.Repeat("k", 63)+",", 15) + strings.Repeat("d", 253) + "/" + strings.Repeat("r", 63)
	p := placement.Problem{Tree: buildTree(t, gang.Node{MinSubGroup: new(int32(1))}, groups...), Pods: map[string][]placement.Pod{long(7): waiting(3, 0)}, Required: map[string]string{long(7): level}}
	for name, unlabeled := range map[string]bool{"some nodes have the labels": false, "no node has the labels": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []runtime.Object
			for i := range 900 {
				n := wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(8)
				for key := range strings.SplitSeq(level, ",") {
					if !unlabeled {
						n.Label(key, fmt.Sprintf("%s%03d", strings.Repeat("v", 60), i/3))
					}
				}
				objects = append(objects, n.Obj())
				if i%3 == 0 {
					objects = append(objects, classPod(fmt.Sprintf("run-%d", i)).GPUs(8).Node(fmt.Sprintf("n%d", i)).Obj())
				}
			}
			w := newCluster(t, objects...).world(classPod("a").GPUs(8).Obj())
			got := explained(t, p, w)
			if n := utf8.RuneCountInString(got.Message); n > message.MaxCondition || n < message.MaxCondition/2 || got.Reason != v2alpha2.ReasonTopologyUnavailable {
				t.Errorf("%s, %d characters: %s", got.Reason, n, got.Message)
			}
		})
	}
}

// TestExplainLevelsBesideFilters: what the numbers of a rack do not say.
func TestExplainLevelsBesideFilters(t *testing.T) {
	t.Parallel()
	n := int32(3)
	p := placement.Problem{Tree: buildTree(t, gang.Node{MinMember: &n}), Pods: map[string][]placement.Pod{"": waiting(3, 0)}, Required: map[string]string{"": rackLevel}}
	c := newCluster(t)
	c.addRacks(0, []rack{{3, 3, 0}, {3, 3, 0}})
	for i, node := range []string{"n0", "n3"} {
		c.bind(classPod("y").Obj(), fmt.Sprintf("y-%d", i), node)
	}
	want := "no rack takes the gang (3 pods of 8 nvidia.com/gpu): by amounts alone, rack r0 has room for 3, r1 for 3; " +
		"3 nodes: node(s) didn't match pod anti-affinity rules"
	got := explained(t, p, c.world(classPod("a").GPUs(8).ApartFrom(rackLevel, "app", "y").Obj()))
	if got.Reason != v2alpha2.ReasonFragmented || got.Message != want {
		t.Errorf("%s: %s\nwant Fragmented: %s", got.Reason, got.Message, want)
	}

	c = newCluster(t)
	c.addRacks(0, []rack{{3, 0, 0}, {4, 4, 0}})
	want = "the gang needs 16 more nvidia.com/gpu in rack r0, where it runs, for 2 more pods of 8 nvidia.com/gpu: there is room for 0"
	got = explained(t, boundTo(p, "", 0), c.world(classPod("a").GPUs(8).Spec(func(s *corev1.PodSpec) { s.Affinity = notOn("n0") }).Obj()))
	if got.Reason != v2alpha2.ReasonTopologyUnavailable || !strings.HasPrefix(got.Message, want) {
		t.Errorf("a pod runs on a node that no pod could use any more: %s: %s\nwant TopologyUnavailable: %s", got.Reason, got.Message, want)
	}
}

// notOn is required affinity to any other node.
func notOn(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{name}}}}}}}}
}

// TestNumbersFollowTheNodes: what an explanation counts is kept for nodes that do not change, and counted again for
// those that do.
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
			numbers := []any{w.ResourceCapacity(0), inside, outside}
			for _, empty := range []bool{false, true} {
				for _, open := range []bool{false, true} {
					v := w.Imagine([]int{0}, empty, open)
					sum, largest := v.Room([]int{0})
					numbers = append(numbers, sum, largest, v.Capacity(0), v.Rooms(0, "rack", 0), v.FreeIn("rack", 0))
				}
			}
			return numbers
		}
		if diff := cmp.Diff(numbers(NewFilterCache()), numbers(kept)); diff != "" {
			t.Fatalf("round %d (-counted again +kept):\n%s", round, diff)
		}
	}
}
