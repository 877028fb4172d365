// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// Rank is a pod's position in the scheduling queue (docs/decisions, G16): higher priority first, then by tier;
// surplus sub-groups then by upper level first and by the gang that has fewer of them; then the earlier time.
// Comparing whole tuples makes it a strict weak order. For two pods without a gang it is the order of PrioritySort.
type Rank struct {
	Priority int32
	Tier     Tier
	// Level and Extra are set for a surplus sub-group, otherwise 0: the level at which it would be, and the number of
	// sub-groups that the gang has beyond its minimums.
	Level, Extra int
	Time         time.Time
}

// Tier orders pods of the same priority.
type Tier int8

const (
	// TierCommitting: members of a plan that is being committed. Only kubescheduler.turns lets pods without a gang pass
	// between them.
	TierCommitting Tier = iota - 3
	// TierRepair: a gang that a crash or a failed binding left partially bound. It occupies resources that it cannot
	// use, so its remaining pods precede all others of any priority, until Options.RepairTimeout is over. The state
	// is proven by its marks, or by a plan of this process.
	TierRepair
	// TierRefill: an admitted gang that lost pods, or a sub-group above its minimum.
	TierRefill
	// TierNormal: pods without a gang, and gangs that wait for their minimum.
	TierNormal
	// TierSurplusUnit: whole sub-groups beyond the minimum.
	TierSurplusUnit
	// TierSurplusSingle: single pods beyond the minimum.
	TierSurplusSingle
)

// Compare returns a negative number if a comes before b.
func (a Rank) Compare(b Rank) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Tier, b.Tier); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Level, b.Level); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Extra, b.Extra); c != 0 {
		return c
	}
	return a.Time.Compare(b.Time)
}

// RankOf returns the rank with which a pod of a gang was stamped, or the rank of a pod without a gang at the given
// time. It takes no lock, because the queue calls it while sorting.
//
// The rank of a pod must not change while the pod is in a heap of the queue. A pod without a rank is stamped when
// PreEnqueue admits it; the rank is dropped when the pod is popped (RecordPopped) or deleted. A leader whose rank has
// fallen meanwhile enters again (isPoppedEarly).
func (r *Registry) RankOf(pod *corev1.Pod, queued time.Time) Rank {
	if membership.Group(pod) != "" {
		if v, ok := r.ranks.Load(pod.UID); ok {
			return v.(Rank)
		}
	}
	return Rank{Priority: count.PodPriority(pod), Tier: TierNormal, Time: queued}
}

func (r *Registry) stampRank(uid types.UID, rank Rank) { r.ranks.LoadOrStore(uid, rank) }

// isStampedLater reports whether the leader is in the queue already with a later rank, that of another task. Gangs that
// precede it there must let it go first.
func (r *Registry) isStampedLater(g *gangState) bool {
	v, ok := r.ranks.Load(g.leader)
	return ok && v.(Rank).Compare(g.leaderRank()) > 0
}

// isPoppedEarly reports whether the queue has handed out the leader by a rank that precedes the one that it has by now:
// its task was another one, or its priority higher, when it entered.
func (g *gangState) isPoppedEarly() bool {
	rank, ok := g.popped.(Rank)
	return ok && rank.Compare(g.leaderRank()) < 0
}

// leaderRank returns the rank of a gang's leader. A refused gang has that of the task with which it is tried again.
func (g *gangState) leaderRank() Rank {
	rank := Rank{Priority: g.priority(), Tier: TierNormal, Time: g.completeAt}
	task := g.task
	if g.phase.isRefused() && task.followsMinimums() {
		task = g.surplusAfter(0, g.numbers.Profile())
	}
	switch task {
	case Minimum:
		if (g.broken || g.proven) && g.incompleteFor < g.opts.RepairTimeout {
			rank.Priority, rank.Tier = math.MaxInt32, TierRepair
		}
	case Refill, LostUnit:
		rank.Tier = TierRefill
	case SurplusUnit:
		rank.Tier, rank.Extra = TierSurplusUnit, g.numbers.ExtraGroups()
		rank.Level = g.numbers.UnitLevel(g.numbers.Profile())
	case SurplusSingle:
		rank.Tier = TierSurplusSingle
	}
	return rank
}

// compareInQueue compares in the order of the queue, and what has the same rank by name.
func compareInQueue(a Rank, aName Key, b Rank, bName Key) int {
	if c := a.Compare(b); c != 0 {
		return c
	}
	return compareNames(aName, bName)
}

// sortByRank sorts in the order of the queue. Items of the same rank are sorted by name: many gangs have it after a
// restart, because their PodGroups record whole seconds.
func sortByRank[T comparable](items []T, rankOf func(T) Rank, nameOf func(T) Key) {
	ranks := make(map[T]Rank, len(items))
	for _, x := range items {
		ranks[x] = rankOf(x)
	}
	slices.SortFunc(items, func(a, b T) int { return compareInQueue(ranks[a], nameOf(a), ranks[b], nameOf(b)) })
}

// sortGangs sorts gangs in the order of the queue.
func sortGangs(gangs []*gangState) {
	sortByRank(gangs, (*gangState).leaderRank, func(g *gangState) Key { return g.key })
}

// compareIndexed compares gangs with the ranks by which they are in an index.
func compareIndexed(a, b *gangState) int { return compareInQueue(a.rank, a.key, b.rank, b.key) }

// compareNames compares by namespace and name.
func compareNames(a, b Key) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// firstByRank returns the first gang of a heap that is in the order of the queue. ok is false if the heap is empty.
func (r *Registry) firstByRank(h *count.Heap[*gangState]) (g *gangState, ok bool) {
	for {
		if g, ok = h.First(); !ok || g.rank == g.leaderRank() {
			return g, ok
		}
		r.reindex(g)
	}
}

// priority returns the gang's priority: the highest among its pods, or the priority of its PodGroup's class if that
// is known and lower (docs/decisions, G10). The creator of a pod was authorized to use the pod's priority class; for
// the class in the PodGroup this is not checked.
func (g *gangState) priority() int32 { return min(g.classPriority(), g.numbers.HighestPriority()) }

// classPriority returns the value of the PodGroup's PriorityClass, math.MaxInt32 if it has none or the class does not
// exist.
func (g *gangState) classPriority() int32 {
	if g.group != nil && g.group.Spec.PriorityClassName != "" && g.opts.Priority != nil {
		if p, ok := g.opts.Priority(g.group.Spec.PriorityClassName); ok {
			return p
		}
	}
	return math.MaxInt32
}
