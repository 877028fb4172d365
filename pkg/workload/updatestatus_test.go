// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// TestFollowedHashes: a set may return to a template: A, B, A. A status that once reported A must not do so if pods
// have left A.
func TestFollowedHashes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before       *string
		present      string
		current      bool
		want         *string
		wantTemplate *string
	}{
		"every pod follows":                                     {nil, "b", true, ptr.To("b"), ptr.To("tpl-b")},
		"every pod follows the next":                            {ptr.To("a"), "b", true, ptr.To("b"), ptr.To("tpl-b")},
		"some do not: the previous hash":                        {ptr.To("a"), "b", false, ptr.To("a"), ptr.To("tpl-a")},
		"the previous hash is back, and some pods have left it": {ptr.To("a"), "a", false, nil, nil},
		"there is no hash yet":                                  {ptr.To("a"), "", true, ptr.To("a"), ptr.To("tpl-a")},
	} {
		clique, group := &v1alpha1.PodClique{}, &v1alpha1.PodCliqueScalingGroup{}
		if tc.present != "" {
			clique.Annotations = map[string]string{v1alpha1.AnnotationGenerationHash: tc.present}
			clique.Labels = map[string]string{v1alpha1.LabelPodTemplateHash: "tpl-" + tc.present}
			group.Annotations = clique.Annotations
		}
		cliqueStatus := v1alpha1.PodCliqueStatus{CurrentPodCliqueSetGenerationHash: tc.before}
		if tc.before != nil {
			cliqueStatus.CurrentPodTemplateHash = ptr.To("tpl-" + *tc.before)
		}
		groupStatus := v1alpha1.PodCliqueScalingGroupStatus{CurrentPodCliqueSetGenerationHash: tc.before}
		d := lifecycle.UpdateDecision{Current: tc.current, Outdated: !tc.current}
		setCliqueUpdate(clique, &cliqueStatus, &lifecycle.CliqueUpdateDecision{UpdateDecision: d}, now)
		setGroupUpdate(group, &groupStatus, &lifecycle.GroupUpdateDecision{UpdateDecision: d, Known: true}, now)
		if got := cliqueStatus.CurrentPodCliqueSetGenerationHash; !ptr.Equal(got, tc.want) {
			t.Errorf("%s: the PodClique follows %q, want %q", name, ptr.Deref(got, ""), ptr.Deref(tc.want, ""))
		}
		if got := cliqueStatus.CurrentPodTemplateHash; !ptr.Equal(got, tc.wantTemplate) {
			t.Errorf("%s: the PodClique follows template %q, want %q", name, ptr.Deref(got, ""), ptr.Deref(tc.wantTemplate, ""))
		}
		if got := groupStatus.CurrentPodCliqueSetGenerationHash; !ptr.Equal(got, tc.want) {
			t.Errorf("%s: the scaling group follows %q, want %q", name, ptr.Deref(got, ""), ptr.Deref(tc.want, ""))
		}
	}
}

// TestBeginClaimsNothingOfTheRevisionBefore: the status at the beginning of an update must not contain the results of
// the previous one, which kubectl get would show for the new update.
func TestBeginClaimsNothingOfTheRevisionBefore(t *testing.T) {
	t.Parallel()
	complete := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUpdateComplete, ObservedGeneration: 1}
	begun := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUpdating,
		Message: "the template has changed", ObservedGeneration: 2, LastTransitionTime: now}
	for name, tc := range map[string]struct {
		strategy v1alpha1.UpdateStrategyType
		workload v1alpha1.WorkloadType
		first    bool
		updated  int32
		want     metav1.Condition
		state    string
	}{
		"an update":                     {updated: 0, want: begun, state: v1alpha1.ReasonUpdating},
		"under OnDelete":                {strategy: v1alpha1.OnDeleteStrategyType, updated: 0, want: complete, state: v1alpha1.ReasonOnDelete},
		"the first revision":            {first: true, updated: 2, want: complete},
		"Training, which does not roll": {workload: v1alpha1.WorkloadTypeTraining, updated: 2, want: complete},
	} {
		set := &v1alpha1.PodCliqueSet{}
		set.Generation = 2
		set.Spec.WorkloadType = tc.workload
		if tc.strategy != "" {
			set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: tc.strategy}
		}
		set.Status = v1alpha1.PodCliqueSetStatus{ObservedGeneration: 1, UpdatedReplicas: 2, Conditions: []metav1.Condition{complete}}
		if !tc.first {
			set.Status.CurrentGenerationHash = ptr.To("a")
		}
		got := BeginUpdate(set, &Revision{Hash: "b", Number: 2}, now)
		if got.UpdatedReplicas != tc.updated || got.ObservedGeneration != 1 {
			t.Errorf("%s: %d replicas updated of generation %d, want %d of 1", name, got.UpdatedReplicas, got.ObservedGeneration, tc.updated)
		}
		if diff := cmp.Diff([]metav1.Condition{tc.want}, got.Conditions); diff != "" {
			t.Errorf("%s: conditions (-want +got):\n%s", name, diff)
		}
		if p := got.UpdateProgress; p != nil && p.State != tc.state {
			t.Errorf("%s: state %q, want %q", name, p.State, tc.state)
		}
	}
}

// TestStateOfAnUpdate: a set has the condition Progressing from the beginning, and a state of its update, which kubectl
// get shows, from the first update on.
func TestStateOfAnUpdate(t *testing.T) {
	t.Parallel()
	edited, complete := &lifecycle.Progress{StartedAt: now.Time}, lifecycle.UpdateState{Reason: lifecycle.UpdateComplete}
	type state struct{ Condition, State string }
	for name, tc := range map[string]struct {
		before   *v1alpha1.PodCliqueSetUpdateProgress
		decision lifecycle.UpdateDecision
		want     state
	}{
		"a template that was never edited": {nil, lifecycle.UpdateDecision{State: complete}, state{"UpdateComplete", ""}},
		"an update in progress": {&v1alpha1.PodCliqueSetUpdateProgress{State: "Updating"},
			lifecycle.UpdateDecision{Progress: edited, State: lifecycle.UpdateState{Reason: lifecycle.UpdateWaitsForCapacity}},
			state{"WaitingForCapacity", "WaitingForCapacity"}},
		"a complete update": {&v1alpha1.PodCliqueSetUpdateProgress{State: "Updating"},
			lifecycle.UpdateDecision{Progress: edited, State: complete}, state{"UpdateComplete", "UpdateComplete"}},
		"nothing new is known": {&v1alpha1.PodCliqueSetUpdateProgress{State: "Updating"},
			lifecycle.UpdateDecision{Progress: edited}, state{"Previous", "Updating"}},
		"nothing is known yet": {&v1alpha1.PodCliqueSetUpdateProgress{},
			lifecycle.UpdateDecision{Progress: edited}, state{"Previous", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := v1alpha1.PodCliqueSetStatus{UpdateProgress: tc.before, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Reason: "Previous"}}}
			setSetUpdate(&v1alpha1.PodCliqueSet{}, &s, &lifecycle.SetUpdateDecision{UpdateDecision: tc.decision}, now)
			got := state{Condition: s.Conditions[0].Reason}
			if s.UpdateProgress != nil {
				got.State = s.UpdateProgress.State
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodCliqueSetStatusChange: only what an update waits for, and which objects follow it, may be written later.
func TestPodCliqueSetStatusChange(t *testing.T) {
	t.Parallel()
	status := func(change func(*v1alpha1.PodCliqueSetStatus)) *v1alpha1.PodCliqueSetStatus {
		s := &v1alpha1.PodCliqueSetStatus{ObservedGeneration: 2, Replicas: 3, AvailableReplicas: 3,
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "Updating", Message: "updating replica 2"}},
			UpdateProgress: &v1alpha1.PodCliqueSetUpdateProgress{State: "Updating", ReachedIndices: "2", TotalPodCliquesCount: 3,
				CurrentlyUpdating: &v1alpha1.PodCliqueSetReplicaUpdateProgress{ReplicaIndex: 2}}}
		change(s)
		return s
	}
	says := func(status metav1.ConditionStatus, reason, message string) func(*v1alpha1.PodCliqueSetStatus) {
		return func(s *v1alpha1.PodCliqueSetStatus) {
			c := &s.Conditions[0]
			c.Status, c.Reason, c.Message = status, reason, message
		}
	}
	lacks := func(what string) func(*v1alpha1.PodCliqueSetStatus) {
		return func(s *v1alpha1.PodCliqueSetStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse,
				Message: "2 of 3 replicas are available; replica 2 lacks " + what})
		}
	}
	nothing := func(*v1alpha1.PodCliqueSetStatus) {}
	for name, tc := range map[string]struct {
		before, after func(*v1alpha1.PodCliqueSetStatus)
		urgent        bool
	}{
		"another cause why a replica is not available": {lacks("a: pod x is not ready: c"), lacks("a: pod y is not ready: d"), false},
		"another clique is not available":              {lacks("a: pod x is not ready: c"), lacks("b: pod x is not ready: c"), true},
		"another message":                              {nothing, says(metav1.ConditionTrue, "Updating", "updating replica 2: PodClique a"), false},
		"another reason":                               {nothing, says(metav1.ConditionTrue, "WaitingForDeletion", "updating replica 2: PodClique a"), false},
		"another number that follows": {nothing, func(s *v1alpha1.PodCliqueSetStatus) {
			s.UpdateProgress.UpdatedPodCliquesCount, s.UpdateProgress.UpdatedPodCliques = 1, []string{"a"}
			s.UpdateProgress.LastProgressTime = &metav1.Time{Time: time.Unix(1, 0)}
		}, false},
		"another state, with its reason": {nothing, func(s *v1alpha1.PodCliqueSetStatus) {
			says(metav1.ConditionTrue, "WaitingForDeletion", "updating replica 2: PodClique a")(s)
			s.UpdateProgress.State = "WaitingForDeletion"
		}, false},
		"a state that is not a wait": {nothing, func(s *v1alpha1.PodCliqueSetStatus) { s.UpdateProgress.State = "UpdateStalled" }, true},
		"complete":                   {nothing, says(metav1.ConditionFalse, "UpdateComplete", "every replica"), true},
		"paused":                     {nothing, says(metav1.ConditionFalse, "UpdatePaused", "the update is paused"), true},
		"stalled":                    {nothing, says(metav1.ConditionTrue, "UpdateStalled", "no progress"), true},
		"goes on":                    {says(metav1.ConditionTrue, "UpdateStalled", "no progress"), nothing, true},
		"rejected":                   {nothing, says(metav1.ConditionTrue, "TemplateRejected", "no"), true},
		"rejected otherwise":         {says(metav1.ConditionTrue, "TemplateRejected", "no"), says(metav1.ConditionTrue, "TemplateRejected", "not so"), true},
		"another replica":            {nothing, func(s *v1alpha1.PodCliqueSetStatus) { s.UpdateProgress.CurrentlyUpdating.ReplicaIndex = 1 }, true},
		"reached another":            {nothing, func(s *v1alpha1.PodCliqueSetStatus) { s.UpdateProgress.ReachedIndices = "1-2" }, true},
		"a number":                   {nothing, func(s *v1alpha1.PodCliqueSetStatus) { s.AvailableReplicas = 2 }, true},
		"observed":                   {nothing, func(s *v1alpha1.PodCliqueSetStatus) { s.ObservedGeneration = 3 }, true},
		"ended":                      {nothing, func(s *v1alpha1.PodCliqueSetStatus) { s.UpdateProgress = nil }, true},
	} {
		change, differs := PodCliqueSetStatusChange(status(tc.before), status(tc.after))
		if !differs || change.Urgent != tc.urgent || !change.Settling {
			t.Errorf("%s: differs: %v, %+v", name, differs, change)
		}
	}
	if _, differs := PodCliqueSetStatusChange(status(nothing), status(nothing)); differs {
		t.Error("the same status differs")
	}
}
