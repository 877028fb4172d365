// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

// IsOrphanOf reports whether an object has no controlling owner and was made for a set of the name of this one, which
// was deleted with --cascade=orphan. Not so a member of a scaling group, which the group owned, and an object whose
// labels say another name, because a user has copied it. Source: docs/decisions, W14.
func IsOrphanOf(set *v1alpha1.PodCliqueSet, object metav1.Object) bool {
	labels := object.GetLabels()
	for key, value := range naming.SelectSetObjects(set.Name) {
		if labels[key] != value {
			return false
		}
	}
	return metav1.GetControllerOfNoCopy(object) == nil && object.GetDeletionTimestamp() == nil &&
		labels[v1alpha1.LabelName] == object.GetName() && labels[v1alpha1.LabelPodCliqueScalingGroup] == ""
}

// Adoption is what a new set finds of a deleted set of its name: all objects with the labels of the set. They include
// those that the set owns already, so that the adoption can be continued.
type Adoption struct {
	// Revisions are the stored ones, the latest first, at least one.
	Revisions []*Revision
	Cliques   []*v1alpha1.PodClique
	Groups    []*v1alpha1.PodCliqueScalingGroup
	PodGroups []*v2alpha2.PodGroup
}

// IsOf reports whether a set may go on with what was left, of which Cliques and Groups are read. It may not if one of
// them has no place in it, and would be deleted, or differs in what is immutable. A job is continued only by the same
// job, of the same size, and not after it has failed. Source: docs/decisions, W14.
func (a Adoption) IsOf(set *v1alpha1.PodCliqueSet, schedulerName string) bool {
	now, isJob := withDefaults(set, schedulerName), set.Spec.IsTraining()
	template, same := &now.Spec.Template, equality.Semantic.DeepEqual
	present := ""
	if k := slices.IndexFunc(a.Revisions, func(r *Revision) bool { return r.Describes(set, schedulerName) }); k >= 0 {
		present = a.Revisions[k].Hash
	}
	cliqueDiffers := func(c *v1alpha1.PodClique) bool {
		i, t := naming.LabelIndex(c.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex), template.Clique(c.Labels[v1alpha1.LabelTemplateName])
		if t == nil || IsTraining(c) != isJob || c.Annotations[v1alpha1.AnnotationWorkloadFailed] != "" ||
			isJob && (GenerationHash(c) != present || i >= int(now.Spec.Replicas) || c.Spec.Replicas != t.Spec.Replicas) {
			return true
		}
		group, want := "", template.PodCliqueSpec(t)
		if g := template.ScalingGroupOf(t.Name); g != nil {
			group = naming.ScalingGroup(set.Name, i, g.Name)
		}
		return c.Labels[v1alpha1.LabelPodCliqueScalingGroup] != group || !same(c.Spec.MinAvailable, want.MinAvailable) ||
			c.Spec.RoleName != "" && c.Spec.RoleName != want.RoleName || !same(c.Spec.StartsAfter, want.StartsAfter)
	}
	groupDiffers := func(g *v1alpha1.PodCliqueScalingGroup) bool {
		t := template.ScalingGroup(g.Labels[v1alpha1.LabelTemplateName])
		return t == nil || !same(g.Spec.MinAvailable, t.MinAvailable) || !same(g.Spec.CliqueNames, t.CliqueNames)
	}
	return !slices.ContainsFunc(a.Cliques, cliqueDiffers) && !slices.ContainsFunc(a.Groups, groupDiffers)
}

// Status returns the status with which the set goes on with what it owns. The attempts of its replicas are the latest
// that objects were created for. The set follows the latest revision that one of them is told; if others have followed
// an earlier one, an update is in progress. Source: docs/decisions, W14.
func (a Adoption) Status(set *v1alpha1.PodCliqueSet, now metav1.Time) v1alpha1.PodCliqueSetStatus {
	s, attempts := *set.Status.DeepCopy(), map[int]int32{}
	see := func(o metav1.Object) (i int, owned bool) {
		i = naming.LabelIndex(o.GetLabels(), v1alpha1.LabelPodCliqueSetReplicaIndex)
		if owned = metav1.IsControlledBy(o, set); owned {
			attempts[i] = max(attempts[i], Attempt(o).Believed(0).Set)
		}
		return i, owned
	}
	var followers []follower
	for _, pg := range a.PodGroups {
		see(pg)
	}
	for _, c := range a.Cliques {
		if i, owned := see(c); owned {
			followers = append(followers, a.follower(i, c, CliqueProgress(c)))
		}
	}
	for _, g := range a.Groups {
		if i, owned := see(g); owned {
			followers = append(followers, a.follower(i, g, GroupProgress(g)))
		}
	}
	for _, i := range slices.Sorted(maps.Keys(attempts)) {
		if i >= 0 && i < int(set.Spec.Replicas) && attempts[i] > ReplicaAttempt(set.Status.ReplicaAttempts, i) {
			s.ReplicaAttempts = append(s.ReplicaAttempts, v1alpha1.ReplicaAttempt{
				Index: int32(i), Attempt: attempts[i], StartedAt: now,
				Message: "recorded by the objects of a PodCliqueSet of this name that was deleted with --cascade=orphan"})
		}
	}
	follow(set, &s, followers, now)
	return s
}

// follower is a PodClique or scaling group of a replica of a set, with the revision that it is told, and the one that
// its units had before an update of it, or else have; nil: unknown. isUpdating: its units are being replaced.
type follower struct {
	replica    int
	told, from *Revision
	isUpdating bool
}

func (a Adoption) follower(i int, o metav1.Object, p *lifecycle.Progress) follower {
	find := func(hash string) *Revision {
		if k := slices.IndexFunc(a.Revisions, func(r *Revision) bool { return r.Hash == hash }); k >= 0 {
			return a.Revisions[k]
		}
		return nil
	}
	from := find(p.PreviousOr(FollowedHash(o)))
	return follower{replica: i, told: find(GenerationHash(o)), from: from, isUpdating: p.Open()}
}

// follow sets in the status of a set the latest revision of the followers, and the progress of an update to it.
func follow(set *v1alpha1.PodCliqueSet, s *v1alpha1.PodCliqueSetStatus, followers []follower, now metav1.Time) {
	followers = slices.DeleteFunc(followers, func(f follower) bool { return f.told == nil || f.from == nil })
	if len(followers) == 0 {
		return
	}
	byTold := func(x, y follower) int { return cmp.Compare(x.told.Number, y.told.Number) }
	byFrom := func(x, y follower) int { return cmp.Compare(x.from.Number, y.from.Number) }
	latest, earliest := slices.MaxFunc(followers, byTold).told, slices.MinFunc(followers, byFrom).from
	s.CurrentGenerationHash = &latest.Hash
	if earliest == latest || set.Spec.IsTraining() {
		return
	}
	s.UpdateProgress = &v1alpha1.PodCliqueSetUpdateProgress{UpdateStartedAt: now, LastProgressTime: &now,
		State: v1alpha1.ReasonUpdating, PreviousGenerationHash: earliest.Hash}
	reached, behind := map[int]bool{}, map[int]bool{}
	for _, f := range followers {
		if f.isUpdating && f.told == latest {
			s.UpdateProgress.CurrentlyUpdating = &v1alpha1.PodCliqueSetReplicaUpdateProgress{
				ReplicaIndex: int32(f.replica), UpdateStartedAt: now}
		}
		reached[f.replica] = true
		behind[f.replica] = behind[f.replica] || f.told != latest || f.from != latest && !f.isUpdating
	}
	maps.DeleteFunc(reached, func(i int, _ bool) bool { return behind[i] })
	s.UpdateProgress.ReachedIndices = lifecycle.Indices(slices.Collect(maps.Keys(reached))...).String()
}
