package main

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var start = time.Unix(1000, 0)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		run  drained
		want result
	}{
		"gangs one after the other are partial only while their own bindings are posted": {
			run: drained{
				bindings: []binding{
					{pod: "a1", at: at(1)}, {pod: "a2", at: at(1.5)},
					{pod: "b1", at: at(2)}, {pod: "b2", at: at(4)},
				},
				process: usage{cpu: 3 * time.Second, memory: 10 << 20},
				server:  2 * time.Second,
				writes:  map[string]int64{"pods/binding": 4, "events": 2},
				quiet:   at(4.5),
			},
			want: result{
				firstBind: 1, lastBind: 4, lastWrite: 4.5, podsPerSecond: 1,
				latencyMedian: 2.75, latency99: 4, spreadMedian: 1.25, spreadLongest: 2,
				partialGangSeconds: 2.5, heldGPUSeconds: 2.5,
				cpu: 3, memory: 10, serverCPU: 2,
				writesPerPod: 1.5, writes: map[string]float64{"pods/binding": 1, "events": 0.5},
			},
		},
		"interleaved gangs hold what they cannot use": {
			run: drained{bindings: []binding{
				{pod: "a1", at: at(1)}, {pod: "b1", at: at(1)}, {pod: "b2", at: at(3)}, {pod: "a2", at: at(3)},
			}},
			want: result{
				firstBind: 1, lastBind: 3, lastWrite: 3, podsPerSecond: 4.0 / 3,
				latencyMedian: 3, latency99: 3, spreadMedian: 2, spreadLongest: 2,
				partialGangSeconds: 4, heldGPUSeconds: 4, writes: map[string]float64{},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.run.start = start
			test.run.gangOf = map[string]string{"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
			if diff := cmp.Diff(test.want, measure(&test.run), cmp.AllowUnexported(result{}), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
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

func TestInTurn(t *testing.T) {
	t.Parallel()
	var got [][]string
	for round := range 3 {
		got = append(got, inTurn([]string{"floor", "muster", "stock"}, round))
	}
	want := [][]string{{"muster", "stock", "floor"}, {"stock", "muster", "floor"}, {"muster", "stock", "floor"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inTurn (-want +got):\n%s", diff)
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

func TestReportSaysWhetherTheTargetsAreReached(t *testing.T) {
	t.Parallel()
	times := func(seconds ...float64) (all []result) {
		for _, s := range seconds {
			all = append(all, result{lastBind: s})
		}
		return all
	}
	var out bytes.Buffer
	err := report(&out, options{repeat: 3, gangs: 250, podsPerGang: 16, contestants: []string{"muster", "stock", "floor"}}, map[string][]result{
		"muster": times(3, 4, 5), "stock": times(10, 10, 10), "floor": times(1, 1, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"muster / stock: 0.40 (0.30 to 0.50), to reach: at most 0.4: reached\n",
		"muster / floor: 4.00 (3.00 to 5.00), to reach: at most 3: NOT reached\n",
		"needs at least 78 s",
	} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		env     map[string]string
		args    []string
		want    string
		wantErr string
	}{
		"the defaults are the drain of the project's target": {
			want: "1000 nodes, 8 GPUs, 250 gangs of 16, 3 times, [muster stock floor], bin/muster-scheduler",
		},
		"the environment sets what make passes on": {
			env:  map[string]string{"NODES": "10", "GPUS": "4", "GANGS": "5", "PODS_PER_GANG": "2", "REPEAT": "1", "CONTESTANTS": "stock", "MUSTER_SCHEDULER": "/tmp/other"},
			want: "10 nodes, 4 GPUs, 5 gangs of 2, 1 times, [stock], /tmp/other",
		},
		"a flag wins over the environment": {
			env:  map[string]string{"NODES": "2000"},
			args: []string{"-nodes=3000"},
			want: "3000 nodes, 8 GPUs, 250 gangs of 16, 3 times, [muster stock floor], bin/muster-scheduler",
		},
		"a number that is none": {
			env:     map[string]string{"REPEAT": "x", "GANGS": "5O"},
			wantErr: "$GANGS is \"5O\", which is no number\n$REPEAT is \"x\", which is no number",
		},
		"more pods than GPUs": {
			args:    []string{"-nodes=499"},
			wantErr: "4000 pods do not fit on 3992 GPUs: a drain needs room for all",
		},
		"nothing to do": {
			args:    []string{"-gangs=0"},
			wantErr: "nodes, gpus, gangs, pods-per-gang and repeat must be positive",
		},
		"an unknown contestant": {
			args:    []string{"-contestants=muster,volcano"},
			wantErr: `unknown contestant "volcano"; known: muster, stock, stock-default, floor`,
		},
	} {
		t.Run(name, func(t *testing.T) { // not parallel: the environment is one
			for _, variable := range []string{"NODES", "GPUS", "GANGS", "PODS_PER_GANG", "REPEAT", "CONTESTANTS", "MUSTER_SCHEDULER", "BIN", "QPS", "BURST", "PROFILES"} {
				t.Setenv(variable, test.env[variable])
			}
			o, err := parse(test.args)
			if err != nil || test.wantErr != "" {
				if err == nil || err.Error() != test.wantErr {
					t.Fatalf("got error %v, want %q", err, test.wantErr)
				}
				return
			}
			got := fmt.Sprintf("%d nodes, %d GPUs, %d gangs of %d, %d times, %v, %s", o.nodes, o.gpus, o.gangs, o.podsPerGang, o.repeat, o.contestants, o.musterScheduler)
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	got := []string{spread("%.1f", nil), spread("%.1f", []float64{2}), spread("%.1f", []float64{3, 1, 2})}
	if want := []string{"-", "2.0", "2.0 (1.0 to 3.0)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
