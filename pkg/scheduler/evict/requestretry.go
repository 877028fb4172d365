// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// maxParallel is the maximum number of parallel requests of one call.
	maxParallel = 16
	// firstRetryDelay is the time before requests are repeated for the first time. It doubles up to maxRetryDelay.
	firstRetryDelay = 200 * time.Millisecond
	maxRetryDelay   = 10 * time.Second
	// markAttempts is how often a mark is tried. It bounds the time for which the gang waits for a decision that is
	// made anew: 3 s, and the time of the requests.
	markAttempts = 5
	// unlimited: requests are repeated until the context ends.
	unlimited = 0
)

// errNotTried is the error of victims that were not reached before the context ended.
var errNotTried = errors.New("the time was over before it was tried")

// retryForVictims calls request for the index of each of so many victims, in parallel, and repeats it for those with a
// transient error: in rounds with a delay between them, attempts times in all or until ctx ends. Permanent errors are
// not retried; the other victims are. It returns the last errors by victim; nil: the request succeeded.
func (e *Evictor) retryForVictims(ctx context.Context, victims, attempts int, request func(ctx context.Context, i int) error) []error {
	failures, left := make([]error, victims), make([]int, victims)
	for i := range victims {
		failures[i], left[i] = errNotTried, i
	}
	delay := firstRetryDelay
	for round := 1; len(left) > 0 && ctx.Err() == nil; round++ {
		workqueue.ParallelizeUntil(ctx, maxParallel, len(left), func(k int) {
			failures[left[k]] = request(ctx, left[k])
		})
		left = slices.DeleteFunc(left, func(i int) bool { return failures[i] == nil || !isTransient(failures[i]) })
		if len(left) == 0 || round == attempts {
			break
		}
		select {
		case <-e.Clock.After(delay):
		case <-ctx.Done():
		}
		delay = min(2*delay, maxRetryDelay)
	}
	return failures
}

// isTransient reports whether a request that failed with err may succeed if it is repeated.
func isTransient(err error) bool {
	for _, isPermanent := range []func(error) bool{
		apierrors.IsForbidden, apierrors.IsInvalid, apierrors.IsBadRequest, apierrors.IsMethodNotSupported,
		apierrors.IsNotAcceptable, apierrors.IsUnsupportedMediaType, apierrors.IsRequestEntityTooLargeError,
	} {
		if isPermanent(err) {
			return false
		}
	}
	return true
}

// firstFailure returns the first error, with the pod and what was being done to it, and how many other pods failed;
// nil: none failed.
func firstFailure(doing string, victims []Victim, failures []error) error {
	first, others := -1, 0
	for i, err := range failures {
		switch {
		case err == nil:
		case first < 0:
			first = i
		default:
			others++
		}
	}
	if first < 0 {
		return nil
	}
	text := fmt.Sprintf("%s pod %s", doing, klog.KObj(victims[first].Pod))
	if others > 0 {
		text += fmt.Sprintf(" (and %d more)", others)
	}
	if apierrors.IsForbidden(failures[first]) {
		text += ", for which muster-scheduler needs the ClusterRole of manifests/scheduler/rbac.yaml"
	}
	return fmt.Errorf("%s: %w", text, failures[first])
}
