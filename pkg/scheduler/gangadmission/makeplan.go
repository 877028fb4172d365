// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/backlog"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/topology"
)

// plan searches for nodes for the pods that the gang needs next, and puts a plan in force if it finds one. It reports
// whether a plan is in force. It runs in the scheduling loop, on the cycle's snapshot; a failed attempt leaves only
// its refusal.
func (pl *Admission) plan(ctx context.Context, work *gangs.Work, nodes []fwk.NodeInfo) bool {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "podGroup", work.Gang, "task", work.Task)
	start := pl.gangs.clock.Now()
	result := "refused"
	defer func() {
		plans.WithLabelValues(work.Task.String(), result).Inc()
		planDuration.WithLabelValues(result).Observe(pl.gangs.clock.Since(start).Seconds())
	}()

	if pl.gangs.released.hasAny(work.Pods) {
		logger.V(2).Info("Pods of the gang are not back in the queue, planning again soon")
		result = "stale"
		pl.registry.PostponeAttempt(work.Gang, start)
		return false
	}
	if gates := pl.gatedByOthers(ctx, work); len(gates) > 0 {
		logger.V(2).Info("Gang has pods that another plugin gates, planning again without them", "pods", len(gates))
		result = "stale"
		pl.gangs.recordGates(logger, gates)
		return false
	}
	snapshot, limit, refused := pl.prepare(ctx, work, nodes, start)
	if refused != nil {
		pl.refuse(logger, work, refused.why, refused.attempt)
		return false
	}
	work.TakesMoreThanRoom = snapshot.TakesMoreThanRoom()
	placements, refusal, cut := pl.place(work, snapshot, limit)
	if refusal != nil {
		deallocateOwn(ctx, pl.profile, work.Pods...)
		for plugin := range snapshot.RefusingPlugins() {
			planRefusals.WithLabelValues(plugin).Inc()
		}
		if cut {
			result = "cut"
		}
		a := backlog.Attempt{
			Problem: work.Problem, Classes: work.Classes, RefusedBy: snapshot.RefusedBy, Pods: work.Pods, VolumeClaim: snapshot.VolumeClaim,
			Domains: domainsOf(work, snapshot), Nodes: nodes, Task: work.Task, Asker: work.Asker(),
			Took: pl.gangs.clock.Since(start), Cut: cut, Progress: work.Progress, Until: snapshot.KnownUntil(),
		}
		if !cut {
			pl.makeRoom(logger, work, snapshot, limit, &a)
			pl.promiseRoom(logger, work, snapshot, limit, &a)
		}
		pl.refuse(logger, work, *refusal, a)
		return false
	}
	pl.orderByRank(work, pl.levelsOf(work), snapshot.LabelsOf, placements)
	if err := shareClaims(ctx, pl.profile, work, snapshot, placements); err != nil {
		deallocateOwn(ctx, pl.profile, work.Pods...)
		pl.refuse(logger, work, podgroup.Refusal{Reason: v2alpha2.ReasonClaimsNotReady, Message: err.Error()}, backlog.Attempt{Took: pl.gangs.clock.Since(start), Cut: true})
		return false
	}
	if !pl.commit(ctx, logger, work, snapshot, placements, start) {
		result = "stale"
		return false
	}
	result = "committed"
	return true
}

// refusedEarly is a refusal without a look at the nodes.
type refusedEarly struct {
	why     podgroup.Refusal
	attempt backlog.Attempt
}

// levelsOf returns the levels of the Topologies that the gang may name, nil of one that is not known.
func (pl *Admission) levelsOf(work *gangs.Work) func(name string) topology.Levels {
	return podgroup.WithListed(work.Group, pl.gangs.topologies.LevelsOf)
}

// prepare determines the topology levels of the work, and returns the state of the cluster for its plan, and its
// deadline.
func (pl *Admission) prepare(ctx context.Context, work *gangs.Work, nodes []fwk.NodeInfo, start time.Time) (*kubescheduler.Snapshot, *deadline, *refusedEarly) {
	required, preferred, unknown := podgroup.Levels(work.Tree, &work.Group.Spec, pl.levelsOf(work), pl.gangs.topologies.Unread())
	if unknown != nil {
		return nil, nil, &refusedEarly{*unknown, backlog.Attempt{Took: pl.gangs.clock.Since(start), OwnChange: true}}
	}
	work.SetLevels(required, preferred)
	snapshot, limit, err := pl.newSnapshot(ctx, work, nodes, start)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to plan a gang", "podGroup", work.Gang)
		why := podgroup.Refusal{Reason: v2alpha2.ReasonSchedulerError, Message: err.Error()}
		return nil, nil, &refusedEarly{why, backlog.Attempt{Took: time.Second, Cut: true}}
	}
	return snapshot, limit, nil
}

// domainsOf returns what the topology levels that a gang requires mean for its next attempt.
func domainsOf(work *gangs.Work, snapshot *kubescheduler.Snapshot) backlog.Domains {
	if len(work.Problem.Required) == 0 {
		return backlog.Domains{}
	}
	d := backlog.Domains{ValueOf: snapshot.AreaValue}
	if work.Task == gangs.Minimum {
		d.Needs = placement.DomainNeeds(work.Problem, snapshot)
		return d
	}
	d.Pinned = placement.PinnedDomains(snapshot, work.Problem, work.Singles)
	return d
}

// reliedLabels returns, by planned node and by node on which pods of the gang run, its labels of the topology levels
// that the gang requires: if one changes before the pods are bound, the plan is not bound. nil: there are none.
func reliedLabels(work *gangs.Work, snapshot *kubescheduler.Snapshot, placements []placement.Placement) map[string]map[string]string {
	keys := sets.New[string]()
	for _, level := range work.Problem.Required {
		keys.Insert(strings.Split(level, ",")...)
	}
	if keys.Len() == 0 {
		return nil
	}
	relied := map[string]map[string]string{}
	rely := func(node string) {
		if relied[node] == nil {
			relied[node] = snapshot.LabelsOf(node, keys)
		}
	}
	for i := range placements {
		rely(placements[i].Node)
	}
	for _, nodes := range work.Problem.Nodes {
		for _, node := range nodes {
			rely(node)
		}
	}
	return relied
}

// deadline is the end of the time for a plan.
type deadline struct {
	clock       clock.PassiveClock
	limit       time.Duration
	end         time.Time
	preferences time.Time // end of the time for preferred topology levels
}

func (d *deadline) isOver() bool { return d.clock.Now().After(d.end) }

// restart sets the end for a search that begins now. It has twice the time for each of the last cuts, and for each time
// that it has started over, up to maxCuts: otherwise a search that takes longer would be repeated without end.
func (d *deadline) restart(now time.Time, cuts int) { d.end = now.Add(d.limit << min(cuts, maxCuts)) }

// addPreferences adds half of planDeadline, for preferred topology levels, so that what does without them has all of
// its time.
func (d *deadline) addPreferences(now time.Time) {
	d.preferences, d.end = now.Add(d.limit/2), d.end.Add(d.limit/2)
}

func (d *deadline) preferencesExpired() bool { return d.clock.Now().After(d.preferences) }

const maxCuts = 4

// newSnapshot divides the pods of the work into classes, and returns the state of the cluster for their plan, and its
// deadline.
func (pl *Admission) newSnapshot(ctx context.Context, work *gangs.Work, nodes []fwk.NodeInfo, start time.Time) (*kubescheduler.Snapshot, *deadline, error) {
	var c kubescheduler.Classes
	work.Reclass(func(pods []*corev1.Pod, classes []int) ([]int, []*corev1.Pod) {
		c = pl.filterCache.Classify(pl.profile, nodes, pods, classes)
		return c.Of, c.Pods
	})
	limit := &deadline{clock: pl.gangs.clock, limit: pl.args.PlanDeadline.Duration}
	limit.restart(start, work.Progress.Stuck+work.Progress.Again)
	if len(work.Problem.Preferred) > 0 {
		limit.addPreferences(start)
	}
	snapshot, err := kubescheduler.NewSnapshot(ctx, pl.profile, nodes, work.Classes, kubescheduler.Options{
		Cache: pl.filterCache, Refusals: pl.gangs.refusals, Unwinds: pl.gangs.isUnwinding, Now: start, Expired: limit.isOver,
		Pods: c.Size, Members: c.Members, SharedClaims: c.SharedClaims, SharedVolumes: c.SharedVolumes,
		Reserved: pl.registry.Reservations(), Asker: work.Asker(), Leaves: work.Leaves(),
	})
	return snapshot, limit, err
}

// commit puts a plan in force. It returns false if the plan is stale.
func (pl *Admission) commit(ctx context.Context, logger klog.Logger, work *gangs.Work, snapshot *kubescheduler.Snapshot, placements []placement.Placement, start time.Time) bool {
	work.Relied = reliedLabels(work, snapshot, placements)
	room := snapshot.RoomOf(placements)
	work.Lacking = func() string { return pl.gangs.backlog.Lacking(klog.Background(), room) }
	plan, why := pl.registry.CommitPlan(work, placements, pl.gangs.clock.Now())
	if plan == nil {
		deallocateOwn(ctx, pl.profile, work.Pods...)
		logger.V(2).Info("Plan is stale", "reason", why)
		return false
	}
	pl.gangs.committed = true
	pl.gangs.binds.expect()
	pl.gangs.backlog.RoomClaimed()
	planPods.Observe(float64(len(placements)))
	logger.V(2).Info("Plan is in force", "plan", plan.ID, "pods", len(placements), "took", pl.gangs.clock.Since(start))
	pl.gangs.apply(logger, gangs.Effects{Dirty: []gangs.Key{work.Gang}})
	return true
}

// place searches for nodes until the time is over. Without a plan it returns the reason, and whether only time was
// lacking.
func (pl *Admission) place(work *gangs.Work, snapshot *kubescheduler.Snapshot, limit *deadline) (placements []placement.Placement, refusal *podgroup.Refusal, cut bool) {
	placements, short, cut := pl.findNodes(work, snapshot, placement.Budget{
		Placements: int(pl.args.PlanBudget), Expired: limit.isOver, PreferencesExpired: limit.preferencesExpired,
	})
	if len(placements) > 0 {
		return placements, nil, false
	}
	return nil, pl.explain(work, snapshot, short), cut
}

// findNodes searches for nodes within the budget. Without a plan it returns what the minimum lacks, nil if the work is
// not about the minimum, and whether only time was lacking.
func (pl *Admission) findNodes(work *gangs.Work, snapshot *kubescheduler.Snapshot, budget placement.Budget) (placements []placement.Placement, short *placement.Shortfall, cut bool) {
	switch work.Task {
	case gangs.LostUnit, gangs.SurplusUnit:
		placements, cut = placeUnit(work, snapshot, budget)
	case gangs.SurplusSingle:
		placements = placement.Singles(work.Problem, snapshot, budget)
	default:
		placements, short = pl.placeMinimum(work, snapshot, budget)
		if len(placements) == 0 && work.Task == gangs.Refill {
			// No sub-group needs to be admitted again, or none can be: place single pods of admitted sub-groups.
			placements = work.Limit(placement.Singles(work.Singles, snapshot, budget))
		}
		if len(placements) == 0 && short == nil {
			// Another sub-group can replace one that lost its pods, and a partially bound sub-group is completed.
			placements, cut = placeUnit(work, snapshot, budget)
		}
	}
	return placements, short, cut || short != nil && short.Cut
}

// explain returns why there is no plan. short: what findNodes returned.
func (pl *Admission) explain(work *gangs.Work, snapshot *kubescheduler.Snapshot, short *placement.Shortfall) *podgroup.Refusal {
	var why podgroup.Refusal
	if short != nil {
		why = podgroup.Explain(work.Problem, snapshot, short)
	} else {
		why = podgroup.ExplainSurplus(work.Problem, work.Singles, snapshot)
	}
	why = podgroup.WithFormerNodes(why, formerNodes(work, snapshot))
	if podgroup.MayLackDomain(why) {
		if labels, found := snapshot.FindUnnested(podgroup.UnorderedLabels(work.Tree, work.Group)); found {
			why = podgroup.WithUnnestedLabels(why, labels)
		}
	}
	return &why
}

// formerNodes returns the nodes of the lost pods that a Refill replaces, the latest first.
func formerNodes(work *gangs.Work, snapshot *kubescheduler.Snapshot) []podgroup.FormerNode {
	var nodes []podgroup.FormerNode
	for _, lost := range slices.Backward(work.LostFrom) {
		waiting := work.Singles.Pods[lost.Leaf]
		if len(waiting) == 0 {
			waiting = work.Problem.Pods[lost.Leaf]
		}
		if len(waiting) == 0 {
			continue // its replacement does not exist yet
		}
		n := snapshot.FormerNode(waiting[0].Class, lost.Node)
		n.Pods = lost.Pods
		if i := slices.IndexFunc(nodes, func(n podgroup.FormerNode) bool { return n.Name == lost.Node }); i >= 0 { // of another leaf
			nodes[i].Pods += n.Pods
			nodes[i].HasRoom = nodes[i].HasRoom || n.HasRoom
			continue
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// placeMinimum continues with the choices that earlier attempts, which were cut short, have not tried.
func (pl *Admission) placeMinimum(work *gangs.Work, snapshot *kubescheduler.Snapshot, budget placement.Budget) ([]placement.Placement, *placement.Shortfall) {
	before := work.Progress
	budget.Skip, work.Progress = before.Tried, gangs.Progress{}
	placements, short := placement.Minimum(work.Problem, snapshot, budget)
	switch {
	case short == nil:
		work.Progress.Stuck = before.Stuck // if units are placed next
	case short.Cut:
		work.Progress = progressAfterCut(before, short.Tried)
	case budget.Skip > 0: // the choices that were skipped may succeed by now, or with more time
		short.Cut = true
		if work.Progress.Again = before.Again; len(work.Problem.Required) > 0 { // among them may be domains that take longer
			work.Progress.Again++
		}
	}
	return placements, short
}

// placeUnit places a unit of surplus. An attempt that is cut short begins with the first unit again.
func placeUnit(work *gangs.Work, snapshot *kubescheduler.Snapshot, budget placement.Budget) (placements []placement.Placement, cut bool) {
	unit := placement.Unit(work.Problem, snapshot, budget)
	if work.Progress.Tried = 0; !unit.Cut {
		work.Progress.Stuck = 0
	} else {
		work.Progress.Stuck++
	}
	return unit.Placements, unit.Cut
}

// progressAfterCut returns the progress after an attempt that was cut short when so many choices had been tried,
// including those before it. A choice that takes more than the longest time is left out.
func progressAfterCut(before gangs.Progress, tried int) gangs.Progress {
	switch {
	case tried > before.Tried:
		return gangs.Progress{Tried: tried, Again: before.Again}
	case before.Stuck+before.Again < maxCuts:
		return gangs.Progress{Tried: before.Tried, Stuck: before.Stuck + 1, Again: before.Again}
	}
	return gangs.Progress{Tried: before.Tried + 1, Again: before.Again}
}

// refuse records why there is no plan, and which changes make another attempt worthwhile.
func (pl *Admission) refuse(logger klog.Logger, work *gangs.Work, why podgroup.Refusal, a backlog.Attempt) {
	logger.V(2).Info("Gang does not fit", "reason", why.Reason, "message", why.Message)
	a.Gang = work.Gang
	pl.gangs.refuse(logger, a, why)
}
