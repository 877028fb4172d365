package gangstate

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/observed"
)

// Facts returns what is known of a gang, false if it is not known at all. The result shares nothing that changes.
func (r *Registry) Facts(key Key) (observed.Gang, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[key]
	if g == nil {
		return observed.Gang{}, false
	}
	profile := r.profile(g)
	c := r.count(g, profile)
	f := observed.Gang{
		Namespace: key.Namespace, Name: key.Name,
		Group: g.group, Tree: g.tree, TreeErr: g.treeErr,
		Created: c.created, Usable: c.usable, Bound: c.bound,
		Admitted: g.admitted, AdmittedGroups: g.admittedGroups.Clone(),
		Binding: g.plan != nil && !g.plan.aborted,
		Profile: profile,
	}
	if !g.refusedAt.IsZero() {
		f.Refused = observed.Refusal{Reason: g.verdict.Reason, Message: g.verdict.Message, At: g.refusedAt}
		f.RefusedSurplus = g.task == Surplus
	}
	if g.isFragment() {
		f.Fragment, f.FragmentFor = true, g.incompleteFor
	}
	f.Ended = len(g.members) > 0
	for _, m := range g.members {
		if m.state != succeeded {
			f.Ended = false
		}
		if m.misplaced != "" && m.state == pending {
			f.MisplacedTotal++
			f.Misplaced = append(f.Misplaced, fmt.Sprintf("pod %s %s", m.pod.Name, m.misplaced))
		}
		if m.state != pending {
			continue
		}
		switch {
		case m.pod.DeletionTimestamp != nil:
			f.Terminating++
		case len(m.pod.Spec.SchedulingGates) > 0:
			f.Gated++
		case m.pod.Spec.SchedulerName != profile:
			f.Foreign++
			if !slices.Contains(f.ForeignNames, m.pod.Spec.SchedulerName) {
				f.ForeignNames = append(f.ForeignNames, m.pod.Spec.SchedulerName)
			}
		}
		ours := r.profiles.Has(m.pod.Spec.SchedulerName)
		if p := r.plans[m.pod.UID]; ours && m.pod.DeletionTimestamp == nil && (p == nil || p.aborted) {
			f.Waiting = append(f.Waiting, observed.WaitingPod{
				Pod: m.pod, Since: m.since,
				Gated:         len(m.pod.Spec.SchedulingGates) > 0,
				Misplaced:     m.misplaced != "",
				NeedsCapacity: !g.refusedAt.IsZero() && m.usable(profile),
			})
		}
	}
	slices.Sort(f.ForeignNames)
	slices.Sort(f.Misplaced)
	f.Misplaced = f.Misplaced[:min(len(f.Misplaced), 10)]
	slices.SortFunc(f.Waiting, func(a, b observed.WaitingPod) int {
		if c := a.Pod.CreationTimestamp.Time.Compare(b.Pod.CreationTimestamp.Time); c != 0 {
			return c
		}
		return compareNames(a.Pod.Name, b.Pod.Name)
	})
	return f, true
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Keys returns every gang that is known, sorted.
func (r *Registry) Keys() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make([]Key, 0, len(r.gangs))
	for k := range r.gangs {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b Key) int { return compareNames(a.String(), b.String()) })
	return keys
}

// watched returns the time between two looks at a fragment that count: a longer pause means that nobody looked.
const watched = 5 * time.Second
