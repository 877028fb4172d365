// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
)

// hopeless returns the reason why no node, closed or not, can ever run a pod of the class. "": some can, as far as is
// known.
func (r ResourceCapacity) hopeless() v2alpha2.Reason {
	all := r.withUnavailable()
	switch {
	case r.RefusedByClaims:
		return v2alpha2.ReasonClaimsNotReady
	case r.Refused != "" || all.Nodes == 0 || all.offersNone():
		return v2alpha2.ReasonNoNodeMatches
	}
	return ""
}

// explainHopeless returns why pods of the class fit on no node, with hopeless as the reason, and what would help. owner
// names them, for example "the gang". nodes are the reasons of the nodes, as far as they are known.
func (r ResourceCapacity) explainHopeless(owner, nodes string) judgement {
	j := judgement{reason: r.hopeless(), nodes: nodes}
	switch {
	case r.RefusedByClaims && strings.HasSuffix(r.Refused, "not found"):
		j.text = fmt.Sprintf("%s: create it, or correct the volumes of the pods of %s", r.Refused, owner)
	case r.RefusedByClaims:
		j.text = fmt.Sprintf("%s: see the claims of the pods of %s", r.Refused, owner)
	case r.Refused != "":
		j.text = fmt.Sprintf("the pods of %s are refused on every node: %s", owner, r.Refused)
	case r.offersNone() && r.Elsewhere > 0:
		j.nodes = ""
		j.text = fmt.Sprintf("no node that matches the pods of %s offers %s: change their selectors, affinity or tolerations, %s %s enough for a pod",
			owner, r.Resource, message.Count(r.Elsewhere, "other node"), message.Plural(r.Elsewhere, "has", "have"))
	case r.offersNone():
		j.nodes = ""
		j.text = fmt.Sprintf("no node offers %s: correct the name in the pods of %s, or install the device plugin that provides it", r.Resource, owner)
	default:
		j.text = "no node matches a pod of " + owner
		if r.Selection != "" {
			j.text += " (" + r.Selection + ")"
		}
		if nodes != "" {
			j.text += ": " + nodes
		}
	}
	return j
}

// unavailable describes the nodes that would help if they were available, and the required action: "3 nodes cordoned
// (n0, n1, …; 24 nvidia.com/gpu, 8 free): uncordon them". "": there are none.
func (r ResourceCapacity) unavailable() string {
	nodes := slices.Clone(r.Unavailable)
	slices.SortFunc(nodes, func(a, b UnavailableNodes) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Cause, b.Cause))
	})
	parts := make([]string, 0, len(nodes))
	for _, u := range nodes[:min(len(nodes), maxReasons)] {
		parts = append(parts, fmt.Sprintf("%s %s (%s; %s %s, %s free): %s",
			message.Count(u.Nodes, "node"), u.Cause, u.listNames(), message.Quantity(r.Resource, u.Total), r.Resource, message.Quantity(r.Resource, u.Free), u.Advice))
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

// freeText describes the free amount, the nodes to which it belongs, the largest piece if that is too small, and what
// pods of other priorities hold: "3 are free on the nodes that they may use (1 of 5: nodeSelector pool=a), at most 2 on
// one node".
func (r ResourceCapacity) freeText(free int64, held Held) string {
	text := message.Quantity(r.Resource, free) + " are free"
	if r.Elsewhere > 0 && r.Selection != "" {
		text += fmt.Sprintf(" on the nodes that they may use (%d of %d: %s)", r.Offering, r.Offering+r.Elsewhere, r.Selection)
	}
	return text + r.largestText() + heldText(r.Resource, held)
}

// largestText is what the node with the most of it has free, where that is not enough for one pod: more anywhere would
// not help. "": it is, or nothing is free.
func (r ResourceCapacity) largestText() string {
	return largestText(r.Resource, r.LargestFree, r.PerPod)
}

func largestText(resource corev1.ResourceName, largest, request int64) string {
	if largest == 0 || largest >= request {
		return ""
	}
	return fmt.Sprintf(", at most %s on one node", message.Quantity(resource, largest))
}

// lowerHold is the clause about what pods of lower priority hold, without the amount.
const lowerHold = "; pods of lower priority hold "

// heldText describes what pods of lower priority hold, and what those of higher priority do. "": nothing.
func heldText(resource corev1.ResourceName, held Held) string {
	text := ""
	if held.Lower > 0 {
		text = lowerHold + message.Quantity(resource, held.Lower)
	}
	if held.Higher > 0 {
		text += "; pods of higher priority hold " + message.Quantity(resource, held.Higher)
	}
	return text
}

// piecesText describes why free room does not hold this many pods, although it is enough in all: "needs 4
// nvidia.com/gpu on one node for each of 3 pods; 15 are free, at most 3 on one node". "": other rules are the cause.
func (r ResourceCapacity) piecesText(pods int) string {
	if r.PerPod == 0 || r.SlotsNow >= pods || r.PerPod*int64(pods) > r.Free {
		return ""
	}
	of := ""
	if pods > 1 {
		of = " for each of " + message.Count(pods, "pod")
	}
	text := fmt.Sprintf("needs %s %s on one node%s; %s are free", message.Quantity(r.Resource, r.PerPod), r.Resource, of, message.Quantity(r.Resource, r.Free))
	if r.LargestFree < r.PerPod {
		return text + r.largestText()
	}
	return text + ", which is room for " + message.Count(r.SlotsNow, "pod")
}

// insufficientReason returns the reason for a resource that is not sufficiently free. GPUs are extended resources.
func insufficientReason(resource corev1.ResourceName) v2alpha2.Reason {
	if IsExtended(resource) {
		return v2alpha2.ReasonInsufficientGPUs
	}
	return v2alpha2.ReasonInsufficientResources
}

func severity(r v2alpha2.Reason) int { return slices.Index(reasonsBySeverity, r) }
