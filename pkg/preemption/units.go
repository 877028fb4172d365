// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"maps"
	"slices"

	"github.com/muster-project/muster/pkg/gang"
)

// Workload is a gang with bound pods, or a pod without a gang, of lower priority than the preemptor.
type Workload struct {
	Name     string     // decides between equal victims
	Priority int32      // of the gang, docs/decisions, G10
	Tree     *gang.Tree // nil: a pod without a gang
	// MinimumProtected: only pods above the minimum may end (semi-preemptible).
	MinimumProtected bool
	Pods             []Pod // bound; those of a leaf in order of preference: the last ones end first
	// Completed are pods that count in their leaves and cannot end, because they have succeeded. nil: there are none.
	Completed gang.Counts
}

// Pod is a bound pod of a Workload.
type Pod struct {
	ID      int    // for the World
	Leaf    string // "" for a PodGroup without sub-groups, and for a pod without a gang
	Amount  int64  // of the extended resources that the preemptor requests
	Running int64  // time since it started, in any unit; the work that is lost
	Budgets []int  // the PodDisruptionBudgets that select it
}

// Rung is the kind of loss, from the least to the greatest.
type Rung int

const (
	SurplusPod      Rung = iota // a single pod above a leaf's minMember
	SurplusSubGroup             // a sub-group above its parent's minSubGroup, with all below it
	PlainPod                    // a pod without a gang
	WholeGang                   // all pods of a gang
)

// unit is what one owner loses at once.
type unit struct {
	workload int // index
	rung     Rung
	group    string // SurplusSubGroup: its name; SurplusPod: the leaf
	pods     []int  // indexes into Workload.Pods
}

// unitsOf returns the units of a workload: single pods, then sub-groups, those that are last in order first, then the
// whole. Units of a gang may share pods, and not all of them may end together: see selection.isAllowed. numbers are 0, 1, 2 and
// so on, at least as many as the workload has pods.
func unitsOf(number int, w *Workload, numbers []int) []unit {
	if w.Tree == nil {
		return []unit{{workload: number, rung: PlainPod, pods: numbers[:1:1]}}
	}
	counts := w.counts(nil)
	var units []unit
	if w.Tree.Satisfied(counts) {
		units = w.surplusUnits(number, counts, numbers)
	}
	if w.MinimumProtected || len(w.Pods) == 0 {
		return units
	}
	return append(units, unit{workload: number, rung: WholeGang, pods: numbers[:len(w.Pods):len(w.Pods)]})
}

// numbersTo returns 0 to n-1.
func numbersTo(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

func (w *Workload) surplusUnits(number int, counts gang.Counts, numbers []int) []unit {
	var singles, groups []unit
	byLeaf := w.podsByLeaf()
	var visit func(g *gang.Group)
	visit = func(g *gang.Group) {
		if g.IsLeaf() {
			if counts[g.Name()] > g.Min() {
				for _, pod := range slices.Backward(byLeaf[g.Name()]) {
					singles = append(singles, unit{number, SurplusPod, g.Name(), numbers[pod : pod+1 : pod+1]})
				}
			}
			return
		}
		spare := g.SatisfiedChildren(counts) > g.Min()
		for _, child := range slices.Backward(g.Children()) {
			satisfied := child.Satisfied(counts)
			if pods := podsBelow(child, byLeaf); len(pods) > 0 && (spare || !satisfied) && !w.hasCompletedBelow(child) {
				groups = append(groups, unit{number, SurplusSubGroup, child.Name(), pods})
			}
			if satisfied {
				visit(child)
			}
		}
	}
	visit(w.Tree.Root())
	return append(singles, groups...)
}

// podsByLeaf returns the pods of each leaf, as indexes.
func (w *Workload) podsByLeaf() map[string][]int {
	byLeaf := map[string][]int{}
	for i, p := range w.Pods {
		byLeaf[p.Leaf] = append(byLeaf[p.Leaf], i)
	}
	return byLeaf
}

// podsBelow returns the pods of the leaves of a group.
func podsBelow(g *gang.Group, byLeaf map[string][]int) []int {
	if g.IsLeaf() {
		return byLeaf[g.Name()]
	}
	var pods []int
	for _, child := range g.Children() {
		pods = append(pods, podsBelow(child, byLeaf)...)
	}
	return pods
}

// hasCompletedBelow reports whether pods of a group have succeeded. Without its other pods it could be below its minimum, and
// not empty.
func (w *Workload) hasCompletedBelow(g *gang.Group) bool {
	if len(w.Completed) == 0 {
		return false
	}
	return w.Completed[g.Name()] > 0 || slices.ContainsFunc(g.Children(), w.hasCompletedBelow)
}

// counts returns the pods by leaf, without those that ended. ended is by index; nil: none.
func (w *Workload) counts(ended func(pod int) bool) gang.Counts {
	counts := gang.Counts{}
	maps.Copy(counts, w.Completed)
	for i, p := range w.Pods {
		if ended == nil || !ended(i) {
			counts[p.Leaf]++
		}
	}
	return counts
}

// MayKeep reports whether a gang may keep the pods that are left after others have ended: its tree keeps its minimum, and so
// does each sub-group that had it, unless none of its pods is left.
func MayKeep(tree *gang.Tree, before, after gang.Counts) bool {
	var keeps func(g *gang.Group) (pods int, ok bool)
	keeps = func(g *gang.Group) (pods int, ok bool) {
		if g.IsLeaf() {
			pods = after[g.Name()]
		}
		for _, child := range g.Children() {
			n, ok := keeps(child)
			if !ok {
				return 0, false
			}
			pods += n
		}
		return pods, pods == 0 || g.Satisfied(after) || !g.Satisfied(before)
	}
	_, ok := keeps(tree.Root())
	return ok && tree.Satisfied(after)
}
