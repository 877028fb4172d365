// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package controlplane

import "syscall"

// sysProcAttr puts a program into a process group of its own. On systems other than Linux it is not killed with its
// parent.
func sysProcAttr(background bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !background, Setsid: background}
}
