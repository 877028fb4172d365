// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"cmp"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
)

// rayCluster is what is read of a RayCluster.
type rayCluster struct {
	Spec struct {
		Suspend       bool         `json:"suspend"`
		Autoscaling   bool         `json:"enableInTreeAutoscaling"`
		HeadGroupSpec rayGroup     `json:"headGroupSpec"`
		WorkerGroups  []rayWorkers `json:"workerGroupSpecs"`
	} `json:"spec"`
}

type rayGroup struct {
	Template template `json:"template"`
}

// rayWorkers is a group of workers.
type rayWorkers struct {
	rayGroup    `json:",inline"`
	GroupName   string `json:"groupName"`
	Suspend     bool   `json:"suspend"`
	Replicas    *int32 `json:"replicas"`
	MinReplicas int32  `json:"minReplicas"`
	MaxReplicas *int32 `json:"maxReplicas"`
	NumOfHosts  *int32 `json:"numOfHosts"`
}

// most returns the maximum number of replicas, hosts that of the pods of each, as KubeRay's definition has them.
func (g *rayWorkers) most() int32  { return ptr.Deref(g.MaxReplicas, math.MaxInt32) }
func (g *rayWorkers) hosts() int32 { return ptr.Deref(g.NumOfHosts, 1) }

// begins returns the number of replicas that KubeRay makes before anything is scaled. It obeys maxReplicas if
// minReplicas is larger.
func (g *rayWorkers) begins() int32 {
	return min(max(g.MinReplicas, ptr.Deref(g.Replicas, 0)), g.most())
}

// gangOfRayCluster: a RayCluster is one gang, with a leaf for each group: the head, and of each group of workers all,
// or minReplicas if they are autoscaled. A group that may have no workers has no part in the minimum: it stands beside
// the head, of which one is needed.
func gangOfRayCluster(object *unstructured.Unstructured) (map[string]v2alpha2.PodGroupSpec, error) {
	var cluster rayCluster
	if err := convert(object, &cluster); err != nil || cluster.Spec.Suspend {
		return nil, err
	}
	if err := checkObject(object); err != nil {
		return nil, err
	}
	var needed, surplus []v2alpha2.SubGroup
	spec, listed := v2alpha2.PodGroupSpec{}, map[string]bool{}
	add := func(name string, pods int32, t template, to *[]v2alpha2.SubGroup) error {
		switch {
		case !t.isGrouped():
			return nil
		case membership.MinimumIn(t.Labels, t.Annotations).Value != "":
			return refuse("%s on the template of group %q: its pods wait; write minReplicas instead, with enableInTreeAutoscaling", v2alpha2.MinMemberKey, name)
		case listed[name]:
			return refuse("two groups are %q: its pods wait; rename one", name)
		}
		listed[name] = true
		spec.PriorityClassName = cmp.Or(spec.PriorityClassName, t.Spec.PriorityClassName)
		*to = append(*to, v2alpha2.SubGroup{Name: name, MinMember: ptr.To(pods)})
		return nil
	}
	if err := add(membership.RayHead, 1, cluster.Spec.HeadGroupSpec.Template, &needed); err != nil {
		return nil, err
	}
	for i := range cluster.Spec.WorkerGroups {
		g := &cluster.Spec.WorkerGroups[i]
		to, replicas := &needed, g.begins()
		if cluster.Spec.Autoscaling && g.most() > 0 {
			if replicas = min(g.MinReplicas, g.most()); replicas <= 0 {
				to, replicas = &surplus, 1
			}
		}
		if g.Suspend || replicas <= 0 || g.hosts() <= 0 {
			continue
		}
		if err := add(g.GroupName, replicas*g.hosts(), g.Template, to); err != nil {
			return nil, err
		}
	}
	if len(needed)+len(surplus) == 0 {
		return nil, nil
	}
	spec.MinSubGroup = ptr.To(max(int32(len(needed)), 1))
	if len(needed) > 0 && len(surplus) > 0 {
		head := v2alpha2.SubGroup{Name: needed[0].Name + ".autoscaled", MinSubGroup: ptr.To[int32](1)}
		needed[0].Parent = &head.Name
		for i := range surplus {
			surplus[i].Parent = &head.Name
		}
		needed = append([]v2alpha2.SubGroup{head}, needed...)
	}
	if spec.SubGroups = append(needed, surplus...); len(spec.SubGroups) > v2alpha2.MaxSubGroups {
		return nil, refuse("its groups need more than %d sub-groups, which is the most that a PodGroup lists: its pods wait; use fewer", v2alpha2.MaxSubGroups)
	}
	name := membership.Workload{Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID()}.GroupName()
	return map[string]v2alpha2.PodGroupSpec{name: spec}, nil
}
