// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"time"

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
		out.add(schedulerCPU, (u.cpu - before.cpu).Seconds())
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
	return fmt.Sprintf("%.2f", got(got(procfs.NewDefaultFS()).LoadAvg()).Load1)
}

// countWrites returns how many writes the API server has answered, by resource, from its own metrics: an audit log would
// cost it more the more a contestant writes.
func (cl *cluster) countWrites(ctx context.Context) map[string]int64 {
	writes := map[string]int64{}
	for _, metric := range cl.serverMetrics(ctx)["apiserver_request_total"].GetMetric() {
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
		must(pause(ctx, interval)) // a counter cannot be watched
		if now := cl.writesSince(ctx, before); writes == nil || !maps.Equal(now, writes) {
			writes, last = now, time.Now()
		}
	}
	return writes, last
}

// collectGarbage has the API server collect its garbage. How much creating the objects has left would otherwise decide how
// often it collects while bindings are posted: two or three times in a drain of 3,200 pods, each of which takes 2 to 4 % of its
// CPU time.
func (cl *cluster) collectGarbage(ctx context.Context) {
	got(fetch(ctx, cl.admin, cl.cp.Admin().Host+"/debug/pprof/heap?gc=1")).Close()
}

// countCollections returns how often the API server has collected its garbage since its start.
func (cl *cluster) countCollections(ctx context.Context) float64 {
	return byLabel(cl.serverMetrics(ctx)["go_gc_cycles_total_gc_cycles_total"], "")[""].sum
}
