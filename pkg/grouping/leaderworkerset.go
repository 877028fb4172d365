// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// leaderWorkerSet is what is read of a LeaderWorkerSet.
type leaderWorkerSet struct {
	Spec struct {
		Replicas             *int32 `json:"replicas"`
		StartupPolicy        string `json:"startupPolicy"`
		LeaderWorkerTemplate struct {
			Size           *int32    `json:"size"`
			LeaderTemplate *template `json:"leaderTemplate"`
			WorkerTemplate template  `json:"workerTemplate"`
		} `json:"leaderWorkerTemplate"`
		RolloutStrategy struct {
			RollingUpdateConfiguration struct {
				MaxSurge intstr.IntOrString `json:"maxSurge"`
			} `json:"rollingUpdateConfiguration"`
		} `json:"rolloutStrategy"`
	} `json:"spec"`
}

// leaderReady is the startupPolicy by which LeaderWorkerSet creates workers only when their leader is ready.
const leaderReady = "LeaderReady"

// lwsExclusiveTopology makes LeaderWorkerSet create workers only when their leader is bound, and gives each replica a
// domain.
const lwsExclusiveTopology = "leaderworkerset.sigs.k8s.io/exclusive-topology"

// maxReplicas is the maximum number of PodGroups of a LeaderWorkerSet. Whoever may write one must not fill etcd with
// them.
const maxReplicas = 10_000

// gangsOfReplicas: each replica of a LeaderWorkerSet is a gang of its leader and its workers, also the replicas that
// exist only during a rollout. Where workers are created when their leader is ready, or bound, it starts first, and
// they start together.
func gangsOfReplicas(object *unstructured.Unstructured) (map[string]v2alpha2.PodGroupSpec, error) {
	var set leaderWorkerSet
	if err := convert(object, &set); err != nil {
		return nil, err
	}
	pods := set.Spec.LeaderWorkerTemplate
	leader := *cmp.Or(pods.LeaderTemplate, &pods.WorkerTemplate)
	if !leader.isGrouped() && !pods.WorkerTemplate.isGrouped() {
		return nil, nil
	}
	if leader.isGrouped() != pods.WorkerTemplate.isGrouped() {
		return nil, refuse("of leaderTemplate and workerTemplate, only one is of a scheduler of Muster and without %s and %s: its pods wait; make them alike",
			v2alpha2.PodGroupAnnotation, v2alpha2.GangKey)
	}
	joined := membership.Joined(leader.Labels, leader.Annotations)
	if joined != membership.Joined(pods.WorkerTemplate.Labels, pods.WorkerTemplate.Annotations) {
		return nil, refuse("of leaderTemplate and workerTemplate, only one has %s: %q: its pods wait; make them alike", v2alpha2.GangKey, v2alpha2.GangJoined)
	}
	marked := membership.MinimumIn(pods.WorkerTemplate.Labels, pods.WorkerTemplate.Annotations)
	if of := membership.MinimumIn(leader.Labels, leader.Annotations); marked.Value == "" {
		marked = of
	} else if of.Value != "" && of.Value != marked.Value {
		return nil, refuse("%s of leaderTemplate is %q, and of workerTemplate %q: its pods wait; write one of the two",
			v2alpha2.MinMemberKey, message.Truncate(of.Value, maxShown), message.Truncate(marked.Value, maxShown))
	}
	if err := checkObject(object, marked); err != nil {
		return nil, err
	}
	size := max(ptr.Deref(pods.Size, 1), 1)
	minimum := size
	if marked.Value != "" {
		var err error
		if minimum, err = podsOf(marked, size); err != nil {
			return nil, err
		}
	}
	replicas := max(int(ptr.Deref(set.Spec.Replicas, 1)), 0)
	surge, err := intstr.GetScaledValueFromIntOrPercent(&set.Spec.RolloutStrategy.RollingUpdateConfiguration.MaxSurge, replicas, true)
	if err != nil {
		surge = 0 // LeaderWorkerSet refuses it too
	}
	if replicas == 0 {
		surge = 0
	}
	if replicas+surge > maxReplicas {
		return nil, refuse("%d replicas, with those of maxSurge, are more than %d: its pods wait; use fewer, or several LeaderWorkerSets", replicas+surge, maxReplicas)
	}
	class := leader.Spec.PriorityClassName
	var constraint *v2alpha2.TopologyConstraint
	level := object.GetAnnotations()[lwsExclusiveTopology]
	if level != "" {
		constraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: level}
	}
	// The workers are created only when the leader is ready, or bound.
	leaderFirst := minimum > 1 && (set.Spec.StartupPolicy == leaderReady || level != "")
	if joined {
		return joinedReplicas(object.GetName(), replicas, surge, minimum, leaderFirst, v2alpha2.PodGroupSpec{PriorityClassName: class}, constraint)
	}
	gangs := map[string]v2alpha2.PodGroupSpec{}
	for i := range replicas + surge {
		spec := v2alpha2.PodGroupSpec{PriorityClassName: class, TopologyConstraint: constraint}
		if leaderFirst {
			spec.MinSubGroup = ptr.To[int32](1)
			spec.SubGroups = []v2alpha2.SubGroup{
				{Name: membership.LeaderLeaf, MinMember: ptr.To[int32](1)}, {Name: membership.WorkersLeaf, MinMember: ptr.To(minimum - 1)}}
		} else {
			spec.MinMember = ptr.To(minimum)
		}
		gangs[membership.ReplicaGroupName(object.GetName(), i)] = spec
	}
	return gangs, nil
}

// joinedReplicas: all replicas of a LeaderWorkerSet are one gang; those of a rollout are above its minimum.
func joinedReplicas(set string, replicas, surge int, minimum int32, leaderFirst bool, spec v2alpha2.PodGroupSpec, constraint *v2alpha2.TopologyConstraint) (map[string]v2alpha2.PodGroupSpec, error) {
	if replicas == 0 {
		return nil, nil
	}
	spec.MinSubGroup = ptr.To(int32(replicas))
	for i := range replicas + surge {
		replica := v2alpha2.SubGroup{Name: membership.ReplicaUnit(i), TopologyConstraint: constraint}
		if leaderFirst {
			replica.MinSubGroup = ptr.To[int32](1)
		}
		if spec.SubGroups = append(append(spec.SubGroups, replica), leaderAndWorkers(replica.Name, minimum)...); len(spec.SubGroups) > v2alpha2.MaxSubGroups {
			return nil, refuse("%d replicas need more than %d sub-groups, which is the most that a PodGroup lists: its pods wait; use fewer, or let each be a gang", replicas+surge, v2alpha2.MaxSubGroups)
		}
	}
	return map[string]v2alpha2.PodGroupSpec{membership.JoinedGroupName(set): spec}, nil
}
