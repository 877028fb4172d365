// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
)

// IsUnitComplete reports whether the PodCliques with these names exist, were created for this attempt of their unit and
// are not being deleted, and no others exist: no decision is needed for such a unit. An attempt of a set replica has
// Group 0.
func IsUnitComplete(attempt lifecycle.Attempt, names []string, cliques []*v1alpha1.PodClique) bool {
	if len(names) != len(cliques) {
		return false
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	for _, c := range cliques {
		a := Attempt(c).BelievedInGroup(attempt)
		if !wanted[c.Name] || c.DeletionTimestamp != nil || a.Set != attempt.Set || a.Group < attempt.Group {
			return false
		}
	}
	return true
}

// unitFacts returns the facts about a unit of a set. wanted are the names of its PodCliques, cliques the existing ones,
// in any order, and pods all pods of the set replica, including those of deleted PodCliques. Objects of other owners,
// and pods without an owner, are left out: they are not replaced, and only block single names and indices. What a
// deleted set of the same name has left has the attempt lifecycle.OfFormerSet. A pod has the attempt of its PodClique
// as long as that exists, whatever its own annotation says; all are the PodCliques of the set replica. unreachable
// reports whether a node is unreachable; it is called for terminating pods.
func unitFacts(own Ownership, attempt lifecycle.Attempt, wanted []string, cliques, all []*v1alpha1.PodClique, pods []*corev1.Pod, unreachable func(node string) bool) lifecycle.Unit {
	u := lifecycle.Unit{Attempt: attempt, Wanted: wanted}
	foreign, attempts := map[types.UID]bool{}, make(map[types.UID]lifecycle.Attempt, len(all))
	for _, c := range all {
		attempts[c.UID] = lifecycle.OfFormerSet
		if own.HasClique(c) {
			attempts[c.UID] = Attempt(c).Believed(attempt.Set)
		}
	}
	for _, c := range cliques {
		if isForeign(own.set.Name, c) {
			foreign[c.UID] = true
			continue
		}
		u.Cliques = append(u.Cliques, lifecycle.UnitClique{
			Name: c.Name, UID: string(c.UID), Attempt: attempts[c.UID], Terminating: c.DeletionTimestamp != nil})
	}
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || owner.Kind != v1alpha1.KindPodClique || foreign[owner.UID] {
			continue
		}
		p := lifecycle.UnitPod{Name: pod.Name, Clique: owner.Name, CliqueUID: string(owner.UID), Attempt: lifecycle.OfFormerSet,
			Terminating: pod.DeletionTimestamp != nil}
		if a, exists := attempts[owner.UID]; exists {
			p.Attempt = a
		} else if own.HasPod(pod) {
			p.Attempt = Attempt(pod).Believed(attempt.Set)
		}
		if p.Terminating {
			p.GraceEnds = pod.DeletionTimestamp.Time
			p.Unreachable = pod.Spec.NodeName != "" && unreachable(pod.Spec.NodeName)
		}
		u.Pods = append(u.Pods, p)
	}
	return u
}

// isForeign reports whether a PodClique belongs neither to the set or one of its scaling groups, nor to a deleted set
// or group of the same name.
func isForeign(set string, c *v1alpha1.PodClique) bool {
	owner := metav1.GetControllerOfNoCopy(c)
	switch {
	case owner == nil:
		return true
	case owner.Kind == v1alpha1.KindPodCliqueSet:
		return owner.Name != set
	default:
		return owner.Kind != v1alpha1.KindPodCliqueScalingGroup
	}
}

// UnitNames returns the names of the PodCliques of replica i of a set with defaults: standalone ones, and members of
// those scaling groups that exist. groups are the scaling groups of the set, in any order.
func UnitNames(set *v1alpha1.PodCliqueSet, i int, groups []*v1alpha1.PodCliqueScalingGroup) (standalone, members []string) {
	existing := make(map[string]*v1alpha1.PodCliqueScalingGroup, len(groups))
	for _, g := range groups {
		existing[g.Name] = g
	}
	template := &set.Spec.Template
	for _, c := range template.StandaloneCliques() {
		standalone = append(standalone, naming.PodCliqueName(set.Name, i, c.Name))
	}
	for k := range template.PodCliqueScalingGroupConfigs {
		config := &template.PodCliqueScalingGroupConfigs[k]
		g := existing[naming.ScalingGroup(set.Name, i, config.Name)]
		if g == nil {
			continue
		}
		for j := range int(max(g.Spec.Replicas, 0)) {
			for _, clique := range g.Spec.CliqueNames {
				members = append(members, naming.MemberPodClique(set.Name, i, config.Name, j, clique))
			}
		}
	}
	return standalone, members
}

// MemberNames returns the names of the PodCliques of replica j of a scaling group of replica i of a set.
func MemberNames(group *v1alpha1.PodCliqueScalingGroup, set *v1alpha1.PodCliqueSet, i, j int) []string {
	var names []string
	for _, clique := range group.Spec.CliqueNames {
		names = append(names, naming.MemberPodClique(set.Name, i, group.Labels[v1alpha1.LabelTemplateName], j, clique))
	}
	return names
}

// SetUnitFacts returns the facts about replica i of a set: its standalone PodCliques and the members of its scaling
// groups. podGroup is its PodGroup, nil if there is none; see unitFacts for the other parameters. groups are the
// scaling groups of the set, in any order. They must not be older than cliques and pods: a group records that it
// replaces a replica before it deletes its PodCliques.
func SetUnitFacts(set *v1alpha1.PodCliqueSet, i int, wanted []string, cliques []*v1alpha1.PodClique, pods []*corev1.Pod, groups []*v1alpha1.PodCliqueScalingGroup, podGroup *v2alpha2.PodGroup, unreachable func(node string) bool) lifecycle.Unit {
	u := unitFacts(OwnershipOf(set, groups, cliques), SetAttempt(set, i), wanted, cliques, cliques, pods, unreachable)
	u.Admitted = podGroup != nil && podGroup.DeletionTimestamp == nil && Attempt(podGroup).Believed(u.Attempt.Set).Set >= u.Attempt.Set &&
		meta.IsStatusConditionTrue(podGroup.Status.Conditions, v2alpha2.ConditionAdmitted)
	if a := attemptEntry(set.Status.ReplicaAttempts, i); a != nil && a.NotBefore != nil {
		u.NotBefore, u.RaisedAt = a.NotBefore.Time, a.StartedAt.Time
	}
	recorded := map[string]lifecycle.Attempt{} // of group replicas, by the names of their PodCliques
	for _, g := range groups {
		if naming.LabelIndex(g.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex) != i {
			continue
		}
		exists := map[int]bool{}
		for _, c := range cliques {
			if metav1.IsControlledBy(c, g) {
				exists[GroupReplicaIndex(c)] = true
			}
		}
		for j := range int(max(g.Spec.Replicas, 0)) {
			for _, name := range MemberNames(g, set, i, j) {
				recorded[name] = GroupAttempt(g, j)
			}
			u.Replacing = u.Replacing || !exists[j] && isGroupReplicaReplacing(g, j) && GroupAttempt(g, j).Set == u.Attempt.Set
		}
	}
	explained := func(clique string, a lifecycle.Attempt) bool {
		r, isMember := recorded[clique]
		a = a.BelievedInGroup(r)
		return isMember && a.Set == r.Set && a.Group < r.Group
	}
	for k := range u.Cliques {
		c := &u.Cliques[k]
		c.Explained = explained(c.Name, c.Attempt)
		c.Attempt.Group = 0
	}
	for k := range u.Pods {
		p := &u.Pods[k]
		p.Explained = explained(p.Clique, p.Attempt)
		p.Attempt.Group = 0
	}
	return u
}

// isGroupReplicaReplacing reports whether the status of a scaling group records that it has replaced its replica j,
// which has not become available since.
func isGroupReplicaReplacing(group *v1alpha1.PodCliqueScalingGroup, j int) bool {
	a := attemptEntry(group.Status.ReplicaAttempts, j)
	return a != nil && a.AvailableAt == nil && a.Attempt == GroupAttempt(group, j).Group
}

// GroupUnitFacts returns the facts about replica j of a scaling group. own is the ownership of all PodCliques of the
// set replica, cliques are those of the group's replica; see unitFacts for the other parameters.
func GroupUnitFacts(own Ownership, group *v1alpha1.PodCliqueScalingGroup, j int, wanted []string, cliques, all []*v1alpha1.PodClique, pods []*corev1.Pod, unreachable func(node string) bool) lifecycle.Unit {
	u := unitFacts(own, GroupAttempt(group, j), wanted, cliques, all, pods, unreachable)
	u.OfGroup = true
	mine := map[string]bool{}
	for _, name := range wanted {
		mine[name] = true
	}
	for k := range u.Cliques {
		u.Cliques[k].Attempt = u.Cliques[k].Attempt.BelievedInGroup(u.Attempt)
	}
	for k := range u.Pods {
		p := &u.Pods[k]
		if p.Elsewhere = !mine[p.Clique]; !p.Elsewhere {
			p.Attempt = p.Attempt.BelievedInGroup(u.Attempt)
		}
	}
	return u
}
