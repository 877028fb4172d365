// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"

	"github.com/muster-project/muster/test/wrappers"
)

// The snapshot of the loop knows which claims pods have, whatever other snapshots are taken before and after it.
func TestClaimsAreCountedBesideOtherSnapshots(t *testing.T) {
	t.Parallel()
	logger := klog.Background()
	loop, other := cache.NewEmptySnapshot(), cache.NewEmptySnapshot()
	c := &claimCounts{Cache: cache.New(t.Context(), nil, false, false), loop: loop}
	take := func(s *cache.Snapshot) {
		t.Helper()
		if err := c.UpdateSnapshot(logger, s); err != nil {
			t.Fatal(err)
		}
	}
	c.AddNode(logger, wrappers.MakeNode("n").Obj())
	take(loop)
	take(other)
	pod := wrappers.MakePod("p", "ml").UID("p").Node("n").Spec(func(s *corev1.PodSpec) {
		s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}}
	}).Obj()
	for _, order := range [][]*cache.Snapshot{{loop}, {loop, other, loop}, {other, loop}, {other, other, loop, other, loop}} {
		for _, tc := range []struct {
			what string
			do   func() error
			used bool
		}{
			{"it is assumed", func() error { return c.AssumePod(logger, pod) }, true},
			{"it is forgotten", func() error { return c.ForgetPod(logger, pod) }, false},
			{"it is assumed again", func() error { return c.AssumePod(logger, pod) }, true},
			{"it is deleted before it is bound", func() error { return c.RemoveAssumedPod(logger, pod) }, false},
			{"it was bound by others", func() error { return c.AddPod(logger, pod) }, true},
			{"it has changed", func() error { return c.UpdatePod(logger, pod, pod) }, true},
			{"it is deleted", func() error { return c.RemovePod(logger, pod) }, false},
		} {
			if err := tc.do(); err != nil {
				t.Fatal(err)
			}
			for _, s := range order {
				take(s)
			}
			if got := loop.IsPVCUsedByPods("ml/claim"); got != tc.used {
				t.Errorf("%s: the claim is used: %t", tc.what, got)
			}
			if nodes, err := loop.NodeInfos().List(); err != nil || len(nodes) != 1 || len(nodes[0].GetPods()) > 0 != tc.used {
				t.Errorf("%s: nodes %v, %v", tc.what, nodes, err)
			}
		}
	}
}
