// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// keptRooms is the room that is kept for replacement pods (gangs.Registry.RoomChanges) in the form in which nodes
// are compared with it.
type keptRooms struct {
	mu       sync.Mutex // changes are applied in their order
	reserved kubescheduler.Reserved
}

// reserved returns the room that is currently kept, nil if there is none.
func (g *Gangs) reserved() *kubescheduler.Reserved {
	g.rooms.mu.Lock()
	defer g.rooms.mu.Unlock()
	for _, x := range g.registry.RoomChanges() {
		if x.Counts {
			g.rooms.reserved.Keep(kubescheduler.Reservation{Gang: x.Owner.Gang, Leaf: x.Owner.Leaf, Priority: x.Priority, Node: x.Node, Pod: x.Pod})
		} else {
			g.rooms.reserved.End(x.Pod.UID)
		}
	}
	if g.rooms.reserved.Len() == 0 {
		return nil
	}
	return &g.rooms.reserved
}

// vacate reports the removal of pods whose room is no longer kept. At the time of their deletion the room was
// available only to their replacements.
func (g *Gangs) vacate(logger klog.Logger, pods []*corev1.Pod) {
	if len(pods) == 0 {
		return
	}
	g.wakeups.vacated.Store(true)
	// For the queue the event of one pod stands for all of them: hints only evaluate that a pod with a node was
	// removed.
	g.wakeups.queue.RepeatDeletion(logger, pods[0])
}

// roomKey is the key under which the cycle of a pod without a gang stores the data for Filter.
const roomKey fwk.StateKey = Name + "/room"

// roomAsked is the request of a pod without a gang while room is kept. It is not changed after PreFilter, so that clones of
// the cycle's state share it.
type roomAsked struct {
	reserved *kubescheduler.Reserved
	request  kubescheduler.Request
	asker    kubescheduler.Asker
}

// Clone implements fwk.StateData.
func (a *roomAsked) Clone() fwk.StateData { return a }

// preFilterPlain prepares the comparison of nodes with the room that is kept.
func (pl *Admission) preFilterPlain(state fwk.CycleState, pod *corev1.Pod) *fwk.Status {
	reserved := pl.gangs.reserved()
	if reserved == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(roomKey, &roomAsked{
		reserved: reserved, request: kubescheduler.RequestOf(pod), asker: kubescheduler.Asker{Priority: corev1helpers.PodPriority(pod)},
	})
	return nil
}

// filterPlain keeps pods without a gang out of room that is kept at their priority or a higher one.
func filterPlain(_ context.Context, state fwk.CycleState, node fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(roomKey)
	if err != nil {
		return nil
	}
	if a := data.(*roomAsked); !a.reserved.Spares(node, a.request, a.asker) {
		return fwk.NewStatus(fwk.Unschedulable, kubescheduler.RoomKept)
	}
	return nil
}

// fits returns how many pods of a shape fit into room that is not kept from the gang at that priority. The empty key stands
// for a pod without a gang. The caller holds wakeups.mu.
func (w *wakeups) fits(at gangs.Shape, key gangs.Key, priority int32) int {
	n := at.Fits()
	if shape, ok := at.(*kubescheduler.Shape); ok {
		n -= w.shapes.Kept(shape, w.kept, kubescheduler.Asker{Gang: key, Priority: priority})
	}
	return n
}
