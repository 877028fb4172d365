// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// PodCounts are numbers of pods of a clique.
type PodCounts struct {
	// Pods counts all existing pods, including those that ended; the other fields count pods that did not end.
	// Terminating pods are not counted in any field (docs/decisions, W3).
	Pods, Gated, Scheduled, Running, Ready, Updated int32
}

// CountAvailablePods returns the number of pods that are available, given the time for which they must be ready.
func CountAvailablePods(pods []Pod, minReady time.Duration, now time.Time) int32 {
	available := int32(0)
	for _, p := range pods {
		if p.IsAvailable(minReady, now) {
			available++
		}
	}
	return available
}

// NextAvailable returns the time until the next ready pod becomes available; 0: there is none.
func NextAvailable(pods []Pod, minReady time.Duration, now time.Time) time.Duration {
	next := time.Duration(0)
	for _, p := range pods {
		if p.isReady() && !p.Terminating && !p.IsAvailable(minReady, now) {
			next = Sooner(next, delayUntil(p.ReadySince.Add(minReady), now))
		}
	}
	return next
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
