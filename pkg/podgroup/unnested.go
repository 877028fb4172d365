// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
)

// LabelPair is two node labels that are levels on one path of a tree: Inner is required or preferred below the group
// that requires or prefers Outer, or preferred by the group that requires Outer.
type LabelPair struct{ Outer, Inner string }

// maxLabelPairs bounds the pairs of labels that are compared, each on all nodes.
const maxLabelPairs = 16

// UnorderedLabels returns the first pairs of levels that name no Topology, which would say how they nest. nil: there
// are none, or the PodGroup lists its levels.
func UnorderedLabels(tree *gang.Tree, pg *v2alpha2.PodGroup) []LabelPair {
	if listedLevels(pg) != nil {
		return nil
	}
	labels := map[string][]string{} // by group
	for group, c := range constraints(&pg.Spec) {
		if c.Topology == "" {
			labels[group] = namedLabels(c)
		}
	}
	var pairs []LabelPair
	add := func(outer, inner string) {
		if pair := (LabelPair{outer, inner}); outer != inner && len(pairs) < maxLabelPairs && !slices.Contains(pairs, pair) {
			pairs = append(pairs, pair)
		}
	}
	for group, c := range constraints(&pg.Spec) {
		own := labels[group]
		if len(own) == 2 {
			add(own[0], own[1])
		}
		if group == "" || c.Topology != "" {
			continue
		}
		for g := tree.Group(group).Parent(); g != nil; g = g.Parent() {
			for _, outer := range labels[g.Name()] {
				for _, inner := range own {
					add(outer, inner)
				}
			}
		}
	}
	return pairs
}

// UnnestedLabels are labels of which neither divides the domains of the other: two nodes have Value of Inner, and
// different values of Outer, and the same is true the other way round.
type UnnestedLabels struct {
	LabelPair
	Value       string
	OuterValues [2]string // of Nodes
	Nodes       [2]string
}

// MayLackDomain reports whether a refusal may be for lack of a topology domain.
func MayLackDomain(r Refusal) bool {
	return r.Reason == v2alpha2.ReasonTopologyUnavailable || r.Reason == v2alpha2.ReasonTooLarge
}

// WithUnnestedLabels adds to the message of a refusal for lack of a topology domain that labels do not nest. Other
// refusals are returned as they are.
func WithUnnestedLabels(r Refusal, u UnnestedLabels) Refusal {
	if !MayLackDomain(r) {
		return r
	}
	in := func(k int) string {
		return fmt.Sprintf("in %s %s on node %s", LevelName(u.Outer), message.Truncate(u.OuterValues[k], content.LabelValueMaxLength), message.Truncate(u.Nodes[k], maxNodeName))
	}
	text := clauses + fmt.Sprintf("labels %s and %s do not nest (%s %s is %s and %s): correct the labels of the nodes, or name a Topology that has both",
		u.Outer, u.Inner, LevelName(u.Inner), message.Truncate(u.Value, content.LabelValueMaxLength), in(0), in(1))
	// What was cut off would be missed: the numbers before it are less important.
	r.Message = message.Shorten(message.Shorten(r.Message, max(1, message.MaxCondition-utf8.RuneCountInString(text)))+text, message.MaxCondition)
	return r
}
