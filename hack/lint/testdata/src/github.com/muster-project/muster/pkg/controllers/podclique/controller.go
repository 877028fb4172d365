// Package podclique waits by timers, but reads no clock, and does not know the scheduler.
package podclique

import /* want `a blank import needs a comment` */ _ "strings"

import (
	"bytes"
	"github.com/muster-project/muster/test/sim" // want `imports github.com/muster-project/muster/test/sim: only tests import it` `an empty line is missing`
	"time"                                      // want `imports are out of order`
)

// Wait waits.
func Wait() { time.Sleep(sim.Steps) }

// Equal compares.
var Equal = bytes.Equal

// Now reads the clock.
func Now() time.Time { return time.Now() } // want `uses time.Now`
