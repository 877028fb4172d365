// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// StartProject applies the manifests that another project publishes, bin/NAME.yaml, and runs its controller, bin/NAME, as its own
// service account under its own rules, with the webhooks on loopback. It returns when the webhooks answer. Both files come from
// hack/build-controlplane.sh. edit, if not nil, changes the configuration of the controller, if it reads one.
func (cp *ControlPlane) StartProject(ctx context.Context, name string, edit func(config map[string]any)) (*Process, error) {
	content, err := os.ReadFile(cp.binary(name + ".yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of %s: %w; run hack/build-controlplane.sh %[1]s", name, err)
	}
	objects, err := ParseManifests(content)
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of %s: %w", name, err)
	}
	address, port, err := freeAddress()
	if err != nil {
		return nil, err
	}
	healthAddress, _, err := freeAddress()
	if err != nil {
		return nil, err
	}
	certificates, err := cp.issueServing(name)
	if err != nil {
		return nil, err
	}
	callAt(objects, "https://"+address, cp.authority.pem)

	var deployment appsv1.Deployment
	var config map[string]any
	for _, object := range objects {
		switch object.GetKind() {
		case "Deployment":
			err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
		case "ConfigMap":
			text, _, _ := unstructured.NestedString(object.Object, "data", "controller_manager_config.yaml")
			err = errors.Join(err, yaml.Unmarshal([]byte(text), &config))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of %s: %w", name, err)
	}
	// No pods here, no Service has a port on loopback, and an aggregated API would need one.
	if err := cp.Apply(ctx, slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return slices.Contains([]string{"Deployment", "Service", "APIService"}, object.GetKind())
	})...); err != nil {
		return nil, fmt.Errorf("installing %s: %w", name, err)
	}
	kubeconfig, err := cp.ServiceAccountKubeconfig(ctx, deployment.Namespace, deployment.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return nil, err
	}

	flags, flagged := projectFlags[name]
	args := strings.Fields(fmt.Sprintf(flags, healthAddress))
	if !flagged {
		webhook := map[string]any{"host": "127.0.0.1", "port": port}
		if own, found := config["certManagement"].(map[string]any); found { // which reads certificates below its TMPDIR
			own["enable"] = false
		} else {
			webhook["certDir"] = certificates
			config["internalCertManagement"] = map[string]any{"enable": false}
		}
		config["webhook"] = webhook
		config["leaderElection"] = map[string]any{"leaderElect": false}
		config["health"] = map[string]any{"healthProbeBindAddress": healthAddress}
		config["metrics"] = map[string]any{"bindAddress": "0"}
		if edit != nil {
			edit(config)
		}
		text, err := yaml.Marshal(config)
		if err != nil {
			return nil, err
		}
		file := cp.path(name + ".config.yaml")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return nil, err
		}
		args = []string{"--config=" + file}
	}
	p := cp.NewProcess(ProcessOptions{
		Name: name, Path: cp.binary(name), Args: args,
		Env:      []string{"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + deployment.Namespace, "TMPDIR=" + cp.path(name+"-serving")},
		ReadyURL: "http://" + healthAddress + "/readyz",
	})
	if err := cp.Restart(ctx, p); err != nil || flagged {
		return p, err
	}
	return p, p.waitListening(ctx, address)
}

// projectFlags are the flags of the programs that read no configuration, and have no webhooks. %s is where they answer probes.
var projectFlags = map[string]string{
	"kuberay":           "--health-probe-bind-address=%s --metrics-addr=0 --enable-leader-election=false",
	"scheduler-plugins": "--probeAddr=%s --metricsAddr=0",
}

// issueServing writes tls.crt and tls.key of a server on loopback, and returns their directory.
func (cp *ControlPlane) issueServing(name string) (string, error) {
	certificate, key, err := cp.authority.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	dir := filepath.Join(cp.path(name+"-serving"), "k8s-webhook-server", "serving-certs") // where controller-runtime looks in TMPDIR
	return dir, errors.Join(err, os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, corev1.TLSCertKey), certificate, 0o600),
		os.WriteFile(filepath.Join(dir, corev1.TLSPrivateKeyKey), key, 0o600))
}

// callAt lets the webhooks of admission and conversion among the objects be called at this address instead of a Service. ca, PEM,
// signed the server's certificate; nil: the program writes it itself.
func callAt(objects []*unstructured.Unstructured, address string, ca []byte) {
	redirect := func(clientConfig map[string]any) {
		service, _ := clientConfig["service"].(map[string]any)
		path, _ := service["path"].(string)
		delete(clientConfig, "service")
		if clientConfig["url"] = address + path; ca != nil {
			clientConfig["caBundle"] = base64.StdEncoding.EncodeToString(ca)
		}
	}
	for _, object := range objects {
		if webhooks, found := object.Object["webhooks"].([]any); found {
			for _, webhook := range webhooks {
				redirect(webhook.(map[string]any)["clientConfig"].(map[string]any))
			}
		}
		// A definition converted by strategy None has no webhook.
		if conversion, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "conversion", "webhook", "clientConfig"); found && strings.HasPrefix(object.GetKind(), "CustomResource") {
			redirect(conversion.(map[string]any))
		}
	}
}
