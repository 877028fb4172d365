// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// MusterNamespace is the namespace of Muster in manifests/; both programs have service accounts of their own names
// there.
const MusterNamespace = "muster-system"

// InstallMuster applies the objects of manifests/ (namespace, CRDs, service accounts, RBAC, configuration) except the
// Deployments, whose images do not exist here, and the webhooks, which StartMusterController applies.
func (cp *ControlPlane) InstallMuster(ctx context.Context) error {
	cp.say("installing Muster's CRDs, service accounts and roles")
	objects, err := musterManifests("crds", "scheduler", "controller")
	if err != nil {
		return err
	}
	return cp.Apply(ctx, slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == "Deployment" || object.GetKind() == "Service"
	})...)
}

// musterManifests returns the objects of files and folders of manifests/.
func musterManifests(names ...string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range names {
		objects, err := ReadManifests(os.DirFS(filepath.Join(repository(), "manifests")), name)
		if err != nil {
			return nil, fmt.Errorf("reading manifests/%s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// SchedulerOptions configures muster-scheduler.
type SchedulerOptions struct {
	// Name of the process and its log. Empty: muster-scheduler.
	Name string
	// Path of the program. Empty: that of bin/.
	Path string
	// Config is a KubeSchedulerConfiguration as YAML. Empty: that of manifests/scheduler. The kubeconfig is filled in.
	Config []byte
	// Kubeconfig is the path of a kubeconfig. Empty: one with the scheduler's own identity.
	Kubeconfig string
	// LeaderElect turns leader election on. Without it the first binding comes 15 seconds sooner after a crash.
	LeaderElect bool
	// Args come last and override others.
	Args []string
	// Env is added to this process's environment.
	Env []string
}

// StartMusterScheduler runs bin/muster-scheduler as its service account, under the rules of manifests/scheduler, and
// returns when it is ready. It needs InstallMuster. It can be killed and restarted.
func (cp *ControlPlane) StartMusterScheduler(ctx context.Context, options SchedulerOptions) (*Process, error) {
	name := cmp.Or(options.Name, "muster-scheduler")
	kubeconfig := options.Kubeconfig
	var err error
	if kubeconfig == "" {
		if kubeconfig, err = cp.ServiceAccountKubeconfig(ctx, MusterNamespace, "muster-scheduler"); err != nil {
			return nil, err
		}
	}
	configFile := cp.path(name + ".yaml")
	if err := writeSchedulerConfig(configFile, options.Config, kubeconfig); err != nil {
		return nil, err
	}
	process, err := SchedulerProcess(name, cmp.Or(options.Path, cp.binary("muster-scheduler")), kubeconfig, append([]string{
		"--config=" + configFile, fmt.Sprintf("--leader-elect=%v", options.LeaderElect), "-v=2", "--workload-gangs"}, options.Args...)...)
	if err != nil {
		return nil, err
	}
	process.Env = options.Env
	p := cp.NewProcess(process)
	return p, cp.Restart(ctx, p)
}

// SchedulerProcess describes a program with the flags of kube-scheduler that serves on a free port of loopback, without
// leader election. args come last and override others.
func SchedulerProcess(name, path, kubeconfig string, args ...string) (ProcessOptions, error) {
	url, serving, err := delegatingServer(kubeconfig)
	return ProcessOptions{Name: name, Path: path, ReadyURL: url + "/readyz", Args: append(serving, args...)}, err
}

// writeSchedulerConfig writes a scheduler configuration, nil: the one of manifests/scheduler, with this kubeconfig in
// it: kube-scheduler ignores --kubeconfig if --config is given.
func writeSchedulerConfig(file string, config []byte, kubeconfig string) error {
	if config == nil {
		objects, err := musterManifests("scheduler")
		if err != nil {
			return err
		}
		for _, object := range objects {
			if text, found, _ := unstructured.NestedString(object.Object, "data", "config.yaml"); found {
				config = []byte(text)
			}
		}
	}
	object := map[string]any{}
	if err := yaml.Unmarshal(config, &object); err != nil {
		return fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	if err := unstructured.SetNestedField(object, kubeconfig, "clientConnection", "kubeconfig"); err != nil {
		return err
	}
	content, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// ControllerOptions configures muster-controller.
type ControllerOptions struct {
	// Name of the process and its log. Empty: muster-controller.
	Name string
	// Path of the program. Empty: that of bin/.
	Path string
	// Args come last and override others.
	Args []string
}

// StartMusterController runs bin/muster-controller as its service account, under the rules of manifests/controller,
// with the webhooks of manifests/webhooks pointing at it, and returns when the API server calls them. It needs
// InstallMuster.
func (cp *ControlPlane) StartMusterController(ctx context.Context, options ControllerOptions) (*Process, error) {
	kubeconfig, err := cp.ServiceAccountKubeconfig(ctx, MusterNamespace, "muster-controller")
	if err != nil {
		return nil, err
	}
	webhookAddress, webhookPort, err := freeAddress()
	if err != nil {
		return nil, err
	}
	healthAddress, _, err := freeAddress()
	if err != nil {
		return nil, err
	}
	webhooks, err := webhooksAt("https://" + webhookAddress)
	if err != nil {
		return nil, err
	}
	if err := cp.Apply(ctx, webhooks...); err != nil {
		return nil, err
	}
	p := cp.NewProcess(ProcessOptions{
		Name: cmp.Or(options.Name, "muster-controller"),
		Path: cmp.Or(options.Path, cp.binary("muster-controller")),
		Args: append([]string{
			"--kubeconfig=" + kubeconfig,
			"--namespace=" + MusterNamespace,
			"--webhook-host=127.0.0.1",
			fmt.Sprintf("--webhook-port=%d", webhookPort),
			"--health-probe-bind-address=" + healthAddress,
			"--metrics-bind-address=0",
			"--leader-elect=false",
			"-v=2",
		}, options.Args...),
		ReadyURL: "http://" + healthAddress + "/readyz",
	})
	if err := cp.Restart(ctx, p); err != nil {
		return nil, err
	}
	return p, cp.waitForWebhook(ctx)
}

// webhooksAt returns the webhook configurations of manifests/webhooks, calling this address instead of a Service.
func webhooksAt(address string) ([]*unstructured.Unstructured, error) {
	objects, err := musterManifests("webhooks")
	if err != nil {
		return nil, err
	}
	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return object.Object["webhooks"] == nil })
	callAt(objects, address, nil)
	return objects, nil
}

// webhookProbes are objects whose dry-run creation shows that a webhook is called: only the webhook rejects the first
// ones, and sets the defaults of the last. The API server observes a new webhook after some time and sends no event
// about it.
const webhookProbes = `
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: webhook-probe}
spec:
  subGroups:
  - {name: leaf-without-min-member}
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: 0-is-no-first-letter, annotations: {grove.io/controller-class: muster}}
spec:
  template:
    cliques:
    - name: main
      spec: {podSpec: {containers: [{name: main, image: none}]}}
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: webhook-probe, annotations: {grove.io/controller-class: muster}}
spec:
  replicas: 1
  template:
    cliques:
    - name: main
      spec: {podSpec: {containers: [{name: main, image: none}]}}
`

// waitForWebhook returns when the API server calls the webhooks.
func (cp *ControlPlane) waitForWebhook(ctx context.Context) error {
	anything, err := client.New(cp.admin, client.Options{})
	if err != nil {
		return err
	}
	probes, err := ParseManifests([]byte(webhookProbes))
	if err != nil {
		return err
	}
	for i, probe := range probes {
		probe.SetNamespace(metav1.NamespaceDefault)
		var answer error
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (called bool, err error) {
			created := probe.DeepCopy()
			answer = anything.Create(ctx, created, client.DryRunAll)
			if answer == nil && i == len(probes)-1 {
				_, called, err = unstructured.NestedString(created.Object, "spec", "template", "cliqueStartupType")
				return called, err
			}
			return answer != nil && strings.Contains(answer.Error(), "admission webhook") && strings.Contains(answer.Error(), "denied the request"), nil
		})
		if err != nil {
			return fmt.Errorf("the API server does not call the webhook of %ss: %w (last answer: %w)", probe.GetKind(), err, answer)
		}
	}
	return nil
}
