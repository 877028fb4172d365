package gangadmission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
	"github.com/muster-project/muster/pkg/scheduler/kube"
)

// explain turns a shortfall into one dominant reason and one sentence: which group of the tree lacks how much, and what
// the nodes say, by number of nodes.
func explain(work *gangstate.Work, world rooms, short *placement.Shortfall) gangstate.Verdict {
	var parts []string
	for _, g := range short.Groups {
		parts = append(parts, fmt.Sprintf("%s: %d of the %d children it needs can be placed", pathOf(work.Tree, g.Group), g.Can, g.Need))
	}
	blocked := blocking(short.Leaves)
	for _, l := range blocked {
		parts = append(parts, describe(work.Tree, l))
	}
	if !short.Exhausted {
		parts = append(parts, fmt.Sprintf("the search ended after %d attempts", short.Attempts))
	}
	return gangstate.Verdict{Reason: dominant(blocked, world), Message: clip(strings.Join(parts, "; "))}
}

// explainSurplus says why nothing above the minimum was placed.
func explainSurplus(work *gangstate.Work, world rooms) gangstate.Verdict {
	n := 0
	for _, pods := range work.Problem.Pods {
		n += len(pods)
	}
	what := "above the minimum"
	if work.Task == gangstate.Refill {
		what = "to make the gang whole again"
	}
	reason := v2alpha2.ReasonInsufficientGPUs
	for i := range work.Classes {
		if world.Feasible(i) > 0 {
			reason = v2alpha2.ReasonFragmented // single pods fit, units do not
		}
	}
	return gangstate.Verdict{Reason: reason, Message: fmt.Sprintf("%d waiting pods %s, none of which fits now", n, what)}
}

// maxLeaves is how many leaves a message names.
const maxLeaves = 3

// blocking returns the leaves that a message names: those that nodes refuse first, in spec order.
func blocking(leaves []placement.LeafShortfall) []placement.LeafShortfall {
	out := slices.Clone(leaves)
	slices.SortStableFunc(out, func(a, b placement.LeafShortfall) int {
		return cmp.Compare(rank(a), rank(b))
	})
	return out[:min(len(out), maxLeaves)]
}

func rank(l placement.LeafShortfall) int {
	if l.Refusal != nil {
		return 0
	}
	return 1
}

func describe(tree *gang.Tree, l placement.LeafShortfall) string {
	where := pathOf(tree, l.Leaf)
	if l.Refusal == nil {
		return fmt.Sprintf("%s has %d of the %d pods it still needs", where, l.Available, l.Need)
	}
	return fmt.Sprintf("%s: %d of %d pods can be placed; %s", where, l.Placed, l.Need, nodesSay(l.Refusal))
}

// maxReasons is how many filter reasons a leaf is described with.
const maxReasons = 3

// nodesSay lists the filter reasons, the one that most nodes gave first.
func nodesSay(r *placement.Refusal) string {
	reasons := slices.SortedFunc(maps.Keys(r.Reasons), func(a, b string) int {
		if c := cmp.Compare(r.Reasons[b], r.Reasons[a]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	if len(reasons) == 0 {
		return "there are no nodes"
	}
	var parts []string
	for _, why := range reasons[:min(len(reasons), maxReasons)] {
		parts = append(parts, fmt.Sprintf("%d nodes: %s", r.Reasons[why], why))
	}
	return strings.Join(parts, ", ")
}

// pathOf names a group of the tree for people.
func pathOf(tree *gang.Tree, name string) string {
	if g := tree.Group(name); g != nil && name != "" {
		return g.Path()
	}
	return "the gang"
}

// rooms is what explain asks about the cluster.
type rooms interface {
	Room(class int) kube.Room
	Feasible(class int) int
}

// dominant picks the reason (users.md, B5) from what blocks first.
func dominant(blocked []placement.LeafShortfall, world rooms) v2alpha2.Reason {
	worst := v2alpha2.Reason("")
	for _, l := range blocked {
		if l.Refusal == nil {
			continue
		}
		r := classify(l, world.Room(l.Class))
		if worst == "" || severity(r) < severity(worst) {
			worst = r
		}
	}
	if worst == "" {
		return v2alpha2.ReasonWaitingForPods
	}
	return worst
}

func severity(r v2alpha2.Reason) int {
	return slices.Index([]v2alpha2.Reason{
		v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonTooLarge, v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonFragmented,
	}, r)
}

// classify says what would help one leaf.
func classify(l placement.LeafShortfall, room kube.Room) v2alpha2.Reason {
	need := room.PerPod * int64(l.Need)
	switch {
	case room.Nodes == 0:
		return v2alpha2.ReasonNoNodeMatches
	case room.PerPod > room.Largest || need > room.Total:
		return v2alpha2.ReasonTooLarge
	case need > room.Free && strings.Contains(string(room.Resource), "/"):
		return v2alpha2.ReasonInsufficientGPUs
	case need > room.Free && room.Resource == corev1.ResourceCPU:
		return v2alpha2.ReasonInsufficientGPUs
	default:
		return v2alpha2.ReasonFragmented
	}
}

// clip keeps a message below the API's limit for event notes.
func clip(s string) string {
	const limit = 1000
	if len(s) <= limit {
		return s
	}
	return s[:limit-4] + " ..."
}
