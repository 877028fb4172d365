// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/placement"
)

// fakeNode is a node of the fake cluster: free GPUs, a label, the domains and a taint.
type fakeNode struct {
	name, label, rack, zone string
	gpus                    int
	tainted                 bool // also for the pods that run there: they tolerate it
	volumes                 int  // that may be attached; 0: any number
}

// domain returns the name of the node's domain of a level.
func (n *fakeNode) domain(level string) string {
	if level == "zone" {
		return n.zone
	}
	return n.rack
}

// fakeArea is a domain of a level, or what is of it in another area.
type fakeArea struct {
	level, name string
	within      placement.Area
}

// fakeClass is what pods of one class request.
type fakeClass struct {
	gpus      int
	label     string         // "": any node
	spread    bool           // all pods of the class, and those that are like them, are spread over racks with a skew of 1
	near      bool           // a pod that is like those of the class runs in the rack
	volume    bool           // each pod has a volume, which the numbers do not know of
	tolerates bool           // the taint
	area      placement.Area // where its pods must be; 0: anywhere
}

// admits reports whether the node is open to pods of the class, whatever runs on it.
func (n *fakeNode) admits(c fakeClass) bool {
	return (c.label == "" || n.label == c.label) && (!n.tainted || c.tolerates)
}

// running is a pod that runs, by its ID.
type running struct {
	node, gpus int
	like       bool // it counts for the spread and the affinity of classes
	volume     bool
}

// cluster is a fake World: GPUs, one label per node, hard spread over racks, and the levels "rack" and "zone". Nodes
// with the least free GPUs come first.
type cluster struct {
	t       testing.TB
	nodes   []fakeNode
	classes []fakeClass
	pods    []running
	gone    []bool
	placed  [][2]int                      // class, node
	areas   []fakeArea                    // placement.Area 1 is the first
	areasOf map[fakeArea][]placement.Area // by level and area, without a name
	byName  map[string]int
	plans   int // plans, times classes
	asked   int // calls of Place
	steps   int // questions, and pods that were freed or restored
	unreal  int // pods by which Capacity exceeds what fits
	expired func() bool
}

func newCluster(t testing.TB, nodes []fakeNode, classes []fakeClass, pods []running) *cluster {
	w := &cluster{t: t, nodes: slices.Clone(nodes), classes: slices.Clone(classes), pods: pods, gone: make([]bool, len(pods))}
	for i := range w.nodes {
		w.nodes[i].name = fmt.Sprintf("node-%d", i)
	}
	for _, p := range pods {
		w.nodes[p.node].gpus -= p.gpus
	}
	return w
}

func (w *cluster) takes(class, n int) bool {
	c, at := w.classes[class], w.nodes[n]
	if at.gpus < c.gpus || !at.admits(c) || !w.isIn(at, c.area) || c.near && w.likePods()[at.rack] == 0 {
		return false
	}
	if c.volume && at.volumes > 0 && w.volumesOn(n) >= at.volumes {
		return false
	}
	if !c.spread {
		return true
	}
	byRack := w.likePods()
	for _, other := range w.nodes {
		if c.label == "" || other.label == c.label {
			byRack[other.rack] += 0
		}
	}
	for _, p := range w.placed {
		if p[0] == class {
			byRack[w.nodes[p[1]].rack]++
		}
	}
	fewest := len(w.placed) + len(w.pods)
	for _, n := range byRack {
		fewest = min(fewest, n)
	}
	return byRack[at.rack]+1-fewest <= 1
}

// likePods returns how many pods run that are like those of the classes, by rack.
func (w *cluster) likePods() map[string]int {
	byRack := map[string]int{}
	for id, p := range w.pods {
		if p.like && !w.gone[id] {
			byRack[w.nodes[p.node].rack]++
		}
	}
	return byRack
}

func (w *cluster) volumesOn(n int) int {
	count := 0
	for id, p := range w.pods {
		if p.volume && p.node == n && !w.gone[id] {
			count++
		}
	}
	for _, p := range w.placed {
		if p[1] == n && w.classes[p[0]].volume {
			count++
		}
	}
	return count
}

func (w *cluster) Place(class int, domain string) (string, bool) {
	w.asked++
	w.steps++
	if w.expired != nil && w.expired() {
		return "", false
	}
	best := -1
	for i, n := range w.nodes {
		if (domain == "" || domain == "="+n.name) && w.takes(class, i) && (best < 0 || n.gpus < w.nodes[best].gpus) {
			best = i
		}
	}
	if best < 0 {
		return "", false
	}
	w.nodes[best].gpus -= w.classes[class].gpus
	w.placed = append(w.placed, [2]int{class, best})
	return w.nodes[best].name, true
}

func (w *cluster) Undo(n int) {
	for ; n > 0; n-- {
		last := w.placed[len(w.placed)-1]
		w.placed = w.placed[:len(w.placed)-1]
		w.nodes[last[1]].gpus += w.classes[last[0]].gpus
	}
}

func (w *cluster) Kind(class int) placement.Kind {
	if w.classes[class].spread || w.classes[class].near {
		return placement.Dependent
	}
	return placement.Independent
}

func (w *cluster) isIn(n fakeNode, area placement.Area) bool {
	if area == 0 {
		return true
	}
	a := w.areas[area-1]
	return n.domain(a.level) == a.name && w.isIn(n, a.within)
}

func (w *cluster) Areas(level string, within placement.Area) []placement.Area {
	if within > 0 && w.areas[within-1].level == level { // a domain has itself as its only one
		return []placement.Area{within}
	}
	key := fakeArea{level: level, within: within}
	if list, known := w.areasOf[key]; known {
		return list
	}
	var areas []placement.Area
	seen := map[string]bool{}
	for _, n := range w.nodes {
		if name := n.domain(level); w.isIn(n, within) && !seen[name] {
			seen[name] = true
			w.areas = append(w.areas, fakeArea{level, name, within})
			areas = append(areas, placement.Area(len(w.areas)))
		}
	}
	if w.areasOf == nil {
		w.areasOf = map[fakeArea][]placement.Area{}
	}
	w.areasOf[key] = areas
	return areas
}

func (w *cluster) Rooms(class int, level string, within placement.Area) []int {
	c := w.classes[class]
	var rooms []int
	for _, area := range w.Areas(level, within) {
		room := 0
		for _, n := range w.nodes {
			if w.isIn(n, area) && (c.label == "" || n.label == c.label) {
				room += n.gpus / c.gpus
			}
		}
		rooms = append(rooms, room)
	}
	return rooms
}

func (w *cluster) Uses(class int) []int64 { return []int64{int64(w.classes[class].gpus)} }

func (w *cluster) FreeIn(level string, within placement.Area) [][]int64 {
	var free [][]int64
	for _, area := range w.Areas(level, within) {
		sum := int64(0)
		for _, n := range w.nodes {
			if w.isIn(n, area) {
				sum += int64(n.gpus)
			}
		}
		free = append(free, []int64{sum})
	}
	return free
}

func (w *cluster) AreaOf(level string, within placement.Area, node string) (placement.Area, bool) {
	if w.byName == nil {
		w.byName = map[string]int{}
		for i, n := range w.nodes {
			w.byName[n.name] = i
		}
	}
	if i, known := w.byName[node]; known {
		for _, area := range w.Areas(level, within) {
			if w.isIn(w.nodes[i], area) {
				return area, true
			}
		}
	}
	return 0, false
}

func (w *cluster) HasNode(name string) bool {
	return slices.ContainsFunc(w.nodes, func(n fakeNode) bool { return n.name == name })
}

func (w *cluster) AreaAround(level string, within, inner placement.Area) (placement.Area, bool) {
	around := placement.Area(0)
	for _, n := range w.nodes {
		if !w.isIn(n, inner) {
			continue
		}
		area, ok := w.AreaOf(level, within, n.name)
		if !ok || around > 0 && area != around {
			return 0, false
		}
		around = area
	}
	return around, around > 0
}

func (w *cluster) Within(class int, area placement.Area) int {
	if area == 0 {
		return class
	}
	c := w.classes[class]
	c.area = area
	w.classes = append(w.classes, c)
	return len(w.classes) - 1
}

func (w *cluster) Domains(int, []int) []string { return nil }
func (w *cluster) Open(int, string) bool       { return true }

func (w *cluster) Nodes(_, most int) []string {
	if len(w.nodes) > most {
		return nil
	}
	var names []string
	for _, n := range w.nodes {
		names = append(names, "="+n.name)
	}
	return names
}

func (w *cluster) Capacity(class int) placement.Capacity {
	w.plans++ // once per class and plan
	var c placement.Capacity
	k := w.classes[class]
	for _, n := range w.nodes {
		if n.admits(k) && w.isIn(n, k.area) && n.gpus >= k.gpus {
			c.Nodes++
			c.Pods += n.gpus / k.gpus
		}
	}
	c.Pods += w.unreal
	return c
}

func (w *cluster) Weight(class int) int64 { return int64(w.classes[class].gpus) }

func (w *cluster) Explain(int, string) *placement.Refusal {
	return &placement.Refusal{Reasons: map[string]int{"Insufficient nvidia.com/gpu": len(w.nodes)}}
}

func (w *cluster) Free(pods []int) {
	if len(w.placed) > 0 {
		w.t.Fatal("Free is called while pods of a plan are placed")
	}
	w.steps += len(pods)
	for _, id := range pods {
		if w.gone[id] {
			w.t.Fatalf("pod %d is freed twice", id)
		}
		w.gone[id] = true
		w.nodes[w.pods[id].node].gpus += w.pods[id].gpus
	}
}

func (w *cluster) Restore(pods []int) {
	if len(w.placed) > 0 && len(pods) > 0 {
		w.t.Fatal("Restore is called while pods of a plan are placed")
	}
	w.steps += len(pods)
	for _, id := range pods {
		if !w.gone[id] {
			w.t.Fatalf("pod %d is restored, and was not freed", id)
		}
		w.gone[id] = false
		n := w.pods[id].node
		if w.nodes[n].gpus -= w.pods[id].gpus; w.nodes[n].gpus < 0 {
			w.t.Fatal("a running pod does not fit on its own node")
		}
	}
}

func (w *cluster) CountNodes() int          { return len(w.nodes) }
func (w *cluster) NodeOf(pod int) int       { return w.pods[pod].node }
func (w *cluster) NodeName(node int) string { return w.nodes[node].name }
func (w *cluster) Amount(class int) int64   { return int64(w.classes[class].gpus) }

func (w *cluster) Slots(class, node int, ended, back []int) int {
	w.steps++
	n, k := w.nodes[node], w.classes[class]
	if !n.admits(k) {
		return 0
	}
	gpus := n.gpus
	for _, p := range w.placed {
		if p[1] == node {
			gpus += w.classes[p[0]].gpus
		}
	}
	for _, id := range ended {
		if w.gone[id] || w.pods[id].node != node {
			w.t.Fatalf("pod %d has ended, or is elsewhere", id)
		}
		gpus += w.pods[id].gpus
	}
	for _, id := range back {
		if !w.gone[id] || w.pods[id].node != node {
			w.t.Fatalf("pod %d has not ended, or is elsewhere", id)
		}
		gpus -= w.pods[id].gpus
	}
	return gpus/k.gpus + w.unreal
}

// freedPods returns the pods that are gone, ascending.
func (w *cluster) freedPods() []int {
	var ids []int
	for id, gone := range w.gone {
		if gone {
			ids = append(ids, id)
		}
	}
	return ids
}

// check fails the test unless the World holds exactly the decision.
func (w *cluster) check(d *Decision, workloads []Workload) {
	w.t.Helper()
	var victims []int
	plan := 0
	if d != nil {
		for _, v := range d.Victims {
			victims = append(victims, v.Pods...)
			if workloads[v.Workload].MinimumProtected && v.Rung > SurplusSubGroup {
				w.t.Errorf("%s of %s is a victim, whose minimum is protected", fmt.Sprint(v.Pods), workloads[v.Workload].Name)
			}
		}
		plan = len(d.Plan)
	}
	slices.Sort(victims)
	if !slices.Equal(victims, w.freedPods()) || plan != len(w.placed) {
		w.t.Errorf("the World has lost pods %v and has %d placed, the decision is %v with %d", w.freedPods(), len(w.placed), victims, plan)
	}
	for i, n := range w.nodes {
		if n.gpus < 0 {
			w.t.Errorf("node %d has %d GPUs free", i, n.gpus)
		}
	}
}
