// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/rounds"
)

// seeds returns this many seeds, times ROUNDS, from FIRST on, which is 1 unless it is set.
func seeds(runs int) []int64 {
	first, err := strconv.ParseInt(os.Getenv("FIRST"), 10, 64)
	if err != nil {
		first = 1
	}
	var seeds []int64
	for i := range int64(runs * rounds.Number()) {
		seeds = append(seeds, first+i)
	}
	return seeds
}

// updateFuzz is a set whose template is edited in random ways.
type updateFuzz struct {
	*Cluster
	random   *rand.Rand
	set      *v1alpha1.PodCliqueSet
	version  int
	edited   bool // the template was edited
	onDelete bool // the strategy was OnDelete, or is
	sick     []*corev1.Pod
	lost     []string
	least    map[string]int32         // minAvailable of standalone cliques and groups
	past     []map[string]podTemplate // the templates of the set so far
	isFull   bool                     // all nodes are cordoned
}

// newUpdateFuzz returns a cluster in which a random set is available. options are completed.
func newUpdateFuzz(t *testing.T, seed int64, options Options) *updateFuzz {
	random := rand.New(rand.NewSource(seed))
	f := &updateFuzz{random: random, least: map[string]int32{}, version: 1}
	f.set = f.randomSet()
	f.past = append(f.past, templatesOf(f.set))
	options.Seed = seed
	options.Check = onChange(both(invariants(), both(both(terminations(), overdue()), updates())))
	f.Cluster = New(t, options)
	breakImages(f.Cluster)
	f.Kubelet.Linger = time.Duration(random.Intn(10)) * time.Second
	f.Kubelet.LingerUpTo = time.Duration(random.Intn(20)) * time.Second
	f.Create(f.set.DeepCopy())
	f.Advance(2 * time.Minute)
	wantEveryPodReady(f.Cluster)
	return f
}

// randomSet returns a set of up to 3 standalone cliques and up to 2 scaling groups, in one of four cases of groups
// alone.
func (f *updateFuzz) randomSet() *v1alpha1.PodCliqueSet {
	random, set := f.random, podCliqueSet()
	template := set.Spec.Template.Cliques[0]
	set.Spec.Template.Cliques, set.Spec.Template.PodCliqueScalingGroupConfigs = nil, nil
	add := func(name string, replicas int32) {
		clique := template.DeepCopy()
		clique.Name, clique.Spec.RoleName, clique.Spec.Replicas = name, name, replicas
		clique.Spec.MinAvailable = ptr.To(1 + random.Int31n(replicas))
		set.Spec.Template.Cliques = append(set.Spec.Template.Cliques, clique)
	}
	groups, standalone := random.Intn(3), 1+random.Intn(3)
	if random.Intn(4) == 0 {
		groups, standalone = max(1, groups), 0
	}
	for i := range standalone {
		name := fmt.Sprintf("s%d", i)
		add(name, 1+random.Int31n(3))
		f.least[name] = *set.Spec.Template.Clique(name).Spec.MinAvailable
	}
	for i := range groups {
		g := v1alpha1.PodCliqueScalingGroupConfig{Name: fmt.Sprintf("g%d", i), Replicas: ptr.To(1 + random.Int31n(3))}
		g.MinAvailable = ptr.To(1 + random.Int31n(*g.Replicas))
		for j := range 1 + random.Intn(2) {
			name := fmt.Sprintf("m%d%d", i, j)
			add(name, 1+random.Int31n(2))
			g.CliqueNames = append(g.CliqueNames, name)
		}
		f.least[g.Name] = *g.MinAvailable
		set.Spec.Template.PodCliqueScalingGroupConfigs = append(set.Spec.Template.PodCliqueScalingGroupConfigs, g)
	}
	set.Spec.Replicas = 1 + random.Int31n(3)
	if random.Intn(2) == 0 {
		set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Duration(10+random.Intn(120)) * time.Second}
	}
	if random.Intn(4) == 0 {
		set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
		f.onDelete = true
	}
	return set
}

// edit changes the set.
func (f *updateFuzz) edit(what string, change func(*v1alpha1.PodCliqueSet)) {
	f.Timeline.Say("the set: %s", what)
	Edit(f.Cluster, f.set.DeepCopy(), func(s *v1alpha1.PodCliqueSet) {
		before := s.DeepCopy()
		change(s)
		f.past = append(f.past, templatesOf(s))
		f.edited = f.edited || !reflect.DeepEqual(before.Spec.Template, s.Spec.Template)
	})
}

// images changes the image of some of the cliques.
func (f *updateFuzz) images(name func(version int) string, all bool) {
	f.version++
	f.edit("images "+name(f.version), func(s *v1alpha1.PodCliqueSet) {
		for i, clique := range s.Spec.Template.Cliques {
			if all || i == f.version%len(s.Spec.Template.Cliques) || f.random.Intn(2) == 0 {
				clique.Spec.PodSpec.Containers[0].Image = name(f.version)
			}
		}
	})
}

func newImage(version int) string { return fmt.Sprintf("registry.example/main:%d", version) }

// act performs one random action on the set or the cluster.
func (f *updateFuzz) act() {
	random := f.random
	switch random.Intn(16) {
	case 0, 1, 2:
		f.images(newImage, false)
	case 3:
		f.images(func(int) string { return newImage(1 + random.Intn(2)) }, true) // may be a rollback
	case 4:
		f.images(func(v int) string { return broken + strconv.Itoa(v) }, false)
	case 5:
		f.version++
		f.edit("an annotation", func(s *v1alpha1.PodCliqueSet) {
			clique := s.Spec.Template.Cliques[random.Intn(len(s.Spec.Template.Cliques))]
			clique.Annotations = map[string]string{"version": strconv.Itoa(f.version)}
		})
	case 6:
		n := random.Int31n(4)
		f.edit(fmt.Sprintf("%d replicas", n), func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = n })
	case 7, 8:
		f.scale()
	case 9, 10:
		f.sicken()
	case 11:
		f.loseOrRestore()
	case 12:
		f.deletePod()
	case 13:
		f.Kubelet.ReadyAfter = time.Duration(1+random.Intn(40)) * time.Second
	case 14:
		if cliques := All[*v1alpha1.PodClique](f.Cluster); len(cliques) > 0 {
			clique := cliques[random.Intn(len(cliques))]
			f.Timeline.Say("a user deletes PodClique %s", clique.Name)
			f.Delete(clique.DeepCopy())
		}
	case 15:
		if random.Intn(2) == 0 {
			f.strategy(random.Intn(2) == 0)
		}
	}
}

func (f *updateFuzz) strategy(onDelete bool) {
	strategy := v1alpha1.RollingRecreateStrategyType
	if onDelete {
		strategy, f.onDelete = v1alpha1.OnDeleteStrategyType, true
	}
	f.edit("strategy "+string(strategy), func(s *v1alpha1.PodCliqueSet) {
		s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: strategy}
	})
}

// scale scales a standalone PodClique or a scaling group.
func (f *updateFuzz) scale() {
	groups := All[*v1alpha1.PodCliqueScalingGroup](f.Cluster)
	if len(groups) > 0 && f.random.Intn(2) == 0 {
		g := groups[f.random.Intn(len(groups))]
		n := f.least[g.Labels[v1alpha1.LabelTemplateName]] + f.random.Int31n(3)
		f.Timeline.Say("group %s is scaled to %d", g.Name, n)
		Edit(f.Cluster, g.DeepCopy(), func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = n })
		return
	}
	cliques := slices.DeleteFunc(All[*v1alpha1.PodClique](f.Cluster), func(q *v1alpha1.PodClique) bool {
		return q.Labels[v1alpha1.LabelPodCliqueScalingGroup] != "" || q.DeletionTimestamp != nil
	})
	if len(cliques) == 0 {
		return
	}
	q := cliques[f.random.Intn(len(cliques))]
	n := f.least[q.Labels[v1alpha1.LabelTemplateName]] + f.random.Int31n(3)
	f.Timeline.Say("PodClique %s is scaled to %d", q.Name, n)
	Edit(f.Cluster, q.DeepCopy(), func(q *v1alpha1.PodClique) { q.Spec.Replicas = n })
}

func (f *updateFuzz) readyPods() []*corev1.Pod {
	return slices.DeleteFunc(All[*corev1.Pod](f.Cluster), func(p *corev1.Pod) bool { return !isUp(p) })
}

func (f *updateFuzz) sicken() {
	for range 1 + f.random.Intn(2) {
		pods := f.readyPods()
		if len(pods) == 0 {
			return
		}
		pod := pods[f.random.Intn(len(pods))]
		f.Timeline.Say("pod %s fails", pod.Name)
		switch f.random.Intn(4) {
		case 0:
			must(f.t, f.Kubelet.Evict(pod))
		case 1:
			must(f.t, f.Kubelet.Exit(pod, 1))
		default:
			must(f.t, f.Kubelet.FailReadiness(pod))
			f.sick = append(f.sick, pod)
		}
	}
}

func (f *updateFuzz) loseOrRestore() {
	if len(f.lost) > 0 && f.random.Intn(2) == 0 {
		f.Timeline.Say("node %s answers again", f.lost[0])
		must(f.t, f.Kubelet.RestoreNode(f.lost[0]))
		f.lost = f.lost[1:]
		return
	}
	pods := f.readyPods()
	if len(pods) == 0 {
		return
	}
	node := pods[f.random.Intn(len(pods))].Spec.NodeName
	if !slices.Contains(f.lost, node) {
		f.Timeline.Say("node %s is lost", node)
		must(f.t, f.Kubelet.LoseNode(node))
		f.lost = append(f.lost, node)
	}
}

func (f *updateFuzz) deletePod() {
	if pods := f.readyPods(); len(pods) > 0 {
		pod := pods[f.random.Intn(len(pods))]
		f.Timeline.Say("a user deletes pod %s", pod.Name)
		userDeletes(f.Cluster, pod)
	}
}

// heal ends all faults: probes pass, nodes are reachable, new pods are ready soon, and the template works. Pods that
// OnDelete has kept are rolled out.
func (f *updateFuzz) heal() {
	f.Timeline.Say("all is well from now on")
	for _, node := range f.lost {
		must(f.t, f.Kubelet.RestoreNode(node))
	}
	for _, pod := range f.sick {
		f.Kubelet.PassReadiness(pod)
	}
	f.Kubelet.ReadyAfter = 2 * time.Second
	f.rollTo(0, false)
	cordon(f.Cluster, false)
	current := f.set.DeepCopy()
	Edit(f.Cluster, current, func(*v1alpha1.PodCliqueSet) {})
	if f.onDelete {
		f.strategy(false)
		f.images(newImage, true)
	} else if slices.ContainsFunc(current.Spec.Template.Cliques, func(t *v1alpha1.PodCliqueTemplateSpec) bool {
		return strings.HasPrefix(t.Spec.PodSpec.Containers[0].Image, broken)
	}) {
		f.images(newImage, true)
	}
}

// wantEveryPodReady fails the test unless every set has all of its replicas, PodCliques, scaling groups and pods, all
// ready.
func wantEveryPodReady(c *Cluster) {
	c.t.Helper()
	ready, all := map[string]int32{}, map[string]int32{}
	for _, pod := range All[*corev1.Pod](c) {
		all[pod.Labels[v1alpha1.LabelPodClique]]++
		if isUp(pod) {
			ready[pod.Labels[v1alpha1.LabelPodClique]]++
		}
	}
	for _, q := range All[*v1alpha1.PodClique](c) {
		if n := q.Spec.Replicas; ready[q.Name] != n || all[q.Name] != n {
			c.Fatalf("PodClique %s has %d pods, %d of them ready, of %d", q.Name, all[q.Name], ready[q.Name], n)
		}
		delete(all, q.Name)
	}
	if len(all) > 0 {
		c.Fatalf("pods of PodCliques that are gone: %v", all)
	}
	for _, set := range All[*v1alpha1.PodCliqueSet](c) {
		standalone := 0
		for _, q := range All[*v1alpha1.PodClique](c) {
			if q.Labels[v1alpha1.LabelPodCliqueScalingGroup] == "" {
				standalone++
			}
		}
		members := len(set.Spec.Template.Cliques)
		for _, g := range set.Spec.Template.PodCliqueScalingGroupConfigs {
			members -= len(g.CliqueNames)
		}
		if want := members * int(set.Spec.Replicas); standalone != want {
			c.Fatalf("set %s has %d standalone PodCliques, want %d", set.Name, standalone, want)
		}
		if s := set.Status; s.AvailableReplicas != set.Spec.Replicas || s.UpdatedReplicas != set.Spec.Replicas {
			c.Fatalf("set %s: %d available replicas, %d updated, of %d", set.Name, s.AvailableReplicas, s.UpdatedReplicas, set.Spec.Replicas)
		}
	}
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		if s := g.Status; s.AvailableReplicas != g.Spec.Replicas || s.UpdatedReplicas != g.Spec.Replicas {
			c.Fatalf("group %s: %d available replicas, %d updated, of %d", g.Name, s.AvailableReplicas, s.UpdatedReplicas, g.Spec.Replicas)
		}
	}
}
