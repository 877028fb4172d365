// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// clique is a PodClique with one of one pods ready.
func clique(name string, change ...func(*Clique)) Clique {
	c := Clique{Name: name, Observed: true, Replicas: 1, MinAvailable: 1, Ready: 1}
	for _, f := range change {
		f(&c)
	}
	return c
}

// breached returns a change to a PodClique without ready pods since the given time.
func breached(since time.Time) func(*Clique) {
	return func(c *Clique) { c.Ready, c.BreachedSince = 0, since }
}

func unready(c *Clique)           { c.Ready = 0 }
func stale(c *Clique)             { c.Observed = false }
func terminatingClique(c *Clique) { c.Terminating = true }

func TestDecideGroupTermination(t *testing.T) {
	t.Parallel()
	replica := func(index int, members ...Clique) GroupReplica { return GroupReplica{Index: index, Members: members} }
	expired, fresh := noon.Add(-time.Hour), noon.Add(-time.Minute)
	terminated := func(name string) Replacement {
		return Replacement{Reason: ReplacedTermination, Message: "PodClique " + name + " was below its minimum from 2026-01-02T11:00:00Z to the deadline at 2026-01-02T12:00:00Z: 0 pods are ready, 1 needed"}
	}
	for name, tc := range map[string]struct {
		group GroupTermination
		want  Termination
	}{
		"no breach": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b"))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{}},
		"a breach whose delay has passed, and enough are available": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b"), clique("c", breached(expired)))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{Replicas: map[int]Replacement{1: terminated("c")}}},
		"exactly at the deadline, not a nanosecond before": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b", breached(expired.Add(time.Nanosecond))))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{Next: noon.Add(time.Second)}},
		"a breach whose delay has not passed": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b", breached(fresh)))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{Next: noon.Add(59 * time.Minute)}},
		"several: those that are due are terminated, the next deadline is returned": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b", breached(expired))),
				replica(2, clique("c", breached(fresh))), replica(3, clique("d", breached(fresh.Add(-time.Minute)))), replica(4, clique("e", breached(expired)))},
				MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{Replicas: map[int]Replacement{1: terminated("b"), 4: terminated("e")}, Next: noon.Add(58 * time.Minute)}},
		"two of one replica: the first breach is the cause": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b", breached(fresh)), clique("c", breached(expired)))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{Replicas: map[int]Replacement{1: terminated("c")}}},
		"too few would be available: it is the set's concern": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b", breached(expired)))}, MinAvailable: 2, Delay: delay(time.Hour)},
			Termination{}},
		"the other was recreated and never became ready: it is not available, though not in breach": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a", unready)), replica(1, clique("b", breached(expired)))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{}},
		"the other is being deleted": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a", terminatingClique)), replica(1, clique("b", breached(expired)))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{}},
		"the other lacks a PodClique": {
			GroupTermination{Replicas: []GroupReplica{{Members: []Clique{clique("a")}, Missing: []string{"x"}}, replica(1, clique("b", breached(expired)))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{}},
		"it is not known whether the other is available": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a", stale)), replica(1, clique("b", breached(expired)))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{}},
		"the status of the PodClique in breach is behind": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b", breached(expired), stale))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{}},
		"the PodClique in breach has recovered since": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b", func(c *Clique) { c.BreachedSince = expired }))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{}},
		"the PodClique in breach is being deleted": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b", breached(expired), terminatingClique))}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{}},
		"the PodClique in breach is of an earlier attempt: its replica was replaced already": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")),
				{Index: 1, Attempt: Attempt{Group: 1}, Members: []Clique{clique("b", breached(expired))}}}, MinAvailable: 1, Delay: delay(time.Hour)},
			Termination{}},
		"no delay": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b", breached(expired)))}, MinAvailable: 1},
			Termination{}},
		"the group reports only": {
			GroupTermination{Replicas: []GroupReplica{replica(0, clique("a")), replica(1, clique("b", breached(expired)))}, MinAvailable: 1, Delay: delay(time.Hour), ReportsOnly: true},
			Termination{}},
	} {
		if diff := cmp.Diff(tc.want, DecideGroupTermination(tc.group, noon)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDecideSetTermination(t *testing.T) {
	t.Parallel()
	expired, fresh := noon.Add(-time.Hour), noon.Add(-time.Minute)
	group := func(since time.Time, d *time.Duration, change ...func(*ScalingGroup)) ScalingGroup {
		g := ScalingGroup{Name: "g", Observed: true, Replicas: 2, MinAvailable: 1, BreachedSince: since, Delay: d}
		for _, f := range change {
			f(&g)
		}
		return g
	}
	replica := func(index int, cliques []Clique, groups ...ScalingGroup) SetReplica {
		return SetReplica{Index: index, Delay: delay(time.Hour), Cliques: cliques, Groups: groups}
	}
	const span = " was below its minimum from 2026-01-02T11:00:00Z to the deadline at "
	byClique := Replacement{Reason: ReplacedTermination, Message: "PodClique r" + span + "2026-01-02T12:00:00Z: 0 pods are ready, 1 needed"}
	byGroup := func(deadline string) Replacement {
		return Replacement{Reason: ReplacedTermination, Message: "PodCliqueScalingGroup g" + span + deadline + ": 0 of 2 replicas available, 1 needed"}
	}
	for name, tc := range map[string]struct {
		replicas []SetReplica
		want     Termination
	}{
		"no breach": {[]SetReplica{replica(0, []Clique{clique("r")}, group(time.Time{}, delay(time.Hour)))}, Termination{}},
		"a standalone PodClique whose delay has passed: that replica, no other": {
			[]SetReplica{replica(0, []Clique{clique("q")}), replica(1, []Clique{clique("r", breached(expired))})},
			Termination{Replicas: map[int]Replacement{1: byClique}}},
		"a standalone PodClique whose delay has not passed": {
			[]SetReplica{replica(0, []Clique{clique("r", breached(fresh))})}, Termination{Next: noon.Add(59 * time.Minute)}},
		"the shortest remaining delay counts": {
			[]SetReplica{replica(0, []Clique{clique("r", breached(fresh))}), replica(1, []Clique{clique("s", breached(fresh.Add(-time.Minute)))})},
			Termination{Next: noon.Add(58 * time.Minute)}},
		"a scaling group reports a breach whose delay has passed": {
			[]SetReplica{replica(0, []Clique{clique("q")}, group(expired, delay(time.Hour)))},
			Termination{Replicas: map[int]Replacement{0: byGroup("2026-01-02T12:00:00Z")}}},
		"its override is shorter than the set's": {
			[]SetReplica{replica(0, []Clique{clique("q", breached(expired.Add(time.Minute)))}, group(expired, delay(time.Minute)))},
			Termination{Replicas: map[int]Replacement{0: byGroup("2026-01-02T11:01:00Z")}}},
		"its override is longer than the set's": {
			[]SetReplica{replica(0, []Clique{clique("q")}, group(expired, delay(2*time.Hour)))}, Termination{Next: noon.Add(time.Hour)}},
		"the first of two": {
			[]SetReplica{replica(0, []Clique{clique("r", breached(expired))}, group(expired, delay(2*time.Hour)))},
			Termination{Replicas: map[int]Replacement{0: byClique}}},
		"the status of the group is behind": {
			[]SetReplica{replica(0, nil, group(expired, delay(time.Hour), func(g *ScalingGroup) { g.Observed = false }))}, Termination{}},
		"the status of the group is of an earlier attempt: the replica was replaced already": {
			[]SetReplica{{Attempt: 1, Groups: []ScalingGroup{group(expired, delay(time.Hour))}}}, Termination{}},
		"the PodClique is of an earlier attempt": {
			[]SetReplica{{Attempt: 1, Delay: delay(time.Hour), Cliques: []Clique{clique("r", breached(expired))}}}, Termination{}},
		"the group is being deleted": {
			[]SetReplica{replica(0, nil, group(expired, delay(time.Hour), func(g *ScalingGroup) { g.Terminating = true }))}, Termination{}},
		"the group has recovered since": {
			[]SetReplica{replica(0, nil, group(expired, delay(time.Hour), func(g *ScalingGroup) { g.AvailableReplicas = 1 }))}, Termination{}},
		"the status of the PodClique is behind": {
			[]SetReplica{replica(0, []Clique{clique("r", breached(expired), stale)})}, Termination{}},
		"no delay": {
			[]SetReplica{{Cliques: []Clique{clique("r", breached(expired))}, Groups: []ScalingGroup{group(expired, nil)}}}, Termination{}},
	} {
		if diff := cmp.Diff(tc.want, DecideSetTermination(tc.replicas, noon)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTerminationRequeue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		next time.Time
		want time.Duration
	}{
		"nothing is due":   {time.Time{}, 0},
		"exact":            {noon.Add(59*time.Second + 1), 59*time.Second + 1},
		"due this instant": {noon, time.Millisecond},
	} {
		if got := (Termination{Next: tc.next}).RequeueAfter(noon); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestCountAvailable: replicas are available according to known states; replicas with unknown states may be available.
func TestCountAvailable(t *testing.T) {
	t.Parallel()
	replicas := []GroupReplica{
		{Members: []Clique{clique("a"), clique("b")}},
		{Members: []Clique{clique("a", unready), clique("b")}},
		{Members: []Clique{clique("a", stale), clique("b")}},
		{Members: []Clique{clique("a", stale, unready), clique("b")}},
		{Members: []Clique{clique("a", stale), clique("b", unready)}},
		{Members: []Clique{clique("a", stale, terminatingClique), clique("b")}},
		{Members: []Clique{clique("a", stale)}, Missing: []string{"b"}},
		{Attempt: Attempt{Set: 1}, Members: []Clique{clique("a"), clique("b")}}, // of an earlier attempt
		{Attempt: Attempt{Set: 1}, Members: []Clique{clique("a", stale), clique("b", stale)}},
	}
	if available, unknown := CountAvailable(replicas); available != 1 || unknown != 2 {
		t.Errorf("%d available and %d unknown, want 1 and 2", available, unknown)
	}
}

// TestBreachedSince: the oldest breach of a replica that still lasts.
func TestBreachedSince(t *testing.T) {
	t.Parallel()
	r := SetReplica{Attempt: 1,
		Cliques: []Clique{clique("old", breached(noon.Add(-time.Hour))), clique("r", breached(noon), func(c *Clique) { c.Attempt.Set = 1 })},
		Groups:  []ScalingGroup{{Attempt: 1, BreachedSince: noon.Add(time.Second)}, {Attempt: 1, Terminating: true, BreachedSince: noon.Add(-time.Hour)}}}
	if got := r.BreachedSince(); !got.Equal(noon) {
		t.Errorf("%s, want %s", got, noon)
	}
	r.Succeeded = true
	if got := r.BreachedSince(); !got.IsZero() {
		t.Errorf("BreachedSince() of a replica that has succeeded = %v", got)
	}
	if got := (SetReplica{Cliques: []Clique{clique("r")}}).BreachedSince(); !got.IsZero() {
		t.Errorf("%s, want none", got)
	}
}
