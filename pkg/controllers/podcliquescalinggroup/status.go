package podcliquescalinggroup

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/observed"
)

// writeStatus writes the status of a group if it has changed, emits events about new failures, and returns the group with
// that status.
func (r *Reconciler) writeStatus(ctx context.Context, group *v1alpha1.PodCliqueScalingGroup, facts desired.GroupFacts, now time.Time) (*v1alpha1.PodCliqueScalingGroup, error) {
	recorded := group.DeepCopy()
	recorded.Status = desired.ScalingGroupStatus(group, facts, metav1.NewTime(now))
	if err := r.children.WriteStatus(ctx, group, recorded); err != nil {
		return nil, err
	}
	for _, a := range recorded.Status.ReplicaAttempts {
		if a.Attempt > observed.GroupAttempt(group, int(a.Index)).Group {
			r.recorder.Eventf(group, nil, corev1.EventTypeNormal, v1alpha1.EventReplicaReplaced, v1alpha1.ActionReplaceReplica,
				"Replacing replica %d (attempt %d): all its PodCliques were deleted", a.Index, a.Attempt)
		}
	}
	for _, c := range children.NewFailures(group.Status.Conditions, recorded.Status.Conditions) {
		r.recorder.Eventf(group, nil, corev1.EventTypeWarning, c.Reason, v1alpha1.ActionCreatePodClique, "%s", c.Message)
	}
	return recorded, nil
}
