// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
)

// gangOfCoscheduling: a PodGroup of Coscheduling is a gang of minMember pods. A plan counts what its pods need, and
// holds no room while it waits, so that minResources and scheduleTimeoutSeconds have nothing to add.
func gangOfCoscheduling(object *unstructured.Unstructured) (map[string]v2alpha2.PodGroupSpec, error) {
	var group struct {
		Spec struct {
			MinMember int32 `json:"minMember"`
		} `json:"spec"`
	}
	if err := convert(object, &group); err != nil {
		return nil, err
	}
	name := membership.Coscheduling.GroupName(object.GetName())
	return map[string]v2alpha2.PodGroupSpec{name: {MinMember: ptr.To(max(group.Spec.MinMember, 1))}}, nil
}
