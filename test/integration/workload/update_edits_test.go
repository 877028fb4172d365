// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// holdAll keeps all existing pods terminating after their deletion, until letGo.
func (w *world) holdAll() {
	w.t.Helper()
	for i := range int(w.set().Spec.Replicas) {
		w.hold(fmt.Sprintf("s-%d", i))
	}
}

// letGo releases pods that were kept: those of these host names, all if there are none.
func (w *world) letGo(hosts ...string) {
	w.t.Helper()
	var names []string
	for _, p := range w.pods() {
		if p.Annotations[controlplane.StuckAnnotation] == "true" && (len(hosts) == 0 || slices.Contains(hosts, p.Spec.Hostname)) {
			names = append(names, p.Name)
		}
	}
	w.release(names)
}

// untilObserved waits until the statuses of the set, and then of its PodCliques, describe their present specs: a pod that is
// created from then on has the newest template.
func (w *world) untilObserved() {
	w.t.Helper()
	for _, kind := range []schema.GroupVersionResource{sets, cliques} {
		w.until(kind.Resource+" were observed", kind, func(objects []*unstructured.Unstructured) bool {
			return !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return number(o, "observedGeneration") != o.GetGeneration() })
		})
	}
}

// hashes returns the pods' label grove.io/pod-template-hash by host name.
func (w *world) hashes() map[string]string {
	w.t.Helper()
	hashes := map[string]string{}
	for _, p := range w.pods() {
		hashes[p.Spec.Hostname] = p.Labels[v1alpha1.LabelPodTemplateHash]
	}
	return hashes
}

// wantRevisions fails the test unless the ControllerRevisions of the namespace have these numbers.
func (w *world) wantRevisions(want ...int64) {
	w.t.Helper()
	list, err := cp.Client().AppsV1().ControllerRevisions(w.namespace).List(w.ctx, metav1.ListOptions{})
	w.must(err, "listing ControllerRevisions")
	var numbers []int64
	for _, r := range list.Items {
		numbers = append(numbers, r.Revision)
	}
	slices.Sort(numbers)
	if !slices.Equal(numbers, want) {
		w.t.Errorf("revisions %v, want %v", numbers, want)
	}
}
