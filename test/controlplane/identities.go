// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// UserConfig returns the configuration of a client that authenticates as this user, in these groups, with a certificate
// of its own. The user has no rights unless roles are bound to it. Works while the API server is down.
func (cp *ControlPlane) UserConfig(name string, groups ...string) (*rest.Config, error) {
	certificate, key, err := cp.authority.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, err
	}
	config := cp.anonymous()
	config.CertData, config.KeyData = certificate, key
	return config, nil
}

// ServiceAccountConfig returns the configuration of a client that authenticates as the service account, with a token as
// in its pods. The account must exist.
func (cp *ControlPlane) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	life := int64((30 * 24 * time.Hour).Seconds())
	token, err := cp.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &life},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token for service account %s/%s: %w", namespace, name, err)
	}
	config := cp.anonymous()
	config.BearerToken = token.Status.Token
	return config, nil
}

// metricsReader is a service account that may read metrics and profiles, of the programs and of the API server, and
// nothing else.
const metricsReader = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics-reader}
rules: [{nonResourceURLs: [/metrics, /debug/*], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics-reader}
subjects: [{kind: ServiceAccount, name: metrics-reader, namespace: default}]
`

// MetricsConfig returns the configuration of a client that may read metrics and profiles, and nothing else.
func (cp *ControlPlane) MetricsConfig(ctx context.Context) (*rest.Config, error) {
	if err := cp.ApplyYAML(ctx, metricsReader); err != nil {
		return nil, err
	}
	return cp.ServiceAccountConfig(ctx, metav1.NamespaceDefault, "metrics-reader")
}

// Kubeconfig writes the kubeconfig of a user, see UserConfig, and returns its path.
func (cp *ControlPlane) Kubeconfig(name string, groups ...string) (string, error) {
	config, err := cp.UserConfig(name, groups...)
	return cp.writeKubeconfig(config, name, err)
}

// ServiceAccountKubeconfig writes the kubeconfig of a service account, see ServiceAccountConfig, and returns its path.
func (cp *ControlPlane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	config, err := cp.ServiceAccountConfig(ctx, namespace, name)
	return cp.writeKubeconfig(config, namespace+"-"+name, err)
}

// AdminKubeconfig returns the path of the kubeconfig of an administrator.
func (cp *ControlPlane) AdminKubeconfig() string { return cp.path("kubeconfig") }

// anonymous returns a configuration that trusts the API server, without credentials, and without a client-side rate
// limit, so that tests measure the server.
func (cp *ControlPlane) anonymous() *rest.Config {
	return &rest.Config{
		Host:            "https://" + cp.apiAddress,
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.authority.pem},
		QPS:             -1,
	}
}

// writeKubeconfig writes a configuration that was made without err.
func (cp *ControlPlane) writeKubeconfig(config *rest.Config, name string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	path := cp.path("kubeconfig-" + strings.ReplaceAll(name, ":", "-"))
	return path, WriteKubeconfig(config, path)
}

// WriteKubeconfig writes the configuration as a self-contained kubeconfig file, atomically: a program that reads it
// meanwhile gets the earlier or the new content.
func WriteKubeconfig(config *rest.Config, path string) error {
	const name = "muster"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
	}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	content, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	return errors.Join(err, next.Close(), os.Rename(next.Name(), path))
}
