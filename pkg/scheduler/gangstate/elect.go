package gangstate

import (
	"time"

	"github.com/muster-project/muster/pkg/gang"
)

const (
	// wakeInterval is how soon a leader that the queue has not seen is activated again: the queue drops the activation of
	// a pod it does not know yet.
	wakeInterval = 50 * time.Millisecond
	// retryInterval is the pause between two attempts of a refused gang whose own pods keep changing.
	retryInterval = time.Second
	// yieldLimit is how long a gang lets others go first before an attempt of its own.
	yieldLimit = time.Second
	// keepFor is how long others let a gang go first that a failed binding left bound in part: its next attempt needs the
	// room that its failed member has just given back.
	keepFor = time.Second
	// departure is how long a bound pod that vanished is still counted: if it ended, another informer tells so.
	departure = 2 * time.Second
	// commitTimeout is the longest time between two members of one plan.
	commitTimeout = 10 * time.Second
	// minBackoff and maxBackoff bound the pause after a plan that was aborted or bound only in part, doubled each time.
	// A refused plan waits until something has changed instead.
	minBackoff = 200 * time.Millisecond
	maxBackoff = 10 * time.Second
)

// evaluate looks at a gang after any change: records a minimum that has been reached, and elects, keeps or drops its
// leader.
func (r *Registry) evaluate(g *gangState, now time.Time) Effects {
	e := Effects{Dirty: []Key{g.key}}
	r.prune(g)
	if !r.synced {
		return e
	}
	r.recordWhole(g)
	r.overtake(g)
	profile := g.profile()
	task, state := r.task(g, profile, now)
	if state == idle {
		g.leader, g.gatedUntil = "", time.Time{}
		g.unpark()
		if g.plan == nil {
			g.completeAt, g.refusedAt = time.Time{}, time.Time{}
		}
		r.reindex(g)
		return e
	}
	if g.completeAt.IsZero() {
		g.completeAt = now
		if task == Minimum && !g.waited.IsZero() && g.waited.Before(now) {
			g.completeAt = g.waited // as the process before this one wrote it down
		}
	}
	g.waited = time.Time{}
	if g.task != task {
		g.task = task
		g.leader = "" // the rank and the plan are others
		g.refusedAt = time.Time{}
		g.parked, g.ripe = false, false
	}
	if state == gated {
		g.leader, g.parked, g.ripe = "", false, false
		r.reindex(g)
		return e
	}
	g.gatedUntil = time.Time{}
	if m := g.members[g.leader]; m == nil || !m.usable(profile) {
		g.leader = ""
	}
	if g.leader == "" && !now.Before(g.notBefore) && !r.releaseDue(g) {
		if m := g.elect(profile); m != nil {
			g.leader, g.seen, g.popped = m.pod.UID, false, false
			g.parked, g.ripe = false, false
			g.proven = g.isCandidate() && g.look().neverWhole
			e.Activate = append(e.Activate, r.wake(g, now)...)
		}
	}
	r.reindex(g)
	return e
}

// recordWhole makes Admitted stick, and lets it go when nothing of the gang is left (docs/decisions, G11). The same for
// each sub-group, as long as the gang is admitted (docs/decisions, G20).
func (r *Registry) recordWhole(g *gangState) {
	n := g.numbers
	touched := n.touched
	n.touched = n.touched[:0]
	if g.tree == nil {
		return
	}
	switch root := g.tree.Root(); {
	case !g.admitted && n.bound.Satisfied(root):
		g.admitted, g.broken, g.partial.known = true, false, false
		g.failures = 0
		g.markAll()
		return
	// Pods that the tree does not list any more still belong to the gang that was admitted.
	case g.admitted && n.bound.Pods(root) == 0 && n.flag(isStanding) == 0:
		g.admitted = false
		g.admittedGroups.Clear()
	case !g.admitted && n.flag(isStanding) == 0:
		g.broken = false
	}
	if !g.admitted {
		return
	}
	for _, leaf := range touched {
		g.markPath(leaf)
	}
}

// markAll records which sub-groups are admitted, after a change that concerns all of them.
func (g *gangState) markAll() {
	if g.tree == nil || !g.admitted {
		return
	}
	for name := range g.admittedGroups {
		if group := g.tree.Group(name); group == nil || g.numbers.bound.Pods(group) == 0 {
			g.admittedGroups.Delete(name)
		}
	}
	g.markBelow(g.tree.Root())
}

// markBelow records the sub-groups that are satisfied, below admitted parents only.
func (g *gangState) markBelow(parent *gang.Group) {
	for _, child := range parent.Children() {
		if g.numbers.bound.Satisfied(child) {
			g.admittedGroups.Insert(child.Name())
		}
		if g.admittedGroups.Has(child.Name()) {
			g.markBelow(child)
		}
	}
}

// markPath records which of the sub-groups above a leaf whose pods have changed are admitted.
func (g *gangState) markPath(leaf *gang.Group) {
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
		case is && g.numbers.bound.Pods(group) == 0:
			g.admittedGroups.Delete(name) // and with it all below, which have no pods either
		case !is && g.numbers.bound.Satisfied(group):
			g.admittedGroups.Insert(name)
			g.markBelow(group)
			return
		case !is:
			for ; n > 0; n-- { // none below it is admitted
				g.admittedGroups.Delete(path[n-1].Name())
			}
			return
		}
	}
}

// overtake aborts a plan for surplus that keeps a gang below its minimum from its refill.
func (r *Registry) overtake(g *gangState) {
	p := g.plan
	if p == nil || !p.Task.isSurplus() || p.open || p.aborted || !g.admitted || g.tree == nil || g.vanished > 0 ||
		g.numbers.bound.Satisfied(g.tree.Root()) || g.numbers.waitingFor(g.profile()) == 0 {
		return
	}
	p.overtaken = true
	r.abort(p, AbortOvertaken, "the gang is below its minimum, which goes first")
}

// readiness says whether a task may be planned.
type readiness int

const (
	idle  readiness = iota // there is nothing to plan
	gated                  // it waits for others, until gangState.gatedUntil
	ready
)

// task says what is to be planned next, and whether it may be.
func (r *Registry) task(g *gangState, profile string, now time.Time) (Task, readiness) {
	if g.tree == nil || g.plan != nil || profile == "" || g.numbers.waitingFor(profile) == 0 {
		return Minimum, idle
	}
	if g.vanished > 0 {
		return Minimum, idle // is it bound, has it succeeded, or is nothing left of the gang? In a moment we know
	}
	n, root := g.numbers, g.tree.Root()
	switch {
	case !g.admitted && !n.usable(profile).Satisfied(root):
		return Minimum, idle
	case !g.admitted:
		return Minimum, ready
	case !n.bound.Satisfied(root), g.isTorn(profile):
		return Refill, ready
	case n.unitsOf(profile) > 0 && !r.haveUnitsFailed(g):
		return SurplusUnit, ready
	}
	if until := r.index.grewAt.Add(r.opts.SingleSurplusAfter); r.opts.SingleSurplusAfter > 0 && now.Before(until) && r.unitsWaitAt(g) {
		g.gatedUntil = until
		return SurplusSingle, gated
	}
	return SurplusSingle, ready
}

// haveUnitsFailed reports whether the gang's surplus sub-groups were refused and nothing has changed that could help them.
func (r *Registry) haveUnitsFailed(g *gangState) bool {
	return g.unitsTried && (r.index.wokenByCaller || g.unitsTriedAt == r.index.cluster)
}

// unitsWaitAt reports whether a surplus sub-group of the gang's priority waits.
func (r *Registry) unitsWaitAt(g *gangState) bool { return r.index.units[r.priority(g)] > 0 }

// isTorn reports whether a whole gang has a sub-group that is bound in part and can be helped: one that lost pods, or one
// of which a binding failed. Such a sub-group holds what it cannot use.
func (g *gangState) isTorn(profile string) bool {
	n := g.numbers
	for _, group := range n.bound.Partial() {
		if g.canMend(group, profile) {
			return true
		}
	}
	return false
}

// canMend reports whether pods wait that a sub-group which is bound in part needs.
func (g *gangState) canMend(group *gang.Group, profile string) bool {
	n := g.numbers
	if parent := group.Parent(); parent.Parent() != nil && !g.admittedGroups.Has(parent.Name()) {
		return false // it comes with its parent, or not at all
	}
	if n.usable(profile).Satisfied(group) {
		return true
	}
	return group.IsLeaf() && g.admittedGroups.Has(group.Name()) && n.usable(profile).Have(group) > n.placed.Have(group)
}

// isWhole reports whether a group and all above it are satisfied by what is bound.
func (g *gangState) isWhole(group *gang.Group) bool {
	for ; group != nil; group = group.Parent() {
		if !g.numbers.bound.Satisfied(group) {
			return false
		}
	}
	return true
}

// elect picks the pod that speaks for the gang: for single surplus pods one of those.
func (g *gangState) elect(profile string) *member {
	p := g.numbers.pools[profile]
	first := p.elect()
	if g.task != SurplusSingle || first == nil || g.isWhole(first.share.leaf) {
		return first
	}
	best := first
	for leaf, q := range p.leaves {
		if m, _ := q.members.first(); g.isWhole(leaf) && (best == first || preferred(m, best) < 0) {
			best = m
		}
	}
	return best
}
