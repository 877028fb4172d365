// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// topologyBinding has the levels block and rack.
func topologyBinding() *v1alpha1.ClusterTopologyBinding {
	return &v1alpha1.ClusterTopologyBinding{ObjectMeta: metav1.ObjectMeta{Name: "fabric"}, Spec: v1alpha1.ClusterTopologyBindingSpec{
		Levels: []v1alpha1.ClusterTopologyLevel{{Domain: "block", Key: "l/block"}, {Domain: "rack", Key: "l/rack"}}}}
}

// TestTopologyDisappears: without its ClusterTopologyBinding a set runs on, also beyond its termination delay, and what
// is added to it waits until the binding exists again. Source: docs/decisions, W11.
func TestTopologyDisappears(t *testing.T) {
	nodes := Nodes(3, 4)
	for _, node := range nodes {
		node.Labels = map[string]string{"l/block": "b0", "l/rack": "r0"}
	}
	c := New(t, Options{Nodes: nodes, Check: invariants()})
	c.Timeline.Say("a set that requires a block, and a rack for each replica of its scaling group, is created")
	c.Create(topologyBinding())
	set := watched(time.Minute, 0)
	set.Spec.Template.TopologyConstraint = &v1alpha1.TopologyConstraint{TopologyName: "fabric", Pack: &v1alpha1.TopologyPackConstraint{Required: "block"}}
	set.Spec.Template.PodCliqueScalingGroupConfigs[0].TopologyConstraint = &v1alpha1.TopologyConstraint{Pack: &v1alpha1.TopologyPackConstraint{Required: "rack"}}
	c.Create(set)
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	before := uids(c)

	c.Timeline.Say("the binding is deleted, and the scaling group scaled out to 3")
	c.Delete(topologyBinding())
	Edit(c, scalingGroup(), func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 3 })
	c.Advance(10 * time.Minute)
	wantAvailable(c, 8)
	if levels := meta.FindStatusCondition(theSet(c, "chat").Status.Conditions, v1alpha1.ConditionTopologyLevelsUnavailable); levels == nil || levels.Reason != v1alpha1.ReasonClusterTopologyNotFound {
		t.Errorf("condition %+v", levels)
	}

	c.Timeline.Say("the binding is created again, and muster-controller restarts")
	c.Create(topologyBinding())
	c.Restart()
	c.Advance(time.Minute)
	wantAvailable(c, 11)
	after := uids(c)
	maps.DeleteFunc(after, func(name string, _ types.UID) bool { return before[name] == "" })
	if !maps.Equal(before, after) {
		t.Errorf("pods that ran were replaced: %v, then %v", before, after)
	}
	c.Timeline.Golden(t, "topology-disappears")
}
