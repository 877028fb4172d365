// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/workload"
)

// deletePods deletes pods and emits an event for each reason.
func (r *Reconciler) deletePods(ctx context.Context, clique *v1alpha1.PodClique, pods []*corev1.Pod, deletions []lifecycle.Deletion) error {
	if len(deletions) == 0 {
		return nil
	}
	byUID := podsByUID(pods)
	err := children.ForEach(len(deletions), maxParallel, func(i int) error {
		pod := byUID[deletions[i].Pod.UID]
		switch deletions[i].Reason {
		case lifecycle.DeletedUpdate:
			if !deletions[i].Pod.Ready {
				return r.deleteUnready(ctx, pod, deletions[i].Pod)
			}
		case lifecycle.DeletedCancelled:
			return r.children.DeleteVersion(ctx, pod) // it may have been given a node, or have started
		}
		return r.children.Delete(ctx, pod)
	})
	if err != nil {
		return fmt.Errorf("deleting pods: %w", err)
	}
	why := map[lifecycle.DeletionReason][]lifecycle.Pod{}
	for _, d := range deletions {
		why[d.Reason] = append(why[d.Reason], d.Pod)
	}
	for _, reason := range []struct {
		reason     lifecycle.DeletionReason
		kind, name string
		text       string
	}{
		{lifecycle.DeletedScaleIn, corev1.EventTypeNormal, v1alpha1.EventScaledIn, "%s removed: there are more pods than replicas"},
		{lifecycle.DeletedEnded, corev1.EventTypeNormal, v1alpha1.EventPodEnded, "%s ended and will be replaced"},
		{lifecycle.DeletedGivenUp, corev1.EventTypeWarning, v1alpha1.EventPodEnded, "%s removed: it failed too often, and is not replaced"},
		{lifecycle.DeletedDuplicate, corev1.EventTypeWarning, v1alpha1.EventDuplicateIndex, "%s removed: an older pod has the same index"},
		{lifecycle.DeletedCancelled, corev1.EventTypeNormal, v1alpha1.EventPodsCancelled, "%s removed: it never started, and all that started have succeeded or were given up"},
		{lifecycle.DeletedHalted, corev1.EventTypeNormal, v1alpha1.EventPodsStopped, "%s removed: the workload has failed"},
		{lifecycle.DeletedUpdate, corev1.EventTypeNormal, v1alpha1.EventPodUpdating, "%s removed, to be replaced by a pod of the current template"},
	} {
		if gone := why[reason.reason]; len(gone) > 0 {
			r.recorder.Eventf(clique, nil, reason.kind, reason.name, v1alpha1.ActionDeletePod, reason.text, describePods(gone))
		}
	}
	return nil
}

// deleteUnready deletes a pod that is not ready, facts about which say whether its node responds. It may have changed,
// or its node, and the cache not show it yet: a pod on a node that responds again may be ready, and one on a node that
// does not respond any more may run although the control plane writes that it is not ready.
func (r *Reconciler) deleteUnready(ctx context.Context, pod *corev1.Pod, facts lifecycle.Pod) error {
	if workload.IsReady(pod) || facts.AwaitsReport() {
		if was := facts.LostNode != ""; was != r.children.LiveUnreachable(ctx)(pod.Spec.NodeName) {
			return apierrors.NewConflict(corev1.Resource("pods"), pod.Name, errors.New("whether its node responds has changed"))
		}
	}
	return r.children.DeleteVersion(ctx, pod)
}

func podsByUID(pods []*corev1.Pod) map[string]*corev1.Pod {
	byUID := make(map[string]*corev1.Pod, len(pods))
	for _, p := range pods {
		byUID[string(p.UID)] = p
	}
	return byUID
}

// describePods returns a text that names a few pods.
func describePods(pods []lifecycle.Pod) string {
	names := make([]string, len(pods))
	for i, p := range pods {
		names[i] = p.Name
	}
	return "pod " + message.ListNames(names, 5, len(names), ", ")
}
