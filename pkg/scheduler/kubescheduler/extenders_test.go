// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/fakeapi"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

const managed = "example.com/widgets"

// served returns the configuration of an extender that filters and knows nodes by their names, after changes.
func served(t testing.TB, e *fakeapi.Extender, changes ...func(*config.Extender)) config.Extender {
	t.Helper()
	c := config.Extender{URLPrefix: e.Serve(t), FilterVerb: "filter", NodeCacheCapable: true, Weight: 1, HTTPTimeout: metav1.Duration{Duration: 10 * time.Second}}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func wholeNodes(c *config.Extender)  { c.NodeCacheCapable = false }
func prioritizes(c *config.Extender) { c.PrioritizeVerb = "prioritize" }

func onlyManaged(c *config.Extender) {
	c.ManagedResources = []config.ExtenderManagedResource{{Name: managed, IgnoredByScheduler: true}}
}

func timesOut(after time.Duration) func(c *config.Extender) {
	return func(c *config.Extender) { c.HTTPTimeout.Duration = after }
}

// accepts answers that an extender accepts these nodes.
func accepts(accepted ...string) func(string, *corev1.Pod, []string) any {
	return func(_ string, _ *corev1.Pod, nodes []string) any {
		return fakeapi.Accepted(nodes, func(node string) string {
			if slices.Contains(accepted, node) {
				return ""
			}
			return "node(s) have no widgets"
		})
	}
}

// patiently returns a world in which extenders are asked for a gang. It waits long, so that a busy machine does not
// matter.
func (c *cluster) patiently(e *Extenders, gang string, classes ...*corev1.Pod) *Snapshot {
	c.t.Helper()
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes, Options{Extenders: e, Asker: reservations.Asker{Gang: types.NamespacedName{Name: gang}}})
	if err != nil {
		c.t.Fatal(err)
	}
	return w
}

func patient() *Extenders {
	e := NewExtenders()
	e.Patience = 10 * time.Second
	return e
}

// placeAll places pods of a class until there is no room, and returns their nodes.
func placeAll(w *Snapshot, class int) (nodes []string) {
	for {
		node, ok := w.Place(class, "")
		if !ok {
			return nodes
		}
		nodes = append(nodes, node)
	}
}

// Each extender is asked once per class and plan, about the nodes that the filters and the extenders before it leave
// over.
func TestExtendersAreAskedOncePerClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		changes []func(*config.Extender)
	}{{name: "names"}, {"whole nodes", []func(*config.Extender){wholeNodes}}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			whole := len(c.changes) > 0
			first, second := &fakeapi.Extender{Answer: accepts("n1", "n2", "n3", "n5")}, &fakeapi.Extender{Answer: accepts("n2", "n3")}
			if whole {
				for _, e := range []*fakeapi.Extender{first, second} {
					byName := e.Answer
					e.Answer = func(verb string, pod *corev1.Pod, nodes []string) any {
						result := byName(verb, pod, nodes).(extenderv1.ExtenderFilterResult)
						result.Nodes = &corev1.NodeList{}
						for _, name := range *result.NodeNames {
							result.Nodes.Items = append(result.Nodes.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
						}
						result.NodeNames = nil
						return result
					}
				}
			}
			objects := racks(6, 2)
			objects[5].(*corev1.Node).Spec.Unschedulable = true
			cl := newClusterWith(t, []config.Extender{served(t, first, c.changes...), served(t, second, c.changes...)}, objects...)
			one, two := classPod("one").GPUs(1).Obj(), classPod("two").GPUs(2).Obj()
			e := patient()
			for range 2 { // an answer is for one plan
				w := cl.patiently(e, "g", one, two)
				if got := w.Capacity(0); got.Nodes != 2 || got.Pods != 4 {
					t.Errorf("capacity %+v, want 2 nodes and 4 pods", got)
				}
				for class, want := range [][]string{{"n2", "n2", "n3", "n3"}, {"n2", "n3"}} {
					nodes := placeAll(w, class)
					slices.Sort(nodes)
					if diff := cmp.Diff(want, nodes); diff != "" {
						t.Errorf("nodes of class %d (-want +got):\n%s", class, diff)
					}
					w.Undo(len(nodes))
				}
				if got := w.Explain(1, "").Reasons["node(s) have no widgets"]; got != 3 {
					t.Errorf("reasons %v", w.Explain(1, "").Reasons)
				}
				if failure, partial := w.ExtenderFailure(); failure != nil || partial {
					t.Errorf("failure %+v, partial %t", failure, partial)
				}
				for _, tc := range []struct {
					e     *fakeapi.Extender
					nodes []string
				}{{first, []string{"n0", "n1", "n2", "n3", "n4"}}, {second, []string{"n1", "n2", "n3"}}} {
					want := []fakeapi.ExtenderRequest{{Verb: "filter", Pod: "one", Nodes: tc.nodes, Whole: whole}, {Verb: "filter", Pod: "two", Nodes: tc.nodes, Whole: whole}}
					asked := tc.e.Asked()
					for i := range asked {
						slices.Sort(asked[i].Nodes)
					}
					if diff := cmp.Diff(want, asked); diff != "" {
						t.Errorf("requests (-want +got):\n%s", diff)
					}
				}
			}
		})
	}
}

// The plan for one pod agrees with the stock scheduler's cycle, whatever the extenders answer. ROUNDS multiplies the
// number of seeds.
func TestPlanOfOnePodAgreesWithTheStockScheduler(t *testing.T) {
	t.Parallel()
	repeats := uint64(40 * rounds.Number())
	for seed := range repeats {
		r := rand.New(rand.NewPCG(seed, 20))
		n := 2 + r.IntN(12)
		var list []config.Extender
		for range 1 + r.IntN(3) {
			var refuses []string
			for i := range n {
				if r.IntN(3) == 0 {
					refuses = append(refuses, fmt.Sprintf("n%d", i))
				}
			}
			kind, scores := r.IntN(8), r.Perm(n)
			server := &fakeapi.Extender{Answer: func(verb string, _ *corev1.Pod, nodes []string) any {
				switch {
				case kind == 0:
					return http.StatusInternalServerError
				case kind == 1:
					return "{}" // accepts nothing
				case kind == 2:
					return "no JSON"
				case verb == "prioritize":
					return append(scoresOf(nodes, scores), extenderv1.HostPriority{Host: "unknown", Score: 1000})
				}
				return fakeapi.Accepted(nodes, func(node string) string {
					if slices.Contains(refuses, node) {
						return "node(s) are refused"
					}
					return ""
				})
			}}
			list = append(list, served(t, server, func(c *config.Extender) {
				c.Ignorable = r.IntN(2) == 0
				if r.IntN(2) == 0 {
					prioritizes(c)
				}
				if r.IntN(4) == 0 {
					c.FilterVerb, c.PrioritizeVerb = "", "prioritize"
				}
				if r.IntN(3) == 0 {
					onlyManaged(c)
				}
			}))
		}
		order := r.Perm(n) // outweighs all other scores: the best node is unique
		decides := &fakeapi.Extender{Answer: func(_ string, _ *corev1.Pod, nodes []string) any { return scoresOf(nodes, order) }}
		list = append(list, served(t, decides, func(c *config.Extender) { c.FilterVerb, c.PrioritizeVerb, c.Weight = "", "prioritize", 10_000 }))
		c := newClusterWith(t, list, racks(n, 4)...)
		w := classPod("p").GPUs(1)
		if r.IntN(2) == 0 {
			w.Resource(managed, resource.MustParse("1"))
		}
		pod := w.Obj()
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			t.Fatal(err)
		}
		world := c.patiently(patient(), "g", pod)
		node, ok := world.Place(0, "")
		failure, _ := world.ExtenderFailure()
		want, err := c.sched.SchedulePod(c.ctx, c.f, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
		var fit *framework.FitError
		switch {
		case errors.As(err, &fit):
			if ok || failure != nil {
				t.Errorf("seed %d: node %q, failure %+v; stock: no node fits", seed, node, failure)
			}
		case err != nil:
			if ok || failure == nil || !strings.Contains(failure.Message, err.Error()) {
				t.Errorf("seed %d: node %q, failure %+v; stock: %v", seed, node, failure, err)
			}
		case !ok || failure != nil || node != want.SuggestedHost:
			t.Errorf("seed %d: node %q, failure %+v, reasons %v; stock: %q", seed, node, failure, world.Explain(0, "").Reasons, want.SuggestedHost)
		}
	}
}

// scoresOf returns the scores of the nodes n0, n1, ...
func scoresOf(nodes []string, scores []int) extenderv1.HostPriorityList {
	var out extenderv1.HostPriorityList
	for i, score := range scores {
		if name := fmt.Sprintf("n%d", i); slices.Contains(nodes, name) {
			out = append(out, extenderv1.HostPriority{Host: name, Score: int64(score)})
		}
	}
	return out
}

// An extender that fails excludes the class, unless it is ignorable.
func TestExtenderFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer any
		whole  bool
		want   string
	}{
		"an HTTP status":         {answer: http.StatusServiceUnavailable, want: "failed filter with extender at URL URL/filter, code 503"},
		"no JSON":                {answer: "<html>", want: "invalid character '<' looking for beginning of value"},
		"nothing":                {answer: "", want: "EOF"},
		"half an answer":         {answer: `{"nodenames":["n0"`, want: "unexpected EOF"},
		"other types":            {answer: `{"nodenames":"n0"}`, want: "json: cannot unmarshal string into Go struct field ExtenderFilterResult.NodeNames of type []string"},
		"an error":               {answer: extenderv1.ExtenderFilterResult{Error: "widgets are on strike"}, want: "widgets are on strike"},
		"a node that was unsent": {answer: extenderv1.ExtenderFilterResult{NodeNames: &[]string{"n0", "n7"}}, want: `extender "URL" claims a filtered node "n7" which is not found in the input node list`},
		"a whole node that was unsent": {answer: extenderv1.ExtenderFilterResult{Nodes: &corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n7"}}}}}, whole: true,
			want: "it accepts nodes that it was not asked about"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var changes []func(*config.Extender)
			if tc.whole {
				changes = append(changes, wholeNodes)
			}
			server := &fakeapi.Extender{Answer: func(string, *corev1.Pod, []string) any { return tc.answer }}
			required := served(t, server, changes...)
			other, pod := classPod("other").Obj(), classPod("p").GPUs(1).Obj()
			c := newClusterWith(t, []config.Extender{required}, racks(2, 4)...)
			e := patient()
			w := c.patiently(e, "g", pod)
			if node, ok := w.Place(0, ""); ok {
				t.Errorf("placed on %s", node)
			}
			if got := w.Capacity(0); got.Nodes != 0 || got.Pods != 0 {
				t.Errorf("capacity %+v", got)
			}
			failure, _ := w.ExtenderFailure()
			if failure == nil {
				t.Fatal("no failure")
			}
			want := "extender URL failed: " + tc.want + ". Repair or remove it, or set ignorable: true if pods may be placed without it"
			if diff := cmp.Diff(want, strings.ReplaceAll(failure.Message, required.URLPrefix, "URL")); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if pause := time.Until(failure.Until); pause <= 0 || pause > minKnown {
				t.Errorf("pause %s", pause)
			}
			// Until the pause is over the gang does not ask again; another one does.
			server.Asked()
			w = c.patiently(e, "g", pod, other)
			w.Place(0, "")
			w.Place(1, "")
			if asked := server.Asked(); len(asked) != 0 {
				t.Errorf("asked during the pause: %+v", asked)
			}
			if again, _ := w.ExtenderFailure(); again == nil || again.Message != failure.Message || again.Until != failure.Until {
				t.Errorf("during the pause: %+v", again)
			}
			w = c.patiently(e, "h", other)
			w.Place(0, "")
			if asked := server.Asked(); len(asked) != 1 {
				t.Errorf("another gang asked %+v", asked)
			}

			required.Ignorable = true
			c = newClusterWith(t, []config.Extender{required}, racks(2, 4)...)
			w = c.patiently(patient(), "g", pod)
			if got := placeAll(w, 0); len(got) != 8 {
				t.Errorf("with an ignorable extender placed on %v", got)
			}
			if failure, _ := w.ExtenderFailure(); failure != nil {
				t.Errorf("failure %+v", failure)
			}
		})
	}
}

// The scores of extenders order the nodes as in the stock scheduler: weight times the scale, added to those of plugins.
// An extender that fails gives none.
func TestExtendersOrderNodes(t *testing.T) {
	t.Parallel()
	scores := func(of map[string]int64) func(string, *corev1.Pod, []string) any {
		return func(_ string, _ *corev1.Pod, nodes []string) any {
			var out extenderv1.HostPriorityList
			for host, score := range of {
				out = append(out, extenderv1.HostPriority{Host: host, Score: score})
			}
			return out
		}
	}
	rank := func(weight int64) func(c *config.Extender) {
		return func(c *config.Extender) { c.FilterVerb, c.PrioritizeVerb, c.Weight = "", "prioritize", weight }
	}
	for name, tc := range map[string]struct {
		list  []*fakeapi.Extender
		with  []func(*config.Extender)
		order []string
	}{
		"one":              {[]*fakeapi.Extender{{Answer: scores(map[string]int64{"n0": 1, "n1": 9, "n2": 5, "n3": 0})}}, []func(*config.Extender){rank(100)}, []string{"n1", "n2", "n0", "n3"}},
		"weights":          {[]*fakeapi.Extender{{Answer: scores(map[string]int64{"n0": 1, "n1": 9, "n2": 5})}, {Answer: scores(map[string]int64{"n0": 4, "n2": 1, "n3": 3})}}, []func(*config.Extender){rank(100), rank(300)}, []string{"n0", "n1", "n3", "n2"}},
		"unknown nodes":    {[]*fakeapi.Extender{{Answer: scores(map[string]int64{"n9": 90, "n3": 1})}}, []func(*config.Extender){rank(100)}, []string{"n3", "n0", "n1", "n2"}},
		"one fails":        {[]*fakeapi.Extender{{Answer: func(string, *corev1.Pod, []string) any { return 500 }}, {Answer: scores(map[string]int64{"n2": 1})}}, []func(*config.Extender){rank(900), rank(100)}, []string{"n2", "n0", "n1", "n3"}},
		"null":             {[]*fakeapi.Extender{{Answer: func(string, *corev1.Pod, []string) any { return "null" }}}, []func(*config.Extender){rank(100)}, []string{"n0", "n1", "n2", "n3"}},
		"extreme scores":   {[]*fakeapi.Extender{{Answer: func(string, *corev1.Pod, []string) any { return `[{"Host":"n1","Score":-9223372036854775808}]` }}}, []func(*config.Extender){rank(1)}, nil},
		"of what it takes": {[]*fakeapi.Extender{{Answer: accepts("n1", "n3")}, {Answer: scores(map[string]int64{"n0": 9, "n3": 1})}}, []func(*config.Extender){func(*config.Extender) {}, rank(100)}, []string{"n3", "n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list []config.Extender
			for i, e := range tc.list {
				list = append(list, served(t, e, tc.with[i]))
			}
			c := newClusterWith(t, list, racks(4, 1)...)
			w := c.patiently(patient(), "g", classPod("p").GPUs(1).Obj())
			got := placeAll(w, 0)
			if tc.order == nil {
				if len(got) != 4 {
					t.Errorf("placed on %v", got)
				}
				return
			}
			if diff := cmp.Diff(tc.order, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
			if failure, _ := w.ExtenderFailure(); failure != nil {
				t.Errorf("failure %+v", failure)
			}
			for _, e := range tc.list {
				if asked := e.Asked(); len(asked) != 1 {
					t.Errorf("requests %+v", asked)
				}
			}
		})
	}
}

// A plan waits for a slow extender only as long as it may. The answer is for the next plan of the gang, and meanwhile
// no other plan asks this extender; pods that it does not manage are planned.
func TestSlowExtender(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	slow := &fakeapi.Extender{Answer: func(_ string, pod *corev1.Pod, nodes []string) any {
		<-hold
		return accepts("n1")("", pod, nodes)
	}}
	extender := served(t, slow, onlyManaged)
	c := newClusterWith(t, []config.Extender{extender}, racks(3, 2)...)
	widgets := func(name string) *corev1.Pod {
		return classPod(name).GPUs(1).Resource(managed, resource.MustParse("1")).Obj()
	}
	e := NewExtenders()
	e.Patience = 20 * time.Millisecond
	answered := make(chan struct{}, 10)
	e.Answered = func() { answered <- struct{}{} }
	leader, worker := widgets("leader"), widgets("worker")
	var waited time.Duration
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{leader, worker}, Options{
		Extenders: e, Asker: reservations.Asker{Gang: types.NamespacedName{Name: "g"}}, Waited: func(d time.Duration) { waited += d },
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for class := range 2 {
		if node, ok := w.Place(class, ""); ok {
			t.Errorf("placed on %s", node)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the plan took %s", took)
	}
	if waited < e.Patience {
		t.Errorf("waited %s", waited)
	}
	waits := "extender " + extender.URLPrefix + " has not answered yet; the gang is tried again when it does"
	check := func(w *Snapshot, want string) {
		t.Helper()
		if failure, _ := w.ExtenderFailure(); failure == nil || failure.Message != want || !failure.Until.IsZero() {
			t.Errorf("failure %+v, want %q", failure, want)
		}
	}
	check(w, waits)

	w = c.patiently(e, "g", leader)
	w.Place(0, "")
	check(w, waits)
	w = c.patiently(e, "h", widgets("of h"), classPod("plain").GPUs(1).Obj())
	w.Place(0, "")
	if got := placeAll(w, 1); len(got) != 6 {
		t.Errorf("pods that the extender does not manage are placed on %v", got)
	}
	check(w, "extender "+extender.URLPrefix+" has not answered a question about other pods yet; the gang is tried again when it does")

	close(hold)
	select {
	case <-answered:
	case <-time.After(time.Minute):
		t.Fatal("nobody was told that the extender has answered")
	}
	want := []string{"leader", "worker"} // one after the other
	var got []string
	for _, asked := range slow.Asked() {
		got = append(got, asked.Pod)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	c.sched.Cache.AddNode(w.logger, wrappers.MakeNode("n9").GPUs(1).Obj())
	c.refresh()
	w = c.patiently(e, "g", leader, worker)
	if got := placeAll(w, 0); !slices.Equal(got, []string{"n1", "n1"}) {
		t.Errorf("placed on %v", got)
	}
	if got := w.Explain(1, "").Reasons["node(s) an extender was not asked about yet"]; got != 1 {
		t.Errorf("%d nodes are new", got)
	}
	if failure, partial := w.ExtenderFailure(); failure != nil || !partial {
		t.Errorf("failure %+v, partial %t", failure, partial)
	}
	if asked := slow.Asked(); len(asked) != 0 {
		t.Errorf("asked again: %+v", asked)
	}
	e.Patience = 10 * time.Second
	w = c.patiently(e, "g", leader)
	w.Place(0, "")
	if asked := slow.Asked(); len(asked) != 1 {
		t.Errorf("another plan asked %+v", asked)
	}
}

// An extender that does not answer within its httpTimeout is not asked for a pause, which grows.
func TestExtenderThatTimesOut(t *testing.T) {
	t.Parallel()
	hold, hangs := make(chan struct{}), atomic.Bool{}
	hangs.Store(true)
	server := &fakeapi.Extender{Answer: func(_ string, pod *corev1.Pod, nodes []string) any {
		if hangs.Load() {
			<-hold
		}
		return accepts("n0")("", pod, nodes)
	}}
	list := []config.Extender{served(t, server, timesOut(300*time.Millisecond))}
	t.Cleanup(func() { close(hold) })
	c := newClusterWith(t, list, racks(2, 2)...)
	pod := classPod("p").GPUs(1).Obj()
	e := NewExtenders()
	e.Patience = 20 * time.Millisecond
	answered := make(chan struct{}, 10)
	e.Answered = func() { answered <- struct{}{} }
	told := func() {
		t.Helper()
		select {
		case <-answered:
		case <-time.After(time.Minute):
			t.Fatal("nobody was told")
		}
	}
	fails := func(gang, want string) *ExtenderFailure {
		t.Helper()
		w := c.patiently(e, gang, pod)
		w.Place(0, "")
		failure, _ := w.ExtenderFailure()
		if failure == nil || !strings.Contains(failure.Message, want) {
			t.Fatalf("failure %+v, want %q", failure, want)
		}
		return failure
	}
	fails("g", "has not answered yet")
	told()
	own := fails("g", "context deadline exceeded")
	if own.Until.IsZero() {
		t.Errorf("the gang has no pause of its own")
	}
	other := fails("h", "did not answer in time; it is asked again after a pause")
	if !other.Until.IsZero() {
		t.Errorf("another gang waits until %s", other.Until)
	}
	if asked := server.Asked(); len(asked) != 1 {
		t.Errorf("requests %+v", asked)
	}
	told() // after the pause, 1 s
	hangs.Store(false)
	e.Patience = 10 * time.Second
	w := c.patiently(e, "h", pod)
	if got := placeAll(w, 0); !slices.Equal(got, []string{"n0", "n0"}) {
		t.Errorf("placed on %v", got)
	}
	w = c.patiently(e, "g", pod)
	time.Sleep(time.Until(own.Until))
	if got := placeAll(w, 0); !slices.Equal(got, []string{"n0", "n0"}) {
		t.Errorf("placed on %v", got)
	}
}

// An ignorable extender that does not answer delays the gang that asks it, and no other one.
func TestIgnorableExtenderThatHangs(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	server := &fakeapi.Extender{Answer: func(string, *corev1.Pod, []string) any {
		<-hold
		return http.StatusServiceUnavailable
	}}
	list := []config.Extender{served(t, server, timesOut(300*time.Millisecond), func(c *config.Extender) { c.Ignorable = true })}
	t.Cleanup(func() { close(hold) })
	c := newClusterWith(t, list, racks(2, 2)...)
	pod := classPod("p").GPUs(1).Obj()
	e := NewExtenders()
	e.Patience = 20 * time.Millisecond
	answered := make(chan struct{}, 10)
	e.Answered = func() { answered <- struct{}{} }
	plan := func(gang string, want int) {
		t.Helper()
		w := c.patiently(e, gang, pod)
		got := placeAll(w, 0)
		if failure, _ := w.ExtenderFailure(); len(got) != want || (failure == nil) != (want > 0) {
			t.Errorf("gang %s is placed on %v, failure %+v", gang, got, failure)
		}
	}
	told := func() {
		t.Helper()
		select {
		case <-answered:
		case <-time.After(time.Minute):
			t.Fatal("nobody was told")
		}
	}
	plan("g", 0)
	plan("h", 0) // it may work
	told()       // the timeout
	plan("g", 4)
	plan("h", 4) // during the pause
	told()       // the end of the pause
	plan("i", 0)
	plan("h", 4)
	told()
	plan("i", 4)
	if asked := server.Asked(); len(asked) != 2 {
		t.Errorf("requests %+v", asked)
	}
}

// The pauses of a gang, and of an extender, grow from one second to a minute.
func TestExtenderPauses(t *testing.T) {
	t.Parallel()
	server := &fakeapi.Extender{Answer: func(string, *corev1.Pod, []string) any { return 500 }}
	c := newClusterWith(t, []config.Extender{served(t, server)}, racks(1, 1)...)
	e := patient()
	gang := types.NamespacedName{Name: "g"}
	var pauses []time.Duration
	for range 8 {
		w := c.patiently(e, "g", classPod("p").Obj())
		w.Place(0, "")
		failure, _ := w.ExtenderFailure()
		pauses = append(pauses, time.Until(failure.Until).Round(time.Second))
		e.gangs[gang].until = time.Now() // the pause is over
	}
	s := time.Second
	if diff := cmp.Diff([]time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s}, pauses); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	e.pruneAnswers(time.Now())
	if len(e.gangs) != 1 {
		t.Errorf("forgotten while it waits")
	}
	e.pruned = time.Time{}
	e.pruneAnswers(time.Now().Add(3 * maxKnown))
	if len(e.gangs) != 0 {
		t.Errorf("kept for ever")
	}
}

// An extender that is sent whole nodes gets the best ones, maxWholeNodes at most.
func TestWholeNodesAreBounded(t *testing.T) {
	t.Parallel()
	server := &fakeapi.Extender{}
	server.Answer = func(_ string, _ *corev1.Pod, nodes []string) any {
		result := extenderv1.ExtenderFilterResult{Nodes: &corev1.NodeList{}}
		for _, name := range nodes {
			result.Nodes.Items = append(result.Nodes.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return result
	}
	const more = 5
	var objects []runtime.Object
	for i := range maxWholeNodes + more {
		objects = append(objects, wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(1).Obj())
	}
	list := []config.Extender{served(t, server, wholeNodes)}
	c := newClusterWith(t, list, objects...)
	w := c.patiently(patient(), "g", classPod("p").GPUs(1).Obj())
	if got := placeAll(w, 0); len(got) != maxWholeNodes {
		t.Errorf("placed on %d nodes", len(got))
	}
	want := "node(s) were not sent to extender " + list[0].URLPrefix + ", which gets whole nodes, 1000 at most: set nodeCacheCapable"
	if got := w.Explain(0, "").Reasons[want]; got != more {
		t.Errorf("reasons %v", w.Explain(0, "").Reasons)
	}
	if asked := server.Asked(); len(asked) != 1 || len(asked[0].Nodes) != maxWholeNodes {
		t.Errorf("%d requests", len(asked))
	}
	if _, partial := w.ExtenderFailure(); partial {
		t.Error("another plan would ask about the same nodes")
	}
}

// nodeCacheCapable is a private field.
func TestExtenderSendsNames(t *testing.T) {
	t.Parallel()
	for _, names := range []bool{false, true} {
		x, err := scheduler.NewHTTPExtender(&config.Extender{URLPrefix: "http://127.0.0.1", NodeCacheCapable: names})
		if err != nil {
			t.Fatal(err)
		}
		if got := sendsNames(x); got != names {
			t.Errorf("nodeCacheCapable %t: %t", names, got)
		}
	}
	if sendsNames(binder{}) {
		t.Error("of an unknown kind")
	}
}
