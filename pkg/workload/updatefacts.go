// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

// RevisionNumber returns the number of the PodCliqueSet's revision that a PodClique or PodCliqueScalingGroup must
// follow, from the annotation that the controller of its owner sets; 0: not set.
func RevisionNumber(object metav1.Object) int64 {
	n, err := strconv.ParseInt(object.GetAnnotations()[v1alpha1.AnnotationRevision], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// GenerationHash returns the hash of that revision; "": not set.
func GenerationHash(object metav1.Object) string {
	return object.GetAnnotations()[v1alpha1.AnnotationGenerationHash]
}

// FollowsRevision reports whether every pod of a PodClique or PodCliqueScalingGroup follows the revision with this hash
// and number, according to a status that is not older than its metadata.
func FollowsRevision(object metav1.Object, hash string, number int64) bool {
	if RevisionNumber(object) != number || GenerationHash(object) != hash {
		return false
	}
	switch o := object.(type) {
	case *v1alpha1.PodClique:
		return o.Status.ObservedRevision == number && ptr.Deref(o.Status.CurrentPodCliqueSetGenerationHash, "") == hash
	case *v1alpha1.PodCliqueScalingGroup:
		return o.Status.ObservedRevision == number && ptr.Deref(o.Status.CurrentPodCliqueSetGenerationHash, "") == hash
	}
	return false
}

// HasTurn reports whether the turn of a PodClique or PodCliqueScalingGroup has come in the update to its revision.
func HasTurn(object metav1.Object) bool {
	turn := object.GetAnnotations()[v1alpha1.AnnotationUpdateTurn]
	return turn != "" && turn == object.GetAnnotations()[v1alpha1.AnnotationRevision] && !FollowsOnDelete(object)
}

// FollowsOnDelete reports whether the annotation of a PodClique or PodCliqueScalingGroup sets the strategy OnDelete.
func FollowsOnDelete(object metav1.Object) bool {
	return object.GetAnnotations()[v1alpha1.AnnotationUpdateStrategy] == string(v1alpha1.OnDeleteStrategyType)
}

// MinReady returns the time for which a pod of a PodClique must be ready before it is available.
func MinReady(clique *v1alpha1.PodClique) time.Duration {
	return time.Duration(max(clique.Spec.MinReadySeconds, 0)) * time.Second
}

// IsPaused reports whether the annotation of a PodClique pauses its update.
func IsPaused(object metav1.Object) bool {
	return object.GetAnnotations()[v1alpha1.AnnotationUpdatePaused] != ""
}

// IsCurrentlyUpdating reports whether replica i of a set is the one that is being updated.
func IsCurrentlyUpdating(set *v1alpha1.PodCliqueSet, i int) bool {
	if !SetProgress(set).Open() {
		return false
	}
	current := set.Status.UpdateProgress.CurrentlyUpdating
	return current != nil && current.ReplicaIndex == int32(i)
}

// IsGroupUpdating reports whether an update of the scaling group is in progress. Source: docs/decisions, T6.
func IsGroupUpdating(group *v1alpha1.PodCliqueScalingGroup) bool { return GroupProgress(group).Open() }

// CliqueProgress returns the progress of the latest update of a PodClique; nil: there was none.
func CliqueProgress(clique *v1alpha1.PodClique) *lifecycle.Progress {
	p := clique.Status.UpdateProgress
	if p == nil {
		return nil
	}
	progress := &lifecycle.Progress{
		Target:    lifecycle.Target{Generation: p.PodCliqueSetGenerationHash, Template: p.PodTemplateHash},
		StartedAt: p.UpdateStartedAt.Time, EndedAt: timeOf(p.UpdateEndedAt), LastProgress: timeOf(p.LastProgressTime),
		PausedSince: timeOf(p.PausedSince),
		Reached:     lifecycle.ParseIndices(p.ReachedIndices), Previous: p.PreviousGenerationHash}
	if s := p.ReadyPodsSelectedToUpdate; s != nil {
		progress.Selected, progress.Completed = s.Current, s.Completed
	}
	return progress
}

// GroupProgress is CliqueProgress for a scaling group.
func GroupProgress(group *v1alpha1.PodCliqueScalingGroup) *lifecycle.Progress {
	p := group.Status.UpdateProgress
	if p == nil {
		return nil
	}
	progress := &lifecycle.Progress{
		Target:    lifecycle.Target{Generation: p.PodCliqueSetGenerationHash},
		StartedAt: p.UpdateStartedAt.Time, EndedAt: timeOf(p.UpdateEndedAt), LastProgress: timeOf(p.LastProgressTime),
		PausedSince: timeOf(p.PausedSince),
		Reached:     lifecycle.ParseIndices(p.ReachedIndices), Previous: p.PreviousGenerationHash}
	if s := p.ReadyReplicaIndicesSelectedToUpdate; s != nil {
		if s.Current != nil {
			progress.Selected = strconv.Itoa(int(*s.Current))
		}
		for _, index := range s.Completed {
			progress.Completed = append(progress.Completed, strconv.Itoa(int(index)))
		}
	}
	return progress
}

// SetProgress is CliqueProgress for a set: its target is the current revision.
func SetProgress(set *v1alpha1.PodCliqueSet) *lifecycle.Progress {
	p := set.Status.UpdateProgress
	if p == nil {
		return nil
	}
	progress := &lifecycle.Progress{
		Target:    lifecycle.Target{Generation: ptr.Deref(set.Status.CurrentGenerationHash, "")},
		StartedAt: p.UpdateStartedAt.Time, EndedAt: timeOf(p.UpdateEndedAt), LastProgress: timeOf(p.LastProgressTime),
		Reached: lifecycle.ParseIndices(p.ReachedIndices), Previous: p.PreviousGenerationHash}
	if c := p.CurrentlyUpdating; c != nil {
		progress.Selected, progress.SelectedAt = strconv.Itoa(int(c.ReplicaIndex)), c.UpdateStartedAt.Time
	}
	return progress
}

// SetUpdateFacts returns the facts that decide how an update of a set continues, without StalledAfter. replicas are the
// desired replicas; cliques are the PodCliques of the set, where members of scaling groups may be omitted, and groups
// its scaling groups.
func SetUpdateFacts(set *v1alpha1.PodCliqueSet, replicas []lifecycle.SetReplica, cliques []*v1alpha1.PodClique, groups []*v1alpha1.PodCliqueScalingGroup) lifecycle.SetUpdate {
	u := lifecycle.SetUpdate{
		Update: lifecycle.Update{Target: lifecycle.Target{Generation: ptr.Deref(set.Status.CurrentGenerationHash, "")}, Progress: SetProgress(set),
			OnDelete: set.Spec.IsOnDelete(), Paused: set.Spec.IsPaused()},
		Partition: int(set.Spec.Partition()), Replicas: replicas, Waits: map[string]lifecycle.UpdateState{}}
	if p := set.Status.UpdateProgress; p != nil {
		u.Updated = int(p.UpdatedPodCliquesCount + p.UpdatedPodCliqueScalingGroupsCount)
	}
	for _, c := range cliques {
		u.Waits[c.Name] = UpdateState(c.Status.Conditions)
	}
	for _, g := range groups {
		u.Waits[g.Name] = UpdateState(g.Status.Conditions)
	}
	return u
}

// CliqueUpdateFacts returns the facts that decide how an update of a PodClique continues, without StalledAfter. pods
// are its pods, minAvailable is its effective minimum, d are the pods that this pass creates, and deletes for other
// reasons.
func CliqueUpdateFacts(clique *v1alpha1.PodClique, pods []lifecycle.Pod, minAvailable int32, d lifecycle.PodDecision) lifecycle.CliqueUpdate {
	u := lifecycle.CliqueUpdate{
		Update: updateFacts(clique, CliqueProgress(clique), clique.Status.CurrentPodCliqueSetGenerationHash, clique.Spec.Replicas, minAvailable),
		Member: clique.Labels[v1alpha1.LabelPodCliqueScalingGroup] != "", MinReady: MinReady(clique),
		Pods: pods, Deleted: map[string]bool{},
	}
	for _, deletion := range d.Delete {
		if deletion.Reason != lifecycle.DeletedUpdate {
			u.Deleted[deletion.Pod.UID] = true
		}
	}
	for _, n := range d.Create {
		u.Created = append(u.Created, n.Index)
	}
	if !u.Member {
		u.ScaledOut = scaledOut(clique, u.Created)
	}
	return u
}

// updateFacts returns what the facts of a PodClique and of a scaling group have in common.
func updateFacts(object metav1.Object, p *lifecycle.Progress, followed *string, wanted, minAvailable int32) lifecycle.Update {
	u := lifecycle.Update{Target: lifecycle.Target{Generation: GenerationHash(object)},
		OnDelete: FollowsOnDelete(object), Turn: HasTurn(object), Paused: IsPaused(object),
		Progress: p, Followed: ptr.Deref(followed, ""), Wanted: wanted, MinAvailable: minAvailable}
	if _, is := object.(*v1alpha1.PodClique); is {
		u.Target.Template = object.GetLabels()[v1alpha1.LabelPodTemplateHash]
	}
	return u
}

// GroupUpdateFacts returns the facts that decide how an update of a scaling group continues, without StalledAfter, and
// the replicas whose missing PodCliques are created from the previous revision. replicas are the desired ones that
// exist.
func GroupUpdateFacts(set *v1alpha1.PodCliqueSet, group *v1alpha1.PodCliqueScalingGroup, replicas []lifecycle.GroupReplica) (u lifecycle.GroupUpdate, holds map[int]bool) {
	u = lifecycle.GroupUpdate{
		Update: updateFacts(group, GroupProgress(group), group.Status.CurrentPodCliqueSetGenerationHash, max(group.Spec.Replicas, 0),
			lifecycle.GroupMinimum(group.Spec.MinAvailable, group.Spec.Replicas)),
		Revision: RevisionNumber(group), Replicas: replicas, ScaledOut: ScaledOutReplicas(group),
	}
	u.Paused = u.Paused || set.Spec.IsPaused()
	i := naming.LabelIndex(group.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
	u.HoldsNew = u.Paused || !u.Turn && keepsScaledOut(set, i)
	u.SetReached = SetProgress(set).Open() && SetProgress(set).Reached.Has(i)
	holds = map[int]bool{}
	for j := range int(u.Wanted) {
		var existing *lifecycle.GroupReplica
		if at := slices.IndexFunc(replicas, func(r lifecycle.GroupReplica) bool { return r.Index == j }); at >= 0 {
			existing = &replicas[at]
		}
		switch {
		case u.HoldsPrevious(j, existing, replacementDuring(u.Progress, set, i, group, j)):
			holds[j] = true
		case existing == nil:
			u.New = append(u.New, j)
		}
	}
	return u, holds
}

// replacementDuring returns why replica j of a scaling group was replaced last: by the group, or else by the set, which
// replaces its replica i as a whole, since the update of the group began.
func replacementDuring(update *lifecycle.Progress, set *v1alpha1.PodCliqueSet, i int, group *v1alpha1.PodCliqueScalingGroup, j int) lifecycle.Raised {
	raised := RecordedGroupAttempt(group, j)
	if bySet := RecordedAttempt(set.Status.ReplicaAttempts, i); raised.Attempt == 0 && update.Open() && !bySet.At.Before(update.StartedAt) {
		return bySet
	}
	return raised
}

// ScaledOutReplicas returns the desired replicas of a scaling group that it has been scaled out to and that were never
// complete.
func ScaledOutReplicas(group *v1alpha1.PodCliqueScalingGroup) []int {
	indices := make([]int, max(group.Spec.Replicas, 0))
	for j := range indices {
		indices[j] = j
	}
	return scaledOut(group, indices)
}

// scaledOut returns those of the given indices, in ascending order, at which a standalone PodClique or a scaling group
// is scaled out: they are not settled, and not needed to make up for settled ones. None if the status does not say what
// is settled.
func scaledOut(object metav1.Object, indices []int) []int {
	settled, known, wanted := settledIndices(object)
	if !known {
		return nil
	}
	indices = slices.DeleteFunc(slices.Clone(indices), settled.Has)
	return indices[max(0, len(indices)-max(0, wanted-settled.Len())):]
}

// settledIndices returns what the status of a standalone PodClique or a scaling group says is settled, whether it says
// so, and how many units are wanted.
func settledIndices(object metav1.Object) (settled lifecycle.IndexSet, known bool, wanted int) {
	text, minAvailable := "", (*int32)(nil)
	switch o := object.(type) {
	case *v1alpha1.PodClique:
		text, minAvailable, wanted = o.Status.SettledIndices, o.Status.MinAvailable, int(o.Spec.Replicas)
	case *v1alpha1.PodCliqueScalingGroup:
		text, minAvailable, wanted = o.Status.SettledIndices, o.Status.MinAvailable, int(o.Spec.Replicas)
	}
	return lifecycle.ParseIndices(text), text != "" || minAvailable != nil && *minAvailable == 0, wanted
}

// noneSettled says that no unit is settled, and that this is known: lifecycle.ParseIndices ignores it.
const noneSettled = "none"

// settle returns settledIndices for the status of a standalone PodClique or a scaling group, given those of its units
// that exist.
func settle(object metav1.Object, present lifecycle.IndexSet) string {
	settled, known, wanted := settledIndices(object)
	text := lifecycle.Settle(settled, known, present, wanted).String()
	if text == "" && known && wanted > 0 { // the minimum in the status says so no longer
		text = noneSettled
	}
	return text
}

// isScaledOut reports whether a standalone PodClique or a scaling group wants more units than are settled.
func isScaledOut(object metav1.Object) bool {
	settled, known, wanted := settledIndices(object)
	return known && wanted > settled.Len()
}

// FollowedHash returns the hash of the revision that the units of a PodClique or a scaling group follow, except scaled
// out ones: the revision that it is told, unless it was told it before its turn.
func FollowedHash(object metav1.Object) string {
	told, followed, p := GenerationHash(object), (*string)(nil), (*lifecycle.Progress)(nil)
	switch o := object.(type) {
	case *v1alpha1.PodClique:
		followed, p = o.Status.CurrentPodCliqueSetGenerationHash, CliqueProgress(o)
	case *v1alpha1.PodCliqueScalingGroup:
		followed, p = o.Status.CurrentPodCliqueSetGenerationHash, GroupProgress(o)
	}
	if p.AwaitsTurn(told, ptr.Deref(followed, ""), HasTurn(object)) {
		return *followed
	}
	return told
}

// keepsScaledOut reports whether what is scaled out in replica i of a set during an update has the previous template as
// long as the replica has no turn: the update is paused, or must not reach it. Source: docs/decisions, U9.
func keepsScaledOut(set *v1alpha1.PodCliqueSet, i int) bool {
	return set.Spec.IsPaused() || i < int(set.Spec.Partition())
}

// IsBehind reports whether the update of a set has not reached a PodClique or a scaling group: it follows an earlier
// revision than the current one. None of its units is updated then. set may be nil.
func IsBehind(set *v1alpha1.PodCliqueSet, object metav1.Object) bool {
	return set != nil && !set.Spec.IsTraining() && set.Status.CurrentGenerationHash != nil && *set.Status.CurrentGenerationHash != GenerationHash(object)
}

// AwaitsNewest reports whether a new unit of a standalone PodClique or a scaling group waits until the object is told a
// newer revision than the one that it follows, because it would be replaced at once otherwise, or have the previous
// template. An object that the update has not reached is told because it is scaled out, and none while the revision is
// rejected. set may be nil.
func AwaitsNewest(set *v1alpha1.PodCliqueSet, object metav1.Object, isScaledOut bool) bool {
	if set == nil || set.Spec.IsTraining() || set.Status.CurrentGenerationHash == nil ||
		UpdateState(set.Status.Conditions).Reason == lifecycle.UpdateTemplateRejected || *set.Status.CurrentGenerationHash == GenerationHash(object) {
		return false
	}
	i := naming.LabelIndex(object.GetLabels(), v1alpha1.LabelPodCliqueSetReplicaIndex)
	p := SetProgress(set)
	return !p.Open() || set.Spec.IsOnDelete() || p.Reached.Has(i) || isScaledOut && !keepsScaledOut(set, i)
}

// UpdateState returns the content of the condition Progressing; the zero value: there is none.
func UpdateState(conditions []metav1.Condition) lifecycle.UpdateState {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionProgressing)
	if c == nil {
		return lifecycle.UpdateState{}
	}
	return lifecycle.UpdateState{Reason: lifecycle.UpdateReason(c.Reason), Message: c.Message}
}

// WithScheduled returns the PodCliques with the number of bound pods counted from the given pods, which may belong to
// any PodClique, so that an update does not say that it waits for nodes when it no longer does. PodCliques whose
// statuses have another number are copied.
func WithScheduled(cliques []*v1alpha1.PodClique, pods []*corev1.Pod) []*v1alpha1.PodClique {
	bound := map[types.UID]int32{}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil &&
			!HasEnded(pod) {
			bound[owner.UID]++
		}
	}
	counted := slices.Clone(cliques)
	for i, c := range counted {
		if n := bound[c.UID]; n != c.Status.ScheduledReplicas {
			counted[i] = c.DeepCopy()
			counted[i].Status.ScheduledReplicas = n
		}
	}
	return counted
}

// WithCounts returns copies of PodCliques in whose status pods are counted from the given pods: a status may be
// outdated, and ready pods are deleted only on current counts. The same holds for whether nodes do not answer on which
// the minimum may run. pods may belong to any PodClique; see CliquePodsFacts. marked returns pods with their Silence.
func WithCounts(cliques []*v1alpha1.PodClique, pods []*corev1.Pod, unreachable func(node string) bool, marked func([]lifecycle.Pod) []lifecycle.Pod) []*v1alpha1.PodClique {
	return recounted(cliques, pods, unreachable, func(c *v1alpha1.PodClique, facts []lifecycle.Pod) {
		n := lifecycle.Count(facts)
		c.Status.Replicas, c.Status.ScheduledReplicas, c.Status.ReadyReplicas, c.Status.UpdatedReplicas = n.Pods, n.Scheduled, n.Ready, n.Updated
		c.Status.AvailableReplicas = min(c.Status.AvailableReplicas, n.Ready)
		if silent, s := lifecycle.SilentPods(marked(facts)); n.Ready < Minimum(c).Enforced() && n.Ready+silent >= Minimum(c).Enforced() {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionMinAvailableBreached,
				Status: metav1.ConditionUnknown, Reason: string(s.Reason), Message: fmt.Sprintf("%d pods ready; %s", n.Ready, s)})
		}
		c.Status.ObservedGeneration, c.Status.ObservedRevision = c.Generation, RevisionNumber(c)
		c.Status.CurrentPodCliqueSetGenerationHash = nil
		if hash := GenerationHash(c); !slices.ContainsFunc(facts, func(p lifecycle.Pod) bool { return p.Outdated }) {
			c.Status.CurrentPodCliqueSetGenerationHash = &hash
		}
	})
}
