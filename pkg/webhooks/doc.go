// Package webhooks holds Muster's admission webhooks: thin adapters that decode an object, read what else the decision
// needs (its owners; always live, never from a cache), and call package validation or the API's defaults. Package
// certificates keeps the webhook server's certificate.
package webhooks
