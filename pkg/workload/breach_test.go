// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
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
	group.Status = groupStatus(group, GroupStatusFacts{Replicas: []lifecycle.GroupReplica{replicaOf(0, 1, true)}}, before)
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
		group.Status = groupStatus(group, GroupStatusFacts{Replicas: step.replicas, NextTermination: step.next}, metav1.NewTime(before.Add(step.after)), step.delay)
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
		s := groupStatus(group, GroupStatusFacts{Replicas: replicas}, now, ptr.To(time.Hour))
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
	s := PodCliqueSetStatus(set, SetStatusFacts{Replicas: replicas, NextTermination: now.Add(time.Hour)}, now)
	if want := metav1.NewTime(before.Add(time.Hour)); !s.MinAvailableBreachedSince.Equal(&before) || !s.TerminationDeadline.Equal(&want) {
		t.Errorf("breached since %s until %s, want %s and %s", s.MinAvailableBreachedSince, s.TerminationDeadline, before, want)
	}
	if s := PodCliqueSetStatus(set, SetStatusFacts{}, now); s.MinAvailableBreachedSince != nil || s.TerminationDeadline != nil {
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
		clique.Status = cliqueStatus(clique, CliqueStatusFacts{Pods: []lifecycle.Pod{{Running: true, LostNode: lost}}}, now)
		member := CliqueFacts(clique)
		if member.Cause != want || member.BreachedSince.IsZero() {
			t.Errorf("cause %q, since %s, want %q", member.Cause, member.BreachedSince, want)
		}
		group := &v1alpha1.PodCliqueScalingGroup{Spec: v1alpha1.PodCliqueScalingGroupSpec{Replicas: 1}}
		group.Status.WasAvailable = true
		group.Status = groupStatus(group, GroupStatusFacts{Replicas: []lifecycle.GroupReplica{{Members: []lifecycle.Clique{member}}}}, now)
		if got := ScalingGroupFacts(group); got.Cause != want || got.BreachedSince.IsZero() {
			t.Errorf("cause of the group %q, since %s, want %q", got.Cause, got.BreachedSince, want)
		}
	}
}

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
		"a group's own, longer":            {"", duration(time.Minute), duration(time.Hour), ptr.To(time.Minute), ptr.To(time.Hour)},
		"replicas of Training restart":     {v1alpha1.WorkloadTypeTraining, duration(time.Hour), duration(time.Minute), nil, nil},
		"none that admission lets through": {"", duration(0), duration(-time.Minute), nil, nil},
	} {
		set := &v1alpha1.PodCliqueSet{}
		set.Spec.WorkloadType = tc.workload
		set.Spec.Template.TerminationDelay = tc.set
		set.Spec.Template.PodCliqueScalingGroupConfigs = []v1alpha1.PodCliqueScalingGroupConfig{{Name: "g", TerminationDelay: tc.override}}
		if diff := cmp.Diff(tc.standalone, TerminationDelay(set, "")); diff != "" {
			t.Errorf("%s: standalone (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.group, TerminationDelay(set, "g")); diff != "" {
			t.Errorf("%s: group (-want +got):\n%s", name, diff)
		}
	}
}

func TestCliqueTerminationDelay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*time.Duration{"": nil, "4h0m0s": ptr.To(4 * time.Hour), "0s": ptr.To(time.Duration(0)), "soon": nil} {
		clique := &v1alpha1.PodClique{}
		clique.Annotations = map[string]string{v1alpha1.AnnotationTerminationDelay: text}
		if diff := cmp.Diff(want, CliqueTerminationDelay(clique)); diff != "" {
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
		if got := BreachedSince(conditions, &since); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", status, got, want)
		}
	}
	if got := BreachedSince(nil, &since); !got.IsZero() {
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
		if CliqueProgress(clique).Open() != tc.want || IsGroupUpdating(group) != tc.want {
			t.Errorf("%s: not %v", name, tc.want)
		}
	}
}

// isGone reports whether a node is the one that does not respond.
func isGone(node string) bool { return node == "gone" }

// TestWithReady: ready pods are counted by owner; terminating pods, pods that ended and those of nodes that do not
// respond do not count, unless nothing is known about them.
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
		pod("a", func(p *corev1.Pod) { p.Spec.NodeName = "gone" }),
		pod("a", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })}
	clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{UID: "a"}, Status: v1alpha1.PodCliqueStatus{ReadyReplicas: 7}}
	grace := time.Minute
	for want, u := range map[int32]lifecycle.Unknowns{2: {Grace: new(time.Duration)}, 3: {Grace: &grace}} {
		marked := func(pods []lifecycle.Pod) []lifecycle.Pod { m, _ := u.Mark(pods, time.Unix(2000, 0)); return m }
		if got := WithReady([]*v1alpha1.PodClique{clique}, pods, isGone, marked)[0].Status.ReadyReplicas; got != want || clique.Status.ReadyReplicas != 7 {
			t.Errorf("%d ready, want %d; the PodClique itself has %d, want 7", got, want, clique.Status.ReadyReplicas)
		}
	}
}

// TestFactsOfABreach: the facts include the attempts, the deadline and the effective delays.
func TestFactsOfABreach(t *testing.T) {
	t.Parallel()
	since, deadline := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	breached := []metav1.Condition{{Type: v1alpha1.ConditionMinAvailableBreached, Status: metav1.ConditionTrue}}
	c := namedPodClique(0, "a")
	c.Annotations[v1alpha1.AnnotationPodCliqueSetAttempt] = "2"
	c.Status.Conditions, c.Status.MinAvailableBreachedSince = breached, &since
	if got := CliqueFacts(c); got.Attempt != (lifecycle.Attempt{Set: 2}) || !got.BreachedSince.Equal(since.Time) {
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
	r := SetReplicasFacts(set, 1, nil, nil, []*v1alpha1.PodCliqueScalingGroup{g})[0]
	if got := r.Groups[0]; r.Attempt != 3 || *r.Delay != time.Hour || got.Attempt != 3 || *got.Delay != time.Minute ||
		!got.BreachedSince.Equal(since.Time) || !got.TerminationDeadline.Equal(deadline.Time) {
		t.Errorf("replica of the set: %+v", r)
	}
}
