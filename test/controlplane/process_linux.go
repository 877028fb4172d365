package controlplane

import "syscall"

// sysProcAttr puts a program into a process group of its own. A background one also gets a session of its own, so that
// closing the terminal does not end it; any other is killed by the kernel when its parent dies, however that happens.
func sysProcAttr(background bool) *syscall.SysProcAttr {
	if background {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
