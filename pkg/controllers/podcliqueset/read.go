// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
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

// ownedObjects are the objects that a PodCliqueSet owns, by name, including those that are being deleted. Read-only.
type ownedObjects struct {
	podGroups map[string]*v2alpha2.PodGroup
	cliques   map[string]*v1alpha1.PodClique // standalone
	groups    map[string]*v1alpha1.PodCliqueScalingGroup
	members   map[string]*v1alpha1.PodClique // owned by the groups
	services  map[string]*corev1.Service
	hpas      map[string]*autoscalingv2.HorizontalPodAutoscaler
}

// ownedBy reads the objects that a set owns from the cache.
func (r *Reconciler) ownedBy(ctx context.Context, set *v1alpha1.PodCliqueSet) (ownedObjects, error) {
	podGroups, cliques, groups := &v2alpha2.PodGroupList{}, &v1alpha1.PodCliqueList{}, &v1alpha1.PodCliqueScalingGroupList{}
	services, hpas := &corev1.ServiceList{}, &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := r.children.ListOwned(ctx, set, podGroups, cliques, groups, services, hpas); err != nil {
		return ownedObjects{}, err
	}
	owned := ownedObjects{
		podGroups: byName(podGroups.Items), cliques: byName(cliques.Items), groups: byName(groups.Items),
		services: byName(services.Items), hpas: byName(hpas.Items), members: map[string]*v1alpha1.PodClique{},
	}
	for _, group := range owned.groups {
		members := &v1alpha1.PodCliqueList{}
		if err := r.children.ListOwned(ctx, group, members); err != nil {
			return ownedObjects{}, err
		}
		maps.Copy(owned.members, byName(members.Items))
	}
	return owned, nil
}

func byName[T any, P interface {
	*T
	client.Object
}](items []T) map[string]P {
	m := make(map[string]P, len(items))
	for i := range items {
		m[P(&items[i]).GetName()] = &items[i]
	}
	return m
}

// children returns the PodCliques and scaling groups from which the PodGroups are built.
func (o ownedObjects) children() workload.Children {
	c := workload.Children{Cliques: make(map[string]*v1alpha1.PodClique, len(o.cliques)+len(o.members)), Groups: o.groups}
	maps.Copy(c.Cliques, o.cliques)
	maps.Copy(c.Cliques, o.members)
	return c
}

// child identifies an object that a set owns.
type child struct{ kind, name string }

// Kinds of children that have no constant in the API package.
const (
	kindPodGroup = "PodGroup"
	kindService  = "Service"
	kindHPA      = "HorizontalPodAutoscaler"
)

// byChild returns the objects that the set itself owns, by kind and name.
func (o ownedObjects) byChild() map[child]client.Object {
	children := make(map[child]client.Object, len(o.podGroups)+len(o.cliques)+len(o.groups)+len(o.services)+len(o.hpas))
	addChildren(children, kindPodGroup, o.podGroups)
	addChildren(children, v1alpha1.KindPodClique, o.cliques)
	addChildren(children, v1alpha1.KindPodCliqueScalingGroup, o.groups)
	addChildren(children, kindService, o.services)
	addChildren(children, kindHPA, o.hpas)
	return children
}

func addChildren[T client.Object](children map[child]client.Object, kind string, objects map[string]T) {
	for name, o := range objects {
		children[child{kind, name}] = o
	}
}

// presentPodGroups returns the PodGroups of the current attempts of their replicas.
func (o ownedObjects) presentPodGroups(set *v1alpha1.PodCliqueSet) map[string]*v2alpha2.PodGroup {
	present := make(map[string]*v2alpha2.PodGroup, len(o.podGroups))
	for name, pg := range o.podGroups {
		i := naming.LabelIndex(pg.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
		if pg.DeletionTimestamp == nil && !isEarlier(pg, workload.SetAttempt(set, i)) {
			present[name] = pg
		}
	}
	return present
}

// exists reports whether an object of replica i of a set exists besides its PodCliques.
func (o ownedObjects) exists(set string, i int) bool {
	return o.podGroups[naming.PodGroupName(set, i)] != nil || o.services[naming.HeadlessService(set, i)] != nil
}

// replicas returns, of the first n replicas of a set, the indices of those with an existing object and of those
// without.
func (o ownedObjects) replicas(set string, n int) (existing, missing []int) {
	for i := range n {
		if o.exists(set, i) {
			existing = append(existing, i)
		} else {
			missing = append(missing, i)
		}
	}
	return existing, missing
}

// listed returns the PodCliques and the scaling groups in no order.
func (o ownedObjects) listed() (cliques []*v1alpha1.PodClique, groups []*v1alpha1.PodCliqueScalingGroup) {
	return slices.Collect(maps.Values(o.children().Cliques)), slices.Collect(maps.Values(o.groups))
}
