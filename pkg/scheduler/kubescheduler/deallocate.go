// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// DynamicResources allocates devices to the claims of a pod before it is bound. If the pod is not bound, the plugin
// removes the pod from the users of its claims. It takes the devices away from a claim without users when it refuses
// the same pod on other nodes, in PostFilter. The members of a gang do not get there: their class is planned first.

// seenLimit bounds the wait for the event of a deallocation.
const seenLimit = 200 * time.Millisecond

// ResourceClaimsOf returns the names of the ResourceClaims of a pod that exist, each once.
func ResourceClaimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil && !slices.Contains(names, *name) {
			names = append(names, *name)
		}
	}
	return names
}

// devicesAsked describes what the ResourceClaims of a pod ask for.
func devicesAsked(f framework.Framework, pod *corev1.Pod) string {
	dra := f.SharedDRAManager()
	if dra == nil || len(pod.Spec.ResourceClaims) == 0 {
		return ""
	}
	var asked []byte
	for _, name := range ResourceClaimsOf(pod) {
		claim, err := dra.ResourceClaims().Get(pod.Namespace, name)
		if err != nil {
			asked = append(asked, "\nclaim "+name...)
			continue
		}
		spec, err := json.Marshal(claim.Spec)
		if err != nil {
			spec = []byte("claim " + name)
		}
		asked = append(append(asked, '\n'), spec...)
	}
	return string(asked)
}

// IsClaimAllocated reports whether devices are allocated to a ResourceClaim, as far as the scheduler knows. False also
// if it is unknown.
func IsClaimAllocated(f framework.Framework, claim types.NamespacedName) bool {
	known := knownClaim(f, claim)
	return known != nil && known.Status.Allocation != nil
}

// AllocatedOnlyFor reports whether devices are allocated to a ResourceClaim that nobody uses but the given pods, as far
// as the scheduler knows.
func AllocatedOnlyFor(f framework.Framework, claim types.NamespacedName, users sets.Set[types.UID]) bool {
	known := knownClaim(f, claim)
	return known != nil && known.Status.Allocation != nil && usedOnlyBy(known, users)
}

// knownClaim returns a ResourceClaim as the scheduler knows it, nil if it does not.
func knownClaim(f framework.Framework, name types.NamespacedName) *resourcev1.ResourceClaim {
	dra := f.SharedDRAManager()
	if dra == nil {
		return nil
	}
	claim, err := dra.ResourceClaims().Get(name.Namespace, name.Name)
	if err != nil {
		return nil
	}
	return claim
}

// DeallocateClaim takes the devices away from a ResourceClaim that nobody uses but the given pods, as DynamicResources
// does in its PostFilter, and waits until the scheduler has seen it. It reports whether the claim had devices, and
// whether it has none now.
func DeallocateClaim(ctx context.Context, f framework.Framework, name types.NamespacedName, users sets.Set[types.UID]) (had, free bool) {
	logger := klog.FromContext(ctx)
	claims := f.ClientSet().ResourceV1().ResourceClaims(name.Namespace)
	claim, err := claims.Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, true
	case err != nil:
		logger.Error(err, "Failed to read a claim of a pod that was not bound; it may keep its devices", "claim", name)
		return false, false
	case claim.Status.Allocation == nil:
		return false, true
	case !usedOnlyBy(claim, users):
		return true, false
	}
	claim.Status.ReservedFor, claim.Status.Allocation, claim.Status.Devices = nil, nil, nil
	if _, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil { // another pod may use it by now
		logger.Error(err, "Failed to deallocate a claim of a pod that was not bound; it may keep its devices", "claim", name)
		return true, false
	}
	logger.V(2).Info("Deallocated a claim of a pod that was not bound", "claim", name)
	// The scheduler would forget an assumed claim again when another member is released: its cache ignores the event of
	// a version that was assumed.
	for deadline := time.Now().Add(seenLimit); IsClaimAllocated(f, name) && time.Now().Before(deadline); {
		time.Sleep(unwindPoll)
	}
	return true, true
}

func usedOnlyBy(claim *resourcev1.ResourceClaim, users sets.Set[types.UID]) bool {
	for _, r := range claim.Status.ReservedFor {
		if !users.Has(r.UID) {
			return false
		}
	}
	return true
}
