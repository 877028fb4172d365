// Package certificates keeps the webhook server's certificate where no cert-manager does: made by the program, shared by
// all replicas in a Secret, renewed in time, and its authority published in the ValidatingWebhookConfiguration and the
// MutatingWebhookConfiguration. One mechanism serves in the cluster (clients come by the Service's name) and outside (by an
// IP address in a url), needs rights on three named objects only, and waits for no volume mount.
package certificates
