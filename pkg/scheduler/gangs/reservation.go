// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"maps"
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
//
// No operation visits rooms that it does not concern: thousands of rooms of large gangs end one after another.
type rooms struct {
	max, maxOfGang int

	byPod   map[types.UID]*keptRoom
	byTaker map[types.UID]*keptRoom
	byGang  map[Key]roomSet
	byNode  map[string]roomSet
	ofOwner map[Owner]int
	free    map[spot]*orderedHeap[*keptRoom] // rooms that are not taken, the oldest first
	due     *orderedHeap[*keptRoom]
	seq     int
	unread  roomSet // rooms that count and of which changes has not told, or the reverse
}

type roomSet map[*keptRoom]struct{}

// spot stands for the rooms of an owner on a node; node "": on all nodes.
type spot struct {
	owner Owner
	node  string
}

// keptRoom is a room and the state of keeping it.
type keptRoom struct {
	Room
	seq    int
	until  time.Time
	taker  types.UID // the assumed pod that is bound in its place; "": none
	ended  bool
	told   bool // changes has told that it counts
	inDue  int
	inFree [2]int // position in rooms.free: on its node, on all nodes
}

func newRooms() *rooms {
	return &rooms{
		max: maxRooms, maxOfGang: maxRoomsOfGang,
		byPod: map[types.UID]*keptRoom{}, byTaker: map[types.UID]*keptRoom{}, byGang: map[Key]roomSet{}, byNode: map[string]roomSet{},
		ofOwner: map[Owner]int{}, free: map[spot]*orderedHeap[*keptRoom]{}, unread: roomSet{},
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
	if s.byPod[uid] != nil || !now.Before(until) || len(s.byPod) >= s.max || len(s.byGang[x.Owner.Gang]) >= s.maxOfGang {
		return false
	}
	s.seq++
	kept := &keptRoom{Room: x, seq: s.seq, until: until}
	s.byPod[uid] = kept
	insertRoom(s.byGang, x.Owner.Gang, kept)
	insertRoom(s.byNode, x.Node, kept)
	s.ofOwner[x.Owner]++
	s.due.set(kept)
	s.update(kept)
	return true
}

func insertRoom[K comparable](sets map[K]roomSet, k K, x *keptRoom) {
	if sets[k] == nil {
		sets[k] = roomSet{}
	}
	sets[k][x] = struct{}{}
}

func deleteRoom[K comparable](sets map[K]roomSet, k K, x *keptRoom) {
	if delete(sets[k], x); len(sets[k]) == 0 {
		delete(sets, k)
	}
}

// counts reports whether the room is kept and not taken.
func (x *keptRoom) counts() bool { return !x.ended && x.taker == "" }

// update must be called after every change of a room.
func (s *rooms) update(x *keptRoom) {
	for i, at := range []spot{{x.Owner, x.Node}, {x.Owner, ""}} {
		h := s.free[at]
		switch {
		case x.counts() && h == nil:
			h = &orderedHeap[*keptRoom]{
				less:  func(a, b *keptRoom) bool { return a.seq < b.seq },
				place: func(x *keptRoom) *int { return &x.inFree[i] },
			}
			s.free[at] = h
			fallthrough
		case x.counts():
			h.set(x)
		case h != nil:
			if h.remove(x); len(h.items) == 0 {
				delete(s.free, at)
			}
		}
	}
	if x.counts() == x.told {
		delete(s.unread, x)
	} else {
		s.unread[x] = struct{}{}
	}
}

// take lets an assumed pod of the owner take a room, if one is left.
func (s *rooms) take(owner Owner, uid types.UID, node string) {
	h := s.free[spot{owner, node}]
	if h == nil {
		h = s.free[spot{owner, ""}]
	}
	if h == nil || s.byTaker[uid] != nil {
		return
	}
	x, _ := h.first()
	x.taker = uid
	s.byTaker[uid] = x
	s.update(x)
}

// restore records that a pod is no longer assumed: the room that it took is kept again, for the rest of its time.
func (s *rooms) restore(uid types.UID) {
	if x := s.byTaker[uid]; x != nil {
		x.taker = ""
		delete(s.byTaker, uid)
		s.update(x)
	}
}

// endRoomTakenBy ends the room taken by a pod that is now bound.
func (s *rooms) endRoomTakenBy(uid types.UID) []Room {
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
	return s.endIf(s.byGang[key], func(*keptRoom) bool { return true })
}

// dropNode ends the rooms on a node.
func (s *rooms) dropNode(node string) []Room {
	return s.endIf(s.byNode[node], func(*keptRoom) bool { return true })
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

// endIf ends the rooms of the set for which `is` returns true, in the order in which they were kept.
func (s *rooms) endIf(set roomSet, is func(*keptRoom) bool) []Room {
	var out []Room
	for _, x := range set.inOrder() {
		if is(x) {
			out = append(out, s.end(x)...)
		}
	}
	return out
}

// inOrder returns the rooms in the order in which they were kept.
func (set roomSet) inOrder() []*keptRoom {
	return slices.SortedFunc(maps.Keys(set), func(a, b *keptRoom) int { return cmp.Compare(a.seq, b.seq) })
}

// end removes a room, and returns it.
func (s *rooms) end(x *keptRoom) []Room {
	x.ended = true
	delete(s.byPod, x.Pod.UID)
	if x.taker != "" {
		delete(s.byTaker, x.taker)
	}
	deleteRoom(s.byGang, x.Owner.Gang, x)
	deleteRoom(s.byNode, x.Node, x)
	if s.ofOwner[x.Owner]--; s.ofOwner[x.Owner] == 0 {
		delete(s.ofOwner, x.Owner)
	}
	s.due.remove(x)
	s.update(x)
	return []Room{x.Room}
}

// has reports whether rooms are kept for the owner, including taken ones.
func (s *rooms) has(owner Owner) bool { return s.ofOwner[owner] > 0 }

// RoomChange is a room that counts since the last call of Registry.RoomChanges, or does not count any longer because it
// ended or was taken.
type RoomChange struct {
	Room
	Counts bool
}

// changes returns the changes since the last call, in the order in which the rooms were kept.
func (s *rooms) changes() []RoomChange {
	if len(s.unread) == 0 {
		return nil
	}
	out := make([]RoomChange, 0, len(s.unread))
	for _, x := range s.unread.inOrder() {
		x.told = x.counts()
		out = append(out, RoomChange{x.Room, x.told})
	}
	clear(s.unread)
	return out
}

// isNews reports whether rooms are kept, or were kept when changes was called last.
func (s *rooms) isNews() bool { return len(s.byPod)+len(s.unread) > 0 }
