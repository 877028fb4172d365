// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
)

// imagined is the Snapshot with its nodes as they are or empty, without or with the closed ones, as far as amounts
// tell: see podgroup.Imagined. Pods that are placed in it are not planned in the Snapshot, whose areas it shares.
type imagined struct {
	*Snapshot
	empty, open bool
	area        placement.Area        // of all classes
	among       []int32               // its nodes
	names       []corev1.ResourceName // that the classes request; the number of pods comes first
	columns     []int                 // of usage, by name
	classes     []*imaginedClass
	served      []servedNodes
	most        int // see MostPods

	orders []*imaginedOrder // by number of a class; nil: not asked
	left   []int64          // by node and name; nil: no pod was ever placed
	pods   []imaginedPod
}

type imaginedPod struct {
	class *imaginedClass
	node  int32
}

type imaginedClass struct {
	*class
	uses     []nodeUse
	requests []int64     // by name
	slots    []int32     // by index in imagined.among: how many pods the node takes if nothing is placed
	apart    []*topology // of which each domain takes one pod
	used     [][]bool    // by topology and value: a pod is there
	capacity placement.Capacity
}

// imaginedOrder are the nodes that take pods of a class in an area if nothing is placed, those that take the fewest
// first.
type imaginedOrder struct {
	class *imaginedClass
	nodes []int32
	from  int // all nodes before this one refuse the class
}

// servedNodes are the nodes that certain classes may use, and no others: what they have in all, and the most on one of
// them.
type servedNodes struct {
	classes      uint64 // bits by index in imagined.classes
	sum, largest []int64
}

// Imagine implements podgroup.Capacities.
func (w *Snapshot) Imagine(classes []int, empty, open bool) podgroup.Imagined {
	_, area := w.classAt(classes[0])
	v := &imagined{Snapshot: w, empty: empty, open: open, area: area, among: w.areas[area].nodes, classes: make([]*imaginedClass, len(classes))}
	v.names = append([]corev1.ResourceName{corev1.ResourcePods}, w.resources()...)
	for _, name := range v.names {
		v.columns = append(v.columns, w.usage().columnOf(name))
	}
	for k, index := range classes {
		c, _ := w.classAt(index)
		x := &imaginedClass{
			class: c, uses: w.usesOf(c), requests: v.Uses(index), slots: make([]int32, len(v.among)), apart: w.exclusiveTopologies(c),
		}
		if c.known.demand.alone {
			x.apart = append(x.apart, w.nodes.topologyOf("")) // each node by itself
		}
		for _, top := range x.apart {
			x.used = append(x.used, make([]bool, len(top.names)))
		}
		v.classes[k] = x
	}
	v.countNodes()
	for _, c := range v.classes {
		c.capacity = v.capacityOn(c, v.among)
	}
	return v
}

// countNodes determines what the nodes have for the classes.
func (v *imagined) countNodes() {
	row, smallest := make([]int64, len(v.names)), slices.Clone(v.classes[0].requests)
	for _, c := range v.classes {
		for r, request := range c.requests {
			smallest[r] = min(smallest[r], request)
		}
	}
	for at, i := range v.among {
		serves, slots := uint64(0), 0
		for k, c := range v.classes {
			use := &c.uses[i]
			if !use.matches || use.closed && !v.open || use.taken && !v.empty {
				continue
			}
			if v.empty {
				slots = v.emptySlots(c.class, i)
			} else {
				slots = v.freeSlots(c.class, i)
			}
			c.slots[at] = int32(slots)
			serves |= 1 << k
		}
		if serves == 0 {
			continue
		}
		v.readAmounts(i, row)
		served := v.servedBy(serves)
		for r, amount := range row {
			served.sum[r] += amount
			served.largest[r] = max(served.largest[r], amount)
		}
		if len(v.classes) > 1 {
			slots = slotsIn(row, smallest)
		}
		v.most = min(v.most+slots, math.MaxInt32)
	}
}

// slotsIn returns for how many pods the amounts suffice.
func slotsIn(amounts, requests []int64) int {
	slots := int64(math.MaxInt32)
	for r, request := range requests {
		if request > 0 {
			slots = min(slots, amounts[r]/request)
		}
	}
	return int(slots)
}

// servedBy returns the nodes that serve these classes.
func (v *imagined) servedBy(classes uint64) *servedNodes {
	k := slices.IndexFunc(v.served, func(s servedNodes) bool { return s.classes == classes })
	if k < 0 {
		k = len(v.served)
		v.served = append(v.served, servedNodes{classes, make([]int64, len(v.names)), make([]int64, len(v.names))})
	}
	return &v.served[k]
}

// readAmounts sets what a node has of each resource if no pod is placed, beside what is reserved for other gangs.
func (v *imagined) readAmounts(i int32, row []int64) {
	has, used := v.amountsOn(int(i))
	for r, column := range v.columns {
		if row[r] = has[column]; !v.empty {
			row[r] = max(0, row[r]-used[column])
		}
	}
	if on := v.reservedOn(int(i)); on != nil && !v.empty {
		row[0] = max(0, row[0]-on.others.Pods)
		for r, name := range v.names[1:] {
			row[r+1] = max(0, row[r+1]-on.others.Resources[name])
		}
	}
}

// Resources implements podgroup.Imagined.
func (v *imagined) Resources() []corev1.ResourceName { return v.names }

// Room implements podgroup.Imagined.
func (v *imagined) Room(classes []int) (sum, largest []int64) {
	bits := uint64(0)
	for _, index := range classes {
		bits |= 1 << slices.Index(v.classes, v.classOf(index))
	}
	sum, largest = make([]int64, len(v.names)), make([]int64, len(v.names))
	for _, s := range v.served {
		for r := range sum {
			if s.classes&bits != 0 {
				sum[r], largest[r] = sum[r]+s.sum[r], max(largest[r], s.largest[r])
			}
		}
	}
	return sum, largest
}

// MostPods implements podgroup.Imagined.
func (v *imagined) MostPods() int { return v.most }

// AreApart implements podgroup.Capacities.
func (w *Snapshot) AreApart(index int) bool {
	c, _ := w.classAt(index)
	w.findNodesOf(c)
	return c.known.demand.alone || len(w.exclusiveTopologies(c)) > 0
}

// classOf returns the class of a number.
func (v *imagined) classOf(number int) *imaginedClass {
	c, _ := v.classAt(number)
	return v.classes[slices.IndexFunc(v.classes, func(x *imaginedClass) bool { return x.class == c })]
}

// Kind implements placement.World. No class has domains.
func (v *imagined) Kind(int) placement.Kind { return placement.Independent }

// Uses implements placement.World. The number of pods comes first.
func (v *imagined) Uses(number int) []int64 {
	pods := int64(0)
	if c, _ := v.classAt(number); c.known.demand.pods {
		pods = 1
	}
	return append([]int64{pods}, v.Snapshot.Uses(number)...)
}

// Capacity implements placement.World.
func (v *imagined) Capacity(number int) placement.Capacity {
	c := v.classOf(number)
	if _, area := v.classAt(number); area != v.area {
		return v.capacityOn(c, v.areas[area].nodes)
	}
	return c.capacity
}

// capacityOn returns the capacity of some nodes for a class.
func (v *imagined) capacityOn(c *imaginedClass, nodes []int32) (out placement.Capacity) {
	out.Pods, _ = v.sumSlots(c.class, nodes, func(_ *class, i int32) int { return v.slotsOn(c, i) })
	for _, i := range nodes {
		if v.slotsOn(c, i) > 0 {
			out.Nodes++
		}
	}
	return out
}

// slotsOn returns how many pods of the class a node takes if nothing is placed.
func (v *imagined) slotsOn(c *imaginedClass, i int32) int {
	if len(v.among) == len(v.nodes.all) {
		return int(c.slots[i])
	}
	at, found := slices.BinarySearch(v.among, i)
	if !found {
		return 0
	}
	return int(c.slots[at])
}

// Rooms implements placement.World.
func (v *imagined) Rooms(number int, level string, within placement.Area) []int {
	c := v.classOf(number)
	return v.roomsOf(number, level, within, func(nodes []int32) int { return v.capacityOn(c, nodes).Pods })
}

// FreeIn implements placement.World.
func (v *imagined) FreeIn(level string, within placement.Area) [][]int64 {
	takesAny := func(i int32) bool {
		return slices.ContainsFunc(v.classes, func(c *imaginedClass) bool { return v.slotsOn(c, i) > 0 })
	}
	return v.sumIn(level, within, len(v.names), takesAny, v.readAmounts)
}

// orderOf returns the imaginedOrder of a number of a class.
func (v *imagined) orderOf(number int) *imaginedOrder {
	if more := number + 1 - len(v.orders); more > 0 {
		v.orders = append(v.orders, make([]*imaginedOrder, more)...)
	}
	o := v.orders[number]
	if o == nil {
		_, area := v.classAt(number)
		c := v.classOf(number)
		o = &imaginedOrder{class: c, nodes: make([]int32, 0, len(v.areas[area].nodes))}
		for _, i := range v.areas[area].nodes {
			if v.slotsOn(c, i) > 0 {
				o.nodes = append(o.nodes, i)
			}
		}
		fewest := func(a, b int32) int { return cmp.Compare(v.slotsOn(c, a), v.slotsOn(c, b)) }
		if !slices.IsSortedFunc(o.nodes, fewest) { // like nodes are
			slices.SortStableFunc(o.nodes, fewest)
		}
		v.orders[number] = o
	}
	return o
}

// Nodes implements placement.World.
func (v *imagined) Nodes(number, most int) []string {
	order := v.orderOf(number).nodes
	if len(order) > most {
		return nil
	}
	names := make([]string, len(order))
	for k, i := range order {
		names[k] = "=" + v.nodes.objects[i].Name
	}
	return names
}

// Place implements placement.World.
func (v *imagined) Place(number int, domain string) (string, bool) {
	o := v.orderOf(number)
	if name, isNode := strings.CutPrefix(domain, "="); isNode {
		o = &imaginedOrder{class: o.class, nodes: []int32{int32(v.nodes.position[name])}}
	}
	for ; o.from < len(o.nodes); o.from++ {
		if i := o.nodes[o.from]; v.takesPod(o.class, i) {
			v.addPod(o.class, i, 1)
			v.pods = append(v.pods, imaginedPod{o.class, i})
			return v.nodes.objects[i].Name, true
		}
	}
	return "", false
}

// Undo implements placement.World.
func (v *imagined) Undo(n int) {
	for range n {
		last := v.pods[len(v.pods)-1]
		v.pods = v.pods[:len(v.pods)-1]
		v.addPod(last.class, last.node, -1)
	}
	for _, o := range v.orders {
		if o != nil {
			o.from = 0
		}
	}
}

// leftOn returns what the placed pods leave on a node.
func (v *imagined) leftOn(i int32) []int64 {
	n := len(v.names)
	if v.left == nil {
		v.left = make([]int64, n*len(v.nodes.nodes))
		for i := range v.nodes.all {
			v.readAmounts(int32(i), v.left[i*n:][:n])
		}
	}
	return v.left[int(i)*n:][:n]
}

func (v *imagined) takesPod(c *imaginedClass, i int32) bool {
	for r, left := range v.leftOn(i) {
		if c.requests[r] > left {
			return false
		}
	}
	for k, top := range c.apart {
		if d := top.value[i]; d >= 0 && c.used[k][d] {
			return false
		}
	}
	return true
}

// addPod adds (1) or removes (-1) a pod.
func (v *imagined) addPod(c *imaginedClass, i int32, sign int64) {
	left := v.leftOn(i)
	for r, request := range c.requests {
		left[r] -= sign * request
	}
	for k, top := range c.apart {
		if d := top.value[i]; d >= 0 {
			c.used[k][d] = sign > 0
		}
	}
}
