// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/test/rounds"
)

// Bindings to one node fail permanently, and another node is free: the member is bound there.
func TestBindingsToOneNodeFailAndAnotherIsFree(t *testing.T) {
	const needed = 3
	c := newCluster(t, needed+1)
	lift := c.refuseBindings(nil, c.nodes[:1])
	defer lift()
	c.startWith(nil)
	c.createGang("gang", needed, 8)
	c.untilBound("gang", needed)
	c.untilAdmitted("gang")
	for _, p := range c.pods() {
		if p.Spec.NodeName == c.nodes[0] {
			t.Errorf("pod %s is on %s, to which nothing can be bound", p.Name, p.Spec.NodeName)
		}
	}
}

// Bindings to one node fail permanently, and a gang needs all nodes: it is released every time, its ReplicaSet creates
// new pods, and the rate of requests to the API server stays low. Another gang gets the released room.
func TestBindingsToOneNodeFailForGood(t *testing.T) {
	const nodes = 4
	window, repairTimeout := 6*time.Second, "1s"
	if rounds.Exhaustive() {
		window, repairTimeout = time.Minute, "3s"
	}
	c := newCluster(t, nodes)
	lift := c.refuseBindings(nil, c.nodes[nodes-1:])
	c.startWith(map[string]any{"repairTimeout": repairTimeout})
	since := time.Now()
	c.replicaSet("gang", nodes, 8)
	c.untilBound("gang", nodes-1)
	first := c.uids("gang")
	c.until("the partial gang is released", 30*time.Second, func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			if first[p.Name] == p.UID {
				return false
			}
		}
		return true
	})
	gaveBack := time.Since(since)
	<-time.After(time.Until(since.Add(window))) // the test measures a rate

	writes := c.writes(since)
	seconds := time.Since(since).Seconds()
	all, refused := count(writes, "pods/binding")
	deletions, _ := count(writes, "pods")
	statuses, _ := count(writes, "podgroups/status")
	events, _ := count(writes, "events")
	conditions, _ := count(writes, "pods/status")
	t.Logf("given back after %s; in %.0f s: %.1f writes a second: %d bindings (%d refused), %d deletions, %d statuses, %d events, %d pod conditions",
		ms(gaveBack), seconds, float64(len(writes))/seconds, all, refused, deletions, statuses, events, conditions)
	if rate := float64(len(writes)) / seconds; rate > 20 {
		t.Errorf("%.1f writes a second for a gang of %d whose binding fails", rate, nodes)
	}
	if rate := float64(refused) / seconds; rate > 3 {
		t.Errorf("%.1f refused bindings a second", rate)
	}

	for _, n := range c.nodes[:nodes-1] {
		c.must(c.pool(n, true), "labelling a node")
	}
	c.apply(c.group("other").MinMember(nodes - 1))
	for _, name := range names("other", 0, nodes-1) {
		c.create(c.pod(name, "other", 8).NodeSelector("test/pool", "gangs"))
	}
	c.until("another gang gets the nodes", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, "other") == nodes-1 })
	c.deleteGang("other")
	lift()
	c.untilBound("gang", nodes)
	c.untilAdmitted("gang")
}

// Bare pods are not released, so the binding is retried indefinitely, at a low rate.
func TestFailingBindingOfBarePodsIsTriedSeldom(t *testing.T) {
	window, repairTimeout := 8*time.Second, "1s"
	if rounds.Exhaustive() {
		window, repairTimeout = 90*time.Second, "3s"
	}
	c := newCluster(t, 1)
	lift := c.refuseBindings([]string{"gang-0"}, nil)
	c.startWith(map[string]any{"repairTimeout": repairTimeout})
	c.createGang("gang", 4, 1)
	since := time.Now()
	c.untilBound("gang", 3)
	before := c.uids("gang")
	<-time.After(window) // the test measures a rate
	writes := c.writes(since)
	_, refused := count(writes, "pods/binding")
	t.Logf("%d refused bindings, %d writes in all in %s", refused, len(writes), window)
	if most := 8 + int(window/(5*time.Second)); refused > most {
		t.Errorf("%d refused bindings in %s, want at most %d", refused, window, most)
	}
	if after := c.uids("gang"); !sameUIDs(before, after) {
		t.Errorf("pods before %v, after %v", before, after)
	}
	lift()
	c.untilBound("gang", 4)
	c.untilAdmitted("gang")
}
