// SPDX-License-Identifier: Apache-2.0

package gangs

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

// bookkeeping drives rooms by the names of pods; a room has the name of its pod.
type bookkeeping struct {
	*rooms
	now   time.Time
	ended []string
}

func newBookkeeping() *bookkeeping {
	return &bookkeeping{rooms: newRooms(), now: time.Unix(1_000_000, 0)}
}

func ownerNamed(name string) Owner {
	return Owner{Gang: Key{Namespace: testNamespace, Name: name[:1]}, Leaf: name[1:]}
}

func (b *bookkeeping) keeps(pod, owner, node string, lasts time.Duration) bool {
	x := Room{Owner: ownerNamed(owner), Node: node, Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(pod)}}}
	return b.keep(x, b.now.Add(lasts), b.now)
}

func (b *bookkeeping) note(ended []Room) {
	for _, x := range ended {
		b.ended = append(b.ended, string(x.Pod.UID))
	}
}

func (b *bookkeeping) names() []string {
	var out []string
	for _, x := range b.counted() {
		out = append(out, string(x.Pod.UID))
	}
	return out
}

// counted returns the rooms that count, the oldest first.
func (s *rooms) counted() []Room {
	var out []Room
	for _, x := range slices.SortedFunc(maps.Values(s.byPod), func(a, b *keptRoom) int { return a.seq - b.seq }) {
		if x.taker == "" {
			out = append(out, x.Room)
		}
	}
	return out
}

// listener knows the rooms by their changes alone.
type listener map[types.UID]Room

func (l listener) hear(changes []RoomChange) error {
	for _, x := range changes {
		if _, known := l[x.Pod.UID]; known == x.Counts {
			return fmt.Errorf("the room of %s counts: %t, as before", x.Pod.UID, x.Counts)
		}
		if l[x.Pod.UID] = x.Room; !x.Counts {
			delete(l, x.Pod.UID)
		}
	}
	return nil
}

func TestRoomsAreKeptAndEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do    func(b *bookkeeping)
		want  []string // rooms that count
		ended []string
	}{
		"nothing is kept at first": {do: func(*bookkeeping) {}},
		"a room is kept once": {
			do:   func(b *bookkeeping) { b.keeps("p", "gx", "n", time.Minute); b.keeps("p", "gx", "m", time.Hour) },
			want: []string{"p"},
		},
		"a room whose time is over is not kept": {
			do: func(b *bookkeeping) { b.keeps("p", "gx", "n", 0) },
		},
		"a room ends with its time": {
			do: func(b *bookkeeping) {
				b.keeps("long", "gx", "n", time.Hour)
				b.keeps("short", "gx", "n", time.Minute)
				b.note(b.expire(b.now.Add(time.Minute)))
			},
			want: []string{"long"}, ended: []string{"short"},
		},
		"an assumed pod takes the room on its node, not an older one": {
			do: func(b *bookkeeping) {
				b.keeps("older", "gx", "n", time.Minute)
				b.keeps("here", "gx", "m", time.Minute)
				b.take(ownerNamed("gx"), "new", "m")
			},
			want: []string{"older"},
		},
		"an assumed pod elsewhere takes the oldest room": {
			do: func(b *bookkeeping) {
				b.keeps("older", "gx", "n", time.Minute)
				b.keeps("newer", "gx", "m", time.Minute)
				b.take(ownerNamed("gx"), "new", "elsewhere")
			},
			want: []string{"newer"},
		},
		"a pod of another leaf takes none": {
			do: func(b *bookkeeping) {
				b.keeps("p", "gx", "n", time.Minute)
				b.take(ownerNamed("gy"), "new", "n")
			},
			want: []string{"p"},
		},
		"a pod takes one room, however often it is assumed": {
			do: func(b *bookkeeping) {
				b.keeps("p", "gx", "n", time.Minute)
				b.keeps("q", "gx", "n", time.Minute)
				b.take(ownerNamed("gx"), "new", "n")
				b.take(ownerNamed("gx"), "new", "n")
			},
			want: []string{"q"},
		},
		"a released pod gives its room back, for the rest of the time": {
			do: func(b *bookkeeping) {
				b.keeps("p", "gx", "n", time.Minute)
				b.take(ownerNamed("gx"), "new", "n")
				b.restore("new")
				b.note(b.expire(b.now.Add(time.Minute - time.Nanosecond)))
			},
			want: []string{"p"},
		},
		"the time of a taken room runs on": {
			do: func(b *bookkeeping) {
				b.keeps("p", "gx", "n", time.Minute)
				b.take(ownerNamed("gx"), "new", "n")
				b.note(b.expire(b.now.Add(time.Minute)))
				b.restore("new")
			},
			ended: []string{"p"},
		},
		"a room ends when the pod that took it is bound": {
			do: func(b *bookkeeping) {
				b.keeps("p", "gx", "n", time.Minute)
				b.take(ownerNamed("gx"), "new", "n")
				b.note(b.endRoomTakenBy("new"))
				b.note(b.endRoomTakenBy("new"))
			},
			ended: []string{"p"},
		},
		"a bound pod that took nothing ends nothing": {
			do:   func(b *bookkeeping) { b.keeps("p", "gx", "n", time.Minute); b.note(b.endRoomTakenBy("new")) },
			want: []string{"p"},
		},
		"rooms of a gang are dropped, others stay": {
			do: func(b *bookkeeping) {
				b.keeps("p", "gx", "n", time.Minute)
				b.keeps("q", "gy", "n", time.Minute)
				b.keeps("r", "hx", "n", time.Minute)
				b.note(b.dropGang(ownerNamed("g").Gang))
			},
			want: []string{"r"}, ended: []string{"p", "q"},
		},
		"rooms on a node are dropped": {
			do: func(b *bookkeeping) {
				b.keeps("p", "gx", "n", time.Minute)
				b.keeps("q", "gx", "m", time.Minute)
				b.note(b.dropNode("n"))
			},
			want: []string{"q"}, ended: []string{"p"},
		},
		"no more are kept than the bounds say": {
			do: func(b *bookkeeping) {
				b.max, b.maxOfGang = 3, 2
				for _, p := range []string{"p", "q", "r"} {
					b.keeps(p, "gx", "n", time.Minute)
				}
				b.keeps("s", "hx", "n", time.Minute)
				b.keeps("t", "ix", "n", time.Minute)
			},
			want: []string{"p", "q", "s"},
		},
		"what ends makes room for others": {
			do: func(b *bookkeeping) {
				b.maxOfGang = 1
				b.keeps("p", "gx", "n", time.Minute)
				b.note(b.drop("p"))
				b.keeps("q", "gx", "n", time.Minute)
			},
			want: []string{"q"}, ended: []string{"p"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBookkeeping()
			tt.do(b)
			if diff := cmp.Diff(tt.want, b.names()); diff != "" {
				t.Errorf("rooms that count (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.ended, b.ended); diff != "" {
				t.Errorf("rooms that ended (-want +got):\n%s", diff)
			}
		})
	}
}

// naiveRoom is a room of a model that visits all rooms for every question.
type naiveRoom struct {
	pod, node, taker string
	owner            Owner
	until            time.Time
}

// Random sequences of all operations on rooms, compared with a model without indices.
func TestRoomsRandomly(t *testing.T) {
	t.Parallel()
	for seed := range int64(300) {
		rng := rand.New(rand.NewSource(seed))
		b := newBookkeeping()
		b.max, b.maxOfGang = 12, 6
		heard := listener{}
		var model []*naiveRoom // oldest first
		gone := func(is func(*naiveRoom) bool) {
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
				known := slices.ContainsFunc(model, func(x *naiveRoom) bool { return x.pod == pod })
				ofGang := 0
				for _, x := range model {
					if x.owner.Gang == key.Gang {
						ofGang++
					}
				}
				want := !known && lasts > 0 && len(model) < b.max && ofGang < b.maxOfGang
				if got := b.keeps(pod, owner, node, lasts); got != want {
					t.Fatalf("seed %d, step %d: keep is %t, want %t", seed, step, got, want)
				}
				if want {
					model = append(model, &naiveRoom{pod: pod, node: node, owner: key, until: b.now.Add(lasts)})
				}
			case 3, 4:
				b.take(key, types.UID(taker), node)
				if slices.ContainsFunc(model, func(x *naiveRoom) bool { return x.taker == taker }) {
					break
				}
				var best *naiveRoom
				for _, x := range model {
					if x.owner == key && x.taker == "" && (best == nil || best.node != node && x.node == node) {
						best = x
					}
				}
				if best != nil {
					best.taker = taker
				}
			case 5:
				b.restore(types.UID(taker))
				for _, x := range model {
					if x.taker == taker {
						x.taker = ""
					}
				}
			case 6:
				b.endRoomTakenBy(types.UID(taker))
				gone(func(x *naiveRoom) bool { return x.taker == taker })
			case 7:
				b.now = b.now.Add(time.Duration(rng.Intn(15)) * time.Second)
				b.expire(b.now)
				gone(func(x *naiveRoom) bool { return !b.now.Before(x.until) })
			case 8:
				switch rng.Intn(4) {
				case 0:
					b.dropGang(key.Gang)
					gone(func(x *naiveRoom) bool { return x.owner.Gang == key.Gang })
				case 1:
					b.dropNode(node)
					gone(func(x *naiveRoom) bool { return x.node == node })
				default:
					b.drop(types.UID(pod))
					gone(func(x *naiveRoom) bool { return x.pod == pod })
				}
			}
			var want []string
			for _, x := range model {
				if x.taker == "" {
					want = append(want, x.pod)
				}
			}
			if diff := cmp.Diff(want, b.names()); diff != "" {
				t.Fatalf("seed %d, step %d: rooms that count (-want +got):\n%s", seed, step, diff)
			}
			if n := len(b.unread); n > 25+b.max {
				t.Fatalf("seed %d, step %d: %d changes wait", seed, step, n)
			}
			if rng.Intn(4) == 0 {
				if err := heard.hear(b.changes()); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
				var got []string
				for pod := range heard {
					got = append(got, string(pod))
				}
				slices.Sort(got)
				slices.Sort(want)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d, step %d: rooms by their changes (-want +got):\n%s", seed, step, diff)
				}
			}
			if len(b.byPod) != len(model) || len(b.due.items) != len(model) {
				t.Fatalf("seed %d, step %d: %d rooms, %d of them due, want %d", seed, step, len(b.byPod), len(b.due.items), len(model))
			}
		}
		if b.dropGang(ownerNamed("g").Gang); len(b.byGang) > 1 {
			t.Fatalf("seed %d: gangs with rooms: %v", seed, b.byGang)
		}
		if b.dropGang(ownerNamed("h").Gang); len(b.byPod)+len(b.byTaker)+len(b.byGang)+len(b.byNode)+len(b.ofOwner)+len(b.free)+len(b.due.items) > 0 {
			t.Fatalf("seed %d: something is left: %+v", seed, b.rooms)
		}
	}
}
