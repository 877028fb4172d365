// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// imaginable are capacities of a cluster that can be imagined.
type imaginable struct{ fakeCapacities }

func (f imaginable) Imagine([]int, bool, bool) Imagined { return nothing{} }

// nothing is a cluster of which only the requests matter: there are none.
type nothing struct{ Imagined }

func (nothing) Resources() []corev1.ResourceName { return nil }

func (nothing) Uses(int) []int64 { return nil }

func TestSeveralClassesAreJudgedTogetherUpToALimit(t *testing.T) {
	t.Parallel()
	for classes, want := range map[int]bool{1: false, 2: true, maxClasses: true, maxClasses + 1: false} {
		var groups []gang.Node
		p := placement.Problem{Pods: map[string][]placement.Pod{}}
		for i := range classes {
			name := fmt.Sprintf("l%d", i)
			groups, p.Pods[name] = append(groups, leafNode(name, "", 1)), waiting(1, i)
		}
		p.Tree = build(t, int32(classes), groups...)
		for _, world := range []Capacities{fakeCapacities{}, imaginable{}} {
			_, known := world.(imaginable)
			if got := newTogether(p, &knownCapacities{Capacities: world, seen: map[int]ResourceCapacity{}}) != nil; got != (want && known) {
				t.Errorf("%d classes, imaginable: %t: %t, want %t", classes, known, got, want && known)
			}
		}
	}
}
