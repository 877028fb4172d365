// SPDX-License-Identifier: Apache-2.0

// Command muster-scheduler is the stock kube-scheduler with the plugins GangGate, GangAdmission and GPUPacking: every
// flag, profile, plugin and metric of the stock scheduler works. Without --config it runs with the built-in profile
// "muster-scheduler" (pkg/apis/config/profile).
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"github.com/muster-project/muster/pkg/scheduler"
)

func main() { os.Exit(cli.Run(scheduler.NewCommand())) }
