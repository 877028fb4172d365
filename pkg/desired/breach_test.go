// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/observed"
)

// replicaOf returns a replica of a scaling group with one PodClique.
func replicaOf(index int, ready int32, observed bool) lifecycle.GroupReplica {
	return lifecycle.GroupReplica{Index: index, Members: []lifecycle.Clique{{MinAvailable: 1, Ready: ready, Observed: observed}}}
}

// TestScalingGroupBreach: the time of a scaling group's breach is recorded once, its deadline follows the current
// delay, it lasts while the state of a replica is unknown, and it ends.
func TestScalingGroupBreach(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(before.Add(d))) }
	group := &v1alpha1.PodCliqueScalingGroup{Spec: v1alpha1.PodCliqueScalingGroupSpec{Replicas: 2}}
	group.Status = ScalingGroupStatus(group, GroupFacts{Replicas: []lifecycle.GroupReplica{replicaOf(0, 1, true)}}, before)
	for _, step := range []struct {
		name            string
		after           time.Duration
		replicas        []lifecycle.GroupReplica
		delay           *time.Duration
		next            time.Time
		since, deadline *metav1.Time
	}{
		{"a single replica is due", 0, []lifecycle.GroupReplica{replicaOf(0, 1, true), replicaOf(1, 0, true)}, ptr.To(time.Hour), before.Add(time.Minute), nil, at(time.Minute)},
		{"a breach begins", 0, []lifecycle.GroupReplica{replicaOf(0, 0, true), replicaOf(1, 0, true)}, ptr.To(time.Hour), time.Time{}, at(0), at(time.Hour)},
		{"it lasts", time.Minute, []lifecycle.GroupReplica{replicaOf(0, 0, true)}, ptr.To(time.Hour), time.Time{}, at(0), at(time.Hour)},
		{"the delay is shortened", time.Minute, []lifecycle.GroupReplica{replicaOf(0, 0, true)}, ptr.To(30 * time.Minute), time.Time{}, at(0), at(30 * time.Minute)},
		{"the delay is removed", time.Minute, []lifecycle.GroupReplica{replicaOf(0, 0, true)}, nil, time.Time{}, at(0), nil},
		{"the delay is given again", 2 * time.Minute, []lifecycle.GroupReplica{replicaOf(0, 0, true)}, ptr.To(time.Hour), time.Time{}, at(0), at(time.Hour)},
		{"a replica is not known", 2 * time.Minute, []lifecycle.GroupReplica{replicaOf(0, 1, false)}, ptr.To(time.Hour), time.Time{}, at(0), at(time.Hour)},
		{"recovered", 3 * time.Minute, []lifecycle.GroupReplica{replicaOf(0, 1, true)}, ptr.To(time.Hour), time.Time{}, nil, nil},
		{"another breach, another timer", 4 * time.Minute, []lifecycle.GroupReplica{replicaOf(0, 0, true)}, ptr.To(time.Hour), time.Time{}, at(4 * time.Minute), at(64 * time.Minute)},
	} {
		group.Status = ScalingGroupStatus(group, GroupFacts{Replicas: step.replicas, Delay: step.delay, NextTermination: step.next}, metav1.NewTime(before.Add(step.after)))
		if diff := cmp.Diff(step.since, group.Status.MinAvailableBreachedSince); diff != "" {
			t.Errorf("%s: since (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(step.deadline, group.Status.TerminationDeadline); diff != "" {
			t.Errorf("%s: deadline (-want +got):\n%s", step.name, diff)
		}
		if meta.IsStatusConditionTrue(group.Status.Conditions, v1alpha1.ConditionMinAvailableBreached) != (step.since != nil) {
			t.Errorf("%s: condition %+v", step.name, group.Status.Conditions)
		}
	}
	// A new attempt of the set's replica ends the breach, although the state of the new PodCliques is still unknown.
	group.Annotations = map[string]string{v1alpha1.AnnotationPodCliqueSetAttempt: "1"}
	for _, replicas := range [][]lifecycle.GroupReplica{nil, {replicaOf(0, 0, false)}} {
		s := ScalingGroupStatus(group, GroupFacts{Replicas: replicas, Delay: ptr.To(time.Hour)}, now)
		if s.MinAvailableBreachedSince != nil || s.TerminationDeadline != nil || s.WasAvailable || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionMinAvailableBreached) {
			t.Errorf("in a new attempt: %+v", s)
		}
	}
}

// TestPodCliqueSetBreach: the status of the set contains its first breach, and the first termination that is due.
func TestPodCliqueSetBreach(t *testing.T) {
	t.Parallel()
	set := makePodCliqueSet("s", 2).Obj()
	replicas := []lifecycle.SetReplica{
		{Cliques: []lifecycle.Clique{{MinAvailable: 1, Observed: true, BreachedSince: now.Time}}},
		{Index: 1, Groups: []lifecycle.ScalingGroup{
			{BreachedSince: before.Time, Delay: ptr.To(time.Hour), TerminationDeadline: before.Add(time.Hour)},
			{Delay: nil, TerminationDeadline: before.Time}, // its status is outdated: the delay was removed
		}},
	}
	s := PodCliqueSetStatus(set, SetFacts{Replicas: replicas, NextTermination: now.Add(time.Hour)}, now)
	if want := metav1.NewTime(before.Add(time.Hour)); !s.MinAvailableBreachedSince.Equal(&before) || !s.TerminationDeadline.Equal(&want) {
		t.Errorf("breached since %s until %s, want %s and %s", s.MinAvailableBreachedSince, s.TerminationDeadline, before, want)
	}
	if s := PodCliqueSetStatus(set, SetFacts{}, now); s.MinAvailableBreachedSince != nil || s.TerminationDeadline != nil {
		t.Errorf("without a breach: %+v", s)
	}
}

// TestTerminationDelayIsKeptOnPodCliques: PodCliques have the effective delay in an annotation as long as there is
// one, so that their controller can show the deadline. Pods do not have it.
func TestTerminationDelayIsKeptOnPodCliques(t *testing.T) {
	t.Parallel()
	set := makePodCliqueSet("s", 1).Clique("a", 1).Clique("b", 1).Clique("c", 1).
		ScalingGroup("g", 0, 0, "b").ScalingGroup("h", 0, 0, "c").TerminationDelay(4 * time.Hour).Obj()
	set.Spec.Template.PodCliqueScalingGroupConfigs[0].TerminationDelay = &metav1.Duration{Duration: 90 * time.Second}
	live := apply(set, Children{})
	for name, want := range map[string]string{"s-0-a": "4h0m0s", "s-0-g-0-b": "1m30s", "s-0-h-0-c": "4h0m0s"} {
		clique := live.Cliques[name]
		if got := clique.Annotations[v1alpha1.AnnotationTerminationDelay]; got != want {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
		if pod, err := Pod(clique, lifecycle.NewPod{}, PodOptions{}); err != nil || pod.Annotations[v1alpha1.AnnotationTerminationDelay] != "" {
			t.Errorf("a pod of %s: %v, %v", name, pod.Annotations, err)
		}
	}
	hash := live.Cliques["s-0-a"].Labels[v1alpha1.LabelPodTemplateHash]
	set.Spec.Template.TerminationDelay = nil
	clique, differs := Updated(live.Cliques["s-0-a"], PodCliques(set, present(set, live), 0, live.Cliques, nil)[0])
	if _, has := clique.Annotations[v1alpha1.AnnotationTerminationDelay]; has || !differs || clique.Labels[v1alpha1.LabelPodTemplateHash] != hash {
		t.Errorf("the delay is removed: %v %v", clique.Annotations, clique.Labels)
	}
}

// TestCauseOfABreach: the cause in a PodClique's condition is passed to the decisions, and is also in the condition of
// its scaling group.
func TestCauseOfABreach(t *testing.T) {
	t.Parallel()
	clique := &v1alpha1.PodClique{Spec: v1alpha1.PodCliqueSpec{Replicas: 1}}
	clique.Status.WasAvailable = true
	for lost, want := range map[string]string{"n1": "node n1 does not answer", "": ""} {
		clique.Status = PodCliqueStatus(clique, CliqueFacts{Pods: []lifecycle.Pod{{Running: true, LostNode: lost}}}, now)
		member := observed.Clique(clique)
		if member.Cause != want || member.BreachedSince.IsZero() {
			t.Errorf("cause %q, since %s, want %q", member.Cause, member.BreachedSince, want)
		}
		group := &v1alpha1.PodCliqueScalingGroup{Spec: v1alpha1.PodCliqueScalingGroupSpec{Replicas: 1}}
		group.Status.WasAvailable = true
		group.Status = ScalingGroupStatus(group, GroupFacts{Replicas: []lifecycle.GroupReplica{{Members: []lifecycle.Clique{member}}}}, now)
		if got := observed.ScalingGroup(group); got.Cause != want || got.BreachedSince.IsZero() {
			t.Errorf("cause of the group %q, since %s, want %q", got.Cause, got.BreachedSince, want)
		}
	}
}
