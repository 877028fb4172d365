// SPDX-License-Identifier: Apache-2.0

// Command muster-controller runs Muster's workload API and serves its admission webhooks.
package main

import (
	"os"

	"k8s.io/component-base/cli"
)

func main() {
	os.Exit(cli.Run(newCommand()))
}
