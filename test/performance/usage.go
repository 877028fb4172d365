// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
	"k8s.io/client-go/kubernetes"
)

// usage is the resource usage of a process since its start.
type usage struct {
	cpu    time.Duration
	memory int64 // largest resident set, in bytes
}

// usageOf reads /proc.
func usageOf(pid int) (usage, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return usage{}, err
	}
	stat, err := process.Stat()
	if err != nil {
		return usage{}, err
	}
	status, err := process.NewStatus()
	return usage{cpu: cpuOf(stat), memory: int64(status.VmHWM)}, err
}

func cpuOf(stat procfs.ProcStat) time.Duration {
	return time.Duration(stat.CPUTime() * float64(time.Second))
}

// childrenCPU returns the CPU time of this process's children, by name.
func childrenCPU() map[string]time.Duration {
	children := map[string]time.Duration{}
	processes, _ := procfs.AllProcs()
	for _, process := range processes {
		if stat, err := process.Stat(); err == nil && stat.PPID == os.Getpid() { // otherwise it has ended
			children[stat.Comm] += cpuOf(stat)
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
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	load, _, _ := strings.Cut(string(content), " ")
	return load
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
	content, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	defer content.Close()
	return parseMetrics(content)
}

// fetchMetrics returns the metrics that a program serves at an address, by name.
func fetchMetrics(ctx context.Context, client *http.Client, url string) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading metrics at %s: %s", url, response.Status)
	}
	return parseMetrics(response.Body)
}

func parseMetrics(content io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(content)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return families, nil
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
