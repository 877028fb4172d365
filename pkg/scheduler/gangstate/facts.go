package gangstate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
)

// capacityReasons are the refusals that another node, or one with more on it, could cure: what a cluster autoscaler
// should hear of (G13).
var capacityReasons = sets.New(v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonTooLarge, v2alpha2.ReasonInsufficientGPUs,
	v2alpha2.ReasonFragmented, v2alpha2.ReasonTopologyUnavailable, v2alpha2.ReasonSiblingBlocked)

// Facts returns what is known of a gang, false if it is not known at all, or not all that exists has been seen yet
// (Synced). The result shares nothing that changes.
func (r *Registry) Facts(key Key) (podgroup.Facts, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[key]
	if g == nil || !r.synced {
		return podgroup.Facts{}, false
	}
	profile := r.profile(g)
	c := r.count(g, profile)
	f := podgroup.Facts{
		Namespace: key.Namespace, Name: key.Name,
		Group: g.group, Tree: g.tree, TreeErr: g.treeErr,
		Created: c.created, Usable: c.usable, Bound: c.bound,
		Admitted: g.admitted, AdmittedGroups: g.admittedGroups.Clone(),
		Binding:  g.plan != nil && !g.plan.aborted,
		Profile:  profile,
		Failures: g.failures,
	}
	if !g.refusedAt.IsZero() {
		f.Refused = podgroup.Refusal{Reason: g.verdict.Reason, Message: g.verdict.Message, At: g.refusedAt}
		f.RefusedSurplus = g.task == Surplus
	}
	if g.isPartial() {
		f.Partial, f.PartialFor = true, g.incompleteFor
	}
	lacking := g.lacking(c, profile)
	f.Pods = len(g.members)
	f.Ended = f.Pods > 0
	for _, m := range g.members {
		if m.state != succeeded {
			f.Ended = false
		}
		if m.misplaced != "" && m.state == pending && m.pod.DeletionTimestamp == nil {
			f.MisplacedTotal++
			f.Misplaced = append(f.Misplaced, fmt.Sprintf("pod %s %s", m.pod.Name, m.misplaced))
		}
		if m.state == bound && m.pod.Status.Phase != corev1.PodFailed {
			switch {
			case m.misplaced != "" && m.pod.DeletionTimestamp == nil:
				f.StrayTotal++
				f.Stray = append(f.Stray, fmt.Sprintf("pod %s %s", m.pod.Name, m.misplaced))
			case m.misplaced == "" && m.pod.DeletionTimestamp != nil:
				f.Leaving++
			}
		}
		if m.state != pending {
			continue
		}
		switch {
		case m.pod.DeletionTimestamp != nil:
			f.Terminating++
		case m.misplaced != "":
		case len(m.pod.Spec.SchedulingGates) > 0:
			f.Gated++
		case m.pod.Spec.SchedulerName != profile:
			f.Foreign++
			if !slices.Contains(f.ForeignNames, m.pod.Spec.SchedulerName) {
				f.ForeignNames = append(f.ForeignNames, m.pod.Spec.SchedulerName)
			}
		}
		ours := r.profiles.Has(m.pod.Spec.SchedulerName)
		if p := r.plans[m.pod.UID]; ours && m.pod.DeletionTimestamp == nil && (p == nil || p.aborted) {
			f.Waiting = append(f.Waiting, podgroup.WaitingPod{
				Pod: m.pod, Since: m.since,
				Gated:         len(m.pod.Spec.SchedulingGates) > 0,
				Misplaced:     m.misplaced,
				NeedsCapacity: lacking[m.pod.UID],
			})
		}
	}
	slices.Sort(f.ForeignNames)
	if f.Foreign > 0 && profile == "" {
		f.OurNames = sets.List(r.profiles)
	}
	slices.Sort(f.Misplaced)
	f.Misplaced = f.Misplaced[:min(len(f.Misplaced), 10)]
	slices.Sort(f.Stray)
	f.Stray = f.Stray[:min(len(f.Stray), 10)]
	slices.SortFunc(f.Waiting, func(a, b podgroup.WaitingPod) int {
		if c := a.Pod.CreationTimestamp.Time.Compare(b.Pod.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Pod.Name, b.Pod.Name)
	})
	return f, true
}

// lacking returns the waiting pods that the refused attempt lacked nodes for: of the missing minimum the fewest that
// would do, or of surplus the sub-groups that would come as units. Empty if nothing was refused, or not for want of
// capacity. A single pod above minMember is nothing to buy a node for.
func (g *gangState) lacking(c counts, profile string) map[types.UID]bool {
	if g.tree == nil || g.refusedAt.IsZero() || !capacityReasons.Has(g.verdict.Reason) {
		return nil
	}
	need := gang.Counts{} // by leaf
	var visit func(group *gang.Group)
	visit = func(group *gang.Group) {
		switch {
		case group.Satisfied(c.bound) || !group.Satisfied(c.usable):
		case group.IsLeaf():
			need[group.Name()] = group.Min() - c.bound[group.Name()]
		default:
			children := slices.Clone(group.Children())
			children = slices.DeleteFunc(children, func(child *gang.Group) bool { return !child.Satisfied(c.usable) })
			slices.SortStableFunc(children, func(a, b *gang.Group) int { return a.MissingPods(c.bound) - b.MissingPods(c.bound) })
			for _, child := range children[:group.Min()] {
				visit(child)
			}
		}
	}
	if g.task != Surplus {
		visit(g.tree.Root())
	} else {
		for _, group := range g.tree.Groups() {
			if group.Parent().Satisfied(c.bound) {
				visit(group)
			}
		}
	}
	out := map[types.UID]bool{}
	for _, m := range g.waiting(profile) {
		if need[m.leaf] > 0 {
			need[m.leaf]--
			out[m.pod.UID] = true
		}
	}
	return out
}

// Keys returns every gang that is known, sorted.
func (r *Registry) Keys() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make([]Key, 0, len(r.gangs))
	for k := range r.gangs {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
