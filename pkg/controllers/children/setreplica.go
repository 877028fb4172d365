// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// SetReplica returns the cached PodCliques and pods of replica i of a set by their labels, whatever owns them: a
// deleted set of the same name may have left some (workload.Ownership). Read-only.
func (c *Client) SetReplica(ctx context.Context, namespace, set string, i int) ([]*v1alpha1.PodClique, []*corev1.Pod, error) {
	return listSetReplica(ctx, c.client, namespace, set, i,
		client.MatchingFields{byPodGroup: naming.PodGroupName(set, i)}, client.UnsafeDisableDeepCopy)
}

// LiveSetReplica is SetReplica read from the API server. The caller reads it before it creates a PodClique in place of
// an earlier one, and before it replaces a replica.
func (c *Client) LiveSetReplica(ctx context.Context, namespace, set string, i int) ([]*v1alpha1.PodClique, []*corev1.Pod, error) {
	return listSetReplica(ctx, c.live, namespace, set, i, client.MatchingLabels(naming.OfSetReplica(set, i)))
}

func listSetReplica(ctx context.Context, reader client.Reader, namespace, set string, i int, options ...client.ListOption) ([]*v1alpha1.PodClique, []*corev1.Pod, error) {
	options = append(options, client.InNamespace(namespace))
	cliques, pods := &v1alpha1.PodCliqueList{}, &corev1.PodList{}
	// Pods are listed first: a PodClique that still exists when the pods of another are gone was not deleted with that
	// one.
	for _, list := range []client.ObjectList{pods, cliques} {
		if err := reader.List(ctx, list, options...); err != nil {
			return nil, nil, fmt.Errorf("listing %T of replica %d of PodCliqueSet %s: %w", list, i, set, err)
		}
	}
	return Pointers(cliques.Items), Pointers(pods.Items), nil
}

// LiveGroups returns those of the scaling groups that still exist, read from the API server.
func (c *Client) LiveGroups(ctx context.Context, groups []*v1alpha1.PodCliqueScalingGroup) ([]*v1alpha1.PodCliqueScalingGroup, error) {
	var live []*v1alpha1.PodCliqueScalingGroup
	for _, g := range groups {
		now := &v1alpha1.PodCliqueScalingGroup{}
		if err := c.live.Get(ctx, client.ObjectKeyFromObject(g), now); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading PodCliqueScalingGroup %s from the API server: %w", g.Name, err)
		} else if err == nil && now.UID == g.UID {
			live = append(live, now)
		}
	}
	return live, nil
}

// LiveSetAttempt returns the attempt of replica i of a set that the API server has recorded. A conflict: the set is
// gone.
func (c *Client) LiveSetAttempt(ctx context.Context, set *v1alpha1.PodCliqueSet, i int) (lifecycle.Attempt, error) {
	now := &v1alpha1.PodCliqueSet{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(set), now); client.IgnoreNotFound(err) != nil {
		return lifecycle.Attempt{}, fmt.Errorf("reading PodCliqueSet %s: %w", set.Name, err)
	}
	if now.UID != set.UID {
		return lifecycle.Attempt{}, changed(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindPodCliqueSet), set)
	}
	return workload.SetAttempt(now, i), nil
}

// ControlledBy returns those of the PodCliques whose controlling owner is owner.
func ControlledBy(owner metav1.Object, cliques []*v1alpha1.PodClique) []*v1alpha1.PodClique {
	return slices.DeleteFunc(slices.Clone(cliques), func(c *v1alpha1.PodClique) bool { return !metav1.IsControlledBy(c, owner) })
}

// Pointers returns pointers to the items of a list.
func Pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
