package placement_test

import (
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

func TestSmoke(t *testing.T) {
	tree := mustBuild(t, inner("", "", 3), leaf("a", "", 2), leaf("b", "", 2), leaf("c", "", 2), leaf("d", "", 2))
	w := newCluster(t, []class{{gpus: 1}, {gpus: 9}}, node{gpus: 8})
	plan, short := placement.Minimum(placement.Problem{Tree: tree, Have: gang.Counts{"b": 1}, Pods: map[string][]placement.Pod{
		"a": pods("a", 1, 2), "b": pods("b", 0, 3), "c": pods("c", 0, 2), "d": pods("d", 0, 2)}}, w, placement.Budget{})
	if short != nil || len(plan) != 5 {
		t.Fatal(plan, short)
	}
}
