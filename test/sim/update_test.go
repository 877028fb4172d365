// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
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

// broken is the prefix of images whose pods never become ready, with breakImages.
const broken = "registry.example/broken:"

func breakImages(c *Cluster) {
	c.API.watch(func(change Change) {
		if pod, ok := change.New.(*corev1.Pod); ok && change.Old == nil && strings.HasPrefix(pod.Spec.Containers[0].Image, broken) {
			c.Kubelet.setSick(pod, true)
		}
	})
}

// wantUpdated fails the test unless the update of every set has ended, every pod follows the template of its PodClique,
// and every PodClique that of the set.
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
	wantTemplateHashes(c)
}

// wantTemplateHashes fails the test unless the status of each scaling group with replicas has the template hashes of
// its pods.
func wantTemplateHashes(c *Cluster) {
	c.t.Helper()
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		hashes := map[string]string{}
		for _, h := range g.Status.CurrentPodTemplateHashes {
			hashes[h.Name] = h.Hash
		}
		for _, pod := range All[*corev1.Pod](c) {
			name, hash := pod.Labels[v1alpha1.LabelTemplateName], pod.Labels[v1alpha1.LabelPodTemplateHash]
			if pod.Labels[v1alpha1.LabelPodCliqueScalingGroup] == g.Name && hashes[name] != hash {
				c.Fatalf("group %s: the template hashes are %v, and pod %s has %s", g.Name, hashes, pod.Name, hash)
			}
		}
	}
}

// newRollout returns a cluster with room for chat and one more replica of its scaling group, on which chat with this
// number of replicas is available.
func newRollout(t *testing.T, replicas int32, edit func(*v1alpha1.PodCliqueSet)) *Cluster {
	t.Helper()
	c := New(t, Options{Nodes: Nodes(2*int(replicas), 4), Check: both(invariants(), both(terminations(), updates()))})
	c.Kubelet.Linger = 10 * time.Second
	set := podCliqueSet()
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

// An update of all cliques proceeds through two replicas of a set, the highest index first, one pod or one replica of a
// group at a time.
func TestRollout(t *testing.T) {
	c := newRollout(t, 2, nil)
	before := uids(c)
	c.Timeline.Say("all images are changed")
	image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
	c.Advance(10 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 16)
	wantReplaced(c, before, "chat-")
	c.Timeline.Golden(t, "rollout")
}

// A change of one clique of a scaling group replaces the replicas of the group, and no other pods.
func TestRolloutOfAGroup(t *testing.T) {
	c := newRollout(t, 1, nil)
	before := uids(c)
	c.Timeline.Say("the image of the leader is changed")
	image(c, podCliqueSet(), "registry.example/main:2", "leader")
	c.Advance(10 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 8)
	wantReplaced(c, before, "chat-0-model-")
	c.Timeline.Golden(t, "rollout-group")
}
