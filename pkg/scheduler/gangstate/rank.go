package gangstate

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// Rank is a pod's place in the scheduling queue (docs/decisions, G16): higher priority first, then the tier, then of
// surplus sub-groups the upper level and the gang that has fewer of them, then the earlier time. Comparing whole tuples
// makes it a strict weak order, and for two plain pods it is PrioritySort's.
type Rank struct {
	Priority int32
	Tier     Tier
	// Level and Extra are those of a surplus sub-group, else 0: on which level it would be, and how many sub-groups the
	// gang has beyond its minimums.
	Level, Extra int
	Time         time.Time
}

// Tier orders what waits at one priority.
type Tier int8

const (
	// TierCommitting: members of a plan that is being committed; nothing goes between them.
	TierCommitting Tier = iota - 3
	// TierRepair: a gang that a crash or a failed binding left bound in part. It holds what it cannot use, so the rest of
	// it comes before everything of any priority, for as long as it may stay so (Options.RepairTimeout). Its marks prove it,
	// or a plan of this process.
	TierRepair
	// TierRefill: an admitted gang that lost pods.
	TierRefill
	// TierNormal: plain pods, and gangs that wait for their minimum.
	TierNormal
	// TierSurplusUnit: whole sub-groups that a gang can do without.
	TierSurplusUnit
	// TierSurplusSingle: single pods that a gang can do without.
	TierSurplusSingle
)

// Compare is negative if a goes before b.
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

// RankOf returns the rank a gang's pod was stamped with, or that of a plain pod with the time given. Lock-free: the queue
// calls it while it sorts.
//
// A rank must not change while its pod lies in a heap of the queue. It is stamped when PreEnqueue lets the pod pass,
// unless it is stamped already, and dropped when the pod is popped (Popped) or gone.
func (r *Registry) RankOf(pod *corev1.Pod, queued time.Time) Rank {
	if _, ok := pod.Annotations[v2alpha2.PodGroupAnnotation]; ok {
		if v, ok := r.ranks.Load(pod.UID); ok {
			return v.(Rank)
		}
	}
	return Rank{Priority: podPriority(pod), Tier: TierNormal, Time: queued}
}

func (r *Registry) stamp(uid types.UID, rank Rank) { r.ranks.LoadOrStore(uid, rank) }

// leaderRank returns the rank of a gang's leader.
func (r *Registry) leaderRank(g *gangState) Rank {
	rank := Rank{Priority: r.priority(g), Tier: TierNormal, Time: g.completeAt}
	switch g.task {
	case Minimum:
		if (g.broken || g.proven) && g.incompleteFor < r.opts.RepairTimeout {
			rank.Priority, rank.Tier = math.MaxInt32, TierRepair
		}
	case Refill:
		rank.Tier = TierRefill
	case SurplusUnit:
		rank.Tier, rank.Extra = TierSurplusUnit, g.numbers.spare.all
		if p := g.numbers.pools[g.profile()]; p != nil {
			rank.Level = p.units.level()
		}
	case SurplusSingle:
		rank.Tier = TierSurplusSingle
	}
	return rank
}

// priority returns the gang's priority: the highest among its pods, or that of its PodGroup's class if that is known and
// lower (docs/decisions, G10). Whoever made the pods was allowed to use theirs; of the class that is not known.
func (r *Registry) priority(g *gangState) int32 {
	highest := g.numbers.priorities.highest()
	if g.group != nil && g.group.Spec.PriorityClassName != "" && r.opts.Priority != nil {
		if p, ok := r.opts.Priority(g.group.Spec.PriorityClassName); ok {
			return min(p, highest)
		}
	}
	return highest
}

// SortByRank sorts gangs as their leaders are sorted in the queue. Gangs that are not known come last.
func (r *Registry) SortByRank(keys []Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ranks := make(map[Key]Rank, len(keys))
	for _, key := range keys {
		if g := r.gangs[key]; g != nil {
			ranks[key] = r.leaderRank(g)
		}
	}
	slices.SortFunc(keys, func(a, b Key) int {
		ra, knownA := ranks[a]
		rb, knownB := ranks[b]
		switch {
		case knownA && knownB:
			return ra.Compare(rb)
		case knownA:
			return -1
		case knownB:
			return 1
		default:
			return strings.Compare(a.String(), b.String())
		}
	})
}
