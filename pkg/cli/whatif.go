// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/advice"
	"github.com/muster-project/muster/pkg/apis/config/profile"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/scheduler/gangadmission"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// WhatIf is what would become of gangs.
type WhatIf struct {
	typeMeta `json:",inline"`
	// Fits: all of them start, or go on.
	Fits  bool         `json:"fits"`
	Gangs []WhatIfGang `json:"gangs"`
	// Copies is how many times the files would fit, with --count.
	Copies *int `json:"copies,omitempty"`
	// Notes are sentences about what is not planned.
	Notes []string  `json:"notes,omitempty"`
	Taken time.Time `json:"taken"`
}

// WhatIfGang is what would become of one gang.
type WhatIfGang struct {
	Gang string `json:"gang"`
	// Verdict is Starts, Preempts (others would end for it), Waits, or Runs (a drain does not affect its minimum).
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Nodes are those of the pods of the minimum.
	Nodes    []WhatIfNode `json:"nodes,omitempty"`
	Preempts []string     `json:"preempts,omitempty"`
}

// WhatIfNode is a node with the pods that would be placed on it.
type WhatIfNode struct {
	Node string   `json:"node"`
	Pods []string `json:"pods"`
}

func newWhatIf(o *options) *cobra.Command {
	var files, drain []string
	count := 0
	cmd := &cobra.Command{
		Use: "what-if -f FILE... [--drain NODE...]", Short: "Say whether gangs would start, where, and whom they would displace",
		Long: `Say whether the gangs of manifests would start if they were created now, on which nodes, and which gangs of lower priority would end for
them; or what becomes of the gangs on nodes that are drained. Nothing is written. The files have PodCliqueSets, Jobs, CronJobs,
StatefulSets, Deployments, JobSets, LeaderWorkerSets, RayClusters, RayJobs, TrainJobs with their runtime, or PodGroups and pods. Gangs are
planned one after another, the highest priority first; only their minimums are planned.`,
		Example: `  kubectl muster what-if -f train.yaml && kubectl create -f train.yaml
  kubectl muster what-if -f train.yaml --count 100
  kubectl muster what-if --drain node-0003,node-0004`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 && len(drain) == 0 {
				return errors.New("name files with -f, or nodes with --drain")
			}
			return o.whatIf(cmd.Context(), files, drain, count)
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "Manifests: files, folders, or - for the standard input.")
	cmd.Flags().StringSliceVar(&drain, "drain", nil, "Nodes that are drained before.")
	_ = cmd.RegisterFlagCompletionFunc("drain", o.completeNames("nodes", false))
	cmd.Flags().IntVar(&count, "count", 0, "Say how many copies of the manifests would start beside each other, up to this number.")
	return cmd
}

func (o *options) whatIf(ctx context.Context, files, drain []string, count int) error {
	var m *manifest
	var err error
	if len(files) > 0 {
		if m, err = o.readManifest(files, o.namespace()); err != nil {
			return err
		}
		if err := m.isPlannable(); err != nil {
			return err
		}
	}
	w, err := o.world(ctx)
	if err != nil {
		return err
	}
	if m != nil {
		if err := m.addSets(w.snapshot); err != nil {
			return err
		}
		if err := m.isPlannable(); err != nil {
			return err
		}
	}
	x := &WhatIf{typeMeta: metaOf("WhatIf"), Fits: true, Taken: w.snapshot.Taken}
	if len(drain) > 0 {
		if err := w.drain(ctx, drain, x); err != nil {
			return err
		}
	}
	if m != nil {
		if err := m.complete(w.snapshot); err != nil {
			return err
		}
		if len(m.ignored) > 0 {
			o.complain("warning", "ignored, they make no pods: "+strings.Join(m.ignored, ", "))
		}
		if err := w.start(ctx, m, x); err != nil {
			return err
		}
		if count > 0 {
			copies, err := w.countCopies(ctx, m, x, count)
			if err != nil {
				return err
			}
			x.Copies = &copies
		}
	}
	if err := o.print(x, func(out io.Writer) { o.printWhatIf(out, x) }); err != nil {
		return err
	}
	if !x.Fits {
		return errBlocked
	}
	return nil
}

// create adds the objects of a manifest, and returns its gangs in order, and its pods that are not planned: those
// without a gang, and those of other schedulers.
func (w *world) create(ctx context.Context, m *manifest) (keys []gangs.Key, single []*corev1.Pod, err error) {
	seen := sets.New[gangs.Key]()
	note := func(key gangs.Key) {
		if !seen.Has(key) {
			seen.Insert(key)
			keys = append(keys, key)
		}
	}
	for _, g := range m.groups {
		key := client.ObjectKeyFromObject(g)
		if facts, ok := w.Offline.Facts(key); ok && facts.Group != nil {
			return nil, nil, fmt.Errorf("PodGroup %s exists already: choose another name or namespace", key)
		}
		w.Offline.SetGroup(g)
		note(key)
	}
	if err := w.createClaims(ctx, m); err != nil {
		return nil, nil, err
	}
	for _, pod := range m.pods {
		if name := membership.Group(pod); name != "" && pod.Spec.SchedulerName == profile.SchedulerName {
			w.Offline.SetPod(pod)
			note(gangs.Key{Namespace: pod.Namespace, Name: name})
			continue
		}
		single = append(single, pod)
	}
	return keys, single, nil
}

// start plans the gangs of a manifest.
func (w *world) start(ctx context.Context, m *manifest, x *WhatIf) error {
	keys, single, err := w.create(ctx, m)
	if err != nil {
		return err
	}
	for _, key := range w.byPriority(keys) {
		g, err := w.tryGang(ctx, key)
		if err != nil {
			return err
		}
		x.Fits = x.Fits && g.Verdict != verdictWaits
		x.Gangs = append(x.Gangs, *g)
	}
	x.Notes = append(x.Notes, m.notes...)
	if len(single) > 0 {
		x.Notes = append(x.Notes, fmt.Sprintf("%s %s scheduled alone, or by another scheduler than %s: not planned (%s)",
			message.Count(len(single), "pod"), message.Plural(len(single), "is", "are"), profile.SchedulerName, single[0].Name))
	}
	if len(keys) == 0 {
		return fmt.Errorf("the files have no gang to plan: %s", cmp.Or(strings.Join(x.Notes, "; "), "their PodGroups have no pods"))
	}
	return nil
}

// byPriority sorts gangs as the scheduler tries them, those of a higher priority first, otherwise as they are.
func (w *world) byPriority(keys []gangs.Key) []gangs.Key {
	priority := func(key gangs.Key) int32 {
		facts, _ := w.Offline.Facts(key)
		return ptr.Deref(facts.Priority, 0)
	}
	return slices.SortedStableFunc(slices.Values(keys), func(a, b gangs.Key) int { return cmp.Compare(priority(b), priority(a)) })
}

// tryGang plans a gang, and lets it start if it can.
func (w *world) tryGang(ctx context.Context, key gangs.Key) (*WhatIfGang, error) {
	out, err := w.Offline.Try(ctx, key, gangadmission.Options{Explain: true, Preempt: true, Record: true})
	if err != nil {
		return nil, err
	}
	g := &WhatIfGang{Gang: key.String()}
	switch {
	case len(out.Placements) > 0:
		g.Verdict, g.Nodes = verdictStarts, nodesOf(out)
		return g, w.Offline.Start(ctx, out)
	case out.Preempting != nil:
		g.Verdict, g.Preempts = verdictPreempts, advice.Victims(out)
		out.Placements = out.Preempting.Placements
		g.Nodes = nodesOf(out)
		return g, nil
	case out.Waits:
		g.Verdict, g.Message = verdictStarts, "on the room of pods that are ending"
		return g, nil
	}
	g.Verdict = verdictWaits
	if facts, ok := w.Offline.Facts(key); !ok || facts.Group == nil {
		g.Reason, g.Message = "PodGroupNotFound", fmt.Sprintf("there is no PodGroup %s in the cluster or in the files", key)
		return g, nil
	}
	x, err := w.explainFacts(key)
	if err != nil {
		return nil, err
	}
	if x.Verdict == verdictRuns {
		g.Verdict = verdictRuns
	}
	g.Reason, g.Message = x.Reason, x.Message
	return g, nil
}

// nodesOf returns the nodes of a plan, with the pods on each.
func nodesOf(out *gangadmission.Outcome) []WhatIfNode {
	pods := map[string][]string{}
	for _, p := range out.Placements {
		pods[p.Node] = append(pods[p.Node], out.Work.Pods[p.Pod.Index].Name)
	}
	var nodes []WhatIfNode
	for _, node := range slices.Sorted(maps.Keys(pods)) {
		slices.Sort(pods[node])
		nodes = append(nodes, WhatIfNode{node, pods[node]})
	}
	return nodes
}

// countCopies returns how many times the manifest starts without an eviction, at most limit; it has been tried once.
func (w *world) countCopies(ctx context.Context, m *manifest, x *WhatIf, limit int) (int, error) {
	if slices.ContainsFunc(x.Gangs, func(g WhatIfGang) bool { return g.Verdict != verdictStarts }) {
		return 0, nil
	}
	n := 1
	for ; n < limit; n++ {
		keys, _, err := w.create(ctx, m.copyOf(n))
		if err != nil {
			return n, err
		}
		for _, key := range keys {
			out, err := w.Offline.Try(ctx, key, gangadmission.Options{})
			if err != nil || len(out.Placements) == 0 {
				return n, err
			}
			if err := w.Offline.Start(ctx, out); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// drain takes the pods off nodes and plans the gangs that lose some: their controllers create them again, as they are.
// Pods that nobody controls, and those that are being deleted already, are not created again.
func (w *world) drain(ctx context.Context, names []string, x *WhatIf) error {
	drained := sets.New(names...)
	for _, name := range names {
		node := w.Nodes[name]
		if node == nil {
			text := "there is no node " + name
			if similar := similarNames(name, slices.Sorted(maps.Keys(w.Nodes))); len(similar) > 0 {
				text += "; did you mean " + strings.Join(similar, ", ") + "?"
			}
			return errors.New(text)
		}
		closed := node.DeepCopy()
		closed.Spec.Unschedulable = true
		w.Offline.SetNode(closed)
	}
	affected, runs := map[gangs.Key]int{}, map[gangs.Key]int{}
	for key, pods := range w.Pods {
		for _, pod := range pods {
			if !drained.Has(pod.Spec.NodeName) || isOfDaemonSet(pod) {
				continue
			}
			again, err := w.evict(ctx, pod)
			if err != nil {
				return err
			}
			if key.Name == "" {
				continue
			}
			affected[key]++
			if again != nil {
				if run, begins := membership.Run(again); begins {
					runs[key] = max(runs[key], run)
				}
			}
		}
	}
	for key, run := range runs { // what is of the run before is deleted by its workload, and created again
		for _, pod := range w.Pods[key] {
			if of, _ := membership.Run(pod); of > 0 && of < run && !drained.Has(pod.Spec.NodeName) {
				if _, err := w.evict(ctx, pod); err != nil {
					return err
				}
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(affected), func(a, b gangs.Key) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range w.byPriority(keys) {
		g, err := w.tryGang(ctx, key)
		if err != nil {
			return err
		}
		x.Fits = x.Fits && g.Verdict != verdictWaits
		x.Gangs = append(x.Gangs, *g)
	}
	return nil
}

// evict takes a pod off its node, and adds the one that its controller creates instead, which it returns; nil: none.
func (w *world) evict(ctx context.Context, pod *corev1.Pod) (again *corev1.Pod, err error) {
	if err := w.Offline.FreeRoom(pod); err != nil {
		return nil, err
	}
	again = replacementOf(pod, w.snapshot.Taken)
	if err := w.freeClaims(ctx, pod, again); err != nil {
		return nil, err
	}
	w.Offline.Replace(pod, again)
	return again, nil
}

func isOfDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// replacementOf returns the pod that its controller creates instead of an evicted one; nil: there is none, or it has
// done so already.
func replacementOf(pod *corev1.Pod, now time.Time) *corev1.Pod {
	if metav1.GetControllerOf(pod) == nil || pod.DeletionTimestamp != nil {
		return nil
	}
	p := pod.DeepCopy()
	p.Name, p.UID, p.Spec.NodeName, p.CreationTimestamp = p.Name+"-again", p.UID+types.UID("-again"), "", metav1.NewTime(now)
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, ResourceClaimStatuses: p.Status.ResourceClaimStatuses}
	return p
}

func (o *options) printWhatIf(w io.Writer, x *WhatIf) {
	if len(x.Gangs) == 0 {
		fmt.Fprintln(w, "No gang is affected.")
	}
	for _, g := range x.Gangs {
		verdict := map[string]string{
			verdictRuns: o.colour(green, "GOES ON"), verdictStarts: o.colour(green, "STARTS"), verdictPreempts: o.colour(yellow, "PREEMPTS"),
			verdictWaits: o.colour(red, "WAITS"),
		}[g.Verdict]
		fmt.Fprintln(w, o.colour(bold, printable(g.Gang))+"  "+verdict)
		if g.Reason != "" && g.Verdict == verdictWaits {
			o.section(w, "why", clauses(g.Reason+": "+g.Message)...)
		} else if g.Message != "" {
			o.section(w, "", g.Message)
		}
		if len(g.Preempts) > 0 {
			o.section(w, "ends", "for it: "+message.ListNames(g.Preempts, maxListed, len(g.Preempts), ", "))
		}
		var nodes []string
		for _, n := range g.Nodes {
			nodes = append(nodes, fmt.Sprintf("%s: %s", n.Node, message.ListNames(n.Pods, maxListed, len(n.Pods), ", ")))
		}
		if more := len(nodes) - maxNodes; more > 0 {
			nodes = append(nodes[:maxNodes], "and "+message.Count(more, "more node"))
		}
		if len(nodes) > 0 {
			o.section(w, "where", nodes...)
		}
	}
	for _, note := range x.Notes {
		o.section(w, "note", note)
	}
	if x.Copies != nil {
		fmt.Fprintf(w, "\n%s would start beside each other\n", fmt.Sprint(*x.Copies)+message.Plural(*x.Copies, " copy", " copies"))
	}
}

// maxNodes is the number of nodes that a text lists.
const maxNodes = 20
