// SPDX-License-Identifier: Apache-2.0

package podcliquescalinggroup

import (
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// delayOf returns the effective termination delay of a group; nil: gang termination is off, or there is no set.
func delayOf(set *v1alpha1.PodCliqueSet, group *v1alpha1.PodCliqueScalingGroup) *time.Duration {
	if set == nil {
		return nil
	}
	return workload.TerminationDelay(set, group.Labels[v1alpha1.LabelTemplateName])
}

// decideTermination returns which replicas of a group are terminated by the group itself. members are its PodCliques.
func decideTermination(set *v1alpha1.PodCliqueSet, group *v1alpha1.PodCliqueScalingGroup, members []*v1alpha1.PodClique, now time.Time) lifecycle.Termination {
	if set == nil {
		return lifecycle.Termination{}
	}
	return lifecycle.DecideGroupTermination(lifecycle.GroupTermination{
		Replicas:     wantedReplicas(group, nil, members),
		MinAvailable: lifecycle.GroupMinimum(group.Spec.MinAvailable, group.Spec.Replicas),
		Delay:        delayOf(set, group),
		ReportsOnly:  set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining,
	}, now)
}

// wantedReplicas returns the desired replicas of a group of which a PodClique exists. See workload.GroupReplicasFacts.
func wantedReplicas(group *v1alpha1.PodCliqueScalingGroup, templates lifecycle.Templates, members []*v1alpha1.PodClique) []lifecycle.GroupReplica {
	return slices.DeleteFunc(workload.GroupReplicasFacts(group, templates, members), func(r lifecycle.GroupReplica) bool { return r.Index >= int(group.Spec.Replicas) })
}
