// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
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
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/yaml"
)

// StartProject applies the manifests that another project publishes, bin/NAME.yaml, and runs its controller, bin/NAME,
// as its own service account under its own rules, with the webhooks on loopback. It returns when the webhooks answer.
// Both files come from hack/build-controlplane.sh. edit, if not nil, changes the configuration of the controller, if it
// reads one.
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
	serving, err := issueServing(name)
	if err != nil {
		return nil, err
	}
	certificates := filepath.Join(cp.path(name+"-serving"), "k8s-webhook-server", "serving-certs") // where controller-runtime looks in TMPDIR
	secret := map[string]any{}
	err = os.MkdirAll(certificates, 0o700)
	for file, content := range serving {
		secret[file] = base64.StdEncoding.EncodeToString(content)
		err = errors.Join(err, os.WriteFile(filepath.Join(certificates, file), content, 0o600))
	}
	if err != nil {
		return nil, err
	}
	callAt(objects, "https://"+address, serving["ca.crt"])

	var deployment appsv1.Deployment
	var config map[string]any
	for _, object := range objects {
		switch object.GetKind() {
		case "Deployment":
			err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
		case "ConfigMap":
			text, _, _ := unstructured.NestedString(object.Object, "data", "controller_manager_config.yaml")
			err = errors.Join(err, yaml.Unmarshal([]byte(text), &config))
		case "Secret":
			object.Object["data"] = secret
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

// projectFlags are the flags of the programs that read no configuration, and have no webhooks. %s is where they answer
// probes.
var projectFlags = map[string]string{
	"kuberay":           "--health-probe-bind-address=%s --metrics-addr=0 --enable-leader-election=false",
	"scheduler-plugins": "--probeAddr=%s --metricsAddr=0",
}

// issueServing returns the files of a project's Secret, PEM: an authority, and the certificate of its webhooks, which
// is one for loopback, too. A project that manages its certificates makes both itself unless they are valid, hence the
// name of the authority and the kind of its key.
func issueServing(project string) (map[string][]byte, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	authority := &authority{key: private}
	if authority.certificate, err = cert.NewSelfSignedCACert(cert.Config{CommonName: project + "-ca"}, private); err != nil {
		return nil, err
	}
	certificate, key, err := authority.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: project}, DNSNames: []string{fmt.Sprintf("%s-webhook-service.%[1]s-system.svc", project)},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, err
	}
	ca, err := cert.EncodeCertificates(authority.certificate)
	if err != nil {
		return nil, err
	}
	caKey, err := keyutil.MarshalPrivateKeyToPEM(private)
	return map[string][]byte{"ca.crt": ca, "ca.key": caKey, corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}, err
}

// callAt lets the webhooks of admission and conversion among the objects be called at this address instead of a
// Service. ca, PEM, signed the server's certificate; nil: the program writes it itself.
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
