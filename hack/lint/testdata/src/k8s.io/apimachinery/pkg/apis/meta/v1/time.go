// Package v1 stands for a package of another module.
package v1

// Now is not for the packages under test.
func Now() {}
