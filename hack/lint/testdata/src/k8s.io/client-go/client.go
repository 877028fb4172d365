// Package client stands for a package of another module.
package client

// Name is used by the packages under test.
const Name = ""
