// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// podCliqueSet is chat: a set with a standalone clique of 2 and a scaling group of 2 replicas, one of which is needed,
// with a leader and 2 workers each: 8 GPUs.
func podCliqueSet() *v1alpha1.PodCliqueSet {
	return wrappers.MakePodCliqueSet("chat", "ns").
		Clique("router", 2, wrappers.MinAvailable(2), wrappers.GPUs(1)).
		Clique("leader", 1, wrappers.MinAvailable(1), wrappers.GPUs(1)).
		Clique("worker", 2, wrappers.MinAvailable(2), wrappers.GPUs(1)).
		ScalingGroup("model", 2, 1, "leader", "worker").Obj()
}

// scalingGroup is the scaling group of chat.
func scalingGroup() *v1alpha1.PodCliqueScalingGroup {
	return wrappers.MakeScalingGroup("chat", 0, "model", "ns").Replicas(2).MinAvailable(1).Cliques("leader", "worker").Obj()
}

// TestStory creates, scales and deletes a set.
func TestStory(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
	c.Timeline.Say("a set is created")
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	wantAvailable(c, 8)

	c.Timeline.Say("its scaling group is scaled out to 3")
	Edit(c, scalingGroup(), func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 3 })
	c.Advance(time.Minute)
	wantAvailable(c, 11)

	c.Timeline.Say("and in to 1")
	Edit(c, scalingGroup(), func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 1 })
	c.Advance(time.Minute)
	wantAvailable(c, 5)

	c.Timeline.Say("the set is deleted")
	c.Delete(podCliqueSet())
	c.Advance(time.Minute)
	wantNothing(c)
	c.Timeline.Golden(t, "story")
}

// TestLossesWithoutTimeToReportThem: a set that loses a pod a moment after it was available, and one that loses a pod a
// moment before muster-controller restarts, are reported as degraded and as recovered.
func TestLossesWithoutTimeToReportThem(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
	c.Timeline.Say("a set is created")
	c.Create(podCliqueSet())
	for range 100 {
		c.Advance(100 * time.Millisecond)
		if meta.IsStatusConditionTrue(theSet(c, "chat").Status.Conditions, v1alpha1.ConditionAvailable) {
			break
		}
	}
	wantAvailable(c, 8)
	c.Timeline.Say("as soon as it is available, the readiness probe of a router fails")
	pod := fail(c, "chat-0-router")
	c.Advance(30 * time.Second)
	c.Timeline.Say("it passes again")
	c.Kubelet.PassReadiness(pod)
	c.Advance(30 * time.Second)
	c.Timeline.Say("it fails again, and muster-controller restarts a second later")
	fail(c, "chat-0-router")
	c.Advance(time.Second)
	c.Restart()
	c.Advance(30 * time.Second)
	c.Timeline.Say("it passes again")
	c.Kubelet.PassReadiness(pod)
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	c.Timeline.Golden(t, "losses")
}

// wantAvailable fails the test if the set is not available with this number of ready pods.
func wantAvailable(c *Cluster, pods int) {
	c.t.Helper()
	for _, set := range All[*v1alpha1.PodCliqueSet](c) {
		if !meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionAvailable) {
			c.Fatalf("set %s is not available: %+v", set.Name, set.Status.Conditions)
		}
	}
	ready := 0
	for _, pod := range All[*corev1.Pod](c) {
		if workload.IsReady(pod) {
			ready++
		}
	}
	if ready != pods || len(All[*corev1.Pod](c)) != pods {
		c.Fatalf("%d pods, %d of them ready, want %d", len(All[*corev1.Pod](c)), ready, pods)
	}
}

// wantNothing fails the test if objects other than the nodes are left.
func wantNothing(c *Cluster) {
	c.t.Helper()
	for _, gvk := range c.API.kinds() {
		if gvk.Kind == "Node" {
			continue
		}
		for _, o := range c.API.tables[gvk].ordered {
			c.Fatalf("%s is left", describe(o))
		}
	}
}

// invariants returns the check that runs after every step: that of hosts; and a PodGroup that has never been admitted
// has bound pods only while its plan is being bound, during which the clock does not move.
func invariants() func(*Cluster) error {
	partial := map[string]time.Duration{} // partly bound PodGroups, and since when
	lost := hosts{}
	created := map[types.UID]bool{} // PodCliques that were checked when they were new
	return func(c *Cluster) error {
		for _, clique := range All[*v1alpha1.PodClique](c) {
			if recorded := recordedAttempt(c, clique); !created[clique.UID] && workload.Attempt(clique).Precedes(recorded) {
				return fmt.Errorf("PodClique %s was created for %+v, and %+v is recorded", clique.Name, workload.Attempt(clique), recorded)
			}
			created[clique.UID] = true
		}
		if err := lost.check(c); err != nil {
			return err
		}
		bound := map[string]int{}
		for _, pod := range All[*corev1.Pod](c) {
			if !lost[pod.UID] && !workload.HasEnded(pod) && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
				bound[pod.Annotations[v2alpha2.PodGroupAnnotation]]++
			}
		}
		for _, g := range All[*v2alpha2.PodGroup](c) {
			if bound[g.Name] == 0 || meta.IsStatusConditionTrue(g.Status.Conditions, v2alpha2.ConditionAdmitted) {
				delete(partial, g.Name)
				continue
			}
			if since, ok := partial[g.Name]; !ok {
				partial[g.Name] = c.Elapsed()
			} else if since != c.Elapsed() {
				return fmt.Errorf("PodGroup %s has %d pods on nodes since %s, and is not admitted", g.Name, bound[g.Name], since)
			}
		}
		return nil
	}
}

// hosts are the pods that were lost once, which a restored node still has to stop. check returns an error if two pods
// have the same host name and none of them has ended or was lost with its node.
type hosts map[types.UID]bool

func (lost hosts) check(c *Cluster) error {
	names, answers := map[string]string{}, answering(c)
	for _, pod := range All[*corev1.Pod](c) {
		if pod.Spec.NodeName != "" && !answers[pod.Spec.NodeName] && pod.DeletionTimestamp != nil && !pod.DeletionTimestamp.After(c.Clock.Now()) {
			lost[pod.UID] = true
		}
		if lost[pod.UID] || workload.HasEnded(pod) {
			continue
		}
		host := pod.Namespace + "/" + pod.Spec.Subdomain + "/" + pod.Spec.Hostname
		if other := names[host]; other != "" {
			return fmt.Errorf("pods %s and %s have one host name, %s", pod.Name, other, host)
		}
		names[host] = pod.Name
	}
	return nil
}

// recordedAttempt returns the attempt of the PodClique's unit that the status of its owner records.
func recordedAttempt(c *Cluster, clique *v1alpha1.PodClique) lifecycle.Attempt {
	if name := clique.Labels[v1alpha1.LabelPodCliqueScalingGroup]; name != "" {
		for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
			if g.Namespace == clique.Namespace && g.Name == name {
				return workload.GroupAttempt(g, workload.GroupReplicaIndex(clique))
			}
		}
		return lifecycle.Attempt{}
	}
	for _, s := range All[*v1alpha1.PodCliqueSet](c) {
		if s.Namespace == clique.Namespace && s.Name == clique.Labels[v1alpha1.LabelPartOf] {
			return workload.SetAttempt(s, naming.LabelIndex(clique.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex))
		}
	}
	return lifecycle.Attempt{}
}

// TestAnyOrder takes the steps of TestStory in other orders, with crashes of the controllers and of the scheduler at
// random writes and times, with caches that are held back, and with pods that fail.
func TestAnyOrder(t *testing.T) {
	runs := 20 * rounds.Number()
	for seed := range int64(runs) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			random := rand.New(rand.NewSource(seed))
			c := New(t, Options{Nodes: Nodes(3, 4), Seed: seed + 1, Interleaved: seed%2 == 1, Check: both(invariants(), both(terminations(), overdue()))})
			c.Kubelet.Linger = time.Duration(random.Intn(20)) * time.Second
			c.Kubelet.LingerUpTo = time.Duration(random.Intn(40)) * time.Second
			act := func(what func()) {
				what()
				disturb(c, random)
			}
			scale := func(n int32) func() {
				return func() { Edit(c, scalingGroup(), func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = n }) }
			}
			// Readiness probes of some pods fail, a few of which pass again. A PodClique that was never available
			// according to its status is not terminated: such pods would fail forever.
			wasAvailable := func(p *corev1.Pod) bool {
				return slices.ContainsFunc(All[*v1alpha1.PodClique](c), func(q *v1alpha1.PodClique) bool {
					return metav1.IsControlledBy(p, q) && q.Status.WasAvailable
				})
			}
			sicken := func() {
				for range 1 + random.Intn(3) {
					pods := slices.DeleteFunc(All[*corev1.Pod](c), func(p *corev1.Pod) bool {
						return !workload.IsReady(p) || p.DeletionTimestamp != nil || !wasAvailable(p)
					})
					if len(pods) == 0 {
						return
					}
					pod := pods[random.Intn(len(pods))]
					must(t, c.Kubelet.FailReadiness(pod))
					c.Advance(time.Duration(random.Intn(40)) * time.Second)
					if random.Intn(2) == 0 {
						c.Kubelet.PassReadiness(pod)
					}
				}
			}
			act(func() {
				c.Create(watched(time.Duration(1+random.Intn(40))*time.Second, time.Duration(random.Intn(40))*time.Second))
			})
			c.Advance(2 * time.Minute)
			wantAvailable(c, 8)
			act(scale(3))
			act(scale(1))
			act(scale(2))
			c.Advance(2 * time.Minute)
			wantAvailable(c, 8)
			act(sicken)
			act(sicken)
			c.Advance(3 * time.Minute)
			wantAvailable(c, 8)
			act(func() { deleteCliques(c, "chat-0-model-1") })
			act(sicken)
			act(func() { deleteCliques(c, []string{"chat-0", "chat-0-router", "chat-0-model-0"}[random.Intn(3)]) })
			c.Advance(3 * time.Minute)
			wantAvailable(c, 8)
			act(func() { c.Delete(watched(time.Second, 0)) })
			c.Advance(2 * time.Minute)
			wantNothing(c)
		})
	}
}

// disturb takes steps while controllers or the scheduler crash, or a cache is held back.
func disturb(c *Cluster, random *rand.Rand) {
	held := []client.Object{&corev1.Pod{}, &v1alpha1.PodClique{}, &v1alpha1.PodCliqueScalingGroup{}, &v2alpha2.PodGroup{}, &v1alpha1.PodCliqueSet{}}
	for range random.Intn(4) {
		switch kind := held[random.Intn(len(held))]; random.Intn(3) {
		case 0:
			c.CrashAfterWrites(random.Intn(20))
		case 1:
			c.RestartScheduler()
		default:
			c.HoldBack(kind)
			c.Advance(time.Duration(random.Intn(5000)) * time.Millisecond)
			c.Deliver(kind)
		}
		for range random.Intn(100) {
			c.Step()
		}
		c.Advance(time.Duration(random.Intn(5000)) * time.Millisecond)
	}
}

// TestCrashAfterEachWrite: the life of a set has the same result as without a crash, after whichever write the
// controllers crash.
func TestCrashAfterEachWrite(t *testing.T) {
	for n := 0; ; n++ {
		c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
		c.CrashAfterWrites(n)
		c.Create(podCliqueSet())
		c.Advance(2 * time.Minute)
		wantAvailable(c, 8)
		Edit(c, scalingGroup(), func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 1 })
		c.Advance(2 * time.Minute)
		wantAvailable(c, 5)
		if c.Crashes == 0 {
			if n < 30 {
				t.Errorf("only %d writes were made", n)
			}
			return
		}
	}
}
