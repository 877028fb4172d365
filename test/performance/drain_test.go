// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var start = time.Unix(1000, 0)

func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		run  drained
		want map[string]float64 // without zeros
	}{
		"gangs one after the other are partial only while their own bindings are posted": {
			run: drained{
				bindings: []binding{
					{pod: "a1", at: after(1)}, {pod: "a2", at: after(1.5)},
					{pod: "b1", at: after(2)}, {pod: "b2", at: after(4)},
				},
				process: usage{cpu: 3 * time.Second, mebibytes: 10},
				server:  2 * time.Second, collections: 3,
				writes: map[string]int64{"pods/binding": 4, "events": 2},
				quiet:  after(4.5),
			},
			want: map[string]float64{
				"first_bind_seconds": 1, lastBind: 4, "last_write_seconds": 4.5, podsPerSecond: 1,
				at("gang_latency_%s_seconds", 0.5): 2.75, at("gang_latency_%s_seconds", 0.99): 4, at("bind_spread_%s_ms", 0.5): 1250, at("bind_spread_%s_ms", 1): 2000,
				"partial_gang_seconds": 2.5, "held_gpu_seconds": 2.5,
				"scheduler_cpu_seconds": 3, schedulerMemory: 10, serverCPU: 2, "server_collections": 3,
				writesPerPod: 1.5, "writes_per_pod:pods/binding": 1, "writes_per_pod:events": 0.5,
			},
		},
		"a gang is whole once what it needs is bound, and what comes later is surplus": {
			run: drained{needed: 1, bindings: []binding{
				{pod: "a1", at: after(1)}, {pod: "b1", at: after(2)}, {pod: "a2", at: after(3)}, {pod: "b2", at: after(4)},
			}},
			want: map[string]float64{
				"first_bind_seconds": 1, lastBind: 4, "last_write_seconds": 4, podsPerSecond: 1, at("gang_latency_%s_seconds", 0.5): 1.5, at("gang_latency_%s_seconds", 0.99): 2,
			},
		},
		"interleaved gangs hold what they cannot use": {
			run: drained{bindings: []binding{
				{pod: "a1", at: after(1)}, {pod: "b1", at: after(1)}, {pod: "b2", at: after(3)}, {pod: "a2", at: after(3)},
			}},
			want: map[string]float64{
				"first_bind_seconds": 1, lastBind: 3, "last_write_seconds": 3, podsPerSecond: 4.0 / 3,
				at("gang_latency_%s_seconds", 0.5): 3, at("gang_latency_%s_seconds", 0.99): 3, at("bind_spread_%s_ms", 0.5): 2000, at("bind_spread_%s_ms", 1): 2000,
				"partial_gang_seconds": 4, "held_gpu_seconds": 4,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.run.start = start
			test.run.gangOf = map[string]string{"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
			got := map[string]float64{}
			var out outcome
			test.run.measure(&out)
			for _, f := range out.figures {
				if f.value != 0 {
					got[f.key] = f.value
				}
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("measure (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for name, test := range map[string]struct {
		values []float64
		q      float64
		want   float64
	}{
		"the median of one":                             {[]float64{7}, 0.5, 7},
		"the median of three":                           {[]float64{3, 1, 2}, 0.5, 2},
		"the median of four is between the middle ones": {[]float64{4, 1, 2, 3}, 0.5, 2.5},
		"99 of 100":                                     {hundred, 0.99, 99},
		"99 of 100 among few is the largest":            {[]float64{3, 1, 2}, 0.99, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := quantile(test.values, test.q); got != test.want {
				t.Errorf("quantile %g of %v is %g, want %g", test.q, test.values, got, test.want)
			}
		})
	}
}

func TestCheckNodes(t *testing.T) {
	t.Parallel()
	full := []binding{{pod: "a", node: "n1"}, {pod: "b", node: "n1"}}
	if err := checkNodes(full, 2); err != nil {
		t.Errorf("a full node: %v", err)
	}
	if err := checkNodes(full, 1); err == nil {
		t.Error("a node with more pods than GPUs was not noticed")
	}
}
