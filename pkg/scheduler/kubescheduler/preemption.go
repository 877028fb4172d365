// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
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
	// Victims returns which of the pods on one node, all of lower priority, may be preempted at that priority: pods
	// that may be preempted individually, gangs that may be preempted only as a whole, and the reason why others may
	// not be preempted ("": there are none).
	Victims func(pods []*corev1.Pod, priority int32) (singly sets.Set[types.UID], whole [][]*corev1.Pod, protected string)
	// Preempt is called before a victim is deleted, with all victims on its node. If it returns an error, the victim
	// is kept and the preemptor is tried again. done, if not nil, is called after the deletion.
	Preempt func(victim *corev1.Pod, victims sets.Set[types.UID], node string, preemptor *corev1.Pod) (done func(), err error)
}

// GuardPreemption makes the profile's DefaultPreemption call the hooks about its victims. A profile without that
// plugin does not preempt. It must be called before the profile schedules, or from its scheduling loop; later calls
// have no effect.
func GuardPreemption(f framework.Framework, hooks PreemptionHooks) error {
	// The plugin is registered at two extension points, and the framework exposes the plugin instances of this one
	// only.
	for _, p := range f.PreEnqueuePlugins() {
		if pl, ok := p.(*defaultpreemption.DefaultPreemption); ok {
			guardPlugin(pl, hooks)
			return nil
		}
	}
	if slices.ContainsFunc(f.ListPlugins().PostFilter.Enabled, func(p config.Plugin) bool { return p.Name == defaultpreemption.Name }) {
		return fmt.Errorf("profile %s: %s is enabled at postFilter and not at preEnqueue, where Muster configures which pods of gangs it may preempt: enable it at both, or under multiPoint", f.ProfileName(), defaultpreemption.Name)
	}
	return nil
}

func guardPlugin(pl *defaultpreemption.DefaultPreemption, hooks PreemptionHooks) {
	if _, is := pl.Evaluator.Interface.(*guardedPreemption); is {
		return
	}
	pl.Evaluator.Interface = &guardedPreemption{DefaultPreemption: pl, hooks: hooks}
	preempt := pl.Executor.PreemptPod
	pl.Executor.PreemptPod = func(ctx context.Context, c preemption.Candidate, preemptor preemption.ExecutorPreemptor, victim *corev1.Pod, plugin string) error {
		pod := preemptor.Pods()[preemptor.GetName()] // the preemptor only wraps this pod
		if pod == nil {
			return preempt(ctx, c, preemptor, victim, plugin)
		}
		victims := sets.New[types.UID]()
		for _, v := range c.Victims().Pods {
			victims.Insert(v.UID)
		}
		done, err := hooks.Preempt(victim, victims, c.Name(), pod)
		if err != nil {
			return err
		}
		if err := preempt(ctx, c, preemptor, victim, plugin); err != nil {
			return err
		}
		if done != nil {
			done()
		}
		return nil
	}
}

// guardedPreemption is DefaultPreemption with a different selection of victims on a node.
type guardedPreemption struct {
	*defaultpreemption.DefaultPreemption
	hooks PreemptionHooks
}

var _ preemption.Interface = &guardedPreemption{}

// SelectVictimsOnNode implements preemption.Interface. Gangs that must be preempted as a whole are victims only if
// the pod does not fit without preempting them. It is called for several nodes concurrently; state and node are
// copies.
func (g *guardedPreemption) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo, pdbs []*policyv1.PodDisruptionBudget) ([]*corev1.Pod, int, *fwk.Status) {
	priority := corev1helpers.PodPriority(pod)
	var lower []*corev1.Pod
	for _, p := range node.GetPods() {
		if corev1helpers.PodPriority(p.GetPod()) < priority {
			lower = append(lower, p.GetPod())
		}
	}
	singly, whole, protected := g.hooks.Victims(lower, priority)
	if len(singly) == len(lower) {
		return g.DefaultPreemption.SelectVictimsOnNode(ctx, state, pod, node, pdbs)
	}
	if len(singly) == 0 && len(whole) == 0 {
		return nil, 0, protectedStatus(protected) // the usual case on a cluster full of gangs: no filter runs
	}
	// Each try removes pods from its own copy of the node.
	try := func(may sets.Set[types.UID]) ([]*corev1.Pod, int, *fwk.Status) {
		scoped := *g.DefaultPreemption
		scoped.IsEligiblePod = func(node fwk.NodeInfo, victim fwk.PodInfo, preemptor *corev1.Pod) bool {
			return may.Has(victim.GetPod().UID) && g.IsEligiblePod(node, victim, preemptor)
		}
		return scoped.SelectVictimsOnNode(ctx, state.Clone(), pod, node.Snapshot(), pdbs)
	}
	victims, violating, status := try(singly)
	if status.Code() == fwk.Error || status.IsSuccess() {
		return victims, violating, status
	}
	if len(whole) > 0 {
		may := singly.Clone()
		for _, gang := range whole {
			for _, member := range gang {
				may.Insert(member.UID)
			}
		}
		victims, violating, status = try(may)
		if status.Code() == fwk.Error || status.IsSuccess() {
			return g.addRestOfGangs(victims, singly, whole), violating, status
		}
	}
	// Unschedulable: the pod does not fit beside the pods that remain on the node. Otherwise preemption would not
	// help.
	if protected != "" && status.Code() == fwk.Unschedulable {
		return nil, 0, protectedStatus(protected)
	}
	return nil, 0, status
}

// protectedStatus returns the status of a node whose gangs must not be preempted.
func protectedStatus(protected string) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, protected)
}

// addRestOfGangs adds the remaining pods of gangs that lose a pod of their minimum to the victims, and sorts them by
// importance. Freeing more room than needed is acceptable.
func (g *guardedPreemption) addRestOfGangs(victims []*corev1.Pod, singly sets.Set[types.UID], whole [][]*corev1.Pod) []*corev1.Pod {
	is := sets.New[types.UID]()
	for _, v := range victims {
		is.Insert(v.UID)
	}
	for _, gang := range whole {
		if !slices.ContainsFunc(gang, func(p *corev1.Pod) bool { return is.Has(p.UID) && !singly.Has(p.UID) }) {
			continue
		}
		for _, p := range gang {
			if !is.Has(p.UID) {
				victims = append(victims, p)
			}
		}
	}
	slices.SortStableFunc(victims, func(a, b *corev1.Pod) int {
		switch {
		case g.MoreImportantPod(a, b):
			return -1
		case g.MoreImportantPod(b, a):
			return 1
		default:
			return 0
		}
	})
	return victims
}
