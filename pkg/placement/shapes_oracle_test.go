// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-project/muster/test/shapes"
)

// answer is what an oracle knows about a plan.
type answer int

const (
	impossible answer = iota
	possible
	unknown // the oracle's steps were not enough
)

// oracle decides whether a part of a gang can be placed at all. It is exact for pods whose sizes divide each other, as
// 1, 2, 4 and 8 do: a set of such pods fits on nodes if and only if, for each size, those of at least this size, in
// units of it, are not more than the units that are free. So it assigns pods to sets of like nodes and counts. It knows
// nothing of the planner.
type oracle struct {
	sizes   []int // GPUs per pod, the largest first
	domains []oracleDomain
	byLevel map[string][]int // indexes of domains
	of      []map[string]int // by node and level: index of the domain
	nodes   []node
	gang    *running
	failed  map[string]bool // states from which there is no plan
	steps   int             // left
}

// oracleDomain is a set of nodes: all, a domain of a level, or nodes that are in the same domains. Domains are inside
// one another or have no node in common.
type oracleDomain struct {
	parent   int // -1: none
	children []int
	room     []int // by size: units of it that are free
	use      []int // by size: units that are needed inside
	loose    []int // by size: pods that may be anywhere inside
}

// newOracle returns an oracle for a gang on nodes with these free GPUs.
func newOracle(nodes []node, g *running) *oracle {
	o := &oracle{nodes: nodes, gang: g, byLevel: map[string][]int{}, failed: map[string]bool{}, steps: 5000}
	levels := map[string]bool{}
	for _, group := range g.Groups {
		if group.Pods > 0 && group.GPUs > 0 {
			o.sizes = append(o.sizes, group.GPUs)
		}
		if level := g.required[group.Name]; level != "" {
			levels[level] = true
		}
	}
	slices.Sort(o.sizes)
	o.sizes = slices.Compact(o.sizes)
	slices.Reverse(o.sizes)
	o.addDomain(-1)
	o.of = make([]map[string]int, len(nodes))
	byKey := map[string]int{}
	for i, n := range nodes {
		o.of[i] = map[string]int{}
		at, key := 0, ""
		for _, level := range []string{blockLevel, rackLevel, hostLevel} { // the widest first
			if !levels[level] {
				continue
			}
			values, ok := valuesOf(n, level)
			if !ok {
				continue
			}
			key = level + "=" + values
			if _, ok := byKey[key]; !ok {
				byKey[key] = o.addDomain(at)
				o.byLevel[level] = append(o.byLevel[level], byKey[key])
			}
			at = byKey[key]
			o.of[i][level] = at
		}
		key += "+"
		if _, ok := byKey[key]; !ok {
			byKey[key] = o.addDomain(at)
		}
		for d := byKey[key]; d >= 0; d = o.domains[d].parent {
			for s, size := range o.sizes {
				o.domains[d].room[s] += n.gpus / size
			}
		}
	}
	return o
}

func (o *oracle) addDomain(parent int) int {
	o.domains = append(o.domains, oracleDomain{
		parent: parent, room: make([]int, len(o.sizes)), use: make([]int, len(o.sizes)), loose: make([]int, len(o.sizes)),
	})
	if parent >= 0 {
		o.domains[parent].children = append(o.domains[parent].children, len(o.domains)-1)
	}
	return len(o.domains) - 1
}

// task is a group that is still to be placed inside a domain.
type task struct {
	group  *shapes.Group
	domain int
	units  []int // by size: the fewest units that the group needs
}

// canPlace reports whether the pods that a group lacks can be placed. The groups above it run, or it is the root.
func (o *oracle) canPlace(g *shapes.Group) answer {
	if len(o.sizes) == 0 {
		return possible
	}
	domain := 0
	for up := o.gang.parent(g); up != nil; up = o.gang.parent(up) {
		if level := o.gang.required[up.Name]; level != "" && domain == 0 {
			d, pinned, torn := o.pinned(up, level)
			if torn {
				return impossible
			}
			if pinned {
				domain = d
			}
		}
	}
	ok := o.place([]task{{g, domain, o.units(g)}})
	switch {
	case ok:
		return possible
	case o.steps <= 0:
		return unknown
	}
	return impossible
}

// pinned returns the domain of a level in which the pods of a group run. torn: in several, or in none.
func (o *oracle) pinned(g *shapes.Group, level string) (domain int, pinned, torn bool) {
	domain = -1
	for leaf, nodes := range o.gang.bound {
		if !o.gang.isBelow(leaf, g) {
			continue
		}
		for _, i := range nodes {
			d, ok := o.of[i][level]
			torn = torn || !ok || domain >= 0 && d != domain
			domain = d
		}
	}
	return domain, domain >= 0 || torn, torn
}

// units returns, by size, a lower bound of the units that a group lacks.
func (o *oracle) units(g *shapes.Group) []int {
	units := make([]int, len(o.sizes))
	if o.gang.holds(g) {
		return units
	}
	if g.Pods > 0 {
		for s, size := range o.sizes {
			if g.GPUs >= size {
				units[s] = (g.Min - len(o.gang.bound[g.Name])) * (g.GPUs / size)
			}
		}
		return units
	}
	children := o.gang.children(g)
	lacking := make([][]int, len(children))
	for i, child := range children {
		lacking[i] = o.units(child)
	}
	for s := range units {
		slices.SortFunc(lacking, func(a, b []int) int { return a[s] - b[s] })
		for _, child := range lacking[:g.Min] {
			units[s] += child[s]
		}
	}
	return units
}

// add needs n more pods of a size (an index) anywhere inside a domain. It reports whether the numbers allow it.
func (o *oracle) add(domain, size, n int) bool {
	o.domains[domain].loose[size] += n
	ok := true
	for d := domain; d >= 0; d = o.domains[d].parent {
		for s := size; s < len(o.sizes); s++ {
			o.domains[d].use[s] += n * (o.sizes[size] / o.sizes[s])
			ok = ok && o.domains[d].use[s] <= o.domains[d].room[s]
		}
	}
	return ok
}

// copies returns how many groups that need these units the numbers allow in a domain.
func (o *oracle) copies(domain int, units []int) int {
	most := 1 << 20
	for d := domain; d >= 0; d = o.domains[d].parent {
		for s, n := range units {
			if n > 0 {
				most = min(most, (o.domains[d].room[s]-o.domains[d].use[s])/n)
			}
		}
	}
	return most
}

// place reports whether all tasks can be fulfilled.
func (o *oracle) place(tasks []task) bool {
	if o.steps--; o.steps <= 0 {
		return false
	}
	for i, t := range tasks {
		rest := slices.Delete(slices.Clone(tasks), i, i+1)
		switch level := o.gang.required[t.group.Name]; {
		case o.gang.holds(t.group):
			return o.place(rest)
		case level != "":
			domain, pinned, torn := o.pinned(t.group, level)
			if torn {
				return false
			}
			if pinned {
				return o.placeInside(t.group, domain, rest)
			}
		default:
			return o.placeInside(t.group, t.domain, rest)
		}
	}
	if len(tasks) == 0 {
		return o.spread()
	}
	// Only groups that choose a domain are left.
	state := o.state(tasks)
	if o.failed[state] {
		return false
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return b.units[len(b.units)-1] - a.units[len(a.units)-1] })
	t := tasks[0]
	level := o.gang.required[t.group.Name]
	var inside []int
	copies := 0
	for _, d := range o.byLevel[level] {
		if n := o.copies(d, t.units); o.isInside(d, t.domain) && n > 0 {
			inside = append(inside, d)
			copies += n
		}
	}
	alike := 0
	for _, other := range tasks {
		if o.gang.required[other.group.Name] == level && other.domain == t.domain && slices.Equal(other.units, t.units) {
			alike++
		}
	}
	if copies >= alike {
		slices.SortStableFunc(inside, func(a, b int) int { return o.copies(a, t.units) - o.copies(b, t.units) })
		tried := map[string]bool{}
		for _, d := range inside {
			if like := fmt.Sprint(o.domains[d].parent, o.looks(d)); !tried[like] { // like ones in one wider domain
				tried[like] = true
				if o.placeInside(t.group, d, tasks[1:]) {
					return true
				}
			}
		}
	}
	if o.steps > 0 {
		o.failed[state] = true
	}
	return false
}

// placeInside places a group, whose domain is chosen, and the other tasks.
func (o *oracle) placeInside(g *shapes.Group, domain int, rest []task) bool {
	if g.Pods > 0 {
		n := g.Min - len(o.gang.bound[g.Name])
		if n > o.gang.waiting[g.Name] {
			return false
		}
		size := slices.Index(o.sizes, g.GPUs)
		if size < 0 { // pods without GPUs fit everywhere
			return o.place(rest)
		}
		ok := o.add(domain, size, n) && o.place(rest)
		o.add(domain, size, -n)
		return ok
	}
	need := g.Min
	var lacking []task
	var looks []string
	for _, child := range o.gang.children(g) {
		if o.gang.holds(child) {
			need--
		} else {
			lacking = append(lacking, task{child, domain, o.units(child)})
			looks = append(looks, o.looksOf(child))
		}
	}
	// All sets of children that differ.
	var choose func(from, need int, chosen []task) bool
	choose = func(from, need int, chosen []task) bool {
		if need <= 0 {
			return o.place(append(slices.Clone(chosen), rest...))
		}
		tried := map[string]bool{}
		for i := from; i+need <= len(lacking); i++ {
			if !tried[looks[i]] {
				tried[looks[i]] = true
				if choose(i+1, need-1, append(slices.Clone(chosen), lacking[i])) {
					return true
				}
			}
		}
		return false
	}
	order := make([]int, len(lacking))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(looks[a], looks[b]) })
	sorted, names := make([]task, len(order)), make([]string, len(order))
	for k, i := range order {
		sorted[k], names[k] = lacking[i], looks[i]
	}
	lacking, looks = sorted, names
	return choose(0, need, slices.Clone(rest[:0]))
}

// spread reports whether pods that may be anywhere in a domain can be divided among the domains inside it.
func (o *oracle) spread() bool {
	if len(o.sizes) == 1 {
		return true // the numbers of all domains suffice
	}
	if o.steps--; o.steps <= 0 {
		return false
	}
	for size := range o.sizes { // the largest pods, of the narrowest domains, first
		for d := len(o.domains) - 1; d >= 0; d-- {
			if at := &o.domains[d]; at.loose[size] > 0 && len(at.children) > 0 {
				n := at.loose[size]
				o.add(d, size, -n)
				ok := o.divideAmong(d, size, n, at.children)
				o.add(d, size, n)
				return ok
			}
		}
	}
	return true
}

// divideAmong reports whether n pods of a size that may be anywhere in a domain can be divided among these of its
// children.
func (o *oracle) divideAmong(domain, size, n int, children []int) bool {
	if n == 0 {
		return o.spread()
	}
	units := make([]int, len(o.sizes))
	for s := size; s < len(o.sizes); s++ {
		units[s] = o.sizes[size] / o.sizes[s]
	}
	room := 0
	for _, child := range children {
		room += o.copies(child, units)
	}
	if o.steps--; o.steps <= 0 || room < n {
		return false
	}
	for k := min(n, o.copies(children[0], units)); k >= 0 && o.steps > 0; k-- {
		o.add(children[0], size, k)
		ok := o.divideAmong(domain, size, n-k, children[1:])
		o.add(children[0], size, -k)
		if ok {
			return true
		}
	}
	return false
}

func (o *oracle) isInside(d, outer int) bool {
	for ; d >= 0; d = o.domains[d].parent {
		if d == outer {
			return true
		}
	}
	return false
}

// looks returns a text that is the same for domains that can be exchanged if they are in the same wider one.
func (o *oracle) looks(d int) string {
	at := &o.domains[d]
	var inside []string
	for _, child := range at.children {
		inside = append(inside, o.looks(child))
	}
	slices.Sort(inside)
	return fmt.Sprint(at.room, at.use, at.loose, inside)
}

// looksOf returns a text that is the same for groups that can be exchanged.
func (o *oracle) looksOf(g *shapes.Group) string {
	var inside []string
	for _, child := range o.gang.children(g) {
		inside = append(inside, o.looksOf(child))
	}
	slices.Sort(inside)
	level := o.gang.required[g.Name]
	domain := -1
	if level != "" {
		domain, _, _ = o.pinned(g, level)
	}
	return fmt.Sprint(g.Min, g.Pods, g.GPUs, level, domain, len(o.gang.bound[g.Name]), o.gang.waiting[g.Name], inside)
}

func (o *oracle) state(tasks []task) string {
	var b strings.Builder
	for _, d := range o.domains {
		fmt.Fprint(&b, d.loose)
	}
	var names []string
	for _, t := range tasks {
		names = append(names, fmt.Sprint(t.domain, o.looksOf(t.group)))
	}
	slices.Sort(names)
	return b.String() + strings.Join(names, "\n")
}
