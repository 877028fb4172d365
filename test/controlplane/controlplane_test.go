// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// shared has all servers running; tests use nodes and namespaces of their own. Tests that stop servers start a control
// plane of their own.
var shared *ControlPlane

func TestMain(m *testing.M) {
	if dir := os.Getenv(abandonIn); dir != "" {
		abandonControlPlane(dir)
	}
	os.Exit(Main(m, Options{WithControllerManager: true, WithKubelets: true}, &shared))
}

func TestStopLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	cp, err := Start(t.Context(), Options{WithControllerManager: true, WithKubelets: true})
	if err != nil {
		t.Fatal(err)
	}
	sleeper := cp.NewProcess(ProcessOptions{Name: "sleeper", Path: "/bin/sh", Args: []string{"-c", "sleep 1000 & sleep 1000"}})
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	var names []string
	var pids []int
	for _, p := range cp.processes {
		names, pids = append(names, p.Name), append(pids, p.PID())
		if !alive(p.PID()) {
			t.Errorf("%s does not run", p.Name)
		}
	}
	if diff := cmp.Diff([]string{"etcd", "kube-apiserver", "kube-controller-manager", "sleeper"}, names); diff != "" {
		t.Errorf("processes differ (-want +got):\n%s", diff)
	}

	cp.Stop()
	cp.Stop() // a second Stop is allowed

	for _, pid := range pids {
		if groupAlive(pid) {
			t.Errorf("process group %d still has processes", pid)
		}
	}
	if _, err := os.Stat(cp.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory %s: want it gone, got %v", cp.Dir(), err)
	}
}

// abandonIn names the environment variable that makes this test binary start a control plane and exit immediately.
const abandonIn = "CONTROLPLANE_TEST_ABANDON_IN"

func abandonControlPlane(tempDir string) {
	os.Setenv("TMPDIR", tempDir)
	cp, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(cp.Etcd.PID(), cp.APIServer.PID())
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

func TestKilledProcessLeavesNothingBehind(t *testing.T) {
	temp := t.TempDir()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), abandonIn+"="+temp)
	output, err := command.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("want the process to be killed, got %v\n%s", err, output)
	}
	var etcd, apiServer int
	if _, err := fmt.Sscan(string(output), &etcd, &apiServer); err != nil {
		t.Fatalf("reading the pids in %q: %v", output, err)
	}
	for name, pid := range map[string]int{"etcd": etcd, "kube-apiserver": apiServer} {
		deadline := time.Now().Add(10 * time.Second)
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("%s (%d) outlived the process that started it", name, pid)
			}
			time.Sleep(10 * time.Millisecond) // it is no longer a child of this process: only the process table shows it
		}
	}

	// The next control plane removes its files.
	t.Setenv("TMPDIR", temp)
	abandoned, _ := filepath.Glob(filepath.Join(temp, tempPattern+"*"))
	if len(abandoned) != 1 {
		t.Fatalf("want one abandoned directory, got %v", abandoned)
	}
	sweepAbandoned()
	if left, _ := os.ReadDir(temp); len(left) != 0 {
		t.Errorf("want nothing left in %s, got %v", temp, left)
	}
}

// alive reports whether the process runs and is no zombie.
func alive(pid int) bool {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	stat, err := process.Stat()
	return err == nil && stat.State != "Z" && stat.State != "X"
}

func TestMissingBinaryNamesTheTargetThatBuildsIt(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{BinDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "make controlplane") {
		t.Errorf("want an error that names `make controlplane`, got %v", err)
	}
}

func TestServerThatEndsEarlyShowsItsLog(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{WithControllerManager: true, ControllerManagerArgs: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("want the end of the server's log in the error, got %v", err)
	}
}

func TestAuthorizationIsOn(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	newNamespace(t, shared, "authorization")
	reader := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	if _, err := shared.Client().CoreV1().ServiceAccounts("authorization").Create(ctx, reader, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := shared.Apply(ctx, parse(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: authorization-node-reader}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: authorization-node-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: authorization-node-reader}
subjects:
- {kind: ServiceAccount, namespace: authorization, name: reader}
`)...); err != nil {
		t.Fatal(err)
	}
	stranger, err := shared.UserConfig("stranger")
	if err != nil {
		t.Fatal(err)
	}
	serviceAccount, err := shared.ServiceAccountConfig(ctx, "authorization", "reader")
	if err != nil {
		t.Fatal(err)
	}
	anonymousUser := rest.AnonymousClientConfig(shared.Admin())
	impostor := rest.CopyConfig(anonymousUser)
	impostor.BearerToken = "no-token-of-ours"

	type answer struct{ Nodes, Secrets metav1.StatusReason }
	const allowed, forbidden = metav1.StatusReason(""), metav1.StatusReasonForbidden
	for name, test := range map[string]struct {
		config *rest.Config
		want   answer
	}{
		"the admin may do everything":                   {shared.Admin(), answer{allowed, allowed}},
		"a user without roles may do nothing":           {stranger, answer{forbidden, forbidden}},
		"a service account may do what its role allows": {serviceAccount, answer{allowed, forbidden}},
		"anonymous has no rights":                       {anonymousUser, answer{forbidden, forbidden}},
		"an unknown token is rejected": {impostor,
			answer{metav1.StatusReasonUnauthorized, metav1.StatusReasonUnauthorized}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := kubernetes.NewForConfigOrDie(test.config)
			_, nodesErr := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			_, secretsErr := client.CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
			if diff := cmp.Diff(test.want, answer{apierrors.ReasonForError(nodesErr), apierrors.ReasonForError(secretsErr)}); diff != "" {
				t.Errorf("reasons differ (-want +got):\n%s\n%v\n%v", diff, nodesErr, secretsErr)
			}
		})
	}
}

func TestPodsObeyAnnotations(t *testing.T) {
	t.Parallel()
	const namespace = "lives"
	newNamespace(t, shared, namespace)
	nodes := newNodes(t, shared, NodeOptions{Count: 1, GPUs: 8, NamePrefix: "lives"})

	type outcome struct {
		Phase    corev1.PodPhase
		Ready    bool
		ExitCode int32
	}
	for name, test := range map[string]struct {
		annotations map[string]string
		want        outcome
	}{
		"starts and is ready":         {nil, outcome{corev1.PodRunning, true, 0}},
		"starts after a while":        {map[string]string{StartAfterAnnotation: "200ms"}, outcome{corev1.PodRunning, true, 0}},
		"runs without being ready":    {map[string]string{ReadyAnnotation: "false"}, outcome{corev1.PodRunning, false, 0}},
		"succeeds":                    {map[string]string{ExitCodeAnnotation: "0"}, outcome{corev1.PodSucceeded, false, 0}},
		"succeeds after a while":      {map[string]string{ExitCodeAnnotation: "0", ExitAfterAnnotation: "200ms"}, outcome{corev1.PodSucceeded, false, 0}},
		"fails with the exit code":    {map[string]string{ExitCodeAnnotation: "137"}, outcome{corev1.PodFailed, false, 137}},
		"fails though it was unready": {map[string]string{ExitCodeAnnotation: "3", ReadyAnnotation: "false"}, outcome{corev1.PodFailed, false, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newPod(t, shared, namespace, nodes[0], test.annotations)
			var got outcome
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err := shared.untilPod(ctx, namespace, pod.Name, func(pod *corev1.Pod) bool {
				got = outcome{Phase: pod.Status.Phase, Ready: PodReady(pod)}
				for _, container := range pod.Status.ContainerStatuses {
					if container.State.Terminated != nil {
						got.ExitCode = container.State.Terminated.ExitCode
					}
				}
				return got == test.want
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("outcome differs (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

func TestPodObeysAnnotationsWhileItRuns(t *testing.T) {
	t.Parallel()
	const namespace = "obeys"
	ctx := t.Context()
	newNamespace(t, shared, namespace)
	nodes := newNodes(t, shared, NodeOptions{Count: 1, NamePrefix: "obeys"})
	pod := newPod(t, shared, namespace, nodes[0], map[string]string{HoldAnnotation: "true"})

	// A later pod that starts shows that the fake kubelet has seen the pod with HoldAnnotation.
	witness := newPod(t, shared, namespace, nodes[0], nil)
	if err := shared.untilPod(ctx, namespace, witness.Name, PodReady); err != nil {
		t.Fatal(err)
	}
	if err := shared.untilPod(ctx, namespace, pod.Name, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending }); err != nil {
		t.Fatal(err)
	}

	for _, step := range []struct {
		annotation, value string
		done              func(*corev1.Pod) bool
	}{
		{HoldAnnotation, "false", PodReady},
		{ReadyAnnotation, "false", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning && !PodReady(pod) }},
		{ReadyAnnotation, "true", PodReady},
	} {
		if err := shared.AnnotatePod(ctx, namespace, pod.Name, map[string]string{step.annotation: step.value}); err != nil {
			t.Fatal(err)
		}
		if err := shared.untilPod(ctx, namespace, pod.Name, step.done); err != nil {
			t.Fatalf("after %s=%s: %v", step.annotation, step.value, err)
		}
	}
	if err := shared.ExitPod(ctx, namespace, pod.Name, 0); err != nil {
		t.Fatal(err)
	}
	if err := shared.RemovePod(ctx, namespace, pod.Name); err != nil {
		t.Fatal(err)
	}
}

func TestJobRunsToItsEnd(t *testing.T) {
	t.Parallel()
	const namespace = "job"
	ctx := t.Context()
	newNamespace(t, shared, namespace)
	nodes := newNodes(t, shared, NodeOptions{Count: 1, NamePrefix: "job"})
	two := int32(2)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.JobSpec{Completions: &two, Parallelism: &two, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{ExitCodeAnnotation: "0"}},
			Spec: corev1.PodSpec{
				NodeName:      nodes[0],
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "none"}},
			},
		}},
	}
	if _, err := shared.Client().BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := Until(ctx, shared.Client().BatchV1().Jobs(namespace), metav1.ListOptions{},
		func(jobs []*batchv1.Job) bool { return jobs[0].Status.CompletionTime != nil }); err != nil {
		t.Fatal(err)
	}
	// The pods have the Job controller's finalizer until it has counted them; they must still be removed.
	background := metav1.DeletePropagationBackground
	if err := shared.Client().BatchV1().Jobs(namespace).Delete(ctx, "job", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	if err := Until(ctx, shared.Client().CoreV1().Pods(namespace), metav1.ListOptions{},
		func(pods []*corev1.Pod) bool { return len(pods) == 0 }); err != nil {
		t.Fatal(err)
	}
}

func TestLostNodeComesBack(t *testing.T) {
	plain := startPlain(t)
	for name, cp := range map[string]*ControlPlane{"with kubelets": shared, "without kubelets": plain} {
		t.Run(name, func(t *testing.T) {
			const namespace = "lost"
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			newNamespace(t, cp, namespace)
			nodes := newNodes(t, cp, NodeOptions{Count: 2, GPUs: 8, NamePrefix: "lost"})
			pod := newPod(t, cp, namespace, nodes[0], nil)
			other := newPod(t, cp, namespace, nodes[1], nil)
			for _, pod := range []*corev1.Pod{pod, other} {
				if cp.kubelets == nil {
					if err := cp.StartPod(ctx, namespace, pod.Name); err != nil {
						t.Fatal(err)
					}
				}
				if err := cp.untilPod(ctx, namespace, pod.Name, PodReady); err != nil {
					t.Fatal(err)
				}
			}

			if err := cp.LoseNode(ctx, nodes[0]); err != nil {
				t.Fatal(err)
			}
			node, err := cp.Client().CoreV1().Nodes().Get(ctx, nodes[0], metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if nodeReady(node) {
				t.Errorf("the lost node is ready: %v", node.Status.Conditions)
			}
			if err := cp.untilPod(ctx, namespace, pod.Name, func(pod *corev1.Pod) bool { return !PodReady(pod) }); err != nil {
				t.Errorf("pod of the lost node: %v", err)
			}
			if err := cp.untilPod(ctx, namespace, other.Name, PodReady); err != nil {
				t.Errorf("pod of the other node: %v", err)
			}

			if err := cp.RestoreNode(ctx, nodes[0]); err != nil {
				t.Fatal(err)
			}
			if err := cp.untilPod(ctx, namespace, pod.Name, PodReady); err != nil {
				t.Errorf("pod of the node that is back: %v", err)
			}
		})
	}
}

func TestPodOfLostNodeStaysTerminatingUntilTheNodeIsBack(t *testing.T) {
	t.Parallel()
	const namespace = "terminating"
	ctx := t.Context()
	newNamespace(t, shared, namespace)
	nodes := newNodes(t, shared, NodeOptions{Count: 1, NamePrefix: "terminating"})
	pod := newPod(t, shared, namespace, nodes[0], nil)
	if err := shared.untilPod(ctx, namespace, pod.Name, PodReady); err != nil {
		t.Fatal(err)
	}
	if err := shared.LoseNode(ctx, nodes[0]); err != nil {
		t.Fatal(err)
	}
	if err := shared.Client().CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// A pod on a reachable node shows that the fake kubelets have processed their pods.
	living := newNodes(t, shared, NodeOptions{Count: 1, NamePrefix: "terminating-other"})
	witness := newPod(t, shared, namespace, living[0], nil)
	if err := shared.untilPod(ctx, namespace, witness.Name, PodReady); err != nil {
		t.Fatal(err)
	}
	if err := shared.untilPod(ctx, namespace, pod.Name, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }); err != nil {
		t.Errorf("want the pod to stay terminating: %v", err)
	}
	if err := shared.RestoreNode(ctx, nodes[0]); err != nil {
		t.Fatal(err)
	}
	if err := shared.RemovePod(ctx, namespace, pod.Name); err != nil {
		t.Errorf("want the pod to go once the node is back: %v", err)
	}
}

func TestNodesLookLikeAFleet(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	nodes := newNodes(t, shared, NodeOptions{
		Count: 2, First: 17, GPUs: 8, NamePrefix: "fleet", Labels: map[string]string{"pool": "a"}})
	if diff := cmp.Diff([]string{"fleet-0017", "fleet-0018"}, nodes); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	node, err := shared.Client().CoreV1().Nodes().Get(ctx, nodes[0], metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	type facts struct{ Hostname, Zone, Block, Rack, Pool, CPU, Memory, Pods, GPUs string }
	want := facts{"fleet-0017", "zone-0", "block-01", "rack-004", "a", "128", "1Ti", "110", "8"}
	gpus := node.Status.Allocatable[GPUResource]
	got := facts{
		node.Labels[corev1.LabelHostname], node.Labels[ZoneLabel], node.Labels[BlockLabel], node.Labels[RackLabel], node.Labels["pool"],
		node.Status.Allocatable.Cpu().String(), node.Status.Allocatable.Memory().String(), node.Status.Allocatable.Pods().String(), gpus.String(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("node differs (-want +got):\n%s", diff)
	}

	removed, err := shared.RemoveNode(ctx, nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.ReturnNode(ctx, removed); err != nil {
		t.Errorf("want the removed node back: %v", err)
	}
}

func TestServersComeBackWithTheirData(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cp := startPlain(t)
	for _, server := range []*Process{cp.APIServer, cp.Etcd} {
		newNamespace(t, cp, server.Name)
		server.Terminate(2 * time.Second)
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := cp.Client().CoreV1().Namespaces().Get(soon, server.Name, metav1.GetOptions{}); err == nil {
			t.Errorf("the API is served while %s is stopped", server.Name)
		}

		waited := make(chan error, 1)
		later := "later-" + server.Name
		go func() { // a wait that begins during the outage returns after it
			waited <- Until(ctx, cp.Client().CoreV1().Namespaces(), metav1.ListOptions{FieldSelector: "metadata.name=" + later},
				func(found []*corev1.Namespace) bool { return len(found) == 1 })
		}()

		if err := cp.Restart(ctx, server); err != nil {
			t.Fatal(err)
		}
		if err := cp.APIServer.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := cp.Client().CoreV1().Namespaces().Get(ctx, server.Name, metav1.GetOptions{}); err != nil {
			t.Errorf("after the restart of %s: %v", server.Name, err)
		}
		newNamespace(t, cp, later)
		if err := <-waited; err != nil {
			t.Errorf("waiting across the restart of %s: %v", server.Name, err)
		}
	}
}

func TestApplyWaitsForDefinitions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	// The object comes before its kind and its namespace: Apply reorders them.
	objects := parse(t, `
apiVersion: apply.muster.test/v1
kind: Widget
metadata: {name: one, namespace: apply}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.apply.muster.test}
spec:
  group: apply.muster.test
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: apply}
`)
	for range 2 { // applying again changes nothing
		if err := shared.Apply(ctx, objects...); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProcessIsKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	p := shared.NewProcess(ProcessOptions{Name: "restarted", Path: "/bin/sh", Args: []string{"-c", "echo started; exec sleep 1000"}})
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err == nil {
		t.Error("want an error for a second start")
	}
	first := p.PID()
	p.Kill()
	if p.Running() || groupAlive(first) {
		t.Error("still runs after Kill")
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.Terminate(10 * time.Second)
	if p.Running() || p.Err() == nil {
		t.Errorf("want it ended by a signal, got running=%v, %v", p.Running(), p.Err())
	}
}

func startPlain(t *testing.T) *ControlPlane {
	t.Helper()
	cp, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cp.Stop)
	return cp
}

func newNamespace(t *testing.T, cp *ControlPlane, name string) {
	t.Helper()
	if err := cp.CreateNamespace(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

func newNodes(t *testing.T, cp *ControlPlane, options NodeOptions) []string {
	t.Helper()
	nodes, err := cp.CreateNodes(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

// newPod creates a pod with a node name, because no scheduler runs here.
func newPod(t *testing.T, cp *ControlPlane, namespace, node string, annotations map[string]string) *corev1.Pod {
	t.Helper()
	pod, err := cp.Client().CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Annotations: annotations},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}
func parse(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := ParseManifests([]byte(manifests))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
