// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// A gang that host ports refused is tried again when one of its own ports is free, not when another port is, or when a claim changes
// that it does not use.
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

// TestGangIsWokenByThePodsThatMatterToIt: the gang is refused because of labels of other pods, although there is room. An
// event of another pod does not wake it.
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
