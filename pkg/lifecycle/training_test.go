// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/lifecycle"
)

func TestDecideTraining(t *testing.T) {
	t.Parallel()
	hour := time.Hour
	type change = func(*lifecycle.TrainingClique)
	clique := func(changes ...change) lifecycle.TrainingClique {
		c := lifecycle.TrainingClique{}
		c.Name, c.Observed, c.Message = "w", true, "pod w-0: container main exited with code 1"
		for _, f := range changes {
			f(&c)
		}
		return c
	}
	done := func(c *lifecycle.TrainingClique) { c.Finished = true }
	failed := func(c *lifecycle.TrainingClique) { c.BreachedSince = ago(time.Second) }
	preempted := func(c *lifecycle.TrainingClique) { failed(c); c.Preempted = true }
	replica := func(index int, cliques ...lifecycle.TrainingClique) lifecycle.TrainingReplica {
		return lifecycle.TrainingReplica{Index: index, Complete: true, Cliques: cliques}
	}
	// running returns a workload that has run for an hour, with the given replicas.
	running := func(f func(*lifecycle.Training), replicas ...lifecycle.TrainingReplica) lifecycle.Training {
		w := lifecycle.Training{Phase: lifecycle.PhaseRunning, StartTime: ago(time.Hour), Running: true, Started: true, Replicas: replicas}
		if f != nil {
			f(&w)
		}
		return w
	}
	// still returns the outcome for such a workload if nothing changes.
	still := func(f func(*lifecycle.TrainingOutcome)) lifecycle.TrainingOutcome {
		o := lifecycle.TrainingOutcome{Phase: lifecycle.PhaseRunning, StartTime: ago(time.Hour)}
		if f != nil {
			f(&o)
		}
		return o
	}
	restarted := lifecycle.Replacement{Reason: lifecycle.ReplacedRestart, Message: "PodClique w: pod w-0: container main exited with code 1", Since: ago(time.Second)}
	gaveUp := func(c *lifecycle.TrainingClique) { c.GivenUp = 1 }
	onLostNodes := func(r lifecycle.TrainingReplica) lifecycle.TrainingReplica { r.NodesLost = true; return r }
	silence := lifecycle.Silence{Reason: lifecycle.NodesDoNotAnswer, Text: "node n1 does not answer", Until: now.Add(7 * time.Second)}
	onSilentNodes := func(r lifecycle.TrainingReplica) lifecycle.TrainingReplica { r.Silence = silence; return r }
	unlucky := restarted
	unlucky.Reason = lifecycle.ReplacedNodesLost
	displaced := restarted
	displaced.Reason = lifecycle.ReplacedPreemption
	for name, tc := range map[string]struct {
		workload lifecycle.Training
		want     lifecycle.TrainingOutcome
	}{
		"no pod is running yet": {
			lifecycle.Training{MaxRuntime: time.Hour, Replicas: []lifecycle.TrainingReplica{replica(0, clique())}},
			lifecycle.TrainingOutcome{Phase: lifecycle.PhasePending}},
		"all its pods ended, and nothing was recorded yet: it is Running": {
			running(func(w *lifecycle.Training) { w.Running = false }, replica(0, clique())), still(nil)},
		"no pod runs, and one waits to": {
			running(func(w *lifecycle.Training) { w.Running, w.Draining = false, true }, replica(0, clique())),
			still(func(o *lifecycle.TrainingOutcome) { o.Phase = lifecycle.PhasePending })},
		"no replicas are wanted": {lifecycle.Training{}, lifecycle.TrainingOutcome{Phase: lifecycle.PhasePending}},
		"the first pod runs": {
			lifecycle.Training{Phase: lifecycle.PhasePending, MaxRuntime: time.Hour, Running: true, Started: true, Replicas: []lifecycle.TrainingReplica{replica(0, clique())}},
			lifecycle.TrainingOutcome{Phase: lifecycle.PhaseRunning, StartTime: now, Deadline: now.Add(time.Hour), Again: true}},
		"the pod ended before it was observed running: the phase was Running, too": {
			lifecycle.Training{Phase: lifecycle.PhasePending, Started: true, Replicas: []lifecycle.TrainingReplica{replica(0, clique(done))}},
			lifecycle.TrainingOutcome{Phase: lifecycle.PhaseRunning, StartTime: now, Again: true}},
		"the deadline is recorded by a version that did not": {
			running(func(w *lifecycle.Training) { w.MaxRuntime = 2 * time.Hour }, replica(0, clique())),
			still(func(o *lifecycle.TrainingOutcome) { o.Deadline, o.RequeueAfter = now.Add(time.Hour), time.Hour })},
		"its pods are gone, as between two attempts": {
			running(func(w *lifecycle.Training) { w.Running, w.Started = false, false }, replica(0, clique())),
			still(func(o *lifecycle.TrainingOutcome) { o.Phase = lifecycle.PhasePending })},
		"one of two PodCliques has succeeded": {
			running(nil, replica(0, clique(done), clique())), still(nil)},
		"one of three replicas has succeeded": {
			running(nil, replica(0, clique()), replica(1, clique(done), clique(done)), replica(2, clique())),
			still(func(o *lifecycle.TrainingOutcome) { o.Succeeded = lifecycle.Indices(1) })},
		"a PodClique of a scaling group is missing": {
			running(nil, lifecycle.TrainingReplica{Cliques: []lifecycle.TrainingClique{clique(done)}}), still(nil)},
		"the PodCliques that succeeded are of an earlier attempt": {
			running(nil, lifecycle.TrainingReplica{Attempt: 1, Complete: true, Cliques: []lifecycle.TrainingClique{clique(done)}}), still(nil)},
		"the last replica has succeeded": {
			running(func(w *lifecycle.Training) { w.Succeeded = lifecycle.Indices(1) }, replica(0, clique(done)), replica(1)),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Phase, o.Succeeded, o.FinishedAt, o.Message = lifecycle.PhaseSucceeded, lifecycle.Indices(0, 1), now, "All replicas have succeeded"
			})},
		"it has succeeded without two of its pods": {
			running(nil, replica(0, clique(done), clique(done, gaveUp)), replica(1, clique(done, gaveUp))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Phase, o.Succeeded, o.FinishedAt = lifecycle.PhaseSucceeded, lifecycle.Indices(0, 1), now
				o.Message = "All replicas have succeeded; 2 pods were given up, each after 6 failures in a row: see PodClique w"
			})},
		"a replica that succeeded is not restarted": {
			running(func(w *lifecycle.Training) { w.Succeeded, w.MaxRestarts = lifecycle.Indices(0), 1 }, replica(0, clique(failed)), replica(1, clique())),
			still(func(o *lifecycle.TrainingOutcome) { o.Succeeded = lifecycle.Indices(0) })},
		"a PodClique is below its minimum": {
			running(func(w *lifecycle.Training) { w.MaxRestarts = 1 }, replica(0, clique(failed)), replica(1, clique())),
			still(func(o *lifecycle.TrainingOutcome) { o.Restart = map[int]lifecycle.Replacement{0: restarted} })},
		"several PodCliques of one replica are one restart": {
			running(func(w *lifecycle.Training) { w.MaxRestarts = 1 }, replica(0, clique(failed), clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) { o.Restart = map[int]lifecycle.Replacement{0: restarted} })},
		"two replicas fail together": {
			running(func(w *lifecycle.Training) { w.MaxRestarts = 2 }, replica(0, clique(failed)), replica(1, clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Restart = map[int]lifecycle.Replacement{0: restarted, 1: restarted}
			})},
		"two replicas fail together, and one restart is left": {
			running(func(w *lifecycle.Training) { w.MaxRestarts, w.RestartCount = 2, 1 }, replica(0, clique(failed)), replica(1, clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Restart, o.RequeueAfter = map[int]lifecycle.Replacement{0: restarted}, time.Second
			})},
		"one of two replicas that failed together has used the last restart": {
			running(func(w *lifecycle.Training) { w.MaxRestarts, w.RestartCount = 2, 2 }, replica(0, clique()), replica(1, clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Failure = lifecycle.MaxRestartsExceeded
				o.Message = "replica 1 failed after 2 of 2 restarts: PodClique w: pod w-0: container main exited with code 1"
			})},
		"no restarts are allowed": {
			running(nil, replica(0, clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Failure = lifecycle.MaxRestartsExceeded
				o.Message = "replica 0 failed after 0 of 0 restarts: PodClique w: pod w-0: container main exited with code 1"
			})},
		"its pods were preempted, and no restarts are allowed": {
			running(nil, replica(0, clique(preempted), clique(preempted), clique())),
			still(func(o *lifecycle.TrainingOutcome) { o.Restart = map[int]lifecycle.Replacement{0: displaced} })},
		"pods of it were lost with their nodes, the others failed or were preempted, and no restarts are allowed": {
			running(nil, onLostNodes(replica(0, clique(failed), clique(preempted), clique()))),
			still(func(o *lifecycle.TrainingOutcome) { o.Restart = map[int]lifecycle.Replacement{0: unlucky} })},
		"it is not known whether the node of a pod is lost for which others failed": {
			running(nil, onSilentNodes(replica(0, clique(failed), clique()))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Held, o.RequeueAfter = map[int]lifecycle.Silence{0: silence}, 7*time.Second
			})},
		"a node is lost, another is silent, and others failed": {
			running(nil, onLostNodes(onSilentNodes(replica(0, clique(failed), clique())))),
			still(func(o *lifecycle.TrainingOutcome) { o.Restart = map[int]lifecycle.Replacement{0: unlucky} })},
		"a node is silent, and all missing pods were preempted": {
			running(nil, onSilentNodes(replica(0, clique(preempted), clique()))),
			still(func(o *lifecycle.TrainingOutcome) { o.Restart = map[int]lifecycle.Replacement{0: displaced} })},
		"a node of one replica is silent, and another replica failed": {
			running(nil, onSilentNodes(replica(0, clique(failed))), replica(1, clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Failure = lifecycle.MaxRestartsExceeded
				o.Held, o.RequeueAfter = map[int]lifecycle.Silence{0: silence}, 7*time.Second
				o.Message = "replica 1 failed after 0 of 0 restarts: " + restarted.Message
			})},
		"pods of one PodClique were preempted, those of another failed": {
			running(func(w *lifecycle.Training) { w.MaxRestarts = 1 }, replica(0, clique(preempted), clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) { o.Restart = map[int]lifecycle.Replacement{0: restarted} })},
		"pods of one PodClique were preempted, those of another failed, and no restart is left": {
			running(nil, replica(0, clique(preempted), clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Failure = lifecycle.MaxRestartsExceeded
				o.Message = "replica 0 failed after 0 of 0 restarts: PodClique w: pod w-0: container main exited with code 1"
			})},
		"one replica was preempted, one failed, and one restart is left for it": {
			running(func(w *lifecycle.Training) { w.MaxRestarts = 1 }, replica(0, clique(preempted)), replica(1, clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Restart = map[int]lifecycle.Replacement{0: displaced, 1: restarted}
			})},
		"one replica was preempted, and one failed too often": {
			running(nil, replica(0, clique(preempted)), replica(1, clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Failure = lifecycle.MaxRestartsExceeded
				o.Message = "replica 1 failed after 0 of 0 restarts: PodClique w: pod w-0: container main exited with code 1"
			})},
		"the delay after a preemption has not passed": {
			running(nil, replica(0, clique(preempted, func(c *lifecycle.TrainingClique) { c.Delay = time.Minute }))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.RequeueAfter, o.NextRestart = 59*time.Second, now.Add(59*time.Second)
			})},
		"the preemption was in an earlier attempt": {
			running(nil, lifecycle.TrainingReplica{Attempt: 1, Cliques: []lifecycle.TrainingClique{clique(preempted)}}), still(nil)},
		"its pods were preempted, and its time is over": {
			running(func(w *lifecycle.Training) { w.MaxRuntime, w.Deadline = time.Hour, now }, replica(0, clique(preempted))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Deadline, o.Failure = now, lifecycle.MaxRuntimeExceeded
				o.Message = "maxRuntime of 1h0m0s, counted from 2026-05-01T11:00:00Z, was over at 2026-05-01T12:00:00Z"
			})},
		"the breach is of an earlier attempt: it was counted": {
			running(func(w *lifecycle.Training) { w.MaxRestarts, w.RestartCount = 1, 1 },
				lifecycle.TrainingReplica{Attempt: 1, Cliques: []lifecycle.TrainingClique{clique(failed)}}), still(nil)},
		"the status is of another spec": {
			running(nil, replica(0, clique(failed, func(c *lifecycle.TrainingClique) { c.Observed = false }))), still(nil)},
		"the PodClique is being deleted": {
			running(nil, replica(0, clique(failed, func(c *lifecycle.TrainingClique) { c.Terminating = true }))), still(nil)},
		"the delay of the breach has not passed": {
			running(nil, replica(0, clique(failed, func(c *lifecycle.TrainingClique) { c.Delay = time.Minute }))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.RequeueAfter, o.NextRestart = 59*time.Second, now.Add(59*time.Second)
			})},
		"the first of two delays counts": {
			running(func(w *lifecycle.Training) { w.MaxRestarts = 1 },
				replica(0, clique(failed, func(c *lifecycle.TrainingClique) { c.Delay = time.Minute }), clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) { o.Restart = map[int]lifecycle.Replacement{0: restarted} })},
		"the deadline is in a second": {
			running(func(w *lifecycle.Training) { w.MaxRuntime, w.Deadline = time.Hour, now.Add(time.Second) }, replica(0, clique())),
			still(func(o *lifecycle.TrainingOutcome) { o.Deadline, o.RequeueAfter = now.Add(time.Second), time.Second })},
		"the deadline has come, and a restart would be due": {
			running(func(w *lifecycle.Training) { w.MaxRuntime, w.Deadline, w.MaxRestarts = time.Hour, now, 5 }, replica(0, clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Deadline, o.Failure = now, lifecycle.MaxRuntimeExceeded
				o.Message = "maxRuntime of 1h0m0s, counted from 2026-05-01T11:00:00Z, was over at 2026-05-01T12:00:00Z"
			})},
		"all succeeded in the second of the deadline": {
			running(func(w *lifecycle.Training) { w.MaxRuntime, w.Deadline = time.Hour, now }, replica(0, clique(done))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Deadline, o.Phase, o.FinishedAt, o.Message = now, lifecycle.PhaseSucceeded, now, "All replicas have succeeded"
				o.Succeeded = lifecycle.Indices(0)
			})},
		"it fails, and pods are still running": {
			running(func(w *lifecycle.Training) { w.Failed, w.Draining = true, true }, replica(0, clique(failed))), still(nil)},
		"it fails, and no pod is running": {
			running(func(w *lifecycle.Training) { w.Failed, w.TTL = true, &hour }, replica(0, clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Phase, o.FinishedAt, o.RequeueAfter = lifecycle.PhaseFailed, now, time.Hour
			})},
		"Failed is final": {
			running(func(w *lifecycle.Training) {
				w.Phase, w.Failed, w.FinishedAt = lifecycle.PhaseFailed, true, ago(time.Minute)
			}, replica(0, clique(done))),
			still(func(o *lifecycle.TrainingOutcome) { o.Phase, o.FinishedAt = lifecycle.PhaseFailed, ago(time.Minute) })},
		"Succeeded is final": {
			running(func(w *lifecycle.Training) {
				w.Phase, w.FinishedAt, w.TTL = lifecycle.PhaseSucceeded, ago(time.Minute), &hour
			}, replica(0, clique(failed))),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Phase, o.FinishedAt, o.RequeueAfter = lifecycle.PhaseSucceeded, ago(time.Minute), 59*time.Minute
			})},
		"its time after the end is over": {
			running(func(w *lifecycle.Training) {
				w.Phase, w.FinishedAt, w.TTL = lifecycle.PhaseSucceeded, ago(time.Hour), &hour
			}),
			still(func(o *lifecycle.TrainingOutcome) {
				o.Phase, o.FinishedAt, o.Expired = lifecycle.PhaseSucceeded, ago(time.Hour), true
			})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lifecycle.DecideTraining(tc.workload, now)
			if got.Succeeded.String() != tc.want.Succeeded.String() {
				t.Errorf("succeeded: %q, want %q", got.Succeeded, tc.want.Succeeded)
			}
			got.Succeeded, tc.want.Succeeded = lifecycle.IndexSet{}, lifecycle.IndexSet{}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b lifecycle.IndexSet) bool { return a.String() == b.String() })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheDeadlineOfATrainingWorkload: deadlines are whole seconds, never early.
func TestTheDeadlineOfATrainingWorkload(t *testing.T) {
	t.Parallel()
	at := now.Add(300 * time.Millisecond)
	got := lifecycle.DecideTraining(lifecycle.Training{MaxRuntime: time.Hour, Running: true, Started: true}, at)
	if want := now.Add(time.Hour + time.Second); !got.Deadline.Equal(want) || !got.StartTime.Equal(now.Add(time.Second)) {
		t.Errorf("started %s, deadline %s, want %s and %s", got.StartTime, got.Deadline, now.Add(time.Second), want)
	}
}

// TestFinishedWithoutATime: a finished workload without a completion time in its status is not deleted immediately.
func TestFinishedWithoutATime(t *testing.T) {
	t.Parallel()
	ttl, now := time.Minute, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	o := lifecycle.DecideTraining(lifecycle.Training{Phase: lifecycle.PhaseFailed, Failed: true, TTL: &ttl}, now)
	if o.Expired || !o.FinishedAt.Equal(now) || o.RequeueAfter != ttl {
		t.Errorf("%+v", o)
	}
}
