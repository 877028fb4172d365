package lifecycle

import (
	"fmt"
	"time"
)

// EffectiveDelay returns the termination delay of a scaling group: its override, else that of the set. Without the
// set's there is none: gang termination is off. Source: Gang Termination Design Doc, "PCSG TerminationDelay Override".
func EffectiveDelay(set, override *time.Duration) *time.Duration {
	if set == nil || override == nil {
		return set
	}
	return override
}

// GroupTermination is what decides which replicas a scaling group terminates itself.
type GroupTermination struct {
	// Replicas are those that are wanted and of which a PodClique exists.
	Replicas []GroupReplica
	// MinAvailable is how many replicas must be available.
	MinAvailable int32
	// Delay is the effective termination delay of the group. nil: nothing is terminated.
	Delay *time.Duration
	// ReportsOnly: the group terminates nothing itself. Its breach is the set's concern, as in Training workloads.
	ReportsOnly bool
}

// Termination is what is terminated, and when the next is.
type Termination struct {
	// Replicas are to be replaced now, and why, by index. nil: none.
	Replicas map[int]Replacement
	// Next is the earliest deadline that has not passed, a whole second. Zero: there is none.
	Next time.Time
}

// RequeueAfter returns when the decision changes without anything happening; 0: it does not.
func (t Termination) RequeueAfter(now time.Time) time.Duration {
	if t.Next.IsZero() {
		return 0
	}
	return max(t.Next.Sub(now), time.Millisecond)
}

// RecheckAfter is when a termination or a restart is decided on again that is due by what the cache shows and not by
// what the API server has. The cache catches up, but a breach that ended only for a moment changes no status, and
// no event would follow.
const RecheckAfter = time.Second

func (t *Termination) add(index int, d due, now time.Time) {
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

// DecideGroupTermination returns which replicas a scaling group terminates itself: those with a PodClique in breach for
// longer than the delay, as long as enough others are available. Else the group is in breach itself, and the set
// decides. A PodClique counts only if its status is of its present spec and it was made for the present attempt of its
// replica: what is not known, and what is replaced already, terminates nothing. Source: Gang Termination Design Doc,
// "Two-level protection at PCSG"; docs/decisions, T4, T7, W3.
func DecideGroupTermination(g GroupTermination, now time.Time) Termination {
	var t Termination
	if available, _ := CountAvailable(g.Replicas); g.ReportsOnly || available < g.MinAvailable {
		return t
	}
	for _, r := range g.Replicas {
		t.add(r.Index, r.due(g.Delay), now)
	}
	return t
}

// DecideSetTermination returns which replicas of a set are terminated: those with a standalone PodClique or a scaling
// group in breach for longer than its delay. What is not known, and what is of an earlier attempt, terminates nothing.
// Source: Gang Termination Design Doc, "PodCliqueSet Level Termination"; docs/decisions, T5, T7, W3.
func DecideSetTermination(replicas []SetReplica, now time.Time) Termination {
	var t Termination
	for _, r := range replicas {
		t.add(r.Index, r.due(), now)
	}
	return t
}

// CountAvailable returns how many replicas of a scaling group are available for certain, and how many more may be.
func CountAvailable(replicas []GroupReplica) (available, unknown int32) {
	for _, r := range replicas {
		switch {
		case !r.Available():
			// Not even by what is not known yet: a status that is behind may have been better or worse.
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

// observed reports whether the status of every member clique is of its present spec.
func (r GroupReplica) observed() bool { return r.all(func(c Clique) bool { return c.Observed }) }

// mayBeAvailable reports whether the replica would be available if what is not known were so.
func (r GroupReplica) mayBeAvailable() bool {
	return r.all(func(c Clique) bool {
		return r.available(c) || !c.Attempt.Precedes(r.Attempt) && !c.Terminating && !c.Observed
	})
}

// due is the first breach for which a unit is terminated.
type due struct {
	kind, name string
	counts     string
	since      time.Time
	deadline   time.Time // zero: never
}

// message returns the reason of a termination, for events and statuses.
func (d due) message() string {
	return fmt.Sprintf("%s %s was below its minimum from %s to the deadline at %s: %s",
		d.kind, d.name, Timestamp(d.since), Timestamp(d.deadline), d.counts)
}

// first returns the one of two that is due first. One without a deadline never is.
func first(a, b due) due {
	if a.deadline.IsZero() || !b.deadline.IsZero() && b.deadline.Before(a.deadline) {
		return b
	}
	return a
}

// due returns the first breach of a member. The zero value: there is none, or it has no deadline.
func (r GroupReplica) due(delay *time.Duration) due {
	var earliest due
	for _, c := range r.Members {
		if !c.Attempt.Precedes(r.Attempt) {
			earliest = first(earliest, c.due(delay))
		}
	}
	return earliest
}

func (r SetReplica) due() due {
	var earliest due
	for _, c := range r.Cliques {
		if c.Attempt.Set >= r.Attempt {
			earliest = first(earliest, c.due(r.Delay))
		}
	}
	for _, g := range r.Groups {
		if g.Attempt >= r.Attempt {
			earliest = first(earliest, g.due())
		}
	}
	return earliest
}

func (c Clique) due(delay *time.Duration) due {
	if c.Terminating || !c.Observed || c.BreachedSince.IsZero() || c.Available() {
		return due{}
	}
	return due{kind: "PodClique", name: c.Name, counts: withCause(readyPods(c.Ready, c.MinAvailable), c.Cause), since: c.BreachedSince,
		deadline: Deadline(c.BreachedSince, delay)}
}

func (g ScalingGroup) due() due {
	if g.Terminating || !g.Observed || g.BreachedSince.IsZero() || g.Available() {
		return due{}
	}
	return due{kind: "PodCliqueScalingGroup", name: g.Name, since: g.BreachedSince, deadline: Deadline(g.BreachedSince, g.Delay),
		counts: withCause(fmt.Sprintf("%d of %d replicas available, %d needed", g.AvailableReplicas, g.Replicas, g.MinAvailable), g.Cause)}
}

// BreachedSince returns when the first breach of a standalone clique or scaling group of the replica began that lasts.
// Zero: there is none. What is left of a replica that has succeeded is in no breach.
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
