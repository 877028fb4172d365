// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// addedNodes judges whether nodes that a cluster autoscaler adds may let groups with required topology levels start
// (docs/decisions, G13). An autoscaler adds nodes for the pods that the free room does not hold, one by one, and
// nothing tells it in which domain. So they help only if these pods are too many for all domains together, and if what
// is free is in one domain, which the added nodes may complete.
type addedNodes struct {
	placement.Problem
	world World
	pinOf func(group string) placement.LevelShortfall // placement.Pins; nil: not asked yet
	rooms map[levelOf]*levelRoom
}

// levelRoom is the number of nodes that can run a class and have the label of a level, in how many domains of the level
// a pod of the class fits, and how many fit in all of them and in the one with the most room.
type levelRoom struct{ nodes, domains, pods, most int }

func newAddedNodes(p placement.Problem, world World) *addedNodes {
	return &addedNodes{Problem: p, world: world, rooms: map[levelOf]*levelRoom{}}
}

// mayHelp reports whether added nodes may let the groups below g start, or be completed, that were refused for this
// reason.
func (n *addedNodes) mayHelp(g *gang.Group, reason v2alpha2.Reason) bool {
	if !hasLevels(n.Problem) {
		return true // the reason says it
	}
	if reason == v2alpha2.ReasonTooLarge || reason == v2alpha2.ReasonTopologyUnavailable {
		return false
	}
	for above := g.Parent(); above != nil; above = above.Parent() {
		if !n.mayGrow(above, g, reason) {
			return false
		}
	}
	return n.mayHelpBelow(g, reason)
}

func (n *addedNodes) mayHelpBelow(g *gang.Group, reason v2alpha2.Reason) bool {
	if !n.mayGrow(g, g, reason) {
		return false
	}
	helped := 0
	for _, child := range g.Children() {
		if child.Satisfied(n.Have) || n.mayHelpBelow(child, reason) {
			helped++
		}
	}
	return g.IsLeaf() || helped >= g.Min()
}

// mayGrow reports whether added nodes may let a domain of the level that a group requires hold what a group in it
// lacks. Any may if it requires none.
func (n *addedNodes) mayGrow(group, lacking *gang.Group, reason v2alpha2.Reason) bool {
	level := n.Required[group.Name()]
	if level == "" {
		return true
	}
	if len(n.Nodes) > 0 { // some pods run
		if n.pinOf == nil {
			n.pinOf = placement.Pins(n.Problem, n.world)
		}
		if pin := n.pinOf(group.Name()); pin.Runs || pin.Torn || pin.Gone {
			return false // added nodes may be in any other domain
		}
	}
	short := isInsufficient(reason)
	waiting := map[int]int{}
	n.countWaiting(lacking, waiting)
	lacks, open, missing := false, true, max(1, lacking.MissingPods(n.Have))
	for _, class := range slices.Sorted(maps.Keys(waiting)) {
		room, need := n.roomOf(class, level), min(waiting[class], missing)
		switch {
		case room == nil: // the classes before it stand for it
		case room.nodes == 0:
			return false
		case room.most >= need: // it does not lack room
		case room.pods < need:
			lacks, open = true, open && room.domains <= 1
		default: // enough is free in all
			open = false
		}
	}
	return (lacks || short) && (open || short && isNode(level))
}

// countWaiting counts the waiting pods below a group, by class.
func (n *addedNodes) countWaiting(g *gang.Group, waiting map[int]int) {
	for _, pod := range n.Pods[g.Name()] {
		waiting[pod.Class]++
	}
	for _, child := range g.Children() {
		n.countWaiting(child, waiting)
	}
}

// roomOf returns nil after maxSingleClasses classes, because each visits all nodes.
func (n *addedNodes) roomOf(class int, level string) *levelRoom {
	key := levelOf{class, level}
	room := n.rooms[key]
	if room == nil && len(n.rooms) < maxSingleClasses {
		room = &levelRoom{}
		room.nodes, _ = n.world.LevelNodes(class, level)
		for _, pods := range n.world.Rooms(class, level, 0) {
			room.domains += min(pods, 1)
			room.pods += pods
			room.most = max(room.most, pods)
		}
		n.rooms[key] = room
	}
	return room
}

func isInsufficient(reason v2alpha2.Reason) bool {
	return reason == v2alpha2.ReasonInsufficientGPUs || reason == v2alpha2.ReasonInsufficientResources
}

// isNode reports whether each domain of the level is a node.
func isNode(level string) bool {
	return level[strings.LastIndex(level, ",")+1:] == corev1.LabelHostname
}
