// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

// TestReservedTablesAreUpToDate: what is kept between plans of what is reserved is what a plan would read anew, after
// any change of pods, nodes and reservations, whoever asks.
func TestReservedTablesAreUpToDate(t *testing.T) {
	for seed := range int64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng, now := rand.New(rand.NewSource(seed)), time.Unix(1_000_000, 0)
			c, set, kept := newCluster(t, racks(6, 8)...), reservations.NewSet(), NewFilterCache()
			at := func() time.Time {
				if rng.Intn(3) == 0 {
					return time.Time{}
				}
				return now.Add(time.Duration(1+rng.Intn(4)) * time.Minute)
			}
			gang := func() types.NamespacedName { return gangNamed(string(rune('a' + rng.Intn(3)))) }
			leaf := func() string { return string(rune('x' + rng.Intn(2))) }
			node := func() string { return fmt.Sprint("n", rng.Intn(7)) }
			pod := func(name string) *corev1.Pod { return classPod(name).GPUs(int64(1 + rng.Intn(4))).CPU("1").Obj() }
			var bound []*corev1.Pod
			nodes, asks := map[string]*corev1.Node{}, 0
			for _, n := range c.nodes {
				nodes[n.Node().Name] = n.Node()
			}
			for step := range 150 {
				name := fmt.Sprint("p", step)
				switch rng.Intn(12) {
				case 0, 1:
					if n := node(); nodes[n] != nil {
						p := c.bind(pod(name), name, n)
						bound = append(bound, p)
						set.Occupy(reservations.Asker{Gang: gang(), Ends: at()}, n, reservations.Occupied{Pod: p.UID, Amount: AmountOf(p)})
					}
				case 2, 3:
					if k := rng.Intn(len(bound) + 1); k < len(bound) {
						p := bound[k]
						bound = append(bound[:k:k], bound[k+1:]...)
						if rng.Intn(2) == 0 {
							set.Reserve(reservationOf(gang(), leaf(), rng.Int31n(4), p), now.Add(time.Hour), now)
						} else {
							set.RemoveOccupant(p.UID)
						}
						c.unbind(p)
					}
				case 4, 5:
					set.Reserve(reservations.Reservation{
						Owner: reservations.Owner{Gang: gang(), Leaf: reservations.EveryLeaf}, Node: node(), Priority: rng.Int31n(4), Starts: at(),
						Promised: rng.Intn(2) == 0, Amount: reservations.Amount{Pods: 2, Resources: map[corev1.ResourceName]int64{wrappers.GPUResource: int64(1 + rng.Intn(8))}},
					}, now.Add(time.Hour), now)
				case 6:
					p := pod(name)
					set.Take(reservations.Owner{Gang: gang(), Leaf: leaf()}, types.UID(fmt.Sprint("t", rng.Intn(3))), node(), AmountOf(p))
				case 7:
					set.GiveBack(types.UID(fmt.Sprint("t", rng.Intn(3))))
				case 8:
					set.EndOfGang(gang(), func(*reservations.Reservation) bool { return rng.Intn(2) == 0 })
				case 9:
					set.EndOnNode(node())
				case 10: // a node is added, or another size
					n := wrappers.MakeNode(node()).GPUs(int64(4+rng.Intn(8))).Label("rack", "r0").Obj()
					if old := nodes[n.Name]; old != nil {
						c.sched.Cache.UpdateNode(klog.Background(), old, n)
					} else {
						c.sched.Cache.AddNode(klog.Background(), n)
					}
					nodes[n.Name] = n
					c.refresh()
				case 11:
					if n := nodes[node()]; n != nil && len(nodes) > 3 {
						var left []*corev1.Pod
						for _, p := range bound {
							if p.Spec.NodeName == n.Name {
								c.unbind(p)
							} else {
								left = append(left, p)
							}
						}
						bound = left
						if err := c.sched.Cache.RemoveNode(klog.Background(), n); err != nil {
							t.Fatal(err)
						}
						delete(nodes, n.Name)
						c.refresh()
					}
				}
				asker := reservations.Asker{Gang: gang(), Priority: rng.Int31n(5) - 1, Surplus: rng.Intn(4) == 0, Refill: rng.Intn(3) == 0, Ends: at()}
				classes, leaves := []*corev1.Pod{classPod("c0").GPUs(1).Obj(), classPod("c1").GPUs(3).CPU("1").Obj()}, []string{leaf(), leaf()}
				world := func(cache *FilterCache) *Snapshot {
					w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes, Options{Cache: cache, Reserved: set.View(), Asker: asker, Leaves: leaves})
					if err != nil {
						t.Fatal(err)
					}
					return w
				}
				want, got := world(nil), world(kept)
				compare := func(when string) {
					t.Helper()
					asks++
					compareSnapshots(t, want, got)
					for i := range classes {
						for n := range c.nodes {
							if want, got := want.Slots(i, n, nil, nil), got.Slots(i, n, nil, nil); want != got {
								t.Errorf("%s has %d slots for class %d, want %d", c.nodes[n].Node().Name, got, i, want)
							}
						}
					}
					if t.Failed() {
						t.Fatalf("step %d, %s, asked by %+v", step, when, asker)
					}
				}
				compare("as it is")
				if rng.Intn(2) == 0 {
					want.AskForLater()
					got.AskForLater()
					compare("for later")
				}
				var ids []int
				want.VisitPods(func(id int, _ *corev1.Pod) {
					if rng.Intn(2) == 0 {
						ids = append(ids, id)
					}
				})
				want.Free(ids)
				got.Free(ids)
				compare("pods are freed")
				want.Restore(ids)
				got.Restore(ids)
				compare("and restored")
			}
		})
	}
}
