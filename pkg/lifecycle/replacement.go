package lifecycle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// Attempt numbers the lives of a unit: of a replica of a PodCliqueSet, and inside of it of a replica of a scaling group.
// The zero value is the first life of both. PodCliques and pods carry the attempt that they were made for. Source:
// docs/decisions, T7.
type Attempt struct {
	// Set is that of the set replica.
	Set int32
	// Group is that of the scaling-group replica within this life of the set replica; 0 for what is in no scaling group.
	Group int32
}

// Compare returns a negative number if a is earlier than b, 0 if they are the same, and a positive number otherwise.
func (a Attempt) Compare(b Attempt) int {
	return cmp.Or(cmp.Compare(a.Set, b.Set), cmp.Compare(a.Group, b.Group))
}

// maxLead is how far the attempt of an object may be ahead of the recorded one.
const maxLead = 1 << 20

// Believed returns the attempt of a set replica that an object is taken to be of which says that it is of a, given the
// recorded one. An object may be ahead: the status that recorded its attempt was lost. But nobody replaced it a million times
// meanwhile: a number so far ahead was forged, or is from before the numbers began anew, and is taken as earlier than any.
func (a Attempt) Believed(recorded int32) Attempt {
	if a.Set-maxLead > recorded {
		return Attempt{Set: -1, Group: -1}
	}
	return a
}

// BelievedInGroup is Believed for a scaling-group replica. Nothing of it can be ahead of the attempt of its set replica, which
// the set tells the group before anything is made; and what the group raises is never beyond that.
func (a Attempt) BelievedInGroup(recorded Attempt) Attempt {
	switch {
	case a.Set > recorded.Set:
		return Attempt{Set: -1, Group: -1}
	case a.Set == recorded.Set && a.Group-maxLead > recorded.Group:
		return Attempt{Set: a.Set, Group: -1}
	}
	return a
}

// Precedes reports whether an object of the attempt is about to be deleted, given the recorded one. One of a later attempt is
// there to stay: the status that recorded it was lost.
func (a Attempt) Precedes(recorded Attempt) bool { return a.Compare(recorded) < 0 }

// ReplacementReason says in one word why a unit is replaced. The values are those of the API: v1alpha1.ReplicaAttempt.
type ReplacementReason string

// Reasons of a Replacement.
const (
	// ReplacedDeleted: all PodCliques of the unit were deleted.
	ReplacedDeleted ReplacementReason = "PodCliquesDeleted"
	// ReplacedTermination: the unit was below its minimum for longer than the termination delay.
	ReplacedTermination ReplacementReason = "Termination"
	// ReplacedRestart: the unit of a training workload failed.
	ReplacedRestart ReplacementReason = "Restart"
	// ReplacedUpdate: the unit has pods of an earlier template.
	ReplacedUpdate ReplacementReason = "Update"
)

// Replacement is why a unit is replaced; it is recorded with the attempt. The zero value: it is not. Source:
// docs/decisions, T7.
type Replacement struct {
	Reason ReplacementReason
	// Message is one sentence for users, without a full stop.
	Message string
}

// Requested reports whether a replacement is asked for.
func (r Replacement) Requested() bool { return r.Reason != "" }

// Raised is an attempt that is raised, and why.
type Raised struct {
	// Attempt is the new number.
	Attempt int32
	Replacement
}

// Unit is what is replaced whole: a replica of a PodCliqueSet or of a PodCliqueScalingGroup.
type Unit struct {
	// OfGroup: it is a replica of a PodCliqueScalingGroup.
	OfGroup bool
	// Attempt is the one that the status of the owner records. Attempts of a set replica, here and below, have Group 0. Those
	// below are believed: Attempt.Believed.
	Attempt Attempt
	// Wanted are the names of the PodCliques that the unit consists of.
	Wanted []string
	// Cliques are those of them that exist.
	Cliques []UnitClique
	// Pods are the pods of these PodCliques and of PodCliques of these names that are gone. Of a scaling-group replica also
	// the other pods of the set replica: none of an earlier life of the set replica may be left.
	Pods []UnitPod
	// Admitted: the unit has a PodGroup of its own, made for Attempt, which is admitted.
	Admitted bool
	// Replace asks for the unit to be replaced because of what its PodCliques of Attempt are, or were. Without effect if none
	// of them is there to stay: then it is replaced already.
	Replace Replacement
}

// UnitClique is a PodClique of a unit.
type UnitClique struct {
	Name, UID   string
	Attempt     Attempt
	Terminating bool
}

// UnitPod is a pod that a unit has to do with.
type UnitPod struct {
	Name string
	// Clique and CliqueUID are of the PodClique that it was made for, whether or not it exists.
	Clique, CliqueUID string
	Attempt           Attempt
	// Elsewhere: the pod is of another unit of the same set replica.
	Elsewhere bool
	// Terminating, Unreachable and GraceEnds are as in Pod.
	Terminating, Unreachable bool
	GraceEnds                time.Time
}

func (p UnitPod) lost(now time.Time) bool {
	return Pod{Terminating: p.Terminating, Unreachable: p.Unreachable, GraceEnds: p.GraceEnds}.lost(now)
}

// UnitDecision is what to do about the PodCliques of a unit.
type UnitDecision struct {
	// Attempt is the attempt to record. If it differs from Unit.Attempt the unit is replaced because of Replacement: record
	// both, and decide again.
	Attempt Attempt
	// Replacement is the zero value if Attempt does not differ.
	Replacement Replacement
	// Delete names the PodCliques of earlier attempts that are to be deleted, sorted.
	Delete []string
	// Create names the PodCliques that are to be made, in the order of Unit.Wanted.
	Create []string
	// Waits are the pods of earlier PodCliques that a PodClique waits for, by name; WaitsFor the PodCliques. Nothing is made
	// in their stead before they are gone or lost. Both sorted.
	Waits    []UnitPod
	WaitsFor []string
	// Earlier: something of an earlier attempt exists. The PodGroup of the present attempt is not made before it is gone, or its
	// pods would count towards that.
	Earlier bool
	// RequeueAfter is when the decision changes without anything happening; 0: it does not.
	RequeueAfter time.Duration
}

// DecideUnit returns which PodCliques of a unit to make and which to delete. Source: docs/decisions, W10, T7.
//
//   - PodCliques of an earlier attempt are deleted. As long as one of them or a pod of an earlier attempt exists, no PodClique
//     is made.
//   - A unit all of whose PodCliques are gone or going, while pods of them exist or the scheduler has it as admitted, is
//     replaced whole, whoever deleted them: its attempt is raised.
//   - A unit that Unit.Replace asks to be replaced is: its attempt is raised, healthy PodCliques included.
//   - A PodClique that is gone alone is made again when the pods that it leaves are gone. By then it shows whether others
//     were deleted with it.
//   - Pods that are lost are waited for no longer: their nodes are unreachable and their grace period is over.
//
// The pods and PodCliques have to be known as they are: ask the API server before what Create names is made.
func DecideUnit(u Unit, now time.Time) UnitDecision {
	d := UnitDecision{Attempt: u.Attempt}
	exists := map[string]bool{} // of any attempt, terminating or not
	owners := map[string]bool{} // UIDs of PodCliques that stay
	earlier, going := false, false
	latest := u.Attempt
	for _, c := range u.Cliques {
		exists[c.Name] = true
		switch {
		case c.Attempt.Compare(u.Attempt) < 0:
			earlier = true
			d.WaitsFor = append(d.WaitsFor, c.Name)
			if !c.Terminating {
				d.Delete = append(d.Delete, c.Name)
			}
		case c.Terminating:
			going = true
			d.WaitsFor = append(d.WaitsFor, c.Name)
		default:
			owners[c.UID] = true
		}
		if c.Attempt.Compare(latest) > 0 {
			latest = c.Attempt
		}
	}

	waits := map[string]bool{} // for pods of this attempt, by the name of their PodClique
	for _, p := range u.Pods {
		if p.lost(now) {
			continue
		}
		isEarlier := p.Attempt.Set < u.Attempt.Set || !p.Elsewhere && p.Attempt.Compare(u.Attempt) < 0
		if !isEarlier && (p.Elsewhere || owners[p.CliqueUID] || !slices.Contains(u.Wanted, p.Clique)) {
			continue
		}
		if isEarlier {
			earlier = true
		} else {
			waits[p.Clique] = true
			if p.Attempt.Compare(latest) > 0 {
				latest = p.Attempt
			}
		}
		d.Waits = append(d.Waits, p)
		if p.Terminating && p.Unreachable {
			d.RequeueAfter = Sooner(d.RequeueAfter, max(p.GraceEnds.Sub(now), time.Millisecond))
		}
	}
	slices.Sort(d.Delete)
	slices.Sort(d.WaitsFor)
	slices.SortFunc(d.Waits, func(a, b UnitPod) int { return cmp.Compare(a.Name, b.Name) })

	var replacement Replacement
	switch {
	case u.Replace.Requested() && len(owners) > 0:
		replacement = u.Replace
	case len(u.Wanted) > 0 && len(owners) == 0 && len(d.Delete) == 0 && (going || len(waits) > 0 || u.Admitted):
		replacement = Replacement{Reason: ReplacedDeleted, Message: "all its PodCliques were deleted"}
	}
	if replacement.Requested() {
		d.Attempt, d.Replacement = u.next(latest), replacement
		return d
	}
	if earlier {
		d.Earlier = true
		return d
	}
	for _, name := range u.Wanted {
		if !exists[name] && !waits[name] {
			d.Create = append(d.Create, name)
		}
	}
	return d
}

// next returns the attempt that follows on all that were seen: the status that recorded them may have gone with its object.
func (u Unit) next(latest Attempt) Attempt {
	if !u.OfGroup {
		return Attempt{Set: following(latest.Set)}
	}
	group := u.Attempt.Group
	if latest.Set == u.Attempt.Set {
		group = max(group, latest.Group)
	}
	return Attempt{Set: u.Attempt.Set, Group: following(group)}
}

// following returns the number after n. After the largest the numbers begin anew; see Attempt.Believed.
func following(n int32) int32 {
	if n == math.MaxInt32 {
		return 1
	}
	return n + 1
}

// Recheck returns the decision, to be made again after RecheckAfter at the latest.
func (d UnitDecision) Recheck() UnitDecision {
	d.RequeueAfter = Sooner(d.RequeueAfter, RecheckAfter)
	return d
}

// UnderWay returns of how many units something of an earlier attempt exists.
func UnderWay(decisions []UnitDecision) int {
	n := 0
	for _, d := range decisions {
		if d.Earlier {
			n++
		}
	}
	return n
}

// Frozen returns the decision on a unit of that attempt in which nothing is created any more: it is neither completed nor
// replaced. What is of an earlier attempt goes. Source: docs/decisions, J5, J6.
func (d UnitDecision) Frozen(attempt Attempt) UnitDecision {
	if d.Attempt != attempt {
		return UnitDecision{Attempt: attempt}
	}
	d.Create = nil
	return d
}

// Note says what the unit waits for before PodCliques are created, "" if for nothing.
func (d UnitDecision) Note() string {
	const shown = 3
	switch {
	case len(d.WaitsFor) > 0:
		return fmt.Sprintf("waits until PodClique %s is gone", message.List(d.WaitsFor, shown, len(d.WaitsFor), ", "))
	case len(d.Waits) > 0:
		var names []string
		for _, p := range d.Waits {
			names = append(names, p.Name)
		}
		return fmt.Sprintf("waits until pod %s of an earlier PodClique is gone", message.List(names, shown, len(names), ", "))
	}
	return ""
}
