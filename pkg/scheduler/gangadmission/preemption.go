// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
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
		Preempt: func(victim *corev1.Pod, victims sets.Set[types.UID], preemptor *corev1.Pod) (func(), error) {
			priority := corev1helpers.PodPriority(preemptor)
			p, err := g.registry.Preempt(victim.UID, victims, priority, g.clock.Now())
			if err != nil || p == nil || p.Pods == 0 {
				return nil, err
			}
			return func() { reportPreempted(handle.EventRecorder(), p, victim, preemptor) }, nil
		},
	}
}

func preemptionUnits(units []gangs.VictimUnit) []kubescheduler.PreemptionUnit {
	out := make([]kubescheduler.PreemptionUnit, len(units))
	for i, u := range units {
		out[i] = kubescheduler.PreemptionUnit(u)
	}
	return out
}

// reportPreempted writes the event about a gang that loses pods to a pod without a gang. victim is one of them.
func reportPreempted(recorder events.EventRecorder, p *gangs.Preempted, victim, preemptor *corev1.Pod) {
	where := ""
	if p.Node != "" {
		where = " on node " + p.Node
	}
	about, by, priority := report.Reference(p.Group), klog.KObj(preemptor), corev1helpers.PodPriority(preemptor)
	switch {
	case p.Whole:
		recorder.Eventf(about, preemptor, corev1.EventTypeWarning, v2alpha2.EventGangPreempted, "Preempting",
			"pod %s of priority %d preempted the whole gang, %d pods%s", by, priority, p.Pods, where)
	case p.Pods == 1:
		recorder.Eventf(about, preemptor, corev1.EventTypeNormal, v2alpha2.EventSurplusPreempted, "Preempting",
			"pod %s of priority %d preempted pod %s%s, which is above the minimum", by, priority, victim.Name, where)
	default:
		recorder.Eventf(about, preemptor, corev1.EventTypeNormal, v2alpha2.EventSurplusPreempted, "Preempting",
			"pod %s of priority %d preempted %d pods%s, which are above the minimum", by, priority, p.Pods, where)
	}
}
