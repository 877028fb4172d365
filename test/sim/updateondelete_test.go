// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// Under OnDelete an edit deletes no pods: pods that a user deletes are created again with the new template, scaling in
// deletes those of the old one first, and the statuses count both.
func TestOnDelete(t *testing.T) {
	c := newService(t, Nodes(2, 4), 1, func(set *v1alpha1.PodCliqueSet) {
		set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
	})
	before := uids(c)
	c.Timeline.Say("the image becomes main:2")
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(10 * time.Minute)
	wantReplaced(c, before)
	wantProgress(c, lifecycle.UpdateOnDelete, "")
	onDelete := func() {
		t.Helper()
		set, q := theSet(c, "chat"), theClique(c, "chat-0-web")
		if p := set.Status.UpdateProgress; p == nil || p.UpdateEndedAt == nil || !p.UpdateEndedAt.Equal(&p.UpdateStartedAt) || p.CurrentlyUpdating != nil {
			c.Fatalf("progress of the set: %+v", p)
		}
		if p := q.Status.UpdateProgress; p == nil || p.UpdateEndedAt == nil || !p.UpdateEndedAt.Equal(&p.UpdateStartedAt) || p.ReadyPodsSelectedToUpdate != nil {
			c.Fatalf("progress of the PodClique: %+v", p)
		}
		if q.Status.UpdatedReplicas != int32(images(c)["main:2"]) {
			c.Fatalf("%d pods are updated by the status, of %v", q.Status.UpdatedReplicas, images(c))
		}
	}
	onDelete()
	c.Timeline.Say("a user deletes pod 1")
	userDeletes(c, podsOf(c, "chat-0-web")[1])
	c.Advance(time.Minute)
	wantReplaced(c, before, "chat-0-web-1")
	if n := images(c); n["main:1"] != 2 || n["main:2"] != 1 || theSet(c, "chat").Status.UpdatedReplicas != 0 {
		c.Fatalf("images %v, %d updated replicas", n, theSet(c, "chat").Status.UpdatedReplicas)
	}
	onDelete()
	c.Timeline.Say("the PodClique is scaled out to 5")
	Edit(c, theClique(c, "chat-0-web"), func(q *v1alpha1.PodClique) { q.Spec.Replicas = 5 })
	c.Advance(time.Minute)
	if n := images(c); n["main:1"] != 2 || n["main:2"] != 3 {
		c.Fatalf("images %v", n)
	}
	onDelete()
	c.Timeline.Say("and in to 4")
	Edit(c, theClique(c, "chat-0-web"), func(q *v1alpha1.PodClique) { q.Spec.Replicas = 4 })
	c.Advance(time.Minute)
	if n := images(c); n["main:1"] != 1 || n["main:2"] != 3 {
		c.Fatalf("images %v", n)
	}
	c.Timeline.Say("and to 3")
	Edit(c, theClique(c, "chat-0-web"), func(q *v1alpha1.PodClique) { q.Spec.Replicas = 3 })
	c.Advance(time.Minute)
	if n := images(c); n["main:1"] != 0 || n["main:2"] != 3 {
		c.Fatalf("images %v", n)
	}
	wantUpdated(c)
	wantAvailable(c, 3)
	c.Timeline.Golden(t, "rollout-ondelete")
}

// Scale-in under OnDelete deletes no ready pod of an earlier template if that leaves fewer ready pods than
// minAvailable.
func TestOnDeleteScaleInKeepsWhatServes(t *testing.T) {
	c := newService(t, Nodes(2, 4), 1, func(set *v1alpha1.PodCliqueSet) {
		set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
	})
	image(c, podCliqueSet(), broken+"2", "web")
	c.Advance(time.Minute)
	userDeletes(c, podsOf(c, "chat-0-web")[0]) // its replacement never becomes ready
	c.Advance(time.Minute)
	Edit(c, theClique(c, "chat-0-web"), func(q *v1alpha1.PodClique) { q.Spec.Replicas = 2 })
	c.Advance(time.Minute)
	if n := images(c); n["main:1"] != 2 {
		c.Fatalf("images %v, want the two that are ready to stay", n)
	}
}

// A node fails: pods under OnDelete whose template excludes it now are created again elsewhere, and no other pod is
// replaced.
func TestOnDeleteAfterANodeFailed(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(4, 4), Check: both(invariants(), both(terminations(), updates()))})
	set := podCliqueSet()
	set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
	c.Create(set)
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	before := map[string]types.UID{}
	on := podsOf(c, "chat-0-router")[0].Spec.NodeName
	var lost []string
	for _, pod := range All[*corev1.Pod](c) {
		before[pod.Spec.Hostname] = pod.UID
		if pod.Spec.NodeName == on {
			lost = append(lost, pod.Spec.Hostname)
		}
	}
	must(t, c.Kubelet.LoseNode(on))
	image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
	c.Advance(10 * time.Minute)
	after := map[string]*corev1.Pod{}
	for _, pod := range All[*corev1.Pod](c) {
		if pod.DeletionTimestamp == nil {
			after[pod.Spec.Hostname] = pod
		}
	}
	for host, uid := range before {
		want := "registry.example/main:1"
		if slices.Contains(lost, host) {
			want = "registry.example/main:2"
		} else if after[host].UID != uid {
			c.Fatalf("pod %s was replaced", host)
		}
		if got := after[host].Spec.Containers[0].Image; got != want {
			c.Fatalf("pod %s has image %s, want %s", host, got, want)
		}
	}
}

// In a scaling group under OnDelete a deleted pod and a deleted replica are created again with the new template, and a
// replica counts as updated when all its pods have it; likewise for a standalone clique.
func TestOnDeleteOfAGroup(t *testing.T) {
	c := newRollout(t, 1, func(set *v1alpha1.PodCliqueSet) {
		set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
	})
	before := uids(c)
	image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
	c.Advance(10 * time.Minute)
	wantReplaced(c, before)
	want := func(n int32, text string) {
		t.Helper()
		g := scalingGroup()
		must(t, c.API.Get(t.Context(), client.ObjectKeyFromObject(g), g))
		if g.Status.UpdatedReplicas != n {
			c.Fatalf("%s: the group has %d updated replicas, want %d", text, g.Status.UpdatedReplicas, n)
		}
		if p := g.Status.UpdateProgress; p == nil || p.UpdateEndedAt == nil || p.ReadyReplicaIndicesSelectedToUpdate != nil {
			c.Fatalf("%s: progress of the group: %+v", text, p)
		}
		if u := theSet(c, "chat").Status.UpdatedReplicas; u != 0 {
			c.Fatalf("%s: %d updated replicas of the set", text, u)
		}
	}
	want(0, "after the edit")
	pod := podsOf(c, "chat-0-model-0-worker")[0]
	userDeletes(c, pod)
	c.Advance(time.Minute)
	wantReplaced(c, before, pod.Spec.Hostname)
	want(0, "after a pod was deleted")
	wantEvents(c, 1, v1alpha1.EventMixedTemplates)
	if text := c.Timeline.String(); !strings.Contains(text, "kubectl delete pclq -n ns -l grove.io/podcliquescalinggroup=chat-0-model,grove.io/podcliquescalinggroup-replica-index=0") {
		c.Fatalf("the event does not name the command:\n%s", text)
	}
	deleteCliques(c, "chat-0-model-1-")
	c.Advance(time.Minute)
	wantReplaced(c, before, pod.Spec.Hostname, "chat-0-model-1-")
	want(1, "after a replica was deleted")
	if n := images(c); n["main:1"] != 4 || n["main:2"] != 4 {
		c.Fatalf("images %v", n)
	}
	for _, pod := range All[*corev1.Pod](c) {
		if pod.Spec.Containers[0].Image == "registry.example/main:1" {
			userDeletes(c, pod)
		}
	}
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	wantUpdated(c)
	wantEvents(c, 1, v1alpha1.EventMixedTemplates)
	if s := fmt.Sprint(images(c)); s != "map[main:2:8]" {
		c.Fatalf("images %s", s)
	}
}
