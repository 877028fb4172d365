// SPDX-License-Identifier: Apache-2.0

package podcliquescalinggroup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// units are the decisions on the replicas of a scaling group, by index.
type units []lifecycle.UnitDecision

// decisions are the decisions on the replicas of a scaling group.
type decisions struct {
	units       units
	termination lifecycle.Termination
	update      *lifecycle.GroupUpdateDecision // nil: Training, or there is no set
	// holds are the replicas whose missing PodCliques are created from the previous revision.
	holds map[int]bool
}

// replace returns the replicas to replace, by index, with the reasons. It includes the replicas to terminate.
func (d decisions) replace() map[int]lifecycle.Replacement {
	replace := map[int]lifecycle.Replacement{}
	if d.update != nil {
		maps.Copy(replace, d.update.Replace)
	}
	maps.Copy(replace, d.termination.Replicas)
	return replace
}

// decideUnits returns the decisions on the PodCliques of each replica of a group; the zero value without a set.
// members are the group's PodCliques in the cache. The cached objects are sufficient to leave a replica alone; before
// a replica is replaced, or a PodClique is created in a group that had PodCliques before, decideUnits reads from the
// API server.
func (r *Reconciler) decideUnits(ctx context.Context, group *v1alpha1.PodCliqueScalingGroup, set *v1alpha1.PodCliqueSet, revision *workload.Revision, members []*v1alpha1.PodClique, now time.Time) (decisions, error) {
	i, config := naming.Index(group.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex), group.Labels[v1alpha1.LabelTemplateName]
	if set == nil {
		return decisions{}, nil
	}
	d := decisions{units: make(units, max(group.Spec.Replicas, 0)), termination: decideTermination(set, group, members, now)}
	if i < 0 {
		return d, nil
	}
	cliques, pods, err := r.children.SetReplica(ctx, group.Namespace, set.Name, i)
	if err != nil {
		return decisions{}, err
	}
	if workload.IsGroupUpdating(group) { // statuses are some seconds behind
		members = workload.WithScheduled(members, pods)
	}
	d.update, d.holds = r.decideUpdate(set, group, revision, members, now)
	replace := d.replace()
	own := workload.OwnershipOf(set, []*v1alpha1.PodCliqueScalingGroup{group}, cliques)
	decide := func(j int, cliques []*v1alpha1.PodClique, pods []*corev1.Pod) lifecycle.UnitDecision {
		names := memberNames(group, set, i, config, j)
		named := replicaOf(group, cliques, j)
		if !replace[j].Requested() && workload.IsUnitComplete(workload.GroupAttempt(group, j), names, own.Cliques(named)) {
			return lifecycle.UnitDecision{Attempt: workload.GroupAttempt(group, j)}
		}
		unit := workload.GroupUnitFacts(own, group, j, names, named, cliques, pods, r.children.Unreachable(ctx))
		unit.Replace = replace[j]
		d := lifecycle.DecideUnit(unit, now)
		if workload.IsFrozen(set, i) {
			d = d.Frozen(unit.Attempt)
		}
		return d
	}
	askServer, isNew := false, group.Status.ObservedGeneration == 0
	for j := range d.units {
		d.units[j] = decide(j, cliques, pods)
		askServer = askServer || d.units[j].Attempt != workload.GroupAttempt(group, j) || len(d.units[j].Create) > 0 && !isNew
	}
	if !askServer {
		return d, nil
	}
	// An attempt that was raised but is not in the cache yet has no PodCliques: without this check, those of the
	// previous attempt would be created once more.
	if err := r.children.EnsureUpToDate(ctx, group); err != nil {
		return decisions{}, err
	}
	cliques, pods, err = r.children.LiveSetReplica(ctx, group.Namespace, set.Name, i)
	if err != nil {
		return decisions{}, err
	}
	own = workload.OwnershipOf(set, []*v1alpha1.PodCliqueScalingGroup{group}, cliques)
	// What an attempt of the set explains is replaced by the set, which is about to tell the group.
	recorded, err := r.children.LiveSetAttempt(ctx, set, i)
	if err != nil {
		return decisions{}, err
	}
	if recorded.Set > workload.GroupAttempt(group, 0).Set {
		return decisions{}, apierrors.NewConflict(v1alpha1.Resource("podcliquescalinggroups"), group.Name,
			fmt.Errorf("replica %d of PodCliqueSet %s is replaced", i, set.Name))
	}
	asked := replace
	if len(asked) > 0 {
		// The delay and the strategy must be current, too.
		if err := r.children.EnsureUpToDate(ctx, set); err != nil {
			return decisions{}, err
		}
		counted := workload.WithCounts(children.ControlledBy(group, cliques), pods)
		if len(d.termination.Replicas) > 0 {
			d.termination = decideTermination(set, group, workload.WithReady(children.ControlledBy(group, cliques), pods), now)
		}
		d.update, d.holds = r.decideUpdate(set, group, revision, counted, now)
		replace = d.replace()
	}
	for j := range d.units {
		d.units[j] = decide(j, cliques, pods)
		if asked[j].Requested() && !replace[j].Requested() {
			d.units[j] = d.units[j].Recheck()
		}
	}
	return d, r.leaveToSet(ctx, group, set, i, cliques, pods, d.units, now)
}

// leaveToSet changes the decisions on replicas whose PodCliques were deleted by a user if all other PodCliques of the
// set replica were deleted, too: one replacement is enough, and it is the set's. cliques and pods are all of the set
// replica, read from the API server.
func (r *Reconciler) leaveToSet(ctx context.Context, group *v1alpha1.PodCliqueScalingGroup, set *v1alpha1.PodCliqueSet, i int, cliques []*v1alpha1.PodClique, pods []*corev1.Pod, units units, now time.Time) error {
	deleted := func(d lifecycle.UnitDecision) bool { return d.Replacement.Reason == lifecycle.ReplacedDeleted }
	if !slices.ContainsFunc(units, deleted) {
		return nil
	}
	list := &v1alpha1.PodCliqueScalingGroupList{}
	if err := r.children.ListSetReplica(ctx, group, list); err != nil {
		return err
	}
	var groups []*v1alpha1.PodCliqueScalingGroup
	for k := range list.Items {
		if metav1.IsControlledBy(&list.Items[k], set) {
			groups = append(groups, &list.Items[k])
		}
	}
	groups, err := r.children.LiveGroups(ctx, groups)
	if err != nil {
		return err
	}
	standalone, members := workload.UnitNames(set, i, groups)
	whole := workload.SetUnitFacts(set, i, slices.Concat(standalone, members), cliques, pods, groups, nil, r.children.Unreachable(ctx))
	if !deleted(lifecycle.DecideUnit(whole, now)) {
		return nil
	}
	for j := range units {
		if deleted(units[j]) {
			units[j] = units[j].LeftToSet(workload.GroupAttempt(group, j))
		}
	}
	return nil
}

// decideUpdate returns the decision on an update of the group, and the replicas whose missing PodCliques are created from
// the previous revision. revision is the one that the group follows, members are its PodCliques. nil for a Training
// workload, whose template is not rolled out.
func (r *Reconciler) decideUpdate(set *v1alpha1.PodCliqueSet, group *v1alpha1.PodCliqueScalingGroup, revision *workload.Revision, members []*v1alpha1.PodClique, now time.Time) (*lifecycle.GroupUpdateDecision, map[int]bool) {
	if set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining {
		return nil, nil
	}
	u := lifecycle.GroupUpdate{
		Revision: workload.RevisionNumber(group), Generation: workload.GenerationHash(group),
		OnDelete: workload.FollowsOnDelete(group), Turn: workload.HasTurn(group), Paused: set.Spec.IsPaused() || workload.IsPaused(group),
		Progress: workload.GroupProgress(group),
		Replicas: wantedReplicas(group, revision.Templates(), members), Wanted: max(group.Spec.Replicas, 0),
		MinAvailable: lifecycle.GroupMinimum(group.Spec.MinAvailable, group.Spec.Replicas),
		StalledAfter: r.stalledUpdateAfter, Followed: ptr.Deref(group.Status.CurrentPodCliqueSetGenerationHash, ""), New: map[int]bool{},
	}
	holds := map[int]bool{}
	for j := range int(u.Wanted) {
		var existing *lifecycle.GroupReplica
		if at := slices.IndexFunc(u.Replicas, func(r lifecycle.GroupReplica) bool { return r.Index == j }); at >= 0 {
			existing = &u.Replicas[at]
		}
		switch {
		case u.HoldsPrevious(j, existing, workload.RecordedGroupAttempt(group, j)):
			holds[j] = true
		case existing == nil:
			u.New[j] = true
		}
	}
	d := lifecycle.DecideGroupUpdate(u, now)
	return &d, holds
}

// memberNames returns the names of the PodCliques of replica j of a group.
func memberNames(group *v1alpha1.PodCliqueScalingGroup, set *v1alpha1.PodCliqueSet, i int, config string, j int) []string {
	var names []string
	for _, clique := range group.Spec.CliqueNames {
		names = append(names, naming.MemberPodClique(set.Name, i, config, j, clique))
	}
	return names
}

// replicaOf returns the PodCliques that belong to replica j of the group.
func replicaOf(group *v1alpha1.PodCliqueScalingGroup, cliques []*v1alpha1.PodClique, j int) []*v1alpha1.PodClique {
	var own []*v1alpha1.PodClique
	for _, c := range cliques {
		if c.Labels[v1alpha1.LabelPodCliqueScalingGroup] == group.Name && workload.GroupReplicaIndex(c) == j {
			own = append(own, c)
		}
	}
	return own
}

// raised returns the attempts raised by the decisions, by replica.
func (u units) raised(group *v1alpha1.PodCliqueScalingGroup) map[int]lifecycle.Raised {
	attempts := map[int]lifecycle.Raised{}
	for j, d := range u {
		if d.Attempt != workload.GroupAttempt(group, j) {
			attempts[j] = lifecycle.Raised{Attempt: d.Attempt.Group, Replacement: d.Replacement}
		}
	}
	return attempts
}

// postponeNew removes the creation of replicas of which no PodClique exists, and reports whether there were any. existing
// are the others.
func (u units) postponeNew(existing []lifecycle.GroupReplica) bool {
	postponed := false
	for j := range u {
		isNew := !slices.ContainsFunc(existing, func(r lifecycle.GroupReplica) bool { return r.Index == j })
		if isNew && len(u[j].Create) > 0 {
			u[j].Create, postponed = nil, true
		}
	}
	return postponed
}

// note returns what the first waiting replica waits for, "" if none waits.
func (u units) note() string {
	for _, d := range u {
		if note := d.Note(); note != "" {
			return note
		}
	}
	return ""
}
