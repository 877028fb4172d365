// Package webhooks holds Muster's admission webhooks: thin adapters that decode
// an object and ask package validation.
//
// It also keeps the webhook server's certificate (Certificates) where no
// cert-manager does: made by the program, shared by all replicas in a Secret,
// renewed in time, and its authority published in the
// ValidatingWebhookConfiguration. One mechanism serves in the cluster (clients
// come by the Service's name) and outside (by an IP address in a url), needs
// rights on two named objects only, and waits for no volume mount.
package webhooks
