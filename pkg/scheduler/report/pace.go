// SPDX-License-Identifier: Apache-2.0

package report

import (
	"sync"
	"time"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

const (
	// largeGang is the number of pods from which on checks of a gang are spaced, because the cost of a check is
	// proportional to the number of pods.
	largeGang = 500
	// lookPause is the minimum time between two checks of a large gang.
	lookPause = time.Second
)

// pacer spaces the checks of large gangs: their pods are created and bound over several seconds, and each of them
// marks the gang.
type pacer struct {
	facts    func(gangs.Key) (podgroup.Facts, bool)
	isUrgent func(gangs.Key) bool // evictions wait for the status

	mu     sync.Mutex
	looked map[gangs.Key]time.Time // time of the last check of a large gang
}

func newPacer(registry *gangs.Registry) *pacer {
	return &pacer{facts: registry.Facts, isUrgent: registry.AwaitsRecord, looked: map[gangs.Key]time.Time{}}
}

// factsIfDue returns the facts of a gang, false if it is unknown; or the time until it may be checked.
func (p *pacer) factsIfDue(key gangs.Key, now time.Time) (f podgroup.Facts, ok bool, wait time.Duration) {
	p.mu.Lock()
	last, large := p.looked[key]
	p.mu.Unlock()
	if large && !p.isUrgent(key) {
		if wait := last.Add(lookPause).Sub(now); wait > 0 {
			return podgroup.Facts{}, false, wait
		}
	}
	f, ok = p.facts(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ok && f.Pods >= largeGang {
		p.looked[key] = now
	} else {
		delete(p.looked, key)
	}
	return f, ok, 0
}
