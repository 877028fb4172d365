// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// MusterNamespace is the namespace of Muster in manifests/; both programs have service accounts of their own names
// there.
const MusterNamespace = "muster-system"

// InstallMuster applies the objects of manifests/ (namespace, CRDs, service accounts, RBAC, configuration) except the
// Deployments, whose images do not exist here, and the webhooks, which StartMusterController applies.
func (cp *ControlPlane) InstallMuster(ctx context.Context) error {
	cp.say("installing Muster's CRDs, service accounts and roles")
	objects, err := musterManifests(".", func(object *unstructured.Unstructured) bool {
		switch object.GetKind() {
		case "Deployment", "Service", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
			return false
		}
		return true
	})
	if err != nil {
		return err
	}
	return cp.Apply(ctx, objects...)
}

// musterManifests returns the objects of manifests/DIR that keep selects. Samples are excluded.
func musterManifests(dir string, keep func(*unstructured.Unstructured) bool) ([]*unstructured.Unstructured, error) {
	manifests := filepath.Join(repository(), "manifests")
	folders := []string{"namespace.yaml", "crds", "clusterroles.yaml", "scheduler", "controller", "webhooks"}
	if dir != "." {
		folders = []string{dir}
	}
	var kept []*unstructured.Unstructured
	for _, folder := range folders {
		objects, err := ReadManifests(os.DirFS(manifests), folder)
		if err != nil {
			return nil, fmt.Errorf("reading manifests/%s: %w", folder, err)
		}
		for _, object := range objects {
			if keep(object) {
				kept = append(kept, object)
			}
		}
	}
	return kept, nil
}

// SchedulerOptions configures muster-scheduler.
type SchedulerOptions struct {
	// Name of the process and its log. Empty: muster-scheduler.
	Name string
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
	var err error
	if options.Kubeconfig == "" {
		if options.Kubeconfig, err = cp.ServiceAccountKubeconfig(ctx, MusterNamespace, "muster-scheduler"); err != nil {
			return nil, err
		}
	}
	if options.Config == nil {
		if options.Config, err = deployedSchedulerConfig(); err != nil {
			return nil, err
		}
	}
	return cp.startScheduler(ctx, name, options)
}

func (cp *ControlPlane) startScheduler(ctx context.Context, name string, options SchedulerOptions) (*Process, error) {
	config, err := withKubeconfig(options.Config, options.Kubeconfig)
	if err != nil {
		return nil, err
	}
	configFile := cp.path(name + ".yaml")
	if err := os.WriteFile(configFile, config, 0o644); err != nil {
		return nil, err
	}
	process, err := SchedulerProcess(name, filepath.Join(cp.options.BinDir, "muster-scheduler"), options.Kubeconfig, append([]string{
		"--config=" + configFile, fmt.Sprintf("--leader-elect=%v", options.LeaderElect), "-v=2"}, options.Args...)...)
	if err != nil {
		return nil, err
	}
	process.Env = options.Env
	cp.say("starting %s", name)
	return cp.startReady(ctx, process)
}

// SchedulerProcess describes a program with the flags of kube-scheduler that serves on a free port of loopback, without leader
// election. args come last and override others.
func SchedulerProcess(name, path, kubeconfig string, args ...string) (ProcessOptions, error) {
	port, err := freePort()
	if err != nil {
		return ProcessOptions{}, err
	}
	return ProcessOptions{
		Name: name, Path: path, ReadyURL: "https://" + port.address() + "/readyz",
		Args: append([]string{
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", port.number),
			"--leader-elect=false",
		}, args...),
	}, nil
}

// ControllerOptions configures muster-controller.
type ControllerOptions struct {
	// Name of the process and its log. Empty: muster-controller.
	Name string
	// Args come last and override others.
	Args []string
}

// StartMusterController runs bin/muster-controller as its service account, under the rules of manifests/controller, with
// the webhooks of manifests/webhooks pointing at it, and returns when the API server calls them. It needs InstallMuster.
func (cp *ControlPlane) StartMusterController(ctx context.Context, options ControllerOptions) (*Process, error) {
	kubeconfig, err := cp.ServiceAccountKubeconfig(ctx, MusterNamespace, "muster-controller")
	if err != nil {
		return nil, err
	}
	webhookPort, err := freePort()
	if err != nil {
		return nil, err
	}
	healthPort, err := freePort()
	if err != nil {
		return nil, err
	}
	webhooks, err := webhooksAt("https://" + webhookPort.address())
	if err != nil {
		return nil, err
	}
	if err := cp.Apply(ctx, webhooks...); err != nil {
		return nil, err
	}
	name := cmp.Or(options.Name, "muster-controller")
	cp.say("starting %s", name)
	p, err := cp.startReady(ctx, ProcessOptions{
		Name: name,
		Path: filepath.Join(cp.options.BinDir, "muster-controller"),
		Args: append([]string{
			"--kubeconfig=" + kubeconfig,
			"--namespace=" + MusterNamespace,
			"--webhook-host=127.0.0.1",
			fmt.Sprintf("--webhook-port=%d", webhookPort.number),
			"--health-probe-bind-address=" + healthPort.address(),
			"--metrics-bind-address=0",
			"--leader-elect=false",
			"-v=2",
		}, options.Args...),
		ReadyURL: "http://" + healthPort.address() + "/readyz",
	})
	if err != nil {
		return nil, err
	}
	return p, cp.waitForWebhook(ctx)
}

// webhooksAt returns the webhook configurations of manifests/webhooks, calling this address instead of a Service.
func webhooksAt(address string) ([]*unstructured.Unstructured, error) {
	configurations, err := musterManifests("webhooks", func(object *unstructured.Unstructured) bool {
		return strings.HasSuffix(object.GetKind(), "WebhookConfiguration")
	})
	if err != nil {
		return nil, err
	}
	for _, configuration := range configurations {
		webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
		if err != nil {
			return nil, err
		}
		for _, webhook := range webhooks {
			clientConfig := webhook.(map[string]any)["clientConfig"].(map[string]any)
			path, _, err := unstructured.NestedString(clientConfig, "service", "path")
			if err != nil {
				return nil, err
			}
			delete(clientConfig, "service")
			clientConfig["url"] = address + path
		}
		if err := unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks"); err != nil {
			return nil, err
		}
	}
	return configurations, nil
}

// webhookProbes are objects whose dry-run creation shows that a webhook is called: only the webhook rejects the first
// ones, and sets the defaults of the last. The API server observes a new webhook after some time and sends no event about it.
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
metadata: {name: 0-is-no-first-letter}
spec:
  template:
    cliques:
    - name: main
      spec: {podSpec: {containers: [{name: main, image: none}]}}
---
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: webhook-probe}
spec:
  replicas: 1
  template:
    cliques:
    - name: main
      spec: {podSpec: {containers: [{name: main, image: none}]}}
`

// waitForWebhook returns when the API server calls the webhooks.
func (cp *ControlPlane) waitForWebhook(ctx context.Context) error {
	client, err := dynamic.NewForConfig(cp.admin)
	if err != nil {
		return err
	}
	probes, err := ParseManifests([]byte(webhookProbes))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the API server does not call the webhook"))
	defer cancel()
	for i, probe := range probes {
		kind := probe.GroupVersionKind()
		resource := client.Resource(kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")).Namespace("default")
		for {
			created, err := resource.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			called := err != nil && strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), "denied the request")
			if err == nil && i == len(probes)-1 {
				_, called, _ = unstructured.NestedString(created.Object, "spec", "template", "cliqueStartupType")
			}
			if called {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting for the webhook of %ss: %w (last answer: %w)", kind.Kind, context.Cause(ctx), err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// startReady starts a process and waits until it is ready.
func (cp *ControlPlane) startReady(ctx context.Context, options ProcessOptions) (*Process, error) {
	if _, err := os.Stat(options.Path); err != nil {
		return nil, fmt.Errorf("%s is missing: run `make build controlplane`", options.Path)
	}
	p := cp.NewProcess(options)
	return p, cp.Restart(ctx, p)
}

// Restart starts the process, killing it first if it runs, and waits until it is ready.
func (cp *ControlPlane) Restart(ctx context.Context, p *Process) error {
	p.Kill()
	return cp.startServer(ctx, p)
}

// deployedSchedulerConfig returns the configuration that manifests/scheduler gives to muster-scheduler.
func deployedSchedulerConfig() ([]byte, error) {
	objects, err := musterManifests("scheduler", func(object *unstructured.Unstructured) bool { return object.GetKind() == "ConfigMap" })
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		config, found, err := unstructured.NestedString(object.Object, "data", "config.yaml")
		if err != nil || found {
			return []byte(config), err
		}
	}
	return nil, errors.New("manifests/scheduler has no ConfigMap with the key config.yaml")
}

// withKubeconfig returns the scheduler configuration with this kubeconfig in it: kube-scheduler ignores --kubeconfig if
// --config is given.
func withKubeconfig(config []byte, kubeconfig string) ([]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal(config, &object); err != nil {
		return nil, fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	if err := unstructured.SetNestedField(object, kubeconfig, "clientConnection", "kubeconfig"); err != nil {
		return nil, err
	}
	return yaml.Marshal(object)
}
