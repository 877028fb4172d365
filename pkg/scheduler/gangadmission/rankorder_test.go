// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/topology"
	"github.com/muster-project/muster/test/wrappers"
)

func TestPodsAreOrderedByRank(t *testing.T) {
	t.Parallel()
	pod := func(name string) *wrappers.PodWrapper { return wrappers.MakePod(name, "ml").UID(name) }
	labeled := func(name, label, value string) *wrappers.PodWrapper { return pod(name).Label(label, value) }
	for name, tc := range map[string]struct {
		pods []*wrappers.PodWrapper // planned in racks 1, 2, 1, 2
		off  bool
		flat bool     // without a level
		want []string // nil: they keep their nodes
	}{
		"a Job's pods by their completion index": {
			pods: []*wrappers.PodWrapper{
				labeled("a", "batch.kubernetes.io/job-completion-index", "10"), labeled("b", "batch.kubernetes.io/job-completion-index", "2"),
				labeled("c", "batch.kubernetes.io/job-completion-index", "11"), labeled("d", "batch.kubernetes.io/job-completion-index", "3"),
			},
			want: []string{"b", "a", "d", "c"},
		},
		"the leader of a LeaderWorkerSet by its place in the group": {
			pods: []*wrappers.PodWrapper{
				labeled("w2", "leaderworkerset.sigs.k8s.io/worker-index", "2").Label("apps.kubernetes.io/pod-index", "2"),
				labeled("w1", "leaderworkerset.sigs.k8s.io/worker-index", "1").Label("apps.kubernetes.io/pod-index", "1"),
				labeled("w3", "leaderworkerset.sigs.k8s.io/worker-index", "3").Label("apps.kubernetes.io/pod-index", "3"),
				labeled("leader", "leaderworkerset.sigs.k8s.io/worker-index", "0").Label("apps.kubernetes.io/pod-index", "7"),
			},
			want: []string{"leader", "w2", "w1", "w3"},
		},
		"pods without an index by the number of their name": {
			pods: []*wrappers.PodWrapper{pod("w-10"), pod("w-2"), pod("w-9"), pod("w-11")},
			want: []string{"w-2", "w-10", "w-9", "w-11"},
		},
		"the pods of a Job beside each other": {
			pods: []*wrappers.PodWrapper{
				pod("x-0").Controller("Job", "js-10", "10"), pod("y-0").Controller("Job", "js-9", "9"),
				pod("x-1").Controller("Job", "js-10", "10"), pod("y-1").Controller("Job", "js-9", "9"),
			},
			want: []string{"y-0", "x-0", "y-1", "x-1"},
		},
		"random names keep their order":         {pods: []*wrappers.PodWrapper{pod("d-x4k"), pod("d-a2b"), pod("d-zzz"), pod("d-b")}, want: []string{"d-x4k", "d-zzz", "d-a2b", "d-b"}},
		"the argument turns it off":             {pods: []*wrappers.PodWrapper{pod("w-3"), pod("w-2"), pod("w-1"), pod("w-0")}, off: true},
		"a gang without levels keeps its nodes": {pods: []*wrappers.PodWrapper{pod("w-3"), pod("w-2"), pod("w-1"), pod("w-0")}, flat: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := &gangs.Work{Group: wrappers.MakePodGroup("g", "ml").MinMember(4).Obj()}
			var err error
			if work.Tree, err = podgroup.Tree(&work.Group.Spec); err != nil {
				t.Fatal(err)
			}
			if !tc.flat {
				work.Group.Spec.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: "block"}
			}
			levelsOf := func(string) topology.Levels { return topology.Levels{"block", "rack"} }
			labels := map[string]map[string]string{}
			labelsOf := func(node string, _ sets.Set[string]) map[string]string { return labels[node] }
			var plan []placement.Placement
			var before []string
			for i, p := range tc.pods {
				node := fmt.Sprintf("n%d", i)
				labels[node] = map[string]string{"block": "b", "rack": fmt.Sprint(i % 2)}
				work.Pods = append(work.Pods, p.Obj())
				plan = append(plan, placement.Placement{Pod: placement.Pod{ID: string(work.Pods[i].UID), Index: i}, Node: node})
				before = append(before, work.Pods[i].Name)
			}
			(&Admission{args: &config.GangAdmissionArgs{RankOrder: !tc.off}}).orderByRank(work, levelsOf, labelsOf, plan)
			var got []string
			for i, p := range plan {
				got = append(got, work.Pods[p.Pod.Index].Name)
				if p.Node != fmt.Sprintf("n%d", i) {
					t.Errorf("placement %d is on %s", i, p.Node)
				}
			}
			if tc.want == nil {
				tc.want = before
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pods on n0 to n3 (-want +got):\n%s", diff)
			}
		})
	}
}

// Each leaf is ordered by the levels that it names, whatever another leaf names: the racks of the nodes alternate, and
// so do their rows, the other way round.
func TestEachLeafIsOrderedByItsOwnLevels(t *testing.T) {
	t.Parallel()
	pg := wrappers.MakePodGroup("g", "ml").SubGroup("a", 4).SubGroup("b", 4).Spec(func(s *v2alpha2.PodGroupSpec) {
		s.SubGroups[0].TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "fabric", PreferredTopologyLevel: "rack"}
		s.SubGroups[1].TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "power", PreferredTopologyLevel: "row"}
	}).Obj()
	tree, err := podgroup.Tree(&pg.Spec)
	if err != nil {
		t.Fatal(err)
	}
	levels := map[string]topology.Levels{"fabric": {"block", "rack", "tray"}, "power": {"row"}}
	labels := map[string]map[string]string{}
	work := &gangs.Work{Group: pg, Tree: tree}
	var plan []placement.Placement
	for i := range 8 {
		leaf, node := []string{"a", "b"}[i/4], fmt.Sprintf("n%d", i)
		labels[node] = map[string]string{"block": "b", "rack": fmt.Sprint(i % 2), "tray": "t", "row": fmt.Sprint(i / 2 % 2)}
		work.Pods = append(work.Pods, wrappers.MakePod(fmt.Sprintf("%s-%d", leaf, i%4), "ml").UID(node).Obj())
		plan = append(plan, placement.Placement{Leaf: leaf, Pod: placement.Pod{ID: node, Index: i}, Node: node})
	}
	(&Admission{args: &config.GangAdmissionArgs{RankOrder: true}}).orderByRank(work, func(name string) topology.Levels { return levels[name] },
		func(node string, _ sets.Set[string]) map[string]string { return labels[node] }, plan)
	var got []string
	for _, p := range plan {
		got = append(got, work.Pods[p.Pod.Index].Name)
	}
	want := []string{"a-0", "a-2", "a-1", "a-3", "b-0", "b-1", "b-2", "b-3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods on n0 to n7 (-want +got):\n%s", diff)
	}
}

// TestPreferredLevelsTakeHalfOfTheTime: a plan without preferred levels has all of its time after them.
func TestPreferredLevelsTakeHalfOfTheTime(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := testingclock.NewFakePassiveClock(start)
	d := &deadline{clock: clock, limit: 200 * time.Millisecond}
	d.restart(start, 0)
	d.addPreferences(start)
	for _, tt := range []struct {
		after             time.Duration
		preferences, plan bool
	}{{100 * time.Millisecond, false, false}, {101 * time.Millisecond, true, false}, {300 * time.Millisecond, true, false}, {301 * time.Millisecond, true, true}} {
		clock.SetTime(start.Add(tt.after))
		if d.preferencesExpired() != tt.preferences || d.isOver() != tt.plan {
			t.Errorf("after %s: expired %t and %t, want %t and %t", tt.after, d.preferencesExpired(), d.isOver(), tt.preferences, tt.plan)
		}
	}
}
