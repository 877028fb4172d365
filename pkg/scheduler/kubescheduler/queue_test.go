// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/muster-project/muster/test/wrappers"
)

// queueScene is a Queue in front of a real stock queue. Pods with the annotation of a gang are gated.
type queueScene struct {
	t      *testing.T
	q      *Queue
	stock  *queue.PriorityQueue
	events []string

	waiting, gone []string // the calls of the hooks
}

func newQueueScene(t *testing.T) *queueScene {
	t.Helper()
	metrics.Register()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := &queueScene{t: t, stock: queue.NewTestQueue(ctx, func(a, b fwk.QueuedPodInfo) bool {
		return a.GetPodInfo().GetPod().Name < b.GetPodInfo().GetPod().Name
	})}
	gated := func(pod *corev1.Pod) bool { return pod.Annotations["pod-group-name"] != "" }
	s.q = NewQueue(s.stock, QueueHooks{
		Gated:        gated,
		Observe:      func(e fwk.ClusterEvent, _, _ any) { s.events = append(s.events, e.Label()) },
		WaitsForRoom: func(pod *corev1.Pod) bool { s.waiting = append(s.waiting, pod.Name); return true },
		Gone:         func(uid types.UID) { s.gone = append(s.gone, string(uid)) },
	})
	return s
}

func (s *queueScene) add(pods ...*corev1.Pod) {
	for _, pod := range pods {
		s.q.Add(s.t.Context(), pod)
	}
}

func (s *queueScene) activate(pod *corev1.Pod) {
	s.q.Activate(klog.Background(), map[string]*corev1.Pod{pod.Namespace + "/" + pod.Name: pod})
}

func (s *queueScene) pop() *framework.QueuedPodInfo {
	s.t.Helper()
	info, err := s.q.Pop(klog.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

func (s *queueScene) fail(info *framework.QueuedPodInfo) {
	s.t.Helper()
	info.UnschedulablePlugins = sets.New("GangAdmission")
	if err := s.q.AddUnschedulableIfNotPresent(klog.Background(), info, s.q.SchedulingCycle()); err != nil {
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

func TestMemberIsPoppedByName(t *testing.T) {
	s := newQueueScene(t)
	s.add(plainPod("a-plain"), gangPod("b"))
	if info := s.q.PopSpecificPod(klog.Background(), gangPod("b")); info == nil || info.Pod.Name != "b" {
		t.Fatalf("popped %v, want b", info)
	}
	s.is(0, "a-plain")
	if info := s.q.PopSpecificPod(klog.Background(), gangPod("unknown")); info != nil {
		t.Errorf("popped %v, want nothing for an unknown pod", info)
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

func TestUpdatesReachThePodWhereverItIs(t *testing.T) {
	labelled := func(pod *corev1.Pod) *corev1.Pod {
		pod = pod.DeepCopy()
		pod.Labels = map[string]string{"new": "yes"}
		return pod
	}
	t.Run("gated", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		s.q.Update(t.Context(), gangPod("a"), labelled(gangPod("a")))
		s.activate(gangPod("a"))
		if info := s.pop(); info.Pod.Labels["new"] != "yes" {
			t.Error("popped an old version of the pod")
		}
	})
	t.Run("activated", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		s.activate(gangPod("a"))
		s.q.Update(t.Context(), gangPod("a"), labelled(gangPod("a")))
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
		s.q.Update(t.Context(), gangPod("a"), labelled(gangPod("a")))
		s.is(0)
		s.fail(info)
		s.is(1)
	})
	t.Run("it joins a gang while it is queued", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(plainPod("a"))
		s.q.Update(t.Context(), plainPod("a"), gangPod("a"))
		s.is(1)
	})
	t.Run("it joins a gang in its cycle", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(plainPod("a"))
		info := s.pop()
		s.q.Update(t.Context(), plainPod("a"), gangPod("a"))
		s.is(0)
		info.Pod = gangPod("a") // the failure handler reads the latest version
		s.fail(info)
		s.is(1)
	})
	t.Run("it leaves its gang while it is gated", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		s.q.Update(t.Context(), gangPod("a"), plainPod("a"))
		s.is(0, "a")
	})
	t.Run("it leaves its gang while it is queued", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		s.activate(gangPod("a"))
		s.q.Update(t.Context(), gangPod("a"), plainPod("a"))
		s.is(0, "a")
	})
	t.Run("recreated under its name", func(t *testing.T) {
		s := newQueueScene(t)
		s.add(gangPod("a"))
		next := gangPod("a")
		next.UID = "next"
		s.q.Update(t.Context(), gangPod("a"), next)
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
	info := s.q.PopSpecificPod(klog.Background(), gangPod("c"))
	for _, pod := range []*corev1.Pod{plainPod("p"), gangPod("a"), gangPod("b"), gangPod("c")} {
		s.q.Delete(pod)
	}
	s.q.Done(info.Pod.UID)
	s.is(0)
	if n := len(s.q.entered) + len(s.q.cycling) + len(s.q.waiting); n != 0 {
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
		if err := s.q.AddUnschedulableIfNotPresent(klog.Background(), info, s.q.SchedulingCycle()); err != nil {
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

func TestNominationOfAGatedPodGoesWithIt(t *testing.T) {
	s := newQueueScene(t)
	pod := gangPod("a")
	pod.Status.NominatedNodeName = "n" // for example by an autoscaler
	s.stock = queue.NewTestQueueWithObjects(t.Context(), func(a, b fwk.QueuedPodInfo) bool { return false }, []runtime.Object{pod})
	s.q.SchedulingQueue = s.stock
	s.add(pod)
	s.activate(pod)
	info := s.pop()
	if got := len(s.stock.NominatedPodsForNode("n")); got != 1 {
		t.Fatalf("%d pods are nominated in the cycle, want 1", got)
	}
	s.fail(info)
	s.q.Delete(pod)
	if got := len(s.stock.NominatedPodsForNode("n")); got != 0 {
		t.Errorf("%d pods are nominated, want none: the pod is gone", got)
	}
}

func TestPodThatWentWhileItsCycleFailedIsNotKept(t *testing.T) {
	s := newQueueScene(t)
	stays := gangPod("b")
	c := newCluster(t, stays)
	for _, pod := range []*corev1.Pod{gangPod("a"), stays} {
		s.add(pod)
		s.activate(pod)
		info := s.pop()
		if pod != stays {
			s.q.Delete(pod) // its failed cycle has read it before
		}
		s.fail(info)
		s.q.forgetGonePod(c.f, pod)
	}
	s.is(1)
}
