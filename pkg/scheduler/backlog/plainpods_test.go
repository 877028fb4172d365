// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

func TestAsManyPodsAreWokenAsFit(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	x := newPlainPods(func(at gangs.Shape, _ reservations.Asker) int { return at.FittingPods() })
	small, large := &fakeShape{}, &fakeShape{}
	released := 0
	add := func(name string, priority int32, at gangs.Shape, since time.Duration) {
		x.add(wrappers.MakePod(name, "ml").UID(name).Priority(priority).Obj(), at, start.Add(since), func() { released++ })
	}
	add("young", 0, small, 2*time.Second)
	add("old", 0, small, time.Second)
	add("important", 5, small, 3*time.Second)
	add("large", 9, large, 0)
	woken := func(raised []gangs.Shape, want ...string) {
		t.Helper()
		got := []string{}
		for _, p := range x.wake(raised, start) {
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
	x.remove("important")
	woken(x.shapes(), "young")
	woken(x.shapes())
	x.forgetWoken(start.Add(time.Second), time.Second) // their activations were lost
	woken(x.shapes(), "old", "young")
	for _, uid := range []string{"old", "young", "large", "large", "unknown"} {
		x.remove(types.UID(uid))
	}
	if len(x.pods)+len(x.byShape) != 0 || released != 4 {
		t.Errorf("%d pods and %d shapes are left, %d released, want 0, 0 and 4", len(x.pods), len(x.byShape), released)
	}
}

// TestPodsThatEndInTimeAreWoken: room is reserved for a gang that starts in an hour. Those that end before are woken,
// however many pods come before them that do not, and nobody asks for each of these.
func TestPodsThatEndInTimeAreWoken(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	asked := 0
	x := newPlainPods(func(at gangs.Shape, a reservations.Asker) int {
		if asked++; a.Ends.IsZero() || a.Ends.After(start.Add(time.Hour)) {
			return 0
		}
		return at.FittingPods()
	})
	at := &fakeShape{fits: 2}
	add := func(name string, age, seconds int64) {
		pod := wrappers.MakePod(name, "ml").UID(name).Obj()
		if seconds > 0 {
			pod.Spec.ActiveDeadlineSeconds = &seconds
		}
		x.add(pod, at, start.Add(-time.Duration(age)*time.Second), func() {})
	}
	for i := range int64(100) {
		add(fmt.Sprint("endless-", i), 1000+i, 0)
		add(fmt.Sprint("long-", i), 500+i, 7200+i)
	}
	add("short-1", 3, 3600)
	add("short-2", 2, 60)
	add("short-3", 1, 60)
	got := []string{}
	for _, p := range x.wake([]gangs.Shape{at}, start) {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff([]string{"short-1", "short-2"}, got); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	if asked > 110 {
		t.Errorf("asked %d times what fits for 203 pods", asked)
	}
}
