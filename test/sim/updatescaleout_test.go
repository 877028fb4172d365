// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/wrappers"
)

// TestNewReplicaIsOfOneTemplate: a replica that a set gets while it is updated has the new template in all of its
// PodCliques, or, while the update is paused, the previous one, after whichever write the controllers crash. Source:
// docs/decisions, U3, U9.
func TestNewReplicaIsOfOneTemplate(t *testing.T) {
	for n := 0; ; n++ {
		paused := n%2 == 0
		isOver := false
		t.Run(fmt.Sprintf("crash after %d writes", n), func(t *testing.T) {
			set := wrappers.MakePodCliqueSet("chat", "ns").Clique("router", 1, wrappers.GPUs(1)).Clique("cache", 1, wrappers.GPUs(1)).
				Clique("leader", 1, wrappers.GPUs(1)).ScalingGroup("model", 1, 1, "leader").Obj()
			c := New(t, Options{Nodes: Nodes(4, 4), Check: both(invariants(), updates())})
			c.Create(set.DeepCopy())
			c.Advance(time.Minute)
			wantAvailable(c, 3)
			pauseUpdate(c, paused)
			image(c, set.DeepCopy(), "registry.example/main:2", "router", "cache", "leader")
			want := "main:2"
			if paused {
				c.Advance(time.Minute)
				want = "main:1"
			}
			c.CrashAfterWrites(n)
			Edit(c, set.DeepCopy(), func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 2 })
			c.Advance(2 * time.Minute)
			wantAvailable(c, 6)
			for _, clique := range []string{"chat-1-router", "chat-1-cache", "chat-1-model-0-leader"} {
				if got := imageOf(podsOf(c, clique)[0]); got != want {
					c.Fatalf("a pod of %s has image %s", clique, got)
				}
			}
			isOver = c.Crashes == 0
		})
		if isOver || t.Failed() {
			if n < 10 && !t.Failed() {
				t.Errorf("only %d writes were made", n)
			}
			return
		}
	}
}

// TestScaledOutDuringAnUpdate: what is scaled out while an update is stuck has the new template at once, in the replica
// that is updated and in one that the update has not reached; what is lost comes back as it was. While the update is
// paused or rejected, and below its partition, what is scaled out has the previous template. Source: docs/decisions,
// U9.
func TestScaledOutDuringAnUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		paused    bool
		rejected  bool
		partition int32
		isNew     []bool // of each replica of the set
	}{
		"in progress":   {isNew: []bool{true, true}},
		"paused":        {paused: true, isNew: []bool{false, false}},
		"rejected":      {rejected: true, isNew: []bool{false, false}},
		"the partition": {partition: 1, isNew: []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			set := wrappers.MakePodCliqueSet("chat", "ns").Replicas(2).Clique("web", 3, wrappers.MinAvailable(1), wrappers.GPUs(1)).
				Clique("leader", 1, wrappers.GPUs(1)).Clique("worker", 1, wrappers.GPUs(1)).ScalingGroup("model", 2, 1, "leader", "worker").Obj()
			for _, clique := range set.Spec.Template.Cliques {
				clique.Spec.PodSpec.Containers[0].Image = "registry.example/main:1"
			}
			c := New(t, Options{Nodes: Nodes(10, 4), Check: both(invariants(), both(terminations(), updates()))})
			breakImages(c)
			c.Create(set.DeepCopy())
			c.Advance(time.Minute)
			wantAvailable(c, 14)
			rolled(c, func(r *v1alpha1.RollingRecreateUpdateStrategy, s *v1alpha1.PodCliqueSet) {
				r.Paused, r.Partition = tc.paused, &tc.partition
			})
			if tc.rejected {
				rejectImages(c, broken+"2")
			}
			image(c, set.DeepCopy(), broken+"2", "web", "worker")
			c.Advance(time.Minute)
			if untouched := theClique(c, "chat-0-web").Status; untouched.UpdatedReplicas != 0 || untouched.Replicas != 3 {
				c.Fatalf("%d of %d pods of a PodClique that the update has not reached are updated", untouched.UpdatedReplicas, untouched.Replicas)
			}
			if untouched := All[*v1alpha1.PodCliqueScalingGroup](c)[0].Status; untouched.UpdatedReplicas != 0 || untouched.Replicas != 2 {
				c.Fatalf("%d of %d replicas of a group that the update has not reached are updated", untouched.UpdatedReplicas, untouched.Replicas)
			}
			for i := range 2 {
				scaleClique(c, fmt.Sprintf("chat-%d-web", i), 5)
				g := scalingGroup()
				g.Name = fmt.Sprintf("chat-%d-model", i)
				Edit(c, g, func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 4 })
			}
			c.Advance(time.Minute)
			before := images(c)
			c.Timeline.Say("pods of replica 0 are evicted, and all PodCliques of a replica of its group deleted")
			must(t, c.Kubelet.Evict(podsOf(c, "chat-0-web")[1]))
			for _, member := range []string{"leader", "worker"} {
				c.Delete(theClique(c, "chat-0-model-1-"+member))
			}
			c.Advance(10 * time.Minute)
			if after := images(c); after["main:1"] != before["main:1"] {
				c.Fatalf("before %v, after pods were lost %v", before, after)
			}
			for i, isNew := range tc.isNew {
				if n := len(podsOf(c, fmt.Sprintf("chat-%d-web", i))); n != 5 {
					t.Errorf("chat-%d-web has %d pods", i, n)
				}
				for clique, pods := range map[string]int{"web": 2, "model-2-worker": 1, "model-3-worker": 1} {
					n := 0
					for _, pod := range podsOf(c, fmt.Sprintf("chat-%d-%s", i, clique)) {
						if is := imageOf(pod) == "broken:2"; is && (clique != "web" || pod.Labels[v1alpha1.LabelPodIndex] > "2") {
							n++
						}
					}
					if want := map[bool]int{true: pods}[isNew]; n != want {
						t.Errorf("chat-%d-%s: %d pods that were scaled out have the new template, want %d", i, clique, n, want)
					}
				}
			}
			if t.Failed() {
				t.Log(c.Timeline)
			}
			rolled(c, func(r *v1alpha1.RollingRecreateUpdateStrategy, s *v1alpha1.PodCliqueSet) {
				r.Paused, r.Partition = false, nil
			})
			image(c, set.DeepCopy(), "registry.example/main:3", "web", "worker")
			c.Advance(30 * time.Minute)
			wantUpdated(c)
			wantEveryPodReady(c)
		})
	}
}

// newUnreached returns a set of two replicas while an update to a broken release is stuck in replica 1, and replica 0
// is scaled out.
func newUnreached(t *testing.T) (*Cluster, func(version string)) {
	t.Helper()
	set := wrappers.MakePodCliqueSet("chat", "ns").Replicas(2).Clique("web", 3, wrappers.MinAvailable(1), wrappers.GPUs(1)).
		Clique("router", 1, wrappers.GPUs(1)).Clique("leader", 1, wrappers.GPUs(1)).Clique("worker", 1, wrappers.GPUs(1)).
		ScalingGroup("model", 1, 1, "leader", "worker").Obj()
	for _, clique := range set.Spec.Template.Cliques {
		clique.Spec.PodSpec.Containers[0].Image = "registry.example/main:1"
	}
	c := New(t, Options{Nodes: Nodes(10, 4), Check: both(invariants(), both(terminations(), updates()))})
	breakImages(c)
	c.Create(set.DeepCopy())
	c.Advance(time.Minute)
	wantAvailable(c, 12)
	edit := func(version string) {
		image(c, set.DeepCopy(), version, "web", "router", "leader", "worker")
		c.Advance(time.Minute)
	}
	edit(broken + "2")
	scaleClique(c, "chat-0-web", 4)
	scaleGroup(c, "chat-0-model", 2)
	c.Advance(time.Minute)
	wantImage(c, "broken:2", "chat-0-model-1-leader", "chat-0-model-1-worker")
	wantImage(c, "main:1", "chat-0-router", "chat-0-model-0-leader")
	return c, edit
}

func scaleGroup(c *Cluster, name string, replicas int32) {
	g := scalingGroup()
	g.Name = name
	Edit(c, g, func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = replicas })
}

// wantImage fails the test unless the PodCliques have pods, all with the image.
func wantImage(c *Cluster, want string, cliques ...string) {
	c.t.Helper()
	for _, clique := range cliques {
		pods := podsOf(c, clique)
		if len(pods) == 0 {
			c.Fatalf("PodClique %s has no pods", clique)
		}
		for _, pod := range pods {
			if got := imageOf(pod); got != want {
				c.Fatalf("pod %s has image %s, want %s", pod.Name, got, want)
			}
		}
	}
}

// TestScaledOutBetweenTwoEdits: that a PodClique and a scaling group were told a release because they were scaled out
// is no reason to create what is lost in the rest of the replica from it, when the template has changed again. Source:
// docs/decisions, U9.
func TestScaledOutBetweenTwoEdits(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]string{"another release": broken + "3", "a rollback": "registry.example/main:1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, edit := newUnreached(t)
			pauseUpdate(c, true) // of the second edit, too, so that it does not reach the replica
			edit(second)
			c.Delete(theClique(c, "chat-0-router"))
			c.Advance(time.Minute)
			wantImage(c, "main:1", "chat-0-router")
		})
	}
}

// TestMemberOfAScaledOutReplicaIsLost: a PodClique of a replica that a scaling group was scaled out to comes back with
// the template of the other PodCliques of that replica. Source: docs/decisions, U9.
func TestMemberOfAScaledOutReplicaIsLost(t *testing.T) {
	t.Parallel()
	c, _ := newUnreached(t)
	c.Delete(theClique(c, "chat-0-model-1-worker"))
	c.Advance(time.Minute)
	wantImage(c, "broken:2", "chat-0-model-1-leader", "chat-0-model-1-worker")
}

// TestScaledOutFromZero: a PodClique that had no pods gets the new template, in whichever order the controllers see it.
// Source: docs/decisions, U9.
func TestScaledOutFromZero(t *testing.T) {
	t.Parallel()
	for seed := range int64(20) {
		set := wrappers.MakePodCliqueSet("chat", "ns").Replicas(2).Clique("web", 3, wrappers.MinAvailable(1), wrappers.GPUs(1)).
			Clique("leader", 1, wrappers.GPUs(1)).ScalingGroup("model", 1, 1, "leader").Obj()
		c := New(t, Options{Nodes: Nodes(4, 4), Seed: seed, Check: both(invariants(), updates())})
		breakImages(c)
		c.Create(set.DeepCopy())
		c.Advance(time.Minute)
		scaleClique(c, "chat-0-web", 0)
		c.Advance(time.Minute)
		image(c, set.DeepCopy(), broken+"2", "web", "leader")
		c.Advance(time.Minute)
		scaleClique(c, "chat-0-web", 3)
		c.Advance(time.Minute)
		wantImage(c, "broken:2", "chat-0-web")
	}
}

// TestScaledOutWhilePausedAfterASecondEdit: what is scaled out while the update is paused has the previous template,
// also in a PodClique that an earlier edit has told its release. Source: docs/decisions, U9.
func TestScaledOutWhilePausedAfterASecondEdit(t *testing.T) {
	t.Parallel()
	c, edit := newUnreached(t)
	pauseUpdate(c, true)
	edit(broken + "3")
	scaleClique(c, "chat-0-web", 6)
	scaleGroup(c, "chat-0-model", 3)
	c.Advance(time.Minute)
	wantImage(c, "main:1", "chat-0-model-2-leader", "chat-0-model-2-worker")
	for _, pod := range podsOf(c, "chat-0-web") {
		if index := pod.Labels[v1alpha1.LabelPodIndex]; index > "3" && imageOf(pod) != "main:1" {
			t.Errorf("pod %s has image %s", pod.Name, imageOf(pod))
		}
	}
}
