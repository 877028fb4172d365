// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/observed"
)

// settleTime is the delay between a change of availability and its event. A set may go through several states in a
// short time, and the event describes only the last of them.
const settleTime = 2 * time.Second

// story is the state of a set that the latest events about its availability described.
type story struct {
	reported desired.SetOutline
	at       time.Time // when the events about changes since then are due; zero: no change
}

// tell emits the events about the availability of a set that are due, and returns the time until the next ones are
// due, 0: there are none. before and after are the set before and after this pass. An update has events of its own:
// pods that it deletes are reported here only if they are not replaced in time.
func (r *Reconciler) tell(before, after *v1alpha1.PodCliqueSet, now time.Time) time.Duration {
	t := r.stories.Of(before, func() story { return story{reported: desired.OutlineOf(before)} })
	if observed.SetProgress(after).Open() {
		t.at = time.Time{}
		return 0
	}
	if after.Status.Phase == v1alpha1.PodCliqueSetPhaseSucceeded || after.Status.Phase == v1alpha1.PodCliqueSetPhaseFailed {
		return 0
	}
	due, reported := desired.SetEvents(t.reported, desired.OutlineOf(after), after.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining)
	if len(due) == 0 {
		if t.at.IsZero() {
			t.reported = reported
			return 0
		}
	} else if t.at.IsZero() {
		t.at = now.Add(settleTime)
	}
	if wait := t.at.Sub(now); wait > 0 {
		return wait
	}
	for _, e := range due {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(after, nil, kind, e.Reason, v1alpha1.ActionWatchMinimum, "%s", message.Truncate(e.Note, message.MaxCondition))
	}
	t.reported, t.at = reported, time.Time{}
	return 0
}
