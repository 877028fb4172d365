// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
)

// fakeRack is a rack with nodes of 8 GPUs: in all, without pods, and cordoned ones, which are without pods.
type fakeRack struct{ nodes, free, cordoned int }

// racks are nodes in racks, of which some are in blocks. They implement placement.World and Capacities.
type racks struct {
	*imagined
	fakeCapacities
	names []string // of racks
}

const rackLevel = "topology.example.com/rack"

// misspelled is a level of which no node has the label.
const misspelled = "topology.example.com/rak"

// newRacks returns racks r0, r1, ..., and as many nodes in none, for classes of pods that request GPUs. All nodes are in one
// block for each two racks.
func newRacks(unlabeled int, list []fakeRack, gpus ...int64) racks {
	v := &Inventory{Resources: nodesOf(0, 0).nodes.Resources, Apart: make([][][]int32, len(gpus)), Levels: map[string][]placement.Area{rackLevel: {}, "block": {}}}
	w := racks{}
	total, free, closed := 0, 0, 0
	addNode := func(rack, block int, isFree, isClosed bool) {
		n := InventoryNode{Name: fmt.Sprint(len(v.Nodes)), Total: []int64{8, 64}, Free: []int64{0, 64}, Taken: make([]bool, len(gpus))}
		if isFree || isClosed {
			n.Free[0] = 8
		}
		for range gpus {
			n.Matches, n.Closed = append(n.Matches, true), append(n.Closed, isClosed)
		}
		v.Nodes = append(v.Nodes, n)
		v.Levels[rackLevel], v.Levels["block"] = append(v.Levels[rackLevel], placement.Area(rack)), append(v.Levels["block"], placement.Area(block))
	}
	for i, r := range list {
		w.names = append(w.names, fmt.Sprintf("r%d", i))
		for k := range r.nodes {
			addNode(i+1, i/2+1, k < r.free, k >= r.nodes-r.cordoned)
		}
		total, free, closed = total+r.nodes-r.cordoned, free+r.free, closed+r.cordoned
	}
	for range unlabeled {
		addNode(0, 0, true, false)
	}
	total, free = total+unlabeled, free+unlabeled
	for _, n := range gpus {
		v.Requests = append(v.Requests, []int64{n, 1})
		each := int(8 / n)
		r := ResourceCapacity{Resource: "nvidia.com/gpu", PerPod: n, Free: int64(8 * free), Total: int64(8 * total), Largest: 8, LargestFree: 8,
			Nodes: total, Offering: total, Slots: total * each, SlotsNow: free * each}
		if closed > 0 {
			u := cordoned(closed)
			u.Slots, u.SlotsNow = closed*each, closed*each
			r.Unavailable = []UnavailableNodes{u}
		}
		w.fakeCapacities = append(w.fakeCapacities, r)
	}
	w.imagined = v.imagineNodes(false, false)
	return w
}

func (w racks) AreaOf(level string, within placement.Area, node string) (placement.Area, bool) {
	return w.imagined.AreaOf(level, within, node)
}

// ResourceCapacity implements Capacities, also for the classes of Within.
func (w racks) ResourceCapacity(class int) ResourceCapacity {
	if class < len(w.fakeCapacities) {
		return w.fakeCapacities[class]
	}
	for at, number := range w.confined {
		if number != class {
			continue
		}
		r := ResourceCapacity{Resource: "nvidia.com/gpu", PerPod: w.fakeCapacities[at.class].PerPod}
		var closed UnavailableNodes
		for _, i := range w.nodesIn(at.area) {
			free := w.of.Nodes[i].Free[0]
			if w.of.Nodes[i].Closed[at.class] {
				closed = cordoned(closed.Nodes + 1)
				closed.Slots, closed.SlotsNow = int(closed.Total/r.PerPod), int(closed.Free/r.PerPod)
				r.Unavailable = []UnavailableNodes{closed}
				continue
			}
			r.Nodes, r.Offering, r.Total, r.Free = r.Nodes+1, r.Offering+1, r.Total+8, r.Free+free
			r.Largest, r.LargestFree = 8, max(r.LargestFree, free)
			r.Slots, r.SlotsNow = r.Slots+int(8/r.PerPod), r.SlotsNow+int(free/r.PerPod)
		}
		return r
	}
	panic("no class of this world")
}

func (w racks) Inventory(placement.Problem) *Inventory { return w.of }

func (w racks) AreaName(a placement.Area) (key, value string) {
	if int(a) > len(w.names) {
		return "", "?"
	}
	return "rack", w.names[a-1]
}

func (w racks) LevelNodes(_ int, level string) (inside, outside int) {
	for _, domain := range w.of.Levels[level] {
		if domain != 0 {
			inside++
		}
	}
	return inside, len(w.of.Nodes) - inside
}

// explained plans a gang and returns why it cannot start.
func explained(t testing.TB, p placement.Problem, w racks) Refusal {
	t.Helper()
	_, short := placement.Minimum(p, w, placement.Budget{})
	if short == nil {
		t.Fatal("the gang can start")
	}
	return Explain(p, w, short)
}

// runningOn returns the problem after pods of a leaf were bound to nodes of the world.
func runningOn(p placement.Problem, leaf string, nodes ...int) placement.Problem {
	p.Have, p.Bound, p.Nodes = gang.Counts{leaf: len(nodes)}, gang.Counts{leaf: len(nodes)}, map[string][]string{}
	for _, i := range nodes {
		p.Nodes[leaf] = append(p.Nodes[leaf], fmt.Sprint(i)) // imagined nodes are called by their index
	}
	p.Pods[leaf] = p.Pods[leaf][len(nodes):]
	return p
}

func TestExplainLevels(t *testing.T) {
	t.Parallel()
	// inRacks returns a gang that needs some of its leaves, with so many pods each, of one class each or of the given ones. Each leaf
	// requires a rack.
	inRacks := func(need int, pods ...int) placement.Problem {
		p := placement.Problem{Pods: map[string][]placement.Pod{}, Required: map[string]string{}}
		var groups []gang.Node
		for i, n := range pods {
			name := string(rune('a' + i))
			groups = append(groups, leafNode(name, "", int32(n)))
			p.Pods[name], p.Required[name] = waiting(n, 0), rackLevel
		}
		p.Tree = build(t, int32(need), groups...)
		return p
	}
	whole := func(level string, pods int) placement.Problem {
		n := int32(pods)
		return placement.Problem{Tree: mustBuild(t, gang.Node{MinMember: &n}), Pods: map[string][]placement.Pod{"": waiting(pods, 0)}, Required: map[string]string{"": level}}
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
		racks     []fakeRack
		gpus      []int64
		reason    v2alpha2.Reason
		message   string // its beginning
	}{
		"enough is free, in several racks": {
			problem: whole(rackLevel, 8), racks: []fakeRack{{8, 4, 0}, {8, 6, 0}, {8, 2, 0}, {8, 3, 0}, {8, 0, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack has room for the gang (8 pods of 8 nvidia.com/gpu): rack r1 has room for 6, r0 for 4, r3 for 3, and 2 others for no more; the gang: 6 of 8 pods can be placed",
		},
		"of a sub-group, and nodes without the label are outside": {
			problem: inRacks(2, 2, 3), unlabeled: 12, racks: []fakeRack{{4, 2, 0}, {4, 2, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
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
			problem: whole(misspelled, 2), racks: []fakeRack{{8, 0, 0}}, gpus: []int64{4}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no node for the gang has label topology.example.com/rak: label the nodes (8 without), since it requires one rak",
		},
		"no node has the label of a sub-group, and no pod would fit": {
			problem: misspelledIn("b", inRacks(2, 2, 3)), racks: []fakeRack{{8, 0, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no node for b has label topology.example.com/rak: label the nodes (8 without), since it requires one rak; ",
		},
		"no node has the label of a sub-group that the gang can do without": {
			problem: misspelledIn("b", inRacks(1, 2, 3)), racks: []fakeRack{{4, 0, 0}}, reason: v2alpha2.ReasonInsufficientGPUs,
			message: "the gang needs 16 nvidia.com/gpu for 2 pods, 0 are free; ",
		},
		"no node has the label of the only sub-group that is small enough": {
			problem: misspelledIn("b", inRacks(1, 9, 3)), racks: []fakeRack{{4, 0, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no node for b has label topology.example.com/rak: label the nodes (4 without), since it requires one rak; ",
		},
		"no node has the label, and a pod is larger than any": {
			problem: whole(rackLevel, 2), unlabeled: 12, gpus: []int64{16}, reason: v2alpha2.ReasonTooLarge,
			message: "a pod of the gang needs 16 nvidia.com/gpu, the largest node it could use has 8; no node for the gang has label topology.example.com/rack: ",
		},
		"not even the largest rack would hold it": {
			problem: whole(rackLevel, 8), racks: []fakeRack{{4, 4, 0}, {6, 0, 0}, {5, 5, 0}}, reason: v2alpha2.ReasonTooLarge,
			message: "the largest rack, r1, would hold only 6 of the 8 pods of 8 nvidia.com/gpu that the gang needs in one rack if it was empty; " +
				"no rack has room for the gang (8 pods of 8 nvidia.com/gpu): rack r2 has room for 5, r0 for 4, and 1 other for no more",
		},
		"a sub-group is too large, and another is sufficient": {
			problem: inRacks(1, 8, 3), racks: []fakeRack{{4, 2, 0}, {4, 2, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack has room for a (8 pods of 8 nvidia.com/gpu): rack r0 has room for 2, r1 for 2; no rack has room for b (3 pods of 8 nvidia.com/gpu): rack r0 has room for 2, r1 for 2; ",
		},
		"each of two sub-groups would fit the only large rack": {
			problem: inRacks(2, 6, 6), racks: []fakeRack{{6, 6, 0}, {4, 4, 0}, {4, 4, 0}}, reason: v2alpha2.ReasonTooLarge,
			message: "the 12 pods that the gang needs would not fit in the domains of the topology levels that it requires if the nodes were empty; no rack has room for b (6 pods of 8 nvidia.com/gpu): rack r1 has room for 4, r2 for 4",
		},
		"no block has two racks": {
			problem: nested, racks: []fakeRack{{6, 6, 0}, {2, 2, 0}, {6, 6, 0}, {2, 2, 0}}, reason: v2alpha2.ReasonTooLarge,
			message: "the 8 pods that the gang needs would not fit in the domains of the topology levels that it requires if the nodes were empty; no ",
		},
		"no block has two racks now": {
			problem: nested, racks: []fakeRack{{4, 4, 0}, {4, 3, 0}, {4, 4, 0}, {4, 2, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no block has room for the gang (8 pods of 8 nvidia.com/gpu): block r0 has room for 7, r1 for 6; no rack has room for b (4 pods of 8 nvidia.com/gpu): rack ",
		},
		"a cordoned node of a rack that would be large enough": {
			problem: whole(rackLevel, 4), racks: []fakeRack{{4, 3, 1}, {4, 2, 0}}, reason: v2alpha2.ReasonNodesUnavailable,
			message: "1 node cordoned (n0; 8 nvidia.com/gpu, 8 free): uncordon it; with the room there, the 4 pods that the gang needs fit; " +
				"no rack has room for the gang (4 pods of 8 nvidia.com/gpu): rack r0 has room for 3, r1 for 2",
		},
		"a cordoned node of a rack where it does not help": {
			problem: whole(rackLevel, 4), racks: []fakeRack{{4, 1, 1}, {4, 3, 0}, {4, 0, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack has room for the gang (4 pods of 8 nvidia.com/gpu): rack r1 has room for 3, r0 for 1, and 1 other for no more",
		},
		"not enough is free in all": {
			problem: whole(rackLevel, 8), racks: []fakeRack{{8, 4, 0}, {8, 2, 0}}, reason: v2alpha2.ReasonInsufficientGPUs,
			message: "the gang needs 64 nvidia.com/gpu for 8 pods, 48 are free; the gang: 6 of 8 pods can be placed",
		},
		"nothing is free in any rack": {
			problem: whole(rackLevel, 2), unlabeled: 2, racks: []fakeRack{{2, 0, 0}, {2, 0, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack has room for the gang (2 pods of 8 nvidia.com/gpu): none of 2 has room for one; 2 nodes without label topology.example.com/rack are outside",
		},
		"it runs in a rack that is full": {
			problem: runningOn(whole(rackLevel, 4), "", 0, 1), racks: []fakeRack{{4, 0, 0}, {4, 4, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the gang needs 16 more nvidia.com/gpu in rack r0, where it runs, for 2 more pods of 8 nvidia.com/gpu: there is room for 0",
		},
		"it runs in a rack that would be too small if it was empty": { // restarted, it could run in the other one
			problem: runningOn(whole(rackLevel, 4), "", 0), racks: []fakeRack{{2, 0, 0}, {8, 4, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the gang needs 24 more nvidia.com/gpu in rack r0, where it runs, for 3 more pods of 8 nvidia.com/gpu: there is room for 0",
		},
		"it runs in a rack with too few free GPUs": {
			problem: runningOn(whole(rackLevel, 5), "", 3, 4), racks: []fakeRack{{3, 3, 0}, {4, 2, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the gang needs 8 more nvidia.com/gpu in rack r1, where it runs, for 3 more pods of 8 nvidia.com/gpu: there is room for 2",
		},
		"it runs in a rack with enough free GPUs for the larger ones of its pods": {
			problem: runningOn(mixed(), "", 0), racks: []fakeRack{{4, 3, 0}, {4, 4, 0}}, gpus: []int64{5, 8}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the gang needs room for 4 more pods, 2 of them of 8 nvidia.com/gpu in rack r0, where it runs: by amounts alone, there is room for 3",
		},
		"it runs in two racks": {
			problem: runningOn(whole(rackLevel, 4), "", 0, 4), racks: []fakeRack{{4, 3, 0}, {4, 3, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the pods of the gang do not run in one rack, which it requires: no pod is added until they are deleted and start together",
		},
		"it runs outside of any rack": {
			problem: runningOn(whole(rackLevel, 4), "", 4), unlabeled: 1, racks: []fakeRack{{4, 4, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the pods of the gang do not run in one rack, which it requires: no pod is added until they are deleted and start together",
		},
		"it runs on a node that is gone": {
			problem: runningOn(whole(rackLevel, 4), "", 99), racks: []fakeRack{{4, 4, 0}}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "the pods of the gang that run are on nodes that are gone: until they are deleted, it is not known in which rack it may have more",
		},
		"pods of two sizes": {
			problem: mixed(), racks: []fakeRack{{4, 2, 0}, {4, 3, 0}}, gpus: []int64{2, 8}, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no rack takes the gang (5 pods, 3 of them of 8 nvidia.com/gpu): by amounts alone, rack r1 has room for 3, r0 for 2",
		},
		"a level whose domains are nodes": {
			problem: whole("kubernetes.io/hostname", 2), unlabeled: 3, reason: v2alpha2.ReasonTopologyUnavailable,
			message: "no node for the gang has label kubernetes.io/hostname: label the nodes (3 without), since it requires one node",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.gpus == nil {
				tc.gpus = []int64{8}
			}
			got := explained(t, tc.problem, newRacks(tc.unlabeled, tc.racks, tc.gpus...))
			if got.Reason != tc.reason || !strings.HasPrefix(got.Message, tc.message) {
				t.Errorf("%s: %s\nwant %s: %s", got.Reason, got.Message, tc.reason, tc.message)
			}
		})
	}
}

func TestExplainSurplusWithLevels(t *testing.T) {
	t.Parallel()
	one, two := int32(1), int32(2)
	tree := build(t, 1, gang.Node{Name: "a", MinMember: &two}, gang.Node{Name: "b", MinMember: &two}, gang.Node{Name: "c"}, leafNode("c-0", "c", 1),
		gang.Node{Name: "m", MinMember: &two}, gang.Node{Name: "d"}, leafNode("d-0", "d", 1), leafNode("d-1", "d", 1),
		gang.Node{Name: "e", MinSubGroup: &one}, leafNode("e-0", "e", 1), leafNode("e-1", "e", 1))
	required := map[string]string{"a": rackLevel, "b": rackLevel, "c": "block", "m": misspelled, "d-1": misspelled, "e-1": misspelled}
	const torn = "the pods of %s do not run in one %s, which it requires: no pod is added until they are deleted and start together"
	for name, tc := range map[string]struct {
		runs  map[string][]int // by leaf: the nodes
		pods  map[string][]placement.Pod
		racks []fakeRack
		want  Refusal
	}{
		"a sub-group finds no rack": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"b": waiting(2, 0)}, []fakeRack{{4, 1, 0}, {4, 1, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "b needs 2 pods, and the room there is does not fit them in one rack"}},
		"single pods join their sub-group": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"a": waiting(3, 0)}, []fakeRack{{4, 0, 0}, {4, 3, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "a needs 8 nvidia.com/gpu for each of 3 pods, 0 are free in rack r0, where it runs"}},
		"a sub-group that lost pods": {map[string][]int{"c-0": {4}, "b": {0}}, map[string][]placement.Pod{"b": waiting(1, 0)}, []fakeRack{{4, 0, 0}, {4, 3, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "b needs 8 nvidia.com/gpu for 1 pod, 0 are free in rack r0, where it runs"}},
		"a node of the rack is cordoned": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"a": waiting(1, 0)}, []fakeRack{{4, 0, 1}, {4, 3, 0}},
			Refusal{Reason: v2alpha2.ReasonNodesUnavailable, Message: "a cannot be placed: 1 node cordoned (n0; 8 nvidia.com/gpu, 8 free): uncordon it"}},
		"single pods would fit their rack": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"a": waiting(1, 0)}, []fakeRack{{4, 2, 0}, {4, 3, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "a needs 1 pod, and the room there is does not fit them in rack r0, where it runs"}},
		"single pods join the sub-group above": {map[string][]int{"c-0": {0}}, map[string][]placement.Pod{"c-0": waiting(1, 0)}, []fakeRack{{4, 0, 0}, {4, 0, 0}, {4, 4, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "c-0 needs 8 nvidia.com/gpu for 1 pod, 0 are free in block r0, where it runs"}},
		"pods of the sub-group above have ended": {map[string][]int{"c-0": nil}, map[string][]placement.Pod{"c-0": waiting(1, 0)}, []fakeRack{{4, 4, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: "c-0 needs 1 pod, and the room there is does not fit them in the block of c"}},
		"nothing is free at all": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"b": waiting(2, 0)}, []fakeRack{{4, 0, 0}},
			Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "b needs 16 nvidia.com/gpu for 2 pods, 0 are free"}},
		"single pods of a sub-group in two racks": {map[string][]int{"a": {0, 4}}, map[string][]placement.Pod{"a": waiting(3, 0)}, []fakeRack{{4, 0, 0}, {4, 3, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: fmt.Sprintf(torn, "a", "rack")}},
		"a sub-group in two racks, and nothing is free": {map[string][]int{"a": {0, 4}}, map[string][]placement.Pod{"a": waiting(3, 0)}, []fakeRack{{4, 0, 0}, {4, 0, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: fmt.Sprintf(torn, "a", "rack")}},
		"below a group in two blocks": {map[string][]int{"c-0": {0, 8}}, map[string][]placement.Pod{"c-0": waiting(1, 0)}, []fakeRack{{4, 0, 0}, {4, 0, 0}, {4, 4, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: fmt.Sprintf(torn, "c", "block")}},
		"a sub-group in two racks, and another without room": {map[string][]int{"a": {0, 4}}, map[string][]placement.Pod{"a": waiting(1, 0), "b": waiting(2, 0)}, []fakeRack{{4, 1, 0}, {4, 0, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: fmt.Sprintf(torn, "a", "rack") + "; b needs 16 nvidia.com/gpu for 2 pods, 8 are free"}},
		"a sub-group in two racks, with pods larger than any node": {map[string][]int{"a": {0, 4}}, map[string][]placement.Pod{"a": waiting(1, 1)}, []fakeRack{{4, 4, 0}, {4, 4, 0}},
			Refusal{Reason: v2alpha2.ReasonTooLarge, Message: "a has pods that need 16 nvidia.com/gpu each, the largest node they could use has 8"}},
		"a sub-group on nodes that are gone": {map[string][]int{"a": {98, 99}}, map[string][]placement.Pod{"a": waiting(1, 0)}, []fakeRack{{4, 4, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable,
				Message: "the pods of a that run are on nodes that are gone: until they are deleted, it is not known in which rack it may have more"}},
		"no node has the label of a sub-group, and nothing is free": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"m": waiting(2, 0)}, []fakeRack{{4, 0, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable,
				Message: "no node for m has label topology.example.com/rak: label the nodes (4 without), since it requires one rak"}},
		"no node has the label of a part, and nothing is free": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"d-0": waiting(1, 0), "d-1": waiting(1, 0)}, []fakeRack{{4, 0, 0}},
			Refusal{Reason: v2alpha2.ReasonTopologyUnavailable,
				Message: "no node for d-1 has label topology.example.com/rak: label the nodes (4 without), since it requires one rak"}},
		"no node has the label of a part that it can do without": {map[string][]int{"a": {0, 1}}, map[string][]placement.Pod{"e-0": waiting(1, 0), "e-1": waiting(1, 0)}, []fakeRack{{4, 0, 0}},
			Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "e needs 8 nvidia.com/gpu for 1 pod, 0 are free"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := placement.Problem{Tree: tree, Have: gang.Counts{}, Pods: tc.pods, Required: required, Nodes: map[string][]string{}}
			for leaf, nodes := range tc.runs {
				p.Have[leaf] = max(len(nodes), 1)
				for _, i := range nodes {
					p.Nodes[leaf] = append(p.Nodes[leaf], fmt.Sprint(i))
				}
			}
			w := newRacks(0, tc.racks, 8, 16)
			// The sub-groups that run need room in their rack, that which does not run may be started.
			tc.want.NoNodeHelps = !strings.Contains(tc.want.Message, "b needs 16 nvidia.com/gpu") && !strings.Contains(tc.want.Message, "e needs")
			if diff := cmp.Diff(tc.want, ExplainSurplus(p, placement.Problem{}, w)); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTooLargeWithLevelsIsExact: gangs of like pods, in sub-groups each of which requires a rack, are too large if and only if no
// choice of sub-groups and racks holds them when all nodes are empty.
func TestTooLargeWithLevelsIsExact(t *testing.T) {
	t.Parallel()
	seen := map[v2alpha2.Reason]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		list, open := make([]fakeRack, 1+r.IntN(4)), []int{}
		for i := range list {
			n := 1 + r.IntN(5)
			list[i] = fakeRack{nodes: n, cordoned: r.IntN(2) * r.IntN(n+1)}
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
		p.Tree = build(t, int32(need), groups...)
		w := newRacks(r.IntN(2)*r.IntN(9), list, 8)
		_, short := placement.Minimum(p, w, placement.Budget{})
		if short == nil {
			continue
		}
		got := Explain(p, w, short)
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
	p := placement.Problem{Tree: build(t, 1, groups...), Pods: map[string][]placement.Pod{long(7): waiting(3, 0)}, Required: map[string]string{long(7): level}}
	list := make([]fakeRack, 10_000)
	for i := range list {
		list[i] = fakeRack{nodes: 3, free: 2}
	}
	for name, unlabeled := range map[string]bool{"some nodes have the labels": false, "no node has the labels": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRacks(1, list, 8)
			for i := range w.names {
				w.names[i] = strings.Repeat("v", 63)
			}
			w.of.Levels[level] = w.of.Levels[rackLevel]
			if unlabeled {
				w.of.Levels[level] = make([]placement.Area, len(w.of.Nodes))
			}
			got := explained(t, p, w)
			if n := utf8.RuneCountInString(got.Message); n > message.MaxCondition || n < message.MaxCondition/2 || got.Reason != v2alpha2.ReasonTopologyUnavailable {
				t.Errorf("%s, %d characters: %s", got.Reason, n, got.Message)
			}
		})
	}
}

func TestLevelName(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]string{
		"rack": "rack", rackLevel: "rack", "topology.kubernetes.io/zone": "zone", "kubernetes.io/hostname": "node",
		"topology.example.com/block," + rackLevel: "rack", "a,kubernetes.io/hostname": "node",
	} {
		if got := levelName(level); got != want {
			t.Errorf("levelName(%q) = %q, want %q", level, got, want)
		}
	}
}

// BenchmarkExplainLevels is what the reason of a gang of 64 costs that requires one of 312 racks of 16 nodes, without the copy of
// the nodes.
func BenchmarkExplainLevels(b *testing.B) {
	list := make([]fakeRack, 312)
	for i := range list {
		list[i] = fakeRack{nodes: 16, free: 7}
	}
	n := int32(64)
	tree, err := gang.Build(gang.Node{MinMember: &n}, nil)
	if err != nil {
		b.Fatal(err)
	}
	p := placement.Problem{Tree: tree, Pods: map[string][]placement.Pod{"": waiting(64, 0)}, Required: map[string]string{"": rackLevel}}
	w := newRacks(0, list, 1)
	_, short := placement.Minimum(p, w, placement.Budget{})
	for b.Loop() {
		Explain(p, w, short)
	}
}
