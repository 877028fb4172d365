// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
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
		if got := TrainingReplicaFacts(set, 0, []string{"job-0-a", "job-0-b"}, tc.complete, tc.cliques); got.Complete != tc.want || got.Attempt != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	r := TrainingReplicaFacts(set, 0, []string{"job-0-a", "job-0-b"}, true, []*v1alpha1.PodClique{
		trainingClique("b", "2", condition(v1alpha1.ConditionMinAvailableBreached, "why"), broken),
		trainingClique("a", "1", condition(v1alpha1.ConditionSucceeded, ""))})
	a, b := r.Cliques[0], r.Cliques[1]
	if !a.Finished || a.Attempt.Set != 1 || b.Finished || b.Message != "why" || !b.BreachedSince.Equal(since.Time) || b.Delay != time.Minute || a.Delay != time.Hour {
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
		got := TrainingFacts(set, nil, tc.pods, func(node string) bool { return node == "away" })
		if f := (facts{got.Running, got.Started, got.Draining}); f != tc.want {
			t.Errorf("%s: %+v, want %+v", name, f, tc.want)
		}
	}
	set := &v1alpha1.PodCliqueSet{}
	set.Spec.TrainingSpec = &v1alpha1.TrainingSpec{
		MaxRuntime: &metav1.Duration{Duration: time.Hour}, MaxRestarts: ptr.To(int32(3)), TTLSecondsAfterFinished: ptr.To(int32(60))}
	set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue}}
	got := TrainingFacts(set, nil, nil, nil)
	if got.MaxRuntime != time.Hour || got.MaxRestarts != 3 || got.TTL == nil || *got.TTL != time.Minute || got.Phase != lifecycle.Phase("") {
		t.Errorf("%+v", got)
	}
}

// trainingSet is a Training workload: a launcher, and a scaling group of 3 replicas of 4 workers, 2 of which are
// needed.
func trainingSet() *v1alpha1.PodCliqueSet {
	return makePodCliqueSet("job", 1).Clique("launcher", 1).Clique("worker", 4, wrappers.MinAvailable(2)).
		ScalingGroup("ring", 3, 2, "worker").Training().Obj()
}

// completed adds succeeded pods to a PodClique, some of whose objects are gone.
func completed(succeeded, gone int32, done bool) func(*v1alpha1.PodClique) {
	return func(c *v1alpha1.PodClique) {
		c.Status.SucceededReplicas, c.Status.RemovedSucceededReplicas = succeeded, gone
		if done {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "x"})
		}
	}
}

// TestPodGroupOfAJobThatIsPartlyDone: the PodGroup does not require succeeded pods that can no longer be counted.
// Source: docs/decisions, G9.
func TestPodGroupOfAJobThatIsPartlyDone(t *testing.T) {
	t.Parallel()
	const whole = `job-0-launcher, pods 1
job-0-ring, children 2
job-0-ring-0 in job-0-ring
job-0-ring-0-worker in job-0-ring-0, pods 2
job-0-ring-1 in job-0-ring
job-0-ring-1-worker in job-0-ring-1, pods 2
job-0-ring-2 in job-0-ring
job-0-ring-2-worker in job-0-ring-2, pods 2`
	for name, tc := range map[string]struct {
		change map[string]func(*v1alpha1.PodClique)
		want   string
	}{
		"nothing is done": {nil, whole},
		"pods have succeeded, and are there": {
			map[string]func(*v1alpha1.PodClique){"job-0-ring-0-worker": completed(3, 0, false)}, whole},
		"the object of one is gone": {
			map[string]func(*v1alpha1.PodClique){"job-0-ring-0-worker": completed(3, 1, false)},
			strings.Replace(whole, "job-0-ring-0, pods 2", "job-0-ring-0, pods 1", 1)},
		"those of all required pods are gone, and another is running": {
			map[string]func(*v1alpha1.PodClique){"job-0-ring-0-worker": completed(3, 3, false)},
			strings.Replace(whole, "job-0-ring-0, pods 2", "job-0-ring-0, pods 1", 1)},
		"a clique has succeeded, and its pods are there": {
			map[string]func(*v1alpha1.PodClique){"job-0-launcher": completed(1, 0, true)},
			strings.TrimPrefix(whole, "job-0-launcher, pods 1\n")},
		"a clique of a previous attempt had succeeded": {
			map[string]func(*v1alpha1.PodClique){"job-0-launcher": func(c *v1alpha1.PodClique) {
				completed(1, 0, true)(c)
				c.DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
			}}, whole},
		"all cliques have succeeded, and one pod exists": {
			map[string]func(*v1alpha1.PodClique){"job-0-launcher": completed(1, 1, true), "job-0-ring-0-worker": completed(4, 4, true),
				"job-0-ring-1-worker": completed(4, 3, true), "job-0-ring-2-worker": completed(4, 4, true)},
			"job-0-ring, children 1\njob-0-ring-1 in job-0-ring\njob-0-ring-1-worker in job-0-ring-1, pods 1"},
		"a standalone clique has succeeded and left no pods": {
			map[string]func(*v1alpha1.PodClique){"job-0-launcher": completed(1, 1, true)},
			strings.TrimPrefix(whole, "job-0-launcher, pods 1\n")},
		"a group replica has succeeded and left no pods: one replica less is required": {
			map[string]func(*v1alpha1.PodClique){"job-0-ring-1-worker": completed(4, 4, true)},
			`job-0-launcher, pods 1
job-0-ring, children 1
job-0-ring-0 in job-0-ring
job-0-ring-0-worker in job-0-ring-0, pods 2
job-0-ring-2 in job-0-ring
job-0-ring-2-worker in job-0-ring-2, pods 2`},
		"as many group replicas as are required have succeeded and left no pods: the last one is required": {
			map[string]func(*v1alpha1.PodClique){"job-0-ring-0-worker": completed(4, 4, true), "job-0-ring-1-worker": completed(4, 4, true)},
			`job-0-launcher, pods 1
job-0-ring, children 1
job-0-ring-2 in job-0-ring
job-0-ring-2-worker in job-0-ring-2, pods 2`},
		"all cliques have succeeded and left no pods": {
			map[string]func(*v1alpha1.PodClique){"job-0-launcher": completed(1, 1, true), "job-0-ring-0-worker": completed(4, 4, true),
				"job-0-ring-1-worker": completed(4, 4, true), "job-0-ring-2-worker": completed(4, 4, true)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := trainingSet()
			live := apply(set, Children{})
			for clique, change := range tc.change {
				change(live.Cliques[clique])
			}
			pg := PodGroup(set, 0, live)
			if pg == nil {
				if tc.want != "" {
					t.Error("no PodGroup")
				}
				return
			}
			if diff := cmp.Diff(strings.TrimSpace(tc.want), strings.TrimSpace(outline(pg))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	failed := trainingSet()
	failed.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMaxRuntimeExceeded}}
	if pg := PodGroup(failed, 0, apply(failed, Children{})); pg != nil {
		t.Error("a workload that has failed has a PodGroup")
	}
}

// TestPodGroupsTellMaxRuntime: no pod of a training job runs longer.
func TestPodGroupsTellMaxRuntime(t *testing.T) {
	t.Parallel()
	limited, serving := trainingSet(), makePodCliqueSet("chat", 1).Clique("worker", 1).Obj()
	for _, set := range []*v1alpha1.PodCliqueSet{limited, serving} {
		set.Spec.TrainingSpec = &v1alpha1.TrainingSpec{MaxRuntime: &metav1.Duration{Duration: 90 * time.Minute}}
	}
	for want, set := range map[string]*v1alpha1.PodCliqueSet{"1h30m0s": limited, "": serving} {
		if got := PodGroup(set, 0, apply(set, Children{})).Annotations[v2alpha2.MaxRuntimeAnnotation]; got != want {
			t.Errorf("set %s: %q, want %q", set.Name, got, want)
		}
	}
	if got, told := PodGroup(trainingSet(), 0, apply(trainingSet(), Children{})).Annotations[v2alpha2.MaxRuntimeAnnotation]; told {
		t.Errorf("a job without a limit runs for %q at most", got)
	}
}

// TestPodCliquesOfTraining: a PodClique has all required facts about its workload even without its owners, and its
// pods are tracked; neither is part of the hash.
func TestPodCliquesOfTraining(t *testing.T) {
	t.Parallel()
	set := trainingSet()
	set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Minute}
	set.Spec.Template.PodCliqueScalingGroupConfigs[0].TerminationDelay = &metav1.Duration{Duration: time.Hour}
	live := apply(set, Children{})
	for name, want := range map[string]time.Duration{"job-0-launcher": time.Minute, "job-0-ring-2-worker": time.Hour} {
		c := live.Cliques[name]
		if d := CliqueTerminationDelay(c); !IsTraining(c) || d == nil || *d != want {
			t.Errorf("%s: Training %t, delay %v", name, IsTraining(c), d)
		}
		pod, err := Pod(c, lifecycle.NewPod{}, PodOptions{})
		if err != nil || !slices.Equal(pod.Finalizers, []string{v1alpha1.FinalizerPodTracking}) || pod.Annotations[v1alpha1.AnnotationWorkloadType] != "" {
			t.Errorf("%s: pod %+v, %v", name, pod.ObjectMeta, err)
		}
	}
	set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMaxRuntimeExceeded}}
	after := apply(set, live)
	for name, c := range after.Cliques {
		if c.Annotations[v1alpha1.AnnotationWorkloadFailed] != v1alpha1.ReasonMaxRuntimeExceeded {
			t.Errorf("%s does not know that the workload has failed", name)
		}
		if c.Labels[v1alpha1.LabelPodTemplateHash] != live.Cliques[name].Labels[v1alpha1.LabelPodTemplateHash] {
			t.Errorf("%s has another template hash", name)
		}
	}
	inference := apply(podCliqueSet(), Children{}).Cliques["llm-0-worker"]
	if pod, err := Pod(inference, lifecycle.NewPod{}, PodOptions{}); err != nil || len(pod.Finalizers) > 0 || IsTraining(inference) {
		t.Errorf("Inference: pod %+v, %v", pod.ObjectMeta, err)
	}
}

// TestSetStatusOfTraining: a restart after a failure, and no other replacement, is counted in the write that raises the
// attempt.
func TestSetStatusOfTraining(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	set := trainingSet()
	set.Spec.Replicas, set.Status.RestartCount = 3, 1
	outcome := &lifecycle.TrainingOutcome{Phase: lifecycle.PhaseRunning, StartTime: at.Time, Deadline: at.Add(time.Hour), Succeeded: lifecycle.Indices(2)}
	s := PodCliqueSetStatus(set, SetStatusFacts{Training: outcome, Raised: map[int]lifecycle.Raised{
		0: {Attempt: 1, Replacement: lifecycle.Replacement{Reason: lifecycle.ReplacedRestart, Message: "pod x: failed"}},
		1: {Attempt: 4, Replacement: lifecycle.Replacement{Reason: lifecycle.ReplacedDeleted}},
		2: {Attempt: 1, Replacement: lifecycle.Replacement{Reason: lifecycle.ReplacedPreemption}},
	}}, at)
	if s.RestartCount != 2 || s.Phase != v1alpha1.PodCliqueSetPhaseRunning || s.SucceededIndices != "2" || s.SucceededReplicas != 1 ||
		!s.StartTime.Equal(&at) || s.RuntimeDeadline.Sub(at.Time) != time.Hour || s.CompletionTime != nil || len(s.ReplicaAttempts) != 3 {
		t.Errorf("status %+v", s)
	}
	set.Status = s
	s = PodCliqueSetStatus(set, SetStatusFacts{Training: &lifecycle.TrainingOutcome{
		Phase: lifecycle.PhaseRunning, Failure: lifecycle.MaxRestartsExceeded, Message: "why"}}, at)
	failed := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionFailed)
	if s.RestartCount != 2 || failed == nil || failed.Reason != v1alpha1.ReasonMaxRestartsExceeded || failed.Message != "why" {
		t.Errorf("%d restarts, condition %+v", s.RestartCount, failed)
	}
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAvailable); c.Status != metav1.ConditionFalse || c.Reason != failed.Reason || c.Message != "why" {
		t.Errorf("condition %+v of a workload that has failed", c)
	}
	set.Status = s
	inBreach := []lifecycle.SetReplica{{Cliques: []lifecycle.Clique{{BreachedSince: at.Time}}}}
	if s = PodCliqueSetStatus(set, SetStatusFacts{Replicas: inBreach, NextTermination: at.Time}, at); s.MinAvailableBreachedSince != nil || s.TerminationDeadline != nil {
		t.Errorf("in breach since %v, although the workload has failed", s.MinAvailableBreachedSince)
	}
	if s = PodCliqueSetStatus(set, SetStatusFacts{}, at); s.Phase != v1alpha1.PodCliqueSetPhaseRunning {
		t.Errorf("phase %s of a workload that is not reconciled", s.Phase)
	}
}

// TestAvailableOfAJobThatSucceeds: condition Available says so in the write that records it, whatever is still known of
// the PodCliques.
func TestAvailableOfAJobThatSucceeds(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	replicas := []lifecycle.SetReplica{{Index: 0, Missing: []string{"launcher"}}, {Index: 1, Missing: []string{"launcher"}}}
	for name, tc := range map[string]struct {
		outcome   lifecycle.TrainingOutcome
		available int32
		want      metav1.Condition
	}{
		"all replicas": {lifecycle.TrainingOutcome{Phase: lifecycle.PhaseSucceeded, Succeeded: lifecycle.Indices(0, 1), FinishedAt: at.Time}, 2,
			metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllReplicasSucceeded, Message: "2 replicas succeeded"}},
		"one of two": {lifecycle.TrainingOutcome{Phase: lifecycle.PhaseRunning, Succeeded: lifecycle.Indices(0)}, 1,
			metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonReplicasUnavailable,
				Message: "1 of 2 replicas are available; replica 1 lacks launcher"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := trainingSet()
			set.Spec.Replicas = 2
			s := PodCliqueSetStatus(set, SetStatusFacts{Replicas: replicas, Training: &tc.outcome}, at)
			c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAvailable)
			got := metav1.Condition{Status: c.Status, Reason: c.Reason, Message: c.Message}
			if diff := cmp.Diff(tc.want, got); diff != "" || s.AvailableReplicas != tc.available {
				t.Errorf("%d available, want %d; condition (-want +got):\n%s", s.AvailableReplicas, tc.available, diff)
			}
		})
	}
}

// TestPreemptedPodsOfTraining: the status of a PodClique records that its missing pods were preempted, also when their
// objects are gone, and the facts about its replica follow from that status.
func TestPreemptedPodsOfTraining(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	set := trainingSet()
	clique := apply(set, Children{}).Cliques["job-0-launcher"]
	record := func(pods ...lifecycle.Pod) lifecycle.TrainingClique {
		d := lifecycle.DecideTrainingPods(TrainingPodsFacts(clique, pods, nil), at.Time)
		clique.Status = cliqueStatus(clique, CliqueStatusFacts{Pods: pods, Training: &d, Breach: d.Breach}, at)
		return TrainingReplicaFacts(set, 0, []string{clique.Name}, true, []*v1alpha1.PodClique{clique}).Cliques[0]
	}
	running := lifecycle.Pod{UID: "0", Scheduled: true, Running: true}
	ended := lifecycle.Pod{UID: "0", Scheduled: true, Running: true, Terminating: true}
	preempted := ended
	preempted.Preempted, preempted.PreemptedBy = true, "ml/urgent (priority 1000)"
	byAnother := preempted
	byAnother.PreemptedBy = ""
	for _, step := range []struct {
		what     string
		pods     []lifecycle.Pod
		recorded string
		breached bool
		want     bool
		by       string
	}{
		{"it runs", []lifecycle.Pod{running}, "", false, false, ""},
		{"it is preempted", []lifecycle.Pod{preempted}, "0", true, true, "ml/urgent (priority 1000)"},
		{"it is gone", nil, "0", true, true, "ml/urgent (priority 1000)"},
		{"another one runs", []lifecycle.Pod{running}, "", false, false, ""},
		{"it is deleted", []lifecycle.Pod{ended}, "", true, false, ""},
		{"it is gone, too", nil, "", true, false, ""},
		{"a third one runs", []lifecycle.Pod{running}, "", false, false, ""},
		{"it is preempted by a scheduler that does not name the preemptor", []lifecycle.Pod{byAnother}, "0", true, true, ""},
	} {
		got := record(step.pods...)
		if got.Preempted != step.want || got.BreachedSince.IsZero() == step.breached || clique.Status.PreemptedIndices != step.recorded {
			t.Errorf("%s: preempted %t, in breach since %s, recorded %q; want %t, %t, %q", step.what,
				got.Preempted, got.BreachedSince, clique.Status.PreemptedIndices, step.want, step.breached, step.recorded)
		}
		if by := message.Preemptor(got.Message); by != step.by {
			t.Errorf("%s: the preemptor is %q in %q, want %q", step.what, by, got.Message, step.by)
		}
	}
}

// TestGroupOfAJobThatHasFailed: it waits for nothing.
func TestGroupOfAJobThatHasFailed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failed bool
		want   string
	}{
		"it runs":       {false, "0 of 1 replica is available, 1 needed; waits until PodClique x is gone"},
		"it has failed": {true, "0 of 1 replica is available, 1 needed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := &v1alpha1.PodCliqueScalingGroup{Spec: v1alpha1.PodCliqueScalingGroupSpec{Replicas: 1}}
			s := groupStatus(group, GroupStatusFacts{Training: true, Failed: tc.failed, Waits: "waits until PodClique x is gone"}, now)
			if diff := cmp.Diff(tc.want, meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAvailable).Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodCliqueStatusOfTraining(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	clique := apply(trainingSet(), Children{}).Cliques["job-0-ring-0-worker"]
	pods := []lifecycle.Pod{
		{UID: "0", Index: 0, Ended: true, Succeeded: true}, {UID: "1", Index: 1, Ended: true, Succeeded: true}, {UID: "2", Index: 2, Scheduled: true, Running: true},
	}
	facts := TrainingPodsFacts(clique, pods, nil)
	d := lifecycle.DecideTrainingPods(facts, at.Time)
	s := cliqueStatus(clique, CliqueStatusFacts{Pods: pods, Training: &d}, at)
	want := []string{"Available=True", "PodCliqueScheduled=True", "MinAvailableBreached=False"}
	var got []string
	for _, c := range s.Conditions {
		got = append(got, c.Type+"="+string(c.Status))
	}
	if diff := cmp.Diff(want, got); diff != "" || s.AvailableReplicas != 3 || s.SucceededIndices != "0-1" || s.StartedIndices != "0-2" || !s.WasAvailable {
		t.Errorf("%s%+v", diff, s)
	}
	pods[2].Ended, pods[2].Succeeded = true, true
	d = lifecycle.DecideTrainingPods(TrainingPodsFacts(clique, pods, nil), at.Time)
	s = cliqueStatus(clique, CliqueStatusFacts{Pods: pods, Training: &d}, at)
	done := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSucceeded)
	if done == nil || done.Message != "3 pods succeeded, 1 that never started cancelled" {
		t.Errorf("condition %+v", done)
	}

	// Pods that were given up are reported, and the workload that has failed counts no breach.
	clique.Status.EndedPods = []v1alpha1.EndedPods{{Index: 3, Count: 6}}
	clique.Status.MinAvailableBreachedSince = &at
	clique.Annotations[v1alpha1.AnnotationWorkloadFailed] = "x"
	d = lifecycle.DecideTrainingPods(TrainingPodsFacts(clique, pods, nil), at.Time)
	s = cliqueStatus(clique, CliqueStatusFacts{Pods: pods, Training: &d}, at)
	failure := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReplicaFailure)
	if failure == nil || failure.Message != "pods 3 have failed 6 times in a row and are not replaced in this attempt" || s.MinAvailableBreachedSince != nil {
		t.Errorf("condition %+v, in breach since %v", failure, s.MinAvailableBreachedSince)
	}
}
