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
	// Undivided are the names of the groups of the tree whose pods end together or not at all, "" for the root.
	Undivided map[string]bool
	Pods      []Pod // bound; those of a leaf in order of preference: the last ones end first
	// Completed are pods that count in their leaves and cannot end, because they have succeeded. nil: there are none.
	Completed gang.Counts
}

// Pod is a bound pod of a Workload.
type Pod struct {
	ID      int    // for the World
	Leaf    string // "" for a PodGroup without sub-groups, and for a pod without a gang
	Amount  int64  // of the extended resources that the preemptor requests
	Running int64  // time since it started, in any unit; the work that is lost
	Grace   int64  // seconds that it may take to end
	Budgets []int  // the PodDisruptionBudgets that select it
	Kept    bool   // it is no victim, and neither is what would end with it
}

// Rung is the kind of loss, from the least to the greatest.
type Rung int

const (
	SurplusPod      Rung = iota // a single pod above a leaf's minMember
	SurplusSubGroup             // a sub-group above its parent's minSubGroup, with all below it
	PlainPod                    // a pod without a gang
	WholeGang                   // all pods of a gang
)

// String returns the name of the rung in metrics.
func (r Rung) String() string {
	return [...]string{"surplus-pod", "surplus-sub-group", "plain-pod", "whole-gang"}[r]
}

// unit is what one owner loses at once.
type unit struct {
	workload int // index
	rung     Rung
	group    *gang.Group // SurplusSubGroup: it; SurplusPod: the leaf; otherwise nil
	pods     []int       // indexes into Workload.Pods
}

// limit returns the group whose minimum limits how many units of this kind may end together: the leaf of a single pod,
// the parent of a sub-group. nil: any may end.
func (u *unit) limit(counts gang.Counts) *gang.Group {
	switch {
	case u.rung == SurplusPod:
		return u.group
	case u.rung == SurplusSubGroup && u.group.Satisfied(counts): // one that is below its minimum is not needed
		return u.group.Parent()
	}
	return nil
}

// spareOf returns how many units that a group limits may end together.
func spareOf(g *gang.Group, counts gang.Counts) int {
	if g.IsLeaf() {
		return counts[g.Name()] - g.Min()
	}
	return g.SatisfiedChildren(counts) - g.Min()
}

// appendUnits appends the units of a workload: single pods, then sub-groups, those that are last in order first, then
// the whole. A unit contains another one, or they have no pod in common. Not all of them may end together: see
// unit.limit. counts are its pods by leaf, nil without a tree. numbers are 0, 1, 2 and so on, at least as many as the
// workload has pods.
func appendUnits(units []unit, number int, w *Workload, counts gang.Counts, numbers []int) []unit {
	if w.Tree == nil {
		return append(units, unit{workload: number, rung: PlainPod, pods: numbers[:1:1]})
	}
	if w.Tree.Satisfied(counts) && !w.Undivided[w.Tree.Root().Name()] {
		units = w.appendSurplusUnits(units, number, counts, numbers)
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

func (w *Workload) appendSurplusUnits(units []unit, number int, counts gang.Counts, numbers []int) []unit {
	addSingles := func(leaf *gang.Group, pods []int) {
		if spareOf(leaf, counts) > 0 {
			for _, pod := range slices.Backward(pods) {
				units = append(units, unit{number, SurplusPod, leaf, numbers[pod : pod+1 : pod+1]})
			}
		}
	}
	if root := w.Tree.Root(); root.IsLeaf() {
		addSingles(root, numbers[:len(w.Pods)])
		return units
	}
	var groups []unit
	byLeaf := w.podsByLeaf()
	var visit func(g *gang.Group)
	visit = func(g *gang.Group) {
		if g.IsLeaf() {
			addSingles(g, byLeaf[g.Name()])
			return
		}
		spare := spareOf(g, counts) > 0
		for _, child := range slices.Backward(g.Children()) {
			satisfied := child.Satisfied(counts)
			if pods := podsBelow(child, byLeaf); len(pods) > 0 && (spare || !satisfied) && !w.hasCompletedBelow(child) {
				groups = append(groups, unit{workload: number, rung: SurplusSubGroup, group: child, pods: pods})
			}
			if satisfied && !w.Undivided[child.Name()] {
				visit(child)
			}
		}
	}
	visit(w.Tree.Root())
	return append(units, groups...)
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

// hasCompletedBelow reports whether pods of a group have succeeded. Without its other pods it could be below its
// minimum, and not empty.
func (w *Workload) hasCompletedBelow(g *gang.Group) bool {
	if len(w.Completed) == 0 {
		return false
	}
	return w.Completed[g.Name()] > 0 || slices.ContainsFunc(g.Children(), w.hasCompletedBelow)
}

// count adds the pods by leaf to the counts.
func (w *Workload) count(counts gang.Counts) {
	maps.Copy(counts, w.Completed)
	for i := range w.Pods {
		counts[w.Pods[i].Leaf]++
	}
}

// MayKeep reports whether a gang may keep the pods that are left after others have ended: its tree keeps its minimum,
// and so does each sub-group that had it, unless none of its pods is left.
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
