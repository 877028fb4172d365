// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// RunningPods are the pods on the nodes of the scheduler's snapshot, by the ID that preemption.World uses for them.
type RunningPods struct {
	Pods []*corev1.Pod
	// Amount returns what a pod has of the extended resources that the preemptor requests.
	Amount func(id int) int64
	// Budgets returns the indexes of the PodDisruptionBudgets that select a pod. nil: there are none.
	Budgets func(id int) []int
	// Sampled reports whether a pod without a gang may be a candidate; nil: any may.
	Sampled func(id int) bool
}

// Candidates are the pods that a gang, or a pod without one, may preempt.
type Candidates struct {
	Workloads []preemption.Workload
	Gangs     []Key // by index in Workloads; zero: a pod without a gang
	Ending    []int // IDs of pods that end without this gang's doing, soon enough, and whose room it only has to wait for
	Plans     []PlanRoom
	Protected int  // pods of lower priority that may not be preempted
	Unsettled bool // other pods may be candidates in a moment, for example of a gang that is being bound
}

// PlanRoom is the room of a plan of lower priority whose members are not being bound yet. It is free when the plan is
// aborted, and no pod ends for that.
type PlanRoom struct {
	Gang Key
	Pods []int // IDs of its assumed members
}

// yieldsTo reports whether the gang has a plan that is aborted for a preemptor: it is not being bound yet, and the gang
// has a lower priority in the queue too, so that it is not planned again before the preemptor.
func (g *gangState) yieldsTo(priority int32) bool {
	return g.plan != nil && !g.plan.open && !g.plan.aborted && !g.plan.isDoomed() && g.vanished == 0 &&
		g.priority() < priority && g.group != nil && g.group.Spec.Preemptibility != v2alpha2.NonPreemptible
}

// AbortPlans aborts plans of lower priority whose room the preemptor of the work needs, unless they are being bound by
// now.
func (r *Registry) AbortPlans(w *Work, plans []PlanRoom, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	var e Effects
	for _, p := range plans {
		if g := r.gangs[p.Gang]; g != nil && g.yieldsTo(w.EvictionPriority) {
			e.add(r.abortForPreemptor(g, w.preemptor()))
		}
	}
	return r.endCall(e)
}

func (r *Registry) abortForPreemptor(g *gangState, by string) Effects {
	p := g.plan
	r.abortPlan(p, AbortPreempted, by+" of higher priority needs the room")
	if g.plan == nil {
		g.backOff(p, r.now)
	}
	return r.evaluate(g, r.now)
}

// Candidates returns the pods that the preemptor of the work may preempt. confirm: only workloads that lose pods by its
// present decision are candidates.
func (r *Registry) Candidates(w *Work, running RunningPods, confirm bool, now time.Time) Candidates {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	c := &candidates{registry: r, work: w, lowest: math.MaxInt32, running: running, own: r.gangs[w.Gang], confirm: confirm}
	switch {
	case c.own != nil:
		c.eviction = c.own.preemption
	case w.Pod == nil: // the gang is gone
		return Candidates{}
	}
	if p := c.eviction; confirm && p != nil {
		c.decided = sets.New[types.UID]()
		for _, v := range p.Victims {
			c.decided.Insert(v.Pod.UID)
		}
	}
	c.members = make([]candidate, 0, len(running.Pods))
	for id := range running.Pods {
		c.addPod(id)
	}
	c.addPlain()
	c.addGangs()
	r.recordLowest(c.lowest)
	return c.Candidates
}

// Victims returns the pods of a decision about the candidates. pods are the RunningPods.
func (c *Candidates) Victims(d *preemption.Decision, pods []*corev1.Pod) []evictions.Victim {
	var victims []evictions.Victim
	for _, v := range d.Victims {
		w := &c.Workloads[v.Workload]
		for _, id := range v.Pods {
			victims = append(victims, evictions.Victim{
				Pod: pods[id], Gang: c.Gangs[v.Workload], Priority: w.Priority, Pods: len(v.Pods), Whole: v.Rung >= preemption.PlainPod, Rung: v.Rung.String(),
			})
		}
	}
	return victims
}

// candidates collects Candidates.
type candidates struct {
	Candidates
	registry *Registry
	work     *Work
	running  RunningPods
	own      *gangState          // nil: the work is that of a pod without a gang
	eviction *evictions.Eviction // by the preemptor; nil: there is none
	plain    []int               // IDs of pods without a gang that are candidates
	members  []candidate         // of other gangs
	gangs    []*gangState
	counts   []int // by gang: its members
	victims  map[*evictions.Eviction]sets.Set[types.UID]
	confirm  bool
	decided  sets.Set[types.UID] // the victims to confirm
	lowest   int32               // priority of a pod, or of the class of a gang
}

// candidate is a bound member of a gang.
type candidate struct {
	*member
	id int
}

func (c *candidates) addPod(id int) {
	r, pod := c.registry, c.running.Pods[id]
	m := r.members[pod.UID]
	c.lowest = min(c.lowest, count.PodPriority(pod))
	isMember := m != nil && m.gang.group != nil && !(m.isBound() && m.misplaced != "")
	if pod.DeletionTimestamp != nil {
		isFar := r.opts.isSlow(pod) && pod.DeletionTimestamp.Sub(r.now) > r.opts.MaxVictimGrace
		if !isFar && r.now.Before(pod.DeletionTimestamp.Add(r.opts.PreemptionTimeout)) && !(m != nil && m.gang == c.own && m.state == count.Assumed) {
			c.Ending = append(c.Ending, id)
		}
		return
	}
	if isMember && m.gang == c.own {
		return
	}
	by, departs := m.departure()
	if departs && by == nil || c.endsForPod(m, pod.UID) {
		c.Ending, c.Unsettled = append(c.Ending, id), true
		return
	}
	if isMember {
		if m.gang.collected == 0 {
			c.gangs, c.counts = append(c.gangs, m.gang), append(c.counts, 0)
			m.gang.collected = len(c.gangs)
		}
		c.counts[m.gang.collected-1]++
		c.members = append(c.members, candidate{m, id})
		return
	}
	priority := count.PodPriority(pod)
	victim := r.plainVictims[pod.UID]
	switch {
	case victim.IsExpected(r.now, r.opts.PreemptionTimeout):
		c.Ending, c.Unsettled = append(c.Ending, id), true
	case departs:
		c.Unsettled = true
	case priority >= c.work.EvictionPriority || c.confirm && victim == nil:
	case victim != nil && (victim.By() == nil || victim.By() != c.eviction):
		c.Unsettled = true
	case c.running.Sampled == nil || c.running.Sampled(id):
		c.plain = append(c.plain, id)
	}
}

// addPlain adds the pods without a gang. There are as many of them as pods in a cluster, so that no list grows for
// each.
func (c *candidates) addPlain() {
	n := len(c.plain) + len(c.gangs)
	c.Workloads, c.Gangs = make([]preemption.Workload, 0, n), make([]Key, len(c.plain), n)
	pods := make([]preemption.Pod, len(c.plain))
	for i, id := range c.plain {
		pod := c.running.Pods[id]
		pods[i] = c.podOf(id, "")
		c.Workloads = append(c.Workloads, preemption.Workload{
			Name: pod.Namespace + "/" + pod.Name, Priority: count.PodPriority(pod), Pods: pods[i : i+1 : i+1],
		})
	}
}

// endsForPod reports whether the pod is to end for a pod without a gang. Its room is not free for others, but that pod
// is nominated for the node, and counts there.
func (c *candidates) endsForPod(m *member, uid types.UID) bool {
	if m == nil || m.gang.victimOf == nil {
		by, _ := m.departure()
		return by.IsForPod() || c.registry.plainVictims[uid].By().IsForPod()
	}
	by := m.gang.victimOf
	if !by.IsForPod() {
		return false
	}
	if c.victims[by] == nil {
		if c.victims == nil {
			c.victims = map[*evictions.Eviction]sets.Set[types.UID]{}
		}
		c.victims[by] = sets.New[types.UID]()
		for _, v := range by.Victims {
			c.victims[by].Insert(v.Pod.UID)
		}
	}
	return c.victims[by].Has(uid)
}

func (c *candidates) podOf(id int, leaf string) preemption.Pod {
	pod := c.running.Pods[id]
	p := preemption.Pod{ID: id, Leaf: leaf, Amount: c.running.Amount(id),
		Grace: ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)}
	p.Kept = c.registry.opts.isSlow(pod) || c.work.Pod != nil && count.PodPriority(pod) >= c.work.EvictionPriority
	if start := pod.Status.StartTime; start != nil {
		p.Running = int64(max(0, c.registry.now.Sub(start.Time)) / time.Second)
	}
	if c.running.Budgets != nil {
		p.Budgets = c.running.Budgets(id)
	}
	return p
}

// isSlow reports whether a pod may take longer to end than a victim may: by its grace period, or by that with which it
// is deleted.
func (o *Options) isSlow(pod *corev1.Pod) bool {
	grace := max(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds), ptr.Deref(pod.DeletionGracePeriodSeconds, 0))
	return o.MaxVictimGrace > 0 && grace > int64(o.MaxVictimGrace/time.Second)
}

// addGangs adds the gangs of the members. Those of one gang are brought together first: there are no lists that grow
// for each gang.
func (c *candidates) addGangs() {
	ends, end := make([]int, len(c.gangs)), 0
	for i, n := range c.counts {
		ends[i] = end
		end += n
	}
	sorted := make([]candidate, len(c.members))
	for _, m := range c.members {
		at := &ends[m.gang.collected-1]
		sorted[*at] = m
		*at++
	}
	pods := make([]preemption.Pod, len(sorted))
	start := 0
	for i, g := range c.gangs {
		g.collected = 0
		c.addGang(g, sorted[start:ends[i]], pods[start:ends[i]:ends[i]])
		start = ends[i]
	}
}

// addGang adds a gang with bound pods. list has room for them.
func (c *candidates) addGang(g *gangState, pods []candidate, list []preemption.Pod) {
	priority := g.evictionPriority()
	c.lowest = min(c.lowest, g.classPriority())
	yields := !c.confirm && g.yieldsTo(c.work.EvictionPriority)
	if yields {
		room := PlanRoom{Gang: g.key}
		pods = slices.DeleteFunc(pods, func(p candidate) bool {
			if p.state == count.Assumed {
				room.Pods = append(room.Pods, p.id)
			}
			return p.state == count.Assumed
		})
		if c.Plans = append(c.Plans, room); len(pods) == 0 {
			return
		}
	}
	mayEnd, lower := func(p candidate) bool { return count.PodPriority(p.pod) < c.work.EvictionPriority }, len(pods)
	isAbove := priority >= c.work.EvictionPriority
	if isAbove { // only pods above its minimum that have a lower priority themselves may end
		if !g.numbers.IsMixed() {
			return
		}
		priority, lower = math.MinInt32, 0
		for _, p := range pods {
			if mayEnd(p) {
				priority, lower = max(priority, count.PodPriority(p.pod)), lower+1
			}
		}
	}
	switch {
	case lower == 0:
		return
	case g.victimOf != nil && g.victimOf != c.eviction, c.confirm && g.victimOf == nil,
		slices.ContainsFunc(pods, func(p candidate) bool { return p.isDeparting() }): // their deletion was not accepted yet
		c.Protected, c.Unsettled = c.Protected+lower, true
		return
	case g.tree == nil, g.group.Spec.Preemptibility == v2alpha2.NonPreemptible:
		c.Protected += lower
		return
	case g.plan != nil && !yields, g.vanished > 0, len(pods) < g.boundMembers(),
		slices.ContainsFunc(pods, func(p candidate) bool { return !p.isBound() }):
		c.Protected, c.Unsettled = c.Protected+lower, true // which pods it has is known in a moment
		return
	}
	stay := gang.Counts{} // what a confirmation may not choose in place of a victim, and pods of a higher priority
	if c.confirm || isAbove {
		pods = slices.DeleteFunc(pods, func(p candidate) bool {
			if (!isAbove || mayEnd(p)) && (!c.confirm || c.decided.Has(p.pod.UID)) {
				return false
			}
			stay[p.leaf]++
			return true
		})
	}
	slices.SortFunc(pods, func(a, b candidate) int { return a.entry.Order().Compare(b.entry.Order()) })
	for i, p := range pods {
		list[i] = c.podOf(p.id, p.leaf)
	}
	w := g.workload(list[:len(pods)])
	w.Name, w.Priority = g.key.String(), priority
	if len(stay) > 0 {
		for leaf, n := range w.Completed {
			stay[leaf] += n
		}
		w.Completed, w.MinimumProtected = stay, true
	}
	c.Workloads, c.Gangs = append(c.Workloads, w), append(c.Gangs, g.key)
}

// Screening bounds what Candidates of a gang there can be, without a look at single pods.
type Screening struct {
	// MayEnd has an entry for each holder. If it is false, none of its pods is a candidate, or ends without the gang's
	// doing.
	MayEnd []bool
	// Priorities has an entry for each holder: its candidates have no lower priority. math.MinInt32: its pods are
	// terminating; math.MaxInt32: it has no candidates.
	Priorities []int32
	Pods       int // those of a lower priority that may end
	Protected  int // those of a lower priority that may not be preempted
}

// ScreenHolders returns which running pods may be Candidates of the gang of the work at most: it goes by what does not
// change with the state of a pod. pods is the number of pods by holder.
func (r *Registry) ScreenHolders(w *Work, holders []podgroup.Holder, pods []int, now time.Time) Screening {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	type others struct { // pods of a holder that are of another gang than they name
		priority int32 // not above that of a gang of theirs
		end      bool  // one of them ends, of whatever priority, and this was not observed yet
	}
	named := map[podgroup.Holder]others{}
	for m := range r.renamed {
		h := podgroup.HolderOf(m.pod)
		h.Terminating = false
		x, known := named[h]
		if priority := min(m.gang.classPriority(), m.gang.numbers.LowestPriority()); !known || priority < x.priority {
			x.priority = priority
		}
		x.end = x.end || m.isDeparting() || m.gang.victimOf.IsForPod()
		named[h] = x
	}
	plainEnd := false // the same of pods without a gang
	for _, victim := range r.plainVictims {
		plainEnd = plainEnd || victim.IsExpected(r.now, r.opts.PreemptionTimeout) || victim.By().IsForPod()
	}
	s, lowest := Screening{MayEnd: make([]bool, len(holders)), Priorities: make([]int32, len(holders))}, int32(math.MaxInt32)
	for i, h := range holders {
		s.Priorities[i] = math.MaxInt32 // of a holder without pods
		if pods[i] == 0 {
			continue
		}
		g, priority := r.gangs[h.Group], h.Priority
		of, isNamed := named[h]
		if isNamed {
			priority = min(priority, of.priority)
		}
		if g != nil {
			priority = min(priority, g.classPriority())
		}
		if g != nil && g.numbers.IsMixed() {
			priority = min(priority, g.numbers.LowestPriority()) // that of the gang is not lower: see gangState.evictionPriority
		}
		lowest = min(lowest, priority)
		mayBePlain := g == nil || g.group == nil || isNamed || g.numbers.Flagged(count.IsStray) > 0
		switch {
		case h.Terminating, of.end, mayBePlain && plainEnd, g != nil && (len(g.departing) > 0 || g.victimOf.IsForPod()):
			s.MayEnd[i] = true
		case priority < w.EvictionPriority && !mayBePlain && g.group.Spec.Preemptibility == v2alpha2.NonPreemptible:
			s.Protected += pods[i]
		default:
			s.MayEnd[i] = priority < w.EvictionPriority
		}
		switch {
		case h.Terminating:
			s.Priorities[i] = math.MinInt32
		case s.MayEnd[i] && priority < w.EvictionPriority:
			s.Priorities[i] = priority
		}
		if s.MayEnd[i] && !h.Terminating && priority < w.EvictionPriority {
			s.Pods += pods[i]
		}
	}
	r.recordLowest(lowest)
	return s
}
