// SPDX-License-Identifier: Apache-2.0

// Command cluster keeps a control plane with Muster running in the background, for manual use:
//
//	go run ./test/controlplane/cluster up -nodes 32 -gpus 8
//	go run ./test/controlplane/cluster down
//
// `make cluster-up` and `make cluster-down` build what they need first.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/muster-project/muster/test/controlplane"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	switch err := run(ctx, os.Args[1:]); {
	case err == nil:
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "Interrupted. Nothing is left running.")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cluster", flag.ExitOnError)
	dir := flags.String("dir", ".muster", "directory of the cluster: kubeconfig, logs, data")
	nodes := flags.Int("nodes", 32, "number of nodes")
	gpus := flags.Int("gpus", 8, "GPUs per node")
	if len(args) == 0 || !slices.Contains([]string{"up", "down", "hold"}, args[0]) {
		flags.Usage()
		return errors.New("say up or down, then flags")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if args[0] == "hold" {
		return hold(ctx, *dir, controlplane.NodeOptions{Count: *nodes, GPUs: *gpus})
	}
	if *nodes < 1 || *gpus < 0 {
		return fmt.Errorf("%d nodes with %d GPUs each: want at least one node, and no fewer than 0 GPUs", *nodes, *gpus)
	}
	parent := filepath.Dir(filepath.Clean(*dir))
	unlock, err := controlplane.LockDir(parent) // both check the state before they act
	if err != nil {
		return fmt.Errorf("another cluster-up or cluster-down is at work, wait for it to end: %w", err)
	}
	defer unlock()
	if args[0] == "up" {
		return up(ctx, *dir, args[1:])
	}
	return down(ctx, *dir)
}

// running reports whether a cluster runs in dir: its control plane has locked the directory.
func running(dir string) bool {
	unlock, err := controlplane.LockDir(dir)
	if err == nil {
		unlock()
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// ready is what hold says when the cluster is ready.
const ready = "The cluster is ready. Its nodes are simulated, everything else is Kubernetes, muster-scheduler and muster-controller."

// up starts a process that holds a cluster in dir, and returns when the cluster is ready. If it is interrupted it
// removes the directory; if it fails the logs are kept.
func up(ctx context.Context, dir string, flags []string) error {
	if running(dir) {
		return fmt.Errorf("a cluster is running already in %s; `make cluster-down` ends it", dir)
	}
	if err := errors.Join(remove(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	holder := exec.Command(program, append([]string{"hold"}, flags...)...)
	holder.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // closing the terminal does not end it
	output, err := holder.StdoutPipe()
	if err != nil {
		return err
	}
	holder.Stderr = holder.Stdout
	if err := holder.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = holder.Process.Signal(syscall.SIGTERM) }) // fails if it has ended
	defer stop()
	isReady := false
	for lines := bufio.NewScanner(output); lines.Scan(); {
		fmt.Println(lines.Text())
		isReady = isReady || lines.Text() == ready
	}
	if isReady && ctx.Err() == nil {
		return nil
	}
	err = holder.Wait()
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), os.RemoveAll(dir))
	}
	return fmt.Errorf("the cluster did not start: %w; logs are in %s", err, dir)
}

// hold runs a cluster in dir until ctx ends. Its output ends when the cluster is ready.
func hold(ctx context.Context, dir string, nodes controlplane.NodeOptions) (err error) {
	if err := os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		return err
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{Dir: dir, WithControllerManager: true, WithKubelets: true, Verbose: os.Stdout})
	if err != nil {
		return err
	}
	defer cp.Stop()
	if err := cp.InstallMuster(ctx); err != nil {
		return err
	}
	if _, err := cp.StartMusterController(ctx, controlplane.ControllerOptions{Args: []string{"--leader-elect=true"}}); err != nil {
		return err
	}
	if _, err := cp.StartMusterScheduler(ctx, controlplane.SchedulerOptions{LeaderElect: true}); err != nil {
		return err
	}
	fmt.Printf("creating %d nodes with %d GPUs each\n", nodes.Count, nodes.GPUs)
	if _, err := cp.CreateNodes(ctx, nodes); err != nil {
		return err
	}
	fmt.Printf(`
%s

    export KUBECONFIG="%s"
    bin/kubectl apply --server-side -f manifests/samples/podcliqueset.yaml
    bin/kubectl get podcliquesets,podgroups.scheduling.run.ai,pods

"Your first gang" in docs/tutorial.md goes on from here. Logs are in %s. `+"`make cluster-down`"+` ends it.
`, ready, cp.AdminKubeconfig(), dir)
	log, err := os.Create(filepath.Join(dir, "cluster.log"))
	if err != nil {
		return err
	}
	if err := errors.Join(syscall.Dup3(int(log.Fd()), 1, 0), syscall.Dup3(int(log.Fd()), 2, 0)); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// down ends the cluster in dir, if one runs, and removes dir.
func down(ctx context.Context, dir string) error {
	if !running(dir) {
		fmt.Println("no cluster is running")
		return remove(dir)
	}
	content, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(string(content))
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	ended := func(context.Context) (bool, error) { return !running(dir), nil }
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true, ended); err != nil {
		return fmt.Errorf("process %d still runs: %w", pid, err)
	}
	fmt.Println("the cluster is stopped")
	return remove(dir)
}

// remove removes the directory of a cluster that has ended. It is an error if the directory does not look like one; a
// missing directory is not an error.
func remove(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "pki", "ca.crt")); err != nil {
		return fmt.Errorf("%s is not the directory of a cluster; remove it yourself", dir)
	}
	return os.RemoveAll(dir)
}
