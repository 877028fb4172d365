// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/rounds"
)

// The mean time between events of each kind in the soak: per pod, node or set, or in total. Pods and nodes fail every
// few days or weeks.
const (
	soakPodMTBF       = 4 * 24 * time.Hour
	soakNodeMTBF      = 3 * 7 * 24 * time.Hour
	soakUserEvery     = 5 * 24 * time.Hour // per set: a user deletes, scales or edits something
	soakCrashEvery    = 8 * time.Hour
	soakSchedulerEach = 12 * time.Hour
	soakLagEvery      = 3 * time.Hour // a cache is held back
	// soakCalm is the time without faults at the end of each day, after which all workloads have to be available:
	// restarts and replacements are delayed by at most 5 minutes.
	soakCalm = 20 * time.Minute
	// soakStatusLimit bounds the status of any object, in bytes of JSON.
	soakStatusLimit = 8 << 10
)

// TestSoak simulates many sets, Inference and Training, on nodes that fail: pods exit, are evicted and become unready
// for a while, nodes become unreachable and recover, users delete, scale and edit, the controllers and the scheduler
// crash, and caches lag. No replica is terminated twice for one breach, early, or without having been available; a
// failure of a job is one restart, and a job does not exceed maxRestarts; after a time without faults all sets are
// available; and neither objects nor memory are left behind. With ROUNDS of 20 or more it is 50 sets and a month,
// otherwise 10 sets and 5 days.
func TestSoak(t *testing.T) {
	sets, days := 10, 5
	if rounds.Exhaustive() {
		sets, days = 50, 30
	}
	s := soakFleet(t, 1, sets, days)
	for _, what := range []string{"PodCliqueSet Termination", "PodCliqueScalingGroup Termination", "PodCliqueSet Restart"} {
		if s.count[what] == 0 {
			t.Errorf("there was no attempt of the kind %s", what)
		}
	}
}

// soak is a simulated cluster with its sets and faults.
type soak struct {
	*Cluster
	random *rand.Rand
	events []soakEvent // by time
	slots  []soakSlot
	lost   map[string]bool
	sick   map[types.UID]*corev1.Pod
	jobs   soakJobs
	count  map[string]int // number of events by kind, for the log
}

// soakSlot is a set that is created again, under another name, when it is gone.
type soakSlot struct {
	name       string
	generation int
	training   bool
}

type soakEvent struct {
	at time.Duration
	do func()
}

// soakFleet runs this many sets for this many days. The seed determines the whole run.
func soakFleet(t *testing.T, seed int64, sets, days int) *soak {
	t.Helper()
	must(t, registerMetrics()) // before the first value is counted
	s := &soak{
		random: rand.New(rand.NewSource(seed)), lost: map[string]bool{}, sick: map[types.UID]*corev1.Pod{},
		jobs: soakJobs{}, count: map[string]int{},
	}
	defer func() { t.Logf("seed %d, %d sets, %d days: %v", seed, sets, days, s.count) }()
	s.Cluster = New(t, Options{Nodes: Nodes(2*sets+4, 8), Check: s.check(both(invariants(), both(terminations(), overdue())))})
	s.API.watch(s.tally)
	s.Kubelet.Linger, s.Kubelet.LingerUpTo = time.Second, 40*time.Second
	s.Kubelet.Skew = skewed(seed)
	for i := range sets {
		s.slots = append(s.slots, soakSlot{training: i%3 == 2})
		s.at(time.Duration(s.random.Int63n(int64(10*time.Minute))), func() { s.fill(i) })
	}
	pods := 8 * sets
	s.every(soakPodMTBF/time.Duration(pods), "pod fails", s.podFails)
	s.every(soakNodeMTBF/time.Duration(2*sets+4), "node lost", s.nodeFails)
	s.every(soakUserEvery/time.Duration(sets), "user acts", s.userActs)
	s.every(soakCrashEvery, "controller crashes", func() { s.CrashAfterWrites(s.random.Intn(20)) })
	s.every(soakSchedulerEach, "scheduler restarts", s.RestartScheduler)
	s.every(soakLagEvery, "cache lags", s.lag)
	for day := range days {
		end := time.Duration(day+1) * 24 * time.Hour
		for len(s.events) > 0 && s.events[0].at < end {
			next := s.events[0]
			s.events = s.events[1:]
			s.Advance(max(0, next.at-s.Elapsed()))
			next.do()
		}
		s.calm(end)
		s.whole()
	}
	for _, set := range All[*v1alpha1.PodCliqueSet](s.Cluster) {
		s.Delete(set)
	}
	s.Advance(soakCalm)
	wantNothing(s.Cluster)
	if n := underWay(s); n != 0 {
		s.Fatalf("nothing is there, and the metric says that %v replicas are being replaced", n)
	}
	if n := s.scheduler.entries(); n > newEntries(s) {
		s.Fatalf("the scheduler keeps %d entries of nothing", n)
	}
	// The controllers drop state of deleted objects by its age, when they reconcile another object.
	s.Create(podCliqueSet())
	s.Advance(soakCalm)
	s.whole()
	s.count["steps"], s.count["crashes"] = s.Steps, s.Crashes
	return s
}

// at schedules an event at a time since the cluster began.
func (s *soak) at(at time.Duration, do func()) {
	i, _ := slices.BinarySearchFunc(s.events, at, func(e soakEvent, at time.Duration) int {
		return cmp.Or(cmp.Compare(e.at, at), -1) // after those of the same time
	})
	s.events = slices.Insert(s.events, i, soakEvent{at, do})
}

func (s *soak) in(wait time.Duration, do func()) { s.at(s.Elapsed()+wait, do) }

// every schedules events at random times with this mean distance.
func (s *soak) every(mean time.Duration, what string, do func()) {
	s.in(time.Duration(s.random.ExpFloat64()*float64(mean)), func() {
		s.count[what]++
		do()
		s.every(mean, what, do)
	})
}

// between returns a random duration.
func (s *soak) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int63n(int64(most-least)))
}

func (s *soak) likely(one, of int) bool { return s.random.Intn(of) < one }

// fill creates the set of a slot, and checks every hour whether it is gone.
func (s *soak) fill(i int) {
	slot := &s.slots[i]
	s.in(time.Hour, func() { s.fill(i) })
	if s.exists(slot.name) {
		return
	}
	slot.generation++
	var set *v1alpha1.PodCliqueSet
	if slot.training {
		set = s.newJob()
		slot.name = fmt.Sprintf("job-%d-%d", i, slot.generation)
		s.in(s.between(6*time.Hour, 48*time.Hour), func() { s.finish(set.Name) })
	} else {
		set = s.newService()
		slot.name = fmt.Sprintf("chat-%d-%d", i, slot.generation)
	}
	set.Name = slot.name
	s.count["set created"]++
	s.Create(set)
}

// exists reports whether there is a set of that name.
func (s *soak) exists(name string) bool {
	return slices.ContainsFunc(All[*v1alpha1.PodCliqueSet](s.Cluster), func(set *v1alpha1.PodCliqueSet) bool { return set.Name == name })
}

// newService returns chat with random minimums and delays. One of eight has no delay.
func (s *soak) newService() *v1alpha1.PodCliqueSet {
	set := podCliqueSet()
	for _, clique := range set.Spec.Template.Cliques {
		if s.likely(1, 3) {
			clique.Spec.MinAvailable = ptr.To(int32(1))
		}
	}
	group := &set.Spec.Template.PodCliqueScalingGroupConfigs[0]
	group.MinAvailable = ptr.To(int32(1 + s.random.Intn(2)))
	if s.likely(1, 5) {
		set.Spec.Replicas = 2
	}
	if s.likely(7, 8) {
		set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: s.between(time.Minute, 30*time.Minute)}
		if s.likely(1, 2) {
			group.TerminationDelay = &metav1.Duration{Duration: s.between(time.Minute, 30*time.Minute)}
		}
	}
	return set
}

// newJob returns a job with random limits.
func (s *soak) newJob() *v1alpha1.PodCliqueSet {
	limits := v1alpha1.TrainingSpec{
		MaxRestarts: ptr.To(int32(s.random.Intn(5))), TTLSecondsAfterFinished: ptr.To(int32(s.random.Intn(7200)))}
	if s.likely(1, 3) {
		limits.MaxRuntime = &metav1.Duration{Duration: s.between(6*time.Hour, 36*time.Hour)}
	}
	set := trainingSet(int32(1+s.random.Intn(2)), limits)
	if s.likely(1, 3) {
		set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: s.between(time.Minute, 10*time.Minute)}
	}
	return set
}

// finish makes the running pods of a job exit with 0, again until all pods have succeeded.
func (s *soak) finish(name string) {
	for _, pod := range s.running() {
		if pod.Labels[v1alpha1.LabelPartOf] == name {
			must(s.t, s.Kubelet.Exit(pod, 0))
		}
	}
	for _, set := range All[*v1alpha1.PodCliqueSet](s.Cluster) {
		if set.Name == name && set.Status.CompletionTime == nil {
			s.in(time.Hour, func() { s.finish(name) })
		}
	}
}

// running returns the pods that run on reachable nodes.
func (s *soak) running() []*corev1.Pod {
	return slices.DeleteFunc(All[*corev1.Pod](s.Cluster), func(p *corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || s.lost[p.Spec.NodeName]
	})
}

// podFails makes a random pod fail in a random way.
func (s *soak) podFails() {
	pods := s.running()
	if len(pods) == 0 {
		return
	}
	pod := pods[s.random.Intn(len(pods))]
	switch s.random.Intn(8) {
	case 0:
		must(s.t, s.Kubelet.Exit(pod, 1))
	case 1:
		must(s.t, s.Kubelet.Exit(pod, 137))
	case 2:
		must(s.t, s.Kubelet.Evict(pod))
	case 3:
		s.Delete(pod)
	default:
		must(s.t, s.Kubelet.FailReadiness(pod))
		s.sick[pod.UID] = pod
		s.in(s.between(10*time.Second, time.Hour), func() { s.cure(pod) })
	}
	if s.likely(1, 3) {
		s.lag()
	}
	if s.likely(1, 10) {
		s.CrashAfterWrites(s.random.Intn(10))
	}
}

func (s *soak) cure(pod *corev1.Pod) {
	s.Kubelet.PassReadiness(pod)
	delete(s.sick, pod.UID)
}

// nodeFails makes a random node unreachable, for a minute up to some hours.
func (s *soak) nodeFails() {
	name := fmt.Sprintf("n%d", s.random.Intn(len(All[*corev1.Node](s.Cluster))))
	if s.lost[name] {
		return
	}
	s.lost[name] = true
	s.Timeline.say("node " + name + " does not answer")
	must(s.t, s.Kubelet.LoseNode(name))
	wait := s.between(time.Minute, 10*time.Minute)
	if s.likely(1, 2) {
		wait = s.between(10*time.Minute, 4*time.Hour)
	}
	s.in(wait, func() { s.restore(name) })
}

func (s *soak) restore(name string) {
	if !s.lost[name] {
		return
	}
	delete(s.lost, name)
	s.Timeline.say("node " + name + " answers again")
	must(s.t, s.Kubelet.RestoreNode(name))
}

// soakKinds are the kinds whose caches lag.
var soakKinds = []client.Object{
	&corev1.Pod{}, &v1alpha1.PodClique{}, &v1alpha1.PodCliqueScalingGroup{}, &v2alpha2.PodGroup{}, &v1alpha1.PodCliqueSet{},
}

// lag holds a cache back for a while.
func (s *soak) lag() {
	kind := soakKinds[s.random.Intn(len(soakKinds))]
	s.HoldBack(kind)
	s.in(s.between(time.Millisecond, 20*time.Second), func() { s.Deliver(kind) })
}

// userActs performs a random action of a user on a random set.
func (s *soak) userActs() {
	sets := All[*v1alpha1.PodCliqueSet](s.Cluster)
	if len(sets) == 0 {
		return
	}
	set := sets[s.random.Intn(len(sets))].DeepCopy()
	training := set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining
	s.Timeline.say("a user acts on " + set.Name)
	switch act := s.random.Intn(6); {
	case act == 0:
		s.Delete(set)
	case act == 1:
		of := []string{"", "0", "0-model-1", "0-router", "0-ring-0", "0-launcher"}
		deleteCliques(s.Cluster, set.Name+"-"+of[s.random.Intn(len(of))])
	case training || set.DeletionTimestamp != nil:
	case act == 2:
		Edit(s.Cluster, set, func(set *v1alpha1.PodCliqueSet) { set.Spec.Replicas = int32(1 + s.random.Intn(2)) })
	case act == 3 && set.Spec.Template.TerminationDelay != nil:
		Edit(s.Cluster, set, func(set *v1alpha1.PodCliqueSet) {
			set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: s.between(time.Minute, 30*time.Minute)}
		})
	default:
		for _, g := range All[*v1alpha1.PodCliqueScalingGroup](s.Cluster) {
			if metav1.IsControlledBy(g, set) && g.DeletionTimestamp == nil {
				Edit(s.Cluster, g.DeepCopy(), func(g *v1alpha1.PodCliqueScalingGroup) {
					g.Spec.Replicas = *g.Spec.MinAvailable + int32(s.random.Intn(3))
				})
			}
		}
	}
}

// calm ends all faults at a time, for a while: nodes are reachable, pods are ready, and caches are up to date.
func (s *soak) calm(from time.Duration) {
	s.Advance(max(0, from-s.Elapsed()))
	s.Timeline.say("nothing happens from now on, for a while")
	for _, name := range slices.Sorted(maps.Keys(s.lost)) {
		s.restore(name)
	}
	for _, pod := range s.sick {
		s.cure(pod)
	}
	s.Deliver(soakKinds...)
	s.Advance(soakCalm)
}

// check returns the check that runs after every step that changed an object or moved the clock.
func (s *soak) check(others func(*Cluster) error) func(*Cluster) error {
	version, elapsed := int64(-1), time.Duration(-1)
	return func(c *Cluster) error {
		if version == c.API.version && elapsed == c.Elapsed() {
			return nil
		}
		version, elapsed = c.API.version, c.Elapsed()
		if err := others(c); err != nil {
			return err
		}
		return s.jobs.check(c)
	}
}

// tally counts the attempts that are raised.
func (s *soak) tally(c Change) {
	if c.Old == nil || c.New == nil {
		return
	}
	before := map[int32]int32{}
	for _, entry := range attemptsOf(c.Old) {
		before[entry.Index] = entry.Attempt
	}
	for _, entry := range attemptsOf(c.New) {
		if entry.Attempt > before[entry.Index] {
			s.count[c.GVK.Kind+" "+entry.Reason]++
		}
	}
}

func attemptsOf(o client.Object) []v1alpha1.ReplicaAttempt {
	switch o := o.(type) {
	case *v1alpha1.PodCliqueSet:
		return o.Status.ReplicaAttempts
	case *v1alpha1.PodCliqueScalingGroup:
		return o.Status.ReplicaAttempts
	}
	return nil
}

// soakJobs is the observed state of jobs, by their UIDs.
type soakJobs map[types.UID]*soakJob

type soakJob struct {
	attempts map[int32]int32 // by replica
	restarts int32           // attempts that were raised because of a failure
}

// check returns an error unless each raise of an attempt of a job is one of restartCount, and restartCount is within
// maxRestarts.
func (j soakJobs) check(c *Cluster) error {
	for _, set := range All[*v1alpha1.PodCliqueSet](c) {
		if set.Spec.WorkloadType != v1alpha1.WorkloadTypeTraining {
			continue
		}
		seen := j[set.UID]
		if seen == nil {
			seen = &soakJob{attempts: map[int32]int32{}}
			j[set.UID] = seen
		}
		for _, entry := range set.Status.ReplicaAttempts {
			switch before := seen.attempts[entry.Index]; {
			case entry.Attempt == before:
			case entry.Attempt != before+1:
				return fmt.Errorf("replica %d of job %s went from attempt %d to %d", entry.Index, set.Name, before, entry.Attempt)
			case entry.Reason == v1alpha1.ReasonRestart:
				seen.restarts++
			}
			seen.attempts[entry.Index] = entry.Attempt
		}
		if got := set.Status.RestartCount; got != seen.restarts || got > ptr.Deref(set.Spec.TrainingSpec.MaxRestarts, 0) {
			return fmt.Errorf("job %s: restartCount is %d, its replicas were restarted %d times", set.Name, got, seen.restarts)
		}
	}
	return nil
}

// whole fails the test unless all sets are available, or are jobs that have finished, and no other objects exist.
func (s *soak) whole() {
	s.t.Helper()
	want := map[string]int{} // objects by kind
	for _, set := range All[*v1alpha1.PodCliqueSet](s.Cluster) {
		s.wholeSet(set, want)
	}
	got := map[string]int{}
	for _, gvk := range s.API.kinds() {
		for _, o := range s.API.tables[gvk].ordered {
			got[gvk.Kind]++
			if set := o.GetLabels()[v1alpha1.LabelPartOf]; set != "" && !s.exists(set) {
				s.Fatalf("%s is left of set %s, which is gone", describe(o), set)
			}
			if st := status(o); st.IsValid() && gvk.Group != "" {
				if text, err := json.Marshal(st.Interface()); err != nil || len(text) > soakStatusLimit {
					s.Fatalf("the status of %s has %d bytes (%v): %s", describe(o), len(text), err, text)
				}
			}
			if o.GetDeletionTimestamp() != nil {
				s.Fatalf("%s is being deleted since %s, finalizers %v", describe(o), o.GetDeletionTimestamp(), o.GetFinalizers())
			}
		}
	}
	for _, kind := range []string{v1alpha1.KindPodClique, v1alpha1.KindPodCliqueScalingGroup} {
		if got[kind] != want[kind] {
			s.Fatalf("%d objects of kind %s, want %d", got[kind], kind, want[kind])
		}
	}
	fresh, objects := newEntries(s), 0
	for _, n := range got {
		objects += n
	}
	// A new scheduler has seen no pod wait, and therefore does not have the pools of gangs in which pods waited. These
	// remain with the gang, empty, as three lists of its groups.
	pools := 0
	for _, pg := range All[*v2alpha2.PodGroup](s.Cluster) {
		pools += 1 + 3*(len(pg.Spec.SubGroups)+1)
	}
	if n := s.scheduler.entries(); n > fresh+pools {
		s.Fatalf("the scheduler keeps %d entries; one that starts now %d, and the pools of gangs have up to %d", n, fresh, pools)
	}
	if n := underWay(s); n != 0 {
		s.Fatalf("the metric says that %v replicas are being replaced", n)
	}
	if n := s.process.entries(); n > 3*objects {
		s.Fatalf("the controllers keep %d entries of %d objects", n, objects)
	}
}

// wholeSet fails the test unless a set is available, and counts the objects that are wanted for it.
func (s *soak) wholeSet(set *v1alpha1.PodCliqueSet, want map[string]int) {
	s.t.Helper()
	training := set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining
	phase := set.Status.Phase
	over := training && (phase == v1alpha1.PodCliqueSetPhaseFailed || phase == v1alpha1.PodCliqueSetPhaseSucceeded)
	if !training && !meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionAvailable) {
		s.Fatalf("set %s is not available: %+v", set.Name, set.Status.Conditions)
	}
	if training && !over && phase != v1alpha1.PodCliqueSetPhaseRunning {
		s.Fatalf("job %s is %s: %+v", set.Name, phase, set.Status.Conditions)
	}
	if n := len(set.Status.ReplicaAttempts); n > int(set.Spec.Replicas) {
		s.Fatalf("set %s of %d replicas has the attempts of %d", set.Name, set.Spec.Replicas, n)
	}
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](s.Cluster) {
		if metav1.IsControlledBy(g, set) && len(g.Status.ReplicaAttempts) > int(g.Spec.Replicas) {
			s.Fatalf("scaling group %s of %d replicas has the attempts of %d", g.Name, g.Spec.Replicas, len(g.Status.ReplicaAttempts))
		}
	}
	for _, clique := range All[*v1alpha1.PodClique](s.Cluster) {
		if clique.Labels[v1alpha1.LabelPartOf] != set.Name {
			continue
		}
		if !over && meta.IsStatusConditionTrue(clique.Status.Conditions, v1alpha1.ConditionMinAvailableBreached) {
			s.Fatalf("PodClique %s is in breach: %+v", clique.Name, clique.Status)
		}
		running, succeeded := int32(0), lifecycle.ParseIndices(clique.Status.SucceededIndices).Len()
		for _, pod := range podsOf(s.Cluster, clique.Name) {
			ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
			switch {
			case ended && len(pod.Finalizers) > 0:
				s.Fatalf("pod %s has ended, and has finalizers %v", pod.Name, pod.Finalizers)
			case !ended && over:
				s.Fatalf("pod %s of job %s, which is %s, is %s", pod.Name, set.Name, phase, pod.Status.Phase)
			case !ended && !workload.IsReady(pod):
				s.Fatalf("pod %s is not ready", pod.Name)
			case !ended:
				running++
			}
		}
		if !over && running+int32(succeeded) != clique.Spec.Replicas {
			s.Fatalf("PodClique %s has %d pods that run, want %d", clique.Name, running, clique.Spec.Replicas)
		}
	}
	// A replica has a standalone PodClique and a scaling group with a leader and workers; a replica of a job has
	// workers only.
	want[v1alpha1.KindPodCliqueScalingGroup] += int(set.Spec.Replicas)
	want[v1alpha1.KindPodClique] += int(set.Spec.Replicas)
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](s.Cluster) {
		if metav1.IsControlledBy(g, set) {
			want[v1alpha1.KindPodClique] += int(g.Spec.Replicas) * len(g.Spec.CliqueNames)
		}
	}
}

// registerMetrics registers the controllers' metrics, as muster-controller does.
var registerMetrics = sync.OnceValue(metrics.Register)

// underWay returns the metric of the number of replicas that are being replaced, of sets and scaling groups.
func underWay(s *soak) float64 {
	s.t.Helper()
	must(s.t, registerMetrics())
	families, err := ctrlmetrics.Registry.Gather()
	must(s.t, err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() == "muster_replica_replacements_under_way" {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// newEntries returns the number of entries of a scheduler that starts now.
func newEntries(s *soak) int {
	fresh := newScheduler(s.API)
	defer fresh.stop()
	fresh.registry.RecordPodsEnded(nil, s.Clock.Now()) // the last time is remembered
	return fresh.entries()
}

// entries returns the number of entries in the maps and lists of the scheduler's registry.
func (s *scheduler) entries() int {
	return entries(reflect.ValueOf(s.registry), map[unsafe.Pointer]bool{})
}

// entries returns the number of entries in the maps and lists of the controllers.
func (p *process) entries() int {
	sum, seen := 0, map[unsafe.Pointer]bool{}
	for _, c := range p.controllers {
		sum += entries(reflect.ValueOf(c.Reconciler).Elem().FieldByName("Do"), seen)
	}
	return sum
}

// entries counts the entries of maps and lists that are reachable through types of the controllers and of the
// scheduler.
func entries(v reflect.Value, seen map[unsafe.Pointer]bool) int {
	switch v.Kind() {
	case reflect.Interface:
		return entries(v.Elem(), seen)
	case reflect.Pointer:
		if v.IsNil() || seen[v.UnsafePointer()] || v.Elem().Kind() != reflect.Struct {
			return 0
		}
		seen[v.UnsafePointer()] = true
		return entries(v.Elem(), seen)
	case reflect.Map:
		sum := v.Len()
		for it := v.MapRange(); it.Next(); {
			sum += entries(it.Value(), seen)
		}
		return sum
	case reflect.Slice:
		sum := v.Len()
		for i := range v.Len() {
			sum += entries(v.Index(i), seen)
		}
		return sum
	case reflect.Struct:
		if m := (&sync.Map{}); v.Type() == reflect.TypeOf(m).Elem() && v.CanAddr() {
			sum := 0
			(*sync.Map)(v.Addr().UnsafePointer()).Range(func(any, any) bool { sum++; return true })
			return sum
		}
		path := v.Type().PkgPath()
		if !strings.Contains(path, "/muster/pkg/controllers") && !strings.Contains(path, "/muster/pkg/scheduler") {
			return 0
		}
		sum := 0
		for i := range v.NumField() {
			sum += entries(v.Field(i), seen)
		}
		return sum
	}
	return 0
}
