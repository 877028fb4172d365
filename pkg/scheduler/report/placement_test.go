// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

const rackLabel = "topology.example.com/rack"

// node creates or relabels a node.
func (c *cluster) node(name, rack string) {
	c.t.Helper()
	if err := c.nodes.Update(wrappers.MakeNode(name).Label(rackLabel, rack).Obj()); err != nil {
		c.t.Fatal(err)
	}
}

func preferRack(spec *v2alpha2.PodGroupSpec) {
	spec.TopologyConstraint = &v2alpha2.TopologyConstraint{PreferredTopologyLevel: rackLabel}
}

// The status follows pods that are bound and lost, and nodes that are relabelled and deleted. It is written at its
// pace, and not again without a change.
func TestPlacementFollowsPodsAndNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for name, rack := range map[string]string{"n1": "r1", "n2": "r2", "n3": "r3"} {
		c.node(name, rack)
	}
	c.group(podGroup("train").MinMember(2).Spec(preferRack))
	c.group(podGroup("other").MinMember(2))
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"no pod is bound", func() { c.pod(member("train", "a")) }, ""},
		{"two pods are bound", func() {
			c.pod(member("train", "a").Node("n1"))
			c.pod(member("train", "b").Node("n1"))
		}, "rack r1"},
		{"another rack is used", func() { c.pod(member("train", "c").Node("n2")) }, "2 racks (r1, r2)"},
		{"a node is relabelled", func() { c.node("n2", "r1") }, "rack r1"},
		{"a pod is being deleted", func() { c.pod(member("train", "c").Node("n2").Terminating()) }, "rack r1"},
		{"a node is deleted", func() {
			if err := c.nodes.Delete(wrappers.MakeNode("n1").Obj()); err != nil {
				t.Fatal(err)
			}
		}, "1 node without rack"},
		{"the pods are lost", func() {
			c.pod(member("train", "a").Node("n1").Terminating())
			c.pod(member("train", "b").Node("n1").Terminating())
		}, ""},
		{"others take their place", func() {
			c.pod(member("train", "d").Node("n3"))
			c.pod(member("train", "e").Node("n3"))
		}, "rack r3"},
	} {
		step.do()
		c.lastsFor("train", 2*time.Second)
		if got := c.groups.Get(keyOf("train")).Status.Placement; got != step.want {
			t.Errorf("%s: placement %q, want %q", step.name, got, step.want)
		}
		writes := c.groups.Updates()
		c.lastsFor("train", time.Minute)
		if n := c.groups.Updates(); n != writes {
			t.Errorf("%s: written %d times without a change", step.name, n-writes)
		}
	}

	// A gang that names no level has no placement.
	c.pod(member("other", "x").Node("n1"))
	c.pod(member("other", "y").Node("n2"))
	c.lastsFor("other", time.Minute)
	if s := c.groups.Get(keyOf("other")).Status; s.Scheduled != "2/2" || s.Placement != "" {
		t.Errorf("a gang without a level: %s bound, placement %q", s.Scheduled, s.Placement)
	}
}

// A domain is named by the labels of all levels above its own if its own label has the same value in another domain, in
// the levels of a Topology and in those that the PodGroup lists. A label that is a level by itself has no other one.
func TestPlacementNamesARackByItsBlock(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		topology, list string
		block          string // of node n2, with rack r0
		want           string
	}{
		"racks r0 of two blocks, of a Topology":   {topology: "fabric", block: "b1", want: "rack b0/r0"},
		"racks r0 of two blocks, listed":          {list: "block,rack", block: "b1", want: "rack b0/r0"},
		"one rack r0":                             {topology: "fabric", block: "b0", want: "rack r0"},
		"the label alone":                         {block: "b1", want: "rack r0"},
		"blocks are no levels of the constraints": {list: "rack,host", block: "b1", want: "rack r0"},
		"a Topology that is not known":            {topology: "other", block: "b1", want: "rack r0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			for node, block := range map[string]string{"n1": "b0", "n2": tt.block} {
				if err := c.nodes.Add(wrappers.MakeNode(node).Label("block", block).Label("rack", "r0").Obj()); err != nil {
					t.Fatal(err)
				}
			}
			group := podGroup("train").MinMember(1).Spec(func(s *v2alpha2.PodGroupSpec) {
				s.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: tt.topology, RequiredTopologyLevel: "rack"}
			}).Obj()
			group.Annotations = map[string]string{v2alpha2.TopologyLevelsAnnotation: tt.list}
			c.groups.Put(group)
			c.caughtUp("train")
			c.pod(member("train", "a").Node("n1"))
			c.lastsFor("train", 5*time.Second)
			if got := c.groups.Get(keyOf("train")).Status.Placement; got != tt.want {
				t.Errorf("placement %q, want %q", got, tt.want)
			}
		})
	}
}

// Tenants name levels, so what is known of them is kept for a while only.
func TestRepeatedNamesAreForgotten(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.node("n1", "r1")
	r := newRepeatedNames(Options{Nodes: corelisters.NewNodeLister(c.nodes)})
	now := time.Now()
	for n := range 100 {
		r.repeats(rackLabel, []string{fmt.Sprintf("block-%d", n)}, now)
		now = now.Add(repeatedNamesInterval / 4)
	}
	if n := len(r.known); n > 4 {
		t.Errorf("%d levels are known", n)
	}
}

// A relabelled node does not mark its gangs as changed. Their status follows nevertheless, because all gangs are
// checked from time to time.
func TestPlacementFollowsLabelsWithoutAMark(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.node("n1", "r1")
	c.group(podGroup("train").MinMember(1).Spec(preferRack))
	c.pod(member("train", "a").Node("n1"))
	placements := make(chan string, 10)
	c.groups.OnUpdate(func(g *v2alpha2.PodGroup) {
		c.registry.SetGroup(g, c.clock.Now())
		placements <- g.Status.Placement
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.reporter.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	next := func() string {
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
			select {
			case p := <-placements:
				return p
			default:
				c.passes(100 * time.Millisecond)
			}
		}
		t.Fatal("no status is written")
		return ""
	}
	got := []string{next()}
	c.node("n1", "r2")
	if diff := cmp.Diff([]string{"rack r1", "rack r2"}, append(got, next())); diff != "" {
		t.Errorf("placements (-want +got):\n%s", diff)
	}
}
