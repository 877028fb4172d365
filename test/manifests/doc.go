// SPDX-License-Identifier: Apache-2.0

// Package manifests checks the YAML in manifests/ as text, without an API server: that it can be parsed and is
// consistent, that it grants no more rights than intended, and that the shipped profile is the built-in one. The
// integration tests run under these rights and show that they are sufficient.
package manifests
