// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

func TestSeveralClassesAreJudgedTogetherUpToALimit(t *testing.T) {
	t.Parallel()
	for classes, want := range map[int]bool{1: true, maxClasses: true, maxClasses + 1: false} {
		var groups []gang.Node
		p := placement.Problem{Pods: map[string][]placement.Pod{}}
		for i := range classes {
			name := fmt.Sprintf("l%d", i)
			groups, p.Pods[name] = append(groups, leafNode(name, "", 1)), waiting(1, i)
		}
		p.Tree = build(t, int32(classes), groups...)
		known := &knownCapacities{Capacities: make(fakeCapacities, classes), seen: map[int]ResourceCapacity{}}
		if got := newTogether(p, known) != nil; got != want {
			t.Errorf("%d classes: %t, want %t", classes, got, want)
		}
	}
}
