// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// validateStartOrder validates startsAfter if the startup type is Explicit, the only one that uses it. The order of
// the list, CliqueStartupTypeInOrder, cannot contain a cycle.
func validateStartOrder(template *v1alpha1.PodCliqueSetTemplateSpec) field.ErrorList {
	if *template.StartupType != v1alpha1.CliqueStartupTypeExplicit {
		return nil
	}
	index := map[string]int{}
	for i, clique := range template.Cliques {
		if clique != nil {
			index[clique.Name] = i
		}
	}
	var errs field.ErrorList
	parents := make([][]int, len(template.Cliques)) // without the clique itself and without unknown names
	for i, clique := range template.Cliques {
		if clique == nil {
			continue
		}
		seen := map[string]bool{}
		for k, name := range clique.Spec.StartsAfter {
			path := cliquesPath.Index(i).Child("spec", "startsAfter").Index(k)
			parent, known := index[name]
			switch {
			case name == "":
				errs = append(errs, field.Required(path, "the name of a clique"))
			case name == clique.Name:
				errs = append(errs, field.Invalid(path, name, "a clique cannot start after itself"))
			case seen[name]:
				errs = append(errs, field.Duplicate(path, name))
			case !known:
				errs = append(errs, &field.Error{Type: field.ErrorTypeNotFound, Field: path.String(), BadValue: name, Detail: "no clique of the template has this name"})
			default:
				parents[i] = append(parents[i], parent)
			}
			seen[name] = true
		}
	}
	for _, cycle := range findCycles(parents) {
		const few = 8
		var names []string
		for _, i := range cycle[:min(len(cycle), few)] {
			names = append(names, template.Cliques[i].Name)
		}
		if more := len(cycle) - few; more > 0 {
			names = append(names, fmt.Sprintf("(%d more)", more))
		}
		names = append(names, template.Cliques[cycle[0]].Name)
		path := cliquesPath.Index(cycle[0]).Child("spec", "startsAfter")
		errs = append(errs, field.Invalid(path, template.Cliques[cycle[1]].Name,
			fmt.Sprintf("none of these could ever start, each waits for the next: %s", strings.Join(names, " -> "))))
	}
	return errs
}

// findCycles returns cycles of the graph, each node followed by one of its parents. Without the returned cycles no cycle
// would be left, unless there are more than a few, in which case only the first few are returned. Each cycle is
// returned once and begins with its node of the lowest index.
func findCycles(parents [][]int) [][]int {
	const (
		unseen = iota
		onPath
		done
	)
	const few = 8
	var found [][]int
	state, path := make([]int, len(parents)), []int{}
	var visit func(i int)
	visit = func(i int) {
		state[i], path = onPath, append(path, i)
		for _, parent := range parents[i] {
			switch state[parent] {
			case unseen:
				visit(parent)
			case onPath:
				if len(found) == few {
					continue
				}
				cycle := slices.Clone(path[slices.Index(path, parent):])
				lowest := slices.Index(cycle, slices.Min(cycle))
				found = append(found, slices.Concat(cycle[lowest:], cycle[:lowest]))
			}
		}
		state[i], path = done, path[:len(path)-1]
	}
	for i := range parents {
		if state[i] == unseen {
			visit(i)
		}
	}
	return found
}
