// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/test/wrappers"
)

// trainingClique returns the PodClique of a clique in replica 0 of the job, of an attempt.
func trainingClique(name, attempt string, edits ...func(*v1alpha1.PodClique)) *v1alpha1.PodClique {
	c := wrappers.MakePodClique("job", 0, name, "ns").Annotation(v1alpha1.AnnotationWorkloadType, "Training").
		Annotation(v1alpha1.AnnotationPodCliqueSetAttempt, attempt).Annotation(v1alpha1.AnnotationTerminationDelay, "1h0m0s").Obj()
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func condition(kind string, message string) func(*v1alpha1.PodClique) {
	return func(c *v1alpha1.PodClique) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Message: message})
	}
}

func TestTrainingReplica(t *testing.T) {
	t.Parallel()
	set := wrappers.MakePodCliqueSet("job", "ns").Training().TerminationDelay(time.Hour).
		Clique("a", 1).Clique("b", 1).ScalingGroup("ring", 0, 0, "b").
		Status(func(s *v1alpha1.PodCliqueSetStatus) { s.ReplicaAttempts = []v1alpha1.ReplicaAttempt{{Attempt: 2}} }).Obj()
	set.Spec.Template.PodCliqueScalingGroupConfigs[0].TerminationDelay = &metav1.Duration{Duration: time.Minute}
	since := metav1.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	broken := func(c *v1alpha1.PodClique) {
		c.Status.MinAvailableBreachedSince = &since
		c.Labels = map[string]string{v1alpha1.LabelTemplateName: "b"}
	}
	for name, tc := range map[string]struct {
		complete bool
		cliques  []*v1alpha1.PodClique
		want     bool // complete
	}{
		"both are there":             {true, []*v1alpha1.PodClique{trainingClique("b", "2"), trainingClique("a", "2")}, true},
		"one is missing":             {true, []*v1alpha1.PodClique{trainingClique("a", "2")}, false},
		"a scaling group is missing": {false, []*v1alpha1.PodClique{trainingClique("b", "2"), trainingClique("a", "2")}, false},
		"a superfluous one exists":   {true, []*v1alpha1.PodClique{trainingClique("x", "2"), trainingClique("a", "2")}, false},
	} {
		if got := TrainingReplica(set, 0, []string{"job-0-a", "job-0-b"}, tc.complete, tc.cliques); got.Complete != tc.want || got.Attempt != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	r := TrainingReplica(set, 0, []string{"job-0-a", "job-0-b"}, true, []*v1alpha1.PodClique{
		trainingClique("b", "2", condition(v1alpha1.ConditionMinAvailableBreached, "why"), broken),
		trainingClique("a", "1", condition(v1alpha1.ConditionSucceeded, ""))})
	a, b := r.Cliques[0], r.Cliques[1]
	if !a.Succeeded || a.Attempt.Set != 1 || b.Succeeded || b.Message != "why" || !b.BreachedSince.Equal(since.Time) || b.Delay != time.Minute || a.Delay != time.Hour {
		t.Errorf("%+v", r.Cliques)
	}
}

func TestTraining(t *testing.T) {
	t.Parallel()
	pod := func(phase corev1.PodPhase, edits ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: v1alpha1.KindPodClique, Controller: ptr.To(true)}}}}
		p.Status.Phase, p.Spec.NodeName = phase, "n0"
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	going := func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	}
	away := func(p *corev1.Pod) { p.Spec.NodeName = "away" }
	type facts struct{ Running, Started, Draining bool }
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		want facts
	}{
		"there is none":                   {nil, facts{}},
		"one waits":                       {[]*corev1.Pod{pod(corev1.PodPending)}, facts{Draining: true}},
		"one runs":                        {[]*corev1.Pod{pod(corev1.PodPending), pod(corev1.PodRunning)}, facts{true, true, true}},
		"one has succeeded, one failed":   {[]*corev1.Pod{pod(corev1.PodSucceeded), pod(corev1.PodFailed)}, facts{Started: true}},
		"one ends":                        {[]*corev1.Pod{pod(corev1.PodRunning, going)}, facts{true, true, true}},
		"one ends on an unreachable node": {[]*corev1.Pod{pod(corev1.PodRunning, going, away)}, facts{Started: true}},
		"one runs on an unreachable node": {[]*corev1.Pod{pod(corev1.PodRunning, away)}, facts{Started: true, Draining: true}},
	} {
		set := &v1alpha1.PodCliqueSet{}
		got := Training(set, nil, tc.pods, func(node string) bool { return node == "away" })
		if f := (facts{got.Running, got.Started, got.Draining}); f != tc.want {
			t.Errorf("%s: %+v, want %+v", name, f, tc.want)
		}
	}
	set := &v1alpha1.PodCliqueSet{}
	set.Spec.TrainingSpec = &v1alpha1.TrainingSpec{
		MaxRuntime: &metav1.Duration{Duration: time.Hour}, MaxRestarts: ptr.To(int32(3)), TTLSecondsAfterFinished: ptr.To(int32(60))}
	set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue}}
	got := Training(set, nil, nil, nil)
	if got.MaxRuntime != time.Hour || got.MaxRestarts != 3 || got.TTL == nil || *got.TTL != time.Minute || got.Phase != lifecycle.Phase("") {
		t.Errorf("%+v", got)
	}
}
