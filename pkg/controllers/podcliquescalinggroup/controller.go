package podcliquescalinggroup

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
)

// Reconciler keeps the PodCliques of PodCliqueScalingGroups.
type Reconciler struct {
	children.Maker
	// SchedulerName is given to pods whose template names no scheduler.
	SchedulerName string

	recorder events.EventRecorder
}

// SetupWithManager registers the controller. The cache finds PodCliques and scaling groups by owner (children.Index) and
// scaling groups by PodGroup (children.IndexByPodGroup).
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.recorder = mgr.GetEventRecorder("muster-controller")
	return ctrl.NewControllerManagedBy(mgr).
		Named("podcliquescalinggroup").
		For(&v1alpha1.PodCliqueScalingGroup{}, builder.WithPredicates(children.WantedOnly())).
		Watches(&v1alpha1.PodClique{}, children.News{
			Concerns: children.Owner(v1alpha1.KindPodCliqueScalingGroup), Of: children.WantedOrCounts, Calm: true}.Handler()).
		Watches(&v1alpha1.PodCliqueSet{}, children.News{
			Concerns: r.OwnedBy(&v1alpha1.PodCliqueScalingGroupList{}), Of: children.Wanted}.Handler()).
		Watches(&v2alpha2.PodGroup{}, children.News{
			Concerns: r.InPodGroup(&v1alpha1.PodCliqueScalingGroupList{}), Of: children.Wanted}.Handler()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 16, // they wait for the API server most of the time
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				children.FirstRetry, children.LastRetry),
		}).
		Complete(r)
}
