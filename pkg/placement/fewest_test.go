// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/placement"
)

// fewestDomains returns how few blocks hold so many pods, and how few racks in so few blocks, by trying all sets of
// racks: what docs/decisions, G26, asks for. rooms has the room of each rack of each block.
func fewestDomains(rooms [][]int, pods int) (blocks, racks int) {
	type rack struct{ block, room int }
	var all []rack
	for b := range rooms {
		for _, room := range rooms[b] {
			all = append(all, rack{b, room})
		}
	}
	blocks, racks = len(rooms)+1, len(all)+1
	for set := range 1 << len(all) {
		used, room := 0, 0
		for i, r := range all {
			if set>>i&1 == 1 {
				used |= 1 << r.block
				room += r.room
			}
		}
		b, n := bits.OnesCount(uint(used)), bits.OnesCount(uint(set))
		if room >= pods && (b < blocks || b == blocks && n < racks) {
			blocks, racks = b, n
		}
	}
	return blocks, racks
}

// TestPreferredLevelsUseTheFewestDomains: pods that fit in no rack are placed in the fewest blocks, and there in the
// fewest racks, whatever the sizes of these are.
func TestPreferredLevelsUseTheFewestDomains(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(71, 73))
	splits, more := 0, 0
	for splits < 3000 {
		rooms, nodes, total, largest := make([][]int, 2+r.IntN(3)), []node(nil), 0, 0
		for b := range rooms {
			rooms[b] = make([]int, 1+r.IntN(4))
			for i := range rooms[b] {
				n := 1 + r.IntN(6)
				rooms[b][i], total, largest = n, total+n, max(largest, n)
				for k := range n {
					nodes = append(nodes, node{name: fmt.Sprintf("b%d-r%d-%d", b, i, k), gpus: 1, block: fmt.Sprintf("b%d", b), rack: fmt.Sprintf("b%d-r%d", b, i)})
				}
			}
		}
		if total == largest {
			continue
		}
		splits++
		pods := largest + 1 + r.IntN(total-largest)
		w := newCluster(t, []class{{gpus: 1}}, nodes...)
		p := placement.Problem{Tree: mustBuild(t, leaf("", "", int32(pods))), Preferred: map[string]string{"": "block,rack"}, Pods: rootPods(pods)}
		plan, short := placement.Minimum(p, w, preferringNow())
		if short != nil {
			t.Fatalf("%d pods, rooms %v: no plan", pods, rooms)
		}
		var racks, blocks []string
		for _, pl := range plan {
			n := w.nodeOf(pl.Node)
			racks, blocks = append(racks, n.rack), append(blocks, n.block)
		}
		slices.Sort(racks)
		slices.Sort(blocks)
		gotBlocks, gotRacks := len(slices.Compact(blocks)), len(slices.Compact(racks))
		if wantBlocks, wantRacks := fewestDomains(rooms, pods); gotBlocks != wantBlocks || gotRacks != wantRacks {
			if more++; more <= 5 {
				t.Errorf("%d pods, racks by block %v: %d blocks and %d racks are used, want %d and %d", pods, rooms, gotBlocks, gotRacks, wantBlocks, wantRacks)
			}
		}
	}
	t.Logf("%d of %d splits use more domains than necessary (%.1f %%)", more, splits, 100*float64(more)/float64(splits))
}
