// Package framework stands for the internals of kube-scheduler.
package framework

// Name is used by the packages under test.
const Name = ""
