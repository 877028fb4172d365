// SPDX-License-Identifier: Apache-2.0

// Package webhooks contains Muster's admission webhooks: thin adapters that decode an object, read the other objects
// that the decision needs (its owners; always from the API server, never from a cache), and call package validation or
// the API's defaults. Package certificates maintains the webhook server's certificate.
package webhooks
