// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestDeallocate(t *testing.T) {
	t.Parallel()
	allocated := &resourcev1.AllocationResult{}
	users := func(uids ...types.UID) (out []resourcev1.ResourceClaimConsumerReference) {
		for _, uid := range uids {
			out = append(out, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: string(uid), UID: uid})
		}
		return out
	}
	for name, tc := range map[string]struct {
		status                           *resourcev1.ResourceClaimStatus // nil: there is no such claim
		wantHad, wantFree, wantAllocated bool
	}{
		"nobody uses it":              {status: &resourcev1.ResourceClaimStatus{Allocation: allocated}, wantHad: true, wantFree: true},
		"only the pod uses it":        {status: &resourcev1.ResourceClaimStatus{Allocation: allocated, ReservedFor: users("a")}, wantHad: true, wantFree: true},
		"another pod uses it":         {status: &resourcev1.ResourceClaimStatus{Allocation: allocated, ReservedFor: users("a", "b")}, wantHad: true, wantAllocated: true},
		"it has no devices":           {status: &resourcev1.ResourceClaimStatus{}, wantFree: true},
		"it is gone, nothing is left": {wantFree: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, racks(1, 8)...)
			claims := c.f.ClientSet().ResourceV1().ResourceClaims("ns")
			if tc.status != nil {
				claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gpus"}, Status: *tc.status}
				if _, err := claims.Create(c.ctx, claim, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			had, free := DeallocateClaim(c.ctx, c.f, types.NamespacedName{Namespace: "ns", Name: "gpus"}, sets.New[types.UID]("a"))
			if had != tc.wantHad || free != tc.wantFree {
				t.Errorf("had devices: %t, is free: %t; want %t, %t", had, free, tc.wantHad, tc.wantFree)
			}
			if tc.status == nil {
				return
			}
			claim, err := claims.Get(c.ctx, "gpus", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if is := claim.Status.Allocation != nil; is != tc.wantAllocated {
				t.Errorf("allocated: %t, want %t", is, tc.wantAllocated)
			}
		})
	}
}

func TestClaimsOf(t *testing.T) {
	t.Parallel()
	name, template := "own", "template"
	pod := classPod("a").Obj()
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{
		{Name: "direct", ResourceClaimName: &name}, {Name: "made", ResourceClaimTemplateName: &template}, {Name: "later", ResourceClaimTemplateName: &template},
	}
	made := "made-for-a"
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "made", ResourceClaimName: &made}}
	if diff := cmp.Diff([]string{"own", "made-for-a"}, ResourceClaimsOf(pod)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}
