// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/observed"
)

// judgeGroup returns the breach status of a scaling group. s is its status for the current attempt, and replicas are
// the desired replicas that exist.
func judgeGroup(group *v1alpha1.PodCliqueScalingGroup, s *v1alpha1.PodCliqueScalingGroupStatus, replicas []lifecycle.GroupReplica, needed int32, delay *time.Duration, now time.Time) lifecycle.Breach {
	available, unknown := lifecycle.CountAvailable(replicas)
	return lifecycle.JudgeReplicas(lifecycle.Availability{
		Available: available, Unknown: unknown, Needed: needed, Wanted: group.Spec.Replicas,
		WasAvailable: s.WasAvailable, Updating: s.UpdateProgress != nil && s.UpdateProgress.UpdateEndedAt == nil,
		BreachedSince: observed.BreachedSince(s.Conditions, s.MinAvailableBreachedSince),
		Delay:         delay,
		Cause:         lifecycle.MemberCauses(replicas),
	}, now)
}

// setBreach sets the condition MinAvailableBreached, and in since the time from which it is True.
func setBreach(conditions *[]metav1.Condition, since **metav1.Time, b lifecycle.Breach, generation int64, now metav1.Time) {
	if b.Undecided {
		return
	}
	setConditions(conditions, generation, now, metav1.Condition{
		Type: v1alpha1.ConditionMinAvailableBreached, Status: metav1.ConditionStatus(b.Status), Reason: string(b.Reason), Message: b.Message})
	*since = optionalTime(b.Since)
}

// optionalTime converts a time for a status; zero becomes nil.
func optionalTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// earliest returns the earlier of two times; zero means not set.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
