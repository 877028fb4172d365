package children

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/observed"
)

// EmitReplaced emits an event for each replica of owner, a PodCliqueSet or PodCliqueScalingGroup, whose attempt was raised.
// before and after are the attempts in its status. A restart has an event of its caller's.
func EmitReplaced(recorder events.EventRecorder, owner client.Object, before, after []v1alpha1.ReplicaAttempt) {
	for _, a := range after {
		if a.Attempt <= observed.ReplicaAttempt(before, int(a.Index)) {
			continue
		}
		switch a.Reason {
		case v1alpha1.ReasonPodCliquesDeleted:
			recorder.Eventf(owner, nil, corev1.EventTypeNormal, v1alpha1.EventReplicaReplaced, v1alpha1.ActionReplaceReplica,
				"Replacing replica %d (attempt %d): %s", a.Index, a.Attempt, a.Message)
		case v1alpha1.ReasonTermination:
			recorder.Eventf(owner, nil, corev1.EventTypeWarning, v1alpha1.EventReplicaTerminated, v1alpha1.ActionReplaceReplica,
				"Terminated replica %d (attempt %d): %s", a.Index, a.Attempt, a.Message)
		}
	}
}
