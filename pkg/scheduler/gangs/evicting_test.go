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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/test/wrappers"
)

// What a process does that finds the marks of a plan, with the gang low of five bound pods, of which it needs three.
func TestEvictionsOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	surplus, all := []int{3, 4}, []int{0, 1, 2, 3, 4}
	for name, tc := range map[string]struct {
		gone        []int // pods that do not exist any more
		terminating []int
		halfDeleted []int // terminating without a grace period, so that nothing but their deletion is left
		marked      []int
		witness     int // -1: none
		recorded    string
		evicts      []int
		unmarks     []int
		waits       bool // the preemptor waits for its room
	}{
		"a cancelled plan, and the gang has lost another pod": {
			gone: []int{0, 1, 2}, marked: surplus, witness: -1, unmarks: surplus,
		},
		"a cancelled plan, and a victim is terminating": {
			terminating: []int{3}, marked: all, witness: -1, unmarks: []int{0, 1, 2, 3, 4},
		},
		"a plan that was decided, and not confirmed": {
			gone: []int{0}, marked: all, witness: -1, recorded: "Decided", unmarks: []int{1, 2, 3, 4},
		},
		"another plan is recorded": {
			gone: []int{0}, marked: all, witness: -1, recorded: "other", unmarks: []int{1, 2, 3, 4},
		},
		"the preemptor is gone, and the evictions had begun": {
			gone: []int{0, 1}, marked: all, witness: 4, evicts: []int{2, 3, 4},
		},
		"the evictions were recorded, none had begun": {
			marked: all, witness: -1, recorded: "Evicting", unmarks: all,
		},
		"the evictions were recorded and had begun": {
			gone: []int{0}, marked: all, witness: 1, recorded: "Evicting", evicts: []int{1, 2, 3, 4}, waits: true,
		},
		"the evictions were recorded, one victim has its grace period, and the deletion of another was cut off": {
			terminating: []int{2}, halfDeleted: []int{3}, marked: all, witness: 1, recorded: "Evicting", evicts: []int{0, 1, 3, 4}, waits: true,
		},
		"the preemptor is gone, and a deletion was cut off": {
			gone: []int{0, 1}, halfDeleted: []int{3}, marked: all, witness: 4, evicts: []int{2, 3, 4},
		},
		"the evictions were recorded, none had begun, and what was surplus is needed": {
			gone: []int{0}, marked: surplus, witness: -1, recorded: "Evicting", unmarks: surplus,
		},
		"the evictions had begun, and what was surplus is needed": {
			gone: []int{0}, marked: surplus, witness: 3, recorded: "Evicting", evicts: surplus, waits: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := benchStart
			r := newBenchRegistry()
			high := wrappers.MakePodGroup("high", "ml").UID("high").Generation(1).MinMember(1).Obj()
			if tc.recorded != "" {
				about := podgroup.Preempting{Plan: "plan", Evicting: tc.recorded != "Decided", Gangs: 1, Pods: len(tc.marked)}
				if tc.recorded == "other" {
					about.Plan = "other"
				}
				high.Status = podgroup.Status(podgroup.Facts{Group: high, Preempting: &about}, metav1.NewTime(now))
				if plan, evicting, ok := podgroup.RecordedPreemption(&high.Status); !ok || plan != about.Plan || evicting != about.Evicting {
					t.Fatalf("the status records %q, %t, %t", plan, evicting, ok)
				}
			}
			r.SetGroup(high, now)
			r.SetPod(benchPod("high", 0).Priority(100).Obj(), now)
			low := wrappers.MakePodGroup("low", "ml").UID("low").Generation(1).MinMember(3).Obj()
			low.Status.Conditions = []metav1.Condition{{Type: v2alpha2.ConditionAdmitted, Status: metav1.ConditionTrue}}
			r.SetGroup(low, now)
			marked := map[string][]MarkedPod{}
			for i := range all {
				if slices.Contains(tc.gone, i) {
					continue
				}
				pod := benchPod("low", i).Node("n").Obj()
				switch grace := int64(30); {
				case slices.Contains(tc.halfDeleted, i):
					grace = 0
					fallthrough
				case slices.Contains(tc.terminating, i):
					pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: now}, &grace
				}
				r.SetPod(pod, now)
				if slices.Contains(tc.marked, i) {
					marked["plan"] = append(marked["plan"], MarkedPod{Pod: pod, Witness: i == tc.witness})
				}
			}
			r.SetSynced(now)
			r.SetLeading()
			var e Effects
			for _, x := range r.RecordedEvictions() {
				effects, ok := r.RestorePreemption(x.Gang, x.Plan, marked[x.Plan], now)
				if !ok {
					t.Errorf("nothing is restored for %v", x.Gang)
				}
				e.add(effects)
				delete(marked, x.Plan)
			}
			e.add(r.AbandonedEvictions(marked, now.Add(time.Second)))
			want := func(what string, got []*evictions.Eviction, want []int) {
				t.Helper()
				var names, wanted []string
				for _, p := range got {
					for _, v := range p.Victims {
						names = append(names, v.Pod.Name)
					}
				}
				for _, i := range want {
					wanted = append(wanted, fmt.Sprintf("low-%05d", i))
				}
				if slices.Sort(names); !slices.Equal(names, wanted) {
					t.Errorf("%s %v, want %v", what, names, wanted)
				}
			}
			if isVictim := r.gangs[Key{Namespace: "ml", Name: "low"}].victimOf != nil; isVictim != (len(tc.evicts) > 0) {
				t.Errorf("the gang is not planned, because it loses pods: %t", isVictim)
			}
			want("evicts", e.Evict, tc.evicts)
			want("takes back the marks of", e.Unmark, tc.unmarks)
			if waits := r.gangs[Key{Namespace: "ml", Name: "high"}].preemption != nil; waits != tc.waits {
				t.Errorf("the preemptor waits for its room: %t, want %t", waits, tc.waits)
			}
		})
	}
}

// What is said after a restart is about all pods that end, also those whose deletion an earlier process has requested.
func TestWhoEndsIsToldAfterARestart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		left   int // victims that are not terminating
		keeps  int // bound pods of the gang that are no victims
		victim evictions.Victim
		says   string
	}{
		"all deletions were requested":          {says: "1 gang (3 pods) of lower priority"},
		"one deletion was not requested":        {left: 1, victim: evictions.Victim{Pods: 3, Whole: true}, says: "1 gang (3 pods) of lower priority"},
		"one of pods above the minimum was not": {left: 1, keeps: 3, victim: evictions.Victim{Pods: 3}, says: "1 gang (3 pods) of lower priority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, grace, key := benchStart, int64(600), Key{Namespace: "ml", Name: "high"}
			r := newBenchRegistry()
			high := wrappers.MakePodGroup("high", "ml").UID("high").Generation(1).MinMember(1).Obj()
			high.Status = podgroup.Status(podgroup.Facts{Group: high, Preempting: &podgroup.Preempting{Plan: "plan", Evicting: true, Gangs: 1, Pods: 3}}, metav1.NewTime(now))
			r.SetGroup(high, now)
			r.SetPod(benchPod("high", 0).Priority(100).Obj(), now)
			r.SetGroup(wrappers.MakePodGroup("low", "ml").UID("low").Generation(1).MinMember(3).Obj(), now)
			var marked []MarkedPod
			for i := range 3 + tc.keeps {
				pod := benchPod("low", i).Node("n").Obj()
				if i >= tc.left && i < 3 {
					pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: now}, &grace
				}
				r.SetPod(pod, now)
				if i < 3 {
					marked = append(marked, MarkedPod{Pod: pod, Witness: i < tc.left})
				}
			}
			unbound := wrappers.MakePod("unbound", "ml").UID("unbound").Obj() // it waits again, since the earlier process is gone
			marked = append(marked, MarkedPod{Pod: unbound})
			r.SetSynced(now)
			r.SetLeading()
			e, ok := r.RestorePreemption(key, "plan", marked, now)
			if len(e.Unmark) != 1 || describePods(e.Unmark[0].Pods()) != "unbound" {
				t.Errorf("the marks of %+v are taken back, want that of the pod that was not bound", e.Unmark)
			}
			if !ok || len(e.Evict) != 1 || len(e.Evict[0].Victims) != tc.left {
				t.Fatalf("%+v, %t, want the deletion of %d pods", e, ok, tc.left)
			}
			for _, v := range e.Evict[0].Victims {
				if v.Pods != tc.victim.Pods || v.Whole != tc.victim.Whole {
					t.Errorf("%s is one of %d pods that the gang loses, all of them: %t; want %d, %t", v.Pod.Name, v.Pods, v.Whole, tc.victim.Pods, tc.victim.Whole)
				}
			}
			f, _ := r.Facts(key)
			status := podgroup.Status(f, metav1.NewTime(now))
			if c := meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionPreempting); c == nil || !strings.Contains(c.Message, tc.says) {
				t.Errorf("condition %+v, want %q", c, tc.says)
			}
			low := Key{Namespace: "ml", Name: "low"}
			told := func() *podgroup.Preempted {
				f, _ := r.Facts(low)
				return f.Preempted
			}
			want := podgroup.Preempted{At: now, By: "ml/high", Priority: 100, Pods: 3, Whole: tc.keeps == 0}
			if got := told(); got == nil || *got != want {
				t.Fatalf("the gang says that it lost %+v, want %+v", got, want)
			}
			if !slices.Contains(e.Dirty, low) {
				t.Errorf("%v are reported, want the gang that loses pods, too", e.Dirty)
			}
		})
	}
}

// What the status of a gang says of its loss already is not said anew by another process, with another time.
func TestALossIsToldOnce(t *testing.T) {
	t.Parallel()
	now, low := benchStart, Key{Namespace: "ml", Name: "low"}
	r := newBenchRegistry()
	high := wrappers.MakePodGroup("high", "ml").UID("high").Generation(1).MinMember(1).Obj()
	high.Status = podgroup.Status(podgroup.Facts{Group: high, Preempting: &podgroup.Preempting{Plan: "plan", Evicting: true, Gangs: 1, Pods: 1}}, metav1.NewTime(now))
	r.SetGroup(high, now)
	r.SetPod(benchPod("high", 0).Priority(100).Obj(), now)
	lost := wrappers.MakePodGroup("low", "ml").UID("low").Generation(1).MinMember(1).Obj()
	lost.Status = podgroup.Status(podgroup.Facts{Group: lost, Preempted: &podgroup.Preempted{At: now.Add(-time.Minute), By: "ml/high", Pods: 1, Whole: true}}, metav1.NewTime(now))
	r.SetGroup(lost, now)
	pod := benchPod("low", 0).Node("n").Obj()
	r.SetPod(pod, now)
	r.SetSynced(now)
	r.SetLeading()
	if _, ok := r.RestorePreemption(Key{Namespace: "ml", Name: "high"}, "plan", []MarkedPod{{Pod: pod, Witness: true}}, now); !ok {
		t.Fatal("the preemption is not restored")
	}
	if f, _ := r.Facts(low); f.Preempted != nil {
		t.Errorf("the gang says that it lost %+v, which its status says already", f.Preempted)
	}
	if podgroup.SaysPreemptedBy(&lost.Status, "ml/hi") || podgroup.SaysPreemptedBy(&lost.Status, "l/high") {
		t.Errorf("by whom is misread: %+v", lost.Status.Conditions)
	}
}

// A plan of a gang that an earlier process has begun to preempt was made before this was known: it is aborted. The
// marks of a preemption whose gang is gone are left to AbandonedEvictions.
func TestPlanOfAGangThatIsBeingPreemptedIsAborted(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(2).Generation(1).Condition(v2alpha2.ConditionAdmitted, metav1.ConditionTrue, "Admitted", "")).pods(on("n", "a")...).pods(memberPod("b"))
	s.leads("b").commits("b").assumes("b")
	high := Key{Namespace: testNamespace, Name: "high"}
	marked := []MarkedPod{{Pod: s.r.members["a"].pod, Witness: true}}
	if _, ok := s.r.RestorePreemption(high, "plan", marked, s.now); ok {
		t.Error("a preemption is restored for a gang that does not exist")
	}
	s.wantAborted(false)
	s.group(wrappers.MakePodGroup("high", testNamespace).UID("high").MinMember(1))
	if e, ok := s.r.RestorePreemption(high, "plan", marked, s.now); !ok || len(e.Evict) != 1 {
		t.Fatalf("%+v, %t", e, ok)
	}
	s.wantAborted(true)
}

// Evictions that an earlier process had begun for a gang of several priorities go on, although its PodGroup is invalid
// by now.
func TestEvictionsForAGangThatIsInvalidGoOn(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(1)).pods(on("n", "a")...)
	s.group(wrappers.MakePodGroup("high", testNamespace).UID("high").SubGroup("x", 1).SubGroup("x", 1))
	for name, priority := range map[string]int32{"b": 0, "c": 5} {
		s.pods(memberPod(name).Gang("high").Priority(priority))
	}
	key, marked := Key{Namespace: testNamespace, Name: "high"}, []MarkedPod{{Pod: s.r.members["a"].pod, Witness: true}}
	if e, ok := s.r.RestorePreemption(key, "plan", marked, s.now); !ok || len(e.Evict) != 1 || len(e.Evict[0].Victims) != 1 || s.r.gangs[key].treeErr == nil {
		t.Errorf("%+v, %t, the PodGroup is invalid: %v", e, ok, s.r.gangs[key].treeErr)
	}
}

// A victim without a gang needs an hour to end. Another gang that searches for victims meanwhile does not count on it
// before its deletion was accepted, and does not end it again; the preemptor waits for it all the time.
func TestAVictimWithoutAGangThatNeedsLong(t *testing.T) {
	t.Parallel()
	s := begin(t).group(podGroup().MinMember(1)).pods(memberPod("high").Priority(100))
	s.group(wrappers.MakePodGroup("other", testNamespace).UID("other").MinMember(1)).pods(wrappers.MakePod("rival", testNamespace).UID("rival").Gang("other").Priority(200))
	s.r.AbandonedEvictions(nil, s.now)
	plain := wrappers.MakePod("plain", testNamespace).UID("plain").Node("n").Spec(func(p *corev1.PodSpec) { p.TerminationGracePeriodSeconds = new(int64(3600)) }).Obj()
	other := wrappers.MakePod("later", testNamespace).UID("later").Node("n").Obj()
	running := RunningPods{Pods: []*corev1.Pod{plain, other}, Amount: func(int) int64 { return 1 }}
	g := s.r.gangs[gangG]
	p := &evictions.Eviction{ID: "plan", Gang: gangG, Group: g.group, Priority: 100, Timeout: s.r.opts.PreemptionTimeout, Victims: []evictions.Victim{{Pod: plain, Pods: 1, Whole: true}}}
	p.Begin(evictions.Announced, s.now)
	g.preemption = p
	s.r.plainVictims.Choose("plain", p)
	s.r.beginEvictionsFor(g)
	candidates := func() (workloads []string, ending int) {
		c := s.r.Candidates(&Work{Gang: Key{Namespace: testNamespace, Name: "other"}, EvictionPriority: 200}, running, false, s.now)
		for _, w := range c.Workloads {
			workloads = append(workloads, w.Name)
		}
		return workloads, len(c.Ending)
	}
	for _, passed := range []time.Duration{0, time.Minute} { // its deletion is refused so long
		s.after(passed)
		if workloads, ending := candidates(); !slices.Equal(workloads, []string{testNamespace + "/later"}) || ending != 0 {
			t.Errorf("after %s %v may be preempted, and %d pods end", passed, workloads, ending)
		}
		if s.decideForPod("pod", 200, plain) != nil {
			t.Errorf("after %s a pod preempts it", passed)
		}
	}
	s.r.RecordEvicted(p, nil, s.now)
	for _, passed := range []time.Duration{0, 50 * time.Minute} {
		s.after(passed)
		if workloads, ending := candidates(); len(workloads) != 1 || ending != 1 {
			t.Errorf("after %s %v may be preempted, and %d pods end, want the later pod and the victim", passed, workloads, ending)
		}
		s.r.plainVictims.Forget(s.now) // another preemption has ended
		if s.r.reviewRefused(g); g.preemption != p {
			t.Errorf("after %s the preemption has ended, and its victim has not", passed)
		}
	}
	s.r.RecordPlainPodGone("plain")
	if s.r.reviewRefused(g); g.preemption == p {
		t.Error("the victim has ended, and the gang does not fit: the preemption goes on")
	}
}

// A pod that had no PodGroup when it was decided that it ends, and counts in a gang now, does not end as one without a
// gang.
func TestAVictimThatJoinsAGang(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		group *wrappers.PodGroupWrapper
		want  bool
	}{
		"its PodGroup does not exist":   {nil, true},
		"its PodGroup exists by now":    {podGroup().MinMember(2), false},
		"it is misplaced in a PodGroup": {podGroup().SubGroup("x", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(wrappers.MakePodGroup("high", testNamespace).UID("high").MinMember(1)).pods(on("n", "a", "b")...).pods(
				wrappers.MakePod("h", testNamespace).UID("h").Gang("high").Priority(1000))
			if tc.group != nil {
				s.group(tc.group)
			}
			high := s.r.gangs[Key{Namespace: testNamespace, Name: "high"}]
			high.preemption = &evictions.Eviction{Priority: 1000, Victims: []evictions.Victim{{Pod: s.r.members["a"].pod, Pods: 1, Whole: true}}}
			if got := s.r.isStillAllowed(high.preemption); got != tc.want {
				t.Errorf("the pod may end: %t, want %t", got, tc.want)
			}
		})
	}
}

// A pod whose deletion is requested ends, whatever gang it counts in meanwhile: it is no victim of others, nobody
// counts on its room before its deletion was accepted, and nothing is planned for its gang before its end is observed.
// b is another victim of the same preemption, in gang h, and c a pod of gang g that waits.
func TestAVictimWhoseGangChanges(t *testing.T) {
	t.Parallel()
	plain := func() *wrappers.PodWrapper { return wrappers.MakePod("a", testNamespace).UID("a").Node("n") }
	inG := func() *wrappers.PodWrapper { return plain().Gang("g") }
	inX := func(generation int64) *wrappers.PodGroupWrapper {
		return podGroup().Generation(generation).SubGroup("x", 1)
	}
	for name, tc := range map[string]struct {
		group  *wrappers.PodGroupWrapper // nil: there is none when the pod is chosen
		pod    *wrappers.PodWrapper
		change func(s *story)
		counts bool // afterwards
	}{
		"nothing changes":                                   {podGroup().MinMember(1), inG(), func(*story) {}, true},
		"without a gang, nothing changes":                   {podGroup().MinMember(1), plain(), func(*story) {}, false},
		"its PodGroup is created":                           {nil, inG(), func(s *story) { s.group(podGroup().MinMember(1)) }, true},
		"its sub-group is created":                          {inX(1), inG().SubGroup("y"), func(s *story) { s.group(inX(2).SubGroup("y", 1).MinSubGroup(1)) }, true},
		"its label is corrected":                            {inX(1), inG().SubGroup("y"), func(s *story) { s.pods(inG().SubGroup("x")) }, true},
		"it names a PodGroup by now":                        {podGroup().MinMember(1), plain(), func(s *story) { s.pods(inG()) }, true},
		"it names a PodGroup by now, and counts in no leaf": {inX(1), plain(), func(s *story) { s.pods(inG()) }, false},
		"its PodGroup is deleted":                           {podGroup().MinMember(1), inG(), func(s *story) { s.r.RemoveGroup(gangG, s.now) }, false},
		"its PodGroup is created again": {podGroup().MinMember(1), inG(), func(s *story) {
			s.r.RemoveGroup(gangG, s.now)
			s.group(podGroup().UID("second").MinMember(1))
		}, true},
		"its sub-group is removed": {inX(1).SubGroup("y", 1).MinSubGroup(1), inG().SubGroup("y"), func(s *story) { s.group(inX(2)) }, false},
		"its label is removed":     {inX(1), inG().SubGroup("x"), func(s *story) { s.pods(inG()) }, false},
	} {
		for _, byPod := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, for a pod: %t", name, byPod), func(t *testing.T) {
				t.Parallel()
				s := begin(t).group(wrappers.MakePodGroup("h", testNamespace).UID("h").MinMember(1)).pods(wrappers.MakePod("b", testNamespace).UID("b").Gang("h").Node("m"))
				s.r.opts.PreemptionTimeout = 30 * time.Second
				for gang, priority := range map[string]int32{"high": 100, "other": 200} {
					s.group(wrappers.MakePodGroup(gang, testNamespace).UID(gang).MinMember(1)).pods(wrappers.MakePod("of-"+gang, testNamespace).UID("of-" + gang).Gang(gang).Priority(priority))
				}
				if tc.group != nil {
					s.group(tc.group)
				}
				s.pods(tc.pod, memberPod("c").SubGroup("x"))
				pods := []*corev1.Pod{tc.pod.Obj(), s.r.members["b"].pod}
				p := s.beginsToEvict(byPod, pods, func() {})
				tc.change(s)
				otherGang := &Work{Gang: keyNamed("other"), EvictionPriority: 200}
				otherGang.Gang.Namespace = testNamespace
				check := func(ending int) {
					t.Helper()
					c := s.r.Candidates(otherGang, RunningPods{Pods: pods, Amount: func(int) int64 { return 1 }}, false, s.now)
					if len(c.Workloads) > 0 || len(c.Ending) != ending || !c.Unsettled {
						t.Errorf("%+v may be preempted, and %d pods end, want that %d end", c.Workloads, len(c.Ending), ending)
					}
					checkScreening(t, s.r, otherGang, pods, &c, s.now)
					if s.decideForPod("pod", 200, pods[0]) != nil {
						t.Error("a pod preempts it")
					}
					f, _ := s.r.Facts(gangG)
					g := s.r.gangs[gangG]
					if _, state := g.nextTask(g.numbers.Profile()); tc.counts && (!f.LosesPods || state != idle || g.boundMembers() != 0) {
						t.Errorf("the gang is said to lose pods: %t, to plan: %t, to keep %d pods", f.LosesPods, state != idle, g.boundMembers())
					}
				}
				if byPod { // its nomination counts on the nodes
					check(2)
				} else {
					check(0)
				}
				s.r.RecordEvicted(p, nil, s.now)
				check(2)
				for _, pod := range pods { // it ends as its informer tells it, with its last annotations and labels
					if m := s.r.members[pod.UID]; m != nil {
						pod = m.pod.DeepCopy()
						pod.DeletionTimestamp = &metav1.Time{Time: s.now}
						s.r.SetPod(pod, s.now)
					} else {
						s.r.RecordPlainPodGone(pod.UID)
					}
					s.gone(string(pod.UID))
				}
				s.after(time.Second)
				if g := s.r.gangs[gangG]; len(s.r.plainVictims) > 0 || g.isLosingPods() || g.group != nil && s.leader() != "c" {
					t.Errorf("the pods have ended: %v and %v are remembered, victims of %v; the leader is %q", s.r.plainVictims, g.departing, g.victimOf, s.leader())
				}
			})
		}
	}
}

// beginsToEvict lets the deletion of the pods begin for gang high, or for a pod of its priority. before is called when
// they are marked.
func (s *story) beginsToEvict(byPod bool, pods []*corev1.Pod, before func()) *evictions.Eviction {
	s.t.Helper()
	if byPod {
		p := s.decideForPod("single", 100, pods...)
		before()
		s.r.RecordMarked(p, nil, s.now)
		return p
	}
	high := s.r.gangs[Key{Namespace: testNamespace, Name: "high"}]
	p := &evictions.Eviction{ID: "plan", Gang: high.key, Group: high.group, Priority: 100, Timeout: s.r.opts.PreemptionTimeout}
	for _, pod := range pods {
		v := evictions.Victim{Pod: pod, Pods: 1, Whole: true}
		if m := s.r.members[pod.UID]; m.isPlain() {
			s.r.plainVictims.Choose(pod.UID, p)
		} else {
			v.Gang, m.gang.victimOf = m.gang.key, p
		}
		p.Victims = append(p.Victims, v)
	}
	p.Begin(evictions.Announced, s.now)
	high.preemption = p
	before()
	s.r.beginEvictionsFor(high)
	return p
}

// The marks of a preemption that is given up while they are written are taken back.
func TestMarksThatFailAreTakenBack(t *testing.T) {
	t.Parallel()
	l := newLargePreemption(t, podsOfNode)
	var p *evictions.Eviction
	l.marks = func(marking *evictions.Eviction) error {
		p = marking
		return fmt.Errorf("a policy refuses one of them")
	}
	l.decide(PreemptDecide)
	if len(l.unmarked) != 1 || l.unmarked[0] != p || len(l.evictions) > 0 {
		t.Fatalf("marks of %v are taken back, evictions %v", l.unmarked, l.evictions)
	}
	if n := l.r.Reservations().Len(); n > 0 || l.r.gangs[keyOf(l.low[0])].victimOf != nil {
		t.Errorf("%d reservations are left, the other gang is a victim of %v", n, l.r.gangs[keyOf(l.low[0])].victimOf)
	}
}

// As long as marks are refused, the PodGroup says why nobody ends, and it is decided anew after a pause.
func TestMarksThatAreRefusedAreTold(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	m.createGang(keyNamed("low"), 4, 4, 0)
	m.runFor(time.Second)
	high, refused := keyNamed("high"), errors.New("a policy refuses it")
	var last time.Time
	pause, marked := firstHopeless/2, 0
	m.carryOut = func(e Effects) {
		for _, p := range e.Mark {
			if marked++; marked > 1 && (m.now.Sub(last) < pause || m.now.Sub(last) > pause+5*time.Second) {
				t.Errorf("they are marked again after %s, want %s", m.now.Sub(last), pause)
			}
			last, pause = m.now, min(2*pause, longestHopeless)
			m.apply(m.r.RecordMarked(p, refused, m.now))
		}
	}
	m.createGang(high, 4, 4, 5)
	for end := m.now.Add(5 * time.Minute); m.now.Before(end); m.step() {
		f, _ := m.r.Facts(high)
		if marked > 0 && f.Preempting == nil && f.MarksRefused != refused.Error() {
			t.Fatalf("%s after the marks the gang says %q", m.now.Sub(last), f.MarksRefused)
		}
	}
	if marked < 7 || m.victims > 0 {
		t.Errorf("it was decided %d times in 5 minutes, and %d pods were evicted", marked, m.victims)
	}
	m.carryOut = nil
	m.runFor(2 * time.Minute)
	if f, _ := m.r.Facts(high); m.boundOf(high) != 4 || f.MarksRefused != "" {
		t.Errorf("%d pods are bound when the marks are accepted, and the gang says %q", m.boundOf(high), f.MarksRefused)
	}
}

// A gang that could not mark its victims does not say so any more once no pod has a lower priority.
func TestMarksThatWereRefusedAreForgotten(t *testing.T) {
	t.Parallel()
	m := newQuietMarket(t, 4)
	m.createGang(keyNamed("low"), 4, 4, 0)
	m.runFor(time.Second)
	high := keyNamed("high")
	m.carryOut = func(e Effects) {
		for _, p := range e.Mark {
			m.apply(m.r.RecordMarked(p, errors.New("a policy refuses it"), m.now))
		}
	}
	m.createGang(high, 4, 4, 5)
	m.runFor(2 * time.Second)
	if f, _ := m.r.Facts(high); f.MarksRefused == "" {
		t.Fatal("no marks were refused")
	}
	m.createGang(keyNamed("higher"), 4, 4, 9)
	m.endGang(keyNamed("low"))
	m.runFor(2500 * time.Millisecond)
	m.createGang(keyNamed("other"), 4, 4, 7) // its search finds that no pod has a lower priority
	m.runFor(time.Minute)
	if f, _ := m.r.Facts(high); m.boundOf(keyNamed("higher")) != 4 || f.MarksRefused != "" {
		t.Errorf("%d pods of higher are bound, and high says %q", m.boundOf(keyNamed("higher")), f.MarksRefused)
	}
}

// A gang whose pods begin to end for a pod while a gang searches for victims is left to the pod, and the gang is tried
// again.
func TestVictimsThatEndForAPodMeanwhile(t *testing.T) {
	t.Parallel()
	for name, isDeleted := range map[string]bool{"they are being marked": false, "their deletion was accepted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLargePreemption(t, podsOfNode)
			low, high := keyOf(l.low[0]), keyOf(l.high[0])
			var p *evictions.Eviction
			evict := func() {
				if e := l.r.RecordMarked(p, nil, l.now); len(e.Evict) != 1 {
					t.Errorf("the pods are marked for the pod: %+v", e)
				}
				l.apply(l.r.RecordEvicted(p, nil, l.now))
			}
			l.meanwhile = func() {
				p = decideForPod(l.r, "pod", 200, l.now, l.low...)
				if isDeleted {
					evict()
				}
			}
			l.decide(PreemptDecide)
			if g := l.r.gangs[high]; g.preemption != nil || l.r.Reservations().Len() > 0 {
				t.Errorf("the gang preempts: %t, with %d reservations", g.preemption != nil, l.r.Reservations().Len())
			}
			if !isDeleted {
				if l.r.gangs[low].victimOf != p {
					t.Error("the pods do not end for the pod")
				}
				evict()
			}
			l.now = l.now.Add(2 * retryInterval)
			l.apply(l.r.Tick(l.now))
			if l.apply(l.r.RetryWaiting(nil, nil, l.now)); l.leader == nil {
				t.Error("the gang is not tried again")
			}
		})
	}
}

// A pod of a gang that ends while a gang searches for victims is not awaited: its end was observed.
func TestAVictimThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLargePreemption(t, podsOfNode)
	l.meanwhile = func() { l.apply(l.r.RemoveFailedPod(l.low[0].UID, l.now)) }
	l.decide(PreemptDecide)
	if p := l.r.gangs[keyOf(l.high[0])].preemption; p == nil || l.r.isEnding(l.low[0].UID) {
		t.Errorf("there is a decision: %t; the pod is awaited: %t", p != nil, l.r.isEnding(l.low[0].UID))
	}
}

// The last victim ends during an attempt, which did not see its room, or the cache hears of it last: the gang tries
// once more before its evictions count as in vain.
func TestTheLastVictimEndsDuringAnAttempt(t *testing.T) {
	t.Parallel()
	l := newLargePreemption(t, podsOfNode)
	outcomes := map[evictions.Outcome]int{}
	l.r.opts.PreemptionEnded = func(_ *evictions.Eviction, o evictions.Outcome) { outcomes[o]++ }
	l.decide(PreemptDecide)
	l.decide(PreemptConfirm)
	var work *Work
	calls := 0
	l.evict(func() {
		if calls++; calls == 4 {
			l.apply(l.r.RetryWaiting([]Shape{l}, []Topic{Anything}, l.now))
			work = l.attempt()
		}
	})
	if work == nil {
		t.Fatal("no attempt before the last victim ended")
	}
	until := l.r.gangs[work.Gang].preemption.Until()
	refuse := func() {
		uid := l.leader.UID
		l.leader = nil
		l.apply(l.r.RecordGangRefused(work.Gang, podgroup.Refusal{Reason: v2alpha2.ReasonInsufficientGPUs}, Wait{Topics: []Topic{Anything}, Until: until}, l.now))
		l.r.RecordCycleFailed(uid, l.now)
	}
	refuse()
	if l.r.gangs[work.Gang].preemption == nil || len(outcomes) > 0 {
		t.Fatalf("after an attempt that did not see all room: %v", outcomes)
	}
	l.now = l.now.Add(2 * retryInterval)
	l.apply(l.r.Tick(l.now))
	work = l.attempt()
	refuse()
	if l.r.gangs[work.Gang].preemption != nil || outcomes[evictions.Wasted] != 1 {
		t.Errorf("after one that saw it: %v", outcomes)
	}
	for i, d := range []time.Duration{wastedPause(1) - time.Millisecond, time.Millisecond} {
		l.now = l.now.Add(d)
		l.apply(l.r.Tick(l.now))
		if isTried := l.leader != nil; isTried != (i == 1) {
			t.Errorf("the gang is tried after the pause of %s, and not before: %d, %t", wastedPause(1), i, isTried)
		}
	}
}

// Victims without a gang whose deletion an earlier process had begun, for a preemptor that is gone: only the deletion
// that was cut off is completed.
func TestVictimsWithoutAGangOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	now := benchStart
	var marked []MarkedPod
	for name, grace := range map[string]int64{"live": -1, "graceful": 30, "cut": 0} {
		pod := wrappers.MakePod(name, "ml").UID(name).Node("n").Obj()
		if grace >= 0 {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: now}, &grace
		}
		marked = append(marked, MarkedPod{Pod: pod})
	}
	r := newBenchRegistry()
	r.SetSynced(now)
	e := r.AbandonedEvictions(map[string][]MarkedPod{"plan": marked}, now)
	if len(e.Evict) != 1 || len(e.Unmark) != 1 {
		t.Fatalf("effects %+v", e)
	}
	if got := describePods(e.Evict[0].Pods()); got != "cut" {
		t.Errorf("deletes %s, want cut", got)
	}
	if got := describePods(e.Unmark[0].Pods()); got != "graceful+live" {
		t.Errorf("takes back the marks of %s, want those of the others", got)
	}
}

// A victim that has succeeded before the deletions begin keeps its object, which tells that it did: its room is free
// already.
func TestAVictimThatSucceedsIsNotDeleted(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		byPod     bool
		succeed   int
		deletes   string
		terminate []string
	}{
		{byPod: false, succeed: 1, deletes: "b", terminate: []string{"b"}},
		{byPod: true, succeed: 1, deletes: "b", terminate: []string{"b"}},
		{byPod: false, succeed: 2},
		{byPod: true, succeed: 2},
	} {
		t.Run(fmt.Sprintf("for a pod: %t, %d succeed", tc.byPod, tc.succeed), func(t *testing.T) {
			t.Parallel()
			s := begin(t).group(podGroup().MinMember(2)).pods(on("n", "a", "b")...).group(wrappers.MakePodGroup("high", testNamespace).UID("high").MinMember(1)).
				pods(wrappers.MakePod("h", testNamespace).UID("h").Gang("high").Priority(100))
			pods := []*corev1.Pod{s.r.members["a"].pod, s.r.members["b"].pod}
			p := s.beginsToEvict(tc.byPod, pods, func() {
				for _, pod := range pods[:tc.succeed] {
					succeeded := pod.DeepCopy()
					succeeded.Status.Phase = corev1.PodSucceeded
					s.r.SetPod(succeeded, s.now)
				}
			})
			if got := describePods(p.Pods()); got != tc.deletes {
				t.Errorf("deletes %s, want %s", got, tc.deletes)
			}
			s.r.RecordEvicted(p, nil, s.now)
			s.terminates(tc.terminate...).gone(tc.terminate...)
			if g := s.r.gangs[gangG]; g.isLosingPods() {
				t.Errorf("%v are said to end", g.departing)
			}
		})
	}
}
