// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// cyclesOf returns the number of cycles of the pods whose names have the prefix.
func (c *cluster) cyclesOf(prefix string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, name := range c.popped {
		if strings.HasPrefix(name, prefix) {
			n++
		}
	}
	return n
}

// big returns pods of a gang that need a whole node of 8 GPUs each.
func big(gang string, n int) []*wrappers.PodWrapper {
	var out []*wrappers.PodWrapper
	for i := range n {
		out = append(out, wrappers.MakePod(fmt.Sprintf("%s-%d", gang, i), "ml").Gang(gang).GPUs(8))
	}
	return out
}

func (c *cluster) bigGang(name string, n int) *cluster {
	c.groups.Put(wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(int32(n)).Obj())
	return c.pod(big(name, n)...)
}

func TestGangIsWokenByAnyChangeThatMakesItFit(t *testing.T) {
	for name, tc := range map[string]struct {
		node   *wrappers.NodeWrapper
		gang   func(pod *wrappers.PodWrapper)
		change func(c *cluster)
	}{
		"a node is added": {
			node:   wrappers.MakeNode("n0").GPUs(2),
			change: func(c *cluster) { c.node(wrappers.MakeNode("n1").GPUs(2)) },
		},
		"a node grows": {
			node: wrappers.MakeNode("n0").GPUs(2),
			change: func(c *cluster) {
				c.updateNode("n0", func(n *corev1.Node) { *n = *wrappers.MakeNode("n0").GPUs(4).Obj() })
			},
		},
		"a taint is removed": {
			node:   wrappers.MakeNode("n0").GPUs(4).Taint("maintenance", "yes"),
			change: func(c *cluster) { c.updateNode("n0", func(n *corev1.Node) { n.Spec.Taints = nil }) },
		},
		"a node is uncordoned": {
			node: wrappers.MakeNode("n0").GPUs(4).Unschedulable(),
			change: func(c *cluster) {
				c.updateNode("n0", func(n *corev1.Node) { n.Spec.Unschedulable, n.Spec.Taints = false, nil })
			},
		},
		"a label is added": {
			node: wrappers.MakeNode("n0").GPUs(4),
			gang: func(p *wrappers.PodWrapper) { p.NodeSelector("pool", "blue") },
			change: func(c *cluster) {
				c.updateNode("n0", func(n *corev1.Node) { n.Labels = map[string]string{"pool": "blue"} })
			},
		},
		"a port becomes free": {
			node: wrappers.MakeNode("n0").GPUs(8),
			gang: func(p *wrappers.PodWrapper) { p.HostPort(int32(8000 + int(p.Obj().Name[2]-'0'))) },
			change: func(c *cluster) {
				c.deletePod("holder")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).node(tc.node).run()
			if name == "a port becomes free" {
				c.pod(wrappers.MakePod("holder", "ml").HostPort(8001)).eventually("holder bound", func() bool { return len(c.boundOf("holder")) == 1 })
			}
			pods := members("a", 4)
			for _, p := range pods {
				if tc.gang != nil {
					tc.gang(p)
				}
			}
			c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(4).Obj())
			c.pod(pods...).refused("a")
			tc.change(c)
			c.wholeOf("a", 4)
		})
	}
}

// A gang that host ports refused is tried again when one of its own ports is free, not when another port is, or when a
// claim changes that it does not use.
func TestEventsOfOtherObjectsWakeNoGang(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).run()
	c.pod(wrappers.MakePod("holder", "ml").HostPort(8000), wrappers.MakePod("other", "ml").HostPort(9000))
	c.eventually("both bound", func() bool { return len(c.boundOf("")) == 2 })
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(2).Obj())
	pods := members("a", 2)
	pods[0].HostPort(8000)
	c.pod(pods...).refused("a")
	before := c.cyclesOf("a-")
	for i := range 10 {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprint("claim-", i)}}
		if _, err := c.client.CoreV1().PersistentVolumeClaims("ml").Create(c.ctx, claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.deletePod("other")
		c.pod(wrappers.MakePod("other", "ml").HostPort(9000)).eventually("bound again", func() bool { return len(c.boundOf("other")) == 2+i })
	}
	if got := c.cyclesOf("a-") - before; got > 1 { // one may follow the last change of the gang itself
		t.Errorf("%d cycles of the gang's pods for 20 events that could not help it, want none", got)
	}
	c.deletePod("holder")
	c.wholeOf("a", 2)
}

func (c *cluster) updateNode(name string, change func(*corev1.Node)) {
	c.t.Helper()
	node, err := c.client.CoreV1().Nodes().Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	change(node)
	if _, err := c.client.CoreV1().Nodes().Update(c.ctx, node, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func TestClusterWithoutNodesIsReported(t *testing.T) {
	t.Parallel()
	c := newCluster(t).run().gang("a", 4).refused("a")
	f, _ := c.gangs.registry.Facts(key("a"))
	if want := "the cluster has no nodes"; f.Refused.Message != want {
		t.Errorf("message %q, want %q", f.Refused.Message, want)
	}
	needs := 0
	for _, w := range f.Waiting {
		if w.NeedsCapacity {
			needs++
		}
	}
	if needs != 4 {
		t.Errorf("%d pods are said to need capacity, want all 4 of the minimum", needs)
	}
	c.node(wrappers.MakeNode("n0").GPUs(8)).wholeOf("a", 4)
}

// Cluster autoscalers are told of a gang that requires a rack only if the nodes that they add may help (docs/decisions,
// G13).
func TestAutoscalersAreToldWhenNodesHelp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		racks, taken []int // nodes in each rack, and those of them that others use
		reason       v2alpha2.Reason
		told         bool
	}{
		"what is free is in one rack":     {[]int{4, 4}, []int{2, 4}, v2alpha2.ReasonInsufficientGPUs, true},
		"nothing is free":                 {[]int{4, 4}, []int{4, 4}, v2alpha2.ReasonInsufficientGPUs, true},
		"nodes are free in two racks":     {[]int{4, 4}, []int{2, 3}, v2alpha2.ReasonInsufficientGPUs, false},
		"enough is free, in two racks":    {[]int{4, 4}, []int{2, 2}, v2alpha2.ReasonTopologyUnavailable, false},
		"the racks are too small":         {[]int{3, 3}, []int{3, 3}, v2alpha2.ReasonTooLarge, false},
		"the cluster has no nodes at all": {nil, nil, v2alpha2.ReasonNoNodeMatches, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).labeledRacks(tc.racks...)
			for rack, taken := range tc.taken {
				for k := range taken {
					c.seesPod(wrappers.MakePod(fmt.Sprintf("other-%d-%d", rack, k), "ml").SchedulerName("another").GPUs(1).Node(fmt.Sprintf("r%d-%d", rack, k)))
				}
			}
			c.run().leveledGang("a", 0, 4, 4).refused("a")
			f, _ := c.gangs.registry.Facts(key("a"))
			if f.Refused.Reason != tc.reason {
				t.Errorf("reason %s: %s, want %s", f.Refused.Reason, f.Refused.Message, tc.reason)
			}
			for _, w := range f.Waiting {
				if w.NeedsCapacity != tc.told {
					t.Errorf("an autoscaler is told of %s: %t, want %t (%s: %s)", w.Pod.Name, w.NeedsCapacity, tc.told, f.Refused.Reason, f.Refused.Message)
				}
			}
		})
	}
}

func TestProfileThatOnlySortsSchedulesPodsOneByOne(t *testing.T) {
	t.Parallel()
	c := newCluster(t, sortOnly).node(wrappers.MakeNode("n0").GPUs(2)).gang("a", 4).run()
	c.eventually("the pods that fit bound", func() bool { return len(c.boundOf("a-")) == 2 })
	if f, ok := c.gangs.registry.Facts(key("a")); ok && f.Profile != "" {
		t.Errorf("the gang is planned with profile %s", f.Profile)
	}
}

func TestMemberGatedByAnotherPluginIsNotPlanned(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).run()
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(2).Obj())
	pods := members("a", 3)
	claim := "missing"
	pods[0].Spec(func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "dev", ResourceClaimName: &claim}}
	})
	pods[1].Spec(func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "dev", ResourceClaimName: &claim}}
	})
	c.pod(pods...).eventually("the two pods with claims gated", func() bool {
		f, ok := c.gangs.registry.Facts(key("a"))
		return ok && f.Gated == 2 && strings.HasPrefix(f.GatedBy, "pod a-") && strings.Contains(f.GatedBy, "plugin DynamicResources")
	})
	c.pod(wrappers.MakePod("a-3", "ml").Gang("a").GPUs(1))
	c.eventually("the two pods without claims bound", func() bool {
		return slices.Equal(c.boundOf("a-"), []string{"a-2", "a-3"})
	})
}

func TestRefusedGangsCostNothingUntilEnoughFits(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const nodes, gangs = 4, 30
	for i := range nodes {
		c.node(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(8))
	}
	c.run()
	for i := range nodes * 8 {
		c.pod(wrappers.MakePod(fmt.Sprintf("plain-%d", i), "ml").GPUs(1))
	}
	c.eventually("the nodes full", func() bool { return len(c.boundOf("plain-")) == nodes*8 })
	for i := range gangs {
		c.bigGang(fmt.Sprintf("gang%02d", i), 2).refused(fmt.Sprintf("gang%02d", i))
	}
	before := c.cyclesOf("gang")

	for i := range 20 {
		c.deletePod(fmt.Sprintf("plain-%d", i))
		next := fmt.Sprintf("next-%d", i)
		c.pod(wrappers.MakePod(next, "ml").GPUs(1)).eventually(next+" bound", func() bool { return len(c.boundOf(next)) > 0 })
	}
	if got := c.cyclesOf("gang"); got != before {
		t.Errorf("%d cycles of gangs' pods while pods came and went and no gang could fit, want none", got-before)
	}

	// Two whole nodes: the oldest gang fits, and no other gang is tried unnecessarily more than once.
	pods, err := c.client.CoreV1().Pods("ml").List(c.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Spec.NodeName == "n0" || p.Spec.NodeName == "n1" {
			c.deletePod(p.Name)
		}
	}
	c.wholeOf("gang00", 2)
	if got := c.cyclesOf("gang") - before; got > gangs+1 {
		t.Errorf("%d cycles for room that one gang could use, want at most one for each gang", got)
	}
}

func TestSurplusIsWokenByRoom(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(16)).run()
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(2).Obj())
	c.pod(big("a", 3)...)
	c.eventually("the minimum bound, the third pod refused", func() bool {
		f, ok := c.gangs.registry.Facts(key("a"))
		return ok && len(c.boundOf("a-")) == 2 && f.Refused.Reason != ""
	})
	c.node(wrappers.MakeNode("n1").GPUs(8))
	c.eventually("the third pod bound", func() bool { return len(c.boundOf("a-")) == 3 })
}

func TestPlainPodsWithoutRoomAreNotTriedRepeatedly(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).node(wrappers.MakeNode("n1").GPUs(8)).run()
	for i := range 16 {
		c.pod(wrappers.MakePod(fmt.Sprintf("small-%d", i), "ml").GPUs(1))
	}
	c.eventually("the nodes full", func() bool { return len(c.boundOf("small-")) == 16 })
	const large = 20
	for i := range large {
		c.pod(wrappers.MakePod(fmt.Sprintf("large-%d", i), "ml").GPUs(8))
	}
	c.eventually("each large pod tried", func() bool { return c.cyclesOf("large-") >= large })
	before := c.cyclesOf("large-")
	for i := range 10 {
		c.deletePod(fmt.Sprintf("small-%d", i))
		next := fmt.Sprintf("next-%d", i)
		c.pod(wrappers.MakePod(next, "ml").GPUs(1)).eventually(next+" bound", func() bool { return len(c.boundOf(next)) > 0 })
	}
	// A pod is moved once by an event that occurs during its cycle: the stock queue records such events.
	if got := c.cyclesOf("large-") - before; got > large {
		t.Errorf("%d cycles of pods that could not fit, want at most one each", got)
	}
	tried := c.cyclesOf("large-")
	for i := range 10 {
		c.deletePod(fmt.Sprintf("next-%d", i))
	}
	for i := 10; i < 16; i++ {
		c.deletePod(fmt.Sprintf("small-%d", i))
	}
	c.eventually("two large pods bound", func() bool { return len(c.boundOf("large-")) == 2 })
	if got := c.cyclesOf("large-") - tried; got > large/2 {
		t.Errorf("%d cycles for room that two pods could use", got)
	}
}

// TestGangIsWokenByThePodsThatMatterToIt: the gang is refused because of labels of other pods, although there is room.
// An event of another pod does not wake it.
func TestGangIsWokenByThePodsThatMatterToIt(t *testing.T) {
	rack := func(selector string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: "rack", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": selector}}}
	}
	avoids := func(p *wrappers.PodWrapper, selector string) *wrappers.PodWrapper {
		return p.Spec(func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{rack(selector)}}}
		})
	}
	for name, tc := range map[string]struct {
		before *wrappers.PodWrapper // bound
		gang   func(p *wrappers.PodWrapper)
		change func(c *cluster)
	}{
		"a pod that it must be near is bound": {
			gang:   func(p *wrappers.PodWrapper) { p.TogetherWith("rack", "app", "db") },
			change: func(c *cluster) { c.pod(wrappers.MakePod("db", "ml").Label("app", "db")) },
		},
		"a pod that it must not be near leaves": {
			before: wrappers.MakePod("db", "ml").Label("app", "db"),
			gang:   func(p *wrappers.PodWrapper) { avoids(p, "db") },
			change: func(c *cluster) { c.deletePod("db") },
		},
		"a pod that must not be near it leaves": {
			before: avoids(wrappers.MakePod("db", "ml"), "web"),
			gang:   func(p *wrappers.PodWrapper) { p.Label("app", "web") },
			change: func(c *cluster) { c.deletePod("db") },
		},
		"a pod that it must not be near changes its labels": {
			before: wrappers.MakePod("db", "ml").Label("app", "db"),
			gang:   func(p *wrappers.PodWrapper) { avoids(p, "db") },
			change: func(c *cluster) {
				pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, "db", metav1.GetOptions{})
				if err != nil {
					c.t.Fatal(err)
				}
				pod.Labels["app"] = "none"
				if _, err := c.client.CoreV1().Pods("ml").Update(c.ctx, pod, metav1.UpdateOptions{}); err != nil {
					c.t.Fatal(err)
				}
			},
		},
		"a rack gets a node": {
			before: wrappers.MakePod("db", "ml").Label("app", "db"),
			gang:   func(p *wrappers.PodWrapper) { avoids(p, "db") },
			change: func(c *cluster) { c.node(wrappers.MakeNode("n1").Label("rack", "r1").GPUs(8)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).node(wrappers.MakeNode("n0").Label("rack", "r0").GPUs(8)).run()
			if tc.before != nil {
				c.pod(tc.before).eventually("db bound", func() bool { return len(c.boundOf("db")) == 1 })
			}
			pods := members("a", 2)
			for _, p := range pods {
				tc.gang(p)
			}
			c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(2).Obj())
			c.pod(pods...).refused("a")
			before := 0
			for i := range 6 {
				if i == 1 { // an event from before the refusal may have caused another attempt
					before = c.attempts("a")
				}
				other := fmt.Sprintf("other-%d", i)
				c.pod(wrappers.MakePod(other, "ml").Label("app", "other")).eventually(other+" bound", func() bool { return len(c.boundOf(other)) == 1 })
			}
			if n := c.attempts("a") - before; n > 0 {
				t.Errorf("tried %d times because of pods that do not matter to it", n)
			}
			tc.change(c)
			c.wholeOf("a", 2)
		})
	}
}

// A gang requires a rack, and lacks one GPU in rack r0. Room for a GPU comes to other racks, where it does not help:
// the gang is not tried. Then it comes to r0, and the gang is placed.
func TestRoomInOtherRacksWakesNoGang(t *testing.T) {
	extra := func(rack int) *wrappers.NodeWrapper {
		return wrappers.MakeNode(fmt.Sprintf("r%d-x", rack)).GPUs(1).Label("rack", fmt.Sprintf("r%d", rack))
	}
	name := func(rack int) string { return extra(rack).Obj().Name }
	fill := func(c *cluster, pod, node string) {
		c.pod(wrappers.MakePod(pod, "ml").GPUs(1).NodeSelector(corev1.LabelHostname, node)).eventually(pod+" bound", func() bool { return len(c.boundOf(pod)) == 1 })
	}
	changes := map[string]struct{ before, change func(c *cluster, rack int) }{
		"a pod leaves": {
			before: func(c *cluster, rack int) { fill(c.node(extra(rack)), "on-"+name(rack), name(rack)) },
			change: func(c *cluster, rack int) { c.deletePod("on-" + name(rack)) },
		},
		"a node is added": {change: func(c *cluster, rack int) { c.node(extra(rack)) }},
		"a node is uncordoned": {
			before: func(c *cluster, rack int) { c.node(extra(rack).Unschedulable()) },
			change: func(c *cluster, rack int) {
				c.updateNode(name(rack), func(n *corev1.Node) { n.Spec.Unschedulable = false })
			},
		},
		"a taint is removed": {
			before: func(c *cluster, rack int) { c.node(extra(rack).Taint("maintenance", "yes")) },
			change: func(c *cluster, rack int) { c.updateNode(name(rack), func(n *corev1.Node) { n.Spec.Taints = nil }) },
		},
		"a node grows": {
			before: func(c *cluster, rack int) { c.node(extra(rack).GPUs(0)) },
			change: func(c *cluster, rack int) { c.updateNode(name(rack), func(n *corev1.Node) { *n = *extra(rack).Obj() }) },
		},
		"a node gets the label": {
			before: func(c *cluster, rack int) { c.node(wrappers.MakeNode(name(rack)).GPUs(1)) },
			change: func(c *cluster, rack int) { c.label(name(rack), fmt.Sprintf("r%d", rack)) },
		},
	}
	waits := map[string]func(c *cluster){
		"minimum": func(c *cluster) { c.leveledGang("a", 0, 3, 3) },
		"surplus": func(c *cluster) { c.leveledGang("a", 0, 2, 3).wholeOf("a", 2) },
		"refill": func(c *cluster) {
			c.leveledGang("a", 0, 2, 2).wholeOf("a", 2)
			node := c.nodesOf("a-")["a-1"]
			c.deletePod("a-1")
			c.eventually("the deletion seen", func() bool { f, _ := c.gangs.registry.Facts(key("a")); return f.Created[""] == 1 })
			fill(c, "filler", node)
			c.pod(members("a", 3)[2:]...)
		},
	}
	for task, wait := range waits {
		for event, e := range changes {
			t.Run(task+", "+event, func(t *testing.T) {
				t.Parallel()
				const others = 4
				c := newCluster(t).labeledRacks(2, 1, 1, 1, 1).run()
				if e.before != nil {
					for rack := range 1 + others {
						e.before(c, rack)
					}
				}
				wait(c)
				c.refused("a")
				before := c.attempts("a")
				for rack := 1; rack <= others; rack++ {
					e.change(c, rack)
					c.eventually("the room seen", func() bool {
						info := c.sched.Cache.Dump().Nodes[name(rack)]
						return info != nil && info.GetRequested().GetScalarResources()[wrappers.GPUResource] == 0 &&
							info.GetAllocatable().GetScalarResources()[wrappers.GPUResource] == 1 && info.Node().Labels["rack"] == fmt.Sprintf("r%d", rack) &&
							!info.Node().Spec.Unschedulable && len(info.Node().Spec.Taints) == 0
					})
					for k := range 2 { // pods that are placed after all gangs that were woken
						pod := fmt.Sprintf("probe-%d-%d", rack, k)
						c.pod(wrappers.MakePod(pod, "ml").CPU("1")).eventually(pod+" bound", func() bool { return len(c.boundOf(pod)) == 1 })
					}
				}
				if n := c.attempts("a") - before; n > 1 { // one may follow the last change of the gang itself
					t.Errorf("tried %d times because of room in %d other racks", n, others)
				}
				e.change(c, 0)
				c.wholeOf("a", 3).inRacks("a", "r0")
			})
		}
	}
}
