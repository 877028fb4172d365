package kubescheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Asker is for whom the question is asked whether a node has room. The zero Gang is that of pods without one.
type Asker struct {
	Gang     types.NamespacedName
	Leaf     string
	Priority int32
}

// Reservation is the room of one pod that is kept on a node for pods of a leaf.
type Reservation struct {
	Gang     types.NamespacedName
	Leaf     string
	Priority int32
	Node     string
	// Pod had the room. As long as it is on the node the room is its own, and not counted again.
	Pod *corev1.Pod
}

// against reports whether the room is kept from the asker: it belongs to another leaf of its own gang, or to another gang
// of no lower priority.
func (r *Reservation) against(a Asker) bool {
	if r.Gang == a.Gang {
		return r.Leaf != a.Leaf
	}
	return r.Priority >= a.Priority
}

// Reserved is the room that is kept on nodes at one moment: requests and the number of pods. Host ports, volumes and
// devices of claims are not kept. Immutable; nil: none.
type Reserved struct {
	byNode map[string][]*reservation
	gangs  map[types.NamespacedName]bool
	count  int
}

type reservation struct {
	Reservation
	room room
}

// room is an amount of requests: of pods, and by resource as in amount.
type room struct {
	pods    int64
	amounts map[corev1.ResourceName]int64
}

// NewReserved returns the rooms, nil if there are none.
func NewReserved(list []Reservation) *Reserved {
	if len(list) == 0 {
		return nil
	}
	r := &Reserved{byNode: map[string][]*reservation{}, gangs: map[types.NamespacedName]bool{}, count: len(list)}
	for i := range list {
		x := &reservation{Reservation: list[i], room: roomOf(list[i].Pod)}
		r.byNode[x.Node] = append(r.byNode[x.Node], x)
		r.gangs[x.Gang] = true
	}
	return r
}

// Len returns the number of rooms.
func (r *Reserved) Len() int {
	if r == nil {
		return 0
	}
	return r.count
}

// roomOf returns what a pod takes of a node.
func roomOf(pod *corev1.Pod) room {
	out := room{pods: 1, amounts: map[corev1.ResourceName]int64{}}
	info, err := framework.NewPodInfo(pod)
	if err != nil { // its affinity cannot be read; it was bound all the same
		info = &framework.PodInfo{Pod: pod}
	}
	requests := info.CalculateResource().Resource
	for _, name := range resourcesOf(requests) {
		out.amounts[name] = amount(requests, name)
	}
	return out
}

// add adds or takes away k times the other room.
func (r *room) add(o room, k int64) {
	r.pods += k * o.pods
	for name, n := range o.amounts {
		if r.amounts == nil {
			r.amounts = map[corev1.ResourceName]int64{}
		}
		r.amounts[name] += k * n
	}
}

// addRest adds what is left of one room when another is taken of it.
func (r *room) addRest(o, taken room) {
	r.pods += max(0, o.pods-taken.pods)
	for name, n := range o.amounts {
		if rest := n - taken.amounts[name]; rest > 0 {
			if r.amounts == nil {
				r.amounts = map[corev1.ResourceName]int64{}
			}
			r.amounts[name] += rest
		}
	}
}

func (r *room) isEmpty() bool { return r.pods == 0 && len(r.amounts) == 0 }

// on returns what is kept from the asker on the node. false: nothing.
func (r *Reserved) on(node fwk.NodeInfo, a Asker) (room, bool) {
	if r == nil {
		return room{}, false
	}
	var sum room
	for _, x := range r.byNode[node.Node().Name] {
		if x.against(a) && !hasPod(node, x.Pod.UID) {
			sum.add(x.room, 1)
		}
	}
	return sum, !sum.isEmpty()
}

func hasPod(node fwk.NodeInfo, uid types.UID) bool {
	return slices.ContainsFunc(node.GetPods(), func(p fwk.PodInfo) bool { return p.GetPod().UID == uid })
}

// RoomKept is what a node says to a pod for which there is room only in what is kept for others.
const RoomKept = "node(s) keep room for pods that are being replaced"

// Request is what a pod without a gang takes of a node.
type Request struct{ room room }

// RequestOf returns what the pod takes of a node.
func RequestOf(pod *corev1.Pod) Request { return Request{roomOf(pod)} }

// Spares reports whether the node has room for the request beside what is kept from the asker. It is true as well if the
// node has no room at all: that is for NodeResourcesFit to say, which knows what counts.
func (r *Reserved) Spares(node fwk.NodeInfo, q Request, a Asker) bool {
	kept, any := r.on(node, a)
	if !any {
		return true
	}
	crosses := func(free, wanted, kept int64) bool {
		return kept > 0 && wanted > 0 && free >= wanted && free-kept < wanted
	}
	allocatable, requested := node.GetAllocatable(), node.GetRequested()
	if crosses(int64(allocatable.GetAllowedPodNumber()-len(node.GetPods())), q.room.pods, kept.pods) {
		return false
	}
	for name, wanted := range q.room.amounts {
		if crosses(amount(allocatable, name)-amount(requested, name), wanted, kept.amounts[name]) {
			return false
		}
	}
	return true
}

// reservedOn is what is kept on one node for the plan of one gang.
type reservedOn struct {
	foreign room            // for others
	own     map[string]room // by leaf of the gang
	planned map[string]room // likewise: what the plan puts there so far
}

// reserve reads what is kept. Nodes on which nothing is kept from the gang cost nothing later.
func (w *Snapshot) reserve(reserved *Reserved, a Asker, leaves []string) {
	if reserved == nil {
		return
	}
	for name, list := range reserved.byNode {
		i, ok := w.nodes.position[name]
		if !ok {
			continue
		}
		on := &reservedOn{own: map[string]room{}, planned: map[string]room{}}
		for _, x := range list {
			switch {
			case hasPod(w.nodes.nodes[i], x.Pod.UID):
			case x.Gang == a.Gang:
				sum := on.own[x.Leaf]
				sum.add(x.room, 1)
				on.own[x.Leaf] = sum
			case x.Priority >= a.Priority:
				on.foreign.add(x.room, 1)
			}
		}
		if on.foreign.isEmpty() && len(on.own) == 0 {
			continue
		}
		if w.reserved == nil {
			w.reserved = map[int]*reservedOn{}
		}
		w.reserved[i] = on
	}
	for i, c := range w.classes {
		if i < len(leaves) {
			c.leaf = leaves[i]
		}
		if len(w.reserved) > 0 {
			c.takes = roomOf(c.info.Pod)
		}
	}
}

// against returns what is kept from pods of the leaf. What the plan puts there for another leaf is taken of what is kept
// for that one, so it never makes room for this one.
func (on *reservedOn) against(leaf string) room {
	if len(on.own) == 0 {
		return on.foreign
	}
	var sum room
	sum.add(on.foreign, 1)
	for other, kept := range on.own {
		if other != leaf {
			sum.addRest(kept, on.planned[other])
		}
	}
	return sum
}

// keeps reports whether the node has room for one more pod of the class only in what is kept for others.
func (w *Snapshot) keeps(c *class, i int) bool {
	on := w.reserved[i]
	if on == nil {
		return false
	}
	node, kept := w.nodes.node(i), on.against(c.leaf)
	return c.known.demand.slots(node) > 0 && c.known.demand.slotsBeside(node, kept) == 0
}

// noteReserved keeps the books of a pod of the class that came to (1) or left (-1) a node of the plan.
func (w *Snapshot) noteReserved(c *class, i, delta int) {
	if on := w.reserved[i]; on != nil && len(on.own) > 0 {
		sum := on.planned[c.leaf]
		sum.add(c.takes, int64(delta))
		on.planned[c.leaf] = sum
	}
}

// reservedSlots returns on how many nodes, and in how many slots, that take the class with nothing planned there is room
// only in what is kept for others. Those to be avoided do not count.
func (w *Snapshot) reservedSlots(c *class) (nodes, slots int) {
	for i, on := range w.reserved {
		if c.known.reasons[i] != 0 || c.refuse != nil || w.avoid[w.nodes.objects[i].Name] {
			continue
		}
		left := min(c.known.demand.slotsBeside(w.nodes.nodes[i], on.against(c.leaf)), int(c.known.slots[i]))
		slots += int(c.known.slots[i]) - left
		if left == 0 {
			nodes++
		}
	}
	return nodes, slots
}

// slotsBeside returns how many such pods the node has room for beside what is kept.
func (d *demand) slotsBeside(node fwk.NodeInfo, kept room) int {
	n := int64(d.slots(node))
	allocatable, requested := node.GetAllocatable(), node.GetRequested()
	if d.pods {
		n = min(n, int64(allocatable.GetAllowedPodNumber()-len(node.GetPods()))-kept.pods)
	}
	for _, r := range d.requests {
		if k := kept.amounts[r.name]; k > 0 {
			n = min(n, (amount(allocatable, r.name)-amount(requested, r.name)-k)/r.amount)
		}
	}
	return int(max(0, n))
}
