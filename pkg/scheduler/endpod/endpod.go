// SPDX-License-Identifier: Apache-2.0

package endpod

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// RequestTimeout is the timeout of a request to the API server.
const RequestTimeout = 5 * time.Second

// PatchCondition writes a condition of a pod. metadata are preconditions, the UID among them.
func PatchCondition(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, metadata map[string]any, c *corev1.PodCondition) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "status": map[string]any{"conditions": []*corev1.PodCondition{c}}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	_, err = client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// Delete deletes a pod. accepted is false if the pod is gone, or was terminating before, so that another client has
// deleted it.
func Delete(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (accepted bool, err error) {
	requestCtx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	err = client.CoreV1().Pods(pod.Namespace).Delete(requestCtx, pod.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	switch {
	case err == nil:
		return pod.DeletionTimestamp == nil, nil
	case IsGone(ctx, client, pod, err):
		return false, nil
	default:
		return false, err
	}
}

// IsGone reports whether the pod does not exist any more, given the error of a request for its UID. Other conflicts
// than that of the UID exist, and a patch with another UID is refused as invalid, so that the API server is asked.
func IsGone(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, err error) bool {
	if apierrors.IsNotFound(err) {
		return true
	}
	if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	live, err := client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && live.UID != pod.UID
}
