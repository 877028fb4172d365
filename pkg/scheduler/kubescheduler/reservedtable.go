// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// reservedTables store between plans what is reserved on nodes, by who asks (reservations.View.Equivalent). The
// positions of the nodes must be the same.
type reservedTables map[reservations.Asker]*reservedTable

// keptAskers is for how many askers a table is kept: gangs without reservations share one, each with reservations has
// its own.
const keptAskers = 32

// reservedTable is what is reserved on nodes from one asker. Only nodes are read anew that have changed, or on which
// something else is reserved.
type reservedTable struct {
	view  *reservations.View
	lists []reservedList          // by no order
	on    map[int]*reservedOnNode // by position; nodes on which nothing is reserved from the asker have no entry
	reads int                     // how often an entry has changed
	owns  int                     // entries with room for leaves of the asker
	sums  map[any]reservedSum     // by kind of pods, Shape, or DomainShape: how many of its slots are reserved; nil: not asked
}

// reservedSum is a number of slots, for one state of a table and one of all nodes, if it depends on these.
type reservedSum struct {
	reads   int
	changed int64
	slots   int
	nodes   int // on which no slot is left; only of kinds of pods
}

// reservedList is all that is reserved on a node.
type reservedList struct {
	node       int
	list       []*reservations.Reservation
	generation int64 // of the node's state that was read; 0: none
}

// reservedOnNode is what is reserved on one state of one node from pods of one asker. nil: nothing.
type reservedOnNode struct {
	others reservations.Amount            // for other gangs
	own    map[string]reservations.Amount // by leaf of the gang
	beside []slotsBeside                  // as far as asked
}

// slotsBeside is for how many pods of a kind there is room beside what is reserved for other gangs.
type slotsBeside struct {
	kind  int64
	slots int
	only  bool // there is none, but would be if nothing was reserved
}

// nodeStates are the nodes of tables, and the generations of their states, by position.
type nodeStates struct {
	nodes       []fwk.NodeInfo
	generations []int64
	position    map[string]int
}

// tableOf returns the table of the asker for the nodes. nil: nothing is reserved.
func (t *reservedTables) tableOf(view *reservations.View, a reservations.Asker, s nodeStates) *reservedTable {
	if view.Len() == 0 {
		return nil
	}
	a = view.Equivalent(a)
	table := (*t)[a]
	if table == nil {
		if *t == nil || len(*t) >= keptAskers {
			*t = reservedTables{}
		}
		table = &reservedTable{on: map[int]*reservedOnNode{}}
		(*t)[a] = table
	}
	if table.view != view {
		table.readView(view, s.position)
	}
	for k := range table.lists {
		x := &table.lists[k]
		if generation := s.generations[x.node]; x.generation != generation {
			x.generation = generation
			table.setNode(x.node, readReservedOn(a, s.nodes[x.node], x.list))
		}
	}
	return table
}

// forget drops what is known of a Shape or a DomainShape.
func (t reservedTables) forget(shape any) {
	for _, table := range t {
		delete(table.sums, shape)
	}
}

// readView records what is reserved now. Nodes on which this has changed are still to be read.
func (t *reservedTable) readView(view *reservations.View, position map[string]int) {
	before := make(map[int]reservedList, len(t.lists))
	for _, x := range t.lists {
		before[x.node] = x
	}
	t.view, t.lists = view, t.lists[:0]
	for name, list := range view.ByNode() {
		i, ok := position[name]
		if !ok {
			continue
		}
		x := reservedList{node: i, list: list}
		if old, ok := before[i]; ok {
			delete(before, i)
			if len(list) == len(old.list) && &list[0] == &old.list[0] { // Views share what has not changed
				x.generation = old.generation
			}
		}
		t.lists = append(t.lists, x)
	}
	for i := range before {
		t.setNode(i, nil)
	}
}

func (t *reservedTable) setNode(i int, on *reservedOnNode) {
	t.reads++
	if old := t.on[i]; old != nil && len(old.own) > 0 {
		t.owns--
	}
	if on == nil {
		delete(t.on, i)
		return
	}
	if t.on[i] = on; len(on.own) > 0 {
		t.owns++
	}
}

// keepSum keeps a sum for what is summed up.
func (t *reservedTable) keepSum(of any, sum reservedSum) {
	if t.sums == nil || len(t.sums) > keptSums {
		t.sums = map[any]reservedSum{}
	}
	t.sums[of] = sum
}

// keptSums bounds the sums that a table keeps.
const keptSums = 4096

// readReservedOn returns what is reserved on a node on which no pod is planned. list is all that is reserved there.
func readReservedOn(a reservations.Asker, node fwk.NodeInfo, list []*reservations.Reservation) *reservedOnNode {
	on := &reservedOnNode{others: reservedFrom(a, node, list)}
	for _, x := range list {
		if x.Owner.Gang == a.Gang && !x.Owner.IsGang() && !hasPodOnNode(node, x.Pod.UID) {
			if on.own == nil {
				on.own = map[string]reservations.Amount{}
			}
			sum := on.own[x.Owner.Leaf]
			sum.Add(x.Amount, 1)
			on.own[x.Owner.Leaf] = sum
		}
	}
	if on.others.IsEmpty() && on.own == nil {
		return nil
	}
	return on
}

// slotsFor returns for how many pods of a kind the node has room beside what is reserved for other gangs. The node must
// be in the state that was read. Kinds are numbered for each user of the tables.
func (on *reservedOnNode) slotsFor(kind int64, d *demand, node fwk.NodeInfo) *slotsBeside {
	k := slices.IndexFunc(on.beside, func(s slotsBeside) bool { return s.kind == kind })
	if k < 0 {
		if len(on.beside) >= keptRequirements {
			on.beside = nil
		}
		s := slotsBeside{kind: kind, slots: d.slotsBeside(node, on.others)}
		s.only = s.slots == 0 && d.slotsOnNode(node) > 0
		k, on.beside = len(on.beside), append(on.beside, s)
	}
	return &on.beside[k]
}

// reservedFrom returns what is reserved on the node and not available to the asker. The caller must not change it.
func reservedFrom(a reservations.Asker, node fwk.NodeInfo, list []*reservations.Reservation) reservations.Amount {
	var first, sum reservations.Amount
	n := 0
	for _, x := range list {
		if !x.Restricts(a) {
			continue
		}
		rest := x.Rest(func(uid types.UID) bool { return hasPodOnNode(node, uid) })
		switch n++; n {
		case 1:
			first = rest // mostly there is one, and nothing to be added up
			continue
		case 2:
			sum.Add(first, 1)
		}
		sum.Add(rest, 1)
	}
	if n == 1 {
		return first
	}
	return sum
}

func hasPodOnNode(node fwk.NodeInfo, uid types.UID) bool {
	return slices.ContainsFunc(node.GetPods(), func(p fwk.PodInfo) bool { return p.GetPod().UID == uid })
}
