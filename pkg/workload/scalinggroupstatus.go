// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
)

// GroupStatusFacts contains the facts for the status of a PodCliqueScalingGroup.
type GroupStatusFacts struct {
	// Replicas are the existing replicas: GroupReplicasFacts.
	Replicas []lifecycle.GroupReplica
	// Breach is the decision on the minimum of the group, NextTermination when the next replica of the group is due.
	Breach          lifecycle.Breach
	NextTermination time.Time
	// Training: the set restarts its replicas as a whole and emits the events about it. A breach of the group is only
	// reported in its status. Failed: the workload has failed, so that nothing follows from a breach.
	Training, Failed bool
	// Raised are the attempts of replicas that are replaced, by index. Waits describes what the first waiting replica
	// waits for: UnitDecision.Note.
	Raised map[int]lifecycle.Raised
	Waits  string
	// Update is the decision on an update; nil: there is no set, or it is a Training workload.
	Update *lifecycle.GroupUpdateDecision
	// Behind: the update of the set has not reached the group: IsBehind.
	Behind bool
	// TemplateHashes are those that the PodCliques of the group have: TemplateHashes.
	TemplateHashes []v1alpha1.PodTemplateHash
	Problems       []Problem
}

// ScalingGroupStatus returns the desired status of a PodCliqueScalingGroup. Replicas above spec.replicas, which are
// being deleted, count as existing only.
func ScalingGroupStatus(group *v1alpha1.PodCliqueScalingGroup, f GroupStatusFacts, now metav1.Time) v1alpha1.PodCliqueScalingGroupStatus {
	s := statusOfAttempt(group)
	s.ObservedGeneration = group.Generation
	availableReplicas := map[int]bool{}
	s.Replicas, s.ScheduledReplicas, s.AvailableReplicas, s.UpdatedReplicas = int32(len(f.Replicas)), 0, 0, 0
	var wanted []lifecycle.GroupReplica
	var whole []int
	for _, r := range f.Replicas {
		if r.Index >= int(group.Spec.Replicas) {
			continue
		}
		wanted = append(wanted, r)
		if len(r.Missing) == 0 {
			whole = append(whole, r.Index)
		}
		availableReplicas[r.Index] = r.Available()
		s.ScheduledReplicas += countIf(r.IsScheduled())
		s.AvailableReplicas += countIf(r.Available())
		s.UpdatedReplicas += countIf(r.IsUpdated() && !f.Behind)
	}
	s.ReplicaAttempts = replicaAttempts(s.ReplicaAttempts, int(max(group.Spec.Replicas, 0)), f.Raised, availableReplicas, now)
	s.Selector = selector(naming.OfScalingGroup(group.Name))
	s.SettledIndices = settle(group, lifecycle.Indices(whole...))
	needed := lifecycle.GroupMinimum(group.Spec.MinAvailable, group.Spec.Replicas)
	s.MinAvailable = &needed
	switch {
	case f.Update != nil:
		setGroupUpdate(group, &s, f.Update, now)
	case f.Training:
		s.ObservedRevision = RevisionNumber(group)
		setFollowed(&s.CurrentPodCliqueSetGenerationHash, GenerationHash(group), s.UpdatedReplicas >= group.Spec.Replicas, false)
	}
	switch follows := s.CurrentPodCliqueSetGenerationHash; {
	case follows == nil:
		s.CurrentPodTemplateHashes = nil
	case *follows == GenerationHash(group) && len(f.TemplateHashes) > 0:
		s.CurrentPodTemplateHashes = f.TemplateHashes
	}
	s.WasAvailable = f.Breach.WasAvailable
	s.TerminationDeadline = optionalTime(earliest(f.Breach.Deadline, f.NextTermination))
	available := conditionIf(v1alpha1.ConditionAvailable, s.AvailableReplicas >= needed, v1alpha1.ReasonSufficientReplicas, v1alpha1.ReasonInsufficientReplicas)
	available.Message = fmt.Sprintf("%d of %s available, %d needed", s.AvailableReplicas, message.CountAre(int(group.Spec.Replicas), "replica"), needed)
	if f.Failed {
		f.Waits = "" // nothing is created any more, so nothing is waited for
	}
	if why := cmp.Or(f.Waits, lifecycle.FirstLack(wanted)); why != "" && s.AvailableReplicas < needed {
		available.Message += "; " + message.Truncate(why, maxDescription)
	}
	if needed == 0 {
		available.Reason, available.Message = v1alpha1.ReasonScaledToZero, "no replicas are wanted"
	}
	setConditions(&s.Conditions, group.Generation, now, available)
	setBreach(&s.Conditions, &s.MinAvailableBreachedSince, f.Breach, group.Generation, now)
	if f.Failed {
		s.MinAvailableBreachedSince = nil // as in PodCliqueStatus
	}
	setProblems(&s.Conditions, &s.LastErrors, f.Problems, group.Generation, now)
	return s
}

// TemplateHashes returns the hash of the template of each clique of a scaling group, in the order of the names, given
// its PodCliques that are not being deleted. Of PodCliques that differ the one of the lowest replica counts.
func TemplateHashes(members []*v1alpha1.PodClique) []v1alpha1.PodTemplateHash {
	var hashes []v1alpha1.PodTemplateHash
	for _, c := range slices.SortedFunc(slices.Values(members), func(a, b *v1alpha1.PodClique) int {
		return cmp.Or(cmp.Compare(a.Labels[v1alpha1.LabelTemplateName], b.Labels[v1alpha1.LabelTemplateName]), cmp.Compare(GroupReplicaIndex(a), GroupReplicaIndex(b)))
	}) {
		name, hash := c.Labels[v1alpha1.LabelTemplateName], c.Labels[v1alpha1.LabelPodTemplateHash]
		if c.DeletionTimestamp != nil || name == "" || hash == "" || len(hashes) > 0 && hashes[len(hashes)-1].Name == name {
			continue
		}
		hashes = append(hashes, v1alpha1.PodTemplateHash{Name: name, Hash: hash})
	}
	return hashes
}

// statusOfAttempt returns a copy of the status of a scaling group, without what it records about an earlier attempt of
// the set's replica.
func statusOfAttempt(group *v1alpha1.PodCliqueScalingGroup) v1alpha1.PodCliqueScalingGroupStatus {
	s := *group.Status.DeepCopy()
	if attempt := GroupAttempt(group, 0).Set; attempt != s.PodCliqueSetAttempt {
		s.PodCliqueSetAttempt, s.ReplicaAttempts, s.WasAvailable, s.MinAvailableBreachedSince = attempt, nil, false, nil
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionMinAvailableBreached)
	}
	return s
}
