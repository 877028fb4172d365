// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// Work is what a leader's cycle must plan, or what a pod without a gang needs to preempt (podpreempting.go).
type Work struct {
	Gang Key         // zero: the work is that of a pod without a gang
	Pod  *corev1.Pod // which is this; nil: the work is that of a gang
	Task Task
	Tree *gang.Tree
	// Priority is the gang's priority in the queue.
	Priority int32
	// EvictionPriorities are the priorities at which the gang may preempt, the highest first, and EvictionPriority is
	// that of the search for victims, at first the highest one: victims have a lower one, and the pods that are planned
	// for them do not.
	EvictionPriorities []int32
	EvictionPriority   int32
	// Progress is what earlier attempts that were cut short have achieved.
	Progress Progress
	// Cuts is the number of consecutive searches for victims that were cut short.
	Cuts int
	// Relied are, by node, the labels on which the plan relies. It is set before CommitPlan.
	Relied map[string]map[string]string
	// Lacking returns which planned node lacks room now, "" if none does; nil: it is not known. It is set before
	// CommitPlan and called when the barrier opens, when all members are assumed.
	Lacking func() string
	// TakesMoreThanRoom: room is not all that the plan takes. It is set before CommitPlan.
	TakesMoreThanRoom bool
	// Problem is the problem to plan. For Refill it contains the sub-groups that the tree needs and that are not
	// admitted, as units (docs/decisions, G12, G20). For LostUnit it contains the pods of sub-groups that lost all of
	// theirs, for SurplusUnit those of sub-groups that are not satisfied, for SurplusSingle those of sub-groups that
	// are.
	Problem placement.Problem
	// Singles is set for Refill only: the waiting pods of admitted sub-groups below their minimum, in the form of
	// surplus, because each such pod is useful by itself. Lacks is the number of pods that each of these sub-groups
	// lacks.
	Singles placement.Problem
	Lacks   gang.Counts
	// LostFrom are the lost pods that a Refill replaces, as far as this process saw them, the latest last.
	LostFrom []LostPods
	Classes  []*corev1.Pod // by class index: the first pod of the class
	// Group is the PodGroup.
	Group   *v2alpha2.PodGroup
	Pods    []*corev1.Pod // by placement.Pod.Index: the waiting pods
	members []*member     // likewise; must not be read without the lock
	have    gang.Counts   // Problem before it was divided, for Required
	all     map[string][]placement.Pod

	roomPriority int32 // see Asker
	grown        bool  // the gang needs more pods than when its minimum was bound last: what it lacks was not lost
	began        time.Time
	standing     map[string]int32 // see gangState.evictionPriorities
}

// Progress is how far attempts that were cut short have come in the choices of the planner.
type Progress struct {
	Tried int // choices that were tried: placement.Budget.Skip of the next attempt
	Stuck int // consecutive attempts whose time was over before they had tried one more choice
	Again int // how often the search has started over after all choices
}

// LostPods are the pods of a leaf that an admitted gang has lost on one node. It is information for users only.
type LostPods struct {
	Leaf, Node string
	Pods       int
}

// maxLost is the maximum number of LostPods that are remembered of a gang.
const maxLost = 16

// rememberLost records the node of a bound pod that is removed from an admitted gang.
func (g *gangState) rememberLost(m *member) {
	if g.admitted && m.state == count.Bound && m.misplaced == "" {
		lost := LostPods{m.leaf, m.node, 1}
		g.lostFrom = slices.DeleteFunc(g.lostFrom, func(x LostPods) bool {
			same := x.Leaf == lost.Leaf && x.Node == lost.Node
			if same {
				lost.Pods += x.Pods
			}
			return same
		})
		g.lostFrom = append(g.lostFrom, lost)
		g.lostFrom = g.lostFrom[max(0, len(g.lostFrom)-maxLost):]
	}
}

// BeginAttempt returns what the pod's cycle must plan, if the pod is its gang's leader and a plan may be made now.
// Otherwise it returns nil and the reason.
func (r *Registry) BeginAttempt(pod *corev1.Pod) (*Work, string) {
	buffer := rowBuffers.Get().(*[]row)
	defer func() {
		clear(*buffer)
		rowBuffers.Put(buffer)
	}()
	w, g, why := r.beginAttempt(pod, buffer)
	if w == nil {
		return nil, why
	}
	// The remaining work needs no lock.
	for _, nodes := range w.Problem.Nodes {
		slices.Sort(nodes) // the same facts lead to the same plan and the same message
	}
	rows := count.Sorted(*buffer, func(x *row) *count.Order { return &x.order })
	w.Pods, w.members = make([]*corev1.Pod, len(rows)), make([]*member, len(rows))
	classes, class := map[string]int{}, -1
	sizes := make([]int, len(w.Tree.Groups())+1) // by index of the leaf
	for _, x := range rows {
		sizes[x.leaf.Index()]++
	}
	pods := make([][]placement.Pod, len(sizes))
	for i, x := range rows {
		if i == 0 || x.class != rows[i-1].class { // mostly equal: no look-up
			known := false
			if class, known = classes[x.class]; !known {
				class = len(w.Classes)
				classes[x.class] = class
				w.Classes = append(w.Classes, x.pod)
			}
		}
		w.Pods[i], w.members[i] = x.pod, x.member
		list := &pods[x.leaf.Index()]
		if *list == nil {
			*list = make([]placement.Pod, 0, sizes[x.leaf.Index()])
		}
		*list = append(*list, placement.Pod{ID: string(x.pod.UID), Index: i, Class: class})
	}
	for _, leaf := range w.Tree.Leaves() {
		if list := pods[leaf.Index()]; list != nil {
			w.Problem.Pods[leaf.Name()] = list
		}
	}
	w.dividePods(g)
	return w, ""
}

// standing contains the facts about the gang that dividePods needs.
type standing struct {
	admitted func(leaf *gang.Group) bool // the leaf is admitted
	whole    func(leaf *gang.Group) bool // the leaf and all groups above it are satisfied
	lost     sets.Set[string]            // see gangState.lostGroups
	torn     map[*gang.Group]bool        // partially bound sub-groups: can be completed; nil: the tree is not satisfied
}

// beginAttempt is the part of BeginAttempt that needs the lock. It copies the rows of the pods that may be planned to
// the buffer.
func (r *Registry) beginAttempt(pod *corev1.Pod, buffer *[]row) (*Work, standing, string) {
	*buffer = (*buffer)[:0]
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leading = true
	m := r.members[pod.UID]
	switch {
	case m == nil:
		return nil, standing{}, "its PodGroup has not observed it yet"
	case m.gang.leader != pod.UID:
		return nil, standing{}, "another pod of the gang is the leader"
	case r.committing != nil:
		r.wakeLeaderAgain(m.gang)
		return nil, standing{}, "another gang is being committed"
	}
	g := m.gang
	profile := g.numbers.Profile()
	task, state := r.taskOf(g, profile, r.now)
	if state == gated {
		r.enterPhase(g, Gated) // a leader is elected again when the gate ends
		r.reindex(g)
		return nil, standing{}, "room grows, and minimums or surplus sub-groups go first"
	}
	if !r.now.Before(r.index.grewAt.Add(r.opts.SingleSurplusAfter)) {
		g.gatedSince = time.Time{} // not before: while it waits in the queue, room may grow again
	}
	if state == ready {
		g.task = task
		if g.isPoppedEarly() {
			r.wakeLeaderAgain(g)
			return nil, standing{}, "other gangs precede it by now"
		}
	}
	r.enterPhase(g, Planning)
	g.yieldedAt, g.lost = time.Time{}, 0
	g.changed, g.hopeless.waits = false, false // changes from here on are not part of this attempt
	r.reindex(g)
	if state != ready {
		return nil, standing{}, "the gang is no longer complete"
	}
	w := &Work{Gang: g.key, Group: g.group, Task: task, Tree: g.tree, Priority: g.priority(), Progress: g.progress, Cuts: g.cuts}
	w.EvictionPriorities, w.standing = g.evictionPriorities(profile)
	w.EvictionPriority, g.roomPriority = w.EvictionPriorities[0], w.EvictionPriorities[len(w.EvictionPriorities)-1]
	w.roomPriority, w.began = max(g.roomPriority, g.leastPriority()), r.now
	w.grown = g.wholeWith > 0 && g.tree.MinPods() > g.wholeWith
	g.progress = Progress{}
	w.Problem = placement.Problem{Tree: g.tree, Have: g.numbers.Bound.Counts(), Bound: g.numbers.BoundNow(), Pods: map[string][]placement.Pod{}}
	w.Problem.Nodes = g.placed.nodes()
	if task == Refill {
		w.LostFrom = slices.Clone(g.lostFrom)
	}
	reserved, least := r.reserved.HasGang(g.key), g.leastPriority()
	for i := range g.rows {
		if x := &g.rows[i]; x.flags&count.IsUsable != 0 && x.scheduler == profile && (w.standing == nil || w.mayStart(x.leaf.Name(), x.order.Priority, least)) {
			*buffer = append(*buffer, *x)
			if reserved && r.reserved.Has(reservations.Owner{Gang: g.key, Leaf: x.leaf.Name()}) {
				(*buffer)[len(*buffer)-1].class += "\x00" + x.leaf.Name() // only pods of this leaf may use what is reserved for it
			}
		}
	}
	return w, g.standing(task, profile), ""
}

// SetLevels sets the topology levels that the groups of the tree require and prefer, as placement.Problem has them.
func (w *Work) SetLevels(required, preferred map[string]string) {
	for _, p := range []*placement.Problem{&w.Problem, &w.Singles} {
		p.Required, p.Preferred = required, preferred
	}
}

// standing returns the facts that dividePods needs for a task.
func (g *gangState) standing(task Task, profile string) standing {
	admitted, bound := g.admittedGroups.Clone(), g.numbers.Bound.Clone()
	s := standing{
		admitted: func(leaf *gang.Group) bool { return leaf.Parent() == nil || admitted.Has(leaf.Name()) },
		whole:    func(leaf *gang.Group) bool { return count.IsWhole(bound, leaf) },
		lost:     g.lostGroups.Clone(),
	}
	if task == Refill && bound.Satisfied(g.tree.Root()) {
		s.torn = map[*gang.Group]bool{}
		for _, group := range g.numbers.Bound.Partial() {
			s.torn[group] = g.canComplete(group, profile)
		}
	}
	return s
}

// Asker returns who looks for room: with the lowest priority at which the gang may preempt, or, while others end for
// it, with that for which they do. Otherwise pods that were preempted took the room back that is kept for the
// preemptor.
func (w *Work) Asker() reservations.Asker {
	return reservations.Asker{Gang: w.Gang, Priority: w.roomPriority, Surplus: w.Task.isSurplus(), Refill: w.Task == Refill && !w.grown || w.Task == LostUnit, Ends: w.ends()}
}

// ends returns until when all pods of the work run at most if they start now. Zero: not all of them promise it.
func (w *Work) ends() time.Time {
	longest := time.Duration(0)
	for _, pod := range w.Pods {
		runtime := podgroup.MaxRuntime(pod, w.Group)
		if runtime == 0 {
			return time.Time{}
		}
		longest = max(longest, runtime)
	}
	if longest == 0 {
		return time.Time{}
	}
	return w.began.Add(longest)
}

// dividePods assigns the pods to the parts of the work.
func (w *Work) dividePods(s standing) {
	all := w.Problem.Pods
	w.have, w.all = w.Problem.Have, all
	keep := func(is func(leaf *gang.Group) bool) map[string][]placement.Pod {
		kept := make(map[string][]placement.Pod, len(all))
		for name, pods := range all {
			if is(w.Tree.Group(name)) {
				kept[name] = pods
			}
		}
		return kept
	}
	switch w.Task {
	case LostUnit:
		w.Problem.Pods = keep(func(leaf *gang.Group) bool {
			for group := leaf; group != nil; group = group.Parent() {
				if s.lost.Has(group.Name()) {
					return true
				}
			}
			return false
		})
	case SurplusUnit:
		w.Problem.Pods = keep(func(leaf *gang.Group) bool { return !s.whole(leaf) })
	case SurplusSingle:
		w.Problem.Pods = keep(s.whole)
	case Refill:
		w.divideRefill(s, all)
	}
}

// divideRefill separates units from single pods, and leaves out groups that already have their minimum.
func (w *Work) divideRefill(s standing, all map[string][]placement.Pod) {
	bound := w.Problem.Have
	w.Singles = w.Problem
	w.Singles.Have, w.Singles.Pods, w.Lacks = gang.Counts{}, map[string][]placement.Pod{}, gang.Counts{}
	w.Problem.Have = maps.Clone(bound)
	for _, leaf := range w.Tree.Leaves() {
		name := leaf.Name()
		w.Singles.Have[name] = max(bound[name], leaf.Min())
		if !s.admitted(leaf) {
			continue
		}
		w.Problem.Have[name] = w.Singles.Have[name]
		if lacks := leaf.Min() - bound[name]; lacks > 0 {
			w.Lacks[name] = lacks
			w.Singles.Pods[name] = firstOfEach(all[name], lacks)
		}
	}
	if s.torn == nil {
		return
	}
	// The tree is satisfied: only partially bound sub-groups are completed, and no new one is started.
	pods := map[string][]placement.Pod{}
	for name := range all {
		for group := w.Tree.Group(name); group != nil; group = group.Parent() {
			if s.torn[group] {
				pods[name] = all[name]
			}
		}
	}
	w.Problem.Pods = pods
}

// firstOfEach returns the first n pods of each class, in order.
func firstOfEach(pods []placement.Pod, n int) []placement.Pod {
	seen := map[int]int{}
	var out []placement.Pod
	for _, p := range pods {
		if seen[p.Class] < n {
			seen[p.Class]++
			out = append(out, p)
		}
	}
	return out
}

// Limit returns the placements of Singles without those beyond the minimums; surplus pods are placed in later cycles.
func (w *Work) Limit(placements []placement.Placement) []placement.Placement {
	taken := gang.Counts{}
	var out []placement.Placement
	for _, p := range placements {
		if taken[p.Leaf] < w.Lacks[p.Leaf] {
			taken[p.Leaf]++
			out = append(out, p)
		}
	}
	return out
}

// Reclass changes the classes of the waiting pods. classify receives the pods with their current classes, and returns
// the class of each pod and, by class, one pod of it.
func (w *Work) Reclass(classify func(pods []*corev1.Pod, classes []int) (of []int, first []*corev1.Pod)) {
	var lists [][]placement.Pod
	for _, problem := range []placement.Problem{w.Problem, w.Singles} {
		for _, leaf := range slices.Sorted(maps.Keys(problem.Pods)) {
			lists = append(lists, problem.Pods[leaf])
		}
	}
	pods, classes := make([]*corev1.Pod, 0, len(w.Pods)), make([]int, 0, len(w.Pods))
	at := make([]int, len(w.Pods)) // by index of the pod: 1 + its index in pods; 0: not in it
	for _, list := range lists {
		for i := range list {
			if p := &list[i]; at[p.Index] == 0 {
				pods, classes = append(pods, w.Pods[p.Index]), append(classes, p.Class)
				at[p.Index] = len(pods)
			}
		}
	}
	of, first := classify(pods, classes)
	for _, list := range lists {
		for i := range list {
			list[i].Class = of[at[list[i].Index]-1]
		}
	}
	w.Classes = first
}

// Leaves returns, by class index, the leaf of the class's pods. Pods for which room is reserved share no class with
// pods of another leaf; for other classes the leaf is that of one of their pods.
func (w *Work) Leaves() []string {
	leaves := make([]string, len(w.Classes))
	for _, problem := range []placement.Problem{w.Problem, w.Singles} {
		for _, leaf := range slices.Sorted(maps.Keys(problem.Pods)) {
			for _, p := range problem.Pods[leaf] {
				leaves[p.Class] = leaf
			}
		}
	}
	return leaves
}
