// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

var noRoom = podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs}

func (s *story) refuses() *story {
	return s.refusesFor(Wait{})
}

// refusesFor: the gang waits for the topic that is its key, too.
func (s *story) refusesFor(w Wait) *story {
	w.Topics = append(w.Topics, gangG)
	s.effects = s.r.RecordGangRefused(gangG, noRoom, w, s.now)
	return s
}

// wakes reports an event that concerns these gangs.
func (s *story) wakes(keys ...Key) *story {
	var topics []Topic
	for _, key := range keys {
		topics = append(topics, key)
	}
	s.effects = s.r.RetryWaiting(nil, topics, s.now)
	return s
}

func (s *story) wantActivated(names ...string) *story {
	s.t.Helper()
	slices.Sort(names)
	if diff := cmp.Diff(names, s.activated()); diff != "" {
		s.t.Fatalf("activated (-want +got):\n%s", diff)
	}
	return s
}

func (s *story) wantPasses(name string, want bool) *story {
	s.t.Helper()
	if got, why := s.r.MayEnterQueue(s.r.members[types.UID(name)].pod); got != want {
		s.t.Fatalf("%s passes: %v (%s), want %v", name, got, why, want)
	}
	return s
}

func TestRefusedGangIsWokenByName(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(s *story){
		"it sleeps whatever else happens": func(s *story) {
			s.leads("a").refuses().wantPasses("a", false)
			s.r.RecordRoomGrowth()
			s.after(time.Minute).wantActivated().wakes(Key{Namespace: testNamespace, Name: "other"}).wantActivated()
		},
		"its leader is activated until the queue has seen it": func(s *story) {
			s.leads("a").refuses().wakes(gangG).wantActivated("a").after(wakeInterval).wantActivated("a")
			s.wantPasses("a", true).after(time.Minute).wantActivated()
		},
		"a second wake-up has no effect": func(s *story) {
			s.leads("a").refuses().wakes(gangG).wakes(gangG).wantActivated()
		},
		"a wake-up while the attempt is made is not lost": func(s *story) {
			s.leads("a").wakes(gangG).wantActivated().refusesFor(Wait{Missed: true}).wantActivated("a").wantPasses("a", true)
			s.leads("a").wakes(gangG).wantActivated().refuses().wantActivated("a").wantPasses("a", true)
			s.leads("a").refuses().wantActivated() // the wake-ups were for those attempts only
		},
		"a wake-up before the cycle begins is in its snapshot": func(s *story) {
			s.wantPasses("a", true).wakes(gangG).leads("a").refuses().wantActivated()
			s.wakes(gangG).wantPasses("a", true).wakes(gangG).leads("a").refuses().wantActivated()
		},
		"its own pods changed: it is tried again after a moment": func(s *story) {
			s.leads("a").refuses().pods(memberPod("c")).after(retryInterval).wantActivated("a").wantPasses("a", true)
		},
		"another leader is elected while the attempt is made": func(s *story) {
			s.pods(memberPod("c")).leads("a").gone("a").wantActivated("b").refuses().wantPasses("b", true)
		},
		"what it waits for is over at a known time": func(s *story) {
			s.leads("a").refusesFor(Wait{Until: s.now.Add(time.Minute), Took: time.Hour})
			s.after(time.Minute-1).wantActivated().after(1).wantActivated("a").wantPasses("a", true)
		},
		"another leader is elected: its pods changed": func(s *story) {
			s.leads("a").refuses().gone("a").wantActivated().pods(memberPod("c")).wantActivated("b").wantPasses("b", true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(begin(t).group(podGroup().MinMember(2)).members("a", "b"))
		})
	}
}

func TestYoungGangLetsARipeOlderOneGoFirst(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(1)).members("a")
	s.now = s.now.Add(time.Second)
	young := wrappers.MakePod("x", testNamespace).UID("x").Gang("h").Obj()
	s.r.SetGroup(wrappers.MakePodGroup("h", testNamespace).UID("group-h").MinMember(1).Obj(), s.now)
	s.r.SetPod(young, s.now)
	s.r.MayEnterQueue(young)
	s.leads("a").refuses()
	if s.r.MustYield(young, s.now) {
		t.Fatal("yields to a gang that nothing has changed for")
	}
	s.wakes(gangG)
	if !s.r.MustYield(young, s.now) {
		t.Fatal("takes the room that an older gang was woken for")
	}
	if s.leads("a").refuses(); !slices.Equal(s.activated(), []string{"x"}) {
		t.Fatalf("activated %v, want the gang that yielded, now that the older was tried", s.activated())
	}
	if s.r.MustYield(young, s.now) {
		t.Error("yields to a gang that was tried")
	}
}

func TestAbortedPlanIsCancelled(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(3)).members("a", "b", "c").leads("a").commits("a", "b", "c").assumes("a", "b")
	s.effects = s.r.AbortPlanOf("c", AbortRefused, "node refused", s.now)
	slices.Sort(s.effects.Cancel)
	if diff := cmp.Diff([]types.UID{"a", "b"}, s.effects.Cancel); diff != "" {
		t.Errorf("to be cancelled: the members that are assumed (-want +got):\n%s", diff)
	}
	if s.releases("a"); len(s.effects.Cancel) > 0 {
		t.Errorf("cancelled twice: %v", s.effects.Cancel)
	}
	s.releases("b").wantQuiet()
}

func TestWaitingSinceSurvivesARestart(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b")
	since := s.now
	f, _ := s.r.Facts(gangG)
	if !f.WaitingSince.Equal(since) {
		t.Fatalf("waits since %v, want %v", f.WaitingSince, since)
	}
	status := podgroup.Status(f, metav1.NewTime(since))
	for name, tc := range map[string]struct {
		uid    string
		before bool // the pods are observed before the PodGroup
		want   time.Time
	}{
		"the same PodGroup":                 {uid: "group", want: since},
		"its pods are seen first":           {uid: "group", before: true, want: since},
		"another PodGroup of the same name": {uid: "group-2", want: since.Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			next := New()
			next.AddProfile(wrappers.SchedulerName)
			now := since.Add(time.Hour)
			group := podGroup().MinMember(2).UID(tc.uid).Obj()
			if tc.uid == "group" {
				group.Status = status
			}
			pods := func() {
				next.SetPod(memberPod("a").Obj(), now)
				next.SetPod(memberPod("b").Obj(), now)
			}
			if tc.before {
				pods()
			}
			next.SetGroup(group, now)
			if !tc.before {
				pods()
			}
			next.SetSynced(now)
			if f, _ := next.Facts(gangG); !f.WaitingSince.Equal(tc.want) {
				t.Errorf("waits since %v, want %v", f.WaitingSince, tc.want)
			}
		})
	}
	if s.binds("a", "a", "b"); true {
		if f, _ := s.r.Facts(gangG); !f.WaitingSince.IsZero() {
			t.Errorf("an admitted gang waits since %v", f.WaitingSince)
		}
	}
}

func TestStandbyFollowsWhatTheLeaderWrote(t *testing.T) {
	t.Parallel()
	admitted := podGroup().MinMember(2).Condition(v2alpha2.ConditionAdmitted, "True", v2alpha2.ReasonAdmitted, "")
	standby := begin(t).group(podGroup().MinMember(2)).pods(memberPod("a").Node("n")).wantAdmitted(false)
	standby.group(admitted).wantAdmitted(true)
	// Once it leads, its own memory is authoritative.
	leader := begin(t).group(podGroup().MinMember(2)).pods(memberPod("a").Node("n"))
	leader.r.SetLeading()
	leader.group(admitted).wantAdmitted(false)
}

func TestRanksDoNotOutliveTheirPods(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(1)).members("a").wantPasses("a", true)
	if got := s.r.RankOf(memberPod("a").Obj(), s.now.Add(time.Hour)); !got.Time.Equal(s.now) {
		t.Fatalf("rank %+v, want the gang's", got)
	}
	s.pods(memberPod("a").Node("n")) // bound by another scheduler
	left := 0
	s.r.ranks.Range(func(any, any) bool { left++; return true })
	if left > 0 {
		t.Errorf("%d ranks are left", left)
	}
}

func TestLeaderWhoseCycleEndsWithoutAResultIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(s *story){
		"before its attempt: a moment later": func(s *story) {
			s.wantPasses("a", true)
			s.r.RecordPopped("a")
			s.r.RecordCycleFailed("a", s.now)
			s.after(retryInterval - 1).wantActivated().after(1).wantActivated("a")
		},
		"before its attempt, which it was woken for: a moment later": func(s *story) {
			s.leads("a").refuses().wakes(gangG).wantPasses("a", true)
			s.r.RecordPopped("a")
			s.r.RecordCycleFailed("a", s.now)
			s.after(retryInterval - 1).wantActivated().after(1).wantActivated("a")
		},
		"before its attempt, time and again: after longer and longer pauses": func(s *story) {
			s.wantPasses("a", true)
			for pause := retryInterval; pause <= 4*retryInterval; pause *= 2 {
				s.r.RecordPopped("a")
				s.r.RecordCycleFailed("a", s.now)
				s.after(pause-1).wantActivated().after(1).wantActivated("a").wantPasses("a", true)
			}
		},
		"before its attempt, after a plan that failed: a moment later": func(s *story) {
			s.leads("a").commits("a", "b")
			s.r.AbortPlanOf("b", AbortRefused, "node n refused", s.now)
			s.after(minBackoff).wantActivated("a").wantPasses("a", true)
			s.r.RecordPopped("a")
			s.r.RecordCycleFailed("a", s.now)
			s.after(retryInterval - 1).wantActivated().after(1).wantActivated("a")
		},
		"its attempt was refused: it sleeps": func(s *story) {
			s.leads("a").refuses()
			s.r.RecordCycleFailed("a", s.now)
			s.after(longest - 1).wantActivated()
		},
		"a pod of the plan is gated: the attempt is made again without it": func(s *story) {
			s.pods(memberPod("c")).leads("a")
			s.effects = s.r.SetGates(map[types.UID]string{"c": "is gated"}, s.now)
			s.wantActivated("a")
			s.r.RecordCycleFailed("a", s.now)
			s.after(wakeInterval).wantActivated("a").wantPasses("a", true).after(time.Hour).wantActivated()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(begin(t).group(podGroup().MinMember(2)).members("a", "b"))
		})
	}
}

func TestGangWithoutAnythingToPlanWaitsForNothing(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b")
	released := 0
	s.leads("a").refusesFor(Wait{Release: func() { released++ }})
	if n := s.r.WaitingGangs(); n != 1 {
		t.Errorf("%d gangs wait, want 1", n)
	}
	if s.gone("b").wakes(); s.r.WaitingGangs() != 0 || released != 1 {
		t.Errorf("incomplete, and %d gangs wait, released %d times", s.r.WaitingGangs(), released)
	}
}
