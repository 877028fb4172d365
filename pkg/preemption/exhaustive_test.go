// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// family is one kind of random instances.
type family struct {
	name      string
	like      bool // all pods of the preemptor are of one class without spread: the planner is exact
	labels    bool
	taints    bool // on some nodes, which some classes tolerate
	spread    bool
	budgets   bool
	protected bool // some gangs are semi-preemptible
	trees     bool // gangs have sub-groups
	levels    bool // groups of the preemptor require a rack, at most one on each path
	nested    bool // and the preemptor as a whole a zone, of two racks
	affinity  bool // pods of the preemptor have to be near victims
	counted   bool // victims count for the spread of the preemptor
	volumes   bool // nodes take few volumes
	wide      bool // one gang has up to 8 sub-groups
	mixed     bool // each workload has another priority
	grace     bool // victims take up to an hour to end
	undivided bool // some groups end as a whole
	seeds     int
	equal     float64 // share of the decisions that must be as cheap as the cheapest
}

var families = []family{
	{name: "plain pods", like: true, seeds: 1500, equal: 0.95},
	{name: "gangs", like: true, trees: true, seeds: 1500, equal: 0.95},
	{name: "protected minimums", like: true, trees: true, protected: true, seeds: 1500, equal: 0.95},
	{name: "budgets", like: true, trees: true, budgets: true, seeds: 1500, equal: 0.95},
	{name: "levels", like: true, trees: true, levels: true, protected: true, seeds: 1500, equal: 0.98},
	{name: "levels in a level", like: true, trees: true, levels: true, nested: true, protected: true, seeds: 1500, equal: 0.98},
	{name: "selectors", trees: true, labels: true, protected: true, budgets: true, seeds: 1500, equal: 0.95},
	{name: "taints", trees: true, taints: true, protected: true, budgets: true, seeds: 1500, equal: 0.95},
	{name: "taints and spread", trees: true, labels: true, taints: true, spread: true, seeds: 1500, equal: 0.95},
	{name: "affinity to victims", trees: true, affinity: true, protected: true, seeds: 1000, equal: 0.95},
	{name: "spread that counts victims", trees: true, labels: true, spread: true, counted: true, seeds: 1000, equal: 0.95},
	{name: "volumes", trees: true, volumes: true, protected: true, seeds: 1000, equal: 0.95},
	{name: "wide trees", like: true, trees: true, wide: true, protected: true, seeds: 300, equal: 0.95},
	{name: "mixed priorities", like: true, trees: true, mixed: true, protected: true, seeds: 1000, equal: 0.95},
	{name: "grace periods", like: true, trees: true, grace: true, seeds: 1000, equal: 0.95},
	{name: "ends as a whole", like: true, trees: true, undivided: true, protected: true, seeds: 1000, equal: 0.95},
	{name: "spread", trees: true, labels: true, spread: true, protected: true, seeds: 1500, equal: 0.95},
}

// instance is a random small cluster that is full, and a gang that waits.
type instance struct {
	in      Input
	nodes   []fakeNode
	classes []fakeClass
	pods    []running
}

func (i *instance) world(t testing.TB) *cluster { return newCluster(t, i.nodes, i.classes, i.pods) }

func randomInstance(r *rand.Rand, f family) *instance {
	i := &instance{}
	nodes, racks := 2+r.IntN(3), 2
	if f.levels {
		nodes, racks = nodes+1, 3
	}
	if f.nested {
		racks = 4
	}
	for range nodes {
		gpus, rack := 1+r.IntN(8), r.IntN(racks)
		n := fakeNode{gpus: gpus, rack: fmt.Sprintf("rack-%d", rack), zone: fmt.Sprintf("zone-%d", rack/2)}
		if f.labels && r.IntN(2) == 0 {
			n.label = "x"
		}
		n.tainted = f.taints && r.IntN(2) == 0
		if f.volumes {
			n.volumes = 1 + r.IntN(3)
		}
		i.nodes = append(i.nodes, n)
	}
	free := make([]int, len(i.nodes))
	for n := range i.nodes {
		free[n] = i.nodes[n].gpus
	}
	count := 2 + r.IntN(4)
	if f.wide {
		count = 3
	}
	for k := range count {
		w := Workload{Name: fmt.Sprintf("w%d", k), Priority: int32(10 * r.IntN(3))}
		if f.mixed {
			w.Priority = int32(100*r.IntN(5) + k)
		}
		leaves := []string{""}
		if f.wide && k == 0 {
			w.Tree, leaves = wideTree(r)
		} else if f.trees && r.IntN(4) > 0 {
			w.Tree, leaves = randomTree(r)
			w.MinimumProtected = f.protected && r.IntN(3) == 0
			if f.undivided {
				w.Undivided = map[string]bool{}
				for _, g := range w.Tree.Groups() {
					w.Undivided[g.Name()] = r.IntN(3) == 0
				}
			}
		}
		pods := 1
		if w.Tree != nil {
			pods = 1 + r.IntN(5)
		}
		if f.wide && k == 0 {
			pods = len(leaves)
		}
		size := 1 + r.IntN(4)
		for p := range pods {
			n := r.IntN(len(free))
			if free[n] < size {
				continue
			}
			free[n] -= size
			pod := Pod{ID: len(i.pods), Leaf: leaves[p%len(leaves)], Amount: int64(size), Running: int64(r.IntN(100))}
			if f.budgets && k%2 == 0 {
				pod.Budgets = []int{0}
			}
			if f.grace {
				pod.Grace = []int64{0, 30, 60, 300, 3600}[r.IntN(5)]
			}
			run := running{node: n, gpus: size}
			if f.affinity || f.counted {
				run.like = r.IntN(3) == 0
			}
			run.volume = f.volumes && r.IntN(2) == 0
			i.pods = append(i.pods, run)
			w.Pods = append(w.Pods, pod)
		}
		if len(w.Pods) > 0 {
			i.in.Workloads = append(i.in.Workloads, w)
		}
	}
	i.in.Allowed = []int{r.IntN(3)}
	classes := 1
	if !f.like {
		classes = 1 + r.IntN(2)
	}
	for range classes {
		c := fakeClass{gpus: 1 + r.IntN(4)}
		if f.labels && r.IntN(3) == 0 {
			c.label = "x"
		}
		c.tolerates = f.taints && r.IntN(2) == 0
		c.spread = f.spread && r.IntN(2) == 0
		c.near = f.affinity && r.IntN(2) == 0
		c.volume = f.volumes && r.IntN(2) == 0
		i.classes = append(i.classes, c)
	}
	tree, leaves := randomTree(r)
	p := placement.Problem{Tree: tree, Pods: map[string][]placement.Pod{}}
	for _, l := range leaves {
		for k := range tree.Group(l).Min() + r.IntN(2) {
			p.Pods[l] = append(p.Pods[l], placement.Pod{ID: fmt.Sprintf("%s-%d", l, k), Class: r.IntN(classes)})
		}
	}
	if f.levels {
		p.Required = map[string]string{}
		if requireRacks(r, tree.Root(), p.Required); f.nested && p.Required[""] == "" {
			p.Required[""] = "zone"
		}
	}
	i.in.Problem = p
	return i
}

// requireRacks lets a group, or groups below it, require a rack.
func requireRacks(r *rand.Rand, g *gang.Group, required map[string]string) {
	if r.IntN(3) == 0 || g.IsLeaf() && r.IntN(3) > 0 {
		required[g.Name()] = "rack"
		return
	}
	for _, child := range g.Children() {
		requireRacks(r, child, required)
	}
}

// randomTree returns one of the shapes that PodGroups have: a leaf, k of n leaves, k of n pairs of leader and workers.
func randomTree(r *rand.Rand) (tree *gang.Tree, leaves []string) {
	var groups []gang.Node
	root := gang.Node{}
	add := func(name, parent string) {
		groups = append(groups, gang.Node{Name: name, Parent: parent, MinMember: new(int32(1 + r.IntN(2)))})
		leaves = append(leaves, name)
	}
	switch r.IntN(3) {
	case 0:
		root.MinMember = new(int32(1 + r.IntN(3)))
		leaves = []string{""}
	case 1:
		n := 2 + r.IntN(2)
		root.MinSubGroup = new(int32(1 + r.IntN(n)))
		for k := range n {
			add(fmt.Sprintf("leaf%d", k), "")
		}
	default:
		root.MinSubGroup = new(int32(1))
		for k := range 2 {
			name := fmt.Sprintf("pair%d", k)
			groups = append(groups, gang.Node{Name: name, MinSubGroup: new(int32(1 + r.IntN(2)))})
			add(name+"-a", name)
			add(name+"-b", name)
		}
	}
	tree, err := gang.Build(root, groups)
	if err != nil {
		panic(err)
	}
	return tree, leaves
}

// wideTree returns k of up to 8 leaves with one pod each, of which some are spare.
func wideTree(r *rand.Rand) (tree *gang.Tree, leaves []string) {
	n := 5 + r.IntN(4)
	root := gang.Node{MinSubGroup: new(int32(n - 1 - r.IntN(3)))}
	var groups []gang.Node
	for k := range n {
		leaves = append(leaves, fmt.Sprintf("leaf%d", k))
		groups = append(groups, gang.Node{Name: leaves[k], MinMember: new(int32(1))})
	}
	tree, err := gang.Build(root, groups)
	if err != nil {
		panic(err)
	}
	return tree, leaves
}

// cheapest returns the cheapest cost of all sets of victims with which a plan exists, written from docs/decisions, G21
// and G22. ok is false if there is none.
func cheapest(t testing.TB, i *instance) (best Cost, ok bool) {
	losses := make([][][]int, len(i.in.Workloads))
	for k := range i.in.Workloads {
		losses[k] = lossesOf(&i.in.Workloads[k])
	}
	needed := int64(0)
	for _, class := range i.classes {
		needed = max(needed, int64(class.gpus*i.in.Problem.Tree.Root().MinPods()))
	}
	choice := make([]int, len(losses))
	var visit func(k int)
	visit = func(k int) {
		if k < len(losses) {
			for choice[k] = range losses[k] {
				visit(k + 1)
			}
			return
		}
		c := Cost{Priority: math.MinInt32}
		var gone []int
		budgets := 0
		for k, n := range choice {
			w := &i.in.Workloads[k]
			for _, pod := range losses[k][n] {
				p := w.Pods[pod]
				gone = append(gone, p.ID)
				c.Amount += p.Amount
				c.Running += p.Running
				switch {
				case p.Grace > 300:
					c.Grace = max(c.Grace, 2)
				case p.Grace > 30:
					c.Grace = max(c.Grace, 1)
				}
				c.Priority = max(c.Priority, w.Priority)
				budgets += len(p.Budgets)
			}
			if len(losses[k][n]) > 0 {
				c.Names = append(c.Names, w.Name)
				if len(losses[k][n]) == len(w.Pods) {
					c.Ended++
				}
			}
		}
		c.Pods = len(gone)
		for n := 2 * needed; c.Ended > 0 && c.Amount > n; n *= 2 {
			c.Excess++
		}
		c.Violations = max(0, budgets-i.in.Allowed[0])
		if ok && c.Compare(best) >= 0 {
			return
		}
		if i.fits(t, gone) {
			best, ok = c, true
		}
	}
	visit(0)
	return best, ok
}

// lossesOf returns all sets of pods that the owner of a workload may lose.
func lossesOf(w *Workload) [][]int {
	var losses [][]int
	for set := range 1 << len(w.Pods) {
		var lost []int
		left := gang.Counts{}
		before := gang.Counts{}
		for pod, p := range w.Pods {
			before[p.Leaf]++
			if set&(1<<pod) != 0 {
				lost = append(lost, pod)
			} else {
				left[p.Leaf]++
			}
		}
		switch {
		case len(lost) == 0:
		case len(lost) == len(w.Pods):
			if w.MinimumProtected {
				continue
			}
		case w.Tree == nil || !w.Tree.Satisfied(left):
			continue
		default:
			broken := false
			for _, g := range w.Tree.Groups() {
				pods, had := podsIn(g, left), podsIn(g, before)
				broken = broken || w.Undivided[g.Name()] && pods > 0 && pods < had
				switch {
				case g.Satisfied(before):
					broken = broken || pods > 0 && !g.Satisfied(left)
				case g.Parent().Satisfied(before): // what is left of a sub-group ends together
					broken = broken || pods > 0 && pods < had
				}
			}
			if broken {
				continue
			}
		}
		losses = append(losses, lost)
	}
	return losses
}

func podsIn(g *gang.Group, c gang.Counts) int {
	n := 0
	if g.IsLeaf() {
		n = c[g.Name()]
	}
	for _, child := range g.Children() {
		n += podsIn(child, c)
	}
	return n
}

// fits reports whether the preemptor fits if the pods are gone: by the planner, and with levels by an exhaustive
// search.
func (i *instance) fits(t testing.TB, gone []int) bool {
	if i.in.Problem.Required != nil {
		return slotsAreEnough(i, gone)
	}
	world := i.world(t)
	world.Free(gone)
	_, short := placement.Minimum(i.in.Problem, world, placement.Budget{})
	return short == nil
}

// slotsAreEnough reports without the planner whether pods of one class fit if the pods are gone: all choices of
// children and all racks for each group that requires one are tried, in each zone if one is required.
func slotsAreEnough(i *instance, gone []int) bool {
	if i.in.Problem.Required[""] != "zone" {
		return slotsInZoneAreEnough(i, gone, "")
	}
	return slices.ContainsFunc(i.nodes, func(n fakeNode) bool { return slotsInZoneAreEnough(i, gone, n.zone) })
}

// slotsInZoneAreEnough tries the racks of one zone, "": of all.
func slotsInZoneAreEnough(i *instance, gone []int, zone string) bool {
	free := make([]int, len(i.nodes))
	for n := range i.nodes {
		free[n] = i.nodes[n].gpus
	}
	for id, p := range i.pods {
		if !slices.Contains(gone, id) {
			free[p.node] -= p.gpus
		}
	}
	slots := map[string]int{} // by rack
	for n := range free {
		if zone == "" || i.nodes[n].zone == zone {
			slots[i.nodes[n].rack] += free[n] / i.classes[0].gpus
		}
	}
	anywhere := 0 // pods that need no rack
	type place struct {
		group *gang.Group
		rack  string // "": anywhere, or one that is still to be chosen
	}
	// try tries all ways to place the groups.
	var try func(rest []place) bool
	try = func(rest []place) bool {
		if len(rest) == 0 {
			sum := 0
			for _, n := range slots {
				sum += n
			}
			return anywhere <= sum
		}
		at, rest := rest[0], rest[1:]
		g := at.group
		switch {
		case at.rack == "" && i.in.Problem.Required[g.Name()] == "rack":
			for rack := range maps.Clone(slots) {
				if try(append([]place{{g, rack}}, rest...)) {
					return true
				}
			}
			return false
		case g.IsLeaf() && at.rack == "":
			anywhere += g.Min()
			defer func() { anywhere -= g.Min() }()
			return try(rest)
		case g.IsLeaf():
			if slots[at.rack] < g.Min() {
				return false
			}
			slots[at.rack] -= g.Min()
			defer func() { slots[at.rack] += g.Min() }()
			return try(rest)
		}
		children := g.Children()
		for set := range 1 << len(children) {
			if bits.OnesCount(uint(set)) != g.Min() {
				continue
			}
			next := slices.Clone(rest)
			for k, child := range children {
				if set&(1<<k) != 0 {
					next = append(next, place{child, at.rack})
				}
			}
			if try(next) {
				return true
			}
		}
		return false
	}
	return try([]place{{group: i.in.Problem.Tree.Root()}})
}

// TestVictimsAgainstExhaustiveSearch compares decisions with all sets of victims that docs/decisions allow.
func TestVictimsAgainstExhaustiveSearch(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			decided, equal, missed := 0, 0, 0
			for seed := range f.seeds {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(len(f.name))))
				i := randomInstance(r, f)
				best, exists := cheapest(t, i)
				w := i.world(t)
				d, result := FindVictims(i.in, w, Budget{})
				w.check(d, i.in.Workloads)
				if d == nil {
					if exists {
						missed++
						if f.like {
							t.Errorf("seed %d: result %v, although victims %v are sufficient", seed, result, best)
						}
					} else if result == Decided {
						t.Errorf("seed %d: decided without a decision", seed)
					}
					continue
				}
				if !exists {
					t.Errorf("seed %d: decision %+v, although no allowed set of victims is sufficient", seed, d)
					continue
				}
				decided++
				checkAllowed(t, seed, i, d)
				checkMinimal(t, seed, i, d)
				checkLevels(t, seed, i, d)
				if f.like && !slotsAreEnough(i, w.freedPods()) {
					t.Errorf("seed %d: the room is not sufficient with %v gone", seed, w.freedPods())
				}
				switch c := d.Cost.Compare(best); {
				case c < 0:
					t.Errorf("seed %d: cost %+v is less than the cheapest %+v", seed, d.Cost, best)
				case c == 0:
					equal++
				}
			}
			t.Logf("%s: %d of %d have a decision, %.1f %% of them the cheapest; missed %d", f.name, decided, f.seeds, 100*float64(equal)/float64(decided), missed)
			if decided < f.seeds/10 || float64(equal) < f.equal*float64(decided) || float64(missed) > 0.005*float64(decided) {
				t.Errorf("%d decisions, %d the cheapest, %d missed", decided, equal, missed)
			}
		})
	}
}

// checkAllowed fails the test unless each workload loses a set that it may lose.
func checkAllowed(t *testing.T, seed int, i *instance, d *Decision) {
	t.Helper()
	for _, v := range d.Victims {
		w := &i.in.Workloads[v.Workload]
		if !slices.ContainsFunc(lossesOf(w), func(lost []int) bool {
			ids := []int{}
			for _, pod := range lost {
				ids = append(ids, w.Pods[pod].ID)
			}
			return slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(v.Pods)))
		}) {
			t.Errorf("seed %d: %s may not lose pods %v of %+v", seed, w.Name, v.Pods, w.Pods)
		}
	}
}

// checkLevels fails the test unless the plan has the pods of each group that requires a level in one domain of it.
func checkLevels(t *testing.T, seed int, i *instance, d *Decision) {
	t.Helper()
	domains := map[string]string{}
	for _, pl := range d.Plan {
		n := 0
		if _, err := fmt.Sscanf(pl.Node, "node-%d", &n); err != nil {
			t.Fatal(err)
		}
		for g := i.in.Problem.Tree.Group(pl.Leaf); g != nil; g = g.Parent() {
			level := i.in.Problem.Required[g.Name()]
			if level == "" {
				continue
			}
			domain := i.nodes[n].domain(level)
			if other, planned := domains[g.Name()]; planned && other != domain {
				t.Errorf("seed %d: pods of %q are in %s and %s: %+v", seed, g.Name(), other, domain, d.Plan)
			}
			domains[g.Name()] = domain
		}
	}
}

// checkMinimal fails the test if the gang could be placed with less: each workload with any smaller loss, or none.
func checkMinimal(t *testing.T, seed int, i *instance, d *Decision) {
	t.Helper()
	for n, v := range d.Victims {
		var others []int
		for k, other := range d.Victims {
			if k != n {
				others = append(others, other.Pods...)
			}
		}
		w := &i.in.Workloads[v.Workload]
		for _, lost := range lossesOf(w) {
			var ids []int
			for _, pod := range lost {
				ids = append(ids, w.Pods[pod].ID)
			}
			if len(ids) >= len(v.Pods) || slices.ContainsFunc(ids, func(id int) bool { return !slices.Contains(v.Pods, id) }) {
				continue
			}
			world := i.world(t)
			world.Free(append(slices.Clone(others), ids...))
			if _, short := placement.Minimum(i.in.Problem, world, placement.Budget{}); short == nil {
				t.Errorf("seed %d: %s loses pods %v, and %v are sufficient", seed, w.Name, v.Pods, ids)
				return
			}
		}
	}
}
