// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// preemptor is the gang that preempts, as texts name it, and mark the message of its mark on a pod.
const (
	preemptor = "ml/urgent (priority 1000)"
	mark      = "muster-scheduler: preempting to accommodate a higher priority PodGroup, " + preemptor + ": its priority is lower; plan 5a0c1b2d"
)

// preempt ends pods as a scheduler that preempts them: all are marked before the first one is deleted. Meanwhile no pod
// fits on a node, because the preemptor takes the room.
func preempt(c *Cluster, pods ...*corev1.Pod) { preemptWith(c, mark, pods...) }

func preemptWith(c *Cluster, mark string, pods ...*corev1.Pod) {
	c.t.Helper()
	cordon(c, true)
	for _, pod := range pods {
		must(c.t, c.Kubelet.setStatus(pod, func(p *corev1.Pod, _ metav1.Time) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: corev1.PodReasonPreemptionByScheduler, LastTransitionTime: c.API.now(), Message: mark})
		}))
	}
	for _, pod := range pods {
		c.Delete(pod)
	}
}

// recordPreempted writes the condition of the gang that has lost pods, as its scheduler does.
func recordPreempted(c *Cluster, reason v2alpha2.Reason, message string) {
	c.t.Helper()
	group := All[*v2alpha2.PodGroup](c)[0].DeepCopy()
	meta.SetStatusCondition(&group.Status.Conditions, metav1.Condition{
		Type: v2alpha2.ConditionPreempted, Status: metav1.ConditionTrue, Reason: string(reason), Message: message})
	writeStatus(c, group)
}

// cordon makes all nodes unschedulable, or schedulable again.
func cordon(c *Cluster, yes bool) {
	c.t.Helper()
	for _, node := range All[*corev1.Node](c) {
		Edit(c, node.DeepCopy(), func(n *corev1.Node) { n.Spec.Unschedulable = yes })
	}
}

// TestJobThatIsPreempted: it is restarted as a gang, although no restarts are allowed, waits for room, and runs again.
// Its maxRuntime runs on, and a failure is a failure as before. Source: docs/decisions, J9.
func TestJobThatIsPreempted(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Kubelet.Linger, c.Kubelet.StopCode = 5*time.Second, ptr.To(int32(143))
	c.Timeline.Say("a job without restarts is created")
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{MaxRuntime: &metav1.Duration{Duration: time.Hour}}))
	c.Advance(time.Minute)
	deadline := theSet(c, "job").Status.RuntimeDeadline
	c.Timeline.Say("all its pods are preempted")
	preempt(c, All[*corev1.Pod](c)...)
	c.Advance(10 * time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhasePending, 0, "")
	running(c, 0)
	c.Timeline.Say("there is room again")
	cordon(c, false)
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	running(c, 3)
	s := theSet(c, "job").Status
	told := 0
	for _, line := range strings.Split(c.Timeline.String(), "\n") {
		if strings.Contains(line, "event") && strings.Contains(line, "; preempted by PodGroup "+preemptor) {
			told++
		}
	}
	if told != 3 { // two PodCliques, one replica
		c.Fatalf("%d events name the preemptor, want 3", told)
	}
	if a := s.ReplicaAttempts[0]; a.Attempt != 1 || a.Reason != v1alpha1.ReasonPreemption || a.NotBefore != nil || !s.RuntimeDeadline.Equal(deadline) {
		c.Fatalf("attempt %+v, deadline %s; want attempt 1 because of the preemption, and %s", a, s.RuntimeDeadline, deadline)
	}
	if said := c.Timeline.String(); strings.Contains(said, v1alpha1.EventPodCliqueFailed) || !strings.Contains(said, v1alpha1.EventReplicaPreempted) {
		c.Fatalf("the events call the preemption a failure, or do not mention it:\n%s", said)
	}
	c.Timeline.Say("the launcher exits with 1")
	exit(c, "job-0-launcher", 1)
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseFailed, 0, v1alpha1.ReasonMaxRestartsExceeded)
	c.Timeline.Golden(t, "job-preempted")
}

// TestJobThatIsPreemptedInPart: what decides is whether all missing pods were preempted, and what was recorded before
// their objects were gone.
func TestJobThatIsPreemptedInPart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		delay    time.Duration
		end      func(c *Cluster)
		restarts int32
		reason   string
	}{
		"one worker is preempted": {0, func(c *Cluster) { preempt(c, podsOf(c, "job-0-ring-0-worker")[0]) }, 0, v1alpha1.ReasonPreemption},
		"one worker is preempted, and another one crashes before its deletion is observed": {0, func(c *Cluster) {
			c.HoldBack(&corev1.Pod{})
			workers := podsOf(c, "job-0-ring-0-worker")
			preempt(c, workers[0])
			must(c.t, c.Kubelet.Exit(workers[1], 1))
			c.Deliver(&corev1.Pod{})
		}, 1, v1alpha1.ReasonRestart},
		"one worker is deleted by a user": {0, func(c *Cluster) { c.Delete(podsOf(c, "job-0-ring-0-worker")[0]) }, 1, v1alpha1.ReasonRestart},
		"all are preempted and end before any controller observes it": {0, func(c *Cluster) {
			c.HoldBack(&corev1.Pod{})
			preempt(c, All[*corev1.Pod](c)...)
			c.Advance(time.Minute)
			c.Restart()
			c.Deliver(&corev1.Pod{})
		}, 0, v1alpha1.ReasonPreemption},
		"all are preempted, and the objects are gone when the delay is over": {5 * time.Minute, func(c *Cluster) {
			preempt(c, All[*corev1.Pod](c)...)
			c.Advance(time.Minute)
			c.Restart()
			c.Advance(6 * time.Minute)
		}, 0, v1alpha1.ReasonPreemption},
		"all are preempted, and run again before the delay is over": {5 * time.Minute, func(c *Cluster) {
			preempt(c, All[*corev1.Pod](c)...)
			c.Advance(time.Minute)
		}, 0, ""},
		"a worker fails after the others were preempted, within the delay": {5 * time.Minute, func(c *Cluster) {
			workers := podsOf(c, "job-0-ring-0-worker")
			preempt(c, workers[0], podsOf(c, "job-0-launcher")[0])
			c.Advance(time.Minute)
			must(c.t, c.Kubelet.Exit(workers[1], 1))
			c.Advance(6 * time.Minute)
		}, 1, v1alpha1.ReasonRestart},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
			c.Kubelet.Linger = 5 * time.Second
			set := trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(3))})
			if tc.delay > 0 {
				set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: tc.delay}
			}
			c.Create(set)
			c.Advance(time.Minute)
			tc.end(c)
			cordon(c, false)
			c.Advance(2 * time.Minute)
			running(c, 3)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, tc.restarts, "")
			reason := ""
			for _, a := range theSet(c, "job").Status.ReplicaAttempts {
				if reason = a.Reason; a.Attempt != 1 {
					c.Fatalf("attempt %d, want 1", a.Attempt)
				}
				by := "; preempted by PodGroup " + preemptor
				if told := strings.Contains(a.Message, by); told != strings.Contains(a.Message, "preempted") || !told && reason == v1alpha1.ReasonPreemption {
					c.Fatalf("message %q, want %q in it if pods were preempted", a.Message, by)
				}
			}
			if reason != tc.reason {
				c.Fatalf("restarted because of %q, want %q", reason, tc.reason)
			}
			finish(c, 0)
			c.Advance(time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, tc.restarts, "")
		})
	}
}

// TestCrashAfterEachWriteOfAPreemption: a preemption uses no restart and raises the attempt once, after whichever write
// the controllers crash.
func TestCrashAfterEachWriteOfAPreemption(t *testing.T) {
	t.Parallel()
	for seed := range int64(3) {
		for n := 0; ; n++ {
			c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants(), Seed: seed, Interleaved: seed > 0})
			made := countGenerations(c)
			c.Kubelet.Linger = 10 * time.Second
			c.Create(trainingSet(1, v1alpha1.TrainingSpec{}))
			c.Advance(time.Minute)
			c.CrashAfterWrites(n)
			preempt(c, All[*corev1.Pod](c)...)
			cordon(c, false)
			c.Advance(2 * time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
			running(c, 3)
			for host, uids := range made {
				if len(made) != 3 || len(uids) != 2 {
					c.Fatalf("crash after %d writes: %d pods were made of %s, want 2", n, len(uids), host)
				}
			}
			if a := theSet(c, "job").Status.ReplicaAttempts; len(a) != 1 || a[0].Attempt != 1 || a[0].Reason != v1alpha1.ReasonPreemption {
				c.Fatalf("crash after %d writes: attempts %+v", n, a)
			}
			if c.Crashes == 0 {
				if n < 10 {
					t.Errorf("only %d writes were made", n)
				}
				break
			}
		}
	}
}

// TestPreemptedInferenceIsTerminatedOnce: a preempted set replica with a termination delay that waits for room is
// replaced once when the delay is over, and then waits, because what was never available in its attempt is not
// terminated. The set tells who preempted it, also if the controllers observe it late: its PodGroup says so until the
// minimum is bound again. Source: docs/decisions, T5.
func TestPreemptedInferenceIsTerminatedOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		delay  time.Duration
		unseen bool // muster-controller is killed before it observes the preemption
	}{
		"without a delay":                           {},
		"with a delay":                              {delay: time.Minute},
		"without a delay, unseen":                   {unseen: true},
		"with a delay that is over when it is seen": {delay: time.Minute, unseen: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
			set, want := podCliqueSet(), int32(0)
			if tc.delay > 0 {
				set.Spec.Template.TerminationDelay, want = &metav1.Duration{Duration: tc.delay}, 1
			}
			c.Create(set)
			c.Advance(time.Minute)
			if tc.unseen {
				c.HoldBack(&corev1.Pod{}, &v2alpha2.PodGroup{})
			}
			preempt(c, All[*corev1.Pod](c)...)
			const clause = "preempted at 2026-01-01 00:01:00 UTC by ml/urgent (priority 1000 over 100): all 8 pods, because its minimum ends as a whole or not at all"
			recordPreempted(c, v2alpha2.ReasonGangPreempted, clause)
			if tc.unseen { // until all pods are gone
				c.Advance(time.Minute)
				c.Restart()
				c.Deliver(&corev1.Pod{}, &v2alpha2.PodGroup{})
			}
			c.Advance(30 * time.Second)
			if message := meta.FindStatusCondition(theSet(c, "chat").Status.Conditions, v1alpha1.ConditionAvailable).Message; !strings.Contains(message, "; replica 0 was "+clause+"; ") {
				c.Fatalf("Available: %q, want %q in it", message, clause)
			}
			c.Advance(time.Hour)
			if n := strings.Count(c.Timeline.String(), "event ReplicaPreempted: Waiting for room again: replica 0 was "+clause); n != 1 {
				c.Fatalf("%d events name the preemptor, want 1", n)
			}
			if a := theSet(c, "chat").Status.ReplicaAttempts; want > 0 && !strings.HasSuffix(a[0].Message, "; "+clause) {
				c.Fatalf("terminated because %q, want %q at its end", a[0].Message, clause)
			}
			if n, inGroup := attempts(c); n != want || inGroup != 0 {
				c.Fatalf("attempts %d and %d after an hour without room, want %d and 0", n, inGroup, want)
			}
			cordon(c, false)
			c.Advance(2 * time.Minute)
			wantAvailable(c, 8)
			if message := meta.FindStatusCondition(theSet(c, "chat").Status.Conditions, v1alpha1.ConditionAvailable).Message; strings.Contains(message, "preempted") {
				c.Fatalf("it is available again: %q", message)
			}
			if n, _ := attempts(c); n != want {
				c.Fatalf("attempt %d when it is available again, want %d", n, want)
			}
		})
	}
}

// TestSetsOfBothTypesArePreempted: two preemptors end a training job and a service whose pods take a minute to end, one
// while the pods of the other one end, in both orders. Nothing is bound in their place before they have ended and there
// is room; then both run again, and no restart was used.
func TestSetsOfBothTypesArePreempted(t *testing.T) {
	t.Parallel()
	for _, order := range [][2]string{{"job-", "chat-"}, {"chat-", "job-"}} {
		t.Run(order[0]+"first", func(t *testing.T) {
			t.Parallel()
			c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
			c.Kubelet.Linger = time.Minute
			c.Create(trainingSet(1, v1alpha1.TrainingSpec{}))
			c.Create(podCliqueSet())
			c.Advance(2 * time.Minute)
			running(c, 11)
			of := func(prefix string) []*corev1.Pod {
				return slices.DeleteFunc(All[*corev1.Pod](c), func(p *corev1.Pod) bool { return !strings.HasPrefix(p.Name, prefix) })
			}
			other := strings.Replace(mark, preemptor, "ml/other (priority 900)", 1)
			preempt(c, of(order[0])...)
			c.Advance(30 * time.Second)
			preemptWith(c, other, of(order[1])...)
			running(c, 0)
			c.Advance(10 * time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhasePending, 0, "")
			running(c, 0)
			cordon(c, false)
			c.Advance(2 * time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
			wantAvailable(c, 11)
			by := map[string]string{order[0]: preemptor, order[1]: "ml/other (priority 900)"}["job-"]
			if a := theSet(c, "job").Status.ReplicaAttempts; len(a) != 1 || a[0].Attempt != 1 || !strings.Contains(a[0].Message, "; preempted by PodGroup "+by) {
				c.Fatalf("attempts %+v, want one, because of %s", a, by)
			}
		})
	}
}

// TestSurplusThatIsPreempted: a set tells what was taken above its minimum, when and by whom, until pods have taken its
// place. Its minimum runs on, and nothing is restarted. Source: docs/decisions, G24.
func TestSurplusThatIsPreempted(t *testing.T) {
	for name, tc := range map[string]struct {
		set     *v1alpha1.PodCliqueSet
		surplus func(*corev1.Pod) bool
		lost    string
	}{
		"chat": {podCliqueSet(), func(p *corev1.Pod) bool { return strings.HasPrefix(p.Name, "chat-0-model-1-") }, "3 pods"},
		"job": {wrappers.MakePodCliqueSet("job", "ns").Training().
			Clique("worker", 3, wrappers.MinAvailable(2), wrappers.RestartPolicy(corev1.RestartPolicyNever), wrappers.GPUs(1)).Obj(),
			func(p *corev1.Pod) bool { return strings.HasPrefix(p.Name, "job-0-worker-2") }, "1 pod"},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
			c.Create(tc.set)
			c.Advance(time.Minute)
			c.Timeline.Say("what is above its minimum is preempted")
			preempt(c, slices.DeleteFunc(All[*corev1.Pod](c), func(p *corev1.Pod) bool { return !tc.surplus(p) })...)
			clause := "preempted at 2026-01-01 00:01:00 UTC by ml/urgent (priority 1000 over 100): " + tc.lost + " above its minimum"
			recordPreempted(c, v2alpha2.ReasonSurplusPreempted, clause)
			c.Advance(10 * time.Minute)
			available := func() metav1.Condition {
				return *meta.FindStatusCondition(theSet(c, name).Status.Conditions, v1alpha1.ConditionAvailable)
			}
			if a, want := available(), "1 of 1 replica is available; replica 0 was "+clause; a.Status != metav1.ConditionTrue || a.Message != want {
				c.Fatalf("Available is %s: %q, want True: %q", a.Status, a.Message, want)
			}
			c.Timeline.Say("there is room again")
			cordon(c, false)
			c.Advance(2 * time.Minute)
			if a := available(); a.Message != "1 of 1 replica is available" {
				c.Fatalf("Available: %q when nothing is missing any more", a.Message)
			}
			if n := strings.Count(c.Timeline.String(), "event ReplicaPreempted: Waiting for room again: replica 0 was "+clause+"\n"); n != 1 {
				c.Fatalf("%d events tell what was taken, want 1", n)
			}
			if n, inGroup := attempts(c); n != 0 || inGroup != 0 {
				c.Fatalf("attempts %d and %d, want none", n, inGroup)
			}
			c.Timeline.Golden(t, name+"-surplus-preempted")
		})
	}
}
