// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// terminates begins the deletion of pods; they still exist during their grace period.
func (s *story) terminates(names ...string) *story {
	for _, n := range names {
		pod := s.r.members[types.UID(n)].pod.DeepCopy()
		pod.DeletionTimestamp = wrappers.MakePod("p", "ns").Terminating().Obj().DeletionTimestamp
		s.effects = s.r.SetPod(pod, s.now)
	}
	return s
}

// deleted ends the deletion of pods.
func (s *story) deleted(names ...string) *story {
	return s.terminates(names...).gone(names...)
}

func (s *story) wantAdmittedGroups(want ...string) *story {
	s.t.Helper()
	if diff := cmp.Diff(want, sets.List(s.r.gangs[gangG].admittedGroups), cmpopts.EquateEmpty()); diff != "" {
		s.t.Fatalf("admitted sub-groups (-want +got):\n%s", diff)
	}
	return s
}

// replicas is a scaling group of two replicas, each with a leader and two workers, of which the given number is
// needed, and a leaf for the router. All pods are bound.
func replicas(t *testing.T, minimum int32) *story {
	t.Helper()
	s := begin(t).group(podGroup().SubGroup("router", 1).Inner("", "decode", minimum).
		Inner("decode", "d0", 2).SubGroupOf("d0", "d0-lead", 1).SubGroupOf("d0", "d0-work", 2).
		Inner("decode", "d1", 2).SubGroupOf("d1", "d1-lead", 1).SubGroupOf("d1", "d1-work", 2)).
		pods(sub("router", "r")...).pods(sub("d0-lead", "l0")...).pods(sub("d0-work", "v0", "w0")...).
		pods(sub("d1-lead", "l1")...).pods(sub("d1-work", "v1", "w1")...)
	s.shownBound("r", "l0", "v0", "w0", "l1", "v1", "w1")
	return s.wantAdmitted(true).wantAdmittedGroups("d0", "d0-lead", "d0-work", "d1", "d1-lead", "d1-work", "decode", "router")
}

func TestReplicasAreAdmittedAgainAsUnits(t *testing.T) {
	t.Parallel()
	others := []string{"d0", "d0-lead", "d0-work", "decode", "router"}

	t.Run("a replica that lost all of its pods comes back as a whole or not at all", func(t *testing.T) {
		t.Parallel()
		s := replicas(t, 2).deleted("l1", "v1", "w1").wantAdmitted(true).wantAdmittedGroups(others...)
		s.pods(sub("d1-lead", "L1")...).pods(sub("d1-work", "V1", "W1")...).leads("L1").wantTask(Refill).wantPlan(1).wantPlan(2).wantPlan(3, "L1", "V1", "W1")
	})
	t.Run("pods in their grace period do not keep it", func(t *testing.T) {
		t.Parallel()
		s := replicas(t, 2).terminates("l1", "v1", "w1").wantAdmittedGroups(others...)
		s.pods(sub("d1-lead", "L1")...).pods(sub("d1-work", "V1", "W1")...).leads("L1").wantPlan(2).wantPlan(3, "L1", "V1", "W1")
	})
	t.Run("no replacement is placed before all of them exist", func(t *testing.T) {
		t.Parallel()
		s := replicas(t, 2).deleted("l1", "v1", "w1")
		s.pods(sub("d1-lead", "L1")...).leads("L1").wantTask(Refill).wantPlan(9).refuses()
		s.pods(sub("d1-work", "V1")...).after(retryInterval).leads("L1").wantPlan(9).refuses()
		s.pods(sub("d1-work", "W1")...).after(retryInterval).leads("L1").wantPlan(9, "L1", "V1", "W1")
	})
	t.Run("a clique that lost all of its pods is a unit by itself while the rest of the replica runs", func(t *testing.T) {
		t.Parallel()
		s := replicas(t, 2).deleted("v1", "w1").wantAdmittedGroups("d0", "d0-lead", "d0-work", "d1", "d1-lead", "decode", "router")
		s.pods(sub("d1-work", "V1", "W1")...).leads("V1").wantTask(Refill).wantPlan(1).wantPlan(2, "V1", "W1")
	})
	t.Run("a clique recreated while the other one goes comes with that one", func(t *testing.T) {
		t.Parallel()
		s := replicas(t, 2).deleted("v1", "w1").pods(sub("d1-work", "V1", "W1")...).leads("V1").wantPlan(9, "V1", "W1").refuses()
		s.deleted("l1").wantAdmittedGroups(others...).after(retryInterval).leads("V1").wantPlan(9).refuses()
		s.pods(sub("d1-lead", "L1")...).after(retryInterval).leads("V1").wantPlan(2).wantPlan(3, "L1", "V1", "W1")
	})
	t.Run("single pods of another replica do not wait for it", func(t *testing.T) {
		t.Parallel()
		s := replicas(t, 2).deleted("w0", "l1", "v1", "w1").pods(sub("d0-work", "W0")...).pods(sub("d1-lead", "L1")...).pods(sub("d1-work", "V1", "W1")...)
		s.leads("W0").wantTask(Refill).wantPlan(2, "W0").wantPlan(3, "L1", "V1", "W1") // the unit goes first if there is room for it
	})
	t.Run("a replica above the minimum comes back as a unit too", func(t *testing.T) {
		t.Parallel()
		s := replicas(t, 1).deleted("l1", "v1", "w1").wantAdmittedGroups(others...)
		s.pods(sub("d1-lead", "L1")...).pods(sub("d1-work", "V1", "W1")...).leads("L1").wantTask(LostUnit).wantPlan(2).wantPlan(3, "L1", "V1", "W1")
	})
	t.Run("a succeeded pod keeps its sub-group", func(t *testing.T) {
		t.Parallel()
		s := begin(t).group(podGroup().SubGroup("x", 1).SubGroup("y", 2))
		for _, n := range []string{"x0", "y0", "y1"} {
			s.pods(memberPod(n).SubGroup(n[:1]).Controller("Job", "job", "job").Node("n"))
		}
		s.pods(memberPod("y0").SubGroup("y").Controller("Job", "job", "job").Node("n").Phase("Succeeded")).deleted("y1")
		s.wantAdmittedGroups("x", "y").pods(memberPod("y2").SubGroup("y").Controller("Job", "job", "job")).leads("y2").wantPlan(9, "y2")
	})
	t.Run("the whole gang is a unit again once none of its pods is left", func(t *testing.T) {
		t.Parallel()
		s := replicas(t, 2).terminates("r", "l0", "v0", "w0", "l1", "v1").wantAdmitted(true).terminates("w1").wantAdmitted(false).wantAdmittedGroups()
		s.pods(sub("router", "R")...).wantLeader("")
	})
}

// Pods on which a plan depends may be removed while its members are prepared to be bound.
func TestPlansNeverBindHalfAUnit(t *testing.T) {
	t.Parallel()
	two := func(t *testing.T) *story {
		return begin(t).group(podGroup().SubGroup("x", 1).SubGroup("y", 2)).pods(sub("x", "x0")...).pods(sub("y", "y0", "y1")...).
			binds("x0", "x0", "y0", "y1")
	}
	t.Run("a refill of a sub-group whose last pod goes meanwhile is given up", func(t *testing.T) {
		t.Parallel()
		s := two(t).deleted("y0").pods(sub("y", "y2")...).leads("y2").refills("y2").assumes("y2").terminates("y1").arrives("y2")
		s.wantOpen(false).wantAborted(true).releases("y2")
		s.pods(sub("y", "y3")...).after(minBackoff).leads("y2").wantTask(Refill).wantPlan(1).wantPlan(2, "y2", "y3")
	})
	t.Run("a refill whose sub-group lost its last pod while it was planned is not begun", func(t *testing.T) {
		t.Parallel()
		s := two(t).deleted("y0").pods(sub("y", "y2")...).leads("y2").terminates("y1")
		if plan, why := s.tryRefill("y2"); plan != nil {
			t.Fatalf("plan %d is in force (%s)", plan.ID, why)
		}
	})
	t.Run("a refill of a gang whose last pod goes meanwhile is given up", func(t *testing.T) {
		t.Parallel()
		s := begin(t).group(podGroup().MinMember(2)).members("a", "b").binds("a", "a", "b").deleted("b").members("c").
			leads("c").refills("c").assumes("c").terminates("a").arrives("c")
		s.wantOpen(false).wantAborted(true).releases("c").wantAdmitted(false).wantLeader("")
	})
	t.Run("a single surplus pod of a sub-group whose last pods go meanwhile is given up", func(t *testing.T) {
		t.Parallel()
		s := begin(t).group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2)).pods(sub("x", "x0")...).pods(sub("y", "y0", "y1")...)
		s.shownBound("x0", "y0", "y1").pods(sub("y", "y2")...).leads("y2").wantTask(SurplusSingle).commits("y2").assumes("y2").
			deleted("y0", "y1").arrives("y2")
		s.wantOpen(false).wantAborted(true)
	})
	t.Run("a refill beside a pod that stays goes on", func(t *testing.T) {
		t.Parallel()
		s := begin(t).group(podGroup().SubGroup("x", 1).SubGroup("y", 3)).pods(sub("x", "x0")...).pods(sub("y", "y0", "y1", "y2")...).
			binds("x0", "x0", "y0", "y1", "y2").deleted("y0").pods(sub("y", "y3")...).leads("y3").refills("y3").assumes("y3").terminates("y1").arrives("y3")
		s.wantOpen(true).wantAborted(false)
	})
}

// refills commits a plan that places these single pods on node n.
func (s *story) refills(names ...string) *story {
	s.t.Helper()
	plan, why := s.tryRefill(names...)
	if plan == nil {
		s.t.Fatalf("plan refused: %s", why)
	}
	s.plan = plan
	return s
}

func (s *story) tryRefill(names ...string) (*Plan, string) {
	s.work.Problem.Pods = s.work.Singles.Pods
	return s.tryCommit(names...)
}

func TestSubGroupsAreAdmittedAgainAsUnits(t *testing.T) {
	t.Parallel()
	two := func(t *testing.T) *story {
		return begin(t).group(podGroup().SubGroup("x", 1).SubGroup("y", 2)).pods(sub("x", "x0")...).pods(sub("y", "y0", "y1")...).
			binds("x0", "x0", "y0", "y1")
	}
	t.Run("one that lost all of its pods", func(t *testing.T) {
		t.Parallel()
		s := two(t).gone("y0", "y1").after(departure).wantAdmitted(true).pods(sub("y", "y2", "y3")...)
		if s.r.gangs[gangG].admittedGroups.Has("y") {
			t.Error("it is admitted still")
		}
		s.leads("y2").wantTask(Refill).wantPlan(1).wantPlan(2, "y2", "y3")
	})
	t.Run("one that lost a pod gets single pods", func(t *testing.T) {
		t.Parallel()
		two(t).gone("y0").after(departure).pods(sub("y", "y2", "y3")...).leads("y2").wantTask(Refill).wantPlan(9, "y2")
	})
	t.Run("pods that are being deleted keep nothing", func(t *testing.T) {
		t.Parallel()
		s := two(t)
		for _, n := range []string{"x0", "y0", "y1"} {
			pod := s.r.members[types.UID(n)].pod.DeepCopy()
			pod.DeletionTimestamp = wrappers.MakePod("p", "ns").Terminating().Obj().DeletionTimestamp
			s.r.SetPod(pod, s.now)
		}
		s.wantAdmitted(false)
	})
	t.Run("a surplus sub-group that a failed binding left in part is completed first", func(t *testing.T) {
		t.Parallel()
		s := begin(t).group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2).SubGroup("z", 1)).pods(sub("x", "x0")...).binds("x0", "x0").
			pods(sub("y", "y0", "y1")...).leads("y0").commits("y0", "y1").assumes("y0", "y1").arrives("y0", "y1").posts("y0").releases("y1").
			pods(sub("z", "z0")...).after(minBackoff)
		s.leads("y1").wantTask(Refill).wantPlan(9, "y1")
	})
}

// processAfter returns a story that begins with a new process, which reads the objects in this order.
func processAfter(t *testing.T, show ...func(s *story)) *story {
	t.Helper()
	s := &story{t: t, r: New(), now: time.Unix(1_000_000, 0)}
	s.r.Configure(Options{RepairTimeout: 30 * time.Second})
	s.r.AddProfile(wrappers.SchedulerName)
	s.r.SetKeys(testKeys, s.now)
	for _, show := range show {
		show(s)
	}
	s.effects = s.r.SetSynced(s.now)
	s.r.AbandonedEvictions(nil, s.now)
	return s
}

// admittedGroup shows the PodGroup of a gang that needs sub-group x and may have y, with a status that records what is
// admitted.
func admittedGroup(admitted ...string) func(s *story) {
	return func(s *story) {
		group := podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 3).Condition(v2alpha2.ConditionAdmitted, metav1.ConditionTrue, "", "").Obj()
		for _, name := range admitted {
			group.Status.SubGroups = append(group.Status.SubGroups, v2alpha2.SubGroupStatus{Name: name, Admitted: true})
		}
		s.effects = s.r.SetGroup(group, s.now)
	}
}

// A new process reads PodGroups and pods in any order. A sub-group of which a pod is bound is admitted as the status
// records.
func TestANewProcessKnowsWhichSubGroupsAreAdmitted(t *testing.T) {
	t.Parallel()
	pods := func(s *story) {
		s.pods(sub("x", "x0")...).pods(sub("y", "y0")...).shownBound("x0", "y0").pods(sub("y", "y1", "y2")...)
	}
	for name, show := range map[string][]func(s *story){
		"the PodGroup first": {admittedGroup("x", "y"), pods},
		"the pods first":     {pods, admittedGroup("x", "y")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			processAfter(t, show...).wantAdmittedGroups("x", "y").leads("y1").wantTask(Refill).wantPlan(1, "y1")
		})
	}
}

// A status may have been edited. The empty name is that of the whole tree.
func TestANewProcessReadsAnAdmittedSubGroupWithoutName(t *testing.T) {
	t.Parallel()
	waiting := func(s *story) { s.pods(sub("x", "x0")...) }
	processAfter(t, admittedGroup(""), waiting).wantAdmitted(false).leads("x0").wantTask(Minimum)
	bound := func(s *story) { s.pods(sub("x", "x0")...).shownBound("x0").pods(sub("y", "y0", "y1", "y2")...) }
	processAfter(t, admittedGroup("", "y"), bound).wantAdmitted(true).wantRank(LostUnit, TierRefill)
}

// wantRank checks what the gang is to plan next and its tier in the queue.
func (s *story) wantRank(task Task, tier Tier) *story {
	s.t.Helper()
	g := s.r.gangs[gangG]
	if got := g.leaderRank().Tier; g.task != task || got != tier {
		s.t.Fatalf("plans its %s with tier %d, want %s with %d", g.task, got, task, tier)
	}
	return s
}

var gangH = Key{Namespace: testNamespace, Name: "h"}

// newGang adds gang "h" of one pod, and begins the cycle of its leader, which it returns.
func newGang(s *story) *corev1.Pod {
	s.t.Helper()
	s.r.SetGroup(wrappers.MakePodGroup("h", testNamespace).UID("group-h").MinMember(1).Obj(), s.now)
	h0 := wrappers.MakePod("h0", testNamespace).UID("h0").Gang("h").Obj()
	s.effects = s.r.SetPod(h0, s.now)
	if ok, why := s.r.MayEnterQueue(h0); !ok {
		s.t.Fatal(why)
	}
	s.r.RecordPopped(h0.UID)
	return h0
}

// A sub-group above the minimum that lost all of its pods is admitted again as a unit, before new gangs, which come
// before surplus that never ran (docs/decisions, G16, G20).
func TestLostUnitsComeBeforeNewGangs(t *testing.T) {
	t.Parallel()
	// The gang needs x. Of y and z, which are surplus, y runs, and loses its pods.
	group := func() *wrappers.PodGroupWrapper {
		return podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2).SubGroup("z", 1)
	}
	runs := func(t *testing.T) *story {
		return begin(t).group(group()).pods(sub("x", "x0")...).pods(sub("y", "y0", "y1")...).shownBound("x0", "y0", "y1").wantAdmittedGroups("x", "y")
	}
	loses := func(t *testing.T) *story {
		return runs(t).deleted("y0", "y1").pods(sub("y", "Y0", "Y1")...)
	}
	for name, tell := range map[string]func(t *testing.T){
		"it lost all pods": func(t *testing.T) {
			loses(t).wantRank(LostUnit, TierRefill).leads("Y0").wantPlan(1).wantPlan(2, "Y0", "Y1")
		},
		"its pods have vanished": func(t *testing.T) {
			runs(t).gone("y0", "y1").pods(sub("y", "Y0", "Y1")...).wantLeader("").after(departure).wantRank(LostUnit, TierRefill)
		},
		"a pod that it had is left: single pods": func(t *testing.T) {
			runs(t).deleted("y0").pods(sub("y", "Y0", "Y1")...).wantRank(Refill, TierRefill).leads("Y0").wantPlan(9, "Y0")
		},
		"one that never ran": func(t *testing.T) {
			runs(t).pods(sub("z", "z0")...).wantRank(SurplusUnit, TierSurplusUnit)
		},
		"beside one that never ran it is planned alone": func(t *testing.T) {
			loses(t).pods(sub("z", "z0")...).wantRank(LostUnit, TierRefill).leads("Y0").wantPlan(1).wantPlan(9, "Y0", "Y1")
		},
		"not enough of its pods exist": func(t *testing.T) {
			runs(t).deleted("y0", "y1").pods(sub("y", "Y0")...).pods(sub("z", "z0")...).wantRank(SurplusUnit, TierSurplusUnit)
		},
		"the minimum has lost its pod, too": func(t *testing.T) {
			loses(t).deleted("x0").wantRank(Minimum, TierNormal)
		},
		"the gang lacks it for its minimum": func(t *testing.T) {
			s := begin(t).group(podGroup().SubGroup("x", 1).SubGroup("y", 2)).pods(sub("x", "x0")...).pods(sub("y", "y0", "y1")...)
			s.shownBound("x0", "y0", "y1").deleted("y0", "y1").pods(sub("y", "Y0", "Y1")...).wantRank(Refill, TierRefill)
		},
		"it is admitted again": func(t *testing.T) {
			loses(t).binds("Y0", "Y0", "Y1").wantAdmittedGroups("x", "y").pods(sub("z", "z0")...).wantRank(SurplusUnit, TierSurplusUnit)
		},
		"it was removed from the tree, and comes back": func(t *testing.T) {
			s := loses(t).group(podGroup().Generation(2).MinSubGroup(1).SubGroup("x", 1)).group(group().Generation(3))
			s.wantRank(SurplusUnit, TierSurplusUnit)
		},
		"the same while its leader is in the queue, which comes after new gangs then": func(t *testing.T) {
			s := loses(t).wantPasses("Y0", true).group(podGroup().Generation(2).MinSubGroup(1).SubGroup("x", 1)).group(group().Generation(3))
			s.wantRank(SurplusUnit, TierSurplusUnit).r.RecordPopped("Y0")
			if work, _ := s.r.BeginAttempt(s.r.members["Y0"].pod); work != nil {
				t.Fatal("it is planned with the rank of a lost sub-group")
			}
			s.requeues("Y0").wantActivated("Y0").wantPasses("Y0", true).leads("Y0").wantTask(SurplusUnit)
		},
		"another PodGroup": func(t *testing.T) {
			s := loses(t)
			s.effects = s.r.RemoveGroup(gangG, s.now)
			s.group(group().UID("another")).wantRank(SurplusUnit, TierSurplusUnit)
		},
		"a sub-group inside it lost its pods before": func(t *testing.T) {
			s := replicas(t, 1).deleted("v1", "w1").deleted("l1").pods(sub("d1-lead", "L1")...).pods(sub("d1-work", "V1", "W1")...)
			s.wantRank(LostUnit, TierRefill).leads("L1").wantPlan(2).wantPlan(3, "L1", "V1", "W1")
		},
		"a new process that finds it without pods": func(t *testing.T) {
			pods := func(s *story) { s.pods(sub("x", "x0")...).shownBound("x0").pods(sub("y", "y0", "y1", "y2")...) }
			processAfter(t, admittedGroup("x", "y"), pods).wantRank(LostUnit, TierRefill)
			processAfter(t, admittedGroup("x"), pods).wantRank(SurplusUnit, TierSurplusUnit)
		},
		"what follows it is tried while it waits": func(t *testing.T) {
			s := loses(t).pods(sub("z", "z0")...).pods(sub("x", "x1")...)
			s.r.opts.SingleSurplusAfter = 2 * time.Second
			s.leads("Y0").refuses().after(time.Second).wantActivated().after(time.Second).wantRank(SurplusUnit, TierSurplusUnit)
			s.leads("Y0").refuses().after(time.Second).wantActivated().after(time.Second).wantRank(SurplusSingle, TierSurplusSingle)
			s.leads("x1").wantPlan(9, "x1").refuses().wakes(gangG).wantRank(LostUnit, TierRefill)
		},
		"only single pods follow it": func(t *testing.T) {
			s := loses(t).pods(sub("x", "x1")...).leads("Y0").refuses().after(time.Millisecond).wantRank(SurplusSingle, TierSurplusSingle)
			s.leads("x1").commits("x1").assumes("x1").arrives("x1").posts("x1").wantRank(LostUnit, TierRefill)
		},
		"a new gang is about to be planned when there may be room for it, after single pods were refused": func(t *testing.T) {
			s := loses(t).pods(sub("x", "x1")...).leads("Y0").refuses().after(time.Millisecond).leads("x1").refuses()
			h0 := newGang(s)
			s.wakes(gangG).wantActivated("Y0").wantRank(LostUnit, TierRefill)
			if !s.r.MustYield(h0, s.now) {
				t.Error("a new gang is planned before the sub-group")
			}
		},
		"a new gang is about to be planned when there may be room for it, before single pods were tried": func(t *testing.T) {
			s := loses(t).pods(sub("x", "x1")...).leads("Y0").refuses().after(time.Millisecond).wantRank(SurplusSingle, TierSurplusSingle)
			h0 := newGang(s)
			s.wakes(gangG).wantActivated("Y0").wantRank(LostUnit, TierRefill)
			if !s.r.MustYield(h0, s.now) {
				t.Error("a new gang is planned before the sub-group")
			}
		},
		"a new gang waits for the same room": func(t *testing.T) {
			room, other := &fakeShape{}, &fakeShape{}
			s := loses(t).pods(sub("x", "x1")...).leads("Y0").refusesFor(Wait{Needs: []Need{{room, 2}}}).after(time.Millisecond)
			s.leads("x1").refusesFor(Wait{Needs: []Need{{other, 1}}})
			h0 := newGang(s)
			if work, why := s.r.BeginAttempt(h0); work == nil {
				t.Fatal(why)
			}
			s.r.RecordGangRefused(gangH, noRoom, Wait{Needs: []Need{{room, 2}}}, s.now)
			room.fits = 2
			s.effects = s.r.RetryWaiting([]Shape{room}, nil, s.now)
			if s.wantRank(LostUnit, TierRefill); s.r.gangs[gangH].phase != Lacking && !s.r.MustYield(h0, s.now) {
				t.Error("a new gang is planned before the sub-group")
			}
		},
		"another plugin keeps a pod of it from the queue for a while": func(t *testing.T) {
			s := loses(t).pods(sub("x", "x1")...).leads("Y0").refuses().after(time.Millisecond).wantRank(SurplusSingle, TierSurplusSingle)
			for _, why := range []string{"quota", ""} {
				s.effects = s.r.SetGates(map[types.UID]string{"Y1": why}, s.now)
			}
			s.wantRank(LostUnit, TierRefill).wantActivated("Y0")
		},
		"room grows all the time": func(t *testing.T) {
			s := loses(t).pods(sub("z", "z0")...)
			s.r.opts.SingleSurplusAfter = 2 * time.Second
			s.leads("Y0").refuses()
			for range 12 {
				if s.leader() == "Y0" && s.r.gangs[gangG].task == SurplusUnit {
					break
				}
				s.r.RecordRoomGrowth()
				s.after(time.Second)
			}
			s.wantRank(SurplusUnit, TierSurplusUnit).leads("Y0").wantTask(SurplusUnit).wantPlan(1, "z0")
		},
		"room that grows is for it first": func(t *testing.T) {
			s := loses(t).pods(sub("z", "z0")...)
			s.r.opts.SingleSurplusAfter = 2 * time.Second
			s.leads("Y0").refuses().after(time.Second).wantActivated()
			s.r.RecordRoomGrowth()
			s.wakes(gangG).wantActivated("Y0").wantRank(LostUnit, TierRefill)
			s.leads("Y0").refuses().after(1500*time.Millisecond).wantActivated().after(time.Second).wantRank(SurplusUnit, TierSurplusUnit)
		},
		"nothing follows it": func(t *testing.T) {
			loses(t).leads("Y0").refuses().after(time.Minute).wantActivated().wakes(gangG).wantActivated("Y0").wantRank(LostUnit, TierRefill)
		},
		"it does not wait for room that grows": func(t *testing.T) {
			s := runs(t)
			s.r.opts.SingleSurplusAfter = 2 * time.Second
			s.r.SetGroup(wrappers.MakePodGroup("h", testNamespace).UID("group-h").MinMember(1).Obj(), s.now)
			s.pods(wrappers.MakePod("h0", testNamespace).UID("h0").Gang("h"))
			refuseMinimum(s, Key{Namespace: testNamespace, Name: "h"})
			s.deleted("y0", "y1").pods(sub("y", "Y0", "Y1")...).leads("Y0").wantTask(LostUnit)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t)
		})
	}
}
