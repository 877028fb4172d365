package children

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the cache's indexes.
const (
	// byOwner finds objects by the UID of their controlling owner.
	byOwner = "controller.uid"
	// byFormerOwner finds objects by formerOwner of their controlling owner, whatever its UID: what an owner that is gone
	// has left behind.
	byFormerOwner = "controller.name"
)

// Index makes the cache find objects of these kinds by their controlling owner.
func Index(ctx context.Context, indexer client.FieldIndexer, kinds ...client.Object) error {
	for _, kind := range kinds {
		if err := indexer.IndexField(ctx, kind, byOwner, func(o client.Object) []string {
			if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
				return []string{string(ref.UID)}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("indexing %T by owner: %w", kind, err)
		}
		if err := indexer.IndexField(ctx, kind, byFormerOwner, func(o client.Object) []string {
			if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
				return []string{formerOwner(ref.APIVersion, ref.Kind, ref.Name)}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("indexing %T by the owner's name: %w", kind, err)
		}
	}
	return nil
}

// formerOwner is a key of the index byFormerOwner.
func formerOwner(apiVersion, kind, name string) string { return apiVersion + "/" + kind + "/" + name }

// Of fills list with the cached objects whose controlling owner is owner, those being deleted included. They are the
// cache's own: read-only.
func Of(ctx context.Context, reader client.Reader, owner client.Object, list client.ObjectList) error {
	if err := reader.List(ctx, list, client.InNamespace(owner.GetNamespace()),
		client.MatchingFields{byOwner: string(owner.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing %T of %s: %w", list, owner.GetName(), err)
	}
	return nil
}

// objects returns the objects of a list.
func objects(list client.ObjectList) []client.Object {
	var items []client.Object
	_ = meta.EachListItem(list, func(o runtime.Object) error { // the function returns no error, and the list has items
		items = append(items, o.(client.Object))
		return nil
	})
	return items
}
