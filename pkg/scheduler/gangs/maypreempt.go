// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"hash/fnv"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// A gang whose minimum does not fit may preempt pods of lower priority (docs/decisions, G21 to G24). Package evictions
// has the stages of its Eviction. The room that its plan needs is reserved from the first one on. While it is being
// prepared, and until the deletion of each victim is observed, nothing is planned for the gangs that lose pods.

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
	// firstHopeless and longestHopeless bound the time for which it is assumed that preemption would not help a gang
	// for which it did not help; it doubles each time. A search costs the scheduling loop more than a plan.
	firstHopeless, longestHopeless = 5 * time.Second, time.Minute
	// arrivalPause is the time without another pod of a gang after which its pods are not expected to be arriving.
	arrivalPause = time.Second
	// longestWasted bounds the pause after evictions in vain, which doubles with each.
	longestWasted = 10 * time.Minute
)

// searchShare limits the searches for victims of gangs for which preemption did not help before, of all of them
// together, to 1/20 = 5 % of the scheduling loop's time.
const searchShare = 20

// abstention is why the last attempt of a gang did not preempt, although pods may have a lower priority.
type abstention struct {
	forbiddenBy string    // podgroup.Facts.PreemptionForbiddenBy
	until       time.Time // when the PreemptionDelay ends; zero = it was over
}

// hopeless is the memory that preemption would not help, or that nobody can be preempted for now.
type hopeless struct {
	why     string
	refused string    // why the pods of the last decision could not be marked; "": they could
	until   time.Time // no search before
	pause   time.Duration
	seen    uint64 // no search while Registry.lastHelped is not above this; 0: the result may change without a change that is counted
	waits   bool   // the last attempt made no search for this reason

	priority int32 // the lowest one at which victims were searched for
}

// RecordPreemptionMayHelp records a change after which preemption may help gangs that it would not have helped before.
// Changes that only take room or victims away need not be recorded, and neither those that the Registry observes
// itself. What the attempt sees of the cluster must have changed before.
func (r *Registry) RecordPreemptionMayHelp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordMayHelp(everyPriority)
}

// RecordPodsEnded records that pods on nodes have ended, or request less, which may help gangs that could not preempt
// them. It does not help the others: they were refused as if these pods had ended.
func (r *Registry) RecordPodsEnded(pods []*corev1.Pod, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	highest := int32(math.MinInt32)
	for _, pod := range pods {
		highest = max(highest, r.protectedUpTo(pod))
	}
	r.recordMayHelp(highest)
}

// protectedUpTo returns the highest priority of a gang whose search for victims may not have taken into account that
// the pod ends.
func (r *Registry) protectedUpTo(pod *corev1.Pod) int32 {
	m, priority := r.members[pod.UID], count.PodPriority(pod)
	upTo, hasDeparted := r.departed[pod.UID]
	delete(r.departed, pod.UID)
	isOverdue := pod.DeletionTimestamp != nil && !r.now.Before(pod.DeletionTimestamp.Add(r.opts.PreemptionTimeout))
	switch {
	case isOverdue, len(pod.Spec.ResourceClaims) > 0, r.opts.isSlow(pod): // its room, or its devices, did not count as free
	case m != nil:
		return max(priority, m.gang.protectedUpTo())
	case hasDeparted:
		return max(priority, upTo)
	case keyOf(pod).Name == "":
		return priority
	}
	return everyPriority
}

// recordDeparted records that a pod on a node is no member any more, and what protectedUpTo of its gang was: the
// PodGroup may be gone when it is known that the room is free.
func (r *Registry) recordDeparted(pod *corev1.Pod, protected int32) {
	if pod.Spec.NodeName == "" {
		return
	}
	if len(r.departed) >= maxDeparted {
		clear(r.departed)
	}
	r.departed[pod.UID] = protected
}

// maxDeparted bounds the pods that are remembered after they have departed. Without them searches are repeated that do
// not help.
const maxDeparted = 1024

// everyPriority is not below the priority of any gang.
const everyPriority int32 = math.MaxInt32

// recordMayHelp records a change after which preemption may help gangs of at most this priority.
func (r *Registry) recordMayHelp(priority int32) {
	r.mayHelp++
	r.helped = append(slices.DeleteFunc(r.helped, func(x helped) bool { return x.upTo <= priority }), helped{priority, r.mayHelp})
}

// helped is the last change after which preemption may help gangs of at most a priority, and not those of a higher one.
type helped struct {
	upTo    int32
	mayHelp uint64 // Registry.mayHelp after it
}

// lastHelped returns Registry.mayHelp after the last change that may help gangs of the priority.
func (r *Registry) lastHelped(priority int32) uint64 {
	for _, x := range slices.Backward(r.helped) {
		if x.upTo >= priority {
			return x.mayHelp
		}
	}
	return 1
}

// RecordPrioritiesChanged records that PriorityClasses have changed, and so perhaps the priorities of gangs.
func (r *Registry) RecordPrioritiesChanged() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordVictimPriority(math.MinInt32)
	r.recordMayHelp(everyPriority)
	for g := range r.waiting.all { // its class may have forbidden preemption
		if g.phase.isRefused() && g.group != nil && g.group.Spec.PriorityClassName != "" {
			g.hopeless.waits, g.hopeless.seen = true, 0
		}
	}
}

// recordVictim records the priority of a pod that is on a node: its own, or that of its gang, which is not below that
// of its class and of all its pods.
func (r *Registry) recordVictim(pod *corev1.Pod, key Key) {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	p := count.PodPriority(pod)
	if g := r.gangs[key]; key.Name != "" && g != nil {
		p = min(p, g.classPriority())
	}
	r.recordVictimPriority(p)
}

// recordVictimPriority records that there may be pods or gangs of a priority on nodes.
func (r *Registry) recordVictimPriority(p int32) {
	if p < r.lowest {
		r.lowest = p
		r.recordMayHelp(everyPriority)
	}
	r.shiftRecent()
	r.recent[0] = min(r.recent[0], p)
}

// observedLate is how much later than the Registry an attempt may see a pod on its node, at most.
const observedLate = 2 * time.Second

// shiftRecent begins a new period if the present one is over.
func (r *Registry) shiftRecent() {
	if r.now.Sub(r.recentSince) >= observedLate {
		r.recent, r.recentSince = [2]int32{math.MaxInt32, r.recent[0]}, r.now
	}
}

// recordLowest records the lowest priority of all pods on nodes that an attempt sees. What was observed in the last
// moments counts too, because the attempt may not have seen it.
func (r *Registry) recordLowest(p int32) {
	r.shiftRecent()
	r.lowest = min(p, r.recent[0], r.recent[1])
}

// isHopeless reports whether no pod has a lower priority than the gang, or nothing has changed since a search that may
// lead to another result.
func (r *Registry) isHopeless(g *gangState) bool {
	return g.priority() <= r.lowest || g.hopeless.seen >= r.lastHelped(g.hopeless.priority)
}

// retryHopeless lets Tick try a refused gang again that made no search, if something has changed that may help.
func (r *Registry) retryHopeless(g *gangState) {
	if r.isWaitingForSearch(g) {
		r.toSearch[g] = struct{}{}
	}
}

// isWaitingForSearch reports whether the last attempt of a refused gang made no search, and a search may help by now.
func (r *Registry) isWaitingForSearch(g *gangState) bool {
	return g.hopeless.waits && !r.isHopeless(g) && g.phase.isRefused() && r.gangs[g.key] == g
}

// retryFirstHopeless lets the first gang in the order of the queue be tried again whose pause is over. The next one
// follows when the attempts have had no more than their share of the time.
func (r *Registry) retryFirstHopeless() {
	if r.now.Before(r.nextSearch) {
		return
	}
	var first *gangState
	for g := range r.toSearch {
		switch {
		case !r.isWaitingForSearch(g):
			delete(r.toSearch, g)
		case r.now.Before(g.hopeless.until):
		case first == nil || compareInQueue(g.leaderRank(), g.key, first.leaderRank(), first.key) < 0:
			first = g
		}
	}
	if first == nil {
		return
	}
	delete(r.toSearch, first)
	first.hopeless.waits = false
	if first.wait.Until.IsZero() || r.now.Before(first.wait.Until) {
		first.wait.Until = r.now
	}
	r.setTimer(first, r.timerOf(first))
	r.nextSearch = r.now.Add(searchShare * r.lastSearch)
}

// NextPreemptionStep returns what the gang's attempt may do, and, if nothing now, when it must be repeated; zero: it
// need not be.
func (r *Registry) NextPreemptionStep(w *Work, now time.Time) (step NextPreemptionStep, later time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[w.Gang]
	if !r.resumed {
		return PreemptNothing, now.Add(retryInterval)
	}
	if g != nil && g.preemption != nil && g.preemption.Stage() == evictions.Announced {
		g.preemption.Asked = true // if this attempt does not confirm it, it is given up
	}
	if g == nil || g.group == nil || g.tree != w.Tree || w.Task.isSurplus() || g.hasMinimum() || g.victimOf != nil {
		return PreemptNothing, time.Time{}
	}
	if g.abstention = (abstention{forbiddenBy: g.preemptionForbiddenBy()}); g.abstention.forbiddenBy != "" {
		g.hopeless.refused = ""
		return PreemptNothing, time.Time{}
	}
	if p := g.preemption; p != nil {
		if p.Asked {
			w.EvictionPriorities, w.EvictionPriority = []int32{p.Priority}, p.Priority
			return PreemptConfirm, time.Time{}
		}
		return PreemptNothing, p.Until()
	}
	if g.hopeless.waits = r.isHopeless(g); g.hopeless.waits {
		if g.priority() <= r.lowest {
			g.hopeless.why, g.hopeless.refused = "", ""
		}
		return PreemptNothing, time.Time{}
	}
	if g.hopeless.pause > 0 && !now.Before(g.hopeless.until) && !r.searches.isOpen(now) {
		g.hopeless.until = now.Add(g.spread(g.hopeless.pause)) // not when the budget opens: then all of them would be tried at once
	}
	start := g.hopeless.until
	if end := g.arrivedAt.Add(arrivalPause); end.After(start) && g.mayGetSubGroups() {
		start = end
	}
	if d := g.group.Spec.PreemptionDelay; d != nil {
		end := g.delayedSince().Add(d.Duration)
		if now.Before(end) {
			g.abstention.until = end
		}
		if end.After(start) {
			start = end
		}
	}
	if now.Before(start) {
		return PreemptNothing, start
	}
	return PreemptDecide, time.Time{}
}

// mayGetSubGroups reports whether the gang has a sub-group without enough pods for its minimum. If these come, it may
// fit without an eviction.
func (g *gangState) mayGetSubGroups() bool {
	return slices.ContainsFunc(g.tree.Leaves(), func(leaf *gang.Group) bool { return !g.numbers.Created.Satisfied(leaf) })
}

// delayedSince returns the time from which PreemptionDelay counts: since it is complete, or was evicted last.
func (g *gangState) delayedSince() time.Time { return later(g.completeAt, g.evictedAt) }

// neverPreempts reports whether the gang may not preempt.
func (g *gangState) neverPreempts() bool { return g.preemptionForbiddenBy() != "" }

// preemptionForbiddenBy returns what forbids that the gang preempts: the PriorityClass of the PodGroup, or a pod that
// waits or is bound, of several the first by name. "": nothing does.
func (g *gangState) preemptionForbiddenBy() string {
	if class := g.group.Spec.PriorityClassName; g.opts.NeverPreempts != nil && g.opts.NeverPreempts(class) {
		return "PriorityClass " + class
	}
	first := ""
	for _, m := range g.members {
		if m.forbidsPreemption() && (first == "" || m.pod.Name < first) {
			first = m.pod.Name
		}
	}
	if first == "" {
		return ""
	}
	return "pod " + first
}

// forbidsPreemption reports whether the gang may not preempt because of the pod.
func (m *member) forbidsPreemption() bool {
	p := m.pod.Spec.PreemptionPolicy
	return p != nil && *p == corev1.PreemptNever && m.state != count.Succeeded && m.misplaced == "" && m.pod.DeletionTimestamp == nil
}

// spread returns a time between a quarter of a pause and the pause, which differs from gang to gang.
func (g *gangState) spread(pause time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(g.key.String())) // never fails
	return pause/4 + pause*3/4*time.Duration(h.Sum32()%1000)/1000
}

// RecordHopeless records that preemption would not help the gang, why ("": no pod has a lower priority), and how long
// the attempt took. final: this is so until something changes. It returns when the gang must be tried again; zero:
// after a change.
func (r *Registry) RecordHopeless(key Key, why string, final bool, took time.Duration, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[key]
	if g == nil {
		return time.Time{}
	}
	if g.preemption == nil && g.promise == nil {
		r.freeReserved(r.reserved.EndOfGang(key, isOfGang)) // of an earlier preemption
	}
	r.searches.affords(took, now)
	r.lastSearch = took
	pause := min(max(firstHopeless, 2*g.hopeless.pause), longestHopeless)
	g.hopeless, g.cuts = hopeless{why: why, until: now.Add(pause), pause: pause, priority: g.roomPriority}, 0
	if !final || g.changed || g.preemption != nil {
		return g.hopeless.until
	}
	g.hopeless.seen, g.hopeless.waits = g.seen, true
	return time.Time{}
}

// RecordCut records that a search for victims was cut short after some time: the next one has more. It returns when the
// gang must be tried again.
func (r *Registry) RecordCut(key Key, took time.Duration, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	r.searches.affords(took, now)
	if g := r.gangs[key]; g != nil {
		g.cuts++
	}
	return now.Add(searchShare * took)
}
