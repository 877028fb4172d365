// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/test/wrappers"
)

// mixedPod is a pod of a gang whose pods have different priorities.
type mixedPod struct {
	leaf     string
	priority int32
	is       string // "gated" by another controller, "nowhere": no node takes it, "stays": it waits for another scheduler, or "second": for our second profile; "": it can run
}

// createMixedGang creates a gang of two pods out of those, or with sub-groups of two of them, of one pod each.
func (m *market) createMixedGang(key Key, pods []mixedPod, change ...func(*v2alpha2.PodGroupSpec)) {
	var leaves []string
	for _, p := range pods {
		if p.leaf != "" && !slices.Contains(leaves, p.leaf) {
			leaves = append(leaves, p.leaf)
		}
	}
	m.createGang(key, 2, 0, 0, append(change, func(s *v2alpha2.PodGroupSpec) {
		if leaves != nil {
			s.MinMember, s.MinSubGroup = nil, new(int32(2))
		}
		for _, leaf := range leaves {
			s.SubGroups = append(s.SubGroups, v2alpha2.SubGroup{Name: leaf, MinMember: new(int32(1))})
		}
	})...)
	for _, p := range pods {
		m.createMixedPod(key, p)
	}
}

func (m *market) createMixedPod(key Key, p mixedPod) {
	m.serial++
	w := wrappers.MakePod(key.Name+"-"+p.is, key.Namespace).UID(key.Name + string(rune('a'+m.serial))).Gang(key.Name).CreationTimestamp(m.now).Priority(p.priority)
	if p.leaf != "" {
		w.SubGroup(p.leaf)
	}
	switch p.is {
	case "gated":
		w.SchedulingGate("example.com/later")
	case "nowhere":
		w.NodeSelector("no", "node")
	case "stays":
		w.SchedulerName("other")
	case "second":
		w.SchedulerName("second")
	}
	pod := w.Obj()
	m.pods[pod.UID], m.room = pod, nil
	m.apply(m.r.SetPod(pod, m.now))
}

// A gang preempts with the lowest priority among the pods that it starts with: no pod lends its priority to others
// (docs/decisions, G10).
func TestAGangPreemptsWithItsLowestPod(t *testing.T) {
	t.Parallel()
	class := func(name string) func(*v2alpha2.PodGroupSpec) {
		return func(s *v2alpha2.PodGroupSpec) { s.PriorityClassName = name }
	}
	for name, tc := range map[string]struct {
		pods   []mixedPod
		change []func(*v2alpha2.PodGroupSpec)
		ends   []int32 // priorities of the gangs of two pods that end, of 0, 50 and 500; nil: none, and the gang waits
	}{
		"all are high":                           {pods: []mixedPod{{"", 1000, ""}, {"", 1000, ""}}, ends: []int32{0}},
		"one is high":                            {pods: []mixedPod{{"", 1000, ""}, {"", 0, ""}}},
		"one is high, and no node takes it":      {pods: []mixedPod{{"", 1000, "nowhere"}, {"", 0, ""}, {"", 0, ""}}},
		"one is high, and gated":                 {pods: []mixedPod{{"", 1000, "gated"}, {"", 0, ""}, {"", 0, ""}}},
		"one is high, and is not ours":           {pods: []mixedPod{{"", 1000, "stays"}, {"", 0, ""}, {"", 0, ""}}},
		"one is high, the others less":           {pods: []mixedPod{{"", 1000, ""}, {"", 100, ""}, {"", 0, ""}}, ends: []int32{0}},
		"of two high ones no node takes one":     {pods: []mixedPod{{"", 1000, ""}, {"", 1000, "nowhere"}, {"", 100, ""}, {"", 0, ""}}, ends: []int32{0}},
		"a sub-group that is not needed is high": {pods: []mixedPod{{"a", 1000, ""}, {"b", 0, ""}, {"c", 0, ""}}},
		"one is high, of another profile":        {pods: []mixedPod{{"", 1000, "second"}, {"", 0, ""}, {"", 0, ""}}},
		"those of another profile are high":      {pods: []mixedPod{{"", 1000, "second"}, {"", 1000, "second"}, {"", 0, ""}, {"", 0, ""}}},
		"three schedulerNames":                   {pods: []mixedPod{{"", 1000, ""}, {"", 100, ""}, {"", 0, "second"}, {"", 0, "stays"}}, ends: []int32{0}},
		"five priorities":                        {pods: []mixedPod{{"", 1000, ""}, {"", 100, ""}, {"", 60, ""}, {"", 40, ""}, {"", 0, ""}}, ends: []int32{0}},
		"five, of which no node takes three":     {pods: []mixedPod{{"", 1000, "nowhere"}, {"", 900, "nowhere"}, {"", 800, "nowhere"}, {"", 40, ""}, {"", 0, ""}}},
		"two sub-groups are enough":              {pods: []mixedPod{{"a", 0, ""}, {"b", 100, ""}, {"c", 1000, ""}}, ends: []int32{0}},
		"no node takes a high sub-group":         {pods: []mixedPod{{"a", 1000, "nowhere"}, {"b", 100, ""}, {"c", 100, ""}}, ends: []int32{0}},
		"the class is lower than all pods":       {pods: []mixedPod{{"", 1000, ""}, {"", 900, ""}}, change: []func(*v2alpha2.PodGroupSpec){class("bottom")}},
		"the class is higher than one pod":       {pods: []mixedPod{{"", 1000, ""}, {"", 0, ""}}, change: []func(*v2alpha2.PodGroupSpec){class("top")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newQuietMarket(t, 6)
			m.r.AddProfile("second")
			m.r.opts.Priority = func(class string) (int32, bool) {
				return map[string]int32{"bottom": 0, "top": 1000}[class], class != ""
			}
			low, victims := map[int32]Key{0: keyNamed("low"), 50: keyNamed("middle"), 500: keyNamed("high")}, []int32(nil)
			for _, priority := range []int32{0, 50, 500} {
				m.createGang(low[priority], 2, 2, priority)
			}
			m.runFor(time.Second)
			m.createMixedGang(keyNamed("mixed"), tc.pods, tc.change...)
			m.runFor(time.Minute)
			for _, priority := range []int32{0, 50, 500} {
				if m.boundOf(low[priority]) == 0 {
					victims = append(victims, priority)
				}
			}
			if !slices.Equal(victims, tc.ends) || m.victims != 2*len(tc.ends) || m.boundOf(keyNamed("mixed")) != m.victims {
				t.Errorf("gangs of the priorities %v ended, want %v; %d pods were evicted, %d of the gang are bound", victims, tc.ends, m.victims, m.boundOf(keyNamed("mixed")))
			}
		})
	}
}

// A gang that has lost a pod replaces it with the lowest priority among those that run and the new one.
func TestARefillPreemptsWithThePodsThatRun(t *testing.T) {
	t.Parallel()
	for pods, want := range map[[3]int32]int{{1000, 0, 1000}: 0, {0, 1000, 0}: 0, {0, 1000, 1000}: 2} { // lost, left, and its replacement
		m := newQuietMarket(t, 4)
		mixed, other := keyNamed("mixed"), keyNamed("other")
		m.createMixedGang(mixed, []mixedPod{{"", pods[0], ""}, {"", pods[1], ""}})
		m.createGang(other, 2, 2, 500)
		m.runFor(time.Second)
		m.nodes["n0"] = 3
		m.endPod(mixed, nil)
		m.createPod(mixed, pods[2])
		m.runFor(time.Minute)
		if m.victims != want {
			t.Errorf("of the priorities %v, the first pod was lost, and the third replaces it: %d pods of priority 500 were evicted, want %d", pods, m.victims, want)
		}
	}
}

// A gang is protected by the lowest priority among the pods of its minimum that run.
func TestAGangIsProtectedByItsLowestPod(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pods []mixedPod
		ends bool // for a gang, or a pod, of priority 500
	}{
		"all are high":                           {pods: []mixedPod{{"", 1000, ""}, {"", 1000, ""}}},
		"one is high and waits":                  {pods: []mixedPod{{"", 1000, "nowhere"}, {"", 0, ""}, {"", 0, ""}}, ends: true},
		"one is high and gated":                  {pods: []mixedPod{{"", 1000, "gated"}, {"", 0, ""}, {"", 0, ""}}, ends: true},
		"one low pod is above the minimum":       {pods: []mixedPod{{"", 1000, ""}, {"", 1000, ""}, {"", 0, "gated"}}},
		"a sub-group that is not needed is high": {pods: []mixedPod{{"a", 1000, "nowhere"}, {"b", 0, ""}, {"c", 0, ""}}, ends: true},
	} {
		for _, byPod := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := newQuietMarket(t, 2)
				mixed := keyNamed("mixed")
				m.createMixedGang(mixed, tc.pods)
				m.runFor(time.Second)
				if m.boundOf(mixed) != 2 {
					t.Fatalf("%d pods are bound", m.boundOf(mixed))
				}
				if byPod {
					running := RunningPods{Amount: func(int) int64 { return 1 }}
					for _, uid := range sortedUIDs(m.pods) {
						if pod := m.pods[uid]; pod.Spec.NodeName != "" {
							running.Pods = append(running.Pods, pod)
						}
					}
					w := &Work{Pod: wrappers.MakePod("pod", "ns").UID("pod").Priority(500).Obj(), EvictionPriority: 500}
					if c := m.r.Candidates(w, running, false, m.now); len(c.Workloads) == 1 != tc.ends {
						t.Errorf("a pod may preempt %+v", c.Workloads)
					}
					return
				}
				m.createGang(keyNamed("other"), 2, 2, 500)
				m.runFor(time.Minute)
				if m.victims == 2 != tc.ends {
					t.Errorf("%d pods were evicted", m.victims)
				}
			})
		}
	}
}

// Pods above the minimum are protected by their own priority if it is lower than that of the gang: one pod of a high
// class does not protect a hundred of a low one.
func TestSurplusIsProtectedByItsOwnPriority(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		minimum int
		pods    []int32
		change  func(*v2alpha2.PodGroupSpec)
		needs   int // pods of priority 500
		victims int
	}{
		"one pod of a high class, and three above the minimum": {minimum: 1, pods: []int32{1000, 0, 0, 0}, needs: 3, victims: 3},
		"only what is needed":                                    {minimum: 1, pods: []int32{1000, 0, 0, 0}, needs: 2, victims: 2},
		"not the pod of the high class":                          {minimum: 1, pods: []int32{1000, 0, 0, 0}, needs: 4},
		"a low pod is needed for the minimum: all have its rank": {minimum: 2, pods: []int32{1000, 0, 0, 0}, needs: 4, victims: 4},
		"all are high":                                           {minimum: 1, pods: []int32{1000, 1000, 1000, 1000}, needs: 1},
		"some above the minimum are high":                        {minimum: 1, pods: []int32{1000, 1000, 1000, 0}, needs: 1, victims: 1},
		"semi-preemptible": {minimum: 1, pods: []int32{1000, 0, 0, 0}, needs: 3, victims: 3,
			change: func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.SemiPreemptible }},
		"non-preemptible": {minimum: 1, pods: []int32{1000, 0, 0, 0}, needs: 1,
			change: func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.NonPreemptible }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, mixed, other := newQuietMarket(t, 4), keyNamed("mixed"), keyNamed("other")
			m.createGang(mixed, tc.minimum, 0, 0, func(s *v2alpha2.PodGroupSpec) {
				if tc.change != nil {
					tc.change(s)
				}
			})
			for _, p := range tc.pods {
				m.createPod(mixed, p)
			}
			if m.runFor(5 * time.Second); m.boundOf(mixed) != 4 {
				t.Fatalf("%d pods are bound", m.boundOf(mixed))
			}
			m.createGang(other, tc.needs, tc.needs, 500)
			if m.runFor(time.Minute); m.victims != tc.victims || m.boundOf(mixed)+m.boundOf(other) != 4 {
				t.Errorf("%d pods were evicted, want %d; %d of the gang and %d of the preemptor are bound", m.victims, tc.victims, m.boundOf(mixed), m.boundOf(other))
			}
			says := ""
			if c := meta.FindStatusCondition(m.groups[mixed].Status.Conditions, v2alpha2.ConditionPreempted); c != nil {
				says = c.Message
			}
			if strings.Contains(says, " by ns/other (priority 500 over 0): ") != (tc.victims > 0) || strings.Contains(says, ", by its lowest priority") != (tc.victims > 0) {
				t.Errorf("the gang says %q", says)
			}
		})
	}
}

// A gang starts with the pods for which it has preempted others, also if a sub-group of a lower priority comes before
// them: these others would preempt it in turn, without end. If one of the pods is gone when the others have ended, it
// starts with those that it has.
func TestAGangStartsWithThePodsForWhichOthersEnded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		low            int  // pods of the sub-group of a lower priority
		gone           bool // a pod of the higher one is deleted while the others end
		victims, bound int
	}{
		"the first sub-group is as large":       {low: 2, victims: 2, bound: 2},
		"the first sub-group fits before":       {low: 1, victims: 2, bound: 2},
		"a pod of the higher priority vanishes": {low: 1, gone: true, victims: 2, bound: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newQuietMarket(t, 2)
			m.isExcused = func(*evictions.Eviction) bool { return tc.gone }
			other, mixed := keyNamed("other"), keyNamed("mixed")
			m.createGang(other, 2, 2, 5)
			m.runFor(time.Second)
			m.createGang(mixed, 1, 0, 0, func(s *v2alpha2.PodGroupSpec) {
				s.MinMember, s.MinSubGroup = nil, new(int32(1))
				s.SubGroups = []v2alpha2.SubGroup{{Name: "a", MinMember: new(int32(tc.low))}, {Name: "b", MinMember: new(int32(2))}}
			})
			for _, p := range []mixedPod{{"a", 1, ""}, {"b", 10, ""}, {"b", 10, ""}, {"a", 1, ""}}[:2+tc.low] {
				m.createMixedPod(mixed, p)
			}
			m.runFor(time.Second)
			if m.victims != 2 {
				t.Fatalf("%d pods were evicted", m.victims)
			}
			settles := 10 * time.Minute
			if tc.gone {
				settles = 20 * time.Second
				delete(m.groups, other) // its pods do not come back
				m.apply(m.r.RemoveGroup(other, m.now))
				delete(m.dirty, other)
				for _, uid := range sortedUIDs(m.pods) {
					if pod := m.pods[uid]; keyOf(pod) == mixed && count.PodPriority(pod) == 10 {
						delete(m.pods, uid)
						m.apply(m.r.RemovePod(uid, m.now))
						break
					}
				}
			}
			m.runFor(settles)
			if m.victims != tc.victims || m.boundOf(mixed) != tc.bound {
				t.Errorf("%d pods were evicted, %d pods of the gang are bound", m.victims, m.boundOf(mixed))
			}
		})
	}
}
