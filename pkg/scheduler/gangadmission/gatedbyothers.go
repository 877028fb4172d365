// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// othersGates contains the pods of gangs that another plugin keeps out of the scheduling queue (for example,
// DynamicResources gates a pod whose claim does not exist yet). They are checked again until the plugin lets them
// pass.
type othersGates struct {
	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod
}

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
	g.othersGates.mu.Lock()
	for pod, text := range gated {
		why[pod.UID] = text
		g.othersGates.pods[pod.UID] = pod
	}
	g.othersGates.mu.Unlock()
	g.apply(logger, g.registry.SetGates(why, g.clock.Now()))
}

// recheckGates checks gated pods again.
func (g *Gangs) recheckGates(ctx context.Context) {
	g.othersGates.mu.Lock()
	pods := maps.Clone(g.othersGates.pods)
	g.othersGates.mu.Unlock()
	if len(pods) == 0 {
		return
	}
	why := map[types.UID]string{}
	for uid, pod := range pods {
		newest, err := g.podLister.Pods(pod.Namespace).Get(pod.Name)
		gone := err != nil || newest.UID != uid || newest.Spec.NodeName != ""
		if !gone {
			why[uid] = g.gateOf(ctx, newest)
		}
		if gone || why[uid] == "" {
			g.othersGates.mu.Lock()
			delete(g.othersGates.pods, uid)
			g.othersGates.mu.Unlock()
		}
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
