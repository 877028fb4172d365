// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"slices"
	"strconv"

	"github.com/muster-project/muster/pkg/placement"
)

// imaginedArea is what a placement.Area of an imagined world stands for: the nodes that one domain of a level has in another
// area.
type imaginedArea struct {
	areaKey
	nodes []int32
}

// areaKey identifies an area of which domain is set, or all areas of the level inside another one.
type areaKey struct {
	level  string
	domain placement.Area // of Inventory.Levels
	within placement.Area
}

// classIn is a class and all areas of a level inside another one: domain is not set.
type classIn struct {
	class int
	areaKey
}

// confinement is a class that is confined to an area.
type confinement struct {
	class int
	area  placement.Area
}

// division is the areas of a level inside another one, in the order of their first nodes.
type division struct {
	areas []placement.Area
	index map[placement.Area]int // in areas, by domain
}

// Areas implements placement.World.
func (w *imagined) Areas(level string, within placement.Area) []placement.Area {
	return w.divide(level, within).areas
}

// divide returns the division of an area by a level.
func (w *imagined) divide(level string, within placement.Area) *division {
	key := areaKey{level: level, within: within}
	if d, known := w.divisions[key]; known {
		return d
	}
	var numbers []int32 // by domain: 1 + index in areas; a look-up in a map for each node would take most of the time
	var nodes, sizes []int32
	var domains []placement.Area
	if within == 0 {
		nodes = make([]int32, 0, len(w.of.Nodes))
	}
	for i, domain := range w.of.Levels[level] {
		if domain == 0 || !w.isIn(within, int32(i)) {
			continue
		}
		nodes = append(nodes, int32(i))
		if more := int(domain) + 1 - len(numbers); more > 0 {
			numbers = append(numbers, make([]int32, more)...)
		}
		if numbers[domain] == 0 {
			domains, sizes = append(domains, domain), append(sizes, 0)
			numbers[domain] = int32(len(domains))
		}
		sizes[numbers[domain]-1]++
	}
	first, all := len(w.areas), make([]int32, len(nodes)) // one array for all areas
	w.areas = slices.Grow(w.areas, len(domains))
	d := &division{make([]placement.Area, len(domains)), make(map[placement.Area]int, len(domains))}
	for k, domain := range domains {
		w.areas = append(w.areas, imaginedArea{areaKey{level, domain, within}, all[:0:sizes[k]]})
		d.areas[k], d.index[domain] = placement.Area(first+k+1), k
		all = all[sizes[k]:]
	}
	for _, i := range nodes {
		at := &w.areas[first+int(numbers[w.of.Levels[level][i]])-1]
		at.nodes = append(at.nodes, i)
	}
	w.divisions[key] = d
	return d
}

// isIn reports whether a node is in the area.
func (w *imagined) isIn(a placement.Area, node int32) bool {
	for a != 0 {
		at := &w.areas[a-1]
		if w.of.Levels[at.level][node] != at.domain {
			return false
		}
		a = at.within
	}
	return true
}

// nodesByArea divides nodes by the areas of a level.
func (w *imagined) nodesByArea(level string, within placement.Area, nodes []int32) [][]int32 {
	d := w.divide(level, within)
	parts := make([][]int32, len(d.areas))
	if len(parts) == 0 {
		return parts
	}
	all := make([]int32, 0, len(w.of.Nodes)) // one array for all parts
	for k, a := range d.areas {
		n := len(all)
		all = all[:n+len(w.areas[a-1].nodes)]
		parts[k] = all[n:n:len(all)]
	}
	for domain, last, k := w.of.Levels[level], placement.Area(0), 0; len(nodes) > 0; nodes = nodes[1:] {
		i := nodes[0]
		if domain[i] == 0 || !w.isIn(within, i) {
			continue
		}
		if domain[i] != last { // neighbours are often in the same domain: no look-up
			last, k = domain[i], d.index[domain[i]]
		}
		parts[k] = append(parts[k], i)
	}
	return parts
}

// takersIn returns, for each of Areas, its nodes that are in order of the class, in that order.
func (w *imagined) takersIn(class int, level string, within placement.Area) [][]int32 {
	key := classIn{class, areaKey{level: level, within: within}}
	parts, known := w.takers[key]
	if !known {
		parts = w.nodesByArea(level, within, w.order[class])
		w.takers[key] = parts
	}
	return parts
}

// Rooms implements placement.World.
func (w *imagined) Rooms(class int, level string, within placement.Area) []int {
	key := classIn{class, areaKey{level: level, within: within}}
	rooms, known := w.rooms[key]
	if !known {
		parts := w.takersIn(class, level, within)
		rooms = make([]int, len(parts))
		for k, nodes := range parts {
			rooms[k] = w.capacityOn(class, nodes).Pods
		}
		w.rooms[key] = rooms
	}
	return rooms
}

// Uses implements placement.World.
func (w *imagined) Uses(class int) []int64 { return w.of.Requests[w.base[class]] }

// FreeIn implements placement.World. It counts the nodes that take a pod of any class.
func (w *imagined) FreeIn(level string, within placement.Area) [][]int64 {
	parts := w.nodesByArea(level, within, w.useful)
	free := make([][]int64, len(parts))
	for k, nodes := range parts {
		free[k] = make([]int64, len(w.of.Resources))
		for _, i := range nodes {
			for r, amount := range w.firstRoom(i) {
				free[k][r] += amount
			}
		}
	}
	return free
}

// AreaOf implements placement.World. The name of a node is its index.
func (w *imagined) AreaOf(level string, within placement.Area, node string) (placement.Area, bool) {
	i, err := strconv.Atoi(node)
	if err != nil || i < 0 || i >= len(w.of.Nodes) {
		return 0, false
	}
	return w.areaOf(level, within, int32(i))
}

func (w *imagined) areaOf(level string, within placement.Area, node int32) (placement.Area, bool) {
	d, domains := w.divide(level, within), w.of.Levels[level]
	if int(node) >= len(domains) || domains[node] == 0 || !w.isIn(within, node) {
		return 0, false
	}
	return d.areas[d.index[domains[node]]], true
}

// HasNode implements placement.World.
func (w *imagined) HasNode(name string) bool {
	i, err := strconv.Atoi(name)
	return err == nil && i >= 0 && i < len(w.of.Nodes)
}

// AreaAround implements placement.World.
func (w *imagined) AreaAround(level string, within, inner placement.Area) (placement.Area, bool) {
	around := placement.Area(0)
	for _, i := range w.nodesIn(inner) {
		area, ok := w.areaOf(level, within, i)
		if !ok || around != 0 && area != around {
			return 0, false
		}
		around = area
	}
	return around, around != 0
}

// nodesIn returns the nodes of an area.
func (w *imagined) nodesIn(a placement.Area) []int32 {
	if a != 0 {
		return w.areas[a-1].nodes
	}
	all := make([]int32, len(w.of.Nodes))
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// Within implements placement.World.
func (w *imagined) Within(class int, area placement.Area) int {
	if area == 0 {
		return class
	}
	key := confinement{class, area}
	number, known := w.confined[key]
	if !known {
		number = len(w.base)
		w.confined[key] = number
		at := &w.areas[area-1]
		first := w.Areas(at.level, at.within)[0] // the areas of a list have consecutive numbers
		order := w.takersIn(class, at.level, at.within)[area-first]
		w.base, w.order, w.from = append(w.base, class), append(w.order, order), append(w.from, 0)
	}
	return number
}
