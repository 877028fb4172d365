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

	"github.com/muster-project/muster/test/wrappers"
)

func newPodWatch() *podWatch {
	return &podWatch{ended: make(chan struct{}), pods: map[string]seenPod{}, changed: make(chan struct{})}
}

func refusedPod(name string) *corev1.Pod {
	pod := wrappers.MakePod(name, namespace).Obj()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return pod
}

func TestPodWatchKeepsTheFirstTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, began := newPodWatch(), time.Now()
		s.note(wrappers.MakePod("a", namespace).Obj(), false)
		s.note(wrappers.MakePod("filler-00000-0", namespace).Node("n1").Obj(), false)
		time.Sleep(time.Second) // on synctest's clock
		s.note(refusedPod("a"), false)
		time.Sleep(time.Second)
		s.note(wrappers.MakePod("a", namespace).Node("n1").BoundFor("mark").Obj(), false)
		time.Sleep(time.Second)
		s.note(wrappers.MakePod("a", namespace).Node("n1").Label("one", "more").Obj(), false)
		s.note(wrappers.MakePod("b", namespace).Node("n2").Obj(), false)

		want := map[string]seenPod{
			"a": {refused: began.Add(time.Second), bound: began.Add(2 * time.Second)},
			"b": {bound: began.Add(3 * time.Second)},
		}
		if diff := cmp.Diff(want, s.pods, cmp.AllowUnexported(seenPod{})); diff != "" {
			t.Errorf("pods (-want +got):\n%s", diff)
		}
		first, last := s.boundAt([]string{"a", "b"})
		if first != began.Add(2*time.Second) || last != began.Add(3*time.Second) {
			t.Errorf("bound from %s to %s", first.Sub(began), last.Sub(began))
		}
		wantBindings := []binding{{pod: "a", node: "n1", mark: "mark", at: began.Add(2 * time.Second)}, {pod: "b", node: "n2", at: began.Add(3 * time.Second)}}
		if diff := cmp.Diff(wantBindings, s.bindings, cmp.AllowUnexported(binding{})); diff != "" {
			t.Errorf("bindings (-want +got):\n%s", diff)
		}
		s.note(wrappers.MakePod("a", namespace).Node("n1").Obj(), true)
		if _, there := s.pods["a"]; there || len(s.bindings) != 2 {
			t.Error("a pod that is gone is still there, or its binding is not")
		}
	})
}

func TestPodWatchUntil(t *testing.T) {
	t.Parallel()
	ended := errors.New("the scheduler ended")
	for name, test := range map[string]struct {
		stall, most time.Duration
		do          func(s *podWatch, failed chan error) // meanwhile
		want        string                               // "" for done
		took        time.Duration
		late        bool // the error reports that a contestant was too slow
	}{
		"all are bound": {stall: time.Minute, most: time.Hour, took: 3 * time.Second,
			do: func(s *podWatch, _ chan error) {
				for _, name := range []string{"b", "x", "a"} {
					time.Sleep(time.Second)
					s.note(wrappers.MakePod(name, namespace).Node("n").Obj(), false)
				}
			}},
		"nothing changes any more": {stall: time.Minute, most: time.Hour, took: 61 * time.Second, late: true, want: "nothing has changed for 1m0s: of 1 pods 1 are bound and 0 ready",
			do: func(s *podWatch, _ chan error) {
				time.Sleep(time.Second)
				s.note(wrappers.MakePod("a", namespace).Node("n").Obj(), false)
			}},
		"something changes, but not what is waited for": {stall: time.Minute, most: 90 * time.Second, took: 90 * time.Second, late: true, want: "not done after 1m30s: of 1 pods 1 are bound and 0 ready",
			do: func(s *podWatch, _ chan error) {
				time.Sleep(45 * time.Second)
				s.note(wrappers.MakePod("x", namespace).Node("n").Obj(), false)
			}},
		"the scheduler ends": {took: time.Second, want: "the scheduler ended",
			do: func(_ *podWatch, failed chan error) {
				time.Sleep(time.Second)
				failed <- ended
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, failed, began := newPodWatch(), make(chan error, 1), time.Now()
				go test.do(s, failed)
				err := s.until(context.Background(), test.stall, test.most, failed, s.allBound([]string{"a", "b"}))
				if got := time.Since(began); got != test.took {
					t.Errorf("took %s, want %s", got, test.took)
				}
				if err == nil && test.want != "" || err != nil && err.Error() != test.want {
					t.Errorf("got %v, want %q", err, test.want)
				}
				var late unfinished
				if errors.As(err, &late) != test.late {
					t.Errorf("%v: too slow: %v, want %v", err, !test.late, test.late)
				}
			})
		})
	}
}

func TestAllGone(t *testing.T) {
	t.Parallel()
	s := newPodWatch()
	s.note(wrappers.MakePod("a", namespace).Node("n").Obj(), false)
	gone := s.allGone([]string{"a", "b"})
	if gone() {
		t.Error("a is there")
	}
	s.note(wrappers.MakePod("a", namespace).Node("n").Obj(), true)
	if !gone() {
		t.Error("none is there")
	}
}

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
				ended := make(chan error, 1)
				go func() {
					ended <- feed.follow(ctx, func(pod *corev1.Pod, _ bool) { told = append(told, pod.ResourceVersion) })
				}()
				time.Sleep(time.Minute)
				cancel()
				err := <-ended
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
