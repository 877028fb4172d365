// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/pkg/scheduler/backlog"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// makeRoom decides, after an attempt without a plan, which pods of lower priority end so that the gang can start, or
// confirms such a decision (docs/decisions, G21 to G24). It changes when the attempt is repeated, and leaves the
// snapshot as it was.
func (pl *Admission) makeRoom(logger klog.Logger, work *gangs.Work, snapshot *kubescheduler.Snapshot, limit *deadline, a *backlog.Attempt) {
	now := pl.gangs.clock.Now()
	repeatAt := func(t time.Time) {
		if !t.IsZero() && (a.Until.IsZero() || t.Before(a.Until)) {
			a.Until = t
		}
	}
	step, next := pl.registry.NextPreemptionStep(work, now)
	if step == gangs.PreemptNothing {
		repeatAt(next)
		return
	}
	s, decision, result := pl.searchVictims(logger, work, snapshot, limit, step, now)
	took := pl.gangs.clock.Since(now)
	a.Took += took
	switch result {
	case hopeless:
		final := step != gangs.PreemptConfirm && !s.mayChange
		repeatAt(pl.registry.RecordHopeless(work.Gang, s.why, final, a.Took, now))
	case cut:
		repeatAt(pl.registry.RecordCut(work.Gang, took, now))
		a.Cut = true
	case unneeded:
		repeatAt(now.Add(unneededPause)) // others may use the room
	case aborts: // the room is free when their members are released; others of lower priority must not come before
		logger.V(2).Info("Gang aborts plans of lower priority", "plans", len(s.inTheWay), "took", took)
		pl.gangs.apply(logger, pl.registry.AbortPlans(work, s.inTheWay, now))
		repeatAt(now.Add(abortPause))
	case decided:
		pl.gangs.apply(logger, pl.registry.RecordPreemption(work, s.describe(decision), now))
	}
}

// searchVictims searches for victims for the work, at its priorities from the highest on. It leaves the snapshot as it
// was.
func (pl *Admission) searchVictims(logger klog.Logger, work *gangs.Work, snapshot *kubescheduler.Snapshot, limit *deadline, step gangs.NextPreemptionStep, now time.Time) (s *search, decision *preemption.Decision, result searchResult) {
	result = hopeless
	why, mayChange := "", false
	limit.restart(now, work.Cuts)
	for _, work.EvictionPriority = range work.EvictionPriorities {
		s = &search{Admission: pl, work: work, snapshot: snapshot}
		if s.mayHelp(now) {
			s.collectPods(logger)
			if decision, result = s.findSampledVictim(limit, now); result == hopeless {
				s.collectCandidates(step, nil, now)
				decision, result = s.findVictims(limit)
			}
			mayChange = mayChange || s.candidates.Unsettled || s.bounded || !snapshot.KnownUntil().IsZero()
		}
		if why = cmp.Or(why, s.why); result != hopeless {
			break
		}
	}
	s.why, s.mayChange = why, mayChange
	took, name := pl.gangs.clock.Since(now), string(result)
	if result == decided && step == gangs.PreemptConfirm {
		name = "confirmed"
	}
	if decision != nil {
		logger.V(2).Info("Pods of lower priority are preempted", "step", name, "workloads", len(decision.Victims), "pods", decision.Cost.Pods,
			"disruptionBudgetsViolated", decision.Cost.Violations, "took", took)
	}
	preemptions.WithLabelValues(name).Inc()
	preemptionDuration.WithLabelValues(name).Observe(took.Seconds())
	return s, decision, result
}

// preemptForPod makes room for a pod without a gang that no node takes: it preempts as a gang of one (docs/decisions,
// G15). The node of its plan becomes its nominated node, which keeps the room for it.
func (pl *Admission) preemptForPod(ctx context.Context, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	logger, now := klog.LoggerWithValues(klog.FromContext(ctx), "pod", klog.KObj(pod)), pl.gangs.clock.Now()
	nothing := func(why string) *fwk.Status { return fwk.NewStatus(fwk.Unschedulable, "preemption: "+why) }
	kubescheduler.CountPreemptionAttempt()
	work, why, waits, effects := pl.registry.BeginPodPreemption(pod, now)
	switch pl.gangs.apply(logger, effects); {
	case work == nil && waits:
		return nil, nothing(why)
	case work == nil: // its nominated node would be kept from others, and from the view of a cluster autoscaler
		return kubescheduler.Nominate(""), nothing(why)
	}
	if known := pl.gangs.observedPod(pod); known == nil || known.DeletionTimestamp != nil { // later, RecordPodPreemption tells
		return nil, nothing("the pod is gone or terminating")
	}
	nodes, mayHelp, err := kubescheduler.MayPreempt(pl.profile, statuses)
	if err != nil || !mayHelp {
		return kubescheduler.Nominate(""), nothing("it is not helpful for scheduling")
	}
	snapshot, limit, err := pl.newSnapshot(ctx, work, nodes, now)
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("preempting for pod %s: %w", klog.KObj(pod), err))
	}
	s, decision, result := pl.searchVictims(logger, work, snapshot, limit, gangs.PreemptDecide, now)
	switch result {
	case decided:
		effects, ok := pl.registry.RecordPodPreemption(work, s.describe(decision), now)
		pl.gangs.apply(logger, effects)
		if !ok {
			return nil, nothing("the pod is gone, or the pods that would end are about to end for others")
		}
		kubescheduler.CountPreemption(decision.Cost.Pods)
		return kubescheduler.Nominate(s.node), fwk.NewStatus(fwk.Success)
	case unneeded:
		pl.registry.RetryPodPreemption(pod, unneededPause, now)
		return kubescheduler.Nominate(s.node), fwk.NewStatus(fwk.Success)
	case aborts:
		logger.V(2).Info("Pod aborts plans of lower priority", "plans", len(s.inTheWay))
		pl.gangs.apply(logger, pl.registry.AbortPlans(work, s.inTheWay, now))
		pl.registry.RetryPodPreemption(pod, abortPause, now)
		return nil, nothing("it waits until plans of lower priority are aborted")
	case cut:
		pl.registry.RecordPodCut(work, pl.gangs.clock.Since(now), now)
		return nil, nothing("the search for victims took too long")
	}
	if s.candidates.Unsettled { // what the gangs have on nodes is known in a moment, and no event of the queue follows
		pl.registry.RetryPodPreemption(pod, unneededPause, now)
	}
	return kubescheduler.Nominate(""), nothing(cmp.Or(s.why, "no pod on a node has a lower priority"))
}

// unneededPause is the time after which an attempt is repeated for which the room of ending pods seems to be enough, or
// that found no victims among gangs of which it was not known what they lose or get.
const unneededPause = 5 * time.Second

// abortPause is the time after which an attempt is repeated for which plans were aborted.
const abortPause = 100 * time.Millisecond

// searchResult is the result of a search for victims, as a label of metrics.
type searchResult string

const (
	decided  searchResult = "decided"
	unneeded searchResult = "unneeded" // the room of pods that are ending is enough
	aborts   searchResult = "aborts"   // the room of plans of lower priority is needed, which are not being bound yet
	hopeless searchResult = "hopeless" // preemption would not help
	cut      searchResult = "cut"      // the time was over
)

// search is a search for the victims of one gang.
type search struct {
	*Admission
	work       *gangs.Work
	snapshot   *kubescheduler.Snapshot
	budgets    disruptionBudgets
	running    []*corev1.Pod // by ID
	priorities []int32       // gangs.Screening.Priorities
	candidates gangs.Candidates
	inTheWay   []gangs.PlanRoom // plans that have to be aborted first
	why        string           // why preemption would not help; "": no pod has a lower priority
	bounded    bool             // it found no victims, and it is not certain that there are none
	mayChange  bool             // victims may be found without a change that is counted
	node       string           // on which the first pod would be
}

// mayHelp reports whether the numbers allow a plan if all pods end that may be candidates. Of the gangs that preemption
// would not help it refuses most, and looks at no single pod.
func (s *search) mayHelp(now time.Time) bool {
	holders, pods := s.snapshot.Holders()
	screening := s.registry.ScreenHolders(s.work, holders, pods, now)
	s.priorities = screening.Priorities
	problem := s.work.Required()
	if s.why = s.snapshot.WhyFreedRoomIsUnknown(); s.why == "" && problem.Tree.MissingPods(problem.Have) > 1 {
		s.why = s.snapshot.WhyStorageIsUnknown()
	}
	if s.why != "" {
		return false
	}
	if !s.snapshot.MayFitWithout(problem, screening.MayEnd) {
		s.why = s.describeHopeless(screening.Pods, screening.Protected)
		return false
	}
	return true
}

// collectPods collects the running pods.
func (s *search) collectPods(logger klog.Logger) {
	s.budgets = s.gangs.disruptionBudgets(logger)
	s.snapshot.VisitPods(func(_ int, pod *corev1.Pod) { s.running = append(s.running, pod) })
}

// findSampledVictim searches for victims of a pod without a gang: gangs, and pods on a sample of the nodes. It finds
// none, although there may be some, unless one pod suffices that has no more of the extended resource than any node
// lacks, and there is nothing better elsewhere but in how long it may take to end and has run (docs/decisions, G15).
func (s *search) findSampledVictim(limit *deadline, now time.Time) (*preemption.Decision, searchResult) {
	if s.work.Pod == nil {
		return nil, hopeless
	}
	nodes, priority, least := s.snapshot.Sample(s.priorities)
	if nodes == nil {
		return nil, hopeless
	}
	sample := *s
	sample.collectCandidates(gangs.PreemptDecide, func(id int) bool { return nodes[s.snapshot.NodeOf(id)] }, now)
	d, result := sample.findVictims(limit)
	if result == decided && (d.Cost.Pods > 1 || d.Cost.Violations > 0 || d.Cost.Priority > priority || d.Cost.Amount > least) {
		return nil, hopeless
	}
	if result != hopeless {
		*s = sample
	}
	return d, result
}

// collectCandidates collects the candidates; of pods without a gang only those that are sampled. nil: all.
func (s *search) collectCandidates(step gangs.NextPreemptionStep, sampled func(id int) bool, now time.Time) {
	running := gangs.RunningPods{Pods: s.running, Amount: s.snapshot.ExtendedAmounts(), Budgets: s.budgets.ofEach(s.running), Sampled: sampled}
	s.candidates = s.registry.Candidates(s.work, running, step == gangs.PreemptConfirm, now)
}

// findVictims searches for victims, with the room of pods that are ending.
func (s *search) findVictims(limit *deadline) (*preemption.Decision, searchResult) {
	c := &s.candidates
	pods, protected := 0, c.Protected
	for i := range c.Workloads {
		w := &c.Workloads[i]
		kept := 0
		if w.MinimumProtected {
			kept = w.Tree.MinPods()
			for _, n := range w.Completed {
				kept -= n
			}
			kept = min(len(w.Pods), max(0, kept))
		}
		pods, protected = pods+len(w.Pods)-kept, protected+kept
	}
	if pods == 0 && len(c.Plans) == 0 && (s.work.Pod == nil || len(c.Ending) == 0) {
		s.why = s.describeHopeless(0, protected)
		return nil, hopeless
	}
	s.snapshot.Free(c.Ending)
	defer s.snapshot.Restore(c.Ending)
	for _, p := range c.Plans {
		s.snapshot.Free(p.Pods)
	}
	defer func() {
		for _, p := range c.Plans {
			s.snapshot.Restore(p.Pods)
		}
	}()
	d, result := preemption.FindVictims(
		preemption.Input{
			Problem: s.work.Required(), Workloads: c.Workloads, Allowed: s.budgets.allowed,
		}, s.snapshot,
		preemption.Budget{
			Plan:  placement.Budget{Placements: int(s.args.PlanBudget), Expired: limit.isOver},
			Again: func() { limit.restart(s.gangs.clock.Now(), 0) },
		})
	switch result {
	case preemption.Hopeless:
		s.why = s.describeHopeless(pods, protected)
		return nil, hopeless
	case preemption.Cut:
		return nil, cut
	case preemption.NotFound:
		s.why, s.bounded = "no pods of lower priority were found whose end would make enough room", true
		return nil, hopeless
	}
	planned := sets.New[string]()
	for i := range d.Plan {
		planned.Insert(d.Plan[i].Node)
	}
	s.node = d.Plan[0].Node
	for _, p := range c.Plans {
		if slices.ContainsFunc(p.Pods, func(id int) bool { return planned.Has(s.running[id].Spec.NodeName) }) {
			s.inTheWay = append(s.inTheWay, p)
		}
	}
	s.snapshot.Undo(len(d.Plan))
	for _, v := range d.Victims {
		s.snapshot.Restore(v.Pods)
	}
	switch {
	case len(s.inTheWay) > 0: // with their room it is known who must end
		return nil, aborts
	case len(d.Victims) == 0:
		return nil, unneeded
	}
	return d, decided
}

// describe returns the decision in terms of pods.
func (s *search) describe(d *preemption.Decision) gangs.Preempting {
	p := gangs.Preempting{ID: newPlanID(), Placements: d.Plan, Victims: s.candidates.Victims(d, s.running)}
	planned := sets.New[string]()
	for i := range d.Plan {
		planned.Insert(d.Plan[i].Node)
	}
	for _, id := range s.candidates.Ending {
		if planned.Has(s.running[id].Spec.NodeName) {
			p.Awaited = append(p.Awaited, s.running[id])
		}
	}
	if p.Resource = s.snapshot.ExtendedResource(); p.Resource != "" {
		p.Amount = d.Cost.Amount
	}
	return p
}

// planIDLength is the number of characters that identify a decision.
const planIDLength = 8

func newPlanID() string { return string(uuid.NewUUID())[:planIDLength] }

// describeHopeless returns why preemption would not help although so many pods of lower priority may be preempted, and
// others not. "": there are neither.
func (s *search) describeHopeless(pods, protected int) string {
	switch {
	case pods == 0 && protected == 0:
		return ""
	case pods == 0:
		return message.Count(protected, "pod") + " of lower priority may not be preempted"
	}
	who := "gang"
	if s.work.Pod != nil {
		who = "pod"
	}
	text := fmt.Sprintf("the %s would not fit without the %s of lower priority either", who, message.Count(pods, "pod"))
	if protected > 0 {
		text += fmt.Sprintf("; %s of lower priority may not be preempted", message.Count(protected, "more pod"))
	}
	return text
}
