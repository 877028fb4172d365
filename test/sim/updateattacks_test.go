// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

func rolled(c *Cluster, edit func(*v1alpha1.RollingRecreateUpdateStrategy, *v1alpha1.PodCliqueSet)) {
	Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) {
		if s.Spec.UpdateStrategy == nil {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.RollingRecreateStrategyType}
		}
		if s.Spec.UpdateStrategy.RollingRecreate == nil {
			s.Spec.UpdateStrategy.RollingRecreate = &v1alpha1.RollingRecreateUpdateStrategy{}
		}
		edit(s.Spec.UpdateStrategy.RollingRecreate, s)
	})
}

func pauseUpdate(c *Cluster, paused bool) {
	rolled(c, func(r *v1alpha1.RollingRecreateUpdateStrategy, _ *v1alpha1.PodCliqueSet) { r.Paused = paused })
}

func imageOf(p *corev1.Pod) string {
	return strings.TrimPrefix(p.Spec.Containers[0].Image, "registry.example/")
}

// loseOne deletes a pod of chat-0-web with the image.
func loseOne(c *Cluster, image string) {
	for _, p := range podsOf(c, "chat-0-web") {
		if imageOf(p) == image {
			userDeletes(c, p)
			return
		}
	}
	c.Fatalf("no pod of %s to lose", image)
}

// advanceUntil advances the cluster by seconds until a condition holds, at most 10 minutes.
func advanceUntil(c *Cluster, what string, holds func() bool) {
	for range 600 {
		c.Advance(time.Second)
		if holds() {
			return
		}
	}
	c.Fatalf("after 10 minutes it is not so that %s", what)
}

func newSized(t *testing.T, nodes int, replicas, n, minimum int32) *Cluster {
	t.Helper()
	c := New(t, Options{Nodes: Nodes(nodes, 4), Check: both(invariants(), both(terminations(), updates()))})
	c.Kubelet.Linger = 10 * time.Second
	breakImages(c)
	set := podCliqueSet()
	service(set)
	set.Spec.Replicas = replicas
	web := set.Spec.Template.Clique("web")
	web.Spec.Replicas, web.Spec.MinAvailable = n, ptr.To(minimum)
	c.Create(set)
	c.Advance(time.Minute)
	wantAvailable(c, int(replicas*n))
	return c
}

// TestUpdateWaitsUntilAPodIsBound: the replica that is not available is updated first; its new pod is not bound for a
// few seconds. The next replica waits: it is not known that the pod does not fit.
func TestUpdateWaitsUntilAPodIsBound(t *testing.T) {
	t.Parallel()
	c := newSized(t, 3, 3, 1, 1)
	before := uids(c)
	fail(c, "chat-2-web")
	c.Advance(10 * time.Second)
	image(c, podCliqueSet(), broken+"2", "web")
	advanceBindingAfter(c, 3*time.Second, 10*time.Minute)
	wantReplaced(c, before, "chat-2-web-0")
}

// advanceBindingAfter advances the cluster by d; a pod is bound at the earliest delay after it was created: nodes are
// cordoned except while a pod has waited so long.
func advanceBindingAfter(c *Cluster, delay, d time.Duration) {
	cordon := func(yes bool) {
		for _, n := range All[*corev1.Node](c) {
			if n.Spec.Unschedulable != yes {
				Edit(c, n.DeepCopy(), func(n *corev1.Node) { n.Spec.Unschedulable = yes })
			}
		}
	}
	const step = 500 * time.Millisecond
	unbound := map[types.UID]time.Duration{}
	for range int(d / step) {
		isDue := false
		for _, p := range All[*corev1.Pod](c) {
			if p.Spec.NodeName == "" {
				unbound[p.UID] += step
				isDue = isDue || unbound[p.UID] > delay
			}
		}
		cordon(!isDue)
		c.Advance(step)
	}
}

// TestUpdateWaitsUntilTheGroupIsBound: the same with a scaling group of one replica.
func TestUpdateWaitsUntilTheGroupIsBound(t *testing.T) {
	t.Parallel()
	c := New(t, Options{Nodes: Nodes(6, 4), Check: both(invariants(), both(terminations(), updates()))})
	breakImages(c)
	set := podCliqueSet()
	set.Spec.Template.Cliques = set.Spec.Template.Cliques[1:]
	set.Spec.Template.PodCliqueScalingGroupConfigs[0].Replicas = ptr.To(int32(1))
	set.Spec.Replicas = 3
	c.Create(set)
	c.Advance(time.Minute)
	wantAvailable(c, 9)
	before := uids(c)
	fail(c, "chat-2-model-0-leader")
	c.Advance(10 * time.Second)
	image(c, podCliqueSet(), broken+"2", "leader")
	advanceBindingAfter(c, 3*time.Second, 10*time.Minute)
	wantReplaced(c, before, "chat-2-")
}

// TestLastPodOfTheEarlierTemplateIsLost: the last pod that a stuck update has not reached comes back with its template,
// however often it is lost.
func TestLastPodOfTheEarlierTemplateIsLost(t *testing.T) {
	t.Parallel()
	c := newSized(t, 1, 1, 2, 1)
	image(c, podCliqueSet(), broken+"2", "web")
	c.Advance(2 * time.Minute)
	for i := range 3 {
		for _, p := range podsOf(c, "chat-0-web") {
			if imageOf(p) == "main:1" {
				userDeletes(c, p)
			}
		}
		c.Advance(time.Minute)
		if n := images(c); n["main:1"] != 1 {
			c.Fatalf("after loss %d: images %v, current %v", i+1, n, theClique(c, "chat-0-web").Status.CurrentPodTemplateHash)
		}
	}
}

// TestRollbackThenEdit: a rollback in the middle, and another edit before it is complete: what is lost does not get the
// broken template.
func TestRollbackThenEdit(t *testing.T) {
	t.Parallel()
	c := newSized(t, 2, 1, 8, 2)
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(50 * time.Second)
	image(c, podCliqueSet(), "registry.example/main:1", "web")
	c.Advance(5 * time.Second)
	n0 := images(c)
	image(c, podCliqueSet(), broken+"3", "web")
	c.Advance(5 * time.Minute)
	n1 := images(c)
	loseOne(c, "main:1")
	c.Advance(time.Minute)
	if n := images(c); n["broken:3"] != n1["broken:3"] {
		c.Fatalf("images at edit %v, stuck %v, after one pod of main:1 was lost %v", n0, n1, n)
	}
}

func progressOf(c *Cluster) string {
	s := ""
	for _, x := range theSet(c, "chat").Status.Conditions {
		if x.Type == v1alpha1.ConditionProgressing {
			s = x.Reason + ": " + x.Message
		}
	}
	return s
}

// TestRejectedWhilePaused: an edit while paused in the middle of a replica is tried before anything is replaced.
func TestRejectedWhilePaused(t *testing.T) {
	t.Parallel()
	c := newService(t, Nodes(2, 4), 2, nil)
	rejectImages(c, "main:3")
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(12 * time.Second)
	pauseUpdate(c, true)
	c.Advance(2 * time.Minute)
	wantAvailable(c, 6)
	before := uids(c)
	image(c, podCliqueSet(), "registry.example/main:3", "web")
	c.Advance(time.Minute)
	pauseUpdate(c, false)
	c.Advance(5 * time.Minute)
	wantReplaced(c, before)
}

// TestRejectedAfterBroken: a rejected template after a broken one: lost pods do not get the broken one.
func TestRejectedAfterBroken(t *testing.T) {
	t.Parallel()
	c := newService(t, Nodes(1, 4), 1, nil)
	image(c, podCliqueSet(), broken+"2", "web")
	c.Advance(2 * time.Minute)
	rejectImages(c, "main:3")
	image(c, podCliqueSet(), "registry.example/main:3", "web")
	c.Advance(2 * time.Minute)
	n0 := images(c)
	loseOne(c, "main:1")
	c.Advance(time.Minute)
	if n := images(c); n["main:1"] != n0["main:1"] {
		c.Fatalf("before %v, after one was lost %v: %s", n0, n, progressOf(c))
	}
}

// TestPodCliqueIsDeletedDuringAnUpdate: a PodClique is deleted in a unit that the update has not reached.
func TestPodCliqueIsDeletedDuringAnUpdate(t *testing.T) {
	t.Parallel()
	for _, x := range [][2]string{{"router", "chat-0-router"}, {"leader", "chat-1-model-1-leader"}, {"leader", "chat-0-model-1-leader"}} {
		t.Run(x[1], func(t *testing.T) {
			c := newRollout(t, 2, nil)
			breakImages(c)
			image(c, podCliqueSet(), broken+"2", x[0])
			c.Advance(2 * time.Minute)
			n0 := images(c)
			c.Delete(theClique(c, x[1]))
			c.Advance(2 * time.Minute)
			if n := images(c); n["broken:2"] != n0["broken:2"] {
				c.Fatalf("before %v, after PodClique %s was deleted %v", n0, x[1], n)
			}
		})
	}
}

// TestPauseIsNoStall: an update that is resumed after a long pause has not stalled.
func TestPauseIsNoStall(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{3 * time.Second, 12 * time.Second, 20 * time.Second, 45 * time.Second} {
		c := newService(t, Nodes(2, 4), 2, nil)
		image(c, podCliqueSet(), "registry.example/main:2", "web")
		c.Advance(at)
		pauseUpdate(c, true)
		c.Advance(30 * time.Minute)
		pauseUpdate(c, false)
		c.Advance(5 * time.Minute)
		wantUpdated(c)
		if n := strings.Count(c.Timeline.String(), "event UpdateStalled"); n > 0 {
			t.Errorf("paused %v after the edit: %d events UpdateStalled", at, n)
		}
	}
}

// TestIndicesWithAGap: the pods of a clique do not have successive indices: each is created once.
func TestIndicesWithAGap(t *testing.T) {
	t.Parallel()
	c := newSized(t, 2, 1, 4, 2)
	must(t, c.Kubelet.FailReadiness(podsOf(c, "chat-0-web")[1]))
	c.Advance(5 * time.Second)
	Edit(c, theClique(c, "chat-0-web"), func(q *v1alpha1.PodClique) { q.Spec.Replicas = 3 })
	c.Advance(time.Minute)
	created := map[string]int{}
	c.API.watch(func(change Change) {
		if pod, ok := change.New.(*corev1.Pod); ok && change.Old == nil {
			created[imageOf(pod)]++
		}
	})
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(10 * time.Minute)
	wantUpdated(c)
	if created["main:1"] > 0 || created["main:2"] != 3 {
		t.Errorf("pods created by the update: %v", created)
	}
}

// TestPartitionAndEdit: a partition and a new template in one edit, while a replica below the partition is being
// updated.
func TestPartitionAndEdit(t *testing.T) {
	t.Parallel()
	c := newService(t, Nodes(3, 4), 3, nil)
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	advanceUntil(c, "replica 1 is being updated", func() bool {
		p := theSet(c, "chat").Status.UpdateProgress
		return p.CurrentlyUpdating != nil && p.CurrentlyUpdating.ReplicaIndex == 1
	})
	c.Advance(10 * time.Second)
	rolled(c, func(r *v1alpha1.RollingRecreateUpdateStrategy, s *v1alpha1.PodCliqueSet) {
		r.Partition = ptr.To(int32(2))
		s.Spec.Template.Clique("web").Spec.PodSpec.Containers[0].Image = broken + "3"
	})
	c.Advance(5 * time.Minute)
	for _, p := range podsOf(c, "chat-1-web") {
		if imageOf(p) == "broken:3" {
			c.Fatalf("pod %s, below the partition, has broken:3; all: %v; %s", p.Name, images(c), progressOf(c))
		}
	}
}

// TestFixWithAPartition: the replica that is being updated never becomes ready; the edit that corrects the template
// sets a partition above it. The replicas from the partition on are updated, and the stuck one when the partition is
// removed.
func TestFixWithAPartition(t *testing.T) {
	t.Parallel()
	for _, fixed := range []string{"main:3", "main:1"} {
		c := newService(t, Nodes(4, 4), 3, nil)
		image(c, podCliqueSet(), "registry.example/main:2", "web")
		advanceUntil(c, "replica 1 is being updated", func() bool {
			p := theSet(c, "chat").Status.UpdateProgress
			return p.CurrentlyUpdating != nil && p.CurrentlyUpdating.ReplicaIndex == 1
		})
		c.API.watch(func(change Change) {
			if pod, ok := change.New.(*corev1.Pod); ok && change.Old == nil && imageOf(pod) == "main:2" {
				c.Kubelet.setSick(pod, true)
			}
		})
		c.Advance(2 * time.Minute)
		stuck := images(c)
		rolled(c, func(r *v1alpha1.RollingRecreateUpdateStrategy, s *v1alpha1.PodCliqueSet) {
			r.Partition = ptr.To(int32(2))
			s.Spec.Template.Clique("web").Spec.PodSpec.Containers[0].Image = "registry.example/" + fixed
		})
		c.Advance(30 * time.Minute)
		for _, p := range podsOf(c, "chat-2-web") {
			if imageOf(p) != fixed {
				c.Fatalf("stuck with %v; pod %s has %s, want %s; %s", stuck, p.Name, imageOf(p), fixed, progressOf(c))
			}
		}
		rolled(c, func(r *v1alpha1.RollingRecreateUpdateStrategy, _ *v1alpha1.PodCliqueSet) { r.Partition = nil })
		c.Advance(10 * time.Minute)
		wantUpdated(c)
		wantAvailable(c, 9)
	}
}

// TestUpdatedReplicaIsTerminated: an updated replica fails, and is terminated. While it is replaced, which takes
// seconds, no other replica is updated.
func TestUpdatedReplicaIsTerminated(t *testing.T) {
	t.Parallel()
	c := newService(t, Nodes(3, 3), 3, func(set *v1alpha1.PodCliqueSet) {
		*set = *watched(time.Minute, 0)
		service(set)
		set.Spec.Replicas = 3
	})
	before := uids(c)
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	advanceUntil(c, "replica 1 is being updated", func() bool {
		p := theSet(c, "chat").Status.UpdateProgress
		return p.CurrentlyUpdating != nil && p.CurrentlyUpdating.ReplicaIndex == 1
	})
	c.API.watch(func(change Change) {
		if pod, ok := change.New.(*corev1.Pod); ok && change.Old == nil && strings.HasPrefix(pod.Name, "chat-2-") {
			c.Kubelet.setSick(pod, true)
		}
	})
	for _, p := range podsOf(c, "chat-2-web") {
		must(t, c.Kubelet.FailReadiness(p))
	}
	c.Advance(50 * time.Second)
	c.Advance(10 * time.Minute)
	wantReplaced(c, before, "chat-1-", "chat-2-")
}

// TestTerminatedAfterASecondEdit: a replica that the first of two updates has updated, and the second has not reached,
// is terminated: all of it comes back with the template that it had.
func TestTerminatedAfterASecondEdit(t *testing.T) {
	t.Parallel()
	c := New(t, Options{Nodes: Nodes(8, 4), Check: invariants()})
	breakImages(c)
	set := watched(time.Minute, 0)
	set.Spec.Replicas = 3
	c.Kubelet.Linger = 10 * time.Second
	c.Create(set)
	c.Advance(time.Minute)
	image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
	advanceUntil(c, "replica 1 is being updated", func() bool {
		p := theSet(c, "chat").Status.UpdateProgress
		return p.CurrentlyUpdating != nil && p.CurrentlyUpdating.ReplicaIndex == 1
	})
	c.Advance(3 * time.Second)
	image(c, podCliqueSet(), broken+"3", "router", "leader", "worker")
	c.Advance(2 * time.Minute)
	before := uids(c)
	for _, p := range podsOf(c, "chat-2-router") {
		must(t, c.Kubelet.FailReadiness(p))
	}
	c.Advance(5 * time.Minute)
	wantReplaced(c, before, "chat-2-")
	for _, p := range All[*corev1.Pod](c) {
		if strings.HasPrefix(p.Name, "chat-2-") && imageOf(p) != "main:2" {
			t.Errorf("pod %s has %s, want main:2", p.Name, imageOf(p))
		}
	}
}

// TestPodCliqueIsDeletedAfterASecondEdit: neither of two updates has reached the replica of the PodClique. That its
// scaling group, which the first does not change, is told the second template is no reason to create it from that.
func TestPodCliqueIsDeletedAfterASecondEdit(t *testing.T) {
	t.Parallel()
	c := newRollout(t, 2, nil)
	breakImages(c)
	image(c, podCliqueSet(), "registry.example/main:2", "router")
	c.Advance(5 * time.Second)
	image(c, podCliqueSet(), broken+"3", "router", "leader", "worker")
	c.Advance(2 * time.Minute)
	c.Delete(theClique(c, "chat-0-router"))
	c.Advance(2 * time.Minute)
	for _, p := range podsOf(c, "chat-0-router") {
		if imageOf(p) != "main:1" {
			t.Errorf("pod %s has %s, want main:1", p.Name, imageOf(p))
		}
	}
}

// TestUpdatedGroupReplicaIsDeleted: a user deletes the PodCliques of an updated replica of a scaling group, and they
// fail again: no other is updated.
func TestUpdatedGroupReplicaIsDeleted(t *testing.T) {
	t.Parallel()
	c := New(t, Options{Nodes: Nodes(6, 4), Check: both(invariants(), both(terminations(), updates()))})
	breakImages(c)
	c.Kubelet.Linger = 10 * time.Second
	set := podCliqueSet()
	set.Spec.Template.PodCliqueScalingGroupConfigs[0].Replicas = ptr.To(int32(4))
	c.Create(set)
	c.Advance(time.Minute)
	image(c, podCliqueSet(), "registry.example/main:2", "leader")
	advanceUntil(c, "2 pods are of main:2", func() bool { return images(c)["main:2"] == 2 })
	// Replica 0 is done, replica 1 in flight.
	must(t, c.Kubelet.FailReadiness(podsOf(c, "chat-0-model-0-leader")[0]))
	c.Advance(time.Minute)
	n0, s0 := images(c), progressOf(c)
	c.API.watch(func(change Change) {
		if pod, ok := change.New.(*corev1.Pod); ok && change.Old == nil && strings.HasPrefix(pod.Name, "chat-0-model-0-") {
			c.Kubelet.setSick(pod, true)
		}
	})
	deleteCliques(c, "chat-0-model-0-")
	c.Advance(5 * time.Minute)
	if n := images(c); n["main:2"] != n0["main:2"] {
		c.Fatalf("images %v %s, after replica 0 was deleted %v %s", n0, s0, n, progressOf(c))
	}
}

// TestRejectionIsNoStall: a template that is accepted after it was rejected for a long time has not stalled.
func TestRejectionIsNoStall(t *testing.T) {
	t.Parallel()
	c := newService(t, Nodes(2, 4), 2, nil)
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(12 * time.Second)
	rejectImages(c, "main:3")
	image(c, podCliqueSet(), "registry.example/main:3", "web")
	c.Advance(30 * time.Minute)
	c.API.Refuse = nil
	c.Advance(5 * time.Minute)
	wantUpdated(c)
	wantEvents(c, 0, v1alpha1.EventUpdateStalled)
}

// TestPauseAtAnyTime: a paused update deletes no further pod, even if the controller of the PodClique sees the pause
// late.
func TestPauseAtAnyTime(t *testing.T) {
	t.Parallel()
	for at := range 40 {
		c := newSized(t, 2, 1, 8, 2)
		image(c, podCliqueSet(), "registry.example/main:2", "web")
		c.Advance(time.Duration(at) * time.Second)
		pauseUpdate(c, true)
		n0 := 0
		for _, p := range podsOf(c, "chat-0-web") {
			if imageOf(p) == "main:1" && p.DeletionTimestamp == nil {
				n0++
			}
		}
		c.Advance(5 * time.Minute)
		if n := images(c); n["main:1"] != n0 {
			c.Fatalf("paused after %d s with %d of main:1, now %v", at, n0, n)
		}
		pauseUpdate(c, false)
		c.Advance(5 * time.Minute)
		wantUpdated(c)
	}
}

// withoutNewFields stops the controllers, removes from every status what the release before did not write, and starts
// them.
func withoutNewFields(c *Cluster) {
	c.process.end()
	c.process = nil
	for _, o := range All[*v1alpha1.PodCliqueSet](c) {
		if o = o.DeepCopy(); o.Status.UpdateProgress != nil {
			o.Status.UpdateProgress.ReachedIndices, o.Status.UpdateProgress.PreviousGenerationHash = "", ""
			must(c.t, c.API.Status().Update(c.t.Context(), o))
		}
	}
	for _, o := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		if o = o.DeepCopy(); o.Status.UpdateProgress != nil {
			o.Status.UpdateProgress.ReachedIndices, o.Status.UpdateProgress.PreviousGenerationHash = "", ""
			must(c.t, c.API.Status().Update(c.t.Context(), o))
		}
	}
	for _, o := range All[*v1alpha1.PodClique](c) {
		if o = o.DeepCopy(); o.Status.UpdateProgress != nil {
			o.Status.UpdateProgress.ReachedIndices, o.Status.UpdateProgress.PreviousGenerationHash = "", ""
			must(c.t, c.API.Status().Update(c.t.Context(), o))
		}
	}
	c.start()
}

// TestUpgradeDuringAnUpdate: an update begun by a release without reachedIndices and previousGenerationHash ends.
func TestUpgradeDuringAnUpdate(t *testing.T) {
	t.Parallel()
	for at := range 30 {
		c := newRollout(t, 2, nil)
		image(c, podCliqueSet(), "registry.example/main:2", "router", "leader")
		c.Advance(time.Duration(at) * 3 * time.Second)
		withoutNewFields(c)
		c.Advance(10 * time.Minute)
		wantUpdated(c)
		wantAvailable(c, 16)
	}
}

// TestUpgradeOfAStuckUpdate: the same while the update is stuck, and a replica that waits for its turn is terminated.
func TestUpgradeOfAStuckUpdate(t *testing.T) {
	t.Parallel()
	c := newService(t, Nodes(2, 3), 2, func(set *v1alpha1.PodCliqueSet) {
		*set = *watched(time.Minute, 0)
		service(set)
		set.Spec.Replicas = 2
	})
	image(c, podCliqueSet(), broken+"2", "web")
	c.Advance(time.Minute)
	withoutNewFields(c)
	c.Advance(time.Minute)
	for _, p := range podsOf(c, "chat-0-web")[:2] {
		must(t, c.Kubelet.FailReadiness(p))
	}
	c.Advance(5 * time.Minute)
	if n := images(c); n["broken:2"] > 1 {
		c.Fatalf("images %v, %s", n, progressOf(c))
	}
}
