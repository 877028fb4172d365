package podclique

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
)

// writeStatus writes the status of recorded if it differs from that of clique, and emits events about breaches
// of the minimum and new failures.
func (r *Reconciler) writeStatus(ctx context.Context, clique, recorded *v1alpha1.PodClique) error {
	if err := r.children.WriteStatus(ctx, clique, recorded); err != nil {
		return err
	}
	children.ReportBreach(r.recorder, clique, v1alpha1.KindPodClique, breachStatus(&clique.Status), breachStatus(&recorded.Status), r.clock.Now())
	for _, c := range children.NewFailures(clique.Status.Conditions, recorded.Status.Conditions) {
		r.recorder.Eventf(clique, nil, corev1.EventTypeWarning, c.Reason, v1alpha1.ActionCreatePod, "%s", c.Message)
	}
	return nil
}

func breachStatus(s *v1alpha1.PodCliqueStatus) children.BreachStatus {
	return children.BreachStatus{Conditions: s.Conditions, Since: s.MinAvailableBreachedSince, Deadline: s.TerminationDeadline}
}
