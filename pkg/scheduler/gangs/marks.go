// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/marks"
)

// Marks are signed annotations of bound pods. A mark is verified once per pod, and again when the annotation or the
// keys change; the result is stored with the member. A pod whose mark cannot be verified counts as bound by another
// scheduler.

// SetKeys sets the keys with which marks are signed and verified. nil: no keys are known, so bindings carry no mark
// and no gang is partial.
func (r *Registry) SetKeys(keys *marks.Keys, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys.Store(keys)
	var e Effects
	for _, g := range r.gangs {
		changed := false
		for _, m := range g.members {
			if m.markText != "" {
				m.setMark(r.verifyMark(keys, m.pod, m.markText), m.markText)
				changed = true
			}
			m.leaving = m.leaving || m.isReleased()
			m.recount()
		}
		if changed {
			if r.synced {
				g.resumeRelease()
			}
			e.add(r.evaluate(g, now))
		}
	}
	return e
}

// SignedMark returns the annotation for the binding of a member of the plan. "" if there is no key to sign it with.
func (r *Registry) SignedMark(p *Plan, uid types.UID) string {
	return r.keys.Load().SignMark(uid, p.markOf(uid))
}

// readMark verifies the member's mark if its annotation has changed.
func (r *Registry) readMark(m *member) {
	text := m.pod.Annotations[v2alpha2.BoundForAnnotation]
	if text == m.markText {
		return // unchanged; or the binding was posted, and this version of the pod is older
	}
	m.setMark(r.verifyMark(r.keys.Load(), m.pod, text), text)
}

// verifyMark returns the zero Mark if the text does not verify.
func (r *Registry) verifyMark(keys *marks.Keys, pod *corev1.Pod, text string) marks.Mark {
	verified, ok := keys.VerifyMark(pod.UID, text)
	if !ok && r.opts.UnknownKey != nil && keys.LacksKeyOf(text) {
		r.opts.UnknownKey()
	}
	if !ok && r.opts.Unverified != nil && keys != nil && text != "" {
		r.opts.Unverified(pod)
	}
	return verified
}

func (m *member) setMark(verified marks.Mark, text string) {
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

// forgetMark removes the member's mark from its gang. A waiting member may have been bound without this process
// having observed it; from then on only the marks can prove that the gang never had its minimum.
func (m *member) forgetMark() {
	m.setMark(marks.Mark{}, "")
	m.gang.partial.known = m.gang.partial.known && !m.wasNeverBound()
}

// isReleased reports whether the pod was bound by this installation and its status records its release.
func (m *member) isReleased() bool {
	return m.state == count.Bound && m.markText != "" && !m.mark.IsZero() && HasReleaseCondition(m.pod)
}

// resumeRelease continues the release of a gang that a crash interrupted.
func (g *gangState) resumeRelease() {
	if len(g.podsToRelease()) > 0 {
		g.incompleteFor = g.opts.RepairTimeout
	}
}

// assignMark assigns a mark to a plan that satisfies the tree.
func (g *gangState) assignMark(p *Plan) {
	p.mark = marks.Mark{GroupUID: g.group.UID, PodCount: len(p.members), Generation: g.group.Generation, Sequence: g.partial.sequence + 1}
	for i := range p.members {
		p.mark.TagSum += p.members[i].member.tag
	}
	g.partial.sequence = p.mark.Sequence
	p.mark.NeverWhole = p.Task == Minimum && (g.holdsNone() || g.partialState().neverWhole)
	if !p.mark.NeverWhole {
		return
	}
	with := g.numbers.Bound.Counts()
	size := 0
	for leaf, n := range p.leaves {
		with[leaf.Name()] += n
	}
	needed := marks.NeededLeaves(p.tree, with)
	for leaf, n := range p.leaves {
		if needed[leaf.Name()] {
			size += n
		}
	}
	p.needed, p.tags = make([]int, 0, size), make([]uint64, 0, size)
	for i := range p.members {
		if x := &p.members[i]; needed[x.leaf.Name()] {
			p.needed, p.tags = append(p.needed, i), append(p.tags, x.member.tag)
		}
	}
}

// holdsNone reports whether no pod of the current run is bound for this PodGroup, or was bound and succeeded.
func (g *gangState) holdsNone() bool {
	if g.partial.marked == 0 {
		return true
	}
	controllers := g.numbers.LiveControllers()
	for _, m := range g.members {
		if m.mark.GroupUID == g.group.UID && (m.isBound() || m.state == count.Succeeded) && !m.isOfEarlierRun(controllers) {
			return false
		}
	}
	return true
}

// markOf returns the mark of a member: the mark of the plan, and the needed members that are bound next after this
// one. It reads only immutable fields.
func (p *Plan) markOf(uid types.UID) marks.Mark {
	m, own := p.mark, p.places[uid]
	first := sort.SearchInts(p.needed, own+1)
	for k := range min(len(p.needed), marks.MaxNextTags) {
		i := (first + k) % len(p.needed)
		if p.needed[i] == own {
			break
		}
		m.NextTags = append(m.NextTags, p.tags[i])
	}
	return m
}
