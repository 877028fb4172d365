package podgroup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
)

// Explain turns a shortfall into one dominant reason and one sentence: which group of the tree lacks how much, and what
// the nodes say, by number of nodes.
func Explain(p placement.Problem, world Capacities, short *placement.Shortfall) Refusal {
	known := &knownCapacities{Capacities: world, seen: map[int]ResourceCapacity{}}
	blocked := blocking(short.Leaves)
	var parts []string
	first, told := hopeless(p.Tree, blocked, known)
	if first != "" {
		parts = append(parts, first)
	}
	for i, g := range short.Groups {
		if i == 0 {
			parts = append(parts, fmt.Sprintf("%s: %d of the %d children it needs can be placed", pathOf(p.Tree, g.Group), g.Can, g.Need))
		} else {
			parts = append(parts, fmt.Sprintf("%s: %d of %d", pathOf(p.Tree, g.Group), g.Can, g.Need))
		}
	}
	for i, l := range blocked {
		parts = append(parts, describe(p.Tree, l))
		// Leaves next to each other often hear the same from the nodes: that is said once, after the last of them.
		said := nodesSay(l.Refusal)
		if said == "" || said == told {
			continue
		}
		if i == len(blocked)-1 || nodesSay(blocked[i+1].Refusal) != said {
			parts = append(parts, said)
		}
	}
	switch {
	case short.Cut:
		parts = append(parts, fmt.Sprintf("the search was cut short after %s and goes on", message.Count(short.Attempts, "attempt")))
	case !short.Exhausted:
		parts = append(parts, fmt.Sprintf("the search ended after %s", message.Count(short.Attempts, "attempt")))
	}
	reason := dominant(blocked, known)
	if first == "" && reason != v2alpha2.ReasonWaitingForPods {
		// Each leaf may have room enough by itself, and all of them together have not.
		if whole, text := judgeWhole(p, known); whole != "" {
			parts = append([]string{text}, parts...)
			if severity(whole) < severity(reason) {
				reason = whole
			}
		}
	}
	return Refusal{Reason: reason, Message: message.Truncate(strings.Join(parts, "; "), message.MaxCondition)}
}

// hopeless names a leaf whose pods no more nodes of the kinds there are would help: none matches them, or one pod asks
// for more than the largest has. That is told first, since the list of groups may be long. told is what nodes say as part of
// it. "": there is no such leaf.
func hopeless(tree *gang.Tree, leaves []placement.LeafShortfall, world Capacities) (text, told string) {
	for _, l := range leaves {
		if l.Refusal == nil {
			continue
		}
		r := world.ResourceCapacity(l.Class)
		if r.Nodes == 0 {
			told = nodesSay(l.Refusal)
			text = fmt.Sprintf("no node matches a pod of %s", pathOf(tree, l.Leaf))
			if told != "" {
				text += ": " + told
			}
			return text, told
		}
		if r.PerPod > r.Largest && text == "" {
			text = fmt.Sprintf("a pod of %s needs %s %s, the largest node it could use has %s",
				pathOf(tree, l.Leaf), message.Quantity(r.Resource, r.PerPod), r.Resource, message.Quantity(r.Resource, r.Largest))
		}
	}
	return text, ""
}

// judgeWhole says whether the pods that the minimum lacks ask for more of a resource than is free, whichever children are
// taken. "": they do not.
func judgeWhole(p placement.Problem, known *knownCapacities) (v2alpha2.Reason, string) {
	room := known.ResourceCapacity
	var order []corev1.ResourceName
	for _, leaf := range p.Tree.Leaves() {
		for _, pod := range p.Pods[leaf.Name()] {
			if name := room(pod.Class).Resource; !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
	}
	for _, name := range order {
		free, total := int64(0), int64(0)
		for _, r := range known.seen {
			if r.Resource == name { // some classes may use more nodes than others
				free, total = max(free, r.Free), max(total, r.Total)
			}
		}
		asked := leastAsked(p.Tree.Root(), p, name, room)
		what := fmt.Sprintf("the gang needs %s %s for %s", message.Quantity(name, asked.amount), name, message.Count(asked.pods, "pod"))
		switch {
		case asked.amount > total:
			return v2alpha2.ReasonTooLarge, fmt.Sprintf("%s, the nodes it could use have %s in all", what, message.Quantity(name, total))
		case asked.amount > free:
			return insufficient(name), fmt.Sprintf("%s, %s are free", what, message.Quantity(name, free))
		}
	}
	return "", ""
}

// asked is what a number of pods ask for of one resource.
type asked struct {
	amount  int64
	pods    int
	missing int // further pods, which do not exist yet
}

// leastAsked returns the least that a group can still ask for of a resource until it is satisfied: of its children, those
// that lack no pods and ask for least.
func leastAsked(g *gang.Group, p placement.Problem, name corev1.ResourceName, room func(class int) ResourceCapacity) asked {
	var each []asked
	take := g.Min()
	if g.IsLeaf() {
		take -= p.Have[g.Name()]
		for _, pod := range p.Pods[g.Name()] {
			one := asked{}
			if r := room(pod.Class); r.Resource == name && r.PerPod > 0 {
				one = asked{amount: r.PerPod, pods: 1}
			}
			each = append(each, one)
		}
	}
	for _, child := range g.Children() {
		each = append(each, leastAsked(child, p, name, room))
	}
	slices.SortStableFunc(each, func(a, b asked) int {
		return cmp.Or(cmp.Compare(a.missing, b.missing), cmp.Compare(a.amount, b.amount))
	})
	sum := asked{missing: max(0, take-len(each))}
	for _, a := range each[:min(max(take, 0), len(each))] {
		sum.amount, sum.pods, sum.missing = sum.amount+a.amount, sum.pods+a.pods, sum.missing+a.missing
	}
	return sum
}

// ExplainSurplus says why nothing above the minimum was placed. Every unit above it (a sub-group with what it lacks, or a
// single pod of one that is satisfied) stands by itself, so the dominant reason is that of the unit which is easiest to
// help.
func ExplainSurplus(p, singles placement.Problem, world Capacities) Refusal {
	known := &knownCapacities{Capacities: world, seen: map[int]ResourceCapacity{}}
	single := surplusUnits(singles, known)
	units := slices.Clone(single)
	for _, u := range surplusUnits(p, known) {
		if !slices.ContainsFunc(single, func(other unit) bool { return other.group == u.group }) {
			units = append(units, u)
		}
	}
	verdict := Refusal{Reason: v2alpha2.ReasonWaitingForPods}
	easiest := -1
	var parts []string
	for _, u := range units {
		reason, text := u.judge(known)
		if s := severity(reason); s > easiest {
			easiest, verdict.Reason = s, reason
		}
		parts = append(parts, pathOf(p.Tree, u.group)+" "+text)
	}
	if more := len(parts) - maxLeaves; more > 0 {
		parts = append(parts[:maxLeaves], fmt.Sprintf("and %d more", more))
	}
	verdict.Message = message.Truncate(strings.Join(parts, "; "), message.MaxCondition)
	return verdict
}

// unit is what is placed above the minimum as a whole: pods of one leaf or of several.
type unit struct {
	group string
	needs []need
	more  int // further pods of the leaf and the class that would be placed singly
}

// need is a number of pods of one leaf and one class. Some of them may not exist yet; then their class is not known.
type need struct {
	pods, missing, class int
}

// surplusUnits returns the units that wait, in spec order. Of a unit that could be made whole in several ways it is the one
// with the fewest pods.
func surplusUnits(p placement.Problem, world Capacities) []unit {
	if p.Tree == nil {
		return nil
	}
	var units []unit
	var visit func(g *gang.Group)
	visit = func(g *gang.Group) {
		switch {
		case !g.Satisfied(p.Have):
			if u := (unit{group: g.Name(), needs: needsOf(g, p, world)}); u.waits() {
				units = append(units, u)
			}
		case g.IsLeaf():
			for _, n := range byClass(p.Pods[g.Name()]) {
				units = append(units, unit{group: g.Name(), needs: []need{{pods: 1, class: n.class}}, more: n.pods - 1})
			}
		default:
			for _, child := range g.Children() {
				visit(child)
			}
		}
	}
	visit(p.Tree.Root())
	return units
}

// needsOf returns what a group still needs: of a leaf with more pods than that, those that ask for least.
func needsOf(g *gang.Group, p placement.Problem, world Capacities) []need {
	if g.IsLeaf() {
		lacks := max(0, g.Min()-p.Have[g.Name()])
		waiting := slices.Clone(p.Pods[g.Name()])
		slices.SortStableFunc(waiting, func(a, b placement.Pod) int {
			return cmp.Compare(world.ResourceCapacity(a.Class).PerPod, world.ResourceCapacity(b.Class).PerPod)
		})
		needs := byClass(waiting[:min(lacks, len(waiting))])
		if missing := lacks - len(waiting); missing > 0 {
			needs = append(needs, need{pods: missing, missing: missing})
		}
		return needs
	}
	children := slices.Clone(g.Children())
	slices.SortStableFunc(children, func(a, b *gang.Group) int { return cmp.Compare(a.MissingPods(p.Have), b.MissingPods(p.Have)) })
	var all []need
	for _, child := range children[:g.Min()] {
		all = append(all, needsOf(child, p, world)...)
	}
	return all
}

// byClass counts pods by class, the class of the first pod first.
func byClass(pods []placement.Pod) []need {
	var needs []need
	for _, pod := range pods {
		i := slices.IndexFunc(needs, func(n need) bool { return n.class == pod.Class })
		if i < 0 {
			i = len(needs)
			needs = append(needs, need{class: pod.Class})
		}
		needs[i].pods++
	}
	return needs
}

// waits reports whether any pod of the unit exists.
func (u unit) waits() bool {
	return slices.ContainsFunc(u.needs, func(n need) bool { return n.missing == 0 })
}

// judge says what keeps the unit from being placed: one reason, and its numbers.
func (u unit) judge(world Capacities) (v2alpha2.Reason, string) {
	type sum struct {
		asked, free, total int64
		pods               int
		oversized, largest int64 // what a pod asks for that fits no node, and what the largest node has; 0: all pods fit
	}
	sums := map[corev1.ResourceName]*sum{}
	pods, missing, homeless := 0, 0, 0
	var order []corev1.ResourceName
	for _, n := range u.needs {
		pods, missing = pods+n.pods, missing+n.missing
		if n.missing > 0 {
			continue
		}
		room := world.ResourceCapacity(n.class)
		if room.Nodes == 0 {
			homeless += n.pods
		}
		if sums[room.Resource] == nil {
			sums[room.Resource] = &sum{}
			order = append(order, room.Resource)
		}
		s := sums[room.Resource]
		s.pods += n.pods
		if room.PerPod > room.Largest {
			s.oversized, s.largest = room.PerPod, room.Largest
		}
		s.asked += room.PerPod * int64(n.pods)
		s.free, s.total = max(s.free, room.Free), max(s.total, room.Total)
	}
	if missing > 0 {
		return v2alpha2.ReasonWaitingForPods, fmt.Sprintf("lacks %s that must be created first", message.Count(missing, "pod"))
	}
	if homeless > 0 {
		text := fmt.Sprintf("needs %s, and no node matches", message.Count(pods+u.more, "pod"))
		if homeless < pods {
			text += fmt.Sprintf(" %d of them", homeless)
		}
		return v2alpha2.ReasonNoNodeMatches, text
	}
	for _, name := range order {
		s := sums[name]
		what := fmt.Sprintf("needs %s %s for %s", message.Quantity(name, s.asked), name, message.Count(s.pods, "pod"))
		if u.more > 0 {
			what = fmt.Sprintf("needs %s %s for each of %d pods", message.Quantity(name, s.asked), name, u.more+1)
		}
		switch {
		case s.oversized > 0:
			return v2alpha2.ReasonTooLarge, fmt.Sprintf("has pods that need %s %s each, the largest node they could use has %s",
				message.Quantity(name, s.oversized), name, message.Quantity(name, s.largest))
		case s.asked > s.total:
			return v2alpha2.ReasonTooLarge, fmt.Sprintf("%s, there are %s in all", what, message.Quantity(name, s.total))
		case s.asked > s.free:
			return insufficient(name), fmt.Sprintf("%s, %s are free", what, message.Quantity(name, s.free))
		}
	}
	return v2alpha2.ReasonFragmented, fmt.Sprintf("needs %s, and the room there is does not fit them", message.Count(pods+u.more, "pod"))
}

// maxLeaves is how many leaves a message names.
const maxLeaves = 3

// blocking returns the leaves that a message names: those that nodes refuse first, in spec order.
func blocking(leaves []placement.LeafShortfall) []placement.LeafShortfall {
	out := slices.Clone(leaves)
	slices.SortStableFunc(out, func(a, b placement.LeafShortfall) int {
		return cmp.Compare(rank(a), rank(b))
	})
	return out[:min(len(out), maxLeaves)]
}

func rank(l placement.LeafShortfall) int {
	if l.Refusal != nil {
		return 0
	}
	return 1
}

func describe(tree *gang.Tree, l placement.LeafShortfall) string {
	where := pathOf(tree, l.Leaf)
	if l.Refusal == nil {
		return fmt.Sprintf("%s has %d of the %d pods it still needs", where, l.Available, l.Need)
	}
	return fmt.Sprintf("%s: %d of %d pods can be placed", where, l.Placed, l.Need)
}

// maxReasons is how many filter reasons a leaf is described with.
const maxReasons = 3

// nodesSay lists the filter reasons, the one that most nodes gave first. "": no node was asked, or none refused: then the
// numbers say it all.
func nodesSay(r *placement.Refusal) string {
	if r == nil || len(r.Reasons) == 0 {
		return ""
	}
	reasons := slices.SortedFunc(maps.Keys(r.Reasons), func(a, b string) int {
		if c := cmp.Compare(r.Reasons[b], r.Reasons[a]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	var parts []string
	for _, why := range reasons[:min(len(reasons), maxReasons)] {
		parts = append(parts, fmt.Sprintf("%d nodes: %s", r.Reasons[why], why))
	}
	return strings.Join(parts, ", ")
}

// pathOf names a group of the tree for people: the names from below the root down to it, "decode/workers", without those
// that the next one begins with anyway. The groups of a PodCliqueSet have the full names of its objects:
// "chat-0-decode-1-workers" says it all.
func pathOf(tree *gang.Tree, name string) string {
	g := tree.Group(name)
	if g == nil || name == "" {
		return "the gang"
	}
	path := name
	for p := g.Parent(); p.Parent() != nil; p = p.Parent() {
		if !strings.HasPrefix(path, p.Name()+"-") {
			path = p.Name() + "/" + path
		}
	}
	return path
}

// Capacities is what an explanation asks about the cluster.
type Capacities interface {
	// ResourceCapacity returns what the nodes that match the class's constraints have, with nothing planned.
	ResourceCapacity(class int) ResourceCapacity
}

// ResourceCapacity is how much of a resource the nodes that a class may use have: of the resource that the class is
// about (the extended resource that it asks most of, else CPU), or of one that no node has enough of for a single pod.
// Amounts are in millicores for CPU, in bytes for memory and ephemeral storage, in units otherwise.
type ResourceCapacity struct {
	Resource corev1.ResourceName
	// PerPod is what one pod requests.
	PerPod int64
	// Free and Total are sums over the nodes that would take the class if they were large or empty enough; Largest is
	// the most that one of them has in all.
	Free, Total, Largest int64
	// Nodes is the number of those nodes.
	Nodes int
}

// knownCapacities asks about each class once: the answer is a walk over all nodes.
type knownCapacities struct {
	Capacities
	seen map[int]ResourceCapacity
}

// ResourceCapacity implements Capacities.
func (k *knownCapacities) ResourceCapacity(class int) ResourceCapacity {
	r, ok := k.seen[class]
	if !ok {
		r = k.Capacities.ResourceCapacity(class)
		k.seen[class] = r
	}
	return r
}

// dominant returns the most severe reason among the leaves that block the gang.
func dominant(blocked []placement.LeafShortfall, world Capacities) v2alpha2.Reason {
	worst := v2alpha2.Reason("")
	for _, l := range blocked {
		if l.Refusal == nil {
			continue
		}
		r := classify(l, world.ResourceCapacity(l.Class))
		if worst == "" || severity(r) < severity(worst) {
			worst = r
		}
	}
	if worst == "" {
		return v2alpha2.ReasonWaitingForPods
	}
	return worst
}

func severity(r v2alpha2.Reason) int {
	return slices.Index([]v2alpha2.Reason{
		v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonTooLarge, v2alpha2.ReasonInsufficientGPUs,
		v2alpha2.ReasonInsufficientResources, v2alpha2.ReasonFragmented,
	}, r)
}

// insufficient returns the reason for a resource of which not enough is free: the GPUs of a cluster are extended resources,
// whose names have a domain.
func insufficient(resource corev1.ResourceName) v2alpha2.Reason {
	if strings.Contains(string(resource), "/") {
		return v2alpha2.ReasonInsufficientGPUs
	}
	return v2alpha2.ReasonInsufficientResources
}

// classify says what would help one leaf.
func classify(l placement.LeafShortfall, room ResourceCapacity) v2alpha2.Reason {
	need := room.PerPod * int64(l.Need)
	switch {
	case room.Nodes == 0:
		return v2alpha2.ReasonNoNodeMatches
	case room.PerPod > room.Largest || need > room.Total:
		return v2alpha2.ReasonTooLarge
	case need > room.Free:
		return insufficient(room.Resource)
	default:
		return v2alpha2.ReasonFragmented
	}
}
