// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// binding is one pod that got its node.
type binding struct {
	pod, node string
	mark      string    // muster-scheduler's mark, "" for others
	at        time.Time // when the watch delivered it, on this process's monotonic clock
}

// seenPod has the observations about one pod: when it was observed as bound, when a scheduler first marked it as
// unschedulable (zero times: not yet), and whether it is ready and not being deleted.
type seenPod struct {
	bound, refused time.Time
	ready          bool
}

// podCounts has the numbers of pods by state.
type podCounts struct{ exist, bound, ready int }

// add counts the pod n times more.
func (c *podCounts) add(pod seenPod, n int) {
	c.exist += n
	if !pod.bound.IsZero() {
		c.bound += n
	}
	if pod.ready {
		c.ready += n
	}
}

// podWatch has the observations of one watch about all pods except fillers, in the API server's order.
type podWatch struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when the watch has ended and will not resume
	err    error         // the reason; read it once ended is closed

	mu       sync.Mutex
	pods     map[string]seenPod // guarded by mu; without deleted pods
	counts   podCounts          // guarded by mu; of pods
	bindings []binding          // guarded by mu; in order
	gone     []string           // guarded by mu; names of deleted pods, in order
	changed  chan struct{}      // guarded by mu; closed at the next change
}

// watchPods starts to watch; objects that existed before and do not change are not recorded.
func watchPods(ctx context.Context, client kubernetes.Interface) *podWatch {
	pods := client.CoreV1().Pods(namespace)
	feed := &podFeed{pods: pods, version: got(pods.List(ctx, metav1.ListOptions{Limit: 1})).ResourceVersion, warn: os.Stderr}
	ctx, cancel := context.WithCancel(ctx)
	w := &podWatch{cancel: cancel, ended: make(chan struct{}), pods: map[string]seenPod{}, changed: make(chan struct{})}
	go func() {
		defer close(w.ended)
		w.err = feed.follow(ctx, w.note)
	}()
	return w
}

func (w *podWatch) stop() {
	w.cancel()
	<-w.ended
}

func (w *podWatch) note(pod *corev1.Pod, gone bool) {
	if strings.HasPrefix(pod.Name, fillerPrefix) {
		return
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	was, known := w.pods[pod.Name]
	is := was
	if pod.Spec.NodeName != "" && is.bound.IsZero() {
		is.bound = now
		w.bindings = append(w.bindings, binding{pod: pod.Name, node: pod.Spec.NodeName, mark: pod.Annotations[v2alpha2.BoundForAnnotation], at: now})
	}
	if is.refused.IsZero() && unschedulable(pod) {
		is.refused = now
	}
	is.ready = controlplane.PodReady(pod) && pod.DeletionTimestamp == nil
	if known && is == was && !gone {
		return
	}
	if known {
		w.counts.add(was, -1)
		delete(w.pods, pod.Name)
	}
	if gone {
		w.gone = append(w.gone, pod.Name)
	} else {
		w.counts.add(is, 1)
		w.pods[pod.Name] = is
	}
	close(w.changed)
	w.changed = make(chan struct{})
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
func (w *podWatch) until(ctx context.Context, stall, most time.Duration, failed <-chan error, done func() bool) error {
	stall, most = cmp.Or(stall, math.MaxInt64), cmp.Or(most, math.MaxInt64)
	idle, end := time.NewTimer(stall), time.NewTimer(most)
	defer idle.Stop()
	defer end.Stop()
	late := func(format string, limit time.Duration) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		c := w.counts
		return unfinished{fmt.Errorf(format+": of %d pods %d are bound and %d ready", limit, c.exist, c.bound, c.ready)}
	}
	for {
		w.mu.Lock()
		ok, changed := done(), w.changed
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
			idle.Reset(stall)
		case <-w.ended:
			return fmt.Errorf("the watch on pods ended: %w", w.err)
		case err := <-failed:
			return err
		case <-idle.C:
			return late("nothing has changed for %s", stall)
		case <-end.C:
			return late("not done after %s", most)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// all returns a condition for until: every one of the pods satisfies is. Names that were found to do so are not checked
// again.
func (w *podWatch) all(names []string, is func(pod seenPod, exists bool) bool) func() bool {
	next := 0
	return func() bool {
		for ; next < len(names); next++ {
			if pod, exists := w.pods[names[next]]; !is(pod, exists) {
				return false
			}
		}
		return true
	}
}

func (w *podWatch) allBound(names []string) func() bool {
	return w.all(names, func(pod seenPod, _ bool) bool { return !pod.bound.IsZero() })
}

func (w *podWatch) allGone(names []string) func() bool {
	return w.all(names, func(_ seenPod, exists bool) bool { return !exists })
}

// deletedPods returns the names of all pods that were deleted so far, in order, including those that existed before the
// watch.
func (w *podWatch) deletedPods() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.gone)
}

// boundAt returns when the first and the last of the pods were bound. All must be bound; see allBound.
func (w *podWatch) boundAt(names []string) (first, last time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		at := w.pods[name].bound
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
func (w *podWatch) bindingsOf(gangs ...gang) []binding {
	of := gangOf(gangs)
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []binding
	for _, b := range w.bindings {
		if of[b.pod] != "" {
			all = append(all, b)
		}
	}
	return all
}

// tellAbove is the shortest interruption of a feed that is reported: measurements take many seconds.
const tellAbove = 500 * time.Millisecond

// podFeed delivers every change of pods, in the API server's order.
//
// The API server buffers ten changes for a watch that was opened while there were few, and ends the watch if the buffer
// stays full: all watches on pods together may delay it for at most a twentieth of the time. On a busy machine this
// happens to every client, dozens of times while a thousand pods start. Informers resume from the last version without
// a message, and so does podFeed: no change is lost, and each interruption takes some hundredths of a second.
type podFeed struct {
	pods interface {
		Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	}
	version string    // last version that was delivered
	warn    io.Writer // receives long interruptions
}

// follow calls note for every change, until ctx ends (nil) or the API server no longer has the next version.
func (f *podFeed) follow(ctx context.Context, note func(pod *corev1.Pod, gone bool)) error {
	for ended := time.Now(); ctx.Err() == nil; {
		open, err := f.pods.Watch(ctx, metav1.ListOptions{ResourceVersion: f.version})
		if err == nil {
			if away := time.Since(ended); away > tellAbove {
				fmt.Fprintf(f.warn, "there was no watch on pods for %.1f s: what happened meanwhile is measured so much late\n", away.Seconds())
			}
			err = f.read(ctx, open, note)
			ended = time.Now()
		} else {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond): // there is no event when the API server answers again
			}
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) { // after any other end of a watch the next one may work
			return fmt.Errorf("watching pods from version %s on: %w", f.version, err)
		}
	}
	return nil
}

// read returns when the watch ends, with the error that the API server gives for it.
func (f *podFeed) read(ctx context.Context, open watch.Interface, note func(pod *corev1.Pod, gone bool)) error {
	defer open.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-open.ResultChan():
			if !ok {
				return nil
			}
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				return apierrors.FromObject(event.Object)
			}
			f.version = pod.ResourceVersion
			note(pod, event.Type == watch.Deleted)
		}
	}
}
