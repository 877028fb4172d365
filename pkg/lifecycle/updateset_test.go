// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// The set of the tests follows revision 2, whose hash is gen-b. Its replicas have a standalone PodClique and a scaling
// group.

// inSet returns an available replica that follows the revision.
func inSet(index int, changes ...func(*lifecycle.SetReplica)) lifecycle.SetReplica {
	r := lifecycle.SetReplica{Index: index, Revision: 2, Generation: "gen-b",
		Cliques: []lifecycle.Clique{member("router")},
		Groups: []lifecycle.ScalingGroup{{Name: "model", Observed: true, Replicas: 2, MinAvailable: 1,
			ScheduledReplicas: 2, AvailableReplicas: 2, UpdatedReplicas: 2, Revision: 2, Followed: "gen-b"}}}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func cliqueIs(changes ...func(*lifecycle.Clique)) func(*lifecycle.SetReplica) {
	return func(r *lifecycle.SetReplica) {
		for _, change := range changes {
			change(&r.Cliques[0])
		}
	}
}

func groupIs(changes ...func(*lifecycle.ScalingGroup)) func(*lifecycle.SetReplica) {
	return func(r *lifecycle.SetReplica) {
		for _, change := range changes {
			change(&r.Groups[0])
		}
	}
}

func updating(c *lifecycle.Clique)               { c.Updating = true }
func leavingClique(c *lifecycle.Clique)          { c.Terminating = true }
func breached(c *lifecycle.Clique)               { c.BreachedSince, c.Ready = ago(time.Minute), 0 }
func groupBefore(g *lifecycle.ScalingGroup)      { g.Followed, g.UpdatedReplicas = "gen-a", 1 }
func groupUnscheduled(g *lifecycle.ScalingGroup) { g.ScheduledReplicas, g.AvailableReplicas = 0, 0 }
func groupUnavailable(g *lifecycle.ScalingGroup) { g.AvailableReplicas = 0 }
func groupUnknown(g *lifecycle.ScalingGroup)     { g.Revision = 1 }
func withoutGroup(r *lifecycle.SetReplica)       { r.Groups, r.Missing = nil, []string{"model"} }
func waitsForPod(r *lifecycle.SetReplica) {
	r.Waits = "waits until pod x of an earlier PodClique is gone"
}
func scheduledNowhere(r *lifecycle.SetReplica) {
	cliqueIs(unscheduled)(r)
	groupIs(groupUnscheduled)(r)
}
func behind(r *lifecycle.SetReplica) { cliqueIs(before)(r); groupIs(groupBefore)(r) }
func rollingSet(p *lifecycle.Progress, current int, replicas ...lifecycle.SetReplica) lifecycle.SetUpdate {
	if p != nil && current >= 0 {
		p.Selected, p.SelectedAt = strconv.Itoa(current), ago(time.Minute)
	}
	return lifecycle.SetUpdate{Update: lifecycle.Update{Target: lifecycle.Target{Generation: "gen-b"}, Progress: p}, Replicas: replicas,
		Waits: map[string]lifecycle.UpdateState{}}
}

// heldBack makes a replica keep the previous revision.
func heldBack(r *lifecycle.SetReplica) {
	cliqueIs(held)(r)
	groupIs(func(g *lifecycle.ScalingGroup) {
		g.Old, g.HasMembers, g.Told, g.Revision, g.Followed = true, true, "gen-a", 1, "gen-a"
	})(r)
}

// HoldsPrevious tells with which template a replica is recreated.
func TestSetHoldsPrevious(t *testing.T) {
	t.Parallel()
	replaced := func(reason lifecycle.ReplacementReason, at time.Time) func(*lifecycle.SetReplica) {
		return func(r *lifecycle.SetReplica) {
			r.Replaced = lifecycle.Raised{Attempt: 1, Replacement: lifecycle.Replacement{Reason: reason}, At: at}
		}
	}
	gone := func(r *lifecycle.SetReplica) { r.Cliques, r.Groups = nil, nil }
	reached := made(1)
	b := lifecycle.Target{Generation: "gen-b"}
	for name, tc := range map[string]struct {
		progress  *lifecycle.Progress
		partition int
		onDelete  bool
		paused    bool
		replica   lifecycle.SetReplica
		want      bool
	}{
		"the update has not reached it":        {progress: begun(b), replica: inSet(1, heldBack), want: true},
		"the update has reached it":            {progress: begun(b, reached), replica: inSet(1, heldBack)},
		"there is no update":                   {progress: begun(b, overNow), replica: inSet(1, heldBack)},
		"there never was one":                  {replica: inSet(1, heldBack)},
		"OnDelete":                             {progress: begun(b), onDelete: true, replica: inSet(1, heldBack)},
		"it is new":                            {progress: begun(b), replica: inSet(1, gone)},
		"an object of it is missing":           {progress: begun(b), replica: inSet(1, withoutGroup), want: true},
		"all of it is of the current template": {progress: begun(b), replica: inSet(1)},
		"it is terminated":                     {progress: begun(b), replica: inSet(1, gone, replaced(lifecycle.ReplacedTermination, now)), want: true},
		"it was terminated before the update, and is not created yet": {progress: begun(b), replica: inSet(1, gone, replaced(lifecycle.ReplacedTermination, ago(time.Hour))), want: true},
		"it is terminated after the update reached":                   {progress: begun(b, reached), replica: inSet(1, gone, replaced(lifecycle.ReplacedTermination, now))},
		"a user deletes it": {progress: begun(b), replica: inSet(1, gone, replaced(lifecycle.ReplacedDeleted, now))},
		"a user deletes it, and its scaling groups remain": {progress: begun(b), replica: inSet(1, replaced(lifecycle.ReplacedDeleted, now),
			func(r *lifecycle.SetReplica) { r.Cliques, r.Missing = nil, []string{"router"} })},
		"paused: it is new":                          {progress: begun(b), paused: true, replica: inSet(1, gone), want: true},
		"paused: it is new, and there is no update":  {progress: begun(b, overNow), paused: true, replica: inSet(1, gone)},
		"paused: it was reached before":              {progress: begun(b, reached), paused: true, replica: inSet(1, gone)},
		"paused: a user deletes it":                  {progress: begun(b), paused: true, replica: inSet(1, gone, replaced(lifecycle.ReplacedDeleted, now))},
		"below the partition a user deletes it":      {progress: begun(b), partition: 2, replica: inSet(1, gone, replaced(lifecycle.ReplacedDeleted, now)), want: true},
		"below the partition it is new":              {progress: begun(b), partition: 2, replica: inSet(1, gone), want: true},
		"below the partition, but updated before it": {progress: begun(b, reached), partition: 2, replica: inSet(1)},
	} {
		t.Run(name, func(t *testing.T) {
			u := lifecycle.SetUpdate{Partition: tc.partition, Update: lifecycle.Update{Target: b, Progress: tc.progress, OnDelete: tc.onDelete, Paused: tc.paused}}
			if got := u.HoldsPrevious(tc.replica); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestDecideSetUpdate(t *testing.T) {
	t.Parallel()
	pausedSet := func(u *lifecycle.SetUpdate) { u.Paused = true }
	partition := func(n int) func(*lifecycle.SetUpdate) { return func(u *lifecycle.SetUpdate) { u.Partition = n } }
	change := func(u lifecycle.SetUpdate, changes ...func(*lifecycle.SetUpdate)) lifecycle.SetUpdate {
		for _, change := range changes {
			change(&u)
		}
		return u
	}
	onDelete := func(u *lifecycle.SetUpdate) { u.OnDelete = true }
	waits := func(name string, reason lifecycle.UpdateReason, message string) func(*lifecycle.SetUpdate) {
		return func(u *lifecycle.SetUpdate) { u.Waits[name] = state(reason, message) }
	}
	updatedBefore := func(n int) func(*lifecycle.SetUpdate) {
		return func(u *lifecycle.SetUpdate) { u.Updated = n }
	}
	stalledAfter := func(d time.Duration) func(*lifecycle.SetUpdate) {
		return func(u *lifecycle.SetUpdate) { u.StalledAfter = d }
	}
	rejected := func(u *lifecycle.SetUpdate) { u.Rejected = "nothing is replaced: no such volume" }
	a, b := lifecycle.Target{Generation: "gen-a"}, lifecycle.Target{Generation: "gen-b"}
	index := func(i int) *int { return &i }
	const (
		complete = "all replicas match the current template"
		since    = " since 2026-05-01T11:59:00Z: "
		nowText  = " since 2026-05-01T12:00:00Z; "
		unknown  = "the statuses of PodCliques and scaling groups do not describe the current template yet"
	)
	type decision = setDecision
	at := func(i int, d decision) decision { // it stays the current one
		d.Current, d.CurrentSince = index(i), ago(time.Minute)
		return d
	}
	picks := func(i int, d decision) decision {
		d.Current, d.CurrentSince = index(i), now
		return d
	}
	for name, tc := range map[string]struct {
		u    lifecycle.SetUpdate
		want decision // without counts
	}{
		"the template has never changed": {
			u:    rollingSet(nil, -1, inSet(0), inSet(1)),
			want: decision{State: state(lifecycle.UpdateComplete, complete)},
		},
		"the set is new": {
			u:    rollingSet(nil, -1, inSet(0, withoutGroup), inSet(1, cliqueIs(unobserved))),
			want: decision{},
		},

		// The API server rejects pods of the template.
		"a rejected template: no replica is selected, and it does not stall": {
			u: change(rollingSet(begun(b), -1, inSet(0, behind), inSet(1, behind)), rejected, stalledAfter(time.Nanosecond)),
			want: decision{Progress: begun(b, progressed(now)), State: state(lifecycle.UpdateTemplateRejected, "nothing is replaced: no such volume"),
				RequeueAfter: lifecycle.RetryRejected},
		},
		"a rejected template: the replica that the update before was at stays the current one": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, behind)), rejected),
			want: at(1, decision{Progress: begun(b), State: state(lifecycle.UpdateTemplateRejected, "nothing is replaced: no such volume"),
				RequeueAfter: lifecycle.RetryRejected}),
		},
		"a rejected template, and the replica that the update was at is scaled in: it is not the current one any longer": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind)), rejected),
			want: decision{Progress: begun(b, progressed(now)), RequeueAfter: lifecycle.RetryRejected,
				State: state(lifecycle.UpdateTemplateRejected, "nothing is replaced: no such volume")},
		},
		"a rejected template that the PodCliques do not know yet": {
			u: change(rollingSet(begun(b), 1, inSet(1, groupIs(groupUnknown))), rejected, updatedBefore(1)),
			want: at(1, decision{Progress: begun(b), State: state(lifecycle.UpdateTemplateRejected, "nothing is replaced: no such volume"),
				RequeueAfter: lifecycle.RetryRejected}),
		},
		"a rejected template that no replica needs": {
			u:    change(rollingSet(begun(b), -1, inSet(0)), rejected, updatedBefore(2)),
			want: decision{Progress: begun(b, overNow), State: state(lifecycle.UpdateComplete, complete)},
		},
		"a rejected template under OnDelete": {
			u:    change(rollingSet(nil, -1, inSet(0, behind)), rejected, onDelete),
			want: decision{Progress: begun(b, startedNow, overNow), State: state(lifecycle.UpdateOnDelete, "1 replica has pods of an earlier template; they stay until they are deleted")},
		},

		// The order.
		"the highest index first": {
			u: rollingSet(begun(b), -1, inSet(0, behind), inSet(1, behind), inSet(2, behind)),
			want: picks(2, decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.Updating, "updating replica 2"+nowText+"3 replicas have pods of an earlier template")}),
		},
		"a replica in breach of a minimum first": {
			u: rollingSet(begun(b), -1, inSet(0, behind), inSet(1, behind, cliqueIs(breached)), inSet(2, behind)),
			want: picks(1, decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.Updating, "updating replica 1"+nowText+"3 replicas have pods of an earlier template")}),
		},
		"also with a scaling group in breach": {
			u: rollingSet(begun(b), -1, inSet(0, behind, groupIs(func(g *lifecycle.ScalingGroup) { g.BreachedSince = ago(time.Hour) })), inSet(1, behind)),
			want: picks(0, decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.Updating, "updating replica 0"+nowText+"2 replicas have pods of an earlier template")}),
		},
		"a replica without scheduled pods before that": {
			u: rollingSet(begun(b), -1, inSet(0, behind, scheduledNowhere), inSet(1, behind, cliqueIs(breached)), inSet(2, behind)),
			want: picks(0, decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.Updating, "updating replica 0"+nowText+"3 replicas have pods of an earlier template")}),
		},
		"a replica with one scheduled pod is not preferred": {
			u: rollingSet(begun(b), -1, inSet(0, behind, cliqueIs(unscheduled)), inSet(1, behind)),
			want: picks(1, decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.Updating, "updating replica 1"+nowText+"2 replicas have pods of an earlier template")}),
		},
		"a replica that an earlier update has begun to change before all others": {
			u: rollingSet(begun(b), -1, inSet(0, behind), inSet(1, behind, cliqueIs(updating, unavailable)), inSet(2, behind, scheduledNowhere)),
			want: picks(1, decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.Updating, "updating replica 1"+nowText+"3 replicas have pods of an earlier template")}),
		},
		"replicas that follow are left alone; of one that does not, what follows is listed": {
			u: change(rollingSet(begun(b), -1, inSet(0, groupIs(groupBefore)), inSet(1)), updatedBefore(3)),
			want: picks(0, decision{Progress: begun(b, progressed(now)), Cliques: []string{"router"},
				State: state(lifecycle.Updating, "updating replica 0"+nowText+"1 replica has pods of an earlier template")}),
		},
		"a replica of which a PodClique alone does not follow": {
			u: change(rollingSet(begun(b), -1, inSet(0, cliqueIs(before)), inSet(1)), updatedBefore(3)),
			want: picks(0, decision{Progress: begun(b, progressed(now)), Groups: []string{"model"},
				State: state(lifecycle.Updating, "updating replica 0"+nowText+"1 replica has pods of an earlier template")}),
		},

		// An update looks back.
		"a replica that the update made was available once and has failed: no other is updated": {
			u: rollingSet(begun(b, made(1)), -1, inSet(0, behind), inSet(1, cliqueIs(unavailable)), inSet(2, behind, scheduledNowhere)),
			want: decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.UpdateWaitsForReadiness, "replica 1, which is updated, is not available: PodClique router is not available")},
		},
		"a replica without scheduled pods is passed": {
			u: change(rollingSet(begun(b), 2, inSet(0, behind), inSet(1, behind), inSet(2, scheduledNowhere)), updatedBefore(2)),
			want: picks(1, decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.Updating, "updating replica 1"+nowText+"2 replicas have pods of an earlier template")}),
		},
		"replicas that keep an earlier revision have pods of it, although their statuses do not describe the current one": {
			u: change(rollingSet(begun(b), -1, inSet(0, heldBack), inSet(1)), updatedBefore(2)),
			want: picks(0, decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.Updating, "updating replica 0"+nowText+"1 replica has pods of an earlier template")}),
		},

		// Paused, and with a partition.
		"paused: no replica is selected": {
			u: change(rollingSet(begun(b), -1, inSet(0, behind), inSet(1)), updatedBefore(2), pausedSet),
			want: decision{Progress: begun(b),
				State: state(lifecycle.UpdatePaused, "the update is paused; 1 replica has pods of an earlier template")},
		},
		"paused while a replica is updated: it stays the current one": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, behind)), pausedSet),
			want: at(1, decision{Progress: begun(b),
				State: state(lifecycle.UpdatePaused, "the update is paused; updating replica 1 since 2026-05-01T11:59:00Z: it is about to be updated")}),
		},
		"replicas below the partition stay": {
			u: change(rollingSet(begun(b), -1, inSet(0, behind), inSet(1, behind), inSet(2)), updatedBefore(2), partition(2)),
			want: decision{Progress: begun(b),
				State: state(lifecycle.UpdatePartitionReached, "replicas from index 2 on match the current template; 2 replicas have pods of an earlier template")},
		},
		"those from the partition on are updated": {
			u: change(rollingSet(begun(b), -1, inSet(0, behind, scheduledNowhere), inSet(1, behind), inSet(2)), updatedBefore(2), partition(1)),
			want: picks(1, decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.Updating, "updating replica 1"+nowText+"2 replicas have pods of an earlier template")}),
		},
		"one below the partition that an earlier update has begun to change is not waited for": {
			u: change(rollingSet(begun(b), -1, inSet(0, behind), inSet(1, behind, cliqueIs(updating, unavailable)), inSet(2, behind)), partition(2)),
			want: picks(2, decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.Updating, "updating replica 2"+nowText+"3 replicas have pods of an earlier template")}),
		},

		// One at a time.
		"it has not begun to change": {
			u: rollingSet(begun(b), 1, inSet(0, behind), inSet(1, behind)),
			want: at(1, decision{Progress: begun(b),
				State: state(lifecycle.Updating, "updating replica 1"+since+"it is about to be updated")}),
		},
		"the condition of its PodClique is used": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, behind, cliqueIs(updating))),
				waits("router", lifecycle.UpdateWaitsForCapacity, "pod router-0-b is not bound to a node")),
			want: at(1, decision{Progress: begun(b),
				State: state(lifecycle.UpdateWaitsForCapacity, "updating replica 1"+since+"PodClique router (1 other is not done yet): pod router-0-b is not bound to a node")}),
		},
		"the PodClique follows; the condition of the group is used": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, groupIs(groupBefore))), updatedBefore(1),
				waits("router", lifecycle.UpdateWaitsForCapacity, "an old story"), waits("model", lifecycle.UpdateWaitsForReadiness, "replica 1 is not available")),
			want: at(1, decision{Progress: begun(b), Cliques: []string{"router"},
				State: state(lifecycle.UpdateWaitsForReadiness, "updating replica 1"+since+"PodCliqueScalingGroup model: replica 1 is not available")}),
		},
		"one of them has stalled: it is reported": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, behind)), stalledAfter(time.Second),
				waits("router", lifecycle.UpdateWaitsForReadiness, "pod router-0-b is not ready"), waits("model", lifecycle.UpdateStalled, "no progress")),
			want: at(1, decision{Progress: begun(b),
				State: state(lifecycle.UpdateStalled, "updating replica 1"+since+"PodCliqueScalingGroup model (1 other is not done yet): no progress")}),
		},
		"the number of others that do not follow is reported, whatever their conditions": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, behind, func(r *lifecycle.SetReplica) {
				second, third := r.Cliques[0], r.Cliques[0]
				second.Name, third.Name, third.Revision = "second", "third", 1
				r.Cliques = append(r.Cliques, second, third)
			})), waits("router", lifecycle.UpdateWaitsForReadiness, "pod router-0-b is not ready"), waits("second", lifecycle.UpdateWaitsForCapacity, "no room")),
			want: at(1, decision{Progress: begun(b),
				State: state(lifecycle.UpdateWaitsForReadiness, "updating replica 1"+since+"PodClique router (3 others are not done yet): pod router-0-b is not ready")}),
		},
		"the condition of an object that waits for its turn is ignored": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, behind)), waits("router", lifecycle.UpdateWaitsForTurn, "2 pods")),
			want: at(1, decision{Progress: begun(b),
				State: state(lifecycle.Updating, "updating replica 1"+since+"it is about to be updated")}),
		},
		"a status is unknown: the replica is not done": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, groupIs(groupUnknown))), updatedBefore(1)),
			want: at(1, decision{Progress: begun(b), Cliques: []string{"router"},
				State: state(lifecycle.Updating, "updating replica 1"+since+"it is about to be updated")}),
		},
		"all objects follow; the replica is not available": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, groupIs(groupUnavailable))), updatedBefore(2)),
			want: at(1, decision{Progress: begun(b), Cliques: []string{"router"}, Groups: []string{"model"},
				State: state(lifecycle.UpdateWaitsForReadiness, "updating replica 1"+since+"PodCliqueScalingGroup model is not available")}),
		},
		"it is not even scheduled": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, cliqueIs(unscheduled))), updatedBefore(2)),
			want: at(1, decision{Progress: begun(b), Cliques: []string{"router"}, Groups: []string{"model"},
				State: state(lifecycle.UpdateWaitsForCapacity, "updating replica 1"+since+"PodClique router is not bound to nodes")}),
		},
		"an object of it is being deleted": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, cliqueIs(leavingClique))), updatedBefore(2)),
			want: at(1, decision{Progress: begun(b), Cliques: []string{"router"}, Groups: []string{"model"},
				State: state(lifecycle.UpdateWaitsForDeletion, "updating replica 1"+since+"router is being deleted")}),
		},
		"an object of it does not exist": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, withoutGroup)), updatedBefore(1)),
			want: at(1, decision{Progress: begun(b), Cliques: []string{"router"},
				State: state(lifecycle.UpdateWaitsForCreation, "updating replica 1"+since+"model is not created yet")}),
		},
		"the missing object waits for pods of an earlier attempt": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, withoutGroup, waitsForPod)), updatedBefore(1)),
			want: at(1, decision{Progress: begun(b), Cliques: []string{"router"},
				State: state(lifecycle.UpdateWaitsForDeletion, "updating replica 1"+since+"model is not created yet: it waits until pod x of an earlier PodClique is gone")}),
		},
		"it was restarted: objects of the previous attempt do not count": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, func(r *lifecycle.SetReplica) { r.Attempt = 1 })), updatedBefore(2)),
			want: at(1, decision{Progress: begun(b), Cliques: []string{"router"}, Groups: []string{"model"},
				State: state(lifecycle.UpdateWaitsForReadiness, "updating replica 1"+since+"PodClique router is not available")}),
		},
		"it is done: the next": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1)), updatedBefore(2)),
			want: picks(0, decision{Progress: begun(b, progressed(now)), Done: index(1),
				State: state(lifecycle.Updating, "updating replica 0"+nowText+"1 replica has pods of an earlier template")}),
		},
		"it is done, and the next replica is unknown": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind, groupIs(groupUnknown)), inSet(1)), updatedBefore(2)),
			want: decision{Progress: begun(b, progressed(now)), Done: index(1),
				State: state(lifecycle.Updating, unknown)},
		},
		"another object of it follows: progress": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, groupIs(groupBefore))), stalledAfter(time.Second)),
			want: at(1, decision{Progress: begun(b, progressed(now)), Cliques: []string{"router"}, RequeueAfter: time.Second,
				State: state(lifecycle.Updating, "updating replica 1"+since+"it is about to be updated")}),
		},

		// The end.
		"the last is done: the end": {
			u:    change(rollingSet(begun(b), 0, inSet(0), inSet(1)), updatedBefore(4)),
			want: decision{Progress: begun(b, overNow), Done: index(0), State: state(lifecycle.UpdateComplete, complete)},
		},
		"another replica is not available: not complete": {
			u:    change(rollingSet(begun(b), 0, inSet(0), inSet(1, cliqueIs(unavailable))), updatedBefore(4)),
			want: decision{Progress: begun(b, progressed(now)), Done: index(0), State: state(lifecycle.UpdateWaitsForReadiness, "replica 1, which is updated, is not available: PodClique router is not available")},
		},
		"another replica is being deleted: not yet": {
			u: change(rollingSet(begun(b), 0, inSet(0), inSet(1, cliqueIs(before, leavingClique))), updatedBefore(4)),
			want: decision{Progress: begun(b, progressed(now)), Done: index(0),
				State: state(lifecycle.UpdateWaitsForDeletion, "replica 1: router is being deleted")},
		},
		"another replica waits for pods of an earlier attempt: not yet": {
			u: change(rollingSet(begun(b), 0, inSet(0), inSet(1, withoutGroup, waitsForPod)), updatedBefore(4)),
			want: decision{Progress: begun(b, progressed(now)), Done: index(0),
				State: state(lifecycle.UpdateWaitsForDeletion, "replica 1: model is not created yet: it waits until pod x of an earlier PodClique is gone")},
		},
		"a status is unknown: the update does not end": {
			u:    rollingSet(begun(b), -1, inSet(0), inSet(1, cliqueIs(unobserved))),
			want: decision{Progress: begun(b, progressed(now)), State: state(lifecycle.Updating, unknown)},
		},

		// Scaling in mid-update.
		"the current replica is no longer desired: the next": {
			u: rollingSet(begun(b), 2, inSet(0, behind), inSet(1, behind)),
			want: picks(1, decision{Progress: begun(b, progressed(now)),
				State: state(lifecycle.Updating, "updating replica 1"+nowText+"2 replicas have pods of an earlier template")}),
		},
		"scaled out: the new one follows": {
			u: change(rollingSet(begun(b), 1, inSet(0, behind), inSet(1, behind), inSet(2, withoutGroup)), updatedBefore(1)),
			want: at(1, decision{Progress: begun(b),
				State: state(lifecycle.Updating, "updating replica 1"+since+"it is about to be updated")}),
		},

		// A second edit.
		"a second edit starts a new update, and the current replica stays": {
			u: rollingSet(begun(a), 0, inSet(0, behind), inSet(1, behind)),
			want: at(0, decision{Progress: begun(b, startedNow),
				State: state(lifecycle.Updating, "updating replica 0"+since+"it is about to be updated")}),
		},
		"also while it is unknown which objects it changes": {
			u: rollingSet(begun(a), 0, inSet(0, cliqueIs(unobserved)), inSet(1, behind)),
			want: at(0, decision{Progress: begun(b, startedNow), Groups: []string{"model"},
				State: state(lifecycle.Updating, "updating replica 0"+since+"it is about to be updated")}),
		},
		"it changes nothing of the current replica, which is available": {
			u: rollingSet(begun(a), 0, inSet(0), inSet(1, behind)),
			want: picks(1, decision{Progress: begun(b, startedNow), Done: index(0),
				State: state(lifecycle.Updating, "updating replica 1"+nowText+"1 replica has pods of an earlier template")}),
		},

		// OnDelete.
		"OnDelete: outdated pods stay": {
			u: change(rollingSet(begun(b, atOnce), -1, inSet(0, behind), inSet(1)), onDelete),
			want: decision{Progress: begun(b, atOnce),
				State: state(lifecycle.UpdateOnDelete, "1 replica has pods of an earlier template; they stay until they are deleted")},
		},
		"OnDelete -> RollingRecreate: no replica is updated": {
			u: rollingSet(begun(b, atOnce), -1, inSet(0, behind), inSet(1, behind, scheduledNowhere)),
			want: decision{Progress: begun(b, atOnce),
				State: state(lifecycle.UpdateDeferred, "2 replicas have pods of an earlier template; they stay until they are deleted, or the template changes again")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := flatSet(lifecycle.DecideSetUpdate(tc.u, now))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(), notReached); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetUpdateCounts(t *testing.T) {
	t.Parallel()
	d := lifecycle.DecideSetUpdate(rollingSet(begun(lifecycle.Target{Generation: "gen-b"}), -1,
		inSet(0), inSet(1, behind), inSet(2, groupIs(groupUnknown)), inSet(3, cliqueIs(updating)), inSet(4, withoutGroup)), now)
	if d.UpdatedCliques != 3 || d.TotalCliques != 5 || d.UpdatedGroups != 2 || d.TotalGroups != 4 {
		t.Errorf("%d of %d PodCliques and %d of %d groups, want 3 of 5 and 2 of 4", d.UpdatedCliques, d.TotalCliques, d.UpdatedGroups, d.TotalGroups)
	}
}

type setDecision struct {
	Progress        *lifecycle.Progress
	Current         *int
	CurrentSince    time.Time
	Done            *int
	Cliques, Groups []string
	State           lifecycle.UpdateState
	RequeueAfter    time.Duration
}

func flatSet(d lifecycle.SetUpdateDecision) setDecision {
	f := setDecision{Done: d.Done, Cliques: d.Cliques, Groups: d.Groups, State: d.State, RequeueAfter: d.RequeueAfter}
	if d.Progress != nil {
		p := *d.Progress
		if i, err := strconv.Atoi(p.Selected); err == nil {
			f.Current, f.CurrentSince = &i, p.SelectedAt
		}
		p.Selected, p.SelectedAt, p.Completed, p.PausedSince = "", time.Time{}, nil, time.Time{}
		f.Progress = &p
	}
	return f
}
