// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"
)

// GroupTermination contains the facts that decide which replicas a scaling group terminates itself.
type GroupTermination struct {
	// Replicas are the desired replicas of which at least one PodClique exists.
	Replicas []GroupReplica
	// MinAvailable is the number of replicas that must be available.
	MinAvailable int32
	// Delay is the effective termination delay of the group. nil: nothing is terminated.
	Delay *time.Duration
	// ReportsOnly: the group terminates no replica itself and only reports its breach to the set, as in Training
	// workloads.
	ReportsOnly bool
}

// Termination is the decision which replicas are terminated now, and when the next one is.
type Termination struct {
	// Replicas are the replicas to replace now, by index, with the reasons. nil: none.
	Replicas map[int]Replacement
	// Next is the earliest deadline that has not passed, in whole seconds. Zero: there is none.
	Next time.Time
}

// RequeueAfter returns when the decision changes without an event; 0: it does not.
func (t Termination) RequeueAfter(now time.Time) time.Duration {
	if t.Next.IsZero() {
		return 0
	}
	return delayUntil(t.Next, now)
}

// RecheckAfter is the time after which the controller decides again on a termination or restart that is due according
// to the cache but not according to the API server. The cache will catch up, but a breach that ended only for a moment
// changes no status, so that no event would trigger the next decision.
const RecheckAfter = time.Second

func (t *Termination) addReplica(index int, d due, now time.Time) {
	switch {
	case d.deadline.IsZero():
	case d.deadline.After(now):
		if t.Next.IsZero() || d.deadline.Before(t.Next) {
			t.Next = d.deadline
		}
	default:
		if t.Replicas == nil {
			t.Replicas = map[int]Replacement{}
		}
		t.Replicas[index] = Replacement{Reason: ReplacedTermination, Message: d.message()}
	}
}

// DecideGroupTermination returns which replicas a scaling group terminates itself: those with a PodClique in breach
// for longer than the delay, as long as enough other replicas are available. Otherwise the group itself is in breach,
// and the set decides. A PodClique counts only if its status describes its current spec and it was created for the
// current attempt of its replica. Unknown states, and replicas that are being replaced already, terminate nothing.
// Source: Gang Termination Design Doc, "Two-level protection at PCSG"; docs/decisions, T4, T7, W3.
func DecideGroupTermination(g GroupTermination, now time.Time) Termination {
	var t Termination
	if available, _ := CountAvailable(g.Replicas); g.ReportsOnly || available < g.MinAvailable {
		return t
	}
	for _, r := range g.Replicas {
		t.addReplica(r.Index, r.dueBreach(g.Delay), now)
	}
	return t
}

// DecideSetTermination returns which replicas of a set are terminated: those with a standalone PodClique or a scaling
// group in breach for longer than its delay. Unknown states, and objects of an earlier attempt, terminate nothing.
// Source: Gang Termination Design Doc, "PodCliqueSet Level Termination"; docs/decisions, T5, T7, W3.
func DecideSetTermination(replicas []SetReplica, now time.Time) Termination {
	var t Termination
	for _, r := range replicas {
		t.addReplica(r.Index, r.dueBreach(), now)
	}
	return t
}

// CountAvailable returns how many replicas of a scaling group are certainly available, and how many more may be.
// minReadySeconds does not count here: a replica whose pods are all ready is not in breach.
func CountAvailable(replicas []GroupReplica) (available, unknown int32) {
	for _, r := range replicas {
		switch {
		case !r.isReady():
			// A replica with outdated statuses counts as unknown: a status that is behind may have been better or
			// worse than the state.
			if r.mayBeAvailable() {
				unknown++
			}
		case r.observed():
			available++
		default:
			unknown++
		}
	}
	return available, unknown
}

// isReady is Available without minReadySeconds.
func (r GroupReplica) isReady() bool { return r.allMembers(r.isReadyMember) }

func (r GroupReplica) isReadyMember(c Clique) bool {
	return !c.Attempt.Precedes(r.Attempt) && c.isReady()
}

// observed reports whether the status of every member PodClique describes its current spec.
func (r GroupReplica) observed() bool { return r.allMembers(func(c Clique) bool { return c.Observed }) }

// mayBeAvailable reports whether the replica would be available if all members with an unknown state were available.
func (r GroupReplica) mayBeAvailable() bool {
	return r.allMembers(func(c Clique) bool {
		return r.isReadyMember(c) || !c.Attempt.Precedes(r.Attempt) && !c.Terminating && !c.Observed
	})
}

// due is the first breach for which a unit is terminated.
type due struct {
	kind, name string
	counts     string
	since      time.Time
	deadline   time.Time // zero: never
}

// message returns the message about a termination, for events and statuses.
func (d due) message() string {
	return fmt.Sprintf("%s %s was below its minimum from %s to the deadline at %s: %s",
		d.kind, d.name, Timestamp(d.since), Timestamp(d.deadline), d.counts)
}

// earlierDue returns the breach that is due first. A breach without a deadline is never due.
func earlierDue(a, b due) due {
	if a.deadline.IsZero() || !b.deadline.IsZero() && b.deadline.Before(a.deadline) {
		return b
	}
	return a
}

// dueBreach returns the first breach of a member. The zero value: there is none, or it has no deadline.
func (r GroupReplica) dueBreach(delay *time.Duration) due {
	var earliest due
	for _, c := range r.Members {
		if !c.Attempt.Precedes(r.Attempt) {
			earliest = earlierDue(earliest, c.dueBreach(delay))
		}
	}
	return earliest
}

func (r SetReplica) dueBreach() due {
	var earliest due
	for _, c := range r.Cliques {
		if c.Attempt.Set >= r.Attempt {
			earliest = earlierDue(earliest, c.dueBreach(r.Delay))
		}
	}
	for _, g := range r.Groups {
		if g.Attempt >= r.Attempt {
			earliest = earlierDue(earliest, g.dueBreach())
		}
	}
	return earliest
}

func (c Clique) dueBreach(delay *time.Duration) due {
	if c.Terminating || !c.Observed || c.BreachedSince.IsZero() || c.isReady() {
		return due{}
	}
	return due{kind: "PodClique", name: c.Name, counts: withCause(readyPods(c.Ready, c.MinAvailable), c.Cause), since: c.BreachedSince,
		deadline: Deadline(c.BreachedSince, delay)}
}

func (g ScalingGroup) dueBreach() due {
	if g.Terminating || !g.Observed || g.BreachedSince.IsZero() || g.Available() {
		return due{}
	}
	return due{kind: "PodCliqueScalingGroup", name: g.Name, since: g.BreachedSince, deadline: Deadline(g.BreachedSince, g.Delay),
		counts: withCause(fmt.Sprintf("%d of %d replicas available, %d needed", g.AvailableReplicas, g.Replicas, g.MinAvailable), g.Cause)}
}

// BreachedSince returns the beginning of the oldest breach that still lasts, of a standalone clique or a scaling group
// of the replica. Zero: there is none. A replica that has succeeded is never in breach.
func (r SetReplica) BreachedSince() time.Time {
	var since time.Time
	if r.Succeeded {
		return since
	}
	earlier := func(t time.Time) {
		if !t.IsZero() && (since.IsZero() || t.Before(since)) {
			since = t
		}
	}
	for _, c := range r.Cliques {
		if c.Attempt.Set >= r.Attempt && !c.Terminating {
			earlier(c.BreachedSince)
		}
	}
	for _, g := range r.Groups {
		if g.Attempt >= r.Attempt && !g.Terminating {
			earlier(g.BreachedSince)
		}
	}
	return since
}
