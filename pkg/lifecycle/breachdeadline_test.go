// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// noon has no fractions of a second.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func delay(d time.Duration) *time.Duration { return &d }

// TestJudgePods covers the cases of "PodClique Level Detection" and "Special Cases" of the Gang Termination Design Doc.
func TestJudgePods(t *testing.T) {
	t.Parallel()
	hour := delay(time.Hour)
	for name, tc := range map[string]struct {
		a    Availability
		now  time.Time
		want Breach
	}{
		"enough are ready": {
			Availability{Available: 3, Needed: 3, WasAvailable: true, Delay: hour}, noon,
			Breach{Status: NotBreached, Reason: SufficientReadyPods, Message: "3 pods are ready, 3 needed", WasAvailable: true}},
		"enough for the first time": {
			Availability{Available: 1, Needed: 1}, noon,
			Breach{Status: NotBreached, Reason: SufficientReadyPods, Message: "1 pod is ready, 1 needed", WasAvailable: true}},
		"enough for the first time, during an update: not recorded": {
			Availability{Available: 1, Needed: 1, Updating: true}, noon,
			Breach{Status: NotBreached, Reason: SufficientReadyPods, Message: "1 pod is ready, 1 needed"}},
		"enough, during an update, and before": {
			Availability{Available: 1, Needed: 1, Updating: true, WasAvailable: true}, noon,
			Breach{Status: NotBreached, Reason: SufficientReadyPods, Message: "1 pod is ready, 1 needed", WasAvailable: true}},
		"too few, and never enough": {
			Availability{Available: 1, Needed: 3, Delay: hour}, noon,
			Breach{Status: NotBreached, Reason: NeverAvailable, Message: "1 pod is ready, 3 needed; there never were as many in this attempt"}},
		"too few, never enough, during an update": {
			Availability{Available: 1, Needed: 3, Updating: true, Delay: hour}, noon,
			Breach{Status: NotBreached, Reason: NeverAvailable, Message: "1 pod is ready, 3 needed; there never were as many in this attempt"}},
		"too few, during an update: the timer ends": {
			Availability{Available: 1, Needed: 3, WasAvailable: true, Updating: true, BreachedSince: noon.Add(-time.Minute), Delay: hour}, noon,
			Breach{Status: BreachUnknown, Reason: UpdateInProgress, Message: "1 pod is ready, 3 needed; an update is in progress", WasAvailable: true}},
		"a breach begins: the next whole second": {
			Availability{Available: 2, Needed: 3, WasAvailable: true, Delay: hour}, noon.Add(time.Millisecond),
			Breach{Status: Breached, Reason: InsufficientReadyPods, WasAvailable: true, Since: noon.Add(time.Second), Deadline: noon.Add(time.Hour + time.Second),
				Message: "2 pods are ready, 3 needed, since 2026-01-02T12:00:01Z; termination is due at 2026-01-02T13:00:01Z"}},
		"a breach begins on a whole second": {
			Availability{Needed: 3, WasAvailable: true, Delay: hour}, noon,
			Breach{Status: Breached, Reason: InsufficientReadyPods, WasAvailable: true, Since: noon, Deadline: noon.Add(time.Hour),
				Message: "0 pods are ready, 3 needed, since 2026-01-02T12:00:00Z; termination is due at 2026-01-02T13:00:00Z"}},
		"a breach lasts: its timer continues": {
			Availability{Available: 2, Needed: 3, WasAvailable: true, BreachedSince: noon.Add(-50 * time.Minute), Delay: hour}, noon,
			Breach{Status: Breached, Reason: InsufficientReadyPods, WasAvailable: true, Since: noon.Add(-50 * time.Minute), Deadline: noon.Add(10 * time.Minute),
				Message: "2 pods are ready, 3 needed, since 2026-01-02T11:10:00Z; termination is due at 2026-01-02T12:10:00Z"}},
		"a breach that was recorded with a time in the future begins now": {
			Availability{Available: 2, Needed: 3, WasAvailable: true, BreachedSince: noon.Add(time.Hour), Delay: hour}, noon,
			Breach{Status: Breached, Reason: InsufficientReadyPods, WasAvailable: true, Since: noon, Deadline: noon.Add(time.Hour),
				Message: "2 pods are ready, 3 needed, since 2026-01-02T12:00:00Z; termination is due at 2026-01-02T13:00:00Z"}},
		"a breach whose cause is known": {
			Availability{Available: 2, Needed: 3, WasAvailable: true, Cause: LostNodes([]Pod{{}, {LostNode: "n2"}})}, noon,
			Breach{Status: Breached, Reason: InsufficientReadyPods, WasAvailable: true, Since: noon,
				Message: "2 pods are ready, 3 needed; node n2 does not answer, since 2026-01-02T12:00:00Z; gang termination is off"}},
		"a breach without a delay": {
			Availability{Available: 2, Needed: 3, WasAvailable: true}, noon,
			Breach{Status: Breached, Reason: InsufficientReadyPods, WasAvailable: true, Since: noon,
				Message: "2 pods are ready, 3 needed, since 2026-01-02T12:00:00Z; gang termination is off"}},
		"scaled to zero: availability is reset": {
			Availability{WasAvailable: true, BreachedSince: noon.Add(-time.Minute), Delay: hour}, noon,
			Breach{Status: NotBreached, Reason: SufficientReadyPods, Message: "nothing is needed"}},
	} {
		if diff := cmp.Diff(tc.want, JudgePods(tc.a, tc.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCauses(t *testing.T) {
	t.Parallel()
	pods := []Pod{{LostNode: "n3"}, {LostNode: "n1"}, {}, {LostNode: "n3"}}
	if got := LostNodes(pods); got != "nodes n1, n3 do not answer" {
		t.Errorf("nodes: %q", got)
	}
	if got := LostNodes(append(pods, Pod{LostNode: "n2"}, Pod{LostNode: "n0"})); got != "nodes n0, n1, n2, and 1 more do not answer" {
		t.Errorf("many nodes: %q", got)
	}
	if got := LostNodes([]Pod{{}}); got != "" {
		t.Errorf("no node: %q", got)
	}
	lost := Clique{Cause: "node n1 does not answer"}
	replicas := []GroupReplica{{Members: []Clique{{}, lost}}, {Members: []Clique{lost, {Cause: "node n2 does not answer"}}}}
	if got := MemberCauses(replicas); got != "node n1 does not answer; node n2 does not answer" {
		t.Errorf("of a group: %q", got)
	}
}

func TestJudgeReplicas(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		a    Availability
		want Breach
	}{
		"enough are available": {
			Availability{Available: 1, Needed: 1, Wanted: 2},
			Breach{Status: NotBreached, Reason: SufficientReplicas, Message: "1 of 2 replicas available, 1 needed", WasAvailable: true}},
		"never available": {
			Availability{Needed: 1, Wanted: 2},
			Breach{Status: NotBreached, Reason: NeverAvailable, Message: "0 of 2 replicas available, 1 needed; there never were as many in this attempt"}},
		"an update": {
			Availability{Needed: 1, Wanted: 2, WasAvailable: true, Updating: true},
			Breach{Status: BreachUnknown, Reason: UpdateInProgress, Message: "0 of 2 replicas available, 1 needed; an update is in progress", WasAvailable: true}},
		"a breach": {
			Availability{Available: 1, Needed: 2, Wanted: 2, WasAvailable: true, Delay: delay(90 * time.Second)},
			Breach{Status: Breached, Reason: InsufficientReplicas, WasAvailable: true, Since: noon, Deadline: noon.Add(90 * time.Second),
				Message: "1 of 2 replicas available, 2 needed, since 2026-01-02T12:00:00Z; termination is due at 2026-01-02T12:01:30Z"}},
		"certainly a breach, although the state of a replica is unknown": {
			Availability{Unknown: 1, Needed: 2, Wanted: 2, WasAvailable: true},
			Breach{Status: Breached, Reason: InsufficientReplicas, WasAvailable: true, Since: noon,
				Message: "0 of 2 replicas available, 2 needed, since 2026-01-02T12:00:00Z; gang termination is off"}},
		"unknown: no breach begins": {
			Availability{Unknown: 1, Needed: 1, Wanted: 2, WasAvailable: true, Delay: delay(time.Hour)},
			Breach{Undecided: true, WasAvailable: true}},
		"unknown: a breach continues, with the current delay": {
			Availability{Unknown: 1, Needed: 1, Wanted: 2, WasAvailable: true, BreachedSince: noon.Add(-time.Minute), Delay: delay(time.Hour)},
			Breach{Undecided: true, WasAvailable: true, Deadline: noon.Add(59 * time.Minute)}},
		"unknown, and never available": {
			Availability{Unknown: 1, Needed: 1, Wanted: 2, Delay: delay(time.Hour)},
			Breach{Status: NotBreached, Reason: NeverAvailable, Message: "0 of 2 replicas available, 1 needed; there never were as many in this attempt"}},
		"scaled to zero": {
			Availability{WasAvailable: true},
			Breach{Status: NotBreached, Reason: SufficientReplicas, Message: "nothing is needed"}},
	} {
		if diff := cmp.Diff(tc.want, JudgeReplicas(tc.a, noon)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestDeadline: a deadline is a whole second and never early. It is computed from the beginning of the breach and the
// current delay.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		delay *time.Duration
		want  time.Time
	}{
		"no delay: never":               {nil, time.Time{}},
		"a delay of 0, as in Training":  {delay(0), noon},
		"a delay":                       {delay(4 * time.Hour), noon.Add(4 * time.Hour)},
		"parts of a second: rounded up": {delay(1500 * time.Millisecond), noon.Add(2 * time.Second)},
		"below zero: immediately":       {delay(-time.Hour), noon},
	} {
		if got := Deadline(noon, tc.delay); !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
