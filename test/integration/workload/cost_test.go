package workload

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/test/controlplane"
)

// 500 replicas of 2 pods: from apply to Ready, the writes that it takes, and the way back to nothing.
func TestCostOfManyReplicas(t *testing.T) {
	const replicas, perReplica, most = 500, 2, 5.0
	w := newWorld(t, replicas*perReplica/8)
	before := writes(t)
	began := time.Now()
	w.apply(`
metadata: {name: many}
spec:
  replicas: 500
  template:
    cliques:
    - name: w
      spec:
        replicas: 2
        podSpec: {containers: [{name: main, image: "registry.example/main:1", resources: {limits: {nvidia.com/gpu: 1}}}]}
`)
	w.untilCount(replicas * perReplica)
	made := time.Since(began)
	w.untilReady(replicas * perReplica)
	ready := time.Since(began)
	w.untilAvailable("many")
	available := time.Since(began)
	t.Logf("%d pods in %d replicas: made after %s, ready after %s, set Available after %s", replicas*perReplica, replicas,
		made.Round(100*time.Millisecond), ready.Round(100*time.Millisecond), available.Round(100*time.Millisecond))

	total := 0
	cost := writes(t)
	for _, who := range slices.Sorted(maps.Keys(cost)) {
		n := cost[who] - before[who]
		if n == 0 {
			continue
		}
		t.Logf("%6d %s", n, who)
		if strings.HasPrefix(who, "muster-") {
			total += n
		}
	}
	perPod := float64(total) / (replicas * perReplica)
	t.Logf("%.2f writes of Muster per pod", perPod)
	if perPod > most {
		t.Errorf("more than %.0f writes per pod", most)
	}
	if available > 60*time.Second {
		t.Errorf("available after %s", available)
	}

	began = time.Now()
	w.scale(sets, "many", 0)
	w.untilCount(0)
	t.Logf("no pod left after %s", time.Since(began).Round(100*time.Millisecond))
	w.until("the set has no replicas", sets, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && number(objects[0], "availableReplicas") == 0 && conditionOf(objects[0], "Available", "reason") == "ScaledToZero"
	})
	w.untilNames(podGroups)
	w.untilNames(cliques)
	w.untilNames(services)
}

func (w *world) untilCount(n int) {
	w.t.Helper()
	w.must(controlplane.Until(w.ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{},
		func(pods []*corev1.Pod) bool { return len(pods) == n }), "waiting for the pods to be made")
}

func (w *world) untilReady(n int) {
	w.t.Helper()
	w.must(controlplane.Until(w.ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		ready := 0
		for _, p := range pods {
			if controlplane.PodReady(p) {
				ready++
			}
		}
		return ready == n
	}), "waiting for the pods to be ready")
}

// writes counts the successful writes of the audit log by who made them and to what: "program verb resource".
func writes(t *testing.T) map[string]int {
	t.Helper()
	log, err := os.Open(cp.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	n := map[string]int{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb, UserAgent string
			ObjectRef       struct{ Resource, Subresource string }
			ResponseStatus  struct{ Code int }
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the last line, half written
		}
		program, _, _ := strings.Cut(e.UserAgent, "/")
		what := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		if e.ResponseStatus.Code >= 400 {
			what += " refused"
		}
		n[program+" "+e.Verb+" "+what]++
	}
	return n
}
