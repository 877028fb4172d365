// SPDX-License-Identifier: Apache-2.0

package evictions

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// preparationLimit is how long an eviction may take from one of its first stages to the next, and perVictim how
	// much longer this and the deletions may take for each victim.
	preparationLimit = 30 * time.Second
	perVictim        = 20 * time.Millisecond
	// lendingEnds is how long before the last victim should have ended room that is free already is kept for the
	// preemptor again.
	lendingEnds = 5 * time.Minute
	// longestGrace stands for all longer grace periods, so that a time that contains several of them can be
	// represented.
	longestGrace = 50 * 365 * 24 * time.Hour
)

// PreparationTime returns how long marking so many victims, or the check of them, may take.
func PreparationTime(victims int) time.Duration {
	return preparationLimit + time.Duration(victims)*perVictim
}

// GraceOf returns how long a pod may take to end if it is deleted now, or, if it is terminating, how long it may take
// still: at least 0 and at most longestGrace. As for the API server, a negative grace period is one of a second.
func GraceOf(pod *corev1.Pod, now time.Time) time.Duration {
	if pod.DeletionTimestamp != nil {
		return min(max(0, pod.DeletionTimestamp.Sub(now)), longestGrace)
	}
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
		seconds = *g
	}
	if seconds < 0 {
		seconds = 1
	}
	return time.Duration(min(seconds, int64(longestGrace/time.Second))) * time.Second
}
