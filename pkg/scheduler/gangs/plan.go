// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/marks"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// Plan is a plan in force: which pods are bound to which nodes. Until the barrier opens, either all of them are bound
// or none. All fields except the immutable first ones are guarded by Registry.mu.
type Plan struct {
	// Priority and ID order plans: that with the higher priority is bound first, then the older one. Priority is that
	// of the gang when the plan was committed; math.MaxInt32 for a gang that is repaired (TierRepair).
	Priority int32
	ID       uint64
	// Gang is the PodGroup.
	Gang Key
	// Task is what was planned.
	Task Task

	tree      *gang.Tree          // the planned tree; the PodGroup may have a different one by now
	members   []plannedMember     // in the order in which members are handed out
	places    map[types.UID]int   // indexes in members, by UID; immutable, so read without the registry's lock
	leaves    map[*gang.Group]int // members by leaf of tree; immutable
	byNode    map[string][]int    // indexes in members, by node; nil until onNode is asked
	next      int                 // of members: the first member not handed out yet
	handed    int                 // 1 + index of the member that was handed out last and must be assumed before the next one; 0: none
	assumed   int                 // members that are assumed
	settled   int                 // members that are bound or released
	lost      bool                // a member was released
	told      uint64              // Registry.cycles when gangs that it has refused were told so last
	arrived   int
	passable  bool                           // see CommittingPlan
	amounts   map[string]reservations.Amount // see RoomOfMembers; by class
	open      bool                           // the barrier: bindings may be posted
	aborted   bool
	overtaken bool          // aborted in favor of a refill of the gang
	doom      doom          // doomed.go
	reason    string        // why it was aborted, or its first binding failed; "" = neither
	progress  time.Time     // when the last member was assumed; initially when the plan was committed
	opened    chan struct{} // closed when the barrier opens
	failed    chan struct{} // closed when the plan is aborted
	gang      *gangState
	mark      marks.Mark // of all members, without Next (marks.go); immutable, like the next two fields
	needed    []int      // indexes in members of those without which the plan does not satisfy the tree, ascending
	tags      []uint64   // by index in needed

	asker   reservations.Asker           // Work.Asker; immutable
	group   *v2alpha2.PodGroup           // of which it was made; immutable
	relied  map[string]map[string]string // Work.Relied; immutable
	levels  map[string]string            // placement.Problem.Required; immutable
	lacking func() string                // Work.Lacking; immutable
	placed  map[string][]string          // by leaf: the nodes of bound pods that the plan knows, sorted; nil: no level is required; immutable
}

// plannedMember is one member of a plan.
type plannedMember struct {
	member  *member
	leaf    *gang.Group // of Plan.tree
	node    string
	assumed bool
	arrived bool // at the barrier
	settled bool

	permitted bool // its scheduling cycle succeeded: what follows is its preparation
}

// PlanAborted is what errors of members of an aborted plan begin with.
const PlanAborted = "the plan of its gang was aborted"

// Has reports whether the pod is a member of the plan. The leader need not be a member: a gang may start without it.
func (p *Plan) Has(uid types.UID) bool {
	_, ok := p.places[uid]
	return ok
}

func (p *Plan) member(uid types.UID) *plannedMember {
	i, ok := p.places[uid]
	if !ok {
		return nil
	}
	return &p.members[i]
}

// CommitPlan puts a plan in force. If the state on which the plan is based has changed since BeginAttempt, it returns
// nil and the reason.
func (r *Registry) CommitPlan(w *Work, placements []placement.Placement, now time.Time) (*Plan, string) {
	p := &Plan{
		Gang: w.Gang, Task: w.Task, progress: now, opened: make(chan struct{}), failed: make(chan struct{}),
		tree: w.Tree, group: w.Group, relied: w.Relied, lacking: w.Lacking, levels: w.Problem.Required,
		members: make([]plannedMember, len(placements)), places: make(map[types.UID]int, len(placements)), leaves: map[*gang.Group]int{},
	}
	if len(w.Problem.Required) > 0 {
		p.placed = w.Problem.Nodes
	}
	p.passable, p.asker = !w.TakesMoreThanRoom, w.Asker()
	for i := range placements {
		pl, x := &placements[i], &p.members[i]
		x.member, x.leaf, x.node = w.members[pl.Pod.Index], w.Tree.Group(pl.Leaf), pl.Node
		p.places[types.UID(pl.Pod.ID)] = i
		p.leaves[x.leaf]++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[w.Gang]
	if g == nil {
		return nil, "the gang is gone"
	}
	if g.tree != w.Tree || g.plan != nil || g.isLosingPods() || r.committing != nil {
		r.wakeLeaderAgain(g)
		return nil, "the gang changed while it was planned"
	}
	profile := g.numbers.Profile()
	r.planSeq++
	p.Priority, p.ID, p.gang = g.leaderRank().Priority, r.planSeq, g
	for i := range p.members {
		if x := &p.members[i]; !x.member.entry.IsUsable(profile) || x.member.entry.Share().Leaf != x.leaf { // not usable: also one that was removed
			r.wakeLeaderAgain(g)
			return nil, "a pod of the gang changed while it was planned"
		}
	}
	if !r.makesWhole(p) {
		// Pods that were bound at BeginAttempt may have been deleted or released (partial.go).
		r.wakeLeaderAgain(g)
		return nil, "a bound pod of the gang was removed while it was planned"
	}
	g.assignMark(p)
	g.recordUnits(p)
	g.plan, r.committing = p, p
	g.outdatePromise()
	g.refusedAt, g.refusal, g.hopeless.refused = time.Time{}, podgroup.Refusal{}, ""
	g.passed = 0 // after single pods, units come next
	g.cuts = 0
	r.enterPhase(g, Committed)
	r.recordRoomTaken(p)
	// Its room counts as free for preemptors.
	r.recordVictimPriority(g.priority())
	if g.preemption != nil && g.preemption.IsPreparing() { // other room became free
		r.unmark = append(r.unmark, r.endPreemption(g, evictions.Spared).Unmark...) // Tick repeats the activations
	}
	r.reindex(g)
	return p, ""
}

// NextMember returns the next member to be handed to the scheduling loop, nil if no plan is being committed. If the
// previous member has not been assumed (its cycle failed or was skipped), its plan is aborted.
func (r *Registry) NextMember() *corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := r.committing; p != nil; p = r.committing {
		if last := p.handed - 1; last >= 0 && !p.members[last].assumed && !p.members[last].settled {
			g := p.gang
			if r.abortPlan(p, AbortRefused, notPlaced); g.plan == nil { // else the last release of a member counts the failure
				g.backOff(p, p.progress)
				r.reindex(g)
			}
			continue
		}
		for p.next < len(p.members) && (p.members[p.next].assumed || p.skipsNext(r.now)) {
			p.next++ // also the leader, which was assumed in its own cycle
		}
		if p.next < len(p.members) {
			p.handed = p.next + 1
			return p.members[p.next].member.pod
		}
		r.endHandingOut(p, r.now)
	}
	return nil
}

// onNode returns the members that are planned on the node, as indexes. Callers hold Registry.mu.
func (p *Plan) onNode(node string) []int {
	if p.byNode == nil {
		p.byNode = map[string][]int{}
		for i := range p.members {
			p.byNode[p.members[i].node] = append(p.byNode[p.members[i].node], i)
		}
	}
	return p.byNode[node]
}

// PlannedNode returns the node of a pod in a plan that is being committed.
func (r *Registry) PlannedNode(uid types.UID) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.planOf(uid)
	if p == nil || p.aborted || p != r.committing {
		return "", false
	}
	return p.member(uid).node, true
}

// PlanOf returns the plan that the pod is part of, nil if none.
func (r *Registry) PlanOf(uid types.UID) *Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.planOf(uid)
}

// planOf returns the plan that the pod is part of, from CommitPlan until all members of the plan are bound or released.
// nil: none.
func (r *Registry) planOf(uid types.UID) *Plan {
	if m := r.members[uid]; m != nil && m.gang.plan != nil && m.gang.plan.Has(uid) {
		return m.gang.plan
	}
	return r.left[uid]
}

// AssumeMember records that the scheduler has reserved the node for the pod. The error states why the pod must not
// proceed.
func (r *Registry) AssumeMember(uid types.UID, node string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	p, m := r.planOf(uid), r.members[uid]
	switch {
	case p == nil || m == nil:
		return fmt.Errorf("no plan of its gang is in force")
	case p.aborted:
		return fmt.Errorf(PlanAborted+": %s", p.reason)
	case m.state != count.Pending:
		return fmt.Errorf("the pod already has a node")
	case p.member(uid).node != node:
		return fmt.Errorf("planned on node %s, not on %s", p.member(uid).node, node)
	}
	if s := p.member(uid); !s.assumed {
		s.assumed = true
		p.assumed++
	}
	p.progress = now
	m.state, m.node = count.Assumed, node
	r.takeReserved(m)
	if r.haveReserved.Load() && !p.asker.Ends.IsZero() && r.opts.Amount != nil {
		r.reserved.Occupy(p.asker, node, reservations.Occupied{Pod: uid, Amount: r.opts.Amount(m.pod)})
	}
	m.recount()
	if p.assumed == len(p.members) {
		r.endCommitting(p)
	}
	return nil
}

// PermitMember returns an error unless the pod's plan is in force: only then may the pod proceed to its binding.
func (r *Registry) PermitMember(uid types.UID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.planOf(uid)
	switch {
	case p == nil:
		return fmt.Errorf("no plan of its gang is in force")
	case p.aborted:
		return fmt.Errorf(PlanAborted+": %s", p.reason)
	}
	p.member(uid).permitted = true
	return nil
}

// RecordBindingFailed records why a binding of the plan failed. ReleaseMember follows.
func (r *Registry) RecordBindingFailed(uid types.UID, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.planOf(uid); p != nil && p.reason == "" {
		p.reason = why
	}
}

// RecordPosted records that the API server accepted the pod's binding.
func (r *Registry) RecordPosted(uid types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	m, p := r.members[uid], r.planOf(uid)
	if m != nil && m.state == count.Assumed {
		m.state = count.Posted
		if p != nil {
			m.setMark(p.markOf(uid), "")
		}
		r.ranks.Delete(uid)
		r.freeReserved(r.reserved.EndTakenBy(uid))
		r.recountBound(m)
	}
	if p == nil {
		return r.endCall(Effects{})
	}
	p.endMember(uid, true)
	g := p.gang
	r.finishPlan(p)
	if g.plan != nil {
		r.recordStart(g, now)
		return r.endCall(Effects{})
	}
	if p.lost {
		g.pauseAfter(p, now)
	}
	return r.endCall(r.evaluate(g, now))
}

// Index returns the index of a member in the plan. Bindings are posted in this order.
func (p *Plan) Index(uid types.UID) int { return p.places[uid] }
