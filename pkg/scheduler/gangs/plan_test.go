// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/marks"
)

// TestPlanLife covers the events between the commit of a plan and its last binding.
func TestPlanLife(t *testing.T) {
	// Three pods wait for their gang of three, and the cycle of a has begun.
	planned := func(t *testing.T) *story {
		return begin(t).group(podGroup().MinMember(3)).members("a", "b", "c").leads("a")
	}
	next := func(s *story) string {
		if p := s.r.NextMember(); p != nil {
			return p.Name
		}
		return ""
	}
	for name, tell := range map[string]func(t *testing.T, s *story){
		"members are handed out one after another, then the barrier opens with the last that arrives": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a")
			for _, want := range []string{"b", "c", ""} {
				if got := next(s); got != want {
					t.Fatalf("Next() = %q, want %q", got, want)
				}
				if want != "" {
					s.assumes(want)
				}
			}
			s.arrives("b", "c").wantOpen(false)
			s.arrives("a").wantOpen(true)
			s.posts("a", "b").wantAdmitted(false)
			s.posts("c").wantAdmitted(true).wantQuiet()
		},
		"a leader that is not in the plan has all of it handed out": func(t *testing.T, s *story) {
			s.members("d").commits("b", "c", "a")
			for _, want := range []string{"b", "c", "a", ""} {
				if got := next(s); got != want {
					t.Fatalf("Next() = %q, want %q", got, want)
				}
				if want != "" {
					s.assumes(want)
				}
			}
		},
		"a member that was handed out and not assumed ends the plan": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a")
			_ = next(s) // b, whose failed cycle is not reported
			if got := next(s); got != "" {
				t.Fatalf("Next() = %q, want none", got)
			}
			s.wantAborted(true)
			s.releases("a").wantQuiet()
		},
		"a member whose cycle ends with an error ends the plan, and the gang says why": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a")
			_ = next(s)
			s.effects = s.r.AbortUnplaced("b", "no answer", s.now)
			s.wantAborted(true)
			if diff := cmp.Diff([]Key{gangG}, s.effects.Dirty); diff != "" {
				t.Errorf("status to be written (-want +got):\n%s", diff)
			}
			s.releases("a").wantQuiet()
			if f, _ := s.r.Facts(gangG); f.Failure != notPlaced+": no answer" {
				t.Errorf("failure %q", f.Failure)
			}
			if got := next(s); got != "" {
				t.Errorf("Next() = %q, want none", got)
			}
		},
		"so does the leader, whose cycle made the plan, and is not handed out again": func(t *testing.T, s *story) {
			s.commits("a", "b", "c")
			s.effects = s.r.AbortUnplaced("a", "no answer", s.now)
			s.wantAborted(true).wantQuiet()
			if got := next(s); got != "" {
				t.Errorf("Next() = %q, want none", got)
			}
			if diff := cmp.Diff([]Key{gangG}, s.effects.Dirty); diff != "" {
				t.Errorf("status to be written (-want +got):\n%s", diff)
			}
			s.wantLeader("").after(minBackoff).wantLeader("a")
		},
		"an error of a pod that is in no plan, or got further, ends none": func(t *testing.T, s *story) {
			s.r.AbortUnplaced("a", "no answer", s.now)
			s.commits("a", "b", "c").assumes("a").r.AbortUnplaced("a", "no answer", s.now)
			if got := next(s); got != "b" {
				t.Fatalf("Next() = %q, want b", got)
			}
			s.r.RecordMemberRefused("b", "node n refused it", true, s.now)
			s.r.AbortUnplaced("b", "no answer", s.now)
			if got := next(s); got != "" { // the node of c has refused b
				t.Fatalf("Next() = %q, want none", got)
			}
			s.wantAborted(false) // when the doomed plan ends
		},
		"after an abort the next leader waits for the back-off": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a")
			s.r.AbortPlanOf("b", AbortRefused, "node n refused", s.now)
			s.releases("a").wantQuiet().wantLeader("")
			s.after(minBackoff - time.Millisecond).wantLeader("")
			s.after(time.Millisecond).wantLeader("a")
		},
		"a plan whose member's cycle failed unseen is not made again before the back-off": func(t *testing.T, s *story) {
			s.commits("a", "b", "c")
			_, _ = next(s), next(s)
			s.wantAborted(true).wantQuiet()
			s.after(time.Millisecond).wantLeader("")
			s.after(minBackoff).wantLeader("a")
		},
		"a member assumed elsewhere than planned is refused": func(t *testing.T, s *story) {
			s.commits("a", "b", "c")
			if err := s.r.AssumeMember("a", "other", s.now); err == nil {
				t.Fatal("assumed on another node than the planned one")
			}
		},
		"nothing is planned on bound pods that vanished, until it is known what became of them": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b", "c").arrives("a", "b", "c").posts("a", "b", "c").wantAdmitted(true)
			s.members("d", "e").wantLeader("d")
			s.gone("a", "b", "c").wantLeader("").wantAdmitted(true)
			s.after(departure - time.Millisecond).wantLeader("").wantAdmitted(true)
			s.after(time.Millisecond).wantLeader("").wantAdmitted(false) // d and e form a new gang, which lacks a pod
			s.members("f").leads("d")
			if s.work.Task != Minimum {
				t.Fatalf("the task is %s, want %s", s.work.Task, Minimum)
			}
		},
		"a pod that failed is removed immediately": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b", "c").arrives("a", "b", "c").posts("a", "b", "c").wantAdmitted(true)
			s.gone("a").members("d").wantLeader("")
			s.effects = s.r.RemoveFailedPod("a", s.now)
			s.wantAdmitted(true).leads("d")
			if s.work.Task != Refill {
				t.Fatalf("the task is %s, want %s", s.work.Task, Refill)
			}
		},
		"a member deleted before the barrier opens ends the plan": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b", "c").arrives("a", "b")
			s.pods(memberPod("b").Terminating()).wantAborted(true)
			s.releases("a", "b", "c").wantQuiet().wantLeader("")
			s.gone("b")
		},
		"a member deleted after the barrier opened ends nothing": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b", "c").arrives("a", "b", "c")
			s.pods(memberPod("b").Terminating()).wantAborted(false)
			s.posts("a", "c").releases("b").wantQuiet().wantAdmitted(false)
		},
		"an assumed member that vanishes is waited for": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b", "c").gone("b").wantAborted(true)
			s.releases("a", "c")
			if !s.r.IsUnwinding() {
				t.Fatal("b's reservation has not been given back")
			}
			s.releases("b").wantQuiet()
		},
		"no plan while another gang's is being committed": func(t *testing.T, s *story) {
			other := memberPod("x").Gang("h")
			s.pods(other).r.SetGroup(podGroup().Obj(), s.now)
			s.commits("a", "b", "c")
			h := s.r.members["x"].gang
			s.r.SetGroup(func() *v2alpha2.PodGroup { g := podGroup().MinMember(1).Obj(); g.Name = "h"; return g }(), s.now)
			if h.leader != "x" {
				t.Fatalf("leader of h is %q", h.leader)
			}
			s.r.MayEnterQueue(other.Obj())
			if work, _ := s.r.BeginAttempt(other.Obj()); work != nil {
				t.Fatal("two plans at the same time")
			}
			if s.after(wakeInterval); !cmp.Equal(s.activated(), []string{"x"}) {
				t.Fatalf("activated %v, want x again", s.activated())
			}
		},
		"a leader whose plan is stale is woken again": func(t *testing.T, s *story) {
			s.pods(memberPod("c").Label("size", "large"))
			s.group(podGroup().MinMember(2).Generation(2)) // while the plan is being made
			if plan, _ := s.tryCommit("a", "b", "c"); plan != nil {
				t.Fatal("committed a plan for another tree")
			}
			s.after(wakeInterval)
			if got := s.activated(); !cmp.Equal(got, []string{"a"}) {
				t.Fatalf("activated %v, want the leader a", got)
			}
		},
		"a plan is stale if the PodGroup was deleted and made again, whatever its generation": func(t *testing.T, s *story) {
			s.r.RemoveGroup(gangG, s.now)
			s.group(podGroup().UID("another").MinMember(2))
			if plan, _ := s.tryCommit("a", "b", "c"); plan != nil {
				t.Fatal("committed a plan for another PodGroup")
			}
		},
		"a PodGroup edited while its refused plan was made is tried again": func(t *testing.T, s *story) {
			s.group(podGroup().MinMember(2).Generation(2)) // while the plan is being made
			s.r.RecordGangRefused(gangG, podgroup.Refusal{Reason: v2alpha2.ReasonFragmented}, Wait{}, s.now)
			s.after(retryInterval)
			if got := s.activated(); !cmp.Equal(got, []string{"a"}) {
				t.Fatalf("activated %v, want the leader a", got)
			}
		},
		"a node that came while a plan was made is not overlooked": func(t *testing.T, s *story) {
			s.refusesFor(Wait{Missed: true}) // while the plan is being made
			s.after(wakeInterval)
			if got := s.activated(); !cmp.Equal(got, []string{"a"}) {
				t.Fatalf("activated %v, want the leader a", got)
			}
		},
		"a binding reported failed that was posted: the pod is bound, not planned again": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b", "c").arrives("a", "b", "c").posts("a", "b").releases("c").wantQuiet()
			s.shownBound("a", "b", "c").wantAdmitted(true).wantQuiet().wantLeader("")
		},
		"a member found bound in the middle of its plan ends the plan, and stays bound": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b").shownBound("b").wantAborted(true)
			s.releases("b")
			if got := s.r.members["b"].state; got != count.Bound {
				t.Fatalf("b is %d, want bound", got)
			}
			s.releases("a").wantQuiet()
			s.after(maxBackoff).leads("a").commits("a", "c").assumes("a", "c").arrives("a", "c").wantOpen(true)
		},
		"a member found bound before it is assumed is not assumed": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a").shownBound("b")
			if err := s.r.AssumeMember("b", "n", s.now); err == nil {
				t.Fatal("assumed a bound pod")
			}
			s.releases("b", "a").wantQuiet()
			if got := s.r.members["b"].state; got != count.Bound {
				t.Fatalf("b is %d, want bound", got)
			}
		},
		"a pod bound outside the plan that the plan counted on is gone: nothing is bound": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b", "c").arrives("a", "b", "c").posts("a").releases("b", "c").shownBound("a")
			s.after(maxBackoff).leads("b").commits("b", "c").assumes("b", "c")
			s.pods(memberPod("a").Node("n").Terminating()).gone("a")
			s.arrives("b", "c").wantOpen(false).wantAborted(true)
			s.releases("b", "c").wantQuiet()
		},
		"a PodGroup edited while its plan is bound: the plan ends by the old tree, and the gang is admitted": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b").group(podGroup().MinMember(4).Generation(2)).wantAborted(false)
			s.assumes("c").arrives("a", "b", "c").wantOpen(true).posts("a", "b", "c").wantQuiet().wantAdmitted(true)
			s.members("d").leads("d").commits("d").assumes("d").arrives("d").wantOpen(true)
		},
		"a PodGroup deleted while its plan is bound: the plan ends by the old tree": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b").r.RemoveGroup(gangG, s.now)
			s.assumes("c").arrives("a", "b", "c").wantOpen(true).posts("a", "b", "c").wantQuiet()
		},
		"a PodGroup deleted and made again while its plan is bound ends the plan": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b", "c").arrives("a", "b").r.RemoveGroup(gangG, s.now)
			s.group(podGroup().UID("another").MinMember(4)).arrives("c").wantOpen(false).wantAborted(true)
			if s.releases("a", "b", "c").wantQuiet(); s.plan.reason != "the PodGroup was deleted, and made again" {
				t.Errorf("reason %q", s.plan.reason)
			}
		},
		"a gang is forgotten when its PodGroup and pods go while the last binding is posted": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b", "c").arrives("a", "b", "c")
			s.r.RemoveGroup(gangG, s.now)
			s.gone("a", "b", "c").posts("a", "b", "c").wantQuiet()
			if keys := s.r.Keys(); len(keys) != 0 {
				t.Fatalf("gangs %v are left", keys)
			}
		},
		"a member whose annotation changed while it was assumed goes to its new gang when it is given back": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b").pods(memberPod("b").Gang("h"))
			s.r.AbortPlanOf("c", AbortRefused, "node n refused", s.now)
			s.releases("a", "b").wantQuiet()
			if got := s.r.members["b"].gang.key.Name; got != "h" {
				t.Fatalf("b belongs to gang %s, want h", got)
			}
		},
		"a partially bound plan is followed by an immediate attempt, then by a pause, whichever of its members ended last": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b", "c").arrives("a", "b", "c").posts("a").releases("b").posts("c").wantQuiet()
			s.leads("b").commits("b").assumes("b").arrives("b").releases("b").wantQuiet().wantLeader("")
			s.after(2*minBackoff - time.Millisecond).wantLeader("")
			s.after(time.Millisecond).wantLeader("b")
		},
		"labels changed while a member was assumed divide its class in the next attempt": func(t *testing.T, s *story) {
			s.commits("a", "b", "c").assumes("a", "b").pods(memberPod("b").Label("zone", "x"))
			s.r.AbortPlanOf("c", AbortRefused, "node n refused", s.now)
			s.releases("a", "b").after(maxBackoff).leads("a")
			s.work.Reclass(func(pods []*corev1.Pod, classes []int) (of []int, first []*corev1.Pod) {
				seen := map[string]int{}
				for i, pod := range pods {
					if classes[i] != 0 {
						t.Errorf("pod %s is of class %d, want 0", pod.Name, classes[i])
					}
					zone := pod.Labels["zone"]
					if _, ok := seen[zone]; !ok {
						seen[zone] = len(first)
						first = append(first, pod)
					}
					of = append(of, seen[zone])
				}
				return of, first
			})
			got := map[string]int{}
			for _, p := range s.work.Problem.Pods[""] {
				got[s.work.Pods[p.Index].Name] = p.Class
			}
			if len(s.work.Classes) != 2 || got["a"] != got["c"] || got["a"] == got["b"] {
				t.Errorf("%d classes, by pod %v", len(s.work.Classes), got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, planned(t))
		})
	}
}

// Failures during an outage of the API server are retried as soon as it answers again.
func TestBackOffEndsWithAnOutage(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b")
	for range 6 { // the back-off grows to several seconds
		s.leads("a").commits("a", "b").assumes("a", "b").arrives("a", "b")
		s.r.RecordUnanswered(gangG)
		s.releases("a", "b").wantQuiet().wantLeader("").after(time.Millisecond).wantLeader("")
		s.now = s.r.gangs[gangG].notBefore
		s.after(0)
	}
	s.leads("a").commits("a", "b").assumes("a", "b").arrives("a", "b").releases("a", "b").wantLeader("")
	if key, ok := s.r.AwaitsAnswer(); !ok || key != gangG {
		t.Errorf("awaits an answer: %v %t, want of %v", key, ok, gangG)
	}
	s.effects = s.r.RecordServerAnswers(true, s.now)
	if s.wantLeader("a"); !cmp.Equal(s.activated(), []string{"a"}) {
		t.Errorf("activated %v, want the leader a", s.activated())
	}
	if _, ok := s.r.AwaitsAnswer(); ok {
		t.Error("awaits an answer still")
	}
	// Later failures start with the shortest pause again.
	s.leads("a").commits("a", "b").assumes("a", "b").arrives("a", "b").releases("a", "b").wantLeader("")
	s.after(minBackoff).wantLeader("a")

	// A single unanswered request is not an outage.
	s.leads("a").commits("a", "b").assumes("a", "b").arrives("a", "b")
	s.r.RecordUnanswered(gangG)
	s.releases("a", "b").wantLeader("")
	s.effects = s.r.RecordServerAnswers(false, s.now)
	s.wantLeader("")
	if _, ok := s.r.AwaitsAnswer(); ok {
		t.Error("awaits an answer still")
	}
}

func TestAbortsAreCountedByCause(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fails func(s *story)
		want  []AbortCause
	}{
		"bound as planned": {func(s *story) {
			s.assumes("a", "b").arrives("a", "b").posts("a", "b")
		}, nil},
		"a binding that fails is no abort": {func(s *story) {
			s.assumes("a", "b").arrives("a", "b").posts("a").releases("b")
		}, nil},
		"a node refused a member": {func(s *story) {
			s.assumes("a").r.AbortPlanOf("b", AbortRefused, "node n refused", s.now)
			s.releases("a")
		}, []AbortCause{AbortRefused}},
		"a member's cycle failed without a report": {func(s *story) {
			s.assumes("a")
			_, _ = s.r.NextMember(), s.r.NextMember()
		}, []AbortCause{AbortRefused}},
		"a volume cannot be provisioned":   {func(s *story) { s.assumes("a", "b").releases("a", "b") }, []AbortCause{AbortUnprepared}},
		"no member for a while":            {func(s *story) { s.assumes("a").after(commitTimeout + 1) }, []AbortCause{AbortLate}},
		"a member is deleted":              {func(s *story) { s.assumes("a").gone("b") }, []AbortCause{AbortChanged}},
		"another scheduler binds a member": {func(s *story) { s.assumes("a").shownBound("b") }, []AbortCause{AbortChanged}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(podGroup().MinMember(2)).members("a", "b").leads("a").commits("a", "b")
			var got []AbortCause
			s.r.opts.Aborted = func(_ Key, cause AbortCause, _ string) { got = append(got, cause) }
			tc.fails(s)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanWithoutProgressIsAborted(t *testing.T) {
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b").leads("a").commits("a", "b").assumes("a")
	s.after(commitTimeout).wantAborted(false)
	s.after(time.Millisecond).wantAborted(true)
	s.releases("a").wantQuiet()
}

func TestArriveReturnsWhenThePlanIsDecided(t *testing.T) {
	arrive := func(s *story, ctx context.Context, timeout time.Duration, name string) chan error {
		done := make(chan error, 1)
		go func() { done <- s.r.WaitAtBarrier(ctx, types.UID(name), timeout) }()
		return done
	}
	// Each case runs in its own synctest bubble, whose clock advances when all goroutines wait.
	run := func(t *testing.T, name string, test func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, test)
		})
	}
	pair := func(t *testing.T) *story {
		return begin(t).group(podGroup().MinMember(2)).members("a", "b").leads("a").commits("a", "b").assumes("a", "b")
	}
	run(t, "all arrived", func(t *testing.T) {
		s := pair(t)
		a := arrive(s, context.Background(), time.Minute, "a")
		synctest.Wait() // until it waits at the barrier
		if err := <-arrive(s, context.Background(), time.Minute, "b"); err != nil {
			t.Errorf("b: %v", err)
		}
		if err := <-a; err != nil {
			t.Errorf("a: %v", err)
		}
	})
	run(t, "aborted", func(t *testing.T) {
		s := pair(t)
		a := arrive(s, context.Background(), time.Minute, "a")
		synctest.Wait() // until it waits at the barrier
		s.r.AbortPlanOf("b", AbortChanged, "b was deleted", s.now)
		if err := <-a; err == nil || !strings.Contains(err.Error(), "b was deleted") {
			t.Errorf("a: %v", err)
		}
		if err := <-arrive(s, context.Background(), time.Minute, "b"); err == nil {
			t.Error("b passes a barrier whose plan was aborted")
		}
		s.releases("a", "b").wantQuiet()
	})
	run(t, "out of time", func(t *testing.T) {
		s := pair(t)
		if err := <-arrive(s, context.Background(), time.Millisecond, "a"); err == nil {
			t.Error("a passes")
		}
		if err := <-arrive(s, context.Background(), time.Minute, "b"); err == nil {
			t.Error("b passes a barrier that a left")
		}
		// a has left the barrier. If each of thousands that have were looked for whenever one is released, this would
		// take minutes.
		if s.releases("a"); !slices.Equal(s.effects.Cancel, []types.UID{"b"}) {
			t.Errorf("cancelled: %v, want b, which may still be prepared", s.effects.Cancel)
		}
		s.releases("b").wantQuiet()
	})
	// Only one of them reports it: an error that says that the plan was aborted is not told.
	run(t, "out of time at the same moment", func(t *testing.T) {
		for range 50 {
			s := begin(t).group(podGroup().MinMember(4)).members("a", "b", "c", "d").leads("a").commits("a", "b", "c", "d").assumes("a", "b", "c", "d")
			var waiting []chan error
			for _, name := range []string{"a", "b", "c"} {
				waiting = append(waiting, arrive(s, context.Background(), time.Second, name))
			}
			var told []string
			for _, done := range waiting {
				if err := <-done; err == nil || !strings.Contains(err.Error(), PlanAborted) {
					told = append(told, fmt.Sprint(err))
				}
			}
			if len(told) != 1 || !strings.HasSuffix(told[0], "ready to be bound: d") {
				t.Fatalf("told: %q, want once that d is late", told)
			}
		}
	})
	run(t, "scheduler ends", func(t *testing.T) {
		s := pair(t)
		ctx, cancel := context.WithCancel(context.Background())
		a := arrive(s, ctx, time.Minute, "a")
		synctest.Wait() // until it waits at the barrier
		cancel()
		if err := <-a; err == nil {
			t.Error("a passes")
		}
		s.releases("a").wantAborted(true)
	})
	// A member at the barrier when it opens proceeds, or the gang would be partially bound. This includes a member
	// whose own timeout ends at that moment.
	run(t, "out of time at the moment when it opens", func(t *testing.T) {
		for range 200 {
			s := pair(t)
			const timeout = time.Second
			a := arrive(s, context.Background(), timeout, "a")
			time.Sleep(timeout)
			b := arrive(s, context.Background(), time.Minute, "b")
			errA, errB := <-a, <-b
			if (errA == nil) != (errB == nil) {
				t.Fatalf("a: %v, b: %v: one passes, the other does not", errA, errB)
			}
		}
	})
}

// A binding reads its index in the plan while informers deliver events of the plan's pods.
func TestPlaceInAPlanWhosePodsChange(t *testing.T) {
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b").leads("a").commits("a", "b").assumes("a", "b")
	told := make(chan struct{})
	go func() {
		defer close(told)
		for range 100 {
			s.pods(memberPod("a"), memberPod("b"))
		}
	}()
	for range 100 {
		if a, b := s.plan.Index("a"), s.plan.Index("b"); a != 0 || b != 1 {
			t.Errorf("the places are %d and %d, want 0 and 1", a, b)
		}
	}
	<-told
}

func TestMarkNamesGroupSizeAndMembers(t *testing.T) {
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b").leads("a").commits("a", "b")
	got, ok := testKeys.VerifyMark("a", s.r.SignedMark(s.plan, "a"))
	want := marks.Mark{GroupUID: "group", PodCount: 2, TagSum: marks.PodTag("a") + marks.PodTag("b"), Generation: 1, Sequence: 1, NeverWhole: true, NextTags: []uint64{marks.PodTag("b")}}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("verified: %t (-want +got):\n%s", ok, diff)
	}
}

// TestAPlanFailsOnce: a plan that is aborted while members are assumed is one failure, however it ended; events end the
// pauses after the first few.
func TestAPlanFailsOnce(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(s *story){
		"a node refused a member":                  func(s *story) { s.r.AbortPlanOf("b", AbortRefused, "node n refused", s.now) },
		"a member's cycle failed without a report": func(s *story) { _, _ = s.r.NextMember(), s.r.NextMember() },
		"no member for a while":                    func(s *story) { s.after(commitTimeout + 1) },
		"a volume cannot be provisioned":           func(s *story) { s.assumes("b").releases("b") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(podGroup().MinMember(2)).members("a", "b").leads("a").commits("a", "b").assumes("a")
			fails(s)
			s.releases("a")
			if f, _ := s.r.Facts(gangG); f.Failures != 1 {
				t.Errorf("%d failures, want one", f.Failures)
			}
			s.after(minBackoff).wantLeader("a")
		})
	}
}

// Facts have the cause of the last plan that failed, whether it was aborted or a binding was refused, and since when
// plans fail.
func TestFactsHaveTheCauseOfTheLastFailure(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b")
	first := s.now
	want := func(failures int, cause string) {
		t.Helper()
		f, _ := s.r.Facts(gangG)
		if f.Failures != failures || f.Failure != cause || failures > 0 && !f.FailingSince.Equal(first) || failures == 0 && !f.FailingSince.IsZero() {
			t.Errorf("%d failures since %v, the last %q; want %d since %v, %q", f.Failures, f.FailingSince, f.Failure, failures, first, cause)
		}
	}
	want(0, "")
	s.leads("a").commits("a", "b").assumes("a", "b").arrives("a", "b")
	s.r.RecordBindingFailed("a", "binding pod a: refused")
	s.r.RecordBindingFailed("b", "binding pod b: refused")
	s.releases("a", "b")
	want(1, "binding pod a: refused")

	s.after(minBackoff).leads("a").commits("a", "b").assumes("a", "b")
	s.effects = s.r.AbortPlanOf("a", AbortLate, "a member is late", s.now)
	s.releases("a", "b")
	want(2, "a member is late")

	s.after(maxBackoff).leads("a").commits("a", "b").assumes("a", "b")
	s.r.PermitMember("a")
	s.effects, _, _ = s.r.ReleaseUnexplained("a", s.now)
	s.effects = s.r.RecordReason("a", "node n does not prepare pod a: no volume", false, s.now)
	s.after(prepareLimit).releases("b")
	want(3, "node n does not prepare pod a: no volume")

	s.after(maxBackoff).leads("a").commits("a", "b").assumes("a", "b").arrives("a", "b").posts("a", "b")
	want(0, "")
}
