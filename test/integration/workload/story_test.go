// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
)

// The events of a set report its availability.
func TestEventsOfASet(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(service2)
	notes := w.untilEvents("Admitted", "Available")
	if !strings.HasPrefix(notes["Admitted"], "Normal ") || !strings.HasPrefix(notes["Available"], "Normal 1 of 1 replica is available") {
		t.Errorf("events %q", notes)
	}
	w.kubectl("scale", "pcs", "s", "--replicas=2")
	notes = w.untilEvents("Scaled")
	if notes["Scaled"] != "Normal Scaled from 1 to 2 replicas" {
		t.Errorf("events %q", notes)
	}
	if described := w.kubectl("describe", "pcs", "s"); !strings.Contains(described, "Scaled from 1 to 2 replicas") {
		t.Errorf("kubectl describe does not say so:\n%s", described)
	}
}
