// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"math"
	"slices"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// For evictions, in both directions, a gang has the lowest priority among the pods of its minimum, and never more than
// its class: a pod of a high class neither displaces others for pods of a low one, nor protects them (docs/decisions,
// G10). Nor does it protect pods above the minimum that have a lower priority.

// evictionPriorities returns the priorities at which the gang may preempt, the highest first: with the usable pods of
// at least each of them, beside its bound pods, it has its minimum, of which no pod has a lower priority. Of a gang
// that lacks pods it is the lowest one. standing is the lowest priority of the bound pods of each leaf that lacks pods;
// nil: no pod has to be left out.
func (g *gangState) evictionPriorities(profile string) (priorities []int32, standing map[string]int32) {
	class := g.classPriority()
	if !g.numbers.IsMixed() {
		return []int32{min(class, g.numbers.HighestPriority())}, nil
	}
	pods := g.podPriorities(profile)
	highest, _, ok := minimumPriority(g.countingTree().Root(), pods)
	if !ok {
		return []int32{min(class, g.numbers.LowestPriority())}, nil
	}
	standing = map[string]int32{}
	for leaf, p := range pods {
		if n := len(p.bound); n > 0 && n+p.completed < leaf.Min() {
			standing[leaf.Name()] = p.bound[n-1]
		}
		for _, priority := range append(p.waiting, highest) {
			if priority <= highest {
				priorities = append(priorities, min(class, priority))
			}
		}
	}
	sortHighestFirst(priorities)
	return slices.Compact(priorities), standing
}

// highestEviction returns the highest priority at which the gang may preempt.
func (g *gangState) highestEviction() int32 {
	priorities, _ := g.evictionPriorities(g.numbers.Profile())
	return priorities[0]
}

// evictionPriority returns the lowest priority among the pods of the minimum that runs, at most that of the class:
// gangs and pods above it may preempt the gang. It visits the members only if they differ, and their bound pods have
// changed.
func (g *gangState) evictionPriority() int32 {
	if !g.numbers.IsMixed() {
		return g.priority()
	}
	if x := &g.running; x.numbers != g.numbers || x.changes != g.numbers.BoundChanges {
		*x = runningPriority{numbers: g.numbers, changes: g.numbers.BoundChanges, lowest: math.MaxInt32}
		pods := g.podPriorities("")
		if lowest, _, ok := minimumPriority(g.countingTree().Root(), pods); ok {
			x.lowest = lowest
		} else { // it runs without its minimum
			for _, p := range pods {
				for _, priority := range p.bound {
					x.lowest = min(x.lowest, priority)
				}
			}
		}
	}
	return min(g.running.lowest, g.priority())
}

// runningPriority is the lowest priority among the pods of the minimum that runs, and for which bound pods that holds.
type runningPriority struct {
	numbers *count.Numbers
	changes int // numbers.BoundChanges
	lowest  int32
}

// leafPriorities are the priorities of the pods of a leaf, the highest first.
type leafPriorities struct {
	bound     []int32
	completed int     // pods that count because they have succeeded
	waiting   []int32 // that a plan of the profile may place
}

// podPriorities returns the priorities of the gang's pods by leaf. profile "": without those that wait.
func (g *gangState) podPriorities(profile string) map[*gang.Group]*leafPriorities {
	pods := map[*gang.Group]*leafPriorities{}
	for _, m := range g.members {
		leaf, priority := m.entry.Share().Leaf, count.PodPriority(m.pod)
		if leaf == nil {
			continue
		}
		p := pods[leaf]
		if p == nil {
			p = &leafPriorities{}
			pods[leaf] = p
		}
		switch {
		case m.isBound():
			p.bound = append(p.bound, priority)
		case g.hasCompleted(m):
			p.completed++
		case profile != "" && m.entry.IsUsable(profile):
			p.waiting = append(p.waiting, priority)
		}
	}
	for _, p := range pods {
		sortHighestFirst(p.bound)
		sortHighestFirst(p.waiting)
	}
	return pods
}

func sortHighestFirst(priorities []int32) {
	slices.SortFunc(priorities, func(a, b int32) int { return cmp.Compare(b, a) })
}

// minimumPriority returns the highest priority that the minimum of a group can have: that of its lowest pod. What is
// bound belongs to it before what waits. math.MaxInt32: it consists of completed pods. stands: it needs no pod that
// waits. ok is false if the pods are not enough.
func minimumPriority(group *gang.Group, pods map[*gang.Group]*leafPriorities) (priority int32, stands, ok bool) {
	var bound, waiting []int32
	needs := group.Min()
	if p := pods[group]; group.IsLeaf() && p != nil {
		bound, waiting, needs = p.bound, p.waiting, needs-p.completed
	}
	for _, child := range group.Children() {
		switch priority, stands, ok := minimumPriority(child, pods); {
		case ok && stands:
			bound = append(bound, priority)
		case ok:
			waiting = append(waiting, priority)
		}
	}
	if !group.IsLeaf() {
		sortHighestFirst(bound)
		sortHighestFirst(waiting)
	}
	switch priority = math.MaxInt32; {
	case needs <= 0:
		return priority, true, true
	case len(bound) >= needs:
		return bound[needs-1], true, true
	case len(bound)+len(waiting) < needs:
		return 0, false, false
	case len(bound) > 0:
		priority = bound[len(bound)-1]
	}
	return min(priority, waiting[needs-len(bound)-1]), false, true
}

// Required returns the problem of the whole minimum: all pods that the tree lacks at once, without those below the
// EvictionPriority. It is meaningful for Minimum and Refill.
func (w *Work) Required() placement.Problem {
	p := w.Problem
	p.Have, p.Pods = w.have, w.all
	if w.standing == nil {
		return p
	}
	p.Pods = map[string][]placement.Pod{}
	for leaf, pods := range w.all {
		for _, pod := range pods {
			if w.mayStart(leaf, count.PodPriority(w.Pods[pod.Index]), w.EvictionPriority) {
				p.Pods[leaf] = append(p.Pods[leaf], pod)
			}
		}
	}
	return p
}

// mayStart reports whether a minimum of at least the priority may contain a pod of the leaf.
func (w *Work) mayStart(leaf string, pod, priority int32) bool {
	standing, stands := w.standing[leaf]
	return pod >= priority && (!stands || standing >= priority)
}

// leastPriority returns the priority that the pods of the next plan have at least: while others end for the gang, that
// for which they do. With pods of a lower one it could be preempted by them in turn, without end.
func (g *gangState) leastPriority() int32 {
	if p := g.preemption; p != nil && p.Stage() >= evictions.Checked {
		return p.Priority
	}
	return math.MinInt32
}
