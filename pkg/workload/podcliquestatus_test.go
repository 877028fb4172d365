// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
)

func TestEndsWrittenAndReadAgain(t *testing.T) {
	t.Parallel()
	ends := map[int]lifecycle.Ends{-1: {Count: 2, Last: now.Time}, 0: {Count: 1, Last: now.Time}, 12: {Count: 3, Last: now.Add(time.Second)}}
	clique := &v1alpha1.PodClique{}
	clique.Status = cliqueStatus(clique, CliqueStatusFacts{Ends: ends}, now)
	if diff := cmp.Diff(ends, RecordedEnds(clique)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := cliqueStatus(clique, CliqueStatusFacts{}, now).EndedPods; got != nil {
		t.Errorf("a removed history is written as %v", got)
	}
}

// TestWaitingForMinReadySeconds: the condition Available distinguishes pods that are not ready from those that have not
// been ready for long enough.
func TestWaitingForMinReadySeconds(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC))
	clique := &v1alpha1.PodClique{Spec: v1alpha1.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](2), MinReadySeconds: 60}}
	readyFor := func(times ...time.Duration) []lifecycle.Pod {
		var pods []lifecycle.Pod
		for _, d := range times {
			pods = append(pods, lifecycle.Pod{Scheduled: true, Running: true, Ready: true, ReadySince: now.Add(-d)})
		}
		return pods
	}
	for want, pods := range map[string][]lifecycle.Pod{
		"Available=False InsufficientReadyPods: 1 pod is ready, 2 needed":                   readyFor(time.Minute),
		"Available=False InsufficientReadyPods: 1 pod is ready, 0 for 1m0s, 2 needed":       readyFor(time.Second),
		"Available=False WaitingForMinReadySeconds: 2 pods are ready, 1 for 1m0s, 2 needed": readyFor(time.Minute, time.Second),
		"Available=True SufficientReadyPods: 3 pods are ready, 2 for 1m0s, 2 needed":        readyFor(time.Minute, time.Second, time.Hour),
		"Available=True SufficientReadyPods: 2 pods are ready, 2 needed":                    readyFor(time.Minute, time.Hour),
	} {
		s := cliqueStatus(clique, CliqueStatusFacts{Pods: pods, Leaf: 2}, now)
		if got := conditionText(s.Conditions)[0]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPodCliqueStatusChange(t *testing.T) {
	t.Parallel()
	with := func(change func(*v1alpha1.PodCliqueStatus)) v1alpha1.PodCliqueStatus {
		s := v1alpha1.PodCliqueStatus{ObservedGeneration: 1, Replicas: 2, MinAvailable: ptr.To[int32](2)}
		change(&s)
		return s
	}
	condition := func(kind string, status metav1.ConditionStatus) func(*v1alpha1.PodCliqueStatus) {
		return func(s *v1alpha1.PodCliqueStatus) {
			s.Conditions = []metav1.Condition{{Type: kind, Status: status}}
		}
	}
	failing := func(text string) func(*v1alpha1.PodCliqueStatus) {
		return func(s *v1alpha1.PodCliqueStatus) {
			s.LastErrors = []v1alpha1.LastError{{Code: "x", Description: text}}
		}
	}
	nothing := func(*v1alpha1.PodCliqueStatus) {}
	urgent := &lifecycle.StatusChange{Urgent: true}
	for name, tc := range map[string]struct {
		before, after v1alpha1.PodCliqueStatus
		pods          []lifecycle.Pod
		want          *lifecycle.StatusChange // nil: no change
	}{
		"no change": {before: with(nothing), after: with(nothing)},
		"a number": {before: with(nothing), after: with(func(s *v1alpha1.PodCliqueStatus) { s.Replicas = 3 }),
			pods: []lifecycle.Pod{{Ready: true}}, want: &lifecycle.StatusChange{}},
		"a number, and a pod is not ready": {before: with(nothing), after: with(func(s *v1alpha1.PodCliqueStatus) { s.Replicas = 3 }),
			pods: []lifecycle.Pod{{Ready: true}, {}}, want: &lifecycle.StatusChange{Settling: true}},
		"the first status, of pods that are not available": {after: with(condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse)),
			want: &lifecycle.StatusChange{First: true, Observed: true}},
		"another generation": {before: with(nothing), after: with(func(s *v1alpha1.PodCliqueStatus) { s.ObservedGeneration = 2 }),
			want: &lifecycle.StatusChange{Observed: true}},
		"pods are bound": {before: with(nothing), after: with(condition(v1alpha1.ConditionPodCliqueScheduled, metav1.ConditionTrue)),
			want: &lifecycle.StatusChange{}},
		"available": {before: with(nothing), after: with(condition(v1alpha1.ConditionAvailable, metav1.ConditionTrue)), want: urgent},
		"unavailable": {before: with(condition(v1alpha1.ConditionAvailable, metav1.ConditionTrue)),
			after: with(condition(v1alpha1.ConditionAvailable, metav1.ConditionFalse)), want: urgent},
		"breached": {before: with(nothing), after: with(condition(v1alpha1.ConditionMinAvailableBreached, metav1.ConditionTrue)), want: urgent},
		"breach unknown": {before: with(condition(v1alpha1.ConditionMinAvailableBreached, metav1.ConditionTrue)),
			after: with(condition(v1alpha1.ConditionMinAvailableBreached, metav1.ConditionUnknown)), want: urgent},
		"a condition that is gone":     {before: with(condition(v1alpha1.ConditionReplicaFailure, metav1.ConditionTrue)), after: with(nothing), want: urgent},
		"available for the first time": {before: with(nothing), after: with(func(s *v1alpha1.PodCliqueStatus) { s.WasAvailable = true }), want: urgent},
		"another minimum":              {before: with(nothing), after: with(func(s *v1alpha1.PodCliqueStatus) { s.MinAvailable = ptr.To[int32](1) }), want: urgent},
		"an error":                     {before: with(nothing), after: with(failing("a")), want: urgent},
		"another error":                {before: with(failing("a")), after: with(failing("b")), want: urgent},
		"no error":                     {before: with(failing("a")), after: with(nothing), want: urgent},
		"a number, with an error that lasts": {before: with(failing("a")), after: func() v1alpha1.PodCliqueStatus {
			s := with(failing("a"))
			s.Replicas = 3
			return s
		}(), want: &lifecycle.StatusChange{}},
	} {
		got, differs := PodCliqueStatusChange(&tc.before, &tc.after, tc.pods)
		if differs != (tc.want != nil) {
			t.Errorf("%s: differs = %v", name, differs)
		} else if differs {
			if diff := cmp.Diff(*tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// TestOnlyAPodThatLacksIsBlamed: condition Available of a PodClique does not describe a pod that is not why it is
// False.
func TestOnlyAPodThatLacksIsBlamed(t *testing.T) {
	t.Parallel()
	const crashes = "container main ended with exit code 1 (CrashLoopBackOff)"
	ready := func(index int) lifecycle.Pod {
		return lifecycle.Pod{Name: fmt.Sprintf("pod-%d", index), Index: index, Scheduled: true, Running: true, Ready: true, ReadySince: now.Time}
	}
	unready := func(index int, p lifecycle.Pod) lifecycle.Pod {
		p.Name, p.Index, p.Scheduled, p.Cause = fmt.Sprintf("pod-%d", index), index, true, crashes
		return p
	}
	training := &lifecycle.TrainingDecision{}
	for name, tc := range map[string]struct {
		pods     []lifecycle.Pod
		training *lifecycle.TrainingDecision
		want     string
	}{
		"fewer are ready than needed":                            {pods: []lifecycle.Pod{ready(0), unready(1, lifecycle.Pod{Running: true})}, want: "pod-1"},
		"enough are ready, but not for minReadySeconds":          {pods: []lifecycle.Pod{ready(0), ready(1), unready(2, lifecycle.Pod{Running: true})}},
		"Training: a pod runs, another does not":                 {[]lifecycle.Pod{unready(0, lifecycle.Pod{Running: true}), unready(1, lifecycle.Pod{})}, training, "pod-1"},
		"Training: a pod has succeeded, another does not run":    {[]lifecycle.Pod{unready(0, lifecycle.Pod{Ended: true, Succeeded: true}), unready(1, lifecycle.Pod{})}, training, "pod-1"},
		"Training: a pod runs, and one of its containers failed": {[]lifecycle.Pod{unready(0, lifecycle.Pod{Running: true, Failed: true})}, training, "pod-0"},
		"Training: a pod on a node that does not answer":         {[]lifecycle.Pod{unready(0, lifecycle.Pod{Running: true, LostNode: "n"})}, training, "pod-0"},
		"Training: all run":                                      {[]lifecycle.Pod{unready(0, lifecycle.Pod{Running: true})}, training, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &v1alpha1.PodClique{Spec: v1alpha1.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](2), MinReadySeconds: 30}}
			status := cliqueStatus(c, CliqueStatusFacts{Pods: tc.pods, Training: tc.training}, now)
			available := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAvailable)
			if available.Status != metav1.ConditionFalse {
				t.Fatalf("available: %+v", available)
			}
			if blamed := strings.Contains(available.Message, "is not ready"); blamed != (tc.want != "") || !strings.Contains(available.Message, tc.want) {
				t.Errorf("message %q, want pod %q in it", available.Message, tc.want)
			}
		})
	}
}

// TestWhyASetIsNotAvailable: the cause that a pod gives is in condition Available of its PodClique, of the scaling
// group, and of the set.
func TestWhyASetIsNotAvailable(t *testing.T) {
	t.Parallel()
	const image = "the image of container main cannot be pulled (ImagePullBackOff)"
	clique := func(name string) *v1alpha1.PodClique {
		c := &v1alpha1.PodClique{Spec: v1alpha1.PodCliqueSpec{Replicas: 2, MinAvailable: ptr.To[int32](2)}}
		c.Name, c.Generation = name, 1
		c.Labels = map[string]string{v1alpha1.LabelPodCliqueSetReplicaIndex: "0", v1alpha1.LabelPodCliqueScalingGroupReplicaIndex: "0", v1alpha1.LabelTemplateName: "w"}
		return c
	}
	message := func(conditions []metav1.Condition) string {
		return meta.FindStatusCondition(conditions, v1alpha1.ConditionAvailable).Message
	}
	pod := func(index int, p lifecycle.Pod) lifecycle.Pod {
		p.Index, p.Name, p.Scheduled = index, fmt.Sprintf("pod-%d", index), true
		return p
	}
	for name, tc := range map[string]struct {
		pods []lifecycle.Pod
		want string // of the PodClique; after the counts, also of the others
	}{
		"the first of two, and a lost node": {[]lifecycle.Pod{pod(1, lifecycle.Pod{LostNode: "n"}), pod(0, lifecycle.Pod{Cause: image})}, "pod pod-0 is not ready: " + image},
		"a lost node":                       {[]lifecycle.Pod{pod(0, lifecycle.Pod{}), pod(1, lifecycle.Pod{LostNode: "n"})}, "pod pod-1 is not ready: node n does not answer"},
		"no cause is known":                 {[]lifecycle.Pod{pod(0, lifecycle.Pod{}), pod(1, lifecycle.Pod{})}, ""},
		"not bound: the PodGroup says why":  {[]lifecycle.Pod{{Name: "a", Cause: "no room"}}, ""},
		"it is going":                       {[]lifecycle.Pod{pod(0, lifecycle.Pod{Terminating: true, Cause: image})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clique("s-0-w")
			c.Status = cliqueStatus(c, CliqueStatusFacts{Pods: tc.pods}, now)
			_, got, _ := strings.Cut(message(c.Status.Conditions), "; ")
			if got != tc.want {
				t.Errorf("of the PodClique: %q, want %q", got, tc.want)
			}
			set := &v1alpha1.PodCliqueSet{Spec: v1alpha1.PodCliqueSetSpec{Replicas: 1}}
			set.Name = "s"
			c.Status.ScheduledReplicas = 2 // otherwise the PodGroup says why
			replicas := SetReplicasFacts(set, 0, nil, []*v1alpha1.PodClique{c}, nil)
			want := "0 of 1 replica is available; replica 0 lacks s-0-w"
			if tc.want != "" {
				want += ": " + tc.want
			}
			if got := message(PodCliqueSetStatus(set, SetStatusFacts{Replicas: replicas}, now).Conditions); got != want {
				t.Errorf("of the set: %q, want %q", got, want)
			}

			group := &v1alpha1.PodCliqueScalingGroup{Spec: v1alpha1.PodCliqueScalingGroupSpec{Replicas: 1}}
			group.Name = "s-0-g"
			group.Labels = map[string]string{v1alpha1.LabelPodCliqueSetReplicaIndex: "0", v1alpha1.LabelTemplateName: "g"}
			group.Status = groupStatus(group, GroupStatusFacts{Replicas: GroupReplicasFacts(group, nil, []*v1alpha1.PodClique{c})}, now)
			inGroup := ""
			if tc.want != "" {
				inGroup = "PodClique s-0-w: " + tc.want
			}
			if _, got, _ := strings.Cut(message(group.Status.Conditions), "; "); got != inGroup {
				t.Errorf("of the scaling group: %q, want %q", got, inGroup)
			}
		})
	}
}
