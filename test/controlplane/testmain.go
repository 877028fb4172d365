// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
)

// Main is the body of a TestMain: it starts a control plane that the package's tests share, calls the functions that
// prepare it, runs the tests, stops it, and returns the exit status. After an interrupt the kernel ends its servers,
// and the next control plane removes its directory.
//
//	var cp *controlplane.ControlPlane
//
//	func TestMain(m *testing.M) {
//		os.Exit(controlplane.Main(m, controlplane.Options{}, &cp, (*controlplane.ControlPlane).InstallMuster))
//	}
func Main(tests interface{ Run() int }, options Options, cp **ControlPlane, before ...func(*ControlPlane, context.Context) error) int {
	ctx := context.Background()
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

	return tests.Run()
}
