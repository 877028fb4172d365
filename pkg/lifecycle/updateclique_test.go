// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// web returns a ready pod of the clique web, created from the template whose letter is in its name. The higher the
// index, the older.
func web(index int, template string, changes ...func(*lifecycle.Pod)) lifecycle.Pod {
	p := ready(index)
	p.Name = fmt.Sprintf("web-%d-%s", index, template)
	p.UID = p.Name
	p.Created = ago(time.Hour + time.Duration(index)*time.Minute)
	return with(p, changes...)
}

// old is a ready pod of the previous template.
func old(index int, changes ...func(*lifecycle.Pod)) lifecycle.Pod {
	return with(web(index, "a", outdated), changes...)
}

// fresh is a ready pod of the current template, created after all others.
func fresh(index int, changes ...func(*lifecycle.Pod)) lifecycle.Pod {
	return with(web(index, "b", created(time.Minute)), changes...)
}

// rolling is an update of a clique of three pods that has its turn.
func rolling(progress *lifecycle.Progress, minAvailable int32, pods ...lifecycle.Pod) lifecycle.CliqueUpdate {
	return lifecycle.CliqueUpdate{Update: lifecycle.Update{Target: targetB, Turn: true, Progress: progress, Wanted: 3, MinAvailable: minAvailable}, Pods: pods}
}

func change(u lifecycle.CliqueUpdate, changes ...func(*lifecycle.CliqueUpdate)) lifecycle.CliqueUpdate {
	for _, change := range changes {
		change(&u)
	}
	return u
}

func replaced(pods ...lifecycle.Pod) []lifecycle.Deletion {
	var deletions []lifecycle.Deletion
	for _, p := range pods {
		deletions = append(deletions, lifecycle.Deletion{Pod: p, Reason: lifecycle.DeletedUpdate})
	}
	return deletions
}

// made records the units that the update has made.
func made(indices ...int) func(*lifecycle.Progress) {
	return func(p *lifecycle.Progress) { p.Reached = lifecycle.Indices(indices...) }
}

func TestDecideCliqueUpdate(t *testing.T) {
	t.Parallel()
	noTurn := func(u *lifecycle.CliqueUpdate) { u.Turn = false }
	onDelete := func(u *lifecycle.CliqueUpdate) { u.OnDelete, u.Turn = true, false }
	towards := func(target lifecycle.Target) func(*lifecycle.CliqueUpdate) {
		return func(u *lifecycle.CliqueUpdate) { u.Target = target }
	}
	replicas := func(n int32) func(*lifecycle.CliqueUpdate) {
		return func(u *lifecycle.CliqueUpdate) { u.Wanted = n }
	}
	deleted := func(pod lifecycle.Pod) func(*lifecycle.CliqueUpdate) {
		return func(u *lifecycle.CliqueUpdate) { u.Deleted = map[string]bool{pod.UID: true} }
	}
	stalledAfter := func(d time.Duration) func(*lifecycle.CliqueUpdate) {
		return func(u *lifecycle.CliqueUpdate) { u.StalledAfter = d }
	}
	minReady := func(d time.Duration) func(*lifecycle.CliqueUpdate) {
		return func(u *lifecycle.CliqueUpdate) { u.MinReady = d }
	}
	readyFor := func(d time.Duration) func(*lifecycle.Pod) {
		return func(p *lifecycle.Pod) { p.ReadySince = ago(d) }
	}
	paused := func(u *lifecycle.CliqueUpdate) { u.Paused = true }
	because := func(cause string) func(*lifecycle.Pod) {
		return func(p *lifecycle.Pod) { p.Cause = cause }
	}
	const complete = "all pods match the current template"
	type decision = cliqueDecision
	for name, tc := range map[string]struct {
		u    lifecycle.CliqueUpdate
		want decision
	}{
		"nothing was ever updated, and nothing is to be": {
			u:    rolling(nil, 2, web(0, "b"), web(1, "b"), web(2, "b")),
			want: decision{Current: true, State: state(lifecycle.UpdateComplete, complete)},
		},
		"a clique without pods is up to date": {
			u:    rolling(nil, 2),
			want: decision{Current: true, State: state(lifecycle.UpdateComplete, complete)},
		},
		"a member of a scaling group is not updated by itself": {
			u:    change(rolling(begun(targetB), 2, old(0)), func(u *lifecycle.CliqueUpdate) { u.Member = true }),
			want: decision{Outdated: true},
		},

		// The order.
		"pods without a node are deleted immediately, then those that are not ready, below the minimum too": {
			u: rolling(nil, 3, old(0), old(1, pending), old(2, notReady)),
			want: decision{Progress: begun(targetB, startedNow), Delete: replaced(old(1, pending), old(2, notReady)),
				State: state(lifecycle.UpdateWaitsForMinAvailable, "no ready pod is replaced, because too few others are available: 1 pod is available, 3 needed")},
		},
		"together with them the oldest ready pod, if enough are ready": {
			u: rolling(nil, 1, old(0), old(1, pending), old(2)),
			want: decision{Progress: begun(targetB, startedNow, selected("web-2-a")), Delete: replaced(old(1, pending), old(2)),
				State: state(lifecycle.Updating, "replacing pod web-2-a; 3 pods are of an earlier template")},
		},
		"of the same age: by name": {
			u: rolling(nil, 1, old(1, created(0)), old(0, created(0))),
			want: decision{Progress: begun(targetB, startedNow, selected("web-0-a")), Delete: replaced(old(0, created(0))),
				State: state(lifecycle.Updating, "replacing pod web-0-a; 2 pods are of an earlier template")},
		},
		"a pod that ended is unhealthy: it does not wait for its back-off": {
			u: rolling(nil, 2, fresh(0), fresh(1), old(2, ended(0, time.Minute))),
			want: decision{Progress: begun(targetB, startedNow), Delete: replaced(old(2, ended(0, time.Minute))),
				State: state(lifecycle.Updating, "replacing 1 pod that is not ready")},
		},
		"a pod whose node does not answer stays until it is known whether it runs": {
			u: rolling(nil, 1, old(0), old(1, notReady, silent), old(2, notReady)),
			want: decision{Progress: begun(targetB, startedNow), Delete: replaced(old(2, notReady)),
				State: state(lifecycle.UpdateWaitsForMinAvailable, "no ready pod is replaced, because too few others are available: 1 pod is available, 1 needed")},
		},
		"only such pods are left": {
			u: rolling(begun(targetB), 1, fresh(0), old(1, notReady, silent), fresh(2)),
			want: decision{Progress: begun(targetB),
				State: state(lifecycle.UpdateWaitsForReadiness, "pod web-1-a of an earlier template stays while it is not known whether it runs: node n does not answer; waiting")},
		},
		"a pod whose scheduler does not answer runs nowhere": {
			u: rolling(begun(targetB), 1, fresh(0), old(1, pending, func(p *lifecycle.Pod) { p.Silence.Reason = lifecycle.SchedulerDoesNotAnswer }), fresh(2)),
			want: decision{Progress: begun(targetB), Delete: replaced(old(1, pending, func(p *lifecycle.Pod) { p.Silence.Reason = lifecycle.SchedulerDoesNotAnswer })),
				State: state(lifecycle.Updating, "replacing 1 pod that is not ready")},
		},
		"all are unhealthy: all are deleted": {
			u: rolling(nil, 3, old(0, notReady), old(1, pending)),
			want: decision{Progress: begun(targetB, startedNow), Delete: replaced(old(1, pending), old(0, notReady)),
				State: state(lifecycle.Updating, "replacing 2 pods that are not ready")},
		},
		"a pod deleted for another reason is not counted and not deleted twice": {
			u: change(rolling(nil, 1, old(0), old(1), old(2)), deleted(old(2))),
			want: decision{Progress: begun(targetB, startedNow, selected("web-1-a")), Delete: replaced(old(1)),
				State: state(lifecycle.Updating, "replacing pod web-1-a; 2 pods are of an earlier template")},
		},

		// One at a time.
		"the selected pod terminates: no other ready pod is deleted": {
			u: rolling(begun(targetB, selected("web-2-a")), 1, old(0), old(1), old(2, terminating)),
			want: decision{Progress: begun(targetB, selected("web-2-a")),
				State: state(lifecycle.UpdateWaitsForDeletion, "pod web-2-a terminates; its replacement is created when it is gone")},
		},
		"the replacement does not exist yet": {
			u: rolling(begun(targetB, selected("web-2-a")), 1, old(0), old(1)),
			want: decision{Progress: begun(targetB, selected("web-2-a")),
				State: state(lifecycle.UpdateWaitsForCreation, "the replacement of pod web-2-a is not created yet")},
		},
		"it has no node": {
			u: rolling(begun(targetB, selected("web-2-a")), 1, old(0), old(1), fresh(2, pending)),
			want: decision{Progress: begun(targetB, selected("web-2-a")),
				State: state(lifecycle.UpdateWaitsForCapacity, "pod web-2-b is not bound to a node")},
		},
		"it is not ready": {
			u: rolling(begun(targetB, selected("web-2-a")), 1, old(0), old(1), fresh(2, notReady)),
			want: decision{Progress: begun(targetB, selected("web-2-a")),
				State: state(lifecycle.UpdateWaitsForReadiness, "pod web-2-b is not ready")},
		},
		"it is ready: the next": {
			u: rolling(begun(targetB, selected("web-2-a")), 1, old(0), old(1), fresh(2)),
			want: decision{Progress: begun(targetB, selected("web-1-a", "web-2-a"), progressed(now)), Delete: replaced(old(1)),
				State: state(lifecycle.Updating, "replacing pod web-1-a; 2 pods are of an earlier template")},
		},
		"the deletion was recorded but not carried out: retried": {
			u: rolling(begun(targetB, selected("web-2-a")), 3, old(0), old(1), old(2)),
			want: decision{Progress: begun(targetB, selected("web-2-a")), Delete: replaced(old(2)),
				State: state(lifecycle.Updating, "replacing pod web-2-a; 3 pods are of an earlier template")},
		},
		"the selected pod became unhealthy before its deletion: it is deleted, whatever the minimum": {
			u: rolling(begun(targetB, selected("web-2-a")), 3, old(0), old(1), old(2, notReady)),
			want: decision{Progress: begun(targetB, selected("web-2-a")), Delete: replaced(old(2, notReady)),
				State: state(lifecycle.Updating, "replacing pod web-2-a")},
		},
		"the selected pod is lost with its node: its replacement counts, in any order": {
			u: rolling(begun(targetB, selected("web-2-a")), 1, old(2, terminating, unreachable, graceOver), old(0), old(1), fresh(2)),
			want: decision{Progress: begun(targetB, selected("web-1-a", "web-2-a"), progressed(now)), Delete: replaced(old(1)),
				State: state(lifecycle.Updating, "replacing pod web-1-a; 2 pods are of an earlier template")},
		},
		"the replacement took a lower index, because that was free, and is not ready": {
			u: change(rolling(begun(targetB, selected("web-2-a")), 1, old(1), fresh(0, notReady)), replicas(2)),
			want: decision{Progress: begun(targetB, selected("web-2-a")),
				State: state(lifecycle.UpdateWaitsForReadiness, "pod web-0-b is not ready")},
		},
		"the replacement with the lower index is ready": {
			u: change(rolling(begun(targetB, selected("web-2-a")), 1, old(1), fresh(0)), replicas(2)),
			want: decision{Progress: begun(targetB, selected("web-1-a", "web-2-a"), progressed(now)), Delete: replaced(old(1)),
				State: state(lifecycle.Updating, "replacing pod web-1-a; 1 pod is of an earlier template")},
		},

		// The minimum.
		"a pod of the current template is no longer ready: no ready pod is deleted": {
			u: rolling(begun(targetB, selected("web-2-a", "web-2-a")), 3, old(0), old(1), fresh(2, notReady)),
			want: decision{Progress: begun(targetB, selected("web-2-a", "web-2-a")),
				State: state(lifecycle.UpdateWaitsForReadiness, "1 updated pod is not ready: pod web-2-b is not ready")},
		},
		"all follow, too few are ready: the reason is what they wait for": {
			u: rolling(begun(targetB), 3, fresh(0), fresh(1, notReady), fresh(2, pending)),
			want: decision{Progress: begun(targetB),
				State: state(lifecycle.UpdateWaitsForReadiness, "1 updated pod is not ready: pod web-1-b is not ready")},
		},
		"with the cause, if it is known": {
			u: rolling(begun(targetB, selected("web-2-a")), 1, old(0), old(1), fresh(2, notReady, because("the image cannot be pulled"))),
			want: decision{Progress: begun(targetB, selected("web-2-a")),
				State: state(lifecycle.UpdateWaitsForReadiness, "pod web-2-b is not ready: the image cannot be pulled")},
		},
		"of one without a node, too": {
			u: rolling(begun(targetB, selected("web-2-a")), 1, old(0), old(1), fresh(2, pending, because("0/3 nodes are available"))),
			want: decision{Progress: begun(targetB, selected("web-2-a")),
				State: state(lifecycle.UpdateWaitsForCapacity, "pod web-2-b is not bound to a node: 0/3 nodes are available")},
		},
		"a node that does not respond takes precedence over other causes": {
			u: rolling(begun(targetB, selected("web-2-a")), 1, old(0), old(1),
				fresh(2, notReady, because("container main runs and is not ready"), func(p *lifecycle.Pod) { p.LostNode = "n" })),
			want: decision{Progress: begun(targetB, selected("web-2-a")),
				State: state(lifecycle.UpdateWaitsForReadiness, "pod web-2-b is not ready: node n does not answer")},
		},
		"all follow, one is not created yet": {
			u: rolling(begun(targetB), 3, fresh(0), fresh(1)),
			want: decision{Progress: begun(targetB),
				State: state(lifecycle.UpdateWaitsForCreation, "1 pod is not created yet")},
		},
		"enough are ready, the pods that are scaled out are not created yet": {
			u: change(rolling(begun(targetB, selected("web-0-a", "web-0-a")), 2, fresh(0), fresh(1), fresh(2)), replicas(5)),
			want: decision{Progress: begun(targetB, selected("web-0-a", "web-0-a")),
				State: state(lifecycle.UpdateWaitsForCreation, "2 pods are not created yet")},
		},
		"a pod that is deleted in this pass for another reason is missing": {
			u: change(rolling(begun(targetB), 2, fresh(0), fresh(1), fresh(2)), deleted(fresh(2))),
			want: decision{Progress: begun(targetB),
				State: state(lifecycle.UpdateWaitsForCreation, "1 pod is not created yet")},
		},

		// The end.
		"the last replacement is ready: the end": {
			u: rolling(begun(targetB, selected("web-0-a", "web-2-a", "web-1-a")), 1, fresh(0), fresh(1), fresh(2)),
			want: decision{Current: true, Progress: begun(targetB, selected("", "web-2-a", "web-1-a", "web-0-a"), overNow),
				State: state(lifecycle.UpdateComplete, complete)},
		},
		"a pod of the previous template is still terminating: not complete": {
			u: rolling(begun(targetB), 1, fresh(0), old(1, notReady, terminating), fresh(2)),
			want: decision{Progress: begun(targetB),
				State: state(lifecycle.UpdateWaitsForDeletion, "1 pod of an earlier template terminates")},
		},
		"unless it is lost": {
			u: rolling(begun(targetB), 1, fresh(0), old(1, terminating, unreachable, graceOver), fresh(1), fresh(2)),
			want: decision{Current: true, Progress: begun(targetB, overNow),
				State: state(lifecycle.UpdateComplete, complete)},
		},

		// Scaling in mid-update.
		"the selected pod is no longer desired": {
			u: change(rolling(begun(targetB, selected("web-2-a")), 1, old(0), old(1)), replicas(2)),
			want: decision{Progress: begun(targetB, selected("web-1-a", "web-2-a"), progressed(now)), Delete: replaced(old(1)),
				State: state(lifecycle.Updating, "replacing pod web-1-a; 2 pods are of an earlier template")},
		},
		"scaled out: the new pods count, and existing ones are not reported as missing": {
			u: change(rolling(begun(targetB, selected("web-2-a")), 3, old(0), old(1), fresh(2, notReady), fresh(3), fresh(4)), replicas(5)),
			want: decision{Progress: begun(targetB, selected("web-2-a")),
				State: state(lifecycle.UpdateWaitsForReadiness, "pod web-2-b is not ready")},
		},
		"scaled to zero: the end": {
			u: change(rolling(begun(targetB, selected("web-2-a")), 0), replicas(0)),
			want: decision{Current: true, Progress: begun(targetB, selected("", "web-2-a"), overNow),
				State: state(lifecycle.UpdateComplete, complete)},
		},
		"scaled to zero, pods of the previous template still terminate: not complete": {
			u: change(rolling(begun(targetB), 0, old(0, terminating), old(1, terminating)), replicas(0)),
			want: decision{Progress: begun(targetB),
				State: state(lifecycle.UpdateWaitsForDeletion, "2 pods of an earlier template terminate")},
		},

		// An update looks back.
		"two of them: the first is named": {
			u: change(rolling(begun(targetB), 1, old(0), fresh(3, notReady), fresh(2, notReady, because("it crashes"))), replicas(4)),
			want: decision{Progress: begun(targetB),
				State: state(lifecycle.UpdateWaitsForReadiness, "2 updated pods are not ready: pod web-2-b is not ready: it crashes")},
		},
		"an updated pod without a node says nothing about the template: the next": {
			u: change(rolling(begun(targetB), 1, old(0), old(1), fresh(2, pending)), replicas(3)),
			want: decision{Progress: begun(targetB, selected("web-1-a"), progressed(now)), Delete: replaced(old(1)),
				State: state(lifecycle.Updating, "replacing pod web-1-a; 2 pods are of an earlier template")},
		},
		"but not if a ready pod was deleted for it": {
			u: change(rolling(begun(targetB, selected("web-0-a")), 1, fresh(0, pending)), replicas(1)),
			want: decision{Progress: begun(targetB, selected("web-0-a")),
				State: state(lifecycle.UpdateWaitsForCapacity, "pod web-0-b is not bound to a node")},
		},

		// minReadySeconds.
		"the replacement is ready, but not for long enough": {
			u: change(rolling(begun(targetB, selected("web-2-a")), 1, old(0), old(1), fresh(2, readyFor(20*time.Second))), minReady(time.Minute), stalledAfter(time.Second)),
			want: decision{Progress: begun(targetB, selected("web-2-a")), RequeueAfter: 40 * time.Second,
				State: state(lifecycle.UpdateWaitsForReadiness, "pod web-2-b is ready, and counts as available at 2026-05-01T12:00:40Z, after minReadySeconds")},
		},
		"pods of the earlier template that are not ready for long enough do not count": {
			u: change(rolling(begun(targetB), 2, old(0, readyFor(time.Second)), old(1), old(2)), minReady(time.Minute)),
			want: decision{Progress: begun(targetB), RequeueAfter: 59 * time.Second,
				State: state(lifecycle.UpdateWaitsForMinAvailable, "no ready pod is replaced, because too few others are available: 2 pods are available, 2 needed")},
		},

		// Paused.
		"paused: no pod is replaced, whether it is ready or not": {
			u: change(rolling(begun(targetB), 1, old(0), old(1, notReady), fresh(2)), paused),
			want: decision{Progress: begun(targetB, pausedSince(now)),
				State: state(lifecycle.UpdatePaused, "the update is paused; 2 pods are of an earlier template")},
		},
		"paused for some time: the minimum is not judged until it is --stalled-update-after": {
			u: change(rolling(begun(targetB, pausedSince(ago(9*time.Second))), 1, old(0), fresh(1), fresh(2)), paused, stalledAfter(10*time.Second)),
			want: decision{Progress: begun(targetB, pausedSince(ago(9*time.Second)), progressed(now)), RequeueAfter: time.Second,
				State: state(lifecycle.UpdatePaused, "the update is paused; 1 pod is of an earlier template")},
		},
		"paused for longer: the minimum is judged": {
			u: change(rolling(begun(targetB, pausedSince(ago(10*time.Second))), 1, old(0), fresh(1), fresh(2)), paused, stalledAfter(10*time.Second)),
			want: decision{Progress: begun(targetB, pausedSince(ago(10*time.Second)), progressed(now)), RequeueAfter: 5 * time.Second,
				State: state(lifecycle.UpdatePaused, "the update is paused; 1 pod is of an earlier template")},
		},
		"no longer paused: the minimum is not judged": {
			u: change(rolling(begun(targetB, pausedSince(ago(time.Hour)), selected("web-1-a")), 1, old(0), fresh(1, notReady), fresh(2)), stalledAfter(0)),
			want: decision{Progress: begun(targetB, selected("web-1-a")),
				State: state(lifecycle.UpdateWaitsForReadiness, "pod web-1-b is not ready")},
		},

		// A second edit.
		"a second edit starts a new update, and keeps the pod in flight": {
			u: change(rolling(begun(targetB, selected("web-2-a", "web-3-a")), 1, old(0), old(1), web(2, "b", outdated, notReady)), towards(targetC)),
			want: decision{Progress: begun(targetC, startedNow, selected("web-2-a")), Delete: replaced(web(2, "b", outdated, notReady)),
				State: state(lifecycle.UpdateWaitsForReadiness, "pod web-2-b is not ready")},
		},
		"nothing was in flight": {
			u: change(rolling(begun(targetB, selected("web-2-a", "web-2-a")), 3, old(0), old(1), web(2, "b", outdated, notReady)), towards(targetC)),
			want: decision{Progress: begun(targetC, startedNow), Delete: replaced(web(2, "b", outdated, notReady)),
				State: state(lifecycle.UpdateWaitsForMinAvailable, "no ready pod is replaced, because too few others are available: 2 pods are available, 3 needed")},
		},
		"the replacement from the intermediate template became ready": {
			u: change(rolling(begun(targetB, selected("web-2-a")), 3, old(0), old(1), web(2, "b", outdated)), towards(targetC)),
			want: decision{Progress: begun(targetC, startedNow, selected("web-2-b", "web-2-a")), Delete: replaced(web(2, "b", outdated)),
				State: state(lifecycle.Updating, "replacing pod web-2-b; 3 pods are of an earlier template")},
		},
		"A->B->A: the selected pod was not deleted yet and is up to date again": {
			u: change(rolling(begun(targetB, selected("web-2-a")), 3, web(0, "a"), web(1, "a"), web(2, "a")), towards(targetA)),
			want: decision{Current: true, Progress: begun(targetA, startedNow, selected("", "web-2-a"), overNow),
				State: state(lifecycle.UpdateComplete, complete)},
		},
		"A->B->A: it terminates, and its replacement has its name": {
			u: change(rolling(begun(targetB, selected("web-2-a")), 3, web(0, "a"), web(1, "a"), web(2, "a", terminating)), towards(targetA)),
			want: decision{Progress: begun(targetA, startedNow, selected("web-2-a")),
				State: state(lifecycle.UpdateWaitsForDeletion, "pod web-2-a terminates; its replacement is created when it is gone")},
		},
		"A->B->A: its replacement with its name is not ready yet": {
			u: change(rolling(begun(targetA, selected("web-2-a")), 3, web(0, "a"), web(1, "a"), web(2, "a", notReady)), towards(targetA)),
			want: decision{Progress: begun(targetA, selected("web-2-a")),
				State: state(lifecycle.UpdateWaitsForReadiness, "pod web-2-a is not ready")},
		},
		"A->B->A->B: the replacement with its name is outdated again, and is deleted": {
			u: rolling(begun(targetA, selected("web-2-a")), 3, old(0), old(1), old(2)),
			want: decision{Progress: begun(targetB, startedNow, selected("web-2-a")), Delete: replaced(old(2)),
				State: state(lifecycle.Updating, "replacing pod web-2-a; 3 pods are of an earlier template")},
		},

		// Turns.
		"no turn: no pod is replaced, whatever its state": {
			u:    change(rolling(nil, 2, old(0), old(1, pending), old(2, notReady)), noTurn),
			want: decision{State: state(lifecycle.UpdateWaitsForTurn, "3 pods are of an earlier template; the update of the PodCliqueSet has not reached this replica")},
		},

		// OnDelete.
		"OnDelete: begins and ends at the same time, and deletes no pod": {
			u: change(rolling(nil, 2, old(0), old(1, pending), old(2, notReady)), onDelete),
			want: decision{Progress: begun(targetB, startedNow, overNow),
				State: state(lifecycle.UpdateOnDelete, "3 pods are of an earlier template; each is replaced when it is deleted")},
		},
		"OnDelete: the times do not change": {
			u: change(rolling(begun(targetB, atOnce), 2, old(0), fresh(1)), onDelete),
			want: decision{Progress: begun(targetB, atOnce),
				State: state(lifecycle.UpdateOnDelete, "1 pod is of an earlier template; it is replaced when it is deleted")},
		},
		"RollingRecreate -> OnDelete: an update in progress ends, and no pod is selected": {
			u: change(rolling(begun(targetB, selected("web-2-a", "web-3-a")), 2, old(0), old(1), old(2)), onDelete),
			want: decision{Progress: begun(targetB, overNow),
				State: state(lifecycle.UpdateOnDelete, "3 pods are of an earlier template; each is replaced when it is deleted")},
		},
		"RollingRecreate -> OnDelete with an edit": {
			u: change(rolling(begun(targetA, selected("web-2-a")), 2, old(0)), onDelete),
			want: decision{Progress: begun(targetB, startedNow, overNow),
				State: state(lifecycle.UpdateOnDelete, "1 pod is of an earlier template; it is replaced when it is deleted")},
		},
		"OnDelete -> RollingRecreate: no replacement, and it does not wait for a turn": {
			u: change(rolling(begun(targetB, atOnce), 2, old(0), fresh(1)), noTurn),
			want: decision{Progress: begun(targetB, atOnce),
				State: state(lifecycle.UpdateDeferred, "1 pod is of an earlier template; it is replaced when it is deleted, or the template changes again")},
		},

		// Stalled.
		"a stalled update continues": {
			u: change(rolling(begun(targetB, selected("web-2-a")), 1, old(0), old(1), fresh(2)), stalledAfter(time.Second)),
			want: decision{Progress: begun(targetB, selected("web-1-a", "web-2-a"), progressed(now)), Delete: replaced(old(1)), RequeueAfter: time.Second,
				State: state(lifecycle.Updating, "replacing pod web-1-a; 2 pods are of an earlier template")},
		},
		"an update without a turn, or that has ended, never stalls": {
			u: change(rolling(begun(targetA, over), 1, old(0)), noTurn, stalledAfter(time.Second)),
			want: decision{Progress: begun(targetA, over),
				State: state(lifecycle.UpdateWaitsForTurn, "1 pod is of an earlier template; the update of the PodCliqueSet has not reached this replica")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range int64(4) { // the order of the pods does not matter
				given := *copyOf(tc.u.Progress)
				got := flatClique(lifecycle.DecideCliqueUpdate(tc.u, now))
				tc.want.Outdated = slices.ContainsFunc(tc.u.Pods, func(p lifecycle.Pod) bool {
					isLost := p.Terminating && p.Unreachable && !now.Before(p.GraceEnds)
					return p.Outdated && !isLost
				})
				tc.want.Suspends = tc.want.Progress.Open() && !strings.HasPrefix(name, "paused for longer")
				if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(), notReached); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(given, *copyOf(tc.u.Progress), notReached); diff != "" {
					t.Fatalf("the progress that was given was changed (-before +after):\n%s", diff)
				}
				tc.u.Pods = slices.Clone(tc.u.Pods)
				rand.New(rand.NewSource(seed)).Shuffle(len(tc.u.Pods), func(i, j int) { tc.u.Pods[i], tc.u.Pods[j] = tc.u.Pods[j], tc.u.Pods[i] })
			}
		})
	}
}

func copyOf(p *lifecycle.Progress) *lifecycle.Progress {
	if p == nil {
		return &lifecycle.Progress{}
	}
	c := *p
	c.Completed = slices.Clone(p.Completed)
	return &c
}

// TestUpdatedPodIsLost: while a pod that the update made is gone, or about to be, no ready pod is replaced.
func TestUpdatedPodIsLost(t *testing.T) {
	t.Parallel()
	for name, pods := range map[string][]lifecycle.Pod{
		"terminating": {fresh(0, terminating), old(1), old(2)},
		"gone":        {old(1), old(2)},
		"not bound":   {fresh(0, pending, created(time.Second)), old(1), old(2)},
		"not ready":   {fresh(0, notReady), old(1), old(2)},
	} {
		t.Run(name, func(t *testing.T) {
			u := rolling(begun(targetB, selected("", "web-0-a"), made(0)), 1, pods...)
			if d := lifecycle.DecideCliqueUpdate(u, now); len(d.Delete) > 0 {
				t.Errorf("deletes %s, %+v", d.Delete[0].Pod.Name, d.State)
			}
		})
	}
}

// TestReplacementOfAnIntermediateTemplate: the replacement of pod 2 took the free index 1, it is not ready, and the
// template has changed since: it is replaced, since nothing else could make progress.
func TestReplacementOfAnIntermediateTemplate(t *testing.T) {
	t.Parallel()
	for _, intermediate := range []lifecycle.Pod{web(1, "x", outdated, pending), web(1, "x", outdated, notReady)} {
		u := rolling(begun(targetA, selected("web-2-a")), 1, old(0), intermediate, old(3))
		if d := lifecycle.DecideCliqueUpdate(u, now); len(d.Delete) != 1 || d.Delete[0].Pod.Name != intermediate.Name {
			t.Errorf("deletes %v, want %s; %+v", d.Delete, intermediate.Name, d.State)
		}
	}
}

type cliqueDecision struct {
	Progress                    *lifecycle.Progress
	Delete                      []lifecycle.Deletion
	Previous, ScaledOut         lifecycle.IndexSet
	Current, Outdated, Suspends bool
	State                       lifecycle.UpdateState
	RequeueAfter                time.Duration
}

func flatClique(d lifecycle.CliqueUpdateDecision) cliqueDecision {
	return cliqueDecision{d.Progress, d.Delete, d.Previous, d.ScaledOut, d.Current, d.Outdated, d.Suspends, d.State, d.RequeueAfter}
}
