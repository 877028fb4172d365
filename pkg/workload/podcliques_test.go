// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// TestNothingIsUpdatedBeforeItKnowsTheRevision: no object counts as updated before its status describes the current
// revision. (A set of generation 2, whose PodCliques were not processed yet, once reported all replicas as updated.) A
// group that does not have the annotation of a new revision yet counts by the previous one, which its set ignores.
func TestNothingIsUpdatedBeforeItKnowsTheRevision(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit   func(*v1alpha1.PodCliqueSet)
		change func(Children) // after the edit; nil: no controller has observed it yet
		want   [3]bool        // whether the clique is updated, the group, and the group according to its own controller
	}{
		"nothing was edited": {func(*v1alpha1.PodCliqueSet) {}, nil, [3]bool{true, true, true}},
		"replicas alone":     {func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.Cliques[0].Spec.Replicas = 7 }, nil, [3]bool{true, true, true}},
		"the clique's image": {imageOf(0), nil, [3]bool{false, false, true}},
		"a label of the group's clique": {func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Template.Cliques[1].Labels = map[string]string{"team": "a"}
		}, nil, [3]bool{false, false, true}},
		"the priority class": {func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.PriorityClassName = "high" }, nil, [3]bool{false, false, true}},
		"the clique has the annotations, and its status describes the previous revision": {imageOf(0), func(c Children) {
			tell(c.Cliques["s-0-a"])
			c.Cliques["s-0-a"].Generation++
		}, [3]bool{false, false, true}},
		"the clique has the annotations only": {imageOf(0), func(c Children) { tell(c.Cliques["s-0-a"]) }, [3]bool{false, false, true}},
		"the status of the clique describes it": {imageOf(0), func(c Children) {
			tell(c.Cliques["s-0-a"])
			c.Cliques["s-0-a"].Status.ObservedRevision, c.Cliques["s-0-a"].Status.UpdatedReplicas = 2, 0
		}, [3]bool{false, false, true}},
		"the clique follows": {imageOf(0), func(c Children) {
			tell(c.Cliques["s-0-a"])
			c.Cliques["s-0-a"].Status.ObservedRevision = 2
		}, [3]bool{true, false, true}},
		"the group has the annotations, and its member does not": {imageOf(1), func(c Children) { tell(c.Groups["s-0-g"]) }, [3]bool{}},
		"the member follows, and its group does not have the annotations": {imageOf(1), func(c Children) {
			tell(c.Groups["s-0-g"])
			c.Cliques["s-0-g-0-b"].Status.ObservedRevision = 2
		}, [3]bool{false, false, true}},
		"all follow": {imageOf(1), func(c Children) {
			tell(c.Groups["s-0-g"])
			c.Cliques["s-0-a"].Status.ObservedRevision, c.Cliques["s-0-g-0-b"].Status.ObservedRevision, c.Groups["s-0-g"].Status.ObservedRevision = 2, 2, 2
		}, [3]bool{true, true, true}},
		"a user's own label on a PodClique": {func(*v1alpha1.PodCliqueSet) {}, func(c Children) {
			c.Cliques["s-0-a"].Labels["argocd.argoproj.io/instance"] = "prod"
		}, [3]bool{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := makePodCliqueSet("s", 1).Clique("a", 1).Clique("b", 1).ScalingGroup("g", 1, 0, "b").Obj()
			v1alpha1.SetDefaults(set, v1alpha1.DefaultSchedulerName)
			live := apply(set, Children{})
			first := present(set, live)
			for _, c := range live.Cliques {
				c.Status.ReadyReplicas, c.Status.UpdatedReplicas, c.Status.ObservedGeneration, c.Status.ObservedRevision = 1, 1, c.Generation, 1
				c.Status.CurrentPodCliqueSetGenerationHash = &first.Hash
			}
			set.Status.CurrentGenerationHash = &first.Hash
			live.Groups["s-0-g"].Status.CurrentPodCliqueSetGenerationHash = &first.Hash
			live.Groups["s-0-g"].Status.UpdatedReplicas, live.Groups["s-0-g"].Status.ObservedRevision = 1, 1
			tc.edit(set)
			v1alpha1.SetDefaults(set, v1alpha1.DefaultSchedulerName)
			number := first.Number
			if !first.Describes(set, v1alpha1.DefaultSchedulerName) {
				number = NewRevision(set, v1alpha1.DefaultSchedulerName, []*Revision{first}, slices.Collect(maps.Values(live.Cliques))).Number
			}
			if tc.change != nil {
				tc.change(live)
			}
			of := func(cliques, groups bool) bool {
				r := SetReplicasFacts(set, number, nil, slices.Collect(maps.Values(live.Cliques)), slices.Collect(maps.Values(live.Groups)))[0]
				if !cliques {
					r.Cliques = nil
				}
				if !groups {
					r.Groups = nil
				}
				return r.IsUpdated()
			}
			members := GroupReplicasFacts(live.Groups["s-0-g"], nil, []*v1alpha1.PodClique{live.Cliques["s-0-g-0-b"]})
			got := [3]bool{of(true, false), of(false, true), members[0].IsUpdated()}
			if got != tc.want {
				t.Errorf("updated: %v, want %v", got, tc.want)
			}
			if whole := of(true, true); whole != (got[0] && got[1]) {
				t.Errorf("the set's replica is updated: %v", whole)
			}
		})
	}
}

func imageOf(clique int) func(*v1alpha1.PodCliqueSet) {
	return func(s *v1alpha1.PodCliqueSet) {
		s.Spec.Template.Cliques[clique].Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
	}
}

// tell sets the annotation of an object to the number of the second revision.
func tell(o interface{ GetAnnotations() map[string]string }) {
	o.GetAnnotations()[v1alpha1.AnnotationRevision] = "2"
}
