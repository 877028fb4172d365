// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/rounds"
)

// kill -9 at random moments during the admission of several gangs, up to three times in a row, also while the scheduler
// restarts. The gangs fill the cluster to the last GPU, so a gang that kept pods of a minimum that cannot be completed
// would cause a deadlock.
func TestKilledAtRandomInstants(t *testing.T) {
	const nodes, gangs, perGang = 8, 8, 8
	c := newCluster(t, nodes)
	o := c.observe()
	n := rounds.Number()
	random := rand.New(rand.NewPCG(9, 9))
	kills, hits := 0, 0 // hits: kills that found a gang bound in part
	var toWhole []time.Duration
	for round := range n {
		// With one binding in flight at a time a burst lasts longer, and more kills fall into one.
		c.startWith(map[string]any{"bindParallelism": []int{1, 2, 64}[round%3]})
		var all []string
		for i := range gangs {
			g := fmt.Sprintf("g-%d-%d", round, i)
			all = append(all, g)
			o.expect(g, perGang)
			if i%2 == 0 {
				c.apply(c.group(g).MinMember(perGang))
			} else {
				c.apply(c.group(g).MinSubGroup(2).SubGroup("left", 4).SubGroup("right", 4))
			}
		}
		created := make(chan struct{})
		go func() {
			defer close(created)
			for i := range perGang {
				for j, g := range all {
					w := c.pod(fmt.Sprintf("%s-%d", g, i), g, 1)
					if j%2 == 1 {
						w.SubGroup([]string{"left", "right"}[i%2])
					}
					c.create(w)
				}
			}
		}()
		// The last pods of all gangs are created at about the same time; the first kill is between the first binding
		// and the last, the others some time after the start.
		at := random.IntN(gangs * perGang)
		c.until(fmt.Sprintf("%d pods are bound", at), time.Minute, func(pods []*corev1.Pod) bool {
			return len(boundPods(pods)) >= at
		})
		c.scheduler.Kill()
		kills++
		<-created
		if c.partial(all, perGang) > 0 {
			hits++
		}
		for range random.IntN(3) {
			c.must(c.scheduler.Start(), "starting muster-scheduler")
			<-time.After(time.Duration(random.Int64N(int64(1200 * time.Millisecond)))) // the instant of the kill, not a wait for something
			c.scheduler.Kill()
			kills++
			if c.partial(all, perGang) > 0 {
				hits++
			}
		}
		started := time.Now()
		c.must(c.scheduler.Start(), "starting muster-scheduler")
		for _, g := range all {
			c.untilBound(g, perGang)
		}
		toWhole = append(toWhole, time.Since(started))
		for _, g := range all {
			c.untilAdmitted(g)
			o.forget(g)
		}
		for _, g := range all {
			c.deleteGang(g)
		}
		c.scheduler.Kill()
	}
	partials, _ := o.stop()
	t.Logf("%d kills in %d rounds, %d of them while a gang was bound in part: every gang ended whole; %d times a gang was seen bound in part, at the longest for %s (scheduler dead and starting included); start to all whole %s (median), %s (longest)",
		kills, n, hits, len(partials), ms(longest(partials)), ms(median(toWhole)), ms(slices.Max(toWhole)))
	for _, p := range partials {
		if p.ended != "whole" {
			t.Errorf("gang %s was bound in part for %s and then released, though there was room for it", p.gang, p.duration)
		}
		if p.duration > 30*time.Second {
			t.Errorf("gang %s was bound in part for %s, longer than the repair timeout", p.gang, p.duration)
		}
	}
}

// boundPods returns those that have a node.
func boundPods(pods []*corev1.Pod) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			out = append(out, p)
		}
	}
	return out
}

// partial returns how many of the gangs are bound in part now.
func (c *cluster) partial(gangs []string, minimum int) int {
	c.t.Helper()
	counts := map[string]int{}
	for _, p := range c.pods() {
		if p.Spec.NodeName != "" {
			counts[p.Annotations[v2alpha2.PodGroupAnnotation]]++
		}
	}
	n := 0
	for _, g := range gangs {
		if counts[g] > 0 && counts[g] < minimum {
			n++
		}
	}
	return n
}

func sameUIDs(a, b map[string]types.UID) bool {
	if len(a) != len(b) {
		return false
	}
	for name, uid := range a {
		if b[name] != uid {
			return false
		}
	}
	return true
}

// cordon makes nodes unschedulable, or schedulable again.
func (c *cluster) cordon(unschedulable bool, nodes ...string) {
	c.t.Helper()
	for _, name := range nodes {
		_, err := cp.Client().CoreV1().Nodes().Patch(c.ctx, name, types.MergePatchType,
			[]byte(fmt.Sprintf(`{"spec":{"unschedulable":%v}}`, unschedulable)), metav1.PatchOptions{})
		c.must(err, "cordoning node "+name)
	}
}

// After the crash there is no longer room for the rest of the gang. Pods that the scheduler bound for this PodGroup,
// and that a controller replaces, are released after the repair timeout; other pods are not deleted.
func TestPartialGangWithoutRoomIsReleased(t *testing.T) {
	c := newCluster(t, 2)

	// Pods that name the gang and are not the scheduler's to delete.
	c.apply(c.group("gang").MinMember(8))
	owner := c.owner("gang")
	byHand := c.createOwned(c.pod("by-hand", "gang", 0).SchedulerName("by-hand").Node(c.nodes[0]).SubGroup("no-such"), owner)

	// 6 of 8 will be bound: 4 that have a controller, 2 that have none.
	lift := c.refuseBindings([]string{"owned-4", "owned-5"}, nil)
	c.startWith(map[string]any{"repairTimeout": "3s"})
	for _, pod := range names("bare", 0, 2) {
		c.create(c.pod(pod, "gang", 2))
	}
	for _, pod := range names("owned", 0, 6) {
		c.createOwned(c.pod(pod, "gang", 2), owner)
	}
	c.until("6 pods are bound", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, "gang") == 7 }) // and the one by hand
	c.scheduler.Kill()
	lift()
	c.cordon(true, c.nodes...)
	c.createGang("waits", 4, 2) // fits only where the 4 pods of the partial gang are
	started := time.Now()
	c.must(c.scheduler.Start(), "starting muster-scheduler")

	c.until("the pods with a controller are released", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, "gang") == 3 })
	took := time.Since(started)
	left := c.uids("gang")
	for _, name := range []string{"bare-0", "bare-1", "by-hand"} {
		if left[name] == "" {
			t.Errorf("pod %s was deleted; left are %v", name, left)
		}
	}
	if left["by-hand"] != byHand.UID {
		t.Errorf("pod by-hand was deleted")
	}
	if took < 3*time.Second {
		t.Errorf("released %s after the start, which is less than the repair timeout", took)
	}
	for _, pod := range names("bare", 0, 2) {
		t.Logf("%s: %s", pod, c.untilEvent(pod, v2alpha2.EventPartialGangKept, 20*time.Second))
	}
	t.Logf("gang: %s", c.untilEvent("gang", v2alpha2.EventPartialGangReleased, 20*time.Second))

	// What was freed is free: 16 GPUs, less the bare pods' 4.
	c.cordon(false, c.nodes...)
	c.untilBound("waits", 4)
	c.untilAdmitted("waits")
	t.Logf("released %s after the start with a repair timeout of 3s", ms(took))
}

// The PodGroup was deleted and another of the same name created while the scheduler did not run: pods that were bound
// for the first do not make the second partial, and are not deleted.
func TestPartialGangOfAnotherPodGroupIsNotTouched(t *testing.T) {
	c := newCluster(t, 2)
	lift := c.refuseBindings([]string{"gang-3", "other-3"}, nil)
	c.startWith(map[string]any{"repairTimeout": "1h"}) // it is killed when both gangs are partial, and must release none before
	c.createOwnedGang("gang", 4, 1)
	c.createOwnedGang("other", 4, 1)
	c.untilBound("gang", 3)
	c.untilBound("other", 3)
	c.scheduler.Kill()
	before := c.uids("gang")
	c.must(c.dynamic.Resource(podGroups).Namespace(c.namespace).Delete(c.ctx, "gang", metav1.DeleteOptions{}), "deleting the PodGroup")
	c.apply(c.group("gang").MinMember(4))
	c.cordon(true, c.nodes...)
	lift()
	c.startWith(map[string]any{"repairTimeout": "2s"})
	c.until("the other gang, which is partial, is released", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, "other") == 0 })
	if after := c.uids("gang"); !sameUIDs(before, after) {
		t.Errorf("pods before %v, after %v", before, after)
	}
	// It is a gang that lacks a pod, and is completed when there is room.
	c.cordon(false, c.nodes...)
	c.untilBound("gang", 4)
	c.untilAdmitted("gang")
}
