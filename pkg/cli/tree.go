// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

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
	Children []Node `json:"children,omitempty"`
}

func newTree(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "tree [KIND/]NAME", Short: "Show what a gang is made of: what each part needs and has",
		Long: `Show each node of a gang's tree, with what it needs and has, GPUs, where it runs, and what is above the minimum. NAME is a PodGroup, a
pod, or an owner of pods, such as a PodCliqueSet, a Job or a JobSet; all gangs of it are shown.`,
		Example: "  kubectl muster tree pcs/chat -n web",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			w, err := o.world(ctx)
			if err != nil {
				return err
			}
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
			if len(trees) == 1 {
				return o.print(trees[0], func(out io.Writer) { o.printTrees(out, trees) })
			}
			list := struct {
				typeMeta `json:",inline"`
				Items    []Tree `json:"items"`
			}{metaOf("TreeList"), trees}
			return o.print(list, func(out io.Writer) { o.printTrees(out, trees) })
		},
	}
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
	t := &Tree{typeMeta: metaOf("Tree"), Namespace: key.Namespace, Name: key.Name, Phase: string(status.Phase), Reason: string(status.Reason)}
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
	for _, child := range g.Children() {
		c := n.node(child)
		x.GPUs, x.HeldGPUs = x.GPUs+c.GPUs, x.HeldGPUs+c.HeldGPUs
		x.Children = append(x.Children, c)
	}
	return x
}

func (o *options) printTrees(w io.Writer, trees []Tree) {
	for i, t := range trees {
		if i > 0 {
			fmt.Fprintln(w)
		}
		rows := [][]string{{"NAME", "NEEDS", "BOUND", "EXIST", "READY", "GPUS", "STATE", "WHERE"}}
		rows = append(rows, rowsOf(&t.Node, t.Name, "", "", t.Phase)...)
		o.table(w, rows)
		if t.Reason != "" {
			o.section(w, "why", clauses(t.Reason+": "+t.Message)...)
		} else if t.Message != "" {
			o.section(w, "why", t.Message)
		}
	}
}

// rowsOf returns the rows of a node and those below it. prefix is drawn before its name, below before those of its
// children.
func rowsOf(n *Node, name, prefix, below, state string) [][]string {
	row := []string{prefix + name, message.Count(n.Need, unitOf(n)), fmt.Sprint(n.Bound), fmt.Sprint(n.Exist), fmt.Sprint(n.Ready), "", state, n.Where}
	if n.GPUs > 0 {
		row[5] = fmt.Sprintf("%d/%d", n.HeldGPUs, n.GPUs)
	}
	rows := [][]string{row}
	for i := range n.Children {
		child := &n.Children[i]
		branch, stem := "├ ", "│ "
		if i == len(n.Children)-1 {
			branch, stem = "└ ", "  "
		}
		rows = append(rows, rowsOf(child, strings.TrimPrefix(child.Group, n.Group+"-"), below+branch, below+stem, stateOf(child))...)
	}
	return rows
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
