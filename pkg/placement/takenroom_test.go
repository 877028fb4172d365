// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"math/rand/v2"
	"testing"
)

// oneNode is a World in which all classes may use the same node.
type oneNode struct{ World }

func (oneNode) Nodes(int, int) []string { return []string{"node"} }

// What takes the room of pods that take the room of others takes the room of these, too. Rooms are bounded by more than
// the resources that are compared: of the pods of some classes at most one may be on a node.
func TestTakenRoomIsTransitive(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(73, 79))
	chains := 0
	for round := range 2000 {
		a := &arrangement{search: &search{planner: &planner{world: oneNode{}}}, classes: []int32{0, 1, 2}, usesOf: map[int32][]int64{}}
		for _, class := range a.classes {
			a.usesOf[class] = []int64{int64(1 + r.IntN(6)), int64(r.IntN(4))}
		}
		a.tables = []table{{room: make([][]int, len(a.classes))}}
		for range 1 + r.IntN(3) { // domains of one to three nodes
			nodes, free := 1+r.IntN(3), []int64{int64(r.IntN(8)), int64(r.IntN(8))}
			for i, class := range a.classes {
				slots := 16
				for k, uses := range a.usesOf[class] {
					if uses > 0 {
						slots = min(slots, int(free[k]/uses))
					}
				}
				if class == 2 && round%2 == 0 {
					slots = min(slots, 1)
				}
				a.tables[0].room[i] = append(a.tables[0].room[i], nodes*slots)
			}
		}
		a.compareClasses()
		taken := func(class, other int) int {
			for _, t := range a.podTakes[class] {
				if t.row == other {
					return t.n
				}
			}
			return 0
		}
		for x := range a.classes {
			for y := range a.classes {
				for z := range a.classes {
					if x == y || y == z || x == z || taken(x, y)*taken(y, z) == 0 {
						continue
					}
					chains++
					if taken(x, z) < taken(x, y)*taken(y, z) {
						t.Fatalf("round %d: a pod of class %d takes the room of %d of class %d, of which each takes that of %d of class %d, but it takes that of %d of these: uses %v, rooms %v",
							round, x, taken(x, y), y, taken(y, z), z, taken(x, z), a.usesOf, a.tables[0].room)
					}
				}
			}
		}
	}
	if chains < 500 {
		t.Errorf("only %d chains of classes", chains)
	}
}
