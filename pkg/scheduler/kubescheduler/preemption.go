// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// PreemptionHooks decide which pods of gangs may be victims of the stock plugin DefaultPreemption. They are called
// from several goroutines.
type PreemptionHooks struct {
	// Victims returns which of the pods on one node, all of lower priority, may be preempted at that priority.
	Victims func(pods []*corev1.Pod, priority int32) PreemptionVictims
	// Preempt is called before a victim is deleted, with all victims. ends: the victim ends, or has ended, without a deletion by
	// the plugin. If it returns an error, the victim is kept and the preemptor is tried again.
	Preempt func(victim *corev1.Pod, victims []*corev1.Pod, preemptor *corev1.Pod) (ends bool, err error)
}

// PreemptionVictims are the pods of one node that may be preempted. Of the single pods and the units any may be preempted,
// whichever of the others are.
type PreemptionVictims struct {
	Singly    sets.Set[types.UID] // pods that may be preempted individually
	SubGroups []PreemptionUnit    // inner sub-groups before those around them
	Gangs     []PreemptionUnit    // whole gangs
	Protected string              // why other pods may not be preempted; "": there are none
}

// PreemptionUnit contains pods that are preempted together or not at all.
type PreemptionUnit struct {
	OnNode []*corev1.Pod // on the node; neither single nor in a smaller unit
	All    []*corev1.Pod // on any node; not modified
}

// isProtectedByExtender is the reason why a unit on several nodes is kept if an extender is asked about victims.
const isProtectedByExtender = "pods of lower priority belong to gangs on several nodes, and an extender with a preemptVerb can be asked about victims on one node only"

// GuardPreemption makes the profile's DefaultPreemption call the hooks about its victims. A profile without that
// plugin does not preempt. It must be called before the profile schedules, or from its scheduling loop; later calls
// have no effect.
func GuardPreemption(f framework.Framework, hooks PreemptionHooks) error {
	// The plugin is registered at two extension points, and the framework exposes the plugin instances of this one
	// only.
	for _, p := range f.PreEnqueuePlugins() {
		if pl, ok := p.(*defaultpreemption.DefaultPreemption); ok {
			guardPlugin(pl, f.Extenders(), hooks)
			return nil
		}
	}
	if slices.ContainsFunc(f.ListPlugins().PostFilter.Enabled, func(p config.Plugin) bool { return p.Name == defaultpreemption.Name }) {
		return fmt.Errorf("profile %s: %s is enabled at postFilter and not at preEnqueue, where Muster configures which pods of gangs it may preempt: enable it at both, or under multiPoint", f.ProfileName(), defaultpreemption.Name)
	}
	return nil
}

func guardPlugin(pl *defaultpreemption.DefaultPreemption, extenders []fwk.Extender, hooks PreemptionHooks) {
	if _, is := pl.Evaluator.Interface.(*guardedPreemption); is {
		return
	}
	pl.Evaluator.Interface = &guardedPreemption{DefaultPreemption: pl, hooks: hooks, extenders: extenders}
	preempt := pl.Executor.PreemptPod
	pl.Executor.PreemptPod = func(ctx context.Context, c preemption.Candidate, preemptor preemption.ExecutorPreemptor, victim *corev1.Pod, plugin string) error {
		pod := preemptor.Pods()[preemptor.GetName()] // the preemptor only wraps this pod
		if pod == nil {
			return preempt(ctx, c, preemptor, victim, plugin)
		}
		if ends, err := hooks.Preempt(victim, c.Victims().Pods, pod); ends || err != nil {
			return err
		}
		return preempt(ctx, c, preemptor, victim, plugin)
	}
}

// guardedPreemption is DefaultPreemption with a different selection of victims on a node.
type guardedPreemption struct {
	*defaultpreemption.DefaultPreemption
	hooks     PreemptionHooks
	extenders []fwk.Extender
}

var _ preemption.Interface = &guardedPreemption{}

// SelectVictimsOnNode implements preemption.Interface. Sub-groups are victims only if the pod does not fit without
// preempting them, and so are whole gangs. It is called for several nodes concurrently; state and node are copies.
func (g *guardedPreemption) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo, pdbs []*policyv1.PodDisruptionBudget) ([]*corev1.Pod, int, *fwk.Status) {
	priority := corev1helpers.PodPriority(pod)
	var lower []*corev1.Pod
	for _, p := range node.GetPods() {
		if corev1helpers.PodPriority(p.GetPod()) < priority {
			lower = append(lower, p.GetPod())
		}
	}
	v := g.hooks.Victims(lower, priority)
	if len(v.Singly) == len(lower) {
		return g.DefaultPreemption.SelectVictimsOnNode(ctx, state, pod, node, pdbs)
	}
	g.keepUnitsFromExtenders(&v, pod)
	// Each step adds the next greater loss to what may be preempted, and removes pods from its own copy of the node.
	may := v.Singly
	status := protectedStatus(v.Protected) // the usual case on a cluster full of gangs: no filter runs
	for _, units := range [][]PreemptionUnit{nil, v.SubGroups, v.Gangs} {
		if units != nil {
			may = may.Clone()
		}
		size := len(may)
		for _, u := range units {
			for _, p := range u.OnNode {
				may.Insert(p.UID)
			}
		}
		if len(may) == 0 || units != nil && len(may) == size {
			continue
		}
		var victims []*corev1.Pod
		var violating int
		victims, violating, status = g.selectAmong(ctx, may, state.Clone(), pod, node.Snapshot(), pdbs)
		switch {
		case status.IsSuccess() && units == nil:
			return victims, violating, status
		case status.IsSuccess():
			victims = g.completeUnits(victims, &v, node.Node().Name, func(may sets.Set[types.UID]) bool {
				_, _, status := g.selectAmong(ctx, may, state.Clone(), pod, node.Snapshot(), pdbs)
				return status.IsSuccess()
			})
			return victims, budgetViolations(victims, pdbs), status
		case status.Code() == fwk.Error:
			return nil, 0, status
		}
	}
	// Unschedulable: the pod does not fit beside the pods that remain on the node. Otherwise preemption would not
	// help.
	if v.Protected != "" && status.Code() == fwk.Unschedulable {
		return nil, 0, protectedStatus(v.Protected)
	}
	return nil, 0, status
}

// selectAmong selects victims among some pods of a node as the stock plugin does.
func (g *guardedPreemption) selectAmong(ctx context.Context, may sets.Set[types.UID], state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo, pdbs []*policyv1.PodDisruptionBudget) ([]*corev1.Pod, int, *fwk.Status) {
	scoped := *g.DefaultPreemption
	scoped.IsEligiblePod = func(node fwk.NodeInfo, victim fwk.PodInfo, preemptor *corev1.Pod) bool {
		return may.Has(victim.GetPod().UID) && g.IsEligiblePod(node, victim, preemptor)
	}
	return scoped.SelectVictimsOnNode(ctx, state, pod, node, pdbs)
}

// keepUnitsFromExtenders removes units on several nodes if an extender will be asked about the victims. An answer of an
// extender that contains a pod of another node would be an error.
func (g *guardedPreemption) keepUnitsFromExtenders(v *PreemptionVictims, pod *corev1.Pod) {
	if !slices.ContainsFunc(g.extenders, func(e fwk.Extender) bool { return e.SupportsPreemption() && e.IsInterested(pod) }) {
		return
	}
	isOnSeveral := func(u PreemptionUnit) bool {
		return slices.ContainsFunc(u.All, func(p *corev1.Pod) bool { return p.Spec.NodeName != u.OnNode[0].Spec.NodeName })
	}
	units := len(v.SubGroups) + len(v.Gangs)
	v.SubGroups = slices.DeleteFunc(v.SubGroups, isOnSeveral)
	v.Gangs = slices.DeleteFunc(v.Gangs, isOnSeveral)
	if len(v.SubGroups)+len(v.Gangs) < units {
		v.Protected = isProtectedByExtender
	}
}

// protectedStatus returns the status of a node whose gangs must not be preempted.
func protectedStatus(protected string) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, protected)
}

// completeUnits returns the victims with the other pods of their units, on any node, and without those that are not needed
// then, the most important one first. fitsIf reports whether the pod fits if these pods of the node end.
func (g *guardedPreemption) completeUnits(victims []*corev1.Pod, v *PreemptionVictims, node string, fitsIf func(sets.Set[types.UID]) bool) []*corev1.Pod {
	losses := lossesOf(victims, v)
	if endMoreOn(node, losses, victims) {
		losses = spareLosses(losses, node, fitsIf)
	}
	all := podsOfLosses(losses)
	sort.SliceStable(all, func(i, j int) bool { return g.MoreImportantPod(all[i], all[j]) })
	return all
}

// lossesOf returns what owners lose by the victims, the greatest loss first: the pods of each unit of which a victim is not in
// any smaller one, and single pods.
func lossesOf(victims []*corev1.Pod, v *PreemptionVictims) [][]*corev1.Pod {
	chosen := sets.New[types.UID]()
	var singles [][]*corev1.Pod
	for _, p := range victims {
		chosen.Insert(p.UID)
		if v.Singly.Has(p.UID) {
			singles = append(singles, []*corev1.Pod{p})
		}
	}
	var losses [][]*corev1.Pod
	for _, units := range [][]PreemptionUnit{v.Gangs, v.SubGroups} {
		for _, u := range slices.Backward(units) { // sub-groups before those in them
			if slices.ContainsFunc(u.OnNode, func(p *corev1.Pod) bool { return chosen.Has(p.UID) }) {
				losses = append(losses, u.All)
			}
		}
	}
	return append(losses, singles...)
}

// endMoreOn reports whether the losses contain pods of the node that are not among the victims. Then the pod may fit without
// all of the losses.
func endMoreOn(node string, losses [][]*corev1.Pod, victims []*corev1.Pod) bool {
	for _, loss := range losses {
		for _, p := range loss {
			if p.Spec.NodeName == node && !slices.ContainsFunc(victims, func(v *corev1.Pod) bool { return v.UID == p.UID }) {
				return true
			}
		}
	}
	return false
}

// spareLosses returns those of the losses without any of which the pod would not fit. fitsIf reports whether the pod fits if
// these pods of the node end.
func spareLosses(losses [][]*corev1.Pod, node string, fitsIf func(sets.Set[types.UID]) bool) [][]*corev1.Pod {
	for i := 0; i < len(losses) && len(losses) > 1; {
		others := slices.Delete(slices.Clone(losses), i, i+1)
		may := sets.New[types.UID]()
		for _, loss := range others {
			for _, p := range loss {
				if p.Spec.NodeName == node {
					may.Insert(p.UID)
				}
			}
		}
		if fitsIf(may) {
			losses = others
		} else {
			i++
		}
	}
	return losses
}

// podsOfLosses returns each pod of the losses once.
func podsOfLosses(losses [][]*corev1.Pod) []*corev1.Pod {
	seen := sets.New[types.UID]()
	var pods []*corev1.Pod
	for _, loss := range losses {
		for _, p := range loss {
			if !seen.Has(p.UID) {
				seen.Insert(p.UID)
				pods = append(pods, p)
			}
		}
	}
	return pods
}

// budgetViolations returns how many of the victims PodDisruptionBudgets do not allow, counted as by the stock plugin.
func budgetViolations(victims []*corev1.Pod, budgets []*policyv1.PodDisruptionBudget) int {
	violating := sets.New[types.UID]()
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || selector.Empty() { // selects nothing
			continue
		}
		allowed := budget.Status.DisruptionsAllowed
		for _, p := range victims {
			if _, counted := budget.Status.DisruptedPods[p.Name]; counted || p.Namespace != budget.Namespace || len(p.Labels) == 0 || !selector.Matches(labels.Set(p.Labels)) {
				continue
			}
			if allowed--; allowed < 0 {
				violating.Insert(p.UID)
			}
		}
	}
	return len(violating)
}
