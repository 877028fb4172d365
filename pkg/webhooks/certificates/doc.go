// SPDX-License-Identifier: Apache-2.0

// Package certificates creates and renews the webhook server's certificate in clusters without cert-manager. The
// certificate is created by the program, shared by all replicas in a Secret, renewed in time, and its authority is
// published in the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration. The same mechanism works
// inside the cluster (clients use the Service's name) and outside (clients use an IP address in a url), needs
// permissions for three named objects only, and does not wait for a volume mount.
package certificates
