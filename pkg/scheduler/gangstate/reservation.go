// SPDX-License-Identifier: Apache-2.0

package gangstate

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Owner identifies the pods for which room is kept: those of one leaf of a gang.
type Owner struct {
	Gang Key
	Leaf string // "" for a PodGroup without sub-groups
}

// Room is the room of one pod that is kept on a node. Pods of the same or a lower priority may not use it unless they
// belong to its owner.
type Room struct {
	Owner    Owner
	Node     string
	Priority int32 // of the gang when the room was first kept, or of its pod if that is lower
	// Pod is the pod that had the room. It may still be on its node, terminating: then it occupies the room itself.
	Pod *corev1.Pod
}

const (
	// maxRooms bounds the rooms that are kept for all gangs together, maxRoomsOfGang those of one gang.
	maxRooms       = 8192
	maxRoomsOfGang = 1024
)

// rooms is the set of rooms that are kept. It takes no lock, and the current time is an argument. The zero value is
// not usable; see newRooms.
//
// A room is kept once for each pod that had it, until the first of these events: a pod of the owner is bound in its
// place, its time is over, or it is dropped. An assumed pod of the owner, on any node, takes one of the owner's
// rooms: the one on its own node if there is one, otherwise the oldest. A room that is taken no longer counts, unless
// the pod is released again.
type rooms struct {
	max, maxOfGang int

	byPod   map[types.UID]*keptRoom
	inOrder []*keptRoom // by seq
	byTaker map[types.UID]*keptRoom
	byOwner map[Owner][]*keptRoom // the oldest first
	ofGang  map[Key]int
	due     *orderedHeap[*keptRoom]
	seq     int
	changed bool // since view was computed
	view    []Room
	version uint64 // version of view
}

// keptRoom is a room and the state of keeping it.
type keptRoom struct {
	Room
	seq   int
	until time.Time
	taker types.UID // the assumed pod that is bound in its place; "": none
	inDue int
}

func newRooms() *rooms {
	return &rooms{
		max: maxRooms, maxOfGang: maxRoomsOfGang,
		byPod: map[types.UID]*keptRoom{}, byTaker: map[types.UID]*keptRoom{}, byOwner: map[Owner][]*keptRoom{}, ofGang: map[Key]int{},
		due: &orderedHeap[*keptRoom]{
			less:  func(a, b *keptRoom) bool { return a.until.Before(b.until) || a.until.Equal(b.until) && a.seq < b.seq },
			place: func(x *keptRoom) *int { return &x.inDue },
		},
	}
}

// keep keeps the room of a pod. It returns false if the room is kept already, its time is over, or too many rooms are
// kept.
func (s *rooms) keep(x Room, until, now time.Time) bool {
	uid := x.Pod.UID
	if s.byPod[uid] != nil || !now.Before(until) || len(s.byPod) >= s.max || s.ofGang[x.Owner.Gang] >= s.maxOfGang {
		return false
	}
	s.seq++
	kept := &keptRoom{Room: x, seq: s.seq, until: until}
	s.byPod[uid] = kept
	s.inOrder = append(s.inOrder, kept)
	s.byOwner[x.Owner] = append(s.byOwner[x.Owner], kept)
	s.ofGang[x.Owner.Gang]++
	s.due.set(kept)
	s.changed = true
	return true
}

// take lets an assumed pod of the owner take a room, if one is left.
func (s *rooms) take(owner Owner, uid types.UID, node string) {
	if s.byTaker[uid] != nil {
		return
	}
	var best *keptRoom
	for _, x := range s.byOwner[owner] {
		if x.taker != "" {
			continue
		}
		if x.Node == node {
			best = x
			break
		}
		if best == nil {
			best = x
		}
	}
	if best == nil {
		return
	}
	best.taker = uid
	s.byTaker[uid] = best
	s.changed = true
}

// restore records that a pod is no longer assumed: the room that it took is kept again, for the rest of its time.
func (s *rooms) restore(uid types.UID) {
	if x := s.byTaker[uid]; x != nil {
		x.taker = ""
		delete(s.byTaker, uid)
		s.changed = true
	}
}

// settle ends the room taken by a pod that is now bound.
func (s *rooms) settle(uid types.UID) []Room {
	if x := s.byTaker[uid]; x != nil {
		return s.end(x)
	}
	return nil
}

// drop ends the room of the pod that had it.
func (s *rooms) drop(uid types.UID) []Room {
	if x := s.byPod[uid]; x != nil {
		return s.end(x)
	}
	return nil
}

// dropGang ends the rooms of a gang.
func (s *rooms) dropGang(key Key) []Room {
	if s.ofGang[key] == 0 {
		return nil
	}
	return s.endIf(func(x *keptRoom) bool { return x.Owner.Gang == key })
}

// dropNode ends the rooms on a node.
func (s *rooms) dropNode(node string) []Room {
	return s.endIf(func(x *keptRoom) bool { return x.Node == node })
}

// expire ends the rooms whose time is over.
func (s *rooms) expire(now time.Time) []Room {
	var out []Room
	for {
		x, ok := s.due.first()
		if !ok || now.Before(x.until) {
			return out
		}
		out = append(out, s.end(x)...)
	}
}

// endIf ends the rooms for which `is` returns true, in the order in which they were kept.
func (s *rooms) endIf(is func(*keptRoom) bool) []Room {
	var ends []*keptRoom
	for _, x := range s.inOrder {
		if is(x) {
			ends = append(ends, x)
		}
	}
	out := make([]Room, 0, len(ends))
	for _, x := range ends {
		out = append(out, s.end(x)...)
	}
	return out
}

// end removes a room, and returns it.
func (s *rooms) end(x *keptRoom) []Room {
	delete(s.byPod, x.Pod.UID)
	if i, ok := slices.BinarySearchFunc(s.inOrder, x.seq, func(o *keptRoom, seq int) int { return cmp.Compare(o.seq, seq) }); ok {
		s.inOrder = slices.Delete(s.inOrder, i, i+1)
	}
	if x.taker != "" {
		delete(s.byTaker, x.taker)
	}
	left := slices.DeleteFunc(s.byOwner[x.Owner], func(o *keptRoom) bool { return o == x })
	if s.byOwner[x.Owner] = left; len(left) == 0 {
		delete(s.byOwner, x.Owner)
	}
	if s.ofGang[x.Owner.Gang]--; s.ofGang[x.Owner.Gang] == 0 {
		delete(s.ofGang, x.Owner.Gang)
	}
	s.due.remove(x)
	s.changed = true
	return []Room{x.Room}
}

// has reports whether rooms are kept for the owner, including taken ones.
func (s *rooms) has(owner Owner) bool { return len(s.byOwner[owner]) > 0 }

// list returns the rooms that are not taken, in the order in which they were kept. The result is shared and
// immutable.
func (s *rooms) list() []Room {
	if !s.changed {
		return s.view
	}
	s.changed, s.view = false, make([]Room, 0, len(s.inOrder))
	s.version++
	for _, x := range s.inOrder {
		if x.taker == "" {
			s.view = append(s.view, x.Room)
		}
	}
	return s.view
}
