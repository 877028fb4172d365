// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startServers starts what the options ask for, one after the other.
func (cp *ControlPlane) startServers(ctx context.Context) error {
	managed := cp.options.WithControllerManager
	for _, server := range []struct {
		process  **Process
		wanted   bool
		name     string
		describe func() (readyURL string, args []string, err error)
		then     func(context.Context) error
	}{
		{&cp.Etcd, true, "etcd", cp.describeEtcd, nil},
		{&cp.APIServer, true, "kube-apiserver", cp.describeAPIServer, cp.waitForNamespaces},
		{&cp.ControllerManager, managed, "kube-controller-manager", cp.describeControllerManager, nil},
	} {
		if !server.wanted {
			continue
		}
		readyURL, args, err := server.describe()
		if err != nil {
			return err
		}
		*server.process = cp.NewProcess(ProcessOptions{Name: server.name, Path: cp.server(server.name), Args: args, ReadyURL: readyURL})
		if err := cp.Restart(ctx, *server.process); err != nil {
			return err
		}
		if server.then != nil {
			if err := server.then(ctx); err != nil {
				return err
			}
		}
	}
	if cp.options.WithKubelets {
		if err := cp.startKubelets(ctx); err != nil {
			return err
		}
	}
	return cp.waitForServiceAccount(ctx, metav1.NamespaceDefault)
}

func (cp *ControlPlane) binary(name string) string { return filepath.Join(cp.options.BinDir, name) }

// server returns the path of a server, of the version that the options name.
func (cp *ControlPlane) server(name string) string {
	if cp.options.Kubernetes != "" && name != "etcd" {
		name += "-" + cp.options.Kubernetes
	}
	return cp.binary(name)
}

func (cp *ControlPlane) describeEtcd() (string, []string, error) {
	peerAddress, _, err := freeAddress()
	// Peer URLs are mandatory, although there are no peers.
	peer, client := "http://"+peerAddress, "http://"+cp.etcdAddress
	return client + "/health", []string{
		"--name=default",
		"--data-dir=" + cp.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		// A crash of the machine may lose data; a crash of etcd does not.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}, err
}

func (cp *ControlPlane) describeAPIServer() (string, []string, error) {
	_, port, _ := strings.Cut(cp.apiAddress, ":")
	args := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + port,
		"--etcd-servers=http://" + cp.etcdAddress,
		"--tls-cert-file=" + cp.authority.path("apiserver.crt"),
		"--tls-private-key-file=" + cp.authority.path("apiserver.key"),
		"--client-ca-file=" + cp.authority.path("ca.crt"),
		// Every server that delegates authentication, such as a scheduler, reads the authority of a front proxy from
		// the ConfigMap kube-system/extension-apiserver-authentication, and logs an error if there is none. Nobody has
		// the name.
		"--requestheader-client-ca-file=" + cp.authority.path("ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
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
			return "", nil, err
		}
		// One file: by default it is rotated after 100 MB, and tests that count requests would miss the earlier ones.
		args = append(args, "--audit-policy-file="+policy, "--audit-log-path="+cp.AuditLog(), "--audit-log-maxsize=0")
	}
	return "https://" + cp.apiAddress + "/readyz", append(args, cp.options.APIServerArgs...), nil
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
	return cp.options.WithControllerManager && cp.options.WithKubelets
}

func (cp *ControlPlane) describeControllerManager() (string, []string, error) {
	kubeconfig, err := cp.Kubeconfig("system:kube-controller-manager")
	if err != nil {
		return "", nil, err
	}
	address, args, err := delegatingServer(kubeconfig)
	controllers := "*"
	if !cp.watchesNodes() {
		controllers = "*,-node-lifecycle-controller"
	}
	return address + "/healthz", slices.Concat(args, []string{
		"--kubeconfig=" + kubeconfig,
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + cp.authority.path("sa.key"),
		"--root-ca-file=" + cp.authority.path("ca.crt"),
		"--controllers=" + controllers,
		"--node-monitor-period=1s",
		"--horizontal-pod-autoscaler-sync-period=2s",
		fmt.Sprintf("--node-monitor-grace-period=%s", cp.options.NodeLease+cp.options.NodeLease/4),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}, cp.options.ControllerManagerArgs), err
}

// delegatingServer returns the address, and the flags, of a server of Kubernetes on a free port of loopback that asks
// the API server who its clients are. It takes part in no leader election.
func delegatingServer(kubeconfig string) (url string, args []string, err error) {
	address, port, err := freeAddress()
	return "https://" + address, []string{
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--leader-elect=false",
	}, err
}

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

// waitForServiceAccount waits for the service account "default" of the namespace, without which pods are rejected.
// Without kube-controller-manager nothing creates it, and nothing needs it.
func (cp *ControlPlane) waitForServiceAccount(ctx context.Context, namespace string) error {
	if !cp.options.WithControllerManager {
		return nil
	}
	return untilNamed(ctx, cp.client.CoreV1().ServiceAccounts(namespace), "default", func(*corev1.ServiceAccount) bool { return true })
}

// CreateNamespace creates a namespace in which pods can be created immediately.
func (cp *ControlPlane) CreateNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := cp.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	return cp.waitForServiceAccount(ctx, name)
}
