// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// TestAttemptsOfManyReplicasFitIntoAnObject: when a zone fails, thousands of replicas are replaced in one write. The
// API server takes objects of up to 1.5 MB.
func TestAttemptsOfManyReplicasFitIntoAnObject(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	why := lifecycle.Replacement{Reason: lifecycle.ReplacedTermination, Message: strings.Repeat("why ", 250)}
	for n, most := range map[int]int{256: 300_000, 5000: 1_200_000} {
		raised := map[int]lifecycle.Raised{}
		for i := range n {
			raised[i] = lifecycle.Raised{Attempt: 1, Replacement: why}
		}
		attempts := replicaAttempts(nil, n, raised, nil, now)
		data, err := json.Marshal(attempts)
		if err != nil || len(attempts) != n || len(data) > most || !strings.HasPrefix(attempts[0].Message, "why why") {
			t.Errorf("%d attempts take %d bytes, want %d of at most %d; the first message is %q; error %v", len(attempts), len(data), n, most, attempts[0].Message, err)
		}
		if n == 256 && attempts[n-1].Message != why.Message {
			t.Errorf("the message of the last of %d attempts is %q, want all of it", n, attempts[n-1].Message)
		}
	}
}

func TestReplicaAttempts(t *testing.T) {
	t.Parallel()
	earlier := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	now := metav1.NewTime(earlier.Add(time.Hour))
	entry := func(index, attempt int32, at metav1.Time) v1alpha1.ReplicaAttempt {
		return v1alpha1.ReplicaAttempt{Index: index, Attempt: attempt, Reason: v1alpha1.ReasonTermination, Message: "why", StartedAt: at}
	}
	since := func(a v1alpha1.ReplicaAttempt, at metav1.Time) v1alpha1.ReplicaAttempt {
		a.AvailableAt = &at
		return a
	}
	raise := func(index int, attempt int32) map[int]lifecycle.Raised {
		why := lifecycle.Replacement{Reason: lifecycle.ReplacedTermination, Message: "why"}
		return map[int]lifecycle.Raised{index: {Attempt: attempt, Replacement: why}}
	}
	restart := func(index int, attempt int32, since metav1.Time) map[int]lifecycle.Raised {
		why := lifecycle.Replacement{Reason: lifecycle.ReplacedRestart, Message: "why", Since: since.Time}
		return map[int]lifecycle.Raised{index: {Attempt: attempt, Replacement: why}}
	}
	preempted := func(index int, attempt int32) map[int]lifecycle.Raised {
		why := lifecycle.Replacement{Reason: lifecycle.ReplacedPreemption, Message: "why", Since: now.Time}
		return map[int]lifecycle.Raised{index: {Attempt: attempt, Replacement: why}}
	}
	displaced := func(index, attempt int32, at metav1.Time) v1alpha1.ReplicaAttempt {
		a := entry(index, attempt, at)
		a.Reason = v1alpha1.ReasonPreemption
		return a
	}
	restarted := func(index int32, attempt int32, at metav1.Time, delay time.Duration) v1alpha1.ReplicaAttempt {
		a := entry(index, attempt, at)
		if a.Reason = v1alpha1.ReasonRestart; delay > 0 {
			a.NotBefore = ptr.To(metav1.NewTime(at.Add(delay)))
		}
		return a
	}
	for name, tc := range map[string]struct {
		before    []v1alpha1.ReplicaAttempt
		n         int
		raised    map[int]lifecycle.Raised
		available map[int]bool
		want      []v1alpha1.ReplicaAttempt
	}{
		"none":                          {nil, 3, nil, nil, nil},
		"raised for the first time":     {nil, 3, raise(2, 1), nil, []v1alpha1.ReplicaAttempt{entry(2, 1, now)}},
		"raised again, another is kept": {[]v1alpha1.ReplicaAttempt{entry(0, 4, earlier), entry(2, 1, earlier)}, 3, raise(2, 2), nil, []v1alpha1.ReplicaAttempt{entry(0, 4, earlier), entry(2, 2, now)}},
		"the first restart":             {[]v1alpha1.ReplicaAttempt{entry(2, 1, earlier)}, 3, restart(2, 2, now), nil, []v1alpha1.ReplicaAttempt{restarted(2, 2, now, 0)}},
		"the second one waits": {[]v1alpha1.ReplicaAttempt{restarted(2, 1, earlier, 0)}, 3, restart(2, 2, now), nil,
			[]v1alpha1.ReplicaAttempt{restarted(2, 2, now, 10*time.Second)}},
		"the third one waits longer": {[]v1alpha1.ReplicaAttempt{restarted(2, 1, earlier, 10*time.Second)}, 3, restart(2, 2, now), nil,
			[]v1alpha1.ReplicaAttempt{restarted(2, 2, now, 20*time.Second)}},
		"restarted after ten minutes": {[]v1alpha1.ReplicaAttempt{since(restarted(2, 1, earlier, 10*time.Second), metav1.NewTime(now.Add(-10*time.Minute)))}, 3, restart(2, 2, now), nil,
			[]v1alpha1.ReplicaAttempt{restarted(2, 2, now, 0)}},
		"ten minutes, most of which it was in breach": {[]v1alpha1.ReplicaAttempt{since(restarted(2, 1, earlier, 10*time.Second), metav1.NewTime(now.Add(-10*time.Minute)))}, 3,
			restart(2, 2, metav1.NewTime(now.Add(-time.Minute))), nil, []v1alpha1.ReplicaAttempt{restarted(2, 2, now, 20*time.Second)}},
		"restarted after a preemption": {[]v1alpha1.ReplicaAttempt{restarted(2, 1, earlier, 10*time.Second)}, 3, preempted(2, 2), nil,
			[]v1alpha1.ReplicaAttempt{displaced(2, 2, now)}},
		"a replica is no longer desired": {[]v1alpha1.ReplicaAttempt{entry(0, 4, earlier), entry(2, 1, earlier)}, 2, nil, nil, []v1alpha1.ReplicaAttempt{entry(0, 4, earlier)}},
		"available again, for the first time": {[]v1alpha1.ReplicaAttempt{entry(0, 4, earlier), entry(2, 1, earlier)}, 3, nil, map[int]bool{1: true, 2: true},
			[]v1alpha1.ReplicaAttempt{entry(0, 4, earlier), since(entry(2, 1, earlier), now)}},
		"available, and it was before": {[]v1alpha1.ReplicaAttempt{since(entry(2, 1, earlier), earlier)}, 3, nil, map[int]bool{2: true},
			[]v1alpha1.ReplicaAttempt{since(entry(2, 1, earlier), earlier)}},
		"raised again: the new attempt was not available": {[]v1alpha1.ReplicaAttempt{since(entry(2, 1, earlier), earlier)}, 3, raise(2, 2), map[int]bool{2: true},
			[]v1alpha1.ReplicaAttempt{entry(2, 2, now)}},
	} {
		if diff := cmp.Diff(tc.want, replicaAttempts(tc.before, tc.n, tc.raised, tc.available, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReasonsOfReplacements: the reasons are those documented in the API.
func TestReasonsOfReplacements(t *testing.T) {
	t.Parallel()
	for got, want := range map[lifecycle.ReplacementReason]string{
		lifecycle.ReplacedDeleted:     v1alpha1.ReasonPodCliquesDeleted,
		lifecycle.ReplacedTermination: v1alpha1.ReasonTermination,
		lifecycle.ReplacedRestart:     v1alpha1.ReasonRestart,
		lifecycle.ReplacedPreemption:  v1alpha1.ReasonPreemption,
		lifecycle.ReplacedUpdate:      v1alpha1.ReasonUpdate,
	} {
		if string(got) != want {
			t.Errorf("reason %s, want %s", got, want)
		}
	}
}

// TestScalingGroupStartsAfreshWithTheSetsAttempt: a new attempt of the set's replica resets the status of a scaling
// group: availability in an earlier attempt does not count.
func TestScalingGroupStartsAfreshWithTheSetsAttempt(t *testing.T) {
	t.Parallel()
	set := makePodCliqueSet("s", 1).Clique("a", 1).ScalingGroup("g", 2, 0, "a").Obj()
	group := apply(set, Children{}).Groups["s-0-g"]
	group.Status = v1alpha1.PodCliqueScalingGroupStatus{WasAvailable: true, ReplicaAttempts: []v1alpha1.ReplicaAttempt{{Index: 1, Attempt: 3}}}
	if s := groupStatus(group, GroupStatusFacts{}, metav1.Now()); !s.WasAvailable || len(s.ReplicaAttempts) != 1 || s.PodCliqueSetAttempt != 0 {
		t.Errorf("in the same attempt: %+v", s)
	}
	set.Status.ReplicaAttempts = []v1alpha1.ReplicaAttempt{{Index: 0, Attempt: 1}}
	group, differs := Updated(group, ScalingGroups(set, present(set, Children{}), 0, map[string]*v1alpha1.PodCliqueScalingGroup{group.Name: group}, nil)[0])
	if !differs {
		t.Fatal("the group does not learn of the set's attempt")
	}
	if s := groupStatus(group, GroupStatusFacts{}, metav1.Now()); s.WasAvailable || len(s.ReplicaAttempts) != 0 || s.PodCliqueSetAttempt != 1 {
		t.Errorf("in a new attempt: %+v", s)
	}
}

// TestAttemptsAreCarried: the PodGroup, PodCliques and pods have the attempt that they are created for; an existing
// PodClique keeps its own.
func TestAttemptsAreCarried(t *testing.T) {
	t.Parallel()
	set := makePodCliqueSet("s", 1).Clique("a", 1).Obj()
	first := apply(set, Children{})
	set.Status.ReplicaAttempts = []v1alpha1.ReplicaAttempt{{Index: 0, Attempt: 2}}
	const key = v1alpha1.AnnotationPodCliqueSetAttempt
	if got := PodGroup(set, 0, Children{}).Annotations[key]; got != "2" {
		t.Errorf("PodGroup: attempt %q, want 2", got)
	}
	if got := PodCliques(set, present(set, first), 0, nil, nil)[0].Annotations[key]; got != "2" {
		t.Errorf("a new PodClique: attempt %q, want 2", got)
	}
	if got, ok := PodCliques(set, present(set, first), 0, first.Cliques, nil)[0].Annotations[key]; ok {
		t.Errorf("a PodClique of the first attempt: attempt %q, want none", got)
	}
}

// TestRecordedAttempt: the entry of a replica is found wherever it stands in a status, and none is found for the
// others.
func TestRecordedAttempt(t *testing.T) {
	t.Parallel()
	raised := map[int]lifecycle.Raised{}
	for _, i := range []int{7, 2, 3, 11} {
		raised[i] = lifecycle.Raised{Attempt: int32(100 + i), Replacement: lifecycle.Replacement{Reason: lifecycle.ReplacedUpdate}}
	}
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	attempts := replicaAttempts(nil, 20, raised, nil, now)
	for i := -1; i < 20; i++ {
		want := raised[i]
		if want.Requested() {
			want.At = now.Time
		}
		if diff := cmp.Diff(want, RecordedAttempt(attempts, i)); diff != "" {
			t.Errorf("replica %d (-want +got):\n%s", i, diff)
		}
	}
}
