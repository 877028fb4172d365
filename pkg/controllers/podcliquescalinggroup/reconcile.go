// SPDX-License-Identifier: Apache-2.0

package podcliquescalinggroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// maxParallel is the maximum number of parallel requests for one scaling group.
const maxParallel = 16

// Reconcile creates and deletes PodCliques of one scaling group and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	now := r.clock.Now()

	// 1. Read.
	if err := r.children.CleanUpFormerOwner(ctx, &v1alpha1.PodCliqueScalingGroup{}, v1alpha1.KindPodCliqueScalingGroup, request.NamespacedName, maxParallel,
		&v1alpha1.PodCliqueList{}); err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}
	group := &v1alpha1.PodCliqueScalingGroup{}
	if err := r.client.Get(ctx, request.NamespacedName, group); err != nil {
		metrics.UnderWay(v1alpha1.KindPodCliqueScalingGroup, request.String(), 0)
		r.mixed.Forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if group.DeletionTimestamp != nil {
		// The garbage collector deletes its PodCliques.
		return r.children.Result(ctx, request.NamespacedName, now, 0, r.children.Release(ctx, group, maxParallel, &v1alpha1.PodCliqueList{}))
	}
	members, err := r.membersOf(ctx, group)
	if err != nil {
		return ctrl.Result{}, err
	}
	set, revision, err := r.setOf(ctx, group)
	if err != nil {
		return ctrl.Result{}, err
	}
	podGroup, err := r.children.PodGroup(ctx, group)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 2. Observe, 3. decide.
	var templates lifecycle.Templates
	if revision != nil {
		templates = revision.Templates()
	}
	replicas := workload.GroupReplicasFacts(group, templates, members)
	d, err := r.decideUnits(ctx, group, set, revision, members, now)
	if err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}
	units, termination := d.units, d.termination
	awaitsRevision := false
	if awaitsNewest(set, group) {
		awaitsRevision = units.postponeNew(replicas)
	}
	hold, err := r.previous(ctx, set, group, d.holds)
	if err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}
	existing, missing, remove := decide(group, set, revision, podGroup, members, d, hold)

	metrics.UnderWay(v1alpha1.KindPodCliqueScalingGroup, request.String(), lifecycle.UnderWay(units)+len(units.raised(group)))

	// 4. Update and create PodCliques. The rejection of one PodClique does not prevent the update of others.
	createOrUpdate := func(m member) error {
		if err := r.children.SpecUnchanged(ctx, group); err != nil {
			return err
		}
		return children.CreateOrUpdate(ctx, r.children, m.existing, m.want)
	}
	existingErr := children.ForEach(len(existing), maxParallel, func(i int) error { return createOrUpdate(existing[i]) })
	_, missingErr := r.children.SlowStart(r.clock, request.NamespacedName, len(missing), maxParallel, func(i int) error { return createOrUpdate(missing[i]) })
	createErr := errors.Join(existingErr, missingErr)

	// 5. Record, before any PodClique is deleted.
	recorded, err := r.writeStatus(ctx, group, workload.GroupStatusFacts{
		Replicas: replicas, Delay: delayOf(set, group), NextTermination: termination.Next,
		Training: set != nil && set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining, Failed: set != nil && workload.FailedReason(set) != "",
		Raised: units.raised(group), Waits: units.note(), Update: d.update, Problems: r.children.Problems(group, createErr, now)}, now)
	if err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}

	r.reportMixed(ctx, recorded, set, revision, members)

	// 6. Delete.
	var removeErr error
	if len(remove) > 0 {
		if removeErr = r.children.EnsureUpToDate(ctx, recorded); removeErr == nil {
			removeErr = children.ForEach(len(remove), maxParallel, func(i int) error { return r.children.DeleteAt(ctx, remove[i], now) })
		}
	}
	if removeErr != nil {
		removeErr = fmt.Errorf("deleting PodCliques: %w", removeErr)
	}
	klog.FromContext(ctx).V(4).Info("Reconciled PodCliqueScalingGroup", "podCliques", len(members), "deleted", len(remove))
	after := lifecycle.Sooner(lifecycle.RequeueAfter(units, len(units.raised(group)) > 0), termination.RequeueAfter(now))
	if awaitsRevision {
		after = lifecycle.Sooner(after, revisionPeriod)
	}
	if d.update != nil {
		after = lifecycle.Sooner(after, d.update.RequeueAfter)
		if workload.GroupProgress(group).Open() != d.update.Progress.Open() {
			after = time.Millisecond // the next pass sets the annotations of the members
		}
	}
	return r.children.Result(ctx, request.NamespacedName, now, after, createErr, removeErr)
}

// revisionPeriod is how often a group that waits for the newest revision looks at its set.
const revisionPeriod = time.Second

// awaitsNewest reports whether the group is about to be told a newer revision than the one that it follows. A new replica
// waits for it, because it would be replaced at once. A group that the update has not reached is not told. set may be nil.
func awaitsNewest(set *v1alpha1.PodCliqueSet, group *v1alpha1.PodCliqueScalingGroup) bool {
	if set == nil || set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining || set.Status.CurrentGenerationHash == nil {
		return false
	}
	i := naming.Index(group.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
	if p := workload.SetProgress(set); p.Open() && !set.Spec.IsOnDelete() && !p.Reached.Has(i) {
		return false
	}
	return *set.Status.CurrentGenerationHash != workload.GenerationHash(group)
}

// membersOf returns the PodCliques that the group owns. Read-only.
func (r *Reconciler) membersOf(ctx context.Context, group *v1alpha1.PodCliqueScalingGroup) ([]*v1alpha1.PodClique, error) {
	list := &v1alpha1.PodCliqueList{}
	if err := r.children.ListOwned(ctx, group, list); err != nil {
		return nil, err
	}
	members := make([]*v1alpha1.PodClique, len(list.Items))
	for i := range list.Items {
		members[i] = &list.Items[i]
	}
	return members, nil
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
	v1alpha1.SetDefaults(set, r.schedulerName)
	return set, revision, nil
}

// previous returns the revision that all pods of the group followed before the update in progress; an empty Hold if it is
// not known, nil if no replica is held or the group has no set.
func (r *Reconciler) previous(ctx context.Context, set *v1alpha1.PodCliqueSet, group *v1alpha1.PodCliqueScalingGroup, holds map[int]bool) (*workload.Hold, error) {
	if set == nil || len(holds) == 0 {
		return nil, nil
	}
	hash := workload.GroupProgress(group).PreviousOr(ptr.Deref(group.Status.CurrentPodCliqueSetGenerationHash, ""))
	return r.children.ReadHold(ctx, set, hash, r.schedulerName)
}

// member is a desired PodClique, and the existing one, nil if there is none.
type member struct{ existing, want *v1alpha1.PodClique }

// decide returns the PodCliques to update and those to create, lowest replica first, and those to delete; see
// lifecycle.DecideMembers. hold is the previous revision, for the replicas in dec.holds. It returns none without a set.
func decide(group *v1alpha1.PodCliqueScalingGroup, set *v1alpha1.PodCliqueSet, revision *workload.Revision, podGroup *v2alpha2.PodGroup, members []*v1alpha1.PodClique, dec decisions, hold *workload.Hold) (existing, missing []member, remove []*v1alpha1.PodClique) {
	if set == nil {
		return nil, nil, nil
	}
	facts := lifecycle.Members{Listed: map[string]bool{}, Units: dec.units}
	list := func(name string) { _, facts.Listed[name] = workload.LeafOf(podGroup, name) }
	live, wanted := map[string]*v1alpha1.PodClique{}, map[string]*v1alpha1.PodClique{}
	for _, c := range members {
		live[c.Name] = c
		list(c.Name)
		facts.Existing = append(facts.Existing, lifecycle.Member{Name: c.Name, Replica: workload.GroupReplicaIndex(c)})
	}
	for j := range int(max(group.Spec.Replicas, 0)) {
		var names []string
		var previous *workload.Hold
		if dec.holds[j] {
			previous = hold
		}
		for _, want := range workload.MemberPodCliques(set, revision, group, j, live, previous) {
			wanted[want.Name] = want
			list(want.Name)
			names = append(names, want.Name)
		}
		facts.Wanted = append(facts.Wanted, names)
	}
	d := lifecycle.DecideMembers(facts)
	for _, name := range d.Update {
		existing = append(existing, member{live[name], wanted[name]})
	}
	for _, name := range d.Create {
		missing = append(missing, member{nil, wanted[name]})
	}
	for _, name := range d.Delete {
		remove = append(remove, live[name])
	}
	return existing, missing, remove
}
