package children

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/naming"
)

// byPodGroup is the cache's index of objects by the PodGroup that lists them.
const byPodGroup = "podgroup"

// IndexByPodGroup makes the cache find objects of these kinds by the PodGroup that lists them.
func IndexByPodGroup(ctx context.Context, indexer client.FieldIndexer, kinds ...client.Object) error {
	for _, kind := range kinds {
		if err := indexer.IndexField(ctx, kind, byPodGroup, func(o client.Object) []string {
			if name := podGroupName(o.GetLabels()); name != "" {
				return []string{name}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("indexing %T by PodGroup: %w", kind, err)
		}
	}
	return nil
}

// InPodGroup returns, as News.Concerns wants it, what the PodGroup of the news lists, of the kind of list.
func (m Maker) InPodGroup(list client.ObjectList) func(context.Context, client.Object) []types.NamespacedName {
	return func(ctx context.Context, group client.Object) []types.NamespacedName {
		found := list.DeepCopyObject().(client.ObjectList)
		if err := m.Client.List(ctx, found, client.InNamespace(group.GetNamespace()),
			client.MatchingFields{byPodGroup: group.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil // the cache has the index, or the manager would not have started
		}
		return keys(found)
	}
}

// OwnedBy returns, as News.Concerns wants it, what the object of the news owns, of the kind of list.
func (m Maker) OwnedBy(list client.ObjectList) func(context.Context, client.Object) []types.NamespacedName {
	return func(ctx context.Context, owner client.Object) []types.NamespacedName {
		found := list.DeepCopyObject().(client.ObjectList)
		if err := Of(ctx, m.Client, owner, found); err != nil {
			return nil // see InPodGroup
		}
		return keys(found)
	}
}

func keys(list client.ObjectList) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, object := range objects(list) {
		keys = append(keys, client.ObjectKeyFromObject(object))
	}
	return keys
}

// PodGroup returns the PodGroup that lists a PodClique or a scaling group, nil if it does not exist. Read-only.
func (m Maker) PodGroup(ctx context.Context, object client.Object) (*v2alpha2.PodGroup, error) {
	return podGroupOf(ctx, m.Client, object)
}

// NewestPodGroup is PodGroup past the cache. It is asked before pods are deleted that a minimum in it may need.
func (m Maker) NewestPodGroup(ctx context.Context, object client.Object) (*v2alpha2.PodGroup, error) {
	return podGroupOf(ctx, m.Live, object)
}

func podGroupOf(ctx context.Context, reader client.Reader, object client.Object) (*v2alpha2.PodGroup, error) {
	name := podGroupName(object.GetLabels())
	if name == "" {
		return nil, nil
	}
	group := &v2alpha2.PodGroup{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, group, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PodGroup %s: %w", name, err)
	}
	return group, nil
}

// podGroupName returns the name of the PodGroup that an object with these labels is of, "" if they do not say.
func podGroupName(labels map[string]string) string {
	set, i := labels[v1alpha1.LabelPartOf], naming.Index(labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
	if set == "" || i < 0 {
		return ""
	}
	return naming.PodGroup(set, i)
}
