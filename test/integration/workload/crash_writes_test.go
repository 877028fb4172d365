// SPDX-License-Identifier: Apache-2.0

//go:build long

package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/rounds"
)

// replacement is a unit whose pods are replaced as a whole, repeatedly.
type replacement struct {
	create  func(*world)
	disturb func(*world)
	// prefix is how the host names of the pods begin that are replaced.
	prefix string
	// attempts is the object whose status counts.
	kind schema.GroupVersionResource
	name string
	// replicas of the PodCliques, all of which they need.
	replicas map[string]int
	// stride is between the writes after which muster-controller is killed, unless ROUNDS are many.
	stride int
}

var (
	chatReplicas = map[string]int{"chat-0-router": 2, "chat-0-model-0-leader": 1, "chat-0-model-0-worker": 2,
		"chat-0-model-1-leader": 1, "chat-0-model-1-worker": 2}

	replacements = map[string]replacement{
		"termination of a group replica": {
			create:  func(w *world) { w.watched("1s") },
			disturb: func(w *world) { w.ready("chat-0-model-1-worker", false) },
			prefix:  "chat-0-model-1-", kind: groups, name: "chat-0-model", replicas: chatReplicas, stride: 8,
		},
		"termination of a set replica": {
			create:  func(w *world) { w.watched("1s") },
			disturb: func(w *world) { w.ready("chat-0-router", false) },
			prefix:  "chat-0-", kind: sets, name: "chat", replicas: chatReplicas, stride: 17,
		},
		"restart of a job": {
			create:  func(w *world) { w.apply(fmt.Sprintf(trainingJob, "  trainingSpec: {maxRestarts: 1000}")) },
			disturb: func(w *world) { w.exit(1, "job-0-launcher-0") },
			prefix:  "job-0-", kind: sets, name: "job", stride: 9,
			replicas: map[string]int{"job-0-launcher": 1, "job-0-ring-0-worker": 2},
		},
	}
)

// muster-controller is killed after each single write of a termination and of a restart: the n-th write succeeds, all
// later requests fail. Its caches are stale as well, of another kind each time. The result is that of a run without a
// kill: one attempt more, one restart counted, each pod of the unit replaced once, and no other pod.
func TestKilledAfterEachWrite(t *testing.T) {
	for name, r := range replacements {
		t.Run(name, func(t *testing.T) {
			stride := r.stride
			if rounds.Exhaustive() {
				stride = 1
			}
			w := newWorldFor(t, 1, time.Hour)
			c := &crash{}
			process := w.controllerBehind("muster-controller-crashing", func(next http.RoundTripper) http.RoundTripper {
				c.next = next
				return c
			})
			r.create(w)
			made := w.watchPodsMade()
			w.untilReplacedSoOften(r, 0, made)

			began, killed := time.Now(), 0
			whole := w.replaceOnce(r, 1, 0, c, process, made)
			for run, n := 2, 1; n <= whole || stride == 1; run, n = run+1, n+stride {
				if writes := w.replaceOnce(r, run, n, c, process, made); writes < n {
					break // it needed fewer writes
				}
				killed++
			}
			t.Logf("%d kills in %d writes took %s", killed, whole, time.Since(began).Round(time.Second))
			if whole < 15 || killed <= whole/stride-3 {
				t.Errorf("%d kills, %d writes without one", killed, whole)
			}
		})
	}
}

// replaceOnce makes the unit be replaced once more, with a kill after n writes, 0: without, and returns the number of
// writes until then or until the end.
func (w *world) replaceOnce(r replacement, times, n int, c *crash, process *controlplane.Process, made *podsMade) int {
	w.t.Helper()
	broken := c.after(n, w.namespace)
	ended := make(chan struct{})
	var restart sync.WaitGroup
	var restarted error
	restart.Go(func() {
		select {
		case <-broken:
			process.Kill()
			c.restore([]string{"", "pods", "podcliques", r.kind.Resource, "podgroups"}[times%5])
			restarted = cp.Restart(w.ctx, process)
		case <-ended:
		}
	})
	r.disturb(w)
	w.untilReplacedSoOften(r, times, made)
	writes := c.disarm()
	close(ended)
	restart.Wait()
	w.must(restarted, "starting muster-controller")
	w.untilReplacedSoOften(r, times, made) // unless it was killed by its very last write, this holds already
	return writes
}

// untilReplacedSoOften waits until the workload is available, and its unit was replaced this number of times, each pod
// of it once each time and no other.
func (w *world) untilReplacedSoOften(r replacement, times int, made *podsMade) {
	w.t.Helper()
	want := map[string]int{} // pods created, by host name
	var lines []string
	for name, replicas := range r.replicas {
		lines = append(lines, fmt.Sprintf("%s wants %d needs %d available has %d, %d scheduled, %d ready, %d updated", name,
			replicas, replicas, replicas, replicas, replicas, replicas))
		for i := range replicas {
			host := fmt.Sprintf("%s-%d", name, i)
			want[host] = 1
			if strings.HasPrefix(host, r.prefix) {
				want[host] += times
			}
		}
	}
	w.until(fmt.Sprintf("attempt %d is available", times), r.kind, func(objects []*unstructured.Unstructured) bool {
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetName() == r.name })
		if i < 0 || times == 0 {
			return i >= 0
		}
		attempts, _, _ := unstructured.NestedSlice(objects[i].Object, "status", "replicaAttempts")
		if len(attempts) != 1 {
			return false
		}
		attempt := attempts[0].(map[string]any)
		if intOf(attempt["attempt"]) > int64(times) {
			w.t.Fatalf("attempt %v after %d replacements", attempt, times)
		}
		return intOf(attempt["attempt"]) == int64(times) && attempt["availableAt"] != nil
	})
	w.untilPodsAre("all pods are ready", func(pods []*corev1.Pod) bool {
		return len(pods) == len(want) && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return p.DeletionTimestamp != nil || !controlplane.PodReady(p)
		})
	})
	w.untilPicture(times, cliques, lines, true)
	w.until("no PodClique is in breach, and all were available", cliques, func(objects []*unstructured.Unstructured) bool {
		return !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			was, _, _ := unstructured.NestedBool(o.Object, "status", "wasAvailable")
			return conditionOf(o, v1alpha1.ConditionMinAvailableBreached, "status") != "False" || !was
		})
	})
	w.untilAvailable(r.name[:strings.Index(r.name+"-", "-")])
	if r.name == "job" {
		w.untilJob("it runs", "Running", int64(times))
	}
	w.untilCondition(podGroups, r.prefix[:strings.Index(r.prefix, "-0-")+2], v2alpha2.ConditionSatisfied, "True")
	if got := made.byHost(); !maps.Equal(got, want) {
		w.t.Fatalf("after %d replacements these numbers of pods were made: %v\nwant %v", times, got, want)
	}
}

// podsMade remembers every pod that there ever was.
type podsMade struct {
	mu    sync.Mutex
	hosts map[types.UID]string // guarded by mu
}

// watchPodsMade remembers the pods of the namespace until the test is over.
func (w *world) watchPodsMade() *podsMade {
	made := &podsMade{hosts: map[types.UID]string{}}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
			made.mu.Lock()
			defer made.mu.Unlock()
			for _, p := range pods {
				made.hosts[p.UID] = p.Spec.Hostname
			}
			return false
		})
	}()
	w.t.Cleanup(func() { cancel(); <-done })
	return made
}

// byHost returns how many pods there ever were, by host name.
func (m *podsMade) byHost() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := map[string]int{}
	for _, host := range m.hosts {
		n[host]++
	}
	return n
}

// crash is muster-controller's way to the API server. It breaks after a number of writes.
type crash struct {
	next    http.RoundTripper
	writing sync.Mutex // one write after the other, so that none is in flight when it breaks

	mu        sync.Mutex
	namespace string        // guarded by mu, as all below; of the writes that count, "": none do
	limit     int           // break after as many; 0: never
	writes    int           // since after was called
	is        chan struct{} // closed when it breaks
	broken    bool
	late      string // the resource whose watches are delayed; "": none
}

var errBroken = errors.New("muster-controller is as good as dead")

// after makes the proxy break after n writes in a namespace, 0: not at all. The channel is closed when it breaks.
func (c *crash) after(n int, namespace string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.namespace, c.limit, c.writes, c.is = namespace, n, 0, make(chan struct{})
	return c.is
}

// disarm prevents the proxy from breaking, unless it has, and returns the number of writes.
func (c *crash) disarm() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.namespace = ""
	return c.writes
}

// restore makes the proxy work again, for a muster-controller whose watches of a resource are delayed, "": of none.
func (c *crash) restore(late string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.namespace, c.broken, c.late = "", false, late
}

// counts reports whether a request is a write that counts, and whether it may be made.
func (c *crash) counts(r *http.Request) (write bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return false, errBroken
	}
	parts := strings.Split(r.URL.Path, "/")
	return r.Method != http.MethodGet && c.namespace != "" && slices.Contains(parts, c.namespace) && !slices.Contains(parts, "events"), nil
}

// written counts a successful write.
func (c *crash) written() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writes++; c.namespace != "" && c.writes == c.limit {
		c.broken = true
		close(c.is)
	}
}

func (c *crash) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		c.writing.Lock()
		defer c.writing.Unlock()
	}
	counts, err := c.counts(r)
	if err != nil {
		return nil, err
	}
	response, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if counts && response.StatusCode < http.StatusBadRequest {
		c.written()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if isWatch(r) && strings.HasSuffix(r.URL.Path, "/"+c.late) {
		const delay = 500 * time.Millisecond
		response.Body = holdBack(response.Body, delay)
	}
	return response, nil
}
