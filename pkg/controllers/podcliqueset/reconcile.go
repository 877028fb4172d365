package podcliqueset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/observed"
)

// atOnce is how many replicas of one set are worked on at a time.
const atOnce = 32

// Reconcile makes, changes and deletes what one PodCliqueSet consists of and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// 1. Read.
	if err := r.CollectAfter(ctx, &v1alpha1.PodCliqueSet{}, v1alpha1.KindPodCliqueSet, request.NamespacedName, atOnce,
		&v2alpha2.PodGroupList{}, &v1alpha1.PodCliqueScalingGroupList{}, &v1alpha1.PodCliqueList{},
		&autoscalingv2.HorizontalPodAutoscalerList{}, &corev1.ServiceList{}); err != nil {
		return children.Outcome(0, err)
	}
	live := &v1alpha1.PodCliqueSet{}
	if err := r.Client.Get(ctx, request.NamespacedName, live); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if live.DeletionTimestamp != nil {
		// The garbage collector has it, and all below.
		return children.Outcome(0, r.Release(ctx, live, atOnce, &v1alpha1.PodCliqueList{}, &v1alpha1.PodCliqueScalingGroupList{}, &v2alpha2.PodGroupList{}))
	}
	f, err := r.familyOf(ctx, live)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 2. Observe, 3. decide.
	now := time.Now()
	cliques, groups := f.listed()
	facts := observed.SetReplicas(live, cliques, groups)
	if live, err = r.remembering(ctx, live, facts); live == nil || err != nil {
		return ctrl.Result{}, err
	}
	set := live.DeepCopy()
	v1alpha1.SetDefaults(set, r.SchedulerName)
	facts = observed.SetReplicas(set, cliques, groups)
	recordedReplicas := live.Status.RecordedReplicas
	var removals []removal
	var keepErr error
	if errs, _ := validation.ValidatePodCliqueSet(live); len(errs) > 0 {
		// It got past admission. What runs is left alone.
		keepErr = &children.Invalid{Err: fmt.Errorf("invalid, and nothing is made or removed until it is repaired: %w", errs.ToAggregate())}
	} else {
		// 4. Make what is missing, change what differs.
		family, replicas := f.children(), int(max(set.Spec.Replicas, 0))
		recordedReplicas = desired.RecordedReplicas(set, family)
		names := make([][]object, replicas)
		accessErr := r.keepAccess(ctx, set) // before the pods that need it
		keep := func(i int) error {
			if err := r.Unchanged(ctx, live); err != nil {
				return err
			}
			want := wanted(set, i, f, family)
			names[i] = want.names()
			return r.keep(ctx, want, f)
		}
		// What is refused for one replica keeps no other that stands from being scaled, and only new ones wait.
		standing, missing := f.standing(set.Name, replicas)
		standingErr := children.All(len(standing), atOnce, func(k int) error { return keep(standing[k]) })
		_, missingErr := children.InBatches(len(missing), atOnce, func(k int) error { return keep(missing[k]) })
		keepErr = errors.Join(accessErr, standingErr, missingErr)
		for i := range names {
			if names[i] == nil { // the batches ended before
				names[i] = wanted(set, i, f, family).names()
			}
		}
		removals = unwanted(names, f)
	}

	// 5. Record, before anything is deleted.
	running, err := r.anyRunning(ctx, f)
	if err != nil {
		return ctrl.Result{}, err
	}
	recorded := live.DeepCopy()
	recorded.Status = desired.PodCliqueSetStatus(live, desired.SetFacts{
		Replicas: facts, Running: running, Recorded: recordedReplicas, Problems: children.Problems(keepErr)}, metav1.NewTime(now))
	if err := r.WriteStatus(ctx, live, recorded); err != nil {
		return children.Outcome(0, err)
	}
	for _, c := range children.Troubles(live.Status.Conditions, recorded.Status.Conditions) {
		r.recorder.Eventf(live, nil, corev1.EventTypeWarning, c.Reason, "CreateChild", "%s", c.Message)
	}

	// 6. Delete.
	var removeErr error
	if len(removals) > 0 {
		if removeErr = r.Newest(ctx, recorded); removeErr == nil {
			removeErr = children.All(len(removals), atOnce, func(i int) error { return r.remove(ctx, removals[i]) })
		}
	}
	klog.FromContext(ctx).V(4).Info("Looked at the PodCliqueSet", "replicas", set.Spec.Replicas, "removed", len(removals))
	return children.Outcome(0, keepErr, removeErr)
}

// remembering returns the set as it was read, or if something of a set that stood once is missing, as the API server has it:
// what is made anew gets back the replicas that the status remembers, and the cache may not have these yet. nil: the set is
// gone, or about to.
func (r *Reconciler) remembering(ctx context.Context, set *v1alpha1.PodCliqueSet, facts []lifecycle.SetReplica) (*v1alpha1.PodCliqueSet, error) {
	if set.Status.ObservedGeneration == 0 ||
		!slices.ContainsFunc(facts, func(r lifecycle.SetReplica) bool { return len(r.Missing) > 0 }) {
		return set, nil
	}
	live := &v1alpha1.PodCliqueSet{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(set), live); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the set past the cache: %w", err)
	}
	if live.UID != set.UID || live.DeletionTimestamp != nil {
		return nil, nil
	}
	return live, nil
}

// keep makes one replica what it is to be: its PodGroup first, and nothing without it.
func (r *Reconciler) keep(ctx context.Context, want replica, f family) error {
	if want.podGroup != nil {
		if err := children.Keep(ctx, r.Maker, f.podGroups[want.podGroup.Name], want.podGroup); err != nil {
			return err
		}
	}
	errs := []error{children.Keep(ctx, r.Maker, f.services[want.service.Name], want.service)}
	for _, c := range want.cliques {
		errs = append(errs, children.Keep(ctx, r.Maker, f.cliques[c.Name], c))
	}
	for _, g := range want.groups {
		errs = append(errs, children.Keep(ctx, r.Maker, f.groups[g.Name], g))
	}
	for _, h := range want.hpas {
		errs = append(errs, children.Keep(ctx, r.Maker, f.hpas[h.Name], h))
	}
	return errors.Join(errs...)
}

// keepAccess lets the waiting containers of the set read what they wait for. The cliques of a set and their order are
// immutable, so what is made once is not removed before the set is.
func (r *Reconciler) keepAccess(ctx context.Context, set *v1alpha1.PodCliqueSet) error {
	role, binding := desired.StartAccess(set)
	if role == nil {
		return nil
	}
	err := children.KeepUncached(ctx, r.Maker, &rbacv1.Role{}, role)
	if err == nil {
		err = children.KeepUncached(ctx, r.Maker, &rbacv1.RoleBinding{}, binding)
	}
	if err != nil {
		return fmt.Errorf("pods that start after others cannot see them: %w", err)
	}
	return nil
}

// remove deletes what is not wanted any more of one replica: its PodGroup first, so that nothing is taken from a gang
// whose minimum still holds.
func (r *Reconciler) remove(ctx context.Context, gone removal) error {
	if gone.podGroup != nil {
		if err := r.Delete(ctx, gone.podGroup); err != nil {
			return fmt.Errorf("deleting PodGroup %s: %w", gone.podGroup.Name, err)
		}
	}
	var errs []error
	for _, o := range gone.rest {
		if err := r.Delete(ctx, o); err != nil {
			errs = append(errs, fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// anyRunning tells whether a pod of the set is running.
func (r *Reconciler) anyRunning(ctx context.Context, f family) (bool, error) {
	var bound []*v1alpha1.PodClique
	for _, c := range f.children().Cliques {
		if c.Status.ReadyReplicas > 0 {
			return true, nil
		}
		if c.Status.ScheduledReplicas > 0 {
			bound = append(bound, c)
		}
	}
	for _, c := range bound {
		pods := &corev1.PodList{}
		if err := children.Of(ctx, r.Client, c, pods); err != nil {
			return false, err
		}
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				return true, nil
			}
		}
	}
	return false, nil
}
