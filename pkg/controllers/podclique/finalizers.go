// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// releaseRecorded removes the finalizer from pods of a Training workload whose end was recorded.
func (r *Reconciler) releaseRecorded(ctx context.Context, pods []*corev1.Pod, recorded []lifecycle.Pod) error {
	byUID := podsByUID(pods)
	return children.ForEach(len(recorded), maxParallel, func(i int) error { return r.releasePod(ctx, byUID[recorded[i].UID]) })
}

// releasePod removes the finalizer from a pod. A pod that is gone, or has been replaced, is not an error.
func (r *Reconciler) releasePod(ctx context.Context, pod *corev1.Pod) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "$deleteFromPrimitiveList/finalizers": []string{v1alpha1.FinalizerPodTracking}}})
	if err != nil {
		return err
	}
	released := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err = r.client.Patch(ctx, released, client.RawPatch(types.StrategicMergePatchType, patch))
	if apierrors.IsConflict(err) { // another pod has the name, or this one was written by others all the time
		present := &corev1.Pod{}
		if readErr := r.live.Get(ctx, client.ObjectKeyFromObject(pod), present); readErr == nil && present.UID != pod.UID {
			return nil
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer from pod %s: %w", pod.Name, err)
	}
	return nil
}

// releaseAbandoned removes the finalizer from pods that are labelled with the name of a PodClique whose controller will
// not record their end: the PodClique is gone, is being deleted, is not served any more, or was replaced by another, or
// the pods were orphaned. No finalizer may prevent the deletion of a namespace, a PodCliqueSet or an earlier attempt.
// Source: docs/decisions, J5.
func (r *Reconciler) releaseAbandoned(ctx context.Context, name types.NamespacedName) error {
	named := &corev1.PodList{}
	if err := r.client.List(ctx, named, client.InNamespace(name.Namespace), client.MatchingFields{byName: name.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing pods labelled with the name: %w", err)
	}
	keeper, err := r.keeperOf(ctx, r.client, name)
	if err != nil {
		return err
	}
	abandoned := func(pod *corev1.Pod) bool {
		owner := metav1.GetControllerOfNoCopy(pod)
		return slices.Contains(pod.Finalizers, v1alpha1.FinalizerPodTracking) && (owner == nil || keeper == "" || owner.UID != keeper)
	}
	var pods []*corev1.Pod
	for i := range named.Items {
		if abandoned(&named.Items[i]) {
			pods = append(pods, &named.Items[i])
		}
	}
	if len(pods) == 0 {
		return nil
	}
	// This read finds a PodClique that is not in the cache yet.
	if keeper, err = r.keeperOf(ctx, r.live, name); err != nil {
		return err
	}
	return children.ForEach(len(pods), maxParallel, func(i int) error {
		if !abandoned(pods[i]) {
			return nil
		}
		return r.releasePod(ctx, pods[i])
	})
}

// keeperOf returns the UID of a PodClique that is served and not being deleted, "" if there is none.
func (r *Reconciler) keeperOf(ctx context.Context, reader client.Reader, name types.NamespacedName) (types.UID, error) {
	clique := &v1alpha1.PodClique{}
	if err := reader.Get(ctx, name, clique); apierrors.IsNotFound(err) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("reading the PodClique of pods with a finalizer: %w", err)
	}
	if served, err := r.children.Serves(ctx, clique); err != nil || !served || clique.DeletionTimestamp != nil {
		return "", err
	}
	return clique.UID, nil
}
