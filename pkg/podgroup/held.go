// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// HeldNote is the explanation for a waiting pod: the message of its condition PodScheduled, and the note of its
// event.
type HeldNote struct {
	// Head is the part without numbers: the pod's role in its gang and the reason of the PodGroup. A message that
	// begins with Head is not rewritten when the rest changes.
	Head string
	// Text is Head with the first clause of the PodGroup's message and its advice.
	Text string
	// Advice is the advice in Text, as words without numbers: what would help, and which object should create missing
	// pods. "": there is none, or it is not known yet. A message is rewritten if its advice changes.
	Advice string
	// Kind is the pod's role in its gang, the reason, and whether there is advice, without names. Events are counted by
	// Kind.
	Kind string
}

// IsIn reports whether a message says what the note says, apart from numbers.
func (n HeldNote) IsIn(text string) bool {
	return strings.HasPrefix(text, n.Head) && (n.Advice == "" || strings.Contains(withoutNumbers(text), n.Advice))
}

// withoutNumbers returns the words of a text, each number or list of numbers replaced by the same word.
func withoutNumbers(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;:()", r) })
	kept := words[:0]
	for _, word := range words {
		if strings.Trim(word, "0123456789/.%-") == "" {
			word = "#"
		}
		if n := len(kept); word != "#" || n == 0 || kept[n-1] != "#" { // a list of numbers is one
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

// HeldNotes computes the notes of the waiting pods of one gang.
type HeldNotes struct {
	facts  Facts
	judged *verdict // of the facts; nil: no note needed it yet
	byLeaf map[string]HeldNote
}

// NotesOf returns the notes of the waiting pods of a gang. They are computed on demand.
func NotesOf(f Facts) *HeldNotes {
	return &HeldNotes{facts: f, byLeaf: map[string]HeldNote{}}
}

// NoteOf returns the note of a waiting pod of the gang. Pods of one leaf have equal notes.
func (n *HeldNotes) NoteOf(w WaitingPod) HeldNote {
	name := message.Truncate(n.facts.Name, message.MaxName)
	switch {
	case w.Misplaced != "":
		kind := misplacementOf(w.Misplaced)
		text := fmt.Sprintf("does not count in PodGroup %s: it %s: %s", name, w.Misplaced, kind.advice)
		return HeldNote{Head: text, Text: text, Kind: kind.event}
	case n.facts.Group == nil:
		text := fmt.Sprintf("waits until PodGroup %s exists and can start", name)
		return HeldNote{Head: text, Text: text, Kind: v2alpha2.EventPodGroupNotFound}
	}
	label := membership.Leaf(w.Pod)
	note, known := n.byLeaf[label]
	if !known {
		note = n.noteOfLeaf(name, label)
		n.byLeaf[label] = note
	}
	return note
}

// Roles of a pod in its gang.
const (
	partOfMinimum = "minimum"
	partOfRefill  = "refill"
	partOfSurplus = "surplus"
)

// noteOfLeaf returns the note of the pods of a leaf.
func (n *HeldNotes) noteOfLeaf(name, label string) HeldNote {
	part, unit, missing := n.roleOfLeaf(label)
	head := "PodGroup " + name
	switch {
	case part == partOfRefill && unit != "":
		head = fmt.Sprintf("replaces pods that sub-group %s of PodGroup %s has lost", unit, name)
	case part == partOfRefill:
		head = fmt.Sprintf("replaces pods that PodGroup %s has lost while it runs", name)
	case part == partOfSurplus && unit != "":
		head = fmt.Sprintf("above the minimum of PodGroup %s, which runs without it; sub-group %s starts as a whole", name, unit)
	case part == partOfSurplus:
		head = fmt.Sprintf("above the minimum of PodGroup %s, which runs without it", name)
	}
	if n.judged == nil {
		now := dominantVerdict(n.facts)
		n.judged = &now
	}
	now := n.judged
	reason, text, advice := now.reason, now.message, now.advice
	switch {
	case part == partOfSurplus && !now.satisfied:
		// The reason of the minimum does not apply to this pod.
		text := head + "; what the minimum has lost is replaced first"
		return HeldNote{Head: text, Text: text, Kind: part}
	case now.satisfied:
		reason, text, advice = n.facts.Refused.Reason, subGroupClause(n.facts.Refused.Message, n.facts.Tree, unit), ""
		if missing > 0 {
			reason, text = v2alpha2.ReasonWaitingForPods, fmt.Sprintf("it lacks %s that must be created first", message.Count(missing, "pod"))
		}
	}
	if reason == "" {
		return HeldNote{Head: head, Text: head, Kind: part}
	}
	head += ": " + string(reason)
	first := message.FirstClause(text)
	note := HeldNote{Head: head, Text: head + ": " + first, Kind: part + " " + string(reason)}
	if advice != "" {
		note.Text += clauses + advice
		note.Kind += " with advice"
	}
	note.Text = message.Shorten(note.Text, message.MaxCondition)
	if advice != "" {
		// What was cut off would be missed in every message.
		if _, shown, found := strings.Cut(note.Text, first+clauses); found {
			note.Advice = withoutNumbers(strings.TrimSuffix(shown, "…"))
		}
	}
	return note
}

// roleOfLeaf returns the role of the waiting pods of a leaf in their gang. unit is the sub-group that is bound as a
// whole; "" means the gang itself, or single pods. missing is the number of pods of the minimum of unit that do not
// exist.
func (n *HeldNotes) roleOfLeaf(label string) (part, unit string, missing int) {
	f := n.facts
	if !f.Admitted || f.Tree == nil {
		return partOfMinimum, "", 0
	}
	leaf := f.Tree.Group(label)
	if leaf == nil {
		leaf = f.Tree.Root() // a PodGroup without sub-groups
	}
	if leaf.Satisfied(f.Bound) {
		return partOfSurplus, "", 0
	}
	whole := leaf
	for whole.Parent() != nil && !whole.Parent().Satisfied(f.Bound) {
		whole = whole.Parent()
	}
	switch {
	case whole.Parent() == nil:
		return partOfRefill, "", 0
	case f.AdmittedGroups.Has(whole.Name()):
		return partOfRefill, whole.Name(), whole.MissingPods(f.Created)
	default:
		return partOfSurplus, whole.Name(), whole.MissingPods(f.Created)
	}
}

// clauses is the separator between the clauses of a message.
const clauses = "; "

// subGroupClause returns the clause about a sub-group of a message about refused surplus. It returns the whole message
// if there is no such clause, or group is "".
func subGroupClause(text string, tree *gang.Tree, group string) string {
	if group == "" {
		return text
	}
	for _, clause := range strings.Split(text, clauses) {
		if strings.HasPrefix(clause, pathOf(tree, group)+" ") {
			return clause
		}
	}
	return text
}
