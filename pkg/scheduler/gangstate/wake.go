package gangstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/podgroup"
)

// WokenByCaller makes refused gangs sleep until Wake names them: the caller knows what each refusal rests on. To be
// called before anything happens. Without it every change in the cluster (ClusterChanged) may help every refused gang, and
// Tick wakes what the scheduling queue forgot after Options.Resync.
func (r *Registry) WokenByCaller() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index.wokenByCaller = true
}

// ClusterChanged records that something happened that may help a refused gang: a node came or grew, a pod went.
func (r *Registry) ClusterChanged() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grew()
}

// CycleFailed tells that the pod's scheduling cycle or binding has failed. A leader whose attempt ended without a plan, a
// refusal or another gang to wait for (the scheduler failed before it asked, for one) is woken again a little later, and
// later each time while its cycles end before an attempt begins.
func (r *Registry) CycleFailed(uid types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[uid]
	if m == nil {
		return
	}
	g := m.gang
	if g.leader != uid || !g.seen && !g.popped || g.parked && !g.ripe || g.plan != nil || g.yieldedTo != nil {
		return
	}
	r.enter(now)
	pause := min(retryInterval<<min(g.lost, 10), maxBackoff)
	if g.popped { // what fails before any attempt may fail for long
		g.lost++
	}
	g.seen, g.popped, g.woken = false, false, now.Add(pause-wakeInterval)
	r.reindex(g)
}

// Refuse records that the leader's attempt found no plan. The gang is parked: it waits until something has changed.
func (r *Registry) Refuse(key Key, v podgroup.Refusal, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(now)
	g := r.gangs[key]
	if g == nil {
		return Effects{}
	}
	g.verdict, g.refusedAt = v, now
	e := Effects{Dirty: []Key{key}}
	if g.leader != "" {
		// Ripe already: another leader was elected meanwhile, or the cluster changed.
		g.parked, g.ripe = true, !g.seen || !r.index.wokenByCaller && g.generation != r.index.cluster
		if g.missed {
			g.missed = false
			e.add(r.revive(g, now))
		}
	}
	r.reindex(g)
	return r.leave(e)
}

// Wake reports that what the refusal of these gangs rested on may have gone. Each of them that is parked becomes ripe: its
// leader is activated, and it stays ripe until its next attempt begins, or it has nothing to wait for. Gangs that are not
// known or not parked are left alone; if an attempt of one is being made, it is made again should it be refused.
func (r *Registry) Wake(keys []Key, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(now)
	var e Effects
	grown := false
	for _, key := range keys {
		g := r.gangs[key]
		if g == nil {
			continue
		}
		if g.plan != nil {
			g.unitsTried = false // single pods are being bound, and units come next
			continue
		}
		if !grown && (g.parked || g.leader != "") {
			grown = true
			r.index.grewAt = now
		}
		if !g.parked {
			g.missed = g.leader != ""
			if !g.gatedUntil.IsZero() && g.unitsTried { // its single pods wait, and its units may fit by now
				g.unitsTried = false
				e.add(r.evaluate(g, now))
			}
			continue
		}
		e.add(r.revive(g, now))
	}
	return r.leave(e)
}

// Idle returns those of the gangs that have nothing to plan: they are gone, not complete any more, or have all they want.
func (r *Registry) Idle(keys []Key) []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Key
	for _, key := range keys {
		if g := r.gangs[key]; g == nil || g.completeAt.IsZero() {
			out = append(out, key)
		}
	}
	return out
}

// revive makes a parked gang ripe.
func (r *Registry) revive(g *gangState, now time.Time) Effects {
	g.unitsTried = false
	if g.ripe {
		return Effects{}
	}
	g.ripe = true
	before := g.leader
	e := r.evaluate(g, now) // its single pods may have to let units go first now
	e.Dirty = nil
	if g.leader != "" && g.leader == before && g.parked {
		g.seen = false
		e.Activate = append(e.Activate, r.wake(g, now)...)
	}
	r.reindex(g)
	return e
}

// Retry makes a refused gang eligible immediately: the state its last attempt was based on has changed.
func (r *Registry) Retry(key Key, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(now)
	g := r.gangs[key]
	if g == nil {
		return Effects{}
	}
	g.changed = true // for an attempt that is being made
	if !g.parked {
		return Effects{}
	}
	g.ripe = false
	return r.leave(r.revive(g, now))
}

// Yields reports whether the leader's gang has to let another go first: a ripe gang that goes before it in the queue
// (docs/decisions, G16), because the queue's back-off holds its leader or it was activated a moment ago; or one that a
// failed binding left bound in part a moment ago. Without this, room that an old gang waits for would go to the
// youngest. The gang that yields is woken when the other was tried, and yields for no more than a second in all: many
// old gangs cannot hold it up for ever.
func (r *Registry) Yields(pod *corev1.Pod, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(now)
	r.ripen()
	m := r.members[pod.UID]
	if m == nil || m.gang.leader != pod.UID {
		return false
	}
	g := m.gang
	if !g.yieldedAt.IsZero() && now.Sub(g.yieldedAt) >= yieldLimit {
		return false
	}
	first := r.firstRipe(g)
	if first == nil || first.rank.Compare(r.leaderRank(g)) >= 0 {
		return false
	}
	g.endYield()
	g.yieldedTo = first
	first.yielders = append(first.yielders, g)
	if g.yieldedAt.IsZero() {
		g.yieldedAt = now
	}
	r.reindex(g)
	r.again(first)
	return true
}

// firstRipe returns the gang that goes first of all that are worth an attempt, apart from this one. nil: none.
func (r *Registry) firstRipe(but *gangState) *gangState {
	for {
		var first *gangState
		items := r.index.ripe.items
		for _, g := range items[:min(len(items), 3)] { // the first, or one of the two next to it
			if g != but && (first == nil || g.rank.Compare(first.rank) < 0) {
				first = g
			}
		}
		if first == nil {
			return nil
		}
		if r.reindex(first); first.inRipe > 0 { // room is not kept for ever
			return first
		}
	}
}

// endYield ends a gang's wait for another.
func (g *gangState) endYield() {
	if h := g.yieldedTo; h != nil {
		for i, y := range h.yielders {
			if y == g {
				h.yielders = append(h.yielders[:i], h.yielders[i+1:]...)
				break
			}
		}
	}
	g.yieldedTo, g.yieldOver = nil, false
}
