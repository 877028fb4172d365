// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// A gang that requires a rack is planned on the three nodes of r0, the tightest rack with room for it; r1 has four.
// Before it is bound, a node of r0 changes. The gang ends in one rack, or waits for it and says so.
func TestNodesChangeWhileAGangInARackIsPlanned(t *testing.T) {
	c := newCluster(t, 7)
	for i, node := range c.nodes {
		c.setRack(node, min(i/3, 1))
	}
	class := c.storageClass()
	c.startWith(map[string]any{"repairTimeout": "1s"})
	// atBarrier creates a gang that is held at the barrier, since the claim of its pod 0 has no volume, and returns a
	// node that is planned for another pod of it.
	atBarrier := func(gang string, mode corev1.PersistentVolumeAccessMode) string {
		c.t.Helper()
		c.claim(gang, class, mode)
		c.createIn("", rackLabel, gang, 3, func(i int, w *wrappers.PodWrapper) {
			if i == 0 {
				w.Claim(gang)
			}
		})
		chosen := c.untilNodeChosen(gang)
		if slices.Index(c.nodes, chosen) > 2 {
			c.t.Fatalf("the volume is for node %s, which is not in rack r0", chosen)
		}
		return c.nodes[(slices.Index(c.nodes, chosen)+1)%3]
	}
	// untilSeen returns when the scheduler has seen all changes of nodes until now: it places a pod by a later one.
	changes := 0
	untilSeen := func() {
		c.t.Helper()
		changes++
		value := strconv.Itoa(changes)
		c.change(c.nodes[6], func(n *corev1.Node) { n.Labels["test/changes"] = value })
		c.create(c.pod("seen", "", 0).NodeSelector("test/changes", value))
		c.untilPodBound("seen")
		c.delete("seen")
	}
	relabel := func(node string, rack int) {
		c.t.Helper()
		c.setRack(node, rack)
		untilSeen()
	}
	wholeIn := func(gang, rack string) {
		c.t.Helper()
		c.untilBound(gang, 3)
		if racks := c.domainsOf(gang, rackLabel); !slices.Equal(racks, []string{rack}) {
			c.t.Errorf("%s runs in racks %v, want %s", gang, racks, rack)
		}
		c.untilSatisfied(gang)
	}
	waitsIn := func(gang string, bound int, words string) {
		c.t.Helper()
		c.untilStatus(gang, "waits for a rack", func(s v2Status) bool {
			return containsAll(condition(s, v2alpha2.ConditionSatisfied).Message, words)
		})
		if racks := c.domainsOf(gang, rackLabel); c.boundNow(gang) != bound || len(racks) > 1 {
			c.t.Errorf("%d pods of %s are bound, in racks %v, want %d in one", c.boundNow(gang), gang, racks, bound)
		}
	}
	for _, story := range []struct {
		name string
		tell func(gang string)
	}{
		{"relabelled", func(gang string) {
			node := atBarrier(gang, corev1.ReadWriteMany)
			relabel(node, 1)
			c.provision(gang)
			wholeIn(gang, "r1")
			c.deleteGang(gang)
			c.setRack(node, 0)
		}},
		{"relabelled-with-a-volume-there", func(gang string) {
			node := atBarrier(gang, corev1.ReadWriteOnce)
			relabel(node, 1)
			c.provision(gang)
			waitsIn(gang, 0, "no rack takes the gang (3 pods")
			relabel(node, 0)
			wholeIn(gang, "r0")
			c.deleteGang(gang)
		}},
		{"cordoned", func(gang string) {
			node := atBarrier(gang, corev1.ReadWriteMany)
			c.cordon(true, node)
			untilSeen()
			c.provision(gang)
			wholeIn(gang, "r0")
			c.cordon(false, node)
			c.deleteGang(gang)
		}},
		// As for pods without a gang, filters that have accepted a node are not asked again.
		{"lost", func(gang string) {
			node := atBarrier(gang, corev1.ReadWriteMany)
			c.must(cp.LoseNode(c.ctx, node), "losing a node")
			untilSeen()
			c.provision(gang)
			wholeIn(gang, "r0")
			c.must(cp.RestoreNode(c.ctx, node), "finding a node again")
			c.deleteGang(gang)
		}},
		{"deleted", func(gang string) {
			node := atBarrier(gang, corev1.ReadWriteMany)
			removed, err := cp.RemoveNode(c.ctx, node)
			c.must(err, "deleting a node")
			untilSeen()
			c.provision(gang)
			wholeIn(gang, "r1")
			c.must(cp.ReturnNode(c.ctx, removed), "creating the node")
			c.deleteGang(gang)
		}},
		{"relabelled-while-its-binding-is-refused", func(gang string) {
			lift := c.refuseBindings([]string{gang + "-2"}, nil)
			c.createIn("", rackLabel, gang, 3)
			c.untilBound(gang, 2)
			taken := c.pods()
			node := c.nodes[slices.IndexFunc(c.nodes, func(n string) bool {
				return !slices.ContainsFunc(taken, func(p corev1.Pod) bool { return p.Spec.NodeName == n })
			})]
			relabel(node, 1)
			lift()
			waitsIn(gang, 2, "in rack r0, where it runs")
			relabel(node, 0)
			wholeIn(gang, "r0")
			c.deleteGang(gang)
		}},
	} {
		t.Run(story.name, func(t *testing.T) {
			c.t = t
			story.tell(story.name)
		})
		c.t = t
	}
	c.stillSchedules()
}

// A gang that requires a rack runs, and loses nodes. Its new pods are placed in its rack, although another one has more
// room; when its rack is full, they wait and say so.
func TestNodesOfAGangInARackAreLost(t *testing.T) {
	c := newCluster(t, 8)
	for i, node := range c.nodes {
		c.setRack(node, i/4)
	}
	c.start()
	c.createIn("", rackLabel, "gang", 3)
	c.untilBound("gang", 3)
	rack := c.domainsOf("gang", rackLabel)[0]
	lost := map[string]string{}
	replace := func(pod, by string) {
		t.Helper()
		lost[pod] = c.nodeOf(pod)
		c.must(cp.LoseNode(c.ctx, lost[pod]), "losing a node")
		c.delete(pod)
		c.create(c.pod(by, "gang", 8))
	}
	replace("gang-0", "gang-3")
	c.untilPodBound("gang-3") // the last node of the rack
	replace("gang-1", "gang-4")
	replace("gang-2", "gang-5")
	c.untilShown("gang", v2alpha2.ReasonNodesUnavailable, "the gang cannot be placed: 3 nodes not ready (", "24 nvidia.com/gpu, 24 free): bring them back") // those of its rack
	c.createIn("", rackLabel, "other", 4)
	c.untilBound("other", 4) // the other rack had room
	c.deleteGang("other")
	c.notBound("gang-4", "gang-5")
	for _, pod := range []string{"gang-0", "gang-1"} {
		c.must(cp.RestoreNode(c.ctx, lost[pod]), "finding a node again")
	}
	c.untilPodBound("gang-4", "gang-5")
	c.untilStatus("gang", "runs in its rack", func(s v2Status) bool { return s.Placement == "rack "+rack && s.Scheduled == "3/3" })
}

// Levels and labels at their limits: 16 levels, values of 63 characters, an empty value, and a level that no node has
// yet.
func TestUnusualLevels(t *testing.T) {
	c := newCluster(t, 5)
	long := strings.Repeat("v", 63)
	levels := numbered("topology.example.com/level", 16)
	// Nodes 0 and 1 differ in the last level, in the last of 63 characters; the value of nodes 2 and 3 is empty.
	for i, node := range c.nodes {
		c.change(node, func(n *corev1.Node) {
			for _, level := range levels {
				n.Labels[level] = long
			}
			n.Labels[levels[15]] = []string{long[1:] + "a", long[1:] + "b", "", "", long}[i]
		})
	}
	c.createTopologyOf(c.namespace, levels...)
	defer c.deleteTopology(c.namespace)
	c.start()
	c.createIn(c.namespace, levels[15], "last", 2)
	c.untilBound("last", 2)
	if got := c.domainsOf("last", levels[15]); !slices.Equal(got, []string{""}) {
		t.Errorf("the gang runs in %q, want the domain with the empty value, which alone has two nodes", got)
	}
	c.createIn(c.namespace, levels[15], "waits", 2)
	c.untilSays("waits", v2alpha2.ReasonTopologyUnavailable, "no level-15 has room for the gang (2 pods of 8 nvidia.com/gpu)")
	c.createIn(c.namespace, levels[14], "wider", 2)
	c.untilBound("wider", 2)
	c.deleteGang("wider")
	c.deleteGang("waits")

	c.createIn("", "topology.example.com/row", "unlabelled", 2)
	c.untilSays("unlabelled", v2alpha2.ReasonTopologyUnavailable, "no node for the gang has label topology.example.com/row: label the nodes")
	for _, node := range c.nodes[:2] {
		c.change(node, func(n *corev1.Node) { n.Labels["topology.example.com/row"] = "" })
	}
	c.untilBound("unlabelled", 2)
	c.stillSchedules()
}
