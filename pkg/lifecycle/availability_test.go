// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/lifecycle"
)

func TestCount(t *testing.T) {
	t.Parallel()
	got := lifecycle.Count([]lifecycle.Pod{
		ready(0),
		with(ready(1), terminating),
		with(ready(2), ended(0, 0)),
		with(ready(3), notReady, outdated),
		with(ready(4), pending, func(p *lifecycle.Pod) { p.Gated = true }),
	})
	want := lifecycle.PodCounts{Pods: 4, Gated: 1, Scheduled: 2, Running: 2, Ready: 1, Updated: 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAvailability(t *testing.T) {
	t.Parallel()
	clique := func(name string, ready, minimum int32) lifecycle.Clique {
		return lifecycle.Clique{Name: name, Observed: true, Replicas: 4, MinAvailable: minimum, Pods: 4, Scheduled: 4, Ready: ready, Updated: 4}
	}
	leaving := clique("leaving", 4, 2)
	leaving.Terminating = true
	group := func(available, minimum int32) lifecycle.ScalingGroup {
		return lifecycle.ScalingGroup{Name: "group", Observed: true, Replicas: 3, MinAvailable: minimum, AvailableReplicas: available}
	}
	leavingGroup := group(3, 1)
	leavingGroup.Terminating = true
	for name, tc := range map[string]struct {
		got, want bool
	}{
		"a clique at its minimum":                          {clique("a", 2, 2).Available(), true},
		"a clique below":                                   {clique("a", 1, 2).Available(), false},
		"a clique scaled to zero":                          {clique("a", 0, 0).Available(), true},
		"a clique that is being deleted":                   {leaving.Available(), false},
		"a group replica":                                  {lifecycle.GroupReplica{Members: []lifecycle.Clique{clique("a", 2, 2), clique("b", 4, 1)}}.Available(), true},
		"a group replica, one clique below":                {lifecycle.GroupReplica{Members: []lifecycle.Clique{clique("a", 2, 2), clique("b", 0, 1)}}.Available(), false},
		"a group replica, one clique missing":              {lifecycle.GroupReplica{Members: []lifecycle.Clique{clique("a", 2, 2)}, Missing: []string{"b"}}.Available(), false},
		"a group replica, one clique leaving":              {lifecycle.GroupReplica{Members: []lifecycle.Clique{clique("a", 2, 2), leaving}}.Available(), false},
		"a group at its minimum":                           {group(1, 1).Available(), true},
		"a group below":                                    {group(1, 2).Available(), false},
		"a group that is being deleted":                    {leavingGroup.Available(), false},
		"a set replica":                                    {lifecycle.SetReplica{Cliques: []lifecycle.Clique{clique("a", 2, 2)}, Groups: []lifecycle.ScalingGroup{group(1, 1)}}.Available(), true},
		"a set replica, its group below":                   {lifecycle.SetReplica{Cliques: []lifecycle.Clique{clique("a", 2, 2)}, Groups: []lifecycle.ScalingGroup{group(0, 1)}}.Available(), false},
		"a set replica, its clique below":                  {lifecycle.SetReplica{Cliques: []lifecycle.Clique{clique("a", 1, 2)}, Groups: []lifecycle.ScalingGroup{group(1, 1)}}.Available(), false},
		"a set replica, its group missing":                 {lifecycle.SetReplica{Cliques: []lifecycle.Clique{clique("a", 2, 2)}, Missing: []string{"g"}}.Available(), false},
		"a clique with an old status is not updated":       {lifecycle.GroupReplica{Members: []lifecycle.Clique{{Replicas: 1, Updated: 1}}}.IsUpdated(), false},
		"nor one whose status is of another revision":      {lifecycle.GroupReplica{Revision: 2, Members: []lifecycle.Clique{clique("a", 2, 2)}}.IsUpdated(), false},
		"nor a set replica with one":                       {lifecycle.SetReplica{Revision: 2, Cliques: []lifecycle.Clique{clique("a", 2, 2)}}.IsUpdated(), false},
		"scheduled and available are two things":           {clique("a", 0, 2).IsScheduled(), true},
		"a set replica is updated when all of it is":       {lifecycle.SetReplica{Cliques: []lifecycle.Clique{clique("a", 0, 2)}}.IsUpdated(), true},
		"a set replica is not updated when a group is not": {lifecycle.SetReplica{Groups: []lifecycle.ScalingGroup{group(3, 1)}}.IsUpdated(), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
	replica := lifecycle.SetReplica{Cliques: []lifecycle.Clique{clique("a", 2, 2), clique("b", 0, 2)}, Missing: []string{"g"}}
	if got, _ := replica.Unavailable(); got != "b" {
		t.Errorf("Unavailable() = %q, want b", got)
	}
}
