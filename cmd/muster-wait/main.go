// SPDX-License-Identifier: Apache-2.0

// Command muster-wait is the waiting container of pods that start after others: it ends when the cliques that must be
// started before have started.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/startorder"
	"github.com/muster-project/muster/pkg/version"
	"github.com/muster-project/muster/pkg/workload"
)

const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := waitForParents(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "muster-wait:", err)
		os.Exit(1)
	}
}

// waitForParents waits as the arguments say, which workload.Pod gives.
func waitForParents(ctx context.Context, args []string) error {
	var (
		waiter                              startorder.Waiter
		requirements, kubeconfig, namespace string
		show                                bool
	)
	flags := flag.NewFlagSet("muster-wait", flag.ContinueOnError)
	flags.StringVar(&waiter.Set, flagName(workload.WaitArgSet), "", "Name of the PodCliqueSet.")
	flags.IntVar(&waiter.Replica, flagName(workload.WaitArgReplica), 0, "Index of its replica.")
	flags.StringVar(&requirements, flagName(workload.WaitArgRequirements), "", "What to wait for, as JSON.")
	flags.StringVar(&namespace, "namespace", "", "Namespace of the PodCliqueSet. Empty: that of the pod.")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "Path of a kubeconfig. Empty: the service account of the pod.")
	flags.BoolVar(&show, "version", false, "Print the version and end.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if show {
		fmt.Println("muster-wait", version.String())
		return nil
	}

	var err error
	if waiter.Requirements, err = lifecycle.ParseRequirements(requirements); err != nil {
		return err
	}
	if waiter.Namespace = namespace; namespace == "" {
		content, err := os.ReadFile(namespaceFile)
		if err != nil {
			return fmt.Errorf("finding the namespace: %w", err)
		}
		waiter.Namespace = strings.TrimSpace(string(content))
	}
	config, err := clientConfig(kubeconfig)
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	config.UserAgent = "muster-wait/" + version.Version
	return waiter.Wait(ctx, config)
}

// flagName returns the name of a flag from how it is written before its value: "--name=".
func flagName(argument string) string { return strings.Trim(argument, "-=") }

func clientConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
