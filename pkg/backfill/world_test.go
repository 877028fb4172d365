// SPDX-License-Identifier: Apache-2.0

package backfill

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

const gpu corev1.ResourceName = "gpu"

// start is the moment at which all cases begin; other moments are seconds after it.
var start = time.Unix(1_000_000, 0)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// cluster is a World of nodes with GPUs, for gangs of equal pods.
type cluster struct {
	placement.NoTopology

	gpus   []int64  // by node
	closed []bool   // by node: it takes no pod
	only   []string // nil: all nodes
	pods   []pod    // by ID
	set    *reservations.Set
	asker  reservations.Asker
	need   int64 // GPUs of a pod that is planned
	placed []int // nodes
}

// pod is a running pod.
type pod struct {
	node  int
	gpus  int64
	ends  time.Time // as it promises; zero: it does not
	lasts bool
	freed bool // by the World
	gone  bool
}

func newCluster(gpus ...int64) *cluster {
	return &cluster{gpus: gpus, closed: make([]bool, len(gpus)), set: reservations.NewSet()}
}

func (c *cluster) run(p pod) int {
	c.pods = append(c.pods, p)
	return len(c.pods) - 1
}

func uidOf(id int) types.UID { return types.UID(strconv.Itoa(id)) }

func nameOf(node int) string { return fmt.Sprintf("n%d", node) }

func amountOf(pods, gpus int64) reservations.Amount {
	return reservations.Amount{Pods: pods, Resources: map[corev1.ResourceName]int64{gpu: gpus}}
}

// isOn reports whether a pod is on its node.
func (c *cluster) isOn(uid types.UID) bool {
	id, err := strconv.Atoi(string(uid))
	return err == nil && !c.pods[id].freed && !c.pods[id].gone
}

// free returns the GPUs of a node that no pod uses.
func (c *cluster) free(node int) int64 {
	free := c.gpus[node]
	for _, p := range c.pods {
		if p.node == node && !p.freed && !p.gone {
			free -= p.gpus
		}
	}
	for _, n := range c.placed {
		if n == node {
			free -= c.need
		}
	}
	return free
}

// left returns the GPUs of a node that the asker may use.
func (c *cluster) left(node int, a reservations.Asker) int64 {
	free := c.free(node)
	for _, x := range c.set.View().On(nameOf(node)) {
		if x.Restricts(a) {
			rest := x.Rest(c.isOn)
			free -= rest.Resources[gpu]
		}
	}
	return free
}

// waitable returns the pods of which the gang waits for the end.
func (c *cluster) waitable() []Pod {
	var list []Pod
	for id, p := range c.pods {
		if !p.gone {
			list = append(list, Pod{ID: id, Ends: p.ends, Lasts: p.lasts, Amount: p.gpus})
		}
	}
	return list
}

// Free implements World.
func (c *cluster) Free(ids []int) { c.setFreed(ids, true) }

// Restore implements World.
func (c *cluster) Restore(ids []int) { c.setFreed(ids, false) }

func (c *cluster) setFreed(ids []int, freed bool) {
	for _, id := range ids {
		if c.pods[id].freed == freed || len(c.placed) > 0 {
			panic("freed twice, or beside a plan")
		}
		c.pods[id].freed = freed
	}
}

// NodeOf implements World.
func (c *cluster) NodeOf(id int) int { return c.pods[id].node }

// NodeName implements World.
func (c *cluster) NodeName(node int) string { return nameOf(node) }

// UseOnly implements World.
func (c *cluster) UseOnly(nodes []string) { c.only = nodes }

func (c *cluster) room(node int) int {
	if c.closed[node] || c.only != nil && !slices.Contains(c.only, nameOf(node)) {
		return 0
	}
	return int(max(0, c.left(node, c.asker)) / c.need)
}

// Place implements placement.World: it takes the node with the least sufficient room.
func (c *cluster) Place(int, string) (string, bool) {
	best := -1
	for n := range c.gpus {
		if c.room(n) > 0 && (best < 0 || c.left(n, c.asker) < c.left(best, c.asker)) {
			best = n
		}
	}
	if best < 0 {
		return "", false
	}
	c.placed = append(c.placed, best)
	return nameOf(best), true
}

// Undo implements placement.World.
func (c *cluster) Undo(n int) { c.placed = c.placed[:len(c.placed)-n] }

// Kind implements placement.World.
func (c *cluster) Kind(int) placement.Kind { return placement.Independent }

// Domains implements placement.World.
func (c *cluster) Domains(int, []int) []string { return nil }

// Open implements placement.World.
func (c *cluster) Open(int, string) bool { return true }

// Nodes implements placement.World.
func (c *cluster) Nodes(int, int) []string { return nil }

// Weight implements placement.World.
func (c *cluster) Weight(int) int64 { return c.need }

// Capacity implements placement.World.
func (c *cluster) Capacity(int) placement.Capacity {
	var out placement.Capacity
	for n := range c.gpus {
		if room := c.room(n); room > 0 {
			out.Nodes, out.Pods = out.Nodes+1, out.Pods+room
		}
	}
	return out
}

// Explain implements placement.World.
func (c *cluster) Explain(int, string) *placement.Refusal { return &placement.Refusal{} }

// choose returns the promise for a gang of equal pods.
func (c *cluster) choose(t testing.TB, pods int, gpus int64, now time.Time) *Promise {
	t.Helper()
	c.need = gpus
	p, cut := Choose(problemOf(t, pods), c, c.waitable(), now, placement.Budget{})
	if cut {
		t.Fatal("the search was cut")
	}
	if len(c.placed) > 0 || slices.ContainsFunc(c.pods, func(p pod) bool { return p.freed }) {
		t.Fatal("the World was not left as it was")
	}
	return p
}

func problemOf(t testing.TB, pods int) placement.Problem {
	t.Helper()
	least := int32(pods)
	tree, err := gang.Build(gang.Node{MinMember: &least}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := placement.Problem{Tree: tree, Pods: map[string][]placement.Pod{}}
	for i := range pods {
		p.Pods[""] = append(p.Pods[""], placement.Pod{ID: strconv.Itoa(i), Index: i})
	}
	return p
}

// keep reserves the room of a promise.
func (c *cluster) keep(t testing.TB, gangName string, p *Promise, now time.Time) {
	t.Helper()
	for n, a := range planned(p, c.need) {
		x := reservations.Reservation{
			Owner: reservations.Owner{Gang: types.NamespacedName{Name: gangName}, Leaf: reservations.EveryLeaf}, Node: n, Amount: a, Starts: p.Starts,
		}
		if !c.set.Reserve(x, now.Add(time.Hour*1000), now) {
			t.Fatalf("%s is not reserved for %s", n, gangName)
		}
	}
	for _, id := range p.Behind {
		x := c.pods[id]
		c.set.Occupy(reservations.Asker{Ends: x.ends}, nameOf(x.node), reservations.Occupied{Pod: uidOf(id), Amount: amountOf(1, x.gpus)})
	}
}

// planned returns what a promise needs, by node.
func planned(p *Promise, gpus int64) map[string]reservations.Amount {
	amounts := map[string]reservations.Amount{}
	for _, pl := range p.Plan {
		a := amounts[pl.Node]
		a.Add(amountOf(1, gpus), 1)
		amounts[pl.Node] = a
	}
	return amounts
}
