// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

const rackLabel = "topology.example.com/rack"

func preferRack() *v2alpha2.TopologyConstraint {
	return &v2alpha2.TopologyConstraint{PreferredTopologyLevel: rackLabel}
}

// A PodGroup says in which racks its sub-groups run, where users look for it; and it follows pods that move, across a
// restart of the scheduler, too.
func TestWhereAGangRuns(t *testing.T) {
	c := newCluster(t, 8)
	for i, node := range c.nodes {
		c.change(node, func(n *corev1.Node) {
			n.Labels[rackLabel] = "r" + string(rune('1'+i/2)) // two nodes per rack
		})
	}
	c.startQuick()
	minimum := int32(2)
	c.apply(c.group("llm").
		Append(v2alpha2.SubGroup{Name: "decode", MinMember: &minimum, TopologyConstraint: preferRack()}).
		Append(v2alpha2.SubGroup{Name: "prefill", MinMember: &minimum, TopologyConstraint: preferRack()}).
		Append(v2alpha2.SubGroup{Name: "router", MinMember: &minimum}))
	// Node selectors decide where the pods run, whatever the scheduler does about the level.
	create := func(name, leaf string, node int) {
		c.create(c.pod(name, "llm", 2).SubGroup(leaf).NodeSelector(corev1.LabelHostname, c.nodes[node]))
	}
	create("decode-0", "decode", 2)
	create("decode-1", "decode", 3)
	create("prefill-0", "prefill", 0)
	create("prefill-1", "prefill", 7)
	create("router-0", "router", 0)
	create("router-1", "router", 5)
	placed := func(want string) func(v2Status) bool {
		return func(s v2Status) bool { return s.Placement == want && s.Scheduled == "6/6" }
	}
	c.untilStatus("llm", "says where its pods run", placed("decode: rack r2; prefill: 2 racks (r1, r4)"))

	// What users see.
	text := c.kubectl("describe", "pg", "llm")
	for _, want := range []string{
		`(?m)^  Placement: +decode: rack r2; prefill: 2 racks \(r1, r4\)$`,
		`(?m)^    decode: 2/2 bound, 2 exist, on rack r2, admitted$`,
		`(?m)^    prefill: 2/2 bound, 2 exist, on 2 racks \(r1, r4\), admitted$`,
		`(?m)^    router: 2/2 bound, 2 exist, admitted$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("kubectl describe pg has no line %s:\n%s", want, text)
		}
	}
	if wide := c.kubectl("get", "pg", "-o", "wide"); !strings.Contains(wide, "decode: rack r2; prefill: 2 racks (r1, r4)") {
		t.Errorf("kubectl get pg -o wide does not say where it runs:\n%s", wide)
	}
	if narrow := c.kubectl("get", "pg"); strings.Contains(narrow, "SUMMARY") {
		t.Errorf("kubectl get pg has more columns:\n%s", narrow)
	}

	// A pod is replaced in another rack.
	c.delete("prefill-1")
	create("prefill-2", "prefill", 1)
	c.untilStatus("llm", "follows the pod that moved", placed("decode: rack r2; prefill: rack r1"))

	// A node is relabelled while no scheduler runs. The next one reads its status, keeps what it says about admission,
	// and corrects it.
	c.scheduler.Kill()
	c.change(c.nodes[3], func(n *corev1.Node) { delete(n.Labels, rackLabel) })
	c.startQuick()
	c.untilStatus("llm", "follows the node without the label", func(s v2Status) bool {
		return placed("decode: rack r2, 1 node without rack; prefill: rack r1")(s) && len(s.SubGroups) == 3 && s.SubGroups[0].Admitted && s.SubGroups[1].Admitted
	})
	c.stillSchedules()
}
