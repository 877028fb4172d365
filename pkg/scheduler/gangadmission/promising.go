// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/backfill"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/backlog"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// promiseRoom chooses, after an attempt without a plan, the room that the gang is promised, if it is to be promised
// some (docs/decisions, G25). The time counts as that of the attempt.
func (pl *Admission) promiseRoom(logger klog.Logger, work *gangs.Work, snapshot *kubescheduler.Snapshot, limit *deadline, a *backlog.Attempt) {
	now := pl.gangs.clock.Now()
	if snapshot.WhyFreedRoomIsUnknown() != "" {
		return
	}
	s := pl.registry.BeginPromise(work, snapshot, now)
	if s == nil {
		return
	}
	limit.restart(now, s.Cuts)
	snapshot.AskForLater()
	promise, keep := backfill.Revise(work.Required(), snapshot, s.Held, s.Pods, now, placement.Budget{Placements: int(pl.args.PlanBudget), Expired: limit.isOver})
	took := pl.gangs.clock.Since(now)
	a.Took += took
	if promise != nil {
		logger.V(2).Info("Room is reserved for the gang", "pods", len(promise.Plan), "behind", len(promise.Behind), "starts", promise.Starts, "took", took)
	}
	pl.gangs.apply(logger, pl.registry.RecordPromise(work, s, promise, keep, now))
}
