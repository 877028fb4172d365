// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/advice"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangadmission"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// Explanation is why a gang waits, and what would let it start.
type Explanation struct {
	typeMeta  `json:",inline"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"` // of the PodGroup
	// Verdict is Runs, Starts (it would start now), Preempts (others would end for it), or Waits.
	Verdict string `json:"verdict"`
	// Phase is that of the PodGroup's status. A gang that is Completed has the verdict Runs: nothing of it waits.
	Phase   string `json:"phase"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Path are the groups of the tree that lack pods, from the root down to the first leaf.
	Path []Lack `json:"path,omitempty"`
	// Pods and GPUs are what the minimum needs; Priority is that with which the gang counts.
	Pods     int        `json:"pods"`
	GPUs     int64      `json:"gpus"`
	Priority *int32     `json:"priority,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	// Preempts are the gangs, and pods without one, that would end for it.
	Preempts []string `json:"preempts,omitempty"`
	// Ahead are the waiting gangs that are tried before it, at most five, and AheadTotal is their number.
	Ahead      []string `json:"ahead,omitempty"`
	AheadTotal int      `json:"aheadTotal,omitempty"`
	// Holders hold GPUs, those that hold most first, at most five.
	Holders []Holder `json:"holders,omitempty"`
	// Set is the state of the PodCliqueSet that the gang is a replica of. nil: of none.
	Set *SetState `json:"podCliqueSet,omitempty"`
	// Advice are changes after which it would start. nil: it runs, or would start.
	Advice *advice.Advice `json:"advice,omitempty"`
	// Taken is when the cluster was read.
	Taken time.Time `json:"taken"`
}

// Lack is what a group of the tree needs, in pods of a leaf, or in direct children.
type Lack struct {
	Group string `json:"group"`
	Need  int    `json:"need"`
	Have  int    `json:"have"` // can be placed, or are
	Leaf  bool   `json:"leaf,omitempty"`
}

// Holder is a gang, or all pods without one, with pods on nodes.
type Holder struct {
	Gang     string `json:"gang"` // "": pods without a gang
	GPUs     int64  `json:"gpus"`
	Pods     int    `json:"pods"`
	Priority int32  `json:"priority"`
}

// Verdicts of an Explanation.
const (
	verdictRuns     = "Runs"
	verdictStarts   = "Starts"
	verdictPreempts = "Preempts"
	verdictWaits    = "Waits"
)

func newWhy(o *options) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: "why [KIND/]NAME | why --all", Short: "Say why a gang waits, and what would let it start now",
		Long: `Say why a gang waits, and the smallest changes after which it would start now. NAME is a PodGroup, a pod, or an owner of pods, such as a
PodCliqueSet, a Job or a JobSet. The gang is planned by muster-scheduler's own code on what is read, and so is each change before it is
printed. Of a PodCliqueSet also: why it is not available, what its update waits for, and when what is below its minimum is terminated.`,
		Example: `  kubectl muster why train
  kubectl muster why job/train -n ml
  kubectl muster why pod/train-0 -o json
  kubectl muster why --all`,
		Args: func(_ *cobra.Command, args []string) error {
			if all != (len(args) == 0) || len(args) > 2 {
				return fmt.Errorf("name one gang: kubectl muster why NAME, or --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), func(ctx context.Context, o *options, w *world) error {
				if all {
					return o.whyAll(ctx, w)
				}
				kind, name := splitName(args)
				keys, err := w.gangsOf(o.namespace(), kind, name)
				if err != nil {
					return err
				}
				return o.why(ctx, w, keys)
			})
		},
	}
	cmd.ValidArgsFunction = o.completeNames("podgroups."+v2alpha2.GroupName, true)
	o.addWatch(cmd)
	cmd.Flags().DurationVar(&o.limit, "limit", time.Second, "How long changes are tried.")
	cmd.Flags().BoolVar(&all, "all", false, "All gangs that wait, in all namespaces, by reason.")
	return cmd
}

// why explains one of the gangs of an object: the first that waits; if none does, the first that does not run.
func (o *options) why(ctx context.Context, w *world, keys []gangs.Key) error {
	var chosen *Explanation
	for _, key := range keys {
		x, err := w.explain(ctx, key, o.limit)
		if err != nil {
			return err
		}
		if chosen == nil || chosen.Verdict == verdictRuns || x.Verdict == verdictWaits {
			chosen = x
		}
		if chosen.Verdict == verdictWaits {
			break
		}
	}
	chosen.Set = w.setOf(gangs.Key{Namespace: chosen.Namespace, Name: chosen.Name})
	if err := o.print(chosen, func(out io.Writer) { o.printExplanation(out, chosen, len(keys)) }); err != nil {
		return err
	}
	if chosen.Verdict == verdictWaits {
		return errBlocked
	}
	return nil
}

// explain plans a gang, and looks for what would let it start. limit 0: it does not look.
func (w *world) explain(ctx context.Context, key gangs.Key, limit time.Duration) (*Explanation, error) {
	var ahead []string
	total := 0
	if limit > 0 {
		ahead, total = w.ahead(key)
	}
	out, err := w.Offline.Try(ctx, key, gangadmission.Options{Explain: true, Preempt: true, Record: true})
	if err != nil {
		return nil, err
	}
	x, err := w.explainFacts(key)
	if err != nil {
		return nil, err
	}
	facts, _ := w.Offline.Facts(key)
	switch {
	case x.Verdict == verdictRuns:
		return x, nil
	case len(out.Placements) > 0 || out.Waits:
		x.Verdict, x.Reason, x.Message = verdictStarts, "", startsText(out)
		x.Ahead, x.AheadTotal = ahead, total
		return x, nil
	case out.Preempting != nil:
		x.Verdict, x.Preempts = verdictPreempts, advice.Victims(out)
		return x, nil
	}
	x.Verdict, x.Ahead, x.AheadTotal = verdictWaits, ahead, total
	x.Path = pathOf(facts.Tree, out)
	if out.Work == nil {
		x.preferTold(&facts)
		return x, nil
	}
	x.Holders = w.holders()
	if limit > 0 {
		x.Advice, err = advice.Find(ctx, w.Cluster, key, out, limit)
	}
	return x, err
}

// startsText says how a gang would start that has a plan, or waits for pods that are ending.
func startsText(out *gangadmission.Outcome) string {
	if out.Waits {
		return "it starts on the room of pods that are ending"
	}
	return "it can be planned now"
}

// explainFacts returns what the status of a gang would say.
func (w *world) explainFacts(key gangs.Key) (*Explanation, error) {
	facts, ok := w.Offline.Facts(key)
	if !ok || facts.Group == nil {
		return nil, fmt.Errorf("there is no PodGroup %s", key)
	}
	x := &Explanation{
		typeMeta: metaOf("Explanation"), Namespace: key.Namespace, Name: key.Name, Priority: facts.Priority, GPUs: facts.GPUs, Taken: w.snapshot.Taken,
	}
	if facts.Tree != nil {
		x.Pods = facts.Tree.MinPods()
	}
	if since := waitingSince(&facts); !since.IsZero() {
		x.Since = &since
	}
	status := podgroup.Status(facts, metav1.NewTime(w.Offline.Now()))
	satisfied := meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionSatisfied)
	x.Phase, x.Reason, x.Message = string(status.Phase), satisfied.Reason, satisfied.Message
	x.Verdict = verdictWaits
	if satisfied.Status == metav1.ConditionTrue {
		x.Verdict, x.Message = verdictRuns, status.Summary
	}
	return x, nil
}

// preferTold takes the message of the PodGroup's status if it gives the same reason: muster-scheduler has read more
// about pods that do not exist, such as their owners.
func (x *Explanation) preferTold(facts *podgroup.Facts) {
	told := meta.FindStatusCondition(facts.Group.Status.Conditions, v2alpha2.ConditionSatisfied)
	if told != nil && told.Reason == x.Reason && told.Status == metav1.ConditionFalse && told.Message != "" { // an anonymized snapshot has none
		x.Message = told.Message
	}
}

// waitingSince is since when a gang waits, as its status has it, or since it has been there. zero: it is not known.
func waitingSince(facts *podgroup.Facts) time.Time {
	if c := meta.FindStatusCondition(facts.Group.Status.Conditions, v2alpha2.ConditionSatisfied); c != nil {
		return c.LastTransitionTime.Time
	}
	return facts.Group.CreationTimestamp.Time
}

// maxListed is the number of gangs that a text or a list names.
const maxListed = 5

// ahead returns the first of the waiting gangs of the same or a higher priority that are tried before the gang, and
// their number.
func (w *world) ahead(key gangs.Key) ([]string, int) {
	var names []string
	order := w.Offline.Registry().InOrder()
	at := slices.Index(order, key)
	if at < 0 {
		return nil, 0
	}
	for _, other := range order[:min(at, maxListed)] {
		names = append(names, other.String())
	}
	return names, at
}

// pathOf returns the groups that lack something, from the root down.
func pathOf(tree *gang.Tree, out *gangadmission.Outcome) []Lack {
	if tree == nil || out.Short == nil || len(out.Short.Leaves) == 0 {
		return nil
	}
	leaf := out.Short.Leaves[0]
	path := []Lack{{Group: leaf.Leaf, Need: leaf.Need, Have: leaf.Placed, Leaf: true}}
	if leaf.Refusal == nil {
		path[0].Have = leaf.Available
	}
	g := tree.Group(leaf.Leaf)
	if g == nil || g.Parent() == nil {
		return path
	}
	for g = g.Parent(); g != nil; g = g.Parent() {
		at := slices.IndexFunc(out.Short.Groups, func(s placement.GroupShortfall) bool { return s.Group == g.Name() })
		if at >= 0 {
			path = append(path, Lack{Group: g.Name(), Need: out.Short.Groups[at].Need, Have: out.Short.Groups[at].Can})
		}
	}
	slices.Reverse(path)
	return path
}

// holders returns who holds most GPUs.
func (w *world) holders() []Holder {
	var all []Holder
	for key, pods := range w.Pods {
		h := Holder{Pods: len(pods)}
		if key.Name != "" {
			h.Gang = key.String()
		}
		for _, pod := range pods {
			h.GPUs += podgroup.GPUs(pod)
			if pod.Spec.Priority != nil {
				h.Priority = max(h.Priority, *pod.Spec.Priority)
			}
		}
		if facts, ok := w.Offline.Facts(key); ok && key.Name != "" && facts.Priority != nil {
			h.Priority = *facts.Priority
		}
		if h.GPUs > 0 {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b Holder) int { return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(a.Gang, b.Gang)) })
	return all[:min(len(all), maxListed)]
}

// printExplanation prints an explanation; of is the number of gangs of the object that was named.
func (o *options) printExplanation(w io.Writer, x *Explanation, of int) {
	verdict, colour := strings.ToUpper(x.Verdict), map[string]string{verdictRuns: green, verdictStarts: green, verdictPreempts: yellow, verdictWaits: red}[x.Verdict]
	if x.Phase == string(v2alpha2.PodGroupCompleted) {
		verdict, colour = "COMPLETED", green
	}
	name := printable(x.Namespace + "/" + x.Name)
	head, length := o.colour(bold, name)+"  "+o.colour(colour, verdict), utf8.RuneCountInString(name)+2+len(verdict)
	if x.Since != nil && x.Verdict == verdictWaits {
		since := " " + age(*x.Since, x.Taken)
		head, length = head+since, length+len(since)
	}
	size := "needs " + message.Count(x.Pods, "pod")
	if x.GPUs > 0 {
		size += fmt.Sprintf(", %d GPUs in all", x.GPUs)
	}
	if x.Priority != nil {
		size += fmt.Sprintf(", priority %d", *x.Priority)
	}
	if length+2+len(size) <= o.width() {
		fmt.Fprintln(w, head+"  "+size)
	} else {
		fmt.Fprintln(w, head)
		o.section(w, "", size)
	}
	if of > 1 {
		o.section(w, "", fmt.Sprintf("one of its %s; kubectl muster tree shows all", message.Count(of, "gang")))
	}
	why := clauses(x.Message)
	if x.Reason != "" && x.Verdict != verdictRuns && len(why) > 0 {
		why[0] = x.Reason + ": " + why[0]
	}
	o.section(w, "why", why...)
	if len(x.Path) > 1 {
		var parts []string
		for _, l := range x.Path {
			what := "sub-groups"
			if l.Leaf {
				what = "pods"
			}
			parts = append(parts, fmt.Sprintf("%s (%d of %d %s)", cmp.Or(l.Group, x.Name), l.Have, l.Need, what))
		}
		o.section(w, "where", strings.Join(parts, " > "))
	}
	if len(x.Preempts) > 0 {
		o.section(w, "ends", "for it: "+message.ListNames(x.Preempts, maxListed, len(x.Preempts), ", "))
	}
	if x.AheadTotal > 0 {
		o.section(w, "ahead", fmt.Sprintf("%s before it: %s", message.CountAre(x.AheadTotal, "gang")+" tried", message.ListNames(x.Ahead, maxListed, x.AheadTotal, ", ")))
	}
	if len(x.Holders) > 0 {
		var parts []string
		for _, h := range x.Holders {
			parts = append(parts, fmt.Sprintf("%s %d (priority %d)", cmp.Or(h.Gang, "pods without a gang"), h.GPUs, h.Priority))
		}
		o.section(w, "hold", "GPUs: "+strings.Join(parts, ", "))
	}
	o.printAdvice(w, x.Advice)
	o.printSet(w, x.Set, x.Taken)
}

// printAdvice prints the changes after which a gang would start.
func (o *options) printAdvice(w io.Writer, a *advice.Advice) {
	switch {
	case a == nil:
	case len(a.Changes) == 0:
		o.section(w, "starts", fmt.Sprintf("with none of the changes that were tried (%d)", a.Tried))
	default:
		lines := []string{"now, after any one of these (each was tried with the scheduler's own code):"}
		for i := range a.Changes {
			x := &a.Changes[i]
			line := "  - " + x.Text
			if len(x.Preempts) > 0 {
				line += "; it preempts " + message.ListNames(x.Preempts, maxListed, len(x.Preempts), ", ")
			}
			lines = append(lines, line)
			if x.Command != "" {
				lines = append(lines, "      "+x.Command)
			}
		}
		o.section(w, "starts", lines...)
	}
	if a != nil && a.Cut {
		o.section(w, "", "The time was over before all changes were tried.")
	}
}

// Waiting are the gangs that wait, by reason.
type Waiting struct {
	typeMeta `json:",inline"`
	Gangs    int             `json:"gangs"`
	GPUs     int64           `json:"gpus"`
	Reasons  []WaitingReason `json:"reasons"`
	Taken    time.Time       `json:"taken"`
}

// WaitingReason are the gangs that wait for one reason, those that wait for most GPUs first.
type WaitingReason struct {
	Reason   string        `json:"reason"`
	Gangs    int           `json:"gangs"`
	GPUs     int64         `json:"gpus"` // that they wait for
	Examples []WaitingGang `json:"examples"`
}

// WaitingGang is a gang that waits.
type WaitingGang struct {
	Gang    string `json:"gang"`
	GPUs    int64  `json:"gpus"`
	Message string `json:"message"`
}

// whyAll prints the reasons of all gangs that wait, as muster-scheduler has written them. Gangs of which it has written
// none are planned, until the time is over.
func (o *options) whyAll(ctx context.Context, w *world) error {
	list := &Waiting{typeMeta: metaOf("Waiting"), Taken: w.snapshot.Taken}
	reasons := map[string]*WaitingReason{}
	until := w.Offline.Now().Add(o.limit)
	for _, g := range w.waitingGangs() {
		if g.Reason == "" && w.Offline.Now().Before(until) {
			x, err := w.explain(ctx, g.key, 0)
			if err != nil {
				return err
			}
			g.Reason, g.Message = cmp.Or(x.Reason, startsNow), message.FirstClause(x.Message)
		}
		g.Reason = cmp.Or(g.Reason, "(no status)")
		r := reasons[g.Reason]
		if r == nil {
			r = &WaitingReason{Reason: g.Reason}
			reasons[g.Reason] = r
		}
		gpus := g.GPUs - g.HeldGPUs
		r.Gangs, r.GPUs = r.Gangs+1, r.GPUs+gpus
		list.Gangs, list.GPUs = list.Gangs+1, list.GPUs+gpus
		r.Examples = append(r.Examples, WaitingGang{g.Gang, gpus, g.Message})
	}
	for _, r := range reasons {
		slices.SortStableFunc(r.Examples, func(a, b WaitingGang) int { return cmp.Compare(b.GPUs, a.GPUs) })
		r.Examples = r.Examples[:min(len(r.Examples), maxListed)]
		list.Reasons = append(list.Reasons, *r)
	}
	slices.SortFunc(list.Reasons, func(a, b WaitingReason) int {
		return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(b.Gangs, a.Gangs), cmp.Compare(a.Reason, b.Reason))
	})
	err := o.print(list, func(out io.Writer) { o.printWaiting(out, list) })
	if err == nil && list.Gangs > 0 {
		return errBlocked
	}
	return err
}

// startsNow is the reason of a gang that has a plan.
const startsNow = "(starts now)"

func (o *options) printWaiting(w io.Writer, list *Waiting) {
	if list.Gangs == 0 {
		fmt.Fprintln(w, "No gang waits.")
		return
	}
	fmt.Fprintf(w, "%s %s for %d GPUs\n\n", message.Count(list.Gangs, "gang"), message.Plural(list.Gangs, "waits", "wait"), list.GPUs)
	rows := [][]string{{"REASON", "GANGS", "GPUS", "FOR EXAMPLE"}}
	for _, r := range list.Reasons {
		for i, e := range r.Examples {
			row := []string{"", "", "", e.Gang + ": " + e.Message}
			if i == 0 {
				row = []string{r.Reason, fmt.Sprint(r.Gangs), fmt.Sprint(r.GPUs), row[3]}
			}
			rows = append(rows, row)
		}
	}
	o.table(w, rows)
}
