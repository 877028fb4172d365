// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"math"
	"slices"
)

// maxFewestSteps bounds the steps by which the fewest domains are chosen. Beyond it the largest are taken.
const maxFewestSteps = 1 << 20

// domain is a domain of a preferred level that has room.
type domain struct {
	area   Area
	room   int  // for pods of the class
	used   int  // nodes on which pods run
	chosen bool // one of the fewest
	// inside are the domains of the next narrower level in it, in order: those in which pods run, then the largest.
	inside []*domain
}

// nestedIn identifies the domains of a level inside an area, and those of a wider level around them.
type nestedIn struct {
	level, wider string
	within       Area
}

func sortDomains(list []*domain) []*domain {
	slices.SortStableFunc(list, func(a, b *domain) int { return cmp.Or(cmp.Compare(b.used, a.used), cmp.Compare(b.room, a.room)) })
	return list
}

// domainsIn returns the domains of the widest of the levels inside an area, with those of the others inside them. The
// narrowest level comes first. running are nodes on which pods of the group run.
func (f *preferring) domainsIn(running []string, class int32, levels []string, within Area) []*domain {
	var widest, around []*domain // around: of the level before, by index of its area; nil: it has no room
	for k, level := range slices.Backward(levels) {
		areas, left := f.world.Areas(level, within), f.roomsLeft(class, level, within)
		used := map[Area]int{}
		for _, node := range running {
			if area, ok := f.world.AreaOf(level, within, node); ok {
				used[area]++
			}
		}
		list := make([]*domain, len(areas))
		for i, area := range areas {
			if left[i] > 0 {
				list[i] = &domain{area: area, room: left[i], used: used[area]}
			}
		}
		if k == len(levels)-1 {
			widest = slices.DeleteFunc(slices.Clone(list), func(d *domain) bool { return d == nil })
		} else {
			for i, up := range f.indexesAround(nestedIn{level, levels[k+1], within}, areas) {
				if up >= 0 && list[i] != nil && around[up] != nil {
					around[up].inside = append(around[up].inside, list[i])
				}
			}
			for _, d := range around {
				if d != nil {
					sortDomains(d.inside)
				}
			}
		}
		around = list
	}
	return sortDomains(widest)
}

// indexesAround returns, by index of the areas of a level, the index of the area of the wider level around it; -1:
// there is none.
func (f *preferring) indexesAround(key nestedIn, areas []Area) []int {
	list, known := f.wider[key]
	if known {
		return list
	}
	index := indexOfAreas(f.world.Areas(key.wider, key.within))
	list = make([]int, len(areas))
	for i, area := range areas {
		list[i] = -1
		if around, ok := f.world.AreaAround(key.wider, key.within, area); ok {
			list[i] = index[around]
		}
	}
	f.wider[key] = list
	return list
}

// fewestDomains returns the domains of the narrowest of so many levels that hold the pods, as far as those in the list,
// which is in order, do: all those inside the domains in which pods run, if these do not hold the pods, and of each
// level, the widest first, the fewest others (fewestOf).
func fewestDomains(list []*domain, levels, pods int) []*domain {
	n, left := 0, pods
	for ; left > 0 && n < len(list) && list[n].used > 0; n++ {
		left -= list[n].room
	}
	used, others := list[:n:n], list[n:]
	if left > 0 {
		others = fewestOf(others, levels == 1, left)
	} else {
		others = nil
	}
	for _, d := range slices.Concat(used, others) {
		d.chosen = true
	}
	switch {
	case levels == 1:
		return append(used, others...)
	case n > 0 && left > 0:
		used = fewestDomains(insideOf(used), levels-1, math.MaxInt)
	case n > 0:
		used = fewestDomains(insideOf(used), levels-1, pods)
	}
	if len(others) == 0 {
		return used
	}
	return append(used, fewestDomains(insideOf(others), levels-1, left)...)
}

// insideOf returns the domains of the next narrower level inside those of the list, in order.
func insideOf(list []*domain) []*domain {
	var inside []*domain
	for _, d := range list {
		inside = append(inside, d.inside...)
	}
	return sortDomains(inside)
}

// roomsInside returns the room of each domain inside those of the list, the largest first, and of their nodes outside
// of these.
func roomsInside(list ...*domain) []int {
	var rooms, outside []int
	for _, d := range list {
		left := d.room
		for _, in := range d.inside {
			left -= in.room
			rooms = append(rooms, in.room)
		}
		if left > 0 {
			outside = append(outside, left)
		}
	}
	slices.SortFunc(rooms, func(a, b int) int { return b - a })
	return append(rooms, outside...)
}

// needed returns how many of the rooms hold the pods, in order.
func needed(rooms []int, pods int) int {
	n := 0
	for ; pods > 0 && n < len(rooms); n++ {
		pods -= rooms[n]
	}
	return n
}

// fewestOf returns the fewest domains that hold the pods. Of several choices it is one with the fewest narrower
// domains, and the last one is the tightest. narrowest: there are no narrower ones. The list is in order. If it does
// not hold the pods, all of it is returned.
func fewestOf(list []*domain, narrowest bool, pods int) []*domain {
	count, left := 0, pods
	for ; left > 0; count++ {
		if count == len(list) {
			return list
		}
		left -= list[count].room
	}
	chosen, most := slices.Clone(list[:count]), 0
	if !narrowest {
		chosen, most = fewestInside(list, count, pods)
	}
	last := chosen[count-1]
	left = pods
	for _, c := range chosen[:count-1] {
		left -= c.room
	}
	steps := 0
	for _, d := range slices.Backward(list) { // the tightest first
		if d.room >= last.room || steps > maxFewestSteps {
			break
		}
		if d.room < left {
			continue
		}
		chosen[count-1] = d
		if narrowest {
			return chosen
		}
		rooms := roomsInside(chosen...)
		if steps += len(rooms); needed(rooms, pods) <= most {
			return chosen
		}
	}
	chosen[count-1] = last
	return chosen
}

// fewestInside returns so many of the list that hold the pods in the fewest narrower domains, and how many these are.
// The list is in order, and so is the result. The first ones hold the pods.
func fewestInside(list []*domain, count, pods int) (chosen []*domain, most int) {
	chosen = slices.Clone(list[:count])
	most = needed(roomsInside(chosen...), pods)
	inside, steps := make([][]int, len(list)), 0
	for k, d := range list {
		inside[k] = roomsInside(d)
		steps += len(inside[k])
	}
	if steps*count*most > maxFewestSteps {
		return chosen, most
	}
	// best[b*width+c] is the most pods that b of the domains seen so far hold in c narrower ones; -1: there is no such
	// choice. took[k][b*width+c] is how many of these are in the k-th, if it is the last one of that choice.
	width := most + 1
	best, took := slices.Repeat([]int{-1}, (count+1)*width), make([][]int32, len(list))
	best[0] = 0
	for k := range list {
		took[k] = make([]int32, (count+1)*width)
		for b := count; b > 0; b-- {
			for c := 1; c < width; c++ {
				room := 0
				for i := 1; i <= min(c, len(inside[k])); i++ {
					room += inside[k][i-1]
					if before := best[(b-1)*width+c-i]; before >= 0 && before+room > best[b*width+c] {
						best[b*width+c], took[k][b*width+c] = before+room, int32(i)
					}
				}
			}
		}
	}
	most = slices.IndexFunc(best[count*width:], func(room int) bool { return room >= pods })
	b, c := count, most
	for k := len(list) - 1; b > 0; k-- {
		if i := took[k][b*width+c]; i > 0 {
			b, c = b-1, c-int(i)
			chosen[b] = list[k]
		}
	}
	return chosen, most
}
