// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"cmp"
	"slices"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
)

// Keys of KAI, on a workload or its pod template, that say what a field of the PodGroup does.
const (
	kaiPreemptibility = "kai.scheduler/preemptibility" // a label
	kaiTopology       = "kai.scheduler/topology"
	kaiRequiredLevel  = "kai.scheduler/topology-required-placement"
	kaiPreferredLevel = "kai.scheduler/topology-preferred-placement"
)

// preemptibilities are the values of kaiPreemptibility.
var preemptibilities = []v2alpha2.Preemptibility{v2alpha2.Preemptible, v2alpha2.NonPreemptible, v2alpha2.SemiPreemptible}

// obeyKAI sets the fields of a PodGroup for which labels and annotations have a key of KAI. A field that has another
// value already is refused.
func obeyKAI(spec *v2alpha2.PodGroupSpec, labels, annotations map[string]string) error {
	if p := v2alpha2.Preemptibility(labels[kaiPreemptibility]); p != "" {
		switch {
		case !slices.Contains(preemptibilities, p):
			return refuse("label %s is %q: its pods wait; write one of %q", kaiPreemptibility, message.Truncate(string(p), maxShown), preemptibilities)
		case spec.Preemptibility != "" && spec.Preemptibility != p:
			return refuse("label %s of the pod template is %q, and of the workload %q: its pods wait; write one of the two", kaiPreemptibility, spec.Preemptibility, p)
		}
		spec.Preemptibility = p
	}
	if annotations[kaiTopology] == "" && annotations[kaiRequiredLevel] == "" && annotations[kaiPreferredLevel] == "" {
		return nil
	}
	constraint := spec.TopologyConstraint.DeepCopy() // PodGroups of a workload share it
	if constraint == nil {
		constraint = &v2alpha2.TopologyConstraint{}
	}
	spec.TopologyConstraint = constraint
	for _, of := range []struct {
		key   string
		field *string
	}{{kaiTopology, &constraint.Topology}, {kaiRequiredLevel, &constraint.RequiredTopologyLevel}, {kaiPreferredLevel, &constraint.PreferredTopologyLevel}} {
		value := annotations[of.key]
		if value != "" && *of.field != "" && *of.field != value {
			return refuse("annotation %s is %q, and another annotation of the workload or of its pod template asks for %q: its pods wait; write one of the two",
				of.key, message.Truncate(value, maxShown), message.Truncate(*of.field, maxShown))
		}
		*of.field = cmp.Or(value, *of.field)
	}
	return nil
}
