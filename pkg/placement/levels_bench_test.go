// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// racked is a World of like pods: racks of nodes, in blocks, each node with the same free places.
type racked struct {
	placement.NoTopology

	racks, nodes, free int // racks, nodes of each, free places of each node
	racksOfBlock       int
	used               []int   // by rack
	areas              []int32 // of derived classes, from 1 on: rack, or -1-block
	placed             []int
	all                []placement.Area
}

// Areas numbers the racks from 1 on, then the blocks.
func (w *racked) Areas(level string, within placement.Area) []placement.Area {
	var areas []placement.Area
	first, last := 0, w.racks
	if level == "block" {
		first, last = w.racks, w.racks+w.racks/w.racksOfBlock
	} else if within > 0 {
		first = (int(within) - 1 - w.racks) * w.racksOfBlock
		last = first + w.racksOfBlock
	} else if w.all != nil {
		return w.all
	}
	for i := first; i < last; i++ {
		areas = append(areas, placement.Area(i+1))
	}
	if level != "block" && within == 0 {
		w.all = areas
	}
	return areas
}

func (w *racked) Rooms(_ int, level string, within placement.Area) []int {
	areas := w.Areas(level, within)
	rooms := make([]int, len(areas))
	for i := range rooms {
		rooms[i] = w.nodes * w.free
		if level == "block" {
			rooms[i] *= w.racksOfBlock
		}
	}
	return rooms
}

func (w *racked) AreaOf(level string, within placement.Area, node string) (placement.Area, bool) {
	rack := 0
	if _, err := fmt.Sscanf(node, "r%d", &rack); err != nil {
		return 0, false
	}
	if level == "block" {
		return placement.Area(1 + w.racks + rack/w.racksOfBlock), true
	}
	return placement.Area(1 + rack), true
}

func (w *racked) AreaAround(level string, _, inner placement.Area) (placement.Area, bool) {
	if int(inner) <= w.racks && level == "block" {
		return placement.Area(1 + w.racks + (int(inner)-1)/w.racksOfBlock), true
	}
	return inner, int(inner) <= w.racks || level == "block"
}

func (w *racked) Within(_ int, area placement.Area) int {
	w.areas = append(w.areas, int32(area)-1)
	return len(w.areas)
}

func (w *racked) Place(class int, _ string) (string, bool) {
	first, last := 0, w.racks
	if class > 0 {
		if area := int(w.areas[class-1]); area < w.racks {
			first, last = area, area+1
		} else {
			first = (area - w.racks) * w.racksOfBlock
			last = first + w.racksOfBlock
		}
	}
	for rack := first; rack < last; rack++ {
		if w.used[rack] < w.nodes*w.free {
			w.used[rack]++
			w.placed = append(w.placed, rack)
			return "r", true
		}
	}
	return "", false
}

func (w *racked) Undo(n int) {
	for ; n > 0; n-- {
		last := len(w.placed) - 1
		w.used[w.placed[last]]--
		w.placed = w.placed[:last]
	}
}

func (w *racked) Kind(int) placement.Kind     { return placement.Independent }
func (w *racked) Domains(int, []int) []string { return nil }
func (w *racked) Open(int, string) bool       { return true }
func (w *racked) Nodes(int, int) []string     { return nil }
func (w *racked) Weight(int) int64            { return 1 }
func (w *racked) Capacity(int) placement.Capacity {
	return placement.Capacity{Nodes: w.racks * w.nodes, Pods: w.racks * w.nodes * w.free}
}
func (w *racked) Explain(int, string) *placement.Refusal { return &placement.Refusal{} }

// BenchmarkLevels plans gangs with required levels on 5,000 nodes in 312 racks, or in 10,000; the World costs next to
// nothing.
func BenchmarkLevels(b *testing.B) {
	leaves := func(n, pods int) placement.Problem {
		var groups []leveledNode
		p := placement.Problem{Pods: map[string][]placement.Pod{}}
		for i := range n {
			name := fmt.Sprintf("leaf%d", i)
			groups = append(groups, required("rack", leaf(name, "", int32(pods))))
			p.Pods[name] = rootPods(pods)[""]
		}
		p.Tree, p.Required = buildLeveled(b, leveledNode{}, groups...)
		return p
	}
	flat := placement.Problem{Tree: mustBuild(b, leaf("", "", 64)), Required: map[string]string{"": "rack"}, Pods: rootPods(64)}
	blocked := leaves(32, 8)
	groups := []leveledNode{required("block", gang.Node{Name: "set"})}
	for i := range 32 {
		groups = append(groups, required("rack", leaf(fmt.Sprintf("leaf%d", i), "set", 8)))
	}
	blocked.Tree, blocked.Required = buildLeveled(b, leveledNode{}, groups...)
	tests := []struct {
		name    string
		p       placement.Problem
		free    int // places of each node
		racks   int
		planned bool
	}{
		{"64 pods in a rack", flat, 8, 312, true},
		{"64 pods in a rack, refused", flat, 3, 312, false},
		{"32 leaves of 8, a rack each in one block", blocked, 8, 312, true},
		{"32 leaves of 8, a rack each in one block, refused", blocked, 1, 312, false},
		{"1,024 leaves of 8, a rack each", leaves(1024, 8), 8, 312, true},
		{"1,024 leaves of 8, a rack each, refused", leaves(1024, 8), 1, 312, false},
		{"32 leaves of 8, a rack each in one block, 10,000 racks", blocked, 8, 10_000, true},
		{"1,024 leaves of 8, a rack each, 10,000 racks", leaves(1024, 8), 8, 10_000, true},
	}
	for _, tt := range tests {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := &racked{racks: tt.racks, nodes: 16, free: tt.free, racksOfBlock: 8, used: make([]int, tt.racks)}
				if _, short := placement.Minimum(tt.p, w, placement.Budget{Expired: func() bool { return false }}); (short == nil) != tt.planned {
					b.Fatalf("planned: %t, want %t", short == nil, tt.planned)
				}
			}
		})
	}
}
