// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// replica contains the desired objects of one replica of a set.
type replica struct {
	// podGroup is nil if the replica needs none, because all of it is scaled to zero.
	podGroup *v2alpha2.PodGroup
	service  *corev1.Service
	cliques  []*v1alpha1.PodClique
	groups   []*v1alpha1.PodCliqueScalingGroup
	hpas     []*autoscalingv2.HorizontalPodAutoscaler
}

// wantedReplica returns the desired objects of replica i of a set with defaults. r is the revision of its template, live are
// owned.children(). hold is the previous revision if the update in progress has not reached the replica, otherwise nil.
func wantedReplica(set *v1alpha1.PodCliqueSet, r *workload.Revision, i int, owned ownedObjects, live workload.Children, hold *workload.Hold) replica {
	return replica{
		podGroup: workload.PodGroup(set, i, live),
		service:  workload.Service(set, i),
		cliques:  workload.PodCliques(set, r, i, owned.cliques, hold),
		groups:   workload.ScalingGroups(set, r, i, owned.groups, hold),
		hpas:     workload.HPAs(set, i),
	}
}

// names returns the names of the replica's objects. For a set with very many replicas, only the names can be kept
// in memory.
func (r replica) names() []lifecycle.Child {
	children := []lifecycle.Child{{Kind: kindService, Name: r.service.Name}}
	if r.podGroup != nil {
		children = append(children, lifecycle.Child{Kind: lifecycle.KindPodGroup, Name: r.podGroup.Name})
	}
	for _, c := range r.cliques {
		children = append(children, lifecycle.Child{Kind: v1alpha1.KindPodClique, Name: c.Name})
	}
	for _, g := range r.groups {
		children = append(children, lifecycle.Child{Kind: v1alpha1.KindPodCliqueScalingGroup, Name: g.Name})
	}
	for _, h := range r.hpas {
		children = append(children, lifecycle.Child{Kind: kindHPA, Name: h.Name})
	}
	return children
}

// removal contains objects that are deleted together: first the PodGroup, if it is deleted, then the others.
type removal struct {
	podGroup *v2alpha2.PodGroup
	rest     []client.Object
}

// unwantedObjects returns the objects that a set owns and that are not desired, by the replica in their labels, highest
// index first.
func unwantedObjects(wanted [][]lifecycle.Child, owned ownedObjects) []removal {
	objects := owned.byChild()
	facts := make([]lifecycle.OwnedChild, 0, len(objects))
	for child, o := range objects {
		facts = append(facts, lifecycle.OwnedChild{
			Child: child, Replica: naming.LabelIndex(o.GetLabels(), v1alpha1.LabelPodCliqueSetReplicaIndex), Terminating: o.GetDeletionTimestamp() != nil})
	}
	var removals []removal
	for _, children := range lifecycle.Unwanted(wanted, facts) {
		var gone removal
		for _, child := range children {
			if pg, ok := objects[child].(*v2alpha2.PodGroup); ok {
				gone.podGroup = pg
			} else {
				gone.rest = append(gone.rest, objects[child])
			}
		}
		removals = append(removals, gone)
	}
	return removals
}
