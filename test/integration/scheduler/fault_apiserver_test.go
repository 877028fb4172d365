// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/rounds"
)

// The API server, or etcd, fails during the admission of several gangs. The scheduler keeps running, and all gangs are
// admitted soon after the recovery, including one that is created then.
func TestAPIServerAwayDuringAdmission(t *testing.T) {
	outage := 2 * time.Second
	if rounds.Exhaustive() {
		outage = 30 * time.Second
	}
	tests := []struct {
		name    string
		server  *controlplane.Process
		stop    func()
		goneFor time.Duration
		at      string // the binding that is in flight at the failure
	}{
		{"API server", cp.APIServer, func() { cp.APIServer.Terminate(2 * time.Second) }, outage, "gang-1-5"},
		{"etcd", cp.Etcd, cp.Etcd.Kill, outage / 2, "gang-2-3"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			const gangs, size = 4, 8
			c := newCluster(t, gangs+1)
			p := c.startBehindProxy(map[string]any{"bindParallelism": 1})
			pid := c.scheduler.PID()
			o := c.observe()
			all := names("gang", 0, gangs)
			proceed := c.createUntilBinding(p, o, all, size, tc.at)
			tc.stop()
			proceed()
			<-time.After(tc.goneFor) // the outage itself
			c.must(cp.Restart(c.ctx, tc.server), "starting it again")
			back := time.Now()
			c.untilAnswers()
			for _, g := range all {
				c.untilBound(g, size)
			}
			whole := time.Since(back)
			for _, g := range all {
				c.untilAdmitted(g)
			}
			c.createGang("later", size, 1)
			c.untilBound("later", size)
			c.untilAdmitted("later")
			later := time.Since(back)
			if !c.scheduler.Running() || c.scheduler.PID() != pid {
				t.Error("muster-scheduler did not outlive it")
			}
			partials, _ := o.stop()
			for _, p := range partials {
				if p.ended != "whole" {
					t.Errorf("gang %s was bound in part for %s and then released", p.gang, p.duration)
				}
			}
			t.Logf("%s away for %s: all whole %s after it was back, one that came then admitted after %s; bound in part at the longest for %s",
				tc.name, tc.goneFor, ms(whole), ms(later), ms(longest(partials)))
			c.must(cp.Restart(c.ctx, cp.ControllerManager), "restarting kube-controller-manager") // the next test needs it
		})
	}
}

// createUntilBinding creates gangs whose last pods arrive at about the same time, and returns when the first attempt to
// bind pod at is in flight. The attempt waits until proceed is called.
func (c *cluster) createUntilBinding(p *proxy, o *observer, gangs []string, size int, at string) (proceed func()) {
	c.t.Helper()
	held := make(chan struct{})
	arrived := p.decide(at, func(w http.ResponseWriter, r *http.Request, attempt int) {
		if attempt == 1 {
			<-held
		}
		p.api.ServeHTTP(w, r)
	})
	for _, g := range gangs {
		o.expect(g, size)
		c.apply(c.group(g).MinMember(int32(size)))
	}
	for i := range size {
		for _, g := range gangs {
			c.create(c.pod(fmt.Sprintf("%s-%d", g, i), g, 1))
		}
	}
	c.untilArrived(arrived, 1, time.Minute)
	if c.partial(gangs, size) == 0 {
		c.t.Errorf("no gang is bound in part when %s is about to be bound", at)
	}
	return func() { close(held) }
}

// untilAnswers waits until the API server and its storage answer: it is ready a moment before.
func (c *cluster) untilAnswers() {
	c.t.Helper()
	c.until("the API server answers", time.Minute, func([]*corev1.Pod) bool { return true })
}
