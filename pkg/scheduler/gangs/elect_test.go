// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/test/wrappers"
)

// TestElection checks which pod of gang g is elected leader, and for which task, after a sequence of events.
func TestElection(t *testing.T) {
	job := func(name, uid string) *wrappers.PodWrapper { return memberPod(name).Controller("Job", "job", uid) }
	epoch := time.Unix(900_000, 0)
	for name, tc := range map[string]struct {
		tell   func(s *story)
		leader string
		task   Task
	}{
		"no leader while pods are missing": {
			tell: func(s *story) { s.group(podGroup().MinMember(3)).members("a", "b") },
		},
		"no leader before the PodGroup exists": {
			tell: func(s *story) { s.members("a", "b") },
		},
		"the first pod when the PodGroup is created after its pods": {
			tell:   func(s *story) { s.members("a", "b").group(podGroup().MinMember(2)) },
			leader: "a",
		},
		"no leader for an invalid tree": {
			tell: func(s *story) { s.members("a").group(podGroup().SubGroupOf("nowhere", "x", 1)) },
		},
		"priority comes first inside a leaf": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).pods(memberPod("a"), memberPod("b").Priority(10))
			},
			leader: "b",
		},
		"then the index": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).pods(memberPod("a").Label("apps.kubernetes.io/pod-index", "10"), memberPod("b").Label("apps.kubernetes.io/pod-index", "9"))
			},
			leader: "b",
		},
		"then the age": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).pods(memberPod("a").CreationTimestamp(epoch.Add(time.Second)), memberPod("b").CreationTimestamp(epoch))
			},
			leader: "b",
		},
		"a pod of the leaf that lacks pods, not of one that has them": {
			tell: func(s *story) {
				s.group(podGroup().SubGroup("x", 1).SubGroup("y", 1)).
					pods(memberPod("x0").SubGroup("x").Node("n"), memberPod("a").SubGroup("x"), memberPod("z").SubGroup("y"))
			},
			leader: "z",
		},
		"gated pods do not count": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a").pods(memberPod("b").SchedulingGate("quota"))
			},
		},
		"a pod counts as soon as its gate is removed": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).members("b").pods(memberPod("a").SchedulingGate("quota")).members("a")
			},
			leader: "a",
		},
		"terminating pods do not count": {
			tell: func(s *story) { s.group(podGroup().MinMember(2)).members("a").pods(memberPod("b").Terminating()) },
		},
		"pods of another scheduler do not count": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a").pods(memberPod("b").SchedulerName("default-scheduler"))
			},
		},
		"pods that another scheduler bound do": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a").pods(memberPod("b").SchedulerName("default-scheduler").Node("n"))
			},
			leader: "a",
		},
		"misplaced pods do not count: unknown, inner and no sub-group": {
			tell: func(s *story) {
				s.group(podGroup().Inner("", "in", 0).SubGroupOf("in", "x", 2)).
					pods(memberPod("a").SubGroup("x"), memberPod("b").SubGroup("in"), memberPod("c").SubGroup("other"), memberPod("d"))
			},
		},
		"a pod counts once its label is corrected to name a leaf": {
			tell: func(s *story) {
				s.group(podGroup().SubGroup("x", 2)).pods(memberPod("a").SubGroup("x"), memberPod("b"), memberPod("b").SubGroup("x"))
			},
			leader: "a",
		},
		"a sub-group's label has no meaning without sub-groups": {
			tell:   func(s *story) { s.group(podGroup().MinMember(1)).pods(memberPod("a").SubGroup("x")) },
			leader: "a",
		},
		"pods of the same PodGroup name in another namespace do not count": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a")
				s.r.SetPod(wrappers.MakePod("b", "other").UID("b").Gang("g").Obj(), s.now)
			},
		},
		"the leader is deleted: the next one": {
			tell:   func(s *story) { s.group(podGroup().MinMember(2)).members("a", "b", "c").gone("a") },
			leader: "b",
		},
		"a pod recreated with the same name is a different pod": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a", "b").gone("a").
					pods(wrappers.MakePod("a", testNamespace).UID("a2").Gang("g"))
			},
			leader: "a2",
		},
		"the annotation changed: the pod counts for its new gang": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a").pods(memberPod("b").Gang("h"), memberPod("b"))
			},
			leader: "a",
		},
		"the annotation is gone: the pod does not count": {
			tell: func(s *story) {
				plain := memberPod("b").Obj()
				delete(plain.Annotations, v2alpha2.PodGroupAnnotation)
				s.group(podGroup().MinMember(2)).members("a", "b").r.SetPod(plain, s.now)
			},
		},
		"a pod's annotation changed after binding is ignored": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).pods(memberPod("b").Node("n"), memberPod("b").Node("n").Gang("h")).members("a")
			},
			leader: "a",
		},
		"the PodGroup is deleted: waiting pods stay gated": {
			tell: func(s *story) { s.group(podGroup().MinMember(2)).members("a", "b").r.RemoveGroup(gangG, s.now) },
		},
		"a succeeded pod counts with live pods of its controller": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).pods(job("a", "run-1").Phase(corev1.PodSucceeded), job("b", "run-1"))
			},
			leader: "b",
		},
		"a succeeded pod of an earlier run does not": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).pods(job("a", "run-1").Phase(corev1.PodSucceeded), job("b", "run-2"))
			},
		},
		"a succeeded pod counts with live pods that were bound by the same plan, whatever their controller": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(3)).pods(
					job("a", "leaders").Phase(corev1.PodSucceeded).Node("n").BoundFor(planFor("group", "a", "b", "x").mark("a")),
					job("b", "workers").Node("n").BoundFor(planFor("group", "a", "b", "x").mark("b")), job("c", "workers"))
			},
			leader: "c",
		},
		"a succeeded pod does not count with live pods of another plan and another controller": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(3)).pods(
					job("a", "leaders-1").Phase(corev1.PodSucceeded).Node("n").BoundFor(planFor("group", "a", "b").mark("a")),
					job("b", "workers-2").Node("n").BoundFor(planFor("group", "b", "c").then(2).mark("b")), job("c", "workers-2"))
			},
		},
		"a failed pod does not count": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a").pods(memberPod("b").Node("n").Phase(corev1.PodFailed))
			},
		},
		"an admitted gang that lost a pod is refilled": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").gone("b").after(departure).members("c")
			},
			leader: "c", task: Refill,
		},
		"pods above the minimum are surplus": {
			tell:   func(s *story) { s.group(podGroup().MinMember(2)).members("a", "b", "c").binds("a", "a", "b") },
			leader: "c", task: SurplusSingle,
		},
		"an edited tree that needs another sub-group is refilled, and stays admitted": {
			tell: func(s *story) {
				s.group(podGroup().SubGroup("x", 1)).pods(memberPod("a").SubGroup("x")).binds("a", "a").
					group(podGroup().Generation(2).SubGroup("x", 1).SubGroup("y", 1)).pods(memberPod("b").SubGroup("y")).wantAdmitted(true)
			},
			leader: "b", task: Refill,
		},
		"an admitted PodGroup is known again after a restart by its condition": {
			tell: func(s *story) {
				s.pods(memberPod("a").Node("n")).members("b").
					group(podGroup().MinMember(2).Condition(v2alpha2.ConditionAdmitted, "True", v2alpha2.ReasonAdmitted, ""))
			},
			leader: "b", task: Refill,
		},
		"a gang that ran and is gone must be admitted again": {
			tell: func(s *story) {
				s.group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").gone("a", "b").after(departure).members("c", "d").wantAdmitted(false)
			},
			leader: "c", task: Minimum,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			tc.tell(s)
			s.wantLeader(tc.leader)
			if g := s.r.gangs[gangG]; tc.leader != "" && g.task != tc.task {
				t.Errorf("task is %s, want %s", g.task, tc.task)
			}
		})
	}
}

func TestNoLeaderIsElectedBeforeSynced(t *testing.T) {
	r := New()
	r.AddProfile(wrappers.SchedulerName)
	now := time.Unix(1_000_000, 0)
	r.SetGroup(podGroup().MinMember(1).Obj(), now)
	if e := r.SetPod(memberPod("a").Obj(), now); len(e.Activate) > 0 || r.gangs[gangG].leader != "" {
		t.Fatal("elected before Synced")
	}
	if e := r.SetSynced(now); len(e.Activate) != 1 || e.Activate[0].Name != "a" {
		t.Fatalf("Synced activates %v, want a", e.Activate)
	}
}

// After a failed binding the queue has its own back-off for the pod, up to ten seconds long, but the gang's back-off
// decides. The leader passes PreEnqueue on its way into that back-off, so passing does not mean that its cycle is
// about to begin.
func TestLeaderIsFetchedFromTheQueuesBackOff(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(1)).members("a")
	s.leads("a").commits("a").assumes("a").arrives("a").releases("a").after(minBackoff).wantLeader("a")
	for range 3 {
		if ok, why := s.r.MayEnterQueue(memberPod("a").Obj()); !ok {
			t.Fatal(why)
		}
		if s.after(wakeInterval); !cmp.Equal(s.activated(), []string{"a"}) {
			t.Fatalf("activated %v, want a until its cycle begins", s.activated())
		}
	}
	s.leads("a")
	if s.after(wakeInterval); len(s.activated()) != 0 {
		t.Fatalf("activated %v while its plan is made", s.activated())
	}
}

func TestWakeUpsAreRepeated(t *testing.T) {
	s := begin(t).group(podGroup().MinMember(1)).members("a")
	for range 3 {
		if s.after(wakeInterval); !cmp.Equal(s.activated(), []string{"a"}) {
			t.Fatalf("activated %v, want a until the queue has seen it", s.activated())
		}
	}
	s.leads("a")
	if s.after(wakeInterval); len(s.activated()) != 0 {
		t.Fatalf("activated %v while its plan is made", s.activated())
	}
	s.refuses()
	if s.after(time.Minute); len(s.activated()) != 0 {
		t.Fatalf("activated %v although nothing has changed", s.activated())
	}
	s.wakes(gangG)
	for range 3 {
		if s.after(wakeInterval); !cmp.Equal(s.activated(), []string{"a"}) {
			t.Fatalf("activated %v, want a until the queue has seen it again", s.activated())
		}
	}
}

// An attempt for which pods are not back in the queue is repeated soon, but not as soon as the leader is back itself:
// the loop would do nothing else.
func TestPostponedAttemptsAreRepeated(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b")
	for range 3 {
		s.leads("a")
		s.r.PostponeAttempt(gangG, s.now)
		s.r.RecordCycleFailed("a", s.now)
		for _, pod := range []types.UID{"a", "b"} {
			if s.effects = s.r.RecordRequeued(pod, s.now); len(s.activated()) != 0 {
				t.Fatalf("activated %v when %s is back in the queue", s.activated(), pod)
			}
		}
		if s.after(2 * wakeInterval); !cmp.Equal(s.activated(), []string{"a"}) {
			t.Fatalf("activated %v, want a", s.activated())
		}
	}
}

func TestAPodThatLeavesItsGangIsGivenToTheQueue(t *testing.T) {
	s := begin(t).group(podGroup().MinMember(2)).members("a")
	plain := memberPod("a").Obj()
	delete(plain.Annotations, v2alpha2.PodGroupAnnotation)
	s.effects = s.r.SetPod(plain, s.now)
	for range 2 { // the queue may learn of the change later
		if !cmp.Equal(s.activated(), []string{"a"}) {
			t.Fatalf("activated %v, want a", s.activated())
		}
		s.after(departure)
	}
	if s.after(departure); len(s.activated()) != 0 {
		t.Fatalf("activated %v for ever", s.activated())
	}
}

func TestACompletionIsNotForgottenForALateUpdate(t *testing.T) {
	s := begin(t).group(podGroup().MinMember(1)).pods(memberPod("a").Node("n"))
	s.pods(memberPod("a").Node("n").Phase(corev1.PodSucceeded))                            // the informer of finished pods
	s.pods(memberPod("a").Node("n").Phase(corev1.PodRunning)).gone("a").after(time.Minute) // the other informer, later
	if f, ok := s.r.Facts(gangG); !ok || f.Bound[""] != 1 {
		t.Fatalf("the completed pod does not count: %+v", f)
	}
}

// TestRankIsAStrictWeakOrder checks the property that the queue's heap requires.
// A process that does not lead does not take a sub-group for lost that was admitted again, and has lost a pod since.
func TestASubGroupIsLostUntilItsStatusSaysOtherwise(t *testing.T) {
	t.Parallel()
	r, key := newBenchRegistry(), Key{Namespace: "ml", Name: "g"}
	r.SetSynced(benchStart)
	group := wrappers.MakePodGroup("g", "ml").UID("g").SubGroup("a", 2).SubGroup("b", 1).MinSubGroup(1).
		Condition(v2alpha2.ConditionAdmitted, metav1.ConditionTrue, "Admitted", "").Obj()
	group.Status.SubGroups = []v2alpha2.SubGroupStatus{{Name: "a", Admitted: true}, {Name: "b", Admitted: true}}
	r.SetPod(benchPod("g", 0).SubGroup("b").Node("n").Obj(), benchStart)
	r.SetPod(benchPod("g", 1).SubGroup("a").Node("n").Obj(), benchStart)
	r.SetGroup(group, benchStart)
	r.RemoveFailedPod(benchPod("g", 1).Obj().UID, benchStart)
	if g := r.gangs[key]; !g.lostGroups.Has("a") || g.admittedGroups.Has("a") {
		t.Fatalf("lost %v, admitted %v, want a to be lost", g.lostGroups, g.admittedGroups)
	}
	r.SetPod(benchPod("g", 2).SubGroup("a").Node("n").Obj(), benchStart)
	r.SetGroup(group, benchStart)
	if g := r.gangs[key]; g.lostGroups.Has("a") || !g.admittedGroups.Has("a") {
		t.Errorf("lost %v, admitted %v, want a to be admitted", g.lostGroups, g.admittedGroups)
	}
}

func TestRankIsAStrictWeakOrder(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	base := time.Unix(1_000_000, 0)
	var ranks []Rank
	for range 60 {
		ranks = append(ranks, Rank{Priority: int32(rng.Intn(3)), Tier: Tier(rng.Intn(5) - 3), Time: base.Add(time.Duration(rng.Intn(3)) * time.Second)})
	}
	sign := func(n int) int { return min(1, max(-1, n)) }
	for _, a := range ranks {
		for _, b := range ranks {
			if sign(a.Compare(b)) != -sign(b.Compare(a)) {
				t.Fatalf("%v and %v: not antisymmetric", a, b)
			}
			for _, c := range ranks {
				if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
					t.Fatalf("%v, %v, %v: not transitive, or equality is not", a, b, c)
				}
			}
		}
	}
}

// TestPlainPodsKeepPrioritySort compares with the order of PrioritySort.
func TestPlainPodsKeepPrioritySort(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	r := New()
	base := time.Unix(1_000_000, 0)
	priorities := []*int32{nil, new(int32), func() *int32 { p := int32(7); return &p }(), func() *int32 { p := int32(-7); return &p }()}
	for range 1000 {
		a, b := wrappers.MakePod("a", "ns").UID("a").Obj(), wrappers.MakePod("b", "ns").UID("b").Obj()
		a.Spec.Priority, b.Spec.Priority = priorities[rng.Intn(4)], priorities[rng.Intn(4)]
		ta, tb := base.Add(time.Duration(rng.Intn(3))), base.Add(time.Duration(rng.Intn(3)))
		pa, pb := count.PodPriority(a), count.PodPriority(b)
		want := pa > pb || pa == pb && ta.Before(tb)
		if got := r.RankOf(a, ta).Compare(r.RankOf(b, tb)) < 0; got != want {
			t.Fatalf("priorities %d %d, times %v %v: %t, PrioritySort says %t", pa, pb, ta, tb, got, want)
		}
	}
}

func TestARankDoesNotChangeInTheQueue(t *testing.T) {
	s := begin(t).group(podGroup().MinMember(1)).members("a")
	pod := s.r.members["a"].pod
	s.r.MayEnterQueue(pod)
	before := s.r.RankOf(pod, s.now)
	s.pods(memberPod("b").Priority(100)) // raises the gang's priority (docs/decisions, G10)
	s.after(time.Second)
	s.r.MayEnterQueue(pod)
	if after := s.r.RankOf(pod, s.now); after != before {
		t.Errorf("rank %v became %v while the pod lay in the heap", before, after)
	}
	s.r.RecordPopped("a")
	s.r.MayEnterQueue(pod)
	if after := s.r.RankOf(pod, s.now); s.leader() == "a" && after.Priority != 100 {
		t.Errorf("rank %v, want the gang's new priority", after)
	}
}

func TestGangPriority(t *testing.T) {
	for name, tc := range map[string]struct {
		group *wrappers.PodGroupWrapper
		want  int32
	}{
		"its PodGroup's class, if that is lower":          {group: podGroup().MinMember(1).Priority("humble"), want: 10},
		"never above the highest of its pods":             {group: podGroup().MinMember(1).Priority("urgent"), want: 50},
		"the highest of its pods without a class":         {group: podGroup().MinMember(1), want: 50},
		"the highest of its pods if the class is unknown": {group: podGroup().MinMember(1).Priority("nowhere"), want: 50},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t).group(tc.group).pods(memberPod("a").Priority(50), memberPod("b").Priority(-1))
			if got := s.r.gangs[gangG].priority(); got != tc.want {
				t.Errorf("priority %d, want %d", got, tc.want)
			}
		})
	}
}

func TestProfileIsThatOfPodsAPlanCanUse(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	r := New()
	r.AddProfile("one")
	r.AddProfile("two")
	pod := func(name string) *wrappers.PodWrapper {
		return wrappers.MakePod(name, "ml").UID(name).Gang("g").SchedulerName("two").CreationTimestamp(now)
	}
	r.SetGroup(wrappers.MakePodGroup("g", "ml").UID("group").MinMember(2).Obj(), now)
	r.SetPod(pod("first").SchedulerName("one").SchedulingGate("x").CreationTimestamp(now.Add(-time.Hour)).Obj(), now)
	r.SetPod(pod("a").Obj(), now)
	r.SetPod(pod("b").Obj(), now)
	e := r.SetSynced(now)
	if len(e.Activate) != 1 || e.Activate[0].Spec.SchedulerName != "two" {
		t.Errorf("woken: %v, want one of the two pods that can be planned; the gated pod of another profile must not keep them waiting", e.Activate)
	}
}

func TestYoungGangLetsARefusedOlderOneGoFirst(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	r := New()
	r.AddProfile(wrappers.SchedulerName)
	leader := map[string]*corev1.Pod{}
	for _, g := range []string{"old", "young"} {
		pod := wrappers.MakePod(g, "ml").UID(g).Gang(g).Obj()
		leader[g] = pod
		r.SetGroup(wrappers.MakePodGroup(g, "ml").UID("group-"+g).MinMember(1).Obj(), now)
		r.SetPod(pod, now)
		r.SetSynced(now)
		r.MayEnterQueue(pod)
		now = now.Add(time.Second)
	}
	refuse := func(g string) {
		t.Helper()
		if work, why := r.BeginAttempt(leader[g]); work == nil {
			t.Fatalf("%s cannot be planned: %s", g, why)
		}
		r.RecordGangRefused(Key{Namespace: "ml", Name: g}, podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs}, Wait{}, now)
	}
	woken := func() (names []string) {
		now = now.Add(wakeInterval)
		for _, p := range r.Tick(now).Activate {
			names = append(names, p.Name)
		}
		return names
	}

	refuse("old")
	if r.MustYield(leader["young"], now) {
		t.Error("yields to a gang that was tried in the cluster as it is")
	}
	refuse("young")
	r.RetryWaiting(nil, []Topic{Anything}, now)
	if r.MustYield(leader["old"], now) {
		t.Error("the older gang yields to the younger")
	}
	if !r.MustYield(leader["young"], now) {
		t.Fatal("does not yield to an older gang that was not tried since the cluster changed")
	}
	if got := woken(); !slices.Equal(got, []string{"old"}) {
		t.Fatalf("woken: %v, want the older gang alone", got)
	}
	r.MayEnterQueue(leader["old"])
	refuse("old")
	if got := woken(); !slices.Equal(got, []string{"young"}) {
		t.Fatalf("woken: %v, want the gang that yielded, now that the older was tried", got)
	}
	if r.MustYield(leader["young"], now) {
		t.Error("yields once more though nothing changed")
	}

	refuse("young")
	r.RetryWaiting(nil, []Topic{Anything}, now)
	if !r.MustYield(leader["young"], now) {
		t.Fatal("does not yield after another change")
	}
	now = now.Add(yieldLimit)
	if got := woken(); !slices.Contains(got, "young") {
		t.Errorf("woken: %v, want the gang that has yielded for long enough", got)
	}
	// The queue drops a wake-up while the leader's cycle has not ended yet.
	if got := woken(); !slices.Contains(got, "young") {
		t.Errorf("woken: %v, want the gang that has yielded once more: the queue has not seen its leader", got)
	}
	r.MayEnterQueue(leader["young"])
	if r.MustYield(leader["young"], now) {
		t.Error("yields for longer than the limit")
	}
}

// A binding fails, and the pod's reservation is released: the other gangs let this gang retry first, once and for a
// limited time.
func TestRoomOfAFailedBindingIsKeptForAMoment(t *testing.T) {
	t.Parallel()
	failed := func(t *testing.T) (*story, *corev1.Pod) {
		s := begin(t).group(podGroup().MinMember(2)).members("a", "b").leads("a").commits("a", "b").assumes("a", "b").arrives("a", "b")
		other := wrappers.MakePod("x", testNamespace).UID("x").Gang("h").Obj()
		s.r.SetGroup(wrappers.MakePodGroup("h", testNamespace).UID("group-h").MinMember(1).Obj(), s.now)
		s.r.SetPod(other, s.now)
		s.r.MayEnterQueue(other)
		if s.r.MustYield(other, s.now) {
			t.Fatal("yields to a gang that is being bound")
		}
		s.posts("a").releases("b").wantLeader("b")
		if !s.r.MustYield(other, s.now) {
			t.Fatal("takes the room of a gang that was bound in part a moment ago")
		}
		return s, other
	}
	t.Run("until it is planned", func(t *testing.T) {
		t.Parallel()
		s, other := failed(t)
		s.leads("b").commits("b").assumes("b")
		if s.after(time.Millisecond); !slices.Equal(s.activated(), []string{"x"}) {
			t.Errorf("activated %v, want the gang that let it go first", s.activated())
		}
		if s.r.MustYield(other, s.now) {
			t.Error("yields still")
		}
		// Only once: after another failure the gang waits for its back-off, and no room is kept for it.
		s.arrives("b").releases("b").wantLeader("")
		if s.r.MustYield(other, s.now) {
			t.Error("yields to a gang in its back-off")
		}
	})
	t.Run("until it is refused", func(t *testing.T) {
		t.Parallel()
		s, other := failed(t)
		s.leads("b")
		s.effects = s.r.RecordGangRefused(gangG, podgroup.Refusal{Reason: v2alpha2.ReasonFragmented}, Wait{}, s.now)
		if !slices.Equal(s.activated(), []string{"x"}) {
			t.Errorf("activated %v, want the gang that let it go first", s.activated())
		}
		if s.r.MustYield(other, s.now) {
			t.Error("yields still")
		}
	})
	t.Run("until it has had time enough", func(t *testing.T) {
		t.Parallel()
		s, other := failed(t)
		if s.after(yieldLimit); !slices.Contains(s.activated(), "x") {
			t.Errorf("activated %v, want the gang that has waited for long enough", s.activated())
		}
		if s.r.MustYield(other, s.now) {
			t.Error("yields still")
		}
	})
}

// TestGangThatYieldedPrecedesOthers: when the gang that went first is placed, the one that yielded goes on before gangs
// of lower rank, although it is not in the queue yet.
func TestGangThatYieldedPrecedesOthers(t *testing.T) {
	t.Parallel()
	s, other := pausing(t, 0)
	last := wrappers.MakePod("y", testNamespace).UID("y").Gang("i").Obj()
	s.r.SetGroup(wrappers.MakePodGroup("i", testNamespace).UID("group-i").MinMember(1).Obj(), s.now.Add(time.Millisecond))
	s.r.SetPod(last, s.now.Add(time.Millisecond))
	s.r.MayEnterQueue(last)
	if s.observes(EventOf("")); !s.r.MustYield(other, s.now) {
		t.Fatal("does not yield to the first gang")
	}
	s.leads("a").commits("a", "b")
	s.effects = s.r.RetryWaiting(nil, nil, s.now)
	if !slices.Equal(s.activated(), []string{"x"}) {
		t.Fatalf("activated %v, want the gang that yielded", s.activated())
	}
	if !s.r.MustYield(last, s.now) {
		t.Error("does not yield to the gang that yielded")
	}
	if s.r.MustYield(other, s.now) {
		t.Error("the gang that yielded yields still")
	}
}

// pausing is a gang "g" in its pause after a failed plan, and another gang with a pod "x" of the given priority that is
// about to be planned.
func pausing(t *testing.T, priority int32) (s *story, other *corev1.Pod) {
	t.Helper()
	s = begin(t).group(podGroup().MinMember(2)).members("a", "b").after(time.Millisecond)
	other = wrappers.MakePod("x", testNamespace).UID("x").Gang("h").Priority(priority).Obj()
	s.r.SetGroup(wrappers.MakePodGroup("h", testNamespace).UID("group-h").MinMember(1).Obj(), s.now)
	s.r.SetPod(other, s.now)
	s.r.MayEnterQueue(other)
	return s.fails(20 * time.Millisecond).wantLeader(""), other
}

// fails lets the plan of gang g fail after its members have had their room for some time.
func (s *story) fails(after time.Duration) *story {
	s.t.Helper()
	s.leads("a").commits("a", "b").assumes("a", "b").arrives("a")
	s.now = s.now.Add(after)
	return s.releases("b", "a")
}

// observes delivers events, and lets what precedes gang h be tried, which is about to be planned.
func (s *story) observes(topics ...Topic) *story {
	s.effects = s.r.RetryWaiting(nil, topics, s.now)
	return s
}

// holds lets a plan of gang k, of one pod, occupy room until the pod is released.
func (s *story) holds(name string) *story {
	s.t.Helper()
	pod := wrappers.MakePod(name, testNamespace).UID(name).Gang("k").Obj()
	s.r.SetGroup(wrappers.MakePodGroup("k", testNamespace).UID("group-k").MinMember(1).Obj(), s.now)
	s.r.SetPod(pod, s.now)
	s.r.MayEnterQueue(pod)
	s.r.RecordPopped(pod.UID)
	work, why := s.r.BeginAttempt(pod)
	if work == nil {
		s.t.Fatal(why)
	}
	if plan, why := s.r.CommitPlan(work, []placement.Placement{placementOf(work, name, "n")}, s.now); plan == nil {
		s.t.Fatal(why)
	}
	return s.assumes(name)
}

// TestPauseEndsWithAnEvent: the pause of a gang whose plan failed lets no gang of lower rank take room after an event
// that may help, and only then.
func TestPauseEndsWithAnEvent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		priority int32
		tell     func(s *story)
		first    bool
	}{
		"no event":                        {tell: func(s *story) { s.observes() }},
		"an event of another kind":        {tell: func(s *story) { s.observes(pods) }},
		"its own pods are released":       {tell: func(s *story) { s.observes(EventOf("a"), EventOf("b")) }},
		"another failed plan is released": {tell: func(s *story) { s.observes(EventOf("x")) }},
		"a bound pod of its own":          {tell: func(s *story) { s.pods(memberPod("c").Node("n")).observes(EventOf("c")) }},
		"a bound pod of its own has ended": {priority: -1, tell: func(s *story) { // its age is counted anew
			s.pods(memberPod("c").Node("n")).gone("c").observes(EventOf("c"))
			s.effects = s.r.RemoveFailedPod("c", s.now)
			s.observes()
		}, first: true},
		"a bound pod of its own is deleted": {tell: func(s *story) {
			s.pods(memberPod("c").Node("n"), memberPod("c").Node("n").Terminating()).gone("c").observes(EventOf("c"))
		}, first: true},
		"a bound pod of another gang": {tell: func(s *story) { s.pods(memberPod("y").Gang("h").Node("n")).observes(EventOf("y")) }, first: true},
		"a node, a volume or a claim": {tell: func(s *story) { s.observes(EventOf("")) }, first: true},
		"a bound pod of its own has succeeded": {priority: -1, tell: func(s *story) {
			s.pods(memberPod("c").Node("n")).gone("c").pods(memberPod("c").Node("n").Phase(corev1.PodSucceeded)).observes(EventOf("c"))
		}, first: true},
		"a bound pod of its own is deleted, after its room was seen": {tell: func(s *story) {
			s.pods(memberPod("c").Node("n"), memberPod("c").Node("n").Terminating()).observes(EventOf("c")).gone("c").observes()
		}, first: true},
		"a plain pod, or one that is gone": {tell: func(s *story) { s.observes(EventOf("unknown")) }, first: true},
		"its own pods and others":          {tell: func(s *story) { s.observes(EventOf("a"), EventOf("unknown")) }, first: true},
		"before the other gang is planned": {tell: func(s *story) { s.observes(EventOf("")).observes() }, first: true},
		"while the plan was in force": {tell: func(s *story) {
			s.after(minBackoff).leads("a").commits("a", "b").assumes("a", "b").arrives("a").observes(EventOf(""))
			s.releases("b", "a").observes()
		}, first: true},
		"before its last attempt": {tell: func(s *story) { s.observes(EventOf("")).fails(0).observes() }},
		"after its last attempt":  {tell: func(s *story) { s.observes(EventOf("")).fails(0).observes(EventOf("")) }, first: true},
		"a plan fails that was in force when it was tried last": {tell: func(s *story) {
			s.after(minBackoff).holds("k").fails(0).releases("k").observes(EventOf("k"))
		}, first: true},
		"such a plan fails while its own is in force": {tell: func(s *story) {
			s.after(minBackoff).holds("k").leads("a").commits("a", "b").assumes("a", "b").releases("k").observes(EventOf("k")).releases("b", "a").observes()
		}, first: true},
		"a plan fails that was made after it was tried last": {tell: func(s *story) {
			s.holds("k").releases("k").observes(EventOf("k"))
		}},
		"a plan fails that was made after it was tried last, while its own is in force": {tell: func(s *story) {
			s.after(minBackoff).leads("a").commits("a", "b").assumes("a", "b").holds("k").releases("k").observes(EventOf("k")).releases("b", "a").observes()
		}},
		"a gang that precedes it": {priority: 1, tell: func(s *story) { s.observes(EventOf("")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, other := pausing(t, tc.priority)
			tc.tell(s)
			if got := s.r.MustYield(other, s.now); got != tc.first {
				t.Errorf("the other gang yields: %t, want %t", got, tc.first)
			}
			if elected := s.leader() != ""; elected != (tc.first || tc.priority > 0) {
				t.Errorf("its pause is over: %t", elected)
			}
		})
	}
}

// TestGangWhosePlansAlwaysFailStopsNoOther: however many events there are, they end no pause after a few failures, and
// in the pauses a gang of lower rank may be planned.
func TestGangWhosePlansAlwaysFailStopsNoOther(t *testing.T) {
	t.Parallel()
	for _, occupies := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 700 * time.Millisecond, 9 * time.Second} {
		t.Run(occupies.String(), func(t *testing.T) {
			t.Parallel()
			s, other := pausing(t, 0)
			start, early, free := s.now, 0, time.Duration(0)
			for s.now.Sub(start) < 2000*occupies {
				paused := s.leader() == ""
				s.observes(EventOf(""))
				if s.leader() == "" {
					if s.r.MustYield(other, s.now) {
						t.Fatal("the other gang yields to one in its pause")
					}
					free += occupies / 4
					s.after(occupies / 4)
					continue
				}
				if paused {
					early++
				}
				s.fails(occupies)
			}
			took := s.now.Sub(start)
			if early != maxEarly {
				t.Errorf("%d pauses were ended by an event, want %d", early, maxEarly)
			}
			if free < took/4 {
				t.Errorf("another gang could be planned for %s of %s only", free, took)
			}
		})
	}
}

func TestPassDoesNotRepeatALongName(t *testing.T) {
	name := strings.Repeat("n", 200<<10)
	pod := memberPod("a").Gang(name)
	s := begin(t)
	if ok, why := s.r.MayEnterQueue(pod.Obj()); ok || len(why) > 500 {
		t.Errorf("passes: %t, why has %d bytes", ok, len(why))
	}
	s.pods(pod)
	if ok, why := s.r.MayEnterQueue(pod.Obj()); ok || len(why) > 500 {
		t.Errorf("passes: %t, why has %d bytes", ok, len(why))
	}
}
