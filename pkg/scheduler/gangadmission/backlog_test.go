// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/backlog"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/test/wrappers"
)

func TestSurplusAndRefillsAreWokenWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).run()
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(1).Obj())
	c.pod(big("a", 2)...).wholeOf("a", 1).refused("a")
	c.node(wrappers.MakeNode("n1").GPUs(8)).wholeOf("a", 2)
}

func TestLeaderWhoseCycleFailsBeforeItsAttemptIsTriedAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8))
	flaky := &flakyCache{Cache: c.sched.Cache}
	c.sched.Cache = flaky
	failed := false
	c.onPop = func(name string) {
		if !failed && strings.HasPrefix(name, "a-") {
			failed = true
			flaky.fails.Store(true)
		}
	}
	c.gang("a", 2).run().wholeOf("a", 2)
	if !failed {
		t.Error("no cycle failed")
	}
}

func TestGangThatIsCompleteWithoutItsGatedPodsIsPlanned(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).run()
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(2).Obj())
	pods := members("a", 3)
	claim := "missing"
	pods[2].Spec(func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "dev", ResourceClaimName: &claim}}
	})
	c.pod(pods[2]).pod(pods[:2]...).wholeOf("a", 2)
}

func TestGangThatIsIncompleteAgainKeepsNoRoom(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).run()
	c.pod(wrappers.MakePod("filler", "ml").GPUs(8)).eventually("filler bound", func() bool { return len(c.boundOf("filler")) == 1 })
	c.bigGang("old", 1).refused("old").bigGang("young", 1).refused("young")
	c.deletePod("old-0")
	c.eventually("old incomplete", func() bool {
		f, ok := c.gangs.registry.Facts(key("old"))
		return ok && len(f.Waiting) == 0
	})
	c.deletePod("filler")
	c.wholeOf("young", 1)
	c.eventually("nothing kept of gangs that do not wait", func() bool { return c.gangs.registry.WaitingGangs() == 0 })
}

func TestRoomThatIsFreedDuringTheAttemptAndReportedAfterItIsNotLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8))
	filler := wrappers.MakePod("filler", "ml").UID("filler").Node("n0").GPUs(8).Obj()
	if err := c.sched.Cache.AddPod(klog.Background(), filler); err != nil {
		t.Fatal(err)
	}
	nodes := c.nodes()
	b, r := backlogOf(c)
	b.AttemptBegins()
	pod := big("a", 1)[0].UID("a-0").Obj()
	park := func(nodes []fwk.NodeInfo) bool {
		return triedAgain(t, b, r, pod, backlog.Attempt{
			Classes: []*corev1.Pod{pod}, RefusedBy: func(int) (kubescheduler.Inputs, bool) { return kubescheduler.Inputs{}, true }, Task: gangs.Refill, Nodes: nodes,
		})
	}
	if park(nodes) {
		t.Error("tried again although nothing has happened")
	}
	if err := c.sched.Cache.RemovePod(klog.Background(), filler); err != nil {
		t.Fatal(err)
	}
	if !park(nodes) {
		t.Error("sleeps although its pod fits by now")
	}
}

func TestManyShapesAreAllWaitedFor(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	pod := big("a", 1)[0].UID("a-0").Obj()
	a := backlog.Attempt{RefusedBy: func(int) (kubescheduler.Inputs, bool) { return kubescheduler.Inputs{}, true }, Task: gangs.Refill}
	for i := range 33 {
		a.Classes = append(a.Classes, wrappers.MakePod(fmt.Sprint("a-", i), "ml").Gang("a").GPUs(int64(i+1)).Obj())
	}
	bound := wrappers.MakePod("other", "ml").Node("n0").Obj()
	for name, tc := range map[string]struct {
		event    fwk.ClusterEvent
		old, new any
		classes  []*corev1.Pod
		want     bool
	}{
		"a claim changes":                   {event: fwk.ClusterEvent{Resource: fwk.ResourceClaim, ActionType: fwk.Update}, classes: a.Classes, want: true},
		"a volume changes":                  {event: fwk.ClusterEvent{Resource: fwk.PersistentVolume, ActionType: fwk.Update}, classes: a.Classes, want: true},
		"a node changes":                    {event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Update}, classes: a.Classes, want: true},
		"a pod's labels change":             {event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.UpdatePodLabel}, old: bound, new: bound, classes: a.Classes, want: true},
		"a pod is bound":                    {event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Add}, new: bound, classes: a.Classes},
		"a claim changes, all are counted":  {event: fwk.ClusterEvent{Resource: fwk.ResourceClaim, ActionType: fwk.Update}, classes: a.Classes[:32]},
		"a volume changes, all are counted": {event: fwk.ClusterEvent{Resource: fwk.PersistentVolume, ActionType: fwk.Update}, classes: a.Classes[:32]},
	} {
		t.Run(name, func(t *testing.T) {
			b, r := backlogOf(c)
			a := a
			a.Classes = tc.classes
			if triedAgain(t, b, r, pod, a) {
				t.Fatal("tried again without an event")
			}
			b.Observe(tc.event, tc.old, tc.new)
			if got := len(b.Evaluate(klog.Background()).Gangs.Activate) > 0; got != tc.want {
				t.Errorf("tried again: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestRoomKeptForAPodThatIsBoundElsewhereIsReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		node string
		want bool // a refused gang is tried again
	}{
		"it is bound to another node":       {"n1", true},
		"it is bound to the nominated node": {"n0", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r := backlogOf(newCluster(t))
			if triedAgain(t, b, r, big("a", 1)[0].UID("a-0").Obj(), backlog.Attempt{}) {
				t.Fatal("tried again without an event")
			}
			pod := wrappers.MakePod("p", "ml").Obj()
			pod.Status.NominatedNodeName = "n0"
			pl := &Admission{gangs: &Gangs{backlog: b}, registry: r}
			if status := pl.Reserve(t.Context(), nil, pod, tc.node); !status.IsSuccess() {
				t.Fatal(status)
			}
			if got := len(b.Evaluate(klog.Background()).Gangs.Activate) > 0; got != tc.want {
				t.Errorf("a refused gang is tried again: %t, want %t", got, tc.want)
			}
		})
	}
}

// A gang may wait for days: what it waits for must not keep the snapshot of its attempt.
func TestAWaitingGangKeepsNoSnapshot(t *testing.T) {
	t.Parallel()
	for _, task := range []gangs.Task{gangs.Minimum, gangs.Refill} {
		b, r := backlogOf(newCluster(t))
		pod := big("a", 1)[0].UID("a-0").Obj()
		size := int32(1)
		tree, err := gang.Build(gang.Node{MinMember: &size}, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen := func() weak.Pointer[[1 << 20]byte] {
			snapshot := new([1 << 20]byte)
			triedAgain(t, b, r, pod, backlog.Attempt{
				Task: task, Classes: []*corev1.Pod{pod}, RefusedBy: func(i int) (kubescheduler.Inputs, bool) { return kubescheduler.Inputs{Others: snapshot[i] != 0}, true },
				Problem: placement.Problem{Tree: tree, Pods: map[string][]placement.Pod{"": {{ID: "a-0"}}}, Required: map[string]string{"": "rack"}},
				Domains: backlog.Domains{
					Needs:   []placement.DomainNeed{{Level: "rack", Area: 1, Pods: 1}},
					Pinned:  map[int][]placement.Domain{0: {{Level: "rack", Area: 1}}},
					ValueOf: func(a placement.Area) string { return fmt.Sprint(snapshot[a]) },
				},
			})
			return weak.Make(snapshot)
		}()
		runtime.GC()
		if seen.Value() != nil {
			t.Errorf("%s: a gang that waits keeps the snapshot of its attempt", task)
		}
		if r.WaitingGangs() != 1 {
			t.Errorf("%s: the gang does not wait", task)
		}
		b.Evaluate(klog.Background())
	}
}

// backlogOf returns a backlog over the cluster's nodes, and its registry, which nothing else uses.
func backlogOf(c *cluster) (*backlog.Backlog, *gangs.Registry) {
	r := gangs.New()
	r.AddProfile(wrappers.SchedulerName)
	r.SetSynced(time.Now())
	return backlog.New(clock.RealClock{}, kubescheduler.NewShapes(c.sched), r), r
}

// triedAgain refuses an attempt of gang a, which has one pod, and reports whether the gang is tried again immediately.
func triedAgain(t *testing.T, b *backlog.Backlog, r *gangs.Registry, pod *corev1.Pod, a backlog.Attempt) bool {
	t.Helper()
	now := time.Now()
	r.SetGroup(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(1).Obj(), now)
	r.SetPod(pod, now)
	if work, why := r.BeginAttempt(pod); work == nil {
		t.Fatal(why)
	}
	a.Gang = key("a")
	return len(b.Refuse(klog.Background(), a, podgroup.Refusal{Reason: "full"}).Activate) > 0
}

func TestPodThatCanPreemptByNowIsTried(t *testing.T) {
	t.Parallel()
	b, _ := backlogOf(newCluster(t))
	runs := func(priority int32) {
		b.Observe(fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Add}, nil, wrappers.MakePod("runs", "ml").Node("n0").Priority(priority).Obj())
	}
	runs(10)
	high, low := wrappers.MakePod("high", "ml").UID("high").Priority(5).Obj(), wrappers.MakePod("low", "ml").UID("low").Obj()
	for _, pod := range []*corev1.Pod{high, low} {
		if !b.WaitsForRoom(pod) {
			t.Fatalf("pod %s does not wait for room", pod.Name)
		}
	}
	look := func(want ...string) {
		t.Helper()
		got := []string{}
		for _, p := range b.EvaluatePods(klog.Background()) {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Errorf("tried (-want +got):\n%s", diff)
		}
	}
	runs(1) // a less important pod was created
	look("high")
	look()
}

// A gang that all pods of lower priority together cannot help is not searched victims for again because some of them
// end.
func TestVictimsAreSearchedForWhenAPodEndsThatIsNone(t *testing.T) {
	t.Parallel()
	deleted, resized := fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete}, fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.UpdatePodScaleDown}
	runs := func(priority int32) *corev1.Pod {
		return wrappers.MakePod("runs", "ml").UID("runs").Node("n0").Priority(priority).Obj()
	}
	for name, tc := range map[string]struct {
		event    fwk.ClusterEvent
		old, new any
		want     gangs.NextPreemptionStep
	}{
		"a victim ends":                           {deleted, runs(99), nil, gangs.PreemptNothing},
		"a victim requests less":                  {resized, runs(99), runs(99), gangs.PreemptNothing},
		"a pod of the same priority ends":         {deleted, runs(100), nil, gangs.PreemptDecide},
		"a pod of a higher one requests less":     {resized, runs(101), runs(101), gangs.PreemptDecide},
		"a node is added":                         {fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, nil, wrappers.MakeNode("n1").Obj(), gangs.PreemptDecide},
		"a pod is bound":                          {fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Add}, nil, runs(100), gangs.PreemptNothing},
		"a pod of a gang that is not known, ends": {deleted, wrappers.MakePod("runs", "ml").UID("runs").Node("n0").Gang("other").Obj(), nil, gangs.PreemptDecide},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r := backlogOf(newCluster(t))
			now := time.Now()
			r.AbandonedEvictions(nil, now)
			r.SetPod(runs(0), now)
			r.SetGroup(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(1).Obj(), now)
			pod := wrappers.MakePod("a-0", "ml").UID("a-0").Gang("a").Priority(100).Obj()
			r.SetPod(pod, now)
			r.RecordPopped(pod.UID)
			work, why := r.BeginAttempt(pod)
			if work == nil {
				t.Fatal(why)
			}
			r.RecordHopeless(work.Gang, "test", true, time.Millisecond, now)
			b.Refuse(klog.Background(), backlog.Attempt{
				Gang: work.Gang, Problem: work.Problem, Classes: []*corev1.Pod{pod}, RefusedBy: func(int) (kubescheduler.Inputs, bool) { return kubescheduler.Inputs{}, true },
			}, podgroup.Refusal{Reason: "full"})
			later := now.Add(time.Hour)
			if step, _ := r.NextPreemptionStep(work, later); step != gangs.PreemptNothing {
				t.Fatalf("step %d, and nothing has changed", step)
			}
			b.Observe(tc.event, tc.old, tc.new)
			b.Evaluate(klog.Background())
			if step, _ := r.NextPreemptionStep(work, later); step != tc.want {
				t.Errorf("step %d, want %d", step, tc.want)
			}
		})
	}
}

// TestPreparationOfAnAbortedPlanIsCancelled: members that are not prepared yet give up their room when the plan is
// aborted, also those whose preparation begins afterwards.
func TestPreparationOfAnAbortedPlanIsCancelled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		abort func(g *Gangs)
		late  bool // the preparation begins after the abort
	}{
		"a member is deleted": {abort: func(g *Gangs) {
			g.apply(klog.Background(), g.registry.RemovePod("a-1", time.Now()))
		}},
		"a member is prepared late": {late: true, abort: func(g *Gangs) {
			g.apply(klog.Background(), g.registry.AbortPlanOf("a-0", gangs.AbortLate, "test", time.Now()))
		}},
		"the time at the barrier is over": {abort: func(g *Gangs) {
			pl := &Admission{gangs: g, registry: g.registry, args: &config.GangAdmissionArgs{BarrierTimeout: metav1.Duration{Duration: time.Millisecond}}}
			pod := wrappers.MakePod("a-1", "ml").UID("a-1").Gang("a").Obj()
			if status := pl.Bind(context.Background(), nil, pod, "n"); status.IsSuccess() {
				t.Error("a member is bound without the other one")
			}
			pl.Unreserve(context.Background(), nil, pod, "n")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			r, now := c.gangs.registry, time.Now()
			pods := []*corev1.Pod{wrappers.MakePod("a-0", "ml").UID("a-0").Gang("a").Obj(), wrappers.MakePod("a-1", "ml").UID("a-1").Gang("a").Obj()}
			c.eventually("gangs planned", func() bool { // starts when the informers have synced
				r.SetGroup(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(2).Obj(), now)
				for _, pod := range pods {
					r.SetPod(pod, now)
				}
				work, _ := r.BeginAttempt(pods[0])
				if work == nil {
					return false
				}
				plan, why := r.CommitPlan(work, []placement.Placement{{Pod: placement.Pod{ID: "a-0"}, Node: "n"}, {Pod: placement.Pod{ID: "a-1", Index: 1}, Node: "n"}}, now)
				if plan == nil {
					t.Fatal(why)
				}
				return true
			})
			for _, pod := range pods {
				if err := r.AssumeMember(pod.UID, "n", now); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if !tc.late {
				c.sched.Profiles[wrappers.SchedulerName].AddPodInPreBind("a-0", cancel)
			}
			tc.abort(c.gangs)
			if tc.late {
				c.sched.Profiles[wrappers.SchedulerName].AddPodInPreBind("a-0", cancel)
				c.gangs.cancelPreparation(nil)
			}
			if ctx.Err() == nil {
				t.Error("its volumes are prepared although its plan was aborted")
			}
			for _, pod := range pods {
				c.gangs.apply(klog.Background(), r.ReleaseMember(pod.UID, now))
			}
			c.gangs.cancelPreparation(nil)
			c.gangs.toCancel.mu.Lock()
			defer c.gangs.toCancel.mu.Unlock()
			if got := len(c.gangs.toCancel.pods); got != 0 {
				t.Errorf("%d pods are to be cancelled, want none", got)
			}
		})
	}
}
