// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"slices"
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

// WithFormerNodes adds to the message of a refused replacement the nodes on which the lost pods ran, at most two. Those
// with room that only has to be opened come first.
func WithFormerNodes(r Refusal, nodes []FormerNode) Refusal {
	if len(nodes) == 0 {
		return r
	}
	var first, last []string
	for _, n := range nodes[:min(len(nodes), 2)] {
		text := fmt.Sprintf("%s ran on node %s, which ", message.Count(n.Pods, "lost pod"), message.Truncate(n.Name, maxNodeName))
		it := message.Plural(n.Pods, "it", "one of them")
		switch {
		case n.Gone:
			last = append(last, text+"is gone")
		case n.Cause != "" && n.HasRoom:
			first = append(first, text+fmt.Sprintf("has room for %s and is %s: %s", it, n.Cause, n.Advice))
		case n.Cause != "":
			last = append(last, text+fmt.Sprintf("is %s, and has no room for %s", n.Cause, it))
		case !n.HasRoom: // otherwise another rule keeps the pod from it: the reasons of the nodes say which
			last = append(last, text+fmt.Sprintf("has no room for %s now", it))
		}
	}
	r.Message = message.Shorten(strings.Join(slices.Concat(first, []string{r.Message}, last), clauses), message.MaxCondition)
	return r
}
