// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/scheduler/evict"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/report"
)

// evictionRunner carries out the evictions that the registry has decided.
type evictionRunner struct {
	ctx     context.Context //nolint:containedctx // of the process: evictions that have begun go on without a caller
	evictor *evict.Evictor
	running chan struct{} // contains a value for each preemption that is carried out
}

// parallelPreemptions bounds the preemptions that are carried out at the same time.
const parallelPreemptions = 8

// carryOut marks and evicts the victims of preemptions.
func (g *Gangs) carryOut(logger klog.Logger, e gangs.Effects) {
	for _, p := range e.Mark {
		go func() {
			err := g.markVictims(p)
			if err != nil {
				logger.Error(err, "Failed to mark the pods that are preempted; none of them is evicted", "preemptor", p.Preemptor())
			}
			g.apply(logger, g.registry.RecordMarked(p, err, g.clock.Now()))
		}()
	}
	for _, p := range e.Unmark {
		go g.unmarkVictims(logger, p, p.Victims)
	}
	for _, p := range e.Evict {
		go func() {
			left := g.evictVictims(logger, p)
			g.apply(logger, g.registry.RecordEvicted(p, left, g.clock.Now()))
		}()
	}
}

// markVictims marks the victims of a preemption, unless it has ended.
func (g *Gangs) markVictims(p *evictions.Eviction) (err error) {
	g.evictions.run(func(ctx context.Context) {
		until, prepares := g.registry.PreparingUntil(p)
		if !prepares {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, until.Sub(g.clock.Now()))
		defer cancel()
		err = g.evictions.evictor.MarkVictims(ctx, evictionOf(p, p.Victims))
	})
	return err
}

// unmarkVictims takes back the marks of victims that do not end. Marks that are left have no effect before the first
// deletion.
func (g *Gangs) unmarkVictims(logger klog.Logger, p *evictions.Eviction, victims []evictions.Victim) {
	g.evictions.run(func(ctx context.Context) {
		eviction := evictionOf(p, victims)
		if err := g.evictions.evictor.UnmarkVictims(ctx, eviction); err != nil {
			logger.Error(err, "Failed to take back the marks of pods that are not preempted; kube-controller-manager does so after two minutes",
				"preemptor", eviction.Preemptor, "plan", p.ID)
		}
	})
}

const (
	// evictPause is the time after which deletions that were refused are repeated, and evictLimit that after which they
	// are given up.
	evictPause, evictLimit = time.Second, 10 * time.Minute
	// batchSize is the number of victims that are deleted before the marks of the next ones are renewed, without the
	// rest of the last gang, and batchTime the time for that. kube-controller-manager removes a mark after two minutes.
	batchSize, batchTime = 500, 20 * time.Second
)

// evictVictims deletes the victims of a preemption. Whatever refuses a deletion, it is repeated, also when the
// preemption is over: a gang that has lost a part of its minimum loses the rest. It returns the victims that were given
// up in the end; nil: there are none.
func (g *Gangs) evictVictims(logger klog.Logger, p *evictions.Eviction) []types.UID {
	ctx, cancel := context.WithTimeout(g.evictions.ctx, evictLimit)
	defer cancel()
	back, victims := g.sendBack(logger, p)
	if spared := slices.Concat(p.Spared, back); len(spared) > 0 { // before a witness shows a later process that those with a mark end
		g.unmarkVictims(logger, p, spared)
	}
	left := evictionOf(p, victims)
	for round := 0; ; round++ {
		var err error
		left.Victims = g.remaining(left.Victims)
		var late []evict.Victim // of earlier batches: their marks do not expire meanwhile
		for _, batch := range batchesOf(left.Victims) {
			late = append(late, batch...)
			g.evictions.run(func(context.Context) { // other preemptions have their turn in between
				err = g.deleteBatch(ctx, logger, left, late, round > 0 || g.clock.Since(p.Decided) > batchTime)
			})
			if err == nil {
				late = nil
			}
		}
		if err == nil {
			countVictims(p, nil)
			return nil
		}
		if round == 0 {
			logger.Error(err, "Failed to evict some of the pods that are preempted; it is repeated", "preemptor", left.Preemptor, "victims", len(p.Victims))
		}
		select {
		case <-g.clock.After(evictPause):
		case <-ctx.Done():
			var uids []types.UID
			for _, v := range g.remaining(left.Victims) {
				uids = append(uids, v.Pod.UID)
			}
			logger.Error(err, "Gave up the eviction of some of the pods that are preempted: end them by hand", "preemptor", left.Preemptor, "pods", len(uids))
			countVictims(p, uids)
			return uids
		}
	}
}

// sendBack sends victims without a gang that this scheduler has not bound yet back to the queue. Nothing of them runs
// that would have to end. It returns these and the other victims.
func (g *Gangs) sendBack(logger klog.Logger, p *evictions.Eviction) (back, others []evictions.Victim) {
	reason := "preempted by " + p.Preemptor()
	for _, v := range p.Victims {
		if v.Gang.Name != "" || !g.cancelBinding(v.Pod.UID, reason) {
			others = append(others, v)
			continue
		}
		logger.V(2).Info("Sent a pod that was about to be bound back to the queue", "pod", klog.KObj(v.Pod), "node", v.Pod.Spec.NodeName, "preemptor", p.Preemptor())
		back = append(back, v)
	}
	if len(back) > 0 {
		g.evictions.evictor.ReportSentBack(evictionOf(p, back))
	}
	return back, others
}

// cancelBinding ends the binding cycle of a pod that waits at Permit, or is being prepared (PreBind). It reports
// whether the pod will not be bound.
func (g *Gangs) cancelBinding(uid types.UID, reason string) bool {
	for _, profile := range g.profiles {
		if pod := profile.GetWaitingPod(uid); pod != nil && pod.Preempt(Name, reason) {
			return true
		}
		if pod := profile.GetPodInPreBind(uid); pod != nil && pod.CancelPod(reason) {
			return true
		}
	}
	return false
}

// deleteBatch deletes some of the victims of an eviction. renews: their marks may be old.
func (g *Gangs) deleteBatch(ctx context.Context, logger klog.Logger, eviction evict.Eviction, batch []evict.Victim, renews bool) error {
	if eviction.Victims = g.remaining(batch); renews {
		if err := g.evictions.evictor.MarkVictims(ctx, eviction); err != nil {
			logger.V(2).Info("Failed to mark pods again whose eviction goes on", "preemptor", eviction.Preemptor, "err", err)
		}
		eviction.Victims = g.remaining(eviction.Victims)
	}
	ctx, cancel := context.WithTimeout(ctx, batchTime) // deletions that fail are repeated by the next round
	defer cancel()
	_, err := g.evictions.evictor.DeleteVictims(ctx, eviction)
	return err
}

// batchesOf divides victims into batches of about batchSize. A gang is in one of them.
func batchesOf(victims []evict.Victim) [][]evict.Victim {
	var batches [][]evict.Victim
	slices.SortStableFunc(victims, func(a, b evict.Victim) int { return cmp.Compare(a.Gang.String(), b.Gang.String()) })
	for len(victims) > 0 {
		n := min(batchSize, len(victims))
		for n < len(victims) && victims[n].Gang == victims[n-1].Gang && victims[n].Gang.Name != "" {
			n++
		}
		batches, victims = append(batches, victims[:n]), victims[n:]
	}
	return batches
}

// countVictims counts the victims of a preemption without those that are left.
func countVictims(p *evictions.Eviction, left []types.UID) {
	for _, v := range p.Victims {
		if !slices.Contains(left, v.Pod.UID) {
			preemptionVictims.WithLabelValues(cmp.Or(v.Rung, "unknown")).Inc()
		}
	}
}

// remaining returns those of the victims whose deletion has to be requested, with their pods as they are now. A pod
// that has succeeded stays, with its logs: its room is free.
func (g *Gangs) remaining(victims []evict.Victim) []evict.Victim {
	var left []evict.Victim
	for _, v := range victims {
		pod, err := g.podLister.Pods(v.Pod.Namespace).Get(v.Pod.Name)
		if err == nil && pod.UID == v.Pod.UID && pod.Status.Phase != corev1.PodSucceeded && count.NeedsDeletion(pod) {
			v.Pod = pod
			left = append(left, v)
		}
	}
	return left
}

// run performs a step of a preemption.
func (x *evictionRunner) run(step func(context.Context)) {
	x.running <- struct{}{}
	defer func() { <-x.running }()
	step(x.ctx)
}

// evictionOf returns what the evictor needs to know of some victims of a preemption.
func evictionOf(p *evictions.Eviction, victims []evictions.Victim) evict.Eviction {
	e := evict.Eviction{Plan: p.ID, Preemptor: p.Gang, Priority: p.Priority, Victims: make([]evict.Victim, len(victims))}
	switch {
	case p.Pod != nil:
		e.Kind, e.Preemptor, e.Related = "pod", types.NamespacedName{Namespace: p.Pod.Namespace, Name: p.Pod.Name}, p.Pod
	case p.Group != nil:
		e.Kind, e.Related = "PodGroup", report.Reference(p.Group)
	}
	for i, v := range victims {
		text := "its priority is lower"
		switch {
		case v.Gang.Name != "" && v.Whole:
			text = fmt.Sprintf("PodGroup %s of priority %d ends as a whole", v.Gang.Name, v.Priority)
		case v.Gang.Name != "":
			text = fmt.Sprintf("it is above the minimum of PodGroup %s of priority %d", v.Gang.Name, v.Priority)
		}
		e.Victims[i] = evict.Victim{Pod: v.Pod, Gang: v.Gang, Text: text}
	}
	return e
}

// resumeEvictions continues the evictions that an earlier process had begun: victims that were marked and not deleted
// are deleted now, and the room of all of them is reserved. The marks of a preemption without an eviction are taken
// back.
func (g *Gangs) resumeEvictions(logger klog.Logger) {
	pods, err := g.podLister.List(labels.Everything())
	if err != nil {
		logger.Error(err, "Failed to list the pods that are being preempted")
	}
	victims := map[string][]gangs.MarkedPod{} // by plan
	for _, pod := range pods {
		if plan, ok := evict.PlanOf(pod); ok {
			victims[plan] = append(victims[plan], gangs.MarkedPod{Pod: pod, Witness: evict.IsWitness(pod)})
		}
	}
	for _, recorded := range g.registry.RecordedEvictions() {
		key, plan := recorded.Gang, recorded.Plan
		logger.Info("Continuing the evictions of an earlier process", "podGroup", key, "plan", plan, "victims", len(victims[plan]))
		effects, ok := g.registry.RestorePreemption(key, plan, victims[plan], g.clock.Now())
		if ok { // else the PodGroup is gone by now
			delete(victims, plan)
		}
		g.apply(logger, effects)
	}
	g.apply(logger, g.registry.AbandonedEvictions(victims, g.clock.Now()))
}
