// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// withoutAdmission runs a function while no webhook is called: their configurations are deleted, as a user of a cluster
// might do. They are restored, and called, when it returns.
func (w *world) withoutAdmission(do func()) {
	w.t.Helper()
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "muster-webhooks"}}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "muster-webhooks"}}
	for _, o := range []client.Object{validating, mutating} {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(o), o), "reading a webhook configuration")
		w.must(w.client.Delete(w.ctx, o), "deleting a webhook configuration")
	}
	defer w.untilJudged(true)
	defer func() {
		for _, o := range []client.Object{validating, mutating} {
			o.SetUID("")
			o.SetResourceVersion("")
			w.must(w.client.Create(w.ctx, o), "restoring a webhook configuration")
		}
	}()
	w.untilJudged(false)
	do()
}

// untilJudged waits until the API server calls the webhooks, or no longer does. It observes a change after some time
// and sends no event about it.
func (w *world) untilJudged(judged bool) {
	w.t.Helper()
	for {
		err := w.client.Create(w.ctx, w.parse(invalid("probe", "[nobody]")), client.DryRunAll)
		if (err != nil) == judged && (err == nil || apierrors.IsInvalid(err)) {
			return
		}
		if w.ctx.Err() != nil {
			w.t.Fatalf("waiting until webhooks are asked: %t: %v", judged, err)
		}
	}
}

// invalid is a set of two cliques, with a scaling group of these.
func invalid(name, members string) string {
	return small(name, "one", "two") + "    podCliqueScalingGroups:\n    - {name: g, cliqueNames: " + members + "}\n"
}

// An invalid set that bypassed admission is reported with the reason, no children are created for it, other workloads
// are not affected, and it can be deleted.
func TestInvalidSetsThatGotPastAdmission(t *testing.T) {
	w := newWorld(t, 1)
	long := strings.Repeat("x", 30)
	bad := map[string]struct{ text, want string }{
		"unknown":   {invalid("unknown", "[one, nobody]"), "spec.template.podCliqueScalingGroups[0].cliqueNames[1]"},
		"twice":     {invalid("twice", "[one]") + "    - {name: h, cliqueNames: [one]}\n", `is in scaling group "g" already`},
		"clash":     {strings.Replace(invalid("clash", "[one]"), "name: two", "name: g-0", 1), `would have the same name, "<set>-<index>-g-0"`},
		"same":      {strings.Replace(invalid("same", "[one]"), "name: g", "name: two", 1), "is the name of a scaling group too"},
		"cycle":     {strings.NewReplacer("cliques:\n", "cliqueStartupType: CliqueStartupTypeExplicit\n    cliques:\n", "name: one\n      spec: {", "name: one\n      spec: {startsAfter: [two], ", "name: two\n      spec: {", "name: two\n      spec: {startsAfter: [one], ").Replace(small("cycle", "one", "two")), "one -> two -> one"},
		"long":      {small("long", long+"abcdefghijkl"), "shorten them by 1"},
		"grows":     {strings.Replace(invalid("grows", "[one, two]"), "cliqueNames", "replicas: 342, cliqueNames", 1), "1027 sub-groups, 1024 at most"},
		"huge":      {strings.NewReplacer("replicas: 1\n  template", "replicas: 149999\n  template", "{replicas: 1", "{replicas: 150000").Replace(small("huge", "one")), "150000 at most"},
		"dot.ted":   {small("dot.ted", "one"), "metadata.name"},
		"upper":     {small("upper", "One"), "spec.template.cliques[0].name"},
		"wordy":     {invalid("wordy", "[one, nobody-"+strings.Join(strings.Split("abcdefghijklmnopqrst", ""), ", nobody-")+"]"), "cliqueNames[1]"},
		"schedules": {strings.Replace(small("schedules", "one", "two"), "podSpec: {}", "podSpec: {schedulerName: other}", 1), "must be the same for all cliques"},
	}
	w.withoutAdmission(func() {
		for _, b := range bad {
			w.apply(b.text)
		}
		w.apply(small("good", "one")) // without any default
		w.apply(service2)
	})
	for name, b := range bad {
		w.until(name+" is reported", sets, func(objects []*unstructured.Unstructured) bool {
			for _, o := range objects {
				if o.GetName() == name {
					return conditionOf(o, v1alpha1.ConditionReplicaFailure, "reason") == v1alpha1.ReasonInvalidSpec &&
						strings.Contains(conditionOf(o, v1alpha1.ConditionReplicaFailure, "message"), b.want)
				}
			}
			return false
		})
		w.toldOnce(name, v1alpha1.ReasonInvalidSpec)
	}
	w.untilPods(map[string]int{"good-0-one": 1, "s-0-w": 4}, true)
	w.untilNames(cliques, "good-0-one", "s-0-w")
	w.untilNames(groups)
	w.untilNames(podGroups, "good-0", "s-0")
	for _, p := range w.pods() {
		if p.Spec.SchedulerName != "muster-scheduler" || p.Spec.TerminationGracePeriodSeconds == nil {
			t.Errorf("pod %s has scheduler %q: no default", p.Name, p.Spec.SchedulerName)
		}
	}

	// The spec of a running set becomes invalid, and its pods keep running; then it is corrected.
	containers := []corev1.Container{}
	w.withoutAdmission(func() {
		w.edit("s", func(set *v1alpha1.PodCliqueSet) {
			podSpec := &set.Spec.Template.Cliques[0].Spec.PodSpec
			containers, podSpec.Containers = podSpec.Containers, []corev1.Container{}
		})
		w.untilCondition(sets, "s", v1alpha1.ConditionReplicaFailure, "True")
		w.edit("s", func(set *v1alpha1.PodCliqueSet) { set.Spec.Template.Cliques[0].Spec.PodSpec.Containers = containers })
	})
	w.until("nothing is wrong any more", sets, func(objects []*unstructured.Unstructured) bool {
		for _, o := range objects {
			if o.GetName() == "s" {
				return conditionOf(o, v1alpha1.ConditionReplicaFailure, "status") == ""
			}
		}
		return false
	})
	w.untilPods(map[string]int{"good-0-one": 1, "s-0-w": 4}, true)
	for name := range bad {
		w.delete(sets, name)
	}
	w.untilNames(sets, "good", "s")
}

// Children without a set, or that were made invalid while no webhook was called, do not block the controllers:
// everything else is reconciled, and the rest is reported.
func TestBrokenChildrenThatGotPastAdmission(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(small("a", "one", "two", "three") + "    podCliqueScalingGroups:\n    - {name: g, cliqueNames: [two, three]}\n")
	w.untilPods(map[string]int{"a-0-one": 1, "a-0-g-0-two": 1, "a-0-g-0-three": 1}, true)
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: labels}
	}
	pods := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/main:1"}}}
	w.withoutAdmission(func() {
		for _, o := range []client.Object{
			&v1alpha1.PodClique{ObjectMeta: meta("alone", nil), Spec: v1alpha1.PodCliqueSpec{Replicas: 1, PodSpec: pods}},
			&v1alpha1.PodClique{ObjectMeta: meta("pretends", map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue,
				v1alpha1.LabelPartOf: "a", v1alpha1.LabelPodCliqueSetReplicaIndex: "0"}), Spec: v1alpha1.PodCliqueSpec{Replicas: 2, PodSpec: pods}},
			&v1alpha1.PodCliqueScalingGroup{ObjectMeta: meta("alone", nil), Spec: v1alpha1.PodCliqueScalingGroupSpec{Replicas: 1024, CliqueNames: []string{"x"}}},
		} {
			w.must(w.client.Create(w.ctx, o), "creating "+o.GetName())
		}
		// A member is scaled separately, and the group beyond the replicas that a PodGroup lists.
		w.scale(cliques, "a-0-g-0-two", 3)
		w.scale(groups, "a-0-g", 1000)
		w.until("the set reports that the PodGroup is rejected", sets, func(objects []*unstructured.Unstructured) bool {
			return strings.Contains(conditionOf(objects[0], v1alpha1.ConditionReplicaFailure, "message"), "1024")
		})
	})
	w.untilPods(map[string]int{"a-0-one": 1, "a-0-g-0-two": 3, "a-0-g-0-three": 1}, true) // none of the surplus
	w.scale(groups, "a-0-g", 2)
	w.untilPods(map[string]int{"a-0-one": 1, "a-0-g-0-two": 3, "a-0-g-0-three": 1, "a-0-g-1-two": 1, "a-0-g-1-three": 1}, true)
	w.until("nothing is wrong any more", sets, func(objects []*unstructured.Unstructured) bool {
		return conditionOf(objects[0], v1alpha1.ConditionReplicaFailure, "status") == ""
	})

	// Labels of the owner are removed, and restored.
	for _, name := range []string{"a-0-one", "a-0-g-0-three"} {
		clique := &v1alpha1.PodClique{ObjectMeta: meta(name, nil)}
		w.must(w.client.Patch(w.ctx, clique, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil,
			`{"metadata":{"labels":{"%s":null,"%s":"77","%s":null},"annotations":{"%s":"many"}}}`,
			v1alpha1.LabelPartOf, v1alpha1.LabelPodCliqueSetReplicaIndex, v1alpha1.LabelTemplateName, v1alpha1.AnnotationInitialReplicas))), "breaking "+name)
	}
	w.until("the labels are back", cliques, func(objects []*unstructured.Unstructured) bool {
		whole := 0
		for _, o := range objects {
			labels := o.GetLabels()
			if labels[v1alpha1.LabelPartOf] == "a" && labels[v1alpha1.LabelPodCliqueSetReplicaIndex] == "0" && labels[v1alpha1.LabelTemplateName] != "" {
				whole++
			}
		}
		return whole == 5 // "pretends" has no template
	})
	w.untilPods(map[string]int{"a-0-one": 1, "a-0-g-0-two": 3, "a-0-g-0-three": 1, "a-0-g-1-two": 1, "a-0-g-1-three": 1}, true)
	w.delete(sets, "a")
	w.untilNames(cliques, "alone", "pretends")
	for _, o := range []client.Object{
		&v1alpha1.PodClique{ObjectMeta: meta("alone", nil)}, &v1alpha1.PodClique{ObjectMeta: meta("pretends", nil)},
		&v1alpha1.PodCliqueScalingGroup{ObjectMeta: meta("alone", nil)},
	} {
		w.must(w.client.Delete(w.ctx, o), "deleting "+o.GetName())
	}
	w.untilGone()
}
