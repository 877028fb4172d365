// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/test/wrappers"
)

// BenchmarkAttempt measures what an attempt to plan a gang of 20,000 like pods costs beside the search for nodes:
// Begin, the gates of other plugins, the classes and Commit. The pods were observed in the order of their creation, or
// of their names.
func BenchmarkAttempt(b *testing.B) {
	const n = 20_000
	c := newCluster(b)
	f := c.sched.Profiles[wrappers.SchedulerName]
	for _, order := range []string{"created", "named"} {
		b.Run(order, func(b *testing.B) {
			now := time.Now()
			registry := gangs.New()
			registry.AddProfile(wrappers.SchedulerName)
			registry.SetGroup(wrappers.MakePodGroup("g", "ml").UID("g").MinMember(n).Obj(), now)
			var leader *corev1.Pod
			for i := range n {
				if order == "named" {
					i = i * 7919 % n // a list of pods is sorted by names, which end with a random suffix
				}
				name := fmt.Sprintf("g-%05d", i)
				pod := wrappers.MakePod(name, "ml").UID("12345678-1234-1234-1234-"+name).Gang("g").GPUs(1).Label("app", "g").
					CreationTimestamp(now.Add(time.Duration(i) * time.Millisecond)).Obj()
				if registry.SetPod(pod, now); i == 0 {
					leader = pod
				}
			}
			registry.SetSynced(now)
			pl := &Admission{profile: f, filterCache: kubescheduler.NewFilterCache()}
			placements := make([]placement.Placement, n)
			var parts [4]time.Duration
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				registry.MayEnterQueue(leader)
				registry.RecordPopped(leader.UID)
				b.StartTimer()
				last := cpuTime(b)
				done := func(part int) {
					now := cpuTime(b)
					parts[part] += now - last
					last = now
				}
				work, why := registry.BeginAttempt(leader)
				if work == nil {
					b.Fatal(why)
				}
				done(0)
				if gates := pl.gatedByOthers(c.ctx, work); len(gates) > 0 {
					b.Fatal(gates)
				}
				done(1)
				work.Reclass(func(pods []*corev1.Pod, classes []int) ([]int, []*corev1.Pod) {
					classified := pl.filterCache.Classify(f, nil, pods, classes)
					return classified.Of, classified.Pods
				})
				if work.Leaves(); len(work.Classes) != 1 {
					b.Fatalf("%d classes, want one", len(work.Classes))
				}
				done(2)
				b.StopTimer()
				for i, pod := range work.Problem.Pods[""] {
					placements[i] = placement.Placement{Pod: pod, Node: "n"}
				}
				last = cpuTime(b)
				b.StartTimer()
				if plan, why := registry.CommitPlan(work, placements, now); plan == nil {
					b.Fatal(why)
				}
				done(3)
				b.StopTimer()
				registry.AbortPlanOf(leader.UID, gangs.AbortLate, "again", now)
				now = now.Add(time.Hour)
				registry.Tick(now)
				b.StartTimer()
			}
			for i, name := range []string{"begin", "gates", "classes", "commit"} {
				b.ReportMetric(float64(parts[i].Nanoseconds())/float64(b.N), name+"-cpu-ns/op")
			}
		})
	}
}

// cpuTime returns the CPU time of the process.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
