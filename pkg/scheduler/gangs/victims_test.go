// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/test/wrappers"
)

func on(node string, names ...string) (out []*wrappers.PodWrapper) {
	for _, n := range names {
		out = append(out, memberPod(n).Node(node))
	}
	return out
}

// decideForPod lets a pod without a gang begin to preempt pods. nil: they end for another.
func decideForPod(r *Registry, name string, priority int32, now time.Time, pods ...*corev1.Pod) *evictions.Eviction {
	w := &Work{Pod: wrappers.MakePod(name, testNamespace).UID(name).Priority(priority).Obj(), EvictionPriority: priority}
	victims := r.victimsOf(pods)
	for i := range victims {
		if r.members[pods[i].UID].isPlain() {
			victims[i].Gang = Key{}
		}
	}
	r.searching = w.Pod.UID
	node := pods[0].Spec.NodeName
	e, ok := r.RecordPodPreemption(w, Preempting{ID: name, Victims: victims, Placements: []placement.Placement{{Node: node}}}, now)
	if !ok {
		return nil
	}
	return e.Mark[0]
}

func (s *story) decideForPod(name string, priority int32, pods ...*corev1.Pod) *evictions.Eviction {
	return decideForPod(s.r, name, priority, s.now, pods...)
}

// endsForPod ends a pod of the gang for a pod without one.
func (s *story) endsForPod(by, victim string) {
	p := s.decideForPod(by, 100, s.r.members[types.UID(victim)].pod)
	s.r.RecordMarked(p, nil, s.now)
	s.r.RecordEvicted(p, nil, s.now)
}

func describePods(pods []*corev1.Pod) string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return strings.Join(names, "+")
}

// A gang whose pods were preempted is not planned before the end of each of them is observed: new pods could be bound
// beside none of the old ones. It is planned then, and if the rest cannot be deleted.
func TestAGangThatLosesPodsIsNotPlanned(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		left []types.UID           // victims that were given up
		last func(s *story)        // what is observed of b, the last victim
		held func(s *story) *story // what does not suffice; nil: nothing
	}{
		"its last pod terminates": {last: func(s *story) { s.terminates("b") }},
		"its last pod terminates late": {
			held: func(s *story) *story { return s.after(2 * time.Minute) },
			last: func(s *story) { s.terminates("b") },
		},
		"its last pod fails": {last: func(s *story) { s.effects = s.r.RemoveFailedPod("b", s.now) }},
		"its last pod is gone, and was not seen to terminate": {
			held: func(s *story) *story { return s.gone("b") },
			last: func(s *story) { s.after(departure) },
		},
		"its last pod was given up": {left: []types.UID{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(podGroup().MinMember(2)).pods(on("n", "a", "b")...)
			pods := []*corev1.Pod{s.r.members["a"].pod, s.r.members["b"].pod}
			p := s.decideForPod("high", 100, pods...)
			s.r.RecordMarked(p, nil, s.now)
			s.terminates("a").gone("a").members("c", "d")
			losesPods := func() bool { f, _ := s.r.Facts(gangG); return f.LosesPods }
			if !losesPods() || s.leader() != "" {
				t.Fatalf("b is about to be deleted: the gang is said to lose pods: %t; its leader is %q", losesPods(), s.leader())
			}
			s.effects = s.r.RecordEvicted(p, tc.left, s.now)
			if tc.last != nil {
				if tc.held != nil {
					tc.held(s)
				}
				if !losesPods() || s.leader() != "" {
					t.Fatalf("b was not seen to end: the gang is said to lose pods: %t; its leader is %q", losesPods(), s.leader())
				}
				tc.last(s)
			}
			if losesPods() || s.leader() != "c" {
				t.Errorf("the gang is said to lose pods: %t; its leader is %q, want c", losesPods(), s.leader())
			}
		})
	}
}

// While the victims of a pod without a gang are being marked, nothing is planned for their gangs, and no other pod
// takes them. If one of them cannot be marked, or a gang has changed, or the pod is gone, nobody ends, and the gangs
// are as before.
func TestVictimsOfAPodThatAreNotMarked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(s *story)
		err    error
		ends   bool
		gone   bool // the preemptor
	}{
		"a mark was refused": {change: func(*story) {}, err: errors.New("forbidden")},
		"the gang is protected": {change: func(s *story) {
			s.group(podGroup().MinMember(1).Spec(func(spec *v2alpha2.PodGroupSpec) { spec.Preemptibility = v2alpha2.NonPreemptible }))
		}},
		"the gang has grown":      {change: func(s *story) { s.pods(on("m", "d")...) }},
		"the preemptor is gone":   {change: func(s *story) { s.effects = s.r.RemovePod("high", s.now) }, gone: true},
		"the preemptor is ending": {change: func(s *story) { s.pods(wrappers.MakePod("high", testNamespace).UID("high").Terminating()) }, gone: true},
		"the preemptor runs":      {change: func(s *story) { s.pods(wrappers.MakePod("high", testNamespace).UID("high").Node("m")) }, gone: true},
		"none of this":            {change: func(*story) {}, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(podGroup().MinMember(2)).pods(on("n", "a", "b")...).members("c").leads("c")
			plain := wrappers.MakePod("plain", testNamespace).UID("plain").Node("n").Obj()
			pods := []*corev1.Pod{s.r.members["a"].pod, s.r.members["b"].pod, plain}
			p := s.decideForPod("high", 100, pods...)
			for i := range pods {
				if q := s.decideForPod("other", 200, pods[i]); q != nil {
					t.Errorf("another pod takes %s", pods[i].Name)
				}
			}
			rival := wrappers.MakePod("rival", testNamespace).UID("rival").Priority(200).Obj()
			c := s.r.Candidates(&Work{Pod: rival, EvictionPriority: 200}, RunningPods{Pods: pods, Amount: func(int) int64 { return 1 }}, false, s.now)
			if len(c.Workloads) > 0 || !c.Unsettled {
				t.Errorf("others may preempt %+v, for good: %t", c.Workloads, !c.Unsettled)
			}
			if _, state := s.r.gangs[gangG].nextTask(s.r.gangs[gangG].numbers.Profile()); state != idle {
				t.Error("c is planned meanwhile")
			}
			if plan, _ := s.tryCommit("c"); plan != nil {
				t.Error("a plan of c that was being made is put in force")
			}
			tc.change(s)
			e := s.r.RecordMarked(p, tc.err, s.now)
			if tc.ends {
				if !slices.Equal(e.Evict, []*evictions.Eviction{p}) || len(e.Unmark) > 0 {
					t.Errorf("%+v, want that all victims are deleted", e)
				}
				if g := s.r.gangs[gangG]; g.preempted == nil || g.preempted.By != "pod "+testNamespace+"/high" || !g.preempted.Whole {
					t.Errorf("the gang is told %+v", g.preempted)
				}
				return
			}
			if len(e.Evict) > 0 || !slices.Equal(e.Unmark, []*evictions.Eviction{p}) {
				t.Errorf("%+v, want that the marks are taken back", e)
			}
			if g := s.r.gangs[gangG]; g.victimOf != nil || len(g.departing) > 0 || len(s.r.plainVictims) > 0 {
				t.Errorf("the gang loses %v to %v, and %v ends", g.departing, g.victimOf, s.r.plainVictims)
			}
			if tc.err != nil && !tc.gone {
				if w, why, _, _ := s.r.BeginPodPreemption(p.Pod, s.now); w != nil || why != tc.err.Error() {
					t.Errorf("it may preempt at once: %t, %q", w != nil, why)
				}
			}
			s.after(firstHopeless)
			if isTried := slices.ContainsFunc(s.effects.Activate, func(pod *corev1.Pod) bool { return pod.UID == "high" }); isTried == tc.gone {
				t.Errorf("the preemptor is tried again: %t", isTried)
			}
		})
	}
}

// A pod that preempts does not preempt again before its victims have ended. If it does not fit then, it waits for a
// while.
func TestAPodThatPreempts(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.r.opts.PreemptionTimeout, s.r.resumed = 30*time.Second, false
	pod := wrappers.MakePod("high", testNamespace).UID("high").Priority(100).Obj()
	victims := func() (pods []*corev1.Pod) {
		for _, name := range []string{"a", "b"} {
			w := wrappers.MakePod(name, testNamespace).UID(name).Node("n")
			s.pods(w)
			pods = append(pods, w.Obj())
		}
		return pods
	}
	wantStep := func(when, want string) {
		t.Helper()
		if w, why, _, _ := s.r.BeginPodPreemption(pod, s.now); (w == nil) != (want != "") || !strings.Contains(why, want) {
			t.Errorf("%s: it may preempt: %t, %q, want %q", when, w != nil, why, want)
		}
	}
	wantTried := func(when string, want bool) {
		t.Helper()
		if tried := len(s.effects.Activate) > 0; tried != want {
			t.Errorf("%s: it is tried: %t", when, tried)
		}
	}
	running := victims()
	wantStep("in a new process", "not known yet")
	s.r.AbandonedEvictions(nil, s.now)
	s.after(retryInterval)
	wantTried("when the evictions of earlier processes are known", true)
	never := pod.DeepCopy()
	never.Spec.PreemptionPolicy = new(corev1.PreemptNever)
	if w, why, _, _ := s.r.BeginPodPreemption(never, s.now); w != nil || !strings.Contains(why, "preemptionPolicy") {
		t.Errorf("a pod that never preempts may: %q", why)
	}
	for round := range 3 {
		wantStep("before", "")
		p := s.decideForPod("high", 100, running...)
		wantStep("while they are being marked", "have ended")
		s.r.RecordMarked(p, nil, s.now)
		wantStep("while they are being deleted", "have ended")
		s.r.RecordEvicted(p, nil, s.now)
		wantStep("while they end", "have ended")
		s.r.RecordPlainPodGone("a")
		s.after(time.Second)
		wantTried("while one of them is left", false)
		s.r.RecordPlainPodGone("b")
		s.after(time.Millisecond)
		wantTried("when they have ended", true)
		wantStep("the end of the last one may not be seen yet", "have ended")
		s.after(observedLate)
		wantTried("a moment later", true)
		s.after(time.Minute)
		if s.r.preemptors["high"].eviction == nil {
			t.Error("it counts as preempted in vain before its turn in the queue has come")
		}
		if running = victims(); round == 0 {
			continue // whatever took the room may do so once
		}
		wantStep("it does not fit again", evictedInVain)
		s.after(wastedPause(round) - time.Second)
		wantStep("during the pause", evictedInVain)
		s.after(time.Second)
		wantTried("after the pause", true)
	}
	// One of them never ends.
	p := s.decideForPod("high", 100, running...)
	s.r.RecordMarked(p, nil, s.now)
	s.r.RecordEvicted(p, nil, s.now)
	s.after(p.Until().Sub(s.now))
	wantTried("it has given up, so that its nomination ends", true)
	wantStep("others, which may not end either, are spared for a time", evictedInVain)
	s.after(wastedPause(3))
	wantTried("after the pause", true)
	wantStep("it has paused", "")
	s.effects = s.r.RemovePod("high", s.now)
	if len(s.r.preemptors) > 0 {
		t.Error("it is remembered")
	}
}

// A victim without a gang that was not bound yet, and is in the queue again, is not waited for. If that was before the
// evictions begin, it does not end.
func TestAVictimThatWasNotBound(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.r.opts.PreemptionTimeout = 30 * time.Second
	a, b := wrappers.MakePod("a", testNamespace).UID("a").Node("n").Obj(), wrappers.MakePod("b", testNamespace).UID("b").Node("n").Obj()
	p := s.decideForPod("high", 100, a, b)
	s.r.RecordRequeued("b", s.now)
	s.r.RecordMarked(p, nil, s.now)
	if got := describePods(p.Pods()); got != "a" || len(p.Spared) != 1 || p.Spared[0].Pod != b {
		t.Errorf("%s ends, and %d are spared, want a and one", got, len(p.Spared))
	}
	s.r.RecordEvicted(p, nil, s.now)
	isTried := func() bool { return len(s.effects.Activate) > 0 }
	if s.after(time.Second); isTried() {
		t.Error("the preemptor is tried before its victim has left the node")
	}
	s.r.RecordRequeued("a", s.now)
	if s.after(time.Millisecond); !isTried() {
		t.Error("the preemptor is not tried when its victim is in the queue again")
	}
}

// The filters count the pods that are nominated for a node, and so a pod whose victim has ended may not fit there
// before the victims of others have ended, too. It has not preempted in vain, and searches for no other victims, until
// these have.
func TestAPodWaitsForTheVictimsOfOthersOnItsNode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		node     string // of the other pod
		priority int32
		ends     func(s *story, p *evictions.Eviction) // how it ends that the other one waits
		waits    bool
		tried    bool // at once, and once more
		later    bool // once
	}{
		"the other victim ends": {node: "n", priority: 100, waits: true, tried: true, ends: func(s *story, _ *evictions.Eviction) { s.r.RecordPlainPodGone("b") }},
		"the other pod is gone": {node: "n", priority: 100, waits: true, later: true, ends: func(s *story, _ *evictions.Eviction) { s.effects = s.r.RemovePod("other", s.now) }},
		"the other victim never ends": {
			node: "n", priority: 100, waits: true, later: true, ends: func(s *story, p *evictions.Eviction) { s.after(p.Until().Sub(s.now)) },
		},
		"the other pod is bound elsewhere": {node: "n", priority: 100, waits: true, later: true, ends: func(s *story, _ *evictions.Eviction) {
			s.pods(wrappers.MakePod("other", testNamespace).UID("other").Priority(100).Node("m"))
		}},
		"the other pod is on another node":    {node: "m", priority: 100},
		"the other pod has a lower priority":  {node: "n", priority: 99},
		"the other pod has a higher priority": {node: "n", priority: 101, waits: true, tried: true, ends: func(s *story, _ *evictions.Eviction) { s.r.RecordPlainPodGone("b") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			s.r.opts.PreemptionTimeout = 30 * time.Second
			preempts := func(name, victim, node string, priority int32) *evictions.Eviction {
				w := wrappers.MakePod(victim, testNamespace).UID(victim).Node(node)
				s.pods(w)
				p := s.decideForPod(name, priority, w.Obj())
				s.r.RecordMarked(p, nil, s.now)
				s.r.RecordEvicted(p, nil, s.now)
				return p
			}
			high := wrappers.MakePod("high", testNamespace).UID("high").Priority(100).Obj()
			waits := func() bool {
				w, _, _, _ := s.r.BeginPodPreemption(high, s.now)
				return w == nil && s.r.preemptors["high"].eviction != nil
			}
			isTried := func() bool {
				return slices.ContainsFunc(s.effects.Activate, func(pod *corev1.Pod) bool { return pod.Name == "high" })
			}
			preempts("high", "a", "n", 100)
			p := preempts("other", "b", tc.node, tc.priority)
			s.r.RecordPlainPodGone("a")
			s.after(0)
			if s.after(observedLate); !isTried() {
				t.Error("it is not tried when its victim has ended")
			}
			if s.after(5 * time.Second); waits() != tc.waits {
				t.Fatalf("it waits: %t", !tc.waits)
			}
			if !tc.waits {
				return
			}
			tc.ends(s, p)
			if s.after(0); isTried() != tc.tried {
				t.Errorf("it is tried at once: %t", isTried())
			}
			if s.after(observedLate); (tc.tried || tc.later) && !isTried() {
				t.Error("it is not tried when the end of the other victim, or of the other nomination, can be seen")
			}
			if waits() {
				t.Error("it still waits")
			}
		})
	}
}

// A pod that is deleted, or bound, or joins a gang while victims are searched for it ends nobody.
func TestAPodThatIsGoneEndsNobody(t *testing.T) {
	t.Parallel()
	high := func() *wrappers.PodWrapper {
		return wrappers.MakePod("high", testNamespace).UID("high").Priority(100)
	}
	for name, tc := range map[string]struct {
		change func(s *story)
		ends   bool
	}{
		"it is deleted":       {change: func(s *story) { s.r.RemovePod("high", s.now) }},
		"it is being deleted": {change: func(s *story) { s.pods(high().Terminating()) }},
		"it is bound":         {change: func(s *story) { s.pods(high().Node("m")) }},
		"it is of a gang":     {change: func(s *story) { s.group(podGroup().MinMember(2)).pods(high().Gang("g")) }},
		"another one is gone": {change: func(s *story) { s.r.RemovePod("other", s.now) }, ends: true},
		"it has a new label":  {change: func(s *story) { s.pods(high().Label("a", "b")) }, ends: true},
		"another search begins": {change: func(s *story) {
			s.r.BeginPodPreemption(wrappers.MakePod("x", testNamespace).UID("x").Priority(100).Obj(), s.now)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			victim := wrappers.MakePod("a", testNamespace).UID("a").Node("n")
			s.pods(victim)
			s.r.AbandonedEvictions(nil, s.now)
			w, why, _, _ := s.r.BeginPodPreemption(high().Obj(), s.now)
			if w == nil {
				t.Fatal(why)
			}
			tc.change(s)
			e, ok := s.r.RecordPodPreemption(w, Preempting{
				ID: "p", Victims: s.r.victimsOf([]*corev1.Pod{victim.Obj()}), Placements: []placement.Placement{{Node: "n"}},
			}, s.now)
			if ok != tc.ends || len(e.Mark) > 0 != tc.ends || len(s.r.plainVictims) > 0 != tc.ends || len(s.r.preemptors) > 0 != tc.ends {
				t.Errorf("it ends a pod: %t; %d marks, %d victims, %d preemptors", ok, len(e.Mark), len(s.r.plainVictims), len(s.r.preemptors))
			}
		})
	}
}

// Searches that are cut short have more and more time, and together no more than their share of the loop.
func TestSearchesForPodsThatAreCutShort(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.r.AbandonedEvictions(nil, s.now)
	s.pods(wrappers.MakePod("a", testNamespace).UID("a").Node("n"))
	const pods, took = 10, 200 * time.Millisecond
	spent, most, searches := time.Duration(0), 0, map[types.UID]int{}
	try := func(pod *corev1.Pod) {
		w, why, waits, _ := s.r.BeginPodPreemption(pod, s.now)
		if w == nil {
			if !waits || !strings.Contains(why, "took too long") {
				t.Fatalf("%s: %q, waits: %t", pod.Name, why, waits)
			}
			return
		}
		if w.Cuts != searches[pod.UID] {
			t.Errorf("%s: search %d has the time after %d cuts", pod.Name, searches[pod.UID], w.Cuts)
		}
		searches[pod.UID]++
		spent, most = spent+took, max(most, searches[pod.UID])
		s.r.RecordPodCut(w, took, s.now)
	}
	var list []*corev1.Pod
	for i := range pods {
		name := fmt.Sprintf("high-%d", i)
		list = append(list, wrappers.MakePod(name, testNamespace).UID(name).Priority(100).Obj())
		try(list[i])
	}
	start := s.now
	for first := spent; s.now.Sub(start) < 5*time.Minute; {
		s.after(time.Second)
		for _, pod := range s.effects.Activate {
			try(pod)
		}
		for _, pod := range list { // an event wakes them
			try(pod)
		}
		if share := s.now.Sub(start)/searchShare + took + maxSpent; spent-first > share {
			t.Fatalf("%s of %s were spent on searches", spent-first, s.now.Sub(start))
		}
	}
	if len(searches) < pods || most < 3 {
		t.Errorf("searches: %v, want several for each pod", searches)
	}
	s.r.RemovePod("high-0", s.now)
	if s.r.preemptors["high-0"] != nil {
		t.Error("a pod that is gone is remembered")
	}
}

// A pod without a gang ends no pod of the same or a higher priority with its gang, whatever the priority of the gang
// is.
func TestNoPodOfAHigherPriorityEndsForAPod(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2)).pods(memberPod("a").Node("n"), memberPod("b").Node("n").Priority(100))
	s.r.opts.MaxVictimGrace = time.Minute
	slow := wrappers.MakePod("slow", testNamespace).UID("slow").Node("n").Spec(func(p *corev1.PodSpec) { p.TerminationGracePeriodSeconds = new(int64(61)) }).Obj()
	running := RunningPods{Pods: []*corev1.Pod{s.r.members["a"].pod, s.r.members["b"].pod, slow}, Amount: func(int) int64 { return 1 }}
	for name, w := range map[string]*Work{
		"b+slow": {Pod: wrappers.MakePod("high", testNamespace).UID("high").Priority(100).Obj(), EvictionPriority: 100},
		"slow":   {Gang: gangG, EvictionPriority: 100},
	} {
		if w.Pod == nil {
			w.Gang.Name = "other"
			s.group(wrappers.MakePodGroup("other", testNamespace).UID("other").MinMember(1))
		}
		var kept []string
		for _, x := range s.r.Candidates(w, running, false, s.now).Workloads {
			for _, pod := range x.Pods {
				if pod.Kept {
					kept = append(kept, running.Pods[pod.ID].Name)
				}
			}
		}
		slices.Sort(kept)
		if got := strings.Join(kept, "+"); got != name {
			t.Errorf("%q are no victims, want %q", got, name)
		}
	}
}

// The informer handlers of the scheduler may be ahead of the registry's: the cycle of a pod sees a pod of a lower
// priority that was not observed yet. No event of the queue follows, so the registry lets the pod be tried again.
func TestAPodIsTriedWhenALowerPriorityIsObserved(t *testing.T) {
	t.Parallel()
	high := func() *wrappers.PodWrapper {
		return wrappers.MakePod("high", testNamespace).UID("high").Priority(100)
	}
	low := func(priority int32) *wrappers.PodWrapper {
		return wrappers.MakePod("low", testNamespace).UID("low").Priority(priority).Node("n")
	}
	for name, tc := range map[string]struct {
		then func(s *story)
		want bool
	}{
		"one is observed":           {then: func(s *story) { s.pods(low(0)) }, want: true},
		"a plain pod is bound":      {then: func(s *story) { s.pods(low(0).Node("")).pods(low(99)) }, want: true},
		"one that is not lower":     {then: func(s *story) { s.pods(low(100)) }},
		"it is deleted meanwhile":   {then: func(s *story) { s.gone("high").pods(low(0)) }},
		"it is bound meanwhile":     {then: func(s *story) { s.pods(high().Node("m"), low(0)) }},
		"it joins a gang meanwhile": {then: func(s *story) { s.pods(high().Gang("g"), low(0)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			if w, why, _, _ := s.r.BeginPodPreemption(high().Obj(), s.now); w != nil || why != "no pod on a node has a lower priority" {
				t.Fatalf("%v, %q", w, why)
			}
			tc.then(s.after(time.Second))
			s.after(0)
			if got := slices.ContainsFunc(s.effects.Activate, func(pod *corev1.Pod) bool { return pod.Name == "high" }); got != tc.want {
				t.Errorf("it is tried: %t", got)
			}
			if s.after(0); len(s.effects.Activate) > 0 {
				t.Error("it is tried once more")
			}
			if s.after(beneathMemory); len(s.r.beneath.pods) > 0 {
				t.Error("it is remembered")
			}
		})
	}
}
