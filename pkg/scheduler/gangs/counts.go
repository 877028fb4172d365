// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/marks"
)

// anyTree is used to count pods while the gang has no tree: all pods are in one leaf.
var anyTree = func() *gang.Tree {
	tree, err := gang.Build(gang.Node{}, nil)
	if err != nil {
		panic(err)
	}
	return tree
}()

// share is the contribution of one member to the numbers of its gang. It depends only on the member. A change of a
// member therefore costs the difference of two shares, regardless of the size of the gang.
type share struct {
	leaf       *gang.Group // nil: the pod does not count
	stage      stage
	scheduler  string // schedulerName of a pod that may wait for a plan, else ""
	other      string // schedulerName of a bound pod that names none of our profiles, else ""
	controller types.UID
	mark       marks.PlanID
	gpus, held int64 // GPUs that the pod requests, and those that it uses as a bound pod
	priority   int32
	flags      flags
}

// stage determines the counts to which a pod with a leaf contributes.
type stage int8

const (
	uncounted stage = iota // terminating, released or failed
	waits                  // has no node
	isAssumed              // was assigned a node by the scheduler
	isPlaced               // is bound
	isDone                 // has succeeded
)

// flags are boolean properties of a member; the members with each property are counted.
type flags uint16

const (
	hasPriority   flags = 1 << iota // has not succeeded
	hasEnded                        // has succeeded
	isLive                          // has not finished and is not being deleted: the run of its controller continues
	isMarked                        // is bound, with a mark
	isOwn                           // is bound by a plan for this PodGroup
	isLeaver                        // is released, and its deletion has not been observed
	isStanding                      // is bound, in any sub-group
	isUsable                        // waits, and has no property that excludes it from a plan
	isTerminating                   // waits, and is being deleted
	isMisplaced                     // waits, and does not count
	isGated                         // waits, with scheduling gates or gated by another plugin
	isStray                         // is bound, and does not count
	isGoing                         // is bound, and is being deleted
	isWaiting                       // waits for one of our profiles, in a plan or not
	isOurs                          // names one of our profiles, in any state
	nFlags        = iota
)

func (s *share) has(f flags) bool { return s.flags&f != 0 }

// shareOf returns the current contribution of the member.
func (r *Registry) shareOf(m *member) share {
	pod := m.pod
	deleted, failed := pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodFailed
	s := share{controller: controller(pod), mark: m.mark.PlanID()}
	set := func(f flags, is bool) {
		if is {
			s.flags |= f
		}
	}
	if m.misplaced == "" {
		s.leaf = m.gang.shape().Group(m.leaf)
	}
	standing := m.isBound()
	switch {
	case m.state == succeeded:
		s.stage = isDone
	case deleted || m.leaving || failed:
	case standing:
		s.stage = isPlaced
	case m.state == assumed:
		s.stage = isAssumed
	default:
		s.stage = waits
	}
	switch {
	case failed || m.state == succeeded:
	case m.state == bound:
		s.gpus, s.held = m.gpus, m.gpus // including while it is being deleted
	case !deleted && !m.leaving:
		s.gpus = m.gpus
	}
	set(isOurs, r.profiles.Has(pod.Spec.SchedulerName))
	set(hasEnded, m.state == succeeded)
	set(hasPriority, m.state != succeeded)
	set(isLive, m.state != succeeded && !deleted)
	if standing && !r.profiles.Has(pod.Spec.SchedulerName) {
		s.other = pod.Spec.SchedulerName
	}
	set(isMarked, standing && !m.mark.IsZero())
	set(isOwn, m.gang.group != nil && m.gang.wasPlaced(m))
	set(isLeaver, m.leaving && m.state == bound && !deleted && !failed)
	set(isStanding, standing)
	if m.state != succeeded {
		s.priority = m.key.priority
	}
	if m.state == bound && !failed {
		set(isStray, s.leaf == nil && !deleted)
		set(isGoing, s.leaf != nil && deleted)
	}
	if m.state == pending {
		gated := len(pod.Spec.SchedulingGates) > 0 || m.gate != ""
		set(isTerminating, deleted)
		set(isMisplaced, !deleted && s.leaf == nil)
		set(isGated, !deleted && s.leaf != nil && gated)
		set(isUsable, !deleted && s.leaf != nil && !gated)
		if !deleted {
			s.scheduler = pod.Spec.SchedulerName
			set(isWaiting, r.profiles.Has(s.scheduler))
		}
	}
	return s
}

// numbers are the sums of the members' shares, and values derived from them.
type numbers struct {
	created *gang.Tally // pods that exist and have not failed, completions included
	placed  *gang.Tally // bound, assumed, or counted as succeeded
	bound   *gang.Tally // bound or counted as succeeded (docs/decisions, G9, G11)

	flagged    [nFlags]int // members by flag
	gpus, held int64       // sums over the shares
	ownMarks   map[marks.PlanID]int
	others     map[string]int // bound pods that have a leaf and name none of our profiles, by schedulerName
	priorities priorities
	completed  completions
	pools      map[string]*pool // by schedulerName
	spare      spares
	touched    []*gang.Group // leaves whose bound pods changed since recordWhole last ran
	surplus    gang.Counts   // see gangState.surplus; nil: must be computed
	surplusAt  time.Time     // when surplus was computed
}

func (n *numbers) flag(f flags) int {
	i := 0
	for f >>= 1; f != 0; f >>= 1 {
		i++
	}
	return n.flagged[i]
}

// newNumbers returns the numbers of a gang without members.
func newNumbers(tree *gang.Tree) *numbers {
	n := &numbers{
		created: gang.NewTally(tree), placed: gang.NewTally(tree), bound: gang.NewTally(tree),
		ownMarks: map[marks.PlanID]int{}, others: map[string]int{}, pools: map[string]*pool{}, spare: newSpares(tree),
	}
	n.completed = newCompletions(func(leaf *gang.Group, k int) {
		n.created.Add(leaf, k)
		n.addPlaced(leaf, k)
		n.addBound(leaf, k)
	})
	return n
}

// shape returns the tree by which the gang's pods are counted.
func (g *gangState) shape() *gang.Tree {
	if g.tree == nil {
		return anyTree
	}
	return g.tree
}

// recountAll computes the numbers anew, for another tree.
func (r *Registry) recountAll(g *gangState) {
	g.numbers = newNumbers(g.shape())
	g.partial.fresh = false
	g.rows = g.rows[:0]
	for _, m := range g.members {
		m.inPool, m.inLeaf, m.inAge, m.row, m.share = nil, 0, 0, 0, share{}
	}
	for _, m := range g.members {
		r.locate(m)
		r.recount(m)
	}
}

// recount updates the numbers after a member has changed. It must be called after every change of a member.
func (r *Registry) recount(m *member) {
	s := r.shareOf(m)
	key := orderOf(m.pod)
	if s != m.share || key != m.key {
		m.gang.partial.fresh = false
		n := m.gang.numbers
		old := m.share
		r.queue(m, share{}) // removed from its heaps by the key by which it was sorted
		m.key = key
		if s.has(hasPriority) {
			s.priority = key.priority
		}
		n.add(&s, 1)
		n.add(&old, -1)
		m.share = s
		r.queue(m, s)
	}
	m.gang.list(m)
}

// removeFromNumbers removes a member from the numbers.
func (r *Registry) removeFromNumbers(m *member) {
	r.queue(m, share{})
	m.gang.numbers.add(&m.share, -1)
	m.share = share{}
	m.gang.list(m)
}

// add adds (k = 1) or subtracts (k = -1) a share, except for the member's position in the pools.
func (n *numbers) add(s *share, k int) {
	for i, f := 0, s.flags; f != 0; i, f = i+1, f>>1 {
		if f&1 != 0 {
			n.flagged[i] += k
		}
	}
	n.gpus, n.held = n.gpus+int64(k)*s.gpus, n.held+int64(k)*s.held
	if s.has(hasPriority) {
		n.priorities.add(s.priority, k)
	}
	if s.has(isOwn) {
		if n.ownMarks[s.mark] += k; n.ownMarks[s.mark] == 0 {
			delete(n.ownMarks, s.mark)
		}
	}
	if s.has(isLive) {
		n.completed.addLive(s.controller, k)
	}
	if s.has(isMarked) {
		n.completed.addMark(s.mark, k)
	}
	if s.leaf == nil {
		return
	}
	if s.other != "" {
		if n.others[s.other] += k; n.others[s.other] == 0 {
			delete(n.others, s.other)
		}
	}
	switch s.stage {
	case waits:
		n.created.Add(s.leaf, k)
	case isAssumed:
		n.created.Add(s.leaf, k)
		n.addPlaced(s.leaf, k)
	case isPlaced:
		n.created.Add(s.leaf, k)
		n.addPlaced(s.leaf, k)
		n.addBound(s.leaf, k)
	case isDone:
		n.completed.addDone(bucketKey{s.controller, s.mark}, s.leaf, k)
	}
}

func (n *numbers) addPlaced(leaf *gang.Group, k int) {
	n.placed.Add(leaf, k)
	for _, p := range n.pools {
		p.addUsable(n.bound, leaf, k)
	}
}

func (n *numbers) addBound(leaf *gang.Group, k int) {
	n.bound.Add(leaf, k)
	n.surplus = nil
	n.spare.refresh(n.bound, leaf)
	for _, p := range n.pools {
		p.boundChanged(n.bound, leaf)
	}
	if last := len(n.touched) - 1; last < 0 || n.touched[last] != leaf {
		n.touched = append(n.touched, leaf)
	}
}

// usable returns the pods that count if the gang is planned with this profile: placed pods, and those that a plan may
// place.
func (n *numbers) usable(profile string) *gang.Tally {
	if p := n.pools[profile]; p != nil && p.ours {
		return p.usable
	}
	return n.placed
}

// waitingFor returns how many pods a plan with this profile may place.
func (n *numbers) waitingFor(profile string) int {
	if p := n.pools[profile]; p != nil && p.ours {
		return p.pods
	}
	return 0
}

// blocked reports whether a property of the pod itself excludes it from every plan.
func (m *member) blocked() bool {
	return m.misplaced != "" || len(m.pod.Spec.SchedulingGates) > 0 || m.gate != ""
}

// usable reports whether a plan may place the member now.
func (m *member) usable(profile string) bool {
	return m.share.has(isUsable) && m.inPool != nil && m.inPool.scheduler == profile
}

// isBound reports whether the pod is bound: nodeName is set (or the binding was accepted), and the pod is neither
// terminating, nor released, nor Failed (docs/decisions, G11).
func (m *member) isBound() bool {
	return (m.state == bound || m.state == posted) && m.pod.DeletionTimestamp == nil && !m.leaving && m.pod.Status.Phase != corev1.PodFailed
}

// hasCompleted reports whether the member succeeded in the current run (docs/decisions, G9).
func (g *gangState) hasCompleted(m *member) bool {
	return m.state == succeeded && g.numbers.completed.counts(bucketKey{m.share.controller, m.share.mark})
}

// liveControllers returns the controllers of the unfinished pods.
func (g *gangState) liveControllers() sets.Set[types.UID] {
	return sets.KeySet(g.numbers.completed.live)
}

// holds reports whether the gang has bound pods that, by their marks, were bound by a plan for this PodGroup.
func (g *gangState) holds() bool { return g.numbers.flag(isOwn) > 0 }

// isCandidate reports whether the gang may be partial, judged by the numbers alone: it was never admitted, and pods
// carry marks of plans other than the one that is being bound.
func (g *gangState) isCandidate() bool {
	if g.tree == nil || g.group == nil || g.admitted || !g.holds() {
		return false
	}
	return g.plan == nil || len(g.numbers.ownMarks) > 1 || g.numbers.ownMarks[g.plan.mark.PlanID()] == 0
}

// controller returns the UID of a pod's controlling owner, "" for a bare pod.
func controller(pod *corev1.Pod) types.UID {
	for i := range pod.OwnerReferences {
		if o := &pod.OwnerReferences[i]; o.Controller != nil && *o.Controller {
			return o.UID
		}
	}
	return ""
}
