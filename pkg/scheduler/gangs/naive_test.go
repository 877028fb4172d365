// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"maps"
	"math"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/marks"
)

// counted contains the number of pods per leaf, determined by visiting every member.
type counted struct {
	created, usable, bound, ready gang.Counts
}

// naiveProfile computes Numbers.Profile by visiting every member.
func naiveProfile(r *Registry, g *gangState) string {
	var first *member
	for _, m := range g.members {
		if m.state != count.Pending || m.pod.DeletionTimestamp != nil || !r.profiles.Has(m.pod.Spec.SchedulerName) {
			continue
		}
		if first == nil || isBlocked(m) != isBlocked(first) && isBlocked(first) || isBlocked(m) == isBlocked(first) && m.entry.Order().CompareAge(first.entry.Order()) < 0 {
			first = m
		}
	}
	if first == nil {
		return ""
	}
	return first.pod.Spec.SchedulerName
}

// isBlocked reports whether a property of the pod itself excludes it from every plan.
func isBlocked(m *member) bool {
	return m.misplaced != "" || len(m.pod.Spec.SchedulingGates) > 0 || m.gate != ""
}

// naiveEvictionPriority returns the highest priority for which the bound pods of at least that priority are a minimum,
// or the lowest one.
func naiveEvictionPriority(r *Registry, g *gangState) int32 {
	bound := map[*member]int32{}
	lowest := int32(math.MaxInt32)
	for _, m := range g.members {
		if m.isBound() && m.misplaced == "" {
			bound[m] = count.PodPriority(m.pod)
			lowest = min(lowest, bound[m])
		}
	}
	priority := lowest
	for _, p := range bound {
		counts := naiveCounts(r, g).bound
		for m, other := range bound {
			if other < p {
				counts[m.leaf]--
			}
		}
		if g.tree != nil && p > priority && g.tree.Satisfied(counts) {
			priority = p
		}
	}
	return min(priority, g.classPriority())
}

// naiveCounts visits every member of the gang.
func naiveCounts(r *Registry, g *gangState) counted {
	c := counted{created: gang.Counts{}, usable: gang.Counts{}, bound: gang.Counts{}, ready: gang.Counts{}}
	profile := naiveProfile(r, g)
	controllers, plans := sets.New[types.UID](), sets.New[marks.PlanID]()
	for _, m := range g.members {
		if m.state != count.Succeeded && m.pod.DeletionTimestamp == nil {
			controllers.Insert(count.Controller(m.pod))
		}
		if !m.mark.IsZero() && m.isBound() {
			plans.Insert(m.mark.PlanID())
		}
	}
	for _, m := range g.members {
		if m.misplaced != "" {
			continue
		}
		add := func(counts ...gang.Counts) {
			for _, x := range counts {
				x[m.leaf]++
			}
		}
		switch {
		case m.state == count.Succeeded:
			if len(controllers) == 0 || controllers.Has(count.Controller(m.pod)) || plans.Has(m.mark.PlanID()) {
				add(c.created, c.usable, c.bound, c.ready)
			}
		case m.pod.DeletionTimestamp != nil || m.leaving || m.pod.Status.Phase == corev1.PodFailed:
		case m.isBound():
			add(c.created, c.usable, c.bound)
			for _, condition := range m.pod.Status.Conditions {
				if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					add(c.ready)
				}
			}
		case m.state == count.Assumed:
			add(c.created, c.usable)
		default:
			add(c.created)
			if profile != "" && len(m.pod.Spec.SchedulingGates) == 0 && m.pod.Spec.SchedulerName == profile {
				add(c.usable)
			}
		}
	}
	return c
}

// naiveElect computes Numbers.FirstWaiting by visiting every member.
func naiveElect(g *gangState, profile string, bound gang.Counts) *member {
	var first *member
	firstBelow := false
	for _, m := range g.members {
		if m.state != count.Pending || m.misplaced != "" || m.pod.DeletionTimestamp != nil || len(m.pod.Spec.SchedulingGates) > 0 || m.pod.Spec.SchedulerName != profile {
			continue
		}
		below := bound[m.leaf] < g.countingTree().Group(m.leaf).Min()
		if first == nil || below && !firstBelow || below == firstBelow && m.entry.Order().Compare(first.entry.Order()) < 0 {
			first, firstBelow = m, below
		}
	}
	return first
}

// naivePlacedPods visits every member of the gang.
func naivePlacedPods(g *gangState) *placedPods {
	if g.group == nil || g.group.Spec.TopologyConstraint == nil {
		return nil
	}
	p := &placedPods{of: map[*member]podPlace{}, number: map[podPlace]int{}}
	for _, m := range g.members {
		if m.misplaced == "" && m.isBound() {
			p.of[m] = podPlace{m.leaf, m.node}
			p.number[podPlace{m.leaf, m.node}]++
		}
	}
	return p
}

// checkNumbers compares all incrementally maintained values with the results of visiting every member.
func checkNumbers(s *simulation, r *Registry) {
	s.t.Helper()
	vanished, units, minimums := map[*gangState]int{}, map[int32]int{}, map[int32]int{}
	for uid := range r.vanished {
		vanished[r.members[uid].gang]++
	}
	for key, g := range r.gangs {
		n, want := g.numbers, naiveCounts(r, g)
		profile := naiveProfile(r, g)
		if got := g.numbers.Profile(); got != profile {
			s.fail("profile of %s is %q, want %q", key, got, profile)
		}
		got := counted{created: n.Created.Counts(), usable: n.Usable(profile).Counts(), bound: n.Bound.Counts(), ready: n.Ready.Counts()}
		if !maps.Equal(want.created, got.created) || !maps.Equal(want.usable, got.usable) || !maps.Equal(want.bound, got.bound) || !maps.Equal(want.ready, got.ready) {
			s.fail("counts of %s (-want +got):\n%s", key, cmp.Diff(want, got, cmp.AllowUnexported(counted{})))
		}
		var elected *member
		if e := n.FirstWaiting(profile); e != nil {
			elected = g.members[e.UID]
		}
		if first := naiveElect(g, profile, want.bound); first != elected {
			s.fail("%s would elect %v, want %v", key, elected, first)
		}
		if got, want := g.placed, naivePlacedPods(g); !cmp.Equal(want, got, cmp.AllowUnexported(placedPods{}, podPlace{}), cmp.Comparer(func(a, b *member) bool { return a == b })) {
			s.fail("placed pods of %s are %v, want %v", key, got, want)
		}
		total := map[count.Flags]int{}
		highest, any := int32(0), false
		for _, m := range g.members {
			p := m.counted()
			if share := count.ShareOf(&p); share != *m.entry.Share() {
				s.fail("the share of %s is %+v, want %+v", m.pod.UID, *m.entry.Share(), share)
			}
			for f := count.Flags(1); f <= count.IsOurs; f <<= 1 {
				if m.entry.Share().Flags&f != 0 {
					total[f]++
				}
			}
			if m.state != count.Succeeded && (!any || count.PodPriority(m.pod) > highest) {
				highest, any = count.PodPriority(m.pod), true
			}
			if inRow := m.entry.Share().Flags&listed != 0; inRow != (m.row > 0) || inRow && (g.rows[m.row-1].member != m || g.rows[m.row-1].pod != m.pod || g.rows[m.row-1].flags != m.entry.Share().Flags) {
				s.fail("the row of %s is wrong", m.pod.UID)
			}
		}
		for f := count.Flags(1); f <= count.IsOurs; f <<= 1 {
			if n.Flagged(f) != total[f] {
				s.fail("%s counts %d pods with flag %b, want %d", key, n.Flagged(f), f, total[f])
			}
		}
		if got := n.HighestPriority(); got != highest {
			s.fail("the priority of %s is %d, want %d", key, got, highest)
		}
		if g.vanished != vanished[g] {
			s.fail("%s counts %d vanished pods, want %d", key, g.vanished, vanished[g])
		}
		for _, group := range g.countingTree().Groups() {
			if pods := n.Bound.Pods(group); r.synced && g.tree != nil && g.admitted && group.Satisfied(want.bound) && !g.admittedGroups.Has(group.Name()) &&
				(group.Parent().Parent() == nil || g.admittedGroups.Has(group.Parent().Name())) {
				s.fail("sub-group %q of %s has %d pods, is satisfied and not admitted", group.Name(), key, pods)
			} else if g.tree != nil && g.admitted && pods == 0 && g.admittedGroups.Has(group.Name()) {
				s.fail("sub-group %q of %s has no pod and is admitted", group.Name(), key)
			}
		}
		if g.phase.hasLeader() != (g.leader != "") || (g.phase == Committed) != (g.plan != nil) || g.phase == Gated && g.gatedUntil.IsZero() {
			s.fail("%s is %s with leader %q, plan %v, gated until %v", key, g.phase, g.leader, g.plan, g.gatedUntil)
		}
		_, yields := r.index.yielding[g]
		_, waits := r.waiting.all[g]
		if yields != (g.phase == Yielding) || waits != (g.wait != nil) || !waits && g.phase.isRefused() || waits && !g.phase.hasLeader() && g.passed == 0 ||
			g.phase.isRefused() && (g.inHeard > 0) != g.wait.heard || (g.inTurns > 0) != g.phase.isRefused() || g.retried && (g.leader == "" || g.phase.isRefused()) {
			s.fail("%s is %s: yields: %t, waits: %t, %+v, in the indices: %+v, retried: %t", key, g.phase, yields, waits, g.wait, g.indexed, g.retried)
		}
		checkUnits(s, g, profile, want)
		checkLostGroups(s, g)
		if g.tree != nil && g.leader != "" && (g.task == Minimum || g.task == Refill || g.task == LostUnit) && !g.refusedAt.IsZero() {
			minimums[g.priority()]++
		}
		if at, ok := r.index.units.priorityOf[g]; ok {
			units[at]++
		}
		if g.retried && (g.inFirst == 0 || g.rank != g.leaderRank()) {
			s.fail("%s is retried, and is not where it belongs: rank %+v, want %+v", key, g.rank, g.leaderRank())
		}
	}
	if !maps.Equal(units, r.index.units.count) {
		s.fail("gangs that wait with units: %v, want %v", r.index.units.count, units)
	}
	if !maps.Equal(minimums, r.index.minimums.count) {
		s.fail("gangs whose minimum was refused: %v, want %v", r.index.minimums.count, minimums)
	}
}

// checkUnits compares the surplus sub-groups that a gang could have with those found by walking its tree.
func checkUnits(s *simulation, g *gangState, profile string, c counted) {
	s.t.Helper()
	open, extra, units := sets.New[string](), 0, 0
	for _, group := range append([]*gang.Group{g.countingTree().Root()}, g.countingTree().Groups()...) {
		if !group.IsLeaf() {
			extra += max(0, group.SatisfiedChildren(c.bound)-group.Min())
		}
		if parent := group.Parent(); parent != nil && parent.Satisfied(c.bound) && !group.Satisfied(c.bound) && group.Satisfied(c.usable) {
			open.Insert(parent.Name())
			units++
		}
	}
	if got := g.numbers.Units(profile); profile != "" && got != units {
		s.fail("%s could have %d units, want %d", g.key, got, units)
	}
	if got := g.numbers.ExtraGroups(); got != extra {
		s.fail("%s has %d extra sub-groups, want %d", g.key, got, extra)
	}
	if got := g.numbers.GroupsWithUnits(profile); profile != "" && got != len(open) {
		s.fail("%s could have units in %d groups, want %v", g.key, got, open)
	}
}

// checkLostGroups: what is recorded as lost is a sub-group of an admitted gang that is not admitted.
func checkLostGroups(s *simulation, g *gangState) {
	s.t.Helper()
	for name := range g.lostGroups {
		if g.tree != nil && (g.tree.Group(name) == nil || g.admittedGroups.Has(name) || !g.admitted) {
			s.fail("sub-group %q of %s is recorded as lost: admitted %t, %v", name, g.key, g.admitted, g.admittedGroups)
		}
	}
}
