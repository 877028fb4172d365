package desired

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/observed"
)

// A set of generation 2 whose PodCliques were not touched yet once said that all its replicas were updated.
func TestWithoutOutdated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit   func(*v1alpha1.PodCliqueSet)
		change func(Children) // before the edit
		want   [3]bool        // is the clique updated, the group, and as its own controller sees it
	}{
		"nothing was edited": {func(*v1alpha1.PodCliqueSet) {}, nil, [3]bool{true, true, true}},
		"the clique's image": {func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
		}, nil, [3]bool{false, true, true}},
		"a label of the group's clique": {func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Template.Cliques[1].Labels = map[string]string{"team": "a"}
		}, nil, [3]bool{true, false, false}},
		"the priority class": {func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.PriorityClassName = "high" }, nil, [3]bool{}},
		"replicas alone":     {func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.Cliques[0].Spec.Replicas = 7 }, nil, [3]bool{true, true, true}},
		"a user's own label on a PodClique": {func(*v1alpha1.PodCliqueSet) {}, func(c Children) {
			c.Cliques["s-0-a"].Labels["argocd.argoproj.io/instance"] = "prod"
		}, [3]bool{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := makeSet("s", 1).clique("a", 1).clique("b", 1).group("g", ptr.To[int32](1), nil, "b").PodCliqueSet
			live := apply(set, Children{})
			for _, c := range live.Cliques {
				c.Status.ReadyReplicas, c.Status.UpdatedReplicas, c.Status.ObservedGeneration = 1, 1, c.Generation
			}
			live.Groups["s-0-g"].Status.UpdatedReplicas = 1
			if tc.change != nil {
				tc.change(live)
			}
			tc.edit(set)
			cliques := slices.Collect(maps.Values(live.Cliques))
			sets := observed.SetReplicas(set, cliques, slices.Collect(maps.Values(live.Groups)))
			WithoutOutdated(set, sets, live.Cliques)
			groups := observed.GroupReplicas(live.Groups["s-0-g"], []*v1alpha1.PodClique{live.Cliques["s-0-g-0-b"]})
			WithoutOutdatedMembers(set, groups, cliques)
			got := [3]bool{sets[0].Cliques[0].IsUpdated(), sets[0].Groups[0].IsUpdated(), lifecycle.GroupReplica.IsUpdated(groups[0])}
			if got != tc.want {
				t.Errorf("updated: %v, want %v", got, tc.want)
			}
		})
	}
}
