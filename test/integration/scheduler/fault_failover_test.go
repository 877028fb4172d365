// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/rounds"
)

// Two muster-schedulers with a short lease; the leader is killed during an admission, or suspended for longer than its
// lease and resumed. The other finishes the admission, and they do not write at the same time.
func TestFailover(t *testing.T) {
	const gangs, size = 4, 8
	c := newCluster(t, gangs)
	o := c.observe()
	n := 2 // one killed, one stopped
	if rounds.Exhaustive() {
		n = 10
	}
	random := rand.New(rand.NewPCG(7, 7))
	config := schedulerConfig(t, settings{
		args:  map[string]any{"bindParallelism": 1},
		lease: map[string]any{"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms"},
	})
	started := 0
	// Every start has a token of its own, which distinguishes it in the audit log.
	start := func() *controlplane.Process {
		started++
		p, err := cp.StartMusterScheduler(c.ctx, controlplane.SchedulerOptions{
			Name: fmt.Sprintf("muster-scheduler-%d", started), Config: config, LeaderElect: true,
		})
		c.must(err, "starting muster-scheduler")
		t.Cleanup(p.Kill)
		return p
	}
	err := cp.Client().CoordinationV1().Leases(controlplane.MusterNamespace).Delete(c.ctx, "muster-scheduler", metav1.DeleteOptions{})
	c.must(ignoreNotFound(err), "deleting the lock of an earlier test")
	since := time.Now()
	leader := start()
	holder := c.untilLeader("")
	var took, admitted []time.Duration
	type woken struct {
		credential string
		at         time.Time
	}
	var former []woken // leaders that were stopped and woken
	for round := range n {
		standby := start()
		var all []string
		for i := range gangs {
			g := fmt.Sprintf("g-%d-%d", round, i)
			all = append(all, g)
			o.expect(g, size)
			c.apply(c.group(g).MinMember(size))
		}
		for i := range size {
			for _, g := range all {
				c.create(c.pod(fmt.Sprintf("%s-%d", g, i), g, 1))
			}
		}
		at := random.IntN(gangs * size)
		c.until(fmt.Sprintf("%d pods are bound", at), time.Minute, func(pods []*corev1.Pod) bool { return len(boundPods(pods)) >= at })
		died := time.Now()
		if round%2 == 0 {
			leader.Kill()
		} else {
			c.must(syscall.Kill(leader.PID(), syscall.SIGSTOP), "stopping the leader")
		}
		writer := c.lastWriter(since)
		holder = c.untilLeader(holder)
		if round%2 == 1 {
			former = append(former, woken{writer, time.Now()})
			c.must(syscall.Kill(leader.PID(), syscall.SIGCONT), "waking the former leader")
		}
		for _, g := range all {
			c.untilBound(g, size)
		}
		took = append(took, time.Since(died))
		for _, g := range all {
			c.untilAdmitted(g)
			o.forget(g)
		}
		admitted = append(admitted, time.Since(died))
		for _, g := range all {
			c.deleteGang(g)
		}
		<-leader.Done() // the resumed process exits by itself, because it has lost its lease
		leader = standby
	}
	partials, _ := o.stop()

	// One writer after another: no writes of an earlier credential follow those of a later one. A process that was
	// suspended is the only exception: it does not know about its loss when it is resumed, has the time of a renewal
	// like any leader of Kubernetes, and its writes are refused or correct.
	var writers []string
	writes := c.writes(since)
	late := 0
	for _, w := range writes {
		was := slices.IndexFunc(former, func(f woken) bool { return f.credential == w.credential })
		switch {
		case len(writers) > 0 && writers[len(writers)-1] == w.credential:
		case !slices.Contains(writers, w.credential):
			writers = append(writers, w.credential)
		case was >= 0 && w.at.Sub(former[was].at) < 3*time.Second:
			late++
		default:
			t.Errorf("%s %s %s at %s by a scheduler that had lost the lead", w.verb, w.resource, w.name, w.at)
		}
	}
	if len(writers) != n+1 {
		t.Errorf("%d schedulers wrote, want %d", len(writers), n+1)
	}
	t.Logf("%d failovers (lease 4s): every gang whole %s after the leader was lost (median), %s (longest), status written after %s; bound in part at the longest for %s; %d writers, one after another, %d writes, %d of them by woken leaders before they knew",
		n, ms(median(took)), ms(slices.Max(took)), ms(median(admitted)), ms(longest(partials)), len(writers), len(writes), late)
	for _, p := range partials {
		if p.ended != "whole" {
			t.Errorf("gang %s was bound in part for %s and then released", p.gang, p.duration)
		}
	}
}

// lastWriter returns the credential that wrote last.
func (c *cluster) lastWriter(since time.Time) string {
	c.t.Helper()
	writes := c.writes(since)
	if len(writes) == 0 {
		return ""
	}
	return writes[len(writes)-1].credential
}

// untilLeader waits until another process than before leads, and returns its identity.
func (c *cluster) untilLeader(before string) string {
	c.t.Helper()
	holder := ""
	err := controlplane.Until(c.ctx, cp.Client().CoordinationV1().Leases(controlplane.MusterNamespace), metav1.ListOptions{},
		func(leases []*coordinationv1.Lease) bool {
			for _, l := range leases {
				if l.Name == "muster-scheduler" && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "" && *l.Spec.HolderIdentity != before {
					holder = *l.Spec.HolderIdentity
					return true
				}
			}
			return false
		})
	c.must(err, "waiting for a leader")
	return holder
}
