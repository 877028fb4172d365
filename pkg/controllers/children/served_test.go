// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestServed: a source starts once, when the API server serves its kind; until then the controller does not wait for it.
func TestServed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		installed  time.Duration // when the CRD is; negative: never
		ends       time.Duration // of the controller; 0: it runs on
		wantStarts time.Duration // negative: never
	}{
		"at the start":                    {wantStarts: 0},
		"later":                           {installed: 4*servedCheckPeriod + time.Second, wantStarts: 5 * servedCheckPeriod},
		"never":                           {installed: -1, wantStarts: -1},
		"after the controller has ended":  {installed: 2 * servedCheckPeriod, ends: servedCheckPeriod, wantStarts: -1},
		"before the controller has ended": {installed: servedCheckPeriod / 2, ends: 2 * servedCheckPeriod, wantStarts: servedCheckPeriod},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.ends > 0 {
					time.AfterFunc(tc.ends, cancel)
				}
				var starts atomic.Int64
				at := time.Duration(-1)
				s := served{
					source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
						starts.Add(1)
						at = time.Since(begin)
						return nil
					}),
					func() bool { return tc.installed >= 0 && time.Since(begin) >= tc.installed },
				}
				if err := s.Start(ctx, nil); err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(begin); waited != 0 {
					t.Errorf("the controller waited %v", waited)
				}
				time.Sleep(20 * servedCheckPeriod) // of the bubble's clock
				synctest.Wait()
				if at != tc.wantStarts || starts.Load() > 1 {
					t.Errorf("started %d times, at %v, want %v", starts.Load(), at, tc.wantStarts)
				}
			})
		})
	}
}
