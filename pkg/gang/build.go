// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"strings"
)

const (
	// MaxDepth is the number of levels allowed below the root.
	MaxDepth = 8
	// MaxGroups is the number of sub-groups allowed in one tree, the root not counted.
	MaxGroups = 1024
	// MaxNameLength is the number of characters of a sub-group's name: pods carry it as a label value.
	MaxNameLength = 63
)

// Node is the specification of one group: the root of a tree or one of its sub-groups.
type Node struct {
	// Name of the sub-group, unique in the tree. Ignored on the root.
	Name string
	// Parent is the name of the group above; "" is the root. It may be declared later in the list. Ignored on the root.
	Parent string
	// MinMember is the number of pods that a leaf needs. nil and 0 differ: a leaf without one is an error, except the
	// root of a tree without sub-groups, which then needs one pod.
	MinMember *int32
	// MinSubGroup is the number of direct children that an inner group needs. nil: all of them.
	MinSubGroup *int32
}

// Kind classifies a problem of a specification.
type Kind string

const (
	// InvalidName: the name is empty or no label value, so that no pod could belong to the group.
	InvalidName Kind = "InvalidName"
	// DuplicateName: an earlier group has the same name.
	DuplicateName Kind = "DuplicateName"
	// UnknownParent: no group has the parent's name.
	UnknownParent Kind = "UnknownParent"
	// Cycle: the group is its own ancestor.
	Cycle Kind = "Cycle"
	// TooDeep: the group is the first on its path below MaxDepth.
	TooDeep Kind = "TooDeep"
	// TooManyGroups: the tree has more than MaxGroups sub-groups. Nothing else is checked then.
	TooManyGroups Kind = "TooManyGroups"
	// NotPositive: a minimum is zero or negative.
	NotPositive Kind = "NotPositive"
	// BothMinimums: minMember and minSubGroup exclude each other.
	BothMinimums Kind = "BothMinimums"
	// MinMemberRequired: a leaf does not specify how many pods it needs.
	MinMemberRequired Kind = "MinMemberRequired"
	// MinMemberOnInner: minMember on a sub-group that has children.
	MinMemberOnInner Kind = "MinMemberOnInner"
	// MinSubGroupOnLeaf: minSubGroup on a group without children.
	MinSubGroupOnLeaf Kind = "MinSubGroupOnLeaf"
	// MinSubGroupTooLarge: minSubGroup above the number of direct children.
	MinSubGroupTooLarge Kind = "MinSubGroupTooLarge"
)

// Names of the fields a Problem may point at, as the API spells them.
const (
	FieldName        = "name"
	FieldParent      = "parent"
	FieldMinMember   = "minMember"
	FieldMinSubGroup = "minSubGroup"
	FieldSubGroups   = "subGroups"
)

// Problem is one violation of the rules in a specification.
type Problem struct {
	Index  int // of the sub-group in the list; -1: the root
	Kind   Kind
	Field  string // one of the Field constants
	Detail string // human-readable, without the path
}

// String returns the path of the field and the detail: `subGroups[2].parent: no sub-group is named "decode"`.
func (p Problem) String() string {
	if p.Index < 0 {
		return p.Field + ": " + p.Detail
	}
	return fmt.Sprintf("%s[%d].%s: %s", FieldSubGroups, p.Index, p.Field, p.Detail)
}

// StructureError is the error of Build for a specification that is not a valid tree. It lists all problems, ordered
// by index.
type StructureError struct {
	Problems []Problem // never empty
}

// Error returns the first three problems and the number of further ones.
func (e *StructureError) Error() string {
	const shown = 3
	var b strings.Builder
	b.WriteString("invalid sub-group tree: ")
	for i, p := range e.Problems {
		if i == shown {
			fmt.Fprintf(&b, "; and %d more", len(e.Problems)-shown)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// Build returns the tree of a specification. The error, if any, is a *StructureError with all its problems.
//
// A root with minMember > 0 beside sub-groups (the form that predates minSubGroup) needs all its children; its
// minMember is not enforced. minMember 0 is allowed only on such a root, beside minSubGroup. Source: KAI Scheduler's
// minSubGroups proposal, "Validation Rules"; docs/decisions, G2, G3.
func Build(root Node, groups []Node) (*Tree, error) {
	if len(groups) > MaxGroups {
		return nil, &StructureError{Problems: []Problem{{
			Index: -1, Kind: TooManyGroups, Field: FieldSubGroups,
			Detail: fmt.Sprintf("has %d sub-groups, at most %d are allowed", len(groups), MaxGroups),
		}}}
	}
	b := newBuilder(groups)
	b.checkMinimums(-1, root, true)
	for i, n := range groups {
		b.checkName(i, n)
		b.checkParent(i, n)
		b.checkMinimums(i, n, false)
	}
	if len(b.problems) > 0 {
		return nil, &StructureError{Problems: b.problems}
	}
	return newTree(root, groups), nil
}

// builder checks an arbitrary specification. It refers to groups by index; a name refers to the first group of that
// name.
type builder struct {
	groups   []Node
	first    map[string]int // name -> index of the first group of that name
	children map[string]int // name -> direct children, duplicates not counted; "" is the root
	depth    []int          // levels below the root; 0: the group is below a cycle or below an unknown parent
	cyclic   []bool         // the group is its own ancestor
	problems []Problem
}

func newBuilder(groups []Node) *builder {
	b := &builder{
		groups:   groups,
		first:    make(map[string]int, len(groups)),
		children: make(map[string]int, len(groups)),
		depth:    make([]int, len(groups)),
		cyclic:   make([]bool, len(groups)),
	}
	for i, n := range groups {
		if _, dup := b.first[n.Name]; dup {
			continue
		}
		b.first[n.Name] = i
		b.children[n.Parent]++
	}
	b.walkParents()
	return b
}

// walkParents fills depth and cyclic. It climbs from each group to the root, to the group itself, or for as many levels
// as there are groups.
func (b *builder) walkParents() {
	const isRoot, isUnknown = -1, -2
	parents := make([]int, len(b.groups))
	for i, n := range b.groups {
		parent, known := b.first[n.Parent]
		switch {
		case n.Parent == "":
			parent = isRoot
		case !known:
			parent = isUnknown
		}
		parents[i] = parent
	}
	for i := range b.groups {
		at, levels := parents[i], 1
		for at >= 0 && at != i && levels <= len(b.groups) {
			at = parents[at]
			levels++
		}
		b.cyclic[i] = at == i
		if at == isRoot {
			b.depth[i] = levels
		}
	}
}

func (b *builder) reportProblem(index int, kind Kind, field, format string, args ...any) {
	b.problems = append(b.problems, Problem{Index: index, Kind: kind, Field: field, Detail: fmt.Sprintf(format, args...)})
}

func (b *builder) checkName(i int, n Node) {
	switch {
	case n.Name == "":
		b.reportProblem(i, InvalidName, FieldName, "must not be empty")
	case !isLabelValue(n.Name):
		b.reportProblem(i, InvalidName, FieldName, "%q is no label value: at most %d letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", n.Name, MaxNameLength)
	case b.first[n.Name] != i:
		b.reportProblem(i, DuplicateName, FieldName, "%q is already the name of %s[%d]", n.Name, FieldSubGroups, b.first[n.Name])
	}
}

func (b *builder) checkParent(i int, n Node) {
	if _, known := b.first[n.Parent]; n.Parent != "" && !known {
		b.reportProblem(i, UnknownParent, FieldParent, "no sub-group is named %q", n.Parent)
		return
	}
	switch {
	case b.cyclic[i] && n.Parent == n.Name:
		b.reportProblem(i, Cycle, FieldParent, "%q is its own parent", n.Name)
	case b.cyclic[i]:
		b.reportProblem(i, Cycle, FieldParent, "%q is its own ancestor", n.Name)
	case b.depth[i] == MaxDepth+1:
		b.reportProblem(i, TooDeep, FieldParent, "%q is %d levels below the root, at most %d are allowed", n.Name, b.depth[i], MaxDepth)
	}
}

// checkMinimums applies the rules for minMember and minSubGroup: each is allowed on one kind of group only, they
// exclude each other, and neither may be zero.
func (b *builder) checkMinimums(i int, n Node, isRoot bool) {
	children := b.children[n.Name]
	if isRoot {
		children = b.children[""]
	} else if n.Name == "" {
		children = 0 // no group can name it as parent
	}
	leaf := children == 0

	zeroBesideMinSubGroup := isRoot && n.MinMember != nil && *n.MinMember == 0 && n.MinSubGroup != nil
	if n.MinMember != nil && *n.MinMember <= 0 && !zeroBesideMinSubGroup {
		b.reportProblem(i, NotPositive, FieldMinMember, "must be greater than 0, is %d", *n.MinMember)
	}
	if n.MinSubGroup != nil && *n.MinSubGroup <= 0 {
		b.reportProblem(i, NotPositive, FieldMinSubGroup, "must be greater than 0, is %d", *n.MinSubGroup)
	}

	switch hasMember, hasSubGroup := checkPositive(n.MinMember), n.MinSubGroup != nil; {
	case hasMember && hasSubGroup && leaf:
		b.reportProblem(i, BothMinimums, FieldMinSubGroup, "excludes minMember; a group without children uses minMember")
	case hasMember && hasSubGroup:
		b.reportProblem(i, BothMinimums, FieldMinMember, "excludes minSubGroup; a group with children uses minSubGroup")
	case hasSubGroup && leaf:
		b.reportProblem(i, MinSubGroupOnLeaf, FieldMinSubGroup, "counts children, but the group has none; use minMember")
	case hasMember && !leaf && !isRoot:
		b.reportProblem(i, MinMemberOnInner, FieldMinMember, "counts pods of a group without children, but the group has %d; use minSubGroup", children)
	case leaf && !isRoot && n.MinMember == nil:
		b.reportProblem(i, MinMemberRequired, FieldMinMember, "is required on a sub-group without children")
	}
	if !leaf && n.MinSubGroup != nil && int(*n.MinSubGroup) > children {
		b.reportProblem(i, MinSubGroupTooLarge, FieldMinSubGroup, "is %d, but the group has only %d direct children", *n.MinSubGroup, children)
	}
}

func checkPositive(v *int32) bool { return v != nil && *v > 0 }

// isLabelValue implements the rule of Kubernetes for label values, except that the empty string is not allowed.
func isLabelValue(s string) bool {
	if s == "" || len(s) > MaxNameLength {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		alnum := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		inside := i > 0 && i < len(s)-1 && (c == '-' || c == '_' || c == '.')
		if !alnum && !inside {
			return false
		}
	}
	return true
}
