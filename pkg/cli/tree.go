// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangadmission"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/workload"
)

// Tree is what a gang is made of.
type Tree struct {
	typeMeta  `json:",inline"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"` // of the PodGroup
	Phase     string `json:"phase"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	Node      `json:",inline"`
	// Set is the state of the PodCliqueSet that the gang is a replica of, if it is the only gang that is shown.
	Set *SetState `json:"podCliqueSet,omitempty"`

	taken time.Time
}

// Node is the gang, or a sub-group of it.
type Node struct {
	Group string `json:"group"` // "": the gang itself
	// Need is the minimum: pods of a leaf, direct children otherwise. Bound, Exist and Ready are counted likewise; a
	// child is bound, exists or is ready if its minimum is.
	Need  int `json:"need"`
	Bound int `json:"bound"`
	Exist int `json:"exist"`
	Ready int `json:"ready"`
	// Surplus is what is bound above the minimum: it may be preempted, or scaled in, without the gang.
	Surplus int `json:"surplus,omitempty"`
	// GPUs are those of the existing pods below, HeldGPUs those of the bound ones.
	GPUs     int64  `json:"gpus"`
	HeldGPUs int64  `json:"heldGPUs"`
	Where    string `json:"where,omitempty"` // the domains in which it runs
	Leaf     bool   `json:"leaf,omitempty"`
	// Of a PodCliqueSet: breach, update and attempt.
	lifecyclePart `json:",inline"`
	Children      []Node `json:"children,omitempty"`
}

func newTree(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "tree [KIND/]NAME", Short: "Show what a gang is made of: what each part needs and has",
		Long: `Show each node of a gang's tree, with what it needs and has, GPUs, where it runs, what is above the minimum, and of a PodCliqueSet breaches
of minimums, updates and attempts. NAME is a PodGroup, a pod, or an owner of pods, such as a PodCliqueSet, a Job or a JobSet; all gangs of
it are shown. Parts that are alike are shown once.`,
		Example: "  kubectl muster tree pcs/chat -n web\n  kubectl muster tree jobset/train --watch",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), func(ctx context.Context, o *options, w *world) error { return o.tree(ctx, w, args) })
		},
	}
	cmd.ValidArgsFunction = o.completeNames("podgroups."+v2alpha2.GroupName, true)
	o.addWatch(cmd)
	return cmd
}

// tree shows the trees of the gangs of an object.
func (o *options) tree(ctx context.Context, w *world, args []string) error {
	kind, name := splitName(args)
	keys, err := w.gangsOf(o.namespace(), kind, name)
	if err != nil {
		return err
	}
	var trees []Tree
	for _, key := range keys {
		t, err := w.tree(ctx, key)
		if err != nil {
			return err
		}
		trees = append(trees, *t)
	}
	set := w.setOf(keys[0])
	text := func(out io.Writer) {
		o.printTrees(out, trees)
		o.printSet(out, set, w.snapshot.Taken)
	}
	if len(trees) == 1 {
		trees[0].Set = set
		return o.print(trees[0], text)
	}
	list := struct {
		typeMeta `json:",inline"`
		Items    []Tree    `json:"items"`
		Set      *SetState `json:"podCliqueSet,omitempty"`
	}{metaOf("TreeList"), trees, set}
	return o.print(list, text)
}

// tree returns the tree of a gang. One that waits is planned, so that the reason is that of now.
func (w *world) tree(ctx context.Context, key gangs.Key) (*Tree, error) {
	out, err := w.Offline.Try(ctx, key, gangadmission.Options{Explain: true, Preempt: true, Record: true})
	if err != nil {
		return nil, err
	}
	facts, ok := w.Offline.Facts(key)
	if !ok || facts.Group == nil {
		return nil, fmt.Errorf("there is no PodGroup %s", key)
	}
	status := podgroup.Status(facts, metav1.NewTime(w.Offline.Now()))
	t := &Tree{typeMeta: metaOf("Tree"), Namespace: key.Namespace, Name: key.Name, Phase: string(status.Phase), Reason: string(status.Reason), taken: w.snapshot.Taken}
	if c := meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionSatisfied); c != nil && c.Status != metav1.ConditionTrue {
		t.Message = c.Message
		if len(out.Placements) > 0 || out.Waits {
			t.Reason, t.Message = "", startsText(out)
		}
	}
	if facts.Tree == nil {
		return t, nil
	}
	n := newCounts(w, key, &facts)
	if set := w.setOf(key); set != nil {
		n.parts = set.parts
	}
	t.Node = n.node(facts.Tree.Root())
	return t, nil
}

// counts are the numbers of a gang's pods by leaf.
type counts struct {
	facts  *podgroup.Facts
	ready  gang.Counts
	gpus   map[string]int64 // of existing pods
	held   map[string]int64 // of bound pods
	places map[string]string
	parts  map[string]lifecyclePart // nil: it is of no PodCliqueSet
}

func newCounts(w *world, key gangs.Key, facts *podgroup.Facts) *counts {
	n := &counts{facts: facts, ready: gang.Counts{}, gpus: map[string]int64{}, held: map[string]int64{}, places: map[string]string{"": facts.Group.Status.Placement}}
	for _, pod := range w.pods {
		if pod.Namespace != key.Namespace || membership.Group(pod) != key.Name || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		leaf, gpus := membership.Leaf(pod), podgroup.GPUs(pod)
		n.gpus[leaf] += gpus
		if pod.Spec.NodeName != "" {
			n.held[leaf] += gpus
		}
		if workload.IsReady(pod) && pod.DeletionTimestamp == nil {
			n.ready[leaf]++
		}
	}
	for _, g := range facts.Group.Status.SubGroups {
		n.places[g.Name] = g.Placement
	}
	return n
}

func (n *counts) node(g *gang.Group) Node {
	x := Node{Group: g.Name(), Need: g.Min(), Leaf: g.IsLeaf(), Where: n.places[g.Name()]}
	if g.IsLeaf() {
		x.Bound, x.Exist, x.Ready = n.facts.Bound[g.Name()], n.facts.Created[g.Name()], n.ready[g.Name()]
		x.GPUs, x.HeldGPUs = n.gpus[g.Name()], n.held[g.Name()]
	} else {
		x.Bound, x.Exist, x.Ready = g.SatisfiedChildren(n.facts.Bound), g.SatisfiedChildren(n.facts.Created), g.SatisfiedChildren(n.ready)
	}
	x.Surplus = max(0, x.Bound-x.Need)
	x.lifecyclePart = n.parts[cmp.Or(g.Name(), n.facts.Group.Name)]
	for _, child := range g.Children() {
		c := n.node(child)
		x.GPUs, x.HeldGPUs = x.GPUs+c.GPUs, x.HeldGPUs+c.HeldGPUs
		x.Children = append(x.Children, c)
	}
	return x
}

// maxTrees is the number of gangs that are shown at most.
const maxTrees = 20

func (o *options) printTrees(w io.Writer, trees []Tree) {
	for i, t := range trees[:min(len(trees), maxTrees)] {
		if i > 0 {
			fmt.Fprintln(w)
		}
		rows := [][]string{{"NAME", "NEEDS", "BOUND", "EXIST", "READY", "GPUS", "STATE", "WHERE"}}
		rows = append(rows, rowsOf(&t.Node, t.Name, "", "", t.Phase, t.taken)...)
		o.table(w, rows)
		if t.Reason != "" {
			o.section(w, "why", clauses(t.Reason+": "+t.Message)...)
		} else if t.Message != "" {
			o.section(w, "why", t.Message)
		}
	}
	if more := len(trees) - maxTrees; more > 0 {
		phases := map[string]int{}
		for _, t := range trees[maxTrees:] {
			phases[t.Phase]++
		}
		var parts []string
		for _, phase := range slices.Sorted(maps.Keys(phases)) {
			parts = append(parts, fmt.Sprintf("%d %s", phases[phase], phase))
		}
		fmt.Fprintf(w, "\n… and %s: %s\n", message.Count(more, "more gang"), strings.Join(parts, ", "))
	}
}

// maxAlike is the number of parts beside each other that are shown one by one although they are alike.
const maxAlike = 3

// rowsOf returns the rows of a node and those below it. prefix is drawn before its name, below before those of its
// children.
func rowsOf(n *Node, name, prefix, below, state string, now time.Time) [][]string {
	row := []string{prefix + name, message.Count(n.Need, unitOf(n)), fmt.Sprint(n.Bound), fmt.Sprint(n.Exist), fmt.Sprint(n.Ready), "", state + n.lifecyclePart.state(now), n.Where}
	if n.GPUs > 0 {
		row[5] = fmt.Sprintf("%d/%d", n.HeldGPUs, n.GPUs)
	}
	rows := [][]string{row}
	for i := 0; i < len(n.Children); {
		alike := 1
		for i+alike < len(n.Children) && n.Children[i].isLike(&n.Children[i+alike]) {
			alike++
		}
		child, state := &n.Children[i], stateOf(&n.Children[i])
		name := strings.TrimPrefix(child.Group, n.Group+"-")
		if alike > maxAlike {
			name += " … " + strings.TrimPrefix(n.Children[i+alike-1].Group, n.Group+"-")
			state = fmt.Sprintf("%d alike: %s", alike, state)
		} else {
			alike = 1
		}
		i += alike
		branch, stem := "├ ", "│ "
		if i == len(n.Children) {
			branch, stem = "└ ", "  "
		}
		rows = append(rows, rowsOf(child, name, below+branch, below+stem, state, now)...)
	}
	return rows
}

// isLike reports whether two nodes differ in their names only.
func (n *Node) isLike(other *Node) bool {
	a, b := *n, *other
	a.Group, b.Group, a.Children, b.Children = "", "", nil, nil
	if !reflect.DeepEqual(a, b) || len(n.Children) != len(other.Children) {
		return false
	}
	for i := range n.Children {
		if !n.Children[i].isLike(&other.Children[i]) {
			return false
		}
	}
	return true
}

// unitOf is what a node counts.
func unitOf(n *Node) string {
	if n.Leaf {
		return "pod"
	}
	return "part"
}

// stateOf is the state of a sub-group in words.
func stateOf(n *Node) string {
	switch {
	case n.Surplus > 0:
		return message.Count(n.Surplus, unitOf(n)) + " above the minimum"
	case n.Bound >= n.Need && n.Ready >= n.Need:
		return "ready"
	case n.Bound >= n.Need:
		return "bound"
	case n.Exist < n.Need:
		return fmt.Sprintf("lacks %d", n.Need-n.Exist)
	}
	return "waits"
}
