// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/wrappers"
)

// TestNewReplicaIsOfOneTemplate: a replica that a set gets while its update is paused has the new template in all of its
// PodCliques, after whichever write the controllers crash. Source: docs/decisions, U3.
func TestNewReplicaIsOfOneTemplate(t *testing.T) {
	for n := 0; ; n++ {
		isOver := false
		t.Run(fmt.Sprintf("crash after %d writes", n), func(t *testing.T) {
			set := wrappers.MakePodCliqueSet("chat", "ns").Clique("router", 1, wrappers.GPUs(1)).Clique("cache", 1, wrappers.GPUs(1)).
				Clique("leader", 1, wrappers.GPUs(1)).ScalingGroup("model", 1, 1, "leader").Obj()
			c := New(t, Options{Nodes: Nodes(4, 4), Check: both(invariants(), updates())})
			c.Create(set.DeepCopy())
			c.Advance(time.Minute)
			wantAvailable(c, 3)
			pauseUpdate(c, true)
			image(c, set.DeepCopy(), "registry.example/main:2", "router", "cache", "leader")
			c.Advance(time.Minute)
			c.CrashAfterWrites(n)
			Edit(c, set.DeepCopy(), func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 2 })
			c.Advance(2 * time.Minute)
			wantAvailable(c, 6)
			for _, clique := range []string{"chat-1-router", "chat-1-cache", "chat-1-model-0-leader"} {
				if got := imageOf(podsOf(c, clique)[0]); got != "main:2" {
					c.Fatalf("a pod of %s has image %s", clique, got)
				}
			}
			isOver = c.Crashes == 0
		})
		if isOver || t.Failed() {
			if n < 10 && !t.Failed() {
				t.Errorf("only %d writes were made", n)
			}
			return
		}
	}
}
