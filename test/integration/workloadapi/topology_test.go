// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTopologies: the API server accepts Topologies and ClusterTopologyBindings as they are written for KAI Scheduler
// and Grove, and rejects those without an order of levels.
func TestTopologies(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster)
	list := func(format string, n int) string {
		var items []string
		for i := range n {
			items = append(items, fmt.Sprintf(format, i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	topology := func(levels string) string {
		return "apiVersion: kai.scheduler/v1alpha1\nkind: Topology\nmetadata: {name: bad}\nspec:\n  levels: " + levels
	}
	binding := func(levels string) string {
		return "apiVersion: grove.io/v1alpha1\nkind: ClusterTopologyBinding\nmetadata: {name: bad}\nspec:\n  levels: " + levels
	}
	longest := strings.Repeat("p", 63) + "." + strings.Repeat("q", 63) + "." + strings.Repeat("r", 63) + "." + strings.Repeat("s", 61) + "/" + strings.Repeat("n", 63)
	for name, tc := range map[string]struct {
		content string
		want    []string
	}{
		"one level":                 {topology("[{nodeLabel: rack}]"), nil},
		"16 levels":                 {topology(list("{nodeLabel: example.com/level-%d}", 16)), nil},
		"the longest label":         {topology("[{nodeLabel: " + longest + "}]"), nil},
		"17 levels":                 {topology(list("{nodeLabel: example.com/level-%d}", 17)), []string{"spec.levels", "at most 16 items"}},
		"no levels":                 {topology("[]"), []string{"spec.levels", "at least 1 items"}},
		"a label twice":             {topology("[{nodeLabel: a}, {nodeLabel: b}, {nodeLabel: a}]"), []string{"must be different"}},
		"no label":                  {topology("[{}]"), []string{"spec.levels[0].nodeLabel", "Required"}},
		"a label that is none":      {topology("[{nodeLabel: a/b/c}]"), []string{"spec.levels[0].nodeLabel", "must be the key of a label"}},
		"a label that is too long":  {topology("[{nodeLabel: " + strings.Repeat("n", 64) + "}]"), []string{"must be the key of a label"}},
		"levels below the host":     {topology("[{nodeLabel: kubernetes.io/hostname}, {nodeLabel: numa}]"), []string{"must be the last level"}},
		"binding with one level":    {binding("[{domain: rack, key: rack}]"), nil},
		"binding with 16 levels":    {binding(list("{domain: level-%[1]d, key: example.com/level-%[1]d}", 16)), nil},
		"binding without levels":    {binding("[]"), []string{"spec.levels", "at least 1 items"}},
		"a domain twice":            {binding("[{domain: rack, key: a}, {domain: rack, key: b}]"), []string{"the domains of the levels must be different"}},
		"a key twice":               {binding("[{domain: rack, key: a}, {domain: host, key: a}]"), []string{"the keys of the levels must be different"}},
		"a domain that is none":     {binding("[{domain: Rack, key: a}]"), []string{"spec.levels[0].domain"}},
		"a key that is none":        {binding("[{domain: rack, key: a/b/c}]"), []string{"must be the key of a label"}},
		"two bindings of one name":  {binding("[{domain: rack, key: a}]\n  schedulerTopologyBindings: " + list("{schedulerName: s, topologyReference: t%d}", 2)), []string{"the schedulerNames must be different"}},
		"a binding without its end": {binding("[{domain: rack, key: a}]\n  schedulerTopologyBindings: [{schedulerName: s}]"), []string{"topologyReference"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, u.Create(t.Context(), u.read(tc.content), client.DryRunAll), tc.want...)
		})
	}
	for _, file := range []string{"topology.yaml", "clustertopologybinding.yaml"} {
		content, err := os.ReadFile(filepath.Join("testdata", "topology", file))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := u.apply(u.read(string(content))); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
	t.Run("wider than above", func(t *testing.T) {
		check(t, u.Create(t.Context(), u.read(`
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: wider}
spec:
  topologyConstraint: {topology: gpu-fabric, requiredTopologyLevel: kubernetes.io/hostname}
  subGroups: [{name: a, minMember: 1, topologyConstraint: {topology: gpu-fabric, requiredTopologyLevel: topology.example.com/rack}}]`), client.DryRunAll),
			`spec.subGroups[0].topologyConstraint.requiredTopologyLevel`, `is wider than "kubernetes.io/hostname", which the PodGroup requires`)
		check(t, u.Create(t.Context(), u.read(service("    cliques:\n", "    topologyConstraint: {topologyName: gpu-fabric, pack: {required: host}}\n    cliques:\n",
			"name: frontend\n", "name: frontend\n      topologyConstraint: {pack: {required: rack}}\n")), client.DryRunAll),
			`spec.template.cliques[0].topologyConstraint.pack.required`, `is wider than "host", which the PodCliqueSet requires`)
	})
	t.Run("levels are immutable", func(t *testing.T) {
		existing := u.read("apiVersion: kai.scheduler/v1alpha1\nkind: Topology\nmetadata: {name: gpu-fabric}")
		check(t, u.patch(existing, `{"metadata":{"labels":{"a":"b"}}}`))
		check(t, u.patch(existing, `{"spec":{"levels":[{"nodeLabel":"topology.example.com/rack"}]}}`), "spec.levels", "immutable", "running pods were placed by these levels")
	})
	t.Run("those of a binding are not", func(t *testing.T) {
		existing := u.read("apiVersion: grove.io/v1alpha1\nkind: ClusterTopologyBinding\nmetadata: {name: gpu-fabric}")
		check(t, u.patch(existing, `{"spec":{"levels":[{"domain":"rack","key":"topology.example.com/rack"}]}}`))
	})
}
