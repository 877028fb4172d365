// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

// CliqueFacts returns the facts in a PodClique.
func CliqueFacts(clique *v1alpha1.PodClique) lifecycle.Clique {
	return lifecycle.Clique{
		Name:            clique.Name,
		Template:        clique.Labels[v1alpha1.LabelTemplateName],
		Group:           clique.Labels[v1alpha1.LabelPodCliqueScalingGroup],
		GroupReplica:    naming.LabelIndex(clique.Labels, v1alpha1.LabelPodCliqueScalingGroupReplicaIndex),
		UID:             string(clique.UID),
		Created:         clique.CreationTimestamp.Time,
		Attempt:         Attempt(clique),
		Terminating:     clique.DeletionTimestamp != nil,
		Observed:        clique.Status.ObservedGeneration == clique.Generation,
		Replicas:        max(clique.Spec.Replicas, 0),
		MinAvailable:    Minimum(clique).Enforced(),
		Pods:            clique.Status.Replicas,
		Scheduled:       clique.Status.ScheduledReplicas,
		Ready:           clique.Status.ReadyReplicas,
		Updated:         clique.Status.UpdatedReplicas,
		NotYetAvailable: notYetAvailable(clique),
		Revision:        clique.Status.ObservedRevision,
		Followed:        ptr.Deref(clique.Status.CurrentPodCliqueSetGenerationHash, ""),
		Updating:        CliqueProgress(clique).Open(),

		Training:  IsTraining(clique),
		Finished:  meta.IsStatusConditionTrue(clique.Status.Conditions, v1alpha1.ConditionSucceeded),
		Alive:     clique.Status.AvailableReplicas,
		Succeeded: clique.Status.SucceededReplicas,

		BreachedSince: BreachedSince(clique.Status.Conditions, clique.Status.MinAvailableBreachedSince),
		Cause:         breachCause(clique.Status.Conditions),
		Silence:       silenceIn(clique.Status.Conditions),
		Lacks:         causeOfLack(clique.Status.Conditions),
	}
}

// cliquesFacts returns the facts in PodCliques, by name. templates are those of the revision that their owner follows;
// nil: no template is old.
func cliquesFacts(templates lifecycle.Templates, cliques []*v1alpha1.PodClique) []lifecycle.Clique {
	facts := make([]lifecycle.Clique, 0, len(cliques))
	for _, clique := range cliques {
		c := CliqueFacts(clique)
		c.Old = isOld(templates, clique)
		facts = append(facts, c)
	}
	slices.SortFunc(facts, func(a, b lifecycle.Clique) int { return cmp.Compare(a.Name, b.Name) })
	return facts
}

// isOld reports whether a PodClique has another template than the revision of templates.
func isOld(templates lifecycle.Templates, c *v1alpha1.PodClique) bool {
	return templates.IsOld(c.Labels[v1alpha1.LabelTemplateName], c.Labels[v1alpha1.LabelPodTemplateHash])
}

// notYetAvailable returns the number of ready pods of a PodClique that have not been ready for minReadySeconds,
// according to its status.
func notYetAvailable(c *v1alpha1.PodClique) int32 {
	if c.Spec.MinReadySeconds <= 0 {
		return 0 // earlier versions did not count available pods
	}
	return max(0, c.Status.ReadyReplicas-c.Status.AvailableReplicas)
}

// ScalingGroupFacts returns the facts in a PodCliqueScalingGroup, without its Delay and the facts about its PodCliques.
func ScalingGroupFacts(group *v1alpha1.PodCliqueScalingGroup) lifecycle.ScalingGroup {
	return lifecycle.ScalingGroup{
		Name:              group.Name,
		Template:          group.Labels[v1alpha1.LabelTemplateName],
		UID:               string(group.UID),
		Terminating:       group.DeletionTimestamp != nil,
		Observed:          group.Status.ObservedGeneration == group.Generation,
		Replicas:          max(group.Spec.Replicas, 0),
		MinAvailable:      lifecycle.GroupMinimum(group.Spec.MinAvailable, group.Spec.Replicas),
		ScheduledReplicas: group.Status.ScheduledReplicas,
		AvailableReplicas: group.Status.AvailableReplicas,
		UpdatedReplicas:   group.Status.UpdatedReplicas,
		Revision:          group.Status.ObservedRevision,
		Followed:          ptr.Deref(group.Status.CurrentPodCliqueSetGenerationHash, ""),
		Updating:          GroupProgress(group).Open(),
		Told:              GenerationHash(group),

		Attempt:             group.Status.PodCliqueSetAttempt,
		BreachedSince:       BreachedSince(group.Status.Conditions, group.Status.MinAvailableBreachedSince),
		Cause:               breachCause(group.Status.Conditions),
		Silence:             silenceIn(group.Status.Conditions),
		Lacks:               causeOfLack(group.Status.Conditions),
		TerminationDeadline: timeOf(group.Status.TerminationDeadline),
	}
}

// GroupReplicasFacts returns the replicas of a scaling group of which a PodClique exists, by index. members are the
// PodCliques that the group owns, in any order; those without a replica index are ignored. A PodClique of an earlier
// spec.cliqueNames counts like the others: the names are immutable. templates are those of the revision that the group
// follows; nil: no template is old.
func GroupReplicasFacts(group *v1alpha1.PodCliqueScalingGroup, templates lifecycle.Templates, members []*v1alpha1.PodClique) []lifecycle.GroupReplica {
	byIndex := map[int]*lifecycle.GroupReplica{}
	for _, c := range cliquesFacts(templates, members) {
		if c.GroupReplica < 0 {
			continue
		}
		r := byIndex[c.GroupReplica]
		if r == nil {
			r = &lifecycle.GroupReplica{Index: c.GroupReplica, Attempt: GroupAttempt(group, c.GroupReplica), Revision: RevisionNumber(group), Generation: GenerationHash(group)}
			byIndex[c.GroupReplica] = r
		}
		c.Attempt = c.Attempt.BelievedInGroup(r.Attempt)
		if r.Created.IsZero() || c.Created.Before(r.Created) {
			r.Created = c.Created
		}
		r.Members = append(r.Members, c)
	}
	replicas := make([]lifecycle.GroupReplica, 0, len(byIndex))
	for _, r := range byIndex {
		for _, name := range group.Spec.CliqueNames {
			if !slices.ContainsFunc(r.Members, func(c lifecycle.Clique) bool { return c.Template == name }) {
				r.Missing = append(r.Missing, name)
			}
		}
		slices.Sort(r.Missing)
		replicas = append(replicas, *r)
	}
	slices.SortFunc(replicas, func(a, b lifecycle.GroupReplica) int { return cmp.Compare(a.Index, b.Index) })
	return replicas
}

// SetReplicasFacts returns replicas 0 to spec.replicas-1 of a PodCliqueSet. revision is the number of its current
// revision, whose hash is in its status, and templates are those of that revision; nil: no template is old. cliques are
// the PodCliques and groups the scaling groups of the set, in any order. Of members of scaling groups only their
// trouble is reported, and whether one is old; objects without a replica, or of a replica that is no longer desired,
// are ignored.
func SetReplicasFacts(set *v1alpha1.PodCliqueSet, revision int64, templates lifecycle.Templates, cliques []*v1alpha1.PodClique, groups []*v1alpha1.PodCliqueScalingGroup) []lifecycle.SetReplica {
	replicas := make([]lifecycle.SetReplica, max(set.Spec.Replicas, 0))
	of := func(labels map[string]string) *lifecycle.SetReplica {
		i := naming.LabelIndex(labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
		if i < 0 || i >= len(replicas) {
			return nil
		}
		return &replicas[i]
	}
	exists, succeeded := make([]map[string]bool, len(replicas)), succeededReplicas(set)
	for i := range replicas {
		replicas[i].Index, exists[i] = i, map[string]bool{}
		replicas[i].Attempt, replicas[i].Delay = SetAttempt(set, i).Set, TerminationDelay(set, "")
		replicas[i].Revision, replicas[i].Generation = revision, ptr.Deref(set.Status.CurrentGenerationHash, "")
		replicas[i].Succeeded = succeeded.Has(i)
		replicas[i].Replaced = RecordedAttempt(set.Status.ReplicaAttempts, i)
	}
	hasOld, newest := map[string]bool{}, map[string]time.Time{} // scaling groups, by name
	troubled := make([]string, len(replicas))                   // the name of the first child with trouble
	tell := func(r *lifecycle.SetReplica, kind, name string, conditions []metav1.Condition) {
		if text := TroubleOf(conditions); text != "" && (troubled[r.Index] == "" || name < troubled[r.Index]) {
			troubled[r.Index], r.Trouble = name, kind+" "+name+": "+text
		}
	}
	for _, c := range cliques {
		r := of(c.Labels)
		if r != nil {
			tell(r, v1alpha1.KindPodClique, c.Name, c.Status.Conditions)
		}
		if group := c.Labels[v1alpha1.LabelPodCliqueScalingGroup]; group != "" {
			hasOld[group] = hasOld[group] || isOld(templates, c)
			if at, ok := newest[group]; !ok || c.CreationTimestamp.After(at) {
				newest[group] = c.CreationTimestamp.Time
			}
		} else if r != nil {
			facts := CliqueFacts(c)
			facts.Old = isOld(templates, c)
			facts.Attempt = facts.Attempt.Believed(r.Attempt)
			r.Cliques = append(r.Cliques, facts)
			exists[r.Index][facts.Template] = true
		}
	}
	for _, g := range groups {
		if r := of(g.Labels); r != nil {
			tell(r, v1alpha1.KindPodCliqueScalingGroup, g.Name, g.Status.Conditions)
			facts := ScalingGroupFacts(g)
			facts.Newest, facts.HasMembers = newest[g.Name]
			facts.Old = hasOld[g.Name]
			facts.Delay = TerminationDelay(set, facts.Template)
			facts.Attempt = lifecycle.Attempt{Set: facts.Attempt}.Believed(r.Attempt).Set
			r.Groups = append(r.Groups, facts)
			exists[r.Index][facts.Template] = true
		}
	}
	wanted := set.Spec.Template.TopLevelNames()
	for i := range replicas {
		sortReplica(&replicas[i], wanted, exists[i])
	}
	return replicas
}

// sortReplica sorts the children of a replica by name, and adds the wanted ones that do not exist.
func sortReplica(r *lifecycle.SetReplica, wanted []string, exists map[string]bool) {
	slices.SortFunc(r.Cliques, func(a, b lifecycle.Clique) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Groups, func(a, b lifecycle.ScalingGroup) int { return cmp.Compare(a.Name, b.Name) })
	for _, name := range wanted {
		if !exists[name] {
			r.Missing = append(r.Missing, name)
		}
	}
}
