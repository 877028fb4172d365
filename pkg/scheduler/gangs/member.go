// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/marks"
)

// member is one pod of a gang. Guarded by Registry.mu. After every change recount must update the gang's
// numbers.
type member struct {
	pod   *corev1.Pod // latest observed version; never modified
	gang  *gangState
	leaf  string // "" for a PodGroup without sub-groups; meaningless if misplaced != ""
	class string // podgroup.ClassKey: equal for pods that no filter distinguishes
	state count.State
	gpus  int64  // number of GPUs that the pod requests
	node  string // planned, assumed or bound
	since time.Time

	misplaced string // why the pod does not count towards any leaf, "carries sub-group ..."; "" = it has a leaf
	gate      string // why another plugin keeps it from the scheduling queue: "is gated by ..."; "" = no plugin does
	leaving   bool   // bound, but released (partial.go): it does not count from that decision on
	parting   parting

	run       int        // see membership.Run
	beginsRun bool       // the same
	tag       uint64     // identifies it in marks
	mark      marks.Mark // verified, or the mark of the plan whose binding was posted; zero = none
	markText  string     // the annotation that mark was read from

	entry count.Entry // its place in the gang's numbers
	row   int         // 1 + its index in gangState.rows; 0: none
}

// anyTree is used to count pods while the gang has no tree: all pods are in one leaf.
var anyTree = func() *gang.Tree {
	tree, err := gang.Build(gang.Node{}, nil)
	if err != nil {
		panic(err)
	}
	return tree
}()

// countingTree returns the tree by which the gang's pods are counted.
func (g *gangState) countingTree() *gang.Tree {
	if g.tree == nil {
		return anyTree
	}
	return g.tree
}

// recountAll computes the numbers anew, for another tree.
func (g *gangState) recountAll() {
	g.numbers = count.NewNumbers(g.countingTree())
	g.partial.fresh = false
	g.rows = g.rows[:0]
	g.placed = newPlacedPods(g)
	for _, m := range g.members {
		m.entry, m.row = count.Entry{UID: m.pod.UID}, 0
	}
	for _, m := range g.members {
		m.setLeaf()
		m.recount()
	}
}

// recount updates the numbers after a member has changed. It must be called after every change of a member.
func (m *member) recount() {
	p := m.counted()
	if m.gang.numbers.Set(&m.entry, &p) {
		m.gang.partial.fresh = false
	}
	m.gang.updateRow(m)
	if m.gang.placed.update(m) {
		m.gang.recordOwnChange()
	}
}

// countedPod returns the member as it is counted.
func (m *member) counted() count.Pod {
	p := count.Pod{
		Pod: m.pod, State: m.state, Mark: m.mark.PlanID(), GPUs: m.gpus, IsReleased: m.leaving, IsGated: m.gate != "",
		IsFormer: m.isFormer(), IsSlow: m.gang.opts.isSlow(m.pod),
		IsOurs: m.gang.profiles.Has(m.pod.Spec.SchedulerName), IsOwn: m.gang.group != nil && m.gang.wasPlaced(m),
	}
	if m.misplaced == "" {
		p.Leaf = m.gang.countingTree().Group(m.leaf)
	}
	return p
}

// removeFromNumbers removes a member from the numbers.
func (g *gangState) removeFromNumbers(m *member) {
	g.numbers.Remove(&m.entry)
	g.updateRow(m)
	g.placed.update(m)
}

// isBound reports whether the member counts as bound (docs/decisions, G11).
func (m *member) isBound() bool { return count.IsBound(m.pod, m.state, m.leaving) }

// hasCompleted reports whether the member succeeded in the current run (docs/decisions, G9).
func (g *gangState) hasCompleted(m *member) bool {
	return m.state == count.Succeeded && g.numbers.IsCurrentCompletion(&m.entry)
}

// holdsOwnPods reports whether the gang has bound pods that, by their marks, were bound by a plan for this PodGroup.
func (g *gangState) holdsOwnPods() bool { return g.numbers.Flagged(count.IsOwn) > 0 }

// isCandidate reports whether the gang may be partial, judged by the numbers alone: it was never admitted, and pods
// carry marks of plans other than the one that is being bound.
func (g *gangState) isCandidate() bool {
	if g.tree == nil || g.group == nil || g.admitted || !g.holdsOwnPods() {
		return false
	}
	return g.plan == nil || g.numbers.HasOwnBeside(g.plan.mark.PlanID())
}
