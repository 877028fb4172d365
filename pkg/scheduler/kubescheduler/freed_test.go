// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

var _ preemption.World = &Snapshot{}

// add adds bound pods to the scheduler's cache as they are, and takes a new snapshot.
func (c *cluster) add(pods ...*corev1.Pod) {
	c.t.Helper()
	for _, p := range pods {
		if err := c.sched.Cache.AddPod(klog.FromContext(c.ctx), p); err != nil {
			c.t.Fatal(err)
		}
	}
	c.refresh()
}

// freeing is a Snapshot whose running pods are freed and restored, and a scheduler of the same cluster from which they
// are really removed.
type freeing struct {
	t       *testing.T
	rng     *rand.Rand
	w       *Snapshot
	oracle  *cluster
	classes []*corev1.Pod
	pods    map[int]*corev1.Pod // by ID
	freed   []int
	planned []*corev1.Pod // on the oracle
	names   int
	steps   []string
}

// TestFreedPodsAreAsIfTheyHadEnded frees and restores random pods of random clusters, also beside planned pods. After
// each step the result for each class and node must be that of a real cycle in a scheduler without these pods.
func TestFreedPodsAreAsIfTheyHadEnded(t *testing.T) {
	t.Parallel()
	repeats := 24 * rounds.Number()
	for seed := range repeats {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewSource(int64(seed)))
			objects, classes := randomCluster(rng)
			running := moreRunning(rng, objects, classes)
			real, oracle := newCluster(t, objects...), newCluster(t, objects...)
			real.add(running...)
			oracle.add(running...)
			cache := NewFilterCache()
			before, original := real.world(classes...), real.worldWith(classes, cache)
			if seed%2 == 0 { // the Snapshot may have planned before
				before.Capacity(0)
				original.Place(0, "")
				original.Undo(len(original.placed))
			}
			d := &freeing{t: t, rng: rng, w: original, oracle: oracle, classes: classes, pods: map[int]*corev1.Pod{}}
			d.w.VisitPods(func(id int, pod *corev1.Pod) { d.pods[id] = pod })
			for range 8 {
				d.freeSome()
				d.compare()
				d.planSome()
				d.undoAll()
				d.restoreSome()
				d.compare()
			}
			d.restore(slices.Clone(d.freed))
			d.compare()
			compareSnapshots(t, before, original)
			compareSnapshots(t, before, real.worldWith(classes, cache)) // the cache is that of the real nodes
		})
	}
}

// worldWith returns a Snapshot that uses the cache.
func (c *cluster) worldWith(classes []*corev1.Pod, cache *FilterCache) *Snapshot {
	c.t.Helper()
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes, Options{Cache: cache})
	if err != nil {
		c.t.Fatal(err)
	}
	return w
}

// moreRunning returns further running pods, which are like pods of the classes. Some of them are terminating. At most
// one has the claim.
func moreRunning(rng *rand.Rand, objects []runtime.Object, classes []*corev1.Pod) []*corev1.Pod {
	var nodes []string
	claimed := false
	ports := map[string]bool{} // a NodeInfo does not count how many pods use a port
	takePorts := func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.Ports = slices.DeleteFunc(c.Ports, func(port corev1.ContainerPort) bool {
			key := fmt.Sprint(p.Spec.NodeName, port.HostPort)
			taken := ports[key]
			ports[key] = true
			return taken
		})
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			nodes = append(nodes, o.Name)
		case *corev1.Pod:
			claimed = claimed || len(o.Spec.Volumes) > 0
			takePorts(o)
		}
	}
	var pods []*corev1.Pod
	for i := range 4 + rng.Intn(12) {
		p := classes[rng.Intn(len(classes))].DeepCopy()
		p.Name, p.Spec.NodeName = fmt.Sprintf("more-%d", i), nodes[rng.Intn(len(nodes))]
		p.UID = types.UID(p.Name)
		takePorts(p)
		if len(p.Spec.Volumes) > 0 {
			if claimed {
				p.Spec.Volumes = nil
			}
			claimed = true
		}
		if rng.Intn(5) == 0 {
			now := metav1.NewTime(time.Unix(1000, 0))
			p.DeletionTimestamp = &now
		}
		pods = append(pods, p)
	}
	return pods
}

func (d *freeing) freeSome() {
	var ids []int
	for id := range len(d.pods) {
		if !slices.Contains(d.freed, id) && d.rng.Intn(3) == 0 {
			ids = append(ids, id)
		}
	}
	d.rng.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
	d.steps = append(d.steps, fmt.Sprintf("free %v", ids))
	want := d.slots(ids, nil)
	d.w.Free(ids)
	d.compareSlots(want)
	d.freed = append(d.freed, ids...)
	for _, id := range ids {
		d.oracle.unbind(d.pods[id])
	}
}

// restoreSome restores some of the freed pods.
func (d *freeing) restoreSome() {
	for _, id := range slices.Clone(d.freed) {
		if d.rng.Intn(2) == 0 {
			d.restore([]int{id})
		}
	}
}

func (d *freeing) restore(ids []int) {
	d.steps = append(d.steps, fmt.Sprintf("restore %v", ids))
	want := d.slots(nil, ids)
	d.w.Restore(ids)
	d.compareSlots(want)
	for _, id := range ids {
		d.freed = slices.DeleteFunc(d.freed, func(freed int) bool { return freed == id })
		d.oracle.add(d.pods[id])
	}
}

// slots asks for the slots of each class on each node, without some running pods and with others of the freed ones.
func (d *freeing) slots(ended, back []int) (slots [][]int) {
	for i := range d.classes {
		var ofClass []int
		for node := range d.w.CountNodes() {
			on := func(ids []int) []int {
				return slices.DeleteFunc(slices.Clone(ids), func(id int) bool { return d.w.NodeOf(id) != node })
			}
			ofClass = append(ofClass, d.w.Slots(i, node, on(ended), on(back)))
		}
		slots = append(slots, ofClass)
	}
	return slots
}

// compareSlots fails the test unless there are at most so many slots as were predicted, and some on each node that
// takes a pod.
func (d *freeing) compareSlots(want [][]int) {
	got := d.slots(nil, nil)
	for i := range d.classes {
		for node, n := range got[i] {
			if n > want[i][node] {
				d.t.Fatalf("%s has %d slots for class %d, %d were predicted, after %v", d.w.NodeName(node), n, i, want[i][node], d.steps)
			}
			if _, ok := d.w.Place(i, "="+d.w.NodeName(node)); ok {
				if d.w.Undo(1); n == 0 {
					d.t.Fatalf("%s takes class %d and is said to have no slots, after %v", d.w.NodeName(node), i, d.steps)
				}
			}
		}
	}
}

func (d *freeing) planSome() {
	for range d.rng.Intn(5) {
		i := d.rng.Intn(len(d.classes))
		node, ok := d.w.Place(i, "")
		d.steps = append(d.steps, fmt.Sprintf("class %d -> %s", i, node))
		if ok {
			d.names++
			d.planned = append(d.planned, d.oracle.bind(d.classes[i], fmt.Sprintf("planned-%d", d.names), node))
		}
		d.compare()
	}
}

func (d *freeing) undoAll() {
	d.w.Undo(len(d.planned))
	for _, p := range d.planned {
		d.oracle.unbind(p)
	}
	d.planned = nil
}

// takes returns, by class, the nodes that take it now.
func (d *freeing) takes() []map[string]bool {
	var out []map[string]bool
	for i, c := range d.w.classes {
		d.w.findNodesOf(c)
		nodes := map[string]bool{}
		for k, n := range d.w.nodes.objects {
			nodes[n.Name] = d.w.classes[i].known.reasons[k] == 0 && d.w.takesAnother(d.w.classes[i], k)
		}
		out = append(out, nodes)
	}
	return out
}

// compare compares the Snapshot with real cycles, and with a Snapshot of the cluster without the freed pods if none is
// planned.
func (d *freeing) compare() {
	d.t.Helper()
	takes := d.takes()
	for i, pod := range d.classes {
		want := d.oracle.realCycles(pod)
		possible := false
		for name, why := range want {
			possible = possible || why == ""
			if takes[i][name] != (why == "") {
				d.t.Fatalf("class %d %s, node %s: taken %t, a real cycle says %q\nafter %v", i, describePod(pod), name, takes[i][name], why, d.steps)
			}
		}
		node, ok := d.w.Place(i, "")
		if ok != possible || ok && want[node] != "" {
			d.t.Fatalf("class %d %s: Place says %q, real cycles %v\nafter %v", i, describePod(pod), node, want, d.steps)
		}
		if ok {
			d.w.Undo(1)
		}
		checkDomain(d.t, d.w, d.rng, i, want)
	}
	if len(d.planned) > 0 {
		return
	}
	fresh := d.oracle.world(d.classes...)
	for i, pod := range d.classes {
		if got, want := d.w.Capacity(i), fresh.Capacity(i); got != want {
			d.t.Fatalf("class %d %s: Capacity %+v, want %+v\nafter %v", i, describePod(pod), got, want, d.steps)
		}
		if got, want := d.w.Kind(i), fresh.Kind(i); got != want {
			d.t.Fatalf("class %d %s: Kind %v, want %v\nafter %v", i, describePod(pod), got, want, d.steps)
		}
		need := slices.Repeat([]int{2}, len(d.classes))
		got, want := d.w.Domains(i, need), fresh.Domains(i, need)
		slices.Sort(got) // the order of a Snapshot's nodes decides between equal ones
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			d.t.Fatalf("class %d %s: Domains (-want +got):\n%s\nafter %v", i, describePod(pod), diff, d.steps)
		}
	}
}

// compareSnapshots checks that two Snapshots of the same nodes make the same plans.
func compareSnapshots(t *testing.T, want, got *Snapshot) {
	t.Helper()
	for i, c := range want.classes {
		if want, got := want.Capacity(i), got.Capacity(i); want != got {
			t.Errorf("class %d: Capacity %+v, want %+v", i, got, want)
		}
		if want.Kind(i) != got.Kind(i) || !slices.Equal(c.scan.order, got.classes[i].scan.order) {
			t.Errorf("class %d: Kind %v and order %v, want %v and %v", i, got.Kind(i), got.classes[i].scan.order, want.Kind(i), c.scan.order)
		}
		if diff := cmp.Diff(c.known.slots, got.classes[i].known.slots); diff != "" {
			t.Errorf("class %d: slots (-want +got):\n%s", i, diff)
		}
		if diff := cmp.Diff(want.Explain(i, ""), got.Explain(i, "")); diff != "" {
			t.Errorf("class %d: Explain (-want +got):\n%s", i, diff)
		}
	}
	for k := range 20 {
		a, _ := want.Place(k%len(want.classes), "")
		b, _ := got.Place(k%len(want.classes), "")
		if a != b {
			t.Errorf("pod %d is placed on %q, want %q", k, b, a)
		}
	}
	want.Undo(len(want.placed))
	got.Undo(len(got.placed))
}

// runningOn returns a running pod with GPUs.
func runningOn(node, name string, gpus int64) *wrappers.PodWrapper {
	return wrappers.MakePod(name, "ml").UID(name).GPUs(gpus).Node(node)
}

// idsOf returns the IDs of running pods by their names.
func idsOf(w *Snapshot, names ...string) []int {
	ids := make([]int, len(names))
	w.VisitPods(func(id int, pod *corev1.Pod) {
		if k := slices.Index(names, pod.Name); k >= 0 {
			ids[k] = id
		}
	})
	return ids
}

// TestOrderOfFreedNodes frees pods, and compares the nodes on which pods of two GPUs are then placed, "-" is a refusal.
func TestOrderOfFreedNodes(t *testing.T) {
	t.Parallel()
	full := func(node string, gpus int64) []runtime.Object {
		return []runtime.Object{wrappers.MakeNode(node).GPUs(gpus).Obj(), runningOn(node, "on-"+node, gpus).Obj()}
	}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		free    []string
		want    []string
	}{
		"nodes that took the class before come first": {
			objects: append(full("n0", 2), wrappers.MakeNode("n1").GPUs(4).Obj()), free: []string{"on-n0"}, want: []string{"n1", "n1", "n0", "-"},
		},
		"the tightest of the others comes first": {
			objects: slices.Concat(full("n0", 6), full("n1", 2), full("n2", 4)), free: []string{"on-n0", "on-n1", "on-n2"},
			want: []string{"n1", "n2", "n2", "n0", "n0", "n0", "-"},
		},
		"too little is freed": {
			objects: []runtime.Object{wrappers.MakeNode("n0").GPUs(2).Obj(), runningOn("n0", "a", 1).Obj(), runningOn("n0", "b", 1).Obj()},
			free:    []string{"a"}, want: []string{"-"},
		},
		"a cordoned, a tainted and a small node remain closed": {
			objects: []runtime.Object{
				wrappers.MakeNode("cordoned").GPUs(8).Unschedulable().Obj(), runningOn("cordoned", "a", 8).Obj(),
				wrappers.MakeNode("tainted").GPUs(8).Taint("x", "y").Obj(), runningOn("tainted", "b", 8).Obj(),
				wrappers.MakeNode("small").GPUs(1).Obj(), runningOn("small", "c", 1).Obj(),
			},
			free: []string{"a", "b", "c"}, want: []string{"-"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCluster(t, tc.objects...).world(classPod("a").GPUs(2).Obj())
			w.Free(idsOf(w, tc.free...))
			var got []string
			for range tc.want {
				node, ok := w.Place(0, "")
				if !ok {
					node = "-"
				}
				got = append(got, node)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFreedPodsWithReservations frees a terminating pod whose room is reserved for its replacement: the room is free
// only for those who may use it.
func TestFreedPodsWithReservations(t *testing.T) {
	t.Parallel()
	going, plain := runningOn("n0", "going", 4).Obj(), runningOn("n0", "plain", 4).Obj()
	c := newCluster(t, append(racks(1, 8), going, plain)...)
	view := reservedOf(reservationOf(gangNamed("other"), "", 10, going))
	for _, tc := range []struct {
		gang     string
		priority int32
		want     []int // pods of one GPU with nothing freed, going freed, and both
	}{{"g", 10, []int{0, 0, 4}}, {"g", 11, []int{0, 4, 8}}, {"other", 10, []int{0, 4, 8}}} {
		w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{classPod("a").GPUs(1).Obj()},
			Options{Reserved: view, Asker: reservations.Asker{Gang: gangNamed(tc.gang), Priority: tc.priority}, Leaves: []string{""}})
		if err != nil {
			t.Fatal(err)
		}
		count := func() int {
			n := len(placeAll(w, 0))
			w.Undo(n)
			if capacity := w.Capacity(0); capacity.Pods != n {
				t.Errorf("Capacity %+v, %d pods were placed", capacity, n)
			}
			return n
		}
		got := []int{count()}
		w.Free(idsOf(w, "going"))
		got = append(got, count())
		w.Free(idsOf(w, "plain"))
		got = append(got, count())
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("gang %s, priority %d (-want +got):\n%s", tc.gang, tc.priority, diff)
		}
		w.Restore(idsOf(w, "plain", "going"))
		if n := count(); n != 0 {
			t.Errorf("%d pods after all were restored", n)
		}
	}
}

func TestWhyFreedRoomIsUnknown(t *testing.T) {
	t.Parallel()
	filters := config.Extender{URLPrefix: "http://127.0.0.1/never-asked", FilterVerb: "filter", Weight: 1}
	scores, managed, preempts := filters, filters, filters
	scores.FilterVerb, scores.PrioritizeVerb = "", "prioritize"
	preempts.FilterVerb, preempts.PreemptVerb = "", "preempt"
	managed.ManagedResources = []config.ExtenderManagedResource{{Name: "example.com/widgets", IgnoredByScheduler: true}}
	for name, tc := range map[string]struct {
		extenders []config.Extender
		unknown   bool
	}{
		"no extender":                   {},
		"an extender filters":           {extenders: []config.Extender{filters}, unknown: true},
		"an extender chooses victims":   {extenders: []config.Extender{preempts}, unknown: true},
		"an extender only scores":       {extenders: []config.Extender{scores}},
		"it is not asked about the pod": {extenders: []config.Extender{managed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newClusterWith(t, tc.extenders, racks(1, 1)...).world(classPod("a").Obj())
			if why := w.WhyFreedRoomIsUnknown(); (why != "") != tc.unknown {
				t.Errorf("said %q", why)
			}
		})
	}
}

// TestUseOnly: other nodes take no pod until they are not barred any more, whatever was placed before.
func TestUseOnly(t *testing.T) {
	c := newCluster(t, racks(3, 8)...)
	w := c.world(classPod("c").GPUs(8).Obj())
	placed := func() (nodes []string) {
		for node, ok := w.Place(0, ""); ok; node, ok = w.Place(0, "") {
			nodes = append(nodes, node)
		}
		w.Undo(len(nodes))
		slices.Sort(nodes)
		return nodes
	}
	all := []string{"n0", "n1", "n2"}
	for _, only := range [][]string{nil, {"n1"}, {"n0", "n2"}, {}, {"n9"}, nil} {
		w.UseOnly(only)
		want := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return only != nil && !slices.Contains(only, n) })
		if got := placed(); !slices.Equal(got, want) {
			t.Errorf("of %q pods are placed on %q, want %q", only, got, want)
		}
	}
}
