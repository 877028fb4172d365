// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/workload"
)

// maxRevisions is the number of revisions of a set that are kept, the same as for a StatefulSet.
const maxRevisions = 10

// withRevision returns the current revision of a set, which is stored if it is new, and the set whose status has its
// hash: the set that was read, or a copy whose status was written. A revision that the set has had before gets a new
// number.
func (r *Reconciler) withRevision(ctx context.Context, set *v1alpha1.PodCliqueSet, owned ownedObjects, now time.Time) (*v1alpha1.PodCliqueSet, *workload.Revision, error) {
	latest, err := r.children.LatestRevision(ctx, set)
	if err != nil {
		return nil, nil, err
	}
	if latest != nil && set.Status.CurrentGenerationHash != nil && latest.Hash == *set.Status.CurrentGenerationHash &&
		latest.Describes(set, r.options.SchedulerName) {
		return set, latest, nil
	}

	// With a cache that is behind, an earlier template would become the latest revision.
	if err := r.children.EnsureUpToDate(ctx, set); err != nil {
		return nil, nil, err
	}
	revisions, orphans, err := r.children.LiveRevisions(ctx, set)
	if err != nil {
		return nil, nil, err
	}
	if set.Status.CurrentGenerationHash == nil && len(revisions)+len(orphans) > 0 {
		if err := r.adopt(ctx, set, slices.Concat(orphans, revisions), now); err != nil {
			return nil, nil, err
		}
	}
	revision := presentRevision(revisions, set, r.options.SchedulerName, owned)
	// A revision that is not in the cache may have lost its labels, which StoreRevision restores.
	isCached := latest != nil && latest.Hash == revision.Hash
	if !isCached || len(revisions) == 0 || revisions[0].Number < revision.Number {
		if err := r.children.StoreRevision(ctx, set, revision); err != nil {
			return nil, nil, fmt.Errorf("storing the template as a revision: %w", err)
		}
		if err := r.trimRevisions(ctx, set, revision, revisions, owned); err != nil {
			return nil, nil, err
		}
	}
	if set.Status.CurrentGenerationHash != nil && *set.Status.CurrentGenerationHash == revision.Hash {
		return set, revision, nil
	}
	begun := set.DeepCopy()
	begun.Status = workload.BeginUpdate(set, revision, metav1.NewTime(now))
	if err := r.children.WriteStatus(ctx, set, begun); err != nil {
		return nil, nil, err
	}
	if p := begun.Status.UpdateProgress; p != nil && !begun.Spec.IsTraining() {
		metrics.UpdateBegan()
		text := "The template has changed (revision %d); replicas are updated one at a time"
		if set.Spec.IsOnDelete() {
			text = "The template has changed (revision %d); pods follow when they are deleted"
		}
		r.recorder.Eventf(begun, nil, corev1.EventTypeNormal, v1alpha1.EventUpdateStarted, v1alpha1.ActionUpdate, text, revision.Number)
	}
	return begun, revision, nil
}

// presentRevision returns the revision of the current template. revisions are the stored ones, the latest first. Its
// number is greater than all others, including numbers of revisions that are no longer stored but that children still
// follow.
func presentRevision(revisions []*workload.Revision, set *v1alpha1.PodCliqueSet, schedulerName string, owned ownedObjects) *workload.Revision {
	cliques, groups := owned.listed()
	var present workload.Revision
	if k := slices.IndexFunc(revisions, func(r *workload.Revision) bool { return r.Describes(set, schedulerName) }); k >= 0 {
		present = *revisions[k]
		if k > 0 {
			present.Number = revisions[0].Number + 1
		}
	} else {
		present = *workload.NewRevision(set, schedulerName, revisions, cliques)
	}
	see := func(child metav1.Object) {
		number := workload.RevisionNumber(child)
		if workload.GenerationHash(child) != present.Hash {
			number++
		}
		present.Number = max(present.Number, number)
	}
	for _, c := range cliques {
		see(c)
	}
	for _, g := range groups {
		see(g)
	}
	return &present
}

// trimRevisions deletes the oldest stored revisions. revisions are those besides the current one, the latest first;
// the latest maxRevisions-1 of them are kept, and those that objects follow or are recreated with.
func (r *Reconciler) trimRevisions(ctx context.Context, set *v1alpha1.PodCliqueSet, present *workload.Revision, revisions []*workload.Revision, owned ownedObjects) error {
	inUse := map[string]bool{present.Hash: true}
	use := func(told string, followed *string, p *lifecycle.Progress) {
		inUse[told], inUse[ptr.Deref(followed, "")] = true, true
		if p != nil {
			inUse[p.Previous] = true
		}
	}
	use("", set.Status.CurrentGenerationHash, workload.SetProgress(set))
	cliques, groups := owned.listed()
	for _, c := range cliques {
		use(workload.GenerationHash(c), c.Status.CurrentPodCliqueSetGenerationHash, workload.CliqueProgress(c))
	}
	for _, g := range groups {
		use(workload.GenerationHash(g), g.Status.CurrentPodCliqueSetGenerationHash, workload.GroupProgress(g))
	}
	others := slices.DeleteFunc(slices.Clone(revisions), func(old *workload.Revision) bool { return old.Hash == present.Hash })
	for _, old := range others[min(len(others), maxRevisions-1):] {
		if inUse[old.Hash] {
			continue
		}
		if err := r.children.DeleteRevision(ctx, set, old); err != nil {
			return fmt.Errorf("deleting revision %d: %w", old.Number, err)
		}
	}
	return nil
}

// heldReplicas returns the previous revision of the replicas that the update in progress has not reached, by index; the
// others have no entry. rejected: the API server rejects pods of the current revision.
func (r *Reconciler) heldReplicas(ctx context.Context, set *v1alpha1.PodCliqueSet, facts []lifecycle.SetReplica, owned ownedObjects, rejected bool) (map[int]*workload.Hold, error) {
	u := workload.SetUpdateFacts(set, facts, nil, nil)
	var base *workload.Hold
	holds := map[int]*workload.Hold{}
	for _, replica := range facts {
		if !u.HoldsPrevious(replica) {
			continue
		}
		if base == nil {
			var err error
			if base, err = r.previousRevision(ctx, set, owned); err != nil {
				return nil, err
			}
		}
		held, err := r.revisionOfRest(ctx, set, base, replica, owned)
		if err != nil {
			return nil, err
		}
		hold := *held
		hold.Groups, hold.TellsScaledOut = map[string]bool{}, !rejected && !set.Spec.IsPaused() && replica.Index >= int(set.Spec.Partition())
		for _, g := range replica.Groups {
			hold.Groups[g.Name] = u.HoldsGroup(replica, g)
		}
		holds[replica.Index] = &hold
	}
	return holds, nil
}

// revisionOfRest returns the revision of the existing objects of a replica that the update in progress has not reached.
// It is base, the revision before the updates in progress, unless an object follows another template: one of these
// updates has reached the replica before the template changed again. An unchanged object that is told a later revision
// says nothing, and neither does one that was told it because it was scaled out. If objects differ, the earliest
// revision counts. Source: docs/decisions, U9.
func (r *Reconciler) revisionOfRest(ctx context.Context, set *v1alpha1.PodCliqueSet, base *workload.Hold, replica lifecycle.SetReplica, owned ownedObjects) (*workload.Hold, error) {
	if base.Revision == nil {
		return base, nil
	}
	cliques := map[string][]string{} // of the objects that follow a revision, by its hash
	for _, c := range replica.Cliques {
		if object := owned.cliques[c.Name]; object != nil {
			hash := workload.FollowedHash(object)
			cliques[hash] = append(cliques[hash], c.Template)
		}
	}
	for _, g := range replica.Groups {
		if object := owned.groups[g.Name]; object != nil {
			hash := workload.FollowedHash(object)
			cliques[hash] = append(cliques[hash], object.Spec.CliqueNames...)
		}
	}
	earliest := base
	for hash, names := range cliques {
		if hash == "" || hash == *set.Status.CurrentGenerationHash || hash == base.Revision.Hash {
			continue
		}
		told, err := r.children.ReadHold(ctx, set, hash, r.options.SchedulerName)
		if err != nil {
			return nil, err
		}
		isOther := told.Revision != nil && slices.ContainsFunc(names, func(name string) bool { return told.Revision.Changes(base.Revision, name) })
		if isOther && (earliest == base || told.Revision.Number < earliest.Revision.Number) {
			earliest = told
		}
	}
	return earliest, nil
}

// previousRevision returns the revision before the update in progress; an empty Hold if it is not known.
func (r *Reconciler) previousRevision(ctx context.Context, set *v1alpha1.PodCliqueSet, owned ownedObjects) (*workload.Hold, error) {
	hash := set.Status.UpdateProgress.PreviousGenerationHash
	if hash == "" { // the update was begun by a version that did not record it
		for _, c := range owned.children().Cliques {
			if follows := c.Status.CurrentPodCliqueSetGenerationHash; follows != nil && *follows != *set.Status.CurrentGenerationHash {
				hash = max(hash, *follows) // any of them, but always the same
			}
		}
	}
	return r.children.ReadHold(ctx, set, hash, r.options.SchedulerName)
}

// decideUpdate returns the decision on an update of the set; nil for Training, whose template is not rolled out.
// rejected is the result of tryTemplate.
func (r *Reconciler) decideUpdate(set *v1alpha1.PodCliqueSet, facts []lifecycle.SetReplica, cliques []*v1alpha1.PodClique, groups []*v1alpha1.PodCliqueScalingGroup, rejected string, now time.Time) *lifecycle.SetUpdateDecision {
	if set.Spec.IsTraining() {
		return nil
	}
	u := workload.SetUpdateFacts(set, facts, cliques, groups)
	u.Rejected, u.StalledAfter = rejected, r.options.StalledUpdateAfter
	d := lifecycle.DecideSetUpdate(u, now)
	return &d
}

// reportUpdate emits events about the progress of an update, after the status was written.
func (r *Reconciler) reportUpdate(before, after *v1alpha1.PodCliqueSet, d *lifecycle.SetUpdateDecision) {
	if d == nil {
		return
	}
	if d.Done != nil {
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, v1alpha1.EventReplicaUpdated, v1alpha1.ActionUpdate,
			"Replica %d is available with the current template", *d.Done)
	}
	if is := workload.SetProgress(after); workload.SetProgress(before).Open() && is != nil && !is.Open() {
		metrics.UpdateEnded(is.EndedAt.Sub(is.StartedAt))
		text := "All replicas match the current template"
		if after.Spec.IsOnDelete() {
			text = "The update has ended, because the strategy is OnDelete now: pods follow when they are deleted"
		}
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, v1alpha1.EventUpdateCompleted, v1alpha1.ActionUpdate, "%s", text)
	}
	if d.State.Reason == workload.UpdateState(before.Status.Conditions).Reason {
		return
	}
	switch d.State.Reason {
	case lifecycle.UpdateStalled:
		metrics.UpdateStalled()
		r.recorder.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.EventUpdateStalled, v1alpha1.ActionUpdate, "The update has stalled: %s", d.State.Message)
	case lifecycle.UpdatePaused:
		r.reportStop(before, after, v1alpha1.EventUpdatePaused, "No further unit is replaced: "+d.State.Message)
	case lifecycle.UpdatePartitionReached:
		r.reportStop(before, after, v1alpha1.EventPartitionReached, "No further replica is updated: "+d.State.Message)
	}
}

// reportStop emits the event that an update stops because the spec says so, once for each version of the spec: the
// state may be interrupted, for example by an updated replica that loses a pod.
func (r *Reconciler) reportStop(before, after *v1alpha1.PodCliqueSet, event, note string) {
	key := func(reason string) string { return fmt.Sprintf("%s/%d", reason, after.Generation) }
	reported := r.stops.Of(after, func() string { return key(string(workload.UpdateState(before.Status.Conditions).Reason)) })
	if *reported == key(event) {
		return
	}
	*reported = key(event)
	r.recorder.Eventf(after, nil, corev1.EventTypeNormal, event, v1alpha1.ActionUpdate, "%s", message.Truncate(note, message.MaxCondition))
}
