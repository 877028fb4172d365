// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestCertificatesAreMadeTrustedAndServed(t *testing.T) {
	t.Parallel()
	c := newCertificates(t, webhookConfiguration("a", "b"))
	if err := c.Ready(nil); err == nil {
		t.Error("ready before there is a certificate")
	}
	result := step(t, c)
	if err := c.Ready(nil); err != nil {
		t.Errorf("not ready: %v", err)
	}
	if want := c.Validity - time.Hour - c.RenewBefore; result.RequeueAfter < want-time.Minute || result.RequeueAfter > want {
		t.Errorf("looks again in %s, want the time of renewal, in %s", result.RequeueAfter, want)
	}
	for _, webhook := range configuration(t, c).Webhooks {
		for _, host := range c.Hosts {
			handshake(t, c, webhook.ClientConfig.CABundle, host)
		}
	}
	secret := secretOf(t, c)
	if secret.Type != corev1.SecretTypeTLS {
		t.Errorf("type of the secret = %s", secret.Type)
	}
	handshake(t, c, secret.Data["ca.crt"], "127.0.0.1")

	t.Run("and left alone while they are good", func(t *testing.T) {
		bundle := configuration(t, c).Webhooks[0].ClientConfig.CABundle
		step(t, c)
		if diff := cmp.Diff(secret, secretOf(t, c)); diff != "" {
			t.Errorf("secret changed:\n%s", diff)
		}
		if !bytes.Equal(bundle, configuration(t, c).Webhooks[0].ClientConfig.CABundle) {
			t.Error("caBundle changed")
		}
	})
	t.Run("and another replica serves the same one", func(t *testing.T) {
		other := &Reconciler{Client: c.Client, Secret: c.Secret, WebhookConfiguration: c.WebhookConfiguration,
			Hosts: c.Hosts, Validity: c.Validity, RenewBefore: c.RenewBefore, Clock: clock.RealClock{}}
		step(t, other)
		if !bytes.Equal(served(t, c).Certificate[0], served(t, other).Certificate[0]) {
			t.Error("two replicas serve different certificates")
		}
	})
	t.Run("and published again in a configuration that was applied anew", func(t *testing.T) {
		config := configuration(t, c)
		for i := range config.Webhooks {
			config.Webhooks[i].ClientConfig.CABundle = nil
		}
		if err := c.Client.Update(context.Background(), config); err != nil {
			t.Fatal(err)
		}
		step(t, c)
		handshake(t, c, configuration(t, c).Webhooks[1].ClientConfig.CABundle, "127.0.0.1")
	})
}

func TestCertificatesWithoutWebhookConfiguration(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	step(t, c)
	if err := c.Ready(nil); err != nil {
		t.Errorf("not ready: %v", err)
	}
	if err := c.Client.Create(context.Background(), webhookConfiguration("late")); err != nil {
		t.Fatal(err)
	}
	step(t, c)
	handshake(t, c, configuration(t, c).Webhooks[0].ClientConfig.CABundle, "localhost")
}

func TestCertificatesArePublishedInBothConfigurations(t *testing.T) {
	t.Parallel()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	mutating.Name = "hooks"
	mutating.Webhooks = []admissionregistrationv1.MutatingWebhook{{Name: "m"}, {Name: "n"}}
	c := newCertificates(t, webhookConfiguration("a"), mutating)
	step(t, c)
	if err := c.Client.Get(context.Background(), types.NamespacedName{Name: c.WebhookConfiguration}, mutating); err != nil {
		t.Fatal(err)
	}
	want := configuration(t, c).Webhooks[0].ClientConfig.CABundle
	for _, webhook := range mutating.Webhooks {
		if !bytes.Equal(want, webhook.ClientConfig.CABundle) {
			t.Errorf("webhook %s has another bundle", webhook.Name)
		}
		handshake(t, c, webhook.ClientConfig.CABundle, "localhost")
	}
}

func TestCertificatesAreReplaced(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*testing.T, *Reconciler)
		// wantOldTrusted: replicas that still serve the old certificate must be trusted.
		wantOldTrusted bool
	}{
		"when they are about to expire": {
			change: func(_ *testing.T, c *Reconciler) {
				later := time.Now().Add(c.Validity - time.Hour - c.RenewBefore + time.Minute)
				c.Clock = clocktesting.NewFakePassiveClock(later)
			},
			wantOldTrusted: true,
		},
		"when they have expired": {
			change: func(_ *testing.T, c *Reconciler) {
				later := time.Now().Add(c.Validity)
				c.Clock = clocktesting.NewFakePassiveClock(later)
			},
		},
		"when a host is added": {
			change: func(_ *testing.T, c *Reconciler) {
				c.Hosts = []string{"other.example", "10.1.2.3"}
			},
			wantOldTrusted: true,
		},
		"when the secret was deleted": {
			change: func(t *testing.T, c *Reconciler) {
				if err := c.Client.Delete(context.Background(), secretOf(t, c)); err != nil {
					t.Fatal(err)
				}
			},
			wantOldTrusted: true,
		},
		"when the secret was damaged": {
			change: func(t *testing.T, c *Reconciler) {
				secret := secretOf(t, c)
				secret.Data[corev1.TLSPrivateKeyKey] = []byte("nonsense")
				if err := c.Client.Update(context.Background(), secret); err != nil {
					t.Fatal(err)
				}
			},
			wantOldTrusted: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCertificates(t, webhookConfiguration("a"))
			step(t, c)
			old, oldHosts := served(t, c), c.Hosts
			tc.change(t, c)
			step(t, c)
			if bytes.Equal(old.Certificate[0], served(t, c).Certificate[0]) {
				t.Fatal("the old certificate is still served")
			}
			bundle := configuration(t, c).Webhooks[0].ClientConfig.CABundle
			for _, host := range append(oldHosts, c.Hosts...) {
				handshake(t, c, bundle, host)
			}
			authorities, err := certutil.ParseCertsPEM(bundle)
			if err != nil {
				t.Fatal(err)
			}
			trusted := false
			for _, authority := range authorities {
				trusted = trusted || old.Leaf.CheckSignatureFrom(authority) == nil
			}
			if trusted != tc.wantOldTrusted {
				t.Errorf("the old certificate trusted: %t, want %t", trusted, tc.wantOldTrusted)
			}
		})
	}
}

func TestReplicasWithDifferentHostsComeToRest(t *testing.T) {
	t.Parallel()
	a := newCertificates(t, webhookConfiguration("a"))
	b := &Reconciler{Client: a.Client, Secret: a.Secret, WebhookConfiguration: a.WebhookConfiguration,
		Hosts: []string{"b.example"}, Validity: a.Validity, RenewBefore: a.RenewBefore, Clock: clock.RealClock{}}
	step(t, a)
	step(t, b)
	want := secretOf(t, a)
	for range 3 {
		step(t, a)
		step(t, b)
	}
	if diff := cmp.Diff(want, secretOf(t, a)); diff != "" {
		t.Errorf("the replicas replace each other's certificate:\n%s", diff)
	}
}

func TestABundleKeepsFewAuthorities(t *testing.T) {
	t.Parallel()
	c := newCertificates(t, webhookConfiguration("a"))
	for range authoritiesKept + 2 {
		step(t, c)
		if err := c.Client.Delete(context.Background(), secretOf(t, c)); err != nil {
			t.Fatal(err)
		}
	}
	authorities, err := certutil.ParseCertsPEM(configuration(t, c).Webhooks[0].ClientConfig.CABundle)
	if err != nil {
		t.Fatal(err)
	}
	if len(authorities) != authoritiesKept {
		t.Errorf("%d authorities, want %d", len(authorities), authoritiesKept)
	}
	if err := served(t, c).Leaf.CheckSignatureFrom(authorities[0]); err != nil {
		t.Errorf("the newest authority is not the first: %v", err)
	}
}

func newCertificates(t *testing.T, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(admissionregistrationv1.AddToScheme(scheme))
	return &Reconciler{
		Client:               fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
		Secret:               types.NamespacedName{Namespace: "muster-system", Name: "tls"},
		WebhookConfiguration: "hooks",
		Hosts:                []string{"hooks.muster-system.svc", "localhost", "127.0.0.1", "::1"},
		Validity:             100 * time.Hour,
		RenewBefore:          10 * time.Hour,
		Clock:                clock.RealClock{},
	}
}

func webhookConfiguration(webhooks ...string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	config.Name = "hooks"
	for _, name := range webhooks {
		config.Webhooks = append(config.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: name})
	}
	return config
}

func step(t *testing.T, c *Reconciler) reconcile.Result {
	t.Helper()
	result, err := c.Reconcile(context.Background(), reconcile.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func configuration(t *testing.T, c *Reconciler) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.Client.Get(context.Background(), types.NamespacedName{Name: c.WebhookConfiguration}, config); err != nil {
		t.Fatal(err)
	}
	return config
}

func secretOf(t *testing.T, c *Reconciler) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Client.Get(context.Background(), c.Secret, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func served(t *testing.T, c *Reconciler) *tls.Certificate {
	t.Helper()
	cert, err := c.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// handshake calls host like the API server, trusting only the bundle.
func handshake(t *testing.T, c *Reconciler, bundle []byte, host string) {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatalf("no certificate in the bundle %q", bundle)
	}
	serverSide, clientSide := net.Pipe()
	go func() {
		defer serverSide.Close()
		// Errors here are also reported by the client.
		_ = tls.Server(serverSide, &tls.Config{GetCertificate: c.GetCertificate}).Handshake()
	}()
	defer clientSide.Close()
	if err := tls.Client(clientSide, &tls.Config{RootCAs: roots, ServerName: host}).Handshake(); err != nil {
		t.Errorf("calling %s: %v", host, err)
	}
}
