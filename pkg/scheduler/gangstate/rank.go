package gangstate

import (
	"cmp"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// Rank is a pod's place in the scheduling queue (G16): higher priority first, then the tier, then the earlier time.
// Comparing whole tuples makes it a strict weak order, and for two plain pods it is PrioritySort's.
type Rank struct {
	Priority int32
	Tier     Tier
	Time     time.Time
}

// Tier orders what waits at one priority.
type Tier int8

const (
	// TierCommitting: members of a plan that is being committed; nothing goes between them.
	TierCommitting Tier = iota - 3
	// TierRepair: a gang that a crash or a failed binding left bound in part. It holds what it cannot use, so the rest of
	// it comes before everything of any priority, while its repair time runs.
	TierRepair
	// TierRefill: an admitted gang that lost pods.
	TierRefill
	// TierNormal: plain pods, and gangs that wait for their minimum.
	TierNormal
	// TierSurplus: what a gang can do without.
	TierSurplus
)

// Compare is negative if a goes before b.
func (a Rank) Compare(b Rank) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Tier, b.Tier); c != 0 {
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

// Popped tells that the queue has handed the pod out.
func (r *Registry) Popped(uid types.UID) { r.ranks.Delete(uid) }

func (r *Registry) stamp(uid types.UID, rank Rank) { r.ranks.LoadOrStore(uid, rank) }

// leaderRank returns the rank of a gang's leader.
func (r *Registry) leaderRank(g *gangState) Rank {
	rank := Rank{Priority: r.priority(g), Tier: TierNormal, Time: g.completeAt}
	switch {
	case g.task == Minimum && r.isRepairing(g):
		rank.Priority, rank.Tier = math.MaxInt32, TierRepair
	case g.task == Refill:
		rank.Tier = TierRefill
	case g.task == Surplus:
		rank.Tier = TierSurplus
	}
	return rank
}

// priority returns the gang's priority: its PodGroup's class if set and known, else the highest among its pods (G10).
func (r *Registry) priority(g *gangState) int32 {
	if g.group != nil && g.group.Spec.PriorityClassName != "" && r.opts.Priority != nil {
		if p, ok := r.opts.Priority(g.group.Spec.PriorityClassName); ok {
			return p
		}
	}
	best, any := int32(math.MinInt32), false
	for _, m := range g.members {
		if m.state != succeeded {
			best, any = max(best, podPriority(m.pod)), true
		}
	}
	if !any {
		return 0
	}
	return best
}
