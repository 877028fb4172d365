// Package placement plans where the pods of a gang go: all that the tree's minimum needs, or nothing.
//
// Facts come in as a Problem (the tree, the pods it has, the pods that wait) and a World (a cluster that can be asked
// to take one more pod, and to take it back). The decision goes out as a list of placements, or as a Shortfall that
// says what was lacking where.
//
//	plan, short := placement.Minimum(problem, world, placement.Budget{})
//
// Minimum looks for a plan in three steps, each dearer than the one before and only taken if that failed:
//
//  1. fill (fill.go) walks the tree once in order of preference, placing as it goes. Where all fits, it asks the World
//     exactly once per pod.
//  2. pack (pack.go) chooses the children first, then places the pods that are hardest to place first.
//  3. search (search.go) packs other choices of children until one fits or the Budget is spent.
//
// Where all pods are of one class and no class has topology domains, a plan is found whenever there is one, since all
// that matters then is the number of pods, and step 2 tries the choice with the fewest. Otherwise this is a heuristic:
// the World picks the nodes, and only some orders and choices are tried.
//
// The package is pure: no clock, no logger, no Kubernetes; same facts, same plan. Source: design 003.
package placement
