// SPDX-License-Identifier: Apache-2.0

package backfill

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/muster-project/muster/pkg/placement"
)

// World is the state of the nodes, as preemption.World has it.
type World interface {
	placement.World
	// Free removes running pods from their nodes, Restore puts them back.
	Free(pods []int)
	Restore(pods []int)
	// NodeOf returns the node of a running pod.
	NodeOf(pod int) int
	// NodeName returns the name of a node.
	NodeName(node int) string
	// UseOnly bars all nodes but these, by name, until it is called again; nil: it bars none. It is not called while
	// pods are placed.
	UseOnly(nodes []string)
}

// Pod is a running pod for whose end the gang may wait.
type Pod struct {
	ID   int       // of the World
	Ends time.Time // until when it runs, by its promise; zero: it has made none
	// Lasts: it is not expected to end by itself. It is waited for only if the others do not suffice.
	Lasts  bool
	Amount int64 // of the resource by which nodes are compared
}

// farthest is how far ahead an end is known. A gang that waited for one that is months away would have the turn of
// others until then.
const farthest = 7 * 24 * time.Hour

// endsAfter returns until when the pod runs, and whether this is known: a promise that was not kept says nothing, nor
// does one for later than farthest.
func (p *Pod) endsAfter(now time.Time) (time.Time, bool) {
	return p.Ends, p.Ends.After(now) && !p.Ends.After(now.Add(farthest))
}

// Promise is room for a gang.
type Promise struct {
	// Plan has the nodes of the pods. It is not placed in the World.
	Plan []placement.Placement
	// Starts is when the gang can start at the latest, if pods end as they promise. Zero: not known.
	Starts time.Time
	// Behind are the pods on the planned nodes whose end the gang waits for, ascending; InUse is the sum of their
	// amounts.
	Behind []int
	InUse  int64
}

// step is a set of pods that are expected to end together: at one time, or of one node.
type step struct {
	pods []int
	ends time.Time // zero: not known
}

// Choose returns the promise for a gang: the earliest one, if enough pods say when they end, else the one on the nodes
// with the least in use. The pods are those for whose end it may wait. nil: the gang does not fit without them either,
// or the time was over (cut). The World is left as it was.
func Choose(problem placement.Problem, w World, pods []Pod, now time.Time, budget placement.Budget) (promise *Promise, cut bool) {
	steps, freed := stepsOf(w, pods, now), 0
	free := func(k int) {
		for ; freed < k; freed++ {
			w.Free(steps[freed].pods)
		}
		for ; freed > k; freed-- {
			w.Restore(steps[freed-1].pods)
		}
	}
	defer free(0)
	problem.Preferred, budget.Unexplained = nil, true // a preferred level never decides when a gang starts
	var plan []placement.Placement
	fits := func(k int) bool {
		free(k)
		found, short := placement.Minimum(problem, w, budget)
		if short != nil {
			cut = cut || short.Cut
			return false
		}
		w.Undo(len(found))
		plan = found
		return true
	}
	first := sort.Search(len(steps)+1, fits)
	if first > len(steps) {
		return nil, cut
	}
	if freed != first && !fits(first) { // the last one that was tried was another one
		return nil, cut
	}
	p := &Promise{Plan: plan, Starts: now}
	if first > 0 {
		p.Starts = steps[first-1].ends
	}
	planned := map[string]bool{}
	for i := range plan {
		planned[plan[i].Node] = true
	}
	amounts := make(map[int]int64, len(pods))
	for i := range pods {
		amounts[pods[i].ID] = pods[i].Amount
	}
	for _, s := range steps[:first] {
		for _, id := range s.pods {
			if planned[w.NodeName(w.NodeOf(id))] {
				p.Behind = append(p.Behind, id)
				p.InUse += amounts[id]
			}
		}
	}
	slices.Sort(p.Behind)
	return p, false
}

// stepsOf returns the pods in the order in which they are expected to end: by the times that they promise; then those
// of one node after another, the node with the least in use first; those that last come after all others.
func stepsOf(w World, pods []Pod, now time.Time) []step {
	var known []Pod
	inUse, others := map[int]int64{}, [2]map[int][]int{{}, {}} // by node; those that last are the second ones
	for i := range pods {
		p := &pods[i]
		if _, ok := p.endsAfter(now); ok {
			known = append(known, *p)
			continue
		}
		node, k := w.NodeOf(p.ID), 0
		if p.Lasts {
			k = 1
		}
		inUse[node] += p.Amount
		others[k][node] = append(others[k][node], p.ID)
	}
	slices.SortFunc(known, func(a, b Pod) int { return cmp.Or(a.Ends.Compare(b.Ends), cmp.Compare(a.ID, b.ID)) })
	var steps []step
	for _, p := range known {
		if n := len(steps); n == 0 || !steps[n-1].ends.Equal(p.Ends) {
			steps = append(steps, step{ends: p.Ends})
		}
		last := &steps[len(steps)-1]
		last.pods = append(last.pods, p.ID)
	}
	for _, of := range others {
		var nodes []int
		for node := range of {
			nodes = append(nodes, node)
		}
		slices.SortFunc(nodes, func(a, b int) int {
			return cmp.Or(cmp.Compare(inUse[a], inUse[b]), cmp.Compare(w.NodeName(a), w.NodeName(b)))
		})
		for _, node := range nodes {
			steps = append(steps, step{pods: of[node]})
		}
	}
	return steps
}
