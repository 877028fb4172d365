// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/test/wrappers"
)

func TestCompletedStaysWhenPodsAreCleanedUp(t *testing.T) {
	group := wrappers.MakePodGroup("eval", "ml").MinMember(2).Generation(3).Obj()
	built, err := Tree(&group.Spec)
	if err != nil {
		t.Fatal(err)
	}
	ended := gang.Counts{"": 2}
	facts := Facts{Namespace: "ml", Name: "eval", Group: group, Tree: built, Created: ended, Usable: ended, Bound: ended, Admitted: true, Pods: 2, Ended: true}
	group.Status = Status(facts, now)
	if group.Status.Phase != v2alpha2.PodGroupCompleted {
		t.Fatalf("phase %s, want Completed", group.Status.Phase)
	}

	half := gang.Counts{"": 1}
	one := Facts{Namespace: "ml", Name: "eval", Group: group, Tree: built, Created: half, Usable: half, Bound: half, Admitted: true, Pods: 1, Ended: true}
	if diff := cmp.Diff(group.Status, Status(one, metav1.NewTime(now.Add(60e9)))); diff != "" {
		t.Errorf("status of a completed PodGroup of which a pod is left (-before +after):\n%s", diff)
	}

	gone := Facts{Namespace: "ml", Name: "eval", Group: group, Tree: built, Created: gang.Counts{}, Usable: gang.Counts{}, Bound: gang.Counts{}}
	if diff := cmp.Diff(group.Status, Status(gone, metav1.NewTime(now.Add(60e9)))); diff != "" {
		t.Errorf("status of a completed PodGroup whose pods are gone (-before +after):\n%s", diff)
	}

	again := gone
	again.Pods, again.Created = 1, gang.Counts{"": 1}
	if s := Status(again, now); s.Phase != v2alpha2.PodGroupWaiting {
		t.Errorf("phase %s when the next run begins, want Waiting", s.Phase)
	}
}

// The condition Satisfied of a completed gang tells since when it has been completed, although its status was True
// before. The time is kept while the pods are cleaned up.
func TestCompletionHasATime(t *testing.T) {
	group := wrappers.MakePodGroup("eval", "ml").MinMember(2).Generation(3).Obj()
	built, err := Tree(&group.Spec)
	if err != nil {
		t.Fatal(err)
	}
	both := gang.Counts{"": 2}
	facts := Facts{Namespace: "ml", Name: "eval", Group: group, Tree: built, Created: both, Usable: both, Bound: both, Admitted: true, Pods: 2}
	for i, step := range []struct {
		ended bool
		want  time.Duration
	}{{false, 0}, {false, 0}, {true, 2 * time.Hour}, {true, 2 * time.Hour}} {
		facts.Ended = step.ended
		group.Status = Status(facts, metav1.NewTime(now.Add(time.Duration(i)*time.Hour)))
		if got := meta.FindStatusCondition(group.Status.Conditions, v2alpha2.ConditionSatisfied).LastTransitionTime.Sub(now.Time); got != step.want {
			t.Errorf("after %d hours the condition has lasted since %s, want %s", i, got, step.want)
		}
	}
}

func TestFailedSinceCompletion(t *testing.T) {
	completedAt := func(at time.Time) *v2alpha2.PodGroupStatus {
		return &v2alpha2.PodGroupStatus{Conditions: []metav1.Condition{{
			Type: v2alpha2.ConditionSatisfied, Status: metav1.ConditionTrue, Reason: string(v2alpha2.ReasonCompleted), LastTransitionTime: metav1.NewTime(at)}}}
	}
	pod := func(name string, created time.Time) *corev1.Pod {
		return wrappers.MakePod(name, "ml").CreationTimestamp(created).Phase(corev1.PodFailed).Obj()
	}
	satisfied := completedAt(now.Time)
	satisfied.Conditions[0].Reason = string(v2alpha2.ReasonSatisfied)
	for name, tc := range map[string]struct {
		failed []*corev1.Pod
		status *v2alpha2.PodGroupStatus
		want   bool
	}{
		"no pod failed":                                  {nil, completedAt(now.Time), false},
		"a pod of the run that completed":                {[]*corev1.Pod{pod("a", now.Add(-time.Second))}, completedAt(now.Time), false},
		"one created in the second of the completion":    {[]*corev1.Pod{pod("a", now.Time)}, completedAt(now.Time), false},
		"a pod of the next run":                          {[]*corev1.Pod{pod("a", now.Add(time.Second))}, completedAt(now.Time), true},
		"pods of both":                                   {[]*corev1.Pod{pod("b", now.Add(time.Second)), pod("a", now.Add(-time.Second))}, completedAt(now.Time), true},
		"the gang has not completed":                     {[]*corev1.Pod{pod("a", now.Add(time.Second))}, satisfied, false},
		"the gang has no status":                         {[]*corev1.Pod{pod("a", now.Add(time.Second))}, &v2alpha2.PodGroupStatus{}, false},
		"the time of the completion is missing, as if 0": {[]*corev1.Pod{pod("a", now.Time)}, completedAt(time.Time{}), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FailedSinceCompletion(tc.failed, tc.status); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// All remaining pods have succeeded, but they are too few: another pod failed, and may be created again.
func TestSucceededPodsBelowTheMinimumAreNoCompletion(t *testing.T) {
	group := wrappers.MakePodGroup("eval", "ml").MinMember(2).Generation(3).Obj()
	built, err := Tree(&group.Spec)
	if err != nil {
		t.Fatal(err)
	}
	one := gang.Counts{"": 1}
	facts := Facts{Namespace: "ml", Name: "eval", Group: group, Tree: built, Created: one, Usable: one, Bound: one, Admitted: true, Pods: 1, Ended: true}
	if s := Status(facts, now); s.Phase != v2alpha2.PodGroupDegraded || s.Reason != v2alpha2.ReasonWaitingForPods {
		t.Errorf("phase %s for %s, want Degraded for WaitingForPods", s.Phase, s.Reason)
	}
}
