// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/workload"
)

// Options are what muster-controller serves.
type Options struct {
	// Class is the class of the PodCliqueSets that are served.
	Class string
	// GroveLease is the name of the Lease of Grove's operator, GroveNamespaces are the namespaces in which it counts.
	// Users may create Leases in their own namespaces.
	GroveLease      string
	GroveNamespaces []string
}

// DefaultOptions returns the options of muster-controller without flags.
func DefaultOptions() Options {
	return Options{
		Class:           v1alpha1.DefaultControllerClass,
		GroveLease:      "grove-operator-leader-election",
		GroveNamespaces: []string{"grove-system", "grove-operator", "dynamo-system", "kube-system", metav1.NamespaceDefault},
	}
}

// AddCacheOptions restricts a manager's cache to the Lease that a Reader reads, so that its RBAC rules can name it.
func (o Options) AddCacheOptions(options *cache.Options) {
	options.ByObject[&coordinationv1.Lease{}] = cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, o.GroveLease)}
}

// Reader decides whether PodCliqueSets are served. The zero value serves all.
type Reader struct {
	Options
	Leases, Namespaces client.Reader
}

// Serves reports whether muster-controller serves a set of a namespace, nil: one that is gone. If not, it returns the
// reason, as a clause.
func (r Reader) Serves(ctx context.Context, namespace string, set *v1alpha1.PodCliqueSet) (served bool, reason string, err error) {
	if r.Namespaces == nil {
		return true, "", nil
	}
	var annotations map[string]string
	if set != nil {
		annotations = set.Annotations
	}
	if annotations[v1alpha1.ControllerClass] != "" {
		served, reason = workload.ServesSet(r.Class, annotations, nil, nil)
		return served, reason, nil
	}
	in := &corev1.Namespace{}
	if err := r.Namespaces.Get(ctx, client.ObjectKey{Name: namespace}, in); client.IgnoreNotFound(err) != nil {
		return false, "", fmt.Errorf("reading the class of namespace %s: %w", namespace, err)
	}
	lease, err := r.groveLease(ctx)
	if err != nil {
		return false, "", err
	}
	served, reason = workload.ServesSet(r.Class, annotations, in.Labels, lease)
	return served, reason, nil
}

// groveLease returns a Lease of Grove's operator, nil if there is none.
func (r Reader) groveLease(ctx context.Context) (*coordinationv1.Lease, error) {
	if len(r.GroveNamespaces) == 0 {
		return nil, nil
	}
	leases := &coordinationv1.LeaseList{}
	if err := r.Leases.List(ctx, leases, client.MatchingFields{metav1.ObjectNameField: r.GroveLease}); err != nil {
		return nil, fmt.Errorf("reading the Lease of Grove's operator: %w", err)
	}
	for i := range leases.Items {
		if r.IsGroveLease(&leases.Items[i]) {
			return &leases.Items[i], nil
		}
	}
	return nil, nil
}

// IndexLeases adds the index by which a Reader finds Leases in the cache.
func IndexLeases(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &coordinationv1.Lease{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
}

// IsGroveLease reports whether a Lease is one of Grove's operator.
func (o Options) IsGroveLease(lease client.Object) bool {
	return lease.GetName() == o.GroveLease && slices.Contains(o.GroveNamespaces, lease.GetNamespace())
}
