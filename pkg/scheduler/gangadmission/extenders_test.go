// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clienttesting "k8s.io/client-go/testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/fakeapi"
	"github.com/muster-project/muster/test/wrappers"
)

func asIs(*extenderConfig) {}

// managesWidgets limits an extender to pods that request widgets.
func managesWidgets(e *extenderConfig) { manages("example.com/widgets")(e) }

// withWidgets creates a gang of n pods that request a widget each.
func (c *cluster) withWidgets(gang string, n int) { c.with(gang, n, "example.com/widgets") }

// with creates a gang of n pods that request one of each of these resources.
func (c *cluster) with(gang string, n int, names ...corev1.ResourceName) {
	c.groups.Put(wrappers.MakePodGroup(gang, "ml").UID(gang).Generation(1).MinMember(int32(n)).Obj())
	for _, pod := range members(gang, n) {
		for _, name := range names {
			pod.Resource(name, resource.MustParse("1"))
		}
		c.pod(pod)
	}
}

// A gang starts in its first plan on the only nodes that an extender accepts.
func TestPlansAskExtenders(t *testing.T) {
	t.Parallel()
	const nodes = 60
	extender := &fakeapi.Extender{Answer: func(_ string, _ *corev1.Pod, nodes []string) any {
		return fakeapi.Accepted(nodes, func(node string) string {
			if node == "n23" || node == "n42" {
				return ""
			}
			return "node(s) have no widgets"
		})
	}}
	c := newCluster(t, extended(extender, asIs))
	for i := range nodes {
		c.node(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(1))
	}
	c.run().gang("a", 2).wholeOf("a", 2)
	asked := extender.Asked()
	slices.SortFunc(asked, func(a, b fakeapi.ExtenderRequest) int { return len(b.Nodes) - len(a.Nodes) })
	if len(asked) != 3 || len(asked[0].Nodes) != nodes || len(asked[1].Nodes) != 1 || len(asked[2].Nodes) != 1 {
		t.Errorf("requests %+v, want one of the plan and one for each member", asked)
	}
	for _, a := range c.client.Actions() {
		if patch, ok := a.(clienttesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), "widgets") {
			t.Errorf("a member was refused: %s %s", patch.GetName(), patch.GetPatch())
		}
	}
	// A gang that does not fit says what the extender says.
	c.gang("b", 1).eventually("b refused", func() bool {
		f, ok := c.gangs.registry.Facts(key("b"))
		return ok && strings.Contains(f.Refused.Message, "node(s) have no widgets")
	})
}

// An extender that does not answer stops neither plain pods nor gangs that it does not manage. Its gang says so, and
// starts when it answers.
func TestHangingExtender(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	extender := &fakeapi.Extender{Answer: func(_ string, _ *corev1.Pod, nodes []string) any {
		<-hold
		return fakeapi.Accepted(nodes, func(string) string { return "" })
	}}
	c := newCluster(t, extended(extender, func(e *extenderConfig) {
		managesWidgets(e)
		e.HTTPTimeout.Duration = time.Minute
	}))
	t.Cleanup(release)
	c.node(wrappers.MakeNode("n0").GPUs(16)).run()
	c.withWidgets("hung", 2)
	c.withWidgets("behind", 2)
	for _, tc := range []struct{ gang, text string }{{"hung", " has not answered"}, {"behind", " has not answered"}} {
		c.eventually(tc.gang+" says why", func() bool {
			f, ok := c.gangs.registry.Facts(key(tc.gang))
			return ok && f.Refused.Reason == v2alpha2.ReasonSchedulerError && strings.Contains(f.Refused.Message, tc.text)
		})
	}
	began := time.Now()
	for i := range 3 {
		c.gang(fmt.Sprintf("free%d", i), 2).wholeOf(fmt.Sprintf("free%d", i), 2)
		c.pod(wrappers.MakePod(fmt.Sprintf("plain-%d", i), "ml").GPUs(1)).wholeOf("plain", i+1)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("pods that the extender does not manage were bound after %s", took)
	}
	if asked := extender.Asked(); len(asked) != 1 {
		t.Errorf("requests to an extender that hangs: %+v", asked)
	}
	release()
	began = time.Now()
	c.wholeOf("hung", 2).wholeOf("behind", 2)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("started %s after the answer", took)
	}
}

// An extender that answers a plan and then hangs in the cycle of a member: the plan is aborted after the timeout, and
// the gang starts in a later one, for which the extender is asked again.
func TestExtenderThatHangsInACycle(t *testing.T) {
	t.Parallel()
	hold, hung := make(chan struct{}), atomic.Int32{}
	extender := &fakeapi.Extender{Answer: func(_ string, pod *corev1.Pod, nodes []string) any {
		if len(nodes) == 1 && pod.Name == "a-1" && hung.Add(1) == 1 {
			<-hold
		}
		return fakeapi.Accepted(nodes, func(string) string { return "" })
	}}
	c := newCluster(t, extended(extender, func(e *extenderConfig) {
		managesWidgets(e)
		e.HTTPTimeout.Duration = 300 * time.Millisecond
	}))
	t.Cleanup(func() { close(hold) })
	c.node(wrappers.MakeNode("n0").GPUs(1)).node(wrappers.MakeNode("n1").GPUs(1)).run()
	c.withWidgets("a", 2)
	began := time.Now()
	c.wholeOf("a", 2)
	if took := time.Since(began); hung.Load() < 2 || took > 5*time.Second {
		t.Errorf("started after %s and %d questions about a-1", took, hung.Load())
	}
	plans := 0
	for _, asked := range extender.Asked() {
		if len(asked.Nodes) == 2 {
			plans++
		}
	}
	if plans < 2 {
		t.Errorf("the extender was asked for %d plan, want 2: its answers are from before the first one", plans)
	}
}

// Whatever extenders do at first, every gang starts when they work, and those that they do not manage start at once.
func TestGangsOutliveTheirExtenders(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			const timeout = 400 * time.Millisecond
			r := rand.New(rand.NewPCG(seed, 20))
			var options []clusterOption
			for _, name := range []string{"example.com/a", "example.com/b"} {
				var moods []int
				for range r.IntN(7) {
					moods = append(moods, r.IntN(4))
				}
				requests := atomic.Int32{}
				extender := &fakeapi.Extender{Answer: func(_ string, _ *corev1.Pod, nodes []string) any {
					if k := int(requests.Add(1)) - 1; k < len(moods) {
						switch moods[k] {
						case 0:
							time.Sleep(2 * timeout) // too late
						case 1:
							time.Sleep(timeout * 3 / 4) // slow
						case 2:
							return http.StatusServiceUnavailable
						default:
							return "no JSON"
						}
					}
					return fakeapi.Accepted(nodes, func(string) string { return "" })
				}}
				options = append(options, extended(extender, func(e *extenderConfig) {
					manages(name)(e)
					e.HTTPTimeout.Duration = timeout
				}))
			}
			c := newCluster(t, options...)
			for i := range 4 {
				c.node(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(16))
			}
			c.run()
			for i := range 9 {
				c.with(fmt.Sprintf("g%d", i), 2, [][]corev1.ResourceName{{"example.com/a"}, {"example.com/b"}, {"example.com/a", "example.com/b"}}[i%3]...)
			}
			c.gang("free", 2).wholeOf("free", 2)
			began := time.Now()
			for i := range 9 {
				c.wholeOf(fmt.Sprintf("g%d", i), 2)
			}
			t.Logf("all started after %s", time.Since(began).Round(time.Millisecond))
		})
	}
}

// A gang whose extender fails waits, says what to do, and is tried again by itself; other gangs are not delayed.
func TestFailingExtender(t *testing.T) {
	t.Parallel()
	works := atomic.Bool{}
	extender := &fakeapi.Extender{Answer: func(_ string, pod *corev1.Pod, nodes []string) any {
		if !works.Load() {
			return http.StatusServiceUnavailable
		}
		return fakeapi.Accepted(nodes, func(string) string { return "" })
	}}
	c := newCluster(t, extended(extender, managesWidgets)).node(wrappers.MakeNode("n0").GPUs(16)).run()
	c.withWidgets("a", 2)
	c.refused("a").gang("free", 2).wholeOf("free", 2)
	facts, _ := c.gangs.registry.Facts(key("a"))
	url := c.extends[0].URLPrefix
	want := "extender " + url + " failed: failed filter with extender at URL " + url + "/filter, code 503. Repair or remove it, or set ignorable: true if pods may be placed without it"
	if diff := cmp.Diff(want, facts.Refused.Message); diff != "" || facts.Refused.Reason != v2alpha2.ReasonSchedulerError {
		t.Errorf("%s, message (-want +got):\n%s", facts.Refused.Reason, diff)
	}
	works.Store(true)
	c.wholeOf("a", 2)
	if asked := extender.Asked(); len(asked) > 6 {
		t.Errorf("%d requests", len(asked))
	}
}
