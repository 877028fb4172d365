// Package purity checks that the packages that only compute go on to do just that: facts in, decision out. They know the
// packages that they name, those of the standard library that compute, and nothing else; they read no clock, print
// nothing and start no goroutine.
//
//	func TestPure(t *testing.T) {
//		purity.Check(t, "time", purity.Module+"/pkg/naming")
//	}
//
// It looks at the source alone, without its tests and without what it imports: a package of ours that may be imported has
// such a test itself.
package purity
