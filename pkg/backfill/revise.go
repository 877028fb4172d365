// SPDX-License-Identifier: Apache-2.0

package backfill

import (
	"time"

	"github.com/muster-project/muster/pkg/placement"
)

// A promise is exchanged for another one only if that brings the start forward by leastGain, and by a tenth of the time
// that is left. Otherwise it would wander, and room would be held in vain. If no start is known, less is in use each
// time, so that it cannot.
const (
	leastGain  = time.Minute
	timeMargin = 10
)

// Revise returns the promise for a gang. held is the one that it has; nil: none. A nil promise means that the gang
// keeps what it has, or has none, because the time was over or there is nothing better; or, if keep is false, that it
// fits nowhere.
func Revise(problem placement.Problem, w World, held *Held, pods []Pod, now time.Time, budget placement.Budget) (p *Promise, keep bool) {
	p, cut := Choose(problem, w, pods, now, budget)
	if cut {
		return nil, true
	}
	if held != nil {
		holds, cut := held.Holds(problem, w, pods, now, budget)
		if cut || holds && (p == nil || !held.GivesWay(p, now)) {
			return nil, true
		}
	}
	return p, false
}

// Held is a promise that was made earlier, as it stands now.
type Held struct {
	// Nodes are the names of those on which its room is.
	Nodes []string
	// Behind are those of its pods that still run. A pod that runs longer than it promised has no known end.
	Behind []Pod
}

// Starts returns when the gang can start at the latest. Zero: not known.
func (h *Held) Starts(now time.Time) time.Time {
	last := now
	for i := range h.Behind {
		ends, known := h.Behind[i].endsAfter(now)
		if !known {
			return time.Time{}
		}
		if ends.After(last) {
			last = ends
		}
	}
	return last
}

// Holds reports whether the gang would fit on its nodes if the pods that it waits for had ended, and those of pods that
// use its room until it starts: others may have taken a part of it. cut: this is not known, because the time was over.
// The World is left as it was.
func (h *Held) Holds(problem placement.Problem, w World, pods []Pod, now time.Time, budget placement.Budget) (holds, cut bool) {
	var ids []int
	starts, behind, isOurs := h.Starts(now), map[int]bool{}, map[string]bool{}
	for _, name := range h.Nodes {
		isOurs[name] = true
	}
	for i := range h.Behind {
		ids = append(ids, h.Behind[i].ID)
		behind[h.Behind[i].ID] = true
	}
	for i := range pods {
		p := &pods[i]
		if _, known := p.endsAfter(now); known && !p.Ends.After(starts) && !behind[p.ID] && isOurs[w.NodeName(w.NodeOf(p.ID))] {
			ids = append(ids, p.ID)
		}
	}
	w.UseOnly(h.Nodes)
	defer w.UseOnly(nil)
	w.Free(ids)
	defer w.Restore(ids)
	problem.Preferred, budget.Unexplained = nil, true
	plan, short := placement.Minimum(problem, w, budget)
	if short != nil {
		return false, short.Cut
	}
	w.Undo(len(plan))
	return true, false
}

// GivesWay reports whether another promise takes the place of one that holds.
func (h *Held) GivesWay(to *Promise, now time.Time) bool {
	starts := h.Starts(now)
	switch {
	case starts.IsZero() && to.Starts.IsZero():
		inUse := int64(0)
		for i := range h.Behind {
			inUse += h.Behind[i].Amount
		}
		return to.InUse < inUse
	case starts.IsZero() || to.Starts.IsZero():
		return starts.IsZero()
	}
	gain := starts.Sub(to.Starts)
	return gain >= leastGain && gain >= starts.Sub(now)/timeMargin
}
