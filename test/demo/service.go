// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
)

// serviceOf returns the PodCliqueSet that owns a PodGroup, and the index of the replica; nil if no PodCliqueSet owns it.
func (s scene) serviceOf(g *v2alpha2.PodGroup) (set *v1alpha1.PodCliqueSet, replica string) {
	owner := metav1.GetControllerOf(g)
	if owner == nil || owner.Kind != v1alpha1.KindPodCliqueSet {
		return nil, ""
	}
	return s.set(owner.Name), g.Labels[v1alpha1.LabelPodCliqueSetReplicaIndex]
}

// serviceRows returns the tree of a replica of a PodCliqueSet in the names and roles of its PodCliques and
// PodCliqueScalingGroups. wanted is their replicas, needed the minimum in the PodGroup, bound the count in its status.
func serviceRows(s scene, g *v2alpha2.PodGroup, tree *gang.Tree, status map[string]v2alpha2.SubGroupStatus) []row {
	rows := []row{{role: "role", count: serviceCounts("wanted", "needed", "bound")}}
	grow(tree.Root(), "", func(branch string, group *gang.Group) {
		r := row{branch: branch, name: group.Name()}
		wanted := -1
		if clique := s.clique(group.Name()); clique != nil {
			r.name, r.role, wanted = clique.Labels[v1alpha1.LabelTemplateName], clique.Spec.RoleName, int(clique.Spec.Replicas)
		} else if scaling := s.scalingGroup(group.Name()); scaling != nil {
			r.name, r.role, wanted = scaling.Labels[v1alpha1.LabelTemplateName], "scaling group", int(scaling.Spec.Replicas)
		} else if member := s.memberOf(group); member != nil {
			r.name, wanted = "replica "+member.Labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex], len(group.Children())
		}
		here := status[group.Name()]
		_, r.words, r.good = describe(group, here, met(g, group.Parent(), status))
		r.count = serviceCounts("?", group.Min(), here.Bound)
		if wanted >= 0 {
			r.count = serviceCounts(wanted, group.Min(), here.Bound)
		}
		if more := wanted - int(here.Bound); r.good && more > 0 {
			r.words += fmt.Sprintf("; %d above the minimum %s", more, plural(more, "waits", "wait"))
		}
		rows = append(rows, r)
	})
	return rows
}

// foldKnown omits the rows below each child of the root whose rows are in known unchanged, and adds the others to known.
// With a nil known it omits nothing.
func foldKnown(rows []row, gangName string, known map[string]string) []row {
	if known == nil {
		return rows
	}
	var folded []row
	for len(rows) > 0 {
		n := 1 // rows of this child
		for n < len(rows) && !strings.HasPrefix(rows[n].branch, "├") && !strings.HasPrefix(rows[n].branch, "└") {
			n++
		}
		branch := rows[:n]
		rows = rows[n:]
		key, now := gangName+"/"+branch[0].name, fmt.Sprint(branch)
		if n > 1 && known[key] == now {
			branch = []row{branch[0]}
			branch[0].words += "; replicas as before"
		}
		known[key] = now
		folded = append(folded, branch...)
	}
	return folded
}

func serviceCounts(wanted, needed, bound any) string {
	return fmt.Sprintf("%6v  %6v  %5v", wanted, needed, bound)
}

// memberOf returns a PodClique of the scaling group's replica that this group of the tree stands for, nil if there is none.
func (s scene) memberOf(group *gang.Group) *v1alpha1.PodClique {
	for _, child := range group.Children() {
		if clique := s.clique(child.Name()); clique != nil {
			return clique
		}
	}
	return nil
}

// availability returns the phase and the condition Available of a PodCliqueSet as text, "" if it has no such condition yet.
func availability(set *v1alpha1.PodCliqueSet) string {
	for _, c := range set.Status.Conditions {
		if c.Type == v1alpha1.ConditionAvailable {
			return fmt.Sprintf("PodCliqueSet %s: %s, %s=%s: %s", set.Name, set.Status.Phase, c.Type, c.Status, c.Message)
		}
	}
	return ""
}

// updating returns the condition Progressing of a PodCliqueSet as text, for the replica that is being updated; "" for others.
func updating(set *v1alpha1.PodCliqueSet, replica string) string {
	c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing)
	p := set.Status.UpdateProgress
	if c == nil || c.Status != metav1.ConditionTrue || p == nil || p.CurrentlyUpdating == nil || fmt.Sprint(p.CurrentlyUpdating.ReplicaIndex) != replica {
		return ""
	}
	return fmt.Sprintf("PodCliqueSet %s: %s=%s, %s: %s", set.Name, c.Type, c.Status, c.Reason, c.Message)
}

// made lists the objects that exist for a PodCliqueSet as counts by kind, "nothing" if there are none.
func (s scene) made(set string) string {
	var parts []string
	count := func(n int, one, more string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, plural(n, one, more)))
		}
	}
	count(len(ofSet(s.groups, set)), "PodGroup", "PodGroups")
	count(len(ofSet(s.scalingGroups, set)), "PodCliqueScalingGroup", "PodCliqueScalingGroups")
	count(len(ofSet(s.cliques, set)), "PodClique", "PodCliques")
	count(len(ofSet(s.pods, set)), "pod", "pods")
	count(len(ofSet(s.services, set)), "Service", "Services")
	switch n := len(parts); n {
	case 0:
		return "nothing"
	case 1:
		return parts[0]
	default:
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
}

func ofSet[T metav1.Object](objects []T, set string) []T {
	var of []T
	for _, object := range objects {
		if object.GetLabels()[v1alpha1.LabelPartOf] == set {
			of = append(of, object)
		}
	}
	return of
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
