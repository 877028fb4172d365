// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// bookkeeping drives a Set by the names of pods; a reservation has the name of its pod.
type bookkeeping struct {
	*Set
	now   time.Time
	ended []string
}

func newBookkeeping() *bookkeeping {
	return &bookkeeping{Set: NewSet(), now: time.Unix(1_000_000, 0)}
}

func ownerNamed(name string) Owner {
	return Owner{Gang: types.NamespacedName{Namespace: "ml", Name: name[:1]}, Leaf: name[1:]}
}

func (b *bookkeeping) reserve(pod, owner, node string, lasts time.Duration) bool {
	x := Reservation{Owner: ownerNamed(owner), Node: node, Amount: amountOf(1), Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(pod)}}}
	return b.Reserve(x, b.now.Add(lasts), b.now)
}

// reserveForGang reserves room for so many pods of a gang.
func (b *bookkeeping) reserveForGang(gang, node string, pods int64, lasts time.Duration) bool {
	return b.Reserve(Reservation{Owner: ownerNamed(gang + EveryLeaf), Node: node, Amount: amountOf(pods)}, b.now.Add(lasts), b.now)
}

// amountOf returns what so many pods use.
func amountOf(pods int64) Amount {
	return Amount{Pods: pods, Resources: map[corev1.ResourceName]int64{"gpu": 2 * pods}}
}

func (b *bookkeeping) take(owner, taker, node string) {
	b.Take(ownerNamed(owner), types.UID(taker), node, amountOf(1))
}

// nameOf returns the name of a reservation: that of its pod, or its gang and node.
func nameOf(x *Reservation) string {
	if x.Pod != nil {
		return string(x.Pod.UID)
	}
	return x.Owner.Gang.Name + " on " + x.Node
}

func (b *bookkeeping) note(ended []*Reservation) {
	for _, x := range ended {
		b.ended = append(b.ended, nameOf(x))
	}
}

// counting returns the reservations that count, the oldest first, and what is left of those for gangs.
func (b *bookkeeping) counting() []string {
	var out []string
	for _, x := range slices.SortedFunc(slices.Values(b.due), func(a, b *Reservation) int { return a.seq - b.seq }) {
		if y := x.counting(); y != nil {
			out = append(out, describe(y))
		}
	}
	return out
}

func describe(x *Reservation) string {
	if x.Pod != nil {
		return nameOf(x)
	}
	return fmt.Sprintf("%s: %d pods, %d gpus", nameOf(x), x.Amount.Pods, x.Amount.Resources["gpu"])
}

// namesOf returns the reservations of a view, sorted.
func namesOf(t *testing.T, v *View) []string {
	t.Helper()
	var out []string
	for node, list := range v.ByNode() {
		if len(list) == 0 {
			t.Errorf("node %s has none", node)
		}
		for _, x := range list {
			if x.Node != node {
				t.Errorf("a reservation of %s is on %s", x.Node, node)
			}
			out = append(out, describe(x))
		}
	}
	if len(out) != v.Len() {
		t.Errorf("the length is %d, want %d", v.Len(), len(out))
	}
	slices.Sort(out)
	return out
}

func TestReservationsAndTheirEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do    func(b *bookkeeping)
		want  []string // reservations that count
		ended []string
	}{
		"there is none at first": {do: func(*bookkeeping) {}},
		"room is reserved once": {
			do:   func(b *bookkeeping) { b.reserve("p", "gx", "n", time.Minute); b.reserve("p", "gx", "m", time.Hour) },
			want: []string{"p"},
		},
		"room is not reserved for a time that is over": {
			do: func(b *bookkeeping) { b.reserve("p", "gx", "n", 0) },
		},
		"a reservation ends with its time": {
			do: func(b *bookkeeping) {
				b.reserve("long", "gx", "n", time.Hour)
				b.reserve("short", "gx", "n", time.Minute)
				b.note(b.Expire(b.now.Add(time.Minute)))
			},
			want: []string{"long"}, ended: []string{"short"},
		},
		"an assumed pod takes the reservation on its node, not an older one": {
			do: func(b *bookkeeping) {
				b.reserve("older", "gx", "n", time.Minute)
				b.reserve("here", "gx", "m", time.Minute)
				b.take("gx", "new", "m")
			},
			want: []string{"older"},
		},
		"an assumed pod elsewhere takes the oldest one": {
			do: func(b *bookkeeping) {
				b.reserve("older", "gx", "n", time.Minute)
				b.reserve("newer", "gx", "m", time.Minute)
				b.take("gx", "new", "elsewhere")
			},
			want: []string{"newer"},
		},
		"a pod of another leaf takes none": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.take("gy", "new", "n")
			},
			want: []string{"p"},
		},
		"a pod takes one, however often it is assumed": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.reserve("q", "gx", "n", time.Minute)
				b.take("gx", "new", "n")
				b.take("gx", "new", "n")
			},
			want: []string{"q"},
		},
		"a released pod gives it back, for the rest of the time": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.take("gx", "new", "n")
				b.GiveBack("new")
				b.note(b.Expire(b.now.Add(time.Minute - time.Nanosecond)))
			},
			want: []string{"p"},
		},
		"the time of a taken one runs on": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.take("gx", "new", "n")
				b.note(b.Expire(b.now.Add(time.Minute)))
				b.GiveBack("new")
			},
			ended: []string{"p"},
		},
		"a reservation ends when the pod that took it is bound": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.take("gx", "new", "n")
				b.note(b.EndTakenBy("new"))
				b.note(b.EndTakenBy("new"))
			},
			ended: []string{"p"},
		},
		"a bound pod that took nothing ends nothing": {
			do:   func(b *bookkeeping) { b.reserve("p", "gx", "n", time.Minute); b.note(b.EndTakenBy("new")) },
			want: []string{"p"},
		},
		"those of a gang end, others stay": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.reserve("q", "gy", "n", time.Minute)
				b.reserve("r", "hx", "n", time.Minute)
				b.note(b.EndOfGang(ownerNamed("g").Gang, nil))
			},
			want: []string{"r"}, ended: []string{"p", "q"},
		},
		"those on a node end": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.reserve("q", "gx", "m", time.Minute)
				b.note(b.EndOnNode("n"))
			},
			want: []string{"q"}, ended: []string{"p"},
		},
		"there are no more than the bounds say": {
			do: func(b *bookkeeping) {
				b.maxOfLeaves, b.maxOfGang = 3, 2
				for _, p := range []string{"p", "q", "r"} {
					b.reserve(p, "gx", "n", time.Minute)
				}
				b.reserve("s", "hx", "n", time.Minute)
				b.reserve("t", "ix", "n", time.Minute)
			},
			want: []string{"p", "q", "s"},
		},
		"a gang has one on a node": {
			do: func(b *bookkeeping) {
				b.reserveForGang("g", "n", 2, time.Minute)
				b.reserveForGang("g", "n", 5, time.Minute)
				b.reserveForGang("g", "m", 1, time.Minute)
				b.reserveForGang("h", "n", 1, time.Minute)
			},
			want: []string{"g on n: 2 pods, 4 gpus", "g on m: 1 pods, 2 gpus", "h on n: 1 pods, 2 gpus"},
		},
		"pods take their parts, and the last one what is left": {
			do: func(b *bookkeeping) {
				b.reserveForGang("g", "n", 3, time.Minute)
				b.reserveForGang("g", "m", 2, time.Minute)
				b.take("gx", "first", "n")
				b.Take(ownerNamed("gy"), "large", "m", Amount{Pods: 1, Resources: map[corev1.ResourceName]int64{"gpu": 3, "cpu": 1}})
				b.Take(ownerNamed("gy"), "small", "m", Amount{Pods: 1})
				b.take("hx", "other", "n")
			},
			want: []string{"g on n: 2 pods, 4 gpus"},
		},
		"a pod elsewhere takes its part of the oldest one": {
			do: func(b *bookkeeping) {
				b.reserveForGang("g", "n", 1, time.Minute)
				b.reserveForGang("g", "m", 2, time.Minute)
				b.take("gx", "first", "elsewhere")
				b.take("gx", "second", "elsewhere")
			},
			want: []string{"g on m: 1 pods, 2 gpus"},
		},
		"a pod takes one of its leaf before one of its gang": {
			do: func(b *bookkeeping) {
				b.reserveForGang("g", "n", 1, time.Minute)
				b.reserve("p", "gx", "m", time.Minute)
				b.take("gx", "new", "n")
			},
			want: []string{"g on n: 1 pods, 2 gpus"},
		},
		"a released pod gives its part back": {
			do: func(b *bookkeeping) {
				b.reserveForGang("g", "n", 2, time.Minute)
				b.take("gx", "first", "n")
				b.take("gx", "second", "n")
				b.GiveBack("first")
			},
			want: []string{"g on n: 1 pods, 2 gpus"},
		},
		"it ends when all its pods are bound": {
			do: func(b *bookkeeping) {
				b.reserveForGang("g", "n", 2, time.Minute)
				b.reserveForGang("g", "m", 2, time.Minute)
				for _, pod := range []string{"first", "second", "third"} {
					b.take("gx", pod, "n")
					b.note(b.EndTakenBy(types.UID(pod)))
					b.GiveBack(types.UID(pod))
				}
			},
			want: []string{"g on m: 1 pods, 2 gpus"}, ended: []string{"g on n", "g on m"}, // a part of the second one is free
		},
		"those of gangs have a bound of their own": {
			do: func(b *bookkeeping) {
				b.maxOfLeaves, b.maxOfGang, b.maxOfGangs = 1, 1, 2
				for _, node := range []string{"n", "m", "o"} {
					b.reserveForGang("g", node, 1, time.Minute)
				}
				b.reserve("p", "hx", "n", time.Minute)
				b.note(b.EndOnNode("n"))
				b.reserveForGang("h", "n", 1, time.Minute)
			},
			want: []string{"g on m: 1 pods, 2 gpus", "h on n: 1 pods, 2 gpus"}, ended: []string{"g on n", "p"},
		},
		"what ends makes room for others": {
			do: func(b *bookkeeping) {
				b.maxOfGang = 1
				b.reserve("p", "gx", "n", time.Minute)
				b.note(b.EndOf("p"))
				b.reserve("q", "gx", "n", time.Minute)
			},
			want: []string{"q"}, ended: []string{"p"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBookkeeping()
			tt.do(b)
			if diff := cmp.Diff(tt.want, b.counting()); diff != "" {
				t.Errorf("reservations that count (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.ended, b.ended); diff != "" {
				t.Errorf("reservations that ended (-want +got):\n%s", diff)
			}
		})
	}
}

// naiveReservation is a reservation of a model that visits all of them for every question.
type naiveReservation struct {
	pod, node string // pod "": for a gang
	owner     Owner
	until     time.Time
	left      int64
	takers    []string
}

func (x *naiveReservation) describe() string {
	if x.pod != "" {
		return x.pod
	}
	return fmt.Sprintf("%s on %s: %d pods, %d gpus", x.owner.Gang.Name, x.node, x.left, 2*x.left)
}

// Random sequences of all operations, compared with a model without indices.
func TestReservationsRandomly(t *testing.T) {
	t.Parallel()
	for seed := range int64(300) {
		rng := rand.New(rand.NewSource(seed))
		b := newBookkeeping()
		b.maxOfLeaves, b.maxOfGang, b.maxOfGangs = 12, 6, 3
		seen := b.View()
		var before []string           // in the view
		var model []*naiveReservation // oldest first
		gone := func(is func(*naiveReservation) bool) {
			model = slices.DeleteFunc(model, is)
		}
		number := func(is func(*naiveReservation) bool) int {
			n := 0
			for _, x := range model {
				if is(x) {
					n++
				}
			}
			return n
		}
		pick := func(from ...string) string { return from[rng.Intn(len(from))] }
		for step := range 400 {
			pod, taker := fmt.Sprint("p", rng.Intn(25)), fmt.Sprint("t", rng.Intn(8))
			owner, node := pick("gx", "gy", "hx"), pick("n", "m", "o")
			key := ownerNamed(owner)
			taken := func(x *naiveReservation) bool { return slices.Contains(x.takers, taker) }
			lasts := time.Duration(rng.Intn(60)) * time.Second
			switch rng.Intn(10) {
			case 0, 1, 2:
				known := number(func(x *naiveReservation) bool { return x.pod == pod }) > 0
				ofLeaves := number(func(x *naiveReservation) bool { return x.pod != "" })
				want := !known && lasts > 0 && ofLeaves < b.maxOfLeaves && number(func(x *naiveReservation) bool { return x.pod != "" && x.owner.Gang == key.Gang }) < b.maxOfGang
				if got := b.reserve(pod, owner, node, lasts); got != want {
					t.Fatalf("seed %d, step %d: Reserve is %t, want %t", seed, step, got, want)
				}
				if want {
					model = append(model, &naiveReservation{pod: pod, node: node, owner: key, until: b.now.Add(lasts), left: 1})
				}
			case 9:
				whole := Owner{Gang: key.Gang, Leaf: EveryLeaf}
				known := number(func(x *naiveReservation) bool { return x.owner == whole && x.node == node }) > 0
				want := !known && lasts > 0 && number(func(x *naiveReservation) bool { return x.pod == "" }) < b.maxOfGangs
				pods := int64(1 + rng.Intn(3))
				if got := b.reserveForGang(key.Gang.Name, node, pods, lasts); got != want {
					t.Fatalf("seed %d, step %d: Reserve for a gang is %t, want %t", seed, step, got, want)
				}
				if want {
					model = append(model, &naiveReservation{node: node, owner: whole, until: b.now.Add(lasts), left: pods})
				}
			case 3, 4:
				b.take(owner, taker, node)
				if number(taken) > 0 {
					break
				}
				var best *naiveReservation
				for _, of := range []Owner{key, {Gang: key.Gang, Leaf: EveryLeaf}} {
					for _, x := range model {
						if x.owner == of && x.left > 0 && (best == nil || best.owner == of && best.node != node && x.node == node) {
							best = x
						}
					}
				}
				if best != nil {
					best.left--
					best.takers = append(best.takers, taker)
				}
			case 5:
				b.GiveBack(types.UID(taker))
				for _, x := range model {
					if taken(x) {
						x.left++
						x.takers = slices.DeleteFunc(x.takers, func(uid string) bool { return uid == taker })
					}
				}
			case 6:
				b.EndTakenBy(types.UID(taker))
				for _, x := range model {
					x.takers = slices.DeleteFunc(x.takers, func(uid string) bool { return uid == taker })
				}
				gone(func(x *naiveReservation) bool { return x.left == 0 && len(x.takers) == 0 })
			case 7:
				b.now = b.now.Add(time.Duration(rng.Intn(15)) * time.Second)
				b.Expire(b.now)
				gone(func(x *naiveReservation) bool { return !b.now.Before(x.until) })
			case 8:
				switch rng.Intn(4) {
				case 0:
					b.EndOfGang(key.Gang, nil)
					gone(func(x *naiveReservation) bool { return x.owner.Gang == key.Gang })
				case 1:
					b.EndOnNode(node)
					gone(func(x *naiveReservation) bool { return x.node == node })
				default:
					b.EndOf(types.UID(pod))
					gone(func(x *naiveReservation) bool { return x.pod == pod })
				}
			}
			var want []string
			for _, x := range model {
				if x.left > 0 {
					want = append(want, x.describe())
				}
			}
			if diff := cmp.Diff(want, b.counting()); diff != "" {
				t.Fatalf("seed %d, step %d: reservations that count (-want +got):\n%s", seed, step, diff)
			}
			if rng.Intn(4) == 0 {
				if diff := cmp.Diff(before, namesOf(t, seen)); diff != "" {
					t.Fatalf("seed %d, step %d: an older view has changed (-before +now):\n%s", seed, step, diff)
				}
				seen = b.View()
				slices.Sort(want)
				before = want
				if diff := cmp.Diff(want, namesOf(t, seen)); diff != "" {
					t.Fatalf("seed %d, step %d: view (-want +got):\n%s", seed, step, diff)
				}
				if seen != b.View() {
					t.Fatalf("seed %d, step %d: another view although nothing has changed", seed, step)
				}
			}
			if len(b.byPod)+b.ofGangs != len(model) || len(b.due) != len(model) {
				t.Fatalf("seed %d, step %d: %d reservations, %d of them due, want %d", seed, step, len(b.byPod)+b.ofGangs, len(b.due), len(model))
			}
		}
		if b.EndOfGang(ownerNamed("g").Gang, nil); len(b.byGang) > 1 {
			t.Fatalf("seed %d: gangs with reservations: %v", seed, b.byGang)
		}
		if b.EndOfGang(ownerNamed("h").Gang, nil); len(b.byPod)+b.ofGangs+len(b.byTaker)+len(b.byGang)+len(b.byNode)+len(b.byOwner)+len(b.due) > 0 {
			t.Fatalf("seed %d: something is left: %+v", seed, b.Set)
		}
	}
}

// TestOccupy: a pod that ends before gangs start has its part of what is reserved for one of them, as long as it is on
// the node.
func TestOccupy(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(2_000_000+s, 0) }
	for name, tc := range map[string]struct {
		pods []Occupied // each ends at 15; two pods have all that is reserved for a gang
		gone types.UID
		gang string
		ends time.Time
		want map[string]int64 // pods that are reserved from the free room, by gang: x starts at 10, y at 20, z at 30, none knows when n does
	}{
		"none":                         {want: map[string]int64{"x": 2, "y": 2, "z": 2, "n": 2}},
		"the first that starts later":  {pods: pods("a"), ends: at(15), want: map[string]int64{"x": 2, "y": 1, "z": 2, "n": 2}},
		"twice":                        {pods: pods("a", "a"), ends: at(15), want: map[string]int64{"x": 2, "y": 1, "z": 2, "n": 2}},
		"until it is occupied":         {pods: pods("a", "b", "c"), ends: at(15), want: map[string]int64{"x": 2, "y": 0, "z": 1, "n": 2}},
		"more than all":                {pods: pods("a", "b", "c", "d", "e"), ends: at(15), want: map[string]int64{"x": 2, "y": 0, "z": 0, "n": 2}},
		"it is gone":                   {pods: pods("a", "b"), gone: "a", ends: at(15), want: map[string]int64{"x": 2, "y": 1, "z": 2, "n": 2}},
		"of the gang itself":           {pods: pods("a"), gang: "y", ends: at(15), want: map[string]int64{"x": 2, "y": 2, "z": 1, "n": 2}},
		"too late":                     {pods: pods("a"), ends: at(31), want: map[string]int64{"x": 2, "y": 2, "z": 2, "n": 2}},
		"it does not say when it ends": {pods: pods("a"), want: map[string]int64{"x": 2, "y": 2, "z": 2, "n": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBookkeeping()
			for gang, starts := range map[string]time.Time{"z": at(30), "n": {}, "y": at(20), "x": at(10)} {
				if !b.Reserve(Reservation{Owner: ownerNamed(gang + EveryLeaf), Node: "n1", Amount: amountOf(2), Starts: starts}, b.now.Add(time.Hour), b.now) {
					t.Fatal("not reserved")
				}
			}
			before := b.View()
			for _, pod := range tc.pods {
				a := Asker{Ends: tc.ends}
				if tc.gang != "" {
					a.Gang = ownerNamed(tc.gang).Gang
				}
				b.Occupy(a, "n1", pod)
			}
			got := map[string]int64{}
			for _, x := range b.View().On("n1") {
				rest := x.Rest(func(uid types.UID) bool { return uid != tc.gone })
				got[x.Owner.Gang.Name] = rest.Pods
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, x := range before.On("n1") {
				if len(x.Occupied) > 0 {
					t.Error("an earlier View has changed")
				}
			}
		})
	}
}

// TestRemoveOccupant: what is recorded of pods that have left does not add up.
func TestRemoveOccupant(t *testing.T) {
	t.Parallel()
	b := newBookkeeping()
	starts := b.now.Add(time.Hour)
	for _, node := range []string{"n1", "n2"} {
		b.Reserve(Reservation{Owner: ownerNamed("y" + EveryLeaf), Node: node, Amount: amountOf(2), Starts: starts}, starts, b.now)
	}
	occupied := func() (n int) {
		for _, list := range b.View().ByNode() {
			n += len(list[0].Occupied)
		}
		return n
	}
	for i := range 100 {
		uid := types.UID(fmt.Sprint(i))
		b.Occupy(Asker{Ends: starts}, "n1", Occupied{Pod: uid, Amount: amountOf(1)})
		b.Occupy(Asker{Ends: starts}, "n2", Occupied{Pod: uid, Amount: amountOf(1)}) // it was not bound to n1
		if n := occupied(); n != 1 {
			t.Fatalf("%d pods are recorded, want 1", n)
		}
		b.RemoveOccupant(uid)
		b.RemoveOccupant(uid)
	}
	b.Occupy(Asker{Ends: starts}, "n1", Occupied{Pod: "last", Amount: amountOf(1)})
	b.EndOnNode("n1")
	if n := occupied(); n != 0 || len(b.occupants) != 0 {
		t.Errorf("%d pods are recorded, and %d of them known, want none", n, len(b.occupants))
	}
}

// pods returns pods that each have half of what is reserved for a gang of TestOccupy.
func pods(uids ...types.UID) (list []Occupied) {
	for _, uid := range uids {
		list = append(list, Occupied{Pod: uid, Amount: amountOf(1)})
	}
	return list
}

// TestEquivalentAskersMayUseTheSame: what holds for an asker holds for the one that View.Equivalent returns for it, and
// there are few of these.
func TestEquivalentAskersMayUseTheSame(t *testing.T) {
	t.Parallel()
	rng, now := rand.New(rand.NewSource(1)), time.Unix(1_000_000, 0)
	gang := func() types.NamespacedName { return types.NamespacedName{Name: fmt.Sprint(rng.Intn(8))} }
	at := func() time.Time {
		if rng.Intn(3) == 0 {
			return time.Time{}
		}
		return now.Add(time.Duration(rng.Intn(20)) * time.Minute)
	}
	for range 500 {
		s := NewSet()
		for range rng.Intn(4) {
			x := Reservation{
				Owner: Owner{Gang: gang(), Leaf: EveryLeaf}, Node: fmt.Sprint(rng.Intn(3)), Priority: rng.Int31n(5), Starts: at(), Promised: rng.Intn(2) > 0,
				Amount: Amount{Pods: 1},
			}
			if x.Starts.IsZero() && rng.Intn(2) > 0 {
				x.Owner.Leaf, x.Pod = "", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(rng.Int()))}}
			}
			s.Reserve(x, now.Add(time.Hour), now)
			if rng.Intn(4) == 0 {
				s.View()
				s.EndOnNode(x.Node)
			}
		}
		view, likes := s.View(), map[Asker]bool{}
		for range 200 {
			a := Asker{Gang: gang(), Priority: rng.Int31n(7) - 1, Surplus: rng.Intn(2) > 0, Refill: rng.Intn(2) > 0, Ends: at()}
			like := view.Equivalent(a)
			likes[like] = true
			if view.Equivalent(like) != like {
				t.Fatalf("Equivalent(%+v) is %+v, and for that %+v", a, like, view.Equivalent(like))
			}
			for _, list := range view.ByNode() {
				for _, x := range list {
					if x.Restricts(a) != x.Restricts(like) || (x.Owner.Gang == a.Gang) != (x.Owner.Gang == like.Gang) {
						t.Fatalf("%+v restricts %+v: %t; like it %+v: %t", x, a, x.Restricts(a), like, x.Restricts(like))
					}
				}
			}
		}
		if most := (view.Len() + 1) * (view.Len() + 1) * (view.Len() + 1) * 4; len(likes) > most {
			t.Fatalf("%d different askers of %d rooms, want at most %d", len(likes), view.Len(), most)
		}
	}
}
