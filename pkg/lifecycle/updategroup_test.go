// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// The group of the tests follows revision 2, whose hash is gen-b. Its replicas have two PodCliques.

// member is a PodClique whose pods follow the current template and are ready.
func member(template string) lifecycle.Clique {
	return lifecycle.Clique{Name: template, Template: template, Observed: true, Replicas: 2, MinAvailable: 1,
		Pods: 2, Scheduled: 2, Ready: 2, Updated: 2, Revision: 2, Followed: "gen-b"}
}

// replica returns an available replica that follows; the higher the index, the older. A change applies to its second
// PodClique.
func replica(index int, changes ...func(*lifecycle.Clique)) lifecycle.GroupReplica {
	second := member("worker")
	for _, change := range changes {
		change(&second)
	}
	return lifecycle.GroupReplica{Index: index, Revision: 2, Created: ago(time.Hour + time.Duration(index)*time.Minute),
		Members: []lifecycle.Clique{member("leader"), second}}
}

// unbound returns a replica of which no pod has a node.
func unbound(index int) lifecycle.GroupReplica {
	r := replica(index, unscheduled)
	unscheduled(&r.Members[0])
	return r
}

func before(c *lifecycle.Clique)      { c.Updated, c.Followed = 0, "gen-a" }
func held(c *lifecycle.Clique)        { c.Old, c.Revision, c.Followed = true, 1, "gen-a" }
func unscheduled(c *lifecycle.Clique) { c.Scheduled, c.Ready = 0, 0 }
func unavailable(c *lifecycle.Clique) { c.Ready = 0 }
func ripening(c *lifecycle.Clique)    { c.NotYetAvailable = 2 } // ready, and not for minReadySeconds
func silentNodes(c *lifecycle.Clique) {
	c.Ready, c.Silence = 0, lifecycle.Silence{Reason: lifecycle.NodesDoNotAnswer, Text: "node n does not answer"}
}
func unknown(c *lifecycle.Clique)      { c.Revision, c.Followed, c.Updated = 1, "gen-a", 2 }
func unobserved(c *lifecycle.Clique)   { c.Observed = false }
func withEndedPod(c *lifecycle.Clique) { c.Updated, c.Ready, c.Scheduled = 1, 1, 1 }

func leaves(r lifecycle.GroupReplica) lifecycle.GroupReplica {
	r.Attempt.Group = 1
	return r
}

func lacks(r lifecycle.GroupReplica) lifecycle.GroupReplica {
	r.Members, r.Missing = r.Members[:1], []string{"worker"}
	return r
}

// rollingGroup is an update of a group that has its turn, and of which all desired replicas exist.
func rollingGroup(progress *lifecycle.Progress, minAvailable int32, replicas ...lifecycle.GroupReplica) lifecycle.GroupUpdate {
	return lifecycle.GroupUpdate{Update: lifecycle.Update{Target: lifecycle.Target{Generation: "gen-b"}, Turn: true, Progress: progress,
		Wanted: int32(len(replicas)), MinAvailable: minAvailable}, Revision: 2, Replicas: replicas}
}

func TestDecideGroupUpdate(t *testing.T) {
	t.Parallel()
	change := func(u lifecycle.GroupUpdate, changes ...func(*lifecycle.GroupUpdate)) lifecycle.GroupUpdate {
		for _, change := range changes {
			change(&u)
		}
		return u
	}
	noTurn := func(u *lifecycle.GroupUpdate) { u.Turn = false }
	onDelete := func(u *lifecycle.GroupUpdate) { u.OnDelete, u.Turn = true, false }
	wanted := func(n int32) func(*lifecycle.GroupUpdate) {
		return func(u *lifecycle.GroupUpdate) { u.Wanted = n }
	}
	stalledAfter := func(d time.Duration) func(*lifecycle.GroupUpdate) {
		return func(u *lifecycle.GroupUpdate) { u.StalledAfter = d }
	}
	followedBefore := func(u *lifecycle.GroupUpdate) { u.Followed = "gen-a" }
	pausedGroup := func(u *lifecycle.GroupUpdate) { u.Paused = true }
	b := lifecycle.Target{Generation: "gen-b"}
	because := func(was string) lifecycle.Replacement {
		return lifecycle.Replacement{Reason: lifecycle.ReplacedUpdate, Message: "it has pods of an earlier template, and " + was}
	}
	type replacements = map[int]lifecycle.Replacement
	const complete = "all replicas match the current template"
	type decision = groupDecision
	for name, tc := range map[string]struct {
		u    lifecycle.GroupUpdate
		want decision // without counts
	}{
		"a group without replicas is up to date": {
			u:    rollingGroup(nil, 0),
			want: decision{Known: true, Current: true, State: state(lifecycle.UpdateComplete, complete)},
		},
		"a new group of which no replica exists has nothing of an earlier template": {
			u:    change(rollingGroup(nil, 1), wanted(2)),
			want: decision{Known: true, Current: true, State: state(lifecycle.UpdateComplete, complete)},
		},
		"a group that followed another template claims nothing while it sees no replica": {
			u:    change(rollingGroup(nil, 1), wanted(2), followedBefore),
			want: decision{Known: true},
		},
		"OnDelete: it claims nothing either": {
			u:    change(rollingGroup(nil, 1), wanted(2), followedBefore, onDelete),
			want: decision{Known: true},
		},
		"a pod of the current template that ended is not outdated": {
			u:    rollingGroup(nil, 1, replica(0), replica(1, withEndedPod)),
			want: decision{Known: true, Current: true, State: state(lifecycle.UpdateComplete, complete)},
		},

		// The order.
		"unscheduled and unavailable replicas are replaced immediately, and the oldest available one": {
			u: rollingGroup(nil, 1, replica(0, before), replica(1, before, unavailable), replica(2, before, unscheduled), replica(3, before)),
			want: decision{Known: true, Progress: begun(b, startedNow, selected("3")),
				Replace: replacements{1: because("is not available"), 2: because("is not scheduled"), 3: because("is the oldest ready one")},
				State:   state(lifecycle.Updating, "replacing replica 3; 4 replicas are of an earlier template")},
		},
		"a replica of which nodes do not answer stays, unless it is down for certain": {
			u: rollingGroup(nil, 1, replica(0), replica(1, before, silentNodes), func() lifecycle.GroupReplica {
				r := replica(2, before, silentNodes)
				unavailable(&r.Members[0])
				return r
			}()),
			want: decision{Known: true, Progress: begun(b, startedNow), Replace: replacements{2: because("is not available")},
				State: state(lifecycle.UpdateWaitsForDeletion, "1 replica is being replaced")},
		},
		"only such replicas are left": {
			u: rollingGroup(begun(b), 1, replica(0), replica(1, before, silentNodes)),
			want: decision{Known: true, Progress: begun(b),
				State: state(lifecycle.UpdateWaitsForReadiness, "replica 1 of an earlier template stays while it is not known whether it runs: node n does not answer; waiting")},
		},
		"of the same age: the lowest index": {
			u: rollingGroup(nil, 2, func() lifecycle.GroupReplica {
				r := replica(1, before)
				r.Created = replica(0).Created
				return r
			}(), replica(0, before)),
			want: decision{Known: true, Progress: begun(b, startedNow, selected("0")), Replace: replacements{0: because("is the oldest ready one")},
				State: state(lifecycle.Updating, "replacing replica 0; 2 replicas are of an earlier template")},
		},
		"below the minimum only unavailable replicas are replaced": {
			u: rollingGroup(nil, 3, replica(0, before), replica(1, before, unavailable), replica(2)),
			want: decision{Known: true, Progress: begun(b, startedNow), Replace: replacements{1: because("is not available")},
				State: state(lifecycle.UpdateWaitsForMinAvailable, "no ready replica is replaced, because too few others are available: 2 of 3 replicas available, 3 needed")},
		},
		"replicas that are ready, and not for minReadySeconds, serve: none is replaced without others that are available": {
			u: change(rollingGroup(nil, 1, replica(0, before, ripening), replica(1, before, ripening), replica(2, before, ripening)), stalledAfter(time.Hour)),
			want: decision{Known: true, Progress: begun(b, startedNow),
				State: state(lifecycle.UpdateWaitsForMinAvailable, "no ready replica is replaced, because too few others are available: 0 of 3 replicas available, 1 needed")},
		},
		"only unavailable replicas are left": {
			u: rollingGroup(nil, 1, replica(0), replica(1, before, unavailable)),
			want: decision{Known: true, Progress: begun(b, startedNow), Replace: replacements{1: because("is not available")},
				State: state(lifecycle.UpdateWaitsForDeletion, "1 replica is being replaced")},
		},

		// One at a time.
		"the selected replica is being deleted": {
			u: rollingGroup(begun(b, selected("1")), 1, replica(0, before), leaves(replica(1, before))),
			want: decision{Known: true, Progress: begun(b, selected("1")),
				State: state(lifecycle.UpdateWaitsForDeletion, "replica 1 terminates; its replacement is created when it is gone")},
		},
		"it is gone": {
			u: change(rollingGroup(begun(b, selected("1")), 1, replica(0, before)), wanted(2)),
			want: decision{Known: true, Progress: begun(b, selected("1")),
				State: state(lifecycle.UpdateWaitsForCreation, "the replacement of replica 1 is not created yet")},
		},
		"the first PodClique of its replacement is there": {
			u: rollingGroup(begun(b, selected("1")), 1, replica(0, before), lacks(replica(1))),
			want: decision{Known: true, Progress: begun(b, selected("1")),
				State: state(lifecycle.UpdateWaitsForCreation, "clique worker of replica 1 is not created yet")},
		},
		"both, without a status": {
			u: rollingGroup(begun(b, selected("1")), 1, replica(0, before), replica(1, unscheduled, unknown, unobserved)),
			want: decision{Progress: begun(b, selected("1")),
				State: state(lifecycle.UpdateWaitsForCapacity, "replica 1 is not bound to nodes: PodClique worker is below its minimum")},
		},
		"it has no nodes": {
			u: rollingGroup(begun(b, selected("1")), 1, replica(0, before), replica(1, unscheduled)),
			want: decision{Known: true, Progress: begun(b, selected("1")),
				State: state(lifecycle.UpdateWaitsForCapacity, "replica 1 is not bound to nodes: PodClique worker is below its minimum")},
		},
		"it is not available": {
			u: rollingGroup(begun(b, selected("1")), 1, replica(0, before), replica(1, unavailable)),
			want: decision{Known: true, Progress: begun(b, selected("1")),
				State: state(lifecycle.UpdateWaitsForReadiness, "replica 1 is not available: PodClique worker is below its minimum")},
		},
		"nor according to a status of the previous revision": {
			u: rollingGroup(begun(b, selected("1")), 1, replica(0, before), replica(1, unobserved)),
			want: decision{Progress: begun(b, selected("1")),
				State: state(lifecycle.UpdateWaitsForReadiness, "replica 1 is not available")},
		},
		"it is available: the next": {
			u: rollingGroup(begun(b, selected("1")), 2, replica(0, before), replica(1)),
			want: decision{Known: true, Progress: begun(b, selected("0", "1"), progressed(now)), Replace: replacements{0: because("is the oldest ready one")},
				State: state(lifecycle.Updating, "replacing replica 0; 1 replica is of an earlier template")},
		},
		"availability according to a status of the previous revision does not count": {
			u: rollingGroup(begun(b), 2, replica(0, before), replica(1, unobserved)),
			want: decision{Progress: begun(b),
				State: state(lifecycle.Updating, "the statuses of PodCliques do not describe the current template yet")},
		},

		// The end.
		"one that was unavailable still leaves": {
			u: rollingGroup(begun(b), 1, replica(0), leaves(replica(1, before))),
			want: decision{Known: true, Progress: begun(b),
				State: state(lifecycle.UpdateWaitsForDeletion, "1 replica is being replaced")},
		},
		"all follow, too few are available": {
			u: rollingGroup(begun(b), 2, replica(0), unbound(1)),
			want: decision{Known: true, Progress: begun(b),
				State: state(lifecycle.UpdateWaitsForCapacity, "replica 1 is not bound to nodes: PodClique leader is below its minimum; 1 of 2 replicas available, 2 needed")},
		},
		"a status of the previous revision does not complete the update": {
			u: rollingGroup(begun(b), 1, replica(0), replica(1, unknown)),
			want: decision{Progress: begun(b),
				State: state(lifecycle.Updating, "the statuses of PodCliques do not describe the current template yet")},
		},

		// Scaling in mid-update.
		"the selected replica is no longer desired": {
			u: rollingGroup(begun(b, selected("2")), 2, replica(0, before), replica(1, before)),
			want: decision{Known: true, Progress: begun(b, selected("1", "2"), progressed(now)), Replace: replacements{1: because("is the oldest ready one")},
				State: state(lifecycle.Updating, "replacing replica 1; 2 replicas are of an earlier template")},
		},
		"a replica that the update made was available once and has failed: no replica is replaced, whether it is available or not": {
			u: rollingGroup(begun(b, selected("", "1", "2"), made(1, 2)), 1, replica(0, before), replica(1), replica(2, unavailable), replica(3, before, unavailable)),
			want: decision{Known: true, Progress: begun(b, selected("", "1", "2")),
				State: state(lifecycle.UpdateWaitsForReadiness, "an updated replica is not available: replica 2 is not available: PodClique worker is below its minimum")},
		},
		"an updated replica of which some pods have no node has failed too": {
			u: rollingGroup(begun(b), 1, replica(0), replica(1, unscheduled)),
			want: decision{Known: true, Progress: begun(b),
				State: state(lifecycle.UpdateWaitsForCapacity, "an updated replica is not available: replica 1 is not bound to nodes: PodClique worker is below its minimum")},
		},
		"without the next replica fewer than minAvailable would be available: not replaced": {
			u: rollingGroup(begun(b), 2, replica(0, before), replica(1, before), unbound(2)),
			want: decision{Known: true, Progress: begun(b),
				State: state(lifecycle.UpdateWaitsForMinAvailable,
					"no ready replica is replaced, because too few others are available: replica 2 is not bound to nodes: PodClique leader is below its minimum; 2 of 3 replicas available, 2 needed")},
		},
		"a replica whose PodCliques have an earlier template is outdated, whatever their status says": {
			u: rollingGroup(begun(b), 1, replica(0, held), replica(1)),
			want: decision{Known: true, Progress: begun(b, selected("0"), progressed(now)), Replace: replacements{0: because("is the oldest ready one")},
				State: state(lifecycle.Updating, "replacing replica 0; 1 replica is of an earlier template")},
		},
		"paused: no replica is replaced": {
			u: change(rollingGroup(begun(b), 1, replica(0, before), replica(1, before, unavailable)), pausedGroup),
			want: decision{Known: true, Progress: begun(b, pausedSince(now)),
				State: state(lifecycle.UpdatePaused, "the update is paused; 2 replicas are of an earlier template")},
		},

		// A second edit.
		"A->B->A: Followed is from the first A": {
			u: rollingGroup(nil, 1, replica(0), replica(1, func(c *lifecycle.Clique) { c.Updated, c.Followed = 1, "" })),
			want: decision{Known: true, Progress: begun(b, startedNow, selected("1")), Replace: replacements{1: because("is the oldest ready one")},
				State: state(lifecycle.Updating, "replacing replica 1; 1 replica is of an earlier template")},
		},

		// Unknown states.
		"an update is in progress: only replicas known to be unavailable are replaced": {
			u: rollingGroup(begun(b), 1, replica(0, before), replica(1, unknown), replica(2, before, unscheduled)),
			want: decision{Progress: begun(b), Replace: replacements{2: because("is not scheduled")},
				State: state(lifecycle.Updating, "the statuses of PodCliques do not describe the current template yet")},
		},

		// Turns.
		"no turn: no replica is replaced, whatever its state": {
			u: change(rollingGroup(nil, 1, replica(0, before), replica(1, before, unscheduled)), noTurn),
			want: decision{Known: true,
				State: state(lifecycle.UpdateWaitsForTurn, "2 replicas are of an earlier template; the update of the PodCliqueSet has not reached them")},
		},

		// OnDelete.
		"OnDelete: what an earlier update by RollingRecreate selected is forgotten": {
			u: change(rollingGroup(begun(b, selected("", "1", "0"), over), 1, replica(0), replica(1)), onDelete),
			want: decision{Known: true, Current: true, Progress: begun(b, over),
				State: state(lifecycle.UpdateComplete, complete)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := flatGroup(lifecycle.DecideGroupUpdate(tc.u, now))
			for _, r := range tc.u.Replicas {
				old := func(c lifecycle.Clique) bool {
					return (c.Old || c.Updated < c.Pods && c.Followed != tc.u.Target.Generation) && !c.Terminating
				}
				known := !slices.ContainsFunc(r.Members, func(c lifecycle.Clique) bool { return !c.Old && (c.Revision != r.Revision || !c.Observed) })
				leaves := slices.ContainsFunc(r.Members, func(c lifecycle.Clique) bool { return c.Attempt.Precedes(r.Attempt) })
				tc.want.Outdated = tc.want.Outdated || known && !leaves && slices.ContainsFunc(r.Members, old)
			}
			tc.want.Suspends = tc.want.Progress.Open()
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(), notReached); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCompletedIsBounded: the lists in a status are bounded, and the last entry is the last unit that was in flight.
func TestCompletedIsBounded(t *testing.T) {
	t.Parallel()
	const n = 100
	replicas := make([]lifecycle.GroupReplica, n)
	for i := range replicas {
		replicas[i] = replica(i, before)
	}
	u := rollingGroup(nil, n, replicas...)
	for k := range n {
		d := lifecycle.DecideGroupUpdate(u, now)
		if len(d.Replace) != 1 {
			t.Fatalf("step %d: replaces %v", k, d.Replace)
		}
		for i := range d.Replace {
			u.Replicas[i] = replica(i)
		}
		u.Progress = d.Progress
		if len(u.Progress.Completed) > 64 || len(u.Progress.Completed) != min(k, 64) {
			t.Fatalf("step %d: %d completed", k, len(u.Progress.Completed))
		}
	}
	d := lifecycle.DecideGroupUpdate(u, now)
	if got := d.Progress.Completed; d.Progress.Open() || len(got) != 64 || got[63] != "0" || got[0] != strconv.Itoa(63) {
		t.Errorf("at the end: %+v", d.Progress)
	}
}

func TestGroupUpdateCounts(t *testing.T) {
	t.Parallel()
	d := lifecycle.DecideGroupUpdate(rollingGroup(begun(lifecycle.Target{Generation: "gen-b"}), 1,
		replica(0), replica(1, before), replica(2, unknown), leaves(replica(3, before)), lacks(replica(4))), now)
	if d.UpdatedCliques != 6 || d.TotalCliques != 9 {
		t.Errorf("%d of %d PodCliques updated, want 6 of 9", d.UpdatedCliques, d.TotalCliques)
	}
}

// TestGroupUpdateNamesThePodCliqueItWaitsFor: the message about a replica in flight names the first PodClique, by
// name, that it waits for, because the pods of that PodClique show more details.
func TestGroupUpdateNamesThePodCliqueItWaitsFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		leader, worker func(*lifecycle.Clique)
		want           string
	}{
		"one is not available": {func(*lifecycle.Clique) {}, unavailable, "replica 1 is not available: PodClique worker is below its minimum"},
		"both are not":         {unavailable, unavailable, "replica 1 is not available: PodClique leader is below its minimum"},
		"one is not scheduled": {unavailable, unscheduled, "replica 1 is not bound to nodes: PodClique worker is below its minimum"},
		"one is being deleted": {func(c *lifecycle.Clique) { c.Terminating = true }, unavailable, "replica 1 is not bound to nodes: PodClique leader is being deleted"},
		"the cause is unknown": {func(*lifecycle.Clique) {}, unobserved, "replica 1 is not available"},
	} {
		inFlight := replica(1, tc.worker)
		tc.leader(&inFlight.Members[0])
		slices.Reverse(inFlight.Members)
		progress := &lifecycle.Progress{Target: lifecycle.Target{Generation: "gen-b"}, StartedAt: ago(time.Minute), LastProgress: ago(time.Minute), Selected: "1"}
		u := rollingGroup(progress, 1, replica(0), inFlight)
		if got := lifecycle.DecideGroupUpdate(u, now).State.Message; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

type groupDecision struct {
	Progress                           *lifecycle.Progress
	Replace                            map[int]lifecycle.Replacement
	Known, Current, Outdated, Suspends bool
	State                              lifecycle.UpdateState
	RequeueAfter                       time.Duration
}

func flatGroup(d lifecycle.GroupUpdateDecision) groupDecision {
	return groupDecision{d.Progress, d.Replace, d.Known, d.Current, d.Outdated, d.Suspends, d.State, d.RequeueAfter}
}
