// SPDX-License-Identifier: Apache-2.0

// Command demo shows Muster on a real control plane; `make demo` runs it. Its steps cover gangs that are admitted as a whole,
// gangs that wait and their reasons, nodes that are drained and come back, a service from a single PodCliqueSet, a replica
// that is terminated because it does not recover, updates, a training job that restarts and succeeds, and preemption. Each step
// is explained, the state of the API server is shown after it, and the demo fails if that state is not the expected one.
//
//	go run ./test/demo            # needs bin/, see make build controlplane
//	go run ./test/demo -pause 3s  # time to read between the steps
//
// The output is plain text of at most 96 columns; on a terminal it has colours too, unless NO_COLOR is set.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/test/controlplane"
)

func main() {
	pause := flag.Duration("pause", 0, "time to read after each step")
	flag.Parse()

	log.SetLogger(logr.Discard()) // of the caches that watch
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	t := &teller{out: os.Stdout, began: time.Now(), pause: *pause, said: map[string]string{}}
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

// maxPartial is far more than posting the bindings of a gang takes, even on a slow and busy machine.
const maxPartial = 5 * time.Second

// run starts everything, tells the story, and stops everything.
func run(ctx context.Context, t *teller) (err error) {
	t.line("%s", t.bold("Muster: gangs start whole or not at all"))
	t.line("")
	t.line("Starting a Kubernetes control plane of its own on this machine:")
	cp, err := controlplane.Start(ctx, controlplane.Options{WithControllerManager: true, WithKwok: true, Verbose: t.indented()})
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
	fmt.Fprintf(t.indented(), "creating %d nodes of %d GPUs, two to a rack\n", nodesAtFirst, gpusPerNode)
	if _, err := cp.CreateNodes(ctx, controlplane.NodeOptions{Count: nodesAtFirst, GPUs: gpusPerNode, NodesPerRack: 2}); err != nil {
		return err
	}

	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	o, err := newObserver(watching, cp)
	if err != nil {
		return err
	}
	st, err := newStage(cp)
	if err != nil {
		return err
	}
	started := time.Since(t.began)
	muster := []*controlplane.Process{scheduler, controller}

	steps := story()
	for i, step := range steps {
		t.headline(i+1, step)
		act := func(ctx context.Context) error { return step.do(ctx, st) }
		s, err := o.play(ctx, step, act, muster, t.tell)
		if err != nil {
			if ctx.Err() == nil {
				t.evidence(s, muster)
			}
			return fmt.Errorf("step %d, %q: %w", i+1, step.title, err)
		}
		table := ""
		if step.show != nil {
			if table, err = st.kubectl(ctx, step.show...); err != nil {
				return err
			}
		}
		t.text(st.said)
		st.said = ""
		t.outcome(s, step, table)
		if t.pause > 0 {
			select {
			case <-time.After(t.pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}

	if longest := o.longestPartial(); longest > maxPartial {
		return fmt.Errorf("a gang was partly bound for %s before its minimum was bound; posting its bindings takes less than %s", longest, maxPartial)
	}

	if early := o.earlySurplus(); early != "" {
		return fmt.Errorf("a pod above the minimum of %s was bound before the minimum was", early)
	}

	stopWatching()
	cp.Stop()
	t.line("")
	t.line("%s", t.bold("Done."))
	t.line("Longest time for which a gang was visible as partly bound before its minimum was bound: %d ms.", o.longestPartial().Milliseconds())
	t.line("No pod above a minimum was bound before the minimum.")
	t.line("All checks of the %d steps passed, in %.0f s, %.0f s of which to start. All processes are stopped.",
		len(steps), time.Since(t.began).Seconds(), started.Seconds())
	return nil
}

// teller writes the output of the demo.
type teller struct {
	painter
	out   io.Writer
	began time.Time
	pause time.Duration

	stepBegan time.Time
	told      bool              // a line about a change was written in this step
	said      map[string]string // per gang, PodCliqueSet and unit, the last line about it
}

func (t *teller) line(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// text writes lines as they are.
func (t *teller) text(lines string) { fmt.Fprintf(t.out, "%s", lines) }

func (t *teller) headline(number int, s step) {
	t.stepBegan, t.told = time.Now(), false
	t.line("")
	t.line("%s", t.bold(fmt.Sprintf("%d. %s", number, s.title)))
	t.text(wrap(s.why, "   ", "   "))
	t.line("")
}

// tell writes one line for each gang, PodCliqueSet and unit whose state has changed.
func (t *teller) tell(s scene) {
	for _, name := range gangs {
		g := s.group(name)
		if g == nil {
			delete(t.said, name)
			continue
		}
		if g.Status.Phase == "" {
			continue
		}
		now := fmt.Sprintf("%-17s  %-9s  %-6s %s", name, g.Status.Phase, g.Status.Scheduled, g.Status.Reason)
		if more := surplus(g); more > 0 {
			now += fmt.Sprintf("and %d %s above the minimum", more, plural(more, "pod", "pods"))
		}
		t.say(name, now)
	}
	for _, set := range s.sets {
		const kind = "PodCliqueSet/"
		if set.Status.Phase != "" {
			t.say(kind+set.Name, fmt.Sprintf("%-17s  %-9s  %-6s available", set.Name, set.Status.Phase,
				fmt.Sprintf("%d/%d", set.Status.AvailableReplicas, set.Spec.Replicas))+updateOf(set))
		}
	}
	units := s.unitsOf()
	for _, name := range slices.Sorted(maps.Keys(units)) {
		t.say(unitPrefix+name, fmt.Sprintf("%-17s  %s", name, units[name]))
	}
	maps.DeleteFunc(t.said, func(of, _ string) bool {
		name, isUnit := strings.CutPrefix(of, unitPrefix)
		return isUnit && units[name] == ""
	})
}

const unitPrefix = "Unit/"

// say writes now, unless it is what was last written about of.
func (t *teller) say(of, now string) {
	if t.said[of] == now {
		return
	}
	t.said[of] = now
	t.line("   %5.2f s  %s", time.Since(t.stepBegan).Seconds(), strings.TrimRight(now, " "))
	t.told = true
}

// outcome shows the cluster after a step, and the claims that held. table is the output of kubectl get for of.show, "" if
// the step shows none.
func (t *teller) outcome(s scene, of step, table string) {
	if t.told {
		t.line("")
	}
	t.text(picture(s, t.painter))
	t.line("")
	if table != "" {
		t.line("    $ kubectl %s", strings.Join(of.show, " "))
		for line := range strings.Lines(pickColumns(table, shownColumns)) {
			t.text("    " + line)
		}
		t.line("")
	}
	for _, c := range of.throughout {
		t.line("    %s at every moment: %s", t.state(true, "ok"), c.text)
	}
	for _, c := range slices.Concat(of.first, of.claims) {
		t.line("    %s %s", t.state(true, "ok"), c.text)
	}
}

// evidence shows the state of the cluster after a step that failed.
func (t *teller) evidence(s scene, muster []*controlplane.Process) {
	t.line("")
	t.line("The step did not have the expected result. The state of the cluster:")
	t.line("")
	t.text(picture(s, t.painter))
	for _, g := range s.groups {
		status, err := yaml.Marshal(g.Status)
		if err != nil {
			status = []byte(err.Error())
		}
		t.line("status of PodGroup %s:\n%s", g.Name, status)
	}
	for _, p := range muster {
		t.line("The end of %s:\n%s", p.Log(), p.LogTail(20))
	}
}

// indented returns a writer for the progress of the start: it indents each line and adds the time.
func (t *teller) indented() io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		for line := range strings.Lines(string(p)) {
			fmt.Fprintf(t.out, "   %5.2f s  %s", time.Since(t.began).Seconds(), line)
		}
		return len(p), nil
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
