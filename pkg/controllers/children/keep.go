package children

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/desired"
)

// Keep makes an object that is wanted, or brings the one that is there (nil: none) to what is wanted. One that is being
// deleted is waited for: its going brings an event.
func Keep[T interface {
	desired.Object
	client.Object
}](ctx context.Context, m Maker, live, want T) error {
	name := want.GetObjectKind().GroupVersionKind().Kind + " " + want.GetName()
	if reflect.ValueOf(live).IsNil() {
		if err := m.Create(ctx, want); err != nil {
			return fmt.Errorf("creating %s: %w", name, err)
		}
		return nil
	}
	if live.GetDeletionTimestamp() != nil {
		return nil
	}
	updated, differs := desired.Updated(live, want)
	if !differs {
		return nil
	}
	if err := m.Client.Update(ctx, updated); err != nil {
		return fmt.Errorf("updating %s: %w", name, err)
	}
	m.logChange(ctx, "Changed an object", updated)
	return nil
}

// KeepUncached is Keep for what the cache does not have: it is read into live first.
func KeepUncached[T interface {
	desired.Object
	client.Object
}](ctx context.Context, m Maker, live, want T) error {
	err := m.Live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %s: %w", want.GetObjectKind().GroupVersionKind().Kind, want.GetName(), err)
	}
	if theirs, ours := metav1.GetControllerOfNoCopy(live), metav1.GetControllerOfNoCopy(want); apierrors.IsNotFound(err) ||
		theirs == nil || theirs.UID != ours.UID {
		var none T
		return Keep(ctx, m, none, want) // Create knows what to do about somebody else's
	}
	return Keep(ctx, m, live, want)
}
