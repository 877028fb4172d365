package gangstate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
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
	// A refused plan is paced by the scheduling queue's own back-off instead.
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
	profile := r.profile(g)
	c := r.count(g, profile)
	r.recordWhole(g, c)
	r.touch(g)
	task, ready := r.task(g, c, profile)
	if !ready {
		g.leader = ""
		if g.plan == nil {
			g.completeAt, g.refusedAt = time.Time{}, time.Time{}
		}
		r.attend(g)
		return e
	}
	if g.completeAt.IsZero() {
		g.completeAt = now
	}
	if g.task != task {
		g.task = task
		g.leader = "" // the rank and the plan are others
		g.refusedAt = time.Time{}
	}
	if m := g.members[g.leader]; m == nil || !m.usable(profile) {
		g.leader = ""
	}
	if g.leader == "" && !now.Before(g.notBefore) && !r.releaseDue(g) {
		if m := g.elect(profile, c.bound); m != nil {
			g.leader, g.leaderSeen = m.pod.UID, false
			e.Activate = append(e.Activate, r.wake(g, now)...)
		}
	}
	r.attend(g)
	return e
}

// recordWhole makes Admitted stick, and lets it go when nothing of the gang is left (G11).
func (r *Registry) recordWhole(g *gangState, c counts) {
	if g.tree == nil {
		return
	}
	if g.tree.Satisfied(c.bound) {
		g.admitted = true
		g.failures = 0
	} else if g.admitted {
		left := 0
		for _, n := range c.bound {
			left += n
		}
		// Pods that a tree no longer lists, or that are going, still belong to the gang that was admitted.
		for _, m := range g.members {
			if m.state == bound || m.state == posted {
				left++
			}
		}
		if left == 0 {
			g.admitted = false
			g.admittedGroups.Clear()
		}
	}
	if g.admitted {
		g.markAdmitted(g.tree.Root(), c.bound)
	}
}

// markAdmitted records the sub-groups that are satisfied, below admitted parents only.
func (g *gangState) markAdmitted(parent *gang.Group, c gang.Counts) {
	for _, child := range parent.Children() {
		if child.Satisfied(c) {
			g.admittedGroups.Insert(child.Name())
		}
		if g.admittedGroups.Has(child.Name()) {
			g.markAdmitted(child, c)
		}
	}
}

// task says what is to be planned next, and whether anything is.
func (r *Registry) task(g *gangState, c counts, profile string) (Task, bool) {
	if g.tree == nil || g.plan != nil || profile == "" {
		return Minimum, false
	}
	waits := false
	for uid, m := range g.members {
		if _, departing := r.departing[uid]; departing {
			return Minimum, false // is it bound, has it succeeded, or is nothing left of the gang? In a moment we know
		}
		waits = waits || m.usable(profile)
	}
	switch {
	case !waits:
		return Minimum, false
	case !g.admitted:
		return Minimum, g.tree.Satisfied(c.usable)
	case !g.tree.Satisfied(c.bound):
		return Refill, true
	default:
		return Surplus, true
	}
}

// elect picks the pod that speaks for the gang: the first waiting pod of a leaf below its minimum, else the first.
func (g *gangState) elect(profile string, bound gang.Counts) *member {
	waiting := g.waiting(profile)
	for _, m := range waiting {
		leaf := g.tree.Root()
		if m.leaf != "" {
			leaf = g.tree.Group(m.leaf)
		}
		if bound[m.leaf] < leaf.Min() {
			return m
		}
	}
	if len(waiting) > 0 {
		return waiting[0]
	}
	return nil
}

// wake returns the leader to be activated.
func (r *Registry) wake(g *gangState, now time.Time) []*corev1.Pod {
	m := g.members[g.leader]
	if m == nil {
		return nil
	}
	g.leaderWoken = now
	return []*corev1.Pod{m.pod}
}

// attend keeps the set of gangs that Tick has to look at.
func (r *Registry) attend(g *gangState) {
	switch {
	case g.tree == nil:
		r.attention.Delete(g.key)
	case g.leader != "" && (!g.leaderSeen || !g.refusedAt.IsZero()),
		g.leader == "" && !g.completeAt.IsZero(),
		g.yieldedTo != (Key{}), g.plan != nil:
		r.attention.Insert(g.key)
	default:
		r.attention.Delete(g.key)
	}
}

// Tick repeats what may have been lost and starts what has waited long enough. To be called several times a second.
func (r *Registry) Tick(now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e Effects
	if p := r.committing; p != nil && now.Sub(p.progress) > commitTimeout {
		// Only possible where members come through the queue by themselves, and one never does.
		g := p.gang
		r.abort(p, AbortLate, "a member never came out of the queue")
		g.backOff(now)
		e.add(r.evaluate(g, now))
	}
	for uid, since := range r.departing {
		if now.Sub(since) >= departure {
			e.add(r.remove(r.members[uid], now))
		}
	}
	for uid, f := range r.freed {
		e.Activate = append(e.Activate, f.pod)
		if now.Sub(f.since) >= departure {
			delete(r.freed, uid)
		}
	}
	for key := range r.attention {
		g := r.gangs[key]
		switch {
		case g == nil:
			r.attention.Delete(key)
		case g.leader == "":
			if !now.Before(g.notBefore) {
				e.add(r.evaluate(g, now))
			}
		case g.yieldedTo != (Key{}):
			h := r.gangs[g.yieldedTo]
			if h == nil || h.leader == "" || h.refusedAtGen == r.cluster && !now.Before(h.keepUntil) || now.Sub(g.yieldedAt) >= yieldLimit {
				g.yieldedTo = Key{}
				r.again(g) // its own cycle may not have ended yet: then the queue drops this
				e.Activate = append(e.Activate, r.wake(g, now)...)
			}
		case !g.leaderSeen:
			if now.Sub(g.leaderWoken) >= wakeInterval {
				e.Activate = append(e.Activate, r.wake(g, now)...)
			}
		case !g.refusedAt.IsZero() && g.changed && now.Sub(g.refusedAt) >= retryInterval && now.Sub(g.leaderWoken) >= retryInterval:
			e.Activate = append(e.Activate, r.wake(g, now)...)
		case !g.refusedAt.IsZero() && g.refusedAtGen != r.cluster && now.Sub(g.refusedAt) >= r.opts.Resync && now.Sub(g.leaderWoken) >= r.opts.Resync:
			e.Activate = append(e.Activate, r.wake(g, now)...)
		}
	}
	return e
}

// Pass answers PreEnqueue: may the pod enter the queue? If not, why, in words for the log.
func (r *Registry) Pass(pod *corev1.Pod) (bool, string) {
	name, ok := pod.Annotations[v2alpha2.PodGroupAnnotation]
	if !ok || name == "" {
		return true, ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.plans[pod.UID]; p != nil && !p.aborted {
		if p == r.committing {
			r.stamp(pod.UID, Rank{Priority: 1<<31 - 1, Tier: TierCommitting})
			return true, ""
		}
		return false, "its plan is being bound"
	}
	m := r.members[pod.UID]
	if m == nil {
		return false, fmt.Sprintf("PodGroup %s/%s has not seen it yet", pod.Namespace, message.Truncate(name, message.MaxName))
	}
	if m.gang.leader == pod.UID {
		// After a failure it may be on its way into the queue's own back-off, which can be longer than ours.
		m.gang.leaderSeen = m.gang.leaderSeen || m.gang.failures == 0
		r.attend(m.gang)
		r.stamp(pod.UID, r.leaderRank(m.gang))
		return true, ""
	}
	return false, fmt.Sprintf("held by PodGroup %s until it is its turn", message.Truncate(m.gang.key.String(), message.MaxName))
}

// Yields reports whether the leader's gang has to let another go first, and wakes that one: a gang that goes before it in
// the queue (G16), was refused, and has not been tried since the cluster changed, because the queue's back-off holds its
// leader; or one that a failed binding left bound in part a moment ago. Without this, room that an old gang waits for would
// go to the youngest. The gang that yields is woken when the
// other was tried, and yields for no more than a second in all: many old gangs cannot hold it up for ever.
func (r *Registry) Yields(pod *corev1.Pod, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[pod.UID]
	if m == nil || m.gang.leader != pod.UID {
		return false
	}
	g := m.gang
	if !g.yieldedAt.IsZero() && now.Sub(g.yieldedAt) >= yieldLimit {
		return false
	}
	mine := r.leaderRank(g)
	var first *gangState
	var best Rank
	for key := range r.attention {
		h := r.gangs[key]
		if h == nil || h == g || h.leader == "" || h.yieldedTo != (Key{}) || !now.Before(h.keepUntil) && (h.refusedAt.IsZero() || h.refusedAtGen == r.cluster) {
			continue
		}
		if rank := r.leaderRank(h); rank.Compare(mine) < 0 && (first == nil || rank.Compare(best) < 0) {
			first, best = h, rank
		}
	}
	if first == nil {
		return false
	}
	g.yieldedTo = first.key
	if g.yieldedAt.IsZero() {
		g.yieldedAt = now
	}
	r.attend(g)
	r.again(first)
	return true
}
