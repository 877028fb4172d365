// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// Thirty gangs of five priorities arrive on a cluster that holds half of them, and their pods are created again
// whenever they were evicted. Within ten minutes of virtual time it settles: no gang ends twice for the same other one,
// unless one of higher priority took the room meanwhile, no pod ends in vain, nothing moves in the last minutes, and
// then no gang that waits could start, not even by preemption. Each preemption has a cause: the gang has arrived, was
// preempted itself, or has lost the room to one of higher priority. No gang of the same or a lower priority ends
// another one.
func TestPreemptionsSettle(t *testing.T) {
	t.Parallel()
	testSettling(t, false)
}

// The same with gangs of two or three sub-groups, of which some are needed, and with pods of different priorities: a
// gang is not ended by pods that it was preempted by, or for, without end.
func TestPreemptionsOfMixedPrioritiesSettle(t *testing.T) {
	t.Parallel()
	testSettling(t, true)
}

func testSettling(t *testing.T, mixed bool) {
	for seed := range 40 * rounds.Number() {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			m := newMarket(t, int64(seed))
			m.mixed = mixed
			m.runFor(10 * time.Minute)
			m.checkSettled()
		})
	}
}

// market is a cluster without faults, in virtual time. Pods that are evicted take up to twenty seconds to end.
type market struct {
	t          *testing.T
	rand       *rand.Rand
	r          *Registry
	start, now time.Time
	last       time.Time // of the last eviction
	serial     int
	mixed      bool // gangs have sub-groups, and pods of different priorities

	nodes     map[string]int
	pods      map[types.UID]*corev1.Pod
	ends      map[types.UID]time.Time // of terminating pods
	groups    map[Key]*v2alpha2.PodGroup
	arrive    map[Key]time.Time // gangs that have not arrived yet
	size      map[Key]int
	active    map[types.UID]*corev1.Pod             // leaders in the queue
	dirty     map[Key]bool                          // gangs whose status may have changed
	room      map[reservations.Asker]map[string]int // free, until something changes
	view      *reservations.View                    // of room
	evict     []*evictions.Eviction
	pairs     map[[2]string]int // whole gangs that ended, by preemptor and victim
	overtaken map[string]int    // by preemptor: how often a gang of higher priority took its room
	preempted map[string]int    // by gang: how often it ended as a whole
	decisions map[string]int    // by preemptor: how often it ended others
	victims   int
	history   []string // what has happened

	searchTakes time.Duration                   // of a search without victims
	searches    int                             // number of these
	final       bool                            // the result of the last search does not change by itself
	why         string                          // why it was hopeless
	cuts        int                             // that many searches are cut short first
	slow        bool                            // a search needs more time than the first one after a decision has
	isHeld      func(*podgroup.Preempting) bool // no such status is written; nil: all are
	unmarked    int                             // victims whose marks were taken back
	carryOut    func(Effects)                   // marks and evicts victims; nil: at once
	isExcused   func(*evictions.Eviction) bool  // pods may have ended in vain for it; nil: for none
	stages      *transitions                    // of evictions
	priorityOf  func(string) (int32, bool)      // of classes; nil: there are none
	dies        func() bool                     // called before each write; true: another process leads now, and it is not made. nil: none dies
}

func newMarket(t *testing.T, seed int64) *market {
	m := &market{
		t: t, rand: rand.New(rand.NewSource(seed)), start: time.Unix(1_000_000, 0),
		nodes: map[string]int{}, pods: map[types.UID]*corev1.Pod{}, ends: map[types.UID]time.Time{}, groups: map[Key]*v2alpha2.PodGroup{},
		arrive: map[Key]time.Time{}, size: map[Key]int{}, active: map[types.UID]*corev1.Pod{}, dirty: map[Key]bool{}, searchTakes: time.Millisecond, pairs: map[[2]string]int{}, overtaken: map[string]int{},
		preempted: map[string]int{}, decisions: map[string]int{}, stages: newStageTransitions(),
	}
	m.now = m.start
	m.r = m.newRegistry()
	m.apply(m.r.SetSynced(m.now))
	m.r.AbandonedEvictions(nil, m.now)
	total := 0
	for i := range 30 {
		key := Key{Namespace: "ns", Name: fmt.Sprintf("g%02d", i)}
		m.size[key] = 1 + m.rand.Intn(8)
		m.arrive[key] = m.start.Add(time.Duration(m.rand.Intn(60_000)) * time.Millisecond)
		total += m.size[key]
	}
	for i := range max(2, total/2/6) {
		m.nodes[fmt.Sprintf("n%d", i)] = 6
	}
	return m
}

// newRegistry returns the registry of a process that has seen nothing.
func (m *market) newRegistry() *Registry {
	r := New()
	r.Configure(Options{
		RepairTimeout: 30 * time.Second, SingleSurplusAfter: 2 * time.Second, PreemptionTimeout: 30 * time.Second,
		Amount:   func(*corev1.Pod) reservations.Amount { return reservations.Amount{Pods: 1} },
		Priority: m.priorityOf,
		PreemptionEnded: func(p *evictions.Eviction, outcome evictions.Outcome) {
			m.say("plan %s of %s: %s", p.ID, p.Gang.Name, outcome)
			if outcome == evictions.Overtaken {
				m.overtaken[p.Gang.Name]++
			}
			if outcome == evictions.Wasted && (m.isExcused == nil || !m.isExcused(p)) {
				m.t.Errorf("at %s pods ended for %s (priority %d), and it was not placed: %v; phase %s; reserved %v, free %v", m.now.Sub(m.start), p.Gang.Name, p.Priority, uidsOf(p.Victims), m.r.gangs[p.Gang].phase, m.reserved(), m.free(reservations.Asker{Gang: p.Gang, Priority: p.Priority}))
			}
		},
	})
	r.AddProfile(wrappers.SchedulerName)
	r.SetKeys(testKeys, m.now)
	r.enteredStage = m.stages.recordStage
	return r
}

// step is what happens within 100 ms.
func (m *market) step() {
	m.now = m.now.Add(100 * time.Millisecond)
	for _, key := range sortedKeys(m.arrive) {
		if !m.now.Before(m.arrive[key]) {
			delete(m.arrive, key)
			if m.mixed {
				m.createTree(key)
				continue
			}
			m.createGang(key, 1+m.rand.Intn(m.size[key]), m.size[key], int32(m.rand.Intn(5)))
		}
	}
	m.endPods()
	m.apply(m.r.Tick(m.now))
	m.apply(m.r.RetryWaiting(nil, nil, m.now))
	for i := 0; i < 20 && len(m.active)+len(m.dirty)+len(m.evict) > 0; i++ {
		m.evictVictims()
		m.schedule()
		for _, key := range sortedKeys(m.dirty) {
			delete(m.dirty, key)
			m.writeStatus(key)
		}
	}
}

// endPods ends the pods whose time has come. They are created again.
func (m *market) endPods() {
	for _, uid := range sortedUIDs(m.ends) {
		if pod := m.pods[uid]; !m.now.Before(m.ends[uid]) {
			delete(m.ends, uid)
			delete(m.pods, uid)
			m.room = nil
			m.apply(m.r.RemovePod(uid, m.now))
			m.r.RecordPodsEnded([]*corev1.Pod{pod}, m.now)
			m.apply(m.r.RetryWaiting([]Shape{m}, []Topic{Anything}, m.now))
			if m.groups[keyOf(pod)] != nil {
				m.createPod(keyOf(pod), *pod.Spec.Priority, pod.Labels)
			}
		}
	}
}

func (m *market) createGang(key Key, minimum, pods int, priority int32, change ...func(*v2alpha2.PodGroupSpec)) {
	m.groups[key] = wrappers.MakePodGroup(key.Name, key.Namespace).UID(key.Name).Generation(1).MinMember(int32(minimum)).Obj()
	for _, f := range change {
		f(&m.groups[key].Spec)
	}
	m.apply(m.r.SetGroup(m.groups[key], m.now))
	for range pods {
		m.createPod(key, priority)
	}
}

// createTree creates a gang of up to three sub-groups, and up to nine pods.
func (m *market) createTree(key Key) {
	leaves := []string{"a", "b", "c"}[:2+m.rand.Intn(2)]
	w := wrappers.MakePodGroup(key.Name, key.Namespace).UID(key.Name).Generation(1).MinSubGroup(int32(1 + m.rand.Intn(len(leaves))))
	for _, leaf := range leaves {
		w.SubGroup(leaf, int32(1+m.rand.Intn(2)))
	}
	m.groups[key] = w.Obj()
	m.apply(m.r.SetGroup(m.groups[key], m.now))
	for _, leaf := range leaves {
		for range 2 + m.rand.Intn(2) {
			m.createPod(key, int32(m.rand.Intn(5)), map[string]string{v2alpha2.SubGroupLabel: leaf})
		}
	}
}

func (m *market) runFor(d time.Duration) {
	for end := m.now.Add(d); m.now.Before(end); {
		m.step()
	}
}

func sortedKeys[V any](of map[Key]V) []Key {
	var keys []Key
	for key := range of {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b Key) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	return keys
}

func sortedUIDs[V any](of map[types.UID]V) []types.UID {
	var uids []types.UID
	for uid := range of {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}

// FittingPods implements Shape.
func (m *market) FittingPods() int {
	n := 0
	for _, free := range m.free(reservations.Asker{}) {
		n += max(0, free)
	}
	return n
}

func (m *market) createPod(key Key, priority int32, labels ...map[string]string) {
	m.serial++
	pod := wrappers.MakePod(fmt.Sprintf("%s-%d", key.Name, m.serial), key.Namespace).UID(fmt.Sprintf("%s.%04d", key.Name, m.serial)).Gang(key.Name).
		CreationTimestamp(m.now).Priority(priority).Controller("Job", key.Name, "job-"+key.Name).Obj()
	for _, l := range labels {
		pod.Labels = l
	}
	m.pods[pod.UID], m.room = pod, nil
	m.apply(m.r.SetPod(pod, m.now))
}

func (m *market) update(uid types.UID, edit func(*corev1.Pod)) {
	pod := m.pods[uid].DeepCopy()
	edit(pod)
	m.pods[uid], m.room = pod, nil
	m.apply(m.r.SetPod(pod, m.now))
}

// say records an event.
func (m *market) say(format string, args ...any) {
	m.history = append(m.history, m.now.Sub(m.start).String()+": "+fmt.Sprintf(format, args...))
	m.t.Log(m.history[len(m.history)-1])
}

func (m *market) apply(e Effects) {
	for _, pod := range e.Activate {
		m.history = append(m.history, pod.Name+" is activated")
	}
	for _, pod := range e.Activate {
		if ok, _ := m.r.MayEnterQueue(pod); ok {
			m.active[pod.UID] = pod
		}
	}
	for _, key := range e.Dirty {
		m.dirty[key] = true
	}
	if m.carryOut != nil {
		m.carryOut(e)
		return
	}
	for _, p := range e.Mark {
		m.apply(m.r.RecordMarked(p, nil, m.now))
	}
	m.evict = append(m.evict, e.Evict...)
	for _, p := range e.Unmark {
		m.unmarked += len(p.Victims)
	}
}

func (m *market) evictVictims() {
	list := m.evict
	m.evict = nil
	for _, p := range list {
		m.checkNeeded(p)
		m.unmarked += len(p.Spared)
		gangs := map[Key]bool{}
		if m.decisions[p.Gang.Name]++; m.decisions[p.Gang.Name] > 1+m.overtaken[p.Gang.Name]+m.preempted[p.Gang.Name] {
			m.t.Errorf("%s ended others %d times: it arrived once, was preempted %d times and overtaken %d times",
				p.Gang.Name, m.decisions[p.Gang.Name], m.preempted[p.Gang.Name], m.overtaken[p.Gang.Name])
		}
		for _, v := range p.Victims {
			if v.Priority >= p.Priority {
				m.t.Errorf("%s of priority %d ended a pod of %s of priority %d", p.Gang.Name, p.Priority, v.Gang.Name, v.Priority)
			}
			m.victims++
			m.last = m.now
			if v.Whole && !gangs[v.Gang] {
				gangs[v.Gang] = true
				m.preempted[v.Gang.Name]++
				pair := [2]string{p.Gang.Name, v.Gang.Name}
				if m.pairs[pair]++; m.pairs[pair] > 1+m.overtaken[p.Gang.Name] {
					m.t.Errorf("%s ended %s twice", p.Gang.Name, v.Gang.Name)
				}
			}
			if pod := m.pods[v.Pod.UID]; pod != nil && pod.DeletionTimestamp == nil {
				m.ends[pod.UID] = m.now.Add(time.Duration(m.rand.Intn(20_000)) * time.Millisecond)
				m.update(pod.UID, markEvicted)
				m.update(pod.UID, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: m.ends[pod.UID]} })
			}
		}
		m.apply(m.r.RecordEvicted(p, nil, m.now))
	}
}

// checkNeeded: when victims are about to end, the gang fits with all of them gone, and with any unit of them put back
// it does not.
func (m *market) checkNeeded(p *evictions.Eviction) {
	m.t.Helper()
	gone, units, needs := map[types.UID]bool{}, map[string][]types.UID{}, m.r.gangs[p.Gang].tree.MinPods()
	if root := m.r.gangs[p.Gang].tree.Root(); !root.IsLeaf() { // of leaves: those of which the fewest pods are missing
		var missing []int
		for _, leaf := range root.Children() {
			if bound, waiting := m.podsOf(p.Gang, leaf.Name(), p.Priority); bound+waiting >= leaf.Min() {
				missing = append(missing, max(0, leaf.Min()-bound))
			}
		}
		slices.Sort(missing)
		needs = 0
		for _, n := range missing[:root.Min()] {
			needs += n
		}
	} else {
		bound, _ := m.podsOf(p.Gang, "", p.Priority)
		needs -= bound
	}
	longest := m.r.opts.MaxVictimGrace
	for uid, pod := range m.pods {
		if end := pod.DeletionTimestamp; end != nil { // its room comes by itself, if it does not need too long
			gone[uid] = m.now.Before(end.Add(30*time.Second)) && (longest == 0 || end.Sub(m.now) <= longest)
		}
	}
	for _, v := range p.Victims {
		gone[v.Pod.UID] = true
		unit := v.Pod.Name
		switch leaf := v.Pod.Labels[v2alpha2.SubGroupLabel]; {
		case v.Whole && v.Gang.Name != "":
			unit = v.Gang.Name
		case leaf != "": // it may end as a whole
			unit = v.Gang.Name + "/" + leaf
		}
		units[unit] = append(units[unit], v.Pod.UID)
	}
	priorities, _ := m.r.gangs[p.Gang].evictionPriorities(wrappers.SchedulerName)
	asker := reservations.Asker{Gang: p.Gang, Priority: priorities[len(priorities)-1]} // as Work.Asker
	fits := func() bool {
		room := 0
		for _, free := range m.freeWithout(asker, gone) {
			room += max(0, free)
		}
		return room >= needs
	}
	if !fits() {
		m.t.Errorf("%s ends pods in vain: %v", p.Gang.Name, names(p.Victims))
	}
	for unit, uids := range units {
		for _, uid := range uids {
			delete(gone, uid)
		}
		if fits() {
			m.t.Errorf("%s ends %s, and does not need it: %v", p.Gang.Name, unit, names(p.Victims))
		}
		for _, uid := range uids {
			gone[uid] = true
		}
	}
}

// podsOf returns how many pods of a sub-group are bound, and how many wait that have at least the priority.
func (m *market) podsOf(key Key, leaf string, priority int32) (bound, waiting int) {
	for _, pod := range m.pods {
		switch {
		case keyOf(pod) != key || pod.Labels[v2alpha2.SubGroupLabel] != leaf || pod.DeletionTimestamp != nil:
		case pod.Spec.NodeName != "":
			bound++
		case *pod.Spec.Priority >= priority:
			waiting++
		}
	}
	return bound, waiting
}

func (m *market) writeStatus(key Key) {
	f, ok := m.r.Facts(key)
	if !ok || f.Group == nil || m.isHeld != nil && f.Preempting != nil && m.isHeld(f.Preempting) {
		return
	}
	group := m.groups[key].DeepCopy()
	group.Status = podgroup.Status(f, metav1.NewTime(m.now))
	if podgroup.Compare(&m.groups[key].Status, &group.Status) != podgroup.Same && (m.dies == nil || !m.dies()) {
		m.groups[key] = group
		m.apply(m.r.SetGroup(group, m.now))
	}
}

// free returns the room on the nodes that a gang may use.
func (m *market) free(a reservations.Asker) map[string]int {
	if view := m.r.reserved.View(); m.room == nil || m.view != view {
		m.room, m.view = map[reservations.Asker]map[string]int{}, view
	}
	if m.room[a] == nil {
		m.room[a] = m.freeWithout(a, nil)
	}
	return maps.Clone(m.room[a])
}

// freeWithout returns the room without the freed pods.
func (m *market) freeWithout(a reservations.Asker, freed map[types.UID]bool) map[string]int {
	free := map[string]int{}
	on := map[string]map[types.UID]bool{}
	for n, capacity := range m.nodes {
		free[n], on[n] = capacity, map[types.UID]bool{}
	}
	for uid, pod := range m.pods {
		if n := pod.Spec.NodeName; on[n] != nil && !freed[uid] {
			free[n]--
			on[n][uid] = true
		}
	}
	for n, list := range m.r.reserved.View().ByNode() {
		for _, x := range list {
			if x.Restricts(a) {
				free[n] -= int(x.Rest(func(uid types.UID) bool { return on[n][uid] }).Pods)
			}
		}
	}
	return free
}

func names(victims []evictions.Victim) []string {
	var list []string
	for _, v := range victims {
		list = append(list, v.Pod.Name+" on "+v.Pod.Spec.NodeName)
	}
	return list
}

// reserved lists the reservations.
func (m *market) reserved() []string {
	var list []string
	for n, on := range m.r.reserved.View().ByNode() {
		for _, x := range on {
			list = append(list, fmt.Sprintf("%s: %s (%d)", n, x.Owner.Gang.Name, x.Priority))
		}
	}
	slices.Sort(list)
	return list
}

// marketWorld is the nodes as one gang sees them.
type marketWorld struct {
	preemptingWorld
	m     *market
	asker reservations.Asker
	freed map[types.UID]bool
	work  *Work
}

// isPlaceable reports whether any node takes pods of the class: those without a node selector.
func (w *marketWorld) isPlaceable(class int) bool {
	return w.work.Classes[class].Spec.NodeSelector == nil
}

func (w *marketWorld) Free(ids []int) {
	for _, id := range ids {
		w.freed[w.pods[id].UID] = true
	}
	w.recount()
}

func (w *marketWorld) Restore(ids []int) {
	for _, id := range ids {
		delete(w.freed, w.pods[id].UID)
	}
	w.recount()
}

func (w *marketWorld) recount() {
	w.free = w.m.freeWithout(w.asker, w.freed)
	for _, node := range w.placed {
		w.free[node]--
	}
}

func (w *marketWorld) Place(class int, _ string) (string, bool) {
	best := ""
	if !w.isPlaceable(class) {
		return "", false
	}
	for n, free := range w.free {
		if free > 0 && (best == "" || n < best) {
			best = n
		}
	}
	if best == "" {
		return "", false
	}
	w.free[best]--
	w.placed = append(w.placed, best)
	return best, true
}

func (w *marketWorld) Slots(class, node int, ended, back []int) int {
	if !w.isPlaceable(class) {
		return 0
	}
	return w.preemptingWorld.Slots(class, node, ended, back)
}

func (w *marketWorld) Capacity(class int) placement.Capacity {
	c := placement.Capacity{Nodes: len(w.free)}
	if !w.isPlaceable(class) {
		return c
	}
	for _, n := range w.free {
		c.Pods += max(0, n)
	}
	return c
}

func (m *market) worldOf(work *Work) *marketWorld {
	w := &marketWorld{preemptingWorld: preemptingWorld{simulatedWorld: simulatedWorld{free: m.free(work.Asker())}}, m: m, work: work, asker: work.Asker(), freed: map[types.UID]bool{}}
	for _, uid := range sortedUIDs(m.pods) {
		if pod := m.pods[uid]; pod.Spec.NodeName != "" {
			w.pods, w.nodes = append(w.pods, pod), append(w.nodes, pod.Spec.NodeName)
		}
	}
	return w
}

// findVictims returns what the plugin would decide.
func (m *market) findVictims(work *Work, confirm bool) (Preempting, preemption.Result) {
	w := m.worldOf(work)
	c := m.r.Candidates(work, RunningPods{Pods: w.pods, Amount: func(int) int64 { return 1 }}, confirm, m.now)
	checkScreening(m.t, m.r, work, w.pods, &c, m.now)
	w.Free(c.Ending)
	d, result := preemption.FindVictims(preemption.Input{Problem: work.Required(), Workloads: c.Workloads}, w, preemption.Budget{})
	if m.why = ""; len(c.Workloads)+c.Protected > 0 {
		m.why = "hopeless"
	}
	if m.final = result == preemption.Hopeless && !c.Unsettled; result != preemption.Decided {
		return Preempting{}, result
	}
	m.serial++
	decision := Preempting{ID: fmt.Sprintf("p%d", m.serial), Placements: d.Plan, Victims: c.Victims(d, w.pods)}
	for _, id := range c.Ending {
		decision.Awaited = append(decision.Awaited, w.pods[id])
	}
	return decision, result
}

// schedule runs the cycle of the first leader in the queue.
func (m *market) schedule() {
	var first *corev1.Pod
	for _, uid := range sortedUIDs(m.active) {
		if pod := m.active[uid]; first == nil || m.r.RankOf(pod, m.now).Compare(m.r.RankOf(first, m.now)) < 0 {
			first = pod
		}
	}
	if first == nil {
		return
	}
	delete(m.active, first.UID)
	m.r.RecordPopped(first.UID)
	m.apply(m.r.RetryWaiting(nil, nil, m.now))
	if m.r.MustYield(first, m.now) {
		m.r.RecordCycleFailed(first.UID, m.now)
		return
	}
	work, _ := m.r.BeginAttempt(first)
	if work == nil {
		m.r.RecordCycleFailed(first.UID, m.now)
		return
	}
	placements := simulatedPlan(work, m.worldOf(work))
	if len(placements) == 0 {
		next := m.makeRoom(work)
		wait := Wait{Topics: []Topic{Anything}, Needs: []Need{{m, 1}}, Fits: func(Shape) int {
			n := 0
			for _, free := range m.free(work.Asker()) {
				n += max(0, free)
			}
			return n
		}}
		wait.Until = next
		m.apply(m.r.RecordGangRefused(work.Gang, podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs}, wait, m.now))
		m.r.RecordCycleFailed(first.UID, m.now)
		return
	}
	plan, why := m.r.CommitPlan(work, placements, m.now)
	if plan == nil {
		m.t.Fatalf("the plan of %s is stale: %s", work.Gang.Name, why)
	}
	m.say("%s (priority %d) %s is bound: %v", work.Gang.Name, work.Priority, work.Task, placements)
	m.bindAll(work, placements)
}

// makeRoom returns when the attempt must be repeated.
func (m *market) makeRoom(work *Work) time.Time {
	step, next := m.r.NextPreemptionStep(work, m.now)
	if step == PreemptNothing {
		return next
	}
	var decision Preempting
	result := preemption.Hopeless
	for _, work.EvictionPriority = range work.EvictionPriorities {
		if decision, result = m.findVictims(work, step == PreemptConfirm); result != preemption.Hopeless {
			break
		}
	}
	switch {
	case result == preemption.Decided && m.slow && work.Cuts == 0:
		return m.r.RecordCut(work.Gang, m.searchTakes, m.now)
	case result == preemption.Decided && m.cuts > 0:
		m.cuts--
		return m.r.RecordCut(work.Gang, m.searchTakes, m.now)
	case result != preemption.Decided:
		m.searches++
		return m.r.RecordHopeless(work.Gang, m.why, m.final, m.searchTakes, m.now)
	case len(decision.Victims) > 0:
		m.say("%s (priority %d) step %d ends %v for %v beside %d ending", work.Gang.Name, work.Priority, step, names(decision.Victims), decision.Placements, len(decision.Awaited))
		m.apply(m.r.RecordPreemption(work, decision, m.now))
		return time.Time{}
	}
	return m.now.Add(unneededPause)
}

// unneededPause is the time after which the plugin repeats an attempt for which the room of ending pods seems to be
// enough.
const unneededPause = 5 * time.Second

func (m *market) bindAll(work *Work, placements []placement.Placement) {
	for _, x := range placements {
		uid := types.UID(x.Pod.ID)
		if err := m.r.AssumeMember(uid, x.Node, m.now); err != nil {
			m.t.Fatal(err)
		}
		if err := m.r.PermitMember(uid); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, x := range placements {
		if _, err := m.r.recordArrival(types.UID(x.Pod.ID)); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, x := range placements {
		uid := types.UID(x.Pod.ID)
		delete(m.active, uid)
		if m.pods[uid].Spec.NodeName != "" {
			m.t.Fatalf("%s of %s is bound twice", uid, work.Gang.Name)
		}
		m.apply(m.r.RecordPosted(uid, m.now))
		m.update(uid, func(p *corev1.Pod) { p.Spec.NodeName = x.Node })
	}
}

func (m *market) checkSettled() {
	m.t.Helper()
	m.stages.check(m.t, false)
	if quiet := m.now.Sub(m.last); quiet < 5*time.Minute {
		m.t.Errorf("the last eviction was %s ago", quiet)
	}
	if n := m.r.reserved.View().Len(); n > 0 {
		m.t.Errorf("%d reservations are left", n)
	}
	waiting := 0
	for _, key := range sortedKeys(m.groups) {
		g := m.r.gangs[key]
		if g.preemption != nil || g.victimOf != nil {
			m.t.Errorf("%s: preemption %v, victim of %v", key.Name, g.preemption, g.victimOf)
		}
		if g.admitted {
			continue
		}
		waiting++
		was := g.phase
		m.r.enterPhase(g, Popped)
		work, why := m.r.BeginAttempt(g.members[g.leader].pod)
		if work == nil {
			m.t.Fatalf("%s: %s", key.Name, why)
		}
		if placements := simulatedPlan(work, m.worldOf(work)); len(placements) > 0 {
			m.t.Errorf("%s waits, and it fits", key.Name)
		}
		if d, result := m.findVictims(work, false); result == preemption.Decided {
			m.t.Errorf("%s waits, and it could preempt %d pods; phase %s, hopeless %+v, refused %s, priority %d", key.Name, len(d.Victims), was, g.hopeless, g.refusedAt.Sub(m.start), work.Priority)
		}
	}
	m.t.Logf("%d gangs wait, %d evictions, %d of whole gangs", waiting, m.victims, len(m.pairs))
}
