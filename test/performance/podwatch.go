// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/muster-project/muster/test/controlplane"
)

// podCounts has the numbers of pods by state.
type podCounts struct{ exist, bound, ready int }

func (c podCounts) String() string {
	return fmt.Sprintf("%d pods, %d bound, %d ready", c.exist, c.bound, c.ready)
}

// podWatch counts the pods of the namespace, through one watch.
type podWatch struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when the watch has ended and will not resume
	err    error         // the reason, nil if it was stopped; read it once ended is closed

	mu      sync.Mutex
	pods    map[string]podCounts // guarded by mu; of one pod each, by name
	counts  podCounts            // guarded by mu; their sum
	changed chan struct{}        // guarded by mu; closed at the next change
}

// watchPods begins to watch a namespace without pods.
func watchPods(ctx context.Context, client kubernetes.Interface) (*podWatch, error) {
	feed, there, err := openFeed(ctx, client)
	if err != nil {
		return nil, err
	}
	if len(there) > 0 {
		feed.open.Stop()
		return nil, fmt.Errorf("there is a pod already: %s", there[0].Name)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &podWatch{cancel: cancel, ended: make(chan struct{}), pods: map[string]podCounts{}, changed: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = feed.follow(ctx, p.note)
	}()
	return p, nil
}

func (p *podWatch) note(pod *corev1.Pod, gone bool) {
	var is podCounts
	if !gone {
		is.exist = 1
		if pod.Spec.NodeName != "" {
			is.bound = 1
		}
		if controlplane.PodReady(pod) && pod.DeletionTimestamp == nil {
			is.ready = 1
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.pods[pod.Name]
	if was == is {
		return
	}
	p.pods[pod.Name] = is
	if gone {
		delete(p.pods, pod.Name)
	}
	p.counts.exist += is.exist - was.exist
	p.counts.bound += is.bound - was.bound
	p.counts.ready += is.ready - was.ready
	close(p.changed)
	p.changed = make(chan struct{})
}

// until returns when done returns true, or an error: that of failed, that of ctx, or when stall passes without a change.
func (p *podWatch) until(ctx context.Context, stall time.Duration, failed <-chan error, done func(podCounts) bool) (time.Time, error) {
	timer := time.NewTimer(stall)
	defer timer.Stop()
	for {
		p.mu.Lock()
		counts, changed := p.counts, p.changed
		p.mu.Unlock()
		if done(counts) {
			return time.Now(), nil
		}
		select {
		case <-changed:
			timer.Reset(stall)
		case <-p.ended:
			return time.Time{}, fmt.Errorf("after %s: %w", counts, p.err)
		case err := <-failed:
			return time.Time{}, err
		case <-timer.C:
			return time.Time{}, fmt.Errorf("nothing has changed for %s: %s", stall, counts)
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

func (p *podWatch) stop() {
	p.cancel()
	<-p.ended
}
