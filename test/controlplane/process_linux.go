// SPDX-License-Identifier: Apache-2.0

package controlplane

import "syscall"

// sysProcAttr puts a program into a process group of its own. A background program also gets a session of its own, so
// that closing the terminal does not end it; the kernel kills any other when its parent dies, for whatever reason.
func sysProcAttr(background bool) *syscall.SysProcAttr {
	if background {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
