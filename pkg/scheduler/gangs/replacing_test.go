// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

const replacementTimeout = 5 * time.Minute

// beginReplacing starts a story in which room is reserved.
func beginReplacing(t *testing.T) *story {
	t.Helper()
	s := begin(t)
	opts := s.r.opts
	opts.ReplacementTimeout = replacementTimeout
	opts.Amount = func(*corev1.Pod) reservations.Amount { return reservations.Amount{Pods: 7} }
	s.r.Configure(opts)
	return s
}

// twoLeaves is PodGroup "g": leaf x needs two pods, leaf y one.
func twoLeaves() *wrappers.PodGroupWrapper {
	return podGroup().SubGroup("x", 2).SubGroup("y", 1)
}

func replacing(w *wrappers.PodGroupWrapper) *wrappers.PodGroupWrapper {
	return w.Annotation(v2alpha2.ReplacingAnnotation, "true")
}

// leafPod is a pod of gang g whose leaf is the first letter of its name.
func leafPod(name string) *wrappers.PodWrapper { return memberPod(name).SubGroup(name[:1]) }

// runs admits gang g, with pods x0, x1 and y0 on node n.
func (s *story) runs() *story {
	s.t.Helper()
	s.group(twoLeaves()).pods(leafPod("x0"), leafPod("x1"), leafPod("y0"))
	return s.binds("x0", "x0", "x1", "y0").wantAdmitted(true)
}

// terminate delivers the informer's events of pods that are being deleted.
func (s *story) terminate(names ...string) *story {
	for _, n := range names {
		pod := s.r.members[types.UID(n)].pod.DeepCopy()
		now, grace := metav1.NewTime(s.now.Add(30*time.Second)), int64(30)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
		s.effects = s.r.SetPod(pod, s.now)
	}
	return s
}

// counting returns the reservations that count, by the names of their pods, which are in the order of their creation.
func (s *story) counting() []*reservations.Reservation {
	var out []*reservations.Reservation
	for _, list := range s.r.Reservations().ByNode() {
		out = append(out, list...)
	}
	slices.SortFunc(out, func(a, b *reservations.Reservation) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
	return out
}

func (s *story) wantReserved(names ...string) *story {
	s.t.Helper()
	var got []string
	for _, x := range s.counting() {
		got = append(got, x.Pod.Name)
	}
	if diff := cmp.Diff(names, got); diff != "" {
		s.t.Fatalf("reservations that count (-want +got):\n%s", diff)
	}
	return s
}

// wantVacated checks which pods the last call returned as vacated.
func (s *story) wantVacated(names ...string) *story {
	s.t.Helper()
	var got []string
	for _, p := range s.effects.Vacated {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff(names, got); diff != "" {
		s.t.Fatalf("vacated (-want +got):\n%s", diff)
	}
	return s
}

// replaces creates a new pod, and plans and assumes it for the gang.
func (s *story) replaces(name string) *story {
	s.t.Helper()
	s.pods(leafPod(name)).leads(name)
	s.work.Problem.Pods = s.work.Singles.Pods // a refill of single pods
	return s.commits(name).assumes(name)
}

func TestTheRoomOfADeletedPodIsReserved(t *testing.T) {
	t.Parallel()
	s := beginReplacing(t).runs().wantReserved()
	s.group(replacing(twoLeaves())).wantReserved()
	s.terminate("x0").wantReserved("x0").wantVacated()
	list := s.counting()
	want := &reservations.Reservation{Owner: reservations.Owner{Gang: gangG, Leaf: "x"}, Node: "n", Priority: 0, Amount: reservations.Amount{Pods: 7}, Pod: list[0].Pod}
	if diff := cmp.Diff(want, list[0], cmpopts.IgnoreUnexported(reservations.Reservation{})); diff != "" {
		t.Errorf("the reservation (-want +got):\n%s", diff)
	}
	s.gone("x0").wantReserved("x0").wantVacated()
	s.replaces("x2").wantReserved().wantVacated()
	s.releases("x2").wantReserved("x0").wantVacated() // its cycle failed
	s.after(time.Second).replaces("x2").wantReserved()
	s.arrives("x2").posts("x2").wantReserved().wantVacated("x0")
	s.shownBound("x2").wantReserved().wantVacated()
}

func TestRoomIsNotReservedWithoutReason(t *testing.T) {
	t.Parallel()
	tests := map[string]func(s *story){
		"the PodGroup does not say that pods are replaced": func(s *story) {
			s.runs().terminate("x0").gone("x0")
		},
		"an empty value has no effect": func(s *story) {
			s.runs().group(twoLeaves().Annotation(v2alpha2.ReplacingAnnotation, "")).terminate("x0").gone("x0")
		},
		"the gang was never admitted": func(s *story) {
			s.group(replacing(twoLeaves())).pods(leafPod("x0").Node("n")).terminate("x0").gone("x0")
		},
		"the sub-group was never admitted": func(s *story) {
			s.group(replacing(podGroup().MinSubGroup(1).SubGroup("x", 2).SubGroup("y", 1)))
			s.pods(leafPod("y0").Node("n"), leafPod("x0").Node("n")).wantAdmitted(true)
			s.terminate("x0").gone("x0")
		},
		"the pod was never bound": func(s *story) {
			s.runs().group(replacing(twoLeaves())).pods(leafPod("x2")).terminate("x2").gone("x2")
		},
		"the pod is of no leaf": func(s *story) {
			s.runs().group(replacing(twoLeaves())).pods(leafPod("z0").Node("n")).terminate("z0").gone("z0")
		},
		"the pod failed by itself": func(s *story) {
			s.runs().group(replacing(twoLeaves())).gone("x0").wantReserved("x0")
			s.r.RemoveFailedPod("x0", s.now)
		},
		"the pod succeeded": func(s *story) {
			s.runs().group(replacing(twoLeaves())).gone("x0").wantReserved("x0")
			s.pods(leafPod("x0").Node("n").Phase(corev1.PodSucceeded))
		},
		"the pod is back": func(s *story) {
			s.runs().group(replacing(twoLeaves())).gone("x0").wantReserved("x0")
			s.pods(leafPod("x0").Node("n"))
		},
		"it is switched off": func(s *story) {
			s.r.opts.ReplacementTimeout = 0
			s.runs().group(replacing(twoLeaves())).terminate("x0").gone("x0")
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := beginReplacing(t)
			do(s)
			s.wantReserved()
		})
	}
}

func TestReservationEnds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do      func(s *story)
		vacated []string
	}{
		"when its time is over": {
			do: func(s *story) {
				s.gone("x0").after(replacementTimeout - time.Nanosecond).wantReserved("x0").after(time.Nanosecond)
			},
			vacated: []string{"x0"},
		},
		"when its time is over, and the pod is still terminating": {
			do: func(s *story) { s.after(replacementTimeout) }, // its deletion will be a separate event
		},
		"when the PodGroup no longer has the annotation": {
			do:      func(s *story) { s.gone("x0").group(twoLeaves()) },
			vacated: []string{"x0"},
		},
		"when the PodGroup is gone": {
			do:      func(s *story) { s.gone("x0"); s.effects = s.r.RemoveGroup(gangG, s.now) },
			vacated: []string{"x0"},
		},
		"when there is another PodGroup of the same name": {
			do:      func(s *story) { s.gone("x0").group(replacing(twoLeaves().UID("other"))) },
			vacated: []string{"x0"},
		},
		"when its leaf is gone": {
			do: func(s *story) {
				s.gone("x0").group(replacing(podGroup().Generation(2).SubGroup("y", 1)))
			},
			vacated: []string{"x0"},
		},
		"when its node is gone": {
			do: func(s *story) { s.gone("x0"); s.r.RemoveNode("n", s.now); s.after(time.Second) },
		},
		"when another scheduler has bound a pod of the leaf": {
			do:      func(s *story) { s.gone("x0").pods(leafPod("x2")).pods(leafPod("x2").Node("elsewhere")) },
			vacated: []string{"x0"},
		},
		"when a bound pod of the leaf is observed that was never observed waiting": {
			do:      func(s *story) { s.gone("x0").pods(leafPod("x2").Node("elsewhere")) },
			vacated: []string{"x0"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := beginReplacing(t).runs().group(replacing(twoLeaves())).terminate("x0").wantReserved("x0")
			tt.do(s)
			s.wantReserved().wantVacated(tt.vacated...)
		})
	}
}

// A tenant may set the annotation, and delete and create pods at will. The room that this reserves is limited to the
// room of its bound pods, once each, for the time that began with their deletion.
func TestReservationIsNotProlonged(t *testing.T) {
	t.Parallel()
	s := beginReplacing(t).runs().group(replacing(twoLeaves())).terminate("x0").gone("x0")
	for range 10 { // pods that are never bound
		s.pods(leafPod("x2")).after(20 * time.Second).gone("x2")
		s.group(replacing(twoLeaves().Generation(2))).wantReserved("x0")
	}
	s.after(replacementTimeout - 200*time.Second).wantReserved()

	s.terminate("x1").wantReserved("x1")
	s.group(twoLeaves()).wantReserved()
	s.group(replacing(twoLeaves())).wantReserved() // room that was given up is not reserved again
	s.gone("x1").wantReserved()

	s.group(twoLeaves()).terminate("y0").after(time.Minute)
	s.group(replacing(twoLeaves())).wantReserved("y0")
	s.after(replacementTimeout - time.Minute).wantReserved() // counted from when it began to terminate
}

// Assuming and releasing a pod repeatedly does not prolong the time for which room is reserved.
func TestAnAssumedPodDoesNotProlongAReservation(t *testing.T) {
	t.Parallel()
	s := beginReplacing(t).runs().group(replacing(twoLeaves())).terminate("x0").gone("x0")
	for range 5 {
		s.replaces("x2").wantReserved().releases("x2").wantReserved("x0")
		s.after(59 * time.Second)
	}
	s.replaces("x2").after(5 * time.Second).wantReserved()
	s.releases("x2").wantReserved()
}

// Room is reserved at no higher priority than that of the pod that had it, nor than the gang's.
func TestPriorityOfAReservation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		class string
		want  int32
	}{"as its pod's": {want: 500}, "lower by the PodGroup's class": {class: "humble", want: 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := beginReplacing(t).group(replacing(podGroup().MinMember(2).Priority(tt.class)))
			s.pods(memberPod("low").Priority(500).Node("n"), memberPod("high").Priority(2000).Node("n"), memberPod("waits").Priority(9000))
			s.wantAdmitted(true).terminate("low").wantReserved("low")
			if list := s.counting(); list[0].Priority != tt.want {
				t.Errorf("priority is %d, want %d", list[0].Priority, tt.want)
			}
		})
	}
}

// All pods of a sub-group are removed one after another, and its admission ends with the last one: the room of each
// is kept.
func TestTheRoomOfAUnitIsReserved(t *testing.T) {
	t.Parallel()
	s := beginReplacing(t).group(replacing(podGroup().SubGroup("a", 1).Inner("", "unit", 2).SubGroupOf("unit", "x", 1).SubGroupOf("unit", "y", 1)))
	s.pods(leafPod("a0").Node("n"), leafPod("x0").Node("n"), leafPod("y0").Node("n")).wantAdmitted(true)
	s.terminate("x0", "y0").gone("x0", "y0").wantReserved("x0", "y0")
	s.pods(leafPod("x1"), leafPod("y1")).leads("x1")
	if diff := cmp.Diff([]string{"x", "y"}, s.work.Leaves()); diff != "" {
		t.Errorf("pods of leaves with room share a class (-want +got):\n%s", diff)
	}
	s.commits("x1", "y1").assumes("x1").wantReserved("y0").assumes("y1").wantReserved()
}

func TestPodsOfLeavesWithoutRoomShareAClass(t *testing.T) {
	t.Parallel()
	s := beginReplacing(t).group(podGroup().SubGroup("x", 1).SubGroup("y", 1)).pods(leafPod("x1"), leafPod("y1")).leads("x1")
	if len(s.work.Classes) != 1 {
		t.Errorf("%d classes, want one", len(s.work.Classes))
	}
}

// Informers are not synchronized: the annotation may be observed after the deletion to which it refers.
func TestTheAnnotationComesLate(t *testing.T) {
	t.Parallel()
	s := beginReplacing(t).runs().terminate("x0").after(time.Second).wantReserved()
	s.group(replacing(twoLeaves())).wantReserved("x0")
}

// A pod that is deleted without grace period is never observed terminating.
func TestThePodVanishes(t *testing.T) {
	t.Parallel()
	s := beginReplacing(t).runs().group(replacing(twoLeaves()))
	s.r.PodLeaves("x0", s.now)
	s.wantReserved("x0").gone("x0").wantReserved("x0").after(departure).wantReserved("x0")
	s.after(replacementTimeout - departure).wantReserved().wantVacated("x0")
}

// After a restart a terminating pod is observed, and its time runs from the timestamp of its object.
func TestReservationsAfterARestart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		since time.Duration // since when the pod has been terminating
		want  []string
		left  time.Duration
	}{
		"the pod terminates":                   {since: time.Minute, want: []string{"x0"}, left: 4 * time.Minute},
		"it has been terminating for too long": {since: 6 * time.Minute},
		"the clocks of the machines differ":    {since: -time.Hour, want: []string{"x0"}, left: replacementTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := beginReplacing(t)
			s.r.synced = false
			terminating := leafPod("x0").Node("n").Obj()
			ends, grace := metav1.NewTime(s.now.Add(30*time.Second-tt.since)), int64(30)
			terminating.DeletionTimestamp, terminating.DeletionGracePeriodSeconds = &ends, &grace
			s.r.SetPod(terminating, s.now)
			s.pods(leafPod("x1").Node("n"), leafPod("y0").Node("n"))
			s.group(replacing(twoLeaves().Condition(v2alpha2.ConditionAdmitted, metav1.ConditionTrue, "Admitted", "")))
			s.effects = s.r.SetSynced(s.now)
			s.wantReserved(tt.want...).gone("x0").wantReserved(tt.want...)
			if tt.left > 0 {
				s.after(tt.left - time.Second).wantReserved(tt.want...).after(time.Second).wantReserved()
			}
		})
	}
}

// Random sequences of actions of tenants, kubelets and schedulers on three gangs. After each step: every room belongs
// to a pod that was bound, is not older than the limit and belongs to a PodGroup with the annotation, and a leaf has
// no more rooms than pods that left it and were not replaced.
func TestReservationsOfRandomGangs(t *testing.T) {
	t.Parallel()
	for seed := range int64(150) {
		rng := rand.New(rand.NewSource(seed))
		s := beginReplacing(t)
		says := map[string]bool{}
		wasBound, parted := sets.New[string](), map[string]time.Time{}
		serial := 0
		apply := func(gang string, generation int64) {
			w := wrappers.MakePodGroup(gang, testNamespace).UID(gang).Generation(generation).SubGroup("x", 1).SubGroup("y", 1)
			if says[gang] {
				w = replacing(w)
			}
			s.r.SetGroup(w.Obj(), s.now)
		}
		gangs := []string{"g", "h", "i"}
		for _, gang := range gangs {
			apply(gang, 1)
		}
		members := func(is func(m *member) bool) []*member {
			var out []*member
			for _, m := range s.r.members {
				if is(m) {
					out = append(out, m)
				}
			}
			slices.SortFunc(out, func(a, b *member) int { return strings.Compare(a.pod.Name, b.pod.Name) })
			return out
		}
		some := func(is func(m *member) bool) *corev1.Pod {
			if all := members(is); len(all) > 0 {
				return all[rng.Intn(len(all))].pod.DeepCopy()
			}
			return nil
		}
		part := func(pod *corev1.Pod) {
			if _, known := parted[pod.Name]; !known && pod.Spec.NodeName != "" {
				parted[pod.Name] = s.now
			}
		}
		for step := range 300 {
			gang := gangs[rng.Intn(len(gangs))]
			switch rng.Intn(10) {
			case 0:
				says[gang] = !says[gang]
				apply(gang, 1)
			case 1:
				apply(gang, int64(step))
			case 2, 3, 4: // a pod is created, and in some cases bound by another scheduler
				serial++
				w := wrappers.MakePod(fmt.Sprintf("%s-%03d", gang, serial), testNamespace).Gang(gang).SubGroup([]string{"x", "y"}[rng.Intn(2)])
				w.UID(w.Obj().Name)
				if rng.Intn(2) == 0 {
					w.Node("n")
					wasBound.Insert(w.Obj().Name)
				}
				s.r.SetPod(w.Obj(), s.now)
			case 5:
				if pod := some(func(m *member) bool { return m.state == count.Pending && m.pod.DeletionTimestamp == nil }); pod != nil {
					pod.Spec.NodeName = "n"
					wasBound.Insert(pod.Name)
					s.r.SetPod(pod, s.now)
				}
			case 6:
				if pod := some(func(m *member) bool { return m.pod.DeletionTimestamp == nil }); pod != nil {
					now := metav1.NewTime(s.now)
					pod.DeletionTimestamp = &now
					part(pod)
					s.r.SetPod(pod, s.now)
				}
			case 7, 8:
				if pod := some(func(*member) bool { return true }); pod != nil {
					part(pod)
					s.r.RemovePod(pod.UID, s.now)
				}
			case 9:
				s.after(time.Duration(rng.Intn(40)) * time.Second)
			}
			s.effects = s.r.Tick(s.now)
			list := s.counting()
			for _, x := range list {
				name := x.Pod.Name
				since, hasParted := parted[name]
				switch {
				case !wasBound.Has(name) || !hasParted:
					t.Fatalf("seed %d, step %d: room of pod %s, which was bound: %t, parted: %t", seed, step, name, wasBound.Has(name), hasParted)
				case s.now.Sub(since) >= replacementTimeout:
					t.Fatalf("seed %d, step %d: room of pod %s is reserved for %s", seed, step, name, s.now.Sub(since))
				case !says[x.Owner.Gang.Name]:
					t.Fatalf("seed %d, step %d: room of pod %s, whose PodGroup does not say that pods are replaced", seed, step, name)
				}
			}
			for _, owner := range []string{"x", "y"} {
				for _, gang := range gangs {
					has := slices.ContainsFunc(list, func(x *reservations.Reservation) bool { return x.Owner.Gang.Name == gang && x.Owner.Leaf == owner })
					if s.r.reserved.Has(reservations.Owner{Gang: Key{Namespace: testNamespace, Name: gang}, Leaf: owner}) != has {
						t.Fatalf("seed %d, step %d: a reservation of %s/%s is taken by a pod that no plan has", seed, step, gang, owner)
					}
				}
			}
		}
		for _, gang := range gangs {
			s.r.RemoveGroup(Key{Namespace: testNamespace, Name: gang}, s.now)
		}
		if s.wantReserved(); s.r.haveReserved.Load() {
			t.Fatalf("seed %d: the registry looks for reservations and has none", seed)
		}
	}
}
