// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// A pod without a gang may preempt pods of a gang only if the gang keeps its minimum or is preempted as a whole:
// either single pods above the minimum of the tree, or all bound pods of the gang, provided that they are on the one
// node that the preemptor considers (docs/decisions, G15).

// Victims describes which pods of one node a pod without a gang may preempt.
type Victims struct {
	// Singly contains the pods that may be preempted individually, including pods without a gang.
	Singly sets.Set[types.UID]
	// Whole contains gangs with all of their bound pods, which must be preempted together or not at all. Pods that
	// are also in Singly are above the gang's minimum.
	Whole [][]*corev1.Pod
	// Protected is the reason why some pod of a gang is in neither. Empty: there is no such pod.
	Protected string
}

// Reasons why pods of gangs are no victims. There are few distinct texts, because the scheduler counts nodes by
// reason.
const (
	isNonPreemptible   = "pods of lower priority belong to gangs that may not be preempted"
	isMoreImportant    = "pods of lower priority belong to gangs of the same or a higher priority"
	isBeingBound       = "pods of lower priority belong to gangs that are being bound"
	isSpreadOverNodes  = "pods of lower priority belong to gangs that also run on other nodes: they are preempted whole or not at all"
	isSemiPreemptible  = "pods of lower priority belong to the protected minimum of gangs"
	preemptionReported = 30 * time.Second
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
		if m == nil || m.gang.group == nil || pod.DeletionTimestamp != nil || m.isVictim(now) || m.isBound() && m.misplaced != "" {
			v.Singly.Insert(pod.UID) // belongs to no gang, or does not count in it
			continue
		}
		if here[m.gang] == nil {
			order = append(order, m.gang)
		}
		here[m.gang] = append(here[m.gang], m)
	}
	for _, g := range order {
		r.victimsOf(g, here[g], priority, now, &v)
	}
	return v
}

// victimsOf classifies the members of one gang on a node. All of them count towards its tree, and none is a victim
// yet.
func (r *Registry) victimsOf(g *gangState, here []*member, priority int32, now time.Time, v *Victims) {
	switch {
	case g.group.Spec.Preemptibility == v2alpha2.NonPreemptible:
		v.Protected = isNonPreemptible
		return
	case g.priority() >= priority:
		v.Protected = isMoreImportant
		return
	case g.plan != nil || g.vanished > 0:
		v.Protected = isBeingBound
		return
	}
	for _, m := range here {
		if !m.isBound() { // assumed, but not bound
			v.Protected = isBeingBound
			return
		}
	}
	surplus := g.surplus(now)
	slices.SortFunc(here, func(a, b *member) int { return b.entry.Order().Compare(a.entry.Order()) }) // the least important first
	single, taken := 0, gang.Counts{}
	for _, m := range here {
		if taken[m.leaf] < surplus[m.leaf] {
			taken[m.leaf]++
			v.Singly.Insert(m.pod.UID)
			single++
		}
	}
	switch {
	case single == len(here):
	case g.group.Spec.Preemptibility == v2alpha2.SemiPreemptible:
		v.Protected = isSemiPreemptible
	case g.boundMembers(now) > len(here) || g.numbers.HighestPriority() >= priority:
		v.Protected = isSpreadOverNodes
	default:
		whole := make([]*corev1.Pod, len(here))
		for i, m := range here {
			whole[i] = m.pod
		}
		v.Whole = append(v.Whole, whole)
	}
}

// surplus returns, per leaf, the bound pods above the minimum of the tree, without those that are victims already.
// Not to be modified. A preemptor asks for every node, so the result is cached until bound pods or victims change,
// and for at most a second.
func (g *gangState) surplus(now time.Time) gang.Counts {
	if g.tree == nil || g.numbers.Bound.Pods(g.tree.Root()) <= g.tree.MinPods() {
		return nil
	}
	if n := g.numbers; n.Surplus == nil || now.Sub(n.SurplusAt) >= time.Second {
		n.Surplus, n.SurplusAt = g.findSurplus(now), now
	}
	return g.numbers.Surplus
}

func (g *gangState) findSurplus(now time.Time) gang.Counts {
	counts := g.numbers.Bound.Counts()
	for m := range g.victims {
		if m.isVictim(now) && m.isBound() && m.misplaced == "" {
			counts[m.leaf]--
		}
	}
	if !g.tree.Satisfied(counts) {
		return gang.Counts{}
	}
	return g.tree.Surplus(counts)
}

// boundMembers returns the number of bound pods that count towards the tree, without those that are victims already.
func (g *gangState) boundMembers(now time.Time) int {
	n := g.numbers.Flagged(count.IsStanding) - g.numbers.Flagged(count.IsStray)
	for m := range g.victims {
		if m.isVictim(now) && m.isBound() && m.misplaced == "" {
			n--
		}
	}
	return n
}

// isVictim reports whether the pod is being preempted, and its deletion may not have been observed yet.
func (m *member) isVictim(now time.Time) bool {
	since, ok := m.gang.victims[m]
	return ok && now.Sub(since) < preemptionReported
}

// Preempted is a pod of a gang that is about to be preempted.
type Preempted struct {
	Group *v2alpha2.PodGroup
	// Whole: all bound pods of the gang are preempted. Pods is their number, or 0 if it was already returned for another
	// one of them.
	Whole bool
	Pods  int
}

// Preempt records that the pod will be deleted in favor of a pod without a gang and with the given priority, together
// with the other victims on its node. An error states why the deletion is not allowed: the gang has changed since the
// victims were chosen. nil without an error: the pod belongs to no gang.
func (r *Registry) Preempt(uid types.UID, victims sets.Set[types.UID], priority int32, now time.Time) (*Preempted, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[uid]
	if m == nil || m.gang.group == nil || m.isBound() && m.misplaced != "" {
		return nil, nil
	}
	g := m.gang
	if m.isVictim(now) {
		return &Preempted{Group: g.group, Whole: g.boundMembers(now) == 0}, nil
	}
	var here []*member
	for _, other := range g.members {
		if other.isBound() && other.misplaced == "" && victims.Has(other.pod.UID) && !other.isVictim(now) {
			here = append(here, other)
		}
	}
	v := Victims{Singly: sets.New[types.UID]()}
	if len(here) > 0 {
		r.victimsOf(g, here, priority, now, &v)
	}
	switch {
	case !m.isBound():
		return nil, fmt.Errorf("pod %s belongs to gang %s, which is being bound", m.pod.Name, g.key)
	case len(v.Whole) > 0:
		for _, other := range here {
			g.addVictim(other, now)
		}
		return &Preempted{Group: g.group, Whole: true, Pods: len(here)}, nil
	case v.Singly.Has(uid):
		g.addVictim(m, now)
		return &Preempted{Group: g.group, Pods: 1}, nil
	default:
		return nil, fmt.Errorf("pod %s belongs to the minimum of gang %s: %s", m.pod.Name, g.key, v.Protected)
	}
}

// addVictim records a member that is being preempted, and removes records of members that are gone.
func (g *gangState) addVictim(m *member, now time.Time) {
	if g.victims == nil {
		g.victims = map[*member]time.Time{}
	}
	for old := range g.victims {
		if g.members[old.pod.UID] != old || !old.isVictim(now) {
			delete(g.victims, old)
		}
	}
	g.victims[m] = now
	g.numbers.Surplus = nil
}
