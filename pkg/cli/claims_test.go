// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/test/wrappers"
)

const driver = "gpu.example.com"

// devices adds a DeviceClass, and so many devices on each of the nodes.
func (s *scene) devices(perNode ...int) *scene {
	s.objects = append(s.objects, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + driver + `"`}}}}})
	for i, n := range perNode {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("slice-%d", i)}, Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To(fmt.Sprintf("node-%04d", i)), Pool: resourcev1.ResourcePool{Name: fmt.Sprintf("node-%04d", i), ResourceSliceCount: 1}}}
		for k := range n {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", k)})
		}
		s.objects = append(s.objects, slice)
	}
	return s
}

func claimSpec() resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}}
}

// withClaims adds a gang that runs on a node, with a claim of its own for each pod; they use the devices from first on.
func (s *scene) withClaims(name string, pods, first int, node string) *scene {
	var all []*wrappers.PodWrapper
	for i := range pods {
		pod := fmt.Sprintf("%s-%d", name, i)
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: pod + "-gpu-x", UID: types.UID(pod + "-claim"), ResourceVersion: "7",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID("uid-" + pod), Controller: ptr.To(true)}}}, Spec: claimSpec()}
		claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: driver, Pool: node, Device: fmt.Sprintf("gpu-%d", first+i)}}}}
		claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: types.UID("uid-" + pod)}}
		s.objects = append(s.objects, claim)
		all = append(all, wrappers.MakePod(pod, "ml").UID(pod).Gang(name).Controller("Job", name, "job-"+name).Node(node).Spec(func(spec *corev1.PodSpec) {
			spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("one-gpu")}}
		}).Status(func(status *corev1.PodStatus) {
			status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To(claim.Name)}}
		}))
	}
	return s.gang(wrappers.MakePodGroup(name, "ml").UID(name).MinMember(int32(pods)), all...)
}

// Pods of a drained node give their devices back, and those that are created again get others, which no other gang
// gets.
func TestDrainOfPodsWithDevices(t *testing.T) {
	t.Parallel()
	of := func(elsewhere int) *scene {
		return (&scene{}).nodes(2, nil).devices(4, elsewhere).withClaims("a", 2, 0, "node-0000").withClaims("b", 2, 2, "node-0000")
	}
	expect(t, of(4), 0, []string{"ml/a  STARTS", "ml/b  STARTS", "node-0001: a-0-again, a-1-again"}, []string{"WAITS"}, "what-if", "--drain", "node-0000")
	expect(t, of(3), 2, []string{"ml/a  STARTS", "ml/b  WAITS"}, nil, "what-if", "--drain", "node-0000")
	expect(t, of(1), 2, []string{"ml/a  WAITS", "ml/b  WAITS"}, []string{"STARTS"}, "what-if", "--drain", "node-0000")
}

// Pods of manifests have claims of templates of the files or of the cluster, and share those of the files.
func TestWhatIfWithDevices(t *testing.T) {
	t.Parallel()
	const (
		requests = "{devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}"
		template = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: one-gpu}\nspec: {spec: " + requests + "}\n---\n"
		claim    = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: shared}\nspec: " + requests + "\n---\n"
	)
	job := func(source string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec: {parallelism: 2, completions: 2, template: {metadata: {annotations: {scheduling.run.ai/min-member: all}}, " +
			"spec: {schedulerName: muster-scheduler, resourceClaims: [{name: gpu, " + source + "}], containers: [{name: c, image: c}]}}}\n"
	}
	cluster := func() *scene { return (&scene{}).nodes(2, nil).devices(3, 2) }
	stored := cluster()
	stored.objects = append(stored.objects, &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "one-gpu"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claimSpec()}})
	for name, tc := range map[string]struct {
		s        *scene
		manifest string
		code     int
		has      string
	}{
		"of a template in the files":   {cluster(), template + job("resourceClaimTemplateName: one-gpu"), 0, "2 copies would start"},
		"of a template in the cluster": {stored, job("resourceClaimTemplateName: one-gpu"), 0, "2 copies would start"},
		"of no template":               {cluster(), job("resourceClaimTemplateName: one-gpu"), 1, "there is no ResourceClaimTemplate one-gpu"},
		"one claim for all":            {cluster(), claim + job("resourceClaimName: shared"), 0, "STARTS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "job.yaml")
			if err := os.WriteFile(file, []byte(tc.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			expect(t, tc.s, tc.code, []string{tc.has}, nil, "what-if", "-f", file, "--count", "9")
		})
	}
}
