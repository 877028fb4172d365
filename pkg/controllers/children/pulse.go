// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Pulse finds out whether the process has stood still, as a virtual machine that was paused. Its caches then show what
// was true before, one event after the other, and another process may lead. It is safe for concurrent use; nil: the
// process never stands still. Source: docs/decisions, T9.
type Pulse struct {
	limit time.Duration
	clock clock.PassiveClock

	mu    sync.Mutex
	last  time.Time // guarded by mu; the latest beat, zero: none yet
	until time.Time // guarded by mu; nothing is done before
}

// beatPeriod is the time between two beats.
const beatPeriod = time.Second

// NewPulse returns a Pulse. A process has stood still if it had no beat for longer than limit: the time after which a
// leader that cannot renew its Lease gives up the lead. As long again it does nothing: by then it knows whether it
// leads, and its caches have followed.
func NewPulse(limit time.Duration, clock clock.PassiveClock) *Pulse {
	return &Pulse{limit: limit, clock: clock}
}

// Start implements manager.Runnable.
func (p *Pulse) Start(ctx context.Context) error {
	ticker := time.NewTicker(beatPeriod)
	defer ticker.Stop()
	for {
		p.Beat(p.clock.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. A process may stand still before it leads.
func (p *Pulse) NeedLeaderElection() bool { return false }

// Beat records that the process is alive at now.
func (p *Pulse) Beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && now.Sub(p.last) > p.limit {
		p.until = now.Add(p.limit)
	}
	p.last = now
}

// wait returns for how long nothing is to be done, 0: go on.
func (p *Pulse) wait() time.Duration {
	if p == nil {
		return 0
	}
	now := p.clock.Now()
	p.Beat(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.until.Sub(now))
}

// errStoodStill returns the error of a write in a pass during which the process has stood still: a conflict, after
// which the pass is retried.
func errStoodStill(name string) error {
	return apierrors.NewConflict(schema.GroupResource{}, name, errors.New("the process has stood still, and its caches may be behind"))
}

// awake is a Reconciler that makes no pass before the process has recovered from standing still.
type awake struct {
	reconcile.Reconciler
	pulse *Pulse
}

// Awake returns a Reconciler that does nothing for a while after the process has stood still.
func (c *Client) Awake(r reconcile.Reconciler) reconcile.Reconciler { return awake{r, c.pulse} }

// Reconcile implements reconcile.Reconciler.
func (a awake) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if wait := a.pulse.wait(); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return a.Reconciler.Reconcile(ctx, request)
}
