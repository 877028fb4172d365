// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// ensureNoneHidden returns a conflict if the PodClique has pods that are not in the cache yet and whose names differ
// from those of the pods to be created: the API server rejects a second pod of the same template and index, because its
// name is in use, but a pod of another template (docs/decisions, U8), or in place of a lost one, has another name
// (docs/decisions, W4). It also returns a conflict if a pod that is lost according to the cache is gone, or its node
// responds. pods are the PodClique's own pods in the cache. During an update pods are created from two templates.
func (r *Reconciler) ensureNoneHidden(ctx context.Context, clique *v1alpha1.PodClique, pods []*corev1.Pod, plan *cliquePlan) error {
	isNew := clique.Status.ObservedGeneration == 0
	last := r.latest.Of(clique, nil)
	mixes := last.reused || len(plan.Lost) > 0 || plan.update != nil && (plan.update.Outdated || plan.update.Progress.Open() || workload.CliqueProgress(clique).Open())
	if !mixes && (last.template == nil || *last.template == clique.Labels[v1alpha1.LabelPodTemplateHash]) &&
		(isNew || clique.Status.ObservedRevision == workload.RevisionNumber(clique)) {
		return nil
	}
	cached := make(map[types.UID]bool, len(pods))
	for _, p := range pods {
		cached[p.UID] = true
	}
	live, err := r.livePods(ctx, clique)
	if err != nil {
		return fmt.Errorf("listing the pods of PodClique %s before others are created under other names: %w", clique.Name, err)
	}
	for i := range live {
		p := &live[i]
		if metav1.IsControlledBy(p, clique) && !cached[p.UID] {
			return apierrors.NewConflict(corev1.Resource("pods"), p.Name, errors.New("was created a moment ago, and is not in the cache yet"))
		}
	}
	unreachable := r.children.LiveUnreachable(ctx)
	for _, p := range plan.Lost { // read by name: it may have lost its labels
		pod := &metav1.PartialObjectMetadata{}
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		if err := r.live.Get(ctx, types.NamespacedName{Namespace: clique.Namespace, Name: p.Name}, pod); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading pod %s, whose index is reused: %w", p.Name, err)
		}
		if string(pod.UID) != p.UID || !unreachable(p.LostNode) {
			return apierrors.NewConflict(corev1.Resource("pods"), p.Name, errors.New("was lost with its node, and is gone, or its node responds"))
		}
	}
	return nil
}

// withPreviousTemplate returns a copy of the PodClique with the template that all its pods had before the update in
// progress; the PodClique itself if that is not known.
func (r *Reconciler) withPreviousTemplate(ctx context.Context, clique *v1alpha1.PodClique) (*v1alpha1.PodClique, error) {
	hash := workload.CliqueProgress(clique).PreviousOr(ptr.Deref(clique.Status.CurrentPodCliqueSetGenerationHash, ""))
	set, err := r.setOf(ctx, clique)
	if set == nil || err != nil {
		return clique, err
	}
	hold, err := r.children.ReadHold(ctx, set, hash, r.options.SchedulerName)
	if err != nil || hold.Revision == nil {
		return clique, err
	}
	if previous := hold.Revision.PodClique(hold.Set, clique); previous != nil {
		return previous, nil
	}
	return clique, nil
}

// createPod creates one pod.
func (r *Reconciler) createPod(ctx context.Context, clique *v1alpha1.PodClique, n lifecycle.NewPod) error {
	pod, err := workload.Pod(clique, n, r.options.OfPods())
	if err != nil {
		return &children.InvalidError{Err: err}
	}
	if err := r.children.Create(ctx, pod); err != nil {
		return fmt.Errorf("creating pod %d: %w", n.Index, err)
	}
	return nil
}

// blockedErr returns an error about the pods that have a required index and another owner or none; nil: there is no
// such pod. Pods of an earlier PodClique of the name are waited for, because CleanUpFormerOwner deletes them. Pods
// without an owner were left by a PodClique that was deleted with --cascade=orphan.
func blockedErr(clique *v1alpha1.PodClique, others []*corev1.Pod, blocked []lifecycle.Pod) error {
	var errs []error
	for _, b := range blocked {
		for _, pod := range others {
			if string(pod.UID) != b.UID {
				continue
			}
			conflict := &children.NameConflictError{Kind: "Pod", Name: pod.Name, Terminating: b.Terminating}
			if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
				conflict.Owner = owner.Kind + " " + owner.Name
				conflict.Terminating = conflict.Terminating || owner.Kind == v1alpha1.KindPodClique && owner.Name == clique.Name
			}
			errs = append(errs, fmt.Errorf("creating pod %d: %w", b.Index, conflict))
		}
	}
	return errors.Join(errs...)
}

// restoreLabels restores the labels that identify the workload of pods, without which the Service does not select them,
// and the template hash of pods that have none, if it is known.
func (r *Reconciler) restoreLabels(ctx context.Context, clique *v1alpha1.PodClique, pods []*corev1.Pod, facts []lifecycle.Pod) error {
	indices := make(map[string]int, len(facts))
	for _, f := range facts {
		indices[f.UID] = f.Index
	}
	want := naming.IdentityLabels(naming.PodLabels(clique.Labels, clique.Name, 0))
	var errs []error
	for _, pod := range pods {
		index := indices[string(pod.UID)]
		if index < 0 || pod.DeletionTimestamp != nil {
			continue
		}
		want[v1alpha1.LabelPodIndex] = strconv.Itoa(index)
		if hash := workload.PodTemplateHash(clique, pod); hash != "" {
			want[v1alpha1.LabelPodTemplateHash] = hash
		} else {
			delete(want, v1alpha1.LabelPodTemplateHash)
		}
		for k, v := range want {
			if pod.Labels[k] != v {
				errs = append(errs, r.children.RestoreLabels(ctx, pod, want))
				break
			}
		}
	}
	return errors.Join(errs...)
}
