// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/test/wrappers"
)

type fakeShape struct{ fits int }

func (s *fakeShape) FittingPods() int { return s.fits }

const (
	volumes = "a volume"
	pods    = "a pod"
)

// waitScene has gangs of one pod, which precede each other in the order of their names, and a clock that advances only
// on request.
type waitScene struct {
	t     testing.TB
	now   time.Time
	r     *Registry
	woken []string // since the last call of wakes
}

func newWaitScene(t testing.TB) *waitScene {
	s := &waitScene{t: t, now: time.Unix(1_000_000_000, 0), r: New()}
	s.r.AddProfile(wrappers.SchedulerName)
	s.r.SetSynced(s.now)
	return s
}

func waitKey(name string) Key { return Key{Namespace: "ml", Name: name} }

func (s *waitScene) apply(e Effects) {
	for _, pod := range e.Activate {
		s.woken = append(s.woken, pod.Name)
	}
}

// begin begins an attempt of a gang, which is created if it is unknown.
func (s *waitScene) begin(name string) *Work {
	s.t.Helper()
	pod := wrappers.MakePod(name, "ml").UID(name).Gang(name).Obj()
	if s.r.gangs[waitKey(name)] == nil {
		var at int64
		for i := range 6 {
			at <<= 8
			if i < len(name) {
				at += int64(name[i])
			}
		}
		complete := time.Unix(0, at)
		s.r.SetGroup(wrappers.MakePodGroup(name, "ml").UID(name).MinMember(1).Obj(), complete)
		s.r.SetPod(pod, complete)
	}
	s.r.MayEnterQueue(pod)
	s.r.RecordPopped(pod.UID)
	work, why := s.r.BeginAttempt(pod)
	if work == nil {
		s.t.Fatalf("%s cannot be planned: %s", name, why)
	}
	return work
}

// park lets an attempt of a gang be refused.
func (s *waitScene) park(name string, w Wait) {
	s.t.Helper()
	s.begin(name)
	s.apply(s.r.RecordGangRefused(waitKey(name), noRoom, w, s.now))
}

// place lets an attempt of a gang succeed.
func (s *waitScene) place(name string) {
	s.t.Helper()
	if plan, why := s.r.CommitPlan(s.begin(name), []placement.Placement{{Pod: placement.Pod{ID: name}, Node: "n"}}, s.now); plan == nil {
		s.t.Fatal(why)
	}
	if err := s.r.AssumeMember(wrappers.MakePod(name, "ml").UID(name).Obj().UID, "n", s.now); err != nil {
		s.t.Fatal(err)
	}
}

// gone deletes the pod of a gang.
func (s *waitScene) gone(name string) {
	s.apply(s.r.RemovePod(wrappers.MakePod(name, "ml").UID(name).Obj().UID, s.now))
}

// wants compares the gangs that were woken since the last call.
func (s *waitScene) wants(want ...string) {
	s.t.Helper()
	got := append([]string{}, s.woken...)
	slices.Sort(got)
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		s.t.Errorf("woken (-want +got):\n%s", diff)
	}
	s.woken = nil
}

func (s *waitScene) changes(raised []Shape, topics ...Topic) *waitScene {
	s.apply(s.r.RetryWaiting(raised, topics, s.now))
	return s
}

// entries returns the number of entries in the list and its indices.
func (x *waitList) entries() int {
	return len(x.all) + len(x.byShape) + len(x.byTopic) + len(x.heard.Items()) + len(x.turns.Items())
}

func (s *waitScene) after(d time.Duration) *waitScene {
	s.now = s.now.Add(d)
	return s
}

func TestGangThatLacksRoomIsWokenWhenItMayFit(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeShape{fits: 3}
	more := []Shape{r}
	s.park("first", Wait{Needs: []Need{{r, 9}}, Took: time.Second})
	s.park("small", Wait{Needs: []Need{{r, 5}}, Took: time.Second})
	s.park("third", Wait{Needs: []Need{{r, 8}}, Took: time.Second})
	r.fits = 4
	s.changes(more, pods).wants()
	r.fits = 5
	s.changes(more).wants("small")
	s.changes(more).wants() // it is already woken
	r.fits = 8
	s.changes(more).wants() // and claims what it needs
	r.fits = 9
	s.changes(more).wants("first") // but not before gangs that precede it
	s.place("first")               // it was placed elsewhere
	s.changes(nil).wants()
	s.r.NextMember()
	s.place("small")
	s.changes(nil).wants("third")
}

func TestRoomIsPromisedOnce(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeShape{}
	more := []Shape{r}
	for _, g := range []string{"d", "c", "b", "a"} {
		s.park(g, Wait{Needs: []Need{{r, 2}}})
	}
	r.fits = 5
	s.changes(more).wants("a", "b") // the first ones by rank
	r.fits = 3
	s.place("a")
	s.r.NextMember()
	s.changes(nil).wants() // b needs the rest
	s.park("b", Wait{Needs: []Need{{r, 2}}, Missed: true})
	s.changes(nil).wants("b", "c") // b because of an event during its attempt
	s.gone("c")
	s.changes(nil).wants() // b claims it
	s.place("b")
	s.changes(nil).wants("d")
}

// TestGangThatWasRefusedAlthoughEnoughFits: it is tried after each event that may help it, and after no other.
func TestGangThatWasRefusedAlthoughEnoughFits(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeShape{fits: 8}
	more := []Shape{r}
	for range 5 {
		s.park("a", Wait{Needs: []Need{{r, 8}}})
		s.changes(nil, pods).wants()
		s.after(time.Second).changes(nil).wants()
		s.changes(more).wants("a")
		s.changes(more).wants()
	}
	s.park("a", Wait{Needs: []Need{{r, 8}}, Missed: true}) // an event during the attempt
	s.changes(nil).wants("a")
	r.fits = 7
	s.park("a", Wait{Needs: []Need{{r, 8}}})
	r.fits = 8
	s.changes(more).wants("a")
}

// TestGangsAreTriedInTheOrderOfTheQueue: of 300 gangs that one event may help, those of the highest rank are tried
// first, and no more than their share of the loop allows.
func TestGangsAreTriedInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	for i := range 300 { // at a share of 1/4 each attempt exceeds it by 0.4 s
		s.park(fmt.Sprintf("g%03d", i), Wait{Topics: []Topic{pods}, Took: 100 * time.Millisecond})
	}
	s.changes(nil, pods).wants("g000")
	s.changes(nil).wants()
	s.after(200 * time.Millisecond).changes(nil).wants("g001")
	s.changes(nil).wants()
	s.after(2 * time.Second).changes(nil).wants("g002")
}

// TestGangWhoseRoomIsGone: it is not tried in its turn, but after the next event.
func TestGangWhoseRoomIsGone(t *testing.T) {
	t.Parallel()
	s, r := newWaitScene(t), &fakeShape{fits: 8}
	for _, name := range []string{"a", "b"} {
		s.park(name, Wait{Needs: []Need{{r, 8}}, Topics: []Topic{pods}, Took: time.Second})
	}
	s.changes(nil, pods).wants("a") // b exceeds the share of the loop
	r.fits = 7
	s.after(5 * time.Second).changes(nil).wants()
	if s.r.gangs[waitKey("b")].wait.heard {
		t.Error("it waits for its turn, not for an event")
	}
	r.fits = 8
	s.after(5 * time.Second).changes([]Shape{r}).wants("b")
}

func TestGangThatDependsOnMoreThanRoom(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeShape{fits: 8}
	s.park("volumes", Wait{Needs: []Need{{r, 1}}, Topics: []Topic{volumes}})
	s.park("plain", Wait{Needs: []Need{{r, 1}}})
	s.changes(nil, pods).wants()
	s.changes(nil, volumes).wants("volumes")
	s.changes(nil, Anything).wants("plain")
}

func TestMayFitDecidesBesideTheNumbers(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	a, b, evaluated := &fakeShape{fits: 8}, &fakeShape{fits: 4}, 0
	mayFit := func() bool {
		evaluated++
		return a.fits+b.fits >= 16
	}
	s.park("a", Wait{Needs: []Need{{a, 4}, {b, 4}}, MayFit: mayFit})
	for range 3 {
		s.changes([]Shape{a}).wants()
	}
	if evaluated != 1 {
		t.Errorf("evaluated %d times for the same room", evaluated)
	}
	b.fits = 8
	s.changes([]Shape{b}).wants("a")
	s.park("a", Wait{Needs: []Need{{a, 4}, {b, 4}}, MayFit: mayFit})
	a.fits, b.fits = 4, 4
	s.changes([]Shape{a, b}, pods).wants()
	a.fits = 12
	s.changes([]Shape{a}).wants("a")
}

func TestRoomThatIsKeptFromAGangDoesNotCount(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r, kept := &fakeShape{fits: 4}, 1
	s.park("a", Wait{Needs: []Need{{r, 4}}, Fits: func(s Shape) int { return s.FittingPods() - kept }})
	s.changes([]Shape{r}).wants()
	kept = 0
	s.changes([]Shape{r}).wants("a")
}

func TestCutAttemptGoesOnByItself(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	s.park("a", Wait{Took: 200 * time.Millisecond, Again: s.now.Add(time.Second), Progress: Progress{Tried: 7}})
	s.changes(nil).wants()
	s.after(time.Second).changes(nil).wants("a")
	for _, want := range []int{7, 0} {
		if work := s.begin("a"); work.Progress.Tried != want {
			t.Errorf("%d choices are skipped, want %d", work.Progress.Tried, want)
		}
	}
}

func TestRepeatedRefusalsTakeASmallPartOfTheLoop(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeShape{fits: 8}
	const took = 5 * time.Millisecond
	first := map[string]bool{}
	park := func(name string) { s.park(name, Wait{Needs: []Need{{r, 8}}, Took: took}) }
	for i := range 500 {
		park(fmt.Sprintf("g%03d", i))
	}
	attempts := 0
	const span = 20 * time.Second
	for range span / (50 * time.Millisecond) {
		s.after(50 * time.Millisecond).changes([]Shape{r})
		woken := s.woken
		s.woken = nil
		for _, name := range woken {
			attempts++
			first[name] = true
			park(name)
		}
	}
	spent := time.Duration(attempts) * took
	if most := span/repeatShare + span/eventShare + 2*maxSpent/repeatShare + 2*maxSpent/eventShare; spent > most {
		t.Errorf("%d attempts took %s of %s, want at most %s", attempts, spent, span, most)
	}
	if len(first) < 150 { // 0.75 s of the 15 s after fairAfter
		t.Errorf("only %d of 500 gangs were tried, although each saw events", len(first))
	}
}

// TestAnEventThatConcernsThousandsOfGangs: 10,000 gangs have an affinity that matches every pod, and pods come all the
// time. A gang is visited at length once after its attempt, not after each event, and all their attempts together have
// their share of the loop.
func TestAnEventThatConcernsThousandsOfGangs(t *testing.T) {
	t.Parallel()
	const many, took, step, span = 10_000, 20 * time.Millisecond, 50 * time.Millisecond, 10 * time.Second
	s := newWaitScene(t)
	evaluated := 0
	park := func(name string) {
		s.park(name, Wait{Took: took, Topics: []Topic{pods}, MayFit: func() bool { evaluated++; return true }})
	}
	for i := range many {
		park(fmt.Sprintf("g%05d", i))
	}
	evaluated = 0
	s.after(time.Second).changes(nil, pods)
	if first := evaluated - many; first < 0 || first > 2*len(s.woken)+1 {
		t.Errorf("%d evaluations after the first event, want one for each gang, and another for each of %d that are tried", evaluated, len(s.woken))
	}
	attempts := 0
	for range span / step {
		woken := s.woken
		s.woken = nil
		attempts += len(woken)
		for _, name := range woken {
			park(name)
		}
		evaluated = 0
		s.after(step).changes(nil, pods)
		if most := 2*(len(woken)+len(s.woken)) + 1; evaluated > most {
			t.Fatalf("%d evaluations after an event, of gangs of which %d were tried, and %d are, want at most %d", evaluated, len(woken), len(s.woken), most)
		}
	}
	share := span/repeatShare + span/eventShare + 2*maxSpent/repeatShare + 2*maxSpent/eventShare
	if spent := time.Duration(attempts) * took; spent > share || spent < span/eventShare/2 {
		t.Errorf("%d attempts took %s of %s, want at most %s, and most of the share", attempts, spent, span, share)
	}
}

func TestListForgets(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r, released := &fakeShape{}, 0
	park := func() {
		s.park("a", Wait{Needs: []Need{{r, 8}}, Topics: []Topic{pods}, Again: s.now.Add(time.Second), Release: func() { released++ }})
	}
	park()
	park()
	s.gone("a")
	s.changes(nil)
	if released != 2 {
		t.Errorf("released %d times, want twice", released)
	}
	if n := s.r.waiting.entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	s.apply(s.r.RecordGangRefused(waitKey("a"), noRoom, Wait{Release: func() { released++ }}, s.now))
	if released != 3 {
		t.Error("not released when a gang is refused that is gone")
	}
}

// TestIdleGangsClaimNothing: a gang that was woken for room, and is deleted before its attempt, does not keep the room.
func TestIdleGangsClaimNothing(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeShape{}
	for _, name := range []string{"a", "b", "c"} {
		s.park(name, Wait{Needs: []Need{{r, 2}}})
	}
	r.fits = 2
	s.changes([]Shape{r}).wants("a")
	s.changes([]Shape{r}).wants()
	s.gone("a")
	s.changes([]Shape{r}).wants("b")
	if n := s.r.WaitingGangs(); n != 2 {
		t.Errorf("%d gangs wait, want two", n)
	}
	s.gone("c")
	if n := s.r.WaitingGangs(); n != 1 {
		t.Errorf("%d gangs wait, want one", n)
	}
}

func TestGangIsTriedWithoutAnEvent(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	r := &fakeShape{}
	s.park("a", Wait{Needs: []Need{{r, 1}}})
	s.park("b", Wait{})
	r.fits = 1
	s.changes(nil).wants()
	s.after(recheckAfter).changes(nil).wants("a")
	s.after(longest - recheckAfter).changes(nil).wants("b")
}

// The numbers of a refused gang are those of half a minute ago at most, of which the reporter takes ten seconds.
func TestRefusedGangIsTriedForItsNumbers(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]Wait{"too little fits": {Needs: []Need{{&fakeShape{}, 1}}}, "enough seems to fit": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWaitScene(t)
			s.park("a", wait)
			s.after(refreshAfter - recheckAfter)
			s.r.RecordRoomChanged(s.now)
			s.changes(nil).wants()
			s.after(recheckAfter).changes(nil).wants("a")
			s.park("a", wait)
			for range 60 { // nothing has changed since
				s.after(recheckAfter).changes(nil).wants()
			}
			s.r.RecordRoomChanged(s.now.Add(recheckAfter))
			for range refreshAfter / recheckAfter {
				s.after(recheckAfter).changes(nil)
			}
			s.wants("a")
		})
	}
}

func TestManyRefusedGangsAreNotTriedForTheirNumbers(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	for i := range FewGangs + 1 {
		s.park(fmt.Sprintf("g%03d", i), Wait{Needs: []Need{{&fakeShape{}, 1}}})
	}
	s.after(recheckAfter)
	s.r.RecordRoomChanged(s.now)
	for range 120 {
		s.after(recheckAfter).changes(nil).wants()
	}
	s.gone("g000")
	s.after(recheckAfter).changes(nil)
	if len(s.woken) == 0 {
		t.Error("none of 100 gangs is tried for its numbers")
	}
}

// Trying gangs for their numbers takes a small part of the loop's time.
func TestNumbersTakeASmallPartOfTheLoop(t *testing.T) {
	t.Parallel()
	s := newWaitScene(t)
	const took = 100 * time.Millisecond
	for i := range FewGangs {
		s.park(fmt.Sprintf("g%03d", i), Wait{Needs: []Need{{&fakeShape{}, 1}}, Took: took})
	}
	for range 300 {
		s.after(recheckAfter)
		s.r.RecordRoomChanged(s.now)
		s.changes(nil)
	}
	if n, most := len(s.woken), int(300*recheckAfter/repeatShare/took)+2; n == 0 || n > most {
		t.Errorf("%d attempts, want at most %d", n, most)
	}
}

// If there is no time to try all of them, those with the oldest numbers come first.
func TestEachRefusedGangIsTriedForItsNumbers(t *testing.T) {
	t.Parallel()
	for name, needs := range map[string][]Need{"too little fits": {{&fakeShape{}, 1}}, "enough seems to fit": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWaitScene(t)
			wait := Wait{Needs: needs, Took: 100 * time.Millisecond}
			tried := map[string]int{}
			const gangs = 30 // 2 s each
			for i := range gangs {
				s.park(fmt.Sprintf("g%03d", i), wait)
			}
			for range 200 {
				s.after(recheckAfter)
				s.r.RecordRoomChanged(s.now)
				s.changes(nil)
				woken := s.woken
				s.woken = nil
				for _, name := range woken {
					tried[name]++
					s.park(name, wait)
				}
			}
			for i := range gangs {
				if name := fmt.Sprintf("g%03d", i); tried[name] < 2 || tried[name] > 5 {
					t.Errorf("%s was tried %d times in 200 s, want about three", name, tried[name])
				}
			}
		})
	}
}

// TestSubGroupWaitsBesideSinglePods: what a surplus sub-group waits for is not forgotten while single pods are tried,
// or wait.
func TestSubGroupWaitsBesideSinglePods(t *testing.T) {
	t.Parallel()
	large, small, released := &fakeShape{}, &fakeShape{}, 0
	surplus := func(r *fakeShape) Wait {
		return Wait{Needs: []Need{{Shape: r}}, MayFit: func() bool { return r.fits > 0 }, Release: func() { released++ }}
	}
	changes := func(s *story, raised ...Shape) *story {
		s.effects = s.r.RetryWaiting(raised, nil, s.now)
		return s
	}
	s := begin(t)
	s.r.opts.SingleSurplusAfter = 2 * time.Second
	s.group(podGroup().MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 1)).pods(sub("x", "x0")...).binds("x0", "x0").
		pods(sub("y", "y0")...).pods(sub("x", "x1")...).leads("y0").wantTask(SurplusUnit).refusesFor(surplus(large))
	s.after(2 * time.Second).leads("x1").wantTask(SurplusSingle).refusesFor(surplus(small))
	if n := s.r.WaitingGangs(); n != 1 || released != 0 {
		t.Fatalf("%d gangs wait, want 1 with two conditions, %d were released", n, released)
	}
	large.fits = 1
	changes(s, large).after(2 * time.Second).leads("y0").wantTask(SurplusUnit)
	if s.refusesFor(surplus(large)); released != 2 {
		t.Fatalf("%d conditions are released, want both", released)
	}
	small.fits, large.fits = 0, 0
	s.after(2 * time.Second).wantLeader("x1")
	large.fits = 1
	changes(s, large).after(2 * time.Second).leads("y0").wantTask(SurplusUnit) // its single pods were about to be tried
}

// BenchmarkLookOfEvents: one look over 10,000 waiting gangs. Refused by count, an event concerns none of them as long
// as too few of their pods fit; otherwise it concerns those that wait for its topic. Their share of the loop is used
// up.
func BenchmarkLookOfEvents(b *testing.B) {
	for name, tc := range map[string]struct {
		fits   int
		more   bool
		topics []Topic
	}{
		"that concerns none: no room for any":          {7, true, []Topic{volumes}},
		"that concerns none: a volume":                 {8, false, []Topic{volumes}},
		"that concerns all: more room":                 {8, true, nil},
		"that concerns all: affinity to any pod":       {8, false, []Topic{Anything}},
		"that concerns 10: a pod was bound near them":  {8, false, []Topic{pods}},
		"that concerns 100: their claim is changed":    {8, false, []Topic{"claim 100"}},
		"that concerns 1,000: their claim is changed":  {8, false, []Topic{"claim 1000"}},
		"that concerns 10,000: their claim is changed": {8, false, []Topic{"claim 10000"}},
	} {
		b.Run(name, func(b *testing.B) {
			s, r := manyWaiting(b)
			r.fits = tc.fits
			var raised []Shape
			if tc.more {
				raised = append(raised, r)
			}
			for b.Loop() {
				s.r.RetryWaiting(raised, tc.topics, s.now)
				if heard := s.r.waiting.heard; len(heard.Items()) > 0 {
					b.StopTimer()
					for g, ok := heard.First(); ok; g, ok = heard.First() {
						g.wait.heard = false
						s.r.reindex(g)
					}
					b.StartTimer()
				}
			}
		})
	}
}

// BenchmarkGangEndsWaiting: one of 10,000 gangs that wait for the same room and topic ends its wait, and begins it
// again.
func BenchmarkGangEndsWaiting(b *testing.B) {
	s, _ := manyWaiting(b)
	for i := 0; b.Loop(); i++ {
		g := s.r.gangs[waitKey(manyName(i%manyGangs))]
		w := g.wait
		s.r.waiting.endGang(g, w)
		g.wait = w
		s.r.waiting.addGang(g, w)
		s.r.waiting.turns.Set(g)
	}
}

const manyGangs = 10_000

func manyName(i int) string { return fmt.Sprintf("g%05d", i) }

// manyWaiting returns 10,000 gangs that wait for room for 8 pods of the shape, and for topics that the first 10, 100,
// 1,000 or all of them share.
func manyWaiting(b *testing.B) (*waitScene, *fakeShape) {
	s, r := newWaitScene(b), &fakeShape{fits: 8}
	for i := range manyGangs {
		w := Wait{Needs: []Need{{r, 8}}, Took: time.Hour}
		if i < 10 {
			w.Topics = append(w.Topics, pods)
		}
		for n := 100; n <= manyGangs; n *= 10 {
			if i < n {
				w.Topics = append(w.Topics, fmt.Sprint("claim ", n))
			}
		}
		s.park(manyName(i), w)
	}
	s.r.waiting.afterEvents.spent, s.r.waiting.withoutEvent.spent = s.now.Add(time.Hour), s.now.Add(time.Hour)
	return s, r
}

// TestGangsOfATopologyShareTheLoop: many gangs that name a Topology are tried again when it is created, each of them
// once, and never take more than their shares of the loop's time. A gang that names another one is not.
func TestGangsOfATopologyShareTheLoop(t *testing.T) {
	t.Parallel()
	const gangs, took, step = 20, 100 * time.Millisecond, 50 * time.Millisecond
	s := newWaitScene(t)
	parkLeveled := func(name, topology string) {
		s.r.SetGroup(wrappers.MakePodGroup(name, "ml").UID(name).MinMember(1).Spec(func(spec *v2alpha2.PodGroupSpec) {
			spec.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: topology, RequiredTopologyLevel: "rack"}
		}).Obj(), s.now)
		s.r.SetPod(wrappers.MakePod(name, "ml").UID(name).Gang(name).Obj(), s.now)
		s.park(name, Wait{Took: took})
	}
	for i := range gangs {
		parkLeveled(fmt.Sprintf("g-%02d", i), "fabric")
	}
	parkLeveled("other", "ethernet")
	s.after(time.Minute)
	s.woken = nil
	s.r.RecordTopologyChanged("fabric", s.now)
	tried := map[string]int{}
	for elapsed := time.Duration(0); elapsed < gangs*took*eventShare+time.Second; elapsed += step {
		s.apply(s.r.Tick(s.now))
		s.changes(nil)
		woken := s.woken
		s.woken = nil
		for _, name := range woken {
			tried[name]++
			s.park(name, Wait{Took: took})
		}
		if used, most := time.Duration(len(tried))*took, (elapsed+maxSpent)/eventShare+(elapsed+maxSpent)/repeatShare+2*took; used > most {
			t.Fatalf("%d gangs are tried within %s", len(tried), elapsed)
		}
		s.after(step)
	}
	want := map[string]int{}
	for i := range gangs {
		want[fmt.Sprintf("g-%02d", i)] = 1
	}
	if diff := cmp.Diff(want, tried); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// Gangs of higher rank that change all the time do not keep one that has changed from being tried.
func TestAGangThatHasChangedIsTriedBesideThoseThatChangeAllTheTime(t *testing.T) {
	t.Parallel()
	const took, step = 200 * time.Millisecond, 50 * time.Millisecond
	s := newWaitScene(t)
	change := func(name string) {
		s.r.mu.Lock()
		defer s.r.mu.Unlock()
		g := s.r.gangs[waitKey(name)]
		g.recordOwnChange()
		s.r.reindex(g)
	}
	for name, priority := range map[string]int32{"high-0": 10, "high-1": 10, "low": 0} {
		s.r.SetGroup(wrappers.MakePodGroup(name, "ml").UID(name).MinMember(1).Obj(), s.now)
		s.r.SetPod(wrappers.MakePod(name, "ml").UID(name).Gang(name).Priority(priority).Obj(), s.now)
		s.park(name, Wait{Took: took})
		change(name)
	}
	s.after(time.Second)
	s.woken = nil
	high := 0
	for elapsed := time.Duration(0); ; elapsed += step {
		if elapsed > 15*time.Second {
			t.Fatalf("not tried within %s, beside %d attempts for the others", elapsed, high)
		}
		s.apply(s.r.Tick(s.now))
		s.changes(nil)
		woken := s.woken
		s.woken = nil
		for _, name := range woken {
			if name == "low" {
				if high == 0 {
					t.Error("the gang of lower rank was first")
				}
				return
			}
			high++
			s.park(name, Wait{Took: took})
			change(name)
		}
		s.after(step)
	}
}
