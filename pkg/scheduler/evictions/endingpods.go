// SPDX-License-Identifier: Apache-2.0

package evictions

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pods are the pods that are to end, or end, and that are counted in no gang.
type Pods map[types.UID]*Ending

// Ending is what is known of such a pod.
type Ending struct {
	by  *Eviction // by which it is to end; nil: its deletion was accepted
	due time.Time // when it should have ended; by is nil
}

// kept is how long a pod is remembered after it should have ended, if its end is not observed: it may have ended
// before.
const kept = 10 * time.Minute

// Choose records that a pod is to end by an eviction.
func (p Pods) Choose(uid types.UID, by *Eviction) { p[uid] = &Ending{by: by} }

// Await records that a pod is terminating.
func (p Pods) Await(pod *corev1.Pod, now time.Time) {
	due := now
	if pod.DeletionTimestamp != nil {
		due = pod.DeletionTimestamp.Time
	}
	p[pod.UID] = &Ending{due: due}
}

// Accepted records that the deletion of a pod by the eviction was accepted, unless it ends by another one.
func (p Pods) Accepted(uid types.UID, by *Eviction, now time.Time) {
	if x := p[uid]; x != nil && x.by == by {
		p[uid] = &Ending{due: now.Add(by.graceTime(now))}
	}
}

// Release forgets a pod that was to end by the eviction.
func (p Pods) Release(uid types.UID, by *Eviction) {
	if x := p[uid]; x != nil && x.by == by {
		delete(p, uid)
	}
}

// Forget forgets pods that were to end long ago.
func (p Pods) Forget(now time.Time) {
	for uid, x := range p {
		if x.by == nil && now.Sub(x.due) > kept {
			delete(p, uid)
		}
	}
}

// By returns by which eviction the pod is to end; nil: by none, or its deletion was accepted.
func (x *Ending) By() *Eviction {
	if x == nil {
		return nil
	}
	return x.by
}

// IsDeparting reports whether the pod ends, whatever happens.
func (x *Ending) IsDeparting() bool { return x != nil && (x.by == nil || x.by.Deletes()) }

// IsExpected reports whether the deletion of the pod was accepted, and its room is expected within the timeout.
func (x *Ending) IsExpected(now time.Time, timeout time.Duration) bool {
	return x != nil && x.by == nil && now.Before(x.due.Add(timeout))
}
