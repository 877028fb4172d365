// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/config"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/test/wrappers"
)

func typesUID(s string) types.UID { return types.UID(s) }

func key(gang string) gangs.Key { return gangs.Key{Namespace: "ml", Name: gang} }

// neverPartial checks the order of bindings: between the first and the last binding of a gang of n, no pod of another
// gang is bound.
func (c *cluster) neverPartial(sizes map[string]int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	open, left := "", 0
	for _, name := range c.bound {
		gang, _, _ := strings.Cut(name, "-")
		n, ok := sizes[gang]
		switch {
		case !ok:
		case open == "":
			open, left = gang, n-1
		case open != gang:
			c.t.Fatalf("%s is bound while %s lacks %d pods: %v", name, open, left, c.bound)
		default:
			left--
		}
		if left == 0 {
			open = ""
		}
	}
	if open != "" {
		c.t.Fatalf("%s is bound in part: %v", open, c.bound)
	}
}

func TestGangOfFourIsBoundAsAWhole(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).gang("a", 4).run().wholeOf("a", 4)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.popped) != 4 {
		t.Errorf("cycles %v, want one for each pod", c.popped)
	}
	if len(c.marks) != 4 {
		t.Errorf("marks %v, want one for each pod", c.marks)
	}
	for pod, mark := range c.marks {
		if !strings.HasPrefix(mark, "a/4/") || pod != "a-0" && mark == c.marks["a-0"] {
			t.Errorf("mark of %s is %q, want one of its own", pod, mark)
		}
	}
}

func TestGangPodByPodWaitsForItsLast(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).run()
	all := members("a", 4)
	c.pod(all[:3]...)
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(4).Obj())
	c.pod(wrappers.MakePod("plain", "ml"))
	c.eventually("the plain pod bound", func() bool { return len(c.boundOf("plain")) == 1 })
	if got := c.boundOf("a-"); len(got) != 0 {
		t.Fatalf("bound %v before the gang is complete", got)
	}
	c.pod(all[3]).wholeOf("a", 4)
}

func TestTwoGangsOfSixtyPercentAreNeverBothPartial(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(5)).node(wrappers.MakeNode("n1").GPUs(5)).run()
	for round := range 5 {
		a, b := fmt.Sprintf("a%d", round), fmt.Sprintf("b%d", round)
		for _, g := range []string{a, b} {
			c.groups.Put(wrappers.MakePodGroup(g, "ml").UID(g).Generation(1).MinMember(6).Obj())
		}
		pa, pb := members(a, 6), members(b, 6)
		for i := range 6 {
			c.pod(pa[i], pb[i])
		}
		c.eventually("one gang bound", func() bool { return len(c.boundOf(a+"-"))+len(c.boundOf(b+"-")) == 6 })
		first, second := a, b
		if len(c.boundOf(b+"-")) > 0 {
			first, second = b, a
		}
		c.refused(second)
		c.neverPartial(map[string]int{a: 6, b: 6})
		for _, n := range c.boundOf(first + "-") {
			c.deletePod(n)
		}
		c.wholeOf(second, 6).neverPartial(map[string]int{a: 6, b: 6})
		for _, n := range c.boundOf(second + "-") {
			c.deletePod(n)
		}
	}
}

func TestGangThatDoesNotFitCostsOneAttempt(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(4)).gang("a", 6).run().refused("a")
	// The loop is not blocked: another pod has its cycle after the cycles of the gang.
	c.pod(wrappers.MakePod("plain", "ml")).eventually("the plain pod bound", func() bool { return len(c.boundOf("plain")) == 1 })
	c.mu.Lock()
	popped := slices.DeleteFunc(slices.Clone(c.popped), func(n string) bool { return n == "plain" })
	c.mu.Unlock()
	if diff := cmp.Diff([]string{"a-0"}, popped); diff != "" {
		t.Errorf("cycles (-want +got):\n%s", diff)
	}
	c.node(wrappers.MakeNode("n1").GPUs(4)).wholeOf("a", 6)
}

func TestProgressAfterCut(t *testing.T) {
	t.Parallel()
	at := gangs.Progress{}
	for i, tc := range []struct {
		tried int
		want  gangs.Progress
	}{
		{0, gangs.Progress{Stuck: 1}},
		{3, gangs.Progress{Tried: 3}},
		{3, gangs.Progress{Tried: 3, Stuck: 1}},
		{3, gangs.Progress{Tried: 3, Stuck: 2}},
		{3, gangs.Progress{Tried: 3, Stuck: 3}},
		{3, gangs.Progress{Tried: 3, Stuck: 4}},
		{3, gangs.Progress{Tried: 4}}, // the choice after the third is left out
		{4, gangs.Progress{Tried: 4, Stuck: 1}},
		{5, gangs.Progress{Tried: 5}},
	} {
		if at = progressAfterCut(at, tc.tried); at != tc.want {
			t.Errorf("step %d: %+v, want %+v", i, at, tc.want)
		}
	}
	at = gangs.Progress{Again: 3}
	for i, want := range []gangs.Progress{{Stuck: 1, Again: 3}, {Tried: 1, Again: 3}, {Tried: 1, Stuck: 1, Again: 3}} {
		if at = progressAfterCut(at, 0); at != want {
			t.Errorf("started over, step %d: %+v, want %+v", i, at, want)
		}
	}
}

// TestSearchStartsOverWithMoreTime: after all choices were tried or left out the search has twice the time, and the
// time is the usual one after it has ended.
func TestSearchStartsOverWithMoreTime(t *testing.T) {
	t.Parallel()
	pl := &Admission{}
	size := int32(2)
	tree, err := gang.Build(gang.Node{MinMember: &size}, nil)
	if err != nil {
		t.Fatal(err)
	}
	work := &gangs.Work{Progress: gangs.Progress{Tried: 5, Again: 1}}
	work.Problem = placement.Problem{Tree: tree, Required: map[string]string{"": "rack"}}
	for i, want := range []gangs.Progress{{Again: 2}, {}} {
		_, short := pl.placeMinimum(work, nil, placement.Budget{})
		if work.Progress != want || short.Cut != (i == 0) {
			t.Errorf("attempt %d: progress %+v, cut short: %t; want %+v", i, work.Progress, short.Cut, want)
		}
	}
}

// passing is a clock of which a millisecond passes with each look at it.
type passing struct {
	clock.RealClock
	looks atomic.Int64
}

func (p *passing) Now() time.Time {
	return p.RealClock.Now().Add(time.Duration(p.looks.Add(1)) * time.Millisecond)
}

func (p *passing) Since(t time.Time) time.Duration { return p.Now().Sub(t) }

// A gang of which a single choice takes longer than planDeadline starts: an attempt that is cut short has more time
// than the one before.
func TestGangWhosePlanTakesLongerThanTheDeadlineStarts(t *testing.T) {
	t.Parallel()
	newCluster(t, func(c *cluster, _ *bool, args *config.GangAdmissionArgs) {
		args.PlanDeadline.Duration, c.clock = 20*time.Millisecond, &passing{}
	}).node(wrappers.MakeNode("n0").GPUs(64)).gang("a", 64).run().wholeOf("a", 64)
}

// Not parallel: the counters are those of the process.
func TestRefusedGangsCountAsAttempts(t *testing.T) {
	refused := func() float64 {
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, m := range family.Metric {
				if labels := fmt.Sprint(m.Label); family.GetName() == "scheduler_schedule_attempts_total" && strings.Contains(labels, `"unschedulable"`) {
					return m.Counter.GetValue()
				}
			}
		}
		return 0
	}
	before := refused()
	newCluster(t).node(wrappers.MakeNode("n0").GPUs(3)).gang("a", 4).run().refused("a").eventually("counted", func() bool { return refused() > before })
}

// The member whose node refuses it has the condition, and event, of the stock scheduler. The others, which were assumed
// and wait for it, have none: there is one cause, and the PodGroup reports it.
func TestAnAbortIsToldOnce(t *testing.T) {
	t.Parallel()
	const n = 20
	c := newCluster(t)
	c.gangs.refusals.KnownFor = 300 * time.Millisecond
	refused := ""
	c.onCycle = func(pod string) bool { // the last one, once
		c.cycles++
		if c.cycles == n && refused == "" {
			refused = pod
		}
		return pod == refused && c.cycles == n
	}
	c.node(wrappers.MakeNode("n0").GPUs(n)).gang("a", n).run().wholeOf("a", n)
	var told []string
	for _, a := range c.client.Actions() {
		patch, ok := a.(clienttesting.PatchAction)
		if !ok || a.GetSubresource() != "status" {
			continue
		}
		for _, why := range []string{"in a bad mood", gangs.PlanAborted} {
			if strings.Contains(string(patch.GetPatch()), why) {
				told = append(told, patch.GetName()+": "+why)
			}
		}
	}
	if diff := cmp.Diff([]string{refused + ": in a bad mood"}, told); diff != "" {
		t.Errorf("conditions of pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{refused + ": 0/1 nodes are available: 1 in a bad mood."}, c.eventsWith("FailedScheduling")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// The stock scheduler announces the node of a pod that is prepared before its binding (status.nominatedNodeName). The
// members of an aborted plan have none left afterwards, also if the informer tells late of what was announced.
func TestMembersOfAnAbortedPlanHaveNoNominatedNode(t *testing.T) {
	for name, late := range map[string]bool{"seen by the scheduler": false, "not seen yet": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noNominationIsLeft(t, late)
		})
	}
}

func noNominationIsLeft(t *testing.T, late bool) {
	t.Helper()
	var attempts atomic.Int32
	announced, told := make(chan struct{}), make(chan struct{})
	c := newCluster(t, prepares(func(_ context.Context, pod string) *fwk.Status {
		if pod != "a-2" || attempts.Add(1) > 1 {
			return nil
		}
		<-announced
		return fwk.NewStatus(fwk.Error, "no volume")
	}), delaysEvents(func(pod *corev1.Pod) {
		if late && pod.Status.NominatedNodeName != "" {
			<-told
		}
	}))
	c.node(wrappers.MakeNode("n0").GPUs(3)).gang("a", 3)
	patched := func(text string) int {
		pods := map[string]bool{}
		for _, a := range c.client.Actions() {
			if patch, ok := a.(clienttesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), text) {
				pods[patch.GetName()] = true
			}
		}
		return len(pods)
	}
	seen := func() bool { // by the scheduler, which removes what it knows of
		pods, err := c.sched.Profiles[wrappers.SchedulerName].SharedInformerFactory().Core().V1().Pods().Lister().List(labels.Everything())
		return err == nil && len(pods) == 3 && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Status.NominatedNodeName != "n0" })
	}
	c.run().eventually("the nodes of all three announced", func() bool { return patched(`"nominatedNodeName":"n0"`) == 3 && (late || seen()) })
	close(announced)
	c.eventually("their removal", func() bool { return patched(`"nominatedNodeName":null`) == 3 })
	close(told)
	c.wholeOf("a", 3)
}

// Members that follow the one whose node refused it wait at Permit until the plan is aborted. Their nodes are not
// nominated.
func TestMembersThatWaitForAnAbortAreNotNominated(t *testing.T) {
	t.Parallel()
	var cycles atomic.Int32
	c := newCluster(t, opinions(func(point, _, node string) *fwk.Status {
		switch point {
		case "Filter":
			if cycles.Add(1) == 1 {
				return fwk.NewStatus(fwk.Unschedulable, "in a bad mood")
			}
		case "Unreserve":
			cycles.Add(100) // a member had its cycle after the first one
		}
		return nil
	})).node(wrappers.MakeNode("n0").GPUs(2)).node(wrappers.MakeNode("n1").GPUs(2)).gang("a", 4)
	c.gangs.refusals.KnownFor = 300 * time.Millisecond
	c.run().wholeOf("a", 4)
	if cycles.Load() < 100 {
		t.Error("no member was released with the plan")
	}
	// In the second attempt a plugin prepares all of them.
	if diff := cmp.Diff([]string{"a-0", "a-1", "a-2", "a-3"}, c.nominated()); diff != "" {
		t.Errorf("nominated pods (-want +got):\n%s", diff)
	}
}

func TestFailedBindingIsRepaired(t *testing.T) {
	for name, post := range map[string]bool{"not posted": false, "posted, and the answer lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).gang("a", 8)
			failed := false
			c.refuse = func(pod string) (bool, bool) {
				if pod == "a-2" && !failed {
					failed = true
					return post, false
				}
				return true, true
			}
			c.run().wholeOf("a", 8).eventually("admitted", func() bool {
				f, _ := c.gangs.registry.Facts(key("a"))
				return f.Admitted && f.Bound[""] == 8
			})
		})
	}
}

// The facts of a gang of which a binding is refused name the pod, the node and the answer of the API server.
func TestARefusedBindingIsTold(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8))
	c.refuse = func(pod string) (post, ok bool) { return pod != "a-2", pod != "a-2" }
	var told string
	c.gang("a", 4).run().eventually("the cause is told", func() bool {
		f, _ := c.gangs.registry.Facts(key("a"))
		told = f.Failure
		return told != ""
	})
	if want := "binding pod ml/a-2 to node n0: "; !strings.HasPrefix(told, want) || len(told) == len(want) {
		t.Errorf("told %q, want %q and the answer", told, want)
	}
}

// A binding that was carried out has not failed, even if its answer is lost: the pod's condition stays true.
func TestBindingWhoseAnswerIsLostDidNotFail(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).gang("a", 4)
	c.refuse = func(pod string) (bool, bool) { return true, pod != "a-2" }
	failed := c.countFailures()
	c.run().wholeOf("a", 4).eventually("nothing under way", func() bool {
		f, _ := c.gangs.registry.Facts(key("a"))
		return f.Admitted && !f.Binding && !c.gangs.binds.busy() && !c.gangs.released.any()
	})
	c.gang("b", 1).wholeOf("b", 1)
	if n := failed.Load(); n != 0 {
		t.Errorf("%d pods failed, want none", n)
	}
	pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, "a-2", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]corev1.PodCondition(nil), pod.Status.Conditions); diff != "" {
		t.Errorf("conditions of a bound pod (-want +got):\n%s", diff)
	}
}

// A binding without an answer occupies its slot until its timeout, and nothing else: other gangs are planned and
// bound in the meantime, and its own gang is completed afterwards.
func TestBindingThatHangsDelaysNoOtherGang(t *testing.T) {
	t.Parallel()
	twoSlots := func(_ *cluster, _ *bool, args *config.GangAdmissionArgs) { args.BindParallelism = 2 }
	c := newCluster(t, twoSlots).node(wrappers.MakeNode("n0").GPUs(16)).gang("a", 4)
	hangs, timeout := make(chan time.Duration, 1), make(chan struct{})
	var once sync.Once
	c.answer = func(ctx context.Context, pod string) error {
		if pod != "a-2" {
			return nil
		}
		var err error
		once.Do(func() {
			deadline, _ := ctx.Deadline()
			hangs <- time.Until(deadline)
			select {
			case <-timeout:
				err = context.DeadlineExceeded
			case <-ctx.Done():
				err = ctx.Err()
			}
		})
		return err
	}
	c.run()
	if limit := <-hangs; limit <= 0 || limit > bindTimeout {
		t.Errorf("the binding that hangs has %s left, want at most %s", limit, bindTimeout)
	}
	c.gang("b", 4).gang("c", 4).wholeOf("b", 4).wholeOf("c", 4)
	c.eventually("the three others bound while the binding of a-2 hangs", func() bool { return len(c.boundOf("a-")) == 3 })
	if f, _ := c.gangs.registry.Facts(key("a")); !f.Binding || f.Partial {
		t.Errorf("gang a: binding %t, partial %t; want that it is being bound", f.Binding, f.Partial)
	}
	close(timeout)
	c.wholeOf("a", 4).eventually("admitted", func() bool {
		f, _ := c.gangs.registry.Facts(key("a"))
		return f.Admitted && !f.Binding
	})
}

// The bindings of a gang overtake those of a gang with a lower priority that was planned before it and has only begun
// to be bound.
func TestBindingsOfAHigherPriorityFirst(t *testing.T) {
	t.Parallel()
	const low = 40
	oneSlot := func(_ *cluster, _ *bool, args *config.GangAdmissionArgs) { args.BindParallelism = 1 }
	c := newCluster(t, oneSlot).node(wrappers.MakeNode("n0").GPUs(low+2)).gang("low", low)
	goOn := make(chan struct{})
	c.answer = func(context.Context, string) error {
		<-goOn
		return nil
	}
	c.run()
	limiter := c.gangs.binds
	waiting := func(n int) func() bool {
		return func() bool {
			limiter.mu.Lock()
			defer limiter.mu.Unlock()
			return len(limiter.waiting) == n
		}
	}
	c.eventually("all bindings of low but one waiting", waiting(low-1))
	c.groups.Put(wrappers.MakePodGroup("urgent", "ml").UID("urgent").Generation(1).MinMember(2).Obj())
	for _, pod := range members("urgent", 2) {
		c.pod(pod.Priority(1000))
	}
	c.eventually("both bindings of urgent waiting, too", waiting(low+1))
	close(goOn)
	c.wholeOf("urgent", 2).wholeOf("low", low)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.bound[1:3] {
		if !strings.HasPrefix(name, "urgent-") {
			t.Fatalf("bound in the order %v, want both pods of urgent after the first binding of low", c.bound)
		}
	}
}

func TestMemberDeletedBetweenPlanAndBind(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(8)).gang("a", 4)
	deleted := make(chan struct{})
	c.onPop = func(pod string) {
		if pod == "a-1" { // the leader's cycle is over, the plan is in force
			c.deletePod("a-3")
			c.eventually("the deletion seen", func() bool {
				f, _ := c.gangs.registry.Facts(key("a"))
				return f.Created[""] == 3
			})
			c.mu.Lock()
			c.onPop = nil
			c.mu.Unlock()
			close(deleted)
		}
	}
	c.run()
	<-deleted
	c.eventually("the plan given back", func() bool {
		f, _ := c.gangs.registry.Facts(key("a"))
		return f.Created[""] == 3 && !f.Binding && !c.gangs.registry.IsUnwinding() && len(c.sched.SchedulingQueue.InFlightPods()) == 0
	})
	if got := c.boundOf("a-"); len(got) != 0 {
		t.Fatalf("bound %v of a gang that is not complete", got)
	}
	c.pod(wrappers.MakePod("a-9", "ml").Gang("a").GPUs(1)).wholeOf("a", 4)
}

func TestNodeRemovedBetweenPlanAndBind(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("small").GPUs(4)).gang("a", 4)
	c.onPop = func(pod string) {
		if pod != "a-1" {
			return
		}
		c.mu.Lock()
		c.onPop = nil
		c.mu.Unlock()
		c.node(wrappers.MakeNode("large").GPUs(8))
		if err := c.client.CoreV1().Nodes().Delete(c.ctx, "small", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		c.eventually("the removal seen", func() bool {
			n := c.sched.Cache.Dump().Nodes["small"]
			return n == nil || n.Node() == nil
		})
	}
	c.run().wholeOf("a", 4).neverPartial(map[string]int{"a": 4})
	for i := range 4 {
		pod, err := c.client.CoreV1().Pods("ml").Get(c.ctx, fmt.Sprintf("a-%d", i), metav1.GetOptions{})
		if err != nil || pod.Spec.NodeName != "large" {
			t.Errorf("pod %d is on %s, %v", i, pod.Spec.NodeName, err)
		}
	}
}

func TestPlainPodsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0"))
	for i, priority := range []int32{0, 10, 5, 10, 0} {
		c.pod(wrappers.MakePod(fmt.Sprintf("p%d", i), "ml").Priority(priority))
		c.eventually("queued", func() bool { _, ok := c.sched.SchedulingQueue.GetPod(fmt.Sprintf("p%d", i), "ml", nil); return ok })
	}
	c.run().eventually("all bound", func() bool { return len(c.boundOf("p")) == 5 })
	c.mu.Lock()
	defer c.mu.Unlock()
	if diff := cmp.Diff([]string{"p1", "p3", "p2", "p0", "p4"}, c.popped); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestPlainPodsKeepTheirBatching(t *testing.T) {
	c := newCluster(t)
	f := c.sched.Profiles[wrappers.SchedulerName]
	if s := f.SignPod(c.ctx, wrappers.MakePod("plain", "ml").GPUs(1).Obj()); s == nil {
		t.Error("a plain pod has no signature")
	}
	if s := f.SignPod(c.ctx, members("a", 1)[0].Obj()); s != nil {
		t.Errorf("a member has signature %s", s)
	}
}

// A pod of a gang never preempts for itself (docs/decisions, G15).
func TestNoMemberPreemptsForItself(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(4))
	for i := range 4 {
		c.pod(wrappers.MakePod(fmt.Sprintf("low-%d", i), "ml").GPUs(1).Priority(0).Node("n0"))
	}
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(2).Obj())
	for _, m := range members("a", 2) {
		c.pod(m.Priority(1000).NeverPreempts())
	}
	c.run().refused("a")
	c.mu.Lock()
	if len(c.writes) != 0 {
		t.Errorf("a member preempted: %v", c.writes)
	}
	c.mu.Unlock()
	c.pod(wrappers.MakePod("high", "ml").GPUs(1).Priority(1000)).eventually("a victim deleted", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.writes) == 1
	})
}

// TestNominationsOfMembersAreNotCountedTwice: another component, for example an autoscaler, has nominated the node
// for the members.
func TestNominationsOfMembersAreNotCountedTwice(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(4))
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(4).Obj())
	for _, m := range members("a", 4) {
		pod := m.Obj()
		pod.UID, pod.Status.NominatedNodeName = typesUID("uid-"+pod.Name), "n0"
		if _, err := c.client.CoreV1().Pods("ml").Create(c.ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.run().wholeOf("a", 4)
}

// A scheduler that was built with the plugins and not attached ends, and binds no pod of a gang before.
func TestWithoutAttachTheProcessEnds(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	c := newCluster(t, func(c *cluster, attach *bool, _ *config.GangAdmissionArgs) {
		*attach = false
		c.end = func(err error) {
			select {
			case ended <- err:
			default: // the process would have ended
			}
		}
	}).node(wrappers.MakeNode("n0").GPUs(10)).gang("a", 2).run()
	if err := <-ended; !strings.Contains(err.Error(), "pkg/scheduler.NewCommand") {
		t.Errorf("error %v", err)
	}
	if got := c.boundOf("a-"); len(got) > 0 {
		t.Errorf("bound %v", got)
	}
}

func TestPodGroupDeletedAndCreatedAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(2)).gang("a", 4).run().refused("a")
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("another").Generation(1).MinMember(2).Obj())
	c.wholeOf("a", 2)
}

// TestNodeThatRefusedAMemberIsTriedAgain: what a node refused is known for a limited time (docs/decisions, G18). If the
// gang needs the node, the gang must be woken when this time is over, even if no other event occurs in the cluster.
func TestNodeThatRefusedAMemberIsTriedAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(4)).gang("a", 4)
	c.gangs.refusals.KnownFor = 300 * time.Millisecond
	refusals := 0
	c.onCycle = func(pod string) bool {
		if pod == "a-2" {
			refusals++
		}
		return pod == "a-2" && refusals == 1
	}
	c.run().wholeOf("a", 4).neverPartial(map[string]int{"a": 4})
}

// afterUnreserve is a profile that calls a function between a pod's Unreserve and its removal from the scheduler's
// cache.
type afterUnreserve struct {
	kubescheduler.Profile
	then func()
}

func (f afterUnreserve) RunReservePluginsUnreserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	f.Profile.RunReservePluginsUnreserve(ctx, state, pod, node)
	f.then()
}

// The plugins are notified of a released reservation before the scheduler's cache is. A plan made in between would
// still see the reservation.
func TestNoPlanBeforeReservationsAreForgotten(t *testing.T) {
	t.Parallel()
	var released, early atomic.Int32
	var loop memberSource
	c := newCluster(t, func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) {
		c.wrap = func(f kubescheduler.Profile) kubescheduler.Profile {
			return afterUnreserve{f, func() {
				released.Add(1)
				if held, released := loop.Unwinding(); !held && !released {
					early.Add(1)
				}
			}}
		}
	}).node(wrappers.MakeNode("n0").GPUs(4)).gang("a", 4)
	c.onCycle = func(pod string) bool { return pod == "a-3" }
	loop = memberSource{c.gangs}
	c.run().eventually("three reservations given back", func() bool { return released.Load() == 3 })
	if early.Load() != 0 {
		t.Errorf("after %d of the releases a plan might have been made before the cache had forgotten the pod", early.Load())
	}
	c.eventually("planning goes on", c.isQuiet)
}

// A waiting pod that was recreated under its name while the watch was interrupted arrives as an update of the
// previous pod. The previous pod no longer counts, and is no longer the leader.
func TestPodRecreatedWhileTheWatchWasInterrupted(t *testing.T) {
	t.Parallel()
	c := newCluster(t).node(wrappers.MakeNode("n0").GPUs(2)).run()
	c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(2).Obj())
	pods := members("a", 2)
	created := func() int {
		f, _ := c.gangs.registry.Facts(key("a"))
		return f.Created[""]
	}
	c.pod(pods[0]).eventually("one pod known", func() bool { return created() == 1 })
	another := members("a", 1)[0].UID("another").Obj()
	another.ResourceVersion = "2" // an update to the same version is ignored
	if err := c.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), another, "ml"); err != nil {
		t.Fatal(err)
	}
	c.pod(members("b", 1)...).eventually("a later event seen", func() bool {
		_, ok := c.gangs.registry.Facts(key("b"))
		return ok
	})
	if n := created(); n != 1 {
		t.Errorf("%d pods count, want the one that exists", n)
	}
	c.pod(pods[1]).wholeOf("a", 2)
}

// A node that refused a member is worth another attempt when it has changed.
func TestNodeThatRefusedAMemberIsTriedAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	node := func(uid string) *wrappers.NodeWrapper { return wrappers.MakeNode("n0").UID(uid).GPUs(4) } // a new object has another UID
	changes := map[string]func(c *cluster){
		"a label": func(c *cluster) {
			if _, err := c.client.CoreV1().Nodes().Update(c.ctx, node("first").Label("mood", "good").Obj(), metav1.UpdateOptions{}); err != nil {
				c.t.Error(err)
			}
		},
		"it was gone": func(c *cluster) {
			if err := c.client.CoreV1().Nodes().Delete(c.ctx, "n0", metav1.DeleteOptions{}); err != nil {
				c.t.Error(err)
			}
			c.node(node("second"))
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t).node(node("first")).gang("a", 4)
			refusals := 0
			c.onCycle = func(pod string) bool {
				if pod == "a-2" {
					refusals++
				}
				return pod == "a-2" && refusals == 1
			}
			c.run().refused("a")
			change(c)
			c.wholeOf("a", 4).neverPartial(map[string]int{"a": 4})
		})
	}
}

// A scheduler that may not read the key admits gangs as usual; its bindings carry no mark.
func TestGangIsBoundWithoutAKey(t *testing.T) {
	t.Parallel()
	forbidden := func(c *cluster, _ *bool, _ *config.GangAdmissionArgs) {
		c.client.PrependReactor("*", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), "muster-scheduler-marks", errors.New("no"))
		})
	}
	c := newCluster(t, forbidden).node(wrappers.MakeNode("n0").GPUs(8)).gang("a", 4).run().wholeOf("a", 4)
	c.mu.Lock()
	defer c.mu.Unlock()
	for pod, mark := range c.marks {
		if mark != "" {
			t.Errorf("mark of %s is %q", pod, mark)
		}
	}
}

// The managed fields are most of a node's data, and no code here reads them.
func TestNodesAreKeptWithoutManagedFields(t *testing.T) {
	t.Parallel()
	node := wrappers.MakeNode("n0").GPUs(8)
	node.Obj().ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate}}
	c := newCluster(t).node(node).gang("a", 4).run().wholeOf("a", 4)
	for _, f := range c.sched.Profiles {
		kept, err := f.SharedInformerFactory().Core().V1().Nodes().Lister().Get("n0")
		if err != nil {
			t.Fatal(err)
		}
		if kept.ManagedFields != nil {
			t.Errorf("managed fields %v, want none", kept.ManagedFields)
		}
	}
}
