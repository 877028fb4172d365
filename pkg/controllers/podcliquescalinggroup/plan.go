// SPDX-License-Identifier: Apache-2.0

package podcliquescalinggroup

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// groupPlan is what one pass decides about a scaling group. Without a set it has no units and no members.
type groupPlan struct {
	units       units                          // of the desired replicas
	raised      map[int]lifecycle.Raised       // attempts of replicas that are replaced
	termination lifecycle.Termination          // of replicas whose minimum is breached
	breach      lifecycle.Breach               // of the minimum of the group
	rollout     *lifecycle.GroupUpdateDecision // nil: Training, or there is no set
	holds       map[int]bool                   // replicas whose missing PodCliques are created from the previous revision
	// awaitsRevision: new replicas are not created before the group is told the newest revision.
	awaitsRevision bool
	// awaitsRecord: new replicas are not created before the status records that the update has reached them.
	awaitsRecord bool
	// update, create and remove are the PodCliques to update and to create, lowest replica first, and those to delete,
	// by name.
	update, create []member
	remove         []*v1alpha1.PodClique
}

// units are the decisions on the replicas of a scaling group, by index.
type units []lifecycle.UnitDecision

// member is a desired PodClique, and the existing one, nil if there is none.
type member struct{ existing, want *v1alpha1.PodClique }

// decideGroup decides what to do about a scaling group.
func (r *Reconciler) decideGroup(ctx context.Context, seen *observation, now time.Time) (*groupPlan, error) {
	plan := &groupPlan{}
	if seen.set != nil {
		if err := r.decideUnits(ctx, seen, plan, now); err != nil {
			return nil, err
		}
	}
	scaledOut := workload.ScaledOutReplicas(seen.group)
	plan.awaitsRevision = plan.units.postponeNew(seen.replicas, func(j int) bool {
		return workload.AwaitsNewest(seen.set, seen.group, slices.Contains(scaledOut, j))
	})
	// Otherwise a pass after a crash would take a new replica of which one PodClique exists for one that was not
	// reached.
	if plan.rollout != nil {
		recorded := workload.GroupProgress(seen.group)
		plan.awaitsRecord = plan.units.postponeNew(seen.replicas, func(j int) bool { return plan.rollout.Progress.NewlyReaches(j, recorded) })
	}
	plan.raised = lifecycle.RaisedAttempts(plan.units, func(j int) lifecycle.Attempt { return workload.GroupAttempt(seen.group, j) })
	failed := seen.set != nil && workload.FailedReason(seen.set) != ""
	plan.breach = lifecycle.JudgeReplicas(workload.GroupAvailabilityFacts(
		seen.group, wantedReplicas(seen.group, seen.replicas), delayOf(seen.set, seen.group), plan.rollout, failed), now)
	hold, err := r.previousRevision(ctx, seen, plan.holds)
	if err != nil {
		return nil, err
	}
	plan.decideMembers(seen, hold)
	return plan, nil
}

// decideMembers decides which PodCliques to update, create and delete. A PodClique is created once the PodGroup lists
// it and the decision on its replica includes it. A PodClique whose replica is above spec.replicas is deleted once the
// PodGroup no longer lists it; any other is deleted if the decision on its replica says so. One without a replica index
// stays. hold is the previous revision, for the replicas in p.holds. Source: docs/decisions, W1, W7, W10.
func (p *groupPlan) decideMembers(seen *observation, hold *workload.Hold) {
	if seen.set == nil {
		return
	}
	isListed := func(name string) bool {
		_, listed := workload.LeafOf(seen.podGroup, name)
		return listed
	}
	live := make(map[string]*v1alpha1.PodClique, len(seen.members))
	replicas := map[int][]*v1alpha1.PodClique{}
	for _, c := range seen.members {
		live[c.Name] = c
		if j := workload.GroupReplicaIndex(c); p.holds[j] && c.DeletionTimestamp == nil {
			replicas[j] = append(replicas[j], c)
		}
	}
	suspends := workload.IsGroupUpdating(seen.group) && (p.rollout == nil || p.rollout.Suspends)
	for j, unit := range p.units {
		var previous *workload.Hold
		if p.holds[j] && !hold.IsPassed(seen.revision, replicas[j]) {
			previous = hold
		}
		for _, want := range workload.MemberPodCliques(seen.set, seen.revision, seen.group, j, live, previous, suspends) {
			if existing := live[want.Name]; existing != nil {
				p.update = append(p.update, member{existing, want})
			} else if isListed(want.Name) && slices.Contains(unit.Create, want.Name) {
				p.create = append(p.create, member{nil, want})
			}
		}
	}
	for _, c := range seen.members {
		j := workload.GroupReplicaIndex(c)
		isAbove := j >= len(p.units)
		if isAbove && !isListed(c.Name) || j >= 0 && !isAbove && slices.Contains(p.units[j].Delete, c.Name) {
			p.remove = append(p.remove, c)
		}
	}
	slices.SortFunc(p.remove, func(a, b *v1alpha1.PodClique) int { return cmp.Compare(a.Name, b.Name) })
}

// requeueAfter returns the time until the plan has to be made again, 0: an event will tell.
func (p *groupPlan) requeueAfter(seen *observation, now time.Time) time.Duration {
	after := lifecycle.Sooner(lifecycle.RequeueAfter(p.units, len(p.raised) > 0 || p.awaitsRecord), p.termination.RequeueAfter(now))
	if p.awaitsRevision {
		after = lifecycle.Sooner(after, children.RevisionPeriod)
	}
	if p.rollout != nil {
		after = lifecycle.Sooner(after, p.rollout.RequeueAfter)
		if workload.IsGroupUpdating(seen.group) != p.rollout.Progress.Open() {
			after = time.Millisecond // the next pass sets the annotations of the members
		}
	}
	return after
}

// delayOf returns the effective termination delay of a group; nil: gang termination is off, or there is no set.
func delayOf(set *v1alpha1.PodCliqueSet, group *v1alpha1.PodCliqueScalingGroup) *time.Duration {
	if set == nil {
		return nil
	}
	return workload.TerminationDelay(set, group.Labels[v1alpha1.LabelTemplateName])
}

// decideTermination returns which replicas of a group are terminated by the group itself. members are its PodCliques.
func decideTermination(set *v1alpha1.PodCliqueSet, group *v1alpha1.PodCliqueScalingGroup, members []*v1alpha1.PodClique, now time.Time) lifecycle.Termination {
	return lifecycle.DecideGroupTermination(lifecycle.GroupTermination{
		Replicas:     wantedReplicas(group, workload.GroupReplicasFacts(group, nil, members)),
		MinAvailable: lifecycle.GroupMinimum(group.Spec.MinAvailable, group.Spec.Replicas),
		Delay:        delayOf(set, group),
		ReportsOnly:  set.Spec.IsTraining(),
	}, now)
}

// decideUpdate returns the decision on an update of the group, and the replicas whose missing PodCliques are created
// from the previous revision. members are its PodCliques. nil for a Training workload, whose template is not rolled
// out.
func (r *Reconciler) decideUpdate(seen *observation, members []*v1alpha1.PodClique, now time.Time) (*lifecycle.GroupUpdateDecision, map[int]bool) {
	if seen.set.Spec.IsTraining() {
		return nil, nil
	}
	replicas := workload.GroupReplicasFacts(seen.group, seen.revision.Templates(), members)
	u, holds := workload.GroupUpdateFacts(seen.set, seen.group, wantedReplicas(seen.group, replicas))
	u.StalledAfter = r.options.StalledUpdateAfter
	d := lifecycle.DecideGroupUpdate(u, now)
	return &d, holds
}

// wantedReplicas returns the desired ones of the replicas of a group.
func wantedReplicas(group *v1alpha1.PodCliqueScalingGroup, replicas []lifecycle.GroupReplica) []lifecycle.GroupReplica {
	return slices.DeleteFunc(slices.Clone(replicas), func(r lifecycle.GroupReplica) bool { return r.Index >= int(group.Spec.Replicas) })
}

// replacements returns the replicas to replace, by index, with the reasons. It includes the replicas to terminate.
func (p *groupPlan) replacements() map[int]lifecycle.Replacement {
	replace := map[int]lifecycle.Replacement{}
	if p.rollout != nil {
		maps.Copy(replace, p.rollout.Replace)
	}
	maps.Copy(replace, p.termination.Replicas)
	return replace
}

// postponeNew removes the creation of those replicas of which no PodClique exists and for which waits is true, and
// reports whether there were any. existing are those with PodCliques.
func (u units) postponeNew(existing []lifecycle.GroupReplica, waits func(j int) bool) bool {
	postponed := false
	for j := range u {
		isNew := !slices.ContainsFunc(existing, func(r lifecycle.GroupReplica) bool { return r.Index == j })
		if isNew && len(u[j].Create) > 0 && waits(j) {
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
