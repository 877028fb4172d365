package podcliqueset

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/naming"
)

// family is what a PodCliqueSet owns, by name, that which is being deleted included. Read-only.
type family struct {
	podGroups map[string]*v2alpha2.PodGroup
	cliques   map[string]*v1alpha1.PodClique // standalone
	groups    map[string]*v1alpha1.PodCliqueScalingGroup
	members   map[string]*v1alpha1.PodClique // owned by the groups
	services  map[string]*corev1.Service
	hpas      map[string]*autoscalingv2.HorizontalPodAutoscaler
}

// familyOf reads what a set owns from the cache.
func (r *Reconciler) familyOf(ctx context.Context, set *v1alpha1.PodCliqueSet) (family, error) {
	podGroups, cliques, groups := &v2alpha2.PodGroupList{}, &v1alpha1.PodCliqueList{}, &v1alpha1.PodCliqueScalingGroupList{}
	services, hpas := &corev1.ServiceList{}, &autoscalingv2.HorizontalPodAutoscalerList{}
	for _, read := range []func() error{
		func() error { return children.Of(ctx, r.Client, set, podGroups) },
		func() error { return children.Of(ctx, r.Client, set, cliques) },
		func() error { return children.Of(ctx, r.Client, set, groups) },
		func() error { return children.Of(ctx, r.Client, set, services) },
		func() error { return children.Of(ctx, r.Client, set, hpas) },
	} {
		if err := read(); err != nil {
			return family{}, err
		}
	}
	f := family{
		podGroups: byName(podGroups.Items, func(o *v2alpha2.PodGroup) string { return o.Name }),
		cliques:   byName(cliques.Items, func(o *v1alpha1.PodClique) string { return o.Name }),
		groups:    byName(groups.Items, func(o *v1alpha1.PodCliqueScalingGroup) string { return o.Name }),
		services:  byName(services.Items, func(o *corev1.Service) string { return o.Name }),
		hpas:      byName(hpas.Items, func(o *autoscalingv2.HorizontalPodAutoscaler) string { return o.Name }),
		members:   map[string]*v1alpha1.PodClique{},
	}
	for _, group := range f.groups {
		members := &v1alpha1.PodCliqueList{}
		if err := children.Of(ctx, r.Client, group, members); err != nil {
			return family{}, err
		}
		for i := range members.Items {
			f.members[members.Items[i].Name] = &members.Items[i]
		}
	}
	return f, nil
}

func byName[T any](items []T, name func(*T) string) map[string]*T {
	m := make(map[string]*T, len(items))
	for i := range items {
		m[name(&items[i])] = &items[i]
	}
	return m
}

// children returns the PodCliques and scaling groups, as the PodGroups are built from them.
func (f family) children() desired.Children {
	c := desired.Children{Cliques: make(map[string]*v1alpha1.PodClique, len(f.cliques)+len(f.members)), Groups: f.groups}
	for _, cliques := range []map[string]*v1alpha1.PodClique{f.cliques, f.members} {
		for name, clique := range cliques {
			c.Cliques[name] = clique
		}
	}
	return c
}

// standing returns those of the first n replicas of a set of which something is there, and those of which nothing is.
func (f family) standing(set string, n int) (standing, missing []int) {
	for i := range n {
		if f.podGroups[naming.PodGroup(set, i)] != nil || f.services[naming.HeadlessService(set, i)] != nil {
			standing = append(standing, i)
		} else {
			missing = append(missing, i)
		}
	}
	return standing, missing
}

// listed returns the PodCliques and the scaling groups in no order.
func (f family) listed() (cliques []*v1alpha1.PodClique, groups []*v1alpha1.PodCliqueScalingGroup) {
	for _, c := range f.children().Cliques {
		cliques = append(cliques, c)
	}
	for _, g := range f.groups {
		groups = append(groups, g)
	}
	return cliques, groups
}
