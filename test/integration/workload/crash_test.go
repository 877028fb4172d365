package workload

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// muster-controller killed at random instants, while workloads are made, scaled and deleted: the end state is always the
// same, and no index ever has two pods.
func TestKilledAtRandomInstants(t *testing.T) {
	w := newWorld(t, 8)
	random := rand.New(rand.NewPCG(3, 3))
	stop := w.watchIndices()
	kills := 0
	kill := func() {
		for range 1 + random.IntN(3) {
			<-time.After(time.Duration(random.Int64N(int64(400 * time.Millisecond)))) // the instant of the kill
			controller.Kill()
			kills++
			w.must(cp.Restart(w.ctx, controller), "starting muster-controller")
		}
	}
	for range rounds(t) {
		w.apply(service)
		kill()
		w.untilPods(servicePods("llm"), true)

		w.scale(groups, "llm-0-decode", 3)
		w.scale(cliques, "llm-0-frontend", 4)
		w.scale(sets, "llm", 2)
		kill()
		want := servicePods("llm")
		want["llm-0-decode-2-dleader"], want["llm-0-decode-2-dworker"], want["llm-0-frontend"] = 1, 3, 4
		for clique, n := range servicePods("llm") {
			want[strings.Replace(clique, "llm-0-", "llm-1-", 1)] = n
		}
		w.untilPods(want, true)

		w.scale(sets, "llm", 1)
		w.scale(groups, "llm-0-decode", 1)
		w.scale(cliques, "llm-0-frontend", 1)
		kill()
		less := maps.Clone(servicePods("llm"))
		less["llm-0-frontend"] = 1
		delete(less, "llm-0-decode-1-dleader")
		delete(less, "llm-0-decode-1-dworker")
		w.untilPods(less, true)
		w.untilNames(services, "llm-0")
		w.untilNames(podGroups, "llm-0")

		// Deleted, and made anew under the same name at once.
		w.delete(sets, "llm")
		w.until("the set is gone", sets, none)
		w.apply(service)
		kill()
		w.untilPods(servicePods("llm"), true)
		w.delete(sets, "llm")
		kill()
		w.untilGone()
	}
	stop()
	t.Logf("%d kills", kills)
}
