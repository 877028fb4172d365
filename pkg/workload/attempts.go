// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
)

// replicaAttempts returns the attempts of the first n replicas, with the raised attempts by index. available are the
// replicas that are available in their current attempt; the first time is recorded. Entries of replicas that no longer
// exist are dropped. nil if there are no entries. Source: docs/decisions, T7.
func replicaAttempts(before []v1alpha1.ReplicaAttempt, n int, raised map[int]lifecycle.Raised, available map[int]bool, now metav1.Time) []v1alpha1.ReplicaAttempt {
	var attempts []v1alpha1.ReplicaAttempt
	previous := map[int]v1alpha1.ReplicaAttempt{}
	for _, a := range before {
		previous[int(a.Index)] = a
		if _, isRaised := raised[int(a.Index)]; int(a.Index) < n && !isRaised {
			if a.AvailableAt == nil && available[int(a.Index)] {
				a.AvailableAt = now.DeepCopy()
			}
			attempts = append(attempts, a)
		}
	}
	for i, r := range raised {
		if i < n {
			attempts = append(attempts, v1alpha1.ReplicaAttempt{
				Index: int32(i), Attempt: r.Attempt, Reason: string(r.Reason), Message: message.Truncate(r.Message, maxDescription), StartedAt: now,
				NotBefore: notBefore(previous[i], r, now)})
		}
	}
	slices.SortFunc(attempts, func(a, b v1alpha1.ReplicaAttempt) int { return cmp.Compare(a.Index, b.Index) })
	for i := range attempts {
		attempts[i].Message = message.Truncate(attempts[i].Message, max(maxMessages/len(attempts), 1))
	}
	return attempts
}

// maxMessages is the maximum length of the messages of all attempts of an object together, in characters. With those of
// thousands of attempts the object would be larger than the API server takes, and no attempt could be raised.
const maxMessages = 256 * maxDescription

// notBefore returns when the pods of a raised attempt are created at the earliest, in whole seconds: only restarts of
// Training workloads wait, given the attempt before. nil: immediately. Source: docs/decisions, J12.
func notBefore(before v1alpha1.ReplicaAttempt, r lifecycle.Raised, now metav1.Time) *metav1.Time {
	if !waitsBeforeRestart(string(r.Reason)) {
		return nil
	}
	previous, ran := time.Duration(0), time.Duration(0)
	if before.NotBefore != nil {
		previous = before.NotBefore.Sub(before.StartedAt.Time)
	}
	if before.AvailableAt != nil {
		ran = r.Since.Sub(before.AvailableAt.Time)
	}
	delay := lifecycle.RestartDelay(!waitsBeforeRestart(before.Reason), previous, ran)
	if delay == 0 {
		return nil
	}
	at := metav1.NewTime(now.Add(delay + time.Second - time.Nanosecond).Truncate(time.Second))
	return &at
}

// waitsBeforeRestart reports whether a restart for the reason waits, and makes the next one wait longer.
func waitsBeforeRestart(reason string) bool {
	return reason == v1alpha1.ReasonRestart || reason == v1alpha1.ReasonNodesLost
}

// Attempt returns the attempt that a PodGroup, PodClique or pod was created for. An invalid value is read as the first
// attempt.
func Attempt(object metav1.Object) lifecycle.Attempt {
	return lifecycle.Attempt{
		Set:   attemptIn(object, v1alpha1.AnnotationPodCliqueSetAttempt),
		Group: attemptIn(object, v1alpha1.AnnotationPodCliqueScalingGroupAttempt),
	}
}

func attemptIn(object metav1.Object, key string) int32 {
	n, err := strconv.ParseInt(object.GetAnnotations()[key], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}

// ReplicaAttempt returns the attempt that a status records for a replica.
func ReplicaAttempt(attempts []v1alpha1.ReplicaAttempt, index int) int32 {
	return RecordedAttempt(attempts, index).Attempt
}

// RecordedAttempt returns the attempt that a status records for a replica, with its reason and time.
func RecordedAttempt(attempts []v1alpha1.ReplicaAttempt, index int) lifecycle.Raised {
	a := attemptEntry(attempts, index)
	if a == nil {
		return lifecycle.Raised{}
	}
	return lifecycle.Raised{Attempt: a.Attempt, At: a.StartedAt.Time,
		Replacement: lifecycle.Replacement{Reason: lifecycle.ReplacementReason(a.Reason), Message: a.Message}}
}

// attemptEntry returns the entry of a replica, nil if there is none. attempts are sorted by index, as replicaAttempts
// returns them: a pass looks for each of thousands of replicas.
func attemptEntry(attempts []v1alpha1.ReplicaAttempt, index int) *v1alpha1.ReplicaAttempt {
	i := sort.Search(len(attempts), func(i int) bool { return int(attempts[i].Index) >= index })
	if i == len(attempts) || int(attempts[i].Index) != index {
		return nil
	}
	return &attempts[i]
}

// SetAttempt returns the current attempt of replica i of a set.
func SetAttempt(set *v1alpha1.PodCliqueSet, i int) lifecycle.Attempt {
	return lifecycle.Attempt{Set: ReplicaAttempt(set.Status.ReplicaAttempts, i)}
}

// GroupAttempt returns the current attempt of replica j of a scaling group. The set writes its own attempt to an
// annotation of the group; a group status that belongs to another attempt of the set is ignored. Source:
// docs/decisions, T5.
func GroupAttempt(group *v1alpha1.PodCliqueScalingGroup, j int) lifecycle.Attempt {
	a := lifecycle.Attempt{Set: attemptIn(group, v1alpha1.AnnotationPodCliqueSetAttempt)}
	if group.Status.PodCliqueSetAttempt == a.Set {
		a.Group = ReplicaAttempt(group.Status.ReplicaAttempts, j)
	}
	return a
}

// RecordedGroupAttempt is RecordedAttempt for replica j of a scaling group, in its current attempt of the set replica.
func RecordedGroupAttempt(group *v1alpha1.PodCliqueScalingGroup, j int) lifecycle.Raised {
	if group.Status.PodCliqueSetAttempt != attemptIn(group, v1alpha1.AnnotationPodCliqueSetAttempt) {
		return lifecycle.Raised{}
	}
	return RecordedAttempt(group.Status.ReplicaAttempts, j)
}

// GroupReplicaIndex returns the index of the scaling-group replica in the label of a PodClique or pod, -1 if there is
// none.
func GroupReplicaIndex(object metav1.Object) int {
	return naming.LabelIndex(object.GetLabels(), v1alpha1.LabelPodCliqueScalingGroupReplicaIndex)
}

// attemptFor returns the attempt of a PodClique: the one it was created for if it exists, otherwise the current one.
func attemptFor(live *v1alpha1.PodClique, present lifecycle.Attempt) lifecycle.Attempt {
	if live != nil {
		return Attempt(live)
	}
	return present
}

// withAttempt adds an attempt to annotations, except the first attempt, and returns them. annotations may be nil.
func withAttempt(annotations map[string]string, key string, attempt int32) map[string]string {
	if attempt == 0 {
		return annotations
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = text(attempt)
	return annotations
}
