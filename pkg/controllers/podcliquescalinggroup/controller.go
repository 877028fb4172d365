// SPDX-License-Identifier: Apache-2.0

package podcliquescalinggroup

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/workload"
)

// Reconciler reconciles PodCliqueScalingGroups: it creates and deletes their PodCliques.
type Reconciler struct {
	client    client.Client // reads from the cache
	children  *children.Client
	clock     clock.PassiveClock
	options   children.Options
	recorder  events.EventRecorder // nil before SetupWithManager
	replacing *metrics.Sum
	mixed     children.PassMemory[int64] // the number of the revision of which a mixed replica was reported last
}

// New returns a Reconciler. c reads from the cache, live from the API server.
func New(c client.Client, live client.Reader, o children.Options) *Reconciler {
	return &Reconciler{client: c, children: o.NewClient(c, live), clock: o.Clock, options: o,
		replacing: metrics.ReplacementsUnderWay(v1alpha1.KindPodCliqueScalingGroup)}
}

// SetupWithManager registers the controller. The cache finds PodCliques and scaling groups by owner (children.Index)
// and scaling groups by PodGroup (children.IndexAll).
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.recorder = mgr.GetEventRecorder("muster-controller")
	return r.children.WatchClasses(ctrl.NewControllerManagedBy(mgr), &v1alpha1.PodCliqueScalingGroupList{}).
		Named("podcliquescalinggroup").
		For(&v1alpha1.PodCliqueScalingGroup{}, builder.WithPredicates(children.SpecChangedPredicate())).
		Watches(&v1alpha1.PodCliqueScalingGroup{}, children.OwnStatusHandler()).
		Watches(&v1alpha1.PodClique{}, children.ChangeHandler{
			Map: children.Owner(v1alpha1.KindPodCliqueScalingGroup), Urgency: children.SpecOrStatusChanged, DelayCreate: true}.Handler()).
		Watches(&v1alpha1.PodCliqueSet{}, children.ChangeHandler{
			Map: r.children.OwnedBy(&v1alpha1.PodCliqueScalingGroupList{}), Urgency: setUrgency}.Handler()).
		Watches(&corev1.Pod{}, handler.Funcs{UpdateFunc: r.enqueueForUnreachablePod, DeleteFunc: r.enqueueForDeletedPod}).
		Watches(&corev1.Node{}, children.ChangeHandler{
			Map: r.children.TerminatingOn(r.groupsThatWaitFor), Urgency: children.ReachabilityChanged}.Handler()).
		Watches(&v2alpha2.PodGroup{}, children.ChangeHandler{
			Map: r.children.InPodGroup(&v1alpha1.PodCliqueScalingGroupList{}), Urgency: children.SpecChanged}.Handler()).
		WithOptions(children.ControllerOptions(16)).
		Complete(r.children.Awake(r))
}

// setUrgency returns the urgency of an update of the PodCliqueSet. It is urgent that a Training workload has failed,
// or a replica has succeeded, because no more objects may be created for them.
func setUrgency(before, after client.Object) children.Urgency {
	was, is := before.(*v1alpha1.PodCliqueSet), after.(*v1alpha1.PodCliqueSet)
	if workload.FailedReason(was) != workload.FailedReason(is) || was.Status.SucceededIndices != is.Status.SucceededIndices {
		return children.Urgent
	}
	if children.RevisionChanged(before, after) != children.Never {
		return children.Soon
	}
	return children.SpecChanged(before, after)
}

// enqueueForDeletedPod enqueues the scaling groups whose PodCliques may wait for a pod that is gone.
func (r *Reconciler) enqueueForDeletedPod(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, key := range r.groupsThatWaitFor(ctx, e.Object) {
		q.AddAfter(reconcile.Request{NamespacedName: key}, children.SyncBatchPeriod)
	}
}

// enqueueForUnreachablePod enqueues the scaling groups that wait for the end of the grace period of a pod whose node
// does not respond.
func (r *Reconciler) enqueueForUnreachablePod(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if !r.children.EndsUnreachable(ctx, e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)) {
		return
	}
	for _, key := range r.groupsThatWaitFor(ctx, e.ObjectNew) {
		q.AddAfter(reconcile.Request{NamespacedName: key}, children.SyncBatchPeriod)
	}
}

// groupsThatWaitFor returns the scaling groups whose PodCliques may wait until the pod is gone: the one in its label,
// and if the pod belongs to an earlier attempt of the set replica, or may have been left by a deleted set of the same
// name, all groups of that replica.
func (r *Reconciler) groupsThatWaitFor(ctx context.Context, pod client.Object) []types.NamespacedName {
	groups := &v1alpha1.PodCliqueScalingGroupList{}
	if err := r.children.ListSetReplica(ctx, pod, groups); err != nil {
		return nil // cannot happen: the manager does not start without the index
	}
	var keys []types.NamespacedName
	for i := range groups.Items {
		g := &groups.Items[i]
		if g.Name == pod.GetLabels()[v1alpha1.LabelPodCliqueScalingGroup] || workload.Attempt(pod).Set < workload.Attempt(g).Set ||
			workload.PodCliqueSetUID(pod) != workload.PodCliqueSetUID(g) {
			keys = append(keys, client.ObjectKeyFromObject(g))
		}
	}
	return keys
}
