// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// prepareDevices creates as many devices on each node as it has GPUs, and the gangs, in the variant "claims" with a
// ResourceClaim of one device for each pod.
func prepareDevices(ctx context.Context, cl *cluster) {
	const name = "device.example.com" // of the driver and the class
	resources := cl.client.ResourceV1()
	got(resources.DeviceClasses().Create(ctx, &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", name)}}}},
	}, metav1.CreateOptions{}))
	inParallel(len(cl.nodes), func(i int) error {
		node := cl.nodes[i]
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
			Driver: name, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
		}}
		for k := range cl.o.gpus {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("device-%d", k)})
		}
		_, err := resources.ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
		return err
	})
	for _, g := range drainedGangs(cl.o, cl.variant) {
		if !g.devices {
			continue
		}
		pods := podNames(g)
		inParallel(len(pods), func(i int) error {
			_, err := resources.ResourceClaims(namespace).Create(ctx, &resourcev1.ResourceClaim{
				ObjectMeta: metav1.ObjectMeta{Name: pods[i]},
				Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
					Name: "device", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: name, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
				}}}},
			}, metav1.CreateOptions{})
			return err
		})
	}
	prepareDrain(ctx, cl)
}
