// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Ends is the history of pods that ended one after the other at one index.
type Ends struct {
	// Count is the number of pods removed in a row. Last is when the last of them ended.
	Count int
	Last  time.Time
}

const (
	// maxEnds is the maximum number of indices with a history of their own. All other indices share one history: their
	// replacements wait as long as the worst of them would. With more entries the API server could reject the object.
	maxEnds = 256
	// sharedEnds is the index of the shared history, and that of pods without an index.
	sharedEnds = -1
)

const (
	firstEndedDelay = 10 * time.Second
	maxEndedDelay   = 5 * time.Minute
	// steadyAfter is the lifetime after which the end of a pod counts as the first one again, as in the kubelet.
	steadyAfter = 2 * maxEndedDelay
	// maxFailures is the number of failures in a row after which a pod of a Training workload is not replaced. Source:
	// docs/decisions, J12.
	maxFailures = 6
	// forgetEnds is the age at which a history no longer has any effect: by then a successor has lived long enough, or
	// has ended and started a history of its own.
	forgetEnds = steadyAfter + maxEndedDelay
)

// EndedDelay returns how long after its end a pod is replaced, given the number of previous ends in a row at its
// index: immediately after the first end, then after 10 s, doubling up to 5 min, like the kubelet restarts containers.
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

// RestartDelay returns how long the creation of the pods of a restarted replica waits. previous is the delay of the
// restart before, ran how long the replica was available after it. The first restart is immediate, the next ones wait
// for 10 s, doubling up to 5 min, and one that ran for steadyAfter begins again. Source: docs/decisions, J12.
func RestartDelay(first bool, previous, ran time.Duration) time.Duration {
	if first || ran >= steadyAfter {
		return 0
	}
	delay := firstEndedDelay
	for delay <= previous && delay < maxEndedDelay {
		delay *= 2
	}
	return min(delay, maxEndedDelay)
}

// endsOf returns the history of an index: its own if there is one, otherwise the shared one.
func endsOf(ends map[int]Ends, index int) Ends {
	if e, own := ends[index]; own {
		return e
	}
	return ends[sharedEnds]
}

// boundedEnds limits the history to maxEnds entries and the shared one. Indices with the most ends in a row keep an
// entry of their own, and among equal ones the lowest indices; the shared entry has the highest count and the latest
// end of the others.
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

// endsBefore returns the history of the index of p, which has ended, without that end: none if p lived for steadyAfter.
func (p Pod) endsBefore(recorded map[int]Ends) Ends {
	if p.Lived >= steadyAfter {
		return Ends{}
	}
	ends := endsOf(recorded, p.Index)
	if own := recorded[p.Index]; p.Index >= 0 && own == ends && own.Last.Equal(p.EndedAt) && ends.Count > 0 {
		ends.Count-- // an earlier pass counted it, but failed to delete it
	}
	return ends
}

// isGivenUp reports whether maxFailures pods of a Training workload have ended in a row at an index, so that it gets no
// other pod.
func isGivenUp(ends map[int]Ends, index int) bool {
	return index >= 0 && ends[index].Count >= maxFailures
}

// PodEnd describes why a pod failed. The zero value: it did not fail, or the reason is unknown.
type PodEnd struct {
	// Container is the first container that failed, "" if the pod failed as a whole, for example because it was
	// evicted. Init: it is an init container.
	Container string
	Init      bool
	// ExitCode is the exit code of the container.
	ExitCode int32
	// Reason is the reason in the status of the container or the pod, such as OOMKilled or Evicted. "" if there is
	// none.
	Reason string
}

// String returns a description of the end: "container main exited with code 137 (OOMKilled)", "Evicted", "failed".
func (e PodEnd) String() string {
	switch {
	case e.Container == "" && e.Reason == "":
		return "failed"
	case e.Container == "":
		return e.Reason
	}
	text := fmt.Sprintf("container %s exited with code %d", e.Container, e.ExitCode)
	if e.Init {
		text = "init " + text
	}
	if e.Reason != "" && e.Reason != "Error" { // the kubelet uses it for every non-zero exit code
		text += " (" + e.Reason + ")"
	}
	return text
}
