// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// Sightings are the times at which this process first saw the pods of a clique in a state, by UID. Times in the status
// of a pod come from the clock of its node, which may be wrong; they only tell one readiness from the next, and stand
// in where this process saw nothing. nil: the process has not seen the clique before, because it is new or the process
// was restarted. Source: docs/decisions, J10.
type Sightings map[string]Sighting

// Sighting is what was seen of one pod. The zero value: no state with a time.
type Sighting struct {
	ready seen
	// ended is when it was seen that the pod has ended or failed, in whole seconds; zero: it has not.
	ended time.Time
	// waits is when it was seen that the pod waits for its scheduler; zero: it does not.
	waits time.Time
}

// seen is the beginning of a state; the zero value: the pod is not in it.
type seen struct {
	// written is the time that the kubelet wrote, since the time at which the process saw the state.
	written, since time.Time
}

// Date returns the pods with the times at which this process saw their states instead of those that kubelets wrote, and
// the sightings for the next call, which no longer contain pods that are gone. pods are all pods of the clique with the
// times of the kubelets. ends is the recorded history of pods that ended: a time that an earlier process recorded for a
// pod takes precedence over the kubelet's.
func (s Sightings) Date(pods []Pod, ends map[int]Ends, now time.Time) ([]Pod, Sightings) {
	dated, next := make([]Pod, len(pods)), make(Sightings, len(pods))
	for i, p := range pods {
		before := s[p.UID]
		var after Sighting
		if p.Ready {
			after.ready = before.ready.at(p.ReadySince, p.Created, now, s == nil)
			p.ReadySince = after.ready.since
		}
		if p.Ended || p.Failed {
			recorded := ends[p.Index].Last
			switch {
			case !before.ended.IsZero():
				after.ended = before.ended
			case s == nil && !recorded.Before(p.Created) && !recorded.After(now):
				after.ended = recorded
			case s == nil:
				after.ended = earliest(latest(p.EndedAt, p.Created), now).Truncate(time.Second)
			default:
				after.ended = now.Truncate(time.Second)
			}
			p.EndedAt = after.ended
		}
		if p.AwaitsScheduler() {
			switch {
			case !before.waits.IsZero():
				after.waits = before.waits
			case s == nil:
				after.waits = earliest(p.Created, now)
			default:
				after.waits = now
			}
			p.WaitsSince = after.waits
		}
		dated[i], next[p.UID] = p, after
	}
	return dated, next
}

// at returns the state for a pod that is in it, according to its kubelet since written. A state whose written time has
// changed has ended and begun again between two passes. unseen: the process could not have seen its beginning, which is
// assumed to be written, but not before the pod was created and not in the future.
func (s seen) at(written, created, now time.Time, unseen bool) seen {
	switch {
	case !s.since.IsZero() && s.written.Equal(written):
		return s
	case unseen:
		return seen{written: written, since: earliest(latest(written, created), now)}
	default:
		return seen{written: written, since: now}
	}
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
