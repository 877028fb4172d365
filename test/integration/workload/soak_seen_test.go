// SPDX-License-Identifier: Apache-2.0

//go:build long

package workload

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/controlplane"
)

// soakKinds are the kinds of a workload.
var soakKinds = []schema.GroupVersionResource{sets, groups, cliques, podGroups, services, hpas, podsKind}

// soakSeen has the present objects, and all attempts that were observed.
type soakSeen struct {
	changed chan struct{} // has an element if something did since it was read

	mu      sync.Mutex
	objects map[schema.GroupVersionResource][]*unstructured.Unstructured // guarded by mu, as all below
	// attempts are the last recorded attempts in statuses, of replicas of sets and groups. Those of a group restart
	// with each attempt of its set replica.
	attempts map[soakUnit]int32
	raised   []soakRaised
	// available are the PodCliques and scaling groups that ever were available, by name and attempt.
	available map[soakLife]bool
	// owners are those of PodCliques and scaling groups that ever were.
	owners map[types.UID]types.UID
	// lives are the attempts of which there ever was a pod.
	lives map[soakPodLife]bool
	jobs  map[types.UID]*v1alpha1.PodCliqueSet // as they were last
}

// soakUnit is a replica of a set or of a scaling group.
type soakUnit struct {
	owner types.UID
	index int32
	life  int32 // the attempt of the set replica that a scaling group is in
}

// soakRaised is an attempt that was raised.
type soakRaised struct {
	soakUnit
	name    string // of the owner
	ofGroup bool
	entry   v1alpha1.ReplicaAttempt
}

// soakLife is a PodClique or scaling group of an attempt.
type soakLife struct {
	owner   types.UID
	name    string
	attempt lifecycle.Attempt
}

// soakPodLife is an attempt of a set replica, of which a PodClique's pods are.
type soakPodLife struct {
	clique  types.UID
	replica string
	attempt int32
}

// watchSoak watches all that a workload consists of, until the test is over.
func (s *soak) watchSoak() *soakSeen {
	seen := &soakSeen{
		changed: make(chan struct{}, 1), objects: map[schema.GroupVersionResource][]*unstructured.Unstructured{},
		attempts: map[soakUnit]int32{}, available: map[soakLife]bool{},
		owners: map[types.UID]types.UID{}, lives: map[soakPodLife]bool{}, jobs: map[types.UID]*v1alpha1.PodCliqueSet{},
	}
	ctx, cancel := context.WithCancel(s.ctx)
	var watches sync.WaitGroup
	for _, kind := range soakKinds {
		watches.Go(func() {
			_ = controlplane.Until(ctx, s.dynamic.Resource(kind).Namespace(s.namespace), metav1.ListOptions{}, func(objects []*unstructured.Unstructured) bool {
				seen.observe(kind, objects)
				return false
			})
		})
	}
	s.t.Cleanup(func() { cancel(); watches.Wait() })
	return seen
}

// typed converts objects of a kind to their type.
func typed[T any](objects []*unstructured.Unstructured) []*T {
	list := make([]*T, 0, len(objects))
	for _, o := range objects {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, object); err != nil {
			panic(err)
		}
		list = append(list, object)
	}
	return list
}

func (s *soakSeen) observe(kind schema.GroupVersionResource, objects []*unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[kind] = objects
	switch kind {
	case sets:
		for _, set := range typed[v1alpha1.PodCliqueSet](objects) {
			s.raise(soakRaised{soakUnit: soakUnit{owner: set.UID}, name: set.Name}, set.Status.ReplicaAttempts)
			if set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining {
				s.jobs[set.UID] = set
			}
		}
	case groups:
		for _, g := range typed[v1alpha1.PodCliqueScalingGroup](objects) {
			s.raise(soakRaised{soakUnit: soakUnit{owner: g.UID, life: g.Status.PodCliqueSetAttempt}, name: g.Name, ofGroup: true}, g.Status.ReplicaAttempts)
			owner := metav1.GetControllerOfNoCopy(g)
			if owner == nil {
				continue
			}
			if s.owners[g.UID] = owner.UID; g.Status.WasAvailable {
				s.available[soakLife{owner.UID, g.Name, lifecycle.Attempt{Set: g.Status.PodCliqueSetAttempt}}] = true
			}
		}
	case cliques:
		for _, c := range typed[v1alpha1.PodClique](objects) {
			owner := metav1.GetControllerOfNoCopy(c)
			if owner == nil {
				continue
			}
			if s.owners[c.UID] = owner.UID; c.Status.WasAvailable {
				s.available[soakLife{owner.UID, c.Name, workload.Attempt(c)}] = true
			}
		}
	case podsKind:
		for _, p := range objects {
			if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
				s.lives[soakPodLife{owner.UID, p.GetLabels()[v1alpha1.LabelPodCliqueSetReplicaIndex], workload.Attempt(p).Set}] = true
			}
		}
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// raise records which of the attempts in a status were raised. of identifies their owner. s.mu is held.
func (s *soakSeen) raise(of soakRaised, entries []v1alpha1.ReplicaAttempt) {
	there := map[soakUnit]bool{}
	for _, entry := range entries {
		r := of
		r.index, r.entry = entry.Index, entry
		if entry.Attempt > s.attempts[r.soakUnit] {
			s.raised = append(s.raised, r)
		}
		s.attempts[r.soakUnit], there[r.soakUnit] = entry.Attempt, true
	}
	maps.DeleteFunc(s.attempts, func(unit soakUnit, _ int32) bool { // of replicas that were scaled in
		return unit.owner == of.owner && unit.life == of.life && !there[unit]
	})
}

// reasons returns how many attempts were raised for which reason.
func (s *soakSeen) reasons() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for _, r := range s.raised {
		n[r.entry.Reason]++
	}
	return n
}

var terminationText = regexp.MustCompile(`^(PodClique|PodCliqueScalingGroup) (\S+) was below its minimum from (\S+) to the deadline at (\S+): `)

// check fails the test unless each termination has a breach of its own, past its deadline, of an object that was
// available in that attempt; and each job was restarted as often as its status reports.
func (s *soakSeen) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	type breach struct {
		owner       types.UID
		name, since string
	}
	terminated := map[breach]soakRaised{}
	for _, r := range s.raised {
		if r.entry.Reason == v1alpha1.ReasonTermination {
			text := terminationText.FindStringSubmatch(r.entry.Message)
			if text == nil {
				t.Errorf("%s was terminated because: %q", r.name, r.entry.Message)
				continue
			}
			b := breach{r.owner, text[2], text[3]}
			if before, twice := terminated[b]; twice {
				t.Errorf("%s: attempts %+v and %+v are for one breach", r.name, before.entry, r.entry)
			}
			terminated[b] = r
			deadline, err := time.Parse(time.RFC3339, text[4])
			if err != nil || r.entry.StartedAt.Time.Before(deadline) || text[3] >= text[4] {
				t.Errorf("%s: attempt %+v is early", r.name, r.entry)
			}
			before := lifecycle.Attempt{Set: r.entry.Attempt - 1}
			if r.ofGroup {
				before = lifecycle.Attempt{Set: r.life, Group: r.entry.Attempt - 1}
			}
			if !s.available[soakLife{r.owner, text[2], before}] {
				t.Errorf("%s: attempt %+v, and %s was not seen available in attempt %+v", r.name, r.entry, text[2], before)
			}
		}
	}
	for uid, job := range s.jobs {
		s.checkJob(t, uid, job)
	}
}

// checkJob fails the test unless the attempts of a job that were raised because of a failure, and those of them that
// had pods, are as many as its restartCount. s.mu is held.
func (s *soakSeen) checkJob(t *testing.T, uid types.UID, job *v1alpha1.PodCliqueSet) {
	t.Helper()
	type life struct{ replica, attempt string }
	lives := map[life]bool{}
	for l := range s.lives {
		owner := s.owners[l.clique]
		if owner == uid || s.owners[owner] == uid {
			lives[life{l.replica, fmt.Sprint(l.attempt)}] = true
		}
	}
	reasons := map[life]string{}
	for _, r := range s.raised {
		if r.owner == uid {
			reasons[life{fmt.Sprint(r.index), fmt.Sprint(r.entry.Attempt)}] = r.entry.Reason
		}
	}
	restarts, withoutPods := int32(0), int32(0)
	for l, reason := range reasons {
		if reason != v1alpha1.ReasonRestart {
			continue
		}
		restarts++
		next, _ := strconv.Atoi(l.attempt)
		if !lives[l] && reasons[life{l.replica, fmt.Sprint(next + 1)}] != v1alpha1.ReasonPodCliquesDeleted { // by a user, before it had pods
			withoutPods++
		}
	}
	most := int32(0) // that had no pods yet when the job ended
	if !slices.ContainsFunc(s.objects[sets], func(o *unstructured.Unstructured) bool { return o.GetUID() == uid }) {
		most = job.Spec.Replicas
	}
	got, budget := job.Status.RestartCount, ptr.Deref(job.Spec.TrainingSpec.MaxRestarts, 0)
	if got != restarts || got > budget || withoutPods > most {
		t.Errorf("job %s: restartCount is %d, its replicas were restarted %d times, %d times without pods, and may be %d times: %v, pods of %v",
			job.Name, got, restarts, withoutPods, budget, reasons, lives)
	}
	for l := range lives {
		if l.attempt != "0" && reasons[l] == "" {
			t.Errorf("job %s: there were pods of attempt %s of replica %s, to which it was not raised", job.Name, l.attempt, l.replica)
		}
	}
}

// untilWhole waits until every set is available, or a job that has finished, and no other objects exist.
func (s *soak) untilWhole() {
	s.t.Helper()
	limit := time.After(soakPatience)
	for {
		why := s.seen.notWhole()
		if why == "" {
			return
		}
		select {
		case <-s.seen.changed:
		case <-limit:
			s.t.Fatalf("after %s: %s", soakPatience, why)
		}
	}
}

// notWhole returns the first thing that is not as it should be, "" if there is none.
func (s *soakSeen) notWhole() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	owners, owned := map[types.UID]bool{}, map[string]int{}
	for _, kind := range soakKinds {
		for _, o := range s.objects[kind] {
			if o.GetDeletionTimestamp() != nil {
				return fmt.Sprintf("%s %s is being deleted", kind.Resource, o.GetName())
			}
			owners[o.GetUID()] = true
		}
	}
	for _, kind := range soakKinds {
		for _, o := range s.objects[kind] {
			for _, owner := range o.GetOwnerReferences() {
				if !owners[owner.UID] {
					return fmt.Sprintf("%s %s is left of %s %s, which is gone", kind.Resource, o.GetName(), owner.Kind, owner.Name)
				}
			}
			if set := o.GetLabels()[v1alpha1.LabelPartOf]; kind != sets && set != "" {
				owned[kind.Resource+" of "+set]++
			}
		}
	}
	want := map[string]int{}
	for _, set := range typed[v1alpha1.PodCliqueSet](s.objects[sets]) {
		if why := s.setNotWhole(set, want); why != "" {
			return why
		}
	}
	maps.DeleteFunc(owned, func(what string, _ int) bool { return strings.HasPrefix(what, podsKind.Resource) })
	if !maps.Equal(owned, want) {
		return fmt.Sprintf("there are %v, want %v", owned, want)
	}
	return ""
}

// setNotWhole is notWhole for one set. It adds the objects of the set, except pods, to want. s.mu is held.
func (s *soakSeen) setNotWhole(set *v1alpha1.PodCliqueSet, want map[string]int) string {
	training, phase := set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining, set.Status.Phase
	over := training && (phase == v1alpha1.PodCliqueSetPhaseFailed || phase == v1alpha1.PodCliqueSetPhaseSucceeded)
	if over && set.Spec.TrainingSpec.TTLSecondsAfterFinished != nil {
		return "job " + set.Name + " has ended, and is about to be deleted"
	}
	if !training && !meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionAvailable) || training && phase != v1alpha1.PodCliqueSetPhaseRunning {
		return fmt.Sprintf("set %s is not available: %s %+v", set.Name, phase, set.Status.Conditions)
	}
	if n := len(set.Status.ReplicaAttempts); n > int(set.Spec.Replicas) {
		return fmt.Sprintf("set %s of %d replicas has the attempts of %d", set.Name, set.Spec.Replicas, n)
	}
	count := func(kind schema.GroupVersionResource, n int32) { want[kind.Resource+" of "+set.Name] += int(n) }
	// What is deleted of a replica that has succeeded is not created again.
	succeeded := lifecycle.ParseIndices(set.Status.SucceededIndices)
	hasSucceeded := func(o metav1.Object) bool {
		index, err := strconv.Atoi(o.GetLabels()[v1alpha1.LabelPodCliqueSetReplicaIndex])
		return err == nil && succeeded.Has(index)
	}
	for _, kind := range []schema.GroupVersionResource{groups, podGroups, services} {
		count(kind, set.Spec.Replicas)
	}
	count(cliques, set.Spec.Replicas-int32(succeeded.Len()))
	for _, g := range typed[v1alpha1.PodCliqueScalingGroup](s.objects[groups]) {
		if !metav1.IsControlledBy(g, set) {
			continue
		}
		if n := len(g.Status.ReplicaAttempts); n > int(g.Spec.Replicas) {
			return fmt.Sprintf("group %s of %d replicas has the attempts of %d", g.Name, g.Spec.Replicas, n)
		}
		if !hasSucceeded(g) {
			count(cliques, g.Spec.Replicas*int32(len(g.Spec.CliqueNames)))
		}
	}
	for _, c := range typed[v1alpha1.PodClique](s.objects[cliques]) {
		if c.Labels[v1alpha1.LabelPartOf] != set.Name {
			continue
		}
		if hasSucceeded(c) {
			count(cliques, 1)
		}
		if meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionMinAvailableBreached) {
			return fmt.Sprintf("PodClique %s is in breach: %+v", c.Name, c.Status.Conditions)
		}
		if n := int(s.alive(c)) + lifecycle.ParseIndices(c.Status.SucceededIndices).Len(); n != int(c.Spec.Replicas) {
			return fmt.Sprintf("PodClique %s has %d pods that are ready or have succeeded, wants %d", c.Name, n, c.Spec.Replicas)
		}
	}
	return ""
}

// alive returns how many pods of a PodClique are ready; -1 if a finished one has a finalizer. s.mu is held.
func (s *soakSeen) alive(c *v1alpha1.PodClique) int32 {
	n := int32(0)
	for _, p := range typed[corev1.Pod](s.objects[podsKind]) {
		switch {
		case !metav1.IsControlledBy(p, c):
		case controlplane.PodReady(p):
			n++
		case (p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded) && len(p.Finalizers) > 0:
			return -1
		}
	}
	return n
}
