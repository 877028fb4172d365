// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestUsersHaveTheAPIsByTheClustersRoles collects the rules as the ClusterRoles view, edit and admin of a cluster do.
func TestUsersHaveTheAPIsByTheClustersRoles(t *testing.T) {
	t.Parallel()
	read := []string{"get", "list", "watch"}
	change := []string{"delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	all := append([]string{"create"}, change...)
	scale := []string{"get", "list", "patch", "update", "watch"}
	topologies := map[string][]string{
		"grove.io/clustertopologybindings": read, "grove.io/clustertopologybindings/status": read, "kai.scheduler/topologies": read,
	}
	view := map[string][]string{
		"grove.io/podcliquesets": read, "grove.io/podcliquesets/scale": read, "grove.io/podcliquesets/status": read,
		"grove.io/podcliquescalinggroups": read, "grove.io/podcliquescalinggroups/scale": read, "grove.io/podcliquescalinggroups/status": read,
		"grove.io/podcliques": read, "grove.io/podcliques/scale": read, "grove.io/podcliques/status": read,
		"scheduling.run.ai/podgroups": read, "scheduling.run.ai/podgroups/status": read,
	}
	edit := map[string][]string{
		"grove.io/podcliquesets": all, "grove.io/podcliquesets/scale": scale, "grove.io/podcliquesets/status": read,
		"grove.io/podcliquescalinggroups": change, "grove.io/podcliquescalinggroups/scale": scale, "grove.io/podcliquescalinggroups/status": read,
		"grove.io/podcliques": change, "grove.io/podcliques/scale": scale, "grove.io/podcliques/status": read,
		"scheduling.run.ai/podgroups": all, "scheduling.run.ai/podgroups/status": read,
	}
	maps.Copy(view, topologies)
	maps.Copy(edit, topologies)
	want := map[string]map[string][]string{"view": view, "edit": edit, "admin": edit}
	got := map[string]map[string][]string{}
	for role := range want {
		got[role] = map[string][]string{}
		for _, o := range readBase(t) {
			clusterRole, ok := o.Object.(*rbacv1.ClusterRole)
			if !ok || clusterRole.Labels["rbac.authorization.k8s.io/aggregate-to-"+role] != "true" {
				continue
			}
			for _, rule := range clusterRole.Rules {
				for _, resource := range rule.Resources {
					key := rule.APIGroups[0] + "/" + resource
					verbs := append(got[role][key], rule.Verbs...)
					slices.Sort(verbs)
					got[role][key] = slices.Compact(verbs)
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights by role and resource (-want +got):\n%s", diff)
	}
	for _, o := range readCRDs(t) {
		spec := o.Object.(*apiextensionsv1.CustomResourceDefinition).Spec
		if key := spec.Group + "/" + spec.Names.Plural; got["view"][key] == nil {
			t.Errorf("view does not have %s", key)
		}
	}
}
