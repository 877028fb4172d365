// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// A binding of each of five gangs hangs. The other gangs are scheduled meanwhile, and no slot is lost. Four gangs are
// admitted in the end without losing a pod, in each of these cases: the answer is late; the request is lost; the
// binding is carried out and the answer is lost; the binding is carried out after the scheduler has given up and tries
// again. The fifth, whose binding is refused once and then hangs permanently, is released at the end of the attempt in
// which its repair timeout expires, although the next attempt would begin a moment later.
func TestBindingsHang(t *testing.T) {
	const size, slots = 4, 6
	c := newCluster(t, 5)
	p := c.startBehindProxy(map[string]any{"bindParallelism": slots, "repairTimeout": "10s"})
	gaveUp := make(chan time.Duration, slots)
	hang := func(r *http.Request) {
		since := time.Now()
		<-r.Context().Done()
		gaveUp <- time.Since(since)
	}
	answer := make(chan struct{})
	var stale *http.Request
	gangs := map[string]struct {
		boundMeanwhile int
		binding        func(w http.ResponseWriter, r *http.Request, attempt int)
	}{
		"late": {size - 1, func(w http.ResponseWriter, r *http.Request, attempt int) {
			<-answer
			p.api.ServeHTTP(w, r)
		}},
		"lost": {size - 1, func(w http.ResponseWriter, r *http.Request, attempt int) {
			if attempt == 1 {
				hang(r)
				return
			}
			p.api.ServeHTTP(w, r)
		}},
		"unanswered": {size, func(w http.ResponseWriter, r *http.Request, attempt int) {
			if attempt > 1 {
				t.Errorf("binding %d of a pod that is bound", attempt)
			}
			p.carryOut(r)
			hang(r)
		}},
		"stale": {size - 1, func(w http.ResponseWriter, r *http.Request, attempt int) {
			switch attempt {
			case 1:
				stale = r
				hang(r)
				return
			case 2:
				p.carryOut(stale) // just before the second
			}
			p.api.ServeHTTP(w, r)
		}},
		"stuck": {size - 1, func(w http.ResponseWriter, r *http.Request, attempt int) {
			if attempt == 1 {
				http.Error(w, "refused by the test", http.StatusInternalServerError)
				return
			}
			hang(r)
		}},
	}
	pods := map[string]map[string]types.UID{}
	since := time.Now()
	for _, g := range slices.Sorted(maps.Keys(gangs)) {
		arrived := p.decide(g+"-1", gangs[g].binding)
		c.createOwnedGang(g, size, 1)
		c.untilArrived(arrived, 1, time.Minute)
		if g == "stuck" {
			c.untilArrived(arrived, 1, time.Minute)
		}
		c.untilBound(g, gangs[g].boundMeanwhile)
		pods[g] = map[string]types.UID{}
		for _, pod := range c.pods() {
			if pod.Annotations[v2alpha2.PodGroupAnnotation] == g {
				pods[g][pod.Name] = pod.UID
			}
		}
	}

	// One slot is left for all other pods.
	for _, other := range names("other", 0, 3) {
		c.createGang(other, size, 1)
		c.untilBound(other, size)
		c.untilAdmitted(other)
	}
	c.create(c.pod("plain", "", 1))
	c.untilScheduled("plain")
	if took := time.Since(since); len(gaveUp) > 0 {
		t.Fatalf("other gangs were bound after %s, when %d bindings no longer hung", ms(took), len(gaveUp))
	}
	c.untilAdmitted("unanswered") // its pods are bound, even if the scheduler got no answer
	t.Logf("5 bindings hang; everything else was bound %s after the first", ms(time.Since(since)))

	close(answer)
	answered := time.Now()
	c.untilBound("late", size)
	c.untilAdmitted("late")
	t.Logf("late: admitted %s after the answer", ms(time.Since(answered)))

	for range len(gangs) - 1 {
		select {
		case after := <-gaveUp:
			if after < bindTimeout/2 || after > bindTimeout+5*time.Second {
				t.Errorf("gave a binding up after %s, want %s", ms(after), bindTimeout)
			}
		case <-time.After(bindTimeout + 10*time.Second):
			t.Fatal("a binding was not given up")
		}
	}
	over := time.Now()
	c.until("the stuck gang is given back", bindTimeout/2, func(pods []*corev1.Pod) bool { return bound(pods, "stuck") == 0 })
	t.Logf("stuck: given back %s after the binding was given up, with a repair timeout of 10s", ms(time.Since(over)))
	delete(gangs, "stuck")
	for g := range gangs {
		c.untilBound(g, size)
		c.untilAdmitted(g)
		if after := c.uids(g); !sameUIDs(pods[g], after) {
			t.Errorf("pods of %s before %v, after %v", g, pods[g], after)
		}
	}
	t.Logf("the others are all admitted %s after the bindings were given up", ms(time.Since(over)))

	for _, pod := range c.pods() {
		for _, cond := range pod.Status.Conditions {
			if pod.Name == "unanswered-1" && cond.Type == corev1.PodScheduled && cond.Status != corev1.ConditionTrue {
				t.Errorf("pod %s is bound, and its condition PodScheduled is %s: %s", pod.Name, cond.Status, cond.Message)
			}
		}
	}

	// All slots are there again: so many bindings are under way at a time.
	release := make(chan struct{})
	var arrived []<-chan struct{}
	for _, pod := range names("last", 0, slots) {
		arrived = append(arrived, p.decide(pod, func(w http.ResponseWriter, r *http.Request, _ int) {
			<-release
			p.api.ServeHTTP(w, r)
		}))
	}
	c.createGang("last", slots, 1)
	for _, one := range arrived {
		c.untilArrived(one, 1, time.Minute)
	}
	close(release)
	c.untilBound("last", slots)
	c.untilAdmitted("last")
}
