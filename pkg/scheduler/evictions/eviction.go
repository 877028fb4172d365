// SPDX-License-Identifier: Apache-2.0

package evictions

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// Victim is a pod that ends so that a gang can start.
type Victim struct {
	Pod      *corev1.Pod
	Gang     types.NamespacedName // zero: it belongs to no gang
	Priority int32                // of the gang, or of the pod
	Pods     int                  // pods that the gang loses in all
	Whole    bool                 // the gang ends with all of its pods, or the pod belongs to no gang
	Rung     string               // preemption.Rung, the greatest loss of the gang; "": an earlier process decided it
}

// Eviction is the decision that pods of lower priority end so that a gang, or a pod without one, can start. What its
// first fields contain is not changed, but for victims that are spared when the deletions begin.
type Eviction struct {
	ID       string
	Gang     types.NamespacedName // zero: the preemptor is a pod without a gang, or is not known any more
	Group    *v2alpha2.PodGroup
	Pod      *corev1.Pod // the preemptor, if it has no gang; nil: it has one
	Priority int32
	Victims  []Victim
	Spared   []Victim  // they have the mark, which must be taken back before the first deletion
	Decided  time.Time // zero: by an earlier process
	// Awaited are pods that end without its doing, on nodes that the preemptor needs.
	Awaited []*corev1.Pod
	// Timeout is how long the preemptor waits for pods beyond their grace periods.
	Timeout time.Duration

	// Asked: an attempt was asked to check the victims. If it does not confirm any of them, the eviction is over.
	Asked bool
	// Refused: an attempt failed although all victims had ended. The next one decides: this one may not have seen all
	// of their room.
	Refused bool
	// Taken: a gang of higher priority was placed on its nodes, or pods of its gang end for one, or others could use
	// the room that was free already.
	Taken bool
	// Lent is what others may use for a while; nil: nothing.
	Lent []*reservations.Reservation
	// About is what people are told.
	About podgroup.Preempting

	stage     Stage
	until     time.Time // when it is given up
	stuck     time.Time // when victims that have not ended are named; zero: they are, or must not be yet
	lentUntil time.Time // when Lent is kept again; zero: nothing is lent
}

// overdue is how long a pod may be terminating beyond its grace period before the preemptor says that it waits for it.
const overdue = 5 * time.Second

// Preemptor returns who makes room for itself: "namespace/name" of a gang, or "pod namespace/name".
func (e *Eviction) Preemptor() string {
	if e.Pod != nil {
		return "pod " + e.Pod.Namespace + "/" + e.Pod.Name
	}
	return e.Gang.String()
}

// IsForPod reports whether the preemptor is a pod without a gang. nil: there is none.
func (e *Eviction) IsForPod() bool { return e != nil && e.Pod != nil }

// Stage returns where the eviction stands.
func (e *Eviction) Stage() Stage { return e.stage }

// Begin enters the first stage of an eviction: Decided, Recorded if it is for a pod without a gang, or Checked if an
// earlier process had recorded it.
func (e *Eviction) Begin(s Stage, now time.Time) {
	e.until = now.Add(PreparationTime(len(e.Victims)))
	e.Enter(s, now)
}

// Enter is the only function that changes the stage, and with it the times until which it may last.
func (e *Eviction) Enter(s Stage, now time.Time) {
	e.stage = s
	switch grace := e.graceTime(now); s {
	case Decided:
		e.About.Until = e.EndsBy(now)
	case Marked:
		e.until, e.About.Evicting, e.About.Until = now.Add(PreparationTime(len(e.Victims))), true, e.EndsBy(now)
	case Checked:
		e.until, e.About.Evicting = e.EndsBy(now), true
		e.About.Until = e.until
	case Deleted:
		e.stuck = now.Add(grace + overdue)
		if grace > lendingEnds {
			e.lentUntil = now.Add(grace - lendingEnds)
		}
	}
}

// EndsBy returns until when all victims should have ended, and be replaced by the preemptor, if their deletion begins
// now. Thousands of deletions take their time.
func (e *Eviction) EndsBy(now time.Time) time.Time {
	return now.Add(e.graceTime(now) + e.Timeout + time.Duration(len(e.Victims))*perVictim)
}

// KeptUntil returns how long room is kept for the preemptor at most: marking the victims, checking them and deleting
// them may take so long each. The room is free when the eviction ends.
func (e *Eviction) KeptUntil(now time.Time) time.Time {
	return e.until.Add(2*(e.graceTime(now)+e.Timeout) + 2*PreparationTime(len(e.Victims)))
}

// graceTime returns the time after which all victims, and the pods that are awaited, should have ended if they were
// deleted now.
func (e *Eviction) graceTime(now time.Time) time.Duration {
	longest := time.Duration(0)
	for _, v := range e.Victims {
		longest = max(longest, GraceOf(v.Pod, now))
	}
	for _, pod := range e.Awaited {
		longest = max(longest, GraceOf(pod, now))
	}
	return longest
}

// Until returns when the eviction is given up.
func (e *Eviction) Until() time.Time { return e.until }

// NextTime returns when the next of its times is reached.
func (e *Eviction) NextTime() time.Time {
	next := e.until
	for _, t := range []time.Time{e.stuck, e.lentUntil} {
		if !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	return next
}

// IsLending reports whether others may use what the victims free, because the slowest one needs long: else nodes would
// be idle for as long as one victim on another node takes.
func (e *Eviction) IsLending() bool { return !e.lentUntil.IsZero() }

// EndsLending reports, once, that what was lent is to be kept again.
func (e *Eviction) EndsLending(now time.Time) bool {
	if e.lentUntil.IsZero() || now.Before(e.lentUntil) {
		return false
	}
	e.lentUntil = time.Time{}
	return true
}

// NameStuck reports, once, that a pod should have ended by now, and names the first one that has not.
func (e *Eviction) NameStuck(now time.Time, isEnding func(types.UID) bool) bool {
	if e.stuck.IsZero() || now.Before(e.stuck) {
		return false
	}
	e.stuck = time.Time{}
	pods := append(e.Pods(), e.Awaited...)
	if i := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return isEnding(pod.UID) }); i >= 0 {
		pod := pods[i]
		if e.About.Stuck = pod.Name; pod.Namespace != e.Gang.Namespace {
			e.About.Stuck = pod.Namespace + "/" + pod.Name
		}
	}
	return true
}

// IsAwaiting reports whether a victim, or another pod whose room it counts on, has not ended yet.
func (e *Eviction) IsAwaiting(isEnding func(types.UID) bool) bool {
	return slices.ContainsFunc(e.Victims, func(v Victim) bool { return isEnding(v.Pod.UID) }) ||
		slices.ContainsFunc(e.Awaited, func(pod *corev1.Pod) bool { return isEnding(pod.UID) })
}

// Pods returns the pods of the victims.
func (e *Eviction) Pods() []*corev1.Pod {
	pods := make([]*corev1.Pod, len(e.Victims))
	for i, v := range e.Victims {
		pods[i] = v.Pod
	}
	return pods
}

// IsPreparing reports whether no pod has ended by it.
func (e *Eviction) IsPreparing() bool { return e.stage < Checked }

// Deletes reports whether its victims end, whatever happens.
func (e *Eviction) Deletes() bool { return e.stage == Checked || e.stage == Deleted }

// IsMarked reports whether all victims have their marks, and none is being deleted.
func (e *Eviction) IsMarked() bool { return e.stage == Marked || e.stage == Announced }

// IsBusy reports whether requests for its victims are under way: what follows is decided when they have been answered.
func (e *Eviction) IsBusy() bool { return e.stage == Recorded || e.stage == Checked }

// AwaitsRecord reports whether it goes on when the status of the preemptor's PodGroup says so.
func (e *Eviction) AwaitsRecord() bool { return e.stage == Decided || e.stage == Marked }

// HasVictims reports whether all of these are victims.
func (e *Eviction) HasVictims(victims []Victim) bool { return len(without(victims, e.Victims)) == 0 }

// Succeed lets the eviction go on in place of an older one that an attempt has checked. Of the older one's victims some
// are spared.
func (e *Eviction) Succeed(old *Eviction) {
	e.ID, e.Decided, e.stage, e.until, e.Spared = old.ID, old.Decided, old.stage, old.until, without(old.Victims, e.Victims)
}

// without returns the victims that are not among others.
func without(victims, others []Victim) []Victim {
	of := sets.New[types.UID]()
	for _, v := range others {
		of.Insert(v.Pod.UID)
	}
	return slices.DeleteFunc(slices.Clone(victims), func(v Victim) bool { return of.Has(v.Pod.UID) })
}

// Describe sets what people are told. amount is what the victims have of an extended resource; resource "": nothing.
func (e *Eviction) Describe(resource corev1.ResourceName, amount int64) {
	about := podgroup.Preempting{Plan: e.ID, Pods: len(e.Victims), Resource: resource, Amount: amount, Until: e.until}
	seen := sets.New[types.NamespacedName]()
	for _, v := range e.Victims {
		switch {
		case v.Gang == types.NamespacedName{}:
			about.PlainPods++
		case !seen.Has(v.Gang):
			seen.Insert(v.Gang)
			about.Gangs++
			if about.First == "" && v.Gang.Namespace == e.Gang.Namespace {
				about.First = v.Gang.Name
			}
		}
	}
	e.About = about
}

// Outcome states how an eviction ended, with few distinct values, so that it can label a metric.
type Outcome string

const (
	// Placed: the gang was bound after the victims had ended.
	Placed Outcome = "placed"
	// Spared: the gang was placed without any eviction, because other room became free.
	Spared Outcome = "spared"
	// Cancelled: nothing was evicted, because the gang or the cluster changed.
	Cancelled Outcome = "cancelled"
	// Overtaken: pods were evicted, and a gang of higher priority took some of the room, or preempted the gang, or
	// others used it meanwhile.
	Overtaken Outcome = "overtaken"
	// Wasted: pods were evicted, and the gang was not placed for another reason.
	Wasted Outcome = "wasted"
)

// Success returns the outcome if the preemptor was bound.
func (e *Eviction) Success() Outcome {
	if e.IsPreparing() {
		return Spared
	}
	return Placed
}

// Failure returns the outcome if the preemptor was not bound.
func (e *Eviction) Failure() Outcome {
	switch {
	case e.IsPreparing():
		return Cancelled
	case e.Taken:
		return Overtaken
	}
	return Wasted
}
