package children

import (
	"sync"
	"time"
)

// Fact is something that holds of an object.
type Fact struct {
	// Key identifies the fact among those of the object. Text describes it; it may change while the fact is the same.
	Key, Text string
	// Since is when the fact was first seen.
	Since time.Time
}

// Since remembers since when facts have held, by the clock of this program: timestamps of API objects are of other clocks.
// It is lost when the program ends: then all facts are new. The zero value is ready for use.
type Since struct {
	mu      sync.Mutex
	objects map[string]observation // guarded by mu; by UID or name; those with facts only
	swept   time.Time              // guarded by mu
}

type observation struct {
	facts []Fact
	at    time.Time
}

// forgetAfter is when the facts of an object that was not observed again are forgotten: it was deleted. An object with
// facts is observed again within LastRetry.
const forgetAfter = 10 * LastRetry

// Observe replaces the facts of an object. Returned are facts in the same order; one that was there before keeps its text
// and time, the others hold since now.
func (s *Since) Observe(object string, now time.Time, facts ...Fact) []Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[object].facts
	s.sweep(now)
	delete(s.objects, object)
	if len(facts) == 0 {
		return nil
	}
	observed := make([]Fact, len(facts))
	for i, f := range facts {
		f.Since = now
		for _, b := range before {
			if b.Key == f.Key {
				f = b
			}
		}
		observed[i] = f
	}
	if s.objects == nil {
		s.objects = map[string]observation{}
	}
	s.objects[object] = observation{facts: observed, at: now}
	return observed
}

// Holds reports whether the object has facts.
func (s *Since) Holds(object string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects[object].facts) > 0
}

// sweep forgets objects that were not observed for long.
func (s *Since) sweep(now time.Time) {
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
