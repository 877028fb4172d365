// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// toCancel contains assumed members of aborted plans whose preparation, or wait for it, must be cancelled.
type toCancel struct {
	mu   sync.Mutex
	pods []types.UID
}

// cancelPreparation cancels the preparation (PreBind) of assumed members of aborted plans, which occupy their room until it
// ends. A member whose preparation has not begun yet is cancelled by a later call; each call also processes the
// members left by earlier ones.
func (g *Gangs) cancelPreparation(uids []types.UID) {
	g.toCancel.mu.Lock()
	defer g.toCancel.mu.Unlock()
	g.toCancel.pods = append(g.toCancel.pods, uids...)
	g.toCancel.pods = slices.DeleteFunc(g.toCancel.pods, func(uid types.UID) bool {
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
