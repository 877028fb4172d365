// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
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

	free   []int   // places by rack
	broken [2]bool // by claim: its volume cannot be used
	gangs  map[gangs.Key]*modelGang
	active map[types.UID]*corev1.Pod // leaders in the queue
	nextID int
	events causes // not evaluated
	during causes // since the cycle began
}

// modelGang is a gang of equal pods.
type modelGang struct {
	pods     []*corev1.Pod
	priority int32
	kind     kind
	claim    int   // that its one pod uses, for the kind claim
	racks    []int // of its places; nil: it waits
}

// Fits implements gangs.Shape: every free place fits a pod.
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
	for _, line := range s.log[max(0, len(s.log)-40):] {
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
	for _, other := range s.gangs {
		if other.racks == nil || other.kind != g.kind {
			continue
		}
		if g.kind == claim && other.claim == g.claim {
			return nil // it is in use
		}
		for _, rack := range other.racks {
			if g.kind == hostPort {
				room[rack] = 0 // it is taken there
			}
		}
	}
	var racks []int
	for rack, free := range room {
		switch g.kind {
		case oneRack:
			if free < n {
				continue
			}
		case hostPort:
			free = min(free, 1)
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
	anywhere kind = iota
	oneRack       // all pods in one rack
	hostPort      // one pod of all gangs of the kind per rack
	claim         // no other gang uses the same volume
	spread        // evenly over the racks
	kinds
)

// causes are those of events that may help a gang of the kind.
func (k kind) causes() causes {
	switch k {
	case anywhere:
		return moreRoom
	case oneRack, spread:
		return moreRoom | otherNodes
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
		raised = append(raised, s)
	}
	e := s.r.RetryWaiting(raised, s.events.topics(), before, s.clock.Now())
	s.events = 0
	s.apply(e)
}

func (s *orderScene) happen(c causes) {
	s.events |= c
	s.during |= c
	if s.rand.Intn(2) == 0 { // the background goroutine was faster than the loop
		s.look(gangs.Key{})
	}
}

// schedule does one cycle of the scheduling loop. It returns false if the queue is empty.
func (s *orderScene) schedule() bool {
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
	racks := s.plan(g)
	if racks != nil {
		s.checkOrder(key)
	}
	const took = time.Millisecond
	s.clock.SetTime(s.clock.Now().Add(took))
	if racks == nil {
		s.say("%s is refused", key.Name)
		if s.rand.Intn(4) == 0 {
			s.change()
		}
		why := g.kind.causes()
		s.apply(s.r.RecordGangRefused(key, podgroup.Refusal{Reason: "full"}, gangs.Wait{
			Needs: []gangs.Need{{Shape: s, Pods: len(g.pods)}}, Topics: why.topics(), Took: took, Missed: s.during&(why|nominationGone) != 0,
		}, s.clock.Now()))
		s.look(gangs.Key{})
		return false
	}
	s.bind(key, g, work, racks)
	return true
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
	for _, pod := range g.pods {
		s.apply(s.r.RecordPosted(pod.UID, s.clock.Now()))
		bound := pod.DeepCopy()
		bound.Spec.NodeName = nodes[pod.UID]
		s.apply(s.r.SetPod(bound, s.clock.Now()))
	}
	s.happen(boundPod)
}

// checkOrder: when a gang takes room, no waiting gang that precedes it could have taken it.
func (s *orderScene) checkOrder(key gangs.Key) {
	s.t.Helper()
	waiting := s.waiting()
	for _, other := range waiting[:slices.Index(waiting, key)] {
		if s.plan(s.gangs[other]) != nil {
			s.fail("%s is placed, and %s, which precedes it, could have been", key.Name, other.Name)
		}
	}
}

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
	switch n := s.rand.Intn(10); {
	case n < 3:
		s.create()
	case n < 7:
		s.finish()
	case n < 8:
		s.say("a node changes its labels")
		s.happen(moreRoom | otherPods | otherNodes)
	case n < 9: // a volume can be used, or not
		c := s.rand.Intn(len(s.broken))
		if s.broken[c] = !s.broken[c]; !s.broken[c] {
			s.say("volume %d can be used", c)
			s.happen(otherVolumes)
		}
	default: // another scheduler takes a place, or gives one back
		if rack := s.rand.Intn(len(s.free)); s.free[rack] > 0 && s.rand.Intn(2) == 0 {
			s.free[rack]--
			s.happen(boundPod)
		} else if s.free[rack] < 8 && s.places(rack) < 8 {
			s.free[rack]++
			s.happen(moreRoom | otherPods)
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
	}
	s.say("%s is created: %d pods of priority %d, kind %d, claim %d", name, n, priority, g.kind, g.claim)
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
		if g.racks == nil && s.rand.Intn(10) > 0 || s.rand.Intn(3) > 0 {
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
			s.happen(moreRoom | otherPods)
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

// pass lets time pass, with the loop and the ticker running.
func (s *orderScene) pass(d time.Duration) {
	for end := s.clock.Now().Add(d); s.clock.Now().Before(end); {
		for range 100 {
			if !s.schedule() {
				break
			}
		}
		s.clock.SetTime(s.clock.Now().Add(50 * time.Millisecond))
		s.apply(s.r.Tick(s.clock.Now()))
		s.look(gangs.Key{})
	}
}

// TestRoomIsUsedInTheOrderOfTheQueue: in any order of events a gang takes no room that one which precedes it could take,
// and after a quiet second no waiting gang could start. ROUNDS multiplies the number of seeds.
func TestRoomIsUsedInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	rounds := 100
	if n, err := strconv.Atoi(os.Getenv("ROUNDS")); err == nil && n > 0 {
		rounds *= n
	}
	for seed := range rounds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			clock := testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			s := &orderScene{t: t, rand: rand.New(rand.NewSource(int64(seed))), clock: clock, r: gangs.New(),
				free: []int{8, 8, 8}, gangs: map[gangs.Key]*modelGang{}, active: map[types.UID]*corev1.Pod{}}
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
					s.pass(50 * time.Millisecond)
				default:
					s.pass(time.Second)
					for _, k := range s.waiting() {
						if s.plan(s.gangs[k]) != nil {
							f, _ := s.r.Facts(k)
							s.fail("%s could start, and waits: %+v", k.Name, f.Refused)
						}
					}
				}
			}
		})
	}
}
