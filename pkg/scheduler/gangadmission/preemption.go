// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/report"
)

// preemptionHooks make the stock scheduler's preemption for a pod without a gang choose among the units of gangs that gangs
// preempt too (docs/decisions, G15 and G21).
func (g *Gangs) preemptionHooks(handle fwk.Handle) kubescheduler.PreemptionHooks {
	return kubescheduler.PreemptionHooks{
		Victims: func(pods []*corev1.Pod, priority int32) kubescheduler.PreemptionVictims {
			v := g.registry.Victims(pods, priority, g.clock.Now())
			return kubescheduler.PreemptionVictims{
				Singly: v.Singly, SubGroups: preemptionUnits(v.SubGroups), Gangs: preemptionUnits(v.Gangs), Protected: v.Protected,
			}
		},
		Preempt: func(victim *corev1.Pod, victims []*corev1.Pod, preemptor *corev1.Pod) (bool, error) {
			if g.observedPod(victim) == nil {
				// The stock plugin lets the preemptor go on with the event of the end of its last victim, which may have come
				// before, with those of the others of its gang.
				handle.Activate(klog.Background(), map[string]*corev1.Pod{preemptor.Name: preemptor})
				return true, nil
			}
			p, ends, err := g.registry.Preempt(victim, victims, preemptor, newPlanID(), g.clock.Now())
			if p != nil {
				ends, err = true, g.evictForPod(klog.Background(), handle, p)
			}
			if err != nil {
				select { // the stock plugin lets the preemptor try again at once
				case <-g.clock.After(evictPause):
				case <-g.evictions.ctx.Done():
				}
			}
			return ends, err
		},
	}
}

// observedPod returns the pod as the informer shows it, nil if it is known not to exist.
func (g *Gangs) observedPod(pod *corev1.Pod) *corev1.Pod {
	if known, err := g.podLister.Pods(pod.Namespace).Get(pod.Name); err == nil && known.UID == pod.UID {
		return known
	}
	return nil
}

// evictForPod ends the victims of a pod without a gang as those of a gang (docs/decisions, G24): if one of them cannot be marked, or
// the preemptor is deleted by then, none is deleted; otherwise all of them are, whatever becomes of it. It returns an error if some
// are left after the first attempt.
func (g *Gangs) evictForPod(logger klog.Logger, handle fwk.Handle, p *gangs.Preemption) error {
	var err error
	g.evictions.run(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, evictions.PreparationTime(len(p.Victims)))
		defer cancel()
		err = g.evictions.evictor.MarkVictims(ctx, evictionOf(p, p.Victims))
	})
	// A pod that waits terminates if it has a finalizer, as pods of Jobs do.
	if known := g.observedPod(p.Pod); err == nil && (known == nil || known.DeletionTimestamp != nil) {
		err = fmt.Errorf("preempting for pod %s: it is gone or terminating; no victim is deleted", klog.KObj(p.Pod))
	}
	preempted, effects, err := g.registry.RecordMarkedForPod(p, err, g.clock.Now())
	g.apply(logger, effects)
	if err != nil {
		return err
	}
	tried := make(chan error, 1)
	go func() {
		left := g.evictVictims(logger, p, func(err error) { tried <- err })
		g.apply(logger, g.registry.RecordEvicted(p, left, g.clock.Now()))
	}()
	err = <-tried
	for i := range preempted {
		reportPreempted(handle.EventRecorder(), &preempted[i], p.Pod)
	}
	return err
}

func preemptionUnits(units []gangs.VictimUnit) []kubescheduler.PreemptionUnit {
	out := make([]kubescheduler.PreemptionUnit, len(units))
	for i, u := range units {
		out[i] = kubescheduler.PreemptionUnit(u)
	}
	return out
}

// reportPreempted writes the event about a gang that loses pods to a pod without a gang.
func reportPreempted(recorder events.EventRecorder, p *gangs.Preempted, preemptor *corev1.Pod) {
	where := ""
	if p.Node != "" {
		where = " on node " + p.Node
	}
	about, by, priority := report.Reference(p.Group), klog.KObj(preemptor), corev1helpers.PodPriority(preemptor)
	switch {
	case p.Whole:
		recorder.Eventf(about, preemptor, corev1.EventTypeWarning, v2alpha2.EventGangPreempted, "Preempting",
			"pod %s of priority %d preempted the whole gang, %d pods%s", by, priority, len(p.Pods), where)
	case len(p.Pods) == 1:
		recorder.Eventf(about, preemptor, corev1.EventTypeNormal, v2alpha2.EventSurplusPreempted, "Preempting",
			"pod %s of priority %d preempted pod %s%s, which is above the minimum", by, priority, p.Pods[0].Name, where)
	default:
		recorder.Eventf(about, preemptor, corev1.EventTypeNormal, v2alpha2.EventSurplusPreempted, "Preempting",
			"pod %s of priority %d preempted %d pods%s, which are above the minimum", by, priority, len(p.Pods), where)
	}
}
