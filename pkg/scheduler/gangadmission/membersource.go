// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// memberSource provides the members of plans from the registry to the scheduling loop.
type memberSource struct{ g *Gangs }

var _ kubescheduler.MemberSource = memberSource{}

func (s memberSource) Next() *corev1.Pod {
	s.g.recordLeading()
	return s.g.registry.NextMember()
}

func (s memberSource) Committing() (plan uint64, priority int32, passable bool) {
	return s.g.registry.CommittingPlan()
}

func (s memberSource) Lost(uid types.UID) {
	s.g.apply(klog.Background(), s.g.registry.AbortPlanOf(uid, gangs.AbortLate, "a member is not in the scheduling queue", s.g.clock.Now()))
}

func (s memberSource) Popped(uid types.UID) {
	s.g.backlog.AttemptBegins()
	s.g.released.beginCycle()
	s.g.registry.RecordPopped(uid)
}

// paceLimit bounds one wait for bindings. Binding a gang of 16 takes some 15 ms.
const paceLimit = 50 * time.Millisecond

// Pace implements kubescheduler.MemberSource. Plans are made much faster than bindings are posted. A member that
// waits for its slot occupies a goroutine and the state of its cycle, some 20 KiB; thousands of them accounted for
// most of the scheduler's memory when a large backlog was scheduled. The loop waits once per plan, so that refused
// leaders are not delayed by a gang that is being bound.
func (s memberSource) Pace() {
	if s.g.committed {
		s.g.committed = false
		s.g.binds.settle(paceLimit)
	}
}

// Explained implements kubescheduler.MemberSource. Of a plan that was aborted, only a member that is the cause is
// reported by the stock scheduler; the log has the reason of every abort.
func (s memberSource) Explained(ctx context.Context, pod *corev1.Pod, err error) bool {
	if kubescheduler.HasNoNodes(err) {
		s.g.refuseWithoutNodes(ctx, pod)
		return true
	}
	return s.g.needsNoReport(pod, err)
}

func (s memberSource) Failed(ctx context.Context, profile kubescheduler.Profile, pod *corev1.Pod, status *fwk.Status) {
	if isReleased, _ := s.g.released.has(pod.UID); isReleased && pod.Spec.NodeName != "" {
		s.g.claims.giveBack(ctx, profile, pod)
	}
	s.g.recordFailedMember(ctx, profile, pod, status)
	s.g.registry.RecordCycleFailed(pod.UID, s.g.clock.Now())
}

func (s memberSource) Requeued(uid types.UID) {
	s.g.released.remove(uid)
	s.g.apply(klog.Background(), s.g.registry.RecordRequeued(uid, s.g.clock.Now()))
}

func (s memberSource) Unwinding() (held, released bool) {
	s.g.apply(klog.Background(), s.g.registry.EndDoomedPlans(s.g.clock.Now()))
	return s.g.registry.IsUnwinding(), s.g.released.any()
}
