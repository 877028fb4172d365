// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
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
	return attempts
}

// notBefore returns when the pods of a raised attempt are created at the earliest, in whole seconds: only restarts of
// Training workloads wait, given the attempt before. nil: immediately. Source: docs/decisions, J12.
func notBefore(before v1alpha1.ReplicaAttempt, r lifecycle.Raised, now metav1.Time) *metav1.Time {
	if r.Reason != lifecycle.ReplacedRestart {
		return nil
	}
	previous, ran := time.Duration(0), time.Duration(0)
	if before.NotBefore != nil {
		previous = before.NotBefore.Sub(before.StartedAt.Time)
	}
	if before.AvailableAt != nil {
		ran = r.Since.Sub(before.AvailableAt.Time)
	}
	delay := lifecycle.RestartDelay(before.Reason != string(lifecycle.ReplacedRestart), previous, ran)
	if delay == 0 {
		return nil
	}
	at := metav1.NewTime(now.Add(delay + time.Second - time.Nanosecond).Truncate(time.Second))
	return &at
}
