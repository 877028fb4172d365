// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"math/rand"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/lifecycle"
)

func TestMinimum(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		m           lifecycle.Minimum
		ready, leaf int32 // ready pods, and minMember in the PodGroup; 0: not listed
		// target, enforced, effective for the status
		target, enforced, effective int32
	}{
		"unset, new: its replicas": {
			lifecycle.Minimum{AtCreation: 4, Replicas: 4}, 0, 0, 4, 4, 4},
		"unset, scaled in: lowered immediately": {
			lifecycle.Minimum{AtCreation: 4, Replicas: 2, Recorded: ptr.To[int32](4)}, 4, 0, 2, 2, 2},
		"unset, scaled out above its creation: unchanged": {
			lifecycle.Minimum{AtCreation: 4, Replicas: 9, Recorded: ptr.To[int32](4)}, 9, 0, 4, 4, 4},
		"unset, in and out again: not before the pods are ready": {
			lifecycle.Minimum{AtCreation: 4, Replicas: 4, Recorded: ptr.To[int32](2)}, 3, 0, 4, 2, 2},
		"unset, in and out again, ready: the status rises, the PodGroup follows it": {
			lifecycle.Minimum{AtCreation: 4, Replicas: 4, Recorded: ptr.To[int32](2)}, 4, 0, 4, 2, 4},
		"unset, in and out again before any pod was ready: not yet": {
			lifecycle.Minimum{AtCreation: 4, Replicas: 4, Recorded: ptr.To[int32](2)}, 0, 2, 4, 2, 2},
		"unset, in and out again, and a new PodGroup requires all: it rises": {
			lifecycle.Minimum{AtCreation: 4, Replicas: 4, Recorded: ptr.To[int32](2)}, 0, 4, 4, 2, 4},
		"unset, scaled in, and the PodGroup was not lowered yet: lowered": {
			lifecycle.Minimum{AtCreation: 4, Replicas: 2, Recorded: ptr.To[int32](4)}, 4, 4, 2, 2, 2},
		"scaled to zero: no pods are needed": {
			lifecycle.Minimum{AtCreation: 4, Replicas: 0, Recorded: ptr.To[int32](4)}, 4, 0, 0, 0, 0},
		"back from zero: a new leaf, whole": {
			lifecycle.Minimum{AtCreation: 4, Replicas: 3, Recorded: ptr.To[int32](0)}, 0, 0, 3, 3, 3},
		"explicit: a lower limit": {
			lifecycle.Minimum{Explicit: ptr.To[int32](2), AtCreation: 4, Replicas: 3, Recorded: ptr.To[int32](2)}, 0, 0, 2, 2, 2},
		"explicit, above the replicas, without admission: waits": {
			lifecycle.Minimum{Explicit: ptr.To[int32](3), AtCreation: 1, Replicas: 1}, 1, 0, 3, 3, 3},
		"explicit, scaled to zero without admission: leaves the tree": {
			lifecycle.Minimum{Explicit: ptr.To[int32](2), AtCreation: 4, Replicas: 0, Recorded: ptr.To[int32](2)}, 4, 0, 0, 0, 0},
		"explicit zero, without admission: one": {
			lifecycle.Minimum{Explicit: ptr.To[int32](0), AtCreation: 4, Replicas: 4}, 0, 0, 1, 1, 1},
		"created with nothing recorded: one at least": {
			lifecycle.Minimum{AtCreation: 0, Replicas: 3}, 0, 0, 1, 1, 1},
		"negative replicas, without admission": {
			lifecycle.Minimum{AtCreation: 1, Replicas: -3}, 0, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := [3]int32{tc.m.Target(), tc.m.Enforced(), tc.m.Effective(tc.ready, tc.leaf)}
			if want := [3]int32{tc.target, tc.enforced, tc.effective}; got != want {
				t.Errorf("target, enforced, effective = %v, want %v", got, want)
			}
		})
	}
}

// TestMinimumRisesOnlyToWhatIsReady simulates random scaling with a status that is written now and then. While the
// gang is admitted, the recorded minimum rises only when as many pods are ready, and the enforced minimum never
// exceeds the replicas, those at creation, or the recorded minimum.
func TestMinimumRisesOnlyToWhatIsReady(t *testing.T) {
	t.Parallel()
	for seed := range int64(200) {
		r := rand.New(rand.NewSource(seed))
		n := 1 + r.Int31n(8)
		m := lifecycle.Minimum{AtCreation: n, Replicas: n, Recorded: &n}
		for range 100 {
			m.Replicas = 1 + r.Int31n(10)
			enforced := m.Enforced()
			if enforced > m.Replicas || enforced < 1 || enforced > m.AtCreation || enforced > *m.Recorded {
				t.Fatalf("seed %d: %d enforced of %+v", seed, enforced, m)
			}
			if r.Intn(2) == 0 {
				ready := r.Int31n(m.Replicas + 1)
				recorded := m.Effective(ready, enforced)
				if recorded > enforced && recorded > ready {
					t.Fatalf("seed %d: minimum raised from %d to %d with %d ready", seed, enforced, recorded, ready)
				}
				m.Recorded = &recorded
			}
		}
	}
}

func TestLeaf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		m      lifecycle.Minimum
		listed *int32
		want   int32
	}{
		"no PodGroup: the target, whatever is recorded": {lifecycle.Minimum{AtCreation: 4, Replicas: 4, Recorded: ptr.To[int32](2)}, nil, 4},
		"scaled in: lowered":                            {lifecycle.Minimum{AtCreation: 4, Replicas: 2, Recorded: ptr.To[int32](4)}, ptr.To[int32](4), 2},
		"in and out again: stays":                       {lifecycle.Minimum{AtCreation: 4, Replicas: 4, Recorded: ptr.To[int32](2)}, ptr.To[int32](2), 2},
		"the status has risen: follows":                 {lifecycle.Minimum{AtCreation: 4, Replicas: 4, Recorded: ptr.To[int32](4)}, ptr.To[int32](2), 4},
		"a new PodGroup, before the status has risen":   {lifecycle.Minimum{AtCreation: 4, Replicas: 4, Recorded: ptr.To[int32](2)}, ptr.To[int32](4), 4},
		"back from zero: a new leaf, whole":             {lifecycle.Minimum{AtCreation: 4, Replicas: 3, Recorded: ptr.To[int32](0)}, ptr.To[int32](0), 3},
		"explicit":                                      {lifecycle.Minimum{Explicit: ptr.To[int32](2), AtCreation: 4, Replicas: 4}, ptr.To[int32](2), 2},
	} {
		if got := tc.m.Leaf(tc.listed); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestGroupMinimum(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		explicit *int32
		replicas int32
		want     int32
	}{
		"unset":                    {nil, 3, 1},
		"explicit":                 {ptr.To[int32](2), 3, 2},
		"scaled to zero":           {ptr.To[int32](2), 0, 0},
		"zero, without admission":  {ptr.To[int32](0), 3, 1},
		"above, without admission": {ptr.To[int32](4), 3, 4},
		"negative scale is zero":   {nil, -1, 0},
		"unset, scaled to zero":    {nil, 0, 0},
		"unset, with one replica":  {nil, 1, 1},
	} {
		if got := lifecycle.GroupMinimum(tc.explicit, tc.replicas); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
