// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

const (
	// wakeInterval is the time after which a leader that the queue has not seen is activated again. The queue drops
	// the activation of a pod that it does not know yet.
	wakeInterval = 50 * time.Millisecond
	// retryInterval is the pause between two attempts of a refused gang whose own pods keep changing.
	retryInterval = time.Second
	// yieldLimit is how long a gang lets other gangs go first before it is tried itself.
	yieldLimit = time.Second
	// growLimit is how long surplus waits in all while room grows.
	growLimit = 10 * time.Second
	// departure is how long a bound pod that vanished from the informer still counts. If the pod has finished,
	// another informer reports it.
	departure = 2 * time.Second
	// commitTimeout is the maximum time between two members of one plan.
	commitTimeout = 10 * time.Second
)

// evaluate updates a gang after any change: it records a minimum that is reached, and elects, keeps or drops the
// leader.
func (r *Registry) evaluate(g *gangState, now time.Time) Effects {
	e := Effects{Dirty: []Key{g.key}}
	r.pruneGang(g)
	if !r.synced {
		return e
	}
	r.recordStart(g, now)
	r.abortOvertaken(g)
	profile := g.numbers.Profile()
	task, state := r.taskOf(g, profile, now)
	e.add(r.reviewPreemption(g, task, state))
	r.reviewPromise(g, task, state)
	if state == idle {
		g.gatedUntil, g.passed = time.Time{}, 0
		if g.plan == nil {
			if g.admitted || !g.isLosingPods() { // else it may still be complete
				g.completeAt = time.Time{}
			}
			g.refusedAt, g.yieldedAt = time.Time{}, time.Time{}
			r.enterPhase(g, Idle)
		}
		r.reindex(g)
		return e
	}
	if g.completeAt.IsZero() {
		g.completeAt = now
		if task == Minimum && !g.waited.IsZero() && g.waited.Before(now) {
			g.completeAt = g.waited // as recorded by the previous scheduler process
		}
	}
	g.waited = time.Time{}
	if state == unknown {
		g.gatedUntil, g.passed, g.refusedAt = time.Time{}, 0, time.Time{}
		r.enterPhase(g, Idle)
		r.reindex(g)
		return e
	}
	if g.task != task {
		g.task = task
		g.leader = "" // the rank and the plan differ
		g.refusedAt = time.Time{}
	}
	if state == gated {
		r.enterPhase(g, Gated)
		r.reindex(g)
		return e
	}
	g.gatedUntil = time.Time{}
	if m := g.members[g.leader]; m == nil || !m.entry.IsUsable(profile) {
		r.enterPhase(g, Complete)
	}
	if g.leader == "" && !now.Before(g.notBefore) && !g.releaseDue() {
		if m := g.nextLeader(profile); m != nil {
			r.enterPhase(g, Elected)
			g.leader = m.pod.UID
			g.proven = g.isCandidate() && g.partialState().neverWhole
			g.retried = g.broken && g.failures == 1 || // its next attempt needs the room that the failed member has just freed
				r.isStampedLater(g)
			e.Activate = append(e.Activate, g.wakeLeader(now)...)
		}
	}
	r.reindex(g)
	return e
}

// recordAdmitted records that the gang is admitted, and clears this when no pod of the gang is bound (docs/decisions,
// G11). While the gang is admitted, it does the same for each sub-group (docs/decisions, G20).
func (g *gangState) recordAdmitted() {
	n := g.numbers
	touched := n.TakeTouched()
	defer g.dropUnits()
	if g.tree == nil {
		return
	}
	switch isWhole := n.Bound.Satisfied(g.tree.Root()); {
	case isWhole:
		g.lostFrom, g.wholeWith = nil, g.tree.MinPods()
	case !g.admitted:
		g.lostFrom, g.wholeWith = nil, 0
	}
	switch root := g.tree.Root(); {
	case !g.admitted && (n.Bound.Satisfied(root) || g.wasWhole()):
		g.admitted, g.broken, g.partial.known = true, false, false
		g.failures = 0
		g.admitAllGroups()
		return
	// Pods in sub-groups that were removed from the tree still belong to the admitted gang.
	case g.admitted && n.Bound.Pods(root) == 0 && n.Flagged(count.IsStanding) == n.Flagged(count.IsFormer):
		g.admitted = false
		g.admittedGroups.Clear()
	case !g.admitted && n.Flagged(count.IsStanding) == n.Flagged(count.IsFormer):
		g.broken = false
	}
	if !g.admitted {
		g.lostGroups = nil
		return
	}
	for _, leaf := range touched {
		g.admitGroupsAbove(leaf)
	}
}

// admitAllGroups records which sub-groups are admitted, after a change that affects all of them.
func (g *gangState) admitAllGroups() {
	if g.tree == nil || !g.admitted {
		return
	}
	lost := sets.New[string]().Union(g.lostGroups)
	for name := range g.admittedGroups {
		if group := g.tree.Group(name); group == nil || g.numbers.Bound.Pods(group) == 0 {
			g.admittedGroups.Delete(name)
			lost.Insert(name)
		}
	}
	g.lostGroups = nil
	for name := range lost {
		// A status may name the root, and to a process that does not lead it shows one as admitted again.
		if group := g.tree.Group(name); group != nil && group.Parent() != nil && !g.admittedGroups.Has(name) {
			g.recordLost(group)
		}
	}
	g.admitGroupsBelow(g.tree.Root())
}

// recordLost records that a sub-group lost all of its pods. One whose parent lost them too comes back with that.
func (g *gangState) recordLost(group *gang.Group) {
	if parent := group.Parent(); parent.Parent() == nil || g.admittedGroups.Has(parent.Name()) {
		if g.lostGroups == nil {
			g.lostGroups = sets.New[string]()
		}
		g.lostGroups.Insert(group.Name())
	}
}

// recordGroupAdmitted records that a sub-group is admitted.
func (g *gangState) recordGroupAdmitted(group *gang.Group) {
	g.admittedGroups.Insert(group.Name())
	g.lostGroups.Delete(group.Name())
}

// admitGroupsBelow records the satisfied sub-groups, but only below admitted parents.
func (g *gangState) admitGroupsBelow(parent *gang.Group) {
	for _, child := range parent.Children() {
		if g.numbers.Bound.Satisfied(child) {
			g.recordGroupAdmitted(child)
		}
		if g.admittedGroups.Has(child.Name()) {
			g.admitGroupsBelow(child)
		}
	}
}

// admitGroupsAbove records which sub-groups are admitted between the root and a leaf whose pods have changed.
func (g *gangState) admitGroupsAbove(leaf *gang.Group) {
	var path [gang.MaxDepth + 1]*gang.Group
	n := 0
	for group := leaf; group.Parent() != nil; group = group.Parent() {
		path[n] = group
		n++
	}
	for n--; n >= 0; n-- {
		group := path[n]
		name := group.Name()
		switch is := g.admittedGroups.Has(name); {
		case is && g.numbers.Bound.Pods(group) == 0:
			g.admittedGroups.Delete(name) // the groups below have no pods either, and follow in the next iterations
			g.recordLost(group)
		case !is && g.numbers.Bound.Satisfied(group):
			g.recordGroupAdmitted(group)
			g.admitGroupsBelow(group)
			return
		case !is:
			for ; n > 0; n-- { // none below it is admitted
				g.admittedGroups.Delete(path[n-1].Name())
			}
			return
		}
	}
}

// abortOvertaken aborts a plan for surplus that delays the refill of a gang below its minimum.
func (r *Registry) abortOvertaken(g *gangState) {
	p := g.plan
	if p == nil || !p.Task.isSurplus() || p.open || p.aborted || !g.admitted || g.tree == nil || g.vanished > 0 ||
		g.numbers.Bound.Satisfied(g.tree.Root()) || g.numbers.Waiting(g.numbers.Profile()) == 0 {
		return
	}
	p.overtaken = true
	r.abortPlan(p, AbortOvertaken, "the gang is below its minimum, which goes first")
}

// readiness states whether a task may be planned.
type readiness int

const (
	idle    readiness = iota // there is nothing to plan
	unknown                  // it is not known yet whether there is: the gang keeps its age
	gated                    // the task waits for other gangs, until gangState.gatedUntil
	ready
)

// taskOf returns what is to be planned next, and whether it may be planned now.
func (r *Registry) taskOf(g *gangState, profile string, now time.Time) (Task, readiness) {
	task, state := g.nextTask(profile)
	if task.followsMinimums() && r.letsRoomGrow(g, task, now) {
		return task, gated
	}
	return task, state
}

// nextTask returns what is to be planned next, regardless of other gangs, and whether there is something to plan.
func (g *gangState) nextTask(profile string) (Task, readiness) {
	if g.tree == nil || g.plan != nil || profile == "" || g.numbers.Waiting(profile) == 0 {
		return Minimum, idle
	}
	if g.isLosingPods() {
		return Minimum, idle // it is not known yet which pods it will have lost
	}
	n, root := g.numbers, g.tree.Root()
	switch {
	case !g.admitted && !n.Usable(profile).Satisfied(root):
		return Minimum, idle
	case g.vanished > 0:
		return Minimum, unknown // whether the pod is bound, has succeeded, or is gone
	case !g.admitted:
		return Minimum, ready
	case !n.Bound.Satisfied(root), g.hasTornGroup(profile):
		return Refill, ready
	}
	return g.surplusAfter(g.passed, profile), ready
}

// surplusAfter returns which surplus is planned next when this task was refused. 0: none was.
func (g *gangState) surplusAfter(passed Task, profile string) Task {
	switch {
	case passed < LostUnit && g.hasLostUnit(profile):
		return LostUnit
	case passed < SurplusUnit && g.hasFurtherUnit(profile):
		return SurplusUnit
	}
	return SurplusSingle
}

// hasLostUnit reports whether a sub-group that lost all of its pods could be admitted again, by itself.
func (g *gangState) hasLostUnit(profile string) bool {
	if g.numbers.Units(profile) == 0 {
		return false
	}
	for name := range g.lostGroups {
		if g.isUnit(profile, name) {
			return true
		}
	}
	return false
}

// hasFurtherUnit reports whether another sub-group could be admitted, by itself.
func (g *gangState) hasFurtherUnit(profile string) bool {
	further := g.numbers.Units(profile)
	for name := range g.lostGroups {
		if further > 0 && g.isUnit(profile, name) {
			further--
		}
	}
	return further > 0
}

func (g *gangState) isUnit(profile, name string) bool {
	group := g.tree.Group(name)
	return group != nil && g.numbers.IsUnit(profile, group)
}

// hasFurtherSurplus reports whether there is other surplus to be tried while the refused units wait.
func (g *gangState) hasFurtherSurplus() bool {
	profile := g.numbers.Profile()
	switch g.task {
	case LostUnit:
		return g.hasFurtherUnit(profile) || g.numbers.HasSingles(profile)
	case SurplusUnit:
		return g.numbers.HasSingles(profile)
	}
	return false
}

// furtherSurplusDue returns when other surplus is tried after units were refused. Other units need no pause:
// letsRoomGrow lets the lost ones go first while room grows, and not without end.
func (r *Registry) furtherSurplusDue(g *gangState) time.Time {
	if g.task == LostUnit && g.hasFurtherUnit(g.numbers.Profile()) {
		return g.refusedAt
	}
	return r.waitsInGrowth(g, later(g.refusedAt, r.index.grewAt).Add(r.opts.SingleSurplusAfter))
}

// waitsInGrowth returns until when surplus waits if it should wait until then while room grows: growLimit at most,
// since room may never stand still.
func (r *Registry) waitsInGrowth(g *gangState, until time.Time) time.Time {
	if g.gatedSince.IsZero() || g.gatedSince.Before(r.index.growing) {
		g.gatedSince = r.now
	}
	if end := g.gatedSince.Add(growLimit); end.Before(until) {
		return end
	}
	return until
}

// letsRoomGrow reports whether a surplus task waits, until gatedUntil, because free room has grown lately, and a
// minimum, a sub-group that the gang lost or, for single pods, any sub-group may need what it becomes. Nodes that come
// one by one are thus not used up by surplus.
func (r *Registry) letsRoomGrow(g *gangState, task Task, now time.Time) bool {
	until, priority := r.index.grewAt.Add(r.opts.SingleSurplusAfter), g.priority()
	if r.opts.SingleSurplusAfter <= 0 || !now.Before(until) {
		return false
	}
	if !r.index.minimums.hasFrom(priority) && g.passed != LostUnit && (task == SurplusUnit || r.index.units.count[priority] == 0) {
		return false
	}
	g.gatedUntil = r.waitsInGrowth(g, until)
	return now.Before(g.gatedUntil)
}

// hasTornGroup reports whether an admitted gang has a partially bound sub-group that waiting pods can complete: a
// sub-group that lost pods, or one with a failed binding. Such a sub-group occupies resources that it cannot use.
func (g *gangState) hasTornGroup(profile string) bool {
	n := g.numbers
	for _, group := range n.Bound.Partial() {
		if g.canComplete(group, profile) {
			return true
		}
	}
	return false
}

// canComplete reports whether there are waiting pods that a partially bound sub-group needs.
func (g *gangState) canComplete(group *gang.Group, profile string) bool {
	n := g.numbers
	if parent := group.Parent(); parent.Parent() != nil && !g.admittedGroups.Has(parent.Name()) {
		return false // it is completed with its parent, or not at all
	}
	if n.Usable(profile).Satisfied(group) {
		return true
	}
	return group.IsLeaf() && g.admittedGroups.Has(group.Name()) && n.Usable(profile).Have(group) > n.Placed.Have(group)
}

// isWhole reports whether a group and all groups above it are satisfied by bound pods.
func (g *gangState) isWhole(group *gang.Group) bool { return count.IsWhole(g.numbers.Bound, group) }

// nextLeader selects the leader. For single surplus pods it is one of these. nil: no pod waits.
func (g *gangState) nextLeader(profile string) *member {
	first := g.numbers.FirstWaiting
	if g.task == SurplusSingle {
		first = g.numbers.FirstSingle
	}
	if e := first(profile); e != nil {
		return g.members[e.UID]
	}
	return nil
}
