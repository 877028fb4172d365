package gangstate

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/gang"
)

// Arrive is called by a member's binding when everything of its own is prepared. It returns when all members of the plan
// have arrived (nil), or the plan was aborted, or ctx or the timeout ended.
func (r *Registry) Arrive(ctx context.Context, uid types.UID, timeout time.Duration) error {
	p, err := r.arrive(uid)
	if err != nil {
		return err
	}
	timer := r.clock.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.opened:
	case <-p.failed:
		err = fmt.Errorf("the plan of its gang was aborted: %s", p.Reason(r))
	case <-timer.C():
		r.Abort(uid, AbortLate, fmt.Sprintf("a member was not ready to be bound within %s", timeout), r.clock.Now())
		err = fmt.Errorf("waited %s for the other members of the gang to be ready to be bound", timeout)
	case <-ctx.Done():
		r.Abort(uid, AbortLate, "the scheduler ends", r.clock.Now())
		err = ctx.Err()
	}
	select {
	case <-p.opened: // also if its own time was over at the same moment: the others go through
		return nil
	default:
		return err
	}
}

// arrive counts a member that has arrived, and opens the barrier with the last one if what the plan begins will be whole.
func (r *Registry) arrive(uid types.UID) (*Plan, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plans[uid]
	if p == nil {
		return nil, fmt.Errorf("no plan of its gang is in force")
	}
	if !p.aborted {
		p.arrived++
		if p.arrived == len(p.members) && !p.open {
			if r.makesWhole(p) {
				p.open = true
				close(p.opened)
				r.reindex(p.gang)
			} else {
				r.abort(p, AbortChanged, "a bound pod that the plan counted on is gone")
			}
		}
	}
	return p, nil
}

// makesWhole reports whether what the plan begins will be whole with its members and what is bound beside them: for a
// minimum the tree that was planned, for any other plan each sub-group that has no bound pod beside it. What has one is
// refilled, or completed.
func (r *Registry) makesWhole(p *Plan) bool {
	g := p.gang
	if p.Task != Minimum && g.group == nil {
		return true // the PodGroup was deleted: the plan ends by its old tree (docs/decisions, G12)
	}
	beside := r.boundBeside(p)
	with := beside.Clone()
	for i := range p.members {
		with.Add(p.tree.Group(p.members[i].leaf), 1)
	}
	root := p.tree.Root()
	if p.Task == Minimum || beside.Pods(root) == 0 && g.numbers.flag(isStray) == 0 {
		return with.Satisfied(root)
	}
	for i := range p.members {
		var begun *gang.Group // the largest that has nothing beside the plan
		for group := p.tree.Group(p.members[i].leaf); group != root && beside.Pods(group) == 0; group = group.Parent() {
			begun = group
		}
		if begun != nil && !with.Satisfied(begun) {
			return false
		}
	}
	return true
}

// boundBeside counts the bound pods by the tree that was planned, without those that the informer lost: they may be gone.
func (r *Registry) boundBeside(p *Plan) *gang.Tally {
	g := p.gang
	beside := g.numbers.bound
	if p.tree != g.tree {
		beside = gang.NewTally(p.tree) // the PodGroup was edited or deleted meanwhile
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
