// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/workload"
)

// readTopology reads what the topology constraints of a set with defaults refer to, from the API server: few sets have
// constraints, and the CRDs are optional. Sets without constraints cause no request.
func (r *Reconciler) readTopology(ctx context.Context, set *v1alpha1.PodCliqueSet) (workload.Topology, error) {
	name := set.Spec.Template.TopologyName()
	if name == "" {
		return workload.Topology{}, nil
	}
	binding := &v1alpha1.ClusterTopologyBinding{}
	if found, err := r.readOptional(ctx, name, binding); !found || err != nil {
		return workload.Topology{}, err
	}
	scheduler := ""
	if cliques := set.Spec.Template.CliquesInOrder(); len(cliques) > 0 {
		scheduler = cliques[0].Spec.PodSpec.SchedulerName // that of all cliques
	}
	reference, nodes := workload.TopologyReference(binding, scheduler), &topologyv1alpha1.Topology{}
	if _, err := r.readOptional(ctx, reference, nodes); err != nil {
		return workload.Topology{}, err
	}
	return workload.NewTopology(binding, reference, nodes.Spec.NodeLabels()), nil
}

// readOptional reads an object of the cluster whose CRD is optional, and reports whether it exists.
func (r *Reconciler) readOptional(ctx context.Context, name string, into client.Object) (bool, error) {
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, into)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s: %w", into, name, err)
	}
	return true, nil
}

// constrainedSets returns the sets with a topology constraint: a ClusterTopologyBinding or a Topology has changed,
// which happens rarely.
func (r *Reconciler) constrainedSets(ctx context.Context, _ client.Object) []reconcile.Request {
	sets := &v1alpha1.PodCliqueSetList{}
	if err := r.client.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to list PodCliqueSets of a changed topology")
		return nil
	}
	var requests []reconcile.Request
	for i := range sets.Items {
		if sets.Items[i].Spec.Template.TopologyName() != "" {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	return requests
}
