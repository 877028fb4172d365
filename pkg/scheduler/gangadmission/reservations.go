// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// vacate reports the removal of pods whose reservations have ended. At the time of their deletion the room was available
// only to their replacements.
func (g *Gangs) vacate(logger klog.Logger, pods []*corev1.Pod) {
	if len(pods) == 0 {
		return
	}
	g.backlog.ReservationsEnded()
	// For the queue the event of one pod stands for all of them: hints only evaluate that a pod with a node was
	// removed.
	g.queue.RepeatDeletion(logger, pods[0])
}

// plainKey is the key under which the cycle of a pod without a gang stores the data for Filter.
const plainKey fwk.StateKey = Name + "/reservations"

// plainPod is what Filter needs for a pod without a gang while there are reservations. It is not changed after PreFilter, so
// that clones of the cycle's state share it.
type plainPod struct {
	reserved *reservations.View
	uses     reservations.Amount
	asker    reservations.Asker
}

// Clone implements fwk.StateData.
func (p *plainPod) Clone() fwk.StateData { return p }

// preFilterPlain prepares the comparison of nodes with what is reserved.
func (pl *Admission) preFilterPlain(state fwk.CycleState, pod *corev1.Pod) *fwk.Status {
	reserved := pl.registry.Reservations()
	if reserved == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(plainKey, &plainPod{
		reserved: reserved, uses: kubescheduler.AmountOf(pod), asker: reservations.Asker{Priority: corev1helpers.PodPriority(pod)},
	})
	return nil
}

// filterPlain keeps pods without a gang out of room that is reserved at their priority or a higher one.
func filterPlain(_ context.Context, state fwk.CycleState, node fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(plainKey)
	if err != nil {
		return nil
	}
	if p := data.(*plainPod); !kubescheduler.FitsBeside(p.reserved, node, p.uses, p.asker) {
		return fwk.NewStatus(fwk.Unschedulable, kubescheduler.RoomReserved)
	}
	return nil
}
