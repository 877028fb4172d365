// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"cmp"
	"maps"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
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

// wantedReplica returns the desired objects of replica i of a set with defaults. r is the revision of its template,
// live are owned.children(). hold is the previous revision if the update in progress has not reached the replica,
// otherwise nil.
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
func (r replica) names() []child {
	children := []child{{kindService, r.service.Name}}
	if r.podGroup != nil {
		children = append(children, child{kindPodGroup, r.podGroup.Name})
	}
	for _, c := range r.cliques {
		children = append(children, child{v1alpha1.KindPodClique, c.Name})
	}
	for _, g := range r.groups {
		children = append(children, child{v1alpha1.KindPodCliqueScalingGroup, g.Name})
	}
	for _, h := range r.hpas {
		children = append(children, child{kindHPA, h.Name})
	}
	return children
}

// removal contains objects that are deleted together: first the PodGroup, if it is deleted, then the others.
type removal struct {
	podGroup *v2alpha2.PodGroup
	rest     []client.Object
}

// unwantedObjects returns the objects that a set owns and that are not among those of its replicas (wanted, by
// replica), by the replica in their labels, highest index first. Those that are being deleted are left out. Source:
// docs/decisions, W1.
func unwantedObjects(wanted [][]child, owned ownedObjects) []removal {
	objects := owned.byChild()
	for _, replica := range wanted {
		for _, c := range replica {
			delete(objects, c)
		}
	}
	byReplica := map[int]removal{}
	for _, c := range slices.SortedFunc(maps.Keys(objects), compareChildren) {
		object := objects[c]
		if object.GetDeletionTimestamp() != nil {
			continue
		}
		i := naming.LabelIndex(object.GetLabels(), v1alpha1.LabelPodCliqueSetReplicaIndex)
		gone := byReplica[i]
		if pg, ok := object.(*v2alpha2.PodGroup); ok {
			gone.podGroup = pg
		} else {
			gone.rest = append(gone.rest, object)
		}
		byReplica[i] = gone
	}
	var removals []removal
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(byReplica))) {
		removals = append(removals, byReplica[i])
	}
	return removals
}

func compareChildren(a, b child) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}
