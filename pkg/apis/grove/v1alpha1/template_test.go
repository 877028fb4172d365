// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTemplateNavigation(t *testing.T) {
	t.Parallel()
	template := &PodCliqueSetTemplateSpec{
		Cliques: []*PodCliqueTemplateSpec{{Name: "worker"}, nil, {Name: "front"}, {}, {Name: "leader"}},
		PodCliqueScalingGroupConfigs: []PodCliqueScalingGroupConfig{
			{Name: "decode", CliqueNames: []string{"leader", "worker"}}, {}, {Name: "second", CliqueNames: []string{"worker", ""}}},
	}

	var names []string
	for _, clique := range template.CliquesInOrder() {
		names = append(names, clique.Name)
	}
	if diff := cmp.Diff([]string{"worker", "front", "", "leader"}, names); diff != "" {
		t.Errorf("CliquesInOrder (-want +got):\n%s", diff)
	}
	for name, want := range map[string]*PodCliqueTemplateSpec{
		"worker": template.Cliques[0], "leader": template.Cliques[4], "decode": nil, "": nil} {
		if got := template.Clique(name); got != want {
			t.Errorf("Clique(%q) = %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]*PodCliqueScalingGroupConfig{
		"decode": &template.PodCliqueScalingGroupConfigs[0], "worker": nil, "": nil} {
		if got := template.ScalingGroup(name); got != want {
			t.Errorf("ScalingGroup(%q) = %v, want %v", name, got, want)
		}
	}
	for clique, want := range map[string]*PodCliqueScalingGroupConfig{
		"worker": &template.PodCliqueScalingGroupConfigs[0], "front": nil, "unknown": nil} {
		if got := template.ScalingGroupOf(clique); got != want {
			t.Errorf("ScalingGroupOf(%q) = %v, want %v", clique, got, want)
		}
	}
	template.PodCliqueScalingGroupConfigs[0].MinReadySeconds, template.Cliques[4].Spec.MinReadySeconds, template.Cliques[2].Spec.MinReadySeconds = 30, 40, 5
	for clique, want := range map[string]int32{"worker": 30, "leader": 40, "front": 5} {
		if got := template.PodCliqueSpec(template.Clique(clique)).MinReadySeconds; got != want {
			t.Errorf("minReadySeconds of PodCliques of %s: %d, want %d", clique, got, want)
		}
	}
	template.Cliques, template.PodCliqueScalingGroupConfigs = template.Cliques[:3], template.PodCliqueScalingGroupConfigs[:1]
	if diff := cmp.Diff([]string{"decode", "front"}, template.TopLevelNames()); diff != "" {
		t.Errorf("TopLevelNames (-want +got):\n%s", diff)
	}
}
