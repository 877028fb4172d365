// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/test/wrappers"
)

// evictor simulates package evict: it works on one pod at a time, and other events occur in between.
type evictor struct {
	jobs    []*evictionJob
	allowed map[string]bool        // plans whose evictions began in the process that decided on them
	begun   map[string][]types.UID // by plan of which a victim was deleted: all victims
	resumes bool                   // a process begins to lead
	decided int
	ended   map[evictions.Outcome]int
	forPods int                // preemptions by pods that evicted others
	deleted map[types.UID]bool // victims whose deletion this process has requested
}

// evictionJob is a preemption whose victims are being marked, deleted, or not marked any more.
type evictionJob struct {
	p                *evictions.Eviction
	deletes, unmarks bool
	spared           []types.UID // whose marks are to be taken back first
	witnesses        []types.UID // to be marked as such before the deletions
	left             []types.UID
}

// markOf returns the mark of a plan, by the package evict: "preempted; plan <plan>", and for a witness "preempted;
// begun; plan <plan>".
func markOf(plan string, witness bool) string {
	if witness {
		return "preempted; begun; plan " + plan
	}
	return "preempted; plan " + plan
}

// planOf returns the plan whose mark the pod has, "" if it has none.
func planOf(pod *corev1.Pod) (plan string, witness bool) {
	for _, c := range pod.Status.Conditions {
		if _, plan, ok := strings.Cut(c.Message, "; plan "); ok && strings.HasPrefix(c.Message, "preempted; ") {
			return plan, c.Message == markOf(plan, true)
		}
	}
	return "", false
}

// replaceMark replaces the mark of a pod; "": it has none any more.
func replaceMark(mark string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return strings.HasPrefix(c.Message, "preempted; ") })
		if mark != "" {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: corev1.PodReasonPreemptionByScheduler, Message: mark})
		}
	}
}

// deletionOf returns the job that deletes the victims: one of each gang is marked as a witness before, and is the last.
func deletionOf(p *evictions.Eviction) *evictionJob {
	job := &evictionJob{p: p, deletes: true, spared: uidsOf(p.Spared)}
	seen := map[Key]bool{}
	for _, v := range p.Victims {
		if seen[v.Gang] {
			job.left = append(job.left, v.Pod.UID)
		} else {
			job.witnesses = append(job.witnesses, v.Pod.UID)
		}
		seen[v.Gang] = true
	}
	job.left = append(job.left, job.witnesses...)
	return job
}

// applyPreemption begins what the registry requested.
func (s *simulation) applyPreemption(e Effects) {
	s.t.Helper()
	for _, p := range e.Mark {
		s.evictor.jobs = append(s.evictor.jobs, &evictionJob{p: p, left: uidsOf(p.Victims)})
	}
	for _, p := range e.Unmark {
		s.say("the marks of plan %s are taken back: %v", p.ID, uidsOf(p.Victims))
		s.evictor.jobs = append(s.evictor.jobs, &evictionJob{p: p, unmarks: true, left: uidsOf(p.Victims)})
	}
	for _, p := range e.Evict {
		s.say("the evictions of plan %s begin: %v", p.ID, uidsOf(p.Victims))
		if s.evictor.resumes && !s.evictor.allowed[p.ID] {
			s.fail("the evictions of plan %s go on, and had not begun", p.ID)
		}
		s.evictor.allowed[p.ID] = true
		s.checkEvictions(p)
		s.evictor.jobs = append(s.evictor.jobs, deletionOf(p))
	}
}

func uidsOf(victims []evictions.Victim) []types.UID {
	var uids []types.UID
	for _, v := range victims {
		uids = append(uids, v.Pod.UID)
	}
	return uids
}

// checkEvictions: when evictions begin, the PodGroup of a gang says so, every gang keeps its minimum or loses all pods,
// and no victim is of the same or a higher priority. Evictions of an earlier process go on whatever has changed.
func (s *simulation) checkEvictions(p *evictions.Eviction) {
	s.t.Helper()
	if p.Pod != nil {
		s.checkLosses(p)
		return
	}
	group := s.groups[p.Gang]
	if group == nil || s.evictor.begun[p.ID] != nil {
		return // deleted, or resumed by a process whose informers lag behind
	}
	if plan, evicting, ok := podgroup.RecordedPreemption(&group.Status); group.UID == p.Group.UID && (!ok || !evicting || plan != p.ID) {
		s.fail("the evictions of plan %s begin, and the status says %q, %t, %t", p.ID, plan, evicting, ok)
	}
	s.checkLosses(p)
}

// checkLosses: every gang keeps its minimum or loses all pods that are not ending, and no victim is of the same or a
// higher priority.
func (s *simulation) checkLosses(p *evictions.Eviction) {
	s.t.Helper()
	lost := map[Key]gang.Counts{}
	for _, v := range p.Victims {
		m := s.r.members[v.Pod.UID]
		if m == nil || v.Gang != m.gang.key || !m.isBound() || m.misplaced != "" || m.gang.group == nil {
			continue // without a PodGroup it counts as a pod without a gang
		}
		if priority := naiveEvictionPriority(s.r, m.gang); priority >= p.Priority && (v.Whole || count.PodPriority(v.Pod) >= p.Priority) {
			s.fail("plan %s of priority %d evicts %s of priority %d", p.ID, p.Priority, v.Pod.UID, priority)
		}
		if lost[v.Gang] == nil {
			lost[v.Gang] = gang.Counts{}
		}
		lost[v.Gang][m.leaf]++
	}
	for key, counts := range lost {
		g := s.r.gangs[key]
		before := naiveCounts(s.r, g).bound
		after, left := gang.Counts{}, 0
		for _, m := range g.members {
			switch {
			case !m.isBound() || m.misplaced != "" || slices.Contains(uidsOf(p.Victims), m.pod.UID):
			case s.evictor.deleted[m.pod.UID]:
				before[m.leaf]--
			default:
				left++
			}
		}
		for leaf, n := range before {
			after[leaf] = n - counts[leaf]
		}
		if left > 0 && (g.tree == nil || g.tree.Satisfied(before) && !g.tree.Satisfied(after)) {
			s.fail("plan %s leaves a part of the minimum of %s: %v of %v", p.ID, key, after, before)
		}
	}
}

// evict performs one request of the evictor.
func (s *simulation) evict() {
	x := &s.evictor
	if s.ranked && !s.calm && s.chance(2) {
		s.preemptForPod()
		return
	}
	if len(x.jobs) == 0 {
		return
	}
	i := s.rand.Intn(len(x.jobs))
	job := x.jobs[i]
	end := func() { x.jobs = slices.Delete(x.jobs, i, i+1) }
	if len(job.left) == 0 {
		end()
		switch {
		case job.unmarks:
		case job.deletes:
			s.apply(s.r.RecordEvicted(job.p, nil, s.now))
		default:
			s.apply(s.r.RecordMarked(job.p, nil, s.now))
		}
		return
	}
	if !s.calm && s.chance(10) { // the request fails
		if !job.deletes && !job.unmarks {
			end()
			s.apply(s.r.RecordMarked(job.p, fmt.Errorf("the API server hiccups"), s.now))
		}
		return
	}
	if len(job.spared) > 0 {
		if pod := s.pods[job.spared[0]]; pod != nil {
			if marked, _ := planOf(pod); marked == job.p.ID && pod.DeletionTimestamp == nil {
				s.update(pod, replaceMark(""))
			}
		}
		job.spared = job.spared[1:]
		return
	}
	if len(job.witnesses) > 0 {
		if pod := s.pods[job.witnesses[0]]; pod != nil {
			s.update(pod, replaceMark(markOf(job.p.ID, true)))
		}
		job.witnesses = job.witnesses[1:]
		return
	}
	pod := s.pods[job.left[0]]
	job.left = job.left[1:]
	if pod == nil {
		return
	}
	marked, _ := planOf(pod)
	switch {
	case job.unmarks && marked == job.p.ID && pod.DeletionTimestamp == nil:
		s.update(pod, replaceMark(""))
	case !job.deletes && !job.unmarks:
		s.update(pod, replaceMark(markOf(job.p.ID, false)))
	}
	if !job.deletes {
		return
	}
	if marked != job.p.ID {
		s.fail("%s is deleted for plan %s, and not marked", pod.UID, job.p.ID)
	}
	if x.begun[job.p.ID] == nil {
		x.begun[job.p.ID] = uidsOf(job.p.Victims)
	}
	x.deleted[pod.UID] = true
	if pod.DeletionTimestamp == nil && s.chance(50) {
		s.say("%s is evicted", pod.UID)
		s.update(pod, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: s.now} })
	} else {
		s.deletePod(pod)
	}
}

// preemptForPod does what the plugin does for a pod without a gang that no node takes. The pod is gone at any time.
func (s *simulation) preemptForPod() {
	if x := s.r.preemptors; len(x) > 0 && s.chance(50) {
		uid := slices.Min(slices.Collect(maps.Keys(x)))
		s.say("pod %s, which preempts, is gone", uid)
		s.apply(s.r.RemovePod(uid, s.now))
		return
	}
	name := fmt.Sprintf("p%d", s.serial)
	s.serial++
	work, why, _, e := s.r.BeginPodPreemption(wrappers.MakePod(name, "ns").UID(name).Priority(9).Obj(), s.now)
	if s.apply(e); work == nil {
		s.say("a pod does not preempt: %s", why)
		return
	}
	if d := s.searchVictims(work, false); d != nil && len(d.Victims) > 0 {
		e, ok := s.r.RecordPodPreemption(work, *d, s.now)
		s.say("a pod preempts %d pods: %t", len(d.Victims), ok)
		if s.apply(e); ok {
			s.evictor.forPods++
		}
	}
}

// checkPlanned: no pod of the gang of a new plan is believed to be bound that this process has evicted.
func (s *simulation) checkPlanned(key Key) {
	s.t.Helper()
	for uid, m := range s.r.gangs[key].members {
		if s.evictor.deleted[uid] && m.isBound() {
			s.fail("%s is planned beside %s, which was evicted", key.Name, uid)
		}
	}
}

// resumeEvictions does what a process does that begins to lead.
func (s *simulation) resumeEvictions() {
	s.evictor.jobs, s.evictor.resumes, s.evictor.deleted = nil, true, map[types.UID]bool{}
	victims := map[string][]MarkedPod{}
	for _, uid := range s.uids() {
		if plan, witness := planOf(s.pods[uid]); plan != "" {
			victims[plan] = append(victims[plan], MarkedPod{Pod: s.pods[uid], Witness: witness})
		}
	}
	for _, x := range s.r.RecordedEvictions() {
		key, plan := x.Gang, x.Plan
		s.say("the evictions of plan %s of %s go on", plan, key.Name)
		if s.evictor.begun[plan] == nil {
			s.evictor.begun[plan] = []types.UID{} // what was to be checked was checked
		}
		effects, _ := s.r.RestorePreemption(key, plan, victims[plan], s.now)
		s.apply(effects)
		delete(victims, plan)
	}
	s.apply(s.r.AbandonedEvictions(victims, s.now))
	s.evictor.resumes = false
}

// preemptingWorld is simulatedWorld with pods that can be removed.
type preemptingWorld struct {
	simulatedWorld
	pods  []*corev1.Pod
	nodes []string // by pod
	names []string // by number of a node
}

func (w *preemptingWorld) Free(ids []int) {
	for _, id := range ids {
		w.free[w.nodes[id]]++
	}
}

// CountNodes numbers the nodes at the first call.
func (w *preemptingWorld) CountNodes() int {
	if w.names == nil {
		w.names = slices.Concat(slices.Collect(maps.Keys(w.free)), w.nodes)
		slices.Sort(w.names)
		w.names = slices.Compact(w.names)
	}
	return len(w.names)
}

func (w *preemptingWorld) NodeOf(pod int) int       { return slices.Index(w.names, w.nodes[pod]) }
func (w *preemptingWorld) NodeName(node int) string { return w.names[node] }
func (w *preemptingWorld) Amount(int) int64         { return 1 }

func (w *preemptingWorld) Slots(_, node int, ended, back []int) int {
	free, exists := w.free[w.names[node]]
	if !exists {
		return 0
	}
	for _, placed := range w.placed {
		if placed == w.names[node] {
			free++
		}
	}
	return max(0, free+len(ended)-len(back))
}

func (w *preemptingWorld) Restore(ids []int) {
	for _, id := range ids {
		w.free[w.nodes[id]]--
	}
}

// makeRoom does what the plugin does after an attempt without a plan. It returns when the attempt must be repeated.
func (s *simulation) makeRoom(work *Work) time.Time {
	step, next := s.r.NextPreemptionStep(work, s.now)
	if step == PreemptNothing {
		return next
	}
	decision := s.searchVictims(work, step == PreemptConfirm)
	switch {
	case decision == nil:
		if s.chance(20) { // it is not tried again for longer than the simulation lasts
			s.r.RecordHopeless(work.Gang, "hopeless", false, time.Millisecond, s.now)
		}
		return time.Time{}
	case len(decision.Victims) == 0:
		return time.Time{}
	}
	s.evictor.decided++
	s.say("%s preempts (%d): %d victims", work.Gang.Name, step, len(decision.Victims))
	s.apply(s.r.RecordPreemption(work, *decision, s.now))
	return time.Time{}
}

// searchVictims returns the decision of a search; nil: there are no victims with which there is a plan.
func (s *simulation) searchVictims(work *Work, confirm bool) *Preempting {
	w := &preemptingWorld{simulatedWorld: simulatedWorld{free: s.free(), s: s}}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range s.seenPods {
			if !yield(name) {
				return
			}
		}
	}) {
		if pod := s.seenPods[name]; s.used[pod.UID] != "" {
			w.pods, w.nodes = append(w.pods, pod), append(w.nodes, s.used[pod.UID])
		}
	}
	c := s.r.Candidates(work, RunningPods{Pods: w.pods, Amount: func(int) int64 { return 1 }}, confirm, s.now)
	checkScreening(s.t, s.r, work, w.pods, &c, s.now)
	w.Free(c.Ending)
	d, result := preemption.FindVictims(preemption.Input{Problem: work.Required(), Workloads: c.Workloads}, w, preemption.Budget{Plan: placement.Budget{}})
	if result != preemption.Decided {
		return nil
	}
	s.serial++
	return &Preempting{ID: fmt.Sprintf("p%d", s.serial), Placements: d.Plan, Victims: c.Victims(d, w.pods)}
}

// checkNoPreemption: at the end nothing is left of preemptions, and what was begun was finished: all victims are gone.
func (s *simulation) checkNoPreemption() {
	s.t.Helper()
	for key, g := range s.r.gangs {
		if g.preemption != nil || g.victimOf != nil {
			s.fail("gang %s: preemption %+v, victim of %v", key, g.preemption, g.victimOf)
		}
		if group := s.groups[key]; group != nil && g.group != nil {
			for _, c := range group.Status.Conditions {
				if c.Type == v2alpha2.ConditionPreempting && c.Status == metav1.ConditionTrue {
					s.fail("the status of %s still says %s", key, c.Message)
				}
			}
		}
	}
	for plan, victims := range s.evictor.begun {
		for _, uid := range victims {
			if pod := s.pods[uid]; pod != nil && pod.DeletionTimestamp == nil {
				s.fail("%s, a victim of plan %s of which others were evicted, is left", uid, plan)
			}
		}
	}
	if n := s.r.reserved.View().Len(); n > 0 {
		s.fail("%d reservations are left", n)
	}
}
