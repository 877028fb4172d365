// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/config/profile"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// The tests in badinput_*_test.go give the scheduler invalid and unusual input. Each checks three things: users find
// the reason where they look for it; no state is lost, so that the correction is sufficient; and the scheduler
// continues with all other pods.

// startQuick runs muster-scheduler so that the condition of a gated pod is written after one second, not ten, and
// changes of a PodGroup's status after 0.2 s, not two.
func (c *cluster) startQuick(change ...func(config map[string]any)) {
	c.t.Helper()
	change = append([]func(map[string]any){func(config map[string]any) {
		for _, p := range profiles(config) {
			gangArgs(p)["waitingForGangAfter"] = "1s"
			gangArgs(p)["statusInterval"] = "200ms"
		}
	}}, change...)
	c.startChanged(change...)
}

// startChanged runs muster-scheduler with its built-in configuration, changed.
func (c *cluster) startChanged(change ...func(config map[string]any)) {
	c.t.Helper()
	file, err := profile.DefaultFile()
	c.must(err, "reading the built-in configuration")
	var config map[string]any
	c.must(yaml.Unmarshal(file, &config), "reading the built-in configuration")
	for _, f := range change {
		f(config)
	}
	file, err = yaml.Marshal(config)
	c.must(err, "writing the configuration")
	c.scheduler, err = cp.StartMusterScheduler(c.ctx, controlplane.SchedulerOptions{Config: file})
	c.must(err, "starting muster-scheduler")
}

func profiles(config map[string]any) []map[string]any {
	var out []map[string]any
	for _, p := range config["profiles"].([]any) {
		out = append(out, p.(map[string]any))
	}
	return out
}

// gangArgs returns a profile's GangAdmissionArgs.
func gangArgs(profile map[string]any) map[string]any {
	for _, p := range profile["pluginConfig"].([]any) {
		if p := p.(map[string]any); p["name"] == "GangAdmission" {
			return p["args"].(map[string]any)
		}
	}
	return nil
}

// stillSchedules asserts that the scheduler has run without a break, and schedules a plain pod and a gang now.
func (c *cluster) stillSchedules() {
	c.t.Helper()
	c.createPlain("bystander")
	c.apply(c.group("bystanders").MinMember(2))
	for i := range 2 {
		c.create(c.pod(fmt.Sprintf("bystanders-%d", i), "bystanders", 0).CPU("100m"))
	}
	c.untilPodBound("bystander")
	c.untilBound("bystanders", 2)
	c.untilAdmitted("bystanders")
	if !c.scheduler.Running() {
		c.t.Errorf("muster-scheduler has ended: %v", c.scheduler.Err())
	}
	log, err := os.ReadFile(c.scheduler.Log())
	c.must(err, "reading the scheduler's log")
	for _, line := range strings.Split(string(log), "\n") {
		// Earlier tests of the same log may have taken the scheduler's rights away.
		earlier := len(line) > 1 && line[1:] < c.began.Format("0102 15:04:05.000000")
		if strings.Contains(line, "panic") || strings.Contains(line, "is forbidden: User") && !earlier {
			c.t.Errorf("in the scheduler's log: %s", line)
		}
	}
}

// createPlain creates a pod without a gang and with small requests.
func (c *cluster) createPlain(name string) *corev1.Pod {
	c.t.Helper()
	return c.create(c.pod(name, "", 0).CPU("100m"))
}

func (c *cluster) untilPodBound(names ...string) {
	c.t.Helper()
	c.until(fmt.Sprintf("pods %s are bound", strings.Join(names, ", ")), 30*time.Second, func(pods []*corev1.Pod) bool {
		n := 0
		for _, p := range pods {
			if slices.Contains(names, p.Name) && p.Spec.NodeName != "" {
				n++
			}
		}
		return n == len(names)
	})
}

// notBound asserts that the pods exist and have no node.
func (c *cluster) notBound(names ...string) {
	c.t.Helper()
	for _, n := range names {
		if p := c.get(n); p.Spec.NodeName != "" {
			c.t.Errorf("pod %s is bound to %s", n, p.Spec.NodeName)
		}
	}
}

func (c *cluster) get(name string) *corev1.Pod {
	c.t.Helper()
	p, err := cp.Client().CoreV1().Pods(c.namespace).Get(c.ctx, name, metav1.GetOptions{})
	c.must(err, "reading pod "+name)
	return p
}

// untilTold waits until an event about an object of the namespace contains all of the words.
func (c *cluster) untilTold(kind, name, reason string, words ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, 30*time.Second)
	defer cancel()
	var seen []string
	err := controlplane.Until(ctx, cp.Client().EventsV1().Events(c.namespace), metav1.ListOptions{}, func(events []*eventsv1.Event) bool {
		seen = nil
		for _, e := range events {
			if e.Regarding.Kind != kind || e.Regarding.Name != name {
				continue
			}
			seen = append(seen, e.Reason+": "+e.Note)
			if e.Reason == reason && containsAll(e.Note, words...) {
				return true
			}
		}
		return false
	})
	c.must(err, fmt.Sprintf("waiting for event %s with %q about %s %s; events are:\n%s\n", reason, words, kind, name, strings.Join(seen, "\n")))
}

// countEvents returns how many events there are about an object, by reason.
func (c *cluster) countEvents(kind, name string) map[string]int {
	c.t.Helper()
	list, err := cp.Client().EventsV1().Events(c.namespace).List(c.ctx, metav1.ListOptions{})
	c.must(err, "listing events")
	out := map[string]int{}
	for _, e := range list.Items {
		if e.Regarding.Kind == kind && e.Regarding.Name == name {
			out[e.Reason]++
		}
	}
	return out
}

func containsAll(s string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

// untilSays waits until a PodGroup is not satisfied for this reason, and its condition and summary contain all of the
// words.
func (c *cluster) untilSays(group string, reason v2alpha2.Reason, words ...string) v2Status {
	c.t.Helper()
	return c.untilStatus(group, fmt.Sprintf("says %s with %q", reason, words), func(s v2Status) bool {
		satisfied := condition(s, v2alpha2.ConditionSatisfied)
		return s.Reason == reason && satisfied.Status == metav1.ConditionFalse && satisfied.Reason == string(reason) &&
			containsAll(satisfied.Message, words...) && s.Summary != ""
	})
}

// untilShown is untilSays, and fails the test unless kubectl prints the reason and the words, too.
func (c *cluster) untilShown(group string, reason v2alpha2.Reason, words ...string) {
	c.t.Helper()
	c.untilSays(group, reason, words...)
	if columns := strings.Fields(c.kubectl("get", "pg", group, "--no-headers")); len(columns) < 3 || columns[2] != string(reason) {
		c.t.Errorf("kubectl get pg prints %q, want reason %s", columns, reason)
	}
	if described := c.kubectl("describe", "pg", group); !containsAll(described, append(words, string(reason))...) {
		c.t.Errorf("kubectl describe pg does not print %q:\n%s", words, described)
	}
}

// untilSatisfied waits until a PodGroup is admitted and satisfied.
func (c *cluster) untilSatisfied(group string) v2Status {
	c.t.Helper()
	return c.untilStatus(group, "is satisfied", func(s v2Status) bool {
		return condition(s, v2alpha2.ConditionSatisfied).Status == metav1.ConditionTrue && condition(s, v2alpha2.ConditionAdmitted).Status == metav1.ConditionTrue
	})
}

func condition(s v2Status, kind string) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// scheduled returns a pod's condition PodScheduled, empty if it has none.
func scheduled(p *corev1.Pod) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c
		}
	}
	return corev1.PodCondition{}
}

// untilPodSays waits until the pods have PodScheduled=False with this reason.
func (c *cluster) untilPodSays(reason string, names ...string) {
	c.t.Helper()
	c.until(fmt.Sprintf("PodScheduled of %s is False, %s", strings.Join(names, ", "), reason), 30*time.Second, func(pods []*corev1.Pod) bool {
		n := 0
		for _, p := range pods {
			if s := scheduled(p); slices.Contains(names, p.Name) && s.Status == corev1.ConditionFalse && s.Reason == reason {
				n++
			}
		}
		return n == len(names)
	})
}

// patchPod changes a pod by a merge patch.
func (c *cluster) patchPod(name string, patch map[string]any) {
	c.t.Helper()
	data, err := json.Marshal(patch)
	c.must(err, "making a patch")
	_, err = cp.Client().CoreV1().Pods(c.namespace).Patch(c.ctx, name, types.MergePatchType, data, metav1.PatchOptions{})
	c.must(err, "patching pod "+name)
}

// label sets the label that names a pod's sub-group.
func (c *cluster) label(pod, subGroup string) {
	c.t.Helper()
	c.patchPod(pod, map[string]any{"metadata": map[string]any{"labels": map[string]any{v2alpha2.SubGroupLabel: subGroup}}})
}

func (c *cluster) deleteGroup(name string) {
	c.t.Helper()
	c.must(c.dynamic.Resource(podGroups).Namespace(c.namespace).Delete(c.ctx, name, metav1.DeleteOptions{}), "deleting PodGroup "+name)
}

// recreate deletes a pod and immediately creates it again under the same name.
func (c *cluster) recreate(w *wrappers.PodWrapper) *corev1.Pod {
	c.t.Helper()
	c.delete(w.Obj().Name)
	return c.create(w)
}

// numbered returns prefix-0 to prefix-(n-1).
func numbered(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return out
}

// priorityClass creates a PriorityClass for the duration of the test, and returns its name.
func (c *cluster) priorityClass(name string, value int32) string {
	c.t.Helper()
	return c.createClass(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value})
}

// neverPreempting does the same with preemptionPolicy Never.
func (c *cluster) neverPreempting(name string, value int32) string {
	c.t.Helper()
	return c.createClass(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: ptr.To(corev1.PreemptNever)})
}

func (c *cluster) createClass(class *schedulingv1.PriorityClass) string {
	c.t.Helper()
	class.Name = c.namespace + "-" + class.Name
	_, err := cp.Client().SchedulingV1().PriorityClasses().Create(c.ctx, class, metav1.CreateOptions{})
	c.must(err, "creating a PriorityClass")
	c.t.Cleanup(func() {
		_ = cp.Client().SchedulingV1().PriorityClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{})
	})
	return class.Name
}

// otherNamespace returns the same cluster seen from another namespace.
func (c *cluster) otherNamespace() *cluster {
	c.t.Helper()
	other := *c
	other.namespace = c.namespace + "-b"
	c.must(cp.CreateNamespace(c.ctx, other.namespace), "creating a namespace")
	c.t.Cleanup(func() {
		now := int64(0)
		_ = cp.Client().CoreV1().Pods(other.namespace).DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
		_ = cp.Client().CoreV1().Namespaces().Delete(context.Background(), other.namespace, metav1.DeleteOptions{})
	})
	return &other
}

// bind binds a pod as another scheduler would.
func (c *cluster) bind(pod, node string) {
	c.t.Helper()
	c.must(cp.Client().CoreV1().Pods(c.namespace).Bind(c.ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: pod},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{}), "binding pod "+pod)
}

// released fails the test if pods of a partly bound gang were deleted.
func released(t *testing.T, partials []partial) {
	t.Helper()
	for _, p := range partials {
		if p.ended != "whole" {
			t.Errorf("gang %s was bound in part for %s and then released", p.gang, p.duration)
		}
	}
}

// deleteNode deletes a node, and does not restore it.
func (c *cluster) deleteNode(name string) {
	c.t.Helper()
	_, err := cp.RemoveNode(c.ctx, name)
	c.must(err, "deleting node "+name)
}

// nodeOptions describes one more node, with so many GPUs.
func nodeOptions(c *cluster, gpus int) controlplane.NodeOptions {
	return controlplane.NodeOptions{Count: 1, GPUs: gpus, First: len(c.nodes), NamePrefix: c.namespace}
}
