// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// yamlBlocks is how many YAML examples each proposal (docs/decisions) has.
var yamlBlocks = map[string]int{
	"Gang Termination Design Doc": 5,
	"minSubGroups proposal":       10,
	"GREP-291":                    1,
	"Rolling Update":              0,
	"GREP-0285":                   2,
}

const (
	ofSets      = "testdata/requirements/"
	ofPodGroups = "../podgroup/testdata/"
)

// TestEveryExampleOfTheRequirements applies every YAML example of the proposals against the API server with all
// webhooks: complete ones unchanged, fragments completed. Examples that the proposals or docs/decisions reject are
// rejected with the reason; fields without effect are accepted with a warning, and all others without one.
func TestEveryExampleOfTheRequirements(t *testing.T) {
	t.Parallel()
	examples := []struct {
		document, heading string
		block             int // of the document's YAML blocks, from 1; 0: said in the text
		file              string
		refused           []string // parts of the refusal; none: accepted
		warnings          []string // parts of the warnings, one each
	}{
		{document: "Gang Termination Design Doc", heading: "Enabling Gang Termination", block: 1, file: ofSets + "termination-enabled.yaml"},
		{document: "Gang Termination Design Doc", heading: "Disabling Gang Termination", block: 2, file: ofSets + "termination-disabled.yaml"},
		{document: "Gang Termination Design Doc", heading: "Disabling Gang Termination: or set it to null", file: ofSets + "termination-null.yaml"},
		{document: "Gang Termination Design Doc", heading: "PCSG-Level TerminationDelay Override", block: 3, file: ofSets + "termination-override.yaml"},
		{document: "Gang Termination Design Doc", heading: "PCSG-Level TerminationDelay Override: when the set's is nil, validation will fail", file: ofSets + "refused/override-alone.yaml",
			refused: []string{"spec.template.terminationDelay", "is needed where a scaling group has a terminationDelay"}},
		{document: "Gang Termination Design Doc", heading: "MinAvailable at Different Levels: PodClique", block: 4, file: ofSets + "clique-minimum.yaml"},
		{document: "Gang Termination Design Doc", heading: "MinAvailable at Different Levels: PodClique, without an owner", file: ofSets + "refused/clique-alone.yaml",
			refused: []string{"metadata.ownerReferences", "PodCliqueSet"}},
		{document: "Gang Termination Design Doc", heading: "MinAvailable at Different Levels: PodCliqueScalingGroupConfig", block: 5, file: ofSets + "group-minimum.yaml"},

		{document: "minSubGroups proposal", heading: "Example: Single-Level Hierarchy", block: 1, file: ofPodGroups + "example-single-level.yaml"},
		{document: "minSubGroups proposal", heading: "Example: 2-Level Hierarchy", block: 2, file: ofPodGroups + "example-two-level.yaml"},
		{document: "minSubGroups proposal", heading: "Valid: Leaf SubGroups use minMember", block: 3, file: ofPodGroups + "fragment-valid-leaves.yaml"},
		{document: "minSubGroups proposal", heading: "Valid: Mid-level SubGroups use minSubGroup", block: 4, file: ofPodGroups + "fragment-valid-mid-level.yaml"},
		{document: "minSubGroups proposal", heading: "Invalid: Both minMember and minSubGroup specified", block: 5, file: ofPodGroups + "fragment-invalid-both.yaml",
			refused: []string{"spec.minMember", "exclude each other"}},
		{document: "minSubGroups proposal", heading: "Invalid: minSubGroup on leaf SubGroup", block: 6, file: ofPodGroups + "fragment-invalid-leaf-minsubgroup.yaml",
			refused: []string{"spec.subGroups[0].minSubGroup"}},
		{document: "minSubGroups proposal", heading: "Invalid: minSubGroup exceeds child count", block: 7, file: ofPodGroups + "fragment-invalid-exceeds.yaml",
			refused: []string{"spec.minSubGroup", "more than the number of direct children"}},
		{document: "minSubGroups proposal", heading: "Reusing minMember for SubGroup Counting, which was rejected", block: 8, file: ofPodGroups + "appendix-overloaded-single-level.yaml",
			warnings: []string{"this is the old form"}}, // docs/decisions, G3: read as all children
		{document: "minSubGroups proposal", heading: "Critical Limitation with Heterogeneous SubGroups", block: 9, file: ofPodGroups + "appendix-overloaded-two-level.yaml",
			refused: []string{"spec.subGroups", "a sub-group with children has minMember"}},
		{document: "minSubGroups proposal", heading: "Why This Was Rejected: Status Reporting Confusion", block: 10, file: ofSets + "refused/status.yaml",
			refused: []string{"status.minMember", "field not declared in schema"}},

		{document: "GREP-291", heading: "Example Usage", block: 1, file: ofSets + "ondelete-example.yaml"},

		{document: "GREP-0285", heading: "WorkloadType Field", block: 1, file: ofSets + "training.yaml"},
		{document: "GREP-0285", heading: "trainingSpec Fields", block: 2, file: ofSets + "training-limits.yaml"},
	}

	covered := map[string]map[int]bool{}
	files := map[string]bool{}
	for _, e := range examples {
		files[e.file] = true
		if covered[e.document] == nil {
			covered[e.document] = map[int]bool{}
		}
		if e.block > 0 {
			covered[e.document][e.block] = true
		}
		t.Run(e.document+"/"+e.heading, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, cluster)
			content, err := os.ReadFile(e.file)
			if err != nil {
				t.Fatal(err)
			}
			manifest := u.read(string(content))
			_, err = u.apply(manifest)
			if len(e.refused) > 0 {
				for _, part := range e.refused {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("want a refusal with %q, got: %v", part, err)
					}
				}
				current := manifest.DeepCopy()
				if err := u.Get(t.Context(), client.ObjectKeyFromObject(manifest), current); client.IgnoreNotFound(err) != nil || err == nil {
					t.Errorf("refused, and yet there is something of it: %v, %v", current, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var warnings []string
			if all := u.warnings.Take(); all != "" {
				warnings = strings.Split(all, "\n")
			}
			if len(warnings) != len(e.warnings) {
				t.Errorf("%d warnings, want %d: %q", len(warnings), len(e.warnings), warnings)
			}
			for i := range min(len(warnings), len(e.warnings)) {
				if !strings.Contains(warnings[i], e.warnings[i]) {
					t.Errorf("warning %q, want %q in it", warnings[i], e.warnings[i])
				}
			}
			applied := manifest.DeepCopy()
			if err := u.Get(t.Context(), client.ObjectKeyFromObject(manifest), applied); err != nil {
				t.Fatal(err)
			}
			contains(t, "", manifest.Object, applied.Object)
		})
	}

	for document, blocks := range yamlBlocks {
		for block := 1; block <= blocks; block++ {
			if !covered[document][block] {
				t.Errorf("%s: YAML block %d has no test", document, block)
			}
		}
	}
	for _, pattern := range []string{ofSets + "*.yaml", ofSets + "refused/*.yaml", ofPodGroups + "*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(paths, err)
		}
		for _, path := range paths {
			if !files[path] {
				t.Errorf("%s is in no test", path)
			}
		}
	}
}
