// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// plantedInstance generates a gang that is too large for an exhaustive solver and has a plan, because its pods are
// those of a solution. There are racks of four nodes; replicas of a leader and workers, some of which share a rack;
// single pods of several sizes, some of which require separate nodes. In addition up to spare GPUs of each node are
// free.
func plantedInstance(t testing.TB, r *rand.Rand, spare int) (placement.Problem, *cluster) {
	t.Helper()
	racks := 4 + r.IntN(8)
	nodes := make([]node, 4*racks)
	for i := range nodes {
		nodes[i] = node{gpus: 8, rack: fmt.Sprintf("rack%d", i/4), free: []int{8}}
	}
	var groups []gang.Node
	var classes []class
	p := placement.Problem{Pods: map[string][]placement.Pod{}}
	add := func(name, parent string, n int, c class) {
		groups = append(groups, leaf(name, parent, int32(n)))
		p.Pods[name] = pods(name, len(classes), n)
		classes = append(classes, c)
	}
	// take places up to n pods on the nodes of a rack.
	take := func(rack, n, gpus int) int {
		taken := 0
		for i := 4 * rack; i < 4*rack+4; i++ {
			for taken < n && nodes[i].free[0] >= gpus {
				nodes[i].free[0] -= gpus
				taken++
			}
		}
		return taken
	}
	for i := range racks {
		if r.IntN(3) == 0 {
			continue
		}
		name, gpus := fmt.Sprintf("replica%d", i), []int{1, 2, 4, 8}[r.IntN(4)]
		shared := name
		if r.IntN(3) == 0 {
			shared = ""
		}
		leader, workers := take(i, 1, 1), take(i, 1+r.IntN(24/gpus), gpus)
		if leader > 0 && workers > 0 {
			parent := name
			if r.IntN(3) > 0 {
				groups = append(groups, inner(name, "", 2))
			} else {
				parent = ""
			}
			add(name+"-leader", parent, leader, class{gpus: 1, sameRack: shared})
			add(name+"-worker", parent, workers, class{gpus: gpus, sameRack: shared})
		}
	}
	for i, gpus := range []int{4, 2, 3, 1} {
		total := 0
		for rack := range racks {
			total += take(rack, r.IntN(4), gpus)
		}
		if total > 0 {
			add(fmt.Sprintf("single%d", i), "", total, class{gpus: gpus})
		}
	}
	for i := range nodes {
		nodes[i].gpus = min(8, 8-nodes[i].free[0]+r.IntN(1+spare))
	}
	p.Tree = mustBuild(t, gang.Node{}, groups...)
	return p, newCluster(t, classes, nodes...)
}

// TestMinimumFindsPlantedPlans measures how often a plan is found for gangs of up to some hundred pods that have one.
func TestMinimumFindsPlantedPlans(t *testing.T) {
	t.Parallel()
	for spare, floor := range map[int]float64{0: 0.98, 1: 0.98, 2: 0.98} {
		t.Run(fmt.Sprintf("spare %d", spare), func(t *testing.T) {
			t.Parallel()
			const rounds = 200
			r := rand.New(rand.NewPCG(59, uint64(61+spare)))
			found, calls, planned := 0, 0, 0
			for range rounds {
				p, w := plantedInstance(t, r, spare)
				plan, short := placement.Minimum(p, w, placement.Budget{})
				calls += w.calls
				if short == nil {
					found++
					planned += len(plan)
					checkPlan(t, p, w, plan)
				}
			}
			t.Logf("%d of %d plans found; %d calls of Place for %d pods planned", found, rounds, calls, planned)
			if rate := float64(found) / rounds; rate < floor {
				t.Errorf("%.1f %% of the plans found, want at least %.1f %%", 100*rate, 100*floor)
			}
		})
	}
}
