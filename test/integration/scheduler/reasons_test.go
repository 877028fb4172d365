// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// The reason names the actual obstacle of a gang, whatever the filters of a single node report.
func TestReasonsMeanWhatTheySay(t *testing.T) {
	c := newCluster(t, 5)
	c.startQuick()

	c.createGang("chunks", 6, 5) // 30 of 40 GPUs, and a node has room for one pod
	c.untilSays("chunks", v2alpha2.ReasonTooLarge, "needs 6 pods", "would hold only 5 pods of 5 nvidia.com/gpu if they were empty",
		"5 of 6 pods can be placed")
	c.deleteGang("chunks")

	c.apply(c.group("unknown").MinMember(2))
	for _, n := range numbered("unknown", 2) {
		c.create(c.pod(n, "unknown", 0).Resource("example.com/fpga", resource.MustParse("1")))
	}
	c.untilSays("unknown", v2alpha2.ReasonNoNodeMatches, "no node offers example.com/fpga: correct the name")
	c.deleteGang("unknown")

	c.apply(c.group("claims").MinMember(2))
	for _, n := range numbered("claims", 2) {
		c.create(c.pod(n, "claims", 1).Claim("data"))
	}
	c.untilSays("claims", v2alpha2.ReasonClaimsNotReady, `persistentvolumeclaim "data" not found: create it`)
	c.deleteGang("claims")

	c.cordon(true, c.nodes[1:]...)
	c.createGang("cordoned", 4, 8)
	c.untilSays("cordoned", v2alpha2.ReasonNodesUnavailable, "4 nodes cordoned (", ", …; 32 nvidia.com/gpu, 32 free): uncordon them", "have 8 in all", "4 nodes: cordoned")
	c.notBound(numbered("cordoned", 4)...)
	c.cordon(false, c.nodes[1:]...)
	c.untilBound("cordoned", 4)
	c.untilSatisfied("cordoned")
}

// A gang that waits although GPUs are free says what keeps it from them.
func TestWhyAGangWaitsAlthoughGPUsAreFree(t *testing.T) {
	c := newCluster(t, 5)
	low := c.priorityClass("low", 10)
	high := c.neverPreempting("high", 1000)
	c.startQuick()
	for i, node := range c.nodes { // 3 GPUs of each node stay free
		c.create(c.pod(fmt.Sprintf("filler-%d", i), "", 5).NodeSelector(corev1.LabelHostname, node).PriorityClass(low))
	}
	c.until("all nodes are in use", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, "") == len(c.nodes) })

	c.createGang("fragmented", 3, 4)
	c.untilShown("fragmented", v2alpha2.ReasonFragmented, "the gang needs 4 nvidia.com/gpu on one node for each of 3 pods; 15 are free, at most 3 on one node")
	c.createGang("behind", 3, 4)
	c.untilShown("behind", v2alpha2.ReasonFragmented, "; 1 gang of its priority is ahead of it, in this namespace first fragmented")
	c.deleteGang("behind")
	c.deleteGang("fragmented")

	c.apply(c.group("pinned").MinMember(2).Priority(high))
	for _, n := range numbered("pinned", 2) {
		c.create(c.pod(n, "pinned", 4).NodeSelector(corev1.LabelHostname, c.nodes[0]).PriorityClass(high))
	}
	c.untilShown("pinned", v2alpha2.ReasonInsufficientGPUs, "needs 8 nvidia.com/gpu for 2 pods, 3 are free on the nodes that they may use (1 of 5: nodeSelector kubernetes.io/hostname=",
		"pods of lower priority hold 5")
	c.deleteGang("pinned")

	c.cordon(true, c.nodes[4])
	c.delete("filler-4")
	c.createGang("shut-out", 2, 4)
	c.untilShown("shut-out", v2alpha2.ReasonNodesUnavailable, "1 node cordoned ("+c.nodes[4]+"; 8 nvidia.com/gpu, 8 free): uncordon it",
		"needs 8 nvidia.com/gpu for 2 pods, the other nodes that they may use have 12 free, at most 3 on one node")
	c.cordon(false, c.nodes[4])
	c.untilBound("shut-out", 2)
	c.deleteGang("shut-out")

	c.createGang("runs", 2, 4) // on the empty node
	c.untilBound("runs", 2)
	c.untilSatisfied("runs")
	c.cordon(true, c.nodes[4])
	c.delete(numbered("runs", 2)[0])
	c.create(c.pod("runs-again", "runs", 4))
	c.untilShown("runs", v2alpha2.ReasonNodesUnavailable, "1 lost pod ran on node "+c.nodes[4]+", which has room for it and is cordoned: uncordon it")
	c.cordon(false, c.nodes[4])
	c.untilSatisfied("runs")
	c.deleteGang("runs")

	c.apply(c.group("apart").MinMember(6))
	for _, n := range numbered("apart", 6) {
		c.create(c.pod(n, "apart", 1).Label("app", "apart").ApartFrom(corev1.LabelHostname, "app", "apart"))
	}
	c.untilShown("apart", v2alpha2.ReasonTooLarge, "would hold only 5 pods of 1 nvidia.com/gpu (their podAntiAffinity over kubernetes.io/hostname excludes more)")
	c.deleteGang("apart")
	c.stillSchedules()
}

// Pods that lack a schedulerName are started one by one by the stock scheduler. The PodGroup says so before, while and
// after.
func TestPodsWithoutSchedulerName(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("g").MinMember(2))
	names := numbered("g", 2)
	for _, n := range names {
		c.create(c.pod(n, "g", 1).SchedulerName(corev1.DefaultSchedulerName))
	}
	c.untilSays("g", v2alpha2.ReasonOtherScheduler, "set schedulerName muster-scheduler in all pods of the gang: 2 pods of scheduler default-scheduler")
	c.bind(names[0], c.nodes[0]) // as the stock scheduler would
	c.untilSays("g", v2alpha2.ReasonOtherScheduler, "1 pod bound one by one by scheduler default-scheduler")
	c.bind(names[1], c.nodes[0])
	c.untilStatus("g", "says that its pods were bound one by one", func(s v2Status) bool {
		return containsAll(s.Summary, "2 pods bound one by one by scheduler default-scheduler", "set schedulerName muster-scheduler")
	})
	c.stillSchedules()
}

// A PodGroup whose pods are not made says who should make them; one that no pod names, which pods name it in another
// way.
func TestWhoShouldMakeThePods(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick()
	c.apply(c.group("few").MinMember(4))
	c.job("few", "few", 2, 1)
	c.deleteJobsAtTheEnd()
	c.apply(c.group("suspended").MinMember(2))
	c.apply(c.group("failing").MinMember(2))
	c.jobWith("suspended", "suspended", 2, 1, func(s *batchv1.JobSpec) { s.Suspend = ptr.To(true) })
	c.jobWith("failing", "failing", 2, 1, func(s *batchv1.JobSpec) { s.BackoffLimit = ptr.To[int32](0) })
	c.untilSatisfied("failing")
	c.must(cp.ExitPod(c.ctx, c.namespace, c.podsOf("failing")[0].Name, 3), "failing a pod")
	c.apply(c.group("nobody").MinMember(1))
	c.create(c.pod("stray", "", 1).Label(v2alpha2.PodGroupAnnotation, "nobody"))

	c.apply(c.group("few").MinMember(4).Priority("lost"))
	c.untilStatus("few", "says that its priority class does not exist", func(s v2Status) bool {
		return containsAll(s.Summary, "PriorityClass lost does not exist")
	})
	c.untilShown("few", v2alpha2.ReasonWaitingForPods, "needs 4 pods, 2 exist", "Job few has the 2 pods it is to have: set its parallelism", "to 4")
	c.until("its pods say so", 60*time.Second, func(pods []*corev1.Pod) bool {
		n := 0
		for _, p := range pods {
			if s := scheduled(p); s.Reason == v2alpha2.EventWaitingForGang && containsAll(s.Message, "PodGroup few: WaitingForPods", "needs 4 pods, 2 exist; Job few has the 2 pods it is to have: set its parallelism") {
				n++
			}
		}
		return n == 2
	})
	c.untilShown("suspended", v2alpha2.ReasonWaitingForPods, "needs 2 pods, 0 exist", "Job suspended is suspended: resume it")
	c.untilShown("failing", v2alpha2.ReasonWaitingForPods, "Job failing has failed: BackoffLimitExceeded", "pod failing-", "exited with code 3")
	c.untilShown("nobody", v2alpha2.ReasonWaitingForPods, "needs 1 pod, 0 exist", "pod stray names it by label pod-group-name: make it annotation pod-group-name")
	c.untilTold("Pod", "stray", "PodGroupNotNamed", "PodGroup nobody has no pods")
	c.untilTold("Pod", "stray", "IgnoredKeys", "label pod-group-name: a label names no PodGroup: make it an annotation")
	c.stillSchedules()
}
