// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"testing"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

type anyShape struct{}

func (anyShape) FittingPods() int { return 0 }

// TestImpliesNeeds: a gang of several classes that all must be in one domain does not wait for room of the cluster, too.
func TestImpliesNeeds(t *testing.T) {
	t.Parallel()
	s := anyShape{}
	for name, tc := range map[string]struct {
		byClass []gangs.Shape
		needs   []int
		pods    []int // in one domain
		want    bool
	}{
		"leader and workers in one rack":      {[]gangs.Shape{s, s}, []int{1, 7}, []int{1, 7}, true},
		"two racks of workers":                {[]gangs.Shape{s, s}, []int{1, 14}, []int{1, 7}, false},
		"the leader may be anywhere":          {[]gangs.Shape{s, s}, []int{1, 7}, []int{0, 7}, false},
		"the other class can do without":      {[]gangs.Shape{s, s}, []int{0, 7}, []int{0, 7}, false},
		"the room of the leader is not known": {[]gangs.Shape{nil, s}, []int{7}, []int{0, 7}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var needs []gangs.Need
			for _, pods := range tc.needs {
				needs = append(needs, gangs.Need{Shape: s, Pods: pods})
			}
			if got := (&tracked{byClass: tc.byClass}).impliesNeeds(tc.pods, needs); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
