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
	"k8s.io/utils/ptr"
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

// waiting adds a gang of pods that wait, with or without a required level, and returns how many pods it needs.
func waiting(r *rand.Rand, objects []runtime.Object, name string, priority int32) ([]runtime.Object, int) {
	size, gpus := 1+r.IntN(4), int64(1+r.IntN(8))
	group := wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(int32(size))
	if r.IntN(3) == 0 {
		group.Spec(func(s *v2alpha2.PodGroupSpec) {
			s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: rack}
		})
	}
	objects = append(objects, group.Obj())
	for k := range size {
		objects = append(objects, wrappers.MakePod(fmt.Sprintf("%s-%d", name, k), "ml").UID(fmt.Sprintf("%s-%d", name, k)).Gang(name).GPUs(gpus).Priority(priority).Obj())
	}
	return objects, size
}

// truth counts how often what was said was true.
type truth struct{ asked, agreed int }

func (c *truth) count(t *testing.T, agrees bool, format string, args ...any) {
	t.Helper()
	c.asked++
	if agrees {
		c.agreed++
		return
	}
	t.Errorf(format, args...)
}

func (c *truth) String() string { return fmt.Sprintf("%d of %d", c.agreed, c.asked) }

// TestOfflineTruth compares what an Offline says about random clusters with what the running scheduler does there: a
// gang starts in both or waits in both, for the same reason and with the same message; and it starts after each change
// that is advised, and without preempting after no smaller one of its kind.
func TestOfflineTruth(t *testing.T) {
	t.Parallel()
	key := types.NamespacedName{Namespace: "ml", Name: "g"}
	var starts, waits, advised, smallest truth
	preempted, changes := 0, map[advice.Kind]int{}
	for seed := range 12 * rounds.Number() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			objects, minimum := randomCluster(rand.New(rand.NewPCG(uint64(seed), 1)))
			o, c := offlineOf(t.Context(), t, objects)
			try := func(o *gangadmission.Offline) *gangadmission.Outcome {
				out, err := o.Try(t.Context(), key, gangadmission.Options{Explain: true, Preempt: true})
				if err != nil || out.Cut {
					t.Fatalf("a search in %d objects was cut short, or failed: %v", len(objects), err)
				}
				return out
			}
			out := try(o)
			if out.Starts() {
				if out.Preempting != nil {
					preempted++
				}
				starts.count(t, gangadmission.NewRunningScheduler(t, objects).Starts("g", minimum), "it starts, but for the scheduler")
				return
			}
			got, refused := gangadmission.NewRunningScheduler(t, objects).Refusal("g")
			waits.count(t, refused && got.Reason == out.Refusal.Reason && got.Message == out.Refusal.Message,
				"the scheduler says %s: %s\noffline:         %s: %s", got.Reason, got.Message, out.Refusal.Reason, out.Refusal.Message)
			found, err := advice.Find(t.Context(), c, key, out, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if again := try(o); again.Starts() || again.Refusal.Message != out.Refusal.Message {
				t.Errorf("after all changes were taken back it is refused with %q, want %q", again.Refusal.Message, out.Refusal.Message)
			}
			for i := range found.Changes {
				x := &found.Changes[i]
				changes[x.Kind]++
				after, needs := apply(objects, x, minimum)
				advised.count(t, gangadmission.NewRunningScheduler(t, after).Starts("g", needs), "it does not start after %q", x.Text)
				for _, less := range smaller(x) {
					after, _ := apply(objects, less, minimum)
					o, _ := offlineOf(t.Context(), t, after)
					smallest.count(t, len(try(o).Placements) == 0, "it starts, and nothing ends for it, after less than %q", x.Text)
				}
			}
		})
	}
	t.Logf("starts as said: %s, %d of them preempt; waits as said: %s; starts after what is advised: %s %v, and after no less: %s",
		&starts, preempted, &waits, &advised, changes, &smallest)
	if waits.asked == 0 || starts.asked == 0 || len(changes) < 3 || smallest.asked == 0 {
		t.Error("the clusters are not random enough")
	}
}

// smaller returns the next smaller changes of the kind.
func smaller(x *advice.Change) []*advice.Change {
	var all []*advice.Change
	switch x.Kind {
	case advice.NodesAvailable, advice.TaintRemoved, advice.NodesAdded:
		for i := range x.Put {
			if len(x.Put) > 1 {
				all = append(all, &advice.Change{Kind: x.Kind, Put: slices.Delete(slices.Clone(x.Put), i, i+1)})
			}
		}
	case advice.MinimumLowered:
		group := x.Put[0].(*v2alpha2.PodGroup).DeepCopy()
		if x.Size > 1 && group.Spec.MinMember != nil {
			*group.Spec.MinMember++
			all = append(all, &advice.Change{Kind: x.Kind, Put: []client.Object{group}})
		}
	}
	return all
}

// TestWhatIfTruth compares which of several gangs would start, tried one after the other as by kubectl muster what-if,
// with those that the running scheduler starts when all of them are there.
func TestWhatIfTruth(t *testing.T) {
	t.Parallel()
	var started, waited truth
	for seed := range 12 * rounds.Number() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 2))
			objects, _ := randomCluster(r)
			objects = slices.DeleteFunc(objects, func(o runtime.Object) bool {
				pod, isPod := o.(*corev1.Pod)
				return isPod && pod.Spec.NodeName == "" || o.(client.Object).GetName() == "g"
			})
			for _, o := range objects {
				if pod, ok := o.(*corev1.Pod); ok {
					pod.Spec.Priority = ptr.To[int32](10_000) // nothing is preempted
				}
			}
			o, _ := offlineOf(t.Context(), t, objects)
			all, sizes, starts := slices.Clone(objects), map[string]int{}, map[string]bool{}
			for i := range 2 + r.IntN(4) {
				name := fmt.Sprintf("new%d", i)
				created, size := waiting(r, nil, name, int32(1000-i))
				sizes[name] = size
				for _, object := range created {
					switch object := object.(type) {
					case *v2alpha2.PodGroup:
						o.SetGroup(object)
					case *corev1.Pod:
						o.SetPod(object)
					}
				}
				all = append(all, created...)
			}
			for i := range len(sizes) {
				name := fmt.Sprintf("new%d", i)
				out, err := o.Try(t.Context(), types.NamespacedName{Namespace: "ml", Name: name}, gangadmission.Options{Explain: true, Preempt: true, Record: true})
				if err != nil {
					t.Fatal(err)
				}
				if starts[name] = out.Starts(); starts[name] {
					if err := o.Start(t.Context(), out); err != nil {
						t.Fatal(err)
					}
				}
			}
			running := gangadmission.NewRunningScheduler(t, all)
			for i := range len(sizes) {
				if name := fmt.Sprintf("new%d", i); starts[name] {
					started.count(t, running.Starts(name, sizes[name]), "%s starts, but for the scheduler", name)
				}
			}
			for i := range len(sizes) {
				if name := fmt.Sprintf("new%d", i); !starts[name] {
					_, refused := running.Refusal(name)
					waited.count(t, refused, "%s waits, but for the scheduler", name)
				}
			}
		})
	}
	t.Logf("gangs that start as said: %s; that wait as said: %s", &started, &waited)
	if started.asked == 0 || waited.asked == 0 {
		t.Error("the clusters are not random enough")
	}
}
