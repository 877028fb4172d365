// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// capacityReasons are the refusals that an additional or larger node could resolve, unless Refusal.NoNodeHelps is set,
// and which are therefore reported to cluster autoscalers (docs/decisions, G13). ReasonTopologyUnavailable is not one
// of them: enough is free in total, and nothing tells an autoscaler in which domain a new node would have to be.
var capacityReasons = sets.New(v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonTooLarge, v2alpha2.ReasonNodesUnavailable,
	v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonInsufficientResources, v2alpha2.ReasonFragmented)

// row contains the data of a member that Facts and BeginAttempt need: of members that wait, or that are bound and do
// not count. Rows are stored in one slice, so that copying them is fast.
type row struct {
	member    *member // must not be read without the lock
	pod       *corev1.Pod
	leaf      *gang.Group
	class     string
	scheduler string // with which it waits
	misplaced string
	gate      string
	since     time.Time
	order     count.Order
	flags     count.Flags
}

const listed = count.IsTerminating | count.IsMisplaced | count.IsGated | count.IsUsable | count.IsStray

// updateRow updates the row of a member.
func (g *gangState) updateRow(m *member) {
	share := m.entry.Share()
	if share.Flags&listed == 0 {
		if m.row == 0 {
			return
		}
		last := &g.rows[len(g.rows)-1]
		g.rows[m.row-1] = *last
		last.member.row = m.row
		*last = row{}
		g.rows, m.row = g.rows[:len(g.rows)-1], 0
		if len(g.rows) == 0 {
			g.rows = nil // most gangs are bound and stay bound
		}
		return
	}
	if m.row == 0 {
		g.rows = append(g.rows, row{})
		m.row = len(g.rows)
	}
	g.rows[m.row-1] = row{
		member: m, pod: m.pod, leaf: share.Leaf, class: m.class, scheduler: share.Scheduler, misplaced: m.misplaced, gate: m.gate,
		since: m.since, order: *m.entry.Order(), flags: share.Flags,
	}
}

// Facts returns what is known about a gang. It returns false if the gang is unknown, or if the initial objects have
// not all been seen yet (SetSynced). The result shares no mutable state.
func (r *Registry) Facts(key Key) (podgroup.Facts, bool) {
	buffer := rowBuffers.Get().(*[]row)
	defer func() {
		clear(*buffer)
		rowBuffers.Put(buffer)
	}()
	f, need, plan, ok := r.facts(key, buffer)
	copied := *buffer
	if !ok {
		return podgroup.Facts{}, false
	}
	// The remaining work needs no lock.
	rows := make([]*row, len(copied))
	for i := range copied {
		rows[i] = &copied[i]
		if plan != nil && plan.Has(copied[i].pod.UID) {
			copied[i].flags &^= count.IsWaiting
		}
	}
	needs := map[*row]bool{}
	if len(need) > 0 {
		slices.SortFunc(rows, func(a, b *row) int { return a.order.Compare(&b.order) })
		for _, x := range rows {
			if x.flags&count.IsWaiting != 0 && x.flags&count.IsUsable != 0 && x.scheduler == f.Profile && need[x.leaf.Name()] > 0 {
				need[x.leaf.Name()]--
				needs[x] = true
			}
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return a.order.CompareAge(&b.order) })
	var misplaced, stray groupedPods
	gates := sets.New[string]()
	f.Waiting = make([]podgroup.WaitingPod, 0, len(rows))
	for _, x := range rows {
		switch {
		case x.flags&count.IsMisplaced != 0:
			misplaced.add(x)
		case x.flags&count.IsStray != 0:
			stray.add(x)
		}
		if x.flags&count.IsGated != 0 {
			for i := range x.pod.Spec.SchedulingGates {
				gates.Insert(x.pod.Spec.SchedulingGates[i].Name)
			}
		}
		if x.gate != "" && len(x.pod.Spec.SchedulingGates) == 0 {
			if f.GatedByPlugin++; f.GatedByPlugin == 1 {
				f.GatedBy = fmt.Sprintf("pod %s %s", x.pod.Name, x.gate)
			}
		}
		if x.flags&count.IsWaiting != 0 {
			f.Waiting = append(f.Waiting, podgroup.WaitingPod{
				Pod: x.pod, Since: x.since, Gated: len(x.pod.Spec.SchedulingGates) > 0, Misplaced: x.misplaced, NeedsCapacity: needs[x],
			})
		}
	}
	f.Misplaced, f.Stray, f.GateNames = misplaced.list(), stray.list(), sets.List(gates)
	return f, true
}

// groupedPods contains pods without a leaf, by the reason why they have none.
type groupedPods map[string][]string

func (g *groupedPods) add(x *row) {
	if *g == nil {
		*g = groupedPods{}
	}
	(*g)[x.misplaced] = append((*g)[x.misplaced], x.pod.Name)
}

// list returns the groups, the largest first, each with its first pods.
func (g groupedPods) list() []podgroup.Misplaced {
	out := make([]podgroup.Misplaced, 0, len(g))
	for why, pods := range g {
		slices.Sort(pods)
		out = append(out, podgroup.Misplaced{Why: why, Pods: pods[:min(len(pods), 10)], Total: len(pods)})
	}
	slices.SortFunc(out, func(a, b podgroup.Misplaced) int { return cmp.Or(b.Total-a.Total, cmp.Compare(a.Why, b.Why)) })
	return out
}

// rowBuffers are unused copies of rows. Allocating a buffer takes longer than filling it, and would be done while
// holding the lock.
var rowBuffers = sync.Pool{New: func() any { return new([]row) }}

// facts is the part of Facts that needs the lock. It copies the rows to the buffer; need is the number of pods of
// each leaf that need capacity, plan the plan whose members do not wait for one.
func (r *Registry) facts(key Key, buffer *[]row) (f podgroup.Facts, need gang.Counts, plan *Plan, ok bool) {
	*buffer = (*buffer)[:0]
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[key]
	if g == nil || !r.synced {
		return podgroup.Facts{}, nil, nil, false
	}
	f = g.facts(r.now)
	if g.waitsInLine() {
		p := r.line.places[g]
		f.Ahead, f.FirstAhead = p.ahead, p.first
	}
	if f.Binding {
		plan = g.plan
	}
	*buffer = append(*buffer, g.rows...)
	return f, g.lackingPods(f), plan, true
}

// facts returns what is known about the gang, without single pods and without other gangs.
func (g *gangState) facts(now time.Time) podgroup.Facts {
	n, profile := g.numbers, g.numbers.Profile()
	f := podgroup.Facts{
		Namespace: g.key.Namespace, Name: g.key.Name,
		Group: g.group, Tree: g.tree, TreeErr: g.treeErr,
		Created: n.Created.Counts(), Usable: n.Usable(profile).Counts(), Bound: n.Bound.Counts(),
		Admitted: g.admitted, AdmittedGroups: g.admittedGroups.Clone(),
		Binding: g.plan != nil && !g.plan.aborted,
		GPUs:    n.GPUs, HeldGPUs: n.HeldGPUs, Nodes: g.placed.nodes(),
		Profile: profile,
		Pods:    len(g.members), NotOurs: len(g.members) > 0 && n.Flagged(count.IsOurs) == 0,
		Ended:          len(g.members) > 0 && n.Flagged(count.HasEnded) == len(g.members),
		MisplacedTotal: n.Flagged(count.IsMisplaced), StrayTotal: n.Flagged(count.IsStray), Leaving: n.Flagged(count.IsLeaving),
		Terminating: n.Flagged(count.IsTerminating), Gated: n.Flagged(count.IsGated),
	}
	if len(g.members) > n.Flagged(count.HasEnded) {
		f.Priority = new(g.priority())
	}
	if !g.admitted && g.tree != nil {
		f.WaitingSince = g.completeAt
	}
	switch p := g.promise; {
	case p != nil:
		f.Promised = &podgroup.Promised{Since: p.since, Nodes: p.nodes, Starts: p.starts}
	case !g.promisedSince.IsZero():
		f.Promised = &podgroup.Promised{Since: g.promisedSince}
	}
	if g.failures > 0 {
		f.Failures, f.Failure, f.FailingSince = g.failures, g.failure, g.failing
	}
	switch {
	case g.passed > 0 && (g.refusedAt.IsZero() || g.task == SurplusSingle):
		f.Refused, f.RefusedSurplus = g.unitRefusal, true
	case !g.refusedAt.IsZero():
		f.Refused = g.refusal
		f.Refused.At = g.refusedAt
		f.RefusedSurplus = g.task.isSurplus()
	}
	if g.isPartial() {
		f.Partial, f.PartialFor = true, g.incompleteFor
	}
	g.addPreemption(&f, now)
	g.addOtherSchedulers(&f, now)
	if g.group != nil && g.group.Spec.PriorityClassName != "" && g.opts.Priority != nil {
		if _, ok := g.opts.Priority(g.group.Spec.PriorityClassName); !ok {
			f.NoSuchClass = g.group.Spec.PriorityClassName
		}
	}
	return f
}

// addPreemption adds what ends for the gang, and what it lost.
func (g *gangState) addPreemption(f *podgroup.Facts, now time.Time) {
	if g.hopeless.waits || now.Before(g.hopeless.until) {
		f.NoHelp = g.hopeless.why
	}
	f.PreemptionForbiddenBy, f.PreemptsFrom, f.MarksRefused = g.abstention.forbiddenBy, g.abstention.until, g.hopeless.refused
	if g.preempted != nil && g.group != nil && g.preempted.IsRecordedIn(&g.group.Status) {
		g.preempted = nil // from now on it is kept in the status
	}
	f.Preempted, f.LosesPods = g.preempted, g.isLosingPods()
	if g.preemption == nil {
		return
	}
	about := g.preemption.About
	f.Preempting = &about
}

// addOtherSchedulers adds which other schedulers the pods name, and what that means for the gang.
func (g *gangState) addOtherSchedulers(f *podgroup.Facts, now time.Time) {
	f.Foreign, f.ForeignNames = g.numbers.WaitingForOthers(f.Profile)
	f.BoundByOthers, f.OtherNames = g.numbers.BoundByOthers()
	ofStock := slices.Contains(f.ForeignNames, corev1.DefaultSchedulerName) || slices.Contains(f.OtherNames, corev1.DefaultSchedulerName)
	if ofStock && (g.group == nil || !podgroup.IsTranslated(g.group)) {
		f.NotOurs = false // the stock scheduler does not support PodGroups of Muster: the pods lack a schedulerName
	}
	if f.NotOurs && g.group != nil {
		if due := g.unattendedAt(); !due.IsZero() {
			if f.Unattended = !now.Before(due); !f.Unattended {
				f.UnattendedAt = due
			}
		}
		// What was said once is kept up to date.
		f.NotOurs = !f.Unattended && g.group.Status.Reason != v2alpha2.ReasonOtherScheduler
	}
	if f.Foreign+f.BoundByOthers > 0 && f.Profile == "" {
		f.OurNames = sets.List(g.profiles)
	}
}

// unattendedAfter is how long all pods of a gang must have waited for another scheduler, without a sign of it, before
// the PodGroup says that no scheduler of that name seems to run.
const unattendedAfter = time.Minute

// unattendedAt returns from when on the pods of the gang are unattended: no scheduler has bound, or reported anything
// about, any of them for unattendedAfter. Zero: one has, or a pod has scheduling gates.
func (g *gangState) unattendedAt() time.Time {
	var last time.Time
	for _, m := range g.members {
		tried := slices.ContainsFunc(m.pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
		if m.state != count.Pending || tried || len(m.pod.Spec.SchedulingGates) > 0 {
			return time.Time{}
		}
		if m.since.After(last) {
			last = m.since
		}
	}
	return last.Add(unattendedAfter)
}

// lackingPods returns, per leaf, the number of waiting pods for which the refused attempt found no capacity: of the
// missing minimum the fewest pods that satisfy it; of sub-groups above it that have lost pods, the pods that they lack;
// or of the surplus the sub-groups that would be planned as units. It is empty if nothing was refused, or if the
// refusal is not about capacity. Single pods above minMember are not counted: they do not justify a new node.
func (g *gangState) lackingPods(f podgroup.Facts) gang.Counts {
	if g.tree == nil || f.Refused.NoNodeHelps || !capacityReasons.Has(f.Refused.Reason) {
		return nil
	}
	need := gang.Counts{} // by leaf
	var visit func(group *gang.Group)
	visit = func(group *gang.Group) {
		switch {
		case group.Satisfied(f.Bound) || !group.Satisfied(f.Usable):
		case group.IsLeaf():
			need[group.Name()] = group.Min() - f.Bound[group.Name()]
		default:
			children := slices.Clone(group.Children())
			children = slices.DeleteFunc(children, func(child *gang.Group) bool { return !child.Satisfied(f.Usable) })
			slices.SortStableFunc(children, func(a, b *gang.Group) int { return a.MissingPods(f.Bound) - b.MissingPods(f.Bound) })
			for _, child := range children[:group.Min()] {
				visit(child)
			}
		}
	}
	if !f.RefusedSurplus && !g.tree.Satisfied(f.Bound) {
		visit(g.tree.Root())
		return need
	}
	tried := g.task
	if g.passed > 0 && (g.refusedAt.IsZero() || tried == SurplusSingle) { // see facts
		tried = g.passed
	}
	for _, group := range g.tree.Groups() {
		if tried == LostUnit && !g.lostGroups.Has(group.Name()) {
			continue
		}
		// The refill of a gang that has its minimum begins no sub-group.
		if group.Parent().Satisfied(f.Bound) && (f.RefusedSurplus || g.numbers.Bound.Pods(group) > 0) {
			visit(group)
		}
	}
	return need
}

// Keys returns the keys of all known gangs, in no order.
func (r *Registry) Keys() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.gangs))
}
