// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

// podsOfNode is the capacity of a node.
const podsOfNode = 8

// largePreemption is a full cluster on which the gang high takes the room of the gang low, pod for pod.
type largePreemption struct {
	t         testing.TB
	r         *Registry
	now       time.Time
	low, high []*corev1.Pod
	group     *v2alpha2.PodGroup // of high
	leader    *corev1.Pod
	marks     func(*evictions.Eviction) error // marks the victims; nil: it succeeds
	meanwhile func()                          // happens during a search for victims; nil: nothing
	evictions []*evictions.Eviction
	unmarked  []*evictions.Eviction
	on        map[string]map[types.UID]bool // the pods on each node
	took      map[string]time.Duration      // by step
}

// perPod is how long the marking, and the deletion, of a victim take.
const perPod = 18 * time.Millisecond

func newLargePreemption(t testing.TB, pods int) *largePreemption {
	l := &largePreemption{t: t, r: New(), now: benchStart, on: map[string]map[types.UID]bool{}, took: map[string]time.Duration{}}
	l.r.Configure(Options{
		RepairTimeout: 30 * time.Second, PreemptionTimeout: 30 * time.Second,
		Amount: func(*corev1.Pod) reservations.Amount {
			return reservations.Amount{Pods: 1, Resources: map[corev1.ResourceName]int64{"nvidia.com/gpu": 1}}
		},
	})
	l.r.AddProfile(wrappers.SchedulerName)
	l.r.SetKeys(testKeys, l.now)
	l.r.SetGroup(wrappers.MakePodGroup("low", "ml").UID("low").Generation(1).MinMember(int32(pods)).Obj(), l.now)
	for i := range pods {
		pod := benchPod("low", i).Node(nodeOf(i)).Obj()
		l.low = append(l.low, pod)
		l.place(pod.UID, nodeOf(i))
		l.r.SetPod(pod, l.now)
	}
	l.apply(l.r.SetSynced(l.now))
	l.r.SetLeading()
	l.r.AbandonedEvictions(nil, l.now)
	l.group = wrappers.MakePodGroup("high", "ml").UID("high").Generation(1).MinMember(int32(pods)).Obj()
	l.apply(l.r.SetGroup(l.group, l.now))
	for i := range pods {
		pod := benchPod("high", i).Priority(100).Obj()
		l.high = append(l.high, pod)
		l.apply(l.r.SetPod(pod, l.now))
	}
	return l
}

func nodeOf(i int) string { return fmt.Sprintf("n%05d", i/podsOfNode) }

func (l *largePreemption) place(uid types.UID, node string) {
	if l.on[node] == nil {
		l.on[node] = map[types.UID]bool{}
	}
	l.on[node][uid] = true
}

func (l *largePreemption) apply(e Effects) {
	for _, pod := range e.Activate {
		if ok, _ := l.r.MayEnterQueue(pod); ok && keyOf(pod).Name == "high" {
			l.leader = pod
		}
	}
	for _, p := range e.Mark {
		var err error
		if l.marks != nil {
			err = l.marks(p)
		}
		l.now = l.now.Add(time.Duration(len(l.low)) * perPod) // on a slow API server
		l.apply(l.r.Tick(l.now))
		l.measure("mark", func() { l.apply(l.r.RecordMarked(p, err, l.now)) })
	}
	l.evictions, l.unmarked = append(l.evictions, e.Evict...), append(l.unmarked, e.Unmark...)
}

// measure adds the CPU time of a part of a step.
func (l *largePreemption) measure(step string, do func()) {
	start := cpuTime()
	do()
	l.took[step] += cpuTime() - start
}

// cpuTime returns the CPU time of the process: on a machine with other load the elapsed time is not meaningful.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// attempt begins an attempt of the gang.
func (l *largePreemption) attempt() *Work {
	l.t.Helper()
	if l.leader == nil {
		l.t.Fatal("the gang is not tried again")
	}
	l.r.RecordPopped(l.leader.UID)
	work, why := l.r.BeginAttempt(l.leader)
	if work == nil {
		l.t.Fatal(why)
	}
	return work
}

// decide does what the plugin does after an attempt without a plan: all pods of the other gang are to end.
func (l *largePreemption) decide(want NextPreemptionStep) {
	l.t.Helper()
	work := l.attempt()
	if step, _ := l.r.NextPreemptionStep(work, l.now); step != want {
		l.t.Fatalf("the next step is %d, want %d", step, want)
	}
	var c Candidates
	l.measure("candidates", func() {
		c = l.r.Candidates(work, RunningPods{Pods: l.low, Amount: func(int) int64 { return 1 }}, want == PreemptConfirm, l.now)
	})
	if len(c.Workloads) != 1 {
		l.t.Fatalf("%d candidates, %d protected, want one gang", len(c.Workloads), c.Protected)
	}
	if l.meanwhile != nil {
		l.meanwhile()
	}
	ids := make([]int, len(l.low))
	for i := range ids {
		ids[i] = i
	}
	d := &preemption.Decision{Victims: []preemption.Victim{{Pods: ids}}, Plan: l.planOf(work)}
	l.measure("record", func() {
		l.apply(l.r.RecordPreemption(work, Preempting{ID: "plan", Victims: c.Victims(d, l.low), Placements: d.Plan}, l.now))
	})
	uid := l.leader.UID
	l.leader = nil
	l.apply(l.r.RecordGangRefused(work.Gang, podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs}, Wait{Topics: []Topic{Anything}}, l.now))
	l.r.RecordCycleFailed(uid, l.now)
	for range 2 { // the first time the victims are marked
		l.measure("status", func() {
			f, _ := l.r.Facts(work.Gang)
			l.group = l.group.DeepCopy()
			l.group.Status = podgroup.Status(f, metav1.NewTime(l.now))
			l.apply(l.r.SetGroup(l.group, l.now))
		})
	}
}

// planOf returns a plan for all pods.
func (l *largePreemption) planOf(work *Work) []placement.Placement {
	var plan []placement.Placement
	for i, pod := range work.Required().Pods[""] {
		plan = append(plan, placement.Placement{Pod: pod, Node: nodeOf(i)})
	}
	if len(plan) != len(l.high) {
		l.t.Fatalf("a plan for %d pods, want %d", len(plan), len(l.high))
	}
	return plan
}

// evict ends all victims. meanwhile is called a few times.
func (l *largePreemption) evict(meanwhile func()) {
	l.t.Helper()
	if len(l.evictions) != 1 || len(l.evictions[0].Victims) != len(l.low) {
		l.t.Fatalf("%d evictions, want one of all pods", len(l.evictions))
	}
	for i := range l.low {
		l.measure("terminating", func() {
			pod := l.low[i].DeepCopy()
			pod.DeletionTimestamp = &metav1.Time{Time: l.now}
			l.apply(l.r.SetPod(pod, l.now))
		})
	}
	l.now = l.now.Add(time.Duration(len(l.low)) * perPod) // longer than a victim has to end
	l.apply(l.r.Tick(l.now))
	l.measure("evicted", func() { l.apply(l.r.RecordEvicted(l.evictions[0], nil, l.now)) })
	for i, pod := range l.low {
		if i%(len(l.low)/4) == 1 {
			meanwhile()
		}
		delete(l.on[nodeOf(i)], pod.UID)
		l.measure("gone", func() { l.apply(l.r.RemovePod(pod.UID, l.now)) })
		l.measure("view", func() { l.r.Reservations() })
	}
	l.apply(l.r.RetryWaiting([]Shape{l}, []Topic{Anything}, l.now))
}

// FittingPods implements Shape.
func (l *largePreemption) FittingPods() int { return len(l.high) }

// bind binds the gang. meanwhile is called a few times.
func (l *largePreemption) bind(meanwhile func()) {
	l.t.Helper()
	work := l.attempt()
	plan := l.planOf(work)
	l.measure("commit", func() {
		if p, why := l.r.CommitPlan(work, plan, l.now); p == nil {
			l.t.Fatal(why)
		}
	})
	for i, x := range plan {
		uid := types.UID(x.Pod.ID)
		l.measure("assume", func() {
			if err := l.r.AssumeMember(uid, x.Node, l.now); err != nil {
				l.t.Fatal(err)
			}
			if err := l.r.PermitMember(uid); err != nil {
				l.t.Fatal(err)
			}
		})
		l.place(uid, x.Node)
		l.measure("view", func() { l.r.Reservations() })
		if i%(len(plan)/4) == 1 {
			meanwhile()
		}
	}
	for _, x := range plan {
		if _, err := l.r.recordArrival(types.UID(x.Pod.ID)); err != nil {
			l.t.Fatal(err)
		}
	}
	for _, x := range plan {
		l.measure("post", func() { l.apply(l.r.RecordPosted(types.UID(x.Pod.ID), l.now)) })
	}
}

// wantNoRoom checks that the cluster has no room for others of the same priority.
func (l *largePreemption) wantNoRoom() {
	l.t.Helper()
	rival, view := reservations.Asker{Gang: Key{Namespace: "ml", Name: "rival"}, Priority: 100}, l.r.Reservations()
	for i := 0; i < len(l.high); i += podsOfNode {
		node := nodeOf(i)
		free := podsOfNode - len(l.on[node])
		for _, x := range view.On(node) {
			if x.Restricts(rival) {
				rest := x.Rest(func(uid types.UID) bool { return l.on[node][uid] })
				if rest.Pods != rest.Resources["nvidia.com/gpu"] {
					l.t.Fatalf("of %s %d pods and %v are reserved", node, rest.Pods, rest.Resources)
				}
				free -= int(rest.Pods)
			}
		}
		if free != 0 {
			l.t.Fatalf("others have room for %d pods on %s, want none: %d pods are there, %d are reserved", free, node, len(l.on[node]), len(view.On(node)))
		}
	}
}

// A gang of any size has the room of the victims of its preemption to itself, until it is bound.
func TestRoomOfALargePreemptor(t *testing.T) {
	t.Parallel()
	l := newLargePreemption(t, 20_000)
	l.decide(PreemptDecide)
	l.wantNoRoom()
	l.decide(PreemptConfirm)
	l.wantNoRoom()
	l.evict(l.wantNoRoom)
	l.wantNoRoom()
	l.bind(l.wantNoRoom)
	if n := l.r.Reservations().Len(); n > 0 {
		t.Errorf("%d reservations are left", n)
	}
	if g := l.r.gangs[keyOf(l.high[0])]; !g.admitted || g.preemption != nil {
		t.Errorf("admitted: %t, preemption: %v", g.admitted, g.preemption)
	}
}

// BenchmarkLargePreemption measures the steps of a preemption that ends as many pods as the preemptor has, but for the
// search.
func BenchmarkLargePreemption(b *testing.B) {
	for _, n := range []int{2500, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			took := map[string]time.Duration{}
			for b.Loop() {
				b.StopTimer()
				l := newLargePreemption(b, n)
				b.StartTimer()
				l.decide(PreemptDecide)
				l.decide(PreemptConfirm)
				l.evict(func() {})
				l.bind(func() {})
				for step, d := range l.took {
					took[step] += d
				}
			}
			for step, d := range took {
				b.ReportMetric(float64(d.Nanoseconds())/float64(b.N)/float64(n), step+"-cpu-ns/pod")
			}
		})
	}
}
