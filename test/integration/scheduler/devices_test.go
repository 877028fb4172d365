// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// addDevices creates a DeviceClass with the name of the namespace, and so many devices of it on each node. The driver
// has the name of the class and ".example.com".
func (c *cluster) addDevices(onNode func(i int) int) {
	c.t.Helper()
	resources := cp.Client().ResourceV1()
	_, err := resources.DeviceClasses().Create(c.ctx, &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf("device.driver == %q", c.namespace+".example.com"),
		}}}},
	}, metav1.CreateOptions{})
	c.must(err, "creating the device class")
	for i, node := range c.nodes {
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: c.namespace + ".example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
			},
		}
		for k := range onNode(i) {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", k)})
		}
		_, err := resources.ResourceSlices().Create(c.ctx, slice, metav1.CreateOptions{})
		c.must(err, "creating a resource slice")
	}
	c.t.Cleanup(func() {
		ctx := context.WithoutCancel(c.ctx)
		if err := resources.DeviceClasses().Delete(ctx, c.namespace, metav1.DeleteOptions{}); err != nil {
			c.t.Error(err)
		}
		for _, node := range c.nodes {
			if err := resources.ResourceSlices().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
				c.t.Error(err)
			}
		}
	})
}

// devices returns a claim of n devices of the class that addDevices creates.
func (c *cluster) devices(n int64) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: c.namespace, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n},
	}}}}
}

// addTemplate creates a template of claims of n devices, and returns its name.
func (c *cluster) addTemplate(n int64) string {
	c.t.Helper()
	name := fmt.Sprintf("gpus-%d", n)
	_, err := cp.Client().ResourceV1().ResourceClaimTemplates(c.namespace).Create(c.ctx, &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: c.devices(n)},
	}, metav1.CreateOptions{})
	c.must(err, "creating a template of claims")
	return name
}

// Devices are planned (docs/decisions, G18): a gang with claims of devices, made from templates by the controller of
// the control plane, starts at the first attempt, as it would with extended resources.
func TestDevicesArePlanned(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes, perNode int
		lack           int     // nodes that lack a device
		pods           []int64 // devices of each
	}{
		"36 on 10 nodes":  {nodes: 10, perNode: 4, pods: repeat(1, 36)},
		"mixed requests":  {nodes: 10, perNode: 4, lack: 1, pods: append(append(repeat(2, 12), repeat(3, 3)...), repeat(1, 6)...)},
		"512 on 66 nodes": {nodes: 66, perNode: 8, lack: 2, pods: repeat(1, 512)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 0)
			names, err := cp.CreateNodes(c.ctx, controlplane.NodeOptions{Count: tc.nodes, GPUs: tc.perNode, NamePrefix: c.namespace})
			c.must(err, "creating nodes")
			c.nodes = names
			c.addDevices(func(i int) int {
				if i < tc.lack {
					return tc.perNode - 1
				}
				return tc.perNode
			})
			templates := map[int64]string{}
			for _, n := range tc.pods {
				if templates[n] == "" {
					templates[n] = c.addTemplate(n)
				}
			}
			c.start()
			start := func(name string, request func(*corev1.PodSpec, int64)) time.Duration {
				t.Helper()
				c.apply(c.group(name).MinMember(int32(len(tc.pods))))
				for i, n := range tc.pods {
					c.create(c.pod(fmt.Sprintf("%s-%d", name, i), name, 0).Spec(func(s *corev1.PodSpec) { request(s, n) }))
				}
				c.until("the pods have claims", 3*time.Minute, func(pods []*corev1.Pod) bool {
					return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return len(p.Status.ResourceClaimStatuses) < len(p.Spec.ResourceClaims) })
				})
				began := time.Now()
				c.untilBound(name, len(tc.pods))
				took := time.Since(began)
				for i := range tc.pods {
					c.delete(fmt.Sprintf("%s-%d", name, i))
				}
				c.until("the pods are gone", time.Minute, func(pods []*corev1.Pod) bool { return len(pods) == 0 })
				return took
			}
			began := time.Now()
			resources := start("resources", func(s *corev1.PodSpec, n int64) {
				s.Containers[0].Resources = c.pod("", "", n).Obj().Spec.Containers[0].Resources
			})
			claims := start("claims", func(s *corev1.PodSpec, n int64) {
				template := templates[n]
				s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: &template}}
			})
			t.Logf("started with extended resources in %s, with claims in %s after the last of them was created; all in %s", ms(resources), ms(claims), ms(time.Since(began)))
			for _, line := range strings.Split(c.ask("/metrics"), "\n") {
				if strings.HasPrefix(line, "muster_plans_aborted_total{") || strings.HasPrefix(line, `muster_plans_total{result="refused"`) {
					t.Errorf("not every plan was carried out: %s", line)
				}
			}
		})
	}
}

// A gang waits for an extended resource that no node has. When a DeviceClass offers it, the gang starts, with devices.
func TestDeviceClassOffersAnExtendedResource(t *testing.T) {
	c := newCluster(t, 3)
	c.addDevices(func(int) int { return 2 })
	resourceName := c.namespace + ".example.com/gpu"
	c.start()
	c.apply(c.group("a").MinMember(6))
	for i := range 6 {
		c.create(c.pod(fmt.Sprintf("a-%d", i), "a", 0).Resource(corev1.ResourceName(resourceName), resource.MustParse("1")))
	}
	refused := c.untilStatus("a", "says what it lacks", func(s v2Status) bool {
		return strings.Contains(condition(s, v2alpha2.ConditionSatisfied).Message, resourceName)
	})
	t.Logf("without the class: %s: %s", refused.Reason, condition(refused, v2alpha2.ConditionSatisfied).Message)
	classes := cp.Client().ResourceV1().DeviceClasses()
	class, err := classes.Get(c.ctx, c.namespace, metav1.GetOptions{})
	c.must(err, "reading the device class")
	class.Spec.ExtendedResourceName = &resourceName
	began := time.Now()
	_, err = classes.Update(c.ctx, class, metav1.UpdateOptions{})
	c.must(err, "changing the device class")
	c.untilBound("a", 6)
	took := time.Since(began)
	t.Logf("started %s after the device class was changed", ms(took))
	for _, pod := range c.pods() {
		status := pod.Status.ExtendedResourceClaimStatus
		if status == nil {
			t.Errorf("pod %s has no claim of devices", pod.Name)
			continue
		}
		claim, err := cp.Client().ResourceV1().ResourceClaims(c.namespace).Get(c.ctx, status.ResourceClaimName, metav1.GetOptions{})
		c.must(err, "reading a claim")
		if claim.Status.Allocation == nil || claim.Status.Allocation.Devices.Results[0].Pool != pod.Spec.NodeName {
			t.Errorf("pod %s on node %s has devices %+v", pod.Name, pod.Spec.NodeName, claim.Status.Allocation)
		}
	}
	if took > 15*time.Second {
		t.Errorf("started %s after the device class was changed, want seconds", ms(took))
	}
}

func repeat(n int64, times int) (out []int64) {
	for range times {
		out = append(out, n)
	}
	return out
}

// Pods of a gang that share a claim without devices get them together, on one node if the devices belong to one;
// members that share none are not bound to that node. A claim that is too much for one node is named.
func TestGangSharesAClaim(t *testing.T) {
	c := newCluster(t, 3)
	c.addDevices(func(int) int { return 4 })
	own := c.addTemplate(1)
	for name, n := range map[string]int64{"shared": 2, "too-large": 5} {
		_, err := cp.Client().ResourceV1().ResourceClaims(c.namespace).Create(c.ctx, &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: c.devices(n),
		}, metav1.CreateOptions{})
		c.must(err, "creating a claim")
	}
	c.start()
	create := func(gang, claim string, sharers, others int) {
		c.apply(c.group(gang).MinMember(int32(sharers + others)))
		for i := range sharers + others {
			c.create(c.pod(fmt.Sprintf("%s-%d", gang, i), gang, 1).Spec(func(s *corev1.PodSpec) {
				if i < sharers {
					s.ResourceClaims = []corev1.PodResourceClaim{{Name: "shared", ResourceClaimName: &claim}}
				} else {
					s.ResourceClaims = []corev1.PodResourceClaim{{Name: "own", ResourceClaimTemplateName: &own}}
				}
			}))
		}
	}
	create("too-large", "too-large", 2, 0)
	refused := c.untilStatus("too-large", "says why it waits", func(s v2Status) bool {
		return strings.Contains(condition(s, v2alpha2.ConditionSatisfied).Message, "cannot allocate all claims")
	})
	t.Logf("too large a claim: %s: %s", refused.Reason, condition(refused, v2alpha2.ConditionSatisfied).Message)
	create("a", "shared", 6, 10)
	c.untilBound("a", 16)
	nodes := map[string]bool{}
	for _, pod := range c.pods() {
		if pod.Spec.NodeName != "" && pod.Spec.ResourceClaims[0].Name == "shared" {
			nodes[pod.Spec.NodeName] = true
		}
	}
	claim, err := cp.Client().ResourceV1().ResourceClaims(c.namespace).Get(c.ctx, "shared", metav1.GetOptions{})
	c.must(err, "reading the claim")
	if len(nodes) != 1 || claim.Status.Allocation == nil || !nodes[claim.Status.Allocation.Devices.Results[0].Pool] || len(claim.Status.ReservedFor) != 6 {
		t.Errorf("pods that share a claim are on %v, the claim has %+v", nodes, claim.Status)
	}
	for _, line := range strings.Split(c.ask("/metrics"), "\n") {
		if strings.HasPrefix(line, "muster_plans_aborted_total{") {
			t.Errorf("not every plan was carried out: %s", line)
		}
	}
}

// Bad input: a node with 10,000 devices, ResourceSlices that vanish and return, a claim that is deleted while its gang
// waits. The gang says why it waits, starts when it can, and a plain pod does not wait.
func TestBadDevices(t *testing.T) {
	c := newCluster(t, 2)
	const crowd, perSlice = 10_000, resourcev1.ResourceSliceMaxDevices
	c.addDevices(func(i int) int { return 1 - i }) // the second node has an empty slice
	resources := cp.Client().ResourceV1()
	driver, node := c.namespace+".example.com", c.nodes[1]
	var crowded []*resourcev1.ResourceSlice
	for first := 0; first < crowd; first += perSlice {
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-crowd-%d", node, first)},
			Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node,
				Pool: resourcev1.ResourcePool{Name: node + "-crowd", ResourceSliceCount: (crowd + perSlice - 1) / perSlice}},
		}
		for k := first; k < min(first+perSlice, crowd); k++ {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", k)})
		}
		crowded = append(crowded, slice)
	}
	remove := func() {
		for _, s := range crowded {
			if err := resources.ResourceSlices().Delete(context.WithoutCancel(c.ctx), s.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	}
	t.Cleanup(remove)
	add := func() {
		for _, s := range crowded {
			_, err := resources.ResourceSlices().Create(c.ctx, s.DeepCopy(), metav1.CreateOptions{})
			c.must(err, "creating a slice")
		}
	}
	own := c.addTemplate(3)
	gang := func(name string, n int) {
		c.apply(c.group(name).MinMember(int32(n)))
		for i := range n {
			c.create(c.pod(fmt.Sprintf("%s-%d", name, i), name, 0).Spec(func(s *corev1.PodSpec) {
				s.ResourceClaims = []corev1.PodResourceClaim{{Name: "own", ResourceClaimTemplateName: &own}}
			}))
		}
	}
	c.start()
	gang("a", 20)
	waits := func(name string) {
		c.untilStatus(name, "says why it waits", func(s v2Status) bool {
			return strings.Contains(condition(s, v2alpha2.ConditionSatisfied).Message, "cannot allocate all claims")
		})
	}
	waits("a")
	add()
	c.untilBound("a", 20)
	remove() // the pods keep what they have
	gang("b", 20)
	waits("b")
	c.must(resources.ResourceClaims(c.namespace).DeleteCollection(c.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), "deleting all claims")
	c.create(c.pod("plain", "", 1))
	c.untilPodBound("plain")
	for i := range 20 {
		c.delete(fmt.Sprintf("b-%d", i)) // their claims are gone
	}
	c.until("the pods are gone", time.Minute, func(pods []*corev1.Pod) bool { return len(pods) == 21 })
	for i := range 20 {
		c.create(c.pod(fmt.Sprintf("b-%d", i), "b", 0).Spec(func(s *corev1.PodSpec) {
			s.ResourceClaims = []corev1.PodResourceClaim{{Name: "own", ResourceClaimTemplateName: &own}}
		}))
	}
	add()
	c.untilBound("b", 20)
}
