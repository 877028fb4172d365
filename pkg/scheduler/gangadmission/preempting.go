// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/pkg/scheduler/backlog"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// makeRoom decides, after an attempt without a plan, which pods of lower priority end so that the gang can start, or
// confirms such a decision (docs/decisions, G21 to G24). It changes when the attempt is repeated, and leaves the snapshot as
// it was.
func (pl *Admission) makeRoom(ctx context.Context, logger klog.Logger, work *gangs.Work, snapshot *kubescheduler.Snapshot, limit *deadline, a *backlog.Attempt) {
	now := pl.gangs.clock.Now()
	step, next := pl.registry.NextPreemptionStep(work, now)
	if !next.IsZero() && (a.Until.IsZero() || next.Before(a.Until)) {
		a.Until = next
	}
	if step == gangs.PreemptNothing || pl.neverPreempts(work) {
		return
	}
	limit.restart(now)
	var running []*corev1.Pod
	snapshot.VisitPods(func(_ int, pod *corev1.Pod) { running = append(running, pod) })
	budgets := pl.gangs.disruptionBudgets(logger)
	candidates := pl.registry.Candidates(work, gangs.RunningPods{Pods: running, Amount: snapshot.ExtendedAmounts(), Budgets: budgets.of}, step == gangs.PreemptConfirm, now)
	if len(candidates.Workloads) == 0 {
		if candidates.Protected > 0 {
			pl.recordHopeless(work, a, "the pods of lower priority are protected", now)
		}
		return
	}
	result := "hopeless"
	defer func() {
		took := pl.gangs.clock.Since(now)
		a.Took += took
		preemptions.WithLabelValues(result).Inc()
		preemptionDuration.WithLabelValues(result).Observe(took.Seconds())
	}()
	if why := snapshot.WhyFreedRoomIsUnknown(); why != "" {
		pl.recordHopeless(work, a, why, now)
		return
	}
	snapshot.Free(candidates.Ending)
	defer snapshot.Restore(candidates.Ending)
	decision, found := preemption.FindVictims(
		preemption.Input{Problem: work.Required(), Workloads: candidates.Workloads, Allowed: budgets.allowed}, snapshot,
		preemption.Budget{Plan: placement.Budget{Placements: int(pl.args.PlanBudget), Expired: limit.isOver}})
	switch found {
	case preemption.Hopeless:
		pl.recordHopeless(work, a, describeHopeless(candidates), now)
		return
	case preemption.Cut:
		result, a.Cut = "cut", true
		return
	}
	snapshot.Undo(len(decision.Plan))
	for _, v := range decision.Victims {
		snapshot.Restore(v.Pods)
	}
	if len(decision.Victims) == 0 {
		result = "unneeded" // the room of pods that are ending is enough
		return
	}
	result = map[gangs.NextPreemptionStep]string{gangs.PreemptDecide: "decided", gangs.PreemptConfirm: "confirmed"}[step]
	d := gangs.Preempting{ID: string(uuid.NewUUID())[:8], Placements: decision.Plan, Victims: victimsOf(running, candidates, decision)}
	for _, id := range candidates.Ending {
		if slices.ContainsFunc(decision.Plan, func(x placement.Placement) bool { return x.Node == running[id].Spec.NodeName }) {
			d.Awaited = append(d.Awaited, running[id])
		}
	}
	if d.Resource = snapshot.ExtendedResource(); d.Resource != "" {
		d.Amount = decision.Cost.Amount
	}
	logger.V(2).Info("Gang preempts pods of lower priority", "step", result, "victims", len(d.Victims), "workloads", len(decision.Victims),
		"disruptionBudgetsViolated", decision.Cost.Violations, "took", pl.gangs.clock.Since(now))
	pl.gangs.apply(logger, pl.registry.RecordPreemption(work, d, now))
}

// recordHopeless records that preemption would not help the gang for a while.
func (pl *Admission) recordHopeless(work *gangs.Work, a *backlog.Attempt, why string, now time.Time) {
	if until := pl.registry.RecordHopeless(work.Gang, why, now); a.Until.IsZero() || until.Before(a.Until) {
		a.Until = until
	}
}

// neverPreempts reports whether a PriorityClass forbids that the gang preempts: that of its PodGroup, or that of a pod.
func (pl *Admission) neverPreempts(work *gangs.Work) bool {
	if name := work.Group.Spec.PriorityClassName; name != "" {
		class, err := pl.gangs.classes.Get(name)
		if err == nil && class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever {
			return true
		}
	}
	return slices.ContainsFunc(work.Classes, func(pod *corev1.Pod) bool {
		return pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	})
}

// describeHopeless returns why preemption would not help.
func describeHopeless(c gangs.Candidates) string {
	pods := 0
	for i := range c.Workloads {
		pods += len(c.Workloads[i].Pods)
	}
	text := fmt.Sprintf("the gang would not fit without the %s of lower priority either", message.Count(pods, "pod"))
	if c.Protected > 0 {
		text += fmt.Sprintf("; %s of lower priority may not be preempted", message.Count(c.Protected, "more pod"))
	}
	return text
}

// victimsOf returns the pods of a decision.
func victimsOf(running []*corev1.Pod, c gangs.Candidates, d *preemption.Decision) []gangs.Victim {
	var victims []gangs.Victim
	for _, v := range d.Victims {
		w := &c.Workloads[v.Workload]
		for _, id := range v.Pods {
			victims = append(victims, gangs.Victim{
				Pod: running[id], Gang: c.Gangs[v.Workload], Priority: w.Priority, Pods: len(v.Pods), Whole: len(v.Pods) == len(w.Pods),
			})
		}
	}
	return victims
}
