// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
)

const (
	// maxClasses is the number of classes up to which the reason of a gang is determined for all of them together,
	// maxSingleClasses that up to which each of them is examined, and maxSubsetClasses and maxSubsetLeaves those up to
	// which every subset is.
	maxClasses, maxSingleClasses, maxSubsetClasses, maxSubsetLeaves = 64, 16, 6, 64
	// maxQuestions bounds the questions of one search, in addition to four for each pod of the minimum.
	maxQuestions = 20_000
	// maxTried is the number of nodes for a class up to which all of them are tried for each pod.
	maxTried = 16
)

// together determines why the minimum of a gang cannot be placed. The numbers of each leaf or class alone are not
// sufficient for that: classes may need the same nodes, a leaf may be one that the gang can do without, and the room
// may be in several domains.
type together struct {
	placement.Problem
	known     *knownCapacities
	classes   []int
	resources []corev1.ResourceName
	requests  map[int][]int64            // by class and resource
	levels    []placement.LevelShortfall // Shortfall.Levels
	waiting   map[string][]need          // by leaf
	pods      string                     // how many the minimum lacks
	// least is what the minimum needs at least for pods of each of the subsets: by subset and resource. All classes
	// come first.
	subsets   [][]int
	least     [][]asked
	leastPods int                // how many pods the minimum lacks
	worlds    map[state]Imagined // see world
}

// state is whether the nodes are empty, and whether the closed ones are open.
type state struct{ empty, open bool }

// newTogether returns nil if the gang has too many classes.
func newTogether(p placement.Problem, known *knownCapacities) *together {
	t := &together{Problem: p, known: known, worlds: map[state]Imagined{}, requests: map[int][]int64{}, waiting: waitingByClass(p),
		leastPods: p.Tree.MissingPods(p.Have)}
	t.pods = message.Count(t.leastPods, "pod")
	if t.classes = slices.Sorted(maps.Keys(podsPerClass(p))); len(t.classes) > maxClasses {
		return nil
	}
	everything := t.world(true, true)
	t.resources = everything.Resources()
	for _, class := range t.classes {
		t.requests[class] = everything.Uses(class)
	}
	t.subsets = subsetsOf(t.classes, len(t.classes) <= maxSubsetClasses && len(p.Tree.Leaves()) <= maxSubsetLeaves)
	for _, some := range t.subsets {
		ofSubset := make([]asked, len(t.resources))
		for k := range ofSubset {
			ofSubset[k] = leastAsked(p.Tree.Root(), p.Have, t.waiting, func(class int) int64 {
				if slices.Contains(some, class) {
					return t.requests[class][k]
				}
				return 0
			})
		}
		t.least = append(t.least, ofSubset)
	}
	return t
}

// subsetsOf returns all of the classes, each of them unless they are many, and, if every subset is wanted, the others,
// without duplicates.
func subsetsOf(classes []int, every bool) [][]int {
	out := [][]int{classes}
	if len(classes) == 1 || len(classes) > maxSingleClasses {
		return out
	}
	for _, c := range classes {
		out = append(out, []int{c})
	}
	if !every {
		return out
	}
	for mask := range 1 << len(classes) {
		var some []int
		for i, c := range classes {
			if mask&(1<<i) != 0 {
				some = append(some, c)
			}
		}
		if len(some) > 1 && len(some) < len(classes) {
			out = append(out, some)
		}
	}
	return out
}

// judgeTogether returns the reason by the definitions in docs/events.md, and a text about it. "": the reasons of the
// nodes say it.
func (t *together) judgeTogether(blocked []placement.LeafShortfall) (v2alpha2.Reason, string) {
	for _, reason := range []v2alpha2.Reason{v2alpha2.ReasonClaimsNotReady, v2alpha2.ReasonNoNodeMatches} {
		if hopeless := t.hopelessClasses(reason); hopeless != nil {
			return reason, t.hopelessText(reason, hopeless)
		}
	}
	if t.holdsMinimum(true, true) == no {
		return v2alpha2.ReasonTooLarge, t.tooLargeText()
	}
	now := t.holdsMinimum(false, false)
	if now == yes { // other rules keep the pods out: the reasons of the nodes say which
		if closed := t.closedText(true); closed != "" && t.openingHelps(blocked) {
			return v2alpha2.ReasonNodesUnavailable, closed
		}
		return v2alpha2.ReasonFragmented, ""
	}
	if closed := t.closedText(true); closed != "" && t.holdsMinimum(false, true) == yes {
		return v2alpha2.ReasonNodesUnavailable, closed + "; " + t.besideText(true)
	}
	if closed := t.closedText(false); closed != "" && t.holdsMinimum(true, false) == no {
		return v2alpha2.ReasonNodesUnavailable, closed + "; " + t.besideText(false)
	}
	present := t.world(false, false)
	if i, k := t.lackingSubset(present); i >= 0 {
		name := t.resources[k]
		sum, largest := present.Room(t.subsets[i])
		r := t.known.ResourceCapacity(t.subsets[i][0])
		if len(t.subsets[i]) > 1 || r.Resource != name {
			r = ResourceCapacity{}
		}
		r.Resource, r.PerPod, r.LargestFree = name, t.smallestRequest(i, k), largest[k]
		return insufficientReason(name), t.needText(i, k) + ", " + r.freeText(sum[k], t.known.HeldByOthers(t.subsets[i], name))
	}
	text := describeFragmentation(t.Tree, blocked, t.known)
	switch {
	case text != "":
		return v2alpha2.ReasonFragmented, text
	case len(t.levels) > 0:
		return v2alpha2.ReasonTopologyUnavailable, "" // describeLevels says the rest
	case now == unknown:
		return v2alpha2.ReasonFragmented, ""
	case hasLevels(t.Problem):
		return v2alpha2.ReasonTopologyUnavailable, fmt.Sprintf("enough is free in all, but the %s that the gang needs do not fit in the domains of the topology levels that it requires", t.pods)
	}
	return v2alpha2.ReasonFragmented, fmt.Sprintf("enough is free in all, but the %s that the gang needs do not fit together on what is free on single nodes", t.pods)
}

// world returns the cluster as it is or empty, without or with the closed nodes. Nothing is placed in it unless the
// minimum fits.
func (t *together) world(empty, open bool) Imagined {
	w, known := t.worlds[state{empty, open}]
	if !known {
		w = t.known.Imagine(t.classes, empty, open)
		t.worlds[state{empty, open}] = w
	}
	return w
}

// hopelessClasses returns the classes that no node could run, for this reason or a worse one, if the minimum is
// impossible without them. nil: it is not.
func (t *together) hopelessClasses(reason v2alpha2.Reason) []int {
	var hopeless []int
	for _, class := range t.classes {
		if severity(t.known.ResourceCapacity(class).reasonFor(1)) <= severity(reason) {
			hopeless = append(hopeless, class)
		}
	}
	if hopeless == nil || placement.MayFit(t.Problem, func(class int) int {
		if slices.Contains(hopeless, class) {
			return 0
		}
		return math.MaxInt
	}) {
		return nil
	}
	return hopeless
}

// hopelessText says why the first of the classes with this reason fits no node.
func (t *together) hopelessText(reason v2alpha2.Reason, classes []int) string {
	for _, class := range classes {
		r := t.known.ResourceCapacity(class)
		if r.reasonFor(1) != reason {
			continue
		}
		if text := r.explainHopeless(reason, "the pods of "+t.leavesOf([]int{class})); text != "" {
			return text
		}
	}
	return "no node can run the pods of " + t.leavesOf(classes)
}

// tooLargeText says what the nodes lack even if they are empty and open.
func (t *together) tooLargeText() string {
	everything := t.world(true, true)
	if i, k := t.lackingSubset(everything); i >= 0 {
		sum, _ := everything.Room(t.subsets[i])
		return fmt.Sprintf("%s, the nodes that they may use have %s in all", t.needText(i, k), message.Quantity(t.resources[k], sum[k]))
	}
	opened := func(class int) ResourceCapacity { return t.known.ResourceCapacity(class).withUnavailable() }
	if text := t.emptyText("the nodes", opened); text != "" {
		return text
	}
	if places := everything.MostPods(); places < t.leastPods {
		return fmt.Sprintf("the gang needs %s, and the nodes that they may use would hold only %d of them if they were empty", t.pods, places)
	}
	if text := t.smallDomainsText(everything); text != "" {
		return text
	}
	return fmt.Sprintf("the %s that the gang needs would not fit together on the nodes that they may use if these were empty", t.pods)
}

// emptyText describes the classes of which the nodes would not hold all pods even if they were empty. "": they would
// hold the minimum as far as the numbers of each class tell.
func (t *together) emptyText(nodes string, capacity func(class int) ResourceCapacity) string {
	if placement.MayFit(t.Problem, func(class int) int { return capacity(class).Slots }) {
		return ""
	}
	waiting := podsPerClass(t.Problem)
	var rooms []string
	for _, class := range t.classes {
		r := capacity(class)
		if r.Slots >= waiting[class] || len(rooms) == maxLeaves {
			continue
		}
		text := fmt.Sprintf("%s of %s %s", message.Count(r.Slots, "pod"), message.Quantity(r.Resource, r.PerPod), r.Resource)
		if r.Apart != "" {
			text += fmt.Sprintf(" (their podAntiAffinity over %s excludes more)", r.Apart)
		}
		rooms = append(rooms, text)
	}
	if rooms == nil {
		return ""
	}
	return fmt.Sprintf("the gang needs %s, and %s that they may use would hold only %s if they were empty", t.pods, nodes, strings.Join(rooms, ", "))
}

// besideText says why the nodes beside the closed ones are not enough: as they are, or even if they were empty.
func (t *together) besideText(free bool) string {
	empty := t.world(true, false)
	if i, k := t.lackingSubset(empty); i >= 0 {
		sum, _ := empty.Room(t.subsets[i])
		return fmt.Sprintf("%s, the other nodes that they may use have %s in all", t.needText(i, k), message.Quantity(t.resources[k], sum[k]))
	}
	if text := t.emptyText("the other nodes", t.known.ResourceCapacity); text != "" {
		return text
	}
	if !free {
		return fmt.Sprintf("the %s that the gang needs would not fit on the other nodes that they may use if these were empty", t.pods)
	}
	present := t.world(false, false)
	i, k := t.lackingSubset(present)
	if i < 0 && len(t.classes) == 1 {
		k = slices.Index(t.resources, t.known.ResourceCapacity(t.classes[0]).Resource)
	}
	if k >= 0 && t.least[max(0, i)][k].amount > 0 {
		sum, largest := present.Room(t.subsets[max(0, i)])
		pieces := largestText(t.resources[k], largest[k], t.smallestRequest(max(0, i), k))
		if i >= 0 || pieces != "" {
			return fmt.Sprintf("%s, the other nodes that they may use have %s free%s", t.needText(max(0, i), k), message.Quantity(t.resources[k], sum[k]), pieces)
		}
	}
	return fmt.Sprintf("with the room there, the %s that the gang needs fit", t.pods)
}

// needText describes how much of a resource the minimum needs at least for pods of a subset of the classes.
func (t *together) needText(subset, resource int) string {
	least, name := t.least[subset][resource], t.resources[resource]
	who := "the gang needs"
	if subset > 0 {
		who = "the gang needs for " + t.leavesOf(t.subsets[subset])
	}
	if name == corev1.ResourcePods {
		return fmt.Sprintf("%s places for %s", who, message.Count(least.pods, "pod"))
	}
	return fmt.Sprintf("%s %s %s for %s", who, message.Quantity(name, least.amount), name, message.Count(least.pods, "pod"))
}

// leavesOf names the leaves that have waiting pods of the classes.
func (t *together) leavesOf(classes []int) string {
	var names []string
	for _, leaf := range t.Tree.Leaves() {
		if slices.ContainsFunc(t.waiting[leaf.Name()], func(n need) bool { return slices.Contains(classes, n.class) }) {
			names = append(names, pathOf(t.Tree, leaf.Name()))
		}
	}
	return message.ListNames(names, maxLeaves, len(names), ", ")
}

// closedText describes the unavailable nodes with room for pods of the classes that lack it, or of all classes if none
// does by itself; with their free room, or as if they were empty. "": there are none.
func (t *together) closedText(free bool) string {
	count := podsPerClass(t.Problem)
	var lacking, all []string
	for _, class := range t.classes {
		r := t.known.ResourceCapacity(class)
		slots := r.Slots
		if free {
			slots = r.SlotsNow
		}
		r.Unavailable = slices.DeleteFunc(slices.Clone(r.Unavailable), func(u UnavailableNodes) bool {
			return free && u.SlotsNow == 0 || u.Slots == 0
		})
		text := r.unavailable()
		if text == "" || slices.Contains(all, text) {
			continue
		}
		all = append(all, text)
		if slots < count[class] {
			lacking = append(lacking, text)
		}
	}
	if len(lacking) > 0 {
		all = lacking
	}
	return strings.Join(all[:min(len(all), maxReasons)], clauses)
}

// lackingSubset returns a subset of the classes of which the minimum needs more of a resource than the nodes that they
// may use have, and the resource, extended resources first. Negative: there is none.
func (t *together) lackingSubset(w Imagined) (subset, resource int) {
	for _, extended := range []bool{true, false} {
		for i, some := range t.subsets {
			sum, _ := w.Room(some)
			for k, name := range t.resources {
				if extended == (insufficientReason(name) == v2alpha2.ReasonInsufficientGPUs) && t.least[i][k].amount > sum[k] {
					return i, k
				}
			}
		}
	}
	return -1, 0
}

// smallestRequest returns what the smallest pod of a subset of the classes requests of a resource, without those that
// request none.
func (t *together) smallestRequest(subset, resource int) int64 {
	smallest := int64(math.MaxInt64)
	for _, class := range t.subsets[subset] {
		if request := t.requests[class][resource]; request > 0 {
			smallest = min(smallest, request)
		}
	}
	return smallest
}

// answer is the answer of a search that may end without a proof.
type answer int

const (
	unknown answer = iota
	yes
	no
)

// holdsMinimum reports whether the nodes could hold the minimum: as they are or empty, without or with the closed ones.
func (t *together) holdsMinimum(empty, open bool) answer {
	w := t.world(empty, open)
	if !placement.MayFit(t.Problem, func(class int) int { return w.Capacity(class).Pods }) {
		return no
	}
	isExact := len(t.classes) == 1 && !w.AreApart(t.classes[0])
	if isExact && !hasLevels(t.Problem) {
		return yes
	}
	if i, _ := t.lackingSubset(w); i >= 0 {
		return no
	}
	if w.MostPods() < t.leastPods {
		return no
	}
	problem := t.Problem
	if empty {
		problem.Nodes = nil // pods that run could be restarted in another domain
	}
	short := t.search(problem, w, 1024)
	switch {
	case short == nil:
		return yes
	case short.Exhausted && short.Attempts == 0, isExact && !short.Cut:
		return no
	case slices.ContainsFunc(t.classes, func(class int) bool { return w.Capacity(class).Nodes > maxTried }):
		return unknown
	}
	switch short = t.search(problem, onAllNodes{w}, maxQuestions); {
	case short == nil:
		return yes
	case short.Exhausted:
		return no
	}
	return unknown
}

// openingHelps reports whether the minimum would fit, by the numbers of each class, with the closed nodes and without
// the classes that have room and that other rules refuse. false: no class is refused like that.
func (t *together) openingHelps(blocked []placement.LeafShortfall) bool {
	present, open, refused := t.world(false, false), t.world(false, true), map[int]bool{}
	for _, l := range blocked {
		if listFilterReasons(l.Refusal) != "" && present.Capacity(l.Class).Pods > 0 {
			refused[l.Class] = true
		}
	}
	return len(refused) > 0 && placement.MayFit(t.Problem, func(class int) int {
		if refused[class] {
			return 0
		}
		return open.Capacity(class).Pods
	})
}

// search returns why the nodes do not hold the minimum, as far as a search without a limit of time tells. nil: they do.
func (t *together) search(p placement.Problem, w placement.World, placements int) *placement.Shortfall {
	questions, most := 0, maxQuestions+4*t.leastPods
	spent := func() bool {
		questions++
		return questions > most
	}
	_, short := placement.Minimum(p, w, placement.Budget{Attempts: 16, Placements: placements, Expired: spent, Unexplained: true})
	return short
}

// onAllNodes is a cluster of which all nodes are tried for each pod, as if pods of each class depended on others.
type onAllNodes struct{ Imagined }

// Kind implements placement.World.
func (w onAllNodes) Kind(class int) placement.Kind {
	if w.Capacity(class).Nodes == 0 {
		return placement.Independent
	}
	return placement.Dependent
}
