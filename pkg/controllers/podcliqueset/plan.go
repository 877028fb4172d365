// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// observation is what one pass knows about a set.
type observation struct {
	live     *v1alpha1.PodCliqueSet // as it was read, with the revision of its template recorded
	set      *v1alpha1.PodCliqueSet // a copy with defaults
	revision *workload.Revision     // nil: the set is not reconciled, because of invalid
	invalid  error
	facts    []lifecycle.SetReplica // of the desired replicas
	topology workload.Topology      // what the topology constraints refer to
	owned    ownedObjects
	cliques  []*v1alpha1.PodClique             // of owned, listed
	groups   []*v1alpha1.PodCliqueScalingGroup // of owned, listed
}

// observeSet returns what a pass knows about a set. A new template is recorded: the objects of the set follow the
// revision in its status. nil: the set is gone or being deleted.
func (r *Reconciler) observeSet(ctx context.Context, live *v1alpha1.PodCliqueSet, owned ownedObjects, now time.Time) (*observation, error) {
	seen, err := r.observe(ctx, live, owned, now)
	if err != nil {
		return nil, err
	}
	newest, err := r.liveIfMissing(ctx, seen.live, seen.facts)
	switch {
	case newest == nil || err != nil:
		return nil, err
	case newest == seen.live:
		return seen, nil
	}
	return r.observe(ctx, newest, owned, now)
}

// observe returns what the objects say about a set. The set is invalid if it does not pass validation although it
// passed admission, or if the revision of its template cannot be stored: existing objects are left alone then.
func (r *Reconciler) observe(ctx context.Context, live *v1alpha1.PodCliqueSet, owned ownedObjects, now time.Time) (*observation, error) {
	seen := &observation{live: live, owned: owned}
	if errs, _ := validation.ValidatePodCliqueSet(live); len(errs) > 0 {
		seen.invalid = &children.InvalidError{Err: fmt.Errorf("invalid, and nothing is created or deleted until it is corrected: %w", errs.ToAggregate())}
	} else if recorded, revision, err := r.withRevision(ctx, live, owned, now); err == nil {
		seen.live, seen.revision = recorded, revision
	} else if apierrors.IsConflict(err) {
		return nil, err
	} else {
		seen.invalid = err // reported in the status
	}
	seen.set = seen.live.DeepCopy()
	v1alpha1.SetDefaults(seen.set, r.options.SchedulerName)
	number, templates := int64(0), lifecycle.Templates(nil)
	if seen.revision != nil {
		number, templates = seen.revision.Number, seen.revision.Templates()
	}
	seen.cliques, seen.groups = owned.listed()
	seen.facts = workload.SetReplicasFacts(seen.set, number, templates, seen.cliques, seen.groups)
	podGroups := owned.presentPodGroups(seen.set)
	for i := range seen.facts {
		if pg := podGroups[naming.PodGroupName(seen.set.Name, i)]; pg != nil {
			seen.facts[i].Preempted, seen.facts[i].Unbound = workload.PreemptionOf(pg), workload.UnboundCause(pg)
		}
	}
	var err error
	seen.topology, err = r.readTopology(ctx, seen.set)
	return seen, err
}

// liveIfMissing returns the set as it was read, or, if an object of a set that was complete before is missing, as it
// is in the API server: a recreated object gets the replicas that the status records, which may not be in the cache
// yet. nil: the set is gone or being deleted.
func (r *Reconciler) liveIfMissing(ctx context.Context, set *v1alpha1.PodCliqueSet, facts []lifecycle.SetReplica) (*v1alpha1.PodCliqueSet, error) {
	if set.Status.ObservedGeneration == 0 ||
		!slices.ContainsFunc(facts, func(r lifecycle.SetReplica) bool { return len(r.Missing) > 0 }) {
		return set, nil
	}
	live := &v1alpha1.PodCliqueSet{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(set), live); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the set from the API server: %w", err)
	}
	if live.UID != set.UID || live.DeletionTimestamp != nil {
		return nil, nil
	}
	return live, nil
}

// setPlan is what one pass decides about a set. That of a set that is not reconciled has no units.
type setPlan struct {
	current          workload.Children            // the objects of the set that exist
	units            []lifecycle.UnitDecision     // of the desired replicas
	raised           map[int]lifecycle.Raised     // attempts of replicas that are replaced
	termination      lifecycle.Termination        // of replicas whose minimum is breached; of Training, their restarts
	training         *lifecycle.TrainingOutcome   // nil: nothing new, or it is an Inference workload
	update           *lifecycle.SetUpdateDecision // nil: a Training workload
	holds            map[int]*workload.Hold       // replicas that keep an earlier template
	awaitsRecord     []bool                       // of each replica: the status does not say yet that the update has reached it
	recordedReplicas []v1alpha1.RecordedReplicas
}

// decideSet decides what to do about a set. It changes nothing but what seen says: why a replica waits, and that no
// replica is being updated to a template that is rejected.
func (r *Reconciler) decideSet(ctx context.Context, seen *observation, now time.Time) (*setPlan, error) {
	plan := &setPlan{recordedReplicas: seen.live.Status.RecordedReplicas}
	if seen.revision == nil {
		return plan, nil
	}
	set, owned := seen.set, seen.owned
	plan.current = owned.children()
	plan.current.PodGroups, plan.current.Topology = owned.presentPodGroups(set), seen.topology
	plan.termination = lifecycle.DecideSetTermination(seen.facts, now)
	var err error
	if plan.training, err = r.decideTraining(ctx, set, owned, now); err != nil {
		return nil, err
	}
	if plan.training != nil {
		plan.termination.Replicas, plan.termination.Next = plan.training.Restart, plan.training.NextRestart
	}
	if plan.units, err = r.decideUnits(ctx, set, owned, plan.termination.Replicas, now); err != nil {
		return nil, err
	}
	isFrozen := workload.FrozenReplicas(set)
	for i := range plan.units {
		if why := workload.TopologyWait(set, i, plan.current); why != "" && !isFrozen(i) {
			plan.units[i] = plan.units[i].Pause(why)
		}
	}
	plan.raised = lifecycle.RaisedAttempts(plan.units, func(i int) lifecycle.Attempt { return workload.SetAttempt(set, i) })
	for i, raised := range plan.raised { // the PodGroup that tells of a preemption is deleted with its attempt
		if p := seen.facts[i].Preempted; p.Whole && raised.Reason == lifecycle.ReplacedTermination {
			raised.Message += "; " + p.Text
			plan.raised[i] = raised
		}
	}
	for i := range plan.units {
		seen.facts[i].Waits = plan.units[i].Note()
	}
	rejected, err := r.tryTemplate(ctx, set, seen.revision, owned, now)
	if err != nil {
		return nil, err
	}
	plan.update = r.decideUpdate(set, seen.facts, seen.cliques, seen.groups, rejected, now) // an update does not end while a replica waits for pods of an earlier attempt
	if rejected != "" {
		// No child gets a turn, and none is told the revision, also not of the replica that was being updated.
		set.Status.UpdateProgress.CurrentlyUpdating, set.Status.UpdateProgress.ReachedIndices = nil, ""
	}
	plan.awaitsRecord = awaitRecord(seen.live, plan.update, len(plan.units))
	plan.recordedReplicas = workload.RecordedReplicas(set, plan.current)
	plan.holds, err = r.heldReplicas(ctx, set, seen.facts, owned, rejected != "")
	return plan, err
}

// awaitRecord returns for each of n replicas whether the update has reached it and the status of the set does not
// record that yet. Its objects are created afterwards: otherwise a pass after a crash would take a new replica of which
// one PodClique exists for one that was not reached, and create the others from the previous template. d may be nil.
func awaitRecord(live *v1alpha1.PodCliqueSet, d *lifecycle.SetUpdateDecision, n int) []bool {
	waits := make([]bool, n)
	if d != nil {
		recorded := workload.SetProgress(live)
		for i := range waits {
			waits[i] = d.Progress.NewlyReaches(i, recorded)
		}
	}
	return waits
}

// requeueAfter returns the time until the plan has to be made again, 0: an event will tell. progressed: the pass has
// changed the recorded progress of an update, so that the next one sets the annotations of the children.
func (p *setPlan) requeueAfter(progressed bool, now time.Time) time.Duration {
	after := lifecycle.Sooner(lifecycle.RequeueAfter(p.units, len(p.raised) > 0), p.termination.RequeueAfter(now))
	if p.update != nil {
		if progressed {
			after = time.Millisecond
		}
		after = lifecycle.Sooner(after, p.update.RequeueAfter)
	}
	if p.training != nil {
		if p.training.Again || p.training.Failure != "" {
			after = time.Millisecond
		}
		after = lifecycle.Sooner(after, p.training.RequeueAfter)
	}
	return after
}
