// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"time"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
)

// maxPromised is how many nodes are named on which room is reserved for a gang.
const maxPromised = 3

// Promised is the room that is reserved for a gang that waits, as pods end that have it.
type Promised struct {
	Since  time.Time // when room was reserved for it first
	Nodes  []string  // on which room is reserved, sorted; none: an earlier process chose them, and they are chosen again
	Starts time.Time // when the gang starts at the latest, if pods end as they promise; zero: some of them promise nothing
}

// addPromise adds what the gang is promised to the status. nil: nothing.
func addPromise(s *v2alpha2.PodGroupStatus, p *Promised) {
	if p == nil {
		return
	}
	s.ReservedSince, s.StartsBy = recordedTime(p.Since), recordedTime(p.Starts)
}

// describePromise describes what the gang is promised, as a further clause. "": nothing.
func describePromise(p *Promised) string {
	if p == nil || len(p.Nodes) == 0 {
		return ""
	}
	text := fmt.Sprintf("; room on %s is reserved for it as it becomes free: %s", message.Count(len(p.Nodes), "node"), message.ListNames(p.Nodes, maxPromised, len(p.Nodes), ", "))
	if !p.Starts.IsZero() {
		text += "; it starts by " + p.Starts.UTC().Format("2006-01-02 15:04:05 MST") + " if pods end as they promise"
	}
	return text
}
