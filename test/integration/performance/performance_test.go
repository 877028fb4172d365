// SPDX-License-Identifier: Apache-2.0

// Package performance runs the benchmarks with small numbers, to check that they work. It does not check performance.
package performance

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// repository is the root, seen from this package.
const repository = "../../.."

// Contestants that `make test` does not build take part in the drain if they are built: the stock scheduler, and
// Coscheduling, which takes minutes to build.
func TestBenchmarksWork(t *testing.T) {
	everyone, preempting := []string{"muster", "floor"}, []string{"muster"} // the floor does not preempt
	for program, contestant := range map[string]string{"kube-scheduler": "stock", "coscheduling": "coscheduling"} {
		if _, err := os.Stat(filepath.Join(repository, "bin", program)); err == nil {
			everyone = append(everyone, contestant)
			if contestant == "stock" {
				preempting = append(preempting, contestant)
			}
		}
	}
	program := filepath.Join(t.TempDir(), "performance")
	build := exec.Command("go", "build", "-o", program, "./test/performance")
	build.Dir = repository
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the benchmarks: %v\n%s", err, output)
	}

	for _, test := range []struct {
		name, shape string
		environment []string
		contestants []string
		figures     []string // some of those that muster must have
	}{
		{
			name: "all pods are there before the scheduler", shape: "drain-1000", contestants: everyone,
			environment: []string{"GANGS=3", "PODS_PER_GANG=4"},
			figures:     []string{"last_bind_seconds", "scheduler_cpu_seconds", "scheduler_peak_mib", "writes_per_pod"},
		},
		{
			name: "gangs wait", shape: "waiting", contestants: []string{"muster"},
			environment: []string{"VARIANTS=gangs:2", "PROBES=2", "SETTLE=1", "QUIET=1"},
			figures:     []string{"plain_p50_ms", "gang_p99_ms", "quiet_writes_per_minute", "quiet_cpu_percent"},
		},
		{
			name: "a gang arrives", shape: "huge-gang", contestants: []string{"muster", "floor"},
			environment: []string{"VARIANTS=pods:20", "PROBES=2"},
			figures:     []string{"first_to_last_bind_seconds", "plain_meanwhile_p99_ms", "plain_alone_p50_ms"},
		},
		{
			name: "pods have claims of devices", shape: "devices", contestants: []string{"muster"},
			environment: []string{"VARIANTS=claims", "PODS_PER_GANG=8"},
			figures:     []string{"last_bind_seconds", "writes_per_pod:resourceclaims/status"},
		},
		{
			name: "gangs take the room of others", shape: "preempt", contestants: preempting,
			environment: []string{"VARIANTS=gangs", "GANGS=2", "PODS_PER_GANG=4", "SETTLE=1"},
			figures:     []string{"arrival_to_last_bind_p50_ms", "decision_p50_ms", "confirmation_p50_ms", "victims_per_pod", "preemptions_wasted"},
		},
		{
			name: "pods take the room of others", shape: "preempt", contestants: preempting,
			environment: []string{"VARIANTS=pods:8", "GANGS=2", "PODS_PER_GANG=4", "SETTLE=1"},
			figures:     []string{"arrival_to_last_bind_p50_ms", "decision_p50_ms", "victims_per_pod", "preemptions_wasted"},
		},
	} {
		t.Run(test.name, func(t *testing.T) { // one after the other, because two control planes would only slow each other down
			out := t.TempDir()
			bench := exec.CommandContext(t.Context(), program)
			bench.Cancel = func() error { return bench.Process.Signal(syscall.SIGTERM) } // it ends its control plane
			bench.WaitDelay = 10 * time.Second
			bench.Dir = repository
			bench.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "MUSTER_") }),
				"SHAPE="+test.shape, "CONTESTANTS="+strings.Join(test.contestants, ","), "NODES=8", "GPUS=8", "REPEAT=1", "OUT="+out)
			bench.Env = append(bench.Env, test.environment...)
			if output, err := bench.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, output)
			}

			var got []string
			for _, run := range readRuns(t, filepath.Join(out, "results.jsonl")) {
				got = append(got, run.Contestant)
				if run.Shape != test.shape || run.Unfinished != "" {
					t.Errorf("%s did not finish %s: %s", run.Contestant, run.Shape, run.Unfinished)
				}
				if run.Contestant != "muster" {
					continue
				}
				for _, figure := range test.figures {
					if _, ok := run.Figures[figure]; !ok {
						t.Errorf("muster has no %s: %v", figure, run.Figures)
					}
				}
			}
			want := slices.Sorted(slices.Values(test.contestants))
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("contestants (-want +got):\n%s", diff)
			}
		})
	}
}

// run has the fields of a line of the results that the test reads.
type run struct {
	Shape, Contestant, Unfinished string
	Figures                       map[string]float64
}

func readRuns(t *testing.T, path string) []run {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []run
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var one run
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			t.Fatalf("%s: %v", scanner.Text(), err)
		}
		all = append(all, one)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
