package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// validateStartOrder checks startsAfter where it is acted on. The order of the
// list, CliqueStartupTypeInOrder, has no cycle.
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
	parents := make([][]int, len(template.Cliques)) // self and unknown names left out
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
	for _, cycle := range cycles(parents) {
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

// cycles returns cycles of the graph, each node followed by one of its parents,
// so many that without them no cycle would be left, but no more than a few. Each
// is found once, by its node of the lowest index.
func cycles(parents [][]int) [][]int {
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
