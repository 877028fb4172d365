// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"

	"github.com/muster-project/muster/test/controlplane"
)

// usage is the resource usage of a process since its start.
type usage struct {
	cpu       time.Duration
	mebibytes float64 // largest resident set
}

// usageOf reads /proc; zero for no process, the floor's.
func usageOf(p *controlplane.Process) usage {
	if p == nil {
		return usage{}
	}
	process := got(procfs.NewProc(p.PID()))
	return usage{cpu: cpuOf(got(process.Stat())), mebibytes: float64(got(process.NewStatus()).VmHWM) / (1 << 20)}
}

// add adds the usage of a scheduler since before, if there is one.
func (u usage) add(out *outcome, before usage) {
	if u != (usage{}) {
		out.add("scheduler_cpu_seconds", (u.cpu - before.cpu).Seconds())
		out.add(schedulerMemory, u.mebibytes)
	}
}

// percentSince returns the CPU time since before in percent of a core.
func (u usage) percentSince(before usage, took time.Duration) float64 {
	return 100 * (u.cpu - before.cpu).Seconds() / took.Seconds()
}

func cpuOf(stat procfs.ProcStat) time.Duration {
	return time.Duration(stat.CPUTime() * float64(time.Second))
}

// childrenCPU returns the CPU time of this process's children, by the name of the program.
func childrenCPU() map[string]time.Duration {
	children := map[string]time.Duration{}
	processes, _ := procfs.AllProcs()
	for _, process := range processes {
		stat, err := process.Stat()
		if err != nil || stat.PPID != os.Getpid() {
			continue // it has ended, or is another's
		}
		if command, err := process.CmdLine(); err == nil && len(command) > 0 {
			children[filepath.Base(command[0])] += cpuOf(stat)
		}
	}
	return children
}

// serverUsage returns the CPU time of the API server and etcd.
func serverUsage() time.Duration {
	children := childrenCPU()
	return children["kube-apiserver"] + children["etcd"]
}

func loadAverage() string {
	return fmt.Sprintf("%.2f", got(got(procfs.NewDefaultFS()).LoadAvg()).Load1)
}

// fetch returns what a program serves at an address.
func (cl *cluster) fetch(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := cl.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", address, response.Status, content)
	}
	return content, err
}

// metrics returns the metrics of the program that serves at an address, by name.
func (cl *cluster) metrics(ctx context.Context, address string) map[string]*dto.MetricFamily {
	return parseMetrics(got(cl.fetch(ctx, address+"/metrics")))
}

func parseMetrics(content []byte) map[string]*dto.MetricFamily {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return got(parser.TextToMetricFamilies(bytes.NewReader(content)))
}

// label returns the value of a label, "" without it.
func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// sample is a counter, or a histogram with its number of observations.
type sample struct{ sum, count float64 }

// byLabel returns the totals of a metric by the values of a label. A series that does not exist yet is zero.
func byLabel(family *dto.MetricFamily, name string) map[string]sample {
	samples := map[string]sample{}
	for _, metric := range family.GetMetric() {
		s, histogram := samples[label(metric, name)], metric.GetHistogram()
		s.sum += metric.GetCounter().GetValue() + histogram.GetSampleSum()
		s.count += float64(histogram.GetSampleCount())
		samples[label(metric, name)] = s
	}
	return samples
}

// meanSince returns the mean of the observations after the earlier ones, in a list. nil: there were none.
func (s sample) meanSince(earlier sample) []float64 {
	if s.count == earlier.count {
		return nil
	}
	return []float64{(s.sum - earlier.sum) / (s.count - earlier.count)}
}

// countWrites returns how many writes the API server has answered, by resource, from its own metrics: an audit log
// would cost it more the more a contestant writes.
func (cl *cluster) countWrites(ctx context.Context) map[string]int64 {
	writes := map[string]int64{}
	for _, metric := range cl.metrics(ctx, cl.server)["apiserver_request_total"].GetMetric() {
		switch label(metric, "verb") {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE":
		default:
			continue
		}
		resource := label(metric, "resource")
		if resource == "leases" { // the API server's own
			continue
		}
		if sub := label(metric, "subresource"); sub != "" {
			resource += "/" + sub
		}
		writes[resource] += int64(metric.GetCounter().GetValue())
	}
	return writes
}

// writesSince returns the writes after those before.
func (cl *cluster) writesSince(ctx context.Context, before map[string]int64) map[string]int64 {
	writes := cl.countWrites(ctx)
	for resource, n := range before {
		writes[resource] -= n
	}
	maps.DeleteFunc(writes, func(_ string, n int64) bool { return n == 0 })
	return writes
}

// settledWrites returns the writes since before, when there was none for longer than a status is delayed, and when the
// last one was observed.
func (cl *cluster) settledWrites(ctx context.Context, before map[string]int64) (writes map[string]int64, last time.Time) {
	const quiet, interval = 2500 * time.Millisecond, 250 * time.Millisecond
	for last = time.Now(); writes == nil || time.Since(last) < quiet; {
		pause(ctx, interval) // a counter cannot be watched
		if now := cl.writesSince(ctx, before); writes == nil || !maps.Equal(now, writes) {
			writes, last = now, time.Now()
		}
	}
	return writes, last
}

// collectGarbage has the API server collect its garbage. How much creating the objects has left would otherwise decide
// how often it collects while bindings are posted: two or three times in a drain of 3,200 pods, each of which takes 2
// to 4 % of its CPU time.
func (cl *cluster) collectGarbage(ctx context.Context) {
	got(cl.fetch(ctx, cl.server+"/debug/pprof/heap?gc=1"))
}

// countCollections returns how often the API server has collected its garbage since its start.
func (cl *cluster) countCollections(ctx context.Context) float64 {
	return byLabel(cl.metrics(ctx, cl.server)["go_gc_cycles_total_gc_cycles_total"], "")[""].sum
}

// addressOf returns where a scheduler serves that is ready when this URL answers.
func addressOf(readyURL string) string { return strings.TrimSuffix(readyURL, "/readyz") }

// profile fetches CPU profiles of programs, by name and address, from when they answer on, if they are wanted. The
// returned function waits for their end, and fetches heap profiles after a garbage collection.
func (cl *cluster) profile(ctx context.Context, length time.Duration, programs map[string]string) (wait func()) {
	if cl.o.profiles == "" {
		return func() {}
	}
	save := func(page, file string) {
		limited, cancel := context.WithTimeout(ctx, length+30*time.Second)
		defer cancel()
		content, err := cl.fetch(limited, page)
		for away := (*url.Error)(nil); errors.As(err, &away) && limited.Err() == nil; {
			pause(limited, 10*time.Millisecond) // there is no event when it answers
			content, err = cl.fetch(limited, page)
		}
		must(errors.Join(err, os.MkdirAll(cl.o.profiles, 0o755)))
		must(os.WriteFile(filepath.Join(cl.o.profiles, file), content, 0o644))
		fmt.Fprintln(os.Stderr, "profile:", filepath.Join(cl.o.profiles, file))
	}
	each := func(page, suffix string) (wait func()) {
		var all sync.WaitGroup
		for name, address := range programs {
			all.Go(func() {
				if err := attempt(func() { save(address+page, name+suffix) }); err != nil {
					fmt.Fprintln(os.Stderr, "fetching a profile:", err)
				}
			})
		}
		return all.Wait
	}
	waitForCPU := each(fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(length.Seconds())), ".pprof")
	return func() {
		waitForCPU()
		each("/debug/pprof/heap?gc=1", ".heap.pprof")()
	}
}
