// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"fmt"
	"maps"
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
	x := Reservation{Owner: ownerNamed(owner), Node: node, Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(pod)}}}
	return b.Reserve(x, b.now.Add(lasts), b.now)
}

func (b *bookkeeping) note(ended []*Reservation) {
	for _, x := range ended {
		b.ended = append(b.ended, string(x.Pod.UID))
	}
}

// counting returns the reservations that count, the oldest first.
func (b *bookkeeping) counting() []string {
	var out []string
	for _, x := range slices.SortedFunc(maps.Values(b.byPod), func(a, b *Reservation) int { return a.seq - b.seq }) {
		if x.taker == "" {
			out = append(out, string(x.Pod.UID))
		}
	}
	return out
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
			out = append(out, string(x.Pod.UID))
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
				b.Take(ownerNamed("gx"), "new", "m")
			},
			want: []string{"older"},
		},
		"an assumed pod elsewhere takes the oldest one": {
			do: func(b *bookkeeping) {
				b.reserve("older", "gx", "n", time.Minute)
				b.reserve("newer", "gx", "m", time.Minute)
				b.Take(ownerNamed("gx"), "new", "elsewhere")
			},
			want: []string{"newer"},
		},
		"a pod of another leaf takes none": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.Take(ownerNamed("gy"), "new", "n")
			},
			want: []string{"p"},
		},
		"a pod takes one, however often it is assumed": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.reserve("q", "gx", "n", time.Minute)
				b.Take(ownerNamed("gx"), "new", "n")
				b.Take(ownerNamed("gx"), "new", "n")
			},
			want: []string{"q"},
		},
		"a released pod gives it back, for the rest of the time": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.Take(ownerNamed("gx"), "new", "n")
				b.GiveBack("new")
				b.note(b.Expire(b.now.Add(time.Minute - time.Nanosecond)))
			},
			want: []string{"p"},
		},
		"the time of a taken one runs on": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.Take(ownerNamed("gx"), "new", "n")
				b.note(b.Expire(b.now.Add(time.Minute)))
				b.GiveBack("new")
			},
			ended: []string{"p"},
		},
		"a reservation ends when the pod that took it is bound": {
			do: func(b *bookkeeping) {
				b.reserve("p", "gx", "n", time.Minute)
				b.Take(ownerNamed("gx"), "new", "n")
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
				b.max, b.maxOfGang = 3, 2
				for _, p := range []string{"p", "q", "r"} {
					b.reserve(p, "gx", "n", time.Minute)
				}
				b.reserve("s", "hx", "n", time.Minute)
				b.reserve("t", "ix", "n", time.Minute)
			},
			want: []string{"p", "q", "s"},
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
	pod, node, taker string
	owner            Owner
	until            time.Time
}

// Random sequences of all operations, compared with a model without indices.
func TestReservationsRandomly(t *testing.T) {
	t.Parallel()
	for seed := range int64(300) {
		rng := rand.New(rand.NewSource(seed))
		b := newBookkeeping()
		b.max, b.maxOfGang = 12, 6
		seen := b.View()
		var before []string           // in the view
		var model []*naiveReservation // oldest first
		gone := func(is func(*naiveReservation) bool) {
			model = slices.DeleteFunc(model, is)
		}
		pick := func(from ...string) string { return from[rng.Intn(len(from))] }
		for step := range 400 {
			pod, taker := fmt.Sprint("p", rng.Intn(25)), fmt.Sprint("t", rng.Intn(8))
			owner, node := pick("gx", "gy", "hx"), pick("n", "m", "o")
			key := ownerNamed(owner)
			switch rng.Intn(9) {
			case 0, 1, 2:
				lasts := time.Duration(rng.Intn(60)) * time.Second
				known := slices.ContainsFunc(model, func(x *naiveReservation) bool { return x.pod == pod })
				ofGang := 0
				for _, x := range model {
					if x.owner.Gang == key.Gang {
						ofGang++
					}
				}
				want := !known && lasts > 0 && len(model) < b.max && ofGang < b.maxOfGang
				if got := b.reserve(pod, owner, node, lasts); got != want {
					t.Fatalf("seed %d, step %d: Reserve is %t, want %t", seed, step, got, want)
				}
				if want {
					model = append(model, &naiveReservation{pod: pod, node: node, owner: key, until: b.now.Add(lasts)})
				}
			case 3, 4:
				b.Take(key, types.UID(taker), node)
				if slices.ContainsFunc(model, func(x *naiveReservation) bool { return x.taker == taker }) {
					break
				}
				var best *naiveReservation
				for _, x := range model {
					if x.owner == key && x.taker == "" && (best == nil || best.node != node && x.node == node) {
						best = x
					}
				}
				if best != nil {
					best.taker = taker
				}
			case 5:
				b.GiveBack(types.UID(taker))
				for _, x := range model {
					if x.taker == taker {
						x.taker = ""
					}
				}
			case 6:
				b.EndTakenBy(types.UID(taker))
				gone(func(x *naiveReservation) bool { return x.taker == taker })
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
				if x.taker == "" {
					want = append(want, x.pod)
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
			if len(b.byPod) != len(model) || len(b.due) != len(model) {
				t.Fatalf("seed %d, step %d: %d reservations, %d of them due, want %d", seed, step, len(b.byPod), len(b.due), len(model))
			}
		}
		if b.EndOfGang(ownerNamed("g").Gang, nil); len(b.byGang) > 1 {
			t.Fatalf("seed %d: gangs with reservations: %v", seed, b.byGang)
		}
		if b.EndOfGang(ownerNamed("h").Gang, nil); len(b.byPod)+len(b.byTaker)+len(b.byGang)+len(b.byNode)+len(b.byOwner)+len(b.due) > 0 {
			t.Fatalf("seed %d: something is left: %+v", seed, b.Set)
		}
	}
}
