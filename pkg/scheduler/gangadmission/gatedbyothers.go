// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// othersGates are the pods of gangs that another plugin keeps out of the scheduling queue (for example, because their
// ResourceClaims do not exist yet). mu is held while it is determined and recorded whether pods are gated, so that the
// last record is the newest.
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
// none does, or it does not wait any more.
func (g *Gangs) gateOf(ctx context.Context, pod *corev1.Pod) string {
	profile := g.profiles[pod.Spec.SchedulerName]
	if profile == nil {
		return ""
	}
	newest := g.observedPod(pod)
	if newest == nil || newest.Spec.NodeName != "" {
		return ""
	}
	return kubescheduler.GateOfOthers(ctx, profile, newest, GateName)
}

// recordGates records gated pods, and applies the resulting effects.
func (g *Gangs) recordGates(logger klog.Logger, gated map[*corev1.Pod]string) {
	why := make(map[types.UID]string, len(gated))
	g.othersGates.mu.Lock()
	for pod, text := range gated {
		why[pod.UID] = text
		g.othersGates.pods[pod.UID] = pod
	}
	effects := g.registry.SetGates(why, g.clock.Now())
	g.othersGates.mu.Unlock()
	g.apply(logger, effects)
	// An event that ends a gate may have come before it was recorded.
	g.recheckGates(logger, slices.Collect(maps.Keys(why))...)
}

// recheckGates checks again those of the pods that were gated.
func (g *Gangs) recheckGates(logger klog.Logger, uids ...types.UID) {
	g.othersGates.mu.Lock()
	uids = slices.DeleteFunc(uids, func(uid types.UID) bool { return g.othersGates.pods[uid] == nil })
	if len(uids) == 0 {
		g.othersGates.mu.Unlock()
		return
	}
	ctx, why := klog.NewContext(context.Background(), logger), map[types.UID]string{}
	for _, uid := range uids {
		if why[uid] = g.gateOf(ctx, g.othersGates.pods[uid]); why[uid] == "" {
			delete(g.othersGates.pods, uid)
		}
	}
	effects := g.registry.SetGates(why, g.clock.Now())
	g.othersGates.mu.Unlock()
	g.apply(logger, effects)
}

// recheckAllGates checks all gated pods again: an event that ends a gate may not tell which pod it concerns.
func (g *Gangs) recheckAllGates(logger klog.Logger) {
	g.othersGates.mu.Lock()
	uids := slices.Collect(maps.Keys(g.othersGates.pods))
	g.othersGates.mu.Unlock()
	g.recheckGates(logger, uids...)
}

// recheckGateOfOwner checks the pod again for which a ResourceClaim was made from a template.
func (g *Gangs) recheckGateOfOwner(oldObj, newObj any) {
	claim, ok := newObj.(*resourcev1.ResourceClaim)
	if !ok || oldObj != nil {
		return
	}
	if owner := metav1.GetControllerOf(claim); owner != nil {
		g.recheckGates(klog.Background(), owner.UID)
	}
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

// observedPod returns the pod as the informer shows it, nil if it is known not to exist.
func (g *Gangs) observedPod(pod *corev1.Pod) *corev1.Pod {
	if known, err := g.podLister.Pods(pod.Namespace).Get(pod.Name); err == nil && known.UID == pod.UID {
		return known
	}
	return nil
}
