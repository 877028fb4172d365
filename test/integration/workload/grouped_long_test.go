// SPDX-License-Identifier: Apache-2.0

//go:build long

package workload

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAThousandJobSetsAreGrouped: each has its PodGroup within 5 s, or, on a machine that is busy with others, within
// the time that it takes to create them all, and costs at most 3 writes. It is not parallel, because it counts the
// writes of all.
func TestAThousandJobSetsAreGrouped(t *testing.T) {
	w := newWorld(t, 0)
	crd := install(w, "jobset.x-k8s.io", "v1alpha2", "JobSet")
	first := read(w, trainSet)
	createWhenServed(w, first)
	w.until("JobSets are watched", podGroups, func(groups []*unstructured.Unstructured) bool { return len(groups) == 1 })
	before := writes(t)

	const total = 1000
	start := time.Now()
	var users errgroup.Group
	users.SetLimit(16)
	for i := range total {
		users.Go(func() error {
			set := read(w, trainSet)
			set.SetName(fmt.Sprintf("train-%d", i))
			return w.client.Create(w.ctx, set)
		})
	}
	w.must(users.Wait(), "creating JobSets")
	created := time.Since(start)
	w.until("all JobSets have PodGroups", podGroups, func(groups []*unstructured.Unstructured) bool { return len(groups) == total+1 })
	grouped := time.Since(start) - created
	t.Logf("%d JobSets were created in %v, and grouped %v later", total, created, grouped)
	if limit := max(5*time.Second, created); grouped > limit {
		t.Errorf("the last PodGroup came %v after the last JobSet, later than %v", grouped, limit)
	}
	w.until("all PodGroups have a status", podGroups, func(groups []*unstructured.Unstructured) bool {
		return !slices.ContainsFunc(groups, func(g *unstructured.Unstructured) bool { return g.Object["status"] == nil })
	})
	cost := 0
	for what, n := range writes(t) {
		if n -= before[what]; n > 0 && what.program != "kubectl" && what.resource != "jobsets" && what.resource != "customresourcedefinitions" {
			t.Logf("%d: %s", n, what)
			cost += n
		}
	}
	if limit := 3 * total; cost > limit {
		t.Errorf("%d writes, want at most %d", cost, limit)
	}
	w.must(w.client.Delete(w.ctx, crd), "removing JobSet with all JobSets")
	w.untilGone()
}
