// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/gang"
)

// markOf returns the mark of a pod of the plan for the minimum, after which the named pods are bound.
func markOf(sequence int64, next ...types.UID) *Mark {
	m := &Mark{GroupUID: group, PodCount: 3, TagSum: 1, Generation: 1, Sequence: sequence, NeverWhole: true}
	for _, uid := range next {
		m.NextTags = append(m.NextTags, PodTag(uid))
	}
	return m
}

func boundPod(uid types.UID, m *Mark) MarkedPod {
	return MarkedPod{Mark: m, IsSigned: !m.IsZero(), Tag: PodTag(uid)}
}

func waitingPod(uid types.UID) MarkedPod {
	return MarkedPod{Mark: &Mark{}, Tag: PodTag(uid), NeverBound: true}
}

func TestProofs(t *testing.T) {
	t.Parallel()
	three := int32(3)
	tree, err := gang.Build(gang.Node{MinMember: &three}, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(m *Mark, change func(*Mark)) *Mark { change(m); return m }
	earlier := boundPod("z", markOf(7))
	earlier.IsOfEarlierRun = true
	misplaced := boundPod("c", &Mark{})
	misplaced.IsMisplaced = true
	unsigned := boundPod("a", markOf(1, "b"))
	unsigned.IsSigned = false
	failed := func(uid types.UID, m *Mark) MarkedPod {
		pod := boundPod(uid, m)
		pod.HasEnded = true
		return pod
	}
	for name, tc := range map[string]struct {
		pods                     []MarkedPod
		wantPartial, wantEndedIt bool
	}{
		"no pod has a mark":                       {[]MarkedPod{boundPod("a", &Mark{}), waitingPod("b")}, false, false},
		"a named member waits":                    {[]MarkedPod{boundPod("a", markOf(1, "b", "c")), waitingPod("b")}, true, false},
		"only other pods wait":                    {[]MarkedPod{boundPod("a", markOf(1, "b", "c")), waitingPod("d")}, false, false},
		"all named members are bound":             {[]MarkedPod{boundPod("a", markOf(1, "b")), boundPod("b", markOf(1, "a")), waitingPod("c")}, false, true},
		"the pods bound satisfy the tree":         {[]MarkedPod{boundPod("a", markOf(1, "d")), boundPod("b", &Mark{}), boundPod("c", &Mark{}), waitingPod("d")}, false, false},
		"a misplaced pod does not count":          {[]MarkedPod{boundPod("a", markOf(1, "d")), boundPod("b", &Mark{}), misplaced, waitingPod("d")}, true, false},
		"the gang may have been whole before":     {[]MarkedPod{boundPod("a", changed(markOf(1, "b"), func(m *Mark) { m.NeverWhole = false })), waitingPod("b")}, false, false},
		"another tree was planned":                {[]MarkedPod{boundPod("a", changed(markOf(1, "b"), func(m *Mark) { m.Generation = 2 })), waitingPod("b")}, false, false},
		"a mark of another PodGroup":              {[]MarkedPod{boundPod("a", changed(markOf(1, "b"), func(m *Mark) { m.GroupUID = "other" })), waitingPod("b")}, false, false},
		"two plans of one sequence":               {[]MarkedPod{boundPod("a", markOf(1, "c")), boundPod("b", changed(markOf(1, "c"), func(m *Mark) { m.TagSum = 2 })), waitingPod("c")}, false, false},
		"only an earlier plan names who waits":    {[]MarkedPod{boundPod("a", markOf(1, "c")), boundPod("b", markOf(2, "d")), waitingPod("c")}, false, false},
		"the latest plan names who waits":         {[]MarkedPod{boundPod("a", markOf(1, "d")), boundPod("b", markOf(2, "c")), waitingPod("c")}, true, false},
		"pods of an earlier run prove nothing":    {[]MarkedPod{earlier, boundPod("a", markOf(1, "b")), waitingPod("b")}, true, false},
		"a plan that failed before the latest":    {[]MarkedPod{failed("x", markOf(1, "y", "z")), failed("y", markOf(1, "z", "x")), failed("z", markOf(1, "x", "y")), boundPod("a", markOf(2, "b")), waitingPod("b")}, true, false},
		"an incomplete plan failed before":        {[]MarkedPod{failed("x", markOf(1, "y")), failed("y", markOf(1, "z")), boundPod("a", markOf(2, "b")), waitingPod("b")}, false, false},
		"some pods of a completed plan failed":    {[]MarkedPod{failed("a", markOf(1, "b")), boundPod("b", markOf(1, "e")), failed("e", markOf(1, "a")), boundPod("c", markOf(2, "d")), waitingPod("d")}, false, true},
		"the plan that completed the gang failed": {[]MarkedPod{boundPod("a", markOf(1, "x")), failed("b", markOf(2, "c")), failed("c", markOf(2, "b")), waitingPod("x")}, false, true},
		"a mark without an annotation names none": {[]MarkedPod{unsigned, waitingPod("b")}, false, false},
	} {
		if got := ProvesPartial(PlannedGroup{UID: group, Generation: 1, Tree: tree}, slices.Values(tc.pods)); got != tc.wantPartial {
			t.Errorf("%s: proves partial: %t", name, got)
		}
		if got := CompletedPlan(group, slices.Values(tc.pods)); got != tc.wantEndedIt {
			t.Errorf("%s: completed a plan: %t", name, got)
		}
	}
}

func TestNeededLeaves(t *testing.T) {
	t.Parallel()
	one, two := int32(1), int32(2)
	tree, err := gang.Build(gang.Node{MinSubGroup: &two}, []gang.Node{
		{Name: "x", MinMember: &two}, {Name: "y", MinSubGroup: &one},
		{Name: "y1", Parent: "y", MinMember: &one}, {Name: "y2", Parent: "y", MinMember: &one}, {Name: "z", MinMember: &one}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		counts gang.Counts
		want   []string
	}{
		"not satisfied: no leaf is needed":            {gang.Counts{"x": 2}, nil},
		"just satisfied: every leaf of it":            {gang.Counts{"x": 2, "y1": 1}, []string{"x", "y1"}},
		"a leaf has a pod more":                       {gang.Counts{"x": 3, "y1": 1}, []string{"y1"}},
		"either leaf of a group is sufficient":        {gang.Counts{"x": 2, "y1": 1, "y2": 1}, []string{"x"}},
		"any two of three children are sufficient":    {gang.Counts{"x": 2, "y1": 1, "z": 1}, nil},
		"a child that is not satisfied is irrelevant": {gang.Counts{"x": 1, "y1": 1, "z": 1}, []string{"y1", "z"}},
	} {
		if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(NeededLeaves(tree, tc.counts))), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
