// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/backfill"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

// promiseScene has gangs of one pod that wait for room, and pods on nodes.
type promiseScene struct {
	*waitScene
	running []*corev1.Pod  // on nodes, by ID
	events  []PromiseEvent // of all gangs
}

// VisitPods implements PodsOnNodes.
func (s *promiseScene) VisitPods(visit func(id int, pod *corev1.Pod)) {
	for id, pod := range s.running {
		visit(id, pod)
	}
}

// ExtendedAmounts implements PodsOnNodes.
func (s *promiseScene) ExtendedAmounts() func(int) int64 { return func(int) int64 { return 1 } }

// newPromiseScene returns a scene with a pod on each of two nodes.
func newPromiseScene(t *testing.T, change func(*Options)) *promiseScene {
	s := &promiseScene{waitScene: &waitScene{t: t, now: time.Unix(1_000_000_000, 0), r: New()}}
	o := Options{
		ReservationAfter: 5 * time.Minute, ReservationTimeout: time.Hour, MaxReservations: MaxReservations{OfPriority: 1, OfNamespace: 4, InAll: 4},
		Amount:   func(*corev1.Pod) reservations.Amount { return reservations.Amount{Pods: 1} },
		Promised: func(_ Key, event PromiseEvent) { s.events = append(s.events, event) },
	}
	if change != nil {
		change(&o)
	}
	s.r.Configure(o)
	s.r.AddProfile(wrappers.SchedulerName)
	s.r.SetSynced(s.now)
	for _, node := range []string{"n1", "n2"} {
		s.running = append(s.running, wrappers.MakePod("on-"+node, "ml").UID("on-"+node).Node(node).Obj())
	}
	return s
}

// arrive creates gangs that are refused: "name", "name/priority" or "namespace:name/priority".
func (s *promiseScene) arrive(names ...string) *promiseScene {
	s.t.Helper()
	for _, name := range names {
		pod := s.pod(name)
		key := Key{Namespace: pod.Namespace, Name: pod.Name}
		s.r.SetGroup(wrappers.MakePodGroup(key.Name, key.Namespace).UID(key.String()).MinMember(1).Obj(), s.now)
		s.apply(s.r.SetPod(pod, s.now))
		s.tries(name, nil)
		s.now = s.now.Add(time.Second)
	}
	s.woken = nil
	return s
}

func (s *promiseScene) pod(name string) *corev1.Pod {
	namespace, rest, found := strings.Cut(name, ":")
	if !found {
		namespace, rest = "ml", name
	}
	rest, priority, high := strings.Cut(rest, "/")
	p := wrappers.MakePod(rest, namespace).UID(namespace + "-" + rest).Gang(rest)
	if high {
		p = p.Priority(int32(len(priority)))
	}
	return p.Obj()
}

// tries lets an attempt of a gang be refused, and promises it room if it is to have some: what choose returns. It
// reports whether it was to have some.
func (s *promiseScene) tries(name string, choose func(*PromiseSearch) (*backfill.Promise, bool)) bool {
	s.t.Helper()
	pod := s.pod(name)
	s.r.MayEnterQueue(pod)
	s.r.RecordPopped(pod.UID)
	w, why := s.r.BeginAttempt(pod)
	if w == nil {
		s.t.Fatalf("%s cannot be planned: %s", name, why)
	}
	search := s.r.BeginPromise(w, s, s.now)
	if search != nil && choose != nil {
		p, keep := choose(search)
		s.apply(s.r.RecordPromise(w, search, p, keep, s.now))
	}
	s.apply(s.r.RecordGangRefused(w.Gang, podgroup.Refusal{Reason: "full"}, Wait{Needs: []Need{{&fakeShape{}, 1}}}, s.now))
	return search != nil
}

// on returns a choice: room for the gang on a node, behind the pods of these IDs.
func (s *promiseScene) on(node string, starts time.Time, behind ...int) func(*PromiseSearch) (*backfill.Promise, bool) {
	return func(*PromiseSearch) (*backfill.Promise, bool) {
		return &backfill.Promise{Plan: []placement.Placement{{Node: node}}, Starts: starts, Behind: behind}, false
	}
}

func keptPromise(*PromiseSearch) (*backfill.Promise, bool) { return nil, true }

func noPromise(*PromiseSearch) (*backfill.Promise, bool) { return nil, false }

// ticks lets time pass, and compares which gangs are tried.
func (s *promiseScene) ticks(d time.Duration, want ...string) *promiseScene {
	s.t.Helper()
	s.now = s.now.Add(d)
	s.apply(s.r.Tick(s.now))
	s.wants(want...)
	return s
}

// keeps compares for whom room is reserved: "gang on node".
func (s *promiseScene) keeps(want ...string) *promiseScene {
	s.t.Helper()
	got := []string{}
	for node, list := range s.r.Reservations().ByNode() {
		for _, x := range list {
			got = append(got, x.Owner.Gang.Name+" on "+node)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		s.t.Errorf("reserved (-want +got):\n%s", diff)
	}
	return s
}

func TestWhoIsPromisedRoom(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options func(*Options)
		gangs   []string
		want    []string // in this order
	}{
		"the first of a priority":             {gangs: []string{"a", "b"}, want: []string{"a"}},
		"of each priority, the highest first": {gangs: []string{"a", "b/x", "c/xx", "d/xx"}, want: []string{"c/xx", "b/x", "a"}},
		"no more than so many":                {gangs: []string{"a", "b/x", "c/xx", "d/xxx", "e/xxxx"}, want: []string{"e/xxxx", "d/xxx", "c/xx", "b/x"}},
		"two of a priority": {
			options: func(o *Options) { o.MaxReservations.OfPriority = 2 },
			gangs:   []string{"a", "b", "c"}, want: []string{"a", "b"},
		},
		"no more than so many of a namespace": {
			options: func(o *Options) { o.MaxReservations.OfNamespace, o.MaxReservations.OfPriority = 1, 4 },
			gangs:   []string{"a", "b", "other:c", "other:d"}, want: []string{"a", "other:c"},
		},
		"nobody": {options: func(o *Options) { o.ReservationAfter = 0 }, gangs: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPromiseScene(t, tc.options)
			s.arrive(tc.gangs...)
			s.now = s.now.Add(5*time.Minute - time.Duration(len(tc.gangs))*time.Second - time.Millisecond)
			s.ticks(0) // the first one has not waited for so long
			s.now = s.now.Add(10 * time.Second)
			for _, want := range tc.want {
				s.ticks(lineInterval, s.pod(want).Name)
				if !s.tries(want, s.on("n1", time.Time{}, 0)) {
					t.Fatalf("%s is promised nothing", want)
				}
			}
			s.ticks(lineInterval)
			for _, other := range tc.gangs {
				if !slices.Contains(tc.want, other) && s.tries(other, nil) {
					t.Errorf("%s is to be promised room", other)
				}
			}
		})
	}
}

func TestForWhomPromisedRoomIsReserved(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a", "b")
	ends := s.now.Add(time.Hour)
	s.now = s.now.Add(5 * time.Minute)
	s.tries("a", s.on("n1", ends, 0))
	list := s.r.Reservations().On("n1")
	if len(list) != 1 {
		t.Fatalf("%d reservations", len(list))
	}
	other := Key{Namespace: "ml", Name: "b"}
	for name, tc := range map[string]struct {
		asker reservations.Asker
		want  bool
	}{
		"another gang":                     {reservations.Asker{Gang: other}, true},
		"a higher priority":                {reservations.Asker{Gang: other, Priority: 1}, false},
		"its refill":                       {reservations.Asker{Gang: other, Refill: true}, false},
		"a pod":                            {reservations.Asker{}, true},
		"what ends before the gang starts": {reservations.Asker{Gang: other, Ends: ends}, false},
		"what ends afterwards":             {reservations.Asker{Gang: other, Ends: ends.Add(1)}, true},
		"the gang":                         {reservations.Asker{Gang: Key{Namespace: "ml", Name: "a"}}, false},
	} {
		if got := list[0].Restricts(tc.asker); got != tc.want {
			t.Errorf("%s: restricted %t, want %t", name, got, tc.want)
		}
	}
}

// TestAPromiseIsGivenUp: when nothing of it has become free for ReservationTimeout; then the next gang has its turn,
// and the first one again after that.
func TestAPromiseIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a", "b")
	s.now = s.now.Add(5 * time.Minute)
	s.ticks(0, "a")
	s.tries("a", s.on("n1", time.Time{}, 0, 1))
	s.keeps("a on n1")
	s.ticks(40 * time.Minute)
	s.running = s.running[:1] // a pod has ended
	s.r.RecordRoomGrowth()
	s.ticks(reviewInterval, "a")
	s.tries("a", keptPromise)
	s.ticks(time.Hour - time.Second).keeps("a on n1")
	s.ticks(time.Second).keeps()
	s.ticks(lineInterval, "b")
	s.tries("b", s.on("n2", time.Time{}, 0))
	s.keeps("b on n2")
	s.ticks(time.Hour, "a").keeps()
	if want := []PromiseEvent{PromiseMade, PromiseGivenUp, PromiseMade, PromiseGivenUp}; !slices.Equal(s.events, want) {
		t.Errorf("events %v, want %v", s.events, want)
	}
}

// TestAGangThatGaveUpWaits: it is promised no room for ReservationTimeout, also if no other gang waits for some.
// Editing it does not change when it gives up.
func TestAGangThatGaveUpWaits(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a")
	s.now = s.now.Add(5 * time.Minute)
	s.tries("a", s.on("n1", time.Time{}, 0))
	s.ticks(50 * time.Minute)
	s.apply(s.r.SetGroup(wrappers.MakePodGroup("a", "ml").UID("ml/a").Generation(2).MinMember(1).Obj(), s.now))
	s.woken = nil
	s.tries("a", s.on("n2", time.Time{}, 1))
	s.ticks(10*time.Minute - time.Second).keeps("a on n2")
	s.ticks(time.Second).keeps()
	s.ticks(time.Hour - time.Second)
	if s.tries("a", nil) {
		t.Error("it is to be promised room again at once")
	}
	s.ticks(time.Second)
	s.ticks(lineInterval, "a")
	if !s.tries("a", nil) {
		t.Error("it is not to be promised room again")
	}
}

// TestGangsThatGaveUpAreInLineAgain: each has its turn before one that gave up has another one.
func TestGangsThatGaveUpAreInLineAgain(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a", "b", "c")
	s.now = s.now.Add(5 * time.Minute)
	for _, next := range []string{"a", "b", "c", "a", "b"} {
		s.ticks(lineInterval, next)
		s.tries(next, s.on("n1", time.Time{}, 0))
		s.keeps(next + " on n1")
		s.now = s.now.Add(time.Hour - time.Second)
		s.apply(s.r.Tick(s.now)) // others are tried by now, in their turn
		s.woken = nil
		s.ticks(time.Second).keeps()
	}
}

// TestAKnownStartIsWaitedFor: as long as pods are to end as they promise, a gang does not give up its room, and from
// then on it has ReservationTimeout: they may end a little late.
func TestAKnownStartIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, reviewed := range map[string]bool{"": false, "an attempt finds that they are late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPromiseScene(t, nil).arrive("a")
			s.running[0].Spec.ActiveDeadlineSeconds = new(int64(10 * 3600))
			s.running[0].Status.StartTime = new(metav1.NewTime(s.now))
			starts := s.now.Add(10 * time.Hour)
			s.now = s.now.Add(5 * time.Minute)
			s.ticks(0, "a")
			s.tries("a", func(search *PromiseSearch) (*backfill.Promise, bool) {
				if !search.Pods[0].Ends.Equal(starts) || !search.Pods[1].Ends.IsZero() {
					t.Errorf("pods end at %v and %v, want %v and an unknown time", search.Pods[0].Ends, search.Pods[1].Ends, starts)
				}
				return s.on("n1", starts, 0)(search)
			})
			s.ticks(9 * time.Hour).keeps("a on n1")
			s.now = starts
			s.ticks(0).keeps("a on n1")
			if reviewed {
				s.now = s.now.Add(time.Minute)
				s.tries("a", keptPromise)
			}
			s.now = starts.Add(time.Hour - time.Second)
			s.ticks(0).keeps("a on n1")
			s.ticks(time.Second).keeps()
		})
	}
}

func TestWhatEndsAPromise(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end  func(s *promiseScene)
		want PromiseEvent
	}{
		"the gang is bound": {func(s *promiseScene) {
			bound := s.pod("a").DeepCopy()
			bound.Spec.NodeName = "n2"
			s.apply(s.r.SetPod(bound, s.now))
		}, PromisePlaced},
		"its pod is deleted":      {func(s *promiseScene) { s.apply(s.r.RemovePod(s.pod("a").UID, s.now)) }, PromiseCancelled},
		"its PodGroup is deleted": {func(s *promiseScene) { s.apply(s.r.RemoveGroup(Key{Namespace: "ml", Name: "a"}, s.now)) }, PromiseCancelled},
		"another PodGroup has its name": {func(s *promiseScene) {
			s.apply(s.r.SetGroup(wrappers.MakePodGroup("a", "ml").UID("other").MinMember(2).Obj(), s.now))
		}, PromiseCancelled},
		"it needs more pods than there are": {func(s *promiseScene) {
			s.apply(s.r.SetGroup(wrappers.MakePodGroup("a", "ml").UID("ml/a").Generation(2).MinMember(2).Obj(), s.now))
		}, PromiseCancelled},
		"it fits nowhere any more": {func(s *promiseScene) { s.tries("a", noPromise) }, PromiseUnfit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPromiseScene(t, nil).arrive("a", "b")
			s.now = s.now.Add(5 * time.Minute)
			s.tries("a", s.on("n1", time.Time{}, 0))
			s.keeps("a on n1")
			tc.end(s)
			s.keeps()
			if want := []PromiseEvent{PromiseMade, tc.want}; !slices.Equal(s.events, want) {
				t.Errorf("events %v, want %v", s.events, want)
			}
		})
	}
}

// TestANodeOfAPromiseChanges: the gang chooses again as soon as an attempt sees the node as it is, also if no room has
// become free. A node that is none of the promise, for example one that is back, changes nothing.
func TestANodeOfAPromiseChanges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(s *promiseScene)
		keeps  []string // until then
	}{
		"deleted":  {change: func(s *promiseScene) { s.r.RemoveNode("n1", s.now) }},
		"cordoned": {change: func(s *promiseScene) { s.r.RecordNodeChanged("n1", s.now) }, keeps: []string{"a on n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPromiseScene(t, nil).arrive("a", "b")
			s.now = s.now.Add(5 * time.Minute)
			s.tries("a", s.on("n1", time.Time{}, 0))
			tc.change(s)
			s.keeps(tc.keeps...)
			s.ticks(observedLate-1).ticks(1, "a")
			s.tries("a", func(search *PromiseSearch) (*backfill.Promise, bool) {
				if search.Held != nil {
					t.Error("it may keep what it has")
				}
				return s.on("n2", time.Time{}, 1)(search)
			})
			s.keeps("a on n2")
			s.r.RecordNodeChanged("n1", s.now)
			s.ticks(observedLate)
			s.tries("a", func(search *PromiseSearch) (*backfill.Promise, bool) {
				if search.Held == nil {
					t.Error("it chooses anew because of another node")
				}
				return nil, true
			})
			s.keeps("a on n2")
		})
	}
}

// TestAPromiseLosesItsNode: a gang that is promised room on which a gang of a higher priority is promised some, too,
// chooses again at once, and only once. The latter keeps what it has whatever the others choose.
func TestAPromiseLosesItsNode(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a")
	s.now = s.now.Add(5 * time.Minute)
	s.tries("a", s.on("n1", s.now.Add(time.Hour), 0))
	s.arrive("high/1").ticks(5*time.Minute, "high")
	s.tries("a", keptPromise) // its last attempt is as young as that of the other one
	s.tries("high/1", s.on("n1", time.Time{}, 0))
	s.keeps("a on n1", "high on n1").ticks(observedLate-1).ticks(1, "a")
	s.tries("a", func(search *PromiseSearch) (*backfill.Promise, bool) {
		if search.Held != nil {
			t.Error("it may keep what it has")
		}
		return s.on("n1", s.now.Add(time.Hour), 0)(search) // there is more room on the node
	})
	s.keeps("a on n1", "high on n1").ticks(observedLate)
	s.tries("high/1", s.on("n1", s.now.Add(time.Hour), 0)) // its start is known by now, its node is the same
	s.keeps("a on n1", "high on n1").ticks(observedLate)
}

// TestTheClockSteps: a clock that is set back, or forward by hours, ends no promise for which pods are to end, and
// makes none early.
func TestTheClockSteps(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a")
	s.ticks(-time.Hour).ticks(time.Hour)
	if s.tries("a", nil) {
		t.Error("it is to be promised room before it has waited for five minutes")
	}
	s.now = s.now.Add(5 * time.Minute)
	starts := s.now.Add(10 * time.Hour)
	s.tries("a", s.on("n1", starts, 0))
	s.ticks(-8 * time.Hour).keeps("a on n1")
	s.ticks(16 * time.Hour).keeps("a on n1")
	s.ticks(-8 * time.Hour).keeps("a on n1")
}

// TestWhatBecomesFreeElsewhere: if it is not known when a gang starts, it is tried first whenever room becomes free.
func TestWhatBecomesFreeElsewhere(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a", "b")
	s.now = s.now.Add(5 * time.Minute)
	s.ticks(0, "a")
	s.tries("a", s.on("n1", time.Time{}, 0))
	s.after(captureInterval)
	s.changes(nil).wants() // nothing has become free
	s.r.beginCall(s.now)
	s.r.RecordRoomGrowth()
	s.changes(nil).wants("a")
	s.tries("a", s.on("n2", time.Time{}, 1))
	s.keeps("a on n2")
	s.after(captureInterval / 2)
	s.r.beginCall(s.now)
	s.r.RecordRoomGrowth()
	s.changes(nil).wants() // a moment ago
}

// TestAttemptsForPromisesTakeNoTimeOfOthers: whatever they cost, gangs that were cut short go on within their own share
// of the loop.
func TestAttemptsForPromisesTakeNoTimeOfOthers(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a", "b")
	s.now = s.now.Add(5 * time.Minute)
	s.tries("a", s.on("n1", time.Time{}, 0))
	s.r.gangs[waitKey("a")].wait.Took = time.Second
	pod := s.pod("b")
	s.r.MayEnterQueue(pod)
	s.r.RecordPopped(pod.UID)
	w, why := s.r.BeginAttempt(pod)
	if w == nil {
		t.Fatal(why)
	}
	s.apply(s.r.RecordGangRefused(w.Gang, podgroup.Refusal{Reason: "cut"}, Wait{Needs: []Need{{&fakeShape{fits: 1}, 1}}, Took: time.Second, Again: s.now.Add(captureInterval)}, s.now))
	s.after(captureInterval)
	s.woken = nil
	s.r.beginCall(s.now)
	s.r.RecordRoomGrowth()
	s.changes(nil).wants("a", "b")
}

// TestPassingPodsOccupyTheirRoom: a pod that ends before a gang starts has its part of what is reserved for it.
func TestPassingPodsOccupyTheirRoom(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a", "b")
	s.now = s.now.Add(5 * time.Minute)
	starts := s.now.Add(time.Hour)
	s.tries("a", s.on("n1", starts))
	pod := wrappers.MakePod("plain", "ml").UID("plain").Obj()
	s.r.RecordPlainPodAssumed(pod, "n1", reservations.Asker{Ends: starts})
	rest := func() int64 {
		amount := s.r.Reservations().On("n1")[0].Rest(func(types.UID) bool { return true })
		return amount.Pods
	}
	if rest() != 0 {
		t.Error("the pod has no part of what is reserved")
	}
	s.tries("a", s.on("n1", starts)) // the room is reserved anew
	if rest() != 1 {
		t.Error("a pod has a part of what is reserved, and is on no node")
	}
}

// TestAnOverduePodHasNoPartOfWhatIsReserved: what a gang waits for ends as promised. A pod beside it that runs longer
// than it promised is not waited for, so it has none of the room that becomes free.
func TestAnOverduePodHasNoPartOfWhatIsReserved(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a")
	s.now = s.now.Add(5 * time.Minute)
	starts := s.now.Add(time.Hour)
	for i, runtime := range []int64{3600, 60} {
		s.running[i].Spec.NodeName = "n1"
		s.running[i].Spec.ActiveDeadlineSeconds = &runtime
	}
	s.running[0].Status.StartTime = new(metav1.NewTime(s.now))
	s.running[1].Status.StartTime = new(metav1.NewTime(s.now.Add(-time.Hour)))
	s.tries("a", s.on("n1", starts, 0))
	rest := s.r.Reservations().On("n1")[0].Rest(func(uid types.UID) bool { return uid == s.running[1].UID })
	if rest.Pods != 1 {
		t.Errorf("room for %d pods is kept when the pod has ended that the gang waits for, want 1", rest.Pods)
	}
}

// TestAGangWhoseMinimumRunsIsPromisedNothing: not for a torn sub-group above the minimum either, and it does not keep
// others from being promised room.
func TestAGangWhoseMinimumRunsIsPromisedNothing(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil)
	key := Key{Namespace: "ml", Name: "torn"}
	s.r.SetGroup(wrappers.MakePodGroup(key.Name, key.Namespace).UID("torn").MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 2).Obj(), s.now)
	member := func(name, leaf string) *wrappers.PodWrapper {
		return wrappers.MakePod(name, "ml").UID(name).Gang(key.Name).SubGroup(leaf)
	}
	waits := member("y1", "y").Obj()
	for _, pod := range []*corev1.Pod{member("x0", "x").Node("n1").Obj(), member("y0", "y").Node("n2").Obj(), waits} {
		s.apply(s.r.SetPod(pod, s.now))
	}
	s.now = s.now.Add(time.Second)
	s.arrive("b")
	s.now = s.now.Add(5 * time.Minute)
	s.r.MayEnterQueue(waits)
	s.r.RecordPopped(waits.UID)
	w, why := s.r.BeginAttempt(waits)
	if w == nil || w.Task != Refill {
		t.Fatalf("no attempt for the torn sub-group: %s", why)
	}
	if s.r.BeginPromise(w, s, s.now) != nil {
		t.Error("it is to be promised room")
	}
	s.apply(s.r.RecordGangRefused(w.Gang, podgroup.Refusal{Reason: "full"}, Wait{Needs: []Need{{&fakeShape{}, 1}}}, s.now))
	if !s.tries("b", nil) {
		t.Error("the gang behind it is not to be promised room")
	}
}

// TestAGangForWhichNoRoomIsChosenBlocksNobody: its attempts end before.
func TestAGangForWhichNoRoomIsChosenBlocksNobody(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a", "b")
	s.now = s.now.Add(5 * time.Minute)
	s.ticks(0, "a")
	pod := s.pod("a")
	refused := func(again time.Time, tried int) {
		s.r.MayEnterQueue(pod)
		s.r.RecordPopped(pod.UID)
		w, why := s.r.BeginAttempt(pod)
		if w == nil {
			t.Fatal(why)
		}
		s.apply(s.r.RecordGangRefused(w.Gang, podgroup.Refusal{Reason: "unknown"}, Wait{Needs: []Need{{&fakeShape{}, 1}}, Again: again, Progress: Progress{Tried: tried}}, s.now))
	}
	refused(s.now.Add(time.Second), 1) // it goes on
	s.ticks(lineInterval, "a")
	refused(time.Time{}, 0)
	s.ticks(lineInterval, "b")
	if !s.tries("b", nil) {
		t.Error("the gang behind it is not to be promised room")
	}
	s.ticks(unfitPause, "a")
	refused(s.now.Add(time.Hour), 0) // it begins again
	s.ticks(lineInterval, "b")
	if !s.tries("b", nil) {
		t.Error("the gang behind one whose search is cut short again and again is not to be promised room")
	}
}

// TestASearchForRoomThatIsCut: others have their turn, what an earlier process had promised is not forgotten, and the
// next search has more time.
func TestASearchForRoomThatIsCut(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil).arrive("a")
	since := s.now.Add(-time.Hour)
	group := wrappers.MakePodGroup("b", "ml").UID("ml/b").MinMember(1).Obj()
	group.Status.ReservedSince = new(metav1.NewTime(since))
	s.apply(s.r.SetPod(s.pod("b"), s.now))
	s.apply(s.r.SetGroup(group, s.now))
	s.now = s.now.Add(5 * time.Minute)
	for cuts := range 2 {
		if !s.tries("b", func(search *PromiseSearch) (*backfill.Promise, bool) {
			if search.Cuts != cuts {
				t.Errorf("%d searches were cut, want %d", search.Cuts, cuts)
			}
			return keptPromise(search)
		}) {
			t.Fatal("it is not to be promised room")
		}
		if facts, _ := s.r.Facts(Key{Namespace: "ml", Name: "b"}); facts.Promised == nil || !facts.Promised.Since.Equal(since) {
			t.Errorf("it says %+v", facts.Promised)
		}
		if !s.tries("a", nil) {
			t.Error("the other one has not its turn")
		}
		s.now = s.now.Add(unfitPause)
	}
}

// TestManyGangsOfTheSameAge: those that wait since the same second are promised room in the order of their names, and
// each attempt of the others is cheap while one of them is.
func TestManyGangsOfTheSameAge(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, func(o *Options) { o.ReservationTimeout = time.Hour })
	const gangs = 3000
	name := func(i int) string { return fmt.Sprintf("g-%04d", i) }
	for _, i := range rand.New(rand.NewSource(1)).Perm(gangs) {
		now := s.now
		s.arrive(name(i))
		s.now = now
	}
	s.now = s.now.Add(5 * time.Minute)
	for _, next := range []string{name(0), name(1), name(2)} {
		s.ticks(lineInterval, next)
		if s.tries(name(gangs-1), nil) {
			t.Error("the last one is to be promised room")
		}
		s.tries(next, s.on("n1", time.Time{}, 0))
		s.keeps(next + " on n1")
		s.now = s.now.Add(time.Hour - time.Second)
		s.apply(s.r.Tick(s.now))
		s.woken = nil
		s.ticks(time.Second).keeps()
	}
}

// TestAPromiseThatHasChangedIsChosenAnew: what is reserved is not what the gang needs any more.
func TestAPromiseThatHasChangedIsChosenAnew(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *promiseScene){
		"its plan has begun": func(s *promiseScene) {
			pod := s.pod("a")
			s.r.MayEnterQueue(pod)
			s.r.RecordPopped(pod.UID)
			w, why := s.r.BeginAttempt(pod)
			if w == nil {
				s.t.Fatal(why)
			}
			plan, why := s.r.CommitPlan(w, []placement.Placement{{Pod: placement.Pod{ID: string(pod.UID)}, Node: "n1"}}, s.now)
			if plan == nil {
				s.t.Fatal(why)
			}
			if err := s.r.AssumeMember(pod.UID, "n1", s.now); err != nil {
				s.t.Fatal(err)
			}
			s.apply(s.r.ReleaseMember(pod.UID, s.now))
		},
		"the gang was edited": func(s *promiseScene) {
			s.apply(s.r.SetGroup(wrappers.MakePodGroup("a", "ml").UID("ml/a").Generation(2).MinMember(1).Obj(), s.now))
		},
		"a node is gone": func(s *promiseScene) { s.r.RemoveNode("n1", s.now) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPromiseScene(t, nil).arrive("a")
			s.now = s.now.Add(5 * time.Minute)
			s.tries("a", s.on("n1", time.Time{}, 0))
			change(s)
			s.now = s.now.Add(time.Minute)
			s.apply(s.r.Tick(s.now))
			if !s.tries("a", func(search *PromiseSearch) (*backfill.Promise, bool) {
				if search.Held != nil {
					t.Error("it may keep what it has")
				}
				return s.on("n2", time.Time{}, 1)(search)
			}) {
				t.Fatal("it is promised nothing")
			}
			s.keeps("a on n2")
			if want := []PromiseEvent{PromiseMade}; !slices.Equal(s.events, want) {
				t.Errorf("events %v, want %v", s.events, want)
			}
		})
	}
}

// TestAGangThatGrowsReplacesNothing: pods that replace lost ones may use promised room, those that an edit requires may
// not.
func TestAGangThatGrowsReplacesNothing(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil)
	needs := func(pods int32) {
		s.apply(s.r.SetGroup(wrappers.MakePodGroup("g", "ml").UID("g").Generation(int64(pods)).MinMember(pods).Obj(), s.now))
	}
	member := func(i int) *wrappers.PodWrapper {
		name := fmt.Sprint("g-", i)
		return wrappers.MakePod(name, "ml").UID(name).Gang("g")
	}
	waits := member(2).Obj()
	asksAsRefill := func() bool {
		t.Helper()
		s.after(time.Minute)
		s.apply(s.r.Tick(s.now))
		leader := s.r.members[s.r.gangs[waitKey("g")].leader].pod
		s.r.MayEnterQueue(leader)
		s.r.RecordPopped(leader.UID)
		w, why := s.r.BeginAttempt(leader)
		if w == nil || w.Task != Refill {
			t.Fatalf("no attempt to refill the gang: %s", why)
		}
		s.apply(s.r.RecordGangRefused(w.Gang, podgroup.Refusal{Reason: "full"}, Wait{Needs: []Need{{&fakeShape{}, 1}}}, s.now))
		return w.Asker().Refill
	}
	needs(2)
	for i := range 2 {
		s.apply(s.r.SetPod(member(i).Node("n1").Obj(), s.now))
	}
	s.apply(s.r.SetPod(waits, s.now))
	s.apply(s.r.RemovePod(member(1).Obj().UID, s.now))
	s.after(time.Minute)
	if !asksAsRefill() {
		t.Error("a pod that replaces a lost one does not")
	}
	s.apply(s.r.SetPod(member(3).Obj(), s.now))
	needs(3)
	if asksAsRefill() {
		t.Error("pods that an edit requires do")
	}
	needs(2)
	if !asksAsRefill() {
		t.Error("a pod that replaces a lost one does not, after an edit that was undone")
	}
}

// TestReservationsAreTurnedOff: what an earlier process had promised is no longer told.
func TestReservationsAreTurnedOff(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, func(o *Options) { o.ReservationAfter = 0 })
	group := wrappers.MakePodGroup("a", "ml").UID("ml/a").MinMember(1).Obj()
	group.Status.ReservedSince = new(metav1.NewTime(s.now))
	s.apply(s.r.SetPod(s.pod("a"), s.now))
	s.apply(s.r.SetGroup(group, s.now))
	if facts, _ := s.r.Facts(Key{Namespace: "ml", Name: "a"}); facts.Promised != nil {
		t.Errorf("it says %+v", facts.Promised)
	}
}

// TestAPromiseSurvivesARestart: a gang to which an earlier process had promised room, as its status says, comes before
// others of its priority, and at once.
func TestAPromiseSurvivesARestart(t *testing.T) {
	t.Parallel()
	s := newPromiseScene(t, nil)
	s.arrive("a")
	since := s.now.Add(-time.Hour)
	group := wrappers.MakePodGroup("b", "ml").UID("ml/b").MinMember(1).Obj()
	group.Status.ReservedSince = new(metav1.NewTime(since))
	s.apply(s.r.SetPod(s.pod("b"), s.now))
	s.apply(s.r.SetGroup(group, s.now))
	reserved := func() *podgroup.Promised {
		facts, _ := s.r.Facts(Key{Namespace: "ml", Name: "b"})
		return facts.Promised
	}
	if diff := cmp.Diff(&podgroup.Promised{Since: since}, reserved()); diff != "" {
		t.Errorf("before its first attempt (-want +got):\n%s", diff)
	}
	if !s.tries("b", nil) {
		t.Error("it is not to be promised room at once")
	}
	s.woken = nil
	s.now = s.now.Add(6 * time.Minute)
	s.ticks(0, "b")
	if s.tries("a", nil) {
		t.Error("another gang is to be promised room before")
	}
	s.tries("b", s.on("n1", time.Time{}, 0))
	if diff := cmp.Diff(&podgroup.Promised{Since: since, Nodes: []string{"n1"}}, reserved()); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}
