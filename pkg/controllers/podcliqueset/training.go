// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// readReplica reads the PodCliques and the pods of one replica of a set, from the cache or from the API server.
type readReplica func(ctx context.Context, namespace, set string, i int) ([]*v1alpha1.PodClique, []*corev1.Pod, error)

// nodeReader returns a function, for one goroutine, that reports whether a node does not respond.
type nodeReader func(context.Context) func(node string) bool

// decideTraining returns the decision on a Training workload; nil for Inference. Irreversible decisions are made
// by confirmTraining.
func (r *Reconciler) decideTraining(ctx context.Context, set *v1alpha1.PodCliqueSet, owned ownedObjects, now time.Time) (*lifecycle.TrainingOutcome, error) {
	if !set.Spec.IsTraining() {
		return nil, nil
	}
	outcome, err := r.trainingOutcome(ctx, set, owned, r.children.SetReplica, r.children.Unreachable, now)
	if err != nil {
		return nil, err
	}
	isFinal := outcome.Phase == lifecycle.PhaseSucceeded || outcome.Phase == lifecycle.PhaseFailed
	if outcome.Failure == "" && len(outcome.Restart) == 0 && (!isFinal || string(set.Status.Phase) == string(outcome.Phase)) {
		return &outcome, nil
	}
	return r.confirmTraining(ctx, set, owned, outcome, now)
}

func (r *Reconciler) trainingOutcome(ctx context.Context, set *v1alpha1.PodCliqueSet, owned ownedObjects, read readReplica, unreachable nodeReader, now time.Time) (lifecycle.TrainingOutcome, error) {
	n := int(max(set.Spec.Replicas, 0))
	replicas, pods, errs := make([]lifecycle.TrainingReplica, n), make([][]*corev1.Pod, n), make([]error, n)
	if err := children.ForEach(n, maxParallel, func(i int) error {
		var cliques []*v1alpha1.PodClique
		if cliques, pods[i], errs[i] = read(ctx, set.Namespace, set.Name, i); errs[i] != nil {
			return errs[i]
		}
		groups := owned.groupsOf(i)
		own := workload.OwnershipOf(set, groups, cliques)
		cliques, pods[i] = own.Cliques(cliques), own.Pods(pods[i])
		standalone, members := workload.UnitNames(set, i, groups)
		complete := len(groups) == len(set.Spec.Template.PodCliqueScalingGroupConfigs)
		replicas[i] = workload.TrainingReplicaFacts(set, i, slices.Concat(standalone, members), complete, cliques)
		replicas[i] = workload.WithNodes(replicas[i], cliques, pods[i], unreachable(ctx), r.children.SilentMarker(ctx, set, now), now)
		return nil
	}); err != nil {
		return lifecycle.TrainingOutcome{}, err
	}
	facts := workload.TrainingFacts(set, replicas, slices.Concat(pods...), r.children.Unreachable(ctx))
	return lifecycle.DecideTraining(facts, now), nil
}

// groupsOf returns the existing scaling groups of replica i, in no order.
func (o ownedObjects) groupsOf(i int) []*v1alpha1.PodCliqueScalingGroup {
	var groups []*v1alpha1.PodCliqueScalingGroup
	for _, g := range o.groups {
		if naming.LabelIndex(g.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex) == i {
			groups = append(groups, g)
		}
	}
	return groups
}

// onlyExisting returns the replica without the objects that do not exist.
func (r replica) onlyExisting(owned ownedObjects) replica {
	if r.podGroup != nil && owned.podGroups[r.podGroup.Name] == nil {
		r.podGroup = nil
	}
	if owned.services[r.service.Name] == nil {
		r.service = nil
	}
	r.cliques = slices.DeleteFunc(r.cliques, func(c *v1alpha1.PodClique) bool { return owned.cliques[c.Name] == nil })
	r.groups = slices.DeleteFunc(r.groups, func(g *v1alpha1.PodCliqueScalingGroup) bool { return owned.groups[g.Name] == nil })
	r.hpas = nil // a Training workload has none
	return r
}

// emitOutcome emits the events of a Training workload, after its status was written.
func (r *Reconciler) emitOutcome(before, after *v1alpha1.PodCliqueSet, o *lifecycle.TrainingOutcome) {
	if o == nil {
		return
	}
	event := func(kind, reason, action, note string, arguments ...any) {
		r.recorder.Eventf(after, nil, kind, reason, action, note, arguments...)
	}
	count := before.Status.RestartCount
	for _, a := range after.Status.ReplicaAttempts {
		if a.Attempt == workload.ReplicaAttempt(before.Status.ReplicaAttempts, int(a.Index)) {
			continue
		}
		why := message.Truncate(a.Message, message.MaxCondition)
		switch a.Reason {
		case v1alpha1.ReasonPreemption:
			event(corev1.EventTypeNormal, v1alpha1.EventReplicaPreempted, v1alpha1.ActionReplaceReplica,
				"Restarting replica %d after a preemption, which uses no restart (%d of %d are used): %s", a.Index, after.Status.RestartCount, maxRestarts(after), why)
		case v1alpha1.ReasonNodesLost:
			event(corev1.EventTypeNormal, v1alpha1.EventReplicaRestarting, v1alpha1.ActionReplaceReplica,
				"Restarting replica %d after the loss of nodes, which uses no restart (%d of %d are used%s): %s", a.Index, after.Status.RestartCount, maxRestarts(after), startsAt(a), why)
		case v1alpha1.ReasonRestart:
			count++
			event(corev1.EventTypeNormal, v1alpha1.EventReplicaRestarting, v1alpha1.ActionReplaceReplica,
				"Restarting replica %d (restart %d of %d%s): %s", a.Index, count, maxRestarts(after), startsAt(a), why)
		}
	}
	switch {
	case o.Failure != "" && workload.FailedReason(before) == "":
		event(corev1.EventTypeWarning, string(o.Failure), v1alpha1.ActionFinish, "The workload fails, and its pods are deleted: %s", o.Message)
	case o.Phase == lifecycle.PhaseSucceeded && before.Status.Phase != v1alpha1.PodCliqueSetPhaseSucceeded:
		event(corev1.EventTypeNormal, v1alpha1.EventWorkloadSucceeded, v1alpha1.ActionFinish, "%s", o.Message)
	}
}

// startsAt returns the clause about when the pods of an attempt are created, "": immediately.
func startsAt(a v1alpha1.ReplicaAttempt) string {
	if a.NotBefore == nil {
		return ""
	}
	return ", not before " + lifecycle.Timestamp(a.NotBefore.Time)
}

func maxRestarts(set *v1alpha1.PodCliqueSet) int32 {
	if t := set.Spec.TrainingSpec; t != nil && t.MaxRestarts != nil {
		return *t.MaxRestarts
	}
	return 0
}
