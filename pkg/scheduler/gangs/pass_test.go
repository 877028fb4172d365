// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/test/wrappers"
)

var gangU = Key{Namespace: testNamespace, Name: "u"}

// urgent returns a builder of a pod of gang "u", whose priority is higher than that of gang "g".
func urgent(name string) *wrappers.PodWrapper {
	return wrappers.MakePod(name, testNamespace).UID(name).Gang("u").GPUs(1).Priority(1)
}

// passing begins a story in which a is assumed by the plan of a, b and c of gang g, and the leader u of gang u, of u
// and v, is queued.
func passing(t *testing.T, edit func(*wrappers.PodWrapper) *wrappers.PodWrapper) *story {
	s := begin(t).group(podGroup().MinMember(3)).members("a", "b", "c").leads("a").commits("a", "b", "c").assumes("a")
	s.group(wrappers.MakePodGroup("u", testNamespace).UID("u").Generation(1).MinMember(2)).pods(edit(urgent("u")), edit(urgent("v")))
	if ok, why := s.r.MayEnterQueue(s.r.members["u"].pod); !ok {
		t.Fatalf("the leader does not enter the queue: %s", why)
	}
	return s
}

func unchanged(w *wrappers.PodWrapper) *wrappers.PodWrapper { return w }

// tries begins the cycle of the leader of gang u, and reports whether it plans.
func (s *story) tries() bool {
	s.r.RecordPopped("u")
	s.work, _ = s.r.BeginAttempt(s.r.members["u"].pod)
	return s.work != nil
}

// commitsUrgent commits a plan for u and v on node n.
func (s *story) commitsUrgent() *story {
	s.t.Helper()
	if !s.tries() || !s.work.Passes() {
		s.t.Fatal("the urgent gang does not pass")
	}
	plan, why := s.r.CommitPlan(s.work, []placement.Placement{placementOf(s.work, "u", "n"), placementOf(s.work, "v", "n")}, s.now)
	if plan == nil {
		s.t.Fatalf("plan refused: %s", why)
	}
	return s
}

// handedOut hands out members until none is left, each of which is assumed, and returns them.
func (s *story) handedOut() (names []string) {
	s.t.Helper()
	for pod := s.r.NextMember(); pod != nil; pod = s.r.NextMember() {
		names = append(names, pod.Name)
		s.assumes(pod.Name)
	}
	return names
}

// requeues ends a failed cycle.
func (s *story) requeues(name types.UID) *story {
	s.r.RecordCycleFailed(name, s.now)
	s.effects = s.r.RecordRequeued(name, s.now)
	return s
}

// promised returns the members whose room is promised on node n, and whether the plan being committed passes another
// one.
func (s *story) promised() (names []string, passes bool) {
	pods, _ := s.r.PromisedPods("n")
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	_, _, _, passes = s.r.CommittingPlan()
	return names, passes
}

// TestGangPassesAPlan covers the events between the plan of a gang that passes another one and the end of both.
func TestGangPassesAPlan(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(t *testing.T, s *story){
		"it is handed out first, then the other one is continued": func(t *testing.T, s *story) {
			names, passes := s.commitsUrgent().promised()
			if diff := cmp.Diff([]string{"u", "v", "b", "c"}, names); diff != "" || !passes {
				t.Errorf("promised beside the plan that passes: %t (-want +got):\n%s", passes, diff)
			}
			s.assumes("u")
			if diff := cmp.Diff([]string{"v", "b", "c"}, s.handedOut()); diff != "" {
				t.Errorf("handed out (-want +got):\n%s", diff)
			}
			s.arrives("u", "v", "a", "b", "c").wantOpen(true)
		},
		"it is aborted": func(t *testing.T, s *story) {
			s.commitsUrgent().r.AbortPlanOf("v", AbortLate, "late", s.now)
			if names, passes := s.promised(); !cmp.Equal(names, []string{"b", "c"}) || passes {
				t.Errorf("promised %v, passes %t", names, passes)
			}
			if diff := cmp.Diff([]string{"b", "c"}, s.handedOut()); diff != "" {
				t.Errorf("handed out (-want +got):\n%s", diff)
			}
		},
		"a member of it was not assumed": func(t *testing.T, s *story) {
			_ = s.commitsUrgent().assumes("u").r.NextMember() // v, whose failed cycle is not reported
			if diff := cmp.Diff([]string{"b", "c"}, s.handedOut()); diff != "" {
				t.Errorf("handed out (-want +got):\n%s", diff)
			}
		},
		"the other one is aborted": func(t *testing.T, s *story) {
			s.commitsUrgent().r.AbortPlanOf("b", AbortLate, "late", s.now)
			if names, passes := s.promised(); !cmp.Equal(names, []string{"u", "v"}) || passes {
				t.Errorf("promised %v, passes %t", names, passes)
			}
			if diff := cmp.Diff([]string{"u", "v"}, s.handedOut()); diff != "" {
				t.Errorf("handed out (-want +got):\n%s", diff)
			}
		},
		"it takes longer than a member of the other one may": func(t *testing.T, s *story) {
			s.commitsUrgent().assumes("u").after(commitTimeout * 3 / 4)
			s.assumes("v").after(commitTimeout * 3 / 4).wantAborted(false)
			s.after(commitTimeout).wantAborted(true)
		},
		"the other one is doomed meanwhile: it is aborted, and its other nodes are not tried": func(t *testing.T, s *story) {
			s.commitsUrgent()
			s.r.ReleaseUnexplained("a", s.now)
			s.r.RecordReason("a", "no volume", true, s.now)
			s.after(prepareLimit / 2).wantAborted(false).after(prepareLimit / 2).wantAborted(true)
			if diff := cmp.Diff([]string{"u", "v"}, s.handedOut()); diff != "" {
				t.Errorf("handed out (-want +got):\n%s", diff)
			}
		},
		"the other one is doomed while it plans": func(t *testing.T, s *story) {
			if !s.tries() {
				t.Fatal("it does not plan")
			}
			s.r.ReleaseUnexplained("a", s.now)
			if plan, _ := s.tryCommit("u", "v"); plan != nil {
				t.Error("it passes a plan that is doomed")
			}
			s.requeues("u").wantActivated("u") // not only later by Tick
		},
		"the other one ends meanwhile: its own members have no more time": func(t *testing.T, s *story) {
			s.commitsUrgent().after(commitTimeout / 2)
			s.r.AbortPlanOf("b", AbortLate, "late", s.now)
			s.after(commitTimeout)
			if names, _ := s.promised(); len(names) > 0 {
				t.Errorf("promised %v, want none: it is aborted", names)
			}
		},
		"it finds no plan, and is woken again": func(t *testing.T, s *story) {
			if !s.tries() {
				t.Fatal("it does not plan")
			}
			s.effects = s.r.DropAttempt(s.work, s.now)
			if diff := cmp.Diff([]Key{gangU}, s.effects.Dirty); diff != "" {
				t.Errorf("status to be written (-want +got):\n%s", diff)
			}
			if f, _ := s.r.Facts(gangU); !f.WaitsForPlan || f.Refused.Reason != "" {
				t.Errorf("waits for the plan: %t, refused: %q", f.WaitsForPlan, f.Refused.Reason)
			}
			s.requeues("u").wantActivated("u")
			if g := s.r.gangs[gangU]; g.phase != Elected || !g.refusedAt.IsZero() {
				t.Errorf("phase %s, refused at %s", g.phase, g.refusedAt)
			}
			if diff := cmp.Diff([]string{"b", "c"}, s.handedOut()); diff != "" {
				t.Errorf("handed out (-want +got):\n%s", diff)
			}
		},
		"it is dropped: it waits for the plan no longer than for its end": func(t *testing.T, s *story) {
			if !s.tries() {
				t.Fatal("it does not plan")
			}
			s.effects = s.r.DropAttempt(s.work, s.now)
			s.requeues("u").handedOut()
			if f, _ := s.r.Facts(gangU); f.WaitsForPlan {
				t.Error("it waits for a plan that is handed out")
			}
		},
		"it is dropped: beside this plan it is not tried again, and no gang waits for it": func(t *testing.T, s *story) {
			g := s.r.gangs[gangU]
			g.retried = true // an event woke it
			s.r.reindex(g)
			if !s.tries() {
				t.Fatal("it does not plan")
			}
			s.effects = s.r.DropAttempt(s.work, s.now)
			s.after(time.Millisecond).group(wrappers.MakePodGroup("w", testNamespace).UID("w").Generation(1).MinMember(1))
			s.pods(wrappers.MakePod("w", testNamespace).UID("w").Gang("w").GPUs(1).Priority(1))
			pod := s.r.members["w"].pod
			if s.r.MustYield(pod, s.now) {
				t.Error("a younger gang must let it go first")
			}
			s.r.RecordPopped("w")
			if s.work, _ = s.r.BeginAttempt(pod); s.work == nil {
				t.Fatal("the younger gang does not plan")
			}
			s.commits("w").assumes("w")
			if s.r.MayPass("u") {
				t.Error("it passes the plan that is continued, beside which it did not fit")
			}
			if diff := cmp.Diff([]string{"b", "c"}, s.handedOut()); diff != "" {
				t.Errorf("handed out (-want +got):\n%s", diff)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, passing(t, unchanged))
		})
	}
}

// Attempts of gangs that were refused before, and may fail again, have 5 % of the time beside plans.
func TestRefusedGangsPassWithinTheirShare(t *testing.T) {
	t.Parallel()
	const took = 300 * time.Millisecond
	s := begin(t).group(wrappers.MakePodGroup("u", testNamespace).UID("u").Generation(1).MinMember(2)).pods(urgent("u"), urgent("v"))
	if !s.tries() {
		t.Fatal("the gang is not planned")
	}
	s.effects = s.r.RecordGangRefused(gangU, noRoom, Wait{Topics: []Topic{gangU}, Took: took}, s.now)
	s.group(podGroup().MinMember(3)).members("a", "b", "c").leads("a").commits("a", "b", "c").assumes("a").wakes(gangU).wantActivated("u")
	if !s.tries() {
		t.Fatal("the gang does not pass")
	}
	s.effects = s.r.DropAttempt(s.work, s.now)
	s.r.gangs[gangU].dropped = 0 // as beside another plan
	if s.requeues("u").after(repeatShare * took / 2); s.r.MayPass("u") {
		t.Error("it passes although such attempts have used up their share")
	}
	if s.after(repeatShare * took / 2); !s.r.MayPass("u") {
		t.Error("it does not pass")
	}
}

func TestWhichGangMayPass(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit    func(*wrappers.PodWrapper) *wrappers.PodWrapper
		doomed  bool
		surplus bool
		passes  bool // MayPass, BeginAttempt
	}{
		"higher priority":               {edit: unchanged, passes: true},
		"equal priority":                {edit: func(w *wrappers.PodWrapper) *wrappers.PodWrapper { return w.Priority(0) }},
		"surplus":                       {edit: unchanged, surplus: true}, // a minimum that was dropped goes first
		"the plan is doomed":            {edit: unchanged, doomed: true},
		"its pods depend on each other": {edit: func(w *wrappers.PodWrapper) *wrappers.PodWrapper { return w.TogetherWith("zone", "app", "u") }},
		"its pods need devices": {edit: func(w *wrappers.PodWrapper) *wrappers.PodWrapper {
			return w.Spec(func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := passing(t, tc.edit)
			if tc.surplus {
				s.r.gangs[gangU].task = SurplusUnit
			}
			if tc.doomed {
				s.r.ReleaseUnexplained("a", s.now)
			}
			if may := s.r.MayPass("u"); may != tc.passes {
				t.Errorf("MayPass: %t, want %t", may, tc.passes)
			}
			for _, other := range []types.UID{"v", "b", "nobody"} {
				if s.r.MayPass(other) {
					t.Errorf("%s may pass", other)
				}
			}
			if got := s.tries(); got != tc.passes {
				t.Errorf("plans: %t, want %t", got, tc.passes)
			}
			if g := s.r.gangs[gangU]; !tc.passes && g.phase != Elected {
				t.Errorf("phase %s, want Elected: woken again", g.phase)
			}
		})
	}
}
