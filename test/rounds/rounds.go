// SPDX-License-Identifier: Apache-2.0

// Package rounds says how often a test repeats what depends on chance or timing, as the environment variable ROUNDS
// asks.
package rounds

import (
	"os"
	"strconv"
)

// exhaustive is the number of rounds from which a test is asked for everything: each crash instead of every 23rd, full
// outages. `make test-long` has more.
const exhaustive = 20

// Number returns ROUNDS, at least 1. It is 1 if ROUNDS is not set, or no number.
func Number() int {
	n, err := strconv.Atoi(os.Getenv("ROUNDS"))
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// Exhaustive says whether everything is asked for.
func Exhaustive() bool {
	return Number() >= exhaustive
}
