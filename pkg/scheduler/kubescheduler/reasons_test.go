// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// judgedNode is a node as a judge sees it who knows only the definitions of docs/events.md.
type judgedNode struct {
	gpus, cpus         int // in all
	usedGPUs, usedCPUs int
	pool               string
	closed             bool
}

// judgedLeaf is a leaf of like pods, all of which it needs.
type judgedLeaf struct {
	pods, gpus, cpus int
	pool             string // "": any
	apart            bool   // one pod of the leaf per node
}

// judgedGang needs some of its leaves; one of a single leaf has no sub-groups.
type judgedGang struct {
	leaves []judgedLeaf
	need   int
}

func (l judgedLeaf) matches(n judgedNode) bool { return l.pool == "" || l.pool == n.pool }

// choices returns all ways to take the leaves that the gang needs.
func (g judgedGang) choices() [][]judgedLeaf { return subsetsOf(g.leaves, g.need) }

// subsetsOf returns the subsets of n leaves.
func subsetsOf(leaves []judgedLeaf, n int) [][]judgedLeaf {
	if n == 0 {
		return [][]judgedLeaf{nil}
	}
	var out [][]judgedLeaf
	for i := range len(leaves) - n + 1 {
		for _, rest := range subsetsOf(leaves[i+1:], n-1) {
			out = append(out, append([]judgedLeaf{leaves[i]}, rest...))
		}
	}
	return out
}

// couldHold tries all ways to put the pods of the leaves on the nodes: as they are or empty, without or with the closed
// ones.
func couldHold(nodes []judgedNode, leaves []judgedLeaf, empty, open bool) bool {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		if empty {
			nodes[i].usedGPUs, nodes[i].usedCPUs = 0, 0
		}
	}
	var put func(leaf, pod, from int) bool
	put = func(leaf, pod, from int) bool {
		if leaf == len(leaves) {
			return true
		}
		l := leaves[leaf]
		if pod == l.pods {
			return put(leaf+1, 0, 0)
		}
		for i := from; i < len(nodes); i++ {
			n := &nodes[i]
			gpus, cpus := n.gpus-n.usedGPUs, n.cpus-n.usedCPUs
			if !l.matches(*n) || n.closed && !open || gpus < l.gpus || cpus < l.cpus {
				continue
			}
			n.usedGPUs, n.usedCPUs = n.usedGPUs+l.gpus, n.usedCPUs+l.cpus
			next := i
			if l.apart {
				next++
			}
			fits := put(leaf, pod+1, next)
			n.usedGPUs, n.usedCPUs = n.usedGPUs-l.gpus, n.usedCPUs-l.cpus
			if fits {
				return true
			}
		}
		return false
	}
	return put(0, 0, 0)
}

// freeFor returns what is free on the open nodes that a leaf of these may use, and the largest piece of GPUs.
func freeFor(nodes []judgedNode, leaves []judgedLeaf) (gpus, cpus, largest int) {
	for _, n := range nodes {
		if !n.closed && slices.ContainsFunc(leaves, func(l judgedLeaf) bool { return l.matches(n) }) {
			gpus, cpus, largest = gpus+n.gpus-n.usedGPUs, cpus+n.cpus-n.usedCPUs, max(largest, n.gpus-n.usedGPUs)
		}
	}
	return gpus, cpus, largest
}

// requestedBy returns what the leaves request.
func requestedBy(leaves []judgedLeaf) (gpus, cpus int) {
	for _, l := range leaves {
		gpus, cpus = gpus+l.pods*l.gpus, cpus+l.pods*l.cpus
	}
	return gpus, cpus
}

// short reports whether there are leaves of which every choice requests more GPUs, or more of either resource, than is
// free on the nodes that they may use.
func short(nodes []judgedNode, g judgedGang, either bool) bool {
	for n := 1; n <= len(g.leaves); n++ {
		for _, some := range subsetsOf(g.leaves, n) {
			freeGPUs, freeCPUs, _ := freeFor(nodes, some)
			leastGPUs, leastCPUs := math.MaxInt, math.MaxInt
			for _, chosen := range g.choices() {
				gpus, cpus := requestedBy(slices.DeleteFunc(chosen, func(l judgedLeaf) bool { return !slices.Contains(some, l) }))
				leastGPUs, leastCPUs = min(leastGPUs, gpus), min(leastCPUs, cpus)
			}
			if leastGPUs > freeGPUs || either && leastCPUs > freeCPUs {
				return true
			}
		}
	}
	return false
}

// judge returns the reason by the definitions and their order.
func judge(nodes []judgedNode, g judgedGang) v2alpha2.Reason {
	choices := g.choices()
	every := func(is func([]judgedLeaf) bool) bool {
		return !slices.ContainsFunc(choices, func(leaves []judgedLeaf) bool { return !is(leaves) })
	}
	switch {
	case every(func(leaves []judgedLeaf) bool {
		return slices.ContainsFunc(leaves, func(l judgedLeaf) bool {
			return !slices.ContainsFunc(nodes, func(n judgedNode) bool { return l.matches(n) && n.gpus > 0 })
		})
	}):
		return v2alpha2.ReasonNoNodeMatches
	case every(func(leaves []judgedLeaf) bool { return !couldHold(nodes, leaves, true, true) }):
		return v2alpha2.ReasonTooLarge
	case every(func(leaves []judgedLeaf) bool { return !couldHold(nodes, leaves, true, false) }),
		!every(func(leaves []judgedLeaf) bool { return !couldHold(nodes, leaves, false, true) }):
		return v2alpha2.ReasonNodesUnavailable
	case short(nodes, g, false):
		return v2alpha2.ReasonInsufficientGPUs
	case short(nodes, g, true):
		return v2alpha2.ReasonInsufficientResources
	}
	return v2alpha2.ReasonFragmented
}

// randomGang returns a gang of up to three leaves, and a pod of each.
func randomGang(r *rand.Rand) (judgedGang, []*corev1.Pod) {
	g := judgedGang{need: 1}
	if r.IntN(2) == 0 {
		g.leaves = make([]judgedLeaf, 2+r.IntN(2))
		g.need = len(g.leaves) - r.IntN(2)
	} else {
		g.leaves = make([]judgedLeaf, 1)
	}
	pods := make([]*corev1.Pod, len(g.leaves))
	for i := range g.leaves {
		name := fmt.Sprintf("leaf-%d", i)
		l := &g.leaves[i]
		*l = judgedLeaf{pods: 1 + r.IntN(4), gpus: 1 + r.IntN(5), cpus: 1 + r.IntN(8), apart: r.IntN(4) == 0}
		if len(g.leaves) > 1 {
			l.pods = 1 + r.IntN(3)
		}
		pod := classPod(name).GPUs(int64(l.gpus)).CPU(strconv.Itoa(l.cpus))
		if l.apart {
			pod.Label("app", name).ApartFrom(corev1.LabelHostname, "app", name)
		}
		if r.IntN(3) == 0 {
			l.pool = "a"
			pod.NodeSelector("pool", "a")
		}
		pods[i] = pod.Obj()
	}
	return g, pods
}

// problem returns the problem of the gang; the pods of leaf i are of class i.
func (g judgedGang) problem(t *testing.T) placement.Problem {
	t.Helper()
	root, groups := gang.Node{MinMember: ptr.To(int32(g.leaves[0].pods))}, []gang.Node(nil)
	p := placement.Problem{Pods: map[string][]placement.Pod{}}
	for i, l := range g.leaves {
		name := ""
		if len(g.leaves) > 1 {
			name = fmt.Sprintf("leaf-%d", i)
			groups = append(groups, gang.Node{Name: name, MinMember: ptr.To(int32(l.pods))})
			root = gang.Node{MinSubGroup: ptr.To(int32(g.need))}
		}
		for range l.pods {
			p.Pods[name] = append(p.Pods[name], placement.Pod{Class: i})
		}
	}
	var err error
	if p.Tree, err = gang.Build(root, groups); err != nil {
		t.Fatal(err)
	}
	return p
}

// asUnit returns the problem of a gang whose minimum runs, and that has the pods of p as a sub-group above it.
func asUnit(t *testing.T, p placement.Problem) placement.Problem {
	t.Helper()
	nodeOf := func(g *gang.Group, name, parent string) gang.Node {
		if g.IsLeaf() {
			return leafNode(name, parent, int32(g.Min()))
		}
		return gang.Node{Name: name, Parent: parent, MinSubGroup: ptr.To(int32(g.Min()))}
	}
	groups := []gang.Node{leafNode("runs", "", 1), nodeOf(p.Tree.Root(), "unit", "")}
	for _, g := range p.Tree.Groups() {
		groups = append(groups, nodeOf(g, g.Name(), "unit"))
	}
	pods := maps.Clone(p.Pods)
	pods["unit"] = p.Pods[""]
	delete(pods, "")
	return placement.Problem{Tree: buildTree(t, gang.Node{MinSubGroup: ptr.To(int32(1))}, groups...), Have: gang.Counts{"runs": 1}, Pods: pods}
}

// sums are the numbers of a gang with several leaves: the leaves, if not all, the amount that they request, the pods,
// and what is free or there in all.
var sums = regexp.MustCompile(`^the gang needs (?:for (.+) )?(\d+) (nvidia.com/gpu|cpu) for (\d+) pods?, (?:(\d+) are free|the nodes that they may use have (\d+) in all)`)

// contradicts compares the numbers of a message with those of the nodes. "": they are right, or there are none.
func (g judgedGang) contradicts(nodes []judgedNode, text string) string {
	m := sums.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	some := g.leaves
	if m[1] != "" {
		some = nil
		for _, name := range strings.Split(m[1], ", ") {
			i, err := strconv.Atoi(strings.TrimPrefix(name, "leaf-"))
			if err != nil {
				return "there is no " + name
			}
			some = append(some, g.leaves[i])
		}
	}
	ofResource := func(gpus, cpus int) int {
		if m[3] == "cpu" {
			return cpus
		}
		return gpus
	}
	least, pods := math.MaxInt, map[int]bool{}
	for _, chosen := range g.choices() {
		chosen = slices.DeleteFunc(chosen, func(l judgedLeaf) bool { return !slices.Contains(some, l) })
		n := 0
		for _, l := range chosen {
			n += l.pods
		}
		switch asked := ofResource(requestedBy(chosen)); {
		case asked < least:
			least, pods = asked, map[int]bool{n: true}
		case asked == least:
			pods[n] = true
		}
	}
	gpus, cpus, _ := freeFor(nodes, some)
	there := ofResource(gpus, cpus)
	if m[6] != "" {
		there = 0
		for _, n := range nodes {
			if slices.ContainsFunc(some, func(l judgedLeaf) bool { return l.matches(n) }) {
				there += ofResource(n.gpus, n.cpus)
			}
		}
	}
	said, _ := strconv.Atoi(m[4])
	if m[2] != strconv.Itoa(least) || !pods[said] || cmp.Or(m[5], m[6]) != strconv.Itoa(there) {
		return fmt.Sprintf("%d are requested by %v pods, and there are %d", least, slices.Sorted(maps.Keys(pods)), there)
	}
	return ""
}

// TestReasonsAreThoseOfTheirDefinition: on random small clusters the reason of a gang, or of a sub-group above a
// minimum, that does not fit is the one that docs/events.md defines, and the numbers of the message are those of the
// nodes. ROUNDS multiplies the number of clusters; run with -v for the table.
func TestReasonsAreThoseOfTheirDefinition(t *testing.T) {
	t.Parallel()
	repeats := 3000 * rounds.Number()
	c := newCluster(t)
	logger := klog.Background()
	numbers := map[v2alpha2.Reason]*regexp.Regexp{
		v2alpha2.ReasonInsufficientGPUs:      regexp.MustCompile(`^the gang needs (\d+) nvidia.com/gpu for (\d+) pods?, (\d+) are free`),
		v2alpha2.ReasonInsufficientResources: regexp.MustCompile(`^the gang needs (\d+) cpu for (\d+) pods?, (\d+) are free`),
		v2alpha2.ReasonFragmented:            regexp.MustCompile(`^the gang needs (\d+) nvidia.com/gpu on one node(?: for each of (\d+) pods)?; (\d+) are free, (?:at most (\d+) on one node|which is room for (\d+) pod)`),
	}
	seen, wrong := map[string]int{}, map[string]int{}
	for seed := range repeats {
		r := rand.New(rand.NewPCG(uint64(seed), 21))
		nodes := make([]judgedNode, 1+r.IntN(5))
		var objects []*corev1.Node
		var running []*corev1.Pod
		for i := range nodes {
			n := &nodes[i]
			n.gpus, n.cpus, n.pool = r.IntN(3)*4, 8+r.IntN(3)*8, []string{"a", "b"}[i%2]
			name := fmt.Sprintf("n%d", i)
			w := wrappers.MakeNode(name).GPUs(int64(n.gpus)).Capacity(corev1.ResourceCPU, strconv.Itoa(n.cpus)).Label("pool", n.pool)
			switch r.IntN(8) {
			case 0:
				w.Unschedulable()
				n.closed = true
			case 1:
				w.Taint("team", "x")
				n.closed = true
			}
			if full := r.IntN(3); full > 0 { // two of three are used, one of them entirely
				n.usedGPUs, n.usedCPUs = n.gpus, r.IntN(n.cpus+1)
				if full == 1 {
					n.usedGPUs = r.IntN(n.gpus + 1)
				}
				running = append(running, classPod("run-"+name).GPUs(int64(n.usedGPUs)).CPU(strconv.Itoa(n.usedCPUs)).Node(name).Obj())
			}
			objects = append(objects, w.Obj())
		}
		g, pods := randomGang(r)

		for _, o := range objects {
			c.sched.Cache.AddNode(logger, o)
		}
		for _, p := range running {
			if err := c.sched.Cache.AddPod(logger, p); err != nil {
				t.Fatal(err)
			}
		}
		c.refresh()
		problem := g.problem(t)
		w := c.world(pods...)
		plan, shortfall := placement.Minimum(problem, w, placement.Budget{})
		fits := slices.ContainsFunc(g.choices(), func(leaves []judgedLeaf) bool { return couldHold(nodes, leaves, false, false) })
		if fits != (shortfall == nil) {
			t.Fatalf("seed %d: a plan of %d pods, want one: %t", seed, len(plan), fits)
		}
		if shortfall != nil {
			got := podgroup.Explain(problem, w, shortfall)
			want := judge(nodes, g)
			kind := fmt.Sprintf("%d of %d leaves: %s", g.need, len(g.leaves), want)
			seen[kind]++
			if got.Reason != want {
				wrong[kind+" said as "+string(got.Reason)]++
				t.Errorf("seed %d: %s, want %s: %s\n%+v\n%+v", seed, got.Reason, want, got.Message, g, nodes)
			}
			if unit := podgroup.ExplainSurplus(asUnit(t, problem), placement.Problem{}, w); unit.Reason != want {
				wrong[kind+" said of a unit as "+string(unit.Reason)]++
				t.Errorf("seed %d: of a unit %s, want %s: %s\n%+v\n%+v", seed, unit.Reason, want, unit.Message, g, nodes)
			}
			if form := numbers[want]; form != nil && got.Reason == want && len(g.leaves) == 1 {
				l := g.leaves[0]
				gpus, cpus, largest := freeFor(nodes, g.leaves)
				free, asked := gpus, l.pods*l.gpus
				switch want {
				case v2alpha2.ReasonInsufficientResources:
					free, asked = cpus, l.pods*l.cpus
				case v2alpha2.ReasonFragmented:
					asked = l.gpus
				}
				m := form.FindStringSubmatch(got.Message)
				if m == nil || m[1] != strconv.Itoa(asked) || cmp.Or(m[2], "1") != strconv.Itoa(l.pods) || m[3] != strconv.Itoa(free) ||
					len(m) > 4 && m[4] != "" && m[4] != strconv.Itoa(largest) {
					t.Errorf("seed %d: %q, want %d asked by %d pods, %d free, %d on one node", seed, got.Message, asked, l.pods, free, largest)
				}
			}
		}
		if shortfall != nil && len(g.leaves) > 1 {
			got := podgroup.Explain(problem, w, shortfall)
			if why := g.contradicts(nodes, got.Message); why != "" {
				t.Errorf("seed %d: %q, but %s\n%+v\n%+v", seed, got.Message, why, g, nodes)
			}
			if m := sums.FindString(got.Message); m != "" {
				seen["numbers"]++
			}
		}
		for _, p := range running {
			if err := c.sched.Cache.RemovePod(logger, p); err != nil {
				t.Fatal(err)
			}
		}
		for _, o := range objects {
			if err := c.sched.Cache.RemoveNode(logger, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%s: %d", kind, seen[kind])
	}
	for _, kind := range slices.Sorted(maps.Keys(wrong)) {
		t.Logf("wrong: %s: %d", kind, wrong[kind])
	}
	if len(seen) < 18 {
		t.Errorf("only these reasons occurred: %v", seen)
	}
}

// TestAGangOfManyClasses: what requests the same is judged as one class if there are too many of them, beside what
// nodes have refused.
func TestAGangOfManyClasses(t *testing.T) {
	t.Parallel()
	const pods = 100
	for name, tc := range map[string]struct {
		free   int
		absent int // how many pods no node matches
		want   v2alpha2.Reason
		says   string
	}{
		"too little is free":      {7, 0, v2alpha2.ReasonInsufficientGPUs, "the gang needs 100 nvidia.com/gpu for 100 pods, 56 are free"},
		"no node matches one pod": {13, 1, v2alpha2.ReasonNoNodeMatches, "no node matches a pod of l99 (nodeSelector pool=none): 13 nodes: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.addRacks(0, []rack{{nodes: 13, free: tc.free}})
			var groups []gang.Node
			var classes []*corev1.Pod
			p := placement.Problem{Pods: map[string][]placement.Pod{}}
			for i := range pods {
				leaf := fmt.Sprintf("l%d", i)
				pod := classPod(leaf).GPUs(1)
				if i >= pods-tc.absent {
					pod.NodeSelector("pool", "none")
				}
				groups, classes, p.Pods[leaf] = append(groups, leafNode(leaf, "", 1)), append(classes, pod.Obj()), waiting(1, i)
			}
			p.Tree = buildTree(t, gang.Node{}, groups...)
			if got := explained(t, p, c.world(classes...)); got.Reason != tc.want || !strings.HasPrefix(got.Message, tc.says) {
				t.Errorf("%s: %s\nwant %s: %s", got.Reason, got.Message, tc.want, tc.says)
			}
		})
	}
}

// TestClosedNodesBesideOtherRules: of two sub-groups one is enough. Other rules keep the one out for which there is
// room; the other one lacks only that its node is opened.
func TestClosedNodesBesideOtherRules(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gpus int64 // of the node that is cordoned
		want v2alpha2.Reason
		says string
	}{
		"it would fit there": {8, v2alpha2.ReasonNodesUnavailable, "1 node cordoned (shut; 8 nvidia.com/gpu, 8 free): uncordon it; the gang: 0 of the 1 sub-groups it needs can be placed; "},
		"it would not":       {2, v2alpha2.ReasonFragmented, "the gang: 0 of the 1 sub-groups it needs can be placed; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, wrappers.MakeNode("open").GPUs(8).Label("pool", "a").Label(corev1.LabelHostname, "open").Obj(),
				wrappers.MakeNode("shut").GPUs(tc.gpus).Label("pool", "b").Unschedulable().Obj(),
				wrappers.MakeNode("full").GPUs(8).Label("pool", "b").Obj())
			c.bind(classPod("y").Obj(), "y", "open")
			c.bind(classPod("z").GPUs(8).Obj(), "z", "full")
			p := placement.Problem{Tree: buildTree(t, gang.Node{MinSubGroup: new(int32(1))}, leafNode("a", "", 2), leafNode("b", "", 1)),
				Pods: map[string][]placement.Pod{"a": waiting(2, 0), "b": waiting(1, 1)}}
			got := explained(t, p, c.world(classPod("a").GPUs(1).ApartFrom(corev1.LabelHostname, "app", "y").Obj(),
				classPod("b").GPUs(4).NodeSelector("pool", "b").Obj()))
			if got.Reason != tc.want || !strings.HasPrefix(got.Message, tc.says) {
				t.Errorf("%s: %s\nwant %s: %s", got.Reason, got.Message, tc.want, tc.says)
			}
		})
	}
}

// TestALeafThatLacksAnotherResource: the gang can do without either sub-group, and that which has GPUs enough lacks
// CPU.
func TestALeafThatLacksAnotherResource(t *testing.T) {
	t.Parallel()
	node := func(name, pool, cpu string) *corev1.Node {
		return wrappers.MakeNode(name).GPUs(8).Capacity(corev1.ResourceCPU, cpu).Label("pool", pool).Obj()
	}
	c := newCluster(t, node("n0", "a", "6"), node("n1", "b", "64"))
	c.bind(classPod("y").CPU("3").Obj(), "y", "n0")
	c.bind(classPod("z").GPUs(7).Obj(), "z", "n1")
	p := placement.Problem{Tree: buildTree(t, gang.Node{MinSubGroup: new(int32(1))}, leafNode("a", "", 2), leafNode("b", "", 2)),
		Pods: map[string][]placement.Pod{"a": waiting(2, 0), "b": waiting(2, 1)}}
	got := explained(t, p, c.world(classPod("a").GPUs(1).CPU("3").NodeSelector("pool", "a").Obj(),
		classPod("b").GPUs(1).CPU("1").NodeSelector("pool", "b").Obj()))
	if want := "a needs 6 cpu for 2 pods, 3 are free; "; got.Reason != v2alpha2.ReasonFragmented || !strings.HasPrefix(got.Message, want) {
		t.Errorf("%s: %s\nwant Fragmented: %s", got.Reason, got.Message, want)
	}
}

// TestImaginedNodes: all nodes are listed if all are asked for.
func TestImaginedNodes(t *testing.T) {
	t.Parallel()
	v := newRacks(t, 0, []rack{{20, 20, 0}}, 8).Imagine([]int{0}, false, false)
	if got := len(v.Nodes(0, math.MaxInt)); got != 20 {
		t.Errorf("%d nodes, want 20", got)
	}
	if got := v.Nodes(0, 19); got != nil {
		t.Errorf("%v: more than are asked for", got)
	}
}
