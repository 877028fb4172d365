// SPDX-License-Identifier: Apache-2.0

//go:build long

package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/rounds"
)

// An update of 40 cliques of 5 pods, with ROUNDS of 20 or more 200 cliques: its number of writes and its duration.
// Every clique replaces one pod at a time.
func TestCostOfAnUpdate(t *testing.T) {
	const pods, most = 5, 8.0
	n := 40
	if rounds.Exhaustive() {
		n = 200
	}
	w := newWorld(t, (n*pods+99)/100)
	set := w.parse("metadata: {name: s}\nspec: {replicas: 1, template: {}}")
	for i := range n {
		c := w.parse("metadata: {name: s}\nspec: {template: {cliques: [{name: w, spec: {replicas: 5, podSpec: {}}}]}}").Spec.Template.Cliques[0]
		c.Name = fmt.Sprintf("c%03d", i)
		set.Spec.Template.Cliques = append(set.Spec.Template.Cliques, c)
	}
	began := time.Now()
	w.must(w.client.Create(w.ctx, set), "creating the set")
	w.untilReady(n * pods)
	w.untilAllReady("s")
	made := time.Since(began)

	took, muster := w.costOfUpdate(t, "s", func(set *v1alpha1.PodCliqueSet) {
		for _, c := range set.Spec.Template.Cliques {
			setImage(set, 2, c.Name)
		}
	})
	perPod := float64(muster) / float64(n*pods)
	t.Logf("%d pods were ready after %s, and replaced after %s; %.2f writes of Muster per replaced pod", n*pods,
		made.Round(100*time.Millisecond), took.Round(100*time.Millisecond), perPod)
	if perPod > most {
		t.Errorf("more than %.0f writes of Muster per replaced pod", most)
	}
}

// An update of one of four cliques, in 12 replicas of a set, with ROUNDS of 20 or more 50: only the PodCliques of that
// clique are written for the turn of their replica. With one pod in each PodClique every pod bears the writes of a
// whole replica: 6 tell the three others the revision, 3 are the scheduler's, and the rest are the pod, its PodClique,
// the PodGroup, and the status of the set.
func TestCostOfAPartialUpdate(t *testing.T) {
	const most = 21.0
	n := 12
	if rounds.Exhaustive() {
		n = 50
	}
	w := newWorld(t, (n*4+99)/100)
	set := w.parse(fmt.Sprintf("metadata: {name: s}\nspec: {replicas: %d, template: {}}", n))
	for _, name := range []string{"a", "b", "c", "d"} {
		c := w.parse("metadata: {name: s}\nspec: {template: {cliques: [{name: w, spec: {replicas: 1, podSpec: {}}}]}}").Spec.Template.Cliques[0]
		c.Name = name
		set.Spec.Template.Cliques = append(set.Spec.Template.Cliques, c)
	}
	w.must(w.client.Create(w.ctx, set), "creating the set")
	w.untilReady(n * 4)
	w.untilAllReady("s")
	took, muster := w.costOfUpdate(t, "s", func(set *v1alpha1.PodCliqueSet) { setImage(set, 2, "b") })
	perPod := float64(muster) / float64(n)
	t.Logf("%d of %d pods were replaced after %s; %.2f writes of Muster per replaced pod", n, 4*n, took.Round(100*time.Millisecond), perPod)
	if perPod > most {
		t.Errorf("more than %.0f writes of Muster per replaced pod", most)
	}
}

// costOfUpdate edits a set, waits until the update is complete, and returns how long it took and the number of writes
// of Muster.
func (w *world) costOfUpdate(t *testing.T, name string, edit func(*v1alpha1.PodCliqueSet)) (took time.Duration, muster int) {
	t.Helper()
	before, began := writes(t), time.Now()
	w.edit(name, edit)
	w.must(controlplane.Until(w.ctx, w.dynamic.Resource(sets).Namespace(w.namespace), metav1.ListOptions{}, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && number(objects[0], "observedGeneration") == objects[0].GetGeneration() &&
			conditionOf(objects[0], v1alpha1.ConditionProgressing, "status") == "False"
	}), "waiting until the update is complete")
	w.checkUpdated()
	took = time.Since(began)
	cost := writes(t)
	for _, k := range slices.SortedFunc(maps.Keys(cost), write.compare) {
		if d := cost[k] - before[k]; d > 0 {
			t.Logf("%6d %s", d, k)
			if strings.HasPrefix(k.program, "muster-") && !k.refused {
				muster += d
			}
		}
	}
	return took, muster
}
