// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// TestJobHistories: pods of a random job fail and succeed, nodes stop answering, alone or most of them together, are
// deleted and come back, the scheduler stands still, users delete pods and PodCliques, schedulers preempt, the
// controllers and the scheduler restart, and caches are held back. restartCount counts the failures that restarted a
// replica and stays within maxRestarts, an index that has succeeded is not created again, nothing ends because of what
// is not known, and after all faults have ended the job succeeds, or has failed after as many restarts as it may have.
func TestJobHistories(t *testing.T) {
	for _, seed := range seeds(10) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			f := newJobFuzz(t, seed)
			for range 4 + f.random.Intn(10) {
				f.act()
				if f.random.Intn(3) == 0 {
					disturb(f.Cluster, f.random)
				}
				for range f.random.Intn(100) {
					f.Step()
				}
				f.Advance(time.Duration(f.random.Intn(90_000)) * time.Millisecond)
			}
			f.finishAll()
		})
	}
}

// jobFuzz is a job to which random things happen.
type jobFuzz struct {
	*Cluster
	random *rand.Rand
	lost   []string
	isFull bool // all nodes are cordoned
}

func newJobFuzz(t *testing.T, seed int64) *jobFuzz {
	f := &jobFuzz{random: rand.New(rand.NewSource(seed))}
	set := trainingSet(1+f.random.Int31n(2), v1alpha1.TrainingSpec{MaxRestarts: ptr.To(f.random.Int31n(6))})
	for _, clique := range set.Spec.Template.Cliques {
		clique.Spec.Replicas = 1 + f.random.Int31n(3)
		clique.Spec.MinAvailable = ptr.To(1 + f.random.Int31n(clique.Spec.Replicas))
		if f.random.Intn(4) == 0 {
			clique.Spec.PodSpec.RestartPolicy = corev1.RestartPolicyOnFailure
		}
	}
	if f.random.Intn(2) == 0 {
		set.Spec.Template.UnreachableGrace = &metav1.Duration{Duration: time.Duration(f.random.Intn(90)) * time.Second}
	}
	config := &set.Spec.Template.PodCliqueScalingGroupConfigs[0]
	config.Replicas = ptr.To(1 + f.random.Int31n(2))
	config.MinAvailable = ptr.To(1 + f.random.Int31n(*config.Replicas))
	jobs, w := soakJobs{}, jobWatch{done: map[types.UID]lifecycle.IndexSet{}, seen: map[types.UID]bool{}}
	f.Cluster = New(t, Options{Nodes: Nodes(20, 2), Seed: seed, Interleaved: seed%2 == 1,
		Check: onChange(both(both(invariants(), both(backOffs, overdue())), both(both(jobs.check, w.check), nothingEndsUnknown())))})
	f.Kubelet.Linger = time.Duration(f.random.Intn(10)) * time.Second
	f.Kubelet.LingerUpTo = time.Duration(f.random.Intn(30)) * time.Second
	f.Create(set)
	f.Advance(time.Minute)
	return f
}

func (f *jobFuzz) live() []*corev1.Pod {
	return slices.DeleteFunc(All[*corev1.Pod](f.Cluster), func(p *corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || slices.Contains(f.lost, p.Spec.NodeName)
	})
}

// act performs one random action.
func (f *jobFuzz) act() {
	random, pods := f.random, f.live()
	if len(pods) == 0 {
		f.restoreOne()
		return
	}
	pod := pods[random.Intn(len(pods))]
	switch random.Intn(17) {
	case 0, 1:
		f.Timeline.Say("pod %s exits with 1", pod.Name)
		must(f.t, f.Kubelet.Exit(pod, 1))
	case 2:
		f.Timeline.Say("pod %s is evicted", pod.Name)
		must(f.t, f.Kubelet.Evict(pod))
	case 3:
		f.Timeline.Say("a user deletes pod %s", pod.Name)
		f.Delete(pod.DeepCopy())
	case 4, 5:
		for _, p := range pods {
			if random.Intn(4) == 0 {
				f.Timeline.Say("pod %s exits with 0", p.Name)
				must(f.t, f.Kubelet.Exit(p, 0))
			}
		}
	case 6:
		f.Timeline.Say("node %s does not answer", pod.Spec.NodeName)
		must(f.t, f.Kubelet.LoseNode(pod.Spec.NodeName))
		f.lost = append(f.lost, pod.Spec.NodeName)
		if random.Intn(2) == 0 { // its peers exit, because they wait for it
			f.Advance(time.Duration(random.Intn(20)) * time.Second)
			for _, p := range f.live() {
				must(f.t, f.Kubelet.Exit(p, 1))
			}
		}
	case 7:
		f.Timeline.Say("node %s is deleted", pod.Spec.NodeName)
		must(f.t, f.Kubelet.DeleteNode(pod.Spec.NodeName))
		f.lost = append(f.lost, pod.Spec.NodeName)
	case 8, 9:
		f.restoreOne()
	case 10:
		f.Timeline.Say("node %s does not answer for a moment", pod.Spec.NodeName)
		must(f.t, f.Kubelet.LoseNode(pod.Spec.NodeName))
		for range random.Intn(40) {
			f.Step()
		}
		f.Advance(time.Duration(random.Intn(3000)) * time.Millisecond)
		must(f.t, f.Kubelet.RestoreNode(pod.Spec.NodeName))
	case 11:
		clique := pod.Labels[v1alpha1.LabelPodClique]
		f.Timeline.Say("a user deletes PodClique %s", clique)
		deleteCliques(f.Cluster, clique)
	case 12:
		f.Timeline.Say("pods of PodClique %s are preempted", pod.Labels[v1alpha1.LabelPodClique])
		f.isFull = true
		preempt(f.Cluster, slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
			return p.Labels[v1alpha1.LabelPodClique] != pod.Labels[v1alpha1.LabelPodClique] || p.UID != pod.UID && random.Intn(2) == 0
		})...)
	case 14:
		f.Timeline.Say("most nodes do not answer")
		for _, node := range All[*corev1.Node](f.Cluster) {
			if !slices.Contains(f.lost, node.Name) && random.Intn(4) > 0 {
				must(f.t, f.Kubelet.LoseNode(node.Name))
				f.lost = append(f.lost, node.Name)
			}
		}
		f.Advance(time.Duration(random.Intn(120)) * time.Second)
		for len(f.lost) > 0 && random.Intn(30) > 0 {
			f.restoreOne()
		}
	case 15:
		f.Timeline.Say("Node %s is deleted, and registered again", pod.Spec.NodeName)
		must(f.t, f.Kubelet.DeleteNode(pod.Spec.NodeName))
		f.Advance(time.Duration(random.Intn(5000)) * time.Millisecond)
		must(f.t, f.Kubelet.RestoreNode(pod.Spec.NodeName))
	case 16:
		f.StopScheduler()
		f.Advance(time.Duration(random.Intn(90)) * time.Second)
		f.act()
		f.Advance(time.Duration(random.Intn(90)) * time.Second)
		f.ContinueScheduler()
	case 13:
		f.Kubelet.StartAfter = time.Duration(random.Intn(30)) * time.Second
	}
}

// restoreOne makes one node answer again, or all nodes schedulable.
func (f *jobFuzz) restoreOne() {
	if f.isFull {
		f.isFull = false
		cordon(f.Cluster, false)
	}
	if len(f.lost) > 0 {
		f.Timeline.Say("node %s answers again", f.lost[0])
		must(f.t, f.Kubelet.RestoreNode(f.lost[0]))
		f.lost = f.lost[1:]
	}
}

// finishAll ends all faults, and lets all pods succeed until the job has finished, which it must.
func (f *jobFuzz) finishAll() {
	f.Timeline.Say("all is well from now on")
	for f.isFull || len(f.lost) > 0 {
		f.restoreOne()
	}
	f.Kubelet.StartAfter = time.Second
	for range 60 {
		f.Advance(time.Minute)
		for _, pod := range f.live() {
			must(f.t, f.Kubelet.Exit(pod, 0))
		}
	}
	set := theSet(f.Cluster, "job")
	switch s := set.Status; {
	case s.Phase == v1alpha1.PodCliqueSetPhaseSucceeded:
		for _, q := range All[*v1alpha1.PodClique](f.Cluster) {
			if n := int32(lifecycle.ParseIndices(q.Status.SucceededIndices).Len()); n < workload.Minimum(q).Target() {
				f.Fatalf("the job has succeeded, and %d pods of PodClique %s have", n, q.Name)
			}
		}
	case s.Phase != v1alpha1.PodCliqueSetPhaseFailed || s.RestartCount != *set.Spec.TrainingSpec.MaxRestarts ||
		!meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionFailed):
		f.Fatalf("the job is %s after %d of %d restarts: %+v", s.Phase, s.RestartCount, *set.Spec.TrainingSpec.MaxRestarts, s.Conditions)
	}
	for _, pod := range All[*corev1.Pod](f.Cluster) {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed || len(pod.Finalizers) > 0 {
			f.Fatalf("the job is over, and pod %s is %s, with finalizers %v", pod.Name, pod.Status.Phase, pod.Finalizers)
		}
	}
}

// jobWatch is the state of the check that what has succeeded stays so.
type jobWatch struct {
	done map[types.UID]lifecycle.IndexSet // of PodCliques
	seen map[types.UID]bool               // pods
}

func (w jobWatch) check(c *Cluster) error {
	for _, pod := range All[*corev1.Pod](c) {
		if w.seen[pod.UID] {
			continue
		}
		w.seen[pod.UID] = true
		if i := naming.LabelIndex(pod.Labels, v1alpha1.LabelPodIndex); w.done[owner(pod)].Has(i) {
			return fmt.Errorf("pod %s is created, and index %d has succeeded", pod.Name, i)
		}
	}
	for _, q := range All[*v1alpha1.PodClique](c) {
		now := lifecycle.ParseIndices(q.Status.SucceededIndices)
		for i := range int(q.Spec.Replicas) {
			if w.done[q.UID].Has(i) && !now.Has(i) {
				return fmt.Errorf("index %d of PodClique %s had succeeded: now %s", i, q.Name, q.Status.SucceededIndices)
			}
		}
		w.done[q.UID] = now
	}
	return nil
}
