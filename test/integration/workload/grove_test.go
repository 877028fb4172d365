// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

var update = flag.Bool("update", false, "write the golden files of testdata; read what changed as a reviewer would")

// kubectl runs bin/kubectl in the namespace, and returns its output.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	args = append([]string{"--kubeconfig", cp.AdminKubeconfig(), "--namespace", w.namespace}, args...)
	output, err := exec.CommandContext(w.ctx, "../../../bin/kubectl", args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args[4:], " "), err, output)
	}
	return string(output)
}

// golden compares the objects of a set with testdata/<file>, or writes the file.
func (w *world) golden(t *testing.T, file string, got inventory) {
	t.Helper()
	content, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(content), w.namespace, "NAMESPACE")
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// Manifests of Grove's published shape, applied unchanged by kubectl, result in the pods that they describe: index by
// index, with the host names, the labels and the environment of Grove (docs/decisions, W6), and all other objects.
func TestGroveManifests(t *testing.T) {
	w := newWorld(t, 40) // the small pods may use as many nodes as there are pods, and eight nodes must be left empty
	priority := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "serving"}, Value: 1000}
	w.must(w.client.Create(w.ctx, priority), "creating the priority class")
	t.Cleanup(func() { _ = w.client.Delete(w.ctx, priority) })

	manifests := map[string]string{ // PodCliqueSet -> file
		"ordered": "start-order", "autoscaled": "autoscaled", "sequence": "in-order", "multinode": "multi-node", "full": "full",
	}
	for _, file := range manifests {
		said := w.kubectl("apply", "--server-side", "-f", "testdata/grove/"+file+".yaml")
		if strings.Contains(said, "Warning") {
			t.Errorf("%s: %s", file, said)
		}
	}
	for set := range manifests {
		w.untilAvailable(set)
	}
	ctx, cancel := w.patient()
	defer cancel()
	w.must(controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			if !controlplane.PodReady(p) {
				return false
			}
		}
		return true
	}), "waiting for the surplus")
	var wrong map[string]string
	got := w.untilInventories(func(got map[string]inventory) bool {
		wrong = map[string]string{}
		for set, file := range manifests {
			want, err := os.ReadFile("testdata/grove/" + file + ".golden")
			is, _ := yaml.Marshal(got[set])
			if err != nil || string(want) != strings.ReplaceAll(string(is), w.namespace, "NAMESPACE") {
				wrong[set] = file
			}
		}
		return len(wrong) == 0 || *update && settled(got)
	})
	for set, file := range manifests {
		t.Run(file, func(t *testing.T) { w.golden(t, "grove/"+file+".golden", got[set]) })
	}
	if len(got) != len(manifests) {
		t.Errorf("there are %d sets, want %d", len(got), len(manifests))
	}

	// Applying them again changes nothing: the pods are the same.
	before := w.running()
	for _, file := range manifests {
		w.kubectl("apply", "--server-side", "-f", "testdata/grove/"+file+".yaml")
	}
	w.undisturbed(before)
	for _, file := range manifests {
		w.kubectl("delete", "-f", "testdata/grove/"+file+".yaml")
	}
	w.untilGone()
}

// whole matches a status that counts all wanted units as present: its numbers are equal.
var whole = regexp.MustCompile(`^status: replicas (\d+), (?:ready (\d+), )?scheduled (\d+), (?:gated 0, |available (\d+), )updated (\d+)`)

// settled reports whether all wanted objects exist and their status counts them; then golden files can be written.
func settled(all map[string]inventory) bool {
	for _, things := range all {
		for name, t := range things {
			for _, says := range t.Says {
				m := whole.FindStringSubmatch(says)
				switch {
				case strings.HasPrefix(says, "status: ") && m == nil, strings.HasPrefix(name, "Pod ") && says == "bound false, ready false", strings.Contains(says, "=False"), strings.HasPrefix(says, "status is of"):
					return false
				case m != nil && slices.ContainsFunc(m[1:], func(n string) bool { return n != "" && n != m[1] }):
					return false
				}
			}
		}
	}
	return true
}

// A manifest that names a scheduler keeps it. If that is a profile of muster-scheduler, the set is admitted as a gang,
// whatever the name. Otherwise muster-scheduler leaves the PodGroup alone, except that it says what to change if the
// pods are those of the default scheduler: their schedulerName may have been forgotten.
func TestNamedSchedulers(t *testing.T) {
	for _, name := range []string{"kai-scheduler", "default-scheduler"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.kubectl("apply", "--server-side", "-f", "testdata/grove/"+name+".yaml")
			w.untilPods(map[string]int{"named-0-web": 1, "named-0-engine": 2}, false)
			w.until("the PodGroup is left alone, or says what to change", podGroups, func(objects []*unstructured.Unstructured) bool {
				if name == corev1.DefaultSchedulerName {
					return len(objects) == 1 && strings.Contains(conditionOf(objects[0], v2alpha2.ConditionSatisfied, "message"), "set schedulerName muster-scheduler")
				}
				return len(objects) == 1 && conditionOf(objects[0], v2alpha2.ConditionSatisfied, "status") == ""
			})
			for _, p := range w.pods() {
				if p.Spec.SchedulerName != name || p.Spec.NodeName != "" {
					t.Errorf("pod %s has scheduler %s and is on node %q", p.Name, p.Spec.SchedulerName, p.Spec.NodeName)
				}
			}

			w.underAnotherName(name)
			w.untilPods(map[string]int{"named-0-web": 1, "named-0-engine": 2}, true)
			w.untilAvailable("named")
			w.checkIndices()
		})
	}
}

// underAnotherName replaces muster-scheduler, until the test is over, by one whose profile is called differently.
func (w *world) underAnotherName(name string) {
	w.t.Helper()
	objects, err := controlplane.ReadManifests(os.DirFS("../../../manifests/scheduler"), "configmap.yaml")
	w.must(err, "reading the configuration of muster-scheduler")
	config, _, err := unstructured.NestedString(objects[0].Object, "data", "config.yaml")
	w.must(err, "reading the configuration of muster-scheduler")
	renamed := strings.Replace(config, "schedulerName: muster-scheduler", "schedulerName: "+name, 1)
	if renamed == config {
		w.t.Fatal("the configuration has no profile of the usual name")
	}
	scheduler.Kill()
	w.t.Cleanup(func() {
		if err := cp.Restart(context.Background(), scheduler); err != nil {
			w.t.Errorf("starting muster-scheduler again: %v", err)
		}
	})
	other, err := cp.StartMusterScheduler(w.ctx, controlplane.SchedulerOptions{Name: "muster-" + name, Config: []byte(renamed)})
	w.must(err, "starting muster-scheduler as "+name)
	w.t.Cleanup(other.Kill)
}
