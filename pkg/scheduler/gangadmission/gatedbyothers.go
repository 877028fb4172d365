// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// gatedByOthers returns the pods of the work that another plugin gates, and the reasons.
func (pl *Admission) gatedByOthers(ctx context.Context, work *gangs.Work) map[*corev1.Pod]string {
	var gated map[*corev1.Pod]string
	for _, pod := range work.Pods {
		if why := kubescheduler.GateOfOthers(ctx, pl.profile, pod, GateName); why != "" {
			if gated == nil {
				gated = map[*corev1.Pod]string{}
			}
			gated[pod] = why
		}
	}
	return gated
}

// gateOf returns the reason why a plugin other than GangGate currently keeps the pod out of the scheduling queue. "":
// none does.
func (g *Gangs) gateOf(ctx context.Context, pod *corev1.Pod) string {
	h := g.handles[pod.Spec.SchedulerName]
	if h == nil {
		return ""
	}
	profile, err := kubescheduler.ProfileOf(h)
	if err != nil {
		return ""
	}
	return kubescheduler.GateOfOthers(ctx, profile, pod, GateName)
}

// recordGates records gated pods, and applies the resulting effects.
func (g *Gangs) recordGates(logger klog.Logger, gated map[*corev1.Pod]string) {
	why := make(map[types.UID]string, len(gated))
	for pod, text := range gated {
		why[pod.UID] = text
		g.othersGates.Store(pod.UID, pod)
	}
	g.apply(logger, g.registry.SetGates(why, g.clock.Now()))
}

// recheckGates checks gated pods again.
func (g *Gangs) recheckGates(ctx context.Context) {
	why, found := map[types.UID]string{}, false
	g.othersGates.Range(func(key, known any) bool {
		found = true
		uid, pod := key.(types.UID), known.(*corev1.Pod)
		newest, err := g.podLister.Pods(pod.Namespace).Get(pod.Name)
		if err == nil && newest.UID == uid && newest.Spec.NodeName == "" {
			why[uid] = g.gateOf(ctx, newest)
		}
		if why[uid] == "" { // it is gone, or no longer gated
			g.othersGates.Delete(uid)
		}
		return true
	})
	if !found {
		return
	}
	g.apply(klog.FromContext(ctx), g.registry.SetGates(why, g.clock.Now()))
}

// withoutGated returns the pods that no other plugin gates, and records the others as gated.
func (g *Gangs) withoutGated(logger klog.Logger, pods []*corev1.Pod) []*corev1.Pod {
	var kept []*corev1.Pod
	gated := map[*corev1.Pod]string{}
	for _, pod := range pods {
		if why := g.gateOf(klog.NewContext(context.Background(), logger), pod); why != "" {
			gated[pod] = why
			continue
		}
		kept = append(kept, pod)
	}
	if len(gated) > 0 {
		g.recordGates(logger, gated)
	}
	return kept
}
