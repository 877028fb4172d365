// SPDX-License-Identifier: Apache-2.0

package count

import (
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/marks"
)

// Numbers are the sums of the shares of a gang's pods, and values derived from them. The zero Numbers is not usable;
// see NewNumbers.
type Numbers struct {
	// Created, Placed, Bound and Ready must not be modified.
	Created *gang.Tally // pods that exist and have not failed, completions included
	Placed  *gang.Tally // bound, assumed, or counted as succeeded
	Bound   *gang.Tally // bound or counted as succeeded (docs/decisions, G9, G11)
	Ready   *gang.Tally // bound and ready, or counted as succeeded

	GPUs, HeldGPUs int64 // requested by the pods, and used by those that are bound

	// BoundChanges grows whenever a pod is added to Bound or removed from it.
	BoundChanges int

	flagged    [nFlags]int // pods by flag
	ownMarks   map[marks.PlanID]int
	others     map[string]int // bound pods that have a leaf and name none of our profiles, by schedulerName
	priorities priorities
	completed  completions
	pools      map[string]*pool // by schedulerName
	spare      spares
	touched    []*gang.Group // see TakeTouched
}

// NewNumbers returns the numbers of a gang without pods.
func NewNumbers(tree *gang.Tree) *Numbers {
	n := &Numbers{
		Created: gang.NewTally(tree), Placed: gang.NewTally(tree), Bound: gang.NewTally(tree), Ready: gang.NewTally(tree),
		ownMarks: map[marks.PlanID]int{}, others: map[string]int{}, pools: map[string]*pool{}, spare: newSpares(tree),
	}
	n.completed = newCompletions(func(leaf *gang.Group, k int) {
		n.Created.Add(leaf, k)
		n.addPlaced(leaf, k)
		n.addBound(leaf, k)
		n.Ready.Add(leaf, k)
	})
	return n
}

// Set counts the pod of an entry as it is now. It must be called after every change of the pod, and reports whether its
// share or its sort key has changed.
func (n *Numbers) Set(e *Entry, p *Pod) bool {
	share, order := ShareOf(p), OrderOf(p.Pod)
	if share == e.share && order == e.order {
		return false
	}
	n.leavePool(e) // by the key by which it was sorted
	n.addShare(&share, 1)
	n.addShare(&e.share, -1)
	e.share, e.order = share, order
	n.joinPool(e)
	return true
}

// Remove removes the pod of an entry from the numbers.
func (n *Numbers) Remove(e *Entry) {
	n.leavePool(e)
	n.addShare(&e.share, -1)
	e.share = Share{}
}

// addShare adds (k = 1) or subtracts (k = -1) a share, except for the pod's position in the pools.
func (n *Numbers) addShare(s *Share, k int) {
	for i, f := 0, s.Flags; f != 0; i, f = i+1, f>>1 {
		if f&1 != 0 {
			n.flagged[i] += k
		}
	}
	n.GPUs, n.HeldGPUs = n.GPUs+int64(k)*s.gpus, n.HeldGPUs+int64(k)*s.held
	if s.has(hasPriority) {
		n.priorities.add(s.priority, k)
	}
	if s.has(IsOwn) {
		addTo(n.ownMarks, s.mark, k)
	}
	if s.has(IsLive) {
		n.completed.addLive(s.controller, k)
	}
	if s.has(isMarked) {
		n.completed.addMark(s.mark, k)
	}
	if s.Leaf == nil {
		return
	}
	if s.other != "" {
		addTo(n.others, s.other, k)
	}
	switch s.stage {
	case waits:
		n.Created.Add(s.Leaf, k)
	case isAssumed:
		n.Created.Add(s.Leaf, k)
		n.addPlaced(s.Leaf, k)
	case isPlaced:
		n.Created.Add(s.Leaf, k)
		n.addPlaced(s.Leaf, k)
		n.addBound(s.Leaf, k)
		if s.ready {
			n.Ready.Add(s.Leaf, k)
		}
	case isDone:
		n.completed.addDone(bucketKey{s.controller, s.mark}, s.Leaf, k)
	}
}

// addTo adds k to a count. The map has no counts of 0.
func addTo[K comparable](counts map[K]int, key K, k int) {
	if counts[key] += k; counts[key] == 0 {
		delete(counts, key)
	}
}

func (n *Numbers) addPlaced(leaf *gang.Group, k int) {
	n.Placed.Add(leaf, k)
	for _, p := range n.pools {
		p.addUsable(n.Bound, leaf, k)
	}
}

func (n *Numbers) addBound(leaf *gang.Group, k int) {
	n.Bound.Add(leaf, k)
	n.BoundChanges++
	n.spare.refresh(n.Bound, leaf)
	for _, p := range n.pools {
		p.refreshBound(n.Bound, leaf)
	}
	if last := len(n.touched) - 1; last < 0 || n.touched[last] != leaf {
		n.touched = append(n.touched, leaf)
	}
}

// Flagged returns the number of pods with a property.
func (n *Numbers) Flagged(f Flags) int { return n.flagged[bits.TrailingZeros32(uint32(f))] }

// TakeTouched returns the leaves whose bound pods changed since the last call. The result is valid until the next
// change.
func (n *Numbers) TakeTouched() []*gang.Group {
	touched := n.touched
	n.touched = n.touched[:0]
	return touched
}

// HighestPriority returns the highest priority of the pods that have not succeeded, 0 if there are none.
func (n *Numbers) HighestPriority() int32 { return n.priorities.highest() }

// LowestPriority returns the lowest priority of the pods that have not succeeded, 0 if there are none.
func (n *Numbers) LowestPriority() int32 { return n.priorities.lowest() }

// IsMixed reports whether pods that have not succeeded have different priorities.
func (n *Numbers) IsMixed() bool { return len(n.priorities.levels) > 1 }

// HasOwnBeside reports whether pods are bound for the PodGroup by other plans than the given one, or none by this one.
func (n *Numbers) HasOwnBeside(plan marks.PlanID) bool {
	return len(n.ownMarks) > 1 || n.ownMarks[plan] == 0
}

// IsCurrentCompletion reports whether a pod that has succeeded did so in the current run (docs/decisions, G9).
func (n *Numbers) IsCurrentCompletion(e *Entry) bool {
	return n.completed.countsBucket(bucketKey{e.share.controller, e.share.mark})
}

// LiveControllers returns the controllers of the unfinished pods.
func (n *Numbers) LiveControllers() sets.Set[types.UID] { return sets.KeySet(n.completed.live) }

// BoundNow counts the currently bound pods, without completed ones.
func (n *Numbers) BoundNow() gang.Counts {
	c := n.Bound.Counts()
	for _, b := range n.completed.countedBuckets() {
		for leaf, pods := range b.leaves {
			addTo(c, leaf.Name(), -pods)
		}
	}
	return c
}

// BoundByOthers returns the number of bound pods that have a leaf and name none of our profiles, and the schedulers
// that they name, sorted.
func (n *Numbers) BoundByOthers() (pods int, names []string) {
	for name, k := range n.others {
		pods, names = pods+k, append(names, name)
	}
	slices.Sort(names)
	return pods, names
}

// WaitingForOthers returns the number of pods that wait with another schedulerName than the profile and that a plan
// could otherwise place, and these names, sorted.
func (n *Numbers) WaitingForOthers(profile string) (pods int, names []string) {
	for name, p := range n.pools {
		if name != profile && p.pods > 0 {
			pods, names = pods+p.pods, append(names, name)
		}
	}
	slices.Sort(names)
	return pods, names
}

// ExtraGroups returns the number of sub-groups that the gang has beyond its minimums.
func (n *Numbers) ExtraGroups() int { return n.spare.all }

// IsWhole reports whether a group and all groups above it are satisfied by bound pods.
func IsWhole(bound *gang.Tally, group *gang.Group) bool {
	for ; group != nil; group = group.Parent() {
		if !bound.Satisfied(group) {
			return false
		}
	}
	return true
}
