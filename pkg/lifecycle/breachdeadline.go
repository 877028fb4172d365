// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// BreachStatus is the status of the condition MinAvailableBreached, with the values of the API.
type BreachStatus string

// Statuses of the condition MinAvailableBreached.
const (
	Breached      BreachStatus = "True"
	NotBreached   BreachStatus = "False"
	BreachUnknown BreachStatus = "Unknown"
)

// BreachReason is the reason of the condition MinAvailableBreached, with the values of the API.
type BreachReason string

// Reasons of the condition MinAvailableBreached, in the order in which they are checked. The first and the last exist
// in two forms, for PodCliques and for PodCliqueScalingGroups.
const (
	SufficientReadyPods   BreachReason = "SufficientReadyPods"
	SufficientReplicas    BreachReason = "SufficientAvailablePodCliqueScalingGroupReplicas"
	NeverAvailable        BreachReason = "NeverAvailable"
	UpdateInProgress      BreachReason = "UpdateInProgress"
	InsufficientReadyPods BreachReason = "InsufficientReadyPods"
	InsufficientReplicas  BreachReason = "InsufficientAvailablePodCliqueScalingGroupReplicas"
)

// PodsPreempted is the reason instead of InsufficientReadyPods for a PodClique of a Training workload all of whose
// missing pods were preempted by a scheduler. Source: docs/decisions, J9.
const PodsPreempted BreachReason = "PodsPreempted"

// PodsLost is the reason if each of the missing pods was lost with its node or preempted. Source: docs/decisions, T9.
const PodsLost BreachReason = "PodsLost"

// Availability contains the facts that decide whether a PodClique or a PodCliqueScalingGroup is in breach of its
// minimum.
type Availability struct {
	// Available is the number of pods that are ready and not terminating, or of replicas that are available
	// (GroupReplica.Available). Unknown is the number of further ones that may be available. Needed is minAvailable, 0
	// when scaled to zero. Wanted is spec.replicas.
	Available, Unknown, Needed, Wanted int32
	// Silent is the number of further ones of which it is not known whether they are available, because those who could
	// tell do not answer; Silence is why.
	Silent  int32
	Silence Silence
	// WasAvailable is the value recorded in the status for the current attempt.
	WasAvailable bool
	// Updating: an update replaces pods.
	Updating bool
	// BreachedSince is the beginning of the breach that the status records. Zero: there is none.
	BreachedSince time.Time
	// Delay is the effective termination delay. nil: gang termination is off.
	Delay *time.Duration
	// IsFinal: the workload has failed, and the status records a breach, which stays as it is: it says what was
	// missing.
	IsFinal bool
	// Cause is text for the message about why some are not available, "" if the cause is unknown. See LostNodes.
	Cause string
}

// Breach is the part of a status that describes the minimum of a PodClique or a PodCliqueScalingGroup.
type Breach struct {
	// Undecided: the facts are not sufficient to decide. Status, Reason, Message and Since are not set here and stay
	// what they were in the status.
	Undecided bool

	Status  BreachStatus
	Reason  BreachReason
	Message string
	// Since is when the breach began, in whole seconds. Zero unless Status is Breached.
	Since time.Time
	// Deadline is when termination is due, in whole seconds. Zero: never, because there is no breach or no delay.
	Deadline time.Time
	// WasAvailable is the value to record.
	WasAvailable bool
}

// JudgePods returns the breach status of a PodClique. Source: Gang Termination Design Doc, "PodClique Level
// Detection"; docs/decisions, T2, T3, T8.
func JudgePods(a Availability, now time.Time) Breach {
	return a.judgeMinimum(SufficientReadyPods, InsufficientReadyPods, readyPods(a.Available, a.Needed), now)
}

// JudgeReplicas returns the breach status of a PodCliqueScalingGroup. Source: Gang Termination Design Doc,
// "PodCliqueScalingGroup Level Processing"; docs/decisions, T2 to T4, W3.
func JudgeReplicas(a Availability, now time.Time) Breach {
	text := fmt.Sprintf("%d of %d replicas available, %d needed", a.Available, a.Wanted, a.Needed)
	return a.judgeMinimum(SufficientReplicas, InsufficientReplicas, text, now)
}

// LostNodes returns a text that lists the nodes of pods that do not respond, "" if there is none.
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
	return "nodes " + message.ListNames(names, shown, len(names), ", ") + " do not answer"
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
	return message.ListNames(causes, shown, len(causes), "; ")
}

// PreemptedBy returns the clause about a preemption by a gang: see Pod.PreemptedBy.
func PreemptedBy(preemptor string) string { return "preempted by PodGroup " + preemptor }

// withCause appends the cause of a breach, unless it is "", to the text with the counts.
func withCause(counts, cause string) string {
	if cause == "" {
		return counts
	}
	return counts + "; " + cause
}

func readyPods(ready, needed int32) string {
	return fmt.Sprintf("%s ready, %d needed", message.CountAre(int(ready), "pod"), needed)
}

// judgeMinimum checks the conditions in the order of the Gang Termination Design Doc. Every message begins with counts.
func (a Availability) judgeMinimum(sufficient, insufficient BreachReason, counts string, now time.Time) Breach {
	switch {
	case a.IsFinal:
		return Breach{Undecided: true, WasAvailable: a.WasAvailable}
	case a.Needed <= 0:
		// A later scale-out is a new start: earlier availability does not count for termination.
		return Breach{Status: NotBreached, Reason: sufficient, Message: "nothing is needed"}
	case a.Available >= a.Needed:
		return Breach{Status: NotBreached, Reason: sufficient, Message: counts, WasAvailable: a.WasAvailable || !a.Updating}
	case a.Silent > 0 && a.Available+a.Silent >= a.Needed: // a breach that was observed before is over: the next one starts a new timer
		return Breach{Status: BreachUnknown, Reason: a.Silence.Reason, Message: counts + "; " + a.Silence.String(), WasAvailable: a.WasAvailable}
	case !a.WasAvailable:
		return Breach{Status: NotBreached, Reason: NeverAvailable, Message: counts + "; there never were as many in this attempt"}
	case a.Available+a.Unknown+a.Silent >= a.Needed:
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

// breachedSince returns the beginning of a breach that is observed now: the recorded time, or now if none was
// recorded. A recorded time in the future was written by a controller whose clock was ahead; the breach then begins
// now, so that its deadline is not too late.
func breachedSince(recorded, now time.Time) time.Time {
	first := wholeSecond(now)
	if recorded.IsZero() || recorded.After(first) {
		return first
	}
	return recorded
}

// Deadline returns when termination is due after a breach that began at since, rounded up to a whole second. Zero:
// never, because delay is nil. A negative delay, which admission rejects, is treated as 0. Source: docs/decisions, T8.
func Deadline(since time.Time, delay *time.Duration) time.Time {
	if delay == nil {
		return time.Time{}
	}
	return wholeSecond(since.Add(max(*delay, 0)))
}

// wholeSecond rounds up to a whole second, the precision of times in a status.
func wholeSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		return whole.Add(time.Second)
	}
	return t
}

// Timestamp formats a time like the API.
func Timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// DeadlineText returns the part of a message that describes a deadline; zero: there is none.
func DeadlineText(deadline time.Time) string {
	if deadline.IsZero() {
		return "gang termination is off"
	}
	return "termination is due at " + Timestamp(deadline)
}
