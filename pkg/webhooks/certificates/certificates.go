// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// caKey is the key of the authority in the Secret, for other programs that read it.
	caKey = "ca.crt"
	// authoritiesKept is the number of authorities in the webhook configuration: the newest, and those whose
	// certificates other replicas may still serve during a renewal.
	authoritiesKept = 3
)

// Reconciler creates the webhook server's certificate and keeps it valid.
//
// A certificate is signed by an authority that is created for it alone and whose key is discarded. A renewal creates a
// new pair; its authority is added to the webhook configuration, beside the old one, before the certificate is served,
// so that the API server trusts every replica at any time.
type Reconciler struct {
	// Client reads and writes the Secret and the webhook configurations.
	Client client.Client
	// Secret is the name of the Secret that all replicas share. It is created if it is missing.
	Secret types.NamespacedName
	// WebhookConfiguration is the name of the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration
	// whose webhooks must trust the certificate. Either may be created later.
	WebhookConfiguration string
	// Hosts are the DNS names and IP addresses that the API server calls; not empty.
	Hosts []string
	// Validity is how long a certificate is valid.
	Validity time.Duration
	// RenewBefore is how long before its expiry a certificate is renewed.
	RenewBefore time.Duration
	Clock       clock.PassiveClock

	serving atomic.Pointer[tls.Certificate] // nil: none yet
}

// CacheOptions restricts a manager's cache to the three objects that the Reconciler reads, so that its RBAC rules can
// name them.
func (c *Reconciler) CacheOptions() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{
			c.Secret.Namespace: {FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, c.Secret.Name)},
		}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {
			Field: fields.OneTermEqualSelector(metav1.ObjectNameField, c.WebhookConfiguration),
		},
		&admissionregistrationv1.MutatingWebhookConfiguration{}: {
			Field: fields.OneTermEqualSelector(metav1.ObjectNameField, c.WebhookConfiguration),
		},
	}}
}

// SetupWithManager registers c with the manager. It runs on every replica, whether it is the leader or not.
func (c *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	request := reconcile.Request{NamespacedName: c.Secret}
	always := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{request}
	})
	// The first pass cannot wait for an event, because there may be no object yet.
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(request)
		return nil
	})
	everyReplica := false
	return ctrl.NewControllerManagedBy(mgr).
		Named("webhook-certificates").
		Watches(&corev1.Secret{}, always).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, always).
		Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, always).
		WatchesRawSource(start).
		WithOptions(controller.Options{NeedLeaderElection: &everyReplica}).
		Complete(c)
}

// GetCertificate returns the certificate to serve with, for tls.Config.
func (c *Reconciler) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := c.serving.Load(); cert != nil {
		return cert, nil
	}
	return nil, errors.New("the webhook's certificate has not been created yet")
}

// Ready is a readiness check: it fails until there is a certificate to serve with.
func (c *Reconciler) Ready(*http.Request) error {
	_, err := c.GetCertificate(nil)
	return err
}

// Reconcile ensures that there is a valid certificate, that the API server trusts it, and that it is served, in this
// order.
func (c *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	pair, err := c.ensureSecret(ctx)
	if err == nil {
		err = c.publishAuthority(ctx, pair.authority)
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		// Another replica was faster. The watch delivers the Secret that it wrote; the requeue is for a watch that is
		// late.
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	c.serving.Store(&pair.certificate)
	return reconcile.Result{RequeueAfter: max(pair.renewAt(c.RenewBefore).Sub(c.Clock.Now()), time.Second)}, nil
}

// ensureSecret returns the key pair in the Secret. It first replaces a pair that is missing, damaged, due for renewal,
// or not valid for all of c.Hosts.
func (c *Reconciler) ensureSecret(ctx context.Context) (*keyPair, error) {
	logger := klog.FromContext(ctx)
	secret := &corev1.Secret{}
	err := c.Client.Get(ctx, c.Secret, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("reading the certificate's secret %s: %w", c.Secret, err)
	}

	hosts, why := c.Hosts, "there is none"
	if !missing {
		pair, err := parseKeyPair(secret.Data)
		switch {
		case err != nil:
			why = err.Error()
		case !c.Clock.Now().Before(pair.renewAt(c.RenewBefore)):
			why = "the old one expires soon"
		default:
			other := pair.missingHost(c.Hosts)
			if other == "" {
				return pair, nil
			}
			// The old names are kept. Otherwise replicas with different names, which exist during an upgrade, would
			// replace each other's certificate again and again.
			why = "the old one is not valid for " + other
			hosts = appendMissing(c.Hosts, pair.hosts())
		}
	}

	pair, data, err := newKeyPair(hosts, c.Validity)
	if err != nil {
		return nil, fmt.Errorf("creating the webhook's certificate: %w", err)
	}
	secret.Data = data
	if missing {
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: c.Secret.Namespace, Name: c.Secret.Name,
			Labels: map[string]string{"app.kubernetes.io/part-of": "muster", "app.kubernetes.io/managed-by": "muster-controller"}}
		secret.Type = corev1.SecretTypeTLS
		err = c.Client.Create(ctx, secret)
	} else {
		err = c.Client.Update(ctx, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("writing the certificate's secret %s: %w", c.Secret, err)
	}
	logger.V(2).Info("Created a certificate for the webhook server", "reason", why, "hosts", hosts, "validUntil", pair.certificate.Leaf.NotAfter)
	return pair, nil
}

// publishAuthority adds the authority to every webhook of both configurations. A configuration that does not exist is
// not an error: it is updated when it is created.
func (c *Reconciler) publishAuthority(ctx context.Context, authority *x509.Certificate) error {
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	return errors.Join(
		c.publishAuthorityIn(ctx, authority, validating, func() (bundles []*[]byte) {
			for i := range validating.Webhooks {
				bundles = append(bundles, &validating.Webhooks[i].ClientConfig.CABundle)
			}
			return bundles
		}),
		c.publishAuthorityIn(ctx, authority, mutating, func() (bundles []*[]byte) {
			for i := range mutating.Webhooks {
				bundles = append(bundles, &mutating.Webhooks[i].ClientConfig.CABundle)
			}
			return bundles
		}))
}

// publishAuthorityIn adds the authority to one configuration. bundles is called after the configuration was read, and
// returns the CA bundles of its webhooks.
func (c *Reconciler) publishAuthorityIn(ctx context.Context, authority *x509.Certificate, config client.Object, bundles func() []*[]byte) error {
	err := c.Client.Get(ctx, types.NamespacedName{Name: c.WebhookConfiguration}, config)
	if apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Info("Waiting for the webhook configuration; its webhooks are not called until it exists", "kind", fmt.Sprintf("%T", config), "name", c.WebhookConfiguration)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the webhook configuration %s: %w", c.WebhookConfiguration, err)
	}

	before := config.DeepCopyObject().(client.Object)
	changed := false
	for _, bundle := range bundles() {
		if next := addAuthority(*bundle, authority, c.Clock.Now()); !bytes.Equal(*bundle, next) {
			*bundle, changed = next, true
		}
	}
	if !changed {
		return nil
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := c.Client.Patch(ctx, config, patch); err != nil {
		return fmt.Errorf("publishing the authority in the webhook configuration %s: %w", c.WebhookConfiguration, err)
	}
	return nil
}

// addAuthority returns the bundle unchanged if it contains the authority. Otherwise it returns the authority followed
// by the newest others that have not expired. Invalid certificates are dropped.
func addAuthority(bundle []byte, authority *x509.Certificate, now time.Time) []byte {
	known, _ := certutil.ParseCertsPEM(bundle) // an error means that the bundle is empty or invalid
	if slices.ContainsFunc(known, authority.Equal) {
		return bundle
	}
	known = slices.DeleteFunc(known, func(cert *x509.Certificate) bool { return !now.Before(cert.NotAfter) })
	slices.SortStableFunc(known, func(a, b *x509.Certificate) int { return b.NotBefore.Compare(a.NotBefore) })
	var out bytes.Buffer
	for i, cert := range append([]*x509.Certificate{authority}, known...) {
		if i == authoritiesKept {
			break
		}
		// Writing to a bytes.Buffer never fails.
		_ = pem.Encode(&out, &pem.Block{Type: certutil.CertificateBlockType, Bytes: cert.Raw})
	}
	return out.Bytes()
}

// keyPair is a certificate to serve with and the authority that signed it.
type keyPair struct {
	certificate tls.Certificate // Leaf is set
	authority   *x509.Certificate
}

// newKeyPair returns a new pair, and the data of the Secret that stores it.
func newKeyPair(hosts []string, validity time.Duration) (*keyPair, map[string][]byte, error) {
	options := certutil.SelfSignedCertKeyOptions{Host: hosts[0], MaxAge: validity}
	for _, host := range hosts[1:] {
		if ip := net.ParseIP(host); ip != nil {
			options.AlternateIPs = append(options.AlternateIPs, ip)
		} else {
			options.AlternateDNS = append(options.AlternateDNS, host)
		}
	}
	cert, key, err := certutil.GenerateSelfSignedCertKeyWithOptions(options)
	if err != nil {
		return nil, nil, err
	}
	data := map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key}
	pair, err := parseKeyPair(data)
	if err != nil {
		return nil, nil, err
	}
	data[caKey] = pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: pair.authority.Raw})
	return pair, data, nil
}

// parseKeyPair parses the data that newKeyPair returned.
func parseKeyPair(data map[string][]byte) (*keyPair, error) {
	cert, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("the old one cannot be read: %w", err)
	}
	if len(cert.Certificate) != 2 {
		return nil, fmt.Errorf("the old one does not come with its authority")
	}
	authority, err := x509.ParseCertificate(cert.Certificate[1])
	if err != nil {
		return nil, fmt.Errorf("the old one's authority cannot be read: %w", err)
	}
	if err := cert.Leaf.CheckSignatureFrom(authority); err != nil {
		return nil, fmt.Errorf("the old one is not signed by its authority: %w", err)
	}
	return &keyPair{certificate: cert, authority: authority}, nil
}

// renewAt returns when the pair must be renewed.
func (p *keyPair) renewAt(before time.Duration) time.Time {
	return p.certificate.Leaf.NotAfter.Add(-before)
}

// missingHost returns the first of hosts that the certificate is not valid for, "" if it is valid for all.
func (p *keyPair) missingHost(hosts []string) string {
	for _, host := range hosts {
		if p.certificate.Leaf.VerifyHostname(host) != nil {
			return host
		}
	}
	return ""
}

// hosts returns the names and addresses that the certificate is valid for.
func (p *keyPair) hosts() []string {
	hosts := slices.Clone(p.certificate.Leaf.DNSNames)
	for _, ip := range p.certificate.Leaf.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// appendMissing returns a followed by the elements of b that are not in a.
func appendMissing(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
