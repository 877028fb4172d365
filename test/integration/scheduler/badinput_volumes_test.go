// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// Members share one claim that is not bound yet, and fit on no single node (docs/decisions, G18).
func TestMembersThatShareAnUnboundClaim(t *testing.T) {
	c := newCluster(t, 3)
	c.startQuick()
	class := c.storageClass()
	c.claim("data", class, corev1.ReadWriteMany)
	c.apply(c.group("g").MinMember(2))
	for _, n := range numbered("g", 2) {
		c.create(c.pod(n, "g", 8).Claim("data"))
	}
	s := c.untilStatus("g", "says to bind the claim first", func(s v2Status) bool {
		return containsAll(condition(s, v2alpha2.ConditionSatisfied).Message, "data", "bind it first")
	})
	t.Logf("%s: %s", s.Reason, s.Summary)
	c.notBound("g-0", "g-1")
	c.stillSchedules()

	// Bound before the attempt it is no obstacle: another pod uses it, and the gang starts.
	c.create(c.pod("first", "", 0).CPU("100m").Claim("data"))
	c.untilNodeChosen("data")
	c.provision("data")
	c.untilPodBound("first")
	c.untilBound("g", 2)
	c.untilSatisfied("g")
}

// If one node can serve them all, that is where they go.
func TestMembersThatShareAnUnboundClaimOnOneNode(t *testing.T) {
	c := newCluster(t, 4)
	c.startQuick()
	class := c.storageClass()
	c.claim("data", class, corev1.ReadWriteOnce)
	c.apply(c.group("g").MinMember(4))
	for _, n := range numbered("g", 4) {
		c.create(c.pod(n, "g", 2).Claim("data"))
	}
	node := c.untilNodeChosen("data")
	c.provision("data")
	c.untilBound("g", 4)
	c.untilSatisfied("g")
	for _, p := range c.pods() {
		if p.Spec.NodeName != node {
			t.Errorf("pod %s is on %s, its claim on %s", p.Name, p.Spec.NodeName, node)
		}
	}
	c.stillSchedules()
}

// A gang with a claim that does not exist waits, with that reason; it starts when the claim exists.
func TestMemberWhoseClaimDoesNotExist(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("g").MinMember(2))
	c.create(c.pod("g-0", "g", 1))
	c.create(c.pod("g-1", "g", 1).Claim("data"))
	c.untilStatus("g", "names the claim", func(s v2Status) bool {
		return s.Reason != "" && containsAll(condition(s, v2alpha2.ConditionSatisfied).Message, "1 of 2", `"data" not found`)
	})
	c.notBound("g-0", "g-1")
	c.stillSchedules()
	c.claim("data", c.storageClass(), corev1.ReadWriteOnce)
	c.untilNodeChosen("data")
	c.provision("data")
	c.untilBound("g", 2)
	c.untilSatisfied("g")
}
