// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"slices"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// Domains are necessary conditions of a plan that follow from the topology levels that groups require. Zero: none does.
type Domains struct {
	// Needs are those of a Minimum.
	Needs []placement.DomainNeed
	// Pinned are, for other tasks, the domains to which classes are restricted.
	Pinned map[int][]placement.Domain
	// ValueOf returns the values of the labels of an area, separated by commas.
	ValueOf func(placement.Area) string
}

// explainLabels reports whether a change of the labels of nodes can only help by more room in one of the domains.
func (d *Domains) explainLabels(a *Attempt) bool {
	if len(a.Problem.Required) == 0 {
		return true
	}
	if a.Task != gangs.Minimum {
		return d.pinnedAtOneLevel(a)
	}
	tracked := map[string]bool{} // with each domain and class, if pods of no group run in several domains
	for _, n := range d.Needs {
		tracked[n.Level] = true
	}
	for _, level := range a.Problem.Required {
		if !tracked[level] {
			return false
		}
	}
	return true
}

// pinnedAtOneLevel reports whether all classes are restricted to domains of the only level that is required. Of several
// levels on a path only one is counted, and groups below it may have any domain of theirs.
func (d *Domains) pinnedAtOneLevel(a *Attempt) bool {
	if len(d.Pinned) != len(a.Classes) {
		return false
	}
	for _, level := range a.Problem.Required {
		for _, domains := range d.Pinned {
			if slices.ContainsFunc(domains, func(at placement.Domain) bool { return at.Level != level }) {
				return false
			}
		}
	}
	return true
}

// addDomains adds to the conditions of a refused gang that domains have room for its pods.
func (b *Backlog) addDomains(t *tracked, a *Attempt, what *gangs.Wait) {
	if a.Task == gangs.Minimum {
		b.addDomainNeeds(t, a, what)
	} else if len(a.Domains.Pinned) > 0 {
		b.restrictToDomains(t, a, what)
	}
}

// trackDomain counts the pods of a class in an area, or for 0 in any domain of the level. nil: their room is not known.
// If too many domains are tracked for the gang, it returns the shape of the class: its room in the cluster is an upper
// bound, but does not show that a node came to the domain.
func (b *Backlog) trackDomain(t *tracked, a *Attempt, class int, level string, area placement.Area) gangs.Shape {
	shape, ok := t.byClass[class].(*kubescheduler.Shape)
	if !ok {
		return nil
	}
	if len(t.domains) == maxShapes {
		t.helps |= otherNodes
		return shape
	}
	var value *string
	if area != 0 {
		v := a.Domains.ValueOf(area)
		value = &v
	}
	d := b.shapes.TrackDomain(shape, level, value)
	t.domains = append(t.domains, d)
	return d
}

func (b *Backlog) addDomainNeeds(t *tracked, a *Attempt, what *gangs.Wait) {
	for _, n := range a.Domains.Needs {
		if d := b.trackDomain(t, a, n.Class, n.Level, n.Area); d != nil {
			what.Needs = append(what.Needs, gangs.Need{Shape: d, Pods: n.Pods})
		}
	}
}

// restrictToDomains makes room for pods of a class count only in the domains to which they are restricted.
func (b *Backlog) restrictToDomains(t *tracked, a *Attempt, what *gangs.Wait) {
	counted := make([][]gangs.Shape, len(t.byClass))
	what.Needs = nil
	for class, shape := range t.byClass {
		if shape == nil {
			continue
		}
		counted[class] = []gangs.Shape{shape}
		if domains := a.Domains.Pinned[class]; len(domains) > 0 {
			counted[class] = nil
			for _, at := range domains {
				counted[class] = append(counted[class], b.trackDomain(t, a, class, at.Level, at.Area))
			}
		}
		for _, s := range counted[class] {
			what.Needs = append(what.Needs, gangs.Need{Shape: s})
		}
	}
	fits := what.Fits
	what.MayFit = func() bool {
		return anyFits(len(counted), func(class int) int {
			if counted[class] == nil {
				return unlimited
			}
			n := 0
			for _, s := range counted[class] {
				n += fits(s)
			}
			return n
		})
	}
}
