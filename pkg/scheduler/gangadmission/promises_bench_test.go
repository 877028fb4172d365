// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/backfill"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/test/wrappers"
)

// podsOnNodes implements gangs.PodsOnNodes.
type podsOnNodes []*corev1.Pod

func (n podsOnNodes) VisitPods(visit func(int, *corev1.Pod)) {
	for id, pod := range n {
		visit(id, pod)
	}
}

func (n podsOnNodes) ExtendedAmounts() func(int) int64 { return func(int) int64 { return 1 } }

// BenchmarkPlainPodBesidePromises measures what room that four of 2,000 waiting gangs are promised, on 128 nodes each,
// costs a pod without a gang: the search for its node among 5,000, with all filters and scores. "ratio" is the CPU time
// with promises to that without.
func BenchmarkPlainPodBesidePromises(b *testing.B) {
	const promised, nodesOfEach = 4, 128
	start := time.Unix(1_000_000, 0)
	var clusters [2]*cluster
	for with := range clusters {
		now := start.Add(10 * time.Minute)
		c := newCluster(b, func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) { c.clock = testingclock.NewFakeClock(now) })
		clusters[with] = c
		r := c.gangs.registry
		r.Configure(gangs.Options{
			Amount: kubescheduler.AmountOf, ReservationAfter: time.Duration(with) * 5 * time.Minute, ReservationTimeout: time.Hour,
			MaxReservations: gangs.MaxReservations{OfPriority: promised, OfNamespace: promised, InAll: promised},
		})
		r.SetSynced(start)
		var running podsOnNodes
		for i := range 5000 {
			node := fmt.Sprintf("n%04d", i)
			c.sched.Cache.AddNode(klog.Background(), wrappers.MakeNode(node).GPUs(8).Obj())
			pod := wrappers.MakePod("running-"+node, "ml").UID(node).GPUs(1).Node(node).Obj()
			if err := c.sched.Cache.AddPod(klog.Background(), pod); err != nil {
				b.Fatal(err)
			}
			running = append(running, pod)
		}
		for i := range 2000 {
			gang := fmt.Sprintf("g%04d", i)
			r.SetGroup(wrappers.MakePodGroup(gang, "ml").UID(gang).MinMember(2).Obj(), start)
			pods := members(gang, 2)
			for _, pod := range pods {
				r.SetPod(pod.UID(pod.Obj().Name).GPUs(8).Obj(), start)
			}
			if i >= promised*with {
				continue
			}
			leader := pods[0].Obj()
			r.MayEnterQueue(leader)
			r.RecordPopped(leader.UID)
			work, why := r.BeginAttempt(leader)
			if work == nil {
				b.Fatal(why)
			}
			search := r.BeginPromise(work, running, now)
			if search == nil {
				b.Fatal("the gang is promised nothing")
			}
			p := &backfill.Promise{}
			for k := range nodesOfEach {
				k += i * nodesOfEach
				p.Plan, p.Behind = append(p.Plan, placement.Placement{Node: running[k].Spec.NodeName}), append(p.Behind, k)
			}
			r.RecordPromise(work, search, p, false, now)
		}
		if n := r.Reservations().Len(); n != with*promised*nodesOfEach {
			b.Fatalf("%d rooms are reserved, want %d", n, with*promised*nodesOfEach)
		}
	}
	info, err := framework.NewPodInfo(wrappers.MakePod("plain", "ml").UID("plain").GPUs(1).Obj())
	if err != nil {
		b.Fatal(err)
	}
	pod := &framework.QueuedPodInfo{PodInfo: info}
	schedule := func(c *cluster) {
		if _, err := c.sched.SchedulePod(c.ctx, c.sched.Profiles[wrappers.SchedulerName], framework.NewCycleState(), pod); err != nil {
			b.Fatal(err)
		}
	}
	var spent [2]time.Duration
	for _, c := range clusters {
		snapshot := c.sched.Profiles[wrappers.SchedulerName].SnapshotSharedLister().(*cache.Snapshot)
		if err := c.sched.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
			b.Fatal(err)
		}
		schedule(c)
	}
	for b.Loop() {
		for with, c := range clusters {
			begun := cpuTime(b)
			schedule(c)
			spent[with] += cpuTime(b) - begun
		}
	}
	b.ReportMetric(float64(spent[0].Nanoseconds())/float64(b.N), "cpu-ns/without")
	b.ReportMetric(float64(spent[1].Nanoseconds())/float64(b.N), "cpu-ns/with")
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "ratio")
}
