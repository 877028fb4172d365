// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/scheduler/gangstate"
	"github.com/muster-project/muster/test/wrappers"
)

type fakeRoom struct{ fits int }

func (r *fakeRoom) Fits() int { return r.fits }

func TestCausesOfEvents(t *testing.T) {
	t.Parallel()
	bound, waiting, nominated := wrappers.MakePod("p", "ml").Node("n").Obj(), wrappers.MakePod("p", "ml").Obj(), wrappers.MakePod("p", "ml").Obj()
	nominated.Status.NominatedNodeName = "n"
	node := wrappers.MakeNode("n").Obj()
	for name, tc := range map[string]struct {
		event    fwk.ClusterEvent
		old, new any
		want     causes
	}{
		"a node is added":             {fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, nil, node, moreRoom | otherPods},
		"a bound pod is deleted":      {framework.EventAssignedPodDelete, bound, nil, moreRoom | otherPods},
		"a nominated pod is deleted":  {framework.EventAssignedPodDelete, nominated, nil, nominationGone},
		"a pod is bound":              {framework.EventAssignedPodAdd, nil, bound, boundPod},
		"an assumed pod is deleted":   {framework.EventAssignedPodDelete, waiting, nil, moreRoom | otherPods},
		"a pod reduces its requests":  {fwk.ClusterEvent{Resource: "AssignedPod", ActionType: fwk.UpdatePodScaleDown}, bound, bound, moreRoom | otherPods},
		"a pod's labels change":       {fwk.ClusterEvent{Resource: "AssignedPod", ActionType: fwk.UpdatePodLabel}, bound, bound, otherPods},
		"a claim changes":             {fwk.ClusterEvent{Resource: fwk.ResourceClaim, ActionType: fwk.Update}, nil, nil, otherClaims},
		"a volume is added":           {fwk.ClusterEvent{Resource: fwk.PersistentVolume, ActionType: fwk.Add}, nil, nil, otherVolumes},
		"everything may have changed": {framework.EventUnschedulableTimeout, nil, nil, anything},
		"an unknown resource":         {fwk.ClusterEvent{Resource: "foos.v1.example.com", ActionType: fwk.Add}, nil, waiting, otherPods},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := causesOf(tc.event, tc.old, tc.new); got != tc.want {
				t.Errorf("got %05b, want %05b", got, tc.want)
			}
		})
	}
}

// byName is an order of the queue.
type byName struct{ idle []gangstate.Key }

func (*byName) SortByRank(keys []gangstate.Key) { slices.SortFunc(keys, compareKeys) }

func (q *byName) Idle(keys []gangstate.Key) []gangstate.Key {
	return slices.DeleteFunc(slices.Clone(keys), func(k gangstate.Key) bool { return !slices.Contains(q.idle, k) })
}

// waitScene is a waitlist with a clock that advances only on request.
type waitScene struct {
	t     *testing.T
	clock *testingclock.FakePassiveClock
	l     *waitlist
}

func newWaitScene(t *testing.T) *waitScene {
	c := testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return &waitScene{t: t, clock: c, l: newWaitlist(c, &byName{})}
}

// entries returns the number of entries in the list and its indices.
func (l *waitlist) entries() int {
	n := len(l.gangs) + len(l.beside) + len(l.byRoom) + len(l.paused) + len(l.informed)
	for _, waiting := range l.others {
		n += len(waiting)
	}
	return n
}

func (s *waitScene) after(d time.Duration) { s.clock.SetTime(s.clock.Now().Add(d)) }

func (s *waitScene) wakes(raised []room, events causes, want ...string) {
	s.t.Helper()
	got := []string{}
	for _, k := range s.l.changed(raised, events, gangstate.Key{}) {
		got = append(got, k.Name)
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		s.t.Errorf("woken (-want +got):\n%s", diff)
	}
}

func TestGangThatLacksRoomIsWokenWhenItMayFit(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeRoom{fits: 3}
	s.l.park(key("first"), refused{needs: []need{{r, 9}}, took: time.Second})
	s.l.park(key("small"), refused{needs: []need{{r, 5}}, took: time.Second})
	s.l.park(key("third"), refused{needs: []need{{r, 8}}, took: time.Second})
	r.fits = 4
	s.wakes([]room{r}, moreRoom|otherPods)
	r.fits = 5
	s.wakes([]room{r}, moreRoom, "small")
	s.wakes([]room{r}, moreRoom) // it is already woken
	r.fits = 8
	s.wakes([]room{r}, moreRoom) // and claims what it needs
	r.fits = 9
	s.wakes([]room{r}, moreRoom, "first") // but not before gangs that precede it
	s.l.leave(key("first"))               // it was placed elsewhere
	s.wakes(nil, 0)
	s.l.leave(key("small"))
	s.wakes(nil, 0, "third")
}

func TestRoomIsPromisedOnce(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeRoom{}
	for _, g := range []string{"d", "c", "b", "a"} {
		s.l.park(key(g), refused{needs: []need{{r, 2}}})
	}
	r.fits = 5
	s.wakes([]room{r}, moreRoom, "a", "b") // the first ones by rank
	r.fits = 3
	s.l.leave(key("a")) // placed
	s.wakes(nil, 0)     // b needs the rest
	s.l.park(key("b"), refused{needs: []need{{r, 2}}, recheck: true})
	s.wakes(nil, 0, "b", "c") // b because of an event during its attempt
	// c is not tried, because its pods are deleted.
	s.after(time.Second)
	s.l.forgetful(time.Second)
	s.wakes(nil, 0, "b", "c") // c claims again, b is tried once
}

// TestGangThatWasRefusedAlthoughEnoughFits: it is tried after each event that may help it, and after no other.
func TestGangThatWasRefusedAlthoughEnoughFits(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeRoom{fits: 8}
	for range 5 {
		s.l.park(key("a"), refused{needs: []need{{r, 8}}})
		s.wakes(nil, moreRoom|otherPods)
		s.after(time.Second)
		s.wakes(nil, 0)
		s.wakes([]room{r}, moreRoom, "a")
		s.wakes([]room{r}, moreRoom)
	}
	s.l.park(key("a"), refused{needs: []need{{r, 8}}, recheck: true}) // an event during the attempt
	s.wakes(nil, 0, "a")
	r.fits = 7
	s.l.park(key("a"), refused{needs: []need{{r, 8}}})
	r.fits = 8
	s.wakes([]room{r}, moreRoom, "a")
}

// TestInformedGangsInTheOrderOfTheQueue: of 300 gangs that one event may help, those of the highest rank are tried first,
// and no more than their share of the loop allows, unless one that follows them is about to be planned.
func TestInformedGangsInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	const took = 100 * time.Millisecond // at a share of 1/4 each attempt exceeds it by 0.4 s
	for i := range 300 {
		s.l.park(key(fmt.Sprintf("g%03d", i)), refused{causes: anything, took: took})
	}
	s.wakes(nil, otherPods, "g000")
	s.wakes(nil, 0)
	before := func(name string, want ...string) {
		t.Helper()
		got := []string{}
		for _, k := range s.l.changed(nil, 0, key(name)) {
			got = append(got, k.Name)
		}
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Errorf("woken before %s (-want +got):\n%s", name, diff)
		}
	}
	before("g0005")
	before("g0015", "g001")
	before("g999", "g002") // the attempts exceed their share by more than a second now
	before("g999")
	s.after(2 * time.Second)
	s.wakes(nil, 0, "g003")
}

func TestGangThatDependsOnMoreThanRoom(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeRoom{fits: 8}
	s.l.park(key("volumes"), refused{needs: []need{{r, 1}}, causes: moreRoom | otherVolumes})
	s.l.park(key("plain"), refused{needs: []need{{r, 1}}, causes: moreRoom})
	s.wakes(nil, otherPods)
	s.wakes(nil, otherVolumes, "volumes")
	s.wakes(nil, nominationGone, "plain")
}

func TestMayFitDecidesBesideTheNumbers(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	a, b, evaluated := &fakeRoom{fits: 8}, &fakeRoom{fits: 4}, 0
	mayFit := func() bool {
		evaluated++
		return a.fits+b.fits >= 16
	}
	s.l.park(key("a"), refused{needs: []need{{a, 4}, {b, 4}}, mayFit: mayFit})
	for range 3 {
		s.wakes([]room{a}, moreRoom)
	}
	if evaluated != 1 {
		t.Errorf("evaluated %d times for the same room", evaluated)
	}
	b.fits = 8
	s.wakes([]room{b}, moreRoom, "a")
	s.l.park(key("a"), refused{needs: []need{{a, 4}, {b, 4}}, mayFit: mayFit})
	a.fits, b.fits = 4, 4
	s.wakes([]room{a, b}, otherPods)
	a.fits = 12
	s.wakes([]room{a}, moreRoom, "a")
}

func TestCutAttemptGoesOnByItself(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	s.l.park(key("a"), refused{took: 200 * time.Millisecond, cut: true})
	s.wakes(nil, 0)
	s.after(sliceShare * 200 * time.Millisecond)
	s.wakes(nil, 0, "a")
}

func TestRepeatedRefusalsTakeASmallPartOfTheLoop(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeRoom{fits: 8}
	const took = 5 * time.Millisecond
	first := map[gangstate.Key]bool{}
	park := func(k gangstate.Key) { s.l.park(k, refused{needs: []need{{r, 8}}, took: took}) }
	for i := range 500 {
		park(key(fmt.Sprintf("g%03d", i)))
	}
	attempts := 0
	const span = 20 * time.Second
	for range span / (50 * time.Millisecond) {
		s.after(50 * time.Millisecond)
		for _, k := range s.l.changed([]room{r}, moreRoom, gangstate.Key{}) {
			attempts++
			first[k] = true
			park(k)
		}
	}
	spent := time.Duration(attempts) * took
	if most := span/repeatShare + span/informedShare + 2*maxSpent/repeatShare + 2*maxSpent/informedShare; spent > most {
		t.Errorf("%d attempts took %s of %s, want at most %s", attempts, spent, span, most)
	}
	if len(first) < 150 { // 0.75 s of the 15 s after fairAfter
		t.Errorf("only %d of 500 gangs were tried, although each saw events", len(first))
	}
}

func TestWaitlistForgets(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r, released := &fakeRoom{}, 0
	park := func() {
		s.l.park(key("a"), refused{needs: []need{{r, 8}}, causes: anything, cut: true, release: func() { released++ }})
	}
	park()
	park()
	s.l.leave(key("a"))
	s.l.leave(key("a"))
	if released != 2 {
		t.Errorf("released %d times, want twice", released)
	}
	if n := s.l.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// BenchmarkLookOfEvents: one look over 10,000 waiting gangs. Refused by count, an event concerns none of them as long as
// too few of their pods fit; otherwise it concerns those whose causes it has.
func BenchmarkLookOfEvents(b *testing.B) {
	for name, tc := range map[string]struct {
		fits   int
		events causes
	}{
		"that concerns none: no room for any":          {7, moreRoom | otherPods},
		"that concerns none: a volume":                 {8, otherVolumes},
		"that concerns all: more room, all paused":     {8, moreRoom},
		"that concerns ten: a pod was bound near them": {7, boundPod},
	} {
		b.Run(name, func(b *testing.B) {
			c := testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			l := newWaitlist(c, &byName{})
			r := &fakeRoom{fits: tc.fits}
			for i := range 10_000 {
				why := moreRoom
				if i < 10 {
					why |= boundPod
				}
				l.park(key(fmt.Sprintf("g%05d", i)), refused{needs: []need{{r, 8}}, causes: why, took: time.Hour})
			}
			l.afterEvents.spent, l.withoutEvent.spent = c.Now().Add(time.Hour), c.Now().Add(time.Hour)
			var raised []room
			if tc.events&moreRoom != 0 {
				raised = append(raised, r)
			}
			for b.Loop() {
				l.changed(raised, tc.events, gangstate.Key{})
			}
		})
	}
}
