// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// labeledRacks adds racks r0, r1, ... with so many nodes of one GPU: r0-0, r0-1, ...
func (c *cluster) labeledRacks(sizes ...int) *cluster {
	for i, size := range sizes {
		for k := range size {
			c.rackNode(i, k)
		}
	}
	return c
}

func (c *cluster) rackNode(rack, k int) *cluster {
	return c.node(wrappers.MakeNode(fmt.Sprintf("r%d-%d", rack, k)).GPUs(1).Label("rack", fmt.Sprintf("r%d", rack)))
}

// leveledGang creates a PodGroup that requires one rack, of pods with one GPU each, of which so many are needed.
func (c *cluster) leveledGang(name string, priority int32, minimum, pods int) *cluster {
	c.groups.Put(wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(int32(minimum)).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"}
	}).Obj())
	for _, w := range members(name, pods) {
		c.pod(w.Priority(priority))
	}
	return c
}

// racksOf returns the racks of the bound pods of a gang by the names of their nodes, without duplicates.
func (c *cluster) racksOf(gang string) []string {
	c.t.Helper()
	pods, err := c.client.CoreV1().Pods("ml").List(c.ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	var racks []string
	for i := range pods.Items {
		if p := &pods.Items[i]; strings.HasPrefix(p.Name, gang+"-") && p.Spec.NodeName != "" {
			rack, _, _ := strings.Cut(p.Spec.NodeName, "-")
			racks = append(racks, rack)
		}
	}
	slices.Sort(racks)
	return slices.Compact(racks)
}

func (c *cluster) inRacks(gang string, want ...string) *cluster {
	c.t.Helper()
	if got := c.racksOf(gang); !slices.Equal(got, want) {
		c.t.Errorf("%s runs in racks %v, want %v", gang, got, want)
	}
	return c
}

// saysWhy waits until a gang is refused with a message that contains the text.
func (c *cluster) saysWhy(gang, text string) *cluster {
	c.t.Helper()
	said := ""
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("%s says %s", gang, said)
		}
	})
	return c.eventually(gang+" says "+text, func() bool {
		f, ok := c.gangs.registry.Facts(key(gang))
		said = string(f.Refused.Reason) + ": " + f.Refused.Message
		return ok && strings.Contains(said, text)
	})
}

func TestARequiredLevel(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(3, 5, 4).run().leveledGang("a", 0, 4, 4).wholeOf("a", 4).inRacks("a", "r2")
	// Nine nodes are free, and none of the racks has six.
	c.leveledGang("b", 0, 6, 6).saysWhy("b", "the largest rack, r1, would hold only 5")
	// A node without the label does not help; one of the rack does.
	c.node(wrappers.MakeNode("bare").GPUs(8)).rackNode(1, 5).wholeOf("b", 6).inRacks("b", "r1")
}

// Room outside of racks lets a gang start of which a part requires a rack, and another does not.
func TestRoomBesideTheRacksLetsAGangStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("r0-0").GPUs(3).Label("rack", "r0")).node(wrappers.MakeNode("bare").GPUs(1)).run()
	c.pod(wrappers.MakePod("holder", "ml").GPUs(1).NodeSelector("kubernetes.io/hostname", "bare")).eventually("the holder bound", func() bool { return len(c.boundOf("holder")) == 1 })
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinSubGroup(2).SubGroup("racked", 2).SubGroup("loose", 1).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.SubGroups[0].TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"}
	}).Obj())
	for i, group := range []string{"racked", "racked", "loose", "loose"} {
		c.pod(wrappers.MakePod(fmt.Sprintf("a-%d", i), "ml").UID(fmt.Sprintf("a-%d", i)).Gang("a").SubGroup(group).GPUs(int64(1 + i%2)))
	}
	c.refused("a").deletePod("holder")
	c.wholeOf("a", 3)
}

func TestANodeThatIsLabeledLetsAGangStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(3, 3).node(wrappers.MakeNode("bare").GPUs(1)).run().leveledGang("a", 0, 4, 4).saysWhy("a", "1 node without label rack is outside")
	c.label("bare", "r1").wholeOf("a", 4)
}

// label sets the rack of a node.
func (c *cluster) label(node, rack string) *cluster {
	c.t.Helper()
	n, err := c.client.CoreV1().Nodes().Get(c.ctx, node, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	n.Labels = map[string]string{"rack": rack}
	if _, err := c.client.CoreV1().Nodes().Update(c.ctx, n, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	return c.eventually("the label seen", func() bool {
		return c.sched.Cache.Dump().Nodes[node].Node().Labels["rack"] == rack
	})
}

func TestARefillStaysInItsRack(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(2, 5).run().leveledGang("a", 0, 2, 2).wholeOf("a", 2).inRacks("a", "r0")
	c.deletePod("a-1")
	c.eventually("the deletion seen", func() bool { f, _ := c.gangs.registry.Facts(key("a")); return f.Created[""] == 1 })
	c.gang("b", 6).wholeOf("b", 6) // all that is free, in both racks
	c.rackNode(1, 9)               // of another rack
	c.pod(members("a", 3)[2:]...).saysWhy("a", "the gang needs 1 nvidia.com/gpu for 1 pod, 0 are free in rack r0, where it runs")
	c.rackNode(0, 9).eventually("the pod bound", func() bool { return len(c.boundOf("a-2")) == 1 }).inRacks("a", "r0")
}

func TestSurplusStaysInItsRack(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(3, 2).leveledGang("a", 0, 2, 5)
	c.eventually("all pods seen", func() bool { f, _ := c.gangs.registry.Facts(key("a")); return f.Created[""] == 5 }) // else two may be planned
	c.run().saysWhy("a", "the gang needs 1 nvidia.com/gpu for each of 2 pods, 0 are free in rack r0, where it runs").wholeOf("a", 3).inRacks("a", "r0")
}

func TestANodeIsRelabeledWhileAGangIsBound(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(4, 0, 5)
	c.onPop = func(pod string) {
		if pod == "a-1" { // the plan is in force
			c.mu.Lock()
			c.onPop = nil
			c.mu.Unlock()
			c.label("r0-3", "elsewhere").label("r0-2", "elsewhere").label("r0-1", "elsewhere").label("r0-0", "elsewhere")
			c.label("r0-0", "r0")
		}
	}
	c.run().leveledGang("a", 0, 4, 4).wholeOf("a", 4).inRacks("a", "r2")
}

// A refill is not bound if the node of a pod that runs has left the rack meanwhile.
func TestTheNodeOfARunningPodIsRelabeledWhileItsGangIsRefilled(t *testing.T) {
	t.Parallel()
	var c *cluster
	node := ""
	c = newCluster(t, prepares(func(_ context.Context, pod string) *fwk.Status {
		if pod == "a-2" {
			c.label(node, "r9")
		}
		return nil
	})).labeledRacks(3, 3).run().leveledGang("a", 0, 2, 2).wholeOf("a", 2)
	pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, "a-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node = pod.Spec.NodeName
	c.deletePod("a-1")
	c.eventually("the deletion seen", func() bool { f, _ := c.gangs.registry.Facts(key("a")); return f.Created[""] == 1 })
	c.pod(members("a", 3)[2:]...).saysWhy("a", "rack r9")
	if bound := c.boundOf("a-2"); len(bound) > 0 {
		t.Errorf("%v are bound, want no refill", bound)
	}
}

// Node objects are deleted while pods of a gang are still on them. As long as another pod shows in which rack the gang
// runs, it is refilled there. When none does, its refill waits for the end of these pods, and is tried at once then,
// wherever there is room.
func TestNodesOfARunningGangAreDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(4).run().leveledGang("a", 0, 3, 3).wholeOf("a", 3)
	nodeOf := func(pod string) string {
		t.Helper()
		p, err := c.client.CoreV1().Pods("ml").Get(c.ctx, pod, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Spec.NodeName
	}
	removeNodeOf := func(pod string) {
		t.Helper()
		node := nodeOf(pod)
		if err := c.client.CoreV1().Nodes().Delete(c.ctx, node, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.eventually("the deletion of "+node+" seen", func() bool { n := c.sched.Cache.Dump().Nodes[node]; return n == nil || n.Node() == nil })
	}
	lose := func(pod string, left int) {
		t.Helper()
		c.deletePod(pod)
		c.eventually("the deletion of "+pod+" seen", func() bool { f, _ := c.gangs.registry.Facts(key("a")); return f.Created[""] == left })
	}
	removeNodeOf("a-0")
	lose("a-1", 2)
	c.labeledRacks(0, 4)
	c.pod(members("a", 4)[3:]...).eventually("a-3 bound", func() bool { return len(c.boundOf("a-3")) == 1 })
	if node := nodeOf("a-3"); !strings.HasPrefix(node, "r0-") {
		t.Errorf("a-3 is on %s, want a node of the rack of a-2", node)
	}
	lose("a-3", 2)
	removeNodeOf("a-2")
	lose("a-2", 1)
	c.pod(members("a", 7)[4:]...).saysWhy("a", "the pods of the gang that run are on nodes that are gone: until they are deleted, it is not known in which rack it may have more")
	if len(c.boundOf("a-4"))+len(c.boundOf("a-5"))+len(c.boundOf("a-6")) > 0 {
		t.Error("pods are bound although the rack of the gang is not known")
	}
	c.deletePod("a-0")
	c.eventually("the gang starts anew", func() bool {
		return len(c.boundOf("a-4")) == 1 && len(c.boundOf("a-5")) == 1 && len(c.boundOf("a-6")) == 1
	})
	racks := map[string]bool{}
	for _, pod := range []string{"a-4", "a-5", "a-6"} {
		racks[nodeOf(pod)[:2]] = true
	}
	if len(racks) != 1 {
		t.Errorf("the gang runs in racks %v, want one", racks)
	}
}

func TestPreemptionInOneRack(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(3, 4).rankedGang("low", 0, 1, 7).run().wholeOf("low", 7)
	c.leveledGang("high", 100, 4, 4).wholeOf("high", 4).inRacks("high", "r1")
	if n := len(c.evicted()); n != 4 {
		t.Errorf("%d pods were evicted, want the four of the rack", n)
	}
	c.leveledGang("more", 100, 4, 4).refused("more")
	if n := len(c.evicted()); n != 4 {
		t.Errorf("%d pods were evicted, although no rack can hold the gang", n)
	}
}

func TestTheCRDOfTopologiesIsMissing(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(2).run()
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(2).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: "rack"}
	}).Obj())
	c.pod(members("a", 2)...).saysWhy("a", `Topology "fabric", whose level "rack" is required, cannot be read: install the CRD topologies.kai.scheduler`)
	c.leveledGang("b", 0, 2, 2).wholeOf("b", 2) // the other gang takes nothing
	c.groups.ServeTopologies()
	c.saysWhy("a", `Topology "fabric", whose level "rack" is required, is not known: create it`)
}

// Room does not help a gang that requires a level of an unknown Topology: it is not tried when nodes come.
func TestAGangOfAnUnknownTopologyDoesNotWaitForRoom(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(2).run()
	group := wrappers.MakePodGroup("a", "ml").UID("a").MinMember(2).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: "rack"}
	})
	c.groups.Put(group.Generation(1).Obj())
	c.pod(members("a", 2)...).refused("a")
	cycles := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := 0
		for _, pod := range c.popped {
			if strings.HasPrefix(pod, "a-") {
				n++
			}
		}
		return n
	}
	before := cycles()
	for i, gang := range []string{"b", "c", "d"} { // a would be tried before each of them, of which the first needs the node
		c.rackNode(1, i).leveledGang(gang, -1, 1, 1).wholeOf(gang, 1)
	}
	if n := cycles() - before; n > 0 {
		t.Errorf("%d cycles of pods of the gang, want none", n)
	}
	c.groups.Put(group.Generation(2).Spec(func(s *v2alpha2.PodGroupSpec) { s.TopologyConstraint.Topology = "" }).Obj())
	c.wholeOf("a", 2)
}

// More racks than are tracked for one gang: a node in any of them helps the sub-group that runs there.
func TestANodeHelpsInAnyOfManyRacks(t *testing.T) {
	t.Parallel()
	const racks = 40
	c := newCluster(t)
	group := wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinSubGroup(racks)
	for i := range racks {
		c.rackNode(i, 0)
		group.SubGroup(fmt.Sprintf("g-%d", i), 1)
	}
	c.groups.Put(group.Spec(func(s *v2alpha2.PodGroupSpec) {
		for i := range s.SubGroups {
			s.SubGroups[i].TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"}
		}
	}).Obj())
	for i, w := range members("a", 2*racks) {
		c.pod(w.SubGroup(fmt.Sprintf("g-%d", i%racks)))
	}
	c.run().wholeOf("a", racks).refused("a")
	for i := range racks {
		c.rackNode(racks-1-i, 1).wholeOf("a", racks+1+i)
	}
}

// A preferred level never delays: six pods start although no rack has six nodes, in as few racks as possible.
func TestAPreferredLevel(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(2, 4, 2, 4)
	c.preferringGang("a", 6).preferringGang("b", 2).run().wholeOf("a", 6).wholeOf("b", 2)
	if racks := c.racksOf("a"); len(racks) != 2 {
		t.Errorf("a runs in racks %v, want two", racks)
	}
	if racks := c.racksOf("b"); len(racks) != 1 {
		t.Errorf("b runs in racks %v, want one", racks)
	}
}

// preferringGang creates a PodGroup that prefers one rack.
func (c *cluster) preferringGang(name string, n int) *cluster {
	c.groups.Put(wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(int32(n)).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.TopologyConstraint = &v2alpha2.TopologyConstraint{PreferredTopologyLevel: "rack"}
	}).Obj())
	return c.pod(members(name, n)...)
}

// A node on which pods of the gang run gets the label of another rack: the gang belongs there from now on.
func TestTheRackOfARunningGangIsRenamed(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(2, 1).run().leveledGang("a", 0, 2, 3).wholeOf("a", 2).saysWhy("a", "in rack r0, where it runs")
	c.label("r0-0", "r1").label("r0-1", "r1").wholeOf("a", 3)
}

// A node on which a pod of an admitted gang runs gets the label of another rack: no room would help the pods above its
// minimum.
func TestTheRacksOfAnAdmittedGangBecomeTwo(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(3).run().leveledGang("a", 0, 2, 3).wholeOf("a", 3)
	c.pod(members("a", 4)[3:]...).refused("a")
	c.label("r0-0", "r1").saysWhy("a", "TopologyUnavailable: the pods of the gang do not run in one rack, which it requires")
	if bound := c.boundOf("a-3"); len(bound) > 0 {
		t.Errorf("%v are bound, want no pod beside those in two racks", bound)
	}
	c.label("r0-0", "r0").rackNode(0, 9).wholeOf("a", 4)
}

// fabricNode creates a node of one GPU in a rack of a block.
func (c *cluster) fabricNode(name, block, rack string) *cluster {
	return c.node(wrappers.MakeNode(name).GPUs(1).Label("block", block).Label("rack", rack))
}

// A gang requires a block, and its sub-groups a rack, without a Topology. While it waits it says that the labels do not
// nest, if they do not; it starts when a node has the right label.
func TestLabelsThatDoNotNest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		racks []string // of nodes n0 and n1 in block b0, and n2 and n3 in block b1
		says  string
	}{
		"neither nests in the other": {[]string{"r0", "r1", "r1", "r2"}, "labels block and rack do not nest (rack r1 is in block b0 on node n1 and in block b1 on node n2): " +
			"correct the labels of the nodes, or name a Topology that has both"},
		"racks nest in blocks": {racks: []string{"r0", "r1", "r2", "r3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			for i, rack := range tt.racks {
				c.fabricNode(fmt.Sprintf("n%d", i), fmt.Sprintf("b%d", i/2), rack)
			}
			c.run().groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinSubGroup(1).SubGroup("u", 2).Spec(func(s *v2alpha2.PodGroupSpec) {
				s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "block"}
				s.SubGroups[0].TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"}
			}).Obj())
			for _, w := range members("a", 2) {
				c.pod(w.SubGroup("u"))
			}
			c.saysWhy("a", tt.says).refused("a")
			if f, _ := c.gangs.registry.Facts(key("a")); strings.Contains(f.Refused.Message, "nest") != (tt.says != "") {
				t.Errorf("the gang says %q, want %q", f.Refused.Message, tt.says)
			}
			n, err := c.client.CoreV1().Nodes().Get(c.ctx, "n2", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			n.Labels["rack"] = tt.racks[3]
			if _, err := c.client.CoreV1().Nodes().Update(c.ctx, n, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			c.wholeOf("a", 2).inRacks("a", "n2", "n3")
		})
	}
}

func TestALabelLetsASubGroupStartInTheBlockOfItsGang(t *testing.T) {
	t.Parallel()
	c := newCluster(t).run()
	for i, rack := range []string{"r0", "r0", "r1", "r2"} {
		c.fabricNode(fmt.Sprintf("n%d", i), "b0", rack)
	}
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).Spec(func(s *v2alpha2.PodGroupSpec) {
		one, two := int32(1), int32(2)
		s.MinSubGroup = &one
		s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "block"}
		for _, name := range []string{"u", "v"} {
			s.SubGroups = append(s.SubGroups, v2alpha2.SubGroup{
				Name: name, MinMember: &two, TopologyConstraint: &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"},
			})
		}
	}).Obj())
	for i, w := range members("a", 4) {
		c.pod(w.SubGroup([]string{"u", "v"}[i/2]))
	}
	c.wholeOf("a", 2).refused("a")
	n, err := c.client.CoreV1().Nodes().Get(c.ctx, "n3", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Labels["rack"] = "r1"
	if _, err := c.client.CoreV1().Nodes().Update(c.ctx, n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.wholeOf("a", 4)
}
