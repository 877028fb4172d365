// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/observed"
)

// byNode is the cache's index of pods by node.
const byNode = "spec.nodeName"

// IndexPodsByNode adds the index by which the cache finds the pods of a node.
func IndexPodsByNode(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, byNode, func(o client.Object) []string {
		if node := o.(*corev1.Pod).Spec.NodeName; node != "" {
			return []string{node}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("indexing pods by node: %w", err)
	}
	return nil
}

// TerminatingOn returns a function for ChangeHandler.Map that maps a node to the results of the function of for its
// terminating pods.
func (c *Client) TerminatingOn(of func(context.Context, client.Object) []types.NamespacedName) func(context.Context, client.Object) []types.NamespacedName {
	return func(ctx context.Context, node client.Object) []types.NamespacedName {
		pods := &corev1.PodList{}
		if err := c.client.List(ctx, pods, client.MatchingFields{byNode: node.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil // cannot happen: the manager does not start without the index
		}
		var keys []types.NamespacedName
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp != nil {
				keys = append(keys, of(ctx, &pods.Items[i])...)
			}
		}
		return keys
	}
}

// ReachabilityChanged is the urgency of an update of a node: Urgent if it stops responding, or responds again,
// otherwise Never.
func ReachabilityChanged(before, after client.Object) Urgency {
	if observed.UnreachableNode(before.(*corev1.Node)) == observed.UnreachableNode(after.(*corev1.Node)) {
		return Never
	}
	return Urgent
}

// EndsUnreachable reports whether a pod's deletion has begun, or the end of its grace period has moved, on a node that
// does not respond. Objects that wait for the pod wait until that time, and no other event would trigger their
// reconciliation.
func (c *Client) EndsUnreachable(ctx context.Context, before, after *corev1.Pod) bool {
	return !before.DeletionTimestamp.Equal(after.DeletionTimestamp) && c.Unreachable(ctx)(after.Spec.NodeName)
}

// Unreachable returns a function that reports whether a node does not respond or does not exist.
func (c *Client) Unreachable(ctx context.Context) func(node string) bool {
	return func(name string) bool {
		node := &corev1.Node{}
		err := c.client.Get(ctx, types.NamespacedName{Name: name}, node, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			return observed.UnreachableNode(nil)
		}
		return err == nil && observed.UnreachableNode(node)
	}
}
