package lifecycle

import "time"

// Clique is what is known of one PodClique.
type Clique struct {
	// Name is the PodClique's own, Template the clique's in the set's template.
	Name, Template string
	// Group is the full name of the PodCliqueScalingGroup it is a member of, "" if standalone; GroupReplica the index
	// of the replica, -1 if standalone.
	Group        string
	GroupReplica int
	// UID of the object, Created when it was made.
	UID     string
	Created time.Time
	// Attempt is the one that it was made for.
	Attempt Attempt

	// Terminating: the object is being deleted.
	Terminating bool
	// Observed: its status was written for its present spec. What is false here may change in a moment, so nothing is
	// ended because of it (docs/decisions, W3).
	Observed bool

	// Replicas is the present spec.replicas, MinAvailable what it must keep: Minimum.Enforced.
	Replicas, MinAvailable int32
	// Pods, Scheduled, Ready and Updated count pods that are not terminating, as its status has them.
	Pods, Scheduled, Ready, Updated int32
	// Revision is the number of the PodCliqueSet's revision that its status describes, Followed the hash of the revision that
	// all its pods follow. Updating: an update of it is open.
	Revision int64
	Followed string
	Updating bool

	// Training: its workload is one. Alive counts the pods that run or have succeeded then, Succeeded the latter. Finished: it
	// has succeeded.
	Training, Finished bool
	Alive, Succeeded   int32

	// BreachedSince is when its breach of the minimum began, as its status has it. Zero: there is none. Cause is what the status
	// says about why, "" if nothing is known.
	BreachedSince time.Time
	Cause         string
}

// Available reports whether the clique has at least minAvailable ready pods and is there to stay; of a Training workload, pods
// that run or have succeeded. A clique scaled to zero is available. Source: docs/decisions, W3, J2.
func (c Clique) Available() bool {
	if c.Training {
		return !c.Terminating && c.Alive >= c.MinAvailable
	}
	return !c.Terminating && c.Ready >= c.MinAvailable
}

// IsStarted reports whether minAvailable pods are ready or have succeeded, and the clique is there to stay: what waits for it
// may start. Source: docs/decisions, W8.
func (c Clique) IsStarted() bool { return !c.Terminating && c.Ready+c.Succeeded >= c.MinAvailable }

// IsScheduled reports whether minAvailable pods are scheduled or have succeeded, and the clique is there to stay.
func (c Clique) IsScheduled() bool {
	return !c.Terminating && c.Scheduled+c.Succeeded >= c.MinAvailable
}

// isUpdated reports whether every pod that the clique wants exists, and all that exist are of the template of the revision of that
// number and hash.
func (c Clique) isUpdated(revision int64, generation string) bool {
	return !c.Terminating && c.knows(revision) && c.Followed == generation && (c.Finished || c.Updated+c.Succeeded >= c.Replicas)
}

// knows reports whether its status is of its present spec and describes that revision.
func (c Clique) knows(revision int64) bool { return c.Observed && c.Revision == revision }

// follows reports whether all its pods follow the revision of that hash, and no update of it is open.
func (c Clique) follows(generation string) bool { return c.Followed == generation && !c.Updating }

// GroupReplica is one replica of a scaling group.
type GroupReplica struct {
	Index int
	// Attempt is the present one of the replica.
	Attempt Attempt
	// Revision and Generation are the number and the hash of the PodCliqueSet's revision that the group is to follow.
	Revision   int64
	Generation string
	// Created is when the oldest of its PodCliques was made.
	Created time.Time
	// Members are the PodCliques that exist, by name. Missing names those that do not, as the template spells them,
	// sorted.
	Members []Clique
	Missing []string
}

// Available reports whether every member clique exists, was made for the present attempt and is available.
func (r GroupReplica) Available() bool { return r.all(r.available) }

// available reports whether a member is. One of an earlier attempt is about to be deleted.
func (r GroupReplica) available(c Clique) bool {
	return !c.Attempt.Precedes(r.Attempt) && c.Available()
}

// IsScheduled reports whether every member clique exists and has its minimum scheduled.
func (r GroupReplica) IsScheduled() bool { return r.all(Clique.IsScheduled) }

// IsUpdated reports whether every member clique exists and has only pods of its present template.
func (r GroupReplica) IsUpdated() bool {
	return r.all(func(c Clique) bool { return c.isUpdated(r.Revision, r.Generation) })
}

func (r GroupReplica) all(predicate func(Clique) bool) bool {
	for _, c := range r.Members {
		if !predicate(c) {
			return false
		}
	}
	return len(r.Missing) == 0
}

// ScalingGroup is what a set knows of one of its PodCliqueScalingGroups.
type ScalingGroup struct {
	// Name is the PodCliqueScalingGroup's own, Template the group's in the set's template.
	Name, Template string
	UID            string

	Terminating bool
	Observed    bool

	// Replicas is the present spec.replicas, MinAvailable the fewest that must be available: 0 when scaled to zero.
	Replicas, MinAvailable int32
	// ScheduledReplicas, AvailableReplicas and UpdatedReplicas are its status.
	ScheduledReplicas, AvailableReplicas, UpdatedReplicas int32

	// Revision, Followed and Updating are as in Clique.
	Revision int64
	Followed string
	Updating bool

	// Attempt is the attempt of the set replica that its status belongs to.
	Attempt int32
	// BreachedSince and Cause are as in Clique.
	BreachedSince time.Time
	Cause         string
	// TerminationDeadline is when it, or a replica of it, is terminated, as its status has it. Zero: never.
	TerminationDeadline time.Time
	// Delay is its effective termination delay. nil: gang termination is off.
	Delay *time.Duration
}

// Available reports whether the group has minAvailable available replicas and is there to stay.
func (g ScalingGroup) Available() bool {
	return !g.Terminating && g.AvailableReplicas >= g.MinAvailable
}

// IsScheduled reports whether minAvailable replicas have their minimum scheduled.
func (g ScalingGroup) IsScheduled() bool {
	return !g.Terminating && g.ScheduledReplicas >= g.MinAvailable
}

// isUpdated reports whether every replica that the group wants, and every pod that exists, is of the template of the revision of that
// number and hash.
func (g ScalingGroup) isUpdated(revision int64, generation string) bool {
	return !g.Terminating && g.knows(revision) && g.Followed == generation && g.UpdatedReplicas >= g.Replicas
}

func (g ScalingGroup) knows(revision int64) bool { return g.Observed && g.Revision == revision }

func (g ScalingGroup) follows(generation string) bool {
	return g.Followed == generation && !g.Updating
}

// SetReplica is one replica of a PodCliqueSet.
type SetReplica struct {
	Index int
	// Attempt is the present one.
	Attempt int32
	// Revision and Generation are the number and the hash of the revision that the set is to follow.
	Revision   int64
	Generation string
	// Delay is the termination delay of the set. nil: gang termination is off.
	Delay *time.Duration
	// Cliques are the standalone PodCliques that exist, Groups the scaling groups; both by name. Missing names what does
	// not exist, as the template spells it, sorted.
	Cliques []Clique
	Groups  []ScalingGroup
	Missing []string
	// Succeeded: it is of a Training workload and has succeeded, whatever is left of it.
	Succeeded bool
	// Waits is what PodCliques of the replica wait for before they are created: UnitDecision.Note.
	Waits string
	// Trouble is what the first of its cliques and groups says that cannot be made as it should; "": none does.
	Trouble string
}

// Available reports whether every standalone clique and every scaling group exists and is available in the present attempt.
func (r SetReplica) Available() bool { return r.all(r.available, r.groupAvailable) }

// available reports whether a standalone clique is. One of an earlier attempt is about to be deleted.
func (r SetReplica) available(c Clique) bool { return c.Attempt.Set >= r.Attempt && c.Available() }

// groupAvailable reports whether a scaling group is, by a status that does not belong to an earlier attempt.
func (r SetReplica) groupAvailable(g ScalingGroup) bool {
	return g.Attempt >= r.Attempt && g.Available()
}

// IsScheduled reports whether every standalone clique and every scaling group exists and has its minimum scheduled.
func (r SetReplica) IsScheduled() bool { return r.all(Clique.IsScheduled, ScalingGroup.IsScheduled) }

// IsUpdated reports whether all of the replica is up to date.
func (r SetReplica) IsUpdated() bool {
	return r.all(func(c Clique) bool { return c.isUpdated(r.Revision, r.Generation) }, func(g ScalingGroup) bool { return g.isUpdated(r.Revision, r.Generation) })
}

func (r SetReplica) all(clique func(Clique) bool, group func(ScalingGroup) bool) bool {
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

// Unavailable names what keeps the replica from being available, the first of it: a clique or scaling group by its full
// name, or if it does not exist, by the template's. "" if the replica is available.
func (r SetReplica) Unavailable() string {
	for _, c := range r.Cliques {
		if !r.available(c) {
			return c.Name
		}
	}
	for _, g := range r.Groups {
		if !r.groupAvailable(g) {
			return g.Name
		}
	}
	if len(r.Missing) > 0 {
		return r.Missing[0]
	}
	return ""
}

// Terminating names the first clique or scaling group of the replica that is being deleted, "" if none is.
func (r SetReplica) Terminating() string {
	for _, c := range r.Cliques {
		if c.Terminating {
			return c.Name
		}
	}
	for _, g := range r.Groups {
		if g.Terminating {
			return g.Name
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
