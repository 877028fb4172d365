// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"maps"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// isBinding reports whether it is not known which bound pods the gang will have: its plan is not aborted, or a pod of
// it has vanished.
func (g *gangState) isBinding() bool { return g.plan != nil && !g.plan.aborted || g.vanished > 0 }

// isProtected reports whether not all pods of the gang may be preempted.
func (g *gangState) isProtected() bool {
	return g.group != nil && g.group.Spec.Preemptibility != "" && g.group.Spec.Preemptibility != v2alpha2.Preemptible
}

// workload returns the gang with its bound pods, in order of preference, for package preemption. The gang has a tree.
func (g *gangState) workload(pods []preemption.Pod) preemption.Workload {
	return preemption.Workload{
		Tree: g.tree, Pods: pods, Completed: g.completedPods(), MinimumProtected: g.group.Spec.Preemptibility == v2alpha2.SemiPreemptible,
		Undivided: undivided(&g.group.Spec),
	}
}

// undivided returns preemption.Workload.Undivided; nil: none.
func undivided(spec *v2alpha2.PodGroupSpec) map[string]bool {
	var names map[string]bool
	add := func(name string, mode v2alpha2.DisruptionMode) {
		if mode != v2alpha2.DisruptAll {
			return
		}
		if names == nil {
			names = map[string]bool{}
		}
		names[name] = true
	}
	add("", spec.DisruptionMode)
	for i := range spec.SubGroups {
		add(spec.SubGroups[i].Name, spec.SubGroups[i].DisruptionMode)
	}
	return names
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

// departure returns by which preemption the pod is being deleted; nil: its deletion was accepted. departs is false if
// it is not being deleted, or its end was observed.
func (m *member) departure() (by *evictions.Eviction, departs bool) {
	if m == nil {
		return nil, false
	}
	by, departs = m.gang.departing[m]
	return by, departs
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

// recordDeparting records that a member is being deleted by a preemption; nil: its deletion was accepted. It departs,
// and counts as bound, until its end is observed, whether it was chosen as a pod of its gang or as one without a gang,
// and whatever it counts in by now. A pod that is no member is in Registry.plainVictims until it becomes one.
func (r *Registry) recordDeparting(m *member, by *evictions.Eviction) {
	delete(r.plainVictims, m.pod.UID)
	if !m.isBound() {
		return
	}
	if m.gang.departing == nil {
		m.gang.departing = map[*member]*evictions.Eviction{}
	}
	m.gang.departing[m] = by
	if m.gang.preemption != nil {
		m.gang.preemption.Taken = true
	}
}

// isLosingPods reports whether pods of the gang are being preempted, and not all of their deletions have been observed.
// Nothing is planned for it meanwhile: a new pod could be bound beside pods that have ended.
func (g *gangState) isLosingPods() bool { return g.victimOf != nil || len(g.departing) > 0 }

// isSettled reports whether it is known which bound pods the gang has.
func (g *gangState) isSettled() bool { return g.vanished == 0 && !g.isLosingPods() }
