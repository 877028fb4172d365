// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxOfLeaves bounds the reservations for leaves of all gangs together, maxOfGang those of one gang.
	maxOfLeaves = 8192
	maxOfGang   = 1024
	// maxOfGangs bounds the reservations for whole gangs together. Each of these gangs has one on a node, so this is
	// enough for six of them on 5,000 nodes.
	maxOfGangs = 32768
)

// Set contains the reservations that exist. The zero value is not usable; see NewSet.
//
// For a leaf room is reserved once for each pod that had it, for a whole gang once on each node, until the first of
// these events: the pods that it is for are bound in its place, its time is over, or it is ended. An assumed pod of the
// owner, on any node, takes one of the owner's reservations, or its part of that of the gang: one on its own node if
// there is one, otherwise the oldest. What is taken no longer counts, unless the pod is released again.
//
// No operation visits the reservations of other gangs and nodes: thousands of large gangs' reservations end one after
// another.
type Set struct {
	maxOfLeaves, maxOfGang, maxOfGangs int

	seq     int
	ofGangs int // reservations for whole gangs
	byPod   map[types.UID]*Reservation
	byTaker map[types.UID]*Reservation
	// occupants are the pods that Occupy has recorded, and where.
	occupants map[types.UID]*Reservation
	// In the order of Reserve.
	byGang  map[types.NamespacedName][]*Reservation
	byOwner map[Owner][]*Reservation
	byNode  map[string][]*Reservation
	due     []*Reservation // in the order in which their time ends

	view    *View
	terms   map[terms]int       // reservations of view by their terms
	changed map[string]struct{} // nodes of which view is out of date
}

// NewSet returns a set without reservations.
func NewSet() *Set {
	return &Set{
		maxOfLeaves: maxOfLeaves, maxOfGang: maxOfGang, maxOfGangs: maxOfGangs,
		byPod: map[types.UID]*Reservation{}, byTaker: map[types.UID]*Reservation{}, occupants: map[types.UID]*Reservation{}, byGang: map[types.NamespacedName][]*Reservation{},
		byOwner: map[Owner][]*Reservation{}, byNode: map[string][]*Reservation{},
		view: &View{}, terms: map[terms]int{}, changed: map[string]struct{}{},
	}
}

// Reserve reserves room. It returns false if it is reserved already, for the pod or for the gang on this node, if its
// time is over, or if there are too many reservations.
func (s *Set) Reserve(x Reservation, until, now time.Time) bool {
	switch {
	case !now.Before(until):
		return false
	case x.Owner.IsGang():
		if s.ofGangs >= s.maxOfGangs || slices.ContainsFunc(s.byNode[x.Node], func(o *Reservation) bool { return o.Owner == x.Owner }) {
			return false
		}
		s.ofGangs++
	default:
		ofGang := len(s.byGang[x.Owner.Gang]) - len(s.byOwner[x.Owner.Whole()])
		if s.byPod[x.Pod.UID] != nil || len(s.byPod) >= s.maxOfLeaves || ofGang >= s.maxOfGang {
			return false
		}
	}
	s.seq++
	added := &x
	added.seq, added.until, added.left = s.seq, until, x.Amount
	if x.Pod != nil {
		s.byPod[x.Pod.UID] = added
	}
	s.byGang[x.Owner.Gang] = append(s.byGang[x.Owner.Gang], added)
	s.byOwner[x.Owner] = append(s.byOwner[x.Owner], added)
	s.byNode[x.Node] = append(s.byNode[x.Node], added)
	i, _ := slices.BinarySearchFunc(s.due, added, byEnd)
	s.due = slices.Insert(s.due, i, added)
	s.changed[x.Node] = struct{}{}
	return true
}

func byEnd(a, b *Reservation) int { return cmp.Or(a.until.Compare(b.until), cmp.Compare(a.seq, b.seq)) }

// Take lets an assumed pod of the owner take a reservation, if one is left: one of its leaf, or else its amount of one
// of its gang.
func (s *Set) Take(owner Owner, uid types.UID, node string, amount Amount) {
	if s.byTaker[uid] != nil {
		return
	}
	best := s.untaken(owner, node)
	if best == nil {
		best = s.untaken(owner.Whole(), node)
	}
	if best != nil {
		best.take(uid, node, amount)
		s.byTaker[uid] = best
		s.changed[best.Node] = struct{}{}
	}
}

// untaken returns a reservation of the owner that is not taken: one on the node if there is one, otherwise the oldest.
// nil: there is none.
func (s *Set) untaken(owner Owner, node string) *Reservation {
	ofOwner := s.byOwner[owner]
	if len(ofOwner) == 0 {
		return nil
	}
	is := func(x *Reservation) bool { return x.Owner == owner && !x.isTaken() }
	if i := slices.IndexFunc(s.byNode[node], is); i >= 0 {
		return s.byNode[node][i]
	}
	if i := slices.IndexFunc(ofOwner, is); i >= 0 {
		return ofOwner[i]
	}
	return nil
}

// Occupy records that a pod of the asker is on a node, or assumed there: as long as it is, it has its part of what is
// reserved for a gang that starts after its end. It counts for one of them, since each needs its room: for the first
// one to start of which no other pods have all.
func (s *Set) Occupy(a Asker, node string, o Occupied) {
	if x := s.occupants[o.Pod]; x != nil && x.Node != node { // it was not bound there
		s.RemoveOccupant(o.Pod)
	}
	var of *Reservation
	full := false // all of the reservation is occupied
	for _, x := range s.byNode[node] {
		var occupied, rest Amount
		for _, other := range x.Occupied {
			if other.Pod == o.Pod {
				return
			}
			occupied.Add(other.Amount, 1)
		}
		if x.Owner.Gang == a.Gang || !x.isOver(a) {
			continue
		}
		rest.AddRest(x.Amount, occupied)
		if of == nil || full && !rest.IsEmpty() || full == rest.IsEmpty() && x.Starts.Before(of.Starts) {
			of, full = x, rest.IsEmpty()
		}
	}
	if of != nil {
		of.Occupied = append(slices.Clip(of.Occupied), o)
		s.occupants[o.Pod] = of
		s.changed[node] = struct{}{}
	}
}

// RemoveOccupant forgets what Occupy has recorded of a pod, which is gone.
func (s *Set) RemoveOccupant(uid types.UID) {
	if x := s.occupants[uid]; x != nil {
		x.Occupied = slices.DeleteFunc(slices.Clone(x.Occupied), func(o Occupied) bool { return o.Pod == uid })
		delete(s.occupants, uid)
		s.changed[x.Node] = struct{}{}
	}
}

// GiveBack records that a pod is no longer assumed: what it took counts again, for the rest of its time.
func (s *Set) GiveBack(uid types.UID) {
	if x := s.byTaker[uid]; x != nil {
		x.addLeft(x.takers[uid].part, 1)
		delete(x.takers, uid)
		delete(s.byTaker, uid)
		s.changed[x.Node] = struct{}{}
	}
}

// EndTakenBy ends what was taken by a pod that is now bound. As the methods below, it returns the reservations that
// have ended; also one of a gang of which other pods have the rest, if the pod is on another node, so that its part is
// free.
func (s *Set) EndTakenBy(uid types.UID) []*Reservation {
	x := s.byTaker[uid]
	if x == nil {
		return nil
	}
	took := x.takers[uid]
	if len(x.takers) == 1 && x.left.Pods == 0 {
		return s.end(x)
	}
	delete(x.takers, uid)
	delete(s.byTaker, uid)
	if took.elsewhere {
		return []*Reservation{x}
	}
	return nil
}

// EndOf ends the reservation of the pod that had the room.
func (s *Set) EndOf(uid types.UID) []*Reservation { return s.end(s.byPod[uid]) }

// EndOnNode ends the reservations on a node.
func (s *Set) EndOnNode(node string) []*Reservation { return s.end(slices.Clone(s.byNode[node])...) }

// EndOfGang ends the reservations of a gang for which `is` returns true; nil: all.
func (s *Set) EndOfGang(gang types.NamespacedName, is func(*Reservation) bool) []*Reservation {
	list := slices.Clone(s.byGang[gang])
	if is != nil {
		list = slices.DeleteFunc(list, func(x *Reservation) bool { return !is(x) })
	}
	return s.end(list...)
}

// Expire ends the reservations whose time is over.
func (s *Set) Expire(now time.Time) []*Reservation {
	n := slices.IndexFunc(s.due, func(x *Reservation) bool { return now.Before(x.until) })
	if n < 0 {
		n = len(s.due)
	}
	over := slices.Clone(s.due[:n])
	s.due = slices.Delete(s.due, 0, n)
	return s.end(over...)
}

// end removes reservations, and returns them. The last one is removed first, because those of one gang are often the
// last elements of long lists.
func (s *Set) end(list ...*Reservation) []*Reservation {
	var ended []*Reservation
	for _, x := range slices.Backward(list) {
		if x == nil {
			continue
		}
		if x.Pod != nil {
			delete(s.byPod, x.Pod.UID)
		}
		if x.Owner.IsGang() {
			s.ofGangs--
		}
		for uid := range x.takers {
			delete(s.byTaker, uid)
		}
		for i := range x.Occupied {
			if uid := x.Occupied[i].Pod; s.occupants[uid] == x {
				delete(s.occupants, uid)
			}
		}
		removeFrom(s.byGang, x.Owner.Gang, x)
		removeFrom(s.byOwner, x.Owner, x)
		removeFrom(s.byNode, x.Node, x)
		if i, found := slices.BinarySearchFunc(s.due, x, byEnd); found {
			s.due = slices.Delete(s.due, i, i+1)
		}
		s.changed[x.Node] = struct{}{}
		ended = append(ended, x)
	}
	slices.Reverse(ended)
	return ended
}

func removeFrom[K comparable](lists map[K][]*Reservation, k K, x *Reservation) {
	list := lists[k]
	if len(list) == 1 {
		delete(lists, k)
		return
	}
	i, _ := slices.BinarySearchFunc(list, x, func(a, b *Reservation) int { return cmp.Compare(a.seq, b.seq) })
	lists[k] = slices.Delete(list, i, i+1)
}

// OnNode returns the reservations on a node, including taken ones.
func (s *Set) OnNode(node string) []*Reservation { return s.byNode[node] }

// Has reports whether there are reservations for the owner, including taken ones.
func (s *Set) Has(owner Owner) bool { return len(s.byOwner[owner]) > 0 }

// HasGang reports whether there are reservations for the gang, including taken ones.
func (s *Set) HasGang(gang types.NamespacedName) bool { return len(s.byGang[gang]) > 0 }

// IsEmpty reports whether there are no reservations, and View would be the same as before and empty.
func (s *Set) IsEmpty() bool { return len(s.byPod)+s.ofGangs+len(s.changed) == 0 }

// View returns the reservations that count: those that are not taken, as far as they are not. It is the same View until
// one of them changes. The cost is that of the nodes on which some have changed.
func (s *Set) View() *View {
	if len(s.changed) == 0 {
		return s.view
	}
	next, copied, sameTerms := *s.view, [parts]bool{}, true
	for node := range s.changed {
		i := partOf(node)
		if !copied[i] {
			copied[i] = true
			if next.byNode[i] = maps.Clone(next.byNode[i]); next.byNode[i] == nil {
				next.byNode[i] = map[string][]*Reservation{}
			}
		}
		counting := make([]*Reservation, 0, len(s.byNode[node]))
		for _, x := range s.byNode[node] {
			if y := x.counting(); y != nil {
				counting = append(counting, y)
			}
		}
		for _, x := range counting {
			if s.terms[termsOf(x)]++; s.terms[termsOf(x)] == 1 {
				sameTerms = false
			}
		}
		for _, x := range next.byNode[i][node] {
			if s.terms[termsOf(x)]--; s.terms[termsOf(x)] == 0 {
				delete(s.terms, termsOf(x))
				sameTerms = false
			}
		}
		next.n += len(counting) - len(next.byNode[i][node])
		if next.byNode[i][node] = counting; len(counting) == 0 {
			delete(next.byNode[i], node)
		}
	}
	if !sameTerms {
		next.terms = slices.Collect(maps.Keys(s.terms))
	}
	clear(s.changed)
	s.view = &next
	return s.view
}
