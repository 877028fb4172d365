// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	testclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

// fakePlan is the MemberSource of turns: a plan of so many members.
type fakePlan struct {
	MemberSource
	id       uint64
	priority int32
	left     int
	passes   bool                // it passes another plan
	leaders  map[types.UID]int32 // of gangs that may pass, with the rank of the gang, which is compared with priorities
	promised map[string][]*corev1.Pod
	calls    []string
}

func (p *fakePlan) Pace()                { p.calls = append(p.calls, "pace") }
func (p *fakePlan) Popped(uid types.UID) { p.calls = append(p.calls, "popped "+string(uid)) }
func (p *fakePlan) Unwinding() (_, _ bool) {
	p.calls = append(p.calls, "unwinding")
	return false, false
}

func (p *fakePlan) Committing() (uint64, int32, bool, bool) {
	if p.left == 0 {
		return 0, 0, false, false
	}
	return p.id, p.priority, true, p.passes
}

func (p *fakePlan) MayPass(uid types.UID) bool {
	_, ok := p.leaders[uid]
	return ok
}

func (p *fakePlan) Promised(node string) (pods []*corev1.Pod, classes []string) {
	for _, pod := range p.promised[node] {
		classes = append(classes, podgroup.ClassKey(pod))
	}
	return p.promised[node], classes
}

type turnsScene struct {
	*queueScene
	clock *testclock.FakeClock
	plan  *fakePlan
	turns *turns
}

func newTurnsScene(t *testing.T, members int) *turnsScene {
	s := &turnsScene{queueScene: newQueueScene(t), clock: testclock.NewFakeClock(time.Unix(0, 0)), plan: &fakePlan{id: 1, left: members}}
	rank := func(info fwk.QueuedPodInfo) int32 {
		pod := info.GetPodInfo().GetPod()
		if of, ok := s.plan.leaders[pod.UID]; ok {
			return of
		}
		return corev1helpers.PodPriority(pod)
	}
	s.turns = &turns{clock: s.clock, queue: s.q, members: s.plan, less: func(a, b fwk.QueuedPodInfo) bool {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), a.GetTimestamp().Compare(b.GetTimestamp())) < 0
	}}
	s.q.promises.of = s.plan.Promised
	return s
}

// cycles runs n cycles of a millisecond each, and returns the names of the other pods in their order, and how many
// members went before each.
func (s *turnsScene) cycles(n int) (order []string) {
	members := 0
	for range n {
		if info := s.turns.nextBetween(klog.Background()); info != nil {
			order = append(order, fmt.Sprintf("%s after %d", info.Pod.Name, members))
		} else if s.plan.left > 0 {
			s.plan.left--
			members++
		}
		s.clock.Step(time.Millisecond)
	}
	return order
}

func passer(name string) *wrappers.PodWrapper { return wrappers.MakePod(name, "ml").UID(name) }

func TestPodsOfEqualOrHigherPriorityPassAPlan(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 1000)
	s.plan.priority = 10
	if got := s.cycles(20); len(got) != 0 {
		t.Fatalf("%v passed without having waited", got)
	}
	device := func(spec *corev1.PodSpec) { spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }
	s.add(passer("z-equal").Priority(10).Obj(), passer("a-lower").Priority(9).Obj(), passer("y-higher").Priority(11).Obj(),
		wrappers.MakePod("leader", "ml").UID("leader").Gang("g").Priority(100).Obj(), passer("device").Priority(10).Spec(device).Obj())
	s.activate(wrappers.MakePod("leader", "ml").UID("leader").Gang("g").Priority(100).Obj())
	if diff := gocmp.Diff([]string{"y-higher after 30", "z-equal after 30"}, s.cycles(980)); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
	if _, cycling := s.q.cycling["z-equal"]; !cycling {
		t.Error("the queue does not know of the cycle")
	}
}

// Leaders of gangs that may pass do so in the order of the queue, not that of their activations, once each. A leader
// whose attempt has failed is activated by the registry, not at the end of the plan.
func TestLeadersPassAPlan(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 1000)
	s.plan.priority, s.plan.leaders = 10, map[types.UID]int32{"b": 12, "c": 14}
	leaders := []*corev1.Pod{}
	for _, name := range []string{"a", "b", "c"} {
		leaders = append(leaders, passer(name).Gang("g-"+name).Priority(100).Obj())
	}
	s.add(append(leaders, passer("plain").Priority(13).Obj())...)
	for _, leader := range leaders {
		s.activate(leader)
	}
	if diff := gocmp.Diff([]string{"c after 50", "plain after 50", "b after 50"}, s.cycles(500)); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
	s.q.gateAgain(klog.Background(), leaders[1])
	s.plan.left = 0
	s.cycles(1)
	if _, gated := s.q.waiting["b"]; !gated {
		t.Error("the leader was activated at the end of the plan")
	}
}

// The cycle of a leader that passes begins as that of any other: bindings and reservations of plans before are waited
// for. Pods without a gang wait for neither.
func TestLeadersThatPassKeepThePace(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 1000)
	s.plan.leaders = map[types.UID]int32{"leader": 2}
	leader := passer("leader").Gang("g").Obj()
	s.add(leader, passer("plain").Obj())
	s.activate(leader)
	s.cycles(50)
	l := &loop{queue: s.q, members: s.plan, turns: s.turns}
	for range 2 {
		if _, err := l.nextPod(klog.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := gocmp.Diff([]string{"unwinding", "pace", "popped leader", "popped plain"}, s.plan.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// The plan may be doomed in the cycle of another leader: the next one then stays in the queue.
func TestLeaderMayPassWhenItIsPopped(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 1000)
	s.plan.leaders = map[types.UID]int32{"a": 2, "b": 1}
	a, b := passer("a").Gang("g-a").Obj(), passer("b").Gang("g-b").Obj()
	s.add(a, b)
	s.activate(a)
	s.activate(b)
	if diff := gocmp.Diff([]string{"a after 50"}, s.cycles(51)); diff != "" {
		t.Fatalf("passed (-want +got):\n%s", diff)
	}
	delete(s.plan.leaders, "b")
	if got := s.cycles(500); len(got) != 0 {
		t.Errorf("%v passed", got)
	}
	if active := s.stock.PodsInActiveQ(); len(active) != 1 || active[0].Name != "b" {
		t.Errorf("%d pods in the queue, want b", len(active))
	}
}

func TestPodsThatPassTakeAThirdOfTheTime(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 1000)
	for i := range 2000 {
		s.add(passer(fmt.Sprintf("p%04d", i)).Obj())
	}
	passed := s.cycles(1500)
	if s.plan.left > 10 || len(passed) < 450 || len(passed) > 510 {
		t.Errorf("in 1,500 cycles %d pods passed and %d of 1,000 members are left, want about 500 and none", len(passed), s.plan.left)
	}
	for i, p := range passed {
		if want := fmt.Sprintf("p%04d after", i); !strings.HasPrefix(p, want) {
			t.Fatalf("pod %d: %s, want %s: the order of the queue", i, p, want)
		}
	}
}

// The cycle of a pod that passes may take longer than its turn, since it takes the members' rooms into account.
func TestSlowCyclesDoNotHoldUpThePlan(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 2000)
	for i := range 100 {
		s.add(passer(fmt.Sprintf("p%02d", i)).Obj())
	}
	began := s.clock.Now()
	for s.plan.left > 0 {
		if s.turns.nextBetween(klog.Background()) != nil {
			s.clock.Step(200 * time.Millisecond)
		} else {
			s.plan.left--
			s.clock.Step(time.Millisecond)
		}
	}
	if took := s.clock.Since(began); took > 3100*time.Millisecond {
		t.Errorf("a plan of two seconds took %s", took)
	}
}

// A small plan is handed out at a stroke, and each begins with the members' turn.
func TestSmallPlansAreNotInterrupted(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 0)
	for id := range uint64(20) {
		s.add(passer(fmt.Sprintf("p%d", id)).Obj())
		s.plan.id, s.plan.left = id+1, 40
		if got := s.cycles(40); len(got) != 0 {
			t.Fatalf("plan %d: %v passed", id, got)
		}
	}
}

// A pod that was refused while it passed is tried again when the plan has ended, not before.
func TestRefusedPodIsTriedAgainAfterThePlan(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 100)
	pod := passer("p").Obj()
	s.add(pod)
	s.cycles(50)
	info := s.turns.nextBetween(klog.Background())
	if info == nil {
		t.Fatal("the pod does not pass")
	}
	info.UnschedulablePlugins.Insert("X")
	if err := s.q.AddUnschedulableIfNotPresent(klog.Background(), info, s.q.SchedulingCycle()); err != nil {
		t.Fatal(err)
	}
	s.activate(pod) // an event woke it
	if got := s.cycles(40); len(got) != 0 || s.plan.left == 0 {
		t.Fatalf("%v: it was tried twice", got)
	}
	if err := s.q.AddUnschedulableIfNotPresent(klog.Background(), s.q.PopSpecificPod(klog.Background(), pod), s.q.SchedulingCycle()); err != nil {
		t.Fatal(err)
	}
	s.plan.left = 0
	s.cycles(1)
	if !slices.ContainsFunc(s.stock.PodsInActiveQ(), func(p *corev1.Pod) bool { return p.Name == "p" }) {
		t.Error("the pod waits after the end of the plan")
	}
}

// Neither when another plan has passed this one: a pod that does not fit beside the plan would be tried after each of
// them.
func TestRefusedPodIsNotTriedAgainWhenThePlanIsContinued(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 1000)
	pod := passer("p").Obj()
	s.add(pod)
	s.cycles(50)
	info := s.turns.nextBetween(klog.Background())
	if info == nil {
		t.Fatal("the pod does not pass")
	}
	info.UnschedulablePlugins.Insert("X")
	if err := s.q.AddUnschedulableIfNotPresent(klog.Background(), info, s.q.SchedulingCycle()); err != nil {
		t.Fatal(err)
	}
	s.activate(pod) // an event woke it
	for _, passes := range []bool{true, false, true, false} {
		if s.plan.id, s.plan.passes = 1, passes; passes {
			s.plan.id = 2
		}
		if got := s.cycles(100); len(got) != 0 {
			t.Errorf("%v: it was tried twice", got)
		}
	}
	s.plan.id = 3
	if diff := gocmp.Diff([]string{"p after 50"}, s.cycles(100)); diff != "" {
		t.Errorf("passed another plan (-want +got):\n%s", diff)
	}
}

// Members that wait for their cycles are nominated for the pod that passes, of whatever priority, and for no other.
// Each has its own name and the requests of its class; another plan has other classes.
func TestPromisedRoomIsNominated(t *testing.T) {
	t.Parallel()
	s := newTurnsScene(t, 100)
	member := wrappers.MakePod("m", "ml").UID("m").Gang("g").GPUs(3).Obj()
	twin := wrappers.MakePod("twin", "ml").UID("twin").Gang("g").GPUs(3).Obj()
	small := wrappers.MakePod("small", "ml").UID("small").Gang("g").GPUs(1).Obj()
	s.plan.promised = map[string][]*corev1.Pod{"n": {member, twin, small}}
	s.add(passer("p").Priority(1 << 30).Obj())
	nominated := func() (out []string) {
		for _, node := range []string{"n", "other"} {
			for _, info := range s.q.NominatedPodsForNode(node) {
				gpus := info.CalculateResource().Resource.GetScalarResources()["nvidia.com/gpu"]
				out = append(out, fmt.Sprintf("%s with %d on %s %t", info.GetPod().Name, gpus, node, *info.GetPod().Spec.Priority > 1<<30))
			}
		}
		return out
	}
	s.cycles(50)
	if got := nominated(); len(got) != 0 {
		t.Errorf("in a member's cycle %v are nominated", got)
	}
	if s.turns.nextBetween(klog.Background()) == nil {
		t.Fatal("the pod does not pass")
	}
	for range 2 { // the second time from what is kept
		if diff := gocmp.Diff([]string{"m with 3 on n true", "twin with 3 on n true", "small with 1 on n true"}, nominated()); diff != "" {
			t.Errorf("nominated (-want +got):\n%s", diff)
		}
	}
	if member.Spec.Priority != nil {
		t.Error("the member was changed")
	}
	s.cycles(1)
	if got := nominated(); len(got) != 0 {
		t.Errorf("in the next member's cycle %v are nominated", got)
	}
	s.plan.passes = true
	s.cycles(1)
	if got := nominated(); len(got) != 3 {
		t.Errorf("in the cycle of a member of a plan that passes another one %v are nominated, want all", got)
	}
}
