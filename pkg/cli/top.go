// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/advice"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/snapshot"
)

// Top is who uses the GPUs of the cluster.
type Top struct {
	typeMeta `json:",inline"`
	GPUs     int64 `json:"gpus"`
	Used     int64 `json:"used"`
	// Incomplete are those of Used that gangs hold whose minimum is not bound; Ending those of pods that are being
	// deleted.
	Incomplete int64 `json:"incomplete"`
	Ending     int64 `json:"ending"`
	// Free are free on nodes that take pods, Closed on those that are cordoned or not ready.
	Free   int64 `json:"free"`
	Closed int64 `json:"closed"`
	// Fits is, by the number of GPUs of a pod (1, 2, 4, 8, 16), how many such pods the free GPUs hold.
	Fits  map[string]int64 `json:"fits"`
	Nodes []TopNode        `json:"nodes"`
	// Gangs hold GPUs, those that hold most first; Waiting wait.
	Gangs   []TopGang `json:"gangs"`
	Waiting []TopGang `json:"waiting"`
	Taken   time.Time `json:"taken"`
}

// TopNode is a node with GPUs.
type TopNode struct {
	Name  string `json:"name"`
	Where string `json:"where,omitempty"` // its domains, the outermost first: "zone-a/rack-3"
	GPUs  int64  `json:"gpus"`
	// Cells has one letter for each GPU: that of the gang in Top.Gangs, "+" of a gang without a letter, "o" of a pod
	// without a gang, "." free, "x" free on a node that takes no pods.
	Cells string `json:"cells"`
	// Gangs are those with GPUs here, sorted.
	Gangs []string `json:"gangs,omitempty"`
	State string   `json:"state,omitempty"` // "cordoned", "not ready"
}

// TopGang is a gang that holds GPUs, or waits for them.
type TopGang struct {
	Letter   string    `json:"letter,omitempty"`
	Gang     string    `json:"gang"`
	GPUs     int64     `json:"gpus"`
	HeldGPUs int64     `json:"heldGPUs"`
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"message,omitempty"`
	Since    time.Time `json:"since,omitzero"`
}

// letters are those of the gangs that hold most.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnpqrstuvwyz"

func newTop(o *options) *cobra.Command {
	lines := 0
	cmd := &cobra.Command{
		Use: "top", Short: "Show who uses the GPUs: nodes with a cell for each GPU, gangs that hold and that wait",
		Long: `Show the nodes with GPUs, one cell for each: a letter for the gang that uses it, + for one of the gangs without a letter, o for a pod
without a gang, . if it is free, x if it is free on a node that takes no pods. Then the gangs that hold GPUs, and those that wait, with the
reasons that muster-scheduler has written. With --watch on a terminal: a screen on which nodes and gangs can be scrolled and filtered.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.watching && o.Terminal && o.output == "" {
				return o.topScreen(cmd.Context())
			}
			return o.run(cmd.Context(), func(_ context.Context, o *options, w *world) error {
				t := w.top()
				return o.print(t, func(out io.Writer) { o.printTop(out, t, lines) })
			})
		},
	}
	o.addWatch(cmd)
	cmd.Flags().IntVar(&lines, "lines", 40, "How many nodes, and how many gangs of each kind, are listed. 0: all.")
	return cmd
}

// domainLabels returns the node labels by which nodes are sorted, the outermost first: regions, zones, and the levels
// of Topologies and of PodGroups. What has fewer values is further out.
func (w *world) domainLabels() []string {
	labels := sets.New(corev1.LabelTopologyRegion, corev1.LabelTopologyZone)
	for _, t := range snapshot.All[*topologyv1alpha1.Topology](w.snapshot) {
		labels.Insert(t.Spec.NodeLabels()...)
	}
	for _, g := range snapshot.All[*v2alpha2.PodGroup](w.snapshot) {
		labels.Insert(podgroup.NamedLabels(&g.Spec)...)
	}
	labels.Delete(corev1.LabelHostname)
	values := map[string]sets.Set[string]{}
	for _, node := range w.Nodes {
		for label := range labels {
			if v := node.Labels[label]; v != "" {
				if values[label] == nil {
					values[label] = sets.New[string]()
				}
				values[label].Insert(v)
			}
		}
	}
	return slices.SortedFunc(maps.Keys(values), func(a, b string) int { return cmp.Or(cmp.Compare(len(values[a]), len(values[b])), cmp.Compare(a, b)) })
}

// top counts the GPUs.
func (w *world) top() *Top {
	t := &Top{typeMeta: metaOf("Top"), Fits: map[string]int64{}, Taken: w.snapshot.Taken}
	held := map[gangs.Key]int64{}
	onNode := map[string]map[gangs.Key]int64{}
	for key, pods := range w.Pods {
		for _, pod := range pods {
			n := podgroup.GPUs(pod)
			if n == 0 {
				continue
			}
			held[key] += n
			if onNode[pod.Spec.NodeName] == nil {
				onNode[pod.Spec.NodeName] = map[gangs.Key]int64{}
			}
			onNode[pod.Spec.NodeName][key] += n
			if pod.DeletionTimestamp != nil {
				t.Ending += n
			}
		}
	}
	holding := slices.SortedFunc(maps.Keys(held), func(a, b gangs.Key) int {
		return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a.String(), b.String()))
	})
	letter := map[gangs.Key]string{{}: "o"}
	for _, key := range holding {
		if key.Name == "" {
			continue
		}
		g := TopGang{Gang: key.String(), GPUs: held[key], HeldGPUs: held[key]}
		if len(t.Gangs) < len(letters) {
			g.Letter = letters[len(t.Gangs) : len(t.Gangs)+1]
		}
		letter[key] = cmp.Or(g.Letter, "+")
		if facts, ok := w.Offline.Facts(key); ok {
			g.GPUs = facts.GPUs
			if facts.Tree != nil && !facts.Tree.Satisfied(facts.Bound) {
				t.Incomplete += held[key]
				g.Reason = "below its minimum"
			}
		}
		t.Gangs = append(t.Gangs, g)
	}
	w.topNodes(t, onNode, letter)
	for _, g := range w.waitingGangs() {
		t.Waiting = append(t.Waiting, g.TopGang)
	}
	return t
}

// topNodes adds the nodes.
func (w *world) topNodes(t *Top, onNode map[string]map[gangs.Key]int64, letter map[gangs.Key]string) {
	for _, size := range []int64{1, 2, 4, 8, 16} {
		t.Fits[fmt.Sprint(size)] = 0
	}
	labels := w.domainLabels()
	for _, node := range w.Nodes {
		gpus := podgroup.NodeGPUs(node.Status.Allocatable)
		if gpus == 0 {
			continue
		}
		n := TopNode{Name: node.Name, GPUs: gpus, State: closedState(node)}
		var where []string
		for _, label := range labels {
			if v := node.Labels[label]; v != "" {
				where = append(where, v)
			}
		}
		n.Where = strings.Join(where, "/")
		users := slices.SortedFunc(maps.Keys(onNode[node.Name]), func(a, b gangs.Key) int { return cmp.Compare(letter[a]+a.String(), letter[b]+b.String()) })
		var cells strings.Builder
		used := int64(0)
		for _, key := range users {
			cells.WriteString(strings.Repeat(letter[key], int(onNode[node.Name][key])))
			used += onNode[node.Name][key]
			if key.Name != "" {
				n.Gangs = append(n.Gangs, key.String())
			}
		}
		slices.Sort(n.Gangs)
		free := max(0, gpus-used)
		t.GPUs, t.Used = t.GPUs+gpus, t.Used+used
		if n.State != "" {
			t.Closed += free
			cells.WriteString(strings.Repeat("x", int(free)))
		} else {
			t.Free += free
			cells.WriteString(strings.Repeat(".", int(free)))
			for _, size := range []int64{1, 2, 4, 8, 16} {
				t.Fits[fmt.Sprint(size)] += free / size
			}
		}
		n.Cells = cells.String()
		t.Nodes = append(t.Nodes, n)
	}
	slices.SortFunc(t.Nodes, func(a, b TopNode) int { return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.Name, b.Name)) })
}

// closedState is why a node takes no pods, "" if it does.
func closedState(node *corev1.Node) string {
	switch {
	case node.Spec.Unschedulable:
		return "cordoned"
	case !advice.IsReady(node):
		return "not ready"
	}
	return ""
}

// waitingGang is a gang that waits, with what its status says.
type waitingGang struct {
	TopGang
	key gangs.Key
}

// waitingGangs returns the gangs with pods that wait for their minimum, those that want most GPUs first, with what
// muster-scheduler has written about their present specs.
func (w *world) waitingGangs() []waitingGang {
	seen := map[gangs.Key]bool{}
	var waiting []waitingGang
	for _, pod := range w.pods {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: membership.Group(pod)}
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.Spec.NodeName != "" || key.Name == "" || seen[key] || ended {
			continue
		}
		seen[key] = true
		facts, ok := w.Offline.Facts(key)
		if !ok || facts.Group == nil || facts.NotOurs || facts.Tree != nil && facts.Tree.Satisfied(facts.Bound) {
			continue
		}
		g := waitingGang{TopGang{Gang: key.String(), GPUs: facts.GPUs, HeldGPUs: facts.HeldGPUs, Since: waitingSince(&facts)}, key}
		if status := &facts.Group.Status; status.ObservedGeneration == facts.Group.Generation {
			g.Reason = string(status.Reason)
			if c := meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionSatisfied); c != nil {
				g.Message = message.FirstClause(c.Message)
			}
		}
		waiting = append(waiting, g)
	}
	slices.SortFunc(waiting, func(a, b waitingGang) int { return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(a.Gang, b.Gang)) })
	return waiting
}

func (o *options) printTop(w io.Writer, t *Top, lines int) {
	for _, line := range t.head() {
		for _, part := range wrap(line, o.width()) {
			fmt.Fprintln(w, part)
		}
	}
	fmt.Fprintln(w)
	most := func(n int) int {
		if lines <= 0 {
			return n
		}
		return min(n, lines)
	}
	rest := func(n int, what string) {
		if more := n - most(n); more > 0 {
			fmt.Fprintf(w, "… and %s\n", message.Count(more, what))
		}
	}
	if len(t.Nodes) > 0 {
		o.printNodes(w, t.Nodes[:most(len(t.Nodes))])
	}
	rest(len(t.Nodes), "more node")
	rows := [][]string{{"", "HOLDS", "GPUS", "STATE"}}
	for _, g := range t.Gangs[:most(len(t.Gangs))] {
		rows = append(rows, g.holdsRow())
	}
	if len(t.Gangs) > 0 {
		fmt.Fprintln(w)
		o.table(w, rows)
	}
	rest(len(t.Gangs), "more gang")
	rows = [][]string{{"WAITS", "GPUS", "SINCE", "REASON", "MESSAGE"}}
	for _, g := range t.Waiting[:most(len(t.Waiting))] {
		rows = append(rows, g.waitsRow(t.Taken))
	}
	if len(t.Waiting) > 0 {
		fmt.Fprintln(w)
		o.table(w, rows)
	}
	rest(len(t.Waiting), "more gang")
}

// printNodes prints the table of nodes, with colours for their cells unless it is folded.
func (o *options) printNodes(w io.Writer, nodes []TopNode) {
	rows := [][]string{{"NODE", "WHERE", "GPUS", "STATE"}}
	for i := range nodes {
		rows = append(rows, []string{nodes[i].Name, nodes[i].Where, nodes[i].Cells, nodes[i].State})
	}
	o.paintedTable(w, rows, 2, o.colourCells)
}

// gangColours are those of the letters of gangs, one after the other.
var gangColours = []string{"36", "35", "34", "32", "33", "96", "95", "94", "92", "93"}

// colourCells gives runs of equal cells the colour of their gang.
func (o *options) colourCells(cells string) string {
	var out strings.Builder
	for len(cells) > 0 {
		run, colour := len(cells)-len(strings.TrimLeft(cells, cells[:1])), ""
		if at := strings.IndexByte(letters, cells[0]); at >= 0 {
			colour = gangColours[at%len(gangColours)]
		}
		out.WriteString(o.colour(colour, cells[:run]))
		cells = cells[run:]
	}
	return out.String()
}

// head returns the lines above the tables.
func (t *Top) head() []string {
	line := fmt.Sprintf("GPUs %d: %d used, %d free", t.GPUs, t.Used, t.Free)
	for _, part := range []struct {
		n    int64
		text string
	}{{t.Closed, "free on nodes that take no pods"}, {t.Incomplete, "held by gangs below their minimum"}, {t.Ending, "of pods that are ending"}} {
		if part.n > 0 {
			line += fmt.Sprintf(", %d %s", part.n, part.text)
		}
	}
	var fits []string
	for _, size := range []string{"1", "2", "4", "8", "16"} {
		fits = append(fits, fmt.Sprintf("%d x %s", t.Fits[size], size))
	}
	return []string{line, "fits now: " + strings.Join(fits, ", ")}
}

// holdsRow is the row of a gang that holds GPUs, waitsRow that of one that waits.
func (g *TopGang) holdsRow() []string {
	return []string{cmp.Or(g.Letter, "+"), g.Gang, fmt.Sprintf("%d/%d", g.HeldGPUs, g.GPUs), g.Reason}
}

func (g *TopGang) waitsRow(now time.Time) []string {
	return []string{g.Gang, fmt.Sprint(g.GPUs), age(g.Since, now), g.Reason, g.Message}
}
