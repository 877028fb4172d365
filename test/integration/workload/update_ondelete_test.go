// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// onDelete is rolled with strategy OnDelete.
func onDelete() string {
	return strings.Replace(fmt.Sprintf(rolled, 1), "spec:\n", "spec:\n  updateStrategy: {type: OnDelete}\n", 1)
}

// Under OnDelete an edit deletes no pod. Deleted pods are created again with the new template. The numbers are those of
// the test cases of GREP-291; test/sim has the others.
func TestOnDelete(t *testing.T) {
	tellStories(t, map[string]func(*world){
		"1 pods of a standalone clique": func(w *world) {
			r := w.started(onDelete())
			w.image(2, "web")
			w.untilProgressing(sets, "s", "False", v1alpha1.ReasonOnDelete)
			w.untilProgressing(cliques, "s-0-web", "False", v1alpha1.ReasonOnDelete)
			w.wantRecorded(0)
			r.was(map[string]string{})

			w.delete(podsKind, w.podOn("s-0-web-1"))
			r.reaches("s-0-web", "-1 +1")
			w.untilUpdatedReplicas("s-0-web", 1)
			w.wantImages(map[string]int{"s-0-web-0": 1, "s-0-web-1": 2, "s-0-web-2": 1})
			w.wantRecorded(1)

			w.scale(cliques, "s-0-web", 2) // the pods of the old template are first to go
			w.untilPods(map[string]int{"s-0-web": 2, "s-0-g-0-leader": 1, "s-0-g-0-worker": 2, "s-0-g-1-leader": 1, "s-0-g-1-worker": 2}, true)
			w.scale(cliques, "s-0-web", 1)
			w.untilPods(map[string]int{"s-0-web": 1, "s-0-g-0-leader": 1, "s-0-g-0-worker": 2, "s-0-g-1-leader": 1, "s-0-g-1-worker": 2}, true)
			w.wantImages(map[string]int{"s-0-web-1": 2})
			w.untilProgressing(sets, "s", "False", v1alpha1.ReasonUpdateComplete)
		},
		"4 cliques and scaling groups alike": func(w *world) {
			r := w.started(onDelete())
			w.image(2, "web", "leader", "worker")
			w.untilProgressing(sets, "s", "False", v1alpha1.ReasonOnDelete)
			w.untilProgressing(cliques, "s-0-web", "False", v1alpha1.ReasonOnDelete)
			w.untilProgressing(groups, "s-0-g", "False", v1alpha1.ReasonOnDelete)
			r.was(map[string]string{})
			w.deleteReplica(0)
			w.delete(podsKind, w.podOn("s-0-web-0"))
			r.reaches("s-0-web", "-0 +0")
			r.reaches("s-0-g", "-0 +0")
			w.wantImages(map[string]int{"s-0-web-0": 2, "s-0-web-1": 1, "s-0-web-2": 1, "s-0-g-0-leader-0": 2, "s-0-g-0-worker-0": 2,
				"s-0-g-0-worker-1": 2, "s-0-g-1-leader-0": 1, "s-0-g-1-worker-0": 1, "s-0-g-1-worker-1": 1})
			r.was(map[string]string{"s-0-web": "-0 +0", "s-0-g": "-0 +0"})
		},
	})
}

// untilNumber waits until a field of the status of an object, of its present spec, is n.
func (w *world) untilNumber(kind schema.GroupVersionResource, name, field string, n int64) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s of %s is %d", field, name, n), kind, func(objects []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetName() == name && number(o, "observedGeneration") == o.GetGeneration() && number(o, field) == n
		})
	})
}

// deleteReplica deletes a replica of the scaling group: its PodCliques.
func (w *world) deleteReplica(j int) {
	w.t.Helper()
	w.holdAll() // so that none is created again before the other is deleted
	w.delete(cliques, fmt.Sprintf("s-0-g-%d-leader", j))
	w.delete(cliques, fmt.Sprintf("s-0-g-%d-worker", j))
	w.letGo()
}

// podOn returns the name of the pod of a host name.
func (w *world) podOn(host string) string {
	w.t.Helper()
	for _, p := range w.pods() {
		if p.Spec.Hostname == host && p.DeletionTimestamp == nil {
			return p.Name
		}
	}
	w.t.Fatalf("there is no pod %s", host)
	return ""
}

// wantImages fails the test unless the pods of these host names have images of these tags.
func (w *world) wantImages(want map[string]int) {
	w.t.Helper()
	for _, p := range w.pods() {
		tag, named := want[p.Spec.Hostname]
		if image := p.Spec.Containers[0].Image; named && image != fmt.Sprintf("registry.example/main:%d", tag) {
			w.t.Errorf("pod %s has image %s, want tag %d", p.Name, image, tag)
		}
	}
	for host := range want {
		w.podOn(host)
	}
}

// untilUpdatedReplicas waits until the status of a PodClique counts so many updated pods.
func (w *world) untilUpdatedReplicas(name string, n int64) {
	w.t.Helper()
	w.untilNumber(cliques, name, "updatedReplicas", n)
}

// wantRecorded fails the test unless the statuses have the fields that GREP-291 requires for an update under OnDelete.
// updated: pods of s-0-web.
func (w *world) wantRecorded(updated int32) {
	w.t.Helper()
	clique, set := &v1alpha1.PodClique{}, w.set()
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "s-0-web"}, clique), "reading the PodClique")
	s, p := clique.Status, clique.Status.UpdateProgress
	switch {
	case p == nil || p.UpdateEndedAt == nil || !p.UpdateStartedAt.Equal(p.UpdateEndedAt) || p.ReadyPodsSelectedToUpdate != nil:
		w.t.Errorf("progress of the PodClique: %+v", p)
	case p.PodTemplateHash != clique.Labels[v1alpha1.LabelPodTemplateHash] || p.PodCliqueSetGenerationHash != *set.Status.CurrentGenerationHash:
		w.t.Errorf("target of the PodClique: %+v", p)
	case s.CurrentPodTemplateHash == nil || *s.CurrentPodTemplateHash == p.PodTemplateHash || s.UpdatedReplicas != updated:
		w.t.Errorf("status of the PodClique: %+v", s)
	}
	if p := set.Status.UpdateProgress; p == nil || p.UpdateEndedAt == nil || !p.UpdateStartedAt.Equal(p.UpdateEndedAt) || p.CurrentlyUpdating != nil || set.Status.UpdatedReplicas != 0 {
		w.t.Errorf("progress of the set: %+v, %d replicas updated", p, set.Status.UpdatedReplicas)
	}
}
