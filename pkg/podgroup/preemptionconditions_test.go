// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
)

// until is when victims should have ended.
var until = time.Date(2026, 3, 1, 10, 32, 5, 0, time.UTC)

func makesRoomFor3Gangs() *Preempting {
	return &Preempting{Plan: "7f-2", Gangs: 3, Pods: 12, Resource: "nvidia.com/gpu", Amount: 48, First: "train-a", Until: until}
}

func TestPreemptingCondition(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change          func(*Preempting)
		reason, message string
	}{
		"gangs, decided": {
			func(*Preempting) {}, "Decided",
			"makes room: 3 gangs (12 pods, 48 nvidia.com/gpu) of lower priority end by 10:32:05 UTC; first train-a; plan 7f-2",
		},
		"one gang, evicting": {
			func(p *Preempting) { p.Gangs, p.Pods, p.Evicting = 1, 1, true }, "Evicting",
			"makes room: 1 gang (1 pod, 48 nvidia.com/gpu) of lower priority ends by 10:32:05 UTC; first train-a; plan 7f-2",
		},
		"gangs and pods without a gang, of other namespaces": {
			func(p *Preempting) { p.Gangs, p.PlainPods, p.Pods, p.First = 2, 3, 15, "" }, "Decided",
			"makes room: 2 gangs and 3 pods without a gang (15 pods, 48 nvidia.com/gpu) of lower priority end by 10:32:05 UTC; plan 7f-2",
		},
		"only pods without a gang, which hold no extended resource": {
			func(p *Preempting) { *p = Preempting{Plan: "x", PlainPods: 1, Pods: 1} }, "Decided",
			"makes room: 1 pod without a gang of lower priority ends; plan x",
		},
		"a time in another zone": {
			func(p *Preempting) {
				*p = Preempting{Plan: "x", PlainPods: 2, Pods: 2, Until: until.In(time.FixedZone("CET", 3600))}
			}, "Decided",
			"makes room: 2 pods without a gang of lower priority end by 10:32:05 UTC; plan x",
		},
		"a pod that does not end": {
			func(p *Preempting) { p.Evicting, p.Stuck = true, "ml/train-a-3" }, "Evicting",
			"makes room: 3 gangs (12 pods, 48 nvidia.com/gpu) of lower priority end by 10:32:05 UTC; first train-a; pod ml/train-a-3 should have ended by now: see its finalizers, and whether its node is ready; plan 7f-2",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := makesRoomFor3Gangs()
			tc.change(p)
			want := metav1.Condition{Type: "Preempting", Status: metav1.ConditionTrue, Reason: tc.reason, Message: tc.message}
			if diff := cmp.Diff(want, preemptingCondition(p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is written is read back by a later process, whatever the names are.
func TestRecordedPreemptionIsReadBack(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	word := func(longest int) string {
		s := make([]byte, 1+r.IntN(longest))
		for i := range s {
			s[i] = byte('!' + r.IntN('~'-'!'+1))
		}
		return string(s)
	}
	for range 2000 {
		p := &Preempting{
			Plan: word(message.MaxName), Evicting: r.IntN(2) == 0, Gangs: r.IntN(3), PlainPods: r.IntN(3), Pods: r.IntN(20_000),
			First: word(message.MaxName), Stuck: strings.Repeat(word(message.MaxName)+"; plan ", r.IntN(8)),
		}
		c := preemptingCondition(p)
		if n := utf8.RuneCountInString(c.Message); n > message.MaxCondition {
			t.Fatalf("the message has %d characters: %q", n, c.Message)
		}
		plan, evicting, ok := RecordedPreemption(&v2alpha2.PodGroupStatus{Conditions: []metav1.Condition{c}})
		if !ok || plan != p.Plan || evicting != p.Evicting {
			t.Fatalf("%+v: read back %q, %t, %t from %q", p, plan, evicting, ok, c.Message)
		}
	}
}

func TestRecordedPreemptionOfOddConditions(t *testing.T) {
	t.Parallel()
	good := preemptingCondition(makesRoomFor3Gangs())
	tests := map[string]func(*metav1.Condition){
		"another type":           func(c *metav1.Condition) { c.Type = v2alpha2.ConditionPreempted },
		"it is over":             func(c *metav1.Condition) { c.Status = metav1.ConditionFalse },
		"no reason":              func(c *metav1.Condition) { c.Reason = "" },
		"an unknown reason":      func(c *metav1.Condition) { c.Reason = "Evicted" },
		"no message":             func(c *metav1.Condition) { c.Message = "" },
		"another message":        func(c *metav1.Condition) { c.Message = "preempts; plan 7f-2" },
		"no victims":             func(c *metav1.Condition) { c.Message = makesRoom + "; plan 7f-2" },
		"no plan":                func(c *metav1.Condition) { c.Message = makesRoom + "1 gang ends" },
		"an empty plan":          func(c *metav1.Condition) { c.Message = makesRoom + "1 gang ends; plan " },
		"a plan with a space":    func(c *metav1.Condition) { c.Message += " 8" },
		"a plan with a break":    func(c *metav1.Condition) { c.Message += "\n" },
		"a plan that was cut":    func(c *metav1.Condition) { c.Message = message.Truncate(c.Message, len(c.Message)-1) },
		"a further clause":       func(c *metav1.Condition) { c.Message += "; first train-b" },
		"bytes that are no text": func(c *metav1.Condition) { c.Message += "\xff" },
		"a plan that is too long": func(c *metav1.Condition) {
			c.Message += strings.Repeat("7", message.MaxName)
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := good
			change(&c)
			if plan, evicting, ok := RecordedPreemption(&v2alpha2.PodGroupStatus{Conditions: []metav1.Condition{c}}); ok || plan != "" || evicting {
				t.Errorf("read %q, %t, %t", plan, evicting, ok)
			}
		})
	}
	if _, _, ok := RecordedPreemption(nil); ok {
		t.Error("read a plan from no status")
	}
	if _, _, ok := RecordedPreemption(&v2alpha2.PodGroupStatus{}); ok {
		t.Error("read a plan from an empty status")
	}
}

func TestReasonOfAPreemptor(t *testing.T) {
	t.Parallel()
	refused := Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "the gang needs 8 nvidia.com/gpu for 8 pods, 2 are free"}
	held := Refusal{Reason: refused.Reason, Message: refused.Message + heldText("nvidia.com/gpu", Held{Lower: 48, Higher: 8})}
	room := "makes room: 3 gangs (12 pods, 48 nvidia.com/gpu) of lower priority end by 10:32:05 UTC; first train-a"
	eight := gang.Counts{"": 8}
	tests := map[string]struct {
		facts   Facts
		reason  v2alpha2.Reason
		message string
		summary string
	}{
		"its room comes before the refusal": {
			Facts{Created: eight, Usable: eight, Refused: refused, Preempting: makesRoomFor3Gangs(), Ahead: 3},
			v2alpha2.ReasonPreempting, room, "" + room,
		},
		"the plan that is being bound comes before the room": {
			Facts{Created: eight, Usable: eight, Binding: true, Preempting: makesRoomFor3Gangs()},
			v2alpha2.ReasonBinding, "needs 8 pods; all of them are planned and are being bound", "needs 8 pods; all of them are planned and are being bound",
		},
		"a pod that is missing comes before the room": {
			Facts{Created: gang.Counts{"": 7}, Usable: gang.Counts{"": 7}, Pods: 7, Preempting: makesRoomFor3Gangs()},
			v2alpha2.ReasonWaitingForPods, "needs 8 pods, 7 exist", "needs 8 pods, 7 exist",
		},
		"a refill makes room, too": {
			Facts{Created: eight, Usable: eight, Bound: gang.Counts{"": 6}, Admitted: true, Preempting: makesRoomFor3Gangs()},
			v2alpha2.ReasonPreempting, room, "" + room,
		},
		"what it loses comes after its room": {
			Facts{Created: eight, Usable: eight, Bound: gang.Counts{"": 6}, Admitted: true, Preempting: makesRoomFor3Gangs(), LosesPods: true},
			v2alpha2.ReasonPreempting, room, "" + room,
		},
		"pods of it are being preempted": {
			Facts{Created: eight, Usable: eight, Bound: gang.Counts{"": 1}, Admitted: true, LosesPods: true},
			v2alpha2.ReasonBehindInQueue, "needs 8 pods, they exist; it is tried again when its pods that are being preempted terminate",
			"needs 8 pods, they exist; it is tried again when its pods that are being preempted terminate",
		},
		"a pod forbids it": {
			Facts{Created: eight, Usable: eight, Refused: held, PreemptionForbiddenBy: "pod a-0", Ahead: 1},
			v2alpha2.ReasonInsufficientGPUs, held.Message + "; it does not preempt: pod a-0 has preemptionPolicy Never; 1 gang of its priority is ahead of it",
			"" + held.Message + "; it does not preempt: pod a-0 has preemptionPolicy Never; 1 gang of its priority is ahead of it",
		},
		"it waits for its delay": {
			Facts{Created: eight, Usable: eight, Refused: held, PreemptsFrom: time.Date(2026, 3, 1, 11, 32, 5, 9, time.FixedZone("", 3600))},
			v2alpha2.ReasonInsufficientGPUs, held.Message + "; it does not preempt before 2026-03-01 10:32:05 UTC (preemptionDelay)",
			"" + held.Message + "; it does not preempt before 2026-03-01 10:32:05 UTC (preemptionDelay)",
		},
		"room is in pieces, and it waits for its delay": {
			Facts{Created: eight, Usable: eight, Refused: Refusal{Reason: v2alpha2.ReasonFragmented, Message: "6 of 8 fit"}, PreemptsFrom: makesRoomFor3Gangs().Until},
			v2alpha2.ReasonFragmented, "6 of 8 fit; it does not preempt before 2026-03-01 10:32:05 UTC (preemptionDelay)",
			"6 of 8 fit; it does not preempt before 2026-03-01 10:32:05 UTC (preemptionDelay)",
		},
		"pods of lower priority hold nothing that it lacks": {
			Facts{Created: eight, Usable: eight, Refused: refused, PreemptionForbiddenBy: "pod a-0"},
			v2alpha2.ReasonInsufficientGPUs, refused.Message, "" + refused.Message,
		},
		"the marks of its victims are refused": {
			Facts{Created: eight, Usable: eight, Refused: held, MarksRefused: "marking as preempted pod ml/a: no"},
			v2alpha2.ReasonInsufficientGPUs, held.Message + "; it does not preempt for now: marking as preempted pod ml/a: no",
			"" + held.Message + "; it does not preempt for now: marking as preempted pod ml/a: no",
		},
		"no victims would help": {
			Facts{Created: eight, Usable: eight, Refused: refused, NoHelp: "all that lower priorities hold is 3 nvidia.com/gpu"},
			v2alpha2.ReasonInsufficientGPUs, refused.Message + "; preemption would not help: all that lower priorities hold is 3 nvidia.com/gpu",
			"" + refused.Message + "; preemption would not help: all that lower priorities hold is 3 nvidia.com/gpu",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := statusOf(t, tc.facts, nil)
			c := meta.FindStatusCondition(s.Conditions, v2alpha2.ConditionSatisfied)
			if s.Reason != tc.reason || c.Reason != string(tc.reason) || c.Message != tc.message || s.Summary != tc.summary {
				t.Errorf("reason %q, Satisfied %q %q, summary %q", s.Reason, c.Reason, c.Message, s.Summary)
			}
			if recorded := meta.FindStatusCondition(s.Conditions, v2alpha2.ConditionPreempting); (recorded != nil) != (tc.facts.Preempting != nil) {
				t.Errorf("condition Preempting: %+v", recorded)
			}
		})
	}
}

// statusOf returns the status of a PodGroup of 8 pods after the given one.
func statusOf(t *testing.T, f Facts, old *v2alpha2.PodGroupStatus) *v2alpha2.PodGroupStatus {
	t.Helper()
	f.Namespace, f.Name, f.Group = "ml", "train", flat().Obj()
	tree, err := Tree(&f.Group.Spec)
	if err != nil {
		t.Fatal(err)
	}
	f.Tree = tree
	if old != nil {
		f.Group.Status = *old.DeepCopy()
	}
	s := Status(f, now)
	again := f
	again.Group = f.Group.DeepCopy()
	again.Group.Status = s
	if f.Preempted == nil || f.Preempted.IsRecordedIn(&s) {
		if twice := Status(again, metav1.NewTime(now.Add(time.Hour))); Compare(&s, &twice) != Same && s.Reason != "" {
			t.Errorf("the same facts lead to another status: %s", cmp.Diff(s, twice))
		}
	}
	return &s
}

func preempted(pods int, whole bool) *Preempted {
	return &Preempted{At: now.Add(time.Minute), By: "default/chat", Priority: 1000, Over: 100, Pods: pods, Whole: whole}
}

func TestPreemptedCondition(t *testing.T) {
	t.Parallel()
	lower := preempted(4, false)
	lower.IsLower = true
	tests := map[string]struct {
		lost            *Preempted
		reason, message string
	}{
		"its lowest pods": {lower, "SurplusPreempted", "preempted at 2026-03-01 12:06:00 UTC by default/chat (priority 1000 over 100): 4 pods above its minimum, by its lowest priority"},
		"surplus":         {preempted(4, false), "SurplusPreempted", "preempted at 2026-03-01 12:06:00 UTC by default/chat (priority 1000 over 100): 4 pods above its minimum"},
		"one pod":         {preempted(1, false), "SurplusPreempted", "preempted at 2026-03-01 12:06:00 UTC by default/chat (priority 1000 over 100): 1 pod above its minimum"},
		"the gang":        {preempted(8, true), "GangPreempted", "preempted at 2026-03-01 12:06:00 UTC by default/chat (priority 1000 over 100): all 8 pods, because its minimum ends as a whole or not at all"},
		"a gang of one":   {preempted(1, true), "GangPreempted", "preempted at 2026-03-01 12:06:00 UTC by default/chat (priority 1000 over 100): its only pod, because its minimum ends as a whole or not at all"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := metav1.Condition{Type: "Preempted", Status: metav1.ConditionTrue, Reason: tc.reason, Message: tc.message}
			if diff := cmp.Diff(want, preemptedCondition(tc.lost)); diff != "" {
				t.Error(diff)
			}
			if by := message.Preemptor(want.Message); by != "default/chat (priority 1000 over 100)" {
				t.Errorf("the preemptor is read as %q", by)
			}
		})
	}
}

// step is one status of a victim: facts, and whether condition Preempted is expected afterwards.
type step struct {
	bound, waiting int
	lost           *Preempted
	want           bool
}

func TestPreemptedIsKeptUntilItIsMadeUpFor(t *testing.T) {
	t.Parallel()
	tests := map[string][]step{
		"the whole gang, the scheduler restarts meanwhile": {
			{bound: 8}, {bound: 8, lost: preempted(8, true), want: true}, {bound: 0, lost: preempted(8, true), want: true},
			{bound: 0, waiting: 3, want: true}, {bound: 0, waiting: 8, want: true}, {bound: 8}, {bound: 8},
		},
		"a gang that was below its minimum already": {
			{bound: 7}, {bound: 7, lost: preempted(7, true), want: true}, {waiting: 8, want: true}, {bound: 8},
		},
		"pods above the minimum": {
			{bound: 10}, {bound: 10, lost: preempted(2, false), want: true}, {bound: 8, want: true}, {bound: 8, waiting: 2, want: true},
			{bound: 9, waiting: 1, want: true}, {bound: 10}, {bound: 10, waiting: 2}, {bound: 12},
		},
		"pods above the minimum that nothing replaces": {
			{bound: 10}, {bound: 8, lost: preempted(2, false), want: true}, {bound: 8, want: true}, {bound: 8, want: true},
		},
		"a refill does not make up for pods above the minimum": {
			{bound: 7, waiting: 1}, {bound: 7, waiting: 3, lost: preempted(2, false), want: true}, {bound: 8, waiting: 2, want: true}, {bound: 10},
		},
		"first the surplus, then the rest": {
			{bound: 10, lost: preempted(2, false), want: true}, {bound: 8, waiting: 2, lost: preempted(8, true), want: true},
			{bound: 0, waiting: 10, want: true}, {bound: 8, waiting: 2}, {bound: 10},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &v2alpha2.PodGroupStatus{}
			for i, step := range steps {
				f := Facts{Created: gang.Counts{"": step.bound + step.waiting}, Usable: gang.Counts{"": step.bound + step.waiting}, Bound: gang.Counts{"": step.bound}, Admitted: step.bound > 0, Preempted: step.lost}
				f.Waiting = make([]WaitingPod, step.waiting)
				s = statusOf(t, f, s)
				c := meta.FindStatusCondition(s.Conditions, v2alpha2.ConditionPreempted)
				if (c != nil) != step.want {
					t.Fatalf("step %d: condition %+v", i, c)
				}
				if step.lost != nil && !step.lost.IsRecordedIn(s) {
					t.Fatalf("step %d: %+v is not recorded in %+v", i, step.lost, c)
				}
			}
		})
	}
}

// The summary begins with the preemption for as long as the gang waits because of it, and does not change with the
// time.
func TestSummaryOfAVictim(t *testing.T) {
	t.Parallel()
	const who = "preempted at 12:06:00 UTC by default/chat (1000 over 100); "
	refused := Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "needs 8 nvidia.com/gpu, 0 are free"}
	for name, tc := range map[string]struct {
		bound, waiting int
		lost           *Preempted
		says           bool
	}{
		"the gang waits":                             {waiting: 8, lost: preempted(8, true), says: true},
		"its pods are not created again yet":         {lost: preempted(8, true), says: true},
		"it is bound again":                          {bound: 8, lost: nil},
		"it runs, and what it lost waits":            {bound: 8, waiting: 2, lost: preempted(2, false), says: true},
		"it runs, and nothing replaces what it lost": {bound: 8, lost: preempted(2, false)},
		"it waits, and was not preempted":            {waiting: 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := Facts{Created: gang.Counts{"": tc.bound + tc.waiting}, Usable: gang.Counts{"": tc.bound + tc.waiting}, Bound: gang.Counts{"": tc.bound}, Admitted: tc.bound > 0, Preempted: tc.lost}
			if f.Waiting = make([]WaitingPod, tc.waiting); tc.bound < 8 {
				f.Refused = refused
			}
			s := statusOf(t, f, nil)
			if strings.HasPrefix(s.Summary, who) != tc.says || strings.Contains(s.Summary, "preempted") != tc.says {
				t.Errorf("summary %q", s.Summary)
			}
			f.Preempted = nil // after a restart
			if again := statusOf(t, f, s); again.Summary != s.Summary {
				t.Errorf("summary after a restart %q, before %q", again.Summary, s.Summary)
			}
		})
	}
	// A condition that others have written is not repeated.
	s := &v2alpha2.PodGroupStatus{Reason: v2alpha2.ReasonBehindInQueue, Conditions: []metav1.Condition{{Type: v2alpha2.ConditionPreempted, Status: metav1.ConditionTrue}}}
	for _, text := range []string{"", "preempted", "preempted at  by ", "preempted at 12:00 by x): y", "): "} {
		s.Conditions[0].Message = text
		if got := describePreempted(s, Facts{}); got != "" {
			t.Errorf("%q is repeated as %q", text, got)
		}
	}
}

// The process may still remember a loss that the gang has made up for.
func TestPreemptedIsNotSetAfterTheGangIsWholeAgain(t *testing.T) {
	t.Parallel()
	whole := Facts{Created: gang.Counts{"": 8}, Usable: gang.Counts{"": 8}, Bound: gang.Counts{"": 8}, Admitted: true, Preempted: preempted(8, true)}
	for since, want := range map[time.Duration]bool{-time.Second: true, 0: true, time.Second: false} {
		old := &v2alpha2.PodGroupStatus{Conditions: conditions(wasAdmitted(), satisfied(v2alpha2.ReasonSatisfied, "the minimum of 8 pods is bound"))}
		old.Conditions[1].LastTransitionTime = metav1.NewTime(whole.Preempted.At.Add(since))
		if c := meta.FindStatusCondition(statusOf(t, whole, old).Conditions, v2alpha2.ConditionPreempted); (c != nil) != want {
			t.Errorf("bound %s after the preemption: condition %+v", since, c)
		}
	}
}

func TestPreemptionIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	eight := gang.Counts{"": 8}
	refused := Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "the gang needs 8 nvidia.com/gpu for 8 pods, 2 are free"}
	waiting := Facts{Created: eight, Usable: eight, Refused: refused}
	with := func(change func(*Preempting)) Facts {
		f := waiting
		f.Preempting = makesRoomFor3Gangs()
		change(f.Preempting)
		return f
	}
	decided, evicting := with(func(*Preempting) {}), with(func(p *Preempting) { p.Evicting = true })
	bound := Facts{Created: gang.Counts{"": 10}, Usable: gang.Counts{"": 10}, Bound: gang.Counts{"": 10}, Admitted: true}
	surplus, all := bound, bound
	surplus.Preempted, all.Preempted = preempted(2, false), preempted(10, true)
	tests := map[string]struct {
		before, after Facts
		change        Change
		events        []Event
	}{
		"decided": {waiting, decided, Condition, []Event{{Reason: "Preempting",
			Note: "Decided: makes room: 3 gangs (12 pods, 48 nvidia.com/gpu) of lower priority end by 10:32:05 UTC; first train-a; plan 7f-2"}}},
		"evicting": {decided, evicting, Condition, []Event{{Reason: "Preempting",
			Note: "Evicting: makes room: 3 gangs (12 pods, 48 nvidia.com/gpu) of lower priority end by 10:32:05 UTC; first train-a; plan 7f-2"}}},
		"another plan": {decided, with(func(p *Preempting) { p.Plan, p.First = "7f-3", "" }), Condition, []Event{{Reason: "Preempting",
			Note: "Decided: makes room: 3 gangs (12 pods, 48 nvidia.com/gpu) of lower priority end by 10:32:05 UTC; plan 7f-3"}}},
		"a number of the same plan":    {decided, with(func(p *Preempting) { p.Pods = 11 }), Condition, nil},
		"a pod that does not end":      {evicting, with(func(p *Preempting) { p.Evicting, p.Stuck = true, "train-a-3" }), Condition, nil},
		"the same":                     {evicting, evicting, Same, nil},
		"given up":                     {evicting, waiting, Condition, nil},
		"the preemptor is being bound": {evicting, Facts{Created: eight, Usable: eight, Binding: true}, Condition, nil},
		"pods above the minimum are lost": {bound, surplus, Condition, []Event{{Reason: "Preempted",
			Note: "preempted at 2026-03-01 12:06:00 UTC by default/chat (priority 1000 over 100): 2 pods above its minimum"}}},
		"all pods are lost": {bound, all, Condition, []Event{{Warning: true, Reason: "Preempted",
			Note: "preempted at 2026-03-01 12:06:00 UTC by default/chat (priority 1000 over 100): all 10 pods, because its minimum ends as a whole or not at all"}}},
		"then all pods are lost": {surplus, all, Condition, []Event{{Warning: true, Reason: "Preempted",
			Note: "preempted at 2026-03-01 12:06:00 UTC by default/chat (priority 1000 over 100): all 10 pods, because its minimum ends as a whole or not at all"}}},
		"the lost pods are created again": {surplus, func() Facts {
			f := bound
			f.Waiting = make([]WaitingPod, 2)
			return f
		}(), Condition, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := statusOf(t, tc.before, nil)
			after := statusOf(t, tc.after, before)
			if got := Compare(before, after); got != tc.change {
				t.Errorf("change %d, want %d", got, tc.change)
			}
			if diff := cmp.Diff(tc.events, PreemptionEvents(before, after)); diff != "" {
				t.Error(diff)
			}
			if e := StatusEvent(before, after); e != nil && strings.Contains(e.Note, "makes room") {
				t.Errorf("a second event about the preemption: %+v", *e)
			}
		})
	}
}

// The conditions about preemption and all others do not depend on each other: what they say is what the facts say.
func TestConditionsOfPreemptionInAnyOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	s := &v2alpha2.PodGroupStatus{}
	for i := range 2000 {
		bound := r.IntN(11)
		f := Facts{Created: gang.Counts{"": 10}, Usable: gang.Counts{"": 10}, Bound: gang.Counts{"": bound}, Admitted: bound > 0, Waiting: make([]WaitingPod, 10-bound)}
		if r.IntN(2) == 0 {
			f.Preempting = makesRoomFor3Gangs()
			f.Preempting.Plan = fmt.Sprint(i)
		}
		if r.IntN(4) == 0 {
			f.Preempted = preempted(1+r.IntN(3), r.IntN(2) == 0)
		}
		s = statusOf(t, f, s)
		types := map[string]int{}
		for _, c := range s.Conditions {
			types[c.Type]++
			if c.Reason == "" || c.LastTransitionTime.IsZero() || c.ObservedGeneration != 3 {
				t.Fatalf("step %d: incomplete condition %+v", i, c)
			}
		}
		plan, _, ok := RecordedPreemption(s)
		switch {
		case ok != (f.Preempting != nil) || ok && plan != f.Preempting.Plan:
			t.Fatalf("step %d: plan %q, %t; want %+v", i, plan, ok, f.Preempting)
		case types["Admitted"] != 1 || types["Satisfied"] != 1 || types["Preempting"] > 1 || types["Preempted"] > 1 || len(types) > 4:
			t.Fatalf("step %d: conditions %v", i, types)
		case (s.Reason == v2alpha2.ReasonPreempting) != (f.Preempting != nil && bound < 8):
			t.Fatalf("step %d: reason %s with %d bound", i, s.Reason, bound)
		case f.Preempted == nil && bound == 10 && types["Preempted"] > 0 && slices.ContainsFunc(s.Conditions, func(c metav1.Condition) bool {
			return strings.HasSuffix(c.Message, replacementsWait)
		}):
			t.Fatalf("step %d: nothing is missing: %+v", i, s.Conditions)
		}
	}
}
