// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"

	"github.com/muster-project/muster/test/controlplane"
)

// inParallel does n things, writers at a time, beginning them in order. It returns the first error.
func inParallel(n int, do func(i int) error) error { return controlplane.InParallel(n, writers, do) }

func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	load, _, _ := strings.Cut(string(content), " ")
	return load
}
