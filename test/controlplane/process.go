// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// ProcessOptions describes a program.
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
	ProcessOptions
	log string

	mu   sync.Mutex
	cmd  *exec.Cmd     // guarded by mu; nil before the first Start
	done chan struct{} // guarded by mu; closed once cmd has ended, and before the first Start
	err  error         // guarded by mu; how cmd ended
}

// NewProcess returns a process that Stop will kill. It is not started yet.
func (cp *ControlPlane) NewProcess(options ProcessOptions) *Process {
	p := &Process{ProcessOptions: options, log: cp.path(options.Name + ".log"), done: make(chan struct{})}
	close(p.done)
	cp.mu.Lock()
	defer cp.mu.Unlock()
	cp.processes = append(cp.processes, p)
	return p
}

// Start runs the program, in a process group of its own. The kernel kills it when this process dies, for whatever
// reason. It is an error if the program runs already.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
	default:
		return fmt.Errorf("%s runs already", p.Name)
	}
	if _, err := os.Stat(p.Path); err != nil {
		return fmt.Errorf("%s is missing: run `make controlplane build`; the first time it builds for 16 to 25 minutes", p.Path)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own

	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	forker() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done, p.err = cmd, done, nil
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.err = err
		close(done)
	}()
	return nil
}

// forker returns the queue of one operating system thread that does not end. Linux delivers "the parent died" when the
// thread that forked dies, not the process, and Go may end the thread of any other goroutine.
var forker = sync.OnceValue(func() chan<- func() {
	requests := make(chan func())
	go func() {
		runtime.LockOSThread()
		for request := range requests {
			request()
		}
	}()
	return requests
})

// Restart starts the process, killing it first if it runs, and waits until it is ready.
func (cp *ControlPlane) Restart(ctx context.Context, p *Process) error {
	p.Kill()
	cp.say("starting %s", p.Name)
	if err := p.Start(); err != nil {
		return err
	}
	return p.WaitReady(ctx)
}

// WaitReady returns when a GET of ReadyURL answers 200. If the process exits before that, or ctx ends, the error has
// the end of the log; it waits at most two minutes.
func (p *Process) WaitReady(ctx context.Context) error {
	answer := errors.New("not asked yet")
	// A server that does not answer yet cannot be watched, so this polls.
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		if !p.Running() {
			return false, p.EndedEarly()
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.ReadyURL, nil)
		if err != nil {
			return false, err
		}
		response, err := probes.Do(request)
		if err == nil {
			response.Body.Close()
			err = errors.New(response.Status)
		}
		if ctx.Err() == nil {
			answer = err
		}
		return response != nil && response.StatusCode == http.StatusOK, nil
	})
	if err != nil && p.Running() {
		return fmt.Errorf("waiting for %s: %w (%s says: %w); the end of its log:\n%s", p.Name, err, p.ReadyURL, answer, p.LogTail(15))
	}
	return err
}

// waitListening returns when a server of the process takes connections at the address; see WaitReady.
func (p *Process) waitListening(ctx context.Context, address string) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		if !p.Running() {
			return false, p.EndedEarly()
		}
		connection, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return true, connection.Close()
	})
	if err != nil {
		return fmt.Errorf("waiting for the webhooks of %s: %w; the end of its log:\n%s", p.Name, err, p.LogTail(15))
	}
	return nil
}

// probes sends readiness checks, without a certificate, like those of a kubelet: a server of Kubernetes logs an error
// about a certificate that it receives before it has read which authority to trust. It does not verify certificates:
// all servers except the API server have self-signed ones, and the check is only whether a server answers on loopback.
var probes = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
	DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // see above
}}

// Done returns a channel that is closed when the present run ends. It is closed if the process has never run.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
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

// Kill ends the process group with SIGKILL and returns when the program and its children are gone; it does not wait
// long for init to reap these.
func (p *Process) Kill() {
	pid := p.PID()
	if pid != 0 && p.Running() {
		syscall.Kill(-pid, syscall.SIGKILL)
	}
	<-p.Done()
	for deadline := time.Now().Add(2 * time.Second); pid != 0 && groupAlive(pid) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // the kernel does not notify about the end of a process that is not a child
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
	return fmt.Errorf("%s ended (%w); the end of its log:\n%s", p.Name, err, p.LogTail(15))
}

// groupAlive reports whether the process group has any process, including zombies.
func groupAlive(pid int) bool { return syscall.Kill(-pid, 0) == nil }
