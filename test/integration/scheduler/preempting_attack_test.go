// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// deletedByScheduler returns the names of the pods whose deletion muster-scheduler requested in this test, sorted,
// without those that were refused. If the scheduler is killed meanwhile, the API server records a time-out, and deletes
// the pod.
func (c *cluster) deletedByScheduler() []string {
	c.t.Helper()
	pods := map[string]bool{}
	for _, w := range c.writes(c.began) {
		if w.verb == "delete" && w.resource == "pods" && (w.code < 300 || w.code >= 500) {
			pods[w.name] = true
		}
	}
	return slices.Sorted(maps.Keys(pods))
}

// checkEvicted checks that muster-scheduler has deleted these pods, and no others. They are sorted. A watch shows the
// end of a pod before the API server has written the request to its audit log, so it waits for those that are missing
// there.
func (c *cluster) checkEvicted(want ...string) {
	c.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		deleted := c.deletedByScheduler()
		if slices.Equal(deleted, want) {
			return
		}
		if len(deleted) >= len(want) || time.Now().After(end) {
			is, should := sets.New(deleted...), sets.New(want...)
			c.t.Errorf("%d pods were evicted, want %d: besides %v, and not %v", len(is), len(should), sets.List(is.Difference(should)), sets.List(should.Difference(is)))
			return
		}
	}
}

// preemptionTimeout sets how long a gang waits for its victims beyond their grace periods.
func preemptionTimeout(text string) func(map[string]any) {
	return func(config map[string]any) {
		for _, p := range profiles(config) {
			gangArgs(p)["preemptionTimeout"] = text
		}
	}
}

// holdPod keeps a pod from ending, by a finalizer that is removed at the end of the test.
func (c *cluster) holdPod(name string) {
	c.t.Helper()
	c.patchPod(name, map[string]any{"metadata": map[string]any{"finalizers": []string{"test/hold"}}})
	c.t.Cleanup(func() { _ = removeFinalizers(context.Background(), c.namespace, name) })
}

func removeFinalizers(ctx context.Context, namespace, pod string) error {
	_, err := cp.Client().CoreV1().Pods(namespace).Patch(ctx, pod, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	return ignoreNotFound(err)
}

// untilTerminating waits until exactly so many pods are terminating.
func (c *cluster) untilTerminating(n int) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d pods are terminating", n), 30*time.Second, func(pods []*corev1.Pod) bool {
		return len(slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })) == n
	})
}

// untilEvicting waits until the PodGroup says that its victims are being deleted.
func (c *cluster) untilEvicting(group string) {
	c.t.Helper()
	c.untilStatus(group, "evicts", func(s v2Status) bool { return condition(s, v2alpha2.ConditionPreempting).Reason == "Evicting" })
}

// untilPreempting waits until the PodGroup says that the gang preempts, or runs already.
func (c *cluster) untilPreempting(group string) {
	c.t.Helper()
	c.untilStatus(group, "preempts or runs", func(s v2Status) bool {
		return condition(s, v2alpha2.ConditionPreempting).Status == metav1.ConditionTrue || s.Phase == v2alpha2.PodGroupAdmitted
	})
}

func graceSeconds(n int64) func(*wrappers.PodWrapper) {
	return func(w *wrappers.PodWrapper) {
		w.Spec(func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = &n })
	}
}

// workedExample is a gang of KAI Scheduler's minSubGroups proposal, "Non-preemptible pods calculation", that fills
// nodes of 8 GPUs.
type workedExample struct {
	nodes, protected int
	leaves           map[string]int // pods by leaf
	tree             func(*wrappers.PodGroupWrapper) *wrappers.PodGroupWrapper
}

// workedExamples have 16 of 32 pods and 10 of 16 protected.
var workedExamples = map[string]workedExample{
	"replicas": {4, 16, map[string]int{"prefill-0": 8, "prefill-1": 8, "prefill-2": 8, "prefill-3": 8}, func(w *wrappers.PodGroupWrapper) *wrappers.PodGroupWrapper {
		return w.MinSubGroup(2).SubGroup("prefill-0", 8).SubGroup("prefill-1", 8).SubGroup("prefill-2", 8).SubGroup("prefill-3", 8)
	}},
	"leaders": {2, 10, map[string]int{"decode-leaders": 1, "decode-workers": 7, "prefill-leaders": 1, "prefill-workers": 7}, func(w *wrappers.PodGroupWrapper) *wrappers.PodGroupWrapper {
		return w.MinSubGroup(2).Inner("", "decode", 2).SubGroupOf("decode", "decode-leaders", 1).SubGroupOf("decode", "decode-workers", 4).
			Inner("", "prefill", 2).SubGroupOf("prefill", "prefill-leaders", 1).SubGroupOf("prefill", "prefill-workers", 4)
	}},
}

// runExample runs the gang of an example as "served", semi-preemptible, and returns the number of its pods.
func (c *cluster) runExample(example workedExample, class string) int {
	c.t.Helper()
	c.apply(example.tree(c.group("served")).Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.SemiPreemptible }))
	pods := 0
	for leaf, n := range example.leaves {
		pods += n
		for _, pod := range numbered(leaf, n) {
			c.create(c.pod(pod, "served", 1).SubGroup(leaf).PriorityClass(class))
		}
	}
	c.untilBound("served", pods)
	return pods
}

// A gang that needs exactly what is not protected in a worked example gets it; one that needs a pod more evicts nobody.
func TestPreemptionWorkedExamples(t *testing.T) {
	for name, example := range workedExamples {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, example.nodes)
			low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
			c.startQuick()
			pods := c.runExample(example, low)
			free := pods - example.protected
			c.gangOf("large", high, free+1, free+1, 1)
			c.untilReason("large", v2alpha2.ReasonInsufficientGPUs)
			c.stillSchedules()
			c.checkEvicted()
			c.deleteGang("large")
			c.gangOf("exact", high, free, free, 1)
			c.untilBound("exact", free)
			c.untilSatisfied("exact")
			c.untilBound("served", example.protected)
			c.untilSatisfied("served")
			if deleted := c.deletedByScheduler(); len(deleted) != free {
				t.Errorf("%d pods were evicted, want %d", len(deleted), free)
			}
			if n := c.countEvents("PodGroup", "served")["GangBelowMinimum"]; n != 0 {
				t.Error("the gang was below its minimum")
			}
		})
	}
}

// A gang that needs one pod more than is not protected says that preemption would not help.
func TestPreemptionWouldNotHelpWorkedExamples(t *testing.T) {
	for name, example := range workedExamples {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, example.nodes)
			c.patience = 12 * time.Second
			low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
			c.startQuick()
			large := c.runExample(example, low) - example.protected + 1
			c.gangOf("large", high, large, large, 1)
			c.untilSays("large", v2alpha2.ReasonInsufficientGPUs, "preemption would not help")
		})
	}
}

// stuckVictim runs pod held-0, which never ends, and gang other, whose room is the second choice.
func stuckVictim(t *testing.T, hasGang bool, timeout string) (c *cluster, low, high string) {
	t.Helper()
	c = newCluster(t, 2)
	low, high = c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick(preemptionTimeout(timeout))
	if hasGang {
		c.gangOf("held", low, 1, 1, 8)
	} else {
		c.create(c.pod("held-0", "", 8).PriorityClass(low))
	}
	c.untilPodBound("held-0")
	c.holdPod("held-0")
	c.gangOf("other", c.priorityClass("middle", 20), 1, 1, 8)
	c.untilSatisfied("other")
	return c, low, high
}

// PodDisruptionBudgets that select all pods, or none, do not protect from a gang that has no other room.
func TestGangsPreemptDespiteBudgetsForAllAndNone(t *testing.T) {
	none := intstr.FromInt32(0)
	for name, selector := range map[string]*metav1.LabelSelector{
		"all": {}, "nil": nil, "nobody": {MatchLabels: map[string]string{"no": "body"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2)
			low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
			_, err := cp.Client().PolicyV1().PodDisruptionBudgets(c.namespace).Create(c.ctx, &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Name: "guard"}, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: selector},
			}, metav1.CreateOptions{})
			c.must(err, "creating the PodDisruptionBudget")
			c.startQuick()
			c.gangOf("train", low, 1, 2, 8)
			c.untilBound("train", 2)
			c.gangOf("chat", high, 1, 1, 8)
			c.untilBound("chat", 1)
			c.untilBound("train", 1)
			if deleted := c.deletedByScheduler(); len(deleted) != 1 {
				t.Errorf("pods %v were evicted, want one", deleted)
			}
		})
	}
}

// Pods of three schedulers: gangs of both profiles preempt, and pods that another scheduler has bound are victims.
func TestGangsOfTwoProfilesPreemptPodsOfAnotherScheduler(t *testing.T) {
	c := newCluster(t, 4)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick(func(config map[string]any) {
		all := config["profiles"].([]any)
		second := maps.Clone(all[0].(map[string]any))
		second["schedulerName"] = "muster-second"
		config["profiles"] = append(all, second)
	})
	for i, node := range c.nodes[:2] {
		c.placeByHand(c.pod(fmt.Sprintf("foreign-%d", i), "", 8).PriorityClass(low), node)
	}
	guarded := c.placeByHand(c.pod("guarded", "", 8).PriorityClass(high), c.nodes[2])
	c.gangOf("train", low, 1, 1, 8)
	c.untilSatisfied("train")

	c.gangOf("chat", high, 2, 2, 8, func(w *wrappers.PodWrapper) { w.SchedulerName("muster-second") })
	c.untilBound("chat", 2)
	c.untilSatisfied("chat")
	c.gangOf("search", high, 1, 1, 8)
	c.untilBound("search", 1)
	if p := c.get("guarded"); p.UID != guarded.UID || p.DeletionTimestamp != nil {
		t.Error("a pod of the same priority was evicted")
	}
	c.checkEvicted("foreign-0", "foreign-1", "train-0")
}

// endHeldPods removes the finalizers of pods that have been terminating for so long, until the test is over.
func (c *cluster) endHeldPods(after time.Duration) {
	go func() {
		_ = controlplane.Until(c.ctx, cp.Client().CoreV1().Pods(c.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
			for _, p := range pods {
				if p.DeletionTimestamp == nil || len(p.Finalizers) == 0 {
					continue
				}
				time.AfterFunc(time.Until(p.DeletionTimestamp.Add(after)), func() { _ = removeFinalizers(c.ctx, c.namespace, p.Name) })
			}
			return false
		})
	}()
}

// runGangs runs gangs of lower priority, and returns their names. The pods of slow ones end when endHeldPods lets them.
func (c *cluster) runGangs(prefix, class string, gangs, size int, slow bool) []string {
	c.t.Helper()
	out := numbered(prefix, gangs)
	for _, g := range out {
		c.gangOf(g, class, size, size, 8)
	}
	for _, g := range out {
		c.untilSatisfied(g)
		for _, pod := range numbered(g, size) {
			if !slow {
				continue
			}
			c.patchPod(pod, map[string]any{"metadata": map[string]any{"finalizers": []string{"test/hold"}}})
		}
	}
	return out
}

// untilOneGangEnded waits until the preemptor is bound and every other gang is whole or gone, and checks that one is
// gone. It returns the pods of what is gone.
func (c *cluster) untilOneGangEnded(preemptor string, needed int, gangs []string, size int) []string {
	c.t.Helper()
	c.untilBound(preemptor, needed)
	var gone []string
	c.until("every gang of lower priority is whole or gone", 30*time.Second, func(pods []*corev1.Pod) bool {
		gone = nil
		for _, g := range gangs {
			switch bound(pods, g) {
			case 0:
				gone = append(gone, numbered(g, size)...)
			case size:
			default:
				return false
			}
		}
		return true
	})
	if len(gone) != size {
		c.t.Errorf("pods %v ended for %s, want those of one gang", gone, preemptor)
	}
	return gone
}

// endRound deletes the gangs of a round; their pods end when they are let go.
func (c *cluster) endRound(gangs ...string) {
	c.t.Helper()
	c.scheduler.Kill()
	for _, g := range gangs {
		c.deleteGang(g)
	}
	c.until("all pods of the round have ended", 30*time.Second, func(pods []*corev1.Pod) bool { return len(pods) == 0 })
}

// stageOf returns how far a preemption has come, according to the API server.
func (c *cluster) stageOf(preemptor string, victims []string) string {
	c.t.Helper()
	left, marked := 0, 0
	for _, p := range c.pods() {
		switch {
		case p.Annotations[v2alpha2.PodGroupAnnotation] == preemptor && p.Spec.NodeName != "":
			return "bound"
		case slices.Contains(victims, p.Name) && p.DeletionTimestamp == nil:
			left++
			if slices.ContainsFunc(p.Status.Conditions, func(x corev1.PodCondition) bool { return x.Type == corev1.DisruptionTarget }) {
				marked++
			}
		}
	}
	var group v2alpha2.PodGroup
	u, err := c.dynamic.Resource(podGroups).Namespace(c.namespace).Get(c.ctx, preemptor, metav1.GetOptions{})
	c.must(err, "reading PodGroup "+preemptor)
	c.must(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &group), "reading PodGroup "+preemptor)
	reason := condition(group.Status, v2alpha2.ConditionPreempting).Reason
	switch {
	case left < len(victims):
		return "deleted"
	case marked > 0 && reason != "Evicting":
		return "marked"
	}
	return cmp.Or(strings.ToLower(reason), "undecided")
}

// refuseMarks has the API server refuse changes of these pods' status.
func (c *cluster) refuseMarks(pods ...string) (lift func()) {
	c.t.Helper()
	return c.refuse(admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}},
		admissionv1.Update, "request.name in "+celList(pods),
		func(ctx context.Context) error {
			_, err := cp.Client().CoreV1().Pods(c.namespace).Patch(ctx, pods[0], types.MergePatchType,
				[]byte(`{"status":{"message":"probe"}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
			return err
		})
}
