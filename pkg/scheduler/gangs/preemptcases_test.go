// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/test/wrappers"
)

// boundOf returns the number of bound pods of a gang that do not end.
func (m *market) boundOf(key Key) int {
	n := 0
	for _, pod := range m.pods {
		if keyOf(pod) == key && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// endGang ends all pods of a gang for good.
func (m *market) endGang(key Key) {
	for _, uid := range sortedUIDs(m.pods) {
		if keyOf(m.pods[uid]) == key {
			delete(m.pods, uid)
			delete(m.ends, uid)
			m.room = nil
			m.apply(m.r.RemoveFailedPod(uid, m.now))
		}
	}
	m.apply(m.r.RetryWaiting([]Shape{m}, []Topic{Anything}, m.now))
}

// Pods above the minimum of a gang that runs end nobody; the same pods do when they are needed for the minimum
// (docs/decisions, G24).
func TestSurplusDoesNotPreempt(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	low, high := keyNamed("low"), keyNamed("high")
	m.createGang(low, 2, 2, 0)
	m.runFor(time.Second)
	m.createGang(high, 2, 4, 5)
	m.runFor(10 * time.Minute)
	if m.victims+m.searches > 0 || m.boundOf(high) != 2 {
		t.Fatalf("%d pods were evicted for surplus, after %d searches without a result; %d pods of the gang are bound", m.victims, m.searches, m.boundOf(high))
	}
	m.nodes["n0"]--
	m.evictPods(high, 0)
	m.runFor(time.Minute)
	if m.victims != 2 || m.boundOf(high) < 2 {
		t.Errorf("%d pods were evicted for the minimum, and %d of the gang are bound, want 2 and at least 2", m.victims, m.boundOf(high))
	}
}

// Room of pods that terminate already spares others: nobody ends if it is enough, and otherwise only who is needed
// beside it.
func TestRoomOfTerminatingPodsSparesOthers(t *testing.T) {
	t.Parallel()
	for pods, want := range map[int]int{2: 0, 3: 2, 4: 2} {
		m := newQuietMarket(t, 4)
		a, b, high := keyNamed("a"), keyNamed("b"), keyNamed("high")
		m.createGang(a, 2, 2, 0)
		m.createGang(b, 2, 2, 0)
		m.runFor(time.Second)
		m.evictPods(a, 15*time.Second)
		m.createGang(high, pods, pods, 5)
		m.runFor(time.Minute)
		if m.victims != want || m.boundOf(high) != pods || m.boundOf(b) != 2-want {
			t.Errorf("for a gang of %d: %d pods were evicted, want %d; %d of the gang are bound, and %d of the other one", pods, m.victims, want, m.boundOf(high), m.boundOf(b))
		}
	}
}

// Room of pods that may take longer to end than a victim is not waited for: others end.
func TestRoomOfPodsThatEndTooLateSparesNobody(t *testing.T) {
	t.Parallel()
	for ends, want := range map[time.Duration]int{time.Minute: 0, 6 * time.Minute: 2} {
		m := newQuietMarket(t, 4)
		m.r.opts.MaxVictimGrace = time.Minute
		a, b, high := keyNamed("a"), keyNamed("b"), keyNamed("high")
		m.createGang(a, 2, 2, 0)
		m.createGang(b, 2, 2, 0)
		m.runFor(time.Second)
		m.evictPods(a, ends)
		m.createGang(high, 2, 2, 5)
		m.runFor(2 * time.Minute)
		if m.victims != want || m.boundOf(high) != 2 || m.boundOf(b) != 2-want {
			t.Errorf("beside pods that end after %s: %d pods were evicted, want %d; %d of the gang are bound, and %d of the other one", ends, m.victims, want, m.boundOf(high), m.boundOf(b))
		}
	}
}

// A decision is made for two gangs of two pods. Before its victims are marked, or when they are, the cluster changes:
// only who is needed then ends.
func TestVictimsAreCheckedBeforeTheyEnd(t *testing.T) {
	t.Parallel()
	for _, stage := range []evictions.Stage{evictions.Decided, evictions.Marked} {
		t.Run(stage.String(), func(t *testing.T) { testVictimsAreChecked(t, stage) })
	}
}

func testVictimsAreChecked(t *testing.T, stage evictions.Stage) {
	t.Parallel()
	a, b, high := keyNamed("a"), keyNamed("b"), keyNamed("high")
	for name, tc := range map[string]struct {
		change  func(m *market)
		victims int
		starts  bool
	}{
		"nothing changes":                             {func(*market) {}, 4, true},
		"room comes for a part":                       {func(m *market) { m.nodes["n1"] = 2 }, 2, true},
		"room comes for a part that makes it no less": {func(m *market) { m.nodes["n1"] = 1 }, 4, true},
		"room comes for all":                          {func(m *market) { m.nodes["n1"] = 4 }, 0, true},
		"one of the gangs ends":                       {func(m *market) { m.endGang(a) }, 2, true},
		"the node has room for less than the gang":    {func(m *market) { m.nodes["n0"] = 3 }, 0, false},
		"the node is lost":                            {func(m *market) { delete(m.nodes, "n0") }, 0, false},
		"the gang needs less": {func(m *market) {
			m.editGroup(high, func(s *v2alpha2.PodGroupSpec) { s.MinMember = new(int32(2)) })
		}, 2, false},
		"the gang may not preempt any more": {func(m *market) {
			m.update("high.0005", func(p *corev1.Pod) { p.Spec.PreemptionPolicy = new(corev1.PreemptNever) })
		}, 0, false},
		"a gang of higher priority takes what is free": {func(m *market) { m.nodes["n0"] = 3; m.nodes["n1"] = 1; m.createGang(keyNamed("top"), 1, 1, 9) }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newQuietMarket(t, 4)
			m.createGang(a, 2, 2, 0)
			m.createGang(b, 2, 2, 0)
			m.runFor(time.Second)
			m.isHeld = func(p *podgroup.Preempting) bool { return p.Evicting == (stage == evictions.Marked) }
			m.createGang(high, 4, 4, 5)
			m.runFor(time.Second)
			if p := m.r.gangs[high].preemption; p == nil || p.Stage() != stage || len(p.Victims) != 4 {
				t.Fatalf("the decision is %+v", p)
			}
			chosen := m.r.gangs[high].preemption.Victims
			tc.change(m)
			m.room, m.isHeld = nil, nil
			m.dirty[high] = true
			m.runFor(time.Minute)
			g := m.r.gangs[high]
			if m.victims != tc.victims || m.boundOf(high) == 4 != tc.starts || g.preemption != nil {
				t.Errorf("%d pods were evicted, want %d; %d of the gang are bound; it preempts: %v", m.victims, tc.victims, m.boundOf(high), g.preemption)
			}
			if n := m.r.reserved.View().Len(); n > 0 {
				t.Errorf("%d reservations are left", n)
			}
			live := slices.DeleteFunc(slices.Clone(chosen), func(v evictions.Victim) bool { return m.pods[v.Pod.UID] == nil })
			if stage == evictions.Marked && m.unmarked < len(live) {
				t.Errorf("the marks of %d pods were taken back, want those of %d that did not end", m.unmarked, len(live))
			}
		})
	}
}

// The PriorityClass by which a gang was preempted is deleted before its pods end: it has the priority of its pods, and
// they stay.
func TestAPriorityClassIsDeletedBeforeItsPodsEnd(t *testing.T) {
	t.Parallel()
	m, low, high, classes := newQuietMarket(t, 4), keyNamed("low"), keyNamed("high"), map[string]int32{"bottom": 0}
	m.r.opts.Priority = func(class string) (int32, bool) { p, ok := classes[class]; return p, ok }
	m.createGang(low, 4, 4, 9, func(s *v2alpha2.PodGroupSpec) { s.PriorityClassName = "bottom" })
	m.runFor(time.Second)
	m.isHeld = func(p *podgroup.Preempting) bool { return p.Evicting }
	m.createGang(high, 4, 4, 5)
	m.runFor(time.Second)
	if p := m.r.gangs[high].preemption; p == nil || p.Stage() != evictions.Marked || len(p.Victims) != 4 {
		t.Fatalf("the decision is %+v", p)
	}
	delete(classes, "bottom")
	m.r.RecordPrioritiesChanged()
	m.isHeld, m.dirty[high] = nil, true
	if m.runFor(time.Minute); m.victims > 0 || m.unmarked != 4 || m.boundOf(low) != 4 || m.r.gangs[high].preemption != nil {
		t.Errorf("%d pods were evicted, the marks of %d were taken back, %d run", m.victims, m.unmarked, m.boundOf(low))
	}
}

// newFullMarket returns a market of two nodes with 4 pods each: of one gang of priority 0, then of one of priority 1.
func newFullMarket(t *testing.T, low, other Key) *market {
	t.Helper()
	m := newQuietMarket(t, 4)
	m.createGang(low, 4, 4, 0)
	m.runFor(time.Second)
	m.nodes["n1"], m.room = 4, nil
	m.createGang(other, 4, 4, 1)
	m.runFor(time.Second)
	return m
}

// A gang of higher priority takes the room that is kept for a preemptor, which decides anew (docs/decisions, G23).
func TestRoomOfAPreemptorIsTaken(t *testing.T) {
	t.Parallel()
	low, other, high, top := keyNamed("low"), keyNamed("other"), keyNamed("high"), keyNamed("top")
	m := newFullMarket(t, low, other)
	m.createGang(high, 4, 4, 5)
	m.runFor(500 * time.Millisecond)
	if m.victims != 4 || m.boundOf(low) != 0 || m.boundOf(high) != 0 {
		t.Fatalf("%d pods were evicted, %d of the lowest priority and %d of the preemptor are bound", m.victims, m.boundOf(low), m.boundOf(high))
	}
	m.createGang(top, 4, 4, 9)
	m.runFor(2 * time.Minute)
	if m.boundOf(top) != 4 || m.boundOf(high) != 4 || m.victims != 8 || m.overtaken[high.Name] != 1 || m.decisions[high.Name] != 2 {
		t.Errorf("bound are %d of the highest priority and %d of the first preemptor; %d pods were evicted; the first one was overtaken %d times and decided %d times",
			m.boundOf(top), m.boundOf(high), m.victims, m.overtaken[high.Name], m.decisions[high.Name])
	}
}

// A gang that lost pods, and preempts others to replace them, ends itself for one of higher priority: its evictions
// were not in vain for another reason, and it does not wait before it preempts again.
func TestAPreemptorIsPreempted(t *testing.T) {
	t.Parallel()
	low, high, top := keyNamed("low"), keyNamed("high"), keyNamed("top")
	m := newQuietMarket(t, 3)
	m.createGang(high, 3, 3, 5)
	m.runFor(time.Second)
	m.nodes["n0"], m.nodes["n1"], m.room = 2, 1, nil
	m.createGang(low, 1, 1, 0)
	for _, uid := range sortedUIDs(m.pods) {
		if keyOf(m.pods[uid]) == high {
			delete(m.pods, uid)
			m.apply(m.r.RemoveFailedPod(uid, m.now))
			break
		}
	}
	m.runFor(time.Second)
	m.createPod(high, 5)
	m.runFor(500 * time.Millisecond)
	if m.victims != 1 || m.boundOf(high) != 2 {
		t.Fatalf("%d pods were evicted, and %d of the preemptor are bound, want 1 and 2", m.victims, m.boundOf(high))
	}
	m.createGang(top, 2, 2, 9)
	m.runFor(time.Minute)
	if m.boundOf(top) != 2 || m.preempted[high.Name] != 1 || m.overtaken[high.Name] != 1 {
		t.Errorf("%d pods of the highest priority are bound; the first preemptor was preempted %d times and overtaken %d times",
			m.boundOf(top), m.preempted[high.Name], m.overtaken[high.Name])
	}
}

// The same, and the victims have ended, their room is taken, and the preemptor was refused, all before the requests to
// delete them are answered: it decides anew as soon as they are.
func TestRoomIsTakenBeforeTheEvictionsAreAnswered(t *testing.T) {
	t.Parallel()
	low, other, high, top := keyNamed("low"), keyNamed("other"), keyNamed("high"), keyNamed("top")
	m := newFullMarket(t, low, other)
	var unanswered *evictions.Eviction
	m.carryOut = func(e Effects) {
		for _, p := range e.Mark {
			m.apply(m.r.RecordMarked(p, nil, m.now))
		}
		for _, p := range e.Evict {
			if unanswered != nil {
				m.evict = append(m.evict, p)
				continue
			}
			unanswered = p
			for _, v := range p.Victims {
				m.ends[v.Pod.UID] = m.now
				m.update(v.Pod.UID, func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: m.now} })
			}
		}
	}
	m.createGang(high, 4, 4, 5)
	for range 10 {
		if unanswered == nil {
			m.step()
		}
	}
	if unanswered == nil || unanswered.Gang != high {
		t.Fatalf("the first evictions are %+v, want those of the preemptor", unanswered)
	}
	m.createGang(top, 4, 4, 9)
	m.runFor(time.Second)
	if m.boundOf(low) != 0 || m.boundOf(top) != 4 || m.boundOf(high) != 0 {
		t.Fatalf("bound are %d of the victims, %d of the highest priority, %d of the preemptor; want only those of the highest priority", m.boundOf(low), m.boundOf(top), m.boundOf(high))
	}
	m.apply(m.r.RecordEvicted(unanswered, nil, m.now))
	m.runFor(time.Second)
	if m.decisions[high.Name] != 1 || m.victims != 4 {
		t.Errorf("the preemptor has decided anew %d times, and %d more pods were evicted, want once, and 4", m.decisions[high.Name], m.victims)
	}
	m.runFor(time.Minute)
	if m.boundOf(high) != 4 {
		t.Errorf("%d pods of the preemptor are bound", m.boundOf(high))
	}
}

// A preemptor that is about to lose pods itself, and does not in the end, keeps the room that it has made.
func TestAPreemptorThatMayLosePodsKeepsItsRoom(t *testing.T) {
	t.Parallel()
	m, mid := refillingMarket(t), keyNamed("mid")
	m.runFor(500 * time.Millisecond)
	if m.victims != 2 || m.boundOf(mid) != 1 {
		t.Fatalf("%d pods were evicted for the refill, and %d of the gang are bound", m.victims, m.boundOf(mid))
	}
	p := m.preemptFor(mid, "top")
	m.updateRunning(mid)
	m.apply(m.r.RecordMarked(p, errors.New("a mark was refused"), m.now))
	m.runFor(time.Minute)
	if m.boundOf(mid) != 2 || m.victims != 2 {
		t.Errorf("%d of the gang are bound, want 2; %d pods were evicted, want 2", m.boundOf(mid), m.victims)
	}
}

// While victims are marked for a refill, it becomes unknown which pods the gang still has: nobody ends for it before
// this is known.
func TestNobodyEndsForAGangOfWhichPodsMayBeLost(t *testing.T) {
	t.Parallel()
	low, mid := keyNamed("low"), keyNamed("mid")
	for name, tc := range map[string]struct {
		lose    func(m *market) (last func()) // last: it is known then; nil: after a while
		victims int                           // in the end
	}{
		"its pods are deleted by force": {lose: func(m *market) func() {
			for _, uid := range sortedUIDs(m.pods) { // the bound one first
				if keyOf(m.pods[uid]) == mid {
					delete(m.pods, uid)
					m.room = nil
					m.apply(m.r.RemovePod(uid, m.now))
				}
			}
			return nil
		}},
		"its pod is about to be preempted, and is not": {victims: 2, lose: func(m *market) func() {
			p := m.preemptFor(mid, "top")
			return func() {
				m.apply(m.r.RecordMarked(p, errors.New("a mark was refused"), m.now))
			}
		}},
		"a pod comes that never preempts": {lose: func(m *market) func() {
			m.apply(m.r.SetPod(wrappers.MakePod("never", "ns").UID("never").Gang("mid").Priority(5).NeverPreempts().Obj(), m.now))
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := refillingMarket(t)
			m.isHeld = func(p *podgroup.Preempting) bool { return p.Evicting }
			m.runFor(500 * time.Millisecond)
			if p := m.r.gangs[mid].preemption; p == nil || p.Stage() != evictions.Marked {
				t.Fatalf("the preemption is %+v", p)
			}
			last := tc.lose(m)
			m.isHeld = nil
			m.dirty[mid] = true
			m.runFor(time.Second)
			if m.victims > 0 || m.unmarked != 2 || m.boundOf(low) != 2 {
				t.Errorf("%d pods were evicted, the marks of %d were taken back, want none and 2", m.victims, m.unmarked)
			}
			if last != nil {
				last()
			}
			if m.runFor(time.Minute); m.victims != tc.victims {
				t.Errorf("%d pods were evicted in the end, want %d", m.victims, tc.victims)
			}
		})
	}
}

// refillingMarket returns a full market in which the gang mid has lost one of two pods, and can replace it if the gang
// low ends.
func refillingMarket(t *testing.T) *market {
	m := newQuietMarket(t, 4)
	m.createGang(keyNamed("mid"), 2, 2, 5)
	m.createGang(keyNamed("low"), 2, 2, 0)
	m.runFor(time.Second)
	m.nodes["n0"] = 3
	m.endPod(keyNamed("mid"), nil)
	m.createPod(keyNamed("mid"), 5)
	return m
}

// preemptFor lets a pod without a gang, of the highest priority, begin to preempt all bound pods of a gang.
func (m *market) preemptFor(key Key, name string) *evictions.Eviction {
	m.t.Helper()
	var pods []*corev1.Pod
	for _, uid := range sortedUIDs(m.pods) {
		if pod := m.pods[uid]; keyOf(pod) == key && pod.Spec.NodeName != "" {
			pods = append(pods, pod)
		}
	}
	return decideForPod(m.r, name, 9, m.now, pods...)
}

// A gang that was preempted waits behind those that were complete before its pods were created again, and before those
// that came later (docs/decisions, G24).
func TestPlaceOfAVictimInTheQueue(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	victim, before, after, high := keyNamed("victim"), keyNamed("before"), keyNamed("after"), keyNamed("high")
	m.createGang(victim, 4, 4, 0)
	m.runFor(time.Second)
	m.createGang(before, 4, 4, 0)
	m.runFor(time.Minute)
	m.createGang(high, 4, 4, 5)
	m.runFor(time.Minute)
	m.createGang(after, 4, 4, 0)
	m.runFor(time.Minute)
	var order []string
	for running := high; ; {
		m.endGang(running)
		m.runFor(time.Minute)
		next := slices.IndexFunc([]Key{victim, before, after}, func(key Key) bool { return m.boundOf(key) == 4 })
		if next < 0 {
			break
		}
		running = []Key{victim, before, after}[next]
		order = append(order, running.Name)
	}
	if m.victims != 4 || !slices.Equal(order, []string{"before", "victim", "after"}) {
		t.Errorf("%d pods were evicted, and then the gangs start in the order %v", m.victims, order)
	}
}
