// SPDX-License-Identifier: Apache-2.0

package v2alpha2

const (
	// PodGroupAnnotation, on a pod, holds the name of the PodGroup, in the
	// pod's namespace, that the pod is a member of.
	PodGroupAnnotation = "pod-group-name"

	// SubGroupLabel, on a pod, holds the name of the leaf of the PodGroup's
	// tree that the pod counts towards. It has no meaning for a PodGroup
	// without sub-groups: all of its pods count.
	SubGroupLabel = "kai.scheduler/subgroup-name"

	// MinMemberKey, a label or annotation of a pod template, makes the pods of
	// the Job, StatefulSet or Deployment a gang, whose PodGroup muster-controller
	// writes. The value is the number of pods of the minimum, or "all".
	MinMemberKey = "scheduling.run.ai/min-member"

	// GangKey, a label or annotation of a pod template, with the value "false":
	// the pods form no gang by their workload. GangJoined, on the templates of a
	// LeaderWorkerSet: all its replicas are one gang. Other values have no
	// meaning.
	GangKey = "scheduling.run.ai/gang"
	// GangJoined is a value of GangKey.
	GangJoined = "joined"

	// BoundForAnnotation, on a pod, is the mark that muster-scheduler writes to
	// the Binding of every gang member, and that the API server copies to the
	// pod. It identifies the plan that bound the pod, and is signed with a key
	// of the scheduler for this pod's UID (package mark). After a crash,
	// muster-scheduler uses it to find out which pods were bound by which plan.
	// A mark whose signature is not valid is ignored.
	BoundForAnnotation = "scheduling.run.ai/bound-for"

	// MaxRuntimeAnnotation, on a PodGroup, is how long each of its pods runs at
	// most, from its start: a duration such as "90m" or "12h". The scheduler does
	// not enforce it, but plans with it: such pods may use room that a gang is
	// promised for a later time.
	MaxRuntimeAnnotation = "scheduling.run.ai/max-runtime"

	// ReplacingAnnotation, on a PodGroup, indicates that pods of the gang are
	// being replaced: a controller (muster-controller, during an update)
	// deletes pods and creates others in their place. The value may be any text
	// except the empty one. As long as the annotation is set, the room of a
	// bound pod of an admitted sub-group that is deleted is kept for the next
	// pods of the same leaf: pods of the same or a lower priority cannot use
	// it, for the scheduler's replacementTimeout at most, counted from when the
	// pod began to terminate. The annotation must be set before the pod is
	// deleted.
	ReplacingAnnotation = "scheduling.run.ai/replacing"

	// TopologyLevelsAnnotation, on a PodGroup, holds the node labels of the
	// levels of a topology, outermost first, separated by commas. The
	// constraints that name no Topology are of these levels: a domain is the set
	// of nodes with the same values of the label of its level and of those
	// before it. muster-controller lists the levels of the
	// ClusterTopologyBinding of a PodCliqueSet, so that none needs a Topology.
	TopologyLevelsAnnotation = "scheduling.run.ai/topology-levels"
)

const (
	// MaxSubGroups is the maximum number of sub-groups of a PodGroup.
	MaxSubGroups = 1024
)
