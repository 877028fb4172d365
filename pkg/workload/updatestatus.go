// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
)

// BeginUpdate returns the status of a set with a new current revision. An update begins, unless the revision is the
// set's first, or the set is a Training workload, whose template is not rolled out (docs/decisions, U7). Under OnDelete
// the update ends at the same time (docs/decisions, U4). A replica that is being updated continues with the new
// revision. Facts about the previous revision are reset: no replica is updated, and the update is not complete.
func BeginUpdate(set *v1alpha1.PodCliqueSet, r *Revision, now metav1.Time) v1alpha1.PodCliqueSetStatus {
	s := *set.Status.DeepCopy()
	first := s.CurrentGenerationHash == nil
	s.CurrentGenerationHash = &r.Hash
	if first || set.Spec.IsTraining() {
		return s
	}
	s.UpdatedReplicas = 0 // the counted replicas are of the previous template
	before, wasOpen := s.UpdateProgress, SetProgress(set).Open()
	s.UpdateProgress = &v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: now, LastProgressTime: &now}
	if set.Spec.IsOnDelete() {
		s.UpdateProgress.UpdateEndedAt, s.UpdateProgress.State = &now, v1alpha1.ReasonOnDelete
		return s
	}
	s.UpdateProgress.PreviousGenerationHash = *set.Status.CurrentGenerationHash
	if wasOpen { // replicas that the previous update has not reached have an earlier template
		s.UpdateProgress.PreviousGenerationHash = before.PreviousGenerationHash
		if c := before.CurrentlyUpdating; c != nil && c.ReplicaIndex >= set.Spec.Partition() {
			s.UpdateProgress.CurrentlyUpdating, s.UpdateProgress.ReachedIndices = c, lifecycle.Indices(int(c.ReplicaIndex)).String()
		}
	}
	s.UpdateProgress.State = v1alpha1.ReasonUpdating
	setProgressing(&s.Conditions, set.Generation, lifecycle.UpdateState{Reason: lifecycle.Updating, Message: "the template has changed"}, true, now)
	return s
}

// setCliqueUpdate sets the update fields in the status of a PodClique.
func setCliqueUpdate(clique *v1alpha1.PodClique, s *v1alpha1.PodCliqueStatus, d *lifecycle.CliqueUpdateDecision, now metav1.Time) {
	s.ObservedRevision = RevisionNumber(clique)
	setFollowed(&s.CurrentPodCliqueSetGenerationHash, GenerationHash(clique), d.Current, d.Outdated)
	setFollowed(&s.CurrentPodTemplateHash, clique.Labels[v1alpha1.LabelPodTemplateHash], d.Current, d.Outdated)
	s.UpdateProgress = nil
	if p := d.Progress; p != nil {
		s.UpdateProgress = &v1alpha1.PodCliqueUpdateProgress{
			UpdateStartedAt: metav1.NewTime(p.StartedAt), UpdateEndedAt: optionalTime(p.EndedAt), LastProgressTime: optionalTime(p.LastProgress),
			PausedSince: optionalTime(p.PausedSince), PodCliqueSetGenerationHash: p.Target.Generation, PodTemplateHash: p.Target.Template, ReachedIndices: p.Reached.String(),
			PreviousGenerationHash: p.Previous}
		if p.Selected != "" || len(p.Completed) > 0 {
			s.UpdateProgress.ReadyPodsSelectedToUpdate = &v1alpha1.PodsSelectedToUpdate{Current: p.Selected, Completed: p.Completed}
		}
	}
	setProgressing(&s.Conditions, clique.Generation, d.State, s.UpdateProgress != nil, now)
}

// setGroupUpdate is setCliqueUpdate for a scaling group.
func setGroupUpdate(group *v1alpha1.PodCliqueScalingGroup, s *v1alpha1.PodCliqueScalingGroupStatus, d *lifecycle.GroupUpdateDecision, now metav1.Time) {
	if d.Known {
		s.ObservedRevision = RevisionNumber(group)
	}
	setFollowed(&s.CurrentPodCliqueSetGenerationHash, GenerationHash(group), d.Current, d.Outdated)
	s.UpdateProgress = nil
	if p := d.Progress; p != nil {
		s.UpdateProgress = &v1alpha1.PodCliqueScalingGroupUpdateProgress{
			UpdateStartedAt: metav1.NewTime(p.StartedAt), UpdateEndedAt: optionalTime(p.EndedAt), LastProgressTime: optionalTime(p.LastProgress),
			PausedSince: optionalTime(p.PausedSince), PodCliqueSetGenerationHash: p.Target.Generation, ReachedIndices: p.Reached.String(), PreviousGenerationHash: p.Previous,
			UpdatedPodCliquesCount: d.UpdatedCliques, TotalPodCliquesCount: d.TotalCliques}
		selected := &v1alpha1.ReplicaIndicesSelectedToUpdate{}
		if n, err := strconv.ParseInt(p.Selected, 10, 32); err == nil {
			index := int32(n)
			selected.Current = &index
		}
		for _, done := range p.Completed {
			if i, err := strconv.ParseInt(done, 10, 32); err == nil {
				selected.Completed = append(selected.Completed, int32(i))
			}
		}
		if selected.Current != nil || len(selected.Completed) > 0 {
			s.UpdateProgress.ReadyReplicaIndicesSelectedToUpdate = selected
		}
	}
	setProgressing(&s.Conditions, group.Generation, d.State, s.UpdateProgress != nil, now)
}

// setSetUpdate is setCliqueUpdate for a set. A set whose template has not been edited has the condition Progressing,
// too, because kubectl wait waits for it. Its state is therefore recorded a second time, for the column of kubectl get.
func setSetUpdate(set *v1alpha1.PodCliqueSet, s *v1alpha1.PodCliqueSetStatus, d *lifecycle.SetUpdateDecision, now metav1.Time) {
	before := s.UpdateProgress
	s.UpdateProgress = nil
	if p := d.Progress; p != nil {
		s.UpdateProgress = &v1alpha1.PodCliqueSetUpdateProgress{State: string(d.State.Reason),
			ReachedIndices: p.Reached.String(), PreviousGenerationHash: p.Previous,
			UpdateStartedAt: metav1.NewTime(p.StartedAt), UpdateEndedAt: optionalTime(p.EndedAt), LastProgressTime: optionalTime(p.LastProgress),
			UpdatedPodCliques: d.Cliques, UpdatedPodCliqueScalingGroups: d.Groups,
			UpdatedPodCliquesCount: d.UpdatedCliques, TotalPodCliquesCount: d.TotalCliques,
			UpdatedPodCliqueScalingGroupsCount: d.UpdatedGroups, TotalPodCliqueScalingGroupsCount: d.TotalGroups}
		if n, err := strconv.ParseInt(p.Selected, 10, 32); err == nil {
			s.UpdateProgress.CurrentlyUpdating = &v1alpha1.PodCliqueSetReplicaUpdateProgress{
				ReplicaIndex: int32(n), UpdateStartedAt: metav1.NewTime(p.SelectedAt)}
		}
		if d.State.Reason == "" && before != nil { // nothing new is known: the condition, too, is kept
			s.UpdateProgress.State = before.State
		}
	}
	setProgressing(&s.Conditions, set.Generation, d.State, true, now)
}

// isUpdating reports whether an update of a PodClique is in progress; for a member of a scaling group, an update of
// the group. Source: docs/decisions, T6.
func isUpdating(clique *v1alpha1.PodClique, d *lifecycle.CliqueUpdateDecision) bool {
	if clique.Labels[v1alpha1.LabelPodCliqueScalingGroup] != "" {
		return HasTurn(clique)
	}
	return d != nil && d.Suspends
}

// setFollowed sets the hash of the target if all pods follow it; "" means none. If some do not, the hash of the target
// is removed: after a rollback during an update, the target is a template that all pods had followed, but some no
// longer do.
func setFollowed(current **string, target string, all, someDoNot bool) {
	switch {
	case target == "":
	case all:
		*current = &target
	case someDoNot && *current != nil && **current == target:
		*current = nil
	}
}

// setProgressing sets the condition Progressing. Without always, the condition is not added as long as no update was
// needed: completion is of interest only after an update.
func setProgressing(conditions *[]metav1.Condition, generation int64, state lifecycle.UpdateState, always bool, now metav1.Time) {
	if state.Reason == "" || state.Reason == lifecycle.UpdateComplete && !always && meta.FindStatusCondition(*conditions, v1alpha1.ConditionProgressing) == nil {
		return
	}
	c := conditionIf(v1alpha1.ConditionProgressing, state.Progressing(), string(state.Reason), string(state.Reason))
	c.Message = message.Truncate(state.Message, maxDescription)
	setConditions(conditions, generation, now, c)
}

// updateDiffers reports whether the update fields of a status have changed, which the owner waits for. The first
// status of a PodClique does not count.
func updateDiffers(before, after *v1alpha1.PodCliqueStatus) bool {
	return before.ObservedGeneration != 0 && (before.ObservedRevision != after.ObservedRevision ||
		!equality.Semantic.DeepEqual(before.UpdateProgress, after.UpdateProgress) ||
		!equality.Semantic.DeepEqual(before.CurrentPodCliqueSetGenerationHash, after.CurrentPodCliqueSetGenerationHash))
}

// SetProgressDiffers reports whether the progress of the update of a set differs in more than its state, so that
// annotations of its children may have to follow.
func SetProgressDiffers(before, after *v1alpha1.PodCliqueSetStatus) bool {
	was, is := before.UpdateProgress.DeepCopy(), after.UpdateProgress.DeepCopy()
	if was != nil && is != nil {
		was.State, is.State = "", ""
	}
	return !equality.Semantic.DeepEqual(was, is)
}
