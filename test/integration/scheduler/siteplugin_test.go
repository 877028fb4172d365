// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// A site's own plugin in muster-scheduler (docs/decisions, G19): plans of gangs ask it, and its nodes stay empty.
func TestPluginOfASite(t *testing.T) {
	c := newCluster(t, 5)
	c.change(c.nodes[0], func(n *corev1.Node) { n.Labels["example.com/quarantine"] = "yes" })
	c.startSite("sitescheduler", func(config map[string]any) { enable(config, "Quarantine", "filter") })
	c.createGang("too-large", 5, 8)
	c.untilSays("too-large", v2alpha2.ReasonFragmented, "4 of 5 pods can be placed", "1 node: node(s) are in quarantine")
	c.createGang("fits", 4, 8) // all other nodes
	c.untilBound("fits", 4)
	c.untilAdmitted("fits")
}

// Nodes that refuse pods (docs/decisions, G18): in an HTTP extender; and in real cycles only, at Reserve and at
// PreBind. A gang that fits on the others starts, and the devices of its pods are those of their nodes.
func TestGangStartsBesideNodesThatRefuse(t *testing.T) {
	const nodes, perNode, size = 12, 2, 8
	c := newCluster(t, nodes)
	bad := map[string]string{}
	for i, name := range c.nodes[:nodes-size/perNode] {
		bad[name] = []string{"extender", "Reserve", "PreBind"}[i%3]
		label := fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/refuses-at":%q}}}`, bad[name])
		_, err := cp.Client().CoreV1().Nodes().Patch(c.ctx, name, types.MergePatchType, label, metav1.PatchOptions{})
		c.must(err, "labelling node "+name)
	}
	resources := cp.Client().ResourceV1()
	c.addDevices(func(int) int { return perNode })
	extender := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil || args.NodeNames == nil {
			t.Errorf("request to the extender: %v, nodes %v", err, args.NodeNames)
			return
		}
		result := extenderv1.ExtenderFilterResult{NodeNames: &[]string{}, FailedNodes: extenderv1.FailedNodesMap{}}
		for _, node := range *args.NodeNames {
			if bad[node] == "extender" {
				result.FailedNodes[node] = "node(s) refuse pods at an extender"
			} else {
				*result.NodeNames = append(*result.NodeNames, node)
			}
		}
		if err := json.NewEncoder(w).Encode(result); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(extender.Close)
	c.startSite("sitescheduler/late", func(config map[string]any) {
		enable(config, "Late", "reserve", "preBind")
		config["extenders"] = []any{map[string]any{"urlPrefix": extender.URL, "filterVerb": "filter", "nodeCacheCapable": true, "weight": 1}}
	})

	plans := 0 // of the gangs so far
	start := func(name string, change func(i int, pod *corev1.Pod)) {
		t.Helper()
		c.apply(c.group(name).MinMember(size))
		for i := range size {
			pod := c.pod(fmt.Sprintf("%s-%d", name, i), name, 4).Obj()
			change(i, pod)
			_, err := cp.Client().CoreV1().Pods(c.namespace).Create(c.ctx, pod, metav1.CreateOptions{})
			c.must(err, "creating pod "+pod.Name)
		}
		c.untilBound(name, size)
		before := plans
		plans = int(c.metric(c.ask("/metrics"), `muster_plans_total{result="committed",task="minimum"}`))
		// A plan that fails finds out a node that was not known to refuse; on a busy machine some are aborted for
		// another reason.
		if n := plans - before; n < 1 || n > 2*(len(bad)+1) {
			t.Errorf("gang %s started with plan %d beside %d nodes that refuse", name, n, len(bad))
		}
		for _, pod := range c.pods() {
			if bad[pod.Spec.NodeName] != "" {
				t.Errorf("pod %s is on node %s, which refuses at %s", pod.Name, pod.Spec.NodeName, bad[pod.Spec.NodeName])
			}
		}
	}
	for i := range size {
		_, err := resources.ResourceClaims(c.namespace).Create(c.ctx, &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("gpu-%d", i)},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
				Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: c.namespace},
			}}}},
		}, metav1.CreateOptions{})
		c.must(err, "creating a claim")
	}
	start("claims", func(i int, pod *corev1.Pod) {
		name := fmt.Sprintf("gpu-%d", i)
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
	})
	at := map[string]string{} // pod -> node
	for _, pod := range c.pods() {
		at[pod.Name] = pod.Spec.NodeName
	}
	for i := range size {
		claim, err := resources.ResourceClaims(c.namespace).Get(c.ctx, fmt.Sprintf("gpu-%d", i), metav1.GetOptions{})
		c.must(err, "reading a claim")
		if claim.Status.Allocation == nil || claim.Status.Allocation.Devices.Results[0].Pool != at[fmt.Sprintf("claims-%d", i)] {
			t.Errorf("claim %d of a pod on %s has %+v", i, at[fmt.Sprintf("claims-%d", i)], claim.Status.Allocation)
		}
	}
	for name := range at {
		c.delete(name)
	}
	c.until("the pods are gone", time.Minute, func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	start("plain", func(int, *corev1.Pod) {})
}

// enable enables a plugin in the first profile.
func enable(config map[string]any, plugin string, points ...string) {
	plugins := config["profiles"].([]any)[0].(map[string]any)["plugins"].(map[string]any)
	for _, point := range points {
		at, _ := plugins[point].(map[string]any)
		if at == nil {
			at = map[string]any{}
			plugins[point] = at
		}
		enabled, _ := at["enabled"].([]any)
		at["enabled"] = append(enabled, map[string]any{"name": plugin})
	}
}

// startSite builds a scheduler with plugins of a site, in test/, and runs it with the deployed configuration after a
// change.
func (c *cluster) startSite(program string, change func(config map[string]any)) {
	c.t.Helper()
	binary := filepath.Join(c.t.TempDir(), "sitescheduler")
	// With the flags of the Makefile, whatever those of this test are: with other flags a whole scheduler is compiled
	// again, which takes five to ten minutes on a busy machine.
	build := exec.CommandContext(c.ctx, "go", "build", "-o", binary, "../../"+program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	began := time.Now()
	if out, err := build.CombinedOutput(); err != nil {
		c.t.Fatalf("building the scheduler of the site: %v after %s\n%s", err, time.Since(began), out)
	}
	c.t.Logf("built in %s", ms(time.Since(began)))
	kubeconfig, err := cp.ServiceAccountKubeconfig(c.ctx, controlplane.MusterNamespace, "muster-scheduler")
	c.must(err, "making a kubeconfig")
	var config map[string]any
	c.must(yaml.Unmarshal(schedulerConfig(c.t, settings{lease: map[string]any{"leaderElect": false}}), &config), "reading the configuration")
	config["clientConnection"].(map[string]any)["kubeconfig"] = kubeconfig
	change(config)
	content, err := yaml.Marshal(config)
	c.must(err, "writing the configuration")
	file := filepath.Join(c.t.TempDir(), "config.yaml")
	c.must(os.WriteFile(file, content, 0o644), "writing the configuration")
	port, err := controlplane.FreePort()
	c.must(err, "finding a port")
	c.scheduler = cp.NewProcess(controlplane.ProcessOptions{
		Name: "sitescheduler", Path: binary, ReadyURL: fmt.Sprintf("https://127.0.0.1:%d/readyz", port),
		Args: []string{"--config=" + file, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "-v=2"},
	})
	c.restart()
}
