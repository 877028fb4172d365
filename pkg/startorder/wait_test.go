// SPDX-License-Identifier: Apache-2.0

package startorder

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/wrappers"
)

// podCliqueSet is a store, two groups of a leader and its worker, and a frontend that comes last. prefill needs any one
// of its two replicas, decode two of its three. Pods of the store and of the workers come in twos; of the store one is
// enough.
func podCliqueSet(order v1alpha1.CliqueStartupType) *v1alpha1.PodCliqueSet {
	return wrappers.MakePodCliqueSet("s", "ml").UID("s").StartupType(order).
		Clique("store", 2, wrappers.MinAvailable(1)).
		Clique("p-leader", 1, wrappers.StartsAfter("store")).
		Clique("p-worker", 2, wrappers.StartsAfter("p-leader")).
		Clique("d-leader", 1, wrappers.StartsAfter("store")).
		Clique("d-worker", 2, wrappers.StartsAfter("d-leader")).
		Clique("frontend", 1, wrappers.StartsAfter("p-worker", "d-worker")).
		ScalingGroup("prefill", 2, 0, "p-leader", "p-worker").
		ScalingGroup("decode", 3, 2, "d-leader", "d-worker").Obj()
}

// replica is what exists of replica 0 of a set.
type replica struct {
	cliques map[string]*v1alpha1.PodClique
	groups  map[string]*v1alpha1.PodCliqueScalingGroup
}

// made returns what muster-controller makes of a set, no pod of which is ready yet.
func made(set *v1alpha1.PodCliqueSet) replica {
	r := replica{map[string]*v1alpha1.PodClique{}, map[string]*v1alpha1.PodCliqueScalingGroup{}}
	revision := workload.NewRevision(set, v1alpha1.DefaultSchedulerName, nil, nil)
	for _, c := range workload.PodCliques(set, revision, 0, nil, nil) {
		r.cliques[c.Name] = c
	}
	for _, g := range workload.ScalingGroups(set, revision, 0, nil, nil) {
		r.groups[g.Name] = g
		for j := range int(g.Spec.Replicas) {
			for _, c := range workload.MemberPodCliques(set, revision, g, j, nil, nil, false) {
				r.cliques[c.Name] = c
			}
		}
	}
	return r
}

// started returns the PodCliques whose pods go on, sorted.
func (r replica) started(t *testing.T) []string {
	t.Helper()
	var cliques, groups []any
	for _, c := range r.cliques {
		cliques = append(cliques, c)
	}
	for _, g := range r.groups {
		groups = append(groups, g)
	}
	var started []string
	for _, name := range slices.Sorted(maps.Keys(r.cliques)) {
		requirements, err := lifecycle.ParseRequirements(r.cliques[name].Annotations[naming.AnnotationStartRequirements])
		if err != nil {
			t.Fatal(err)
		}
		if len(Waiter{Requirements: requirements}.unmetRequirements(cliques, groups)) == 0 {
			started = append(started, name)
		}
	}
	return started
}

func TestWhosePodsGoOn(t *testing.T) {
	t.Parallel()
	const inOrder, explicit = v1alpha1.CliqueStartupTypeInOrder, v1alpha1.CliqueStartupTypeExplicit
	ready := func(pods int32, names ...string) func(replica) {
		return func(r replica) {
			for _, name := range names {
				r.cliques[name].Status.ReadyReplicas = pods
			}
		}
	}
	for name, tc := range map[string]struct {
		order   v1alpha1.CliqueStartupType
		changes []func(replica)
		want    []string // besides those without requirements
	}{
		"explicit, nothing is ready": {order: explicit},
		"explicit, the parent has its minimum: its children in replicas that are needed": {order: explicit,
			changes: []func(replica){ready(1, "s-0-store")},
			want:    []string{"s-0-decode-0-d-leader", "s-0-decode-1-d-leader", "s-0-prefill-0-p-leader"}},
		"explicit, one of several parents is not enough": {order: explicit,
			changes: []func(replica){ready(2, "s-0-prefill-1-p-worker", "s-0-decode-0-d-worker")}},
		"explicit, any minAvailable replicas of each group, whichever they are": {order: explicit,
			changes: []func(replica){ready(2, "s-0-prefill-1-p-worker", "s-0-decode-0-d-worker", "s-0-decode-2-d-worker")},
			want:    []string{"s-0-frontend"}},
		"explicit, a replica counts with all the pods that it needs": {order: explicit,
			changes: []func(replica){ready(2, "s-0-prefill-1-p-worker", "s-0-decode-0-d-worker"), ready(1, "s-0-decode-2-d-worker")}},
		"explicit, within a group: the leader of the same replica, and leaders of as many as are needed": {order: explicit,
			changes: []func(replica){ready(1, "s-0-decode-1-d-leader")}},
		"explicit, leaders of two replicas of which one is surplus": {order: explicit,
			changes: []func(replica){ready(1, "s-0-decode-1-d-leader", "s-0-decode-2-d-leader")},
			want:    []string{"s-0-decode-1-d-worker", "s-0-decode-2-d-worker"}},
		"explicit, a surplus replica needs its own leader only": {order: explicit,
			changes: []func(replica){ready(1, "s-0-decode-2-d-leader", "s-0-prefill-1-p-leader")},
			want:    []string{"s-0-decode-2-d-worker", "s-0-prefill-1-p-worker"}},
		"explicit, a parent that is being deleted has not started": {order: explicit,
			changes: []func(replica){ready(2, "s-0-store"), func(r replica) {
				r.cliques["s-0-store"].DeletionTimestamp = &metav1.Time{}
			}}},
		"explicit, a parent scaled to zero is not waited for": {order: explicit,
			changes: []func(replica){func(r replica) {
				r.cliques["s-0-store"].Spec.MinAvailable, r.cliques["s-0-store"].Spec.Replicas = nil, 0
			}},
			want: []string{"s-0-decode-0-d-leader", "s-0-decode-1-d-leader", "s-0-prefill-0-p-leader"}},
		"explicit, nor is a group": {order: explicit,
			changes: []func(replica){ready(2, "s-0-decode-0-d-worker", "s-0-decode-1-d-worker"), func(r replica) {
				r.groups["s-0-prefill"].Spec.Replicas = 0
			}},
			want: []string{"s-0-frontend"}},
		"in order, after the store only the first leader": {order: inOrder,
			changes: []func(replica){ready(1, "s-0-store")},
			want:    []string{"s-0-prefill-0-p-leader"}},
		"in order, decode's leaders after any prefill worker": {order: inOrder,
			changes: []func(replica){ready(2, "s-0-prefill-1-p-worker")},
			want:    []string{"s-0-decode-0-d-leader", "s-0-decode-1-d-leader"}},
		"in order, the last after the one before it only": {order: inOrder,
			changes: []func(replica){ready(2, "s-0-decode-1-d-worker", "s-0-decode-2-d-worker")},
			want:    []string{"s-0-frontend"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := made(podCliqueSet(tc.order))
			// The first clique, and in surplus replicas of groups those whose parents are all outside.
			nobody := []string{"s-0-decode-2-d-leader", "s-0-prefill-1-p-leader", "s-0-store"}
			for _, change := range tc.changes {
				change(r)
			}
			want := append(nobody, tc.want...)
			slices.Sort(want)
			if diff := cmp.Diff(want, r.started(t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoOrder(t *testing.T) {
	t.Parallel()
	r := made(podCliqueSet(v1alpha1.CliqueStartupTypeAnyOrder))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(r.cliques)), r.started(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := (Waiter{}).Wait(t.Context(), nil); err != nil {
		t.Errorf("nothing to wait for: %v", err)
	}
}
