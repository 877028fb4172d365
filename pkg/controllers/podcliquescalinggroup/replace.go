package podcliquescalinggroup

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/observed"
)

// units are the decisions on the replicas of a scaling group, by index.
type units []lifecycle.UnitDecision

// decideUnits returns what to do about the PodCliques of each replica of a group; nil without a set. replace are the replicas
// that the cache shows should be replaced, and why. What the cache shows is enough to leave a replica alone; before a PodClique
// is created, or a replica is replaced, in a group that had PodCliques before, the API server is asked.
func (r *Reconciler) decideUnits(ctx context.Context, group *v1alpha1.PodCliqueScalingGroup, set *v1alpha1.PodCliqueSet, replace map[int]lifecycle.Replacement, now time.Time) (units, error) {
	i, config := naming.Index(group.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex), group.Labels[v1alpha1.LabelTemplateName]
	if set == nil {
		return nil, nil
	}
	decisions := make(units, max(group.Spec.Replicas, 0))
	if i < 0 {
		return decisions, nil
	}
	cliques, pods, err := r.children.SetReplica(ctx, group.Namespace, set.Name, i)
	if err != nil {
		return nil, err
	}
	decide := func(j int, cliques []*v1alpha1.PodClique, pods []*corev1.Pod) lifecycle.UnitDecision {
		names := memberNames(group, set, i, config, j)
		own := replicaOf(group, cliques, j)
		if !replace[j].Requested() && observed.Complete(observed.GroupAttempt(group, j), names, own) {
			return lifecycle.UnitDecision{Attempt: observed.GroupAttempt(group, j)}
		}
		unit := observed.GroupUnit(set.Name, group, j, names, own, cliques, pods, r.children.Unreachable(ctx))
		unit.Replace = replace[j]
		d := lifecycle.DecideUnit(unit, now)
		if observed.IsFrozen(set, i) {
			d = d.Frozen(unit.Attempt)
		}
		return d
	}
	askServer := false
	for j := range decisions {
		decisions[j] = decide(j, cliques, pods)
		askServer = askServer || decisions[j].Attempt != observed.GroupAttempt(group, j) || len(decisions[j].Create) > 0
	}
	if !askServer || group.Status.ObservedGeneration == 0 && len(replace) == 0 {
		return decisions, nil
	}
	cliques, pods, err = r.children.LiveSetReplica(ctx, group.Namespace, set.Name, i)
	if err != nil {
		return nil, err
	}
	asked := replace
	if len(replace) > 0 {
		// The delay, too, has to be the present one.
		if err := r.children.EnsureUpToDate(ctx, set); err != nil {
			return nil, err
		}
		replace = decideTermination(set, group, observed.WithReady(children.ControlledBy(group, cliques), pods), now).Replicas
	}
	for j := range decisions {
		decisions[j] = decide(j, cliques, pods)
		if asked[j].Requested() && !replace[j].Requested() {
			decisions[j] = decisions[j].Recheck()
		}
	}
	return decisions, nil
}

// memberNames returns the names of the PodCliques of replica j of a group.
func memberNames(group *v1alpha1.PodCliqueScalingGroup, set *v1alpha1.PodCliqueSet, i int, config string, j int) []string {
	var names []string
	for _, clique := range group.Spec.CliqueNames {
		names = append(names, naming.MemberPodClique(set.Name, i, config, j, clique))
	}
	return names
}

// replicaOf returns those of the PodCliques that are of replica j of the group.
func replicaOf(group *v1alpha1.PodCliqueScalingGroup, cliques []*v1alpha1.PodClique, j int) []*v1alpha1.PodClique {
	var own []*v1alpha1.PodClique
	for _, c := range cliques {
		if c.Labels[v1alpha1.LabelPodCliqueScalingGroup] == group.Name && observed.GroupReplicaIndex(c) == j {
			own = append(own, c)
		}
	}
	return own
}

// raised returns the attempts that the decisions raise, by replica.
func (u units) raised(group *v1alpha1.PodCliqueScalingGroup) map[int]lifecycle.Raised {
	attempts := map[int]lifecycle.Raised{}
	for j, d := range u {
		if d.Attempt != observed.GroupAttempt(group, j) {
			attempts[j] = lifecycle.Raised{Attempt: d.Attempt.Group, Replacement: d.Replacement}
		}
	}
	return attempts
}

// note returns what the first replica that waits waits for, "" if none does.
func (u units) note() string {
	for _, d := range u {
		if note := d.Note(); note != "" {
			return note
		}
	}
	return ""
}
