// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// TestOnePodForEachIndex: nodes of a random job or service stop answering, are deleted and come back, pods end and are
// deleted, some with a finalizer of others, templates are edited, sets are deleted and created again, and the
// controllers restart, while their caches are held back. No index has two pods that have not ended, unless one was lost
// with its node.
func TestOnePodForEachIndex(t *testing.T) {
	for _, seed := range seeds(20) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			f := newIndexFuzz(t, seed)
			for range 3 + f.random.Intn(8) {
				held := f.holdSome()
				for range 1 + f.random.Intn(3) {
					f.act()
					f.pass(45_000)
				}
				f.Deliver(held...)
				f.pass(30_000)
			}
		})
	}
}

// indexFuzz is a set to which random things happen while caches are behind.
type indexFuzz struct {
	*Cluster
	random *rand.Rand
	lost   []string
	set    *v1alpha1.PodCliqueSet
}

func newIndexFuzz(t *testing.T, seed int64) *indexFuzz {
	f := &indexFuzz{random: rand.New(rand.NewSource(seed))}
	if f.random.Intn(3) > 0 {
		f.set = trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To[int32](100)})
		for _, clique := range f.set.Spec.Template.Cliques {
			clique.Spec.Replicas = 1 + f.random.Int31n(3)
			clique.Spec.MinAvailable = ptr.To(1 + f.random.Int31n(clique.Spec.Replicas))
		}
	} else {
		f.set = podCliqueSet()
		if f.random.Intn(2) == 0 {
			f.set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Duration(1+f.random.Intn(60)) * time.Second}
		}
	}
	f.Cluster = New(t, Options{Nodes: Nodes(6, 4), Seed: seed, Interleaved: seed%2 == 1, Check: onChange(hosts{}.check)})
	f.Kubelet.Linger = time.Duration(f.random.Intn(10)) * time.Second
	f.Kubelet.LingerUpTo = time.Duration(f.random.Intn(40)) * time.Second
	f.Create(f.set.DeepCopy())
	f.Advance(30 * time.Second)
	return f
}

// holdSome holds back the caches of random kinds.
func (f *indexFuzz) holdSome() (held []client.Object) {
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.Node{}, &v1alpha1.PodClique{}, &v1alpha1.PodCliqueScalingGroup{}, &v2alpha2.PodGroup{}, &v1alpha1.PodCliqueSet{}} {
		if f.random.Intn(4) == 0 {
			held = append(held, kind)
		}
	}
	f.HoldBack(held...)
	return held
}

// pass lets random steps and time pass, with a moment in which the caches show single changes.
func (f *indexFuzz) pass(most int) {
	for range f.random.Intn(60) {
		f.Step()
	}
	if f.random.Intn(3) > 0 {
		f.Advance(time.Duration(f.random.Intn(most)) * time.Millisecond)
	}
	for range f.random.Intn(4) {
		f.Show()
		for range f.random.Intn(20) {
			f.Step()
		}
	}
}

// act performs one random action.
func (f *indexFuzz) act() {
	pods := slices.DeleteFunc(All[*corev1.Pod](f.Cluster), func(p *corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || slices.Contains(f.lost, p.Spec.NodeName)
	})
	if len(pods) == 0 || len(f.lost) > 3 {
		f.restore()
		return
	}
	pod := pods[f.random.Intn(len(pods))]
	switch f.random.Intn(14) {
	case 0, 1:
		f.Timeline.Say("node %s does not answer", pod.Spec.NodeName)
		must(f.t, f.Kubelet.LoseNode(pod.Spec.NodeName))
		f.lost = append(f.lost, pod.Spec.NodeName)
	case 2, 3:
		f.Timeline.Say("node %s is deleted", pod.Spec.NodeName)
		must(f.t, f.Kubelet.DeleteNode(pod.Spec.NodeName))
		f.lost = append(f.lost, pod.Spec.NodeName)
	case 4, 5:
		f.restore()
	case 6:
		must(f.t, f.Kubelet.Exit(pod, int32(f.random.Intn(2))))
	case 7:
		must(f.t, f.Kubelet.Evict(pod))
	case 8, 9:
		f.Timeline.Say("a user deletes pod %s", pod.Name)
		f.Delete(pod.DeepCopy())
	case 10:
		f.Timeline.Say("pod %s gets a finalizer, or loses it", pod.Name)
		f.toggle(pod)
	case 11:
		f.CrashAfterWrites(f.random.Intn(10))
	case 12:
		clique := pod.Labels[v1alpha1.LabelPodClique]
		f.Timeline.Say("a user deletes PodClique %s", clique)
		deleteCliques(f.Cluster, clique)
	case 13:
		f.replaceSet()
	}
}

// restore makes a node answer again, and removes foreign finalizers.
func (f *indexFuzz) restore() {
	if len(f.lost) > 0 {
		f.Timeline.Say("node %s answers again", f.lost[0])
		must(f.t, f.Kubelet.RestoreNode(f.lost[0]))
		f.lost = f.lost[1:]
	}
	for _, pod := range All[*corev1.Pod](f.Cluster) {
		if slices.Contains(pod.Finalizers, foreignFinalizer) {
			f.toggle(pod)
		}
	}
}

// toggle adds the finalizer of a user to a pod, or removes it.
func (f *indexFuzz) toggle(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil && !slices.Contains(pod.Finalizers, foreignFinalizer) {
		return
	}
	Edit(f.Cluster, pod.DeepCopy(), func(p *corev1.Pod) {
		if i := slices.Index(p.Finalizers, foreignFinalizer); i >= 0 {
			p.Finalizers = slices.Delete(p.Finalizers, i, i+1)
		} else {
			p.Finalizers = append(p.Finalizers, foreignFinalizer)
		}
	})
}

// foreignFinalizer is a finalizer that a user has put on objects.
const foreignFinalizer = "example.com/keep"

// replaceSet edits the template of a service; a job is deleted, and created again.
func (f *indexFuzz) replaceSet() {
	sets := All[*v1alpha1.PodCliqueSet](f.Cluster)
	if !f.set.Spec.IsTraining() {
		f.Timeline.Say("a user edits the template")
		Edit(f.Cluster, f.set.DeepCopy(), func(s *v1alpha1.PodCliqueSet) {
			clique := s.Spec.Template.Cliques[f.random.Intn(len(s.Spec.Template.Cliques))]
			clique.Spec.PodSpec.Containers[0].Image = fmt.Sprintf("registry.example/main:%d", f.random.Intn(4))
		})
		return
	}
	if len(sets) > 0 {
		f.Timeline.Say("a user deletes the set, and creates it again")
		f.Delete(sets[0].DeepCopy())
	}
	if len(All[*v1alpha1.PodCliqueSet](f.Cluster)) == 0 {
		f.Create(f.set.DeepCopy())
	}
}
