package children

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// Ours selects what was made for PodCliqueSets.
func Ours() labels.Selector {
	return labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue})
}

// Unrequired returns sources of news of kinds that some clusters do not let us see. A controller starts without them, and
// learns of changes as soon as it may. They have a cache of their own, because the manager's is not ready before all of
// it is; what they tell of is read by KeepUncached.
func Unrequired(mgr ctrl.Manager, news handler.EventHandler, kinds ...schema.GroupVersionKind) ([]source.Source, error) {
	apart, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultLabelSelector: Ours(), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	if err := mgr.Add(apart); err != nil {
		return nil, fmt.Errorf("adding a cache: %w", err)
	}
	var sources []source.Source
	for _, kind := range kinds {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		sources = append(sources, unawaited{source.Kind[client.Object](apart, object, news)})
	}
	return sources, nil
}

// unawaited hides that a source can be waited for.
type unawaited struct{ source.Source }
