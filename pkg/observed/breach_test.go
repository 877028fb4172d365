// SPDX-License-Identifier: Apache-2.0

package observed_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/observed"
)

func TestTerminationDelay(t *testing.T) {
	t.Parallel()
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	for name, tc := range map[string]struct {
		workload      v1alpha1.WorkloadType
		set, override *metav1.Duration
		standalone    *time.Duration
		group         *time.Duration
	}{
		"off":                              {v1alpha1.WorkloadTypeInference, nil, nil, nil, nil},
		"off, whatever a group says":       {v1alpha1.WorkloadTypeInference, nil, duration(time.Hour), nil, nil},
		"the set's":                        {"", duration(time.Hour), nil, ptr.To(time.Hour), ptr.To(time.Hour)},
		"a group's own":                    {"", duration(time.Hour), duration(time.Minute), ptr.To(time.Hour), ptr.To(time.Minute)},
		"replicas of Training restart":     {v1alpha1.WorkloadTypeTraining, duration(time.Hour), duration(time.Minute), nil, nil},
		"none that admission lets through": {"", duration(0), duration(-time.Minute), nil, nil},
	} {
		set := &v1alpha1.PodCliqueSet{}
		set.Spec.WorkloadType = tc.workload
		set.Spec.Template.TerminationDelay = tc.set
		set.Spec.Template.PodCliqueScalingGroupConfigs = []v1alpha1.PodCliqueScalingGroupConfig{{Name: "g", TerminationDelay: tc.override}}
		if diff := cmp.Diff(tc.standalone, observed.TerminationDelay(set, "")); diff != "" {
			t.Errorf("%s: standalone (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.group, observed.TerminationDelay(set, "g")); diff != "" {
			t.Errorf("%s: group (-want +got):\n%s", name, diff)
		}
	}
}

func TestCliqueTerminationDelay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*time.Duration{"": nil, "4h0m0s": ptr.To(4 * time.Hour), "0s": ptr.To(time.Duration(0)), "soon": nil} {
		clique := &v1alpha1.PodClique{}
		clique.Annotations = map[string]string{v1alpha1.AnnotationTerminationDelay: text}
		if diff := cmp.Diff(want, observed.CliqueTerminationDelay(clique)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestBreachedSince: a breach counts as long as its condition is True.
func TestBreachedSince(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(time.Unix(1000, 0))
	for status, want := range map[metav1.ConditionStatus]time.Time{metav1.ConditionTrue: since.Time, metav1.ConditionFalse: {}, metav1.ConditionUnknown: {}} {
		conditions := []metav1.Condition{{Type: v1alpha1.ConditionMinAvailableBreached, Status: status}}
		if got := observed.BreachedSince(conditions, &since); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", status, got, want)
		}
	}
	if got := observed.BreachedSince(nil, &since); !got.IsZero() {
		t.Errorf("without a condition: %s", got)
	}
}

// TestIsUpdating: an update under OnDelete, which ends when it begins, does not count.
func TestIsUpdating(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Unix(1000, 0))
	for name, tc := range map[string]struct {
		clique *v1alpha1.PodCliqueUpdateProgress
		group  *v1alpha1.PodCliqueScalingGroupUpdateProgress
		want   bool
	}{
		"none":  {},
		"open":  {&v1alpha1.PodCliqueUpdateProgress{UpdateStartedAt: at}, &v1alpha1.PodCliqueScalingGroupUpdateProgress{UpdateStartedAt: at}, true},
		"ended": {&v1alpha1.PodCliqueUpdateProgress{UpdateStartedAt: at, UpdateEndedAt: &at}, &v1alpha1.PodCliqueScalingGroupUpdateProgress{UpdateStartedAt: at, UpdateEndedAt: &at}, false},
	} {
		clique, group := &v1alpha1.PodClique{}, &v1alpha1.PodCliqueScalingGroup{}
		clique.Status.UpdateProgress, group.Status.UpdateProgress = tc.clique, tc.group
		if observed.CliqueProgress(clique).Open() != tc.want || observed.IsGroupUpdating(group) != tc.want {
			t.Errorf("%s: not %v", name, tc.want)
		}
	}
}

// TestWithReady: ready pods are counted by owner; terminating pods and pods that ended do not count.
func TestWithReady(t *testing.T) {
	t.Parallel()
	pod := func(owner types.UID, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
		if change != nil {
			change(p)
		}
		return p
	}
	pods := []*corev1.Pod{pod("a", nil), pod("a", nil), pod("b", nil), {},
		pod("a", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)} }),
		pod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("a", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })}
	clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{UID: "a"}, Status: v1alpha1.PodCliqueStatus{ReadyReplicas: 7}}
	if got := observed.WithReady([]*v1alpha1.PodClique{clique}, pods)[0].Status.ReadyReplicas; got != 2 || clique.Status.ReadyReplicas != 7 {
		t.Errorf("%d ready, want 2; the PodClique itself has %d, want 7", got, clique.Status.ReadyReplicas)
	}
}

// TestFactsOfABreach: the facts include the attempts, the deadline and the effective delays.
func TestFactsOfABreach(t *testing.T) {
	t.Parallel()
	since, deadline := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	breached := []metav1.Condition{{Type: v1alpha1.ConditionMinAvailableBreached, Status: metav1.ConditionTrue}}
	c := podClique(0, "a")
	c.Annotations[v1alpha1.AnnotationPodCliqueSetAttempt] = "2"
	c.Status.Conditions, c.Status.MinAvailableBreachedSince = breached, &since
	if got := observed.Clique(c); got.Attempt != (lifecycle.Attempt{Set: 2}) || !got.BreachedSince.Equal(since.Time) {
		t.Errorf("PodClique: %+v", got)
	}
	g := &v1alpha1.PodCliqueScalingGroup{}
	g.Labels = map[string]string{v1alpha1.LabelPodCliqueSetReplicaIndex: "0", v1alpha1.LabelTemplateName: "g"}
	g.Status = v1alpha1.PodCliqueScalingGroupStatus{PodCliqueSetAttempt: 3, Conditions: breached, MinAvailableBreachedSince: &since, TerminationDeadline: &deadline}
	set := &v1alpha1.PodCliqueSet{}
	set.Spec.Replicas = 1
	set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Hour}
	set.Spec.Template.PodCliqueScalingGroupConfigs = []v1alpha1.PodCliqueScalingGroupConfig{{Name: "g", TerminationDelay: &metav1.Duration{Duration: time.Minute}}}
	set.Status.ReplicaAttempts = []v1alpha1.ReplicaAttempt{{Index: 0, Attempt: 3}}
	r := observed.SetReplicas(set, 1, nil, nil, []*v1alpha1.PodCliqueScalingGroup{g})[0]
	if got := r.Groups[0]; r.Attempt != 3 || *r.Delay != time.Hour || got.Attempt != 3 || *got.Delay != time.Minute ||
		!got.BreachedSince.Equal(since.Time) || !got.TerminationDeadline.Equal(deadline.Time) {
		t.Errorf("replica of the set: %+v", r)
	}
}
