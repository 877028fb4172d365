// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

// orderScene is the scheduling loop of one profile as a model: the real registry with its list of waiting gangs, racks with
// places, and gangs that need their places with constraints of several kinds. It is not concurrent: an attempt is one step, and
// events come between steps, or during an attempt after its snapshot.
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
	spent   time.Time // until when early attempts have used up their 5 % of the time
	plans   []*failing
	counts  *orderCounts
}

// orderCounts are sums over all seeds, which show that a run has seen what it checks.
type orderCounts struct {
	placed       [kinds]atomic.Int64
	failed       atomic.Int64 // plans
	freed        atomic.Int64 // gangs that were tried while a plan was in force that failed
	early, first atomic.Int64 // attempts before the end of a pause, and plans that went first because of a failed plan without an event
	checks       atomic.Int64 // moments at which no gang could start
	beyond       atomic.Int64 // plans that went first because early attempts had used up their time
}

// modelGang is a gang of pods that are equal but for the kind twoClasses.
type modelGang struct {
	pods     []*corev1.Pod
	priority int32
	kind     kind
	claim    int   // that its one pod uses, for the kind claim
	fast     int   // pods that need a fast rack, for the kind twoClasses
	racks    []int // of its places; nil: it waits

	fails    bool          // its bindings are refused; no plan can see it
	failures int           // consecutive plans that failed
	pause    time.Time     // when the pause after the last one ends (docs/decisions, G18); zero: the last attempt had no plan
	began    time.Time     // when the last attempt began
	lasted   time.Duration // the last attempt, until its plan failed
	tried    bool          // it was tried and not placed
	cycle    int           // its last cycle
	// What was delivered since the last attempt began, and since its last cycle began, which may have seen what occurred before.
	cause, since heard
}

// heard states which events were delivered: any, and one that may help a gang whose plan failed.
type heard struct{ any, news bool }

// failing is a plan that will fail.
type failing struct {
	key   gangs.Key
	gang  *modelGang
	cycle int // in which it was made
	until time.Time
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

// plan returns the racks in which the gang's pods fit; nil: they do not.
func (s *orderScene) plan(g *modelGang) []int {
	room, n := slices.Clone(s.free), len(g.pods)
	if g.kind == claim && s.broken[g.claim] {
		return nil
	}
	beside, devices := make([]int, len(room)), slices.Clone(s.devices)
	for _, other := range s.gangs {
		for _, rack := range other.racks {
			if other.kind == anywhere && !s.isFailing(other) {
				beside[rack]++
			}
			if other.kind == device {
				devices[rack]--
			}
		}
		if other.racks == nil || other.kind != g.kind {
			continue
		}
		if g.kind == claim && other.claim == g.claim {
			return nil // it is in use
		}
		for _, rack := range other.racks {
			if g.kind == hostPort || g.kind == apart {
				room[rack] = 0 // it is taken there
			}
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
	if len(racks) < n {
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
		if ok, _ := s.r.MayEnterQueue(pod); ok {
			s.active[pod.UID] = pod
		}
	}
}

// look does the work of Evaluate.
func (s *orderScene) look(before gangs.Key) {
	var raised []gangs.Shape
	if s.events&(moreRoom|nominationGone) != 0 {
		raised = append(raised, s, s.fast)
	}
	for _, g := range s.gangs {
		news := slices.ContainsFunc(s.sources, func(of gangs.Topic) bool { return !s.isReleased(of) && !g.has(of) })
		for _, h := range []*heard{&g.cause, &g.since} {
			*h = heard{h.any || s.events != 0, h.news || news}
		}
	}
	e := s.r.RetryWaiting(raised, append(s.sources, s.events.topics()...), before, s.clock.Now())
	s.events, s.sources = 0, nil
	s.apply(e)
}

// isReleased reports whether an event is the release of a pod by a plan that failed. Its room was free before the plan: see
// endFailing.
func (s *orderScene) isReleased(event gangs.Topic) bool {
	for _, g := range s.gangs {
		if g.racks == nil && g.has(event) {
			return true
		}
	}
	return false
}

// has reports whether an event is of a pod of the gang.
func (g *modelGang) has(event gangs.Topic) bool {
	return slices.ContainsFunc(g.pods, func(p *corev1.Pod) bool { return event == gangs.EventOf(p.UID) })
}

// happen delivers an event: of a pod, or of another object ("").
func (s *orderScene) happen(c causes, of types.UID) {
	s.last = s.clock.Now()
	if c&^boundPod != 0 {
		s.sources = append(s.sources, gangs.EventOf(of))
	}
	s.events |= c
	s.during |= c
	if s.rand.Intn(2) == 0 { // the background goroutine was faster than the loop
		s.look(gangs.Key{})
	}
}

// schedule does one cycle of the scheduling loop. It returns false if the queue is empty.
func (s *orderScene) schedule() bool {
	s.endFailing()
	var leader *corev1.Pod
	for _, pod := range s.active {
		if leader == nil || s.r.RankOf(pod, time.Time{}).Compare(s.r.RankOf(leader, time.Time{})) < 0 {
			leader = pod
		}
	}
	if leader == nil {
		return false
	}
	delete(s.active, leader.UID)
	s.during = 0
	s.r.RecordPopped(leader.UID)
	g := s.gangs[gangs.Key{Namespace: leader.Namespace, Name: leader.Annotations[v2alpha2.PodGroupAnnotation]}]
	g.since = heard{}
	s.cycles++
	g.cycle = s.cycles
	if !s.attempt(leader) {
		s.r.RecordCycleFailed(leader.UID, s.clock.Now())
	}
	return true
}

// attempt does the work of PreFilter, and of the cycles of the members if there is a plan.
func (s *orderScene) attempt(leader *corev1.Pod) bool {
	key := gangs.Key{Namespace: leader.Namespace, Name: leader.Annotations[v2alpha2.PodGroupAnnotation]}
	s.look(key)
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
	s.checkCause(key, g)
	g.cause = g.since
	racks := s.plan(g)
	if racks != nil {
		s.checkOrder(key)
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
			Needs: g.needs(s), Topics: why.topics(), Took: took / 10, Missed: s.during&(why|nominationGone) != 0,
		}, s.clock.Now()))
		s.look(gangs.Key{})
		return false
	}
	s.bind(key, g, work, racks)
	return true
}

// needs returns how many pods of which shapes must fit.
func (g *modelGang) needs(s *orderScene) []gangs.Need {
	needs := []gangs.Need{{Shape: s, Pods: len(g.pods)}}
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
	case early && !g.cause.news:
		s.fail("%s is planned in its pause without an event", key.Name)
	case g.tried && !g.cause.any && g.pause.IsZero():
		s.fail("%s is tried again without an event", key.Name)
	}
	if early {
		s.counts.early.Add(1)
		if now := s.clock.Now(); s.spent.Before(now) {
			s.spent = now
		}
		s.spent = s.spent.Add(20 * max(g.lasted, 5*time.Millisecond)) // of a short one its other work is more
	}
	g.began = s.clock.Now()
}

func (s *orderScene) bind(key gangs.Key, g *modelGang, work *gangs.Work, racks []int) {
	var placements []placement.Placement
	nodes := map[types.UID]string{}
	for i, pod := range g.pods {
		node := "rack" + strconv.Itoa(racks[i])
		nodes[pod.UID] = node
		waiting := work.Problem.Pods[""]
		k := slices.IndexFunc(waiting, func(p placement.Pod) bool { return p.ID == string(pod.UID) })
		placements = append(placements, placement.Placement{Pod: waiting[k], Node: node})
		s.free[racks[i]]--
	}
	g.racks = racks
	plan, why := s.r.CommitPlan(work, placements, s.clock.Now())
	if plan == nil {
		s.fail("%s: %s", key.Name, why)
	}
	s.say("%s is bound to %v", key.Name, racks)
	for m := s.r.NextMember(); m != nil; m = s.r.NextMember() {
		if err := s.r.AssumeMember(m.UID, nodes[m.UID], s.clock.Now()); err != nil {
			s.fail("%s: %v", m.Name, err)
		}
	}
	if g.fails {
		s.plans = append(s.plans, &failing{key, g, g.cycle, s.clock.Now().Add(time.Duration(s.rand.Intn(4)) * time.Millisecond)}) // in all less than half a second (docs/decisions, G16)
		return
	}
	s.counts.placed[g.kind].Add(1)
	g.failures, g.pause, g.tried = 0, time.Time{}, false
	for _, pod := range g.pods {
		s.apply(s.r.RecordPosted(pod.UID, s.clock.Now()))
		bound := pod.DeepCopy()
		bound.Spec.NodeName = nodes[pod.UID]
		s.apply(s.r.SetPod(bound, s.clock.Now()))
	}
	s.happen(boundPod, g.pods[0].UID)
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
		for i, pod := range g.pods {
			s.apply(s.r.ReleaseMember(pod.UID, now))
			s.free[g.racks[i]]++
		}
		for _, other := range s.gangs {
			if other.cycle > p.cycle { // it was tried while the plan was in force, and could not have this room
				other.cause.news, other.since.news = true, true
				s.counts.freed.Add(1)
			}
		}
		g.lasted = now.Sub(g.began)
		g.racks, g.tried, g.pause = nil, true, now.Add(min(200*time.Millisecond<<min(g.failures, 10), 10*time.Second))
		g.failures++
		for _, pod := range g.pods {
			s.happen(moreRoom|otherPods, pod.UID)
		}
		return true
	})
}

// isSpent reports whether early attempts have almost used up their time: the first half second is free, that is ten seconds of 5 %,
// and attempts that were about to begin may have used some of it.
func (s *orderScene) isSpent() bool { return s.spent.Sub(s.clock.Now()) > 9*time.Second }

// checkOrder: when a gang takes room, no waiting gang that precedes it could have taken it, except one whose plan has failed
// since the last event that may help, or while early attempts have used up their time (docs/decisions, G16).
func (s *orderScene) checkOrder(key gangs.Key) {
	s.t.Helper()
	waiting := s.waiting()
	for _, other := range waiting[:slices.Index(waiting, key)] {
		switch g := s.gangs[other]; {
		case s.plan(g) == nil:
		case !g.pause.IsZero() && !g.since.news:
			s.counts.first.Add(1)
		case !g.pause.IsZero() && s.isSpent():
			s.counts.beyond.Add(1)
		default:
			s.fail("%s is placed, and %s, which precedes it, could have been", key.Name, other.Name)
		}
	}
}

// checkNoneCanStart: no waiting gang could start, except one whose pause is not over, without an event, or while early attempts have
// used up their time.
func (s *orderScene) checkNoneCanStart() {
	s.t.Helper()
	s.counts.checks.Add(1)
	for _, k := range s.waiting() {
		g := s.gangs[k]
		if s.plan(g) == nil || (!g.since.news || s.isSpent()) && s.clock.Now().Before(g.pause.Add(inTime)) {
			continue
		}
		f, _ := s.r.Facts(k)
		s.fail("%s could start, and waits: %+v", k.Name, f.Refused)
	}
}

// inTime is the time within which room is used.
const inTime = 100 * time.Millisecond

// waiting returns the waiting gangs in the order of the queue.
func (s *orderScene) waiting() []gangs.Key {
	var keys []gangs.Key
	for key, g := range s.gangs {
		if g.racks == nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b gangs.Key) int {
		return cmp.Or(cmp.Compare(s.gangs[b].priority, s.gangs[a].priority), cmp.Compare(a.Name, b.Name)) // named in the order of their creation
	})
	return keys
}

// change changes the cluster.
func (s *orderScene) change() {
	switch n := s.rand.Intn(12); {
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
	default: // another scheduler takes a place, or gives one back
		if rack := s.rand.Intn(len(s.free)); s.free[rack] > 0 && s.rand.Intn(2) == 0 {
			s.free[rack]--
			s.happen(boundPod, "other")
		} else if s.free[rack] < 8 && s.places(rack) < 8 {
			s.free[rack]++
			s.happen(moreRoom|otherPods, "other")
		}
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
	if len(s.gangs) >= 12 {
		return
	}
	s.nextID++
	s.clock.SetTime(s.clock.Now().Add(time.Microsecond)) // no two gangs have the same rank
	name, priority := fmt.Sprintf("g%03d", s.nextID), int32(s.rand.Intn(3))
	g := &modelGang{kind: kind(s.rand.Intn(int(kinds))), claim: s.rand.Intn(2), priority: priority}
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
	g.fails = s.rand.Intn(5) == 0
	s.say("%s is created: %d pods of priority %d, kind %d, claim %d, its bindings are refused: %t", name, n, priority, g.kind, g.claim, g.fails)
	s.apply(s.r.SetGroup(wrappers.MakePodGroup(name, "ml").UID(name).MinMember(int32(n)).Obj(), s.clock.Now()))
	for i := range n {
		pod := wrappers.MakePod(fmt.Sprintf("%s-%d", name, i), "ml").UID(fmt.Sprintf("%s-%d", name, i)).Gang(name).Priority(priority).Obj()
		g.pods = append(g.pods, pod)
		s.apply(s.r.SetPod(pod, s.clock.Now()))
	}
}

// finish deletes a gang, that runs in most cases.
func (s *orderScene) finish() {
	for _, k := range s.keys() {
		g := s.gangs[k]
		if s.isFailing(g) || g.racks == nil && s.rand.Intn(10) > 0 || s.rand.Intn(3) > 0 {
			continue
		}
		s.say("%s is deleted", k.Name)
		delete(s.gangs, k)
		for i, pod := range g.pods {
			delete(s.active, pod.UID)
			s.apply(s.r.RemovePod(pod.UID, s.clock.Now()))
			if g.racks != nil {
				s.free[g.racks[i]]++
			}
		}
		s.apply(s.r.RemoveGroup(k, s.clock.Now()))
		if g.racks != nil {
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

// pass lets time pass, with the loop and the ticker running. quiet: nothing happens from now on, so that room is used in time.
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
		s.clock.SetTime(s.clock.Now().Add(25 * time.Millisecond))
		s.apply(s.r.Tick(s.clock.Now()))
		s.look(gangs.Key{})
	}
}

// TestRoomIsUsedInTheOrderOfTheQueue: in any order of events a gang takes no room that one which precedes it could take, no gang
// is tried again without a cause, and in a quiet second no waiting gang could start after 100 ms. ROUNDS multiplies the number of
// seeds.
func TestRoomIsUsedInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	rounds := 100
	if n, err := strconv.Atoi(os.Getenv("ROUNDS")); err == nil && n > 0 {
		rounds *= n
	}
	var counts orderCounts
	t.Cleanup(func() { // when all seeds are over
		t.Logf("%d plans failed, %d attempts before the end of a pause, %d plans before a gang in its pause, %d when the time was used up, %d checks in quiet seconds",
			counts.failed.Load(), counts.early.Load(), counts.first.Load(), counts.beyond.Load(), counts.checks.Load())
		if t.Failed() {
			return
		}
		for k := range counts.placed {
			if counts.placed[k].Load() == 0 {
				t.Errorf("no gang of kind %d was placed", k)
			}
		}
		if counts.failed.Load() == 0 || counts.early.Load() == 0 || counts.freed.Load() == 0 || counts.first.Load() == 0 || counts.checks.Load() == 0 {
			t.Error("something did not occur")
		}
		if n := counts.beyond.Load(); n > counts.first.Load()/20 {
			t.Errorf("early attempts had used up their time %d times, so that little was checked", n)
		}
	})
	for seed := range rounds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			clock := testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			s := &orderScene{t: t, rand: rand.New(rand.NewSource(int64(seed))), clock: clock, r: gangs.New(), counts: &counts,
				free: []int{8, 8, 8}, devices: []int{2, 2, 2}, gangs: map[gangs.Key]*modelGang{}, active: map[types.UID]*corev1.Pod{}}
			s.fast = fastRacks{s}
			s.r.Configure(gangs.Options{RepairTimeout: time.Minute})
			s.r.AddProfile(wrappers.SchedulerName)
			s.apply(s.r.SetSynced(clock.Now()))
			for range 300 {
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
