// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// decideUnits returns the decisions on the PodCliques of each replica of a set with defaults. replace are the replicas
// to replace according to the cache, with the reasons. The cached objects are sufficient to leave a replica alone;
// before a PodClique is recreated or the replica is replaced, confirmUnit reads from the API server.
func (r *Reconciler) decideUnits(ctx context.Context, set *v1alpha1.PodCliqueSet, owned ownedObjects, replace map[int]lifecycle.Replacement, now time.Time) ([]lifecycle.UnitDecision, error) {
	byReplica := owned.cliquesByReplica()
	decisions, isFrozen := make([]lifecycle.UnitDecision, max(set.Spec.Replicas, 0)), workload.FrozenReplicas(set)
	err := children.ForEach(len(decisions), maxParallel, func(i int) (err error) {
		decisions[i], err = r.decideUnit(ctx, set, i, owned, byReplica[i], replace[i], now)
		if err == nil && isFrozen(i) {
			decisions[i] = decisions[i].Frozen(workload.SetAttempt(set, i))
		}
		return err
	})
	return decisions, err
}

func (r *Reconciler) decideUnit(ctx context.Context, set *v1alpha1.PodCliqueSet, i int, owned ownedObjects, cliques []*v1alpha1.PodClique, replace lifecycle.Replacement, now time.Time) (lifecycle.UnitDecision, error) {
	attempt := workload.SetAttempt(set, i)
	groups := owned.groupsOf(i)
	standalone, members := workload.UnitNames(set, i, groups)
	names := slices.Concat(standalone, members)
	if !replace.Requested() && workload.IsUnitComplete(attempt, names, cliques) {
		return lifecycle.UnitDecision{Attempt: attempt}, nil
	}
	decide := func(groups []*v1alpha1.PodCliqueScalingGroup, cliques []*v1alpha1.PodClique, pods []*corev1.Pod, replace lifecycle.Replacement) lifecycle.UnitDecision {
		podGroup := owned.podGroups[naming.PodGroupName(set.Name, i)]
		unit := workload.SetUnitFacts(set, i, names, cliques, pods, groups, podGroup, r.children.Unreachable(ctx))
		unit.Replace = replace
		return lifecycle.DecideUnit(unit, now)
	}
	cliques, pods, err := r.children.SetReplica(ctx, set.Namespace, set.Name, i)
	if err != nil {
		return lifecycle.UnitDecision{}, err
	}
	d := decide(groups, cliques, pods, replace)
	creates := slices.ContainsFunc(d.Create, func(name string) bool { return slices.Contains(standalone, name) }) ||
		len(d.Create) > 0 && attempt.Set > 0 && owned.podGroups[naming.PodGroupName(set.Name, i)] == nil // a PodGroup
	if d.Attempt == attempt && !(creates && owned.exists(set.Name, i)) {
		return d, nil
	}
	return r.confirmUnit(ctx, set, i, groups, replace, decide, now)
}

// cliquesByReplica returns the PodCliques by the replica of the set in their labels.
func (o ownedObjects) cliquesByReplica() map[int][]*v1alpha1.PodClique {
	byReplica := map[int][]*v1alpha1.PodClique{}
	for _, c := range o.children().Cliques {
		i := naming.LabelIndex(c.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
		byReplica[i] = append(byReplica[i], c)
	}
	return byReplica
}

// replacements returns the objects to delete of replicas that are replaced: PodGroups of an earlier attempt, and the
// PodCliques in the decisions if the replica's scaling groups have its attempt (raisedGroups, by replica).
func replacements(set *v1alpha1.PodCliqueSet, decisions []lifecycle.UnitDecision, raisedGroups []bool, owned ownedObjects) []removal {
	cliques := owned.children().Cliques
	var removals []removal
	for i, d := range decisions {
		var gone removal
		if pg := owned.podGroups[naming.PodGroupName(set.Name, i)]; isEarlier(pg, d.Attempt) && pg.DeletionTimestamp == nil {
			gone.podGroup = pg
		}
		for _, name := range d.Delete {
			if c := cliques[name]; c != nil && raisedGroups[i] && workload.Attempt(c).Believed(d.Attempt.Set).Set < d.Attempt.Set {
				gone.rest = append(gone.rest, client.Object(c))
			}
		}
		if gone.podGroup != nil || len(gone.rest) > 0 {
			removals = append(removals, gone)
		}
	}
	return removals
}

// isEarlier reports whether a PodGroup was created for an earlier attempt of its replica. pg may be nil.
func isEarlier(pg *v2alpha2.PodGroup, attempt lifecycle.Attempt) bool {
	return pg != nil && workload.Attempt(pg).Believed(attempt.Set).Set < attempt.Set
}
