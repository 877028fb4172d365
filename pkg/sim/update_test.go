package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/observed"
)

// image changes the image of cliques of a set's template.
func image(c *Cluster, set *v1alpha1.PodCliqueSet, image string, cliques ...string) {
	c.t.Helper()
	Edit(c, set, func(s *v1alpha1.PodCliqueSet) {
		for _, name := range cliques {
			s.Spec.Template.Clique(name).Spec.PodSpec.Containers[0].Image = image
		}
	})
}

// wantUpdated fails the test unless the update of every set has ended, every pod follows the template of its PodClique, and
// that the one of the set.
func wantUpdated(c *Cluster) {
	c.t.Helper()
	sets := map[string]*v1alpha1.PodCliqueSet{}
	for _, set := range All[*v1alpha1.PodCliqueSet](c) {
		sets[set.Name] = set
		p := set.Status.UpdateProgress
		if p == nil || p.UpdateEndedAt == nil {
			c.Fatalf("the update of set %s has not ended: %+v, %+v", set.Name, p, set.Status.Conditions)
		}
		progressing := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing)
		if progressing.Status != metav1.ConditionFalse || progressing.ObservedGeneration != set.Generation {
			c.Fatalf("set %s: %+v, generation %d", set.Name, progressing, set.Generation)
		}
		if set.Status.UpdatedReplicas != set.Spec.Replicas || set.Status.ObservedGeneration != set.Generation {
			c.Fatalf("set %s: %d updated replicas of %d", set.Name, set.Status.UpdatedReplicas, set.Spec.Replicas)
		}
	}
	for _, pod := range All[*corev1.Pod](c) {
		set := sets[pod.Labels[v1alpha1.LabelPartOf]]
		want := set.Spec.Template.Clique(pod.Labels[v1alpha1.LabelTemplateName]).Spec.PodSpec.Containers[0].Image
		if pod.Spec.Containers[0].Image != want {
			c.Fatalf("pod %s has image %s, want %s", pod.Name, pod.Spec.Containers[0].Image, want)
		}
	}
}

// otherCauses are what pods are deleted for, beside an update: PodCliques that were scaled in, and pods that the test has deleted.
type otherCauses struct {
	scaledIn map[string]bool
	deleted  map[types.UID]bool
}

// updates returns what holds after every step of a rolling update: per PodClique and per scaling group one ready unit at most is
// in flight, and in one replica of a set only; no ready unit goes while fewer than minAvailable are there, by what the API server
// had a step before; and none that has the present template.
func updates(other *otherCauses) func(*Cluster) error {
	type known struct {
		pod   *corev1.Pod
		ready bool
	}
	before := map[types.UID]known{}
	flying := map[string]map[string]bool{} // host names, or replicas, by PodClique or scaling group
	attempts := map[string]int32{}
	available := map[string]bool{} // replicas of scaling groups, a step before
	count := map[string]int32{}    // available replicas by scaling group
	return func(c *Cluster) error {
		pods, cliques := map[types.UID]*corev1.Pod{}, map[types.UID]*v1alpha1.PodClique{}
		readyHosts := map[string]bool{}
		ready := map[types.UID]int32{} // a step before, by PodClique
		for _, k := range before {
			if ref := metav1.GetControllerOf(k.pod); ref != nil && k.ready {
				ready[ref.UID]++
			}
		}
		for _, pod := range All[*corev1.Pod](c) {
			pods[pod.UID] = pod
			if isReady(pod) && pod.DeletionTimestamp == nil {
				readyHosts[pod.Spec.Hostname] = true
			}
		}
		for _, q := range All[*v1alpha1.PodClique](c) {
			cliques[q.UID] = q
		}
		land := func(key string, landed func(unit string) bool) {
			for unit := range flying[key] {
				if landed(unit) {
					delete(flying[key], unit)
				}
			}
			if len(flying[key]) == 0 {
				delete(flying, key)
			}
		}
		launch := func(key, unit string) {
			if flying[key] == nil {
				flying[key] = map[string]bool{}
			}
			flying[key][unit] = true
		}
		names := map[string]*v1alpha1.PodClique{}
		for _, q := range cliques {
			names[q.Name] = q
		}
		// Pods of standalone PodCliques.
		for key := range flying {
			q := names[strings.TrimPrefix(key, "clique/")]
			if strings.HasPrefix(key, "clique/") {
				land(key, func(host string) bool {
					others := 0
					for _, pod := range pods {
						if q != nil && metav1.IsControlledBy(pod, q) && pod.DeletionTimestamp == nil && pod.Spec.Hostname != host {
							others++
						}
					}
					return q == nil || readyHosts[host] || others >= int(q.Spec.Replicas)
				})
			}
		}
		for uid, k := range before {
			pod := pods[uid]
			if !k.ready || k.pod.DeletionTimestamp != nil || pod != nil && pod.DeletionTimestamp == nil {
				continue
			}
			ref := metav1.GetControllerOf(k.pod)
			q := cliques[ref.UID]
			if q == nil || q.DeletionTimestamp != nil || q.Labels[v1alpha1.LabelPodCliqueScalingGroup] != "" || other.deleted[uid] {
				continue // it went with its PodClique
			}
			if k.pod.Labels[v1alpha1.LabelPodTemplateHash] == q.Labels[v1alpha1.LabelPodTemplateHash] {
				if !other.scaledIn[q.Name] {
					return fmt.Errorf("pod %s, which has the present template, was deleted", k.pod.Name)
				}
				continue
			}
			if other.scaledIn[q.Name] || observed.FollowsOnDelete(q) {
				continue
			}
			if needed := observed.Minimum(q).Enforced(); ready[ref.UID] < needed {
				return fmt.Errorf("ready pod %s was deleted while %d of %d needed pods were ready", k.pod.Name, ready[ref.UID], needed)
			}
			launch("clique/"+q.Name, k.pod.Spec.Hostname)
		}
		// Replicas of scaling groups.
		members := map[string]int{}
		readyPods := map[types.UID]int32{}
		for _, pod := range pods {
			if ref := metav1.GetControllerOf(pod); ref != nil && isReady(pod) && pod.DeletionTimestamp == nil {
				readyPods[ref.UID]++
			}
		}
		for _, q := range cliques {
			if g := q.Labels[v1alpha1.LabelPodCliqueScalingGroup]; g != "" && q.DeletionTimestamp == nil && readyPods[q.UID] >= observed.Minimum(q).Enforced() {
				members[fmt.Sprintf("%s/%d/%+v", g, observed.GroupReplicaIndex(q), observed.Attempt(q))]++
			}
		}
		for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
			isAvailable := func(j int) bool {
				return members[fmt.Sprintf("%s/%d/%+v", g.Name, j, observed.GroupAttempt(g, j))] == len(g.Spec.CliqueNames)
			}
			land("group/"+g.Name, func(unit string) bool {
				var j int
				fmt.Sscan(unit, &j)
				return j >= int(g.Spec.Replicas) || isAvailable(j)
			})
			for _, entry := range g.Status.ReplicaAttempts {
				key := fmt.Sprintf("%s/%d/%d", g.Name, g.Status.PodCliqueSetAttempt, entry.Index)
				if was := attempts[key]; entry.Attempt > was {
					attempts[key] = entry.Attempt
					if entry.Reason == v1alpha1.ReasonUpdate && available[fmt.Sprintf("%s/%d", g.Name, entry.Index)] {
						if needed := lifecycle.GroupMinimum(g.Spec.MinAvailable, g.Spec.Replicas); count[g.Name] < needed {
							return fmt.Errorf("available replica %d of %s is replaced while %d of %d needed are available", entry.Index, g.Name, count[g.Name], needed)
						}
						launch("group/"+g.Name, fmt.Sprint(entry.Index))
					}
				}
			}
			count[g.Name] = 0
			for j := range int(g.Spec.Replicas) {
				a := isAvailable(j)
				available[fmt.Sprintf("%s/%d", g.Name, j)] = a
				if a {
					count[g.Name]++
				}
			}
		}
		replicas := map[string][]string{}
		for key, units := range flying {
			if len(units) > 1 {
				return fmt.Errorf("%s: %v are in flight", key, units)
			}
			name := key[strings.Index(key, "/")+1:]
			var labels map[string]string
			if q := names[name]; q != nil {
				labels = q.Labels
			}
			for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
				if g.Name == name {
					labels = g.Labels
				}
			}
			if set := labels[v1alpha1.LabelPartOf]; set != "" && !slices.Contains(replicas[set], labels[v1alpha1.LabelPodCliqueSetReplicaIndex]) {
				replicas[set] = append(replicas[set], labels[v1alpha1.LabelPodCliqueSetReplicaIndex])
			}
		}
		for set, indices := range replicas {
			if len(indices) > 1 {
				return fmt.Errorf("set %s: replicas %v are updated at the same time", set, indices)
			}
		}
		before = map[types.UID]known{}
		for uid, pod := range pods {
			before[uid] = known{pod, isReady(pod) && pod.DeletionTimestamp == nil}
		}
		return nil
	}
}

// newRollout returns a cluster with room for chat and one more replica of its scaling group, on which chat with so many replicas is
// available.
func newRollout(t *testing.T, replicas int32, edit func(*v1alpha1.PodCliqueSet)) *Cluster {
	t.Helper()
	c := New(t, Options{Nodes: Nodes(2*int(replicas), 4), Check: both(invariants(), both(terminations(), updates(&otherCauses{map[string]bool{}, map[types.UID]bool{}})))})
	c.Kubelet.Linger = 10 * time.Second
	set := chat()
	set.Spec.Replicas = replicas
	if edit != nil {
		edit(set)
	}
	c.Timeline.Say("a set is created")
	c.Create(set)
	c.Advance(time.Minute)
	wantAvailable(c, 8*int(replicas))
	return c
}

// An update of everything goes through two replicas of a set, the highest first, one pod or one replica of a group at a time.
func TestRollout(t *testing.T) {
	c := newRollout(t, 2, nil)
	before := uids(c)
	c.Timeline.Say("all images are changed")
	image(c, chat(), "registry.example/main:2", "router", "leader", "worker")
	c.Advance(10 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 16)
	wantReplaced(c, before, "chat-")
	c.Timeline.Golden(t, "rollout")
}

// A change of one clique of a scaling group replaces the group's replicas, and nothing else.
func TestRolloutOfAGroup(t *testing.T) {
	c := newRollout(t, 1, nil)
	before := uids(c)
	c.Timeline.Say("the image of the leader is changed")
	image(c, chat(), "registry.example/main:2", "leader")
	c.Advance(10 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 8)
	wantReplaced(c, before, "chat-0-model-")
	c.Timeline.Golden(t, "rollout-group")
}
