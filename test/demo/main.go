// SPDX-License-Identifier: Apache-2.0

// Command demo shows Muster on a real control plane; `make demo` runs it. Its steps cover gangs that are admitted as a
// whole, gangs that wait and their reasons, nodes that are drained and come back, a service from a single PodCliqueSet,
// a replica that is terminated because it does not recover, updates, a training job that restarts and succeeds, and
// preemption. Each step is explained, the state of the API server is shown after it, and the demo fails if that state
// is not the expected one.
//
//	go run ./test/demo  # needs bin/, see make build controlplane
//
// The output is plain text of at most 96 columns; on a terminal it has colours too, unless NO_COLOR is set.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-project/muster/test/controlplane"
)

func main() {
	log.SetLogger(logr.Discard()) // of the caches that watch
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	t := &teller{out: os.Stdout, began: time.Now()}
	t.painter.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stdout.Fd()))

	switch err := run(ctx, t); {
	case err == nil:
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "\nInterrupted. All processes are stopped.")
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "\nThe demo failed: %v\n", err)
		os.Exit(1)
	}
}

// run starts everything, tells the story, and stops everything.
func run(ctx context.Context, t *teller) (err error) {
	t.line("%s\n\nStarting a Kubernetes control plane of its own on this machine:", t.bold("Muster: gangs start whole or not at all"))
	cp, err := controlplane.Start(ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true, Verbose: t})
	if err != nil {
		return err
	}
	defer cp.Stop()
	defer func() {
		if err != nil && ctx.Err() == nil {
			_ = os.Setenv("CONTROLPLANE_KEEP", "1") // the logs may be needed; it fails for no valid name
		}
	}()
	if err := cp.InstallMuster(ctx); err != nil {
		return err
	}
	controller, err := cp.StartMusterController(ctx, controlplane.ControllerOptions{})
	if err != nil {
		return err
	}
	scheduler, err := cp.StartMusterScheduler(ctx, controlplane.SchedulerOptions{})
	if err != nil {
		return err
	}
	st := &stage{cp: cp, muster: []*controlplane.Process{scheduler, controller}}
	fmt.Fprintf(t, "creating %d nodes of %d GPUs, two to a rack\n", nodesAtFirst, gpusPerNode)
	if err := st.join(ctx, 0, nodesAtFirst); err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	o, err := newObserver(watching, cp)
	if err != nil {
		return err
	}
	started := time.Since(t.began)
	steps := story()
	for i, step := range steps {
		t.headline(i+1, step)
		if err := st.play(ctx, o, step, t); err != nil {
			return fmt.Errorf("step %d, %q: %w", i+1, step.title, err)
		}
	}
	stopWatching()
	cp.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.partial.check(); err != nil {
		return err
	}
	t.line("\n%s", t.bold("Done."))
	t.line("Longest time for which a gang was visible as partly bound before its minimum was bound: %d ms.", o.partial.longest.Milliseconds())
	t.line("No pod above a minimum was bound before the minimum.")
	t.line("All checks of the %d steps passed, in %.0f s, %.0f s of which to start. All processes are stopped.",
		len(steps), time.Since(t.began).Seconds(), started.Seconds())
	return nil
}

// stage is where steps act.
type stage struct {
	cp     *controlplane.ControlPlane
	muster []*controlplane.Process
}

// play does a step and shows its outcome, or the state of the cluster if it is not the expected one.
func (st *stage) play(ctx context.Context, o *observer, of step, t *teller) error {
	said := ""
	s, err := o.play(ctx, of, func(ctx context.Context) (err error) {
		said, err = st.do(ctx, of.do)
		return err
	}, t.tell)
	for _, p := range st.muster {
		if !p.Running() {
			err = errors.Join(err, fmt.Errorf("%s exited unexpectedly", p.Name))
		}
	}
	if err == nil {
		t.outcome(s, of, said)
	} else if ctx.Err() == nil {
		t.line("\nThe step did not have the expected result. The state of the cluster:\n\n%s", picture(s, t.painter))
		status, unknown := st.run(ctx, "kubectl get pg -o yaml")
		t.line("%s", errors.Join(unknown, errors.New(status)))
		for _, p := range st.muster {
			t.line("The end of %s:\n%s", p.Log(), p.LogTail(20))
		}
	}
	return err
}

// do runs the lines of a script, each for itself: a command of a shell that has the functions of the story, or "join
// 5", which creates node-0005. It returns what the commands said that begin with "$ ", with these.
func (st *stage) do(ctx context.Context, script string) (said string, err error) {
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if number, joins := strings.CutPrefix(line, "join "); joins {
			first, err := strconv.Atoi(number)
			if err := errors.Join(err, st.join(ctx, first, 1)); err != nil {
				return said, err
			}
			continue
		}
		command, isShown := strings.CutPrefix(line, "$ ")
		output, err := st.run(ctx, command)
		if err != nil {
			return said, err
		}
		if isShown {
			said += "    " + line + "\n"
			for line := range strings.Lines(output) {
				if line = "    " + line; utf8.RuneCountInString(line) > width {
					line = wrap(line, "    ", "      ")
				}
				said += line
			}
		}
	}
	return said, nil
}

// run runs a command of a shell as the administrator, and returns its standard output.
func (st *stage) run(ctx context.Context, line string) (string, error) {
	bin, err := filepath.Abs("bin")
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "sh", "-euc", shell+line)
	command.Env = append(os.Environ(), "KUBECONFIG="+st.cp.AdminKubeconfig(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", line, err, exit.Stderr)
	}
	return string(output), err
}

// join creates nodes with numbers from first on.
func (st *stage) join(ctx context.Context, first, count int) error {
	_, err := st.cp.CreateNodes(ctx, controlplane.NodeOptions{First: first, Count: count, GPUs: gpusPerNode, NodesPerRack: 2})
	return err
}
