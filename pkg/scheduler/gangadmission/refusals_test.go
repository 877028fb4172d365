// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

// TestGangStartsBesideNodesThatRefuse: a plan does not see that some nodes refuse pods in real cycles. Every gang that
// fits on the others starts (docs/decisions, G18). Each plan finds at least one node that refuses; on a busy machine
// some are aborted for another reason.
func TestGangStartsBesideNodesThatRefuse(t *testing.T) {
	refused := fwk.NewStatus(fwk.Unschedulable, "node(s) are in a bad mood")
	for name, tc := range map[string]struct {
		points []string
		status *fwk.Status
		slow   time.Duration // of each PreBind; of one node in three, if apart
		apart  bool
	}{
		"Filter":             {points: []string{"Filter"}, status: refused},
		"Reserve":            {points: []string{"Reserve"}, status: refused},
		"PreBind":            {points: []string{"PreBind"}, status: refused},
		"PreBind fails":      {points: []string{"PreBind"}, status: fwk.NewStatus(fwk.Error, "no volume")},
		"PreBind takes time": {points: []string{"PreBind"}, status: refused, slow: 300 * time.Millisecond},
		// The plan is aborted before the slow ones refuse.
		"PreBind refuses late": {points: []string{"PreBind"}, status: refused, slow: 300 * time.Millisecond, apart: true},
		"one of these points":  {points: []string{"Filter", "Reserve", "PreBind"}, status: refused},
	} {
		for _, size := range []struct{ nodes, gpus, refuse, gang int }{
			{10, 4, 8, 8}, {12, 8, 10, 9}, {40, 1, 24, 16}, {64, 1, 63, 1}, {6, 8, 0, 48},
		} {
			if tc.slow > 0 && size.gang == 1 {
				continue // one node after the other
			}
			t.Run(fmt.Sprintf("%s, %d of %d nodes", name, size.refuse, size.nodes), func(t *testing.T) {
				bad := map[string]string{} // the point at which a node refuses
				for k, i := range rand.Perm(size.nodes)[:size.refuse] {
					bad[fmt.Sprintf("n%d", i)] = tc.points[k%len(tc.points)]
				}
				var mu sync.Mutex
				refusals, asked := 0, map[string]int{} // in all, by node
				plans := map[uint64]bool{}             // by ID
				var c *cluster
				c = newCluster(t, opinions(func(point, pod, node string) *fwk.Status {
					plan := c.gangs.registry.PlanOf(typesUID("uid-" + pod))
					mu.Lock()
					if plan != nil {
						plans[plan.ID] = true
					}
					mu.Unlock()
					if point == "PreBind" && (!tc.apart || (len(node)+int(node[len(node)-1]))%3 == 0) {
						time.Sleep(tc.slow)
					}
					if bad[node] != point {
						return nil
					}
					mu.Lock()
					defer mu.Unlock()
					refusals++
					asked[node]++
					return tc.status
				}))
				for i := range size.nodes {
					c.node(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(int64(size.gpus)))
				}
				c.run().gang("a", size.gang)
				began := time.Now()
				c.wholeOf("a", size.gang)
				took := time.Since(began) // information: how busy the machine is decides
				mu.Lock()
				defer mu.Unlock()
				t.Logf("%d pods started after %s, %d refusals, %d plans", size.gang, took.Round(time.Millisecond), refusals, len(plans))
				if most := 2 * (size.refuse + 1); tc.status == refused && len(plans) > most {
					t.Errorf("%d plans, want at most %d", len(plans), most)
				}
				for node, n := range asked {
					// One more plan may use it that is made between the release of its last member and the moment in
					// which the scheduler tells why that member failed.
					if tc.status == refused && n > 2*size.gpus {
						t.Errorf("node %s, which has %d GPUs, refused %d members: later plans used it again", node, size.gpus, n)
					}
				}
				for i := range size.gang {
					pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, fmt.Sprintf("a-%d", i), metav1.GetOptions{})
					if err != nil || bad[pod.Spec.NodeName] != "" {
						t.Errorf("pod %d is on %q, which refuses, %v", i, pod.Spec.NodeName, err)
					}
				}
			})
		}
	}
}

// Of several members that are refused in one plan only the first reports it.
func TestAnAbortForSeveralNodesIsToldOnce(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"Filter", "Reserve"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, opinions(func(at, _, node string) *fwk.Status {
				if at == point && node < "n3" {
					return fwk.NewStatus(fwk.Unschedulable, "node(s) are in a bad mood")
				}
				return nil
			}))
			for i := range 6 {
				c.node(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(1))
			}
			c.gang("a", 3).run().wholeOf("a", 3)
			var told []string
			for _, a := range c.client.Actions() {
				if patch, ok := a.(clienttesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), "in a bad mood") {
					told = append(told, patch.GetName())
				}
			}
			if diff := cmp.Diff([]string{"a-0"}, told); diff != "" {
				t.Errorf("conditions of pods (-want +got):\n%s", diff)
			}
			if events := c.eventsWith("FailedScheduling"); len(events) != 1 || !strings.HasPrefix(events[0], "a-0: ") || !strings.Contains(events[0], "in a bad mood") {
				t.Errorf("events %q, want one of a-0", events)
			}
		})
	}
}

// Members whose preparation fails because, or after, their plan was aborted are not the reason of the abort.
func TestAnAbortIsToldOnceIfMembersFailLater(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]*fwk.Status{
		"refused": fwk.NewStatus(fwk.Unschedulable, "node(s) are in a bad mood"),
		"failed":  fwk.NewStatus(fwk.Error, "no volume"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 8
			aborted, all := make(chan struct{}), make(chan struct{}) // closed when the plan is aborted; when all others are being prepared
			var begun atomic.Int32
			c := newCluster(t, opinions(func(point, pod, _ string) *fwk.Status {
				if point != "PreBind" {
					return nil
				}
				select {
				case <-aborted: // a later plan
					return nil
				default:
				}
				if pod == "a-3" {
					<-all
					return fwk.NewStatus(fwk.Unschedulable, "node(s) are in a bad mood")
				}
				if begun.Add(1) == n-1 {
					close(all)
				}
				<-aborted
				return later
			}))
			for i := range 2 * n {
				c.node(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(1))
			}
			c.gang("a", n).eventually("all members in the scheduling queue", func() bool { // else a plan is aborted that waits for one
				pods, _ := c.sched.SchedulingQueue.PendingPods()
				return len(pods) == n
			})
			c.run().eventually("the plan aborted", func() bool {
				return c.gangs.registry.IsUnwindingPod("uid-a-0")
			})
			close(aborted)
			c.wholeOf("a", n)
			c.eventually("the abort is told", func() bool { return len(c.eventsWith("FailedScheduling")) > 0 }) // after a-3 is queued again
			if events := c.eventsWith("FailedScheduling"); len(events) != 1 || !strings.HasPrefix(events[0], "a-3: ") || !strings.Contains(events[0], "in a bad mood") {
				t.Errorf("events %q, want one of a-3", events)
			}
		})
	}
}

// The scheduler takes a snapshot, and puts a member of an aborted plan back before the plan reads what nodes refused.
func TestASnapshotContainsMembersReleasedMeanwhile(t *testing.T) {
	g := &Gangs{registry: gangs.New()}
	g.released.add("a", false)
	g.released.beginCycle()
	g.released.remove("a")
	if !g.isUnwinding("a") || g.released.any() {
		t.Error("the snapshot of this cycle may contain the member, and no other must wait for it")
	}
	g.released.beginCycle()
	if g.isUnwinding("a") {
		t.Error("the next snapshot does not contain the member")
	}
}
