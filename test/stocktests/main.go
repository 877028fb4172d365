// SPDX-License-Identifier: Apache-2.0

// Command stocktests runs the integration tests of kube-scheduler, as the module k8s.io/kubernetes has them, against
// muster-scheduler; `make test-stock` runs it. Every pod in them is one without a gang. Tests that say something else
// than for kube-scheduler are listed with the decision for it (differences); the program fails if one of them passes,
// or another one fails.
//
//	go run ./test/stocktests                              # needs bin/etcd
//	go run ./test/stocktests -scheduler=stock             # kube-scheduler itself, for comparison
//	go run ./test/stocktests -run TestPodUpdates queueing # some tests of some folders
//
// Nothing of the tests is in this repository: their files are read from the module, and compiled as if they were in
// hack/stocktests, with another function that makes the scheduler. What failed is in bin/stocktests/SCHEDULER.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

const (
	module = "hack/stocktests" // the folder of the module in which the tests are compiled
	limit  = "60m"             // of the tests of a folder
	// atOnce is how many folders are tested at a time. Their tests mostly wait, some of them with limits of seconds.
	atOnce = 3
)

// folders are those of k8s.io/kubernetes/test/integration/scheduler whose tests are run. The others are about gangs of
// Kubernetes (podgroup, preemption/podgroup: see TestRealNative) and the ports of the command (serving), or take the
// profile for a type of the stock scheduler and panic (batch).
var folders = []string{
	"preemption", "filters", "plugins", "queueing", "preemption/misc", "preemption/nominatednodename", "nominated_node_name",
	".", "taint", "scoring", "extender", "eventhandler", "prequeueinghint", "bind",
}

// leftOut is a pattern of tests with feature gates with which muster-scheduler does not start (docs/configuration.md):
// groups of pods, and resizes that preempt; and of those that bring a DefaultPreemption of their own.
const leftOut = "^TestAsyncPreemption$|^TestPreemptionAndNominatedNodeNameScenarios$|^TestDeferredResize|^TestPreemption$/(pod_group|CPG)|" +
	"^TestInterPodAffinityPreemption$/genericWorkloadEnabled:_true|^TestCoreResourceEnqueue$/GangScheduling"

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	which := flag.String("scheduler", "muster", "muster, or stock: kube-scheduler")
	pattern := flag.String("run", "", "the tests to run, as for go test; empty: all")
	flag.Parse()
	chosen := flag.Args()
	if len(chosen) == 0 {
		chosen = folders
	}
	if err := run(ctx, *which, *pattern, chosen, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, which, pattern string, chosen []string, out io.Writer) error {
	if which != "muster" && which != "stock" {
		return fmt.Errorf("-scheduler=%s: want muster or stock", which)
	}
	work, err := os.MkdirTemp("", "muster-stocktests-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	fmt.Fprintln(os.Stderr, "building the tests; an API server is part of each, which takes 15 minutes the first time")
	kubernetes, err := moduleOf(ctx, "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	// A test reads files of the module, which it looks for where such a variable says if the paths in it are trimmed.
	for name, value := range map[string]string{"TEST_SRCDIR": filepath.Dir(filepath.Dir(kubernetes)), "TEST_WORKSPACE": "."} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	programs, err := build(ctx, filepath.Join(kubernetes, "test/integration"), which == "muster", chosen, work)
	if err != nil {
		return err
	}
	logs := filepath.Join("bin/stocktests", which)
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	expected := differences
	if which == "stock" {
		expected = nil
	}
	all := make([]*results, len(chosen))
	var running sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, folder := range chosen {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			all[i] = testFolder(ctx, programs[i], folder, pattern, filepath.Join(logs, strings.ReplaceAll(folder, "/", "-")+".log"), expected)
		})
	}
	running.Wait()
	text, ok := report(chosen, all, expected, pattern != "")
	fmt.Fprint(out, text)
	if !ok {
		return fmt.Errorf("not as listed in test/stocktests/differences.go; the output of what failed is in %s", logs)
	}
	return nil
}

// moduleOf returns the folder of a module.
func moduleOf(ctx context.Context, name string) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-mod=mod", "-m", "-f", "{{.Dir}}", name)
	list.Dir, list.Stderr = module, os.Stderr
	found, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("looking for the module %s: %w", name, err)
	}
	return strings.TrimSpace(string(found)), nil
}

// build compiles the tests of folders below source and returns the paths of the programs. muster: with
// muster-scheduler.
func build(ctx context.Context, source string, muster bool, chosen []string, work string) ([]string, error) {
	here, err := filepath.Abs(module)
	if err != nil {
		return nil, err
	}
	o := overlay{Replace: map[string]string{}}
	sources := []string{"util", "scheduler"}
	for _, folder := range chosen {
		if from := path.Join("scheduler", folder); !slices.Contains(sources, from) {
			sources = append(sources, from)
		}
	}
	for _, from := range sources {
		if err := o.add(filepath.Join(source, from), filepath.Join(here, "tables", from), work, muster); err != nil {
			return nil, err
		}
	}
	content, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return nil, err
	}
	// The go command writes into a copy of go.mod which modules the tests import.
	modfile := filepath.Join(work, "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(work, name), content, 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	programs := make([]string, 0, len(chosen))
	for i, folder := range chosen {
		program := filepath.Join(work, fmt.Sprintf("%d.test", i))
		compile := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-mod=mod", "-modfile="+modfile, "-overlay="+file, "-o="+program, "./tables/"+path.Join("scheduler", folder))
		compile.Dir, compile.Stdout, compile.Stderr = module, os.Stderr, os.Stderr
		if err := compile.Run(); err != nil {
			return nil, fmt.Errorf("compiling the tests of %s: %w", folder, err)
		}
		programs = append(programs, program)
	}
	return programs, nil
}

// overlay is what the go command reads from -overlay: the content of files, which need not exist, by path.
type overlay struct {
	Replace map[string]string
}

// add puts the Go files of a folder where another one would be, changed by change. The folder of utilities is "util".
func (o *overlay) add(from, to, work string, muster bool) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		source, err := os.ReadFile(filepath.Join(from, entry.Name()))
		if err != nil {
			return err
		}
		text := moveImports(string(source))
		if muster && filepath.Base(from) == "util" {
			if text, err = withMuster(text); err != nil {
				return fmt.Errorf("%s: %w", filepath.Join(from, entry.Name()), err)
			}
		}
		file := filepath.Join(work, fmt.Sprintf("%d.go", len(o.Replace)))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
		o.Replace[filepath.Join(to, entry.Name())] = file
	}
	return nil
}

// moveImports returns a file with its imports of other files that are moved.
func moveImports(source string) string {
	const from, to = `"k8s.io/kubernetes/test/integration/`, `"github.com/muster-project/muster/` + module + `/tables/`
	return strings.NewReplacer(from+`scheduler"`, to+`scheduler"`, from+`scheduler/`, to+`scheduler/`, from+`util"`, to+`util"`).Replace(source)
}

// schedulersMade is how often the utilities make a scheduler: for tests that start it themselves, and for others.
const schedulersMade = 2

// withMuster returns the file of utilities with muster-scheduler in place of kube-scheduler.
func withMuster(source string) (string, error) {
	const made, imports = "scheduler.New(", "import (\n"
	if n := strings.Count(source, made); n != schedulersMade {
		return "", fmt.Errorf("%s is called %d times, want %d: the tests make their schedulers in another way", made, n, schedulersMade)
	}
	if strings.Count(source, imports) != 1 {
		return "", errors.New("no list of imports")
	}
	source = strings.Replace(source, imports, imports+"\tmuster \"github.com/muster-project/muster/"+module+"\"\n", 1)
	return strings.ReplaceAll(source, made, "muster.New("), nil
}

// testFolder runs the tests of a folder. What failed and is not expected is run once more. The output of tests that
// failed is in the file log.
func testFolder(ctx context.Context, program, folder, pattern, log string, expected []difference) *results {
	r := newResults()
	file, err := os.Create(log)
	if err != nil {
		r.broken = err.Error()
		return r
	}
	defer file.Close()
	r.broken = runProgram(ctx, program, pattern, r, file)
	for _, name := range r.unexpected(folder, expected) {
		again := newResults()
		if r.broken != "" {
			break
		}
		if broken := runProgram(ctx, program, exactly(name), again, file); broken == "" && again.passed(name) {
			r.again = append(r.again, name)
		}
	}
	for _, name := range r.again {
		delete(r.failed, name)
		r.ran[name] = true
	}
	return r
}

// runProgram runs a program and adds what its tests say. It returns why it ended, if that was before all were done.
func runProgram(ctx context.Context, program, pattern string, r *results, log io.Writer) (broken string) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", program, "-test.v=test2json", "-test.timeout="+limit, "-test.run="+pattern, "-test.skip="+leftOut)
	cmd.Env = append(os.Environ(), "PATH="+etcdPath()+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBE_INTEGRATION_ETCD_URL=http://127.0.0.1:1")
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with etcd
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	lines, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err.Error()
	}
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 64<<20)
	for !r.done && scanner.Scan() {
		r.add(scanner.Bytes(), log)
	}
	// What is left is a wait of ten minutes for goroutines to end. muster-scheduler's end with its process.
	_ = cmd.Cancel()
	err = errors.Join(scanner.Err(), cmd.Wait())
	if !r.done {
		return fmt.Sprintf("the program ended early: %v", err)
	}
	return ""
}

// etcdPath returns the folder of etcd.
func etcdPath() string {
	folder, err := filepath.Abs("bin")
	if err != nil {
		return "bin"
	}
	return folder
}
