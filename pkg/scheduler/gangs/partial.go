// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/marks"
)

// A partial gang is partially bound and never had its minimum: a crash or a failed binding interrupted it. It is
// completed first (the next plan places its missing pods). If it cannot be completed within the repair time, the pods
// that this scheduler bound for it are released: deleted, so that their controllers replace them.
//
// The condition Admitted records that a gang had its minimum. Between the last binding and the write of that condition,
// only the marks of the bound pods can show it. The gang is partial only if they prove that it never had its minimum
// (marks.ProvesPartial). If the objects cannot prove it, the pods are kept, because deleting those of a running gang is
// the worse mistake. If their plan was completed, the gang is admitted, although its tree may have changed since.
//
// A gang that is half released could not be proven partial, because a named member may be gone by then. The decision
// is therefore recorded before the first deletion, as a condition of every pod that is released
// (HasReleaseCondition). A crash while the conditions are written leaves a gang that can still be proven partial; a
// later crash leaves pods whose conditions require their deletion. The condition counts only on a pod with a verified
// mark.

// HasReleaseCondition reports whether the pod's status records that the pod is released.
func HasReleaseCondition(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			return c.Status == corev1.ConditionTrue && c.Reason == v2alpha2.PodReasonPartialGangReleased
		}
	}
	return false
}

// partialState returns the partial state of the gang. It examines the members only if they have changed and some have a
// verified mark.
func (g *gangState) partialState() *partial {
	p := &g.partial
	if p.marked == 0 || g.admitted || g.group == nil || g.tree == nil {
		p.fresh, p.holds, p.neverWhole, p.known = false, false, false, false
		return p
	}
	if p.fresh {
		return p
	}
	p.fresh, p.holds = true, false
	p.proofs++
	for _, m := range g.members {
		p.holds = p.holds || m.isBound() && !m.isFormer() && m.mark.GroupUID == g.group.UID
	}
	p.known = p.holds && (p.known && !g.completedPlan() || g.provesPartial())
	p.neverWhole = p.known
	return p
}

// isPartial reports whether the gang is partially bound, provably never had its minimum, and has no plan in force.
func (g *gangState) isPartial() bool { return g.plan == nil && g.partialState().neverWhole }

// wasWhole reports whether pods are bound for the gang, it was completed by a plan, and nothing is planned now.
func (g *gangState) wasWhole() bool {
	if g.plan != nil {
		return false
	}
	p := g.partialState()
	return p.holds && !p.neverWhole && g.completedPlan()
}

// completedPlan reports whether a plan may have completed the gang, although the current tree is not satisfied.
func (g *gangState) completedPlan() bool {
	return marks.CompletedPlan(g.group.UID, g.markedPods())
}

// provesPartial reports whether the marks prove that the gang never was whole.
func (g *gangState) provesPartial() bool {
	return marks.ProvesPartial(marks.PlannedGroup{UID: g.group.UID, Generation: g.group.Generation, Tree: g.tree}, g.markedPods())
}

// markedPods returns what the members tell a proof.
func (g *gangState) markedPods() iter.Seq[marks.MarkedPod] {
	controllers := g.numbers.LiveControllers()
	return func(yield func(marks.MarkedPod) bool) {
		for _, m := range g.members {
			if !yield(marks.MarkedPod{
				Mark: &m.mark, IsSigned: m.markText != "", Tag: m.tag, Leaf: m.leaf, IsMisplaced: m.misplaced != "",
				NeverBound: m.wasNeverBound(), IsOfEarlierRun: m.isOfEarlierRun(controllers),
				HasEnded: m.state != count.Succeeded && !m.isBound(),
			}) {
				return
			}
		}
	}
}

// wasNeverBound reports whether the member has never been bound.
func (m *member) wasNeverBound() bool { return m.state == count.Pending || m.state == count.Assumed }

// isOfEarlierRun reports whether the member succeeded in a finished run, given the controllers of the current one, or
// belongs to a former one (docs/decisions, G9).
func (m *member) isOfEarlierRun(controllers sets.Set[types.UID]) bool {
	return m.isFormer() || m.state == count.Succeeded && len(controllers) > 0 && !controllers.Has(count.Controller(m.pod))
}

// NeedsRelease reports whether PodsToRelease has work to do: the repair time of some gang is running, or is over and
// pods must be released, or pods are being released. In that case it returns one such gang.
func (r *Registry) NeedsRelease() (Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.synced {
		return Key{}, false
	}
	for key := range r.index.partials {
		if g := r.gangs[key]; g != nil && (g.isRepairing() || g.partialState().neverWhole && g.hasReplaceable() || g.repairsUnit() || len(g.podsToRelease()) > 0) {
			return key, true
		}
	}
	return Key{}, false
}

// watched is the longest time between two calls of PodsToRelease that counts: during a longer pause nothing was
// observed.
const watched = 5 * time.Second

// PodsToRelease adds the time since the last call (at most `watched`: the rest of a longer pause does not count) to
// the clock of every gang that occupies resources it cannot use. It returns the pods to be released: the pods of
// partial gangs and torn units (torn.go) whose repair time is over, bound by this scheduler for this PodGroup UID.
// answering reports whether the API server has answered since the last call; the clock runs only then.
//
// Pods that a controller will replace no longer count from now on, so that no plan depends on them. They must be
// deleted, and are returned until they are. Pods without a controller continue to count, and must not be deleted.
func (r *Registry) PodsToRelease(elapsed time.Duration, answering bool) []*corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*corev1.Pod
	if !r.synced {
		return nil
	}
	for key := range r.index.partials {
		g := r.gangs[key]
		if g == nil {
			continue
		}
		out = append(out, g.podsToRelease()...)
		if len(g.begun) > 0 {
			out = append(out, g.unitsToRelease(elapsed, answering)...)
			r.unmark = append(r.unmark, r.evaluate(g, r.now).Unmark...) // Tick repeats an activation
		}
		p := g.partialState()
		g.proven = p.neverWhole
		switch {
		case !p.holds && !g.broken:
			g.incompleteFor = 0
		case g.inFirstBurst(): // a later plan does not stop the clock
		case answering:
			g.incompleteFor += min(elapsed, watched)
		}
		if g.inFirst > 0 && g.rank.Compare(g.leaderRank()) != 0 {
			r.reindex(g) // both determine its rank
		}
		if !p.neverWhole || g.plan != nil || g.incompleteFor < r.opts.RepairTimeout {
			continue
		}
		for _, m := range g.members {
			if g.wasPlaced(m) {
				out = append(out, m.release())
			}
		}
		r.unmark = append(r.unmark, r.evaluate(g, r.now).Unmark...) // it may no longer be complete; Tick repeats an activation
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out
}

// release returns the pod, to be released. It no longer counts if a controller will replace it.
func (m *member) release() *corev1.Pod {
	m.leaving = count.Controller(m.pod) != ""
	m.recount()
	return m.pod
}

// isRepairing reports whether the gang occupies resources that it cannot use and its repair time is not over. Only
// during that time does it precede everything else: a gang whose pods cannot be released (pods without a controller,
// or a gang that may have had its minimum) gains no lasting advantage.
func (g *gangState) isRepairing() bool {
	return g.incompleteFor < g.opts.RepairTimeout && (g.broken || g.partialState().holds)
}

// releaseDue reports whether the gang is partial, or has a torn unit, and will be released by the next calls of
// PodsToRelease. Another attempt would only delay the release, for as long as an unanswered binding takes.
func (g *gangState) releaseDue() bool {
	return g.incompleteFor >= g.opts.RepairTimeout && g.isPartial() && g.hasReplaceable() || g.hasDueUnit()
}

// hasReplaceable reports whether a pod that was bound for the gang has a controller that would replace it.
func (g *gangState) hasReplaceable() bool {
	for _, m := range g.members {
		if g.wasPlaced(m) && count.Controller(m.pod) != "" {
			return true
		}
	}
	return false
}

// inFirstBurst reports whether a plan is being bound and no pod of the gang was bound by an earlier plan.
func (g *gangState) inFirstBurst() bool {
	if g.plan == nil {
		return false
	}
	for _, m := range g.members {
		if g.wasPlaced(m) && !m.mark.IsOfSamePlan(&g.plan.mark) {
			return false
		}
	}
	return true
}

// wasPlaced reports whether the member is bound, and its mark proves that this scheduler bound it for this PodGroup.
func (g *gangState) wasPlaced(m *member) bool {
	return m.isBound() && !m.isFormer() && m.state == count.Bound && m.markText != "" && m.mark.GroupUID == g.group.UID
}

// PlacedFor returns the gang of a bound pod. It returns false if the pod is unknown, or was bound for an earlier
// PodGroup of the same name.
func (r *Registry) PlacedFor(uid types.UID) (Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[uid]
	if m == nil || m.gang.group == nil || m.mark.GroupUID != m.gang.group.UID {
		return Key{}, false
	}
	return m.gang.key, true
}

// podsToRelease returns the released pods that need to be deleted.
func (g *gangState) podsToRelease() []*corev1.Pod {
	if g.numbers.Flagged(count.IsReleased) == 0 {
		return nil
	}
	var out []*corev1.Pod
	for _, m := range g.members {
		if m.leaving && m.state == count.Bound && count.NeedsDeletion(m.pod) && m.pod.Status.Phase != corev1.PodFailed {
			out = append(out, m.pod)
		}
	}
	return out
}
