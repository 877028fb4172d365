// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/scheduler/evict"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/test/wrappers"
)

// A victim whose deletion is refused is marked again when kube-controller-manager has removed its mark after two
// minutes, so that a later process recognises it, and its witness.
func TestVictimsThatAreNotDeletedKeepTheirMarks(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakeClock(time.Now())
	end := clock.Now().Add(3 * time.Minute)
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	p := &evictions.Eviction{ID: "plan", Gang: key("high")}
	client := fake.NewClientset()
	for _, name := range []string{"low-0", "low-1"} {
		pod := wrappers.MakePod(name, "ml").UID(name).Gang("low").Obj()
		p.Victims = append(p.Victims, evictions.Victim{Pod: pod, Gang: key("low")})
		if err := client.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	stored := func(name string) *corev1.Pod {
		obj, err := client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "ml", name)
		if err != nil {
			t.Fatal(err)
		}
		return obj.(*corev1.Pod).DeepCopy()
	}
	sync := func() {
		for _, v := range p.Victims {
			if err := pods.Update(stored(v.Pod.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if clock.Now().Before(end) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), a.(clienttesting.DeleteAction).GetName(), nil)
		}
		return false, nil, nil
	})
	g := &Gangs{clock: clock, podLister: corelisters.NewPodLister(pods), evictions: evictionRunner{
		ctx: context.Background(), running: make(chan struct{}, 1),
		evictor: evict.New(evict.Options{Client: client, Recorder: &events.FakeRecorder{}, Clock: clock}),
	}}
	if err := g.evictions.evictor.MarkVictims(context.Background(), evictionOf(p, p.Victims)); err != nil {
		t.Fatal(err)
	}
	sync()
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.evictVictims(klog.Background(), p)
	}()
	for round := 0; ; round++ {
		for !clock.HasWaiters() {
			select {
			case <-done:
				if round < 100 {
					t.Errorf("deleted after %d rounds", round)
				}
				return
			default:
			}
		}
		witnesses := 0
		for _, v := range p.Victims {
			pod := stored(v.Pod.Name)
			if !evict.IsMarkedFor(pod, p.ID) {
				t.Fatalf("round %d: %s has no mark", round, pod.Name)
			}
			if evict.IsWitness(pod) {
				witnesses++
			}
			if round == 120 { // what kube-controller-manager does
				pod.Status.Conditions[0].Status = corev1.ConditionFalse
				if err := client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, "ml"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if witnesses != 1 {
			t.Fatalf("round %d: %d witnesses, want 1", round, witnesses)
		}
		sync()
		clock.Step(evictPause)
	}
}

// Marking and deleting thousands of victims takes longer than the two minutes after which kube-controller-manager
// removes a mark: at each deletion the other pods of the gang have theirs, and there is its witness, so that a process
// that comes next ends the whole gang.
func TestMarksDoNotExpireBetweenDeletions(t *testing.T) {
	t.Parallel()
	const gangsOf, size, request, expires = 30, 100, 50 * time.Millisecond, 2 * time.Minute
	clock, indexer, client := testingclock.NewFakeClock(time.Now()), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), fake.NewClientset()
	p := &evictions.Eviction{ID: "plan", Gang: key("high"), Decided: clock.Now()}
	live := map[string]map[string]*corev1.Pod{} // by gang and name
	for i := range gangsOf * size {
		gang := key(fmt.Sprintf("low-%d", i%gangsOf))
		pod := wrappers.MakePod(fmt.Sprintf("%s-%d", gang.Name, i), "ml").UID(fmt.Sprint(i)).Gang(gang.Name).Obj()
		p.Victims = append(p.Victims, evictions.Victim{Pod: pod, Gang: gang})
		if live[gang.Name] == nil {
			live[gang.Name] = map[string]*corev1.Pod{}
		}
		live[gang.Name][pod.Name] = pod
		if err := indexer.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	lost := 0 // pods that a process would not have recognised that came next
	client.PrependReactor("*", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		clock.Step(request)
		name := a.(interface{ GetName() string }).GetName()
		of := live[name[:strings.LastIndex(name, "-")]]
		pod := of[name].DeepCopy()
		if patch, ok := a.(clienttesting.PatchAction); ok {
			if err := json.Unmarshal(patch.GetPatch(), pod); err != nil {
				return true, nil, err
			}
			of[name] = pod
			return true, pod, indexer.Update(pod)
		}
		witnesses := 0
		for _, other := range of {
			isMarked := evict.IsMarkedFor(other, p.ID) && clock.Since(other.Status.Conditions[0].LastTransitionTime.Time) < expires
			if !isMarked {
				lost++
			} else if evict.IsWitness(other) {
				witnesses++
			}
		}
		if witnesses != 1 {
			t.Errorf("%s is deleted, and its gang has %d witnesses", name, witnesses)
		}
		delete(of, name)
		return true, pod, indexer.Delete(pod)
	})
	g := &Gangs{clock: clock, podLister: corelisters.NewPodLister(indexer), evictions: evictionRunner{
		ctx: context.Background(), running: make(chan struct{}, 1),
		evictor: evict.New(evict.Options{Client: client, Recorder: &events.FakeRecorder{}, Clock: clock}),
	}}
	if err := g.evictions.evictor.MarkVictims(context.Background(), evictionOf(p, p.Victims)); err != nil {
		t.Fatal(err)
	}
	if marking := gangsOf * size * request; marking < expires {
		t.Fatalf("marking took %s", marking)
	}
	end := make(chan []types.UID)
	go func() { end <- g.evictVictims(klog.Background(), p) }()
	for {
		select {
		case left := <-end:
			if left != nil || lost > 0 {
				t.Errorf("%d pods are left; %d times a pod whose gang loses pods had no mark", len(left), lost)
			}
			return
		case <-time.After(time.Millisecond):
			if clock.HasWaiters() {
				clock.Step(time.Second)
			}
		}
	}
}

// A pod without a gang that succeeds while it is marked is not deleted with its logs.
func TestAPlainVictimThatSucceedsIsNotDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(2)).run()
	c.pod(wrappers.MakePod("done", "ml").GPUs(1), wrappers.MakePod("busy", "ml").GPUs(1))
	c.eventually("they run", func() bool { return len(c.boundOf("done"))+len(c.boundOf("busy")) == 2 })
	var once sync.Once
	c.onMark = func() {
		once.Do(func() {
			pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, "done", metav1.GetOptions{})
			if err == nil {
				pod.Status.Phase = corev1.PodSucceeded
				_, err = c.client.CoreV1().Pods("ml").UpdateStatus(c.ctx, pod, metav1.UpdateOptions{})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	c.rankedGang("high", 100, 2, 2).eventually("the other pod is evicted", func() bool { return slices.Contains(c.evicted(), "busy") })
	c.eventually("all evictions were requested", func() bool {
		f, _ := c.gangs.registry.Facts(key("high"))
		return f.Preempting == nil || f.Preempting.Evicting
	})
	if got := c.evicted(); !slices.Equal(got, []string{"busy"}) {
		t.Errorf("evicted %v, want only the pod that runs", got)
	}
}

// Victims that could not be deleted in the end are told apart from those that were.
func TestVictimsThatAreGivenUp(t *testing.T) {
	t.Parallel()
	pods, p := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), &evictions.Eviction{ID: "plan", Gang: key("high")}
	client := fake.NewClientset()
	for i, name := range []string{"low-0", "low-1", "plain"} {
		v := evictions.Victim{Pod: wrappers.MakePod(name, "ml").UID("uid-" + name).Obj()}
		if i < 2 {
			v.Gang = key("low")
		}
		p.Victims = append(p.Victims, v)
		if err := errors.Join(client.Tracker().Add(v.Pod), pods.Add(v.Pod)); err != nil {
			t.Fatal(err)
		}
	}
	client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if name := a.(clienttesting.DeleteAction).GetName(); name != "plain" {
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), name, nil)
		}
		return false, nil, pods.Delete(p.Victims[2].Pod) // which is observed
	})
	ctx, stop := context.WithCancel(context.Background())
	clock := testingclock.NewFakeClock(time.Now())
	g := &Gangs{clock: clock, podLister: corelisters.NewPodLister(pods), evictions: evictionRunner{
		ctx: ctx, running: make(chan struct{}, 1),
		evictor: evict.New(evict.Options{Client: client, Recorder: &events.FakeRecorder{}, Clock: clock}),
	}}
	go func() {
		for !clock.HasWaiters() { // before the second round
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	left := g.evictVictims(klog.Background(), p)
	if want := []types.UID{"uid-low-0", "uid-low-1"}; !slices.Equal(left, want) {
		t.Errorf("given up are %v, want %v", left, want)
	}
}

// A victim without a gang that is not bound yet goes back to the queue, as in kube-scheduler, and is bound elsewhere.
func TestAPlainVictimThatIsNotBoundGoesBackToTheQueue(t *testing.T) {
	t.Parallel()
	waits := func(pod string, times *atomic.Int32) bool { return pod == "low" && times.Add(1) == 1 }
	at := map[string]func(times *atomic.Int32) clusterOption{
		"at Permit": func(times *atomic.Int32) clusterOption {
			return permits(func(pod string) *fwk.Status {
				if waits(pod, times) {
					return fwk.NewStatus(fwk.Wait)
				}
				return nil
			})
		},
		"prepared": func(times *atomic.Int32) clusterOption {
			return prepares(func(ctx context.Context, pod string) *fwk.Status {
				if waits(pod, times) {
					<-ctx.Done()
					return fwk.AsStatus(context.Cause(ctx))
				}
				return nil
			})
		},
	}
	by := map[string]struct {
		preemptor func(c *cluster)
		text      string
	}{
		"pod":  {func(c *cluster) { c.pod(wrappers.MakePod("high-0", "ml").GPUs(2).Priority(100)) }, "pod ml/high-0"},
		"gang": {func(c *cluster) { c.rankedGang("high", 100, 2, 2) }, "PodGroup ml/high"},
	}
	for where, waiting := range at {
		for preemptor, tc := range by {
			t.Run(where+", for a "+preemptor, func(t *testing.T) {
				t.Parallel()
				var times atomic.Int32
				c := newCluster(t, waiting(&times)).node(wrappers.MakeNode("n0").GPUs(2)).run()
				c.pod(wrappers.MakePod("runs", "ml").GPUs(1)).eventually("one runs", c.isBound("runs"))
				profile := c.gangs.profiles[wrappers.SchedulerName]
				c.pod(wrappers.MakePod("low", "ml").GPUs(1)).eventually("the other waits for its binding", func() bool {
					return profile.GetWaitingPod("uid-low") != nil || times.Load() > 0 && profile.GetPodInPreBind("uid-low") != nil
				})
				tc.preemptor(c)
				c.eventually("the preemptor runs", c.isBound("high-0"))
				if got := c.evicted(); !slices.Equal(got, []string{"runs"}) {
					t.Errorf("%v were deleted, want the one that runs", got)
				}
				c.node(wrappers.MakeNode("n1").GPUs(1)).eventually("the other runs elsewhere", c.isBound("low"))
				c.eventually("its mark is taken back", func() bool {
					pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, "low", metav1.GetOptions{})
					return err == nil && !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
						return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
					})
				})
				want := "low: Preempted by " + tc.text + " (priority 100) before it was bound to node n0: its priority is lower; it is scheduled again"
				if got := c.eventsWith("Preempted"); !slices.Contains(got, want) {
					t.Errorf("events %q, want %q", got, want)
				}
			})
		}
	}
}
