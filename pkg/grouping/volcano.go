// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// volcanoGroup is what is read of a PodGroup of Volcano.
type volcanoGroup struct {
	Spec struct {
		MinMember         int32            `json:"minMember"`
		MinTaskMember     map[string]int32 `json:"minTaskMember"`
		PriorityClassName string           `json:"priorityClassName"`
		Queue             string           `json:"queue"`
		SubGroupPolicy    []any            `json:"subGroupPolicy"`
		NetworkTopology   *struct {
			Mode string `json:"mode"`
		} `json:"networkTopology"`
	} `json:"spec"`
}

// gangOfVolcano: a PodGroup of Volcano is a gang of minMember pods. If these are what its tasks need in all, it is a
// tree with a leaf for each task; if they are fewer, Volcano does not look at the tasks.
func gangOfVolcano(object *unstructured.Unstructured) (map[string]v2alpha2.PodGroupSpec, error) {
	var group volcanoGroup
	if err := convert(object, &group); err != nil {
		return nil, err
	}
	switch topology := group.Spec.NetworkTopology; {
	case len(group.Spec.SubGroupPolicy) > 0:
		return nil, refuse("spec.subGroupPolicy cannot be obeyed: its pods wait; write a PodGroup of apiVersion %s with subGroups, and name it by annotation %s",
			v2alpha2.SchemeGroupVersion, v2alpha2.PodGroupAnnotation)
	case topology != nil && topology.Mode != "soft": // hard is the default
		return nil, refuse("spec.networkTopology of mode hard cannot be obeyed, HyperNodes are not read: its pods wait; remove it, and use required pod affinity with the topology key")
	}
	spec := v2alpha2.PodGroupSpec{PriorityClassName: group.Spec.PriorityClassName}
	minimum, inTasks := max(group.Spec.MinMember, 1), int32(0)
	for _, n := range group.Spec.MinTaskMember {
		inTasks += n
	}
	switch tasks := slices.Sorted(maps.Keys(group.Spec.MinTaskMember)); {
	case len(tasks) == 0 || minimum < inTasks:
		spec.MinMember = &minimum
	case minimum > inTasks:
		return nil, refuse("spec.minMember is %d, and spec.minTaskMember needs %d pods in all: of which tasks the others are cannot be left open, its pods wait; make the two equal", minimum, inTasks)
	default:
		for _, task := range tasks {
			n := group.Spec.MinTaskMember[task]
			if n < 1 {
				return nil, refuse("spec.minTaskMember is %d for task %q: its pods wait; write a number from 1 for each task, or no minTaskMember", n, message.Truncate(task, maxShown))
			}
			spec.SubGroups = append(spec.SubGroups, v2alpha2.SubGroup{Name: task, MinMember: ptr.To(n)})
		}
	}
	return map[string]v2alpha2.PodGroupSpec{membership.Volcano.GroupName(object.GetName()): spec}, nil
}

// Ignored describes the fields of a workload that have no effect, "" if there are none.
func (k Kind) Ignored(object *unstructured.Unstructured) string {
	if k.GroupVersion().String() != membership.Volcano.APIVersion {
		return ""
	}
	var group volcanoGroup
	if err := convert(object, &group); err != nil {
		return "" // PodGroups returns it
	}
	if queue := group.Spec.Queue; queue != "" && queue != "default" {
		return fmt.Sprintf("spec.queue %q has no effect: Muster has no queues: limit namespaces with a ResourceQuota, or admit the workload with Kueue", message.Truncate(queue, maxShown))
	}
	return ""
}
