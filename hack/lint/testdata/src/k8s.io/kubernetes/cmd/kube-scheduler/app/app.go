// Package app stands for the command of kube-scheduler.
package app

// Name is used by the packages under test.
const Name = ""
