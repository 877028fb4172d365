// SPDX-License-Identifier: Apache-2.0

package podcliquescalinggroup

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/wrappers"
)

// scene returns a set, its scaling group of two cliques with the given number of replicas, a PodGroup for the given
// number, and the revision of the template.
func scene(replicas, listed int32) (*v1alpha1.PodCliqueSet, *v1alpha1.PodCliqueScalingGroup, *v2alpha2.PodGroup, *workload.Revision) {
	set := wrappers.MakePodCliqueSet("a", "ns").UID("a-uid").Clique("leader", 1).Clique("worker", 2).
		ScalingGroup("g", 0, 0, "leader", "worker").Obj()
	v1alpha1.SetDefaults(set, "")
	revision := workload.NewRevision(set, "", nil, nil)
	group := workload.ScalingGroups(set, revision, 0, nil, nil)[0]
	group.Spec.Replicas = listed
	podGroup := workload.PodGroup(set, 0, workload.Children{Groups: map[string]*v1alpha1.PodCliqueScalingGroup{group.Name: group}})
	group = group.DeepCopy()
	group.Spec.Replicas = replicas
	return set, group, podGroup, revision
}

// all returns the decisions to create every PodClique.
func all(group *v1alpha1.PodCliqueScalingGroup, set *v1alpha1.PodCliqueSet) units {
	decisions := make(units, group.Spec.Replicas)
	for j := range decisions {
		if set != nil {
			decisions[j].Create = workload.MemberNames(group, set, 0, j)
		}
	}
	return decisions
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas, listed int32 // of the group, and in the PodGroup
		exist            int   // replicas
		noSet            bool
		units            units // nil: every PodClique is created
		make, remove     []string
	}{
		"a new group": {replicas: 2, listed: 2, make: []string{"a-0-g-0-leader", "a-0-g-0-worker", "a-0-g-1-leader", "a-0-g-1-worker"}},
		"scaled out, and the PodGroup lists the new replica":      {replicas: 3, listed: 3, exist: 2, make: []string{"a-0-g-2-leader", "a-0-g-2-worker"}},
		"scaled out, and the PodGroup does not list it yet":       {replicas: 3, listed: 2, exist: 2},
		"scaled in, and the PodGroup no longer lists the replica": {replicas: 1, listed: 1, exist: 2, remove: []string{"a-0-g-1-leader", "a-0-g-1-worker"}},
		"scaled in, and the PodGroup still lists the replica":     {replicas: 1, listed: 2, exist: 2},
		"scaled to nothing, and the PodGroup is gone":             {replicas: 0, listed: 0, exist: 1, remove: []string{"a-0-g-0-leader", "a-0-g-0-worker"}},
		"only those in the decision on their replica are created": {replicas: 2, listed: 2, exist: 1,
			units: units{{Create: []string{"a-0-g-0-worker"}}, {Create: []string{"a-0-g-1-worker"}}}, make: []string{"a-0-g-1-worker"}},
		"PodCliques of an earlier attempt are deleted, although the PodGroup lists them": {replicas: 2, listed: 2, exist: 2,
			units: units{{}, {Delete: []string{"a-0-g-1-worker", "a-0-g-1-leader"}}}, remove: []string{"a-0-g-1-leader", "a-0-g-1-worker"}},
		"the set is gone: the garbage collector deletes the members": {replicas: 1, listed: 1, exist: 2, noSet: true},
	} {
		t.Run(name, func(t *testing.T) {
			set, group, podGroup, revision := scene(tc.replicas, tc.listed)
			var members []*v1alpha1.PodClique
			for j := range tc.exist {
				members = append(members, workload.MemberPodCliques(set, revision, group, j, nil, nil, false)...)
			}
			if tc.noSet {
				set = nil
			}
			plan := &groupPlan{units: tc.units}
			if plan.units == nil {
				plan.units = all(group, set)
			}
			plan.decideMembers(&observation{group: group, set: set, revision: revision, podGroup: podGroup, members: members}, nil)
			var made, removed []string
			for _, k := range plan.create {
				made = append(made, k.want.Name)
			}
			for _, k := range plan.update {
				if _, differs := workload.Updated(k.existing, k.want); differs {
					t.Errorf("%s is changed", k.want.Name)
				}
			}
			for _, c := range plan.remove {
				removed = append(removed, c.Name)
			}
			if diff := cmp.Diff(tc.make, made); diff != "" {
				t.Errorf("made (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.remove, removed); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAHoleIsFilledAndWhatIsTooHighGoes: replicas whose index is too high are deleted, whatever the number of replicas.
// A PodClique without an index stays.
func TestAHoleIsFilledAndWhatIsTooHighGoes(t *testing.T) {
	set, group, podGroup, revision := scene(2, 2)
	members := append(workload.MemberPodCliques(set, revision, group, 0, nil, nil, false), workload.MemberPodCliques(set, revision, group, 3, nil, nil, false)...)
	members = append(members, &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "odd"}})
	plan := &groupPlan{units: all(group, set)}
	plan.decideMembers(&observation{group: group, set: set, revision: revision, podGroup: podGroup, members: members}, nil)
	if len(plan.create) != 2 || len(plan.remove) != 2 || plan.remove[0].Labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex] != strconv.Itoa(3) {
		t.Errorf("%v to be made, %v to be removed", plan.create, plan.remove)
	}
}
