// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/wrappers"
)

// impatient makes the pods of a set count as missing ten seconds after their node has become silent.
func impatient(set *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
	set.Spec.Template.UnreachableGrace = &metav1.Duration{Duration: 10 * time.Second}
	return set
}

// newFleet returns a cluster in which chat, with a termination delay of 20 s, and a job without restarts run. Both are
// impatient.
func newFleet(t *testing.T, nodes []*corev1.Node) *Cluster {
	t.Helper()
	c := New(t, Options{Nodes: nodes, Check: both(invariants(), nothingEndsUnknown())})
	c.Timeline.Say("a service and a job are created")
	c.Create(impatient(watched(20*time.Second, 0)))
	c.Create(impatient(trainingSet(1, v1alpha1.TrainingSpec{})))
	c.Advance(time.Minute)
	wantAvailable(c, 11)
	return c
}

// wantUntouched fails the test unless the pods of before are there, and no others.
func wantUntouched(c *Cluster, before []*corev1.Pod) {
	c.t.Helper()
	now := map[string]bool{}
	for _, pod := range All[*corev1.Pod](c) {
		now[string(pod.UID)] = true
	}
	for _, pod := range before {
		if !now[string(pod.UID)] || len(now) != len(before) {
			c.Fatalf("%d pods were there, %d are; pod %s is there: %t", len(before), len(now), pod.Name, now[string(pod.UID)])
		}
	}
	wantAvailable(c, len(before))
}

// wantTold fails the test unless the condition Available of a set contains a text.
func wantTold(c *Cluster, set, text string) {
	c.t.Helper()
	if available := meta.FindStatusCondition(theSet(c, set).Status.Conditions, v1alpha1.ConditionAvailable); !strings.Contains(available.Message, text) {
		c.Fatalf("set %s: %s, want %q", set, available.Message, text)
	}
}

// Kubelets of all nodes are cut off for longer than every delay: nothing ends.
func TestAllNodesAreSilent(t *testing.T) {
	c := newFleet(t, Nodes(3, 4))
	before := All[*corev1.Pod](c)
	c.Timeline.Say("no kubelet reaches the API server for 81 s")
	for _, node := range Nodes(3, 4) {
		must(t, c.Kubelet.LoseNode(node.Name))
	}
	c.Advance(81 * time.Second)
	wantTold(c, "chat", "3 of 3 nodes do not answer; waiting")
	wantTold(c, "job", "3 of 3 nodes do not answer; waiting")
	c.Timeline.Say("they reach it again")
	for _, node := range Nodes(3, 4) {
		must(t, c.Kubelet.RestoreNode(node.Name))
	}
	c.Advance(time.Minute)
	wantUntouched(c, before)
	c.Timeline.Golden(t, "silent-fleet")
}

// All nodes of a zone are cut off, and those of another with as many pods of the fleet are not: nothing ends.
func TestAZoneIsSilent(t *testing.T) {
	nodes := Nodes(9, 2)
	for i, node := range nodes {
		node.Labels = map[string]string{corev1.LabelTopologyZone: map[bool]string{true: "east", false: "west"}[i < 3]}
	}
	c := newFleet(t, nodes)
	before := All[*corev1.Pod](c)
	c.Timeline.Say("three of the nodes, those of zone east, do not answer for 81 s")
	for i := range 3 {
		must(t, c.Kubelet.LoseNode(nodes[i].Name))
	}
	c.Advance(81 * time.Second)
	wantTold(c, "chat", "3 of 3 nodes of zone east do not answer; waiting")
	c.Timeline.Say("they answer again")
	for i := range 3 {
		must(t, c.Kubelet.RestoreNode(nodes[i].Name))
	}
	c.Advance(time.Minute)
	wantUntouched(c, before)
	c.Timeline.Golden(t, "silent-zone")
}

// Nodes that were cut off together answer again one after the other: those that are still silent when most answer have
// their grace, and nothing ends.
func TestNodesAnswerOneAfterTheOther(t *testing.T) {
	for _, count := range []int{2, 3, 9} {
		t.Run(fmt.Sprintf("%d nodes", count), func(t *testing.T) {
			nodes := Nodes(count, int64(12/count+1))
			c := newFleet(t, nodes)
			before := All[*corev1.Pod](c)
			for _, node := range nodes {
				must(t, c.Kubelet.LoseNode(node.Name))
			}
			c.Advance(81 * time.Second)
			for _, node := range nodes {
				must(t, c.Kubelet.RestoreNode(node.Name))
				c.Advance(4 * time.Second)
			}
			c.Advance(time.Minute)
			wantUntouched(c, before)
		})
	}
}

// The API server is away for 31 s in the middle of an update: no status changes, the programs give up the lead and are
// restarted, and when it is back, all nodes are silent until their kubelets have written again. The update goes on, and
// nothing else ends.
func TestAnUpdateWithoutAPIServer(t *testing.T) {
	for _, into := range []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, 7 * time.Second} {
		nodes := Nodes(3, 4)
		c := New(t, Options{Nodes: nodes, Check: both(invariants(), both(terminations(), nothingEndsUnknown()))})
		c.Create(impatient(watched(20*time.Second, 0)))
		c.Advance(time.Minute)
		before := uids(c)
		image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
		c.Advance(into)
		under := 0
		for host, uid := range uids(c) {
			if before[host] != uid {
				under++
			}
		}
		if under == len(before) {
			c.Fatalf("the update is over after %s", into)
		}
		c.PauseControllers()
		c.StopScheduler()
		for _, node := range nodes {
			must(t, c.Kubelet.LoseNode(node.Name))
		}
		c.Advance(31 * time.Second)
		c.Restart()
		c.RestartScheduler()
		c.ResumeControllers()
		c.Advance(12 * time.Second)
		for _, node := range nodes {
			must(t, c.Kubelet.RestoreNode(node.Name))
			c.Advance(time.Second)
		}
		c.Advance(5 * time.Minute)
		wantUpdated(c)
		wantAvailable(c, 8)
		if set := theSet(c, "chat"); len(set.Status.ReplicaAttempts) > 0 {
			c.Fatalf("attempts %+v", set.Status.ReplicaAttempts)
		}
	}
}

// A single node does not answer: after its grace the service is terminated, and the job is restarted without using a
// restart.
func TestASingleSilentNode(t *testing.T) {
	for name, tc := range map[string]struct {
		away time.Duration
		ends bool
	}{"longer than the grace": {2 * time.Minute, true}, "shorter": {9 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			c := newFleet(t, Nodes(8, 2))
			before := All[*corev1.Pod](c)
			node := podsOf(c, "chat-0-router")[0].Spec.NodeName
			must(t, c.Kubelet.LoseNode(node))
			other := podsOf(c, "job-0-launcher")[0].Spec.NodeName
			if other != node {
				must(t, c.Kubelet.LoseNode(other))
			}
			c.Advance(tc.away)
			must(t, c.Kubelet.RestoreNode(node))
			if other != node {
				must(t, c.Kubelet.RestoreNode(other))
			}
			c.Advance(2 * time.Minute)
			if !tc.ends {
				wantUntouched(c, before)
				return
			}
			wantAvailable(c, 11)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
			for set, reason := range map[string]string{"chat": v1alpha1.ReasonTermination, "job": v1alpha1.ReasonNodesLost} {
				if got := theSet(c, set).Status.ReplicaAttempts; len(got) != 1 || got[0].Reason != reason {
					c.Fatalf("%s: attempts %+v, want one of reason %s", set, got, reason)
				}
			}
		})
	}
}

// The peers of a pod whose node does not answer exit, because they wait for it. If the node is lost, the restart uses
// none. If it answers again within its grace, the peers have failed. Nothing is decided before.
func TestPeersOfASilentNode(t *testing.T) {
	for name, tc := range map[string]struct {
		silent string // the PodClique of whose first pod the node does not answer
		back   bool
	}{
		"lost, of the launcher": {"job-0-launcher", false},
		"lost, of a worker":     {"job-0-ring-0-worker", false},
		"back, of the launcher": {"job-0-launcher", true},
		"back, of a worker":     {"job-0-ring-0-worker", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(8, 1), Check: both(invariants(), nothingEndsUnknown())})
			c.Create(impatient(trainingSet(1, v1alpha1.TrainingSpec{})))
			c.Advance(time.Minute)
			node := podsOf(c, tc.silent)[0].Spec.NodeName
			must(t, c.Kubelet.LoseNode(node))
			c.Advance(2 * time.Second)
			for _, pod := range All[*corev1.Pod](c) {
				if pod.Spec.NodeName != node {
					must(t, c.Kubelet.Exit(pod, 1))
				}
			}
			c.Advance(7 * time.Second)
			wantJob(c, v1alpha1.PodCliqueSetPhasePending, 0, "")
			wantTold(c, "job", "node "+node+" does not answer; waiting until 2026-01-01T00:01:10Z")
			if tc.back {
				must(t, c.Kubelet.RestoreNode(node))
				c.Advance(time.Minute)
				wantJob(c, v1alpha1.PodCliqueSetPhaseFailed, 0, v1alpha1.ReasonMaxRestartsExceeded)
				return
			}
			c.Advance(2 * time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
			if got := theSet(c, "job").Status.ReplicaAttempts; len(got) != 1 || got[0].Reason != v1alpha1.ReasonNodesLost {
				c.Fatalf("attempts %+v", got)
			}
		})
	}
}

// A node that comes and goes ends nothing as long as it is not away for its grace.
func TestANodeThatFlaps(t *testing.T) {
	c := newFleet(t, Nodes(8, 2))
	before := All[*corev1.Pod](c)
	for range 20 {
		must(t, c.Kubelet.LoseNode("n0"))
		c.Advance(9 * time.Second)
		must(t, c.Kubelet.RestoreNode("n0"))
		c.Advance(30 * time.Second)
	}
	wantUntouched(c, before)
}

// A pod whose kubelet says that it is not ready is missing, although its node has just answered again.
func TestAnUnreadyPodOnANodeThatIsBack(t *testing.T) {
	c := newFleet(t, Nodes(8, 2))
	pod := podsOf(c, "chat-0-router")[0]
	must(t, c.Kubelet.LoseNode(pod.Spec.NodeName))
	c.Advance(5 * time.Second)
	must(t, c.Kubelet.RestoreNode(pod.Spec.NodeName))
	c.Advance(4 * time.Second)
	must(t, c.Kubelet.FailReadiness(pod))
	c.Advance(3 * time.Second)
	for _, q := range All[*v1alpha1.PodClique](c) {
		if q.Name == "chat-0-router" && q.Status.MinAvailableBreachedSince == nil {
			c.Fatalf("no breach: %+v", q.Status.Conditions)
		}
	}
}

// A Node object is deleted and registered again three seconds later: nothing ends.
func TestANodeIsRegisteredAgain(t *testing.T) {
	c := newFleet(t, Nodes(6, 2))
	before := All[*corev1.Pod](c)
	for _, node := range []string{"n0", "n1", "n2"} {
		c.Timeline.Say("Node %s is deleted, and registered again", node)
		must(t, c.Kubelet.DeleteNode(node))
		c.Advance(3 * time.Second)
		must(t, c.Kubelet.RestoreNode(node))
		c.Advance(20 * time.Second)
	}
	wantUntouched(c, before)
	c.Timeline.Golden(t, "node-registered-again")
}

// A Node object is deleted for good: its pods are lost when the garbage collector of pods has deleted them. The job is
// restarted without using a restart.
func TestANodeIsDeleted(t *testing.T) {
	c := newFleet(t, Nodes(8, 2))
	must(t, c.Kubelet.DeleteNode(podsOf(c, "job-0-launcher")[0].Spec.NodeName))
	c.Advance(5 * time.Minute)
	wantAvailable(c, 11)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	if got := theSet(c, "job").Status.ReplicaAttempts; len(got) != 1 || got[0].Reason != v1alpha1.ReasonNodesLost {
		c.Fatalf("attempts %+v", got)
	}
}

// The scheduler stands still while a pod is replaced: the healthy pods of its replica stay, and the status says who
// does not answer. When it continues, the replacement starts.
func TestASilentScheduler(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(4, 4), Check: both(invariants(), nothingEndsUnknown())})
	c.Timeline.Say("a service is created")
	c.Create(watched(30*time.Second, 0))
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	c.StopScheduler()
	c.Timeline.Say("a router is deleted")
	gone := podsOf(c, "chat-0-router")[0]
	c.Delete(gone.DeepCopy())
	c.Advance(10 * time.Minute)
	wantTold(c, "chat", "muster-scheduler has not answered since 2026-01-01T00:01:00Z (Lease muster-system/muster-scheduler)")
	c.ContinueScheduler()
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	if set, replica := attempts(c); set != 0 || replica != 0 {
		c.Fatalf("attempts %d and %d, want none", set, replica)
	}
	c.Timeline.Golden(t, "silent-scheduler")
}

// A scaling group is created again below its minimum while the scheduler stands still: its other replica stays.
func TestASilentSchedulerAndAGroupBelowItsMinimum(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(4, 4), Check: both(invariants(), nothingEndsUnknown())})
	set := watched(30*time.Second, 0)
	set.Spec.Template.PodCliqueScalingGroupConfigs[0].MinAvailable = new(int32)
	*set.Spec.Template.PodCliqueScalingGroupConfigs[0].MinAvailable = 2
	c.Create(set)
	c.Advance(time.Minute)
	c.StopScheduler()
	deleteCliques(c, "chat-0-model-1")
	c.Advance(10 * time.Minute)
	if got := len(podsOf(c, "chat-0-model-0-worker")); got != 2 || theSet(c, "chat").Status.ReplicaAttempts != nil {
		c.Fatalf("%d workers of replica 0, and attempts %+v", got, theSet(c, "chat").Status.ReplicaAttempts)
	}
	c.ContinueScheduler()
	c.Advance(time.Minute)
	wantAvailable(c, 8)
}

// A scheduler that runs and cannot place a pod has answered: the deadline holds.
func TestASchedulerWithoutRoomHasAnswered(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Create(watched(30*time.Second, 0))
	c.Advance(time.Minute)
	cordon(c, true)
	c.Delete(podsOf(c, "chat-0-router")[0].DeepCopy())
	c.Advance(3 * time.Minute)
	if set, _ := attempts(c); set != 1 {
		c.Fatalf("attempt %d of the set, want 1", set)
	}
}

// The leader stands still for 24 s, in which a pod is not ready for a while. When it continues, its cache shows that
// one event after the other: it reports no breach of the past.
func TestALeaderThatStoodStill(t *testing.T) {
	for _, seed := range seeds(10) {
		c := New(t, Options{Nodes: Nodes(4, 4), Seed: seed, Check: func(c *Cluster) error {
			for _, q := range All[*v1alpha1.PodClique](c) {
				if q.Status.MinAvailableBreachedSince != nil {
					return fmt.Errorf("PodClique %s: %+v", q.Name, q.Status.Conditions)
				}
			}
			return nil
		}})
		c.Create(watched(time.Minute, 0))
		c.Advance(time.Minute)
		wantAvailable(c, 8)
		c.PauseControllers()
		c.Advance(2 * time.Second)
		pod := fail(c, "chat-0-router")
		c.Advance(10 * time.Second)
		c.Kubelet.PassReadiness(pod)
		c.Advance(12 * time.Second)
		c.ResumeControllers()
		c.Advance(time.Minute)
		wantAvailable(c, 8)
	}
}

// nothingEndsUnknown returns the check that a replica is terminated or restarted, or a job fails, only if one of its
// PodCliques is below its minimum for certain: also if all pods of which nothing is known were up. Source:
// docs/decisions, T9.
func nothingEndsUnknown() func(*Cluster) error {
	w := &unknownWatch{since: map[string]time.Time{}, attempts: map[string]int32{}, failed: map[string]bool{}}
	return func(c *Cluster) error {
		w.observeNodes(c)
		if err := w.check(c); err != nil {
			return err
		}
		w.pods, w.cliques = All[*corev1.Pod](c), All[*v1alpha1.PodClique](c) // before the next step, which may delete some
		return nil
	}
}

// unknownWatch is the state of the check that nothing ends because of what is not known.
type unknownWatch struct {
	since    map[string]time.Time // nodes that do not answer
	attempts map[string]int32     // by owner and replica
	failed   map[string]bool      // jobs
	pods     []*corev1.Pod
	cliques  []*v1alpha1.PodClique
}

// observeNodes records which nodes do not answer.
func (w *unknownWatch) observeNodes(c *Cluster) {
	answers := answering(c)
	for _, pod := range All[*corev1.Pod](c) {
		if name := pod.Spec.NodeName; name != "" && !answers[name] && w.since[name].IsZero() {
			w.since[name] = c.Clock.Now().Truncate(time.Second)
		}
	}
	for name := range w.since {
		if answers[name] {
			delete(w.since, name)
		}
	}
}

func (w *unknownWatch) check(c *Cluster) error {
	raised := func(owner, set string, replica int, attempts []v1alpha1.ReplicaAttempt, of func(index int32) int) error {
		for _, a := range attempts {
			key := fmt.Sprintf("%s/%d", owner, a.Index)
			if w.attempts[key] == a.Attempt {
				continue
			}
			w.attempts[key] = a.Attempt
			ends := a.Reason == v1alpha1.ReasonTermination || a.Reason == v1alpha1.ReasonRestart || a.Reason == v1alpha1.ReasonNodesLost
			if ends && !w.misses(c, set, max(replica, of(a.Index)), a.Reason == v1alpha1.ReasonRestart) {
				return fmt.Errorf("replica %d of %s ends although nothing is known to be missing: %s %s", a.Index, owner, a.Reason, a.Message)
			}
		}
		return nil
	}
	for _, set := range All[*v1alpha1.PodCliqueSet](c) {
		if err := raised("set "+set.Name, set.Name, -1, set.Status.ReplicaAttempts, func(i int32) int { return int(i) }); err != nil {
			return err
		}
		if workload.FailedReason(set) == v1alpha1.ReasonMaxRestartsExceeded && !w.failed[set.Name] {
			w.failed[set.Name] = true
			if !w.misses(c, set.Name, -1, true) {
				return fmt.Errorf("job %s fails although nothing is known to be missing: %+v", set.Name, set.Status.Conditions)
			}
		}
	}
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		owner := fmt.Sprintf("group %s in attempt %d", g.Name, g.Status.PodCliqueSetAttempt)
		replica := naming.LabelIndex(g.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
		if err := raised(owner, g.Labels[v1alpha1.LabelPartOf], replica, g.Status.ReplicaAttempts, func(int32) int { return -1 }); err != nil {
			return err
		}
	}
	return nil
}

// misses reports whether a PodClique of a replica of a set was below its minimum for certain before the latest step.
// -1: of any replica. isFailure: and its pods failed for themselves, because no node of the replica was silent that may
// be lost.
func (w *unknownWatch) misses(c *Cluster, set string, replica int, isFailure bool) bool {
	sets := All[*v1alpha1.PodCliqueSet](c)
	i := slices.IndexFunc(sets, func(s *v1alpha1.PodCliqueSet) bool { return s.Name == set })
	grace := lostAfter
	if g := workload.UnreachableGrace(sets[i]); g != nil {
		grace = *g
	}
	indexOf := func(o client.Object) int {
		return naming.LabelIndex(o.GetLabels(), v1alpha1.LabelPodCliqueSetReplicaIndex)
	}
	waits := map[int]bool{} // replicas that wait for a node
	for _, pod := range w.pods {
		if isFailure && pod.Labels[v1alpha1.LabelPartOf] == set && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && w.isUnknown(c, pod, grace) {
			waits[indexOf(pod)] = true
		}
	}
	for _, q := range w.cliques {
		if waits[indexOf(q)] || q.Labels[v1alpha1.LabelPartOf] != set || replica >= 0 && indexOf(q) != replica {
			continue
		}
		up := lifecycle.ParseIndices(q.Status.SucceededIndices)
		for _, pod := range w.pods {
			if owner(pod) != q.UID || pod.DeletionTimestamp != nil {
				continue
			}
			isUp := isUp(pod) || workload.IsTraining(q) && (pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodSucceeded)
			if silent := !w.since[pod.Spec.NodeName].IsZero(); !silent && isUp || w.isUnknown(c, pod, grace) {
				up = up.Union(lifecycle.Indices(workload.PodIndex(q.Name, pod)))
			}
		}
		if int32(up.Len()) < workload.Minimum(q).Enforced() {
			return true
		}
	}
	return false
}

// isUnknown reports whether it is not known whether a pod runs, or will run.
func (w *unknownWatch) isUnknown(c *Cluster, pod *corev1.Pod, grace time.Duration) bool {
	now := c.Clock.Now()
	if workload.HasEnded(pod) {
		return false
	}
	if pod.Spec.NodeName == "" {
		stopped := c.scheduler.stopped
		answered := slices.ContainsFunc(pod.Status.Conditions, func(p corev1.PodCondition) bool { return p.Type == corev1.PodScheduled })
		return len(pod.Spec.SchedulingGates) == 0 && (!answered || !stopped.IsZero() && now.Sub(stopped) >= 30*time.Second)
	}
	since := w.since[pod.Spec.NodeName]
	if since.IsZero() {
		return false
	}
	together, others, seen := 0, 0, map[string]bool{}
	for _, p := range w.pods {
		node := p.Spec.NodeName
		if node == "" || seen[node] || workload.HasEnded(p) {
			continue
		}
		seen[node] = true
		switch at := w.since[node]; {
		case at.IsZero() || at.After(since.Add(5*time.Minute)):
			others++
		case !at.Before(since.Add(-5 * time.Minute)):
			together++
		}
	}
	return now.Before(since.Add(grace)) || together > 2 && together > others
}

// Three nodes do not answer when an update begins, and answer again within their grace: the update has replaced none of
// their pods, no replica of a scaling group with such a pod, and nothing that is ready, since too few others are. Then
// it goes on.
func TestUpdateLeavesWhatDoesNotAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		set    *v1alpha1.PodCliqueSet
		edited []string
		lost   []string // a pod of each of these PodCliques
		pods   int
	}{
		"pods": {wrappers.MakePodCliqueSet("chat", "ns").Clique("web", 8, wrappers.MinAvailable(7), wrappers.GPUs(1)).Obj(),
			[]string{"web"}, []string{"chat-0-web", "chat-0-web", "chat-0-web"}, 8},
		"replicas of a group": {wrappers.MakePodCliqueSet("chat", "ns").Clique("leader", 1, wrappers.GPUs(1)).Clique("worker", 1, wrappers.GPUs(1)).
			ScalingGroup("model", 6, 5, "leader", "worker").Obj(),
			[]string{"leader", "worker"}, []string{"chat-0-model-0-leader", "chat-0-model-2-worker", "chat-0-model-4-leader"}, 12},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(16, 1), Check: both(invariants(), both(nothingEndsUnknown(), updates()))})
			tc.set.Spec.Template.UnreachableGrace = &metav1.Duration{Duration: 5 * time.Minute}
			c.Create(tc.set)
			c.Advance(time.Minute)
			wantAvailable(c, tc.pods)
			before := identities[*corev1.Pod](c)
			for i, clique := range tc.lost {
				pods := podsOf(c, clique)
				must(t, c.Kubelet.LoseNode(pods[i%len(pods)].Spec.NodeName))
			}
			c.Advance(5 * time.Second)
			image(c, podCliqueSet(), "registry.example/main:2", tc.edited...)
			c.Advance(time.Minute)
			after := identities[*corev1.Pod](c)
			for pod, uid := range before {
				if after[pod] != uid {
					t.Errorf("pod %s was replaced, while too few others were available", pod)
				}
			}
			for _, node := range All[*corev1.Node](c) {
				must(t, c.Kubelet.RestoreNode(node.Name))
			}
			c.Advance(30 * time.Minute)
			wantUpdated(c)
			wantAvailable(c, tc.pods)
		})
	}
}
