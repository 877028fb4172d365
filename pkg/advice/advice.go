// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangadmission"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// Advice is what would let a gang start.
type Advice struct {
	Changes []Change `json:"changes"`
	// Tried is the number of changes that were tried.
	Tried int `json:"tried"`
	// Cut: the time was over before all kinds of changes were tried.
	Cut bool `json:"cut,omitempty"`
}

// Find returns the changes after which the gang would start, at most one or two of each kind. out is what an explained
// attempt to plan it as it is led to: it does not start. It takes little more than the limit.
func Find(ctx context.Context, c *Cluster, key gangs.Key, out *gangadmission.Outcome, limit time.Duration) (*Advice, error) {
	facts, ok := c.Offline.Facts(key)
	if out.Work == nil || !ok || facts.Group == nil || facts.Tree == nil {
		return &Advice{}, nil
	}
	start := c.Offline.Now()
	p := &prober{ctx: ctx, cluster: c, gang: key, until: start.Add(limit)}
	f := &finder{prober: p, facts: facts, out: out}
	for _, find := range []func() []*Change{f.uncordon, f.untaint, f.relaxLevels, f.lowerMinimum, f.addNodes, f.raisePriority, f.endGangs} {
		for _, change := range find() {
			if change != nil {
				f.found = append(f.found, *change)
			}
		}
	}
	return &Advice{Changes: f.found, Tried: p.tried, Cut: p.isOver()}, p.err
}

// finder looks for changes of each kind.
type finder struct {
	*prober
	facts podgroup.Facts // before any change
	out   *gangadmission.Outcome
	found []Change
}

// nodesWhere returns the nodes with the property, by name.
func (c *Cluster) nodesWhere(has func(*corev1.Node) bool) []*corev1.Node {
	var found []*corev1.Node
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		if has(c.Nodes[name]) {
			found = append(found, c.Nodes[name])
		}
	}
	return found
}

// fewestNodes returns the change of as few of the nodes as possible that starts the gang: those that the plan for all
// of them uses, without each one that is not needed.
func (f *finder) fewestNodes(nodes []*corev1.Node, of func(nodes []*corev1.Node) *Change) *Change {
	if len(nodes) == 0 {
		return nil
	}
	all := of(nodes)
	out := f.try(all, false)
	if out == nil || len(out.Placements) == 0 {
		return nil
	}
	used := sets.New[string]()
	for _, p := range out.Placements {
		used.Insert(p.Node)
	}
	best := slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return !used.Has(n.Name) })
	if len(best) == 0 || len(best) < len(nodes) && !f.starts(of(best)) {
		best = nodes
	}
	for i := len(best) - 1; i >= 0 && len(best) > 1 && !f.isOver(); i-- {
		fewer := slices.Delete(slices.Clone(best), i, i+1)
		if f.starts(of(fewer)) {
			best = fewer
		}
	}
	return of(best)
}

func (f *finder) uncordon() []*Change {
	cordoned := f.cluster.nodesWhere(func(n *corev1.Node) bool { return n.Spec.Unschedulable })
	return []*Change{f.fewestNodes(cordoned, func(nodes []*corev1.Node) *Change {
		names := namesOf(nodes)
		x := &Change{
			Kind: NodesAvailable, Size: int64(len(nodes)), Command: "kubectl uncordon " + strings.Join(names, " "),
			Text: list(names) + message.Plural(len(nodes), " is", " are") + " uncordoned",
		}
		for _, node := range nodes {
			open := node.DeepCopy()
			open.Spec.Unschedulable = false
			open.Spec.Taints = slices.DeleteFunc(open.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
			x.Put = append(x.Put, open)
		}
		return x
	})}
}

// maxTaints is the number of taints that are tried.
const maxTaints = 4

func (f *finder) untaint() []*Change {
	taints := map[corev1.Taint]int{}
	for _, node := range f.cluster.Nodes {
		for _, t := range node.Spec.Taints {
			if t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
				taints[corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}]++
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(taints), func(a, b corev1.Taint) int {
		return cmp.Or(cmp.Compare(taints[b], taints[a]), cmp.Compare(a.ToString(), b.ToString()))
	})
	var changes []*Change
	for _, taint := range order[:min(len(order), maxTaints)] {
		is := func(t corev1.Taint) bool {
			return t.Key == taint.Key && t.Value == taint.Value && t.Effect == taint.Effect
		}
		nodes := f.cluster.nodesWhere(func(n *corev1.Node) bool { return slices.ContainsFunc(n.Spec.Taints, is) })
		changes = append(changes, f.fewestNodes(nodes, func(nodes []*corev1.Node) *Change {
			names := namesOf(nodes)
			x := &Change{
				Kind: TaintRemoved, Size: int64(len(nodes)),
				Text:    fmt.Sprintf("%s %s taint %s, or the pods tolerate it", list(names), message.Plural(len(nodes), "loses", "lose"), taint.ToString()),
				Command: fmt.Sprintf("kubectl taint nodes %s %s-", strings.Join(names, " "), taint.ToString()),
			}
			for _, node := range nodes {
				open := node.DeepCopy()
				open.Spec.Taints = slices.DeleteFunc(open.Spec.Taints, is)
				x.Put = append(x.Put, open)
			}
			return x
		}))
	}
	return changes
}

// relaxLevels relaxes each required level alone, and all of them if that does not help.
func (f *finder) relaxLevels() []*Change {
	constraints := func(group *v2alpha2.PodGroup) map[string]*v2alpha2.TopologyConstraint {
		all := map[string]*v2alpha2.TopologyConstraint{}
		if c := group.Spec.TopologyConstraint; c != nil && c.RequiredTopologyLevel != "" {
			all[""] = c
		}
		for i := range group.Spec.SubGroups {
			if c := group.Spec.SubGroups[i].TopologyConstraint; c != nil && c.RequiredTopologyLevel != "" {
				all[group.Spec.SubGroups[i].Name] = c
			}
		}
		return all
	}
	required := constraints(f.facts.Group)
	relax := func(which ...string) *Change {
		group := f.facts.Group.DeepCopy()
		var parts []string
		for _, name := range which {
			c := constraints(group)[name]
			parts = append(parts, fmt.Sprintf("%s prefers %s instead of requiring it", f.pathOf(name), podgroup.LevelName(c.RequiredTopologyLevel)))
			c.PreferredTopologyLevel, c.RequiredTopologyLevel = cmp.Or(c.PreferredTopologyLevel, c.RequiredTopologyLevel), ""
		}
		return &Change{Kind: LevelRelaxed, Size: int64(len(which)), Text: strings.Join(parts, ", "), Put: []client.Object{group}}
	}
	names := slices.Sorted(maps.Keys(required))
	var changes []*Change
	for _, name := range names {
		if x := relax(name); f.starts(x) && len(changes) < 2 {
			changes = append(changes, x)
		}
	}
	if len(changes) == 0 && len(names) > 1 {
		if x := relax(names...); f.starts(x) {
			changes = append(changes, x)
		}
	}
	return changes
}

// lowerMinimum lowers the minimum of each group that misses it.
func (f *finder) lowerMinimum() []*Change {
	if f.out.Short == nil {
		return nil
	}
	short := sets.New("")
	for _, l := range f.out.Short.Leaves {
		short.Insert(l.Leaf)
	}
	for _, g := range f.out.Short.Groups {
		short.Insert(g.Group)
	}
	for _, l := range f.out.Short.Levels {
		short.Insert(l.Group)
	}
	var changes []*Change
	groups := append([]*gang.Group{f.facts.Tree.Root()}, f.facts.Tree.Groups()...)
	for _, g := range groups {
		if !short.Has(g.Name()) || len(changes) == 2 {
			continue
		}
		changes = append(changes, f.smallest(g.Min()-1, func(n int) *Change {
			group := f.facts.Group.DeepCopy()
			field := setMinimum(group, g, int32(g.Min()-n))
			x := &Change{
				Kind: MinimumLowered, Size: int64(n), Put: []client.Object{group},
				Text: fmt.Sprintf("%s of %s is %d instead of %d", field, f.pathOf(g.Name()), g.Min()-n, g.Min()),
			}
			if g.Parent() == nil && metav1.GetControllerOf(group) == nil { // a controller would take it back
				x.Command = fmt.Sprintf("kubectl patch podgroups.%s %s -n %s --type merge -p '{\"spec\":{\"%s\":%d}}'",
					v2alpha2.GroupName, group.Name, group.Namespace, field, g.Min()-n)
			}
			return x
		}))
		changes = slices.DeleteFunc(changes, func(x *Change) bool { return x == nil })
	}
	return changes
}

// setMinimum sets the minimum of a group of the tree, and returns the name of the field.
func setMinimum(group *v2alpha2.PodGroup, g *gang.Group, n int32) string {
	field := "minSubGroup"
	if g.IsLeaf() {
		field = "minMember"
	}
	if g.Parent() == nil {
		if g.IsLeaf() {
			group.Spec.MinMember = &n
		} else {
			group.Spec.MinSubGroup = &n
		}
		return field
	}
	for i := range group.Spec.SubGroups {
		if sub := &group.Spec.SubGroups[i]; sub.Name == g.Name() && g.IsLeaf() {
			sub.MinMember = &n
		} else if sub.Name == g.Name() {
			sub.MinSubGroup = &n
		}
	}
	return field
}

// pathOf names a group of the tree in a text.
func (f *finder) pathOf(name string) string {
	if name == "" {
		return "the gang"
	}
	return name
}

const (
	// maxShapes is the number of kinds of nodes that are tried, and maxDomains that of domains of a required level.
	maxShapes, maxDomains = 3, 4
	// maxNodesAdded is the number of nodes that are added at most.
	maxNodesAdded = 256
)

// addNodes adds nodes like existing ones.
func (f *finder) addNodes() []*Change {
	most := min(maxNodesAdded, max(1, f.facts.Tree.MissingPods(f.facts.Bound)))
	var best *Change
	for _, like := range f.shapes() {
		x := f.smallest(most, func(n int) *Change {
			x := &Change{
				Kind: NodesAdded, Size: int64(n),
				Text: fmt.Sprintf("%s like %s%s", message.Count(n, "more node"), like.Name, f.describeShape(like)),
			}
			for i := range n {
				node := like.DeepCopy()
				node.Name = fmt.Sprintf("new-node-%d", i)
				node.UID, node.ResourceVersion = "", ""
				if node.Labels[corev1.LabelHostname] != "" {
					node.Labels[corev1.LabelHostname] = node.Name
				}
				x.Put = append(x.Put, node)
			}
			return x
		})
		if x != nil && (best == nil || x.Size < best.Size) {
			best, most = x, int(x.Size)-1 // others only if they are fewer
		}
	}
	return []*Change{best}
}

// describeShape says what a node offers, and in which domain of the levels that the gang requires it is.
func (f *finder) describeShape(node *corev1.Node) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(node.Status.Allocatable)) {
		if amount := node.Status.Allocatable[name]; podgroup.IsExtended(name) && !amount.IsZero() {
			parts = append(parts, amount.String()+" "+string(name))
		}
	}
	text := ""
	if len(parts) > 0 {
		text = " (" + strings.Join(parts, ", ") + ")"
	}
	for _, label := range f.levelLabels() {
		if value := node.Labels[label]; value != "" && label != corev1.LabelHostname {
			text += fmt.Sprintf(" in %s %s", podgroup.LevelName(label), value)
		}
	}
	return text
}

// levelLabels returns the node labels of the levels that the gang requires, sorted.
func (f *finder) levelLabels() []string {
	labels := sets.New[string]()
	for _, level := range f.out.Work.Problem.Required {
		labels.Insert(strings.Split(level, ",")...)
	}
	return sets.List(labels)
}

// shapes returns one node of each kind of node that the gang may use more of, the most frequent kind first, and of
// several domains of the levels that the gang requires.
func (f *finder) shapes() []*corev1.Node {
	type shape struct {
		nodes   int
		domains map[string]*corev1.Node
	}
	byKind := map[string]*shape{}
	labels := f.levelLabels()
	for _, node := range f.cluster.nodesWhere(func(n *corev1.Node) bool { return !n.Spec.Unschedulable && IsReady(n) }) {
		var key strings.Builder
		for _, name := range slices.Sorted(maps.Keys(node.Status.Allocatable)) {
			amount := node.Status.Allocatable[name]
			fmt.Fprintf(&key, "%s=%s ", name, amount.String())
		}
		for _, t := range node.Spec.Taints {
			key.WriteString(t.ToString() + " ")
		}
		s := byKind[key.String()]
		if s == nil {
			s = &shape{domains: map[string]*corev1.Node{}}
			byKind[key.String()] = s
		}
		s.nodes++
		domain := ""
		for _, label := range labels {
			if label != corev1.LabelHostname {
				domain += node.Labels[label] + ","
			}
		}
		if s.domains[domain] == nil {
			s.domains[domain] = node
		}
	}
	kinds := slices.SortedFunc(maps.Keys(byKind), func(a, b string) int {
		return cmp.Or(cmp.Compare(byKind[b].nodes, byKind[a].nodes), cmp.Compare(a, b))
	})
	var nodes []*corev1.Node
	for _, kind := range kinds[:min(len(kinds), maxShapes)] {
		domains := slices.Sorted(maps.Keys(byKind[kind].domains))
		for _, domain := range domains[:min(len(domains), maxDomains)] {
			nodes = append(nodes, byKind[kind].domains[domain])
		}
	}
	return nodes
}

// IsReady reports whether the node says that it is ready, or says nothing.
func IsReady(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}

// raisePriority finds the lowest PriorityClass with which the gang would preempt.
func (f *finder) raisePriority() []*Change {
	if f.facts.Priority == nil {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(f.cluster.Classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.cluster.Classes[a].Value, f.cluster.Classes[b].Value), cmp.Compare(a, b))
	})
	names = slices.DeleteFunc(names, func(name string) bool {
		class := f.cluster.Classes[name]
		never := class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever
		return class.Value <= *f.facts.Priority || never || strings.HasPrefix(name, "system-")
	})
	low, high := 0, len(names) // those before low do not start it; high does, or is not tried
	var best *Change
	for low < high {
		at := (low + high) / 2
		if best == nil && high == len(names) {
			at = high - 1 // without the highest, none
		}
		x := f.withClass(names[at])
		out := f.try(x, true)
		switch {
		case out != nil && out.Starts():
			x.Preempts = Victims(out)
			best, high = x, at
		case best == nil:
			return nil
		default:
			low = at + 1
		}
	}
	return []*Change{best}
}

func (f *finder) withClass(name string) *Change {
	value := f.cluster.Classes[name].Value
	x := &Change{Kind: PriorityRaised, Size: int64(value), Text: fmt.Sprintf("its pods are created again with PriorityClass %s (%d)", name, value)}
	if class := f.facts.Group.Spec.PriorityClassName; class != "" {
		group := f.facts.Group.DeepCopy()
		group.Spec.PriorityClassName = name
		x.Put = append(x.Put, group)
	}
	for _, w := range f.facts.Waiting {
		pod := w.Pod.DeepCopy()
		pod.Spec.Priority, pod.Spec.PriorityClassName, pod.Spec.PreemptionPolicy = &value, name, f.cluster.Classes[name].PreemptionPolicy
		x.Put = append(x.Put, pod)
	}
	return x
}

// Victims returns the gangs, and the pods without one, that end for the gang of an outcome, sorted: "ml/a", "pod ml/b".
func Victims(out *gangadmission.Outcome) []string {
	names := sets.New[string]()
	for _, v := range gangadmission.VictimsOf(out) {
		if v.Gang.Name != "" {
			names.Insert(v.Gang.String())
		} else {
			names.Insert("pod " + v.Pod.Namespace + "/" + v.Pod.Name)
		}
	}
	return sets.List(names)
}

const (
	// maxGangs is the number of gangs whose end is tried, and maxEnds that of those that are named.
	maxGangs, maxEnds = 24, 2
)

// endGangs finds the gangs that hold least of those whose end starts the gang.
func (f *finder) endGangs() []*Change {
	type holder struct {
		key  gangs.Key
		gpus int64
	}
	least := f.lackingGPUs()
	var holders []holder
	for key, pods := range f.cluster.Pods {
		if key.Name == "" || key == f.gang {
			continue
		}
		h := holder{key: key}
		for _, pod := range pods {
			h.gpus += podgroup.GPUs(pod)
		}
		if h.gpus >= max(1, least) || f.facts.GPUs == 0 {
			holders = append(holders, h)
		}
	}
	slices.SortFunc(holders, func(a, b holder) int {
		return cmp.Or(cmp.Compare(a.gpus, b.gpus), cmp.Compare(len(f.cluster.Pods[a.key]), len(f.cluster.Pods[b.key])),
			cmp.Compare(a.key.String(), b.key.String()))
	})
	ends := func(h holder) *Change {
		x := &Change{Kind: GangEnds, Size: h.gpus, Text: h.key.String() + " ends"}
		if h.gpus > 0 {
			x.Text += " (" + message.Count(int(h.gpus), "GPU") + ")"
		}
		if facts, ok := f.cluster.Offline.Facts(h.key); ok && facts.Group != nil {
			x.Delete = append(x.Delete, facts.Group)
		}
		for _, pod := range f.cluster.Pods[h.key] {
			x.Delete = append(x.Delete, pod)
		}
		return x
	}
	var changes []*Change
	for tried, h := range holders {
		if tried == maxGangs || len(changes) == maxEnds || f.isOver() {
			break
		}
		if x := ends(h); f.starts(x) {
			changes = append(changes, x)
		}
	}
	return changes
}

// lackingGPUs returns how many GPUs have to become free at least, wherever they are. 0 or less: enough are free in all.
func (f *finder) lackingGPUs() int64 {
	smallest := int64(-1)
	for _, pod := range f.out.Work.Pods {
		if n := podgroup.GPUs(pod); smallest < 0 || n < smallest {
			smallest = n
		}
	}
	lacking := max(0, smallest) * int64(f.facts.Tree.MissingPods(f.facts.Bound))
	for _, node := range f.cluster.Nodes {
		lacking -= podgroup.NodeGPUs(node.Status.Allocatable)
	}
	for _, pods := range f.cluster.Pods {
		for _, pod := range pods {
			lacking += podgroup.GPUs(pod)
		}
	}
	return lacking
}

func namesOf(nodes []*corev1.Node) []string {
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = node.Name
	}
	return names
}

// list lists a few names.
func list(names []string) string {
	const shown = 3
	return message.ListNames(names[:min(len(names), shown)], shown, len(names), ", ")
}

// gangOf returns the gang of a pod, zero if it has none.
func gangOf(pod *corev1.Pod) gangs.Key {
	if name := membership.Group(pod); name != "" {
		return gangs.Key{Namespace: pod.Namespace, Name: name}
	}
	return gangs.Key{}
}

// NewCluster returns the cluster of an Offline with the given nodes, pods and PriorityClasses.
func NewCluster(o *gangadmission.Offline, nodes []*corev1.Node, pods []*corev1.Pod, classes []*schedulingv1.PriorityClass) *Cluster {
	c := &Cluster{
		Offline: o, Pods: map[gangs.Key][]*corev1.Pod{}, Nodes: make(map[string]*corev1.Node, len(nodes)), Classes: map[string]*schedulingv1.PriorityClass{},
	}
	for _, class := range classes {
		c.Classes[class.Name] = class
	}
	for _, node := range nodes {
		c.Nodes[node.Name] = node
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			c.Pods[gangOf(pod)] = append(c.Pods[gangOf(pod)], pod)
		}
	}
	return c
}
