// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

func ownedSub(leaf string, names ...string) (out []*wrappers.PodWrapper) {
	for _, p := range sub(leaf, names...) {
		out = append(out, p.Controller("Job", leaf, leaf))
	}
	return out
}

// shownMarked delivers the informer's event of pods that the plan of the story bound.
func (s *story) shownMarked(names ...string) *story {
	for _, n := range names {
		pod := s.r.members[types.UID(n)].pod.DeepCopy()
		pod.Spec.NodeName = "n"
		pod.Annotations[v2alpha2.BoundForAnnotation] = s.r.SignedMark(s.plan, pod.UID)
		s.effects = s.r.SetPod(pod, s.now)
	}
	return s
}

// tears executes a plan of which the API server refuses the last member.
func (s *story) tears(leader string, names ...string) *story {
	s.t.Helper()
	last := len(names) - 1
	return s.leads(leader).commits(names...).assumes(names...).arrives(names...).posts(names[:last]...).shownMarked(names[:last]...).releases(names[last])
}

// repairs calls PodsToRelease every second, like package release, and returns the names of the pods that the last call
// returned.
func (s *story) repairs(seconds int) []string {
	var names []string
	for range seconds {
		s.after(time.Second)
		names = nil
		_, any := s.r.NeedsRelease()
		for _, p := range s.r.PodsToRelease(time.Second, any) {
			if any {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

func (s *story) wantReleased(seconds int, want ...string) *story {
	s.t.Helper()
	if diff := cmp.Diff(want, s.repairs(seconds), cmpopts.EquateEmpty()); diff != "" {
		s.t.Fatalf("released after %d s (-want +got):\n%s", seconds, diff)
	}
	return s
}

// torn is a gang whose minimum, sub-group x, is bound. Of sub-group y, which is above the minimum, two of three pods
// are bound, and the binding of y2 was refused.
func torn(t *testing.T) *story {
	t.Helper()
	s := begin(t).group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 3).SubGroup("z", 2))
	s.pods(ownedSub("x", "x0")...).leads("x0").commits("x0").assumes("x0").arrives("x0").posts("x0").shownMarked("x0").wantAdmitted(true)
	return s.pods(ownedSub("y", "y0", "y1", "y2")...).tears("y0", "y0", "y1", "y2").wantAdmittedGroups("x")
}

// triesAgain lets the waiting pod of y be refused again.
func (s *story) triesAgain() *story {
	s.t.Helper()
	return s.after(maxBackoff).tears("y2", "y2")
}

// A unit of surplus that was bound only in part is given back as a unit. Source: docs/decisions, G20.
func TestATornUnitIsReleased(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(t *testing.T, s *story){
		"after the repair time, and it starts again as a unit": func(t *testing.T, s *story) {
			s.wantReleased(29).wantReleased(1, "y0", "y1").wantReleased(1, "y0", "y1") // until their deletion is observed
			s.deleted("y0", "y1").wantReleased(60)
			s.pods(ownedSub("y", "y3", "y4")...).leads("y2").wantTask(SurplusUnit).wantPlan(2).wantPlan(3, "y2", "y3", "y4")
		},
		"what waits is tried for the repair time": func(t *testing.T, s *story) {
			s.wantReleased(10).triesAgain().wantReleased(1).triesAgain().wantReleased(18).wantReleased(1, "y0", "y1")
		},
		"not while a plan is in force, and no other plan begins when the time is over": func(t *testing.T, s *story) {
			s.after(maxBackoff).leads("y2").commits("y2").assumes("y2").arrives("y2").wantReleased(60)
			s.releases("y2").after(maxBackoff).wantLeader("").wantReleased(1).wantLeader("").wantReleased(1, "y0", "y1")
		},
		"not if it is completed in time": func(t *testing.T, s *story) {
			s.wantReleased(29).leads("y2").commits("y2").assumes("y2").arrives("y2").posts("y2").wantAdmittedGroups("x", "y")
			s.deleted("y1").wantReleased(60)
		},
		"not if it had its minimum for a moment": func(t *testing.T, s *story) {
			s.after(maxBackoff).leads("y2").commits("y2").assumes("y2").arrives("y2").posts("y2").shownMarked("y2").deleted("y2").wantReleased(60)
		},
		"a second after the last attempt, of which the answer may be lost": func(t *testing.T, s *story) {
			s.wantReleased(29).triesAgain().wantReleased(1).shownMarked("y2").wantReleased(60)
		},
		"not if a refused binding was accepted in truth": func(t *testing.T, s *story) {
			s.wantReleased(29).shownMarked("y2").wantReleased(60).wantAdmittedGroups("x", "y")
		},
		"not if the waiting pod is gone: its binding may have been accepted": func(t *testing.T, s *story) {
			s.gone("y2").pods(ownedSub("y", "y3")...).wantReleased(60)
		},
		"if a bound pod is gone too": func(t *testing.T, s *story) {
			s.deleted("y1").wantReleased(29).wantReleased(1, "y0")
		},
		"not if a pod was lost and replaced: there were three bound pods at some time": func(t *testing.T, s *story) {
			s.deleted("y1").pods(ownedSub("y", "y3")...).after(maxBackoff)
			leader := s.leader()
			s.tears(leader, "y3", "y2").wantReleased(60)
		},
		"not if another scheduler bound a pod of it": func(t *testing.T, s *story) {
			s.pods(memberPod("other").SubGroup("y").SchedulerName("other").Node("n")).deleted("other").wantReleased(60)
		},
		"not if a pod of another sub-group was moved to it": func(t *testing.T, s *story) {
			pod := s.r.members["x0"].pod.DeepCopy()
			pod.Labels[v2alpha2.SubGroupLabel] = "y"
			s.r.SetPod(pod, s.now)
			s.wantReleased(60)
		},
		"not if a pod that may complete it was moved away": func(t *testing.T, s *story) {
			pod := s.r.members["y2"].pod.DeepCopy()
			pod.Labels[v2alpha2.SubGroupLabel], pod.Spec.NodeName = "x", "n"
			s.r.SetPod(pod, s.now)
			s.wantReleased(60)
		},
		"not if the PodGroup was edited, so that it is required": func(t *testing.T, s *story) {
			s.group(podGroup().Generation(2).MinSubGroup(2).SubGroup("x", 1).SubGroup("y", 3)).wantReleased(60)
		},
		"not if it had its minimum by another tree for a moment": func(t *testing.T, s *story) {
			s.group(podGroup().Generation(2).MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2)).wantAdmittedGroups("x", "y")
			s.group(podGroup().Generation(3).MinSubGroup(1).SubGroup("x", 1))
			s.group(podGroup().Generation(4).MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 3)).wantReleased(60)
		},
		"not while the gang lacks its minimum, which the unit may complete": func(t *testing.T, s *story) {
			s.wantReleased(29).deleted("x0").wantReleased(60)
			s.pods(ownedSub("x", "x1")...).after(time.Second)
			leader := s.leader()
			s.leads(leader).wantTask(Refill).commits("x1").assumes("x1").arrives("x1").posts("x1").shownMarked("x1").wantReleased(29).wantReleased(1, "y0", "y1")
		},
		"not if the PodGroup was edited, so that it was no sub-group for a moment": func(t *testing.T, s *story) {
			s.group(podGroup().Generation(2).MinSubGroup(1).SubGroup("x", 1).SubGroup("z", 1))
			s.group(podGroup().Generation(3).MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 3).SubGroup("z", 1)).wantReleased(60)
		},
		"and a plan that was begun before depends on the released pods, so it is refused": func(t *testing.T, s *story) {
			s.after(maxBackoff).leads("y2").wantPlan(9, "y2").wantReleased(30, "y0", "y1")
			if plan, _ := s.tryCommit("y2"); plan != nil {
				t.Error("a plan of one pod is in force, though the others are being deleted")
			}
		},
		"not while it is unknown what became of a pod of the minimum": func(t *testing.T, s *story) {
			s.wantReleased(29).gone("x0").wantReleased(1).wantReleased(60)
		},
		"without a pod that was moved to another sub-group": func(t *testing.T, s *story) {
			pod := s.r.members["y0"].pod.DeepCopy()
			pod.Labels[v2alpha2.SubGroupLabel] = "x"
			s.r.SetPod(pod, s.now)
			s.wantReleased(30, "y1")
		},
		"two units, each for itself": func(t *testing.T, s *story) {
			s.wantReleased(10).pods(ownedSub("z", "z0", "z1")...).gone("y2").after(maxBackoff).tears("z0", "z0", "z1")
			s.pods(ownedSub("y", "y9")...).wantReleased(29).wantReleased(1, "z0")
		},
		"the pods of a second unit have their own time": func(t *testing.T, s *story) {
			s.wantReleased(10)
			s.r.gangs[gangG].members["y2"].gate = "is gated by a test" // so that the other unit is tried
			s.r.gangs[gangG].members["y2"].recount()
			s.pods(ownedSub("z", "z0", "z1")...).after(maxBackoff).tears("z0", "z0", "z1")
			s.wantReleased(19).wantReleased(1, "y0", "y1").deleted("y0", "y1").wantReleased(9).wantReleased(1, "z0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, torn(t))
		})
	}
}

// Pods that are in the sub-group for another reason may have completed it when nobody looked.
func TestATornUnitWithOtherPodsIsKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stranger func(s *story)
		want     []string
	}{
		"of another scheduler": {stranger: func(s *story) {
			s.pods(memberPod("other").SubGroup("y").SchedulerName("other").Node("n")).deleted("other")
		}},
		"of another sub-group": {stranger: func(s *story) {
			pod := s.r.members["x1"].pod.DeepCopy()
			pod.Labels[v2alpha2.SubGroupLabel] = "y"
			s.r.SetPod(pod, s.now)
		}},
		"none": {stranger: func(*story) {}, want: []string{"y0", "y1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 4)).pods(ownedSub("x", "x0", "x1")...).shownBound("x0", "x1")
			s.pods(ownedSub("y", "y0", "y1", "y2", "y3")...).leads("y0").commits("y0", "y1", "y2", "y3").assumes("y0", "y1", "y2", "y3").
				arrives("y0", "y1", "y2", "y3").posts("y0", "y1").shownMarked("y0", "y1").releases("y2", "y3").wantReleased(10)
			tc.stranger(s)
			s.wantReleased(19).wantReleased(1, tc.want...).wantAdmittedGroups("x")
		})
	}
}

// The repair time begins when the first plan is over. A unit that was bound needs no repair.
func TestTheRepairTimeOfAUnitBeginsAfterItsFirstPlan(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *story {
		s := begin(t).group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 3)).pods(ownedSub("x", "x0")...).binds("x0", "x0")
		return s.pods(ownedSub("y", "y0", "y1", "y2")...).leads("y0").commits("y0", "y1", "y2").assumes("y0", "y1", "y2").
			arrives("y0", "y1", "y2").posts("y0", "y1").shownMarked("y0", "y1")
	}
	nothing := func(t *testing.T, s *story) {
		t.Helper()
		if _, any := s.r.NeedsRelease(); any {
			t.Error("there is something to repair")
		}
	}
	t.Run("a slow binding fails", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		nothing(t, s)
		s.wantReleased(60).releases("y2").wantReleased(29).wantReleased(1, "y0", "y1")
	})
	t.Run("a slow binding succeeds", func(t *testing.T) {
		t.Parallel()
		s := start(t).wantReleased(60).posts("y2").wantAdmittedGroups("x", "y")
		nothing(t, s)
		if s.r.index.partials.Len() > 0 {
			t.Error("the gang is checked every second")
		}
	})
}

// The pods that the API server binds are the only ones whose mark proves it.
func TestOnlyMarkedPodsOfATornUnitAreReleased(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *story {
		s := begin(t).group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 3))
		return s.pods(ownedSub("x", "x0")...).binds("x0", "x0").wantAdmitted(true)
	}
	t.Run("a pod whose annotation was removed stays", func(t *testing.T) {
		t.Parallel()
		s := start(t).pods(ownedSub("y", "y0", "y1", "y2")...).tears("y0", "y0", "y1", "y2")
		pod := s.r.members["y0"].pod.DeepCopy()
		delete(pod.Annotations, v2alpha2.BoundForAnnotation)
		s.r.SetPod(pod, s.now)
		s.wantReleased(30, "y1")
	})
	t.Run("without a key nothing is released", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		s.r.SetKeys(nil, s.now)
		s.pods(ownedSub("y", "y0", "y1", "y2")...).tears("y0", "y0", "y1", "y2").wantReleased(60)
	})
	t.Run("bare pods are returned once, kept, and tried again without limit", func(t *testing.T) {
		t.Parallel()
		s := start(t).pods(sub("y", "y0", "y1", "y2")...).tears("y0", "y0", "y1", "y2").wantReleased(30, "y0", "y1")
		if _, any := s.r.NeedsRelease(); any {
			t.Error("there is something to do for bare pods")
		}
		s.after(maxBackoff).leads("y2").wantTask(Refill).wantPlan(9, "y2")
	})
	t.Run("a pause in which nothing was observed counts as five seconds", func(t *testing.T) {
		t.Parallel()
		s := start(t).pods(ownedSub("y", "y0", "y1", "y2")...).tears("y0", "y0", "y1", "y2")
		s.r.PodsToRelease(time.Hour, true)
		s.wantReleased(24).wantReleased(1, "y0", "y1")
	})
	t.Run("nor while the API server does not answer", func(t *testing.T) {
		t.Parallel()
		s := start(t).pods(ownedSub("y", "y0", "y1", "y2")...).tears("y0", "y0", "y1", "y2")
		for range 60 {
			if got := s.r.PodsToRelease(time.Second, false); len(got) > 0 {
				t.Fatalf("released %d pods", len(got))
			}
		}
	})
}

// A sub-group that was begun because the gang lacked its minimum is not surplus, and stays when others complete the
// minimum.
func TestATornSubGroupOfTheMinimumIsKept(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinSubGroup(2).SubGroup("x", 1).SubGroup("y", 3).SubGroup("z", 1)).
		pods(ownedSub("x", "x0")...).pods(ownedSub("z", "z0")...).shownBound("x0", "z0").wantAdmitted(true).deleted("z0")
	s.pods(ownedSub("y", "y0", "y1", "y2")...).tears("y0", "y0", "y1", "y2").wantReleased(60)
	s.pods(ownedSub("z", "z1")...).shownBound("z1").wantAdmittedGroups("x", "z").wantReleased(60)
}

// A unit with sub-groups of its own is given back with all of them, even if one of these has its minimum.
func TestATornReplicaIsReleasedAsAWhole(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinSubGroup(1).SubGroup("x", 1).Inner("", "d", 2).SubGroupOf("d", "lead", 1).SubGroupOf("d", "work", 2))
	s.pods(ownedSub("x", "x0")...).binds("x0", "x0").wantAdmitted(true)
	s.pods(ownedSub("lead", "l")...).pods(ownedSub("work", "v", "w")...)
	leader := s.leader()
	s.tears(leader, "l", "v", "w").wantAdmittedGroups("x").wantReleased(29).wantReleased(1, "l", "v")
}

// After a restart nothing proves that the sub-group never had its minimum. Only a release that was recorded goes on.
func TestATornUnitAfterARestart(t *testing.T) {
	t.Parallel()
	before := torn(t)
	recorded := false
	restart := func() *Registry {
		group := podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 3).SubGroup("z", 2).
			Condition(v2alpha2.ConditionAdmitted, "True", v2alpha2.ReasonAdmitted, "")
		r := afterRestart(group)
		for _, m := range before.r.gangs[gangG].members {
			pod := m.pod.DeepCopy()
			if pod.Name == "y1" && recorded {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: v2alpha2.PodReasonPartialGangReleased}}
			}
			r.SetPod(pod, before.now)
		}
		return r
	}
	after := &story{t: t, r: restart(), now: before.now}
	after.wantReleased(60)
	recorded = true
	after = &story{t: t, r: restart(), now: before.now}
	after.wantReleased(1, "y1")
	if names := after.repairs(60); !slices.Equal(names, []string{"y1"}) {
		t.Errorf("released %v, want y1 alone", names)
	}
}

// tornHistory is the past of a gang with surplus units, some pods of which the API server never binds.
type tornHistory struct {
	*story
	rng        *rand.Rand
	serial     int
	tree       *wrappers.PodGroupWrapper
	generation int64

	// the API server
	pods     map[types.UID]*corev1.Pod
	rejected map[types.UID]bool
	ran      map[types.UID]bool // bound together with the minimum of all groups above the pod
	leaving  map[types.UID]bool // the registry has decided to release it

	events, failures []func() // of two informers, not delivered yet
	flight           []types.UID
	released         int
}

var tornLeaves = map[string]int{"x": 1, "y": 2, "z": 3, "u": 1, "v": 2}

func newTornHistory(t *testing.T, rng *rand.Rand) *tornHistory {
	h := &tornHistory{story: begin(t), rng: rng, pods: map[types.UID]*corev1.Pod{}, rejected: map[types.UID]bool{}, ran: map[types.UID]bool{}, leaving: map[types.UID]bool{}}
	h.edit(3)
	for range 12 {
		h.create(30)
	}
	return h
}

func (h *tornHistory) edit(z int32) {
	h.generation++
	h.tree = podGroup().Generation(h.generation).MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2).SubGroup("z", z).
		Inner("", "d", 2).SubGroupOf("d", "u", 1).SubGroupOf("d", "v", 2)
	group := h.tree.Obj()
	h.events = append(h.events, func() { h.r.SetGroup(group, h.now) })
	h.note()
}

// create creates the pods that the leaves lack. The API server never binds the given share of the surplus, in percent.
func (h *tornHistory) create(bad int) {
	have := map[string]int{}
	for _, p := range h.pods {
		have[p.Labels[v2alpha2.SubGroupLabel]]++
	}
	for _, leaf := range slices.Sorted(maps.Keys(tornLeaves)) {
		if have[leaf] >= tornLeaves[leaf] {
			continue
		}
		h.serial++
		pod := ownedSub(leaf, fmt.Sprint(leaf, h.serial))[0].Obj()
		h.pods[pod.UID] = pod
		h.rejected[pod.UID] = leaf != "x" && h.rng.IntN(100) < bad
		h.show(pod)
		return
	}
}

func (h *tornHistory) show(pod *corev1.Pod) {
	h.events = append(h.events, func() { h.r.SetPod(pod, h.now) })
}

// note records which pods run.
func (h *tornHistory) note() {
	tree, err := podgroup.Tree(&h.tree.Obj().Spec)
	if err != nil {
		panic(err)
	}
	bound := gang.Counts{}
	for uid, p := range h.pods {
		if p.Spec.NodeName != "" && !h.leaving[uid] {
			bound[p.Labels[v2alpha2.SubGroupLabel]]++
		}
	}
	for uid, p := range h.pods {
		whole := p.Spec.NodeName != "" && !h.leaving[uid]
		for group := tree.Group(p.Labels[v2alpha2.SubGroupLabel]); group != nil; group = group.Parent() {
			whole = whole && group.Satisfied(bound)
		}
		h.ran[uid] = h.ran[uid] || whole
	}
}

func (h *tornHistory) attempt() {
	g := h.r.gangs[gangG]
	if g == nil || g.leader == "" || len(h.flight) > 0 {
		return
	}
	pod := g.members[g.leader].pod
	if ok, _ := h.r.MayEnterQueue(pod); !ok {
		return
	}
	h.r.RecordPopped(pod.UID)
	work, _ := h.r.BeginAttempt(pod)
	if work == nil {
		return
	}
	if placements := simulatedPlan(work, &room{left: 100}); len(placements) > 0 {
		if h.plan, _ = h.r.CommitPlan(work, placements, h.now); h.plan != nil {
			for i := range h.plan.members {
				uid := h.plan.members[i].member.pod.UID
				if h.r.AssumeMember(uid, "n", h.now) == nil {
					h.flight = append(h.flight, uid)
				}
			}
			for _, uid := range h.flight {
				if _, err := h.r.recordArrival(uid); err != nil {
					break
				}
			}
		}
		return
	}
	h.r.RecordGangRefused(gangG, podgroup.Refusal{Reason: v2alpha2.ReasonFragmented}, Wait{}, h.now)
}

// bind ends the binding of one member. lost: the answer may be lost.
func (h *tornHistory) bind(lost bool) {
	if len(h.flight) == 0 {
		return
	}
	uid := h.flight[0]
	h.flight = h.flight[1:]
	old := h.pods[uid]
	if !h.plan.open || old == nil || old.Spec.NodeName != "" || h.rejected[uid] {
		h.r.ReleaseMember(uid, h.now)
		return
	}
	pod := old.DeepCopy()
	pod.Spec.NodeName = "n"
	pod.Annotations[v2alpha2.BoundForAnnotation] = h.r.SignedMark(h.plan, uid)
	h.pods[uid] = pod
	h.show(pod)
	h.note()
	if lost && h.rng.IntN(100) < 15 {
		h.r.ReleaseMember(uid, h.now)
		return
	}
	h.r.RecordPosted(uid, h.now)
}

// remove deletes a pod, or lets it fail, which another informer reports.
func (h *tornHistory) remove(uid types.UID, fails bool) {
	pod := h.pods[uid]
	delete(h.pods, uid)
	if fails {
		h.events = append(h.events, func() { h.r.RemovePod(uid, h.now) })
		h.failures = append(h.failures, func() { h.r.RemoveFailedPod(uid, h.now) })
		return
	}
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = wrappers.MakePod("p", "ns").Terminating().Obj().DeletionTimestamp
	h.show(pod)
	h.events = append(h.events, func() { h.r.RemovePod(uid, h.now) })
}

// deliver delivers events: n, or all.
func (h *tornHistory) deliver(n int) {
	for ; n != 0 && len(h.events)+len(h.failures) > 0; n-- {
		queue := &h.events
		if len(h.events) == 0 || len(h.failures) > 0 && h.rng.IntN(2) == 0 {
			queue = &h.failures
		}
		event := (*queue)[0]
		*queue = (*queue)[1:]
		event()
	}
}

// second is a second in the life of package release, in which informers catch up.
func (h *tornHistory) second() {
	h.t.Helper()
	h.deliver(-1)
	h.after(time.Second)
	for _, pod := range h.r.PodsToRelease(time.Second, true) {
		if h.ran[pod.UID] {
			h.t.Fatalf("%s is released, and it has run", pod.UID)
		}
		h.leaving[pod.UID] = true
		if h.pods[pod.UID] != nil {
			h.released++
			h.remove(pod.UID, false)
		}
	}
}

// Only units that never had their minimum are released, whatever happens to pods, bindings and the tree.
func TestTornUnitsRandomly(t *testing.T) {
	t.Parallel()
	released, ran := 0, 0
	for seed := range 1500 {
		h := newTornHistory(t, rand.New(rand.NewPCG(uint64(seed), 3)))
		faults := 10 * (seed % 3) // 0: only rejected bindings
		for range 400 {
			switch n := h.rng.IntN(100); {
			case n < 25:
				h.deliver(1 + h.rng.IntN(3))
			case n < 40:
				h.attempt()
			case n < 70:
				h.bind(faults > 0)
			case n < 80:
				h.create(30)
			case n < 84 && h.rng.IntN(300) < faults:
				uids := slices.Sorted(maps.Keys(h.pods))
				uid := uids[h.rng.IntN(len(uids))]
				h.remove(uid, h.pods[uid].Spec.NodeName != "" && h.rng.IntN(2) == 0)
			case n < 85 && h.rng.IntN(200) < faults:
				h.edit(1 + h.rng.Int32N(3))
			case n >= 85:
				h.second()
			}
		}
		released += h.released
		for _, is := range h.ran {
			if is {
				ran++
			}
		}
		if faults > 0 {
			continue
		}
		for range 45 {
			for range len(h.flight) {
				h.bind(false)
			}
			h.second()
		}
		h.deliver(-1)
		for _, group := range h.r.gangs[gangG].numbers.Bound.Partial() {
			if g := h.r.gangs[gangG]; g.admitted {
				t.Fatalf("seed %d: %s is still bound in part", seed, group.Name())
			}
		}
	}
	t.Logf("%d pods were released, %d ran", released, ran)
	if released < 1000 || ran < 1000 {
		t.Errorf("%d pods were released, %d ran: too few", released, ran)
	}
}
