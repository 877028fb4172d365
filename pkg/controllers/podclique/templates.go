// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/observed"
)

// templates records the template from which the latest pods of each PodClique were created. The zero value is ready
// for use.
//
// Its contents are lost when the process ends. This is safe, because the cache of the next process begins with a list
// of all pods.
type templates struct {
	mu   sync.Mutex
	last map[types.NamespacedName]podTemplate
}

type podTemplate struct {
	clique types.UID
	hash   string
}

// changed reports whether the latest pods of the PodClique were created from a template that differs from the current
// one.
func (t *templates) changed(clique *v1alpha1.PodClique) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.last[keyOf(clique)]
	return ok && last != templateOf(clique)
}

// created records that pods of the current template are about to be created.
func (t *templates) created(clique *v1alpha1.PodClique) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = map[types.NamespacedName]podTemplate{}
	}
	t.last[keyOf(clique)] = templateOf(clique)
}

// forget removes the record of a PodClique that is gone.
func (t *templates) forget(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, name)
}

func keyOf(clique *v1alpha1.PodClique) types.NamespacedName {
	return types.NamespacedName{Namespace: clique.Namespace, Name: clique.Name}
}

func templateOf(clique *v1alpha1.PodClique) podTemplate {
	return podTemplate{clique: clique.UID, hash: clique.Labels[v1alpha1.LabelPodTemplateHash]}
}

// ensureNoneHidden returns a conflict if the PodClique has pods that were created from an earlier template and that
// are not in the cache yet. The API server rejects a second pod of the same template and index, because its name is in
// use; a pod of another template has another name (docs/decisions, U8). pods are the PodClique's own pods in the
// cache.
func (r *Reconciler) ensureNoneHidden(ctx context.Context, clique *v1alpha1.PodClique, pods []*corev1.Pod) error {
	isNew := clique.Status.ObservedGeneration == 0
	if !r.templates.changed(clique) && (isNew || clique.Status.ObservedRevision == observed.Revision(clique)) {
		return nil
	}
	cached := make(map[types.UID]bool, len(pods))
	for _, p := range pods {
		cached[p.UID] = true
	}
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := r.live.List(ctx, live, withLabelOf(clique)...); err != nil {
		return fmt.Errorf("listing the pods of PodClique %s before others are created from a new template: %w", clique.Name, err)
	}
	for i := range live.Items {
		if p := &live.Items[i]; metav1.IsControlledBy(p, clique) && !cached[p.UID] {
			return apierrors.NewConflict(corev1.Resource("pods"), p.Name, errors.New("was created a moment ago, and is not in the cache yet"))
		}
	}
	return nil
}
