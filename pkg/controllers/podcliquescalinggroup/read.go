// SPDX-License-Identifier: Apache-2.0

package podcliquescalinggroup

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// observation is what one pass knows about a scaling group.
type observation struct {
	group    *v1alpha1.PodCliqueScalingGroup
	members  []*v1alpha1.PodClique    // that it owns; read-only
	podGroup *v2alpha2.PodGroup       // nil: there is none
	set      *v1alpha1.PodCliqueSet   // see setOf
	revision *workload.Revision       // see setOf
	replicas []lifecycle.GroupReplica // facts about members
}

// observeGroup returns what a pass knows about a scaling group.
func (r *Reconciler) observeGroup(ctx context.Context, group *v1alpha1.PodCliqueScalingGroup) (*observation, error) {
	owned := &v1alpha1.PodCliqueList{}
	err := r.children.ListOwned(ctx, group, owned)
	if err != nil {
		return nil, err
	}
	seen := &observation{group: group, members: children.Pointers(owned.Items)}
	if seen.set, seen.revision, err = r.setOf(ctx, group); err != nil {
		return nil, err
	}
	if seen.podGroup, err = r.children.PodGroup(ctx, group); err != nil {
		return nil, err
	}
	var templates lifecycle.Templates
	if seen.revision != nil {
		templates = seen.revision.Templates()
	}
	seen.replicas = workload.GroupReplicasFacts(group, templates, seen.members)
	return seen, nil
}

// setOf returns the PodCliqueSet that owns the group, with defaults and with the template of the revision that the
// group must follow, and that revision. nil if the set is gone or being deleted, the group has lost its owner, or has
// no revision yet; in these cases no PodClique is created or deleted.
func (r *Reconciler) setOf(ctx context.Context, group *v1alpha1.PodCliqueScalingGroup) (*v1alpha1.PodCliqueSet, *workload.Revision, error) {
	owner := metav1.GetControllerOfNoCopy(group)
	hash := workload.GenerationHash(group)
	if owner == nil || owner.Kind != v1alpha1.KindPodCliqueSet || hash == "" {
		return nil, nil, nil
	}
	set := &v1alpha1.PodCliqueSet{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: group.Namespace, Name: owner.Name}, set)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading PodCliqueSet %s: %w", owner.Name, err)
	}
	if set.UID != owner.UID || set.DeletionTimestamp != nil {
		return nil, nil, nil
	}
	revision, err := r.children.Revision(ctx, set, hash)
	if err != nil {
		return nil, nil, err
	}
	if revision == nil { // it was deleted, and the set's controller stores it again; or the set has a later one
		return nil, nil, fmt.Errorf("the revision %s of PodCliqueSet %s, which the scaling group must follow, does not exist", hash, set.Name)
	}
	if number := workload.RevisionNumber(group); number > 0 {
		revision.Number = number // the cached number may be outdated if the set has returned to this revision
	}
	set = revision.Template(set)
	v1alpha1.SetDefaults(set, r.options.SchedulerName)
	return set, revision, nil
}

// previousRevision returns the revision that all pods of the group followed before the update in progress; an empty
// Hold if it is not known, nil if no replica is held or the group has no set.
func (r *Reconciler) previousRevision(ctx context.Context, seen *observation, holds map[int]bool) (*workload.Hold, error) {
	if seen.set == nil || len(holds) == 0 {
		return nil, nil
	}
	hash := workload.GroupProgress(seen.group).PreviousOr(ptr.Deref(seen.group.Status.CurrentPodCliqueSetGenerationHash, ""))
	return r.children.ReadHold(ctx, seen.set, hash, r.options.SchedulerName)
}
