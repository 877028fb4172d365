// SPDX-License-Identifier: Apache-2.0

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
)

// An update of 40 cliques of 5 pods, with ROUNDS of 20 or more 200 cliques: its number of writes and its duration. Every
// clique replaces one pod at a time.
func TestCostOfAnUpdate(t *testing.T) {
	const pods, most = 5, 8.0
	n := 40
	if rounds(t) >= 20 {
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

	before := writes(t)
	began = time.Now()
	w.edit("s", func(set *v1alpha1.PodCliqueSet) {
		for _, c := range set.Spec.Template.Cliques {
			setImage(set, 2, c.Name)
		}
	})
	w.must(controlplane.Until(w.ctx, w.dynamic.Resource(sets).Namespace(w.namespace), metav1.ListOptions{}, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && number(objects[0], "observedGeneration") == objects[0].GetGeneration() &&
			conditionOf(objects[0], v1alpha1.ConditionProgressing, "status") == "False"
	}), "waiting until the update is complete")
	w.checkUpdated()
	took := time.Since(began)
	cost := writes(t)
	muster := 0
	for _, k := range slices.SortedFunc(maps.Keys(cost), write.compare) {
		if d := cost[k] - before[k]; d > 0 {
			t.Logf("%6d %s", d, k)
			if strings.HasPrefix(k.program, "muster-") && !k.refused {
				muster += d
			}
		}
	}
	perPod := float64(muster) / float64(n*pods)
	t.Logf("%d pods were ready after %s, and replaced after %s; %.2f writes of Muster per replaced pod", n*pods,
		made.Round(100*time.Millisecond), took.Round(100*time.Millisecond), perPod)
	if perPod > most {
		t.Errorf("more than %.0f writes of Muster per replaced pod", most)
	}
}
