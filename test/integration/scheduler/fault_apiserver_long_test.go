// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-project/muster/test/rounds"
)

// The API server and the scheduler are killed together during the admission of several gangs, as when their machine
// fails. The new scheduler starts before the API server is back, or after it.
func TestKilledTogetherWithTheAPIServer(t *testing.T) {
	const gangs, size = 4, 8
	outage := 4 * time.Second
	if rounds.Exhaustive() {
		outage = 60 * time.Second
	}
	for _, tc := range []struct {
		name        string
		beforeStart time.Duration // from the kill to the start of the scheduler
	}{
		{"the scheduler starts first", outage / 4},
		{"the API server starts first", outage},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, gangs)
			p := c.startBehindProxy(map[string]any{"bindParallelism": 1})
			o := c.observe()
			all := names("gang", 0, gangs)
			proceed := c.createUntilBinding(p, o, all, size, "gang-1-5")
			cp.APIServer.Kill()
			c.scheduler.Kill()
			proceed()
			<-time.After(tc.beforeStart) // the outage itself, as below
			restarts := 0
			if tc.beforeStart < outage {
				c.must(c.scheduler.Start(), "starting muster-scheduler")
				<-time.After(outage - tc.beforeStart)
			}
			c.must(cp.Restart(c.ctx, cp.APIServer), "starting the API server")
			back := time.Now()
			if !c.scheduler.Running() { // as a kubelet does
				restarts++
				c.must(c.scheduler.Start(), "starting muster-scheduler")
			}
			c.untilAnswers()
			for _, g := range all {
				c.untilBound(g, size)
			}
			whole := time.Since(back)
			for _, g := range all {
				c.untilAdmitted(g)
			}
			partials, _ := o.stop()
			for _, p := range partials {
				if p.ended != "whole" {
					t.Errorf("gang %s was bound in part for %s and then released", p.gang, p.duration)
				}
			}
			if whole > 30*time.Second {
				t.Errorf("gangs were bound in part for %s after the API server was back, longer than the repair timeout", whole)
			}
			t.Logf("both away for %s: all whole %s after the API server was back (%d starts of the scheduler then)", outage, ms(whole), restarts)
			c.must(cp.Restart(c.ctx, cp.ControllerManager), "restarting kube-controller-manager") // the next test needs it
		})
	}
}

// While the API server is down, the repair timeout of a partial gang does not advance: the gang is completed after the
// recovery, and no pod of it is released, although the outage was longer than the timeout.
func TestRepairClockStopsWhileTheAPIServerIsAway(t *testing.T) {
	// The repair timeout is longer than the longest back-off, which the outage may drive up to 10 s.
	timeout, outage := 13*time.Second, 14*time.Second
	if rounds.Exhaustive() {
		timeout, outage = 16*time.Second, 18*time.Second
	}
	c := newCluster(t, 1)
	p := c.startBehindProxy(map[string]any{"repairTimeout": timeout.String()})
	var refused atomic.Bool
	refused.Store(true)
	// Not by a policy: after its recovery the API server would continue to refuse until it observes that the policy is
	// deleted.
	p.decide("gang-3", func(w http.ResponseWriter, r *http.Request, _ int) {
		if refused.Load() {
			http.Error(w, "refused by the test", http.StatusInternalServerError)
			return
		}
		p.api.ServeHTTP(w, r)
	})
	c.createOwnedGang("gang", 4, 1)
	c.untilBound("gang", 3)
	before := c.uids("gang")
	cp.APIServer.Terminate(2 * time.Second)
	refused.Store(false)
	<-time.After(outage) // the outage itself
	c.must(cp.Restart(c.ctx, cp.APIServer), "starting the API server")
	back := time.Now()
	c.untilAnswers()
	c.untilBound("gang", 4)
	took := time.Since(back)
	after := c.uids("gang")
	delete(after, "gang-3")
	if !sameUIDs(before, after) {
		t.Errorf("pods before %v, after %v", before, after)
	}
	c.untilAdmitted("gang")
	t.Logf("repair timeout %s, API server away for %s: completed %s after it was back", timeout, outage, ms(took))
	c.must(cp.Restart(c.ctx, cp.ControllerManager), "restarting kube-controller-manager") // the next test needs it
}
