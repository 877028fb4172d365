// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

// The room of members that wait for their cycles is promised to them, and no other. Each class is counted once.
func TestRoomOfMembers(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(4)).members("a", "b", "c").pods(memberPod("d").GPUs(3)).leads("a")
	counted := 0
	s.r.opts.Amount = func(pod *corev1.Pod) reservations.Amount {
		counted++
		gpus := pod.Spec.Containers[0].Resources.Requests[wrappers.GPUResource]
		return reservations.Amount{Pods: 1, Resources: map[corev1.ResourceName]int64{wrappers.GPUResource: gpus.Value()}}
	}
	check := func(when string, wantPlan uint64, pods, gpus int64) {
		t.Helper()
		if plan, _, passable := s.r.CommittingPlan(); plan != wantPlan || passable != (plan > 0) {
			t.Errorf("%s plan %d is committed, passable %t, want %d", when, plan, passable, wantPlan)
		}
		got := s.r.RoomOfMembers("n")
		if got.Pods != pods || got.Resources[wrappers.GPUResource] != gpus {
			t.Errorf("%s promised %+v, want %d pods and %d GPUs", when, got, pods, gpus)
		}
		if got = s.r.RoomOfMembers("other"); !got.IsEmpty() {
			t.Errorf("%s promised on another node: %+v", when, got)
		}
	}
	check("before the plan", 0, 0, 0)
	s.commits("a", "b", "c", "d")
	check("at first", 1, 4, 6)
	s.assumes("a")
	check("beside the assumed leader", 1, 3, 5)
	s.assumes("b")
	check("then", 1, 2, 4)
	s.assumes("d")
	check("at last", 1, 1, 1)
	s.effects = s.r.AbortPlanOf("c", AbortLate, "late", s.now)
	check("after an abort", 0, 0, 0)
	if counted != 2 {
		t.Errorf("counted %d times what a pod uses, want once for each of 2 classes", counted)
	}
}

func TestPlanThatTakesMoreThanRoomIsNotPassable(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).members("a", "b").leads("a")
	s.work.TakesMoreThanRoom = true
	s.commits("a", "b")
	if _, _, passable := s.r.CommittingPlan(); passable {
		t.Error("it is passable")
	}
}

// While a plan is handed out, no leader plans: it is woken again when its cycle has ended.
func TestNoGangPassesAPlan(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(3)).members("a", "b", "c").leads("a").commits("a", "b", "c").assumes("a")
	s.group(wrappers.MakePodGroup("u", testNamespace).UID("u").Generation(1).MinMember(1))
	s.pods(wrappers.MakePod("u", testNamespace).UID("u").Gang("u").GPUs(1).Priority(1))
	s.r.RecordPopped("u")
	if work, why := s.r.BeginAttempt(s.r.members["u"].pod); work != nil {
		t.Errorf("planned beside another plan: %s", why)
	}
	s.requeues("u").wantActivated("u")
	if diff := cmp.Diff(Elected, s.r.gangs[Key{Namespace: testNamespace, Name: "u"}].phase); diff != "" {
		t.Errorf("phase (-want +got):\n%s", diff)
	}
}

// requeues ends a failed cycle.
func (s *story) requeues(name types.UID) *story {
	s.r.RecordCycleFailed(name, s.now)
	s.effects = s.r.RecordRequeued(name, s.now)
	return s
}
