// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// Labels that LeaderWorkerSet puts on its pods.
const (
	labelLWS        = "leaderworkerset.sigs.k8s.io/name"
	labelLWSGroup   = "leaderworkerset.sigs.k8s.io/group-index"
	labelLWSWorker  = "leaderworkerset.sigs.k8s.io/worker-index"
	leaderWorkerSet = "LeaderWorkerSet"

	// ReplicaKey is the label of which LeaderWorkerSet gives each replica a value of its own.
	ReplicaKey = "leaderworkerset.sigs.k8s.io/group-key"

	leaderOfAReplica = "0" // its worker index
)

// Leaves of a replica of a LeaderWorkerSet, and of an exclusive Job of a JobSet, whose leader may start first.
const (
	LeaderLeaf  = "leader"
	WorkersLeaf = "workers"
)

// ReplicaLabels returns the labels by which a pod of a replica of a LeaderWorkerSet finds its gang; worker is 0 for the
// leader.
func ReplicaLabels(set string, index, worker int) map[string]string {
	return map[string]string{labelLWS: set, labelLWSGroup: strconv.Itoa(index), labelLWSWorker: strconv.Itoa(worker)}
}

// ReplicaGroupName returns the name of the PodGroup of one replica of a LeaderWorkerSet. Neither a name nor an index
// has a dot.
func ReplicaGroupName(set string, index int) string {
	return Workload{Kind: leaderWorkerSet, Name: set + "." + strconv.Itoa(index)}.GroupName()
}

// JoinedGroupName returns the name of the PodGroup of all replicas of a LeaderWorkerSet that are joined.
func JoinedGroupName(set string) string {
	return Workload{Kind: leaderWorkerSet, Name: set}.GroupName()
}

// ReplicaLeaf returns the name of a leaf of one replica, of LeaderLeaf and WorkersLeaf, in the PodGroup of all.
func ReplicaLeaf(index int, leaf string) string { return ReplicaUnit(index) + "." + leaf }

// ReplicaUnit returns the name of the sub-group of one replica in the PodGroup of all.
func ReplicaUnit(index int) string { return "replica-" + strconv.Itoa(index) }

// Joined reports whether the replicas of the pod's LeaderWorkerSet are one gang.
func Joined(labels, annotations map[string]string) bool {
	return labels[v2alpha2.GangKey] == v2alpha2.GangJoined || annotations[v2alpha2.GangKey] == v2alpha2.GangJoined
}

// leafOfReplica returns the leaf of a pod of a LeaderWorkerSet.
func leafOfReplica(pod *corev1.Pod) string {
	leaf := WorkersLeaf
	if pod.Labels[labelLWSWorker] == leaderOfAReplica {
		leaf = LeaderLeaf
	}
	if index, err := strconv.Atoi(pod.Labels[labelLWSGroup]); err == nil && Joined(pod.Labels, pod.Annotations) {
		return ReplicaLeaf(index, leaf)
	}
	return leaf
}

// groupOfReplica is the mark.group of pods of LeaderWorkerSets.
func groupOfReplica(pod *corev1.Pod) string {
	set := pod.Labels[labelLWS]
	if set == "" || OptsOut(pod.Labels, pod.Annotations) {
		return ""
	}
	index, err := strconv.Atoi(pod.Labels[labelLWSGroup])
	if err != nil {
		return ""
	}
	if Joined(pod.Labels, pod.Annotations) {
		return JoinedGroupName(set)
	}
	return ReplicaGroupName(set, index)
}

// clockSkew is by how many seconds the clocks of API servers may differ: one creates the leader of a replica, and
// another its workers.
const clockSkew = 60

// runOfReplica is Run of a pod of a LeaderWorkerSet. The workers belong to their leader, after which they are created,
// and go with it, but later: by a rollout, too, the next leader may be there before any of them is deleted. Nothing
// else of a pod tells them apart.
func runOfReplica(pod *corev1.Pod) (run int, begins bool) {
	created := int(pod.CreationTimestamp.Unix())
	switch {
	case pod.CreationTimestamp.IsZero(), Joined(pod.Labels, pod.Annotations): // of many leaders
		return 0, false
	case pod.Labels[labelLWSWorker] == leaderOfAReplica:
		return created - clockSkew, true
	}
	return created, false
}

// IsOfASet reports whether a pod template is one that a LeaderWorkerSet has given to its StatefulSets, or a JobSet to
// its Jobs.
func IsOfASet(labels map[string]string) bool {
	return labels[labelLWS] != "" || labels[labelJobSetUID] != ""
}
