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
	"github.com/muster-project/muster/pkg/gang"
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

// judgement is why pods cannot be placed.
type judgement struct {
	reason v2alpha2.Reason
	text   string // "": the reasons of the nodes say it
	nodes  string // the reasons of the nodes that text contains
}

// together determines why the minimum of a gang, or of a unit above it, cannot be placed. The numbers of each leaf or
// class alone are not sufficient for that: classes may need the same nodes, a leaf may be one that the gang can do
// without, and the room may be in several domains.
type together struct {
	placement.Problem
	known     *knownCapacities
	who       string     // the name of the root in texts
	whole     *gang.Tree // of which the names of the other groups are paths
	more      int        // further pods like the one that the minimum lacks, each of which would be placed by itself
	classes   []int
	resources []corev1.ResourceName
	requests  map[int][]int64            // by class and resource
	blocked   []placement.LeafShortfall  // the first of Shortfall.Leaves
	levels    []placement.LevelShortfall // Shortfall.Levels
	waiting   map[string][]need          // by leaf
	pods      string                     // how many the minimum lacks
	// least is what the minimum needs at least for pods of each of the subsets: by subset and resource. All classes
	// come first.
	subsets   [][]int
	least     [][]asked
	leastPods int // how many pods the minimum lacks
}

func newTogether(p placement.Problem, known *knownCapacities, blocked []placement.LeafShortfall,
	levels []placement.LevelShortfall) *together {
	classes := podsPerClass(p)
	if len(classes) > maxClasses {
		p = known.mergeClasses(p, blocked)
		classes = podsPerClass(p)
	}
	least := p.Tree.MissingPods(p.Have)
	return &together{Problem: p, known: known, who: pathOf(p.Tree, ""), whole: p.Tree, classes: slices.Sorted(maps.Keys(classes)),
		blocked: blocked, levels: levels, waiting: waitingByClass(p), leastPods: least, pods: message.Count(least, "pod")}
}

// measure determines how much the minimum needs, before it is compared with what a world has.
func (t *together) measure(w Imagined) {
	t.resources, t.requests = w.Resources(), map[int][]int64{}
	for _, class := range t.classes {
		t.requests[class] = w.Uses(class)
	}
	t.subsets = subsetsOf(t.classes, len(t.classes) <= maxSubsetClasses && len(t.Tree.Leaves()) <= maxSubsetLeaves)
	for _, some := range t.subsets {
		ofSubset := make([]asked, len(t.resources))
		for k := range ofSubset {
			ofSubset[k] = leastAsked(t.Tree.Root(), t.Have, t.waiting, func(class int) int64 {
				if slices.Contains(some, class) {
					return t.requests[class][k]
				}
				return 0
			})
		}
		t.least = append(t.least, ofSubset)
	}
}

// mergeClasses returns the problem with at most maxClasses classes: of classes that request the same there is only the
// first, beside those that nodes have refused. What else distinguishes them is not seen then.
func (k *knownCapacities) mergeClasses(p placement.Problem, blocked []placement.LeafShortfall) placement.Problem {
	merged, alike := map[int]int{}, map[string]int{}
	for _, l := range blocked {
		if l.Refusal != nil {
			merged[l.Class], alike[fmt.Sprint(k.Uses(l.Class))] = l.Class, l.Class
		}
	}
	all, last := p.Pods, 0
	p.Pods = make(map[string][]placement.Pod, len(all))
	for _, leaf := range p.Tree.Leaves() {
		for _, pod := range all[leaf.Name()] {
			class, known := merged[pod.Class]
			if !known {
				uses := fmt.Sprint(k.Uses(pod.Class))
				class, known = alike[uses]
				switch {
				case known:
				case len(alike) < maxClasses-maxLeaves:
					class, alike[uses] = pod.Class, pod.Class
				default:
					class = last
				}
				merged[pod.Class] = class
			}
			pod.Class, last = class, class
			p.Pods[leaf.Name()] = append(p.Pods[leaf.Name()], pod)
		}
	}
	return p
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

// judge returns the reason by the definitions in docs/events.md, and a text about it.
func (t *together) judge() judgement {
	if claims := t.neededClasses(func(r ResourceCapacity) bool { return r.hopeless() == v2alpha2.ReasonClaimsNotReady }); claims != nil {
		return t.explainHopeless(claims, v2alpha2.ReasonClaimsNotReady)
	}
	if hopeless := t.neededClasses(func(r ResourceCapacity) bool { return r.hopeless() != "" }); hopeless != nil {
		return t.explainHopeless(hopeless, v2alpha2.ReasonNoNodeMatches)
	}
	reason, text := t.judgeRoom()
	return judgement{reason: reason, text: text}
}

// judgeRoom does the same for a minimum that nodes would take if they were large, empty and open enough.
func (t *together) judgeRoom() (v2alpha2.Reason, string) {
	if t.holdsMinimum(true, true) == no {
		return v2alpha2.ReasonTooLarge, t.tooLargeText()
	}
	now := t.holdsMinimum(false, false)
	if now == yes { // other rules keep the pods out: the reasons of the nodes say which
		if closed := t.closedText(true); closed != "" && t.openingHelps() {
			return v2alpha2.ReasonNodesUnavailable, closed
		}
		return v2alpha2.ReasonFragmented, ""
	}
	if closed := t.closedText(true); closed != "" && t.holdsMinimum(false, true) == yes {
		return v2alpha2.ReasonNodesUnavailable, closed + clauses + t.besideText(true)
	}
	if closed := t.closedText(false); closed != "" && t.holdsMinimum(true, false) == no {
		return v2alpha2.ReasonNodesUnavailable, closed + clauses + t.besideText(false)
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
	switch text := t.piecesText(); {
	case text != "":
		return v2alpha2.ReasonFragmented, text
	case len(t.levels) > 0:
		return v2alpha2.ReasonTopologyUnavailable, "" // describeLevels says the rest
	case now == unknown:
		return v2alpha2.ReasonFragmented, ""
	case hasLevels(t.Problem):
		return v2alpha2.ReasonTopologyUnavailable, fmt.Sprintf("enough is free in all, but the %s that %s needs do not fit in the domains of the topology levels that it requires", t.pods, t.who)
	}
	return v2alpha2.ReasonFragmented, fmt.Sprintf("enough is free in all, but the %s that %s needs do not fit together on what is free on single nodes", t.pods, t.who)
}

// piecesText describes the first leaf for whose pods the free room is enough, but not in pieces of their size, or of
// which other resource there is not enough. "": there is none.
func (t *together) piecesText() string {
	for _, l := range t.blocked {
		if l.Refusal == nil {
			continue
		}
		text := t.known.ResourceCapacity(l.Class).piecesText(l.Need)
		if text == "" {
			continue
		}
		free, _ := t.world(false, false).Room([]int{l.Class})
		for k, name := range t.resources {
			if need := t.requests[l.Class][k] * int64(l.Need); need > free[k] && name != corev1.ResourcePods {
				text = fmt.Sprintf("needs %s %s for %s, %s are free", message.Quantity(name, need), name,
					message.Count(l.Need, "pod"), message.Quantity(name, free[k]))
				break
			}
		}
		return t.path(l.Leaf) + " " + text
	}
	return ""
}

// path returns the name of a group in texts.
func (t *together) path(group string) string {
	if group == "" {
		return t.who
	}
	return pathOf(t.whole, group)
}

// world returns the cluster as it is or empty, without or with the closed nodes.
func (t *together) world(empty, open bool) Imagined { return t.known.imagine(t.classes, empty, open) }

// neededClasses returns the classes of a kind, if the minimum is impossible without them. nil: it is not.
func (t *together) neededClasses(isOf func(ResourceCapacity) bool) []int {
	var of []int
	for _, class := range t.classes {
		if isOf(t.known.ResourceCapacity(class)) {
			of = append(of, class)
		}
	}
	if of == nil || placement.MayFit(t.Problem, func(class int) int {
		if slices.Contains(of, class) {
			return 0
		}
		return math.MaxInt
	}) {
		return nil
	}
	return of
}

// explainHopeless says why one of the classes fits no node for this reason, if possible with the reasons of the nodes.
func (t *together) explainHopeless(classes []int, reason v2alpha2.Reason) (first judgement) {
	for _, class := range classes {
		owner, nodes := t.ownerOf(class)
		if j := t.known.ResourceCapacity(class).explainHopeless(owner, nodes); j.reason == reason && (first.reason == "" || nodes != "") {
			first = j
		}
		if first.nodes != "" {
			break
		}
	}
	return first
}

// ownerOf names the leaf whose pods of a class nodes have refused, and returns the reasons of these; if there is none,
// the leaves that have pods of the class.
func (t *together) ownerOf(class int) (owner, nodes string) {
	for _, l := range t.blocked {
		if l.Refusal != nil && l.Class == class {
			return t.path(l.Leaf), listFilterReasons(l.Refusal)
		}
	}
	return t.leavesOf([]int{class}), ""
}

// tooLargeText says what the nodes lack even if they are empty and open.
func (t *together) tooLargeText() string {
	everything := t.world(true, true)
	isOversized := func(r ResourceCapacity) bool { return r.PerPod > r.withUnavailable().Largest }
	if classes := t.neededClasses(isOversized); classes != nil {
		r := t.known.ResourceCapacity(classes[0])
		owner, _ := t.ownerOf(classes[0])
		return fmt.Sprintf("a pod of %s needs %s %s, the largest node it could use has %s", owner,
			message.Quantity(r.Resource, r.PerPod), r.Resource, message.Quantity(r.Resource, r.withUnavailable().Largest))
	}
	if i, k := t.lackingSubset(everything); i >= 0 {
		sum, _ := everything.Room(t.subsets[i])
		return fmt.Sprintf("%s, the nodes that they may use have %s in all", t.needText(i, k), message.Quantity(t.resources[k], sum[k]))
	}
	opened := func(class int) ResourceCapacity { return t.known.ResourceCapacity(class).withUnavailable() }
	if text := t.emptyText("the nodes", opened); text != "" {
		return text
	}
	if places := everything.MostPods(); places < t.leastPods {
		return fmt.Sprintf("%s needs %s, and the nodes that they may use would hold only %d of them if they were empty", t.who, t.pods, places)
	}
	if text := t.smallDomainsText(everything); text != "" {
		return text
	}
	return fmt.Sprintf("the %s that %s needs would not fit together on the nodes that they may use if these were empty", t.pods, t.who)
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
	return fmt.Sprintf("%s needs %s, and %s that they may use would hold only %s if they were empty", t.who, t.pods, nodes, strings.Join(rooms, ", "))
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
		return fmt.Sprintf("the %s that %s needs would not fit on the other nodes that they may use if these were empty", t.pods, t.who)
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
	return fmt.Sprintf("with the room there, the %s that %s needs fit", t.pods, t.who)
}

// needText describes how much of a resource the minimum needs at least for pods of a subset of the classes.
func (t *together) needText(subset, resource int) string {
	least, name := t.least[subset][resource], t.resources[resource]
	who, pods := t.who+" needs", message.Count(least.pods, "pod")
	if subset > 0 {
		who += " for " + t.leavesOf(t.subsets[subset])
	}
	if t.more > 0 {
		pods = "each of " + message.Count(t.more+1, "pod")
	}
	if name == corev1.ResourcePods {
		return fmt.Sprintf("%s places for %s", who, pods)
	}
	return fmt.Sprintf("%s %s %s for %s", who, message.Quantity(name, least.amount), name, pods)
}

// leavesOf names the leaves that have waiting pods of the classes.
func (t *together) leavesOf(classes []int) string {
	var names []string
	for _, leaf := range t.Tree.Leaves() {
		if slices.ContainsFunc(t.waiting[leaf.Name()], func(n need) bool { return slices.Contains(classes, n.class) }) {
			names = append(names, t.path(leaf.Name()))
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
	if t.subsets == nil {
		t.measure(w)
	}
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
	isExact := len(t.classes) == 1 && !t.known.AreApart(t.classes[0])
	if isExact && !hasLevels(t.Problem) { // no world is needed, which is a walk over the nodes
		if placement.MayFit(t.Problem, func(class int) int { return t.known.ResourceCapacity(class).slots(empty, open) }) {
			return yes
		}
		return no
	}
	w := t.world(empty, open)
	if !placement.MayFit(t.Problem, func(class int) int { return w.Capacity(class).Pods }) {
		return no
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
func (t *together) openingHelps() bool {
	present, open, refused := t.world(false, false), t.world(false, true), map[int]bool{}
	for _, l := range t.blocked {
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
	plan, short := placement.Minimum(p, w, placement.Budget{Attempts: 16, Placements: placements, Expired: spent, Unexplained: true})
	if short == nil {
		w.Undo(len(plan))
	}
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
