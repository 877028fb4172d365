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

// HTTP extenders are asked by plans (docs/decisions, G18): a gang of two starts in its first plan on the only two of 60
// nodes that the extender accepts.
func TestPlansAskExtenders(t *testing.T) {
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
		if events := c.countEvents("Pod", pod.Name); events["FailedScheduling"] > 0 {
			t.Errorf("events of pod %s: %v", pod.Name, events)
		}
	}
	asked := extender.Asked()
	slices.SortFunc(asked, func(a, b fakeapi.ExtenderRequest) int { return len(b.Nodes) - len(a.Nodes) })
	if len(asked) != 3 || len(asked[0].Nodes) != len(c.nodes) || len(asked[1].Nodes) != 1 || len(asked[2].Nodes) != 1 {
		t.Errorf("%d requests, want one of the plan about all nodes and one for each member about its own", len(asked))
	}
	c.untilAdmitted("two")
	c.createGang("third", 1, 8)
	c.untilSays("third", v2alpha2.ReasonInsufficientGPUs, "58 nodes: node(s) refuse pods at an extender")
}

// An extender that does not answer, with a timeout of a minute, stops nothing that it does not manage. Its own gang
// says so, and starts when it answers.
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
			"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": true, "weight": 1, "httpTimeout": "60s",
			"managedResources": []any{map[string]any{"name": widgets, "ignoredByScheduler": true}},
		}}
	})
	c.apply(c.group("hung").MinMember(2))
	for _, name := range []string{"hung-0", "hung-1"} {
		c.create(c.pod(name, "hung", 1).Resource(widgets, resource.MustParse("1")))
	}
	c.untilSays("hung", v2alpha2.ReasonSchedulerError, "extender "+url+" has not answered yet; the gang is tried again when it does")
	began := time.Now()
	c.createPlain("plain")
	c.createGang("free", 2, 4)
	c.untilPodBound("plain", "free-0", "free-1")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("pods that the extender does not manage were bound after %s", ms(took))
	}
	if asked := extender.Asked(); len(asked) != 1 {
		t.Errorf("requests %+v, want one", asked)
	}
	release()
	began = time.Now()
	c.untilBound("hung", 2)
	t.Logf("the gang of the extender started %s after its answer", ms(time.Since(began)))
}
