// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// width is the longest line, in characters.
const width = 96

// painter colours text, or leaves it as it is. Colour only repeats information that the text has.
type painter struct{ colour bool }

func (p painter) paint(code, text string) string {
	if !p.colour || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p painter) bold(text string) string { return p.paint("1", text) }

// gang colours text about the gang with this letter.
func (p painter) gang(letter, text string) string {
	return p.paint(map[string]string{"A": "36", "B": "33", "C": "35", "D": "34", "E": "36"}[letter], text)
}

// state colours the state of a gang or sub-group: green if it is good, yellow if the gang waits.
func (p painter) state(good bool, text string) string {
	if good {
		return p.paint("32", text)
	}
	return p.paint("33", text)
}

// picture shows the scene: the status of each gang and PodCliqueSet, then the nodes.
func picture(s scene, p painter) string {
	var b strings.Builder
	for _, name := range gangs {
		g := s.group(name)
		if g.Name == "" {
			continue
		}
		fmt.Fprintf(&b, "    %s  %s", p.gang(letterOf(name), letterOf(name)+" "+p.bold(name)), p.state(good(g.Status.Phase), string(g.Status.Phase)))
		if g.Status.Scheduled != "" && g.Status.Phase != v2alpha2.PodGroupCompleted {
			fmt.Fprintf(&b, "  %s pods of the minimum", g.Status.Scheduled)
		}
		b.WriteByte('\n')
		if why := whyNotAll(s, g); why != "" {
			b.WriteString(wrap(why, "      ", "        "))
		}
	}
	for _, set := range s.sets {
		if says := availability(set); says != "" {
			b.WriteString(wrap(says, "    ", "        "))
		}
	}
	return b.String() + drawNodes(s, p)
}

// aboveMinimum is the part of a summary about pods that are bound above the minimum.
var aboveMinimum = regexp.MustCompile(`\d+ pods? above the minimum`)

// whyNotAll returns the reason and summary of the status, "" if no pod of the gang waits.
func whyNotAll(s scene, g *v2alpha2.PodGroup) string {
	if g.Status.Phase == v2alpha2.PodGroupCompleted || g.Status.Phase == v2alpha2.PodGroupAdmitted && total(s.bound(g.Name)) == len(s.ofGang(g.Name)) {
		return ""
	}
	if g.Status.Reason != "" {
		return string(g.Status.Reason) + ": " + g.Status.Summary
	}
	return g.Status.Summary
}

func good(phase v2alpha2.PodGroupPhase) bool {
	return phase == v2alpha2.PodGroupAdmitted || phase == v2alpha2.PodGroupCompleted
}

// availability returns the phase and the condition Available of a PodCliqueSet as text, "" if it has no such condition
// yet.
func availability(set *v1alpha1.PodCliqueSet) string {
	c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionAvailable)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("PodCliqueSet %s: %s, %s=%s: %s", set.Name, set.Status.Phase, c.Type, c.Status, c.Message)
}

// drawNodes draws one line per rack, one cell per GPU.
func drawNodes(s scene, p painter) string {
	var b strings.Builder
	rack, closed := "", false
	for _, node := range s.nodes {
		if of := node.Labels[controlplane.RackLabel]; of != rack {
			fmt.Fprintf(&b, "%s    %s", strings.Repeat("\n", min(1, b.Len())), of)
			rack = of
		}
		fmt.Fprintf(&b, "   %s ", node.Name)
		for _, cell := range strings.Split(s.cells(node), "") {
			b.WriteString(p.gang(cell, cell))
		}
		closed = closed || node.Spec.Unschedulable
	}
	var legend []string
	for _, name := range gangs {
		if held := s.held(name); held > 0 {
			legend = append(legend, p.gang(letterOf(name), fmt.Sprintf("%s %s %d", letterOf(name), name, held)))
		}
	}
	legend = append(legend, fmt.Sprintf("%s free %d", freeCell, s.free()))
	if closed {
		legend = append(legend, closedCell+" takes no pods")
	}
	return b.String() + "\n    GPUs: " + strings.Join(legend, ", ") + "\n"
}

// wrap breaks the text at spaces into lines of at most width characters. first and next are put before the first and
// the other lines.
func wrap(text, first, next string) string {
	var lines strings.Builder
	line := first
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines.WriteString(line + "\n")
			line = next + word
		default:
			line += " " + word
		}
	}
	return lines.String() + line + "\n"
}

// teller writes the output of the demo.
type teller struct {
	painter
	out   io.Writer
	began time.Time

	stepBegan time.Time
	said      map[string]string // per gang, PodCliqueSet and unit, the last line about it
	told      bool              // a line about a change was written in this step
}

func (t *teller) line(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// text writes lines as they are.
func (t *teller) text(lines string) { fmt.Fprint(t.out, lines) }

func (t *teller) headline(number int, s step) {
	t.stepBegan, t.told = time.Now(), false
	t.line("\n%s", t.bold(fmt.Sprintf("%d. %s", number, s.title)))
	t.line("%s", wrap(s.why, "   ", "   "))
}

// tell writes one line for each gang, PodCliqueSet and unit whose state has changed.
func (t *teller) tell(s scene) {
	now := map[string]string{} // by what a line is about, in the order in which lines are written
	for i, name := range gangs {
		if g := s.group(name); g.Status.Phase != "" {
			above := aboveMinimum.FindString(g.Status.Summary)
			now[fmt.Sprintf("%02d", i)] = fmt.Sprintf("%-17s  %-9s  %-6s %s%s", name, g.Status.Phase, g.Status.Scheduled, g.Status.Reason, above)
		}
	}
	for _, set := range s.sets {
		if set.Status.Phase != "" {
			available := fmt.Sprintf("%d/%d", set.Status.AvailableReplicas, set.Spec.Replicas)
			now["PodCliqueSet/"+set.Name] = fmt.Sprintf("%-17s  %-9s  %-6s available%s", set.Name, set.Status.Phase, available, updateOf(set))
		}
	}
	for name, doing := range s.unitsOf() {
		now["Unit/"+name] = fmt.Sprintf("%-17s  %s", name, doing)
	}
	for _, about := range slices.Sorted(maps.Keys(now)) {
		if t.said[about] != now[about] {
			t.line("   %5.2f s  %s", time.Since(t.stepBegan).Seconds(), strings.TrimRight(now[about], " "))
			t.told = true
		}
	}
	t.said = now
}

// updateOf summarizes the progress of an update of the set in a few words; "" before the first update.
func updateOf(set *v1alpha1.PodCliqueSet) string {
	c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing)
	if c == nil || set.Status.UpdateProgress == nil {
		return ""
	}
	return fmt.Sprintf(", %d/%d updated, %s", set.Status.UpdatedReplicas, set.Spec.Replicas, c.Reason)
}

// unitsOf describes the unit that an update is replacing, for each PodClique and scaling group, by name.
func (s scene) unitsOf() map[string]string {
	units := map[string]string{}
	for _, group := range s.scalingGroups {
		if p := group.Status.UpdateProgress; p != nil && p.UpdateEndedAt == nil && p.ReadyReplicaIndicesSelectedToUpdate != nil && p.ReadyReplicaIndicesSelectedToUpdate.Current != nil {
			units[group.Name] = fmt.Sprintf("replacing replica %d", *p.ReadyReplicaIndicesSelectedToUpdate.Current)
		}
	}
	for _, clique := range s.cliques {
		if p := clique.Status.UpdateProgress; p != nil && p.UpdateEndedAt == nil && p.ReadyPodsSelectedToUpdate != nil {
			units[clique.Name] = fmt.Sprintf("replacing pod %s", p.ReadyPodsSelectedToUpdate.Current)
		}
	}
	return units
}

// outcome shows the cluster after a step, what commands said, and the claims that held.
func (t *teller) outcome(s scene, of step, said string) {
	if t.told {
		t.line("")
	}
	t.line("%s", picture(s, t.painter))
	if said != "" {
		t.line("%s", said)
	}
	for _, c := range of.throughout {
		t.line("    %s at every moment: %s", t.state(true, "ok"), c.text)
	}
	for _, c := range slices.Concat(of.first, of.claims) {
		t.line("    %s %s", t.state(true, "ok"), c.text)
	}
}

// Write implements io.Writer for the progress of the start: it indents each line and adds the time.
func (t *teller) Write(lines []byte) (int, error) {
	for line := range strings.Lines(string(lines)) {
		t.text(fmt.Sprintf("   %5.2f s  %s", time.Since(t.began).Seconds(), line))
	}
	return len(lines), nil
}
