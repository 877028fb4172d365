// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
)

// jobSet is what is read of a JobSet.
type jobSet struct {
	Metadata struct {
		UID         string            `json:"uid"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Suspend       bool `json:"suspend"`
		StartupPolicy struct {
			Order string `json:"startupPolicyOrder"`
		} `json:"startupPolicy"`
		ReplicatedJobs []replicatedJob `json:"replicatedJobs"`
	} `json:"spec"`
}

type replicatedJob struct {
	Name      string `json:"name"`
	Replicas  *int32 `json:"replicas"`
	DependsOn []any  `json:"dependsOn"`
	Template  struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec jobSpec `json:"spec"`
	} `json:"template"`
}

// inOrder is the startupPolicyOrder by which each replicated job starts when the one before it is ready.
const inOrder = "InOrder"

// firstJobs is the sub-group of the replicated jobs that start together, if there are later ones. No replicated job has
// a dot in its name.
const firstJobs = "first.jobs"

var errTooManyJobs = refuse("its replicated jobs and their Jobs need more than %d sub-groups, which is the most that a PodGroup lists: its pods wait; "+
	"use fewer Jobs of more pods, or opt out by %s: \"false\" on the pod templates", v2alpha2.MaxSubGroups, v2alpha2.GangKey)

// gangOfJobSet: a JobSet is one gang.
//
//	root                  all replicated jobs
//	└── <replicated job>  all its Jobs
//	    └── <Job>         minMember: the pods that exist at the same time, or as its mark says; if it is exclusive, it
//	                      requires the level, and its leader starts first
//
// A replicated job that JobSet creates only after another one starts as a whole, later: the root needs one child, which
// is the replicated job that comes first, or first.jobs with all that do. When these have completed, a later one is
// that child.
func gangOfJobSet(object *unstructured.Unstructured) (map[string]v2alpha2.PodGroupSpec, error) {
	var set jobSet
	if err := convert(object, &set); err != nil {
		return nil, err
	}
	if set.Spec.Suspend {
		return nil, nil
	}
	spec := v2alpha2.PodGroupSpec{}
	var first []int // the indexes of the sub-groups of the replicated jobs that depend on no other
	listed, grouped, children := map[string]bool{}, 0, 0
	var marked []membership.Minimum
	add := func(group v2alpha2.SubGroup) error {
		if listed[group.Name] {
			return refuse("its replicated jobs and their Jobs need sub-groups of different names, and two are %q: its pods wait; rename a replicated job", group.Name)
		}
		listed[group.Name] = true
		spec.SubGroups = append(spec.SubGroups, group)
		return nil
	}
	for i, r := range set.Spec.ReplicatedJobs {
		job := r.Template.Spec
		replicas, pods := int(ptr.Deref(r.Replicas, 1)), job.pods()
		if !job.Template.isGrouped() || replicas <= 0 || pods <= 0 {
			continue
		}
		if m := membership.MinimumIn(job.Template.Labels, job.Template.Annotations); m.Value != "" {
			var err error
			if pods, err = podsOf(m, pods); err != nil {
				return nil, err
			}
			marked = append(marked, m)
		}
		exclusive := membership.ExclusiveLevel(merged(set.Metadata.Annotations, r.Template.Metadata.Annotations))
		if grouped += 1 + replicas; exclusive != "" {
			grouped += replicas * int(min(pods, 2))
		}
		if grouped > v2alpha2.MaxSubGroups {
			return nil, errTooManyJobs
		}
		if spec.PriorityClassName == "" {
			spec.PriorityClassName = job.Template.Spec.PriorityClassName
		}
		if len(r.DependsOn) == 0 && (i == 0 || set.Spec.StartupPolicy.Order != inOrder) {
			first = append(first, len(spec.SubGroups))
		}
		children++
		if err := add(v2alpha2.SubGroup{Name: r.Name}); err != nil {
			return nil, err
		}
		for j := range replicas {
			job := v2alpha2.SubGroup{Name: membership.JobLeaf(r.Name, j), Parent: ptr.To(r.Name)}
			if exclusive == "" {
				job.MinMember = ptr.To(pods)
			} else {
				job.MinSubGroup = ptr.To[int32](1)
				job.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: exclusive}
			}
			if err := add(job); err != nil {
				return nil, err
			}
			if exclusive != "" {
				spec.SubGroups = append(spec.SubGroups, leaderAndWorkers(job.Name, pods)...)
			}
		}
	}
	if err := checkObject(object, marked...); err != nil || children == 0 {
		return nil, err
	}
	spec.MinSubGroup = ptr.To[int32](1)
	switch later := children > len(first); {
	case !later:
		spec.MinSubGroup = ptr.To(int32(children))
	case len(first) > 1:
		for _, i := range first {
			spec.SubGroups[i].Parent = ptr.To(firstJobs)
		}
		if spec.SubGroups = append([]v2alpha2.SubGroup{{Name: firstJobs}}, spec.SubGroups...); len(spec.SubGroups) > v2alpha2.MaxSubGroups {
			return nil, errTooManyJobs
		}
	}
	name := membership.Workload{Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID()}.GroupName()
	return map[string]v2alpha2.PodGroupSpec{name: spec}, nil
}

// leaderAndWorkers returns the leaves of a sub-group of so many pods.
func leaderAndWorkers(parent string, pods int32) []v2alpha2.SubGroup {
	leaf := func(name string, n int32) v2alpha2.SubGroup {
		return v2alpha2.SubGroup{Name: parent + "." + name, Parent: ptr.To(parent), MinMember: ptr.To(n)}
	}
	if pods == 1 {
		return []v2alpha2.SubGroup{leaf(membership.LeaderLeaf, 1)}
	}
	return []v2alpha2.SubGroup{leaf(membership.LeaderLeaf, 1), leaf(membership.WorkersLeaf, pods-1)}
}
