// SPDX-License-Identifier: Apache-2.0

package podcliquescalinggroup

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/workload"
)

// writeStatus writes the status of a group if it has changed, emits events about replaced replicas, breaches of the
// minimum and new failures, and returns the group with that status. createErr are the errors of creating and updating
// PodCliques.
func (r *Reconciler) writeStatus(ctx context.Context, seen *observation, plan *groupPlan, createErr error, now time.Time) (*v1alpha1.PodCliqueScalingGroup, error) {
	group, set := seen.group, seen.set
	facts := workload.GroupStatusFacts{
		Replicas: seen.replicas, Breach: plan.breach, NextTermination: plan.termination.Next,
		Training: set != nil && set.Spec.IsTraining(), Failed: set != nil && workload.FailedReason(set) != "",
		Behind: workload.IsBehind(set, group), TemplateHashes: workload.TemplateHashes(seen.members), Raised: plan.raised, Waits: plan.units.note(), Update: plan.rollout, Problems: r.children.Problems(group, createErr, now)}
	recorded := group.DeepCopy()
	recorded.Status = workload.ScalingGroupStatus(group, facts, metav1.NewTime(now))
	if err := r.children.WriteStatus(ctx, group, recorded); err != nil {
		return nil, err
	}
	before := group.Status.ReplicaAttempts
	if group.Status.PodCliqueSetAttempt != recorded.Status.PodCliqueSetAttempt {
		before = nil
	}
	children.ReportReplaced(r.recorder, group, v1alpha1.KindPodCliqueScalingGroup, before, recorded.Status.ReplicaAttempts)
	if !facts.Training {
		children.ReportBreach(r.recorder, group, v1alpha1.KindPodCliqueScalingGroup, breachStatus(&group.Status), breachStatus(&recorded.Status), now)
	}
	children.ReportFailures(r.recorder, group, v1alpha1.ActionCreatePodClique, group.Status.Conditions, recorded.Status.Conditions)
	return recorded, nil
}

// reportMixed emits an event, once for each update under OnDelete, about a replica in which only some pods have
// followed a change of their template: Muster does not know whether they work together.
func (r *Reconciler) reportMixed(ctx context.Context, group *v1alpha1.PodCliqueScalingGroup, seen *observation) {
	reported := r.mixed.Of(group, nil)
	if seen.set == nil || !workload.FollowsOnDelete(group) || *reported == workload.RevisionNumber(group) {
		return
	}
	j := workload.MixedReplica(seen.members, func(clique, since string) bool {
		earlier, err := r.children.Revision(ctx, seen.set, since)
		return err == nil && earlier != nil && seen.revision.Changes(earlier, clique)
	})
	if j < 0 {
		return
	}
	*reported = workload.RevisionNumber(group)
	r.recorder.Eventf(group, nil, corev1.EventTypeWarning, v1alpha1.EventMixedTemplates, v1alpha1.ActionUpdate,
		"Replica %d has pods of the new template beside pods of an earlier one; to replace it whole: kubectl delete pclq -n %s -l %s=%s,%s=%d",
		j, group.Namespace, v1alpha1.LabelPodCliqueScalingGroup, group.Name, v1alpha1.LabelPodCliqueScalingGroupReplicaIndex, j)
}

func breachStatus(s *v1alpha1.PodCliqueScalingGroupStatus) children.BreachStatus {
	return children.BreachStatus{Conditions: s.Conditions, Since: s.MinAvailableBreachedSince, Deadline: s.TerminationDeadline}
}
