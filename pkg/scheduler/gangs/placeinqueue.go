// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"time"
)

const (
	// lineInterval and linePerGang bound how often the line is determined. A place that changes is written to the
	// status of a PodGroup, and whenever the first gang starts, the places of all others change.
	lineInterval = 2 * time.Second
	linePerGang  = 50 * time.Millisecond
)

// line is the order in which gangs wait for their minimum, or for what they have lost of it, as of a moment. It is
// information for users only: the queue has its own order. Guarded by Registry.mu.
type line struct {
	at     time.Time
	places map[*gangState]linePlace
}

// linePlace is the place of a gang in the line: how many gangs of its priority are ahead of it, and the name of the
// first of them that is in its namespace. "": none is.
type linePlace struct {
	ahead int
	first string
}

// waitsInLine reports whether the gang waits to be tried, or to be tried again. A gang that waits for surplus does not:
// it follows all others of its priority.
func (g *gangState) waitsInLine() bool {
	return g.plan == nil && g.leader != "" && !g.completeAt.IsZero() && g.leaderRank().Tier <= TierNormal
}

// updateLine determines the line again if it is old, and returns the gangs that are behind others for the first time. A
// changed place is reported with the next status.
func (r *Registry) updateLine(now time.Time) []Key {
	if now.Sub(r.line.at) < max(lineInterval, time.Duration(len(r.line.places))*linePerGang) {
		return nil
	}
	type ranked struct {
		*gangState
		rank Rank
	}
	var waiting []ranked
	for _, g := range r.gangs {
		if g.waitsInLine() {
			waiting = append(waiting, ranked{g, g.leaderRank()})
		}
	}
	slices.SortFunc(waiting, func(a, b ranked) int { return compareInQueue(a.rank, a.key, b.rank, b.key) })
	before := r.line.places
	r.line = line{at: now, places: make(map[*gangState]linePlace, len(waiting))}
	start, firsts := 0, map[string]string{} // of the priority; firsts by namespace
	var dirty []Key
	for i, g := range waiting {
		if i > 0 && g.rank.Priority != waiting[i-1].rank.Priority {
			start = i
			clear(firsts)
		}
		p := linePlace{i - start, firsts[g.key.Namespace]}
		if p.first == "" {
			firsts[g.key.Namespace] = g.key.Name
		}
		r.line.places[g.gangState] = p
		if _, known := before[g.gangState]; !known && p.ahead > 0 {
			dirty = append(dirty, g.key)
		}
	}
	return dirty
}
