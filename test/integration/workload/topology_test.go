// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

var (
	topologyBindings = v1alpha1.SchemeGroupVersion.WithResource("clustertopologybindings")
	topologies       = topologyv1alpha1.SchemeGroupVersion.WithResource("topologies")
)

// packed is a set whose pods use a node each: two of a clique that requires a rack, and two replicas of a scaling
// group, each of which requires a rack. %s: the ClusterTopologyBinding.
const packed = `
metadata: {name: s}
spec:
  replicas: 1
  template:
    cliques:
    - name: web
      topologyConstraint: {topologyName: %[1]s, pack: {required: rack}}
      spec: {replicas: 2, podSpec: {containers: [{name: main, image: "registry.example/main:1", resources: {limits: {nvidia.com/gpu: 8}}}]}}
    - name: leader
      spec: {replicas: 1, podSpec: {containers: [{name: main, image: "registry.example/main:1", resources: {limits: {nvidia.com/gpu: 8}}}]}}
    - name: worker
      spec: {replicas: 1, podSpec: {containers: [{name: main, image: "registry.example/main:1", resources: {limits: {nvidia.com/gpu: 8}}}]}}
    podCliqueScalingGroups:
    - {name: g, cliqueNames: [leader, worker], replicas: 2, minAvailable: 1, topologyConstraint: {topologyName: %[1]s, pack: {required: rack}}}
`

// oneNode is a set of one pod that needs a node.
const oneNode = `
metadata: {name: rival}
spec:
  replicas: 1
  template:
    cliques:
    - {name: web, spec: {replicas: 1, podSpec: {containers: [{name: main, image: "registry.example/main:1", resources: {limits: {nvidia.com/gpu: 8}}}]}}}
`

// newFabric creates racks r0, r1, ... with so many nodes each, and a Topology and a ClusterTopologyBinding with the
// name of the namespace.
func newFabric(t *testing.T, racks ...int) *world {
	t.Helper()
	w := newWorld(t, 0)
	for i, n := range racks {
		w.addToRack(fmt.Sprintf("r%d", i), n)
	}
	w.createTopology()
	t.Cleanup(func() { w.deleteShared(topologies); w.deleteShared(topologyBindings) })
	return w
}

// deleteShared deletes the object of a cluster-scoped kind that has the name of the namespace.
func (w *world) deleteShared(kind schema.GroupVersionResource) {
	w.t.Helper()
	w.must(w.dynamic.Resource(kind).Delete(context.Background(), w.namespace, metav1.DeleteOptions{}), "deleting "+kind.Resource)
}

func (w *world) addToRack(rack string, nodes int) {
	w.t.Helper()
	w.addLabelled(nodes, map[string]string{"world": w.namespace, controlplane.RackLabel: rack})
}

func (w *world) addLabelled(nodes int, labels map[string]string) {
	w.t.Helper()
	names, err := cp.CreateNodes(w.ctx, controlplane.NodeOptions{Count: nodes, GPUs: 8, First: len(w.nodes), NamePrefix: w.namespace, Labels: labels})
	w.must(err, "creating nodes")
	w.nodes = append(w.nodes, names...)
}

const topologyManifest = `
apiVersion: kai.scheduler/v1alpha1
kind: Topology
metadata: {name: %[1]s}
spec: {levels: [{nodeLabel: %[2]s}, {nodeLabel: %[3]s}]}
`

const bindingManifest = `
apiVersion: grove.io/v1alpha1
kind: ClusterTopologyBinding
metadata: {name: %[1]s}
spec: {levels: [{domain: block, key: %[2]s}, {domain: rack, key: %[3]s}]}
`

func (w *world) createTopology() {
	w.t.Helper()
	w.createFrom(topologyManifest)
	w.createFrom(bindingManifest)
}

func (w *world) createFrom(manifest string) {
	w.t.Helper()
	objects, err := controlplane.ParseManifests(fmt.Appendf(nil, manifest, w.namespace, controlplane.BlockLabel, controlplane.RackLabel))
	w.must(err, "reading manifests")
	w.must(cp.Apply(w.ctx, objects...), "creating the topology")
}

// racks returns the racks of the bound pods of each unit with a constraint: PodClique s-0-web, replica s-0-g-1. One
// with pods in several racks fails the test.
func (w *world) racks() map[string]string {
	w.t.Helper()
	nodes, err := cp.Client().CoreV1().Nodes().List(w.ctx, metav1.ListOptions{LabelSelector: "world=" + w.namespace})
	w.must(err, "listing nodes")
	rackOf, racks := map[string]string{}, map[string]string{}
	for _, n := range nodes.Items {
		rackOf[n.Name] = n.Labels[controlplane.RackLabel]
	}
	for _, p := range w.pods() {
		if p.Spec.NodeName == "" || p.Labels[v1alpha1.LabelPartOf] != "s" {
			continue
		}
		unit := p.Labels[v1alpha1.LabelPodClique]
		if group := p.Labels[v1alpha1.LabelPodCliqueScalingGroup]; group != "" {
			unit = group + "-" + p.Labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex]
		}
		if rack := rackOf[p.Spec.NodeName]; racks[unit] != "" && racks[unit] != rack {
			w.t.Errorf("%s runs in racks %s and %s", unit, racks[unit], rack)
		}
		racks[unit] = rackOf[p.Spec.NodeName]
	}
	return racks
}

// Sets with required racks. The stories run in parallel with each other only, as they need exactly the nodes that they
// have.
func TestSetsInRacks(t *testing.T) {
	t.Run("update", func(t *testing.T) { t.Parallel(); updateInRacks(newFabric(t, 2, 2, 2)) })
	t.Run("replaced", func(t *testing.T) { t.Parallel(); replaceInRacks(newFabric(t, 2, 2, 2, 2)) })
	t.Run("scale-out", func(t *testing.T) { t.Parallel(); scaleOutInRacks(newFabric(t, 3, 2, 1)) })
}

// sixNodes is a set whose six pods use a node each, and require a rack. %s: the ClusterTopologyBinding.
const sixNodes = `
metadata: {name: s}
spec:
  replicas: 1
  template:
    topologyConstraint: {topologyName: %s, pack: {required: rack}}
    cliques:
    - {name: web, spec: {replicas: 6, podSpec: {containers: [{name: main, image: "registry.example/main:1", resources: {limits: {nvidia.com/gpu: 8}}}]}}}
`

// A ClusterTopologyBinding without a Topology defines the domains: rack r0 of block b0 is another one than rack r0 of
// block b1. The Topology is created when the set runs, and the set gets a lost pod again.
func TestABindingNeedsNoTopology(t *testing.T) {
	w := newWorld(t, 0)
	add := func(block string, nodes int) {
		w.addLabelled(nodes, map[string]string{"world": w.namespace, controlplane.BlockLabel: block, controlplane.RackLabel: "r0"})
	}
	add("b0", 3)
	add("b1", 3)
	w.createFrom(bindingManifest)
	t.Cleanup(func() { w.deleteShared(topologyBindings) })
	w.apply(fmt.Sprintf(sixNodes, w.namespace))
	status := func(text string, field ...string) {
		t.Helper()
		w.until("the PodGroup says "+text, podGroups, func(objects []*unstructured.Unstructured) bool {
			if len(objects) == 0 {
				return false
			}
			got, _, _ := unstructured.NestedString(objects[0].Object, field...)
			return strings.Contains(got, text)
		})
	}
	status("r0, would hold only 3 of the 6 pods", "status", "summary")
	if n := len(w.running()); n > 0 {
		t.Fatalf("%d pods are bound, and no rack has six nodes", n)
	}
	add("b1", 3)
	w.untilAvailable("s")
	status("rack b1/r0", "status", "placement")

	w.createFrom(topologyManifest)
	t.Cleanup(func() { w.deleteShared(topologies) })
	status(w.namespace, "spec", "topologyConstraint", "topology")
	w.must(cp.Client().CoreV1().Pods(w.namespace).Delete(w.ctx, w.pods()[0].Name, metav1.DeleteOptions{}), "deleting a pod")
	w.untilBindings("the lost pod is replaced", bindings{"s-0-web": 6})
	status("rack b1/r0", "status", "placement")
}

// A set of which each part requires a rack is updated on a full cluster. Each part stays whole in its rack, and no pod
// that waits for a node gets one.
func updateInRacks(w *world) {
	r := w.started(fmt.Sprintf(packed, w.namespace))
	before := w.racks()
	w.apply(oneNode)
	w.untilRefused("rival-0")

	w.image(2, "web", "leader", "worker")
	w.untilUpdated()
	r.was(map[string]string{"s-0-web": "-0 +0 -1 +1", "s-0-g": "-0 +0 -1 +1"})
	if after := w.racks(); !maps.Equal(before, after) {
		w.t.Errorf("racks %v, before the update %v; the rival has none", after, before)
	}
	w.scale(groups, "s-0-g", 1)
	w.untilAvailable("rival")
}

// A replica of a scaling group that requires a rack loses a pod, and its rack is full. When its termination delay is
// over, muster-controller replaces it, and it starts whole in another rack. The others stay.
func replaceInRacks(w *world) {
	set := w.parse(fmt.Sprintf(packed, w.namespace))
	set.Spec.Template.TerminationDelay = w.duration("2s")
	w.must(w.client.Create(w.ctx, set), "creating the set")
	w.untilAvailable("s")
	all := bindings{"s-0-web": 2, "s-0-g-0-leader": 1, "s-0-g-0-worker": 1, "s-0-g-1-leader": 1, "s-0-g-1-worker": 1}
	w.untilBindings("the set is bound", all)
	racks, others := w.racks(), w.running()
	want := maps.Clone(racks)
	for i := range 4 {
		if rack := fmt.Sprintf("r%d", i); !slices.Contains(slices.Collect(maps.Values(racks)), rack) {
			want["s-0-g-1"] = rack
		}
	}
	for _, p := range w.pods() {
		if strings.HasPrefix(p.Labels[v1alpha1.LabelPodClique], "s-0-g-1-") {
			delete(others, p.Spec.Hostname)
		}
		if p.Labels[v1alpha1.LabelPodClique] == "s-0-g-1-leader" {
			w.cordon(p.Spec.NodeName, true)
			w.must(cp.Client().CoreV1().Pods(w.namespace).Delete(w.ctx, p.Name, metav1.DeleteOptions{}), "deleting a pod")
		}
	}
	w.untilBindings("the replica is bound again", all)
	if got := w.racks(); !maps.Equal(got, want) {
		w.t.Errorf("racks %v, want %v, before %v", got, want, racks)
	}
	w.undisturbed(others)
}

// A scaling group of which each replica requires a rack is scaled out: each replica starts whole in one rack, and one
// that finds none waits whole. So it does while the objects of the topology are gone, which affects no pod that runs.
func scaleOutInRacks(w *world) {
	set := w.parse(fmt.Sprintf(packed, w.namespace))
	set.Spec.Template.Cliques = slices.DeleteFunc(set.Spec.Template.Cliques, func(c *v1alpha1.PodCliqueTemplateSpec) bool { return c.Name == "web" })
	set.Spec.Template.PodCliqueScalingGroupConfigs[0].Replicas = ptr.To[int32](1)
	w.must(w.client.Create(w.ctx, set), "creating the set")
	w.untilAvailable("s")
	others := bindings{}
	wantRacks := func(want ...string) {
		w.t.Helper()
		pods, racks := maps.Clone(others), map[string]string{}
		for i, rack := range want {
			unit := fmt.Sprintf("s-0-g-%d", i)
			pods[unit+"-leader"], pods[unit+"-worker"], racks[unit] = 1, 1, rack
		}
		w.untilBindings("the replicas are bound", pods)
		if got := w.racks(); !maps.Equal(got, racks) {
			w.t.Errorf("racks %v, want %v", got, racks)
		}
	}
	wantRacks("r1") // the tightest
	w.scale(groups, "s-0-g", 2)
	wantRacks("r1", "r0")
	saysOfSurplus := func(text string) {
		w.t.Helper()
		w.until("the PodGroup says "+text, podGroups, func(objects []*unstructured.Unstructured) bool {
			if len(objects) == 0 {
				return false
			}
			summary, _, _ := unstructured.NestedString(objects[0].Object, "status", "summary")
			return strings.Contains(summary, text)
		})
	}
	w.scale(groups, "s-0-g", 3) // a node is free in r0, and one in r2
	saysOfSurplus("more wait, TopologyUnavailable: s-0-g-2 needs 2 pods, and the room there is does not fit them in one rack")
	wantRacks("r1", "r0")
	before := w.running()

	w.untilCondition(sets, "s", v1alpha1.ConditionTopologyLevelsUnavailable, "False")
	w.deleteShared(topologies)
	saysOfSurplus(fmt.Sprintf("Topology %q, whose level", w.namespace))
	w.deleteShared(topologyBindings)
	w.untilCondition(sets, "s", v1alpha1.ConditionTopologyLevelsUnavailable, "Unknown")
	w.addToRack("r2", 2)
	rival := w.parse(oneNode)
	rival.Spec.Template.Cliques[0].Spec.PodSpec.NodeSelector[corev1.LabelHostname] = w.nodes[len(w.nodes)-1]
	w.must(w.client.Create(w.ctx, rival), "creating the rival")
	others["rival-0-web"] = 1
	w.untilAvailable("rival") // the scheduler has seen both nodes
	wantRacks("r1", "r0")
	w.createTopology()
	w.untilCondition(sets, "s", v1alpha1.ConditionTopologyLevelsUnavailable, "False")
	wantRacks("r1", "r0", "r2")
	w.undisturbed(before)
}
