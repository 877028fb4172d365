// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// binding is one pod that got its node.
type binding struct {
	pod, node string
	mark      string    // muster-scheduler's mark, "" for others
	at        time.Time // when the watch delivered it, on this process's monotonic clock
}

// annotations are those of the Binding: without the mark muster-scheduler's binding would be smaller.
func (b binding) annotations() map[string]string {
	if b.mark == "" {
		return nil
	}
	return map[string]string{v2alpha2.BoundForAnnotation: b.mark}
}

// bindingWatch records bindings in the API server's order, from one watch.
type bindingWatch struct {
	cancel context.CancelFunc
	bound  chan binding // closed when the watch has ended and will not resume
	err    error        // why; read it once bound is closed
}

// watchBindings starts to watch; earlier bindings are not recorded.
func watchBindings(ctx context.Context, client kubernetes.Interface) (*bindingWatch, error) {
	feed, _, err := openFeed(ctx, client)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &bindingWatch{cancel: cancel, bound: make(chan binding, 1024)}
	go func() {
		defer close(b.bound)
		seen := map[string]bool{}
		b.err = feed.follow(ctx, func(pod *corev1.Pod, gone bool) {
			now := time.Now()
			if gone || pod.Spec.NodeName == "" || seen[pod.Name] {
				return
			}
			seen[pod.Name] = true
			b.bound <- binding{pod: pod.Name, node: pod.Spec.NodeName, mark: pod.Annotations[v2alpha2.BoundForAnnotation], at: now}
		})
	}()
	return b, nil
}

func (b *bindingWatch) stop() {
	b.cancel()
	for range b.bound { // so that the watch can end
	}
}

// wait returns the first n bindings, or an error: that of failed, that of ctx, or when stall passes without a binding.
func (b *bindingWatch) wait(ctx context.Context, n int, stall time.Duration, failed <-chan error) ([]binding, error) {
	all := make([]binding, 0, n)
	timer := time.NewTimer(stall)
	defer timer.Stop()
	for len(all) < n {
		select {
		case one, ok := <-b.bound:
			if !ok {
				return nil, fmt.Errorf("after %d of %d bindings: %w", len(all), n, b.err)
			}
			all = append(all, one)
			timer.Reset(stall)
		case err := <-failed:
			return nil, err
		case <-timer.C:
			return all, unfinished{fmt.Errorf("nothing was bound for %s, %d of %d pods were bound before", stall, len(all), n)}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return all, nil
}
