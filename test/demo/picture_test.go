package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// twoRacks returns four nodes of four GPUs, the last one cordoned.
func twoRacks() scene {
	s := scene{}
	for i := range 4 {
		node := wrappers.MakeNode(nodeName(i)).GPUs(4).Label(controlplane.RackLabel, fmt.Sprintf("rack-%03d", i/2))
		if i == 3 {
			node.Unschedulable()
		}
		s.nodes = append(s.nodes, node.Obj())
	}
	return s
}

// add puts n pods of a gang on a node, "" for none.
func (s *scene) add(group, leaf, node string, n int) {
	for range n {
		name := fmt.Sprintf("%s-%s-%d", group, leaf, len(s.pods))
		s.pods = append(s.pods, wrappers.MakePod(name, "default").Gang(group).SubGroup(leaf).GPUs(1).Node(node).Obj())
	}
}

func leafStatus(name string, required, created, bound int32, admitted bool) v2alpha2.SubGroupStatus {
	return v2alpha2.SubGroupStatus{
		Name: name, Required: required, Created: created, Bound: bound, Satisfied: bound >= required, Admitted: admitted}
}

func TestPicture(t *testing.T) {
	for name, tc := range map[string]struct {
		scene func() scene
		want  string
	}{
		"three of four groups run and the fourth waits": {
			scene: func() scene {
				s := twoRacks()
				g := wrappers.MakePodGroup(inference, "default").MinSubGroup(3).
					SubGroup("prefill-0", 3).SubGroup("prefill-1", 3).SubGroup("prefill-2", 3).SubGroup("prefill-3", 3).Obj()
				g.Status = v2alpha2.PodGroupStatus{
					Phase: v2alpha2.PodGroupAdmitted, Scheduled: "9/9",
					Summary: "9/9 pods bound; more wait, InsufficientGPUs: prefill-2 needs 3 nvidia.com/gpu for 3 pods, 2 are free",
					SubGroups: []v2alpha2.SubGroupStatus{
						leafStatus("prefill-0", 3, 3, 3, true), leafStatus("prefill-1", 3, 3, 3, true),
						leafStatus("prefill-2", 3, 3, 0, false), leafStatus("prefill-3", 3, 3, 3, true)},
				}
				s.groups = append(s.groups, g)
				s.add(inference, "prefill-0", "node-0000", 3)
				s.add(inference, "prefill-1", "node-0001", 3)
				s.add(inference, "prefill-3", "node-0002", 3)
				s.add(inference, "prefill-2", "", 3)
				return s
			},
			want: `
  B inference-service  Admitted  9/9 pods of the minimum  (needs 3 of 4 groups)
    ├─ prefill-0  3/3  admitted
    ├─ prefill-1  3/3  admitted
    ├─ prefill-2  0/3  not needed; waits for room for all 3 pods
    └─ prefill-3  3/3  admitted
    status: 9/9 pods bound; more wait, InsufficientGPUs: prefill-2 needs 3 nvidia.com/gpu for 3
            pods, 2 are free

    rack-000   node-0000 BBB.   node-0001 BBB.
    rack-001   node-0002 BBB.   node-0003 xxxx
    GPUs: B inference-service 9, . free 3, x takes no pods
`},
		"two levels, with pods missing": {
			scene: func() scene {
				s := twoRacks()
				g := wrappers.MakePodGroup(training, "default").
					Inner("", "decode", 2).SubGroupOf("decode", "leaders", 1).SubGroupOf("decode", "workers", 4).
					Inner("", "prefill", 0).SubGroupOf("prefill", "prefill-workers", 4).Obj()
				g.Status = v2alpha2.PodGroupStatus{
					Phase: v2alpha2.PodGroupWaiting, Scheduled: "0/9", Reason: v2alpha2.ReasonWaitingForPods,
					Summary: "0/9 pods bound; needs 9 pods, 6 exist",
					SubGroups: []v2alpha2.SubGroupStatus{
						leafStatus("decode", 2, 2, 0, false), leafStatus("leaders", 1, 1, 0, false), leafStatus("workers", 4, 4, 0, false),
						leafStatus("prefill", 1, 0, 0, false), leafStatus("prefill-workers", 4, 1, 0, false)},
				}
				s.groups = append(s.groups, g)
				s.add(training, "workers", "", 4)
				return s
			},
			want: `
  A training-job  Waiting  0/9 pods of the minimum  (needs both groups)
    ├─ decode              0/2 groups  waits
    │  ├─ leaders          0/1         waits
    │  └─ workers          0/4         waits
    └─ prefill             0/1 groups  waits: the pods of 0 of 1 groups exist
       └─ prefill-workers  0/4         waits: 1 of 4 pods exist
    status: WaitingForPods: 0/9 pods bound; needs 9 pods, 6 exist

    rack-000   node-0000 ....   node-0001 ....
    rack-001   node-0002 ....   node-0003 xxxx
    GPUs: . free 12, x takes no pods
`},
		"a gang without sub-groups, and a stranger": {
			scene: func() scene {
				s := twoRacks()
				g := wrappers.MakePodGroup(tuning, "default").MinMember(2).Obj()
				g.Status = v2alpha2.PodGroupStatus{Phase: v2alpha2.PodGroupAdmitted, Scheduled: "2/2", Summary: "2/2 pods bound"}
				s.groups = append(s.groups, g)
				s.add(tuning, "", "node-0001", 2)
				s.pods = append(s.pods, wrappers.MakePod("stranger", "default").GPUs(1).Node("node-0001").Obj())
				return s
			},
			want: `
  C fine-tuning  Admitted  2/2 pods of the minimum  (needs 2 pods)

    rack-000   node-0000 ....   node-0001 ?CC.
    rack-001   node-0002 ....   node-0003 xxxx
    GPUs: C fine-tuning 2, . free 9, x takes no pods
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tc.scene()
			got := picture(s, gangs, letters, nil, painter{})
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), got); diff != "" {
				t.Errorf("picture (-want +got):\n%s", diff)
			}
			for line := range strings.Lines(got) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("a line of %d characters: %s", n, line)
				}
			}
			coloured := picture(s, gangs, letters, nil, painter{colour: true})
			if plain := withoutColour(coloured); plain != got {
				t.Errorf("colour changes more than colour (-plain +coloured):\n%s", cmp.Diff(got, plain))
			}
			if coloured == got {
				t.Error("no colour where it was asked for")
			}
		})
	}
}

func withoutColour(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(after, "m")
	}
}

func TestPartialGangs(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	withPods := func(counts map[string]int) scene {
		s := scene{groups: []*v2alpha2.PodGroup{wrappers.MakePodGroup(tuning, "default").MinMember(2).Obj()}}
		for node, n := range counts {
			s.add(tuning, "", node, n)
		}
		return s
	}
	for name, tc := range map[string]struct {
		scenes []scene // one a second
		want   time.Duration
	}{
		"a gang that is bound at once was never partial": {
			scenes: []scene{withPods(nil), withPods(map[string]int{"node": 2})},
		},
		"bound one by one": {
			scenes: []scene{withPods(map[string]int{"node": 1}), withPods(map[string]int{"node": 1}), withPods(map[string]int{"node": 2})},
			want:   2 * time.Second,
		},
		"a partial gang that is never completed counts": {
			scenes: []scene{withPods(map[string]int{"node": 1}), withPods(map[string]int{"node": 1})},
			want:   time.Second,
		},
		"what is given back counts until then": {
			scenes: []scene{withPods(map[string]int{"node": 1}), withPods(nil), withPods(nil)},
			want:   time.Second,
		},
		"a gang that was whole may lose pods": {
			scenes: []scene{withPods(map[string]int{"node": 2}), withPods(map[string]int{"node": 1}), withPods(map[string]int{"node": 1})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := partialGangs{since: map[string]time.Time{}, whole: map[string]bool{}}
			for i, s := range tc.scenes {
				p.look(s, at(i))
			}
			if p.longest != tc.want {
				t.Errorf("longest %s, want %s", p.longest, tc.want)
			}
		})
	}
}
