package gangadmission

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangstate"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// keptRooms is the room that is kept for pods that are to come (gangstate.Registry.Rooms), as nodes are compared with it.
type keptRooms struct {
	mu       sync.Mutex
	version  uint64
	reserved *kubescheduler.Reserved
}

// reserved returns the room that is kept now, nil if there is none. The result is the same object as long as nothing
// changes.
func (g *Gangs) reserved() *kubescheduler.Reserved {
	list, version := g.registry.Rooms()
	if len(list) == 0 {
		return nil
	}
	g.rooms.mu.Lock()
	defer g.rooms.mu.Unlock()
	if g.rooms.version != version {
		all := make([]kubescheduler.Reservation, len(list))
		for i, x := range list {
			all[i] = kubescheduler.Reservation{Gang: x.Owner.Gang, Leaf: x.Owner.Leaf, Priority: x.Priority, Node: x.Node, Pod: x.Pod}
		}
		g.rooms.version, g.rooms.reserved = version, kubescheduler.NewReserved(all)
	}
	return g.rooms.reserved
}

// vacate goes on where the pods went whose room is not kept any more: when they did, that helped nobody but their
// replacements.
func (g *Gangs) vacate(logger klog.Logger, pods []*corev1.Pod) {
	if len(pods) == 0 || g.wakeups == nil {
		return
	}
	g.wakeups.vacated.Store(true)
	// To the queue the event of one pod is that of all: what it asks about is that a pod with a node has gone.
	g.wakeups.queue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, pods[0], nil, nil)
}

// roomKey is where the cycle of a pod without a gang keeps what Filter compares nodes with.
const roomKey fwk.StateKey = Name + "/room"

// roomAsked is a pod without a gang while room is kept. It never changes.
type roomAsked struct {
	reserved *kubescheduler.Reserved
	request  kubescheduler.Request
	asker    kubescheduler.Asker
}

// Clone implements fwk.StateData.
func (a *roomAsked) Clone() fwk.StateData { return a }

// preFilterPlain has nodes asked whether they keep room for others. Where events are not looked at exactly (without
// Attach) a pod that is refused might sleep long after the room is free, so there plain pods are not kept from it.
func (pl *Admission) preFilterPlain(state fwk.CycleState, pod *corev1.Pod) *fwk.Status {
	if pl.gangs.wakeups == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	reserved := pl.gangs.reserved()
	if reserved == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(roomKey, &roomAsked{
		reserved: reserved, request: kubescheduler.RequestOf(pod), asker: kubescheduler.Asker{Priority: corev1helpers.PodPriority(pod)},
	})
	return nil
}

// filterPlain keeps pods without a gang from room that is kept at their priority or a higher one.
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

// kept returns how many pods of a tracked shape fit only in room that is kept from the gang, "" is a pod without one, at
// that priority. The caller holds wakeups.mu.
func (w *wakeups) kept(at room, key gangstate.Key, priority int32) int {
	shape, ok := at.(*kubescheduler.Shape)
	if !ok || w.reserved == nil {
		return 0
	}
	return w.shapes.Kept(shape, w.reserved(), kubescheduler.Asker{Gang: key, Priority: priority})
}

// rooms returns what the gangs wait for, in no order.
func (l *waitlist) rooms() []room {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.byRoom))
}

// fits returns how many pods fit of what is not kept from the gang.
func (l *waitlist) fits(at room, w *parkedGang) int {
	n := at.Fits()
	if l.kept != nil {
		n -= l.kept(at, w.key, w.at)
	}
	return n
}
