// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/report"
)

// preemptionHooks prevent the stock scheduler's preemption from preempting a part of a gang's minimum
// (docs/decisions, G15).
func (g *Gangs) preemptionHooks(handle fwk.Handle) kubescheduler.PreemptionHooks {
	return kubescheduler.PreemptionHooks{
		Victims: func(pods []*corev1.Pod, priority int32) (sets.Set[types.UID], [][]*corev1.Pod, string) {
			v := g.registry.Victims(pods, priority, g.clock.Now())
			return v.Singly, v.Whole, v.Protected
		},
		Preempt: func(victim *corev1.Pod, victims sets.Set[types.UID], node string, preemptor *corev1.Pod) (func(), error) {
			priority := corev1helpers.PodPriority(preemptor)
			p, err := g.registry.Preempt(victim.UID, victims, priority, g.clock.Now())
			if err != nil || p == nil || p.Pods == 0 {
				return nil, err
			}
			return func() {
				about := report.Reference(p.Group)
				recorder := handle.EventRecorder()
				if p.Whole {
					recorder.Eventf(about, preemptor, corev1.EventTypeWarning, v2alpha2.EventGangPreempted, "Preempting",
						"pod %s of priority %d preempted the whole gang, %d pods on node %s", klog.KObj(preemptor), priority, p.Pods, node)
					return
				}
				recorder.Eventf(about, preemptor, corev1.EventTypeNormal, v2alpha2.EventSurplusPreempted, "Preempting",
					"pod %s of priority %d preempted pod %s on node %s, which is above the minimum", klog.KObj(preemptor), priority, victim.Name, node)
			}, nil
		},
	}
}
