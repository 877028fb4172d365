// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/test/wrappers"
)

// TestPreferredLevels plans gangs of pods with one GPU on nodes of two GPUs: three in rack a, two in b, two in c, of
// which a and b are in one block, and one node without labels.
func TestPreferredLevels(t *testing.T) {
	t.Parallel()
	nodes := func() []runtime.Object {
		objects := []runtime.Object{wrappers.MakeNode("plain").GPUs(2).Obj()}
		for _, rack := range []struct {
			name, block string
			nodes       int
		}{{"a", "1", 3}, {"b", "1", 2}, {"c", "2", 2}} {
			for i := range rack.nodes {
				objects = append(objects, wrappers.MakeNode(fmt.Sprintf("%s%d", rack.name, i)).GPUs(2).Label("block", rack.block).Label("rack", rack.name).Obj())
			}
		}
		return objects
	}
	type racks map[byte]int
	for name, tt := range map[string]struct {
		level   string
		pods    int
		running string // node of a pod that runs; "": none
		want    racks
	}{
		"the tightest rack, in the block with the least room": {level: "block,rack", pods: 4, want: racks{'c': 4}},
		"the only rack":                  {level: "block,rack", pods: 6, want: racks{'a': 6}},
		"a block":                        {level: "block,rack", pods: 8, want: racks{'a': 6, 'b': 2}},
		"as few as possible":             {level: "block,rack", pods: 12, want: racks{'a': 6, 'b': 4, 'c': 2}},
		"all nodes":                      {level: "block,rack", pods: 16, want: racks{'a': 6, 'b': 4, 'c': 4, 'p': 2}},
		"the rack of the pod that runs":  {level: "block,rack", pods: 3, running: "c0", want: racks{'c': 3}},
		"the block of the pod that runs": {level: "block,rack", pods: 5, running: "b1", want: racks{'b': 3, 'a': 2}},
		"a level of no node":             {level: "zone", pods: 16, want: racks{'a': 6, 'b': 4, 'c': 4, 'p': 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := nodes()
			p := placement.Problem{Preferred: map[string]string{"": tt.level}, Pods: map[string][]placement.Pod{}, Have: gang.Counts{}, Bound: gang.Counts{}}
			most := int32(tt.pods)
			if tt.running != "" {
				objects = append(objects, classPod("running").GPUs(1).Node(tt.running).Obj())
				p.Have[""], p.Bound[""], p.Nodes = 1, 1, map[string][]string{"": {tt.running}}
				most++
			}
			tree, err := gang.Build(gang.Node{MinMember: &most}, nil)
			if err != nil {
				t.Fatal(err)
			}
			p.Tree = tree
			for i := range tt.pods {
				p.Pods[""] = append(p.Pods[""], placement.Pod{ID: fmt.Sprint(i)})
			}
			w := newCluster(t, objects...).world(classPod("one").GPUs(1).Obj())
			plan, short := placement.Minimum(p, w, placement.Budget{PreferencesExpired: func() bool { return false }})
			if short != nil {
				t.Fatalf("no plan: %+v", short)
			}
			got := racks{}
			for _, pl := range plan {
				got[pl.Node[0]]++
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("pods by rack (-want +got):\n%s", diff)
			}
		})
	}
}
