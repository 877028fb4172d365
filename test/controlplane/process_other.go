//go:build !linux

package controlplane

import "syscall"

// sysProcAttr puts a program into a process group of its own. Without Linux nothing ends it when its parent is killed.
func sysProcAttr(background bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !background, Setsid: background}
}
