// SPDX-License-Identifier: Apache-2.0

package children

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestSlowStart(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		n, limit  int
		failFrom  int // calls with this number and higher fail
		wantDone  int
		wantCalls int32
		wantErr   string
	}{
		"nothing to do": {n: 0, limit: 4, failFrom: 99},
		"all succeed":   {n: 20, limit: 4, failFrom: 99, wantDone: 20, wantCalls: 20},
		"the first call fails: no other call is made": {n: 20, limit: 4, failFrom: 0, wantCalls: 1, wantErr: "refused"},
		"the batch that fails is the last":            {n: 20, limit: 4, failFrom: 2, wantDone: 2, wantCalls: 3, wantErr: "refused"},
		"the third batch is of four":                  {n: 20, limit: 99, failFrom: 6, wantDone: 6, wantCalls: 7, wantErr: "refused"},
		"the fourth batch is of eight":                {n: 20, limit: 99, failFrom: 14, wantDone: 14, wantCalls: 15, wantErr: "refused"},
		"the last batch is the rest":                  {n: 12, limit: 99, failFrom: 99, wantDone: 12, wantCalls: 12},
		"a limit of one":                              {n: 3, limit: 1, failFrom: 2, wantDone: 2, wantCalls: 3, wantErr: "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			done, err := NewClient(nil, nil).SlowStart(clocktesting.NewFakePassiveClock(time.Time{}), types.NamespacedName{}, tc.n, tc.limit, func(i int) error {
				calls.Add(1)
				if i >= tc.failFrom {
					return refused
				}
				return nil
			})
			if done != tc.wantDone || calls.Load() != tc.wantCalls {
				t.Errorf("%d calls, %d succeeded, want %d, %d", calls.Load(), done, tc.wantCalls, tc.wantDone)
			}
			if got := wording(err); got != tc.wantErr {
				t.Errorf("error %q, want %q", got, tc.wantErr)
			}
		})
	}
}

func TestAtFullSpeedNoCallWaitsForTheSlowest(t *testing.T) {
	const n, limit = 40, 4
	last := make(chan struct{})
	done, err := NewClient(nil, nil).SlowStart(clocktesting.NewFakePassiveClock(time.Time{}), types.NamespacedName{}, n, limit, func(i int) error {
		switch i {
		case limit: // one of the first calls at full speed
			<-last
		case n - 1:
			close(last)
		}
		return nil
	})
	if done != n || err != nil {
		t.Errorf("%d calls succeeded, error %v", done, err)
	}
}

func TestAtFullSpeedARefusalStops(t *testing.T) {
	refused := errors.New("refused")
	var calls atomic.Int32
	done, err := NewClient(nil, nil).SlowStart(clocktesting.NewFakePassiveClock(time.Time{}), types.NamespacedName{}, 1000, 4, func(i int) error {
		calls.Add(1)
		if i >= 20 {
			return refused
		}
		return nil
	})
	if n := calls.Load(); done != 20 || n < 21 || n > 24 || !errors.Is(err, refused) {
		t.Errorf("%d calls, %d succeeded, error %v; want 20, and no more than 4 that were refused", n, done, err)
	}
}

func TestSlowStartLeavesTheRestToTheNextPass(t *testing.T) {
	for name, tc := range map[string]struct {
		each time.Duration // duration of a call
		want int           // calls
	}{
		"some":                {each: 400 * time.Millisecond, want: 3},
		"never less than one": {each: time.Minute, want: 1},
	} {
		clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
		done, err := NewClient(nil, nil).SlowStart(clock, types.NamespacedName{}, 20, 1, func(int) error {
			clock.SetTime(clock.Now().Add(tc.each))
			return nil
		})
		if done != tc.want || !errors.Is(err, ErrUnfinished) {
			t.Errorf("%s: %d calls succeeded, error %v; want %d, and the rest for the next pass", name, done, err, tc.want)
		}
	}
}

func TestAPassThatGoesOnDoesNotStartSlowly(t *testing.T) {
	c, name, clock := NewClient(nil, nil), types.NamespacedName{Name: "a"}, clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	refused := func() int32 {
		var n atomic.Int32
		_, _ = c.SlowStart(clock, name, 20, 4, func(int) error { // only the number of calls is checked
			n.Add(1)
			return errors.New("refused")
		})
		return n.Load()
	}
	if n := refused(); n != 1 {
		t.Errorf("%d calls in the first pass, want 1", n)
	}
	if _, err := c.Result(t.Context(), name, clock.Now(), 0, ErrUnfinished); err != nil {
		t.Fatal(err)
	}
	last := make(chan struct{})
	if done, err := c.SlowStart(clock, name, 4, 4, func(i int) error {
		if i == 3 {
			close(last)
		}
		<-last // a slow start would not reach this line
		return nil
	}); done != 4 || err != nil {
		t.Errorf("%d calls succeeded, error %v", done, err)
	}
	if _, err := c.Result(t.Context(), name, clock.Now(), 0, errors.Join(ErrUnfinished, errors.New("refused"))); err == nil {
		t.Error("the error is lost")
	}
	if n := refused(); n != 1 {
		t.Errorf("%d calls after a failure, want 1", n)
	}
}

func TestForEachReturnsEveryWordingOnce(t *testing.T) {
	err := ForEach(6, 2, func(i int) error {
		return []error{nil, errors.New("a"), errors.New("b")}[i%3]
	})
	if got := wording(err); got != "a\nb" {
		t.Errorf("error %q, want a and b once each", got)
	}
	if err := ForEach(6, 2, func(int) error { return nil }); err != nil {
		t.Errorf("error %v where none was", err)
	}
}

func wording(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
