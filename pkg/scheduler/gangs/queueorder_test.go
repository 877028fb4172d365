// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

// After a restart all gangs become known together. The scheduling loop may pop a leader while others are being
// activated, so they are activated in the order of the queue.
func TestLeadersAreActivatedInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	r := New()
	r.AddProfile(wrappers.SchedulerName)
	for i := range int32(20) {
		name := fmt.Sprintf("g-%02d", i)
		r.SetGroup(wrappers.MakePodGroup(name, testNamespace).UID("group-"+name).MinMember(1).Obj(), now)
		r.SetPod(wrappers.MakePod(name, testNamespace).UID(name).Gang(name).Priority(i).Obj(), now)
	}
	var got []int32
	for _, pod := range r.SetSynced(now).Activate {
		got = append(got, *pod.Spec.Priority)
	}
	if !slices.IsSortedFunc(got, func(a, b int32) int { return int(b - a) }) || len(got) != 20 {
		t.Errorf("priorities in the order of activation: %v", got)
	}
}

// TestLeaderComesBefore compares the leader of a gang "g" of three with other pods that have waited for longer.
func TestLeaderComesBefore(t *testing.T) {
	plain := func(priority int32) *corev1.Pod {
		return wrappers.MakePod("plain", testNamespace).Priority(priority).Obj()
	}
	whole := planFor("group", "a", "b", "c").mark("a")
	for name, tc := range map[string]struct {
		tell  func(s *story)
		than  *corev1.Pod
		first bool
	}{
		"a new gang comes after what has waited for longer": {
			tell: func(s *story) { s.members("a", "b", "c") },
			than: plain(0),
		},
		"a gang of which a crash left one pod bound comes first": {
			tell:  func(s *story) { s.pods(memberPod("a").Node("n").BoundFor(whole)).members("b", "c") },
			than:  plain(0),
			first: true,
		},
		"a gang of which a crash left one pod bound comes before any priority": {
			tell:  func(s *story) { s.pods(memberPod("a").Node("n").BoundFor(whole)).members("b", "c") },
			than:  plain(2_000_000_000),
			first: true,
		},
		"a gang that was partially bound for longer than the repair time has the normal rank": {
			tell: func(s *story) {
				s.pods(memberPod("a").Node("n").BoundFor(whole)).members("b", "c")
				for range 31 {
					s.r.PodsToRelease(time.Second, true)
				}
			},
			than: plain(0),
		},
		"a gang of which another scheduler bound one pod is a new gang": {
			tell: func(s *story) { s.pods(memberPod("a").Node("n")).members("b", "c") },
			than: plain(0),
		},
		"a pod bound for an earlier PodGroup of the name makes no difference": {
			tell: func(s *story) {
				s.pods(memberPod("a").Node("n").BoundFor(planFor("earlier", "a", "b", "c").mark("a"))).members("b", "c")
			},
			than: plain(0),
		},
		"a pod that a user put on a node with a forged mark makes no difference": {
			tell: func(s *story) {
				s.pods(memberPod("a").Node("n").BoundFor("group/3/0123456789abcdef")).members("b", "c")
			},
			than: plain(0),
		},
		"a pod that a user put on a node with the mark of another pod makes no difference": {
			tell: func(s *story) {
				s.pods(memberPod("a").Node("n").BoundFor(planFor("group", "a", "b", "c").mark("b"))).members("b", "c")
			},
			than: plain(0),
		},
		"a gang of which a crash left one pod bound is a gang like any other when its repair time is over": {
			tell: func(s *story) {
				s.pods(memberPod("a").Node("n").BoundFor(whole)) // no controller would replace it: it is not released
				for range 30 {
					s.r.PodsToRelease(time.Second, true)
				}
				s.members("b", "c")
			},
			than: plain(0),
		},
		"so is a gang that may have been admitted": {
			tell: func(s *story) {
				s.pods(memberPod("a").Node("n").BoundFor(planFor("group", "a", "x", "y").mark("a")))
				for range 30 {
					s.r.PodsToRelease(time.Second, true)
				}
				s.members("b", "c")
			},
			than: plain(0),
		},
		"a refill comes first at its own priority": {
			tell: func(s *story) {
				s.members("a", "b", "c").binds("a", "a", "b", "c")
				s.gone("c").after(departure).members("d").after(departure)
			},
			than:  plain(0),
			first: true,
		},
		"a refill comes after what has a higher priority": {
			tell: func(s *story) {
				s.members("a", "b", "c").binds("a", "a", "b", "c")
				s.gone("c").after(departure).members("d").after(departure)
			},
			than: plain(1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t).group(podGroup().MinMember(3))
			queued := s.now.Add(-time.Minute)
			tc.tell(s)
			leader := s.r.members[s.r.gangs[gangG].leader]
			if leader == nil {
				t.Fatal("the gang has no leader")
			}
			if ok, why := s.r.MayEnterQueue(leader.pod); !ok {
				t.Fatalf("the leader does not pass: %s", why)
			}
			if got := s.r.RankOf(leader.pod, s.now).Compare(s.r.RankOf(tc.than, queued)) < 0; got != tc.first {
				t.Errorf("the gang comes first: %v, want %v", got, tc.first)
			}
		})
	}
}

// TestPrioritiesAtTheEndsOfInt32: a difference of such priorities does not fit into an int32.
func TestPrioritiesAtTheEndsOfInt32(t *testing.T) {
	t.Parallel()
	ends := []int32{math.MaxInt32, math.MaxInt32 - 1, 1, 0, -1, math.MinInt32 + 1, math.MinInt32} // the order in which they go first
	for i, a := range ends {
		for k, b := range ends {
			want := cmp.Compare(i, k)
			if got := (Rank{Priority: a}).Compare(Rank{Priority: b}); got != want {
				t.Errorf("ranks of %d and %d compare as %d, want %d", a, b, got, want)
			}
			w := newPriorityCounts()
			if w.setGang(&gangState{}, true, a); w.hasFrom(b) != (i <= k) {
				t.Errorf("a gang of %d waits from %d on: %t", a, b, w.hasFrom(b))
			}
		}
	}
	// Whole gangs: their pods are elected, activated and planned in this order, whatever the order of their creation.
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := begin(t)
		r := newBenchRegistry()
		var want, got []string
		for _, k := range rng.Perm(len(ends)) {
			name := fmt.Sprint("g", k)
			r.SetGroup(wrappers.MakePodGroup(name, testNamespace).UID(name).MinMember(2).Obj(), s.now)
			for pod := range 2 {
				uid := fmt.Sprint(name, "-", pod)
				lower := ends[min(k+pod, len(ends)-1)]
				r.SetPod(wrappers.MakePod(uid, testNamespace).UID(uid).Gang(name).Priority(lower).Obj(), s.now)
			}
		}
		for k := range ends {
			want = append(want, fmt.Sprintf("g%d-0", k))
		}
		for _, pod := range r.SetSynced(s.now).Activate {
			got = append(got, pod.Name)
		}
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d: activated %v, want %v", seed, got, want)
		}
	}
}

// A bound pod that vanished may be bound still, have succeeded, or be gone. Until that is known its gang is not
// planned, and keeps the time since which it is complete (docs/decisions, G16).
func TestAGangKeepsItsAgeWhenABoundPodVanishes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tell func(s *story)
		want time.Duration // after which the gang was complete
	}{
		"it has succeeded":                      {tell: func(s *story) { s.gone("a").after(time.Second).pods(memberPod("a").Node("n").Phase("Succeeded")) }},
		"it is still bound":                     {tell: func(s *story) { s.gone("a").after(time.Second).pods(memberPod("a").Node("n")) }},
		"it is gone, and the others are enough": {tell: func(s *story) { s.members("d").gone("a").after(departure) }},
		"it is gone, and the others are not enough at first": {
			tell: func(s *story) { s.gone("a").after(departure).after(time.Minute).members("d") },
			want: 10*time.Second + departure + time.Minute,
		},
		"meanwhile the gang lost another pod, and was complete again": {
			tell: func(s *story) { s.gone("a").after(time.Second).gone("b").members("d", "e").after(departure) },
			want: 11 * time.Second,
		},
		"it is being preempted, and the others are enough": {
			tell: func(s *story) {
				s.members("d").endsForPod("high", "a")
				s.after(time.Second).terminates("a").gone("a")
			},
		},
		"it was preempted, and the others are not enough at first": {
			tell: func(s *story) {
				s.endsForPod("high", "a")
				s.after(time.Second).terminates("a").gone("a").after(time.Minute).members("d")
			},
			want: 11*time.Second + time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			began := s.now
			s.group(podGroup().MinMember(3)).pods(memberPod("a").Node("n")).members("b", "c").leads("b").refuses().after(10 * time.Second)
			tc.tell(s)
			if s.leader() == "" {
				t.Fatal("the gang has no leader")
			}
			if got := s.r.gangs[gangG].leaderRank().Time.Sub(began); got != tc.want {
				t.Errorf("complete after %s, want %s", got, tc.want)
			}
		})
	}
}

// The leader of a gang is in the queue for surplus, with the rank of that, when the gang loses a pod of its minimum.
// Its replacement precedes new gangs nevertheless (docs/decisions, G16).
func TestAGangWhoseTaskChangesInTheQueueKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").members("c").wantLeader("c")
	if ok, why := s.r.MayEnterQueue(s.r.members["c"].pod); !ok {
		t.Fatal(why)
	}
	s.r.SetGroup(wrappers.MakePodGroup("h", testNamespace).UID("group-h").MinMember(1).Obj(), s.now)
	h := wrappers.MakePod("h0", testNamespace).UID("h0").Gang("h")
	s.pods(h)
	if s.r.MustYield(h.Obj(), s.now) {
		t.Error("a new gang waits for surplus")
	}
	if s.deleted("b").wantLeader("c"); !s.r.MustYield(h.Obj(), s.now) {
		t.Error("a new gang is planned before a replacement")
	}
}

// A gang whose PodGroup gets a higher priority while its leader is in the queue, with the rank of the lower one,
// precedes the gangs between them.
func TestAGangWhosePriorityRisesInTheQueueGoesFirst(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(1).Priority("humble")).pods(memberPod("a").Priority(1000)).wantPasses("a", true)
	s.r.SetGroup(wrappers.MakePodGroup("h", testNamespace).UID("group-h").MinMember(1).Obj(), s.now)
	h := wrappers.MakePod("h0", testNamespace).UID("h0").Gang("h").Priority(100)
	s.pods(h).wantPasses("h0", true)
	if s.r.RecordPopped("h0"); s.r.MustYield(h.Obj(), s.now) {
		t.Fatal("it yields to a lower priority")
	}
	if s.group(podGroup().Generation(2).MinMember(1).Priority("urgent")); !s.r.MustYield(h.Obj(), s.now) {
		t.Error("it is planned before a gang of a higher priority")
	}
}

// What failed under another PodGroup of the name delays no plan of this one, and is not told of it.
func TestARecreatedPodGroupHasNoFailures(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(1)).members("a").leads("a").commits("a").assumes("a").releases("a")
	if f, _ := s.r.Facts(gangG); f.Failures != 1 {
		t.Fatalf("%d failures, want one", f.Failures)
	}
	s.group(podGroup().UID("another").MinMember(1))
	if f, _ := s.r.Facts(gangG); f.Failures != 0 {
		t.Errorf("%d failures, want none", f.Failures)
	}
}

// A plan that was bound only in part gives no precedence to a PodGroup that is created later under the same name, and
// none for longer than Options.RepairTimeout to a gang whose only bound pods were not bound by a plan (docs/decisions,
// G16).
func TestPrecedenceOfABrokenGangEnds(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(s *story){
		"its PodGroup was recreated": func(s *story) {
			s.members("a", "b", "c").tears("a", "a", "b", "c").wantRank(Minimum, TierRepair).group(podGroup().UID("another").MinMember(3))
		},
		"the PodGroup was deleted before": func(s *story) {
			s.members("a", "b", "c").tears("a", "a", "b", "c").wantRank(Minimum, TierRepair)
			s.r.RemoveGroup(gangG, s.now)
			s.group(podGroup().UID("another").MinMember(3))
		},
		"no pod is bound by a plan": func(s *story) {
			s.pods(memberPod("a").Node("n")).members("b", "c").leads("b").commits("b", "c").assumes("b", "c").arrives("b", "c").releases("b", "c")
			s.wantRank(Minimum, TierRepair).wantReleased(29).wantRank(Minimum, TierRepair).wantReleased(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(podGroup().MinMember(3))
			tell(s)
			s.members("d").wantRank(Minimum, TierNormal)
		})
	}
}

// Gangs that were complete at the same time, as after a restart, are tried in the order of their names, so that equal
// facts lead to equal decisions.
func TestGangsOfTheSameRankAreTriedByName(t *testing.T) {
	t.Parallel()
	for range 5 { // the order of a map is another one each time
		s := begin(t)
		s.r.synced = false // as the PodGroups and pods are listed
		var want []string
		for i := range 20 {
			name := fmt.Sprintf("g%02d", i)
			want = append(want, name)
			s.group(wrappers.MakePodGroup(name, testNamespace).UID(name).MinMember(1)).pods(wrappers.MakePod(name, testNamespace).UID(name).Gang(name))
		}
		s.effects = s.r.SetSynced(s.now)
		wantActivated := func(what string, want []string) {
			t.Helper()
			var got []string
			for _, pod := range s.effects.Activate {
				got = append(got, pod.Name)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", what, diff)
			}
		}
		wantActivated("after the start", want)
		room := &fakeShape{}
		for _, name := range want {
			pod := s.r.members[types.UID(name)].pod
			s.r.MayEnterQueue(pod)
			s.r.RecordPopped(pod.UID)
			work, why := s.r.BeginAttempt(pod)
			if work == nil {
				t.Fatal(why)
			}
			s.r.RecordGangRefused(work.Gang, podgroup.Refusal{}, Wait{Needs: []Need{{room, 1}}, Topics: []Topic{Anything}}, s.now)
			s.r.RecordCycleFailed(pod.UID, s.now)
		}
		room.fits = 3
		s.effects = s.r.RetryWaiting([]Shape{room}, nil, s.now)
		wantActivated("three fit", want[:3])
	}
}
