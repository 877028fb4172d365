// SPDX-License-Identifier: Apache-2.0

package report

import (
	"sync"
	"time"
)

const (
	// maxReadInterval is the maximum interval between two reads of an object.
	maxReadInterval = time.Hour
	// unusedAfter is how long data that no check has used remain in the cache. Every waiting gang is checked once in
	// lookInterval.
	unusedAfter = 10 * time.Minute
)

// reads caches what was read of objects, by UID or by namespace. The interval between two reads of an object begins
// with makersInterval and doubles while its number of pods stays the same, so that thousands of gangs that wait for
// days cause few requests.
type reads[K comparable, T any] struct {
	longest func(T) time.Duration // the maximum interval between two reads of an object; nil: maxReadInterval

	mu        sync.Mutex
	entries   map[K]entry[T]      // guarded by mu
	reading   map[K]chan struct{} // guarded by mu: objects that are being read; closed at the end
	droppedAt time.Time           // guarded by mu: when unused entries were last dropped
}

type entry[T any] struct {
	at, used time.Time
	interval time.Duration
	pods     int
	value    T
}

// readIfDue returns what is known of an object that has this number of pods, and reads it if that is due. If reading
// fails (read returns false), the value of an earlier read remains. An object that is being read is waited for.
func (r *reads[K, T]) readIfDue(key K, pods int, now time.Time, read func() (T, bool)) T {
	r.mu.Lock()
	for r.reading[key] != nil {
		done := r.reading[key]
		r.mu.Unlock()
		<-done
		r.mu.Lock()
	}
	r.dropUnused(now)
	e, known := r.entries[key]
	age := now.Sub(e.at)
	if known && age < e.interval && (pods == e.pods || age < makersInterval) {
		e.used = now
		r.entries[key] = e
		r.mu.Unlock()
		return e.value
	}
	if r.reading == nil {
		r.reading = map[K]chan struct{}{}
	}
	done := make(chan struct{})
	r.reading[key] = done
	r.mu.Unlock()

	if known && pods == e.pods {
		longest := maxReadInterval
		if r.longest != nil {
			longest = r.longest(e.value)
		}
		e.interval = min(2*e.interval, longest)
	} else {
		e.interval = makersInterval
	}
	if value, ok := read(); ok {
		e.value = value
	}
	e.at, e.used, e.pods = now, now, pods
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries == nil {
		r.entries = map[K]entry[T]{}
	}
	r.entries[key] = e
	delete(r.reading, key)
	close(done)
	return e.value
}

// dropUnused drops unused entries, at most once in unusedAfter. The caller holds the lock.
func (r *reads[K, T]) dropUnused(now time.Time) {
	if now.Sub(r.droppedAt) < unusedAfter {
		return
	}
	r.droppedAt = now
	for key, e := range r.entries {
		if now.Sub(e.used) >= unusedAfter {
			delete(r.entries, key)
		}
	}
}
