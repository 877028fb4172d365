// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// usage is the resource usage of a process since its start.
type usage struct {
	cpu    time.Duration
	memory int64 // largest resident set, in bytes
}

// usageOf reads /proc.
func usageOf(pid int) (usage, error) {
	cpu, err := cpuOf(pid)
	if err != nil {
		return usage{}, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	u := usage{cpu: cpu}
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return usage{}, fmt.Errorf("reading the memory of process %d: %w", pid, err)
			}
			u.memory = kib * 1024
		}
	}
	return u, nil
}

// clockTick is the unit of CPU times in /proc: USER_HZ, 100 on every Linux.
const clockTick = 10 * time.Millisecond

func cpuOf(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The program's name is in parentheses and may contain anything; utime and stime are fields 14 and 15.
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("%d fields after the name", len(fields))
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// childrenCPU returns the CPU time of this process's children of these names.
func childrenCPU(names ...string) time.Duration {
	var sum time.Duration
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		content, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(content)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				continue
			}
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			if err != nil || !slices.Contains(names, strings.TrimSpace(string(name))) {
				continue
			}
			if cpu, err := cpuOf(pid); err == nil {
				sum += cpu
			}
		}
	}
	return sum
}

// countWrites returns how many writes the API server has answered, by resource, from its own metrics: an audit log would
// cost it more the more a contestant writes.
func countWrites(ctx context.Context, client kubernetes.Interface) (map[string]int64, error) {
	families, err := serverMetrics(ctx, client)
	if err != nil {
		return nil, err
	}
	writes := map[string]int64{}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		label := map[string]string{}
		for _, pair := range metric.GetLabel() {
			label[pair.GetName()] = pair.GetValue()
		}
		switch label["verb"] {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE":
		default:
			continue
		}
		resource := label["resource"]
		if resource == "leases" { // the API server's own
			continue
		}
		if sub := label["subresource"]; sub != "" {
			resource += "/" + sub
		}
		writes[resource] += int64(metric.GetCounter().GetValue())
	}
	return writes, nil
}

// collectGarbage has the API server collect its garbage. How much creating the objects has left would otherwise decide how
// often it collects while bindings are posted: two or three times in a drain of 3,200 pods, each of which takes 2 to 4 % of its
// CPU time.
func collectGarbage(ctx context.Context, client kubernetes.Interface) error {
	if _, err := client.Discovery().RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx); err != nil {
		return fmt.Errorf("having the API server collect its garbage: %w", err)
	}
	return nil
}

// countCollections returns how often the API server has collected its garbage since its start.
func countCollections(ctx context.Context, client kubernetes.Interface) (float64, error) {
	families, err := serverMetrics(ctx, client)
	if err != nil {
		return 0, err
	}
	n := 0.0
	for _, metric := range families["go_gc_cycles_total_gc_cycles_total"].GetMetric() {
		n += metric.GetCounter().GetValue()
	}
	return n, nil
}

// serverMetrics returns the API server's metrics, by name.
func serverMetrics(ctx context.Context, client kubernetes.Interface) (map[string]*dto.MetricFamily, error) {
	content, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return families, nil
}

// counters are figures that only grow.
type counters struct {
	reconciles                   map[string]float64 // by controller
	webhookSeconds, webhookCalls float64            // of Muster's admission webhooks, as measured by the API server
}

// counters reads them.
func (w *workload) counters(ctx context.Context) (counters, error) {
	c := counters{reconciles: map[string]float64{}}
	if w.metrics == "" {
		return c, nil
	}
	families, err := serverMetrics(ctx, w.client)
	if err != nil {
		return c, err
	}
	for _, metric := range families["apiserver_admission_webhook_admission_duration_seconds"].GetMetric() {
		c.webhookSeconds += metric.GetHistogram().GetSampleSum()
		c.webhookCalls += float64(metric.GetHistogram().GetSampleCount())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.metrics, nil)
	if err != nil {
		return c, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return c, fmt.Errorf("reading muster-controller's metrics: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if families, err = parser.TextToMetricFamilies(response.Body); err != nil {
		return c, fmt.Errorf("reading muster-controller's metrics: %w", err)
	}
	for _, metric := range families["controller_runtime_reconcile_total"].GetMetric() {
		for _, pair := range metric.GetLabel() {
			if pair.GetName() == "controller" {
				c.reconciles[pair.GetValue()] += metric.GetCounter().GetValue()
			}
		}
	}
	return c, nil
}

// settledWrites returns the writes since before, when there was none for longer than a status is delayed, and when the
// last one was observed.
func settledWrites(ctx context.Context, client kubernetes.Interface, before map[string]int64) (map[string]int64, time.Time, error) {
	const quiet, interval = 2500 * time.Millisecond, 250 * time.Millisecond
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	last, since := map[string]int64(nil), time.Now()
	for last == nil || time.Since(since) < quiet {
		select {
		case <-ticker.C: // a counter cannot be watched
		case <-ctx.Done():
			return nil, since, context.Cause(ctx)
		}
		now, err := countWrites(ctx, client)
		if err != nil {
			return nil, since, err
		}
		if !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
	}
	for resource, n := range before {
		last[resource] -= n
	}
	maps.DeleteFunc(last, func(_ string, n int64) bool { return n == 0 })
	return last, since, nil
}

// addUsage adds the resource usage of the scheduler since its start.
func addUsage(cl *cluster, out *outcome) error {
	u, err := cl.usage()
	if err != nil || cl.process == nil {
		return err
	}
	out.add(schedulerCPU, u.cpu.Seconds())
	out.add(schedulerMemory, mebibytes(u.memory))
	return nil
}
