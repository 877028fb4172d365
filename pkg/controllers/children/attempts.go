// SPDX-License-Identifier: Apache-2.0

package children

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/workload"
)

// ReportReplaced emits an event for each replica of owner whose attempt was raised, and counts these replicas and
// those that have become available again. level is the kind of owner, v1alpha1.KindPodCliqueSet or
// v1alpha1.KindPodCliqueScalingGroup; before and after are the attempts in its status. For a restart the caller emits
// the event.
func ReportReplaced(recorder events.EventRecorder, owner client.Object, level string, before, after []v1alpha1.ReplicaAttempt) {
	for _, a := range after {
		if a.Attempt != workload.ReplicaAttempt(before, int(a.Index)) {
			metrics.Replaced(level, a.Reason)
			emitReplaced(recorder, owner, a)
			continue
		}
		for _, b := range before {
			if b.Index == a.Index && b.AvailableAt == nil && a.AvailableAt != nil {
				metrics.AvailableAgain(level, a.Reason, a.AvailableAt.Sub(a.StartedAt.Time))
			}
		}
	}
}

func emitReplaced(recorder events.EventRecorder, owner client.Object, a v1alpha1.ReplicaAttempt) {
	switch a.Reason {
	case v1alpha1.ReasonPodCliquesDeleted:
		recorder.Eventf(owner, nil, corev1.EventTypeNormal, v1alpha1.EventReplicaReplaced, v1alpha1.ActionReplaceReplica,
			"Replacing replica %d (attempt %d): %s", a.Index, a.Attempt, a.Message)
	case v1alpha1.ReasonUpdate:
		recorder.Eventf(owner, nil, corev1.EventTypeNormal, v1alpha1.EventReplicaUpdating, v1alpha1.ActionUpdate,
			"Replacing replica %d (attempt %d): %s", a.Index, a.Attempt, a.Message)
	case v1alpha1.ReasonTermination:
		recorder.Eventf(owner, nil, corev1.EventTypeWarning, v1alpha1.EventReplicaTerminated, v1alpha1.ActionReplaceReplica,
			"Terminated replica %d (attempt %d): %s", a.Index, a.Attempt, a.Message)
	}
}
