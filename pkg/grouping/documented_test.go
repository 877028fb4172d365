// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	rules "github.com/muster-project/muster/pkg/apis/scheduling/validation"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
)

// TestDocumentedWorkloads: the trees of workloads as the documentation of their projects shows them, all named w, with
// UID u1.
func TestDocumentedWorkloads(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/shapes.txt")
	if err != nil {
		t.Fatal(err)
	}
	shapes := strings.Split(string(content), "\n# ")[1:]
	if len(shapes) < 60 {
		t.Errorf("%d shapes", len(shapes))
	}
	for _, shape := range shapes {
		name, rest, _ := strings.Cut(shape, "\n")
		manifest, want, _ := strings.Cut(rest, "\n=>\n")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
				t.Fatal(err)
			}
			object.SetNamespace("ns")
			object.SetName("w")
			object.SetUID("u1")
			schedule(object.Object)
			if got := treesOf(t, kindOf(t, object), object); got != strings.TrimSpace(want) {
				t.Errorf("%s\n=>\n%s", manifest, got)
			}
		})
	}
}

// schedule gives every pod spec below the node that names no scheduler to muster-scheduler.
func schedule(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, isPodSpec := node["containers"]; isPodSpec && node["schedulerName"] == nil {
			node["schedulerName"] = "muster-scheduler"
		}
		for _, child := range node {
			schedule(child)
		}
	case []any:
		for _, child := range node {
			schedule(child)
		}
	}
}

// treesOf returns the PodGroups of a workload, as the scheduler reads them: a line for each node of their trees.
func treesOf(t *testing.T, kind Kind, object *unstructured.Unstructured) string {
	t.Helper()
	groups, err := kind.PodGroups(object)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return "refused: " + err.Error()
	} else if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, group := range groups {
		tree, errs := rules.BuildTree(&group.Spec)
		if len(errs) > 0 {
			t.Fatalf("PodGroup %s: %v", group.Name, errs)
		}
		constraints := map[string]*v2alpha2.TopologyConstraint{"": group.Spec.TopologyConstraint}
		for _, sub := range group.Spec.SubGroups {
			constraints[sub.Name] = sub.TopologyConstraint
		}
		var add func(g *gang.Group, indent string)
		add = func(g *gang.Group, indent string) {
			line := indent + cmp.Or(g.Name(), group.Name) + ": "
			if g.IsLeaf() {
				line += message.Count(g.Min(), "pod")
			} else {
				line += fmt.Sprintf("%d of %d", g.Min(), len(g.Children()))
			}
			line += inWordsOf(constraints[g.Name()])
			if g == tree.Root() {
				line += " " + string(group.Spec.Preemptibility)
			}
			lines = append(lines, strings.TrimRight(line, " "))
			for _, child := range g.Children() {
				add(child, indent+"  ")
			}
		}
		add(tree.Root(), "")
	}
	return strings.Join(lines, "\n")
}
