package workload

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// ordered is three cliques of which each starts after others; the second is in a group.
const ordered = `
metadata: {name: o}
spec:
  replicas: 1
  template:
    cliqueStartupType: CliqueStartupTypeExplicit
    cliques:
    - name: first
      annotations: {fake-kubelet.muster.test/ready: "false"}
      spec: {replicas: 2, minAvailable: 1, podSpec: {initContainers: [{name: theirs, image: "registry.example/init:1"}]}}
    - name: second
      spec: {replicas: 1, startsAfter: [first], podSpec: {}}
    - name: third
      spec: {replicas: 1, startsAfter: [second], podSpec: {}}
    podCliqueScalingGroups:
    - {name: g, cliqueNames: [second], replicas: 2, minAvailable: 2}
`

// The init container of simulated nodes does nothing, so its program is run here as a process, with the arguments of the
// pod and as the pod's service account, against the same pods.
func TestStartOrder(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(ordered)
	w.untilPods(map[string]int{"o-0-first": 2, "o-0-g-0-second": 1, "o-0-g-1-second": 1, "o-0-third": 1}, false)
	waiting := map[string]*controlplane.Process{}
	for _, p := range w.pods() {
		clique := p.Labels[v1alpha1.LabelPodClique]
		inits := p.Spec.InitContainers
		if clique == "o-0-first" {
			if len(inits) != 1 || inits[0].Name != "theirs" {
				t.Errorf("pod %s, which waits for nobody, has init containers %v", p.Name, inits)
			}
			continue
		}
		if len(inits) != 1 || inits[0].Name != v1alpha1.InitContainerName {
			t.Fatalf("pod %s has init containers %v", p.Name, inits)
		}
		if !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Projected != nil && v.Name == inits[0].VolumeMounts[0].Name }) {
			t.Errorf("pod %s has no projected token for its waiting container", p.Name)
		}
		waiting[clique] = w.wait(clique, inits[0].Args)
	}
	still := func(cliques ...string) {
		t.Helper()
		for _, c := range cliques {
			if !waiting[c].Running() {
				t.Errorf("%s does not wait any more:\n%s", c, waiting[c].LogTail(5))
			}
		}
	}
	ended := func(cliques ...string) {
		t.Helper()
		for _, c := range cliques {
			select {
			case <-waiting[c].Done():
				if err := waiting[c].Err(); err != nil {
					t.Errorf("%s ended badly: %v\n%s", c, err, waiting[c].LogTail(5))
				}
			case <-time.After(patience):
				t.Fatalf("%s waits still:\n%s", c, waiting[c].LogTail(5))
			}
		}
	}
	w.until("the pods of the first clique run", cliques, func(objects []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetName() == "o-0-first" && number(o, "scheduledReplicas") == 2
		})
	})
	still("o-0-g-0-second", "o-0-g-1-second")

	// One pod of the first clique becomes ready, which is its minimum: the second may start, and with it the third.
	for _, p := range w.pods() {
		if p.Labels[v1alpha1.LabelPodClique] == "o-0-first" {
			w.must(cp.AnnotatePod(w.ctx, w.namespace, p.Name, map[string]string{controlplane.ReadyAnnotation: "true"}), "making a pod ready")
			break
		}
	}
	ended("o-0-g-0-second", "o-0-g-1-second", "o-0-third")

	roles := &rbacv1.RoleList{}
	w.must(w.client.List(w.ctx, roles, client.InNamespace(w.namespace)), "listing roles")
	if len(roles.Items) != 1 || roles.Items[0].Name != "grove.io:pcs:o" {
		t.Errorf("roles %v", roles.Items)
	}
	w.delete(sets, "o")
	w.untilGone()
	for _, kind := range []string{"roles", "rolebindings"} {
		w.until("no "+kind+" is left", rbacv1.SchemeGroupVersion.WithResource(kind), none)
	}
}

// wait runs muster-wait as the namespace's default service account.
func (w *world) wait(name string, args []string) *controlplane.Process {
	w.t.Helper()
	kubeconfig, err := cp.ServiceAccountKubeconfig(w.ctx, w.namespace, "default")
	w.must(err, "making a kubeconfig for the pod's service account")
	path, err := filepath.Abs("../../../bin/muster-wait")
	w.must(err, "finding muster-wait")
	p, err := cp.StartProcess(controlplane.ProcessOptions{
		Name: fmt.Sprintf("wait-%s-%s", w.namespace, name),
		Path: path,
		Args: append([]string{"--kubeconfig=" + kubeconfig, "--namespace=" + w.namespace}, args...),
	})
	w.must(err, "starting muster-wait")
	w.t.Cleanup(p.Kill)
	w.t.Logf("%s: %s", name, strings.Join(args, " "))
	return p
}

// In order, every clique waits for the one before it.
func TestStartInOrder(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(strings.Replace(small("i", "one", "two", "three"), "  template:\n", "  template:\n    cliqueStartupType: CliqueStartupTypeInOrder\n", 1))
	w.untilPods(map[string]int{"i-0-one": 1, "i-0-two": 1, "i-0-three": 1}, true)
	for _, p := range w.pods() {
		want := map[string]string{"i-0-one": "", "i-0-two": "i-0-one", "i-0-three": "i-0-two"}[p.Labels[v1alpha1.LabelPodClique]]
		var args string
		for _, c := range p.Spec.InitContainers {
			args += strings.Join(c.Args, " ")
		}
		if want == "" && args != "" || want != "" && !strings.Contains(args, `"`+want+`"`) {
			t.Errorf("pod %s waits with %q, want for %q", p.Name, args, want)
		}
	}
}
