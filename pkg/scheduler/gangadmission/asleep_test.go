// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

func TestSurplusAndRefillsAreWokenWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).run()
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(1).Obj())
	c.pod(big("a", 2)...).wholeOf("a", 1).refused("a")
	c.node(wrappers.MakeNode("n1").GPUs(8)).wholeOf("a", 2)
}

// flakyCache fails to update the loop's snapshot on request.
type flakyCache struct {
	schedulercache.Cache
	fails atomic.Bool
}

func (c *flakyCache) UpdateSnapshot(logger klog.Logger, s *schedulercache.Snapshot) error {
	if c.fails.CompareAndSwap(true, false) {
		return errors.New("the snapshot is in a bad mood")
	}
	return c.Cache.UpdateSnapshot(logger, s)
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
	c.eventually("nothing kept of gangs that do not wait", func() bool { return c.gangs.registry.Waiting() == 0 })
}

func TestRoomThatIsFreedDuringTheAttemptAndReportedAfterItIsNotLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8))
	filler := wrappers.MakePod("filler", "ml").UID("filler").Node("n0").GPUs(8).Obj()
	if err := c.sched.Cache.AddPod(klog.Background(), filler); err != nil {
		t.Fatal(err)
	}
	snapshot := schedulercache.NewEmptySnapshot()
	if err := c.sched.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
		t.Fatal(err)
	}
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	w := c.gangs.wakeups
	w.attemptBegins()
	pod := big("a", 1)[0].UID("a-0").Obj()
	r, now := c.gangs.registry, time.Now()
	r.SetGroup(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(1).Obj(), now)
	r.SetPod(pod, now)
	park := func(nodes []fwk.NodeInfo) bool {
		c.eventually("gang planned", func() bool { // starts when the informers have synced
			work, _ := r.Begin(pod)
			return work != nil
		})
		e := w.refuse(klog.Background(), attempt{
			key: key("a"), classes: []*corev1.Pod{pod}, roomDecides: func(int) (bool, bool) { return true, true }, task: gangs.Refill,
			problem: placement.Problem{}, nodes: nodes,
		}, podgroup.Refusal{Reason: "full"})
		return len(e.Activate) > 0
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
	w := c.gangs.wakeups
	a := attempt{key: key("a"), roomDecides: func(int) (bool, bool) { return true, true }, task: gangs.Refill}
	for i := range maxShapes + 1 {
		a.classes = append(a.classes, wrappers.MakePod(fmt.Sprint("a-", i), "ml").Gang("a").GPUs(int64(i+1)).Obj())
	}
	what := w.waitAfter(klog.Background(), a, time.Now())
	if diff := cmp.Diff((anything &^ boundPod).topics(), what.Topics); diff != "" {
		t.Errorf("want any event but a bound pod to wake a gang of which not all shapes are counted (-want +got):\n%s", diff)
	}
}

func TestRoomKeptForAPodThatIsBoundElsewhereIsReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		node string
		want causes
	}{
		"it is bound to another node":       {"n1", nominationGone},
		"it is bound to the nominated node": {"n0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			pod := wrappers.MakePod("p", "ml").Obj()
			pod.Status.NominatedNodeName = "n0"
			pl := &Admission{gangs: c.gangs, registry: c.gangs.registry}
			if status := pl.Reserve(t.Context(), nil, pod, tc.node); !status.IsSuccess() {
				t.Fatal(status)
			}
			if got := causes(c.gangs.wakeups.events.Load()); got != tc.want {
				t.Errorf("causes %05b, want %05b", got, tc.want)
			}
		})
	}
}

func TestPodThatCanPreemptByNowIsTried(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	w := c.gangs.wakeups
	w.lowest.Store(10)
	high, low := wrappers.MakePod("high", "ml").UID("high").Priority(5).Obj(), wrappers.MakePod("low", "ml").UID("low").Obj()
	for _, pod := range []*corev1.Pod{high, low} {
		if !w.waitsForRoom(pod) {
			t.Fatalf("pod %s does not wait for room", pod.Name)
		}
	}
	look := func(want ...string) {
		t.Helper()
		got := []string{}
		for _, p := range w.lookAgain(klog.Background()) {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Errorf("tried (-want +got):\n%s", diff)
		}
	}
	w.lowest.Store(1) // a less important pod was created
	look("high")
	look()
}

func TestPreparationThatBeginsAfterTheAbortIsCancelled(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r, now := c.gangs.registry, time.Now()
	c.eventually("gangs planned", func() bool { // starts when the informers have synced
		r.SetGroup(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(1).Obj(), now)
		r.SetPod(wrappers.MakePod("a-0", "ml").UID("a-0").Gang("a").Obj(), now)
		work, _ := r.Begin(wrappers.MakePod("a-0", "ml").UID("a-0").Gang("a").Obj())
		if work == nil {
			return false
		}
		plan, why := r.Commit(work, []placement.Placement{{Pod: placement.Pod{ID: "a-0"}, Node: "n"}}, now)
		if plan == nil {
			t.Fatal(why)
		}
		return true
	})
	if err := r.Assume("a-0", "n", now); err != nil {
		t.Fatal(err)
	}
	c.gangs.apply(klog.Background(), r.Abort("a-0", gangs.AbortLate, "test", now))
	ctx, cancel := context.WithCancelCause(t.Context())
	c.sched.Profiles[wrappers.SchedulerName].AddPodInPreBind("a-0", cancel)
	c.gangs.cancel(nil)
	if ctx.Err() == nil {
		t.Error("its volumes are prepared although its plan was aborted")
	}
	c.gangs.apply(klog.Background(), r.Release("a-0", now))
	c.gangs.cancel(nil)
	c.gangs.unwinds.mu.Lock()
	defer c.gangs.unwinds.mu.Unlock()
	if got := len(c.gangs.unwinds.pods); got != 0 {
		t.Errorf("%d pods are to be cancelled, want none", got)
	}
}
