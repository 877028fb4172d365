// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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

// deviceClass returns a class of the devices of one driver.
func deviceClass(name, driver, extended string) *resourcev1.DeviceClass {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}},
	}}
	if extended != "" {
		class.Spec.ExtendedResourceName = &extended
	}
	return class
}

// slice returns a ResourceSlice that is a pool of its own, on a node if one is given.
func slice(driver, pool, node string, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: driver + "-" + pool}, Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, Pool: resourcev1.ResourcePool{Name: pool, ResourceSliceCount: 1}, Devices: devices,
	}}
	if node != "" {
		s.Spec.NodeName = &node
	}
	return s
}

func deviceNames(prefix string, n int) (out []resourcev1.Device) {
	for i := range n {
		out = append(out, resourcev1.Device{Name: fmt.Sprintf("%s%d", prefix, i)})
	}
	return out
}

// exactly returns a request of n devices of a class.
func exactly(class string, n int64) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: class, Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n,
	}}
}

func claim(name string, spec resourcev1.DeviceClaim) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("claim-" + name)}, Spec: resourcev1.ResourceClaimSpec{Devices: spec}}
}

// withClaims adds claims by name.
func withClaims(w *wrappers.PodWrapper, names ...string) *wrappers.PodWrapper {
	return w.Spec(func(s *corev1.PodSpec) {
		for _, name := range names {
			s.ResourceClaims = append(s.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprintf("c%d", len(s.ResourceClaims)), ResourceClaimName: &name})
		}
	})
}

// classWorld returns a Snapshot for the classes of the pods of a gang.
func (c *cluster) classWorld(pods []*corev1.Pod) (*Snapshot, Classes, placement.Problem) {
	c.t.Helper()
	v := NewFilterCache()
	problem, classes := c.problem(v, leaves{{"", pods}})
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, classes.options(v))
	if err != nil {
		c.t.Fatal(err)
	}
	return w, classes, problem
}

// reserve runs the pod's real cycle on a node up to Reserve, so that its devices are allocated. It returns the
// reason of a refusal.
func (c *cluster) reserve(pod *corev1.Pod, node fwk.NodeInfo) (fwk.CycleState, string) {
	c.t.Helper()
	state := framework.NewCycleState()
	if _, status, _ := c.f.RunPreFilterPlugins(c.ctx, state, pod); !status.IsSuccess() {
		return state, firstReason(status)
	}
	if status := c.f.RunFilterPlugins(c.ctx, state, pod, node); !status.IsSuccess() {
		return state, firstReason(status)
	}
	if status := c.f.RunReservePluginsReserve(c.ctx, state, pod, node.Node().Name); !status.IsSuccess() {
		return state, firstReason(status)
	}
	return state, ""
}

// A plan leaves to its next pod the devices that the real cycles of the pods before leave to it, and no others: pods
// are placed, taken back and placed again in random order, and each verdict is compared with that of the stock plugins
// after the real cycles of the pods that are planned now.
func TestPlannedDevicesAreThoseOfRealCycles(t *testing.T) {
	t.Parallel()
	repeats := 20 * rounds.Number()
	verdicts := map[bool]int{}
	for seed := range repeats {
		t.Run(fmt.Sprintf("seed_%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewSource(int64(seed)))
			objects, pods := randomDevices(rng)
			c := newCluster(t, objects...)
			w, classes, _ := c.classWorld(pods)
			real := *c // with the planned pods on its nodes
			real.nodes = nil
			for _, n := range c.nodes {
				real.nodes = append(real.nodes, n.Snapshot())
			}
			at := func(node string) fwk.NodeInfo {
				return real.nodes[slices.IndexFunc(real.nodes, func(n fwk.NodeInfo) bool { return n.Node().Name == node })]
			}
			type held struct {
				pod   *corev1.Pod
				node  string
				state fwk.CycleState
			}
			var planned []held
			var first []placement.Capacity // by class; it does not depend on planned pods
			for class := range classes.Pods {
				first = append(first, w.Capacity(class))
			}
			waiting := map[int][]*corev1.Pod{}
			for i, pod := range pods {
				waiting[classes.Of[i]] = append(waiting[classes.Of[i]], pod)
			}
			for range 25 {
				if n := len(planned); n > 0 && rng.Intn(4) == 0 {
					n = 1 + rng.Intn(n)
					w.Undo(n)
					for range n {
						last := planned[len(planned)-1]
						planned = planned[:len(planned)-1]
						c.f.RunReservePluginsUnreserve(c.ctx, last.state, last.pod, last.node)
						if err := at(last.node).RemovePod(klog.Background(), last.pod); err != nil {
							t.Fatal(err)
						}
						class := classes.Of[slices.Index(pods, last.pod)]
						waiting[class] = append(waiting[class], last.pod)
					}
				}
				class := rng.Intn(len(classes.Pods))
				if len(waiting[class]) == 0 {
					continue
				}
				pod := waiting[class][0]
				want := real.realCycles(pod)
				capacity := w.Capacity(class)
				if capacity != first[class] {
					t.Fatalf("capacity %+v beside %d planned pods, %+v without", capacity, len(planned), first[class])
				}
				node, ok := w.Place(class, "")
				possible := slices.Contains(slices.Collect(maps.Values(want)), "")
				verdicts[ok]++
				switch {
				case ok != possible:
					t.Fatalf("pod %s of class %d: Place says %q, real cycles %v beside %d planned pods", pod.Name, class, node, want, len(planned))
				case !ok:
					why := w.Explain(class, "").Reasons
					n := 0
					for _, count := range why {
						n += count
					}
					if n != len(c.nodes) {
						t.Fatalf("pod %s: %v explains %d of %d nodes", pod.Name, why, n, len(c.nodes))
					}
					continue
				case want[node] != "":
					t.Fatalf("pod %s of class %d: Place says %s, a real cycle %q", pod.Name, class, node, want[node])
				}
				if capacity.Nodes == 0 || capacity.Pods == 0 {
					t.Fatalf("pod %s fits on %s, capacity %+v", pod.Name, node, capacity)
				}
				state, why := c.reserve(pod, at(node))
				if why != "" {
					t.Fatalf("pod %s on %s: %s", pod.Name, node, why)
				}
				info, err := framework.NewPodInfo(pod)
				if err != nil {
					t.Fatal(err)
				}
				at(node).AddPodInfo(info)
				planned = append(planned, held{pod, node, state})
				waiting[class] = waiting[class][1:]
			}
			for _, p := range planned {
				c.f.RunReservePluginsUnreserve(c.ctx, p.state, p.pod, p.node)
			}
		})
	}
	if verdicts[true] < repeats || verdicts[false] < repeats {
		t.Errorf("in %d rounds %d pods fitted and %d did not: the generator is one-sided", repeats, verdicts[true], verdicts[false])
	}
}

// An extended resource that a DeviceClass offers too is counted on nodes where a device plugin provides it.
func TestExtendedResourceOfADevicePlugin(t *testing.T) {
	t.Parallel()
	const ext = "example.com/ext"
	objects := []runtime.Object{
		deviceClass("ext", "ext.example.com", ext),
		wrappers.MakeNode("plugin").Capacity(ext, "2").Obj(), wrappers.MakeNode("driver").Obj(),
		slice("ext.example.com", "driver", "driver", deviceNames("d", 3)...),
	}
	var pods []*corev1.Pod
	for i := range 6 {
		pods = append(pods, classPod(fmt.Sprintf("p%d", i)).Resource(ext, resource.MustParse("1")).Obj())
	}
	c := newCluster(t, objects...)
	w, classes, _ := c.classWorld(pods)
	if len(classes.Pods) != 1 {
		t.Fatalf("%d classes", len(classes.Pods))
	}
	got := map[string]int{}
	for range pods {
		if node, ok := w.Place(0, ""); ok {
			got[node]++
		}
	}
	if diff := cmp.Diff(map[string]int{"plugin": 2, "driver": 3}, got); diff != "" {
		t.Errorf("pods by node (-want +got):\n%s", diff)
	}
}

// Of the resources that the profile ignores a plan counts nothing, and of those that a DeviceClass offers nothing that
// is certain for all nodes. Only if there are none of the latter, the filters need not run for each planned pod.
func TestDemandOfExtendedResources(t *testing.T) {
	t.Parallel()
	const (
		ignored, offered, provided = "ignored.example.com/x", "example.com/offered", "example.com/provided"
		byName                     = corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + "a")
	)
	for name, tc := range map[string]struct {
		asks               []corev1.ResourceName
		counted, uncertain []corev1.ResourceName
		complete           bool
	}{
		"provided":                           {asks: []corev1.ResourceName{provided}, counted: []corev1.ResourceName{provided}, complete: true},
		"ignored":                            {asks: []corev1.ResourceName{ignored, provided}, counted: []corev1.ResourceName{provided}, complete: true},
		"ignored in its group":               {asks: []corev1.ResourceName{"group.example.com/y"}, complete: true},
		"ignored and offered":                {asks: []corev1.ResourceName{"group.example.com/offered"}, complete: true},
		"offered":                            {asks: []corev1.ResourceName{offered, provided}, counted: []corev1.ResourceName{provided}, uncertain: []corev1.ResourceName{offered}},
		"offered by its name":                {asks: []corev1.ResourceName{byName}, uncertain: []corev1.ResourceName{byName}},
		"offered beside one that is ignored": {asks: []corev1.ResourceName{ignored, offered}, uncertain: []corev1.ResourceName{offered}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConfiguredCluster(t, func(cfg *config.KubeSchedulerConfiguration) {
				for _, p := range cfg.Profiles[0].PluginConfig {
					if args, ok := p.Args.(*config.NodeResourcesFitArgs); ok {
						args.IgnoredResources, args.IgnoredResourceGroups = []string{ignored}, []string{"group.example.com"}
					}
				}
			}, deviceClass("a", "a.example.com", offered), deviceClass("b", "b.example.com", "group.example.com/offered"), wrappers.MakeNode("n").Obj())
			pod := classPod("p")
			for _, name := range tc.asks {
				pod.Resource(name, resource.MustParse("1"))
			}
			w := c.world(pod.Obj())
			class, _ := w.classAt(0)
			w.findNodesOf(class)
			d := class.known.demand
			namesOf := func(requests []request) (out []corev1.ResourceName) {
				for _, r := range requests {
					if podgroup.IsExtended(r.name) {
						out = append(out, r.name)
					}
				}
				return out
			}
			if diff := cmp.Diff(tc.counted, namesOf(d.requests)); diff != "" {
				t.Errorf("resources that are counted (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.uncertain, namesOf(d.offered)); diff != "" {
				t.Errorf("resources that are counted on some nodes (-want +got):\n%s", diff)
			}
			if d.complete != tc.complete {
				t.Errorf("complete is %t, want %t", d.complete, tc.complete)
			}
		})
	}
}

// randomDevices returns nodes with devices of several kinds, some of which are allocated, and pods that need some.
func randomDevices(rng *rand.Rand) ([]runtime.Object, []*corev1.Pod) {
	chance := func(percent int) bool { return rng.Intn(100) < percent }
	objects := []runtime.Object{
		deviceClass("gpu", "gpu.example.com", ""), deviceClass("nic", "nic.example.com", ""),
		deviceClass("part", "part.example.com", ""), deviceClass("disk", "disk.example.com", ""),
		deviceClass("net", "net.example.com", ""), deviceClass("ext", "ext.example.com", "example.com/ext"),
	}
	nodes := 1 + rng.Intn(4)
	quantity := func(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }
	var taken []resourcev1.DeviceRequestAllocationResult
	maybeTaken := func(driver, pool string, devices []resourcev1.Device) {
		for _, d := range devices {
			if chance(15) {
				taken = append(taken, resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: pool, Device: d.Name})
			}
		}
	}
	for i := range nodes {
		node := fmt.Sprintf("n%d", i)
		n := wrappers.MakeNode(node).Label("rack", fmt.Sprintf("r%d", i/2))
		if chance(10) {
			n.Capacity("example.com/ext", "2") // a device plugin
		}
		objects = append(objects, n.Obj())
		if chance(90) {
			gpus := deviceNames("gpu", 1+rng.Intn(5))
			for k := range gpus {
				gpus[k].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"model": {StringValue: ptr.To([]string{"a", "b"}[rng.Intn(2)])}, "numa": {IntValue: ptr.To(int64(k % 2))},
				}
				if chance(5) {
					gpus[k].Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
				}
			}
			s := slice("gpu.example.com", node, node, gpus...)
			if chance(5) {
				s.Spec.Pool.ResourceSliceCount = 2 // the other slice is missing
			}
			if chance(5) { // no API server accepts these numbers
				s.Spec.Pool.ResourceSliceCount, s.Spec.Pool.Generation = -1, -1
			}
			maybeTaken("gpu.example.com", node, gpus)
			objects = append(objects, s)
		}
		if chance(60) {
			nics := deviceNames("nic", 1+rng.Intn(3))
			maybeTaken("nic.example.com", node, nics)
			objects = append(objects, slice("nic.example.com", node, node, nics...))
		}
		if chance(50) { // a card of 4 units, as a whole or in parts
			counters := slice("part.example.com", node, node)
			counters.Name += "-counters"
			counters.Spec.Pool.ResourceSliceCount = 2
			counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "card", Counters: map[string]resourcev1.Counter{"units": {Value: quantity(4)}}}}
			parts := slice("part.example.com", node, node)
			parts.Spec.Pool.ResourceSliceCount = 2
			for name, units := range map[string]int{"whole": 4, "half0": 2, "half1": 2, "quarter0": 1, "quarter1": 1, "quarter2": 1, "quarter3": 1} {
				parts.Spec.Devices = append(parts.Spec.Devices, resourcev1.Device{
					Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"units": {IntValue: ptr.To(int64(units))}},
					ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "card", Counters: map[string]resourcev1.Counter{"units": {Value: quantity(units)}}}},
				})
			}
			slices.SortFunc(parts.Spec.Devices, func(a, b resourcev1.Device) int { return strings.Compare(a.Name, b.Name) })
			objects = append(objects, counters, parts)
		}
		if chance(50) { // a disk that several claims share
			disk := resourcev1.Device{Name: "disk", AllowMultipleAllocations: ptr.To(true),
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"size": {Value: quantity(10)}}}
			objects = append(objects, slice("disk.example.com", node, node, disk))
		}
		if chance(50) {
			objects = append(objects, slice("ext.example.com", node, node, deviceNames("ext", 1+rng.Intn(3))...))
		}
	}
	if chance(30) { // devices that the nodes of a rack reach
		s := slice("net.example.com", "rack", "", deviceNames("net", 1+rng.Intn(3))...)
		s.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{"r0"}},
		}}}}
		objects = append(objects, s)
	}
	if len(taken) > 0 {
		running := claim("running", resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{exactly("gpu", 1)}})
		running.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: taken}}
		objects = append(objects, running)
	}

	choose := func(r resourcev1.DeviceRequest, expression string) resourcev1.DeviceRequest {
		r.Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
		return r
	}
	requests := func(r ...resourcev1.DeviceRequest) resourcev1.DeviceClaim { return resourcev1.DeviceClaim{Requests: r} }
	specs := []func() resourcev1.DeviceClaim{
		func() resourcev1.DeviceClaim { return requests(exactly("gpu", 1+int64(rng.Intn(3)))) },
		func() resourcev1.DeviceClaim {
			return requests(choose(exactly("gpu", 1), `device.attributes["gpu.example.com"].model == "a"`))
		},
		func() resourcev1.DeviceClaim {
			d := requests(exactly("gpu", 2))
			d.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: ptr.To(resourcev1.FullyQualifiedName("gpu.example.com/model"))}}
			return d
		},
		func() resourcev1.DeviceClaim { return requests(exactly("gpu", 1), exactly("nic", 1)) },
		func() resourcev1.DeviceClaim {
			units := []int{1, 1, 2, 4}[rng.Intn(4)]
			return requests(choose(exactly("part", 1), fmt.Sprintf(`device.attributes["part.example.com"].units == %d`, units)))
		},
		func() resourcev1.DeviceClaim {
			d := requests(exactly("disk", 1))
			d.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"size": quantity(3 + rng.Intn(4))}}
			return d
		},
		func() resourcev1.DeviceClaim { return requests(exactly("net", 1)) },
		func() resourcev1.DeviceClaim {
			d := requests(exactly("gpu", 0))
			d.Requests[0].Exactly.AllocationMode = resourcev1.DeviceAllocationModeAll
			return d
		},
		func() resourcev1.DeviceClaim {
			return requests(resourcev1.DeviceRequest{Name: "any", FirstAvailable: []resourcev1.DeviceSubRequest{
				{Name: "nic", DeviceClassName: "nic", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2},
				{Name: "gpu", DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
			}})
		},
		func() resourcev1.DeviceClaim {
			d := requests(exactly("gpu", 1))
			d.Requests[0].Exactly.AdminAccess = ptr.To(true)
			return d
		},
	}
	var pods []*corev1.Pod
	for class := range 1 + rng.Intn(3) {
		var kinds []resourcev1.DeviceClaim
		for range 1 + rng.Intn(2) {
			kinds = append(kinds, specs[rng.Intn(len(specs))]())
		}
		extended := chance(15)
		for i := range 2 + rng.Intn(6) {
			name := fmt.Sprintf("p%d-%d", class, i)
			w := wrappers.MakePod(name, "ml").UID(name)
			for k, spec := range kinds {
				own := claim(fmt.Sprintf("%s-%d", name, k), spec)
				if chance(3) {
					own.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n0"}}},
					}}}}
				}
				objects = append(objects, own)
				w = withClaims(w, own.Name)
			}
			if extended {
				w.Resource("example.com/ext", quantity(1))
			}
			pods = append(pods, w.Obj())
		}
	}
	return objects, pods
}

// TestClassesOfDevices checks which pods are alike.
func TestClassesOfDevices(t *testing.T) {
	t.Parallel()
	one, two := resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{exactly("gpu", 1)}}, resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{exactly("gpu", 2)}}
	on := func(node string) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) {
			c.Status.Allocation = &resourcev1.AllocationResult{
				NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
				}}},
				Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "gpu.example.com", Pool: node, Device: c.Name}}},
			}
		}
	}
	waits := func(c *resourcev1.ResourceClaim) {
		on("n0")(c)
		c.Status.Allocation.Devices.Results[0].BindingConditions = []string{"Ready"}
	}
	for name, tc := range map[string]struct {
		specs  []resourcev1.DeviceClaim
		change map[int]func(*resourcev1.ResourceClaim)
		share  bool
		want   []int
	}{
		"claims that ask for the same":        {specs: []resourcev1.DeviceClaim{one, one, one}, want: []int{0, 0, 0}},
		"claims that ask for different":       {specs: []resourcev1.DeviceClaim{one, two, one}, want: []int{0, 1, 0}},
		"with and without devices":            {specs: []resourcev1.DeviceClaim{one, one, one}, change: map[int]func(*resourcev1.ResourceClaim){1: on("n0")}, want: []int{0, 1, 0}},
		"devices of one node":                 {specs: []resourcev1.DeviceClaim{one, one}, change: map[int]func(*resourcev1.ResourceClaim){0: on("n0"), 1: on("n0")}, want: []int{0, 0}},
		"devices of two nodes":                {specs: []resourcev1.DeviceClaim{one, one}, change: map[int]func(*resourcev1.ResourceClaim){0: on("n0"), 1: on("n1")}, want: []int{0, 1}},
		"devices that are not ready":          {specs: []resourcev1.DeviceClaim{one, one}, change: map[int]func(*resourcev1.ResourceClaim){0: waits, 1: waits}, want: []int{0, 1}},
		"one claim for all, and one for each": {specs: []resourcev1.DeviceClaim{one, one}, share: true, want: []int{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := racks(2, 8)
			var pods []*corev1.Pod
			if tc.share {
				objects = append(objects, claim("shared", one))
			}
			for i, spec := range tc.specs {
				own := claim(fmt.Sprintf("c%d", i), spec)
				if change := tc.change[i]; change != nil {
					change(own)
				}
				objects = append(objects, own)
				w := withClaims(wrappers.MakePod(fmt.Sprintf("p%d", i), "ml"), own.Name)
				if tc.share {
					w = withClaims(w, "shared")
				}
				pods = append(pods, w.Obj())
			}
			_, classes, _ := newCluster(t, objects...).classWorld(pods)
			if diff := cmp.Diff(tc.want, classes.Of); diff != "" {
				t.Errorf("classes (-want +got):\n%s", diff)
			}
			want := sets.New[string]()
			if tc.share {
				want.Insert("shared")
			}
			if diff := cmp.Diff(want, classes.SharedClaims); diff != "" {
				t.Errorf("shared claims (-want +got):\n%s", diff)
			}
		})
	}
}

// A claim that pods share binds them to the node of its devices, or to the nodes that reach them.
func TestSharedClaimsArePlanned(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		slices []runtime.Object
		alone  int // pods that share no claim and need two devices of their node
		want   []string
	}{
		"devices of the nodes": {
			slices: []runtime.Object{slice("gpu.example.com", "n0", "n0", deviceNames("g", 1)...), slice("gpu.example.com", "n1", "n1", deviceNames("g", 3)...)},
			want:   []string{"n1", "n1"},
		},
		"and no more of them than there are": {
			slices: []runtime.Object{slice("gpu.example.com", "n0", "n0", deviceNames("g", 2)...), slice("gpu.example.com", "n1", "n1", deviceNames("g", 3)...)},
			alone:  2,
			want:   nil,
		},
		"beside a pod with devices of its own": {
			slices: []runtime.Object{slice("gpu.example.com", "n0", "n0", deviceNames("g", 2)...), slice("gpu.example.com", "n1", "n1", deviceNames("g", 2)...)},
			alone:  1,
			want:   []string{"n1", "n1", "n0"},
		},
		"devices that several nodes reach": {
			slices: []runtime.Object{func() runtime.Object {
				s := slice("gpu.example.com", "all", "", deviceNames("g", 2)...)
				s.Spec.AllNodes = ptr.To(true)
				return s
			}()},
			want: []string{"n0", "n1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			two := resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{exactly("gpu", 2)}}
			objects := append(racks(2, 2), deviceClass("gpu", "gpu.example.com", ""), claim("shared", two))
			objects = append(objects, tc.slices...)
			gpus := int64(1)
			if tc.slices[0].(*resourcev1.ResourceSlice).Spec.AllNodes != nil {
				gpus = 2 // one pod on each node
			}
			var pods []*corev1.Pod
			for i := range 2 {
				pods = append(pods, withClaims(classPod(fmt.Sprintf("p%d", i)).GPUs(gpus), "shared").Obj())
			}
			for i := range tc.alone {
				own := fmt.Sprintf("own%d", i)
				objects = append(objects, claim(own, two))
				pods = append(pods, withClaims(classPod(fmt.Sprintf("alone%d", i)), own).Obj())
			}
			c := newCluster(t, objects...)
			w, _, problem := c.classWorld(pods)
			placements, short := placement.Minimum(problem, w, placement.Budget{})
			at := map[string]string{}
			var planned []*corev1.Pod
			for _, p := range placements {
				at[p.Pod.ID] = p.Node
				planned = append(planned, pods[slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return string(pod.UID) == p.Pod.ID })])
			}
			var got []string
			for _, pod := range pods {
				if node := at[string(pod.UID)]; node != "" {
					got = append(got, node)
				}
			}
			if len(tc.want) == 0 {
				if short == nil || len(got) > 0 {
					t.Errorf("placed on %v, want none", got)
				}
				return
			}
			shared := w.SharedClaims(planned)
			if len(got) != len(pods) || (got[0] == got[1]) != (tc.want[0] == tc.want[1]) || len(got) > 2 && got[2] == got[0] {
				t.Errorf("placed on %v, for example %v wanted; %+v", got, tc.want, short)
			}
			if len(shared) != 1 || len(shared[0].Users) != 2 || shared[0].Devices == nil || len(shared[0].Devices.Devices.Results) != 2 {
				t.Errorf("shared claims %+v", shared)
			}
		})
	}
}

// The users of a shared claim are those of the plan, and those that are no waiting pods of the gang; at most 256.
func TestUsersOfASharedClaim(t *testing.T) {
	t.Parallel()
	users := func(names ...string) (out []resourcev1.ResourceClaimConsumerReference) {
		for _, name := range names {
			out = append(out, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: types.UID(name)})
		}
		return out
	}
	many := func(prefix string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("%s%d", prefix, i))
		}
		return out
	}
	for name, tc := range map[string]struct {
		has, waiting, planned []string
		want                  []string // nil: refused
	}{
		"nobody uses it":                 {waiting: []string{"a", "b"}, planned: []string{"a", "b"}, want: []string{"a", "b"}},
		"an earlier plan left others":    {has: []string{"a", "b"}, waiting: []string{"a", "b", "c"}, planned: []string{"b", "c"}, want: []string{"b", "c"}},
		"others use it":                  {has: []string{"x", "a"}, waiting: []string{"a", "b"}, planned: []string{"b"}, want: []string{"x", "b"}},
		"as many as can":                 {has: many("x", 250), waiting: many("a", 20), planned: many("a", 6), want: append(many("x", 250), many("a", 6)...)},
		"one more":                       {has: many("x", 250), waiting: many("a", 20), planned: many("a", 7)},
		"all places are those of a plan": {has: many("a", 256), waiting: many("a", 512), planned: many("a", 256), want: many("a", 256)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := claim("shared", resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{exactly("gpu", 1)}})
			shared.Status.Allocation, shared.Status.ReservedFor = &resourcev1.AllocationResult{}, users(tc.has...)
			c := newCluster(t, append(racks(1, 8), shared)...)
			s := SharedClaim{Name: types.NamespacedName{Namespace: "ml", Name: "shared"}}
			for _, name := range tc.planned {
				s.Users = append(s.Users, wrappers.MakePod(name, "ml").UID(name).Obj())
			}
			waiting := sets.New[types.UID]()
			for _, name := range tc.waiting {
				waiting.Insert(types.UID(name))
			}
			if err := s.CheckUsers(c.f, waiting); (err != nil) != (tc.want == nil) {
				t.Errorf("check: %v", err)
			}
			if tc.want == nil {
				return
			}
			for range 2 { // the second time nothing changes
				if err := s.ReserveDevices(c.ctx, c.f, waiting); err != nil {
					t.Fatal(err)
				}
				got, err := c.f.ClientSet().ResourceV1().ResourceClaims("ml").Get(c.ctx, "shared", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(users(tc.want...), got.Status.ReservedFor); diff != "" {
					t.Errorf("users (-want +got):\n%s", diff)
				}
			}
		})
	}
}
