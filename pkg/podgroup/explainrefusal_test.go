// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
)

// fakeCapacities has a capacity per class.
type fakeCapacities []ResourceCapacity

func (f fakeCapacities) ResourceCapacity(class int) ResourceCapacity { return f[class] }

func (f fakeCapacities) HeldByOthers([]int, corev1.ResourceName) Held { return Held{} }

func (f fakeCapacities) AreaName(placement.Area) (key, value string) { return "", "" }

func (f fakeCapacities) LevelNodes(int, string) (inside, outside int) { return 0, 0 }

func (f fakeCapacities) Imagine(_ []int, empty, open bool) Imagined {
	return &fakeImagined{fakeCapacities: f, empty: empty, open: open, pods: make([]int, len(f))}
}

// fakeImagined are capacities of which the amounts of one resource are on the same nodes for all classes.
type fakeImagined struct {
	fakeCapacities
	placement.World

	empty, open bool
	pods        []int // that are placed, by class
	order       []int // their classes
}

func (v *fakeImagined) room(class int) (slots int, amount, largest int64) {
	r := v.fakeCapacities[class]
	if v.open {
		r = r.withUnavailable()
	}
	if v.empty {
		return r.Slots, r.Total, r.Largest
	}
	return r.SlotsNow, r.Free, r.LargestFree
}

func (v *fakeImagined) Resources() (names []corev1.ResourceName) {
	for _, r := range v.fakeCapacities {
		if !slices.Contains(names, r.Resource) {
			names = append(names, r.Resource)
		}
	}
	return names
}

func (v *fakeImagined) Uses(class int) []int64 {
	uses := make([]int64, len(v.Resources()))
	uses[slices.Index(v.Resources(), v.fakeCapacities[class].Resource)] = v.fakeCapacities[class].PerPod
	return uses
}

func (v *fakeImagined) Room(classes []int) (sum, largest []int64) {
	sum, largest = make([]int64, len(v.Resources())), make([]int64, len(v.Resources()))
	for _, class := range classes {
		k := slices.Index(v.Resources(), v.fakeCapacities[class].Resource)
		_, amount, most := v.room(class)
		sum[k], largest[k] = max(sum[k], amount), max(largest[k], most)
	}
	return sum, largest
}

func (v *fakeImagined) MostPods() int { return 1000 }

func (f fakeCapacities) AreApart(class int) bool { return f[class].Apart != "" }

func (v *fakeImagined) Kind(int) placement.Kind { return placement.Independent }

func (v *fakeImagined) Nodes(int, int) []string { return nil }

func (v *fakeImagined) Weight(class int) int64 { return v.fakeCapacities[class].PerPod }

func (v *fakeImagined) Capacity(class int) placement.Capacity {
	slots, _, _ := v.room(class)
	return placement.Capacity{Nodes: v.fakeCapacities[class].Nodes, Pods: slots}
}

func (v *fakeImagined) Place(class int, _ string) (string, bool) {
	slots, left, _ := v.room(class)
	for other, pods := range v.pods {
		if v.fakeCapacities[other].Resource == v.fakeCapacities[class].Resource {
			left -= int64(pods) * v.fakeCapacities[other].PerPod
		}
	}
	if v.pods[class] == slots || left < v.fakeCapacities[class].PerPod {
		return "", false
	}
	v.pods[class]++
	v.order = append(v.order, class)
	return "node", true
}

func (v *fakeImagined) Undo(n int) {
	for range n {
		v.pods[v.order[len(v.order)-1]]--
		v.order = v.order[:len(v.order)-1]
	}
}

// withHeld are capacities of nodes on which pods of other priorities hold an amount.
type withHeld struct {
	fakeCapacities
	held Held
}

func (w withHeld) HeldByOthers([]int, corev1.ResourceName) Held { return w.held }

// room returns the capacity of five nodes of 8 GPUs for pods with the given number of GPUs.
func room(perPod, free int64) ResourceCapacity {
	return ResourceCapacity{Resource: "nvidia.com/gpu", PerPod: perPod, Free: free, Total: 40, Largest: 8, Nodes: 5,
		Slots: int(5 * (8 / perPod)), SlotsNow: int(free / perPod), LargestFree: min(8, free)}
}

// closed returns the capacity of two nodes of 8 GPUs for pods with the given number of GPUs, beside unavailable
// nodes.
func closed(perPod int64, nodes ...UnavailableNodes) ResourceCapacity {
	r := ResourceCapacity{Resource: "nvidia.com/gpu", PerPod: perPod, Free: 16, Total: 16, Largest: 8, Nodes: 2,
		Slots: int(2 * (8 / perPod)), SlotsNow: int(2 * (8 / perPod)), LargestFree: 8}
	for i := range nodes {
		nodes[i].Slots = nodes[i].Nodes * int(8/perPod)
		nodes[i].SlotsNow, nodes[i].Free = nodes[i].Slots, nodes[i].Total
	}
	r.Unavailable = nodes
	return r
}

// cordoned returns the given number of cordoned nodes of 8 GPUs.
func cordoned(nodes int) UnavailableNodes {
	names := []string{"n0", "n1"}[:min(2, nodes)]
	return UnavailableNodes{Cause: "cordoned", Advice: message.Plural(nodes, "uncordon it", "uncordon them"), Nodes: nodes, Names: names, Total: int64(8 * nodes), Free: int64(8 * nodes), Largest: 8, Slots: 8 * nodes}
}

func mustBuild(t *testing.T, root gang.Node) *gang.Tree {
	t.Helper()
	tree, err := gang.Build(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func build(t testing.TB, minSubGroup int32, groups ...gang.Node) *gang.Tree {
	t.Helper()
	tree, err := gang.Build(gang.Node{MinSubGroup: &minSubGroup}, groups)
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

func TestExplainSurplus(t *testing.T) {
	twoLeaves := build(t, 1, leafNode("a", "", 8), leafNode("b", "", 8))
	twoPairs := build(t, 1,
		gang.Node{Name: "p"}, leafNode("p-leader", "p", 1), leafNode("p-workers", "p", 4),
		gang.Node{Name: "q"}, leafNode("q-leader", "q", 1), leafNode("q-workers", "q", 4))
	for name, tc := range map[string]struct {
		problem    placement.Problem
		capacities fakeCapacities
		want       Refusal
	}{
		"a whole sub-group lacks CPU, and no GPUs": {
			problem:    placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8}, Pods: map[string][]placement.Pod{"b": waiting(8, 0)}},
			capacities: fakeCapacities{{Resource: "cpu", PerPod: 1000, Free: 6000, Total: 64_000, Largest: 8000, Nodes: 8, Slots: 64}},
			want:       Refusal{Reason: v2alpha2.ReasonInsufficientResources, Message: "b needs 8 cpu for 8 pods, 6 are free"},
		},
		"a whole sub-group lacks GPUs though single pods would fit": {
			problem:    placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8}, Pods: map[string][]placement.Pod{"b": waiting(8, 0)}},
			capacities: fakeCapacities{room(1, 6)},
			want:       Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "b needs 8 nvidia.com/gpu for 8 pods, 6 are free"},
		},
		"enough is free, but fragmented": {
			problem:    placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8}, Pods: map[string][]placement.Pod{"b": waiting(8, 0)}},
			capacities: fakeCapacities{room(2, 17)},
			want:       Refusal{Reason: v2alpha2.ReasonFragmented, Message: "b needs 8 pods, and the room there is does not fit them"},
		},
		"single pods above the minimum": {
			problem:    placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8}, Pods: map[string][]placement.Pod{"a": waiting(3, 0)}},
			capacities: fakeCapacities{room(1, 0)},
			want:       Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "a needs 1 nvidia.com/gpu for each of 3 pods, 0 are free"},
		},
		"single pods of two sizes": {
			problem: placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8},
				Pods: map[string][]placement.Pod{"a": slices.Concat(waiting(1, 1), waiting(2, 0), waiting(1, 1))}},
			capacities: fakeCapacities{room(1, 0), room(4, 0)},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs,
				Message: "a needs 4 nvidia.com/gpu for each of 2 pods, 0 are free; a needs 1 nvidia.com/gpu for each of 2 pods, 0 are free"},
		},
		"a sub-group with pods of two sizes": {
			problem: placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8, "b": 1},
				Pods: map[string][]placement.Pod{"b": slices.Concat(waiting(2, 1), waiting(6, 0))}},
			capacities: fakeCapacities{room(1, 9), room(4, 9)},
			want:       Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "b needs 10 nvidia.com/gpu for 7 pods, 9 are free"},
		},
		"a sub-group of which one pod fits no node": {
			problem: placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8},
				Pods: map[string][]placement.Pod{"b": slices.Concat(waiting(7, 0), waiting(1, 1))}},
			capacities: fakeCapacities{room(1, 9), {Resource: "nvidia.com/gpu", PerPod: 1}},
			want:       Refusal{Reason: v2alpha2.ReasonNoNodeMatches, Message: "b cannot be placed: no node matches a pod of b"},
		},
		"a sub-group whose pods do not all exist": {
			problem:    placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8}, Pods: map[string][]placement.Pod{"b": waiting(7, 0)}},
			capacities: fakeCapacities{room(1, 40)},
			want:       Refusal{Reason: v2alpha2.ReasonWaitingForPods, Message: "b lacks 1 pod that must be created first"},
		},
		"the unit that is easiest to help gives the reason": {
			problem: placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8},
				Pods: map[string][]placement.Pod{"a": waiting(1, 1), "b": waiting(8, 0)}},
			capacities: fakeCapacities{room(1, 6), {Resource: "nvidia.com/gpu", PerPod: 1}},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs,
				Message: "a cannot be placed: no node matches a pod of a; b needs 8 nvidia.com/gpu for 8 pods, 6 are free"},
		},
		"leader and workers are one unit": {
			problem: placement.Problem{Tree: twoPairs, Have: gang.Counts{"p-leader": 1, "p-workers": 4},
				Pods: map[string][]placement.Pod{"q-leader": waiting(1, 0), "q-workers": waiting(4, 0)}},
			capacities: fakeCapacities{room(1, 4)},
			want:       Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "q needs 5 nvidia.com/gpu for 5 pods, 4 are free"},
		},
		"a unit that would not fit empty nodes": {
			problem:    placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8}, Pods: map[string][]placement.Pod{"b": waiting(8, 0)}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 5, Free: 40, Total: 40, Largest: 8, Nodes: 5, Slots: 5}},
			want: Refusal{Reason: v2alpha2.ReasonTooLarge,
				Message: "b needs 8 pods, and the nodes that they may use would hold only 5 pods of 5 nvidia.com/gpu if they were empty"},
		},
		"a unit for which nodes are cordoned": {
			problem:    placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8}, Pods: map[string][]placement.Pod{"b": waiting(8, 0)}},
			capacities: fakeCapacities{closed(4, cordoned(3))},
			want: Refusal{Reason: v2alpha2.ReasonNodesUnavailable, Message: "b cannot be placed: 3 nodes cordoned (n0, n1, …; 24 nvidia.com/gpu, 24 free): uncordon them; " +
				"b needs 32 nvidia.com/gpu for 8 pods, the other nodes that they may use have 16 in all"},
		},
		"a unit that would fit on the free room of a cordoned node": {
			problem: placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8, "b": 7}, Pods: map[string][]placement.Pod{"b": waiting(1, 0)}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Free: 12, Total: 32, Largest: 8, LargestFree: 3, Nodes: 4, Slots: 8,
				Unavailable: []UnavailableNodes{{Cause: "cordoned", Advice: "uncordon it", Nodes: 1, Names: []string{"n4"}, Total: 8, Free: 4, Largest: 8, Slots: 2, SlotsNow: 1}}}},
			want: Refusal{Reason: v2alpha2.ReasonNodesUnavailable, Message: "b cannot be placed: 1 node cordoned (n4; 8 nvidia.com/gpu, 4 free): uncordon it; " +
				"b needs 4 nvidia.com/gpu for 1 pod, the other nodes that they may use have 12 free, at most 3 on one node"},
		},
		"a unit that names a claim that does not exist": {
			problem:    placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8}, Pods: map[string][]placement.Pod{"b": waiting(8, 0)}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 1, Refused: `persistentvolumeclaim "data" not found`, RefusedByClaims: true}},
			want: Refusal{Reason: v2alpha2.ReasonClaimsNotReady,
				Message: `b cannot be placed: persistentvolumeclaim "data" not found: create it, or correct the volumes of the pods of b`},
		},
		"a unit that requests a resource that no node offers": {
			problem:    placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8}, Pods: map[string][]placement.Pod{"b": waiting(8, 0)}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpus", PerPod: 1, Nodes: 5}},
			want: Refusal{Reason: v2alpha2.ReasonNoNodeMatches,
				Message: `b cannot be placed: no node offers nvidia.com/gpus: correct the name in the pods of b, or install the device plugin that provides it`},
		},
		"pods larger than any node": {
			problem:    placement.Problem{Tree: twoLeaves, Have: gang.Counts{"a": 8}, Pods: map[string][]placement.Pod{"b": waiting(8, 0)}},
			capacities: fakeCapacities{room(16, 40)},
			want:       Refusal{Reason: v2alpha2.ReasonTooLarge, Message: "b cannot be placed: a pod of b needs 16 nvidia.com/gpu, the largest node it could use has 8"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, ExplainSurplus(tc.problem, placement.Problem{}, struct {
				Capacities
				placement.World
			}{tc.capacities, nil})); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	full := &placement.Refusal{Reasons: map[string]int{"Insufficient nvidia.com/gpu": 5}}
	tainted := &placement.Refusal{Reasons: map[string]int{"Insufficient nvidia.com/gpu": 3, "untolerated taint": 2}}
	tree := build(t, 2,
		gang.Node{Name: "p"}, leafNode("p-leader", "p", 1), leafNode("p-workers", "p", 4), leafNode("q", "", 8))
	// Two replicas of a leader and three workers, of which one is needed, and a leaf without GPUs.
	service := build(t, 2, gang.Node{Name: "x-web", MinMember: ptr.To[int32](1)},
		gang.Node{Name: "x-d", MinSubGroup: ptr.To[int32](1)},
		gang.Node{Name: "x-d-0", Parent: "x-d"}, leafNode("x-d-0-leader", "x-d-0", 1), leafNode("x-d-0-worker", "x-d-0", 3),
		gang.Node{Name: "x-d-1", Parent: "x-d"}, leafNode("x-d-1-leader", "x-d-1", 1), leafNode("x-d-1-worker", "x-d-1", 3))
	servicePods := map[string][]placement.Pod{"x-web": waiting(1, 1), "x-d-0-leader": waiting(1, 0), "x-d-0-worker": waiting(3, 0),
		"x-d-1-leader": waiting(1, 0), "x-d-1-worker": waiting(3, 0)}
	cpus := ResourceCapacity{Resource: "cpu", PerPod: 1000, Free: 600000, Total: 640000, Largest: 128000, Nodes: 5, Slots: 640, SlotsNow: 600}
	workerLacks := placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{
		{Leaf: "x-d-0-worker", Need: 3, Available: 3, Placed: 2, Refusal: full}}}
	flatTree := mustBuild(t, gang.Node{MinMember: ptr.To[int32](6)})
	flatLacks := placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 6, Available: 6, Placed: 5, Refusal: full}}}
	const flatSays = "the gang: 5 of 6 pods can be placed; 5 nodes: Insufficient nvidia.com/gpu"
	const workers = "x-d-0-worker: 2 of 3 pods can be placed; 5 nodes: Insufficient nvidia.com/gpu"
	for name, tc := range map[string]struct {
		problem    placement.Problem
		short      placement.Shortfall
		capacities fakeCapacities
		held       Held
		want       Refusal
	}{
		"each leaf has room enough by itself, all of them together have not": {
			problem:    placement.Problem{Tree: service, Pods: servicePods},
			short:      workerLacks,
			capacities: fakeCapacities{room(4, 12), cpus},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs,
				Message: "the gang needs 16 nvidia.com/gpu for 4 pods, 12 are free; " + workers},
		},
		"a leaf that has not enough room by itself": {
			problem:    placement.Problem{Tree: service, Pods: servicePods},
			short:      workerLacks,
			capacities: fakeCapacities{room(4, 8), cpus},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs,
				Message: "the gang needs 16 nvidia.com/gpu for 4 pods, 8 are free; " + workers},
		},
		"a pod that is larger than any node is the reason, whatever else is missing": {
			problem:    placement.Problem{Tree: service, Pods: servicePods},
			short:      workerLacks,
			capacities: fakeCapacities{room(9, 12), cpus},
			want: Refusal{Reason: v2alpha2.ReasonTooLarge,
				Message: "a pod of x-d-0-worker needs 9 nvidia.com/gpu, the largest node it could use has 8; " + workers},
		},
		"so is one that asks for more CPU than any node has": {
			problem:    placement.Problem{Tree: service, Pods: servicePods},
			short:      workerLacks,
			capacities: fakeCapacities{{Resource: "cpu", PerPod: 200_000, Free: 600_000, Total: 640_000, Largest: 128_000, Nodes: 5}, cpus},
			want: Refusal{Reason: v2alpha2.ReasonTooLarge,
				Message: "a pod of x-d-0-worker needs 200 cpu, the largest node it could use has 128; " + workers},
		},
		"or more memory": {
			problem:    placement.Problem{Tree: service, Pods: servicePods},
			short:      workerLacks,
			capacities: fakeCapacities{{Resource: "memory", PerPod: 4 << 40, Free: 1 << 40, Total: 5 << 40, Largest: 1 << 40, Nodes: 5}, cpus},
			want: Refusal{Reason: v2alpha2.ReasonTooLarge,
				Message: "a pod of x-d-0-worker needs 4Ti memory, the largest node it could use has 1Ti; " + workers},
		},
		"a replica that lacks a pod is not the one that counts": {
			problem: placement.Problem{Tree: service, Pods: map[string][]placement.Pod{"x-web": waiting(1, 1),
				"x-d-0-leader": waiting(1, 0), "x-d-0-worker": waiting(3, 0), "x-d-1-worker": waiting(3, 0)}},
			short:      workerLacks,
			capacities: fakeCapacities{room(4, 12), cpus},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs,
				Message: "the gang needs 16 nvidia.com/gpu for 4 pods, 12 are free; " + workers},
		},
		"a gang that lacks CPU lacks no GPUs": {
			problem: placement.Problem{Tree: service, Pods: servicePods},
			short:   workerLacks,
			capacities: fakeCapacities{
				{Resource: "cpu", PerPod: 4000, Free: 12_000, Total: 32_000, Largest: 8000, Nodes: 4, Slots: 8},
				{Resource: "cpu", PerPod: 1000, Free: 12_000, Total: 32_000, Largest: 8000, Nodes: 4, Slots: 32},
			},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientResources,
				Message: "the gang needs 17 cpu for 5 pods, 12 are free; " + workers},
		},
		"what is bound asks for nothing": {
			problem:    placement.Problem{Tree: service, Pods: servicePods, Have: gang.Counts{"x-d-0-leader": 1}},
			short:      workerLacks,
			capacities: fakeCapacities{room(4, 12), cpus},
			want:       Refusal{Reason: v2alpha2.ReasonFragmented, Message: workers},
		},
		"all of them together exceed the total": {
			problem:    placement.Problem{Tree: service, Pods: servicePods},
			short:      workerLacks,
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Free: 12, Total: 12, Largest: 8, Nodes: 2, Slots: 3}, cpus},
			want: Refusal{Reason: v2alpha2.ReasonTooLarge,
				Message: "the gang needs 16 nvidia.com/gpu for 4 pods, the nodes that they may use have 12 in all; " + workers},
		},
		"equal reasons of the nodes are written once for several leaves": {
			short: placement.Shortfall{
				Exhausted: true,
				Groups:    []placement.GroupShortfall{{Group: "", Need: 2, Can: 0}, {Group: "p", Need: 2, Can: 0}},
				Leaves: []placement.LeafShortfall{
					{Leaf: "p-leader", Need: 1, Available: 1, Refusal: full},
					{Leaf: "p-workers", Need: 4, Available: 4, Refusal: full},
					{Leaf: "q", Need: 8, Available: 8, Placed: 3, Refusal: tainted}},
			},
			capacities: fakeCapacities{room(1, 0)},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "the gang needs 13 nvidia.com/gpu for 13 pods, 0 are free; the gang: 0 of the 2 sub-groups it needs can be placed; " +
				"p-leader: 0 of 1 pods can be placed; p-workers: 0 of 4 pods can be placed; 5 nodes: Insufficient nvidia.com/gpu; " +
				"q: 3 of 8 pods can be placed; 3 nodes: Insufficient nvidia.com/gpu, 2 nodes: untolerated taint"},
		},
		"a leaf that no node matches comes first, because the list of a tree is long": {
			short: placement.Shortfall{
				Exhausted: true,
				Groups:    []placement.GroupShortfall{{Group: "", Need: 2, Can: 1}},
				Leaves:    []placement.LeafShortfall{{Leaf: "q", Need: 8, Available: 8, Refusal: tainted}},
			},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 1}},
			want: Refusal{Reason: v2alpha2.ReasonNoNodeMatches, Message: "no node matches a pod of q: 3 nodes: Insufficient nvidia.com/gpu, 2 nodes: untolerated taint; " +
				"the gang: 1 of the 2 sub-groups it needs can be placed; q: 0 of 8 pods can be placed"},
		},
		"enough in all, and too few nodes of the size of a pod": {
			problem:    placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(6, 0)}},
			short:      flatLacks,
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 5, Free: 40, Total: 40, Largest: 8, Nodes: 5, Slots: 5}},
			want: Refusal{Reason: v2alpha2.ReasonTooLarge,
				Message: "the gang needs 6 pods, and the nodes that they may use would hold only 5 pods of 5 nvidia.com/gpu if they were empty; " + flatSays},
		},
		"the same in two leaves": {
			problem: placement.Problem{Tree: build(t, 2, leafNode("p-workers", "", 3), leafNode("q", "", 3)),
				Pods: map[string][]placement.Pod{"p-workers": waiting(3, 0), "q": waiting(3, 0)}},
			short: placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{
				{Leaf: "q", Need: 3, Available: 3, Placed: 2, Refusal: full}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 5, Free: 40, Total: 40, Largest: 8, Nodes: 5, Slots: 5}},
			want: Refusal{Reason: v2alpha2.ReasonTooLarge,
				Message: "the gang needs 6 pods, and the nodes that they may use would hold only 5 pods of 5 nvidia.com/gpu if they were empty; " +
					"q: 2 of 3 pods can be placed; 5 nodes: Insufficient nvidia.com/gpu"},
		},
		"with what is bound, the rest would fit empty nodes": {
			problem:    placement.Problem{Tree: flatTree, Have: gang.Counts{"": 1}, Pods: map[string][]placement.Pod{"": waiting(5, 0)}},
			short:      placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 5, Available: 5, Placed: 4, Refusal: full}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 5, Free: 35, Total: 40, Largest: 8, LargestFree: 8, Nodes: 5, Slots: 5, SlotsNow: 4}},
			want: Refusal{Reason: v2alpha2.ReasonFragmented,
				Message: "the gang needs 5 nvidia.com/gpu on one node for each of 5 pods; 35 are free, which is room for 4 pods; " +
					"the gang: 4 of 5 pods can be placed; 5 nodes: Insufficient nvidia.com/gpu"},
		},
		"free in pieces that are too small": {
			problem:    placement.Problem{Tree: flatTree, Have: gang.Counts{"": 3}, Pods: map[string][]placement.Pod{"": waiting(3, 0)}},
			short:      placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 3, Available: 3, Refusal: full}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Free: 15, Total: 40, Largest: 8, LargestFree: 3, Nodes: 5, Slots: 10}},
			want: Refusal{Reason: v2alpha2.ReasonFragmented,
				Message: "the gang needs 4 nvidia.com/gpu on one node for each of 3 pods; 15 are free, at most 3 on one node; " +
					"5 nodes: Insufficient nvidia.com/gpu"},
		},
		"free in pieces that hold the pods: other rules refuse them": {
			problem: placement.Problem{Tree: flatTree, Have: gang.Counts{"": 3}, Pods: map[string][]placement.Pod{"": waiting(3, 0)}},
			short: placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 3, Available: 3,
				Refusal: &placement.Refusal{Reasons: map[string]int{"node(s) didn't match pod anti-affinity rules": 5}}}}},
			capacities: fakeCapacities{room(1, 15)},
			want: Refusal{Reason: v2alpha2.ReasonFragmented,
				Message: "the gang: 0 of 3 pods can be placed; 5 nodes: node(s) didn't match pod anti-affinity rules"},
		},
		"the only free node is cordoned": {
			problem: placement.Problem{Tree: flatTree, Have: gang.Counts{"": 4}, Pods: map[string][]placement.Pod{"": waiting(2, 0)}},
			short:   placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 2, Available: 2, Refusal: full}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Total: 32, Largest: 8, Nodes: 4, Slots: 8, Unavailable: []UnavailableNodes{
				{Cause: "cordoned", Advice: "uncordon it", Nodes: 1, Names: []string{"n0"}, Total: 8, Free: 8, Largest: 8, Slots: 2, SlotsNow: 2}}}},
			want: Refusal{Reason: v2alpha2.ReasonNodesUnavailable,
				Message: "1 node cordoned (n0; 8 nvidia.com/gpu, 8 free): uncordon it; the gang needs 8 nvidia.com/gpu for 2 pods, the other nodes that they may use have 0 free; " +
					"5 nodes: Insufficient nvidia.com/gpu"},
		},
		"the free node is cordoned, and the others have enough in all, in pieces that are too small": {
			problem: placement.Problem{Tree: flatTree, Have: gang.Counts{"": 4}, Pods: map[string][]placement.Pod{"": waiting(2, 0)}},
			short:   placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 2, Available: 2, Refusal: full}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Free: 18, LargestFree: 3, Total: 32, Largest: 8, Nodes: 4, Slots: 8, Unavailable: []UnavailableNodes{
				{Cause: "cordoned", Advice: "uncordon it", Nodes: 1, Names: []string{"n0"}, Total: 8, Free: 8, Largest: 8, Slots: 2, SlotsNow: 2}}}},
			want: Refusal{Reason: v2alpha2.ReasonNodesUnavailable,
				Message: "1 node cordoned (n0; 8 nvidia.com/gpu, 8 free): uncordon it; the gang needs 8 nvidia.com/gpu for 2 pods, the other nodes that they may use have 18 free, at most 3 on one node; " +
					"5 nodes: Insufficient nvidia.com/gpu"},
		},
		"too little in all, and in pieces that are too small": { // freeing the difference anywhere would not help
			problem:    placement.Problem{Tree: flatTree, Have: gang.Counts{"": 2}, Pods: map[string][]placement.Pod{"": waiting(4, 0)}},
			short:      placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 4, Available: 4, Refusal: full}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 8, Free: 18, LargestFree: 3, Total: 64, Largest: 8, Nodes: 8, Slots: 8}},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs,
				Message: "the gang needs 32 nvidia.com/gpu for 4 pods, 18 are free, at most 3 on one node; 5 nodes: Insufficient nvidia.com/gpu"},
		},
		"a leaf that is too large is one that the gang can do without": {
			problem: placement.Problem{Tree: build(t, 1, leafNode("p", "", 20), leafNode("q", "", 2)),
				Pods: map[string][]placement.Pod{"p": waiting(20, 0), "q": waiting(2, 0)}},
			short:      placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Leaf: "p", Need: 20, Available: 20, Refusal: full}, {Leaf: "q", Need: 2, Available: 2, Refusal: full}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Total: 32, Largest: 8, Nodes: 4, Slots: 8}},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs,
				Message: "the gang needs 8 nvidia.com/gpu for 2 pods, 0 are free; p: 0 of 20 pods can be placed; q: 0 of 2 pods can be placed; 5 nodes: Insufficient nvidia.com/gpu"},
		},
		"the only free node has the GPUs and the CPUs that are missing": {
			problem: placement.Problem{Tree: build(t, 2, leafNode("p", "", 1), leafNode("q", "", 1)),
				Pods: map[string][]placement.Pod{"p": waiting(1, 0), "q": waiting(1, 1)}},
			short: placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Leaf: "p", Need: 1, Available: 1, Refusal: full}}},
			capacities: fakeCapacities{
				{Resource: "nvidia.com/gpu", PerPod: 8, Total: 8, Largest: 8, Nodes: 1, Slots: 1, Unavailable: []UnavailableNodes{
					{Cause: "cordoned", Advice: "uncordon it", Nodes: 1, Names: []string{"n0"}, Total: 8, Free: 8, Largest: 8, Slots: 1, SlotsNow: 1}}},
				{Resource: "cpu", PerPod: 2000, Total: 8000, Largest: 8000, Nodes: 1, Slots: 4, Unavailable: []UnavailableNodes{
					{Cause: "cordoned", Advice: "uncordon it", Nodes: 1, Names: []string{"n0"}, Total: 8000, Free: 8000, Largest: 8000, Slots: 4, SlotsNow: 4}}}},
			want: Refusal{Reason: v2alpha2.ReasonNodesUnavailable,
				Message: "1 node cordoned (n0; 8 nvidia.com/gpu, 8 free): uncordon it; 1 node cordoned (n0; 8 cpu, 8 free): uncordon it; " +
					"the gang needs 8 nvidia.com/gpu for 1 pod, the other nodes that they may use have 0 free; " +
					"p: 0 of 1 pods can be placed; 5 nodes: Insufficient nvidia.com/gpu"},
		},
		"a cordoned node has something free, but not enough": {
			problem: placement.Problem{Tree: flatTree, Have: gang.Counts{"": 3}, Pods: map[string][]placement.Pod{"": waiting(3, 0)}},
			short:   placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 3, Available: 3, Refusal: full}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Total: 32, Largest: 8, Nodes: 4, Slots: 8, Unavailable: []UnavailableNodes{
				{Cause: "cordoned", Advice: "uncordon it", Nodes: 1, Names: []string{"n0"}, Total: 8, Free: 8, Largest: 8, Slots: 2, SlotsNow: 2}}}},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs,
				Message: "the gang needs 12 nvidia.com/gpu for 3 pods, 0 are free; 5 nodes: Insufficient nvidia.com/gpu"},
		},
		"a selector leaves out most nodes, and pods of lower priority hold what the others have": {
			problem: placement.Problem{Tree: flatTree, Have: gang.Counts{"": 4}, Pods: map[string][]placement.Pod{"": waiting(2, 0)}},
			short:   placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 2, Available: 2, Refusal: full}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Free: 3, Total: 8, Largest: 8, LargestFree: 3, Nodes: 1, Offering: 1, Slots: 2,
				Elsewhere: 4, Selection: "nodeSelector pool=a"}},
			held: Held{Lower: 5, Higher: 2},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs,
				Message: "the gang needs 8 nvidia.com/gpu for 2 pods, 3 are free on the nodes that they may use (1 of 5: nodeSelector pool=a), at most 3 on one node; " +
					"pods of lower priority hold 5; pods of higher priority hold 2; " +
					"5 nodes: Insufficient nvidia.com/gpu"},
		},
		"pods that exclude each other": {
			problem:    placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(6, 0)}},
			short:      flatLacks,
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 1, Free: 40, Total: 40, Largest: 8, LargestFree: 8, Nodes: 5, Slots: 5, SlotsNow: 5, Apart: "kubernetes.io/hostname"}},
			want: Refusal{Reason: v2alpha2.ReasonTooLarge,
				Message: "the gang needs 6 pods, and the nodes that they may use would hold only 5 pods of 1 nvidia.com/gpu " +
					"(their podAntiAffinity over kubernetes.io/hostname excludes more) if they were empty; " + flatSays},
		},
		"it would fit if nodes were not cordoned": {
			problem:    placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(6, 0)}},
			short:      flatLacks,
			capacities: fakeCapacities{closed(4, cordoned(3))},
			want: Refusal{Reason: v2alpha2.ReasonNodesUnavailable,
				Message: "3 nodes cordoned (n0, n1, …; 24 nvidia.com/gpu, 24 free): uncordon them; " +
					"the gang needs 24 nvidia.com/gpu for 6 pods, the other nodes that they may use have 16 in all; " + flatSays},
		},
		"the sizes of the nodes are what the cordon matters for": {
			problem:    placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(3, 0)}, Have: gang.Counts{"": 3}},
			short:      placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 3, Available: 3, Placed: 2, Refusal: full}}},
			capacities: fakeCapacities{closed(5, cordoned(3))},
			want: Refusal{Reason: v2alpha2.ReasonNodesUnavailable,
				Message: "3 nodes cordoned (n0, n1, …; 24 nvidia.com/gpu, 24 free): uncordon them; " +
					"the gang needs 3 pods, and the other nodes that they may use would hold only 2 pods of 5 nvidia.com/gpu if they were empty; " +
					"the gang: 2 of 3 pods can be placed; 5 nodes: Insufficient nvidia.com/gpu"},
		},
		"cordoned and tainted nodes, most first": {
			problem: placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(6, 0)}},
			short:   flatLacks,
			capacities: fakeCapacities{closed(4, cordoned(1), UnavailableNodes{Cause: "with taint team=ml:NoSchedule",
				Advice: "tolerate or remove it", Nodes: 2, Names: []string{"t0", "t1"}, Total: 16, Largest: 8, Slots: 4})},
			want: Refusal{Reason: v2alpha2.ReasonNodesUnavailable,
				Message: "2 nodes with taint team=ml:NoSchedule (t0, t1; 16 nvidia.com/gpu, 16 free): tolerate or remove it; " +
					"1 node cordoned (n0; 8 nvidia.com/gpu, 8 free): uncordon it; " +
					"the gang needs 24 nvidia.com/gpu for 6 pods, the other nodes that they may use have 16 in all; " + flatSays},
		},
		"cordoned nodes that would not be enough either": {
			problem:    placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(6, 0)}},
			short:      flatLacks,
			capacities: fakeCapacities{closed(8, cordoned(3))},
			want: Refusal{Reason: v2alpha2.ReasonTooLarge,
				Message: "the gang needs 48 nvidia.com/gpu for 6 pods, the nodes that they may use have 40 in all; " + flatSays},
		},
		"all nodes that match are cordoned": {
			problem: placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(6, 0)}},
			short: placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 6, Available: 6,
				Refusal: &placement.Refusal{Reasons: map[string]int{"cordoned": 3}}}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Unavailable: []UnavailableNodes{cordoned(3)}}},
			want: Refusal{Reason: v2alpha2.ReasonNodesUnavailable,
				Message: "3 nodes cordoned (n0, n1, …; 24 nvidia.com/gpu, 24 free): uncordon them; " +
					"the gang needs 24 nvidia.com/gpu for 6 pods, the other nodes that they may use have 0 in all; 3 nodes: cordoned"},
		},
		"a resource that no node offers": {
			problem:    placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(6, 0)}},
			short:      flatLacks,
			capacities: fakeCapacities{{Resource: "nvidia.com/gpus", PerPod: 4, Nodes: 5}},
			want: Refusal{Reason: v2alpha2.ReasonNoNodeMatches,
				Message: "no node offers nvidia.com/gpus: correct the name in the pods of the gang, or install the device plugin that provides it; " + flatSays},
		},
		"a resource that only nodes of other selectors offer": {
			problem:    placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(6, 0)}},
			short:      flatLacks,
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Nodes: 5, Elsewhere: 2}},
			want: Refusal{Reason: v2alpha2.ReasonNoNodeMatches,
				Message: "no node that matches the pods of the gang offers nvidia.com/gpu: change their selectors, affinity or tolerations, 2 other nodes have enough for a pod; " + flatSays},
		},
		"a claim that does not exist": {
			problem: placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(6, 0)}},
			short: placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 6, Available: 6,
				Refusal: &placement.Refusal{Reasons: map[string]int{`persistentvolumeclaim "data" not found`: 5}}}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Refused: `persistentvolumeclaim "data" not found`, RefusedByClaims: true}},
			want: Refusal{Reason: v2alpha2.ReasonClaimsNotReady,
				Message: `persistentvolumeclaim "data" not found: create it, or correct the volumes of the pods of the gang`},
		},
		"a claim that is not bound": {
			problem: placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(6, 0)}},
			short: placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 6, Available: 6,
				Refusal: &placement.Refusal{Reasons: map[string]int{"pod has unbound immediate PersistentVolumeClaims": 5}}}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Refused: "pod has unbound immediate PersistentVolumeClaims", RefusedByClaims: true}},
			want: Refusal{Reason: v2alpha2.ReasonClaimsNotReady,
				Message: `pod has unbound immediate PersistentVolumeClaims: see the claims of the pods of the gang`},
		},
		"a plugin that refuses the pods whatever the nodes": {
			problem: placement.Problem{Tree: flatTree, Pods: map[string][]placement.Pod{"": waiting(6, 0)}},
			short: placement.Shortfall{Exhausted: true, Leaves: []placement.LeafShortfall{{Need: 6, Available: 6,
				Refusal: &placement.Refusal{Reasons: map[string]int{"not today": 5}}}}},
			capacities: fakeCapacities{{Resource: "nvidia.com/gpu", PerPod: 4, Refused: "not today"}},
			want: Refusal{Reason: v2alpha2.ReasonNoNodeMatches,
				Message: `the pods of the gang are refused on every node: not today`},
		},
		"a search that was cut short is reported": {
			short: placement.Shortfall{
				Attempts: 7,
				Leaves:   []placement.LeafShortfall{{Leaf: "q", Need: 8, Available: 8, Placed: 3, Refusal: full}},
			},
			capacities: fakeCapacities{room(1, 3)},
			want: Refusal{Reason: v2alpha2.ReasonInsufficientGPUs,
				Message: "the gang needs 13 nvidia.com/gpu for 13 pods, 3 are free; q: 3 of 8 pods can be placed; 5 nodes: Insufficient nvidia.com/gpu; no placement was found in 7 attempts"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.problem.Tree == nil {
				tc.problem.Tree, tc.problem.Pods = tree, map[string][]placement.Pod{"p-leader": waiting(1, 0), "p-workers": waiting(4, 0), "q": waiting(8, 0)}
			}
			got := Explain(tc.problem, struct {
				withHeld
				placement.World
			}{withHeld: withHeld{tc.capacities, tc.held}}, &tc.short)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}
