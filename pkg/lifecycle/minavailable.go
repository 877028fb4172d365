// SPDX-License-Identifier: Apache-2.0

package lifecycle

// Minimum contains the facts that decide how many pods of a clique must run together.
type Minimum struct {
	// Explicit is spec.minAvailable. nil: unset; the minimum is the smaller of AtCreation and Replicas. Source:
	// docs/decisions, W1.
	Explicit *int32
	// AtCreation is spec.replicas of the PodClique when it was created.
	AtCreation int32
	// Replicas is the current spec.replicas.
	Replicas int32
	// Recorded is the effective minimum in its status; nil: none yet.
	Recorded *int32
}

// Target returns the minimum that the clique should have once its pods run: spec.minAvailable if set (at least 1),
// otherwise the smaller of its replicas at creation and its current replicas. It is 0 for a clique scaled to zero,
// whose leaf is removed from the tree. An explicit minimum above the current replicas, which admission rejects, is
// kept: such a clique waits rather than run below its minimum.
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

// Enforced returns the minMember of the PodGroup's leaf: the recorded minimum, or the target if that is lower (scaling
// in lowers the minimum immediately) or if no minimum is recorded, as after scaling to zero. Enforced never raises the
// minimum; only Effective does, in the status.
func (m Minimum) Enforced() int32 {
	target := m.Target()
	if m.Explicit == nil && m.Recorded != nil && *m.Recorded > 0 {
		return min(target, *m.Recorded)
	}
	return target
}

// Leaf returns the desired minMember of the PodGroup's leaf. listed is the minMember of the leaf in the existing
// PodGroup; nil: there is no PodGroup, and a new one is created with the target. The leaf of an existing PodGroup is
// lowered when scaling in lowers the target, and raised only after Effective was recorded. Raising it therefore never
// puts running pods below their minimum.
func (m Minimum) Leaf(listed *int32) int32 {
	if listed == nil {
		return m.Target()
	}
	return max(m.Enforced(), min(*listed, m.Target()))
}

// Effective returns the minimum to record in the clique's status. Scaling in lowers it immediately. It rises to the
// target when as many pods are ready, or to the minMember of the PodGroup's leaf (0: not listed), because a new
// PodGroup object may require more. Source: docs/decisions, W1.
//
// Example: a clique is created with 4 replicas, scaled to 2 (minimum 2) and to 4 again: its minimum is 2 until 4 pods
// are ready.
func (m Minimum) Effective(ready, leaf int32) int32 {
	enforced, target := m.Enforced(), m.Target()
	if ready >= target {
		return target
	}
	return max(enforced, min(leaf, target))
}
