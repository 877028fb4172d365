// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/fakeapi"
	"github.com/muster-project/muster/test/wrappers"
)

// serves is the option of a cluster with the CRD of Topologies.
func serves(topologies **fakeapi.Topologies) clusterOption {
	return func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) { *topologies = c.groups.ServeTopologies() }
}

// nodeWith creates a node of one GPU with labels.
func (c *cluster) nodeWith(name string, labels map[string]string) *cluster {
	w := wrappers.MakeNode(name).GPUs(1)
	for key, value := range labels {
		w.Label(key, value)
	}
	return c.node(w)
}

// nodesOf returns the nodes of the bound pods whose names begin with the prefix, by pod.
func (c *cluster) nodesOf(prefix string) map[string]string {
	c.t.Helper()
	pods, err := c.client.CoreV1().Pods("ml").List(c.ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	nodes := map[string]string{}
	for i := range pods.Items {
		if p := &pods.Items[i]; strings.HasPrefix(p.Name, prefix) && p.Spec.NodeName != "" {
			nodes[p.Name] = p.Spec.NodeName
		}
	}
	return nodes
}

// A gang requires a leaf switch of one Topology, and each of its sub-groups a rack of another one. In both of them
// values of the last label repeat: leaf l1 of spine s1 is another one than leaf l1 of spine s2, and rack r1 of row y1
// another one than that of y2.
func TestTwoTopologiesInOneTree(t *testing.T) {
	t.Parallel()
	var topologies *fakeapi.Topologies
	c := newCluster(t, serves(&topologies))
	node := func(name, spine, leaf, row, rack string) *cluster {
		return c.nodeWith(name, map[string]string{"spine": spine, "leaf": leaf, "row": row, "rack": rack})
	}
	// One leaf with enough nodes, of which no two are in one rack.
	node("a1", "s0", "l0", "y0", "r0")
	node("a2", "s0", "l0", "y1", "r0")
	node("a3", "s0", "l0", "y0", "r1")
	node("a4", "s0", "l0", "y1", "r1")
	// Two racks with enough nodes, of which the second one is divided by two leaves with the same value.
	node("b1", "s1", "l1", "y2", "r0")
	node("b2", "s1", "l1", "y2", "r0")
	node("b3", "s1", "l1", "y2", "r1")
	node("b4", "s2", "l1", "y2", "r1")
	c.run()
	c.groups.Put(wrappers.MakePodGroup("g", "ml").UID("g").Generation(1).SubGroup("u", 2).SubGroup("v", 2).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "network", RequiredTopologyLevel: "leaf"}
		for i := range s.SubGroups {
			s.SubGroups[i].TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "power", RequiredTopologyLevel: "rack"}
		}
	}).Obj())
	for i, w := range members("g", 4) {
		c.pod(w.SubGroup([]string{"u", "v"}[i/2]))
	}
	c.saysWhy("g", `Topology "network", whose level "leaf" is required, is not known`)
	topologies.Create("network", "spine", "leaf")
	c.saysWhy("g", `Topology "power", whose level "rack" is required, is not known`)
	topologies.Create("power", "row", "rack")
	c.saysWhy("g", "no rack has room for u (2 pods")
	if bound := c.boundOf("g-"); len(bound) > 0 {
		t.Errorf("%v are bound: no leaf has two racks with two nodes each", bound)
	}
	node("b5", "s1", "l1", "y2", "r1").wholeOf("g", 4)
	got := slices.Sorted(maps.Values(c.nodesOf("g-")))
	if want := []string{"b1", "b2", "b3", "b5"}; !slices.Equal(got, want) {
		t.Errorf("the gang runs on %v, want %v", got, want)
	}
	if nodes := c.nodesOf("g-"); (nodes["g-0"] < "b3") != (nodes["g-1"] < "b3") {
		t.Errorf("sub-group u is in two racks: %v", nodes)
	}
}

// A Topology that is deleted, and created again with other levels, affects no pod that runs; what is missing waits and
// says why.
func TestATopologyIsRecreatedWithOtherLevels(t *testing.T) {
	t.Parallel()
	var topologies *fakeapi.Topologies
	c := newCluster(t, serves(&topologies))
	topologies.Create("fabric", "block", "rack")
	for _, rack := range []string{"r0", "r1"} {
		for k := range 4 {
			c.nodeWith(fmt.Sprintf("%s-%d", rack, k), map[string]string{"block": "b0", "rack": rack, "hall": fmt.Sprintf("h%d", k)})
		}
	}
	c.run()
	c.groups.Put(wrappers.MakePodGroup("g", "ml").UID("g").Generation(1).MinMember(3).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: "rack"}
	}).Obj())
	c.pod(members("g", 3)...).wholeOf("g", 3)
	rack := c.racksOf("g")
	c.deletePod("g-0")
	c.eventually("the deletion seen", func() bool { f, _ := c.gangs.registry.Facts(key("g")); return f.Created[""] == 2 })
	topologies.Delete("fabric")
	c.eventually("the Topology gone", func() bool { return c.gangs.topologies.LevelsOf("fabric") == nil })
	c.pod(members("g", 4)[3:]...).saysWhy("g", `Topology "fabric", whose level "rack" is required, is not known`)
	topologies.Create("fabric", "hall", "row")
	c.saysWhy("g", `level "rack" is required and is no level of Topology "fabric", which has hall, row`)
	// The level exists, but a domain of it is now a rack of one hall: the pods that run are in two domains.
	topologies.Delete("fabric")
	topologies.Create("fabric", "hall", "rack")
	c.eventually("tried with the new levels", func() bool {
		f, _ := c.gangs.registry.Facts(key("g"))
		return f.Refused.Reason == v2alpha2.ReasonTopologyUnavailable && !strings.Contains(f.Refused.Message, "Topology")
	})
	if bound := c.boundOf("g-3"); len(bound) > 0 {
		t.Errorf("%v are bound beside pods in two domains", bound)
	}
	topologies.Delete("fabric")
	topologies.Create("fabric", "rack")
	c.eventually("the pod bound", func() bool { return len(c.boundOf("g-3")) == 1 }).inRacks("g", rack...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.writes) > 0 {
		t.Errorf("writes %v, want that pods are left alone", c.writes)
	}
}

// The levels of a ClusterTopologyBinding, which muster-controller lists in its PodGroups, define the domains without a
// Topology: rack r0 of block b0 is another one than rack r0 of block b1. A running gang gets its lost pod again in its
// domain, also after the Topology was created, and after a level was added to the binding that does not divide the
// domain.
func TestListedLevelsNeedNoTopology(t *testing.T) {
	t.Parallel()
	var topologies *fakeapi.Topologies
	c := newCluster(t, serves(&topologies))
	node := func(block, rack string, k int) *cluster {
		return c.nodeWith(fmt.Sprintf("%s%s-%d", block, rack, k), map[string]string{"zone": "z0", "block": block, "rack": rack})
	}
	for k := range 4 {
		node("b0", "r0", k)
		node("b1", "r0", k)
	}
	c.run()
	group := func(topology, levels string, generation int64) {
		pg := wrappers.MakePodGroup("g", "ml").UID("g").Generation(generation).MinMember(6).Spec(func(s *v2alpha2.PodGroupSpec) {
			s.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: topology, RequiredTopologyLevel: "rack"}
		}).Obj()
		pg.Annotations = map[string]string{v2alpha2.TopologyLevelsAnnotation: levels}
		c.groups.Put(pg)
	}
	group("", "block,rack", 1)
	c.pod(members("g", 6)...).saysWhy("g", "TooLarge: the largest rack, b0/r0, would hold only 4 of the 6 pods")
	if bound := c.boundOf("g-"); len(bound) > 0 {
		t.Fatalf("%v are bound: no rack has six nodes", bound)
	}
	node("b1", "r0", 4)
	node("b1", "r0", 5).wholeOf("g", 6).inRacks("g", "b1r0")
	lost := 0
	replace := func(when string) {
		t.Helper()
		pod := fmt.Sprintf("g-%d", lost)
		at := c.nodesOf(pod)[pod]
		c.deletePod(pod)
		lost++
		c.pod(members("g", 6+lost)[5+lost:]...)
		next := fmt.Sprintf("g-%d", 5+lost)
		c.eventually("the pod replaced "+when, func() bool { return c.nodesOf(next)[next] == at })
	}
	replace("without a Topology")
	topologies.Create("fabric", "block", "rack")
	group("fabric", "block,rack", 2)
	replace("after the Topology was created")
	group("", "zone,block,rack", 3)
	replace("after a level was added")
	c.inRacks("g", "b1r0")
	// A domain of fewer labels is wider: racks r0 of all blocks.
	group("", "rack", 4)
	c.deletePod(fmt.Sprintf("g-%d", lost))
	c.pod(members("g", 7+lost)[6+lost:]...)
	c.eventually("the pod replaced after a level was taken out", func() bool { return len(c.boundOf(fmt.Sprintf("g-%d", 6+lost))) == 1 })
}

// A PodGroup that does not change but for the levels that it lists is tried again.
func TestARefusedGangFollowsTheListedLevels(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for k, block := range []string{"b0", "b0", "b1", "b1"} {
		c.nodeWith(fmt.Sprintf("n%d", k), map[string]string{"block": block, "rack": "r0", "zone": "z0"})
	}
	c.run()
	list := func(levels string) {
		pg := wrappers.MakePodGroup("g", "ml").UID("g").Generation(1).MinMember(4).Spec(func(s *v2alpha2.PodGroupSpec) {
			s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"}
		}).Obj()
		pg.Annotations = map[string]string{v2alpha2.TopologyLevelsAnnotation: levels}
		c.groups.Put(pg)
	}
	list("block,rack")
	c.pod(members("g", 4)...).saysWhy("g", "would hold only 2 of the 4 pods")
	list("block")
	c.saysWhy("g", `level "rack" is required and is none of block, which the PodGroup lists`)
	list("zone,rack")
	c.wholeOf("g", 4)
}

// Neighbouring pods are in one domain of the lowest level of the Topology, whether the level is required or preferred:
// here those of one Job of a JobSet. Without rank order the pods are placed by their index, which mixes the Jobs.
func TestRankOrderOfAGang(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		constraint v2alpha2.TopologyConstraint
		off        bool
	}{
		"a required level":                    {constraint: v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: "block"}},
		"a preferred level":                   {constraint: v2alpha2.TopologyConstraint{Topology: "fabric", PreferredTopologyLevel: "block"}},
		"the lowest level is preferred":       {constraint: v2alpha2.TopologyConstraint{Topology: "fabric", PreferredTopologyLevel: "rack"}},
		"turned off":                          {constraint: v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: "block"}, off: true},
		"turned off, with a preferred level":  {constraint: v2alpha2.TopologyConstraint{Topology: "fabric", PreferredTopologyLevel: "rack"}, off: true},
		"turned off, the block is preferred ": {constraint: v2alpha2.TopologyConstraint{Topology: "fabric", PreferredTopologyLevel: "block"}, off: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var topologies *fakeapi.Topologies
			c := newCluster(t, serves(&topologies), func(_ *cluster, _ *bool, args *config.GangAdmissionArgs) { args.RankOrder = !tt.off })
			topologies.Create("fabric", "block", "rack")
			for i := range 8 {
				rack := fmt.Sprintf("r%d", i/2%2) // two nodes of one rack, then two of the other one
				c.nodeWith(fmt.Sprintf("n%d-%s", i, rack), map[string]string{"block": "b0", "rack": rack})
			}
			for i := range 3 {
				c.nodeWith(fmt.Sprintf("n9-%d", i), map[string]string{"block": "b9", "rack": "r9"})
			}
			c.groups.Put(wrappers.MakePodGroup("g", "ml").UID("g").Generation(1).MinMember(8).Spec(func(s *v2alpha2.PodGroupSpec) {
				s.TopologyConstraint = &tt.constraint
			}).Obj())
			for _, job := range []string{"x", "y"} {
				for i := range 4 {
					c.pod(wrappers.MakePod(fmt.Sprintf("g-%s-%d", job, i), "ml").Gang("g").GPUs(1).Controller("Job", "g-"+job, job).
						Label("batch.kubernetes.io/job-completion-index", fmt.Sprint(i)))
				}
			}
			c.run().wholeOf("g", 8)
			for _, job := range []string{"x", "y"} {
				racks := sets.New[string]()
				for _, node := range c.nodesOf("g-" + job) {
					racks.Insert(node[len("n0-"):])
				}
				if (racks.Len() == 1) == tt.off {
					t.Errorf("Job %s is in racks %v, all: %v", job, sets.List(racks), c.nodesOf("g-"))
				}
			}
		})
	}
}

// Refills, units of surplus and single pods go to the rack of their gang while it has room, although another one has
// more, and elsewhere when it has none: a preferred level is never waited for.
func TestPodsFollowAGangThatPrefersALevel(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(9, 6)
	prefer := &v2alpha2.TopologyConstraint{PreferredTopologyLevel: "rack"}
	c.groups.Put(wrappers.MakePodGroup("g", "ml").UID("g").Generation(1).MinSubGroup(1).SubGroup("u", 2).SubGroup("v", 2).SubGroup("w", 2).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.TopologyConstraint = prefer
	}).Obj())
	add := func(group string, from, to int) {
		for i := from; i < to; i++ {
			c.pod(wrappers.MakePod(fmt.Sprintf("g-%s-%d", group, i), "ml").Gang("g").SubGroup(group).GPUs(1))
		}
	}
	add("u", 0, 2)
	c.run().wholeOf("g-u", 2).inRacks("g", "r1") // the tightest; nodes of r0 come first otherwise
	c.deletePod("g-u-0")
	c.eventually("the deletion seen", func() bool { f, _ := c.gangs.registry.Facts(key("g")); return f.Created["u"] == 1 })
	add("u", 2, 3) // a refill
	c.wholeOf("g-u", 3).inRacks("g", "r1")
	add("u", 3, 4) // a single pod of surplus
	c.wholeOf("g-u", 4).inRacks("g", "r1")
	add("v", 0, 2) // a unit of surplus
	c.wholeOf("g-v", 2).inRacks("g", "r1")
	add("w", 0, 2) // one node is free in r1
	c.wholeOf("g-w", 2)
	if racks := c.racksOf("g-w"); !slices.Contains(racks, "r0") {
		t.Errorf("sub-group w is in racks %v", racks)
	}
	// A refill of unit v, whose rack is full by now.
	for k := range 6 {
		node := fmt.Sprintf("r1-%d", k)
		if !slices.Contains(slices.Collect(maps.Values(c.nodesOf("g-"))), node) {
			c.pod(wrappers.MakePod("filler", "ml").GPUs(1).NodeSelector("kubernetes.io/hostname", node)).eventually("the rack full", func() bool { return len(c.boundOf("filler")) == 1 })
		}
	}
	lost := c.nodesOf("g-v-0")["g-v-0"]
	c.deletePod("g-v-0")
	c.eventually("the deletion seen", func() bool { f, _ := c.gangs.registry.Facts(key("g")); return f.Created["v"] == 1 })
	c.pod(wrappers.MakePod("filler2", "ml").GPUs(1).Priority(1).NodeSelector("kubernetes.io/hostname", lost)).eventually("the rack full again", func() bool { return len(c.boundOf("filler2")) == 1 })
	add("v", 2, 3)
	c.wholeOf("g-v", 3)
	if node := c.nodesOf("g-v-2")["g-v-2"]; !strings.HasPrefix(node, "r0-") {
		t.Errorf("the refill is on %s, and r1 was full", node)
	}
}

// The racks of all sub-groups are chosen together, and so that wide domains stay whole.
func TestSubGroupsChooseTheirRacksTogether(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		racks []int           // nodes of each, in blocks of two racks
		need  map[string]int  // pods by sub-group
		free  map[string]bool // sub-groups that do not require a rack
		want  map[string]string
	}{
		// The first one alone fits best in the only rack that holds the second one.
		"greedy child (KEP-6012)": {racks: []int{3, 4}, need: map[string]int{"a": 2, "b": 3}, want: map[string]string{"a": "r1", "b": "r0"}},
		// Pods without a level take no node of the rack that the others need.
		"stolen slots (KEP-6012)": {racks: []int{3, 1, 1}, need: map[string]int{"a": 2, "b": 3}, free: map[string]bool{"a": true}, want: map[string]string{"b": "r0"}},
		"the fuller block":        {racks: []int{3, 3, 3, 2}, need: map[string]int{"a": 3}, want: map[string]string{"a": "r2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var topologies *fakeapi.Topologies
			c := newCluster(t, serves(&topologies))
			topologies.Create("fabric", "block", "rack")
			for i, size := range tt.racks {
				for k := range size {
					c.nodeWith(fmt.Sprintf("r%d-%d", i, k), map[string]string{"block": fmt.Sprintf("b%d", i/2), "rack": fmt.Sprintf("r%d", i)})
				}
			}
			group, pods := wrappers.MakePodGroup("g", "ml").UID("g").Generation(1), 0
			for i, name := range slices.Sorted(maps.Keys(tt.need)) {
				group.SubGroup(name, int32(tt.need[name])).Spec(func(s *v2alpha2.PodGroupSpec) {
					if !tt.free[name] {
						s.SubGroups[i].TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: "rack"}
					}
				})
				for k := range tt.need[name] {
					c.pod(wrappers.MakePod(fmt.Sprintf("g-%s-%d", name, k), "ml").Gang("g").SubGroup(name).GPUs(1))
					pods++
				}
			}
			c.groups.Put(group.Obj())
			c.run().wholeOf("g", pods)
			for name, rack := range tt.want {
				c.inRacks("g-"+name, rack)
			}
		})
	}
}

// A node is lost while a gang is planned in its rack, which has no other one to spare: the gang is planned again in
// another rack.
func TestANodeIsLostWhileAGangIsPlanned(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(c *cluster, node string){
		"unreachable": func(c *cluster, node string) {
			c.updateNode(node, func(n *corev1.Node) {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
				for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
					n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: effect})
				}
			})
			c.eventually("the taint seen", func() bool { return len(c.sched.Cache.Dump().Nodes[node].Node().Spec.Taints) > 0 })
		},
		"deleted": func(c *cluster, node string) {
			if err := c.client.CoreV1().Nodes().Delete(c.ctx, node, metav1.DeleteOptions{}); err != nil {
				c.t.Fatal(err)
			}
			c.eventually("the deletion seen", func() bool { return c.sched.Cache.Dump().Nodes[node] == nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).labeledRacks(4, 0, 5)
			c.onPop = func(pod string) {
				if pod != "a-1" { // the plan is in force, and a-0 has its node
					return
				}
				c.mu.Lock()
				c.onPop = nil
				c.mu.Unlock()
				for k := range 4 {
					node := fmt.Sprintf("r0-%d", k)
					if len(c.sched.Cache.Dump().Nodes[node].GetPods()) == 0 {
						lose(c, node)
						return
					}
				}
				t.Error("no node of the rack is without a pod")
			}
			c.run().leveledGang("a", 0, 4, 4).wholeOf("a", 4).inRacks("a", "r2")
		})
	}
}

// A unit that requires a rack, and lost a pod, waits while its rack is full. Its owner replaces it: without a pod that
// runs it may start in another rack, and so it does, whole.
func TestAUnitThatIsReplacedMayStartInAnotherRack(t *testing.T) {
	t.Parallel()
	c := newCluster(t).labeledRacks(2, 3, 4)
	c.groups.Put(wrappers.MakePodGroup("g", "ml").UID("g").Generation(1).MinSubGroup(1).SubGroup("g0", 2).SubGroup("g1", 2).Spec(func(s *v2alpha2.PodGroupSpec) {
		for i := range s.SubGroups {
			s.SubGroups[i].TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"}
		}
	}).Obj())
	pod := func(group string, i int) *wrappers.PodWrapper {
		return wrappers.MakePod(fmt.Sprintf("g-%s-%d", group, i), "ml").Gang("g").SubGroup(group).GPUs(1)
	}
	c.pod(pod("g0", 0), pod("g0", 1), pod("g1", 0), pod("g1", 1)).run().wholeOf("g-g0", 2).wholeOf("g-g1", 2)
	ran := c.racksOf("g-g1")
	if len(ran) != 1 || slices.Equal(ran, []string{"r2"}) {
		t.Fatalf("unit g1 runs in %v, want the tightest rack with room", ran)
	}
	beside := c.racksOf("g-g0")
	c.deletePod("g-g1-0")
	c.eventually("the deletion seen", func() bool { f, _ := c.gangs.registry.Facts(key("g")); return f.Created["g1"] == 1 })
	for i := range 2 { // all that is free in racks r0 and r1
		name := fmt.Sprintf("rival-%d", i)
		c.pod(wrappers.MakePod(name, "ml").GPUs(1).Spec(func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{"r0", "r1"}}},
			}}}}}
		})).eventually(name+" bound", func() bool { return len(c.boundOf(name)) == 1 })
	}
	c.pod(pod("g1", 2)).saysWhy("g", "in rack "+ran[0]+", where it runs")
	if bound := c.boundOf("g-g1-2"); len(bound) > 0 {
		t.Errorf("%v are bound beside a pod that runs in a full rack", bound)
	}
	c.deletePod("g-g1-1") // as muster-controller, which replaces the whole unit
	c.deletePod("g-g1-2")
	c.eventually("the deletions seen", func() bool { f, _ := c.gangs.registry.Facts(key("g")); return f.Created["g1"] == 0 })
	c.gang("filler", 1).wholeOf("filler", 1) // takes the node that the unit has left, or one of r2
	c.pod(pod("g1", 3), pod("g1", 4))
	c.eventually("the unit bound", func() bool { return len(c.boundOf("g-g1-3")) == 1 && len(c.boundOf("g-g1-4")) == 1 })
	if racks := c.racksOf("g-g1"); !slices.Equal(racks, []string{"r2"}) {
		t.Errorf("unit g1 runs in %v, want r2", racks)
	}
	if racks := c.racksOf("g-g0"); !slices.Equal(racks, beside) {
		t.Errorf("unit g0 has moved from %v to %v", beside, racks)
	}
}

// Gangs that require a rack are not tried while no rack may hold them, although enough is free in all of them.
func TestRefusedGangsWithLevelsCostNothingUntilARackIsFree(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const racks, gangs, perNode = 4, 20, 8
	for i := range racks {
		for _, k := range []string{"a", "b"} {
			c.node(wrappers.MakeNode(fmt.Sprintf("r%d-%s", i, k)).GPUs(perNode).Label("rack", fmt.Sprintf("r%d", i)))
		}
	}
	c.run()
	for i := range 2 * racks * perNode {
		c.pod(wrappers.MakePod(fmt.Sprintf("plain-%d", i), "ml").GPUs(1))
	}
	c.eventually("the nodes full", func() bool { return len(c.boundOf("plain-")) == 2*racks*perNode })
	for i := range gangs {
		name := fmt.Sprintf("gang%02d", i)
		c.groups.Put(wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(2).Spec(func(s *v2alpha2.PodGroupSpec) {
			s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack"}
		}).Obj())
		c.pod(big(name, 2)...).refused(name)
	}
	before := c.cyclesOf("gang")
	empty := func(node string) {
		for pod, at := range c.nodesOf("") {
			if at == node {
				c.deletePod(pod)
			}
		}
	}
	for i := range racks { // a whole node is free in each rack
		empty(fmt.Sprintf("r%d-a", i))
	}
	for i := range 5 {
		name := fmt.Sprintf("probe-%d", i)
		c.pod(wrappers.MakePod(name, "ml").CPU("1")).eventually(name+" bound", func() bool { return len(c.boundOf(name)) > 0 })
	}
	if got := c.cyclesOf("gang"); got != before {
		t.Errorf("%d cycles of gangs' pods while no rack had room for one, want none", got-before)
	}
	empty("r2-b")
	c.wholeOf("gang00", 2).inRacks("gang00", "r2")
	if got := c.cyclesOf("gang") - before; got > gangs+1 {
		t.Errorf("%d cycles for room that one gang could use, want at most one for each gang", got)
	}
}

// Ten thousand domains, of which one has room. What is said of the others is short.
func TestTenThousandDomains(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const racks = 10_000
	for i := range racks + 1 { // the last rack has two nodes
		node := wrappers.MakeNode(fmt.Sprintf("n%05d", i)).GPUs(1).Label("rack", fmt.Sprintf("r%05d", min(i, racks-1))).Obj()
		if err := c.client.Tracker().Add(node); err != nil {
			t.Fatal(err)
		}
		if i%50 == 0 || i == racks { // watchers of the fake clientset have room for 100 events
			c.eventually("the nodes seen", func() bool { return c.sched.Cache.NodeCount() == i+1 })
		}
	}
	c.run().leveledGang("a", 0, 2, 2).wholeOf("a", 2)
	if nodes := slices.Sorted(maps.Values(c.nodesOf("a-"))); !slices.Equal(nodes, []string{"n09999", "n10000"}) {
		t.Errorf("the gang runs on %v, want the only rack with two nodes", nodes)
	}
	c.leveledGang("b", 0, 2, 2).saysWhy("b", "and 9997 others for no more")
	f, _ := c.gangs.registry.Facts(key("b"))
	if len(f.Refused.Message) > 500 {
		t.Errorf("the message has %d bytes: %s", len(f.Refused.Message), f.Refused.Message)
	}
	c.deletePod("a-0")
	c.deletePod("a-1")
	c.wholeOf("b", 2)
}

// A gang requires a rack, and its sub-group a block, which is wider: the webhook rejects it, unless the Topology was
// created later. The narrower level holds.
func TestANarrowerLevelAboveAWiderOne(t *testing.T) {
	t.Parallel()
	var topologies *fakeapi.Topologies
	c := newCluster(t, serves(&topologies))
	topologies.Create("fabric", "block", "rack")
	for i := range 5 {
		c.fabricNode(fmt.Sprintf("n%d", i), "b0", fmt.Sprintf("r%d", i/3))
	}
	c.run()
	create := func(name string, pods int) {
		c.groups.Put(wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).SubGroup("u", int32(pods)).Spec(func(s *v2alpha2.PodGroupSpec) {
			s.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: "rack"}
			s.SubGroups[0].TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: "block"}
		}).Obj())
		for _, w := range members(name, pods) {
			c.pod(w.SubGroup("u"))
		}
	}
	create("large", 4) // the block has room for four, and no rack has
	c.saysWhy("large", "TooLarge: the largest rack, r0, would hold only 3 of the 4 pods").refused("large")
	create("small", 3)
	c.wholeOf("small", 3)
	for pod, node := range c.nodesOf("small-") {
		if node > "n2" {
			t.Errorf("%s is on %s, want a node of rack r0", pod, node)
		}
	}
}
