// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// DomainShape is a Shape of which one domain of a topology level must hold the pods: a certain domain, or any.
type DomainShape struct {
	base   *Shape
	level  *levelSlots
	domain *domainSlots // nil: any
	users  int
}

// FittingPods returns how many pods of the shape fit in the domain, or in that with the most room, according to the last
// Update. It is an upper bound.
func (s *DomainShape) FittingPods() int {
	if s.domain != nil {
		return int(s.domain.fits)
	}
	return int(s.level.most())
}

// levelSlots are the slots of a shape by the domains of a topology level.
type levelSlots struct {
	level   string // as placement.Problem.Required has it
	keys    []string
	domains map[string]*domainSlots // by the values of the labels, separated by commas
	of      []*domainSlots          // by position of the node; nil: it lacks a label
	anyOf   *DomainShape            // nil: not tracked
	tracked int                     // DomainShapes
	largest int64
	stale   bool // the domain with the most room may have lost some since largest was computed
}

// domainSlots are the slots of a shape in one domain.
type domainSlots struct {
	value string
	fits  int64
	shape *DomainShape // nil: not tracked
}

// most returns the slots of the domain with the most.
func (l *levelSlots) most() int64 {
	if l.stale {
		l.largest, l.stale = 0, false
		for _, d := range l.domains {
			l.largest = max(l.largest, d.fits)
		}
	}
	return l.largest
}

// domainOf returns the slots of a node's domain, nil if it is in none.
func (l *levelSlots) domainOf(node *corev1.Node) *domainSlots {
	if node == nil {
		return nil
	}
	values := make([]string, len(l.keys))
	for k, key := range l.keys {
		value, ok := node.Labels[key]
		if !ok {
			return nil
		}
		values[k] = value
	}
	return l.domain(strings.Join(values, ","))
}

func (l *levelSlots) domain(value string) *domainSlots {
	d := l.domains[value]
	if d == nil {
		d = &domainSlots{value: value}
		l.domains[value] = d
	}
	return d
}

// change adds slots to a domain.
func (l *levelSlots) change(d *domainSlots, slots int64) {
	if d == nil || slots == 0 {
		return
	}
	if d.fits == l.largest && slots < 0 {
		l.stale = true
	}
	d.fits += slots
	l.largest = max(l.largest, d.fits)
}

// setNode records that the slots of a node have changed, and perhaps its labels. It calls raise with the tracked shapes of
// which more pods fit on the node in its domain.
func (l *levelSlots) setNode(i int, node *corev1.Node, before, after int64, raise func(*DomainShape)) {
	old, d := l.of[i], l.domainOf(node)
	l.of[i] = d
	l.change(old, -before)
	l.change(d, after)
	if d == nil || old == d && after <= before || after == 0 {
		return
	}
	if d.shape != nil {
		raise(d.shape)
	}
	if l.anyOf != nil {
		raise(l.anyOf)
	}
}

// moveNodes processes a different list of nodes, with their positions before, negative for new ones, and the slots of those
// before.
func (l *levelSlots) moveNodes(from []int, slots []int64) {
	of := make([]*domainSlots, len(from))
	for _, d := range l.domains {
		d.fits = 0
	}
	l.largest = 0
	for i, k := range from {
		if k >= 0 {
			of[i] = l.of[k]
			l.change(of[i], slots[i])
		}
	}
	l.of, l.stale = of, false
	for value, d := range l.domains {
		if d.fits == 0 && d.shape == nil {
			delete(l.domains, value)
		}
	}
	for _, d := range of { // nodes without slots keep their domain
		if d != nil {
			l.domains[d.value] = d
		}
	}
}

// TrackDomain returns what counts the pods of a shape in one domain of a level: that with the values of its labels,
// separated by commas, or any if there is none. Each call needs a ReleaseDomain, before the ReleaseShape of the shape.
func (s *Shapes) TrackDomain(shape *Shape, level string, value *string) *DomainShape {
	l := shape.levels[level]
	if l == nil {
		l = &levelSlots{level: level, keys: strings.Split(level, ","), domains: map[string]*domainSlots{}, of: make([]*domainSlots, len(s.nodes))}
		for i, n := range s.nodes {
			l.of[i] = l.domainOf(n.Node())
			l.change(l.of[i], shape.slots[i])
		}
		if shape.levels == nil {
			shape.levels = map[string]*levelSlots{}
		}
		shape.levels[level] = l
	}
	at := &l.anyOf
	var d *domainSlots
	if value != nil {
		d = l.domain(*value)
		at = &d.shape
	}
	if *at == nil {
		*at = &DomainShape{base: shape, level: l, domain: d}
		l.tracked++
	}
	(*at).users++
	return *at
}

// ReleaseDomain ends the use of what TrackDomain returned.
func (s *Shapes) ReleaseDomain(d *DomainShape) {
	if d.users--; d.users > 0 {
		return
	}
	if d.domain != nil {
		d.domain.shape = nil
	} else {
		d.level.anyOf = nil
	}
	if d.level.tracked--; d.level.tracked == 0 {
		delete(d.base.levels, d.level.level)
	}
}
