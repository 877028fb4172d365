// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// WaitAtBarrier is called by the binding of a member when the member itself is ready to be bound. It returns nil when
// all members of the plan have arrived, and an error if the plan was aborted, or if ctx or the timeout ended first.
// After an error the member must be released.
func (r *Registry) WaitAtBarrier(ctx context.Context, uid types.UID, timeout time.Duration) error {
	p, err := r.recordArrival(uid)
	if err != nil {
		return err
	}
	timer := r.clock.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.opened:
	case <-p.failed:
		err = fmt.Errorf(PlanAborted+": %s", p.Reason(r))
	case <-timer.C():
		missing := p.notArrived(r)
		err = fmt.Errorf("waited %s for other members of the gang to be ready to be bound: %s", timeout, missing)
		if !r.abortLatePlan(p, fmt.Sprintf("not ready to be bound within %s: %s", timeout, missing)) {
			err = fmt.Errorf(PlanAborted+": %w", err) // another member reports it
		}
	case <-ctx.Done():
		r.abortLatePlan(p, "the scheduler is stopping")
		err = ctx.Err()
	}
	select {
	case <-p.opened: // also if the timeout ended at the same moment: the other members proceed
		return nil
	default:
		return err
	}
}

// abortLatePlan aborts a plan of which a member has waited too long at the barrier, unless it is open or aborted. The
// release of that member, which follows, returns what is to be cancelled, and evaluates the gang.
func (r *Registry) abortLatePlan(p *Plan, reason string) (aborts bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	aborts = !p.open && !p.aborted
	r.abortPlan(p, AbortLate, reason)
	return aborts
}

// recordArrival counts a member that has arrived. The last one opens the barrier, or aborts the plan.
func (r *Registry) recordArrival(uid types.UID) (*Plan, error) {
	p, last := r.countArrival(uid)
	if p == nil {
		return nil, fmt.Errorf("no plan of its gang is in force")
	}
	if last {
		r.openBarrier(p)
	}
	return p, nil
}

// countArrival returns the plan of a member that has arrived, nil if none is in force, and whether it is the last one.
func (r *Registry) countArrival(uid types.UID) (p *Plan, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p = r.planOf(uid)
	if p != nil && !p.aborted {
		p.member(uid).arrived = true
		p.arrived++
		last = p.arrived == len(p.members)
	}
	return p, last
}

// openBarrier opens the barrier of a plan of which all members have arrived. It aborts the plan instead if a sub-group
// that the plan starts would not have its minimum, if its PodGroup was deleted and made again, if the topology
// constraints, a Topology or a node on whose labels it relies have changed, if a pod was bound beside it where it knows
// none of the gang, or if a node has no room for it any more.
func (r *Registry) openBarrier(p *Plan) {
	lacking := ""
	if p.lacking != nil {
		lacking = p.lacking()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.aborted {
		return
	}
	switch changed, beside := r.changedNode(p), p.nodeBeside(); {
	case !r.makesWhole(p):
		r.abortPlan(p, AbortChanged, "a bound pod that the plan counted on is gone")
	case p.gang.group != nil && p.gang.group.UID != p.group.UID:
		r.abortPlan(p, AbortChanged, "the PodGroup was deleted, and made again")
	case p.gang.group != nil && !podgroup.SameConstraints(&p.group.Spec, &p.gang.group.Spec, p.concerns):
		r.abortPlan(p, AbortChanged, "the topology constraints of the PodGroup have changed")
	case !r.hasSameLevels(p):
		r.abortPlan(p, AbortChanged, "topology levels on which the plan relied are gone, or others now")
	case changed != "":
		r.abortPlan(p, AbortChanged, "node "+changed+" is gone, or labels of it, on which the plan relied, have changed")
	case beside != "":
		r.abortPlan(p, AbortChanged, "a pod of the gang that is not part of the plan was bound to node "+beside)
	case lacking != "":
		r.abortPlan(p, AbortChanged, lacking)
	default:
		p.open = true
		close(p.opened)
		r.reindex(p.gang)
	}
}

// hasSameLevels reports whether the levels that a plan relied on are what its Topologies, and the PodGroup of its gang,
// have now.
func (r *Registry) hasSameLevels(p *Plan) bool {
	if p.group == nil || p.gang.group == nil || r.opts.LevelsOf == nil {
		return true
	}
	return podgroup.SameLevels(&p.group.Spec, p.levels, podgroup.WithListed(p.gang.group, r.opts.LevelsOf), p.concerns)
}

// concerns reports whether pods of the plan are below a group, or in it.
func (p *Plan) concerns(group string) bool {
	for leaf := range p.leaves {
		for g := leaf; g != nil; g = g.Parent() {
			if g.Name() == group {
				return true
			}
		}
	}
	return false
}

// changedNode returns a node that is gone, or of which a label has changed, although the plan relies on its labels. "":
// there is none.
func (r *Registry) changedNode(p *Plan) string {
	if r.opts.NodeLabels == nil {
		return ""
	}
	for name, relied := range p.relied {
		if changedLabel(relied, r.opts.NodeLabels(name)) != "" {
			return name
		}
	}
	return ""
}

// nodeBeside returns a node on which the plan knows no pod of a leaf that runs there, if the plan has chosen domains:
// they may be others than the one of that node. Another scheduler bound the pod, or an earlier binding that seemed to
// fail was accepted. "": there is none.
func (p *Plan) nodeBeside() string {
	if p.placed == nil || p.gang.placed == nil {
		return ""
	}
	for at := range p.gang.placed.number {
		if _, known := slices.BinarySearch(p.placed[at.leaf], at.node); !known {
			return at.node
		}
	}
	return ""
}

// ChangedLabel returns the key of a label of a node on which the pod's plan relies and that has changed since, given
// the labels that the node has now. "": none has.
func (r *Registry) ChangedLabel(uid types.UID, node string, labels map[string]string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.planOf(uid); p != nil {
		return changedLabel(p.relied[node], labels)
	}
	return ""
}

// changedLabel returns the key of a label that is not what a plan relies on, "" if there is none.
func changedLabel(relied, labels map[string]string) string {
	for key, value := range relied {
		if now, ok := labels[key]; !ok || now != value {
			return key
		}
	}
	return ""
}

// notArrived returns the names of the members that have not arrived at the barrier.
func (p *Plan) notArrived(r *Registry) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for i := range p.members {
		if m := &p.members[i]; !m.arrived {
			names = append(names, m.member.pod.Name)
		}
	}
	return message.ListNames(names, maxLate, len(names), ", ")
}

// maxLate is the number of members that are named because they are not ready to be bound.
const maxLate = 5

// makesWhole reports whether the groups that the plan starts have their minimum, counting the plan's members and the
// other bound pods. For a minimum this is the tree that was planned; for any other plan it is each sub-group without
// other bound pods. Sub-groups with other bound pods are refilled or completed and are not checked.
func (r *Registry) makesWhole(p *Plan) bool {
	g := p.gang
	if p.Task != Minimum && g.group == nil {
		return true // the PodGroup was deleted: the plan completes by the old tree (docs/decisions, G12)
	}
	beside := r.boundBeside(p)
	with := beside.Clone()
	for leaf, n := range p.leaves {
		with.Add(leaf, n)
	}
	root := p.tree.Root()
	if p.Task == Minimum || beside.Pods(root) == 0 && g.numbers.Flagged(count.IsStray) == 0 {
		return with.Satisfied(root)
	}
	for leaf := range p.leaves {
		var begun *gang.Group // the largest group without bound pods outside the plan
		for group := leaf; group != root && beside.Pods(group) == 0; group = group.Parent() {
			begun = group
		}
		if begun != nil && !with.Satisfied(begun) {
			return false
		}
	}
	return true
}

// boundBeside counts the bound pods outside the plan by the planned tree. It excludes pods that vanished from the
// informer, because they may no longer exist.
func (r *Registry) boundBeside(p *Plan) *gang.Tally {
	g := p.gang
	beside := g.numbers.Bound
	if p.tree != g.tree {
		beside = gang.NewTally(p.tree) // the PodGroup was edited or deleted since
		for _, m := range g.members {
			if leaf, misplaced := leafOf(p.tree, m.pod); misplaced == "" && (m.isBound() || g.hasCompleted(m)) {
				beside.Add(p.tree.Group(leaf), 1)
			}
		}
	}
	if g.vanished > 0 {
		beside = beside.Clone()
		for uid := range r.vanished {
			m := r.members[uid]
			if leaf, misplaced := leafOf(p.tree, m.pod); m.gang == g && misplaced == "" && m.isBound() {
				beside.Add(p.tree.Group(leaf), -1)
			}
		}
	}
	return beside
}
