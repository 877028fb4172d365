// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/backfill"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

// large returns a cluster of n nodes with 8 GPUs, 16 to a rack. The nodes are added to the scheduler's cache
// directly.
func large(tb testing.TB, n int, objects ...runtime.Object) *cluster {
	tb.Helper()
	c := newCluster(tb, objects...)
	for i := range n {
		c.sched.Cache.AddNode(klog.FromContext(c.ctx), wrappers.MakeNode(fmt.Sprintf("n%05d", i)).GPUs(8).
			Label("rack", fmt.Sprintf("r%d", i/16)).Obj())
	}
	c.refresh()
	return c
}

// fillNodes binds a pod with the given number of GPUs to every node for which full returns true.
func (c *cluster) fillNodes(gpus int64, full func(i int) bool) {
	for i := range c.nodes {
		if full(i) {
			name := fmt.Sprintf("running-%d", i)
			pod := wrappers.MakePod(name, "ml").UID(name).GPUs(gpus).Node(fmt.Sprintf("n%05d", i)).Obj()
			if err := c.sched.Cache.AddPod(klog.FromContext(c.ctx), pod); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	c.refresh()
}

// leaves is a gang by leaf: the pods that each leaf needs.
type leaves []leaf

type leaf struct {
	name string
	pods []*corev1.Pod
}

// flat returns a gang without sub-groups.
func flat(pods []*corev1.Pod) leaves { return leaves{{"", pods}} }

// members returns n pods created by the function.
func members(n int, make func(i int) *wrappers.PodWrapper) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range n {
		out = append(out, make(i).Obj())
	}
	return out
}

func worker(i int) *wrappers.PodWrapper {
	name := fmt.Sprintf("w-%d", i)
	return wrappers.MakePod(name, "ml").UID(name).Gang("g").GPUs(1).Label("app", "w")
}

// plan classifies the gang's pods, prepares a Snapshot and searches for a plan: the whole work of an attempt except the
// registry.
func (c *cluster) plan(cache *FilterCache, gangOf leaves) ([]placement.Placement, *placement.Shortfall) {
	c.t.Helper()
	p, classes := c.problem(cache, gangOf)
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, classes.options(cache))
	if err != nil {
		c.t.Fatal(err)
	}
	return placement.Minimum(p, w, placement.Budget{})
}

// options returns the options of a plan for the classes, as the admission plugin sets them.
func (c Classes) options(cache *FilterCache) Options {
	return Options{Cache: cache, Pods: c.Size, Members: c.Members, SharedClaims: c.SharedClaims, SharedVolumes: c.SharedVolumes}
}

// problem classifies the gang's pods as the admission plugin does.
func (c *cluster) problem(cache *FilterCache, gangOf leaves) (placement.Problem, Classes) {
	p := placement.Problem{Tree: treeOf(c.t, gangOf), Pods: map[string][]placement.Pod{}}
	var pods []*corev1.Pod
	var base []int
	bases := map[string]int{}
	for _, l := range gangOf {
		for _, pod := range l.pods {
			key := c.keys[pod]
			if key == "" { // the registry stores it with the pod
				key = podgroup.ClassKey(pod)
				c.keys[pod] = key
			}
			if _, known := bases[key]; !known {
				bases[key] = len(bases)
			}
			pods, base = append(pods, pod), append(base, bases[key])
		}
	}
	classes := cache.Classify(c.f, c.nodes, pods, base)
	n := 0
	for _, l := range gangOf {
		for _, pod := range l.pods {
			p.Pods[l.name] = append(p.Pods[l.name], placement.Pod{ID: string(pod.UID), Class: classes.Of[n]})
			n++
		}
	}
	return p, classes
}

func treeOf(tb testing.TB, gangOf leaves) *gang.Tree {
	tb.Helper()
	one := int32(len(gangOf))
	root := gang.Node{MinSubGroup: &one}
	var groups []gang.Node
	for _, l := range gangOf {
		n := int32(len(l.pods))
		if l.name == "" {
			root = gang.Node{MinMember: &n}
			continue
		}
		groups = append(groups, gang.Node{Name: l.name, MinMember: &n})
	}
	tree, err := gang.Build(root, groups)
	if err != nil {
		tb.Fatal(err)
	}
	return tree
}

// benchmarkPlan measures attempts that begin with an empty cache (cold), and attempts after an identical one (warm).
func benchmarkPlan(b *testing.B, c *cluster, gangOf leaves, fits bool) {
	b.Helper()
	run := func(b *testing.B, cache func() *FilterCache) {
		b.ReportAllocs()
		var cpu time.Duration
		for b.Loop() {
			start := cpuTime(b)
			if _, short := c.plan(cache(), gangOf); (short == nil) != fits {
				b.Fatalf("fits: %t, want %t", short == nil, fits)
			}
			cpu += cpuTime(b) - start
		}
		b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
	}
	b.Run("cold", func(b *testing.B) { run(b, NewFilterCache) })
	b.Run("warm", func(b *testing.B) {
		cache := NewFilterCache()
		c.plan(cache, gangOf)
		run(b, func() *FilterCache { return cache })
	})
}

// BenchmarkGangOf16 plans gangs of 16 on 5,000 nodes; before each plan the pods of the previous one are bound to
// their nodes.
func BenchmarkGangOf16(b *testing.B) {
	c := large(b, 5000)
	cache := NewFilterCache()
	g := flat(members(16, worker))
	bound := 0
	index := map[string]int{}
	for i, n := range c.nodes {
		index[n.Node().Name] = i
	}
	c.plan(cache, g)
	var cpu time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := cpuTime(b)
		plan, short := c.plan(cache, g)
		cpu += cpuTime(b) - start
		if short != nil {
			b.Fatalf("no plan: %+v", short)
		}
		b.StopTimer()
		for _, p := range plan {
			bound++
			name := fmt.Sprintf("b-%d", bound)
			n := c.nodes[index[p.Node]]
			n.AddPodInfo(podInfo(b, wrappers.MakePod(name, "ml").UID(name).GPUs(1).Node(p.Node).Obj()))
			if bound > 1600 { // the pods that were bound first finish
				ended := n.GetPods()[0].GetPod()
				if err := n.RemovePod(klog.Background(), ended); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchmarkReservations plans a gang of 16 on 5,000 nodes while there are as many reservations as possible: with the
// same as before, and after one of them has ended.
func BenchmarkReservations(b *testing.B) {
	for _, n := range []int{1024, 8192} {
		c := large(b, 5000)
		g := flat(members(16, worker))
		list := make([]reservations.Reservation, n)
		for i := range list {
			name := fmt.Sprintf("old-%d", i)
			pod := wrappers.MakePod(name, "ml").UID(name).GPUs(1).Node(fmt.Sprintf("n%05d", i/8)).Obj()
			list[i] = reservationOf(gangNamed(fmt.Sprintf("other-%d", i/1024)), "", 0, pod)
		}
		cache := NewFilterCache()
		p, classes := c.problem(cache, g)
		plan := func(reserved *reservations.View) {
			w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, Options{Cache: cache, Pods: classes.Size, Reserved: reserved, Asker: reservations.Asker{Gang: gangNamed("g")}})
			if err != nil {
				b.Fatal(err)
			}
			if _, short := placement.Minimum(p, w, placement.Budget{}); short != nil {
				b.Fatalf("no plan: %+v", short)
			}
		}
		reserved := setOf(list...)
		plan(reserved.View())
		b.Run(fmt.Sprintf("%d/same", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan(reserved.View())
			}
		})
		b.Run(fmt.Sprintf("%d/changed", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				reserved.EndOf(list[0].Pod.UID)
				reserved.Reserve(list[0], time.Now().Add(time.Hour), time.Now())
				plan(reserved.View())
			}
		})
	}
}

// BenchmarkBesidePromises measures what room that gangs are promised costs others on 5,000 nodes: the plan of a gang of
// 16, and the filters of all nodes for a pod without a gang. In turn no gang is promised room, and four are, on 128
// nodes each; "ratio" is the CPU time with to that without.
func BenchmarkBesidePromises(b *testing.B) {
	c := large(b, 5000)
	g, pod := flat(members(16, worker)), wrappers.MakePod("plain", "ml").UID("plain").GPUs(1).Obj()
	const promised = 4 * 128
	var list []reservations.Reservation
	for i := range promised {
		list = append(list, reservations.Reservation{
			Owner: reservations.Owner{Gang: gangNamed(fmt.Sprint("promised-", i/128))}.Whole(), Node: fmt.Sprintf("n%05d", i), Promised: true,
			Amount: reservations.Amount{Pods: 8, Resources: map[corev1.ResourceName]int64{wrappers.GPUResource: 8}},
		})
	}
	views := [2]*reservations.View{nil, setOf(list...).View()}
	compare := func(name string, run func(b *testing.B, with int)) {
		b.Run(name, func(b *testing.B) {
			var spent [2]time.Duration
			run(b, 0)
			run(b, 1)
			for b.Loop() {
				for with := range views {
					start := cpuTime(b)
					run(b, with)
					spent[with] += cpuTime(b) - start
				}
			}
			b.ReportMetric(float64(spent[0].Nanoseconds())/float64(b.N), "cpu-ns/without")
			b.ReportMetric(float64(spent[1].Nanoseconds())/float64(b.N), "cpu-ns/with")
			b.ReportMetric(float64(spent[1])/float64(spent[0]), "ratio")
		})
	}
	cache := NewFilterCache()
	p, classes := c.problem(cache, g)
	compare("plan", func(b *testing.B, with int) {
		w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, Options{Cache: cache, Pods: classes.Size, Reserved: views[with], Asker: reservations.Asker{Gang: gangNamed("g")}})
		if err != nil {
			b.Fatal(err)
		}
		if _, short := placement.Minimum(p, w, placement.Budget{}); short != nil {
			b.Fatalf("no plan: %+v", short)
		}
	})
	compare("pod", func(b *testing.B, with int) {
		state := framework.NewCycleState()
		if _, status, _ := c.f.RunPreFilterPlugins(c.ctx, state, pod); !status.IsSuccess() {
			b.Fatal(status)
		}
		n, uses := 0, AmountOf(pod)
		for _, node := range c.nodes {
			if c.f.RunFilterPlugins(c.ctx, state, pod, node).IsSuccess() && (with == 0 || FitsBeside(views[with], reservations.Amount{}, node, uses, reservations.Asker{})) {
				n++
			}
		}
		if n != 5000-with*promised {
			b.Fatalf("%d nodes", n)
		}
	})
}

// BenchmarkPromise chooses the room that a gang is promised, on 5,000 nodes that are full with 40,000 pods: none of
// them says how long it runs, or all do.
func BenchmarkPromise(b *testing.B) {
	c := large(b, 5000)
	now := time.Unix(1_000_000, 0)
	for i := range 40_000 {
		name := fmt.Sprintf("running-%d", i)
		if err := c.sched.Cache.AddPod(klog.Background(), wrappers.MakePod(name, "ml").UID(name).GPUs(1).Node(fmt.Sprintf("n%05d", i/8)).Obj()); err != nil {
			b.Fatal(err)
		}
	}
	c.refresh()
	for _, known := range []bool{false, true} {
		for _, size := range []int{8, 512} {
			b.Run(fmt.Sprintf("known %t/%dx8", known, size), func(b *testing.B) {
				cache := NewFilterCache()
				p, classes := c.problem(cache, flat(members(size, func(i int) *wrappers.PodWrapper { return worker(i).GPUs(8) })))
				for b.Loop() {
					w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, classes.options(cache))
					if err != nil {
						b.Fatal(err)
					}
					var pods []backfill.Pod
					amount := w.ExtendedAmounts()
					w.VisitPods(func(id int, _ *corev1.Pod) {
						x := backfill.Pod{ID: id, Amount: amount(id)}
						if known {
							x.Ends = now.Add(time.Duration(1+id*7919%40_000) * time.Second)
						}
						pods = append(pods, x)
					})
					if promise, _ := backfill.Choose(p, w, pods, now, placement.Budget{}); promise == nil || promise.Starts.IsZero() == known {
						b.Fatalf("promise %+v", promise)
					}
				}
			})
		}
	}
}

// cpuTime returns the CPU time of the process: on a machine with other load the elapsed time is not meaningful.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkIndexLabels plans a gang of 1,000 pods, each with its own index label, on 5,000 nodes.
func BenchmarkIndexLabels(b *testing.B) {
	c := large(b, 5000)
	benchmarkPlan(b, c, flat(members(1000, func(i int) *wrappers.PodWrapper {
		return worker(i).Label("training.kubeflow.org/replica-index", fmt.Sprint(i))
	})), true)
}

func subGroups(n, pods int) leaves {
	var g leaves
	for i := range n {
		name := fmt.Sprintf("leaf-%d", i)
		g = append(g, leaf{name, members(pods, func(k int) *wrappers.PodWrapper {
			return worker(i*pods+k).SubGroup(name).Label("muster.example/index", name)
		})})
	}
	return g
}

// BenchmarkTree plans trees whose leaves differ in the label of their sub-group.
func BenchmarkTree(b *testing.B) {
	c := large(b, 1000)
	b.Run("1,000 leaves of 8 that fit", func(b *testing.B) { benchmarkPlan(b, c, subGroups(1000, 8), true) })
	b.Run("1,024 leaves of 8, too many", func(b *testing.B) { benchmarkPlan(b, c, subGroups(1024, 8), false) })
	full := large(b, 1000)
	full.fillNodes(7, func(int) bool { return true })
	b.Run("256 leaves of 8 on a full cluster", func(b *testing.B) { benchmarkPlan(b, full, subGroups(256, 8), false) })
}

// BenchmarkAntiAffinity plans gangs in which all pods, or the pods of each leaf, require separate hosts.
func BenchmarkAntiAffinity(b *testing.B) {
	c := large(b, 1000)
	apart := func(i int) *wrappers.PodWrapper { return worker(i).ApartFrom(corev1.LabelHostname, "app", "w") }
	b.Run("1,000 pods on 1,000 hosts", func(b *testing.B) { benchmarkPlan(b, c, flat(members(1000, apart)), true) })
	b.Run("1,001 pods on 1,000 hosts", func(b *testing.B) { benchmarkPlan(b, c, flat(members(1001, apart)), false) })
	var g leaves
	for _, l := range subGroups(50, 4) {
		for i, pod := range l.pods {
			l.pods[i] = wrappers.MakePod(pod.Name, "ml").UID(pod.Name).Gang("g").GPUs(1).SubGroup(l.name).ApartFrom(corev1.LabelHostname, "muster.io/sub-group", l.name).Label("muster.io/sub-group", l.name).Obj()
		}
		g = append(g, l)
	}
	b.Run("50 leaves of 4", func(b *testing.B) { benchmarkPlan(b, c, g, true) })
}

// BenchmarkSpread plans a gang that a hard constraint spreads over hosts.
func BenchmarkSpread(b *testing.B) {
	c := large(b, 1000)
	benchmarkPlan(b, c, flat(members(1000, func(i int) *wrappers.PodWrapper {
		return spread(worker(i), corev1.LabelHostname, "w", 1)
	})), true)
}

// BenchmarkRack plans a leader and 127 workers that share a rack; one of 312 racks is free.
func BenchmarkRack(b *testing.B) {
	c := large(b, 312*16)
	c.fillNodes(1, func(i int) bool { return i/16 != 200 })
	g := leaves{{"leader", members(1, func(i int) *wrappers.PodWrapper {
		return worker(1000).SubGroup("leader").Label("app", "l").Label("set", "s").TogetherWith("rack", "set", "s")
	})}, {"worker", members(127, func(i int) *wrappers.PodWrapper {
		return worker(i).SubGroup("worker").Label("set", "s").TogetherWith("rack", "set", "s")
	})}}
	benchmarkPlan(b, c, g, true)
}

// BenchmarkReplica plans a leader and 127 workers that follow leaders over racks, in a cluster of 312 racks. Leaders
// with equal labels run in four racks, and one rack, or none, is free.
func BenchmarkReplica(b *testing.B) {
	leader := role{name: "leader", gpus: 1}
	worker := role{name: "worker", gpus: 1, keys: []string{"rack"}, follow: map[string]string{"role": "leader"}}
	g := leaves{{"leader", members(1, func(int) *wrappers.PodWrapper { return leader.pod("leader") })},
		{"worker", members(127, func(i int) *wrappers.PodWrapper { return worker.pod(fmt.Sprintf("worker-%d", i)) })}}
	for name, free := range map[string]int{"fits": 200, "no rack is free": -1} {
		c := large(b, 312*16)
		c.fillNodes(7, func(i int) bool { return i/16 != free })
		for i := 0; i < 312*16; i += 80 * 16 {
			if err := c.sched.Cache.AddPod(klog.FromContext(c.ctx), leader.pod(fmt.Sprintf("leader-%d", i)).Node(fmt.Sprintf("n%05d", i)).Obj()); err != nil {
				b.Fatal(err)
			}
		}
		c.refresh()
		b.Run(name, func(b *testing.B) { benchmarkPlan(b, c, g, free >= 0) })
	}
}

// BenchmarkSharedClaim plans four pods that share an unbound claim and therefore need one node.
func BenchmarkSharedClaim(b *testing.B) {
	for _, tc := range []struct {
		name string
		gpus int64
		fits bool
	}{{"fits", 2, true}, {"no node has room for all", 4, false}} {
		c := large(b, 1000, unboundClaim("shared")...)
		b.Run(tc.name, func(b *testing.B) {
			benchmarkPlan(b, c, flat(members(4, func(i int) *wrappers.PodWrapper { return worker(i).GPUs(tc.gpus).Claim("shared") })), tc.fits)
		})
	}
}

// BenchmarkVolumes plans 512 pods with a volume of their own, of which each node can attach many, beside the same gang
// without them, and pods with a local volume each.
func BenchmarkVolumes(b *testing.B) {
	const driver = "disks.example.com"
	var objects []runtime.Object
	for i := range 5000 {
		objects = append(objects, attaching(fmt.Sprintf("n%05d", i), 8, driver, 100)[1])
	}
	pods := members(512, func(i int) *wrappers.PodWrapper {
		claim := fmt.Sprintf("disk-%d", i)
		objects = append(objects, boundClaim(claim, driver, nil)...)
		return worker(i).Claim(claim)
	})
	c := large(b, 5000, objects...)
	b.Run("volumes", func(b *testing.B) { benchmarkPlan(b, c, flat(pods), true) })
	b.Run("none", func(b *testing.B) { benchmarkPlan(b, c, flat(members(512, worker)), true) })
	for _, tc := range []struct{ pods, nodes, onNode int }{{500, 100, 5}, {64, 1000, 1}, {1000, 1000, 1}} {
		objects := []runtime.Object{storageClass("on-node", "kubernetes.io/no-provisioner", storagev1.VolumeBindingWaitForFirstConsumer)}
		for i := range tc.nodes * tc.onNode {
			node := fmt.Sprintf("n%05d", i%tc.nodes)
			objects = append(objects, localVolume(fmt.Sprintf("v%d", i), "on-node", "1Gi", corev1.LabelHostname, node))
		}
		pods := members(tc.pods, func(i int) *wrappers.PodWrapper {
			claim := fmt.Sprintf("disk-%d", i)
			objects = append(objects, pendingClaim(claim, "on-node", "1Gi"))
			return worker(i).Claim(claim)
		})
		c := large(b, tc.nodes, objects...)
		b.Run(fmt.Sprintf("%d local, %d nodes with %d", tc.pods, tc.nodes, tc.onNode), func(b *testing.B) { benchmarkPlan(b, c, flat(pods), true) })
	}
}

// unboundClaim returns a claim that is bound when a pod that uses it has a node.
func unboundClaim(name string) []runtime.Object {
	class, wait := "wait", storagev1.VolumeBindingWaitForFirstConsumer
	return []runtime.Object{
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml"},
			Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
		},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "example.com/disk", VolumeBindingMode: &wait},
	}
}

// BenchmarkDevices plans a gang of 512 pods with a ResourceClaim each, on nodes with 8 devices, beside the same gang
// with extended resources.
func BenchmarkDevices(b *testing.B) {
	for _, nodes := range []int{64, 1000} {
		objects := []runtime.Object{deviceClass("gpu", "gpu.example.com", "")}
		for i := range nodes {
			node := fmt.Sprintf("n%d", i)
			objects = append(objects, wrappers.MakeNode(node).GPUs(8).Obj(), slice("gpu.example.com", node, node, deviceNames("gpu", 8)...))
		}
		claims := members(512, func(i int) *wrappers.PodWrapper {
			own := claim(fmt.Sprintf("c%d", i), resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{exactly("gpu", 1)}})
			objects = append(objects, own)
			return withClaims(classPod(fmt.Sprintf("w-%d", i)).Gang("g"), own.Name)
		})
		c := newCluster(b, objects...)
		b.Run(fmt.Sprintf("nodes=%d/claims", nodes), func(b *testing.B) { benchmarkPlan(b, c, leaves{{"", claims}}, true) })
		b.Run(fmt.Sprintf("nodes=%d/resources", nodes), func(b *testing.B) {
			benchmarkPlan(b, c, leaves{{"", members(512, worker)}}, true)
		})
	}
}

// BenchmarkExplain measures the numbers of a refusal on 5,000 nodes with eight pods each: those of the nodes, what pods
// of lower priority hold, and the reason of 100 leaders with workers, for which the nodes are imagined empty.
func BenchmarkExplain(b *testing.B) {
	c := newCluster(b)
	for i := range 5000 {
		node := wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(8).Obj()
		c.sched.Cache.AddNode(klog.Background(), node)
		for k := range 8 {
			if err := c.sched.Cache.AddPod(klog.Background(), classPod(fmt.Sprintf("p%d-%d", i, k)).GPUs(1).Node(node.Name).Obj()); err != nil {
				b.Fatal(err)
			}
		}
	}
	c.refresh()
	w := c.world(classPod("a").GPUs(8).Obj())
	b.Run("nodes", func(b *testing.B) {
		for b.Loop() {
			w.ResourceCapacity(0)
		}
	})
	b.Run("lower priority", func(b *testing.B) {
		for b.Loop() {
			w.HeldByOthers([]int{0}, "nvidia.com/gpu")
		}
	})
	var groups []gang.Node
	problem := placement.Problem{Pods: map[string][]placement.Pod{}}
	for i := range 100 {
		for class, pods := range []int32{1, 7} {
			name := fmt.Sprintf("%d-%d", i, class)
			groups = append(groups, gang.Node{Name: name, MinMember: &pods})
			for range pods {
				problem.Pods[name] = append(problem.Pods[name], placement.Pod{Class: class})
			}
		}
	}
	var err error
	if problem.Tree, err = gang.Build(gang.Node{MinSubGroup: ptr.To(int32(180))}, groups); err != nil {
		b.Fatal(err)
	}
	w = c.world(classPod("leader").GPUs(1).CPU("8").Obj(), classPod("worker").GPUs(8).CPU("8").Obj())
	_, short := placement.Minimum(problem, w, placement.Budget{})
	if short == nil {
		b.Fatal("the gang fits")
	}
	b.Run("two classes", func(b *testing.B) {
		for b.Loop() {
			podgroup.Explain(problem, w, short)
		}
	})
}

// BenchmarkFree decides which pods end for a gang on 5,000 nodes that are full with 40,000 pods of three priorities: of
// 5,000 gangs that need six of their eight pods, on two neighbouring nodes, without and with a PodDisruptionBudget for
// each gang; or of 1,000 gangs of 40 sub-groups of a pod, of which 30 are needed, on ten neighbouring nodes. The time
// is that of all that the scheduling loop does for it: the snapshot, the screening, the candidates, of which the share
// is printed, and the search.
func BenchmarkFree(b *testing.B) {
	b.Run("gangs", func(b *testing.B) { benchmarkFree(b, 8, false) })
	b.Run("budgets", func(b *testing.B) { benchmarkFree(b, 8, true) })
	b.Run("sub-groups", func(b *testing.B) { benchmarkFree(b, 40, false) })
}

// benchmarkFree has gangs of so many pods each; those of more than eight have a sub-group for each pod.
func benchmarkFree(b *testing.B, size int, budgets bool) {
	c := newCluster(b)
	for i := range 5000 {
		c.sched.Cache.AddNode(klog.Background(), wrappers.MakeNode(fmt.Sprintf("n%05d", i)).GPUs(8).Label("rack", fmt.Sprintf("r%d", i/16)).Obj())
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	registry := gangs.New()
	registry.Configure(gangs.Options{PreemptionTimeout: 30 * time.Second})
	registry.AddProfile(wrappers.SchedulerName)
	registry.SetGroup(wrappers.MakePodGroup("high", "ml").UID("high").MinMember(1).Obj(), now)
	budgetOf := map[types.UID][]int{}
	var allowed []int
	for g := range 40000 / size {
		group := fmt.Sprintf("gang-%05d", g)
		allowed = append(allowed, 1)
		made := wrappers.MakePodGroup(group, "ml").UID(group)
		if size > 8 {
			made.MinSubGroup(30)
			for p := range size {
				made.SubGroup(fmt.Sprintf("s%d", p), 1)
			}
		} else {
			made.MinMember(6)
		}
		registry.SetGroup(made.Obj(), now)
		for p := range size {
			name := fmt.Sprintf("g%d-%d", g, p)
			pod := worker(0).Gang(group).Priority(int32(g % 3)).Obj()
			pod.Name, pod.UID, pod.Spec.NodeName = name, types.UID(name), fmt.Sprintf("n%05d", (g*size/8+p%max(2, size/4))%5000)
			if size > 8 {
				pod.Labels[v2alpha2.SubGroupLabel] = fmt.Sprintf("s%d", p)
			}
			if budgets {
				budgetOf[pod.UID] = []int{g}
			}
			pod.Status.StartTime = &metav1.Time{Time: now.Add(-time.Duration(g%97) * time.Second)}
			if err := c.sched.Cache.AddPod(klog.Background(), pod); err != nil {
				b.Fatal(err)
			}
			registry.SetPod(pod, now)
		}
	}
	registry.SetSynced(now)
	c.refresh()
	for _, bc := range []struct {
		name     string
		pods     int
		gpus     int64
		priority int32
		decided  bool
	}{
		{"64x1", 64, 1, 100, true}, {"32x8", 32, 8, 100, true}, {"1000x1", 1000, 1, 100, true}, {"20000x1", 20000, 1, 100, true},
		{"hopeless", 64, 9, 100, false}, {"hopeless beside two thirds", 64, 8, 1, false},
		{"64x1 in a rack", 64, 1, 100, true}, {"16x8 in a rack", 16, 8, 100, true}, {"hopeless in a rack", 160, 1, 100, false},
	} {
		b.Run(bc.name, func(b *testing.B) {
			g := flat(members(bc.pods, func(i int) *wrappers.PodWrapper { return worker(i).GPUs(bc.gpus) }))
			preemptor := gangs.Work{Gang: gangs.Key{Namespace: "ml", Name: "high"}, EvictionPriority: bc.priority}
			cache := NewFilterCache()
			var cpu, collecting time.Duration
			var d *preemption.Decision
			decide := func() {
				start := cpuTime(b)
				p, classes := c.problem(cache, g)
				if strings.HasSuffix(bc.name, "rack") {
					p.Required = map[string]string{"": "rack"}
				}
				w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, classes.options(cache))
				if err != nil {
					b.Fatal(err)
				}
				holders, pods := w.Holders()
				if w.MayFitWithout(p, registry.ScreenHolders(&preemptor, holders, pods, now).MayEnd) {
					collects := cpuTime(b)
					var running []*corev1.Pod
					w.VisitPods(func(_ int, pod *corev1.Pod) { running = append(running, pod) })
					candidates := registry.Candidates(&preemptor, gangs.RunningPods{
						Pods: running, Amount: w.ExtendedAmounts(), Budgets: func(id int) []int { return budgetOf[running[id].UID] },
					}, false, now)
					collecting += cpuTime(b) - collects
					if len(candidates.Workloads) != 40000/size {
						b.Fatalf("%d candidates", len(candidates.Workloads))
					}
					d, _ = preemption.FindVictims(preemption.Input{Problem: p, Workloads: candidates.Workloads, Allowed: allowed}, w, preemption.Budget{})
				}
				cpu += cpuTime(b) - start
			}
			decide() // what is kept between plans is known
			cpu, collecting = 0, 0
			b.ReportAllocs()
			for b.Loop() {
				decide()
			}
			if (d != nil) != bc.decided {
				b.Fatal("the result is not as expected")
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(collecting.Nanoseconds())/float64(b.N), "candidates-cpu-ns/op")
			if d != nil {
				b.ReportMetric(float64(d.Cost.Amount)/float64(int64(bc.pods)*bc.gpus), "victims/GPU")
			}
		})
	}
}

// BenchmarkAreas measures, on 5,000 nodes in 312 racks, what a plan asks before it places pods: the racks and the room
// for a class in each. Then one pod is placed and taken back in each rack, and in any, beside as many confined classes.
func BenchmarkAreas(b *testing.B) {
	c := newCluster(b)
	const nodes = 5000
	for i := range nodes {
		c.sched.Cache.AddNode(klog.Background(), wrappers.MakeNode(fmt.Sprintf("n%05d", i)).GPUs(8).
			Label("zone", fmt.Sprintf("z%d", i/1000)).Label("rack", fmt.Sprintf("r%d", i*312/nodes)).Obj())
	}
	c.refresh()
	cache := NewFilterCache()
	world := func() *Snapshot { return c.worldWith([]*corev1.Pod{worker(0).Obj()}, cache) }
	world().Rooms(0, "zone,rack", 0)
	b.Run("racks and their room", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			w := world()
			w.Capacity(0)
			b.StartTimer()
			if rooms := w.Rooms(0, "zone,rack", 0); len(rooms) != 312+4 { // four racks are in two zones
				b.Fatal(len(rooms))
			}
		}
	})
	b.Run("racks of each zone and their room", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			w := world()
			w.Capacity(0)
			b.StartTimer()
			for _, zone := range w.Areas("zone", 0) {
				w.Rooms(0, "zone,rack", zone)
			}
		}
	})
	b.Run("first pod of a class in each rack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			w := world()
			racks := w.Areas("rack", 0)
			w.Capacity(0)
			b.StartTimer()
			for _, rack := range racks {
				if _, ok := w.Place(w.Within(0, rack), ""); !ok {
					b.Fatal("refused")
				}
			}
		}
	})
	for _, level := range []string{"", "rack", corev1.LabelHostname} {
		w := world()
		var numbers []int
		for _, a := range w.Areas(level, 0) {
			numbers = append(numbers, w.Within(0, a))
		}
		b.Run(fmt.Sprintf("pods beside %d confined classes", len(numbers)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for range 100 {
					w.Place(0, "")
				}
				w.Undo(100)
			}
		})
	}
}

// BenchmarkLevels divides 10,000 nodes by levels of one to sixteen labels with long values; the last one has a domain
// for each node.
func BenchmarkLevels(b *testing.B) {
	c := newCluster(b)
	const nodes, labels = 10_000, 16
	levels := []string{"level-0.example.com/domain"}
	for k := 1; k < labels; k++ {
		levels = append(levels, fmt.Sprintf("%s,level-%d.example.com/domain", levels[k-1], k))
	}
	for i := range nodes {
		n := wrappers.MakeNode(fmt.Sprintf("n%05d", i)).GPUs(8)
		for k := range labels {
			n.Label(fmt.Sprintf("level-%d.example.com/domain", k), fmt.Sprintf("%063d", i>>(labels-1-k)))
		}
		c.sched.Cache.AddNode(klog.Background(), n.Obj())
	}
	c.refresh()
	benchmark := func(b *testing.B, cache func() *FilterCache) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			w := c.worldWith([]*corev1.Pod{worker(0).Obj()}, cache())
			w.Capacity(0)
			b.StartTimer()
			for _, level := range levels {
				if len(w.Rooms(0, level, 0)) == 0 {
					b.Fatal("no areas")
				}
			}
		}
	}
	cache := NewFilterCache()
	b.Run("cold", func(b *testing.B) { benchmark(b, NewFilterCache) })
	for _, level := range levels {
		c.worldWith([]*corev1.Pod{worker(0).Obj()}, cache).Rooms(0, level, 0)
	}
	b.Run("warm", func(b *testing.B) { benchmark(b, func() *FilterCache { return cache }) })
	b.Run("each inside the one above", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			w := c.worldWith([]*corev1.Pod{worker(0).Obj()}, cache)
			w.Capacity(0)
			b.StartTimer()
			areas := []placement.Area{0}
			for _, level := range levels {
				var below []placement.Area
				for _, a := range areas {
					below = append(below, w.Areas(level, a)...)
					w.Rooms(0, level, a)
				}
				areas = below
			}
			if len(areas) != nodes {
				b.Fatal(len(areas))
			}
		}
	})
}

// BenchmarkLevelGangs plans gangs with required topology levels: on 5,000 nodes in 312 racks, in blocks of 8, and on
// 10,000 nodes each of which is a domain.
func BenchmarkLevelGangs(b *testing.B) {
	labeled := func(nodes, domains int) *cluster {
		c := newCluster(b)
		for i := range nodes {
			rack := i * domains / nodes
			c.sched.Cache.AddNode(klog.Background(), wrappers.MakeNode(fmt.Sprintf("n%05d", i)).GPUs(8).
				Label("rack", fmt.Sprintf("r%05d", rack)).Label("block", fmt.Sprintf("b%05d", rack/8)).Obj())
		}
		c.refresh()
		return c
	}
	empty, busy, wide := labeled(5000, 312), labeled(5000, 312), labeled(10_000, 10_000)
	busy.fillNodes(5, func(int) bool { return true })
	racks := func(leaves int) map[string]string {
		required := map[string]string{}
		for i := range leaves {
			required[fmt.Sprintf("leaf-%d", i)] = "rack"
		}
		return required
	}
	inBlock := racks(32)
	inBlock[""] = "block"
	for _, tt := range []struct {
		name     string
		cluster  *cluster
		gang     leaves
		required map[string]string
		fits     bool
	}{
		{"64 pods in a rack", empty, flat(members(64, worker)), map[string]string{"": "rack"}, true},
		{"64 pods in a rack, refused", busy, flat(members(64, worker)), map[string]string{"": "rack"}, false},
		{"32 leaves of 8, a rack each in one block", empty, subGroups(32, 8), inBlock, true},
		{"1,024 leaves of 8, a rack each", empty, subGroups(1024, 8), racks(1024), true},
		{"1,024 leaves of 8, a rack each of 10,000", wide, subGroups(1024, 8), racks(1024), true},
	} {
		b.Run(tt.name, func(b *testing.B) {
			cache := NewFilterCache()
			plan := func() {
				p, classes := tt.cluster.problem(cache, tt.gang)
				p.Required = tt.required
				w, err := NewSnapshot(tt.cluster.ctx, tt.cluster.f, tt.cluster.nodes, classes.Pods, classes.options(cache))
				if err != nil {
					b.Fatal(err)
				}
				if _, short := placement.Minimum(p, w, placement.Budget{}); (short == nil) != tt.fits {
					b.Fatalf("fits: %t, want %t", short == nil, tt.fits)
				}
			}
			plan()
			b.ReportAllocs()
			var cpu time.Duration
			for b.Loop() {
				start := cpuTime(b)
				plan()
				cpu += cpuTime(b) - start
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}
