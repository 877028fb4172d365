// SPDX-License-Identifier: Apache-2.0

package gangstate

// Phase is the progress of a gang's next plan. The package documentation has the table of transitions.
type Phase int

const (
	// Idle: there is nothing to plan.
	Idle Phase = iota
	// Complete: there is something to plan, and no leader is elected yet, because the last plan failed a moment ago.
	Complete
	// Gated: only surplus is left to plan, and while room grows minimums or surplus sub-groups go first, until gatedUntil.
	Gated
	// Elected: a leader is elected and activated, and the queue has not admitted it yet. The activation is repeated.
	Elected
	// Queued: the queue has admitted the leader.
	Queued
	// Popped: the leader's scheduling cycle has begun, but not its attempt.
	Popped
	// Yielding: the leader's cycle ended without an attempt, because yieldedTo goes first.
	Yielding
	// Planning: the leader's attempt is running.
	Planning
	// Parked: the attempt was refused, and the gang waits for a relevant change.
	Parked
	// Committed: a plan is in force.
	Committed
)

var phaseNames = [...]string{"Idle", "Complete", "Gated", "Elected", "Queued", "Popped", "Yielding", "Planning", "Parked", "Committed"}

// String returns the name of the constant.
func (p Phase) String() string { return phaseNames[p] }

// hasLeader reports whether gangs in this phase have a leader.
func (p Phase) hasLeader() bool { return p >= Elected && p <= Parked }

// enterPhase is the only function that changes the phase of a gang. A gang that leaves the phases with a leader has
// none afterwards; it is not retried any longer when its attempt begins.
func (r *Registry) enterPhase(g *gangState, p Phase) {
	if r.entered != nil && g.phase != p {
		r.entered(g.phase, p)
	}
	if g.phase == Yielding {
		g.endYield()
	}
	g.phase = p
	if !p.hasLeader() {
		g.leader = ""
	}
	if p == Planning || p == Parked || !p.hasLeader() {
		g.retried = false
	}
}
