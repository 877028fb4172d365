package podcliquescalinggroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/observed"
)

// atOnce is how many requests for one scaling group are under way at a time.
const atOnce = 16

// Reconcile makes and deletes PodCliques of one scaling group and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// 1. Read.
	if err := r.CollectAfter(ctx, &v1alpha1.PodCliqueScalingGroup{}, v1alpha1.KindPodCliqueScalingGroup, request.NamespacedName, atOnce,
		&v1alpha1.PodCliqueList{}); err != nil {
		return children.Outcome(0, err)
	}
	group := &v1alpha1.PodCliqueScalingGroup{}
	if err := r.Client.Get(ctx, request.NamespacedName, group); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if group.DeletionTimestamp != nil {
		return children.Outcome(0, r.Release(ctx, group, atOnce, &v1alpha1.PodCliqueList{})) // the garbage collector has it
	}
	members, err := r.membersOf(ctx, group)
	if err != nil {
		return ctrl.Result{}, err
	}
	set, err := r.setOf(ctx, group)
	if err != nil {
		return ctrl.Result{}, err
	}
	podGroup, err := r.PodGroup(ctx, group)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 2. Observe, 3. decide.
	now := time.Now()
	replicas := observed.GroupReplicas(group, members)
	standing, missing, remove := decide(group, set, podGroup, members)

	// 4. Change what differs, make what is missing. What is refused for one PodClique keeps none from being changed.
	keep := func(k kept) error {
		if err := r.Unchanged(ctx, group); err != nil {
			return err
		}
		return children.Keep(ctx, r.Maker, k.live, k.want)
	}
	standingErr := children.All(len(standing), atOnce, func(i int) error { return keep(standing[i]) })
	_, missingErr := children.InBatches(len(missing), atOnce, func(i int) error { return keep(missing[i]) })
	keepErr := errors.Join(standingErr, missingErr)

	// 5. Record, before anything is deleted.
	recorded := group.DeepCopy()
	recorded.Status = desired.ScalingGroupStatus(group, desired.GroupFacts{
		Replicas: replicas, Problems: children.Problems(keepErr)}, metav1.NewTime(now))
	if err := r.WriteStatus(ctx, group, recorded); err != nil {
		return children.Outcome(0, err)
	}
	for _, c := range children.Troubles(group.Status.Conditions, recorded.Status.Conditions) {
		r.recorder.Eventf(group, nil, corev1.EventTypeWarning, c.Reason, "CreatePodClique", "%s", c.Message)
	}

	// 6. Delete.
	var removeErr error
	if len(remove) > 0 {
		if removeErr = r.Newest(ctx, recorded); removeErr == nil {
			removeErr = children.All(len(remove), atOnce, func(i int) error { return r.Delete(ctx, remove[i]) })
		}
	}
	if removeErr != nil {
		removeErr = fmt.Errorf("deleting PodCliques: %w", removeErr)
	}
	klog.FromContext(ctx).V(4).Info("Looked at the scaling group", "podCliques", len(members), "deleted", len(remove))
	return children.Outcome(0, keepErr, removeErr)
}

// membersOf returns the PodCliques that the group owns. Read-only.
func (r *Reconciler) membersOf(ctx context.Context, group *v1alpha1.PodCliqueScalingGroup) ([]*v1alpha1.PodClique, error) {
	list := &v1alpha1.PodCliqueList{}
	if err := children.Of(ctx, r.Client, group, list); err != nil {
		return nil, err
	}
	members := make([]*v1alpha1.PodClique, len(list.Items))
	for i := range list.Items {
		members[i] = &list.Items[i]
	}
	return members, nil
}

// setOf returns the PodCliqueSet that owns the group, defaults filled in; nil if it is gone or going, or the group has
// lost its owner: then nothing is made or removed.
func (r *Reconciler) setOf(ctx context.Context, group *v1alpha1.PodCliqueScalingGroup) (*v1alpha1.PodCliqueSet, error) {
	owner := metav1.GetControllerOfNoCopy(group)
	if owner == nil || owner.Kind != v1alpha1.KindPodCliqueSet {
		return nil, nil
	}
	set := &v1alpha1.PodCliqueSet{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: group.Namespace, Name: owner.Name}, set)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PodCliqueSet %s: %w", owner.Name, err)
	}
	if set.UID != owner.UID || set.DeletionTimestamp != nil {
		return nil, nil
	}
	v1alpha1.SetDefaults(set, r.SchedulerName)
	return set, nil
}

// kept is a PodClique that is wanted, and the one that is there, nil if none is.
type kept struct{ live, want *v1alpha1.PodClique }

// decide returns the PodCliques to bring up to date and those to make, lowest replica first, and those to delete. What is to
// be made is listed by the PodGroup, what is to be deleted is not.
func decide(group *v1alpha1.PodCliqueScalingGroup, set *v1alpha1.PodCliqueSet, podGroup *v2alpha2.PodGroup, members []*v1alpha1.PodClique) (standing, missing []kept, remove []*v1alpha1.PodClique) {
	if set == nil {
		return nil, nil, nil
	}
	live := map[string]*v1alpha1.PodClique{}
	for _, c := range members {
		live[c.Name] = c
	}
	for j := range int(max(group.Spec.Replicas, 0)) {
		for _, want := range desired.MemberPodCliques(set, group, j, live) {
			if there := live[want.Name]; there != nil {
				standing = append(standing, kept{there, want})
			} else if _, listed := observed.Leaf(podGroup, want.Name); listed {
				missing = append(missing, kept{nil, want})
			}
		}
	}
	for _, c := range members {
		if naming.Index(c.Labels, v1alpha1.LabelPodCliqueScalingGroupReplicaIndex) < int(group.Spec.Replicas) {
			continue
		}
		if _, listed := observed.Leaf(podGroup, c.Name); !listed {
			remove = append(remove, c)
		}
	}
	return standing, missing, remove
}
