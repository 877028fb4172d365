// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// A gang whose minimum does not fit may preempt pods of lower priority (docs/decisions, G21 to G24). Its Preemption passes
// these stages; the room that its plan needs is reserved from the first one on:
//
//	Decided    an attempt found victims; the decision is being recorded in the PodGroup's status
//	Recorded   the record was observed; the next attempt confirms the decision on a new snapshot
//	Confirmed  the victims that are needed still are being marked
//	Marked     all of them are; this is being recorded
//	Evicting   the record was observed; the victims are being deleted
//	Evicted    all deletions were requested; the gang waits until the pods have ended
//
// Before Evicting nothing has ended, and a preemption that is not needed any more, or not possible, ends without a trace.
// From Evicting on all victims are deleted, whatever happens, because part of a gang is of no use to its owner. While a
// preemption is being prepared nothing is planned for the gangs that lose pods.

// preemptionStage is the progress of a Preemption.
type preemptionStage int

const (
	stageDecided preemptionStage = iota
	stageRecorded
	stageConfirmed
	stageMarked
	stageEvicting
	stageEvicted
)

// preparationLimit is how long a preemption may take until its first deletion.
const preparationLimit = 30 * time.Second

// Victim is a pod that ends so that a gang can start.
type Victim struct {
	Pod      *corev1.Pod
	Gang     Key   // zero: it belongs to no gang
	Priority int32 // of the gang, or of the pod
	Pods     int   // pods that the gang loses in all
	Whole    bool  // these are all pods of the gang, or the pod belongs to no gang

	member *member // set by the Registry; nil: it belongs to no gang
}

// Preemption is the decision that pods of lower priority end so that a gang can start. Its exported fields are immutable.
type Preemption struct {
	ID       string
	Gang     Key
	Group    *v2alpha2.PodGroup
	Priority int32
	Victims  []Victim

	awaited []*corev1.Pod // see Preempting

	gang  *gangState
	stage preemptionStage
	asked bool      // an attempt was asked to confirm it
	taken bool      // a gang of higher priority was placed on its nodes
	until time.Time // when it is given up
	about podgroup.Preempting
}

// Deadline is when the preemption is given up if the gang has not started by then. It is called when evictions begin.
func (r *Registry) Deadline(p *Preemption) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.until
}

// PreemptionOutcome states how a preemption ended, with few distinct values, so that it can label a metric.
type PreemptionOutcome string

const (
	// PreemptionPlaced: the gang was bound after the victims had ended.
	PreemptionPlaced PreemptionOutcome = "placed"
	// PreemptionSpared: the gang was placed without any eviction, because other room became free.
	PreemptionSpared PreemptionOutcome = "spared"
	// PreemptionCancelled: nothing was evicted, because the gang or the cluster changed.
	PreemptionCancelled PreemptionOutcome = "cancelled"
	// PreemptionOvertaken: pods were evicted, and a gang of higher priority took some of the room.
	PreemptionOvertaken PreemptionOutcome = "overtaken"
	// PreemptionWasted: pods were evicted, and the gang was not placed for another reason.
	PreemptionWasted PreemptionOutcome = "wasted"
)

// NextPreemptionStep states what an attempt that found no plan may do.
type NextPreemptionStep int

const (
	// PreemptNothing: the gang may not preempt now.
	PreemptNothing NextPreemptionStep = iota
	// PreemptDecide: the attempt may decide which pods end.
	PreemptDecide
	// PreemptConfirm: the attempt must confirm which of the decided victims are needed.
	PreemptConfirm
)

const (
	// firstHopeless and longestHopeless bound the time for which it is assumed that preemption would not help a gang for which
	// it did not help; it doubles each time. A search costs the scheduling loop more than a plan.
	firstHopeless, longestHopeless = 5 * time.Second, time.Minute
)

// searchShare limits the searches for victims of gangs for which preemption did not help before, of all of them together, to
// 1/20 = 5 % of the scheduling loop's time.
const searchShare = 20

// hopeless is the memory that preemption would not help.
type hopeless struct {
	why   string
	until time.Time
	pause time.Duration
}

// Required returns the problem of the whole minimum: all pods that the tree lacks at once. It is meaningful for Minimum and
// Refill.
func (w *Work) Required() placement.Problem {
	p := w.Problem
	p.Have, p.Pods = w.have, w.all
	return p
}

// NextPreemptionStep returns what the gang's attempt may do, and when it must be repeated if nothing comes of it; zero: it need
// not be.
func (r *Registry) NextPreemptionStep(w *Work, now time.Time) (step NextPreemptionStep, later time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[w.Gang]
	if g == nil || g.group == nil || g.tree != w.Tree || w.Task.isSurplus() || g.numbers.Bound.Satisfied(g.tree.Root()) || g.victimOf != nil {
		return PreemptNothing, time.Time{}
	}
	if p := g.preemption; p != nil {
		if p.stage == stageRecorded {
			p.asked = true
			return PreemptConfirm, time.Time{}
		}
		return PreemptNothing, p.until
	}
	start := g.hopeless.until
	if end := r.searches.spent.Add(-maxSpent); g.hopeless.pause > 0 && end.After(start) {
		start = end
	}
	if d := g.group.Spec.PreemptionDelay; d != nil {
		if end := g.completeAt.Add(d.Duration); end.After(start) {
			start = end
		}
	}
	if now.Before(start) {
		return PreemptNothing, start
	}
	return PreemptDecide, now.Add(firstHopeless)
}

// RecordHopeless records that preemption would not help the gang, why, and how long the search took. It returns when this is
// checked again.
func (r *Registry) RecordHopeless(key Key, why string, took time.Duration, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[key]
	if g == nil {
		return time.Time{}
	}
	if g.preemption == nil {
		r.freeReserved(r.reserved.EndOfGang(key, isOfGang)) // of an earlier preemption
	}
	r.searches.affords(took, maxSpent, now)
	pause := min(max(firstHopeless, 2*g.hopeless.pause), longestHopeless)
	g.hopeless, g.cuts = hopeless{why: why, until: now.Add(pause), pause: pause}, 0
	return g.hopeless.until
}

// RecordCut records that a search for victims was cut short: the next one has more time.
func (r *Registry) RecordCut(key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.gangs[key]; g != nil {
		g.cuts++
	}
}

// Preempting is a decision to be recorded.
type Preempting struct {
	ID         string
	Victims    []Victim
	Placements []placement.Placement
	// Awaited are the pods on the nodes of the placements that end without this gang's doing: their room is needed too.
	Awaited  []*corev1.Pod
	Resource corev1.ResourceName // of Amount; "": the victims have no extended resources
	Amount   int64               // that the victims have
}

// RecordPreemption records a decision, or, after PreemptConfirm, which of its victims are needed.
func (r *Registry) RecordPreemption(w *Work, d Preempting, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[w.Gang]
	if g == nil || g.group == nil || g.tree != w.Tree || g.plan != nil {
		return Effects{}
	}
	p := &Preemption{ID: d.ID, Gang: g.key, Group: g.group, Priority: w.Priority, Victims: d.Victims, awaited: d.Awaited, gang: g, until: now.Add(preparationLimit)}
	var e Effects
	if old := g.preemption; old != nil {
		if old.stage != stageRecorded {
			return Effects{}
		}
		p.ID, p.until, p.stage = old.ID, old.until, stageConfirmed
		e.add(r.releaseVictims(old))
		e.Mark = append(e.Mark, p)
	}
	r.reserved.EndOfGang(g.key, isOfGang)
	p.about = aboutPreemption(p, d)
	g.preemption, g.hopeless, g.cuts = p, hopeless{}, 0
	for i := range p.Victims {
		v := &p.Victims[i]
		if m := r.members[v.Pod.UID]; m != nil && v.Gang == m.gang.key {
			v.member, m.gang.victimOf = m, p
		} else {
			r.plainVictims[v.Pod.UID] = &plainVictim{of: p}
		}
	}
	for _, pod := range p.awaited {
		if r.members[pod.UID] == nil && r.plainVictims[pod.UID] == nil {
			r.plainVictims[pod.UID] = &plainVictim{since: now}
		}
	}
	r.reservePlanned(w, p, d.Placements)
	r.recordReserved(p, d.Placements)
	r.reindex(g)
	e.Dirty = append(e.Dirty, g.key)
	return r.endCall(e)
}

// aboutPreemption returns what users are told.
func aboutPreemption(p *Preemption, d Preempting) podgroup.Preempting {
	about := podgroup.Preempting{Plan: p.ID, Pods: len(p.Victims), Resource: d.Resource, Amount: d.Amount, Until: p.until}
	seen := map[Key]bool{}
	for _, v := range p.Victims {
		switch {
		case v.Gang == Key{}:
			about.PlainPods++
		case !seen[v.Gang]:
			seen[v.Gang] = true
			about.Gangs++
			if about.First == "" && v.Gang.Namespace == p.Gang.Namespace {
				about.First = v.Gang.Name
			}
		}
	}
	return about
}

// reservePlanned reserves the room of the pods that are planned after the victims have ended.
func (r *Registry) reservePlanned(w *Work, p *Preemption, placements []placement.Placement) {
	if r.opts.Amount == nil {
		return
	}
	until := p.until.Add(p.graceTime(r.now) + r.opts.PreemptionTimeout)
	occupied := map[string][]reservations.Occupied{} // by node: what the victims have, and pods that are awaited
	for _, v := range p.Victims {
		node := v.Pod.Spec.NodeName
		occupied[node] = append(occupied[node], reservations.Occupied{Pod: v.Pod.UID, Amount: r.opts.Amount(v.Pod)})
	}
	for _, pod := range p.awaited {
		if node := pod.Spec.NodeName; !r.isAwaitedBefore(p, node, pod.UID) {
			occupied[node] = append(occupied[node], reservations.Occupied{Pod: pod.UID, Amount: r.opts.Amount(pod)})
		}
	}
	amounts := map[int]reservations.Amount{} // by class
	for _, pl := range placements {
		amount, known := amounts[pl.Pod.Class]
		if !known {
			amount = r.opts.Amount(w.Classes[pl.Pod.Class])
			amounts[pl.Pod.Class] = amount
		}
		pod := *w.Pods[pl.Pod.Index] // its node is that of the reservation
		pod.Spec.NodeName = pl.Node
		r.reserved.Reserve(reservations.Reservation{
			Owner: reservations.Owner{Gang: p.Gang, Leaf: reservations.EveryLeaf}, Node: pl.Node, Priority: p.Priority,
			Amount: amount, Pod: &pod, Occupied: occupiedPartsOf(amount, occupied[pl.Node]),
		}, until, r.now)
	}
	r.haveReserved.Store(!r.reserved.IsEmpty())
}

// isAwaitedBefore reports whether what the pod has is reserved for another gang of the same or a higher priority.
func (r *Registry) isAwaitedBefore(p *Preemption, node string, uid types.UID) bool {
	return slices.ContainsFunc(r.reserved.OnNode(node), func(x *reservations.Reservation) bool {
		return x.Owner.Gang != p.Gang && x.Priority >= p.Priority && slices.ContainsFunc(x.Occupied, func(o reservations.Occupied) bool { return o.Pod == uid })
	})
}

// occupiedPartsOf returns the parts of an amount that the pods have, and subtracts these from what is left of the pods.
func occupiedPartsOf(amount reservations.Amount, pods []reservations.Occupied) []reservations.Occupied {
	var parts []reservations.Occupied
	var rest reservations.Amount
	rest.Add(amount, 1)
	for i := range pods {
		part := rest.TakeFrom(&pods[i].Amount)
		if part.IsEmpty() {
			continue
		}
		rest.Add(part, -1)
		parts = append(parts, reservations.Occupied{Pod: pods[i].Pod, Amount: part})
	}
	return parts
}

func isOfGang(x *reservations.Reservation) bool { return x.Owner.IsGang() }

// graceTime returns the time after which all victims should have ended if they were deleted now.
func (p *Preemption) graceTime(now time.Time) time.Duration {
	longest := time.Duration(0)
	for _, v := range p.Victims {
		grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
		if g := v.Pod.Spec.TerminationGracePeriodSeconds; g != nil {
			grace = *g
		}
		longest = max(longest, time.Duration(grace)*time.Second)
	}
	for _, pod := range p.awaited {
		if pod.DeletionTimestamp != nil {
			longest = max(longest, pod.DeletionTimestamp.Sub(now))
		}
	}
	return longest
}

// RecordMarked records that all victims are marked, or why they cannot be: then nothing is evicted.
func (r *Registry) RecordMarked(p *Preemption, err error, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	if p.gang.preemption != p {
		return r.endCall(r.releaseVictims(p)) // it ended while they were being marked
	}
	if err != nil || !r.isStillAllowed(p) {
		p.gang.recordOwnChange() // it is tried again
		e := r.endPreemption(p, PreemptionCancelled)
		e.add(r.releaseVictims(p))
		return r.endCall(e)
	}
	p.stage, p.about.Evicting = stageMarked, true
	p.about.Until = now.Add(p.graceTime(now) + r.opts.PreemptionTimeout)
	p.until = p.about.Until.Add(preparationLimit)
	r.reindex(p.gang)
	return r.endCall(Effects{Dirty: []Key{p.Gang}})
}

// AwaitsRecord reports whether a preemption by the gang goes on when the PodGroup's status says so.
func (r *Registry) AwaitsRecord(key Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[key]
	return g != nil && g.preemption != nil && (g.preemption.stage == stageDecided || g.preemption.stage == stageMarked)
}

// observeRecord advances a preemption whose stage the PodGroup's status contains by now.
func (r *Registry) observeRecord(g *gangState) Effects {
	p := g.preemption
	if p == nil || g.group == nil {
		return Effects{}
	}
	plan, evicting, ok := podgroup.RecordedPreemption(&g.group.Status)
	switch {
	case !ok || plan != p.ID:
		return Effects{}
	case p.stage == stageDecided:
		p.stage = stageRecorded
		if g.phase.isRefused() {
			return r.retryRefused(g)
		}
	case p.stage == stageMarked && evicting:
		if !r.isStillAllowed(p) {
			g.recordOwnChange()
			return r.endPreemption(p, PreemptionCancelled)
		}
		return r.beginEvictions(p)
	}
	return Effects{}
}

// beginEvictions requests the deletion of the victims.
func (r *Registry) beginEvictions(p *Preemption) Effects {
	p.stage = stageEvicting
	p.until = p.about.Until
	e := Effects{Evict: []*Preemption{p}, Dirty: []Key{p.Gang}}
	told := map[*gangState]bool{}
	for _, v := range p.Victims {
		m := r.members[v.Pod.UID]
		if m == nil || v.Gang != m.gang.key {
			r.plainVictims[v.Pod.UID] = &plainVictim{since: r.now}
			continue
		}
		m.gang.addVictim(m, r.now)
		if told[m.gang] {
			continue
		}
		told[m.gang] = true
		m.gang.preempted = &podgroup.Preempted{At: r.now, By: p.Gang.String(), Priority: p.Priority, Over: v.Priority, Pods: v.Pods, Whole: v.Whole}
		e.Dirty = append(e.Dirty, m.gang.key)
	}
	r.reindex(p.gang)
	return e
}

// isStillAllowed reports whether the gangs of the victims have not changed in a way that forbids the evictions: each of them
// loses all of its pods, or keeps its minimum.
func (r *Registry) isStillAllowed(p *Preemption) bool {
	lost := map[*gangState][]*member{}
	for _, v := range p.Victims {
		m := r.members[v.Pod.UID]
		if v.Gang == (Key{}) || m == nil || m.gang.key != v.Gang || !m.isBound() {
			continue // it has no gang, or does not count any more
		}
		lost[m.gang] = append(lost[m.gang], m)
	}
	for g, members := range lost {
		if g.tree == nil || g.plan != nil || g.vanished > 0 || g.priority() >= p.Priority {
			return false
		}
		counts := g.numbers.Bound.Counts()
		for _, m := range members {
			counts[m.leaf]--
		}
		if len(members) < g.numbers.Flagged(count.IsStanding)-g.numbers.Flagged(count.IsStray) && !g.tree.Satisfied(counts) && g.numbers.Bound.Satisfied(g.tree.Root()) {
			return false
		}
	}
	return true
}

// RecordEvicted records that the deletion of all victims was requested, and what cannot be deleted has been given up.
func (r *Registry) RecordEvicted(p *Preemption, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	e := r.releaseVictims(p)
	if p.gang.preemption == p && p.stage == stageEvicting {
		p.stage = stageEvicted
		r.reindex(p.gang)
	}
	return r.endCall(e)
}

// RecordedEvictions returns, by gang, the plans whose evictions had begun according to the status of the PodGroups, and of
// which this process knows nothing: those of an earlier process.
func (r *Registry) RecordedEvictions() map[Key]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	plans := map[Key]string{}
	for key, g := range r.gangs {
		if g.group == nil || g.preemption != nil {
			continue
		}
		if plan, evicting, ok := podgroup.RecordedPreemption(&g.group.Status); ok && evicting {
			plans[key] = plan
		}
	}
	return plans
}

// RestorePreemption records a preemption whose evictions an earlier process had begun. pods are those of its victims that
// have not been deleted; they are deleted now.
func (r *Registry) RestorePreemption(key Key, plan string, pods []*corev1.Pod, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[key]
	if g == nil || g.group == nil || g.preemption != nil {
		return Effects{}
	}
	p := &Preemption{ID: plan, Gang: key, Group: g.group, Priority: g.priority(), gang: g, stage: stageEvicting}
	for _, pod := range pods {
		v := Victim{Pod: pod, Priority: count.PodPriority(pod)}
		if m := r.members[pod.UID]; m != nil {
			v.Gang, v.member = m.gang.key, m
			m.gang.addVictim(m, now)
		}
		p.Victims = append(p.Victims, v)
	}
	p.until = now.Add(p.graceTime(now) + r.opts.PreemptionTimeout)
	p.about = aboutPreemption(p, Preempting{})
	p.about.Evicting = true
	g.preemption = p
	r.reindex(g)
	return r.endCall(Effects{Evict: []*Preemption{p}, Dirty: []Key{key}})
}

// releaseVictims lets the gangs that lose pods be planned again.
func (r *Registry) releaseVictims(p *Preemption) Effects {
	var e Effects
	for _, v := range p.Victims {
		if victim := r.plainVictims[v.Pod.UID]; victim != nil && victim.of == p {
			delete(r.plainVictims, v.Pod.UID)
		}
		if g := r.gangs[v.Gang]; g != nil && g.victimOf == p {
			g.victimOf = nil
			e.add(r.evaluate(g, r.now))
		}
	}
	return e
}

// endPreemption ends a preemption. Room that is left is free for all.
func (r *Registry) endPreemption(p *Preemption, outcome PreemptionOutcome) Effects {
	r.freeReserved(r.reserved.EndOfGang(p.Gang, isOfGang))
	return r.replacePreemption(p, outcome)
}

// replacePreemption ends a preemption for which the gang is going to decide anew: the room that it has stays reserved.
func (r *Registry) replacePreemption(p *Preemption, outcome PreemptionOutcome) Effects {
	g := p.gang
	g.preemption = nil
	e := Effects{Dirty: []Key{g.key}}
	if p.stage < stageEvicting && p.stage != stageConfirmed { // victims that are being marked are left to RecordMarked
		e.add(r.releaseVictims(p))
	}
	if r.opts.PreemptionEnded != nil {
		r.opts.PreemptionEnded(p, outcome)
	}
	return e
}

// reviewPreemption ends the preemption of a gang that has started, or that cannot start any more. state is what remains to be
// planned.
func (r *Registry) reviewPreemption(g *gangState, task Task, state readiness) Effects {
	p := g.preemption
	switch {
	case p == nil || g.plan != nil:
		return Effects{}
	case g.tree != nil && g.numbers.Bound.Satisfied(g.tree.Root()):
		if p.stage < stageEvicting {
			return r.endPreemption(p, PreemptionSpared)
		}
		return r.endPreemption(p, PreemptionPlaced)
	case !r.now.Before(p.until):
		g.recordOwnChange() // it is tried again, and may decide anew
		return r.endPreemption(p, p.failure())
	case g.vanished == 0 && (state == idle || task.isSurplus()):
		return r.endPreemption(p, p.failure())
	}
	return Effects{}
}

func (p *Preemption) failure() PreemptionOutcome {
	switch {
	case p.stage < stageEvicting:
		return PreemptionCancelled
	case p.taken:
		return PreemptionOvertaken
	}
	return PreemptionWasted
}

// recordReserved records whose reserved room is reserved for a gang of higher priority now.
func (r *Registry) recordReserved(p *Preemption, placements []placement.Placement) {
	for _, x := range placements {
		r.recordRoomTakenOn(x.Node, p.gang, p.Priority)
	}
}

// recordRoomTaken records whose reserved room a plan uses.
func (r *Registry) recordRoomTaken(plan *Plan) {
	if !r.haveReserved.Load() {
		return
	}
	for i := range plan.members {
		r.recordRoomTakenOn(plan.members[i].node, plan.gang, plan.Priority)
	}
}

func (r *Registry) recordRoomTakenOn(node string, by *gangState, priority int32) {
	for _, x := range r.reserved.OnNode(node) {
		if g := r.gangs[x.Owner.Gang]; x.Owner.IsGang() && g != nil && g != by && g.preemption != nil && x.Priority < priority {
			g.preemption.taken = true
		}
	}
}

// reviewRefused ends the preemption of a gang that does not fit although all victims have ended: it may decide anew. A
// decision that could not be confirmed is given up.
func (r *Registry) reviewRefused(g *gangState) Effects {
	p := g.preemption
	if p == nil {
		return Effects{}
	}
	left := slices.ContainsFunc(p.Victims, func(v Victim) bool { return r.isEnding(v.Pod.UID) }) ||
		slices.ContainsFunc(p.awaited, func(pod *corev1.Pod) bool { return r.isEnding(pod.UID) })
	switch {
	case p.stage == stageRecorded && p.asked:
		g.recordOwnChange() // it is tried again
		return r.endPreemption(p, p.failure())
	case p.stage == stageEvicted && !left:
		g.hopeless.until = time.Time{}
		return r.replacePreemption(p, p.failure())
	}
	return Effects{}
}

// isEnding reports whether a victim, or another pod that is awaited, has not ended yet, as far as is known.
func (r *Registry) isEnding(uid types.UID) bool {
	return r.plainVictims[uid] != nil || r.members[uid] != nil
}

// plainVictim is a pod without a gang that is being preempted by a gang.
type plainVictim struct {
	of    *Preemption // by which it is to end; nil: its deletion was requested
	since time.Time   // when
}

// plainVictim returns the state of a pod without a gang that is being preempted by a gang, nil if it is not, or not any
// more.
func (r *Registry) plainVictim(uid types.UID) *plainVictim {
	v := r.plainVictims[uid]
	if v != nil && v.of == nil && r.now.Sub(v.since) >= preemptionReported { // it cannot be deleted
		delete(r.plainVictims, uid)
		return nil
	}
	return v
}

// RecordPlainPodGone records that a pod without a gang is gone.
func (r *Registry) RecordPlainPodGone(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordRoomGrowth()
	delete(r.plainVictims, uid)
}
