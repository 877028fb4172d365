// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// A pod without a gang may preempt the same units of a gang as a gang may (docs/decisions, G15 and G21): single pods above the
// minimum, whole sub-groups above the minimum, or the whole gang. It looks at one node at a time; the other pods of a unit
// end on whatever nodes they are.

// Victims describes which pods of one node a pod without a gang may preempt. Of what it contains any part may be preempted.
type Victims struct {
	// Singly contains the pods that may be preempted individually, including pods without a gang.
	Singly sets.Set[types.UID]
	// SubGroups are sub-groups above the minimum of their gangs, inner ones before those around them. Gangs are whole gangs.
	SubGroups, Gangs []VictimUnit
	// Protected is the reason why some pod of a gang is in none of them. Empty: there is no such pod.
	Protected string
}

// VictimUnit contains pods that are preempted together or not at all.
type VictimUnit struct {
	OnNode []*corev1.Pod // on the node, and neither in Singly nor in a smaller unit
	All    []*corev1.Pod // on any node, with all those in smaller units; not to be modified
}

// Reasons why pods of gangs are no victims. There are few distinct texts, because the scheduler counts nodes by
// reason.
const (
	isNonPreemptible  = "pods of lower priority belong to gangs that may not be preempted"
	isMoreImportant   = "pods of lower priority belong to gangs that have, or have pods of, the same or a higher priority"
	isBeingBound      = "pods of lower priority belong to gangs that are being bound"
	isVictimOfOther   = "pods of lower priority belong to gangs that are about to be preempted by others"
	isMinimum         = "pods of lower priority belong to the minimum of gangs, of which no part may be preempted"
	isSemiPreemptible = "pods of lower priority belong to the protected minimum of gangs"
)

// Victims returns which of the pods on a node may be preempted by a pod without a gang and with the given priority,
// considering only the rules for gangs. pods are those of lower priority.
func (r *Registry) Victims(pods []*corev1.Pod, priority int32, now time.Time) Victims {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := Victims{Singly: sets.New[types.UID]()}
	here := map[*gangState][]*member{}
	var order []*gangState
	for _, pod := range pods {
		m := r.members[pod.UID]
		if m == nil || m.gang.group == nil || pod.DeletionTimestamp != nil || m.isDeparting() || m.isBound() && m.misplaced != "" {
			v.Singly.Insert(pod.UID) // belongs to no gang, or does not count in it
			continue
		}
		if here[m.gang] == nil {
			order = append(order, m.gang)
		}
		here[m.gang] = append(here[m.gang], m)
	}
	for _, g := range order {
		if why := g.addVictims(here[g], priority, now, &v); why != "" {
			v.Protected = why
		}
	}
	return v
}

// addVictims adds the units that contain any of the members, which are on one node, count towards the gang's tree, and are no
// victims yet. It returns why some of them are in no unit; "": all are in one.
func (g *gangState) addVictims(here []*member, priority int32, now time.Time, v *Victims) string {
	if why := g.protectionFrom(nil, priority); why != "" {
		return why
	}
	if slices.ContainsFunc(here, func(m *member) bool { return !m.isBound() }) { // assumed, but not bound
		return isBeingBound
	}
	if !g.hasSurplus() {
		return g.addWhole(here, priority, now, v)
	}
	l := g.ladderAt(now)
	pods := make([]int, 0, len(here))
	for _, m := range here {
		if i, ok := l.index[m]; ok {
			pods = append(pods, i)
		}
	}
	var mayEnd func(pods []int) bool
	if g.numbers.HighestPriority() >= priority {
		mayEnd = func(pods []int) bool {
			return !slices.ContainsFunc(pods, func(i int) bool { return count.PodPriority(l.pods[i]) >= priority })
		}
	}
	found := 0
	for _, u := range l.units.UnitsWith(pods, mayEnd) {
		found += len(u.With)
		switch u.Rung {
		case preemption.SurplusPod:
			v.Singly.Insert(l.pods[u.With[0]].UID)
		case preemption.SurplusSubGroup:
			v.SubGroups = append(v.SubGroups, VictimUnit{OnNode: l.podsOf(u.With), All: l.podsOf(u.Pods)})
		default:
			v.Gangs = append(v.Gangs, VictimUnit{OnNode: l.podsOf(u.With), All: l.pods})
		}
	}
	switch {
	case found == len(here):
		return ""
	case g.group.Spec.Preemptibility == v2alpha2.SemiPreemptible:
		return isSemiPreemptible
	default:
		return isMoreImportant
	}
}

// addWhole adds the whole gang, in favor of these members on a node.
func (g *gangState) addWhole(here []*member, priority int32, now time.Time, v *Victims) string {
	if g.group.Spec.Preemptibility == v2alpha2.SemiPreemptible {
		return isSemiPreemptible
	}
	unit := VictimUnit{OnNode: podsOfMembers(here)}
	if unit.All = unit.OnNode; g.boundMembers() > len(here) {
		unit.All = g.ladderAt(now).pods
	}
	if g.numbers.HighestPriority() >= priority && slices.ContainsFunc(unit.All, func(p *corev1.Pod) bool { return count.PodPriority(p) >= priority }) {
		return isMoreImportant
	}
	v.Gangs = append(v.Gangs, unit)
	return ""
}

func podsOfMembers(members []*member) []*corev1.Pod {
	pods := make([]*corev1.Pod, len(members))
	for i, m := range members {
		pods[i] = m.pod
	}
	return pods
}

// protection returns why no pod of the gang may be preempted at present, whatever the priority of the preemptor. "": the
// gang is not protected.
func (g *gangState) protection() string {
	switch {
	case g.isNonPreemptible():
		return isNonPreemptible
	case g.plan != nil, g.vanished > 0:
		return isBeingBound
	default:
		return ""
	}
}

func (g *gangState) isNonPreemptible() bool {
	return g.group.Spec.Preemptibility == v2alpha2.NonPreemptible
}

// isBinding reports whether it is not known which bound pods the gang will have: its plan is not aborted, or a pod of
// it has vanished.
func (g *gangState) isBinding() bool { return g.plan != nil && !g.plan.aborted || g.vanished > 0 }

// protectionFrom returns why no pod of the gang may be preempted by a pod without a gang and with the given priority. p is the
// preemption by it; nil: none was recorded.
func (g *gangState) protectionFrom(p *Preemption, priority int32) string {
	switch {
	case g.group.Spec.Preemptibility == v2alpha2.NonPreemptible:
		return isNonPreemptible
	case g.evictionPriority() >= priority:
		return isMoreImportant
	case g.victimOf != nil && g.victimOf != p:
		return isVictimOfOther
	case g.numbers.Placed.Pods(g.countingTree().Root()) > g.numbers.Bound.Pods(g.countingTree().Root()): // also on other nodes
		return isBeingBound
	default:
		return g.protection()
	}
}

// isProtected reports whether not all pods of the gang may be preempted.
func (g *gangState) isProtected() bool {
	return g.group != nil && g.group.Spec.Preemptibility != "" && g.group.Spec.Preemptibility != v2alpha2.Preemptible
}

// hasSurplus reports whether the gang may have pods above its minimum.
func (g *gangState) hasSurplus() bool {
	return g.tree != nil && g.numbers.Bound.Pods(g.tree.Root()) > g.tree.MinPods()
}

// workload returns the gang with its bound pods, in order of preference, for package preemption. The gang has a tree.
func (g *gangState) workload(pods []preemption.Pod) preemption.Workload {
	return preemption.Workload{
		Tree: g.tree, Pods: pods, Completed: g.completedPods(), MinimumProtected: g.group.Spec.Preemptibility == v2alpha2.SemiPreemptible,
	}
}

// completedPods returns the pods that count because they have succeeded, by leaf. nil: there are none.
func (g *gangState) completedPods() gang.Counts {
	if g.numbers.Flagged(count.HasEnded) == 0 {
		return nil
	}
	counts := gang.Counts{}
	for _, m := range g.members {
		if m.misplaced == "" && g.hasCompleted(m) {
			counts[m.leaf]++
		}
	}
	return counts
}

// ladder contains the bound pods of a gang and the units of them that may be preempted.
type ladder struct {
	members []*member          // bound, without those that are victims already, in order of preference
	index   map[*member]int    // of members; nil: units is nil
	units   *preemption.Ladder // nil: the gang has no surplus

	numbers *count.Numbers // of which it was computed, at that number of BoundChanges
	changes int
	rule    v2alpha2.Preemptibility // of the PodGroup

	pods   []*corev1.Pod // of members, at most a second old
	podsAt time.Time
}

// ladderAt returns what may be preempted. Preemptors ask for every node, so the result is kept until bound pods or victims
// change.
func (g *gangState) ladderAt(now time.Time) *ladder {
	l := g.ladder
	if l == nil || l.rule != g.group.Spec.Preemptibility || l.numbers != g.numbers || l.changes != g.numbers.BoundChanges {
		l = g.findLadder()
		g.ladder = l
	}
	if l.pods == nil || now.Sub(l.podsAt) >= time.Second {
		l.pods, l.podsAt = podsOfMembers(l.members), now
	}
	return l
}

func (g *gangState) findLadder() *ladder {
	l := &ladder{numbers: g.numbers, changes: g.numbers.BoundChanges, rule: g.group.Spec.Preemptibility}
	for _, m := range g.members {
		if m.isBound() && m.misplaced == "" && !m.isDeparting() {
			l.members = append(l.members, m)
		}
	}
	if !g.hasSurplus() {
		return l
	}
	slices.SortFunc(l.members, func(a, b *member) int { return a.entry.Order().Compare(b.entry.Order()) })
	pods := make([]preemption.Pod, len(l.members))
	l.index = make(map[*member]int, len(l.members))
	for i, m := range l.members {
		l.index[m], pods[i] = i, preemption.Pod{ID: i, Leaf: m.leaf}
	}
	w := g.workload(pods)
	l.units = preemption.NewLadder(&w)
	return l
}

func (l *ladder) podsOf(indexes []int) []*corev1.Pod {
	pods := make([]*corev1.Pod, len(indexes))
	for k, i := range indexes {
		pods[k] = l.pods[i]
	}
	return pods
}

// boundMembers returns the number of bound pods that count towards the tree, without those that are victims already.
func (g *gangState) boundMembers() int {
	n := g.numbers.Flagged(count.IsStanding) - g.numbers.Flagged(count.IsStray)
	for m := range g.departing {
		if m.isBound() && m.misplaced == "" {
			n--
		}
	}
	return n
}

// isPlain reports whether the pod is preempted as one without a gang. nil: it has none.
func (m *member) isPlain() bool {
	return m == nil || m.gang.group == nil || m.isBound() && m.misplaced != ""
}

// isDeparting reports whether the pod is being preempted, and this was not observed yet.
func (m *member) isDeparting() bool {
	_, departs := m.departure()
	return departs
}

// departure returns by which preemption the pod is being deleted; nil: its deletion was accepted. departs is false if it is not
// being deleted, or its end was observed.
func (m *member) departure() (by *Preemption, departs bool) {
	if m == nil {
		return nil, false
	}
	by, departs = m.gang.departing[m]
	return by, departs
}

// Preempted are pods of a gang that are being preempted.
type Preempted struct {
	Group *v2alpha2.PodGroup
	Whole bool // all bound pods of the gang are preempted
	Pods  []*corev1.Pod
	Node  string // on which all of them are; "": they are on several
}

// Preempt records that a pod without a gang is about to preempt the victims, which were chosen for it, if any of them belongs to a gang.
// All of them are marked and evicted together, as those of a gang that preempts, so that no part of a minimum stays, and nobody
// ends if one of them cannot. Victims without a gang that are not bound yet are left to the caller.
//
// p is nil if there is nothing to mark. ends is false if the victim belongs to no gang, or does not count in it, so that its deletion
// is not recorded. An error states why the victims may not be preempted: their gangs have changed since they were chosen.
func (r *Registry) Preempt(victim *corev1.Pod, victims []*corev1.Pod, preemptor *corev1.Pod, plan string, now time.Time) (p *Preemption, ends bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	m, isKnown := r.members[victim.UID], func(pod *corev1.Pod) bool { return r.members[pod.UID] != nil }
	switch v := r.plainVictims[victim.UID]; {
	case v.IsDeparting(), m.isDeparting(), isFor(r.preemptionOf(victim.UID), preemptor, victim.UID):
		return nil, true, nil
	case !r.resumed && slices.ContainsFunc(victims, isKnown):
		return nil, false, fmt.Errorf("preempting pod %s: the PodGroups, and the evictions of an earlier process, are not known yet", victim.Name)
	case m.isPlain():
		if r.opts.IsAssumed != nil && r.opts.IsAssumed(victim) {
			return nil, false, nil
		}
	case m.state == count.Pending, m.state == count.Assumed:
		return nil, false, fmt.Errorf("preempting pod %s of gang %s: it is being bound; another attempt chooses anew", m.pod.Name, m.gang.key)
	case !m.isBound():
		return nil, false, nil // it ends already, and does not count any more
	}
	p = &Preemption{ID: plan, Pod: preemptor, Priority: count.PodPriority(preemptor), Timeout: r.opts.PreemptionTimeout}
	losses, err := r.lossesBy(p, victims)
	if err != nil || len(losses) == 0 {
		return nil, false, err
	}
	plain, err := r.plainVictimsAmong(victims)
	if err != nil {
		return nil, false, err
	}
	for _, l := range losses {
		for _, m := range l.members {
			p.Victims = append(p.Victims, Victim{Pod: m.pod, Gang: m.gang.key, Priority: m.gang.evictionPriority(), Pods: len(l.members), Whole: l.isWhole})
		}
		l.gang.victimOf = p
	}
	for _, pod := range plain {
		p.Victims = append(p.Victims, Victim{Pod: pod, Priority: count.PodPriority(pod), Pods: 1, Whole: true})
		r.plainVictims.Choose(pod.UID, p)
	}
	p.Begin(evictions.Recorded, now)
	return p, true, nil
}

// plainVictimsAmong returns the victims of a pod that are bound, without a gang, and whose deletion was not requested. An error states
// why one of them may not end by it.
func (r *Registry) plainVictimsAmong(victims []*corev1.Pod) ([]*corev1.Pod, error) {
	var plain []*corev1.Pod
	for _, pod := range victims {
		if m := r.members[pod.UID]; !m.isPlain() || m.isDeparting() || pod.DeletionTimestamp != nil || r.opts.IsAssumed != nil && r.opts.IsAssumed(pod) {
			continue
		}
		if v := r.plainVictims[pod.UID]; v == nil {
			plain = append(plain, pod)
		} else if !v.IsDeparting() {
			return nil, fmt.Errorf("preempting pod %s: it is about to be preempted by others; another attempt chooses anew", pod.Name)
		}
	}
	return plain, nil
}

// isFor reports whether the pod without a gang is about to preempt the victim.
func isFor(p *Preemption, preemptor *corev1.Pod, victim types.UID) bool {
	return p != nil && p.Pod != nil && p.Pod.UID == preemptor.UID &&
		slices.ContainsFunc(p.Victims, func(v Victim) bool { return v.Pod.UID == victim })
}

// RecordMarkedForPod records that the victims of a pod without a gang are marked, or why they cannot be: then none of them is evicted.
// It returns what is to be deleted, by gang, or why nothing is.
func (r *Registry) RecordMarkedForPod(p *Preemption, err error, now time.Time) ([]Preempted, Effects, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	var losses []loss
	if err == nil {
		losses, err = r.lossesBy(p, p.Pods())
	}
	if err != nil {
		r.enterStage(p, evictions.Ended)
		e := Effects{Unmark: []*Preemption{p}}
		e.add(r.releaseVictims(p))
		return nil, r.endCall(e), err
	}
	r.spareSucceeded(p)
	preempted := make([]Preempted, len(losses))
	for i, l := range losses {
		pods := podsOfMembers(l.members)
		preempted[i] = Preempted{Group: l.gang.group, Whole: l.isWhole, Pods: pods, Node: pods[0].Spec.NodeName}
		if slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != preempted[i].Node }) {
			preempted[i].Node = ""
		}
	}
	r.enterStage(p, evictions.Checked)
	for _, v := range p.Victims {
		if m := r.members[v.Pod.UID]; m != nil {
			r.recordDeparting(m, p)
		}
	}
	return preempted, r.endCall(Effects{}), nil
}

// loss is what a gang loses.
type loss struct {
	gang    *gangState
	members []*member // bound, and no victims yet
	isWhole bool      // they are all such members of the gang
}

// lossesBy returns what gangs lose by the preemption, which is for a pod without a gang, in the order of the victims. An error states
// why one of them may not lose it.
func (r *Registry) lossesBy(p *Preemption, victims []*corev1.Pod) ([]loss, error) {
	var losses []loss
	at := map[*gangState]int{}
	for _, pod := range victims {
		m := r.members[pod.UID]
		if m.isPlain() || !m.isBound() || m.isDeparting() {
			continue
		}
		if _, ok := at[m.gang]; !ok {
			at[m.gang] = len(losses)
			losses = append(losses, loss{gang: m.gang})
		}
		l := &losses[at[m.gang]]
		l.members = append(l.members, m)
	}
	for i := range losses {
		l := &losses[i]
		l.isWhole = len(l.members) == l.gang.boundMembers()
		if why := l.protectionFrom(p); why != "" {
			return nil, fmt.Errorf("preempting %d pods of gang %s, %s among them: %s; another attempt chooses anew", len(l.members), l.gang.key, l.members[0].pod.Name, why)
		}
	}
	return losses, nil
}

// protectionFrom returns why the members may not be preempted together by a pod without a gang. "": they may.
func (l *loss) protectionFrom(p *Preemption) string {
	g := l.gang
	if why := g.protectionFrom(p, p.Priority); why != "" {
		return why
	}
	if slices.ContainsFunc(l.members, func(m *member) bool { return count.PodPriority(m.pod) >= p.Priority }) {
		return isMoreImportant
	}
	isProtected := g.group.Spec.Preemptibility == v2alpha2.SemiPreemptible
	if l.isWhole && !isProtected {
		return ""
	}
	if g.tree != nil && g.mayKeepWithout(l.members) {
		return ""
	}
	if isProtected {
		return isSemiPreemptible
	}
	return isMinimum
}

// mayKeepWithout reports whether the gang may keep its other bound pods if it loses the members. It has a tree.
func (g *gangState) mayKeepWithout(lost []*member) bool {
	before := g.countsWithoutVictims()
	after := maps.Clone(before)
	for _, m := range lost {
		after[m.leaf]--
	}
	return preemption.MayKeep(g.tree, before, after)
}

// countsWithoutVictims returns the pods that count as bound, by leaf, without those that are victims already.
func (g *gangState) countsWithoutVictims() gang.Counts {
	counts := g.numbers.Bound.Counts()
	for m := range g.departing {
		if m.isBound() && m.misplaced == "" {
			counts[m.leaf]--
		}
	}
	return counts
}

// recordDeparting records that a member is being deleted by a preemption; nil: its deletion was accepted. It departs, and counts as
// bound, until its end is observed, whether it was chosen as a pod of its gang or as one without a gang, and whatever it counts in by
// now. A pod that is no member is in Registry.plainVictims until it becomes one.
func (r *Registry) recordDeparting(m *member, by *Preemption) {
	delete(r.plainVictims, m.pod.UID)
	if !m.isBound() {
		return
	}
	if m.gang.departing == nil {
		m.gang.departing = map[*member]*Preemption{}
	}
	m.gang.departing[m], m.gang.ladder = by, nil
}

// isLosingPods reports whether pods of the gang are being preempted, and not all of their deletions have been observed. Nothing is
// planned for it meanwhile: a new pod could be bound beside pods that have ended.
func (g *gangState) isLosingPods() bool { return g.victimOf != nil || len(g.departing) > 0 }

// isSettled reports whether it is known which bound pods the gang has.
func (g *gangState) isSettled() bool { return g.vanished == 0 && !g.isLosingPods() }
