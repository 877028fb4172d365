// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		fmt.Fprintf(&b, "    %s  %s", p.gang(letters[name], letters[name]+" "+p.bold(name)), p.state(good(g.Status.Phase), string(g.Status.Phase)))
		if g.Status.Scheduled != "" && g.Status.Phase != v2alpha2.PodGroupCompleted {
			fmt.Fprintf(&b, "  %s pods of the minimum", g.Status.Scheduled)
		}
		b.WriteByte('\n')
		if why := whyNotAll(s, g); why != "" {
			b.WriteString(wrap(why, "      ", "        "))
		}
	}
	for _, set := range s.sets {
		for _, says := range []string{availability(set), updating(set)} {
			if says != "" {
				b.WriteString(wrap(says, "    ", "        "))
			}
		}
	}
	return b.String() + drawNodes(s, p)
}

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

// availability returns the phase and the condition Available of a PodCliqueSet as text, "" if it has no such condition yet.
func availability(set *v1alpha1.PodCliqueSet) string {
	c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionAvailable)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("PodCliqueSet %s: %s, %s=%s: %s", set.Name, set.Status.Phase, c.Type, c.Status, c.Message)
}

// updating returns the condition Progressing of a PodCliqueSet as text, "" if no replica is being updated.
func updating(set *v1alpha1.PodCliqueSet) string {
	c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing)
	p := set.Status.UpdateProgress
	if c == nil || c.Status != metav1.ConditionTrue || p == nil || p.CurrentlyUpdating == nil {
		return ""
	}
	return fmt.Sprintf("PodCliqueSet %s: %s=%s, %s: %s", set.Name, c.Type, c.Status, c.Reason, c.Message)
}

// drawNodes draws one line per rack, one cell per GPU.
func drawNodes(s scene, p painter) string {
	var racks []string
	nodes := map[string][]*corev1.Node{}
	for _, node := range s.nodes {
		rack := node.Labels[controlplane.RackLabel]
		if len(nodes[rack]) == 0 {
			racks = append(racks, rack)
		}
		nodes[rack] = append(nodes[rack], node)
	}
	var b strings.Builder
	closed := false
	for _, rack := range racks {
		fmt.Fprintf(&b, "    %s", rack)
		for _, node := range nodes[rack] {
			fmt.Fprintf(&b, "   %s ", node.Name)
			for _, cell := range strings.Split(s.cells(node), "") {
				b.WriteString(p.gang(cell, cell))
			}
			closed = closed || node.Spec.Unschedulable
		}
		b.WriteByte('\n')
	}
	var legend []string
	for _, name := range gangs {
		if held := s.held(name); held > 0 {
			legend = append(legend, p.gang(letters[name], fmt.Sprintf("%s %s %d", letters[name], name, held)))
		}
	}
	legend = append(legend, fmt.Sprintf("%s free %d", freeCell, s.free()))
	if closed {
		legend = append(legend, closedCell+" takes no pods")
	}
	fmt.Fprintf(&b, "    GPUs: %s\n", strings.Join(legend, ", "))
	return b.String()
}

// wrap breaks the text at spaces into lines of at most width characters. first and next are put before the first and
// the other lines.
func wrap(text, first, next string) string {
	var b strings.Builder
	line := first
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(line + "\n")
			line, empty = next, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	b.WriteString(line + "\n")
	return b.String()
}
