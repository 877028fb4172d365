// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/test/rounds"
)

// Nodes are cordoned, lost or removed while a gang is planned and bound, and restored: in the end the gang is admitted,
// on nodes that exist, and the room that it held meanwhile blocked no other pod.
func TestNodesGoWhileAGangIsBound(t *testing.T) {
	const nodes, size = 12, 8
	c := newCluster(t, nodes)
	c.startWith(map[string]any{"bindParallelism": 2})
	o := c.observe()
	n := 2 * rounds.Number()
	random := rand.New(rand.NewPCG(3, 3))
	stranded := 0 // pods bound to nodes that did not exist
	var toWhole []time.Duration
	for round := range n {
		gang := fmt.Sprintf("gang-%d", round)
		o.expect(gang, size)
		c.replicaSet(gang, size, 8)
		at := random.IntN(size + 1)
		c.until(fmt.Sprintf("%d pods are bound", at), time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, gang) >= at })

		// Half of the nodes are taken away, so that the gang needs at least one node that is restored.
		var comeBack []func() error
		away := map[string]bool{}
		for _, i := range random.Perm(nodes)[:nodes/2] {
			name := c.nodes[i]
			away[name] = true
			switch random.IntN(3) {
			case 0:
				c.cordon(true, name)
				comeBack = append(comeBack, func() error { c.cordon(false, name); return nil })
			case 1:
				c.must(cp.LoseNode(c.ctx, name), "losing a node")
				comeBack = append(comeBack, func() error { return cp.RestoreNode(c.ctx, name) })
			case 2:
				node, err := cp.RemoveNode(c.ctx, name)
				c.must(err, "removing a node")
				comeBack = append(comeBack, func() error { return cp.ReturnNode(c.ctx, node) })
			}
		}
		// Pods of removed nodes are deleted, as the pod garbage collector would do within a minute.
		for _, p := range c.pods() {
			if away[p.Spec.NodeName] {
				stranded++
				c.must(ignoreNotFound(cp.Client().CoreV1().Pods(c.namespace).Delete(c.ctx, p.Name, *metav1.NewDeleteOptions(0))), "deleting a stranded pod")
			}
		}
		for _, back := range comeBack {
			c.must(back(), "bringing a node back")
		}
		started := time.Now()
		c.until("the gang is whole on nodes that exist", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, gang) == size })
		toWhole = append(toWhole, time.Since(started))
		c.untilAdmitted(gang)
		for _, p := range c.pods() {
			if !slices.Contains(c.nodes, p.Spec.NodeName) {
				t.Errorf("pod %s is on node %q", p.Name, p.Spec.NodeName)
			}
		}
		o.forget(gang)
		c.must(c.dynamic.Resource(podGroups).Namespace(c.namespace).Delete(c.ctx, gang, metav1.DeleteOptions{}), "deleting the PodGroup")
		c.deleteReplicaSet(gang)
		c.until("its pods are gone", time.Minute, func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	}
	partials, _ := o.stop()
	t.Logf("%d rounds, half of the nodes gone in each; %d pods were bound to those; whole %s after the last came back (median), %s (longest); bound in part %d times, at the longest for %s",
		n, stranded, ms(median(toWhole)), ms(slices.Max(toWhole)), len(partials), ms(longest(partials)))
}

// Changes at random, until the waiting gang would fit: then it is placed within seconds, and never before. No change is
// slept through.
func TestWaitingGangNeverSleepsThroughAChange(t *testing.T) {
	const size, gpus = 3, 4
	const within = 12 * time.Second // the scheduling queue's longest back-off is 10 s
	c := newCluster(t, 4)
	c.start()
	random := rand.New(rand.NewPCG(5, 5))
	var rooms []*room
	for _, n := range c.nodes {
		rooms = append(rooms, &room{name: n, labelled: true, gpus: 8, used: map[string]int{}})
		c.must(c.pool(n, true), "labelling a node")
	}
	fits := func() bool {
		n := 0
		for _, r := range rooms {
			n += r.fits(gpus)
		}
		return n >= size
	}
	pods := 0
	// change makes one change to one node and describes it.
	change := func() string {
		r := rooms[random.IntN(len(rooms))]
		if r.removed != nil {
			c.must(cp.ReturnNode(c.ctx, r.removed), "returning a node")
			r.removed = nil
			return "returned " + r.name
		}
		what := random.IntN(7)
		if what == 5 && len(r.used) > 0 {
			what = 6 // one such pod a node
		}
		switch what {
		case 0:
			r.cordoned = random.IntN(4) == 0
			c.cordon(r.cordoned, r.name)
			return fmt.Sprintf("cordoned %s: %v", r.name, r.cordoned)
		case 1:
			r.tainted = random.IntN(4) == 0
			c.must(c.taint(r.name, r.tainted), "tainting a node")
			return fmt.Sprintf("tainted %s: %v", r.name, r.tainted)
		case 2:
			r.labelled = random.IntN(4) > 0
			c.must(c.pool(r.name, r.labelled), "labelling a node")
			return fmt.Sprintf("labelled %s: %v", r.name, r.labelled)
		case 3:
			r.gpus = []int{0, 4, 8, 8, 8}[random.IntN(5)]
			c.must(c.setGPUs(r.name, r.gpus), "changing a node's GPUs")
			return fmt.Sprintf("%s has %d GPUs", r.name, r.gpus)
		case 4:
			if len(r.used) > 0 {
				return "nothing"
			}
			var err error
			r.removed, err = cp.RemoveNode(c.ctx, r.name)
			c.must(err, "removing a node")
			return "removed " + r.name
		case 5:
			pods++
			name := fmt.Sprintf("by-hand-%d", pods)
			r.used[name] = 1 + random.IntN(6)
			c.placeByHand(c.pod(name, "", int64(r.used[name])), r.name)
			return fmt.Sprintf("%s uses %d GPUs of %s", name, r.used[name], r.name)
		default:
			for name, n := range r.used {
				delete(r.used, name)
				if random.IntN(2) == 0 {
					c.must(cp.StartPod(c.ctx, c.namespace, name), "starting a pod")
					c.must(cp.ExitPod(c.ctx, c.namespace, name, 0), "ending a pod")
					return fmt.Sprintf("%s ended, which used %d GPUs of %s", name, n, r.name)
				}
				c.delete(name)
				return fmt.Sprintf("%s deleted, which used %d GPUs of %s", name, n, r.name)
			}
			return "nothing"
		}
	}
	var latencies []time.Duration
	changes := 0
	for round := range 5 * rounds.Number() {
		for i := 0; fits() && i < 1000; i++ {
			change()
			changes++
		}
		gang := fmt.Sprintf("gang-%d", round)
		c.apply(c.group(gang).MinMember(size))
		for _, name := range names(gang, 0, size) {
			c.create(c.pod(name, gang, gpus).NodeSelector("test/pool", "gangs"))
		}
		if random.IntN(2) == 0 { // half of them are already asleep when the changes begin
			c.untilStatus(gang, "has been refused", func(s v2Status) bool {
				return s.Reason != "" && s.Reason != "WaitingForPods" && s.Reason != "BehindInQueue"
			})
		}
		var story []string
		for !fits() {
			if n := c.boundNow(gang); n != 0 {
				t.Fatalf("%d pods of %s are bound where there is no room; %v", n, gang, story)
			}
			story = append(story, change())
			changes++
			if random.IntN(8) == 0 {
				<-time.After(time.Duration(random.IntN(60)) * time.Millisecond) // changes have random intervals
			}
		}
		since := time.Now()
		c.until(fmt.Sprintf("%s is placed after the last of %q", gang, story), time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, gang) == size })
		took := time.Since(since)
		latencies = append(latencies, took)
		if took > time.Second {
			t.Logf("%s was placed %s after the last of %q", gang, ms(took), story)
		}
		if took > within {
			t.Errorf("%s was placed %s after the change that made room: %q", gang, took, story)
		}
		c.deleteGang(gang)
	}
	slices.Sort(latencies)
	t.Logf("%d gangs, %d changes; placed %s after the change that made room (median), %s (95 %%), %s (longest)",
		len(latencies), changes, ms(median(latencies)), ms(latencies[len(latencies)*95/100]), ms(latencies[len(latencies)-1]))
}
