// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// While the members of a plan are handed out, which takes seconds for thousands, pods without a gang may pass
// (docs/decisions, G16). They leave the members that have not had their cycle their room (RoomOfMembers).

// CommittingPlan returns the ID and the priority of the plan whose members are being handed out; 0: none. passable:
// room is all that other pods could take from it.
func (r *Registry) CommittingPlan() (id uint64, priority int32, passable bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.committing == nil {
		return 0, 0, false
	}
	return r.committing.ID, r.committing.Priority, r.committing.passable
}

// RoomOfMembers returns what the members of the plan that is being committed that are planned on the node and have not
// been assumed yet will use there. Empty: there are none.
func (r *Registry) RoomOfMembers(node string) reservations.Amount {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum reservations.Amount
	p := r.committing
	if p == nil || r.opts.Amount == nil {
		return sum
	}
	for _, i := range p.onNode(node) {
		if s := &p.members[i]; !s.assumed && !s.settled {
			sum.Add(p.amountOf(s.member, r.opts.Amount), 1)
		}
	}
	return sum
}

// amountOf returns what a member uses. It is asked for hundreds of nodes in a cycle, so it is computed once per class.
func (p *Plan) amountOf(m *member, of func(*corev1.Pod) reservations.Amount) reservations.Amount {
	amount, known := p.amounts[m.class]
	if !known {
		if p.amounts == nil {
			p.amounts = map[string]reservations.Amount{}
		}
		amount = of(m.pod)
		p.amounts[m.class] = amount
	}
	return amount
}
