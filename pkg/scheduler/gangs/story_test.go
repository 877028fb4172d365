// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/test/wrappers"
)

// story delivers events to a Registry one after another, with a clock that only the story advances. Pods are named by
// their UID.
type story struct {
	t   *testing.T
	r   *Registry
	now time.Time
	// Effects of the last call.
	effects Effects
	work    *Work
	plan    *Plan
}

const testNamespace = "ml"

// begin starts a story in which the scheduler is synced and no objects exist.
func begin(t *testing.T) *story {
	t.Helper()
	s := &story{t: t, r: New(), now: time.Unix(1_000_000, 0)}
	s.r.Configure(Options{RepairTimeout: 30 * time.Second, Priority: func(name string) (int32, bool) {
		switch name {
		case "urgent":
			return 1000, true
		case "humble":
			return 10, true
		}
		return 0, false
	}})
	s.r.AddProfile(wrappers.SchedulerName)
	s.r.SetKeys(testKeys, s.now)
	s.r.SetSynced(s.now)
	s.r.AbandonedEvictions(nil, s.now)
	return s
}

// memberPod returns a builder of a pod of gang "g" whose name is its UID.
func memberPod(name string) *wrappers.PodWrapper {
	return wrappers.MakePod(name, testNamespace).UID(name).Gang("g").GPUs(1)
}

// podGroup returns a builder of PodGroup "g".
func podGroup() *wrappers.PodGroupWrapper {
	return wrappers.MakePodGroup("g", testNamespace).UID("group").Generation(1)
}

var gangG = Key{Namespace: testNamespace, Name: "g"}

func (s *story) pods(pods ...*wrappers.PodWrapper) *story {
	for _, p := range pods {
		s.effects = s.r.SetPod(p.Obj(), s.now)
	}
	return s
}

// members adds pods of gang g without sub-group.
func (s *story) members(names ...string) *story {
	for _, n := range names {
		s.pods(memberPod(n))
	}
	return s
}

func (s *story) group(w *wrappers.PodGroupWrapper) *story {
	s.effects = s.r.SetGroup(w.Obj(), s.now)
	return s
}

func (s *story) gone(names ...string) *story {
	for _, n := range names {
		s.effects = s.r.RemovePod(types.UID(n), s.now)
	}
	return s
}

func (s *story) after(d time.Duration) *story {
	s.now = s.now.Add(d)
	s.effects = s.r.Tick(s.now)
	s.effects.add(s.r.RetryWaiting(nil, nil, s.now))
	return s
}

// leads lets the leader of gang g pass the queue, and begins its cycle.
func (s *story) leads(name string) *story {
	s.t.Helper()
	s.wantLeader(name)
	pod := s.r.members[types.UID(name)].pod
	if ok, why := s.r.MayEnterQueue(pod); !ok {
		s.t.Fatalf("the leader %s does not pass: %s", name, why)
	}
	s.r.RecordPopped(pod.UID)
	work, why := s.r.BeginAttempt(pod)
	if work == nil {
		s.t.Fatalf("the leader %s has nothing to plan: %s", name, why)
	}
	s.work = work
	return s
}

// commits commits a plan that places these pods on node n.
func (s *story) commits(names ...string) *story {
	s.t.Helper()
	plan, why := s.tryCommit(names...)
	if plan == nil {
		s.t.Fatalf("plan refused: %s", why)
	}
	s.plan = plan
	return s
}

func (s *story) tryCommit(names ...string) (*Plan, string) {
	var placements []placement.Placement
	for _, n := range names {
		placements = append(placements, placementOf(s.work, n, "n"))
	}
	return s.r.CommitPlan(s.work, placements, s.now)
}

func (s *story) assumes(names ...string) *story {
	s.t.Helper()
	for _, n := range names {
		if err := s.r.AssumeMember(types.UID(n), "n", s.now); err != nil {
			s.t.Fatalf("assuming %s: %v", n, err)
		}
	}
	return s
}

func (s *story) releases(names ...string) *story {
	for _, n := range names {
		s.effects = s.r.ReleaseMember(types.UID(n), s.now)
	}
	return s
}

func (s *story) arrives(names ...string) *story {
	s.t.Helper()
	for _, n := range names {
		if _, err := s.r.recordArrival(types.UID(n)); err != nil {
			s.t.Fatalf("%s arrives: %v", n, err)
		}
	}
	return s
}

func (s *story) posts(names ...string) *story {
	for _, n := range names {
		s.effects = s.r.RecordPosted(types.UID(n), s.now)
	}
	return s
}

// binds executes a plan of these pods from its first member to its last binding, as informers report it.
func (s *story) binds(leader string, names ...string) *story {
	s.t.Helper()
	s.leads(leader).commits(names...).assumes(names...).arrives(names...).posts(names...)
	for _, n := range names {
		s.shownBound(n)
	}
	return s
}

// shownBound delivers the informer's event of a pod that has a node.
func (s *story) shownBound(names ...string) *story {
	for _, n := range names {
		var pod *corev1.Pod
		if m := s.r.members[types.UID(n)]; m != nil {
			pod = m.pod.DeepCopy()
		} else {
			pod = memberPod(n).Obj()
		}
		pod.Spec.NodeName = "n"
		s.effects = s.r.SetPod(pod, s.now)
	}
	return s
}

func (s *story) leader() string {
	if g := s.r.gangs[gangG]; g != nil {
		return string(g.leader)
	}
	return ""
}

func (s *story) wantLeader(name string) *story {
	s.t.Helper()
	if got := s.leader(); got != name {
		s.t.Fatalf("leader is %q, want %q", got, name)
	}
	return s
}

func (s *story) wantOpen(want bool) *story {
	s.t.Helper()
	select {
	case <-s.plan.opened:
		if !want {
			s.t.Fatal("the barrier is open")
		}
	default:
		if want {
			s.t.Fatalf("the barrier is not open; aborted: %q", s.plan.reason)
		}
	}
	return s
}

func (s *story) wantAborted(want bool) *story {
	s.t.Helper()
	if s.plan.aborted != want {
		s.t.Fatalf("aborted is %t (%s), want %t", s.plan.aborted, s.plan.reason, want)
	}
	return s
}

// wantQuiet checks that no plan is left.
func (s *story) wantQuiet() *story {
	s.t.Helper()
	if s.r.unwinding != 0 || s.r.committing != nil || len(plans(s.r)) != 0 {
		s.t.Fatalf("unwinding %d, committing %v, plans %d; want none", s.r.unwinding, s.r.committing, len(plans(s.r)))
	}
	for _, g := range s.r.gangs {
		if g.plan != nil {
			s.t.Fatalf("gang %s still has a plan", g.key)
		}
	}
	return s
}

func (s *story) wantAdmitted(want bool) *story {
	s.t.Helper()
	if got := s.r.gangs[gangG].admitted; got != want {
		s.t.Fatalf("admitted is %t, want %t", got, want)
	}
	return s
}

// activated returns the names of the pods that the last call returned for activation.
func (s *story) activated() []string {
	var out []string
	for _, p := range s.effects.Activate {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}
