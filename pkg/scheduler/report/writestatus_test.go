// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

func TestStatusIsWrittenInTime(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.group(podGroup("train").MinMember(2))

	// The first status is written after the pods had a moment to be created.
	if again := c.mustLook("train"); again != firstInterval {
		t.Fatalf("look again in %s, want %s", again, firstInterval)
	}
	c.passes(firstInterval)
	c.mustLook("train")
	c.wantStatus("train", 1, "needs 2 pods, 0 exist; pods name it by annotation pod-group-name", v2alpha2.ReasonWaitingForPods)

	// A reason that passes by itself waits for the interval.
	c.pod(member("train", "a"))
	if again := c.mustLook("train"); again != 2*time.Second {
		t.Fatalf("look again in %s, want 2s", again)
	}
	c.passes(time.Second)
	c.group(podGroup("train").MinMember(2).Generation(2)) // a further change of the same kind does not restart the wait
	c.mustLook("train")
	c.passes(time.Second)
	c.mustLook("train")
	c.wantStatus("train", 2, "needs 2 pods, 1 exist", v2alpha2.ReasonWaitingForPods)

	// Without a change there is no write, regardless of the number and time of the checks.
	for range 10 {
		c.passes(time.Minute)
		c.mustLook("train")
	}
	c.wantStatus("train", 2, "needs 2 pods, 1 exist", v2alpha2.ReasonWaitingForPods)

	// A refusal is written immediately; a change of only its numbers after 10 s.
	c.pod(member("train", "b"))
	c.refuse("train", v2alpha2.ReasonInsufficientGPUs, "2 pods fit nowhere; 4 nodes: too few GPUs")
	c.mustLook("train")
	c.wantStatus("train", 3, "2 pods fit nowhere; 4 nodes: too few GPUs", v2alpha2.ReasonInsufficientGPUs)
	c.passes(eventDelay)
	c.mustLook("train")
	c.passes(time.Minute - eventDelay)
	c.refuse("train", v2alpha2.ReasonInsufficientGPUs, "2 pods fit nowhere; 5 nodes: too few GPUs")
	c.mustLook("train")
	c.passes(fewInterval - time.Second)
	c.refuse("train", v2alpha2.ReasonInsufficientGPUs, "2 pods fit nowhere; 6 nodes: too few GPUs")
	c.mustLook("train")
	c.wantStatus("train", 3, "2 pods fit nowhere; 4 nodes: too few GPUs", v2alpha2.ReasonInsufficientGPUs)
	c.passes(time.Second)
	c.mustLook("train")
	c.wantStatus("train", 4, "2 pods fit nowhere; 6 nodes: too few GPUs", v2alpha2.ReasonInsufficientGPUs)

	// A condition that becomes True is written immediately.
	c.pod(member("train", "a").Node("n1"))
	c.pod(member("train", "b").Node("n1"))
	c.mustLook("train")
	c.wantStatus("train", 5, "the minimum is bound", "")
	if again := c.mustLook("train"); again != eventDelay {
		t.Errorf("look again in %s, want %s", again, eventDelay)
	}
	c.passes(eventDelay)
	c.mustLook("train")

	want := []string{
		"Normal GangIncomplete PodGroup/train: WaitingForPods: needs 2 pods, 1 exist",
		"Normal WaitingForGang Pod/a: PodGroup train: WaitingForPods: needs 2 pods, 1 exist",
		"Warning GangIncomplete PodGroup/train: WaitingForPods for more than 5 minutes: needs 2 pods, 1 exist",
		"Warning GangBlocked PodGroup/train: InsufficientGPUs: 2 pods fit nowhere; 4 nodes: too few GPUs",
		"Warning FailedScheduling Pod/a: PodGroup train: InsufficientGPUs: 2 pods fit nowhere",
		"Normal GangAdmitted PodGroup/train: the minimum of 2 pods is bound",
	}
	if diff := cmp.Diff(want, c.events.list()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	// Another process that finds the status written emits no event again.
	c.restart()
	c.mustLook("train")
	c.wantStatus("train", 5, "the minimum is bound", "")
	if diff := cmp.Diff(want, c.events.list()); diff != "" {
		t.Errorf("events after a restart (-want +got):\n%s", diff)
	}
}

func (c *cluster) wantStatus(name string, writes int, summary string, reason v2alpha2.Reason) {
	c.t.Helper()
	got := c.groups.Get(keyOf(name)).Status
	if got.Summary != summary || got.Reason != reason || c.groups.Updates() != writes {
		c.t.Fatalf("after %d writes: %q %q, want after %d: %q %q", c.groups.Updates(), got.Reason, got.Summary, writes, reason, summary)
	}
}

func TestConditionMakesWayForBindings(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.group(podGroup("train").MinMember(1))
	c.busy = true
	c.pod(member("train", "a").Node("n1"))
	if again := c.mustLook("train"); again != busyInterval {
		t.Fatalf("look again in %s, want %s", again, busyInterval)
	}
	if s := c.groups.Get(keyOf("train")).Status; len(s.Conditions) > 0 {
		t.Fatalf("written while bindings are posted: %v", s.Conditions)
	}
	c.busy = false
	c.passes(busyInterval)
	c.mustLook("train")
	c.wantStatus("train", 1, "the minimum is bound", "")

	// But not forever.
	c.group(podGroup("eval").MinMember(1))
	c.busy = true
	c.pod(member("eval", "b").Node("n1"))
	c.mustLook("eval")
	c.passes(busyLimit - time.Millisecond)
	c.mustLook("eval")
	if s := c.groups.Get(keyOf("eval")).Status; len(s.Conditions) > 0 {
		t.Fatalf("written while bindings are posted: %v", s.Conditions)
	}
	c.passes(time.Millisecond)
	c.mustLook("eval")
	c.wantStatus("eval", 2, "the minimum is bound", "")
}

func TestFirstStatusMakesWayForBindings(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.group(podGroup("train").MinMember(2))
	c.busy = true
	for c.clock.Since(start) < busyLimit {
		again := c.mustLook("train")
		if again <= 0 || again > firstInterval {
			t.Fatalf("look again in %s, want at most %s", again, firstInterval)
		}
		if s := c.groups.Get(keyOf("train")).Status; len(s.Conditions) > 0 {
			t.Fatalf("written after %s while bindings are posted: %v", c.clock.Since(start), s.Conditions)
		}
		c.passes(again)
	}
	c.mustLook("train")
	c.wantStatus("train", 1, "needs 2 pods, 0 exist; pods name it by annotation pod-group-name", v2alpha2.ReasonWaitingForPods)
}

// Another product may use PodGroups of the same kind for its own scheduler.
func TestPodGroupsOfOtherSchedulersAreLeftAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	theirs := func(name string) *wrappers.PodWrapper { return member("train", name).SchedulerName("kai-scheduler") }
	c.group(podGroup("train").SubGroupOf("nowhere", "x", 1)) // not even valid here
	c.pod(theirs("a"))
	c.pod(theirs("b").Node("n1"))
	for range 3 {
		if again := c.mustLook("train"); again != 0 {
			t.Errorf("look again in %s, want not", again)
		}
		c.passes(time.Minute)
	}
	if events := c.events.list(); len(events) > 0 || c.groups.Updates() > 0 {
		t.Fatalf("%d writes, events %q; want none", c.groups.Updates(), events)
	}
	// With one pod of ours among them, users need the reason why it waits.
	c.pod(member("train", "c"))
	c.mustLook("train")
	c.passes(time.Minute)
	c.mustLook("train")
	if c.groups.Updates() == 0 {
		t.Error("no status was written")
	}
}

// Most PodGroups are created a moment before their pods, so the initial lack of pods is not reported.
func TestFirstStatusIsNoEventBeforeItLasts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		then func(*cluster) // runs one second after the first status
		want []string
	}{
		"the pods are created": {
			func(c *cluster) { c.pod(member("train", "a").Node("n1")); c.pod(member("train", "b").Node("n1")) },
			[]string{"Normal GangAdmitted PodGroup/train: the minimum of 2 pods is bound"},
		},
		"they are created and do not fit": {
			func(c *cluster) {
				c.pod(member("train", "a"))
				c.pod(member("train", "b"))
				c.refuse("train", v2alpha2.ReasonTooLarge, "no node")
			},
			[]string{"Warning GangBlocked PodGroup/train: TooLarge: no node", "Warning FailedScheduling Pod/a: PodGroup train: TooLarge: no node"},
		},
		"they are created and wait for their turn": {
			func(c *cluster) { c.pod(member("train", "a")); c.pod(member("train", "b")) },
			nil,
		},
		"one of two is created": {
			func(c *cluster) { c.pod(member("train", "a")) },
			[]string{"Normal GangIncomplete PodGroup/train: WaitingForPods: needs 2 pods, 1 exist"},
		},
		"no pod is created": {
			func(*cluster) {},
			[]string{"Normal GangIncomplete PodGroup/train: WaitingForPods: needs 2 pods, 0 exist; pods name it by annotation pod-group-name"},
		},
		"the PodGroup is recreated": {
			func(c *cluster) { c.group(podGroup("train").UID("another").MinMember(3)) },
			[]string{"Normal GangIncomplete PodGroup/train: WaitingForPods: needs 3 pods, 0 exist; pods name it by annotation pod-group-name"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.group(podGroup("train").MinMember(2))
			c.mustLook("train")
			c.passes(firstInterval)
			c.mustLook("train")
			if len(c.groups.Get(keyOf("train")).Status.Conditions) == 0 || len(c.events.list()) > 0 {
				t.Fatalf("status %v and events %q, want a status and no event", c.groups.Get(keyOf("train")).Status, c.events.list())
			}
			c.passes(time.Second)
			tc.then(c)
			for range 10 { // one event, regardless of the number of checks
				c.mustLook("train")
				c.passes(time.Second)
			}
			if diff := cmp.Diff(tc.want, c.events.list()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusDoesNotWaitForTheCache(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.group(podGroup("train").MinMember(1))
	c.pod(member("train", "a"))
	stale := c.groups.Get(keyOf("train"))
	for i, reason := range []v2alpha2.Reason{v2alpha2.ReasonTooLarge, v2alpha2.ReasonFragmented, v2alpha2.ReasonNoNodeMatches} {
		c.refuse("train", reason, "does not fit")
		if _, err := c.look("train"); err != nil { // the cache still has the PodGroup without a status
			t.Fatal(err)
		}
		c.wantStatus("train", i+1, "does not fit", reason)
		if _, err := c.look("train"); err != nil {
			t.Fatal(err)
		}
		c.wantStatus("train", i+1, "does not fit", reason)
	}
	c.registry.SetGroup(stale, c.clock.Now()) // a relist from a server that lags behind
	if _, err := c.look("train"); err != nil {
		t.Fatal(err)
	}
	c.wantStatus("train", 3, "does not fit", v2alpha2.ReasonNoNodeMatches)
	c.mustLook("train")
	c.mustLook("train")
	c.wantStatus("train", 3, "does not fit", v2alpha2.ReasonNoNodeMatches)
}

func TestStatusIsNotLostWhenAWriteFails(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.group(podGroup("train").MinMember(1))
	c.pod(member("train", "a"))
	c.refuse("train", v2alpha2.ReasonTooLarge, "too large")

	// The PodGroup was edited: the status must not be written before the edit has been observed.
	c.groups.Put(podGroup("train").MinMember(1).Label("x", "y").Obj())
	if _, err := c.look("train"); !apierrors.IsConflict(err) {
		t.Fatalf("look = %v, want a conflict", err)
	}
	c.groups.FailUpdates(fmt.Errorf("connection refused"))
	c.caughtUp("train")
	if _, err := c.look("train"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Fatalf("look = %v, want the failure", err)
	}
	if len(c.events.list()) > 0 {
		t.Errorf("events %q before the status was written", c.events.list())
	}
	c.mustLook("train")
	c.wantStatus("train", 1, "too large", v2alpha2.ReasonTooLarge)

	// Deleted without the cache's knowledge: nothing to do, and no state is kept for the next one of that name.
	c.groups.Delete(keyOf("train"))
	c.refuse("train", v2alpha2.ReasonFragmented, "fragmented")
	if _, err := c.look("train"); err != nil {
		t.Fatal(err)
	}
	c.group(podGroup("train").UID("another").MinMember(1))
	c.refuse("train", v2alpha2.ReasonFragmented, "fragmented")
	c.mustLook("train")
	c.wantStatus("train", 2, "fragmented", v2alpha2.ReasonFragmented)
}

func TestNothingIsWrittenBeforeAllIsSeen(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.registry = gangs.New()
	c.registry.AddProfile(wrappers.SchedulerName)
	c.restart()
	c.group(podGroup("train").MinMember(1).Condition(v2alpha2.ConditionAdmitted, "True", v2alpha2.ReasonAdmitted, ""))
	for range 3 {
		c.passes(time.Minute)
		c.mustLook("train")
	}
	if c.groups.Updates() != 0 {
		t.Errorf("%d writes from half of the facts", c.groups.Updates())
	}
}

// Regardless of how often blocked gangs are tried, a gang gets at most one event per change of its reason.
func TestBlockedGangsDoNotFlood(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const gangs, members = 200, 2
	var names []string
	for i := range gangs {
		name := fmt.Sprintf("g%d", i)
		names = append(names, name)
		c.group(podGroup(name).MinMember(members))
		for j := range members {
			c.pod(member(name, fmt.Sprintf("%s-%d", name, j)))
		}
	}
	// Ten minutes in which every gang is tried every 20 s with different numbers; in the middle the reason changes.
	for second := 0; second < 600; second += 20 {
		reason := v2alpha2.ReasonInsufficientGPUs
		if second >= 300 {
			reason = v2alpha2.ReasonFragmented
		}
		for _, name := range names {
			c.refuse(name, reason, fmt.Sprintf("%d of 2 pods fit; %d nodes: Insufficient nvidia.com/gpu", second/20%2, second))
			c.mustLook(name)
		}
		c.passes(20 * time.Second)
	}
	perReason := map[string]int{}
	for _, e := range c.events.list() {
		words := 4
		if strings.Contains(e, " Pod/") {
			words = 6
		}
		perReason[strings.Join(strings.Fields(e)[:words], " ")]++
	}
	want := map[string]int{}
	for _, name := range names {
		want["Warning GangBlocked PodGroup/"+name+": InsufficientGPUs:"]++
		want["Warning GangBlocked PodGroup/"+name+": Fragmented:"]++
		want["Warning FailedScheduling Pod/"+name+"-0: PodGroup "+name+": InsufficientGPUs:"]++
		want["Warning FailedScheduling Pod/"+name+"-0: PodGroup "+name+": Fragmented:"]++
	}
	if diff := cmp.Diff(want, perReason); diff != "" {
		t.Errorf("events per gang and reason (-want +got):\n%s", diff)
	}
	if most := gangs * (600/30 + 2); c.groups.Updates() > most {
		t.Errorf("%d status writes, want at most %d", c.groups.Updates(), most)
	}
	if want := 2 * gangs * members; len(c.patches) != want {
		t.Errorf("%d patches of pods, want %d: one per pod and reason", len(c.patches), want)
	}
}

// The workers, the queues and Mark, with a real clock.
func TestRunReachesTheLastState(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const count = 50
	var failing sync.Once
	last := make(chan string, 10*count)
	c.groups.OnUpdate(func(g *v2alpha2.PodGroup) {
		c.registry.SetGroup(g, time.Now())
		failing.Do(func() {
			c.groups.FailUpdates(fmt.Errorf("down"), fmt.Errorf("down"), fmt.Errorf("down"))
		})
		if meta.IsStatusConditionTrue(g.Status.Conditions, v2alpha2.ConditionAdmitted) {
			last <- g.Name
		}
	})
	reporter := New(Options{
		Registry: c.registry, PodGroups: c.groups, Client: fake.NewClientset(), Recorder: c.events, Clock: clock.RealClock{},
		Busy: func() bool { return false }, Pods: podLister(t), Failed: func(gangs.Key) []*corev1.Pod { return nil },
		StatusInterval: 50 * time.Millisecond, WaitingForGangAfter: time.Hour, NeedsCapacityAfter: time.Hour,
	})
	for i := range count / 2 {
		c.group(podGroup(fmt.Sprintf("g%d", i)).MinMember(2)) // before Run and without a mark
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		reporter.Run(ctx)
	}()
	for i := count / 2; i < count; i++ {
		c.group(podGroup(fmt.Sprintf("g%d", i)).MinMember(2))
		reporter.MarkChanged(keyOf(fmt.Sprintf("g%d", i)))
	}
	var bursts sync.WaitGroup
	for i := range count {
		bursts.Go(func() {
			name := fmt.Sprintf("g%d", i)
			for _, node := range []string{"", "n1"} {
				for j := range 2 {
					c.registry.SetPod(member(name, fmt.Sprintf("%s-%d", name, j)).Node(node).Obj(), time.Now())
					reporter.MarkChanged(keyOf(name))
				}
			}
		})
	}
	bursts.Wait()
	deadline := time.After(30 * time.Second)
	for done := map[string]bool{}; len(done) < count; {
		select {
		case name := <-last:
			done[name] = true
		case <-deadline:
			t.Fatalf("%d of %d gangs were reported admitted", len(done), count)
		}
	}
	cancel()
	<-ended
}

// A PodGroup that passes through several reasons in a short time causes one event, and a reason that passes by itself
// between two occurrences of the same reason causes none.
func TestEventsWaitForACascadeToSettle(t *testing.T) {
	t.Parallel()
	type step struct {
		at time.Duration // since the start; in order
		do func(c *cluster)
	}
	pods := func(node string) func(c *cluster) {
		return func(c *cluster) {
			for _, name := range []string{"a", "b"} {
				c.pod(member("train", name).Node(node))
			}
		}
	}
	refuse := func(reason v2alpha2.Reason) func(c *cluster) {
		return func(c *cluster) { c.refuse("train", reason, "no") }
	}
	const (
		admitted   = "Normal GangAdmitted PodGroup/train: the minimum of 2 pods is bound"
		blocked    = "Warning GangBlocked PodGroup/train: InsufficientGPUs: no"
		fragmented = "Warning GangBlocked PodGroup/train: Fragmented: no"
		below      = "Warning GangBelowMinimum PodGroup/train: WaitingForPods: needs 2 pods, 1 exist"
	)
	tests := map[string]struct {
		steps []step
		want  []string
	}{
		"three reasons in 2 s": {
			[]step{{0, pods("")}, {100 * time.Millisecond, refuse(v2alpha2.ReasonTooLarge)}, {time.Second, refuse(v2alpha2.ReasonFragmented)}, {1500 * time.Millisecond, pods("n1")}},
			[]string{admitted},
		},
		"a reason that is back in 2 s": {
			[]step{{0, pods("")}, {0, refuse(v2alpha2.ReasonInsufficientGPUs)}, {10 * time.Second, refuse(v2alpha2.ReasonFragmented)}, {11 * time.Second, refuse(v2alpha2.ReasonInsufficientGPUs)}},
			[]string{blocked},
		},
		"lasting reasons": {
			[]step{{0, pods("")}, {0, refuse(v2alpha2.ReasonInsufficientGPUs)}, {3 * time.Second, refuse(v2alpha2.ReasonFragmented)}, {6 * time.Second, pods("n1")}},
			[]string{blocked, fragmented, admitted},
		},
		"a turn between twice the same reason": {
			[]step{{0, pods("")}, {0, refuse(v2alpha2.ReasonInsufficientGPUs)},
				{10 * time.Second, func(c *cluster) { c.group(podGroup("train").MinMember(2).Generation(2).Label("x", "y")) }},
				{30 * time.Second, refuse(v2alpha2.ReasonInsufficientGPUs)}},
			[]string{blocked},
		},
		"a member that is replaced in 2 s": {
			[]step{{0, pods("n1")}, {5 * time.Second, func(c *cluster) { c.registry.RemoveFailedPod("b", c.clock.Now()) }}, {6 * time.Second, pods("n1")}},
			[]string{admitted},
		},
		"a member that is missing for longer": {
			[]step{{0, pods("n1")}, {5 * time.Second, func(c *cluster) { c.registry.RemoveFailedPod("b", c.clock.Now()) }}, {9 * time.Second, pods("n1")}},
			[]string{admitted, below, "Normal GangRestored PodGroup/train: the minimum of 2 pods is bound again"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.group(podGroup("train").MinMember(2))
			const tick = 100 * time.Millisecond
			for passed := time.Duration(0); passed <= time.Minute; passed += tick {
				for len(tc.steps) > 0 && tc.steps[0].at <= passed {
					tc.steps[0].do(c)
					tc.steps = tc.steps[1:]
				}
				if passed < 40*time.Second || passed%time.Second == 0 {
					c.mustLook("train")
				}
				c.passes(tick)
			}
			var got []string
			for _, e := range c.events.list() {
				if strings.Contains(e, " PodGroup/") {
					got = append(got, e)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// Plans that fail for minutes cause one warning, with the cause of the last failure.
func TestFailingPlansBecomeAWarning(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.group(podGroup("train").MinMember(2))
	c.pod(member("train", "a"))
	c.pod(member("train", "b"))
	fails := func(d time.Duration) {
		t.Helper()
		for end := c.clock.Now().Add(d); c.clock.Now().Before(end); {
			c.planFails("a", "binding pod b to node n: denied")
			c.lastsFor("train", 10*time.Second)
		}
	}
	fails(warnAfter - 10*time.Second)
	if got := c.warnings(); len(got) > 0 {
		t.Errorf("too early: %v", got)
	}
	fails(2 * warnAfter)
	want := []string{"Warning GangBlocked PodGroup/train: BackingOff for more than 5 minutes: 30 planned attempts in a row failed, the last: binding pod b to node n: denied; it is tried again by itself"}
	if diff := cmp.Diff(want, c.warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
