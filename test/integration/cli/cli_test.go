// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/cli"
	"github.com/muster-project/muster/pkg/scheduler/report"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

// cluster is a control plane without Muster, shared by the tests of this package.
var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{WithControllerManager: true}, &cluster))
}

// run runs kubectl muster with a kubeconfig.
func run(ctx context.Context, kubeconfig string, args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = cli.Run(ctx, append([]string{"kubectl-muster", "--kubeconfig", kubeconfig}, args...),
		cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Width: 120})
	return code, stdout.String(), stderr.String()
}

// gang creates two pods of four GPUs that start together.
func gang(t *testing.T, name string) {
	t.Helper()
	group := `{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, metadata: {name: ` + name + `, namespace: default}, spec: {minMember: 2}}`
	if err := cluster.ApplyYAML(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []string{name + "-0", name + "-1"} {
		p := wrappers.MakePod(pod, "default").Gang(name).GPUs(4).Obj()
		p.UID = ""
		if _, err := cluster.Client().CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// allow gives a user verbs on resources, "group/resource".
func allow(t *testing.T, user string, verbs []string, resources ...string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}}
	for _, r := range resources {
		group, resource, _ := strings.Cut(r, "/")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs})
	}
	roles := cluster.Client().RbacV1()
	if _, err := roles.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// until waits until the condition is true.
func until(t *testing.T, what string, is func(ctx context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) { return is(ctx), nil })
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// TestCLI: one story on one cluster, from an API server without Muster to a gang that starts after what was advised.
func TestCLI(t *testing.T) {
	t.Parallel()
	admin := cluster.AdminKubeconfig()
	if code, _, errs := run(t.Context(), admin, "why", "x"); code != 1 || !strings.Contains(errs, "the API server has no podgroups.scheduling.run.ai: install the CRDs of Muster") {
		t.Errorf("without the CRDs: exit code %d, %q", code, errs)
	}
	if err := cluster.InstallMuster(t.Context()); err != nil {
		t.Fatal(err)
	}
	nodes, err := cluster.CreateNodes(t.Context(), controlplane.NodeOptions{Count: 2, GPUs: 4})
	if err != nil {
		t.Fatal(err)
	}
	cordon := func(is bool) {
		if err := cluster.ChangeNode(t.Context(), nodes[1], func(n *corev1.Node) { n.Spec.Unschedulable = is }); err != nil {
			t.Fatal(err)
		}
	}
	cordon(true)
	if _, err := cluster.StartMusterScheduler(t.Context(), controlplane.SchedulerOptions{}); err != nil {
		t.Fatal(err)
	}
	gang(t, "g")

	// What the scheduler writes is what the command says.
	groups, err := report.NewPodGroupClient(cluster.Admin())
	if err != nil {
		t.Fatal(err)
	}
	var written *metav1.Condition
	until(t, "the scheduler's reason", func(ctx context.Context) bool {
		g, err := groups.Get(ctx, "default", "g")
		if err != nil {
			return false
		}
		written = meta.FindStatusCondition(g.Status.Conditions, v2alpha2.ConditionSatisfied)
		return written != nil && written.Reason == string(v2alpha2.ReasonNodesUnavailable)
	})
	code, out, errs := run(t.Context(), admin, "why", "pod/g-0", "-o", "json")
	var x cli.Explanation
	if err := json.Unmarshal([]byte(out), &x); code != 2 || errs != "" || err != nil {
		t.Fatalf("exit code %d, %q, %v: %s", code, errs, err, out)
	}
	if x.Reason != written.Reason || x.Message != written.Message {
		t.Errorf("the command says %s: %s\nthe scheduler   %s: %s", x.Reason, x.Message, written.Reason, written.Message)
	}
	if x.Advice == nil || len(x.Advice.Changes) == 0 || x.Advice.Changes[0].Command != "kubectl uncordon "+nodes[1] {
		t.Errorf("advice %+v, want that %s is uncordoned first", x.Advice, nodes[1])
	}

	// A snapshot says the same.
	file := filepath.Join(t.TempDir(), "cluster.json.gz")
	if code, out, errs := run(t.Context(), admin, "snapshot", file); code != 0 || !strings.Contains(out, file) {
		t.Errorf("snapshot: exit code %d, %q, %q", code, out, errs)
	}
	_, live, _ := run(t.Context(), admin, "why", "g")
	if _, later, _ := run(t.Context(), admin, "why", "g", "--snapshot", file); strings.SplitN(live, "\n", 2)[1] != strings.SplitN(later, "\n", 2)[1] {
		t.Errorf("live:\n%s\nfrom the snapshot:\n%s", live, later)
	}

	// Users with few rights.
	none, err := cluster.Kubeconfig("nobody")
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run(t.Context(), none, "why", "g"); code != 1 || !strings.Contains(errs, "you may not list nodes of the whole cluster") {
		t.Errorf("without rights: exit code %d, %q", code, errs)
	}
	reader, err := cluster.Kubeconfig("reader")
	if err != nil {
		t.Fatal(err)
	}
	allow(t, "reader", []string{"list", "watch"}, "/nodes", "/pods", v2alpha2.GroupName+"/podgroups")
	until(t, "the rights of the reader", func(ctx context.Context) bool {
		code, out, errs = run(ctx, reader, "why", "g")
		return code == 2
	})
	if !strings.Contains(out, "NodesUnavailable") || !strings.Contains(errs, "warning: priorityclasses.scheduling.k8s.io could not be listed (forbidden)") {
		t.Errorf("a reader sees %q, %q", out, errs)
	}

	mayNotWatch(t)

	// What was advised lets it start.
	cordon(false)
	until(t, "the pods bound", func(ctx context.Context) bool {
		for _, name := range []string{"g-0", "g-1"} {
			pod, err := cluster.Client().CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err != nil || pod.Spec.NodeName == "" {
				return false
			}
		}
		return true
	})
	if code, out, _ := run(t.Context(), admin, "why", "g"); code != 0 || !strings.Contains(out, "default/g  RUNS") {
		t.Errorf("a gang that runs: exit code %d, %q", code, out)
	}
	doctor(t, admin)
	watched(t, admin)
}

// mayNotWatch: a right to watch that is missing is named; what nothing is said without ends the command.
func mayNotWatch(t *testing.T) {
	t.Helper()
	lister, err := cluster.Kubeconfig("lister")
	if err != nil {
		t.Fatal(err)
	}
	allow(t, "lister", []string{"list"}, "/nodes", "/pods", v2alpha2.GroupName+"/podgroups", "scheduling.k8s.io/priorityclasses")
	var code int
	var errs string
	until(t, "the rights of the lister", func(ctx context.Context) bool {
		code, _, errs = run(ctx, lister, "why", "g")
		return code == 2
	})
	if code, _, errs = run(t.Context(), lister, "why", "g", "--watch"); code != 1 || !strings.Contains(errs, "you may not watch nodes of the whole cluster, without which no change is seen") {
		t.Errorf("without the right to watch: exit code %d, %q", code, errs)
	}
	allow(t, "lister-watcher", []string{"watch"}, "/nodes", "/pods", v2alpha2.GroupName+"/podgroups")
	if _, err := cluster.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "lister-watches"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lister-watcher"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "lister"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the name of what is not watched", func(ctx context.Context) bool {
		ctx, cancel := context.WithCancel(ctx)
		var out, problems screen
		ended := make(chan int, 1)
		go func() {
			ended <- cli.Run(ctx, []string{"kubectl-muster", "--kubeconfig", lister, "why", "g", "--watch"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems, Width: 80})
		}()
		until(t, "a screen, or an error", func(context.Context) bool { return out.last() != "" || len(ended) > 0 })
		cancel()
		code = <-ended
		return code == 0 && strings.Contains(problems.all(), "warning: you may list, but not watch, priorityclasses.scheduling.k8s.io of the whole cluster")
	})
}

// doctor: what the API server says about Muster, whose programs run outside the cluster here.
func doctor(t *testing.T, kubeconfig string) {
	t.Helper()
	_, out, errs := run(t.Context(), kubeconfig, "doctor", "-o", "json")
	var d cli.Doctor
	if err := json.Unmarshal([]byte(out), &d); err != nil || errs != "" {
		t.Fatalf("%q, %v: %s", errs, err, out)
	}
	states := map[string]string{}
	for _, c := range d.Checks {
		states[c.Name] = c.State + ": " + c.Message
	}
	for name, want := range map[string]string{
		"clock": "ok: this machine's clock agrees", "muster-scheduler": "problem: Lease muster-system/muster-scheduler does not exist", "muster-controller": "problem: Lease muster-system/muster-controller does not exist",
		"CRDs": "ok: the API server serves scheduling.run.ai/v2alpha2, grove.io/v1alpha1, kai.scheduler/v1alpha1", "rights of muster-scheduler": "ok: all that it needs",
		"gangs of Kubernetes": "ok: the feature gate GenericWorkload of the API server is off", "programs": "unknown: there is no Deployment muster-system/muster-scheduler",
	} {
		if !strings.HasPrefix(states[name], want) {
			t.Errorf("doctor says %q about %s, want %q", states[name], name, want)
		}
	}
}

// watched: what is watched is shown again when it changes, and after an API server that goes away and comes back.
func watched(t *testing.T, kubeconfig string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out screen
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, []string{"kubectl-muster", "--kubeconfig", kubeconfig, "tree", "g", "--watch"},
			cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out, Width: 80})
	}()
	shows := func(text string) {
		t.Helper()
		until(t, text, func(context.Context) bool { return strings.Contains(out.last(), text) })
	}
	shows("g     2 pods  2      2")
	if err := cluster.Client().CoreV1().Pods("default").Delete(ctx, "g-1", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	shows("g     2 pods  1      1")
	cluster.APIServer.Kill()
	shows("The API server has not answered since")
	if err := cluster.Restart(ctx, cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	until(t, "the screen without the API server's silence", func(context.Context) bool { return !strings.Contains(out.last(), "has not answered") })
	gangOf := wrappers.MakePod("g-2", "default").Gang("g").GPUs(4).Obj()
	gangOf.UID = ""
	if _, err := cluster.Client().CoreV1().Pods("default").Create(ctx, gangOf, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shows("g     2 pods  2      2")
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("the exit code is %d after an interruption", code)
	}
}

// screen has what was written.
type screen struct {
	mu    sync.Mutex
	times []string // guarded by mu: one text for each time it was drawn
}

func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, string(text))
	return len(text), nil
}

func (s *screen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.times, "")
}

func (s *screen) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.times) == 0 {
		return ""
	}
	return s.times[len(s.times)-1]
}
