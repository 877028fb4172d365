// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"strings"

	"github.com/muster-project/muster/pkg/message"
)

// FormerNode is a node on which pods ran that a running gang has lost and that are to be replaced.
type FormerNode struct {
	Name string
	// Pods is the number of lost pods.
	Pods int
	// Gone: the node does not exist any more, and the fields below are not set.
	Gone bool
	// HasRoom: there is room for a pod like the lost ones, if the node was open.
	HasRoom bool
	// Cause is why it takes no pods, and Advice what would help, as in UnavailableNodes. "": it is open.
	Cause, Advice string
}

// WithFormerNodes begins the message of a refused replacement with the nodes on which the lost pods ran, at most two: their
// room may still be there.
func WithFormerNodes(r Refusal, nodes []FormerNode) Refusal {
	var parts []string
	for _, n := range nodes[:min(len(nodes), 2)] {
		text := fmt.Sprintf("%s ran on node %s, which ", message.Count(n.Pods, "lost pod"), message.Truncate(n.Name, maxNodeName))
		it := message.Plural(n.Pods, "it", "one of them")
		switch {
		case n.Gone:
			text += "is gone"
		case n.Cause != "" && n.HasRoom:
			text += fmt.Sprintf("has room for %s and is %s: %s", it, n.Cause, n.Advice)
		case n.Cause != "":
			text += fmt.Sprintf("is %s, and has no room for %s", n.Cause, it)
		case n.HasRoom:
			continue // another rule keeps the pod from it: the reasons of the nodes say which
		default:
			text += fmt.Sprintf("has no room for %s now", it)
		}
		parts = append(parts, text)
	}
	if len(parts) > 0 {
		r.Message = message.Shorten(strings.Join(append(parts, r.Message), "; "), message.MaxCondition)
	}
	return r
}
