// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// Targets of the updates in tests: a template and its successors.
var (
	targetA = lifecycle.Target{Generation: "gen-a", Template: "tpl-a"}
	targetB = lifecycle.Target{Generation: "gen-b", Template: "tpl-b"}
	targetC = lifecycle.Target{Generation: "gen-c", Template: "tpl-c"}
)

// begun returns the progress of an update that began a minute ago.
func begun(target lifecycle.Target, changes ...func(*lifecycle.Progress)) *lifecycle.Progress {
	p := &lifecycle.Progress{Target: target, StartedAt: ago(time.Minute), LastProgress: ago(time.Minute)}
	for _, change := range changes {
		change(p)
	}
	return p
}

// over ends the update half a minute ago; atOnce ends it when it began.
func over(p *lifecycle.Progress) {
	p.EndedAt, p.LastProgress = ago(30*time.Second), ago(30*time.Second)
}
func atOnce(p *lifecycle.Progress) { p.EndedAt = p.StartedAt }

// notReached ignores which units an update has reached; TestReached and the tests of HoldsPrevious are about them.
var notReached = cmp.Options{
	cmpopts.IgnoreFields(lifecycle.Progress{}, "Reached"),
	cmp.Comparer(func(a, b lifecycle.IndexSet) bool { return a.String() == b.String() }),
}

// selected records a unit that was deleted, and the completed ones before it.
func selected(unit string, completed ...string) func(*lifecycle.Progress) {
	return func(p *lifecycle.Progress) { p.Selected, p.Completed = unit, completed }
}

// progressed sets the time of the last progress; startedNow sets the start to now.
func progressed(at time.Time) func(*lifecycle.Progress) {
	return func(p *lifecycle.Progress) { p.LastProgress = at }
}

func startedNow(p *lifecycle.Progress) { p.StartedAt, p.LastProgress = now, now }
func overNow(p *lifecycle.Progress)    { p.EndedAt, p.LastProgress = now, now }

func state(reason lifecycle.UpdateReason, message string) lifecycle.UpdateState {
	return lifecycle.UpdateState{Reason: reason, Message: message}
}

// TestReached: an update of a clique records the indices that it has reached, and while it cannot go on, pods at other
// indices are created from the previous template.
func TestReached(t *testing.T) {
	t.Parallel()
	creates := func(u lifecycle.CliqueUpdate, indices ...int) lifecycle.CliqueUpdate {
		u.Created = indices
		return u
	}
	for name, tc := range map[string]struct {
		u                 lifecycle.CliqueUpdate
		reached, previous string
	}{
		"the selected pod; pods of the target were not made by it": {rolling(begun(targetB), 1, old(0), old(1), fresh(2)), "1", ""},
		"pods that are not ready":                                  {rolling(begun(targetB), 3, old(0), old(1, pending), old(2, notReady)), "1-2", ""},
		"nothing is against the update: a lost pod follows it":     {creates(rolling(begun(targetB), 3, old(0), fresh(2)), 1), "1", ""},
		"a pod that it made has failed: a lost pod comes back":     {creates(rolling(begun(targetB, made(2)), 1, old(0), fresh(2, notReady)), 1), "2", "1"},
		"a pod of the target that it did not make has failed":      {creates(rolling(begun(targetB), 1, old(0), fresh(2, notReady)), 1), "1", ""},
		"the replacement is not created yet":                       {creates(rolling(begun(targetB, selected("web-2-a"), made(2)), 1, old(0)), 1, 2), "1-2", ""},
		"the replacement has no node yet":                          {creates(rolling(begun(targetB, made(2)), 1, old(0), fresh(2, pending, created(time.Second))), 1), "2", "1"},
		"an updated pod is lost":                                   {creates(rolling(begun(targetB, made(1, 2)), 1, old(0), fresh(2, notReady)), 1), "1-2", ""},
		"scaled out while a pod that it made has failed":           {creates(rolling(begun(targetB, made(2)), 1, old(0), old(1), fresh(2, notReady)), 3, 4), "2", "3-4"},
		"paused": {creates(lifecycle.CliqueUpdate{Target: targetB, Turn: true, Paused: true, Progress: begun(targetB), Replicas: 3, MinAvailable: 1, Pods: []lifecycle.Pod{old(0), fresh(2)}}, 1), "", "1"},
		"the template changes again: what the update before made does not count": {creates(rolling(begun(targetA, made(1, 2)), 1, old(0), fresh(2, notReady)), 1), "1", ""},
		"the update ends under OnDelete":                                         {lifecycle.CliqueUpdate{Target: targetB, OnDelete: true, Progress: begun(targetB, made(1)), Replicas: 1, Pods: []lifecycle.Pod{old(0)}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := lifecycle.DecideCliqueUpdate(tc.u, now)
			if got := d.Progress.Reached.String(); got != tc.reached {
				t.Errorf("reached %q, want %q", got, tc.reached)
			}
			if got := d.Previous.String(); got != tc.previous {
				t.Errorf("created from the previous template: %q, want %q", got, tc.previous)
			}
		})
	}
}

// TestNewlyReaches: a new unit is created when the progress that is recorded, of the same update, has its index.
func TestNewlyReaches(t *testing.T) {
	t.Parallel()
	reached := begun(targetB, made(1))
	for name, tc := range map[string]struct {
		progress, recorded *lifecycle.Progress
		want               bool
	}{
		"no update":                         {nil, nil, false},
		"nothing is recorded":               {reached, nil, true},
		"other units are recorded":          {reached, begun(targetB, made(0)), true},
		"it is recorded":                    {reached, begun(targetB, made(0, 1)), false},
		"it is recorded, of another update": {reached, begun(targetA, made(1)), true},
		"the recorded update has ended":     {reached, begun(targetB, made(1), overNow), true},
		"it is not reached":                 {begun(targetB), nil, false},
		"the update has ended":              {begun(targetB, made(1), overNow), nil, false},
	} {
		if got := tc.progress.NewlyReaches(1, tc.recorded); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// TestGroupHoldsPrevious: with which template missing PodCliques of a scaling-group replica are created.
func TestGroupHoldsPrevious(t *testing.T) {
	t.Parallel()
	reached := made(1)
	some, other := replica(1, held), replica(1)
	terminated := lifecycle.Raised{Attempt: 1, Replacement: lifecycle.Replacement{Reason: lifecycle.ReplacedTermination}, At: now}
	deleted := lifecycle.Raised{Attempt: 1, Replacement: lifecycle.Replacement{Reason: lifecycle.ReplacedDeleted}, At: now}
	for name, tc := range map[string]struct {
		u        lifecycle.GroupUpdate
		existing *lifecycle.GroupReplica
		replaced lifecycle.Raised
		want     bool
	}{
		"others of the replica have the previous template": {u: lifecycle.GroupUpdate{Progress: begun(targetB)}, existing: &some, want: true},
		"before the update is recorded too":                {existing: &some, want: true},
		"others of the replica have the current template":  {u: lifecycle.GroupUpdate{Progress: begun(targetB)}, existing: &other},
		"OnDelete":         {u: lifecycle.GroupUpdate{OnDelete: true}, existing: &some},
		"it is new":        {u: lifecycle.GroupUpdate{Progress: begun(targetB)}},
		"it is terminated": {u: lifecycle.GroupUpdate{Progress: begun(targetB)}, replaced: terminated, want: true},
		"it is terminated after the update has reached it": {u: lifecycle.GroupUpdate{Progress: begun(targetB, reached)}, replaced: terminated},
		"it is terminated, and there is no update":         {u: lifecycle.GroupUpdate{Progress: begun(targetB, overNow)}, replaced: terminated},
		"a user deletes it as a whole":                     {u: lifecycle.GroupUpdate{Progress: begun(targetB)}, replaced: deleted},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.u.HoldsPrevious(1, tc.existing, tc.replaced); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
