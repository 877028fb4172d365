// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed stages.yaml
var stages []byte

// StartEtcd starts etcd, on the port and data it had before, and waits until it serves.
func (cp *ControlPlane) StartEtcd(ctx context.Context) error {
	if cp.etcd == nil {
		peerPort, err := freePort()
		if err != nil {
			return err
		}
		// Peer URLs are mandatory, although there are no peers.
		peer, client := "http://"+peerPort.address(), "http://"+cp.etcdPort.address()
		cp.etcd = cp.NewProcess(cp.server("etcd", "http://"+cp.etcdPort.address()+"/health", nil,
			"--name=default",
			"--data-dir="+cp.path("etcd"),
			"--listen-client-urls="+client,
			"--advertise-client-urls="+client,
			"--listen-peer-urls="+peer,
			"--initial-advertise-peer-urls="+peer,
			"--initial-cluster=default="+peer,
			// A crash of the machine may lose data; a crash of etcd does not.
			"--unsafe-no-fsync",
			"--quota-backend-bytes=8589934592",
			"--log-level=warn",
		))
	}
	cp.say("starting etcd at %s", cp.etcdPort.address())
	return cp.startServer(ctx, cp.etcd)
}

// StopEtcd kills etcd; its data stays.
func (cp *ControlPlane) StopEtcd() { cp.etcd.Kill() }

// StartAPIServer starts the API server, on the port it had before, and waits until it is ready.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error {
	if cp.apiServer == nil {
		args, err := cp.apiServerArgs()
		if err != nil {
			return err
		}
		cp.apiServer = cp.NewProcess(cp.server("kube-apiserver", "https://"+cp.apiPort.address()+"/readyz", cp.options.APIServerArgs, args...))
	}
	cp.say("starting kube-apiserver at %s", cp.apiPort.address())
	return cp.startServer(ctx, cp.apiServer)
}

// StopAPIServer terminates the API server with SIGTERM, and kills it after two seconds.
func (cp *ControlPlane) StopAPIServer() { cp.apiServer.Terminate(2 * time.Second) }

// KillAPIServer kills the API server with SIGKILL.
func (cp *ControlPlane) KillAPIServer() { cp.apiServer.Kill() }

func (cp *ControlPlane) apiServerArgs() ([]string, error) {
	args := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", cp.apiPort.number),
		"--etcd-servers=http://" + cp.etcdPort.address(),
		"--tls-cert-file=" + cp.authority.path("apiserver.crt"),
		"--tls-private-key-file=" + cp.authority.path("apiserver.key"),
		"--client-ca-file=" + cp.authority.path("ca.crt"),
		"--requestheader-client-ca-file=" + cp.authority.path(frontProxyCA+".crt"),
		"--requestheader-allowed-names=" + frontProxyClient,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + cp.authority.path(frontProxyClient+".crt"),
		"--proxy-client-key-file=" + cp.authority.path(frontProxyClient+".key"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + cp.authority.path("sa.key"),
		"--service-account-signing-key-file=" + cp.authority.path("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		// No client uses the Service "kubernetes" of this API server, and a loopback address is not allowed there.
		"--endpoint-reconciler-type=none",
		"--allow-privileged=true",
	}
	if disabled := cp.disabledAdmission(); len(disabled) > 0 {
		args = append(args, "--disable-admission-plugins="+strings.Join(disabled, ","))
	}
	if cp.options.AuditPolicy != "" {
		policy := cp.path("audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(cp.options.AuditPolicy), 0o644); err != nil {
			return nil, err
		}
		// One file: by default it is rotated after 100 MB, and tests that count requests would miss the earlier ones.
		args = append(args, "--audit-policy-file="+policy, "--audit-log-path="+cp.AuditLog(), "--audit-log-maxsize=0")
	}
	return args, nil
}

// disabledAdmission returns the admission plugins that need a controller that does not run here.
func (cp *ControlPlane) disabledAdmission() []string {
	var disabled []string
	if !cp.options.WithControllerManager {
		// Rejects pods until a controller has created the service account "default".
		disabled = append(disabled, "ServiceAccount")
	}
	if !cp.watchesNodes() {
		// Taints every new node as not ready until a controller has observed it ready.
		disabled = append(disabled, "TaintNodesByCondition")
	}
	return disabled
}

// watchesNodes reports whether the node lifecycle controller runs: it needs a kubelet that renews the leases of the
// nodes.
func (cp *ControlPlane) watchesNodes() bool {
	return cp.options.WithControllerManager && cp.hasKubelets()
}

func (cp *ControlPlane) startControllerManager(ctx context.Context) error {
	p, err := freePort()
	if err != nil {
		return err
	}
	kubeconfig, err := cp.Kubeconfig("system:kube-controller-manager")
	if err != nil {
		return err
	}
	controllers := "*"
	if !cp.watchesNodes() {
		controllers = "*,-node-lifecycle-controller"
	}
	cp.controllerManager = cp.NewProcess(cp.server("kube-controller-manager", "https://"+p.address()+"/healthz", cp.options.ControllerManagerArgs,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.number),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+cp.authority.path("sa.key"),
		"--root-ca-file="+cp.authority.path("ca.crt"),
		"--controllers="+controllers,
		"--node-monitor-period=1s",
		"--horizontal-pod-autoscaler-sync-period=2s",
		fmt.Sprintf("--node-monitor-grace-period=%s", cp.options.NodeLease+cp.options.NodeLease/4),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	))
	cp.say("starting kube-controller-manager")
	return cp.startServer(ctx, cp.controllerManager)
}

// RestartControllerManager kills kube-controller-manager, starts it and waits until it is ready. After an outage of the
// API server it would continue only when its back-off is over, up to a minute later.
func (cp *ControlPlane) RestartControllerManager(ctx context.Context) error {
	return cp.Restart(ctx, cp.controllerManager)
}

func (cp *ControlPlane) startKwok(ctx context.Context) error {
	p, err := freePort()
	if err != nil {
		return err
	}
	kubeconfig, err := cp.Kubeconfig("kwok", "system:masters")
	if err != nil {
		return err
	}
	config := cp.path("stages.yaml")
	if err := os.WriteFile(config, stages, 0o644); err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--config=" + config,
		"--manage-nodes-with-label-selector=" + kwokLabel + "=" + kwokLabelValue,
		"--server-address=" + p.address(),
		"--cidr=10.244.0.0/16",
	}
	if cp.watchesNodes() {
		args = append(args, fmt.Sprintf("--node-lease-duration-seconds=%d", int(cp.options.NodeLease.Seconds())))
	}
	cp.kwok = cp.NewProcess(cp.server("kwok", "http://"+p.address()+"/healthz", nil, args...))
	cp.say("starting kwok")
	return cp.startServer(ctx, cp.kwok)
}

// server describes a server of the control plane; extra arguments come last and override others.
func (cp *ControlPlane) server(name, readyURL string, extra []string, args ...string) ProcessOptions {
	return ProcessOptions{Name: name, Path: filepath.Join(cp.options.BinDir, name), Args: append(args, extra...), ReadyURL: readyURL}
}

// startServer starts the process and returns once it is ready.
func (cp *ControlPlane) startServer(ctx context.Context, p *Process) error {
	if err := p.Start(); err != nil {
		return err
	}
	return cp.WaitReady(ctx, p)
}

// WaitReady returns when a GET of the process's ReadyURL answers 200. If the process exits before that, or ctx ends, the
// error has the end of the log; it waits at most two minutes.
func (cp *ControlPlane) WaitReady(ctx context.Context, p *Process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("not ready within two minutes"))
	defer cancel()

	// A server that does not answer yet cannot be watched, so this polls.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	answer := errors.New("not asked yet")
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.options.ReadyURL, nil)
		if err != nil {
			return err
		}
		response, err := probes.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(response.Status)
		}
		if ctx.Err() == nil {
			answer = err
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return p.EndedEarly()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (%s says: %w); the end of its log:\n%s",
				p.options.Name, context.Cause(ctx), p.options.ReadyURL, answer, p.LogTail(15))
		}
	}
}

// probes sends readiness checks, without a certificate, like those of a kubelet: a server of Kubernetes logs an error about a
// certificate that it receives before it has read which authority to trust. It does not verify certificates: all servers
// except the API server have self-signed ones, and the check is only whether a server answers on loopback.
var probes = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
	DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // see above
}}

// waitForNamespaces waits for the namespaces that every cluster has; the API server creates them after it is ready.
func (cp *ControlPlane) waitForNamespaces(ctx context.Context) error {
	return Until(ctx, cp.client.CoreV1().Namespaces(), metav1.ListOptions{}, func(found []*corev1.Namespace) bool {
		missing := map[string]bool{metav1.NamespaceDefault: true, metav1.NamespaceSystem: true, corev1.NamespaceNodeLease: true}
		for _, namespace := range found {
			delete(missing, namespace.Name)
		}
		return len(missing) == 0
	})
}

func (cp *ControlPlane) waitForServiceAccount(ctx context.Context, namespace, name string) error {
	return Until(ctx, cp.client.CoreV1().ServiceAccounts(namespace), metav1.ListOptions{FieldSelector: "metadata.name=" + name},
		func(found []*corev1.ServiceAccount) bool { return len(found) == 1 })
}

// CreateNamespace creates a namespace in which pods can be created immediately.
func (cp *ControlPlane) CreateNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := cp.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	if !cp.options.WithControllerManager {
		return nil
	}
	return cp.waitForServiceAccount(ctx, name, "default")
}
