// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// Admission plans and admits gangs. There is one per profile; state that outlives a call is in Gangs.
type Admission struct {
	gangs       *Gangs
	registry    *gangs.Registry
	handle      fwk.Handle
	profile     kubescheduler.Profile
	args        *config.GangAdmissionArgs
	filterCache *kubescheduler.FilterCache // used only by the scheduling loop
}

var (
	_ fwk.QueueSortPlugin   = &Admission{}
	_ fwk.EnqueueExtensions = &Admission{}
	_ fwk.PreFilterPlugin   = &Admission{}
	_ fwk.FilterPlugin      = &Admission{}
	_ fwk.PostFilterPlugin  = &Admission{}
	_ fwk.ReservePlugin     = &Admission{}
	_ fwk.PermitPlugin      = &Admission{}
	_ fwk.BindPlugin        = &Admission{}
	_ fwk.PostBindPlugin    = &Admission{}
	_ fwk.SignPlugin        = &Admission{}
)

// Name implements fwk.Plugin.
func (pl *Admission) Name() string { return Name }

// Less implements fwk.QueueSortPlugin (docs/decisions, G16). For two pods without a gang it is PrioritySort's order.
func (pl *Admission) Less(a, b fwk.QueuedPodInfo) bool {
	ra := pl.registry.RankOf(a.GetPodInfo().GetPod(), a.GetTimestamp())
	rb := pl.registry.RankOf(b.GetPodInfo().GetPod(), b.GetTimestamp())
	return ra.Compare(rb) < 0
}

// stateKey is the key under which a member's cycle stores its planned node.
const stateKey fwk.StateKey = Name

// planned is the node of a member, for Filter.
type planned string

// Clone implements fwk.StateData. A planned node is immutable.
func (p planned) Clone() fwk.StateData { return p }

// PreFilter implements fwk.PreFilterPlugin. The leader's call plans the gang; a member's returns its one planned node.
func (pl *Admission) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if kubescheduler.IsPlanning(state) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	pl.gangs.leads()
	if !isMember(pod) {
		return nil, pl.preFilterPlain(state, pod)
	}
	node, ok := pl.registry.PlannedNode(pod.UID)
	if !ok {
		pl.gangs.wakeReady(klog.FromContext(ctx), gangs.Key{Namespace: pod.Namespace, Name: pod.Annotations[v2alpha2.PodGroupAnnotation]}) // a gang that precedes it and may fit by now goes first
		if pl.registry.Yields(pod, pl.gangs.clock.Now()) {
			return nil, waits(pod)
		}
		work, why := pl.registry.Begin(pod)
		if work == nil {
			klog.FromContext(ctx).V(4).Info("Gang is not planned now", "pod", klog.KObj(pod), "reason", why)
			return nil, waits(pod)
		}
		if pl.plan(ctx, work, nodes) {
			node, ok = pl.registry.PlannedNode(pod.UID)
		}
		if !ok {
			return nil, waits(pod)
		}
	}
	state.Write(stateKey, planned(node))
	return &fwk.PreFilterResult{NodeNames: sets.New(node)}, nil
}

// PreFilterExtensions implements fwk.PreFilterPlugin. A member's node is fixed, so other pods do not affect it.
func (pl *Admission) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter implements fwk.FilterPlugin. The scheduler also tries a nominated or hinted node that is not in PreFilter's
// result.
func (pl *Admission) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if !isMember(pod) {
		return filterPlain(ctx, state, node)
	}
	data, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	if want := string(data.(planned)); node.Node().Name != want {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) are not the one planned for the gang's pod")
	}
	return nil
}

// PostFilter implements fwk.PostFilterPlugin. A plan of which a member was refused by its node is not bound; a single
// pod of a gang never preempts (docs/decisions, G15). For other pods default preemption runs next, which preempts no
// part of a gang's minimum. A pod that passes between the members of a plan does not preempt: it is tried again when all of
// them are assumed.
func (pl *Admission) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if !isMember(pod) {
		if plan, _, _ := pl.registry.Committing(); plan != 0 {
			return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
		}
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	if data, err := state.Read(stateKey); err == nil {
		pl.refused(ctx, pod, string(data.(planned)), statuses)
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
}

// Reserve implements fwk.ReservePlugin.
func (pl *Admission) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if !isMember(pod) {
		if kept := pod.Status.NominatedNodeName; kept != "" && kept != node {
			pl.gangs.backlog.NominationGone()
		}
		return nil
	}
	if err := pl.registry.Assume(pod.UID, node, pl.gangs.clock.Now()); err != nil {
		return fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	pl.gangs.claims.begin(pl.profile, pod)
	return nil
}

// Unreserve implements fwk.ReservePlugin. It is also called for pods whose Reserve failed, and in binding goroutines.
func (pl *Admission) Unreserve(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	if !isMember(pod) {
		return
	}
	pl.gangs.released.add(pod.UID, false) // until memberSource.Requeued
	effects, fails, first := pl.registry.ReleaseUnexplained(pod.UID, pl.gangs.clock.Now())
	if fails {
		pl.gangs.released.add(pod.UID, true)
		if !first {
			pl.gangs.explained.add(pod.UID)
		}
	}
	pl.gangs.apply(klog.FromContext(ctx), effects)
}

// Permit implements fwk.PermitPlugin: a member passes only if its plan is in force. If the plan is doomed, a member that
// would be prepared waits until the plan is aborted; one that would not waits at the barrier.
func (pl *Admission) Permit(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (*fwk.Status, time.Duration) {
	if !isMember(pod) {
		return nil, 0
	}
	if err := pl.registry.Permit(pod.UID); err != nil {
		return fwk.NewStatus(fwk.Unschedulable, err.Error()), 0
	}
	if pl.registry.Doomed(pod.UID) && !kubescheduler.SkipsPreBind(ctx, pl.profile, state, pod, node) && pl.registry.HoldOnNode(pod.UID) {
		return fwk.NewStatus(fwk.Wait), pl.args.BarrierTimeout.Duration
	}
	return nil, 0
}

// SignPod implements fwk.SignPlugin: pods without a gang keep the batching of the stock scheduler, members are
// excluded from it.
func (pl *Admission) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if isMember(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the pods of a gang are planned together")
	}
	return nil, nil
}

// waits returns the status of a leader's failed attempt. The message is constant for a pod: the details are in the
// PodGroup's status, and the stock scheduler writes an event and a condition whenever the message changes.
func waits(pod *corev1.Pod) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the gang cannot be placed as a whole: see the status of PodGroup "+pod.Annotations[v2alpha2.PodGroupAnnotation])
}
