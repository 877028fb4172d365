// SPDX-License-Identifier: Apache-2.0

package children

import (
	"slices"
	"sync"
	"time"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// Fact is a state of an object that lasts for some time, such as an error.
type Fact struct {
	// Key identifies the fact among those of the object. Text describes it; it may change while the fact is the same.
	Key, Text string
	// Since is when the fact was first observed.
	Since time.Time
}

// FactTimes remembers how long facts have lasted, by the clock of this process: timestamps of API objects come from
// other clocks. Its contents are lost when the process ends; then all facts are new. The zero value is ready for use.
type FactTimes struct {
	mu      sync.Mutex
	objects map[string]observation // guarded by mu; by UID or name; only objects with facts
	swept   time.Time              // guarded by mu
}

type observation struct {
	facts []Fact
	at    time.Time
}

// forgetAfter is the time after which the facts of an object that was not observed again are removed, because it was
// deleted. An object with facts is observed again within LastRetry.
const forgetAfter = 10 * LastRetry

// Observe replaces the facts of an object, and returns them in the same order. A fact that existed before keeps its
// text and time, the others begin now. Of facts with the same key, only one is kept, with the last text.
func (s *FactTimes) Observe(object string, now time.Time, facts ...Fact) []Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[object].facts
	s.sweep(now)
	delete(s.objects, object)
	if len(facts) == 0 {
		return nil
	}
	var observed []Fact
	for _, f := range facts {
		f.Since = now
		if was := slices.IndexFunc(before, func(b Fact) bool { return b.Key == f.Key }); was >= 0 {
			f = before[was]
		}
		if same := slices.IndexFunc(observed, func(o Fact) bool { return o.Key == f.Key }); same >= 0 {
			observed[same] = f
		} else {
			observed = append(observed, f)
		}
	}
	if s.objects == nil {
		s.objects = map[string]observation{}
	}
	s.objects[object] = observation{facts: observed, at: now}
	return observed
}

// StatusDelay returns how long to wait before the status of an object is written, 0: write it now. change is how it
// changes, without Since; differs: it changes. began is when the pass began: the first pass that finds a difference
// sets Since. The caller calls Observe without facts when it has written the status.
func (s *FactTimes) StatusDelay(object string, change lifecycle.StatusChange, differs bool, began, now time.Time) time.Duration {
	if !differs {
		s.Observe(object, began)
		return 0
	}
	change.Since = s.Observe(object, began, Fact{})[0].Since
	return lifecycle.StatusDelay(change, now)
}

// HasFacts reports whether the object has facts.
func (s *FactTimes) HasFacts(object string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects[object].facts) > 0
}

// sweep removes objects that were not observed for forgetAfter.
func (s *FactTimes) sweep(now time.Time) {
	if now.Sub(s.swept) < forgetAfter {
		return
	}
	s.swept = now
	for object, o := range s.objects {
		if now.Sub(o.at) >= forgetAfter {
			delete(s.objects, object)
		}
	}
}
