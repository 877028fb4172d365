// SPDX-License-Identifier: Apache-2.0

package placement

import "slices"

const (
	// maxNodes is the number of nodes for a class up to which every node is tried for each of its pods.
	maxNodes = 16
	// maxStates bounds the ways to distribute the pods of a choice, and parts of them, over the nodes. It is an upper
	// bound: most of them contain refused pods.
	maxStates = 1 << 20
)

// enumeration tries all ways to place the pods of one choice, in all orders. Pods of one class are interchangeable, so
// a state is the number of pods of each class on each node, and the World refuses or accepts a pod in a state
// regardless of the order in which the others were placed. Each state is visited once.
type enumeration struct {
	*planner
	classes  []enumerated
	state    []byte // by class and node: pods
	failed   map[string]bool
	complete bool // no limit has ended the search
}

// enumerated is what a choice places of one class.
type enumerated struct {
	number int32
	nodes  []string // domains of one node each
	pods   []step   // in order; nodes are not set
	placed int
	offset int // into enumeration.state
}

// newEnumeration returns the enumeration of a choice. It returns nil if the choice has too many states.
func (pl *planner) newEnumeration(leaves []int32) *enumeration {
	e := &enumeration{planner: pl, failed: map[string]bool{}}
	for _, leaf := range leaves {
		n := pl.groups[leaf].missing()
		for _, pod := range pl.offeredPods(leaf, false) {
			if n == 0 {
				break
			}
			n--
			number := pl.classOf(leaf, pod)
			at := slices.IndexFunc(e.classes, func(c enumerated) bool { return c.number == number })
			if at < 0 {
				at = len(e.classes)
				e.classes = append(e.classes, enumerated{number: number})
			}
			e.classes[at].pods = append(e.classes[at].pods, step{leaf: leaf, pod: pod, class: number})
		}
	}
	slices.SortStableFunc(e.classes, func(a, b enumerated) int { return pl.hardness(a.number, b.number) })
	states, size := 1.0, 0
	for i := range e.classes {
		c := &e.classes[i]
		c.nodes, c.offset = pl.world.Nodes(int(c.number), maxNodes), size
		size += len(c.nodes)
		for k := range c.pods { // binomial(pods+nodes, pods)
			states *= float64(len(c.nodes)+k+1) / float64(k+1)
		}
		if len(c.nodes) == 0 || len(c.pods) > 255 || states > maxStates {
			return nil
		}
	}
	e.state = make([]byte, size)
	return e
}

// placeAllPods places all pods, or none. complete tells whether there is certainly no way to place them.
func (e *enumeration) placeAllPods() bool {
	e.complete = true
	return e.searchNodes()
}

func (e *enumeration) searchNodes() bool {
	if e.failed[string(e.state)] {
		return false
	}
	done := true
	for i := range e.classes {
		c := &e.classes[i]
		if c.placed == len(c.pods) {
			continue
		}
		done = false
		accepted := false
		for n, node := range c.nodes {
			next := &c.pods[c.placed]
			if !e.placePodOnNode(next.leaf, next.pod, node) {
				if e.isStopped() {
					e.complete = false
					return false
				}
				continue
			}
			accepted = true
			c.placed++
			e.state[c.offset+n]++
			if e.searchNodes() {
				return true
			}
			e.state[c.offset+n]--
			c.placed--
			e.undoAbove(len(e.stack) - 1)
			if !e.complete {
				return false
			}
		}
		if !accepted && e.kinds[c.number].kind == Independent {
			break // nothing that is placed later makes room for it
		}
	}
	if !done {
		e.failed[string(e.state)] = true
	}
	return done
}
