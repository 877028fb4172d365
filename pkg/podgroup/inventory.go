// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/placement"
)

// Inventory is a copy of the nodes in amounts, for the question whether a gang would fit if they were empty or open. It
// knows requests, which nodes match a class, and podAntiAffinity between the pods of one class. It does not know other
// rules, so it may hold more pods than the nodes do, and never fewer.
type Inventory struct {
	// Resources are the resources that the classes request; the number of pods is one of them. Amounts are as in
	// ResourceCapacity.
	Resources []corev1.ResourceName
	// Requests are the amounts that one pod requests, by class and resource.
	Requests [][]int64
	// Nodes are those that match a class, or would match it without a cordon or a taint, and those of placement.Problem.Nodes.
	Nodes []InventoryNode
	// Apart contains for each class and each topology key over which its pods exclude each other the domain of each node;
	// negative: the node has none.
	Apart [][][]int32
	// Levels contains for each topology level that a group requires the domain of each node, for AreaName; 0: the node is in
	// none.
	Levels map[string][]placement.Area
}

// Places is a resource of an Inventory for one class: the number of its pods that fit. With it an InventoryNode may be several nodes
// that are in the same domains: their sums alone would not say how many pods fit.
const Places corev1.ResourceName = ""

// InventoryNode is one node, or see Places. Total and Free are by resource, Matches and Closed by class.
type InventoryNode struct {
	Name        string // of a node of placement.Problem.Nodes; others need none
	Total, Free []int64
	// Matches: it would take pods of the class if it was large, empty and open enough. Closed: it is cordoned, not ready, or
	// has a taint that the class does not tolerate. Taken: as it is, it takes none, because a pod uses a host port.
	Matches, Closed, Taken []bool
}

// imagined is an Inventory in a certain state. It implements placement.World. The names of its nodes are their indices.
type imagined struct {
	of    *Inventory
	open  bool
	empty bool
	room  []int64    // by node, then by resource
	base  []int      // by class: the class of the Inventory, from which it differs only in the area
	order [][]int32  // by class: the nodes that take one pod if nothing is placed
	from  []int      // by class: all nodes before this one in order refuse the class
	used  [][][]bool // as Apart, by domain: a pod of the class is there
	stack []imaginedPod

	areas     []imaginedArea        // by placement.Area - 1
	divisions map[areaKey]*division // divide, as far as asked
	takers    map[classIn][][]int32 // takersIn, as far as asked
	rooms     map[classIn][]int     // Rooms, as far as asked: they do not depend on the pods that are placed
	confined  map[confinement]int   // number of a class
	useful    []int32               // nodes that are in order of any class
}

type imaginedPod struct {
	class int
	node  int32
}

// imagineNodes returns the nodes as they are or empty, without or with the closed ones.
func (v *Inventory) imagineNodes(empty, open bool) *imagined {
	classes := len(v.Requests)
	w := &imagined{of: v, open: open, empty: empty, room: make([]int64, 0, len(v.Nodes)*len(v.Resources)), base: make([]int, classes), order: make([][]int32, classes), from: make([]int, classes), used: make([][][]bool, classes),
		divisions: map[areaKey]*division{}, takers: map[classIn][][]int32{}, rooms: map[classIn][]int{}, confined: map[confinement]int{}}
	for i := range v.Nodes {
		w.room = append(w.room, w.firstRoom(int32(i))...)
	}
	takes := make([]bool, len(v.Nodes))
	for c := range v.Requests {
		w.base[c] = c
		for _, domains := range v.Apart[c] {
			most := int32(-1)
			for _, d := range domains {
				most = max(most, d)
			}
			w.used[c] = append(w.used[c], make([]bool, most+1))
		}
		w.order[c] = make([]int32, 0, len(v.Nodes))
		for i := range v.Nodes {
			if w.servesAny(i, []int{c}) && w.takesPod(c, int32(i)) {
				w.order[c] = append(w.order[c], int32(i))
				takes[i] = true
			}
		}
	}
	for i, useful := range takes {
		if useful {
			w.useful = append(w.useful, int32(i))
		}
	}
	return w
}

// sortNodes puts the nodes with the least of the class's main resource first, so that pods fill them. It must come before all
// questions about areas.
func (w *imagined) sortNodes() {
	for c, order := range w.order {
		main, _ := w.mainResource(c)
		byRoom := func(a, b int32) int { return cmp.Compare(w.roomOn(a)[main], w.roomOn(b)[main]) }
		if !slices.IsSortedFunc(order, byRoom) { // like nodes are
			slices.SortStableFunc(order, byRoom)
		}
	}
}

// indicesOf returns, for names of nodes by leaf, the names of the imagined nodes. Nodes that do not exist are left out.
func (v *Inventory) indicesOf(nodes map[string][]string) map[string][]string {
	index := map[string]string{}
	for _, names := range nodes {
		for _, name := range names {
			index[name] = ""
		}
	}
	for i := range v.Nodes {
		if _, wanted := index[v.Nodes[i].Name]; wanted {
			index[v.Nodes[i].Name] = strconv.Itoa(i)
		}
	}
	indices := make(map[string][]string, len(nodes))
	for leaf, names := range nodes {
		for _, name := range names {
			if index[name] != "" {
				indices[leaf] = append(indices[leaf], index[name])
			}
		}
	}
	return indices
}

// firstRoom returns the room on a node if nothing is placed, by resource.
func (w *imagined) firstRoom(node int32) []int64 {
	if w.empty {
		return w.of.Nodes[node].Total
	}
	return w.of.Nodes[node].Free
}

// roomOn returns the room on a node, by resource.
func (w *imagined) roomOn(node int32) []int64 {
	n := len(w.of.Resources)
	return w.room[int(node)*n:][:n]
}

// sumResource returns how much of a resource the nodes have that at least one of the classes may use.
func (w *imagined) sumResource(classes []int, resource int) int64 {
	sum := int64(0)
	for i := range w.of.Nodes {
		if w.servesAny(i, classes) {
			sum += w.roomOn(int32(i))[resource]
		}
	}
	return sum
}

// servesAny reports whether the node may take pods of at least one of the classes, if it has room.
func (w *imagined) servesAny(node int, classes []int) bool {
	n := &w.of.Nodes[node]
	for _, c := range classes {
		if n.Matches[c] && (w.open || !n.Closed[c]) && (w.empty || !n.Taken[c]) {
			return true
		}
	}
	return false
}

func (w *imagined) takesPod(class int, node int32) bool {
	room := w.roomOn(node)
	for r, request := range w.of.Requests[class] {
		if request > room[r] {
			return false
		}
	}
	for k, domains := range w.of.Apart[class] {
		if d := domains[node]; d >= 0 && w.used[class][k][d] {
			return false
		}
	}
	return true
}

// addPod adds (1) or removes (-1) a pod.
func (w *imagined) addPod(class int, node int32, sign int64) {
	room := w.roomOn(node)
	for r, request := range w.of.Requests[class] {
		room[r] -= sign * request
	}
	for k, domains := range w.of.Apart[class] {
		if d := domains[node]; d >= 0 {
			w.used[class][k][d] = sign > 0
		}
	}
}

// Place implements placement.World.
func (w *imagined) Place(class int, _ string) (string, bool) {
	order, base := w.order[class], w.base[class]
	for k := w.from[class]; k < len(order); k++ {
		if w.takesPod(base, order[k]) {
			w.from[class] = k
			w.addPod(base, order[k], 1)
			w.stack = append(w.stack, imaginedPod{base, order[k]})
			return strconv.Itoa(int(order[k])), true
		}
	}
	w.from[class] = len(order)
	return "", false
}

// Undo implements placement.World.
func (w *imagined) Undo(n int) {
	for range n {
		last := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		w.addPod(last.class, last.node, -1)
	}
	clear(w.from)
}

// Kind implements placement.World.
func (w *imagined) Kind(int) placement.Kind { return placement.Independent }

// Domains implements placement.World. No class has domains.
func (w *imagined) Domains(int, []int) []string { return nil }

// Nodes implements placement.World. No class has domains.
func (w *imagined) Nodes(int, int) []string { return nil }

// Open implements placement.World.
func (w *imagined) Open(int, string) bool { return true }

// Capacity implements placement.World.
func (w *imagined) Capacity(class int) placement.Capacity { return w.capacityOn(class, w.order[class]) }

// capacityOn returns the capacity of some of the nodes in order for a class.
func (w *imagined) capacityOn(class int, nodes []int32) placement.Capacity {
	class = w.base[class]
	pods := 0
	for _, i := range nodes {
		pods = min(pods+int(slotsIn(w.firstRoom(i), w.of.Requests[class])), math.MaxInt32)
	}
	for _, domains := range w.of.Apart[class] {
		seen, most := map[int32]bool{}, 0
		for _, i := range nodes {
			if d := domains[i]; d < 0 || !seen[d] {
				seen[d] = true
				most++
			}
		}
		if !slices.ContainsFunc(nodes, func(i int32) bool { return domains[i] < 0 }) {
			pods = min(pods, most)
		}
	}
	return placement.Capacity{Nodes: len(nodes), Pods: pods}
}

// slotsIn returns how many pods with these requests fit into the room, both by resource.
func slotsIn(room, requests []int64) int64 {
	slots := int64(math.MaxInt32)
	for r, request := range requests {
		if request > 0 {
			slots = min(slots, room[r]/request)
		}
	}
	return slots
}

// mainResource returns the resource of which a pod of the class requests the largest share, and the share in millionths, of the
// largest amount on any node.
func (w *imagined) mainResource(class int) (resource int, share int64) {
	for r, request := range w.of.Requests[class] {
		if request == 0 {
			continue
		}
		largest := int64(1)
		for i := range w.of.Nodes {
			largest = max(largest, w.of.Nodes[i].Total[r])
		}
		if of := int64(float64(request) / float64(largest) * 1e6); of > share {
			resource, share = r, of
		}
	}
	return resource, share
}

// Weight implements placement.World.
func (w *imagined) Weight(class int) int64 {
	_, share := w.mainResource(w.base[class])
	return share
}

// Explain implements placement.World. Nobody reads it.
func (w *imagined) Explain(int, string) *placement.Refusal { return &placement.Refusal{} }
