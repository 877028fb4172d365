// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/gang"
)

// The marks of the bound pods prove that a gang never had its minimum as follows:
//
//  1. A plan for a minimum is minimal in the members that its marks name: without any of them, the plan and the pods
//     bound before it do not satisfy the tree (NeededLeaves).
//  2. The mark of the latest plan records that the gang never had its minimum before that plan. The scheduler that made
//     the plan had no bound pod of the gang, or had this same proof for the previous plan.
//  3. A member that this plan's marks name still waits. A pod is never unbound, so it was not bound in the meantime.
//     With 1, the pods bound since the plan was made do not satisfy the tree.
//  4. The PodGroup has the generation that was planned, so the tree is the same. A scheduler that had the proof and has
//     watched the gang since then does not need this: it has observed that no later tree was satisfied. It may observe
//     the last binding of the plan after a change of the tree; then the proof is void (CompletedPlan).
//  5. The pods that are known to have been bound do not satisfy the tree. This covers pods that another scheduler
//     bound. By 2, a completed plan of which no pod is bound had ended before the latest plan: its failed pods do not
//     count.
//
// Members are named in the order in which they are bound, cyclically. If a plan was cut short, some bound member
// therefore has a successor that is not bound, and its mark names this successor. It is found by looking up each
// waiting pod in the set of named members; no search is needed, and other waiting pods (surplus) do not matter.
//
// The objects cannot show a later plan of which no pod is left while all named members of an earlier plan wait. This
// requires two crashes, a later plan of other members, and the loss of all pods that it bound, before the condition
// Admitted was written once.

// MarkedPod is what a proof uses of a pod of a gang.
type MarkedPod struct {
	// Mark is the pod's mark, the zero Mark if it has none.
	Mark *Mark
	// IsSigned is true if the mark was read from, or written to, an annotation.
	IsSigned bool
	// Tag is the PodTag of the pod's UID.
	Tag uint64
	// Leaf is the leaf to which the pod counts, unless IsMisplaced.
	Leaf        string
	IsMisplaced bool
	// NeverBound is true if the pod has never been bound.
	NeverBound bool
	// HasEnded is true if the pod has neither succeeded nor is bound (docs/decisions, G11). It is ignored if
	// NeverBound.
	HasEnded bool
	// IsOfEarlierRun is true if the pod succeeded in a finished run of the gang (docs/decisions, G9).
	IsOfEarlierRun bool
}

// PlannedGroup is what a proof uses of a PodGroup.
type PlannedGroup struct {
	UID        types.UID
	Generation int64
	Tree       *gang.Tree
}

// CompletedPlan reports whether every member that the marks of one of the gang's plans for this PodGroup name has been
// bound. Then the tree of that plan may have been satisfied, although the current one is not. Plans that ended before a
// later one do not count (completedPlans).
func CompletedPlan(group types.UID, pods iter.Seq[MarkedPod]) bool {
	for _, hasEnded := range completedPlans(group, pods) {
		if !hasEnded {
			return true
		}
	}
	return false
}

// completedPlans returns the plans of which every named member has been bound, and whether they ended with a run that
// failed: all their pods have ended, and by the mark of a later plan the gang was never whole before that one.
func completedPlans(group types.UID, pods iter.Seq[MarkedPod]) map[PlanID]bool {
	bound, neverWhole := map[uint64]bool{}, int64(0)
	for pod := range pods {
		if !pod.NeverBound {
			bound[pod.Tag] = true
			if pod.Mark.GroupUID == group && pod.Mark.NeverWhole {
				neverWhole = max(neverWhole, pod.Mark.Sequence)
			}
		}
	}
	hasEnded, incomplete := map[PlanID]bool{}, map[PlanID]bool{}
	for pod := range pods {
		if pod.NeverBound || pod.Mark.GroupUID != group || pod.IsOfEarlierRun {
			continue
		}
		plan := pod.Mark.PlanID()
		others, known := hasEnded[plan]
		hasEnded[plan] = pod.HasEnded && plan.Sequence < neverWhole && (others || !known)
		waits := func(tag uint64) bool { return !bound[tag] }
		incomplete[plan] = incomplete[plan] || slices.ContainsFunc(pod.Mark.NextTags, waits)
	}
	maps.DeleteFunc(hasEnded, func(plan PlanID, _ bool) bool { return incomplete[plan] })
	return hasEnded
}

// ProvesPartial reports whether the marks of a gang's pods prove that the gang never had its minimum (see above).
func ProvesPartial(group PlannedGroup, pods iter.Seq[MarkedPod]) bool {
	var latest *Mark
	ambiguous := false
	ever := gang.Counts{} // pods bound at any time, of those that exist, without those of plans that have ended
	completed := completedPlans(group.UID, pods)
	for pod := range pods {
		if pod.NeverBound || pod.IsOfEarlierRun {
			continue
		}
		if !pod.IsMisplaced && !completed[pod.Mark.PlanID()] {
			ever[pod.Leaf]++
		}
		switch {
		case pod.Mark.GroupUID != group.UID:
		case latest == nil || pod.Mark.Sequence > latest.Sequence:
			latest, ambiguous = pod.Mark, false
		case pod.Mark.Sequence == latest.Sequence && !pod.Mark.IsOfSamePlan(latest):
			ambiguous = true
		}
	}
	if latest == nil || ambiguous || !latest.NeverWhole || latest.Generation != group.Generation || group.Tree.Satisfied(ever) {
		return false
	}
	named := map[uint64]bool{}
	for pod := range pods {
		if !pod.NeverBound && pod.IsSigned && pod.Mark.IsOfSamePlan(latest) {
			for _, tag := range pod.Mark.NextTags {
				named[tag] = true
			}
		}
	}
	for pod := range pods {
		if pod.NeverBound && named[pod.Tag] {
			return true
		}
	}
	return false
}

// NeededLeaves returns the leaves that cannot lose a pod: with one pod fewer, counts would not satisfy the tree.
func NeededLeaves(tree *gang.Tree, counts gang.Counts) map[string]bool {
	needed := map[string]bool{}
	var visit func(group *gang.Group)
	visit = func(group *gang.Group) {
		switch {
		case group.IsLeaf():
			if counts[group.Name()] == group.Min() {
				needed[group.Name()] = true
			}
		case group.SatisfiedChildren(counts) == group.Min():
			for _, child := range group.Children() {
				if child.Satisfied(counts) {
					visit(child)
				}
			}
		}
	}
	if tree.Satisfied(counts) {
		visit(tree.Root())
	}
	return needed
}
