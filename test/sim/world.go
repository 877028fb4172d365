// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/podlife"
)

func compareKeys(x, y types.NamespacedName) int { return strings.Compare(x.String(), y.String()) }

// world is the state of the nodes for the planner: a node accepts a pod if it is reachable, has the labels that the pod
// selects, and has room for its requests. It implements placement.World and podgroup.Capacities.
type world struct {
	placement.NoTopology

	nodes   []*worldNode // by name
	classes []*corev1.Pod
	placed  []taken
	pods    map[types.UID]bool // existing pods
	running []*corev1.Pod      // those on nodes, by ID
}

type worldNode struct {
	node        *corev1.Node
	total, free map[corev1.ResourceName]int64
	barred      bool // see UseOnly
}

type taken struct {
	node  *worldNode
	class int
}

// newWorld returns the nodes with the pods that are bound to them or about to be bound.
func newWorld(api *API, bindings []binding, classes []*corev1.Pod) *world {
	w := &world{classes: classes, pods: map[types.UID]bool{}}
	byName := map[string]*worldNode{}
	for _, node := range all[*corev1.Node](api) {
		n := &worldNode{node: node, total: amounts(node.Status.Allocatable), free: amounts(node.Status.Allocatable)}
		byName[node.Name] = n
		w.nodes = append(w.nodes, n)
	}
	take := func(pod *corev1.Pod, node string) bool {
		n := byName[node]
		if n == nil || podlife.Over(pod) {
			return false
		}
		n.add(requests(pod), -1)
		return true
	}
	for _, pod := range all[*corev1.Pod](api) {
		w.pods[pod.UID] = true
		if take(pod, pod.Spec.NodeName) {
			w.running = append(w.running, pod)
		}
	}
	for _, b := range bindings {
		take(b.pod, b.node)
	}
	return w
}

// amountOf is gangs.Options.Amount.
func amountOf(pod *corev1.Pod) reservations.Amount {
	a := reservations.Amount{Pods: 1, Resources: requests(pod)}
	delete(a.Resources, corev1.ResourcePods)
	return a
}

// subtractReserved subtracts what is reserved from the pods of the work. Pods that are still on their nodes occupy
// their room themselves.
func (w *world) subtractReserved(reserved *reservations.View, work *gangs.Work) {
	asker := work.Asker()
	for _, n := range w.nodes {
		for _, x := range reserved.On(n.node.Name) {
			if x.Restricts(asker) {
				rest := x.Rest(func(uid types.UID) bool { return w.pods[uid] })
				n.add(rest.Resources, -1)
				n.free[corev1.ResourcePods] -= rest.Pods
			}
		}
	}
}

// VisitPods implements gangs.PodsOnNodes.
func (w *world) VisitPods(visit func(id int, pod *corev1.Pod)) {
	for id, pod := range w.running {
		visit(id, pod)
	}
}

// ExtendedAmounts implements gangs.PodsOnNodes.
func (w *world) ExtendedAmounts() func(id int) int64 {
	return func(id int) int64 { return requests(w.running[id])[resourceOf(w.running[id])] }
}

// Free implements backfill.World.
func (w *world) Free(pods []int) { w.addPods(pods, 1) }

// Restore implements backfill.World.
func (w *world) Restore(pods []int) { w.addPods(pods, -1) }

func (w *world) addPods(pods []int, sign int64) {
	for _, id := range pods {
		w.nodes[w.NodeOf(id)].add(requests(w.running[id]), sign)
	}
}

// NodeOf implements backfill.World.
func (w *world) NodeOf(pod int) int {
	return slices.IndexFunc(w.nodes, func(n *worldNode) bool { return n.node.Name == w.running[pod].Spec.NodeName })
}

// NodeName implements backfill.World.
func (w *world) NodeName(node int) string { return w.nodes[node].node.Name }

// UseOnly implements backfill.World.
func (w *world) UseOnly(nodes []string) {
	for _, n := range w.nodes {
		n.barred = nodes != nil && !slices.Contains(nodes, n.node.Name)
	}
}

// amounts returns quantities as numbers, in millicores for CPU.
func amounts(list corev1.ResourceList) map[corev1.ResourceName]int64 {
	m := make(map[corev1.ResourceName]int64, len(list))
	for name, quantity := range list {
		m[name] = quantity.Value()
		if name == corev1.ResourceCPU {
			m[name] = quantity.MilliValue()
		}
	}
	return m
}

// requests returns the requests of the containers of a pod, and one pod. What a container only limits it requests, too.
func requests(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	sum := map[corev1.ResourceName]int64{corev1.ResourcePods: 1}
	for _, c := range pod.Spec.Containers {
		of := amounts(c.Resources.Limits)
		maps.Copy(of, amounts(c.Resources.Requests))
		for name, n := range of {
			sum[name] += n
		}
	}
	return sum
}

func (n *worldNode) add(request map[corev1.ResourceName]int64, sign int64) {
	for name, v := range request {
		n.free[name] += sign * v
	}
}

// matches reports whether the node would accept the pod if it were empty enough.
func (n *worldNode) matches(pod *corev1.Pod) bool {
	return !n.barred && !n.node.Spec.Unschedulable && !workload.UnreachableNode(n.node) &&
		labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(n.node.Labels))
}

// room returns how many pods with these requests fit into the free room of the node.
func (n *worldNode) room(request map[corev1.ResourceName]int64) int { return n.fit(n.free, request) }

// limits reports whether the node has a limited amount of a resource, or none of it.
func (n *worldNode) limits(name corev1.ResourceName) bool {
	_, listed := n.total[name]
	return listed || name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourcePods
}

// fit returns how many pods with these requests fit into an amount of the node's resources. A resource that a node does
// not list is unlimited if all nodes have it (CPU, memory, pods), and absent otherwise.
func (n *worldNode) fit(amount, request map[corev1.ResourceName]int64) int {
	pods := int64(math.MaxInt32)
	for name, v := range request {
		if v == 0 {
			continue
		}
		if !n.limits(name) {
			continue
		}
		pods = min(pods, max(0, amount[name])/v)
	}
	return int(pods)
}

// Place implements placement.World: it chooses the node with the least sufficient room, by name among equals.
func (w *world) Place(class int, _ string) (string, bool) {
	pod := w.classes[class]
	request := requests(pod)
	var best *worldNode
	for _, n := range w.nodes {
		if n.matches(pod) && n.room(request) > 0 && (best == nil || n.room(request) < best.room(request)) {
			best = n
		}
	}
	if best == nil {
		return "", false
	}
	best.add(request, -1)
	w.placed = append(w.placed, taken{best, class})
	return best.node.Name, true
}

// Undo implements placement.World.
func (w *world) Undo(n int) {
	for ; n > 0; n-- {
		last := w.placed[len(w.placed)-1]
		w.placed = w.placed[:len(w.placed)-1]
		last.node.add(requests(w.classes[last.class]), 1)
	}
}

// Capacity implements placement.World.
func (w *world) Capacity(class int) placement.Capacity {
	c := placement.Capacity{}
	request := requests(w.classes[class])
	for _, n := range w.nodes {
		if room := n.room(request); n.matches(w.classes[class]) && room > 0 {
			c.Nodes++
			c.Pods += room
		}
	}
	return c
}

// Explain implements placement.World.
func (w *world) Explain(class int, _ string) *placement.Refusal {
	r := &placement.Refusal{Reasons: map[string]int{}}
	pod := w.classes[class]
	for _, n := range w.nodes {
		switch {
		case !n.matches(pod):
			r.Reasons["node(s) didn't match Pod's node affinity/selector"]++
		case n.room(requests(pod)) == 0:
			r.Reasons["Insufficient "+string(resourceOf(pod))]++
		}
	}
	return r
}

// Kind implements placement.World.
func (w *world) Kind(int) placement.Kind { return placement.Independent }

// Domains implements placement.World.
func (w *world) Domains(int, []int) []string { return nil }

// Open implements placement.World.
func (w *world) Open(int, string) bool { return true }

// Nodes implements placement.World.
func (w *world) Nodes(int, int) []string { return nil }

// Weight implements placement.World.
func (w *world) Weight(class int) int64 {
	pod := w.classes[class]
	return requests(pod)[resourceOf(pod)]
}

// resourceOf returns the dominant resource of a pod: the extended resource of which it requests most, else CPU.
func resourceOf(pod *corev1.Pod) corev1.ResourceName {
	request, most := requests(pod), corev1.ResourceCPU
	for _, name := range slices.Sorted(maps.Keys(request)) {
		if strings.Contains(string(name), "/") && (most == corev1.ResourceCPU || request[name] > request[most]) {
			most = name
		}
	}
	return most
}

// ResourceCapacity implements podgroup.Capacities.
func (w *world) ResourceCapacity(class int) podgroup.ResourceCapacity {
	pod := w.classes[class]
	c := podgroup.ResourceCapacity{Resource: resourceOf(pod)}
	c.PerPod = requests(pod)[c.Resource]
	for _, n := range w.nodes {
		if n.matches(pod) {
			c.Nodes++
			c.Free += max(0, n.free[c.Resource])
			c.Total += n.total[c.Resource]
			c.Largest = max(c.Largest, n.total[c.Resource])
			c.Slots += n.fit(n.total, requests(pod))
			c.SlotsNow += n.fit(n.free, requests(pod))
			c.LargestFree = max(c.LargestFree, n.free[c.Resource])
		}
	}
	return c
}

// HeldByOthers implements podgroup.Capacities. The simulation has no preemption.
func (w *world) HeldByOthers([]int, corev1.ResourceName) podgroup.Held { return podgroup.Held{} }

// AreaName implements podgroup.Capacities. No level has a domain.
func (w *world) AreaName(placement.Area) (key, value string) { return "", "" }

// LevelNodes implements podgroup.Capacities. No gang of the simulation requires a level.
func (w *world) LevelNodes(int, string) (inside, outside int) { return 0, 0 }

// AreApart implements podgroup.Capacities.
func (w *world) AreApart(int) bool { return false }

// Imagine implements podgroup.Capacities.
func (w *world) Imagine(_ []int, empty, _ bool) podgroup.Imagined {
	v := &imaginedWorld{world: &world{classes: w.classes}}
	requested := map[corev1.ResourceName]int64{}
	for _, pod := range w.classes {
		maps.Copy(requested, requests(pod))
	}
	for _, n := range w.nodes {
		has := n.free
		if empty {
			has = n.total
		}
		v.nodes = append(v.nodes, &worldNode{node: n.node, total: n.total, free: maps.Clone(has)})
		maps.DeleteFunc(requested, func(name corev1.ResourceName, _ int64) bool { return !n.limits(name) })
	}
	v.names = slices.Sorted(maps.Keys(requested))
	return v
}

// imaginedWorld is a world whose nodes are as they are or empty; the simulation does not say which ones are closed.
type imaginedWorld struct {
	*world
	names []corev1.ResourceName // that classes request, and all nodes limit
}

// Resources implements podgroup.Imagined.
func (v *imaginedWorld) Resources() []corev1.ResourceName { return v.names }

// Uses implements placement.World.
func (v *imaginedWorld) Uses(class int) []int64 {
	request, uses := requests(v.classes[class]), make([]int64, len(v.names))
	for i, name := range v.names {
		uses[i] = request[name]
	}
	return uses
}

// Room implements podgroup.Imagined.
func (v *imaginedWorld) Room(classes []int) (sum, largest []int64) {
	sum, largest = make([]int64, len(v.names)), make([]int64, len(v.names))
	for _, n := range v.nodes {
		if !slices.ContainsFunc(classes, func(class int) bool { return n.matches(v.classes[class]) }) {
			continue
		}
		for i, name := range v.names {
			sum[i] += max(0, n.free[name])
			largest[i] = max(largest[i], n.free[name])
		}
	}
	return sum, largest
}

// MostPods implements podgroup.Imagined. It does not bound the pods.
func (v *imaginedWorld) MostPods() int { return math.MaxInt32 }
