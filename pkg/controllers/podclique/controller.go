// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// Reconciler reconciles PodCliques: it creates and deletes their pods.
type Reconciler struct {
	client    client.Client // reads from the cache
	live      client.Reader // reads from the API server
	children  *children.Client
	clock     clock.PassiveClock
	options   children.Options
	recorder  events.EventRecorder // nil before SetupWithManager
	unwritten children.FactTimes   // statuses that differ from the written ones, by UID
	// latest contains what this process knows about the latest pods that it created for each PodClique.
	latest children.PassMemory[latestPods]
	// sightings contains when this process saw the states of the pods of each PodClique.
	sightings children.PassMemory[lifecycle.Sightings]
	silent    *metrics.Sum // 1: the scheduler of the PodClique does not answer
}

// latestPods tells whether pods that the cache does not show yet may have other names than those to be created.
type latestPods struct {
	// template is the hash of their template; nil: this process created none. This is safe, because the cache of a new
	// process begins with a list of all pods.
	template *string
	// reused: one of them was created at the index of a lost pod.
	reused bool
}

// New returns a Reconciler. c reads from the cache, live from the API server.
func New(c client.Client, live client.Reader, o children.Options) *Reconciler {
	return &Reconciler{client: c, live: live, children: o.NewClient(c, live), clock: o.Clock, options: o, silent: metrics.SilentSchedulers()}
}

// byName is the cache's index of pods by the PodClique in their label, whatever owns them, and by the PodClique that
// owns them.
const byName = "podclique.name"

// indexPods adds the index by which the cache finds pods by the name of their PodClique.
func indexPods(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Pod{}, byName, func(o client.Object) []string {
		var names []string
		if clique := o.GetLabels()[v1alpha1.LabelPodClique]; clique != "" {
			names = append(names, clique)
		}
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil && owner.Kind == v1alpha1.KindPodClique && !slices.Contains(names, owner.Name) {
			names = append(names, owner.Name)
		}
		return names
	})
}

// SetupWithManager registers the controller. The cache finds pods by owner (children.Index) and
// PodCliques by PodGroup (children.IndexAll).
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.recorder = mgr.GetEventRecorder("muster-controller")
	ctx := context.Background() // for indexing, which does not block
	if err := indexPods(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return r.children.WatchClasses(ctrl.NewControllerManagedBy(mgr), &v1alpha1.PodCliqueList{}).
		Named("podclique").
		For(&v1alpha1.PodClique{}, builder.WithPredicates(children.SpecChangedPredicate())).
		Watches(&v1alpha1.PodClique{}, children.OwnStatusHandler()).
		Watches(&corev1.Pod{}, children.ChangeHandler{
			Map: cliqueOf, Urgency: podUrgency, DelayCreate: true}.Handler()).
		Watches(&v2alpha2.PodGroup{}, children.ChangeHandler{
			Map: r.children.InPodGroup(&v1alpha1.PodCliqueList{}), Urgency: children.SpecChanged}.Handler()).
		Watches(&corev1.Node{}, children.ChangeHandler{
			Map: r.children.PodsOn(cliqueOf), Urgency: children.ReachabilityChanged}.Handler()).
		Watches(&v1alpha1.PodCliqueSet{}, children.ChangeHandler{
			Map: r.cliquesOf, Urgency: children.RevisionChanged}.Handler()).
		WithOptions(children.ControllerOptions(32)).
		Complete(r.children.Awake(r))
}

// cliquesOf returns the PodCliques of a set: those that an update has not reached have no updated pods any more.
func (r *Reconciler) cliquesOf(ctx context.Context, set client.Object) []types.NamespacedName {
	list := &v1alpha1.PodCliqueList{}
	if err := r.client.List(ctx, list, client.InNamespace(set.GetNamespace()), client.MatchingLabels{v1alpha1.LabelPartOf: set.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the status follows with the next pass
	}
	names := make([]types.NamespacedName, len(list.Items))
	for i := range list.Items {
		names[i] = client.ObjectKeyFromObject(&list.Items[i])
	}
	return names
}

// cliqueOf returns the PodClique that owns a pod, or for a pod without an owner the one in its label.
func cliqueOf(ctx context.Context, o client.Object) []types.NamespacedName {
	if name := o.GetLabels()[v1alpha1.LabelPodClique]; name != "" && metav1.GetControllerOfNoCopy(o) == nil {
		return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: name}}
	}
	return children.Owner(v1alpha1.KindPodClique)(ctx, o)
}

// podUrgency returns the urgency of an update of a pod. The update is urgent if the pod ended or its labels were
// edited. Availability may depend on a pod that becomes ready or unready, or that is deleted; other updates affect
// counts only.
func podUrgency(before, after client.Object) children.Urgency {
	was, is := before.(*corev1.Pod), after.(*corev1.Pod)
	switch {
	case was.ResourceVersion == is.ResourceVersion:
		return children.Never
	case !workload.HasEnded(was) && is.Status.Phase == corev1.PodSucceeded && slices.Contains(is.Finalizers, v1alpha1.FinalizerPodTracking):
		return children.Prompt // no pod has to be replaced, and pods of a job end together
	case !workload.HasEnded(was) && workload.HasEnded(is), !maps.Equal(withoutTopology(was.Labels), withoutTopology(is.Labels)):
		return children.Urgent
	case workload.IsReady(was) != workload.IsReady(is), was.DeletionTimestamp == nil && is.DeletionTimestamp != nil:
		return children.Prompt
	default:
		return children.Soon
	}
}

// withoutTopology returns the labels without those that the API server copies from the node when the pod is bound.
// Otherwise a thousand bindings would cause as many passes.
func withoutTopology(labels map[string]string) map[string]string {
	kept := maps.Clone(labels)
	delete(kept, corev1.LabelTopologyZone)
	delete(kept, corev1.LabelTopologyRegion)
	return kept
}

// StripNode drops the fields of a node that the controller does not read.
func StripNode(o any) (any, error) {
	node, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	stripped := &corev1.Node{TypeMeta: node.TypeMeta, ObjectMeta: node.ObjectMeta}
	stripped.ManagedFields, stripped.Annotations, stripped.Labels = nil, nil, nil
	if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" {
		stripped.Labels = map[string]string{corev1.LabelTopologyZone: zone}
	}
	stripped.Spec.Taints = node.Spec.Taints
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			stripped.Status.Conditions = append(stripped.Status.Conditions, c)
		}
	}
	return stripped, nil
}
