// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pass advances the clock by the requeue time of the last pass, and reconciles again.
func (s *stage) pass(after time.Duration) time.Duration {
	s.t.Helper()
	s.clock.SetTime(s.clock.Now().Add(after))
	return s.mustReconcile().RequeueAfter
}

// become sets the status of all pods, like kubelets.
func (s *stage) become(ready corev1.ConditionStatus) {
	s.t.Helper()
	for _, p := range s.pods() {
		p.Spec.NodeName = "n"
		s.update(&p)
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		if err := s.api.Status().Update(s.t.Context(), &p); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestStatusIsWrittenInTime: the API server's clock may be minutes ahead of or behind the controller's.
func TestStatusIsWrittenInTime(t *testing.T) {
	for name, skew := range map[string]time.Duration{"clocks agree": 0, "the API server is ahead": 10 * time.Minute, "the API server is behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 2, 2)
			clique := s.clique()
			clique.CreationTimestamp = metav1.NewTime(now.Add(skew))
			s.update(clique)
			stamp := func() {
				for _, p := range s.pods() {
					p.CreationTimestamp = metav1.NewTime(s.clock.Now().Add(skew))
					s.update(&p)
				}
			}

			after := s.pass(0)
			stamp()
			if s.clique().Status.ObservedGeneration != 0 {
				t.Error("the first status was written before its pods had time to become ready")
			}
			if after == 0 || after > 2*time.Second {
				t.Fatalf("the first status is due after %s", after)
			}
			s.pass(after)
			if got := s.clique().Status; got.ObservedGeneration != 1 || got.Replicas != 2 {
				t.Errorf("first status after %s: %+v", after, got)
			}

			s.become(corev1.ConditionFalse)
			after = s.pass(time.Second)
			if after == 0 || after > 4*time.Second {
				t.Fatalf("counts are due after %s", after)
			}
			for range 3 { // passes in between do not postpone it
				after -= after / 4
				after = s.pass(after / 4)
			}
			s.pass(after)
			if got := s.clique().Status; got.ScheduledReplicas != 2 {
				t.Errorf("%d pods are scheduled, want 2", got.ScheduledReplicas)
			}

			s.become(corev1.ConditionTrue)
			s.pass(0)
			if got := s.clique().Status; got.ReadyReplicas != 2 || !got.WasAvailable {
				t.Errorf("the clique became available, and its status is %+v", got)
			}
			s.become(corev1.ConditionFalse)
			s.pass(0)
			if got := s.clique().Status; got.ReadyReplicas != 0 {
				t.Errorf("the clique is no longer available, and its status is %+v", got)
			}
		})
	}
}

// TestFirstStatusIsThatOfReadyPods: pods that are ready soon enough cost one write.
func TestFirstStatusIsThatOfReadyPods(t *testing.T) {
	s := newStage(t, 2, 2)
	s.pass(0)
	s.become(corev1.ConditionTrue)
	s.pass(time.Second)
	if got := s.clique().Status; got.ObservedGeneration != 1 || got.ReadyReplicas != 2 {
		t.Errorf("status %+v", got)
	}
}

// TestAPassCreatesForALimitedTime: a slow API server does not delay the end of a pass, and with it the status.
func TestAPassCreatesForALimitedTime(t *testing.T) {
	s := newStage(t, 4, 4)
	s.refuse = func(*corev1.Pod) error {
		s.clock.SetTime(s.clock.Now().Add(700 * time.Millisecond))
		return nil
	}
	if after := s.pass(0); after != time.Millisecond || len(s.pods()) == 4 {
		t.Errorf("the first pass made %d pods, and is followed by another after %s", len(s.pods()), after)
	}
	for range 3 {
		s.pass(0)
	}
	if len(s.pods()) != 4 || s.clique().Status.ObservedGeneration == 0 {
		t.Errorf("%d pods, status %+v", len(s.pods()), s.clique().Status)
	}
}
