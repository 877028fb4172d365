// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTheCRDsAlone: without webhooks the API server itself enforces lower bounds and immutable fields, also through the
// scale subresource.
func TestTheCRDsAlone(t *testing.T) {
	t.Parallel()
	u := newUser(t, separate(t))

	t.Run("manifests", func(t *testing.T) {
		files, err := filepath.Glob("testdata/*/*.yaml")
		if err != nil || len(files) < 10 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			manifest := u.read(string(content))
			for range 2 {
				if _, err := u.apply(manifest); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	})
	t.Run("floors", func(t *testing.T) {
		pcs := u.typed("name: svc", "name: floored", "replicas: 3", "replicas: 3\n        minAvailable: 2", "      replicas: 2\n", "      replicas: 2\n      minAvailable: 1\n")
		group, standalone, _ := u.family(pcs)
		check(t, u.scale(group, 0), "must not be less than minAvailable", "0 is less than 1")
		check(t, u.scale(group, 1))
		check(t, u.scale(standalone, 1), "must not be less than minAvailable", "1 is less than 2")
		check(t, u.scale(standalone, 2))
		check(t, u.scale(standalone, 9))
		check(t, u.patch(standalone, `{"spec":{"minAvailable":null}}`), "spec.minAvailable", "immutable")
		check(t, u.patch(group, `{"spec":{"minAvailable":2}}`), "spec.minAvailable", "immutable")
		check(t, u.patch(group, `{"spec":{"cliqueNames":["worker"]}}`), "spec.cliqueNames", "immutable")
	})
	t.Run("unintended numbers, through scale", func(t *testing.T) {
		pcs := u.typed("name: svc", "name: huge")
		group, standalone, _ := u.family(pcs)
		for _, o := range []client.Object{pcs, group, standalone} {
			check(t, u.scale(o, 2147483647), "spec.replicas", "must not be above", "use fewer replicas")
			check(t, u.scale(o, -1), "spec.replicas")
		}
		job := u.typed("name: svc", "name: job", "spec:\n", "spec:\n  workloadType: Training\n")
		u.create(job)
		check(t, u.scale(job, 2), "spec.replicas", "replicas of a Training workload are fixed")
		check(t, u.scale(job, 0), "spec.replicas", "replicas of a Training workload are fixed")
		check(t, u.scale(job, 1))
	})
	t.Run("limits of Training", func(t *testing.T) {
		job := u.typed("name: svc", "name: limited", "spec:\n", "spec:\n  workloadType: Training\n")
		u.create(job)
		check(t, u.patch(job, `{"spec":{"trainingSpec":{}}}`))
		check(t, u.patch(job, `{"spec":{"trainingSpec":{"maxRestarts":0}}}`))
		check(t, u.patch(job, `{"spec":{"trainingSpec":{"maxRestarts":1}}}`), "spec.trainingSpec", "immutable")
		check(t, u.patch(job, `{"spec":{"trainingSpec":{"maxRuntime":"1h"}}}`), "spec.trainingSpec", "immutable")
		check(t, u.patch(job, `{"spec":{"trainingSpec":null}}`))
		limited := u.typed("name: svc", "name: timed", "spec:\n", "spec:\n  workloadType: Training\n  trainingSpec: {maxRuntime: 1h}\n")
		u.create(limited)
		check(t, u.patch(limited, `{"spec":{"trainingSpec":{"maxRuntime":"60m","maxRestarts":0}}}`))
		check(t, u.patch(limited, `{"spec":{"trainingSpec":null}}`), "spec.trainingSpec", "immutable")
	})
	t.Run("without floors", func(t *testing.T) {
		group, standalone, _ := u.family(u.typed())
		check(t, u.scale(group, 0))
		check(t, u.scale(standalone, 0))
		check(t, u.patch(standalone, `{"spec":{"roleName":"first"}}`))
		check(t, u.patch(standalone, `{"spec":{"roleName":"second"}}`), "spec.roleName", "immutable")
		check(t, u.patch(standalone, `{"spec":{"startsAfter":["x"]}}`), "spec.startsAfter", "immutable")
	})
	for name, tc := range map[string]struct{ change, want []string }{
		"explicit replicas 0":         {[]string{"replicas: 3", "replicas: 0"}, []string{"must be greater than 0"}},
		"minAvailable 0":              {[]string{"minAvailable: 2", "minAvailable: 0"}, []string{"minAvailable"}},
		"minAvailable above":          {[]string{"minAvailable: 2", "minAvailable: 5"}, []string{"must not be less than minAvailable", "4 is less than 5"}},
		"group minAvailable above":    {[]string{"      replicas: 2\n", "      replicas: 2\n      minAvailable: 3\n"}, []string{"must not be less than minAvailable", "2 is less than 3"}},
		"a required topology":         {[]string{"name: frontend", "name: frontend\n      topologyConstraint: {topologyName: t, pack: {required: rack}}"}, nil},
		"a topology without domains":  {[]string{"name: frontend", "name: frontend\n      topologyConstraint: {topologyName: t}"}, []string{"a required or a preferred domain is needed"}},
		"an empty pack":               {[]string{"name: frontend", "name: frontend\n      topologyConstraint: {pack: {}}"}, []string{"required or preferred is needed"}},
		"a required topology twice":   {[]string{"name: frontend", "name: frontend\n      topologyConstraint: {packDomain: rack, pack: {required: rack}}"}, []string{"is the older form of pack.required"}},
		"a duration that is none":     {[]string{"cliques:", "terminationDelay: soon\n    cliques:"}, []string{"terminationDelay"}},
		"a negative terminationDelay": {[]string{"cliques:", "terminationDelay: -1s\n    cliques:"}, []string{"not negative"}},
		"a group's delay alone":       {[]string{"      replicas: 2\n", "      replicas: 2\n      terminationDelay: 1h\n"}, []string{"gang termination is off"}},
		"a group's delay, null":       {[]string{"      replicas: 2\n", "      replicas: 2\n      terminationDelay: null\n"}, nil},
		"a group's delay beside null": {[]string{"cliques:", "terminationDelay: null\n    cliques:", "      replicas: 2\n", "      replicas: 2\n      terminationDelay: 1h\n"}, []string{"gang termination is off"}},
		"limits without Training":     {[]string{"spec:\n", "spec:\n  trainingSpec: {maxRestarts: 1}\n"}, []string{"needs workloadType Training"}},
		"a cliquename twice":          {[]string{"[leader, worker]", "[leader, leader]"}, []string{"cliqueNames"}},
		"two cliques of one name":     {[]string{"name: leader", "name: frontend"}, []string{"Duplicate value"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, u.Create(t.Context(), u.read(service(append([]string{"name: svc", "name: bad"}, tc.change...)...)), client.DryRunAll), tc.want...)
		})
	}
	for name, tc := range map[string]struct{ change, want []string }{
		"minAvailable":        {[]string{"minAvailable: 2", "minAvailable: 3"}, []string{"minAvailable", "immutable"}},
		"a group's minimum":   {[]string{"      replicas: 2\n", "      replicas: 2\n      minAvailable: 2\n"}, []string{"minAvailable", "immutable"}},
		"a group's cliques":   {[]string{"[leader, worker]", "[worker]"}, []string{"cliqueNames", "immutable"}},
		"the set of cliques":  {[]string{"name: frontend", "name: backend"}, []string{"spec.template.cliques", "could not follow"}},
		"one clique more":     {[]string{"cliques:", "cliques:\n    - {name: x, spec: {podSpec: {containers: [{name: main, image: none}]}}}"}, []string{"spec.template.cliques", "could not follow"}},
		"the set of groups":   {[]string{"name: decode", "name: prefill"}, []string{"spec.template.podCliqueScalingGroups", "could not follow"}},
		"no groups":           {[]string{"    podCliqueScalingGroups:\n    - name: decode\n      cliqueNames: [leader, worker]\n      replicas: 2\n", ""}, []string{"spec.template.podCliqueScalingGroups", "could not follow"}},
		"the start order":     {[]string{"cliques:", "cliqueStartupType: CliqueStartupTypeInOrder\n    cliques:"}, []string{"spec.template.cliqueStartupType", "immutable"}},
		"what is the default": {[]string{"cliques:", "cliqueStartupType: CliqueStartupTypeAnyOrder\n    cliques:", "spec:\n", "spec:\n  workloadType: Inference\n"}, nil},
		"the workload type":   {[]string{"spec:\n", "spec:\n  workloadType: Training\n"}, []string{"spec.workloadType", "immutable"}},
		"replicas":            {[]string{"replicas: 1", "replicas: 5", "replicas: 3", "replicas: 5"}, nil},
	} {
		t.Run("update of "+name, func(t *testing.T) {
			const stay = "name: stays"
			if _, err := u.apply(u.read(service("name: svc", stay))); err != nil {
				t.Fatal(err)
			}
			edited := u.read(service(append([]string{"name: svc", stay}, tc.change...)...))
			current := u.read(service("name: svc", stay))
			check(t, u.Get(t.Context(), client.ObjectKeyFromObject(current), current))
			edited.SetResourceVersion(current.GetResourceVersion())
			check(t, u.Update(t.Context(), edited, client.DryRunAll), tc.want...)
		})
	}
	t.Run("the largest lists that are allowed", func(t *testing.T) {
		var text strings.Builder
		text.WriteString("apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata: {name: large}\nspec:\n  template:\n    cliques:\n")
		pad := strings.Repeat("x", 55)
		name := func(i int) string { return pad + "-" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }
		for i := range 256 {
			text.WriteString("    - {name: " + name(i) + ", spec: {podSpec: {containers: [{name: main, image: none}]}}}\n")
		}
		text.WriteString("    podCliqueScalingGroups:\n")
		for i := range 256 {
			text.WriteString("    - {name: g" + name(i) + ", cliqueNames: [" + name(i) + "]}\n")
		}
		for range 2 { // the second time transition rules run
			if _, err := u.apply(u.read(text.String())); err != nil {
				t.Fatal(err)
			}
		}
	})
}
