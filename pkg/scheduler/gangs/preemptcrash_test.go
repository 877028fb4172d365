// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/test/wrappers"
)

// Two gangs preempt at the same time a whole gang, pods above the minimum of another one, and pods without a gang. The
// process that leads dies before its first write, before the second one, and so on, thus between any two stages of
// both: another one starts half a minute later, or one that has watched leads at once. In the end both gangs run, each
// other one has its minimum or nothing, and no mark is left.
func TestTheLeaderDiesBetweenAnyTwoStages(t *testing.T) {
	t.Parallel()
	for name, failsOver := range map[string]bool{"killed and started again": false, "another one takes over": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stages := sets.New[evictions.Stage]()
			deaths := 0
			for died := true; died; deaths++ {
				died = false
				t.Run(fmt.Sprintf("before write %d", deaths), func(t *testing.T) {
					d := newDyingMarket(t, deaths, failsOver)
					d.runFor(8 * time.Minute)
					d.checkSettled()
					d.checkWhole()
					d.checkStarted()
					died = d.left < 0 // else it had less to write
					stages = stages.Union(d.stagesAtDeath)
				})
			}
			for s := evictions.Decided; s < evictions.Ended; s++ {
				if !stages.Has(s) && s != evictions.Announced { // which lasts until the next attempt, without a write
					t.Errorf("the process did not die at stage %s", s)
				}
			}
			t.Logf("%d deaths", deaths-1)
		})
	}
}

// dyingMarket is a market whose leader dies before a write.
type dyingMarket struct {
	*faultyMarket
	left          int // writes before it dies; negative: it has died
	standby       *Registry
	stagesAtDeath sets.Set[evictions.Stage]
	owed          map[*corev1.Pod]string // marked pods of gangs of which a victim was deleted before the death, and the plan by which they end
}

func newDyingMarket(t *testing.T, writes int, failsOver bool) *dyingMarket {
	d := &dyingMarket{faultyMarket: newFaultyMarket(t, 1), left: writes, stagesAtDeath: sets.New[evictions.Stage](), owed: map[*corev1.Pod]string{}}
	d.stop, d.nodes = d.start, map[string]int{"n0": 4, "n1": 4, "n2": 4}
	clear(d.arrive)
	clear(d.pods)
	d.createGang(keyNamed("whole"), 4, 4, 0)
	d.runFor(time.Second)
	d.createGang(keyNamed("surplus"), 2, 4, 1)
	d.runFor(5 * time.Second)
	for i := range 4 {
		name := fmt.Sprintf("plain.%d", i)
		d.pods[types.UID(name)] = wrappers.MakePod(name, "ns").UID(name).Priority(0).Node("n2").Obj()
	}
	d.room = nil
	if n := d.boundOf(keyNamed("whole")) + d.boundOf(keyNamed("surplus")); n != 8 {
		t.Fatalf("%d pods of the gangs are bound", n)
	}
	if failsOver {
		d.standby = d.newRegistry()
		for _, group := range d.groups {
			d.standby.SetGroup(group, d.now)
		}
		for _, pod := range d.pods {
			d.standby.SetPod(pod, d.now)
		}
	}
	d.dies = d.die
	d.createGang(keyNamed("first"), 4, 4, 5)
	d.createGang(keyNamed("second"), 4, 4, 6)
	return d
}

// die ends the process, if it is its time.
func (d *dyingMarket) die() bool {
	if d.left--; d.left != -1 {
		return false
	}
	for _, g := range d.r.gangs {
		if g.preemption != nil {
			d.stagesAtDeath.Insert(g.preemption.Stage())
		}
	}
	for _, pod := range d.pods {
		plan, _ := planOf(pod)
		isOfGang := func(other *corev1.Pod) bool { return keyOf(pod).Name != "" && keyOf(other) == keyOf(pod) }
		if pod.DeletionTimestamp == nil && slices.ContainsFunc(d.deleted[plan], isOfGang) {
			d.owed[pod] = plan
		}
	}
	d.count("the leader dies")
	d.excuseAll()
	d.jobs = nil
	if d.standby == nil {
		d.r = d.newRegistry() // that of nobody
		for end := d.now.Add(30 * time.Second); d.now.Before(end); d.now = d.now.Add(100 * time.Millisecond) {
			d.endPods()
		}
		d.r = d.newRegistry()
	} else {
		d.r = d.standby
		for uid := range d.r.members {
			if d.pods[uid] == nil {
				d.r.RemovePod(uid, d.now)
			}
		}
	}
	d.lead()
	return true
}

// checkStarted: both preemptors run, and of the others the minimum does or nothing. What had begun to end ends by the
// same plan.
func (d *dyingMarket) checkStarted() {
	d.t.Helper()
	for pod, plan := range d.owed {
		if !slices.ContainsFunc(d.deleted[plan], func(other *corev1.Pod) bool { return other.UID == pod.UID }) {
			d.t.Errorf("%s does not end by plan %s, as others of its gang", pod.Name, plan)
		}
	}
	plain := 0
	for _, pod := range d.pods {
		if keyOf(pod) == (Key{}) && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
			plain++
		}
	}
	first, second, whole, surplus := d.boundOf(keyNamed("first")), d.boundOf(keyNamed("second")), d.boundOf(keyNamed("whole")), d.boundOf(keyNamed("surplus"))
	if first != 4 || second != 4 || whole != 0 && whole != 4 || surplus != 0 && surplus < 2 || whole+surplus+plain > 4 {
		d.t.Errorf("of the preemptors %d and %d pods are bound, of the others %d, %d, and %d without a gang", first, second, whole, surplus, plain)
	}
}
