// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// orderScene is the scheduling loop of one profile as a model: the real registry with its list of waiting gangs, racks
// with places, and gangs that need their places with constraints of several kinds. It is not concurrent: an attempt is
// one step, and events come between steps, or during an attempt after its snapshot. Between the members of a plan,
// gangs of a higher priority pass.
type orderScene struct {
	t     *testing.T
	rand  *rand.Rand
	clock *testingclock.FakePassiveClock
	r     *gangs.Registry
	log   []string

	free    []int   // places by rack
	broken  [2]bool // by claim: its volume cannot be used
	devices []int   // by rack
	fast    fastRacks
	gangs   map[gangs.Key]*modelGang
	active  map[types.UID]*corev1.Pod // leaders in the queue
	nextID  int
	events  causes // not evaluated
	sources []gangs.Topic
	during  causes    // since the cycle began
	quiet   bool      // nothing changes during attempts either
	last    time.Time // of the last event
	cycles  int       // that have begun
	plans   []*failing
	after   time.Duration // gangs.Options.SingleSurplusAfter
	grew    time.Time     // when an event occurred last, or a refused gang was woken: room may have grown
	counts  *orderCounts
}

// orderCounts are sums over all seeds, which show that a run has seen what it checks.
type orderCounts struct {
	placed       [kinds]atomic.Int64
	failed       atomic.Int64 // plans
	freed        atomic.Int64 // gangs that were tried while a plan was in force that failed
	early, first atomic.Int64 // attempts before the end of a pause, and plans that went first because of a failed plan without an event
	checks       atomic.Int64 // moments at which no gang could start
	beyond       atomic.Int64 // plans that went first because the pause of a gang that failed often holds

	refills, surplus, lost       atomic.Int64 // plans of gangs that run, by what they place
	singles, beside              atomic.Int64 // likewise: single pods, and those beside a sub-group that waits
	held                         atomic.Int64 // plans before surplus that lets room grow
	vanished, recreated, ungated atomic.Int64 // gangs
}

// modelGang is a gang of pods that are equal but for the kind twoClasses.
type modelGang struct {
	pods     []*corev1.Pod
	racks    []int // by pod: that of its place, or noRack
	surplus  int   // index of the first pod of its surplus sub-group, which is as large as the other one; singles: it has none
	singles  int   // index of its first single surplus pod; len(pods): it has none
	priority int32
	kind     kind
	claim    int // that its one pod uses, for the kind claim
	fast     int // pods that need a fast rack, for the kind twoClasses

	since    time.Time // when the pods that wait were all there
	gated    bool      // a pod has a scheduling gate
	unknown  time.Time // until then the scheduler does not know whether a bound pod that vanished is gone; zero: it knows
	admitted bool      // its minimum was bound
	ran      bool      // its surplus sub-group was bound, too

	fails    bool      // its bindings are refused; no plan can see it
	failures int       // consecutive plans that failed
	pause    time.Time // when the pause after the last one ends (docs/decisions, G18); zero: the last attempt had no plan
	began    time.Time // when the last attempt began
	tried    bool      // it was tried and not placed
	cycle    int       // its last cycle
	could    time.Time // since when its surplus has had room, and was not tried; zero: it has none
	// What was delivered since the last attempt began, and since its last cycle began, which may have seen what
	// occurred before.
	cause, cycleSince heard
}

// heard states which events were delivered: any, and one that may help a gang whose plan failed.
type heard struct{ any, news bool }

// failing is a plan that will fail.
type failing struct {
	key   gangs.Key
	gang  *modelGang
	cycle int   // in which it was made
	pods  []int // that it places
	until time.Time
}

// noRack is the rack of a pod that waits.
const noRack = -1

// next returns the pods that wait and are planned together: of the minimum, of the surplus sub-group, or single ones.
// nil: none waits, or it is not known which.
func (g *modelGang) next() []int {
	if g.gated || !g.unknown.IsZero() {
		return nil
	}
	if minimum := g.unplaced(0, g.surplus); minimum != nil {
		return minimum
	}
	if unit := g.unplaced(g.surplus, g.singles); unit != nil {
		return unit
	}
	return g.unplaced(g.singles, len(g.pods))
}

// unplaced returns those of the pods that have no place.
func (g *modelGang) unplaced(first, end int) (pods []int) {
	for i := first; i < end; i++ {
		if g.racks[i] == noRack {
			pods = append(pods, i)
		}
	}
	return pods
}

// nextBesideUnit returns the single pods that may be planned while the surplus sub-group waits. nil: it does not, or
// there are none.
func (g *modelGang) nextBesideUnit() []int {
	if next := g.next(); next == nil || next[0] < g.surplus || next[0] >= g.singles {
		return nil
	}
	return g.unplaced(g.singles, len(g.pods))
}

// tierOf returns where the gang is in the queue with these pods among those of its priority (docs/decisions, G16, G20).
func (g *modelGang) tierOf(pods []int) gangs.Tier {
	switch {
	case !g.admitted:
		return gangs.TierNormal
	case pods[0] < g.surplus, pods[0] < g.singles && g.ran:
		return gangs.TierRefill
	case pods[0] < g.singles:
		return gangs.TierSurplusUnit
	}
	return gangs.TierSurplusSingle
}

// precedes reports whether the gang comes before the pods of another one in the queue. Neither may be the first.
func (g *modelGang) precedes(other *modelGang, pods []int) bool {
	return cmp.Or(cmp.Compare(other.priority, g.priority), cmp.Compare(g.tierOf(g.next()), other.tierOf(pods)), g.since.Compare(other.since)) < 0
}

// isRunning reports whether a pod of the gang has a place.
func (g *modelGang) isRunning() bool {
	return slices.ContainsFunc(g.racks, func(r int) bool { return r != noRack })
}

// fastRacks implements gangs.Shape for pods that need a fast rack: one of the first two.
type fastRacks struct{ *orderScene }

func (f fastRacks) FittingPods() int { return f.free[0] + f.free[1] }

// FittingPods implements gangs.Shape: every free place fits a pod.
func (s *orderScene) FittingPods() int {
	n := 0
	for _, f := range s.free {
		n += f
	}
	return n
}

func (s *orderScene) say(format string, args ...any) {
	s.log = append(s.log, s.clock.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

func (s *orderScene) fail(format string, args ...any) {
	s.t.Helper()
	for _, line := range s.log[max(0, len(s.log)-60):] {
		s.t.Log(line)
	}
	s.t.Fatalf(format, args...)
}

// plan returns the racks in which these pods of the gang fit, of single ones at least one; nil: they do not, there are
// none, or a plan is in force.
func (s *orderScene) plan(g *modelGang, pods []int) []int {
	room, n := slices.Clone(s.free), len(pods)
	if n == 0 || s.isFailing(g) {
		return nil
	}
	if g.kind == claim && s.broken[g.claim] {
		return nil
	}
	beside, devices, own := make([]int, len(room)), slices.Clone(s.devices), noRack
	for _, other := range s.gangs {
		for i, rack := range other.racks {
			switch {
			case rack == noRack:
			case other.kind == anywhere && !s.isFailingPod(other, i): // those have no node yet
				beside[rack]++
			case other.kind == device:
				devices[rack]--
			case other.kind != g.kind:
			case g.kind == claim && other.claim == g.claim:
				return nil // it is in use
			case g.kind == hostPort, g.kind == apart && other != g:
				room[rack] = 0 // it is taken there
			case g.kind == oneRack && other == g:
				own = rack
			}
		}
	}
	for rack := range room {
		if own != noRack && rack != own {
			room[rack] = 0
		}
	}
	var racks []int
	for rack, left := 0, g.fast; left > 0; rack++ { // the pods that need them come first
		if rack == 2 {
			return nil
		}
		for ; left > 0 && room[rack] > 0; left-- {
			room[rack]--
			racks = append(racks, rack)
		}
	}
	for rack, free := range room {
		switch g.kind {
		case oneRack:
			if free < n {
				continue
			}
		case hostPort:
			free = min(free, 1)
		case device:
			free = max(0, min(free, devices[rack]))
		case near:
			if beside[rack] == 0 {
				continue
			}
		case spread: // no rack may have two pods more than another
			if free < n/len(room) {
				return nil
			}
			if at := n / len(room); len(racks)-rack*at < n%len(room) {
				free = min(free, at+1)
			} else {
				free = at
			}
		}
		for range min(free, n-len(racks)) {
			racks = append(racks, rack)
		}
	}
	if len(racks) < n && pods[0] < g.singles {
		return nil
	}
	return racks
}

// kind is the constraint of a gang beside the number of free places.
type kind int

const (
	anywhere   kind = iota
	oneRack         // all pods in one rack
	hostPort        // one pod of all gangs of the kind per rack
	claim           // no other gang uses the same volume
	spread          // evenly over the racks
	near            // only in racks with a pod of a gang of the kind anywhere
	apart           // in no rack with a pod of another gang of the kind
	device          // each pod has a device of its rack
	twoClasses      // some of the pods only in fast racks; the others may take their room
	kinds
)

// causes are those of events that may help a gang of the kind.
func (k kind) causes() causes {
	switch k {
	case anywhere, twoClasses:
		return moreRoom
	case oneRack, spread:
		return moreRoom | otherNodes
	case near:
		return anything
	default:
		return anything &^ boundPod
	}
}

func (s *orderScene) apply(e gangs.Effects) {
	for _, pod := range e.Activate {
		s.say("%s is activated", pod.Name)
		s.grew = s.clock.Now()
		if ok, _ := s.r.MayEnterQueue(pod); ok {
			s.active[pod.UID] = pod
		}
	}
}

// look does the work of Evaluate.
func (s *orderScene) look() {
	var raised []gangs.Shape
	if s.events&(moreRoom|nominationGone) != 0 {
		raised = append(raised, s, s.fast)
	}
	for _, g := range s.gangs {
		news := slices.ContainsFunc(s.sources, func(of gangs.Topic) bool { return !s.isReleased(of) && g.find(of) < 0 })
		for _, h := range []*heard{&g.cause, &g.cycleSince} {
			*h = heard{h.any || s.events != 0, h.news || news}
		}
	}
	e := s.r.RetryWaiting(raised, append(s.sources, s.events.topics()...), s.clock.Now())
	s.events, s.sources = 0, nil
	s.apply(e)
}

// isReleased reports whether an event is the release of a pod by a plan that failed. Its room was free before the plan:
// see endFailing.
func (s *orderScene) isReleased(event gangs.Topic) bool {
	for _, g := range s.gangs {
		if i := g.find(event); i >= 0 && g.racks[i] == noRack {
			return true
		}
	}
	return false
}

// find returns the index of the pod of an event, -1 if it is not one of the gang.
func (g *modelGang) find(event gangs.Topic) int {
	return slices.IndexFunc(g.pods, func(p *corev1.Pod) bool { return event == gangs.EventOf(p.UID) })
}

// happen delivers an event: of a pod, or of another object ("").
func (s *orderScene) happen(c causes, of types.UID) {
	s.last, s.grew = s.clock.Now(), s.clock.Now()
	if c&^boundPod != 0 {
		s.sources = append(s.sources, gangs.EventOf(of))
	}
	s.events |= c
	s.during |= c
	if s.rand.Intn(2) == 0 { // the background goroutine was faster than the loop
		s.look()
	}
}

// schedule does one cycle of the scheduling loop. It returns false if the queue is empty.
func (s *orderScene) schedule() bool {
	s.endFailing()
	leader := s.firstActive()
	if leader != nil {
		s.runCycle(leader)
	}
	return leader != nil
}

// firstActive returns the first leader in the queue, nil if there is none.
func (s *orderScene) firstActive() (leader *corev1.Pod) {
	for _, pod := range s.active {
		if leader == nil || s.r.RankOf(pod, time.Time{}).Compare(s.r.RankOf(leader, time.Time{})) < 0 {
			leader = pod
		}
	}
	return leader
}

// runCycle runs the cycle of a leader.
func (s *orderScene) runCycle(leader *corev1.Pod) {
	delete(s.active, leader.UID)
	s.during = 0
	s.r.RecordPopped(leader.UID)
	g := s.gangs[gangs.Key{Namespace: leader.Namespace, Name: leader.Annotations[v2alpha2.PodGroupAnnotation]}]
	g.cycleSince = heard{}
	s.cycles++
	g.cycle = s.cycles
	if !s.attempt(leader) {
		s.r.RecordCycleFailed(leader.UID, s.clock.Now())
		s.apply(s.r.RecordRequeued(leader.UID, s.clock.Now()))
	}
}

// attempt does the work of PreFilter, and of the cycles of the members if there is a plan.
func (s *orderScene) attempt(leader *corev1.Pod) bool {
	key := gangs.Key{Namespace: leader.Namespace, Name: leader.Annotations[v2alpha2.PodGroupAnnotation]}
	s.look()
	if s.r.MustYield(leader, s.clock.Now()) {
		s.say("%s yields", key.Name)
		return false
	}
	work, why := s.r.BeginAttempt(leader)
	if work == nil {
		s.say("%s is not planned: %s", key.Name, why)
		return false
	}
	g := s.gangs[key]
	pods := g.next()
	if beside := g.nextBesideUnit(); beside != nil && work.Task == gangs.SurplusSingle {
		pods = beside // without an event
	} else {
		s.checkCause(key, g)
	}
	if len(pods) == 0 {
		s.fail("%s plans its %s, and nothing waits", key.Name, work.Task)
	}
	g.cause, g.could = g.cycleSince, time.Time{}
	racks := s.plan(g, pods)
	if racks != nil {
		s.checkOrder(key, pods)
	}
	const took = time.Millisecond // not all of it in the loop, whose share is not the subject here
	s.clock.SetTime(s.clock.Now().Add(took))
	if racks == nil {
		s.say("%s is refused", key.Name)
		g.tried, g.pause = true, time.Time{}
		if !s.quiet && s.rand.Intn(4) == 0 {
			s.change()
		}
		why := g.kind.causes()
		s.apply(s.r.RecordGangRefused(key, podgroup.Refusal{Reason: "full"}, gangs.Wait{
			Needs: g.needs(s, work.Task), Topics: why.topics(), Took: took / 10, Missed: s.during&(why|nominationGone) != 0,
		}, s.clock.Now()))
		s.look()
		return false
	}
	s.bind(key, g, work, pods[:len(racks)], racks)
	return true
}

// needs returns how many pods of which shapes must fit.
func (g *modelGang) needs(s *orderScene, task gangs.Task) []gangs.Need {
	if task != gangs.Minimum {
		return []gangs.Need{{Shape: s, Pods: 1}} // as Backlog has it
	}
	needs := []gangs.Need{{Shape: s, Pods: len(g.next())}}
	if g.kind == twoClasses {
		needs = append(needs, gangs.Need{Shape: s.fast, Pods: g.fast})
	}
	return needs
}

// checkCause: a gang that was not placed is tried again because of an event, or because its pause is over.
func (s *orderScene) checkCause(key gangs.Key, g *modelGang) {
	s.t.Helper()
	early := s.clock.Now().Before(g.pause)
	switch {
	case early && (!g.cause.news || g.pauseHolds()):
		s.fail("%s is planned in its pause without an event", key.Name)
	case g.tried && !g.cause.any && g.pause.IsZero():
		s.fail("%s is tried again without an event", key.Name)
	}
	if early {
		s.counts.early.Add(1)
	}
	g.began = s.clock.Now()
}

func (s *orderScene) bind(key gangs.Key, g *modelGang, work *gangs.Work, pods, racks []int) {
	waiting := map[string]placement.Placement{} // by UID
	for _, problem := range []placement.Problem{work.Problem, work.Singles} {
		for leaf, pods := range problem.Pods {
			for _, p := range pods {
				waiting[p.ID] = placement.Placement{Pod: p, Leaf: leaf}
			}
		}
	}
	var placements []placement.Placement
	nodes, tier, beside := map[types.UID]string{}, g.tierOf(pods), g.nextBesideUnit() != nil && pods[0] >= g.singles
	for k, i := range pods {
		uid, node := g.pods[i].UID, "rack"+strconv.Itoa(racks[k])
		p, ok := waiting[string(uid)]
		if !ok {
			s.fail("%s plans its %s without pod %s", key.Name, work.Task, uid)
		}
		p.Node, nodes[uid] = node, node
		placements = append(placements, p)
		s.free[racks[k]]--
		g.racks[i] = racks[k]
	}
	plan, why := s.r.CommitPlan(work, placements, s.clock.Now())
	if plan == nil {
		s.fail("%s: %s", key.Name, why)
	}
	s.say("%s is bound to %v", key.Name, racks)
	s.handOut(plan, nodes)
	if g.fails {
		s.plans = append(s.plans, &failing{key, g, g.cycle, pods, s.clock.Now().Add(time.Duration(s.rand.Intn(4)) * time.Millisecond)})
		return
	}
	s.counts.placed[g.kind].Add(1)
	switch {
	case tier == gangs.TierSurplusUnit:
		s.counts.surplus.Add(1)
	case beside:
		s.counts.beside.Add(1)
	case tier == gangs.TierSurplusSingle:
		s.counts.singles.Add(1)
	case tier == gangs.TierRefill && pods[0] < g.surplus:
		s.counts.refills.Add(1)
	case tier == gangs.TierRefill:
		s.counts.lost.Add(1)
	}
	g.failures, g.pause, g.tried = 0, time.Time{}, false
	g.admitted, g.ran = true, g.ran || pods[0] >= g.surplus && pods[0] < g.singles
	for _, i := range pods {
		s.apply(s.r.RecordPosted(g.pods[i].UID, s.clock.Now()))
	}
	for _, i := range pods {
		bound := g.pods[i].DeepCopy()
		bound.Spec.NodeName = nodes[bound.UID]
		s.apply(s.r.SetPod(bound, s.clock.Now()))
	}
	s.happen(boundPod, g.pods[pods[0]].UID)
}

// handOut hands out the members of a plan. Between them, other gangs are created, and room becomes free.
func (s *orderScene) handOut(plan *gangs.Plan, nodes map[types.UID]string) {
	for {
		if id, _, _ := s.r.CommittingPlan(); id != plan.ID {
			return
		}
		switch s.rand.Intn(8) {
		case 0:
			s.freePlace()
		case 1:
			s.create()
		}
		m := s.r.NextMember()
		if err := s.r.AssumeMember(m.UID, nodes[m.UID], s.clock.Now()); err != nil {
			s.fail("%s: %v", m.Name, err)
		}
	}
}

// letsRoomGrow reports whether surplus may wait although it fits, because room that grows may be for others.
func (s *orderScene) letsRoomGrow(g *modelGang) bool {
	return s.after > 0 && g.tierOf(g.next()) >= gangs.TierSurplusUnit && s.clock.Now().Sub(s.grew) < 4*s.after
}

// checkSurplus: surplus lets room grow for ten seconds at most.
func (s *orderScene) checkSurplus() {
	s.t.Helper()
	for _, k := range s.keys() {
		g, now := s.gangs[k], s.clock.Now()
		fits := func(pods []int) bool {
			return len(pods) > 0 && g.tierOf(pods) >= gangs.TierSurplusUnit && s.plan(g, pods) != nil
		}
		switch {
		case !fits(g.next()) && !fits(g.nextBesideUnit()), !g.pause.IsZero():
			g.could = time.Time{}
		case g.could.IsZero():
			g.could = now
		case now.Sub(g.could) > 11*time.Second: // it may also yield
			s.fail("surplus of %s has had room since %s", k.Name, g.could.Format("05.000"))
		}
	}
}

// isFailingPod reports whether a pod of the gang was placed by a plan that will fail.
func (s *orderScene) isFailingPod(g *modelGang, i int) bool {
	return slices.ContainsFunc(s.plans, func(p *failing) bool { return p.gang == g && slices.Contains(p.pods, i) })
}

// isFailing reports whether a plan of the gang is in force that will fail.
func (s *orderScene) isFailing(g *modelGang) bool {
	return slices.ContainsFunc(s.plans, func(p *failing) bool { return p.gang == g })
}

// endFailing ends the plans that have failed by now: their members are released.
func (s *orderScene) endFailing() {
	now := s.clock.Now()
	s.plans = slices.DeleteFunc(s.plans, func(p *failing) bool {
		if now.Before(p.until) {
			return false
		}
		g := p.gang
		s.say("the plan of %s fails", p.key.Name)
		s.counts.failed.Add(1)
		for _, i := range p.pods {
			s.apply(s.r.ReleaseMember(g.pods[i].UID, now))
			s.free[g.racks[i]]++
			g.racks[i] = noRack
		}
		for _, other := range s.gangs {
			if other != g && other.cycle > p.cycle { // it was tried while the plan was in force, and could not have this room
				other.cause.news, other.cycleSince.news = true, true
				s.counts.freed.Add(1)
			}
		}
		g.tried, g.pause = true, now.Add(min(200*time.Millisecond<<min(g.failures, 10), 10*time.Second))
		g.failures++
		for _, i := range p.pods {
			s.happen(moreRoom|otherPods, g.pods[i].UID)
		}
		return true
	})
}

// pauseHolds reports whether no event ends the pause of the gang, because its plans have failed often.
func (g *modelGang) pauseHolds() bool { return g.failures > 4 }

// checkOrder: when a gang takes room, no waiting gang that precedes it could have taken it, except one whose plan has
// failed since the last event that may help, or often (docs/decisions, G16).
func (s *orderScene) checkOrder(key gangs.Key, pods []int) {
	s.t.Helper()
	for _, other := range s.waiting() {
		switch g := s.gangs[other]; {
		case other == key, !g.precedes(s.gangs[key], pods), s.plan(g, g.next()) == nil:
		case s.letsRoomGrow(g):
			s.counts.held.Add(1)
		case !g.pause.IsZero() && !g.cycleSince.news:
			s.counts.first.Add(1)
		case !g.pause.IsZero() && g.pauseHolds():
			s.counts.beyond.Add(1)
		default:
			s.fail("%s is placed, and %s, which precedes it, could have been", key.Name, other.Name)
		}
	}
}

// checkNoneCanStart: no waiting gang could start, except one whose pause is not over, without an event or because its
// plans have failed often.
func (s *orderScene) checkNoneCanStart() {
	s.t.Helper()
	s.counts.checks.Add(1)
	for _, k := range s.waiting() {
		g := s.gangs[k]
		if s.plan(g, g.next()) == nil && (s.plan(g, g.nextBesideUnit()) == nil || s.clock.Now().Sub(g.began) < inTime) || s.letsRoomGrow(g) || (!g.cycleSince.news || g.pauseHolds()) && s.clock.Now().Before(g.pause.Add(inTime)) {
			continue
		}
		f, _ := s.r.Facts(k)
		s.fail("%s could start, and waits: %+v", k.Name, f.Refused)
	}
}

// inTime is the time within which room is used.
const inTime = 100 * time.Millisecond

// waiting returns the gangs with pods that could be placed.
func (s *orderScene) waiting() []gangs.Key {
	return slices.DeleteFunc(s.keys(), func(k gangs.Key) bool { return len(s.gangs[k].next()) == 0 })
}

// change changes the cluster.
func (s *orderScene) change() {
	switch n := s.rand.Intn(16); {
	case n < 3:
		s.create()
	case n < 7:
		s.finish()
	case n == 10:
		rack := s.rand.Intn(len(s.devices))
		s.devices[rack] = s.rand.Intn(4)
		s.say("rack %d has %d devices", rack, s.devices[rack])
		s.happen(otherClaims, "")
	case n == 11: // bindings of a gang are refused or not from now on; no event shows it
		for _, k := range s.keys() {
			if g := s.gangs[k]; s.rand.Intn(3) == 0 {
				g.fails = !g.fails
			}
		}
	case n < 8:
		s.say("a node changes its labels")
		s.happen(moreRoom|otherPods|otherNodes, "")
	case n < 9: // a volume can be used, or not
		c := s.rand.Intn(len(s.broken))
		if s.broken[c] = !s.broken[c]; !s.broken[c] {
			s.say("volume %d can be used", c)
			s.happen(otherVolumes, "")
		}
	case n == 12 || n == 13:
		s.lose()
	case n == 14:
		s.recreate()
	case n == 15:
		s.ungate()
	default: // another scheduler takes a place, or gives one back
		if rack := s.rand.Intn(len(s.free)); s.free[rack] > 0 && s.rand.Intn(2) == 0 {
			s.free[rack]--
			s.happen(boundPod, "other")
		} else {
			s.freePlace()
		}
	}
}

// freePlace lets another scheduler give back a place, if it has one in a certain rack.
func (s *orderScene) freePlace() {
	if rack := s.rand.Intn(len(s.free)); s.places(rack) < 8 {
		s.say("a place in rack %d becomes free", rack)
		s.free[rack]++
		s.r.RecordRoomGrowth()
		s.happen(moreRoom|otherPods, "other")
	}
}

// places returns how many places of the rack are free or used by gangs.
func (s *orderScene) places(rack int) int {
	n := s.free[rack]
	for _, g := range s.gangs {
		for _, r := range g.racks {
			if r == rack {
				n++
			}
		}
	}
	return n
}

func (s *orderScene) create() {
	if len(s.gangs) < 12 {
		s.nextID++
		s.createGang(fmt.Sprintf("g%03d", s.nextID))
	}
}

func (s *orderScene) createGang(name string) *modelGang {
	s.clock.SetTime(s.clock.Now().Add(time.Microsecond)) // no two gangs have the same rank
	priority := int32(s.rand.Intn(3))
	g := &modelGang{kind: kind(s.rand.Intn(int(kinds))), claim: s.rand.Intn(2), priority: priority, since: s.clock.Now()}
	s.gangs[gangs.Key{Namespace: "ml", Name: name}] = g
	n := 1 + s.rand.Intn(8)
	switch g.kind {
	case hostPort:
		n = 1 + s.rand.Intn(3)
	case claim:
		n = 1
	case device:
		n = 1 + s.rand.Intn(4)
	case twoClasses:
		g.fast = 1 + s.rand.Intn(n)
	}
	s.nextID++
	group := wrappers.MakePodGroup(name, "ml").UID(fmt.Sprintf("%s-%d", name, s.nextID))
	g.surplus, g.singles = n, n
	if g.kind == anywhere && s.rand.Intn(2) == 0 {
		g.surplus, g.singles = min(n, 4), 2*min(n, 4)
		group.MinSubGroup(1).SubGroup("x", int32(g.surplus)).SubGroup("y", int32(g.surplus))
	} else {
		group.MinMember(int32(n))
	}
	if n = g.singles; g.kind == anywhere && s.rand.Intn(2) == 0 {
		n += 1 + s.rand.Intn(3)
	}
	g.fails, g.gated = s.rand.Intn(5) == 0, s.rand.Intn(8) == 0
	s.say("%s is created: %d pods, surplus from %d and %d, of priority %d, kind %d, claim %d, its bindings are refused: %t, gated: %t", name, n, g.surplus, g.singles, priority, g.kind, g.claim, g.fails, g.gated)
	s.apply(s.r.SetGroup(group.Obj(), s.clock.Now()))
	g.pods, g.racks = make([]*corev1.Pod, n), slices.Repeat([]int{noRack}, n)
	for i := range n {
		s.createPod(name, g, i)
	}
	return g
}

// createPod creates a pod of a gang, or its replacement.
func (s *orderScene) createPod(name string, g *modelGang, i int) {
	s.nextID++
	uid := fmt.Sprintf("%s-%d-%d", name, i, s.nextID)
	pod := wrappers.MakePod(uid, "ml").UID(uid).Gang(name).Priority(g.priority)
	switch {
	case g.surplus == g.singles:
	case i < g.surplus, i >= g.singles:
		pod.SubGroup("x")
	default:
		pod.SubGroup("y")
	}
	if g.gated {
		pod.SchedulingGate("example.com/wait")
	}
	g.pods[i] = pod.Obj()
	s.apply(s.r.SetPod(g.pods[i], s.clock.Now()))
}

// removePod removes a pod: it is deleted, or the scheduler does not learn what became of it.
func (s *orderScene) removePod(g *modelGang, i int, vanishes bool) {
	pod := g.pods[i]
	delete(s.active, pod.UID)
	if !vanishes {
		terminating := pod.DeepCopy()
		terminating.DeletionTimestamp = &metav1.Time{Time: s.clock.Now()}
		if g.racks[i] != noRack {
			terminating.Spec.NodeName = "rack" + strconv.Itoa(g.racks[i])
		}
		s.apply(s.r.SetPod(terminating, s.clock.Now()))
	}
	s.apply(s.r.RemovePod(pod.UID, s.clock.Now()))
	if g.racks[i] != noRack {
		s.free[g.racks[i]]++
		g.racks[i] = noRack
	}
}

// departure is how long the scheduler counts a bound pod that vanished.
const departure = 2 * time.Second

// lose lets a running gang lose one pod, some, or all of its surplus sub-group. They are created again.
func (s *orderScene) lose() {
	for _, k := range s.keys() {
		g := s.gangs[k]
		if s.isFailing(g) || slices.Contains(g.racks, noRack) || s.rand.Intn(2) > 0 {
			continue
		}
		first, end := g.surplus, g.singles
		switch {
		case first < end:
		case end < len(g.pods): // by number it loses single surplus first
			first, end = s.rand.Intn(len(g.pods)), len(g.pods)
		case g.kind == spread || g.kind == twoClasses:
			continue
		default:
			first = s.rand.Intn(end)
			end = first + 1
		}
		vanishes := s.rand.Intn(3) == 0
		s.clock.SetTime(s.clock.Now().Add(time.Microsecond))
		s.say("%s loses its pods from %d to %d, vanished: %t", k.Name, first, end-1, vanishes)
		for i := first; i < end; i++ {
			s.removePod(g, i, vanishes)
		}
		if !g.isRunning() {
			g.admitted, g.ran = false, false
		}
		for i := first; i < end; i++ {
			s.createPod(k.Name, g, i)
		}
		if g.since = s.clock.Now(); vanishes {
			g.unknown = g.since.Add(departure)
			s.counts.vanished.Add(1)
		}
		s.r.RecordRoomGrowth()
		s.happen(moreRoom|otherPods, "gone")
		return
	}
}

// recreate deletes a gang and creates another one with its name.
func (s *orderScene) recreate() {
	for _, k := range s.keys() {
		g := s.gangs[k]
		if s.isFailing(g) || s.rand.Intn(4) > 0 {
			continue
		}
		ran, vanishes, unknown := g.isRunning(), s.rand.Intn(3) == 0, g.unknown
		s.say("%s is recreated, vanished: %t", k.Name, vanishes)
		for i := range g.pods {
			s.removePod(g, i, vanishes)
		}
		if s.rand.Intn(2) == 0 { // else the informer shows another PodGroup of the name
			s.apply(s.r.RemoveGroup(k, s.clock.Now()))
		}
		s.counts.recreated.Add(1)
		if g = s.createGang(k.Name); ran && vanishes {
			unknown = s.clock.Now().Add(departure)
		}
		g.unknown = unknown // pods of the former gang count in this one
		if ran {
			s.r.RecordRoomGrowth()
			s.happen(moreRoom|otherPods, "gone")
		}
		return
	}
}

// ungate removes the scheduling gates of a gang.
func (s *orderScene) ungate() {
	for _, k := range s.keys() {
		g := s.gangs[k]
		if !g.gated || s.rand.Intn(2) > 0 {
			continue
		}
		s.clock.SetTime(s.clock.Now().Add(time.Microsecond))
		s.say("%s is not gated any more", k.Name)
		g.gated, g.since = false, s.clock.Now()
		for i := range g.pods {
			g.pods[i] = g.pods[i].DeepCopy()
			g.pods[i].Spec.SchedulingGates = nil
			s.apply(s.r.SetPod(g.pods[i], s.clock.Now()))
		}
		s.counts.ungated.Add(1)
		return
	}
}

// finish deletes a gang, that runs in most cases.
func (s *orderScene) finish() {
	for _, k := range s.keys() {
		g := s.gangs[k]
		if s.isFailing(g) || slices.Contains(g.racks, noRack) && s.rand.Intn(10) > 0 || s.rand.Intn(3) > 0 {
			continue
		}
		ran := g.isRunning()
		s.say("%s is deleted", k.Name)
		delete(s.gangs, k)
		for i := range g.pods {
			s.removePod(g, i, true)
		}
		s.apply(s.r.RemoveGroup(k, s.clock.Now()))
		if ran {
			s.r.RecordRoomGrowth()
			s.happen(moreRoom|otherPods, "gone")
		}
		return
	}
}

func (s *orderScene) keys() []gangs.Key {
	var keys []gangs.Key
	for k := range s.gangs {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b gangs.Key) int { return cmp.Compare(a.Name, b.Name) })
	return keys
}

// pass lets time pass, with the loop and the ticker running. quiet: nothing happens from now on, so that room is used
// in time.
func (s *orderScene) pass(d time.Duration, quiet bool) {
	s.t.Helper()
	s.quiet = quiet
	defer func() { s.quiet = false }()
	for end := s.clock.Now().Add(d); s.clock.Now().Before(end); {
		for range 100 {
			if !s.schedule() {
				if len(s.plans) == 0 {
					break
				}
				s.clock.SetTime(s.clock.Now().Add(time.Millisecond))
			}
		}
		if quiet && len(s.plans) == 0 && s.clock.Now().Sub(s.last) >= inTime {
			s.checkNoneCanStart()
		}
		s.checkSurplus()
		s.clock.SetTime(s.clock.Now().Add(25 * time.Millisecond))
		s.apply(s.r.Tick(s.clock.Now()))
		for _, g := range s.gangs {
			if !s.clock.Now().Before(g.unknown) {
				g.unknown = time.Time{}
			}
		}
		s.look()
	}
}

// TestRoomIsUsedInTheOrderOfTheQueue: in any order of events a gang takes no room that one which precedes it could
// take, no gang is tried again without a cause, in a quiet second no waiting gang could start after 100 ms, and surplus
// waits for ten seconds at most while room grows. ROUNDS multiplies the number of seeds.
func TestRoomIsUsedInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	repeats := 100 * rounds.Number()
	var counts orderCounts
	t.Cleanup(func() { // when all seeds are over
		t.Logf("%d plans failed, %d attempts before the end of a pause, %d plans before a gang in its pause, %d before one that has failed often, %d checks in quiet seconds",
			counts.failed.Load(), counts.early.Load(), counts.first.Load(), counts.beyond.Load(), counts.checks.Load())
		t.Logf("%d plans before surplus that let room grow", counts.held.Load())
		t.Logf("plans of gangs that run: %d refills, %d surplus sub-groups, %d that were lost, %d of single pods, %d beside a sub-group; %d gangs with vanished pods, %d recreated, %d with scheduling gates",
			counts.refills.Load(), counts.surplus.Load(), counts.lost.Load(), counts.singles.Load(), counts.beside.Load(), counts.vanished.Load(), counts.recreated.Load(), counts.ungated.Load())
		if t.Failed() {
			return
		}
		for k := range counts.placed {
			if counts.placed[k].Load() == 0 {
				t.Errorf("no gang of kind %d was placed", k)
			}
		}
		if counts.failed.Load() == 0 || counts.early.Load() == 0 || counts.freed.Load() == 0 || counts.first.Load() == 0 || counts.checks.Load() == 0 ||
			counts.singles.Load() == 0 || counts.beside.Load() == 0 || counts.held.Load() == 0 ||
			counts.refills.Load() == 0 || counts.surplus.Load() == 0 || counts.lost.Load() == 0 || counts.vanished.Load() == 0 || counts.recreated.Load() == 0 || counts.ungated.Load() == 0 {
			t.Error("something did not occur")
		}
	})
	for seed := range repeats {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			clock := testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			s := &orderScene{t: t, rand: rand.New(rand.NewSource(int64(seed))), clock: clock, r: gangs.New(), counts: &counts,
				free: []int{8, 8, 8}, devices: []int{2, 2, 2}, gangs: map[gangs.Key]*modelGang{}, active: map[types.UID]*corev1.Pod{}}
			s.fast = fastRacks{s}
			s.after = []time.Duration{0, 50 * time.Millisecond, 2 * time.Second}[seed%3]
			s.r.Configure(gangs.Options{RepairTimeout: time.Minute, SingleSurplusAfter: s.after})
			s.r.AddProfile(wrappers.SchedulerName)
			s.apply(s.r.SetSynced(clock.Now()))
			steps := 300
			if s.after > time.Second {
				steps = 1000 // room seldom stands still
			}
			for range steps {
				switch n := s.rand.Intn(20); {
				case n < 8:
					s.change()
				case n < 17:
					s.schedule()
				case n < 19:
					s.pass(50*time.Millisecond, false)
				default:
					s.pass(time.Second, true)
				}
			}
		})
	}
}
