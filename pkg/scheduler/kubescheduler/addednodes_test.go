// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// Which refusals are reported to cluster autoscalers, for gangs of pods with a whole node each.
func TestAddedNodesMayHelp(t *testing.T) {
	t.Parallel()
	whole := func(level string, pods int) placement.Problem {
		n := int32(pods)
		return placement.Problem{Tree: buildTree(t, gang.Node{MinMember: &n}), Pods: map[string][]placement.Pod{"": waiting(pods, 0)}, Required: map[string]string{"": level}}
	}
	// pairs returns a gang that needs all of its sub-groups, with as many pods each, of which the first requires a
	// rack.
	pairs := func(pods ...int) placement.Problem {
		p := placement.Problem{Pods: map[string][]placement.Pod{}, Required: map[string]string{"a": rackLevel}}
		var groups []gang.Node
		for i, n := range pods {
			name := string(rune('a' + i))
			groups = append(groups, leafNode(name, "", int32(n)))
			p.Pods[name] = waiting(n, 0)
		}
		p.Tree = buildTree(t, gang.Node{MinSubGroup: new(int32(len(pods)))}, groups...)
		return p
	}
	for name, tc := range map[string]struct {
		problem   placement.Problem
		unlabeled int
		racks     []rack
		gpus      int64
		reason    v2alpha2.Reason
		helps     bool
	}{
		"without levels, not enough is free":   {problem: whole("", 8), racks: []rack{{8, 4, 0}, {8, 2, 0}}, reason: v2alpha2.ReasonInsufficientGPUs, helps: true},
		"without levels, the cluster is small": {problem: whole("", 8), racks: []rack{{4, 4, 0}}, reason: v2alpha2.ReasonTooLarge, helps: true},
		"all racks are full":                   {problem: whole(rackLevel, 4), racks: []rack{{8, 0, 0}, {8, 0, 0}}, reason: v2alpha2.ReasonInsufficientGPUs, helps: true},
		"all that is free is in one rack":      {problem: whole(rackLevel, 4), racks: []rack{{8, 0, 0}, {8, 3, 0}, {8, 0, 0}}, reason: v2alpha2.ReasonInsufficientGPUs, helps: true},
		// For 8 pods an autoscaler adds two nodes. With them no rack has 8.
		"something is free in several racks":  {problem: whole(rackLevel, 8), racks: []rack{{8, 4, 0}, {8, 2, 0}}, reason: v2alpha2.ReasonInsufficientGPUs},
		"enough is free, in several racks":    {problem: whole(rackLevel, 8), racks: []rack{{8, 6, 0}, {8, 2, 0}}, reason: v2alpha2.ReasonTopologyUnavailable},
		"no rack is large enough":             {problem: whole(rackLevel, 12), racks: []rack{{8, 0, 0}, {8, 0, 0}}, reason: v2alpha2.ReasonTooLarge},
		"no rack is large enough, pods of 16": {problem: whole(rackLevel, 2), racks: []rack{{8, 0, 0}}, gpus: 16, reason: v2alpha2.ReasonTooLarge},
		"no node has the label":               {problem: whole(rackLevel, 2), unlabeled: 4, reason: v2alpha2.ReasonTopologyUnavailable},
		"there are no nodes":                  {problem: whole(rackLevel, 2), reason: v2alpha2.ReasonNoNodeMatches},
		"there are no nodes, and no levels":   {problem: whole("", 2), reason: v2alpha2.ReasonNoNodeMatches, helps: true},
		"it runs in a full rack, as all are":  {problem: boundTo(whole(rackLevel, 4), "", 0, 1), racks: []rack{{4, 0, 0}, {4, 0, 0}}, reason: v2alpha2.ReasonInsufficientGPUs},
		"a cordoned node, and another rack has room": {
			problem: whole(rackLevel, 4), racks: []rack{{4, 3, 1}, {4, 2, 0}}, reason: v2alpha2.ReasonNodesUnavailable,
		},
		"a cordoned node, and the other racks are full": {
			problem: whole(rackLevel, 4), racks: []rack{{4, 3, 1}, {4, 0, 0}}, reason: v2alpha2.ReasonNodesUnavailable, helps: true,
		},
		"a sub-group without a level lacks room":     {problem: pairs(2, 3), racks: []rack{{4, 2, 0}, {4, 2, 0}}, reason: v2alpha2.ReasonInsufficientGPUs, helps: true},
		"a sub-group with a level finds no rack":     {problem: pairs(3, 2), racks: []rack{{4, 2, 0}, {4, 2, 0}}, reason: v2alpha2.ReasonInsufficientGPUs},
		"each domain is a node, and all are full":    {problem: whole(corev1.LabelHostname, 2), gpus: 4, racks: []rack{{4, 0, 0}}, reason: v2alpha2.ReasonInsufficientGPUs, helps: true},
		"each domain is a node that is large enough": {problem: whole(corev1.LabelHostname, 3), gpus: 4, racks: []rack{{4, 0, 0}}, reason: v2alpha2.ReasonTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.gpus == 0 {
				tc.gpus = 8
			}
			got := explained(t, tc.problem, newRacks(t, tc.unlabeled, tc.racks, tc.gpus))
			if got.Reason != tc.reason {
				t.Errorf("%s: %s, want %s", got.Reason, got.Message, tc.reason)
			}
			if got.NoNodeHelps == tc.helps {
				t.Errorf("reported to autoscalers: %t, want %t (%s: %s)", !got.NoNodeHelps, tc.helps, got.Reason, got.Message)
			}
		})
	}
}
