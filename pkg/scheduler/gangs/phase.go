// SPDX-License-Identifier: Apache-2.0

package gangs

// Phase is the progress of a gang's next plan. The package documentation has the table of transitions.
type Phase int

const (
	// Idle: there is nothing to plan.
	Idle Phase = iota
	// Complete: there is something to plan, and no leader is elected yet, because the last plan failed a moment ago.
	Complete
	// Gated: only surplus is left to plan, and while room grows minimums or surplus sub-groups go first, until
	// gatedUntil.
	Gated
	// Elected: a leader is elected and activated, and the queue has not admitted it yet. The activation is repeated.
	Elected
	// Queued: the queue has admitted the leader.
	Queued
	// Popped: the leader's scheduling cycle has begun, but not its attempt.
	Popped
	// Yielding: the leader's cycle ended without an attempt, because another gang goes first.
	Yielding
	// Planning: the leader's attempt is running.
	Planning
	// Lacking: the attempt was refused, and the gang waits for room: the necessary condition of a plan does not hold.
	Lacking
	// Parked: the attempt was refused although enough seems to fit, and the gang waits for an event that may help, and
	// then for its turn.
	Parked
	// Committed: a plan is in force.
	Committed
)

var phaseNames = [...]string{"Idle", "Complete", "Gated", "Elected", "Queued", "Popped", "Yielding", "Planning", "Lacking", "Parked", "Committed"}

// String returns the name of the constant.
func (p Phase) String() string { return phaseNames[p] }

// hasLeader reports whether gangs in this phase have a leader.
func (p Phase) hasLeader() bool { return p >= Elected && p <= Parked }

// isRefused reports whether gangs in this phase were refused and wait (waiting.go).
func (p Phase) isRefused() bool { return p >= Lacking && p <= Parked }

// enterPhase is the only function that changes the phase of a gang. A gang that leaves the phases with a leader has
// none afterwards, and waits for nothing. It is not retried any longer when its attempt has ended.
func (r *Registry) enterPhase(g *gangState, p Phase) {
	if r.entered != nil && g.phase != p {
		r.entered(g.phase, p)
	}
	g.phase = p
	if p.isRefused() {
		delete(r.waiting.unheard, g)
	}
	if p.isRefused() || !p.hasLeader() {
		r.endClaim(g)
	}
	if !p.hasLeader() {
		g.leader = ""
		if g.wait != nil && g.passed == 0 {
			r.waiting.endGang(g, nil)
		}
	}
}
