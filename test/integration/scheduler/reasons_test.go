package scheduler

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// What keeps a gang from starting is named as what it is, whatever it looks like to a single node.
func TestReasonsMeanWhatTheySay(t *testing.T) {
	c := newCluster(t, 5)
	c.startQuick()

	c.createGang("chunks", 6, 5) // 30 of 40 GPUs, and a node has room for one pod
	c.untilSays("chunks", v2alpha2.ReasonTooLarge, "needs 6 pods", "would hold only 5 pods of 5 nvidia.com/gpu if they were empty",
		"5 of 6 pods can be placed")
	c.deleteGang("chunks")

	c.apply(c.group("unknown").MinMember(2))
	for _, n := range numbered("unknown", 2) {
		c.create(c.pod(n, "unknown", 0).Resource("example.com/fpga", resource.MustParse("1")))
	}
	c.untilSays("unknown", v2alpha2.ReasonNoNodeMatches, "no node offers example.com/fpga: correct the name")
	c.deleteGang("unknown")

	c.apply(c.group("claims").MinMember(2))
	for _, n := range numbered("claims", 2) {
		c.create(c.pod(n, "claims", 1).Claim("data"))
	}
	c.untilSays("claims", v2alpha2.ReasonClaimsNotReady, `persistentvolumeclaim "data" not found: create it`)
	c.deleteGang("claims")

	c.cordon(true, c.nodes[1:]...)
	c.createGang("cordoned", 4, 8)
	c.untilSays("cordoned", v2alpha2.ReasonNodesUnavailable, "4 nodes (32 nvidia.com/gpu) cordoned: uncordon them", "have 8 in all", "4 nodes: cordoned")
	c.notBound(numbered("cordoned", 4)...)
	c.cordon(false, c.nodes[1:]...)
	c.untilBound("cordoned", 4)
	c.untilSatisfied("cordoned")
}
