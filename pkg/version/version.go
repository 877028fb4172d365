// SPDX-License-Identifier: Apache-2.0

// Package version is what the binaries say about themselves.
package version

import "runtime"

// Set by the linker: -ldflags "-X github.com/muster-project/muster/pkg/version.Version=v0.1.0".
var (
	// Version is the released version or `git describe` of the source.
	Version = "unknown"
	// Commit is the commit of the source.
	Commit = "unknown"
)

// String returns version, commit and Go version in one line.
func String() string {
	return Version + " (commit " + Commit + ", " + runtime.Version() + ")"
}
