// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/backlog"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

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
	pl.gangs.recordLeading()
	if !isMember(pod) {
		return nil, pl.preFilterPlain(state, pod)
	}
	node, ok := pl.registry.PlannedNode(pod.UID)
	if !ok {
		pl.gangs.wakeReady(klog.FromContext(ctx)) // a gang that precedes it and may fit by now goes first
		if pl.registry.MustYield(pod, pl.gangs.clock.Now()) {
			return nil, waitStatus(pod)
		}
		work, why := pl.registry.BeginAttempt(pod)
		if work == nil {
			klog.FromContext(ctx).V(4).Info("Gang is not planned now", "pod", klog.KObj(pod), "reason", why)
			return nil, waitStatus(pod)
		}
		if pl.plan(ctx, work, nodes) {
			node, ok = pl.registry.PlannedNode(pod.UID)
		}
		if !ok {
			return nil, waitStatus(pod)
		}
	}
	state.Write(stateKey, planned(node))
	return &fwk.PreFilterResult{NodeNames: sets.New(node)}, nil
}

// PreFilterExtensions implements fwk.PreFilterPlugin. A member's node is fixed, so other pods do not affect it.
func (pl *Admission) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter implements fwk.FilterPlugin. The scheduler also tries a nominated or hinted node that is not in PreFilter's
// result.
func (pl *Admission) Filter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if !isMember(pod) {
		return pl.filterPlain(state, node)
	}
	data, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	if want := string(data.(planned)); node.Node().Name != want {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) are not the one planned for the gang's pod")
	}
	if key := pl.registry.ChangedLabel(pod.UID, node.Node().Name, node.Node().Labels); key != "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("its label %s, on which the plan of the gang relied, has changed", key))
	}
	return nil
}

// waitStatus returns the status of a leader's failed attempt. The message is constant for a pod: the details are in the
// PodGroup's status, and the stock scheduler writes an event and a condition whenever the message changes.
func waitStatus(pod *corev1.Pod) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the gang cannot be placed as a whole: see the status of PodGroup "+membership.Group(pod))
}

// plainKey is the key under which the cycle of a pod without a gang stores the data for Filter.
const plainKey fwk.StateKey = Name + "/reservations"

// plainPod is what Filter needs for a pod without a gang while there are reservations, or while it passes a plan. It is
// not changed after PreFilter, so that clones of the cycle's state share it.
type plainPod struct {
	reserved *reservations.View
	passes   bool
	uses     reservations.Amount
	asker    reservations.Asker
}

// Clone implements fwk.StateData.
func (p *plainPod) Clone() fwk.StateData { return p }

// preFilterPlain refuses pods whose marks cannot be obeyed, and prepares the comparison of nodes with what is reserved.
func (pl *Admission) preFilterPlain(state fwk.CycleState, pod *corev1.Pod) *fwk.Status {
	if why := podgroup.DescribeRefusal(pod); why != "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod "+why+": "+podgroup.LabelAdvice(why))
	}
	reserved := pl.registry.Reservations()
	plan, _, _ := pl.registry.CommittingPlan()
	if reserved == nil && plan == 0 {
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(plainKey, &plainPod{
		reserved: reserved, passes: plan != 0, uses: kubescheduler.AmountOf(pod), asker: backlog.AskerOf(pod, pl.gangs.clock.Now()),
	})
	return nil
}

// filterPlain keeps pods without a gang out of room that is reserved at their priority or a higher one, or that members
// of a plan need which they pass.
func (pl *Admission) filterPlain(state fwk.CycleState, node fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(plainKey)
	if err != nil {
		return nil
	}
	p := data.(*plainPod)
	var planned reservations.Amount
	if p.passes {
		planned = pl.registry.RoomOfMembers(node.Node().Name)
	}
	if !kubescheduler.FitsBeside(p.reserved, planned, node, p.uses, p.asker) {
		return fwk.NewStatus(fwk.Unschedulable, kubescheduler.RoomReserved)
	}
	return nil
}
