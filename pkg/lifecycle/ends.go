package lifecycle

import (
	"cmp"
	"slices"
	"time"
)

// Ends is the history of the pods that ended one after the other at one index.
type Ends struct {
	// Count is how many have been removed in a row. Last is when the latest of them ended.
	Count int
	Last  time.Time
}

const (
	// maxEnds is how many indices have a history of their own. The others share one: they back off together, for as long as
	// the worst of them would. More entries would make an object that the API server may refuse.
	maxEnds = 256
	// sharedEnds is the index of the shared history, and that of pods without an index.
	sharedEnds = -1
)

const (
	firstEndedDelay = 10 * time.Second
	maxEndedDelay   = 5 * time.Minute
	// steadyAfter is how long a pod has to live for the next end to be a first one again, as the kubelet has it.
	steadyAfter = 2 * maxEndedDelay
	// forgetEnds is when a history has no effect any more, whatever happens: a successor lives that long unless it ends
	// before, which makes its own history.
	forgetEnds = steadyAfter + maxEndedDelay
)

// EndedDelay returns how long after its end a pod is replaced whose index saw that many ends in a row before: immediately,
// then 10 s, doubling to 5 min, like the kubelet restarts containers.
func EndedDelay(ends int) time.Duration {
	if ends <= 0 {
		return 0
	}
	delay := firstEndedDelay
	for i := 1; i < ends && delay < maxEndedDelay; i++ {
		delay *= 2
	}
	return min(delay, maxEndedDelay)
}

// endsOf returns the history of an index: its own, or else the shared one.
func endsOf(ends map[int]Ends, index int) Ends {
	if e, own := ends[index]; own {
		return e
	}
	return ends[sharedEnds]
}

// boundedEnds returns the history with at most maxEnds entries and the shared one. The longest rows keep their own, of
// equal ones the lowest indices; the shared entry has the longest row and the latest end of the rest.
func boundedEnds(ends map[int]Ends) map[int]Ends {
	var indices []int
	for i := range ends {
		if i != sharedEnds {
			indices = append(indices, i)
		}
	}
	if len(indices) <= maxEnds {
		return ends
	}
	slices.SortFunc(indices, func(a, b int) int {
		return cmp.Or(cmp.Compare(ends[b].Count, ends[a].Count), cmp.Compare(a, b))
	})
	bounded, shared := make(map[int]Ends, maxEnds+1), ends[sharedEnds]
	for k, i := range indices {
		if k < maxEnds {
			bounded[i] = ends[i]
			continue
		}
		shared.Count = max(shared.Count, ends[i].Count)
		if ends[i].Last.After(shared.Last) {
			shared.Last = ends[i].Last
		}
	}
	bounded[sharedEnds] = shared
	return bounded
}

// ends returns the history that counts for the end of p: none if it lived long.
func (p Pod) ends(before Ends) Ends {
	began := p.Started
	if began.IsZero() {
		began = p.Created
	}
	if p.EndedAt.Sub(began) >= steadyAfter {
		return Ends{}
	}
	return before
}
