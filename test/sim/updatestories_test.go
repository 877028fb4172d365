// SPDX-License-Identifier: Apache-2.0

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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// service is a set with a single standalone clique, web, of 3 pods, 2 of which are needed.
func service(set *v1alpha1.PodCliqueSet) {
	web := set.Spec.Template.Cliques[0]
	web.Name, web.Spec.RoleName, web.Spec.Replicas, web.Spec.MinAvailable = "web", "web", 3, ptr.To(int32(2))
	set.Spec.Template.Cliques = set.Spec.Template.Cliques[:1]
	set.Spec.Template.PodCliqueScalingGroupConfigs = nil
}

// newService returns a cluster on which one replica of service is available; edit may change the set.
func newService(t *testing.T, nodes []*corev1.Node, replicas int32, edit func(*v1alpha1.PodCliqueSet)) *Cluster {
	t.Helper()
	c := New(t, Options{Nodes: nodes, Check: both(invariants(), both(terminations(), updates()))})
	c.Kubelet.Linger = 10 * time.Second
	breakImages(c)
	set := podCliqueSet()
	service(set)
	set.Spec.Replicas = replicas
	if edit != nil {
		edit(set)
	}
	c.Timeline.Say("a set of %d replicas with 3 pods each is created", replicas)
	c.Create(set)
	c.Advance(time.Minute)
	wantAvailable(c, 3*int(replicas))
	return c
}

func theClique(c *Cluster, name string) *v1alpha1.PodClique {
	c.t.Helper()
	clique := &v1alpha1.PodClique{}
	must(c.t, c.API.Get(c.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, clique))
	return clique
}

// wantProgress fails the test unless the set reports this progress of its update.
func wantProgress(c *Cluster, reason lifecycle.UpdateReason, text string) {
	c.t.Helper()
	p := meta.FindStatusCondition(theSet(c, "chat").Status.Conditions, v1alpha1.ConditionProgressing)
	if p == nil || p.Reason != string(reason) || !strings.Contains(p.Message, text) {
		c.Fatalf("the set's update is %+v, want %s with %q", p, reason, text)
	}
}

// images counts the pods by image, by the end of its name.
func images(c *Cluster) map[string]int {
	n := map[string]int{}
	for _, pod := range All[*corev1.Pod](c) {
		n[strings.TrimPrefix(pod.Spec.Containers[0].Image, "registry.example/")]++
	}
	return n
}

// A second edit during an update: the unit in flight becomes ready, and the update continues with the newest template.
func TestSecondEdit(t *testing.T) {
	c := newService(t, Nodes(1, 4), 1, nil)
	c.Timeline.Say("the image becomes main:2")
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(15 * time.Second)
	c.Timeline.Say("the image becomes main:3, when the second pod is terminating")
	image(c, podCliqueSet(), "registry.example/main:3", "web")
	c.Advance(5 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 3)
	c.Timeline.Golden(t, "rollout-second-edit")
}

// An image whose pods never become ready stops the update after one unit, and the status reports it; the other pods
// keep serving. With a corrected template, or the old one, the update continues with that unit.
func TestBrokenImage(t *testing.T) {
	for _, repaired := range []string{"registry.example/main:3", "registry.example/main:1"} {
		c := newService(t, Nodes(2, 4), 2, nil)
		before := uids(c)
		c.Timeline.Say("the image becomes one that is never ready")
		image(c, podCliqueSet(), broken+"2", "web")
		c.Advance(20 * time.Minute)
		wantReplaced(c, before, "chat-1-web-0")
		wantProgress(c, lifecycle.UpdateStalled, "pod chat-1-web-0-")
		c.Timeline.Say("it becomes %s", repaired)
		image(c, podCliqueSet(), repaired, "web")
		c.Advance(5 * time.Minute)
		if n := strings.Count(c.Timeline.String(), "event UpdateStalled"); n != 1 {
			c.Fatalf("%d events say that the update has stalled, want 1", n)
		}
		wantUpdated(c)
		wantAvailable(c, 6)
		if repaired == "registry.example/main:1" {
			wantReplaced(c, before, "chat-1-web-0")
			continue
		}
		c.Timeline.Golden(t, "rollout-broken")
	}
}

// Capacity is removed during an update: the update waits with one pod less, is stalled after 10 minutes, and continues
// when there is room.
func TestCapacityIsGone(t *testing.T) {
	c := newService(t, Nodes(1, 3), 1, nil)
	node := All[*corev1.Node](c)[0].DeepCopy()
	c.Timeline.Say("the image becomes main:2, and the node is cordoned when the first pod is terminating")
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(3 * time.Second)
	Edit(c, node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	c.Advance(9 * time.Minute)
	wantProgress(c, lifecycle.UpdateWaitsForCapacity, "pod chat-0-web-0-")
	c.Advance(2 * time.Minute)
	wantProgress(c, lifecycle.UpdateStalled, "pod chat-0-web-0-")
	if n := images(c); n["main:1"] != 2 || n["main:2"] != 1 {
		c.Fatalf("images %v", n)
	}
	c.Timeline.Say("the node is uncordoned")
	Edit(c, node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	c.Advance(5 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 3)
	c.Timeline.Golden(t, "rollout-capacity")
}

// The strategy is changed in both directions. OnDelete ends a running update immediately; RollingRecreate replaces pods
// only at the next change of the template.
func TestStrategyIsSwitched(t *testing.T) {
	c := newService(t, Nodes(1, 4), 1, nil)
	strategy := func(to v1alpha1.UpdateStrategyType) {
		c.Timeline.Say("the strategy becomes %s", to)
		Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: to}
		})
	}
	c.Timeline.Say("the image becomes main:2")
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(5 * time.Second)
	strategy(v1alpha1.OnDeleteStrategyType)
	c.Advance(time.Second)
	if p := theSet(c, "chat").Status.UpdateProgress; p.UpdateEndedAt == nil || p.CurrentlyUpdating != nil {
		c.Fatalf("the update goes on: %+v", p)
	}
	c.Advance(5 * time.Minute)
	wantProgress(c, lifecycle.UpdateOnDelete, "1 replica has pods of an earlier template")
	if n := images(c); n["main:1"] != 2 || n["main:2"] != 1 {
		c.Fatalf("images %v", n)
	}
	strategy(v1alpha1.RollingRecreateStrategyType)
	c.Advance(5 * time.Minute)
	if n := images(c); n["main:1"] != 2 || n["main:2"] != 1 {
		c.Fatalf("images %v", n)
	}
	c.Timeline.Say("the image becomes main:3")
	image(c, podCliqueSet(), "registry.example/main:3", "web")
	c.Advance(5 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 3)
	c.Timeline.Golden(t, "rollout-strategy")
}

// Scaling out and in during an update at all three levels: new units have the newest template and count as updated.
func TestScalingDuringAnUpdate(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(8, 4), Check: both(invariants(), both(terminations(), updates()))})
	c.Kubelet.Linger = 10 * time.Second
	set := podCliqueSet()
	set.Spec.Template.Clique("router").Spec.MinAvailable = ptr.To(int32(1))
	set.Spec.Replicas = 2
	c.Timeline.Say("a set of 2 replicas is created")
	c.Create(set)
	c.Advance(time.Minute)
	wantAvailable(c, 16)
	scaleClique := func(name string, n int32) {
		Edit(c, theClique(c, name), func(q *v1alpha1.PodClique) { q.Spec.Replicas = n })
	}
	scaleGroup := func(name string, n int32) {
		g := scalingGroup()
		g.Name = name
		Edit(c, g, func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = n })
	}
	scaleSet := func(n int32) { Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = n }) }

	c.Timeline.Say("all images are changed")
	image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
	c.Advance(5 * time.Second)
	c.Timeline.Say("the set is scaled out to 3, the group of replica 1 to 3, and its routers to 3")
	scaleSet(3)
	scaleGroup("chat-1-model", 3)
	scaleClique("chat-1-router", 3)
	c.Advance(30 * time.Second)
	c.Timeline.Say("the group of replica 1 is scaled in to 1, and its routers to 1")
	scaleGroup("chat-1-model", 1)
	scaleClique("chat-1-router", 1)
	c.Advance(20 * time.Second)
	c.Timeline.Say("the set is scaled in to 1")
	scaleSet(1)
	c.Advance(5 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 8)
	c.Timeline.Golden(t, "rollout-scaling")
}

// Breaches during an update: for the PodClique that is being updated the condition is Unknown and terminates nothing. A
// PodClique in another replica of the set terminates that replica, which is created again with the current template.
func TestBreachDuringAnUpdate(t *testing.T) {
	c := newService(t, Nodes(2, 3), 2, func(set *v1alpha1.PodCliqueSet) {
		*set = *watched(time.Minute, 0)
		service(set)
		set.Spec.Replicas = 2
	})
	c.Kubelet.ReadyAfter = 4 * time.Minute
	before := uids(c)
	c.Timeline.Say("the image becomes main:2, and pods that start will need 4 minutes to be ready")
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(20 * time.Second)
	c.Timeline.Say("a pod of the replica that is updated fails, and two of the other")
	for _, host := range []string{"chat-1-web-1", "chat-0-web-1", "chat-0-web-2"} {
		for _, pod := range All[*corev1.Pod](c) {
			if pod.Spec.Hostname == host {
				must(t, c.Kubelet.FailReadiness(pod))
			}
		}
	}
	c.Advance(2 * time.Minute)
	q := theClique(c, "chat-1-web")
	if b := meta.FindStatusCondition(q.Status.Conditions, v1alpha1.ConditionMinAvailableBreached); b.Reason != "UpdateInProgress" {
		c.Fatalf("breach of the PodClique that is updated: %+v", b)
	}
	if !q.Status.WasAvailable {
		c.Fatalf("wasAvailable has been changed by the update")
	}
	wantReplaced(c, before, "chat-0-", "chat-1-web-0") // not the other of that replica: the replacement of the first is not ready
	c.Kubelet.ReadyAfter = 2 * time.Second
	c.Advance(10 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 6)
	c.Timeline.Golden(t, "rollout-breach")
}

// A paused update does not suspend gang termination for ever: what it has made is watched again when it has been paused
// for 10 minutes. Source: docs/decisions, T6.
func TestPausedUpdateIsWatchedAgain(t *testing.T) {
	c := newService(t, Nodes(2, 3), 1, func(set *v1alpha1.PodCliqueSet) {
		*set = *watched(time.Minute, 0)
		service(set)
	})
	before := uids(c)
	c.Timeline.Say("the update is paused when its first pod is replaced by one that cannot start, and another pod fails")
	image(c, podCliqueSet(), broken+"2", "web")
	c.Advance(30 * time.Second)
	pauseUpdate(c, true)
	c.Advance(time.Second)
	for _, pod := range podsOf(c, "chat-0-web") {
		if isUp(pod) {
			must(t, c.Kubelet.FailReadiness(pod))
			break
		}
	}
	c.Advance(9 * time.Minute)
	q := theClique(c, "chat-0-web")
	if b := meta.FindStatusCondition(q.Status.Conditions, v1alpha1.ConditionMinAvailableBreached); b.Reason != "UpdateInProgress" {
		c.Fatalf("breach of the PodClique of which the update is paused: %+v", b)
	}
	c.Advance(90 * time.Second)
	q = theClique(c, "chat-0-web")
	if b := meta.FindStatusCondition(q.Status.Conditions, v1alpha1.ConditionMinAvailableBreached); b.Status != metav1.ConditionTrue {
		c.Fatalf("breach of the PodClique of which the update has been paused for 10 minutes: %+v", b)
	}
	c.Advance(time.Minute)
	wantReplaced(c, before, "chat-0-")
}

// With minAvailable equal to replicas an update goes below it by exactly one unit, with the highest replica of the set
// first.
func TestUpdateDipsByOneUnit(t *testing.T) {
	c := newService(t, Nodes(2, 4), 2, func(set *v1alpha1.PodCliqueSet) {
		set.Spec.Template.Clique("web").Spec.MinAvailable = ptr.To(int32(3))
	})
	least := 6
	check := c.options.Check
	c.options.Check = func(c *Cluster) error {
		ready := len(slices.DeleteFunc(All[*corev1.Pod](c), func(p *corev1.Pod) bool { return !isUp(p) }))
		least = min(least, ready)
		return check(c)
	}
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(10 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 6)
	if least != 5 {
		t.Errorf("at least %d pods were ready, want 5", least)
	}
}

func TestUpdateOfASetAtZero(t *testing.T) {
	c := newService(t, Nodes(1, 4), 1, nil)
	scale := func(n int32) {
		Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = n })
		c.Advance(time.Minute)
	}
	scale(0)
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(time.Minute)
	wantUpdated(c)
	scale(1)
	wantUpdated(c)
	wantAvailable(c, 3)

	// During an update.
	image(c, podCliqueSet(), "registry.example/main:3", "web")
	c.Advance(3 * time.Second)
	scale(0)
	wantUpdated(c)
	wantAvailable(c, 0)
	scale(1)
	wantUpdated(c)
	wantAvailable(c, 3)

	// A PodClique at zero.
	Edit(c, theClique(c, "chat-0-web"), func(q *v1alpha1.PodClique) { q.Spec.Replicas = 0 })
	c.Advance(time.Minute)
	image(c, podCliqueSet(), "registry.example/main:4", "web")
	c.Advance(time.Minute)
	wantUpdated(c)
}

// Going back to the previous template is an ordinary edit: pods that have that template are kept.
func TestRollback(t *testing.T) {
	c := newService(t, Nodes(1, 4), 1, nil)
	before := uids(c)
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(20 * time.Second) // one is replaced, one terminates
	if n := images(c); n["main:1"] != 2 {
		c.Fatalf("images %v", n)
	}
	image(c, podCliqueSet(), "registry.example/main:1", "web")
	c.Advance(5 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 3)
	after, same := uids(c), 0
	for host := range before {
		if after[host] == before[host] {
			same++
		}
	}
	if same != 1 {
		t.Errorf("%d pods were not replaced, want 1", same)
	}

	// After a complete rollout.
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(5 * time.Minute)
	wantUpdated(c)
	image(c, podCliqueSet(), "registry.example/main:1", "web")
	c.Advance(5 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 3)
}

// A replica of the set that waits for its turn keeps its template: a pod of it that is evicted while the update is
// stuck comes back with it and becomes ready. Going back to that template replaces nothing of the replica.
func TestRollbackOfAReplicaThatWaits(t *testing.T) {
	for _, clique := range []string{"router", "leader"} {
		c := newRollout(t, 2, nil)
		breakImages(c)
		before := uids(c)
		c.Timeline.Say("the update to a broken image stops in replica 1")
		image(c, podCliqueSet(), broken+"2", clique)
		c.Advance(time.Minute)
		var pod *corev1.Pod
		for _, p := range All[*corev1.Pod](c) {
			if p.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex] == "0" && p.Labels[v1alpha1.LabelTemplateName] == clique {
				pod = p
			}
		}
		c.Timeline.Say("a pod of replica 0 is evicted")
		must(t, c.Kubelet.Evict(pod))
		c.Advance(time.Minute)
		for _, p := range All[*corev1.Pod](c) {
			if p.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex] == "0" && (!workload.IsReady(p) || p.Spec.Containers[0].Image != "registry.example/main:1") {
				c.Fatalf("pod %s with image %s is ready: %v", p.Name, p.Spec.Containers[0].Image, workload.IsReady(p))
			}
		}
		c.Timeline.Say("the image becomes main:1 again")
		image(c, podCliqueSet(), "registry.example/main:1", clique)
		c.Advance(5 * time.Minute)
		wantUpdated(c)
		wantAvailable(c, 16)
		touched := map[string]string{"router": "chat-1-router-0", "leader": "chat-1-model-0"}
		wantReplaced(c, before, touched[clique], pod.Spec.Hostname)
	}
}

// The termination or the recreation of a replica of a scaling group is not an update, and the statuses report none.
func TestReplacementIsNoUpdate(t *testing.T) {
	c := newWatched(t, watched(time.Minute, 0), 0)
	image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
	c.Advance(10 * time.Minute)
	wantUpdated(c)
	check := c.options.Check
	c.options.Check = func(c *Cluster) error {
		if p := meta.FindStatusCondition(theSet(c, "chat").Status.Conditions, v1alpha1.ConditionProgressing); p.Reason != string(lifecycle.UpdateComplete) {
			return fmt.Errorf("the set's update is %+v", p)
		}
		return check(c)
	}
	fail(c, "chat-0-model-1-leader")
	c.Advance(5 * time.Minute)
	deleteCliques(c, "chat-0-model-0-")
	c.Advance(5 * time.Minute)
	wantAvailable(c, 8)
}

// A PodClique that is created during an update is available when it was available before, or at the latest when its
// update ends, and can be terminated from then on.
func TestCreatedDuringAnUpdate(t *testing.T) {
	c := newService(t, Nodes(4, 3), 2, func(set *v1alpha1.PodCliqueSet) {
		*set = *watched(time.Minute, 0)
		service(set)
		set.Spec.Replicas = 2
	})
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(5 * time.Second)
	Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 3 })
	c.Advance(5 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 9)
	before := uids(c)
	for _, name := range []string{"chat-0-web", "chat-1-web", "chat-2-web"} {
		if !theClique(c, name).Status.WasAvailable {
			t.Errorf("PodClique %s was never available by its status", name)
		}
	}
	for _, pod := range podsOf(c, "chat-2-web")[:2] {
		must(t, c.Kubelet.FailReadiness(pod))
	}
	c.Advance(3 * time.Minute)
	wantReplaced(c, before, "chat-2-")
	wantAvailable(c, 9)
}

// A replica whose PodCliques are deleted while another is updated is created again with the current template; the
// update does not end before its pods of the earlier template are gone.
func TestAReplicaIsDeletedDuringAnUpdate(t *testing.T) {
	for at := range 32 {
		noneIsLeft := func(c *Cluster) error {
			sets := All[*v1alpha1.PodCliqueSet](c)
			if len(sets) == 0 || sets[0].Status.UpdateProgress == nil || sets[0].Status.UpdateProgress.UpdateEndedAt == nil {
				return nil
			}
			for _, pod := range All[*corev1.Pod](c) {
				if pod.Spec.Containers[0].Image != "registry.example/main:2" {
					return fmt.Errorf("deleted %d s after the edit: the update has ended, and there is pod %s", at, pod.Name)
				}
			}
			return nil
		}
		c := New(t, Options{Nodes: Nodes(4, 4), Check: both(invariants(), both(updates(), both(claims, noneIsLeft)))})
		c.Kubelet.Linger = 10 * time.Second
		set := podCliqueSet()
		set.Spec.Replicas, set.Spec.Template.PodCliqueScalingGroupConfigs = 2, nil
		c.Create(set)
		c.Advance(time.Minute)
		image(c, set, "registry.example/main:2", "router", "leader", "worker")
		c.Advance(time.Duration(at) * time.Second)
		deleteCliques(c, "chat-0")
		c.Advance(10 * time.Minute)
		wantUpdated(c)
		wantAvailable(c, 10)
	}
}

// A replica whose scaling groups remain when a user deletes all of its PodCliques is created again with the current
// template, too.
func TestAReplicaWithAGroupIsDeletedDuringAnUpdate(t *testing.T) {
	c := newRollout(t, 2, nil)
	rolled(c, func(r *v1alpha1.RollingRecreateUpdateStrategy, s *v1alpha1.PodCliqueSet) {
		r.Paused = true
		for _, q := range s.Spec.Template.Cliques {
			q.Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
		}
	})
	c.Advance(time.Minute)
	deleteCliques(c, "chat-0")
	c.Advance(5 * time.Minute)
	if n := images(c); n["main:1"] != 8 || n["main:2"] != 8 {
		c.Fatalf("images %v, want 8 pods each of main:1 and main:2", n)
	}
}
