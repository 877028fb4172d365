// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/ledger"
)

// Start is what Options.Admitted and Options.Ready are told.
type Start struct {
	GPUs     int64 // that the pods of the gang request
	Priority int32
	Took     time.Duration // see there
}

// recordStart records whether the gang is admitted. It tells of one that is admitted now, or whose minimum is ready for
// the first time since. A process that does not lead tells nothing: it observes what another one does.
func (r *Registry) recordStart(g *gangState, now time.Time) {
	wasAdmitted := g.admitted
	g.recordAdmitted()
	switch {
	case !g.admitted:
		g.admittedAt = time.Time{}
		return
	case !wasAdmitted && r.leading:
		g.admittedAt = now
		since := g.completeAt
		if since.IsZero() {
			since = g.waited
		}
		if !since.IsZero() && r.opts.Admitted != nil {
			r.opts.Admitted(Start{GPUs: g.numbers.GPUs, Priority: g.priority(), Took: max(0, now.Sub(since))})
		}
	}
	if !g.admittedAt.IsZero() && g.tree != nil && g.numbers.Ready.Satisfied(g.tree.Root()) {
		took := now.Sub(g.admittedAt)
		g.admittedAt = time.Time{}
		if r.opts.Ready != nil {
			r.opts.Ready(Start{GPUs: g.numbers.GPUs, Priority: g.priority(), Took: took})
		}
	}
}

// Holding returns what the GPUs of bound pods are used for as far as their gangs decide about it: the pods of gangs
// that do not work as a whole. Of all others the gang works, or they have none.
func (r *Registry) Holding() map[types.UID]ledger.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := map[types.UID]ledger.State{}
	for _, g := range r.gangs {
		g.addHolding(held)
	}
	return held
}

// addHolding is the part of Holding for one gang. It visits the members only if the gang does not work as a whole.
func (g *gangState) addHolding(held map[types.UID]ledger.State) {
	n := g.numbers
	if g.tree == nil || n.Flagged(count.IsStanding) == 0 {
		return
	}
	planned := g.plan != nil && !g.plan.aborted
	state, root := ledger.Working, g.tree.Root()
	switch {
	case n.Bound.Satisfied(root):
		if !n.Ready.Satisfied(root) {
			state = ledger.Starting
		} else if len(n.Bound.Partial()) == 0 {
			return
		}
	case g.admitted:
		state = ledger.BelowMinimum
	case planned:
		state = ledger.Starting
	default:
		state = ledger.Partial
	}
	for uid, m := range g.members {
		leaf := m.entry.Share().Leaf
		if leaf == nil || !m.isBound() {
			continue
		}
		of := state
		if n.Bound.Satisfied(root) && !count.IsWhole(n.Bound, leaf) {
			of = ledger.TornUnit
			if planned {
				of = ledger.Starting
			}
		}
		if of != ledger.Working {
			held[uid] = of
		}
	}
}

// Overdue returns the number of pods on nodes that run for longer than their PodGroup promises
// (v2alpha2.MaxRuntimeAnnotation).
func (r *Registry) Overdue(now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	overdue := 0
	for _, g := range r.gangs {
		if g.group == nil || g.group.Annotations[v2alpha2.MaxRuntimeAnnotation] == "" {
			continue
		}
		for _, m := range g.members {
			if ends := podgroup.EndsBy(m.pod, g.group, now); m.isBound() && !ends.IsZero() && ends.Before(now) {
				overdue++
			}
		}
	}
	return overdue
}

// Unsatisfied is a gang whose minimum is not bound.
type Unsatisfied struct {
	Reason v2alpha2.Reason // as users are told; before they are, what is known
	GPUs   int64           // that its pods request
	Lacks  int64           // those of them that are not bound
	Since  time.Time       // since when its pods would suffice; zero: they do not, or it has had its minimum before
}

// Unsatisfied returns the gangs whose minimum is not bound, in no order: without those that are not to have pods now,
// and those that have completed.
func (r *Registry) Unsatisfied() []Unsatisfied {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Unsatisfied
	for _, g := range r.gangs {
		if g.group == nil || g.hasMinimum() {
			continue
		}
		if phase := g.group.Status.Phase; phase == v2alpha2.PodGroupIdle || phase == v2alpha2.PodGroupCompleted {
			continue
		}
		u := Unsatisfied{Reason: g.waitsFor(), GPUs: g.numbers.GPUs, Lacks: max(0, g.numbers.GPUs-g.numbers.HeldGPUs)}
		if !g.admitted { // else it is since when its surplus waits
			u.Since = g.completeAt
		}
		all = append(all, u)
	}
	return all
}

// waitsFor returns the reason in the status of the gang's PodGroup, and until it is written one that the numbers give.
func (g *gangState) waitsFor() v2alpha2.Reason {
	switch reason := g.group.Status.Reason; {
	case g.tree == nil:
		return v2alpha2.ReasonInvalid
	case reason != "":
		return reason
	case !g.numbers.Created.Satisfied(g.tree.Root()):
		return v2alpha2.ReasonWaitingForPods
	case g.plan != nil && !g.plan.aborted:
		return v2alpha2.ReasonBinding
	}
	return v2alpha2.ReasonBehindInQueue
}
