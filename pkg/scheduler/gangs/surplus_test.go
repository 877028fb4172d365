// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/test/wrappers"
)

// room is a number of places on one node.
type room struct {
	placement.NoTopology

	left, placed int
}

func (w *room) Place(int, string) (string, bool) {
	if w.left == w.placed {
		return "", false
	}
	w.placed++
	return "n", true
}
func (w *room) Undo(n int)                      { w.placed -= n }
func (w *room) Kind(int) placement.Kind         { return placement.Independent }
func (w *room) Domains(int, []int) []string     { return nil }
func (w *room) Open(int, string) bool           { return true }
func (w *room) Nodes(int, int) []string         { return nil }
func (w *room) Capacity(int) placement.Capacity { return placement.Capacity{Nodes: 1, Pods: w.left} }
func (w *room) Weight(int) int64                { return 1 }
func (w *room) Explain(int, string) *placement.Refusal {
	return &placement.Refusal{Reasons: map[string]int{"full": 1}}
}

// plansIn returns the pods that the work places if the given number of places is free.
func (s *story) plansIn(places int) []string {
	var names []string
	for _, p := range simulatedPlan(s.work, &room{left: places}) {
		names = append(names, p.Pod.ID)
	}
	slices.Sort(names)
	return names
}

func (s *story) wantTask(want Task) *story {
	s.t.Helper()
	if s.work.Task != want {
		s.t.Fatalf("plans its %s, want %s", s.work.Task, want)
	}
	return s
}

func (s *story) wantPlan(places int, want ...string) *story {
	s.t.Helper()
	if diff := cmp.Diff(want, s.plansIn(places)); diff != "" {
		s.t.Fatalf("planned with %d places (-want +got):\n%s", places, diff)
	}
	return s
}

func sub(leaf string, names ...string) (out []*wrappers.PodWrapper) {
	for _, n := range names {
		out = append(out, memberPod(n).SubGroup(leaf))
	}
	return out
}

// A gang that lacks one pod used all the free room.
func TestRefillPlacesOnlyWhatTheMinimumLacks(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").gone("b").after(departure).
		members("c", "d", "e", "f", "g").leads("c").wantTask(Refill).wantPlan(5, "c")
	s.commits("c").assumes("c").arrives("c").posts("c").leads("d").wantTask(SurplusSingle).wantPlan(5, "d", "e", "f", "g")
}

// A refill knows where the lost pods ran, until the minimum is bound again.
func TestRefillKnowsTheFormerNodes(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(3)).members("a", "b", "c").binds("a", "a", "b", "c")
	node := func(name string) string { return s.r.members[types.UID(name)].node }
	if node("b") != node("c") {
		t.Fatalf("nodes %s and %s", node("b"), node("c"))
	}
	want := []LostPods{{"", node("b"), 2}}
	s.gone("b", "c").after(departure).members("d", "e").leads("d").wantTask(Refill)
	if diff := cmp.Diff(want, s.work.LostFrom); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
	s.commits("d", "e").assumes("d", "e").arrives("d", "e").posts("d", "e").gone("a").after(departure).members("f").leads("f").wantTask(Refill)
	if len(s.work.LostFrom) != 1 {
		t.Errorf("lost: %v, want the last one", s.work.LostFrom)
	}
	for i := range 3 * maxLost {
		name := fmt.Sprintf("x%02d", i)
		s.pods(memberPod(name).Node("n-" + name)).gone(name)
	}
	if n := len(s.r.gangs[gangG].lostFrom); n > maxLost {
		t.Errorf("%d lost pods are remembered, want at most %d", n, maxLost)
	}
}

func TestSurplusComesInUnits(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinSubGroup(1).SubGroup("x", 2).SubGroup("y", 2).SubGroup("z", 2)).
		pods(sub("x", "x0", "x1", "x2")...).binds("x0", "x0", "x1").
		pods(sub("y", "y0", "y1")...).pods(sub("z", "z0", "z1")...)
	s.leads("y0").wantTask(SurplusUnit).wantPlan(9, "y0", "y1") // one unit in one plan, no single pod
	s.commits("y0", "y1").assumes("y0", "y1").arrives("y0", "y1").posts("y0", "y1")
	s.leads("z0").wantTask(SurplusUnit).wantPlan(9, "z0", "z1").wantPlan(1)
}

func TestSinglesLetUnitsGoFirst(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *story {
		s := begin(t)
		s.r.opts.SingleSurplusAfter = 2 * time.Second
		s.group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2)).pods(sub("x", "x0", "x1")...).binds("x0", "x0").
			pods(sub("y", "y0", "y1")...)
		return s.leads("y0").wantTask(SurplusUnit).refuses()
	}
	t.Run("single pods come when room has stood still", func(t *testing.T) {
		t.Parallel()
		s := start(t).after(time.Second).wantActivated().after(time.Second).wantActivated("x1")
		s.leads("x1").wantTask(SurplusSingle).wantPlan(9, "x1")
		if f, _ := s.r.Facts(gangG); f.Refused.Reason != noRoom.Reason || !f.RefusedSurplus {
			t.Errorf("the unit that waits is forgotten: %+v", f.Refused)
		}
	})
	t.Run("room that grows is tried for the unit first", func(t *testing.T) {
		t.Parallel()
		s := start(t).after(1500 * time.Millisecond).wakes(gangG).wantActivated("y0")
		s.leads("y0").wantTask(SurplusUnit).refuses().after(1500 * time.Millisecond).wantActivated().after(500 * time.Millisecond).wantActivated("x1")
	})
	t.Run("the unit is tried again when room grows while single pods wait", func(t *testing.T) {
		t.Parallel()
		s := start(t).after(2 * time.Second).leads("x1").refuses().wakes(gangG).wantActivated("y0")
		s.leads("y0").wantTask(SurplusUnit)
	})
	t.Run("the unit is tried again when it may fit before the attempt of single pods", func(t *testing.T) {
		t.Parallel()
		s := start(t).after(2 * time.Second).wantActivated("x1").wakes(gangG).wantActivated("y0")
		s.leads("y0").wantTask(SurplusUnit)
	})
	t.Run("the unit is tried again when room grew while single pods were bound", func(t *testing.T) {
		t.Parallel()
		s := start(t).pods(sub("x", "x2")...).after(retryInterval).leads("y0").refuses().after(2 * time.Second).leads("x1").commits("x1").assumes("x1").wakes(gangG)
		s.arrives("x1").posts("x1").leads("y0").wantTask(SurplusUnit)
	})
	t.Run("the unit is tried again when it may fit while single pods wait for their turn", func(t *testing.T) {
		t.Parallel()
		s := start(t).after(2*time.Second).wantActivated("x1").wantPasses("x1", true)
		s.r.RecordRoomGrowth()
		if work, _ := s.r.BeginAttempt(s.r.members["x1"].pod); work != nil {
			t.Fatal("single pods are planned although room has grown just now")
		}
		s.wakes(gangG).wantActivated("y0").leads("y0").wantTask(SurplusUnit)
	})
	t.Run("single pods come after 10 s although room grows", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		for range 10 { // room grows from the first second on
			s.after(time.Second).wantActivated().wakes(gangG).wantActivated("y0").leads("y0").wantTask(SurplusUnit).refuses()
		}
		s.after(time.Second).wantActivated("x1").leads("x1").wantTask(SurplusSingle)
	})
	t.Run("the unit keeps its rank after single pods were refused", func(t *testing.T) {
		t.Parallel()
		start(t).after(2*time.Second).leads("x1").refuses().wantRank(SurplusSingle, TierSurplusUnit)
	})
	t.Run("single pods of another gang wait too, until no unit does", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		other := func(name string) *wrappers.PodWrapper {
			return wrappers.MakePod(name, testNamespace).UID(name).Gang("h")
		}
		s.r.SetGroup(wrappers.MakePodGroup("h", testNamespace).UID("group-h").MinMember(1).Obj(), s.now)
		s.pods(other("h0").Node("n"))
		s.r.RecordRoomGrowth()
		s.pods(other("h1")).wantActivated()
		s.gone("y0") // the unit cannot be completed
		s.after(time.Millisecond)
		if !slices.Contains(s.activated(), "h1") {
			t.Errorf("activated %v, want h1: no unit waits any more", s.activated())
		}
	})
}

// refuseMinimum refuses the minimum of another gang than that of the story, whose first pod is h0.
func refuseMinimum(s *story, h Key) {
	s.t.Helper()
	work, why := s.r.BeginAttempt(s.r.members["h0"].pod)
	if work == nil || work.Task != Minimum {
		s.t.Fatalf("no minimum is planned: %v, %s", work, why)
	}
	s.effects = s.r.RecordGangRefused(h, noRoom, Wait{Topics: []Topic{h}}, s.now)
}

// TestSurplusLetsMinimumsHaveRoomThatGrows: nodes are uncordoned one after another. A surplus sub-group must not take
// the first of them, which the next would make enough for the minimum of another gang.
func TestSurplusLetsMinimumsHaveRoomThatGrows(t *testing.T) {
	t.Parallel()
	h := Key{Namespace: testNamespace, Name: "h"}
	start := func(t *testing.T) *story {
		s := begin(t)
		s.r.opts.SingleSurplusAfter = 2 * time.Second
		s.group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 1)).pods(sub("x", "x0")...).binds("x0", "x0").
			pods(sub("y", "y0")...).leads("y0").wantTask(SurplusUnit).refuses()
		s.r.SetGroup(wrappers.MakePodGroup("h", testNamespace).UID("group-h").MinMember(2).Obj(), s.now)
		for _, name := range []string{"h0", "h1"} {
			s.pods(wrappers.MakePod(name, testNamespace).UID(name).Gang("h"))
		}
		refuseMinimum(s, h)
		return s.after(10 * time.Second)
	}
	t.Run("a minimum that is refused again may get the room that comes next", func(t *testing.T) {
		t.Parallel()
		s := start(t).wakes(gangG).wantActivated().after(1500 * time.Millisecond).wantActivated()
		s.wakes(gangG, h).wantActivated("h0")
		refuseMinimum(s, h)
		s.after(1500 * time.Millisecond).wantActivated().wakes(h).wantActivated("h0")
		work, why := s.r.BeginAttempt(s.r.members["h0"].pod)
		if work == nil {
			t.Fatal(why)
		}
		if p, why := s.r.CommitPlan(work, simulatedPlan(work, &room{left: 2}), s.now); p == nil {
			t.Fatal(why)
		}
		s.after(time.Millisecond).wantActivated("y0")
	})
	t.Run("room that stands still is used", func(t *testing.T) {
		t.Parallel()
		start(t).wakes(gangG).after(2 * time.Second).wantActivated("y0").leads("y0").wantTask(SurplusUnit)
	})
	t.Run("churn does not starve surplus", func(t *testing.T) {
		t.Parallel()
		s := start(t).wakes(gangG)
		for range 9 {
			s.r.RecordRoomGrowth()
			s.after(time.Second).wantActivated()
		}
		s.r.RecordRoomGrowth()
		s.after(time.Second).wantActivated("y0")
	})
	t.Run("nor does room that grows between its activation and its attempt", func(t *testing.T) {
		t.Parallel()
		s := start(t).wakes(gangG)
		for range 4 {
			s.after(2*time.Second).wantActivated("y0").wantPasses("y0", true)
			s.r.RecordRoomGrowth()
			s.r.RecordPopped("y0")
			if work, _ := s.r.BeginAttempt(s.r.members["y0"].pod); work != nil {
				t.Fatal("a sub-group is planned although room has grown just now")
			}
		}
		s.after(2 * time.Second).wantActivated("y0")
		s.r.RecordRoomGrowth()
		s.leads("y0").wantTask(SurplusUnit)
	})
	t.Run("surplus that was let go waits again when room grows again", func(t *testing.T) {
		t.Parallel()
		s := start(t).wakes(gangG).wantActivated().gone("h0").after(time.Millisecond).wantActivated("y0").leads("y0").refuses().after(time.Minute)
		s.pods(wrappers.MakePod("h0", testNamespace).UID("h0").Gang("h"))
		refuseMinimum(s, h)
		s.wakes(gangG).wantActivated()
	})
	t.Run("an event ends the pause of surplus that let room grow", func(t *testing.T) {
		t.Parallel()
		s := start(t).wakes(gangG).after(2 * time.Second).leads("y0").commits("y0").assumes("y0")
		s.releases("y0")
		s.r.gangs[gangG].notBefore = s.now.Add(maxBackoff)
		s.after(3 * time.Second).wantActivated()
		s.effects = s.r.RetryWaiting(nil, []Topic{EventOf("another pod")}, s.now)
		s.wantActivated("y0")
	})
	t.Run("a minimum of lower priority does not matter", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		s.r.SetPod(memberPod("x0").SubGroup("x").Node("n").Priority(1).Obj(), s.now)
		s.r.SetPod(memberPod("y0").SubGroup("y").Priority(1).Obj(), s.now)
		s.wakes(gangG).wantActivated("y0")
	})
	t.Run("nor does one that is gone", func(t *testing.T) {
		t.Parallel()
		s := start(t).wakes(gangG).wantActivated()
		s.gone("h0").after(time.Millisecond).wantActivated("y0")
	})
}

func TestUnitsOfAllGangsComeBreadthFirst(t *testing.T) {
	t.Parallel()
	early := time.Unix(1_000_000, 0)
	want := []Rank{
		{Tier: TierRefill, Time: early.Add(9)},
		{Tier: TierNormal, Time: early.Add(8)},
		{Tier: TierSurplusUnit, Level: 0, Extra: 0, Time: early.Add(7)},
		{Tier: TierSurplusUnit, Level: 0, Extra: 1, Time: early.Add(6)},
		{Tier: TierSurplusUnit, Level: 1, Extra: 0, Time: early.Add(5)},
		{Tier: TierSurplusSingle, Time: early.Add(4)},
		{Priority: -1, Tier: TierNormal, Time: early.Add(3)},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Rank.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	s := begin(t).group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 1).SubGroup("z", 1)).
		pods(sub("x", "x0")...).binds("x0", "x0").pods(sub("y", "y0")...).pods(sub("z", "z0")...)
	if got := s.r.gangs[gangG].leaderRank(); got.Tier != TierSurplusUnit || got.Extra != 0 {
		t.Errorf("rank of the first unit is %+v", got)
	}
	s.binds("y0", "y0")
	if got := s.r.gangs[gangG].leaderRank(); got.Tier != TierSurplusUnit || got.Extra != 1 {
		t.Errorf("rank of the second unit is %+v", got)
	}
}

func TestRefillOvertakesSurplus(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").members("c", "d").
		leads("c").wantTask(SurplusSingle).commits("c").assumes("c") // its volume takes long
	s.gone("b").wantAborted(false) // it may have succeeded
	s.after(departure).wantAborted(true)
	if diff := cmp.Diff([]types.UID{"c"}, s.effects.Cancel); diff != "" {
		t.Errorf("to be cancelled (-want +got):\n%s", diff)
	}
	s.releases("c").wantLeader("c").leads("c").wantTask(Refill).wantPlan(9, "c") // without back-off

	open := begin(t).group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").members("c").
		leads("c").commits("c").assumes("c").arrives("c").gone("b").after(departure)
	open.wantAborted(false) // its binding may be posted
}

func TestSurplusThatFailsIsBackedOff(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(1)).members("a", "b").binds("a", "a")
	tries, end := 0, s.now.Add(36*time.Second)
	for s.now.Before(end) {
		if s.leader() == "b" {
			s.leads("b").commits("b").assumes("b").releases("b")
			s.pods(memberPod("a").Node("n")) // the gang is evaluated in the meantime
			tries++
		}
		s.after(100 * time.Millisecond)
	}
	if tries < 3 || tries > 10 {
		t.Errorf("tried %d times in 36 s, want the back-off doubled to its limit", tries)
	}
}
