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
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/naming"
)

// replica is what one replica of a set is to consist of.
type replica struct {
	// podGroup is nil if the replica needs nothing, because all of it is scaled to zero.
	podGroup *v2alpha2.PodGroup
	service  *corev1.Service
	cliques  []*v1alpha1.PodClique
	groups   []*v1alpha1.PodCliqueScalingGroup
	hpas     []*autoscalingv2.HorizontalPodAutoscaler
}

// wanted returns what a set, defaults filled in, is to consist of, by the index of the replica.
func wanted(set *v1alpha1.PodCliqueSet, f family) []replica {
	replicas := make([]replica, max(set.Spec.Replicas, 0))
	live := f.children()
	for i := range replicas {
		replicas[i] = replica{
			podGroup: desired.PodGroup(set, i, live),
			service:  desired.Service(set, i),
			cliques:  desired.PodCliques(set, i, f.cliques),
			groups:   desired.ScalingGroups(set, i, f.groups),
			hpas:     desired.HPAs(set, i),
		}
	}
	return replicas
}

// removal is what goes together: the PodGroup first, if it goes at all, then the rest.
type removal struct {
	podGroup *v2alpha2.PodGroup
	rest     []client.Object
}

// unwanted returns what a set owns beyond what is wanted, by the replica that it says it is of: highest index first.
func unwanted(replicas []replica, f family) []removal {
	keep := map[client.ObjectKey]bool{} // by kind, in place of the namespace, and name
	key := func(kind, name string) client.ObjectKey { return client.ObjectKey{Namespace: kind, Name: name} }
	for _, r := range replicas {
		if r.podGroup != nil {
			keep[key("PodGroup", r.podGroup.Name)] = true
		}
		keep[key("Service", r.service.Name)] = true
		for _, c := range r.cliques {
			keep[key("PodClique", c.Name)] = true
		}
		for _, g := range r.groups {
			keep[key("PodCliqueScalingGroup", g.Name)] = true
		}
		for _, h := range r.hpas {
			keep[key("HPA", h.Name)] = true
		}
	}

	byReplica := map[int]*removal{}
	of := func(o client.Object) *removal {
		i := naming.Index(o.GetLabels(), v1alpha1.LabelPodCliqueSetReplicaIndex)
		if byReplica[i] == nil {
			byReplica[i] = &removal{}
		}
		return byReplica[i]
	}
	rest := func(kind string, o client.Object) {
		if !keep[key(kind, o.GetName())] && o.GetDeletionTimestamp() == nil {
			r := of(o)
			r.rest = append(r.rest, o)
		}
	}
	for _, o := range f.podGroups {
		if !keep[key("PodGroup", o.Name)] && o.DeletionTimestamp == nil {
			of(o).podGroup = o
		}
	}
	for _, o := range f.cliques {
		rest("PodClique", o)
	}
	for _, o := range f.groups {
		rest("PodCliqueScalingGroup", o)
	}
	for _, o := range f.services {
		rest("Service", o)
	}
	for _, o := range f.hpas {
		rest("HPA", o)
	}

	var removals []removal
	for _, i := range slices.SortedFunc(maps.Keys(byReplica), func(a, b int) int { return cmp.Compare(b, a) }) {
		removals = append(removals, *byReplica[i])
	}
	return removals
}
