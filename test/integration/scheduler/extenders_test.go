// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/fakeapi"
)

// HTTP extenders are asked in the cycles of members (docs/decisions, G18): a gang of two starts on the only two of 60
// nodes that the extender accepts, when the others are known.
func TestMembersAskExtenders(t *testing.T) {
	c := newCluster(t, 60)
	good := []string{c.nodes[17], c.nodes[44]}
	extender := &fakeapi.Extender{Answer: func(_ string, _ *corev1.Pod, nodes []string) any {
		return fakeapi.Accepted(nodes, func(node string) string {
			if slices.Contains(good, node) {
				return ""
			}
			return "node(s) refuse pods at an extender"
		})
	}}
	url := extender.Serve(t)
	c.startQuick(func(config map[string]any) {
		config["extenders"] = []any{map[string]any{"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": true, "weight": 1}}
	})
	began := time.Now()
	c.createGang("two", 2, 8)
	c.untilBound("two", 2)
	t.Logf("started after %s", ms(time.Since(began)))
	for _, pod := range c.pods() {
		if !slices.Contains(good, pod.Spec.NodeName) {
			t.Errorf("pod %s is on node %s", pod.Name, pod.Spec.NodeName)
		}
	}
	asked := map[string]int{}
	for _, request := range extender.Asked() {
		if len(request.Nodes) != 1 {
			t.Fatalf("asked about %v, want one node at a time", request.Nodes)
		}
		asked[request.Nodes[0]]++
	}
	for node, n := range asked {
		if n > 1 && !slices.Contains(good, node) {
			t.Errorf("asked %d times about %s, which had refused", n, node)
		}
	}
	c.untilAdmitted("two")
	c.createGang("third", 1, 8)
	c.untilSays("third", v2alpha2.ReasonInsufficientGPUs, "58 nodes: node(s) refuse pods at an extender")
}

// An extender that does not answer holds the loop for its httpTimeout in each attempt of its gang. The gang says so,
// and starts when it answers; between its attempts others start.
func TestExtenderThatHangs(t *testing.T) {
	c := newCluster(t, 3)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	extender := &fakeapi.Extender{Answer: func(_ string, _ *corev1.Pod, nodes []string) any {
		<-hold
		return fakeapi.Accepted(nodes, func(string) string { return "" })
	}}
	url := extender.Serve(t)
	t.Cleanup(release)
	const widgets = "example.com/widgets"
	c.startQuick(func(config map[string]any) {
		config["extenders"] = []any{map[string]any{
			"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": true, "weight": 1, "httpTimeout": "500ms",
			"managedResources": []any{map[string]any{"name": widgets, "ignoredByScheduler": true}},
		}}
	})
	c.apply(c.group("hung").MinMember(2))
	for _, name := range []string{"hung-0", "hung-1"} {
		c.create(c.pod(name, "hung", 1).Resource(widgets, resource.MustParse("1")))
	}
	c.untilSays("hung", v2alpha2.ReasonBackingOff, "context deadline exceeded", "if extender "+url+" is the reason, repair or remove it")
	c.createPlain("plain")
	c.createGang("free", 2, 4)
	c.untilPodBound("plain", "free-0", "free-1")
	release()
	began := time.Now()
	c.untilBound("hung", 2)
	t.Logf("the gang of the extender started %s after its answer", ms(time.Since(began)))
}
