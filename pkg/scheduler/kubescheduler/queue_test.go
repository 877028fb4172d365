// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	testclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/test/wrappers"
)

// queueScene is a Queue in front of a real stock queue. Pods with the annotation of a gang are gated.
type queueScene struct {
	t      *testing.T
	q      *Queue
	stock  *queue.PriorityQueue
	store  cache.Indexer // of the informer
	clock  *testclock.FakeClock
	events []string

	waiting, gone []string // the calls of the hooks
}

func newQueueScene(t *testing.T) *queueScene {
	t.Helper()
	metrics.Register()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	s := &queueScene{t: t, clock: clock, store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), stock: queue.NewTestQueue(ctx, func(a, b fwk.QueuedEntityInfo) bool {
		return PodOf(a).Name < PodOf(b).Name
	}, queue.WithClock(clock))}
	gated := func(pod *corev1.Pod) bool { return pod.Annotations["pod-group-name"] != "" }
	s.q = NewQueue(s.stock, QueueHooks{
		Clock: s.clock, Pods: corelisters.NewPodLister(s.store), Gated: gated,
		Observe:      func(e fwk.ClusterEvent, _, _ any) { s.events = append(s.events, e.Label()) },
		WaitsForRoom: func(pod *corev1.Pod) bool { s.waiting = append(s.waiting, pod.Name); return true },
		Gone:         func(uid types.UID) { s.gone = append(s.gone, string(uid)) },
	})
	return s
}

func (s *queueScene) add(pods ...*corev1.Pod) {
	for _, pod := range pods {
		s.reads(pod)
		s.q.Add(s.t.Context(), pod)
	}
}

func (s *queueScene) update(oldPod, newPod *corev1.Pod) {
	s.reads(newPod)
	s.q.Update(s.t.Context(), oldPod, newPod)
}

func (s *queueScene) remove(pod *corev1.Pod) {
	if err := s.store.Delete(pod); err != nil {
		s.t.Error(err)
	}
	s.q.Delete(klog.Background(), pod)
}

// reads records the newest version of a pod, of which the queue is not told.
func (s *queueScene) reads(pod *corev1.Pod) {
	if err := s.store.Update(pod); err != nil {
		s.t.Error(err)
	}
}

func (s *queueScene) activate(pod *corev1.Pod) {
	s.q.Activate(klog.Background(), map[string]*corev1.Pod{pod.Namespace + "/" + pod.Name: pod})
}

func (s *queueScene) pop() *framework.QueuedPodInfo {
	s.t.Helper()
	entity, err := s.q.Pop(klog.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	return entity.(*framework.QueuedPodInfo)
}

func (s *queueScene) fail(info *framework.QueuedPodInfo) {
	s.t.Helper()
	info.UnschedulablePlugins = sets.New("GangAdmission")
	if err := s.q.AddUnschedulablePodIfNotPresent(klog.Background(), info, s.q.SchedulingCycle()); err != nil {
		s.t.Fatal(err)
	}
}

// is compares the pods in the stock queue, sorted by name, and the number of gated pods.
func (s *queueScene) is(gated int, stock ...string) {
	s.t.Helper()
	pods, _ := s.stock.PendingPods()
	names := []string{}
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff(append([]string{}, stock...), names); diff != "" {
		s.t.Errorf("stock queue (-want +got):\n%s", diff)
	}
	if got := s.q.Gated(); got != gated {
		s.t.Errorf("%d pods are gated, want %d", got, gated)
	}
}

func plainPod(name string) *corev1.Pod { return wrappers.MakePod(name, "ml").UID(name).Obj() }

func gangPod(name string) *corev1.Pod {
	return wrappers.MakePod(name, "ml").UID(name).Gang("g").Obj()
}

func TestPodsOfGangsStayOutOfTheStockQueue(t *testing.T) {
	s := newQueueScene(t)
	s.add(plainPod("p"), gangPod("a"), gangPod("b"))
	s.is(2, "p")
	s.activate(gangPod("a"))
	s.is(1, "a", "p")
	info := s.pop()
	if info.Pod.Name != "a" {
		t.Fatalf("popped %s, want a", info.Pod.Name)
	}
	s.fail(info)
	s.is(2, "p")
	if got := len(s.stock.InFlightPods()); got != 0 {
		t.Errorf("%d pods are in flight after the failed cycle, want none", got)
	}
}

// added records the order in which pods enter the stock queue.
type added struct {
	queue.SchedulingQueue
	names []string
}

func (a *added) Add(ctx context.Context, pod *corev1.Pod) {
	a.names = append(a.names, pod.Name)
	a.SchedulingQueue.Add(ctx, pod)
}

func TestPodsEnterInTheGivenOrder(t *testing.T) {
	s := newQueueScene(t)
	stock := &added{SchedulingQueue: s.stock}
	s.q.SchedulingQueue = stock
	want := []string{"e", "a", "d", "b", "f", "c"}
	var pods []*corev1.Pod
	for _, name := range want {
		pods = append(pods, gangPod(name))
	}
	s.add(pods...)
	s.q.ActivateInOrder(klog.Background(), pods)
	if diff := cmp.Diff(want, stock.names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// take takes a pod, which the queue must have.
func (s *queueScene) take(pod *corev1.Pod) *framework.QueuedPodInfo {
	s.t.Helper()
	info := s.q.take(klog.Background(), pod)
	if info == nil || info.Pod.UID != pod.UID {
		s.t.Fatalf("took %v, want %s", info, pod.Name)
	}
	return info
}

func TestMembersHaveTheirCyclesWithoutTheStockQueue(t *testing.T) {
	s := newQueueScene(t)
	s.add(plainPod("a-plain"), gangPod("b"), gangPod("c"))
	s.activate(gangPod("c")) // it leads its gang, and is in the plan of another leader
	s.is(1, "a-plain", "c")
	s.take(gangPod("b"))
	s.is(0, "a-plain", "c")
	s.take(gangPod("c"))
	s.is(0, "a-plain")
	if got := len(s.stock.InFlightPods()); got != 0 {
		t.Errorf("%d pods are in flight in the stock queue", got)
	}
	for _, pod := range []*corev1.Pod{gangPod("unknown"), gangPod("b")} {
		if info := s.q.take(klog.Background(), pod); info != nil {
			t.Errorf("took %s", info.Pod.Name)
		}
	}
	s.q.Done("b") // it is being bound
	s.update(gangPod("b"), labelled(gangPod("b")))
	if info := s.q.take(klog.Background(), gangPod("b")); info != nil {
		t.Error("took a pod that is being bound")
	}
	s.q.Delete(klog.Background(), gangPod("b"))
	s.q.Delete(klog.Background(), gangPod("c"))
	s.q.Done("c")
	s.is(0, "a-plain")
	if len(s.q.pods) != 0 {
		t.Errorf("%d pods are left", len(s.q.pods))
	}
}

// What the stock queue counts of a pod between its cycles is counted of the cycles without it too: for the metrics
// scheduler_pod_scheduling_attempts and scheduler_pod_scheduling_sli_duration_seconds.
func TestAttemptsCountFromTheFirstCycle(t *testing.T) {
	s := newQueueScene(t)
	s.add(gangPod("a"))
	began := s.clock.Now()
	is := func(info *framework.QueuedPodInfo, attempts int) {
		t.Helper()
		if info.Attempts != attempts || info.InitialAttemptTimestamp == nil || !info.InitialAttemptTimestamp.Equal(began) {
			t.Errorf("attempt %d since %v, want %d since %v", info.Attempts, info.InitialAttemptTimestamp, attempts, began)
		}
		s.clock.Step(time.Second)
		s.fail(info)
	}
	is(s.take(gangPod("a")), 1)
	is(s.take(gangPod("a")), 2)
	s.activate(gangPod("a"))
	is(s.pop(), 3)
	is(s.take(gangPod("a")), 4)
}

// As long as a pod waits in the stock queue, its first attempt has begun for the second of these metrics.
func TestFirstAttemptBeginsWhenThePodBecomesActive(t *testing.T) {
	for name, pod := range map[string]*corev1.Pod{"a pod without a gang": plainPod("a"), "a leader": gangPod("a")} {
		t.Run(name, func(t *testing.T) {
			s := newQueueScene(t)
			held := pod.DeepCopy()
			held.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}}
			s.add(held)
			s.clock.Step(time.Minute)
			s.update(held, pod)
			s.activate(pod)
			active := s.clock.Now()
			s.clock.Step(3 * time.Second)
			info := s.take(pod)
			if !info.InitialAttemptTimestamp.Equal(active) {
				t.Errorf("the first attempt began at %v, want %v", info.InitialAttemptTimestamp, active)
			}
			s.clock.Step(time.Second)
			s.fail(info)
			s.activate(pod)
			if info = s.pop(); !info.InitialAttemptTimestamp.Equal(active) {
				t.Errorf("the first attempt began at %v after the second, want %v", info.InitialAttemptTimestamp, active)
			}
		})
	}
}

// A pod without a gang that was taken, to pass a plan, is one of the stock queue when its cycle has failed.
func TestPlainPodThatWasTakenComesBack(t *testing.T) {
	s := newQueueScene(t)
	s.add(plainPod("p"))
	info := s.take(plainPod("p"))
	s.is(0)
	s.update(plainPod("p"), labelled(plainPod("p")))
	s.is(0)
	s.fail(info)
	s.is(0, "p")
	if info := s.q.take(klog.Background(), plainPod("p")); info != nil {
		t.Error("it is taken twice")
	}
	info = s.pop()
	if info.Attempts != 2 || info.Pod.Labels["new"] != "yes" {
		t.Errorf("attempt %d with labels %v", info.Attempts, info.Pod.Labels)
	}
	s.q.Done("p")
	s.add(plainPod("q"))
	s.fail(s.take(plainPod("q")))
	s.update(plainPod("q"), gangPod("q"))
	s.is(1)
}

// The stock queue adds a pod that it does not know when the pod is updated, too: neither an update nor an activation
// that overlaps reaches it when the pod has been taken.
func TestNothingBringsATakenPodBack(t *testing.T) {
	for range 300 {
		s := newQueueScene(t)
		s.add(plainPod("p"))
		var updates sync.WaitGroup
		updates.Go(func() {
			s.add(gangPod("a"))
			s.activate(gangPod("a"))
			s.update(plainPod("p"), labelled(plainPod("p")))
		})
		s.take(plainPod("p"))
		for s.q.take(klog.Background(), gangPod("a")) == nil {
			goruntime.Gosched()
		}
		updates.Wait()
		if s.is(0); t.Failed() {
			return
		}
	}
}

func TestActivationDuringTheCycleIsNotLost(t *testing.T) {
	s := newQueueScene(t)
	s.add(gangPod("a"))
	s.activate(gangPod("a"))
	s.activate(gangPod("a")) // before its cycle: takes effect with this cycle
	info := s.pop()
	s.fail(info)
	s.is(1)

	s.activate(gangPod("a"))
	info = s.pop()
	s.activate(gangPod("a"))
	s.fail(info)
	s.is(0, "a")
}

// labelled is another version of the pod.
func labelled(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Labels = map[string]string{"new": "yes"}
	return pod
}

func TestUpdatesReachThePodWhereverItIs(t *testing.T) {
	t.Run("gated", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		s.update(gangPod("a"), labelled(gangPod("a")))
		s.activate(gangPod("a"))
		if info := s.pop(); info.Pod.Labels["new"] != "yes" {
			t.Error("popped an old version of the pod")
		}
	})
	t.Run("activated", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		s.activate(gangPod("a"))
		s.update(gangPod("a"), labelled(gangPod("a")))
		s.is(0, "a")
		if info := s.pop(); info.Pod.Labels["new"] != "yes" {
			t.Error("popped an old version of the pod")
		}
	})
	t.Run("in its cycle", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		s.activate(gangPod("a"))
		info := s.pop()
		s.update(gangPod("a"), labelled(gangPod("a")))
		s.is(0)
		s.fail(info)
		s.is(1)
	})
	t.Run("in its cycle without the stock queue", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		info := s.take(gangPod("a"))
		s.update(gangPod("a"), labelled(gangPod("a")))
		s.is(0)
		s.fail(info)
		s.is(1)
	})
	t.Run("it leaves its gang in such a cycle", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		info := s.take(gangPod("a"))
		s.update(gangPod("a"), plainPod("a"))
		s.is(0)
		s.fail(info)
		s.is(0, "a")
	})
	t.Run("it leaves its gang in such a cycle, and the queue is told later", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		info := s.take(gangPod("a"))
		s.reads(plainPod("a"))
		s.fail(info)
		s.is(0, "a")
		s.update(gangPod("a"), plainPod("a"))
		s.is(0, "a")
	})
	t.Run("it leaves its gang in its cycle, after it was activated again", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		s.activate(gangPod("a"))
		info := s.pop()
		s.activate(gangPod("a"))
		s.update(gangPod("a"), plainPod("a"))
		s.fail(info)
		s.is(0, "a")
		if stored, _ := s.stock.PendingPods(); s.q.hooks.Gated(stored[0]) {
			t.Error("the stock queue has the version that belongs to the gang")
		}
	})
	t.Run("it joins a gang while it is queued", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(plainPod("a"))
		s.update(plainPod("a"), gangPod("a"))
		s.is(1)
	})
	t.Run("it joins a gang in its cycle", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(plainPod("a"))
		info := s.pop()
		s.update(plainPod("a"), gangPod("a"))
		s.is(0)
		s.fail(info)
		s.is(1)
	})
	t.Run("it joins a gang in such a cycle, and the queue is told later", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(plainPod("a"))
		info := s.pop()
		s.reads(gangPod("a"))
		s.fail(info)
		s.is(1)
		s.update(plainPod("a"), gangPod("a"))
		s.is(1)
	})
	t.Run("it leaves its gang while it is gated", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		s.update(gangPod("a"), plainPod("a"))
		s.is(0, "a")
	})
	t.Run("it leaves its gang while it is queued", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		s.activate(gangPod("a"))
		s.update(gangPod("a"), plainPod("a"))
		s.is(0, "a")
	})
	t.Run("recreated under its name", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		next := gangPod("a")
		next.UID = "next"
		s.update(gangPod("a"), next)
		s.is(1)
		s.activate(next)
		if info := s.pop(); info.Pod.UID != types.UID("next") {
			t.Errorf("popped %s, want the new pod", info.Pod.UID)
		}
	})
}

func TestDeletedPodsLeaveNothing(t *testing.T) {
	s := newQueueScene(t)
	s.add(plainPod("p"), gangPod("a"), gangPod("b"), gangPod("c"))
	s.activate(gangPod("b"))
	s.activate(gangPod("c"))
	info := s.take(gangPod("c"))
	for _, pod := range []*corev1.Pod{plainPod("p"), gangPod("a"), gangPod("b"), gangPod("c")} {
		s.remove(pod)
	}
	s.q.Done(info.Pod.UID)
	s.is(0)
	if n := len(s.q.pods) + len(s.q.untried.pods); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

func TestEventsAreObservedAfterTheStockQueueHasThem(t *testing.T) {
	s := newQueueScene(t)
	s.q.MoveAllToActiveOrBackoffQueue(klog.Background(), framework.EventAssignedPodDelete, plainPod("p"), nil, nil)
	if diff := cmp.Diff([]string{framework.EventAssignedPodDelete.Label()}, s.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestPodThatLacksRoomIsMovedByNoEvent(t *testing.T) {
	s := newQueueScene(t)
	s.add(plainPod("p"), plainPod("q"))
	p, q := s.pop(), s.pop()
	p.UnschedulablePlugins = sets.New("NodeResourcesFit", "TaintToleration")
	q.UnschedulablePlugins = sets.New("NodeResourcesFit", "InterPodAffinity")
	for _, info := range []*framework.QueuedPodInfo{p, q} {
		if err := s.q.AddUnschedulablePodIfNotPresent(klog.Background(), info, s.q.SchedulingCycle()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"p"}, s.waiting); diff != "" {
		t.Errorf("pods that wait for room alone (-want +got):\n%s", diff)
	}
	check := s.q.withoutRoomless(framework.EventAssignedPodDelete, func(pod *corev1.Pod) bool { return pod.Name != "r" })
	for name, want := range map[string]bool{"p": false, "q": true, "r": false} {
		if got := check(plainPod(name)); got != want {
			t.Errorf("an event moves %s: %t, want %t", name, got, want)
		}
	}
	if s.q.withoutRoomless(framework.EventUnschedulableTimeout, nil) != nil {
		t.Error("an event for all pods leaves pods out")
	}
	s.activate(plainPod("p"))
	if info := s.pop(); info.Pod.Name != "p" {
		t.Fatalf("popped %s, want p", info.Pod.Name)
	}
	if diff := cmp.Diff([]string{"p"}, s.gone); diff != "" {
		t.Errorf("pods that do not wait any more (-want +got):\n%s", diff)
	}
}

func TestGatedPodsNominateNoNode(t *testing.T) {
	s := newQueueScene(t)
	pod := gangPod("a")
	pod.Status.NominatedNodeName = "n" // for example by an autoscaler
	s.stock = queue.NewTestQueueWithObjects(t.Context(), func(a, b fwk.QueuedEntityInfo) bool { return false }, []runtime.Object{pod})
	s.q.SchedulingQueue = s.stock
	s.add(pod)
	s.activate(pod)
	info := s.pop()
	if got := len(s.stock.NominatedPodsForNode("n")); got != 1 {
		t.Fatalf("%d pods are nominated in the cycle, want 1", got)
	}
	s.fail(info)
	s.stock.AddNominatedPod(klog.Background(), info.PodInfo, nil) // by the stock failure handler
	s.q.endNomination(pod)
	s.is(1)
	if got := len(s.stock.NominatedPodsForNode("n")); got != 0 {
		t.Errorf("%d pods are nominated, want none: nothing tells the stock queue when a gated pod changes", got)
	}
}

func TestPodThatWentWhileItsCycleFailedIsNotKept(t *testing.T) {
	for name, pod := range map[string]*corev1.Pod{"of a gang": gangPod("a"), "plain": plainPod("a")} {
		t.Run(name, func(t *testing.T) {
			s := newQueueScene(t)
			s.add(pod)
			s.activate(pod)
			info := s.pop()
			s.remove(pod) // its failed cycle has read it before
			s.fail(info)
			s.is(0)
			if n := len(s.q.pods) + len(s.stock.InFlightPods()); n != 0 {
				t.Errorf("%d entries are left", n)
			}
		})
	}
}

// crossed is a stock queue that another goroutine meets in the middle of a change: before a pod is added, or after its
// cycle was ended.
type crossed struct {
	queue.SchedulingQueue
	add, done, popped func()
}

func (c *crossed) Add(ctx context.Context, pod *corev1.Pod) {
	c.add()
	c.SchedulingQueue.Add(ctx, pod)
}

func (c *crossed) Done(uid types.UID) {
	c.SchedulingQueue.Done(uid)
	c.done()
}

func (c *crossed) Pop(logger klog.Logger) (framework.QueuedEntityInfo, error) {
	entity, err := c.SchedulingQueue.Pop(logger)
	c.popped()
	return entity, err
}

// What the informer tells in the middle of a change of the queue takes effect before or after the whole change.
func TestChangesOfAPodThatCross(t *testing.T) {
	plain, pod := plainPod("a"), gangPod("a")
	for name, tc := range map[string]struct {
		change func(s *queueScene, stock *crossed, cross func()) // calls cross in its middle
		cross  func(s *queueScene)
		gated  int // afterwards; the stock queue has none
	}{
		"it is deleted while it is activated": {
			change: func(s *queueScene, stock *crossed, cross func()) {
				s.add(pod)
				stock.add = cross
				s.activate(pod)
			},
			cross: func(s *queueScene) { s.q.Delete(klog.Background(), pod) },
		},
		"it is updated while its failed cycle ends": {
			change: func(s *queueScene, stock *crossed, cross func()) {
				s.add(pod)
				s.activate(pod)
				info := s.pop()
				stock.done = cross
				s.fail(info)
			},
			cross: func(s *queueScene) { s.update(pod, labelled(pod)) },
			gated: 1,
		},
		"it is updated when it is about to be bound": {
			change: func(s *queueScene, stock *crossed, cross func()) {
				s.add(pod)
				s.activate(pod)
				s.pop()
				stock.done = cross
				s.q.Done(pod.UID)
			},
			cross: func(s *queueScene) { s.update(pod, labelled(pod)) },
		},
		"it joins a gang when it is popped, and the gang is activated": {
			change: func(s *queueScene, stock *crossed, cross func()) {
				s.add(plain)
				stock.popped = cross
				s.pop()
				s.activate(pod)
			},
			cross: func(s *queueScene) { s.update(plain, pod) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newQueueScene(t)
			stock := &crossed{s.stock, func() {}, func() {}, func() {}}
			s.q.SchedulingQueue = stock
			ended := make(chan struct{})
			tc.change(s, stock, sync.OnceFunc(func() {
				go func() {
					tc.cross(s)
					close(ended)
				}()
				select {
				case <-ended:
				case <-time.After(50 * time.Millisecond): // it waits for the change
				}
			}))
			<-ended
			s.is(tc.gated)
		})
	}
}
