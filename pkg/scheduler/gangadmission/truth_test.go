// SPDX-License-Identifier: Apache-2.0

package gangadmission_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/advice"
	"github.com/muster-project/muster/pkg/apis/config/profile"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangadmission"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

const rack = "example.com/rack"

// randomCluster returns a random cluster in which gangs run, and the gang "g" waits.
func randomCluster(r *rand.Rand) (objects []runtime.Object, minimum int) {
	nodes := 4 + r.IntN(6)
	free := map[string]int64{}
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		w := wrappers.MakeNode(name).GPUs(8).Label(corev1.LabelHostname, name).Label(rack, fmt.Sprintf("r%d", i/3))
		switch r.IntN(8) {
		case 0:
			w.Unschedulable()
		case 1:
			w.Taint("dedicated", "x")
		default:
			free[name] = 8
		}
		objects = append(objects, w.Obj())
	}
	for name, value := range map[string]int32{"low": 100, "mid": 500, "high": 1000} {
		objects = append(objects, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value})
	}
	add := func(w *wrappers.PodWrapper) { objects = append(objects, w.UID(w.Obj().Name).Obj()) }
	for i := range 2 + r.IntN(4) { // gangs that run
		name, gpus := fmt.Sprintf("run%d", i), int64(1+r.IntN(5))
		var on []string
		for n := range nodes {
			if node := fmt.Sprintf("n%d", n); free[node] >= gpus && r.IntN(2) == 0 {
				on = append(on, node)
				free[node] -= gpus
			}
		}
		if len(on) == 0 {
			continue
		}
		objects = append(objects, wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(int32(len(on))).Obj())
		for k, node := range on {
			add(wrappers.MakePod(fmt.Sprintf("%s-%d", name, k), "ml").Gang(name).GPUs(gpus).Node(node).Priority(100 + 400*int32(i%2)))
		}
	}
	size, gpus, priority := 2+r.IntN(4), int64(1+r.IntN(8)), int32(100+400*r.IntN(3))
	group := wrappers.MakePodGroup("g", "ml").UID("g").Generation(1)
	level := &v2alpha2.TopologyConstraint{RequiredTopologyLevel: rack}
	switch r.IntN(3) {
	case 0:
		group.MinMember(int32(size))
	case 1:
		group.MinMember(int32(size)).Spec(func(s *v2alpha2.PodGroupSpec) { s.TopologyConstraint = level })
	default: // two of the pods are a sub-group each
		group.SubGroup("a", 1).SubGroup("b", int32(size-1))
		if r.IntN(2) == 0 {
			group.Spec(func(s *v2alpha2.PodGroupSpec) { s.SubGroups[1].TopologyConstraint = level })
		}
	}
	g := group.Obj()
	objects = append(objects, g)
	for k := range size {
		w := wrappers.MakePod(fmt.Sprintf("g-%d", k), "ml").Gang("g").GPUs(gpus).Priority(priority)
		if len(g.Spec.SubGroups) > 0 && k == 0 {
			w.SubGroup("a")
		} else if len(g.Spec.SubGroups) > 0 {
			w.SubGroup("b")
		}
		add(w)
	}
	return objects, size
}

// apply returns the objects after a change, and how many pods the gang "g" needs then.
func apply(objects []runtime.Object, x *advice.Change, minimum int) ([]runtime.Object, int) {
	same := func(a, b runtime.Object) bool {
		return fmt.Sprintf("%T", a) == fmt.Sprintf("%T", b) && client.ObjectKeyFromObject(a.(client.Object)) == client.ObjectKeyFromObject(b.(client.Object))
	}
	after := slices.Clone(objects)
	for _, gone := range x.Delete {
		after = slices.DeleteFunc(after, func(o runtime.Object) bool { return same(o, gone) })
	}
	for _, put := range x.Put {
		after = slices.DeleteFunc(after, func(o runtime.Object) bool { return same(o, put) })
		after = append(after, put)
		if g, ok := put.(*v2alpha2.PodGroup); ok && x.Kind == advice.MinimumLowered {
			minimum = 1
			if g.Spec.MinMember != nil {
				minimum = int(*g.Spec.MinMember)
			}
		}
	}
	return after, minimum
}

// offlineOf returns the offline scheduler of a cluster.
func offlineOf(ctx context.Context, t *testing.T, objects []runtime.Object) (*gangadmission.Offline, *advice.Cluster) {
	t.Helper()
	config, err := profile.Default()
	if err != nil {
		t.Fatal(err)
	}
	o, err := gangadmission.NewOffline(ctx, gangadmission.OfflineInput{Config: config, Objects: objects, Read: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	var classes []*schedulingv1.PriorityClass
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.Node:
			nodes = append(nodes, object)
		case *corev1.Pod:
			pods = append(pods, object)
		case *schedulingv1.PriorityClass:
			classes = append(classes, object)
		}
	}
	return o, advice.NewCluster(o, nodes, pods, classes)
}

// TestOfflineTruth compares what an Offline says about random clusters with what the running scheduler does there: a
// gang starts in both or waits in both, for the same reason and with the same message; and it starts after each change
// that is advised.
func TestOfflineTruth(t *testing.T) {
	t.Parallel()
	key := types.NamespacedName{Namespace: "ml", Name: "g"}
	started, waited, preempted, changes := 0, 0, 0, map[advice.Kind]int{}
	for seed := range 12 * rounds.Number() {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		objects, minimum := randomCluster(r)
		ctx, cancel := context.WithCancel(t.Context())
		o, c := offlineOf(ctx, t, objects)
		out, err := o.Try(ctx, key, gangadmission.Options{Explain: true, Preempt: true})
		if err != nil {
			t.Fatal(err)
		}
		if out.Cut {
			t.Fatalf("seed %d: a search in %d objects was cut short", seed, len(objects))
		}
		switch {
		case out.Starts():
			gangadmission.NewRunningScheduler(t, objects).WaitForStart("g", minimum)
			if started++; out.Preempting != nil {
				preempted++
			}
		default:
			waited++
			if got := gangadmission.NewRunningScheduler(t, objects).Refusal("g"); got.Reason != out.Refusal.Reason || got.Message != out.Refusal.Message {
				t.Errorf("seed %d: the scheduler says %s: %s\noffline:         %s: %s", seed, got.Reason, got.Message, out.Refusal.Reason, out.Refusal.Message)
			}
			found, err := advice.Find(ctx, c, key, out, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			again, err := o.Try(ctx, key, gangadmission.Options{Explain: true, Preempt: true})
			if err != nil {
				t.Fatal(err)
			}
			if again.Starts() || again.Refusal.Message != out.Refusal.Message {
				t.Errorf("seed %d: after all changes were taken back it is refused with %q, want %q", seed, again.Refusal.Message, out.Refusal.Message)
			}
			for i := range found.Changes {
				x := &found.Changes[i]
				t.Logf("seed %d: %s", seed, x.Text)
				after, needs := apply(objects, x, minimum)
				gangadmission.NewRunningScheduler(t, after).WaitForStart("g", needs)
				changes[x.Kind]++
			}
		}
		cancel()
	}
	t.Logf("%d gangs start, %d of them preempt; %d wait; changes after which they start: %v", started, preempted, waited, changes)
	if waited == 0 || started == 0 || len(changes) < 3 {
		t.Errorf("%d gangs start, %d wait, kinds of changes %v: the clusters are not random enough", started, waited, changes)
	}
}
