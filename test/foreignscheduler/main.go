// SPDX-License-Identifier: Apache-2.0

// Command foreignscheduler is another scheduler with Muster's plugins compiled in as in the documentation of
// kube-scheduler: it only calls app.WithPlugin. A test runs it.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	_ "github.com/muster-project/muster/pkg/apis/config/scheme" // the arguments of GangAdmission
	"github.com/muster-project/muster/pkg/scheduler/gangadmission"
)

func main() {
	gangs := gangadmission.New()
	os.Exit(cli.Run(app.NewSchedulerCommand(
		app.WithPlugin(gangadmission.GateName, gangs.NewGate),
		app.WithPlugin(gangadmission.Name, gangs.NewAdmission),
	)))
}
