package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// BreachStatus is the status of the condition MinAvailableBreached. The values are those of the API.
type BreachStatus string

// Statuses of the condition MinAvailableBreached.
const (
	Breached      BreachStatus = "True"
	NotBreached   BreachStatus = "False"
	BreachUnknown BreachStatus = "Unknown"
)

// BreachReason is the reason of the condition MinAvailableBreached. The values are those of the API.
type BreachReason string

// Reasons of the condition MinAvailableBreached, in the order in which they are looked for. The first and the last are
// for PodCliques or for PodCliqueScalingGroups.
const (
	SufficientReadyPods   BreachReason = "SufficientReadyPods"
	SufficientReplicas    BreachReason = "SufficientAvailablePodCliqueScalingGroupReplicas"
	NeverAvailable        BreachReason = "NeverAvailable"
	UpdateInProgress      BreachReason = "UpdateInProgress"
	InsufficientReadyPods BreachReason = "InsufficientReadyPods"
	InsufficientReplicas  BreachReason = "InsufficientAvailablePodCliqueScalingGroupReplicas"
)

// Availability is what decides whether a PodClique or a PodCliqueScalingGroup is in breach of its minimum.
type Availability struct {
	// Available is how many of it are: pods that are ready and not terminating, or replicas (GroupReplica.Available).
	// Unknown is how many more may be. Needed is minAvailable, 0 when scaled to zero. Wanted is spec.replicas.
	Available, Unknown, Needed, Wanted int32
	// WasAvailable is recorded in the status, for the present attempt.
	WasAvailable bool
	// Updating: an update of it replaces pods.
	Updating bool
	// BreachedSince is when the status records that the breach began. Zero: there is none.
	BreachedSince time.Time
	// Delay is the effective termination delay. nil: it is never terminated.
	Delay *time.Duration
	// Cause says in the words of a message why some are not available, "" if nothing is known: LostNodes.
	Cause string
}

// Breach is what the status says about the minimum of a PodClique or a PodCliqueScalingGroup.
type Breach struct {
	// Undecided: what is known does not suffice. Status, Reason, Message and Since stay what they were, and are not set
	// here.
	Undecided bool

	Status  BreachStatus
	Reason  BreachReason
	Message string
	// Since is when the breach began, a whole second. Zero unless Status is Breached.
	Since time.Time
	// Deadline is when termination is due, a whole second. Zero: it is not, because there is no breach or no delay.
	Deadline time.Time
	// WasAvailable is to be recorded.
	WasAvailable bool
}

// JudgePods returns what a PodClique says about its minimum. Source: Gang Termination Design Doc, "PodClique Level
// Detection"; docs/decisions, T2, T3, T8.
func JudgePods(a Availability, now time.Time) Breach {
	return a.judge(SufficientReadyPods, InsufficientReadyPods, readyPods(a.Available, a.Needed), now)
}

// JudgeReplicas returns what a PodCliqueScalingGroup says about its minimum. Source: Gang Termination Design Doc,
// "PodCliqueScalingGroup Level Processing"; docs/decisions, T2 to T4, W3.
func JudgeReplicas(a Availability, now time.Time) Breach {
	text := fmt.Sprintf("%d of %d replicas available, %d needed", a.Available, a.Wanted, a.Needed)
	return a.judge(SufficientReplicas, InsufficientReplicas, text, now)
}

// LostNodes names the nodes of pods that do not answer, "" if there is none.
func LostNodes(pods []Pod) string {
	const shown = 3
	var names []string
	for _, p := range pods {
		if p.LostNode != "" && !slices.Contains(names, p.LostNode) {
			names = append(names, p.LostNode)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "node " + names[0] + " does not answer"
	}
	return "nodes " + message.List(names, shown, len(names), ", ") + " do not answer"
}

// MemberCauses returns the causes of the breaches of PodCliques of a scaling group, "" if none is known.
func MemberCauses(replicas []GroupReplica) string {
	const shown = 3
	var causes []string
	for _, r := range replicas {
		for _, c := range r.Members {
			if c.Cause != "" && !slices.Contains(causes, c.Cause) {
				causes = append(causes, c.Cause)
			}
		}
	}
	return message.List(causes, shown, len(causes), "; ")
}

// withCause appends the cause of a breach, unless it is "", to what counts.
func withCause(counts, cause string) string {
	if cause == "" {
		return counts
	}
	return counts + "; " + cause
}

func readyPods(ready, needed int32) string {
	return fmt.Sprintf("%s ready, %d needed", message.Are(int(ready), "pod"), needed)
}

// judge checks in the order of the Gang Termination Design Doc. counts is what all messages begin with.
func (a Availability) judge(sufficient, insufficient BreachReason, counts string, now time.Time) Breach {
	switch {
	case a.Needed <= 0:
		// A later scale-out is a new start: it is not terminated for what was available before.
		return Breach{Status: NotBreached, Reason: sufficient, Message: "nothing is needed"}
	case a.Available >= a.Needed:
		return Breach{Status: NotBreached, Reason: sufficient, Message: counts, WasAvailable: a.WasAvailable || !a.Updating}
	case !a.WasAvailable:
		return Breach{Status: NotBreached, Reason: NeverAvailable, Message: counts + "; there never were as many in this attempt"}
	case a.Available+a.Unknown >= a.Needed:
		b := Breach{Undecided: true, WasAvailable: true}
		if !a.BreachedSince.IsZero() {
			b.Deadline = Deadline(a.BreachedSince, a.Delay)
		}
		return b
	case a.Updating:
		return Breach{Status: BreachUnknown, Reason: UpdateInProgress, Message: counts + "; an update is in progress", WasAvailable: true}
	}
	since := breachedSince(a.BreachedSince, now)
	b := Breach{Status: Breached, Reason: insufficient, Since: since, Deadline: Deadline(since, a.Delay), WasAvailable: true}
	b.Message = fmt.Sprintf("%s, since %s; %s", withCause(counts, a.Cause), Timestamp(since), DeadlineText(b.Deadline))
	return b
}

// breachedSince returns when a breach that is seen now began: when it was recorded, or if it was not yet, now. A time
// in the future was recorded by a controller whose clock was ahead: the breach begins anew, so that it ends in time.
func breachedSince(recorded, now time.Time) time.Time {
	first := wholeSecond(now)
	if recorded.IsZero() || recorded.After(first) {
		return first
	}
	return recorded
}

// Deadline returns when termination is due after a breach that began at since: a whole second, never early. Zero:
// never, because delay is nil. A delay below zero, which admission refuses, is none. Source: docs/decisions, T8.
func Deadline(since time.Time, delay *time.Duration) time.Time {
	if delay == nil {
		return time.Time{}
	}
	return wholeSecond(since.Add(max(*delay, 0)))
}

// wholeSecond rounds up to the second, which is all that a status can hold.
func wholeSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		return whole.Add(time.Second)
	}
	return t
}

// Timestamp returns a time as the API writes it.
func Timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// DeadlineText returns what a message says about a deadline; zero: there is none.
func DeadlineText(deadline time.Time) string {
	if deadline.IsZero() {
		return "gang termination is off"
	}
	return "termination is due at " + Timestamp(deadline)
}
