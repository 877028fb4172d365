package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// binding is one pod that got its node.
type binding struct {
	pod, node string
	mark      string    // what muster-scheduler binds with, "" otherwise
	at        time.Time // when the watch told it, on this process's monotonic clock
}

// bindingWatch sees bindings in the API server's order, through one watch.
type bindingWatch struct {
	cancel context.CancelFunc
	bound  chan binding // closed when the watch has ended for good
	err    error        // why; read it once bound is closed
}

// watchBindings begins to watch; what was bound before is not seen.
func watchBindings(ctx context.Context, client kubernetes.Interface) (*bindingWatch, error) {
	pods := client.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	first, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &bindingWatch{cancel: cancel, bound: make(chan binding, 1024)}
	go func() {
		defer close(b.bound)
		seen := map[string]bool{}
		version := list.ResourceVersion
		for w := first; ; {
			version = b.follow(ctx, w, version, seen)
			if ctx.Err() != nil {
				return
			}
			// The API server ends a watch that is too slow, which on a busy machine any may be. Nothing is lost, but the
			// time of what was missed is the time of the new watch.
			fmt.Fprintln(os.Stderr, "the watch on pods was interrupted: bindings of this moment are seen late")
			if w, b.err = pods.Watch(ctx, metav1.ListOptions{ResourceVersion: version}); b.err != nil {
				return
			}
		}
	}()
	return b, nil
}

// follow passes on bindings until the watch ends, and returns the version to go on from.
func (b *bindingWatch) follow(ctx context.Context, w watch.Interface, version string, seen map[string]bool) string {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return version
		case event, ok := <-w.ResultChan():
			now := time.Now()
			if !ok {
				return version
			}
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				return version
			}
			version = pod.ResourceVersion
			if event.Type == watch.Deleted || pod.Spec.NodeName == "" || seen[pod.Name] {
				continue
			}
			seen[pod.Name] = true
			b.bound <- binding{pod: pod.Name, node: pod.Spec.NodeName, mark: pod.Annotations[v2alpha2.BoundForAnnotation], at: now}
		}
	}
}

func (b *bindingWatch) stop() {
	b.cancel()
	for range b.bound { // let it end
	}
}

// wait returns the first n bindings, or an error when one comes on failed, when ctx ends, or when stall passes without one.
func (b *bindingWatch) wait(ctx context.Context, n int, stall time.Duration, failed <-chan error) ([]binding, error) {
	all := make([]binding, 0, n)
	timer := time.NewTimer(stall)
	defer timer.Stop()
	for len(all) < n {
		select {
		case one, ok := <-b.bound:
			if !ok {
				return nil, fmt.Errorf("watching pods, after %d of %d bindings: %w", len(all), n, b.err)
			}
			all = append(all, one)
			timer.Reset(stall)
		case err := <-failed:
			return nil, err
		case <-timer.C:
			return nil, fmt.Errorf("nothing was bound for %s, %d of %d pods were bound before", stall, len(all), n)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return all, nil
}
