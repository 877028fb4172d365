// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

func keyNamed(name string) Key { return Key{Namespace: "ns", Name: name} }

// newQuietMarket returns a market in which no gang arrives by itself, with one node.
func newQuietMarket(t *testing.T, capacity int) *market {
	m := newMarket(t, 1)
	clear(m.arrive)
	m.nodes = map[string]int{"n0": capacity}
	return m
}

// A gang with a preemptionDelay waits for so long since it became complete, then it preempts.
func TestPreemptionDelay(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	m.createGang(keyNamed("low"), 4, 4, 0)
	m.runFor(time.Second)
	m.createGang(keyNamed("high"), 2, 1, 5, func(s *v2alpha2.PodGroupSpec) { s.PreemptionDelay = &metav1.Duration{Duration: time.Minute} })
	m.runFor(2 * time.Minute)
	m.createPod(keyNamed("high"), 5) // it is complete now
	m.runFor(59 * time.Second)
	if m.victims > 0 {
		t.Fatal("pods were evicted before the delay was over")
	}
	m.runFor(3 * time.Second)
	if m.victims != 4 {
		t.Errorf("%d pods were evicted after the delay, want the gang of 4", m.victims)
	}
}

// Of three sub-groups two are needed. While pods of the gang arrive it ends nobody, since it may fit with the third
// one; when all sub-groups are there, or no pod came for a second, it does.
func TestNobodyEndsWhilePodsArrive(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		room    int // beside the gang of lower priority
		third   time.Duration
		victims []int // after half a second, 1.5 s and a minute
	}{
		"the third sub-group fits":         {room: 4, third: 100 * time.Millisecond, victims: []int{0, 0, 0}},
		"the third sub-group is no help":   {room: 2, third: 100 * time.Millisecond, victims: []int{4, 4, 4}},
		"the third sub-group never comes":  {room: 4, victims: []int{0, 4, 4}},
		"the third sub-group comes slowly": {room: 4, third: 900 * time.Millisecond, victims: []int{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newQuietMarket(t, 4+tc.room)
			m.createGang(keyNamed("low"), 4, 4, 0)
			m.runFor(time.Second)
			high := keyNamed("high")
			m.createGang(high, 2, 0, 5, func(s *v2alpha2.PodGroupSpec) {
				s.MinMember, s.MinSubGroup = nil, new(int32(2))
				s.SubGroups = []v2alpha2.SubGroup{{Name: "a", MinMember: new(int32(3))}, {Name: "b", MinMember: new(int32(3))}, {Name: "c", MinMember: new(int32(1))}}
			})
			for _, leaf := range []string{"a", "a", "a", "b", "b", "b"} {
				m.createMixedPod(high, mixedPod{leaf: leaf, priority: 5})
			}
			for i, d := range []time.Duration{500 * time.Millisecond, time.Second, time.Minute} {
				for ; d > 0; d -= 100 * time.Millisecond {
					if tc.third -= 100 * time.Millisecond; tc.third == 0 {
						m.createMixedPod(high, mixedPod{leaf: "c", priority: 5})
					}
					m.step()
				}
				if m.victims != tc.victims[i] {
					t.Errorf("%d pods were evicted by step %d, want %d", m.victims, i, tc.victims[i])
				}
			}
			if m.boundOf(high) < 4 {
				t.Errorf("%d pods of the gang are bound", m.boundOf(high))
			}
		})
	}
}

// A preemptionDelay begins again when pods of the gang are evicted, also if other pods, which have waited for longer,
// suffice for the minimum then, and if another process takes over meanwhile.
func TestPreemptionDelayAfterAnEviction(t *testing.T) {
	t.Parallel()
	low, high, top := keyNamed("low"), keyNamed("high"), keyNamed("top")
	delay := func(s *v2alpha2.PodGroupSpec) { s.PreemptionDelay = &metav1.Duration{Duration: time.Minute} }
	protect := func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.NonPreemptible }
	for name, tc := range map[string]struct {
		evict   func(m *market)
		restart bool
	}{
		"by a gang":                            {evict: func(m *market) { m.createGang(top, 2, 2, 9) }},
		"by a gang, before another process":    {evict: func(m *market) { m.createGang(top, 2, 2, 9) }, restart: true},
		"by others, as DisruptionTarget shows": {evict: func(m *market) { m.nodes["n0"] -= 2; m.evictPods(high, 10*time.Second) }},
		"by others, at once":                   {evict: func(m *market) { m.nodes["n0"] -= 2; m.evictPods(high, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newQuietMarket(t, 4)
			m.createGang(low, 2, 2, 0, protect)
			m.runFor(time.Second)
			m.createGang(high, 2, 4, 5, delay) // two of its pods wait from now on
			m.runFor(5 * time.Minute)
			tc.evict(m)
			m.runFor(40 * time.Second)
			before := m.victims
			if tc.restart {
				m = m.succeed()
				before = 0
			}
			m.editGroup(low, func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.Preemptible })
			m.runFor(19 * time.Second)
			if m.victims > before {
				t.Fatal("pods were evicted before the delay was over")
			}
			m.runFor(10 * time.Second)
			if m.victims != before+2 {
				t.Errorf("%d pods were evicted after the delay, want the gang of 2", m.victims-before)
			}
		})
	}
}

// evictPods evicts the bound pods of a gang by other means than preemption. They end after their grace period; 0:
// without being seen to terminate.
func (m *market) evictPods(key Key, grace time.Duration) {
	for _, uid := range sortedUIDs(m.pods) {
		if pod := m.pods[uid]; keyOf(pod) != key || pod.Spec.NodeName == "" {
			continue
		}
		m.update(uid, markEvicted)
		m.ends[uid] = m.now.Add(grace)
		if grace > 0 {
			m.update(uid, func(p *corev1.Pod) {
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: m.ends[uid]}, new(int64(grace/time.Second))
			})
		}
	}
}

func markEvicted(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"})
}

// succeed returns the same cluster with a new process.
func (m *market) succeed() *market {
	next := newQuietMarket(m.t, 0)
	next.now, next.start, next.nodes, next.serial = m.now, m.start, m.nodes, m.serial
	next.pods, next.groups, next.ends = m.pods, m.groups, m.ends
	for _, key := range sortedKeys(m.groups) {
		next.apply(next.r.SetGroup(m.groups[key], m.now))
	}
	for _, uid := range sortedUIDs(m.pods) {
		next.apply(next.r.SetPod(m.pods[uid], m.now))
	}
	next.r.SetLeading()
	return next
}

// Gangs for which preemption would not help do not use up the scheduling loop, however many there are and whatever
// changes.
func TestSearchesThatDoNotHelpHaveAShare(t *testing.T) {
	t.Parallel()
	const gangs = 40
	m := newQuietMarket(t, 4)
	m.searchTakes = 100 * time.Millisecond
	m.createGang(keyNamed("low"), 4, 4, 0)
	m.runFor(time.Second)
	for i := range gangs {
		m.createGang(keyNamed(fmt.Sprintf("large-%d", i)), 5, 5, 5)
	}
	m.runFor(30 * time.Second)
	before := m.searches
	if before < gangs {
		t.Fatalf("%d searches, want one for each of %d gangs", before, gangs)
	}
	for range 180 {
		m.r.RecordPreemptionMayHelp()
		m.runFor(time.Second)
	}
	spent := time.Duration(m.searches-before) * m.searchTakes
	t.Logf("%d searches at first, %d within three minutes afterwards, %s", before, m.searches-before, spent)
	if most := 3*time.Minute/searchShare + time.Second; spent > most {
		t.Errorf("searches took %s, more than their share of %s", spent, most)
	}
	if m.searches-before < gangs {
		t.Error("preemption is not tried again")
	}
	m.nodes["n1"] = 4 // now a gang would fit without the low one
	m.apply(m.r.RetryWaiting([]Shape{m}, []Topic{Anything}, m.now))
	m.runFor(2 * time.Minute)
	if m.victims != 4 {
		t.Errorf("%d pods were evicted, want 4: preemption helps now", m.victims)
	}
}

// A gang for which preemption would not help is searched victims for again when something has changed that may help,
// and at no other time.
func TestVictimsAreSearchedForAfterChangesThatMayHelp(t *testing.T) {
	t.Parallel()
	low, high, third := keyNamed("low"), keyNamed("high"), keyNamed("third")
	preemptibility := func(p v2alpha2.Preemptibility) func(*v2alpha2.PodGroupSpec) {
		return func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = p }
	}
	// Of five nodes' room, four pods of a gang that is protected use four. A gang of three waits.
	for name, tc := range map[string]struct {
		begin  func(m *market) // beside that
		change func(m *market)
		helps  bool
	}{
		"nothing": {change: func(*market) {}},
		"a node is added, which the backlog reports": {helps: true, change: func(m *market) {
			m.nodes["n1"], m.room = 1, nil
			m.r.RecordPreemptionMayHelp()
		}},
		"an event for which the gang waits": {helps: true, change: func(m *market) {
			m.apply(m.r.RetryWaiting(nil, []Topic{Anything}, m.now))
		}},
		"a gang is not protected any more": {helps: true, change: func(m *market) { m.editGroup(low, preemptibility(v2alpha2.Preemptible)) }},
		"the PodGroup of running pods is deleted": {helps: true, change: func(m *market) {
			delete(m.groups, low)
			m.apply(m.r.RemoveGroup(low, m.now))
		}},
		"the pod that gave a running gang its priority has succeeded": {helps: true,
			begin: func(m *market) { m.runMixedGang(third) },
			change: func(m *market) {
				m.updatePod(third, 9, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
				maps.DeleteFunc(m.pods, func(_ types.UID, p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
				m.room = nil
			}},
		"the pod that gave a running gang its priority terminates": {helps: true,
			begin: func(m *market) { m.runMixedGang(third) },
			change: func(m *market) {
				for uid, pod := range m.pods {
					if keyOf(pod) == third && count.PodPriority(pod) == 9 {
						m.ends[uid] = m.now.Add(20 * time.Second)
						m.update(uid, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: m.ends[uid]} })
					}
				}
			}},
		"a pod of lower priority than its running gang counts nowhere any more": {helps: true,
			begin: func(m *market) { m.runMixedGang(third) },
			change: func(m *market) {
				m.updatePod(third, 0, func(p *corev1.Pod) { p.Labels[v2alpha2.SubGroupLabel] = "other" })
			}},
		"a running pod of a higher priority joins a gang of a lower class": {helps: true,
			begin: func(m *market) {
				m.r.opts.Priority = func(string) (int32, bool) { return 0, true }
				m.createGang(third, 1, 0, 0, func(s *v2alpha2.PodGroupSpec) { s.PriorityClassName = "low" })
				m.pods["plain"] = wrappers.MakePod("plain", "ns").UID("plain").Priority(9).Node("n0").Obj()
			},
			change: func(m *market) {
				m.update("plain", func(p *corev1.Pod) { p.Annotations = map[string]string{v2alpha2.PodGroupAnnotation: third.Name} })
			}},
		"a gang whose minimum is protected has more than that": {helps: true,
			begin:  func(m *market) { m.editGroup(low, preemptibility(v2alpha2.SemiPreemptible)) },
			change: func(m *market) { m.createPod(low, 0) }},
		"a reservation ends": {helps: true,
			begin: func(m *market) {
				m.r.reserved.Reserve(reservations.Reservation{Owner: reservations.Owner{Gang: third}, Node: "n0", Priority: 9,
					Amount: reservations.Amount{Pods: 1}, Pod: &corev1.Pod{}}, m.now.Add(10*time.Minute), m.now)
				m.r.haveReserved.Store(true)
			},
			change: func(*market) {}},
		"the gang has another pod": {helps: true, change: func(m *market) { m.createPod(high, 5) }},

		"a pod of a protected gang ends": {helps: true, change: func(m *market) { m.endPod(low, nil) }},
		"a pod of a protected gang ends whose annotation was removed after it was bound": {helps: true, change: func(m *market) {
			m.endPod(low, func(p *corev1.Pod) {
				delete(p.Annotations, v2alpha2.PodGroupAnnotation)
				m.apply(m.r.SetPod(p, m.now))
			})
		}},
		"a protected gang ends, and its PodGroup is gone when this is reported": {helps: true,
			begin:  func(m *market) { m.createGang(third, 1, 1, 0, preemptibility(v2alpha2.NonPreemptible)) },
			change: func(m *market) { m.endGangUnseen(third) }},
		"a pod of the same priority ends": {helps: true,
			begin:  func(m *market) { m.editGroup(low, nil); m.createGang(third, 1, 1, 5) },
			change: func(m *market) { m.endPod(third, nil) }},
		"a pod ends that has a device": {helps: true,
			begin: func(m *market) { m.createGang(third, 1, 1, 0) },
			change: func(m *market) {
				m.endPod(third, func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} })
			}},
		"a pod ends that should have ended long ago": {helps: true,
			begin: func(m *market) { m.createGang(third, 1, 1, 0) },
			change: func(m *market) {
				m.endPod(third, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: m.now.Add(-time.Hour)} })
			}},
		"a pod ends that needs too long for a victim": {helps: true,
			begin:  func(m *market) { m.runSlowGang(third, 1) },
			change: func(m *market) { m.endPod(third, nil) }},
		"a pod ends that would have ended with one that needs too long for a victim": {helps: true,
			begin:  func(m *market) { m.runSlowGang(third, 2) },
			change: func(m *market) { m.endPod(third, nil) }},
		"a gang terminates of which a pod needs too long for a victim": {helps: true,
			begin:  func(m *market) { m.runSlowGang(third, 2) },
			change: func(m *market) { m.evictPods(third, 30*time.Minute) }},
		"a pod terminates that needs too long for a victim, and others of its gang do not": {helps: true,
			begin:  func(m *market) { m.runSlowGang(third, 2) },
			change: func(m *market) { m.evictSlowPod(third) }},
		"a terminating pod ends whose end was too far away": {helps: true,
			begin:  func(m *market) { m.createGang(third, 1, 1, 0); m.runFor(time.Second); m.evictPods(third, 2*time.Hour) },
			change: func(m *market) { m.endPod(third, nil) }},

		"a pod ends that could have been preempted": {
			begin:  func(m *market) { m.createGang(third, 1, 1, 0) },
			change: func(m *market) { m.endPod(third, nil) }},
		"a terminating pod ends": {
			begin: func(m *market) { m.createGang(third, 1, 1, 0) },
			change: func(m *market) {
				m.endPod(third, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: m.now} })
			}},
		"the PodGroup of running pods that could have been preempted is deleted": {
			begin: func(m *market) { m.createGang(third, 1, 1, 0) },
			change: func(m *market) {
				delete(m.groups, third)
				m.apply(m.r.RemoveGroup(third, m.now))
			}},
		"the PodGroup of running pods that could have been preempted is edited": {
			begin:  func(m *market) { m.createGang(third, 1, 1, 0) },
			change: func(m *market) { m.editGroup(third, func(s *v2alpha2.PodGroupSpec) { s.MinMember = new(int32(2)) }) }},
		"a gang that could have been preempted ends, and its PodGroup is gone when this is reported": {
			begin:  func(m *market) { m.createGang(third, 1, 1, 0) },
			change: func(m *market) { m.endGangUnseen(third) }},
		"a running gang lost a waiting pod of a higher priority": {
			begin: func(m *market) { m.createPod(low, 0); m.runFor(time.Second); m.createPod(low, 1) },
			change: func(m *market) {
				for uid, pod := range m.pods {
					if keyOf(pod) == low && pod.Spec.NodeName == "" {
						delete(m.pods, uid)
						m.apply(m.r.RemovePod(uid, m.now))
					}
				}
			}},
		"a gang starts":           {change: func(m *market) { m.createGang(third, 1, 1, 0) }},
		"another gang lacks pods": {change: func(m *market) { m.createGang(third, 2, 1, 0) }},
		"a pod becomes ready":     {change: func(m *market) { m.updateRunning(low) }},
		"a status was written":    {change: func(m *market) { m.editGroup(low, nil) }},
		"a gang without pods is edited": {
			begin:  func(m *market) { m.createGang(third, 1, 0, 0) },
			change: func(m *market) { m.editGroup(third, preemptibility(v2alpha2.NonPreemptible)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newQuietMarket(t, 5)
			m.r.opts.MaxVictimGrace = time.Hour
			m.createGang(low, 4, 4, 0, preemptibility(v2alpha2.NonPreemptible))
			m.runFor(time.Second)
			if tc.begin != nil {
				tc.begin(m)
			}
			m.createGang(high, 3, 3, 5)
			m.runFor(time.Second)
			if m.searches == 0 {
				t.Fatal("no victims were searched for")
			}
			m.runFor(5 * time.Minute) // after changes of the beginning
			before := m.searches
			m.runFor(10*time.Minute - m.now.Sub(m.start))
			if m.searches != before {
				t.Fatalf("%d searches while nothing changed", m.searches-before)
			}
			if g := m.r.gangs[high]; g.inTimers > 0 && !strings.HasPrefix(name, "a reservation") {
				t.Errorf("a timer runs until %s", g.due)
			}
			tc.change(m)
			m.runFor(15 * time.Second)
			if searched := m.searches > before || m.victims > 0; searched != tc.helps {
				t.Errorf("victims were searched for: %t, want %t", searched, tc.helps)
			}
			m.runFor(10 * time.Minute)
			if most := before + 1; m.searches > most && m.victims == 0 {
				t.Errorf("%d searches after one change", m.searches-before)
			}
		})
	}
}

// endGangUnseen ends the bound pods of a gang for good, and deletes its PodGroup before it is reported that their room
// is free.
func (m *market) endGangUnseen(key Key) {
	var ended []*corev1.Pod
	for _, uid := range sortedUIDs(m.pods) {
		if pod := m.pods[uid]; keyOf(pod) == key && pod.Spec.NodeName != "" {
			ended = append(ended, pod)
			delete(m.pods, uid)
			m.apply(m.r.RemoveFailedPod(uid, m.now))
		}
	}
	delete(m.groups, key)
	m.apply(m.r.RemoveGroup(key, m.now))
	m.room = nil
	m.r.RecordPodsEnded(ended, m.now)
}

// endPod ends a bound pod of a gang, changed before, for good.
func (m *market) endPod(key Key, change func(*corev1.Pod)) {
	for _, uid := range sortedUIDs(m.pods) {
		if pod := m.pods[uid]; keyOf(pod) == key && pod.Spec.NodeName != "" {
			if change != nil {
				pod = pod.DeepCopy()
				change(pod)
			}
			delete(m.pods, uid)
			m.room = nil
			m.apply(m.r.RemoveFailedPod(uid, m.now))
			m.r.RecordPodsEnded([]*corev1.Pod{pod}, m.now)
			return
		}
	}
	m.t.Fatalf("%s has no pod", key.Name)
}

// runMixedGang runs a gang of a pod of the priority 9, and one above the minimum of 0, on a node that is added.
func (m *market) runMixedGang(key Key) {
	m.nodes["n1"], m.room = 2, nil
	m.createGang(key, 1, 0, 0, func(s *v2alpha2.PodGroupSpec) {
		s.MinMember, s.SubGroups = nil, []v2alpha2.SubGroup{{Name: "leaf", MinMember: new(int32(1))}}
	})
	for _, priority := range []int32{9, 0} {
		m.createPod(key, priority)
		m.updatePod(key, priority, func(p *corev1.Pod) { p.Labels = map[string]string{v2alpha2.SubGroupLabel: "leaf"} })
	}
	m.runFor(time.Second)
	if m.boundOf(key) != 2 {
		m.t.Fatalf("%d pods of %s are bound", m.boundOf(key), key.Name)
	}
}

// runSlowGang runs a gang, in part on a node that is added, of which the last pod has a grace period of two hours.
func (m *market) runSlowGang(key Key, pods int) {
	m.nodes["n1"], m.room = pods-1, nil
	m.createGang(key, pods, pods, 0)
	m.runFor(time.Second)
	if m.boundOf(key) != pods {
		m.t.Fatalf("%d pods of %s are bound", m.boundOf(key), key.Name)
	}
	m.update(m.lastOf(key), func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(7200)) })
}

// evictSlowPod evicts the last pod of a gang. It does not end.
func (m *market) evictSlowPod(key Key) {
	m.update(m.lastOf(key), func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: m.now.Add(2 * time.Hour)}, p.Spec.TerminationGracePeriodSeconds
	})
}

// lastOf returns the last pod of a gang by UID.
func (m *market) lastOf(key Key) (last types.UID) {
	for _, uid := range sortedUIDs(m.pods) {
		if keyOf(m.pods[uid]) == key {
			last = uid
		}
	}
	return last
}

// updatePod changes the pod of a gang that has the priority.
func (m *market) updatePod(key Key, priority int32, edit func(*corev1.Pod)) {
	for uid, pod := range m.pods {
		if keyOf(pod) == key && *pod.Spec.Priority == priority {
			m.update(uid, edit)
		}
	}
}

// editGroup changes the spec of a PodGroup; nil: its status.
func (m *market) editGroup(key Key, edit func(*v2alpha2.PodGroupSpec)) {
	group := m.groups[key].DeepCopy()
	if edit != nil {
		edit(&group.Spec)
		group.Generation++
	}
	m.groups[key] = group
	m.apply(m.r.SetGroup(group, m.now))
}

// updateRunning changes the status of the bound pods of a gang.
func (m *market) updateRunning(key Key) {
	for _, uid := range sortedUIDs(m.pods) {
		if pod := m.pods[uid]; keyOf(pod) == key && pod.Spec.NodeName != "" {
			m.update(uid, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
		}
	}
}

// Without pods of a lower priority nothing is searched for, whatever changes; with the first one it is.
func TestNoSearchWithoutPodsOfLowerPriority(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 5)
	m.createGang(keyNamed("running"), 4, 4, 5)
	m.runFor(time.Second)
	m.createGang(keyNamed("waiting"), 6, 6, 5)
	for range 120 {
		m.r.RecordPreemptionMayHelp()
		m.runFor(time.Second)
	}
	if m.searches > 0 {
		t.Fatalf("%d searches for victims, and no pod has a lower priority", m.searches)
	}
	lower := keyNamed("lower")
	m.createGang(lower, 1, 1, 0)
	m.runFor(time.Minute)
	if m.searches == 0 {
		t.Error("no search for victims, although a pod has a lower priority now")
	}
	for uid, pod := range m.pods {
		if keyOf(pod) == lower {
			delete(m.pods, uid)
			m.apply(m.r.RemovePod(uid, m.now))
		}
	}
	m.r.RecordPreemptionMayHelp()
	m.runFor(2 * time.Minute)
	before := m.searches
	for range 120 {
		m.r.RecordPreemptionMayHelp()
		m.runFor(time.Second)
	}
	if m.searches > before+1 { // one finds out
		t.Errorf("%d searches for victims after the last pod of lower priority ended", m.searches-before)
	}
}

// A search that was cut short is repeated although there is no room for the gang, and nothing changes.
func TestCutSearchIsRepeated(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	m.createGang(keyNamed("low"), 4, 4, 0)
	m.runFor(time.Second)
	m.cuts = 2
	m.createGang(keyNamed("high"), 4, 4, 5)
	m.runFor(time.Minute)
	if m.cuts > 0 || m.victims != 4 {
		t.Errorf("%d searches are still to be cut short, and %d pods were evicted, want the gang of 4", m.cuts, m.victims)
	}
}

// The confirmation of a decision takes as much time as the decision.
func TestAConfirmationMayTakeAsLongAsTheDecision(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	m.slow = true
	m.createGang(keyNamed("low"), 4, 4, 0)
	m.runFor(time.Second)
	m.createGang(keyNamed("high"), 4, 4, 5)
	m.runFor(time.Minute)
	if m.victims != 4 {
		t.Errorf("%d pods were evicted, want the gang of 4", m.victims)
	}
}

// A gang without a PriorityClass has the highest priority of its pods. When the pod that has it ends, the others may be
// preempted.
func TestPriorityOfAGangFallsWithItsPods(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	mixed := keyNamed("mixed")
	m.createGang(mixed, 1, 3, 1)
	m.createPod(mixed, 5) // the fourth, which is the minimum
	m.runFor(time.Second)
	m.createGang(keyNamed("waiting"), 4, 4, 5)
	m.runFor(time.Minute)
	if m.victims > 0 {
		t.Fatalf("%d pods of the same priority were evicted", m.victims)
	}
	for uid, pod := range m.pods {
		if keyOf(pod) == mixed && count.PodPriority(pod) == 5 {
			delete(m.pods, uid)
			m.apply(m.r.RemovePod(uid, m.now))
		}
	}
	m.r.RecordPreemptionMayHelp()
	m.runFor(2 * time.Minute)
	if m.victims != 3 {
		t.Errorf("%d pods were evicted, want the other 3", m.victims)
	}
}

// Gangs for which preemption did not help are tried again in the order of the queue, also one that came after the
// others.
func TestHopelessGangsAreTriedAgainInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	m.searchTakes = 100 * time.Millisecond
	m.createGang(keyNamed("low"), 4, 4, 0)
	m.runFor(time.Second)
	for i := range 60 {
		m.createGang(keyNamed(fmt.Sprintf("large-%d", i)), 5, 5, 5)
	}
	m.runFor(3 * time.Minute)
	m.r.RecordPreemptionMayHelp()
	m.runFor(time.Second)
	m.createGang(keyNamed("first"), 5, 5, 9)
	m.runFor(10 * time.Second)
	m.nodes["n1"] = 1
	m.r.RecordPreemptionMayHelp()
	m.runFor(20 * time.Second)
	bound := 0
	for _, pod := range m.pods {
		if keyOf(pod) == keyNamed("first") && pod.Spec.NodeName != "" {
			bound++
		}
	}
	if m.victims != 4 || bound != 5 {
		t.Errorf("%d pods were evicted and %d bound, want 4 and 5 for the gang of the highest priority", m.victims, bound)
	}
}

// If other room becomes free when all victims are marked, nobody ends, and the marks are taken back.
func TestMarksAreTakenBackIfRoomBecomesFree(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	m.createGang(keyNamed("low"), 4, 4, 0)
	m.runFor(time.Second)
	m.isHeld = func(p *podgroup.Preempting) bool { return p.Evicting }
	m.createGang(keyNamed("high"), 4, 4, 5)
	m.runFor(2 * time.Second)
	p := m.r.gangs[keyNamed("high")].preemption
	if p == nil || p.Stage() != evictions.Marked {
		t.Fatalf("the victims are not marked: %+v", p)
	}
	m.nodes["n1"], m.room = 4, nil
	m.apply(m.r.RetryWaiting([]Shape{m}, []Topic{Anything}, m.now))
	m.runFor(2 * time.Second)
	if m.victims > 0 || m.unmarked != 4 || m.r.gangs[keyNamed("high")].preemption != nil {
		t.Errorf("%d pods were evicted, the marks of %d were taken back, want none and 4", m.victims, m.unmarked)
	}
}

// A gang that may not preempt because of one of its pods is tried again as soon as this pod does not count any more.
func TestAGangPreemptsWithoutThePodThatForbadeIt(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*corev1.Pod){
		"succeeded":   func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"terminating": func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newQuietMarket(t, 5)
			low, high := keyNamed("low"), keyNamed("high")
			m.createGang(low, 2, 2, 0)
			m.createGang(high, 3, 3, 5)
			m.runFor(time.Second)
			var bound []types.UID
			for _, uid := range sortedUIDs(m.pods) {
				if keyOf(m.pods[uid]) == high {
					bound = append(bound, uid)
				}
			}
			never, lost := bound[0], bound[1]
			m.update(never, func(p *corev1.Pod) { p.Spec.PreemptionPolicy = new(corev1.PreemptNever) })
			delete(m.pods, lost)
			m.apply(m.r.RemoveFailedPod(lost, m.now))
			m.nodes["n0"]--
			m.createPod(high, 5)
			m.createPod(high, 5)
			m.runFor(time.Minute)
			if m.victims > 0 {
				t.Fatal("the gang preempts, although one of its pods forbids it")
			}
			m.update(never, end)
			m.runFor(10 * time.Second)
			if m.victims != 2 {
				t.Errorf("%d pods were evicted, want the gang of 2", m.victims)
			}
		})
	}
}

// Facts say what keeps a refused gang from preempting: a pod, of several always the same one, or its class; or until
// when its delay does.
func TestFactsSayWhyAGangDoesNotPreempt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		delay     time.Duration
		never     []types.UID // pods whose policy it is, of high.0005 to high.0008
		forbidden string
		from      time.Duration // since the gang was complete; 0: there is no delay
	}{
		"it may": {},
		"pods forbid it": {
			never:     []types.UID{"high.0006", "high.0007", "high.0008"},
			forbidden: "pod high-6",
		},
		"a delay": {delay: time.Minute, from: time.Minute},
		"pods forbid it for longer than a delay": {
			delay:     time.Minute,
			never:     []types.UID{"high.0005"},
			forbidden: "pod high-5",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newQuietMarket(t, 4)
			key := keyNamed("high")
			m.createGang(keyNamed("low"), 4, 4, 0)
			m.runFor(time.Second)
			m.createGang(key, 4, 0, 5, func(s *v2alpha2.PodGroupSpec) {
				if tc.delay > 0 {
					s.PreemptionDelay = &metav1.Duration{Duration: tc.delay}
				}
			})
			complete := m.now
			for range 4 {
				m.createPod(key, 5)
			}
			for _, uid := range tc.never {
				m.update(uid, func(p *corev1.Pod) { p.Spec.PreemptionPolicy = new(corev1.PreemptNever) })
			}
			var from time.Time
			if tc.from > 0 {
				from = complete.Add(tc.from)
			}
			for range 3 {
				m.runFor(10 * time.Second)
				if f, _ := m.r.Facts(key); f.PreemptionForbiddenBy != tc.forbidden || !f.PreemptsFrom.Equal(from) {
					t.Fatalf("forbidden by %q, preempts from %v, want %q and %v", f.PreemptionForbiddenBy, f.PreemptsFrom, tc.forbidden, from)
				}
			}
			m.runFor(time.Minute)
			if f, _ := m.r.Facts(key); f.PreemptionForbiddenBy != tc.forbidden || !f.PreemptsFrom.IsZero() {
				t.Errorf("later: forbidden by %q, preempts from %v", f.PreemptionForbiddenBy, f.PreemptsFrom)
			}
		})
	}
}
