// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"strings"
	"testing"
)

// TestPodGroupsOfVolcano: what each PodGroup of Volcano needs.
func TestPodGroupsOfVolcano(t *testing.T) {
	t.Parallel()
	const ofRay = "volcano-ray-raycluster-test-cluster-0-pg needs "
	for name, tc := range map[string]struct{ name, spec, group string }{
		"of a RayCluster":                     {"ray-raycluster-test-cluster-0-pg", "{minMember: 3, minResources: {cpu: 3}, queue: default}\nstatus: {phase: Running}", ofRay + "3"},
		"of a class":                          {"a", "{minMember: 2, priorityClassName: high}", "volcano-a needs 2 at high"},
		"no minimum is one of one":            {"a", "{}", "volcano-a needs 1"},
		"a Volcano Job of two tasks":          {"tf-0442a7f3", "{minMember: 3, minTaskMember: {ps: 1, worker: 2}}", "volcano-tf-0442a7f3 needs -1 of ps 1, worker 2"},
		"tasks that need more than the whole": {"a", "{minMember: 3, minTaskMember: {nginx: 6}}", "volcano-a needs 3"},
		"tasks that need less than the whole": {"a", "{minMember: 4, minTaskMember: {ps: 1, worker: 2}}",
			"refused: spec.minMember is 4, and spec.minTaskMember needs 3 pods in all"},
		"a task without a minimum": {"a", "{minMember: 2, minTaskMember: {ps: 0, worker: 2}}", `refused: spec.minTaskMember is 0 for task "ps"`},
		"an open tier":             {"a", "{minMember: 2, networkTopology: {highestTierAllowed: 1}}", "refused: spec.networkTopology of mode hard cannot be obeyed"},
		"a soft tier":              {"a", "{minMember: 2, networkTopology: {mode: soft}}", "volcano-a needs 2"},
		"sub-groups":               {"a", "{minMember: 2, subGroupPolicy: [{subGroupSize: 2}]}", "refused: spec.subGroupPolicy cannot be obeyed"},
		"a name that is too long":  {strings.Repeat("n", 253), "{minMember: 1}", "volcano-" + strings.Repeat("n", 228) + "-bc761382523c6ae2 needs 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkGroups(t, "kind: PodGroup\napiVersion: scheduling.volcano.sh/v1beta1\nmetadata: {name: "+tc.name+", namespace: ns, uid: u1}\nspec: "+tc.spec, tc.group)
		})
	}
}
