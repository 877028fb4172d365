// SPDX-License-Identifier: Apache-2.0

package lifecycle

// PodCounts are numbers of pods of a clique.
type PodCounts struct {
	// Pods counts all existing pods, including those that ended; the other fields count pods that did not end.
	// Terminating pods are not counted in any field (docs/decisions, W3).
	Pods, Gated, Scheduled, Running, Ready, Updated int32
}

// Count counts the pods of a clique.
func Count(pods []Pod) PodCounts {
	var n PodCounts
	for _, p := range pods {
		if p.Terminating {
			continue
		}
		n.Pods++
		if p.Ended {
			continue
		}
		for _, c := range []struct {
			counts bool
			number *int32
		}{{p.Gated, &n.Gated}, {p.Scheduled, &n.Scheduled}, {p.Running, &n.Running}, {p.Ready, &n.Ready}, {!p.Outdated, &n.Updated}} {
			if c.counts {
				*c.number++
			}
		}
	}
	return n
}
