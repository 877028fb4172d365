// SPDX-License-Identifier: Apache-2.0

// Package purity checks that pure packages only compute: facts in, decision out. They import the packages that they
// name and computing packages of the standard library, and nothing else; they read no clock, print nothing and start no
// goroutine.
//
//	func TestPure(t *testing.T) {
//		purity.Check(t, "time", purity.Module+"/pkg/naming")
//	}
//
// It checks only the source of the package itself, without its tests and imports: an imported package of this module
// that is pure has such a test itself.
package purity
