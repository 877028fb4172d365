// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunningGangsFillTheCluster(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options options
		want    []int // pods of each
	}{
		"gangs of one size":        {options{nodes: 4, gpus: 8, podsPerGang: 16}, []int{16, 16}},
		"the last gang is smaller": {options{nodes: 2, gpus: 8, podsPerGang: 6}, []int{6, 6, 4}},
		"one gang fits":            {options{nodes: 1, gpus: 8, podsPerGang: 8}, []int{8}},
	} {
		var got []int
		for _, g := range runningGangs(test.options, variant{}) {
			got = append(got, g.pods)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLosses(t *testing.T) {
	t.Parallel()
	gangs := []gang{{name: "a", pods: 2}, {name: "b", pods: 2}, {name: "c", pods: 2}}
	for name, test := range map[string]struct {
		gone []string
		want losses
	}{
		"nothing was lost":                   {nil, losses{}},
		"a whole gang":                       {[]string{"a-00000", "a-00001"}, losses{pods: 2, gangs: 1}},
		"parts of two gangs":                 {[]string{"a-00000", "c-00001"}, losses{pods: 2, gangs: 2, incomplete: 2}},
		"pods of others do not count":        {[]string{"probe-00001", "b-00000", "b-00001"}, losses{pods: 2, gangs: 1}},
		"a whole gang and a part of another": {[]string{"b-00001", "a-00000", "b-00000"}, losses{pods: 3, gangs: 2, incomplete: 1}},
	} {
		if got := lossesOf(gangs, test.gone); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestPreemptionMetrics(t *testing.T) {
	t.Parallel()
	families := parseMetrics([]byte(`# TYPE muster_preemption_decision_duration_seconds histogram
muster_preemption_decision_duration_seconds_bucket{result="decided",le="+Inf"} 4
muster_preemption_decision_duration_seconds_sum{result="decided"} 0.2
muster_preemption_decision_duration_seconds_count{result="decided"} 4
muster_preemption_decision_duration_seconds_bucket{result="hopeless",le="+Inf"} 9
muster_preemption_decision_duration_seconds_sum{result="hopeless"} 7
muster_preemption_decision_duration_seconds_count{result="hopeless"} 9
# TYPE muster_preemptions_total counter
muster_preemptions_total{outcome="placed"} 3
muster_preemptions_total{outcome="wasted"} 1
muster_preemptions_total{outcome="spared"} 5
`))
	want := map[string]sample{"decided": {sum: 0.2, count: 4}, "hopeless": {sum: 7, count: 9}}
	got := byLabel(families["muster_preemption_decision_duration_seconds"], "result")
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sample{})); diff != "" {
		t.Errorf("searches (-want +got):\n%s", diff)
	}
	want = map[string]sample{"placed": {sum: 3}, "wasted": {sum: 1}, "spared": {sum: 5}}
	if diff := cmp.Diff(want, byLabel(families["muster_preemptions_total"], "outcome"), cmp.AllowUnexported(sample{})); diff != "" {
		t.Errorf("preemptions (-want +got):\n%s", diff)
	}
	decided := got["decided"]
	if mean := decided.meanSince(sample{count: 2, sum: 0.1}); len(mean) != 1 || mean[0] < 0.0499 || mean[0] > 0.0501 {
		t.Errorf("the mean of the last two of four searches is %v, want 0.05 s", mean)
	}
	if mean := decided.meanSince(decided); mean != nil {
		t.Errorf("the mean of no searches is %v, want none", mean)
	}
}
