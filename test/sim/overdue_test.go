// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/wrappers"
)

// overdueAfter is the time after a deadline within which a replica has to be terminated, restarted or failed. Caches
// that are held back and crashes of the controllers take some of it.
const overdueAfter = 2 * time.Minute

// overdue returns the check that every cause past its time has its act, the reverse of terminations: what was available
// and is below its minimum for longer than its delay does not stay. Sources: Gang Termination Design Doc, "Detailed
// Flow"; GREP-0285, "Restart orchestration". A PodClique of a scaling group may wait twice: when too few other replicas
// are available, its breach becomes that of the group, with a timer of its own. A pod whose node does not answer may be
// up until it is deleted, and begins the timers of its group again (docs/decisions, T9).
func overdue() func(*Cluster) error {
	short, jobs := newShortage(), newShortage()
	short.unknownIsUp = true
	unknown := map[types.UID]time.Time{} // by scaling group: when nothing was known of a pod of it last
	return func(c *Cluster) error {
		short.observe(c)
		observeUnknown(c, unknown)
		observeJobs(c, jobs)
		now := c.Clock.Now()
		groups := map[types.UID]*v1alpha1.PodCliqueScalingGroup{}
		for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
			groups[g.UID] = g
		}
		for _, set := range All[*v1alpha1.PodCliqueSet](c) {
			if set.DeletionTimestamp != nil || workload.FailedReason(set) != "" || set.Status.CompletionTime != nil {
				continue
			}
			for _, q := range All[*v1alpha1.PodClique](c) {
				g := groups[owner(q)]
				if q.DeletionTimestamp != nil || owner(q) != set.UID && (g == nil || owner(g) != set.UID) {
					continue
				}
				delay, factor := workload.BreachDelay(set, ""), time.Duration(1)
				if g != nil {
					delay = workload.BreachDelay(set, g.Labels[v1alpha1.LabelTemplateName])
				}
				key := string(q.UID)
				if set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining {
					if delay != nil && jobs.justifies(key, *delay+overdueAfter, now) {
						return fmt.Errorf("job %s goes on, and PodClique %s is below its minimum since %s", set.Name, q.Name, jobs.since[key])
					}
					continue
				}
				if g != nil {
					factor = 2
				}
				if g != nil && delay != nil && unknown[g.UID].Add(factor**delay+overdueAfter).After(now) {
					continue
				}
				wasAvailable := q.Status.WasAvailable && (g == nil || g.Status.WasAvailable)
				if delay != nil && wasAvailable && short.justifies(key, factor**delay+overdueAfter, now) {
					return fmt.Errorf("PodClique %s is below its minimum since %s, with a delay of %s, and is not terminated", q.Name, short.since[key], delay)
				}
			}
		}
		return nil
	}
}

// observeUnknown records the scaling groups with a pod that runs as far as is known, on a node that does not answer.
func observeUnknown(c *Cluster, unknown map[types.UID]time.Time) {
	answers, groups := answering(c), map[types.UID]types.UID{}
	for _, q := range All[*v1alpha1.PodClique](c) {
		groups[q.UID] = owner(q)
	}
	for _, pod := range All[*corev1.Pod](c) {
		if mayRun(pod) && !answers[pod.Spec.NodeName] {
			unknown[groups[owner(pod)]] = c.Clock.Now()
		}
	}
}

// observeJobs records which PodCliques of Training workloads have enough pods that run, or may run, or have succeeded.
// One that has not started is not below its minimum yet, and what has failed waits as long as another pod of its
// replica may run on a node that does not answer.
func observeJobs(c *Cluster, jobs shortage) {
	replica := func(o client.Object) string {
		return o.GetLabels()[v1alpha1.LabelPartOf] + "/" + o.GetLabels()[v1alpha1.LabelPodCliqueSetReplicaIndex]
	}
	alive, failed, waits, answers := map[types.UID]map[int]bool{}, map[types.UID]bool{}, map[string]bool{}, answering(c)
	for _, pod := range All[*corev1.Pod](c) {
		uid, index := owner(pod), workload.PodIndex(pod.Labels[v1alpha1.LabelPodClique], pod)
		if alive[uid] == nil {
			alive[uid] = map[int]bool{}
		}
		if mayRun(pod) && !answers[pod.Spec.NodeName] {
			waits[replica(pod)] = true
		}
		switch {
		case pod.Status.Phase == corev1.PodFailed:
			failed[uid] = true
		case mayStart(c, pod):
			alive[uid][index] = true
		case pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodRunning):
			alive[uid][index] = true
		}
	}
	for _, q := range All[*v1alpha1.PodClique](c) {
		if !workload.IsTraining(q) {
			continue
		}
		n := int32(len(alive[q.UID]))
		succeeded := lifecycle.ParseIndices(q.Status.SucceededIndices)
		for i := range int(q.Spec.Replicas) {
			if succeeded.Has(i) && !alive[q.UID][i] {
				n++
			}
		}
		hasStarted := q.Status.StartedIndices != "" || failed[q.UID]
		if n >= workload.Minimum(q).Target() || waits[replica(q)] {
			jobs.see(string(q.UID), true, c.Clock.Now())
		} else if hasStarted {
			jobs.available[string(q.UID)] = true
			jobs.see(string(q.UID), false, c.Clock.Now())
		}
	}
}

// The check finds what it looks for: without muster-controller nothing is terminated or restarted.
func TestOverdueIsFound(t *testing.T) {
	for name, set := range map[string]*v1alpha1.PodCliqueSet{
		"a service": watched(time.Minute, 0),
		"a job": wrappers.MakePodCliqueSet("chat", "ns").Training().
			Clique("router", 2, wrappers.RestartPolicy(corev1.RestartPolicyNever), wrappers.GPUs(1)).Obj(),
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(3, 4)})
			if set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining {
				set.Spec.TrainingSpec = &v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(1))}
			}
			c.Create(set)
			c.Advance(time.Minute)
			check := overdue()
			must(t, check(c))
			c.HoldBack(&corev1.Pod{}, &v1alpha1.PodClique{})
			pod := podsOf(c, "chat-0-router")[0]
			if set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining {
				must(t, c.Kubelet.Exit(pod, 1))
			} else {
				must(t, c.Kubelet.FailReadiness(pod))
			}
			must(t, check(c))
			c.Advance(time.Minute + overdueAfter + time.Second)
			if err := check(c); err == nil {
				t.Error("nothing was found, although the controllers saw nothing")
			}
			c.Deliver(&corev1.Pod{}, &v1alpha1.PodClique{})
			c.Advance(time.Minute + time.Second)
			must(t, check(c))
		})
	}
}
