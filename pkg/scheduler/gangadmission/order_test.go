// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/test/wrappers"
)

// rackGang creates a PodGroup of n one-GPU pods that must be in one rack.
func (c *cluster) rackGang(name string, n int, priority int32) *cluster {
	c.groups.Put(wrappers.MakePodGroup(name, "ml").UID(name).Generation(1).MinMember(int32(n)).Obj())
	pods := members(name, n)
	for _, p := range pods {
		p.Label("gang", name).Priority(priority).NeverPreempts().TogetherWith("rack", "gang", name)
	}
	return c.pod(pods...)
}

// racks creates nodes of 8 GPUs, each a rack of its own, of which 4 are free.
func (c *cluster) racks(n int) *cluster {
	for i := range n {
		node := fmt.Sprintf("n%d", i)
		c.node(wrappers.MakeNode(node).Label("rack", node).GPUs(8)).pod(wrappers.MakePod("filler-"+node, "ml").Node(node).GPUs(4))
	}
	return c.eventually("the fillers seen", func() bool {
		return c.sched.Cache.Dump().Nodes["n"+strconv.Itoa(n-1)].GetRequested().GetScalarResources()["nvidia.com/gpu"] == 4
	})
}

// attempts returns how often the leader of a gang was popped.
func (c *cluster) attempts(gang string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, name := range c.popped {
		if strings.HasPrefix(name, gang+"-") {
			n++
		}
	}
	return n
}

// TestRoomGoesToTheGangOfTheHighestPriorityWhateverItsPause: a gang that was refused several times although enough of
// its pods fit somewhere is paused. When the rack that it waits for becomes free, a gang of lower priority that is
// created at this moment must not take it.
func TestRoomGoesToTheGangOfTheHighestPriorityWhateverItsPause(t *testing.T) {
	t.Parallel()
	c := newCluster(t).racks(6).run().rackGang("high", 7, 100_000).refused("high")
	for try := range 6 {
		before := c.attempts("high")
		c.relabel("n0", strconv.Itoa(try))
		c.eventually("another attempt", func() bool { return c.attempts("high") > before })
	}
	c.deletePod("filler-n3")
	began := time.Now()
	c.rackGang("low", 7, 0).wholeOf("high", 7)
	if low := c.boundOf("low-"); len(low) > 0 {
		t.Errorf("pods of the gang of lower priority are bound: %v", low)
	}
	t.Logf("bound after %s", time.Since(began))
}

// relabel changes a label of a node that no pod selects.
func (c *cluster) relabel(node, value string) {
	c.t.Helper()
	n, err := c.client.CoreV1().Nodes().Get(c.ctx, node, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	n.Labels["example.com/turn"] = value
	if _, err := c.client.CoreV1().Nodes().Update(c.ctx, n, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// TestRoomGoesToTheFirstOfManyGangs: many gangs wait for a rack, and all of them saw the event that frees one.
func TestRoomGoesToTheFirstOfManyGangs(t *testing.T) {
	t.Parallel()
	const gangs = 30
	c := newCluster(t).racks(3).run()
	for i := range gangs {
		c.rackGang(fmt.Sprintf("g%02d", i), 7, int32(i)).refused(fmt.Sprintf("g%02d", i))
	}
	c.deletePod("filler-n1")
	c.eventually("a gang bound", func() bool { return len(c.boundOf("g")) == 7 })
	if first := c.boundOf(fmt.Sprintf("g%02d-", gangs-1)); len(first) != 7 {
		t.Errorf("bound are %v, want the gang of the highest priority", c.boundOf("g"))
	}
}
