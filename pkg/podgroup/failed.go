// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// FailedPods describes the failed pods of a gang whose objects still exist, without those of earlier runs.
type FailedPods struct {
	// Total is their number.
	Total int
	// First is the name of the one that failed first, and Why how it ended: "container worker exited with code 1",
	// "Evicted". Why is "" if that is unknown. Bare: it has no controller, so nothing replaces it.
	First, Why string
	Bare       bool
	// Owners are their controllers, at most maxFailedOwners. Their objects were not read.
	Owners []Owner
}

// maxFailedOwners is the maximum number of owners of failed pods that are examined.
const maxFailedOwners = 5

// maxFailedName is the maximum length of the name of a failed pod in a message. A Job of a CronJob needs more than
// maxShown.
const maxFailedName = 63

// DescribeFailures describes the failed pods of a gang. live are the owners of its existing pods. Pods that ended
// before the current run began, for example those of an earlier Job of a CronJob, are not counted.
func DescribeFailures(pods []*corev1.Pod, live []Owner) FailedPods {
	owners := map[types.UID]*Owner{} // "": pods without a controller
	for _, pod := range pods {
		ref := controllerOf(pod)
		o := owners[ref.UID]
		if o == nil {
			o = &Owner{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, Leaf: membership.Leaf(pod)}
			owners[ref.UID] = o
		}
		o.Mixed = o.Mixed || membership.Leaf(pod) != o.Leaf
	}
	begin := beginOfRun(pods, live)
	var out FailedPods
	var first *corev1.Pod
	for _, pod := range pods {
		uid := controllerOf(pod).UID
		if failureTime(pod).Before(begin) && !slices.ContainsFunc(live, func(o Owner) bool { return o.UID == uid }) {
			continue
		}
		out.Total++
		owners[uid].Failed++
		if first == nil || cmp.Or(failureTime(pod).Compare(failureTime(first)), cmp.Compare(pod.Name, first.Name)) < 0 {
			first = pod
		}
	}
	if first == nil {
		return out
	}
	out.First, out.Why, out.Bare = first.Name, describeFailure(first), controllerOf(first).UID == ""
	for uid, o := range owners {
		if uid != "" && o.Failed > 0 {
			out.Owners = append(out.Owners, *o)
		}
	}
	slices.SortFunc(out.Owners, func(a, b Owner) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	out.Owners = out.Owners[:min(len(out.Owners), maxFailedOwners)]
	return out
}

// FailedLater reports whether the failed pods belong to a later run than the succeeded ones, whose controllers, and the
// creation of the newest of which, are given.
func FailedLater(failed []*corev1.Pod, controllers sets.Set[types.UID], newest time.Time) bool {
	if len(failed) == 0 {
		return false
	}
	last := controllerOf(newestPod(failed)).UID
	return last != "" && !controllers.Has(last) && beginOfRun(failed, nil).After(newest)
}

// FailedSinceCompletion reports whether the failed pods of a gang belong to a later run than the one that completed
// according to the status: one of them was created afterwards. The pods of the run that completed may be gone. false if
// the status does not say that the gang has completed.
func FailedSinceCompletion(failed []*corev1.Pod, status *v2alpha2.PodGroupStatus) bool {
	completed := completedCondition(status)
	return len(failed) > 0 && completed != nil && newestPod(failed).CreationTimestamp.After(completed.LastTransitionTime.Time)
}

// completedCondition returns the condition Satisfied of a gang that has completed, whose lastTransitionTime is when it
// was first recorded that it had; nil: it has not.
func completedCondition(status *v2alpha2.PodGroupStatus) *metav1.Condition {
	c := meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionSatisfied)
	if c == nil || c.Reason != string(v2alpha2.ReasonCompleted) {
		return nil
	}
	return c
}

// WithoutEarlierRun returns the facts of a gang of which an earlier run has succeeded and the last one has failed,
// without the pods of the earlier run.
func WithoutEarlierRun(f Facts) Facts {
	f.Created, f.Usable, f.Bound = gang.Counts{}, gang.Counts{}, gang.Counts{}
	f.Admitted, f.AdmittedGroups, f.Ended, f.LastRunFailed = false, nil, false, true
	return f
}

// newestPod returns the pod that was created last.
func newestPod(pods []*corev1.Pod) *corev1.Pod {
	return slices.MaxFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// beginOfRun returns when the oldest existing pod of the gang was created. If none exists, it is when the oldest failed
// pod of that controller was created whose pod failed last.
func beginOfRun(failed []*corev1.Pod, live []Owner) time.Time {
	var begin time.Time
	for i := range live {
		if since := live[i].Since; begin.IsZero() || since.Before(begin) {
			begin = since
		}
	}
	if len(live) > 0 || len(failed) == 0 {
		return begin
	}
	last := newestPod(failed)
	for _, pod := range failed {
		if created := pod.CreationTimestamp.Time; controllerOf(pod).UID == controllerOf(last).UID && (begin.IsZero() || created.Before(begin)) {
			begin = created
		}
	}
	return begin
}

// controllerOf returns the reference to the pod's controller, an empty one if it has none.
func controllerOf(pod *corev1.Pod) metav1.OwnerReference {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return *ref
	}
	return metav1.OwnerReference{}
}

// failureTime returns when a failed pod ended: when the container that failed first did, otherwise when the pod was
// created.
func failureTime(pod *corev1.Pod) time.Time {
	if end, _ := failedContainer(pod); end != nil && !end.State.Terminated.FinishedAt.IsZero() {
		return end.State.Terminated.FinishedAt.Time
	}
	return pod.CreationTimestamp.Time
}

// describeFailure describes how a failed pod ended.
func describeFailure(pod *corev1.Pod) string {
	reason := pod.Status.Reason // Evicted, DeadlineExceeded: the cause of the end of the containers
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && reason == "" {
			reason = c.Reason // PreemptionByScheduler, DeletionByTaintManager
		}
	}
	end, init := failedContainer(pod)
	if end == nil {
		return message.Truncate(reason, maxShown)
	}
	text := fmt.Sprintf("container %s exited with code %d", message.Truncate(end.Name, maxShown), end.State.Terminated.ExitCode)
	if init {
		text = "init " + text
	}
	if reason == "" {
		reason = end.State.Terminated.Reason
	}
	if reason != "" && reason != "Error" { // the kubelet uses it for every exit code but 0
		text += " (" + message.Truncate(reason, maxShown) + ")"
	}
	return text
}

// failedContainer returns the status of the container of a failed pod that was the first to exit with another code than
// 0, and whether it is an init container; nil if there is none. Sidecars, which are init containers that are always
// restarted, are ignored.
func failedContainer(pod *corev1.Pod) (first *corev1.ContainerStatus, init bool) {
	sidecars := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		sidecars[c.Name] = c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			end := s.State.Terminated
			if end == nil || end.ExitCode == 0 || sidecars[s.Name] {
				continue
			}
			if first == nil || end.FinishedAt.Before(&first.State.Terminated.FinishedAt) {
				first, init = s, len(pod.Status.InitContainerStatuses) > 0 && &statuses[0] == &pod.Status.InitContainerStatuses[0]
			}
		}
	}
	return first, init
}

// FailedStatus returns the part of a failed pod's status that Failures reads. The rest, and the spec, need not be kept
// in memory.
func FailedStatus(pod *corev1.Pod) corev1.PodStatus {
	kept := corev1.PodStatus{Phase: pod.Status.Phase, Reason: pod.Status.Reason}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			kept.Conditions = append(kept.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	end, init := failedContainer(pod)
	if end == nil {
		return kept
	}
	last := []corev1.ContainerStatus{{Name: end.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: end.State.Terminated.ExitCode, Reason: end.State.Terminated.Reason, FinishedAt: end.State.Terminated.FinishedAt,
	}}}}
	if init {
		kept.InitContainerStatuses = last
	} else {
		kept.ContainerStatuses = last
	}
	return kept
}
