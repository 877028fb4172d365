// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSinceKeepsTheFirstTimeAndText(t *testing.T) {
	var s FactTimes
	t0 := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s.Observe("a", t0, Fact{Key: "x", Text: "first"})
	got := s.Observe("a", t0.Add(time.Second), Fact{Key: "y", Text: "new"}, Fact{Key: "x", Text: "second"})
	want := []Fact{{Key: "y", Text: "new", Since: t0.Add(time.Second)}, {Key: "x", Text: "first", Since: t0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.Observe("b", t0.Add(time.Second), Fact{Key: "x"}); !got[0].Since.Equal(t0.Add(time.Second)) {
		t.Errorf("a fact of another object begins at %s", got[0].Since)
	}
	s.Observe("a", t0.Add(2*time.Second))
	if got := s.Observe("a", t0.Add(3*time.Second), Fact{Key: "x"}); !got[0].Since.Equal(t0.Add(3 * time.Second)) {
		t.Errorf("a fact that ended and came back begins at %s", got[0].Since)
	}
}

func TestSinceForgetsObjectsThatAreNotObserved(t *testing.T) {
	var s FactTimes
	t0 := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range 1000 {
		s.Observe(fmt.Sprint(i), t0, Fact{Key: "x"})
	}
	s.Observe("kept", t0.Add(forgetAfter-time.Second), Fact{Key: "x"})
	s.Observe("kept", t0.Add(forgetAfter), Fact{Key: "x"})
	if n := len(s.objects); n != 1 {
		t.Errorf("%d objects are remembered, want 1", n)
	}
}
