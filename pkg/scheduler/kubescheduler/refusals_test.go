// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/muster-project/muster/test/wrappers"
)

// TestRefusalHoldsWhileTheNodeIsAsItWas: the number of pods that a node actually accepted bounds later plans, until
// something on it changes; an aborted plan in between does not count as a change.
func TestRefusalHoldsWhileTheNodeIsAsItWas(t *testing.T) {
	t.Parallel()
	c := newCluster(t, racks(2, 8)...)
	cache, refusals := NewFilterCache(), NewRefusals()
	unwinding := map[types.UID]bool{}
	pod := classPod("a").GPUs(1).Obj()
	now := time.Unix(1000, 0)
	on := func() map[string]int {
		t.Helper()
		w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{pod}, Options{Cache: cache, Refusals: refusals, Unwinds: func(uid types.UID) bool { return unwinding[uid] }, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for range 6 {
			node, ok := w.Place(0, "")
			if !ok {
				t.Fatalf("no node: %v", w.Explain(0, "").Reasons)
			}
			got[node]++
		}
		w.Undo(6)
		if node, ok := w.Place(0, ""); !ok || node != "n0" {
			t.Errorf("after Undo placed on %q, want n0", node)
		}
		return got
	}
	if got := on(); got["n0"] != 6 {
		t.Fatalf("placed %v, want all on n0", got)
	}

	// Two members of a plan were assumed on n0, and the third was refused there. The next plan begins before the two
	// are released.
	limit := func(why *fwk.Status) bool {
		t.Helper()
		members := []*corev1.Pod{c.bind(pod, "m1", "n0"), c.bind(pod, "m2", "n0")}
		unwinding["m1"], unwinding["m2"] = true, true
		taught := refusals.Record(c.f, Refusal{
			Pod: pod, Node: "n0", Beside: members, Status: why, IsMember: sets.New[types.UID]("m1", "m2", "m3").Has,
		}, now)
		if _, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{pod}, Options{
			Cache: cache, Refusals: refusals, Unwinds: func(uid types.UID) bool { return unwinding[uid] }, Now: now,
		}); err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			c.unbind(m)
		}
		clear(unwinding)
		return taught
	}
	rejected := fwk.NewStatus(fwk.Unschedulable, "no").WithPlugin("Other")
	if !limit(rejected) {
		t.Error("the first refusal teaches nothing")
	}
	if got := on(); got["n0"] != 2 || got["n1"] != 4 {
		t.Errorf("placed %v, want only 2 on n0, its limit", got)
	}
	other := classPod("b").GPUs(2).Obj()
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{other}, Options{Cache: cache, Refusals: refusals, Unwinds: func(uid types.UID) bool { return unwinding[uid] }, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if node, _ := w.Place(0, ""); node != "n0" {
			t.Errorf("a pod of another kind is placed on %q, want n0", node)
		}
	}

	x := c.bind(classPod("x").Obj(), "x", "n1")
	if got := on(); got["n0"] != 2 {
		t.Errorf("placed %v, want 2 on n0: another node has changed", got)
	}
	c.unbind(x)
	now = now.Add(knownFor)
	if got := on(); got["n0"] != 6 {
		t.Errorf("placed %v, want all on n0: the limit has lasted long enough", got)
	}
	now = now.Add(time.Second)
	limit(rejected)
	if got := on(); got["n0"] != 2 {
		t.Errorf("placed %v, want 2 on n0", got)
	}
	c.bind(classPod("x").Obj(), "x", "n0")
	if got := on(); got["n0"] != 6 {
		t.Errorf("placed %v, want all on n0: it has changed", got)
	}
	if limit(rejected) {
		t.Error("the same refusal of a node that has changed teaches something, though the plans may change the node")
	}
	now = now.Add(recently)
	if !limit(rejected) {
		t.Error("a refusal after some time teaches nothing")
	}
}

// Failures that are no refusals, extenders and devices depend on more than the node. Of four pods planned on a node two
// are refused after their plan was aborted, when nobody counts those that it took any more. It takes two of the next
// plan.
func TestLateRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, racks(1, 8)...)
	pod, refusals, now := classPod("a").GPUs(1).Obj(), NewRefusals(), time.Unix(1000, 0)
	why := fwk.NewStatus(fwk.Unschedulable, "no").WithPlugin("Site")
	for _, want := range []int{3, 2} {
		refusals.Record(c.f, Refusal{Pod: pod, Node: "n0", Beside: []*corev1.Pod{pod, pod, pod}, Late: true, Status: why}, now)
		if got := refusals.classes[refusalKey(c.f, pod)]["n0"].accepted; got != want {
			t.Fatalf("the node takes %d, want %d", got, want)
		}
	}
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{pod}, Options{Refusals: refusals, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, ok := w.Place(0, ""); !ok {
			t.Fatal("no node for the first two")
		}
	}
	if node, ok := w.Place(0, ""); ok {
		t.Errorf("the third is planned on %s", node)
	}
	// The next attempt plans two there, and one is refused.
	refusals.Record(c.f, Refusal{Pod: pod, Node: "n0", Beside: []*corev1.Pod{pod}, Late: true, Status: why}, now)
	if got := refusals.classes[refusalKey(c.f, pod)]["n0"].accepted; got != 1 {
		t.Errorf("the node takes %d, want 1", got)
	}
}

// TestRefusalsAreKeptByWhatClaimsAskFor: pods have claims of their own, and what a node refused one of them it refuses
// the others. Claims of members that the node took may be bound by then.
func TestRefusalsAreKeptByWhatClaimsAskFor(t *testing.T) {
	t.Parallel()
	objects := append(racks(2, 8), storageClass("late", "a.example.com", storagev1.VolumeBindingWaitForFirstConsumer))
	pods := members(10, func(i int) *wrappers.PodWrapper {
		p := worker(i)
		claim := pendingClaim("own-"+p.Obj().Name, "late", "1Gi")
		if i < 2 {
			bound := boundClaim(claim.Name, "a.example.com", nil)
			claim.Spec.VolumeName, claim.Status, claim.Annotations = "pv-"+claim.Name, bound[0].(*corev1.PersistentVolumeClaim).Status, bound[0].(*corev1.PersistentVolumeClaim).Annotations
			objects = append(objects, bound[1])
		}
		objects = append(objects, claim)
		return p.Claim(claim.Name)
	})
	c := newCluster(t, objects...)
	refusals, now := NewRefusals(), time.Unix(1000, 0)
	refusals.Record(c.f, Refusal{Pod: pods[4], Node: "n0", Beside: pods[:4], Status: fwk.NewStatus(fwk.Unschedulable, "no").WithPlugin("Site")}, now)
	cache := NewFilterCache()
	_, classes := c.problem(cache, flat(pods[4:]))
	if len(classes.Pods) != 1 {
		t.Fatalf("%d classes, want 1", len(classes.Pods))
	}
	opts := classes.options(cache)
	opts.Refusals, opts.Now = refusals, now
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, opts)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for range 6 {
		node, _ := w.Place(0, "")
		got[node]++
	}
	if diff := cmp.Diff(map[string]int{"n0": 4, "n1": 2}, got); diff != "" {
		t.Errorf("pods by node (-want +got):\n%s", diff)
	}
}

func TestHowLongARefusalIsKnown(t *testing.T) {
	t.Parallel()
	c := newCluster(t, racks(1, 8)...)
	pod := classPod("a").GPUs(1).Obj()
	for name, tc := range map[string]struct {
		status *fwk.Status
		again  []time.Duration // for how long each refusal is known
	}{
		"a plugin refused":  {fwk.NewStatus(fwk.Unschedulable, "no").WithPlugin("Other"), []time.Duration{knownFor, knownFor}},
		"an extender did":   {fwk.NewStatus(fwk.Unschedulable, "no"), []time.Duration{knownObjects, 2 * knownObjects, 4 * knownObjects, knownFor, knownFor}},
		"devices lacked":    {fwk.NewStatus(fwk.Unschedulable, "no").WithPlugin(names.DynamicResources), []time.Duration{knownObjects}},
		"volumes lacked":    {fwk.NewStatus(fwk.Unschedulable, "no").WithPlugin(names.VolumeBinding), []time.Duration{knownObjects}},
		"a plugin failed":   {fwk.NewStatus(fwk.Error, "no").WithPlugin("Other"), []time.Duration{minFailed, 2 * minFailed, 4 * minFailed}},
		"it fails for long": {fwk.NewStatus(fwk.Error, "no"), []time.Duration{3: 8 * minFailed, 4: maxKnown, 7: maxKnown}},
	} {
		t.Run(name, func(t *testing.T) {
			refusals, now := NewRefusals(), time.Unix(1000, 0)
			for k, want := range tc.again {
				refusals.Record(c.f, Refusal{Pod: pod, Node: "n0", Status: tc.status}, now)
				w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{pod}, Options{Refusals: refusals, Now: now})
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := w.Place(0, ""); ok {
					t.Errorf("refusal %d: the pod is placed", k)
				}
				if got := w.KnownUntil().Sub(now); want != 0 && got != want {
					t.Errorf("refusal %d is known for %s, want %s", k, got, want)
				}
				now = w.KnownUntil()
				if w, err = NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{pod}, Options{Refusals: refusals, Now: now}); err != nil {
					t.Fatal(err)
				}
				if _, ok := w.Place(0, ""); !ok {
					t.Errorf("refusal %d is known for longer", k)
				}
			}
		})
	}
}

// Attempts that find out which nodes fail, or refuse, may take longer than that is known. Nothing is forgotten as long
// as they find further nodes; afterwards all of it is.
func TestRefusalsAreKnownUntilAllNodesAreFoundOut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status *fwk.Status
		lasts  time.Duration
	}{
		"they fail":            {fwk.NewStatus(fwk.Error, "no").WithPlugin("Other"), minFailed},
		"an extender refuses":  {fwk.NewStatus(fwk.Unschedulable, "no"), knownObjects},
		"the nodes themselves": {fwk.NewStatus(fwk.Unschedulable, "no").WithPlugin("Other"), knownFor},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			findsOutAllNodes(t, tc.status, tc.lasts)
		})
	}
}

// findsOutAllNodes tries node after node, which answer with the status, for longer than that is known.
func findsOutAllNodes(t *testing.T, status *fwk.Status, lasts time.Duration) {
	t.Helper()
	const nodes = 6
	c := newCluster(t, racks(nodes, 8)...)
	pod := classPod("a").GPUs(1).Obj()
	refusals, now := NewRefusals(), time.Unix(1000, 0)
	place := func() (string, bool) {
		w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{pod}, Options{Refusals: refusals, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return w.Place(0, "")
	}
	for range nodes {
		node, ok := place()
		if !ok {
			t.Fatal("no node is left to be tried")
		}
		if !refusals.Record(c.f, Refusal{Pod: pod, Node: node, Status: status}, now) {
			t.Fatalf("node %s is tried again before the others", node)
		}
		now = now.Add(lasts * 3 / 4)
	}
	if node, ok := place(); ok {
		t.Fatalf("node %s is tried again before the others are known", node)
	}
	now = now.Add(lasts / 4)
	if _, ok := place(); !ok {
		t.Error("it is known for too long")
	}
}

// refusing returns what is known after these nodes have refused the pod.
func refusing(f framework.Framework, pod *corev1.Pod, nodes map[string]bool) *Refusals {
	r := NewRefusals()
	for node, is := range nodes {
		if is {
			r.Record(f, Refusal{Pod: pod, Node: node, Status: fwk.NewStatus(fwk.Unschedulable, "node(s) refused the pod")}, time.Time{})
		}
	}
	return r
}
