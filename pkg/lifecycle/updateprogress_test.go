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
	cmpopts.IgnoreFields(lifecycle.Progress{}, "Reached", "SelectedAt"),
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

// pausedSince is the time since which the update is paused.
func pausedSince(at time.Time) func(*lifecycle.Progress) {
	return func(p *lifecycle.Progress) { p.PausedSince = at }
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
	scales := func(u lifecycle.CliqueUpdate, lost int, scaledOut ...int) lifecycle.CliqueUpdate {
		u.Created, u.ScaledOut, u.Followed = append([]int{lost}, scaledOut...), scaledOut, "gen-a"
		return u
	}
	paused := func(u lifecycle.CliqueUpdate) lifecycle.CliqueUpdate { u.Paused = true; return u }
	noTurn := func(u lifecycle.CliqueUpdate) lifecycle.CliqueUpdate { u.Turn = false; return u }
	onDelete := func(u lifecycle.CliqueUpdate) lifecycle.CliqueUpdate { u.OnDelete = true; return u }
	for name, tc := range map[string]struct {
		u                 lifecycle.CliqueUpdate
		reached, previous string
	}{
		"the selected pod; pods of the target were not made by it":               {rolling(begun(targetB), 1, old(0), old(1), fresh(2)), "1", ""},
		"pods that are not ready":                                                {rolling(begun(targetB), 3, old(0), old(1, pending), old(2, notReady)), "1-2", ""},
		"nothing is against the update: a lost pod follows it":                   {creates(rolling(begun(targetB), 3, old(0), fresh(2)), 1), "1", ""},
		"a pod that it made has failed: a lost pod comes back":                   {creates(rolling(begun(targetB, made(2)), 1, old(0), fresh(2, notReady)), 1), "2", "1"},
		"a pod of the target that it did not make has failed":                    {creates(rolling(begun(targetB), 1, old(0), fresh(2, notReady)), 1), "1", ""},
		"the replacement is not created yet":                                     {creates(rolling(begun(targetB, selected("web-2-a"), made(2)), 1, old(0)), 1, 2), "1-2", ""},
		"the replacement has no node yet":                                        {creates(rolling(begun(targetB, made(2)), 1, old(0), fresh(2, pending, created(time.Second))), 1), "2", "1"},
		"an updated pod is lost":                                                 {creates(rolling(begun(targetB, made(1, 2)), 1, old(0), fresh(2, notReady)), 1), "1-2", ""},
		"lost while a pod that it made has failed":                               {creates(rolling(begun(targetB, made(2)), 1, old(0), old(1), fresh(2, notReady)), 3, 4), "2", "3-4"},
		"scaled out while a pod that it made has failed":                         {scales(rolling(begun(targetB, made(2)), 1, old(0), fresh(2, notReady)), 1, 3, 4), "2-4", "1"},
		"scaled out while it is paused":                                          {paused(scales(rolling(begun(targetB, made(2)), 1, old(0), fresh(2)), 1, 3, 4)), "2", "1,3-4"},
		"scaled out before its turn":                                             {noTurn(scales(rolling(nil, 1, old(0)), 1, 3, 4)), "", "1"},
		"scaled out before its turn, paused":                                     {paused(noTurn(scales(rolling(nil, 1, old(0)), 1, 3, 4))), "", "1,3-4"},
		"scaled out after an update under OnDelete":                              {noTurn(scales(rolling(begun(targetB, atOnce), 1, old(0)), 1, 3, 4)), "", ""},
		"scaled out under OnDelete":                                              {onDelete(noTurn(scales(rolling(nil, 1, old(0)), 1, 3, 4))), "", ""},
		"paused":                                                                 {paused(creates(rolling(begun(targetB), 1, old(0), fresh(2)), 1)), "", "1"},
		"the template changes again: what the update before made does not count": {creates(rolling(begun(targetA, made(1, 2)), 1, old(0), fresh(2, notReady)), 1), "1", ""},
		"the update ends under OnDelete":                                         {onDelete(rolling(begun(targetB, made(1)), 1, old(0))), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := lifecycle.DecideCliqueUpdate(tc.u, now)
			reached := ""
			if d.Progress != nil {
				reached = d.Progress.Reached.String()
			}
			if reached != tc.reached {
				t.Errorf("reached %q, want %q", reached, tc.reached)
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

// TestSettle: which units exist or are to come back; another one is scaled out.
func TestSettle(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		recorded, present string
		wanted            int
		want              string
	}{
		"new, and not complete":     {"", "0-1", 3, ""},
		"new, and complete":         {"", "0-2", 3, "0-2"},
		"complete":                  {"0-1", "0-2", 3, "0-2"},
		"some are lost":             {"0-4", "0,3", 5, "0-4"},
		"scaled out":                {"0-2", "0-2", 5, "0-2"},
		"scaled in":                 {"0-4", "0-2", 3, "0-2"},
		"scaled in, and one leaves": {"0-4", "0-3", 3, "0-3"},
		"scaled to zero":            {"0-4", "", 0, ""},
	} {
		got := lifecycle.Settle(lifecycle.ParseIndices(tc.recorded), tc.recorded != "", lifecycle.ParseIndices(tc.present), tc.wanted)
		if got.String() != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := lifecycle.Settle(lifecycle.IndexSet{}, true, lifecycle.Indices(0), 3).String(); got != "0" {
		t.Errorf("scaled out from zero: %q", got)
	}
}

// TestGroupHoldsPrevious: with which template missing PodCliques of a scaling-group replica are created.
func TestGroupHoldsPrevious(t *testing.T) {
	t.Parallel()
	reached := made(1)
	some, other, partial := replica(1, held), replica(1), lacks(replica(1))
	awaits := func() lifecycle.GroupUpdate {
		return lifecycle.GroupUpdate{Update: lifecycle.Update{Target: lifecycle.Target{Generation: "gen-b"}, Followed: "gen-a"}}
	}
	scaled := func(p *lifecycle.Progress, turn, holds bool) lifecycle.GroupUpdate {
		u := awaits()
		u.Progress, u.Turn, u.HoldsNew, u.ScaledOut = p, turn, holds, []int{1}
		return u
	}
	inReached := func(u lifecycle.GroupUpdate) lifecycle.GroupUpdate { u.SetReached = true; return u }
	terminated := lifecycle.Raised{Attempt: 1, Replacement: lifecycle.Replacement{Reason: lifecycle.ReplacedTermination}, At: now}
	deleted := lifecycle.Raised{Attempt: 1, Replacement: lifecycle.Replacement{Reason: lifecycle.ReplacedDeleted}, At: now}
	for name, tc := range map[string]struct {
		u        lifecycle.GroupUpdate
		existing *lifecycle.GroupReplica
		replaced lifecycle.Raised
		want     bool
	}{
		"others of the replica have the previous template": {u: lifecycle.GroupUpdate{Update: lifecycle.Update{Progress: begun(targetB)}}, existing: &some, want: true},
		"before the update is recorded too":                {existing: &some, want: true},
		"others of the replica have the current template":  {u: lifecycle.GroupUpdate{Update: lifecycle.Update{Progress: begun(targetB)}}, existing: &other},
		"OnDelete":         {u: lifecycle.GroupUpdate{Update: lifecycle.Update{OnDelete: true}}, existing: &some},
		"it is new":        {u: lifecycle.GroupUpdate{Update: lifecycle.Update{Progress: begun(targetB)}}},
		"it is terminated": {u: lifecycle.GroupUpdate{Update: lifecycle.Update{Progress: begun(targetB)}}, replaced: terminated, want: true},
		"it is terminated after the update has reached it": {u: lifecycle.GroupUpdate{Update: lifecycle.Update{Progress: begun(targetB, reached)}}, replaced: terminated},
		"it is terminated, and there is no update":         {u: lifecycle.GroupUpdate{Update: lifecycle.Update{Progress: begun(targetB, overNow)}}, replaced: terminated},
		"a user deletes it as a whole":                     {u: lifecycle.GroupUpdate{Update: lifecycle.Update{Progress: begun(targetB)}}, replaced: deleted},

		"it is scaled out": {u: scaled(begun(targetB), true, false)},
		"it is scaled out while the update is paused":               {u: scaled(begun(targetB), true, true), want: true},
		"paused: a user deletes it as a whole":                      {u: lifecycle.GroupUpdate{Update: lifecycle.Update{Progress: begun(targetB)}, HoldsNew: true}, replaced: deleted},
		"paused: the update had made it":                            {u: scaled(begun(targetB, reached), true, true)},
		"paused, and no update":                                     {u: scaled(begun(targetB, overNow), true, true)},
		"the group's turn has not come: it is lost":                 {u: awaits(), want: true},
		"the group's turn has not come: a user deletes it":          {u: awaits(), replaced: deleted, want: true},
		"a user deletes the whole replica of the set":               {u: inReached(awaits())},
		"the group's turn has not come: it is terminated":           {u: awaits(), replaced: terminated, want: true},
		"the group's turn has not come: a PodClique of it is lost":  {u: awaits(), existing: &partial, want: true},
		"the group's turn has not come: it is scaled out":           {u: scaled(nil, false, false)},
		"the group's turn has not come: half of it is scaled out":   {u: scaled(nil, false, false), existing: &partial},
		"the group's turn has not come: scaled out while paused":    {u: scaled(nil, false, true), want: true},
		"the template was edited under OnDelete: it is scaled out":  {u: scaled(begun(targetB, atOnce), false, false)},
		"the template was edited under OnDelete: a user deletes it": {u: scaled(begun(targetB, atOnce), false, false), replaced: deleted},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.u.HoldsPrevious(1, tc.existing, tc.replaced); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
