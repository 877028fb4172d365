// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"testing"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/test/wrappers"
)

type fakeShape struct{ fits int }

func (s *fakeShape) FittingPods() int { return s.fits }

func TestCausesOfEvents(t *testing.T) {
	t.Parallel()
	bound, waiting, nominated := wrappers.MakePod("p", "ml").Node("n").Obj(), wrappers.MakePod("p", "ml").Obj(), wrappers.MakePod("p", "ml").Obj()
	nominated.Status.NominatedNodeName = "n"
	assignedPodDelete := fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}
	node := wrappers.MakeNode("n").Obj()
	for name, tc := range map[string]struct {
		event    fwk.ClusterEvent
		old, new any
		want     causes
	}{
		"a node is added":             {fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, nil, node, moreRoom | otherPods | otherNodes},
		"a bound pod is deleted":      {assignedPodDelete, bound, nil, moreRoom | otherPods},
		"a nominated pod is deleted":  {assignedPodDelete, nominated, nil, nominationGone},
		"a pod is bound":              {fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Add}, nil, bound, boundPod},
		"an assumed pod is deleted":   {assignedPodDelete, waiting, nil, moreRoom | otherPods},
		"a pod reduces its requests":  {fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.UpdatePodScaleDown}, bound, bound, moreRoom | otherPods},
		"a pod's status changes":      {fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Update}, bound, bound, otherPods},
		"a pod's labels change":       {fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.UpdatePodLabel}, bound, bound, otherPods},
		"a claim changes":             {fwk.ClusterEvent{Resource: fwk.ResourceClaim, ActionType: fwk.Update}, nil, nil, otherClaims},
		"a DeviceClass is added":      {fwk.ClusterEvent{Resource: fwk.DeviceClass, ActionType: fwk.Add}, nil, nil, otherClaims | moreRoom},
		"a volume is added":           {fwk.ClusterEvent{Resource: fwk.PersistentVolume, ActionType: fwk.Add}, nil, nil, otherVolumes},
		"everything may have changed": {fwk.ClusterEvent{Resource: fwk.WildCard, ActionType: fwk.All}, nil, nil, anything},
		"an unknown resource":         {fwk.ClusterEvent{Resource: "foos.v1.example.com", ActionType: fwk.Add}, nil, waiting, otherPods},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := causesOf(tc.event, tc.old, tc.new); got != tc.want {
				t.Errorf("got %05b, want %05b", got, tc.want)
			}
		})
	}
}
