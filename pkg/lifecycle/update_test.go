// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"time"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// Targets of the updates in tests: a template and its successors.
var (
	targetA = lifecycle.Target{Generation: "gen-a", Template: "tpl-a"}
	targetB = lifecycle.Target{Generation: "gen-b", Template: "tpl-b"}
	targetC = lifecycle.Target{Generation: "gen-c", Template: "tpl-c"}
)

// begun returns the progress of an update that began a minute ago.
func begun(target lifecycle.Target, changes ...func(*lifecycle.Progress)) *lifecycle.Progress {
	p := &lifecycle.Progress{Target: target, StartedAt: ago(time.Minute), LastProgress: ago(time.Minute)}
	for _, change := range changes {
		change(p)
	}
	return p
}

// over ends the update half a minute ago; atOnce ends it when it began.
func over(p *lifecycle.Progress) {
	p.EndedAt, p.LastProgress = ago(30*time.Second), ago(30*time.Second)
}
func atOnce(p *lifecycle.Progress) { p.EndedAt = p.StartedAt }

// selected records a unit that was deleted, and the completed ones before it.
func selected(unit string, completed ...string) func(*lifecycle.Progress) {
	return func(p *lifecycle.Progress) { p.Selected, p.Completed = unit, completed }
}

// progressed sets the time of the last progress; startedNow sets the start to now.
func progressed(at time.Time) func(*lifecycle.Progress) {
	return func(p *lifecycle.Progress) { p.LastProgress = at }
}

func startedNow(p *lifecycle.Progress) { p.StartedAt, p.LastProgress = now, now }
func overNow(p *lifecycle.Progress)    { p.EndedAt, p.LastProgress = now, now }

func state(reason lifecycle.UpdateReason, message string) lifecycle.UpdateState {
	return lifecycle.UpdateState{Reason: reason, Message: message}
}
