// SPDX-License-Identifier: Apache-2.0

package grouping

import "testing"

// TestPodGroupsOfCoscheduling: what each PodGroup of Coscheduling needs.
func TestPodGroupsOfCoscheduling(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ name, spec, group string }{
		"a minimum":                {"nginx", "{scheduleTimeoutSeconds: 10, minMember: 3}", "coscheduling-nginx needs 3"},
		"resources and phases":     {"a", "{minMember: 2, minResources: {cpu: 4}}\nstatus: {phase: Running, running: 1}", "coscheduling-a needs 2"},
		"no minimum is one of one": {"a", "{}", "coscheduling-a needs 1"},
		"zero, past the schema":    {"a", "{minMember: 0}", "coscheduling-a needs 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkGroups(t, "kind: PodGroup\napiVersion: scheduling.x-k8s.io/v1alpha1\nmetadata: {name: "+tc.name+", namespace: ns, uid: u1}\nspec: "+tc.spec, tc.group)
		})
	}
}
