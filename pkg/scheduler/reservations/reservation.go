// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Owner identifies the pods for which room is reserved: those of one leaf of a gang, or all of them.
type Owner struct {
	Gang types.NamespacedName
	Leaf string // "" for a PodGroup without sub-groups; EveryLeaf: any pod of the gang
}

// EveryLeaf is the Leaf of an Owner that is a whole gang. It is no name of a sub-group.
const EveryLeaf = "*"

// IsGang reports whether the owner is a whole gang.
func (o Owner) IsGang() bool { return o.Leaf == EveryLeaf }

// Whole returns the whole gang of the owner.
func (o Owner) Whole() Owner { return Owner{Gang: o.Gang, Leaf: EveryLeaf} }

// Asker identifies the pods that look for room. Gang is zero for pods without a gang.
type Asker struct {
	Gang     types.NamespacedName
	Priority int32
	// Surplus: the pods are above the minimum of their gang.
	Surplus bool
	// Refill: the pods replace some that their gang has lost, and it needs no more than before.
	Refill bool
	// Ends is until when the pods run at most if they start now, by their promise. Zero: they make none.
	Ends time.Time
}

// Reservation is the room that is reserved on a node for one pod of a leaf, or for Amount.Pods pods of a whole gang.
// Its exported fields are not changed after Reserve, but for Occupied (Set.Occupy, Set.RemoveOccupant).
type Reservation struct {
	Owner    Owner
	Node     string
	Priority int32
	Amount   Amount
	// Pod is the pod of the leaf that had the room. While it is on the node it occupies the room itself. nil for a
	// whole gang.
	Pod *corev1.Pod
	// Occupied are the parts of Amount that other pods on the node have until they end. Only the rest is reserved from
	// the free room meanwhile.
	Occupied []Occupied
	// Promised: the gang waits until pods end by themselves. Refills of gangs that run come before.
	Promised bool
	// Starts is when the gang starts at the latest, if pods end as they promise. Until then those may use the room that
	// end before. Zero: this is not known, or the gang can start as soon as the pods of Occupied have ended.
	Starts time.Time

	seq    int // order of Reserve
	until  time.Time
	left   Amount              // of Amount, for pods that are not assumed yet. Its map is not changed
	takers map[types.UID]taken // the assumed pods that are bound in its place
}

// Purpose is what room is reserved for. It labels a metric.
type Purpose string

const (
	ForReplacement Purpose = "replacement" // of a pod that was deleted
	ForPreemptor   Purpose = "preemptor"   // a gang for which others are preempted
	ForReservation Purpose = "reservation" // a gang that has waited for long
)

// Purposes are all of them.
var Purposes = [...]Purpose{ForReplacement, ForPreemptor, ForReservation}

// Purpose returns what the room is reserved for.
func (x *Reservation) Purpose() Purpose {
	switch {
	case x.Promised:
		return ForReservation
	case x.Owner.IsGang():
		return ForPreemptor
	}
	return ForReplacement
}

// taken is what an assumed pod has taken of a reservation.
type taken struct {
	part      Amount
	elsewhere bool // the pod is on another node
}

// isTaken reports whether nothing is left of the reservation for other pods.
func (x *Reservation) isTaken() bool { return len(x.takers) > 0 && x.left.Pods == 0 }

// take gives a pod its amount of what is left: all of it, if it is the last pod that the reservation is for.
func (x *Reservation) take(uid types.UID, node string, amount Amount) {
	part := x.left
	if x.Owner.IsGang() && x.left.Pods > 1 {
		amount.Pods = 1
		part = amount.upTo(x.left)
		x.addLeft(part, -1)
	} else {
		x.left = Amount{}
	}
	if x.takers == nil {
		x.takers = map[types.UID]taken{}
	}
	x.takers[uid] = taken{part: part, elsewhere: node != x.Node}
}

// addLeft adds k times the part to what is left.
func (x *Reservation) addLeft(part Amount, k int64) {
	var left Amount
	left.Add(x.left, 1)
	left.Add(part, k)
	maps.DeleteFunc(left.Resources, func(_ corev1.ResourceName, n int64) bool { return n == 0 })
	x.left = left
}

// counting returns the reservation as it counts: for pods that are not assumed yet. nil: it is taken.
func (x *Reservation) counting() *Reservation {
	switch {
	case x.isTaken():
		return nil
	case !x.Owner.IsGang():
		return x
	}
	return &Reservation{Owner: x.Owner, Node: x.Node, Priority: x.Priority, Amount: x.left, Pod: x.Pod, Occupied: x.Occupied, Promised: x.Promised, Starts: x.Starts}
}

// Occupied is a part of a Reservation's Amount that a pod has as long as it is on the node.
type Occupied struct {
	Pod    types.UID
	Amount Amount
}

// Rest returns how much of the free room is reserved. isOnNode reports whether a pod is on the node. The caller must
// not change the amount.
func (x *Reservation) Rest(isOnNode func(types.UID) bool) Amount {
	var rest, occupied Amount
	switch {
	case x.Pod != nil && isOnNode(x.Pod.UID):
		return rest
	case len(x.Occupied) == 0:
		return x.Amount
	}
	for _, o := range x.Occupied {
		if isOnNode(o.Pod) {
			occupied.Add(o.Amount, 1)
		}
	}
	rest.AddRest(x.Amount, occupied)
	return rest
}

// Restricts reports whether pods of the asker may not use the room because another gang has it: unless their priority
// is higher, they end before that gang starts, or a gang that runs lost them while that gang waits. Surplus uses no
// room for which others are preempted, because it does not preempt itself (docs/decisions, G24). What the leaves of the
// asker's own gang may use is not evaluated.
func (x *Reservation) Restricts(a Asker) bool {
	return x.Owner.Gang != a.Gang && (x.Priority >= a.Priority || a.Surplus && x.Owner.IsGang()) && !x.isOver(a) && !(x.Promised && a.Refill)
}

// isOver reports whether the asker's pods end before the gang starts for which the room is reserved.
func (x *Reservation) isOver(a Asker) bool {
	return !x.Starts.IsZero() && !a.Ends.IsZero() && !a.Ends.After(x.Starts)
}

// Amount is an amount of resources: a number of pods, and amounts by resource in its smallest unit (CPU: millicores).
// Host ports, volumes and devices of claims are not part of it. The zero value is empty.
type Amount struct {
	Pods      int64
	Resources map[corev1.ResourceName]int64
}

// Add adds k times the other amount; a negative k subtracts it.
func (a *Amount) Add(o Amount, k int64) {
	a.Pods += k * o.Pods
	for name, n := range o.Resources {
		a.add(name, k*n)
	}
}

// AddRest adds what remains of the other amount after taken is subtracted from it.
func (a *Amount) AddRest(o, taken Amount) {
	a.Pods += max(0, o.Pods-taken.Pods)
	for name, n := range o.Resources {
		if rest := n - taken.Resources[name]; rest > 0 {
			a.add(name, rest)
		}
	}
}

// TakeFrom returns the part of the amount that o has as well, and subtracts it from o.
func (a Amount) TakeFrom(o *Amount) Amount {
	part := a.upTo(*o)
	o.Add(part, -1)
	return part
}

// upTo returns the part of the amount that o has as well.
func (a Amount) upTo(o Amount) Amount {
	part := Amount{Pods: min(a.Pods, o.Pods)}
	for name, n := range a.Resources {
		if k := min(n, o.Resources[name]); k > 0 {
			part.add(name, k)
		}
	}
	return part
}

func (a *Amount) add(name corev1.ResourceName, n int64) {
	if a.Resources == nil {
		a.Resources = map[corev1.ResourceName]int64{}
	}
	a.Resources[name] += n
}

// WithoutExtended returns the amount without extended resources.
func (a Amount) WithoutExtended() Amount {
	ordinary := Amount{Pods: a.Pods}
	for name, n := range a.Resources {
		if !isExtended(name) {
			ordinary.add(name, n)
		}
	}
	return ordinary
}

// HasExtended reports whether there are extended resources in the amount. nil has none.
func (a *Amount) HasExtended() bool {
	if a != nil {
		for name := range a.Resources {
			if isExtended(name) {
				return true
			}
		}
	}
	return false
}

// isExtended is podgroup.IsExtended, which this package, a pure one, may not import.
func isExtended(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

// IsEmpty reports whether nothing was added.
func (a *Amount) IsEmpty() bool { return a.Pods == 0 && len(a.Resources) == 0 }
