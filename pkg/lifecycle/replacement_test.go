// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecideUnit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	wanted := []string{"w-0-leader", "w-0-worker"}
	clique := func(name, uid string, set int32) UnitClique {
		return UnitClique{Name: name, UID: uid, Attempt: Attempt{Set: set}}
	}
	going := func(c UnitClique) UnitClique { c.Terminating = true; return c }
	pod := func(name, clique, uid string, set int32) UnitPod {
		return UnitPod{Name: name, Clique: clique, CliqueUID: uid, Attempt: Attempt{Set: set}}
	}
	terminating := func(p UnitPod, ends time.Duration) UnitPod {
		p.Terminating, p.GraceEnds = true, now.Add(ends)
		return p
	}
	deleted := Replacement{Reason: ReplacedDeleted, Message: "all its PodCliques were deleted"}
	terminated := Replacement{Reason: ReplacedTermination, Message: "PodClique w-0-worker has too few ready pods"}
	explained := func(c UnitClique) UnitClique { c.Explained = true; return c }
	explainedPod := func(p UnitPod) UnitPod { p.Explained = true; return p }
	former := func(c UnitClique) UnitClique { c.Attempt = OfFormerSet; return c }
	formerPod := func(p UnitPod) UnitPod { p.Attempt = OfFormerSet; return p }
	unreachable := func(p UnitPod) UnitPod { p.Unreachable = true; return p }

	tests := map[string]struct {
		unit Unit
		want UnitDecision
	}{
		"a new unit: all PodCliques are created": {
			Unit{Wanted: wanted},
			UnitDecision{Create: wanted},
		},
		"all PodCliques exist: no action": {
			Unit{Wanted: wanted,
				Cliques: []UnitClique{clique("w-0-leader", "l", 0), clique("w-0-worker", "w", 0)},
				Pods:    []UnitPod{pod("p", "w-0-leader", "l", 0), terminating(pod("q", "w-0-worker", "w", 0), 0)}},
			UnitDecision{},
		},
		"one is gone: it is recreated when its pods are gone": {
			Unit{Wanted: wanted,
				Cliques: []UnitClique{clique("w-0-leader", "l", 0)},
				Pods:    []UnitPod{pod("p", "w-0-leader", "l", 0), terminating(pod("q", "w-0-worker", "w", 0), time.Minute)}},
			UnitDecision{Waits: []UnitPod{terminating(pod("q", "w-0-worker", "w", 0), time.Minute)}},
		},
		"one is gone with its pods: it is recreated": {
			Unit{Wanted: wanted, Cliques: []UnitClique{clique("w-0-leader", "l", 0)}, Pods: []UnitPod{pod("p", "w-0-leader", "l", 0)}},
			UnitDecision{Create: []string{"w-0-worker"}},
		},
		"one is being deleted: the unit waits for it": {
			Unit{Wanted: wanted, Cliques: []UnitClique{clique("w-0-leader", "l", 0), going(clique("w-0-worker", "w", 0))}},
			UnitDecision{WaitsFor: []string{"w-0-worker"}},
		},
		"all are gone and pods are left: the unit is replaced": {
			Unit{Wanted: wanted, Pods: []UnitPod{terminating(pod("q", "w-0-worker", "w", 0), time.Minute)}},
			UnitDecision{Attempt: Attempt{Set: 1}, Replacement: deleted, Waits: []UnitPod{terminating(pod("q", "w-0-worker", "w", 0), time.Minute)}},
		},
		"all are gone or being deleted: the unit is replaced": {
			Unit{Wanted: wanted, Cliques: []UnitClique{going(clique("w-0-worker", "w", 0))}},
			UnitDecision{Attempt: Attempt{Set: 1}, Replacement: deleted, WaitsFor: []string{"w-0-worker"}},
		},
		"all are gone or being deleted, one of them by its scaling group: no user has deleted them": {
			Unit{Wanted: wanted, Cliques: []UnitClique{explained(going(clique("w-0-worker", "w", 0)))}},
			UnitDecision{WaitsFor: []string{"w-0-worker"}, Create: []string{"w-0-leader"}},
		},
		"a pod is left of a PodClique that its scaling group has deleted: no user has deleted it": {
			Unit{Wanted: wanted, Pods: []UnitPod{explainedPod(pod("q", "w-0-worker", "w", 0))}},
			UnitDecision{Waits: []UnitPod{explainedPod(pod("q", "w-0-worker", "w", 0))}, Create: []string{"w-0-leader"}},
		},
		"a lost pod of a PodClique that its scaling group has deleted hides no deletion": {
			Unit{Wanted: wanted, Cliques: []UnitClique{going(clique("w-0-leader", "l", 0))},
				Pods: []UnitPod{explainedPod(unreachable(terminating(pod("q", "w-0-worker", "w", 0), 0)))}},
			UnitDecision{Attempt: Attempt{Set: 1}, Replacement: deleted, WaitsFor: []string{"w-0-leader"}},
		},
		"a scaling group is about to create the PodCliques, and the PodGroup is admitted: no user has deleted them": {
			Unit{Wanted: wanted, Admitted: true, Replacing: true},
			UnitDecision{Create: wanted},
		},
		"a new set waits for what a deleted one of its name has left": {
			Unit{Wanted: wanted, Cliques: []UnitClique{former(going(clique("w-0-worker", "w", 0)))},
				Pods: []UnitPod{formerPod(pod("q", "w-0-leader", "l", 0))}},
			UnitDecision{Earlier: true, WaitsFor: []string{"w-0-worker"}, Waits: []UnitPod{formerPod(pod("q", "w-0-leader", "l", 0))}},
		},
		"all are gone, pods too, and the PodGroup is admitted: the unit is replaced": {
			Unit{Wanted: wanted, Admitted: true},
			UnitDecision{Attempt: Attempt{Set: 1}, Replacement: deleted},
		},
		"replaced: PodCliques of the previous attempt are deleted, and none is created": {
			Unit{Wanted: wanted, Attempt: Attempt{Set: 1},
				Cliques: []UnitClique{clique("w-0-worker", "w", 0), clique("w-0-leader", "l", 0)}},
			UnitDecision{Attempt: Attempt{Set: 1}, Earlier: true, Delete: wanted, WaitsFor: wanted},
		},
		"replaced: all PodCliques wait for a pod of the previous attempt": {
			Unit{Wanted: wanted, Attempt: Attempt{Set: 1}, Pods: []UnitPod{terminating(pod("q", "w-0-worker", "w", 0), time.Minute)}},
			UnitDecision{Attempt: Attempt{Set: 1}, Earlier: true, Waits: []UnitPod{terminating(pod("q", "w-0-worker", "w", 0), time.Minute)}},
		},
		"replaced, all objects are gone: all PodCliques are created": {
			Unit{Wanted: wanted, Attempt: Attempt{Set: 1}},
			UnitDecision{Attempt: Attempt{Set: 1}, Create: wanted},
		},
		"it has failed repeatedly: nothing is created before its time": {
			Unit{Wanted: wanted, Attempt: Attempt{Set: 3}, NotBefore: now.Add(10 * time.Second), RaisedAt: now.Add(-time.Second)},
			UnitDecision{Attempt: Attempt{Set: 3}, Paused: "waits until " + Timestamp(now.Add(10*time.Second)) + " before it starts again", RequeueAfter: 10 * time.Second},
		},
		"its time has come": {
			Unit{Wanted: wanted, Attempt: Attempt{Set: 3}, NotBefore: now, RaisedAt: now.Add(-time.Second)},
			UnitDecision{Attempt: Attempt{Set: 3}, Create: wanted},
		},
		"its attempt was raised by a clock that was a day ahead": {
			Unit{Wanted: wanted, Attempt: Attempt{Set: 3}, NotBefore: now.Add(24*time.Hour + 10*time.Second), RaisedAt: now.Add(24 * time.Hour)},
			UnitDecision{Attempt: Attempt{Set: 3}, Create: wanted},
		},
		"it waits for a pod before it waits for its time": {
			Unit{Wanted: wanted, Attempt: Attempt{Set: 1}, Pods: []UnitPod{pod("q", "w-0-worker", "w", 0)}, NotBefore: now.Add(time.Minute), RaisedAt: now},
			UnitDecision{Attempt: Attempt{Set: 1}, Earlier: true, Waits: []UnitPod{pod("q", "w-0-worker", "w", 0)}},
		},
		"a lost pod is not waited for": {
			Unit{Wanted: wanted, Attempt: Attempt{Set: 1}, Pods: []UnitPod{unreachable(terminating(pod("q", "w-0-worker", "w", 0), 0))}},
			UnitDecision{Attempt: Attempt{Set: 1}, Create: wanted},
		},
		"a pod on an unreachable node is waited for until its grace period is over": {
			Unit{Wanted: wanted, Attempt: Attempt{Set: 1}, Pods: []UnitPod{unreachable(terminating(pod("q", "w-0-worker", "w", 0), time.Minute))}},
			UnitDecision{Attempt: Attempt{Set: 1}, Earlier: true, Waits: []UnitPod{unreachable(terminating(pod("q", "w-0-worker", "w", 0), time.Minute))},
				RequeueAfter: time.Minute},
		},
		"the attempts of pods count if the status has lost them": {
			Unit{Wanted: wanted, Pods: []UnitPod{pod("q", "w-0-worker", "w", 7)}},
			UnitDecision{Attempt: Attempt{Set: 8}, Replacement: deleted, Waits: []UnitPod{pod("q", "w-0-worker", "w", 7)}},
		},
		"a forged attempt is treated as an earlier one": {
			Unit{Wanted: wanted, Cliques: []UnitClique{clique("w-0-leader", "l", 0), clique("w-0-worker", "w", -1)},
				Pods: []UnitPod{pod("q", "w-0-worker", "w", -1)}},
			UnitDecision{Earlier: true, Delete: []string{"w-0-worker"}, WaitsFor: []string{"w-0-worker"}, Waits: []UnitPod{pod("q", "w-0-worker", "w", -1)}},
		},
		"a group replica is replaced within the attempt of its set replica": {
			Unit{OfGroup: true, Wanted: wanted, Attempt: Attempt{Set: 3, Group: 1},
				Pods: []UnitPod{{Name: "q", Clique: "w-0-worker", Attempt: Attempt{Set: 3, Group: 1}}}},
			UnitDecision{Attempt: Attempt{Set: 3, Group: 2}, Replacement: deleted, Waits: []UnitPod{{Name: "q", Clique: "w-0-worker", Attempt: Attempt{Set: 3, Group: 1}}}},
		},
		"a group replica waits for all pods of an earlier attempt of the set replica": {
			Unit{OfGroup: true, Wanted: wanted, Attempt: Attempt{Set: 1},
				Pods: []UnitPod{{Name: "q", Clique: "other", Attempt: Attempt{Group: 5}, Elsewhere: true}}},
			UnitDecision{Attempt: Attempt{Set: 1}, Earlier: true, Waits: []UnitPod{{Name: "q", Clique: "other", Attempt: Attempt{Group: 5}, Elsewhere: true}}},
		},
		"a group replica does not wait for earlier attempts of another replica": {
			Unit{OfGroup: true, Wanted: wanted, Attempt: Attempt{Set: 1, Group: 2},
				Pods: []UnitPod{{Name: "q", Clique: "other", Attempt: Attempt{Set: 1}, Elsewhere: true}}},
			UnitDecision{Attempt: Attempt{Set: 1, Group: 2}, Create: wanted},
		},
		"requested: the unit is replaced, including healthy PodCliques": {
			Unit{Wanted: wanted, Replace: terminated, Attempt: Attempt{Set: 1},
				Cliques: []UnitClique{clique("w-0-leader", "l", 1), clique("w-0-worker", "w", 1)}, Pods: []UnitPod{pod("p", "w-0-leader", "l", 1)}},
			UnitDecision{Attempt: Attempt{Set: 2}, Replacement: terminated},
		},
		"requested, while one is being deleted: the reason is the requested one": {
			Unit{Wanted: wanted, Replace: terminated, Cliques: []UnitClique{clique("w-0-leader", "l", 0), going(clique("w-0-worker", "w", 0))}},
			UnitDecision{Attempt: Attempt{Set: 1}, Replacement: terminated, WaitsFor: []string{"w-0-worker"}},
		},
		"requested, when it was replaced already: no action": {
			Unit{Wanted: wanted, Replace: terminated, Attempt: Attempt{Set: 1}, Cliques: []UnitClique{clique("w-0-worker", "w", 0)}},
			UnitDecision{Attempt: Attempt{Set: 1}, Earlier: true, Delete: []string{"w-0-worker"}, WaitsFor: []string{"w-0-worker"}},
		},
		"requested, after the largest attempt: the numbers wrap around": {
			Unit{Wanted: wanted, Replace: terminated, Attempt: Attempt{Set: math.MaxInt32},
				Cliques: []UnitClique{clique("w-0-leader", "l", math.MaxInt32), clique("w-0-worker", "w", math.MaxInt32)}},
			UnitDecision{Attempt: Attempt{Set: 1}, Replacement: terminated},
		},
		"the numbers of a group replica wrap around, too": {
			Unit{OfGroup: true, Wanted: wanted, Replace: terminated, Attempt: Attempt{Set: 2, Group: math.MaxInt32},
				Cliques: []UnitClique{{Name: "w-0-worker", Attempt: Attempt{Set: 2, Group: math.MaxInt32}}}},
			UnitDecision{Attempt: Attempt{Set: 2, Group: 1}, Replacement: terminated},
		},
		"no PodCliques are desired: no replacement": {
			Unit{Pods: []UnitPod{pod("q", "w-0-worker", "w", 0)}},
			UnitDecision{},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, DecideUnit(tt.unit, now)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeftToSet(t *testing.T) {
	t.Parallel()
	waits := []UnitPod{{Name: "q"}}
	d := UnitDecision{Attempt: Attempt{Set: 2, Group: 1}, Replacement: Replacement{Reason: ReplacedDeleted}, WaitsFor: []string{"c"}, Waits: waits}
	want := UnitDecision{Attempt: Attempt{Set: 2}, WaitsFor: []string{"c"}, Waits: waits, RequeueAfter: RecheckAfter}
	if diff := cmp.Diff(want, d.LeftToSet(Attempt{Set: 2})); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}

func TestBelievedAttempts(t *testing.T) {
	t.Parallel()
	none := Attempt{Set: -1, Group: -1}
	for name, tc := range map[string]struct {
		says, recorded, set, group Attempt
	}{
		"the present one":                        {Attempt{3, 2}, Attempt{3, 2}, Attempt{3, 2}, Attempt{3, 2}},
		"an earlier one":                         {Attempt{2, 9}, Attempt{3, 2}, Attempt{2, 9}, Attempt{2, 9}},
		"the status was lost":                    {Attempt{7, 2}, Attempt{0, 0}, Attempt{7, 2}, none},
		"the status of the group was lost":       {Attempt{3, 7}, Attempt{3, 0}, Attempt{3, 7}, Attempt{3, 7}},
		"ahead by the maximum":                   {Attempt{maxLead + 3, 0}, Attempt{3, 0}, Attempt{maxLead + 3, 0}, none},
		"too far ahead":                          {Attempt{maxLead + 4, 0}, Attempt{3, 0}, none, none},
		"too far ahead in its group":             {Attempt{3, maxLead + 1}, Attempt{3, 0}, Attempt{3, maxLead + 1}, Attempt{3, -1}},
		"the largest number":                     {Attempt{math.MaxInt32, math.MaxInt32}, Attempt{0, 0}, none, none},
		"from before the numbers wrapped around": {Attempt{math.MaxInt32, 0}, Attempt{1, 0}, none, none},
		"the largest number is the recorded one": {Attempt{math.MaxInt32, 0}, Attempt{math.MaxInt32, 0}, Attempt{math.MaxInt32, 0}, Attempt{math.MaxInt32, 0}},
	} {
		if got := tc.says.Believed(tc.recorded.Set); got != tc.set {
			t.Errorf("%s: of a set replica %v, want %v", name, got, tc.set)
		}
		if got := tc.says.BelievedInGroup(tc.recorded); got != tc.group {
			t.Errorf("%s: of a group replica %v, want %v", name, got, tc.group)
		}
	}
}
