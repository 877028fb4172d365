// SPDX-License-Identifier: Apache-2.0

// Command cluster keeps a control plane with Muster running in the background, for manual use:
//
//	go run ./test/controlplane/cluster up -nodes 32 -gpus 8
//	go run ./test/controlplane/cluster down
//
// `make cluster-up` and `make cluster-down` build what they need first.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

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
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: cluster up|down [flags]")
		flags.PrintDefaults()
	}
	if len(args) == 0 {
		flags.Usage()
		return fmt.Errorf("say up or down")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "up", "down":
		unlock, err := lock(*dir)
		if err != nil {
			return err
		}
		defer unlock()
	}
	switch args[0] {
	case "up":
		return up(ctx, *dir, controlplane.NodeOptions{Count: *nodes, GPUs: *gpus})
	case "down":
		return down(*dir)
	default:
		flags.Usage()
		return fmt.Errorf("unknown command %q", args[0])
	}
}

// lock excludes other runs of up and down in the parent of this directory until unlock, because both check the state
// before they act. The kernel releases the lock of a process that ends.
func lock(dir string) (unlock func(), err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(parent.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		parent.Close()
		return nil, fmt.Errorf("another cluster-up or cluster-down is at work in %s: wait for it to end", parent.Name())
	}
	return func() { parent.Close() }, nil
}

// up starts a cluster in dir and leaves it running. If it is interrupted it removes the directory; if it fails the logs
// are kept.
func up(ctx context.Context, dir string, nodes controlplane.NodeOptions) (err error) {
	if nodes.Count < 1 || nodes.GPUs < 0 {
		return fmt.Errorf("%d nodes with %d GPUs each: want at least one node, and no fewer than 0 GPUs", nodes.Count, nodes.GPUs)
	}
	running, err := controlplane.Background(dir)
	if err != nil {
		return err
	}
	if len(running) > 0 {
		return fmt.Errorf("a cluster is running already in %s; `make cluster-down` ends it", dir)
	}
	if err := controlplane.RemoveBackground(dir); err != nil {
		return err
	}
	defer func() { // up has created dir
		if err != nil && ctx.Err() != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Dir: dir, Background: true, WithControllerManager: true, WithKwok: true, Verbose: os.Stdout,
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			cp.Stop()
		}
	}()
	if err := cp.InstallMuster(ctx); err != nil {
		return err
	}
	if _, err := cp.StartMusterController(ctx, controlplane.ControllerOptions{}); err != nil {
		return err
	}
	if _, err := cp.StartMusterScheduler(ctx, controlplane.SchedulerOptions{}); err != nil {
		return err
	}
	fmt.Printf("creating %d nodes with %d GPUs each\n", nodes.Count, nodes.GPUs)
	if _, err := cp.CreateNodes(ctx, nodes); err != nil {
		return err
	}
	fmt.Printf(`
The cluster is ready. Its nodes are simulated, everything else is Kubernetes, muster-scheduler and muster-controller.

    export KUBECONFIG="%s"
    bin/kubectl apply --server-side -f manifests/samples/podcliqueset.yaml
    bin/kubectl get podcliquesets,podgroups.scheduling.run.ai,pods

"Your first gang" in docs/tutorial.md goes on from here. Logs are in %s. `+"`make cluster-down`"+` ends it.
`, filepath.Join(cp.Dir(), "kubeconfig"), dir)
	return nil
}

func down(dir string) error {
	stopped, err := controlplane.StopBackground(dir)
	if err != nil {
		return err
	}
	if len(stopped) == 0 {
		fmt.Println("no cluster is running")
	} else {
		fmt.Println("stopped", strings.Join(stopped, ", "))
	}
	return controlplane.RemoveBackground(dir)
}
