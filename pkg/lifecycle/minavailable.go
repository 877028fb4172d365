package lifecycle

// Minimum is what decides how many pods of a clique must run together.
type Minimum struct {
	// Explicit is spec.minAvailable; nil: unset, the rule of decision W1 applies.
	Explicit *int32
	// AtCreation is spec.replicas of the PodClique when it was created.
	AtCreation int32
	// Replicas is its present spec.replicas.
	Replicas int32
	// Recorded is the effective value that its status had last; nil: none yet.
	Recorded *int32
}

// Target returns the minimum that the clique should have once it runs: spec.minAvailable if set (at least 1), else the
// smaller of its replicas at creation and its present ones. 0 for a clique scaled to zero: it needs nothing, and its
// leaf leaves the tree. An explicit minimum above the present replicas, which admission refuses, is kept: such a clique
// waits, rather than run below its floor.
func (m Minimum) Target() int32 {
	switch {
	case m.Replicas <= 0:
		return 0
	case m.Explicit != nil:
		return max(*m.Explicit, 1)
	default:
		return max(min(m.AtCreation, m.Replicas), 1)
	}
}

// Enforced returns what the PodGroup's leaf asks for: the recorded minimum, or the target where that is lower (scaling in
// lowers it at once) or where nothing is recorded, as after zero. It never raises: only Effective does, in the status.
func (m Minimum) Enforced() int32 {
	target := m.Target()
	if m.Explicit == nil && m.Recorded != nil && *m.Recorded > 0 {
		return min(target, *m.Recorded)
	}
	return target
}

// Effective returns the minimum to record in the clique's status. Scaling in lowers it at once; after that it rises to
// the target only when as many pods are ready, or while the gang is not admitted, because then nothing can fall below
// the new minimum by being given it. Source: decision W1.
//
// Example: made with 4 replicas, scaled to 2 (minimum 2) and to 4 again: 2, until 4 pods are ready.
func (m Minimum) Effective(ready int32, admitted bool) int32 {
	enforced, target := m.Enforced(), m.Target()
	if !admitted || ready >= target {
		return target
	}
	return enforced
}
