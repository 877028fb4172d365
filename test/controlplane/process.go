// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ProcessOptions describes a program to run in addition to the control plane.
type ProcessOptions struct {
	// Name is unique within the control plane: the log is Dir/NAME.log.
	Name string
	Path string
	Args []string
	// Env is added to this process's environment.
	Env []string
	// ReadyURL answers a GET with 200 once the program is ready; see Restart. May be empty.
	ReadyURL string
}

// Process is one program: a server of the control plane, or muster-scheduler. It can be killed and started again with
// the same arguments; its log is appended to the same file. The methods may be called from several goroutines.
type Process struct {
	options    ProcessOptions
	log        string
	background bool
	record     string // file with pid and start time of a background process

	mu   sync.Mutex
	cmd  *exec.Cmd     // guarded by mu; nil before the first Start
	done chan struct{} // guarded by mu; closed once cmd has ended
	err  error         // how cmd ended; read it only after done is closed
}

// NewProcess returns a process that Stop will kill. It is not started yet.
func (cp *ControlPlane) NewProcess(options ProcessOptions) *Process {
	p := &Process{
		options:    options,
		log:        cp.path(options.Name + ".log"),
		background: cp.options.Background,
	}
	if p.background {
		p.record = filepath.Join(cp.path(recordDir), options.Name)
	}
	cp.mu.Lock()
	cp.processes = append(cp.processes, p)
	cp.mu.Unlock()
	return p
}

// StartProcess combines NewProcess and Start.
func (cp *ControlPlane) StartProcess(options ProcessOptions) (*Process, error) {
	p := cp.NewProcess(options)
	return p, p.Start()
}

// Start runs the program, in a process group of its own. Unless it is a background process, the kernel kills it when
// this process dies. It is an error if the program runs already.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		select {
		case <-p.done:
		default:
			return fmt.Errorf("%s runs already", p.options.Name)
		}
	}

	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own

	cmd := exec.Command(p.options.Path, p.options.Args...)
	cmd.Env = append(os.Environ(), p.options.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = sysProcAttr(p.background)
	if err := startProcess(cmd); err != nil {
		return fmt.Errorf("starting %s: %w", p.options.Name, err)
	}
	if p.background {
		if err := writeRecord(p.record, cmd.Process.Pid); err != nil {
			killGroup(cmd.Process.Pid)
			return err
		}
	}

	done := make(chan struct{})
	p.cmd, p.done, p.err = cmd, done, nil
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(done)
	}()
	return nil
}

// Done returns a channel that is closed when the present run ends. It is closed if the process has never run.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	return p.done
}

// Running reports whether the program runs.
func (p *Process) Running() bool {
	select {
	case <-p.Done():
		return false
	default:
		return true
	}
}

// Err returns how the last run ended: nil for exit status 0, or while it runs.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// PID returns the process id of the last run, 0 if there was none.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Kill ends the process group with SIGKILL and returns when the program and its children are gone; it does not wait long
// for init to reap these.
func (p *Process) Kill() {
	pid := p.PID()
	if pid != 0 && p.Running() {
		killGroup(pid)
	}
	<-p.Done()
	for deadline := time.Now().Add(2 * time.Second); pid != 0 && groupAlive(pid) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // the kernel does not notify about the end of a process that is not a child
	}
	if p.record != "" {
		os.Remove(p.record)
	}
}

// Terminate sends SIGTERM to the program, and kills it if it has not exited within the grace period.
func (p *Process) Terminate(grace time.Duration) {
	if pid := p.PID(); pid != 0 && p.Running() {
		syscall.Kill(pid, syscall.SIGTERM)
		select {
		case <-p.Done():
		case <-time.After(grace):
		}
	}
	p.Kill()
}

// ReadyURL returns the address for checking whether the program is ready, "" if it has none.
func (p *Process) ReadyURL() string { return p.options.ReadyURL }

// Name returns the name of the process.
func (p *Process) Name() string { return p.options.Name }

// Log returns the path of the file with the program's output, of all runs.
func (p *Process) Log() string { return p.log }

// LogTail returns the last lines of the log.
func (p *Process) LogTail(lines int) string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// EndedEarly returns the error for a program that exited while a caller waited for it.
func (p *Process) EndedEarly() error {
	err := p.Err()
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended (%w); the end of its log:\n%s", p.options.Name, err, p.LogTail(15))
}

// startProcess starts the command from one operating system thread that does not end. Linux delivers "the parent died"
// when the thread that forked dies, not the process, and Go may end the thread of any other goroutine.
func startProcess(cmd *exec.Cmd) error {
	forker.once.Do(func() {
		forker.requests = make(chan func())
		go func() {
			runtime.LockOSThread()
			for request := range forker.requests {
				request()
			}
		}()
	})
	result := make(chan error)
	forker.requests <- func() { result <- cmd.Start() }
	return <-result
}

var forker struct {
	once     sync.Once
	requests chan func()
}

// sysProcAttr puts a program into a process group of its own. A background program also gets a session of its own, so
// that closing the terminal does not end it; the kernel kills any other when its parent dies, for whatever reason.
func sysProcAttr(background bool) *syscall.SysProcAttr {
	if background {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// groupAlive reports whether the process group has any process, including zombies.
func groupAlive(pid int) bool { return syscall.Kill(-pid, 0) == nil }

// killGroup kills the process and everything it started. A group that is already gone is not an error.
func killGroup(pid int) {
	if syscall.Kill(-pid, syscall.SIGKILL) != nil {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}
