// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// placeAll places pods of a class until there is no room, and returns their nodes.
func placeAll(w *Snapshot, class int) (nodes []string) {
	for {
		node, ok := w.Place(class, "")
		if !ok {
			return nodes
		}
		nodes = append(nodes, node)
	}
}

// nodeNames returns the names of an area's nodes.
func nodeNames(w *Snapshot, a placement.Area) []string {
	var names []string
	for _, i := range w.areas[a].nodes {
		names = append(names, w.nodes.objects[i].Name)
	}
	slices.Sort(names)
	return names
}

// areaNamed returns the area of a level with the name.
func areaNamed(t *testing.T, w *Snapshot, level string, within placement.Area, value string) placement.Area {
	t.Helper()
	for _, a := range w.Areas(level, within) {
		if _, v := w.AreaName(a); v == value {
			return a
		}
	}
	t.Fatalf("level %q has no area %q", level, value)
	return 0
}

func TestAreas(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("r", 63)
	node := func(name string, labels ...string) runtime.Object {
		n := wrappers.MakeNode(name).GPUs(1)
		for i := 0; i < len(labels); i += 2 {
			n.Label(labels[i], labels[i+1])
		}
		return n.Obj()
	}
	w := newCluster(t,
		node("a", "zone", "z2", "rack", "r1", "row", ""), node("b", "zone", "z1", "rack", "r1", "row", "x"), node("c", "zone", "z1", "rack", "r2"),
		node("d", "zone", "z1", "rack", long), node("e", "zone", "z3"), node("f", "rack", "r2"), node("g"),
	).world(classPod("a").GPUs(1).Obj())
	type found struct {
		Key, Value string
		Nodes      []string
	}
	areasOf := func(level string, within placement.Area) []found {
		var out []found
		for _, a := range w.Areas(level, within) {
			key, value := w.AreaName(a)
			out = append(out, found{key, value, nodeNames(w, a)})
			for _, n := range w.nodes.objects {
				if got, ok := w.AreaOf(level, within, n.Name); (ok && got == a) != slices.Contains(nodeNames(w, a), n.Name) {
					t.Errorf("level %q in %d: node %s is in %d %t, %d has %v", level, within, n.Name, got, ok, a, nodeNames(w, a))
				}
			}
			if !w.encloses(within, a) || w.encloses(a, 0) {
				t.Errorf("level %q: area %d is not a part of %d, or is all nodes", level, a, within)
			}
		}
		if _, ok := w.AreaOf(level, within, "gone"); ok {
			t.Errorf("level %q: a node that does not exist has an area", level)
		}
		if again := w.Areas(level, within); len(again) != len(out) {
			t.Errorf("level %q: %v after %v", level, again, out)
		}
		return out
	}
	many := strings.TrimSuffix(strings.Repeat("rack,", 16), ",")
	z1 := areaNamed(t, w, "zone", 0, "z1")
	for name, tc := range map[string]struct {
		level  string
		within placement.Area
		want   []found
	}{
		"one label":                   {level: "zone", want: []found{{"zone", "z1", []string{"b", "c", "d"}}, {"zone", "z2", []string{"a"}}, {"zone", "z3", []string{"e"}}}},
		"two labels":                  {level: "zone,rack", want: []found{{"rack", "z1/r1", []string{"b"}}, {"rack", "z1/r2", []string{"c"}}, {"rack", "z1/" + long, []string{"d"}}, {"rack", "z2/r1", []string{"a"}}}},
		"an empty value is a value":   {level: "row", want: []found{{"row", "", []string{"a"}}, {"row", "x", []string{"b"}}}},
		"inside a zone":               {level: "rack", within: z1, want: []found{{"rack", "r1", []string{"b"}}, {"rack", "r2", []string{"c"}}, {"rack", long, []string{"d"}}}},
		"both labels inside a zone":   {level: "zone,rack", within: z1, want: []found{{"rack", "z1/r1", []string{"b"}}, {"rack", "z1/r2", []string{"c"}}, {"rack", "z1/" + long, []string{"d"}}}},
		"levels need not nest":        {level: "zone", within: areaNamed(t, w, "rack", 0, "r1"), want: []found{{"zone", "z1", []string{"b"}}, {"zone", "z2", []string{"a"}}}},
		"the same level inside":       {level: "zone", within: z1, want: []found{{"zone", "z1", []string{"b", "c", "d"}}}},
		"sixteen labels":              {level: many, within: z1, want: []found{{"rack", "r1", []string{"b"}}, {"rack", "r2", []string{"c"}}, {"rack", long, []string{"d"}}}},
		"a label of no node":          {level: "pod"},
		"a label of no node below":    {level: "zone,pod"},
		"no label":                    {level: ""},
		"an empty label below":        {level: "zone,"},
		"an empty label above":        {level: ",zone"},
		"only a comma":                {level: ","},
		"a space is part of the name": {level: "zone, rack"},
	} {
		if diff := cmp.Diff(tc.want, areasOf(tc.level, tc.within)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	rack, zone := areaNamed(t, w, "zone,rack", 0, "z1/r2"), areaNamed(t, w, "zone", 0, "z1")
	if zone != z1 || !w.encloses(zone, rack) || w.encloses(rack, zone) || w.encloses(areaNamed(t, w, "zone", 0, "z2"), rack) {
		t.Error("a rack is in its zone, and in no other")
	}
	if !w.HasNode("a") || w.HasNode("gone") {
		t.Error("there is a node a, and none named gone")
	}
	if around, ok := w.AreaAround("zone", 0, rack); !ok || around != zone {
		t.Errorf("area %d %t is around the rack, want its zone %d", around, ok, zone)
	}
	for _, level := range []string{"row", "zone,rack", "pod"} {
		if around, ok := w.AreaAround(level, 0, zone); ok {
			t.Errorf("area %d of level %s is around a zone", around, level)
		}
	}
	if n := w.Within(0, z1); n != w.Within(0, zone) || n == w.Within(0, rack) || w.Within(0, 0) != 0 {
		t.Error("a class and an area have one number")
	}
}

// confinement compares a Snapshot whose classes are confined to areas with one whose classes have the labels of the
// areas in their node affinity.
type confinement struct {
	t         *testing.T
	rng       *rand.Rand
	got, want *Snapshot
	of        []confinedClass // by class of want
	freed     []int
	steps     []string
}

func (d *confinement) number(k int) int { return d.got.Within(d.of[k].class, d.of[k].area) }

func (d *confinement) failf(format string, args ...any) {
	d.t.Helper()
	d.t.Fatalf(format+"\nafter %v", append(args, d.steps)...)
}

// areaStep leads from an area to the one inside it that contains the node.
type areaStep struct{ level, node string }

// randomArea returns the way to an area, nil if it is all nodes, and the labels of its nodes.
func (d *confinement) randomArea() (way []areaStep, labels []corev1.NodeSelectorRequirement) {
	in := placement.Area(0)
	for range 1 + d.rng.Intn(2) {
		level := []string{"zone", "rack", "row", "zone,rack", corev1.LabelHostname}[d.rng.Intn(5)]
		list := d.got.Areas(level, in)
		if len(list) == 0 {
			continue
		}
		in = list[d.rng.Intn(len(list))]
		object := d.got.nodes.objects[d.got.areas[in].nodes[0]]
		way = append(way, areaStep{level, object.Name})
		for _, key := range strings.Split(level, ",") {
			labels = append(labels, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{object.Labels[key]}})
		}
	}
	return way, labels
}

// TestConfinedClassesAreAsWithNodeAffinity makes the same calls for classes that are confined to areas, and for classes
// with required node affinity to the labels of the areas, on random clusters: places and takes back pods, frees and
// restores running ones. The results must be the same.
func TestConfinedClassesAreAsWithNodeAffinity(t *testing.T) {
	t.Parallel()
	repeats := 24 * rounds.Number()
	for seed := range repeats {
		d := newConfinement(t, rand.New(rand.NewSource(int64(seed))))
		d.steps = []string{fmt.Sprintf("seed %d", seed)}
		d.compareRoom()
		for range 4 {
			for range 6 {
				d.step()
				d.compareNodes()
			}
			d.got.Undo(len(d.got.placed))
			d.want.Undo(len(d.want.placed))
			d.freeOrRestore()
			d.compareRoom()
			d.compareNodes()
		}
	}
}

func newConfinement(t *testing.T, rng *rand.Rand) *confinement {
	objects, classes := randomCluster(rng)
	for _, o := range objects {
		if n, ok := o.(*corev1.Node); ok && rng.Intn(4) > 0 {
			n.Labels["row"] = []string{"", "1", "2"}[rng.Intn(3)]
		}
	}
	for _, pod := range classes {
		for k := range pod.Spec.TopologySpreadConstraints { // confined pods count the domains of all nodes
			ignore := corev1.NodeInclusionPolicyIgnore
			pod.Spec.TopologySpreadConstraints[k].NodeAffinityPolicy = &ignore
		}
		if rng.Intn(4) == 0 { // at most one pod of the class in each domain
			apart := classPod("").ApartFrom([]string{"zone", "rack", corev1.LabelHostname}[rng.Intn(3)], "app", pod.Labels["app"]).Obj()
			if pod.Spec.Affinity == nil {
				pod.Spec.Affinity = &corev1.Affinity{}
			}
			pod.Spec.Affinity.PodAntiAffinity = apart.Spec.Affinity.PodAntiAffinity
		}
	}
	c := newCluster(t, objects...)
	c.add(moreRunning(rng, objects, classes)...)
	var list []reservations.Reservation
	for k, n := range c.nodes {
		if rng.Intn(3) == 0 {
			pod := classPod(fmt.Sprintf("old-%d", k)).GPUs(int64(1 + rng.Intn(3))).Node(n.Node().Name).Obj()
			list = append(list, reservationOf(gangNamed([]string{"g", "other"}[rng.Intn(2)]), []string{"x", "y"}[rng.Intn(2)], 10, pod))
		}
	}
	var leaves []string
	for range classes {
		leaves = append(leaves, []string{"x", "y"}[rng.Intn(2)])
	}
	d := &confinement{t: t, rng: rng, got: c.world(classes...)} // for the areas
	all, allLeaves := slices.Clone(classes), slices.Clone(leaves)
	var of []int
	var ways [][]areaStep
	for k, pod := range classes {
		for range 1 + rng.Intn(2) {
			way, labels := d.randomArea()
			if way == nil {
				continue
			}
			p := pod.DeepCopy()
			if p.Spec.Affinity == nil {
				p.Spec.Affinity = &corev1.Affinity{}
			}
			p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: labels}}}}
			all, allLeaves = append(all, p), append(allLeaves, leaves[k])
			of, ways = append(of, k), append(ways, way)
		}
	}
	refusals := NewRefusals()
	if rng.Intn(2) == 0 {
		refused := c.nodes[rng.Intn(len(c.nodes))].Node().Name
		for _, pod := range all {
			refusals.Record(c.f, Refusal{Pod: pod, Node: refused, Status: fwk.NewStatus(fwk.Unschedulable, "node(s) refused the pod")}, time.Time{})
		}
	}
	world := func(classes []*corev1.Pod, leaves []string) *Snapshot {
		w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes, Options{Refusals: refusals,
			Reserved: reservedOf(list...), Asker: reservations.Asker{Gang: gangNamed("g"), Priority: 5}, Leaves: leaves})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	d.got, d.want = world(classes, leaves), world(all, allLeaves)
	for k := range classes {
		d.of = append(d.of, confinedClass{class: k})
	}
	for k, way := range ways {
		at := confinedClass{class: of[k]}
		for _, step := range way {
			at.area, _ = d.got.AreaOf(step.level, at.area, step.node)
		}
		d.of = append(d.of, at)
	}
	return d
}

// step places pods of one class, or takes some back.
func (d *confinement) step() {
	if n := len(d.want.placed); n > 0 && d.rng.Intn(4) == 0 {
		n = 1 + d.rng.Intn(n)
		d.got.Undo(n)
		d.want.Undo(n)
		d.steps = append(d.steps, fmt.Sprintf("undo %d", n))
		return
	}
	k, domain := d.rng.Intn(len(d.of)), ""
	if d.rng.Intn(3) == 0 {
		key := []string{"zone", "rack", corev1.LabelHostname}[d.rng.Intn(3)]
		domain = key + "=" + d.got.nodes.objects[d.rng.Intn(len(d.got.nodes.objects))].Labels[key]
	}
	for range 1 + d.rng.Intn(6) {
		d.place(k, domain)
	}
}

// place places a pod on the same node in both Snapshots. Where pods of other classes must follow, the order of the
// nodes may differ: a class with node affinity is one more that follows.
func (d *confinement) place(k int, domain string) {
	d.t.Helper()
	want, takes := d.want.Place(k, domain)
	got, ok := d.got.Place(d.number(k), domain)
	d.steps = append(d.steps, fmt.Sprintf("%v in %q -> %s", d.of[k], domain, got))
	switch {
	case ok != takes, got != want && domain == "" && d.got.classes[d.of[k].class].near == nil:
		d.failf("%v in %q is placed on %q, want %q", d.of[k], domain, got, want)
	case got != want:
		d.got.Undo(1)
		if _, ok := d.got.Place(d.number(k), "="+want); !ok {
			d.failf("%v is not placed on %q", d.of[k], want)
		}
	}
}

func (d *confinement) freeOrRestore() {
	if len(d.freed) > 0 && d.rng.Intn(3) == 0 {
		d.steps = append(d.steps, fmt.Sprintf("restore %v", d.freed))
		d.got.Restore(d.freed)
		d.want.Restore(d.freed)
		d.freed = nil
		return
	}
	var ids []int
	d.got.VisitPods(func(id int, _ *corev1.Pod) {
		if !slices.Contains(d.freed, id) && d.rng.Intn(3) == 0 {
			ids = append(ids, id)
		}
	})
	d.steps = append(d.steps, fmt.Sprintf("free %v", ids))
	d.got.Free(ids)
	d.want.Free(ids)
	d.freed = append(d.freed, ids...)
}

// compareNodes compares which nodes take which class, and why the others do not.
func (d *confinement) compareNodes() {
	d.t.Helper()
	for k, of := range d.of {
		sum := map[string]int{}
		for i, n := range d.got.nodes.objects {
			got, want := d.got.Explain(d.number(k), "="+n.Name).Reasons, d.want.Explain(k, "="+n.Name).Reasons
			if d.got.isIn(of.area, int32(i)) {
				for why, n := range want {
					sum[why] += n
				}
			} else {
				want = map[string]int{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				d.failf("%v: reasons of node %s (-want +got):\n%s", of, n.Name, diff)
			}
			_, takes := d.got.Place(d.number(k), "="+n.Name)
			_, want2 := d.want.Place(k, "="+n.Name)
			if takes != want2 {
				d.failf("%v: node %s takes it %t, want %t", of, n.Name, takes, want2)
			}
			if takes {
				d.got.Undo(1)
				d.want.Undo(1)
			}
		}
		if diff := cmp.Diff(sum, d.got.Explain(d.number(k), "").Reasons); diff != "" {
			d.failf("%v: reasons (-want +got):\n%s", of, diff)
		}
		for range 2 { // the second call begins where the first one found a node
			want, takes := d.want.Place(k, "")
			got, ok := d.got.Place(d.number(k), "")
			if ok != takes {
				d.failf("%v is placed on %q, want %q", of, got, want)
			}
			if ok {
				d.got.Undo(1)
				d.want.Undo(1)
			}
		}
	}
}

// compareRoom compares what is counted without planned pods, and checks Domains.
func (d *confinement) compareRoom() {
	d.t.Helper()
	for k, of := range d.of {
		n, pod := d.number(k), d.got.classes[of.class].info.Pod
		if got, want := d.got.Capacity(n), d.want.Capacity(k); got != want {
			d.failf("%v %s: Capacity %+v, want %+v", of, describePod(pod), got, want)
		}
		if got, want := d.got.Kind(n), d.got.Kind(of.class); got != want {
			d.failf("%v %s: Kind %v, that of the class %v", of, describePod(pod), got, want)
		}
		if got, want := slices.Sorted(slices.Values(d.got.Nodes(n, 100))), slices.Sorted(slices.Values(d.want.Nodes(k, 100))); !slices.Equal(got, want) {
			d.failf("%v: Nodes %v, want %v", of, got, want)
		}
		if got, want := d.got.Weight(n), d.want.Weight(k); got != want {
			d.failf("%v: Weight %v, want %v", of, got, want)
		}
		if got, want := d.got.ResourceCapacity(n), d.want.ResourceCapacity(k); got.Slots != want.Slots || got.SlotsNow != want.SlotsNow || got.Free != want.Free || got.Elsewhere != want.Elsewhere {
			d.failf("%v: ResourceCapacity %+v, want %+v", of, got, want)
		}
		if got, want := d.got.HeldByOthers([]int{n}, wrappers.GPUResource), d.want.HeldByOthers([]int{k}, wrappers.GPUResource); got != want {
			d.failf("%v: HeldByOthers %d, want %d", of, got, want)
		}
		for _, level := range []string{"zone", "rack", "zone,rack", "row"} {
			for _, within := range []placement.Area{0, of.area} {
				var want []int
				for _, a := range d.got.Areas(level, within) {
					want = append(want, d.got.Capacity(d.got.Within(of.class, a)).Pods)
				}
				if got := d.got.Rooms(of.class, level, within); !slices.Equal(got, want) {
					d.failf("%v: Rooms of level %s in %d %v, want %v", of, level, within, got, want)
				}
			}
			d.compareRooms(k, level)
		}
		d.checkDomains(k)
	}
}

// compareRooms compares Rooms of a confined class with those of its class inside the area.
func (d *confinement) compareRooms(k int, level string) {
	d.t.Helper()
	inside := map[string]int{}
	rooms := d.got.Rooms(d.of[k].class, level, d.of[k].area)
	for i, a := range d.got.Areas(level, d.of[k].area) {
		inside[d.got.areas[a].topology.names[d.got.areas[a].value]] = rooms[i]
	}
	rooms = d.got.Rooms(d.number(k), level, 0)
	for i, a := range d.got.Areas(level, 0) {
		value := d.got.areas[a].topology.names[d.got.areas[a].value]
		if rooms[i] != inside[value] {
			d.failf("%v: Rooms of level %s %v, inside of the area %v", d.of[k], level, rooms, inside)
		}
	}
}

// checkDomains checks that Domains lists all domains that hold two pods, and only domains of the area.
func (d *confinement) checkDomains(k int) {
	d.t.Helper()
	n, c := d.number(k), d.got.classes[d.of[k].class]
	if d.got.Kind(n) != sharesDomain {
		return
	}
	need := make([]int, n+1)
	need[n] = 2
	domains := d.got.Domains(n, need)
	for _, value := range d.got.nodes.topologyOf(c.domainKey).names {
		domain := c.domainKey + "=" + value
		inArea := len(d.got.nodesIn(d.of[k].area, domain)) > 0
		pods := 0
		for pods < 2 {
			if _, ok := d.got.Place(n, domain); !ok {
				break
			}
			pods++
		}
		d.got.Undo(pods)
		if listed := slices.Contains(domains, domain); pods == 2 && !listed || listed && !inArea {
			d.failf("%v: Domains %v; %s holds %d pods, is in the area %t", d.of[k], domains, domain, pods, inArea)
		}
	}
}

// TestOrderInAreas: the nodes of small and of large areas are used in the order of the class, also after placements
// were taken back.
func TestOrderInAreas(t *testing.T) {
	t.Parallel()
	objects := append(racks(40, 2), runningOn("n3", "on-n3", 1).Obj(), runningOn("n6", "on-n6", 1).Obj())
	w := newCluster(t, objects...).world(classPod("a").GPUs(1).Obj())
	rack, zone := w.Within(0, areaNamed(t, w, "rack", 0, "r1")), w.Within(0, areaNamed(t, w, "zone", 0, "z0"))
	for round := range 2 {
		if diff := cmp.Diff([]string{"n3", "n2", "n2"}, placeAll(w, rack)); diff != "" {
			t.Errorf("round %d: nodes in the rack (-want +got):\n%s", round, diff)
		}
		w.Undo(2)
		if node, _ := w.Place(rack, ""); node != "n2" {
			t.Errorf("round %d: placed on %q beside a pod on n3", round, node)
		}
		w.Undo(2)
		if nodes := placeAll(w, zone); len(nodes) != 26 || nodes[0] != "n3" || nodes[1] != "n6" || nodes[2] != nodes[3] {
			t.Errorf("round %d: nodes in the zone %v, want the fullest ones first", round, nodes)
		}
		w.Undo(26)
	}
}

// TestDomainsOfConfinedClasses: pods that must be in the area count, and nodes outside of it do not.
func TestDomainsOfConfinedClasses(t *testing.T) {
	t.Parallel()
	leader, worker := classPod("leader").GPUs(1).Obj(), classPod("worker").GPUs(1).TogetherWith("rack", "app", "leader").Obj()
	w := newCluster(t, racks(8, 2)...).world(leader, worker) // n0 and n1 are in rack r0; the zones are z0, z1, z2, z0, ...
	z0, r1 := areaNamed(t, w, "zone", 0, "z0"), areaNamed(t, w, "rack", 0, "r1")
	inZone, inRack := w.Within(1, z0), w.Within(1, r1)
	need := func(leader, worker, inZone, inRack int) []int { return []int{leader, worker, inZone, inRack} }
	for _, tc := range []struct {
		name   string
		number int
		need   []int
		want   []string
	}{
		{"racks with a node of the zone", inZone, need(0, 0, 1, 0), []string{"rack=r0", "rack=r1", "rack=r3"}},
		{"the rack", inRack, need(1, 0, 0, 4), []string{"rack=r1"}},
		{"the pods of all areas count for a class without one: a rack has four GPUs", 1, need(0, 2, 1, 1), []string{"rack=r0", "rack=r1", "rack=r2", "rack=r3"}},
	} {
		if diff := cmp.Diff(tc.want, w.Domains(tc.number, tc.need)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if w.Open(inZone, "") || w.Open(inRack, "rack=r1") {
		t.Error("open without a leader")
	}
	w.Place(w.Within(0, r1), "") // on n2, in zone z2
	if got := []bool{w.Open(inZone, ""), w.Open(inZone, "rack=r1"), w.Open(inZone, "rack=r0"), w.Open(inRack, ""), w.Open(w.Within(1, areaNamed(t, w, "rack", 0, "r0")), "")}; !slices.Equal(got, []bool{true, true, false, true, false}) {
		t.Errorf("open beside a leader in rack r1: %v", got)
	}
	if node, _ := w.Place(inZone, ""); node != "n3" {
		t.Errorf("placed on %q, want the node of zone z0 in rack r1", node)
	}

	// Pods that share a rack: the pods of all areas must be in one.
	shared := newCluster(t, racks(8, 2)...).world(classPod("a").GPUs(1).TogetherWith("rack", "app", "a").Obj())
	number := shared.Within(0, areaNamed(t, shared, "rack", 0, "r1"))
	for pods, want := range map[int][]string{4: {"rack=r1"}, 5: {}} {
		if diff := cmp.Diff(want, shared.Domains(number, []int{0, pods})); diff != "" {
			t.Errorf("%d pods in the rack (-want +got):\n%s", pods, diff)
		}
	}
	if got := shared.Domains(0, []int{2, 3}); len(got) > 0 {
		t.Errorf("no rack holds five pods, got %v", got)
	}

	// Pods in two racks that share a zone: zone z0 has two GPUs in each.
	shared = newCluster(t, racks(8, 2)...).world(classPod("a").GPUs(1).TogetherWith("zone", "app", "a").Obj())
	number = shared.Within(0, areaNamed(t, shared, "rack", 0, "r0"))
	shared.Within(0, areaNamed(t, shared, "rack", 0, "r1"))
	if diff := cmp.Diff([]string{"zone=z0", "zone=z1"}, shared.Domains(number, []int{0, 2, 2})); diff != "" {
		t.Errorf("pods of another rack count in this one (-want +got):\n%s", diff)
	}
}

// TestConfinedClassesHaveDevices: what claims allow on a node holds in an area, too.
func TestConfinedClassesHaveDevices(t *testing.T) {
	t.Parallel()
	objects := append(racks(4, 8), deviceClass("gpu", "gpu.example.com", ""))
	for i, devices := range []int{1, 2, 0, 3} {
		node := fmt.Sprintf("n%d", i)
		objects = append(objects, slice("gpu.example.com", node, node, deviceNames("gpu", devices)...))
	}
	var pods []*corev1.Pod
	for i := range 6 {
		own := claim(fmt.Sprintf("c%d", i), resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{exactly("gpu", 1)}})
		objects = append(objects, own)
		pods = append(pods, withClaims(classPod("a"), own.Name).Obj())
	}
	w := newCluster(t, objects...).world(pods[0])
	if diff := cmp.Diff([]int{3, 3}, w.Rooms(0, "rack", 0)); diff != "" {
		t.Errorf("Rooms by devices (-want +got):\n%s", diff)
	}
	r1 := w.Within(0, areaNamed(t, w, "rack", 0, "r1"))
	if diff := cmp.Diff([]string{"n3", "n3", "n3"}, placeAll(w, r1)); diff != "" {
		t.Errorf("placed where there are devices in the rack (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{noDevices: 2}, w.Explain(r1, "").Reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

// TestRoomsWithoutBarredNodes: nodes that are excluded for a class regardless of the filters have no room.
func TestRoomsWithoutBarredNodes(t *testing.T) {
	t.Parallel()
	w := newCluster(t, racks(4, 2)...).world(classPod("a").GPUs(1).Obj())
	w.classes[0].only = sets.New("n0", "n1", "n3")
	if diff := cmp.Diff([]int{4, 2}, w.Rooms(0, "rack", 0)); diff != "" {
		t.Errorf("rooms (-want +got):\n%s", diff)
	}
}

// TestResourcesOfAreas checks what is free in an area, also of pods that are freed, on nodes that take a pod of the
// plan.
func TestResourcesOfAreas(t *testing.T) {
	t.Parallel()
	node := func(name, rack string, gpus int64) runtime.Object {
		return wrappers.MakeNode(name).GPUs(gpus).Label("rack", rack).Obj()
	}
	w := newCluster(t, node("a", "r1", 8), node("b", "r1", 1), node("c", "r2", 4), node("d", "r2", 0), classPod("busy").GPUs(6).Node("a").Obj()).
		world(classPod("two").GPUs(2).Obj(), classPod("four").GPUs(4).Obj())
	gpu := slices.Index(w.resources(), corev1.ResourceName("nvidia.com/gpu"))
	racks := w.Areas("rack", 0)
	want := func(when string, free ...int64) {
		t.Helper()
		for k, list := range w.FreeIn("rack", 0) {
			if list[gpu] != free[k] {
				t.Errorf("%s: %d GPUs are free in area %d, want %d", when, list[gpu], racks[k], free[k])
			}
		}
	}
	want("at first", 2, 4)
	if two, four := w.Uses(0)[gpu], w.Uses(w.Within(1, racks[0]))[gpu]; two != 2 || four != 4 {
		t.Errorf("pods use %d and %d GPUs", two, four)
	}
	ids := []int{}
	w.VisitPods(func(id int, _ *corev1.Pod) { ids = append(ids, id) })
	w.Free(ids)
	want("without the running pod", 8, 4)
	w.Restore(ids)
	want("with it again", 2, 4)
}

// Each tenant may name other labels, and labels of nodes rarely change.
func TestFewTopologiesAreKept(t *testing.T) {
	t.Parallel()
	nodes, table := []fwk.NodeInfo{nodeInfo(wrappers.MakeNode("n").Obj())}, nodeTable{}
	for plan := range 10 {
		table.updateNodes(nodes)
		for k := range maxTopologies / 2 {
			table.topologyOf(fmt.Sprintf("label-%d-%d", plan, k))
		}
	}
	if table.updateNodes(nodes); len(table.topologies) > maxTopologies {
		t.Errorf("%d topologies are kept", len(table.topologies))
	}
}
