// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// nodeTable stores data of the nodes between plans, by their position in the scheduler's snapshot. It is updated once
// per plan, for all classes; the generation of a NodeInfo shows whether a node has changed.
type nodeTable struct {
	nodes       []fwk.NodeInfo // of the current plan
	generations []int64        // a generation identifies one state of one node
	objects     []*corev1.Node
	all         []int32        // every position
	position    map[string]int // by name
	seen        bool           // nodes are up to date for the plan that begins
	layout      int            // incremented when the positions change; 0: no plan was made yet

	topologies map[string]*topology // by label key; created at first use
	images     map[string]int       // image name -> number of nodes that have it
	soft       int                  // nodes with a taint of effect PreferNoSchedule
	tainted    []bool               // by position: cordoned, or with any taint

	planned []plannedPods // and freed pods of the current plan, by position
	touched []int         // positions in planned that are or were not zero

	selectors selectorKeys
	reserved  reservedTables
}

// plannedPods are the pods that are planned on one node, and the running ones that are freed.
type plannedPods struct {
	pods   []*framework.PodInfo // in the order in which they were planned
	unlike int                  // pods that differ from the first one
	clone  fwk.NodeInfo         // the node with these pods; nil: nothing has asked for it

	gone    int32        // running pods that Snapshot.Free removed
	freed   []bool       // by pod of the node: whether it is one of these; nil: none ever was
	without fwk.NodeInfo // the node without these; nil: nothing has asked for it

	nominated []nominatedPod // for the node
	asked     bool           // nominated is known
}

// nominatedPod is a pod that is nominated for a node, and what it uses.
type nominatedPod struct {
	pod  *corev1.Pod
	uses reservations.Amount
}

// topology groups the nodes by the value of one label, or by the values of several. Nodes that lack one of them have no
// value.
type topology struct {
	key    string    // label keys, separated by commas
	value  []int32   // by position: index into names; -1: the node lacks the label
	names  []string  // values, separated by commas, in the order of the nodes
	nodes  [][]int32 // by value: positions
	number map[string]int32
	rank   []int32 // see ranks; nil: not asked for
	// repeats: two domains of several labels have the same value of the last one.
	repeats bool
}

// maxTopologies is how many topologies are kept for the next plan. Tenants choose their labels, and one of 5,000
// domains takes a MiB.
const maxTopologies = 64

// beginPlan calls update for the current plan, unless Classify has already done so with the same nodes.
func (t *nodeTable) beginPlan(nodes []fwk.NodeInfo) {
	if !t.seen || len(nodes) == 0 || len(nodes) != len(t.nodes) || &nodes[0] != &t.nodes[0] {
		t.updateNodes(nodes)
	}
	t.seen = false
}

// updateNodes processes the nodes of a new plan and drops the pods of the last one.
func (t *nodeTable) updateNodes(nodes []fwk.NodeInfo) {
	for _, i := range t.touched {
		p := &t.planned[i]
		clear(p.pods[:cap(p.pods)])
		*p = plannedPods{pods: p.pods[:0]}
	}
	t.touched = t.touched[:0]
	t.nodes = nodes
	if len(t.topologies) > maxTopologies {
		t.topologies = nil
	}
	if t.layout == 0 || len(nodes) != len(t.generations) {
		t.renumberNodes()
		return
	}
	for i, n := range nodes {
		generation := n.GetGeneration()
		if generation == t.generations[i] {
			continue
		}
		object := n.Node()
		if object.Name != t.objects[i].Name {
			t.renumberNodes()
			return
		}
		if old := t.objects[i]; old != object {
			if !maps.Equal(old.Labels, object.Labels) {
				t.topologies = nil
			}
			t.countNode(old, -1)
			t.countNode(object, 1)
			t.objects[i], t.tainted[i] = object, isTainted(object)
		}
		t.selectors.updateNode(object.Name, n)
		t.generations[i] = generation
	}
}

// renumberNodes starts anew after a node was added or removed.
func (t *nodeTable) renumberNodes() {
	n := len(t.nodes)
	t.layout, t.reserved = t.layout+1, nil
	t.generations, t.objects, t.planned = make([]int64, n), make([]*corev1.Node, n), make([]plannedPods, n)
	t.position, t.images, t.topologies, t.soft = make(map[string]int, n), map[string]int{}, nil, 0
	t.selectors, t.all, t.tainted = selectorKeys{}, make([]int32, n), make([]bool, n)
	for i, node := range t.nodes {
		t.generations[i], t.objects[i] = node.GetGeneration(), node.Node()
		t.position[node.Node().Name], t.all[i], t.tainted[i] = i, int32(i), isTainted(node.Node())
		t.countNode(node.Node(), 1)
		t.selectors.updateNode(node.Node().Name, node)
	}
}

// reservedFrom returns what is reserved on the nodes from the asker. nil: nothing is reserved.
func (t *nodeTable) reservedFrom(view *reservations.View, a reservations.Asker) *reservedTable {
	return t.reserved.tableOf(view, a, nodeStates{t.nodes, t.generations, t.position})
}

func isTainted(node *corev1.Node) bool { return node.Spec.Unschedulable || len(node.Spec.Taints) > 0 }

func (t *nodeTable) countNode(node *corev1.Node, delta int) {
	if hasSoftTaint(node) {
		t.soft += delta
	}
	for i := range node.Status.Images {
		for _, name := range node.Status.Images[i].Names {
			if t.images[name] += delta; t.images[name] == 0 {
				delete(t.images, name)
			}
		}
	}
}

// topologyOf returns the nodes by the values of a label, or of several whose keys are separated by commas. Neither keys
// nor values can contain a comma. The key "" stands for the name of the node.
func (t *nodeTable) topologyOf(key string) *topology {
	if found := t.topologies[key]; found != nil {
		return found
	}
	// Of several labels, the last one divides the domains of the others.
	last, outer := key, (*topology)(nil)
	if k := strings.LastIndexByte(key, ','); k > 0 {
		last, outer = key[k+1:], t.topologyOf(key[:k])
	}
	type domain struct {
		outer int32
		value string
	}
	top := &topology{key: key, value: make([]int32, len(t.objects)), number: map[string]int32{}}
	numbers, seen := map[domain]int32{}, map[string]bool{}
	for i, node := range t.objects {
		d := domain{}
		ok := false
		if d.value, ok = node.Labels[last]; key == "" {
			d.value, ok = node.Name, true
		}
		if outer != nil {
			d.outer = outer.value[i]
		}
		if !ok || d.outer < 0 {
			top.value[i] = -1
			continue
		}
		k, known := numbers[d]
		if !known {
			k = int32(len(top.names))
			name := d.value
			if outer != nil {
				name = outer.names[d.outer] + "," + name
				top.repeats, seen[d.value] = top.repeats || seen[d.value], true
			}
			numbers[d], top.number[name] = k, k
			top.names, top.nodes = append(top.names, name), append(top.nodes, nil)
		}
		top.value[i] = k
		top.nodes[k] = append(top.nodes[k], int32(i))
	}
	if t.topologies == nil {
		t.topologies = map[string]*topology{}
	}
	t.topologies[key] = top
	return top
}

// pushPod plans a pod on a node.
func (t *nodeTable) pushPod(i int, pod *framework.PodInfo) {
	p := &t.planned[i]
	if len(p.pods) == 0 {
		t.touched = append(t.touched, i)
	} else if pod != p.pods[0] {
		p.unlike++
	}
	p.pods = append(p.pods, pod)
	if p.clone != nil {
		p.clone.AddPodInfo(pod)
	}
}

// popPod takes the pod that was planned last off a node.
func (t *nodeTable) popPod(logger klog.Logger, i int) {
	p := &t.planned[i]
	last := len(p.pods) - 1
	pod := p.pods[last]
	if pod != p.pods[0] {
		p.unlike--
	}
	p.pods = p.pods[:last]
	if p.clone == nil {
		return
	}
	if err := p.clone.RemovePod(logger, pod.Pod); err != nil {
		logger.Error(err, "Failed to remove a planned pod from a cloned node", "node", t.objects[i].Name)
	}
}

// nodeWithPlanned returns a node with the pods planned on it.
func (t *nodeTable) nodeWithPlanned(i int) fwk.NodeInfo {
	p := &t.planned[i]
	if p.clone == nil && len(p.pods) > 0 {
		p.clone = t.currentNode(i).Snapshot()
		for _, pod := range p.pods {
			p.clone.AddPodInfo(pod)
		}
	}
	if p.clone != nil {
		return p.clone
	}
	return t.currentNode(i)
}

// currentNode returns a node without its freed pods, and without those that are planned on it.
func (t *nodeTable) currentNode(i int) fwk.NodeInfo {
	p := &t.planned[i]
	if p.gone == 0 {
		return t.nodes[i]
	}
	if p.without == nil {
		p.without = t.nodes[i].Snapshot()
		for k, pod := range t.nodes[i].GetPods() {
			if !p.freed[k] {
				continue
			}
			if err := p.without.RemovePod(klog.Background(), pod.GetPod()); err != nil {
				klog.Background().Error(err, "Failed to remove a freed pod from a cloned node", "node", t.objects[i].Name)
			}
		}
	}
	return p.without
}

// countFreed records that a running pod of a node was removed (1) or put back (-1). freed tells by pod of the node
// which ones are removed now. It belongs to the caller, and is read when something asks for the node.
func (t *nodeTable) countFreed(i int, delta int32, freed []bool) {
	p := &t.planned[i]
	if p.freed == nil {
		p.freed = freed
		t.touched = append(t.touched, i)
	}
	p.gone += delta
	p.clone, p.without = nil, nil
}

// imagesKeyOf returns a key that is equal for pods of which the same images are present on nodes: ImageLocality does
// not distinguish them.
func (t *nodeTable) imagesKeyOf(pod *corev1.Pod) string {
	var present []string
	add := func(name string) {
		if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
			name += ":latest"
		}
		if t.images[name] > 0 {
			present = append(present, name)
		}
	}
	for i := range pod.Spec.InitContainers {
		add(pod.Spec.InitContainers[i].Image)
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].Image)
	}
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			add(image.Reference)
		}
	}
	slices.Sort(present)
	return strings.Join(present, "\n")
}
