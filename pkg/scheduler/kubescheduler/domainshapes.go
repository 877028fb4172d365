// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// DomainShape is a Shape of which one domain of a topology level must hold the pods: a certain domain, or any.
type DomainShape struct {
	base   *Shape
	slots  *levelSlots
	domain int32 // noDomain: any
	users  int
}

// FittingPods returns how many pods of the shape fit in the domain, or in that with the most room, according to the
// last Update. It is an upper bound.
func (s *DomainShape) FittingPods() int {
	if s.domain != noDomain {
		return int(s.slots.fits.at(s.domain))
	}
	return int(s.slots.fits.largest())
}

// gained reports whether the node of a position is in the domain, or for any in one, and was not with its former
// labels.
func (s *DomainShape) gained(i int, before *corev1.Node) bool {
	level := s.slots.level
	now := level.of[i]
	if now == noDomain || s.domain != noDomain && s.domain != now {
		return false
	}
	value, had := level.valueOf(before)
	return !had || value != level.values[now]
}

// noDomain is the number of no domain.
const noDomain int32 = -1

// nodeLevel is the domain of each node of a topology level, for all shapes. Domains have numbers.
type nodeLevel struct {
	keys   []string
	number map[string]int32 // by the values of the labels, separated by commas
	values []string         // the same the other way round
	users  []int            // by number: nodes and DomainShapes of the domain; 0: the number is free
	free   []int32
	of     []int32 // by position of the node; noDomain: it lacks a label
	before int32   // of while setNode has changed it, and the slots have not followed yet
	slots  int     // levelSlots
}

// valueOf returns the values of a node's labels, false if it lacks one.
func (l *nodeLevel) valueOf(node *corev1.Node) (string, bool) {
	if node == nil {
		return "", false
	}
	values := make([]string, len(l.keys))
	for k, key := range l.keys {
		value, ok := node.Labels[key]
		if !ok {
			return "", false
		}
		values[k] = value
	}
	return strings.Join(values, ","), true
}

// hold returns the number of a domain, for one more user.
func (l *nodeLevel) hold(value string) int32 {
	d, known := l.number[value]
	if !known {
		if n := len(l.free); n > 0 {
			d, l.free = l.free[n-1], l.free[:n-1]
			l.values[d] = value
		} else {
			d = int32(len(l.values))
			l.values, l.users = append(l.values, value), append(l.users, 0)
		}
		l.number[value] = d
	}
	l.users[d]++
	return d
}

// release ends a use of a domain. The number of one that is not used any longer may become that of another one: no
// shape has slots in it.
func (l *nodeLevel) release(d int32) {
	if d == noDomain {
		return
	}
	if l.users[d]--; l.users[d] == 0 {
		delete(l.number, l.values[d])
		l.values[d], l.free = "", append(l.free, d)
	}
}

// setNode records the domain of a node whose object has changed.
func (l *nodeLevel) setNode(i int, node *corev1.Node) {
	value, ok := l.valueOf(node)
	switch {
	case !ok:
		l.of[i] = noDomain
	case l.of[i] == noDomain || l.values[l.of[i]] != value:
		l.of[i] = l.hold(value)
	}
}

// levelSlots are the slots of a shape by the domains of a topology level.
type levelSlots struct {
	level *nodeLevel
	name  string                 // of the level, as placement.Problem.Required has it
	fits  maxima                 // by domain
	any   *DomainShape           // nil: not tracked
	only  map[int32]*DomainShape // by domain
}

// maxima is a number, at first 0, for each index, and the largest of them: the second half is the numbers, the entry k
// before is the larger one of the entries 2k and 2k+1.
type maxima []int64

func (m maxima) largest() int64 {
	if len(m) == 0 {
		return 0
	}
	return m[1]
}

func (m maxima) at(i int32) int64 {
	if half := len(m) / 2; int(i) < half {
		return m[half+int(i)]
	}
	return 0
}

// add changes the number of an index by n, in logarithmic time.
func (m *maxima) add(i int32, n int64) {
	half := len(*m) / 2
	if int(i) >= half {
		size := max(1, half)
		for size <= int(i) {
			size *= 2
		}
		t := make(maxima, 2*size)
		copy(t[size:], (*m)[half:])
		for k := size - 1; k > 0; k-- {
			t[k] = max(t[2*k], t[2*k+1])
		}
		*m, half = t, size
	}
	t, k := *m, half+int(i)
	t[k] += n
	for k > 1 {
		k /= 2
		most := max(t[2*k], t[2*k+1])
		if t[k] == most {
			return
		}
		t[k] = most
	}
}

// setNode records that the slots of a node have changed, and perhaps its domain. It calls raise with the tracked shapes
// of which more pods fit on the node in its domain.
func (l *levelSlots) setNode(old, d int32, before, after int64, raise func(*DomainShape)) {
	if old != noDomain && old != d && before != 0 {
		l.fits.add(old, -before)
	}
	if d == noDomain {
		return
	}
	if old != d {
		before = 0
	}
	if after != before {
		l.fits.add(d, after-before)
	}
	if after <= before {
		return
	}
	if s := l.only[d]; s != nil {
		raise(s)
	}
	if l.any != nil {
		raise(l.any)
	}
}

// setLevels records the domains of a node whose object has changed, until endLevels in addition to those before.
func (s *Shapes) setLevels(i int, node *corev1.Node) {
	changed := s.objects[i] != node // mostly only its pods have
	s.objects[i] = node
	for _, l := range s.levels {
		if l.before = l.of[i]; changed {
			l.setNode(i, node)
		}
	}
}

func (s *Shapes) endLevels(i int) {
	for _, l := range s.levels {
		if l.before != l.of[i] {
			l.release(l.before)
		}
	}
}

// moveLevels processes a different list of nodes, with their positions before, negative for new ones. The slots of
// nodes that are gone no longer count.
func (s *Shapes) moveLevels(from []int) {
	kept := make([]bool, len(s.objects))
	objects := make([]*corev1.Node, len(from))
	for i, k := range from {
		if k >= 0 {
			kept[k], objects[i] = true, s.objects[k]
		}
	}
	var gone []int
	for k, is := range kept {
		if !is {
			gone = append(gone, k)
		}
	}
	for _, shape := range s.shapes {
		for _, l := range shape.levels {
			for _, k := range gone {
				l.setNode(l.level.of[k], noDomain, shape.slots[k], 0, nil)
			}
		}
	}
	for _, l := range s.levels {
		for _, k := range gone {
			l.release(l.of[k])
		}
		of := make([]int32, len(from))
		for i, k := range from {
			if of[i] = noDomain; k >= 0 {
				of[i] = l.of[k]
			}
		}
		l.of = of
	}
	s.objects = objects
}

// TrackDomain returns what counts the pods of a shape in one domain of a level: that with the values of its labels,
// separated by commas, or any if there is none. Each call needs a ReleaseDomain, before the ReleaseShape of the shape.
func (s *Shapes) TrackDomain(shape *Shape, level string, value *string) *DomainShape {
	l := shape.levels[level]
	if l == nil {
		l = &levelSlots{level: s.level(level), name: level, only: map[int32]*DomainShape{}}
		l.level.slots++
		for i, d := range l.level.of {
			if d != noDomain && shape.slots[i] > 0 {
				l.fits.add(d, shape.slots[i])
			}
		}
		if shape.levels == nil {
			shape.levels = map[string]*levelSlots{}
		}
		shape.levels[level] = l
	}
	d := l.any
	if value != nil {
		d = l.ofValue(*value)
	}
	if d == nil {
		d = &DomainShape{base: shape, slots: l, domain: noDomain}
		if value == nil {
			l.any = d
		} else {
			d.domain = l.level.hold(*value)
			l.only[d.domain] = d
		}
	}
	d.users++
	return d
}

// ofValue returns the DomainShape of a domain; nil: it is not tracked.
func (l *levelSlots) ofValue(value string) *DomainShape {
	if d, known := l.level.number[value]; known {
		return l.only[d]
	}
	return nil
}

// level returns a topology level with the domains of all nodes.
func (s *Shapes) level(name string) *nodeLevel {
	l := s.levels[name]
	if l == nil {
		l = &nodeLevel{keys: strings.Split(name, ","), number: map[string]int32{}, of: make([]int32, len(s.nodes))}
		for i := range s.nodes {
			l.of[i] = noDomain
			l.setNode(i, s.objects[i])
		}
		s.levels[name] = l
	}
	return l
}

// ReleaseDomain ends the use of what TrackDomain returned.
func (s *Shapes) ReleaseDomain(d *DomainShape) {
	if d.users--; d.users > 0 {
		return
	}
	s.reserved.forget(d)
	l := d.slots
	if d.domain == noDomain {
		l.any = nil
	} else {
		delete(l.only, d.domain)
		l.level.release(d.domain)
	}
	if l.any != nil || len(l.only) > 0 {
		return
	}
	delete(d.base.levels, l.name)
	if l.level.slots--; l.level.slots == 0 {
		delete(s.levels, l.name)
	}
}
