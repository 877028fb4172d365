// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// watched is chat with a termination delay, and optionally a delay of its scaling group; 0: that of the set.
func watched(delay, override time.Duration) *v1alpha1.PodCliqueSet {
	set := podCliqueSet()
	set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: delay}
	if override > 0 {
		set.Spec.Template.PodCliqueScalingGroupConfigs[0].TerminationDelay = &metav1.Duration{Duration: override}
	}
	return set
}

// newWatched returns a cluster with room for the set only, on which the set is available.
func newWatched(t *testing.T, set *v1alpha1.PodCliqueSet, seed int64) *Cluster {
	t.Helper()
	c := New(t, Options{Nodes: Nodes(2, 4), Seed: seed, Interleaved: seed%2 == 1, Check: both(invariants(), terminations())})
	c.Kubelet.Linger = 30 * time.Second
	c.Timeline.Say("a set is created that fills the cluster")
	c.Create(set)
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	return c
}

// both combines two checks.
func both(a, b func(*Cluster) error) func(*Cluster) error {
	return func(c *Cluster) error {
		if err := a(c); err != nil {
			return err
		}
		return b(c)
	}
}

// uids returns the pods' UIDs by host name.
func uids(c *Cluster) map[string]types.UID {
	m := map[string]types.UID{}
	for _, pod := range All[*corev1.Pod](c) {
		m[pod.Spec.Hostname] = pod.UID
	}
	return m
}

// wantReplaced fails the test unless exactly the pods whose host names have one of the prefixes were replaced.
func wantReplaced(c *Cluster, before map[string]types.UID, prefixes ...string) {
	c.t.Helper()
	after := uids(c)
	for _, host := range slices.Sorted(maps.Keys(before)) {
		replaced := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(host, p) })
		if (after[host] != before[host]) != replaced {
			c.Fatalf("pod %s: replaced is %v, want %v", host, !replaced, replaced)
		}
	}
}

// fail makes the readiness probe of the first pod of a PodClique fail.
func fail(c *Cluster, clique string) *corev1.Pod {
	c.t.Helper()
	pod := podsOf(c, clique)[0]
	if err := c.Kubelet.FailReadiness(pod); err != nil {
		c.Fatalf("%v", err)
	}
	return pod
}

// answering returns the names of the nodes that exist and answer.
func answering(c *Cluster) map[string]bool {
	answers := map[string]bool{}
	for _, node := range All[*corev1.Node](c) {
		answers[node.Name] = !workload.UnreachableNode(node)
	}
	return answers
}

// loseReadyPods makes the node of a pod stop answering, without a change of its pods: they stay Ready until somebody
// acts. isDeleted: the node is deleted; otherwise it has the taint.
func loseReadyPods(c *Cluster, pod *corev1.Pod, isDeleted bool) {
	c.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}
	if isDeleted {
		c.Timeline.Say("node %s is deleted", node.Name)
		c.Delete(node)
		return
	}
	c.Timeline.Say("node %s has the taint of unreachable nodes", node.Name)
	Edit(c, node, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	})
}

// shortage records since when PodCliques and scaling groups have been continuously below their minimum, and which of
// them have ever had it, according to their pods.
type shortage struct {
	since     map[string]time.Time
	available map[string]bool
	// unknownIsUp: a pod of which nothing is known is up: one that runs on a node that does not answer, or that waits
	// for a scheduler that stands still, and is not being deleted.
	unknownIsUp bool
}

func newShortage() shortage {
	return shortage{since: map[string]time.Time{}, available: map[string]bool{}}
}

// mayRun reports whether a pod ran when something was heard of it last, and is not being deleted.
func mayRun(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
}

// mayStart reports whether a pod waits for a scheduler that stands still, or does nothing for its gang.
func mayStart(c *Cluster, pod *corev1.Pod) bool {
	s := c.scheduler
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil &&
		(!s.stopped.IsZero() || s.deaf != "" && s.deaf == pod.Annotations[v2alpha2.PodGroupAnnotation])
}

// see records whether a PodClique or scaling group is available now.
func (s shortage) see(key string, available bool, now time.Time) {
	if available {
		s.available[key] = true
		delete(s.since, key)
	} else if _, ok := s.since[key]; !ok {
		s.since[key] = now
	}
}

// justifies reports whether a PodClique or scaling group that was available has been below its minimum for a delay.
func (s shortage) justifies(key string, delay time.Duration, now time.Time) bool {
	since, ok := s.since[key]
	return ok && s.available[key] && !since.Add(delay).After(now)
}

// observe records the state of the pods. A group counts as another one in each attempt of its set replica.
func (s shortage) observe(c *Cluster) {
	ready, answers := map[types.UID]int32{}, answering(c)
	suspends := func(p *lifecycle.Progress) bool { // not after a pause of 10 minutes
		return p.Open() && (p.PausedSince.IsZero() || c.Clock.Now().Before(p.PausedSince.Add(10*time.Minute)))
	}
	for _, pod := range All[*corev1.Pod](c) {
		if ref := metav1.GetControllerOf(pod); ref != nil && (isUp(pod) && answers[pod.Spec.NodeName] || s.unknownIsUp && (mayRun(pod) && !answers[pod.Spec.NodeName] || mayStart(c, pod))) {
			ready[ref.UID]++
		}
	}
	members := map[string]int{} // available members of scaling-group replicas
	for _, clique := range All[*v1alpha1.PodClique](c) {
		available := clique.DeletionTimestamp == nil && ready[clique.UID] >= workload.Minimum(clique).Enforced()
		s.see(string(clique.UID), available, c.Clock.Now())
		if clique.Labels[v1alpha1.LabelPodCliqueScalingGroup] != "" && workload.HasTurn(clique) || suspends(workload.CliqueProgress(clique)) {
			delete(s.since, string(clique.UID)) // a PodClique that is being updated is not terminated
		}
		if available {
			members[fmt.Sprintf("%s/%d/%d", clique.Labels[v1alpha1.LabelPodCliqueScalingGroup], workload.Attempt(clique).Set, workload.GroupReplicaIndex(clique))]++
		}
	}
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		key, available := fmt.Sprintf("%s/%d", g.Name, workload.GroupAttempt(g, 0).Set), int32(0)
		for j := range int(g.Spec.Replicas) {
			if members[fmt.Sprintf("%s/%d", key, j)] == len(g.Spec.CliqueNames) {
				available++
			}
		}
		s.see(key, available >= lifecycle.GroupMinimum(g.Spec.MinAvailable, g.Spec.Replicas), c.Clock.Now())
		if suspends(workload.GroupProgress(g)) {
			delete(s.since, key)
		}
	}
}

// shortestDelays returns the shortest termination delay in each set that has one.
func shortestDelays(c *Cluster) map[string]time.Duration {
	delays := map[string]time.Duration{}
	for _, set := range All[*v1alpha1.PodCliqueSet](c) {
		if d := set.Spec.Template.TerminationDelay; d != nil {
			delays[set.Name] = d.Duration
			for _, g := range set.Spec.Template.PodCliqueScalingGroupConfigs {
				if g.TerminationDelay != nil {
					delays[set.Name] = min(delays[set.Name], g.TerminationDelay.Duration)
				}
			}
		}
	}
	return delays
}

// terminations returns the check that runs after every step: a replica is terminated only if a PodClique of the attempt
// that ends, or a scaling group in it, was available, has been continuously below its minimum for the shortest delay
// that applies, and still is. So no replica is terminated twice for one breach, early, or without having been
// available.
func terminations() func(*Cluster) error {
	short := newShortage()
	attempts := map[string]int32{} // by owner and index
	return func(c *Cluster) error {
		short.observe(c)
		delays := shortestDelays(c)
		check := func(set, unit string, entry v1alpha1.ReplicaAttempt, causes func() []string) error {
			before := attempts[unit]
			attempts[unit] = entry.Attempt
			if before >= entry.Attempt || entry.Reason != v1alpha1.ReasonTermination {
				return nil
			}
			if entry.Attempt > before+1 {
				return fmt.Errorf("%s went from attempt %d to %d", unit, before, entry.Attempt)
			}
			delay, on := delays[set]
			if on && slices.ContainsFunc(causes(), func(key string) bool { return short.justifies(key, delay, c.Clock.Now()) }) {
				return nil
			}
			return fmt.Errorf("%s was terminated without cause: %s", unit, entry.Message)
		}
		cliques, groups := All[*v1alpha1.PodClique](c), All[*v1alpha1.PodCliqueScalingGroup](c)
		for _, set := range All[*v1alpha1.PodCliqueSet](c) {
			for _, entry := range set.Status.ReplicaAttempts {
				causes := func() (causes []string) {
					for _, clique := range cliques {
						if metav1.IsControlledBy(clique, set) && workload.Attempt(clique).Set == entry.Attempt-1 {
							causes = append(causes, string(clique.UID))
						}
					}
					for _, g := range groups {
						if metav1.IsControlledBy(g, set) {
							causes = append(causes, fmt.Sprintf("%s/%d", g.Name, entry.Attempt-1))
						}
					}
					return causes
				}
				if err := check(set.Name, fmt.Sprintf("replica %d of set %s", entry.Index, set.Name), entry, causes); err != nil {
					return err
				}
			}
		}
		for _, g := range groups {
			for _, entry := range g.Status.ReplicaAttempts {
				causes := func() (causes []string) {
					for _, clique := range cliques {
						if metav1.IsControlledBy(clique, g) && workload.GroupReplicaIndex(clique) == int(entry.Index) &&
							workload.Attempt(clique).Group == entry.Attempt-1 {
							causes = append(causes, string(clique.UID))
						}
					}
					return causes
				}
				unit := fmt.Sprintf("replica %d of group %s in attempt %d", entry.Index, g.Name, g.Status.PodCliqueSetAttempt)
				if err := check(g.Labels[v1alpha1.LabelPartOf], unit, entry, causes); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// A breach that recovers terminates nothing, and the next one has a timer of its own.
func TestBreachThatRecovers(t *testing.T) {
	c := newWatched(t, watched(5*time.Minute, 0), 0)
	before := uids(c)
	c.Timeline.Say("the readiness probe of a router fails")
	pod := fail(c, "chat-0-router")
	c.Advance(4*time.Minute + 50*time.Second)
	c.Timeline.Say("it passes again, ten seconds before the deadline")
	c.Kubelet.PassReadiness(pod)
	c.Advance(5 * time.Minute)
	wantAvailable(c, 8)
	c.Timeline.Say("it fails again, and passes again after two minutes")
	fail(c, "chat-0-router")
	c.Advance(2 * time.Minute)
	c.Kubelet.PassReadiness(pod)
	c.Advance(10 * time.Minute)
	wantAvailable(c, 8)
	wantReplaced(c, before)
	c.Timeline.Golden(t, "breach")
}

// A replica of a scaling group is terminated by the group, while enough others are available.
func TestTerminationOfAGroupReplica(t *testing.T) {
	c := newWatched(t, watched(5*time.Minute, 0), 0)
	before := uids(c)
	c.Timeline.Say("the readiness probe of a worker of replica 1 fails")
	fail(c, "chat-0-model-1-worker")
	c.Advance(10 * time.Minute)
	wantAvailable(c, 8)
	wantReplaced(c, before, "chat-0-model-1-")
	if set, replica := attempts(c); set != 0 || replica != 1 {
		t.Errorf("attempts of the set's and of the group's replica: %d and %d, want 0 and 1", set, replica)
	}
	c.Timeline.Golden(t, "termination-group")
}

// A replica that was replaced and is not available again is not in breach. If the other replica breaks too, too few are
// available: the scaling group is in breach, and the set terminates its whole replica once, including healthy members.
func TestTerminationThatClimbs(t *testing.T) {
	c := newWatched(t, watched(5*time.Minute, 0), 0)
	c.Kubelet.ReadyAfter = time.Hour // pods that start from now on are not ready for long
	before := uids(c)
	podGroup := All[*v2alpha2.PodGroup](c)[0].UID
	c.Timeline.Say("the readiness probe of the leader of replica 1 fails, and pods that start will need an hour to be ready")
	fail(c, "chat-0-model-1-leader")
	c.Advance(20 * time.Minute)
	c.Timeline.Say("the leader of replica 0 fails, too")
	fail(c, "chat-0-model-0-leader")
	c.Advance(20 * time.Minute)
	wantReplaced(c, before, "chat-0-")
	if set, replica := attempts(c); set != 1 || replica != 0 {
		t.Errorf("attempts of the set's and of the group's replica: %d and %d, want 1 and 0", set, replica)
	}
	if All[*v2alpha2.PodGroup](c)[0].UID == podGroup {
		t.Error("the PodGroup of the attempt before is still there")
	}
	c.Timeline.Say("nothing else is terminated until the new pods are ready")
	c.Advance(time.Hour)
	wantAvailable(c, 8)
	if set, replica := attempts(c); set != 1 || replica != 0 {
		t.Errorf("attempts of the set's and of the group's replica: %d and %d, want 1 and 0", set, replica)
	}
	c.Timeline.Golden(t, "termination-climbs")
}

// The breach of a standalone PodClique terminates its replica of the set, and no other.
func TestTerminationByAStandalonePodClique(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(4, 4), Check: both(invariants(), terminations())})
	set := watched(5*time.Minute, 0)
	set.Spec.Replicas = 2
	c.Create(set)
	c.Advance(time.Minute)
	wantAvailable(c, 16)
	before := uids(c)
	fail(c, "chat-1-router")
	c.Advance(4*time.Minute + 58*time.Second)
	wantReplaced(c, before)
	c.Advance(time.Minute)
	wantAvailable(c, 16)
	wantReplaced(c, before, "chat-1-")
}

// The delay of a scaling group applies to its replicas and to its breach, whether it is shorter or longer than the
// set's.
func TestTerminationDelayOverride(t *testing.T) {
	for name, tc := range map[string]struct {
		delay, override time.Duration
		cliques         []string
		want            []string      // host name prefixes of the replaced pods
		after           time.Duration // at least
	}{
		"a replica, shorter":          {time.Hour, time.Minute, []string{"chat-0-model-1-leader"}, []string{"chat-0-model-1-"}, time.Minute},
		"a replica, longer":           {time.Minute, time.Hour, []string{"chat-0-model-1-leader"}, []string{"chat-0-model-1-"}, time.Hour},
		"the group, shorter":          {time.Hour, time.Minute, []string{"chat-0-model-0-leader", "chat-0-model-1-leader"}, []string{"chat-0-"}, time.Minute},
		"the group, longer":           {time.Minute, time.Hour, []string{"chat-0-model-0-leader", "chat-0-model-1-leader"}, []string{"chat-0-"}, time.Hour},
		"a standalone PodClique":      {time.Minute, time.Hour, []string{"chat-0-router"}, []string{"chat-0-"}, time.Minute},
		"both, the set's is shorter":  {time.Minute, time.Hour, []string{"chat-0-router", "chat-0-model-1-leader"}, []string{"chat-0-"}, time.Minute},
		"both, the group's is longer": {2 * time.Minute, time.Hour, []string{"chat-0-model-0-leader", "chat-0-model-1-leader", "chat-0-router"}, []string{"chat-0-"}, 2 * time.Minute},
	} {
		c := newWatched(t, watched(tc.delay, tc.override), 0)
		before := uids(c)
		for _, clique := range tc.cliques {
			fail(c, clique)
		}
		c.Advance(tc.after - time.Second)
		c.t.Log(name)
		wantReplaced(c, before)
		c.Advance(3 * time.Second) // a second to observe the breach, one to round it up
		terminating := 0
		for _, pod := range All[*corev1.Pod](c) {
			if pod.DeletionTimestamp != nil {
				terminating++
			}
		}
		if terminating == 0 {
			t.Errorf("%s: nothing is terminated %s after the deadline", name, 3*time.Second)
		}
		c.Advance(2 * time.Minute)
		wantAvailable(c, 8)
		wantReplaced(c, before, tc.want...)
	}
}

// The delay may be changed, added and removed during a breach. The deadline is the beginning of the breach plus the
// present delay.
func TestTerminationDelayIsEdited(t *testing.T) {
	type edit struct {
		after time.Duration
		delay *metav1.Duration
	}
	minutes := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	for name, tc := range map[string]struct {
		first    *metav1.Duration
		edits    []edit
		deadline time.Duration // 0: never
	}{
		"never given":             {nil, nil, 0},
		"lengthened":              {minutes(5), []edit{{4 * time.Minute, minutes(10)}}, 10 * time.Minute},
		"shortened":               {minutes(10), []edit{{time.Minute, minutes(5)}}, 5 * time.Minute},
		"shortened, to the past":  {minutes(60), []edit{{10 * time.Minute, minutes(5)}}, 10 * time.Minute},
		"removed":                 {minutes(5), []edit{{4 * time.Minute, nil}}, 0},
		"added":                   {nil, []edit{{3 * time.Minute, minutes(5)}}, 5 * time.Minute},
		"removed and given again": {minutes(5), []edit{{4 * time.Minute, nil}, {6 * time.Minute, minutes(8)}}, 8 * time.Minute},
	} {
		for _, clique := range []string{"chat-0-router", "chat-0-model-1-leader"} {
			set := podCliqueSet()
			set.Spec.Template.TerminationDelay = tc.first
			c := newWatched(t, set, 0)
			before, began := uids(c), c.Elapsed()
			fail(c, clique)
			for _, e := range tc.edits {
				c.Advance(began + e.after - c.Elapsed())
				wantReplaced(c, before)
				Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.TerminationDelay = e.delay })
			}
			ended := func() bool {
				return slices.ContainsFunc(All[*corev1.Pod](c), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
			}
			if tc.deadline == 0 {
				c.Advance(24 * time.Hour)
				c.t.Logf("%s, %s", name, clique)
				wantReplaced(c, before)
				found := &v1alpha1.PodClique{}
				must(t, c.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: clique}, found))
				if !meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ConditionMinAvailableBreached) || found.Status.TerminationDeadline != nil {
					t.Errorf("%s, %s: %+v", name, clique, found.Status)
				}
				continue
			}
			c.Advance(began + tc.deadline - time.Second - c.Elapsed())
			if ended() && tc.deadline > tc.edits[len(tc.edits)-1].after {
				t.Errorf("%s, %s: terminated early", name, clique)
			}
			c.Advance(4 * time.Second)
			if !ended() {
				t.Errorf("%s, %s: not terminated", name, clique)
			}
		}
	}
}

// Another gang takes the room that a termination frees, or does not: in the end the set is either admitted or holds no
// GPU.
func TestTerminationBesideARival(t *testing.T) {
	for name, cliques := range map[string][]string{"set replica": {"chat-0-router"}, "group replica": {"chat-0-model-1-leader"}} {
		for seed := range int64(6) {
			c := newWatched(t, watched(5*time.Minute, 0), seed)
			rival := podCliqueSet()
			rival.Name = "rival"
			c.Timeline.Say("a rival of the same size is created")
			c.Create(rival)
			c.Advance(10 * time.Second)
			c.Timeline.Say("a readiness probe fails")
			for _, clique := range cliques {
				fail(c, clique)
			}
			c.Advance(10 * time.Minute)
			bound := map[string]int{}
			for _, pod := range All[*corev1.Pod](c) {
				if pod.Spec.NodeName != "" {
					bound[pod.Annotations[v2alpha2.PodGroupAnnotation]]++
				}
			}
			whole, other := bound["chat-0"] == 8 && bound["rival-0"] == 0, bound["chat-0"] == 0 && bound["rival-0"] >= 5
			if !whole && !(other && name == "set replica") {
				t.Errorf("%s, seed %d: bound pods %v", name, seed, bound)
			}
			if name == "set replica" && seed == 0 {
				c.Timeline.Golden(t, "termination-rival")
			}
		}
	}
}

// A termination has the same result as without a crash, after whichever of its writes the controllers crash.
func TestCrashAfterEachWriteOfATermination(t *testing.T) {
	for _, clique := range []string{"chat-0-router", "chat-0-model-1-leader"} {
		for n := 0; ; n++ {
			c := newWatched(t, watched(time.Minute, 0), 0)
			c.Kubelet.Linger = 10 * time.Second
			before := uids(c)
			fail(c, clique)
			c.CrashAfterWrites(n)
			c.Advance(3 * time.Minute)
			wantAvailable(c, 8)
			prefix := "chat-0-"
			if clique != "chat-0-router" {
				prefix = "chat-0-model-1-"
			}
			wantReplaced(c, before, prefix)
			if set, replica := attempts(c); set+replica != 1 {
				t.Fatalf("%s, crash after %d writes: attempts %d and %d, want one raised by one", clique, n, set, replica)
			}
			if c.Crashes == 0 {
				if n < 15 {
					t.Errorf("only %d writes were made", n)
				}
				break
			}
		}
	}
}

// A termination has the same result as without a restart, at whichever step the controllers are restarted.
func TestRestartAtEveryStepOfATermination(t *testing.T) {
	for _, clique := range []string{"chat-0-router", "chat-0-model-1-leader"} {
		for n := 0; ; n += 7 {
			c := newWatched(t, watched(time.Minute, 0), 0)
			c.Kubelet.Linger = 10 * time.Second
			begins, restarted, check := c.Steps, false, c.options.Check
			c.options.Check = func(c *Cluster) error {
				if !restarted && c.Steps-begins > n {
					restarted = true
					c.Restart()
				}
				return check(c)
			}
			fail(c, clique)
			c.Advance(3 * time.Minute)
			wantAvailable(c, 8)
			if set, replica := attempts(c); set+replica != 1 {
				t.Fatalf("%s, restart at step %d: attempts %d and %d, want one raised by one", clique, n, set, replica)
			}
			if !restarted {
				if n < 100 {
					t.Errorf("only %d steps were made", n)
				}
				break
			}
		}
	}
}

// A stale cache terminates nothing: the set's delay was removed, or the pods recovered.
func TestTerminationWithHeldBackCaches(t *testing.T) {
	for name, tc := range map[string]struct {
		held client.Object
		save func(c *Cluster, pod *corev1.Pod)
	}{
		"the delay was removed": {&v1alpha1.PodCliqueSet{}, func(c *Cluster, _ *corev1.Pod) {
			Edit(c, podCliqueSet(), func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.TerminationDelay = nil })
		}},
		"the pod recovered":       {&corev1.Pod{}, func(c *Cluster, pod *corev1.Pod) { c.Kubelet.PassReadiness(pod) }},
		"the PodClique recovered": {&v1alpha1.PodClique{}, func(c *Cluster, pod *corev1.Pod) { c.Kubelet.PassReadiness(pod) }},
	} {
		for _, clique := range []string{"chat-0-router", "chat-0-model-1-leader"} {
			c := newWatched(t, watched(time.Minute, 0), 0)
			before := uids(c)
			pod := fail(c, clique)
			c.Advance(58 * time.Second)
			c.HoldBack(tc.held)
			tc.save(c, pod)
			c.Advance(time.Minute)
			c.t.Logf("%s, %s", name, clique)
			wantReplaced(c, before)
			c.Deliver(tc.held)
			c.Advance(time.Minute)
			wantReplaced(c, before)
		}
	}
}

// A termination is one attempt, in whatever order the garbage collector, the scheduler and the controllers observe it:
// pods of the previous attempt do not admit the PodGroup of the new one.
func TestATerminationIsOneAttempt(t *testing.T) {
	for seed := range int64(40) {
		c := newWatched(t, watched(time.Minute, 0), seed)
		c.Kubelet.Linger = 0
		fail(c, "chat-0-router")
		c.Advance(3 * time.Minute)
		wantAvailable(c, 8)
		if set, replica := attempts(c); set != 1 || replica != 0 {
			c.Fatalf("seed %d: attempts of the set's and of the group's replica: %d and %d, want 1 and 0", seed, set, replica)
		}
	}
}
