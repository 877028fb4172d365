// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/test/wrappers"
)

// jobSetPod returns the pod of one Job of an attempt of a JobSet, whose Jobs have one pod each. node "": it waits.
func jobSetPod(attempt, job int, node string) *corev1.Pod {
	name := fmt.Sprintf("attempt-%d-job-%d", attempt, job)
	pod := wrappers.MakePod(name, testNamespace).UID(name).GPUs(1).Controller("Job", "train-w-"+strconv.Itoa(job), "job-of-"+name).Node(node).Obj()
	pod.Labels = map[string]string{
		"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/jobset-uid": "uid", "jobset.sigs.k8s.io/replicatedjob-name": "w",
		"jobset.sigs.k8s.io/job-index": strconv.Itoa(job), "jobset.sigs.k8s.io/restart-attempt": strconv.Itoa(attempt),
	}
	return pod
}

// boundByPlan returns the pod with the mark of the plan that bound it, for the whole minimum of its attempt of n Jobs.
func boundByPlan(attempt, job, n int) *corev1.Pod {
	pod, plan := jobSetPod(attempt, job, "n"), planFor("group").then(int64(attempt+1))
	for other := range n {
		plan.pods = append(plan.pods, string(jobSetPod(attempt, other, "").UID))
	}
	pod.Annotations = map[string]string{v2alpha2.BoundForAnnotation: plan.mark(string(pod.UID))}
	return pod
}

// beginJobSet begins a story with a JobSet of n Jobs. All pods of attempt 0 run.
func beginJobSet(t *testing.T, n int) (*story, *gangState) {
	t.Helper()
	s := begin(t)
	key := Key{Namespace: testNamespace, Name: membership.Group(jobSetPod(0, 0, ""))}
	group := wrappers.MakePodGroup(key.Name, testNamespace).UID("group").Generation(1)
	for job := range n {
		group.SubGroup("w-"+strconv.Itoa(job), 1)
	}
	s.group(group)
	for job := range n {
		s.r.SetPod(boundByPlan(0, job, n), s.now)
	}
	g := s.r.gangs[key]
	if !g.admitted {
		t.Fatal("attempt 0 is not admitted")
	}
	return s, g
}

// JobSet's default restart strategy makes the Job of the next attempt as soon as the one of its name is gone, whatever
// runs of the others.
func TestNextAttemptOfAJobSetStartsWhole(t *testing.T) {
	t.Parallel()
	const jobs = 4
	for name, end := range map[string]func(*story, *corev1.Pod){
		"deleted": func(s *story, pod *corev1.Pod) {
			pod.DeletionTimestamp = &metav1.Time{Time: s.now}
			s.r.SetPod(pod, s.now)
			s.r.RemovePod(pod.UID, s.now)
		},
		"vanished": func(s *story, pod *corev1.Pod) {
			s.r.RemovePod(pod.UID, s.now)
			s.after(2 * departure)
		},
		"failed": func(s *story, pod *corev1.Pod) { s.r.RemoveFailedPod(pod.UID, s.now) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g := beginJobSet(t, jobs)
			for job := range jobs {
				end(s, boundByPlan(0, job, jobs))
				s.r.SetPod(jobSetPod(1, job, ""), s.now)
				s.after(time.Minute)
				if started := g.leader != ""; started != (job == jobs-1) {
					t.Fatalf("with %d of %d pods of attempt 1, a leader is elected: %t (%s)", job+1, jobs, started, g.task)
				}
			}
			if g.task != Minimum || g.admitted {
				t.Errorf("task %s, admitted %t; want the minimum of a gang that is not admitted", g.task, g.admitted)
			}
		})
	}
}

func TestPodsOfAFormerAttemptCountForNothing(t *testing.T) {
	t.Parallel()
	s, g := beginJobSet(t, 2)
	check := func(when string, admitted bool, bound, stray int) {
		t.Helper()
		f, _ := s.r.Facts(g.key)
		if g.admitted != admitted || f.Bound["w-0"]+f.Bound["w-1"] != bound || f.StrayTotal != stray {
			t.Errorf("%s: admitted %t, %v bound, %d do not count; want %t, %d, %d", when, g.admitted, f.Bound, f.StrayTotal, admitted, bound, stray)
		}
	}
	check("attempt 0 runs", true, 2, 0)

	helped := s.r.mayHelp
	s.r.SetPod(jobSetPod(1, 0, ""), s.now)
	check("a pod of attempt 1 waits", false, 0, 2)
	if s.r.mayHelp == helped || g.isRepairing() {
		t.Error("preemptors are not told of the pods that may end one by one now, or the gang seems to be partial")
	}
	if !g.members["attempt-0-job-0"].isPlain() {
		t.Error("a pod of attempt 0 cannot be preempted")
	}
	late := jobSetPod(0, 1, "")
	late.UID = "late"
	s.r.SetPod(late, s.now)
	if f, _ := s.r.Facts(g.key); f.Terminating != 1 || f.MisplacedTotal != 0 {
		t.Errorf("%d pods are being deleted, %d misplaced; want 1, 0", f.Terminating, f.MisplacedTotal)
	}
	s.r.SetPod(jobSetPod(1, 1, ""), s.now)
	if m := g.members[g.leader]; m == nil || m.pod.Labels["jobset.sigs.k8s.io/restart-attempt"] != "1" || g.task != Minimum {
		t.Fatalf("the leader is %v for %s", g.leader, g.task)
	}
	for job := range 2 {
		s.r.SetPod(jobSetPod(1, job, "n"), s.now)
	}
	check("attempt 1 runs beside pods of attempt 0", true, 2, 2)

	s.r.SetPod(jobSetPod(2, 0, ""), s.now)
	check("a pod of attempt 2 waits", false, 0, 4)
	s.r.RemovePod("attempt-2-job-0", s.now)
	check("it is gone, as if it had never been", true, 2, 2)
}

func TestAPlanOfAFormerAttemptIsAborted(t *testing.T) {
	t.Parallel()
	s, g := beginJobSet(t, 2)
	for job := range 2 {
		s.r.SetPod(jobSetPod(1, job, ""), s.now)
	}
	leader := g.members[g.leader].pod
	if ok, why := s.r.MayEnterQueue(leader); !ok {
		t.Fatal(why)
	}
	s.r.RecordPopped(leader.UID)
	if s.work, _ = s.r.BeginAttempt(leader); s.work == nil {
		t.Fatal("nothing to plan")
	}
	s.commits("attempt-1-job-0", "attempt-1-job-1")
	if !s.plan.mark.NeverWhole {
		t.Error("by the mark of attempt 1, it may have been whole before")
	}
	s.r.SetPod(jobSetPod(2, 0, ""), s.now)
	s.wantAborted(true)
}

// Of an attempt that a crash has left bound in part, the pods are released, beside a former one that was whole.
func TestAnAttemptThatIsBoundInPartIsReleased(t *testing.T) {
	t.Parallel()
	s, g := beginJobSet(t, 2)
	s.r.SetPod(jobSetPod(1, 1, ""), s.now)
	s.r.SetPod(boundByPlan(1, 0, 2), s.now)
	if g.admitted || !g.isPartial() {
		t.Fatalf("admitted %t, partial %t; want a partial gang", g.admitted, g.isPartial())
	}
	var released []string
	for range 31 {
		s.now = s.now.Add(time.Second)
		released = nil
		for _, pod := range s.r.PodsToRelease(time.Second, true) {
			released = append(released, pod.Name)
		}
	}
	if want := []string{"attempt-1-job-0"}; !slices.Equal(released, want) {
		t.Errorf("released %v, want %v", released, want)
	}
}

// replicaPod returns a pod of the only replica of a LeaderWorkerSet, of the run that began at the time. node "": it
// waits.
func replicaPod(began time.Time, worker int, node string) *corev1.Pod {
	name := fmt.Sprintf("llm-0-%d-of-%d", worker, began.Unix())
	pod := wrappers.MakePod(name, testNamespace).UID(name).GPUs(1).Controller("StatefulSet", "llm", "set").Node(node).Obj()
	pod.CreationTimestamp = metav1.NewTime(began.Add(time.Duration(worker) * time.Second))
	pod.Labels = map[string]string{"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "0",
		"leaderworkerset.sigs.k8s.io/worker-index": strconv.Itoa(worker)}
	return pod
}

// A rollout, or whoever deletes the leader of a replica, has the next leader made while no worker is marked as deleted
// yet.
func TestNextLeaderOfAReplicaWaitsForItsWorkers(t *testing.T) {
	t.Parallel()
	const size = 3
	for name, tc := range map[string]struct {
		later   time.Duration // than the former leader the next one is made
		created time.Duration // of the next workers, relative to their leader
		alone   bool          // it starts as a replacement among the former workers
	}{
		"an hour later":   {time.Hour, time.Second, false},
		"clocks differ":   {time.Hour, -30 * time.Second, false},
		"too soon to say": {30 * time.Second, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, restarted := range []bool{false, true} {
				s := begin(t)
				key := Key{Namespace: testNamespace, Name: membership.Group(replicaPod(s.now, 0, ""))}
				s.group(wrappers.MakePodGroup(key.Name, testNamespace).UID("group").Generation(1).MinMember(size))
				former := s.now
				next := replicaPod(former.Add(tc.later), 0, "")
				if restarted { // a list has any order
					s.r.SetPod(next, s.now)
				} else {
					s.r.SetPod(replicaPod(former, 0, "n"), s.now)
				}
				for worker := 1; worker < size; worker++ {
					s.r.SetPod(replicaPod(former, worker, "n"), s.now)
				}
				g := s.r.gangs[key]
				if !restarted {
					if !g.admitted {
						t.Fatal("the replica does not run")
					}
					s.r.RemovePod(replicaPod(former, 0, "").UID, s.now)
					s.r.SetPod(next, s.now)
				}
				s.after(time.Minute)
				if alone := g.leader != ""; alone != tc.alone {
					t.Fatalf("restarted %t: the next leader may start among the former workers: %t (%s)", restarted, alone, g.task)
				}
				for worker := 1; worker < size; worker++ {
					s.r.RemovePod(replicaPod(former, worker, "").UID, s.now)
				}
				s.after(time.Minute)
				if started := g.leader != ""; started && !tc.alone {
					t.Fatal("the next leader may start without workers")
				}
				for worker := 1; worker < size; worker++ {
					pod := replicaPod(former.Add(tc.later), worker, "")
					pod.CreationTimestamp = metav1.NewTime(next.CreationTimestamp.Add(tc.created))
					s.r.SetPod(pod, s.now)
				}
				if g.leader == "" || g.task != Minimum {
					t.Errorf("restarted %t: the leader is %q for %s; want the minimum", restarted, g.leader, g.task)
				}
			}
		})
	}
}
