// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
)

// judgeTogether returns the reason why the minimum of a gang with several classes of pods cannot be placed, and a text
// about it, by the definitions in docs/events.md. The numbers of each class alone are not sufficient for that: classes may
// need the same nodes, and a class may belong to sub-groups that the gang can do without.
func judgeTogether(p placement.Problem, blocked []placement.LeafShortfall, known *knownCapacities, v *Inventory) (v2alpha2.Reason, string) {
	for _, reason := range []v2alpha2.Reason{v2alpha2.ReasonClaimsNotReady, v2alpha2.ReasonNoNodeMatches} {
		// Is it impossible without the classes with this reason?
		var hopeless []int
		room := func(class int) int {
			if severity(known.ResourceCapacity(class).reasonFor(1)) <= severity(reason) {
				hopeless = append(hopeless, class)
				return 0
			}
			return math.MaxInt
		}
		if !placement.MayFit(p, room) {
			return reason, "no node can run the pods of " + leavesOf(p, hopeless)
		}
	}
	pods := message.Count(p.Tree.MissingPods(p.Have), "pod")
	if v.holds(p, true, true) == no {
		everything := v.imagine(true, true)
		if some, k := v.lacking(p, everything); some != nil {
			return v2alpha2.ReasonTooLarge, fmt.Sprintf("%s, the nodes that they may use have %s in all", v.needText(p, some, k), v.quantity(everything.sum(some, k), k))
		}
		if reason, text := judgeEmpty(p, known); reason == v2alpha2.ReasonTooLarge {
			return reason, text
		}
		return v2alpha2.ReasonTooLarge, fmt.Sprintf("the %s that the gang needs would not fit together on the nodes that they may use if these were empty", pods)
	}
	now := v.holds(p, false, false)
	if now == yes {
		return v2alpha2.ReasonFragmented, "" // other rules keep the pods out: the reasons of the nodes say which
	}
	closed := known.unavailableTo(classesOf(p))
	switch {
	case v.holds(p, false, true) == yes && closed != "":
		return v2alpha2.ReasonNodesUnavailable, fmt.Sprintf("%s; with the room there, the %s that the gang needs fit", closed, pods)
	case v.holds(p, true, false) == no: // then some are closed
		return v2alpha2.ReasonNodesUnavailable, fmt.Sprintf("%s; the %s that the gang needs would not fit on the other nodes that they may use if these were empty", closed, pods)
	}
	present := v.imagine(false, false)
	if some, k := v.lacking(p, present); some != nil {
		text := fmt.Sprintf("%s, %s are free", v.needText(p, some, k), v.quantity(present.sum(some, k), k))
		lower := int64(0)
		for _, class := range some {
			lower = max(lower, known.HeldByLower(class, v.Resources[k]))
		}
		return insufficient(v.Resources[k]), text + lowerText(v.Resources[k], lower)
	}
	if text := pieces(p.Tree, blocked, known); text != "" || now == unknown {
		return v2alpha2.ReasonFragmented, text
	}
	return v2alpha2.ReasonFragmented, fmt.Sprintf("enough is free in all, but the %s that the gang needs do not fit together on what is free on single nodes", pods)
}

// needText describes how much of a resource the minimum needs at least for pods of the classes.
func (v *Inventory) needText(p placement.Problem, classes []int, resource int) string {
	least := v.leastAsked(p, classes, resource)
	who := "the gang needs"
	if len(classes) < len(classesOf(p)) {
		who = "the gang needs for " + leavesOf(p, classes)
	}
	if v.Resources[resource] == corev1.ResourcePods {
		return fmt.Sprintf("%s room for %s beside the pods that run", who, message.Count(least.pods, "pod"))
	}
	return fmt.Sprintf("%s %s %s for %s", who, v.quantity(least.amount, resource), v.Resources[resource], message.Count(least.pods, "pod"))
}

func (v *Inventory) quantity(amount int64, resource int) string {
	return message.Quantity(v.Resources[resource], amount)
}

// classesOf returns the classes of the waiting pods, in ascending order.
func classesOf(p placement.Problem) []int {
	seen := map[int]bool{}
	for _, pods := range p.Pods {
		for _, pod := range pods {
			seen[pod.Class] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// maxSubsets bounds the classes of which all subsets are examined.
const maxSubsets = 6

// subsets returns all of the classes, each of them, and, if they are few, all other subsets.
func subsets(classes []int) [][]int {
	out := [][]int{classes}
	for _, c := range classes {
		out = append(out, []int{c})
	}
	if len(classes) > maxSubsets {
		return out
	}
	for mask := range 1 << len(classes) {
		var some []int
		for i, c := range classes {
			if mask&(1<<i) != 0 {
				some = append(some, c)
			}
		}
		if len(some) > 1 && len(some) < len(classes) {
			out = append(out, some)
		}
	}
	return out
}

// leavesOf names the leaves that have waiting pods of the classes.
func leavesOf(p placement.Problem, classes []int) string {
	var names []string
	for _, leaf := range p.Tree.Leaves() {
		if slices.ContainsFunc(p.Pods[leaf.Name()], func(pod placement.Pod) bool { return slices.Contains(classes, pod.Class) }) {
			names = append(names, pathOf(p.Tree, leaf.Name()))
		}
	}
	return message.List(names, maxLeaves, len(names), ", ")
}

// unavailableTo describes the unavailable nodes of the classes.
func (k *knownCapacities) unavailableTo(classes []int) string {
	var parts []string
	for _, c := range classes {
		if text := k.ResourceCapacity(c).unavailable(); text != "" && !slices.Contains(parts, text) && len(parts) < maxReasons {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}
