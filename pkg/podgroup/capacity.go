// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
)

// Capacities provides the data about the cluster that an explanation needs.
type Capacities interface {
	// ResourceCapacity returns the capacity of the nodes that match the class's constraints, without planned pods.
	ResourceCapacity(class int) ResourceCapacity
	// HeldByLower returns how much of the resource pods whose priority is lower than the gang's hold on the nodes that at least
	// one of the classes may use.
	HeldByLower(classes []int, resource corev1.ResourceName) int64
	// Inventory returns a copy of the nodes. nil: there is none, and the reasons of gangs with several classes rest on the
	// numbers of each class alone.
	Inventory() *Inventory
}

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
	// Nodes is the number of those nodes, Offering that of those with enough of the resource for a pod if they were empty.
	Nodes, Offering int
	// Slots is how many pods of the class those nodes could take if they were empty, considering all resources. It is
	// an upper bound, because the requests of DaemonSets are not known. SlotsNow is how many they could take as they are.
	Slots, SlotsNow int
	// Apart is the topology key over which the pods of the class exclude each other (podAntiAffinity), if this bounds
	// Slots. "": it does not.
	Apart string
	// Others are the other resources that a pod requests.
	Others []ResourceAmounts
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

// ResourceAmounts are amounts of one resource as in ResourceCapacity.
type ResourceAmounts struct {
	Resource     corev1.ResourceName
	PerPod, Free int64
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

// holdsPods reports whether the nodes, if they were empty, could take this many pods according to the numbers.
func (r ResourceCapacity) holdsPods(pods int) bool {
	return r.Nodes > 0 && r.PerPod <= r.Largest && r.PerPod*int64(pods) <= r.Total && pods <= r.Slots
}

// offersNone reports whether the class requests a resource that none of its nodes has.
func (r ResourceCapacity) offersNone() bool { return r.Nodes > 0 && r.PerPod > 0 && r.Largest == 0 }

// reasonFor returns the reason why this many pods of the class cannot be placed.
func (r ResourceCapacity) reasonFor(pods int) v2alpha2.Reason {
	all := r.withUnavailable()
	switch {
	case r.RefusedByClaims:
		return v2alpha2.ReasonClaimsNotReady
	case r.Refused != "" || all.Nodes == 0 || all.offersNone():
		return v2alpha2.ReasonNoNodeMatches
	case !all.holdsPods(pods):
		return v2alpha2.ReasonTooLarge
	case !r.holdsPods(pods):
		return v2alpha2.ReasonNodesUnavailable
	case r.PerPod*int64(pods) > r.Free:
		return insufficient(r.Resource)
	}
	if lacking := r.otherLacking(pods); lacking != nil {
		return insufficient(lacking.Resource)
	}
	return v2alpha2.ReasonFragmented
}

// otherLacking returns the first of Others of which not enough is free for this many pods. nil: there is none.
func (r ResourceCapacity) otherLacking(pods int) *ResourceAmounts {
	for i := range r.Others {
		if o := &r.Others[i]; o.PerPod*int64(pods) > o.Free {
			return o
		}
	}
	return nil
}

// explainHopeless returns why pods of the class fit on no existing node, and what would help. owner names the pods, for
// example "the pods of the gang". "": no such reason applies.
func (r ResourceCapacity) explainHopeless(reason v2alpha2.Reason, owner string) string {
	switch {
	case reason == v2alpha2.ReasonClaimsNotReady && strings.HasSuffix(r.Refused, "not found"):
		return fmt.Sprintf("%s: create it, or correct the volumes of %s", r.Refused, owner)
	case reason == v2alpha2.ReasonClaimsNotReady:
		return fmt.Sprintf("%s: see the claims of %s", r.Refused, owner)
	case r.Refused != "":
		return fmt.Sprintf("%s are refused on every node: %s", owner, r.Refused)
	case reason == v2alpha2.ReasonNodesUnavailable:
		return r.unavailable()
	case reason == v2alpha2.ReasonNoNodeMatches && r.offersNone() && r.Elsewhere > 0:
		return fmt.Sprintf("no node that matches %s offers %s: change their selectors, affinity or tolerations, %s %s enough for a pod",
			owner, r.Resource, message.Count(r.Elsewhere, "other node"), haveOrHas(r.Elsewhere))
	case reason == v2alpha2.ReasonNoNodeMatches && r.offersNone():
		return fmt.Sprintf("no node offers %s: correct the name in %s, or install the device plugin that provides it", r.Resource, owner)
	}
	return ""
}

func haveOrHas(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// unavailable describes the nodes that would help if they were available, and the required action: "3 nodes with 24
// nvidia.com/gpu cordoned: uncordon them". "": there are none.
func (r ResourceCapacity) unavailable() string {
	nodes := slices.Clone(r.Unavailable)
	slices.SortFunc(nodes, func(a, b UnavailableNodes) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Cause, b.Cause))
	})
	parts := make([]string, 0, len(nodes))
	for _, u := range nodes[:min(len(nodes), maxReasons)] {
		parts = append(parts, fmt.Sprintf("%s (%s; %s %s, %s free) %s: %s",
			message.Count(u.Nodes, "node"), u.listNames(), message.Quantity(r.Resource, u.Total), r.Resource, message.Quantity(r.Resource, u.Free), u.Cause, u.Advice))
	}
	return strings.Join(parts, "; ")
}

// listNames lists Names.
func (u UnavailableNodes) listNames() string {
	names := make([]string, 0, len(u.Names)+1)
	for _, name := range u.Names {
		names = append(names, message.Truncate(name, maxNodeName))
	}
	if u.Nodes > len(names) {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// maxNodeName is longer than the names of most nodes. Of the longest possible ones, three causes with two nodes each would
// not fit into a message.
const maxNodeName = 63

// knownCapacities caches the capacity of each class, because computing it visits all nodes.
type knownCapacities struct {
	Capacities
	seen map[int]ResourceCapacity
}

// ResourceCapacity implements Capacities.
func (k *knownCapacities) ResourceCapacity(class int) ResourceCapacity {
	r, ok := k.seen[class]
	if !ok {
		r = k.Capacities.ResourceCapacity(class)
		k.seen[class] = r
	}
	return r
}

// mostUnavailable returns, among the classes with this main resource, the one whose unavailable nodes have the most
// of it.
func (k *knownCapacities) mostUnavailable(name corev1.ResourceName) ResourceCapacity {
	var most ResourceCapacity
	gain := int64(0)
	for _, class := range slices.Sorted(maps.Keys(k.seen)) {
		r := k.seen[class]
		if n := r.withUnavailable().Total - r.Total; r.Resource == name && n > gain {
			most, gain = r, n
		}
	}
	return most
}

// freeText describes the free amount, the nodes to which it belongs, and what could be preempted: "3 are free on the
// nodes that they may use (1 of 5: nodeSelector pool=a)".
func (r ResourceCapacity) freeText(free, lower int64) string {
	text := message.Quantity(r.Resource, free) + " are free"
	if r.Elsewhere > 0 && r.Selection != "" {
		text += fmt.Sprintf(" on the nodes that they may use (%d of %d: %s)", r.Offering, r.Offering+r.Elsewhere, r.Selection)
	}
	return text + lowerText(r.Resource, lower)
}

// lowerText describes what pods of lower priority hold. "": nothing.
func lowerText(resource corev1.ResourceName, lower int64) string {
	if lower == 0 {
		return ""
	}
	return fmt.Sprintf("; pods of lower priority hold %s, which are not preempted for a gang: wait for them or delete them", message.Quantity(resource, lower))
}

// piecesText describes why free room does not hold this many pods, although it is enough in all: "needs 4
// nvidia.com/gpu on one node for each of 3 pods; 15 are free, at most 3 on one node"; or of which other resource there is not
// enough. "": other rules are the cause.
func (r ResourceCapacity) piecesText(pods int) string {
	if r.PerPod == 0 || r.SlotsNow >= pods || r.PerPod*int64(pods) > r.Free {
		return ""
	}
	if o := r.otherLacking(pods); o != nil {
		return fmt.Sprintf("needs %s %s for %s, %s are free", message.Quantity(o.Resource, o.PerPod*int64(pods)), o.Resource,
			message.Count(pods, "pod"), message.Quantity(o.Resource, o.Free))
	}
	of := ""
	if pods > 1 {
		of = " for each of " + message.Count(pods, "pod")
	}
	text := fmt.Sprintf("needs %s %s on one node%s; %s are free, ", message.Quantity(r.Resource, r.PerPod), r.Resource, of, message.Quantity(r.Resource, r.Free))
	if r.LargestFree < r.PerPod {
		return text + fmt.Sprintf("at most %s on one node", message.Quantity(r.Resource, r.LargestFree))
	}
	return text + "which is room for " + message.Count(r.SlotsNow, "pod")
}

// insufficient returns the reason for a resource that is not sufficiently free. GPUs are extended resources, whose
// names contain a domain.
func insufficient(resource corev1.ResourceName) v2alpha2.Reason {
	if strings.Contains(string(resource), "/") {
		return v2alpha2.ReasonInsufficientGPUs
	}
	return v2alpha2.ReasonInsufficientResources
}

// reasonsBySeverity lists the reasons of a refusal; the reason that is hardest to resolve comes first.
var reasonsBySeverity = []v2alpha2.Reason{
	v2alpha2.ReasonClaimsNotReady, v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonTooLarge, v2alpha2.ReasonNodesUnavailable,
	v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonInsufficientResources, v2alpha2.ReasonFragmented,
}

func severity(r v2alpha2.Reason) int { return slices.Index(reasonsBySeverity, r) }
