// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// LatestRevision returns the latest stored revision of a set in the cache; nil: the cache has none that can be read.
func (c *Client) LatestRevision(ctx context.Context, set *v1alpha1.PodCliqueSet) (*workload.Revision, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := c.ListOwned(ctx, set, list); err != nil {
		return nil, err
	}
	stored := Pointers(list.Items)
	slices.SortFunc(stored, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(b.Revision, a.Revision) })
	for i := range stored {
		if revisions := c.readRevisions(ctx, stored[i:i+1]); len(revisions) == 1 {
			return revisions[0], nil
		}
	}
	return nil, nil
}

// LiveRevisions returns the stored revisions of a set, read from the API server, the latest first, and those that a
// deleted set of its name has left without an owner. Revisions that cannot be read are left out and logged. The caller
// reads them before it stores a new one. The revision that the set follows is also read by its name: if it has lost its
// labels, its number would otherwise be given to another revision.
func (c *Client) LiveRevisions(ctx context.Context, set *v1alpha1.PodCliqueSet) (revisions, orphans []*workload.Revision, err error) {
	list := &appsv1.ControllerRevisionList{}
	if err := c.live.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabels(naming.SelectSetObjects(set.Name))); err != nil {
		return nil, nil, fmt.Errorf("listing the revisions of PodCliqueSet %s: %w", set.Name, err)
	}
	var own, left []*appsv1.ControllerRevision
	for i := range list.Items {
		if r := &list.Items[i]; metav1.IsControlledBy(r, set) {
			own = append(own, r)
		} else if workload.IsOrphanOf(set, r) {
			left = append(left, r)
		}
	}
	present := &appsv1.ControllerRevision{}
	if name := presentName(set); name != "" && !slices.ContainsFunc(own, func(r *appsv1.ControllerRevision) bool { return r.Name == name }) {
		err := c.live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, present)
		if client.IgnoreNotFound(err) != nil {
			return nil, nil, fmt.Errorf("reading the revision that PodCliqueSet %s follows: %w", set.Name, err)
		}
		if err == nil && metav1.IsControlledBy(present, set) {
			own = append(own, present)
		}
	}
	return c.readRevisions(ctx, own), c.readRevisions(ctx, left), nil
}

// presentName returns the name of the ControllerRevision that a set follows according to its status, "" if it follows
// none yet.
func presentName(set *v1alpha1.PodCliqueSet) string {
	if set.Status.CurrentGenerationHash == nil {
		return ""
	}
	return naming.RevisionName(set.Name, *set.Status.CurrentGenerationHash)
}

// readRevisions returns the revisions in objects that are not being deleted, the latest first. A revision that cannot
// be read is logged once.
func (c *Client) readRevisions(ctx context.Context, stored []*appsv1.ControllerRevision) []*workload.Revision {
	var revisions []*workload.Revision
	for _, s := range stored {
		if s.DeletionTimestamp != nil {
			continue
		}
		r, err := workload.ReadRevision(s)
		if err != nil {
			if _, logged := c.unreadable.Get(s.UID); !logged {
				c.unreadable.Add(s.UID, true)
				klog.FromContext(ctx).Error(err, "A revision cannot be read and is not used; delete it if nothing else needs it", "controllerRevision", klog.KObj(s))
			}
			continue
		}
		revisions = append(revisions, r)
	}
	slices.SortFunc(revisions, func(a, b *workload.Revision) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), cmp.Compare(a.Hash, b.Hash))
	})
	return revisions
}

// Revision returns the revision of a set with the given hash, from the cache, or if it is not there yet, from the API
// server. nil: it does not exist.
func (c *Client) Revision(ctx context.Context, set *v1alpha1.PodCliqueSet, hash string) (*workload.Revision, error) {
	for _, reader := range []client.Reader{c.client, c.live} {
		stored := &appsv1.ControllerRevision{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: naming.RevisionName(set.Name, hash)}, stored)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the revision of PodCliqueSet %s: %w", set.Name, err)
		}
		if !metav1.IsControlledBy(stored, set) {
			continue
		}
		return workload.ReadRevision(stored)
	}
	return nil, nil
}

// RevisionPeriod is how often an object whose new units wait for the newest revision looks at its set.
const RevisionPeriod = time.Second

// ReadHold returns the revision of a set with the given hash as the previous one of objects that an update has not
// reached. It is empty if there is no such revision, or hash is "".
func (c *Client) ReadHold(ctx context.Context, set *v1alpha1.PodCliqueSet, hash, schedulerName string) (*workload.Hold, error) {
	if hash == "" {
		return &workload.Hold{}, nil
	}
	revision, err := c.Revision(ctx, set, hash)
	if err != nil {
		return nil, err
	}
	return workload.NewHold(set, revision, schedulerName), nil
}

// StoreRevision creates the ControllerRevision of a revision, or sets the number of the existing one. An existing one
// that cannot be read is replaced.
func (c *Client) StoreRevision(ctx context.Context, set *v1alpha1.PodCliqueSet, r *workload.Revision) error {
	want, err := r.Stored(set)
	if err != nil {
		return err
	}
	existing := &appsv1.ControllerRevision{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(want), existing); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ControllerRevision %s: %w", want.Name, err)
	} else if err != nil || !metav1.IsControlledBy(existing, set) {
		existing = nil // Create handles an object of another owner
	} else if _, err := workload.ReadRevision(existing); err != nil { // its data is immutable
		if err := c.Delete(ctx, existing); err != nil {
			return fmt.Errorf("deleting a revision that cannot be read: %w", err)
		}
		existing = nil
	}
	return CreateOrUpdate(ctx, c, existing, want)
}

// DeleteRevision deletes the ControllerRevision of a revision.
func (c *Client) DeleteRevision(ctx context.Context, set *v1alpha1.PodCliqueSet, r *workload.Revision) error {
	stored := &appsv1.ControllerRevision{}
	name := client.ObjectKey{Namespace: set.Namespace, Name: naming.RevisionName(set.Name, r.Hash)}
	if err := c.client.Get(ctx, name, stored); err != nil {
		return client.IgnoreNotFound(err)
	}
	return c.Delete(ctx, stored)
}
