// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// watched applies eightGPUs with a termination delay, "" for none, and waits until all of it is available.
func (w *world) watched(delay string) map[string]types.UID {
	w.t.Helper()
	set := w.parse(fmt.Sprintf(eightGPUs, "chat", ""))
	if delay != "" {
		set.Spec.Template.TerminationDelay = w.duration(delay)
	}
	for _, c := range set.Spec.Template.Cliques {
		c.Spec.PodSpec.TerminationGracePeriodSeconds = ptr.To[int64](2)
	}
	w.must(w.client.Create(w.ctx, set), "creating the set")
	return w.untilWatched()
}

// untilWatched waits until all of the 8 pods are available and every PodClique has wasAvailable.
func (w *world) untilWatched() map[string]types.UID {
	w.t.Helper()
	w.untilAvailable("chat")
	w.untilPodsAre("all pods are ready", func(pods []*corev1.Pod) bool {
		return len(pods) == 8 && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return !controlplane.PodReady(p) })
	})
	w.untilCondition(groups, "chat-0-model", v1alpha1.ConditionMinAvailableBreached, "False")
	w.untilWereAvailable(5)
	return w.hosts()
}

// untilWereAvailable waits until muster-controller has seen that each of the PodCliques had its minimum: before, a pod
// that is lost is created again, and nothing is below its minimum.
func (w *world) untilWereAvailable(number int) {
	w.t.Helper()
	w.until("all PodCliques were available", cliques, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == number && !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			was, _, _ := unstructured.NestedBool(o.Object, "status", "wasAvailable")
			return !was
		})
	})
}

func (w *world) duration(text string) *metav1.Duration {
	w.t.Helper()
	d, err := time.ParseDuration(text)
	w.must(err, "reading a duration")
	return &metav1.Duration{Duration: d}
}

// hosts returns the UIDs of the pods that are not being deleted, by host name.
func (w *world) hosts() map[string]types.UID {
	w.t.Helper()
	uids := map[string]types.UID{}
	for _, p := range w.pods() {
		if p.DeletionTimestamp == nil {
			uids[p.Spec.Hostname] = p.UID
		}
	}
	return uids
}

// ready makes the readiness of the first pod of a PodClique pass or fail.
func (w *world) ready(clique string, ready bool) {
	w.t.Helper()
	for _, p := range w.pods() {
		if p.Labels[v1alpha1.LabelPodClique] == clique && p.Labels[v1alpha1.LabelPodIndex] == "0" {
			w.must(cp.AnnotatePod(w.ctx, w.namespace, p.Name, map[string]string{controlplane.ReadyAnnotation: fmt.Sprint(ready)}), "annotating pod "+p.Name)
			return
		}
	}
	w.t.Fatalf("PodClique %s has no pod 0", clique)
}

// untilReplaced waits until the set is available and exactly the pods of PodCliques with the prefix were replaced.
func (w *world) untilReplaced(before map[string]types.UID, prefix string) {
	w.t.Helper()
	w.untilPodsAre("the pods of "+prefix+" are replaced, and ready", func(pods []*corev1.Pod) bool {
		if len(pods) != len(before) {
			return false
		}
		for _, p := range pods {
			isOf := prefix != "" && strings.HasPrefix(p.Spec.Hostname, prefix)
			if same := before[p.Spec.Hostname] == p.UID; p.DeletionTimestamp != nil || !controlplane.PodReady(p) || same == isOf {
				if !isOf && !same {
					w.t.Errorf("pod %s was replaced", p.Spec.Hostname)
				}
				return false
			}
		}
		return true
	})
	w.untilAvailable("chat")
}

// attempt returns the newest attempt of a status, its number and reason.
func (w *world) attempt(object client.Object, attempts func() []v1alpha1.ReplicaAttempt, name string) v1alpha1.ReplicaAttempt {
	w.t.Helper()
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, object), "reading "+name)
	if list := attempts(); len(list) > 0 {
		return list[len(list)-1]
	}
	return v1alpha1.ReplicaAttempt{}
}

func (w *world) setAttempt() v1alpha1.ReplicaAttempt {
	set := &v1alpha1.PodCliqueSet{}
	return w.attempt(set, func() []v1alpha1.ReplicaAttempt { return set.Status.ReplicaAttempts }, "chat")
}

func (w *world) groupAttempt() v1alpha1.ReplicaAttempt {
	group := &v1alpha1.PodCliqueScalingGroup{}
	return w.attempt(group, func() []v1alpha1.ReplicaAttempt { return group.Status.ReplicaAttempts }, "chat-0-model")
}

// untilBreached waits until a PodClique is in breach, and returns since when and the deadline, "" if there is none.
func (w *world) untilBreached(name string) (since, deadline string) {
	w.t.Helper()
	w.until(name+" is in breach", cliques, func(objects []*unstructured.Unstructured) bool {
		for _, o := range objects {
			if o.GetName() == name && conditionOf(o, v1alpha1.ConditionMinAvailableBreached, "status") == "True" {
				since, _, _ = unstructured.NestedString(o.Object, "status", "minAvailableBreachedSince")
				deadline, _, _ = unstructured.NestedString(o.Object, "status", "terminationDeadline")
				return true
			}
		}
		return false
	})
	return since, deadline
}

// untilEvent waits for an event about an object, and returns its note.
func (w *world) untilEvent(name, reason string) string {
	w.t.Helper()
	ctx, cancel := w.patient()
	defer cancel()
	note := ""
	if err := controlplane.Until(ctx, cp.Client().EventsV1().Events(w.namespace), metav1.ListOptions{}, func(events []*eventsv1.Event) bool {
		for _, e := range events {
			if e.Regarding.Name == name && e.Reason == reason {
				note = e.Note
				return true
			}
		}
		return false
	}); err != nil {
		w.t.Fatalf("waiting for event %s about %s: %v", reason, name, err)
	}
	return note
}

// notEarly fails the test if an attempt was raised before the deadline.
func (w *world) notEarly(a v1alpha1.ReplicaAttempt, deadline string) {
	w.t.Helper()
	due, err := time.Parse(time.RFC3339, deadline)
	w.must(err, "reading the deadline")
	if late := a.StartedAt.Sub(due); a.Reason != v1alpha1.ReasonTermination || late < 0 {
		w.t.Errorf("attempt %+v, deadline %s", a, deadline)
	} else {
		w.t.Logf("terminated %s after the deadline, in whole seconds", late)
	}
}

// TestTerminationOfASetReplica: a standalone PodClique, or a scaling group with too few available replicas, terminates
// all of the set replica and its PodGroup.
func TestTerminationOfASetReplica(t *testing.T) {
	for name, unready := range map[string][]string{
		"standalone PodClique":             {"chat-0-router"},
		"both replicas of a scaling group": {"chat-0-model-0-leader", "chat-0-model-1-worker"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			before := w.watched("3s")
			podGroup := w.only(podGroups).GetUID()
			for _, clique := range unready {
				w.ready(clique, false)
			}
			_, deadline := w.untilBreached(unready[0])
			w.untilReplaced(before, "chat-0-")
			w.notEarly(w.setAttempt(), deadline)
			if a := w.setAttempt(); a.Attempt != 1 || w.groupAttempt().Attempt != 0 {
				t.Errorf("attempts %+v of the set, %+v of the group", a, w.groupAttempt())
			}
			if w.only(podGroups).GetUID() == podGroup {
				t.Error("the PodGroup is the one from before")
			}
			t.Log(w.untilEvent("chat", v1alpha1.EventReplicaTerminated))
		})
	}
}

// TestDebuggingATermination runs the commands of the Gang Termination Design Doc, "Debugging Gang Termination Issues",
// unchanged, and shows the columns.
func TestDebuggingATermination(t *testing.T) {
	w := newWorld(t, 1)
	w.watched("4h")
	w.ready("chat-0-router", false)
	_, deadline := w.untilBreached("chat-0-router")
	w.until("the set shows the deadline", sets, func(objects []*unstructured.Unstructured) bool {
		text, _, _ := unstructured.NestedString(objects[0].Object, "status", "terminationDeadline")
		return text == deadline
	})
	get := func(args ...string) string {
		t.Helper()
		output := w.kubectl(append([]string{"get"}, args...)...)
		t.Logf("kubectl get %s\n%s", strings.Join(args, " "), output)
		return output
	}
	const query = `jsonpath={range .items[*]}{.metadata.name}: {.status.conditions[?(@.type=="MinAvailableBreached")]}{"\n"}{end}`
	out := get("pclq", "-o", query)
	for _, want := range []string{`chat-0-router: {`, `"status":"True"`, `"reason":"InsufficientReadyPods"`, `"reason":"SufficientReadyPods"`, "termination is due at " + deadline} {
		if !strings.Contains(out, want) {
			t.Errorf("PodCliques: no %s", want)
		}
	}
	out = get("pcsg", "-o", query)
	if want := `"reason":"SufficientAvailablePodCliqueScalingGroupReplicas"`; !strings.Contains(out, "chat-0-model: {") || !strings.Contains(out, want) {
		t.Errorf("scaling groups: no %s", want)
	}
	for kind, name := range map[string]string{"pclq": "chat-0-router", "pcs": "chat"} {
		out := get(kind, name, "-o", "wide")
		for _, want := range []string{"BREACHED", "UNTIL", deadline} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %s", kind, want)
			}
		}
	}
	if out := get("pcsg", "-o", "wide"); !strings.Contains(out, "BREACHED") || !strings.Contains(out, "UNTIL") || strings.Contains(out, deadline) {
		t.Error("pcsg: the columns are missing, or show a breach")
	}
}
