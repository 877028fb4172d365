// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/test/wrappers"
)

const blockLabel = "topology.example.com/block"

// fabric labels the nodes, so many per rack and two racks per block, and creates a Topology of that name.
func (c *cluster) fabric(name string, perRack int) {
	c.t.Helper()
	for i, node := range c.nodes {
		c.setRack(node, i/perRack)
	}
	c.createTopology(name)
	c.t.Cleanup(func() { c.deleteTopology(name) })
}

func (c *cluster) setRack(node string, rack int) {
	c.t.Helper()
	c.change(node, func(n *corev1.Node) {
		n.Labels[rackLabel], n.Labels[blockLabel] = fmt.Sprintf("r%d", rack), fmt.Sprintf("b%d", rack/2)
	})
}

func (c *cluster) createTopology(name string) {
	c.t.Helper()
	c.createTopologyOf(name, blockLabel, rackLabel, corev1.LabelHostname)
}

func (c *cluster) createTopologyOf(name string, labels ...string) {
	c.t.Helper()
	var levels []any
	for _, label := range labels {
		levels = append(levels, map[string]any{"nodeLabel": label})
	}
	topology := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"levels": levels}}}
	topology.SetGroupVersionKind(topologyv1alpha1.SchemeGroupVersion.WithKind("Topology"))
	topology.SetName(name)
	c.must(cp.Apply(c.ctx, topology), "creating the Topology")
}

func (c *cluster) deleteTopology(name string) {
	c.t.Helper()
	err := c.dynamic.Resource(topologyv1alpha1.SchemeGroupVersion.WithResource("topologies")).Delete(c.t.Context(), name, metav1.DeleteOptions{})
	if err != nil && c.t.Context().Err() == nil {
		c.t.Errorf("deleting the Topology: %v", err)
	}
}

// createIn creates a gang of n pods with all GPUs of a node each, which requires a level of a Topology; "": of none.
func (c *cluster) createIn(topology, level, name string, n int, change ...func(i int, w *wrappers.PodWrapper)) {
	c.t.Helper()
	c.apply(c.group(name).MinMember(int32(n)).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: topology, RequiredTopologyLevel: level}
	}))
	for i := range n {
		w := c.pod(fmt.Sprintf("%s-%d", name, i), name, 8)
		for _, f := range change {
			f(i, w)
		}
		c.create(w)
	}
}

// domainsOf returns the values of a label of the nodes on which a gang runs, without duplicates.
func (c *cluster) domainsOf(gang, label string) []string {
	c.t.Helper()
	var domains []string
	for _, pod := range c.pods() {
		if pod.Annotations[v2alpha2.PodGroupAnnotation] == gang && pod.Spec.NodeName != "" {
			node, err := cp.Client().CoreV1().Nodes().Get(c.ctx, pod.Spec.NodeName, metav1.GetOptions{})
			c.must(err, "reading a node")
			domains = append(domains, node.Labels[label])
		}
	}
	slices.Sort(domains)
	return slices.Compact(domains)
}

// Gangs of which each requires a rack of a Topology: whole gangs in one rack each, one that waits although enough is
// free, and what happens to those that run when nodes and Topologies come and go.
func TestGangsInRacks(t *testing.T) {
	c := newCluster(t, 16) // four racks of four, in two blocks
	name := c.namespace
	c.createIn(name, rackLabel, "one", 3)
	c.start()
	unknown := func(group string) {
		t.Helper()
		s := c.untilReason(group, v2alpha2.ReasonTopologyUnavailable)
		if !strings.Contains(s.Summary, "is not known: create it") {
			t.Errorf("summary %q, want that the Topology is not known", s.Summary)
		}
	}
	unknown("one")
	c.fabric(name, 4)
	c.untilBound("one", 3)
	for i := range 3 {
		c.createIn(name, rackLabel, fmt.Sprintf("more%d", i), 3)
		c.untilBound(fmt.Sprintf("more%d", i), 3)
	}
	// Four nodes are free, one in each rack.
	c.createIn(name, rackLabel, "waits", 2)
	s := c.untilReason("waits", v2alpha2.ReasonTopologyUnavailable)
	if !strings.Contains(s.Summary, "no rack has room for the gang (2 pods of 8 nvidia.com/gpu): rack r0 has room for 1, r1 for 1, r2 for 1, and 1 other for no more") {
		t.Errorf("summary %q", s.Summary)
	}
	text := c.kubectl("describe", "pg", "waits")
	if !strings.Contains(text, "no rack has room for the gang") {
		t.Errorf("kubectl describe does not say why it waits:\n%s", text)
	}
	// A gang that requires a block takes the two nodes that are free in one.
	c.createIn(name, blockLabel, "block", 2)
	c.untilBound("block", 2)
	for _, gang := range []string{"one", "more0", "more1", "more2"} {
		if racks := c.domainsOf(gang, rackLabel); len(racks) != 1 {
			t.Errorf("%s runs in racks %v", gang, racks)
		}
	}
	if blocks := c.domainsOf("block", blockLabel); len(blocks) != 1 {
		t.Errorf("block runs in blocks %v", blocks)
	}
	rack := c.domainsOf("one", rackLabel)[0]
	c.untilStatus("one", "says where it runs", func(s v2alpha2.PodGroupStatus) bool { return s.Placement == "rack "+rack })

	// A member is lost while the Topology is gone, and its node is cordoned: the others run on. With the Topology, the
	// gang is completed in its rack, and not before a node of the rack is free, although one of another rack is.
	c.deleteTopology(name)
	c.deleteGang("block") // two nodes are free
	lost := c.nodeOf("one-2")
	c.change(lost, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	c.delete("one-2")
	free := c.nodesOfRack(rack)
	taken := c.pods()
	free = slices.DeleteFunc(free, func(node string) bool {
		return node == lost || slices.ContainsFunc(taken, func(p corev1.Pod) bool { return p.Spec.NodeName == node })
	})
	c.create(c.pod("one-3", "one", 8))
	unknown("one")
	c.createTopology(name)
	c.deleteGang("waits")
	if len(free) == 0 {
		c.untilStatus("one", "waits in its rack", func(s v2alpha2.PodGroupStatus) bool {
			return strings.Contains(s.Summary, "in rack "+rack+", where it runs")
		})
		c.change(lost, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	}
	c.until("one is whole again", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, "one") == 3 })
	if racks := c.domainsOf("one", rackLabel); !slices.Equal(racks, []string{rack}) {
		t.Errorf("one runs in racks %v, want %s", racks, rack)
	}
	c.stillSchedules()
}

// A cluster without the CRD of Topologies schedules gangs without levels, and those of Topologies as soon as the CRD
// and theirs exist; muster-scheduler runs on.
func TestTheCRDOfTopologiesIsInstalledLater(t *testing.T) {
	c := newCluster(t, 8)
	const crd = "../../../manifests/crds/kai.scheduler_topologies.yaml"
	t.Cleanup(func() { c.kubectl("apply", "--server-side", "-f", crd) })
	c.kubectl("delete", "-f", crd)
	c.start()
	c.createGang("plain", 2, 8)
	c.untilBound("plain", 2)
	for i, node := range c.nodes {
		c.setRack(node, i/4)
	}
	c.createIn("", rackLabel, "label", 2)
	c.untilBound("label", 2)
	c.createIn(c.namespace, rackLabel, "one", 2)
	s := c.untilReason("one", v2alpha2.ReasonTopologyUnavailable)
	if !strings.Contains(s.Summary, "install the CRD topologies.kai.scheduler") {
		t.Errorf("summary %q, want that the CRD is missing", s.Summary)
	}
	c.kubectl("apply", "--server-side", "-f", crd)
	c.createTopology(c.namespace)
	t.Cleanup(func() { c.deleteTopology(c.namespace) })
	c.untilBound("one", 2)
	for _, gang := range []string{"label", "one"} {
		if racks := c.domainsOf(gang, rackLabel); len(racks) != 1 {
			t.Errorf("%s runs in racks %v", gang, racks)
		}
	}
}

func (c *cluster) nodeOf(pod string) string {
	c.t.Helper()
	p, err := cp.Client().CoreV1().Pods(c.namespace).Get(c.ctx, pod, metav1.GetOptions{})
	c.must(err, "reading a pod")
	return p.Spec.NodeName
}

func (c *cluster) nodesOfRack(rack string) []string {
	c.t.Helper()
	list, err := cp.Client().CoreV1().Nodes().List(c.ctx, metav1.ListOptions{LabelSelector: rackLabel + "=" + rack})
	c.must(err, "listing nodes")
	var names []string
	for i := range list.Items {
		if slices.Contains(c.nodes, list.Items[i].Name) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}
