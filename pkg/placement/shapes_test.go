// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/shapes"
)

// The levels of a Topology with the labels of all shapes.
const (
	blockLevel = "block"
	rackLevel  = "block,rack"
	hostLevel  = "block,rack,host"
)

// running is a gang of a stream.
type running struct {
	shapes.Gang
	tree                *gang.Tree
	required, preferred map[string]string
	alike               bool             // all pods are of one class, and one required level at most lies on a path
	waiting             map[string]int   // by leaf: pods that wait
	later               map[string]int   // by leaf: pods that do not exist yet
	bound               map[string][]int // by leaf: indexes of nodes
	torn                map[string]bool  // groups whose pods a label has divided
}

func newRunning(t testing.TB, g shapes.Gang) *running {
	t.Helper()
	r := &running{
		Gang: g, required: map[string]string{}, preferred: map[string]string{}, alike: true, waiting: map[string]int{}, later: map[string]int{},
		bound: map[string][]int{}, torn: map[string]bool{},
	}
	nodes := make([]gang.Node, len(g.Groups))
	gpus := -1
	for i := range g.Groups {
		group := &g.Groups[i]
		if group.Pods > 0 {
			nodes[i] = leaf(group.Name, group.Parent, int32(group.Min))
			r.alike = r.alike && (gpus < 0 || gpus == group.GPUs)
			gpus = group.GPUs
			r.waiting[group.Name] = group.Pods
		} else {
			nodes[i] = inner(group.Name, group.Parent, int32(group.Min))
		}
		levels := map[string]string{"block": blockLevel, "rack": rackLevel, "host": hostLevel}
		if group.Required != "" {
			r.required[group.Name] = levels[group.Required]
			for up := r.parent(group); up != nil; up = r.parent(up) {
				r.alike = r.alike && up.Required == ""
			}
		}
		if group.Preferred != "" {
			r.preferred[group.Name] = levels[group.Preferred]
		}
	}
	r.tree = mustBuild(t, nodes[0], nodes[1:]...)
	return r
}

func (g *running) group(name string) *shapes.Group {
	return &g.Groups[slices.IndexFunc(g.Groups, func(group shapes.Group) bool { return group.Name == name })]
}

// parent returns nil for the root.
func (g *running) parent(group *shapes.Group) *shapes.Group {
	if group.Name == "" {
		return nil
	}
	return g.group(group.Parent)
}

func (g *running) children(group *shapes.Group) []*shapes.Group {
	var list []*shapes.Group
	for i := range g.Groups {
		if i > 0 && g.Groups[i].Parent == group.Name {
			list = append(list, &g.Groups[i])
		}
	}
	return list
}

// isBelow reports whether the leaf is below the group, or is this group.
func (g *running) isBelow(leaf string, group *shapes.Group) bool {
	for up := g.group(leaf); up != nil; up = g.parent(up) {
		if up == group {
			return true
		}
	}
	return false
}

// holds reports whether a group has its minimum.
func (g *running) holds(group *shapes.Group) bool {
	if group.Pods > 0 {
		return len(g.bound[group.Name]) >= group.Min
	}
	held := 0
	for _, child := range g.children(group) {
		if g.holds(child) {
			held++
		}
	}
	return held >= group.Min
}

// waits reports whether pods of the gang wait.
func (g *running) waits() bool {
	for _, n := range g.waiting {
		if n > 0 {
			return true
		}
	}
	return false
}

// stream is a cluster on which gangs come and go.
type stream struct {
	t       *testing.T
	r       *rand.Rand
	gpus    int // of a node
	w       *cluster
	nodes   []node // of w; gpus: free
	labels  []node // as the topology has them
	gangs   []*running
	many    bool    // place many gangs as one, too
	classes []class // by index in classGPUs
	tight   bool    // a gang was refused since the last one ended
	steps   int
	report
}

// classGPUs are the GPUs of a pod by class.
var classGPUs = []int{0, 1, 2, 4, 8}

// report counts what a stream has shown. Of pairs the first counts gangs of equal pods with one required level at most
// on each path, the second all others.
type report struct {
	admitted, refused   int    // gangs of which nothing runs
	refilled, kept      int    // gangs below their minimum; kept: they wait
	units, unitsRefused int    // of surplus
	singles             int    // pods of surplus
	planned             [2]int // minimums and units
	missed, unknown     [2]int // refused ones for which there is a plan, or of which the oracle does not know
	preferred, used     int    // gangs that prefer a level, the domains that they use
	near, nearer        int    // of these, gangs that use one domain; gangs that use several, although one would do
	divided             int    // groups divided by a label
	full                int    // most GPUs in use
	few, more           tried  // gangs of two to six, and of more, that run, placed as one
}

type tried struct{ found, all int }

func newStream(t *testing.T, r *rand.Rand, topology shapes.Topology, share float64) *stream {
	t.Helper()
	s := &stream{t: t, r: r, gpus: topology.GPUs}
	for _, gpus := range classGPUs {
		s.classes = append(s.classes, class{gpus: gpus})
	}
	for _, n := range topology.Nodes {
		s.nodes = append(s.nodes, node{name: n.Name, gpus: topology.GPUs, rack: n.Rack, block: n.Block})
	}
	s.labels = slices.Clone(s.nodes)
	s.w = newCluster(t, nil, s.nodes...)
	s.nodes = s.w.nodes
	for lacking := int((1 - share) * float64(len(s.nodes)*s.gpus)); lacking > 0; {
		n := &s.nodes[r.IntN(len(s.nodes))]
		fewer := min(n.gpus, lacking)
		if r.IntN(2) == 0 && n.gpus > 0 { // some GPUs, else the whole node
			fewer = min(lacking, 1+r.IntN(n.gpus))
		}
		n.gpus, lacking = n.gpus-fewer, lacking-fewer
	}
	for range len(s.nodes) / 50 {
		s.relabel()
	}
	return s
}

// relabel takes a label from a node, gives it those of another, or gives back its own.
func (s *stream) relabel() {
	i := s.r.IntN(len(s.nodes))
	switch n, label := &s.nodes[i], s.labels[i]; {
	case n.rack != label.rack || n.block != label.block:
		n.rack, n.block = label.rack, label.block
	case s.r.IntN(4) == 0:
		n.block = ""
	case s.r.IntN(3) > 0:
		n.rack = ""
	default:
		other := s.labels[s.r.IntN(len(s.labels))]
		n.rack, n.block = other.rack, other.block
	}
	s.w.areas = nil
	clear(s.w.divisions)
	for _, g := range s.gangs {
		for k := range g.Groups {
			if group := &g.Groups[k]; g.required[group.Name] != "" && s.usedOf(g, group) > 1 {
				g.torn[group.Name] = true
				s.divided++
			}
		}
	}
}

// usedOf returns how many domains of its level the pods of a group are in. A node outside of the level counts as two.
func (s *stream) usedOf(g *running, group *shapes.Group) int {
	domains, used := s.w.divide(g.required[group.Name]+g.preferred[group.Name], 0).of, map[placement.Area]bool{}
	outside := 0
	for leaf, nodes := range g.bound {
		if !g.isBelow(leaf, group) {
			continue
		}
		for _, i := range nodes {
			domain, ok := domains[i]
			used[domain] = true
			if !ok {
				outside = 1
			}
		}
	}
	return len(used) + outside
}

// check checks what must hold at any moment: no node has more pods than GPUs, and the pods of each group with a
// required level are in one domain, unless a label has divided them.
func (s *stream) check() {
	s.t.Helper()
	used := make([]int, len(s.nodes))
	for _, g := range s.gangs {
		for leaf, nodes := range g.bound {
			for _, i := range nodes {
				used[i] += g.group(leaf).GPUs
			}
		}
		for i := range g.Groups {
			group := &g.Groups[i]
			if g.required[group.Name] == "" {
				continue
			}
			if n := s.usedOf(g, group); n > 1 && !g.torn[group.Name] {
				s.t.Fatalf("step %d: pods of %q of %s are in %d domains: %v", s.steps, group.Name, g.Name, n, g.bound)
			} else if n <= 1 {
				delete(g.torn, group.Name)
			}
		}
	}
	sum := 0
	for i, n := range s.nodes {
		if n.gpus < 0 || n.gpus+used[i] > s.gpus {
			s.t.Fatalf("step %d: node %s has %d GPUs in use and %d free", s.steps, n.name, used[i], n.gpus)
		}
		sum += used[i]
	}
	s.full = max(s.full, sum)
}

// problem returns the facts about a gang for the planner.
func (s *stream) problem(g *running) (placement.Problem, *cluster) {
	p := placement.Problem{
		Tree: g.tree, Have: gang.Counts{}, Bound: gang.Counts{}, Nodes: map[string][]string{}, Pods: map[string][]placement.Pod{}, Required: g.required, Preferred: g.preferred,
	}
	for leaf, nodes := range g.bound {
		p.Have[leaf], p.Bound[leaf] = len(nodes), len(nodes)
		for _, i := range nodes {
			p.Nodes[leaf] = append(p.Nodes[leaf], s.nodes[i].name)
		}
	}
	for leaf, n := range g.waiting {
		p.Pods[leaf] = pods(leaf, slices.Index(classGPUs, g.group(leaf).GPUs), n)
	}
	for i := range s.nodes {
		s.nodes[i].free[0] = s.nodes[i].gpus
	}
	s.w.classes, s.w.stack = slices.Clone(s.classes), nil
	return p, s.w
}

// budget is that of a plan, with a time limit in calls.
func (s *stream) budget() placement.Budget {
	calls := 0
	return placement.Budget{PreferencesExpired: never, Expired: func() bool { calls++; return calls > 100_000 }}
}

// bind binds the pods of a plan.
func (s *stream) bind(g *running, w *cluster, plan []placement.Placement) {
	s.t.Helper()
	for _, pl := range plan {
		i, ok := w.index[pl.Node]
		if !ok || g.waiting[pl.Leaf] == 0 {
			s.t.Fatalf("step %d: %s: %+v is no pod that waits, or no node", s.steps, g.Name, pl)
		}
		for up := g.group(pl.Leaf); up != nil; up = g.parent(up) {
			if g.torn[up.Name] {
				s.t.Fatalf("step %d: %s: a pod joins %q, which runs in several domains", s.steps, g.Name, up.Name)
			}
		}
		g.waiting[pl.Leaf]--
		g.bound[pl.Leaf] = append(g.bound[pl.Leaf], i)
		s.nodes[i].gpus -= g.group(pl.Leaf).GPUs
	}
	s.check()
}

// unbind removes n pods of a leaf from their nodes, from the given position on.
func (s *stream) unbind(g *running, leaf string, from, n int) {
	for _, i := range g.bound[leaf][from : from+n] {
		s.nodes[i].gpus += g.group(leaf).GPUs
	}
	g.bound[leaf] = slices.Delete(g.bound[leaf], from, from+n)
}

// schedule plans what a gang can get. It reports whether the gang has its minimum.
func (s *stream) schedule(g *running) bool {
	s.t.Helper()
	if !s.scheduleMinimum(g) {
		return false
	}
	for g.waits() && s.scheduleUnit(g) {
		s.units++
	}
	if g.waits() {
		s.scheduleSingles(g)
	}
	return true
}

// kind is the index in pairs of report.
func (g *running) kind() int {
	if g.alike {
		return 0
	}
	return 1
}

// count counts a minimum or a unit that was planned, or refused although the oracle has this answer.
func (s *stream) count(g *running, planned bool, a answer, exhausted bool, what string) {
	s.t.Helper()
	switch {
	case planned && a == impossible:
		s.t.Fatalf("step %d: %s: the oracle says that the plan for %s is impossible", s.steps, g.Name, what)
	case planned:
		s.planned[g.kind()]++
	case a == possible && exhausted:
		s.t.Errorf("step %d: %s: the search for %s claims to be exhausted, but there is a plan", s.steps, g.Name, what)
		fallthrough
	case a == possible:
		s.missed[g.kind()]++
		s.t.Logf("step %d: %s: no plan for %s, but there is one", s.steps, g.Name, what)
	case a == unknown:
		s.unknown[g.kind()]++
	}
}

// scheduleMinimum plans what a gang lacks of its minimum: all of it, or nothing. It reports whether the gang has it.
func (s *stream) scheduleMinimum(g *running) bool {
	s.t.Helper()
	root := &g.Groups[0]
	if g.holds(root) {
		return true
	}
	before := 0
	for _, nodes := range g.bound {
		before += len(nodes)
	}
	known := newOracle(s.nodes, g).canPlace(root)
	near := s.nearestPossible(g)
	p, w := s.problem(g)
	plan, short := placement.Minimum(p, w, s.budget())
	s.count(g, short == nil, known, short != nil && short.Exhausted, "the minimum")
	if short != nil {
		if len(plan) > 0 || len(w.stack) > 0 {
			s.t.Fatalf("step %d: %s: %d pods are planned, although the gang is refused", s.steps, g.Name, len(plan))
		}
	} else {
		s.bind(g, w, plan)
		if !g.holds(root) {
			s.t.Fatalf("step %d: %s: the plan has no minimum: %v", s.steps, g.Name, g.bound)
		}
	}
	switch {
	case before > 0 && short == nil:
		s.refilled++
	case before > 0:
		s.kept++
	case short == nil:
		s.admitted++
		s.countPreferred(g, near)
	default:
		s.refused++
	}
	return short == nil
}

// nearestPossible reports whether the minimum of a gang that prefers a level could be in one domain of it, for the one
// group of each tree that prefers one.
func (s *stream) nearestPossible(g *running) bool {
	if len(g.preferred) == 0 {
		return false
	}
	strict := *g
	strict.required = map[string]string{}
	for _, levels := range []map[string]string{g.required, g.preferred} {
		for name, level := range levels {
			strict.required[name] = level
		}
	}
	return newOracle(s.nodes, &strict).canPlace(&strict.Groups[0]) == possible
}

// countPreferred counts the domains that an admitted gang uses of the level that it prefers.
func (s *stream) countPreferred(g *running, near bool) {
	for i := range g.Groups {
		group := &g.Groups[i]
		if g.preferred[group.Name] == "" {
			continue
		}
		n := s.usedOf(g, group)
		s.preferred++
		s.used += n
		if n == 1 {
			s.near++
		} else if near {
			s.nearer++
		}
	}
}

// canBeUnit reports whether a group is a unit of surplus: one that lacks its minimum, below groups that have theirs.
func (g *running) canBeUnit(group *shapes.Group) bool {
	if group.Name == "" || g.holds(group) {
		return false
	}
	for up := g.parent(group); up != nil; up = g.parent(up) {
		if !g.holds(up) {
			return false
		}
	}
	return true
}

// scheduleUnit plans a unit of surplus. If none is planned, none may be possible.
func (s *stream) scheduleUnit(g *running) bool {
	s.t.Helper()
	p, w := s.problem(g)
	plan := placement.Unit(p, w, s.budget())
	if len(plan.Placements) > 0 {
		unit := g.group(plan.Group)
		if !g.canBeUnit(unit) {
			s.t.Fatalf("step %d: %s: %q is no unit", s.steps, g.Name, plan.Group)
		}
		s.count(g, true, newOracle(s.nodes, g).canPlace(unit), false, plan.Group)
		s.bind(g, w, plan.Placements)
		if !g.holds(unit) {
			s.t.Fatalf("step %d: %s: unit %q is not whole", s.steps, g.Name, plan.Group)
		}
		return true
	}
	for i := range g.Groups {
		if unit := &g.Groups[i]; g.canBeUnit(unit) {
			s.unitsRefused++
			s.count(g, false, newOracle(s.nodes, g).canPlace(unit), false, "unit "+unit.Name)
		}
	}
	return false
}

// scheduleSingles plans single pods. Those that it leaves must fit nowhere.
func (s *stream) scheduleSingles(g *running) {
	s.t.Helper()
	p, w := s.problem(g)
	plan := placement.Singles(p, w, s.budget())
	for _, pl := range plan {
		for up := g.group(pl.Leaf); up != nil; up = g.parent(up) {
			if !g.holds(up) {
				s.t.Fatalf("step %d: %s: a single pod of %q, which lacks its minimum", s.steps, g.Name, pl.Leaf)
			}
		}
	}
	s.singles += len(plan)
	s.bind(g, w, plan)
	for i := range g.Groups {
		group := &g.Groups[i]
		if group.Pods == 0 || g.waiting[group.Name] == 0 || g.canBeUnit(group) {
			continue
		}
		for k, n := range s.nodes {
			if n.gpus >= group.GPUs && s.mayJoin(g, group, k) {
				s.t.Fatalf("step %d: %s: a pod of %q is refused, but node %s has %d GPUs", s.steps, g.Name, group.Name, n.name, n.gpus)
			}
		}
	}
}

// mayJoin reports whether one more pod of a leaf may run on a node: all groups above have their minimum, and the node
// is in their domains.
func (s *stream) mayJoin(g *running, leaf *shapes.Group, node int) bool {
	for up := leaf; up != nil; up = g.parent(up) {
		if !g.holds(up) {
			return false
		}
		level := g.required[up.Name]
		if level == "" {
			continue
		}
		domains := s.w.divide(level, 0).of
		domain, ok := domains[node]
		if !ok {
			return false
		}
		for name, nodes := range g.bound {
			for _, i := range nodes {
				if other, ok := domains[i]; g.isBelow(name, up) && (!ok || other != domain) {
					return false
				}
			}
		}
	}
	return true
}

// arrive lets a gang come: all of its pods, or at first only those of the minimum of each leaf.
func (s *stream) arrive(shape shapes.Gang) {
	s.t.Helper()
	g := newRunning(s.t, shape)
	if s.r.IntN(2) == 0 {
		for i := range g.Groups {
			if group := &g.Groups[i]; group.Pods > 0 {
				g.later[group.Name] = group.Pods - group.Min + 2
				g.waiting[group.Name] = group.Min
			}
		}
	}
	s.gangs = append(s.gangs, g)
	if !s.schedule(g) {
		s.tight = true
		s.gangs = s.gangs[:len(s.gangs)-1]
	}
}

// event lets something happen to a gang that runs.
func (s *stream) event() {
	s.t.Helper()
	if len(s.gangs) == 0 {
		return
	}
	at := s.r.IntN(len(s.gangs))
	g := s.gangs[at]
	what := s.r.IntN(8)
	if s.tight { // otherwise the cluster would never be full
		s.tight, what = false, 8
	}
	switch what {
	case 8: // ends
		for leaf := range g.bound {
			s.unbind(g, leaf, 0, len(g.bound[leaf]))
		}
		s.gangs = slices.Delete(s.gangs, at, at+1)
		for _, other := range s.gangs { // what waited gets the room, in order
			if s.r.IntN(4) == 0 {
				s.schedule(other)
			}
		}
		return
	case 0, 1, 2, 3: // loses pods, which are replaced
		for _, group := range g.Groups {
			if n := len(g.bound[group.Name]); n > 0 && s.r.IntN(2) == 0 {
				lost := 1 + s.r.IntN(min(n, 3))
				s.unbind(g, group.Name, s.r.IntN(n-lost+1), lost)
				g.waiting[group.Name] += lost
			}
		}
	case 4: // loses a node
		i := s.r.IntN(len(s.nodes))
		for _, other := range s.gangs {
			for leaf := range other.bound {
				for k := len(other.bound[leaf]) - 1; k >= 0; k-- {
					if other.bound[leaf][k] == i {
						s.unbind(other, leaf, k, 1)
						other.waiting[leaf]++
					}
				}
			}
		}
		s.nodes[i].gpus = 0
		for _, other := range s.gangs {
			s.check()
			s.schedule(other)
		}
	case 5, 6: // grows
		for leaf, n := range g.later {
			g.waiting[leaf] += n
		}
		clear(g.later)
	case 7:
		s.relabel()
	}
	s.check()
	s.schedule(g)
}

// TestStreamsOfShapes plays streams of published role trees, with their topology levels, on clusters of which some of
// the nodes, GPUs and labels are missing. Gangs come and end, lose pods and nodes, and grow. After each step no
// required level is violated by the pods that run, no node has too many, and a gang has its minimum or got nothing.
// What is refused is compared with an oracle.
func TestStreamsOfShapes(t *testing.T) {
	t.Parallel()
	gangs, err := shapes.Gangs()
	if err != nil {
		t.Fatal(err)
	}
	topologies, err := shapes.Topologies()
	if err != nil {
		t.Fatal(err)
	}
	repeats := rounds.Number() / 10 // 0: without the largest gangs, and less often
	for _, topology := range topologies {
		t.Run(topology.Name, func(t *testing.T) {
			t.Parallel()
			var all []report
			percents := []int{60, 70, 80, 90, 100}
			if len(topology.Nodes) > 500 && repeats == 0 {
				percents = []int{60, 80, 100}
			}
			for _, percent := range percents {
				r := rand.New(rand.NewPCG(uint64(len(topology.Nodes)), uint64(percent)))
				var sum report
				for range max(1, repeats, 200/len(topology.Nodes)) {
					s := newStream(t, r, topology, float64(percent)/100)
					s.many = repeats > 0
					s.play(gangs)
					sum = sumOf(sum, s.report)
				}
				t.Logf("%s cut to %d %%: %v", topology.Name, percent, sum)
				all = append(all, sum)
			}
			sum := sumOf(all...)
			t.Logf("%s: %v", topology.Name, sum)
			sum.check(t, len(topology.Nodes)*topology.GPUs)
		})
	}
}

// check checks the rates, and that everything has happened that a stream is to show.
func (r *report) check(t *testing.T, gpus int) {
	t.Helper()
	for kind, floor := range []float64{1, 0.995} {
		all := r.planned[kind] + r.missed[kind] + r.unknown[kind]
		if rate := float64(r.planned[kind]) / float64(all); rate < floor {
			t.Errorf("%.2f %% of the plans were found, want %.1f %%", 100*rate, 100*floor)
		}
	}
	if rate := float64(r.few.found) / float64(r.few.all); rate < 0.98 {
		t.Errorf("%.1f %% of the gangs that run were placed as one, want 98 %%", 100*rate)
	}
	if rate := float64(r.more.found) / float64(r.more.all); r.more.all > 20 && rate < 0.98 {
		t.Errorf("%.1f %% of many gangs that run were placed as one, want 98 %%", 100*rate)
	}
	if 20*r.nearer > r.preferred {
		t.Errorf("%d of %d gangs use more domains than they need", r.nearer, r.preferred)
	}
	if min(r.admitted, r.refused, r.refilled, r.kept, r.units, r.unitsRefused, r.singles, r.preferred, r.divided, r.few.all) == 0 || 10*r.full < 7*gpus {
		t.Errorf("something has not happened: %+v", *r)
	}
}

func (r report) String() string {
	return fmt.Sprintf("%d gangs admitted, %d refused; %d refilled, %d wait; %d units of surplus, %d refused; %d single pods; planned %v, missed %v, unknown %v; "+
		"%d prefer a level: %d domains, %d could use fewer; %d of %d and %d of %d placed as one; %d divided; at most %d GPUs used",
		r.admitted, r.refused, r.refilled, r.kept, r.units, r.unitsRefused, r.singles, r.planned, r.missed, r.unknown,
		r.preferred, r.used, r.nearer, r.few.found, r.few.all, r.more.found, r.more.all, r.divided, r.full)
}

func sumOf(reports ...report) report {
	var sum report
	for _, r := range reports {
		for _, part := range []struct {
			to   *int
			from int
		}{
			{&sum.admitted, r.admitted}, {&sum.refused, r.refused}, {&sum.refilled, r.refilled}, {&sum.kept, r.kept}, {&sum.units, r.units},
			{&sum.unitsRefused, r.unitsRefused}, {&sum.singles, r.singles}, {&sum.preferred, r.preferred}, {&sum.used, r.used}, {&sum.near, r.near},
			{&sum.nearer, r.nearer}, {&sum.divided, r.divided}, {&sum.few.found, r.few.found}, {&sum.few.all, r.few.all},
			{&sum.more.found, r.more.found}, {&sum.more.all, r.more.all},
		} {
			*part.to += part.from
		}
		for kind := range 2 {
			sum.planned[kind] += r.planned[kind]
			sum.missed[kind] += r.missed[kind]
			sum.unknown[kind] += r.unknown[kind]
		}
		sum.full = max(sum.full, r.full)
	}
	return sum
}

// play lets all gangs that can run on the nodes come in random order, and events happen between them.
func (s *stream) play(gangs []shapes.Gang) {
	s.t.Helper()
	var fitting []shapes.Gang
	for _, g := range gangs {
		if !slices.ContainsFunc(g.Groups, func(group shapes.Group) bool { return group.GPUs > s.gpus }) {
			fitting = append(fitting, g)
		}
	}
	for asked := 0; asked < len(s.nodes)*s.gpus*3/2; {
		s.r.Shuffle(len(fitting), func(i, k int) { fitting[i], fitting[k] = fitting[k], fitting[i] })
		for _, g := range fitting {
			for _, group := range g.Groups {
				asked += group.Pods * group.GPUs
			}
			s.steps++
			s.arrive(g)
			s.event()
			if s.steps%8 == 0 {
				most := 6
				if s.many {
					most = 20
				}
				s.placeTogether(2 + s.r.IntN(most-1))
			}
		}
	}
}

// placeTogether plans n gangs that run as one gang, on exactly the GPUs that they use: so there is a plan.
func (s *stream) placeTogether(n int) {
	s.t.Helper()
	together := shapes.Gang{Groups: make([]shapes.Group, 1)}
	nodes := slices.Clone(s.nodes)
	for i := range nodes {
		nodes[i].gpus = 0
	}
	for _, at := range s.r.Perm(len(s.gangs)) {
		g := s.gangs[at]
		if together.Groups[0].Min == n || len(g.torn) > 0 || !g.runs(&g.Groups[0]) {
			continue
		}
		together.Groups[0].Min++
		prefix := fmt.Sprintf("g%d", at)
		for i := range g.Groups {
			group := g.Groups[i]
			children := 0
			for _, child := range g.children(&g.Groups[i]) {
				if g.runs(child) {
					children++
				}
			}
			group.Name = prefix + g.Groups[i].Name
			if i > 0 {
				group.Parent = prefix + group.Parent
			}
			if group.Pods > 0 {
				group.Pods = len(g.bound[g.Groups[i].Name])
			}
			if group.Min = group.Pods + children; group.Min > 0 {
				together.Groups = append(together.Groups, group)
			}
			for _, k := range g.bound[g.Groups[i].Name] {
				nodes[k].gpus += group.GPUs
			}
		}
	}
	if together.Groups[0].Min == 0 {
		return
	}
	g := newRunning(s.t, together)
	if newOracle(nodes, g).canPlace(&g.Groups[0]) == impossible {
		s.t.Fatalf("step %d: the oracle says that gangs that run are impossible", s.steps)
	}
	p, _ := s.problem(g)
	p.Preferred = nil
	w := newCluster(s.t, slices.Clone(s.classes), nodes...)
	plan, short := placement.Minimum(p, w, s.budget())
	count := &s.few
	if together.Groups[0].Min > 6 {
		count = &s.more
	}
	count.all++
	if short == nil {
		count.found++
		checkPlan(s.t, p, w, plan)
		checkLevels(s.t, p, w, plan)
	} else if short.Exhausted {
		s.t.Errorf("step %d: the search claims to be exhausted, but there is a plan", s.steps)
	}
}

// runs reports whether a pod below a group runs.
func (g *running) runs(group *shapes.Group) bool {
	for leaf, nodes := range g.bound {
		if len(nodes) > 0 && g.isBelow(leaf, group) {
			return true
		}
	}
	return false
}
