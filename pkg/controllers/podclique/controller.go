package podclique

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/observed"
)

// Reconciler keeps the pods of PodCliques.
type Reconciler struct {
	children.Maker
	// SchedulerName is given to pods whose spec names no scheduler.
	SchedulerName string
	// WaitImage is the image of the container that waits for cliques to be started before.
	WaitImage string

	recorder events.EventRecorder
	rush     rush
}

const (
	// byNode is the cache's index of pods by node.
	byNode = "spec.nodeName"
	// orphans is the cache's index of pods that belong to nobody, by the PodClique that their label names.
	orphans = "podclique.orphans"
)

// indexPods makes the cache find pods by node, and orphans.
func indexPods(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, byNode, func(o client.Object) []string {
		if node := o.(*corev1.Pod).Spec.NodeName; node != "" {
			return []string{node}
		}
		return nil
	}); err != nil {
		return err
	}
	return indexer.IndexField(ctx, &corev1.Pod{}, orphans, func(o client.Object) []string {
		if clique := o.GetLabels()[v1alpha1.LabelPodClique]; clique != "" && metav1.GetControllerOfNoCopy(o) == nil {
			return []string{clique}
		}
		return nil
	})
}

// SetupWithManager registers the controller. The cache finds pods by owner (children.Index) and
// PodCliques by PodGroup (children.IndexByPodGroup).
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.recorder = mgr.GetEventRecorder("muster-controller")
	ctx := context.Background() // for indexing, which ends at once
	if err := indexPods(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("podclique").
		For(&v1alpha1.PodClique{}, builder.WithPredicates(children.WantedOnly())).
		Watches(&corev1.Pod{}, children.News{
			Concerns: children.Owner(v1alpha1.KindPodClique), Of: r.podNews, Calm: true}.Handler()).
		Watches(&v2alpha2.PodGroup{}, children.News{Concerns: r.InPodGroup(&v1alpha1.PodCliqueList{}), Of: children.Wanted}.Handler()).
		Watches(&corev1.Node{}, children.News{Concerns: r.cliquesOfNode, Of: nodeNews}.Handler()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 32, // they wait for the API server most of the time
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				children.FirstRetry, children.LastRetry),
		}).
		Complete(r)
}

// podNews is the function of that name, and notes that pods start.
func (r *Reconciler) podNews(before, after client.Object) children.Urgency {
	if was, is := before.(*corev1.Pod), after.(*corev1.Pod); was.Status.Phase != is.Status.Phase && is.Status.Phase == corev1.PodRunning {
		r.rush.note(time.Now())
	}
	return podNews(before, after)
}

// podNews grades a change of a pod. A pod that ended or has lost its owner is looked at immediately; the rest is numbers.
func podNews(before, after client.Object) children.Urgency {
	was, is := before.(*corev1.Pod), after.(*corev1.Pod)
	switch {
	case was.ResourceVersion == is.ResourceVersion:
		return children.Never
	case !ended(was) && ended(is), !maps.Equal(withoutPlace(was.Labels), withoutPlace(is.Labels)):
		return children.Urgent
	default:
		return children.Soon
	}
}

// withoutPlace returns the labels but those that the API server copies from the node when the pod is bound: a thousand
// bindings would be as many looks.
func withoutPlace(labels map[string]string) map[string]string {
	kept := maps.Clone(labels)
	delete(kept, corev1.LabelTopologyZone)
	delete(kept, corev1.LabelTopologyRegion)
	return kept
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// nodeNews: a node that stops answering, or answers again.
func nodeNews(before, after client.Object) children.Urgency {
	if observed.UnreachableNode(before.(*corev1.Node)) == observed.UnreachableNode(after.(*corev1.Node)) {
		return children.Never
	}
	return children.Urgent
}

// cliquesOfNode returns the PodCliques with terminating pods on a node.
func (r *Reconciler) cliquesOfNode(ctx context.Context, o client.Object) []types.NamespacedName {
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.MatchingFields{byNode: o.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has the index, or the manager would not have started
	}
	var keys []types.NamespacedName
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil {
			keys = append(keys, children.Owner(v1alpha1.KindPodClique)(ctx, &pods.Items[i])...)
		}
	}
	return keys
}

// StripNode leaves of a node what the controller reads.
func StripNode(o any) (any, error) {
	node, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	stripped := &corev1.Node{TypeMeta: node.TypeMeta, ObjectMeta: node.ObjectMeta}
	stripped.ManagedFields, stripped.Annotations, stripped.Labels = nil, nil, nil
	stripped.Spec.Taints = node.Spec.Taints
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			stripped.Status.Conditions = append(stripped.Status.Conditions, c)
		}
	}
	return stripped, nil
}
