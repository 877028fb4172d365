// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

func TestAsManyPodsAreWokenAsFit(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r, small, large := newRoomless(), &fakeRoom{}, &fakeRoom{}
	released := 0
	add := func(name string, priority int32, at gangs.Shape, since time.Duration) {
		r.add(wrappers.MakePod(name, "ml").UID(name).Priority(priority).Obj(), at, start.Add(since), func() { released++ })
	}
	add("young", 0, small, 2*time.Second)
	add("old", 0, small, time.Second)
	add("important", 5, small, 3*time.Second)
	add("large", 9, large, 0)
	woken := func(raised []gangs.Shape, want ...string) {
		t.Helper()
		got := []string{}
		for _, p := range r.wake(raised, start) {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Errorf("woken (-want +got):\n%s", diff)
		}
	}
	woken([]gangs.Shape{small})
	small.fits = 2
	woken([]gangs.Shape{small}, "important", "old")
	woken([]gangs.Shape{small}) // two are already woken
	r.remove("important")
	woken(r.shapes(), "young")
	woken(r.shapes())
	r.forgetful(start.Add(time.Second), time.Second) // their activations were lost
	woken(r.shapes(), "old", "young")
	for _, uid := range []string{"old", "young", "large", "large", "unknown"} {
		r.remove(typesUID(uid))
	}
	if len(r.pods)+len(r.byRoom) != 0 || released != 4 {
		t.Errorf("%d pods and %d shapes are left, %d released, want 0, 0 and 4", len(r.pods), len(r.byRoom), released)
	}
}

func TestPlainPodsWithoutRoomAreNotTriedRepeatedly(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).node(wrappers.MakeNode("n1").GPUs(8)).run()
	for i := range 16 {
		c.pod(wrappers.MakePod(fmt.Sprintf("small-%d", i), "ml").GPUs(1))
	}
	c.eventually("the nodes full", func() bool { return len(c.boundOf("small-")) == 16 })
	const large = 20
	for i := range large {
		c.pod(wrappers.MakePod(fmt.Sprintf("large-%d", i), "ml").GPUs(8))
	}
	c.eventually("each large pod tried", func() bool { return c.cyclesOf("large-") >= large })
	before := c.cyclesOf("large-")
	for i := range 10 {
		c.deletePod(fmt.Sprintf("small-%d", i))
		next := fmt.Sprintf("next-%d", i)
		c.pod(wrappers.MakePod(next, "ml").GPUs(1)).eventually(next+" bound", func() bool { return len(c.boundOf(next)) > 0 })
	}
	// A pod is moved once by an event that occurs during its cycle: the stock queue records such events.
	if got := c.cyclesOf("large-") - before; got > large {
		t.Errorf("%d cycles of pods that could not fit, want at most one each", got)
	}
	tried := c.cyclesOf("large-")
	for i := range 10 {
		c.deletePod(fmt.Sprintf("next-%d", i))
	}
	for i := 10; i < 16; i++ {
		c.deletePod(fmt.Sprintf("small-%d", i))
	}
	c.eventually("two large pods bound", func() bool { return len(c.boundOf("large-")) == 2 })
	if got := c.cyclesOf("large-") - tried; got > large/2 {
		t.Errorf("%d cycles for room that two pods could use", got)
	}
}
