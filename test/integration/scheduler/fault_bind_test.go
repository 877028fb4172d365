// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// The third of eight bindings fails for a while: other gangs are scheduled meanwhile, the binding is retried with
// back-off, and the gang is admitted when the cause is removed. None of its pods is lost.
func TestBindingFailsForOneOfEight(t *testing.T) {
	c := newCluster(t, 8) // enough to try another one each time: where there is none is TestFailingBindingOfBarePodsIsTriedSeldom
	lift := c.refuseBindings([]string{"gang-2"}, nil)
	c.start()
	c.createGang("gang", 8, 1)
	c.untilBound("gang", 7)
	since := time.Now()
	before := c.uids("gang")
	s := c.untilSays("gang", v2alpha2.ReasonBackingOff, "binding pod "+c.namespace+"/gang-2 to node ", "denied request")
	t.Logf("%s: %s", s.Reason, s.Summary)

	c.createGang("other", 4, 1)
	c.untilBound("other", 4)
	c.create(c.pod("plain", "", 1))
	c.untilScheduled("plain")

	c.untilRefusedBindings(4, since, 30*time.Second)
	took := time.Since(since)
	writes := c.writes(since)
	all, refused := count(writes, "pods/binding")
	lift()
	lifted := time.Now()
	c.untilBound("gang", 8)
	healed := time.Since(lifted)
	c.untilAdmitted("gang")
	after := c.uids("gang")
	delete(after, "gang-2")
	if !sameUIDs(before, after) {
		t.Errorf("pods before %v, after %v", before, after)
	}
	t.Logf("in %s: %d bindings, %d of them refused, %d writes in all; whole %s after the reason had gone", ms(took), all, refused, len(writes), ms(healed))
}

// untilScheduled waits until a pod without a gang has a node.
func (c *cluster) untilScheduled(name string) {
	c.t.Helper()
	c.until("pod "+name+" has a node", time.Minute, func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			if p.Name == name {
				return p.Spec.NodeName != ""
			}
		}
		return false
	})
}

// The API server refuses one binding of a sub-group above the minimum for ever. What was bound of it is given back
// after the repair timeout, for a gang that has room only then; the minimum runs on. Later the sub-group starts as a
// unit.
func TestATornUnitIsGivenBack(t *testing.T) {
	c := newCluster(t, 1) // 8 GPUs
	lift := c.refuseBindings([]string{"y-2"}, nil)
	c.startWith(map[string]any{"repairTimeout": "4s"})
	c.apply(c.group("gang").MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 3))
	owner := c.owner("gang")
	c.createOwned(c.pod("x-0", "gang", 2).SubGroup("x"), owner)
	c.untilAdmitted("gang")
	for _, name := range numbered("y", 3) {
		c.createOwned(c.pod(name, "gang", 2).SubGroup("y"), owner)
	}
	c.untilBound("gang", 3)
	since := time.Now()
	minimum := c.get("x-0").UID

	c.createGang("waits", 3, 2)
	c.untilBound("waits", 3)
	if took := time.Since(since); took < 3*time.Second {
		t.Errorf("given back after %s, which is less than the repair timeout", took)
	}
	if left := c.uids("gang"); left["x-0"] != minimum || left["y-0"] != "" || left["y-1"] != "" {
		t.Errorf("bound pods %v are left, want x-0 alone", left)
	}
	t.Logf("%s", c.untilEvent("gang", v2alpha2.EventPartialGangReleased, 20*time.Second))

	lift()
	for _, name := range numbered("y", 2) {
		c.createOwned(c.pod(name, "gang", 2).SubGroup("y"), owner)
	}
	c.deleteGang("waits")
	c.untilBound("gang", 4)
	c.untilStatus("gang", "says that y is admitted", func(s v2Status) bool {
		for _, g := range s.SubGroups {
			if g.Name == "y" {
				return g.Admitted
			}
		}
		return false
	})
	c.stillSchedules()
}
