// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

func gangNamed(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ml", Name: name}
}

// reservation is that of a pod with the given number of GPUs on a node.
func reservation(gang, leaf, node string, gpus int64, priority int32) reservations.Reservation {
	pod := wrappers.MakePod(gang+leaf+"-gone", "ml").UID(gang + leaf + node + "-gone").GPUs(gpus).Node(node).Obj()
	return reservationOf(gangNamed(gang), leaf, priority, pod)
}

// Pods of one GPU each are planned one after another on n0 and n1 with 8 GPUs each, for gang g at priority 10.
func TestPlansBesideReservations(t *testing.T) {
	for name, tc := range map[string]struct {
		reserved []reservations.Reservation
		gpus     []int64  // by class
		leaves   []string // by class
		asks     []int    // classes
		want     []string // "-" is a refusal
		capacity []placement.Capacity
		why      map[string]int // reasons of class 0 after all placements
	}{
		"nothing is kept": {
			gpus: []int64{8}, asks: []int{0, 0, 0}, want: []string{"n0", "n1", "-"},
			capacity: []placement.Capacity{{Nodes: 2, Pods: 2}}, why: map[string]int{"Insufficient nvidia.com/gpu": 2},
		},
		"room of another gang of the same priority is taken": {
			reserved: []reservations.Reservation{reservation("other", "x", "n0", 4, 10)},
			gpus:     []int64{8}, asks: []int{0, 0}, want: []string{"n1", "-"}, capacity: []placement.Capacity{{Nodes: 1, Pods: 1}},
			why: map[string]int{RoomReserved: 1, "Insufficient nvidia.com/gpu": 1},
		},
		"room of another gang of a higher priority is taken": {
			reserved: []reservations.Reservation{reservation("other", "x", "n0", 4, 20)},
			gpus:     []int64{4}, asks: []int{0, 0, 0, 0}, want: []string{"n0", "n1", "n1", "-"}, capacity: []placement.Capacity{{Nodes: 2, Pods: 3}},
			why: map[string]int{RoomReserved: 1, "Insufficient nvidia.com/gpu": 1},
		},
		"room of another gang of a lower priority is free": {
			reserved: []reservations.Reservation{reservation("other", "x", "n0", 8, 9)},
			gpus:     []int64{8}, asks: []int{0, 0}, want: []string{"n0", "n1"}, capacity: []placement.Capacity{{Nodes: 2, Pods: 2}},
			why: map[string]int{"Insufficient nvidia.com/gpu": 2},
		},
		"its own leaf's room is free, of another leaf it is taken": {
			reserved: []reservations.Reservation{reservation("g", "x", "n0", 8, 10), reservation("other", "x", "n1", 8, 10)},
			gpus:     []int64{8, 8}, leaves: []string{"y", "x"}, asks: []int{0, 1, 1}, want: []string{"-", "n0", "-"},
			capacity: []placement.Capacity{{}, {Nodes: 1, Pods: 1}}, why: map[string]int{RoomReserved: 1, "Insufficient nvidia.com/gpu": 1},
		},
		"two leaves of a unit come back to one node": {
			reserved: []reservations.Reservation{reservation("g", "x", "n0", 4, 10), reservation("g", "y", "n0", 4, 10), reservation("other", "x", "n1", 8, 10)},
			gpus:     []int64{4, 4}, leaves: []string{"x", "y"}, asks: []int{0, 1, 0, 1}, want: []string{"n0", "n0", "-", "-"},
			capacity: []placement.Capacity{{Nodes: 1, Pods: 1}, {Nodes: 1, Pods: 1}}, why: map[string]int{RoomReserved: 1, "Insufficient nvidia.com/gpu": 1},
		},
		"a leaf that uses less than is kept for it does not leave the rest to another leaf": {
			reserved: []reservations.Reservation{reservation("g", "x", "n0", 6, 10), reservation("other", "x", "n1", 8, 10)},
			gpus:     []int64{2, 2}, leaves: []string{"x", "y"}, asks: []int{0, 1, 1, 0, 0, 0}, want: []string{"n0", "n0", "-", "n0", "n0", "-"},
			capacity: []placement.Capacity{{Nodes: 1, Pods: 4}, {Nodes: 1, Pods: 1}}, why: map[string]int{RoomReserved: 1, "Insufficient nvidia.com/gpu": 1},
		},
		"a node that does not exist": {
			reserved: []reservations.Reservation{reservation("other", "x", "n9", 8, 10)},
			gpus:     []int64{8}, asks: []int{0}, want: []string{"n0"}, capacity: []placement.Capacity{{Nodes: 2, Pods: 2}},
			why: map[string]int{"Insufficient nvidia.com/gpu": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, racks(2, 8)...)
			cached := NewFilterCache()
			for _, round := range []string{"anew", "from the cache"} {
				var classes []*corev1.Pod
				for i, gpus := range tc.gpus {
					classes = append(classes, classPod(fmt.Sprint("c", i)).GPUs(gpus).Obj())
				}
				w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes, Options{
					Cache: cached, Reserved: reservedOf(tc.reserved...), Asker: reservations.Asker{Gang: gangNamed("g"), Priority: 10}, Leaves: tc.leaves,
				})
				if err != nil {
					t.Fatal(err)
				}
				var capacity []placement.Capacity
				for i := range classes {
					capacity = append(capacity, w.Capacity(i))
				}
				if diff := cmp.Diff(tc.capacity, capacity); diff != "" {
					t.Errorf("%s: capacity (-want +got):\n%s", round, diff)
				}
				var got []string
				for _, class := range tc.asks {
					node, ok := w.Place(class, "")
					if !ok {
						node = "-"
					}
					got = append(got, node)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: nodes (-want +got):\n%s", round, diff)
				}
				if diff := cmp.Diff(tc.why, w.Explain(0, "").Reasons); diff != "" {
					t.Errorf("%s: why (-want +got):\n%s", round, diff)
				}
				w.Undo(len(w.placed))
				again, ok := w.Place(tc.asks[0], "")
				if ok != (tc.want[0] != "-") || ok && again != tc.want[0] {
					t.Errorf("%s: after all was taken back the first pod gets %q", round, again)
				}
			}
		})
	}
}

// reservationOf reserves the room of a pod.
func reservationOf(gang types.NamespacedName, leaf string, priority int32, pod *corev1.Pod) reservations.Reservation {
	return reservations.Reservation{
		Owner: reservations.Owner{Gang: gang, Leaf: leaf}, Priority: priority, Node: pod.Spec.NodeName, Amount: AmountOf(pod), Pod: pod,
	}
}

// reservedOf returns the view of these reservations.
func reservedOf(list ...reservations.Reservation) *reservations.View {
	return setOf(list...).View()
}

func setOf(list ...reservations.Reservation) *reservations.Set {
	set, now := reservations.NewSet(), time.Now()
	for _, x := range list {
		set.Reserve(x, now.Add(time.Hour), now)
	}
	return set
}

// While the pod is on its node, it occupies its room itself, and the room is not counted again.

func TestReservationOfAPodThatIsThereIsNotCountedTwice(t *testing.T) {
	c := newCluster(t, racks(1, 8)...)
	there := c.bind(classPod("there").GPUs(4).Obj(), "there", "n0")
	reserved := reservedOf(reservationOf(gangNamed("other"), "", 10, there))
	request := AmountOf(classPod("new").GPUs(4).Obj())
	ask := func() (planned, spared bool) {
		w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{classPod("new").GPUs(4).Obj()}, Options{Reserved: reserved})
		if err != nil {
			t.Fatal(err)
		}
		_, planned = w.Place(0, "")
		_, second := w.Place(0, "")
		if second {
			t.Error("two pods fit")
		}
		return planned, FitsBeside(reserved, reservations.Amount{}, c.nodes[0], request, reservations.Asker{})
	}
	for _, when := range []string{"there", "gone"} {
		if planned, spared := ask(); !planned || !spared {
			t.Errorf("the pod is %s: planned %t, spared %t", when, planned, spared)
		}
		if when == "there" {
			c.unbind(there)
		}
	}
	if FitsBeside(reserved, reservations.Amount{}, c.nodes[0], AmountOf(classPod("big").GPUs(5).Obj()), reservations.Asker{}) {
		t.Error("a pod of 5 GPUs takes what is kept")
	}
}

func TestWhatANodeSpares(t *testing.T) {
	for name, tc := range map[string]struct {
		pod      *wrappers.PodWrapper
		priority int32
		want     bool
	}{
		"of the same priority": {pod: classPod("p").GPUs(5), priority: 10, want: false},
		"of a lower priority":  {pod: classPod("p").GPUs(5), priority: 0, want: false},
		"of a higher priority": {pod: classPod("p").GPUs(5), priority: 11, want: true},
		"beside what is kept":  {pod: classPod("p").GPUs(4), priority: 10, want: true},
		"of another resource":  {pod: classPod("p").CPU("1"), priority: 10, want: true},
		"larger than the node": {pod: classPod("p").GPUs(9), priority: 10, want: true}, // another filter refuses it
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, racks(1, 8)...)
			reserved := reservedOf(reservation("g", "x", "n0", 4, 10))
			if got := FitsBeside(reserved, reservations.Amount{}, c.nodes[0], AmountOf(tc.pod.Obj()), reservations.Asker{Priority: tc.priority}); got != tc.want {
				t.Errorf("spares is %t, want %t", got, tc.want)
			}
		})
	}
}

// Room that is promised to members of a plan is kept from pods of any priority, beside what is reserved. Of 8 GPUs 4
// are reserved at priority 10.
func TestRoomOfMembersIsKept(t *testing.T) {
	t.Parallel()
	c := newCluster(t, racks(1, 8)...)
	reserved, promised := reservedOf(reservation("g", "x", "n0", 4, 10)), AmountOf(classPod("m").GPUs(3).Obj())
	for name, tc := range map[string]struct {
		gpus     int64
		priority int32
		want     bool
	}{
		"beside both":                   {1, 10, true},
		"in what is promised":           {2, 10, false},
		"above what is reserved":        {5, 11, true},
		"above it, in what is promised": {6, 11, false},
		"larger than what the node has": {9, 11, true}, // another filter refuses it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := AmountOf(classPod("p").GPUs(tc.gpus).Obj())
			if got := FitsBeside(reserved, promised, c.nodes[0], pod, reservations.Asker{Priority: tc.priority}); got != tc.want {
				t.Errorf("fits: %t, want %t", got, tc.want)
			}
		})
	}
}

// The number of pods of a node is taken into account too.
func TestThePlaceOfAPodIsKept(t *testing.T) {
	c := newCluster(t, wrappers.MakeNode("n0").Capacity(corev1.ResourcePods, "2").Obj())
	c.bind(classPod("there").Obj(), "there", "n0")
	reserved := reservedOf(reservation("g", "x", "n0", 0, 10))
	pod := classPod("p").Obj()
	if FitsBeside(reserved, reservations.Amount{}, c.nodes[0], AmountOf(pod), reservations.Asker{Priority: 10}) {
		t.Error("the last place is given away")
	}
	if !FitsBeside(reserved, reservations.Amount{}, c.nodes[0], AmountOf(pod), reservations.Asker{Priority: 11}) {
		t.Error("the last place is kept from a higher priority")
	}
}

// The numbers of Shapes agree with the results of plans in any order of events of nodes, pods and reservations.
func TestShapesBesideReservations(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			var objects []runtime.Object
			for i := range 5 {
				objects = append(objects, wrappers.MakeNode(fmt.Sprint("n", i)).GPUs(8).Label("rack", fmt.Sprint("r", i%2)).Obj())
			}
			c := newCluster(t, objects...)
			shapes := newShapes(func(s *cache.Snapshot) error { return c.sched.Cache.UpdateSnapshot(klog.Background(), s) },
				func(*corev1.Pod) framework.Framework { return c.f })
			pods := []*corev1.Pod{classPod("one").GPUs(1).Obj(), classPod("three").GPUs(3).Obj()}
			var tracked []*Shape
			var racks []map[string]*DomainShape // "": any
			for _, pod := range pods {
				shape, err := shapes.TrackShape(c.ctx, pod)
				if err != nil {
					t.Fatal(err)
				}
				r0, r1 := "r0", "r1"
				tracked = append(tracked, shape)
				racks = append(racks, map[string]*DomainShape{"": shapes.TrackDomain(shape, "rack", nil),
					r0: shapes.TrackDomain(shape, "rack", &r0), r1: shapes.TrackDomain(shape, "rack", &r1)})
			}
			var bound []*corev1.Pod
			var list []reservations.Reservation
			reserved := setOf()
			for step := range 60 {
				switch rng.IntN(4) {
				case 0:
					pod := c.bind(classPod("p").GPUs(int64(1+rng.IntN(4))).Obj(), fmt.Sprint("p", step), fmt.Sprint("n", rng.IntN(5)))
					bound = append(bound, pod)
				case 1:
					if len(bound) > 0 { // it is deleted, and its room is reserved in some cases
						pod := bound[0]
						bound = bound[1:]
						if rng.IntN(2) == 0 {
							x := reservationOf(gangNamed(string(rune('a'+rng.IntN(2)))), "", int32(rng.IntN(3)), pod)
							list = append(slices.Clip(list), x)
							reserved.Reserve(x, time.Now().Add(time.Hour), time.Now())
						}
						c.unbind(pod)
					}
				case 2:
					if len(list) > 0 {
						reserved.EndOf(list[0].Pod.UID)
						list = slices.Clone(list[1:])
					}
				}
				if _, err := shapes.UpdateNodes(); err != nil {
					t.Fatal(err)
				}
				for _, gang := range []string{"a", "z"} {
					for priority := range int32(3) {
						asker := reservations.Asker{Gang: gangNamed(gang), Priority: priority}
						for i, shape := range tracked {
							others := slices.DeleteFunc(slices.Clone(list), func(x reservations.Reservation) bool { return x.Owner.Gang.Name == gang })
							w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{pods[i]}, Options{Reserved: reservedOf(others...), Asker: asker})
							if err != nil {
								t.Fatal(err)
							}
							want := 0
							for _, ok := w.Place(0, ""); ok; _, ok = w.Place(0, "") {
								want++
							}
							if got := shape.FittingPods() - shapes.Reserved(shape, reserved.View(), asker); got != want {
								t.Fatalf("step %d: %d pods of %s fit beside reservations %v, a plan for gang %s at priority %d places %d", step, got, shape.pod.Name, list, gang, priority, want)
							}
							w.Undo(want)
							wantIn, most := map[string]int{}, 0
							for _, area := range w.Areas("rack", 0) {
								n := 0
								for _, ok := w.Place(w.Within(0, area), ""); ok; _, ok = w.Place(w.Within(0, area), "") {
									n++
								}
								w.Undo(n)
								wantIn[w.AreaValue(area)], most = n, max(most, n)
							}
							wantIn[""] = most
							for rack, domain := range racks[i] {
								if got := domain.FittingPods() - shapes.ReservedIn(domain, reserved.View(), asker); got != wantIn[rack] {
									t.Fatalf("step %d: %d pods of %s fit in rack %q beside reservations %v, a plan for gang %s at priority %d places %d", step, got, shape.pod.Name, rack, list, gang, priority, wantIn[rack])
								}
							}
						}
					}
				}
			}
		})
	}
}

// TestAskForLater: pods that end in time, or replace others, are planned on room that is reserved for later, but not if
// they are to start later.
func TestAskForLater(t *testing.T) {
	c := newCluster(t, racks(1, 8)...)
	starts := time.Unix(5_000_000, 0)
	set := reservations.NewSet()
	set.Reserve(reservations.Reservation{
		Owner: reservations.Owner{Gang: gangNamed("other"), Leaf: reservations.EveryLeaf}, Node: "n0", Priority: 10, Starts: starts, Promised: true,
		Amount: reservations.Amount{Pods: 1, Resources: map[corev1.ResourceName]int64{wrappers.GPUResource: 8}},
	}, starts.Add(time.Hour), starts)
	for name, asker := range map[string]reservations.Asker{
		"it ends in time":    {Ends: starts},
		"it replaces others": {Refill: true},
	} {
		t.Run(name, func(t *testing.T) {
			asker.Gang, asker.Priority = gangNamed("g"), 10
			w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{classPod("c").GPUs(8).Obj()}, Options{Reserved: set.View(), Asker: asker})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := w.Place(0, ""); !ok {
				t.Fatal("it is not placed now")
			}
			w.Undo(1)
			w.AskForLater()
			if node, ok := w.Place(0, ""); ok {
				t.Errorf("it is placed on %s for later", node)
			}
			if w.Capacity(0).Pods != 0 {
				t.Error("it has room for later")
			}
		})
	}
}
