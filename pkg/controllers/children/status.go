package children

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WriteStatus writes the status of object, which was before when it was read, if the two differ. The write fails if
// somebody was faster.
func (m Maker) WriteStatus(ctx context.Context, before, object client.Object) error {
	if equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := m.Client.Status().Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}
