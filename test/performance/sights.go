// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// sight has the observations of a watch about one pod: when it was observed as bound, and when a scheduler first marked
// it as unschedulable. Zero times: not yet.
type sight struct{ bound, refused time.Time }

// sights has the observations of one watch about all pods except fillers, in the API server's order.
type sights struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when the watch has ended and will not resume
	err    error         // the reason; read it once ended is closed

	mu       sync.Mutex
	pods     map[string]sight // guarded by mu; without deleted pods
	bindings []binding        // guarded by mu; in order
	changed  chan struct{}    // guarded by mu; closed at the next change
}

// watchSights starts to watch; objects that existed before and do not change are not recorded.
func watchSights(ctx context.Context, client kubernetes.Interface) (*sights, error) {
	feed, _, err := openFeed(ctx, client)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &sights{cancel: cancel, ended: make(chan struct{}), pods: map[string]sight{}, changed: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.err = feed.follow(ctx, s.note)
	}()
	return s, nil
}

func (s *sights) stop() {
	s.cancel()
	<-s.ended
}

func (s *sights) note(pod *corev1.Pod, gone bool) {
	if strings.HasPrefix(pod.Name, fillerPrefix) {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.pods[pod.Name]
	is := was
	if pod.Spec.NodeName != "" && is.bound.IsZero() {
		is.bound = now
		s.bindings = append(s.bindings, binding{pod: pod.Name, node: pod.Spec.NodeName, mark: pod.Annotations[v2alpha2.BoundForAnnotation], at: now})
	}
	if is.refused.IsZero() && unschedulable(pod) {
		is.refused = now
	}
	switch {
	case gone:
		delete(s.pods, pod.Name)
	case known && is == was:
		return
	default:
		s.pods[pod.Name] = is
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// unschedulable returns whether a scheduler has tried the pod and said that it cannot be scheduled.
func unschedulable(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// until returns when done returns true; done is called with the lock held. Otherwise it returns an error: that of
// failed, unfinished when stall passes without a change or most in total, or that of ctx. 0: no such limit.
func (s *sights) until(ctx context.Context, stall, most time.Duration, failed <-chan error, done func() bool) error {
	idle, end := newLimit(stall), newLimit(most)
	defer idle.stop()
	defer end.stop()
	for {
		s.mu.Lock()
		ok, changed := done(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
			idle.reset()
		case <-s.ended:
			return fmt.Errorf("the watch on pods ended: %w", s.err)
		case err := <-failed:
			return err
		case <-idle.passed:
			return unfinished{fmt.Errorf("nothing has changed for %s", stall)}
		case <-end.passed:
			return unfinished{fmt.Errorf("not done after %s", most)}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// limit is a timer that may be none.
type limit struct {
	length time.Duration
	timer  *time.Timer      // nil: no limit
	passed <-chan time.Time // nil: no limit
}

func newLimit(length time.Duration) limit {
	if length <= 0 {
		return limit{}
	}
	timer := time.NewTimer(length)
	return limit{length, timer, timer.C}
}

func (l limit) reset() {
	if l.timer != nil {
		l.timer.Reset(l.length)
	}
}

func (l limit) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// exists returns a condition for until: the watch has reported the pod.
func (s *sights) exists(name string) func() bool {
	return func() bool {
		_, ok := s.pods[name]
		return ok
	}
}

// allBound returns a condition for until: every one of the pods is bound. Names that were found bound are not checked
// again.
func (s *sights) allBound(names []string) func() bool {
	next := 0
	return func() bool {
		for next < len(names) && !s.pods[names[next]].bound.IsZero() {
			next++
		}
		return next == len(names)
	}
}

// allGone returns a condition for until: none of the pods is left.
func (s *sights) allGone(names []string) func() bool {
	next := 0
	return func() bool {
		for next < len(names) {
			if _, there := s.pods[names[next]]; there {
				return false
			}
			next++
		}
		return true
	}
}

// boundAt returns when the first and the last of the pods were bound. All must be bound; see allBound.
func (s *sights) boundAt(names []string) (first, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		at := s.pods[name].bound
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	return first, last
}

// bindingsOf returns the bindings of the gangs' pods, in order.
func (s *sights) bindingsOf(gangs ...gang) []binding {
	of := gangOf(gangs)
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []binding
	for _, b := range s.bindings {
		if of[b.pod] != "" {
			all = append(all, b)
		}
	}
	return all
}
