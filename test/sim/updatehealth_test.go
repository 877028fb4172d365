// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/wrappers"
)

// fading is the prefix of images whose pods become ready and are not ready 1.5 s later.
const fading = "registry.example/fading:"

// withImage returns the number of pods with an image that are ready, and that are not, without those being deleted.
func withImage(c *Cluster, image string) (ready, unready int) {
	for _, pod := range All[*corev1.Pod](c) {
		switch {
		case pod.Spec.Containers[0].Image != image || pod.DeletionTimestamp != nil:
		case isUp(pod):
			ready++
		default:
			unready++
		}
	}
	return ready, unready
}

// progressing returns the reason and the message of the condition Progressing of the set chat.
func progressing(c *Cluster) (reason, message string) {
	p := meta.FindStatusCondition(theSet(c, "chat").Status.Conditions, v1alpha1.ConditionProgressing)
	return p.Reason, p.Message
}

// A release whose pods become ready and then fail reaches one unit with minReadySeconds, and without them the units
// that were replaced before the first of them failed; never all. At the level of pods, of replicas of a scaling group,
// and of replicas of a set. The update goes on when the template is corrected.
func TestReleaseThatFades(t *testing.T) {
	for level, set := range map[string]*v1alpha1.PodCliqueSet{
		"pods": wrappers.MakePodCliqueSet("chat", "ns").Clique("web", 8, wrappers.MinAvailable(2), wrappers.GPUs(1)).Obj(),
		"replicas of a group": wrappers.MakePodCliqueSet("chat", "ns").Clique("leader", 1, wrappers.GPUs(1)).Clique("worker", 1, wrappers.GPUs(1)).
			ScalingGroup("model", 6, 1, "leader", "worker").Obj(),
		"replicas of a set": wrappers.MakePodCliqueSet("chat", "ns").Replicas(5).Clique("web", 2, wrappers.MinAvailable(2), wrappers.GPUs(1)).Obj(),
	} {
		for _, minReady := range []int32{0, 10} {
			t.Run(fmt.Sprintf("%s, minReadySeconds %d", level, minReady), func(t *testing.T) {
				c := New(t, Options{Nodes: Nodes(4, 4), Check: both(invariants(), both(terminations(), updates()))})
				c.Kubelet.FadingImage, c.Kubelet.FadeAfter, c.Kubelet.Linger = fading, 1500*time.Millisecond, 10*time.Second
				set := set.DeepCopy()
				cliques, unit := []string{}, 1
				for _, clique := range set.Spec.Template.Cliques {
					clique.Spec.PodSpec.Containers[0].Image = "registry.example/main:1"
					clique.Spec.MinReadySeconds = minReady
					cliques = append(cliques, clique.Name)
				}
				if level != "pods" {
					unit = 2 // pods in a unit
				}
				c.Create(set)
				c.Advance(2 * time.Minute)
				all, _ := withImage(c, "registry.example/main:1")

				c.Timeline.Say("an image whose pods fail 1.5 s after they became ready")
				image(c, set.DeepCopy(), fading+"2", cliques...)
				c.Advance(20 * time.Minute)
				kept, _ := withImage(c, "registry.example/main:1")
				units := (all - kept + unit - 1) / unit
				if most := map[int32]int{0: 2, 10: 1}[minReady]; units > most {
					c.Fatalf("%d of %d units were replaced, want %d at most", units, all/unit, most)
				}
				if reason, message := progressing(c); reason != v1alpha1.ReasonUpdateStalled || !strings.Contains(message, v1alpha1.ReasonWaitingForReadiness) {
					c.Fatalf("Progressing: %s: %s", reason, message)
				}

				c.Timeline.Say("the image is corrected")
				image(c, set.DeepCopy(), "registry.example/main:3", cliques...)
				c.Advance(20 * time.Minute)
				wantUpdated(c)
				wantAvailable(c, all)
				if minReady > 0 {
					c.Timeline.Golden(t, "rollout-fades-"+strings.ReplaceAll(level, " ", "-"))
				}
			})
		}
	}
}

// An edit within minReadySeconds after the start of a set: what is ready serves, though it is not available yet, so one
// unit is replaced at a time and at most one does not serve, at each level.
func TestEditWithinMinReadySeconds(t *testing.T) {
	for level, set := range map[string]*v1alpha1.PodCliqueSet{
		"pods": wrappers.MakePodCliqueSet("chat", "ns").Clique("web", 8, wrappers.MinAvailable(3), wrappers.GPUs(1)).Obj(),
		"replicas of a group": wrappers.MakePodCliqueSet("chat", "ns").Clique("leader", 1, wrappers.GPUs(1)).
			ScalingGroup("model", 8, 3, "leader").Obj(),
		"replicas of a set": wrappers.MakePodCliqueSet("chat", "ns").Replicas(8).Clique("web", 1, wrappers.GPUs(1)).Obj(),
	} {
		t.Run(level, func(t *testing.T) {
			started := false
			c := New(t, Options{Nodes: Nodes(2, 4), Check: both(onChange(func(c *Cluster) error {
				ready, _ := withImage(c, "registry.example/main:1")
				if updated, _ := withImage(c, "registry.example/main:2"); started && ready+updated < 7 {
					return fmt.Errorf("%d of 8 units serve", ready+updated)
				}
				return nil
			}), both(invariants(), updates()))})
			clique := set.Spec.Template.Cliques[0]
			clique.Spec.PodSpec.Containers[0].Image, clique.Spec.MinReadySeconds = "registry.example/main:1", 120
			c.Create(set.DeepCopy())
			c.Advance(time.Minute)
			started = true
			image(c, set.DeepCopy(), "registry.example/main:2", clique.Name)
			c.Advance(time.Minute - 10*time.Second)
			if ready, unready := withImage(c, "registry.example/main:2"); level != "replicas of a set" && ready+unready > 0 {
				c.Fatalf("%d units were replaced before others were available", ready+unready)
			}
			c.Advance(30 * time.Minute)
			wantUpdated(c)
			wantAvailable(c, 8)
		})
	}
}

// While an update is stuck, pods that are evicted or lost with their node come back with the template of the others: a
// broken release takes the place of no pod that served, whatever happens meanwhile. Pods that are scaled out have the
// new template. Source: docs/decisions, U9.
func TestNothingSpreadsABrokenRelease(t *testing.T) {
	for _, replicas := range []int32{1, 2} {
		c := newService(t, Nodes(10, 4), replicas, func(set *v1alpha1.PodCliqueSet) {
			web := set.Spec.Template.Clique("web")
			web.Spec.Replicas, web.Spec.MinAvailable = 3, ptr.To(int32(1))
		})
		web := fmt.Sprintf("chat-%d-web", replicas-1) // the one that is updated
		c.Timeline.Say("the update to a broken image stops at its first pod")
		image(c, podCliqueSet(), broken+"2", "web")
		c.Advance(2 * time.Minute)
		c.Timeline.Say("the PodClique is scaled to 6, pods are evicted, and a node is lost")
		scaleClique(c, web, 6)
		c.Advance(time.Minute)
		for _, pod := range podsOf(c, web)[1:3] { // not the broken one
			must(t, c.Kubelet.Evict(pod))
		}
		pods := podsOf(c, "chat-0-web")
		must(t, c.Kubelet.LoseNode(pods[len(pods)-1].Spec.NodeName))
		c.Advance(20 * time.Minute)
		if ready, unready := withImage(c, broken+"2"); ready+unready != 4 {
			c.Fatalf("%d pods have the broken image, want 1 that was replaced and 3 that were scaled out", ready+unready)
		}
		if ready, _ := withImage(c, "registry.example/main:1"); ready != int(3*replicas)-1 {
			c.Fatalf("%d pods serve, want %d", ready, 3*replicas-1)
		}
		for _, node := range All[*corev1.Node](c) {
			must(t, c.Kubelet.RestoreNode(node.Name))
		}
		c.Timeline.Say("the image is corrected")
		image(c, podCliqueSet(), "registry.example/main:3", "web")
		c.Advance(20 * time.Minute)
		wantUpdated(c)
		if ready, _ := withImage(c, "registry.example/main:3"); ready != int(3*replicas)+3 {
			c.Fatalf("%d pods serve, want %d", ready, 3*replicas+3)
		}
	}
}

func scaleClique(c *Cluster, name string, replicas int32) {
	c.t.Helper()
	Edit(c, theClique(c, name).DeepCopy(), func(q *v1alpha1.PodClique) { q.Spec.Replicas = replicas })
}

// A replica of a set for which there is no room does not keep the others from being updated. It starts with the new
// template when there is room.
func TestUpdateOfASetThatDoesNotFit(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 3), Check: both(invariants(), both(terminations(), updates()))})
	set := podCliqueSet()
	service(set)
	set.Spec.Replicas = 3
	set.Spec.Template.Clique("web").Spec.MinAvailable = ptr.To(int32(3))
	c.Timeline.Say("a set of 3 replicas with 3 pods each, and nodes for 2 of them")
	c.Create(set)
	c.Advance(time.Minute)
	c.Timeline.Say("the image is edited")
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(10 * time.Minute)
	if ready, _ := withImage(c, "registry.example/main:2"); ready != 6 {
		c.Fatalf("%d pods of the new image are ready, want 6", ready)
	}
	if reason, message := progressing(c); reason != v1alpha1.ReasonUpdateComplete {
		c.Fatalf("Progressing: %s: %s", reason, message)
	}
	c.Timeline.Say("a node is added")
	node := Nodes(3, 3)[2]
	c.Create(node)
	c.Advance(time.Minute)
	wantAvailable(c, 9)
	wantUpdated(c)
	c.Timeline.Golden(t, "rollout-no-room")
}

// A canary: with a partition only the replicas from that index on are updated; those below come back with their own
// template, also when the whole replica is terminated or deleted. Lowering the partition goes on, paused stops.
func TestPartitionAndPause(t *testing.T) {
	c := newService(t, Nodes(6, 3), 3, nil)
	strategy := func(paused bool, partition int32) {
		Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.RollingRecreateStrategyType,
				RollingRecreate: &v1alpha1.RollingRecreateUpdateStrategy{Paused: paused, Partition: &partition}}
		})
	}
	want := func(reason string, updated int) {
		t.Helper()
		if got, message := progressing(c); got != reason {
			c.Fatalf("Progressing: %s (%s), want %s", got, message, reason)
		}
		if ready, _ := withImage(c, "registry.example/main:2"); ready != updated {
			c.Fatalf("%d pods have the new image, want %d", ready, updated)
		}
		wantAvailable(c, 9)
	}
	c.Timeline.Say("partition 2, and the image is edited")
	strategy(false, 2)
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(5 * time.Minute)
	want(v1alpha1.ReasonPartitionReached, 3)
	c.Timeline.Say("a user deletes the PodClique of replica 0, and a pod of replica 1 is evicted")
	deleteCliques(c, "chat-0")
	must(t, c.Kubelet.Evict(podsOf(c, "chat-1-web")[0]))
	c.Advance(2 * time.Minute)
	want(v1alpha1.ReasonPartitionReached, 3)
	c.Timeline.Say("partition 0: the update goes on, and is paused at its first pod")
	strategy(false, 0)
	c.Advance(5 * time.Second)
	strategy(true, 0)
	c.Advance(10 * time.Minute)
	want(v1alpha1.ReasonUpdatePaused, 4)
	c.Timeline.Say("a pod of the replica that is updated is evicted")
	must(t, c.Kubelet.Evict(podsOf(c, "chat-1-web")[2]))
	c.Advance(2 * time.Minute)
	want(v1alpha1.ReasonUpdatePaused, 4)
	c.Timeline.Say("it goes on")
	strategy(false, 0)
	c.Advance(10 * time.Minute)
	want(v1alpha1.ReasonUpdateComplete, 9)
	wantUpdated(c)
	c.Timeline.Golden(t, "rollout-canary")
}

// A set that is created paused starts, and a minReadySeconds of a year neither stalls nor loses an update: it waits,
// and says until when; removing it goes on.
func TestPausedAtCreationAndAYearOfReadiness(t *testing.T) {
	c := newService(t, Nodes(4, 3), 2, func(set *v1alpha1.PodCliqueSet) {
		set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.RollingRecreateStrategyType,
			RollingRecreate: &v1alpha1.RollingRecreateUpdateStrategy{Paused: true, Partition: ptr.To(int32(7))}}
	})
	minReady := func(seconds int32) {
		Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) {
			s.Spec.UpdateStrategy = nil
			s.Spec.Template.Clique("web").Spec.MinReadySeconds = seconds
		})
	}
	minReady(365 * 24 * 3600)
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(30 * time.Minute)
	if ready, unready := withImage(c, "registry.example/main:2"); ready+unready > 1 {
		c.Fatalf("%d pods were replaced", ready+unready)
	}
	if reason, message := progressing(c); reason == v1alpha1.ReasonUpdateStalled || reason == v1alpha1.ReasonUpdateComplete {
		c.Fatalf("Progressing: %s: %s", reason, message)
	}
	minReady(0)
	c.Advance(10 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 6)
}

// TestACanaryThatStays: what the updated replica loses while the partition is reached neither stalls the update, which
// has nothing to do, nor reports the partition again.
func TestACanaryThatStays(t *testing.T) {
	t.Parallel()
	c := newService(t, Nodes(6, 3), 3, func(s *v1alpha1.PodCliqueSet) {
		s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.RollingRecreateStrategyType,
			RollingRecreate: &v1alpha1.RollingRecreateUpdateStrategy{Partition: ptr.To(int32(2))}}
	})
	image(c, podCliqueSet(), "registry.example/main:2", "web")
	c.Advance(5 * time.Minute)
	for range 4 {
		c.Advance(time.Hour)
		for _, pod := range podsOf(c, "chat-2-web")[:2] {
			userDeletes(c, pod)
		}
		c.Advance(time.Minute)
	}
	wantEvents(c, 1, v1alpha1.EventPartitionReached)
	wantEvents(c, 0, v1alpha1.EventUpdateStalled)
}

// While an update waits for a replica that cannot be created, the attempts back off.
func TestUpdateRetriesACreationWithBackoff(t *testing.T) {
	c := newService(t, Nodes(4, 4), 2, nil)
	refused := 0
	c.API.Refuse = func(verb Verb, o client.Object) error {
		if _, isClique := o.(*v1alpha1.PodClique); !isClique || verb != Create || o.GetName() != "chat-2-web" {
			return nil
		}
		refused++
		return apierrors.NewForbidden(v1alpha1.Resource("podcliques"), o.GetName(), errors.New("exceeded quota"))
	}
	c.Timeline.Say("the image is changed, and the set scaled to 3, which a quota refuses")
	Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) {
		s.Spec.Replicas = 3
		s.Spec.Template.Clique("web").Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
	})
	c.Advance(time.Minute)
	if refused == 0 || refused > 20 {
		t.Errorf("the PodClique was refused %d times in a minute, want at most 20", refused)
	}
	c.API.Refuse = nil
	c.Advance(10 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 9)
}

// An update is stuck at the first replica of a scaling group when the set terminates the replica because of another
// clique. The replicas that the update has not reached come back with the template that they had (docs/decisions, U9).
func TestTerminationBySetDuringAStuckUpdate(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(4, 4), Check: both(invariants(), both(terminations(), updates()))})
	breakImages(c)
	set := watched(time.Minute, 0)
	set.Spec.Template.PodCliqueScalingGroupConfigs[0].Replicas = ptr.To(int32(3))
	c.Create(set)
	c.Advance(time.Minute)
	wantAvailable(c, 11)
	c.Timeline.Say("the update of the group to a broken image stops at its first replica")
	image(c, podCliqueSet(), broken+"2", "leader", "worker")
	c.Advance(2 * time.Minute)
	if ready, unready := withImage(c, broken+"2"); ready != 0 || unready != 3 {
		t.Fatalf("%d pods with the broken image are ready, %d are not; want 3 that are not", ready, unready)
	}
	c.Timeline.Say("both routers fail for longer than the delay")
	for _, pod := range podsOf(c, "chat-0-router") {
		must(t, c.Kubelet.FailReadiness(pod))
	}
	c.Advance(5 * time.Minute)
	if attempts := theSet(c, "chat").Status.ReplicaAttempts; len(attempts) != 1 || attempts[0].Reason != v1alpha1.ReasonTermination {
		t.Fatalf("attempts: %+v", attempts)
	}
	if ready, unready := withImage(c, broken+"2"); ready != 0 || unready != 3 {
		t.Errorf("%d pods with the broken image are ready, %d are not; want 3 that are not", ready, unready)
	}
	if ready, _ := withImage(c, "registry.example/main:1"); ready != 8 {
		t.Errorf("%d pods with the other image are ready, want 8", ready)
	}
}
