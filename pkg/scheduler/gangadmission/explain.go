package gangadmission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
	"github.com/muster-project/muster/pkg/scheduler/kube"
)

// explain turns a shortfall into one dominant reason and one sentence: which group of the tree lacks how much, and what
// the nodes say, by number of nodes.
func explain(work *gangstate.Work, world rooms, short *placement.Shortfall) gangstate.Verdict {
	known := &knownRooms{rooms: world, seen: map[int]kube.Room{}}
	blocked := blocking(short.Leaves)
	var parts []string
	first, told := hopeless(work.Tree, blocked, known)
	if first != "" {
		parts = append(parts, first)
	}
	for i, g := range short.Groups {
		if i == 0 {
			parts = append(parts, fmt.Sprintf("%s: %d of the %d children it needs can be placed", pathOf(work.Tree, g.Group), g.Can, g.Need))
		} else {
			parts = append(parts, fmt.Sprintf("%s: %d of %d", pathOf(work.Tree, g.Group), g.Can, g.Need))
		}
	}
	for i, l := range blocked {
		parts = append(parts, describe(work.Tree, l))
		// Leaves next to each other often hear the same from the nodes: that is said once, after the last of them.
		if l.Refusal == nil || nodesSay(l.Refusal) == told {
			continue
		}
		if i == len(blocked)-1 || blocked[i+1].Refusal == nil || nodesSay(blocked[i+1].Refusal) != nodesSay(l.Refusal) {
			parts = append(parts, nodesSay(l.Refusal))
		}
	}
	if !short.Exhausted {
		parts = append(parts, fmt.Sprintf("the search ended after %d attempts", short.Attempts))
	}
	reason := dominant(blocked, known)
	if first == "" && reason != v2alpha2.ReasonWaitingForPods {
		// Each leaf may have room enough by itself, and all of them together have not.
		if whole, text := judgeWhole(work.Problem, known); whole != "" {
			parts = append([]string{text}, parts...)
			if severity(whole) < severity(reason) {
				reason = whole
			}
		}
	}
	return gangstate.Verdict{Reason: reason, Message: clip(strings.Join(parts, "; "))}
}

// hopeless names a leaf whose pods no more nodes of the kinds there are would help: none matches them, or one pod asks
// for more than the largest has. That is told first, since the list of groups may be long. told is what nodes say as part of
// it. "": there is no such leaf.
func hopeless(tree *gang.Tree, leaves []placement.LeafShortfall, world rooms) (text, told string) {
	for _, l := range leaves {
		if l.Refusal == nil {
			continue
		}
		r := world.Room(l.Class)
		if r.Nodes == 0 {
			told = nodesSay(l.Refusal)
			return fmt.Sprintf("no node matches a pod of %s: %s", pathOf(tree, l.Leaf), told), told
		}
		if r.PerPod > r.Largest && text == "" {
			text = fmt.Sprintf("a pod of %s needs %s %s, the largest node it could use has %s",
				pathOf(tree, l.Leaf), amount(r.Resource, r.PerPod), r.Resource, amount(r.Resource, r.Largest))
		}
	}
	return text, ""
}

// judgeWhole says whether the pods that the minimum lacks ask for more of a resource than is free, whichever children are
// taken. "": they do not.
func judgeWhole(p placement.Problem, known *knownRooms) (v2alpha2.Reason, string) {
	room := known.Room
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
		what := fmt.Sprintf("the gang needs %s %s for %s", amount(name, asked.amount), name, podsText(asked.pods))
		switch {
		case asked.amount > total:
			return v2alpha2.ReasonTooLarge, fmt.Sprintf("%s, the nodes it could use have %s in all", what, amount(name, total))
		case asked.amount > free:
			return v2alpha2.ReasonInsufficientGPUs, fmt.Sprintf("%s, %s are free", what, amount(name, free))
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
func leastAsked(g *gang.Group, p placement.Problem, name corev1.ResourceName, room func(class int) kube.Room) asked {
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

// explainSurplus says why nothing above the minimum was placed. Every unit above it (a sub-group with what it lacks, or a
// single pod of one that is satisfied) stands by itself, so the dominant reason is that of the unit which is easiest to
// help.
func explainSurplus(work *gangstate.Work, world rooms) gangstate.Verdict {
	world = &knownRooms{rooms: world, seen: map[int]kube.Room{}}
	var singles []unit
	if work.Task == gangstate.Refill {
		singles = surplusUnits(work.Singles, world)
	}
	units := slices.Clone(singles)
	for _, u := range surplusUnits(work.Problem, world) {
		if !slices.ContainsFunc(singles, func(other unit) bool { return other.group == u.group }) {
			units = append(units, u)
		}
	}
	verdict := gangstate.Verdict{Reason: v2alpha2.ReasonWaitingForPods}
	easiest := -1
	var parts []string
	for _, u := range units {
		reason, text := u.judge(world)
		if s := severity(reason); s > easiest {
			easiest, verdict.Reason = s, reason
		}
		parts = append(parts, pathOf(work.Tree, u.group)+" "+text)
	}
	if more := len(parts) - maxLeaves; more > 0 {
		parts = append(parts[:maxLeaves], fmt.Sprintf("and %d more", more))
	}
	verdict.Message = clip(strings.Join(parts, "; "))
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
func surplusUnits(p placement.Problem, world rooms) []unit {
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
func needsOf(g *gang.Group, p placement.Problem, world rooms) []need {
	if g.IsLeaf() {
		lacks := max(0, g.Min()-p.Have[g.Name()])
		waiting := slices.Clone(p.Pods[g.Name()])
		slices.SortStableFunc(waiting, func(a, b placement.Pod) int {
			return cmp.Compare(world.Room(a.Class).PerPod, world.Room(b.Class).PerPod)
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
func (u unit) judge(world rooms) (v2alpha2.Reason, string) {
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
		room := world.Room(n.class)
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
		return v2alpha2.ReasonWaitingForPods, fmt.Sprintf("lacks %s that must be created first", podsText(missing))
	}
	if homeless > 0 {
		text := fmt.Sprintf("needs %s, and no node matches", podsText(pods+u.more))
		if homeless < pods {
			text += fmt.Sprintf(" %d of them", homeless)
		}
		return v2alpha2.ReasonNoNodeMatches, text
	}
	for _, name := range order {
		s := sums[name]
		what := fmt.Sprintf("needs %s %s for %s", amount(name, s.asked), name, podsText(s.pods))
		if u.more > 0 {
			what = fmt.Sprintf("needs %s %s for each of %d pods", amount(name, s.asked), name, u.more+1)
		}
		switch {
		case s.oversized > 0:
			return v2alpha2.ReasonTooLarge, fmt.Sprintf("has pods that need %s %s each, the largest node they could use has %s",
				amount(name, s.oversized), name, amount(name, s.largest))
		case s.asked > s.total:
			return v2alpha2.ReasonTooLarge, fmt.Sprintf("%s, there are %s in all", what, amount(name, s.total))
		case s.asked > s.free:
			return v2alpha2.ReasonInsufficientGPUs, fmt.Sprintf("%s, %s are free", what, amount(name, s.free))
		}
	}
	return v2alpha2.ReasonFragmented, fmt.Sprintf("needs %s, and the room there is does not fit them", podsText(pods+u.more))
}

func podsText(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// amount returns an amount of a resource for people. CPU comes in millicores, memory and ephemeral storage in bytes.
func amount(name corev1.ResourceName, n int64) string {
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	return fmt.Sprint(n)
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

// nodesSay lists the filter reasons, the one that most nodes gave first.
func nodesSay(r *placement.Refusal) string {
	reasons := slices.SortedFunc(maps.Keys(r.Reasons), func(a, b string) int {
		if c := cmp.Compare(r.Reasons[b], r.Reasons[a]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	if len(reasons) == 0 {
		return "there are no nodes"
	}
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

// rooms is what explain asks about the cluster.
type rooms interface {
	Room(class int) kube.Room
}

// knownRooms asks about each class once: the answer is a walk over all nodes.
type knownRooms struct {
	rooms
	seen map[int]kube.Room
}

// Room implements rooms.
func (k *knownRooms) Room(class int) kube.Room {
	r, ok := k.seen[class]
	if !ok {
		r = k.rooms.Room(class)
		k.seen[class] = r
	}
	return r
}

// dominant picks the reason (users.md, B5) from what blocks first.
func dominant(blocked []placement.LeafShortfall, world rooms) v2alpha2.Reason {
	worst := v2alpha2.Reason("")
	for _, l := range blocked {
		if l.Refusal == nil {
			continue
		}
		r := classify(l, world.Room(l.Class))
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
		v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonTooLarge, v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonFragmented,
	}, r)
}

// classify says what would help one leaf.
func classify(l placement.LeafShortfall, room kube.Room) v2alpha2.Reason {
	need := room.PerPod * int64(l.Need)
	switch {
	case room.Nodes == 0:
		return v2alpha2.ReasonNoNodeMatches
	case room.PerPod > room.Largest || need > room.Total:
		return v2alpha2.ReasonTooLarge
	case need > room.Free:
		return v2alpha2.ReasonInsufficientGPUs
	default:
		return v2alpha2.ReasonFragmented
	}
}

// clip keeps a message below the API's limit for event notes.
func clip(s string) string {
	const limit = 1000
	if len(s) <= limit {
		return s
	}
	return s[:limit-4] + " ..."
}
