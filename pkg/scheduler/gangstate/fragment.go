package gangstate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// A fragment is a gang that was never whole and of which some pods are bound: a crash or a failed binding came between.
// It is completed first (its missing pods are what the next plan places); what cannot be completed in the repair time is
// given back (G11).
//
// Whether a gang was whole is on record from the moment Admitted is written. Between the last binding and that write
// only the marks of the bindings can tell: each names how many pods its plan had, and the sum of the hashes of their
// UIDs. If the bound pods of a plan, together with pods that still wait, make up that sum, then those that wait were
// never bound, and the plan was never whole. If no set of waiting pods does, one of the plan's pods is gone, it may have
// been bound before, and the gang counts as whole: ending a running gang is the worse mistake.

// maxSubsets bounds the search for the waiting pods of a plan. Waiting pods beyond the plan (surplus) are what makes it
// a search.
const maxSubsets = 20_000

// isFragment reports whether the gang is bound in part and provably never was whole.
func (g *gangState) isFragment() bool {
	return g.tree != nil && g.group != nil && !g.admitted && !g.wasWhole && g.plan == nil && g.provablyPartial()
}

// provablyPartial reports whether some plan of the gang can be shown to have members that were never bound.
func (g *gangState) provablyPartial() bool {
	placed := map[string][]*member{} // by mark
	var waiting []uint64
	for _, m := range g.members {
		switch mk := m.pod.Annotations[v2alpha2.BoundForAnnotation]; {
		case m.state == pending || m.state == assumed:
			waiting = append(waiting, hashUID(m.pod.UID))
		case mk != "" && strings.HasPrefix(mk, string(g.group.UID)+"/"):
			placed[mk] = append(placed[mk], m)
		case m.state == posted || m.state == bound && m.pod.DeletionTimestamp == nil:
			// Bound by somebody else, or (posted) the mark is not here yet: proves nothing.
		}
	}
	if len(placed) == 0 {
		return false
	}
	// Pods of one plan may be completed by a later one. The gang was whole if any plan's last member was bound while the
	// others were; that cannot have happened if every plan lacks a member that still waits.
	for mk, members := range placed {
		_, n, sum, ok := parseMark(mk)
		if !ok {
			return false
		}
		for _, m := range members {
			sum -= hashUID(m.pod.UID)
		}
		if len(members) >= n {
			continue // this plan was bound in full; it was not the whole gang, or the tree would be satisfied or a pod is gone
		}
		if !subsetSum(waiting, n-len(members), sum) {
			return false
		}
	}
	// At least one plan must lack a member: if all were bound in full and the tree is not satisfied, something is gone.
	for mk, members := range placed {
		if _, n, _, _ := parseMark(mk); len(members) < n {
			return true
		}
	}
	return false
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

// subsetSum reports whether k of the values add up to the sum (modulo 2^64). It gives up, with false, after maxSubsets.
func subsetSum(values []uint64, k int, sum uint64) bool {
	if k > len(values) {
		return false
	}
	if k == len(values) {
		for _, v := range values {
			sum -= v
		}
		return sum == 0
	}
	budget := maxSubsets
	var search func(from, k int, sum uint64) bool
	search = func(from, k int, sum uint64) bool {
		if k == 0 {
			return sum == 0
		}
		for i := from; i <= len(values)-k && budget > 0; i++ {
			budget--
			if search(i+1, k-1, sum-values[i]) {
				return true
			}
		}
		return false
	}
	return search(0, k, sum)
}

// Fragments adds the time since the last call (at most `watched`: a longer pause is not counted) to every fragment's
// clock, and returns the pods to be given back: those of fragments whose repair time is over. answering says that the API
// server answered since the last call; only then does the clock run. Bound by this scheduler for this PodGroup UID, never
// others.
func (r *Registry) Fragments(elapsed time.Duration, answering bool) []*corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*corev1.Pod
	if !r.synced {
		return nil
	}
	for key := range r.attention {
		g := r.gangs[key]
		if g == nil {
			continue
		}
		if !g.isFragment() {
			g.incompleteFor = 0
			continue
		}
		if answering {
			g.incompleteFor += min(elapsed, watched)
		}
		if g.incompleteFor < r.opts.RepairTimeout {
			continue
		}
		for _, m := range g.members {
			if m.isBound() && m.state == bound && strings.HasPrefix(m.pod.Annotations[v2alpha2.BoundForAnnotation], string(g.group.UID)+"/") {
				out = append(out, m.pod)
			}
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return compareNames(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out
}
