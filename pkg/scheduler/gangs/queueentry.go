// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// SetGates records which waiting pods are kept from the scheduling queue by a plugin other than gangadmission, and
// why, by pod. "" removes the record. Such a pod is not part of any plan and is not elected leader, because the queue
// would not hand it out.
func (r *Registry) SetGates(gates map[types.UID]string, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	changed := map[*gangState]bool{}
	for uid, why := range gates {
		m := r.members[uid]
		if m == nil || m.gate == why {
			continue
		}
		m.gate = why
		m.gang.recordOwnChange()
		m.recount()
		changed[m.gang] = true
	}
	var e Effects
	for g := range changed {
		e.add(r.evaluate(g, now))
		if g.phase == Queued || g.phase == Popped || g.phase == Planning { // this attempt ends; another one begins without the gated pods
			r.wakeLeaderAgain(g)
			e.Activate = append(e.Activate, g.wakeLeader(now)...)
		}
	}
	return r.endCall(e)
}

// MayEnterQueue implements PreEnqueue: it reports whether the pod may enter the queue and, if not, the reason for the
// log.
func (r *Registry) MayEnterQueue(pod *corev1.Pod) (bool, string) {
	name := membership.Group(pod)
	if name == "" {
		return true, ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[pod.UID]
	if m == nil || m.gang.plan != nil {
		if p := r.planOf(pod.UID); p != nil && !p.aborted {
			if p == r.committing {
				r.stampRank(pod.UID, Rank{Priority: 1<<31 - 1, Tier: TierCommitting})
				return true, ""
			}
			return false, "its plan is being bound"
		}
	}
	if m == nil {
		return false, "PodGroup " + pod.Namespace + "/" + message.Truncate(name, message.MaxName) + " has not observed it yet"
	}
	g := m.gang
	if g.leader != pod.UID {
		return false, g.why
	}
	if g.phase.isRefused() {
		return false, "its gang was refused, and no relevant change has been observed since"
	}
	// After a failure the pod may enter the queue's own back-off, which can be longer than the gang's.
	if g.phase == Elected && g.failures == 0 {
		r.enterPhase(g, Queued)
		r.reindex(g)
	}
	r.stampRank(pod.UID, g.leaderRank())
	return true, ""
}

// RecordPopped records that the queue has handed out the pod.
func (r *Registry) RecordPopped(uid types.UID) {
	rank, _ := r.ranks.LoadAndDelete(uid)
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[uid]; m != nil && m.gang.leader == uid {
		m.gang.popped = rank
		if w := m.gang.wait; w != nil {
			w.missed = false // its cycle begins, with the current state of the cluster
		}
		r.cycles++
		m.gang.seen, m.gang.newest = r.mayHelp, r.planSeq
		r.waiting.unheard[m.gang] = struct{}{}
		r.enterPhase(m.gang, Popped)
		r.reindex(m.gang)
	}
}

// Leader returns the pod whose cycle plans the gang next; nil: there is nothing to plan, or not now.
func (r *Registry) Leader(key Key) *corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[key]
	if g == nil || g.members[g.leader] == nil {
		return nil
	}
	return g.members[g.leader].pod
}

// InOrder returns the gangs that have a leader, in the order of the queue.
func (r *Registry) InOrder() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	var waiting []*gangState
	for _, g := range r.gangs {
		if g.leader != "" {
			waiting = append(waiting, g)
		}
	}
	sortGangs(waiting)
	keys := make([]Key, len(waiting))
	for i, g := range waiting {
		keys[i] = g.key
	}
	return keys
}
