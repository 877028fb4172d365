// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/rounds"
)

// generations counts the pods that were created, by host name.
type generations map[string]map[types.UID]bool

func countGenerations(c *Cluster) generations {
	g := generations{}
	c.API.watch(func(change Change) {
		if pod, ok := change.New.(*corev1.Pod); ok {
			if g[pod.Spec.Hostname] == nil {
				g[pod.Spec.Hostname] = map[types.UID]bool{}
			}
			g[pod.Spec.Hostname][pod.UID] = true
		}
	})
	return g
}

// An update has the same result as without a crash, after whichever of its writes the controllers crash. Each pod is
// replaced once.
func TestCrashAfterEachWriteOfARollout(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas int32
		cliques  []string
		least    int // writes
		every    int // crash after every nth write, unless ROUNDS are many
	}{
		"a standalone PodClique": {1, []string{"router"}, 20, 1},
		"a scaling group":        {1, []string{"worker"}, 25, 2},
		"two replicas of a set":  {2, []string{"router", "leader", "worker"}, 80, 11},
	} {
		if rounds.Exhaustive() {
			tc.every = 1
		}
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n += tc.every {
				c := newRollout(t, tc.replicas, nil)
				made := countGenerations(c)
				before := uids(c)
				c.Timeline.Say("images are changed, and muster-controller crashes after %d writes", n)
				image(c, podCliqueSet(), "registry.example/main:2", tc.cliques...)
				c.CrashAfterWrites(n)
				c.Advance(5 * time.Minute)
				wantUpdated(c)
				wantAvailable(c, 8*int(tc.replicas))
				after := uids(c)
				for _, host := range slices.Sorted(maps.Keys(before)) {
					want := 1
					if tc.replicas == 1 && after[host] == before[host] {
						want = 0
					}
					delete(made[host], before[host])
					if len(made[host]) != want {
						c.Fatalf("crash after %d writes: pod %s was made %d times more, want %d", n, host, len(made[host]), want)
					}
				}
				if tc.replicas == 1 {
					prefix := map[string]string{"router": "chat-0-router-", "worker": "chat-0-model-"}[tc.cliques[0]]
					wantReplaced(c, before, prefix)
				}
				if c.Crashes == 0 {
					if n < tc.least {
						t.Errorf("only %d writes were made", n)
					}
					return
				}
			}
		})
	}
}

// A replica that a scaling group gets while its update is paused has one template, the previous one, after whichever
// write the controllers crash. Source: docs/decisions, U9.
func TestNewReplicaOfAPausedUpdateAfterEachCrash(t *testing.T) {
	for n := 0; ; n++ {
		c := newRollout(t, 1, nil)
		image(c, podCliqueSet(), "registry.example/main:2", "leader", "worker")
		c.Advance(3 * time.Second)
		c.Timeline.Say("the update is paused at its first replica")
		Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) {
			s.Spec.UpdateStrategy = &v1alpha1.PodCliqueSetUpdateStrategy{Type: v1alpha1.RollingRecreateStrategyType,
				RollingRecreate: &v1alpha1.RollingRecreateUpdateStrategy{Paused: true}}
		})
		c.Advance(time.Minute)
		if ready, _ := withImage(c, "registry.example/main:2"); ready != 3 {
			c.Fatalf("%d pods are updated, want 3", ready)
		}
		c.Create(Nodes(3, 4)[2])
		c.Timeline.Say("the group is scaled out, and muster-controller crashes after %d writes", n)
		c.CrashAfterWrites(n)
		Edit(c, scalingGroup(), func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = 3 })
		c.Advance(time.Minute)
		wantAvailable(c, 11)
		if ready, _ := withImage(c, "registry.example/main:2"); ready != 3 {
			c.Fatalf("crash after %d writes: %d pods are of the new template, want 3", n, ready)
		}
		if c.Crashes == 0 {
			if n < 12 {
				t.Errorf("only %d writes were made", n)
			}
			return
		}
	}
}
