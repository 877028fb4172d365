package gangstate

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
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
