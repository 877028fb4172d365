package children

import (
	"context"
	"fmt"
	"reflect"

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
	return nil
}
