// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority is the certificate authority of one control plane. The API server trusts it for clients, and all clients
// trust it for the API server.
type authority struct {
	dir         string
	key         crypto.Signer
	certificate *x509.Certificate
	pem         []byte // of certificate
}

// Names of the front proxy, as in kubeadm: a client with a certificate of this authority and this name may assert the
// user in headers. The API server uses it to call API servers behind it, and every server that delegates authentication,
// such as a scheduler, reads it from the ConfigMap kube-system/extension-apiserver-authentication.
const (
	frontProxyCA     = "front-proxy-ca"
	frontProxyClient = "front-proxy-client"
)

// certificateLife is long enough for a cluster that runs in the background.
const certificateLife = 365 * 24 * time.Hour

// newAuthority writes into dir: ca.crt, the API server's apiserver.crt and apiserver.key, the key that signs service
// account tokens, sa.key, and the front proxy's front-proxy-ca.crt, front-proxy-client.crt and front-proxy-client.key.
func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a, err := selfSigned(dir, "ca", "muster local control plane")
	if err != nil {
		return nil, err
	}
	certificate, key, err := a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, err
	}
	if err := a.write("apiserver", certificate, key); err != nil {
		return nil, err
	}

	// An authority of its own: clients with certificates of the first one must not be able to assert another user.
	proxy, err := selfSigned(dir, frontProxyCA, "muster local front proxy")
	if err != nil {
		return nil, err
	}
	if certificate, key, err = proxy.clientCertificate(frontProxyClient, nil); err != nil {
		return nil, err
	}
	if err := proxy.write(frontProxyClient, certificate, key); err != nil {
		return nil, err
	}
	tokens, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, err
	}
	return a, os.WriteFile(a.path("sa.key"), tokens, 0o600)
}

// selfSigned returns a new authority, and writes its certificate into dir.
func selfSigned(dir, file, commonName string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: commonName}, key)
	if err != nil {
		return nil, err
	}
	a := &authority{dir: dir, key: key, certificate: certificate}
	if a.pem, err = cert.EncodeCertificates(certificate); err != nil {
		return nil, err
	}
	return a, os.WriteFile(a.path(file+".crt"), a.pem, 0o644)
}

// clientCertificate returns a certificate and its key, PEM, that make the API server see the user in these groups.
func (a *authority) clientCertificate(user string, groups []string) (certificate, key []byte, err error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (certificate, key []byte, err error) {
	private, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(certificateLife)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the certificate of %q: %w", template.Subject.CommonName, err)
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), key, err
}

func (a *authority) write(name string, certificate, key []byte) error {
	if err := os.WriteFile(a.path(name+".crt"), certificate, 0o644); err != nil {
		return err
	}
	return os.WriteFile(a.path(name+".key"), key, 0o600)
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func newKey() (crypto.Signer, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}
