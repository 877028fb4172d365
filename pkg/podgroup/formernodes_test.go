// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

func TestWithFormerNodes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		nodes []FormerNode
		want  string
	}{
		"none": {nil, "m"},
		"cordoned, and the room is there": {[]FormerNode{{Name: "n0", Pods: 1, HasRoom: true, Cause: "cordoned", Advice: "uncordon it"}},
			"1 lost pod ran on node n0, which has room for it and is cordoned: uncordon it; m"},
		"not ready, and others use the room": {[]FormerNode{{Name: "n0", Pods: 2, Cause: "not ready", Advice: "bring it back"}},
			"m; 2 lost pods ran on node n0, which is not ready, and has no room for one of them"},
		"others use the room":        {[]FormerNode{{Name: "n0", Pods: 1}}, "m; 1 lost pod ran on node n0, which has no room for it now"},
		"another rule keeps it away": {[]FormerNode{{Name: "n0", Pods: 1, HasRoom: true}}, "m"},
		"three nodes": {[]FormerNode{{Name: "n0", Pods: 1, Gone: true}, {Name: "n1", Pods: 1}, {Name: "n2", Pods: 1}},
			"m; 1 lost pod ran on node n0, which is gone; 1 lost pod ran on node n1, which has no room for it now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := WithFormerNodes(Refusal{Reason: v2alpha2.ReasonInsufficientGPUs, Message: "m"}, tc.nodes)
			if got.Message != tc.want || got.Reason != v2alpha2.ReasonInsufficientGPUs {
				t.Errorf("%+v, want %q", got, tc.want)
			}
		})
	}
}
