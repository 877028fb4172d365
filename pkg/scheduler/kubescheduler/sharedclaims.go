// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// DynamicResources lets only one pod at a time begin to use a ResourceClaim without devices: other pods wait until the
// first one was bound. Pods of a gang are bound together, so the scheduler gives such a claim its devices, and all its
// users, before the members have their cycles.

// SharedClaim is a ResourceClaim that several waiting pods of a gang use.
type SharedClaim struct {
	Name    types.NamespacedName
	Devices *resourcev1.AllocationResult // those of the plan; nil: the claim has devices already
	Users   []*corev1.Pod                // those of the plan
}

// SharedClaims returns the ResourceClaims that the pods of the plan share.
func (w *Snapshot) SharedClaims(planned []*corev1.Pod) []SharedClaim {
	if len(w.shared) == 0 {
		return nil
	}
	var out []SharedClaim
	for _, pod := range planned {
		for _, name := range ResourceClaimsOf(pod) {
			if !w.shared.Has(name) {
				continue
			}
			i := slices.IndexFunc(out, func(s SharedClaim) bool { return s.Name.Name == name })
			if i < 0 {
				i = len(out)
				s := SharedClaim{Name: types.NamespacedName{Namespace: pod.Namespace, Name: name}}
				if claim, err := w.f.SharedDRAManager().ResourceClaims().Get(pod.Namespace, name); err == nil && w.devices != nil {
					s.Devices = w.devices.claims[claim.UID].devices
				}
				out = append(out, s)
			}
			out[i].Users = append(out[i].Users, pod)
		}
	}
	return out
}

// OwnClaims returns the ResourceClaims that the pods of the plan do not share, with the devices of the plan; on are the
// nodes of the pods.
func (w *Snapshot) OwnClaims(planned []*corev1.Pod, on []string) []SharedClaim {
	if w.devices == nil {
		return nil
	}
	var out []SharedClaim
	taken := make([]bool, len(w.devices.planned))
	for n, pod := range planned {
		var own []*resourcev1.ResourceClaim
		for _, name := range ResourceClaimsOf(pod) {
			claim := knownClaim(w.f, types.NamespacedName{Namespace: pod.Namespace, Name: name})
			if claim != nil && claim.Status.Allocation == nil && !w.shared.Has(name) {
				own = append(own, claim)
			}
		}
		for i := range w.devices.planned {
			p := &w.devices.planned[i]
			if len(own) == 0 || taken[i] || w.nodes.objects[p.node].Name != on[n] || !slices.EqualFunc(own, p.class.devices.own, haveSameSpec) {
				continue
			}
			taken[i] = true
			for k, claim := range own {
				out = append(out, SharedClaim{Name: types.NamespacedName{Namespace: pod.Namespace, Name: claim.Name}, Devices: &p.devices[k], Users: []*corev1.Pod{pod}})
			}
			break
		}
	}
	return out
}

func haveSameSpec(a, b *resourcev1.ResourceClaim) bool {
	return apiequality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// CheckUsers returns an error if more pods would use the claim than may: those of the plan, and those that use it
// already and are not among the waiting pods of the gang.
func (s *SharedClaim) CheckUsers(f framework.Framework, waiting sets.Set[types.UID]) error {
	n := len(s.Users)
	if claim := knownClaim(f, s.Name); claim != nil {
		n = len(s.usersWith(claim, waiting))
	}
	if n > resourcev1.ResourceClaimReservedForMaxSize {
		return fmt.Errorf("%d pods would share ResourceClaim %s, at most %d can: use more claims", n, s.Name, resourcev1.ResourceClaimReservedForMaxSize)
	}
	return nil
}

// usersWith returns the users that the claim will have: of the waiting pods of the gang, those of the plan.
func (s *SharedClaim) usersWith(claim *resourcev1.ResourceClaim, waiting sets.Set[types.UID]) []resourcev1.ResourceClaimConsumerReference {
	var out []resourcev1.ResourceClaimConsumerReference
	for _, r := range claim.Status.ReservedFor {
		if !waiting.Has(r.UID) {
			out = append(out, r)
		}
	}
	for _, pod := range s.Users {
		out = append(out, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
	}
	return out
}

// ReserveDevices writes the devices and the users of a claim, unless it has them already. waiting are the waiting pods
// of the gang: an earlier plan may have left some of them as users.
func (s *SharedClaim) ReserveDevices(ctx context.Context, f framework.Framework, waiting sets.Set[types.UID]) error {
	if claim := knownClaim(f, s.Name); claim != nil && s.Devices == nil && apiequality.Semantic.DeepEqual(s.usersWith(claim, waiting), claim.Status.ReservedFor) {
		return nil
	}
	claims := f.ClientSet().ResourceV1().ResourceClaims(s.Name.Namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		claim, err := claims.Get(ctx, s.Name.Name, metav1.GetOptions{})
		switch {
		case err != nil:
			return fmt.Errorf("reading ResourceClaim %s, which pods of the gang share: %w", s.Name, err)
		case (s.Devices == nil) != (claim.Status.Allocation != nil):
			return fmt.Errorf("the devices of ResourceClaim %s, which pods of the gang share, have changed", s.Name)
		}
		users := s.usersWith(claim, waiting)
		if s.Devices != nil {
			if !slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
				claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
				if claim, err = claims.Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
					return fmt.Errorf("adding the finalizer of ResourceClaim %s: %w", s.Name, err)
				}
			}
			claim.Status.Allocation = s.Devices.DeepCopy()
			now := metav1.Now()
			claim.Status.Allocation.AllocationTimestamp = &now
		}
		claim.Status.ReservedFor = users
		if claim, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("reserving ResourceClaim %s for pods of the gang: %w", s.Name, err)
		}
		// The informer may have seen the new version already, which is as good.
		_ = f.SharedDRAManager().ResourceClaims().AssumeClaimAfterAPICall(claim)
		return nil
	})
}
