// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
)

// SetGroup processes a PodGroup that an informer added or updated.
func (r *Registry) SetGroup(group *v2alpha2.PodGroup, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	key := Key{Namespace: group.Namespace, Name: group.Name}
	g := r.findOrAddGang(key)
	old, protected := g.group, g.protectedUpTo()
	g.group = group
	if old != nil && old.UID == group.UID && old.Generation == group.Generation && podgroup.ListSameLevels(old, group) && g.hasTreeResult() {
		// Our own status write, or a change of metadata; or results of the leading process.
		if r.leading || !r.synced {
			r.setReplacing(g)
			return r.endCall(r.observeRecord(g))
		}
		g.adoptStatus(group)
		r.setReplacing(g)
		g.admitAllGroups()
		return r.endCall(r.evaluate(g, now))
	}
	var e Effects
	if p := g.preemption; p != nil && (p.IsPreparing() || p.Group.UID != group.UID) {
		e.add(r.endPreemption(g, p.Failure())) // another tree, or another gang; room for which pods end is of use for another tree, too
	}
	g.hopeless = hopeless{}
	if old == nil || old.UID != group.UID {
		g.partial.known, g.broken, g.preempted, g.lostGroups = false, false, nil, nil
		g.failures, g.wasted, g.cuts = 0, 0, 0
		g.gaveUpAt, g.unfitUntil = time.Time{}, time.Time{}
		r.forgetPromise(g, PromiseCancelled)
		r.freeReserved(r.reserved.EndOfGang(key, nil))
	}
	if old == nil || old.UID != group.UID || !r.leading {
		g.adoptStatus(group)
	}
	g.tree, g.treeErr = podgroup.Tree(&group.Spec)
	g.begun = nil
	g.outdatePromise()
	g.recountAll()
	r.recordVictimsChanged(g, protected)
	r.setReplacing(g)
	if r.synced { // else its pods may follow
		g.admitAllGroups()
	}
	g.recordOwnChange() // for an attempt that is running
	g.refusedAt, g.notBefore = time.Time{}, time.Time{}
	e.add(r.evaluate(g, now))
	if g.leader != "" && g.phase != Elected { // another tree may fit: try immediately
		r.wakeLeaderAgain(g)
		e.Activate = append(e.Activate, g.wakeLeader(now)...)
	}
	if r.isStampedLater(g) { // its priority has risen
		g.retried = true
		r.reindex(g)
	}
	return r.endCall(e)
}

// RecordTopologyChanged processes the creation or deletion of a Topology: gangs that name it may be placed differently.
// "": it is not known which, or whether they can be read has changed. Refused gangs are tried again by Tick, as far as
// their share of the loop allows.
func (r *Registry) RecordTopologyChanged(name string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	for _, g := range r.gangs {
		if g.group != nil && podgroup.NamesTopology(&g.group.Spec, name) {
			g.recordOwnChange()
			r.reindex(g)
		}
	}
}

// RemoveGroup processes the deletion of a PodGroup. Waiting pods stay gated, a plan that is being bound completes by
// its old tree, and running pods are not affected (docs/decisions, G12).
func (r *Registry) RemoveGroup(key Key, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[key]
	if g == nil {
		return Effects{}
	}
	var e Effects
	if g.preemption != nil {
		e.add(r.endPreemption(g, g.preemption.Failure()))
	}
	protected := g.protectedUpTo()
	g.group, g.tree, g.treeErr = nil, nil, nil
	g.admitted, g.admittedGroups, g.lostGroups, g.begun = false, nil, nil, nil
	r.setReplacing(g)
	g.recountAll()
	r.recordVictimsChanged(g, protected)
	e.add(r.evaluate(g, now))
	return r.endCall(e)
}

// adoptStatus restores from a PodGroup's status the state that must survive a restart.
func (g *gangState) adoptStatus(group *v2alpha2.PodGroup) {
	g.admitted = meta.IsStatusConditionTrue(group.Status.Conditions, v2alpha2.ConditionAdmitted)
	g.admittedGroups = sets.New[string]()
	for _, s := range group.Status.SubGroups {
		if s.Admitted {
			g.admittedGroups.Insert(s.Name)
		}
	}
	for _, s := range group.Status.FormerSubGroups { // written by an earlier version
		if s.Admitted {
			g.admittedGroups.Insert(s.Name)
		}
	}
	g.waited, g.promisedSince = time.Time{}, time.Time{}
	if since := group.Status.ReservedSince; since != nil && !g.admitted && g.opts.ReservationAfter > 0 {
		g.promisedSince = since.Time
	}
	if since := group.Status.WaitingSince; since != nil && !g.admitted {
		g.waited = since.Time
	}
}

// pruneGang removes a gang without PodGroup, members and plan.
func (r *Registry) pruneGang(g *gangState) {
	if g.group == nil && len(g.members) == 0 && g.plan == nil {
		delete(r.gangs, g.key)
		r.unindex(g)
	}
	if len(r.gangs) == 0 {
		r.helped = nil
	}
}
