// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/snapshot"
)

// freeClaims takes a pod that is evicted from the users of its ResourceClaims. One that nobody uses any more loses its
// devices; one that was made for the pod is that of the pod that is created again, nil for none.
func (w *world) freeClaims(ctx context.Context, pod, again *corev1.Pod) error {
	if w.claims == nil {
		w.claims = map[types.NamespacedName]*resourcev1.ResourceClaim{}
		for _, claim := range snapshot.All[*resourcev1.ResourceClaim](w.snapshot) {
			w.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
		}
	}
	names := map[string]bool{} // whether it was made for the pod
	for _, of := range pod.Status.ResourceClaimStatuses {
		if of.ResourceClaimName != nil {
			names[*of.ResourceClaimName] = true
		}
	}
	for _, of := range pod.Spec.ResourceClaims {
		if of.ResourceClaimName != nil {
			names[*of.ResourceClaimName] = false
		}
	}
	if of := pod.Status.ExtendedResourceClaimStatus; of != nil {
		names[of.ResourceClaimName] = true
	}
	for name, own := range names {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: name}
		if w.claims[key] == nil {
			continue
		}
		claim := w.claims[key].DeepCopy()
		claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID })
		if len(claim.Status.ReservedFor) == 0 {
			claim.Status = resourcev1.ResourceClaimStatus{}
		}
		for i := range claim.OwnerReferences {
			if own && again != nil && claim.OwnerReferences[i].UID == pod.UID {
				claim.OwnerReferences[i].Name, claim.OwnerReferences[i].UID = again.Name, again.UID
			}
		}
		w.claims[key] = claim
		if err := w.Offline.SetClaim(ctx, claim); err != nil {
			return err
		}
	}
	return nil
}

// createClaims adds the ResourceClaims of a manifest, and those that are made of templates for its pods.
func (w *world) createClaims(ctx context.Context, m *manifest) error {
	for _, claim := range m.claims {
		if err := w.Offline.SetClaim(ctx, claim); err != nil {
			return err
		}
	}
	templates := map[types.NamespacedName]*resourcev1.ResourceClaimTemplate{}
	for _, t := range snapshot.All[*resourcev1.ResourceClaimTemplate](w.snapshot) {
		templates[types.NamespacedName{Namespace: t.Namespace, Name: t.Name}] = t
	}
	for key, t := range m.templates {
		templates[key] = t
	}
	for _, pod := range m.pods {
		for _, of := range pod.Spec.ResourceClaims {
			if of.ResourceClaimTemplateName == nil {
				continue
			}
			template := templates[types.NamespacedName{Namespace: pod.Namespace, Name: *of.ResourceClaimTemplateName}]
			if template == nil {
				return fmt.Errorf("pod %s: there is no ResourceClaimTemplate %s in the files, and none that can be read in the cluster", pod.Name, *of.ResourceClaimTemplateName)
			}
			claim := &resourcev1.ResourceClaim{ObjectMeta: *template.Spec.ObjectMeta.DeepCopy(), Spec: *template.Spec.Spec.DeepCopy()}
			claim.Namespace, claim.Name = pod.Namespace, pod.Name+"-"+of.Name
			claim.UID = uidOf("resourceclaim", claim.Namespace, claim.Name)
			claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}}
			pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: of.Name, ResourceClaimName: ptr.To(claim.Name)})
			if err := w.Offline.SetClaim(ctx, claim); err != nil {
				return err
			}
		}
	}
	return nil
}
