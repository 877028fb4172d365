// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

func classPod(name string) *wrappers.PodWrapper {
	return wrappers.MakePod(name, "ml").UID(name).Label("app", name)
}

// spread adds a hard spread constraint over a topology key, between pods with the label app.
func spread(w *wrappers.PodWrapper, topologyKey, app string, skew int32) *wrappers.PodWrapper {
	return w.Spec(func(s *corev1.PodSpec) {
		s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: skew, TopologyKey: topologyKey, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		})
	})
}

// rwop returns a bound claim that only one pod of the cluster may use, with the objects that belong to it.
func rwop(name string) []runtime.Object {
	class, immediate := "local", storagev1.VolumeBindingImmediate
	return []runtime.Object{
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod},
				VolumeName: "pv-" + name, StorageClassName: &class},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		},
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name},
			Spec: corev1.PersistentVolumeSpec{StorageClassName: class, ClaimRef: &corev1.ObjectReference{Name: name, Namespace: "ml"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}}},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, VolumeBindingMode: &immediate},
	}
}

// racks returns n nodes with g GPUs, two in each rack.
func racks(n int, gpus int64) []runtime.Object {
	var out []runtime.Object
	for i := range n {
		out = append(out, wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(gpus).Label("rack", fmt.Sprintf("r%d", i/2)).
			Label("zone", fmt.Sprintf("z%d", i%3)).Obj())
	}
	return out
}

// TestPlacements places pods of classes in an order, and compares their nodes; "-" is a refusal.
func TestPlacements(t *testing.T) {
	type ask struct {
		class  int
		domain string
	}
	both := func(objects ...[]runtime.Object) []runtime.Object { return slices.Concat(objects...) }
	for name, tc := range map[string]struct {
		objects []runtime.Object
		classes []*wrappers.PodWrapper
		asks    []ask
		want    []string
		reasons map[string]int // of the last refusal
	}{
		"GPUs are counted down": {
			objects: racks(1, 4), classes: []*wrappers.PodWrapper{classPod("a").GPUs(2)},
			asks: []ask{{}, {}, {}}, want: []string{"n0", "n0", "-"},
			reasons: map[string]int{"Insufficient nvidia.com/gpu": 1},
		},
		"slots for pods are counted down": {
			objects: []runtime.Object{wrappers.MakeNode("n0").Capacity(corev1.ResourcePods, "2").Obj()},
			classes: []*wrappers.PodWrapper{classPod("a")},
			asks:    []ask{{}, {}, {}}, want: []string{"n0", "n0", "-"},
			reasons: map[string]int{"Too many pods": 1},
		},
		"running pods are counted": {
			objects: both(racks(1, 4), []runtime.Object{classPod("x").GPUs(3).Node("n0").Obj()}),
			classes: []*wrappers.PodWrapper{classPod("a").GPUs(1)},
			asks:    []ask{{}, {}}, want: []string{"n0", "-"},
			reasons: map[string]int{"Insufficient nvidia.com/gpu": 1},
		},
		"a host port is used once per node, by any class": {
			objects: racks(1, 8), classes: []*wrappers.PodWrapper{classPod("a").HostPort(80), classPod("b").HostPort(80), classPod("c").HostPort(81)},
			asks: []ask{{class: 0}, {class: 2}, {class: 1}}, want: []string{"n0", "n0", "-"},
			reasons: map[string]int{"node(s) didn't have free ports for the requested pod ports": 1},
		},
		"taints, cordons and selectors": {
			objects: []runtime.Object{
				wrappers.MakeNode("tainted").Taint("gpu", "yes").Obj(), wrappers.MakeNode("cordoned").Unschedulable().Obj(),
				wrappers.MakeNode("other").Obj(), wrappers.MakeNode("right").Label("type", "x").Obj()},
			classes: []*wrappers.PodWrapper{classPod("a").NodeSelector("type", "x").HostPort(1)},
			asks:    []ask{{}, {}}, want: []string{"right", "-"},
			reasons: map[string]int{
				"with taint gpu=yes:NoSchedule": 1,
				"cordoned":                      1,
				"node(s) didn't match Pod's node affinity/selector":          1,
				"node(s) didn't have free ports for the requested pod ports": 1},
		},
		"anti-affinity inside one class": {
			objects: racks(4, 8), classes: []*wrappers.PodWrapper{classPod("a").ApartFrom("rack", "app", "a")},
			asks: []ask{{}, {}, {}}, want: []string{"n0", "n2", "-"},
			reasons: map[string]int{"node(s) didn't match pod anti-affinity rules": 4},
		},
		"anti-affinity of one class against another that has none": {
			objects: racks(4, 8), classes: []*wrappers.PodWrapper{classPod("a").ApartFrom("rack", "app", "b"), classPod("b")},
			asks: []ask{{class: 0}, {class: 1}, {class: 1, domain: "rack=r0"}}, want: []string{"n0", "n2", "-"},
			reasons: map[string]int{"node(s) didn't satisfy existing pods anti-affinity rules": 2},
		},
		"and the other way round": {
			objects: racks(4, 8), classes: []*wrappers.PodWrapper{classPod("a").ApartFrom("rack", "app", "b"), classPod("b")},
			asks: []ask{{class: 1}, {class: 0}, {class: 0, domain: "rack=r0"}}, want: []string{"n0", "n2", "-"},
			reasons: map[string]int{"node(s) didn't match pod anti-affinity rules": 2},
		},
		"pods that share a rack are placed in the rack of the first one": {
			objects: racks(6, 1), classes: []*wrappers.PodWrapper{classPod("a").GPUs(1).TogetherWith("rack", "app", "a")},
			asks: []ask{{domain: "rack=r2"}, {}, {}}, want: []string{"n4", "n5", "-"},
			reasons: map[string]int{"node(s) didn't match pod affinity rules": 4, "Insufficient nvidia.com/gpu": 2},
		},
		"a claim that one pod of the cluster may use is used by one pod of the gang": {
			objects: both(racks(2, 8), rwop("scratch")), classes: []*wrappers.PodWrapper{classPod("a").Claim("scratch"), classPod("b").Claim("scratch")},
			asks: []ask{{class: 0}, {class: 1}, {class: 0}}, want: []string{"n0", "-", "-"},
			reasons: map[string]int{"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod": 2},
		},
		"the fullest node that still fits goes first": {
			objects: both(racks(2, 8), []runtime.Object{classPod("x").GPUs(4).Node("n1").Obj()}),
			classes: []*wrappers.PodWrapper{classPod("a").GPUs(2)},
			asks:    []ask{{}, {}, {}}, want: []string{"n1", "n1", "n0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pods []*corev1.Pod
			for _, c := range tc.classes {
				pods = append(pods, c.Obj())
			}
			w := newCluster(t, tc.objects...).world(pods...)
			for round := range 2 { // Undo restores the initial state
				var got []string
				var reasons map[string]int
				placed := 0
				for _, a := range tc.asks {
					node, ok := w.Place(a.class, a.domain)
					if !ok {
						node, reasons = "-", w.Explain(a.class, a.domain).Reasons
					} else {
						placed++
					}
					got = append(got, node)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("round %d: nodes (-want +got):\n%s", round, diff)
				}
				if diff := cmp.Diff(tc.reasons, reasons); diff != "" {
					t.Errorf("round %d: reasons of the last refusal (-want +got):\n%s", round, diff)
				}
				w.Undo(placed)
			}
		})
	}
}

func TestNominatedPodsOfOthersKeepTheirPlace(t *testing.T) {
	preemptor := classPod("preemptor").SchedulerName(corev1.DefaultSchedulerName).GPUs(3).Priority(100).Obj()
	own := classPod("own").SchedulerName(corev1.DefaultSchedulerName).GPUs(4).Priority(1000).Obj()
	own.Status.NominatedNodeName = "n0"
	c := newCluster(t, append(racks(1, 4), preemptor)...)
	nominate := func(pod *corev1.Pod) {
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			t.Fatal(err)
		}
		c.f.AddNominatedPod(klog.FromContext(c.ctx), info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "n0"})
	}
	nominate(preemptor)
	w := c.world(classPod("a").GPUs(1).Obj(), classPod("vip").GPUs(4).Priority(1000).Obj())
	if node, _ := w.Place(0, ""); node != "n0" {
		t.Errorf("one GPU is left, placed on %q", node)
	}
	if node, ok := w.Place(0, ""); ok {
		t.Errorf("placed on %s, where a nominated pod wants what is left", node)
	}
	w.Undo(1)
	if node, _ := w.Place(1, ""); node != "n0" {
		t.Error("a nomination of lower priority is in the way")
	}
	// A pod's own nomination does not conflict with it.
	if node, _ := newCluster(t, append(racks(1, 4), own)...).world(own).Place(0, ""); node != "n0" {
		t.Error("a pod competes with its own nomination")
	}
	if own.Status.NominatedNodeName != "n0" {
		t.Error("the informer's object was changed")
	}
}

func TestDomains(t *testing.T) {
	objects := append(racks(6, 2), classPod("x").GPUs(2).Node("n0").Obj(), classPod("y").GPUs(2).Node("n2").Obj(), classPod("z").GPUs(2).Node("n3").Obj())
	for name, tc := range map[string]struct {
		pod  *wrappers.PodWrapper
		kind placement.Kind
		want []string
	}{
		"none without constraints": {pod: classPod("a").GPUs(1), kind: placement.Independent},
		"of the affinity term to itself, without the full one, the tightest first": {
			pod: classPod("a").GPUs(1).TogetherWith("rack", "app", "a"), kind: placement.SharesDomain, want: []string{"rack=r0", "rack=r2"}},
		"anywhere for a hard spread": {pod: spread(classPod("a").GPUs(1), "zone", "a", 1), kind: placement.Dependent, want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCluster(t, objects...).world(tc.pod.Obj())
			if got := w.Kind(0); got != tc.kind {
				t.Errorf("Kind is %d, want %d", got, tc.kind)
			}
			if diff := cmp.Diff(tc.want, w.Domains(0, []int{1})); diff != "" {
				t.Errorf("Domains (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLeaderGoesWhereItsWorkersFit: a pod that others must follow into a rack is placed in a rack with room for all
// of them, even if its own constraints do not require it, and not in the fullest rack that has room for itself only.
func TestLeaderGoesWhereItsWorkersFit(t *testing.T) {
	objects := append(racks(6, 2), classPod("x").GPUs(1).Node("n0").Obj(), classPod("y").GPUs(2).Node("n2").Obj())
	g := leaves{{"leader", []*corev1.Pod{classPod("leader").GPUs(1).SubGroup("leader").Obj()}},
		{"worker", members(3, func(i int) *wrappers.PodWrapper {
			return classPod(fmt.Sprintf("w%d", i)).Label("app", "w").GPUs(1).SubGroup("worker").TogetherWith("rack", "app", "leader")
		})}}
	c := newCluster(t, objects...)
	p, classes := c.problem(NewFilterCache(), g)
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, Options{Pods: classes.Size})
	if err != nil {
		t.Fatal(err)
	}
	if got := []placement.Kind{w.Kind(0), w.Kind(1)}; !slices.Equal(got, []placement.Kind{placement.SharesDomain, placement.SharesDomain}) {
		t.Errorf("kinds %v, want both to share a domain", got)
	}
	for i := range 2 {
		if diff := cmp.Diff([]string{"rack=r2"}, w.Domains(i, []int{1, 3})); diff != "" {
			t.Errorf("Domains of class %d (-want +got):\n%s", i, diff)
		}
	}
	plan, short := placement.Minimum(p, w, placement.Budget{})
	if short != nil {
		t.Fatalf("no plan: %+v", short)
	}
	for _, place := range plan {
		if place.Node != "n4" && place.Node != "n5" {
			t.Errorf("%s is placed on %s, want rack r2", place.Pod.ID, place.Node)
		}
	}
}

func TestResourceCapacity(t *testing.T) {
	objects := append(racks(2, 8),
		wrappers.MakeNode("tainted").GPUs(8).Taint("gpu", "yes").Obj(),
		wrappers.MakeNode("old").GPUs(2).Obj(),
		classPod("x").GPUs(5).Node("n0").Obj())
	w := newCluster(t, objects...).world(classPod("a").GPUs(4).Obj(), classPod("b").GPUs(1).NodeSelector("type", "none").Obj(), classPod("c").CPU("500m").Obj(),
		classPod("d").GPUs(1).CPU("200").Obj())
	tainted := func(total int64, slots int) []podgroup.UnavailableNodes {
		return []podgroup.UnavailableNodes{{Cause: "with taint gpu=yes:NoSchedule", Advice: "tolerate or remove it",
			Nodes: 1, Names: []string{"tainted"}, Total: total, Free: total, Largest: total, Slots: slots, SlotsNow: slots}}
	}
	for i, want := range []podgroup.ResourceCapacity{
		{Resource: "nvidia.com/gpu", PerPod: 4, Free: 13, Total: 18, Largest: 8, LargestFree: 8, Nodes: 3, Offering: 2, Slots: 4, SlotsNow: 2, Unavailable: tainted(8, 2)},
		{Resource: "nvidia.com/gpu", PerPod: 1, Elsewhere: 4, Selection: "nodeSelector type=none"},
		{Resource: corev1.ResourceCPU, PerPod: 500, Free: 3 * 128_000, Total: 3 * 128_000, Largest: 128_000, LargestFree: 128_000, Nodes: 3, Offering: 3, Slots: 330, SlotsNow: 329, Unavailable: tainted(128_000, 110)},
		{Resource: corev1.ResourceCPU, PerPod: 200_000, Free: 3 * 128_000, Total: 3 * 128_000, Largest: 128_000, LargestFree: 128_000, Nodes: 3, Unavailable: tainted(128_000, 0)},
	} {
		if diff := cmp.Diff(want, w.ResourceCapacity(i)); diff != "" {
			t.Errorf("class %d (-want +got):\n%s", i, diff)
		}
	}
	want := []placement.Capacity{{Nodes: 1, Pods: 2}, {}, {Nodes: 3, Pods: 329}, {}}
	if diff := cmp.Diff(want, []placement.Capacity{w.Capacity(0), w.Capacity(1), w.Capacity(2), w.Capacity(3)}); diff != "" {
		t.Errorf("Capacity (-want +got):\n%s", diff)
	}
	if w.Weight(0) <= w.Weight(1) || w.Weight(1) <= w.Weight(2) {
		t.Errorf("weights %d, %d, %d: four GPUs, one GPU, half a CPU", w.Weight(0), w.Weight(1), w.Weight(2))
	}
}

func TestNodesThatRefusedAreNotUsed(t *testing.T) {
	c := newCluster(t, racks(2, 8)...)
	pod := classPod("a").Obj()
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{pod}, Options{Refusals: refusing(c.f, pod, map[string]bool{"n0": true})})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if node, _ := w.Place(0, ""); node != "n1" {
			t.Fatalf("placed on %q", node)
		}
	}
}

// TestSpreadStateIsRead: the state of this version's PodTopologySpread has the form that readSpread expects.
// Otherwise plans would not follow the minimum of a constraint, and nodes would refuse members of them.
func TestSpreadStateIsRead(t *testing.T) {
	w := newCluster(t, append(racks(3, 8), classPod("a").Label("app", "a").Node("n1").Obj())...).world(spread(classPod("a"), "zone", "a", 1).Obj())
	s := w.classes[0].spread
	if len(s) != 1 {
		t.Fatalf("read %+v", s)
	}
	k := s[0]
	if diff := cmp.Diff(map[string]int{"z0": 0, "z1": 1, "z2": 0}, k.counts); diff != "" || k.skew != 1 || k.self != 1 || k.minimum != 0 {
		t.Errorf("read %+v; counts (-want +got):\n%s", k, diff)
	}
}

// TestSpreadDoesNotDrift plans six pods over three zones with a skew of one, repeatedly; without repairSpread the
// filter's own state becomes wrong after a few plans.
func TestSpreadDoesNotDrift(t *testing.T) {
	w := newCluster(t, racks(3, 8)...).world(spread(classPod("a"), "zone", "a", 1).Obj())
	for range 20 {
		count := map[string]int{}
		for range 6 {
			smallest := min(count["n0"], count["n1"], count["n2"])
			for i, n := range w.nodes.nodes {
				want := count[n.Node().Name]+1-smallest <= 1
				if got := w.runFilters(w.classes[0], i) == ""; got != want {
					t.Fatalf("with %v, %s: %t, want %t", count, n.Node().Name, got, want)
				}
			}
			node, ok := w.Place(0, "")
			if !ok {
				t.Fatalf("refused with %v: %v", count, w.Explain(0, "").Reasons)
			}
			count[node]++
		}
		w.Undo(6)
	}
}

// TestFilterResultsAreThoseOfRealCycles places and removes pods of random classes in random order on random clusters.
// After every step the result for each class and node must be that of a real cycle of a pod of the class, in a
// scheduler that has the planned pods bound. This shows that real cycles accept the nodes that Snapshot accepts, that
// Undo restores the state exactly, and that no room is overlooked.
func TestFilterResultsAreThoseOfRealCycles(t *testing.T) {
	repeats := 12 * rounds.Number()
	for seed := range repeats {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewSource(int64(seed)))
			objects, classes := randomCluster(rng)
			// Two schedulers of the same cluster: a Snapshot's nodes must not change.
			w, oracle := newCluster(t, objects...).world(classes...), newCluster(t, objects...)
			checkCapacities(t, w)
			var bound []*corev1.Pod
			var steps []string
			for step := range 25 {
				if rng.Intn(4) > 0 {
					i := rng.Intn(len(classes))
					node, ok := w.Place(i, "")
					steps = append(steps, fmt.Sprintf("class %d -> %s", i, node))
					if ok {
						bound = append(bound, oracle.bind(classes[i], fmt.Sprintf("planned-%d", step), node))
					}
				} else if n := len(bound); n > 0 {
					k := 1 + rng.Intn(min(n, 3))
					steps = append(steps, fmt.Sprintf("undo %d", k))
					w.Undo(k)
					for range k {
						oracle.unbind(bound[len(bound)-1])
						bound = bound[:len(bound)-1]
					}
				}
				for i, pod := range classes {
					want := oracle.realCycles(pod)
					w.findNodesOf(w.classes[i])
					for k, n := range w.nodes.nodes {
						name := n.Node().Name
						if takes := w.classes[i].known.reasons[k] == 0 && w.takesAnother(w.classes[i], k); takes != (want[name] == "") {
							t.Fatalf("step %d, class %d %s, node %s: taken %t, a real cycle says %q\nafter %v", step, i, describePod(pod), name, takes, want[name], steps)
						}
					}
					for k, n := range w.nodes.nodes {
						if rng.Intn(4) > 0 { // filter clones the nodes, which takes avoids
							continue
						}
						name := n.Node().Name
						if got := w.runFilters(w.classes[i], k); (want[name] == "") != (got == "") {
							t.Fatalf("step %d, class %d %s, node %s: Snapshot says %q, a real cycle %q\nafter %v", step, i, describePod(pod), name, got, want[name], steps)
						}
					}
					// Place finds a node if and only if there is one.
					node, ok := w.Place(i, "")
					possible := slices.Contains(slices.Collect(maps.Values(want)), "")
					if ok != possible {
						t.Fatalf("step %d, class %d %s: Place says %q %t, real cycles %v\nafter %v", step, i, describePod(pod), node, ok, want, steps)
					}
					if ok {
						if want[node] != "" {
							t.Fatalf("step %d, class %d %s: placed on %s, a real cycle says %q\nafter %v", step, i, describePod(pod), node, want[node], steps)
						}
						w.Undo(1)
					}
					checkDomain(t, w, rng, i, want)
				}
			}
		})
	}
}

// checkDomain calls Place for a random domain, and compares the node with the results of real cycles.
func checkDomain(t *testing.T, w *Snapshot, rng *rand.Rand, i int, want map[string]string) {
	t.Helper()
	key := []string{"zone", "rack", corev1.LabelHostname}[rng.Intn(3)]
	value := w.nodes.objects[rng.Intn(len(w.nodes.objects))].Labels[key]
	possible := false
	for _, n := range w.nodes.objects {
		if v, ok := n.Labels[key]; ok && v == value && want[n.Name] == "" {
			possible = true
		}
	}
	node, ok := w.Place(i, key+"="+value)
	if ok != possible || ok && want[node] != "" {
		t.Fatalf("class %d in %s=%s: Place says %q, real cycles %v", i, key, value, node, want)
	}
	if ok {
		w.Undo(1)
	}
}

// checkCapacities compares the Capacity and Domains of each class, with nothing placed, with the pods that can be
// placed.
func checkCapacities(t *testing.T, w *Snapshot) {
	t.Helper()
	fill := func(i int, domain string, most int) int {
		n := 0
		for n < most {
			if _, ok := w.Place(i, domain); !ok {
				break
			}
			n++
		}
		w.Undo(n)
		return n
	}
	for i, c := range w.classes {
		capacity := w.Capacity(i)
		if n := fill(i, "", 100); n > capacity.Pods {
			t.Errorf("class %d %s: %d pods placed, Capacity says %d", i, describePod(c.info.Pod), n, capacity.Pods)
		}
		if w.Kind(i) != placement.SharesDomain {
			continue
		}
		need := make([]int, len(w.classes))
		need[i] = 3
		domains := w.Domains(i, need)
		for _, value := range w.nodes.topologyOf(c.domainKey).names {
			domain := c.domainKey + "=" + value
			if n := fill(i, domain, 3); n == 3 && !slices.Contains(domains, domain) {
				t.Errorf("class %d %s: Domains leaves out %s, which holds 3 pods: %v", i, describePod(c.info.Pod), domain, domains)
			}
		}
	}
}

func describePod(pod *corev1.Pod) string {
	return fmt.Sprintf("(affinity %v, spread %v, volumes %v, ports %v)", pod.Spec.Affinity, pod.Spec.TopologySpreadConstraints, pod.Spec.Volumes, pod.Spec.Containers[0].Ports)
}

// randomCluster returns nodes and running pods, and two to four classes of waiting pods.
func randomCluster(rng *rand.Rand) ([]runtime.Object, []*corev1.Pod) {
	chance := func(percent int) bool { return rng.Intn(100) < percent }
	var objects []runtime.Object
	nodes := 3 + rng.Intn(4)
	for i := range nodes {
		n := wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(int64(1+rng.Intn(8))).Capacity(corev1.ResourcePods, strconv.Itoa(2+rng.Intn(8))).
			Label("zone", fmt.Sprintf("z%d", rng.Intn(3)))
		if chance(80) {
			n.Label("rack", fmt.Sprintf("r%d", i/2))
		}
		if chance(15) {
			n.Taint("special", "yes")
		}
		objects = append(objects, n.Obj())
	}
	objects = append(objects, rwop("scratch")...)
	apps := []string{"a", "b", "c"}
	keys := []string{"zone", "rack", corev1.LabelHostname}
	random := func(name string) *wrappers.PodWrapper {
		p := wrappers.MakePod(name, "ml").UID(name).Label("app", apps[rng.Intn(3)]).GPUs(int64(rng.Intn(3)))
		if chance(25) {
			p.ApartFrom(keys[rng.Intn(3)], "app", apps[rng.Intn(3)])
		}
		if chance(20) {
			p.TogetherWith(keys[rng.Intn(3)], "app", apps[rng.Intn(3)])
		}
		if chance(25) {
			spread(p, keys[rng.Intn(3)], apps[rng.Intn(3)], int32(1+rng.Intn(2)))
			if chance(30) {
				spread(p, keys[rng.Intn(3)], apps[rng.Intn(3)], int32(1+rng.Intn(2)))
			}
			p.Spec(func(s *corev1.PodSpec) {
				c := &s.TopologySpreadConstraints[0]
				if chance(30) {
					least := int32(1 + rng.Intn(3))
					c.MinDomains = &least
				}
				if chance(30) {
					honor := corev1.NodeInclusionPolicyHonor
					c.NodeTaintsPolicy = &honor
				}
				if chance(30) {
					c.MatchLabelKeys = []string{"app"}
				}
			})
		}
		if chance(20) {
			p.HostPort(int32(80 + rng.Intn(2)))
		}
		if chance(20) {
			p.Toleration("special")
		}
		if chance(15) {
			p.NodeSelector("zone", fmt.Sprintf("z%d", rng.Intn(3)))
		}
		return p
	}
	for i := range rng.Intn(5) {
		objects = append(objects, random(fmt.Sprintf("running-%d", i)).Node(fmt.Sprintf("n%d", rng.Intn(nodes))).Obj())
	}
	var classes []*corev1.Pod
	for i := range 2 + rng.Intn(3) {
		p := random(fmt.Sprintf("class-%d", i))
		if chance(20) {
			p.Claim("scratch")
		}
		classes = append(classes, p.Obj())
	}
	return objects, classes
}

func TestTakesMoreThanRoom(t *testing.T) {
	t.Parallel()
	const offered, provided = "example.com/offered", "example.com/provided"
	for name, tc := range map[string]struct {
		edit   func(*wrappers.PodWrapper)
		spread corev1.UnsatisfiableConstraintAction // of the profile's default constraint; "": none
		want   bool
	}{
		"room":                {edit: func(p *wrappers.PodWrapper) { p.GPUs(1).Resource(provided, resource.MustParse("1")) }},
		"a bound claim":       {edit: func(p *wrappers.PodWrapper) { p.Claim("bound") }},
		"an unbound claim":    {edit: func(p *wrappers.PodWrapper) { p.Claim("unbound") }, want: true},
		"an offered resource": {edit: func(p *wrappers.PodWrapper) { p.Resource(offered, resource.MustParse("1")) }, want: true},
		"a host port":         {edit: func(p *wrappers.PodWrapper) { p.HostPort(80) }, want: true},
		"affinity":            {edit: func(p *wrappers.PodWrapper) { p.TogetherWith("rack", "app", "u") }, want: true},
		"anti-affinity":       {edit: func(p *wrappers.PodWrapper) { p.ApartFrom("rack", "app", "u") }, want: true},
		"a claim of devices": {edit: func(p *wrappers.PodWrapper) {
			p.Spec(func(s *corev1.PodSpec) {
				s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("gpu")}}
			})
		}, want: true},
		"its own hard constraint":   {edit: func(p *wrappers.PodWrapper) { spread(p, "rack", "c", 1) }, want: true},
		"a hard default constraint": {edit: func(*wrappers.PodWrapper) {}, spread: corev1.DoNotSchedule, want: true},
		"a soft default constraint": {edit: func(*wrappers.PodWrapper) {}, spread: corev1.ScheduleAnyway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unbound := rwop("unbound")[:1]
			claim := unbound[0].(*corev1.PersistentVolumeClaim)
			late, onDemand := "late", storagev1.VolumeBindingWaitForFirstConsumer
			claim.Annotations, claim.Spec.VolumeName, claim.Spec.StorageClassName, claim.Status.Phase = nil, "", &late, corev1.ClaimPending
			objects := append(append(unbound, rwop("bound")...), deviceClass("a", "a.example.com", offered),
				&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: late}, VolumeBindingMode: &onDemand},
				&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ml"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "c"}}},
				wrappers.MakeNode("n").GPUs(8).Label("rack", "r").Obj())
			c := newConfiguredCluster(t, func(cfg *config.KubeSchedulerConfiguration) {
				for _, p := range cfg.Profiles[0].PluginConfig {
					if args, ok := p.Args.(*config.PodTopologySpreadArgs); ok && tc.spread != "" {
						args.DefaultingType = config.ListDefaulting
						args.DefaultConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: tc.spread}}
					}
				}
			}, objects...)
			pod := classPod("c")
			tc.edit(pod)
			if got := c.world(classPod("other").Obj(), pod.Obj()).TakesMoreThanRoom(); got != tc.want {
				t.Errorf("TakesMoreThanRoom is %t, want %t", got, tc.want)
			}
		})
	}
}
