// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	certutil "k8s.io/client-go/util/cert"

	"github.com/muster-project/muster/test/controlplane"
)

// TestExternalCertificates: another program writes the certificate as files, and later versions of these are served
// without a restart. No right to Secrets is needed.
func TestExternalCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots := x509.NewCertPool()
	renew := func() {
		t.Helper()
		cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM(cert)
		for name, content := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	renew()

	const user = "nobody-in-particular"
	kubeconfig, err := cluster.Kubeconfig(user)
	if err != nil {
		t.Fatal(err)
	}
	// What the controllers need, and not the Role, which has the Secret.
	_, err = cluster.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "muster-controller"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	webhookPort, healthPort := freePort(t), freePort(t)
	p := cluster.NewProcess(controlplane.ProcessOptions{
		Name: "muster-controller-external",
		Path: "../../../bin/muster-controller",
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--namespace=muster-system", "--leader-elect=false",
			"--webhook-host=127.0.0.1", fmt.Sprintf("--webhook-port=%d", webhookPort),
			"--cert-management=external", "--webhook-cert-dir=" + dir,
			fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", healthPort), "--metrics-bind-address=0",
		},
		ReadyURL: fmt.Sprintf("http://127.0.0.1:%d/readyz", healthPort),
	})
	if err := cluster.Restart(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)

	call := func() error {
		dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots}}
		connection, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(webhookPort)))
		if err != nil {
			return err
		}
		return connection.Close()
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	renew()
	var last error
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = call()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("the renewed certificate is not served: %v\n%s", last, p.LogTail(15))
	}

	p.Terminate(20 * time.Second)
	if err := p.Err(); err != nil {
		t.Errorf("told to end, it ends with %v:\n%s", err, p.LogTail(15))
	}
	if log := p.LogTail(1000); strings.Contains(log, "forbidden") {
		t.Errorf("a right is missing:\n%s", log)
	}
}

// TestCertManagerSample renders the component for cert-manager together with the base, as kubectl apply -k would.
func TestCertManagerSample(t *testing.T) {
	t.Parallel()
	objects := renderBesideBase(t, "resources: [BASE]\ncomponents: [BASE/components/cert-manager]\n")
	into := func(content map[string]any, typed any) {
		t.Helper()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, object := range objects {
		what := object.GetKind() + " " + object.GetName()
		seen[what] = true
		switch what {
		case "ValidatingWebhookConfiguration muster-webhooks":
			config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			into(object.Object, config)
			if config.Annotations["cert-manager.io/inject-ca-from"] != "muster-system/muster-webhooks" || len(config.Webhooks) == 0 {
				t.Errorf("%s: %+v", what, config)
			}
		case "MutatingWebhookConfiguration muster-webhooks":
			config := &admissionregistrationv1.MutatingWebhookConfiguration{}
			into(object.Object, config)
			if config.Annotations["cert-manager.io/inject-ca-from"] != "muster-system/muster-webhooks" || len(config.Webhooks) == 0 {
				t.Errorf("%s: %+v", what, config)
			}
		case "ClusterRole muster-controller":
			role := &rbacv1.ClusterRole{}
			into(object.Object, role)
			for _, rule := range role.Rules {
				if slices.Contains(rule.APIGroups, "admissionregistration.k8s.io") {
					t.Errorf("%s may still write webhook configurations: %v", what, rule)
				}
			}
			if len(role.Rules) == 0 {
				t.Errorf("%s has no rules left for the workload API", what)
			}
		case "Deployment muster-controller":
			deployment := &appsv1.Deployment{}
			into(object.Object, deployment)
			container := deployment.Spec.Template.Spec.Containers[0]
			mounted := ""
			for _, mount := range container.VolumeMounts {
				mounted = "--webhook-cert-dir=" + mount.MountPath
			}
			if !slices.Contains(container.Args, "--cert-management=external") || !slices.Contains(container.Args, mounted) {
				t.Errorf("%s: args %v, mounts %v", what, container.Args, container.VolumeMounts)
			}
		case "Role muster-controller":
			role := &rbacv1.Role{}
			into(object.Object, role)
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "secrets") {
					t.Errorf("%s may still use secrets: %v", what, rule)
				}
			}
		}
	}
	for what, want := range map[string]bool{
		"ValidatingWebhookConfiguration muster-webhooks": true, "MutatingWebhookConfiguration muster-webhooks": true,
		"Deployment muster-controller": true, "Role muster-controller": true, "ClusterRole muster-controller": true,
		"Certificate muster-webhooks": true, "Issuer muster-webhooks": true,
	} {
		if seen[what] != want {
			t.Errorf("%s is there: %t, want %t", what, seen[what], want)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := controlplane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestOverlayOfTheDocs renders the overlay that docs/configuration.md puts
// together, block by block.
func TestOverlayOfTheDocs(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(docs), "\n## Deploying\n")
	var overlay strings.Builder
	for {
		before, block, found := strings.Cut(rest, "```yaml\n")
		if !found {
			break
		}
		indent := before[strings.LastIndex(before, "\n")+1:] // of a block in a list
		block, rest, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			overlay.WriteString(strings.TrimPrefix(line, indent))
		}
	}
	objects := renderBesideBase(t, strings.ReplaceAll(overlay.String(), "../muster/manifests", "BASE"))

	got := map[string][]string{} // Deployment -> image, then its arguments
	certificates := 0
	for _, object := range objects {
		switch object.GetKind() {
		case "Certificate":
			certificates++
		case "Deployment":
			deployment := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
				t.Fatal(err)
			}
			container := deployment.Spec.Template.Spec.Containers[0]
			got[object.GetName()] = append([]string{container.Image}, container.Args...)
		}
	}
	want := map[string][]string{
		"muster-scheduler": {"registry.example.com/muster-scheduler:v0.1.0", "--config=/etc/muster/config.yaml", "-v=2", "--workload-gangs"},
		"muster-controller": {"registry.example.com/muster-controller:v0.1.0", "--leader-elect",
			"--wait-image=ghcr.io/muster-project/muster-wait:v0.1.0", "-v=2",
			"--cert-management=external", "--webhook-cert-dir=/etc/muster/webhook-certs",
			"--wait-image=registry.example.com/muster-wait:v0.1.0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Deployments (-want +got):\n%s", diff)
	}
	if certificates != 1 {
		t.Errorf("%d Certificates, want one", certificates)
	}
}

// renderBesideBase renders a kustomization as kubectl apply -k would. BASE in
// it stands for manifests/.
func renderBesideBase(t *testing.T, kustomization string) []*unstructured.Unstructured {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Abs("../../../manifests")
	if err != nil {
		t.Fatal(err)
	}
	if base, err = filepath.Rel(dir, base); err != nil {
		t.Fatal(err)
	}
	kustomization = strings.ReplaceAll(kustomization, "BASE", base)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), "../../../bin/kubectl", "kustomize", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, output, kustomization)
	}
	objects, err := controlplane.ParseManifests(output)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
