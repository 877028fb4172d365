// SPDX-License-Identifier: Apache-2.0

//go:build long

package workload

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

const (
	// soakDefault is the duration of the soak if SOAK is not set.
	soakDefault = 30 * time.Second
	// soakRound is the duration of faults before all workloads have to recover.
	soakRound = time.Minute
	// soakPatience is how long the recovery may take: a pod that has failed often is replaced after 5 minutes.
	soakPatience = 7 * time.Minute
	// soakPause is the mean time between two troubles.
	soakPause = 700 * time.Millisecond
)

// TestSoak runs four services and three jobs on nodes that fail, for the duration SOAK (default 30s): pods exit, are
// deleted and become unready for a while, nodes become unreachable and recover, users delete and scale, and
// muster-controller and muster-scheduler are killed. After every minute the faults pause until all workloads are
// available. Then: no replica was terminated twice for one breach, early, or without having been available; a failure
// of a job was one restart, as its pods show, within maxRestarts; no object is incomplete or left behind.
func TestSoak(t *testing.T) {
	length := soakDefault
	if text := os.Getenv("SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	s := &soak{
		world: newWorldFor(t, 10, 2*length+2*soakPatience), random: rand.New(rand.NewPCG(seed, 9)),
		lost: map[string]time.Time{}, count: map[string]int{},
	}
	s.seen = s.watchSoak()
	for i := range 7 {
		s.slots = append(s.slots, soakSlot{name: fmt.Sprintf("soak%d", i), training: i >= 4})
	}
	began := time.Now()
	for rounds := 1; ; rounds++ {
		s.trouble(min(soakRound, length-time.Since(began)))
		s.calm()
		if t.Failed() || time.Since(began) >= length {
			t.Logf("seed %d, %s, %d rounds: %v; attempts: %v", seed, time.Since(began).Round(time.Second), rounds, s.count, s.seen.reasons())
			break
		}
		t.Logf("%s: %v; attempts: %v", time.Since(began).Round(time.Second), s.count, s.seen.reasons())
	}
	for _, slot := range s.slots {
		if err := s.client.Delete(s.ctx, s.set(slot.name)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	s.untilGone()
}

// soak is a fleet in use.
type soak struct {
	*world
	random *rand.Rand
	slots  []soakSlot
	lost   map[string]time.Time // until when nodes do not answer
	sick   []soakPatient
	seen   *soakSeen
	count  map[string]int // number of events by kind, for the log
}

// soakSlot is a set that is created again when it is gone.
type soakSlot struct {
	name     string
	training bool
}

// soakPatient is a pod that is not ready for a while.
type soakPatient struct {
	name  string
	until time.Time
}

func (s *soak) set(name string) *v1alpha1.PodCliqueSet {
	return &v1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
}

func (s *soak) likely(one, of int) bool { return s.random.IntN(of) < one }

// between returns a random duration.
func (s *soak) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)))
}

// fill creates the sets that are not there.
func (s *soak) fill() {
	s.t.Helper()
	for _, slot := range s.slots {
		err := s.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: slot.name}, &v1alpha1.PodCliqueSet{})
		if !apierrors.IsNotFound(err) {
			s.must(err, "reading "+slot.name)
			continue
		}
		set := s.service(slot.name)
		if slot.training {
			set = s.job(slot.name)
		}
		s.must(s.persist(func() error { return client.IgnoreAlreadyExists(s.client.Create(s.ctx, set)) }), "creating "+slot.name)
		s.count["set created"]++
	}
}

// service is eightGPUs with random minimums and delays. One of eight has none.
func (s *soak) service(name string) *v1alpha1.PodCliqueSet {
	set := s.parse(fmt.Sprintf(eightGPUs, name, ""))
	set.Spec.Template.PodCliqueScalingGroupConfigs[0].MinAvailable = ptr.To(int32(1 + s.random.IntN(2)))
	if s.likely(7, 8) {
		set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: s.between(time.Second, 8*time.Second).Truncate(time.Second)}
		if s.likely(1, 2) {
			set.Spec.Template.PodCliqueScalingGroupConfigs[0].TerminationDelay = s.duration("2s")
		}
	}
	s.soften(set)
	return set
}

// job is trainingJob with random limits.
func (s *soak) job(name string) *v1alpha1.PodCliqueSet {
	set := s.parse(fmt.Sprintf(trainingJob, ""))
	set.Name, set.Spec.Replicas = name, int32(1+s.random.IntN(2))
	limits := &v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(1 + s.random.IntN(6))), TTLSecondsAfterFinished: ptr.To(int32(s.random.IntN(10)))}
	if s.likely(1, 3) {
		limits.MaxRuntime = &metav1.Duration{Duration: s.between(20*time.Second, 2*time.Minute)}
	}
	if s.likely(1, 3) {
		set.Spec.Template.TerminationDelay = s.duration("3s")
	}
	set.Spec.TrainingSpec = limits
	s.soften(set)
	return set
}

// soften gives some cliques a minimum below their replicas, and lets pods terminate quickly, also on lost nodes.
func (s *soak) soften(set *v1alpha1.PodCliqueSet) {
	evicted := s.likely(1, 2)
	for _, c := range set.Spec.Template.Cliques {
		if s.likely(1, 3) {
			c.Spec.MinAvailable = ptr.To[int32](1)
		}
		c.Spec.PodSpec.TerminationGracePeriodSeconds = ptr.To[int64](1)
		if evicted {
			c.Spec.PodSpec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](2)}}
		}
	}
}

// trouble has something happen again and again.
func (s *soak) trouble(length time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(length); time.Now().Before(end) && !s.t.Failed(); {
		s.fill()
		s.recover(time.Now())
		if !s.userActs() {
			s.somethingFails()
		}
		<-time.After(time.Duration(s.random.ExpFloat64() * float64(soakPause))) // the instant of the next
	}
}

// recover restores the nodes and pods whose faults are due to end.
func (s *soak) recover(now time.Time) {
	s.t.Helper()
	for _, node := range s.nodes {
		if until, is := s.lost[node]; is && now.After(until) {
			delete(s.lost, node)
			s.must(cp.RestoreNode(s.ctx, node), "restoring "+node)
		}
	}
	s.sick = slices.DeleteFunc(s.sick, func(p soakPatient) bool {
		if now.Before(p.until) {
			return false
		}
		s.annotate(p.name, controlplane.ReadyAnnotation, "true")
		return true
	})
}

// annotate sets annotations for the fake kubelet on a pod, unless the pod is gone.
func (s *soak) annotate(pod, key, value string) {
	s.t.Helper()
	s.must(client.IgnoreNotFound(cp.AnnotatePod(s.ctx, s.namespace, pod, map[string]string{key: value})), "annotating "+pod)
}

// running returns the pods that run on nodes that answer.
func (s *soak) running() []corev1.Pod {
	return slices.DeleteFunc(s.pods(), func(p corev1.Pod) bool {
		_, lost := s.lost[p.Spec.NodeName]
		return lost || p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil
	})
}

// somethingFails makes a random pod, node or program fail.
func (s *soak) somethingFails() {
	s.t.Helper()
	pods := s.running()
	if len(pods) == 0 {
		return
	}
	pod := pods[s.random.IntN(len(pods))]
	switch what := s.random.IntN(100); {
	case what < 45:
		s.count["pod not ready"]++
		s.annotate(pod.Name, controlplane.ReadyAnnotation, "false")
		s.sick = append(s.sick, soakPatient{pod.Name, time.Now().Add(s.between(500*time.Millisecond, 15*time.Second))})
	case what < 60:
		s.count["pod fails"]++
		s.annotate(pod.Name, controlplane.ExitCodeAnnotation, []string{"1", "137"}[s.random.IntN(2)])
	case what < 72:
		s.count["pod succeeds"]++
		s.annotate(pod.Name, controlplane.ExitCodeAnnotation, "0")
	case what < 82:
		s.count["pod deleted"]++
		s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, &pod)), "deleting a pod")
	case what < 88:
		if node := pod.Spec.NodeName; len(s.lost) < 3 {
			s.count["node lost"]++
			s.lost[node] = time.Now().Add(s.between(time.Second, 25*time.Second))
			s.must(cp.LoseNode(s.ctx, node), "losing "+node)
		}
	case what < 97:
		s.count["controller killed"]++
		controller.Kill()
		<-time.After(s.between(0, 2*time.Second)) // it is not restarted immediately
		s.must(cp.Restart(s.ctx, controller), "starting muster-controller")
	default:
		s.count["scheduler killed"]++
		scheduler.Kill()
		s.must(cp.Restart(s.ctx, scheduler), "starting muster-scheduler")
	}
}

// userActs has a user do something, now and then, and reports whether one did.
func (s *soak) userActs() bool {
	s.t.Helper()
	slot := s.slots[s.random.IntN(len(s.slots))]
	switch what := s.random.IntN(100); {
	case what < 4: // of a replica of a set, of one of a group, or alone
		s.count["PodCliques deleted"]++
		list := &v1alpha1.PodCliqueList{}
		s.must(s.client.List(s.ctx, list, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelPartOf: slot.name}), "listing PodCliques")
		of := []string{"-0", "-0-model-1", "-0-router", "-0-ring-0", "-0-launcher"}[s.random.IntN(5)]
		for i := range list.Items {
			if name := list.Items[i].Name; len(name) >= len(slot.name+of) && name[:len(slot.name+of)] == slot.name+of {
				s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, &list.Items[i])), "deleting "+name)
			}
		}
	case what < 7 && !slot.training:
		s.count["group scaled"]++
		group := &v1alpha1.PodCliqueScalingGroup{}
		err := s.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: slot.name + "-0-model"}, group)
		if err == nil {
			err = s.persist(func() error { return s.tryScale(groups, group.Name, int(*group.Spec.MinAvailable)+s.random.IntN(3)) })
		}
		s.must(client.IgnoreNotFound(err), "scaling a group")
	case what < 8:
		s.count["set deleted"]++
		s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, s.set(slot.name))), "deleting a set")
	case what < 11 && slot.training:
		s.count["job succeeds"]++
		for _, p := range s.running() {
			if p.Labels[v1alpha1.LabelPartOf] == slot.name {
				s.annotate(p.Name, controlplane.ExitCodeAnnotation, "0")
			}
		}
	default:
		return false
	}
	return true
}

// calm ends all faults, waits until all workloads are available, and checks the observations.
func (s *soak) calm() {
	s.t.Helper()
	s.recover(time.Now().Add(time.Hour))
	began := time.Now()
	s.untilWhole()
	s.t.Logf("whole after %s", time.Since(began).Round(100*time.Millisecond))
	s.seen.check(s.t)
}
