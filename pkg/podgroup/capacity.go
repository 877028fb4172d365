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

// Capacities is what an explanation asks about the cluster.
type Capacities interface {
	// ResourceCapacity returns what the nodes that match the class's constraints have, with nothing planned.
	ResourceCapacity(class int) ResourceCapacity
}

// ResourceCapacity is how much of a resource the nodes that a class may use have: of the resource that the class is
// about (the extended resource that it asks most of, else CPU), or of one that no node has enough of for a single pod.
// Amounts are in millicores for CPU, in bytes for memory and ephemeral storage, in units otherwise.
type ResourceCapacity struct {
	Resource corev1.ResourceName
	// PerPod is what one pod requests.
	PerPod int64
	// Free and Total are sums over the nodes that would take the class if they were large or empty enough; Largest is
	// the most that one of them has in all.
	Free, Total, Largest int64
	// Nodes is the number of those nodes.
	Nodes int
	// Slots is how many pods of the class those nodes would hold if they were empty, counting all resources. An upper
	// bound: what DaemonSets take is not known.
	Slots int
	// Unavailable are the nodes that would be among those above but for a cordon or a taint, by cause.
	Unavailable []UnavailableNodes
	// Elsewhere is the number of all other nodes that have enough of the resource for a pod.
	Elsewhere int
	// Refused is why no node at all is considered for a pod of the class: `persistentvolumeclaim "data" not found`. "": nodes
	// are. RefusedByClaims: it is about a claim that the pod names.
	Refused         string
	RefusedByClaims bool
}

// UnavailableNodes are nodes that a class could use if they were not cordoned or tainted.
type UnavailableNodes struct {
	// Cause follows the number of nodes, "cordoned" or "with taint key=value:NoSchedule"; Advice is what would help,
	// "uncordon them".
	Cause, Advice string
	Nodes         int
	// Total, Largest and Slots are as in ResourceCapacity.
	Total, Largest int64
	Slots          int
}

// withUnavailable returns the capacity as it would be if the unavailable nodes were available. Free is left as it is.
func (r ResourceCapacity) withUnavailable() ResourceCapacity {
	for _, u := range r.Unavailable {
		r.Nodes += u.Nodes
		r.Total += u.Total
		r.Largest = max(r.Largest, u.Largest)
		r.Slots += u.Slots
	}
	return r
}

// holds reports whether the nodes, if they were empty, would hold this many pods, as far as the numbers say.
func (r ResourceCapacity) holds(pods int) bool {
	return r.Nodes > 0 && r.PerPod <= r.Largest && r.PerPod*int64(pods) <= r.Total && pods <= r.Slots
}

// offersNone reports whether the class asks for a resource that none of its nodes has.
func (r ResourceCapacity) offersNone() bool { return r.Nodes > 0 && r.PerPod > 0 && r.Largest == 0 }

// reasonFor returns why this many pods of the class find no room.
func (r ResourceCapacity) reasonFor(pods int) v2alpha2.Reason {
	all := r.withUnavailable()
	switch {
	case r.RefusedByClaims:
		return v2alpha2.ReasonClaimsNotReady
	case r.Refused != "" || all.Nodes == 0 || all.offersNone():
		return v2alpha2.ReasonNoNodeMatches
	case !all.holds(pods):
		return v2alpha2.ReasonTooLarge
	case !r.holds(pods):
		return v2alpha2.ReasonNodesUnavailable
	case r.PerPod*int64(pods) > r.Free:
		return insufficient(r.Resource)
	default:
		return v2alpha2.ReasonFragmented
	}
}

// hopeless says what keeps pods of the class from every node that there is, and what would help. owner names the pods: "the
// pods of the gang". "": the reason is none of these.
func (r ResourceCapacity) hopeless(reason v2alpha2.Reason, owner string) string {
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
			owner, r.Resource, message.Count(r.Elsewhere, "other node"), have(r.Elsewhere))
	case reason == v2alpha2.ReasonNoNodeMatches && r.offersNone():
		return fmt.Sprintf("no node offers %s: correct the name in %s, or install the device plugin that provides it", r.Resource, owner)
	}
	return ""
}

func have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// unavailable says which nodes would help if they were available, and what to do about them: "3 nodes with 24
// nvidia.com/gpu cordoned: uncordon them". "": there are none.
func (r ResourceCapacity) unavailable() string {
	nodes := slices.Clone(r.Unavailable)
	slices.SortFunc(nodes, func(a, b UnavailableNodes) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Cause, b.Cause))
	})
	parts := make([]string, 0, len(nodes))
	for _, u := range nodes[:min(len(nodes), maxReasons)] {
		parts = append(parts, fmt.Sprintf("%s (%s %s) %s: %s",
			message.Count(u.Nodes, "node"), message.Quantity(r.Resource, u.Total), r.Resource, u.Cause, u.Advice))
	}
	return strings.Join(parts, "; ")
}

// knownCapacities asks about each class once: the answer is a walk over all nodes.
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

// mostUnavailable returns, of the classes that are about the resource, that whose unavailable nodes have most of it.
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

// insufficient returns the reason for a resource of which not enough is free: the GPUs of a cluster are extended resources,
// whose names have a domain.
func insufficient(resource corev1.ResourceName) v2alpha2.Reason {
	if strings.Contains(string(resource), "/") {
		return v2alpha2.ReasonInsufficientGPUs
	}
	return v2alpha2.ReasonInsufficientResources
}

// reasonsBySeverity are the reasons of a refusal, the one that is hardest to cure first.
var reasonsBySeverity = []v2alpha2.Reason{
	v2alpha2.ReasonClaimsNotReady, v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonTooLarge, v2alpha2.ReasonNodesUnavailable,
	v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonInsufficientResources, v2alpha2.ReasonFragmented,
}

func severity(r v2alpha2.Reason) int { return slices.Index(reasonsBySeverity, r) }
