// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watched answers one Watch after the other: with an error or with these pods' changes, after which the watch ends.
// After the last one there are no further changes.
type watched struct {
	answers []answer
	from    []string // requested versions
}

type answer struct {
	after    time.Duration
	err      error
	versions []string       // delivered pods
	end      *metav1.Status // the last notice, nil: none
}

func (w *watched) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w.from = append(w.from, options.ResourceVersion)
	if len(w.answers) == 0 {
		return watch.NewFake(), nil
	}
	next := w.answers[0]
	w.answers = w.answers[1:]
	time.Sleep(next.after) // on synctest's clock
	if next.err != nil {
		return nil, next.err
	}
	stream := watch.NewFakeWithChanSize(len(next.versions)+1, false)
	for _, version := range next.versions {
		stream.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}})
	}
	if next.end != nil {
		stream.Error(next.end)
	}
	stream.Stop()
	return stream, nil
}

func TestFeed(t *testing.T) {
	t.Parallel()
	expired := apierrors.NewResourceExpired("too old resource version")
	tests := map[string]struct {
		answers         []answer
		told, from      []string
		warning, failed string
	}{
		"a watch that the API server ends is gone on with, in silence": {
			answers: []answer{{versions: []string{"2", "3"}}, {}, {versions: []string{"5"}}},
			told:    []string{"2", "3", "5"}, from: []string{"1", "3", "3", "5"},
		},
		"an error inside a watch that says nothing of what is lost": {
			answers: []answer{{versions: []string{"2"}, end: &apierrors.NewInternalError(errors.New("reset")).ErrStatus}, {versions: []string{"3"}}},
			told:    []string{"2", "3"}, from: []string{"1", "2", "3"},
		},
		"an API server that is away is asked again, and long interruptions are told": {
			answers: []answer{{versions: []string{"2"}}, {err: errors.New("refused"), after: time.Second}, {versions: []string{"3"}}},
			told:    []string{"2", "3"}, from: []string{"1", "2", "2", "3"},
			warning: "there was no watch on pods for 1.1 s",
		},
		"what is no longer to be had ends it, told inside a watch": {
			answers: []answer{{versions: []string{"2"}}, {end: &expired.ErrStatus}},
			told:    []string{"2"}, from: []string{"1", "2"},
			failed: "watching pods from version 2 on: too old resource version",
		},
		"changes that are lost end it, with an error": {
			answers: []answer{{versions: []string{"2"}}, {err: expired}},
			told:    []string{"2"}, from: []string{"1", "2"},
			failed: "watching pods from version 2 on: too old resource version",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				server, warning, told := &watched{answers: tc.answers}, &strings.Builder{}, []string(nil)
				feed := &podFeed{pods: server, version: "1", warn: warning}
				var err error
				if feed.open, err = server.Watch(ctx, metav1.ListOptions{ResourceVersion: "1"}); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() {
					ended <- feed.follow(ctx, func(pod *corev1.Pod, _ bool) { told = append(told, pod.ResourceVersion) })
				}()
				time.Sleep(time.Minute)
				cancel()
				err = <-ended
				if diff := cmp.Diff(tc.told, told); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.from, server.from); diff != "" {
					t.Errorf("asked for (-want +got):\n%s", diff)
				}
				if got := warning.String(); !strings.HasPrefix(got, tc.warning) || (tc.warning == "") != (got == "") {
					t.Errorf("warning %q, want %q", got, tc.warning)
				}
				if tc.failed == "" && err != nil || tc.failed != "" && (err == nil || err.Error() != tc.failed) {
					t.Errorf("failed with %v, want %q", err, tc.failed)
				}
			})
		})
	}
}
