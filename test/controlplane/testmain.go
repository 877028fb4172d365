// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main is the body of a TestMain: it starts a control plane that the package's tests share, calls the functions that
// prepare it, runs the tests, stops it, and returns the exit status. An interrupt stops it too.
//
//	var cp *controlplane.ControlPlane
//
//	func TestMain(m *testing.M) {
//		os.Exit(controlplane.Main(m, controlplane.Options{}, &cp, (*controlplane.ControlPlane).InstallMuster))
//	}
func Main(tests interface{ Run() int }, options Options, cp **ControlPlane, before ...func(*ControlPlane, context.Context) error) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	started, err := Start(ctx, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane:", err)
		return 1
	}
	defer started.Stop()
	*cp = started
	for _, prepare := range before {
		if err := prepare(started, ctx); err != nil {
			fmt.Fprintln(os.Stderr, "preparing the control plane:", err)
			return 1
		}
	}

	status := make(chan int, 1)
	go func() { status <- tests.Run() }()
	select {
	case code := <-status:
		return code
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr, "interrupted, stopping the control plane")
		return 1
	}
}
