// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/workload"
)

// storyOf returns the story of a set. set is the set before this pass.
func (r *Reconciler) storyOf(set *v1alpha1.PodCliqueSet) *workload.SetStory {
	return r.stories.Of(set, func() workload.SetStory { return workload.NewSetStory(set) })
}

// reportAvailability emits the events about the availability of a set that are due, and returns the time until the next
// ones are due, 0: there are none. After events the next pass, which records them in the status, follows at once.
// before and after are the set before and after this pass.
func (r *Reconciler) reportAvailability(before, after *v1alpha1.PodCliqueSet, now time.Time) time.Duration {
	story := r.storyOf(before)
	if workload.IsReplacing(after) {
		story.Suspend()
		return 0
	}
	if after.Status.Phase == v1alpha1.PodCliqueSetPhaseSucceeded || after.Status.Phase == v1alpha1.PodCliqueSetPhaseFailed {
		return 0
	}
	due, wait := story.Observe(workload.OutlineOf(after), after.Spec.IsTraining(), now)
	for _, e := range due {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(after, nil, kind, e.Reason, v1alpha1.ActionWatchMinimum, "%s", message.Truncate(e.Note, message.MaxCondition))
	}
	if len(due) > 0 {
		return time.Millisecond
	}
	return wait
}
