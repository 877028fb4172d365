// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Labels that LeaderWorkerSet puts on its pods.
const (
	labelLWS         = "leaderworkerset.sigs.k8s.io/name"
	labelLWSGroup    = "leaderworkerset.sigs.k8s.io/group-index"
	labelLWSWorker   = "leaderworkerset.sigs.k8s.io/worker-index"
	leaderWorkerSet  = "LeaderWorkerSet"
	leaderOfAReplica = "0" // its worker index
)

// Leaves of a replica of a LeaderWorkerSet whose leader starts first.
const (
	LeaderLeaf  = "leader"
	WorkersLeaf = "workers"
)

// ReplicaGroupName returns the name of the PodGroup of one replica of a LeaderWorkerSet. Neither a name nor an index has a dot.
func ReplicaGroupName(set string, index int) string {
	return Workload{Kind: leaderWorkerSet, Name: set + "." + strconv.Itoa(index)}.GroupName()
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
	return ReplicaGroupName(set, index)
}

// IsOfASet reports whether a pod template is one that a LeaderWorkerSet has given to its StatefulSets, or a JobSet to its Jobs.
func IsOfASet(labels map[string]string) bool {
	return labels[labelLWS] != "" || labels[labelJobSetUID] != ""
}
