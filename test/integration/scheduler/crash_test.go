package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// kill -9 at a random instant of the admission of several gangs, then a restart: every gang ends whole, and none was bound
// in part for longer than the restart took.
func TestKilledAtRandomInstants(t *testing.T) {
	const nodes, gangs, perGang = 8, 8, 8
	c := newCluster(t, nodes)
	o := c.observe()
	n := rounds(t)
	random := rand.New(rand.NewPCG(9, 9))
	var restarts []time.Duration
	for round := range n {
		c.start()
		var names []string
		for i := range gangs {
			g := fmt.Sprintf("g-%d-%d", round, i)
			names = append(names, g)
			o.expect(g, perGang)
			c.apply(c.group(g).MinMember(perGang))
		}
		created := make(chan struct{})
		go func() {
			defer close(created)
			for i := range perGang {
				for _, g := range names {
					c.create(c.pod(fmt.Sprintf("%s-%d", g, i), g, 1))
				}
			}
		}()
		// The last pods of all gangs come at about the same time; the kill falls somewhere between the first binding and
		// the last.
		at := random.IntN(gangs * perGang)
		c.until(fmt.Sprintf("%d pods are bound", at), time.Minute, func(pods []*corev1.Pod) bool {
			n := 0
			for _, p := range pods {
				if p.Spec.NodeName != "" {
					n++
				}
			}
			return n >= at
		})
		c.scheduler.Kill()
		<-created
		killed := time.Now()
		c.must(cp.Restart(c.ctx, c.scheduler), "restarting muster-scheduler")
		for _, g := range names {
			c.untilBound(g, perGang)
		}
		restarts = append(restarts, time.Since(killed))
		for _, g := range names {
			c.untilAdmitted(g)
			o.forget(g)
		}
		for _, g := range names {
			c.deleteGang(g)
		}
		c.scheduler.Kill()
	}
	partials, _ := o.stop()
	slices.Sort(restarts)
	t.Logf("%d kills: every gang ended whole; %d times a gang was seen bound in part, at the longest for %s; kill to all whole %s (median)",
		n, len(partials), longest(partials).Round(time.Millisecond), restarts[len(restarts)/2].Round(time.Millisecond))
	for _, p := range partials {
		if p.ended != "whole" {
			t.Errorf("gang %s was bound in part for %s and then released, though there was room for it", p.gang, p.duration)
		}
		if p.duration > 30*time.Second {
			t.Errorf("gang %s was bound in part for %s, longer than the repair timeout", p.gang, p.duration)
		}
	}
}
