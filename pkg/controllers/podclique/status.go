// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/workload"
)

// writeStatus writes the status of recorded if it differs from that of clique, and emits events about breaches
// of the minimum and new failures.
func (r *Reconciler) writeStatus(ctx context.Context, clique, recorded *v1alpha1.PodClique) error {
	if err := r.children.WriteStatus(ctx, clique, recorded); err != nil {
		return err
	}
	if workload.IsTraining(clique) {
		r.emitFailed(ctx, clique, recorded)
	} else {
		children.ReportBreach(r.recorder, clique, v1alpha1.KindPodClique, breachStatus(&clique.Status), breachStatus(&recorded.Status), r.clock.Now())
	}
	children.ReportFailures(r.recorder, clique, v1alpha1.ActionCreatePod, clique.Status.Conditions, recorded.Status.Conditions)
	return nil
}

func breachStatus(s *v1alpha1.PodCliqueStatus) children.BreachStatus {
	return children.BreachStatus{Conditions: s.Conditions, Since: s.MinAvailableBreachedSince, Deadline: s.TerminationDeadline}
}

// emitFailed emits an event on the PodCliqueSet of a Training workload when one of its PodCliques falls below its
// minimum, because pods failed or because they were preempted, and when pods fail after others were preempted. Sources:
// GREP-0285, "Monitoring"; docs/decisions, J9.
func (r *Reconciler) emitFailed(ctx context.Context, before, after *v1alpha1.PodClique) {
	breach := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionMinAvailableBreached)
	if breach == nil || breach.Status != metav1.ConditionTrue {
		return
	}
	preempted := breach.Reason == v1alpha1.ReasonPodsPreempted
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionMinAvailableBreached)
	if was != nil && was.Status == metav1.ConditionTrue && (preempted || was.Reason != v1alpha1.ReasonPodsPreempted) {
		return
	}
	set, err := r.setOf(ctx, after)
	if set == nil || err != nil {
		return // it is gone
	}
	reason, text := v1alpha1.EventPodCliqueFailed, "PodClique %s failed: %s"
	if preempted {
		reason, text = v1alpha1.EventPodCliquePreempted, "PodClique %s lost pods to a preemption: %s"
	}
	r.recorder.Eventf(set, nil, corev1.EventTypeWarning, reason, v1alpha1.ActionWatchMinimum, text, after.Name, message.Truncate(breach.Message, message.MaxCondition))
}
