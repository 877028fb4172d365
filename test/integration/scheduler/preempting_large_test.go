// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/rounds"
)

// podsOfLargeNode is the number of pods of one GPU that fill a node of TestManyVictims.
const podsOfLargeNode = 100

// A gang takes the room of thousands of pods: of a gang, and of pods without one. muster-scheduler is killed while they
// are being deleted. The next process deletes the others, and nobody else, and the gang starts. However many victims
// there are, what the PodGroup says about them is short, and other pods are scheduled meanwhile.
func TestManyVictims(t *testing.T) {
	n := 2000
	if rounds.Exhaustive() {
		n = 5000
	}
	c := newCluster(t, 1) // without room for the gang
	c.patience = 4 * time.Minute
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	nodes, err := cp.CreateNodes(c.ctx, controlplane.NodeOptions{
		Count: n / podsOfLargeNode, GPUs: podsOfLargeNode, First: 1, NamePrefix: c.namespace})
	c.must(err, "creating nodes")
	c.nodes = append(c.nodes, nodes...)

	began := time.Now()
	c.apply(c.group("train").MinMember(int32(n / 2)))
	victims := append(numbered("train", n/2), numbered("single", n/2)...)
	c.must(controlplane.InParallel(n, 16, func(i int) error {
		w := c.pod(victims[i], "", 1)
		if i < n/2 {
			w.Gang("train")
		}
		pod := w.PriorityClass(low).SchedulerName("by-hand").Node(nodes[i/podsOfLargeNode]).Obj()
		pod.Spec.TerminationGracePeriodSeconds = new(int64) // no kubelet ends them
		_, err := cp.Client().CoreV1().Pods(c.namespace).Create(c.ctx, pod, metav1.CreateOptions{})
		return err
	}), "creating the pods of lower priority")
	c.placeByHand(c.pod("spared", "", 1).PriorityClass(low), c.nodes[0])
	t.Logf("%d pods were created in %s", n, time.Since(began))

	quarter, all := c.watchDeletions(n/4), c.watchDeletions(n)
	c.startQuick()
	c.gangOf("chat", high, len(nodes), len(nodes), podsOfLargeNode)
	began = time.Now()
	status := c.untilStatus("chat", "ends pods", func(s v2Status) bool { return condition(s, v2alpha2.ConditionPreempting).Reason == "Evicting" })
	t.Logf("Evicting after %s", time.Since(began))
	preempting := condition(status, v2alpha2.ConditionPreempting).Message
	if want := fmt.Sprintf("makes room: 1 gang and %d pods without a gang (%d pods, %d nvidia.com/gpu) of lower priority end by ", n/2, n, n); !strings.HasPrefix(preempting, want) ||
		!strings.Contains(preempting, "; first train; plan ") || len(preempting) > message.MaxCondition {
		t.Errorf("the preemptor says %q, want %q at its beginning", preempting, want)
	}
	c.awaitEnd(quarter, "a quarter of the victims has ended", victims)
	c.scheduler.Kill()
	t.Logf("killed after %s, when %d pods were left", time.Since(began), len(c.pods())-len(nodes)-1)
	c.restart()
	c.createPlain("meanwhile")
	c.untilPodBound("meanwhile")
	t.Logf("a pod without a gang is bound after %s", time.Since(began))
	c.awaitEnd(all, "all victims have ended", victims)
	t.Logf("all have ended after %s", time.Since(began))
	c.untilStatus("chat", "runs", func(s v2Status) bool { return s.Phase == v2alpha2.PodGroupAdmitted })
	t.Logf("the gang is bound after %s", time.Since(began))
	slices.Sort(victims)
	c.checkEvicted(victims...)
	for _, name := range []string{"chat", "train"} {
		u, err := c.dynamic.Resource(podGroups).Namespace(c.namespace).Get(c.ctx, name, metav1.GetOptions{})
		c.must(err, "reading PodGroup "+name)
		text, err := u.MarshalJSON()
		c.must(err, "encoding PodGroup "+name)
		if len(text) > 16<<10 {
			t.Errorf("PodGroup %s has %d bytes", name, len(text))
		}
	}
}

// watchDeletions returns a channel that is closed when so many pods of the namespace are gone.
func (c *cluster) watchDeletions(n int) <-chan struct{} {
	c.t.Helper()
	pods := cp.Client().CoreV1().Pods(c.namespace)
	list, err := pods.List(c.ctx, metav1.ListOptions{Limit: 1})
	c.must(err, "listing pods")
	watcher, err := pods.Watch(c.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	c.must(err, "watching pods")
	done := make(chan struct{})
	go func() {
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			if event.Type != watch.Deleted {
				continue
			}
			if n--; n == 0 {
				close(done)
				return
			}
		}
	}()
	return done
}

// awaitEnd waits until the channel is closed. If it is not in time, the test fails with the first of the victims that
// are left.
func (c *cluster) awaitEnd(done <-chan struct{}, what string, victims []string) {
	c.t.Helper()
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	}
	var left []string
	for _, p := range c.pods() {
		if slices.Contains(victims, p.Name) {
			left = append(left, describeVictim(&p))
		}
	}
	c.t.Fatalf("not within %s: %s; %d victims are left:\n%s", c.patience, what, len(left), strings.Join(left[:min(len(left), 20)], "\n"))
}

// describeVictim returns what may have kept a pod from ending.
func describeVictim(p *corev1.Pod) string {
	text := fmt.Sprintf("%s: deletionTimestamp %v, deletionGracePeriodSeconds %d, finalizers %v", p.Name, p.DeletionTimestamp,
		ptr.Deref(p.DeletionGracePeriodSeconds, -1), p.Finalizers)
	for _, x := range p.Status.Conditions {
		text += fmt.Sprintf("; %s=%s since %s: %s", x.Type, x.Status, x.LastTransitionTime.Format(time.RFC3339), x.Message)
	}
	return text
}
