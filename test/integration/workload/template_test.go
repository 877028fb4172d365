// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// A pod template that the API server rejects is reported by the clique, and in a message by the set; by one event,
// although it is retried; and no longer when it is corrected.
func TestRefusedTemplateIsToldOnce(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(strings.Replace(service2, `podSpec: {`, `podSpec: {priorityClassName: no-such-class, `, 1))
	w.untilCondition(cliques, "s-0-w", v1alpha1.ConditionReplicaFailure, "True")
	w.until("the set says what is the matter", sets, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && strings.Contains(conditionOf(objects[0], v1alpha1.ConditionAvailable, "message"), "no-such-class")
	})
	// Retried with back-off: a class of that name is sufficient.
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "no-such-class"}, Value: 10}
	w.must(w.client.Create(w.ctx, class), "creating the class")
	t.Cleanup(func() { _ = w.client.Delete(w.ctx, class) })
	w.untilPods(map[string]int{"s-0-w": 4}, true)
	w.untilAvailable("s")
	w.until("the failure is forgotten", cliques, func(objects []*unstructured.Unstructured) bool {
		errors, _, _ := unstructured.NestedSlice(objects0(objects), "status", "lastErrors")
		return len(objects) == 1 && len(errors) == 0 && conditionOf(objects[0], v1alpha1.ConditionReplicaFailure, "status") == ""
	})
	w.toldOnce("s-0-w", v1alpha1.ReasonCreateRefused)
}

// A field that is removed from a template is removed from the objects made from it: an annotation because of which the
// API server rejects pods, and the metrics of an autoscaler. Fields that others have set there are kept.
func TestTakenOutOfATemplate(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(`
metadata: {name: s}
spec:
  replicas: 1
  template:
    cliques:
    - name: w
      labels: {queue: gold, team: x}
      annotations: {controller.kubernetes.io/pod-deletion-cost: high}
      spec:
        replicas: 2
        autoScalingConfig:
          maxReplicas: 2
          metrics: [{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}}]
        podSpec: {}
`)
	w.untilCondition(cliques, "s-0-w", v1alpha1.ConditionReplicaFailure, "True")
	w.must(w.client.Patch(w.ctx, &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "s-0-w"}},
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"left-by":"me"}}}`))), "labelling the PodClique")
	w.edit("s", func(set *v1alpha1.PodCliqueSet) {
		clique := set.Spec.Template.Cliques[0]
		delete(clique.Labels, "queue")
		clique.Annotations, clique.Spec.ScaleConfig.Metrics = nil, nil
	})
	w.untilPods(map[string]int{"s-0-w": 2}, true)
	w.untilAvailable("s")
	for _, p := range w.pods() {
		_, queue := p.Labels["queue"]
		_, cost := p.Annotations["controller.kubernetes.io/pod-deletion-cost"]
		if queue || cost || p.Labels["team"] != "x" || p.Labels["left-by"] != "me" {
			t.Errorf("pod %s has labels %v and annotations %v", p.Name, p.Labels, p.Annotations)
		}
	}
	w.until("the autoscaler has the metrics of one that is given none", hpas, func(objects []*unstructured.Unstructured) bool {
		metrics, _, _ := unstructured.NestedSlice(objects0(objects), "spec", "metrics")
		if len(metrics) != 1 {
			return false
		}
		name, _, _ := unstructured.NestedString(metrics[0].(map[string]any), "resource", "name")
		return name == "cpu"
	})
}

// What a person types: wait for each of the three kinds, look at them, scale them.
func TestKubectl(t *testing.T) {
	w := newWorld(t, 4)
	kubectl := func(args ...string) string {
		t.Helper()
		path, err := filepath.Abs("../../../bin/kubectl")
		w.must(err, "finding kubectl")
		command := exec.CommandContext(w.ctx, path, append([]string{"--kubeconfig=" + cp.AdminKubeconfig(), "-n", w.namespace}, args...)...)
		command.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	w.apply(service)
	wait := "--timeout=" + patience.String()
	kubectl("wait", "--for=condition=Available", wait, "pcs/llm")
	kubectl("wait", "--for=condition=Available", wait, "pcsg/llm-0-decode", "pcsg/llm-0-prefill")
	kubectl("wait", "--for=condition=Available", wait, "pclq/llm-0-frontend", "pclq/llm-0-decode-0-dworker")
	kubectl("scale", "--replicas=3", "pclq/llm-0-frontend")
	kubectl("scale", "--replicas=1", "pcsg/llm-0-prefill")
	kubectl("scale", "--replicas=1", "pcs/llm")
	want := servicePods("llm")
	want["llm-0-frontend"] = 3
	delete(want, "llm-0-prefill-1-pworker")
	w.untilPods(want, true)
	kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", wait, "pclq/llm-0-frontend")
	for what, columns := range map[string]string{
		"pcs":  "NAME PHASE REASON REPLICAS AVAILABLE AGE",
		"pcsg": "NAME MIN REPLICAS BOUND AVAILABLE BREACHED AGE",
		"pclq": "NAME MIN REPLICAS BOUND READY BREACHED AGE",
	} {
		table := kubectl("get", what)
		head, _, _ := strings.Cut(table, "\n")
		if got := strings.Join(strings.Fields(head), " "); got != columns {
			t.Errorf("kubectl get %s shows %q, want %q", what, got, columns)
		}
		for line := range strings.Lines(table) {
			if len(strings.TrimSpace(line)) > 80 {
				t.Errorf("kubectl get %s shows a line of %d characters: %s", what, len(line), line)
			}
		}
		t.Logf("kubectl get %s\n%s", what, table)
	}
	kubectl("delete", "pcs", "llm", "--cascade=foreground", wait)
	w.untilGone()
}
