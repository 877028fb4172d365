package gangstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
)

// SetGates records which waiting pods a plugin other than the gate keeps from the scheduling queue, and why: by pod, ""
// for one that is not kept any more. No plan is made with such a pod, and it leads no gang: the queue would not hand it out.
func (r *Registry) SetGates(gates map[types.UID]string, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(now)
	changed := map[*gangState]bool{}
	for uid, why := range gates {
		m := r.members[uid]
		if m == nil || m.gate == why {
			continue
		}
		m.gate = why
		m.gang.changed = true
		r.recount(m)
		changed[m.gang] = true
	}
	var e Effects
	for g := range changed {
		e.add(r.evaluate(g, now))
		if g.leader != "" && g.seen && !g.parked && g.plan == nil { // its attempt ends here: another begins without the gated pods
			r.again(g)
			e.Activate = append(e.Activate, r.wake(g, now)...)
		}
	}
	return r.leave(e)
}

// Pass answers PreEnqueue: may the pod enter the queue? If not, why, in words for the log.
func (r *Registry) Pass(pod *corev1.Pod) (bool, string) {
	name, ok := pod.Annotations[v2alpha2.PodGroupAnnotation]
	if !ok || name == "" {
		return true, ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[pod.UID]
	if m == nil || m.gang.plan != nil {
		if p := r.plans[pod.UID]; p != nil && !p.aborted {
			if p == r.committing {
				r.stamp(pod.UID, Rank{Priority: 1<<31 - 1, Tier: TierCommitting})
				return true, ""
			}
			return false, "its plan is being bound"
		}
	}
	if m == nil {
		return false, "PodGroup " + pod.Namespace + "/" + message.Truncate(name, message.MaxName) + " has not seen it yet"
	}
	g := m.gang
	if g.leader != pod.UID {
		return false, g.why
	}
	if r.index.wokenByCaller && g.parked && !g.ripe {
		return false, "its gang was refused, and nothing has changed that could help it"
	}
	// After a failure it may be on its way into the queue's own back-off, which can be longer than ours.
	if !g.seen && g.failures == 0 {
		g.seen = true
		r.reindex(g)
	}
	r.stamp(pod.UID, r.leaderRank(g))
	return true, ""
}

// Popped tells that the queue has handed the pod out.
func (r *Registry) Popped(uid types.UID) {
	r.ranks.Delete(uid)
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[uid]; m != nil && m.gang.leader == uid {
		m.gang.missed = false // its cycle begins, and sees the cluster as it is
		m.gang.popped = true
	}
}
