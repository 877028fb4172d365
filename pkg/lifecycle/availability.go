// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"
)

// Clique contains the facts about one PodClique.
type Clique struct {
	// Name is the name of the PodClique, Template the name of the clique in the set's template.
	Name, Template string
	// Group is the full name of the PodCliqueScalingGroup that the PodClique belongs to, "" if it is standalone;
	// GroupReplica is the index of the group's replica, -1 if it is standalone.
	Group        string
	GroupReplica int
	// UID is the UID of the object, Created its creation time.
	UID     string
	Created time.Time
	// Attempt is the attempt that the PodClique was created for.
	Attempt Attempt

	// Terminating: the object is being deleted.
	Terminating bool
	// Observed: its status describes its current spec. If not, the status may change at any moment, so no pod is
	// terminated because of it (docs/decisions, W3).
	Observed bool

	// Replicas is the current spec.replicas, MinAvailable the minimum of pods: Minimum.Enforced.
	Replicas, MinAvailable int32
	// Pods, Scheduled, Ready and Updated count pods that are not terminating, according to its status.
	Pods, Scheduled, Ready, Updated int32
	// Revision is the number of the PodCliqueSet's revision that its status describes, Followed the hash of the
	// revision that all its pods follow. Updating: an update of the PodClique is in progress.
	Revision int64
	Followed string
	Updating bool
	// Old: its pod template is not that of the revision that its owner follows. The update has not reached it.
	Old bool

	// NotYetAvailable is the number of ready pods that have not been ready for minReadySeconds.
	NotYetAvailable int32
	// Training: its workload is a Training workload. For such a workload, Alive counts the pods that run or have
	// succeeded, Succeeded those that have succeeded, and Finished: the PodClique has succeeded.
	Training, Finished bool
	Alive, Succeeded   int32

	// BreachedSince is when the breach of its minimum began, according to its status; zero: there is no breach. Cause
	// is the cause of the breach according to the status, "" if it is unknown.
	BreachedSince time.Time
	Cause         string
	// Silence is why it is not known whether its minimum runs, according to its status.
	Silence Silence
	// Lacks is why it is not available, according to its status; "" if it is, or the cause is unknown.
	Lacks string
}

// Available reports whether the clique has at least minAvailable available pods and is not being deleted; in a Training
// workload, pods that run or have succeeded count. A clique scaled to zero is available. Source: docs/decisions, W3,
// J2.
func (c Clique) Available() bool {
	if c.Training {
		return !c.Terminating && c.Alive >= c.MinAvailable
	}
	return !c.Terminating && c.Ready-c.NotYetAvailable >= c.MinAvailable
}

// isReady reports whether the minimum of the clique is ready, whether the pods have been ready for minReadySeconds or
// not; in a Training workload, whether the clique is available.
func (c Clique) isReady() bool {
	c.NotYetAvailable = 0
	return c.Available()
}

// IsStarted reports whether minAvailable pods are ready or have succeeded, and the clique is not being deleted: pods
// that wait for it may start. Source: docs/decisions, W8.
func (c Clique) IsStarted() bool { return !c.Terminating && c.Ready+c.Succeeded >= c.MinAvailable }

// IsScheduled reports whether minAvailable pods are scheduled or have succeeded, and the clique is not being deleted.
func (c Clique) IsScheduled() bool {
	return !c.Terminating && c.Scheduled+c.Succeeded >= c.MinAvailable
}

// isUpdated reports whether all pods of the clique exist, and were all created from the template of the revision with
// the given number and hash.
func (c Clique) isUpdated(revision int64, generation string) bool {
	return !c.Terminating && c.describes(revision) && c.Followed == generation && (c.Finished || c.Updated+c.Succeeded >= c.Replicas)
}

// describes reports whether its status describes its current spec and the given revision.
func (c Clique) describes(revision int64) bool { return c.Observed && c.Revision == revision }

// follows reports whether all its pods follow the revision with the given hash, and no update is in progress.
func (c Clique) follows(generation string) bool { return c.Followed == generation && !c.Updating }

// GroupReplica is one replica of a scaling group.
type GroupReplica struct {
	Index int
	// Attempt is the current attempt of the replica.
	Attempt Attempt
	// Revision and Generation are the number and the hash of the PodCliqueSet's revision that the group is to follow.
	Revision   int64
	Generation string
	// Created is the creation time of its oldest PodClique.
	Created time.Time
	// Members are the existing PodCliques, by name. Missing are the names, in the template, of those that do not
	// exist, sorted.
	Members []Clique
	Missing []string
}

// Available reports whether every member PodClique exists, was created for the current attempt and is available.
func (r GroupReplica) Available() bool { return r.allMembers(r.available) }

// available reports whether a member is available. A member of an earlier attempt is not, because it is about to be
// deleted.
func (r GroupReplica) available(c Clique) bool {
	return !c.Attempt.Precedes(r.Attempt) && c.Available()
}

// IsScheduled reports whether every member clique exists and has its minimum scheduled.
func (r GroupReplica) IsScheduled() bool { return r.allMembers(Clique.IsScheduled) }

// IsUpdated reports whether every member PodClique exists and has only pods of its current template.
func (r GroupReplica) IsUpdated() bool {
	return r.allMembers(func(c Clique) bool { return c.isUpdated(r.Revision, r.Generation) })
}

func (r GroupReplica) allMembers(predicate func(Clique) bool) bool {
	for _, c := range r.Members {
		if !predicate(c) {
			return false
		}
	}
	return len(r.Missing) == 0
}

// ScalingGroup contains the facts about one PodCliqueScalingGroup of a set.
type ScalingGroup struct {
	// Name is the name of the PodCliqueScalingGroup, Template the name of the group in the set's template.
	Name, Template string
	UID            string

	Terminating bool
	Observed    bool

	// Replicas is the current spec.replicas, MinAvailable the number that must be available: 0 when scaled to zero.
	Replicas, MinAvailable int32
	// ScheduledReplicas, AvailableReplicas and UpdatedReplicas are the counts in its status.
	ScheduledReplicas, AvailableReplicas, UpdatedReplicas int32

	// Revision, Followed and Updating are as in Clique. Old: a PodClique of the group is Old.
	Revision int64
	Followed string
	Updating bool
	Old      bool
	// Told is the hash of the revision that the set's controller has told the group to follow. HasMembers: a PodClique
	// of the group exists.
	Told       string
	HasMembers bool
	// Newest is the creation time of its youngest PodClique, zero if there is none.
	Newest time.Time

	// Attempt is the attempt of the set replica that its status belongs to.
	Attempt int32
	// BreachedSince, Cause, Lacks and Silence are as in Clique.
	BreachedSince time.Time
	Cause, Lacks  string
	Silence       Silence
	// TerminationDeadline is when the group or a replica of it is due to be terminated, according to its status. Zero:
	// never.
	TerminationDeadline time.Time
	// Delay is its effective termination delay. nil: gang termination is off.
	Delay *time.Duration
}

// Available reports whether the group has minAvailable available replicas and is not being deleted.
func (g ScalingGroup) Available() bool {
	return !g.Terminating && g.AvailableReplicas >= g.MinAvailable
}

// IsScheduled reports whether minAvailable replicas have their minimum scheduled.
func (g ScalingGroup) IsScheduled() bool {
	return !g.Terminating && g.ScheduledReplicas >= g.MinAvailable
}

// isUpdated reports whether all replicas of the group and their pods exist, and were created from the template of the
// revision with the given number and hash.
func (g ScalingGroup) isUpdated(revision int64, generation string) bool {
	return !g.Terminating && g.describes(revision) && g.Followed == generation && g.UpdatedReplicas >= g.Replicas
}

func (g ScalingGroup) describes(revision int64) bool { return g.Observed && g.Revision == revision }

func (g ScalingGroup) follows(generation string) bool {
	return g.Followed == generation && !g.Updating
}

// SetReplica is one replica of a PodCliqueSet.
type SetReplica struct {
	Index int
	// Attempt is the current attempt of the replica.
	Attempt int32
	// Revision and Generation are the number and the hash of the revision that the set is to follow.
	Revision   int64
	Generation string
	// Delay is the termination delay of the set. nil: gang termination is off.
	Delay *time.Duration
	// Cliques are the existing standalone PodCliques, Groups the existing scaling groups, both by name. Missing are
	// the names, in the template, of those that do not exist, sorted.
	Cliques []Clique
	Groups  []ScalingGroup
	Missing []string
	// Succeeded: the replica of a Training workload has succeeded, whichever of its objects still exist.
	Succeeded bool
	// Held is what the restart of the replica of a Training workload waits for: TrainingOutcome.Held.
	Held Silence
	// Replaced is the recorded attempt of the replica.
	Replaced Raised
	// Preempted is what the replica has lost to a preemption. Zero: nothing, or it is made up for.
	Preempted Preemption
	// Unbound is why the scheduler has not bound its minimum: a reason with its first clause. "": it has not said.
	Unbound string
	// Waits describes what the creation of PodCliques of the replica waits for: UnitDecision.Note.
	Waits string
	// Trouble is the message of the first clique or scaling group whose objects cannot be created as specified, "" if
	// there is none.
	Trouble string
}

// Preemption is the loss of pods of a replica to a gang of higher priority.
type Preemption struct {
	// Text is when, by whom and what was lost: "preempted at 2026-03-01 10:31:35 UTC by ml/urgent (priority 1000 over
	// 100): 4 pods above its minimum". "": nothing.
	Text string
	// Whole: it lost all of its pods. Otherwise they were above its minimum.
	Whole bool
}

// Available reports whether every standalone clique and every scaling group exists and is available in the current
// attempt.
func (r SetReplica) Available() bool { return r.allObjects(r.available, r.groupAvailable) }

// available reports whether a standalone clique is available. One of an earlier attempt is not, because it is about to
// be deleted.
func (r SetReplica) available(c Clique) bool { return c.Attempt.Set >= r.Attempt && c.Available() }

// groupAvailable reports whether a scaling group is available according to a status that does not belong to an earlier
// attempt.
func (r SetReplica) groupAvailable(g ScalingGroup) bool {
	return g.Attempt >= r.Attempt && g.Available()
}

// IsScheduled reports whether every standalone clique and every scaling group exists and has its minimum scheduled.
func (r SetReplica) IsScheduled() bool {
	return r.allObjects(Clique.IsScheduled, ScalingGroup.IsScheduled)
}

// IsUpdated reports whether all PodCliques and scaling groups of the replica are up to date.
func (r SetReplica) IsUpdated() bool {
	return r.allObjects(func(c Clique) bool { return c.isUpdated(r.Revision, r.Generation) }, func(g ScalingGroup) bool { return g.isUpdated(r.Revision, r.Generation) })
}

func (r SetReplica) allObjects(clique func(Clique) bool, group func(ScalingGroup) bool) bool {
	if r.Succeeded {
		return true
	}
	for _, c := range r.Cliques {
		if !clique(c) {
			return false
		}
	}
	for _, g := range r.Groups {
		if !group(g) {
			return false
		}
	}
	return len(r.Missing) == 0
}

// Preemptions returns which of the replicas have lost pods to a preemption, each as a clause: those that were preempted
// as a whole and are not available, and all those that lack pods above their minimum.
func Preemptions(replicas []SetReplica) []string {
	var clauses []string
	for _, r := range replicas {
		if r.Preempted.Text != "" && !(r.Preempted.Whole && r.Available()) {
			clauses = append(clauses, fmt.Sprintf("replica %d was %s", r.Index, r.Preempted.Text))
		}
	}
	return clauses
}

// setObject contains what the PodCliques and the scaling groups of a set replica have in common.
type setObject struct {
	kind, name, lacks                 string
	newest                            time.Time // creation time of the youngest PodClique
	terminating, scheduled, available bool
	isHeld, knows, follows            bool // the template that the update has not reached; the revision of the replica
}

// objects returns the PodCliques, then the scaling groups of the replica.
func (r SetReplica) objects() []setObject {
	objects := make([]setObject, 0, len(r.Cliques)+len(r.Groups))
	for _, c := range r.Cliques {
		objects = append(objects, setObject{"PodClique", c.Name, c.Lacks, c.Created, c.Terminating, c.IsScheduled(), r.available(c),
			c.Old, c.describes(r.Revision), c.follows(r.Generation)})
	}
	for _, g := range r.Groups {
		objects = append(objects, setObject{"PodCliqueScalingGroup", g.Name, g.Lacks, g.Newest, g.Terminating, g.IsScheduled(), r.groupAvailable(g),
			g.isHeld(r.Generation), g.describes(r.Revision), g.follows(r.Generation)})
	}
	return objects
}

// Unavailable returns the first clique or scaling group that makes the replica unavailable: its full name, or its name
// in the template if it does not exist. "" if the replica is available. why is the cause, "" if it is unknown.
func (r SetReplica) Unavailable() (name, why string) {
	for _, o := range r.objects() {
		if !o.available {
			return o.name, o.lacks
		}
	}
	if len(r.Missing) > 0 {
		return r.Missing[0], ""
	}
	return "", ""
}

// FirstLack returns what the first unavailable PodClique of a scaling group lacks, of those whose cause is known. ""
// if there is none.
func FirstLack(replicas []GroupReplica) string {
	for _, r := range replicas {
		for _, c := range r.Members {
			if c.Lacks != "" {
				return "PodClique " + c.Name + ": " + c.Lacks
			}
		}
	}
	return ""
}

// Terminating returns the name of the first clique or scaling group of the replica that is being deleted, "" if none
// is.
func (r SetReplica) Terminating() string {
	for _, o := range r.objects() {
		if o.terminating {
			return o.name
		}
	}
	return ""
}

// GroupMinimum returns how many replicas of a scaling group must be available: its minAvailable, 1 if unset or not
// positive, and 0 for a group scaled to zero.
func GroupMinimum(minAvailable *int32, replicas int32) int32 {
	switch {
	case replicas <= 0:
		return 0
	case minAvailable == nil:
		return 1
	default:
		return max(*minAvailable, 1)
	}
}
