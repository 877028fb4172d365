// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/wrappers"
)

// trainingSet is a Training workload, job, of so many replicas: a launcher, and a scaling group of one replica with 2
// workers. 3 GPUs each.
func trainingSet(replicas int32, limits v1alpha1.TrainingSpec) *v1alpha1.PodCliqueSet {
	return wrappers.MakePodCliqueSet("job", "ns").Replicas(replicas).Training().
		Clique("launcher", 1, wrappers.RestartPolicy(corev1.RestartPolicyNever), wrappers.GPUs(1)).
		Clique("worker", 2, wrappers.RestartPolicy(corev1.RestartPolicyNever), wrappers.GPUs(1)).
		ScalingGroup("ring", 0, 0, "worker").
		Spec(func(s *v1alpha1.PodCliqueSetSpec) { s.TrainingSpec = &limits }).Obj()
}

// wantJob fails the test unless the job is in that phase, with this number of restarts and this reason of its failure.
func wantJob(c *Cluster, phase v1alpha1.PodCliqueSetPhase, restarts int32, failed string) {
	c.t.Helper()
	s := theSet(c, "job").Status
	reason := ""
	if condition := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionFailed); condition != nil {
		reason = condition.Reason
	}
	if s.Phase != phase || s.RestartCount != restarts || reason != failed {
		c.Fatalf("phase %s, %d restarts, failed: %q; want %s, %d, %q", s.Phase, s.RestartCount, reason, phase, restarts, failed)
	}
	available := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAvailable)
	switch phase {
	case v1alpha1.PodCliqueSetPhaseSucceeded:
		reason = v1alpha1.ReasonAllReplicasSucceeded
	case v1alpha1.PodCliqueSetPhaseFailed:
	default:
		return
	}
	if available.Reason != reason || s.CompletionTime == nil {
		c.Fatalf("phase %s, completed at %s, condition %+v; want the reason %s", phase, s.CompletionTime, available, reason)
	}
	for _, objects := range [][]client.Object{objectsOf[*v1alpha1.PodCliqueSet](c), objectsOf[*v1alpha1.PodCliqueScalingGroup](c), objectsOf[*v1alpha1.PodClique](c)} {
		for _, o := range objects {
			for _, condition := range conditions(o) {
				if strings.Contains(condition.Message, "PodGroup") { // it is gone, or there is nothing to wait for
					c.Fatalf("%T %s of a job that is over: condition %+v", o, o.GetName(), condition)
				}
			}
		}
	}
}

// objectsOf returns the objects of one kind.
func objectsOf[T client.Object](c *Cluster) []client.Object {
	var objects []client.Object
	for _, o := range All[T](c) {
		objects = append(objects, o)
	}
	return objects
}

// exit makes the running pods of a PodClique exit with a code.
func exit(c *Cluster, clique string, code int32) {
	c.t.Helper()
	for _, pod := range podsOf(c, clique) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			must(c.t, c.Kubelet.Exit(pod, code))
		}
	}
}

// finish makes all pods of replica i of the job exit with 0.
func finish(c *Cluster, i int) {
	exit(c, fmt.Sprintf("job-%d-launcher", i), 0)
	exit(c, fmt.Sprintf("job-%d-ring-0-worker", i), 0)
}

// running fails the test unless this number of pods runs.
func running(c *Cluster, pods int) {
	c.t.Helper()
	n := 0
	for _, pod := range All[*corev1.Pod](c) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			n++
		}
	}
	if n != pods {
		c.Fatalf("%d pods run, want %d", n, pods)
	}
}

func TestJobThatCrashesAtTheStart(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Kubelet.ReadyAfter = time.Hour // it never becomes ready
	c.Timeline.Say("a job without restarts is created")
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{}))
	c.Advance(5 * time.Second)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	c.Timeline.Say("a worker exits with 1")
	must(t, c.Kubelet.Exit(podsOf(c, "job-0-ring-0-worker")[1], 1))
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseFailed, 0, v1alpha1.ReasonMaxRestartsExceeded)
	running(c, 0)
	if pods := All[*corev1.Pod](c); len(pods) != 1 || pods[0].Status.Phase != corev1.PodFailed || len(pods[0].Finalizers) != 0 {
		c.Fatalf("%d pods are left, want the failed one without a finalizer", len(pods))
	}
	c.Timeline.Golden(t, "job-crashes")
}

// TestJobThatHasFailedIsLeftAlone: nothing is written any more.
func TestJobThatHasFailedIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{}))
	c.Advance(time.Minute)
	exit(c, "job-0-launcher", 1)
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseFailed, 0, v1alpha1.ReasonMaxRestartsExceeded)
	writes := 0
	c.API.watch(func(Change) { writes++ })
	c.Advance(10 * time.Minute)
	if writes > 0 {
		c.Fatalf("%d writes in ten minutes", writes)
	}
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		if since := g.Status.MinAvailableBreachedSince; since != nil {
			c.Fatalf("%s is in breach since %s", g.Name, since)
		}
	}
}

func TestJobThatFailsTwiceAndSucceeds(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Timeline.Say("a job with 2 restarts is created")
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(2)), TTLSecondsAfterFinished: ptr.To(int32(60))}))
	c.Advance(time.Minute)
	c.Timeline.Say("the launcher exits with 137")
	exit(c, "job-0-launcher", 137)
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 1, "")
	running(c, 3)
	c.Timeline.Say("both workers exit with 1")
	exit(c, "job-0-ring-0-worker", 1)
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 2, "")
	running(c, 3)
	c.Timeline.Say("all exit with 0")
	finish(c, 0)
	c.Advance(30 * time.Second)
	wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 2, "")
	c.Timeline.Say("its time to live passes")
	c.Advance(time.Minute)
	wantNothing(c)
	c.Timeline.Golden(t, "job-restarts")
}

// TestJobThatKeepsFailing: its restarts wait longer and longer, its GPUs are free meanwhile, and a restart that ran for
// ten minutes begins again.
func TestJobThatKeepsFailing(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: both(invariants(), backOffs)})
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(20))}))
	c.Advance(10 * time.Second)
	fail := func(restart int32, wait time.Duration) {
		t.Helper()
		exit(c, "job-0-launcher", 1)
		failed := c.Clock.Now()
		c.Advance(2 * time.Second)
		until := failed
		if wait > 0 {
			until = theSet(c, "job").Status.ReplicaAttempts[0].NotBefore.Time
			if after := until.Sub(failed); after < wait || after > wait+2*time.Second {
				c.Fatalf("restart %d waits for %s, want %s", restart, after, wait)
			}
			wantJob(c, v1alpha1.PodCliqueSetPhasePending, restart, "")
			condition := meta.FindStatusCondition(theSet(c, "job").Status.Conditions, v1alpha1.ConditionAvailable)
			if want := fmt.Sprintf("waits until %s before it starts again", until.UTC().Format(time.RFC3339)); !strings.Contains(condition.Message, want) {
				c.Fatalf("message %q, want %q", condition.Message, want)
			}
		}
		c.Advance(until.Add(-time.Millisecond).Sub(c.Clock.Now()))
		if n := len(All[*v1alpha1.PodClique](c)) + len(All[*corev1.Pod](c)); wait > 0 && n > 0 {
			c.Fatalf("%d objects exist before %s are over", n, wait)
		}
		c.Advance(5 * time.Second)
		running(c, 3)
		wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, restart, "")
	}
	for i, wait := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
		fail(int32(i)+1, wait)
	}
	c.Restart()
	c.Advance(10 * time.Minute)
	fail(9, 0)
	fail(10, 10*time.Second)
}

// TestJobThatGivesUpAPod: a pod above the minimum that always fails is replaced with a growing delay, five times, and
// the job succeeds without it.
func TestJobThatGivesUpAPod(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Create(wrappers.MakePodCliqueSet("job", "ns").Replicas(1).Training().
		Clique("worker", 3, wrappers.RestartPolicy(corev1.RestartPolicyNever), wrappers.GPUs(1), wrappers.MinAvailable(2)).Obj())
	c.Advance(10 * time.Second)
	var made []time.Duration // when the pods of index 2 were created, after the first failure
	seen := map[types.UID]bool{}
	began := c.Clock.Now()
	for range 1800 {
		for _, pod := range podsOf(c, "job-0-worker") {
			if pod.Labels[v1alpha1.LabelPodIndex] != "2" || pod.DeletionTimestamp != nil {
				continue
			}
			if !seen[pod.UID] {
				seen[pod.UID] = true
				made = append(made, c.Clock.Now().Sub(began).Round(10*time.Second))
			}
			if pod.Status.Phase == corev1.PodRunning {
				must(t, c.Kubelet.Exit(pod, 1))
			}
		}
		c.Advance(time.Second)
	}
	if want := []time.Duration{0, 0, 10 * time.Second, 30 * time.Second, 70 * time.Second, 150 * time.Second}; !slices.Equal(made, want) {
		c.Fatalf("pods were created after %s, want %s", made, want)
	}
	clique := All[*v1alpha1.PodClique](c)[0]
	failure := meta.FindStatusCondition(clique.Status.Conditions, v1alpha1.ConditionReplicaFailure)
	if failure == nil || failure.Reason != v1alpha1.ReasonPodsGivenUp {
		c.Fatalf("conditions %v", clique.Status.Conditions)
	}
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	exit(c, "job-0-worker", 0)
	c.Advance(10 * time.Second)
	wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 0, "")
	if told := "event WorkloadSucceeded: All replicas have succeeded; 1 pod was given up"; !strings.Contains(c.Timeline.String(), told) {
		c.Fatalf("no %q", told)
	}
}

func TestJobThatRunsOutOfTimeInARestart(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Kubelet.Linger = 30 * time.Second
	c.Timeline.Say("a job with 100 s and 5 restarts is created")
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(5)), MaxRuntime: &metav1.Duration{Duration: 100 * time.Second}}))
	c.Advance(90 * time.Second)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	if got := theSet(c, "job").Status.RuntimeDeadline.Sub(epoch); got != 102*time.Second {
		c.Fatalf("the deadline is at %s", got)
	}
	c.Timeline.Say("the launcher exits with 1, and the others need 30 s to end")
	exit(c, "job-0-launcher", 1)
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseFailed, 1, v1alpha1.ReasonMaxRuntimeExceeded)
	running(c, 0)
	c.Timeline.Golden(t, "job-out-of-time")
}

func TestJobThatLosesANode(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(3, 2), Check: invariants()})
	c.Timeline.Say("a job without restarts is created")
	set := trainingSet(1, v1alpha1.TrainingSpec{})
	set.Spec.Template.UnreachableGrace = &metav1.Duration{Duration: 10 * time.Second}
	c.Create(set)
	c.Advance(time.Minute)
	node := podsOf(c, "job-0-launcher")[0].Spec.NodeName
	c.Timeline.Say("node %s does not answer", node)
	must(t, c.Kubelet.LoseNode(node))
	c.Advance(9 * time.Second)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	c.Advance(20 * time.Second) // pods on it do not run, and a job without a delay is restarted
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	c.Timeline.Say("its pods are lost after their grace period, for no kubelet confirms that they are gone")
	c.Advance(20 * time.Second)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	c.Timeline.Say("the node answers again, and the job ends")
	must(t, c.Kubelet.RestoreNode(node))
	c.Advance(time.Minute)
	running(c, 3)
	finish(c, 0)
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 0, "")
	c.Delete(theSet(c, "job"))
	c.Advance(time.Minute)
	wantNothing(c)
	c.Timeline.Golden(t, "job-loses-a-node")
}

func TestJobOneOfWhoseReplicasFinishes(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
	c.Timeline.Say("a job of 3 replicas with a restart is created")
	c.Create(trainingSet(3, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(1))}))
	c.Advance(time.Minute)
	running(c, 9)
	c.Timeline.Say("replica 1 finishes")
	finish(c, 1)
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	before := map[string]string{}
	for _, pod := range All[*corev1.Pod](c) {
		before[pod.Name] = string(pod.UID)
	}
	c.Timeline.Say("the objects of its pods are removed")
	for _, clique := range []string{"job-1-launcher", "job-1-ring-0-worker"} {
		for _, pod := range podsOf(c, clique) {
			c.Delete(pod)
		}
	}
	c.Advance(time.Minute)
	for _, group := range All[*v2alpha2.PodGroup](c) {
		if group.Name == "job-1" {
			c.Fatalf("the PodGroup of the replica that has finished asks for pods: %+v", group.Spec.SubGroups)
		}
	}
	c.Timeline.Say("a worker of replica 2 exits with 1")
	must(t, c.Kubelet.Exit(podsOf(c, "job-2-ring-0-worker")[0], 1))
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 1, "")
	for _, pod := range All[*corev1.Pod](c) {
		if same := before[pod.Name] == string(pod.UID); same != (pod.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex] == "0") {
			c.Fatalf("pod %s: the same as before: %t", pod.Name, same)
		}
	}
	c.Timeline.Say("the others finish")
	finish(c, 0)
	finish(c, 2)
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 1, "")
	c.Timeline.Golden(t, "job-replica-finishes")
}

// The present delay determines when a restart is due, as for a termination.
func TestDelayOfAJobIsLengthenedAtTheDeadline(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	set := trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(1))})
	set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Minute}
	c.Create(set)
	c.Advance(time.Minute)
	c.Kubelet.StartAfter = 10 * time.Minute // the pod that replaces a failed one
	exit(c, "job-0-launcher", 1)
	c.Advance(58 * time.Second)
	c.HoldBack(&v1alpha1.PodCliqueSet{})
	Edit(c, theSet(c, "job"), func(s *v1alpha1.PodCliqueSet) {
		s.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Hour}
	})
	c.Advance(5 * time.Second)
	c.Deliver(&v1alpha1.PodCliqueSet{})
	c.Advance(15 * time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	if strings.Contains(c.Timeline.String(), v1alpha1.EventTerminationDue) {
		c.Fatalf("a job has the event %s", v1alpha1.EventTerminationDue)
	}
}

// A stale cache uses no restart: at the deadline the pod that replaces a failed one runs. If that pod has failed again
// by the time it is observed, it is a failure.
func TestJobRecoversAtTheDeadline(t *testing.T) {
	for _, restarts := range []int32{0, 1} {
		for _, again := range []bool{false, true} {
			c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
			set := trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(restarts)})
			set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Minute}
			c.Create(set)
			c.Advance(time.Minute)
			c.Kubelet.StartAfter = 59 * time.Second
			exit(c, "job-0-launcher", 1)
			c.Advance(55 * time.Second)
			c.HoldBack(&corev1.Pod{})
			c.Advance(20 * time.Second)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
			running(c, 3)
			if again {
				exit(c, "job-0-launcher", 1)
			}
			c.Deliver(&corev1.Pod{})
			c.Advance(10 * time.Minute)
			switch {
			case !again:
				wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
			case restarts == 0:
				wantJob(c, v1alpha1.PodCliqueSetPhaseFailed, 0, v1alpha1.ReasonMaxRestartsExceeded)
			default:
				wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 1, "")
			}
		}
	}
}

// TestCrashAfterEachWriteOfARestart: a failure is one restart, after whichever write the controllers crash, and the
// pods of an attempt are created after those of the previous attempt are gone.
func TestCrashAfterEachWriteOfARestart(t *testing.T) {
	for n := 0; ; n++ {
		c, made := newRestart(t, Options{})
		c.CrashAfterWrites(n)
		exit(c, "job-0-ring-0-worker", 1)
		c.Advance(2 * time.Minute)
		wantOneRestart(c, made, 1)
		if c.Crashes == 0 {
			if n < 10 {
				t.Errorf("only %d writes were made", n)
			}
			return
		}
	}
}

// TestEachWriteOfARestartIsRefused: no pod is created twice for a restart, whichever write is a conflict. The pods are
// known to be lost with their node when the restart is decided: a PodClique that is deleted could be created again at
// once, without waiting for its pods.
func TestEachWriteOfARestartIsRefused(t *testing.T) {
	for seed := range int64(3) {
		for n := 0; ; n++ {
			c, made := newRestart(t, Options{Seed: seed, Interleaved: true})
			node := podsOf(c, "job-0-launcher")[0].Spec.NodeName
			must(t, c.Kubelet.LoseNode(node))
			c.HoldBack(&corev1.Pod{})
			c.Advance(10 * time.Minute)
			c.RefuseWrite(n)
			c.Deliver(&corev1.Pod{})
			c.Advance(time.Minute)
			refused := !c.RefusesWrite()
			must(t, c.Kubelet.RestoreNode(node))
			c.Advance(time.Minute)
			wantOneRestart(c, made, 0) // it lost its node
			if !refused {
				if n < 10 {
					t.Errorf("only %d writes were made", n)
				}
				break
			}
		}
	}
}

// newRestart returns a cluster with the options in which a job with 2 restarts runs, and the pods that are created.
func newRestart(t *testing.T, options Options) (*Cluster, generations) {
	t.Helper()
	options.Nodes, options.Check = Nodes(2, 4), invariants()
	c := New(t, options)
	made := countGenerations(c)
	c.Kubelet.Linger = 10 * time.Second
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(2))}))
	c.Advance(time.Minute)
	running(c, 3)
	return c, made
}

// wantOneRestart fails the test unless the job of newRestart was restarted once, with 3 new pods, has used that many
// restarts, and can succeed.
func wantOneRestart(c *Cluster, made generations, used int32) {
	c.t.Helper()
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, used, "")
	running(c, 3)
	for host, uids := range made {
		if len(made) != 3 || len(uids) != 2 {
			c.Fatalf("%d pods were made of %s, want 2", len(uids), host)
		}
	}
	finish(c, 0)
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, used, "")
}

// TestCrashAfterEachWriteOfAnEnd: a job ends as without a crash, both in success and in failure, and leaves no
// finalizer.
func TestCrashAfterEachWriteOfAnEnd(t *testing.T) {
	for _, code := range []int32{0, 1} {
		for n := 0; ; n++ {
			c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
			c.Create(trainingSet(1, v1alpha1.TrainingSpec{}))
			c.Advance(time.Minute)
			c.CrashAfterWrites(n)
			exit(c, "job-0-launcher", code)
			exit(c, "job-0-ring-0-worker", 0)
			c.Advance(time.Minute)
			if code == 0 {
				wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 0, "")
			} else {
				wantJob(c, v1alpha1.PodCliqueSetPhaseFailed, 0, v1alpha1.ReasonMaxRestartsExceeded)
			}
			for _, pod := range All[*corev1.Pod](c) {
				if len(pod.Finalizers) > 0 {
					c.Fatalf("pod %s has finalizers", pod.Name)
				}
			}
			crashes := c.Crashes
			c.Delete(theSet(c, "job"))
			c.Advance(time.Minute)
			wantNothing(c)
			if crashes == 0 {
				break
			}
		}
	}
}

// TestFinalizersKeepNothing: all objects of a job are gone soon after it is deleted while it runs, and orphaned pods
// have no finalizer.
func TestFinalizersKeepNothing(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{}))
	c.Advance(time.Minute)
	c.Delete(theSet(c, "job"))
	c.Advance(time.Minute)
	wantNothing(c)

	c.Create(trainingSet(1, v1alpha1.TrainingSpec{}))
	c.Advance(time.Minute)
	for _, clique := range All[*v1alpha1.PodClique](c) {
		c.Delete(clique, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	}
	c.Delete(theSet(c, "job"))
	c.Advance(time.Minute)
	for _, pod := range All[*corev1.Pod](c) {
		if len(pod.Finalizers) > 0 {
			c.Fatalf("pod %s has finalizers", pod.Name)
		}
	}
}

// TestPodThatSucceededIsNeverMadeAgain: a pod that has succeeded is not created again, even if its object is deleted
// while muster-controller does not run.
func TestPodThatSucceededIsNeverMadeAgain(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{}))
	c.Advance(time.Minute)
	worker := podsOf(c, "job-0-ring-0-worker")[0]
	must(t, c.Kubelet.Exit(worker, 0))
	c.Advance(2 * time.Second)
	c.HoldBack(&v1alpha1.PodClique{}, &corev1.Pod{})
	c.Delete(worker)
	c.Advance(time.Minute)
	c.Restart()
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	running(c, 2)
	if pods := podsOf(c, "job-0-ring-0-worker"); len(pods) != 1 {
		c.Fatalf("%d pods of the workers, want the one that runs", len(pods))
	}
	finish(c, 0)
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 0, "")
}

// backOffs is a check: nothing is created for an attempt before its time. Source: docs/decisions, J12.
func backOffs(c *Cluster) error {
	for _, set := range All[*v1alpha1.PodCliqueSet](c) {
		for _, a := range set.Status.ReplicaAttempts {
			if a.NotBefore == nil || !c.Clock.Now().Before(a.NotBefore.Time) {
				continue
			}
			for _, clique := range All[*v1alpha1.PodClique](c) {
				if clique.Labels[v1alpha1.LabelPartOf] == set.Name && clique.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex] == fmt.Sprint(a.Index) &&
					workload.Attempt(clique).Set >= a.Attempt {
					return fmt.Errorf("PodClique %s of attempt %d exists before %s", clique.Name, a.Attempt, a.NotBefore)
				}
			}
		}
	}
	return nil
}

// skewed returns clocks for nodes n0 and n1, of which one or both are wrong, by seconds or by a day.
func skewed(seed int64) map[string]time.Duration {
	skews := []time.Duration{0, 3 * time.Second, -3 * time.Second, 5 * time.Minute, -5 * time.Minute, 24 * time.Hour, -24 * time.Hour}
	return map[string]time.Duration{"n0": skews[seed%7], "n1": skews[seed/7%7]}
}

// TestClocksOfNodes: the clock of a kubelet decides neither whether a deleted pod has succeeded, nor when a failed one
// is replaced, nor whether it is replaced with a back-off.
func TestClocksOfNodes(t *testing.T) {
	for seed := range int64(7) {
		t.Run(skewed(seed)["n0"].String(), func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(1, 8), Check: invariants()})
			c.Kubelet.Skew, c.Kubelet.StopCode = skewed(seed), ptr.To(int32(0))
			c.Create(wrappers.MakePodCliqueSet("job", "ns").Replicas(1).Training().
				Clique("worker", 3, wrappers.RestartPolicy(corev1.RestartPolicyNever), wrappers.GPUs(1), wrappers.MinAvailable(2)).Obj())
			c.Advance(10 * time.Second)
			for i, wait := range []time.Duration{0, 10 * time.Second, 20 * time.Second} {
				pod := podsOf(c, "job-0-worker")[0]
				must(t, c.Kubelet.Exit(pod, 1))
				if c.Advance(max(0, wait-2*time.Second)); wait > 0 && podsOf(c, "job-0-worker")[0].UID != pod.UID {
					c.Fatalf("failure %d: replaced before %s were over", i+1, wait)
				}
				c.Advance(6 * time.Second)
				running(c, 3)
			}
			c.Delete(podsOf(c, "job-0-worker")[0])
			c.Advance(time.Minute)
			running(c, 3) // it exited with 0 on SIGTERM, and was replaced
			if indices := All[*v1alpha1.PodClique](c)[0].Status.SucceededIndices; indices != "" {
				c.Fatalf("%s have succeeded", indices)
			}
			exit(c, "job-0-worker", 0)
			c.Advance(10 * time.Second)
			wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 0, "")
		})
	}
}

// TestJobsInAnyOrder: two replicas fail and succeed, with the steps in random orders, with crashes of the controllers
// at random writes, with caches that are held back, and with nodes whose clocks are wrong. Each failure is one restart,
// and in the end no object is left.
func TestJobsInAnyOrder(t *testing.T) {
	for seed := range int64(20) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			random := rand.New(rand.NewSource(seed))
			c := New(t, Options{Nodes: Nodes(2, 4), Seed: seed + 1, Interleaved: seed%2 == 1, Check: both(invariants(), both(backOffs, overdue()))})
			c.Kubelet.Linger = time.Duration(random.Intn(20)) * time.Second
			c.Kubelet.Skew = skewed(seed)
			act := func(what func()) {
				what()
				disturb(c, random)
			}
			act(func() { c.Create(trainingSet(2, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(3))})) })
			c.Advance(time.Minute)
			running(c, 6)
			act(func() { exit(c, "job-0-ring-0-worker", 1) })
			c.Advance(2 * time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 1, "")
			running(c, 6)
			act(func() { exit(c, "job-1-launcher", 1); exit(c, "job-1-ring-0-worker", 2) })
			c.Advance(2 * time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 2, "")
			running(c, 6)
			act(func() { finish(c, 1) })
			c.Advance(time.Minute)
			act(func() {
				for _, pod := range podsOf(c, "job-1-ring-0-worker") {
					c.Delete(pod)
				}
			})
			act(func() { c.Delete(podsOf(c, "job-0-launcher")[0]) })
			c.Advance(2 * time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 3, "")
			running(c, 3)
			if seed%2 == 0 {
				act(func() { finish(c, 0) })
				c.Advance(time.Minute)
				wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 3, "")
			} else {
				act(func() { exit(c, "job-0-launcher", 1) })
				c.Advance(2 * time.Minute)
				wantJob(c, v1alpha1.PodCliqueSetPhaseFailed, 3, v1alpha1.ReasonMaxRestartsExceeded)
			}
			running(c, 0)
			act(func() { c.Delete(theSet(c, "job")) })
			c.Advance(2 * time.Minute)
			wantNothing(c)
		})
	}
}

// A pod that has succeeded is deleted before the cache shows that its success was recorded: its index is not created
// again. Source: docs/decisions, J5.
func TestSuccessThatTheCacheDoesNotShow(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 2), Check: invariants()})
	c.Create(wrappers.MakePodCliqueSet("job", "ns").Training().
		Clique("worker", 2, wrappers.MinAvailable(1), wrappers.RestartPolicy(corev1.RestartPolicyNever), wrappers.GPUs(1)).Obj())
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	c.HoldBack(&v1alpha1.PodClique{})
	first := podsOf(c, "job-0-worker")[0]
	must(t, c.Kubelet.Exit(first, 0))
	c.Advance(2 * time.Second)
	c.Delete(first.DeepCopy())
	c.Advance(10 * time.Second)
	if pods := podsOf(c, "job-0-worker"); len(pods) != 1 {
		t.Fatalf("%d pods, want only the one that has not succeeded", len(pods))
	}
	c.Deliver(&v1alpha1.PodClique{})
	must(t, c.Kubelet.Exit(podsOf(c, "job-0-worker")[0], 0))
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 0, "")
}
