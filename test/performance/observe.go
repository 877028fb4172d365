package main

import (
	"context"
	"fmt"
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
	watch watch.Interface
	bound chan binding // closed when the watch ends
}

// watchBindings begins to watch; what was bound before is not seen.
func watchBindings(ctx context.Context, client kubernetes.Interface) (*bindingWatch, error) {
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	w, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	b := &bindingWatch{watch: w, bound: make(chan binding, 1024)}
	go b.run()
	return b, nil
}

func (b *bindingWatch) run() {
	defer close(b.bound)
	seen := map[string]bool{}
	for event := range b.watch.ResultChan() {
		now := time.Now()
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted || pod.Spec.NodeName == "" || seen[pod.Name] {
			continue
		}
		seen[pod.Name] = true
		b.bound <- binding{pod: pod.Name, node: pod.Spec.NodeName, mark: pod.Annotations[v2alpha2.BoundForAnnotation], at: now}
	}
}

func (b *bindingWatch) stop() {
	b.watch.Stop()
	for range b.bound { // let run end
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
				return nil, fmt.Errorf("the watch on pods ended after %d of %d bindings", len(all), n)
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
