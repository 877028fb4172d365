// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// readTimeout limits how long an admission request waits for a read that is not needed to admit it.
const readTimeout = time.Second

// PriorityClasses returns warnings about PriorityClasses that do not exist. They may be created later, so that this is
// not an error. The zero value returns no warnings. The webhooks read Topologies and ClusterTopologyBindings by its
// Reader, too; that of PodCliqueSets needs it.
type PriorityClasses struct{ Reader client.Reader }

// warnIfMissing returns a warning about the field if no PriorityClass has the given name, none if the name is "".
func (c PriorityClasses) warnIfMissing(ctx context.Context, field, name, until string) admission.Warnings {
	if c.Reader == nil || name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	class := &metav1.PartialObjectMetadata{}
	class.SetGroupVersionKind(schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"})
	if err := c.Reader.Get(ctx, client.ObjectKey{Name: name}, class); !apierrors.IsNotFound(err) {
		return nil // it exists, or could not be read
	}
	return admission.Warnings{fmt.Sprintf("%s: PriorityClass %q does not exist; %s", field, name, until)}
}
