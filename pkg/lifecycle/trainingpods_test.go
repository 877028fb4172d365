// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// worker returns a running pod of a Training workload, an hour old.
func worker(index int, changes ...func(*lifecycle.Pod)) lifecycle.Pod {
	p := with(ready(index), tracked)
	return with(p, changes...)
}

func tracked(p *lifecycle.Pod)    { p.Tracked = true }
func stopped(p *lifecycle.Pod)    { p.Terminating, p.Stopped, p.GraceEnds = true, true, now }
func onLostNode(p *lifecycle.Pod) { p.LostNode = "n0" }
func starting(p *lifecycle.Pod)   { p.Running, p.Ready = false, false }
func succeeded(p *lifecycle.Pod) {
	ended(time.Minute, time.Hour)(p)
	p.Succeeded = true
}

func crashed(code int32) func(*lifecycle.Pod) {
	return func(p *lifecycle.Pod) {
		ended(time.Minute, time.Hour)(p)
		p.Failed, p.End = true, lifecycle.PodEnd{Container: "main", ExitCode: code}
	}
}

func preempted(p *lifecycle.Pod) { p.Preempted = true }

// hangs is a pod of which one container has failed while another is still running.
func hangs(p *lifecycle.Pod) {
	p.Failed, p.Lived, p.EndedAt, p.End = true, time.Hour, ago(time.Minute), lifecycle.PodEnd{Container: "main", ExitCode: 1}
}

func TestDecideTrainingPods(t *testing.T) {
	t.Parallel()
	type pods = []lifecycle.Pod
	// outcome contains the parts of a decision that the rows check.
	type outcome struct {
		Create, Blocked    []int
		Delete             map[string]lifecycle.DeletionReason
		Release            []string
		Succeeded, Started string
		Preempted          string
		Available, Gone    int32
		Done               bool
		Cancelled          int
		Breach             string // the reason, if the status is True or the clique was never available
		Failure, GivenUp   string
		After              time.Duration
	}
	const four = 4
	clique := func(change func(*lifecycle.TrainingPods), pods ...lifecycle.Pod) lifecycle.TrainingPods {
		c := lifecycle.TrainingPods{CliquePods: lifecycle.CliquePods{MinAvailable: four}}
		c.Replicas, c.Pods = four, pods
		if change != nil {
			change(&c)
		}
		return c
	}
	was := func(c *lifecycle.TrainingPods) { c.WasAvailable, c.Started = true, lifecycle.ParseIndices("0-3") }
	elastic := func(c *lifecycle.TrainingPods) { was(c); c.MinAvailable = 2 }
	const never, breached, displaced, lost = "NeverAvailable", "InsufficientReadyPods", "PodsPreempted", "PodsLost"
	// had records that pods were preempted before.
	had := func(indices string, more func(*lifecycle.TrainingPods)) func(*lifecycle.TrainingPods) {
		return func(c *lifecycle.TrainingPods) { more(c); c.Preempted = lifecycle.ParseIndices(indices) }
	}
	for name, tc := range map[string]struct {
		clique lifecycle.TrainingPods
		want   outcome
	}{
		"nothing exists yet": {clique(nil),
			outcome{Create: []int{0, 1, 2, 3}, Breach: never}},
		"pods wait for capacity": {clique(nil, worker(0, pending), worker(1, pending), worker(2, pending), worker(3, pending)),
			outcome{Breach: never}},
		"all run, not all of them ready": {clique(nil, worker(0), worker(1, notReady), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 4}},
		"one crashes at the start while the others start": {clique(nil, worker(0, crashed(1)), worker(1, starting), worker(2, starting), worker(3, starting)),
			outcome{Started: "0", Breach: breached, Failure: "pod p0: container main exited with code 1", Release: []string{"p0"}}},
		"one crashes at the start, and the others may be enough": {
			clique(func(c *lifecycle.TrainingPods) { c.MinAvailable = 2 }, worker(0, crashed(1)), worker(1, starting), worker(2, starting), worker(3, pending)),
			outcome{Started: "0", Breach: never, Failure: "pod p0: container main exited with code 1", Release: []string{"p0"},
				Delete: map[string]lifecycle.DeletionReason{"p0": lifecycle.DeletedEnded}}},
		"one crashes at the start, and those that wait for room do not count": {
			clique(func(c *lifecycle.TrainingPods) { c.MinAvailable = 2 }, worker(0, crashed(1)), worker(1), worker(2, pending), worker(3, pending)),
			outcome{Started: "0-1", Available: 1, Breach: breached, Failure: "pod p0: container main exited with code 1", Release: []string{"p0"}}},
		"below the minimum: no single pod is replaced": {clique(was, worker(0, crashed(137)), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Breach: breached, Failure: "pod p0: container main exited with code 137", Release: []string{"p0"}}},
		"below the minimum with a delay: missing pods are replaced": {
			clique(func(c *lifecycle.TrainingPods) { was(c); c.Delay = time.Hour }, worker(0, crashed(1)), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 2, Breach: breached, Failure: "pod p0: container main exited with code 1; pod 1 is gone",
				Delete: map[string]lifecycle.DeletionReason{"p0": lifecycle.DeletedEnded}, Create: []int{1}, Release: []string{"p0"}}},
		"one hangs because a container of it failed": {clique(was, worker(0, hangs), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Breach: breached, Failure: "pod p0: container main exited with code 1"}},
		"a failed pod is replaced while there are enough": {clique(elastic, worker(0, crashed(1)), worker(1), worker(2)),
			outcome{Started: "0-3", Available: 2, Failure: "pod p0: container main exited with code 1; pod 3 is gone",
				Delete: map[string]lifecycle.DeletionReason{"p0": lifecycle.DeletedEnded}, Create: []int{3}, Release: []string{"p0"}}},
		"a failed pod waits for its back-off": {
			clique(func(c *lifecycle.TrainingPods) {
				elastic(c)
				c.Ends = map[int]lifecycle.Ends{0: {Count: 4, Last: ago(2 * time.Minute)}}
			}, worker(0, crashed(1), func(p *lifecycle.Pod) { p.Lived = time.Minute }), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Failure: "pod p0: container main exited with code 1", Release: []string{"p0"}, After: 20 * time.Second}},
		"a pod has failed six times in a row: it is kept, and not replaced": {
			clique(func(c *lifecycle.TrainingPods) {
				elastic(c)
				c.Ends = map[int]lifecycle.Ends{0: {Count: 5, Last: ago(6 * time.Minute)}}
			}, worker(0, crashed(1), func(p *lifecycle.Pod) { p.Lived = time.Minute }), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Failure: "pod p0: container main exited with code 1", Release: []string{"p0"}, GivenUp: "0"}},
		"a container of it has failed six times while others run: it is deleted": {
			clique(func(c *lifecycle.TrainingPods) {
				elastic(c)
				c.Ends = map[int]lifecycle.Ends{0: {Count: 5, Last: ago(6 * time.Minute)}}
			}, worker(0, hangs, func(p *lifecycle.Pod) { p.Lived = time.Minute }), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Failure: "pod p0: container main exited with code 1", GivenUp: "0",
				Delete: map[string]lifecycle.DeletionReason{"p0": lifecycle.DeletedGivenUp}}},
		"it was given up a day ago, and its object is gone": {
			clique(func(c *lifecycle.TrainingPods) {
				elastic(c)
				c.Ends = map[int]lifecycle.Ends{0: {Count: 6, Last: ago(24 * time.Hour)}}
			}, worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Failure: "pod 0 is gone", GivenUp: "0"}},
		"all but one that was given up have succeeded": {
			clique(func(c *lifecycle.TrainingPods) {
				elastic(c)
				c.Ends = map[int]lifecycle.Ends{0: {Count: 6, Last: ago(time.Minute)}}
			}, worker(0, crashed(1)), worker(1, succeeded), worker(2, succeeded), worker(3, succeeded)),
			outcome{Succeeded: "1-3", Started: "0-3", Available: 3, Done: true, GivenUp: "0", Failure: "pod p0: container main exited with code 1",
				Release: []string{"p0", "p1", "p2", "p3"}}},
		"it lived long before it failed: the first failure": {
			clique(func(c *lifecycle.TrainingPods) {
				elastic(c)
				c.Ends = map[int]lifecycle.Ends{0: {Count: 5, Last: ago(12 * time.Minute)}}
			}, worker(0, crashed(1)), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Failure: "pod p0: container main exited with code 1", Release: []string{"p0"},
				Delete: map[string]lifecycle.DeletionReason{"p0": lifecycle.DeletedEnded}}},
		"a pod is being deleted by a user: it no longer counts": {clique(was, worker(0, terminating), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Breach: breached, Failure: "pod 0 is being deleted"}},
		"its containers have ended: its object may be removed": {clique(was, worker(0, stopped), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Breach: breached, Failure: "pod 0 is being deleted", Release: []string{"p0"}}},
		"a pod that had no node was deleted before the clique was available": {
			clique(nil, worker(0, pending, stopped), worker(1, pending), worker(2, pending), worker(3, pending)),
			outcome{Breach: never, Failure: "pod 0 is being deleted", Release: []string{"p0"}}},
		"a pod was lost with its node": {clique(elastic, worker(0, terminating, unreachable, graceOver), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Failure: "pod p0 was lost with its node n0", Create: []int{0}, Release: []string{"p0"}}},
		"a pod that has ended and that only its finalizer keeps is not lost": {clique(elastic, worker(0, crashed(1), stopped, unreachable), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Failure: "pod 0 is being deleted, its node n0 does not answer", Release: []string{"p0"}}},
		"a pod on a node that does not respond has its grace period": {clique(elastic, worker(0, terminating, unreachable), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Failure: "pod 0 is being deleted, its node n0 does not answer", After: 30 * time.Second}},
		"a pod on a node that does not respond does not run": {clique(was, worker(0, onLostNode), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Breach: lost, Failure: "the node n0 of pod p0 does not answer"}},
		"above the minimum it is left to the taint manager": {clique(elastic, worker(0, onLostNode), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Failure: "the node n0 of pod p0 does not answer"}},
		"starting on a node that does not respond, it may never have started": {clique(nil, worker(0, starting, onLostNode), worker(1), worker(2), worker(3)),
			outcome{Started: "1-3", Available: 3, Breach: never, Failure: "the node n0 of pod p0 does not answer"}},
		"one has succeeded: it counts, stays, and its object may be removed": {clique(was, worker(0, succeeded), worker(1), worker(2), worker(3)),
			outcome{Succeeded: "0", Started: "0-3", Available: 4, Release: []string{"p0"}}},
		"one has succeeded, and its object is gone": {
			clique(func(c *lifecycle.TrainingPods) { was(c); c.Succeeded = lifecycle.Indices(0) }, worker(1), worker(2), worker(3)),
			outcome{Succeeded: "0", Started: "0-3", Available: 4, Gone: 1}},
		"one has succeeded, and its object is being deleted": {
			clique(func(c *lifecycle.TrainingPods) { was(c); c.Succeeded = lifecycle.Indices(0) }, worker(0, succeeded, stopped), worker(1), worker(2), worker(3)),
			outcome{Succeeded: "0", Started: "0-3", Available: 4, Gone: 1, Release: []string{"p0"}}},
		"one was terminated and exited with 0": {
			clique(was, worker(0, ended(time.Minute, time.Hour), stopped), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Breach: breached, Failure: "pod 0 is being deleted", Release: []string{"p0"}}},
		"one has succeeded and another fails": {clique(was, worker(0, succeeded), worker(1, crashed(1)), worker(2), worker(3)),
			outcome{Succeeded: "0", Started: "0-3", Available: 3, Breach: breached, Failure: "pod p1: container main exited with code 1", Release: []string{"p0", "p1"}}},
		"all have succeeded": {clique(was, worker(0, succeeded), worker(1, succeeded), worker(2, succeeded), worker(3, succeeded)),
			outcome{Succeeded: "0-3", Started: "0-3", Available: 4, Done: true, Release: []string{"p0", "p1", "p2", "p3"}}},
		"all have succeeded, and their objects are gone": {
			clique(func(c *lifecycle.TrainingPods) { was(c); c.Succeeded = lifecycle.ParseIndices("0-3") }),
			outcome{Succeeded: "0-3", Started: "0-3", Available: 4, Gone: 4, Done: true}},
		"all that started have succeeded: the others are cancelled first": {
			clique(func(c *lifecycle.TrainingPods) { c.WasAvailable, c.MinAvailable = true, 2 }, worker(0, succeeded), worker(1, succeeded), worker(2, pending), worker(3, starting)),
			outcome{Succeeded: "0-1", Started: "0-1", Available: 2, Release: []string{"p0", "p1"},
				Delete: map[string]lifecycle.DeletionReason{"p2": lifecycle.DeletedCancelled, "p3": lifecycle.DeletedCancelled}}},
		"the cancelled ones are being deleted": {
			clique(func(c *lifecycle.TrainingPods) { c.WasAvailable, c.MinAvailable = true, 2 }, worker(0, succeeded), worker(1, succeeded), worker(3, starting, terminating)),
			outcome{Succeeded: "0-1", Started: "0-1", Available: 2, Release: []string{"p0", "p1"}, Failure: "pod 3 is being deleted"}},
		"the cancelled ones are gone": {
			clique(func(c *lifecycle.TrainingPods) { c.WasAvailable, c.MinAvailable = true, 2 }, worker(0, succeeded), worker(1, succeeded)),
			outcome{Succeeded: "0-1", Started: "0-1", Available: 2, Done: true, Cancelled: 2, Release: []string{"p0", "p1"}}},
		"a cancelled one started before it was deleted": {
			clique(func(c *lifecycle.TrainingPods) { c.WasAvailable, c.MinAvailable = true, 2 }, worker(0, succeeded), worker(1, succeeded), worker(2)),
			outcome{Succeeded: "0-1", Started: "0-2", Available: 3, Release: []string{"p0", "p1"}, Create: []int{3}}},
		"too few have succeeded for the others to be cancelled": {
			clique(func(c *lifecycle.TrainingPods) { c.WasAvailable, c.MinAvailable = true, 2 }, worker(0, succeeded), worker(1, pending), worker(2, pending), worker(3, pending)),
			outcome{Succeeded: "0", Started: "0", Available: 1, Release: []string{"p0"}, Breach: breached}},
		"a failed one whose successor waits is not cancelled": {
			clique(elastic, worker(0, succeeded), worker(1, succeeded), worker(2, succeeded), worker(3, pending)),
			outcome{Succeeded: "0-2", Started: "0-3", Available: 3, Release: []string{"p0", "p1", "p2"}}},
		"the clique has succeeded: no pod is created": {
			clique(func(c *lifecycle.TrainingPods) {
				c.Done, c.MinAvailable, c.Succeeded, c.Started = true, 2, lifecycle.ParseIndices("0-1"), lifecycle.ParseIndices("0-1")
			}),
			outcome{Succeeded: "0-1", Started: "0-1", Available: 2, Gone: 2, Done: true, Cancelled: 2}},
		"the workload has failed: running pods are deleted, ended pods stay": {
			clique(func(c *lifecycle.TrainingPods) { was(c); c.Halted = true }, worker(0, crashed(1)), worker(1), worker(2, pending), worker(3, terminating)),
			outcome{Started: "0-3", Available: 1, Failure: "pod p0: container main exited with code 1; pod 3 is being deleted", Release: []string{"p0"},
				Delete: map[string]lifecycle.DeletionReason{"p1": lifecycle.DeletedHalted, "p2": lifecycle.DeletedHalted}}},
		"two pods of one index: the younger is deleted": {
			clique(was, worker(0), worker(1), worker(2), worker(3), worker(3, named("q3"), created(time.Minute))),
			outcome{Started: "0-3", Available: 4, Delete: map[string]lifecycle.DeletionReason{"q3": lifecycle.DeletedDuplicate}}},
		"an index is blocked by a pod of an earlier PodClique": {
			clique(func(c *lifecycle.TrainingPods) { c.Others = pods{ready(2)} }, worker(0, pending), worker(1, pending), worker(3, pending)),
			outcome{Blocked: []int{2}, Breach: never}},
		"scaled without admission": {
			clique(func(c *lifecycle.TrainingPods) { was(c); c.Replicas, c.MinAvailable = 2, 2 }, worker(0), worker(1), worker(2)),
			outcome{Started: "0-3", Available: 2, Delete: map[string]lifecycle.DeletionReason{"p2": lifecycle.DeletedScaleIn}}},
		"one is preempted and has its grace period": {clique(was, worker(0, terminating, preempted), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 3, Breach: displaced, Failure: "pod 0 was preempted"}},
		"a preempted one has stopped: its object may be removed": {clique(was, worker(0, stopped, preempted), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 3, Breach: displaced, Failure: "pod 0 was preempted", Release: []string{"p0"}}},
		"the object of a preempted one is gone": {clique(had("0", was), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 3, Breach: displaced, Failure: "pod 0 was preempted"}},
		"all were preempted, and some objects are gone": {clique(had("0-1", was), worker(2, terminating, preempted), worker(3, stopped, preempted)),
			outcome{Started: "0-3", Preempted: "0-3", Breach: displaced, Failure: "pod 0 was preempted; pod 1 was preempted; pod 2 was preempted; and 1 more", Release: []string{"p3"}}},
		"a preempted one failed before it was deleted": {clique(was, worker(0, crashed(143), preempted), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 3, Breach: displaced, Failure: "pod 0 was preempted", Release: []string{"p0"}}},
		"a preempted one ended with 0 because it was terminated": {
			clique(was, worker(0, ended(time.Minute, time.Hour), stopped, preempted), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 3, Breach: displaced, Failure: "pod 0 was preempted", Release: []string{"p0"}}},
		"a preempted one had succeeded before": {clique(was, worker(0, succeeded, preempted), worker(1), worker(2), worker(3)),
			outcome{Succeeded: "0", Started: "0-3", Available: 4, Release: []string{"p0"}}},
		"one was preempted, and another has failed": {clique(had("0", was), worker(1, crashed(1)), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 2, Breach: breached, Failure: "pod 0 was preempted; pod p1: container main exited with code 1", Release: []string{"p1"}}},
		"one was preempted, and another is gone and was never observed": {clique(had("0", was), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 2, Breach: breached, Failure: "pod 0 was preempted; pod 1 is gone"}},
		"one was preempted, and the node of another does not respond": {clique(had("0", was), worker(1, onLostNode), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 2, Breach: lost, Failure: "pod 0 was preempted; the node n0 of pod p1 does not answer"}},
		"one was preempted, and another succeeded": {clique(had("0", was), worker(1, succeeded), worker(2), worker(3)),
			outcome{Succeeded: "1", Started: "0-3", Preempted: "0", Available: 3, Breach: displaced, Failure: "pod 0 was preempted", Release: []string{"p1"}}},
		"with a delay, the successors of preempted ones wait for capacity": {
			clique(had("0-1", func(c *lifecycle.TrainingPods) { was(c); c.Delay = time.Hour }), worker(0, pending), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0-1", Available: 2, Breach: displaced, Failure: "pod 1 was preempted", Create: []int{1}}},
		"with a delay, the successor of a preempted one is deleted by a user while it waits": {
			clique(had("0", func(c *lifecycle.TrainingPods) { was(c); c.Delay = time.Hour }), worker(0, pending, stopped), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 3, Breach: displaced, Failure: "pod 0 was preempted", Release: []string{"p0"}}},
		"the successor of a preempted one runs": {clique(had("0", was), worker(0), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 4}},
		"the successor of a preempted one fails": {clique(had("0", was), worker(0, crashed(1)), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Available: 3, Breach: breached, Failure: "pod p0: container main exited with code 1", Release: []string{"p0"}}},
		"one above the minimum is preempted: its successor waits alone": {clique(had("0", elastic), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 3, Failure: "pod 0 was preempted", Create: []int{0}}},
		"one above the minimum failed while it was preempted: no back-off, and no failure of six": {
			clique(func(c *lifecycle.TrainingPods) {
				elastic(c)
				c.Ends = map[int]lifecycle.Ends{0: {Count: 5, Last: ago(2 * time.Minute)}}
			}, worker(0, crashed(143), preempted, func(p *lifecycle.Pod) { p.Lived = time.Minute }), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 3, Failure: "pod 0 was preempted", Release: []string{"p0"},
				Delete: map[string]lifecycle.DeletionReason{"p0": lifecycle.DeletedEnded}}},
		"one that was given up before does not make a preemption a failure": {
			clique(func(c *lifecycle.TrainingPods) {
				had("1-2", elastic)(c)
				c.Ends = map[int]lifecycle.Ends{0: {Count: 6, Last: ago(24 * time.Hour)}}
			}, worker(3)),
			outcome{Started: "0-3", Preempted: "1-2", Available: 1, Breach: displaced, Failure: "pod 0 is gone; pod 1 was preempted; pod 2 was preempted", GivenUp: "0"}},
		"preempted before any was running": {clique(nil, worker(0, starting, terminating, preempted), worker(1, starting), worker(2, starting), worker(3, starting)),
			outcome{Preempted: "0", Breach: never, Failure: "pod 0 was preempted"}},
		"preempted while some were running and others were starting": {
			clique(nil, worker(0, terminating, preempted), worker(1, starting, terminating, preempted), worker(2, terminating, preempted), worker(3, starting, terminating, preempted)),
			outcome{Started: "0,2", Preempted: "0-3", Breach: displaced, Failure: "pod 0 was preempted; pod 1 was preempted; pod 2 was preempted; and 1 more"}},
		"a preempted one is lost with its node": {clique(had("0", was), worker(0, terminating, unreachable, graceOver, preempted), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 3, Breach: displaced, Failure: "pod 0 was preempted", Release: []string{"p0"}}},
		"the status records a pod that is not wanted": {clique(had("0,7", was), worker(1), worker(2), worker(3)),
			outcome{Started: "0-3", Preempted: "0", Available: 3, Breach: displaced, Failure: "pod 0 was preempted"}},
		"of no pods": {
			clique(func(c *lifecycle.TrainingPods) { c.Replicas, c.MinAvailable = 0, 0 }), outcome{Done: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := lifecycle.DecideTrainingPods(tc.clique, now)
			got := outcome{Succeeded: d.Succeeded.String(), Started: d.Started.String(), Preempted: d.Preempted.String(), Available: d.Available, Gone: d.SucceededGone,
				Done: d.Done, Cancelled: d.Cancelled, Failure: d.Failure, GivenUp: d.GivenUp.String(), After: d.RequeueAfter}
			for _, p := range d.Create {
				got.Create = append(got.Create, p.Index)
			}
			for _, p := range d.Blocked {
				got.Blocked = append(got.Blocked, p.Index)
			}
			for _, x := range d.Delete {
				if got.Delete == nil {
					got.Delete = map[string]lifecycle.DeletionReason{}
				}
				got.Delete[x.Pod.Name] = x.Reason
			}
			for _, p := range d.Release {
				got.Release = append(got.Release, p.Name)
			}
			if d.Breach.Status == lifecycle.Breached || d.Breach.Reason == lifecycle.NeverAvailable {
				got.Breach = string(d.Breach.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSucceededPodsAreRecordedWithinBounds: succeeded pods are recorded as long as they fit; the objects of the others
// stay, and count.
func TestSucceededPodsAreRecordedWithinBounds(t *testing.T) {
	t.Parallel()
	const n = 60_000
	c := lifecycle.TrainingPods{CliquePods: lifecycle.CliquePods{MinAvailable: n}}
	c.Replicas = n
	for i := 0; i < n; i += 2 {
		c.Pods = append(c.Pods, worker(i, succeeded), worker(i+1))
	}
	d := lifecycle.DecideTrainingPods(c, now)
	if d.Succeeded.Len() != 0 || len(d.Release) != 0 || d.Available != n {
		t.Errorf("%d recorded, %d released, %d available", d.Succeeded.Len(), len(d.Release), d.Available)
	}
	for i := range c.Pods {
		if c.Pods[i].Running {
			succeeded(&c.Pods[i])
		}
	}
	if d := lifecycle.DecideTrainingPods(c, now); !d.Done || d.Succeeded.String() != "0-59999" || len(d.Release) != n {
		t.Errorf("done %t, recorded %s, %d released", d.Done, d.Succeeded, len(d.Release))
	}
}

func TestTheBreachOfATrainingClique(t *testing.T) {
	t.Parallel()
	c := lifecycle.TrainingPods{CliquePods: lifecycle.CliquePods{MinAvailable: 2}, WasAvailable: true, BreachedSince: ago(time.Minute), Delay: time.Hour}
	c.Replicas, c.Pods = 2, []lifecycle.Pod{worker(0, crashed(137)), worker(1)}
	want := lifecycle.Breach{
		Status: lifecycle.Breached, Reason: lifecycle.InsufficientReadyPods, WasAvailable: true,
		Since: ago(time.Minute), Deadline: now.Add(59 * time.Minute),
		Message: "1 of 2 pods run or have succeeded, 2 needed; pod p0: container main exited with code 137",
	}
	if diff := cmp.Diff(want, lifecycle.DecideTrainingPods(c, now).Breach); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A recorded breach lasts until enough pods are available again, even if the failed pod is gone.
	c.WasAvailable, c.Pods = false, []lifecycle.Pod{worker(1)}
	if got := lifecycle.DecideTrainingPods(c, now).Breach; got.Status != lifecycle.Breached || !got.Since.Equal(c.BreachedSince) || got.WasAvailable {
		t.Errorf("the object of the failed pod is gone: %+v", got)
	}
	c.Pods = []lifecycle.Pod{worker(0), worker(1)}
	if got := lifecycle.DecideTrainingPods(c, now).Breach; got.Status != lifecycle.NotBreached || !got.WasAvailable || !got.Since.IsZero() {
		t.Errorf("enough again: %+v", got)
	}
}
