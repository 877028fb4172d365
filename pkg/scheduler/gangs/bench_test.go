// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/backfill"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

var benchStart = time.Unix(1_000_000, 0)

// newBenchRegistry returns a synced Registry without gangs.
func newBenchRegistry() *Registry {
	r := New()
	r.Configure(Options{RepairTimeout: 30 * time.Second})
	r.AddProfile(wrappers.SchedulerName)
	return r
}

// benchPod returns a waiting pod of the gang.
func benchPod(gang string, i int) *wrappers.PodWrapper {
	name := fmt.Sprintf("%s-%05d", gang, i)
	return wrappers.MakePod(name, "ml").UID(name).Gang(gang).GPUs(1).Controller("Job", gang, gang).
		CreationTimestamp(benchStart.Add(time.Duration(i) * time.Millisecond))
}

// fill adds n waiting pods of a gang that needs minMember of them.
func fill(r *Registry, gang string, n, minMember int) []*corev1.Pod {
	r.SetGroup(wrappers.MakePodGroup(gang, "ml").UID("uid-"+gang).MinMember(int32(minMember)).Obj(), benchStart)
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = benchPod(gang, i).Obj()
		r.SetPod(pods[i], benchStart)
	}
	return pods
}

// BenchmarkEvent measures one pod event in gangs of different sizes.
func BenchmarkEvent(b *testing.B) {
	for _, n := range []int{1000, 5000, 20000} {
		// The condition of a pod of an incomplete gang changes.
		b.Run(fmt.Sprintf("waiting/%d", n), func(b *testing.B) {
			r := newBenchRegistry()
			pods := fill(r, "g", n, n+1)
			r.SetSynced(benchStart)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.SetPod(pods[i%n], benchStart)
				i++
			}
		})
		// The condition of a pod of an admitted gang changes.
		b.Run(fmt.Sprintf("bound/%d", n), func(b *testing.B) {
			r := newBenchRegistry()
			r.SetGroup(wrappers.MakePodGroup("g", "ml").UID("uid-g").MinMember(int32(n)).Obj(), benchStart)
			pods := make([]*corev1.Pod, n)
			for i := range pods {
				pods[i] = benchPod("g", i).Node("n").Obj()
				r.SetPod(pods[i], benchStart)
			}
			r.SetSynced(benchStart)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.SetPod(pods[i%n], benchStart)
				i++
			}
		})
		// A pod of a waiting gang is deleted and created again: each time a leader is elected.
		b.Run(fmt.Sprintf("replaced/%d", n), func(b *testing.B) {
			r := newBenchRegistry()
			pods := fill(r, "g", n, n)
			r.SetSynced(benchStart)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.RemovePod(pods[i%n].UID, benchStart)
				r.SetPod(pods[i%n], benchStart)
				i++
			}
		})
	}
}

// waitingGangs returns a Registry with n gangs of two pods whose leaders were refused, and their leaders.
func waitingGangs(n int) (*Registry, []*corev1.Pod) {
	r := newBenchRegistry()
	var leaders []*corev1.Pod
	for i := range n {
		leaders = append(leaders, fill(r, fmt.Sprintf("g%04d", i), 2, 2)[0])
	}
	r.SetSynced(benchStart)
	for _, pod := range leaders {
		r.MayEnterQueue(pod)
		r.BeginAttempt(pod)
		r.RecordGangRefused(keyOf(pod), podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs}, Wait{}, benchStart)
	}
	return r, leaders
}

// bindingGangs returns a Registry with n gangs of four pods whose plans are in force. Half of their bindings are
// posted and observed.
func bindingGangs(n int) *Registry {
	r := newBenchRegistry()
	var gangs [][]*corev1.Pod
	for i := range n {
		gangs = append(gangs, fill(r, fmt.Sprintf("p%04d", i), 4, 4))
	}
	r.SetSynced(benchStart)
	for _, pods := range gangs {
		r.MayEnterQueue(pods[0])
		work, why := r.BeginAttempt(pods[0])
		if work == nil {
			panic(why)
		}
		plan, why := r.CommitPlan(work, placementsOfAll(work), benchStart)
		if plan == nil {
			panic(why)
		}
		for _, p := range pods {
			if err := r.AssumeMember(p.UID, "n1", benchStart); err != nil {
				panic(err)
			}
		}
		for _, p := range pods {
			if _, err := r.recordArrival(p.UID); err != nil {
				panic(err)
			}
		}
		for _, p := range pods[:2] {
			r.RecordPosted(p.UID, benchStart)
			shown := p.DeepCopy()
			shown.Spec.NodeName = "n1"
			shown.Annotations[v2alpha2.BoundForAnnotation] = r.SignedMark(plan, shown.UID)
			r.SetPod(shown, benchStart)
		}
	}
	return r
}

// placementsOfAll places all waiting pods of a PodGroup without sub-groups on one node.
func placementsOfAll(work *Work) []placement.Placement {
	var out []placement.Placement
	for _, p := range work.Problem.Pods[""] {
		out = append(out, placement.Placement{Pod: p, Node: "n1"})
	}
	return out
}

func BenchmarkPass(b *testing.B) {
	for _, n := range []int{1000, 20000} {
		r := newBenchRegistry()
		pods := fill(r, "g", n, n)
		r.SetSynced(benchStart)
		b.Run(fmt.Sprintf("held/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.MayEnterQueue(pods[1+i%(n-1)])
				i++
			}
		})
		b.Run(fmt.Sprintf("leader/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.MayEnterQueue(pods[0])
				r.ranks.Delete(pods[0].UID)
			}
		})
	}
}

func BenchmarkYields(b *testing.B) {
	r, leaders := waitingGangs(2000)
	now := benchStart
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		// Nothing has changed: no gang yields.
		r.MustYield(leaders[i%len(leaders)], now)
		i++
	}
}

func BenchmarkTick(b *testing.B) {
	b.Run("2000 waiting", func(b *testing.B) {
		r, _ := waitingGangs(2000)
		b.ReportAllocs()
		for b.Loop() {
			r.Tick(benchStart.Add(time.Second))
		}
	})
	b.Run("500 plans", func(b *testing.B) {
		r := bindingGangs(500)
		b.ReportAllocs()
		for b.Loop() {
			r.Tick(benchStart.Add(time.Second))
		}
	})
}

// fullNodes are 5,000 nodes with 8 pods each. It implements PodsOnNodes.
type fullNodes []*corev1.Pod

func (n fullNodes) VisitPods(visit func(int, *corev1.Pod)) {
	for id, pod := range n {
		visit(id, pod)
	}
}

func (n fullNodes) ExtendedAmounts() func(int) int64 { return func(int) int64 { return 1 } }

// BenchmarkBesidePromises measures an event, a tick and room that becomes free while 2,000 gangs wait: none of them is
// promised room, or four are, on 128 nodes each.
func BenchmarkBesidePromises(b *testing.B) {
	var nodes fullNodes
	for i := range 40_000 {
		name := fmt.Sprintf("running-%d", i)
		nodes = append(nodes, wrappers.MakePod(name, "ml").UID(name).Node(fmt.Sprintf("n%04d", i/8)).GPUs(1).Obj())
	}
	for _, promised := range []int{0, 4} {
		r, leaders := waitingGangs(2000)
		now := benchStart.Add(10 * time.Minute)
		r.opts.Amount = func(*corev1.Pod) reservations.Amount { return reservations.Amount{Pods: 1} }
		if promised > 0 {
			r.opts.ReservationAfter, r.opts.ReservationTimeout = 5*time.Minute, time.Hour
			r.opts.MaxReservations = MaxReservations{OfPriority: promised, OfNamespace: promised, InAll: promised}
		}
		for _, leader := range leaders[:promised] {
			r.tryForPromise(r.gangs[keyOf(leader)])
			r.Tick(now)
			r.MayEnterQueue(leader)
			w, why := r.BeginAttempt(leader)
			if w == nil {
				b.Fatal(why)
			}
			search := r.BeginPromise(w, nodes, now)
			if search == nil || len(search.Pods) != len(nodes) {
				b.Fatal("the gang is promised nothing")
			}
			p := &backfill.Promise{}
			for i := range 128 {
				p.Plan, p.Behind = append(p.Plan, placement.Placement{Node: nodes[8*i].Spec.NodeName}), append(p.Behind, 8*i)
			}
			r.RecordPromise(w, search, p, false, now)
			r.RecordGangRefused(w.Gang, podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs}, Wait{}, now)
		}
		if len(r.promised) != promised {
			b.Fatalf("%d gangs are promised room, want %d", len(r.promised), promised)
		}
		b.Run(fmt.Sprintf("%d/event", promised), func(b *testing.B) {
			i := 0
			for b.Loop() {
				r.SetPod(leaders[i%len(leaders)], now)
				i++
			}
		})
		b.Run(fmt.Sprintf("%d/tick", promised), func(b *testing.B) {
			for b.Loop() {
				r.Tick(now)
			}
		})
		b.Run(fmt.Sprintf("%d/room", promised), func(b *testing.B) {
			for b.Loop() {
				r.RecordRoomGrowth()
				r.RetryWaiting(nil, nil, now)
			}
		})
		b.Run(fmt.Sprintf("%d/view", promised), func(b *testing.B) {
			for b.Loop() {
				r.Reservations()
			}
		})
	}
}

func BenchmarkPartial(b *testing.B) {
	b.Run("2000 waiting", func(b *testing.B) {
		r, _ := waitingGangs(2000)
		b.ReportAllocs()
		for b.Loop() {
			r.NeedsRelease()
			r.PodsToRelease(time.Second, true)
		}
	})
	b.Run("500 plans", func(b *testing.B) {
		r := bindingGangs(500)
		b.ReportAllocs()
		for b.Loop() {
			r.NeedsRelease()
			r.PodsToRelease(time.Second, true)
		}
	})
}

// BenchmarkFacts measures a call of Facts, and the part of it during which the lock is held.
func BenchmarkFacts(b *testing.B) {
	r := newBenchRegistry()
	fill(r, "g", 20000, 20000)
	r.SetSynced(benchStart)
	key := Key{Namespace: "ml", Name: "g"}
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Facts(key)
		}
	})
	b.Run("locked", func(b *testing.B) {
		b.ReportAllocs()
		var buffer []row
		for b.Loop() {
			r.facts(key, &buffer)
		}
	})
}

// BenchmarkFactsOfBoundPods measures Facts of a gang of 10,000 bound pods, which names a topology level or none.
func BenchmarkFactsOfBoundPods(b *testing.B) {
	for name, spec := range map[string]func(*v2alpha2.PodGroupSpec){"none": func(*v2alpha2.PodGroupSpec) {}, "level": preferRack} {
		b.Run(name, func(b *testing.B) {
			r := newBenchRegistry()
			r.SetGroup(wrappers.MakePodGroup("g", "ml").UID("uid-g").MinMember(10_000).Spec(spec).Obj(), benchStart)
			for i := range 10_000 {
				r.SetPod(benchPod("g", i).Node(fmt.Sprintf("node-%d", i/8)).Obj(), benchStart)
			}
			r.SetSynced(benchStart)
			b.ReportAllocs()
			for b.Loop() {
				r.Facts(Key{Namespace: "ml", Name: "g"})
			}
		})
	}
}

func BenchmarkBegin(b *testing.B) {
	r := newBenchRegistry()
	pods := fill(r, "g", 20000, 20000)
	r.SetSynced(benchStart)
	r.MayEnterQueue(pods[0])
	b.ReportAllocs()
	for b.Loop() {
		if work, why := r.BeginAttempt(pods[0]); work == nil {
			b.Fatal(why)
		}
	}
}

// BenchmarkBeginBesideBoundPods measures BeginAttempt for one more pod of a gang of 10,000 bound pods that names a
// topology level.
func BenchmarkBeginBesideBoundPods(b *testing.B) {
	r := newBenchRegistry()
	r.SetGroup(wrappers.MakePodGroup("g", "ml").UID("uid-g").MinMember(10_001).Spec(preferRack).Obj(), benchStart)
	for i := range 10_000 {
		r.SetPod(benchPod("g", i).Node(fmt.Sprintf("node-%d", i/8)).Obj(), benchStart)
	}
	last := benchPod("g", 10_000).Obj()
	r.SetPod(last, benchStart)
	r.SetSynced(benchStart)
	r.MayEnterQueue(last)
	b.ReportAllocs()
	for b.Loop() {
		if work, why := r.BeginAttempt(last); work == nil || len(work.Problem.Nodes[""]) != 1250 {
			b.Fatal(why)
		}
	}
}

// BenchmarkBurst measures a gang of that many pods from its plan to its last binding.
func BenchmarkBurst(b *testing.B) {
	const n = 5000
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		r := newBenchRegistry()
		pods := fill(r, "g", n, n)
		r.SetSynced(benchStart)
		b.StartTimer()
		r.MayEnterQueue(pods[0])
		work, why := r.BeginAttempt(pods[0])
		if work == nil {
			b.Fatal(why)
		}
		plan, why := r.CommitPlan(work, placementsOfAll(work), benchStart)
		if plan == nil {
			b.Fatal(why)
		}
		if err := r.AssumeMember(pods[0].UID, "n1", benchStart); err != nil {
			b.Fatal(err)
		}
		for next := r.NextMember(); next != nil; next = r.NextMember() {
			if err := r.AssumeMember(next.UID, "n1", benchStart); err != nil {
				b.Fatal(err)
			}
		}
		for _, p := range pods {
			if _, err := r.recordArrival(p.UID); err != nil {
				b.Fatal(err)
			}
		}
		for _, p := range pods {
			r.RecordPosted(p.UID, benchStart)
			shown := *p
			shown.Spec.NodeName = "n1"
			shown.Annotations = map[string]string{v2alpha2.PodGroupAnnotation: "g", v2alpha2.BoundForAnnotation: r.SignedMark(plan, shown.UID)}
			r.SetPod(&shown, benchStart)
		}
		if !r.gangs[Key{Namespace: "ml", Name: "g"}].admitted {
			b.Fatal("not admitted")
		}
	}
}
