// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// tellAbove is the shortest interruption of a feed that is reported: measurements take many seconds.
const tellAbove = 500 * time.Millisecond

// podFeed delivers every change of pods, in the API server's order.
//
// The API server buffers ten changes for a watch that was opened while there were few, and ends the watch if the buffer
// stays full: all watches on pods together may delay it for at most a twentieth of the time. On a busy machine this happens
// to every client, dozens of times while a thousand pods start. Informers resume from the last version without a message,
// and so does podFeed: no change is lost, and each interruption takes some hundredths of a second.
type podFeed struct {
	pods interface {
		Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	}
	version string          // last version that was delivered
	open    watch.Interface // continues from version
	warn    io.Writer       // receives long interruptions
}

// openFeed returns a feed of the namespace from now on.
func openFeed(ctx context.Context, client kubernetes.Interface) (*podFeed, error) {
	pods := client.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	open, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	return &podFeed{pods: pods, version: list.ResourceVersion, open: open, warn: os.Stderr}, nil
}

// follow calls note for every change, until ctx ends (nil) or the API server no longer has the next version.
func (f *podFeed) follow(ctx context.Context, note func(pod *corev1.Pod, gone bool)) error {
	for ctx.Err() == nil {
		if err := f.read(ctx, note); err != nil {
			return err
		}
		if err := f.reopen(ctx); err != nil {
			return err
		}
	}
	return nil
}

// read returns when the watch ends; an error if it cannot be resumed.
func (f *podFeed) read(ctx context.Context, note func(pod *corev1.Pod, gone bool)) error {
	defer f.open.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-f.open.ResultChan():
			if !ok {
				return nil
			}
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				return f.final(apierrors.FromObject(event.Object))
			}
			f.version = pod.ResourceVersion
			note(pod, event.Type == watch.Deleted)
		}
	}
}

// reopen returns when a watch is open again, or ctx has ended.
func (f *podFeed) reopen(ctx context.Context) error {
	for ended := time.Now(); ctx.Err() == nil; {
		open, err := f.pods.Watch(ctx, metav1.ListOptions{ResourceVersion: f.version})
		if err == nil {
			f.open = open
			if away := time.Since(ended); away > tellAbove {
				fmt.Fprintf(f.warn, "there was no watch on pods for %.1f s: what happened meanwhile is measured so much late\n", away.Seconds())
			}
			return nil
		}
		if err := f.final(err); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond): // there is no event when the API server answers again
		}
	}
	return nil
}

// final returns an error if err means that changes are lost; after any other end of a watch the next one may work.
func (f *podFeed) final(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return fmt.Errorf("watching pods from version %s on: %w", f.version, err)
	}
	return nil
}
