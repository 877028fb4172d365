// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/test/wrappers"
)

// fakePlan is the MemberSource of turns: a plan of so many members.
type fakePlan struct {
	MemberSource
	id       uint64
	priority int32
	left     int
}

func (p *fakePlan) Committing() (uint64, int32, bool) {
	if p.left == 0 {
		return 0, 0, false
	}
	return p.id, p.priority, true
}

type turnsScene struct {
	*queueScene
	plan  *fakePlan
	turns *turns
}

func newTurnsScene(t *testing.T, members int) *turnsScene {
	s := &turnsScene{queueScene: newQueueScene(t), plan: &fakePlan{id: 1, left: members}}
	s.turns = &turns{clock: s.clock, queue: s.q, members: s.plan, held: func(pod *corev1.Pod) bool { return pod.Name == "held" }}
	return s
}

// cycles runs n cycles of a millisecond each, and returns the names of the other pods in their order, and how many
// members went before each.
func (s *turnsScene) cycles(n int) (order []string) {
	members := 0
	for range n {
		if info := s.turns.nextBetween(klog.Background()); info != nil {
			order = append(order, fmt.Sprintf("%s after %d", info.Pod.Name, members))
		} else if s.plan.left > 0 {
			s.plan.left--
			members++
		}
		s.clock.Step(time.Millisecond)
	}
	return order
}

func passer(name string) *wrappers.PodWrapper { return wrappers.MakePod(name, "ml").UID(name) }

func gates(spec *corev1.PodSpec) { spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }

func withClaim(spec *corev1.PodSpec) {
	spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
}

func TestPodsOfEqualOrHigherPriorityPassAPlan(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 1000)
	s.plan.priority = 10
	if got := s.cycles(20); len(got) != 0 {
		t.Fatalf("%v passed without having waited", got)
	}
	s.add(passer("z-equal").Priority(10).Obj(), passer("a-lower").Priority(9).Obj(), passer("y-higher").Priority(11).Obj(),
		wrappers.MakePod("leader", "ml").UID("leader").Gang("g").Priority(100).Obj(), passer("apart").Priority(10).ApartFrom("zone", "app", "x").Obj(),
		passer("claims").Priority(10).Spec(withClaim).Obj(),
		passer("joins").Priority(10).Obj(), passer("leaves").Priority(10).Gang("g").Obj(), passer("held").Priority(10).Obj(), passer("gated").Priority(10).Spec(gates).Obj(), passer("ungated").Priority(10).Spec(gates).Obj())
	s.activate(wrappers.MakePod("leader", "ml").UID("leader").Gang("g").Priority(100).Obj())
	s.q.Update(t.Context(), passer("joins").Priority(10).Obj(), passer("joins").Priority(10).Gang("g").Obj())
	s.q.Update(t.Context(), passer("leaves").Priority(10).Gang("g").Obj(), passer("leaves").Priority(10).Obj())
	s.q.Update(t.Context(), passer("ungated").Priority(10).Spec(gates).Obj(), passer("ungated").Priority(10).Obj())
	if diff := gocmp.Diff([]string{"y-higher after 30", "z-equal after 30", "ungated after 30", "leaves after 30"}, s.cycles(980)); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
	if p := s.q.pods["z-equal"]; p == nil || !p.cycling {
		t.Error("the queue does not know of the cycle")
	}
}

func TestPodsThatPassTakeAThirdOfTheTime(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 1000)
	for i := range 2000 {
		s.add(passer(fmt.Sprintf("p%04d", i)).Obj())
	}
	passed := s.cycles(1500)
	if s.plan.left > 10 || len(passed) < 450 || len(passed) > 510 {
		t.Errorf("in 1,500 cycles %d pods passed and %d of 1,000 members are left, want about 500 and none", len(passed), s.plan.left)
	}
	for i, p := range passed {
		if want := fmt.Sprintf("p%04d after", i); !strings.HasPrefix(p, want) {
			t.Fatalf("pod %d: %s, want %s: the order of the queue", i, p, want)
		}
	}
}

// The cycle of a pod that passes may take longer than its turn, since it takes the members' rooms into account.
func TestSlowCyclesDoNotHoldUpThePlan(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 2000)
	for i := range 100 {
		s.add(passer(fmt.Sprintf("p%02d", i)).Obj())
	}
	began := s.clock.Now()
	for s.plan.left > 0 {
		if s.turns.nextBetween(klog.Background()) != nil {
			s.clock.Step(200 * time.Millisecond)
		} else {
			s.plan.left--
			s.clock.Step(time.Millisecond)
		}
	}
	if took := s.clock.Since(began); took > 3100*time.Millisecond {
		t.Errorf("a plan of two seconds took %s", took)
	}
}

// A small plan is handed out at a stroke, and each begins with the members' turn.
func TestSmallPlansAreNotInterrupted(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 0)
	for id := range uint64(20) {
		s.add(passer(fmt.Sprintf("p%d", id)).Obj())
		s.plan.id, s.plan.left = id+1, 40
		if got := s.cycles(40); len(got) != 0 {
			t.Fatalf("plan %d: %v passed", id, got)
		}
	}
}

// A pod that was refused while it passed is tried again when the plan has ended, not before.
func TestRefusedPodIsTriedAgainAfterThePlan(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 100)
	pod := passer("p").Obj()
	s.add(pod)
	s.cycles(50)
	info := s.turns.nextBetween(klog.Background())
	if info == nil {
		t.Fatal("the pod does not pass")
	}
	info.UnschedulablePlugins.Insert("X")
	if err := s.q.AddUnschedulablePodIfNotPresent(klog.Background(), info, s.q.SchedulingCycle()); err != nil {
		t.Fatal(err)
	}
	if got := s.cycles(40); len(got) != 0 || s.plan.left == 0 {
		t.Fatalf("%v: it was tried twice", got)
	}
	if got := s.pop(); got.Pod.Name != "p" {
		t.Errorf("after the plan %s is popped", got.Pod.Name)
	}
}
