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

// HTTP extenders are asked in the cycles of members only, each about its planned node. What they refuse is learned: a
// gang starts on the only nodes that an extender accepts.
func TestGangFindsTheNodesThatAnExtenderAccepts(t *testing.T) {
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
	began := time.Now()
	c.run().gang("a", 2).wholeOf("a", 2)
	t.Logf("started after %s", time.Since(began).Round(time.Millisecond))
	times := map[string]int{}
	for _, asked := range extender.Asked() {
		if len(asked.Nodes) != 1 {
			t.Fatalf("asked about %v, want one node at a time", asked.Nodes)
		}
		if times[asked.Nodes[0]]++; times[asked.Nodes[0]] > 1 && asked.Nodes[0] != "n23" && asked.Nodes[0] != "n42" {
			t.Errorf("asked about %s again, which it had refused", asked.Nodes[0])
		}
	}
	// A gang that does not fit says what the extender says.
	c.gang("b", 1).eventually("b refused", func() bool {
		f, ok := c.gangs.registry.Facts(key("b"))
		return ok && strings.Contains(f.Refused.Message, "58 nodes: node(s) have no widgets")
	})
}

// An extender that does not answer holds the scheduling loop for its httpTimeout, as in the stock scheduler. Between,
// plain pods and gangs that it does not manage start; its gang says why it waits, and starts when it answers.
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
		e.HTTPTimeout.Duration = 100 * time.Millisecond
	}))
	t.Cleanup(release)
	c.node(wrappers.MakeNode("n0").GPUs(16)).run()
	c.withWidgets("hung", 2)
	c.fails("hung", "context deadline exceeded", "repair or remove it")
	for i := range 3 {
		c.gang(fmt.Sprintf("free%d", i), 2).wholeOf(fmt.Sprintf("free%d", i), 2)
		c.pod(wrappers.MakePod(fmt.Sprintf("plain-%d", i), "ml").GPUs(1)).wholeOf("plain", i+1)
	}
	release()
	c.wholeOf("hung", 2)
}

// fails waits until the last plan of the gang has failed for a reason with these texts.
func (c *cluster) fails(gang string, texts ...string) {
	c.t.Helper()
	c.eventually(gang+" says why", func() bool {
		f, ok := c.gangs.registry.Facts(key(gang))
		return ok && f.Failures > 0 && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(f.Failure, text) })
	})
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
	c.fails("a")
	c.gang("free", 2).wholeOf("free", 2)
	facts, _ := c.gangs.registry.Facts(key("a"))
	url := c.extends[0].URLPrefix
	want := "a member was not placed where it was planned: failed filter with extender at URL " + url + "/filter, code 503; if extender " + url + " is the reason, repair or remove it, or set ignorable: true if pods may be placed without it"
	if diff := cmp.Diff(want, facts.Failure); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	asked := extender.Asked()
	if facts, _ = c.gangs.registry.Facts(key("a")); len(asked) > facts.Failures+1 { // of the plan that is made now
		t.Errorf("%d requests in %d plans: a plan goes on after a failure", len(asked), facts.Failures)
	}
	works.Store(true)
	c.wholeOf("a", 2)
}
