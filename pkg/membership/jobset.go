// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Labels that JobSet puts on its Jobs and their pods.
const (
	labelJobSet        = "jobset.sigs.k8s.io/jobset-name"
	labelJobSetUID     = "jobset.sigs.k8s.io/jobset-uid"
	labelReplicatedJob = "jobset.sigs.k8s.io/replicatedjob-name"
	labelJobIndex      = "jobset.sigs.k8s.io/job-index"
)

// JobLeaf returns the name of the leaf of one Job of a replicated job.
func JobLeaf(replicatedJob string, index int) string {
	return replicatedJob + "-" + strconv.Itoa(index)
}

// jobSetOf returns the JobSet of a pod; no Name: it is of none.
func jobSetOf(pod *corev1.Pod) Workload {
	name, uid := pod.Labels[labelJobSet], pod.Labels[labelJobSetUID]
	if name == "" || uid == "" {
		return Workload{}
	}
	return Workload{Kind: "JobSet", Name: name, UID: types.UID(uid)}
}

// groupOfJobSet is the mark.group of pods of JobSets.
func groupOfJobSet(pod *corev1.Pod) string {
	set := jobSetOf(pod)
	if set.Name == "" || OptsOut(pod.Labels, pod.Annotations) {
		return ""
	}
	return set.GroupName()
}
