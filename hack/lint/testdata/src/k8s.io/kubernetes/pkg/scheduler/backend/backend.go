// Package backend stands for a package of another module.
package backend

// Size is used by the packages under test.
const Size = 1
