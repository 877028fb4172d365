// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		env     map[string]string
		args    []string
		want    string
		wantErr string
	}{
		"the defaults are the drain of the project's target": {
			want: "drain-1000: 1000 nodes, 8 GPUs, 250 gangs of 16, 3 times, [muster stock floor], bin/muster-scheduler",
		},
		"shapes have numbers of their own": {
			env: map[string]string{"SHAPE": "drain-5000,trees"},
			want: "drain-5000: 5000 nodes, 8 GPUs, 500 gangs of 16, 3 times, [muster stock floor], bin/muster-scheduler; " +
				"trees: 1000 nodes, 8 GPUs, 100 gangs of 32, 3 times, [muster stock floor], bin/muster-scheduler, trees whole flat bare",
		},
		"what is set holds for every shape": {
			env:  map[string]string{"SHAPE": "waiting", "NODES": "10", "VARIANTS": "none,gangs:25,trees:2x8"},
			want: "waiting: 10 nodes, 8 GPUs, 1 gangs of 8, 3 times, [muster stock floor], bin/muster-scheduler, none gangs:25 trees:2x8",
		},
		"another build of muster-scheduler takes part": {
			env:  map[string]string{"MUSTER_BEFORE": "/tmp/before"},
			want: "drain-1000: 1000 nodes, 8 GPUs, 250 gangs of 16, 3 times, [muster muster-before stock floor], bin/muster-scheduler",
		},
		"a variant without a number where one belongs": {
			env:     map[string]string{"VARIANTS": "gangs:many"},
			wantErr: `variant "gangs:many": want KIND, KIND:NUMBER or KIND:NUMBERxNUMBER`,
		},
		"an unknown shape": {
			env:     map[string]string{"SHAPE": "drain"},
			wantErr: `unknown shape "drain"; known: drain-1000, drain-5000, small-gangs, trees, plain, big-gang, refused, restart, waiting, throughput, huge-gang, devices, preempt, workload`,
		},
		"the other build without its path": {
			args:    []string{"-contestants=muster,muster-before"},
			wantErr: "muster-before needs the path of that build ($MUSTER_BEFORE)",
		},
		"the environment sets what make passes on": {
			env:  map[string]string{"NODES": "10", "GPUS": "4", "GANGS": "5", "PODS_PER_GANG": "2", "REPEAT": "1", "CONTESTANTS": "stock", "MUSTER_SCHEDULER": "/tmp/other"},
			want: "drain-1000: 10 nodes, 4 GPUs, 5 gangs of 2, 1 times, [stock], /tmp/other",
		},
		"a flag wins over the environment": {
			env:  map[string]string{"NODES": "2000"},
			args: []string{"-nodes=3000"},
			want: "drain-1000: 3000 nodes, 8 GPUs, 250 gangs of 16, 3 times, [muster stock floor], bin/muster-scheduler",
		},
		"the workload has steps for variants, the nodes that it needs, and contestants of its own": {
			env:  map[string]string{"SHAPE": "workload", "REPLICAS": "20", "PODS_PER_CLIQUE": "3", "GANGS": "1000"},
			want: "workload: 8 nodes, 8 GPUs, 1 gangs of 1, 3 times, [muster floor], bin/muster-scheduler, create zero",
		},
		"a workload has another build beside the first": {
			env:  map[string]string{"SHAPE": "workload", "REPLICAS": "20", "MUSTER_BEFORE": "/tmp/before"},
			want: "workload: 5 nodes, 8 GPUs, 1 gangs of 1, 3 times, [muster muster-before floor], bin/muster-scheduler, create zero",
		},
		"a workload begins with its creation": {
			env:     map[string]string{"SHAPE": "workload", "STEPS": "zero"},
			wantErr: `step "zero": the first is create, the others are some of half, up, zero, back, delete`,
		},
		"a number that is none": {
			env:     map[string]string{"REPEAT": "x", "GANGS": "5O"},
			wantErr: "$GANGS is \"5O\", which is no number\n$REPEAT is \"x\", which is no number",
		},
		"more pods than GPUs": {
			args:    []string{"-nodes=499"},
			wantErr: "drain-1000: 4000 pods do not fit on 3992 GPUs: there must be room for all",
		},
		"nothing to do": {
			args:    []string{"-gangs=-1"},
			wantErr: "nodes, gpus, gangs, pods-per-gang and repeat must be positive",
		},
		"an unknown contestant": {
			args:    []string{"-contestants=muster,volcano"},
			wantErr: `unknown contestant "volcano"; known: muster, muster-before, coscheduling, stock, stock-default, floor`,
		},
	} {
		t.Run(name, func(t *testing.T) { // not parallel: the environment is one
			for _, variable := range []string{"NODES", "GPUS", "GANGS", "PODS_PER_GANG", "REPEAT", "CONTESTANTS", "MUSTER_SCHEDULER", "BIN", "QPS", "BURST", "PROFILES", "SHAPE", "VARIANTS", "MUSTER_BEFORE", "PROBES", "OUT", "REPLICAS", "PODS_PER_CLIQUE", "STEPS"} {
				t.Setenv(variable, test.env[variable])
			}
			all, err := parse(test.args)
			if err != nil || test.wantErr != "" {
				if err == nil || err.Error() != test.wantErr {
					t.Fatalf("got error %v, want %q", err, test.wantErr)
				}
				return
			}
			var got []string
			for _, p := range all {
				o := p.o
				line := fmt.Sprintf("%s: %d nodes, %d GPUs, %d gangs of %d, %d times, %v, %s", p.shape.name, o.nodes, o.gpus, o.gangs, o.podsPerGang, o.repeat, o.contestants, o.musterScheduler)
				for i, v := range o.variants {
					if v != (variant{}) {
						line += [...]string{", ", " "}[min(i, 1)] + v.name
					}
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("parse (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVariants(t *testing.T) {
	t.Parallel()
	for _, want := range []variant{
		{},
		{name: "none", kind: "none"},
		{name: "gangs:250", kind: "gangs", n: 250},
		{name: "trees:10x1024", kind: "trees", n: 10, m: 1024},
	} {
		if got, err := parseVariant(want.name); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", want.name, got, err, want)
		}
	}
}
