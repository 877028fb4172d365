// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// unwinds contains assumed members of aborted plans whose preparation, or wait for it, must be cancelled.
type unwinds struct {
	mu   sync.Mutex
	pods []types.UID
}

// cancel cancels the preparation (PreBind) of assumed members of aborted plans, which occupy their room until it
// ends. A member whose preparation has not begun yet is cancelled by a later call; each call also processes the
// members left by earlier ones.
func (g *Gangs) cancel(uids []types.UID) {
	g.unwinds.mu.Lock()
	defer g.unwinds.mu.Unlock()
	g.unwinds.pods = append(g.unwinds.pods, uids...)
	g.unwinds.pods = slices.DeleteFunc(g.unwinds.pods, func(uid types.UID) bool {
		if !g.registry.Unwinds(uid) {
			return true
		}
		found := false
		for _, h := range g.handles {
			if pod := h.GetPodInPreBind(uid); pod != nil {
				found = true
				pod.CancelPod(gangs.PlanAborted)
			}
			if pod := h.GetWaitingPod(uid); pod != nil {
				found = true
				pod.Reject(Name, gangs.PlanAborted)
			}
		}
		return found
	})
}
