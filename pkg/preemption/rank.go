// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"slices"
	"strings"
)

// loss is what units are ranked by first. Few units differ in it.
type loss struct{ budgets, priority, ends, amount, pods int64 }

func (a loss) compare(b loss) int {
	return cmp.Or(cmp.Compare(a.budgets, b.budgets), cmp.Compare(a.priority, b.priority), cmp.Compare(a.ends, b.ends),
		cmp.Compare(a.amount, b.amount), cmp.Compare(a.pods, b.pods))
}

func (s *search) lossOf(u int) loss {
	return loss{
		budgets: int64(s.budgets[u]), priority: int64(s.priorityOf(u)), ends: int64(max(SurplusSubGroup, s.units[u].rung)),
		amount: s.amount[u], pods: int64(len(s.units[u].pods)),
	}
}

// ranked is a unit among those with an equal loss, and the units that follow it with the same time and name.
type ranked struct {
	running int64
	name    int32 // position of the workload by name
	first   int32 // unit
	end     int32
}

// rankUnits sorts the units by loss, then by the time for which they have run, and by name.
func (s *search) rankUnits() {
	names := s.rankOfNames()
	var groups [][]ranked
	var losses []loss
	known := map[loss]int{}
	var last loss
	group := -1
	for u := range s.units {
		if l := s.lossOf(u); group < 0 || l != last { // mostly equal: no look-up
			last = l
			found := false
			if group, found = known[l]; !found {
				group = len(groups)
				known[l] = group
				groups, losses = append(groups, nil), append(losses, l)
			}
		}
		r := ranked{s.running[u], names[s.units[u].workload], int32(u), int32(u + 1)}
		if n := len(groups[group]); n > 0 {
			if run := &groups[group][n-1]; run.end == r.first && run.running == r.running && run.name == r.name {
				run.end++
				continue
			}
		}
		groups[group] = append(groups[group], r)
	}
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return losses[a].compare(losses[b]) })
	s.rank, s.byRank = make([]int, len(s.units)), make([]int, 0, len(s.units))
	for _, i := range order {
		slices.SortFunc(groups[i], func(a, b ranked) int {
			return cmp.Or(cmp.Compare(a.running, b.running), cmp.Compare(a.name, b.name), cmp.Compare(a.first, b.first))
		})
		for _, r := range groups[i] {
			for u := int(r.first); u < int(r.end); u++ {
				s.rank[u] = len(s.byRank)
				s.byRank = append(s.byRank, u)
			}
		}
	}
}

// rankOfNames returns, by workload, its position by name. Workloads of the same name have the same one.
func (s *search) rankOfNames() []int32 {
	order := make([]int, len(s.Workloads))
	for i := range order {
		order[i] = i
	}
	compare := func(a, b int) int { return strings.Compare(s.Workloads[a].Name, s.Workloads[b].Name) }
	if !slices.IsSortedFunc(order, compare) {
		slices.SortFunc(order, compare)
	}
	positions := make([]int32, len(order))
	for k, i := range order {
		positions[i] = int32(k)
		if k > 0 && compare(order[k-1], i) == 0 {
			positions[i] = positions[order[k-1]]
		}
	}
	return positions
}
