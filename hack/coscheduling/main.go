// SPDX-License-Identifier: Apache-2.0

// Command coscheduling is kube-scheduler with the Coscheduling plugin of sigs.k8s.io/scheduler-plugins, another gang
// scheduler, for comparison in the benchmarks. The versions are in its go.mod.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // registers the metrics of clients, as the project's own program does
	_ "k8s.io/component-base/metrics/prometheus/version"  // registers the metric of the version
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme" // registers CoschedulingArgs
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(coscheduling.Name, coscheduling.New))))
}
