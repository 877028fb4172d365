// Package manifests checks the YAML in manifests/ as text, without an API server: that it can be read, that it hangs
// together, that it gives away no more rights than it should, and that the shipped profile is the built-in one. What the
// rights are enough for is shown by the integration tests, which run under them.
package manifests
