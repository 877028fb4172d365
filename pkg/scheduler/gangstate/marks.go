package gangstate

import (
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/mark"
)

// Marks are signed annotations of bound pods. They are verified once per pod, when the annotation or the keys change, and
// kept with the member. What does not verify is no mark: the pod counts as one that another scheduler bound.

// SetKeys sets the keys that marks are signed and verified with. nil: none are known, so bindings carry no mark and no gang
// is partial.
func (r *Registry) SetKeys(keys *mark.Keys, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys.Store(keys)
	var e Effects
	for _, g := range r.gangs {
		changed := false
		for _, m := range g.members {
			if m.markText != "" {
				verified, _ := keys.Verify(m.pod.UID, m.markText)
				m.setMark(verified, m.markText)
				changed = true
			}
			m.leaving = m.leaving || m.isReleased()
			r.recount(m)
		}
		if changed {
			if r.synced {
				r.resumeRelease(g)
			}
			e.add(r.evaluate(g, now))
		}
	}
	return e
}

// Mark returns the annotation of the binding of a member of the plan. "" if there is no key to sign it with.
func (r *Registry) Mark(p *Plan, uid types.UID) string {
	return r.keys.Load().Sign(uid, p.markOf(uid))
}

// readMark verifies the member's mark if its annotation has changed.
func (r *Registry) readMark(m *member) {
	text := m.pod.Annotations[v2alpha2.BoundForAnnotation]
	if text == m.markText {
		return // or posted, and this version of the pod is older
	}
	keys := r.keys.Load()
	verified, ok := keys.Verify(m.pod.UID, text)
	if !ok && r.opts.UnknownKey != nil && keys.IsUnknown(text) {
		r.opts.UnknownKey()
	}
	m.setMark(verified, text)
}

func (m *member) setMark(verified mark.Mark, text string) {
	if !m.mark.IsZero() {
		m.gang.partial.marked--
	}
	m.mark, m.markText = verified, text
	if !m.mark.IsZero() {
		m.gang.partial.marked++
	}
	m.gang.partial.sequence = max(m.gang.partial.sequence, m.mark.Sequence)
	m.gang.partial.fresh = false
}

// forgetMark takes the member out of what its gang counts. A member that waited may have been bound without this process
// having seen it, so that only the marks can prove now that the gang never was whole.
func (m *member) forgetMark() {
	m.setMark(mark.Mark{}, "")
	m.gang.partial.known = m.gang.partial.known && !m.neverBound()
}

// isReleased reports whether the pod was bound by this installation and its status says that it is released.
func (m *member) isReleased() bool {
	return m.state == bound && m.markText != "" && !m.mark.IsZero() && HasReleaseCondition(m.pod)
}

// resumeRelease makes the rest of a gang that was being released before a crash go as well.
func (r *Registry) resumeRelease(g *gangState) {
	if len(g.podsToRelease()) > 0 {
		g.incompleteFor = r.opts.RepairTimeout
	}
}

// markPlan gives a plan that satisfies the tree its mark.
func (g *gangState) markPlan(p *Plan) {
	p.mark = mark.Mark{Group: g.group.UID, Pods: len(p.members), Generation: g.group.Generation, Sequence: g.partial.sequence + 1}
	for i := range p.members {
		p.mark.Sum += tagOf(p.members[i].member)
	}
	g.partial.sequence = p.mark.Sequence
	p.mark.NeverWhole = p.Task == Minimum && (g.holdsNone() || g.look().neverWhole)
	if !p.mark.NeverWhole {
		return
	}
	with := g.numbers.bound.Counts()
	for i := range p.members {
		with[p.members[i].leaf]++
	}
	needed := neededLeaves(p.tree, with)
	for i := range p.members {
		if needed.Has(p.members[i].leaf) {
			p.needed, p.tags = append(p.needed, i), append(p.tags, tagOf(p.members[i].member))
		}
	}
}

// holdsNone reports whether no pod of the present run is bound for this PodGroup, or was and succeeded.
func (g *gangState) holdsNone() bool {
	if g.partial.marked == 0 {
		return true
	}
	controllers := g.liveControllers()
	for _, m := range g.members {
		if m.mark.Group == g.group.UID && (m.isBound() || m.state == succeeded && !m.isOfEarlierRun(controllers)) {
			return false
		}
	}
	return true
}

// markOf returns the mark of a member: that of the plan, and which needed members are bound next after this one. It reads
// only what does not change.
func (p *Plan) markOf(uid types.UID) mark.Mark {
	m, own := p.mark, p.places[uid]
	first := sort.SearchInts(p.needed, own+1)
	for k := range min(len(p.needed), mark.MaxNext) {
		i := (first + k) % len(p.needed)
		if p.needed[i] == own {
			break
		}
		m.Next = append(m.Next, p.tags[i])
	}
	return m
}

// tagOf returns what marks name the member by.
func tagOf(m *member) uint64 { return mark.Tag(m.pod.UID) }
