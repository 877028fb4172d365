// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/workload"
)

// TestUpdateHistories is TestUpdatesInAnyOrder with pauses and partitions, earlier templates, nodes that are deleted
// and that flap, units that users delete in part, and too little room. Besides, replicas of scaling groups do not mix
// templates, and replicas below the partition get no newer one.
func TestUpdateHistories(t *testing.T) {
	for _, seed := range seeds(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			f := newHistory(t, seed)
			for range 5 + f.random.Intn(10) {
				if f.random.Intn(2) == 0 {
					f.act()
				} else {
					f.actMore()
				}
				if f.random.Intn(3) == 0 {
					disturb(f.Cluster, f.random)
				}
				for range f.random.Intn(200) {
					f.Step()
				}
				f.Advance(time.Duration(f.random.Intn(90_000)) * time.Millisecond)
			}
			f.heal()
			f.Advance(30 * time.Minute)
			if f.edited {
				wantUpdated(f.Cluster)
			}
			wantEveryPodReady(f.Cluster)
		})
	}
}

// newHistory returns a set that is edited in random ways, with the checks of TestUpdateHistories.
func newHistory(t *testing.T, seed int64) *updateFuzz {
	f := newUpdateFuzz(t, seed, Options{Nodes: Nodes(30, 4), Interleaved: seed%2 == 1})
	w := &historyWatch{f: f, sealed: map[int]int{}, seen: map[types.UID]bool{}}
	f.options.Check = both(f.options.Check, onChange(w.check))
	return f
}

// podTemplate is what the tests change of the template of a clique.
type podTemplate struct{ image, version string }

func templatesOf(set *v1alpha1.PodCliqueSet) map[string]podTemplate {
	templates := map[string]podTemplate{}
	for _, t := range set.Spec.Template.Cliques {
		templates[t.Name] = podTemplate{t.Spec.PodSpec.Containers[0].Image, t.Annotations["version"]}
	}
	return templates
}

func templateOf(pod *corev1.Pod) podTemplate {
	return podTemplate{pod.Spec.Containers[0].Image, pod.Annotations["version"]}
}

// rollTo sets the partition and the pause, unless the strategy is OnDelete.
func (f *updateFuzz) rollTo(partition int32, paused bool) {
	if s := theSet(f.Cluster, f.set.Name).Spec.UpdateStrategy; partition == 0 && !paused && (s == nil || s.RollingRecreate == nil) {
		return
	}
	f.edit(fmt.Sprintf("partition %d, paused %v", partition, paused), func(s *v1alpha1.PodCliqueSet) {
		if s.Spec.UpdateStrategy == nil {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.RollingRecreateStrategyType}
		}
		if s.Spec.UpdateStrategy.Type == v1alpha1.OnDeleteStrategyType {
			return
		}
		s.Spec.UpdateStrategy.RollingRecreate = &v1alpha1.RollingRecreateUpdateStrategy{Paused: paused}
		if partition > 0 {
			s.Spec.UpdateStrategy.RollingRecreate.Partition = ptr.To(partition)
		}
	})
}

// actMore performs one random action that act does not.
func (f *updateFuzz) actMore() {
	random := f.random
	switch random.Intn(13) {
	case 0, 1:
		f.rollTo(int32(random.Intn(4)), random.Intn(3) == 0)
	case 2:
		f.rollTo(0, true)
	case 3:
		f.rollTo(0, false)
	case 4, 5:
		old := f.past[random.Intn(len(f.past))]
		f.edit("an earlier template", func(s *v1alpha1.PodCliqueSet) {
			for _, t := range s.Spec.Template.Cliques {
				t.Spec.PodSpec.Containers[0].Image = old[t.Name].image
				t.Annotations = nil
				if v := old[t.Name].version; v != "" {
					t.Annotations = map[string]string{"version": v}
				}
			}
		})
	case 6, 7:
		f.deleteNode()
	case 8:
		f.flap()
	case 9, 10:
		f.deletePart()
	case 11:
		f.isFull = !f.isFull
		cordon(f.Cluster, f.isFull)
	case 12: // the minimum of a clique is short, and the set is scaled meanwhile
		f.sicken()
		for range random.Intn(100) {
			f.Step()
		}
		f.Advance(time.Duration(random.Intn(100)) * time.Second)
		n := random.Int31n(4)
		f.edit(fmt.Sprintf("%d replicas", n), func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = n })
	}
}

// deleteNode deletes a node with pods, or registers one again.
func (f *updateFuzz) deleteNode() {
	if len(f.lost) > 0 && f.random.Intn(2) == 0 {
		f.loseOrRestore()
		return
	}
	if pods := f.readyPods(); len(pods) > 0 {
		node := pods[f.random.Intn(len(pods))].Spec.NodeName
		if !slices.Contains(f.lost, node) {
			f.Timeline.Say("node %s is deleted", node)
			must(f.t, f.Kubelet.DeleteNode(node))
			f.lost = append(f.lost, node)
		}
	}
}

// flap makes a node stop answering for some seconds.
func (f *updateFuzz) flap() {
	before := len(f.lost)
	f.loseOrRestore()
	if len(f.lost) <= before {
		return
	}
	f.Advance(time.Duration(f.random.Intn(60_000)) * time.Millisecond)
	node := f.lost[before]
	f.Timeline.Say("node %s answers again", node)
	must(f.t, f.Kubelet.RestoreNode(node))
	f.lost = f.lost[:before]
}

// deletePart deletes some or all PodCliques of a unit as a user, with random pauses in between.
func (f *updateFuzz) deletePart() {
	cliques := slices.DeleteFunc(All[*v1alpha1.PodClique](f.Cluster), func(q *v1alpha1.PodClique) bool { return q.DeletionTimestamp != nil })
	if len(cliques) == 0 {
		return
	}
	one := cliques[f.random.Intn(len(cliques))]
	label := v1alpha1.LabelPodCliqueScalingGroup
	if f.random.Intn(2) == 0 || one.Labels[label] == "" {
		label = v1alpha1.LabelPodCliqueSetReplicaIndex
	}
	part := f.random.Intn(2) == 0
	for _, q := range cliques {
		if q.Labels[label] != one.Labels[label] ||
			label == v1alpha1.LabelPodCliqueScalingGroup && workload.GroupReplicaIndex(q) != workload.GroupReplicaIndex(one) ||
			part && f.random.Intn(2) == 0 {
			continue
		}
		f.Timeline.Say("a user deletes PodClique %s", q.Name)
		f.Delete(q.DeepCopy())
		if f.random.Intn(4) == 0 {
			for range f.random.Intn(30) {
				f.Step()
			}
		}
	}
}

// historyWatch is the state of the checks of TestUpdateHistories.
type historyWatch struct {
	f      *updateFuzz
	sealed map[int]int        // by replica below the partition: the number of templates that there had been
	seen   map[types.UID]bool // pods
}

func (w *historyWatch) check(c *Cluster) error {
	if w.f.onDelete {
		return nil
	}
	if err := w.checkGroups(c); err != nil {
		return err
	}
	return w.checkPartition(c)
}

// checkGroups checks that the pods of each replica of a scaling group are of one template of the set.
func (w *historyWatch) checkGroups(c *Cluster) error {
	cliques := map[types.UID]*v1alpha1.PodClique{}
	for _, q := range All[*v1alpha1.PodClique](c) {
		if q.DeletionTimestamp == nil && q.Labels[v1alpha1.LabelPodCliqueScalingGroup] != "" {
			cliques[q.UID] = q
		}
	}
	units := map[string][]*corev1.Pod{}
	for _, pod := range All[*corev1.Pod](c) {
		q := cliques[owner(pod)]
		if q == nil || pod.DeletionTimestamp != nil {
			continue
		}
		key := fmt.Sprintf("%s/%d/%+v", q.Labels[v1alpha1.LabelPodCliqueScalingGroup], workload.GroupReplicaIndex(q), workload.Attempt(q))
		units[key] = append(units[key], pod)
	}
	for key, pods := range units {
		if !slices.ContainsFunc(w.f.past, func(past map[string]podTemplate) bool {
			return !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
				return past[pod.Labels[v1alpha1.LabelTemplateName]] != templateOf(pod)
			})
		}) {
			text := ""
			for _, pod := range pods {
				text += fmt.Sprintf(" %s %v", pod.Name, templateOf(pod))
			}
			return fmt.Errorf("replica %s has pods of two templates:%s", key, text)
		}
	}
	return nil
}

// checkPartition checks that no pod of a replica below the partition is created from a template that came after the
// partition.
func (w *historyWatch) checkPartition(c *Cluster) error {
	for _, set := range All[*v1alpha1.PodCliqueSet](c) {
		partition := int(set.Spec.Partition())
		for i := range 10 {
			if _, is := w.sealed[i]; i < partition && !is {
				w.sealed[i] = len(w.f.past)
			} else if i >= partition {
				delete(w.sealed, i)
			}
		}
	}
	for _, pod := range All[*corev1.Pod](c) {
		if w.seen[pod.UID] {
			continue
		}
		w.seen[pod.UID] = true
		i, _ := strconv.Atoi(pod.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex])
		n, is := w.sealed[i]
		if is && !slices.ContainsFunc(w.f.past[:n], func(past map[string]podTemplate) bool {
			return past[pod.Labels[v1alpha1.LabelTemplateName]] == templateOf(pod)
		}) {
			return fmt.Errorf("pod %s of replica %d, below the partition, has template %v", pod.Name, i, templateOf(pod))
		}
	}
	return nil
}
