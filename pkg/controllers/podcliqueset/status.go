// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// writeStatus writes the status of a set if it has changed, emits events about replaced replicas, the outcome of a
// Training workload and new failures, and returns the set with that status. A change that can wait is not written
// unless removing, that is, unless objects are deleted afterwards: the set is then returned as it is, with the time to
// wait. createErr are the errors of creating and updating objects.
func (r *Reconciler) writeStatus(ctx context.Context, seen *observation, plan *setPlan, createErr error, removing bool, now time.Time) (*v1alpha1.PodCliqueSet, time.Duration, error) {
	running, err := r.anyRunning(ctx, seen.owned)
	if err != nil {
		return nil, 0, err
	}
	set, recorded := seen.live, seen.live.DeepCopy()
	recorded.Status = workload.PodCliqueSetStatus(set, workload.SetStatusFacts{
		Replicas: seen.facts, Running: running, Recorded: plan.recordedReplicas, Reported: r.storyOf(set).Recorded(), Raised: plan.raised, Training: plan.training,
		NextTermination: plan.termination.Next, Update: plan.update, SchedulerName: r.options.SchedulerName, Topology: seen.topology, Problems: r.children.Problems(set, createErr, now),
	}, metav1.NewTime(now))
	change, differs := workload.PodCliqueSetStatusChange(&set.Status, &recorded.Status)
	if delay := r.unwritten.StatusDelay(string(set.UID), change, differs, now, r.clock.Now()); delay > 0 && !removing {
		return set, delay, nil
	}
	if err := r.children.WriteStatus(ctx, set, recorded); err != nil {
		return nil, 0, err
	}
	r.unwritten.Observe(string(set.UID), now)
	children.ReportReplaced(r.recorder, set, v1alpha1.KindPodCliqueSet, set.Status.ReplicaAttempts, recorded.Status.ReplicaAttempts)
	preempted := seen.facts
	if set.Spec.IsTraining() { // there a breach has events of its own, and by default is due at once
		preempted = slices.DeleteFunc(slices.Clone(preempted), func(r lifecycle.SetReplica) bool { return r.Preempted.Whole })
	} else {
		children.ReportTerminationDue(r.recorder, set, set.Status.TerminationDeadline, recorded.Status.TerminationDeadline)
	}
	for _, clause := range workload.NewPreemptions(&set.Status, &recorded.Status, preempted) {
		r.recorder.Eventf(set, nil, corev1.EventTypeNormal, v1alpha1.EventReplicaPreempted, v1alpha1.ActionWatchMinimum, "Waiting for room again: %s", clause)
	}
	r.emitOutcome(set, recorded, plan.training)
	r.reportUpdate(set, recorded, plan.update)
	children.ReportFailures(r.recorder, set, v1alpha1.ActionCreateChild, set.Status.Conditions, recorded.Status.Conditions)
	return recorded, 0, nil
}

// anyRunning reports whether a pod of the set is running, on a node that responds. The counts of PodCliques may lag
// behind their pods. Source: docs/decisions, J7 and J11.
func (r *Reconciler) anyRunning(ctx context.Context, owned ownedObjects) (bool, error) {
	unreachable := r.children.Unreachable(ctx)
	for _, c := range owned.children().Cliques {
		pods := &corev1.PodList{}
		if err := r.children.ListOwned(ctx, c, pods); err != nil {
			return false, err
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.Status.Phase == corev1.PodRunning && !unreachable(pod.Spec.NodeName) {
				return true, nil
			}
		}
	}
	return false, nil
}
