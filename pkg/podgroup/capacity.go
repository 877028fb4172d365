// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
)

// Capacities provides the data about the cluster that an explanation needs.
type Capacities interface {
	// ResourceCapacity returns the capacity of the nodes that match the class's constraints, without planned pods.
	ResourceCapacity(class int) ResourceCapacity
	// HeldByOthers returns how much of the resource pods hold whose priority is lower than the gang's, and those whose
	// priority is higher, on the nodes that at least one of the classes may use.
	HeldByOthers(classes []int, resource corev1.ResourceName) Held
	// AreaName returns the key of the innermost label of an area's level, and the name of the domain: the value of that
	// label, which may be "", or the values of all labels with DomainSeparator if that of another domain is the same.
	AreaName(a placement.Area) (key, value string)
	// LevelNodes returns how many nodes that would take a pod of the class if they were empty and available are in a
	// domain of the topology level, and how many lack a label of it.
	LevelNodes(class int, level string) (inside, outside int)
	// AreApart reports whether pods of the class exclude each other.
	AreApart(class int) bool
	// Imagine returns the cluster as it is or with empty nodes, without or with the closed ones, for at most maxClasses
	// classes, which may use the same area.
	Imagine(classes []int, empty, open bool) Imagined
}

// Imagined is the cluster in a state that it need not be in, for the question whether a gang would fit then. It knows
// requests, which nodes match a class, and what keeps pods of one class apart. It does not know other rules, so it may
// hold more pods than the nodes would, and never fewer. World.Nodes lists a few nodes at most.
type Imagined interface {
	placement.World
	// Resources are those of World.Uses; the number of pods is one of them. Amounts are as in ResourceCapacity.
	Resources() []corev1.ResourceName
	// Room returns how much of each resource the nodes have that at least one of the classes may use, and the most on
	// one of them.
	Room(classes []int) (sum, largest []int64)
	// MostPods returns how many pods the nodes would hold if all requested as little as the smallest of them: no more
	// than that fit, whatever their mixture.
	MostPods() int
}

// Held is what pods of other priorities hold of a resource.
type Held struct{ Lower, Higher int64 }

// ResourceCapacity is the amount of a resource on the nodes that a class may use. The resource is the main resource
// of the class (the extended resource of which it requests the most, otherwise CPU), or one of which no node has
// enough for a single pod. Amounts are in millicores for CPU, in bytes for memory and ephemeral storage, and in units
// otherwise.
type ResourceCapacity struct {
	Resource corev1.ResourceName
	// PerPod is the request of one pod.
	PerPod int64
	// Free and Total are sums over the nodes that would take the class if they were large or empty enough; Largest is
	// the largest total amount on one of them.
	Free, Total, Largest int64
	// LargestFree is the largest free amount on one of them.
	LargestFree int64
	// Nodes is the number of those nodes, Offering that of those with enough of the resource for a pod if they were
	// empty.
	Nodes, Offering int
	// Slots is how many pods of the class those nodes could take if they were empty, considering all resources. It is
	// an upper bound, because the requests of DaemonSets are not known. SlotsNow is how many they could take as they
	// are.
	Slots, SlotsNow int
	// Apart is the topology key over which the pods of the class exclude each other (podAntiAffinity), if this bounds
	// Slots. "": it does not.
	Apart string
	// Selection is what restricts the class to some nodes: "nodeSelector pool=a". "": nothing.
	Selection string
	// Unavailable contains the nodes that would belong to those above without a cordon or a taint, by cause.
	Unavailable []UnavailableNodes
	// Elsewhere is the number of all other nodes that have enough of the resource for a pod.
	Elsewhere int
	// Refused is the reason why no node is considered for a pod of the class: `persistentvolumeclaim "data" not
	// found`. "": nodes are considered. RefusedByClaims: the reason concerns a claim that the pod names.
	Refused         string
	RefusedByClaims bool
}

// UnavailableNodes are nodes that a class could use if they were not cordoned or tainted.
type UnavailableNodes struct {
	// Cause follows the number of nodes: "cordoned" or "with taint key=value:NoSchedule". Advice is the action that
	// would help: "uncordon them".
	Cause, Advice string
	Nodes         int
	// Names are the names of the first nodes, at most two; those that have room for a pod come first.
	Names []string
	// Total, Free, Largest, Slots and SlotsNow are as in ResourceCapacity.
	Total, Free, Largest int64
	Slots, SlotsNow      int
}

// withUnavailable returns the capacity if the unavailable nodes were available.
func (r ResourceCapacity) withUnavailable() ResourceCapacity {
	for _, u := range r.Unavailable {
		r.Nodes += u.Nodes
		r.Total += u.Total
		r.Free += u.Free
		r.Largest = max(r.Largest, u.Largest)
		r.Slots += u.Slots
		r.SlotsNow += u.SlotsNow
	}
	return r
}

// slots returns how many pods of the class the nodes take: as they are or empty, without or with the closed ones.
func (r ResourceCapacity) slots(empty, open bool) int {
	if open {
		r = r.withUnavailable()
	}
	if empty {
		return r.Slots
	}
	return r.SlotsNow
}

// offersNone reports whether the class requests a resource that none of its nodes has.
func (r ResourceCapacity) offersNone() bool { return r.Nodes > 0 && r.PerPod > 0 && r.Largest == 0 }

// maxNodeName is longer than the names of most nodes. Of the longest possible ones, three causes with two nodes each
// would not fit into a message.
const maxNodeName = 63

// knownCapacities caches the capacity of each class, and the nodes in its levels, because computing them visits all
// nodes.
type knownCapacities struct {
	World
	seen   map[int]ResourceCapacity
	levels map[levelOf]levelNodes
	worlds map[worldOf]Imagined
	// fragmented contains the shapes of units that are Fragmented if their pods may be anywhere.
	fragmented map[string]bool
}

// worldOf is a state of the cluster for certain classes: whether the nodes are empty, and whether the closed ones are
// open.
type worldOf struct {
	classes     string
	empty, open bool
}

func newKnownCapacities(world World) *knownCapacities {
	return &knownCapacities{World: world, seen: map[int]ResourceCapacity{}, levels: map[levelOf]levelNodes{}, worlds: map[worldOf]Imagined{}, fragmented: map[string]bool{}}
}

type levelOf struct {
	class int
	level string
}

type levelNodes struct{ inside, outside int }

// remembered returns a value of a map, which is computed the first time.
func remembered[K comparable, V any](values map[K]V, of K, compute func() V) V {
	v, ok := values[of]
	if !ok {
		v = compute()
		values[of] = v
	}
	return v
}

// ResourceCapacity implements Capacities.
func (k *knownCapacities) ResourceCapacity(class int) ResourceCapacity {
	return remembered(k.seen, class, func() ResourceCapacity { return k.World.ResourceCapacity(class) })
}

// LevelNodes implements Capacities.
func (k *knownCapacities) LevelNodes(class int, level string) (inside, outside int) {
	n := remembered(k.levels, levelOf{class, level}, func() (n levelNodes) {
		n.inside, n.outside = k.World.LevelNodes(class, level)
		return n
	})
	return n.inside, n.outside
}

// imagine returns Capacities.Imagine. Nothing is placed in it between two questions.
func (k *knownCapacities) imagine(classes []int, empty, open bool) Imagined {
	return remembered(k.worlds, worldOf{fmt.Sprint(classes), empty, open}, func() Imagined { return k.World.Imagine(classes, empty, open) })
}

// reasonsBySeverity lists the reasons of a refusal; the reason that is hardest to resolve comes first.
var reasonsBySeverity = []v2alpha2.Reason{
	v2alpha2.ReasonClaimsNotReady, v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonTooLarge, v2alpha2.ReasonNodesUnavailable,
	v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonInsufficientResources, v2alpha2.ReasonTopologyUnavailable, v2alpha2.ReasonFragmented,
}
