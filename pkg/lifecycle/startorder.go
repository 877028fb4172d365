// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-project/muster/pkg/naming"
)

// StartOrder is the start order of a set's template.
type StartOrder struct {
	// InOrder: each clique starts after the one before it in Cliques. Explicit: each clique starts after those in its
	// StartsAfter. Neither: there is no order.
	InOrder, Explicit bool
	// Cliques in the order of the template.
	Cliques []OrderedClique
	// GroupMinimum is minAvailable of each scaling group, by its name in the template.
	GroupMinimum map[string]int32
}

// OrderedClique is a clique of a template. Names are those of the template.
type OrderedClique struct {
	Name        string
	StartsAfter []string
	// Group is the scaling group that the clique belongs to, "" if it is standalone.
	Group string
}

// Requirement is a parent that must have started before a pod may start. Exactly one of PodClique and Group is set.
type Requirement struct {
	// PodClique is the full name of one PodClique that must be available.
	PodClique string `json:"podClique,omitempty"`
	// Group is the full name of a scaling group: in Need of its replicas, whichever they are, the PodClique of the
	// template's clique Clique must be available.
	Group  string `json:"group,omitempty"`
	Clique string `json:"clique,omitempty"`
	Need   int32  `json:"need,omitempty"`
}

// String returns a description of the requirement, for users.
func (r Requirement) String() string {
	if r.PodClique != "" {
		return "clique " + r.PodClique
	}
	return fmt.Sprintf("clique %s in %d of the replicas of %s", r.Clique, r.Need, r.Group)
}

// FormatRequirements returns requirements as text, for an annotation or an argument. "" if there are none.
func FormatRequirements(rs []Requirement) string {
	if len(rs) == 0 {
		return ""
	}
	text, err := json.Marshal(rs)
	if err != nil { // cannot happen: the fields are strings and numbers
		panic(err)
	}
	return string(text)
}

// ParseRequirements parses the text of FormatRequirements. "" means no requirements.
func ParseRequirements(text string) ([]Requirement, error) {
	if text == "" {
		return nil, nil
	}
	var rs []Requirement
	if err := json.Unmarshal([]byte(text), &rs); err != nil {
		return nil, fmt.Errorf("start requirements %q: %w", text, err)
	}
	for _, r := range rs {
		if (r.PodClique == "") == (r.Group == "") || (r.Group != "" && (r.Clique == "" || r.Need < 1)) {
			return nil, fmt.Errorf("start requirements %q: each needs either podClique, or group, clique and need", text)
		}
	}
	return rs, nil
}

// Requirements returns what the pods of a clique must wait for. set is the name of the PodCliqueSet, i the index of
// its replica, groupReplica the index of the replica of the clique's scaling group (ignored for a standalone clique).
// Parents that do not exist in the template are left out, because they could never start. The result is in the order
// of the parents in the template.
//
//   - A standalone parent: its PodClique.
//   - A parent in another scaling group: any minAvailable of that group's replicas (docs/decisions, W8).
//   - A parent in the same group: that of the same replica; replicas below minAvailable also wait for any minAvailable
//     of the replicas.
//   - Replicas of a group from index minAvailable on are surplus. They are created when the minimum runs and may start
//     alone, so they wait for parents of their own replica only (docs/decisions, W8).
func (o StartOrder) Requirements(set string, i int, clique string, groupReplica int) []Requirement {
	at := slices.IndexFunc(o.Cliques, func(c OrderedClique) bool { return c.Name == clique })
	if at < 0 {
		return nil
	}
	child := o.Cliques[at]
	surplus := child.Group != "" && groupReplica >= int(o.groupMinimum(child.Group))
	var rs []Requirement
	for _, parent := range o.parents(at) {
		if child.Group != "" && parent.Group == child.Group {
			rs = append(rs, Requirement{PodClique: naming.MemberPodClique(set, i, child.Group, groupReplica, parent.Name)})
			// If one replica is needed, it is the clique's own.
			if need := o.groupMinimum(child.Group); !surplus && need > 1 {
				rs = append(rs, Requirement{Group: naming.ScalingGroup(set, i, parent.Group), Clique: parent.Name, Need: need})
			}
			continue
		}
		switch {
		case surplus:
		case parent.Group == "":
			rs = append(rs, Requirement{PodClique: naming.PodCliqueName(set, i, parent.Name)})
		default:
			rs = append(rs, Requirement{Group: naming.ScalingGroup(set, i, parent.Group), Clique: parent.Name, Need: o.groupMinimum(parent.Group)})
		}
	}
	return rs
}

// parents returns the cliques after which the clique at the given position starts.
func (o StartOrder) parents(at int) []OrderedClique {
	switch {
	case o.InOrder && at > 0:
		return o.Cliques[at-1 : at]
	case o.Explicit:
		var parents []OrderedClique
		for k, c := range o.Cliques {
			if k != at && slices.Contains(o.Cliques[at].StartsAfter, c.Name) {
				parents = append(parents, c)
			}
		}
		return parents
	default:
		return nil
	}
}

func (o StartOrder) groupMinimum(group string) int32 { return max(o.GroupMinimum[group], 1) }

// Started reports whether a parent has started, given the current PodCliques and scaling groups of the set's replica.
// An object that does not exist has not started; a clique or group scaled to zero has, because there are no pods to
// wait for.
func (r Requirement) Started(cliques []Clique, groups []ScalingGroup) bool {
	need, have := int32(1), int32(0)
	if r.Group != "" {
		need = r.Need
		for _, g := range groups {
			if g.Name == r.Group && g.Replicas == 0 {
				return true
			}
		}
	}
	for _, c := range cliques {
		switch {
		case r.PodClique != "" && c.Name == r.PodClique,
			r.Group != "" && c.Group == r.Group && c.Template == r.Clique:
			if c.IsStarted() {
				have++
			}
		}
	}
	return have >= need
}

// Unmet returns the requirements that are not met, in the given order. None: the pods may start.
func Unmet(rs []Requirement, cliques []Clique, groups []ScalingGroup) []Requirement {
	var unmet []Requirement
	for _, r := range rs {
		if !r.Started(cliques, groups) {
			unmet = append(unmet, r)
		}
	}
	return unmet
}

// Describe returns requirements as one sentence: "waits for clique a-0-x and clique b in 2 of the replicas of a-0-g".
func Describe(unmet []Requirement) string {
	words := make([]string, len(unmet))
	for i, r := range unmet {
		words[i] = r.String()
	}
	return "waits for " + strings.Join(words, " and ")
}
