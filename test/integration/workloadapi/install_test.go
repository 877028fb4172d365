// SPDX-License-Identifier: Apache-2.0

package workloadapi

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// installation is a control plane on which Muster is installed as described in docs/configuration.md.
type installation struct {
	*user
	cp      *controlplane.ControlPlane
	running []*controlplane.Process
	times   int // that the programs were installed
}

// kubectl runs the kubectl of bin/ as the administrator.
func (i *installation) kubectl(arguments string) {
	i.t.Helper()
	command := exec.CommandContext(i.t.Context(), "../../../bin/kubectl", strings.Fields(arguments)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+i.cp.AdminKubeconfig())
	if output, err := command.CombinedOutput(); err != nil {
		i.t.Fatalf("kubectl %s: %v\n%s", arguments, err, output)
	}
}

// released returns the folder of the files that make release writes, with chart.yaml, which is what the chart installs
// with these values.
func (i *installation) released(ctx context.Context, values string) string {
	i.t.Helper()
	out := i.t.TempDir()
	command := exec.CommandContext(ctx, "go", "run", "-mod=mod", ".", "-files", "-version=v0.0.0-test", "-manifests=../../manifests", "-out="+out, "-values="+values)
	command.Dir = "../../../hack/release"
	if output, err := command.CombinedOutput(); err != nil {
		i.t.Fatalf("writing the files of a release: %v\n%s", err, output)
	}
	return out
}

// install applies a file and runs a pod of each Deployment as a process: with its flags, its configuration, and the
// rights of its service account. The webhooks are called at the address of the process instead of the Service, which
// nothing routes here.
func (i *installation) install(ctx context.Context, file string) {
	i.t.Helper()
	for _, p := range i.running {
		p.Kill()
	}
	i.times++
	i.kubectl("apply --server-side -f " + file)
	i.kubectl("delete validatingwebhookconfiguration,mutatingwebhookconfiguration muster-webhooks")
	i.kubectl("wait --for=condition=Established crd --all")
	config, err := i.cp.Client().CoreV1().ConfigMaps(controlplane.MusterNamespace).Get(ctx, "muster-scheduler-config", metav1.GetOptions{})
	check(i.t, err)
	scheduler, err := i.cp.StartMusterScheduler(ctx, controlplane.SchedulerOptions{
		Name: fmt.Sprint("muster-scheduler-", i.times), Config: []byte(config.Data["config.yaml"]), LeaderElect: true,
		Args: slices.DeleteFunc(i.admitted(ctx, "muster-scheduler"), func(arg string) bool { return strings.HasPrefix(arg, "--config=") }),
	})
	if err != nil {
		i.t.Fatal(err)
	}
	controller, err := i.cp.StartMusterController(ctx, controlplane.ControllerOptions{
		Name: fmt.Sprint("muster-controller-", i.times), Args: i.admitted(ctx, "muster-controller"),
	})
	if err != nil {
		i.t.Fatal(err)
	}
	i.running = []*controlplane.Process{scheduler, controller}
}

// admitted returns the flags of a program as soon as the API server has admitted a pod of its Deployment to the
// namespace, which enforces the restricted Pod Security profile. It would not admit a pod that asks for more.
func (i *installation) admitted(ctx context.Context, program string) []string {
	i.t.Helper()
	deployment, err := i.cp.Client().AppsV1().Deployments(controlplane.MusterNamespace).Get(ctx, program, metav1.GetOptions{})
	check(i.t, err)
	var pod *corev1.Pod
	if err := controlplane.Until(ctx, i.cp.Client().CoreV1().Pods(controlplane.MusterNamespace), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + program},
		func(pods []*corev1.Pod) bool {
			for _, p := range pods {
				if p.DeletionTimestamp == nil && p.Spec.Containers[0].Image == deployment.Spec.Template.Spec.Containers[0].Image {
					pod = p
				}
			}
			return pod != nil
		}); err != nil {
		i.t.Fatalf("waiting for a pod of Deployment %s: %v", program, err)
	}
	if pod.Spec.ServiceAccountName != program {
		i.t.Errorf("a pod of %s runs as service account %q", program, pod.Spec.ServiceAccountName)
	}
	greedy := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "greedy"}, Spec: *deployment.Spec.Template.Spec.DeepCopy()}
	greedy.Spec.Containers[0].SecurityContext.Capabilities = nil
	_, err = i.cp.Client().CoreV1().Pods(controlplane.MusterNamespace).Create(ctx, greedy, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
		i.t.Errorf("a pod that keeps its capabilities: %v, want that Pod Security refuses it", err)
	}
	return pod.Spec.Containers[0].Args
}

// runDeployments does what the default scheduler does for the pods of the Deployments, until the test ends. Their
// kubelets are simulated: the programs themselves run as processes.
func (i *installation) runDeployments(ctx context.Context, node string) {
	pods := i.cp.Client().CoreV1().Pods(controlplane.MusterNamespace)
	go func() {
		_ = controlplane.Until(ctx, pods, metav1.ListOptions{FieldSelector: "spec.nodeName="}, func(waiting []*corev1.Pod) bool {
			for _, p := range waiting {
				_ = pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
			}
			return false
		})
	}()
}

// checkRights fails the test if a program was refused something.
func (i *installation) checkRights() {
	i.t.Helper()
	for _, p := range i.running {
		for line := range strings.Lines(p.LogTail(1 << 20)) {
			if strings.Contains(line, "is forbidden") {
				i.t.Errorf("%s lacks a right: %s", p.Name, line)
			}
		}
	}
}

// pods returns the UIDs of the user's pods that do not terminate, by name, as soon as there are n which are ready.
func (i *installation) pods(ctx context.Context, n int) map[string]types.UID {
	i.t.Helper()
	var uids map[string]types.UID
	err := controlplane.Until(ctx, i.cp.Client().CoreV1().Pods(i.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		uids = map[string]types.UID{}
		for _, pod := range pods {
			for _, condition := range pod.Status.Conditions {
				if pod.DeletionTimestamp == nil && condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					uids[pod.Name] = pod.UID
				}
			}
		}
		return len(uids) == n && len(pods) == n
	})
	if err != nil {
		i.t.Fatalf("waiting for %d ready pods: %v; there are %v", n, err, uids)
	}
	return uids
}

// collectGarbage returns when the garbage collector has processed all earlier deletions.
func (i *installation) collectGarbage(ctx context.Context) {
	i.t.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}
	i.create(owner)
	i.collected(ctx, "owned", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
		func() { check(i.t, i.Delete(ctx, owner)) })
}

// knowPodCliques waits until the garbage collector knows the kind PodClique: it discovers kinds twice a minute, and
// what a CRD takes with it before is not seen by it.
func (i *installation) knowPodCliques(ctx context.Context) {
	i.t.Helper()
	i.collected(ctx, "owned-by-a-podclique", metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodClique, Name: "gone", UID: "gone"}, func() {})
}

// collected creates an object with an owner, calls remove, which removes the owner, and waits until the object is gone.
func (i *installation) collected(ctx context.Context, name string, owner metav1.OwnerReference, remove func()) {
	i.t.Helper()
	i.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{owner}}})
	remove()
	err := controlplane.Until(ctx, i.cp.Client().CoreV1().ConfigMaps(i.namespace), metav1.ListOptions{FieldSelector: "metadata.name=" + name},
		func(owned []*corev1.ConfigMap) bool { return len(owned) == 0 })
	if err != nil {
		i.t.Fatalf("waiting for the garbage collector: %v", err)
	}
}

// TestInstallAndUninstall follows docs/configuration.md: install.yaml installs Muster, over what kubectl -k had
// applied; uninstall.yaml leaves running workloads; the chart installs it again, and it manages them again; deleting
// the CRDs deletes them. The programs run as the Deployments say.
func TestInstallAndUninstall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cp, err := controlplane.Start(ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cp.Stop)
	i := &installation{user: newUser(t, cp), cp: cp}
	if _, err := cp.CreateNodes(ctx, controlplane.NodeOptions{Count: 2, GPUs: 8}); err != nil {
		t.Fatal(err)
	}
	release := i.released(ctx, "priorityClasses: [{name: training, value: 100, preemptionPolicy: Never}]\nnetworkPolicy: {enabled: true}")
	i.kubectl("apply -k ../../../manifests/crds") // client-side; a later server-side apply takes over its fields
	i.kubectl("wait --for=condition=Established crd --all")
	i.kubectl("apply -k ../../../manifests")
	i.install(ctx, release+"/install.yaml")

	pcs := i.typed() // 3 frontends, and 2 replicas of a leader and 4 workers
	i.create(pcs)
	before := i.pods(ctx, 13)
	i.checkRights()

	i.kubectl("delete -f " + release + "/uninstall.yaml")
	i.collectGarbage(ctx)
	if diff := cmp.Diff(before, i.pods(ctx, 13)); diff != "" {
		t.Errorf("pods after the programs were deleted (-before +after):\n%s", diff)
	}
	live := &v1alpha1.PodCliqueSet{}
	check(t, i.Get(ctx, client.ObjectKeyFromObject(pcs), live))
	if live.UID != pcs.UID || live.DeletionTimestamp != nil {
		t.Errorf("the PodCliqueSet is another one or terminates: %+v", live.ObjectMeta)
	}

	i.kubectl("create namespace " + controlplane.MusterNamespace) // helm install --create-namespace
	i.kubectl("label namespace " + controlplane.MusterNamespace + " pod-security.kubernetes.io/enforce=restricted")
	i.install(ctx, release+"/chart.yaml")
	frontend := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "svc-0-frontend", Namespace: i.namespace}}
	check(t, i.scale(frontend, 5))
	after := i.pods(ctx, 15)
	for name, uid := range before {
		if after[name] != uid {
			t.Errorf("pod %s did not outlive the installation: %s is now %q", name, uid, after[name])
		}
	}

	job := i.typed()
	job.Name, job.Spec.WorkloadType = "job", v1alpha1.WorkloadTypeTraining
	job.Spec.Template.PriorityClassName = "training"
	job.Spec.Template.Cliques, job.Spec.Template.PodCliqueScalingGroupConfigs = job.Spec.Template.Cliques[:1], nil
	i.create(job)
	i.pods(ctx, 15+int(job.Spec.Template.Cliques[0].Spec.Replicas))
	i.checkRights()

	i.knowPodCliques(ctx)
	i.kubectl("delete -f " + release + "/uninstall.yaml")
	for _, p := range i.running {
		p.Kill()
	}
	i.documented("configuration.md", "grove.io/pod-tracking") // of the job's pods
	i.documented("configuration.md", "delete -k manifests/crds")
	i.pods(ctx, 0)
}

// TestTheSchedulerAlone follows docs/configuration.md: muster-controller is removed from a cluster, and
// muster-scheduler is installed alone. Gangs start, and what no webhook rejects any more is Invalid.
func TestTheSchedulerAlone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cp, err := controlplane.Start(ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cp.Stop)
	i := &installation{user: newUser(t, cp), cp: cp}
	if _, err := cp.CreateNodes(ctx, controlplane.NodeOptions{Count: 2, GPUs: 8}); err != nil {
		t.Fatal(err)
	}
	i.kubectl("apply --server-side -k ../../../manifests")
	i.documented("configuration.md", "manifests/webhooks")
	i.documented("configuration.md", "manifests/crds/scheduling.run.ai_podgroups.yaml")
	i.kubectl("wait --for=condition=Established crd --all")
	for _, gone := range []string{"-n muster-system deployment", "validatingwebhookconfiguration", "mutatingwebhookconfiguration", "-n muster-system service"} {
		command := exec.CommandContext(ctx, "../../../bin/kubectl", append([]string{"get", "-o", "name"}, strings.Fields(gone)...)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+cp.AdminKubeconfig())
		if output, err := command.CombinedOutput(); err != nil || strings.Contains(string(output), "controller") || strings.Contains(string(output), "webhooks") {
			t.Errorf("kubectl get %s: %v\n%s", gone, err, output)
		}
	}
	if _, err := cp.StartMusterScheduler(ctx, controlplane.SchedulerOptions{}); err != nil {
		t.Fatal(err)
	}
	i.kubectl("apply -n " + i.namespace + " -f ../../../manifests/samples/job.yaml")
	i.pods(ctx, 8)
	podGroup := i.read("apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: invalid}\nspec: {subGroups: [{name: a}]}")
	check(t, i.Create(ctx, podGroup))
	i.kubectl("wait -n " + i.namespace + " --for=jsonpath={.status.reason}=Invalid podgroup/invalid --timeout=60s")
}

// TestOperations runs the commands of docs/operations.md: they show that both programs work, replace the certificate
// while it is used, and remove the webhooks while no muster-controller answers.
func TestOperations(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cp, err := controlplane.Start(ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cp.Stop)
	i := &installation{user: newUser(t, cp), cp: cp}
	nodes, err := cp.CreateNodes(ctx, controlplane.NodeOptions{Count: 2, GPUs: 8, Labels: map[string]string{"nvidia.com/gpu.present": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	i.runDeployments(ctx, nodes[0])
	i.documented("configuration.md", "-k manifests/crds\nkubectl apply --server-side -k manifests\n")
	i.documented("configuration.md", "rollout status") // an upgrade to the same
	i.kubectl("wait --for=condition=Established crd --all")
	i.kubectl("delete validatingwebhookconfiguration,mutatingwebhookconfiguration muster-webhooks")
	if _, err := cp.StartMusterScheduler(ctx, controlplane.SchedulerOptions{LeaderElect: true}); err != nil {
		t.Fatal(err)
	}
	controller, err := cp.StartMusterController(ctx, controlplane.ControllerOptions{Args: []string{"--leader-elect=true"}})
	if err != nil {
		t.Fatal(err)
	}

	i.kubectl("wait -n muster-system --for=jsonpath={.spec.holderIdentity} lease/muster-scheduler lease/muster-controller --timeout=60s")
	i.kubectl("-n muster-system wait --for=jsonpath={.status.readyReplicas}=2 deployment --all --timeout=60s") // READY 2/2
	i.documented("operations.md", "get deployments")
	i.documented("operations.md", ".spec.renewTime")
	i.documented("operations.md", "openssl x509")
	former, err := cp.Client().CoreV1().Secrets(controlplane.MusterNamespace).Get(ctx, "muster-webhooks-tls", metav1.GetOptions{})
	check(t, err)
	i.documented("operations.md", "delete secret muster-webhooks-tls")
	check(t, controlplane.Until(ctx, cp.Client().CoreV1().Secrets(controlplane.MusterNamespace), metav1.ListOptions{FieldSelector: "metadata.name=" + former.Name},
		func(secrets []*corev1.Secret) bool { return len(secrets) == 1 && secrets[0].UID != former.UID }))
	// The API server observes a changed webhook configuration after some time, and without an event.
	accepted := func(ctx context.Context) (bool, error) { return i.Create(ctx, i.typed(), client.DryRunAll) == nil, nil }
	check(t, wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, accepted))

	secrets := cp.Client().CoreV1().Secrets(controlplane.MusterNamespace)
	marks, err := secrets.Get(ctx, "muster-scheduler-marks", metav1.GetOptions{})
	check(t, err)
	i.documented("security.md", "muster-scheduler-marks", "k-0123abcd", string(marks.Data["current"]))
	if marks, err = secrets.Get(ctx, marks.Name, metav1.GetOptions{}); err != nil || len(marks.Data) != 2 || string(marks.Data["current"]) != "k-2026-11" {
		t.Errorf("keys after the replacement: %v, %v", slices.Collect(maps.Keys(marks.Data)), err)
	}
	i.create(i.typed())
	i.pods(ctx, 13)
	i.documented("configuration.md", "delete podcliquesets --all")
	i.pods(ctx, 0)

	controller.Kill()
	if err := i.Create(ctx, i.typed(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("a PodCliqueSet without muster-controller: %v, want that the webhook cannot be called", err)
	}
	i.documented("configuration.md", "kubectl label namespace default")
	groves := i.typed()
	groves.Namespace = "default"
	check(t, wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return i.Create(ctx, groves.DeepCopy(), client.DryRunAll) == nil, nil
	}))
	i.documented("operations.md", "delete -k manifests/webhooks")
	check(t, wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, accepted))
	i.documented("operations.md", "apply --server-side -k manifests/webhooks")

	i.documented("configuration.md", "kubectl taint nodes")
	i.kubectl("apply -f ../../../manifests/components/monitoring/roles.yaml")
	i.documented("configuration.md", "create rolebinding")
	prometheus := " --as=system:serviceaccount:monitoring:prometheus-k8s"
	i.kubectl("auth can-i get /metrics" + prometheus)
	i.kubectl("auth can-i watch endpointslices.discovery.k8s.io -n muster-system" + prometheus)
	i.documented("configuration.md", "delete -k manifests     #")
}

// documented runs the commands of a page of docs that mention something, with these texts replaced.
func (i *installation) documented(document, mention string, replace ...string) {
	i.t.Helper()
	page, err := os.ReadFile("../../../docs/" + document)
	check(i.t, err)
	for _, block := range strings.Split(string(page), "```sh\n")[1:] {
		commands, _, _ := strings.Cut(block, "```")
		if !strings.Contains(commands, mention) {
			continue
		}
		commands = strings.NewReplacer(replace...).Replace(commands)
		bin, err := filepath.Abs("../../../bin")
		check(i.t, err)
		shell := exec.CommandContext(i.t.Context(), "bash", "-euo", "pipefail", "-c", commands)
		shell.Dir = "../../.."
		shell.Env = append(os.Environ(), "KUBECONFIG="+i.cp.AdminKubeconfig(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		if output, err := shell.CombinedOutput(); err != nil {
			i.t.Fatalf("%s: %v\n%s", commands, err, output)
		}
		return
	}
	i.t.Fatalf("docs/%s has no command with %q", document, mention)
}
