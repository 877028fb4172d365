package podcliqueset

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/observed"
)

// Reconciler keeps what PodCliqueSets consist of.
type Reconciler struct {
	children.Maker
	// SchedulerName is given to pods whose template names no scheduler.
	SchedulerName string

	recorder events.EventRecorder
}

// SetupWithManager registers the controller. The cache finds children by owner (children.Index).
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.recorder = mgr.GetEventRecorder("muster-controller")
	owned := children.News{Concerns: children.Owner(v1alpha1.KindPodCliqueSet), Of: children.Wanted, Calm: true}.Handler()
	access, err := children.Unrequired(mgr, owned, rbacv1.SchemeGroupVersion.WithKind("Role"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr)
	for _, source := range access {
		b = b.WatchesRawSource(source)
	}
	return b.
		Named("podcliqueset").
		For(&v1alpha1.PodCliqueSet{}, builder.WithPredicates(children.WantedOnly())).
		Watches(&v1alpha1.PodClique{}, children.News{Concerns: setOfClique, Of: cliqueNews, Calm: true}.Handler()).
		Watches(&v1alpha1.PodCliqueScalingGroup{}, children.News{
			Concerns: children.Owner(v1alpha1.KindPodCliqueSet), Of: children.WantedOrCounts, Calm: true}.Handler()).
		Watches(&corev1.Pod{}, handler.Funcs{UpdateFunc: podRuns}).
		Watches(&v2alpha2.PodGroup{}, owned).
		Watches(&corev1.Service{}, owned).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, owned).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 8,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				children.FirstRetry, children.LastRetry),
		}).
		Complete(r)
}

// podRuns tells a set that a pod of it has begun to run, which may be long before it is ready: that is the set's phase.
func podRuns(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	was, is := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
	if set := is.Labels[v1alpha1.LabelPartOf]; set != "" && was.Status.Phase != corev1.PodRunning && is.Status.Phase == corev1.PodRunning {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: is.Namespace, Name: set}}, children.Settling)
	}
}

// setOfClique returns the set that a PodClique belongs to: its owner, or the owner of its scaling group, which the label
// names. A wrong label costs a look at a set that has nothing to do.
func setOfClique(_ context.Context, o client.Object) []types.NamespacedName {
	owner := metav1.GetControllerOfNoCopy(o)
	switch {
	case owner == nil:
		return nil
	case owner.Kind == v1alpha1.KindPodCliqueSet:
		return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: owner.Name}}
	case owner.Kind == v1alpha1.KindPodCliqueScalingGroup && o.GetLabels()[v1alpha1.LabelPartOf] != "":
		return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: o.GetLabels()[v1alpha1.LabelPartOf]}}
	}
	return nil
}

// cliqueNews: a changed minimum moves the PodGroup, on which scaling in waits. The numbers of a scaling group's member
// reach the set through the group, its trouble does not.
func cliqueNews(before, after client.Object) children.Urgency {
	was, is := before.(*v1alpha1.PodClique), after.(*v1alpha1.PodClique)
	if observed.Minimum(was).Enforced() != observed.Minimum(is).Enforced() {
		return children.Urgent
	}
	if owner := metav1.GetControllerOfNoCopy(is); owner != nil && owner.Kind == v1alpha1.KindPodCliqueScalingGroup &&
		observed.Trouble(was.Status.Conditions) == observed.Trouble(is.Status.Conditions) {
		return children.Wanted(was, is)
	}
	return children.WantedOrCounts(was, is)
}
