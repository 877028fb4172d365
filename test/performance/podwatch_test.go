// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

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
