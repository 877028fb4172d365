// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// Attempt counts how often a unit was replaced: a replica of a PodCliqueSet, and within it a replica of a scaling
// group. The zero value is the first attempt of both. PodCliques and pods record the attempt that they were created
// for. Source: docs/decisions, T7.
type Attempt struct {
	// Set is the attempt of the set replica.
	Set int32
	// Group is the attempt of the scaling-group replica within this attempt of the set replica; 0 outside of scaling
	// groups.
	Group int32
}

// Compare returns a negative number if a is earlier than b, 0 if they are the same, and a positive number otherwise.
func (a Attempt) Compare(b Attempt) int {
	return cmp.Or(cmp.Compare(a.Set, b.Set), cmp.Compare(a.Group, b.Group))
}

// OfFormerSet is the attempt of objects that a deleted PodCliqueSet of the same name has left. It precedes every
// attempt: the objects are waited for, and are no evidence about the units of their successor. Source: docs/decisions,
// W10.
var OfFormerSet = Attempt{Set: -1, Group: -1}

// maxLead is the maximum difference by which the attempt of an object may exceed the recorded one.
const maxLead = 1 << 20

// Believed returns the effective attempt of an object of a set replica that is labelled with attempt a, given the
// recorded attempt. An object may have a higher attempt than the status, if the status that recorded it was lost. But
// a replica is not replaced a million times in the meantime: a number that is higher by more than maxLead was forged,
// or dates from before the numbers wrapped around, and is treated as earlier than every other.
func (a Attempt) Believed(recorded int32) Attempt {
	if a.Set-maxLead > recorded {
		return Attempt{Set: -1, Group: -1}
	}
	return a
}

// BelievedInGroup is Believed for a scaling-group replica. Its objects cannot have a higher attempt of the set replica
// than the recorded one, because the set writes that to the group before any object is created, and the group raises
// only its own part of the attempt.
func (a Attempt) BelievedInGroup(recorded Attempt) Attempt {
	switch {
	case a.Set > recorded.Set:
		return Attempt{Set: -1, Group: -1}
	case a.Set == recorded.Set && a.Group-maxLead > recorded.Group:
		return Attempt{Set: a.Set, Group: -1}
	}
	return a
}

// Precedes reports whether an object of the attempt is about to be deleted, given the recorded attempt. An object of a
// later attempt stays: the status that recorded its attempt was lost.
func (a Attempt) Precedes(recorded Attempt) bool { return a.Compare(recorded) < 0 }

// ReplacementReason is why a unit is replaced, with the values of the API: v1alpha1.ReplicaAttempt.
type ReplacementReason string

// Reasons of a Replacement.
const (
	// ReplacedDeleted: all PodCliques of the unit were deleted.
	ReplacedDeleted ReplacementReason = "PodCliquesDeleted"
	// ReplacedTermination: the unit was below its minimum for longer than the termination delay.
	ReplacedTermination ReplacementReason = "Termination"
	// ReplacedRestart: the unit of a training workload failed.
	ReplacedRestart ReplacementReason = "Restart"
	// ReplacedPreemption: pods of the unit of a training workload were preempted.
	ReplacedPreemption ReplacementReason = "Preemption"
	// ReplacedNodesLost: pods of the unit of a training workload were lost with their nodes.
	ReplacedNodesLost ReplacementReason = "NodesLost"
	// ReplacedUpdate: the unit has pods of an earlier template.
	ReplacedUpdate ReplacementReason = "Update"
)

// Replacement describes why a unit is replaced; it is recorded together with the attempt. The zero value: the unit is
// not replaced. Source: docs/decisions, T7.
type Replacement struct {
	Reason ReplacementReason
	// Message is one sentence for users, without a full stop.
	Message string
	// Since is when the breach began because of which the unit is restarted; zero: there is no such breach.
	Since time.Time
}

// Requested reports whether a replacement is requested.
func (r Replacement) Requested() bool { return r.Reason != "" }

// Raised is an attempt, and why and when it was raised. The zero value: the first attempt.
type Raised struct {
	Attempt int32
	Replacement
	// At is when a recorded attempt was raised. Zero for one that is to be recorded.
	At time.Time
}

// Unit contains the facts about a unit that is replaced as a whole: a replica of a PodCliqueSet or of a
// PodCliqueScalingGroup.
type Unit struct {
	// OfGroup: it is a replica of a PodCliqueScalingGroup.
	OfGroup bool
	// Attempt is the attempt that the status of the owner records. Attempts of a set replica, here and below, have
	// Group 0. The attempts below have been converted by Attempt.Believed.
	Attempt Attempt
	// Wanted are the names of the PodCliques that the unit consists of.
	Wanted []string
	// Cliques are the existing ones.
	Cliques []UnitClique
	// Pods are the pods of these PodCliques and of deleted PodCliques with these names. For a scaling-group replica
	// they also include the other pods of the set replica, because pods of an earlier attempt of the set replica must
	// be gone too.
	Pods []UnitPod
	// Replacing: a part of the unit has no PodCliques at present, because the status of a scaling group records that it
	// replaces it.
	Replacing bool
	// Admitted: the unit has a PodGroup of its own, which was created for Attempt and is admitted.
	Admitted bool
	// NotBefore is when PodCliques of Attempt are created at the earliest, zero: immediately; RaisedAt is when Attempt
	// was raised.
	NotBefore, RaisedAt time.Time
	// Replace requests that the unit is replaced because of the state of its PodCliques of Attempt. It has no effect
	// if all of them are being deleted, because the unit is then replaced already.
	Replace Replacement
}

// UnitClique is a PodClique of a unit.
type UnitClique struct {
	Name, UID   string
	Attempt     Attempt
	Terminating bool
	// Explained: in a set replica, the PodClique is replaced by its scaling group: it precedes the attempt that the
	// status of the group records.
	Explained bool
}

// UnitPod contains the facts about a pod that is relevant to a unit.
type UnitPod struct {
	Name string
	// Clique and CliqueUID are the name and UID of the PodClique that the pod was created for, whether it still exists
	// or not.
	Clique, CliqueUID string
	Attempt           Attempt
	// Elsewhere: the pod belongs to another unit of the same set replica.
	Elsewhere bool
	// Explained is as in UnitClique.
	Explained bool
	// Terminating, Unreachable and GraceEnds are as in Pod.
	Terminating, Unreachable bool
	GraceEnds                time.Time
}

func (p UnitPod) isLost(now time.Time) bool {
	return Pod{Terminating: p.Terminating, Unreachable: p.Unreachable, GraceEnds: p.GraceEnds}.isLost(now)
}

// UnitDecision is the decision on the PodCliques of a unit.
type UnitDecision struct {
	// Attempt is the attempt to record. If it differs from Unit.Attempt, the unit is replaced because of Replacement:
	// the caller records both, and decides again.
	Attempt Attempt
	// Replacement is the zero value if Attempt does not differ.
	Replacement Replacement
	// Delete are the names of the PodCliques of earlier attempts to delete, sorted.
	Delete []string
	// Create are the names of the PodCliques to create, in the order of Unit.Wanted.
	Create []string
	// Waits are the pods of earlier PodCliques that the creation of a PodClique waits for, by name; WaitsFor are such
	// PodCliques. PodCliques are not recreated until these are gone or lost. Both are sorted.
	Waits    []UnitPod
	WaitsFor []string
	// Earlier: an object of an earlier attempt exists. The PodGroup of the current attempt is not created before it is
	// gone, because its pods would count towards that PodGroup.
	Earlier bool
	// Paused describes what the creation of the PodGroup and the PodCliques waits for: the time of a restart, or what
	// Pause was given; "" if it does not wait.
	Paused string
	// RequeueAfter is when the decision changes without an event; 0: it does not.
	RequeueAfter time.Duration
}

// DecideUnit returns which PodCliques of a unit to create and which to delete. Source: docs/decisions, W10, T7, J12.
//
//   - PodCliques of an earlier attempt are deleted. As long as one of them or a pod of an earlier attempt exists, no
//     PodClique is created.
//   - If all PodCliques of a unit are gone or being deleted, while pods of them exist or the unit is admitted, a user
//     has deleted them, and the whole unit is replaced: its attempt is raised. In a set replica this is not inferred
//     while a scaling group replaces a part of it, because the group has deleted these PodCliques.
//   - The PodCliques of an attempt are not created before Unit.NotBefore. A clock that was ahead when that was
//     recorded, so that the attempt was raised in the future, delays nothing.
//   - If Unit.Replace requests a replacement, the attempt is raised and healthy PodCliques are replaced too.
//   - If a single PodClique is gone, it is recreated when its remaining pods are gone. By then it is known whether
//     other PodCliques were deleted with it.
//   - Lost pods are not waited for: their nodes are unreachable and their grace period is over.
//
// The facts about pods and PodCliques may be outdated when they come from a cache: the caller must read them from the
// API server before it creates the PodCliques in Create.
func DecideUnit(u Unit, now time.Time) UnitDecision {
	d := UnitDecision{Attempt: u.Attempt}
	c := unitCount{exists: map[string]bool{}, owners: map[string]bool{}, waits: map[string]bool{}, explained: u.Replacing, latest: u.Attempt}
	c.addCliques(u, &d)
	c.addPods(u, &d, now)
	var replacement Replacement
	switch {
	case u.Replace.Requested() && len(c.owners) > 0:
		replacement = u.Replace
	case len(u.Wanted) > 0 && len(c.owners) == 0 && len(d.Delete) == 0 && !c.explained && (c.going || len(c.waits) > 0 || u.Admitted):
		replacement = Replacement{Reason: ReplacedDeleted, Message: "all its PodCliques were deleted"}
	}
	switch {
	case replacement.Requested():
		d.Attempt, d.Replacement = u.nextAttempt(c.latest), replacement
		return d
	case c.earlier:
		d.Earlier = true
		return d
	case now.Before(u.NotBefore) && !now.Before(u.RaisedAt):
		d.Paused = fmt.Sprintf("waits until %s before it starts again", Timestamp(u.NotBefore))
		d.RequeueAfter = Sooner(d.RequeueAfter, u.NotBefore.Sub(now))
		return d
	}
	for _, name := range u.Wanted {
		if !c.exists[name] && !c.waits[name] {
			d.Create = append(d.Create, name)
		}
	}
	return d
}

// unitCount is what the PodCliques and pods of a unit say about it.
type unitCount struct {
	exists map[string]bool // names of PodCliques of any attempt, terminating or not
	owners map[string]bool // UIDs of PodCliques that are not being deleted
	waits  map[string]bool // names of PodCliques that pods of this attempt belong to, which must be gone before
	// earlier: there is an object of an earlier attempt. going: a PodClique of this attempt is being deleted.
	// explained: the scaling group of a PodClique or pod replaces it.
	earlier, going, explained bool
	latest                    Attempt
}

func (c *unitCount) addCliques(u Unit, d *UnitDecision) {
	for _, clique := range u.Cliques {
		c.exists[clique.Name] = true
		c.explained = c.explained || clique.Explained
		switch {
		case clique.Attempt.Compare(u.Attempt) < 0:
			c.earlier = true
			d.WaitsFor = append(d.WaitsFor, clique.Name)
			if !clique.Terminating {
				d.Delete = append(d.Delete, clique.Name)
			}
		case clique.Terminating:
			c.going = true
			d.WaitsFor = append(d.WaitsFor, clique.Name)
		default:
			c.owners[clique.UID] = true
		}
		if clique.Attempt.Compare(c.latest) > 0 {
			c.latest = clique.Attempt
		}
	}
	slices.Sort(d.Delete)
	slices.Sort(d.WaitsFor)
}

// addPods adds the pods after addCliques.
func (c *unitCount) addPods(u Unit, d *UnitDecision, now time.Time) {
	for _, p := range u.Pods {
		if p.isLost(now) {
			continue
		}
		isEarlier := p.Attempt.Set < u.Attempt.Set || !p.Elsewhere && p.Attempt.Compare(u.Attempt) < 0
		if !isEarlier && (p.Elsewhere || c.owners[p.CliqueUID] || !slices.Contains(u.Wanted, p.Clique)) {
			continue
		}
		c.explained = c.explained || p.Explained
		if isEarlier {
			c.earlier = true
		} else {
			c.waits[p.Clique] = true
			if p.Attempt.Compare(c.latest) > 0 {
				c.latest = p.Attempt
			}
		}
		d.Waits = append(d.Waits, p)
		if p.Terminating && p.Unreachable {
			d.RequeueAfter = Sooner(d.RequeueAfter, delayUntil(p.GraceEnds, now))
		}
	}
	slices.SortFunc(d.Waits, func(a, b UnitPod) int { return cmp.Compare(a.Name, b.Name) })
}

// nextAttempt returns the attempt after all observed ones, because the status that recorded them may have been deleted
// with its object.
func (u Unit) nextAttempt(latest Attempt) Attempt {
	if !u.OfGroup {
		return Attempt{Set: following(latest.Set)}
	}
	group := u.Attempt.Group
	if latest.Set == u.Attempt.Set {
		group = max(group, latest.Group)
	}
	return Attempt{Set: u.Attempt.Set, Group: following(group)}
}

// following returns the number after n. After the largest, the numbers wrap around; see Attempt.Believed.
func following(n int32) int32 {
	if n == math.MaxInt32 {
		return 1
	}
	return n + 1
}

// Recheck returns the decision with a requeue after RecheckAfter at the latest.
func (d UnitDecision) Recheck() UnitDecision {
	d.RequeueAfter = Sooner(d.RequeueAfter, RecheckAfter)
	return d
}

// LeftToSet returns the decision for a scaling-group replica of the given attempt whose PodCliques were deleted
// together with all others of the set replica: the set replaces all of them. Until then nothing is created.
func (d UnitDecision) LeftToSet(attempt Attempt) UnitDecision {
	return UnitDecision{Attempt: attempt, Waits: d.Waits, WaitsFor: d.WaitsFor, RequeueAfter: d.RequeueAfter}.Recheck()
}

// RaisedAttempts returns the attempts that the decisions raise, by index. current returns the current attempt of a
// unit.
func RaisedAttempts(decisions []UnitDecision, current func(i int) Attempt) map[int]Raised {
	raised := map[int]Raised{}
	for i, d := range decisions {
		if was := current(i); d.Attempt.Set != was.Set {
			raised[i] = Raised{Attempt: d.Attempt.Set, Replacement: d.Replacement}
		} else if d.Attempt != was {
			raised[i] = Raised{Attempt: d.Attempt.Group, Replacement: d.Replacement}
		}
	}
	return raised
}

// UnderWay returns the number of units of which an object of an earlier attempt exists.
func UnderWay(decisions []UnitDecision) int {
	n := 0
	for _, d := range decisions {
		if d.Earlier {
			n++
		}
	}
	return n
}

// Frozen returns the decision for a unit of the given attempt whose workload creates no more objects: the unit is
// neither completed nor replaced, and objects of earlier attempts are deleted. Source: docs/decisions, J5, J6.
func (d UnitDecision) Frozen(attempt Attempt) UnitDecision {
	if d.Attempt != attempt {
		return UnitDecision{Attempt: attempt}
	}
	d.Create = nil
	if d.Paused != "" {
		d.Paused, d.RequeueAfter = "", 0
	}
	return d
}

// Pause returns the decision for a unit whose PodGroup and PodCliques cannot be created yet, for the given reason.
func (d UnitDecision) Pause(why string) UnitDecision {
	d.Create, d.Paused = nil, why
	return d
}

// Note describes what the unit waits for before PodCliques are created, "" if it does not wait.
func (d UnitDecision) Note() string {
	const shown = 3
	switch {
	case len(d.WaitsFor) > 0:
		return fmt.Sprintf("waits until PodClique %s is gone", message.ListNames(d.WaitsFor, shown, len(d.WaitsFor), ", "))
	case len(d.Waits) > 0:
		var names []string
		for _, p := range d.Waits {
			names = append(names, p.Name)
		}
		return fmt.Sprintf("waits until pod %s of an earlier PodClique is gone", message.ListNames(names, shown, len(names), ", "))
	}
	return d.Paused
}
