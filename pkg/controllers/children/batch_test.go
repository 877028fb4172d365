package children

import (
	"errors"
	"sync/atomic"
	"testing"
)

func TestInBatches(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		n, limit  int
		failFrom  int // calls with this number and above fail
		wantDone  int
		wantCalls int32
		wantErr   string
	}{
		"nothing to do":                          {n: 0, limit: 4, failFrom: 99},
		"all succeed":                            {n: 20, limit: 4, failFrom: 99, wantDone: 20, wantCalls: 20},
		"the first fails: nobody else is called": {n: 20, limit: 4, failFrom: 0, wantCalls: 1, wantErr: "refused"},
		"the batch that fails is the last":       {n: 20, limit: 4, failFrom: 2, wantDone: 2, wantCalls: 3, wantErr: "refused"},
		"a limit of one":                         {n: 3, limit: 1, failFrom: 2, wantDone: 2, wantCalls: 3, wantErr: "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			done, err := InBatches(tc.n, tc.limit, func(i int) error {
				calls.Add(1)
				if i >= tc.failFrom {
					return refused
				}
				return nil
			})
			if done != tc.wantDone || calls.Load() != tc.wantCalls {
				t.Errorf("%d calls, %d succeeded, want %d, %d", calls.Load(), done, tc.wantCalls, tc.wantDone)
			}
			if got := message(err); got != tc.wantErr {
				t.Errorf("error %q, want %q", got, tc.wantErr)
			}
		})
	}
}

func TestAtFullSpeedNobodyWaitsForTheSlowest(t *testing.T) {
	const n, limit = 40, 4
	last := make(chan struct{})
	done, err := InBatches(n, limit, func(i int) error {
		switch i {
		case limit: // of the first that are called at full speed
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
	done, err := InBatches(1000, 4, func(i int) error {
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

func TestAllTellsEveryWordingOnce(t *testing.T) {
	err := All(6, 2, func(i int) error {
		return []error{nil, errors.New("a"), errors.New("b")}[i%3]
	})
	if got := message(err); got != "a\nb" {
		t.Errorf("error %q, want a and b once each", got)
	}
	if err := All(6, 2, func(int) error { return nil }); err != nil {
		t.Errorf("error %v where none was", err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
