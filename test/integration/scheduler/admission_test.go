// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/test/rounds"
)

func TestGangIsBoundWholeOrNotAtAll(t *testing.T) {
	c := newCluster(t, 4)
	c.start()
	c.createGang("fits", 8, 4)
	c.untilBound("fits", 8)
	c.untilAdmitted("fits")

	c.createGang("waits", 2, 8)
	s := c.untilStatus("waits", "says why it waits", func(s v2Status) bool { return s.Reason != "" && s.Reason != "WaitingForPods" })
	t.Logf("%s: %s", s.Reason, s.Summary)
	if n := c.boundNow("waits"); n != 0 {
		t.Fatalf("%d pods of a gang that cannot be placed are bound", n)
	}
	c.addNodes(2)
	c.untilBound("waits", 2)
	c.untilAdmitted("waits")
}

// Two gangs of 60 % of the cluster each, submitted pod by pod in interleaved order: one is admitted while the other has
// no pod bound, then the other is admitted.
func TestTwoGangsOfSixtyPercentNeverDeadlock(t *testing.T) {
	const nodes, perGang = 5, 24 // 40 GPUs, 60 % = 24
	c := newCluster(t, nodes)
	c.start()
	o := c.observe()
	n := rounds.Number()
	for round := range n {
		names := []string{fmt.Sprintf("a-%d", round), fmt.Sprintf("b-%d", round)}
		for _, g := range names {
			o.expect(g, perGang)
			c.apply(c.group(g).MinMember(perGang))
		}
		// A random interleaving, the same in every run of round n.
		random := rand.New(rand.NewPCG(uint64(round), 60))
		left := []int{perGang, perGang}
		for left[0]+left[1] > 0 {
			g := random.IntN(2)
			if left[g] == 0 {
				g = 1 - g
			}
			left[g]--
			c.create(c.pod(fmt.Sprintf("%s-%d", names[g], left[g]), names[g], 1))
		}
		var winner, loser string
		c.until("one of the gangs is whole", time.Minute, func(pods []*corev1.Pod) bool {
			for i, g := range names {
				if bound(pods, g) == perGang {
					winner, loser = g, names[1-i]
					return true
				}
			}
			return false
		})
		c.untilStatus(loser, "says why it waits", func(s v2Status) bool { return s.Reason == "InsufficientGPUs" })
		if held := c.boundNow(loser); held != 0 {
			t.Fatalf("round %d: %s is whole and %s holds %d pods", round, winner, loser, held)
		}
		c.deleteGang(winner)
		c.untilBound(loser, perGang)
		for _, g := range names {
			o.forget(g)
		}
		c.deleteGang(loser)
	}
	partials, overlaps := o.stop()
	t.Logf("%d rounds: no deadlock; %d times a gang was visible as partly bound while its own bindings were posted, at the longest for %s; both in part at once: %d times",
		n, len(partials), longest(partials).Round(time.Millisecond), overlaps)
	if overlaps > 0 {
		t.Errorf("two gangs that never were whole were seen bound in part at the same time %d times", overlaps)
	}
	for _, p := range partials {
		if p.ended != "whole" {
			t.Errorf("gang %s was bound in part for %s and then released", p.gang, p.duration)
		}
	}
}
