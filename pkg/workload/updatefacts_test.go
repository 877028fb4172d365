// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// sameIndices compares sets of indices by their texts.
var sameIndices = cmp.Comparer(func(a, b lifecycle.IndexSet) bool { return a.String() == b.String() })

// TestWithCounts: counts of the pods replace those in the status, also for whether all pods follow: a pod that ended
// does not count as outdated.
func TestWithCounts(t *testing.T) {
	t.Parallel()
	pod := func(template string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelPodTemplateHash: template},
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID("a"), Controller: ptr.To(true)}}}, Status: corev1.PodStatus{Phase: phase}}
	}
	for name, tc := range map[string]struct {
		pods          []*corev1.Pod
		count, update int32
		followed      string
	}{
		"all follow":                 {[]*corev1.Pod{pod("b", corev1.PodRunning), pod("b", corev1.PodRunning)}, 2, 2, "gen-b"},
		"all follow, one has ended":  {[]*corev1.Pod{pod("b", corev1.PodRunning), pod("b", corev1.PodFailed)}, 2, 1, "gen-b"},
		"one does not":               {[]*corev1.Pod{pod("b", corev1.PodRunning), pod("a", corev1.PodRunning)}, 2, 1, ""},
		"one does not and has ended": {[]*corev1.Pod{pod("b", corev1.PodRunning), pod("a", corev1.PodFailed)}, 2, 1, ""},
	} {
		clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{UID: "a", Generation: 3,
			Labels: map[string]string{v1alpha1.LabelPodTemplateHash: "b"}, Annotations: map[string]string{v1alpha1.AnnotationGenerationHash: "gen-b", v1alpha1.AnnotationRevision: "2"}},
			Status: v1alpha1.PodCliqueStatus{CurrentPodCliqueSetGenerationHash: ptr.To("gen-b"), Replicas: 7}}
		known := func(pods []lifecycle.Pod) []lifecycle.Pod { return pods }
		got := CliqueFacts(WithCounts([]*v1alpha1.PodClique{clique}, tc.pods, isGone, known)[0])
		if got.Pods != tc.count || got.Updated != tc.update || got.Followed != tc.followed || !got.Observed || got.Revision != 2 {
			t.Errorf("%s: %+v", name, got)
		}
		if clique.Status.Replicas != 7 || ptr.Deref(clique.Status.CurrentPodCliqueSetGenerationHash, "") != "gen-b" {
			t.Errorf("%s: the PodClique that was given was changed: %+v", name, clique.Status)
		}
	}
}

// A status may not say yet that nodes do not answer on which the minimum may run.
func TestWithCountsMarksSilence(t *testing.T) {
	t.Parallel()
	silent := func(pods []lifecycle.Pod) []lifecycle.Pod {
		for i := range pods {
			pods[i].Silence = lifecycle.Silence{Reason: lifecycle.NodesDoNotAnswer, Text: "node n does not answer"}
		}
		return pods
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "a", Controller: ptr.To(true)}}}}
	for minimum, want := range map[int32]lifecycle.BreachReason{1: lifecycle.NodesDoNotAnswer, 2: ""} {
		clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{UID: "a"}, Spec: v1alpha1.PodCliqueSpec{Replicas: 2, MinAvailable: &minimum},
			Status: v1alpha1.PodCliqueStatus{MinAvailable: &minimum}}
		if got := CliqueFacts(WithCounts([]*v1alpha1.PodClique{clique}, []*corev1.Pod{pod}, isGone, silent)[0]).Silence; got.Reason != want {
			t.Errorf("minimum %d: %+v", minimum, got)
		}
	}
}

// TestScaledOut: at which indices a PodClique is scaled out, of those that are created.
func TestScaledOut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settled      string
		minAvailable *int32
		replicas     int32
		created      []int
		want         []int
	}{
		"it was never complete":                    {"", nil, 3, []int{0, 1, 2}, nil},
		"it has a minimum, and was never complete": {"", ptr.To(int32(1)), 3, []int{0, 1, 2}, nil},
		"scaled out from zero":                     {"", ptr.To(int32(0)), 3, []int{0, 1, 2}, []int{0, 1, 2}},
		"scaled out":                               {"0-2", nil, 5, []int{3, 4}, []int{3, 4}},
		"one is lost, and it is scaled out":        {"0-2", nil, 5, []int{1, 3, 4}, []int{3, 4}},
		"some are lost":                            {"0-2", nil, 3, []int{0, 2}, nil},
		"a lost one comes back at a lower index":   {"0-1,3", nil, 3, []int{2}, nil},
		"scaled out into a gap":                    {"0-1,3", nil, 4, []int{2}, []int{2}},
	} {
		clique := &v1alpha1.PodClique{Spec: v1alpha1.PodCliqueSpec{Replicas: tc.replicas},
			Status: v1alpha1.PodCliqueStatus{SettledIndices: tc.settled, MinAvailable: tc.minAvailable}}
		if diff := cmp.Diff(tc.want, scaledOut(clique, tc.created), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAwaitsNewest: whether a new unit of an object of replica 1, which follows revision a, waits to be told revision
// b.
func TestAwaitsNewest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reached     string
		paused      bool
		partition   int32
		ended       bool
		rejected    bool
		isScaledOut bool
		told        string
		want        bool
	}{
		"the update has reached it":                                     {reached: "1", told: "a", want: true},
		"it is told":                                                    {reached: "1", told: "b"},
		"the update has not reached it":                                 {told: "a"},
		"the update has not reached it: scaled out":                     {told: "a", isScaledOut: true, want: true},
		"the update has not reached it: scaled out, and told":           {told: "b", isScaledOut: true},
		"the update has not reached it: scaled out while it is paused":  {told: "a", isScaledOut: true, paused: true},
		"the update has not reached it: scaled out below the partition": {told: "a", isScaledOut: true, partition: 2},
		"scaled out at the partition":                                   {told: "a", isScaledOut: true, partition: 1, want: true},
		"the revision is rejected":                                      {told: "a", isScaledOut: true, rejected: true},
		"no update":                                                     {told: "a", ended: true, want: true},
	} {
		set := &v1alpha1.PodCliqueSet{}
		set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{RollingRecreate: &v1alpha1.RollingRecreateUpdateStrategy{Paused: tc.paused, Partition: &tc.partition}}
		set.Status.CurrentGenerationHash = ptr.To("b")
		set.Status.UpdateProgress = &v1alpha1.PodCliqueSetUpdateProgress{ReachedIndices: tc.reached}
		if tc.ended {
			set.Status.UpdateProgress.UpdateEndedAt = &metav1.Time{Time: time.Unix(1, 0)}
		}
		if tc.rejected {
			set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Reason: v1alpha1.ReasonTemplateRejected}}
		}
		clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelPodCliqueSetReplicaIndex: "1"},
			Annotations: map[string]string{v1alpha1.AnnotationGenerationHash: tc.told}}}
		if got := AwaitsNewest(set, clique, tc.isScaledOut); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAnnotationsOfAnUpdate(t *testing.T) {
	t.Parallel()
	type facts struct {
		Revision       int64
		Hash           string
		Turn, OnDelete bool
	}
	const revision, hash, turn, strategy = v1alpha1.AnnotationRevision, v1alpha1.AnnotationGenerationHash, v1alpha1.AnnotationUpdateTurn, v1alpha1.AnnotationUpdateStrategy
	type annotations = map[string]string
	for name, tc := range map[string]struct {
		annotations annotations
		want        facts
	}{
		"nothing":                             {nil, facts{}},
		"a revision":                          {annotations{revision: "7", hash: "gen-b"}, facts{Revision: 7, Hash: "gen-b"}},
		"no number":                           {annotations{revision: "seven"}, facts{}},
		"below zero":                          {annotations{revision: "-1"}, facts{}},
		"above all numbers":                   {annotations{revision: "9223372036854775808"}, facts{}},
		"its turn":                            {annotations{revision: "7", turn: "7"}, facts{Revision: 7, Turn: true}},
		"its turn in the previous update":     {annotations{revision: "7", turn: "6"}, facts{Revision: 7}},
		"a turn of nothing":                   {annotations{turn: ""}, facts{}},
		"OnDelete":                            {annotations{strategy: "OnDelete"}, facts{OnDelete: true}},
		"RollingRecreate":                     {annotations{strategy: "RollingRecreate"}, facts{}},
		"under OnDelete no object has a turn": {annotations{revision: "7", turn: "7", strategy: "OnDelete"}, facts{Revision: 7, OnDelete: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &metav1.ObjectMeta{Annotations: tc.annotations}
			got := facts{RevisionNumber(o), GenerationHash(o), HasTurn(o), FollowsOnDelete(o)}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	began, last, ended := metav1.NewTime(t0), metav1.NewTime(t0.Add(time.Minute)), metav1.NewTime(t0.Add(time.Hour))
	clique := func(p *v1alpha1.PodCliqueUpdateProgress) *lifecycle.Progress {
		return CliqueProgress(&v1alpha1.PodClique{Status: v1alpha1.PodCliqueStatus{UpdateProgress: p}})
	}
	group := func(p *v1alpha1.PodCliqueScalingGroupUpdateProgress) *lifecycle.Progress {
		return GroupProgress(&v1alpha1.PodCliqueScalingGroup{Status: v1alpha1.PodCliqueScalingGroupStatus{UpdateProgress: p}})
	}
	set := func(p *v1alpha1.PodCliqueSetUpdateProgress) *lifecycle.Progress {
		return SetProgress(&v1alpha1.PodCliqueSet{Status: v1alpha1.PodCliqueSetStatus{CurrentGenerationHash: ptr.To("gen-b"), UpdateProgress: p}})
	}
	for name, tc := range map[string]struct{ got, want *lifecycle.Progress }{
		"a PodClique that was never updated": {clique(nil), nil},
		"one of which nothing is selected": {clique(&v1alpha1.PodCliqueUpdateProgress{UpdateStartedAt: began, PodCliqueSetGenerationHash: "gen-b", PodTemplateHash: "b"}),
			&lifecycle.Progress{Target: lifecycle.Target{Generation: "gen-b", Template: "b"}, StartedAt: t0}},
		"one with a pod that is replaced": {clique(&v1alpha1.PodCliqueUpdateProgress{UpdateStartedAt: began, LastProgressTime: &last, UpdateEndedAt: &ended,
			ReadyPodsSelectedToUpdate: &v1alpha1.PodsSelectedToUpdate{Current: "p-1", Completed: []string{"p-0"}}}),
			&lifecycle.Progress{StartedAt: t0, LastProgress: last.Time, EndedAt: ended.Time, Selected: "p-1", Completed: []string{"p-0"}}},
		"a scaling group that was never updated": {group(nil), nil},
		"one with nothing selected": {group(&v1alpha1.PodCliqueScalingGroupUpdateProgress{UpdateStartedAt: began, PodCliqueSetGenerationHash: "gen-b"}),
			&lifecycle.Progress{Target: lifecycle.Target{Generation: "gen-b"}, StartedAt: t0}},
		"replica 0 is replaced": {group(&v1alpha1.PodCliqueScalingGroupUpdateProgress{UpdateStartedAt: began, LastProgressTime: &last, UpdateEndedAt: &ended,
			ReadyReplicaIndicesSelectedToUpdate: &v1alpha1.ReplicaIndicesSelectedToUpdate{Current: ptr.To(int32(0)), Completed: []int32{2, 10}}}),
			&lifecycle.Progress{StartedAt: t0, LastProgress: last.Time, EndedAt: ended.Time, Selected: "0", Completed: []string{"2", "10"}}},
		"a set that was never updated": {set(nil), nil},
		"a set":                        {set(&v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: began}), &lifecycle.Progress{Target: lifecycle.Target{Generation: "gen-b"}, StartedAt: t0}},
		"a set whose update is over": {set(&v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: began, LastProgressTime: &last, UpdateEndedAt: &ended}),
			&lifecycle.Progress{Target: lifecycle.Target{Generation: "gen-b"}, StartedAt: t0, LastProgress: last.Time, EndedAt: ended.Time}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.got, sameIndices); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsCurrentlyUpdating(t *testing.T) {
	t.Parallel()
	current, now := &v1alpha1.PodCliqueSetReplicaUpdateProgress{ReplicaIndex: 1}, metav1.NewTime(t0)
	for name, tc := range map[string]struct {
		progress *v1alpha1.PodCliqueSetUpdateProgress
		want     [2]bool // replicas 0 and 1
	}{
		"no update":          {nil, [2]bool{}},
		"none is selected":   {&v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: now}, [2]bool{}},
		"replica 1":          {&v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: now, CurrentlyUpdating: current}, [2]bool{false, true}},
		"replica 0":          {&v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: now, CurrentlyUpdating: &v1alpha1.PodCliqueSetReplicaUpdateProgress{}}, [2]bool{true, false}},
		"the update is over": {&v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: now, UpdateEndedAt: &now, CurrentlyUpdating: current}, [2]bool{}},
	} {
		set := &v1alpha1.PodCliqueSet{Status: v1alpha1.PodCliqueSetStatus{UpdateProgress: tc.progress}}
		if got := [2]bool{IsCurrentlyUpdating(set, 0), IsCurrentlyUpdating(set, 1)}; got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestSetUpdate(t *testing.T) {
	t.Parallel()
	says := func(reason, text string) []metav1.Condition {
		return []metav1.Condition{{Type: "Other", Reason: "Other"}, {Type: v1alpha1.ConditionProgressing, Reason: reason, Message: text}}
	}
	replicas := []lifecycle.SetReplica{{Index: 0}, {Index: 1}}
	cliques := []*v1alpha1.PodClique{
		{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: v1alpha1.PodCliqueStatus{Conditions: says("WaitingForReadiness", "pod web-0 is not ready")}},
		{ObjectMeta: metav1.ObjectMeta{Name: "silent"}}}
	groups := []*v1alpha1.PodCliqueScalingGroup{
		{ObjectMeta: metav1.ObjectMeta{Name: "model"}, Status: v1alpha1.PodCliqueScalingGroupStatus{Conditions: says("UpdateStalled", "no progress")}}}
	waits := map[string]lifecycle.UpdateState{"web": {Reason: lifecycle.UpdateWaitsForReadiness, Message: "pod web-0 is not ready"},
		"silent": {}, "model": {Reason: lifecycle.UpdateStalled, Message: "no progress"}}
	began := metav1.NewTime(t0)
	for name, tc := range map[string]struct {
		set  v1alpha1.PodCliqueSet
		want lifecycle.SetUpdate
	}{
		"a set without a revision": {v1alpha1.PodCliqueSet{}, lifecycle.SetUpdate{Replicas: replicas, Waits: waits}},
		"under OnDelete": {
			v1alpha1.PodCliqueSet{Spec: v1alpha1.PodCliqueSetSpec{UpdateStrategy: &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}},
				Status: v1alpha1.PodCliqueSetStatus{CurrentGenerationHash: ptr.To("gen-b")}},
			lifecycle.SetUpdate{Update: lifecycle.Update{Target: lifecycle.Target{Generation: "gen-b"}, OnDelete: true}, Replicas: replicas, Waits: waits}},
		"an update of replica 1": {
			v1alpha1.PodCliqueSet{Status: v1alpha1.PodCliqueSetStatus{CurrentGenerationHash: ptr.To("gen-b"), UpdateProgress: &v1alpha1.PodCliqueSetUpdateProgress{
				UpdateStartedAt: began, UpdatedPodCliquesCount: 3, UpdatedPodCliqueScalingGroupsCount: 4,
				ReachedIndices: "1-2", CurrentlyUpdating: &v1alpha1.PodCliqueSetReplicaUpdateProgress{ReplicaIndex: 1, UpdateStartedAt: began}}}},
			lifecycle.SetUpdate{Update: lifecycle.Update{Target: lifecycle.Target{Generation: "gen-b"}, Progress: &lifecycle.Progress{
				Target: lifecycle.Target{Generation: "gen-b"}, StartedAt: t0, Reached: lifecycle.Indices(1, 2), Selected: "1", SelectedAt: t0}},
				Updated: 7, Replicas: replicas, Waits: waits}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, SetUpdateFacts(&tc.set, replicas, cliques, groups), sameIndices); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFollowedHash: which revision the units of an object follow that is told revision b with number 2.
func TestFollowedHash(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(t0)
	for name, tc := range map[string]struct {
		followed, turn, target string
		ended                  bool
		want                   string
	}{
		"told before its turn":                     {followed: "a", want: "a"},
		"told before its turn, and updated before": {followed: "a", target: "a", ended: true, want: "a"},
		"in its turn":                              {followed: "a", turn: "2", want: "b"},
		"being updated":                            {followed: "a", target: "b", want: "b"},
		"updated under OnDelete":                   {followed: "a", target: "b", ended: true, want: "b"},
		"all follow":                               {followed: "b", want: "b"},
		"new":                                      {want: "b"},
	} {
		annotations := map[string]string{v1alpha1.AnnotationGenerationHash: "b", v1alpha1.AnnotationRevision: "2", v1alpha1.AnnotationUpdateTurn: tc.turn}
		clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		group := &v1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		if tc.followed != "" {
			clique.Status.CurrentPodCliqueSetGenerationHash, group.Status.CurrentPodCliqueSetGenerationHash = &tc.followed, &tc.followed
		}
		if tc.target != "" {
			clique.Status.UpdateProgress = &v1alpha1.PodCliqueUpdateProgress{PodCliqueSetGenerationHash: tc.target}
			group.Status.UpdateProgress = &v1alpha1.PodCliqueScalingGroupUpdateProgress{PodCliqueSetGenerationHash: tc.target}
			if tc.ended {
				clique.Status.UpdateProgress.UpdateEndedAt, group.Status.UpdateProgress.UpdateEndedAt = &now, &now
			}
		}
		if got := [2]string{FollowedHash(clique), FollowedHash(group)}; got != [2]string{tc.want, tc.want} {
			t.Errorf("%s: got %v, want %s", name, got, tc.want)
		}
	}
}

// TestScaledOutFromZero: pods of a PodClique that is scaled out from zero are known to be scaled out, whatever its
// status says next.
func TestScaledOutFromZero(t *testing.T) {
	t.Parallel()
	clique := &v1alpha1.PodClique{Spec: v1alpha1.PodCliqueSpec{Replicas: 3, MinAvailable: ptr.To(int32(1))},
		Status: v1alpha1.PodCliqueStatus{ObservedGeneration: 1, MinAvailable: ptr.To(int32(0))}}
	for _, step := range []struct {
		pods, want []int
		settled    string
	}{
		{nil, []int{0, 1, 2}, "none"},
		{nil, []int{0, 1, 2}, "none"},
		{[]int{1}, []int{0, 2}, "1"},
		{[]int{0, 1, 2}, nil, "0-2"},
		{nil, nil, "0-2"},
	} {
		var pods []lifecycle.Pod
		for _, i := range step.pods {
			pods = append(pods, lifecycle.Pod{Index: i})
		}
		clique.Status = PodCliqueStatus(clique, CliqueStatusFacts{Pods: pods}, metav1.NewTime(t0))
		if got := scaledOut(clique, []int{0, 1, 2}); clique.Status.SettledIndices != step.settled || cmp.Diff(step.want, got, cmpopts.EquateEmpty()) != "" {
			t.Fatalf("pods %v: settled %q, scaled out %v, want %+v", step.pods, clique.Status.SettledIndices, got, step)
		}
	}
}
