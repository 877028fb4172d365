// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// onDelete is rolled with strategy OnDelete.
func onDelete() string {
	return strings.Replace(fmt.Sprintf(rolled, 1), "spec:\n", "spec:\n  updateStrategy: {type: OnDelete}\n", 1)
}

func setStrategy(strategy v1alpha1.UpdateStrategyType) func(*v1alpha1.PodCliqueSet) {
	return func(set *v1alpha1.PodCliqueSet) {
		set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: strategy}
	}
}

// Under OnDelete an edit deletes no pod. Deleted pods are created again with the new template. The first four are the
// test cases of GREP-291.
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
		"2 a node fails": func(w *world) {
			r := w.started(onDelete())
			lost := w.nodes[0]
			w.addNodes(1)
			w.edit("s", func(set *v1alpha1.PodCliqueSet) { // no longer exists
				set.Spec.Template.Clique("web").Spec.PodSpec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{lost}}}}}}}}
			})
			w.untilProgressing(sets, "s", "False", v1alpha1.ReasonOnDelete)
			r.was(map[string]string{})
			w.delete(podsKind, w.podOn("s-0-web-2")) // as an eviction does
			r.reaches("s-0-web", "-2 +2")
			for _, p := range w.pods() {
				if onLost := p.Spec.NodeName == lost; onLost == (p.Spec.Hostname == "s-0-web-2") {
					w.t.Errorf("pod %s is on %s", p.Name, p.Spec.NodeName)
				}
			}

			// To RollingRecreate: no pod is replaced before the next change of the template. Pods of mixed templates are
			// all updated then.
			w.edit("s", setStrategy(v1alpha1.RollingRecreateStrategyType))
			w.untilObserved()
			w.untilProgressing(sets, "s", "False", v1alpha1.ReasonUpdateDeferred)
			w.scale(cliques, "s-0-web", 4) // a new pod is of the new template
			w.untilUpdatedReplicas("s-0-web", 2)
			r.reaches("s-0-web", "-2 +2 +3") // updated replicas count it before it is ready
			w.image(2, "web")
			w.untilUpdated()
			r.was(map[string]string{"s-0-web": "-2 +2 +3 -0 +0 -1 +1 -2 +2 -3 +3"})
		},
		"3 replicas of a scaling group": func(w *world) {
			r := w.started(onDelete())
			w.image(2, "worker")
			w.untilProgressing(sets, "s", "False", v1alpha1.ReasonOnDelete)
			w.untilProgressing(groups, "s-0-g", "False", v1alpha1.ReasonOnDelete)
			r.was(map[string]string{})
			w.deleteReplica(1)
			r.reaches("s-0-g", "-1 +1")
			w.untilProgressing(groups, "s-0-g", "False", v1alpha1.ReasonOnDelete)
			w.wantImages(map[string]int{"s-0-g-1-worker-0": 2, "s-0-g-1-worker-1": 2, "s-0-g-0-worker-0": 1, "s-0-g-0-worker-1": 1})
			w.wantGroupUpdated(1)
			w.delete(podsKind, w.podOn("s-0-g-0-worker-0")) // one of two: the replica is not updated yet
			r.reaches("s-0-g", "-1 +1 -0 +0")
			w.wantImages(map[string]int{"s-0-g-0-worker-0": 2, "s-0-g-0-worker-1": 1})
			w.wantGroupUpdated(1)
			w.delete(podsKind, w.podOn("s-0-g-0-worker-1"))
			w.untilProgressing(sets, "s", "False", v1alpha1.ReasonUpdateComplete)
			r.reaches("s-0-g", "-1 +1 -0 +0 -0 +0") // complete when all pods are of the template, before they are ready
			w.wantGroupUpdated(2)
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
		"an update that is under way ends": func(w *world) {
			r := w.started(fmt.Sprintf(rolled, 1))
			w.holdAll()
			w.image(2, "web", "worker")
			r.reaches("s-0-web", "-0")
			r.reaches("s-0-g", "-0")
			w.edit("s", setStrategy(v1alpha1.OnDeleteStrategyType))
			w.untilProgressing(sets, "s", "False", v1alpha1.ReasonOnDelete)
			w.untilProgressing(cliques, "s-0-web", "False", v1alpha1.ReasonOnDelete)
			w.untilProgressing(groups, "s-0-g", "False", v1alpha1.ReasonOnDelete)
			w.letGo()
			r.reaches("s-0-web", "-0 +0")
			r.reaches("s-0-g", "-0 +0")
			w.untilAllReady("s")
			r.was(map[string]string{"s-0-web": "-0 +0", "s-0-g": "-0 +0"})
			if p := w.set().Status.UpdateProgress; p.UpdateEndedAt == nil || p.CurrentlyUpdating != nil {
				w.t.Errorf("progress %+v", p)
			}
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

func (w *world) wantGroupUpdated(n int64) {
	w.t.Helper()
	w.untilNumber(groups, "s-0-g", "updatedReplicas", n)
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
