// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// The label with the hash of its template that a user removes from a pod is restored, and nothing is replaced: neither
// after an update, nor of an earlier template under OnDelete.
func TestTemplateLabelIsRemoved(t *testing.T) {
	remove := func(c *Cluster) map[string]string {
		hashes := map[string]string{}
		for _, pod := range All[*corev1.Pod](c) {
			hashes[pod.Name] = pod.Labels[v1alpha1.LabelPodTemplateHash]
			Edit(c, pod.DeepCopy(), func(p *corev1.Pod) { delete(p.Labels, v1alpha1.LabelPodTemplateHash) })
		}
		return hashes
	}
	for _, onDelete := range []bool{false, true} {
		c := newService(t, Nodes(2, 4), 2, func(set *v1alpha1.PodCliqueSet) {
			if onDelete {
				set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
			}
		})
		image(c, podCliqueSet(), "registry.example/main:2", "web")
		c.Advance(5 * time.Minute)
		before, hashes := uids(c), remove(c)
		c.Advance(5 * time.Minute)
		wantReplaced(c, before)
		wantAvailable(c, 6)
		for _, pod := range All[*corev1.Pod](c) {
			if got := pod.Labels[v1alpha1.LabelPodTemplateHash]; got != hashes[pod.Name] {
				c.Fatalf("OnDelete %t: the template hash of pod %s is %q, want %q", onDelete, pod.Name, got, hashes[pod.Name])
			}
		}
	}
}
