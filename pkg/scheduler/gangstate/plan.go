package gangstate

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/mark"
)

// Plan is a decision that is being carried out: which pods go to which nodes, all or none of them until the barrier
// opens. All fields but the immutable first ones are guarded by Registry.mu.
type Plan struct {
	// ID orders plans: the older is bound first.
	ID uint64
	// Gang is the PodGroup.
	Gang Key
	// Task is what was planned.
	Task Task

	tree     *gang.Tree           // what was planned; the PodGroup's may be another by now
	leaves   map[types.UID]string // of tree, by member
	nodes    map[types.UID]string
	order    []*member
	places   map[types.UID]int // in order, by member; never changed, so read without the registry's lock
	next     int               // of order: the first member not handed out yet
	handed   types.UID         // the member that was handed out last and must be assumed before the next
	assumed  map[types.UID]bool
	arrived  int
	settled  map[types.UID]bool // bound or released; true = bound
	open     bool               // the barrier: bindings may be posted
	aborted  bool
	reason   string
	progress time.Time     // when the last member was assumed; at first, when the plan was committed
	opened   chan struct{} // closed when the barrier opens
	failed   chan struct{} // closed when the plan is aborted
	gang     *gangState
	mark     mark.Mark // of all members, but for Next (marks.go); never changed, as the next two
	needed   []int     // places in order of the members without which the plan does not satisfy the tree, ascending
	tags     []uint64  // by index in needed
}

// Work is what a leader's cycle has to plan.
type Work struct {
	Gang Key
	Task Task
	Tree *gang.Tree
	// Problem is what to plan. Refill: the sub-groups that the tree needs and that never were admitted, as units (G12).
	Problem placement.Problem
	// Singles, for Refill only, are the waiting pods of sub-groups that were admitted once, in the form of surplus: each
	// is welcome by itself, and none waits for another.
	Singles placement.Problem
	Classes []*corev1.Pod // by class index: the first pod of the class
	Pods    map[string]*corev1.Pod
}

// Begin returns what the pod's cycle has to plan, if the pod is its gang's leader and a plan may be made now. The reason
// is why not.
func (r *Registry) Begin(pod *corev1.Pod) (*Work, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[pod.UID]
	switch {
	case m == nil:
		return nil, "its PodGroup has not seen it yet"
	case m.gang.leader != pod.UID:
		return nil, "another pod of the gang speaks for it"
	case r.committing != nil:
		r.again(m.gang)
		return nil, "another gang is being committed"
	}
	g := m.gang
	g.leaderSeen, g.yieldedTo, g.yieldedAt = true, Key{}, time.Time{}
	g.keepUntil = time.Time{}
	g.changed, g.refusedAtGen = false, r.cluster // what happens from here on is not in this attempt
	profile := r.profile(g)
	c := r.count(g, profile)
	task, ready := r.task(g, c, profile)
	if !ready {
		return nil, "the gang is not complete any more"
	}
	w := &Work{Gang: g.key, Task: task, Tree: g.tree, Pods: map[string]*corev1.Pod{}}
	w.Problem = placement.Problem{Tree: g.tree, Have: c.bound, Held: r.held(g), Pods: map[string][]placement.Pod{}}
	classes := map[string]int{}
	for _, m := range g.waiting(profile) {
		i, ok := classes[m.class]
		if !ok {
			i = len(w.Classes)
			classes[m.class] = i
			w.Classes = append(w.Classes, m.pod)
		}
		w.Pods[string(m.pod.UID)] = m.pod
		w.Problem.Pods[m.leaf] = append(w.Problem.Pods[m.leaf], placement.Pod{ID: string(m.pod.UID), Class: i})
	}
	if task == Refill {
		w.Singles = w.Problem
		w.Singles.Have, w.Singles.Pods = gang.Counts{}, map[string][]placement.Pod{}
		w.Problem.Have = maps.Clone(c.bound)
		for _, leaf := range g.tree.Leaves() {
			name := leaf.Name()
			w.Singles.Have[name] = max(c.bound[name], leaf.Min())
			if name == "" || g.admittedGroups.Has(name) {
				w.Singles.Pods[name] = w.Problem.Pods[name]
				w.Problem.Have[name] = w.Singles.Have[name]
			}
		}
	}
	return w, ""
}

// held counts the pods bound now, completions aside.
func (r *Registry) held(g *gangState) gang.Counts {
	c := gang.Counts{}
	for _, m := range g.members {
		if m.misplaced == "" && m.isBound() {
			c[m.leaf]++
		}
	}
	return c
}

// Commit puts a plan in force. It fails, with the reason, if what the plan rests on has changed since Begin.
func (r *Registry) Commit(w *Work, placements []placement.Placement, now time.Time) (*Plan, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[w.Gang]
	if g == nil {
		return nil, "the gang is gone"
	}
	if g.tree != w.Tree || g.plan != nil || r.committing != nil {
		r.again(g)
		return nil, "the gang changed while it was planned"
	}
	profile := r.profile(g)
	r.planSeq++
	p := &Plan{
		ID: r.planSeq, Gang: g.key, Task: w.Task, gang: g, progress: now,
		tree: w.Tree, leaves: map[types.UID]string{}, nodes: map[types.UID]string{}, places: map[types.UID]int{},
		assumed: map[types.UID]bool{}, settled: map[types.UID]bool{},
		opened: make(chan struct{}), failed: make(chan struct{}),
	}
	for _, pl := range placements {
		m := g.members[types.UID(pl.Pod.ID)]
		if m == nil || !m.usable(profile) || m.leaf != pl.Leaf {
			r.again(g)
			return nil, "a pod of the gang changed while it was planned"
		}
		p.places[m.pod.UID] = len(p.order)
		p.order = append(p.order, m)
		p.nodes[m.pod.UID], p.leaves[m.pod.UID] = pl.Node, m.leaf
	}
	var whole gang.Counts // of a plan for a minimum: what is bound when all its members are
	if w.Task == Minimum {
		// What was bound at Begin may be gone, or released (partial.go).
		c := r.count(g, profile)
		for _, m := range p.order {
			c.bound[m.leaf]++
		}
		if !g.tree.Satisfied(c.bound) {
			r.again(g)
			return nil, "a bound pod of the gang went while it was planned"
		}
		whole = c.bound
	}
	g.markPlan(p, whole)
	for _, m := range p.order {
		r.plans[m.pod.UID] = p
	}
	g.plan, r.committing = p, p
	g.leader, g.refusedAt, g.verdict = "", time.Time{}, podgroup.Refusal{}
	return p, ""
}

// Next returns the next member to be handed to the scheduling loop, nil if no plan is being committed. A member that was
// handed out and has not been assumed (its cycle failed or was skipped) aborts the plan.
func (r *Registry) Next() *corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.committing
	if p == nil {
		return nil
	}
	if p.handed != "" && !p.assumed[p.handed] {
		r.abort(p, AbortRefused, "a member was not placed where it was planned")
		p.gang.backOff(p.progress)
		return nil
	}
	for p.next < len(p.order) && p.assumed[p.order[p.next].pod.UID] {
		p.next++ // the leader, whose own cycle came first
	}
	if p.next == len(p.order) {
		r.committing = nil
		return nil
	}
	m := p.order[p.next]
	p.handed = m.pod.UID
	return m.pod
}

// PlannedNode returns the node of a pod in a plan that is being committed.
func (r *Registry) PlannedNode(uid types.UID) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plans[uid]
	if p == nil || p.aborted || p != r.committing {
		return "", false
	}
	return p.nodes[uid], true
}

// PlanOf returns the plan that the pod is part of, nil if none.
func (r *Registry) PlanOf(uid types.UID) *Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plans[uid]
}

// Assume tells that the scheduler has reserved the node for the pod. The error says why it may not go on.
func (r *Registry) Assume(uid types.UID, node string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, m := r.plans[uid], r.members[uid]
	switch {
	case p == nil || m == nil:
		return fmt.Errorf("no plan of its gang is in force")
	case p.aborted:
		return fmt.Errorf("the plan of its gang was aborted: %s", p.reason)
	case m.state != pending:
		return fmt.Errorf("it has a node already")
	case p.nodes[uid] != node:
		return fmt.Errorf("planned on node %s, not on %s", p.nodes[uid], node)
	}
	p.assumed[uid], p.progress = true, now
	m.state, m.node = assumed, node
	if len(p.assumed) == len(p.order) && r.committing == p {
		r.committing = nil
	}
	return nil
}

// Permit reports whether the pod's plan is in force: only then may it go to its binding.
func (r *Registry) Permit(uid types.UID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plans[uid]
	switch {
	case p == nil:
		return fmt.Errorf("no plan of its gang is in force")
	case p.aborted:
		return fmt.Errorf("the plan of its gang was aborted: %s", p.reason)
	}
	return nil
}

// Release tells that the scheduler gave the pod's reservation back (Unreserve): its cycle or its binding failed.
func (r *Registry) Release(uid types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cluster++
	p, m := r.plans[uid], r.members[uid]
	if m != nil && m.state == assumed {
		m.state, m.node = pending, ""
	}
	if p == nil {
		return Effects{}
	}
	r.abort(p, AbortUnprepared, "a member could not be placed or prepared")
	if p.assumed[uid] && p.aborted {
		r.unwinding--
	}
	delete(p.assumed, uid)
	p.settle(uid, false)
	g := p.gang
	r.finish(p)
	var e Effects
	if g.plan == nil {
		g.pause(p, now)
		e = r.evaluate(g, now)
	}
	if m != nil && m.state == pending && m.gang.key != keyOf(m.pod) {
		e.add(r.setPod(m.pod, now)) // its annotation changed while it was assumed
	}
	return e
}

// Posted tells that the API server accepted the pod's binding.
func (r *Registry) Posted(uid types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, p := r.members[uid], r.plans[uid]
	if m != nil && m.state == assumed {
		m.state = posted
		if p != nil {
			m.setMark(p.markOf(uid), "")
		}
	}
	if p == nil {
		return Effects{}
	}
	p.settle(uid, true)
	g := p.gang
	r.finish(p)
	if g.plan != nil {
		return Effects{}
	}
	if p.isPartial() {
		g.pause(p, now)
	}
	return r.evaluate(g, now)
}

// Abort ends a plan whose barrier has not opened.
func (r *Registry) Abort(uid types.UID, cause AbortCause, reason string, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plans[uid]
	if p == nil || p.open || p.aborted {
		return Effects{}
	}
	g := p.gang
	r.abort(p, cause, reason)
	if g.plan != nil {
		return Effects{}
	}
	g.backOff(now)
	return r.evaluate(g, now)
}

// Refuse records that the leader's attempt found no plan.
func (r *Registry) Refuse(key Key, v podgroup.Refusal, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[key]
	if g == nil {
		return Effects{}
	}
	g.verdict, g.refusedAt = v, now
	r.attend(g)
	return Effects{Dirty: []Key{key}}
}

// Retry tells that what a refused attempt of the gang rested on holds no more: it is tried again at once.
func (r *Registry) Retry(key Key, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[key]
	if g == nil {
		return Effects{}
	}
	g.changed = true // for an attempt that is being made
	if g.leader == "" || g.refusedAt.IsZero() {
		return Effects{}
	}
	r.again(g)
	return Effects{Activate: r.wake(g, now)}
}

// Arrive is called by a member's binding when everything of its own is prepared. It returns when all members of the plan
// have arrived (nil), or the plan was aborted, or ctx or the timeout ended.
func (r *Registry) Arrive(ctx context.Context, uid types.UID, timeout time.Duration) error {
	p, err := r.arrive(uid)
	if err != nil {
		return err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.opened:
	case <-p.failed:
		err = fmt.Errorf("the plan of its gang was aborted: %s", p.Reason(r))
	case <-timer.C:
		r.Abort(uid, AbortLate, fmt.Sprintf("a member was not ready to be bound within %s", timeout), time.Now())
		err = fmt.Errorf("waited %s for the other members of the gang to be ready to be bound", timeout)
	case <-ctx.Done():
		r.Abort(uid, AbortLate, "the scheduler ends", time.Now())
		err = ctx.Err()
	}
	select {
	case <-p.opened: // also if its own time was over at the same moment: the others go through
		return nil
	default:
		return err
	}
}

// arrive counts a member that has arrived, and opens the barrier with the last one if the gang will be whole.
func (r *Registry) arrive(uid types.UID) (*Plan, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plans[uid]
	if p == nil {
		return nil, fmt.Errorf("no plan of its gang is in force")
	}
	if !p.aborted {
		p.arrived++
		if p.arrived == len(p.order) && !p.open {
			if r.makesWhole(p) {
				p.open = true
				close(p.opened)
			} else {
				r.abort(p, AbortChanged, "a bound pod that the plan counted on is gone")
			}
		}
	}
	return p, nil
}

// makesWhole reports whether the members of the plan and what is bound beside them satisfy the tree that was planned. A
// gang that was admitted is never partial again, so for one any plan will do.
func (r *Registry) makesWhole(p *Plan) bool {
	if p.Task != Minimum {
		return true
	}
	c := gang.Counts{}
	for _, leaf := range p.leaves {
		c[leaf]++
	}
	present := p.gang.presentRun()
	for uid, m := range p.gang.members {
		_, planned := p.leaves[uid]
		_, leaving := r.departing[uid]
		if planned || leaving {
			continue
		}
		if leaf, misplaced := leafOf(p.tree, m.pod); misplaced == "" && (m.isBound() || m.hasCompleted(present)) {
			c[leaf]++
		}
	}
	return p.tree.Satisfied(c)
}

// Reason returns why the plan was aborted.
func (p *Plan) Reason(r *Registry) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.reason
}

// Index returns the place of a member in the plan: bindings are posted in this order.
func (p *Plan) Index(uid types.UID) int { return p.places[uid] }

// abort ends a plan that has not opened: members that were not assumed are free at once, the others when the scheduler
// releases them.
func (r *Registry) abort(p *Plan, cause AbortCause, reason string) {
	if p.open || p.aborted {
		return
	}
	p.aborted, p.reason = true, reason
	close(p.failed)
	if r.opts.Aborted != nil {
		r.opts.Aborted(cause)
	}
	if r.committing == p {
		r.committing = nil
	}
	for _, m := range p.order {
		if p.assumed[m.pod.UID] {
			r.unwinding++
		} else {
			p.settle(m.pod.UID, false)
		}
	}
	r.finish(p)
}

// settle records that nothing more will happen to a member of the plan. Of an aborted plan, an assumed member is settled
// by its release alone.
func (p *Plan) settle(uid types.UID, isBound bool) {
	if p.aborted && p.assumed[uid] {
		return
	}
	if _, done := p.settled[uid]; !done {
		p.settled[uid] = isBound
	}
}

// isPartial reports whether a member was given back.
func (p *Plan) isPartial() bool {
	for _, isBound := range p.settled {
		if !isBound {
			return true
		}
	}
	return false
}

// finish ends a plan of which every member is settled.
func (r *Registry) finish(p *Plan) {
	if len(p.settled) < len(p.order) {
		return
	}
	for _, m := range p.order {
		if r.plans[m.pod.UID] == p {
			delete(r.plans, m.pod.UID)
		}
	}
	if p.gang.plan == p {
		p.gang.plan = nil
		r.attention.Insert(p.gang.key) // evaluated by the caller or by the next Tick
	}
	if r.committing == p {
		r.committing = nil
	}
}

// again has the leader woken once more by Tick: its cycle ended without a verdict.
func (r *Registry) again(g *gangState) {
	g.leaderSeen = false
	r.attend(g)
}

// pause delays the next election after a plan that failed, unless it is the first and left the gang bound in part. What is
// bound is of no use without the rest, so the rest is tried at once, and before others take its room.
func (g *gangState) pause(p *Plan, now time.Time) {
	if p.open && g.failures == 0 && !g.admitted && g.holds() {
		g.failures++
		g.notBefore, g.keepUntil = time.Time{}, now.Add(keepFor)
		return
	}
	g.backOff(now)
}

// backOff delays the next election after a plan that failed on its way.
func (g *gangState) backOff(now time.Time) {
	d := minBackoff << min(g.failures, 10)
	g.failures++
	g.notBefore = now.Add(min(d, maxBackoff))
}

// Unanswered tells that the API server gave no answer to a binding of the gang: it is away, or this one request failed on
// its way. Whoever is told so by AwaitsAnswer has to find out, and to call Answers.
func (r *Registry) Unanswered(key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unanswered = key
}

// AwaitsAnswer reports whether a binding got no answer since Answers was called last, and of which gang.
func (r *Registry) AwaitsAnswer() (Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unanswered, r.unanswered != Key{}
}

// Answers tells that the API server answers; back: after it did not. Then no gang is to blame for what failed meanwhile,
// and all that wait for their back-off are tried at once.
func (r *Registry) Answers(back bool, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unanswered = Key{}
	var e Effects
	if !back {
		return e
	}
	for _, g := range r.gangs {
		if g.failures > 0 {
			g.failures, g.notBefore = 0, time.Time{}
			e.add(r.evaluate(g, now))
		}
	}
	return e
}

// Unwinding reports whether members of aborted plans are still assumed: a plan made now would see their reservations.
func (r *Registry) Unwinding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unwinding > 0
}
