// SPDX-License-Identifier: Apache-2.0

//go:build long

package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/rounds"
)

// muster-controller is killed at random moments of rollouts: every unit that the edit concerns is replaced exactly
// once, one at a time and one set replica after the other, and no other is. A round is one edit with one to three kills
// in it. The number of rounds is ROUNDS, or twice that if ROUNDS is large: 100 in `make test-long`.
func TestKilledDuringARollout(t *testing.T) {
	n := rounds.Number()
	if n > 20 {
		n *= 2
	}
	w := newWorldFor(t, 1, time.Duration(n)*time.Minute+5*time.Minute)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 10))
	r := w.started(fmt.Sprintf(rolled, 2))
	edits := []struct {
		cliques    []string
		web, group bool
	}{{[]string{"web"}, true, false}, {[]string{"worker"}, false, true}, {[]string{"web", "leader"}, true, true}}
	began, kills := time.Now(), 0
	for round := range n {
		edit := edits[round%len(edits)]
		w.must(w.persist(func() error {
			set := &v1alpha1.PodCliqueSet{}
			if err := w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "s"}, set); err != nil {
				return err
			}
			setImage(set, round+2, edit.cliques...)
			return w.client.Update(w.ctx, set)
		}), "editing the set")
		for range 1 + random.IntN(3) {
			<-time.After(time.Duration(random.Int64N(int64(1500 * time.Millisecond)))) // the instant of the kill
			controller.Kill()
			kills++
			w.must(cp.Restart(w.ctx, controller), "starting muster-controller")
		}
		w.untilUpdated()
		for _, replica := range []string{"s-0", "s-1"} {
			units := map[string]int{replica + "-web": 0, replica + "-g": 0}
			if edit.web {
				units[replica+"-web"] = 3
			}
			if edit.group {
				units[replica+"-g"] = 2
			}
			for scope, n := range units {
				r.eachOnce(scope, n)
			}
		}
		r.inOrder("s-1", "s-0")
		r.forget()
		if t.Failed() {
			t.Fatalf("round %d of seed %d", round, seed)
		}
	}
	t.Logf("%d rounds with %d kills took %s, seed %d", n, kills, time.Since(began).Round(time.Second), seed)
}

// eachOnce fails the test unless n units of a scope went down and came up again, each once, one after the other.
func (r *rollout) eachOnce(scope string, n int) {
	r.w.t.Helper()
	story := r.all(scope)
	steps := strings.Fields(story)
	seen := map[string]bool{}
	for k := 0; k+1 < len(steps); k += 2 {
		if steps[k][:1] != "-" || steps[k+1] != "+"+steps[k][1:] {
			break
		}
		seen[steps[k]] = true
	}
	if len(seen) != n || len(steps) != 2*n {
		r.w.t.Errorf("%s: %q, want each of %d units once, one after the other", scope, story, n)
	}
}

// forget drops the steps until now.
func (r *rollout) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = nil
}
