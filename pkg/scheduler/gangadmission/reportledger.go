// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/ledger"
)

// ledgerOf returns what the GPUs of the nodes are used for. held is what gangs decide about their pods, as of
// Registry.Holding.
func ledgerOf(nodes []kubescheduler.NodeGPUs, held map[types.UID]ledger.State) ledger.Ledger {
	l := ledger.Ledger{}
	var used []ledger.Use
	for _, n := range nodes {
		used = used[:0]
		for _, p := range n.Pods {
			used = append(used, ledger.Use{State: ledger.StateOf(held[p.UID], p.Ready, p.Ends, p.Evicted), GPUs: p.GPUs})
		}
		n.Room.Used = used
		l.Add(n.Room)
	}
	return l
}

// reportGPUs counts the time since the last call for the state in which each GPU is now.
func (a *accounts) reportGPUs(l ledger.Ledger, now time.Time) {
	elapsed := time.Duration(0)
	if !a.last.IsZero() {
		elapsed = max(0, now.Sub(a.last))
	}
	a.last = now
	startable := map[[2]string]float64{}
	for resource, account := range l {
		for state, n := range account.GPUs {
			gpuSeconds.WithLabelValues(resource, ledger.State(state).String()).Add(float64(n) * elapsed.Seconds())
		}
		for i, size := range ledger.Sizes {
			startable[[2]string{resource, strconv.FormatInt(size, 10)}] = float64(account.Startable[i])
		}
	}
	a.startable.set(startablePods, 2, startable)
}
