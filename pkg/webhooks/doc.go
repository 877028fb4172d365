// Package webhooks holds Muster's admission webhooks: thin adapters that decode
// an object, read what it is judged by beside itself (its owners, whether pods
// are bound; always live, never from a cache), and ask package validation or the
// API's defaults.
//
// It also keeps the webhook server's certificate (Certificates) where no
// cert-manager does: made by the program, shared by all replicas in a Secret,
// renewed in time, and its authority published in the
// ValidatingWebhookConfiguration and the MutatingWebhookConfiguration. One
// mechanism serves in the cluster (clients come by the Service's name) and
// outside (by an IP address in a url), needs rights on three named objects only,
// and waits for no volume mount.
package webhooks
