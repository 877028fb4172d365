// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/rounds"
)

// A kill after each single binding of a gang. Another gang has become complete meanwhile, is older, and would fit into
// the room that the first still needs: it is admitted second.
func TestKilledBetweenTwoBindings(t *testing.T) {
	const size = 8
	after := []int{1, 4, 7}
	if rounds.Exhaustive() {
		after = []int{1, 2, 3, 4, 5, 6, 7}
	}
	c := newCluster(t, 1)
	o := c.observe()
	var toWhole []time.Duration
	for _, k := range after {
		gang, rival := fmt.Sprintf("gang-%d", k), fmt.Sprintf("rival-%d", k)
		rest := size - k
		o.expect(gang, size)
		o.expect(rival, rest)
		c.apply(c.group(rival).MinMember(int32(rest)))
		for _, pod := range names(rival, 1, rest) {
			c.create(c.pod(pod, rival, 1))
		}
		lift := c.refuseBindings(names(gang, k, size), nil)
		c.startWith(nil)
		c.createGang(gang, size, 1)
		c.untilBound(gang, k)
		c.scheduler.Kill()
		if n := c.boundNow(gang); n != k {
			t.Fatalf("%d pods are bound at the kill, want %d", n, k)
		}
		lift()
		c.create(c.pod(rival+"-0", rival, 1))
		started := time.Now()
		c.must(c.scheduler.Start(), "starting muster-scheduler")
		c.until("one of the gangs is whole", time.Minute, func(pods []*corev1.Pod) bool {
			return bound(pods, gang) == size || bound(pods, rival) == rest
		})
		if n := c.boundNow(gang); n != size {
			t.Fatalf("killed after binding %d of %d: a rival came before the rest of the gang, which has %d pods bound", k, size, n)
		}
		toWhole = append(toWhole, time.Since(started))
		c.untilAdmitted(gang)
		if n := c.boundNow(rival); n != 0 {
			t.Fatalf("the rival holds %d pods where there is no room", n)
		}
		c.deleteGang(gang)
		c.untilBound(rival, rest)
		c.deleteGang(rival)
		c.scheduler.Kill()
		o.forget(gang)
		o.forget(rival)
	}
	_, overlaps := o.stop()
	t.Logf("killed after binding %v of %d: the gang was completed first, %s after the start (median), %s (longest)", after, size, ms(median(toWhole)), ms(slices.Max(toWhole)))
	if overlaps > 0 {
		t.Errorf("gang and rival were seen bound in part at the same time %d times", overlaps)
	}
}

// The gap between the last binding and the write of Admitted.
func TestKilledBeforeAdmittedIsWritten(t *testing.T) {
	c := newCluster(t, 1)
	c.apply(c.group("gang").MinMember(4))
	lift := c.refuseStatus("gang")
	c.startWith(nil)
	for _, pod := range names("gang", 0, 4) {
		c.create(c.pod(pod, "gang", 1))
	}
	c.untilBound("gang", 4)
	c.scheduler.Kill()
	before := c.uids("gang")
	lift()
	c.restart()
	c.untilAdmitted("gang")
	if after := c.uids("gang"); !sameUIDs(before, after) {
		t.Errorf("pods before %v, after %v", before, after)
	}
}

// Gangs had their minimum, the status was not written, and a pod of each was deleted while the scheduler did not run:
// according to the objects they may be partial or not, so they are not released (docs/decisions, G11). The test also
// has a gang that is partial and is released after the same time: its release shows that the time is over.
func TestGangThatMayHaveBeenWholeIsNeverEnded(t *testing.T) {
	const size = 8
	gangs := []struct {
		name    string
		surplus int  // pods that wait beyond the minimum
		lost    int  // the pod that is deleted
		again   bool // a pod of the same name is created before the restart
	}{
		{name: "a-pod-is-gone", lost: 2},
		{name: "a-pod-is-gone-others-wait", lost: 0, surplus: 3},
		{name: "a-pod-was-recreated-under-its-name", lost: 1, again: true},
	}
	c := newCluster(t, 4)
	var all []string
	for _, g := range gangs {
		all = append(all, g.name)
		c.apply(c.group(g.name).MinMember(size))
	}
	liftStatus := c.refuseStatus(all...)
	liftBindings := c.refuseBindings(names("partial", 3, 4), nil)
	c.startWith(map[string]any{"repairTimeout": "2s"})
	owner := c.owner("gangs")
	for _, g := range all {
		for _, pod := range names(g, 0, size) {
			c.createOwned(c.pod(pod, g, 1), owner)
		}
	}
	for _, g := range all {
		c.untilBound(g, size)
	}
	c.createOwnedGang("partial", 4, 1)
	c.untilBound("partial", 3)
	c.scheduler.Kill()

	// No room for other pods: no gang can be completed.
	c.cordon(true, c.nodes...)
	before := map[string]map[string]types.UID{}
	for _, g := range gangs {
		lost := fmt.Sprintf("%s-%d", g.name, g.lost)
		c.delete(lost)
		for _, pod := range names(g.name, size, size+g.surplus) {
			c.createOwned(c.pod(pod, g.name, 1), owner)
		}
		if g.again {
			c.createOwned(c.pod(lost, g.name, 1), owner)
		}
		before[g.name] = c.uids(g.name)
	}
	liftStatus()
	liftBindings()
	c.restart()
	c.until("the partial gang is released", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, "partial") == 0 })
	for _, g := range all {
		if after := c.uids(g); len(after) != size-1 || !sameUIDs(before[g], after) {
			t.Errorf("pods of %s before %v, after %v", g, before[g], after)
		}
	}
	// They are refilled when there is room.
	c.cordon(false, c.nodes...)
	for _, g := range gangs {
		if !g.again && g.surplus == 0 {
			c.createOwned(c.pod(g.name+"-new", g.name, 1), owner)
		}
	}
	for _, g := range all {
		c.untilAdmitted(g)
	}
}

// A second scheduler starts after the first was killed, and finds from the objects alone two partial gangs, a third
// that is admitted and a fourth that waits, with room for all but the last.
func TestManyGangsAreFoundAgain(t *testing.T) {
	c := newCluster(t, 4)
	lift := c.refuseBindings(append(names("a", 5, 8), names("b", 1, 8)...), nil)
	for _, g := range []string{"whole", "a", "b"} { // before the start: b is planned before the nodes have refused the like pods of a
		c.createGang(g, 8, 1)
	}
	c.startWith(nil)
	c.untilAdmitted("whole")
	c.untilBound("a", 5)
	c.untilBound("b", 1)
	c.scheduler.Kill() // before the next gang is created: a gang that backs off after failed bindings keeps no room
	c.createGang("waits", 16, 1)
	before := c.uids("whole")
	lift()
	var err error
	c.scheduler, err = cp.StartMusterScheduler(c.ctx, controlplane.SchedulerOptions{Name: "muster-scheduler-2"})
	c.must(err, "starting another muster-scheduler")
	c.untilBound("a", 8)
	c.untilBound("b", 8)
	for _, g := range []string{"a", "b", "whole"} {
		c.untilAdmitted(g)
	}
	c.untilReason("waits", v2alpha2.ReasonInsufficientGPUs)
	if n := c.boundNow("waits"); n != 0 {
		t.Errorf("%d pods of a gang without room are bound", n)
	}
	if after := c.uids("whole"); !sameUIDs(before, after) {
		t.Errorf("pods before %v, after %v", before, after)
	}
}
