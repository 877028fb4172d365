// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// ofGuide returns the example of docs/workloads.md: the rules, and a workload.
func ofGuide(t *testing.T) (rules, manifest string) {
	t.Helper()
	guide, err := os.ReadFile("../../docs/workloads.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "\n## Kinds of your own\n")
	blocks := strings.Split(rest, "\n```yml\n")
	if len(blocks) < 3 {
		t.Fatal("docs/workloads.md has no example of a rule and a workload")
	}
	rules, _, _ = strings.Cut(blocks[1], "\n```\n")
	manifest, _, _ = strings.Cut(blocks[2], "\n```\n")
	return rules, manifest
}

// TestRules: the example of the guide, and what becomes of its workload when it changes.
func TestRules(t *testing.T) {
	t.Parallel()
	rules, manifest := ofGuide(t)
	kinds, err := ParseRules([]byte(rules))
	if err != nil || len(kinds) != 1 || kinds[0].Name() != "PyTorchJob" {
		t.Fatal(kinds, err)
	}
	const name = "pytorchjob-bert-0442a7f3"
	for what, tc := range map[string]struct{ old, new, want string }{ // the manifest with old replaced
		"as it is":                      {"", "", name + ": 2 of 2\n  master: 1 pod\n  worker: 3 pods"},
		"suspended":                     {"spec:\n", "spec:\n  runPolicy: {suspend: true}\n", ""},
		"elastic":                       {"spec:\n", "spec:\n  elasticPolicy: {minReplicas: 2}\n", name + ": 2 of 2\n  master: 1 pod\n  worker: 2 pods"},
		"workers alone":                 {"Master:", "Other:", name + ": 3 pods"},
		"without marks":                 {"min-member", "other", ""},
		"of the default scheduler":      {"muster-scheduler", "default-scheduler", ""},
		"scaled to zero":                {"replicas: 3", "replicas: 0", name + ": 1 pod"},
		"a number that is none":         {"replicas: 3", `replicas: "3"`, "refused: the rule for PyTorchJob gives 3 for pods[1].replicas, which is no number of pods: its pods wait"},
		"a negative number":             {"replicas: 3", "replicas: -3", "refused: the rule for PyTorchJob gives -3 for pods[1].replicas"},
		"two templates of one leaf":     {"subgroup-name: worker", "subgroup-name: master", `refused: two of its pod templates have the same label kai.scheduler/subgroup-name, "master"`},
		"a field that a rule relies on": {"pytorchReplicaSpecs", "replicaSpecs", "refused: the rule for PyTorchJob cannot be evaluated, pods[0].template: no such key: pytorchReplicaSpecs"},
		"a template that is none":       {"template: {metadata: {labels: {kai.scheduler/subgroup-name: master", "template: []\n      x: {metadata: {labels: {kai.scheduler/subgroup-name: master", "refused: the rule for PyTorchJob gives no pod template for pods[0].template"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			manifest := manifest
			if tc.old != "" {
				manifest = strings.ReplaceAll(manifest, tc.old, tc.new)
			}
			json, err := yaml.YAMLToJSON([]byte(manifest))
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(json); err != nil { // numbers are as in a cache
				t.Fatal(err)
			}
			object.SetNamespace("ns")
			object.SetUID(types.UID("u1"))
			if got := treesOf(t, kinds[0], object); got != tc.want && !(strings.HasPrefix(tc.want, "refused") && strings.HasPrefix(got, tc.want)) {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestRuleThatWritesATemplate: a kind without pod templates, of which a rule knows what its controller makes.
func TestRuleThatWritesATemplate(t *testing.T) {
	t.Parallel()
	kinds, err := ParseRules([]byte(`
kinds:
- apiVersion: example.com/v1
  kind: Solver
  pods:
  - template: "{'metadata': {'labels': {'scheduling.run.ai/min-member': 'all', 'team': object.spec.team}}, 'spec': {'schedulerName': object.spec.scheduler}}"
    replicas: object.spec.size
`))
	if err != nil {
		t.Fatal(err)
	}
	for scheduler, want := range map[string]string{"muster-scheduler": "solver-a-0442a7f3: 3 pods", "default-scheduler": ""} {
		solver := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Solver",
			"spec": map[string]any{"size": int64(3), "team": "x", "scheduler": scheduler}}}
		solver.SetNamespace("ns")
		solver.SetName("a")
		solver.SetUID("u1")
		if got := treesOf(t, kinds[0], solver); got != want {
			t.Errorf("%s: %q, want %q", scheduler, got, want)
		}
	}
}

// TestRulesThatAreWrong: every error is listed.
func TestRulesThatAreWrong(t *testing.T) {
	t.Parallel()
	if kinds, err := ParseRules(nil); err != nil || len(kinds) > 0 {
		t.Error(kinds, err)
	}
	if _, err := ParseRules([]byte("kinds: [{kindd: X}]")); err == nil || !strings.Contains(err.Error(), `unknown field "kindd"`) {
		t.Error(err)
	}
	_, err := ParseRules([]byte(`
kinds:
- {apiVersion: example.com/v1, kind: Job, pods: []}
- {apiVersion: a/b/c, kind: X, suspended: "1", pods: [{template: object.spec., replicas: "'3'"}]}
- {apiVersion: example.com/v1, kind: X, pods: [{template: object.spec.template, replicas: other.spec.replicas, minimum: "true"}]}
`))
	want := []string{
		`kinds[0]: there is a rule for a kind of the name "Job" already`,
		`kinds[0].pods: is empty`,
		`kinds[1]: needs an apiVersion and a kind, has "a/b/c" and "X"`,
		`kinds[1].suspended: is of type int, must be bool`,
		`kinds[1].pods[0].template: ERROR`,
		`kinds[1].pods[0].replicas: is of type string, must be int`,
		`kinds[2]: there is a rule for a kind of the name "X" already`,
		`kinds[2].pods[0].replicas: ERROR`,
		`kinds[2].pods[0].minimum: is of type bool, must be int`,
	}
	for _, line := range want {
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%v\nlacks %s", err, line)
		}
	}
}
