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

// templates remembers the template that pods of each PodClique were created from last. The zero value is ready for use.
//
// It is lost with the process, and may be: the cache of the next one begins with a list of all pods.
type templates struct {
	mu   sync.Mutex
	last map[types.NamespacedName]podTemplate
}

type podTemplate struct {
	clique types.UID
	hash   string
}

// changed reports whether the last pods of the PodClique were created from another template than the present one.
func (t *templates) changed(clique *v1alpha1.PodClique) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.last[keyOf(clique)]
	return ok && last != templateOf(clique)
}

// created records that pods of the present template are about to be created.
func (t *templates) created(clique *v1alpha1.PodClique) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = map[types.NamespacedName]podTemplate{}
	}
	t.last[keyOf(clique)] = templateOf(clique)
}

// forget drops what is remembered of a PodClique that is gone.
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

// ensureNoneHidden returns a conflict if the PodClique has pods that the cache does not show yet, and which were created from an
// earlier template. Pods of one template have names that the API server refuses to give twice; one of another template under
// the same index has another name (docs/decisions, U8). pods are the PodClique's own as the cache has them.
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
