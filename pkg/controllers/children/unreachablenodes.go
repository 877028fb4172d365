// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/workload"
)

// byNode is the cache's index of pods by node.
const byNode = "spec.nodeName"

// TerminatingOn returns a function for ChangeHandler.Map that maps a node to the results of the function of for its
// terminating pods.
func (c *Client) TerminatingOn(of func(context.Context, client.Object) []types.NamespacedName) func(context.Context, client.Object) []types.NamespacedName {
	return c.podsOn(of, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// PodsOn is TerminatingOn for all pods of the node: those that are not available while it does not respond. A node that
// is created, deleted or changed has answered until now.
func (c *Client) PodsOn(of func(context.Context, client.Object) []types.NamespacedName) func(context.Context, client.Object) []types.NamespacedName {
	pods := c.podsOn(of, func(*corev1.Pod) bool { return true })
	return func(ctx context.Context, node client.Object) []types.NamespacedName {
		c.witness.forgetNode(node.GetName())
		return pods(ctx, node)
	}
}

func (c *Client) podsOn(of func(context.Context, client.Object) []types.NamespacedName, selected func(*corev1.Pod) bool) func(context.Context, client.Object) []types.NamespacedName {
	return func(ctx context.Context, node client.Object) []types.NamespacedName {
		pods := &corev1.PodList{}
		if err := c.client.List(ctx, pods, client.MatchingFields{byNode: node.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil // cannot happen: the manager does not start without the index
		}
		var keys []types.NamespacedName
		for i := range pods.Items {
			if selected(&pods.Items[i]) {
				keys = append(keys, of(ctx, &pods.Items[i])...)
			}
		}
		return keys
	}
}

// ReachabilityChanged is the urgency of an update of a node: Urgent if it stops responding, or responds again,
// otherwise Never.
func ReachabilityChanged(before, after client.Object) Urgency {
	if workload.UnreachableNode(before.(*corev1.Node)) == workload.UnreachableNode(after.(*corev1.Node)) {
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

// Unreachable returns a function that reports whether a node does not respond or does not exist. A node that the cache
// does not show is looked up in the API server: pods may run on a new node before the cache shows it. The function is
// for one goroutine. An error counts as a response: what is not known ends nothing.
func (c *Client) Unreachable(ctx context.Context) func(node string) bool {
	return c.cachedUnreachable(ctx, c.LiveUnreachable(ctx))
}

// cachedUnreachable is Unreachable, given LiveUnreachable.
func (c *Client) cachedUnreachable(ctx context.Context, live func(node string) bool) func(node string) bool {
	return func(name string) bool {
		node := &corev1.Node{}
		err := c.client.Get(ctx, types.NamespacedName{Name: name}, node, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			return live(name)
		}
		return err == nil && workload.UnreachableNode(node)
	}
}

// StillUnreachable is Unreachable, confirmed by the API server, for decisions that end something because nodes do not
// respond: only nodes that do not respond according to the cache are read. Every node is read once. Which nodes are
// silent together is judged again, too.
func (c *Client) StillUnreachable(ctx context.Context) func(node string) bool {
	c.witness.forgetFleet()
	live := c.LiveUnreachable(ctx)
	cached := c.cachedUnreachable(ctx, live)
	return func(name string) bool { return cached(name) && live(name) }
}

// LiveUnreachable is Unreachable according to the API server, for decisions that need nodes to respond. Every node is
// read once.
func (c *Client) LiveUnreachable(ctx context.Context) func(node string) bool {
	read := map[string]bool{}
	return func(name string) bool {
		if unreachable, known := read[name]; known {
			return unreachable
		}
		node := &corev1.Node{}
		err := c.live.Get(ctx, types.NamespacedName{Name: name}, node)
		if apierrors.IsNotFound(err) {
			node = nil
		}
		read[name] = client.IgnoreNotFound(err) == nil && workload.UnreachableNode(node)
		return read[name]
	}
}
