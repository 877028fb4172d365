// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/placement"
)

// fakeNode is a node of the fake cluster: free GPUs, a label, the rack and a taint.
type fakeNode struct {
	name, label, rack string
	gpus              int
	tainted           bool // also for the pods that run there: they tolerate it
}

// fakeClass is what pods of one class request.
type fakeClass struct {
	gpus      int
	label     string         // "": any node
	spread    bool           // all pods of the class are spread over racks with a skew of 1
	tolerates bool           // the taint
	area      placement.Area // where its pods must be; 0: anywhere
}

// admits reports whether the node is open to pods of the class, whatever runs on it.
func (n *fakeNode) admits(c fakeClass) bool {
	return (c.label == "" || n.label == c.label) && (!n.tainted || c.tolerates)
}

// running is a pod that runs, by its ID.
type running struct{ node, gpus int }

// cluster is a fake World: GPUs, one label per node, hard spread over racks, and the topology level "rack". Nodes with the least free
// GPUs come first.
type cluster struct {
	t       testing.TB
	nodes   []fakeNode
	classes []fakeClass
	pods    []running
	gone    []bool
	placed  [][2]int // class, node
	plans   int      // plans, times classes
	asked   int      // calls of Place
	unreal  int      // pods by which Capacity exceeds what fits
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
	if at.gpus < c.gpus || !at.admits(c) || !w.isIn(at, c.area) {
		return false
	}
	if !c.spread {
		return true
	}
	byRack := map[string]int{}
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
	fewest := len(w.placed)
	for _, n := range byRack {
		fewest = min(fewest, n)
	}
	return byRack[at.rack]+1-fewest <= 1
}

func (w *cluster) Place(class int, domain string) (string, bool) {
	w.asked++
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
	if w.classes[class].spread {
		return placement.Dependent
	}
	return placement.Independent
}

// racks returns the racks in the order of their first nodes: areas 1, 2, ...
func (w *cluster) racks() []string {
	var racks []string
	for _, n := range w.nodes {
		if !slices.Contains(racks, n.rack) {
			racks = append(racks, n.rack)
		}
	}
	return racks
}

func (w *cluster) isIn(n fakeNode, area placement.Area) bool {
	return area == 0 || n.rack == w.racks()[area-1]
}

func (w *cluster) Areas(_ string, within placement.Area) []placement.Area {
	if within > 0 { // a rack has itself as its only domain
		return []placement.Area{within}
	}
	var areas []placement.Area
	for i := range w.racks() {
		areas = append(areas, placement.Area(i+1))
	}
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
	for _, area := range w.Areas(level, within) {
		if slices.ContainsFunc(w.nodes, func(n fakeNode) bool { return n.name == node && w.isIn(n, area) }) {
			return area, true
		}
	}
	return 0, false
}

func (w *cluster) HasNode(name string) bool {
	return slices.ContainsFunc(w.nodes, func(n fakeNode) bool { return n.name == name })
}

func (w *cluster) AreaAround(_ string, _, inner placement.Area) (placement.Area, bool) {
	return inner, inner > 0
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
	for _, id := range pods {
		if w.gone[id] {
			w.t.Fatalf("pod %d is freed twice", id)
		}
		w.gone[id] = true
		w.nodes[w.pods[id].node].gpus += w.pods[id].gpus
	}
}

func (w *cluster) Restore(pods []int) bool {
	fits := true
	for _, id := range pods {
		if !w.gone[id] {
			w.t.Fatalf("pod %d is restored, and was not freed", id)
		}
		w.gone[id] = false
		w.nodes[w.pods[id].node].gpus -= w.pods[id].gpus
		fits = fits && w.nodes[w.pods[id].node].gpus >= 0
	}
	if fits {
		return true
	}
	if len(w.placed) == 0 {
		w.t.Fatal("a running pod does not fit on its own node")
	}
	for _, id := range pods {
		w.gone[id] = true
		w.nodes[w.pods[id].node].gpus += w.pods[id].gpus
	}
	return false
}

func (w *cluster) IsApart(pods []int) bool {
	return !slices.ContainsFunc(w.placed, func(p [2]int) bool {
		return slices.ContainsFunc(pods, func(id int) bool { return w.pods[id].node == p[1] })
	})
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
