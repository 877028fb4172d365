// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Labels and annotations that JobSet puts on its Jobs and their pods.
const (
	labelJobSet        = "jobset.sigs.k8s.io/jobset-name"
	labelJobSetUID     = "jobset.sigs.k8s.io/jobset-uid"
	labelReplicatedJob = "jobset.sigs.k8s.io/replicatedjob-name"
	labelJobIndex      = "jobset.sigs.k8s.io/job-index"
	labelRestarts      = "jobset.sigs.k8s.io/restart-attempt"

	jobSetExclusiveTopology = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	jobSetNodeSelector      = "alpha.jobset.sigs.k8s.io/node-selector"
	jobSet                  = "JobSet"

	// JobKey is the label of which JobSet gives each Job a value of its own.
	JobKey = "jobset.sigs.k8s.io/job-key"

	completionIndex = "batch.kubernetes.io/job-completion-index" // of the Job controller
)

// JobLeaf returns the name of the leaf of one Job of a replicated job.
func JobLeaf(replicatedJob string, index int) string {
	return replicatedJob + "-" + strconv.Itoa(index)
}

// JobSetLabels returns the labels by which pods of one Job of a JobSet find their gang, before the first restart.
func JobSetLabels(set string, uid types.UID, replicatedJob string, index int) map[string]string {
	return map[string]string{labelJobSet: set, labelJobSetUID: string(uid), labelReplicatedJob: replicatedJob, labelJobIndex: strconv.Itoa(index), labelRestarts: "0"}
}

// ExclusiveLevel returns the node label of the domains that JobSet gives to one Job each, of the annotations of a pod,
// a JobSet or a replicated job. "": none, or JobSet's node selectors do it. JobSet then makes the other pods of a Job
// only when that of index 0 is bound.
func ExclusiveLevel(annotations map[string]string) string {
	if annotations[jobSetNodeSelector] != "" {
		return ""
	}
	return annotations[jobSetExclusiveTopology]
}

// leafOfJobSet returns the leaf of a pod of a JobSet: its Job, of which the first pod and the others are leaves of
// their own if it is exclusive.
func leafOfJobSet(pod *corev1.Pod) string {
	job := pod.Labels[labelReplicatedJob] + "-" + pod.Labels[labelJobIndex]
	switch {
	case ExclusiveLevel(pod.Annotations) == "":
		return job
	case pod.Annotations[completionIndex] == "0":
		return job + "." + LeaderLeaf
	}
	return job + "." + WorkersLeaf
}

// jobSetOf returns the JobSet of a pod; no Name: it is of none.
func jobSetOf(pod *corev1.Pod) Workload {
	name, uid := pod.Labels[labelJobSet], pod.Labels[labelJobSetUID]
	if name == "" || uid == "" {
		return Workload{}
	}
	return Workload{Kind: jobSet, Name: name, UID: types.UID(uid)}
}

// runOfJobSet is Run of a pod of a JobSet: one more than its restart attempt.
func runOfJobSet(pod *corev1.Pod) (run int, begins bool) {
	attempt, err := strconv.ParseUint(pod.Labels[labelRestarts], 10, 31)
	if err != nil {
		return 0, false
	}
	return int(attempt) + 1, true
}

// groupOfJobSet is the mark.group of pods of JobSets.
func groupOfJobSet(pod *corev1.Pod) string {
	set := jobSetOf(pod)
	if set.Name == "" || OptsOut(pod.Labels, pod.Annotations) {
		return ""
	}
	return set.GroupName()
}
