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

// wanted returns what replica i of a set, defaults filled in, is to consist of. live are owned.children().
func wanted(set *v1alpha1.PodCliqueSet, i int, owned ownedObjects, live desired.Children) replica {
	return replica{
		podGroup: desired.PodGroup(set, i, live),
		service:  desired.Service(set, i),
		cliques:  desired.PodCliques(set, i, owned.cliques),
		groups:   desired.ScalingGroups(set, i, owned.groups),
		hpas:     desired.HPAs(set, i),
	}
}

// object is the kind and the name of an object.
type object struct{ kind, name string }

// names returns the objects that the replica consists of. A set may have so many replicas that these are all that can be
// kept of them in memory.
func (r replica) names() []object {
	names := []object{{"Service", r.service.Name}}
	if r.podGroup != nil {
		names = append(names, object{"PodGroup", r.podGroup.Name})
	}
	for _, c := range r.cliques {
		names = append(names, object{"PodClique", c.Name})
	}
	for _, g := range r.groups {
		names = append(names, object{"PodCliqueScalingGroup", g.Name})
	}
	for _, h := range r.hpas {
		names = append(names, object{"HPA", h.Name})
	}
	return names
}

// removal is what goes together: the PodGroup first, if it goes at all, then the rest.
type removal struct {
	podGroup *v2alpha2.PodGroup
	rest     []client.Object
}

// unwanted returns what a set owns beyond what is wanted, by the replica that it says it is of: highest index first.
func unwanted(wanted [][]object, owned ownedObjects) []removal {
	keep := map[object]bool{}
	for _, replica := range wanted {
		for _, o := range replica {
			keep[o] = true
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
		if !keep[object{kind, o.GetName()}] && o.GetDeletionTimestamp() == nil {
			r := of(o)
			r.rest = append(r.rest, o)
		}
	}
	for _, o := range owned.podGroups {
		if !keep[object{"PodGroup", o.Name}] && o.DeletionTimestamp == nil {
			of(o).podGroup = o
		}
	}
	for _, o := range owned.cliques {
		rest("PodClique", o)
	}
	for _, o := range owned.groups {
		rest("PodCliqueScalingGroup", o)
	}
	for _, o := range owned.services {
		rest("Service", o)
	}
	for _, o := range owned.hpas {
		rest("HPA", o)
	}

	var removals []removal
	for _, i := range slices.SortedFunc(maps.Keys(byReplica), func(a, b int) int { return cmp.Compare(b, a) }) {
		removals = append(removals, *byReplica[i])
	}
	return removals
}
