// SPDX-License-Identifier: Apache-2.0

//go:build long

package workload

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/test/controlplane"
)

// besides lists the writes of kube-controller-manager for any Service with a selector, one of which each replica has,
// and its periodic writes: its own tokens, and nodes that it considers lost on a machine too busy to renew their
// leases. 500 Services whose pods get their addresses one by one cause about 2.4 writes per pod.
var besides = []string{"endpoints", "endpointslices", "serviceaccounts", "nodes", "pods"}

// 500 replicas of 2 pods: the writes from apply to Ready, and until all objects are deleted.
func TestCostOfManyReplicas(t *testing.T) {
	const replicas, perReplica, most, mostRefused = 500, 2, 5.0, 1.0
	w := newWorld(t, replicas*perReplica/8)
	before, asks := writes(t), asked(t)
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

	cost := writes(t)
	share := map[string]float64{} // by program
	refused := 0.0                // of Muster: a controller with a stale cache creates a pod again, which is no successful write
	for _, k := range slices.SortedFunc(maps.Keys(cost), write.compare) {
		n := cost[k] - before[k]
		if n == 0 {
			continue
		}
		t.Logf("%6d %s", n, k)
		if k.refused && strings.HasPrefix(k.program, "muster-") {
			refused += float64(n) / (replicas * perReplica)
			continue
		}
		share[k.program] += float64(n) / (replicas * perReplica)
		if k.program == "kube-controller-manager" && !slices.Contains(besides, k.resource) {
			t.Errorf("%s: nothing of this workload asks for that", k)
		}
	}
	muster := 0.0
	for _, program := range slices.Sorted(maps.Keys(share)) {
		t.Logf("%6.2f per pod by %s", share[program], program)
		if strings.HasPrefix(program, "muster-") {
			muster += share[program]
		}
	}
	t.Logf("%6.2f per pod by Muster", muster)
	t.Logf("%6.2f per pod refused", refused)
	if refused > mostRefused {
		t.Errorf("more than %.0f refused requests of Muster per pod", mostRefused)
	}
	if muster > most {
		t.Errorf("more than %.0f writes of Muster per pod", most)
	}
	if n := asked(t) - asks; n != 2 {
		t.Errorf("%d calls of webhooks, want 2: they are about the PodCliqueSet, and what muster-controller writes itself needs none", n)
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

// write is a kind of request in the audit log.
type write struct {
	program, verb, resource, subresource string
	refused                              bool
}

func (k write) String() string {
	text := k.program + " " + k.verb + " " + k.resource
	if k.subresource != "" {
		text += "/" + k.subresource
	}
	if k.refused {
		text += " refused"
	}
	return text
}

func (k write) compare(other write) int { return strings.Compare(k.String(), other.String()) }

// writes counts the writes of the audit log, including rejected ones, by the program of the user agent and the
// resource.
func writes(t *testing.T) map[write]int {
	t.Helper()
	log, err := os.Open(cp.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	n := map[write]int{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb, UserAgent string
			ObjectRef       struct{ Resource, Subresource string }
			ResponseStatus  struct{ Code int }
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the last line may be incomplete
		}
		program, _, _ := strings.Cut(e.UserAgent, "/")
		n[write{program, e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ResponseStatus.Code >= 400}]++
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("reading the audit log: %v", err)
	}
	return n
}

// asked returns how often the API server has called admission webhooks. All of them are Muster's.
func asked(t *testing.T) int {
	t.Helper()
	metrics, err := cp.Client().Discovery().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, "apiserver_admission_webhook_admission_duration_seconds_count{") {
			calls, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1 : len(line)-1])
			if err != nil {
				t.Fatal(err)
			}
			n += calls
		}
	}
	return n
}
