// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// Pods of an unreachable node are deleted: their indices are reused when the grace period is over, not earlier, and an
// event reports it. When the node is reachable again the old pods are gone, and the new ones keep running.
func TestPodsOfALostNodeAreReplacedAfterTheirGracePeriod(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(strings.Replace(service2, `podSpec: {`, `podSpec: {terminationGracePeriodSeconds: 4, `, 1))
	w.untilPods(map[string]int{"s-0-w": 4}, true)
	lost := w.nodes[0]
	w.addNodes(1)
	w.must(cp.LoseNode(w.ctx, lost), "losing the node")
	old := map[string]*corev1.Pod{}
	for _, p := range w.pods() {
		old[p.Spec.Hostname] = nil
		w.delete(podsKind, p.Name)
	}
	ready := map[types.UID]bool{}
	w.must(controlplane.Until(w.ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		clear(ready)
		for _, p := range pods {
			switch {
			case p.Spec.NodeName == lost && p.DeletionTimestamp != nil:
				old[p.Spec.Hostname] = p
			case p.Spec.NodeName != lost && controlplane.PodReady(p):
				ready[p.UID] = true
			}
		}
		return len(ready) == 4
	}), "waiting for the replacements")
	w.untilAvailable("s")
	if len(w.pods()) != 8 {
		t.Errorf("%d pods, want 4 that are lost and 4 others", len(w.pods()))
	}
	for _, p := range w.pods() {
		was := old[p.Spec.Hostname]
		switch {
		case was == nil:
			t.Errorf("pod %s has host name %s, which none of the lost pods had", p.Name, p.Spec.Hostname)
		case p.DeletionTimestamp == nil && p.CreationTimestamp.Time.Before(was.DeletionTimestamp.Time):
			t.Errorf("pod %s was made at %s, and the grace period of %s ended at %s", p.Name, p.CreationTimestamp, was.Name, was.DeletionTimestamp)
		}
	}
	w.until("an event says so", eventsv1.SchemeGroupVersion.WithResource("events"), func(objects []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			about, _, _ := unstructured.NestedString(o.Object, "regarding", "name")
			reason, _, _ := unstructured.NestedString(o.Object, "reason")
			return about == "s-0-w" && reason == v1alpha1.EventPodLost
		})
	})

	w.must(cp.RestoreNode(w.ctx, lost), "restoring the node")
	w.untilPods(map[string]int{"s-0-w": 4}, true)
	w.untilAvailable("s")
	for _, p := range w.pods() {
		if !ready[p.UID] {
			t.Errorf("pod %s is neither old nor one of the replacements", p.Name)
		}
	}
	w.checkIndices()
}
