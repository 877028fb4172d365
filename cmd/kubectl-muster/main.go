// SPDX-License-Identifier: Apache-2.0

// Command kubectl-muster is a plugin of kubectl: it says why a gang waits, what would let it start, and whether one
// would start.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/muster-project/muster/pkg/cli"
)

func main() {
	debug.SetGCPercent(400) // one answer needs little more than what it reads
	debug.SetMemoryLimit(1 << 30)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args, cli.OSStreams())
	stop()
	os.Exit(code)
}
