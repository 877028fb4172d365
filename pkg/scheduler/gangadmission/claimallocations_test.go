// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

// claimNames are the claims of the pods of the gang a, which have one each.
var claimNames = []string{"claim-0", "claim-1", "claim-2"}

// serveClaims names claims and counts their versions, as an API server does.
func (c *cluster) serveClaims() {
	version, named := atomic.Int64{}, atomic.Int64{}
	c.client.PrependReactor("create", "resourceclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if claim := a.(clienttesting.CreateAction).GetObject().(*resourcev1.ResourceClaim); claim.Name == "" {
			claim.Name = fmt.Sprint(claim.GenerateName, named.Add(1))
			claim.UID, claim.ResourceVersion = typesUID(claim.Name), "1"
		}
		return false, nil, nil
	})
	c.client.PrependReactor("*", "resourceclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if verb := a.GetVerb(); verb != "update" && verb != "patch" {
			return false, nil, nil
		}
		_, obj, err := clienttesting.ObjectReaction(c.client.Tracker())(a)
		if err != nil {
			return true, nil, err
		}
		claim := obj.(*resourcev1.ResourceClaim).DeepCopy()
		claim.ResourceVersion = strconv.FormatInt(version.Add(1)+1, 10)
		return true, claim, c.client.Tracker().Update(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), claim, claim.Namespace)
	})
}

// withDevices adds a node with a device for each pod of the gang a.
func (c *cluster) withDevices() *cluster {
	c.t.Helper()
	c.serveClaims()
	if _, err := c.client.ResourceV1().DeviceClasses().Create(c.ctx, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.addSlice().node(wrappers.MakeNode("n0"))
	for _, name := range claimNames {
		c.addClaim(name, name)
	}
	return c
}

// offersDevices has a DeviceClass offer an extended resource, of which a driver has so many devices on the node n0.
func (c *cluster) offersDevices(name string, devices int) {
	c.t.Helper()
	c.serveClaims()
	node := "n0"
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
	}}
	for i := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("d", i)})
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &name}}
	if _, err := c.client.ResourceV1().DeviceClasses().Create(c.ctx, class, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.client.ResourceV1().ResourceSlices().Create(c.ctx, slice, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) addSlice() *cluster {
	c.t.Helper()
	node := "n0"
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
	}}
	for _, name := range claimNames {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: "for-" + name})
	}
	if _, err := c.client.ResourceV1().ResourceSlices().Create(c.ctx, slice, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	return c
}

func (c *cluster) addClaim(name, uid string, owners ...metav1.OwnerReference) {
	c.t.Helper()
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: typesUID(uid), ResourceVersion: "1", OwnerReferences: owners},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}}},
	}
	if _, err := c.client.ResourceV1().ResourceClaims("ml").Create(c.ctx, claim, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// gangWithClaims creates the gang a, all of whose pods are needed.
func (c *cluster) gangWithClaims() *cluster {
	c.t.Helper()
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(int32(len(claimNames))).Obj())
	for i, name := range claimNames {
		c.pod(wrappers.MakePod(fmt.Sprintf("a-%d", i), "ml").Gang("a").Spec(func(s *corev1.PodSpec) {
			s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
		}))
	}
	return c
}

// inUse returns the claims that have devices or users.
func (c *cluster) inUse() (out []string) {
	for _, name := range claimNames {
		obj, err := c.client.Tracker().Get(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), "ml", name)
		if err != nil {
			continue // it was deleted
		}
		if status := &obj.(*resourcev1.ResourceClaim).Status; status.Allocation != nil || len(status.ReservedFor) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// isQuiet reports whether no pod is assumed for a plan that was aborted.
func (c *cluster) isQuiet() bool { return !c.gangs.registry.IsUnwinding() && !c.gangs.released.any() }

// An aborted plan leaves no devices allocated to claims of single members, and none reserved for them (docs/decisions,
// G18); also the last plan of a gang, after which nothing of it is scheduled any more.
func TestAnAbortLeavesNoDevices(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(c *cluster){
		"the gang waits":           func(*cluster) {},
		"its PodGroup is deleted":  func(c *cluster) { c.groups.Delete(key("a")) },
		"one of its pods is gone":  func(c *cluster) { c.deletePod("a-0") },
		"all of its pods are gone": func(c *cluster) { c.deletePod("a-0"); c.deletePod("a-1"); c.deletePod("a-2") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var attempts atomic.Int32
			written, refused := make(chan struct{}), make(chan struct{})
			c := newCluster(t, opinions(func(point, pod, _ string) *fwk.Status {
				if point != "PreBind" || pod != "a-1" {
					return nil
				}
				if attempts.Add(1) == 1 {
					close(written)
					<-refused
				}
				return fwk.NewStatus(fwk.Unschedulable, "node(s) are in a bad mood")
			}))
			c.withDevices().gangWithClaims().run()
			<-written
			c.eventually("devices written for all members", func() bool { return len(c.inUse()) == len(claimNames) })
			last(c)
			close(refused)
			c.eventually("all claims free", func() bool { return c.isQuiet() && len(c.inUse()) == 0 })
			if name == "the gang waits" {
				c.refused("a")
			}
			c.pod(wrappers.MakePod("plain", "ml")).eventually("another pod is scheduled", func() bool { return len(c.boundOf("plain")) == 1 })
			if used, bound := c.inUse(), c.boundOf("a-"); len(used) > 0 || len(bound) > 0 {
				t.Errorf("after the abort claims %v are in use, pods %v are bound", used, bound)
			}
		})
	}
}

// The devices of one member are given back slowly after an abort. No plan is made with it before the queue has it back:
// it would be aborted, too. It is not parallel: it reads metrics.
func TestMembersOnTheirWayBackAreNotPlanned(t *testing.T) {
	late := func() float64 {
		n, err := testutil.GetCounterMetricValue(plansAborted.WithLabelValues(string(gangs.AbortLate)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := late()
	var attempts atomic.Int32
	written, refused := make(chan struct{}), make(chan struct{})
	c := newCluster(t, opinions(func(point, pod, _ string) *fwk.Status {
		if point != "PreBind" || pod != "a-1" || attempts.Add(1) > 1 {
			return nil
		}
		close(written)
		<-refused
		return fwk.NewStatus(fwk.Unschedulable, "node(s) are in a bad mood")
	}))
	c.gangs.refusals.KnownFor = 100 * time.Millisecond
	var aborting atomic.Bool
	var freed atomic.Int32
	c.onClaim = func(context.Context) {
		if aborting.Load() && freed.Add(1) == 2 { // the first one is that of a-1, for which the abort waits
			time.Sleep(time.Second)
		}
	}
	c.withDevices().gangWithClaims().run()
	<-written
	c.eventually("devices written for all members", func() bool { return len(c.inUse()) == len(claimNames) })
	aborting.Store(true)
	close(refused)
	c.wholeOf("a", len(claimNames))
	if n := late() - before; n > 0 {
		t.Errorf("%.0f plans were aborted because a member was not in the queue", n)
	}
}

// A claim that is deleted between the plan of its gang and the binding of its pod, before that pod has its cycle or
// after: no part of the gang is bound, nothing stays allocated, and the gang starts when the claim is back.
func TestClaimIsDeletedWhileItsGangIsPlanned(t *testing.T) {
	t.Parallel()
	for _, reserved := range []string{"a-1", "a-2"} {
		t.Run(reserved, func(t *testing.T) {
			t.Parallel()
			var attempts atomic.Int32
			var c *cluster
			c = newCluster(t, opinions(func(point, pod, _ string) *fwk.Status {
				if point == "Reserve" && pod == reserved && attempts.Add(1) == 1 {
					if err := c.client.ResourceV1().ResourceClaims("ml").Delete(c.ctx, "claim-2", metav1.DeleteOptions{}); err != nil {
						t.Error(err)
					}
					waitUntil(func() bool {
						_, err := c.sched.Profiles[wrappers.SchedulerName].SharedDRAManager().ResourceClaims().Get("ml", "claim-2")
						return err != nil
					})
				}
				return nil
			}))
			c.withDevices().gangWithClaims().run().eventually("the plan aborted", func() bool {
				return attempts.Load() > 0 && c.gangs.registry.PlanOf("uid-a-0") == nil
			})
			c.eventually("all claims free", func() bool { return c.isQuiet() && len(c.inUse()) == 0 })
			if bound := c.boundOf("a-"); len(bound) > 0 {
				t.Fatalf("pods %v are bound without the claim of another", bound)
			}
			c.addClaim("claim-2", "another")
			c.wholeOf("a", len(claimNames))
		})
	}
}

// ResourceSlices that vanish between the plan of a gang and the cycles of its members.
func TestDevicesVanishWhileAGangIsPlanned(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int32
	var c *cluster
	c = newCluster(t, opinions(func(point, pod, _ string) *fwk.Status {
		if point == "Reserve" && pod == "a-1" && attempts.Add(1) == 1 {
			if err := c.client.ResourceV1().ResourceSlices().Delete(c.ctx, "n0", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			waitUntil(func() bool {
				left, err := c.sched.Profiles[wrappers.SchedulerName].SharedDRAManager().ResourceSlices().ListWithDeviceTaintRules()
				return err == nil && len(left) == 0
			})
		}
		return nil
	}))
	c.withDevices().gangWithClaims().run().refused("a")
	c.eventually("all claims free", func() bool { return c.isQuiet() && len(c.inUse()) == 0 })
	if bound := c.boundOf("a-"); len(bound) > 0 {
		t.Fatalf("pods %v are bound without the devices of another", bound)
	}
	c.addSlice().wholeOf("a", len(claimNames))
}

// Kube-scheduler nominates the node of a pod that it prepares, with a write before all others. Members of which only
// the claims are written need none (docs/decisions, G18); pods without a gang, and members that a driver prepares, are
// nominated.
func TestWhoIsNominatedWithDevices(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		create func(c *cluster)
		bound  int // pods that are bound in the end
		// prepared: the driver has to prepare devices before the binding, and does not do it.
		prepared bool
		want     []string
	}{
		"a gang": {bound: len(claimNames), create: func(c *cluster) { c.gangWithClaims() }},
		"a pod without a gang": {bound: 1, want: []string{"plain"}, create: func(c *cluster) {
			c.pod(wrappers.MakePod("plain", "ml").Spec(func(s *corev1.PodSpec) {
				s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claimNames[0]}}
			}))
		}},
		"a gang whose devices the driver prepares": {prepared: true, want: []string{"a-0", "a-1", "a-2"}, create: func(c *cluster) { c.gangWithClaims() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).withDevices()
			if tc.prepared {
				resources := c.client.ResourceV1().ResourceSlices()
				slice, err := resources.Get(c.ctx, "n0", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for i := range slice.Spec.Devices {
					slice.Spec.Devices[i].BindingConditions, slice.Spec.Devices[i].BindingFailureConditions = []string{"attached"}, []string{"failed"}
				}
				if _, err := resources.Update(c.ctx, slice, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			tc.create(c)
			c.run().eventually("bound, or nominated", func() bool {
				return len(c.boundOf("")) == tc.bound && len(c.nominated()) >= len(tc.want)
			})
			if diff := cmp.Diff(tc.want, c.nominated()); diff != "" {
				t.Errorf("nominated pods (-want +got):\n%s", diff)
			}
		})
	}
}

// The claims of members are written in as many slots as their bindings: the API server rejects the writes of hundreds
// at the same time. Members that wait for a slot are cancelled with their plan.
func TestClaimsOfMembersAreWrittenInSlots(t *testing.T) {
	t.Parallel()
	for name, aborted := range map[string]bool{"all are written": false, "the plan is aborted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proceed := make(chan struct{})
			var inFlight, most atomic.Int32
			c := newCluster(t, func(_ *cluster, _ *bool, args *config.GangAdmissionArgs) { args.BindParallelism = 1 })
			c.onClaim = func(ctx context.Context) {
				most.Store(max(most.Load(), inFlight.Add(1)))
				defer inFlight.Add(-1)
				select {
				case <-proceed:
				case <-ctx.Done():
				}
			}
			waiting := func() int {
				c.gangs.binds.mu.Lock()
				defer c.gangs.binds.mu.Unlock()
				return len(c.gangs.binds.waiting)
			}
			c.withDevices().gangWithClaims().run().eventually("one writes, the others wait", func() bool {
				return inFlight.Load() == 1 && waiting() == len(claimNames)-1
			})
			if aborted {
				c.deletePod("a-0")
				c.eventually("nobody waits", func() bool { return waiting() == 0 })
				close(proceed) // for the deallocation
				c.eventually("all claims free", func() bool { return c.isQuiet() && len(c.inUse()) == 0 })
			} else {
				close(proceed)
				c.wholeOf("a", len(claimNames))
			}
			if most := most.Load(); most != 1 {
				t.Errorf("%d claims were written at the same time, want 1", most)
			}
		})
	}
}

// nominated returns the pods in whose status a nominated node was written, once for each write.
func (c *cluster) nominated() (pods []string) {
	for _, a := range c.client.Actions() {
		if patch, ok := a.(clienttesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), `"nominatedNodeName":"`) {
			pods = append(pods, patch.GetName())
		}
	}
	slices.Sort(pods)
	return pods
}

// waitUntil waits in a plugin until the informers of the scheduler have seen a change.
func waitUntil(seen func() bool) {
	for end := time.Now().Add(10 * time.Second); !seen() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// A gang and a pod without one wait for an extended resource that no node has. A DeviceClass that offers it lets them
// be tried again, be it created, or changed later.
func TestDeviceClassOffersAnExtendedResource(t *testing.T) {
	t.Parallel()
	ext := "example.com/ext"
	for name, create := range map[string]bool{"created": true, "changed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).withDevices().run()
			asks := func(p *wrappers.PodWrapper) *wrappers.PodWrapper {
				return p.Resource(corev1.ResourceName(ext), resource.MustParse("1"))
			}
			c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(2).Obj())
			c.pod(asks(wrappers.MakePod("a-0", "ml").Gang("a")), asks(wrappers.MakePod("a-1", "ml").Gang("a")), asks(wrappers.MakePod("plain", "ml")))
			c.refused("a").eventually("the pod without a gang refused", func() bool { return c.cyclesOf("plain") > 0 })
			class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &ext}}
			classes := c.client.ResourceV1().DeviceClasses()
			var err error
			if create {
				class.Name = "other"
				_, err = classes.Create(c.ctx, class, metav1.CreateOptions{})
			} else {
				_, err = classes.Update(c.ctx, class, metav1.UpdateOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
			c.wholeOf("a", 2).eventually("the pod without a gang bound", func() bool { return len(c.boundOf("plain")) == 1 })
		})
	}
}

// Bad input: ResourceSlices that no API server or no driver should let pass. A gang that has devices starts, another
// one says that it lacks some, other pods are scheduled, and it starts when there are.
func TestHostileResourceSlices(t *testing.T) {
	t.Parallel()
	// of returns a slice of a pool of the node n0 with as many devices as the gang needs.
	of := func(name string, change func(s *resourcev1.ResourceSliceSpec)) *resourcev1.ResourceSlice {
		node := "n0"
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		}}
		for i := range claimNames {
			s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("%s-%d", name, i)})
		}
		change(&s.Spec)
		return s
	}
	one := func(change func(s *resourcev1.ResourceSliceSpec)) []*resourcev1.ResourceSlice {
		return []*resourcev1.ResourceSlice{of("bad", change)}
	}
	minusOne, lacks := resource.MustParse("-1"), "cannot allocate all claims"
	for name, tc := range map[string]struct {
		slices   []*resourcev1.ResourceSlice
		selector string // of the DeviceClass; "": none
		waits    string // what the gang says; "": it starts
	}{
		"10,000 devices": {slices: one(func(s *resourcev1.ResourceSliceSpec) {
			for i := range 10_000 {
				s.Devices = append(s.Devices, resourcev1.Device{Name: fmt.Sprint("more-", i)})
			}
		})},
		"10,000 devices, none of which is selected": {waits: lacks, selector: `device.driver == "other.example.com"`, slices: one(func(s *resourcev1.ResourceSliceSpec) {
			for i := range 10_000 {
				s.Devices = append(s.Devices, resourcev1.Device{Name: fmt.Sprint("more-", i)})
			}
		})},
		"a negative number of slices": {waits: lacks, slices: one(func(s *resourcev1.ResourceSliceSpec) { s.Pool.ResourceSliceCount = -1 })},
		"a negative generation":       {slices: one(func(s *resourcev1.ResourceSliceSpec) { s.Pool.Generation = -1 })},
		"negative counters": {waits: lacks, slices: []*resourcev1.ResourceSlice{
			of("counters", func(s *resourcev1.ResourceSliceSpec) {
				s.Devices, s.Pool.ResourceSliceCount = nil, 2
				s.SharedCounters = []resourcev1.CounterSet{{Name: "memory", Counters: map[string]resourcev1.Counter{"bytes": {Value: minusOne}}}}
			}),
			of("devices", func(s *resourcev1.ResourceSliceSpec) {
				s.Pool.ResourceSliceCount = 2
				for i := range s.Devices {
					s.Devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "memory", Counters: map[string]resourcev1.Counter{"bytes": {Value: resource.MustParse("1")}}}}
				}
			}),
		}},
		"a new generation that is incomplete": {waits: lacks, slices: []*resourcev1.ResourceSlice{
			of("old", func(*resourcev1.ResourceSliceSpec) {}),
			of("new", func(s *resourcev1.ResourceSliceSpec) { s.Pool.Generation, s.Pool.ResourceSliceCount = 2, 2 }),
		}},
		"two devices with one name": {waits: "invalid resource pools", slices: one(func(s *resourcev1.ResourceSliceSpec) {
			for i := range s.Devices {
				s.Devices[i].Name = "same"
			}
		})},
		"a node that does not exist": {waits: lacks, slices: one(func(s *resourcev1.ResourceSliceSpec) { *s.NodeName = "nowhere" })},
		"no node at all":             {waits: lacks, slices: one(func(s *resourcev1.ResourceSliceSpec) { s.NodeName = nil })},
		"128 attributes": {selector: `device.attributes["gpu.example.com"].a127 == 127`, slices: one(func(s *resourcev1.ResourceSliceSpec) {
			for i := range s.Devices {
				s.Devices[i].Attributes = attributes(128)
			}
		})},
		"128 attributes, and a selector of another one": {waits: "no such key: a128", selector: `device.attributes["gpu.example.com"].a128 == 128`, slices: one(func(s *resourcev1.ResourceSliceSpec) {
			for i := range s.Devices {
				s.Devices[i].Attributes = attributes(128)
			}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).withDevices()
			resources := c.client.ResourceV1()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			selectDevices := func(expression string) {
				class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
				if expression != "" {
					class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
				}
				_, err := resources.DeviceClasses().Update(c.ctx, class, metav1.UpdateOptions{})
				must(err)
			}
			selectDevices(tc.selector)
			must(resources.ResourceSlices().Delete(c.ctx, "n0", metav1.DeleteOptions{}))
			for _, s := range tc.slices {
				_, err := resources.ResourceSlices().Create(c.ctx, s, metav1.CreateOptions{})
				must(err)
			}
			// Pods may arrive before: each kind has an informer of its own.
			known := c.sched.Profiles[wrappers.SchedulerName].SharedDRAManager()
			c.eventually("the scheduler knows the slices and the class", func() bool {
				slices, err := known.ResourceSlices().ListWithDeviceTaintRules()
				must(err)
				class, err := known.DeviceClasses().Get("gpu")
				return err == nil && (len(class.Spec.Selectors) > 0) == (tc.selector != "") && sameNames(slices, tc.slices)
			})
			c.gangWithClaims().run()
			if tc.waits != "" {
				c.eventually("the gang says: "+tc.waits, func() bool { // the search may be cut short at first
					f, _ := c.gangs.registry.Facts(key("a"))
					if f.Refused.Reason == v2alpha2.ReasonTooLarge {
						t.Fatalf("the gang says %s: %s, want %q", f.Refused.Reason, f.Refused.Message, tc.waits)
					}
					return strings.Contains(f.Refused.Message, tc.waits)
				})
				c.pod(wrappers.MakePod("plain", "ml")).eventually("another pod is scheduled", func() bool { return len(c.boundOf("plain")) == 1 })
				if bound := c.boundOf("a-"); len(bound) > 0 {
					t.Errorf("pods %v are bound without devices", bound)
				}
				for _, s := range tc.slices {
					must(resources.ResourceSlices().Delete(c.ctx, s.Name, metav1.DeleteOptions{}))
				}
				selectDevices("")
				c.addSlice()
			}
			c.wholeOf("a", len(claimNames))
		})
	}
}

func sameNames(a, b []*resourcev1.ResourceSlice) bool {
	names := func(list []*resourcev1.ResourceSlice) (names []string) {
		for _, s := range list {
			names = append(names, s.Name)
		}
		slices.Sort(names)
		return names
	}
	return slices.Equal(names(a), names(b))
}

// attributes returns so many attributes of a device, the most that the API allows are 32.
func attributes(n int64) map[resourcev1.QualifiedName]resourcev1.DeviceAttribute {
	out := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
	for i := range n {
		out[resourcev1.QualifiedName(fmt.Sprint("a", i))] = resourcev1.DeviceAttribute{IntValue: &i}
	}
	return out
}
