// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// grouped is a set of one group with one clique, both of that name in the template, replicated twice.
func grouped(set, group, clique string) string {
	return small(set, clique) + "    podCliqueScalingGroups: [{name: " + group + ", cliqueNames: [" + clique + "], replicas: 2}]\n"
}

// Sets, scaling groups and cliques whose names begin or end like others', index for index: the owner of a pod is not
// derived from its name. Scaling and deleting one does not affect the others.
func TestConfusableGroups(t *testing.T) {
	w := newWorld(t, 1)
	of := map[string]map[string]int{ // by set
		"m":     {"m-0-dec-0-w": 1, "m-0-dec-1-w": 1},
		"m-0":   {"m-0-0-dec-0-w": 1, "m-0-0-dec-1-w": 1},         // its group's name begins with the first set's
		"m-0-d": {"m-0-d-0-ec-0-w": 1, "m-0-d-0-ec-1-w": 1},       // dashes elsewhere
		"mm":    {"mm-0-decode-0-w": 1, "mm-0-decode-1-w": 1},     // decode begins like dec
		"p":     {"p-0-g-0-0-x": 1, "p-0-g-1-0-x": 1},             // a clique that begins with an index
		"q":     {"q-0-g-0-x": 1, "q-0-g-1-x": 1, "q-0-0-g-x": 1}, // and a standalone one of the same name
	}
	w.apply(grouped("m", "dec", "w"))
	w.apply(grouped("m-0", "dec", "w"))
	w.apply(grouped("m-0-d", "ec", "w"))
	w.apply(grouped("mm", "decode", "w"))
	w.apply(grouped("p", "g", "0-x"))
	w.apply(small("q", "x", "0-g-x") + "    podCliqueScalingGroups: [{name: g, cliqueNames: [x], replicas: 2}]\n")
	all := func() map[string]int {
		all := map[string]int{}
		for _, pods := range of {
			maps.Copy(all, pods)
		}
		return all
	}
	check := func() {
		t.Helper()
		w.untilPods(all(), true)
		w.checkIndices()
		for _, p := range w.pods() {
			clique, set := p.Labels[v1alpha1.LabelPodClique], p.Labels[v1alpha1.LabelPartOf]
			if of[set][clique] == 0 {
				t.Errorf("pod %s of PodClique %s is part of %s", p.Name, clique, set)
			}
			if want := set + "-0"; p.Annotations["pod-group-name"] != want || p.Spec.Subdomain != want {
				t.Errorf("pod %s of %s has PodGroup %s and subdomain %s", p.Name, set, p.Annotations["pod-group-name"], p.Spec.Subdomain)
			}
			if group := p.Labels[v1alpha1.LabelPodCliqueScalingGroup]; group != "" && !strings.HasPrefix(clique, group+"-") {
				t.Errorf("pod %s of PodClique %s is of group %s", p.Name, clique, group)
			}
		}
	}
	check()
	for set := range of {
		w.untilAvailable(set)
	}
	running := w.running()

	w.scale(groups, "m-0-dec", 3)
	of["m"]["m-0-dec-2-w"] = 1
	check()
	w.scale(groups, "m-0-dec", 1)
	delete(of["m"], "m-0-dec-1-w")
	delete(of["m"], "m-0-dec-2-w")
	check()
	w.scale(groups, "p-0-g", 1)
	delete(of["p"], "p-0-g-1-0-x")
	check()
	for _, set := range []string{"m", "q", "m-0-d"} {
		w.delete(sets, set)
		delete(of, set)
		check()
	}
	maps.DeleteFunc(running, func(hostname, _ string) bool {
		return !slices.ContainsFunc(w.pods(), func(p corev1.Pod) bool { return p.Spec.Hostname == hostname })
	})
	w.undisturbed(running)
	w.untilNames(podGroups, "m-0-0", "mm-0", "p-0")
	w.untilNames(services, "m-0-0", "mm-0", "p-0")
	w.untilNames(groups, "m-0-0-dec", "mm-0-decode", "p-0-g")
}

// Two sets need an object of the same name, for each kind of object: the second one reports that and waits, and
// continues when the first is gone.
func TestTwoSetsNeedTheSameName(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second string // YAML
		sets          [2]string
		clash         string                      // the name
		kind          schema.GroupVersionResource // of the second set that needs it
		object        string
		pods          [2]map[string]int
	}{
		"a PodClique": {
			first: small("a", "0-w"), second: small("a-0", "w"), sets: [2]string{"a", "a-0"}, clash: "a-0-0-w", kind: sets, object: "a-0",
			pods: [2]map[string]int{{"a-0-0-w": 1}, {"a-0-0-w": 1}},
		},
		"a scaling group": {
			first: grouped("a", "0-g", "w"), second: grouped("a-0", "g", "w"), sets: [2]string{"a", "a-0"}, clash: "a-0-0-g", kind: sets, object: "a-0",
			pods: [2]map[string]int{{"a-0-0-g-0-w": 1, "a-0-0-g-1-w": 1}, {"a-0-0-g-0-w": 1, "a-0-0-g-1-w": 1}},
		},
		"a PodClique and a member of a group": {
			first: small("a", "b-0-g-0-w"), second: strings.Replace(grouped("a-0-b", "g", "w"), "replicas: 2}", "replicas: 2, minAvailable: 2}", 1),
			sets: [2]string{"a", "a-0-b"}, clash: "a-0-b-0-g-0-w", kind: groups, object: "a-0-b-0-g",
			pods: [2]map[string]int{{"a-0-b-0-g-0-w": 1}, {"a-0-b-0-g-0-w": 1, "a-0-b-0-g-1-w": 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.apply(tc.first)
			w.untilPods(tc.pods[0], true)
			w.untilAvailable(tc.sets[0])
			before := w.running()

			w.apply(tc.second)
			w.until("the second says that the name is taken", tc.kind, func(objects []*unstructured.Unstructured) bool {
				return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
					return o.GetName() == tc.object && strings.Contains(conditionOf(o, v1alpha1.ConditionForeignObject, "message"), tc.clash)
				})
			})
			w.undisturbed(before)
			for _, p := range w.pods() {
				if p.Labels[v1alpha1.LabelPartOf] == tc.sets[0] && before[p.Spec.Hostname] != string(p.UID) {
					t.Errorf("the first set has another pod %s", p.Name)
				}
				if p.Labels[v1alpha1.LabelPartOf] != tc.sets[0] && p.Spec.NodeName != "" {
					t.Errorf("pod %s of half a gang is bound", p.Name)
				}
			}
			w.untilAvailable(tc.sets[0])

			w.delete(sets, tc.sets[0])
			w.untilPods(tc.pods[1], true)
			w.untilAvailable(tc.sets[1])
			for _, p := range w.pods() {
				if p.Labels[v1alpha1.LabelPartOf] != tc.sets[1] {
					t.Errorf("pod %s is part of %s", p.Name, p.Labels[v1alpha1.LabelPartOf])
				}
			}
			w.until("nothing is in the way any more", tc.kind, func(objects []*unstructured.Unstructured) bool {
				return len(objects) == 1 && objects[0].GetName() == tc.object && conditionOf(objects[0], v1alpha1.ConditionForeignObject, "status") == ""
			})
			w.checkIndices()
		})
	}
}

// A name conflict above the minimum does not prevent availability: the set is available, and still reports the
// conflict.
func TestNameTakenAboveTheMinimum(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(small("a", "b-0-g-0-w"))
	w.untilPods(map[string]int{"a-0-b-0-g-0-w": 1}, true)
	w.apply(grouped("a-0-b", "g", "w"))
	says := func(what string, ok func(message string) bool) {
		t.Helper()
		w.until(what, sets, func(objects []*unstructured.Unstructured) bool {
			return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
				return o.GetName() == "a-0-b" && conditionOf(o, v1alpha1.ConditionAvailable, "status") == "True" &&
					ok(conditionOf(o, v1alpha1.ConditionAvailable, "message"))
			})
		})
	}
	says("the set is available, and says which name is taken by whom", func(message string) bool {
		return strings.Contains(message, "PodClique a-0-b-0-g-0-w belongs to PodCliqueSet a ")
	})
	w.untilPods(map[string]int{"a-0-b-0-g-0-w": 1, "a-0-b-0-g-1-w": 1}, true)
	w.delete(sets, "a")
	w.untilPods(map[string]int{"a-0-b-0-g-0-w": 1, "a-0-b-0-g-1-w": 1}, true)
	says("nothing is in the way any more", func(message string) bool { return message == "1 of 1 replica is available" })
}
