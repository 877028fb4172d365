package gangstate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
)

// A fragment is a gang that was never whole and of which some pods are bound: a crash or a failed binding came between.
// It is completed first (its missing pods are what the next plan places); what cannot be completed in the repair time is
// given back (G11).
//
// Whether a gang was whole is on record from the moment Admitted is written. Between the last binding and that write
// only the marks of the bindings can tell: each names how many pods its plan had, and the sum of the hashes of their
// UIDs. The gang is a fragment only if these objects tell one complete story in which it never was whole:
//
//  1. Nobody is gone: the pods of every plan of which a mark is left all exist still, bound or waiting. If no set of
//     existing pods makes up a plan's sum, one of its pods is gone and may have been bound before.
//  2. There is an order of the plans in which each makes the tree whole together with what the earlier ones bound, as
//     every plan does when it is made. If there is none, a plan rested on pods that are gone.
//  3. The pods that were ever bound (all of them are there, by 1 and 2) do not satisfy the tree.
//
// Where the objects cannot tell, the gang counts as whole: ending a running gang is the worse mistake. What nobody can know
// is a plan of which no pod is left; it takes two crashes and the loss of all that the second plan bound, before Admitted
// was written once.
//
// A fragment that is half given back could not be proven one: somebody is gone. So the decision is on record before the
// first deletion, as a condition of every pod that is to go (IsGivenBack). A crash while the conditions are written leaves
// a fragment that can be proven still, one afterwards leaves pods that say themselves that they have to go.

// ReasonFragmentGivenBack is the reason of condition DisruptionTarget on a pod that is given back. It is also what a Job's
// podFailurePolicy can tell such a deletion by.
const ReasonFragmentGivenBack = "FragmentGivenBack"

// IsGivenBack reports whether it is on record that the pod is to be given back.
func IsGivenBack(pod *corev1.Pod) bool {
	if pod.Annotations[v2alpha2.BoundForAnnotation] == "" {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			return c.Status == corev1.ConditionTrue && c.Reason == ReasonFragmentGivenBack
		}
	}
	return false
}

// maxSubsets bounds the search for the pods of a plan that were not bound by it. Waiting pods beyond the plan (surplus)
// are what makes it a search.
const maxSubsets = 20_000

// isFragment reports whether the gang is bound in part and provably never was whole, and nothing is under way.
func (g *gangState) isFragment() bool { return g.plan == nil && g.neverWhole() }

// neverWhole reports whether the gang is bound in part and provably never was whole.
func (g *gangState) neverWhole() bool {
	return g.tree != nil && g.group != nil && !g.admitted && g.provablyPartial()
}

// provablyPartial reports whether the marks prove that some pods of the gang are bound and it never was whole.
func (g *gangState) provablyPartial() bool {
	placed := map[string][]*member{} // by mark: bound by that plan, perhaps ended or terminating since
	var rest []*member               // the others
	ever := gang.Counts{}            // bound at any time, of the pods that exist
	controllers := g.liveControllers()
	for _, m := range g.members {
		if m.state == succeeded && len(controllers) > 0 && !controllers.Has(controller(m.pod)) {
			continue // of an earlier run: its story is over (G9)
		}
		mark := m.pod.Annotations[v2alpha2.BoundForAnnotation]
		wasBound := m.state == posted || m.state == bound || m.state == succeeded
		if wasBound && m.misplaced == "" {
			ever[m.leaf]++
		}
		if wasBound && strings.HasPrefix(mark, string(g.group.UID)+"/") {
			placed[mark] = append(placed[mark], m)
		} else {
			rest = append(rest, m) // waits, or was bound by somebody else, or (posted) its mark is not here yet
		}
	}
	if len(placed) == 0 || g.tree.Satisfied(ever) {
		return false
	}
	slices.SortFunc(rest, preferred) // plans take the preferred first: the search finds them soon
	plans := map[string][]*member{}
	for mark, members := range placed {
		_, n, sum, ok := parseMark(mark)
		if !ok || len(members) > n {
			return false
		}
		for _, m := range members {
			sum -= hashUID(m.pod.UID)
		}
		others := rest
		for other, more := range placed {
			if other != mark {
				others = append(others[:len(others):len(others)], more...) // a later plan may have bound what this one did not
			}
		}
		missing, ok := subset(others, n-len(members), sum)
		if !ok {
			return false
		}
		plans[mark] = append(missing, members...)
	}
	return g.explains(plans, placed, rest)
}

// explains reports whether the plans can be put in an order in which each makes the tree whole together with what was
// bound before it. A plan that could be made stays one when more is bound, so the first that fits may always be taken.
func (g *gangState) explains(plans, placed map[string][]*member, rest []*member) bool {
	counts := gang.Counts{}
	there := sets.New[types.UID]()
	add := func(members []*member) (added []*member) {
		for _, m := range members {
			if m.misplaced == "" && !there.Has(m.pod.UID) {
				there.Insert(m.pod.UID)
				counts[m.leaf]++
				added = append(added, m)
			}
		}
		return added
	}
	for _, m := range rest {
		if m.state != pending && m.state != assumed {
			add([]*member{m})
		}
	}
	for len(plans) > 0 {
		before := len(plans)
		for mark, members := range plans {
			added := add(members)
			made := g.tree.Satisfied(counts)
			for _, m := range added {
				there.Delete(m.pod.UID)
				counts[m.leaf]--
			}
			if made {
				add(placed[mark])
				delete(plans, mark)
			}
		}
		if len(plans) == before {
			return false
		}
	}
	return true
}

// parseMark takes a mark apart.
func parseMark(s string) (group types.UID, n int, sum uint64, ok bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return "", 0, 0, false
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil || n < 1 {
		return "", 0, 0, false
	}
	sum, err = strconv.ParseUint(parts[2], 16, 64)
	if err != nil {
		return "", 0, 0, false
	}
	return types.UID(parts[0]), n, sum, true
}

// subset returns k of the members whose hashes add up to the sum (modulo 2^64). It gives up, with false, after maxSubsets.
func subset(members []*member, k int, sum uint64) ([]*member, bool) {
	if k > len(members) {
		return nil, false
	}
	hashes := make([]uint64, len(members))
	var all uint64
	for i, m := range members {
		hashes[i] = hashUID(m.pod.UID)
		all += hashes[i]
	}
	// Whichever is less is searched for: what belongs to the set, or what does not.
	leaveOut := k > len(members)/2
	if leaveOut {
		k, sum = len(members)-k, all-sum
	}
	budget := maxSubsets
	chosen := make([]bool, len(members))
	var search func(end, k int, sum uint64) bool
	search = func(end, k int, sum uint64) bool {
		if k == 0 {
			return sum == 0
		}
		for i := end - 1; i >= k-1 && budget > 0; i-- {
			budget--
			chosen[i] = true
			if search(i, k-1, sum-hashes[i]) {
				return true
			}
			chosen[i] = false
		}
		return false
	}
	if !search(len(members), k, sum) {
		return nil, false
	}
	var out []*member
	for i, m := range members {
		if chosen[i] != leaveOut {
			out = append(out, m)
		}
	}
	return out, true
}

// Fragmented reports whether Fragments has anything to do: some gang is a fragment, or a pod is being given back. If so
// it names one such gang.
func (r *Registry) Fragmented() (Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.synced {
		return Key{}, false
	}
	for key := range r.index.partials {
		if g := r.gangs[key]; g != nil && (g.numbers.flag(isLeaver) > 0 || g.neverWhole()) {
			return key, true
		}
	}
	return Key{}, false
}

// watched is the longest time between two looks at a fragment that counts: after a longer pause nobody looked.
const watched = 5 * time.Second

// Fragments adds the time since the last call (at most `watched`: a longer pause is not counted) to every fragment's
// clock, and returns the pods to be given back: those of fragments whose repair time is over. answering says that the API
// server answered since the last call; only then does the clock run. Bound by this scheduler for this PodGroup UID, never
// others.
//
// The pods that a controller will replace count nowhere from now on, so that no plan rests on them: they must be deleted,
// and are returned until they are. Pods without a controller go on counting, and must not be deleted.
func (r *Registry) Fragments(elapsed time.Duration, answering bool) []*corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*corev1.Pod
	if !r.synced {
		return nil
	}
	for key := range r.index.partials {
		g := r.gangs[key]
		if g == nil {
			continue
		}
		out = append(out, g.leavers()...)
		if g.proven = g.neverWhole(); !g.proven {
			g.incompleteFor = 0
			continue
		}
		if g.inFirstBurst() {
			continue // a later one does not stop the clock
		}
		if answering {
			g.incompleteFor += min(elapsed, watched)
		}
		if g.plan != nil || g.incompleteFor < r.opts.RepairTimeout {
			continue
		}
		for _, m := range g.members {
			if g.wasPlaced(m) {
				out = append(out, m.pod)
				m.leaving = controller(m.pod) != ""
				r.recount(m)
			}
		}
		r.reindex(g)
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out
}

// isOverdue reports whether the gang is a fragment that is to be given back at the next look: then another attempt would
// only put that off, for as long as a binding that is not answered takes.
func (r *Registry) isOverdue(g *gangState) bool {
	if g.incompleteFor < r.opts.RepairTimeout || !g.isFragment() {
		return false
	}
	for _, m := range g.members {
		if g.wasPlaced(m) && controller(m.pod) != "" {
			return true
		}
	}
	return false
}

// inFirstBurst reports whether a plan is being bound and nothing of the gang was bound by an earlier one.
func (g *gangState) inFirstBurst() bool {
	if g.plan == nil {
		return false
	}
	for _, m := range g.members {
		if g.wasPlaced(m) && m.pod.Annotations[v2alpha2.BoundForAnnotation] != g.plan.Mark {
			return false
		}
	}
	return true
}

// wasPlaced reports whether the member is bound, and was by this scheduler for this PodGroup.
func (g *gangState) wasPlaced(m *member) bool {
	return m.isBound() && m.state == bound && strings.HasPrefix(m.pod.Annotations[v2alpha2.BoundForAnnotation], string(g.group.UID)+"/")
}

// leavers returns the pods that were given back and whose deletion has not been seen.
func (g *gangState) leavers() []*corev1.Pod {
	var out []*corev1.Pod
	if g.numbers.flag(isLeaver) == 0 {
		return nil
	}
	for _, m := range g.members {
		if m.leaving && m.state == bound && m.pod.DeletionTimestamp == nil && m.pod.Status.Phase != corev1.PodFailed {
			out = append(out, m.pod)
		}
	}
	return out
}
