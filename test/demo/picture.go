// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
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

func (p painter) bold(text string) string  { return p.paint("1", text) }
func (p painter) faint(text string) string { return p.paint("2", text) }

// gang colours text about the gang with this letter.
func (p painter) gang(letter, text string) string {
	colours := map[string]string{"A": "36", "B": "33", "C": "35", "D": "34", "E": "36"}
	return p.paint(colours[letter], text)
}

// state colours the state of a gang or sub-group: green if it is good, yellow if the gang waits.
func (p painter) state(good bool, text string) string {
	if good {
		return p.paint("32", text)
	}
	return p.paint("33", text)
}

// picture draws the scene: a tree per gang, then the nodes. names are the gangs to draw, in this order; letters mark their
// GPUs. known has the trees, and the branches of services' trees, that were drawn before: of those that have not changed only
// the first line is drawn. picture updates known, which may be nil.
func picture(s scene, names []string, letters, known map[string]string, p painter) string {
	var b strings.Builder
	for _, name := range names {
		g := s.group(name)
		if g == nil {
			delete(known, name)
			continue
		}
		drawn := drawGang(s, g, letters[name], nil, p)
		switch first, rest, _ := strings.Cut(drawn, "\n"); {
		case known == nil:
			b.WriteString(drawn)
		case known[name] == drawn && rest != "":
			b.WriteString(first + p.faint("  as before") + "\n")
		default:
			known[name] = drawn
			b.WriteString(drawGang(s, g, letters[name], known, p))
		}
		b.WriteByte('\n')
	}
	b.WriteString(drawNodes(s, names, letters, p))
	return b.String()
}

// row is one line of a tree.
type row struct {
	branch, name, role, count, words string
	good                             bool
}

func drawGang(s scene, g *v2alpha2.PodGroup, letter string, known map[string]string, p painter) string {
	tree, err := podgroup.Tree(&g.Spec)
	if err != nil {
		return fmt.Sprintf("  %s %s  %s: %v\n", letter, g.Name, g.Status.Phase, err)
	}
	phase := string(g.Status.Phase)
	if phase == "" {
		phase = "new"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  %s  %s", p.gang(letter, letter+" "+p.bold(g.Name)), p.state(good(g.Status.Phase), phase))
	if g.Status.Scheduled != "" && g.Status.Phase != v2alpha2.PodGroupCompleted {
		fmt.Fprintf(&b, "  %s pods of the minimum", g.Status.Scheduled)
	}
	set, replica := s.serviceOf(g)
	if set != nil {
		fmt.Fprintf(&b, "  (replica %s of PodCliqueSet %s)\n", replica, set.Name)
	} else {
		fmt.Fprintf(&b, "  (%s)\n", needs(tree))
	}

	status := map[string]v2alpha2.SubGroupStatus{}
	for _, sub := range g.Status.SubGroups {
		status[sub.Name] = sub
	}
	var rows []row
	if set != nil {
		rows = foldKnown(serviceRows(s, g, tree, status), g.Name, known)
	} else {
		grow(tree.Root(), "", func(branch string, group *gang.Group) {
			r := row{branch: branch, name: group.Name()}
			r.count, r.words, r.good = describe(group, status[group.Name()], met(g, group.Parent(), status))
			rows = append(rows, r)
		})
	}
	b.WriteString(drawRows(rows, p))

	if why := whyNotAll(s, g); why != "" {
		b.WriteString(wrap("status: "+why, "    ", "            "))
	}
	if set != nil {
		for _, says := range []string{availability(set), updating(set, replica)} {
			if says != "" {
				b.WriteString(wrap(says, "    ", "            "))
			}
		}
	}
	return b.String()
}

// grow calls draw for every group below parent in depth-first order, with the branches of the tree before its name.
func grow(parent *gang.Group, indent string, draw func(branch string, group *gang.Group)) {
	for i, child := range parent.Children() {
		branch, below := "├─ ", "│  "
		if i == len(parent.Children())-1 {
			branch, below = "└─ ", "   "
		}
		draw(indent+branch, child)
		grow(child, indent+below, draw)
	}
}

// drawRows aligns the columns. A column that is empty everywhere is left out.
func drawRows(rows []row, p painter) string {
	nameWidth, roleWidth, countWidth := 0, 0, 0
	for _, r := range rows {
		nameWidth = max(nameWidth, utf8.RuneCountInString(r.branch+r.name))
		roleWidth = max(roleWidth, len(r.role))
		countWidth = max(countWidth, len(r.count))
	}
	var b strings.Builder
	for _, r := range rows {
		padding := strings.Repeat(" ", nameWidth-utf8.RuneCountInString(r.branch+r.name))
		fmt.Fprintf(&b, "    %s%s%s  ", p.faint(r.branch), r.name, padding)
		if roleWidth > 0 {
			fmt.Fprintf(&b, "%-*s  ", roleWidth, r.role)
		}
		if r.words == "" {
			b.WriteString(r.count + "\n")
			continue
		}
		fmt.Fprintf(&b, "%-*s  %s\n", countWidth, r.count, p.state(r.good, r.words))
	}
	return b.String()
}

// needs describes the minimum of the gang.
func needs(tree *gang.Tree) string {
	root := tree.Root()
	switch {
	case root.IsLeaf():
		return fmt.Sprintf("needs %d pods", root.Min())
	case root.Min() == len(root.Children()) && root.Min() == 2:
		return "needs both groups"
	case root.Min() == len(root.Children()):
		return fmt.Sprintf("needs all %d groups", root.Min())
	default:
		return fmt.Sprintf("needs %d of %d groups", root.Min(), len(root.Children()))
	}
}

// met reports whether a group of the tree, the root included, has its minimum.
func met(g *v2alpha2.PodGroup, of *gang.Group, status map[string]v2alpha2.SubGroupStatus) bool {
	if of.Parent() == nil {
		return g.Status.Phase == v2alpha2.PodGroupAdmitted
	}
	return status[of.Name()].Satisfied
}

// describe returns the state of a sub-group: a count, a few words, and whether it is good. spare: the group above it has its
// minimum without it.
func describe(g *gang.Group, s v2alpha2.SubGroupStatus, spare bool) (count, words string, good bool) {
	count = fmt.Sprintf("%d/%d", s.Bound, g.Min())
	unit := "pods"
	if !g.IsLeaf() {
		unit = "groups"
		count += " groups"
	}
	switch {
	case s.Satisfied && s.Admitted:
		return count, "admitted", true
	case s.Satisfied:
		return count, "placed", true
	case s.Created == 0 && g.IsLeaf():
		return count, "waits for its pods to be created", false
	case int(s.Created) < g.Min() && g.IsLeaf():
		return count, fmt.Sprintf("waits: %d of %d pods exist", s.Created, g.Min()), false
	case int(s.Created) < g.Min():
		return count, fmt.Sprintf("waits: the pods of %d of %d groups exist", s.Created, g.Min()), false
	case s.Bound > 0 && s.Admitted:
		return count, fmt.Sprintf("lost %d of its %d %s, waits for room", g.Min()-int(s.Bound), g.Min(), unit), false
	case spare:
		return count, fmt.Sprintf("not needed; waits for room for %d pods", g.MinPods()), false
	default:
		return count, "waits", false
	}
}

// whyNotAll returns the reason and summary of the status, "" if no pod of the gang waits.
func whyNotAll(s scene, g *v2alpha2.PodGroup) string {
	switch {
	case g.Status.Phase == v2alpha2.PodGroupCompleted:
		return ""
	case g.Status.Phase == v2alpha2.PodGroupAdmitted && total(s.bound(g.Name)) == s.created(g.Name):
		return ""
	case g.Status.Reason != "":
		return string(g.Status.Reason) + ": " + g.Status.Summary
	default:
		return g.Status.Summary
	}
}

func good(phase v2alpha2.PodGroupPhase) bool {
	return phase == v2alpha2.PodGroupAdmitted || phase == v2alpha2.PodGroupCompleted
}

// drawNodes draws one line per rack, one cell per GPU.
func drawNodes(s scene, names []string, letters map[string]string, p painter) string {
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
			for _, cell := range strings.Split(s.cells(node, letters), "") {
				b.WriteString(p.gang(cell, cell))
			}
			closed = closed || !takesPods(node)
		}
		b.WriteByte('\n')
	}
	var legend []string
	for _, name := range names {
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
