// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/marks"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// TestAnyOrderOfEvents drives a Registry by a model of its environment: an API server, informers that lag, a
// scheduling queue that loses wake-ups, a scheduling loop and binding goroutines, all stepped at random. The
// invariants are checked after every step. At the end the faults stop, there is room for all pods, and every gang
// must be admitted; then everything is deleted, and nothing may be left.
func TestAnyOrderOfEvents(t *testing.T) {
	repeats := 40 * rounds.Number()
	var released, refused, decided, placed, wasted, early, forPods atomic.Int64
	phases, stages := newTransitions(), newStageTransitions()
	t.Cleanup(func() { // when all seeds are over
		if !t.Failed() {
			phases.check(t, repeats >= 2000) // some are rare
			stages.check(t, repeats >= 200)
		}
		t.Logf("%d pods of partial gangs were released", released.Load())
		t.Logf("%d decisions to preempt: %d gangs were placed, %d were not although pods were evicted, %d ended before", decided.Load(), placed.Load(), wasted.Load(), early.Load())
		t.Logf("%d preemptions by pods", forPods.Load())
		if !t.Failed() && (early.Load() == 0 || forPods.Load() == 0 || placed.Load() < int64(repeats)/50) { // one in 15 seeds is placed
			t.Error("few preemptions were successful, or none ended before an eviction, or none was for a pod")
		}
		if refused.Load() < int64(repeats)/10 && !t.Failed() {
			t.Errorf("only %d members were refused", refused.Load())
		}
		if released.Load() == 0 && !t.Failed() {
			t.Error("no pod of a partial gang was released")
		}
	})
	for round := range repeats {
		t.Run(fmt.Sprintf("seed %d", round), func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t, int64(round), phases, stages)
			s.refused = &refused
			steps := 1000
			if s.ranked {
				steps *= 3 // preemptions take many steps
			}
			for range steps {
				s.step()
			}
			s.settleDown()
			s.deleteAll()
			released.Add(int64(s.released))
			decided.Add(int64(s.evictor.decided))
			forPods.Add(int64(s.evictor.forPods))
			placed.Add(int64(s.evictor.ended[evictions.Placed]))
			wasted.Add(int64(s.evictor.ended[evictions.Wasted]))
			early.Add(int64(s.evictor.ended[evictions.Cancelled] + s.evictor.ended[evictions.Spared]))
		})
	}
}

// simulation is the model. It is not concurrent: a step of any actor is one call.
type simulation struct {
	t       *testing.T
	rand    *rand.Rand
	r       *Registry
	now     time.Time
	log     []string
	calm    bool // no more faults are injected
	checks  int
	scarce  bool      // there is little room
	ranked  bool      // each gang has a priority of its own, so that they preempt each other
	missed  bool      // an event occurred during the cycle
	waits   *int      // conditions that were not released
	standby *Registry // receives the same events, and does not lead
	phases  *transitions
	stages  *transitions

	repairTimeout time.Duration
	repaired      time.Time          // when PodsToRelease was called last
	ran           map[types.UID]bool // pods that were bound while the minimum of their gang was
	released      int                // pods

	// the API server
	pods   map[types.UID]*corev1.Pod
	groups map[Key]*v2alpha2.PodGroup
	serial int

	// Informers: events that have not been delivered yet. There are two watchers of the pods (the registry's handler
	// and the queue's), one of finished pods and one of PodGroups.
	toRegistry, toQueue, ended, toGroups []func()

	// the scheduling queue, by name of pod
	queue    map[string]*queued
	inFlight map[types.UID]bool
	again    map[types.UID]bool // activated while in flight

	// the scheduler
	cycle    *cycle
	bindings []*bindingCycle
	nodes    map[string]int         // capacity in pods
	used     map[types.UID]string   // by assumed or bound pod
	seenPods map[string]*corev1.Pod // the queue's informer cache
	trees    map[uint64]*gang.Tree  // by plan
	plans    map[uint64]*Plan       // all committed plans
	toJudge  []types.UID            // members that failed for a reason that the registry does not know yet
	refused  *atomic.Int64          // refused members
	evictor  evictor
	opened   map[uint64]bool
}

type queued struct {
	pod    *corev1.Pod
	active bool
}

// cycle is a scheduling cycle between BeginAttempt and its end, during which other events occur.
type cycle struct {
	pod  *corev1.Pod
	work *Work
}

// Fits implements Shape: the room for pods.
func (s *simulation) FittingPods() int {
	n := 0
	for _, free := range s.free() {
		n += max(free, 0)
	}
	return n
}

// bindingCycle is a binding goroutine.
type bindingCycle struct {
	pod   *corev1.Pod
	node  string
	plan  *Plan
	stage int // 0 preparing, 1 at the barrier, 2 posting
}

func newSimulation(t *testing.T, seed int64, phases, stages *transitions) *simulation {
	s := &simulation{
		t: t, phases: phases, stages: stages, rand: rand.New(rand.NewSource(seed)), r: New(), now: time.Unix(1_000_000, 0),
		pods: map[types.UID]*corev1.Pod{}, groups: map[Key]*v2alpha2.PodGroup{},
		queue: map[string]*queued{}, inFlight: map[types.UID]bool{}, again: map[types.UID]bool{},
		used: map[types.UID]string{}, seenPods: map[string]*corev1.Pod{},
		trees: map[uint64]*gang.Tree{}, plans: map[uint64]*Plan{}, opened: map[uint64]bool{},
		repairTimeout: 30 * time.Second, ran: map[types.UID]bool{}, waits: new(int),
		evictor: evictor{allowed: map[string]bool{}, deleted: map[types.UID]bool{}, begun: map[string][]types.UID{}, ended: map[evictions.Outcome]int{}},
	}
	s.repaired = s.now
	if seed%3 == 0 {
		s.repairTimeout = 300 * time.Millisecond // partial gangs are released
	}
	s.scarce, s.ranked = seed%4 < 2, seed%4 == 1
	s.nodes = s.capacity()
	s.r, s.standby = s.newRegistry(), s.newRegistry()
	s.apply(s.r.SetSynced(s.now))
	s.r.AbandonedEvictions(nil, s.now)
	s.standby.SetSynced(s.now)
	return s
}

// capacity returns the number of pods that each node takes.
func (s *simulation) capacity() map[string]int {
	if s.scarce { // gangs and sub-groups are refused
		return map[string]int{"n0": 2, "n1": 2, "n2": 1}
	}
	return map[string]int{"n0": 4, "n1": 4, "n2": 3}
}

func (s *simulation) newRegistry() *Registry {
	r := New()
	r.Configure(Options{
		RepairTimeout: s.repairTimeout, SingleSurplusAfter: 300 * time.Millisecond, PreemptionTimeout: time.Second,
		PreemptionEnded: func(p *evictions.Eviction, outcome evictions.Outcome) {
			s.say("plan %s of %s: %s", p.ID, p.Gang.Name, outcome)
			s.evictor.ended[outcome]++
		},
	})
	r.AddProfile(wrappers.SchedulerName)
	r.AddProfile("second")
	r.SetKeys(testKeys, s.now)
	r.entered, r.enteredStage = s.phases.record, s.stages.recordStage
	return r
}

// feed delivers an event to the leading registry and to the standby.
func (s *simulation) feed(show func(r *Registry) Effects) {
	show(s.standby)
	s.apply(show(s.r))
}

// writeStatus does the work of the reporter.
func (s *simulation) writeStatus(key Key) {
	f, ok := s.r.Facts(key)
	old := s.groups[key]
	if !ok || f.Group == nil || old == nil || f.Group.UID != old.UID || f.Group.Generation != old.Generation {
		return
	}
	group := old.DeepCopy()
	group.Status = podgroup.Status(f, metav1.NewTime(s.now))
	if podgroup.Compare(&old.Status, &group.Status) == podgroup.Same {
		return
	}
	s.say("status of %s is written", key.Name)
	s.groups[key] = group
	s.toGroups = append(s.toGroups, func() { s.feed(func(r *Registry) Effects { return r.SetGroup(group, s.now) }) })
}

// repair does the work of package release: the pods of partial gangs and torn units are deleted, after all of them have
// the condition that records it. No pod is released that ran: see noteMinimums.
func (s *simulation) repair() {
	s.t.Helper()
	pods := s.r.PodsToRelease(s.now.Sub(s.repaired), true)
	s.repaired = s.now
	for _, pod := range pods {
		if s.ran[pod.UID] {
			s.fail("%s is released, and its gang and its sub-groups have had their minimum", pod.UID)
		}
		if p := s.pods[pod.UID]; p != nil && !HasReleaseCondition(p) {
			s.say("the release of %s is recorded", pod.UID)
			s.update(p, func(p *corev1.Pod) {
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
					Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: v2alpha2.PodReasonPartialGangReleased})
			})
		}
	}
	if !s.calm && s.chance(10) {
		return // it is killed in between, or a request fails
	}
	for _, pod := range pods {
		switch p := s.pods[pod.UID]; {
		case p == nil || p.DeletionTimestamp != nil || !s.calm && s.chance(20):
		case s.chance(50):
			s.released++
			s.say("%s is released", pod.UID)
			s.update(p, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: s.now} })
		default:
			s.released++
			s.say("%s is released", pod.UID)
			s.deletePod(p)
		}
	}
}

// noteMinimums records the pods that are bound together with the minimum of their gang and of each of their sub-groups.
// A pod whose release was recorded before is not counted: the decision stands, and the gang may start without it before
// it is deleted.
func (s *simulation) noteMinimums() {
	for key, group := range s.groups {
		tree, err := podgroup.Tree(&group.Spec)
		if err != nil {
			continue
		}
		bound, pods := gang.Counts{}, []types.UID{}
		for uid, p := range s.pods {
			if p.Annotations[v2alpha2.PodGroupAnnotation] == key.Name && p.Spec.NodeName != "" && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && !HasReleaseCondition(p) {
				if p.Status.Phase != corev1.PodSucceeded || s.isOfCurrentRun(key, p) {
					bound[p.Labels[v2alpha2.SubGroupLabel]]++
				}
				pods = append(pods, uid)
			}
		}
		if tree.Root().Satisfied(bound) {
			for _, uid := range pods {
				whole := true
				for group := tree.Group(s.pods[uid].Labels[v2alpha2.SubGroupLabel]); group != nil; group = group.Parent() {
					whole = whole && group.Satisfied(bound)
				}
				s.ran[uid] = s.ran[uid] || whole
			}
		}
	}
}

// isOfCurrentRun reports whether a pod that has succeeded counts (docs/decisions, G9).
func (s *simulation) isOfCurrentRun(key Key, done *corev1.Pod) bool {
	plan := func(p *corev1.Pod) marks.PlanID {
		m, _ := testKeys.VerifyMark(p.UID, p.Annotations[v2alpha2.BoundForAnnotation])
		return m.PlanID()
	}
	last := true
	for _, p := range s.pods {
		if p.Annotations[v2alpha2.PodGroupAnnotation] != key.Name || isOver(p) || p.DeletionTimestamp != nil {
			continue
		}
		if last = false; count.Controller(p) == count.Controller(done) || p.Spec.NodeName != "" && plan(p) == plan(done) {
			return true
		}
	}
	return last
}

// restart kills the scheduler. The next one reads the existing objects, or it is the standby.
func (s *simulation) restart() {
	s.cycle, s.bindings = nil, nil
	s.queue, s.inFlight, s.again, s.seenPods = map[string]*queued{}, map[types.UID]bool{}, map[types.UID]bool{}, map[string]*corev1.Pod{}
	s.used, s.waits = map[types.UID]string{}, new(int)
	s.trees, s.plans, s.opened = map[uint64]*gang.Tree{}, map[uint64]*Plan{}, map[uint64]bool{}
	s.toQueue, s.toJudge = nil, nil
	if s.chance(50) {
		s.say("-- failover --")
		s.r, s.standby = s.standby, s.newRegistry()
		s.show(s.standby)
	} else {
		s.say("-- restart --")
		s.r = s.newRegistry()
		s.toRegistry, s.ended, s.toGroups = nil, nil, nil
		s.show(s.r)
		s.standby = s.newRegistry()
		s.show(s.standby)
	}
	for _, uid := range s.uids() {
		if pod := s.pods[uid]; !isOver(pod) {
			s.queueAdds(pod)
		}
	}
	s.apply(s.r.Tick(s.now))
	s.r.SetLeading()
	s.resumeEvictions()
}

// show lists the existing objects to a registry.
func (s *simulation) show(r *Registry) {
	for _, group := range s.groups {
		r.SetGroup(group, s.now)
	}
	for _, uid := range s.uids() {
		if pod := s.pods[uid]; pod.Status.Phase != corev1.PodFailed {
			r.SetPod(pod, s.now)
		}
	}
	r.SetSynced(s.now)
}

func (s *simulation) say(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *simulation) fail(format string, args ...any) {
	s.t.Helper()
	tail := s.log[max(0, len(s.log)-60):]
	s.t.Fatalf("%s\nlast steps:\n  %s", fmt.Sprintf(format, args...), strings.Join(tail, "\n  "))
}

func (s *simulation) chance(percent int) bool { return s.rand.Intn(100) < percent }

func (s *simulation) step() {
	s.t.Helper()
	switch n := s.rand.Intn(100); {
	case n < 9:
		s.userActs()
	case n < 50:
		s.deliver()
	case n < 58:
		s.now = s.now.Add(time.Duration(s.rand.Intn(120)) * time.Millisecond)
		s.say("tick")
		s.standby.Tick(s.now)
		s.apply(s.r.Tick(s.now))
		s.apply(s.r.RetryWaiting(nil, nil, s.now))
		for _, key := range simulatedKeys {
			if s.chance(30) || s.ranked && s.chance(60) {
				s.writeStatus(key)
			}
		}
		s.repair()
		if s.chance(1) {
			s.restart()
		}
		if s.chance(2) {
			s.nodes = s.capacity()
			s.capacityChanged(true)
		}
		if s.chance(3) {
			s.say("the API server is back")
			s.apply(s.r.RecordServerAnswers(true, s.now))
		}
	case n < 78:
		s.schedule()
	case n < 82:
		s.evict()
	default:
		s.bind()
	}
	s.check()
}

var simulatedKeys = []Key{{Namespace: "ns", Name: "g0"}, {Namespace: "ns", Name: "g1"}, {Namespace: "ns", Name: "g2"}}

// userActs performs one action of a user, controller or kubelet.
func (s *simulation) userActs() {
	key := simulatedKeys[s.rand.Intn(len(simulatedKeys))]
	uids := s.uids()
	var pod *corev1.Pod
	if len(uids) > 0 {
		pod = s.pods[uids[s.rand.Intn(len(uids))]]
	}
	n := s.rand.Intn(20)
	if s.ranked && n >= 9 && s.chance(80) { // a gang is not changed at each stage of its preemption
		s.evict()
		return
	}
	switch {
	case n < 7, s.ranked && s.groups[key] != nil && s.chance(50):
		s.createPod(key)
	case n < 9 && s.groups[key] == nil:
		s.createGroup(key)
	case n < 10 && s.groups[key] != nil:
		s.editGroup(key)
	case n < 11 && s.groups[key] != nil && s.chance(50):
		s.replaceUnit(key)
	case n < 11 && s.groups[key] != nil && s.chance(30):
		s.say("delete group %s", key.Name)
		delete(s.groups, key)
		s.toGroups = append(s.toGroups, func() { s.feed(func(r *Registry) Effects { return r.RemoveGroup(key, s.now) }) })
	case pod == nil:
	case n < 13: // deleted: gracefully, or immediately
		if pod.DeletionTimestamp == nil && s.chance(50) {
			s.say("begin to delete %s", pod.UID)
			s.update(pod, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: s.now} })
		} else {
			s.deletePod(pod)
		}
	case n < 15 && pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded:
		if s.chance(60) {
			s.say("%s succeeds", pod.UID)
			s.update(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		} else {
			s.say("%s fails", pod.UID)
			s.update(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		}
	case n < 16:
		s.say("%s gets a label, and is ready or not", pod.UID)
		s.update(pod, func(p *corev1.Pod) {
			note := s.rand.Intn(3)
			p.Labels["note"] = strconv.Itoa(note)
			p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
			if note > 0 {
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
			}
		})
	case n < 17 && pod.Spec.NodeName == "":
		s.say("gates of %s change", pod.UID)
		s.update(pod, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
	case n < 18 && s.chance(40):
		s.say("%s changes its gang", pod.UID)
		s.update(pod, func(p *corev1.Pod) {
			if s.chance(30) {
				delete(p.Annotations, v2alpha2.PodGroupAnnotation)
			} else {
				p.Annotations[v2alpha2.PodGroupAnnotation] = simulatedKeys[s.rand.Intn(len(simulatedKeys))].Name
			}
		})
	case n < 19:
		s.deliverPodAgain(pod)
	}
}

// replaceUnit deletes all pods of a sub-group or of the whole gang, often while a plan depends on them.
func (s *simulation) replaceUnit(key Key) {
	for _, other := range simulatedKeys {
		if g := s.r.gangs[other]; g != nil && g.plan != nil && g.plan.Task != Minimum && s.chance(70) {
			key = other
		}
	}
	leaves := [][]string{{"a"}, {"b"}, {"c"}, {"b", "c"}, {"a", "b", "c"}}[s.rand.Intn(5)]
	s.say("delete pods %v of %s", leaves, key.Name)
	for _, uid := range s.uids() {
		p := s.pods[uid]
		switch {
		case p.Annotations[v2alpha2.PodGroupAnnotation] != key.Name || !slices.Contains(leaves, p.Labels[v2alpha2.SubGroupLabel]):
		case p.Spec.NodeName == "" && s.chance(80):
		case p.DeletionTimestamp == nil && s.chance(70):
			s.update(p, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: s.now} })
		default:
			s.deletePod(p)
		}
	}
	if s.chance(50) {
		for len(s.toRegistry) > 0 {
			event := s.toRegistry[0]
			s.toRegistry = s.toRegistry[1:]
			event()
		}
	}
}

func (s *simulation) uids() []types.UID {
	var out []types.UID
	for uid := range s.pods {
		out = append(out, uid)
	}
	slices.Sort(out)
	return out
}

func (s *simulation) createPod(key Key) {
	// Names are often reused.
	name := fmt.Sprintf("%s-%d", key.Name, s.rand.Intn(9))
	for _, p := range s.pods {
		if p.Name == name {
			return
		}
	}
	s.serial++
	w := wrappers.MakePod(name, key.Namespace).UID(fmt.Sprintf("%s.%d", name, s.serial)).Gang(key.Name).CreationTimestamp(s.now).
		Label("class", strconv.Itoa(s.rand.Intn(2))).Controller("Job", "job", fmt.Sprintf("job-%s-%d", key.Name, s.rand.Intn(8)/7))
	if leaf := s.rand.Intn(10); leaf < 9 {
		w.SubGroup([]string{"a", "b", "c"}[leaf%3])
	}
	if s.chance(8) {
		w.SchedulingGate("wait")
	}
	if s.chance(3) {
		w.SchedulerName("second")
	}
	w.Priority(int32(s.rand.Intn(6) / 5))
	if s.ranked {
		w.Priority(int32(slices.Index(simulatedKeys, key)))
		if s.chance(80) {
			w.SubGroup("a")
		}
	}
	pod := w.Obj()
	s.say("create %s", pod.UID)
	s.pods[pod.UID] = pod
	s.toRegistry = append(s.toRegistry, func() { s.feed(func(r *Registry) Effects { return r.SetPod(pod, s.now) }) })
	s.toQueue = append(s.toQueue, func() { s.queueAdds(pod) })
}

// simulatedSpec selects one of a few trees; the pods carry labels a, b and c.
func (s *simulation) simulatedSpec(w *wrappers.PodGroupWrapper) *wrappers.PodGroupWrapper {
	if s.serial%2 == 0 {
		w.Spec(preferRack)
	}
	if s.ranked && s.chance(80) {
		return w.SubGroup("a", 1+int32(s.rand.Intn(3)))
	}
	switch s.rand.Intn(7) {
	case 5:
		return w.SubGroup("a", 1).Inner("", "inner", 2).SubGroupOf("inner", "b", 1).SubGroupOf("inner", "c", 2)
	case 6:
		return w.MinSubGroup(1).SubGroup("a", 1).Inner("", "inner", 2).SubGroupOf("inner", "b", 2).SubGroupOf("inner", "c", 2)
	case 0:
		return w.SubGroup("a", 2).SubGroup("b", 1)
	case 1:
		return w.MinSubGroup(2).SubGroup("a", 1).SubGroup("b", 2).SubGroup("c", 1)
	case 2:
		return w.MinSubGroup(1).SubGroup("a", 2).SubGroup("b", 2)
	case 3:
		return w.SubGroup("a", 1).Inner("", "inner", 1).SubGroupOf("inner", "b", 1).SubGroupOf("inner", "c", 2)
	default:
		return w.SubGroup("a", 1)
	}
}

func (s *simulation) createGroup(key Key) {
	s.serial++
	group := s.simulatedSpec(wrappers.MakePodGroup(key.Name, key.Namespace).UID(fmt.Sprintf("%s.%d", key.Name, s.serial)).Generation(1)).Obj()
	s.say("create group %s: %v", group.UID, group.Spec.SubGroups)
	s.groups[key] = group
	s.toGroups = append(s.toGroups, func() { s.feed(func(r *Registry) Effects { return r.SetGroup(group, s.now) }) })
}

func (s *simulation) editGroup(key Key) {
	old := s.groups[key]
	group := s.simulatedSpec(wrappers.MakePodGroup(key.Name, key.Namespace).UID(string(old.UID)).Generation(old.Generation + 1)).Obj()
	group.Status = *old.Status.DeepCopy()
	if s.chance(10) {
		group.Spec.SubGroups = append(group.Spec.SubGroups, v2alpha2.SubGroup{Name: "orphan", Parent: &group.Name})
	}
	s.say("edit group %s: %v", group.UID, group.Spec.SubGroups)
	s.groups[key] = group
	s.toGroups = append(s.toGroups, func() { s.feed(func(r *Registry) Effects { return r.SetGroup(group, s.now) }) })
}

func isOver(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// update writes a pod and queues its events for the informers, which deliver them independently: for the first
// informer a finished pod is a deletion.
func (s *simulation) update(old *corev1.Pod, edit func(*corev1.Pod)) {
	pod := old.DeepCopy()
	edit(pod)
	s.pods[pod.UID] = pod
	switch {
	case isOver(pod):
		if !isOver(old) {
			s.toRegistry = append(s.toRegistry, func() { s.feed(func(r *Registry) Effects { return r.RemovePod(pod.UID, s.now) }) })
			s.toQueue = append(s.toQueue, func() { s.queueDeletes(pod) })
		}
		if pod.Status.Phase == corev1.PodSucceeded {
			s.ended = append(s.ended, func() { s.feed(func(r *Registry) Effects { return r.SetPod(pod, s.now) }) })
		} else {
			s.ended = append(s.ended, func() { s.feed(func(r *Registry) Effects { return r.RemoveFailedPod(pod.UID, s.now) }) })
		}
	default:
		s.toRegistry = append(s.toRegistry, func() { s.feed(func(r *Registry) Effects { return r.SetPod(pod, s.now) }) })
		s.toQueue = append(s.toQueue, func() { s.queueUpdates(old, pod) })
	}
}

func (s *simulation) deletePod(pod *corev1.Pod) {
	s.say("delete %s", pod.UID)
	delete(s.pods, pod.UID)
	if pod.Status.Phase == corev1.PodSucceeded {
		s.ended = append(s.ended, func() { s.feed(func(r *Registry) Effects { return r.RemoveSucceededPod(pod.UID, s.now) }) })
	}
	if !isOver(pod) {
		s.toRegistry = append(s.toRegistry, func() { s.feed(func(r *Registry) Effects { return r.RemovePod(pod.UID, s.now) }) })
		s.toQueue = append(s.toQueue, func() { s.queueDeletes(pod) })
	}
}

// deliverPodAgain does what a resync or a reconnecting watch does.
func (s *simulation) deliverPodAgain(pod *corev1.Pod) {
	if isOver(pod) {
		if pod.Status.Phase == corev1.PodSucceeded {
			s.ended = append(s.ended, func() { s.feed(func(r *Registry) Effects { return r.SetPod(pod, s.now) }) })
		}
		return
	}
	s.toRegistry = append(s.toRegistry, func() { s.feed(func(r *Registry) Effects { return r.SetPod(pod, s.now) }) })
}

// deliver delivers the oldest pending event of one informer.
func (s *simulation) deliver() {
	queues := []*[]func(){&s.toRegistry, &s.toQueue, &s.ended, &s.toGroups}
	s.rand.Shuffle(len(queues), func(i, j int) { queues[i], queues[j] = queues[j], queues[i] })
	for _, q := range queues {
		if len(*q) > 0 {
			event := (*q)[0]
			*q = (*q)[1:]
			event()
			return
		}
	}
}

func (s *simulation) apply(e Effects) {
	for _, pod := range e.Activate {
		if !s.calm && s.chance(20) {
			s.say("wake-up of %s is lost", pod.UID)
			continue
		}
		s.activate(pod)
	}
	s.applyPreemption(e)
}

// the scheduling queue

func (s *simulation) queueAdds(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" || s.inFlight[pod.UID] {
		s.seenPods[pod.Name] = pod
		if pod.Spec.NodeName != "" {
			s.used[pod.UID] = pod.Spec.NodeName
		}
		return
	}
	s.seenPods[pod.Name] = pod
	q := &queued{pod: pod}
	s.queue[pod.Name] = q
	s.pass(q)
}

func (s *simulation) queueUpdates(old, pod *corev1.Pod) {
	if seen := s.seenPods[pod.Name]; seen == nil || seen.UID == pod.UID {
		s.seenPods[pod.Name] = pod
	}
	switch q := s.queue[pod.Name]; {
	case pod.Spec.NodeName != "":
		if q != nil && q.pod.UID == pod.UID {
			delete(s.queue, pod.Name)
		}
		s.used[pod.UID] = pod.Spec.NodeName
	case q != nil && q.pod.UID == pod.UID:
		q.pod = pod
		if len(old.Spec.SchedulingGates) > len(pod.Spec.SchedulingGates) && !q.active {
			s.pass(q)
		}
	}
}

func (s *simulation) queueDeletes(pod *corev1.Pod) {
	if q := s.queue[pod.Name]; q != nil && q.pod.UID == pod.UID {
		delete(s.queue, pod.Name)
	}
	if seen := s.seenPods[pod.Name]; seen != nil && seen.UID == pod.UID {
		delete(s.seenPods, pod.Name)
	}
	if !s.inBinding(pod.UID) {
		delete(s.used, pod.UID)
	}
	s.capacityChanged(pod.Spec.NodeName != "")
}

func (s *simulation) inBinding(uid types.UID) bool {
	return slices.ContainsFunc(s.bindings, func(b *bindingCycle) bool { return b.pod.UID == uid })
}

// capacityChanged is the event that wakes refused leaders.
func (s *simulation) capacityChanged(really bool) {
	if really {
		s.r.RecordRoomGrowth()
		s.wakeAll()
	}
}

// wakeAll is a caller that does not know which gangs to wake.
func (s *simulation) wakeAll() {
	s.missed = true
	s.apply(s.r.RetryWaiting([]Shape{s}, []Topic{Anything}, s.now))
}

func (s *simulation) queuedNames() []string {
	var names []string
	for n := range s.queue {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// pass evaluates the gates.
func (s *simulation) pass(q *queued) {
	if len(q.pod.Spec.SchedulingGates) > 0 {
		return
	}
	if ok, _ := s.r.MayEnterQueue(q.pod); ok {
		q.active = true
	}
}

func (s *simulation) activate(pod *corev1.Pod) {
	if s.inFlight[pod.UID] {
		s.again[pod.UID] = true
		return
	}
	if q := s.queue[pod.Name]; q != nil && !q.active {
		s.pass(q)
	}
}

// backToQueue ends a pod's cycle or binding without success.
func (s *simulation) backToQueue(pod *corev1.Pod) {
	s.r.RecordCycleFailed(pod.UID, s.now)
	delete(s.inFlight, pod.UID)
	seen := s.seenPods[pod.Name]
	if seen == nil || seen.UID != pod.UID || seen.Spec.NodeName != "" {
		delete(s.again, pod.UID)
		return
	}
	q := &queued{pod: seen}
	s.queue[pod.Name] = q
	if s.again[pod.UID] || seen.Annotations[v2alpha2.PodGroupAnnotation] == "" { // the queue retries a pod without a gang itself
		delete(s.again, pod.UID)
		s.pass(q)
	}
	s.apply(s.r.RecordRequeued(pod.UID, s.now))
}

// the scheduling loop

func (s *simulation) schedule() {
	if s.cycle != nil {
		s.endPlanning()
		return
	}
	if member := s.r.NextMember(); member != nil {
		q := s.queue[member.Name]
		if q != nil && !q.active {
			s.pass(q)
		}
		if q == nil || !q.active {
			s.say("%s is not in the queue", member.UID)
			s.apply(s.r.AbortPlanOf(member.UID, AbortLate, "not in the queue", s.now))
			return
		}
		if q.pod.UID != member.UID {
			s.apply(s.r.AbortPlanOf(member.UID, AbortLate, "not in the queue", s.now))
		}
		s.startCycle(q)
		return
	}
	s.judge()
	if s.r.IsUnwinding() && s.chance(80) {
		return // a leader waits until the room is free
	}
	var first *queued
	for _, name := range s.queuedNames() {
		q := s.queue[name]
		if q.active && (first == nil || s.r.RankOf(q.pod, s.now).Compare(s.r.RankOf(first.pod, s.now)) < 0) {
			first = q
		}
	}
	if first != nil {
		s.startCycle(first)
	}
}

func (s *simulation) startCycle(q *queued) {
	delete(s.queue, q.pod.Name)
	s.missed = false
	s.r.RecordPopped(q.pod.UID)
	pod := q.pod
	s.inFlight[pod.UID] = true
	if pod.DeletionTimestamp != nil { // skipPodSchedule
		delete(s.inFlight, pod.UID)
		s.queue[pod.Name] = &queued{pod: pod}
		return
	}
	if pod.Annotations[v2alpha2.PodGroupAnnotation] == "" {
		// A pod without a gang takes room if there is any.
		if n := s.freeNode(nil); n != "" && s.used[pod.UID] == "" {
			s.used[pod.UID] = n
			s.bindings = append(s.bindings, &bindingCycle{pod: pod, node: n, stage: 2})
			return
		}
		s.backToQueue(pod)
		return
	}
	if node, ok := s.r.PlannedNode(pod.UID); ok {
		s.place(pod, node)
		return
	}
	if !s.calm && s.chance(2) {
		s.say("the cycle of %s fails before its attempt", pod.UID)
		s.backToQueue(pod)
		return
	}
	s.apply(s.r.RetryWaiting(nil, nil, s.now))
	if s.r.MustYield(pod, s.now) {
		s.say("%s lets another gang go first", pod.UID)
		s.backToQueue(pod)
		return
	}
	s.checkOrder(pod)
	work, why := s.r.BeginAttempt(pod)
	if work == nil {
		s.say("%s does not plan: %s", pod.UID, why)
		s.backToQueue(pod)
		return
	}
	if s.r.gangs[work.Gang].plan != nil {
		s.fail("%s plans a gang whose plan is in force", pod.UID)
	}
	s.say("%s plans its %s", pod.UID, work.Task)
	s.cycle = &cycle{pod: pod, work: work}
	if s.chance(70) {
		s.endPlanning()
	}
}

func (s *simulation) free() map[string]int {
	free := map[string]int{}
	for n, c := range s.nodes {
		free[n] = c
	}
	for _, n := range s.used {
		free[n]--
	}
	return free
}

func (s *simulation) freeNode(free map[string]int) string {
	if free == nil {
		free = s.free()
	}
	for _, n := range slices.Sorted(func(yield func(string) bool) {
		for n := range free {
			if !yield(n) {
				return
			}
		}
	}) {
		if free[n] > 0 {
			return n
		}
	}
	return ""
}

// simulatedWorld consists of nodes with room for a number of pods.
type simulatedWorld struct {
	placement.NoTopology

	free   map[string]int
	placed []string
	s      *simulation
}

func (w *simulatedWorld) Place(int, string) (string, bool) {
	n := w.s.freeNode(w.free)
	if n == "" {
		return "", false
	}
	w.free[n]--
	w.placed = append(w.placed, n)
	return n, true
}

func (w *simulatedWorld) Undo(n int) {
	for ; n > 0; n-- {
		last := len(w.placed) - 1
		w.free[w.placed[last]]++
		w.placed = w.placed[:last]
	}
}

func (w *simulatedWorld) Capacity(int) placement.Capacity {
	c := placement.Capacity{Nodes: len(w.free)}
	for _, n := range w.free {
		c.Pods += n
	}
	return c
}

func (w *simulatedWorld) Explain(int, string) *placement.Refusal {
	return &placement.Refusal{Reasons: map[string]int{"full": len(w.free)}}
}
func (w *simulatedWorld) Kind(int) placement.Kind     { return placement.Independent }
func (w *simulatedWorld) Domains(int, []int) []string { return nil }
func (w *simulatedWorld) Open(int, string) bool       { return true }
func (w *simulatedWorld) Nodes(int, int) []string     { return nil }
func (w *simulatedWorld) Weight(int) int64            { return 1 }

// simulatedPlan processes the work as the plugin does.
func simulatedPlan(work *Work, world placement.World) []placement.Placement {
	switch work.Task {
	case LostUnit, SurplusUnit:
		return placement.Unit(work.Problem, world, placement.Budget{}).Placements
	case SurplusSingle:
		return placement.Singles(work.Problem, world, placement.Budget{})
	}
	placements, short := placement.Minimum(work.Problem, world, placement.Budget{})
	if work.Task == Minimum || len(placements) > 0 {
		return placements
	}
	if placements = work.Limit(placement.Singles(work.Singles, world, placement.Budget{})); len(placements) > 0 || short != nil {
		return placements
	}
	return placement.Unit(work.Problem, world, placement.Budget{}).Placements
}

// wait returns what a refused gang waits for.
func (s *simulation) wait() Wait {
	*s.waits++
	released := s.waits
	w := Wait{Missed: s.missed, Took: time.Duration(s.rand.Intn(5)) * time.Millisecond, Release: func() { *released-- }}
	if s.chance(70) {
		w.Needs = []Need{{s, 1}}
	}
	if s.chance(10) {
		w.Again = s.now.Add(time.Duration(s.rand.Intn(2000)) * time.Millisecond)
	}
	return w
}

// endPlanning ends the leader's PreFilter, and its cycle.
func (s *simulation) endPlanning() {
	pod, work := s.cycle.pod, s.cycle.work
	s.cycle = nil
	placements := simulatedPlan(work, &simulatedWorld{free: s.free(), s: s})
	if len(placements) == 0 {
		s.say("%s: refused", pod.UID)
		wait := s.wait()
		wait.Until = s.makeRoom(work)
		s.apply(s.r.RecordGangRefused(work.Gang, podgroup.Refusal{Reason: v2alpha2.ReasonFragmented}, wait, s.now))
		s.backToQueue(pod)
		return
	}
	plan, why := s.r.CommitPlan(work, placements, s.now)
	if plan == nil {
		s.say("%s: stale: %s", pod.UID, why)
		s.backToQueue(pod)
		return
	}
	s.say("plan %d of %s: %v", plan.ID, work.Gang.Name, placements)
	s.checkPlanned(work.Gang)
	s.trees[plan.ID], s.plans[plan.ID] = work.Tree, plan
	if node, ok := s.r.PlannedNode(pod.UID); ok {
		s.place(pod, node)
		return
	}
	s.backToQueue(pod)
}

// place simulates the rest of a member's cycle.
func (s *simulation) place(pod *corev1.Pod, node string) {
	switch {
	case !s.calm && s.chance(4):
		s.say("%s refuses %s", node, pod.UID)
		if s.r.RecordMemberRefused(pod.UID, "node refused", s.chance(50), s.now) {
			s.refused.Add(1)
		}
		s.backToQueue(pod)
		return
	case !s.calm && s.chance(2):
		s.say("the cycle of %s breaks", pod.UID)
		s.backToQueue(pod)
		return
	}
	if err := s.r.AssumeMember(pod.UID, node, s.now); err != nil {
		s.say("%s is not assumed: %v", pod.UID, err)
		s.giveBack(pod.UID)
		s.backToQueue(pod)
		return
	}
	if err := s.r.PermitMember(pod.UID); err != nil || !s.calm && s.chance(2) {
		s.say("%s is not permitted: %v", pod.UID, err)
		s.giveBack(pod.UID)
		s.backToQueue(pod)
		return
	}
	s.used[pod.UID] = node
	b := &bindingCycle{pod: pod, node: node}
	if s.r.IsDoomed(pod.UID) && s.chance(50) && s.r.HoldOnNode(pod.UID) {
		b.plan, b.stage = s.r.PlanOf(pod.UID), held
	}
	s.say("%s goes to be bound, held: %t", pod.UID, b.stage == held)
	s.bindings = append(s.bindings, b)
}

// held is the stage of a member of a doomed plan that is not prepared: it waits until the plan is aborted.
const held = 1

// giveBack does the work of Unreserve. If the pod failed by itself, the scheduler tells the reason a little later.
func (s *simulation) giveBack(uid types.UID) {
	e, fails, _ := s.r.ReleaseUnexplained(uid, s.now)
	s.apply(e)
	if fails {
		s.refused.Add(1)
		s.toJudge = append(s.toJudge, uid)
	}
}

// judge tells why pods failed.
func (s *simulation) judge() {
	if len(s.toJudge) > 0 && (s.calm || s.chance(50)) {
		uid := s.toJudge[0]
		s.toJudge = s.toJudge[1:]
		s.say("the failure of %s is judged", uid)
		s.apply(s.r.RecordReason(uid, "no volume", s.chance(50), s.now))
	}
	s.apply(s.r.EndDoomedPlans(s.now))
}

// bind advances one binding goroutine.
func (s *simulation) bind() {
	if len(s.bindings) == 0 {
		return
	}
	i := s.rand.Intn(len(s.bindings))
	b := s.bindings[i]
	isMember := b.pod.Annotations[v2alpha2.PodGroupAnnotation] != ""
	end := func(success bool) {
		s.bindings = slices.Delete(s.bindings, i, i+1)
		if success {
			delete(s.inFlight, b.pod.UID)
			delete(s.again, b.pod.UID)
			s.say("%s is bound", b.pod.UID)
			if seen := s.seenPods[b.pod.Name]; seen == nil || seen.UID != b.pod.UID {
				delete(s.used, b.pod.UID) // deleted in the meantime: the cache removes it
			}
			if isMember {
				s.apply(s.r.RecordPosted(b.pod.UID, s.now))
			}
			return
		}
		if p := s.seenPods[b.pod.Name]; p == nil || p.UID != b.pod.UID || p.Spec.NodeName == "" {
			delete(s.used, b.pod.UID)
		}
		s.say("%s is given back", b.pod.UID)
		if isMember {
			s.giveBack(b.pod.UID)
		}
		s.backToQueue(b.pod)
		s.wakeAll()
	}
	switch b.stage {
	case 0:
		if !s.calm && s.chance(3) {
			s.say("volumes of %s fail", b.pod.UID)
			end(false)
			return
		}
		plan, err := s.r.recordArrival(b.pod.UID)
		if err != nil {
			end(false)
			return
		}
		b.plan, b.stage = plan, 1
	case 1:
		select {
		case <-b.plan.opened:
			b.stage = 2
			return
		default:
		}
		select {
		case <-b.plan.failed:
			end(false)
			return
		default:
		}
		if !s.calm && s.chance(1) {
			s.say("%s waits no longer", b.pod.UID)
			s.apply(s.r.AbortPlanOf(b.pod.UID, AbortLate, "timeout", s.now))
			end(false)
		}
	case 2:
		if isMember {
			s.checkPosting(b)
		}
		p := s.pods[b.pod.UID]
		if p == nil || p.DeletionTimestamp != nil || p.Spec.NodeName != "" || len(p.Spec.SchedulingGates) > 0 {
			s.say("the API server refuses the binding of %s", b.pod.UID)
			end(false)
			return
		}
		if !s.calm && s.chance(6) {
			s.say("the binding of %s fails", b.pod.UID)
			end(false)
			return
		}
		s.update(p, func(p *corev1.Pod) {
			p.Spec.NodeName = b.node
			if b.plan != nil {
				p.Annotations[v2alpha2.BoundForAnnotation] = s.r.SignedMark(b.plan, p.UID)
			}
		})
		s.noteMinimums()
		if !s.calm && s.repairTimeout < time.Second && s.chance(30) {
			s.restart()
			for n := range s.nodes { // without room a gang that is partial now is not completed
				s.nodes[n] = 0
			}
			return
		}
		if !s.calm && s.chance(6) {
			s.say("the binding of %s is posted, and its answer lost", b.pod.UID)
			end(false)
			return
		}
		end(true)
	}
}

// checkPosting: no binding of a gang is posted before the barrier has opened, with all members assumed.
func (s *simulation) checkPosting(b *bindingCycle) {
	s.t.Helper()
	if !b.plan.open || b.plan.aborted {
		s.fail("%s is posted; its plan is open: %t, aborted: %t", b.pod.UID, b.plan.open, b.plan.aborted)
	}
	if !s.opened[b.plan.ID] {
		s.fail("%s is posted although the barrier was not seen open", b.pod.UID)
	}
}

// checkOrder: no surplus is scheduled before a waiting minimum of its priority that is worth an attempt, and no gang
// before one that precedes it, except by gangs that have yielded for the maximum time.
func (s *simulation) checkOrder(pod *corev1.Pod) {
	s.t.Helper()
	m := s.r.members[pod.UID]
	if m == nil || m.gang.leader != pod.UID || !m.gang.yieldedAt.IsZero() && s.now.Sub(m.gang.yieldedAt) >= yieldLimit {
		return
	}
	for key, g := range s.r.gangs {
		if g != m.gang && g.retried && g.leaderRank().Compare(m.gang.leaderRank()) < 0 {
			s.fail("%s is planned (%s) before %s (%s), which goes before it", m.gang.key, m.gang.task, key, g.task)
		}
	}
}

// check verifies the invariants that hold after every step.
func (s *simulation) check() {
	s.t.Helper()
	r := s.r
	if s.checks++; !s.calm || s.checks%50 == 0 { // the final phase without faults is long
		checkNumbers(s, r)
		checkNumbers(s, s.standby)
	}
	unwinding, inForce := 0, map[*Plan]bool{}
	for uid, p := range plans(r) {
		if p == nil {
			s.fail("the plan of %s is forgotten, and not over", uid)
		}
		if m := r.members[uid]; m != nil && m.gang.plan != nil && m.gang.plan != p && m.gang.plan.Has(uid) {
			s.fail("%s is in the plan of its gang, and seems to be in another one", uid)
		}
		if p.gang.plan != p {
			s.fail("the plan of %s is not that of its gang", uid)
		}
		if r.gangs[p.gang.key] != p.gang {
			s.fail("gang %s is forgotten, and its plan is not over", p.gang.key)
		}
	}
	for key, g := range r.gangs {
		if p := g.plan; p != nil {
			inForce[p] = true
			if p.aborted {
				unwinding += p.assumed
			}
			if g.leader != "" {
				s.fail("gang %s has a leader beside its plan", key)
			}
			if p.open && p.aborted {
				s.fail("plan %d is open and aborted", p.ID)
			}
		}
		if g.group == nil && len(g.members) == 0 && g.plan == nil {
			s.fail("gang %s is empty and not forgotten", key)
		}
		if g.leader != "" {
			m := g.members[g.leader]
			if m == nil || !m.entry.IsUsable(g.numbers.Profile()) {
				s.fail("the leader of %s cannot lead", key)
			}
		}
		if _, state := r.taskOf(g, g.numbers.Profile(), s.now); state != idle && state != unknown && g.leader == "" && g.inTimers == 0 {
			s.fail("gang %s is complete, has neither leader nor plan, and is not due for Tick", key)
		}
		// A gated leader was refused, or will be woken. If the leader is being deleted, the queue may learn of it
		// before the registry, which then elects another leader.
		truth := s.pods[g.leader]
		if g.leader != "" && g.phase != Elected && !g.phase.isRefused() && g.inTimers == 0 && truth != nil && truth.Spec.NodeName == "" && truth.DeletionTimestamp == nil {
			pod := g.members[g.leader].pod
			q := s.queue[pod.Name]
			if !s.inFlight[g.leader] && (q == nil || !q.active) && !(s.cycle != nil && s.cycle.pod.UID == g.leader) {
				s.fail("the leader %s of %s is gated, and nothing will wake it", g.leader, key)
			}
		}
	}
	if unwinding != r.unwinding {
		s.fail("unwinding is %d, want %d", r.unwinding, unwinding)
	}
	if c := r.committing; c != nil && (c.aborted || !inForce[c]) {
		s.fail("plan %d is being committed, and over", c.ID)
	}
	for id, p := range s.plans {
		if !p.open || s.opened[id] {
			continue
		}
		s.opened[id] = true
		s.say("the barrier of plan %d opens", id)
		counts, before, placed := gang.Counts{}, gang.Counts{}, gang.Counts{}
		order := make([]*member, len(p.members))
		for i, x := range p.members {
			m := x.member
			order[i] = m
			if m.state != count.Assumed {
				s.fail("the barrier of plan %d is open, and %s is not assumed", id, m.pod.UID)
			}
			counts[m.pod.Labels[v2alpha2.SubGroupLabel]]++
			placed[m.pod.Labels[v2alpha2.SubGroupLabel]]++
		}
		strays := 0
		for _, m := range p.gang.members {
			if m.isBound() && m.misplaced != "" {
				strays++
			}
			if !slices.Contains(order, m) && (m.isBound() || p.gang.hasCompleted(m)) {
				counts[m.pod.Labels[v2alpha2.SubGroupLabel]]++
				if _, vanished := r.vanished[m.pod.UID]; !vanished {
					before[m.pod.Labels[v2alpha2.SubGroupLabel]]++
				}
			}
		}
		for _, group := range append(s.trees[id].Groups(), s.trees[id].Root()) {
			if p.Task == Minimum || p.gang.group == nil || podsOf(group, before) > 0 || podsOf(group, placed) == 0 || group.Satisfied(counts) {
				continue
			}
			if group.Parent() != nil && podsOf(group.Parent(), before) > 0 || group.Parent() == nil && strays == 0 {
				s.fail("the barrier of plan %d (%s) is open, and %s, which had no pods, will not have its minimum: %v after %v", id, p.Task, group.Path(), counts, before)
			}
		}
		if p.Task == Minimum && !s.trees[id].Satisfied(counts) {
			s.fail("the barrier of plan %d is open, and the gang will not have its minimum: %v", id, counts)
		}
	}
	if r.members != nil {
		for uid, m := range r.members {
			if m.gang.members[uid] != m || r.gangs[m.gang.key] != m.gang {
				s.fail("member %s is lost to its gang", uid)
			}
		}
	}
}

// plans returns, by pod, the plans that are not over.
func plans(r *Registry) map[types.UID]*Plan {
	all := map[types.UID]*Plan{}
	for _, g := range r.gangs {
		if g.plan != nil {
			for uid := range g.plan.places {
				all[uid] = r.planOf(uid) // of a pod that left the gang this may be another plan
			}
		}
	}
	maps.Copy(all, r.left)
	return all
}

// podsOf returns the pods of all leaves below the group.
func podsOf(g *gang.Group, c gang.Counts) int {
	if g.IsLeaf() {
		return c[g.Name()]
	}
	n := 0
	for _, child := range g.Children() {
		n += podsOf(child, c)
	}
	return n
}

// settleDown stops the faults, makes room, and waits until every gang that can have its minimum is admitted.
func (s *simulation) settleDown() {
	s.t.Helper()
	s.calm = true
	s.say("-- calm --")
	for n := range s.nodes {
		s.nodes[n] = 1000
	}
	s.nodes["n9"] = 1000
	s.capacityChanged(true)
	for range 150 { // 15 seconds
		for len(s.toRegistry)+len(s.toQueue)+len(s.ended)+len(s.toGroups) > 0 {
			s.deliver()
			s.check()
		}
		for range 30 {
			s.schedule()
			s.check()
		}
		for range 60 {
			s.bind()
			s.check()
		}
		for range 20 {
			s.evict()
			s.check()
		}
		s.now = s.now.Add(100 * time.Millisecond)
		s.standby.Tick(s.now)
		s.apply(s.r.Tick(s.now))
		s.apply(s.r.RetryWaiting(nil, nil, s.now))
		s.repair()
		for _, key := range simulatedKeys {
			s.writeStatus(key)
		}
		s.check()
	}
	if len(s.bindings) > 0 || s.cycle != nil || s.r.committing != nil || s.r.unwinding != 0 || len(plans(s.r)) > 0 {
		s.fail("not quiet: %d bindings, committing %v, unwinding %d, %d plans", len(s.bindings), s.r.committing, s.r.unwinding, len(plans(s.r)))
	}
	for key, g := range s.r.gangs {
		if g.tree == nil {
			continue
		}
		root, c := g.tree.Root(), naiveCounts(s.r, g)
		if root.Satisfied(c.usable) && !g.admitted {
			s.fail("gang %s can have its minimum, there is room, and it is not admitted: phase %s leader %q refused %v plan %v", key, g.phase, g.leader, g.refusedAt, g.plan)
		}
		if g.admitted && !root.Satisfied(c.bound) && root.Satisfied(c.usable) {
			s.fail("gang %s is not refilled: needs %+v, has %+v, admitted %v, leader %q, refused %v", key, g.group.Spec, c, g.admittedGroups, g.leader, g.refusedAt)
		}
		for _, leaf := range g.tree.Leaves() { // surplus too: there is room for all pods
			if g.admitted && g.isWhole(leaf) && c.usable[leaf.Name()] > c.bound[leaf.Name()] {
				s.fail("surplus of %s in %q is not placed: %+v, task %s, leader %q, gated until %v, now %v, phase %s", key, leaf.Name(), c, g.task, g.leader, g.gatedUntil, s.now, g.phase)
			}
			if g.admitted && !leaf.Satisfied(c.bound) && leaf.Satisfied(c.usable) && leaf.Parent() != nil && g.isWhole(leaf.Parent()) {
				s.fail("sub-group %q of %s could have its minimum: %+v, task %s, leader %q", leaf.Name(), key, c, g.task, g.leader)
			}
		}
	}
	s.checkNoPreemption()
	for uid, p := range s.pods {
		if p.Annotations[v2alpha2.PodGroupAnnotation] == "" && p.Spec.NodeName == "" && p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 {
			s.fail("pod %s left its gang and is not scheduled", uid)
		}
	}
}

// deleteAll deletes everything; no state may be left.
func (s *simulation) deleteAll() {
	s.t.Helper()
	for _, uid := range s.uids() {
		s.deletePod(s.pods[uid])
	}
	for key := range s.groups {
		s.toGroups = append(s.toGroups, func() { s.feed(func(r *Registry) Effects { return r.RemoveGroup(key, s.now) }) })
	}
	for len(s.toRegistry)+len(s.toQueue)+len(s.ended)+len(s.toGroups) > 0 {
		s.deliver()
		s.check()
	}
	for range 30 {
		s.now = s.now.Add(200 * time.Millisecond)
		s.standby.Tick(s.now)
		s.apply(s.r.Tick(s.now))
		s.apply(s.r.RetryWaiting(nil, nil, s.now))
		s.check()
	}
	ranks := 0
	s.r.ranks.Range(func(any, any) bool { ranks++; return true })
	if n := len(s.r.gangs) + len(s.r.members) + len(s.r.left) + len(s.r.vanished) + len(s.r.leftGang) + len(s.r.index.partials) + len(s.r.index.timers.Items()) + len(s.r.index.first.Items()) +
		len(s.r.index.yielding) + s.r.WaitingGangs() + len(s.r.waiting.byShape) + len(s.r.waiting.byTopic) + len(s.r.waiting.heard.Items()) + len(s.r.waiting.turns.Items()) + len(s.r.waiting.unheard) + *s.waits +
		len(s.r.index.units.priorityOf) + len(s.r.index.minimums.priorityOf) + len(s.r.index.minimums.count) + len(s.r.index.gated) + ranks; n > 0 {
		s.fail("left: gangs %v, members %v, %d plans, vanished %v, leftGang %v, %d ranks, indices %+v, waiting %+v, %d conditions",
			s.r.Keys(), s.r.members, len(s.r.left), s.r.vanished, s.r.leftGang, ranks, s.r.index, s.r.waiting, *s.waits)
	}
}
