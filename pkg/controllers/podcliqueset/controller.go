// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/workload"
)

// Reconciler reconciles PodCliqueSets: it creates, updates and deletes the objects that they own.
type Reconciler struct {
	client    client.Client // reads from the cache
	live      client.Reader // reads from the API server
	children  *children.Client
	clock     clock.PassiveClock
	options   children.Options
	recorder  events.EventRecorder // nil before SetupWithManager
	unwritten children.FactTimes   // statuses that differ from the written ones, by UID
	stories   children.PassMemory[workload.SetStory]
	trials    children.PassMemory[trial]
	replacing *metrics.Sum
	stops     children.PassMemory[string] // the latest reason and generation with which a stop of an update was reported
}

// New returns a Reconciler. c reads from the cache, live from the API server.
func New(c client.Client, live client.Reader, o children.Options) *Reconciler {
	return &Reconciler{client: c, live: live, children: o.NewClient(c, live), clock: o.Clock, options: o,
		replacing: metrics.ReplacementsUnderWay(v1alpha1.KindPodCliqueSet)}
}

// SetupWithManager registers the controller. The cache finds children by owner (children.Index).
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.recorder = mgr.GetEventRecorder("muster-controller")
	owned := children.ChangeHandler{Map: children.Owner(v1alpha1.KindPodCliqueSet), Urgency: children.SpecChanged, DelayCreate: true}.Handler()
	access, err := children.OptionalSources(mgr, owned, rbacv1.SchemeGroupVersion.WithKind("Role"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	if err != nil {
		return err
	}
	topologies, err := children.ServedSources(mgr, handler.EnqueueRequestsFromMapFunc(r.constrainedSets),
		v1alpha1.SchemeGroupVersion.WithKind("ClusterTopologyBinding"), topologyv1alpha1.SchemeGroupVersion.WithKind("Topology"))
	if err != nil {
		return err
	}
	b := r.children.WatchClasses(ctrl.NewControllerManagedBy(mgr), &v1alpha1.PodCliqueSetList{})
	for _, source := range append(access, topologies...) {
		b = b.WatchesRawSource(source)
	}
	return b.
		Named("podcliqueset").
		For(&v1alpha1.PodCliqueSet{}, builder.WithPredicates(children.SpecChangedPredicate())).
		Watches(&v1alpha1.PodCliqueSet{}, children.OwnStatusHandler()).
		Watches(&v1alpha1.PodClique{}, children.ChangeHandler{Map: setOfClique, Urgency: cliqueUrgency, DelayCreate: true}.Handler()).
		Watches(&v1alpha1.PodCliqueScalingGroup{}, children.ChangeHandler{
			Map: children.Owner(v1alpha1.KindPodCliqueSet), Urgency: children.SpecOrStatusChanged, DelayCreate: true}.Handler()).
		Watches(&corev1.Pod{}, handler.Funcs{UpdateFunc: r.enqueueForPodPhase, DeleteFunc: r.enqueueForDeletedPod}).
		Watches(&corev1.Node{}, children.ChangeHandler{
			Map: r.children.TerminatingOn(setOfPod), Urgency: children.ReachabilityChanged}.Handler()).
		Watches(&v2alpha2.PodGroup{}, children.ChangeHandler{
			Map: children.Owner(v1alpha1.KindPodCliqueSet), Urgency: podGroupUrgency, DelayCreate: true}.Handler()).
		Watches(&appsv1.ControllerRevision{}, handler.Funcs{DeleteFunc: enqueueForDeletedRevision}).
		Watches(&corev1.Service{}, owned).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, owned).
		WithOptions(children.ControllerOptions(8)).
		Complete(r.children.Awake(r))
}

// enqueueForPodPhase enqueues the set of a pod that has begun to run, which may be long before it is ready, or that
// has ended in a Training workload, because the set's phase depends on it. The first running pod of a set changes the
// phase, which must be in the status within 1 s. It also enqueues the set of a pod that is deleted on a node that does
// not respond: a replica that is replaced waits for the end of its grace period.
func (r *Reconciler) enqueueForPodPhase(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	was, is := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
	name := is.Labels[v1alpha1.LabelPartOf]
	begins := was.Status.Phase != corev1.PodRunning && is.Status.Phase == corev1.PodRunning
	ends := slices.Contains(was.Finalizers, v1alpha1.FinalizerPodTracking) && !workload.HasEnded(was) && workload.HasEnded(is)
	if name == "" || !begins && !ends && !r.children.EndsUnreachable(ctx, was, is) {
		return
	}
	key := types.NamespacedName{Namespace: is.Namespace, Name: name}
	set, delay := &v1alpha1.PodCliqueSet{}, children.SyncBatchPeriod
	if err := r.client.Get(ctx, key, set, client.UnsafeDisableDeepCopy); err == nil && (set.Status.Phase != v1alpha1.PodCliqueSetPhaseRunning || workload.FailedReason(set) != "") {
		delay = children.PromptBatchPeriod
	}
	q.AddAfter(reconcile.Request{NamespacedName: key}, delay)
}

// enqueueForDeletedPod enqueues the set of a pod that is gone: the PodCliques of a replica that is replaced wait for
// it, and so does the phase of a workload that has failed, which is not final before its last pod is gone.
func (r *Reconciler) enqueueForDeletedPod(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, key := range setOfPod(ctx, e.Object) {
		set, delay := &v1alpha1.PodCliqueSet{}, children.SyncBatchPeriod
		if err := r.client.Get(ctx, key, set, client.UnsafeDisableDeepCopy); err == nil && workload.FailedReason(set) != "" {
			delay = children.PromptBatchPeriod
		}
		q.AddAfter(reconcile.Request{NamespacedName: key}, delay)
	}
}

// enqueueForDeletedRevision enqueues the set of a deleted revision: the current revision is stored again.
func enqueueForDeletedRevision(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, key := range children.Owner(v1alpha1.KindPodCliqueSet)(ctx, e.Object) {
		q.AddAfter(reconcile.Request{NamespacedName: key}, children.SyncBatchPeriod)
	}
}

// setOfPod returns the set in the pod's label.
func setOfPod(_ context.Context, pod client.Object) []types.NamespacedName {
	if set := pod.GetLabels()[v1alpha1.LabelPartOf]; set != "" {
		return []types.NamespacedName{{Namespace: pod.GetNamespace(), Name: set}}
	}
	return nil
}

// setOfClique returns the set that a PodClique belongs to: its owner, or the owner of its scaling group, which is
// named in a label. A wrong label only causes an unnecessary pass for another set.
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

// podGroupUrgency returns the urgency of an update of a PodGroup, of whose status the set tells what was preempted, and
// why the minimum is not bound.
func podGroupUrgency(before, after client.Object) children.Urgency {
	was, is := before.(*v2alpha2.PodGroup), after.(*v2alpha2.PodGroup)
	switch urgency := children.SpecChanged(was, is); {
	case urgency != children.Never:
		return urgency
	case workload.PreemptionOf(was) != workload.PreemptionOf(is):
		return children.Prompt
	case workload.UnboundCause(was) != workload.UnboundCause(is):
		return children.Soon
	}
	return children.Never
}

// cliqueUrgency returns the urgency of an update of a PodClique. A changed minimum changes the PodGroup, which scaling
// in waits for. The set learns the counts of a scaling group's member from the group, but not its failures, and not
// its state in a Training workload, which the set restarts and finishes.
func cliqueUrgency(before, after client.Object) children.Urgency {
	was, is := before.(*v1alpha1.PodClique), after.(*v1alpha1.PodClique)
	if workload.Minimum(was).Enforced() != workload.Minimum(is).Enforced() {
		return children.Urgent
	}
	if owner := metav1.GetControllerOfNoCopy(is); owner != nil && owner.Kind == v1alpha1.KindPodCliqueScalingGroup && !workload.IsTraining(is) &&
		workload.TroubleOf(was.Status.Conditions) == workload.TroubleOf(is.Status.Conditions) {
		return children.SpecChanged(was, is)
	}
	return children.SpecOrStatusChanged(was, is)
}
