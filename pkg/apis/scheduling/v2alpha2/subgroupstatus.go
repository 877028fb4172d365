// SPDX-License-Identifier: Apache-2.0

package v2alpha2

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// SubGroupStatus is the state of one sub-group. A leaf counts pods, a sub-group
// with children counts its direct children. It is stored as one line of text,
// because kubectl describe prints a line for each field of an object, and a
// tree may have dozens of sub-groups.
//
// +kubebuilder:validation:Type=string
type SubGroupStatus struct {
	// Name of the sub-group.
	Name string
	// Required is the minimum: pods of a leaf, direct children otherwise.
	Required int32
	// Created counts the existing pods of a leaf; otherwise the children that
	// the existing pods would satisfy if all were bound.
	Created int32
	// Bound counts the bound pods of a leaf; otherwise the satisfied children.
	Bound int32
	// Placement is where the bound pods run: "rack r7", as in status.placement.
	// Empty if the sub-group names no topology level, or no pod is bound. It
	// must not end with ", admitted".
	Placement string
	// Satisfied is true while the minimum is bound. It is derived from Bound
	// and Required, and is not part of the text.
	Satisfied bool
	// Admitted is true once the minimum was bound below an admitted parent,
	// until no pod of the sub-group exists.
	Admitted bool
}

// FormerSubGroupStatus is an entry of status.subGroups as written by earlier
// versions. Other fields are not read.
type FormerSubGroupStatus struct {
	// name of the sub-group.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// admitted is true once the minimum was bound below an admitted parent.
	// +optional
	Admitted bool `json:"admitted"`
}

const (
	placementPrefix = ", on "
	admittedSuffix  = ", admitted"
)

// String returns the line: "decode-0: 3/4 bound, 4 exist, on rack r7, admitted".
func (s SubGroupStatus) String() string {
	text := fmt.Sprintf("%s: %d/%d bound, %d exist", s.Name, s.Bound, s.Required, s.Created)
	if s.Placement != "" {
		text += placementPrefix + s.Placement
	}
	if s.Admitted {
		text += admittedSuffix
	}
	return text
}

// MarshalJSON implements json.Marshaler.
func (s SubGroupStatus) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

var subGroupStatusText = regexp.MustCompile(`^(\d+)/(\d+) bound, (\d+) exist(, |$)`)

// UnmarshalJSON implements json.Unmarshaler. It accepts every text that the
// schema allows, because a single status that cannot be parsed would make every
// list of PodGroups fail. From a text in another form it reads the name, and
// whether the text ends with "admitted".
func (s *SubGroupStatus) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	name, rest, _ := strings.Cut(text, ": ")
	*s = SubGroupStatus{Name: name, Admitted: strings.HasSuffix(rest, admittedSuffix)}
	m := subGroupStatusText.FindStringSubmatch(rest)
	if m == nil {
		return nil
	}
	var counts [3]int32
	for i := range counts {
		var ok bool
		if counts[i], ok = parseCount(m[i+1]); !ok {
			return nil
		}
	}
	s.Bound, s.Required, s.Created = counts[0], counts[1], counts[2]
	s.Satisfied = s.Required > 0 && s.Bound >= s.Required
	_, s.Placement, _ = strings.Cut(strings.TrimSuffix(rest, admittedSuffix), placementPrefix)
	return nil
}

// parseCount parses a number of at most 32 bits. It returns false if the text is not such a number.
func parseCount(text string) (int32, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil
}
