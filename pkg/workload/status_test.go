// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/test/wrappers"
)

// conditionText returns conditions as text, one per line.
var (
	before = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	now    = metav1.NewTime(time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC))
)

func conditionText(conditions []metav1.Condition) []string {
	var lines []string
	for _, c := range conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return lines
}

func somePods(ready, pending, terminating, ended int) []lifecycle.Pod {
	var pods []lifecycle.Pod
	for range ready {
		pods = append(pods, lifecycle.Pod{Scheduled: true, Running: true, Ready: true})
	}
	for range pending {
		pods = append(pods, lifecycle.Pod{Gated: true})
	}
	for range terminating {
		pods = append(pods, lifecycle.Pod{Scheduled: true, Running: true, Ready: true, Terminating: true})
	}
	for range ended {
		pods = append(pods, lifecycle.Pod{Scheduled: true, Ended: true})
	}
	return pods
}

// cliqueStatus returns the status of a PodClique with the breach that follows from the facts.
func cliqueStatus(clique *v1alpha1.PodClique, f CliqueStatusFacts, now metav1.Time) v1alpha1.PodCliqueStatus {
	if f.Training != nil {
		f.Breach = f.Training.Breach
	} else {
		needed := Minimum(clique).Effective(lifecycle.Count(f.Pods).Ready, f.Leaf)
		f.Breach = lifecycle.JudgePods(CliqueAvailabilityFacts(clique, f.Pods, needed, f.Update), now.Time)
	}
	return PodCliqueStatus(clique, f, now)
}

// groupStatus returns the status of a scaling group with the breach that follows from the facts, given at most one
// termination delay.
func groupStatus(group *v1alpha1.PodCliqueScalingGroup, f GroupStatusFacts, now metav1.Time, delays ...*time.Duration) v1alpha1.PodCliqueScalingGroupStatus {
	wanted := slices.DeleteFunc(slices.Clone(f.Replicas), func(r lifecycle.GroupReplica) bool { return r.Index >= int(group.Spec.Replicas) })
	var delay *time.Duration
	for _, d := range delays {
		delay = d
	}
	f.Breach = lifecycle.JudgeReplicas(GroupAvailabilityFacts(group, wanted, delay, f.Update, f.Failed), now.Time)
	return ScalingGroupStatus(group, f, now)
}

func TestPodCliqueStatus(t *testing.T) {
	t.Parallel()
	selector := ptr.To("app.kubernetes.io/managed-by=grove-operator,grove.io/podclique=s-0-a")
	for name, tc := range map[string]struct {
		spec   v1alpha1.PodCliqueSpec
		status v1alpha1.PodCliqueStatus
		facts  CliqueStatusFacts
		want   v1alpha1.PodCliqueStatus
		told   []string
	}{
		"waiting": {
			spec:  v1alpha1.PodCliqueSpec{Replicas: 4},
			facts: CliqueStatusFacts{Pods: somePods(0, 4, 0, 0)},
			want: v1alpha1.PodCliqueStatus{Replicas: 4, ScheduleGatedReplicas: 4, UpdatedReplicas: 4, MinAvailable: ptr.To[int32](4),
				CurrentPodTemplateHash: ptr.To("h")},
			told: []string{
				"Available=False InsufficientReadyPods: 0 pods are ready, 4 needed",
				"PodCliqueScheduled=False InsufficientScheduledPods: 0 pods are bound to nodes, 4 needed",
				"MinAvailableBreached=False NeverAvailable: 0 pods are ready, 4 needed; there never were as many in this attempt"},
		},
		"available; what terminates or has ended does not count": {
			spec:  v1alpha1.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](1)},
			facts: CliqueStatusFacts{Pods: somePods(1, 1, 1, 1), Leaf: 1},
			want: v1alpha1.PodCliqueStatus{Replicas: 3, ReadyReplicas: 1, AvailableReplicas: 1, ScheduledReplicas: 1, ScheduleGatedReplicas: 1, UpdatedReplicas: 2,
				MinAvailable: ptr.To[int32](1), WasAvailable: true, CurrentPodTemplateHash: ptr.To("h")},
			told: []string{
				"Available=True SufficientReadyPods: 1 pod is ready, 1 needed",
				"PodCliqueScheduled=True SufficientScheduledPods: 1 pod is bound to nodes, 1 needed",
				"MinAvailableBreached=False SufficientReadyPods: 1 pod is ready, 1 needed"},
		},
		"once available, and below the minimum: what terminates or has ended does not count": {
			spec:   v1alpha1.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To[int32](2)},
			status: v1alpha1.PodCliqueStatus{WasAvailable: true, MinAvailable: ptr.To[int32](2)},
			facts:  CliqueStatusFacts{Pods: somePods(1, 0, 1, 1), Leaf: 2},
			want: v1alpha1.PodCliqueStatus{Replicas: 2, ReadyReplicas: 1, AvailableReplicas: 1, ScheduledReplicas: 1, UpdatedReplicas: 1, MinAvailable: ptr.To[int32](2),
				WasAvailable: true, CurrentPodTemplateHash: ptr.To("h"), MinAvailableBreachedSince: &now, TerminationDeadline: ptr.To(metav1.NewTime(now.Add(90 * time.Second)))},
			told: []string{
				"Available=False InsufficientReadyPods: 1 pod is ready, 2 needed",
				"PodCliqueScheduled=False InsufficientScheduledPods: 1 pod is bound to nodes, 2 needed",
				"MinAvailableBreached=True InsufficientReadyPods: 1 pod is ready, 2 needed, since 2026-03-01T12:05:00Z; termination is due at 2026-03-01T12:06:30Z"},
		},
		"scaled to zero, once available: a later start is a new one": {
			spec:   v1alpha1.PodCliqueSpec{},
			status: v1alpha1.PodCliqueStatus{WasAvailable: true, MinAvailable: ptr.To[int32](4)},
			facts:  CliqueStatusFacts{},
			want:   v1alpha1.PodCliqueStatus{MinAvailable: ptr.To[int32](0), CurrentPodTemplateHash: ptr.To("h")},
			told: []string{
				"Available=True ScaledToZero: no pods are wanted",
				"PodCliqueScheduled=True SufficientScheduledPods: no pods are wanted",
				"MinAvailableBreached=False SufficientReadyPods: nothing is needed"},
		},
		"a quota in the way": {
			spec: v1alpha1.PodCliqueSpec{Replicas: 1},
			facts: CliqueStatusFacts{Problems: []Problem{
				{v1alpha1.ConditionReplicaFailure, v1alpha1.ReasonCreateRefused, "pod s-0-a-0-x: exceeded quota"},
				{v1alpha1.ConditionReplicaFailure, v1alpha1.ReasonCreateRefused, "and another"}}},
			want: v1alpha1.PodCliqueStatus{MinAvailable: ptr.To[int32](1), CurrentPodTemplateHash: ptr.To("h"),
				LastErrors: []v1alpha1.LastError{{Code: "CreateRefused", Description: "pod s-0-a-0-x: exceeded quota", ObservedAt: now},
					{Code: "CreateRefused", Description: "and another", ObservedAt: now}}},
			told: []string{
				"Available=False InsufficientReadyPods: 0 pods are ready, 1 needed",
				"PodCliqueScheduled=False InsufficientScheduledPods: 0 pods are bound to nodes, 1 needed",
				"MinAvailableBreached=False NeverAvailable: 0 pods are ready, 1 needed; there never were as many in this attempt",
				"ReplicaFailure=True CreateRefused: pod s-0-a-0-x: exceeded quota"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clique := &v1alpha1.PodClique{
				ObjectMeta: metav1.ObjectMeta{Name: "s-0-a", Generation: 7, Labels: map[string]string{v1alpha1.LabelPodTemplateHash: "h"},
					Annotations: map[string]string{v1alpha1.AnnotationTerminationDelay: "1m30s"}},
				Spec: tc.spec, Status: tc.status,
			}
			got := cliqueStatus(clique, tc.facts, now)
			if diff := cmp.Diff(tc.told, conditionText(got.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			tc.want.ObservedGeneration, tc.want.Selector = 7, selector
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(v1alpha1.PodCliqueStatus{}, "Conditions")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// Once written, nothing is to be written, whatever the time.
			clique.Status = got
			later := metav1.NewTime(now.Add(1e12))
			if diff := cmp.Diff(got, cliqueStatus(clique, tc.facts, later)); diff != "" {
				t.Errorf("changes by itself:\n%s", diff)
			}
		})
	}
}

func TestProblemsClear(t *testing.T) {
	t.Parallel()
	clique := &v1alpha1.PodClique{Spec: v1alpha1.PodCliqueSpec{Replicas: 1}}
	old := Problem{v1alpha1.ConditionForeignObject, v1alpha1.ReasonNameTaken, "pod x has another owner"}
	clique.Status = cliqueStatus(clique, CliqueStatusFacts{Problems: []Problem{old}}, before)
	fresh := Problem{"", "SomethingElse", "and more"}
	clique.Status = cliqueStatus(clique, CliqueStatusFacts{Problems: []Problem{fresh, old}}, now)
	want := []v1alpha1.LastError{{Code: "SomethingElse", Description: "and more", ObservedAt: now}, {Code: "NameTaken", Description: "pod x has another owner", ObservedAt: before}}
	if diff := cmp.Diff(want, clique.Status.LastErrors); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	clique.Status = cliqueStatus(clique, CliqueStatusFacts{}, now)
	if len(clique.Status.LastErrors) > 0 || meta.FindStatusCondition(clique.Status.Conditions, v1alpha1.ConditionForeignObject) != nil {
		t.Errorf("does not clear: %+v", clique.Status)
	}
	var many []Problem
	for n := range 40 {
		many = append(many, Problem{"", "Error", fmt.Sprint(n)})
	}
	if got := len(cliqueStatus(clique, CliqueStatusFacts{Problems: many}, now).LastErrors); got != 16 {
		t.Errorf("%d errors are kept, the CRD allows 16", got)
	}
}

func TestScalingGroupStatus(t *testing.T) {
	t.Parallel()
	replica := func(index int, scheduled, ready int32) lifecycle.GroupReplica {
		return lifecycle.GroupReplica{Index: index, Members: []lifecycle.Clique{
			{Replicas: 2, MinAvailable: 2, Scheduled: scheduled, Ready: ready, Updated: ready, Observed: true}}}
	}
	group := &v1alpha1.PodCliqueScalingGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "s-0-g", Generation: 3},
		Spec:       v1alpha1.PodCliqueScalingGroupSpec{Replicas: 3, MinAvailable: ptr.To[int32](2)},
	}
	got := groupStatus(group, GroupStatusFacts{Replicas: []lifecycle.GroupReplica{replica(0, 2, 2), replica(1, 2, 1), replica(3, 2, 2)}}, now)
	want := v1alpha1.PodCliqueScalingGroupStatus{
		ObservedGeneration: 3, Replicas: 3, ScheduledReplicas: 2, AvailableReplicas: 1, UpdatedReplicas: 1,
		MinAvailable: ptr.To[int32](2),
		Selector:     ptr.To("app.kubernetes.io/managed-by=grove-operator,grove.io/podcliquescalinggroup=s-0-g"),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(want, "Conditions")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Available=False InsufficientAvailablePodCliqueScalingGroupReplicas: 1 of 3 replicas are available, 2 needed",
		"MinAvailableBreached=False NeverAvailable: 1 of 3 replicas available, 2 needed; there never were as many in this attempt"}, conditionText(got.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	group.Status = got
	group.Status = groupStatus(group, GroupStatusFacts{Replicas: []lifecycle.GroupReplica{replica(0, 2, 2), replica(1, 2, 2)}}, now)
	if diff := cmp.Diff([]string{"Available=True SufficientAvailablePodCliqueScalingGroupReplicas: 2 of 3 replicas are available, 2 needed",
		"MinAvailableBreached=False SufficientAvailablePodCliqueScalingGroupReplicas: 2 of 3 replicas available, 2 needed"}, conditionText(group.Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if !group.Status.WasAvailable {
		t.Error("wasAvailable is not set")
	}
	below := GroupStatusFacts{Replicas: []lifecycle.GroupReplica{replica(0, 2, 2)}}
	if since := groupStatus(group, below, now).MinAvailableBreachedSince; since == nil {
		t.Error("a breach has no beginning")
	}
	breached := group.DeepCopy()
	breached.Status, below.Failed = groupStatus(group, below, now), true
	if breached.Status = groupStatus(breached, below, now); breached.Status.MinAvailableBreachedSince != nil {
		t.Errorf("the group of a workload that has failed is in breach since %v", breached.Status.MinAvailableBreachedSince)
	}
	if diff := cmp.Diff(breached.Status, groupStatus(breached, below, metav1.NewTime(now.Add(time.Hour)))); diff != "" {
		t.Errorf("an hour later (-before +after):\n%s", diff)
	}
	group.Spec.MinAvailable = nil
	if got := *groupStatus(group, GroupStatusFacts{}, now).MinAvailable; got != 1 {
		t.Errorf("minAvailable = %d where none is given, want 1", got)
	}
	group.Spec.Replicas = 0
	zero := groupStatus(group, GroupStatusFacts{}, now)
	if diff := cmp.Diff([]string{"Available=True ScaledToZero: no replicas are wanted",
		"MinAvailableBreached=False SufficientAvailablePodCliqueScalingGroupReplicas: nothing is needed"}, conditionText(zero.Conditions)); diff != "" || zero.WasAvailable {
		t.Errorf("scaled to zero (-want +got):\n%s", diff)
	}
}

func TestPodCliqueSetStatus(t *testing.T) {
	t.Parallel()
	replica := func(index int, ready int32, missing ...string) lifecycle.SetReplica {
		return lifecycle.SetReplica{Index: index, Missing: missing,
			Cliques: []lifecycle.Clique{{Name: fmt.Sprintf("s-%d-a", index), Replicas: 2, MinAvailable: 2, Scheduled: 2, Ready: ready, Updated: 2, Observed: true}},
			Groups:  []lifecycle.ScalingGroup{{Name: fmt.Sprintf("s-%d-g", index), Replicas: 1, MinAvailable: 1, ScheduledReplicas: 1, AvailableReplicas: 1, UpdatedReplicas: 1, Observed: true}}}
	}
	leaving := func(r lifecycle.SetReplica) lifecycle.SetReplica {
		r.Cliques[0].Terminating = true
		return r
	}
	troubled := func(r lifecycle.SetReplica) lifecycle.SetReplica {
		r.Trouble = fmt.Sprintf("PodCliqueScalingGroup s-%d-g: the name is taken", r.Index)
		return r
	}
	preempted := func(r lifecycle.SetReplica, by string, whole bool) lifecycle.SetReplica {
		r.Preempted = lifecycle.Preemption{Text: "preempted by " + by, Whole: whole}
		return r
	}
	for name, tc := range map[string]struct {
		replicas int32
		facts    SetStatusFacts
		want     v1alpha1.PodCliqueSetStatus
		told     string
	}{
		"two were preempted, and one of them is available again": {2,
			SetStatusFacts{Running: true, Replicas: []lifecycle.SetReplica{preempted(replica(0, 2), "ml/a", true), preempted(replica(1, 1), "ml/b", true)}},
			v1alpha1.PodCliqueSetStatus{Replicas: 2, ScheduledReplicas: 2, AvailableReplicas: 1, UpdatedReplicas: 2, Phase: "Running"},
			"Available=False ReplicasUnavailable: 1 of 2 replicas are available; replica 1 was preempted by ml/b; replica 1 lacks s-1-a"},
		"pods above the minimum of two were preempted, and one of them lacks more": {2,
			SetStatusFacts{Running: true, Replicas: []lifecycle.SetReplica{preempted(replica(0, 2), "ml/a", false), preempted(replica(1, 1), "ml/b", false)}},
			v1alpha1.PodCliqueSetStatus{Replicas: 2, ScheduledReplicas: 2, AvailableReplicas: 1, UpdatedReplicas: 2, Phase: "Running"},
			"Available=False ReplicasUnavailable: 1 of 2 replicas are available; replica 0 was preempted by ml/a; replica 1 was preempted by ml/b; replica 1 lacks s-1-a"},
		"pods above the minimum were preempted": {1,
			SetStatusFacts{Running: true, Replicas: []lifecycle.SetReplica{preempted(replica(0, 2), "ml/a", false)}},
			v1alpha1.PodCliqueSetStatus{Replicas: 1, ScheduledReplicas: 1, AvailableReplicas: 1, UpdatedReplicas: 1, Phase: "Running"},
			"Available=True AllReplicasAvailable: 1 of 1 replica is available; replica 0 was preempted by ml/a"},
		"one of three is ready, one not made yet": {3,
			SetStatusFacts{Running: true, Replicas: []lifecycle.SetReplica{replica(0, 2), replica(1, 1), replica(2, 2, "b")}},
			v1alpha1.PodCliqueSetStatus{Replicas: 3, ScheduledReplicas: 2, AvailableReplicas: 1, UpdatedReplicas: 2, Phase: "Running"},
			"Available=False ReplicasUnavailable: 1 of 3 replicas are available; replica 1 lacks s-1-a"},
		"not made yet": {1,
			SetStatusFacts{Replicas: []lifecycle.SetReplica{{Missing: []string{"a", "g"}}}},
			v1alpha1.PodCliqueSetStatus{Replicas: 1, Phase: "Pending"},
			"Available=False ReplicasUnavailable: 0 of 1 replica is available; replica 0 lacks a"},
		"for another scheduler": {1,
			SetStatusFacts{Replicas: []lifecycle.SetReplica{{Missing: []string{"a", "g"}}}, SchedulerName: "ours"},
			v1alpha1.PodCliqueSetStatus{Replicas: 1, Phase: "Pending"},
			"Available=False ReplicasUnavailable: 0 of 1 replica is available; the minimum of replica 0 is not bound: its pods are left to another, and their events say why"},
		"all of them": {2,
			SetStatusFacts{Running: true, Replicas: []lifecycle.SetReplica{replica(0, 2), replica(1, 2)}},
			v1alpha1.PodCliqueSetStatus{Replicas: 2, ScheduledReplicas: 2, AvailableReplicas: 2, UpdatedReplicas: 2, Phase: "Running"},
			"Available=True AllReplicasAvailable: 2 of 2 replicas are available"},
		"a clique is being deleted: its pods are bound still, as the PodGroup says": {1,
			SetStatusFacts{Running: true, Replicas: []lifecycle.SetReplica{leaving(replica(0, 2))}},
			v1alpha1.PodCliqueSetStatus{Replicas: 1, Phase: "Running"},
			"Available=False ReplicasUnavailable: 0 of 1 replica is available; replica 0 lacks s-0-a, which is being deleted"},
		"an object cannot be created": {1,
			SetStatusFacts{Replicas: []lifecycle.SetReplica{{Missing: []string{"a", "g"}, Trouble: "PodClique s-0-g-0-b: creating pod 0: no quota"}}},
			v1alpha1.PodCliqueSetStatus{Replicas: 1, Phase: "Pending"},
			"Available=False ReplicasUnavailable: 0 of 1 replica is available; replica 0 lacks a: PodClique s-0-g-0-b: creating pod 0: no quota"},
		"available, but an object above the minimum cannot be created": {2,
			SetStatusFacts{Running: true, Replicas: []lifecycle.SetReplica{replica(0, 2), troubled(replica(1, 2))}},
			v1alpha1.PodCliqueSetStatus{Replicas: 2, ScheduledReplicas: 2, AvailableReplicas: 2, UpdatedReplicas: 2, Phase: "Running"},
			"Available=True AllReplicasAvailable: 2 of 2 replicas are available; in replica 1, PodCliqueScalingGroup s-1-g: the name is taken"},
		"another replica than the first unavailable one has trouble": {2,
			SetStatusFacts{Running: true, Replicas: []lifecycle.SetReplica{replica(0, 1), troubled(replica(1, 2))}},
			v1alpha1.PodCliqueSetStatus{Replicas: 2, ScheduledReplicas: 2, AvailableReplicas: 1, UpdatedReplicas: 2, Phase: "Running"},
			"Available=False ReplicasUnavailable: 1 of 2 replicas are available; replica 0 lacks s-0-a; in replica 1, PodCliqueScalingGroup s-1-g: the name is taken"},
		"no replicas desired": {0, SetStatusFacts{}, v1alpha1.PodCliqueSetStatus{Phase: "Pending"}, "Available=True ScaledToZero: no replicas are wanted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := makePodCliqueSet("s", tc.replicas).Clique("a", 2, func(c *v1alpha1.PodCliqueTemplateSpec) {
				if tc.facts.SchedulerName != "" {
					c.Spec.PodSpec.SchedulerName = "another"
				}
			}).Obj()
			set.Status.RecordedReplicas = []v1alpha1.RecordedReplicas{{Name: "before", Indices: "0", Replicas: 1}}
			tc.facts.Recorded = []v1alpha1.RecordedReplicas{{Name: "now", Indices: "0", Replicas: 1}}
			got := PodCliqueSetStatus(set, tc.facts, now)
			tc.want.ObservedGeneration, tc.want.RecordedReplicas = 2, tc.facts.Recorded
			tc.want.Selector = ptr.To("app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=s")
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(tc.want, "Conditions")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{tc.told}, conditionText(got.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNewPreemptions: an event is due for each replica that the condition begins to name, once.
func TestNewPreemptions(t *testing.T) {
	t.Parallel()
	replicas := make([]lifecycle.SetReplica, 5)
	for i := range replicas {
		replicas[i] = lifecycle.SetReplica{Index: i, Missing: []string{"a"}}
	}
	set := makePodCliqueSet("s", 5).Clique("a", 1).Obj()
	observe := func(preempted ...int) []string {
		for _, i := range preempted {
			replicas[i].Preempted = lifecycle.Preemption{Text: fmt.Sprintf("preempted by ml/urgent-%d", i), Whole: i%2 == 0}
		}
		after := PodCliqueSetStatus(set, SetStatusFacts{Replicas: replicas}, now)
		told := NewPreemptions(&set.Status, &after, replicas)
		set.Status = after
		return told
	}
	clause := func(i int) string {
		return fmt.Sprintf("replica %d was preempted by ml/urgent-%d", i, i)
	}
	for _, step := range []struct {
		preempted []int
		want      []string
	}{{nil, nil}, {[]int{1}, []string{clause(1)}}, {nil, nil}, {[]int{0, 2}, []string{clause(0), clause(2)}}, {[]int{3, 4}, nil}} {
		if diff := cmp.Diff(step.want, observe(step.preempted...), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("replicas %v are preempted (-want +got):\n%s", step.preempted, diff)
		}
	}
}

func TestPreemptionOf(t *testing.T) {
	t.Parallel()
	const text = "preempted at 2026-03-01 10:31:35 UTC by ml/urgent (priority 1000 over 100): all 8 pods, because its minimum ends as a whole or not at all"
	wholly := lifecycle.Preemption{Text: text, Whole: true}
	whole := metav1.Condition{Type: v2alpha2.ConditionPreempted, Status: metav1.ConditionTrue, Reason: string(v2alpha2.ReasonGangPreempted), Message: text}
	for name, tc := range map[string]struct {
		edit func(*metav1.Condition)
		want lifecycle.Preemption
	}{
		"the whole gang": {func(*metav1.Condition) {}, wholly},
		"surplus that waits for room": {func(c *metav1.Condition) {
			c.Reason = string(v2alpha2.ReasonSurplusPreempted)
			c.Message = "preempted at 2026-03-01 10:31:35 UTC by ml/urgent (priority 1000 over 100): 4 pods above its minimum; pods of it wait for room"
		}, lifecycle.Preemption{Text: "preempted at 2026-03-01 10:31:35 UTC by ml/urgent (priority 1000 over 100): 4 pods above its minimum"}},
		"another condition":    {func(c *metav1.Condition) { c.Type = v2alpha2.ConditionPreempting }, lifecycle.Preemption{}},
		"it is not True":       {func(c *metav1.Condition) { c.Status = metav1.ConditionFalse }, lifecycle.Preemption{}},
		"no preemptor in it":   {func(c *metav1.Condition) { c.Message = "preempted" }, lifecycle.Preemption{}},
		"written by whom ever": {func(c *metav1.Condition) { c.Message = strings.Repeat("\x1b]0;", 8000) + text + "\n\r" }, wholly},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group, c := &v2alpha2.PodGroup{}, whole
			tc.edit(&c)
			group.Status.Conditions = []metav1.Condition{c}
			if got := PreemptionOf(group); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestRecordedReplicas(t *testing.T) {
	t.Parallel()
	clique := func(indices string, replicas, initial int32) v1alpha1.RecordedReplicas {
		return v1alpha1.RecordedReplicas{Name: "a", Indices: indices, Replicas: replicas, InitialReplicas: &initial}
	}
	group := func(indices string, replicas int32) v1alpha1.RecordedReplicas {
		return v1alpha1.RecordedReplicas{Name: "g", Indices: indices, Replicas: replicas}
	}
	for name, tc := range map[string]struct {
		before []v1alpha1.RecordedReplicas
		change func(Children)
		want   []v1alpha1.RecordedReplicas
	}{
		"no object was scaled": {},
		"scaled objects, by name, with their initial size": {
			change: func(c Children) { c.Groups["s-1-g"].Spec.Replicas, c.Cliques["s-0-a"].Spec.Replicas = 5, 0 },
			want:   []v1alpha1.RecordedReplicas{clique("0", 0, 3), group("1", 5)},
		},
		"scaled alike in two replicas of the set: one entry": {
			change: func(c Children) { c.Cliques["s-1-a"].Spec.Replicas, c.Cliques["s-0-a"].Spec.Replicas = 5, 5 },
			want:   []v1alpha1.RecordedReplicas{clique("0-1", 5, 3)},
		},
		"scaled again": {
			before: []v1alpha1.RecordedReplicas{clique("0", 7, 3)},
			change: func(c Children) { c.Cliques["s-0-a"].Spec.Replicas = 8 },
			want:   []v1alpha1.RecordedReplicas{clique("0", 8, 3)},
		},
		"scaled back": {before: []v1alpha1.RecordedReplicas{clique("0", 7, 3)}},
		"deleted: it keeps its replicas": {
			before: []v1alpha1.RecordedReplicas{clique("0", 7, 2), group("0", 4)},
			change: func(c Children) { delete(c.Cliques, "s-0-a"); delete(c.Groups, "s-0-g") },
			want:   []v1alpha1.RecordedReplicas{clique("0", 7, 2), group("0", 4)},
		},
		"deleted, and not scaled before":         {change: func(c Children) { delete(c.Cliques, "s-0-a") }},
		"of a replica that is no longer desired": {before: []v1alpha1.RecordedReplicas{clique("2", 7, 3)}},
		"a member of a scaling group has the group's": {
			change: func(c Children) { c.Cliques["s-0-g-0-b"].Spec.Replicas = 9 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := makePodCliqueSet("s", 2).Clique("a", 3).Clique("b", 1).ScalingGroup("g", 2, 0, "b").Obj()
			live := apply(set, Children{})
			if tc.change != nil {
				tc.change(live)
			}
			set.Status.RecordedReplicas = tc.before
			if diff := cmp.Diff(tc.want, RecordedReplicas(set, live)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The scheduler leaves the PodGroup of pods of another scheduler alone, unless it is the default one.
func TestWhyTheMinimumOfAReplicaIsNotBound(t *testing.T) {
	t.Parallel()
	satisfied := func(is metav1.ConditionStatus, reason v2alpha2.Reason, text string) []metav1.Condition {
		return []metav1.Condition{{Type: v2alpha2.ConditionAdmitted, Status: "False", Reason: "x", Message: "y"}, {Type: v2alpha2.ConditionSatisfied, Status: is, Reason: string(reason), Message: text}}
	}
	refused := satisfied("False", v2alpha2.ReasonNodesUnavailable, "1 node (n; 8 free) cordoned: uncordon it; the gang needs 8")
	for name, tc := range map[string]struct {
		scheduler string
		says      []metav1.Condition
		want      string
	}{
		"the first clause":           {"", refused, "NodesUnavailable: 1 node (n; 8 free) cordoned: uncordon it (PodGroup s-0)"},
		"ours":                       {"ours", refused, "NodesUnavailable: 1 node (n; 8 free) cordoned: uncordon it (PodGroup s-0)"},
		"the default of Kubernetes":  {corev1.DefaultSchedulerName, refused, "NodesUnavailable: 1 node (n; 8 free) cordoned: uncordon it (PodGroup s-0)"},
		"the default of Grove":       {v1alpha1.DefaultSchedulerName, refused, "NodesUnavailable: 1 node (n; 8 free) cordoned: uncordon it (PodGroup s-0)"},
		"of another scheduler":       {"another", refused, "its pods are left to another, and their events say why"},
		"no status yet":              {"", nil, ""},
		"a status before the loss":   {"", satisfied("True", v2alpha2.ReasonSatisfied, "the minimum of 2 pods is bound"), ""},
		"a text of a single clause":  {"", satisfied("False", v2alpha2.ReasonGated, "needs 2 pods"), "Gated: needs 2 pods (PodGroup s-0)"},
		"a text that is much longer": {"", satisfied("False", v2alpha2.ReasonInvalid, strings.Repeat("a", 1024)), "Invalid: " + strings.Repeat("a", 1014) + "… (PodGroup s-0)"},
	} {
		set := wrappers.MakePodCliqueSet("s", "ns").Clique("a", 1).Obj()
		set.Spec.Template.Cliques[0].Spec.PodSpec.SchedulerName = tc.scheduler
		group := &v2alpha2.PodGroup{Status: v2alpha2.PodGroupStatus{Conditions: tc.says}}
		if got := describeUnbound(set, &lifecycle.SetReplica{Unbound: UnboundCause(group)}, "ours"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
