package lifecycle

// Minimum is what decides how many pods of a clique must run together.
type Minimum struct {
	// Explicit is spec.minAvailable. nil: unset; the minimum is the smaller of AtCreation and Replicas. Source:
	// docs/decisions, W1.
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
// lowers it immediately) or where nothing is recorded, as after zero. It never raises: only Effective does, in the status.
func (m Minimum) Enforced() int32 {
	target := m.Target()
	if m.Explicit == nil && m.Recorded != nil && *m.Recorded > 0 {
		return min(target, *m.Recorded)
	}
	return target
}

// Leaf returns what the PodGroup's leaf is to ask for. listed is what the leaf of the PodGroup object that exists asks for;
// nil: there is no PodGroup, and the first write of a new one asks for the target. The leaf of an existing one is lowered
// when scaling in lowers the target, and raised only after Effective was recorded: nothing that runs can fall below a
// minimum by being given it.
func (m Minimum) Leaf(listed *int32) int32 {
	if listed == nil {
		return m.Target()
	}
	return max(m.Enforced(), min(*listed, m.Target()))
}

// Effective returns the minimum to record in the clique's status. Scaling in lowers it at once; after that it rises when as
// many pods are ready as the target, or to what the leaf of the PodGroup (0: not listed) asks for: that of a new PodGroup
// object asks for more. Source: docs/decisions, W1.
//
// Example: made with 4 replicas, scaled to 2 (minimum 2) and to 4 again: 2, until 4 pods are ready.
func (m Minimum) Effective(ready, leaf int32) int32 {
	enforced, target := m.Enforced(), m.Target()
	if ready >= target {
		return target
	}
	return max(enforced, min(leaf, target))
}
