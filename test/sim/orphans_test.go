// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// often returns the first number in a run with many rounds, otherwise the second.
func often[T any](exhaustive, otherwise T) T {
	if rounds.Exhaustive() {
		return exhaustive
	}
	return otherwise
}

// leave deletes a set with --cascade=orphan, and returns its manifest.
func leave(c *Cluster, name string) *v1alpha1.PodCliqueSet {
	c.t.Helper()
	set := theSet(c, name)
	c.Timeline.Say("the set is deleted with --cascade=orphan")
	c.Delete(set.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationOrphan))
	for slices.ContainsFunc(All[*v1alpha1.PodCliqueSet](c), func(s *v1alpha1.PodCliqueSet) bool { return s.Name == name }) {
		if !c.Step() {
			c.Fatalf("set %s stays", name)
		}
	}
	return &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: set.Namespace}, Spec: *set.Spec.DeepCopy()}
}

// attemptsByOwner returns the attempts that sets and scaling groups record, by "owner/index".
func attemptsByOwner(c *Cluster) map[string]int32 {
	m := map[string]int32{}
	add := func(owner string, attempts []v1alpha1.ReplicaAttempt) {
		for _, a := range attempts {
			m[owner+"/"+string('0'+a.Index)] = a.Attempt
		}
	}
	for _, s := range All[*v1alpha1.PodCliqueSet](c) {
		add(s.Name, s.Status.ReplicaAttempts)
	}
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		add(g.Name, g.Status.ReplicaAttempts)
	}
	return m
}

// wantNoOrphans fails the test if an object but the sets and the nodes has no owner.
func wantNoOrphans(c *Cluster) {
	c.t.Helper()
	for _, gvk := range c.API.kinds() {
		if gvk.Kind == "Node" || gvk.Kind == v1alpha1.KindPodCliqueSet {
			continue
		}
		for _, o := range c.API.tables[gvk].ordered {
			if metav1.GetControllerOf(o) == nil {
				c.Fatalf("%s has no owner", describe(o))
			}
		}
	}
}

// inOrder makes the cliques of a set start one after the other, and scales the router and the group automatically.
func inOrderAndScaled(s *v1alpha1.PodCliqueSet) {
	s.Spec.Template.StartupType = ptr.To(v1alpha1.CliqueStartupTypeInOrder)
	s.Spec.Template.Clique("router").Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MinReplicas: ptr.To(int32(2)), MaxReplicas: 4}
	s.Spec.Template.PodCliqueScalingGroupConfigs[0].ScaleConfig = &v1alpha1.AutoScalingConfig{MinReplicas: ptr.To(int32(1)), MaxReplicas: 4}
}

// orphanStories are sets with a history, in a cluster in which all of their pods run.
var orphanStories = map[string]struct {
	set   func() *v1alpha1.PodCliqueSet
	lives func(c *Cluster)
}{
	"a new set": {func() *v1alpha1.PodCliqueSet { return watched(time.Minute, 0) }, func(*Cluster) {}},
	"a start order, and autoscalers": {func() *v1alpha1.PodCliqueSet {
		set := watched(time.Minute, 0)
		inOrderAndScaled(set)
		return set
	}, func(c *Cluster) { c.Advance(time.Minute) }},
	"a replica and one of a scaling group were terminated": {func() *v1alpha1.PodCliqueSet {
		set := watched(time.Minute, 0)
		set.Spec.Replicas = 3
		return set
	}, func(c *Cluster) {
		fail(c, "chat-1-router")
		fail(c, "chat-2-model-1-leader")
		c.Advance(3 * time.Minute)
		deleteCliques(c, "chat-1-")
		c.Advance(time.Minute)
		fail(c, "chat-1-model-0-leader")
		c.Advance(3 * time.Minute)
	}},
	"scaled": {podCliqueSet, func(c *Cluster) {
		Edit(c, scalingGroup(), func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 3 })
		Edit(c, theClique(c, "chat-0-router"), func(q *v1alpha1.PodClique) { q.Spec.Replicas = 4 })
		c.Advance(time.Minute)
	}},
	"updated": {podCliqueSet, func(c *Cluster) {
		image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
		c.Advance(3 * time.Minute)
	}},
	"updated and rolled back": {podCliqueSet, func(c *Cluster) {
		image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
		c.Advance(3 * time.Minute)
		image(c, podCliqueSet(), "registry.example/main:1", "router", "leader", "worker")
		c.Advance(3 * time.Minute)
	}},
	"an update is paused at its first replica": {func() *v1alpha1.PodCliqueSet {
		set := podCliqueSet()
		set.Spec.Replicas = 2
		return set
	}, func(c *Cluster) {
		image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
		c.Advance(3 * time.Second)
		Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.RollingRecreateStrategyType,
				RollingRecreate: &v1alpha1.RollingRecreateUpdateStrategy{Paused: true}}
		})
		c.Advance(2 * time.Minute)
	}},
	"an update stands at its partition": {func() *v1alpha1.PodCliqueSet {
		set := podCliqueSet()
		set.Spec.Replicas = 2
		set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.RollingRecreateStrategyType,
			RollingRecreate: &v1alpha1.RollingRecreateUpdateStrategy{Partition: ptr.To(int32(1))}}
		return set
	}, func(c *Cluster) {
		image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
		c.Advance(3 * time.Minute)
	}},
	"OnDelete with pods of an earlier template": {func() *v1alpha1.PodCliqueSet {
		set := podCliqueSet()
		set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
		return set
	}, func(c *Cluster) {
		image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
		c.Advance(time.Minute)
		userDeletes(c, podsOf(c, "chat-0-router")[0])
		c.Advance(time.Minute)
	}},
	"pods of an earlier template that are deferred": {func() *v1alpha1.PodCliqueSet {
		set := podCliqueSet()
		set.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
		return set
	}, func(c *Cluster) {
		image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
		c.Advance(time.Minute)
		userDeletes(c, podsOf(c, "chat-0-router")[0])
		c.Advance(time.Minute)
		Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) { s.Spec.UpdateStrategy = nil })
		c.Advance(time.Minute)
	}},
	"a job that was restarted": {func() *v1alpha1.PodCliqueSet {
		set := trainingSet(2, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(3))})
		set.Name = "chat"
		return set
	}, func(c *Cluster) {
		for range 2 {
			exit(c, "chat-1-launcher", 1)
			c.Advance(2 * time.Minute)
		}
	}},
}

// A set that was deleted with --cascade=orphan and is applied again, unchanged, goes on with what it has left: no pod
// ends, attempts, sizes and updates stay, and everything belongs to it. Source: docs/decisions, W14.
func TestSetIsAppliedAgain(t *testing.T) {
	for name, story := range orphanStories {
		t.Run(name, func(t *testing.T) {
			for seed := range often(int64(10), 3) {
				c := New(t, Options{Nodes: Nodes(8, 4), Seed: seed, Interleaved: seed%2 == 1, Check: both(invariants(), terminations())})
				c.Create(story.set())
				c.Advance(time.Minute)
				story.lives(c)
				pods := len(All[*corev1.Pod](c))
				wantAvailable(c, pods)
				before, attempts := uids(c), attemptsByOwner(c)
				updated := theSet(c, "chat").Status.UpdatedReplicas
				progressing := meta.FindStatusCondition(theSet(c, "chat").Status.Conditions, v1alpha1.ConditionProgressing)
				groups := identities[*v1alpha1.PodCliqueScalingGroup](c)

				again := leave(c, "chat")
				c.Advance(time.Duration(seed) * 20 * time.Second)
				c.Timeline.Say("it is applied again")
				c.Create(again)
				c.Advance(2 * time.Second)
				wantAvailable(c, pods)
				c.Advance(15 * time.Minute)
				wantReplaced(c, before)
				wantAvailable(c, pods)
				wantNoOrphans(c)
				if after := attemptsByOwner(c); !maps.Equal(after, attempts) {
					c.Fatalf("attempts %v became %v", attempts, after)
				}
				if after := identities[*v1alpha1.PodCliqueScalingGroup](c); !maps.Equal(after, groups) {
					c.Fatalf("scaling groups %v became %v", groups, after)
				}
				s := theSet(c, "chat").Status
				if s.UpdatedReplicas != updated {
					c.Fatalf("%d replicas are updated, want %d", s.UpdatedReplicas, updated)
				}
				if is := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionProgressing); progressing != nil && (is == nil || is.Reason != progressing.Reason) {
					c.Fatalf("the update is %+v, and was %+v", is, progressing)
				}
				c.Delete(theSet(c, "chat"))
				c.Advance(2 * time.Minute)
				wantNothing(c)
			}
		})
	}
}

// What happens to a set that was applied again is what happens to any other: a lost pod is replaced, a breach
// terminates a replica, which has the next attempt, a job uses its restarts, and an edit is rolled out.
func TestSetThatWasAppliedAgainLives(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(8, 4), Check: both(invariants(), both(terminations(), updates()))})
	set := watched(time.Minute, 0)
	set.Spec.Replicas = 2
	c.Create(set)
	c.Advance(time.Minute)
	fail(c, "chat-1-router")
	c.Advance(3 * time.Minute)
	c.Create(leave(c, "chat"))
	c.Advance(time.Minute)
	before := uids(c)
	userDeletes(c, podsOf(c, "chat-0-model-0-worker")[0])
	c.Advance(time.Minute)
	wantAvailable(c, 16)
	fail(c, "chat-1-router")
	fail(c, "chat-0-model-1-leader")
	c.Advance(3 * time.Minute)
	wantAvailable(c, 16)
	wantReplaced(c, before, "chat-1-", "chat-0-model-1-", "chat-0-model-0-worker-0")
	if got := attemptsByOwner(c); got["chat/1"] != 2 || got["chat-0-model/1"] != 1 || got["chat/0"] != 0 {
		c.Fatalf("attempts %v", got)
	}
	image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
	c.Advance(10 * time.Minute)
	wantUpdated(c)
	wantAvailable(c, 16)
	if n := images(c); n["main:2"] != 16 {
		c.Fatalf("images %v", n)
	}
}

// A changed manifest is an ordinary update of what was left.
func TestChangedSetIsAppliedAgain(t *testing.T) {
	change := func(s *v1alpha1.PodCliqueSet) {
		for _, clique := range s.Spec.Template.Cliques {
			clique.Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
		}
	}
	for name, tc := range map[string]struct {
		edit, change func(*v1alpha1.PodCliqueSet)
		want         map[string]int // images
	}{
		"RollingRecreate": {func(*v1alpha1.PodCliqueSet) {}, change, map[string]int{"main:2": 16}},
		"OnDelete": {func(s *v1alpha1.PodCliqueSet) {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.OnDeleteStrategyType}
		}, change, map[string]int{"main:1": 16}},
		"paused": {func(*v1alpha1.PodCliqueSet) {}, func(s *v1alpha1.PodCliqueSet) {
			change(s)
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.RollingRecreateStrategyType,
				RollingRecreate: &v1alpha1.RollingRecreateUpdateStrategy{Paused: true}}
		}, map[string]int{"main:1": 16}},
		"fewer replicas": {func(*v1alpha1.PodCliqueSet) {}, func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 1 }, map[string]int{"main:1": 8}},
		"more replicas":  {func(*v1alpha1.PodCliqueSet) {}, func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 3 }, map[string]int{"main:1": 24}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(3) {
				c := New(t, Options{Nodes: Nodes(8, 4), Seed: seed, Interleaved: seed%2 == 1, Check: both(invariants(), both(terminations(), updates()))})
				set := podCliqueSet()
				set.Spec.Replicas = 2
				tc.edit(set)
				c.Create(set)
				c.Advance(time.Minute)
				before := uids(c)
				again := leave(c, "chat")
				tc.change(again)
				c.Create(again)
				c.Advance(15 * time.Minute)
				if got := images(c); !maps.Equal(got, tc.want) {
					c.Fatalf("images %v, want %v", got, tc.want)
				}
				if tc.want["main:1"] > 0 {
					for host, uid := range uids(c) {
						if before[host] != "" && before[host] != uid {
							c.Fatalf("pod %s was replaced", host)
						}
					}
				} else {
					wantUpdated(c)
				}
				pods := 0
				for _, n := range tc.want {
					pods += n
				}
				wantAvailable(c, pods)
				wantNoOrphans(c)
			}
		})
	}
}

// An update in the middle of which the set was deleted with --cascade=orphan goes on when it is applied again.
func TestSetIsAppliedAgainDuringAnUpdate(t *testing.T) {
	for _, replicas := range []int32{1, 2} {
		for after := 2 * time.Second; after < 3*time.Minute; after += often(3*time.Second, 22*time.Second) {
			c := newRollout(t, replicas, nil)
			made := countGenerations(c)
			before := uids(c)
			image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
			c.Advance(after)
			again := leave(c, "chat")
			c.Advance(20 * time.Second)
			c.Create(again)
			c.Advance(15 * time.Minute)
			if n := images(c); n["main:2"] != 8*int(replicas) {
				c.Fatalf("deleted after %s: images %v, %+v", after, n, theSet(c, "chat").Status.Conditions)
			}
			wantAvailable(c, 8*int(replicas))
			for host, uids := range made {
				if delete(uids, before[host]); len(uids) != 1 {
					c.Fatalf("deleted after %s: pod %s was made %d times more", after, host, len(uids))
				}
			}
		}
	}
}

// What belongs to another controller, or was not made for a set of this name, is not adopted and not changed. The set
// says so, and everything else goes on.
func TestForeignObjectsAreNotAdopted(t *testing.T) {
	for name, edit := range map[string]func(*corev1.Service){
		"another controller": nil,
		"without labels":     func(s *corev1.Service) { s.Labels = nil },
		"of another set":     func(s *corev1.Service) { s.Labels[v1alpha1.LabelPartOf] = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(8, 4), Check: invariants()})
			c.Create(podCliqueSet())
			c.Create(wrappers.MakePodGroup("other", "ns").Obj())
			c.Advance(time.Minute)
			before := uids(c)
			again := leave(c, "chat")
			if edit == nil {
				owner := All[*v2alpha2.PodGroup](c)[1]
				other := metav1.NewControllerRef(owner, v2alpha2.SchemeGroupVersion.WithKind("PodGroup"))
				edit = func(s *corev1.Service) { s.OwnerReferences = []metav1.OwnerReference{*other} }
			}
			Edit(c, All[*corev1.Service](c)[0].DeepCopy(), edit)
			copied := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat-public", Labels: podGroupLabels(c)}}
			c.Create(copied)
			left := All[*corev1.Service](c)[0].DeepCopy()
			c.Create(again)
			c.Advance(5 * time.Minute)
			wantReplaced(c, before)
			if got := All[*corev1.Service](c)[0]; got.ResourceVersion != left.ResourceVersion {
				c.Fatalf("the Service was changed: %+v", got)
			}
			if got := All[*corev1.Service](c); len(got) != 2 || len(got[1].OwnerReferences) != 0 {
				c.Fatalf("the copy of a user was adopted or deleted: %d Services", len(got))
			}
			foreign := meta.FindStatusCondition(theSet(c, "chat").Status.Conditions, v1alpha1.ConditionForeignObject)
			if foreign == nil || !strings.Contains(foreign.Message, "Service chat-0") {
				c.Fatalf("the set does not say what is in its way: %+v", theSet(c, "chat").Status.Conditions)
			}
			wantAvailable(c, 8)
		})
	}
}

// podGroupLabels returns the labels of the PodGroup: those that a user copies with an object.
func podGroupLabels(c *Cluster) map[string]string {
	return maps.Clone(All[*v2alpha2.PodGroup](c)[0].Labels)
}

// A job is not an update of another one: of a changed manifest, or after a failure, nothing is adopted, and the set
// says what to do.
func TestAnotherJobIsNotTheOneThatWasLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		lives  func(c *Cluster)
		change func(*v1alpha1.PodCliqueSet)
	}{
		"changed": {func(*Cluster) {}, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Template.Clique("worker").Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
		}},
		"failed": {func(c *Cluster) {
			exit(c, "job-0-launcher", 1)
			c.Advance(time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseFailed, 0, v1alpha1.ReasonMaxRestartsExceeded)
		}, func(*v1alpha1.PodCliqueSet) {}},
		"a service now": {func(*Cluster) {}, func(s *v1alpha1.PodCliqueSet) { s.Spec.WorkloadType, s.Spec.TrainingSpec = "", nil }},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(4, 4), Check: invariants()})
			c.Create(trainingSet(1, v1alpha1.TrainingSpec{}))
			c.Advance(time.Minute)
			tc.lives(c)
			before := uids(c)
			again := leave(c, "job")
			tc.change(again)
			c.Create(again)
			c.Advance(5 * time.Minute)
			wantReplaced(c, before)
			foreign := meta.FindStatusCondition(theSet(c, "job").Status.Conditions, v1alpha1.ConditionForeignObject)
			if foreign == nil || !strings.Contains(foreign.Message, "has no owner") {
				c.Fatalf("the set does not say what is in its way: %+v", theSet(c, "job").Status.Conditions)
			}
			for _, clique := range All[*v1alpha1.PodClique](c) { // as the message says
				c.Delete(clique)
			}
			for _, group := range All[*v1alpha1.PodCliqueScalingGroup](c) {
				c.Delete(group)
			}
			for _, group := range All[*v2alpha2.PodGroup](c) {
				c.Delete(group)
			}
			for _, service := range All[*corev1.Service](c) {
				c.Delete(service)
			}
			for _, revision := range All[*appsv1.ControllerRevision](c) {
				if metav1.GetControllerOf(revision) == nil {
					c.Delete(revision)
				}
			}
			c.Advance(5 * time.Minute)
			running(c, 3)
		})
	}
}

// A set that has no place for a PodClique that was left, or differs in what is immutable, adopts nothing: pods would
// end, or every later write to the PodClique would be refused. Neither does another job. When the former manifest is
// applied, all goes on.
func TestSetOfAnotherShapeAdoptsNothing(t *testing.T) {
	job := func() *v1alpha1.PodCliqueSet { return trainingSet(2, v1alpha1.TrainingSpec{}) }
	for name, tc := range map[string]struct {
		set    func() *v1alpha1.PodCliqueSet
		change func(*v1alpha1.PodCliqueSet)
	}{
		"a clique has another name": {podCliqueSet, func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.Clique("router").Name = "front" }},
		"a scaling group has another name": {podCliqueSet, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Template.PodCliqueScalingGroupConfigs[0].Name = "llm"
		}},
		"a clique is in a scaling group": {podCliqueSet, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Template.PodCliqueScalingGroupConfigs[0].CliqueNames = []string{"leader", "worker", "router"}
		}},
		"a clique has another minimum": {podCliqueSet, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Template.Clique("router").Spec.MinAvailable = ptr.To(int32(1))
		}},
		"a scaling group has another minimum": {podCliqueSet, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Template.PodCliqueScalingGroupConfigs[0].MinAvailable = ptr.To(int32(2))
		}},
		"a job has another template": {job, func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Template.Clique("worker").Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
		}},
		"a job has fewer replicas": {job, func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 1 }},
		"a job has fewer pods":     {job, func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.Clique("worker").Spec.Replicas = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(8, 4), Check: invariants()})
			set := tc.set()
			c.Create(set)
			c.Advance(time.Minute)
			before, again := uids(c), leave(c, set.Name)
			wrong := again.DeepCopy()
			tc.change(wrong)
			c.Create(wrong)
			c.Advance(5 * time.Minute)
			wantReplaced(c, before)
			foreign := meta.FindStatusCondition(theSet(c, set.Name).Status.Conditions, v1alpha1.ConditionForeignObject)
			if foreign == nil || !strings.Contains(foreign.Message, "has no owner") {
				c.Fatalf("the set does not say what is in its way: %+v", theSet(c, set.Name).Status.Conditions)
			}

			leave(c, set.Name)
			c.Timeline.Say("the former manifest is applied")
			c.Create(again)
			c.Advance(5 * time.Minute)
			wantReplaced(c, before)
			wantAvailable(c, len(before))
			wantNoOrphans(c)
		})
	}
}

// orphaned returns a cluster with a set that has raised attempts and was deleted with --cascade=orphan, the UIDs of its
// pods and its manifest.
func orphaned(t *testing.T, seed int64) (*Cluster, map[string]types.UID, *v1alpha1.PodCliqueSet) {
	t.Helper()
	c := New(t, Options{Nodes: Nodes(8, 4), Seed: seed, Interleaved: seed%2 == 1, Check: both(invariants(), terminations())})
	set := watched(time.Minute, 0)
	set.Spec.Replicas = 2
	inOrderAndScaled(set)
	c.Create(set)
	c.Advance(time.Minute)
	fail(c, "chat-1-router")
	fail(c, "chat-0-model-1-leader")
	c.Advance(3 * time.Minute)
	wantAvailable(c, 16)
	return c, uids(c), leave(c, "chat")
}

// wantAdopted fails the test unless the set of orphaned goes on with what was left.
func wantAdopted(c *Cluster, before map[string]types.UID) {
	c.t.Helper()
	wantReplaced(c, before)
	wantAvailable(c, 16)
	wantNoOrphans(c)
	if got := attemptsByOwner(c); got["chat/1"] != 1 || got["chat-0-model/1"] != 1 || len(got) != 2 {
		c.Fatalf("attempts %v", got)
	}
}

// The controllers crash, or another client is faster, at each of the writes with which they adopt what was left.
func TestCrashAfterEachWriteOfAnAdoption(t *testing.T) {
	for name, disturb := range map[string]func(c *Cluster, n int) (last func() bool){
		"crash": func(c *Cluster, n int) func() bool {
			c.CrashAfterWrites(n)
			return func() bool { return c.Crashes == 0 }
		},
		"conflict": func(c *Cluster, n int) func() bool {
			c.RefuseWrite(n)
			return c.RefusesWrite
		},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n += often(1, 5) {
				c, before, again := orphaned(t, 0)
				c.Advance(time.Minute)
				last := disturb(c, n)
				c.Create(again)
				c.Advance(5 * time.Minute)
				wantAdopted(c, before)
				if last() {
					if n < 20 {
						t.Errorf("only %d writes were made", n)
					}
					return
				}
			}
		})
	}
}

// Caches of each kind lag behind while a set is deleted with --cascade=orphan and applied again: nothing ends.
func TestAdoptionWithCachesThatAreBehind(t *testing.T) {
	kinds := map[string][]client.Object{
		"PodCliqueSets": {&v1alpha1.PodCliqueSet{}}, "PodCliques": {&v1alpha1.PodClique{}}, "scaling groups": {&v1alpha1.PodCliqueScalingGroup{}},
		"PodGroups": {&v2alpha2.PodGroup{}}, "Services": {&corev1.Service{}}, "revisions": {&appsv1.ControllerRevision{}}, "pods": {&corev1.Pod{}},
		"all but the sets": {&v1alpha1.PodClique{}, &v1alpha1.PodCliqueScalingGroup{}, &v2alpha2.PodGroup{}, &corev1.Service{}, &appsv1.ControllerRevision{}},
	}
	for name, held := range kinds {
		t.Run(name, func(t *testing.T) {
			for seed := range often(int64(6), 1) {
				for _, early := range []bool{true, false} {
					c, before, again := orphaned(t, seed)
					if early { // the cache shows the owner that is gone
						c.Create(again)
						c.Advance(5 * time.Minute)
						c.HoldBack(held...)
						again = leave(c, "chat")
					} else {
						c.Advance(time.Minute)
						c.HoldBack(held...)
					}
					c.Create(again)
					c.Advance(2 * time.Minute)
					wantReplaced(c, before)
					c.Deliver(held...)
					c.Advance(5 * time.Minute)
					wantAdopted(c, before)
				}
			}
		})
	}
}

// A set that is deleted with --cascade=orphan again while it adopts, after each number of steps, loses nothing; one
// that is deleted in the background takes with it what it has adopted, and the rest stays until it is applied again.
func TestSetIsDeletedWhileItAdopts(t *testing.T) {
	for n := 1; n < 120; n += often(2, 22) {
		c, before, again := orphaned(t, 0)
		c.Create(again.DeepCopy())
		for range n {
			c.Step()
		}
		leave(c, "chat")
		c.Create(again.DeepCopy())
		c.Advance(5 * time.Minute)
		wantAdopted(c, before)
	}
}

// A set of one scaling group, and a clique that is scaled to zero, are adopted too.
func TestSmallSetsAreAppliedAgain(t *testing.T) {
	for name, set := range map[string]*v1alpha1.PodCliqueSet{
		"one group":  oneGroup("chat"),
		"one clique": wrappers.MakePodCliqueSet("chat", "ns").Clique("web", 3, wrappers.MinAvailable(1), wrappers.GPUs(1)).Obj(),
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
			c.Create(set)
			c.Advance(time.Minute)
			for range 3 {
				pods, before := len(All[*corev1.Pod](c)), uids(c)
				c.Create(leave(c, "chat"))
				c.Advance(time.Minute)
				wantReplaced(c, before)
				wantAvailable(c, pods)
				wantNoOrphans(c)
			}
		})
	}
}
