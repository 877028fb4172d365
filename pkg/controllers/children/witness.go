// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// Witness finds out who does not answer. It is safe for concurrent use. Source: docs/decisions, T9.
type Witness struct {
	client client.Reader // reads from the cache
	live   client.Reader // reads from the API server
	lease  types.NamespacedName
	name   string // of the scheduler that renews the Lease

	mu       sync.Mutex
	fleet    lifecycle.Fleet      // guarded by mu; as judged at judgedAt
	judgedAt time.Time            // guarded by mu
	missing  map[string]time.Time // guarded by mu; nodes of which it is not written since when they do not answer, and when that was seen
	seen     seenLease            // guarded by mu
}

// seenLease is a Lease as it was read.
type seenLease struct {
	lifecycle.Lease
	renewed time.Time // as it is written
	readAt  time.Time
}

// NewWitness returns a Witness. cache reads from a cache, live from the API server.
func NewWitness(cache, live client.Reader, o Options) *Witness {
	return &Witness{client: cache, live: live, lease: o.SchedulerLease, name: o.SchedulerName, missing: map[string]time.Time{}}
}

// leaseAge is the maximum age of what is known about the Lease: a third of the time for which it is valid by default.
const leaseAge = 5 * time.Second

// handover is within how long after a Lease has expired, or was released, another process acquires it: a standby sees
// each renewal, and acts, up to 4.4 s late, and a process may have to start. Earlier, each failover would begin the
// timers of breaches again.
const handover = 20 * time.Second

// fleetAge is the maximum age of what is known about the nodes. Thousands of PodCliques may ask when many nodes are
// silent.
const fleetAge = 2 * time.Second

// MarkSilent returns the pods of a PodClique with their Silence, and when that changes without an event; 0: it does
// not. grace is workload.UnreachableGrace.
func (c *Client) MarkSilent(ctx context.Context, grace *time.Duration, pods []lifecycle.Pod, now time.Time) ([]lifecycle.Pod, time.Duration) {
	return c.witness.unknowns(ctx, grace, pods, now).Mark(pods, now)
}

// SilentMarker returns a function that marks pods of any PodClique of the set before something ends because of the
// others: a pod for which its scheduler has done nothing yet counts as unknown.
func (c *Client) SilentMarker(ctx context.Context, set *v1alpha1.PodCliqueSet, now time.Time) func([]lifecycle.Pod) []lifecycle.Pod {
	return func(pods []lifecycle.Pod) []lifecycle.Pod {
		u := c.witness.unknowns(ctx, workload.UnreachableGrace(set), pods, now)
		u.AtOnce = true
		marked, _ := u.Mark(pods, now)
		return marked
	}
}

// unknowns returns what is to be known about the pods.
func (w *Witness) unknowns(ctx context.Context, grace *time.Duration, pods []lifecycle.Pod, now time.Time) lifecycle.Unknowns {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := lifecycle.Unknowns{Grace: grace}
	if i := slices.IndexFunc(pods, func(p lifecycle.Pod) bool { return p.LostNode != "" }); i >= 0 {
		u.Fleet = w.fleetWith(ctx, pods[i].LostNode, now)
	}
	u.Back = w.backSince(ctx, pods, now)
	if w.lease.Name != "" && slices.ContainsFunc(pods, func(p lifecycle.Pod) bool { return p.AwaitsScheduler() && p.Scheduler == w.name }) {
		u.Lease = w.schedulerLease(ctx, now)
	}
	return u
}

// backSince returns since when the nodes answer of pods that may not have been reported since then.
func (w *Witness) backSince(ctx context.Context, pods []lifecycle.Pod, now time.Time) map[string]time.Time {
	back := map[string]time.Time{}
	for i := range pods {
		name := pods[i].Node
		if _, known := back[name]; known || !pods[i].AwaitsReport() {
			continue
		}
		node := &corev1.Node{}
		switch err := w.client.Get(ctx, types.NamespacedName{Name: name}, node, client.UnsafeDisableDeepCopy); {
		case err == nil && workload.UnreachableNode(node):
			back[name] = now // it answers according to the API server, which the cache does not show yet
		case err == nil:
			back[name] = workload.AnswersSince(node, now)
		}
	}
	return back
}

// schedulerLease returns the Lease of the scheduler; the zero value: it does not exist. If it cannot be read, what was
// read last holds. w.mu must be held.
func (w *Witness) schedulerLease(ctx context.Context, now time.Time) lifecycle.Lease {
	if age := now.Sub(w.seen.readAt); age >= 0 && age < leaseAge {
		return w.seen.Lease
	}
	w.seen.readAt = now
	lease := &coordinationv1.Lease{}
	switch err := w.live.Get(ctx, w.lease, lease); {
	case apierrors.IsNotFound(err):
		w.seen = seenLease{readAt: now}
	case apierrors.IsForbidden(err):
		klog.FromContext(ctx).Error(err, "Whether muster-scheduler answers is not known: apply the Role muster-controller of this version, or see --scheduler-lease")
	case err == nil && lease.Spec.RenewTime != nil && lease.Spec.LeaseDurationSeconds != nil:
		renewed, at := lease.Spec.RenewTime.Time, now
		switch {
		case renewed.Equal(w.seen.renewed):
			at = w.seen.RenewedAt // its writer's clock does not matter
		case w.seen.renewed.IsZero() && renewed.Before(now):
			at = renewed
		}
		valid := time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second + handover
		w.seen = seenLease{renewed: renewed, readAt: now, Lease: lifecycle.Lease{Scheduler: w.name, Name: w.lease.String(),
			RenewedAt: at, Expires: at.Add(valid)}}
	}
	return w.seen.Lease
}

// fleetWith returns what is known about the nodes, for a pass that has found that a node does not answer. w.mu must be
// held.
func (w *Witness) fleetWith(ctx context.Context, silent string, now time.Time) lifecycle.Fleet {
	if age := now.Sub(w.judgedAt); age < 0 || age >= fleetAge || !w.fleet.Knows(silent) {
		w.fleet, w.judgedAt = w.judgeFleet(ctx, now), now
	}
	return w.fleet
}

// judgeFleet returns what is known about the nodes. w.mu must be held.
func (w *Witness) judgeFleet(ctx context.Context, now time.Time) lifecycle.Fleet {
	list, pods := &corev1.NodeList{}, &corev1.PodList{}
	if w.client.List(ctx, list, client.UnsafeDisableDeepCopy) != nil || w.client.List(ctx, pods, client.UnsafeDisableDeepCopy) != nil {
		return lifecycle.Fleet{} // cannot happen: the cache has both kinds
	}
	exists, holds := make(map[string]*corev1.Node, len(list.Items)), map[string]lifecycle.Node{}
	for i := range list.Items {
		exists[list.Items[i].Name] = &list.Items[i]
	}
	missing := map[string]time.Time{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		name := pod.Spec.NodeName
		if _, known := holds[name]; known || name == "" || workload.HasEnded(pod) {
			continue
		}
		n := lifecycle.Node{Name: name, Zone: pod.Labels[corev1.LabelTopologyZone]}
		node := exists[name]
		if node != nil && node.Labels[corev1.LabelTopologyZone] != "" {
			n.Zone = node.Labels[corev1.LabelTopologyZone]
		}
		if workload.UnreachableNode(node) {
			n.SilentSince = w.silentSince(name, node, missing, now)
		} else {
			n.AnswersSince = workload.AnswersSince(node, now)
		}
		holds[name] = n
	}
	w.missing = missing
	var others []lifecycle.Node
	for name, node := range exists {
		if _, isHolder := holds[name]; !isHolder && !workload.UnreachableNode(node) {
			others = append(others, lifecycle.Node{Name: name, AnswersSince: workload.AnswersSince(node, now)})
		}
	}
	nodes := make([]lifecycle.Node, 0, len(holds))
	for _, n := range holds {
		nodes = append(nodes, n)
	}
	return lifecycle.JudgeFleet(nodes, others)
}

// forgetNode forgets since when a node does not answer: it was there just now.
func (w *Witness) forgetNode(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.missing, name)
}

// forgetFleet makes the next pass judge the nodes again, however new the last judgement is.
func (w *Witness) forgetFleet() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judgedAt = time.Time{}
}

// silentSince returns since when a node does not answer: as it is written on the node, otherwise since this process saw
// it, which is added to missing.
func (w *Witness) silentSince(name string, node *corev1.Node, missing map[string]time.Time, now time.Time) time.Time {
	if node != nil {
		if since := workload.SilentSince(node); !since.IsZero() {
			if since.After(now) {
				return now
			}
			return since
		}
	}
	since, seen := w.missing[name]
	if !seen {
		since = now
	}
	missing[name] = since
	return since
}
