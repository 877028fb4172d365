package gangadmission

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// plan looks for nodes for what the gang needs next, and puts what it finds in force. It reports whether a plan is in
// force. Runs in the scheduling loop, on the cycle's snapshot; nothing of a failed attempt remains but its verdict.
func (pl *Admission) plan(ctx context.Context, work *gangstate.Work, nodes []fwk.NodeInfo) bool {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "podGroup", work.Gang, "task", work.Task)
	start := time.Now()
	result := "refused"
	defer func() {
		plans.WithLabelValues(work.Task.String(), result).Inc()
		planDuration.WithLabelValues(result).Observe(time.Since(start).Seconds())
	}()

	if err := pl.order(); err != nil { // only possible without Attach
		logger.Error(err, "Planning is not allowed")
		pl.refuse(logger, work, podgroup.Refusal{Reason: v2alpha2.ReasonSchedulerError, Message: err.Error()})
		return false
	}
	var sizes []int
	work.Reclass(func(pods []*corev1.Pod, classes []int) ([]int, []*corev1.Pod) {
		c := pl.verdicts.Classify(pl.framework, nodes, pods, classes)
		sizes = c.Size
		return c.Of, c.Pods
	})
	world, err := kubescheduler.NewSnapshot(ctx, pl.framework, nodes, work.Classes,
		kubescheduler.Options{Cache: pl.verdicts, Avoid: pl.gangs.avoid.of(work.Gang, start), Pods: sizes, Now: start})
	if err != nil {
		logger.Error(err, "Planning failed")
		pl.refuse(logger, work, podgroup.Refusal{Reason: v2alpha2.ReasonSchedulerError, Message: err.Error()})
		return false
	}
	var placements []placement.Placement
	switch work.Task {
	case gangstate.Surplus:
		placements = placement.Surplus(work.Problem, world)
	case gangstate.Refill:
		placements = placement.Surplus(work.Singles, world)
	}
	if len(placements) == 0 && work.Task != gangstate.Surplus {
		var short *placement.Shortfall
		placements, short = placement.Minimum(work.Problem, world, placement.Budget{Placements: int(pl.args.PlanBudget)})
		if short != nil {
			pl.refuse(logger, work, podgroup.Explain(work.Problem, world, short))
			return false
		}
		if len(placements) == 0 { // refill: another sub-group can stand in for one that lost its pods
			placements = placement.Surplus(work.Problem, world)
		}
	}
	if len(placements) == 0 {
		pl.refuse(logger, work, podgroup.ExplainSurplus(work.Problem, work.Singles, world))
		return false
	}
	plan, why := pl.registry.Commit(work, placements, time.Now())
	if plan == nil {
		result = "stale"
		logger.V(2).Info("Plan is stale", "why", why)
		return false
	}
	result = "committed"
	planPods.Observe(float64(len(placements)))
	logger.V(2).Info("Plan is in force", "plan", plan.ID, "pods", len(placements), "took", time.Since(start))
	pl.gangs.apply(logger, gangstate.Effects{Dirty: []gangstate.Key{work.Gang}})
	if !pl.gangs.attached {
		// Nobody hands the members out: they come through the queue, ahead of everything else.
		members := map[string]*corev1.Pod{}
		for _, p := range placements {
			pod := work.Pods[p.Pod.ID]
			members[pod.Namespace+"/"+pod.Name] = pod
		}
		pl.handle.Activate(logger, members)
	}
	return true
}

// refuse records why there is no plan.
func (pl *Admission) refuse(logger klog.Logger, work *gangstate.Work, v podgroup.Refusal) {
	logger.V(2).Info("Gang does not fit", "reason", v.Reason, "message", v.Message)
	pl.gangs.apply(logger, pl.registry.Refuse(work.Gang, v, time.Now()))
}
